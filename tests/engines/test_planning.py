"""Planned picks are the plain loop's picks, ties and duplicates included."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import suffice as sf
from suffice.engines import PoolCandidates, largest
from suffice.engines.variance_pool import plan
from suffice.errors import NotEnoughMemoryError
from suffice.models import BayesianRidge, GaussianKernel, GaussianProcess
from suffice.models.gaussian_state import KernelState, WeightState
from suffice.numerics import Floats
from tests.thoroughness import examples


def greedy(model: Any, X: Floats, initial: list[int], steps: int) -> tuple[list[int], list[float]]:
    """The plain loop by dense recomputation: largest latent variance, ties (to rounding) to the lowest index.

    Returns the picks and the variance of each when it was picked.
    """
    labelled, found = list(initial), []
    for _ in range(steps):
        variance = model.fit(X[labelled], np.zeros(len(labelled))).latent(X)[1]
        variance[labelled] = -1.0
        labelled.append(int(np.argmax(variance >= variance.max() - 2e-15)))
        found.append(float(variance[labelled[-1]]))
    return labelled[len(initial) :], found


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "model",
    [GaussianProcess(1.0, 0.1), GaussianProcess(0.3, 1e-3), BayesianRidge(1.0, 5.0, fit_intercept=False)],
    ids=str,
)
@examples(40)
@given(seed=st.integers(0, 10_000), grid=st.booleans(), copies=st.integers(1, 3), m=st.integers(2, 40))
def test_planned_picks_are_the_plain_picks(model: Any, seed: int, grid: bool, copies: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.integers(-2, 3, size=(m, 2)).astype(float) if grid else rng.normal(size=(m, 2)), copies, axis=0)
    X = X[rng.permutation(len(X))]
    initial = [0]
    steps = min(25, len(X) - 1)
    trace = sf.simulate(model, X, np.zeros(len(X)), initial=initial, steps=steps, acquisition="variance")
    picks, variances = greedy(model, X, initial, steps)
    if grid or copies > 1:
        # Points that mirror each other (as copies of labelled points do) are equal up to rounding, which two ways of
        # computing resolve differently; the variances of the picks are the same all the same.
        assert _variances(model, X, initial, trace.indices) == pytest.approx(variances, rel=1e-6, abs=1e-9)
    else:
        assert trace.indices.tolist() == picks


def _variances(model: Any, X: Floats, initial: list[int], picks: Any) -> list[float]:
    found, labelled = [], list(initial)
    for pick in picks:
        found.append(float(model.fit(X[labelled], np.zeros(len(labelled))).latent(X[[pick]])[1][0]))
        labelled.append(int(pick))
    return found


def test_identical_points_are_taken_in_order() -> None:
    X = np.zeros((10, 2))
    assert sf.simulate(
        GaussianProcess(1.0, 0.1), X, np.zeros(10), initial=[4], acquisition="variance"
    ).indices.tolist() == [
        0,
        1,
        2,
        3,
        5,
        6,
        7,
        8,
        9,
    ]


def test_points_too_far_apart_to_know_of_each_other_are_taken_in_order() -> None:
    X = 1e6 * np.arange(200.0)[:, None]
    trace = sf.simulate(GaussianProcess(1.0, 0.1), X, np.zeros(200), initial=[0], acquisition="variance")
    assert trace.indices.tolist() == list(range(1, 200))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("model", [GaussianProcess(1.0, 0.1), BayesianRidge(1.0, 5.0, fit_intercept=False)], ids=str)
@given(seed=st.integers(0, 100), size=st.integers(2, 9))
def test_a_batch_is_conditioned_one_by_one(model: Any, seed: int, size: int) -> None:
    X = np.random.default_rng(seed).normal(size=(60, 3))
    one = sf.simulate(model, X, X[:, 0], initial=[0, 1], steps=4 * size, acquisition="variance").indices
    several = sf.simulate(model, X, X[:, 0], initial=[0, 1], steps=4, batch=size, acquisition="variance").indices
    assert several.ravel().tolist() == one.tolist()


@pytest.mark.parametrize("model", [GaussianProcess(1.0, 0.1), BayesianRidge(1.0, 5.0, fit_intercept=False)], ids=str)
def test_single_precision_is_close(model: Any) -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = X[:, 0]
    double, single = (
        sf.simulate(model, X, y, initial=[0], steps=50, X_test=X, y_test=y, dtype=dtype, acquisition="variance")
        for dtype in (np.float64, "float32")
    )
    # The posterior itself is kept in double precision: only a choice between near equals may differ.
    assert single.indices.tolist() == double.indices.tolist()
    assert single.kl_new_old == pytest.approx(double.kl_new_old, rel=1e-9)
    assert single.error == pytest.approx(double.error, rel=1e-4)


def test_too_little_memory_is_said_before_starting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.engines.disk_rows.free_memory", lambda: 10**6)
    X = np.random.default_rng(0).normal(size=(5000, 2))
    with pytest.raises(
        NotEnoughMemoryError, match=r"5000 pool items .* over 110 labels needs 4\.5 MB.*1\.0 MB.*float32"
    ):
        sf.simulate(GaussianProcess(1.0, 0.1), X, X[:, 0], steps=100, acquisition="variance", record=())


@given(
    values=st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, -np.inf]), min_size=1, max_size=30),
    n=st.integers(1, 12),
)
def test_largest_is_a_sort_by_value_then_index(values: list[float], n: int) -> None:
    order = sorted((i for i, v in enumerate(values) if v > -np.inf), key=lambda i: (-values[i], i))
    indices, rest, rest_index = largest(np.array(values), n)
    assert indices.tolist() == sorted(order[:n])
    if order[n:]:
        assert (rest, rest_index) == (values[order[n]], order[n])
    else:
        assert rest == -np.inf


@pytest.mark.parametrize("labels", [0, 1, 40])
@pytest.mark.parametrize("size", [1, 3, 50])
def test_rows_of_the_covariance_are_those_of_the_whole(labels: int, size: int) -> None:
    rng = np.random.default_rng(size)
    X, Z = rng.normal(size=(size, 3)), rng.normal(size=(labels, 3))
    states: list[Any] = [KernelState(GaussianKernel((1.0, 1.0, 1.0)), 0.1, 3), WeightState(0.5, 0.1, 3)]
    for state in states:
        if labels:
            state.learn(Z, rng.normal(size=labels))
        whitened = state.whiten(X)
        whole = state.covariance(X, whitened)
        for places in (np.arange(size), np.arange(0, size, 2), np.zeros(0, dtype=np.intp)):
            rows = state.covariance_rows(X, whitened, places)
            np.testing.assert_allclose(rows, whole[places], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("given", [False, True], ids=["rows", "whole"])
def test_a_plan_is_that_of_the_dense_covariance(given: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12))
    state = WeightState(0.5, 0.1, 12)
    state.learn(rng.normal(size=(30, 12)), rng.normal(size=30))
    covariance = state.covariance(X, state.whiten(X))
    candidates = PoolCandidates(np.arange(60), X, None, -np.inf, 60, 0.0, covariance.copy() if given else None)
    picks, block = plan(state, candidates, 45)
    variance = np.diag(covariance).copy()
    for pick, latent in zip(picks, block.latent, strict=True):
        assert variance[pick] == pytest.approx(latent, rel=1e-10)
        assert variance.max() == pytest.approx(latent, rel=1e-10)
        row = covariance[pick] / np.sqrt(covariance[pick, pick] + state.noise)
        covariance -= np.outer(row, row)
        variance = np.diag(covariance).copy()
        variance[picks[: picks.tolist().index(pick) + 1]] = -np.inf
