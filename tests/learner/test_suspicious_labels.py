"""Labels that are likely wrong: found where they are, with probabilities of models that have not learned them."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, log_expit
from scipy.stats import beta, norm
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import suffice as sf
from suffice.errors import InvalidValueError, SufficeError
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.session.suspicious_labels import (
    _SHARES,
    FEWEST,
    SuspiciousLabel,
    suspicious_labels,
    wrong_probabilities,
)

pytestmark = pytest.mark.usefixtures("all_trees")


def clouds(n: int, classes: int, seed: int = 0) -> tuple[Any, Any]:
    """Points around as many centres as there are classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    angle = 2.0 * np.pi * y / classes
    return np.column_stack([3.0 * np.cos(angle), 3.0 * np.sin(angle)]) + 0.6 * rng.normal(size=(n, 2)), y.astype(str)


def found_share(listed: list[SuspiciousLabel], wrong: set[int]) -> float:
    first = {each.item for each in listed[: len(listed) // 10]}
    return len(first & wrong) / len(wrong)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("model", [BayesianLogistic(alpha=1.0), LogisticRegression()])
def test_flipped_classes_come_first(classes: int, model: Any) -> None:
    X, y = clouds(200, classes)
    given, rng = y.copy(), np.random.default_rng(1)
    wrong = set(rng.permutation(200)[:10].tolist())
    for item in wrong:
        given[item] = str((int(y[item]) + 1) % classes)
    listed = suspicious_labels(model.fit(X, given), X, dict(enumerate(given.tolist())))
    assert sorted(each.item for each in listed) == list(range(200))
    assert all(a.wrong >= b.wrong for a, b in pairwise(listed))
    assert found_share(listed, wrong) >= 0.9
    by_item = {each.item: each for each in listed}
    assert sum(by_item[item].prediction == y[item] for item in wrong) >= 9
    # Without the model, a forest is less sure.
    assert sum(by_item[item].likely_wrong for item in wrong) >= 7
    assert all(0.0 <= each.probability <= 1.0 and each.deviation is None for each in listed)


def test_a_forest_finds_what_the_model_cannot_represent() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 2))
    y = np.where(np.linalg.norm(X, axis=1) < 1.1, "in", "out")
    given, wrong = y.copy(), set(range(0, 400, 20))
    for item in wrong:
        given[item] = "in" if y[item] == "out" else "out"
    listed = suspicious_labels(BayesianLogistic(alpha=1.0).fit(X, given), X, dict(enumerate(given.tolist())))
    assert found_share(listed, wrong) >= 0.6


@pytest.mark.parametrize("model", [GaussianProcess(length_scale=1.0, noise=0.1), BayesianRidge()])
def test_numbers_are_judged_as_by_models_that_are_fitted_without_each(model: Any) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=30)
    y[7] += 4.0
    listed = suspicious_labels(model.fit(X, y), X, dict(enumerate(y.tolist())))
    assert listed[0].item == 7
    assert listed[0].likely_wrong
    # The whole formula, from the mean and deviation that are told.
    for each in listed:
        assert each.deviation is not None
        tail = 2.0 * norm.sf(abs(each.label - each.prediction) / each.deviation)
        assert math.isclose(each.probability, tail, rel_tol=1e-9)
    mean, variance = model.prior_.left_out(model.features(model.X_), model.y_)
    by_item = sorted(listed)
    np.testing.assert_allclose([each.prediction for each in by_item], mean)
    np.testing.assert_allclose([each.deviation or 0.0 for each in by_item], np.sqrt(variance))


def test_numbers_of_a_model_that_leaves_nothing_out() -> None:
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 1))
    y = 2.0 * X[:, 0] + 0.1 * rng.normal(size=60)
    y[11] = -9.0
    listed = suspicious_labels(Ridge().fit(X, y), X, dict(enumerate(y.tolist())))
    assert listed[0].item == 11


def test_the_probability_of_being_wrong_is_that_of_the_mixture() -> None:
    """The sums written out, over every share of wrong labels and every factor."""
    rng = np.random.default_rng(4)
    right = np.log(rng.uniform(0.001, 0.999, size=(3, 25)))
    wrong = np.log(-np.expm1(right))
    posterior, ratios = [], []
    for share in _SHARES.tolist():
        prior = beta(0.5, 10.0).pdf(share) * share  # of the logarithm
        for t in range(3):
            pairs = [
                (share * math.exp(w), (1.0 - share) * math.exp(r)) for r, w in zip(right[t], wrong[t], strict=True)
            ]
            posterior.append(prior * math.prod(a + b for a, b in pairs))
            ratios.append([a / (a + b) for a, b in pairs])
    expected = np.average(ratios, axis=0, weights=posterior)
    np.testing.assert_allclose(wrong_probabilities(right, wrong), expected, rtol=1e-9)


def test_the_expected_number_of_wrong_labels_is_right_on_average() -> None:
    """Shares and factors are drawn from the prior: then the expectation after the labels has no bias at all."""
    rng, factors, errors = np.random.default_rng(5), np.geomspace(0.1, 10.0, 41), []
    prior = beta(0.5, 10.0).pdf(_SHARES) * _SHARES
    for _ in range(200):
        logits = 2.0 * rng.normal(size=40)
        is_wrong = rng.random(40) < rng.choice(_SHARES, p=prior / prior.sum())
        label = (rng.random(40) < expit(rng.choice(factors) * logits)) != is_wrong
        own = np.where(label, logits, -logits)
        right, wrong = (np.array([log_expit(sign * factor * own) for factor in factors]) for sign in (1, -1))
        chances = wrong_probabilities(right, wrong)
        # Among all labels, and among those that would be shown.
        shown = chances >= 0.3
        errors.append([chances.sum() - is_wrong.sum(), chances[shown].sum() - is_wrong[shown].sum()])
    assert (np.abs(np.mean(errors, axis=0)) <= 3.0 * np.std(errors, axis=0) / math.sqrt(len(errors))).all()


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_the_expected_number_is_near_the_true_one_on_real_data(load: Any) -> None:
    X, y = load(return_X_y=True)
    X, names, near = StandardScaler().fit_transform(X), np.unique(y).astype(str), []
    for flipped, seed in ((0.0, 0), (0.05, 1), (0.05, 2), (0.2, 3)):
        rng = np.random.default_rng(seed)
        items = rng.permutation(len(X))[:150]
        given = y[items].astype(str)
        for k in rng.permutation(150)[: round(150 * flipped)]:
            given[k] = rng.choice(names[names != given[k]])
        listed = suspicious_labels(BayesianLogistic().fit(X[items], given), X[items], dict(enumerate(given.tolist())))
        shown = [each for each in listed if each.likely_wrong]
        true = sum(each.label != str(y[items][each.item]) for each in shown)
        spread = sum(each.wrong * (1.0 - each.wrong) for each in shown)
        near.append(abs(sum(each.wrong for each in shown) - true) <= 2.0 * math.sqrt(spread) + 0.5)
        assert len(shown) <= 2 * true + 1
    assert sum(near) >= 3


def test_too_few_labels_and_labels_of_one_kind_say_nothing() -> None:
    X, y = clouds(FEWEST - 1, 2)
    assert suspicious_labels(BayesianLogistic().fit(X, y), X, dict(enumerate(y.tolist()))) == []
    X, y = clouds(50, 2)
    model = BayesianLogistic(classes=("0", "1")).fit(X, np.full(50, "0"))
    assert suspicious_labels(model, X, dict.fromkeys(range(50), "0")) == []


def test_items_of_any_shape_and_a_class_with_one_label() -> None:
    X, y = clouds(60, 3)
    given = np.where(np.arange(60) == 5, "rare", y)
    model = BayesianLogistic(alpha=1.0).fit(X, given)
    listed = suspicious_labels(model, X.reshape(60, 2, 1), dict(enumerate(given.tolist())))
    assert len(listed) == 60
    assert all(math.isfinite(each.probability) for each in listed)


def test_the_learner_ranks_what_it_was_told() -> None:
    X, y = clouds(150, 3)
    learner = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, initial=20, seed=0)
    with pytest.raises(SufficeError, match="has no label yet"):
        learner.suspicious_labels()
    while len(learner.labelled) < 100:
        items = learner.ask(10)
        learner.tell(items, y[items])
    item = next(each for each in learner.labelled if y[each] == "1")
    learner.correct(item, "2")
    assert learner.suspicious_labels(1) == learner.suspicious_labels()[:1]
    assert learner.suspicious_labels(1)[0][:3] == (item, "2", "1")
    with pytest.raises(InvalidValueError, match="n must be"):
        learner.suspicious_labels(0)


@pytest.mark.parametrize("asked", [{"m": 30}, {"at_most": 0.2}])
def test_items_of_a_check_are_not_listed(asked: dict[str, Any]) -> None:
    X, y = clouds(200, 2)
    learner = sf.ActiveLearner(BayesianLogistic(), X, initial=10, seed=0)
    items = learner.ask(10)
    learner.tell(items, y[items])
    for _ in range(20):
        item = learner.ask()
        learner.tell(item, y[item])
    check = learner.check(**asked)
    while check.open:
        check.tell(y[check.pending])
    assert learner.guarantee is not None
    # The model learns the answers, but they are not reviewed.
    item = learner.ask()
    learner.tell(item, y[item])
    assert set(check.indices.tolist()) <= set(learner.labelled)
    listed = {each.item for each in learner.suspicious_labels()}
    assert listed == set(learner.labelled) - set(check.indices.tolist())
    # A check that was aborted is no evidence.
    aborted = learner.check(5)
    aborted.tell({int(item): y[item] for item in aborted.pending[:2]})
    aborted.abort()
    item = learner.ask()
    learner.tell(item, y[item])
    assert len({each.item for each in learner.suspicious_labels()} & set(aborted.indices.tolist())) == 2
