"""The paper's deep experiment: its settings, its error, its correlation, and a few rounds of it."""

import os
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice import kl
from suffice.trace import Trace
from suffice_research.data.set_readers import Digits, read_mnist
from suffice_research.paper import experiments
from suffice_research.paper.experiments import published_error, published_network, published_run, unlabelled_run
from suffice_research.paper.outcome import correlation

FOLDER = os.environ.get("SUFFICE_REFERENCE")
DATA = os.environ.get("SUFFICE_DATA")
RUNS = ["GPR_power_plant", "BRR_power_plant", "BLR_grid_stability_c"]


def digits(n: int, seed: int) -> Digits:
    """Bars at ten heights, with noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(10, size=n)
    images: Any = 0.3 * rng.random((n, 28, 28), dtype=np.float32)
    for image, label in zip(images, labels, strict=True):
        image[4 + 2 * label : 6 + 2 * label, 4:24] = 1.0
    return Digits(images, labels)


def test_the_published_error_by_hand() -> None:
    probabilities = np.array([[1.0, 0.0], [0.25, 0.75]])
    first = -np.log(np.e / (np.e + 1.0))
    second = -np.log(np.exp(0.25) / (np.exp(0.25) + np.exp(0.75)))
    assert published_error(probabilities, np.array([0, 0])) == pytest.approx((first + second) / 2, rel=1e-12)
    # Even a network that is always right and sure of it has this error left.
    sure = np.eye(10)
    assert published_error(sure, np.arange(10)) == pytest.approx(-np.log(np.e / (np.e + 9.0)), rel=1e-12)
    assert published_error(sure, np.arange(10)) > 1.46
    assert published_error(np.full((3, 10), 0.1), np.zeros(3, dtype=int)) == pytest.approx(np.log(10.0))


@pytest.mark.skipif(FOLDER is None, reason="reference runs: SUFFICE_REFERENCE is not set")
@pytest.mark.parametrize("name", RUNS)
def test_the_correlation_of_the_published_runs(name: str) -> None:
    run = np.load(Path(FOLDER or "") / f"{name}.npz")
    found = correlation(run["error_ratio"], run["error"], counted_from=10)
    assert found == pytest.approx(float(run["correlation"]), abs=1e-6)


def test_the_correlation_by_hand() -> None:
    ratio = np.array([9.0, 1.0, 0.8, 0.9, 0.5, 0.5, 0.7, 0.1])
    error = np.array([0.0, 5.0, 4.0, 99.0, 2.0, 3.0, 99.0, 1.0])
    # As low as never before, from the step on that is the first to count: 1, 0.8, 0.5 twice, 0.1.
    expected = np.corrcoef([1.0, 0.8, 0.5, 0.5, 0.1], [5.0, 4.0, 2.0, 3.0, 1.0])[0, 1]
    assert correlation(ratio, error, 1) == pytest.approx(expected, rel=1e-12)
    later = np.corrcoef([0.8, 0.5, 0.5, 0.1], [4.0, 2.0, 3.0, 1.0])[0, 1]
    assert correlation(ratio, error, 2) == pytest.approx(later, rel=1e-12)


def test_the_published_settings() -> None:
    model = published_network(3)
    assert (experiments.INITIAL, experiments.BATCH, experiments.STEPS) == (1000, 5, 99)
    expected: dict[str, Any] = {
        "network": "mnist",
        "epochs": 5,
        "warm_epochs": 5,
        "batch_size": None,
        "train_samples": 5,
        "samples": 5,
        "learning_rate": 1e-3,
        "weight_decay": 0.0,
        "keep_optimizer": True,
        "dropout": 0.5,
        "sigma": 1.0,
        "approximation": "dropout",
        "classes": tuple(range(10)),
        "seed": 3,
    }
    found = model.get_params()
    assert {name: found[name] for name in expected} == expected
    assert published_network(3, epochs=2, device="cpu").get_params()["epochs"] == 2


def small_run(monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    pytest.importorskip("torch", reason="torch is not installed")
    monkeypatch.setattr(experiments, "INITIAL", 30)
    settings: dict[str, Any] = {"steps": 2, "device": "cpu", "epochs": 2, "warm_epochs": 1, **options}
    return published_run(digits(60, 0), digits(25, 1), **settings)


@cache
def plain_run(steps: int, seed: int) -> Trace:
    """A small run without a checkpoint, taken once."""
    with pytest.MonkeyPatch.context() as patched:
        found: Trace = small_run(patched, steps=steps, seed=seed)
        return found


@pytest.mark.slow
def test_two_rounds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    trace = small_run(monkeypatch, checkpoint=tmp_path / "run", progress=lambda *done: told.append(done))
    assert (len(trace.initial), trace.indices.shape, trace.n_labelled.tolist()) == (30, (2, 5), [35, 40])
    assert len(np.unique([*trace.initial, *trace.indices.ravel()])) == 40
    assert trace.about["acquisition"] == "batchbald"
    assert told == [(1, 2), (2, 2)]
    shapes = {name: values.shape for name, values in trace.measures.items()}
    assert shapes == {
        "loss": (2,),
        "contributions": (2, 4),
        "accuracy": (2,),
        "calibration_error": (2,),
        "published_error": (2,),
    }
    np.testing.assert_allclose(trace.measures["contributions"].sum(axis=1), trace.kl_new_old, rtol=1e-12)
    np.testing.assert_array_equal(trace.kl_new_old, trace.kl_old_new)
    # A cross entropy of ten probabilities taken for logits lies between these, whatever they are.
    assert (trace.measures["published_error"] > 1.46).all()
    assert (trace.measures["published_error"] < np.log(np.e + 9.0)).all()
    # Going on from the file gives the rounds that were taken, and a third.
    longer = small_run(monkeypatch, checkpoint=tmp_path / "run", steps=3)
    np.testing.assert_array_equal(longer.kl_new_old[:2], trace.kl_new_old)
    np.testing.assert_array_equal(longer.measures["published_error"][:2], trace.measures["published_error"])
    np.testing.assert_array_equal(longer.kl_new_old, plain_run(3, 0).kl_new_old)


KILLED = """
from pathlib import Path
import numpy as np
from suffice_research.data.set_readers import Digits
from suffice_research.paper import experiments
experiments.INITIAL = 30
data = np.load("data.npz")
train, test = (Digits(data[f"{part}_images"], data[f"{part}_labels"]) for part in ("train", "test"))
options = {"steps": 4, "device": "cpu", "epochs": 2, "warm_epochs": 1, "checkpoint": Path("run")}
experiments.published_run(train, test, progress=lambda done, _: print(done, flush=True), **options).save("trace.npz")
"""


@pytest.mark.slow
def test_a_run_killed_at_random_moments_and_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"train": digits(60, 0), "test": digits(25, 1)}
    np.savez("data.npz", **{f"{name}_{part}": getattr(parts[name], part) for name in parts for part in Digits._fields})
    rng, command = np.random.default_rng(), [sys.executable, "-c", KILLED]
    for kill in (True, False):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            if kill:
                # Once a round is done; then in the middle of whatever it is at.
                assert process.stdout.readline()
                time.sleep(float(rng.uniform(0.0, 0.1)))
                process.send_signal(signal.SIGKILL)
            process.communicate()
        assert process.returncode == (-signal.SIGKILL if kill else 0)
        assert Path("run").exists()
    found, expected = Trace.load("trace.npz"), small_run(monkeypatch, steps=4)
    for name in ("initial", "indices", "n_labelled", "kl_new_old", "kl_old_new", "error"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert set(found.measures) == set(expected.measures)
    for name, values in expected.measures.items():
        np.testing.assert_array_equal(found.measures[name], values)


@pytest.mark.slow
def test_rounds_without_labels_move_the_weights_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "INITIAL", 30)
    train, test = digits(60, 0), digits(25, 1)
    trace = unlabelled_run(train, test, seed=4, steps=2, device="cpu", epochs=2, warm_epochs=1)
    bought = plain_run(1, 4)
    np.testing.assert_array_equal(trace.initial, bought.initial)
    assert (len(trace.indices), trace.n_labelled.tolist()) == (0, [35, 40])
    model = published_network(4, device="cpu", epochs=2, warm_epochs=1)
    model.fit(train.images[trace.initial], train.labels[trace.initial])
    old = model.posterior
    model.learn(model.X_, model.y_)
    assert trace.kl_new_old[0] == float(kl(model.posterior, old)) > 0.0
    np.testing.assert_array_equal(trace.kl_new_old, trace.kl_old_new)
    assert trace.error.shape == trace.measures["accuracy"].shape == (2,)


@pytest.mark.slow
def test_seeds_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (small_run(monkeypatch, steps=1, seed=seed, train_samples=1, samples=2) for seed in (0, 4))
    assert first.initial.tolist() != second.initial.tolist()
    assert first.kl_new_old[0] != second.kl_new_old[0]


@pytest.mark.slow
@pytest.mark.skipif(DATA is None, reason="MNIST: SUFFICE_DATA is not set")
def test_a_round_on_real_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "INITIAL", 150)
    train, test = (read_mnist(Path(DATA or "") / "mnist", part) for part in ("train", "test"))
    pool, held = Digits(train.images[:300], train.labels[:300]), Digits(test.images[:200], test.labels[:200])
    trace = published_run(pool, held, steps=1, device="cpu", epochs=40, train_samples=1, batch_size=32)
    assert trace.measures["accuracy"][0] > 0.6
    assert trace.error[0] < np.log(10.0)
    assert 1.46 < trace.measures["published_error"][0] < np.log(10.0)
