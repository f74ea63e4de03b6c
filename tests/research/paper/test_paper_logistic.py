"""The paper's logistic regression: against scikit-learn, and against the authors' formulas written out densely."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from suffice.errors import SufficeError
from suffice.numerics import Floats
from suffice.trace import Trace
from suffice_research.data.protocols import CORRECTED, PUBLISHED, Experiment
from suffice_research.data.set_readers import Samples
from suffice_research.paper.experiments import DataSplit, logistic_run, most_probable


def with_ones(features: Floats) -> Floats:
    return np.column_stack([np.ones(len(features)), features])


def precisions(size: int, C: float) -> Floats:
    """Prior precisions: none for the intercept, which comes first."""
    return np.append(0.0, np.full(size, 1.0 / C))


def slope(features: Floats, labels: Floats, C: float, weights: Floats) -> Floats:
    """Gradient of the negative log posterior, by its definition."""
    found = np.zeros(len(weights))
    for row, label in zip(features, labels, strict=True):
        found += (1.0 / (1.0 + np.exp(-row @ weights)) - label) * row
    return found + precisions(len(weights) - 1, C) * weights


def by_sklearn(features: Floats, labels: Any, C: float) -> Floats:
    """Weights of scikit-learn's own regression, the intercept's first."""
    model = LogisticRegression(C=C, tol=1e-12, solver="newton-cholesky", max_iter=10_000).fit(features, labels)
    return np.append(model.intercept_, model.coef_[0])


# ------------------------------------------------------------------------------------------------ most probable


@pytest.mark.parametrize("C", [0.001, 1.0, 100.0])
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_those_of_scikit_learn(C: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(60, 5))
    labels = (features @ rng.normal(size=5) + rng.logistic(size=60) > 0.5).astype(float)
    found = most_probable(with_ones(features), labels, precisions(5, C), np.zeros(6))
    np.testing.assert_allclose(found.weights, by_sklearn(features, labels, C), rtol=1e-6, atol=1e-8)
    lbfgs = LogisticRegression(C=C, tol=1e-10, solver="lbfgs", max_iter=10_000).fit(features, labels)
    np.testing.assert_allclose(found.weights[1:], lbfgs.coef_[0], rtol=1e-4, atol=1e-5)
    p = expit(with_ones(features) @ found.weights)
    information = sum(a * (1 - a) * np.outer(row, row) for a, row in zip(p, with_ones(features), strict=True))
    np.testing.assert_allclose(found.information, information, rtol=1e-8, atol=1e-12)


@given(
    st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2), st.booleans()), min_size=2, max_size=20),
    st.sampled_from([0.001, 0.1, 1.0, 10.0]),
)
def test_nothing_pulls_at_the_most_probable_weights(rows: list[tuple[float, float, bool]], C: float) -> None:
    features = with_ones(np.array([row[:2] for row in rows]))
    labels = np.array([row[2] for row in rows], dtype=float)
    if len(set(labels)) == 2:
        found = most_probable(features, labels, precisions(2, C), np.zeros(3))
        np.testing.assert_allclose(slope(features, labels, C, found.weights), 0.0, atol=1e-7)


def test_where_it_starts_does_not_matter() -> None:
    rng = np.random.default_rng(7)
    features = with_ones(rng.normal(size=(40, 3)))
    labels = (features[:, 1] + rng.logistic(size=40) > 0).astype(float)
    first = most_probable(features, labels, precisions(3, 1.0), np.zeros(4))
    for start in rng.normal(scale=2.0, size=(5, 4)):
        found = most_probable(features, labels, precisions(3, 1.0), start)
        np.testing.assert_allclose(found.weights, first.weights, rtol=1e-9)


@pytest.mark.parametrize(
    ("inputs", "labels", "C", "start"),
    [
        # A third label for the first two, from the weights of those: the gradient that is left is 1.
        ([0.0, 2.0, 0.0], [0.0, 1.0, 1.0], 100.0, [-3.91399482, 3.91399482]),
        # Nothing but an intercept to learn, from 5: it comes back to 5 after an even number of steps.
        ([0.0, 0.0], [0.0, 1.0], 1.0, [5.0, 0.0]),
    ],
)
def test_newton_does_not_go_to_and_fro(inputs: list[float], labels: list[float], C: float, start: list[float]) -> None:
    features = with_ones(np.array(inputs)[:, None])
    found = most_probable(features, np.array(labels), precisions(1, C), np.array(start))
    np.testing.assert_allclose(slope(features, np.array(labels), C, found.weights), 0.0, atol=1e-6)


@pytest.mark.parametrize("C", [0.001, 1.0, 100.0, 1e4])
def test_separable_labels_have_finite_weights(C: float) -> None:
    inputs = np.linspace(-3.0, 3.0, 30)[:, None]
    labels = (inputs[:, 0] > 0.4).astype(float)
    found = most_probable(with_ones(inputs), labels, precisions(1, C), np.zeros(2))
    assert np.isfinite(found.weights).all()
    np.testing.assert_allclose(slope(with_ones(inputs), labels, C, found.weights), 0.0, atol=1e-7)
    np.testing.assert_allclose(found.weights, by_sklearn(inputs, labels, C), rtol=1e-5)


def test_labels_of_one_class() -> None:
    inputs = np.linspace(-1.0, 1.0, 20)[:, None]
    for label in (0.0, 1.0):
        with pytest.raises(SufficeError, match="of one class"):
            most_probable(with_ones(inputs), np.full(20, label), precisions(1, 1.0), np.zeros(2))


# ------------------------------------------------------------------------------------------- a whole published run

#: C is neither 1 nor its own inverse, so that one cannot be taken for the other.
SMALL = replace(PUBLISHED["blr/htru2"], steps=8, inverse_precision=2.0)


def small_split(seed: int = 0) -> DataSplit:
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(180, 2))
    labels = (inputs[:, 0] - 0.5 * inputs[:, 1] ** 2 + 0.7 * rng.logistic(size=180) > -0.3).astype(int)
    test, pool, outside = (Samples(inputs[part], labels[part]) for part in (slice(30), slice(30, 80), slice(80, None)))
    return DataSplit(test, pool, outside, np.array([3, 17, 4, 29, 31, 8, 44, 12, 22, 40, 9, 35]))


class Dense(NamedTuple):
    """A run by the authors' formulas."""

    picks: list[int]
    kl_new_old: list[float]
    kl_old_new: list[float]
    error: list[float]


def gaussian_kl(p: tuple[Floats, Floats], q: tuple[Floats, Floats]) -> float:
    inverse, gap = np.linalg.inv(q[1]), q[0] - p[0]
    logs = np.linalg.slogdet(inverse @ p[1])[1]
    return float(0.5 * (np.trace(inverse @ p[1]) - logs + gap @ inverse @ gap - len(gap)))


def bumps(inputs: Floats, pool: Floats, experiment: Experiment) -> Floats:
    centres = np.linspace(pool.min(), pool.max(), experiment.centres)
    width = experiment.bandwidth * (centres[1] - centres[0])
    columns = [np.exp(-((inputs[:, d] - c) ** 2) / (2 * width**2)) for d in range(inputs.shape[1]) for c in centres]
    return np.column_stack(columns)


def dense_posterior(experiment: Experiment, features: Floats, weights: Floats) -> tuple[Floats, Floats]:
    C = experiment.inverse_precision or 1.0
    p = expit(with_ones(features) @ weights)
    information = with_ones(features).T @ np.diag(p * (1 - p)) @ with_ones(features)
    information += np.diag(np.append(0.0, np.full(features.shape[1], C if experiment.information == "C" else 1 / C)))
    if experiment.intercept == "out":
        weights, information = weights[1:], information[1:, 1:]
    covariance = information if experiment.covariance == "printed" else np.linalg.inv(information)
    return weights, np.asarray(covariance, dtype=np.float64)


def dense_error(experiment: Experiment, test: Floats, y: Any, weights: Floats, posterior: Any) -> float:
    p = expit(with_ones(test) @ weights)
    if experiment.loss == "one class":
        return float(-np.mean(y * np.log(p)))
    if experiment.loss == "both":
        return float(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))
    losses = []
    for row, label in zip(with_ones(test), y, strict=True):
        free = row[len(row) - len(posterior[0]) :]
        losses.append(mean_loss(float(row @ weights), float(np.sqrt(free @ posterior[1] @ free)), 2 * label - 1))
    return float(np.mean(losses))


def mean_loss(logit: float, deviation: float, sign: float) -> float:
    """Mean of the cross entropy over a normal logit, by adaptive integration."""

    def weighed(z: float) -> float:
        return float(np.logaddexp(0.0, -sign * (logit + deviation * z)) * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi))

    kink = min(max(-logit / deviation, -9.0), 9.0)
    return float(quad(weighed, -10.0, 10.0, points=[kink], limit=200, epsabs=1e-11)[0])


def dense_run(experiment: Experiment, split: DataSplit) -> Dense:
    """Fit afresh for every label, and look at every row."""
    pool, test = (bumps(part.inputs, split.pool.inputs, experiment) for part in (split.pool, split.test))
    C, y = experiment.inverse_precision or 1.0, split.pool.target
    bought = split.initial.tolist()
    weights = by_sklearn(pool[bought], y[bought], C)
    old, found = dense_posterior(experiment, pool[bought], weights), Dense([], [], [], [])
    for _ in range(experiment.steps):
        p = expit(with_ones(pool) @ weights)
        entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
        pick = max((row for row in range(len(pool)) if row not in bought), key=lambda row: (entropy[row], -row))
        bought.append(pick)
        weights = by_sklearn(pool[bought], y[bought], C)
        new = dense_posterior(experiment, pool[bought], weights)
        found.picks.append(pick)
        found.kl_new_old.append(gaussian_kl(new, old))
        found.kl_old_new.append(gaussian_kl(old, new))
        found.error.append(dense_error(experiment, test, split.test.target, weights, new))
        old = new
    return found


def agree(trace: Trace, dense: Dense) -> None:
    assert trace.indices.tolist() == dense.picks
    np.testing.assert_allclose(trace.kl_new_old, dense.kl_new_old, rtol=1e-5)
    np.testing.assert_allclose(trace.kl_old_new, dense.kl_old_new, rtol=1e-5)
    np.testing.assert_allclose(trace.error, dense.error, rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_published_run_is_that_of_the_formulas(seed: int) -> None:
    split = small_split(seed)
    trace = logistic_run(SMALL, split)
    agree(trace, dense_run(SMALL, split))
    assert trace.initial.tolist() == split.initial.tolist()
    assert trace.n_labelled.tolist() == list(range(13, 21))


#: Each setting alone, and what of the run it changes.
SWITCHES: list[tuple[dict[str, Any], set[str]]] = [
    ({"information": "precision"}, {"kl"}),
    ({"covariance": "printed"}, {"kl"}),
    ({"intercept": "in"}, {"kl"}),
    ({"loss": "both"}, {"error"}),
    ({"loss": "expected"}, {"error"}),
    ({"inverse_precision": 0.3}, {"kl", "error", "picks"}),
    ({"bandwidth": 1.0}, {"kl", "error", "picks"}),
    ({"thresholds": (0.5,), "calibration": 3, "hyperparameters": "bought"}, set()),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("switch", "changes"), SWITCHES, ids=lambda value: str(min(value, default="")))
def test_a_setting_changes_what_it_should_and_nothing_else(switch: dict[str, Any], changes: set[str]) -> None:
    split, other = small_split(), replace(SMALL, **switch)
    base, found = logistic_run(SMALL, split), logistic_run(other, split)
    same = {
        "picks": found.indices.tolist() == base.indices.tolist(),
        "kl": (found.kl_new_old == base.kl_new_old).any() or (found.kl_old_new == base.kl_old_new).any(),
        "error": (found.error == base.error).any(),
    }
    assert {name for name, kept in same.items() if not kept} == changes
    for name in ("kl_new_old", "kl_old_new"):
        if "kl" not in changes:
            assert getattr(found, name).tolist() == getattr(base, name).tolist()
    if "error" not in changes:
        assert found.error.tolist() == base.error.tolist()
    agree(found, dense_run(other, split))


def test_all_settings_put_right_at_once() -> None:
    right = replace(SMALL, information="precision", intercept="in", loss="expected", bandwidth=1.0)
    agree(logistic_run(right, small_split()), dense_run(right, small_split()))


@pytest.mark.parametrize("intercept", ["in", "out"])
@pytest.mark.parametrize("covariance", ["inverse", "printed"])
def test_the_expected_loss_of_any_posterior(intercept: Any, covariance: Any) -> None:
    experiment = replace(SMALL, steps=2, loss="expected", intercept=intercept, covariance=covariance)
    found, dense = logistic_run(experiment, small_split(1)), dense_run(experiment, small_split(1))
    # Twenty nodes are good to three digits where the posterior is as wide as the printed one.
    np.testing.assert_allclose(found.error, dense.error, rtol=1e-3)
    # Never below the loss at the mean: the cross entropy is convex.
    at_the_mean = logistic_run(replace(experiment, loss="both"), small_split(1))
    assert (found.error > at_the_mean.error).all()


def test_ties_go_to_the_lowest_row() -> None:
    rng = np.random.default_rng(5)
    base = rng.normal(size=(8, 2))
    inputs = np.tile(base, (6, 1))
    labels = (inputs[:, 0] > 0.0).astype(int)
    initial = np.array([40, 41, 42, 43, 44, 45, 46, 47])
    assert len(set(labels[initial])) == 2
    pool = Samples(inputs, labels)
    trace = logistic_run(replace(SMALL, steps=20), DataSplit(pool, pool, Samples(inputs[:0], labels[:0]), initial))
    left = set(range(40))
    for pick in trace.indices.tolist():
        assert pick == min(row for row in left if row % 8 == pick % 8)
        left.remove(pick)


def test_a_separable_run_stays_finite() -> None:
    split = small_split()
    labels = [(part.inputs[:, 0] > 0.0).astype(int) for part in (split.test, split.pool)]
    test, pool = (Samples(part.inputs, y) for part, y in zip((split.test, split.pool), labels, strict=True))
    experiment = replace(SMALL, steps=30, inverse_precision=100.0)
    trace = logistic_run(experiment, DataSplit(test, pool, split.outside, split.initial))
    for values in (trace.kl_new_old, trace.kl_old_new, trace.error):
        assert np.isfinite(values).all()
        assert (values >= 0.0).all()
    assert len(set(trace.indices.tolist()) | set(split.initial.tolist())) == 42


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    logistic_run(SMALL, small_split(), progress=lambda done, total: told.append((done, total)))
    assert told == [(step, 8) for step in range(1, 9)]


# ------------------------------------------------------------------------------------------------- a corrected run


def corrected(arm: Any) -> Experiment:
    return replace(CORRECTED["blr/htru2"], steps=15, hyperparameters=arm)


@pytest.mark.parametrize("arm", ["bought", "outside"])
def test_labels_that_were_not_bought_do_not_matter(arm: str) -> None:
    split = small_split()
    first = logistic_run(corrected(arm), split)
    unbought = np.setdiff1d(np.arange(50), np.concatenate([first.initial, first.indices]))
    assert len(unbought) == 50 - 12 - 15
    labels = split.pool.target.copy()
    labels[unbought] = 1 - labels[unbought]
    second = logistic_run(corrected(arm), split._replace(pool=Samples(split.pool.inputs, labels)))
    for name in ("indices", "kl_new_old", "kl_old_new", "error"):
        assert getattr(second, name).tolist() == getattr(first, name).tolist()


def test_what_lies_outside_counts_for_one_arm_only() -> None:
    split = small_split()
    easy = (split.outside.inputs[:, 0] > 0.0).astype(int)
    turned = split._replace(outside=Samples(split.outside.inputs, easy))
    for arm, same in (("bought", True), ("outside", False)):
        first, second = (logistic_run(corrected(arm), each) for each in (split, turned))
        assert (first.kl_new_old.tolist() == second.kl_new_old.tolist()) is same
