"""Recorded runs: saved, loaded, replayed without looking ahead."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import InvalidValueError, SufficeError
from suffice.models import BayesianRidge, GaussianProcess
from suffice.trace import Relearned, Trace


def run(steps: int = 60, *, learned: bool = True) -> Trace:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=200)
    model = GaussianProcess() if learned else GaussianProcess(1.0, 0.05)
    return sf.simulate(model, X, y, steps=steps, X_test=X, y_test=y)


def test_saved_and_loaded(tmp_path: Path) -> None:
    trace = run()
    trace.save(tmp_path / "run.npz")
    again = Trace.load(tmp_path / "run.npz")
    for name in ("initial", "indices", "n_labelled", "kl_new_old", "kl_old_new", "error"):
        assert getattr(again, name).tolist() == getattr(trace, name).tolist()
    assert again.about == trace.about
    rule = sf.ErrorStability(0.1)
    assert again.replay(rule) == trace.replay(rule)
    assert [known.step for known in trace.relearned] == [9, 29]


def test_files_that_are_no_runs(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="no such file"):
        Trace.load(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(InvalidValueError, match="not a run"):
        Trace.load(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(InvalidValueError, match="not a run"):
        Trace.load(tmp_path / "other.npz")
    with pytest.raises(SufficeError, match="cannot be written"):
        run(5).save(tmp_path / "no" / "folder.npz")


ARRAYS = ("initial", "indices", "n_labelled", "kl_new_old", "kl_old_new", "error")


def small() -> Trace:
    """A run of twenty steps with everything that a run can hold."""
    rng = np.random.default_rng(1)
    known = Relearned(7, *rng.random((2, 8)))
    made = Trace.of_divergences(*rng.random((2, 20)), first=10)
    measures = {"accuracy": rng.random(20), "contributions": rng.random((20, 4))}
    return replace(made, error=rng.random(20), relearned=(known,), about={"identity": "a" * 64}, measures=measures)


def contents(trace: Trace) -> dict[str, Any]:
    held = {name: getattr(trace, name).tolist() for name in ARRAYS}
    held |= {name: values.tolist() for name, values in trace.measures.items()}
    pairs = [(each.step, each.kl_new_old.tolist(), each.kl_old_new.tolist()) for each in trace.relearned]
    return {**held, "relearned": pairs, "about": dict(trace.about), "estimated": trace.estimated}


def damaged(whole: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes wrong, anywhere; now and then some lost or some too many."""
    content, kind = bytearray(whole), rng.integers(6)
    for place in rng.integers(len(content), size=rng.integers(1, 4)):
        content[place] ^= int(rng.integers(1, 256))
    start = int(rng.integers(len(content)))
    if kind == 0:
        del content[start : start + int(rng.integers(1, 50))]
    elif kind == 1:
        content[start:start] = rng.bytes(int(rng.integers(1, 50)))
    return bytes(content)


def test_any_damage_is_answered_in_a_sentence(tmp_path: Path) -> None:
    path, rng = tmp_path / "run.npz", np.random.default_rng(0)
    small().save(path)
    whole, refused = path.read_bytes(), 0
    assert contents(Trace.load(path)) == contents(small())
    for _ in range(400):
        path.write_bytes(damaged(whole, rng))
        try:
            Trace.load(path)
        except InvalidValueError as error:
            assert str(error) == f"{path} is not a run that suffice saved"  # noqa: PT017 - some damage does no harm
            refused += 1
    assert refused > 200


@pytest.mark.parametrize("name", [b"relearned_0", b"measure_accuracy"])
def test_no_part_of_a_damaged_run_is_left_out(name: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    small().save(path)
    whole = path.read_bytes()
    at = whole.rindex(name)
    path.write_bytes(whole[:at] + b"x" + whole[at + 1 :])
    with pytest.raises(InvalidValueError, match="not a run"):
        Trace.load(path)


@pytest.mark.parametrize(
    ("name", "values"),
    [("relearned_0", np.zeros(3)), ("relearned_0", np.zeros((1, 3))), ("n_labelled", np.array(3))],
    ids=lambda given: given if isinstance(given, str) else str(given.shape),
)
def test_arrays_of_another_shape_are_no_run(name: str, values: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    small().save(path)
    with np.load(path) as file:
        arrays = {each: file[each] for each in file.files}
    np.savez_compressed(path, **{**arrays, name: values})
    with pytest.raises(InvalidValueError, match="not a run"):
        repr(Trace.load(path))


@pytest.mark.parametrize("learned", [True, False])
def test_replay_never_looks_ahead(learned: bool) -> None:
    whole, part = run(80, learned=learned), run(47, learned=learned)
    rule = sf.ErrorStability(0.1)
    seen, known = whole.replay(rule)[:47], part.replay(rule)
    assert [v.stop for v in seen] == [v.stop for v in known]
    # Where the run ends, the labels are factored in other groups: the last digit may differ, and no more.
    assert [v.value for v in seen] == pytest.approx([v.value for v in known], rel=1e-10)


def test_replay_starts_over_where_the_past_changed() -> None:
    new_old, old_new = np.full(6, 0.1), np.full(6, 0.1)
    changed = Relearned(3, np.array([1.0, 1.0, 1.0, 1e-4]), np.array([1.0, 1.0, 1.0, 1e-4]))
    trace = Trace(np.arange(5), np.arange(6), 6 + np.arange(6), new_old, old_new, np.zeros(0), (changed,))
    verdicts = trace.replay(sf.ErrorStability(0.5, calibration=2))
    assert [v.stop for v in verdicts] == [False, False, False, True, True, True]
    assert verdicts[2].value == 1.0


def test_replay_is_observe() -> None:
    trace = run(learned=False)
    rule = sf.ErrorStability(0.2) & sf.Budget(30)
    assert trace.replay(rule) == [
        rule.observe(sf.Step(n_labelled=int(n), kl_new_old=float(a), kl_old_new=float(b)))
        for n, a, b in zip(trace.n_labelled, trace.kl_new_old, trace.kl_old_new, strict=True)
    ]


def test_ratio_is_the_rules() -> None:
    trace = run(learned=False)
    assert trace.ratio().tolist() == [v.value for v in trace.replay(sf.ErrorStability(0.0))]


def test_audit_is_a_run_in_order() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X @ [1.0, 2.0, 3.0, 4.0] + rng.normal(size=300)
    trace = sf.audit(BayesianRidge(1.0, 1.0), X, y)
    assert trace.indices.tolist() == list(range(10, 300))
    pair = sf.divergence.history(X @ X.T, y, 1.0)
    assert trace.kl_new_old == pytest.approx(pair.new_old[10:], rel=1e-6)
    assert trace.kl_old_new == pytest.approx(pair.old_new[10:], rel=1e-6)


@pytest.mark.parametrize("size", [1, 4])
def test_audit_of_a_process_is_one_factorisation(size: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=90)
    model = GaussianProcess(0.8, 0.01)
    trace = sf.audit(model, X, y, batch=size)
    pair = sf.divergence.history(GaussianKernel(X), y, 0.01)
    if size == 1:
        assert trace.kl_new_old == pytest.approx(pair.new_old[10:], rel=1e-8)
    else:
        old, new = (GaussianProcess(0.8, 0.01).fit(X[:n], y[:n]).posterior for n in (10, 14))
        assert trace.kl_new_old[0] == pytest.approx(sf.kl(new, old), rel=1e-7)
        assert trace.kl_old_new[0] == pytest.approx(sf.kl(old, new), rel=1e-7)


def GaussianKernel(X: "np.typing.NDArray[np.float64]") -> "np.typing.NDArray[np.float64]":  # noqa: N802
    return np.asarray(np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=-1) / 0.64))
