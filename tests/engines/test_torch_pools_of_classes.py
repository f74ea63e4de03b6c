"""A classifier's pool on a device: the picks of a pool in memory, also in single precision; bounds of errors."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from suffice.acquisition import class_scores
from suffice.engines.class_pool import ScoredPool, UncertainPool
from suffice.engines.disk_rows import NpyPool
from suffice.errors import InvalidValueError, NotEnoughMemoryError
from suffice.learner import ActiveLearner, simulate
from suffice.models.factory import make_model
from suffice.models.laplace import laplace
from suffice.models.logistic import BayesianLogistic

torch = pytest.importorskip("torch", reason="torch is not installed")

from suffice.engines import torch_pools as device_pool  # noqa: E402
from suffice.engines.torch_pools import DEVICE_SCORES, TorchClasses  # noqa: E402

NEEDS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no CUDA device")
DEVICES = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_CUDA)])
NAMES = pytest.mark.parametrize("name", sorted(DEVICE_SCORES))


def points(m: int, *, ties: bool = False, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, size=(m, 3)).astype(float) if ties else rng.normal(size=(m, 4))
    return np.column_stack([X, np.ones(m)])


def posterior(X: Any, classes: int, n: int = 30, alpha: float = 0.3, seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(X), n, replace=False)
    codes = np.arange(n) % classes
    return laplace(X[rows], codes, classes, alpha)


def in_memory(X: Any, name: str, classes: int) -> UncertainPool | ScoredPool:
    if classes == 2 and name != "bald":
        return UncertainPool(X, averaged=DEVICE_SCORES[name])
    return ScoredPool(X, partial(class_scores, name=name))


def on_device(X: Any, name: str, device: str, *, single: bool) -> TorchClasses:
    return TorchClasses(X, name, partial(class_scores, name=name), device, single=single)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
@NAMES
@DEVICES
def test_the_picks_are_those_in_memory(device: str, name: str, classes: int, single: bool, ties: bool) -> None:
    X = points(3000, ties=ties)
    state = posterior(X, classes)
    one, two = in_memory(X, name, classes), on_device(X, name, device, single=single)
    rng = np.random.default_rng(5)
    for n in (1, 1, 7, 1, 40, 1):
        first, second = one.nearest(state, n), two.nearest(state, n)
        np.testing.assert_array_equal(first, second)
        one.take(first)
        two.take(second)
        state.extend(X[first], rng.integers(classes, size=n))


@pytest.mark.parametrize("classes", [2, 3])
@NAMES
def test_many_candidates_are_narrowed_in_double_precision(
    monkeypatch: pytest.MonkeyPatch, name: str, classes: int
) -> None:
    X = points(2000, ties=True)
    state = posterior(X, classes)
    expected = in_memory(X, name, classes).nearest(state, 25)
    monkeypatch.setattr(device_pool, "_FEW", 3)
    monkeypatch.setattr(device_pool, "_TILE_BYTES", 1)
    np.testing.assert_array_equal(on_device(X, name, "cpu", single=True).nearest(state, 25), expected)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@DEVICES
def test_picks_by_a_table_are_those_in_memory(
    monkeypatch: pytest.MonkeyPatch, device: str, ties: bool, single: bool
) -> None:
    monkeypatch.setattr(device_pool, "_TABLE_FROM", 1)
    test_the_picks_are_those_in_memory(device, "bald", 2, single, ties)


@pytest.mark.parametrize("single", [False, True])
@DEVICES
def test_scores_by_a_table_are_within_their_bounds(monkeypatch: pytest.MonkeyPatch, device: str, single: bool) -> None:
    monkeypatch.setattr(device_pool, "_TABLE_FROM", 1)
    test_scores_are_within_their_bounds(device, "bald", 2, single)


def test_the_error_between_the_points_of_the_table_is_within_its_bound() -> None:
    rng = np.random.default_rng(0)
    deviation = torch.as_tensor(
        np.append(np.exp(rng.uniform(np.log(0.02), np.log(480.0), 60_000)), np.full(4_000, 3.0))
    )
    units = torch.as_tensor(np.append(20.0 * rng.beta(0.3, 2.0, 60_000), np.linspace(0.0, 0.05, 4_000)))
    logits = torch.stack([units * (1.0 + deviation), deviation])
    error = (device_pool._tabulated_bald(logits) - device_pool._bald_of_two(logits)).abs()
    largest = float((error * ((1.0 + deviation) / deviation).square()).max())
    assert 0.25 * device_pool._TABLE_ERROR < largest < 0.5 * device_pool._TABLE_ERROR
    outside = torch.tensor([[32.0, 0.0], [600.0, 1e9]], dtype=torch.float64)
    assert device_pool._tabulated_bald(outside).isinf().all()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("classes", [2, 3, 7])
@NAMES
@DEVICES
def test_scores_are_within_their_bounds(device: str, name: str, classes: int, single: bool) -> None:
    for seed, (scale, alpha) in enumerate(product([1e-3, 0.1, 3.0, 300.0], [1e-3, 1.0, 100.0])):
        require_bounds(seed, classes, name, scale, alpha, device, single=single)


def require_bounds(
    seed: int, classes: int, name: str, scale: float, alpha: float, device: str, *, single: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = scale * rng.standard_t(2, size=(300, 5))
    state = posterior(X, classes, n=int(rng.integers(classes, 40)), alpha=alpha, seed=seed)
    found, error = on_device(X, name, device, single=single).scores(state)
    if classes == 2 and name != "bald":
        mean, variance = state.latent(X)
        expected = -np.abs(mean) / np.sqrt(1.0 + DEVICE_SCORES[name] * np.pi / 8.0 * variance)
    else:
        expected = class_scores(state, X, name)
    slack = 1e-12 * (1.0 + np.abs(expected))
    within = np.abs(found.double().cpu().numpy() - expected) <= error.double().cpu().numpy() + slack
    assert (within | found.isinf().cpu().numpy()).all()
    if scale < 1.0 <= alpha:
        assert not found.isinf().any()


@pytest.mark.parametrize("classes", [2, 3])
@NAMES
@DEVICES
def test_numbers_that_single_precision_cannot_hold(device: str, name: str, classes: int) -> None:
    X = points(300)
    state = posterior(X, classes)
    X[7] *= 1e30
    X[11] *= 1e100
    X[13] *= 1e-300
    with np.errstate(all="ignore"):
        expected = in_memory(X, name, classes).nearest(state, 5)
        np.testing.assert_array_equal(on_device(X, name, device, single=True).nearest(state, 5), expected)


def test_a_setting_of_torch_is_left_as_it_was() -> None:
    products, before = torch.backends.cuda.matmul, torch.get_float32_matmul_precision()
    name = "fp32_precision" if hasattr(products, "fp32_precision") else "allow_tf32"
    torch.set_float32_matmul_precision("high")
    try:
        with device_pool._full_precision():
            assert getattr(products, name) in {"ieee", False}
        assert getattr(products, name) in {"tf32", True}
    finally:
        torch.set_float32_matmul_precision(before)


def test_few_points_are_scored_again() -> None:
    X = points(20_000)
    for classes, name in ((2, "entropy"), (2, "bald"), (4, "entropy"), (4, "bald")):
        pool = on_device(X, name, "cpu", single=True)
        contenders = pool._contenders(device_pool._formula(name, posterior(X, classes)), 1)
        assert len(contenders) < 50


def test_to_the_last_point() -> None:
    X = points(30)
    pool = on_device(X, "entropy", "cpu", single=True)
    pool.take(np.array([3, 4, 3]))
    found = pool.nearest(posterior(X, 3, n=9), 100)
    assert sorted(found) == [k for k in range(30) if k not in (3, 4)]
    pool.take(found)
    assert not len(pool.nearest(posterior(X, 3, n=9), 1))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("acquisition", ["entropy", "bald", "margin"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@DEVICES
def test_a_run_and_a_learner_on_a_device_are_those_in_memory(
    device: str, dtype: Any, classes: int, acquisition: str
) -> None:
    X = points(300)[:, :4]
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], np.linspace(-0.8, 0.8, classes - 1))
    options: dict[str, Any] = {"acquisition": acquisition, "seed": 3, "initial": 12}
    model = BayesianLogistic(classes=list(range(classes)))
    one, two = (simulate(model, X, y, steps=25, dtype=dtype, **options, device=each) for each in (None, device))
    np.testing.assert_array_equal(one.indices, two.indices)
    learners = [ActiveLearner(model, X, **options, dtype=dtype, device=each) for each in (None, device)]
    for _ in range(4):
        items = [learner.ask(5) for learner in learners]
        np.testing.assert_array_equal(items[0], items[1])
        for learner in learners:
            learner.tell(items[0], y[items[0]])


@NEEDS_CUDA
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_tensor_on_a_graphics_card_is_scored_there(dtype: Any) -> None:
    pool = torch.as_tensor(points(500)[:, :4], device="cuda", dtype=dtype)
    X = pool.double().cpu().numpy()
    y = (X[:, 0] > 0).astype(int)
    options: dict[str, Any] = {"acquisition": "entropy", "steps": 30, "initial": 10}
    one, two = (simulate(BayesianLogistic(), each, y, **options) for each in (X, pool))
    np.testing.assert_array_equal(one.indices, two.indices)
    state = posterior(X, 2)
    direct = TorchClasses(pool, "bald", partial(class_scores, name="bald"))
    assert direct.device.type == "cuda"
    np.testing.assert_array_equal(direct.nearest(state, 9), in_memory(X, "bald", 2).nearest(state, 9))


def test_a_tensor_and_a_file_are_pools(tmp_path: Any) -> None:
    X = points(5000).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    state = posterior(X.astype(float), 3)
    expected = in_memory(X.astype(float), "entropy", 3).nearest(state, 20)
    for pool in (torch.as_tensor(X), NpyPool(tmp_path / "x.npy", memory_limit=100_000)):
        np.testing.assert_array_equal(on_device(pool, "entropy", "cpu", single=True).nearest(state, 20), expected)


def test_what_a_device_cannot_do_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X = points(50)
    with pytest.raises(InvalidValueError, match="'relevance' cannot be scored on a device"):
        on_device(X, "relevance", "cpu", single=True)
    with pytest.raises(InvalidValueError, match="give acquisition='bald', or leave device out"):
        ActiveLearner(BayesianLogistic(), X, acquisition="random", device="cpu")

    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(torch, "empty", full)
    with pytest.raises(NotEnoughMemoryError, match=r"50 items with 5 features needs 0.0 GB of the memory of cpu"):
        on_device(X, "entropy", "cpu", single=True)


@DEVICES
def test_a_kernel_classifier_uses_a_device(device: str) -> None:
    X = points(400)[:, :4]
    y = np.where(np.hypot(X[:, 0], X[:, 1]) > 1.2, "out", "in")
    model = make_model("kernel", classes=["in", "out"])
    options: dict[str, Any] = {"acquisition": "bald", "seed": 1, "initial": 12, "steps": 12}
    one, two = (simulate(model, X, y, **options, device=each) for each in (None, device))
    np.testing.assert_array_equal(one.indices, two.indices)
