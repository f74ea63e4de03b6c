"""`suffice audit`: labels in the order in which they came, without a test set."""

import csv
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from suffice import ErrorStability, LabelWorth, Trace, audit
from suffice.cli.app import app
from suffice.errors import InvalidValueError
from suffice.models import BayesianRidge
from suffice.tables import read_table

RUN = CliRunner()
DATA = os.environ.get("SUFFICE_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="people's tables: SUFFICE_DATA is not set")
RIDGE = ["--model", "ridge", "--basis", "0"]


def write(name: str, **columns: Iterable[object]) -> str:
    with Path(name).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return name


def labelled(rows: int = 120) -> str:
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, rows))
    kind = rng.choice(["a", "b"], rows)
    y = x - 2.0 * z + 0.5 * (kind == "a") + rng.normal(0.0, 0.1, rows)
    answer = np.where(y + rng.normal(0.0, 0.5, rows) > 0.0, "yes", "no")
    z_text = ["" if k % 20 == 7 else f"{v:.3f}" for k, v in enumerate(z)]
    return write("labelled.csv", x=x.round(3), z=z_text, kind=kind, y=y.round(3), answer=answer)


def result(*arguments: str) -> dict[str, Any]:
    done = RUN.invoke(app, ["audit", *arguments, "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.usefixtures("real_figure")
def test_it_is_the_audit_of_the_table_in_its_own_order() -> None:
    found = result(labelled(), "--target", "y", "--ignore", "answer", *RIDGE, "--threshold", "0.2", "--save", "a.npz")
    table = read_table(Path("labelled.csv"), "y", ignore=["answer"])
    # Another record follows the run in other steps, which differ by rounding.
    trace = audit(BayesianRidge(fit_intercept=True), table.X, table.y, record=())
    verdicts = trace.replay(ErrorStability(0.2))
    assert found["curve"]["ratio"] == [verdict.value for verdict in verdicts]
    stop = next(verdict for verdict in verdicts if verdict.stop)
    assert (found["stopped"], found["labels"], found["reason"]) == (True, stop.n_labelled, stop.reason)
    assert found["labels"] + found["saved"] == found["pool"] == found["rows"] == 120
    assert found["acquisition"] == "order"
    assert found["error_name"] is found["error_at_stop"] is found["error_at_end"] is None
    assert found["curve"]["error"] == []
    assert found["curve"]["n_labelled"] == list(range(11, 121))
    assert Path("suffice-audit.png").read_bytes().startswith(b"\x89PNG")
    assert Trace.load("a.npz").indices.tolist() == list(range(10, 120))


def test_the_same_fields_as_a_run_has() -> None:
    options = [labelled(), "--target", "y", *RIDGE, "--most", "30", "--json"]
    audited, run = (json.loads(RUN.invoke(app, [command, *options]).stdout) for command in ("audit", "run"))
    assert [name for name in audited if name not in ("later_rows", "orders")] == list(run)


def test_classes() -> None:
    found = result(labelled(), "--target", "answer", "--ignore", "y", "--threshold", "0.4", "--orders", "0")
    assert (found["task"], found["model"]) == ("classification", "logistic")
    assert len(found["curve"]["ratio"]) == 110


@pytest.mark.usefixtures("real_figure")
def test_a_person_is_told_what_came_out() -> None:
    options = ["--target", "y", "--ignore", "answer", *RIDGE, "--threshold", "0.2", "--figure", "a.pdf"]
    shown = RUN.invoke(app, ["audit", labelled(), *options]).output
    for words in (
        "labelled.csv: 120 rows, 4 features, target 'y'",
        "Regression; model: Bayesian ridge regression; 120 rows in the order of the file",
        "- column 'z': 6 missing values filled with the median",
        "Labelling could have stopped at ",
        " of 120 labels: the error ratio",
        " rows labelled after that, typical error (root mean square): ",
        " with all other labels.",
        "In 5 random orders of the same rows: ",
        "Labels that would have been saved: ",
        "Certificate: ",
        "Figure: a.pdf",
    ):
        assert words in shown
    assert "Test error" not in shown
    assert Path("a.pdf").read_bytes().startswith(b"%PDF")


def test_only_the_first_labels_and_in_batches() -> None:
    found = result(labelled(), "--target", "y", *RIDGE, "--most", "40", "--batch", "7", "--initial", "5")
    assert found["curve"]["n_labelled"] == [12, 19, 26, 33, 40]
    assert found["pool"] == 120


def test_never_enough_is_said_with_the_forecast() -> None:
    shown = RUN.invoke(app, ["audit", labelled(), "--target", "y", *RIDGE, "--threshold", "0.001"]).output
    assert "Not enough within all 120 labels: the error ratio" in shown
    assert "Figure: suffice-audit.png" in shown


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sorted_by", ["y", "answer"])
def test_labels_that_came_sorted(sorted_by: str) -> None:
    """The first labels are all of one class, or nearly one number."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=60))
    name = write("sorted.csv", x=x.round(4), y=np.maximum(x, 0.0).round(4), answer=np.where(x > 0, "yes", "no"))
    other = "answer" if sorted_by == "y" else "y"
    found = result(name, "--target", sorted_by, "--ignore", other, "--threshold", "0")
    assert len(found["curve"]["ratio"]) == 50
    assert None not in found["curve"]["ratio"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "why"], "has no column 'why'"),
        (["--target", "answer", "--task", "regression"], "must hold numbers for regression"),
        (["--target", "y", "--initial", "400"], "has 120 rows with a target, fewer than the 400 initial labels"),
        (["--target", "y", "--initial", "0"], "--initial must be a whole number, 1 or more, not 0"),
        (["--target", "y", "--threshold", "2"], "threshold must be a number from 0 to 1"),
        (["--target", "y", "--batch", "0"], "--batch must be a whole number, 1 or more, not 0"),
        (["--target", "y", "--most", "5"], "--most must be 0 (no limit) or at least 11"),
        (["--target", "y", "--model", "logistic"], "--model logistic is for classification"),
        (["--target", "answer", "--model", "ridge"], "--model ridge is for regression"),
        (["--target", "y", "--error-cost", "2", "--mistake-cost", "2"], "both say what errors cost"),
        (["--target", "y", "--orders", "-1"], "--orders must be a whole number, 0 or more, not -1"),
        (["--target", "y", "--rule", "stability"], "Did you mean ErrorStability?"),
        (["--target", "y", "--rule", "EntropyMax"], "requires pool_max_entropy, which --model gp does not provide"),
    ],
)
def test_what_cannot_be_used_gets_a_sentence(options: list[str], words: str) -> None:
    done = RUN.invoke(app, ["audit", labelled(), *options])
    assert isinstance(done.exception, InvalidValueError), done.exception
    assert words in str(done.exception)
    assert [path.name for path in Path().iterdir()] == ["labelled.csv"]


def test_a_file_that_is_not_there_or_empty() -> None:
    Path("empty.csv").touch()
    for name, words in (("nothere.csv", "there is no file"), ("empty.csv", "is empty")):
        done = RUN.invoke(app, ["audit", name, "--target", "y"])
        assert isinstance(done.exception, InvalidValueError)
        assert words in str(done.exception)


def test_two_costs_on_labels_in_the_order_they_came() -> None:
    costs = ["--error-cost", "200", "--label-cost", "1"]
    found = result(labelled(), "--target", "y", "--ignore", "answer", *RIDGE, *costs)
    table = read_table(Path("labelled.csv"), "y", ignore=["answer"])
    rule = LabelWorth(200.0, 1.0)
    verdicts = audit(BayesianRidge(fit_intercept=True), table.X, table.y).replay(rule)
    stop = next(verdict for verdict in verdicts if verdict.stop)
    assert (found["labels"], found["reason"]) == (stop.n_labelled, stop.reason)
    assert found["curve"]["value"] == [verdict.value for verdict in verdicts]
    assert found["rule"]["name"] == "LabelWorth"
    # Without a test set nobody knows what would have been best.
    assert found["best_in_hindsight"] is None


@pytest.mark.slow
def test_a_rule_by_its_name() -> None:
    options = ["--target", "answer", "--ignore", "y", "--rule", "stabilizingpredictions", "--threshold", "0.9"]
    shown = RUN.invoke(app, ["audit", labelled(), *options]).output
    assert "Value of StabilizingPredictions, and its threshold 0.9" in shown
    assert " of 120 labels: the mean of the last 3 kappas, " in shown
    assert "Figure: suffice-audit.png" in shown
    assert result("labelled.csv", *options)["rule"]["threshold"] == 0.9


@pytest.mark.parametrize("option", ["--acquisition=random", "--seed=1", "--test=0.2"])
def test_what_belongs_to_a_run_is_unknown_here(option: str) -> None:
    done = RUN.invoke(app, ["audit", labelled(), "--target", "y", option])
    assert done.exit_code == 2
    assert "No such option" in done.output


def test_interrupt_gets_a_sentence_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("suffice.learner.audit", interrupted)
    done = RUN.invoke(app, ["audit", labelled(), "--target", "y"])
    assert done.exit_code == 1
    assert "suffice: interrupted; no file was left half-written. Run suffice audit to start again." in done.stderr
    assert [path.name for path in Path().iterdir()] == ["labelled.csv"]


def test_help_has_an_example() -> None:
    shown = RUN.invoke(app, ["audit", "--help"], env={"COLUMNS": "80"}).output
    assert "Example: suffice audit labelled.csv --target spam" in shown
    assert "--error-cost" in shown


@pytest.mark.slow
@needs_data
def test_adult() -> None:
    path = str(Path(DATA or "") / "tables" / "adult.csv")
    found = result(path, "--target", "class", "--most", "150", "--orders", "1")
    assert (found["task"], found["pool"]) == ("classification", 32561)
    assert len(found["curve"]["value"]) == 140


@pytest.mark.slow
@needs_data
def test_grid_stability() -> None:
    path = str(Path(DATA or "") / "uci" / "grid_stability.csv")
    found = result(path, "--target", "stab", "--ignore", "stabf", "--most", "100", "--orders", "1")
    assert (found["task"], found["pool"]) == ("regression", 10000)
    assert len(found["curve"]["value"]) == 90


@pytest.mark.slow
def test_the_error_at_the_stop_and_in_other_orders() -> None:
    options = ["--target", "answer", "--ignore", "y", "--json"]
    found = result(labelled(), *options[:-1], "--orders", "2")
    later = found["later_rows"]
    assert found["labels"] + later["rows"] == 120
    assert 0.0 <= later["error_at_end"] <= 1.0
    assert found["decision"]["error"]["value"] == later["error"]
    assert len(found["orders"]) == 2
    for order in found["orders"]:
        assert order["n_labelled"] + order["rows"] == 120
        assert 0.0 <= order["error"] <= 1.0
    # The orders are always the same.
    assert result("labelled.csv", *options[:-1], "--orders", "2")["orders"] == found["orders"]
    shown = RUN.invoke(app, ["audit", "labelled.csv", *options[:-1], "--orders", "2"]).output
    assert f"On the {later['rows']} rows labelled after that: " in shown
    assert "In 2 random orders of the same rows: stop at " in shown
    assert result("labelled.csv", *options[:-1], "--orders", "0")["orders"] == []


@pytest.mark.slow
def test_orders_that_would_take_long_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.cli.table_commands._MOST_SECONDS", 0.0)
    options = ["--target", "y", "--ignore", "answer", *RIDGE]
    shown = RUN.invoke(app, ["audit", labelled(), *options]).output
    assert "How much this depends on the order was not measured: 5 other orders would take " in shown
    assert "request them with --orders 5." in shown
    assert result("labelled.csv", *options)["orders"] is None
    assert len(result("labelled.csv", *options, "--orders", "2")["orders"]) == 2


def test_the_error_that_is_wanted() -> None:
    options = ["--target", "answer", "--ignore", "y", "--orders", "0", "--target-error", "0.1%"]
    decision = result(labelled(), *options)["decision"]
    # No check has shown that it is out of reach.
    assert (decision["answer"], decision["target_out_of_reach"]) == ("keep going", False)
    assert (decision["plan"]["target"], decision["plan"]["check_now"]) == (0.001, False)


@pytest.mark.slow
def test_a_sorted_file_is_unlike_a_random_order() -> None:
    rng = np.random.default_rng(0)
    x = np.sort(rng.normal(size=150))
    kind = np.where(x < -0.4, "a", np.where(x < 0.5, "b", "c"))
    name = write("sorted.csv", x=x.round(4), z=rng.normal(size=150).round(4), kind=kind)
    options = ["audit", name, "--target", "kind", "--orders", "3", "--batch", "3"]
    shown = RUN.invoke(app, options).output
    assert "The order of the file is unlike a random one, which matters here: check whether" in shown
    order = rng.permutation(150)
    write("sorted.csv", x=x[order].round(4), z=rng.normal(size=150).round(4), kind=kind[order])
    assert "unlike a random one" not in RUN.invoke(app, options).output
