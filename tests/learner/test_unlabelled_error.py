"""The error of unlabelled items, its reducible part and the recent gain: against recomputation, live and replayed."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, softmax
from scipy.stats import norm

import suffice as sf
from suffice.learner import step_inputs
from suffice.learner.step_inputs import LaplacePredictor, RecentGain, SampledPredictor
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.models.predictive import weight_draws
from tests.thoroughness import examples

FIELDS = ("unlabelled_error", "reducible_error", "recent_gain", "error_scale")


def numbers(n: int = 120, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)


def words(n: int = 120, k: int = 2, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.array(["ham", "spam", "eggs"])[(X @ rng.normal(size=(3, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "model", [GaussianProcess(1.5, 0.1), BayesianRidge(1.0, 4.0), GaussianProcess(), BayesianRidge()]
)
def test_numbers_against_the_model_itself(model: Any) -> None:
    X, y = numbers()
    learner = sf.ActiveLearner(model, X, acquisition="order", initial=10)
    means = {}
    for item in range(45):
        learner.tell(item, y[item])
        if item < 9:
            continue
        n = item + 1
        means[n] = learner.current_model.predict(X)
        if n == 10:
            continue
        rest = np.arange(n, len(X))
        _, deviation = learner.current_model.predict(X[rest], return_std=True)
        latent = learner.current_model.latent(X[rest])[1]
        found = {name: learner.trace().measures[name][-1] for name in FIELDS}
        assert found["reducible_error"] == pytest.approx(latent.mean(), rel=1e-6)
        assert found["unlabelled_error"] == pytest.approx((deviation**2).mean(), rel=1e-6)
        past = max(k for k in means if k <= max(n / 2, 10))
        scale = max(1.0, n / 2 / (n - past))
        assert found["recent_gain"] == pytest.approx(scale * ((means[n] - means[past]) ** 2).mean(), rel=1e-6)


@pytest.mark.parametrize("k", [2, 3])
def test_classes_against_the_posterior_itself(k: int) -> None:
    X, y = words(k=k)
    learner = sf.ActiveLearner(BayesianLogistic(alpha=1.0, classes=np.unique(y).tolist()), X, acquisition="order")
    for item in range(40):
        learner.tell(item, y[item])
    state, features = learner.current_model.state_, learner.current_model.features(X[40:])
    found = {name: learner.trace().measures[name][-1] for name in FIELDS}
    drawn = weight_draws(state, 4000, seed=5)
    if k == 2:
        p = expit(features @ drawn.T)
        p = np.stack([1.0 - p, p], axis=2)
    else:
        logits = np.einsum("ij,dkj->idk", features, drawn)
        p = np.exp(logits - logits.max(axis=2, keepdims=True))
        p /= p.sum(axis=2, keepdims=True)
    total = (1.0 - p.mean(axis=1).max(axis=1)).mean()
    known = (1.0 - p.max(axis=2).mean(axis=1)).mean()
    assert found["unlabelled_error"] == pytest.approx(total, abs=0.02)
    assert found["reducible_error"] == pytest.approx(total - known, abs=0.02)
    assert found["error_scale"] == 1.0


class OneLogit:
    """A posterior of two classes whose logit has a given mean and variance at every item."""

    weights = np.zeros(1)

    def __init__(self, mean: float, variance: float) -> None:
        self._mean, self._variance = mean, variance

    def latent(self, features: Any) -> tuple[Any, Any]:
        return np.full(len(features), self._mean), np.full(len(features), self._variance)


@given(st.floats(-6.0, 6.0), st.floats(0.0, 9.0))
@examples(30)
def test_two_classes_against_an_integral(mean: float, variance: float) -> None:
    found = LaplacePredictor(OneLogit(mean, variance), np.zeros((1, 1)), [0, 1]).errors(np.array([0]))
    deviation = max(np.sqrt(variance), 1e-9)

    def expected(of: Any) -> float:
        ends = mean - 9.0 * deviation, mean + 9.0 * deviation
        points = [0.0] if ends[0] < 0.0 < ends[1] else None
        return float(quad(lambda f: of(f) * norm.pdf(f, mean, deviation), *ends, points=points, limit=200)[0])

    averaged = expected(expit)
    known = expected(lambda f: max(expit(f), 1.0 - expit(f)))
    assert found.total[0] == pytest.approx(min(averaged, 1.0 - averaged), abs=5e-3)
    assert found.reducible[0] == pytest.approx(known - max(averaged, 1.0 - averaged), abs=2e-2)
    assert found.reducible[0] >= 0.0
    assert found.probabilities.sum() == pytest.approx(1.0)


@given(st.integers(1, 5), st.integers(1, 6), st.integers(2, 4), st.integers(0, 1000))
@examples(30)
def test_draws_never_have_a_negative_part(n: int, draws: int, classes: int, seed: int) -> None:
    p = np.random.default_rng(seed).dirichlet(np.ones(classes), size=(n, draws))
    found = SampledPredictor(lambda rows: np.log(p[rows])).errors(np.arange(n))
    assert (found.reducible >= 0.0).all()
    assert (found.reducible <= found.total + 1e-12).all()
    assert found.total == pytest.approx(1.0 - p.mean(axis=1).max(axis=1))
    if draws == 1:
        assert found.reducible == pytest.approx(0.0, abs=1e-12)


def test_a_gain_is_over_the_predictions_at_half_of_the_labels() -> None:
    recent = RecentGain()
    recent.keep(10, 10.0)
    for n in range(11, 201):
        found = recent.since_half(n, partial(float.__sub__, float(n)))
        if n <= 20:
            # Half of the labels came before the first prediction: in proportion.
            assert found == pytest.approx(n / 2)
        else:
            # Predictions are kept for every fiftieth of the labels.
            assert n / 2 <= found <= n / 2 + 1 + 0.02 * n
        recent.keep(n, float(n))
    assert len(recent.state()) < 60


def test_a_gain_survives_a_checkpoint() -> None:
    recent, again = RecentGain(), RecentGain()
    for n in range(10, 60):
        recent.keep(n, np.array([n % 3, 1]))
    again.restore(recent.state())
    assert again.since_half(60, lambda past: float(past.sum())) == recent.since_half(60, lambda past: float(past.sum()))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("model", [GaussianProcess(), BayesianRidge(), BayesianLogistic(), BayesianLogistic(alpha=1.0)])
def test_live_is_replayed_and_simulated(model: Any) -> None:
    X, y = numbers() if not isinstance(model, BayesianLogistic) else words(k=3)
    rule = sf.LabelWorth()
    learner = sf.ActiveLearner(model, X, criterion=rule, initial=np.arange(10))
    simulated = sf.simulate(model, X, y, initial=np.arange(10), steps=35, record=rule)
    learner.tell(np.arange(10), y[:10])
    live = []
    for item in simulated.indices:
        assert learner.ask()[0] == item
        live.append(learner.tell(item, y[item]))
    assert learner.trace().replay(rule) == live
    assert [each.value for each in simulated.replay(rule)] == pytest.approx([each.value for each in live], rel=1e-6)


def test_of_items_that_are_all_labelled_nothing_is_wrong() -> None:
    X, y = words(30)
    trace = sf.simulate(BayesianLogistic(alpha=1.0), X, y, initial=10, record=sf.LabelWorth())
    assert trace.measures["unlabelled_error"][-1] == trace.measures["reducible_error"][-1] == 0.0


def test_skipped_items_are_left_out() -> None:
    X, y = numbers(60)
    learner = sf.ActiveLearner(GaussianProcess(1.0, 0.1), X, acquisition="order", initial=10)
    learner.tell(np.arange(10), y[:10])
    learner.skip(np.arange(30, 60))
    learner.tell(10, y[10])
    latent = learner.current_model.latent(X[11:30])[1]
    assert learner.trace().measures["reducible_error"][-1] == pytest.approx(latent.mean(), rel=1e-6)


@examples(30)
@given(seed=st.integers(0, 10**6), K=st.integers(2, 6), scale=st.sampled_from([1e-3, 1.0, 1e4]))
def test_errors_of_weights_are_those_of_their_probabilities(seed: int, K: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    X, drawn = rng.normal(size=(7, 3)), scale * rng.normal(size=(5, K, 3))
    p = np.stack([softmax(X @ weights.T, axis=1) for weights in drawn], axis=1)
    found, expected = step_inputs._weighed_errors(X, drawn), step_inputs._drawn_errors(p)
    for name in expected._fields:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-14)
