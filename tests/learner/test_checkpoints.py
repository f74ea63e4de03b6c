"""Runs of the classical models that are interrupted and go on: the same picks as without an interruption."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import CheckpointError, SufficeError
from suffice.learner import simulation
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
NUMBERS = np.sin(X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=400)
CLASSES = np.where(X[:, 0] + 0.3 * RNG.normal(size=400) > 0.0, "right", np.where(X[:, 1] > 1.0, "up", "left"))


def interrupted_at(step: int) -> Any:
    def progress(done: int, _: int) -> None:
        if done >= step:
            raise KeyboardInterrupt

    return progress


RUNS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "process": (GaussianProcess(), NUMBERS, {}),
    "process by variance": (GaussianProcess(), NUMBERS, {"acquisition": "variance"}),
    "ridge": (BayesianRidge(), NUMBERS, {"acquisition": "variance", "random_share": 0.3}),
    "ridge in batches": (BayesianRidge(), NUMBERS, {"batch": 4, "acquisition": "variance", "random_share": 0.3}),
    "logistic": (BayesianLogistic(), CLASSES, {"X_test": X[:50], "y_test": CLASSES[:50]}),
    "logistic, calibrated": (BayesianLogistic(alpha=1.0), CLASSES, {"record": "all"}),
    "random": (BayesianRidge(), NUMBERS, {"acquisition": "random"}),
}


@pytest.mark.no_cover
@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_is_interrupted_goes_on_with_the_same_picks(name: str, tmp_path: Path) -> None:
    model, y, options = RUNS[name]
    path = tmp_path / "run"
    whole = sf.simulate(model, X, y, steps=40, seed=2, **options)
    for step in (7, 31):
        with pytest.raises(KeyboardInterrupt):
            sf.simulate(model, X, y, steps=40, seed=2, checkpoint=path, progress=interrupted_at(step), **options)
        saved = json.loads(path.read_text())
        assert 7 <= sum(map(len, saved["groups"])) // options.get("batch", 1) <= 40
    found = sf.simulate(model, X, y, steps=40, seed=2, checkpoint=path, **options)
    np.testing.assert_array_equal(found.indices, whole.indices)
    np.testing.assert_array_equal(found.random_items, whole.random_items)
    np.testing.assert_allclose(found.kl_new_old, whole.kl_new_old, rtol=1e-7, atol=1e-10)
    for each, values in whole.measures.items():
        if each != "seconds":
            np.testing.assert_allclose(found.measures[each], values, rtol=1e-6, atol=1e-9, err_msg=each)
    # Once more: nothing is left to do. Fewer steps are its beginning.
    again = sf.simulate(model, X, y, steps=40, seed=2, checkpoint=path, **options)
    np.testing.assert_array_equal(again.indices, whole.indices)
    shorter = sf.simulate(model, X, y, steps=9, seed=2, checkpoint=path, **options)
    np.testing.assert_array_equal(shorter.indices, whole.indices[:9])


def test_an_interruption_while_labels_are_learned_again_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        sf.simulate(BayesianRidge(), X, NUMBERS, steps=60, checkpoint=path, progress=interrupted_at(20))
    before = path.read_text()

    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(simulation.RunRecorder, "_learn", interrupt)
        with pytest.raises(KeyboardInterrupt):
            sf.simulate(BayesianRidge(), X, NUMBERS, steps=60, checkpoint=path)
    assert path.read_text() == before


def test_labels_are_saved_in_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "_SAVED_EVERY", 0.0)
    path, sizes = tmp_path / "run", []

    def progress(done: int, _: int) -> None:
        sizes.append((done, sum(map(len, json.loads(path.read_text())["groups"]))))

    sf.simulate(BayesianRidge(), X, NUMBERS, steps=10, acquisition="random", checkpoint=path, progress=progress)
    assert all(done == saved for done, saved in sizes)
    assert not list(tmp_path.glob("*.part"))


def test_a_pool_on_disk_and_in_memory(tmp_path: Path) -> None:
    np.save(tmp_path / "pool.npy", X)
    options: dict[str, Any] = {"steps": 30, "checkpoint": tmp_path / "run"}
    rows = sf.engines.NpyPool(tmp_path / "pool.npy", memory_limit=4000)
    with pytest.raises(KeyboardInterrupt):
        sf.simulate(BayesianLogistic(), rows, CLASSES, progress=interrupted_at(11), **options)
    found = sf.simulate(BayesianLogistic(), rows, CLASSES, **options)
    np.testing.assert_array_equal(found.indices, sf.simulate(BayesianLogistic(), X, CLASSES, steps=30).indices)


def test_features_that_differ_by_rounding_are_those_of_the_same_run(tmp_path: Path) -> None:
    """As after they were computed again on another processor; a change of any value by a thousandth is none."""
    path = tmp_path / "run"
    sf.simulate(BayesianRidge(), X, NUMBERS, steps=5, checkpoint=path)
    rounded = X * (1.0 + 1e-13 * np.random.default_rng(0).choice([-1.0, 1.0], X.shape))
    assert (rounded != X).any()
    found = sf.simulate(BayesianRidge(), rounded, NUMBERS, steps=5, checkpoint=path)
    np.testing.assert_array_equal(found.indices, sf.simulate(BayesianRidge(), X, NUMBERS, steps=5).indices)
    for row, column in ((0, 0), (len(X) - 1, X.shape[1] - 1)):
        changed = X.copy()
        changed[row, column] += 1e-3
        with pytest.raises(CheckpointError, match="its X_pool is"):
            sf.simulate(BayesianRidge(), changed, NUMBERS, steps=5, checkpoint=path)
    with pytest.raises(CheckpointError, match="its X_pool is"):
        sf.simulate(BayesianRidge(), X[::-1], NUMBERS[::-1], steps=5, checkpoint=path)


def test_a_checkpoint_without_sums_goes_on(tmp_path: Path) -> None:
    """As 1.0.0rc1 wrote it."""
    path = tmp_path / "run"
    sf.simulate(BayesianRidge(), X, NUMBERS, steps=5, checkpoint=path)
    saved = json.loads(path.read_text())
    saved["run"]["X_pool"] = saved["run"]["X_pool"].partition(", sums")[0]
    path.write_text(json.dumps(saved))
    sf.simulate(BayesianRidge(), X, NUMBERS, steps=5, checkpoint=path)
    path.write_text(json.dumps(saved))
    with pytest.raises(CheckpointError, match="its X_pool is"):
        sf.simulate(BayesianRidge(), X + 1e-9, NUMBERS, steps=5, checkpoint=path)


def test_other_runs_and_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    run: dict[str, Any] = {"steps": 5, "checkpoint": path}
    sf.simulate(BayesianRidge(), X, NUMBERS, **run)
    changes: list[Callable[[], Any]] = [
        lambda: sf.simulate(BayesianRidge(), X, NUMBERS, seed=1, **run),
        lambda: sf.simulate(BayesianRidge(), X + 1.0, NUMBERS, **run),
        lambda: sf.simulate(BayesianRidge(alpha=2.0), X, NUMBERS, **run),
        lambda: sf.simulate(GaussianProcess(), X, NUMBERS, **run),
    ]
    for change in changes:
        with pytest.raises(CheckpointError, match=r"checkpoint .*run is of another run: its .* Remove the file"):
            change()
    for text in ("", "hello", "{}", json.dumps({"format": "another", "run": {}, "groups": []})):
        path.write_text(text)
        with pytest.raises(CheckpointError, match="run is not a run that suffice saved"):
            sf.simulate(BayesianRidge(), X, NUMBERS, **run)
    with pytest.raises(SufficeError, match="cannot be saved to"):
        sf.simulate(BayesianRidge(), X, NUMBERS, steps=5, checkpoint=tmp_path / "no" / "run")
