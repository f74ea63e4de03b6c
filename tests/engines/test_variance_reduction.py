"""The reduction of the mean variance: scores, bounds and picks are those of the full posterior covariance."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import suffice as sf
from suffice.engines.tracked_rows import TILE, FeatureRows, KernelRows
from suffice.engines.variance_reduction import SAMPLE, FeatureSums, KernelSums, LargestReduction, sample_of
from suffice.errors import NotEnoughMemoryError
from suffice.models import BayesianRidge, GaussianProcess
from suffice.models.gaussian_state import KernelState, WeightState, block_of
from suffice.models.kernels import GaussianKernel
from suffice.numerics import Floats
from tests.thoroughness import examples

NAME = "variance-reduction"
MODELS = [GaussianProcess(1.3, 0.1), GaussianProcess(0.4, 1e-3), BayesianRidge(0.7, 10.0, fit_intercept=False)]
EACH = [MODELS[0], pytest.param(MODELS[1], marks=pytest.mark.slow), MODELS[2]]
each_model = pytest.mark.parametrize("model", EACH, ids=str)
kinds = pytest.mark.parametrize("kind", ["kernel", "weights"])


def is_process(model: Any) -> bool:
    return isinstance(model, GaussianProcess)


def prior(model: Any, A: Floats, B: Floats) -> Floats:
    if is_process(model):
        return np.asarray(np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=-1) / model.length_scale**2))
    return np.asarray(A @ B.T / model.alpha)


def noise_of(model: Any) -> float:
    return float(model.noise if is_process(model) else 1.0 / model.beta)


def covariance(model: Any, X: Floats, labelled: Any) -> Floats:
    """Latent posterior covariance of a pool, by the inverse in full."""
    rows, noise = list(labelled), noise_of(model)
    if not is_process(model):
        precision = model.alpha * np.eye(X.shape[1]) + X[rows].T @ X[rows] / noise
        return np.asarray(X @ np.linalg.solve(precision, X.T))
    inner = prior(model, X[rows], X[rows]) + noise * np.eye(len(rows))
    across = prior(model, X, X[rows])
    return np.asarray(prior(model, X, X) - across @ np.linalg.solve(inner, across.T))


def reductions(model: Any, X: Floats, labelled: Any, sample: Any = None) -> Floats:
    """By how much the label of each point reduces the mean variance."""
    found = covariance(model, X, labelled)
    over = found if sample is None else found[:, sample]
    return np.asarray((over**2).mean(axis=1) / (np.diag(found) + noise_of(model)))


def best(model: Any, X: Floats, left_out: Any, labelled: Any, sample: Any = None) -> tuple[int, Floats]:
    score = reductions(model, X, labelled, sample)
    score[list(left_out)] = -1.0
    return int(score.argmax()), score


def engine(
    model: Any, X: Floats, sample: Any = None, dtype: Any = np.float64, noise: float | None = None
) -> tuple[Any, Any]:
    """A posterior with no label yet, and the pool that follows it."""
    level = noise_of(model) if noise is None else noise
    state: Any
    if is_process(model):
        state = KernelState(GaussianKernel((model.length_scale,)), level, X.shape[1], 4)
        of = np.arange(len(X)) if sample is None else sample
        return state, KernelSums(state, KernelRows(state, X, 4, dtype), of, 4, dtype)
    state = WeightState(model.alpha, level, X.shape[1], 4)
    return state, FeatureSums(state, FeatureRows(state, X, dtype), dtype)


def label(state: Any, points: Floats) -> None:
    state.extend(block_of(state, points), np.zeros(len(points)))


@each_model
@examples(40)
@given(seed=st.integers(0, 10_000), m=st.integers(2, 40))
def test_picks_are_those_of_the_full_covariance(model: Any, seed: int, m: int) -> None:
    X = np.random.default_rng(seed).normal(size=(m, 3))
    trace = sf.simulate(model, X, X[:, 0], initial=[0], steps=min(25, m - 1), acquisition=NAME)
    labelled = [0]
    for pick in trace.indices:
        expected, score = best(model, X, labelled, labelled)
        assert pick == expected or score[pick] == pytest.approx(score[expected], rel=1e-9)
        labelled.append(int(pick))


@each_model
@examples(60)
@given(
    seed=st.integers(0, 10_000),
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    single=st.booleans(),
    sampled=st.booleans(),
)
def test_scores_lie_within_their_bounds(model: Any, seed: int, sizes: list[int], single: bool, sampled: bool) -> None:
    rng = np.random.default_rng(seed)
    X, order = rng.normal(size=(80, 3)), rng.permutation(80)
    sample = sample_of(80, rng, 17) if sampled and is_process(model) else None
    state, sums = engine(model, X, sample, np.float32 if single else np.float64)
    done = 0
    for size in sizes:
        label(state, X[order[done : done + size]])
        done += size
        sums.follow()
        low, high = sums.bounds()
        expected = reductions(model, X, order[:done], sample)
        rounding = 1e-11 * expected.max()
        assert (low >= 0.0).all()
        assert (sums.scores() >= 0.0).all()
        assert (low <= expected + rounding).all()
        assert (high >= expected - rounding).all()
        assert (high - low).max() <= 0.1 * expected.max()
    sums.compute(np.arange(80))
    assert sums.scores() == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert np.subtract(*sums.bounds()[::-1]).max() <= 1e-10 * expected.max()


@each_model
@examples(40)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 20))
def test_the_mean_variance_falls_by_the_score(model: Any, seed: int, n: int) -> None:
    """And the label of no other point would reduce it more."""
    X = np.random.default_rng(seed).normal(size=(35, 3))
    labelled = list(range(n))
    state, sums = engine(model, X)
    label(state, X[labelled])
    chooser = LargestReduction(state, sums)
    chooser.take(np.array(labelled))
    pick = int(chooser.propose(1)[0])
    before = np.trace(covariance(model, X, labelled)) / 35
    after = {i: np.trace(covariance(model, X, [*labelled, i])) / 35 for i in range(n, 35)}
    assert after[pick] == pytest.approx(min(after.values()), rel=1e-9, abs=1e-12)
    assert before - after[pick] == pytest.approx(sums.scores()[pick], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("model", MODELS[::2], ids=str)
@examples(24)
@given(seed=st.integers(0, 100), size=st.integers(2, 9))
def test_a_batch_is_conditioned_one_by_one(model: Any, seed: int, size: int) -> None:
    X = np.random.default_rng(seed).normal(size=(60, 3))
    one = sf.simulate(model, X, X[:, 0], initial=[0, 1], steps=4 * size, acquisition=NAME).indices
    several = sf.simulate(model, X, X[:, 0], initial=[0, 1], steps=4, batch=size, acquisition=NAME).indices
    assert several.ravel().tolist() == one.tolist()


@each_model
@examples(24)
@given(seed=st.integers(0, 1000))
def test_people_skip_correct_and_label_what_they_like(model: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 3))
    learner = sf.ActiveLearner(model, X, acquisition=NAME, seed=seed, initial=3)
    learner.tell(learner.ask(3), np.zeros(3))
    for _ in range(20):
        item = learner.ask(int(rng.integers(1, 4)))
        assert learner.ask()[0] == item[0]
        expected, score = best(model, X, learner.labelled + learner.skipped, learner.labelled)
        assert item[0] == expected or score[item[0]] == pytest.approx(score[expected], rel=1e-9)
        what = rng.integers(4)
        if what == 0:
            learner.skip(item[0])
        elif what == 1:
            learner.correct(int(rng.choice(learner.labelled)), 0.5)
        elif what == 2:
            other = int(rng.choice(np.setdiff1d(np.arange(50), learner.labelled)))
            learner.tell(other, 1.0)
        else:
            learner.tell(item, rng.normal(size=len(item)))


@pytest.mark.parametrize("kind", ["process", "ridge"])
def test_hyperparameters_that_are_learned_again(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=90)
    process = kind == "process"
    learner = sf.ActiveLearner(
        GaussianProcess() if process else BayesianRidge(fit_intercept=False), X, acquisition=NAME
    )
    for _ in range(50):
        item = learner.ask()
        if len(learner.labelled) >= 10:
            learned = learner.model.prior_
            model = GaussianProcess(learned.kernel.length_scale[0], learned.noise) if process else None
            model = model or BayesianRidge(learned.alpha, learned.beta, fit_intercept=False)
            expected, score = best(model, X, learner.labelled, learner.labelled)
            assert score[item[0]] == pytest.approx(score[expected], rel=1e-8)
        learner.tell(item, y[item])
    assert len(learner.trace().relearned) == 2


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_sample_of_a_pool_in_several_tiles(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    X, model = rng.normal(size=(TILE + 500, 3)), GaussianProcess(1.0, 0.05)
    sample = sample_of(len(X), rng, 40)
    state, sums = engine(model, X, sample, dtype)
    chooser = LargestReduction(state, sums)
    labelled = [0, TILE + 1]
    label(state, X[labelled])
    chooser.take(np.array(labelled))
    for _ in range(30):
        pick = int(chooser.propose(1)[0])
        across = prior(model, X, X[labelled])
        inverse = np.linalg.inv(prior(model, X[labelled], X[labelled]) + 0.05 * np.eye(len(labelled)))
        with_sample = prior(model, X, X[sample]) - across @ inverse @ across[sample].T
        variance = 1.0 - np.einsum("ij,jk,ik->i", across, inverse, across)
        score = (with_sample**2).mean(axis=1) / (variance + 0.05)
        score[labelled] = -1.0
        assert pick == score.argmax()
        label(state, X[[pick]])
        chooser.take(np.array([pick]))
        labelled.append(pick)


def test_the_whole_sample_may_take_several_tiles() -> None:
    X = np.random.default_rng(0).normal(size=(TILE + 100, 2))
    model = GaussianProcess(1.0, 0.1)
    state, sums = engine(model, X)
    for first in (0, 3, 4):
        label(state, X[first : first + (3 if first == 0 else 1)])
        sums.follow()
    assert sums.scores() == pytest.approx(reductions(model, X, range(5)), rel=1e-3)


@pytest.mark.parametrize("model", MODELS[::2], ids=str)
def test_single_precision_picks_the_same(model: Any) -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    double, single = (
        sf.simulate(model, X, X[:, 0], initial=[0], steps=60, acquisition=NAME, dtype=dtype)
        for dtype in (np.float64, "float32")
    )
    assert single.indices.tolist() == double.indices.tolist()
    assert single.kl_new_old == pytest.approx(double.kl_new_old, rel=1e-9)


@pytest.mark.parametrize("model", [GaussianProcess(3.0, 1e-5), BayesianRidge(1e-3, 1e7, fit_intercept=False)], ids=str)
def test_sums_that_fall_by_many_orders_of_magnitude(model: Any) -> None:
    """What is left after subtraction would be rounding, were it not computed anew."""
    X = np.random.default_rng(1).normal(size=(120, 3))
    trace = sf.simulate(model, X, X[:, 0], initial=[0], steps=110, acquisition=NAME)
    labelled, falls = [0], []
    for pick in trace.indices:
        expected, score = best(model, X, labelled, labelled)
        falls.append(score[expected])
        assert score[pick] == pytest.approx(score[expected], rel=1e-4)
        labelled.append(int(pick))
    assert min(falls) < 1e-6 * max(falls)


@each_model
@examples(24)
@given(seed=st.integers(0, 1000), copies=st.integers(1, 3))
def test_ties_on_a_grid(model: Any, seed: int, copies: int) -> None:
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.integers(-2, 3, size=(15, 2)).astype(float), copies, axis=0)
    trace = sf.simulate(model, X, X[:, 0], initial=[0], acquisition=NAME)
    labelled = [0]
    for pick in trace.indices:
        expected, score = best(model, X, labelled, labelled)
        assert score[pick] == pytest.approx(score[expected], rel=1e-7, abs=1e-12)
        labelled.append(int(pick))
    assert sorted(labelled) == list(range(len(X)))


def test_identical_points_are_taken_in_order() -> None:
    X = np.ones((10, 2))
    for model in MODELS:
        trace = sf.simulate(model, X, np.zeros(10), initial=[4], acquisition=NAME)
        assert trace.indices.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_points_too_far_apart_to_know_of_each_other_are_taken_in_order() -> None:
    X = 1e6 * np.arange(100.0)[:, None]
    trace = sf.simulate(GaussianProcess(1.0, 0.1), X, np.zeros(100), initial=[0], acquisition=NAME)
    assert trace.indices.tolist() == list(range(1, 100))


def test_an_outlier_is_not_what_the_pool_needs() -> None:
    X = np.append(np.random.default_rng(0).normal(size=60), 50.0)[:, None]
    model = GaussianProcess(1.0, 0.1)
    widest = sf.simulate(model, X, X[:, 0], initial=[0, 1], steps=3, acquisition="variance").indices
    useful = sf.simulate(model, X, X[:, 0], initial=[0, 1], steps=3, acquisition=NAME).indices
    assert 60 in widest
    assert 60 not in useful


def test_the_sample_is_drawn_from_the_seed_and_kept() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * SAMPLE, 2))
    y = np.sin(X[:, 0])
    learners = [sf.ActiveLearner(GaussianProcess(), X, acquisition=NAME, seed=seed) for seed in (1, 1, 2)]
    first, twin, other = (learner._loop.backend._points.sample for learner in learners)  # type: ignore[attr-defined]
    assert len(np.unique(first)) == SAMPLE
    assert first.tolist() == twin.tolist() != other.tolist()
    learner = learners[0]
    for _ in range(25):
        item = learner.ask()
        learner.tell(item, y[item])
    assert learner.trace().relearned
    assert learner._loop.backend._points.sample is first  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["variance", "random", NAME])
def test_only_this_acquisition_draws_a_sample(name: str) -> None:
    X = np.random.default_rng(0).normal(size=(2 * SAMPLE, 2))
    drawn, expected = np.random.default_rng(5), np.random.default_rng(5)
    sf.simulate(GaussianProcess(1.0, 0.1), X, X[:, 0], initial=[0], steps=3, acquisition=name, seed=drawn)  # type: ignore[arg-type]
    if name == "random":
        expected.permutation(len(X))
    same = drawn.bit_generator.state == expected.bit_generator.state
    assert same is (name != NAME)


def test_the_sample_counts_in_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.engines.disk_rows.free_memory", lambda: 6 * 10**6)
    X = np.random.default_rng(0).normal(size=(5000, 2))
    model = GaussianProcess(1.0, 0.1)
    sf.simulate(model, X, X[:, 0], initial=10, steps=1, record=())
    with pytest.raises(NotEnoughMemoryError, match=r"5000 pool items .* over 110 labels needs 9\.\d MB"):
        sf.simulate(model, X, X[:, 0], steps=100, acquisition=NAME, record=())


@kinds
def test_nothing_is_left(kind: str) -> None:
    X = np.random.default_rng(0).normal(size=(4, 3))
    state, sums = engine(MODELS[0] if kind == "kernel" else MODELS[2], X)
    label(state, X)
    chooser = LargestReduction(state, sums)
    chooser.take(np.arange(4))
    assert len(chooser.propose(1)) == len(chooser.batch(3)) == 0


@kinds
def test_a_batch_ends_with_the_pool(kind: str) -> None:
    X = np.random.default_rng(0).normal(size=(6, 3))
    state, sums = engine(MODELS[0] if kind == "kernel" else MODELS[2], X)
    label(state, X[:2])
    chooser = LargestReduction(state, sums)
    chooser.take(np.arange(2))
    assert sorted(chooser.batch(9).tolist()) == [2, 3, 4, 5]
    assert state.n == 2
    assert sorted(chooser.batch(3).tolist()) == sorted(chooser.batch(9)[:3].tolist())
