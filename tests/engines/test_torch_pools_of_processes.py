"""The pool on a device of torch: the picks of the pool in memory, ties included; marks, bad devices, CUDA."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from suffice import ActiveLearner, simulate
from suffice.engines import KernelRows, MemoryPool, VariancePool
from suffice.engines.variance_pool import LargestVariance
from suffice.engines.variance_reduction import KernelSums, LargestReduction, ReductionPool, sample_of
from suffice.errors import InvalidValueError
from suffice.models import BayesianRidge, GaussianProcess
from suffice.models.gaussian_state import KernelState, block_of
from suffice.models.kernels import GaussianKernel
from suffice.numerics import Floats

torch = pytest.importorskip("torch", reason="torch is not installed")

from suffice.engines import torch_pools  # noqa: E402 - needs torch
from suffice.engines.torch_pools import TorchPool, TorchSums  # noqa: E402

NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
DEVICES = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_CUDA)])


def points(m: int, seed: int = 0, *, ties: bool = False) -> Any:
    rng = np.random.default_rng(seed)
    # On a grid many points have the same variance, and duplicates always have.
    return rng.integers(-3, 4, size=(m, 2)).astype(float) if ties else rng.normal(size=(m, 3))


def new_state(X: Any, noise: float = 0.01) -> KernelState:
    return KernelState(GaussianKernel((1.3,)), noise, X.shape[1], capacity=16)


def picked(state: KernelState, pool: VariancePool, size: int, n: int, most: int = 1000) -> list[int]:
    planner, found = LargestVariance(state, pool, size), list[int]()
    while len(found) < n:
        new = planner.propose(min(most, n - len(found)))
        block = planner.block(new)
        state.extend(block_of(state, pool.features(new)) if block is None else block, np.zeros(len(new)))
        planner.take(new)
        found += new.tolist()
    return found


def memory_picks(X: Floats, n: int, noise: float = 0.01) -> list[int]:
    state = new_state(X, noise)
    return picked(state, MemoryPool(KernelRows(state, X, n, np.float64)), len(X), n)


@DEVICES
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("part", [3, 128])
@pytest.mark.parametrize("tile", [1, 1 << 25])
def test_the_picks_are_those_of_the_pool_in_memory(
    device: str, ties: bool, part: int, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_pools, "_PART", part)
    monkeypatch.setattr(torch_pools, "_TILE_BYTES", tile)
    X = points(1500, ties=ties)
    # Of the 49 distinct points of the grid; after these, rounding decides between duplicates.
    n, state = 49 if ties else 90, new_state(X)
    assert picked(state, TorchPool(state, X, device, single=False), len(X), n) == memory_picks(X, n)


@DEVICES
def test_single_precision_picks_the_same_points_here(device: str) -> None:
    X = points(3000)
    state = new_state(X)
    assert picked(
        state, TorchPool(state, torch.as_tensor(X, dtype=torch.float32), device), len(X), 120
    ) == memory_picks(X.astype(np.float32).astype(np.float64), 120)


def test_to_the_last_point_and_with_points_left_out() -> None:
    X = points(40)
    state = new_state(X)
    pool = TorchPool(state, X, single=False)
    pool.take(np.arange(10))
    assert sorted(picked(state, pool, len(X), 30)) == list(range(10, 40))
    pool.follow()
    left = pool.top(5)
    assert (len(left.indices), left.rest, left.rest_index) == (0, -np.inf, 40)


@pytest.mark.parametrize("n", [1, 7, 64, 200])
@pytest.mark.parametrize("ties", [False, True])
def test_candidates_are_those_of_the_pool_in_memory(n: int, ties: bool) -> None:
    X = points(150, ties=ties)
    state = new_state(X)
    memory, device = MemoryPool(KernelRows(state, X, 20, np.float64)), TorchPool(state, X, single=False)
    rows = np.array([3, 77, 21])
    state.extend(block_of(state, X[rows]), np.array([1.0, 0.0, -1.0]))
    for pool in (memory, device):
        pool.take(rows)
        pool.follow()
    one, two = memory.top(n), device.top(n)
    np.testing.assert_array_equal(one.indices, two.indices)
    np.testing.assert_array_equal(one.features, two.features)
    assert (one.rest_index, one.tie) == (two.rest_index, two.tie)
    assert one.rest == pytest.approx(two.rest, abs=1e-14)
    assert one.whitened is not None
    assert two.whitened is not None
    assert two.covariance is not None
    np.testing.assert_allclose(one.whitened, two.whitened, atol=1e-13)
    np.testing.assert_allclose(state.covariance(one.features, one.whitened), two.covariance, atol=1e-13)


def test_far_points_lose_nothing() -> None:
    X = points(300) + 1e7
    state = new_state(X)
    assert picked(state, TorchPool(state, X, single=False), len(X), 30) == memory_picks(X, 30)


def test_back_to_a_mark_and_through_a_pickle() -> None:
    X = points(200)
    state = new_state(X)
    planner = LargestVariance(state, TorchPool(state, X, single=False), len(X))
    batch = planner.batch(12).tolist()
    assert state.n == 0
    assert planner.batch(12).tolist() == batch == memory_picks(X, 12)
    state, copied = pickle.loads(pickle.dumps((state, planner)))
    assert copied.batch(12).tolist() == batch


def test_small_variances_in_single_precision_are_warned_of() -> None:
    X = points(600)[:, :1] * 0.01
    state = KernelState(GaussianKernel((1.0,)), 1e-8, 1, capacity=16)
    with pytest.warns(UserWarning, match="near the resolution of single precision"):
        picked(state, TorchPool(state, X), len(X), 30, most=5)


def reduction_picks(
    X: Any,
    n: int,
    pool: Callable[[KernelState, Any], ReductionPool],
    noise: float = 0.01,
    most: int = 1,
    sizes: list[int] | None = None,
) -> list[int]:
    """Picks, at most so many at a time; their numbers are appended to ``sizes``."""
    state = new_state(X, noise)
    planner, found = LargestReduction(state, pool(state, sample_of(len(X), np.random.default_rng(1)))), list[int]()
    while len(found) < n:
        new = planner.propose(min(most, n - len(found)))
        block = planner.block(new)
        state.extend(block_of(state, X[new]) if block is None else block, np.zeros(len(new)))
        planner.take(new)
        found += new.tolist()
        if sizes is not None:
            sizes.append(len(new))
    return found


def in_memory(X: Any, n: int) -> Callable[[KernelState, Any], ReductionPool]:
    return lambda state, sample: KernelSums(state, KernelRows(state, X, n, np.float64), sample, n)


@DEVICES
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("ties", [False, True])
def test_the_picks_by_reduction_are_those_in_memory(
    device: str, single: bool, ties: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_pools, "_PART", 7)
    monkeypatch.setattr(torch_pools, "_AT_ONCE", 100)
    n, X = 40, points(700, ties=ties)
    found = reduction_picks(X, n, lambda state, sample: TorchSums(state, X, sample, n, device, single=single))
    assert found == reduction_picks(X, n, in_memory(X, n))


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Picks are planned in small pools too, and all points are computed again now and then."""
    for name, value in {
        "_PLANNED_FROM": 1,
        "_LEADING": (60, 200),
        "_STRIDE": 3,
        "_RENEWED_AFTER": 9,
        "_PART": 7,
    }.items():
        monkeypatch.setattr(torch_pools, name, value)
    monkeypatch.setattr(torch_pools, "_LOOSE", 1e-5)


@DEVICES
@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("most", [3, 1000])
def test_planned_picks_by_reduction_are_those_in_memory(device: str, single: bool, ties: bool, most: int) -> None:
    # The grid has 49 distinct points.
    n, X, sizes = 45 if ties else 50, points(600, ties=ties), list[int]()
    picks = reduction_picks(
        X, n, lambda state, sample: TorchSums(state, X, sample, n, device, single=single), most=most, sizes=sizes
    )
    assert picks == reduction_picks(X, n, in_memory(X, n))
    if not ties:
        assert max(sizes) > 2


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("size", [1, 2])
def test_plans_from_few_points_are_cut_where_another_point_is_better(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_pools, "_LEADING", (12 * size, 12 * size))
    n, X, sizes, cut = 30, points(600), list[int](), list[bool]()
    confirm = TorchSums._confirm

    def watched(self: TorchSums, where: Any, least: Any) -> int:
        valid = confirm(self, where, least)
        cut.append(valid <= len(least))
        return valid

    monkeypatch.setattr(TorchSums, "_confirm", watched)
    picks = reduction_picks(X, n, lambda state, sample: TorchSums(state, X, sample, n), most=n, sizes=sizes)
    assert picks == reduction_picks(X, n, in_memory(X, n))
    assert any(cut)


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("seed", range(4))
def test_people_depart_from_planned_picks(seed: int) -> None:
    """They take some of them, other points, or leave points out, and ask for batches in between."""
    rng, X = np.random.default_rng(seed), points(500, seed)
    sample, states = np.arange(0, 500, 3), [new_state(X) for _ in range(2)]
    pools: list[ReductionPool] = [
        TorchSums(states[0], X, sample, 30),
        KernelSums(states[1], KernelRows(states[1], X, 30, np.float64), sample, 30),
    ]
    planners = [LargestReduction(state, pool) for state, pool in zip(states, pools, strict=True)]
    left = set(range(500))
    for _ in range(12):
        batch = planners[0].batch(int(rng.integers(1, 9)))
        assert planners[1].batch(len(batch)).tolist() == batch.tolist()
        proposed = planners[0].propose(6)
        assert proposed[0] == batch[0]
        what = rng.integers(4)
        new = proposed[: int(rng.integers(1, len(proposed) + 1))]
        if what == 0:
            new = batch[::-1].copy()
        elif what == 1:
            new = rng.choice(sorted(left), 2, replace=False)
        left -= set(new.tolist())
        for state, planner in zip(states, planners, strict=True):
            if what == 2:
                planner.skip(new)
                continue
            block = planner.block(new)
            state.extend(block_of(state, X[new]) if block is None else block, np.zeros(len(new)))
            planner.take(new)


@pytest.mark.usefixtures("planned")
def test_initial_labels_after_a_plan_are_learned_anew() -> None:
    X = points(500)
    state = new_state(X)
    planner, taken = LargestReduction(state, TorchSums(state, X, np.arange(100), 60, single=False)), list[int]()
    while len(planner.propose(4)) == 1:
        new = planner.propose(1)
        state.extend(block_of(state, X[new]), np.zeros(1))
        planner.take(new)
        taken += new.tolist()
    rows = np.setdiff1d(np.arange(30), taken)
    state.extend(block_of(state, X[rows]), np.zeros(len(rows)))
    planner.jump()
    planner.take(rows)
    other = LargestReduction(state, KernelSums(state, KernelRows(state, X, 60, np.float64), np.arange(100), 60))
    other.take(np.append(rows, taken).astype(np.intp))
    assert planner.batch(5).tolist() == other.batch(5).tolist()


@pytest.mark.usefixtures("planned")
def test_picks_are_not_planned_without_memory_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(TorchSums, "_planned", fail)
    n, X, sizes = 20, points(300), list[int]()
    picks = reduction_picks(X, n, lambda state, sample: TorchSums(state, X, sample, n), most=n, sizes=sizes)
    assert picks == reduction_picks(X, n, in_memory(X, n))
    assert set(sizes) == {1}


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("labels", [1, 5, 16])
def test_scores_after_each_planned_label_are_within_their_bounds(single: bool, labels: int) -> None:
    X, rng = points(300), np.random.default_rng(labels)
    state, sample = new_state(X), np.arange(0, 300, 2)
    sums = TorchSums(state, X, sample, 40, single=single)
    first, rows = np.arange(6), rng.choice(np.arange(6, 300), labels, replace=False)
    state.extend(block_of(state, X[first]), np.zeros(6))
    sums.follow()
    mark = state.mark()
    state.extend(block_of(state, X[rows]), np.zeros(labels))
    hidden = torch.zeros(300, dtype=torch.bool)
    hidden[rows] = True
    largest = sums._update_all(hidden).numpy()
    state.rewind(mark)
    for row, bound in zip(rows, largest, strict=True):
        state.extend(block_of(state, X[[row]]), np.zeros(1))
        covariance = state.covariance(X, state.whiten(X))
        scores = (covariance[sample] ** 2).sum(axis=0) / (np.diag(covariance) + state.noise)
        best = scores[~hidden.numpy()].max()
        assert best <= bound <= best + 1e-2


@pytest.mark.slow
def test_hundreds_of_picks_by_reduction_are_those_in_memory() -> None:
    n, X = 400, points(500)
    found = reduction_picks(X, n, lambda state, sample: TorchSums(state, X, sample, n, "cpu", single=True))
    assert found == reduction_picks(X, n, in_memory(X, n))


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("single", [False, True])
def test_scores_by_reduction_are_those_of_the_definition(single: bool, at_once: int) -> None:
    X, rows = points(60), np.array([4, 30, 7, 11, 50, 21, 40, 2, 3])
    state = new_state(X)
    sums = TorchSums(state, X, np.arange(60), 8, single=single)
    for first in range(0, len(rows), at_once):
        state.extend(block_of(state, X[rows[first : first + at_once]]), np.zeros(at_once))
        sums.follow()
    covariance = state.covariance(X, state.whiten(X))
    variance, squares = sums._variance.numpy(), sums._squares.numpy()
    variance_error, error = sums._errors.numpy()
    assert (np.abs(variance - np.diag(covariance)) <= variance_error + 1e-12).all()
    # Prior covariances are kept in single precision: the errors are within their bounds.
    assert (np.abs(squares - (covariance**2).sum(axis=0)) <= error).all()
    assert error.max() < 1e-3
    low = squares / 60 / (variance + state.noise)
    assert low.argmax() in sums.contenders()
    sums.compute(np.arange(60))
    np.testing.assert_allclose(sums._squares.numpy(), (covariance**2).sum(axis=0), atol=1e-13)
    scores = (covariance**2).sum(axis=0) / (np.diag(covariance) + state.noise)
    assert sums.contenders(np.arange(60)).tolist() == [scores.argmax()]
    sums.take(np.arange(59))
    assert sums.contenders().tolist() == [59]
    sums.take(np.array([59]))
    assert len(sums.contenders()) == 0


@pytest.mark.parametrize(
    ("features", "length", "noise"), [(2, 1.0, 0.01), (8, 2.0, 0.01), (4, 0.5, 1e-3), (30, 5.0, 0.1), (3, 3.0, 1e-4)]
)
@pytest.mark.parametrize("on_device", [True, False])
def test_errors_of_single_precision_are_within_their_bounds(
    features: int, length: float, noise: float, on_device: bool
) -> None:
    rng, n = np.random.default_rng(features), 60
    X = rng.normal(3.0, 1.0, size=(200, features))
    state = KernelState(GaussianKernel((length,)), noise, features, capacity=n)
    sample, rows = np.sort(rng.choice(200, 60, replace=False)), rng.choice(200, n, replace=False)
    device = TorchSums(state, X, sample, n, single=True)
    memory = KernelSums(state, KernelRows(state, X, n, np.float32), sample, n, np.float32)
    for item in rows:
        state.extend(block_of(state, X[[item]]), np.zeros(1))
        (device if on_device else memory).follow()
    covariance = state.covariance(X, state.whiten(X))
    if on_device:
        variance, squares = device._variance.numpy(), device._squares.numpy()
        variance_error, squares_error = device._errors.numpy()
    else:
        variance, squares = memory._variance, memory._squares
        variance_error, squares_error = memory._variance_error, memory._squares_error
    assert (np.abs(variance - np.diag(covariance)) <= variance_error).all()
    assert (np.abs(squares - (covariance[sample] ** 2).sum(axis=0)) <= squares_error).all()


@NEEDS_CUDA
def test_products_are_not_rounded_to_fewer_digits_where_a_user_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    products: Any = torch.backends.cuda.matmul
    name, fewer = ("fp32_precision", "tf32") if hasattr(products, "fp32_precision") else ("allow_tf32", True)
    X, sample, found = points(4000), np.arange(0, 4000, 40), []
    for setting in (getattr(products, name), fewer):
        monkeypatch.setattr(products, name, setting)
        state = new_state(X)
        sums = TorchSums(state, X, sample, 60, "cuda", single=True)
        for item in range(60):
            state.extend(block_of(state, X[[item]]), np.zeros(1))
            sums.follow()
        found.append(sums._squares.cpu().numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-6)


@DEVICES
def test_batches_by_reduction_leave_the_pool_as_it_was(device: str) -> None:
    X = points(300)
    found = []
    for make in (in_memory(X, 30), lambda state, sample: TorchSums(state, X, sample, 30, device, single=False)):
        state = new_state(X)
        planner = LargestReduction(state, make(state, np.arange(200)))
        found.append(planner.batch(9).tolist())
        assert planner.batch(9).tolist() == found[-1]
        assert state.n == 0
    assert found[0] == found[1]


@pytest.mark.usefixtures("planned")
@pytest.mark.parametrize("acquisition", ["variance", "variance-reduction", None])
@DEVICES
def test_a_run_and_a_learner_on_a_device_are_those_in_memory(device: str, acquisition: str | None) -> None:
    X = points(400)
    y = np.sin(X[:, 0]) + X[:, 1]
    options: dict[str, Any] = {"acquisition": acquisition, "seed": 3}
    one, two = (simulate(GaussianProcess(), X, y, steps=40, **options, device=each) for each in (None, device))
    np.testing.assert_array_equal(one.indices, two.indices)
    np.testing.assert_allclose(one.kl_new_old, two.kl_new_old, rtol=1e-9)
    learners = [ActiveLearner(GaussianProcess(), X, **options, device=each) for each in (None, device)]
    for _ in range(4):
        items = [learner.ask(5) for learner in learners]
        np.testing.assert_array_equal(items[0], items[1])
        for learner in learners:
            learner.tell(items[0], y[items[0]])


@NEEDS_CUDA
def test_a_tensor_on_a_graphics_card_is_scored_there() -> None:
    X = points(500)
    pool = torch.as_tensor(X, device="cuda")
    y = np.sin(X[:, 0])
    options: dict[str, Any] = {"acquisition": "variance", "steps": 30}
    one, two = (simulate(GaussianProcess(), each, y, **options) for each in (X, pool))
    np.testing.assert_array_equal(one.indices, two.indices)


def test_a_tensor_in_memory_is_a_pool_like_an_array() -> None:
    X = points(200)
    y = np.sin(X[:, 0])
    one, two = (simulate(GaussianProcess(), each, y, steps=10) for each in (X, torch.as_tensor(X)))
    np.testing.assert_array_equal(one.indices, two.indices)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (GaussianProcess(), {"device": "nothing"}, "device must be one that torch can use"),
        (GaussianProcess(), {"device": 3.5}, "device must be one that torch can use"),
        (
            GaussianProcess(),
            {"device": "cpu", "acquisition": "random"},
            "use a device; give acquisition='variance', or l",
        ),
        (BayesianRidge(), {"device": "cpu"}, "cannot use a device; leave device out"),
    ],
)
def test_a_device_that_cannot_be_used_is_refused(model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        ActiveLearner(model, points(50), **options)


def test_too_little_memory_is_said_with_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    X = points(50)
    state = new_state(X)
    pool = TorchPool(state, X)
    state.extend(block_of(state, X[:2]), np.zeros(2))

    def fail(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(torch, "empty", fail)
    with pytest.raises(MemoryError, match=r"following 50 items over 2 labels needs 0\.0 GB of the memory of cpu"):
        pool.follow()
