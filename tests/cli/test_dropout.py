"""The commands with a network: the demonstration on digits, tables with classes, and what they say without torch."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_wine
from typer.testing import CliRunner

from suffice import Trace
from suffice.cli import main
from suffice.cli.app import app
from suffice.errors import InvalidValueError, TrainingDivergedError
from suffice.models.factory import make_model
from suffice.tables.example_data import digits_task
from tests.processes import run_suffice

RUN = CliRunner()
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


class Absent:
    """Finds no torch, as where it is not installed."""

    def find_spec(self, name: str, *_: object) -> None:
        if name.split(".", maxsplit=1)[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main_without_torch() -> None:
    """The command in a process that cannot import torch."""
    assert "torch" not in sys.modules, "it is imported before it is needed"
    sys.meta_path.insert(0, Absent())
    main()


def without_torch(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_suffice(*arguments, function=f"{__name__}:{main_without_torch.__name__}")


def wine() -> str:
    X, y = load_wine(return_X_y=True)
    names = np.array(["barolo", "grignolino", "barbera"])[y]
    order = np.random.default_rng(0).permutation(len(X))
    lines = [",".join([*(f"x{k}" for k in range(X.shape[1])), "kind"])]
    lines += [",".join([*(str(value) for value in X[row]), names[row]]) for row in order]
    Path("wine.csv").write_text("\n".join(lines))
    return "wine.csv"


@pytest.mark.slow
@pytest.mark.usefixtures("real_figure")
@needs_torch
def test_the_demonstration_stops_early_with_nearly_the_accuracy_of_all_labels() -> None:
    done = RUN.invoke(app, ["demo", "--model", "dropout", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert (found["task"], found["pool"], found["stopped"], found["threshold"]) == ("classification", 1257, True, 0.2)
    assert found["labels"] + found["check_labels"] + found["saved"] == 1257
    assert 1.0 - found["accuracy_at_stop"] < found["guaranteed"] < 0.2
    assert found["saved"] > 0.5 * 1257
    assert found["accuracy_at_stop"] > 0.93
    assert found["accuracy_at_stop"] > found["accuracy_with_all"] - 0.03
    assert "Nothing is guaranteed" in found["certificate"]
    assert Path("suffice-demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@needs_torch
def test_the_demonstration_tells_a_person_what_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = digits_task(np.random.default_rng(0))
    small = replace(whole, X_pool=whole.X_pool[:125], y_pool=whole.y_pool[:125])
    monkeypatch.setattr("suffice.cli.demo_command.digits_task", lambda rng: small)
    done = RUN.invoke(app, ["demo", "--model", "dropout", "--threshold", "0.9"])
    assert done.exit_code == 0, done.output
    for words in ("Go on", "Stop at", "Labels saved:", "of the test items predicted wrong at the stop", "Certificate:"):
        assert words in done.output
    assert done.output.index("predicted wrong") < done.output.index("Test error (cross entropy)")
    # Fifty first, sevenfold ten, and the last five.
    assert "of 125 (" in done.output


def test_a_network_does_not_predict_numbers() -> None:
    with pytest.raises(InvalidValueError, match="--model dropout predicts classes; leave --task out"):
        RUN.invoke(app, ["demo", "--model", "dropout", "--task", "regression"], catch_exceptions=False)


@pytest.mark.parametrize("command", [["demo"], ["run", "wine.csv", "--target", "kind"]])
def test_without_torch_the_pip_line_is_the_answer(command: list[str]) -> None:
    wine()
    done = without_torch(*command, "--model", "dropout")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "-m pip install 'torch>=" in done.stderr


@pytest.mark.slow
def test_without_torch_the_rest_works() -> None:
    assert without_torch("--help").returncode == 0
    done = without_torch("run", wine(), "--target", "kind", "--most", "40", "--json")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@needs_torch
def test_run_on_a_table() -> None:
    arguments = ["run", wine(), "--target", "kind", "--model", "dropout", "--most", "70", "--save", "run.npz", "--json"]
    arguments += ["--rule", "ErrorStability"]
    done = RUN.invoke(app, arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert (found["model"], found["acquisition"]) == ("dropout", "batchbald")
    assert (found["initial"], found["batch"], found["threshold"]) == (50, 5, 0.2)
    assert found["accuracy_at_end"] > 0.85
    trace = Trace.load("run.npz")
    assert len(trace) == 4
    assert trace.measures["contributions"].sum(axis=1) == pytest.approx(trace.kl_new_old)
    assert trace.measures["accuracy"][-1] == found["accuracy_at_end"]


@pytest.mark.slow
@needs_torch
def test_run_takes_what_it_is_told() -> None:
    options = ["--initial", "20", "--batch", "10", "--acquisition", "entropy", "--most", "60", "--test", "0"]
    done = RUN.invoke(app, ["run", wine(), "--target", "kind", "--model", "dropout", *options])
    assert done.exit_code == 0, done.output
    assert "a network with dropout" in done.output


@pytest.mark.slow
@needs_torch
def test_audit_on_a_table() -> None:
    options = ["--target", "kind", "--model", "dropout", "--most", "65", "--orders", "1", "--json"]
    done = RUN.invoke(app, ["audit", wine(), *options])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert (found["model"], found["acquisition"], len(found["curve"]["n_labelled"])) == ("dropout", "order", 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--basis", "5"], "--basis goes with the model ridge or logistic, and a network with dropout takes none"),
        pytest.param(
            ["--acquisition", "variance"],
            "acquisition for network is one of batchbald, bald, entropy",
            marks=needs_torch,
        ),
        (["--task", "regression", "--target", "x0"], "--model dropout is for classification"),
    ],
)
def test_what_does_not_go_with_a_network(options: list[str], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        RUN.invoke(app, ["run", wine(), "--target", "kind", "--model", "dropout", *options], catch_exceptions=False)


@pytest.mark.slow
@needs_torch
def test_a_loss_that_is_no_number_ends_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def explosive(name: str, **options: Any) -> Any:
        return make_model(name, **options).set_params(learning_rate=1e25)

    monkeypatch.setattr("suffice.cli.table_run.make_model", explosive)
    with pytest.raises(TrainingDivergedError, match=r"round \d+: .*Lower learning_rate"):
        RUN.invoke(app, ["run", wine(), "--target", "kind", "--model", "dropout"], catch_exceptions=False)


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize("model", [pytest.param("dropout", marks=needs_torch), "logistic"])
def test_classes_that_nobody_has_met_are_told(model: str) -> None:
    X, y = load_wine(return_X_y=True)
    rows = [f"{a},{b},{kind}" for a, b, kind in zip(X[:, 0], X[:, 6], y, strict=True)]
    Path("sorted.csv").write_text("\n".join(["a,b,kind", *rows]))
    arguments = ["audit", "sorted.csv", "--target", "kind", "--task", "classification", "--model", model]
    options = ["--initial", "20", "--batch", "5", "--most", "50", "--orders", "0"]
    done = RUN.invoke(app, [*arguments, *options])
    assert done.exit_code == 0, done.output
    result = " ".join(done.output.split("\n\n", maxsplit=1)[1].split())
    assert result.startswith("Warning: 2 of the 3 classes have no label "), "the warning comes before the numbers"
    assert "The model cannot predict them, so do not rely on the" in result
    assert json.loads(RUN.invoke(app, [*arguments, *options, "--json"]).output)["classes_not_met"] == 2
