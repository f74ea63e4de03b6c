"""The posterior of the last layer: softmax regression on the features of now, against dense recomputations."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from suffice import kl
from suffice.errors import InvalidValueError
from suffice.models import BayesianLogistic, DropoutNetwork
from suffice.models.laplace import divergences, laplace, learn_alpha
from suffice.numerics import Floats

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
NAMES = np.array(["crow", "dove", "finch"])


def labels(n_classes: int) -> Any:
    score = X @ np.random.default_rng(1).normal(size=(4, n_classes))
    return NAMES[(score + np.random.default_rng(2).gumbel(size=score.shape)).argmax(axis=1)]


def network(**options: Any) -> DropoutNetwork:
    settings: dict[str, Any] = {"hidden": (6,), "epochs": 40, "learning_rate": 0.01, "device": "cpu"}
    return DropoutNetwork(approximation="last-layer", **{**settings, **options})


def features(model: DropoutNetwork, rows: Any) -> Floats:
    """What reaches the last layer, computed by numpy."""
    state: dict[str, Any] = model.module_.state_dict()
    weight, bias = (state[f"1.{part}"].numpy().astype(np.float64) for part in ("weight", "bias"))
    return np.asarray(np.maximum(np.asarray(rows) @ weight.T + bias, 0.0))


def precision(model: DropoutNetwork, alpha: float) -> float:
    """Prior precision of the weights: alpha times the mean square of the features, the constant among them."""
    return alpha * float(1.0 + (features(model, model.X_) ** 2).sum(axis=1).mean())


each_number = pytest.mark.parametrize("n_classes", [2, 3])


@each_number
def test_the_posterior_is_that_of_logistic_regression_on_the_features(n_classes: int) -> None:
    y = labels(n_classes)
    model = network(alpha=0.7).fit(X, y)
    other = BayesianLogistic(alpha=precision(model, 0.7)).fit(features(model, X), y)
    assert model.posterior.dimension == (7 if n_classes == 2 else 21)
    np.testing.assert_allclose(model.posterior.mean, other.posterior.mean, rtol=1e-4, atol=1e-5)
    ours, theirs = (one.factor @ one.factor.T for one in (model.posterior, other.posterior))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@each_number
def test_precision_and_gradient_by_hand(n_classes: int) -> None:
    y = labels(n_classes)
    model = network(alpha=0.7).fit(X, y)
    rows, codes = np.column_stack([np.ones(60), features(model, X)]), np.searchsorted(model.classes_, y)
    weights = model.posterior.mean.reshape(-1, 7)
    stacked = np.vstack([np.zeros((1, 7)), weights]) if n_classes == 2 else weights
    logits = rows @ stacked.T
    p = np.exp(logits - np.logaddexp.reduce(logits, axis=1)[:, None])
    prior = precision(model, 0.7)
    gradient = ((p - np.eye(n_classes)[codes]).T @ rows)[-len(weights) :] + prior * weights
    np.testing.assert_allclose(gradient, 0.0, atol=1e-3)
    curvature = np.einsum("ni,nj,na,nb->iajb", p, -p, rows, rows)
    curvature += np.einsum("ij,ni,na,nb->iajb", np.eye(n_classes), p, rows, rows)
    H = curvature[-len(weights) :, :, -len(weights) :].reshape(weights.size, weights.size)
    H += prior * np.eye(weights.size)
    np.testing.assert_allclose(model.posterior.factor @ model.posterior.factor.T, H, rtol=1e-3, atol=1e-3)


@each_number
def test_before_and_after_differ_by_the_labels_alone(n_classes: int) -> None:
    y = labels(n_classes)
    model = network().fit(X[:50], y[:50])
    model.observe(X[50:], y[50:])
    rows, codes = np.column_stack([np.ones(60), features(model, X)]), np.searchsorted(model.classes_, y)
    old, new = model.last_layer_at(50), model.last_layer()
    for found, n in ((old, 50), (new, 60)):
        # One prior for both, from the features of all labels.
        expected = laplace(rows[:n], codes[:n], n_classes, precision(model, 0.1))
        assert found.n == n
        assert found.alpha == pytest.approx(precision(model, 0.1), rel=1e-5)
        np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(found.labelled()[1], codes[:n])
    before, after = old.posterior(), model.posterior
    for one, other in zip(model.last_layer_pair(50), (before, after), strict=True):
        assert float(kl(one, other)) == pytest.approx(0.0, abs=1e-12)
    pair = divergences(old.snapshot(), new.snapshot())
    assert float(kl(after, before)) == pytest.approx(float(pair.new_old), rel=1e-6)
    assert float(kl(before, after)) == pytest.approx(float(pair.old_new), rel=1e-6)
    assert kl(after, before).kind == "exact"
    # The same labels on the same features, learned one group after the other.
    grown = laplace(old.labelled()[0], codes[:50], n_classes, new.alpha).extend(new.labelled()[0][50:], codes[50:])
    assert float(kl(grown.posterior(), after)) == pytest.approx(0.0, abs=1e-12)


def test_no_label_changes_nothing() -> None:
    model = network().fit(X, labels(2))
    assert float(kl(model.last_layer_at(60).posterior(), model.posterior)) == 0.0
    prior = model.last_layer_at(0).posterior()
    np.testing.assert_array_equal(prior.mean, np.zeros(7))


@each_number
def test_draws_of_the_logits_have_the_posteriors_mean_and_variance(n_classes: int) -> None:
    model = network(alpha=0.1).fit(X, labels(n_classes))
    found = np.log(model.sample_proba(X[:5], 4000, seed=7))
    assert found.shape == (5, 4000, n_classes)
    rows, covariance = np.column_stack([np.ones(5), features(model, X[:5])]), np.linalg.inv(model.posterior.factor)
    covariance = covariance.T @ covariance
    for one in range(1, n_classes):
        contrast = np.zeros((1, 1)) if n_classes == 2 else np.zeros((1, 3))
        contrast[0, 0 if n_classes == 2 else one] = 1.0
        if n_classes == 3:
            contrast[0, 0] = -1.0
        design = np.kron(contrast, rows)
        mean, variance = design @ model.posterior.mean, np.einsum("ij,jk,ik->i", design, covariance, design)
        logits = found[:, :, one] - found[:, :, 0]
        # Draws come in pairs mirrored at the mean.
        np.testing.assert_allclose(logits.mean(axis=1), mean, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(logits.var(axis=1), variance, rtol=5.0 * np.sqrt(2.0 / 2000.0))


def test_the_prior_variance_of_a_logit_does_not_depend_on_the_size_of_the_features() -> None:
    y = labels(3)
    model = network(alpha=0.25).fit(X, y)
    rows = np.column_stack([np.ones(60), features(model, X)])
    prior = model.last_layer_at(0).posterior()
    variance = np.linalg.inv(prior.factor @ prior.factor.T)[:7, :7]
    assert np.einsum("ij,jk,ik->i", rows, variance, rows).mean() == pytest.approx(4.0, rel=1e-5)


def test_draws_are_one_network_for_all_rows() -> None:
    model = network().fit(X, labels(3))
    found = model.sample_proba(X, 6, seed=1)
    np.testing.assert_allclose(model.sample_proba(X[[3]], 6, seed=1)[0], found[3], rtol=1e-6)
    np.testing.assert_allclose(model.sample_proba(X[::-1], 6, seed=1)[::-1], found, rtol=1e-6)
    assert np.abs(model.sample_proba(X, 6, seed=2) - found).max() > 1e-3
    np.testing.assert_allclose(model.predict_proba(X), model.sample_proba(X).mean(axis=1), rtol=1e-9)


@each_number
def test_the_prior_precision_is_learned_from_all_labels(n_classes: int) -> None:
    y = labels(n_classes)
    model = network(alpha=None).fit(X[:50], y[:50]).observe(X[50:], y[50:])
    rows, codes = np.column_stack([np.ones(60), features(model, X)]), np.searchsorted(model.classes_, y)
    expected = learn_alpha(rows, codes, n_classes)
    assert model.last_layer().alpha == pytest.approx(expected, rel=1e-2)
    assert expected != pytest.approx(1.0, rel=0.05)
    # Both posteriors of a step have one prior.
    assert model.last_layer_at(50).alpha == model.last_layer().alpha
    assert kl(model.posterior, model.last_layer_at(50).posterior()) > 0.0


def test_training_on_renews_the_posterior() -> None:
    y = labels(2)
    model = network().fit(X[:50], y[:50])
    old = model.posterior
    assert model.observe(X[50:], y[50:]).last_layer().n == 60
    assert float(kl(model.posterior, old)) > 0.0
    assert model.fit(X[:20], y[:20]).last_layer().n == 20


def test_a_late_class_makes_room_in_the_posterior() -> None:
    y = labels(3)
    first = np.flatnonzero(y != "dove")[:30]
    model = network().fit(X[first], y[first])
    assert model.posterior.dimension == 7
    dove = np.flatnonzero(y == "dove")[:1]
    model.observe(X[dove], y[dove])
    assert model.posterior.dimension == 21
    assert model.last_layer_at(30).posterior().dimension == 21
    np.testing.assert_array_equal(model.classes_, NAMES)


def test_a_network_without_dropout_has_a_last_layer_but_no_masks() -> None:
    y = np.searchsorted(NAMES, labels(3))
    module = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    model = DropoutNetwork(module, approximation="last-layer", epochs=5, device="cpu").fit(X, y)
    assert model.posterior.dimension == 18
    assert model.sample_proba(X, 4).std(axis=1).max() > 1e-3
    with pytest.raises(InvalidValueError, match=r"no dropout layer.*torch\.nn\.Dropout.*approximation='last-layer'"):
        DropoutNetwork(module, epochs=5, device="cpu").fit(X, y)
    logistic = network(hidden=()).fit(X, labels(2))
    assert logistic.posterior.dimension == 5


@pytest.mark.parametrize(
    "ending", [nn.LogSoftmax(dim=1), nn.BatchNorm1d(3), nn.ReLU()], ids=lambda module: type(module).__name__
)
def test_a_network_that_does_not_end_in_a_plain_layer_is_refused(ending: nn.Module) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Dropout(0.5), nn.Linear(5, 3), ending)
    y = np.searchsorted(NAMES, labels(3))
    with pytest.raises(InvalidValueError, match=r"does not end in a plain .*linear.* approximation='dropout'"):
        DropoutNetwork(module, approximation="last-layer", epochs=1, device="cpu").fit(X, y)
    assert DropoutNetwork(module, epochs=1, device="cpu").fit(X, y).n_labels_ == 60


def test_a_convolution_at_the_end_is_refused() -> None:
    module = nn.Sequential(nn.Unflatten(1, (4, 1, 1)), nn.Dropout(0.5), nn.Conv2d(4, 3, 1), nn.Flatten())
    with pytest.raises(InvalidValueError, match="does not end in a plain"):
        DropoutNetwork(module, approximation="last-layer", epochs=1, device="cpu").fit(X, np.arange(60) % 3)


def test_features_of_images() -> None:
    images = RNG.random((20, 28, 28))
    model = DropoutNetwork("mnist", approximation="last-layer", epochs=1, device="cpu").fit(images, np.arange(20) % 3)
    assert model.posterior.dimension == 3 * 129
    with torch.no_grad():
        plain = model.module_[:-1](torch.tensor(images[:, None], dtype=torch.float32)).numpy()
    np.testing.assert_allclose(model.last_layer().labelled()[0][:, 1:], plain, rtol=1e-4, atol=1e-5)
