"""BatchBALD against enumeration of every configuration of labels, and against its authors' own code."""

import itertools
import math
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from suffice.acquisition import BatchBALD, bald, batchbald
from suffice.acquisition.batchbald import TIE, Configurations, resampled
from suffice.acquisition.scores import ArrayCandidates
from suffice.errors import InvalidTypeError, InvalidValueError
from tests.thoroughness import examples

KINDS = ("spread", "peaked", "duplicates", "constant", "certain", "mixed")


def pool(seed: int, n: int, samples: int = 8, classes: int = 3, kind: str = "spread") -> Any:
    """Probabilities of a kind, ``n x samples x classes``."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(classes, 0.1 if kind == "peaked" else 1.0), size=(n, samples))
    if kind == "duplicates":
        p = p[rng.integers(0, max(1, n // 4), size=n)]
    if kind in ("constant", "mixed"):
        alike = rng.random(n) < 0.5
        p[alike] = p[alike][:, :1]
    if kind in ("certain", "mixed"):
        sure = rng.random(n) < 0.5
        p[sure] = np.eye(classes)[rng.integers(0, classes, size=(int(sure.sum()), samples))]
    return p


def entropy(masses: Any) -> float:
    return -sum(float(m) * math.log(m) for m in np.ravel(masses) if m > 0.0)


def gains_next_to(p: Any, batch: list[int]) -> Any:
    """Gain of every candidate, by enumeration: joint entropy with it, less that without, less its own given w."""
    n, samples, classes = p.shape
    joint, without = np.zeros(n), 0.0
    for labels in itertools.product(range(classes), repeat=len(batch)):
        weights = np.full(samples, 1.0 / samples)
        for item, label in zip(batch, labels, strict=True):
            weights = weights * p[item, :, label]
        without += entropy(weights.sum())
        masses = np.einsum("k,nkc->nc", weights, p)
        joint -= np.where(masses > 0.0, masses * np.log(np.where(masses > 0.0, masses, 1.0)), 0.0).sum(axis=1)
    given_w = np.array([entropy(candidate) / samples for candidate in p])
    return joint - without - given_w


def greedy(p: Any, size: int) -> tuple[list[int], list[float]]:
    batch: list[int] = []
    found: list[float] = []
    for _ in range(size):
        gains = gains_next_to(p, batch)
        gains[batch] = -np.inf
        pick = int(np.flatnonzero(gains >= gains.max() - TIE)[0])
        batch.append(pick)
        found.append(float(gains[pick]))
    return batch, found


@examples(60)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 200),
    classes=st.integers(2, 5),
    size=st.integers(1, 4),
    kind=st.sampled_from(KINDS),
)
def test_picks_and_gains_are_those_of_enumeration(seed: int, n: int, classes: int, size: int, kind: str) -> None:
    p, size = pool(seed, n, 8, classes, kind), min(size, n)
    picks, gains = greedy(p, size)
    for lazy in (True, False):
        batch = batchbald(p, size, lazy=lazy)
        assert batch.indices.tolist() == picks
        assert batch.gains == pytest.approx(gains, abs=1e-12)
        assert batch.exact == size
        assert (batch.indices.dtype.name, batch.gains.dtype.name) == ("int64", "float64")


@pytest.mark.parametrize("kind", KINDS)
def test_chain_rule_and_limits(kind: str) -> None:
    p = pool(5, 40, 6, 3, kind)
    batch = batchbald(p, 5)
    joint = np.full((1, 6), 1.0 / 6.0)
    for item in batch.indices:
        joint = (joint[:, None, :] * p[item].T[None]).reshape(-1, 6)
    given_w = sum(entropy(p[item]) / 6.0 for item in batch.indices)
    assert batch.gains.sum() == pytest.approx(entropy(joint.sum(axis=1)) - given_w, abs=1e-12)
    assert (np.diff(batch.gains) <= 1e-12).all()
    assert (batch.gains >= 0.0).all()
    assert batch.gains.sum() <= math.log(6) + 1e-12
    assert batch.gains[0] == pytest.approx(bald(p).max(), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        (2, "spread"),
        pytest.param(4, "spread", marks=pytest.mark.slow),
        pytest.param(5, "peaked", marks=pytest.mark.slow),
    ],
)
def test_the_authors_own_code_agrees(classes: int, kind: str) -> None:
    torch = pytest.importorskip("torch")
    reference = pytest.importorskip("batchbald_redux.batchbald")
    p = pool(11, 150, 8, classes, kind)
    logs = torch.from_numpy(np.log(p))
    theirs = reference.get_batchbald_batch(logs, 4, 1000, dtype=torch.float64)
    ours = batchbald(p, 4)
    assert ours.indices.tolist() == theirs.indices
    assert np.cumsum(ours.gains) == pytest.approx(theirs.scores, abs=1e-9)


@examples(25)
@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(KINDS),
    configurations=st.sampled_from([4, 11, 100, 700, 3000, 20_000]),
    samples=st.sampled_from([1, 3, 7, 40]),
)
@example(seed=0, kind="peaked", configurations=4, samples=3)
def test_lazy_picks_are_the_eager_picks(seed: int, kind: str, configurations: int, samples: int) -> None:
    p = pool(seed, 700, samples, 4, kind)
    eager = batchbald(p, 8, configurations=configurations, seed=seed, lazy=False)
    lazy = batchbald(p, 8, configurations=configurations, seed=seed)
    assert lazy.indices.tolist() == eager.indices.tolist()
    # Once no label can tell more than 1e-10, the gains are stated as 0.
    settled = (lazy.gains == 0.0) & (eager.gains <= TIE)
    assert lazy.gains[~settled] == pytest.approx(eager.gains[~settled], abs=1e-12)
    assert lazy.exact == eager.exact
    assert lazy.evaluated <= eager.evaluated == sum(range(693, 701))
    assert eager.bounded == 0


def test_lazy_looks_at_few() -> None:
    batch = batchbald(pool(0, 5000, 10, 5), 6, configurations=20_000)
    assert batch.exact == 6
    assert batch.evaluated < 5000 + 5 * 250
    assert batch.bounded < 5 * 5000 * 2


def test_settled_parameters_leave_ties_only() -> None:
    one_sample = batchbald(pool(3, 50, 1, 4), 50, configurations=40)
    assert one_sample.indices.tolist() == list(range(50))
    assert one_sample.gains.tolist() == [0.0] * 50
    told = np.eye(4)[np.arange(8).reshape(4, 2) % 4][:, :, :]
    batch = batchbald(np.concatenate([told, told]), 8)
    assert batch.indices.tolist() == list(range(8))
    assert batch.gains == pytest.approx([math.log(2), *[0.0] * 7])
    assert batch.exact == 8


def test_one_class_and_one_candidate() -> None:
    assert batchbald(np.ones((3, 4, 1)), 3).indices.tolist() == [0, 1, 2]
    assert batchbald(pool(1, 1), 1).gains == pytest.approx(bald(pool(1, 1)))


@given(seed=st.integers(0, 1000), kind=st.sampled_from(["spread", "peaked"]))
@examples(20)
def test_order_of_candidates_samples_and_classes_does_not_matter(seed: int, kind: str) -> None:
    rng, p = np.random.default_rng(seed), pool(seed, 60, 8, 4, kind)
    here, there = batchbald(p, 4), rng.permutation(60)
    moved = batchbald(p[there], 4)
    assert there[moved.indices].tolist() == here.indices.tolist()
    assert moved.gains == pytest.approx(here.gains, abs=1e-12)
    renamed = batchbald(p[:, rng.permutation(8)][:, :, rng.permutation(4)], 4)
    assert renamed.indices.tolist() == here.indices.tolist()
    assert renamed.gains == pytest.approx(here.gains, abs=1e-12)


def follow(p: Any, picks: Any, most: int, seed: int) -> Configurations:
    labels, rng = Configurations.of_nothing(p.shape[1]), np.random.default_rng(seed)
    for pick in picks:
        labels = labels.joined(p[pick], most=most, negligible=1e-14, rng=rng)
    return labels


def informed(p: Any, labels: Configurations) -> Any:
    candidates = ArrayCandidates(p)
    return candidates.information(np.arange(len(p)), candidates.weights(labels.rows))


@pytest.mark.slow
def test_estimates_are_right_on_average_and_in_the_limit() -> None:
    p, picks = pool(2, 30, 6, 3), range(7)
    exact = informed(p, follow(p, picks, 3**7, 0))
    assert exact == pytest.approx(gains_next_to(p, list(picks)), abs=1e-12)
    spread = []
    for most in (20, 80, 320, 1280):
        found = np.array([informed(p, follow(p, picks, most, seed)) for seed in range(150)])
        error = found.std(axis=0, ddof=1) / math.sqrt(len(found))
        assert (np.abs(found.mean(axis=0) - exact) < 4.5 * error).all()
        assert (found >= 0.0).all()
        spread.append(float(np.sqrt(((found - exact) ** 2).mean())))
    assert spread[0] < 0.02
    assert all(later < 0.6 * earlier for earlier, later in itertools.pairwise(spread))


def test_estimated_batch_is_as_good_as_the_exact_one() -> None:
    p = pool(4, 300, 8, 3)
    exact, estimated = batchbald(p, 8, configurations=3**8), batchbald(p, 8, configurations=300)
    assert (exact.exact, estimated.exact) == (8, 5)
    assert estimated.gains[:5] == pytest.approx(exact.gains[:5], abs=1e-12)
    assert estimated.gains == pytest.approx(exact.gains, abs=0.01)
    true = [gains_next_to(p, estimated.indices[:m].tolist())[estimated.indices[m]] for m in range(5, 8)]
    assert sum(true) > 0.97 * exact.gains[5:].sum()
    again = batchbald(p, 8, configurations=300)
    assert again.gains.tolist() == estimated.gains.tolist()
    drawn = batchbald(p, 8, configurations=300, seed=np.random.default_rng(0))
    assert drawn.gains.tolist() == estimated.gains.tolist()
    assert batchbald(p, 8, configurations=300, seed=1).gains.tolist() != estimated.gains.tolist()


@given(seed=st.integers(0, 1000), samples=st.integers(1, 30), kind=st.sampled_from(KINDS))
@examples(20)
def test_merging_raises_every_gain(seed: int, samples: int, kind: str) -> None:
    p = pool(seed, 40, samples, 4, kind)
    labels = follow(p, range(5), 700, seed)
    gains, bounds = informed(p, labels), [informed(p, Configurations(rows)) for rows in labels.merged()]
    for bound in bounds:
        assert (bound >= gains - 1e-13).all()
    for rows in labels.merged():
        assert len(rows) <= len(labels.rows) / 2
        assert rows.sum(axis=0) == pytest.approx(labels.rows.sum(axis=0))
    assert (gains <= labels.doubt() + 1e-12).all()


def test_configurations_that_cannot_matter_are_left_out() -> None:
    # One label tells which sample it is: its configurations have nothing left to tell.
    told = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert len(follow(told[None], [0], 100, 0).rows) == 0
    nearly = np.array([[1.0 - 1e-16, 1e-16], [0.5, 0.5]])
    labels = follow(nearly[None], [0, 0, 0], 100, 0)
    assert len(labels.rows) < 8
    assert labels.exact


@given(seed=st.integers(0, 1000), size=st.integers(1, 30))
def test_resampling_keeps_the_heavy_and_is_right_on_average(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    chances = rng.gamma(0.3, size=40) + 1e-9
    total = np.zeros(40)
    for _ in range(30):
        chosen, factors = resampled(chances, size, rng)
        assert len(chosen) <= size
        assert (np.diff(chosen) > 0).all()
        assert (chances[chosen] * factors).sum() == pytest.approx(chances.sum())
        total[chosen] += factors
    heavy = chances > 1.0001 * chances.sum() / size
    assert (total[heavy] == 30.0).all()


def test_resampling_is_right_on_average() -> None:
    rng, chances = np.random.default_rng(0), np.array([5.0, 1.0, 0.5, 0.5, 0.25, 0.25])
    total = np.zeros(6)
    for _ in range(4000):
        chosen, factors = resampled(chances, 3, rng)
        total[chosen] += factors
    assert total / 4000 == pytest.approx(np.ones(6), abs=0.15)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_precisions_of_arrays(dtype: str) -> None:
    p = pool(9, 80, 8, 4).astype(dtype)
    wide = p.astype(np.float64)
    wide /= wide.sum(axis=2, keepdims=True)
    assert batchbald(p, 4).indices.tolist() == batchbald(wide, 4).indices.tolist()
    assert batchbald(p, 4).gains == pytest.approx(batchbald(wide, 4).gains, abs=1e-13)
    assert bald(p) == pytest.approx(bald(wide), abs=1e-13)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("configurations", [60, 100_000])
def test_tensors_are_arrays(dtype: str, configurations: int) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(pool(9, 90, 8, 4)).to(getattr(torch, dtype)).requires_grad_()
    array = tensor.detach().double().numpy()
    array /= array.sum(axis=2, keepdims=True)
    same(batchbald(tensor, 6, configurations=configurations), batchbald(array, 6, configurations=configurations))
    assert bald(tensor) == pytest.approx(bald(array), abs=1e-13)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_arithmetic_on_a_device(kind: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    from suffice.acquisition.scores import TensorCandidates

    p = pool(6, 600, 8, 4, kind)
    tensor = torch.from_numpy(p).to(device)
    assert TensorCandidates(tensor).bald() == pytest.approx(bald(p), abs=1e-13)
    expected = [batchbald(p, 8, configurations=configurations) for configurations in (1000, 100_000)]
    # The module, which has the name of its function: tensors on the host would be taken for arrays.
    monkeypatch.setattr(sys.modules["suffice.acquisition.batchbald"], "candidates", TensorCandidates)
    same(batchbald(tensor, 8, configurations=1000), expected[0])
    same(batchbald(tensor, 8), expected[1])


def same(one: BatchBALD, other: BatchBALD) -> None:
    assert one.indices.tolist() == other.indices.tolist()
    assert one.gains == pytest.approx(other.gains, abs=1e-12)
    assert one.exact == other.exact


def test_arrays_need_no_torch() -> None:
    code = (
        "import sys, numpy as np; from suffice.acquisition import batchbald; "
        "batchbald(np.full((3, 2, 2), 0.5), 2); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_memory_stays_far_below_the_probabilities() -> None:
    p = np.full((40_000, 20, 10), 0.1, dtype=np.float32)
    p[:, :, 0] = np.random.default_rng(0).random((40_000, 20)) / 10.0
    p[:, :, 1] = 0.2 - p[:, :, 0]
    tracemalloc.start()
    batchbald(p, 4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < p.nbytes / 2


def bad(change: Any) -> Any:
    p = pool(0, 5, 4, 3)
    change(p)
    return p


def put(value: float, index: tuple[int, ...]) -> Any:
    return bad(lambda p: p.__setitem__(index, value))


@pytest.mark.parametrize(
    ("probs", "size", "options", "message"),
    [
        (np.ones((4, 3)), 1, {}, r"probs must be N x K x C.*its shape is \(4, 3\)"),
        (np.ones((4, 0, 3)), 1, {}, r"its shape is \(4, 0, 3\)"),
        (np.ones((0, 2, 3)), 1, {}, "probs must hold at least one candidate"),
        (put(math.nan, (2, 1, 0)), 1, {}, r"probs must be probabilities, 0 or more, but is nan at \(2, 1, 0\)"),
        (put(-0.25, (4, 0, 2)), 1, {}, r"but is -0.25 at \(4, 0, 2\)"),
        (put(math.inf, (0, 0, 0)), 1, {}, r"but is inf at \(0, 0, 0\)"),
        (np.full((5, 2, 3), 0.4), 1, {}, "sum to 1 over its last axis.*1.2 for candidate 0, sample 0"),
        (np.full((5, 2, 3), 0.333, dtype=np.float32), 1, {}, "within 0.0001"),
        (np.full((5, 2, 3), 0.32, dtype=np.float16), 1, {}, "within 0.0078"),
        (pool(0, 5), 0, {}, "batch_size must be a whole number, 1 or more, not 0"),
        (pool(0, 5), 2.0, {}, "batch_size must be a whole number"),
        (pool(0, 5), 6, {}, "batch_size must be at most the number of candidates, 5, not 6"),
        (pool(0, 5, 4, 3), 2, {"configurations": 2}, "configurations must be 3 or more, one for each class, not 2"),
        (pool(0, 5), 2, {"configurations": 1e5}, "configurations must be a whole number"),
        (pool(0, 5), 2, {"seed": -1}, "seed must be a whole number, 0 or more"),
    ],
)
def test_bad_values_are_named(probs: Any, size: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        batchbald(probs, size, **options)


@pytest.mark.parametrize("probs", [None, "text", [[[0.5, 0.5]], [[1.0]]], np.ones((2, 2, 2), dtype=complex)])
def test_bad_types_are_named(probs: Any) -> None:
    with pytest.raises(InvalidTypeError, match="probs must be an array or a tensor of real numbers"):
        batchbald(probs, 1)


def test_bad_tensors_are_named() -> None:
    torch = pytest.importorskip("torch")
    from suffice.acquisition.scores import TensorCandidates

    with pytest.raises(InvalidValueError, match="candidate 0, sample 0"):
        batchbald(torch.full((5, 2, 3), 0.3, dtype=torch.bfloat16), 1)
    with pytest.raises(InvalidValueError, match=r"but is nan at \(0, 0, 0\)"):
        TensorCandidates(torch.full((5, 2, 3), math.nan)).bald()
    with pytest.raises(InvalidTypeError, match=r"torch\.int64"):
        TensorCandidates(torch.ones((5, 2, 3), dtype=torch.int64))
    with pytest.raises(InvalidValueError, match="N x K x C"):
        batchbald(torch.ones(3), 1)


def test_lists_and_whole_numbers_will_do() -> None:
    assert batchbald([[[1, 0], [0, 1]], [[0, 1], [0, 1]]], 1).gains == pytest.approx([math.log(2)])
    assert bald(np.empty((0, 2, 3))).shape == (0,)
