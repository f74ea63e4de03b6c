"""`suffice run` on the workers of a Dask cluster, interrupted runs that go on, and tables that do not fit."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from typer.testing import CliRunner

import suffice.engines.disk_rows
from suffice.cli.app import app
from suffice.errors import CheckpointError, InvalidValueError, NotEnoughMemoryError, SufficeError
from tests.processes import environment

arrow: Any = pytest.importorskip("pyarrow", reason="Parquet: pyarrow is not installed")
parquet: Any = pytest.importorskip("pyarrow.parquet", reason="Parquet: pyarrow is not installed")
RUN = CliRunner()
pytestmark = pytest.mark.filterwarnings("default")


def table(rows: int, *, classes: bool = False) -> str:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3))
    y: Any = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=rows)
    y = np.where(y > 0.0, "up", "down") if classes else y
    parquet.write_table(arrow.table({**{f"x{k}": X[:, k] for k in range(3)}, "y": y}), "big.parquet")
    return "big.parquet"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def command(*options: str) -> list[str]:
    return ["run", "big.parquet", "--target", "y", "--acquisition", "variance", *options]


def test_a_cluster_is_started_or_joined(cluster: Any, tmp_path: Path) -> None:
    table(600)

    def picked(*more: str) -> Any:
        given = command("--most", "40", "--json", "--random-share", "0.2", "--save", "run.npz", *more)
        result = json.loads(RUN.invoke(app, given, catch_exceptions=False).stdout)
        return result["labels"], np.load("run.npz")["indices"].tolist()

    found = [picked(), picked(*_started(1)), picked("--scheduler", cluster.cluster.scheduler_address)]
    assert found[0] == found[1] == found[2]
    assert not list(tmp_path.glob("*checkpoint*"))


@pytest.mark.slow
def test_classes_on_workers() -> None:
    pytest.importorskip("distributed", reason="distributed is not installed")
    table(600, classes=True)
    found = []
    for more in ([], _started(1)):
        given = ["run", "big.parquet", "--target", "y", "--most", "40", "--json", "--save", "run.npz", *more]
        assert RUN.invoke(app, given, catch_exceptions=False).exit_code == 0
        found.append(np.load("run.npz")["indices"].tolist())
    assert found[0] == found[1]


def _started(workers: int) -> list[str]:
    return ["--engine", "dask", "--workers", str(workers)]


def labelled(path: Path) -> int:
    """Labels in a checkpoint; -1 if there is none."""
    try:
        return sum(map(len, json.loads(path.read_text())["groups"]))
    except OSError:
        return -1


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], _started(2)])
def test_an_interrupted_run_goes_on_with_the_same_picks(tmp_path: Path, workers: list[str]) -> None:
    table(20_000)
    saved = tmp_path / "labels.json"
    options = command("--most", "1500", "--json", "--checkpoint", str(saved), "--save", "run.npz", *workers)
    # A process of its own, with the workers in its group, as in a terminal; this one may ignore the signal.
    start = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import suffice.cli as c; c.main()"
    process = subprocess.Popen(
        [sys.executable, "-c", start, *options],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 120.0
    while labelled(saved) < 30 and time.monotonic() < end and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    sentence = (
        f"interrupted; the labels so far are saved in {saved}. Give the same command with --checkpoint {saved} to go "
        "on from there."
    )
    assert json.loads(err) == {"error": sentence, "code": "interrupted", "exit_status": 1}
    before = labelled(saved)
    assert 30 <= before < 1490
    shorter = ["--most", str(before + 100), "--save", "run.npz", "--json"]
    resumed = RUN.invoke(app, command(*shorter, "--checkpoint", str(saved)), catch_exceptions=False)
    first = np.load("run.npz")["indices"]
    whole = RUN.invoke(app, command(*shorter), catch_exceptions=False)
    np.testing.assert_array_equal(first, np.load("run.npz")["indices"])
    assert json.loads(resumed.stdout)["labels"] == json.loads(whole.stdout)["labels"]


def test_large_pools_are_saved_without_being_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(600)
    monkeypatch.setattr("suffice.cli.table_commands._LARGE_POOL", 100)
    saved = tmp_path / "suffice-run.checkpoint"
    saved.write_text("something else")
    interrupt: Any = patch("suffice.learner.simulation.RunRecorder.step", side_effect=KeyboardInterrupt)
    with interrupt:
        result = RUN.invoke(app, command("--most", "30"))
    assert (result.exit_code, labelled(saved)) == (1, 0)
    assert "saved in suffice-run.checkpoint. Give the same command with --checkpoint suffice-run.che" in result.stderr
    assert RUN.invoke(app, command("--most", "30"), catch_exceptions=False).exit_code == 0
    assert not saved.exists()
    saved.write_text("something else")
    with pytest.raises(CheckpointError, match="is not a run that suffice saved"):
        RUN.invoke(app, command("--most", "30", "--checkpoint", str(saved)), catch_exceptions=False)


def test_a_table_that_does_not_fit_is_reported_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    table(600)
    monkeypatch.setattr(suffice.engines.disk_rows, "free_memory", lambda: 10_000)
    with (
        patch("suffice.cli.table_run.read_table", side_effect=AssertionError),
        pytest.raises(
            NotEnoughMemoryError, match=r"big\.parquet has 600 rows of 4 columns.* 0\.1 MB of memory, and 0\.0 MB are"
        ),
    ):
        RUN.invoke(app, command("--most", "30"), catch_exceptions=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "2"], "--workers is for --engine dask"),
        (["--engine", "memory", "--scheduler", "tcp://h:1"], "--scheduler is for --engine dask"),
        (["--engine", "dask", "--workers", "0"], "--workers must be"),
        (["--scheduler", "tcp://h:1", "--workers", "2"], "leave one of them out"),
        (["--engine", "dask", "--positive", "up"], "--engine dask cannot be combined with --positive"),
        (["--checkpoint", "c", "--positive", "up"], "--checkpoint cannot be combined with --positive"),
        (
            ["--engine", "dask", "--model", "ridge", "--acquisition", "variance"],
            "variance cannot use --engine dask; give --acquisition",
        ),
        (["--engine", "dask", "--acquisition", "k-centre"], "k-centre cannot use --engine dask; give --acquisition"),
    ],
)
def test_options_that_do_not_fit(options: list[str], message: str) -> None:
    table(60)
    with pytest.raises(InvalidValueError, match=message):
        RUN.invoke(app, command("--most", "30", *options), catch_exceptions=False)


def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="distributed is not installed")
    monkeypatch.setattr("suffice.cli.table_commands._PATIENCE", 0.5)
    table(60)
    with pytest.raises(SufficeError, match=r"--scheduler tcp://127\.0\.0\.1:1: no Dask scheduler answers there"):
        RUN.invoke(app, command("--most", "30", "--scheduler", "tcp://127.0.0.1:1"), catch_exceptions=False)
