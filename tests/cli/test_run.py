"""`suffice run` on small tables of every kind, and what it says to whatever can go wrong."""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from suffice import Criterion, LabelWorth, StabilizingPredictions, Trace, Verdict
from suffice.cli.app import app
from suffice.cli.rule_options import named_rules
from suffice.cli.table_run import progress_bar
from suffice.errors import InvalidValueError, MissingExtraError, NotEnoughMemoryError, SufficeError
from tests.processes import run_suffice
from tests.thoroughness import some

RUN = CliRunner()
DATA = os.environ.get("SUFFICE_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="people's tables: SUFFICE_DATA is not set")

FIELDS = {
    "task",
    "model",
    "acquisition",
    "random_share",
    "rows",
    "pool",
    "features",
    "initial",
    "batch",
    "stopped",
    "labels",
    "saved",
    "decision",
    "sentences",
    "warning",
    "wrong_share_at_stop",
    "wrong_share_at_end",
    "error_at_stop",
    "error_at_end",
    "error_name",
    "accuracy_at_stop",
    "accuracy_at_end",
    "classes_not_met",
    "rule",
    "best_in_hindsight",
    "value",
    "threshold",
    "reason",
    "certificate",
    "forecast",
    "notes",
    "figure",
    "saved_trace",
    "curve",
}


def write(name: str, **columns: Iterable[object]) -> str:
    with Path(name).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return name


def houses(rows: int = 150) -> str:
    """A table with a target of numbers: numbers, a category, values that are missing."""
    rng = np.random.default_rng(0)
    area, age = rng.normal(100.0, 20.0, rows), rng.uniform(0.0, 80.0, rows)
    city = rng.choice(["Bonn", "Kiel"], rows)
    price = 3.0 * area - age + 40.0 * (city == "Kiel") + rng.normal(0.0, 5.0, rows)
    ages = ["" if k % 10 == 3 else f"{a:.1f}" for k, a in enumerate(age)]
    return write("houses.csv", area=area.round(1), age=ages, city=city, price=price.round(2))


def mails(rows: int = 150) -> str:
    """A table with a target of classes: a number, a category with values that are missing, texts."""
    rng = np.random.default_rng(1)
    spam = rng.random(rows) < 0.5
    words = {True: ["win", "money", "now", "free", "prize"], False: ["meeting", "report", "at", "noon", "lunch"]}
    texts = [
        " ".join(rng.choice(words[bool(s)], 4)) + " " + " ".join(rng.choice(words[bool(s)] + words[not s], 3))
        for s in spam
    ]
    sender = np.where(rng.random(rows) < 0.2, "?", rng.choice(["known", "new"], rows))
    length = np.where(spam, 2.0, 0.0) + rng.normal(size=rows)
    kind = np.where(spam, "spam", "ham")
    return write("mails.csv", length=length.round(3), sender=sender, text=texts, kind=kind)


def result(*arguments: str, figure: bool = False) -> dict[str, Any]:
    """The result as JSON; most tests do not look at the figure, which takes its time."""
    with nullcontext() if figure else patch.dict(sys.modules, {"matplotlib": None}):
        done = RUN.invoke(app, ["run", *arguments, "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("model", ["forest", "boosting"])
def test_trees_for_numbers(model: str) -> None:
    found = result(houses(60), "--target", "price", "--model", model, "--most", "20", "--tolerance", "3")
    assert (found["task"], found["model"], found["acquisition"]) == ("regression", model, "random")
    assert (found["initial"], found["batch"]) == (10, 5)
    assert found["error_at_end"] > 0.0
    refused = RUN.invoke(app, ["run", mails(), "--target", "kind", "--model", model, "--tolerance", "3"])
    assert "--tolerance is for numbers" in str(refused.exception)


@pytest.mark.usefixtures("real_figure")
def test_regression_as_json() -> None:
    found = result(houses(), "--target", "price", "--model", "ridge", "--basis", "0", "--threshold", "0.2", figure=True)
    assert set(found) == FIELDS | {"ratio"}
    assert (found["task"], found["model"], found["acquisition"]) == ("regression", "ridge", "random")
    assert (found["rows"], found["pool"], found["features"]) == (150, 120, 4)
    assert (found["initial"], found["batch"], found["threshold"]) == (10, 1, 0.2)
    assert found["stopped"] is True
    assert found["labels"] + found["saved"] == 120
    assert found["ratio"] <= 0.2
    assert "is at most the threshold 0.2" in found["reason"]
    assert "of the loss range" in found["certificate"]
    assert found["forecast"] is None
    assert found["error_name"] == "test error (root mean square)"
    assert found["wrong_share_at_stop"] is found["wrong_share_at_end"] is found["accuracy_at_end"] is None
    # The noise has deviation 5.
    assert 4.0 < found["error_at_end"] < 10.0
    assert 0.5 < found["error_at_stop"] / found["error_at_end"] < 2.0
    assert found["notes"] == [
        "column 'age': 15 missing values filled with the median 46.2",
        "column 'city': 2 categories, one-hot",
    ]
    assert Path(found["figure"]).read_bytes().startswith(b"\x89PNG")
    assert found["saved_trace"] is None
    curve = found["curve"]
    assert curve["n_labelled"] == list(range(11, 121))
    assert len(curve["ratio"]) == len(curve["error"]) == 110
    stop = curve["n_labelled"].index(found["labels"])
    assert min(curve["ratio"][:stop]) > 0.2 >= curve["ratio"][stop] == found["ratio"]
    assert curve["error"][stop] == found["error_at_stop"]
    assert curve["error"][-1] == found["error_at_end"]


def test_classification_with_categories_missing_values_and_text() -> None:
    found = result(mails(), "--target", "kind", "--threshold", "0.3", "--most", "80")
    assert (found["task"], found["model"], found["acquisition"]) == ("classification", "logistic", "margin")
    assert found["error_name"] == "test error (cross entropy)"
    assert 0.5 < found["accuracy_at_end"] <= 1.0
    assert found["wrong_share_at_end"] == found["curve"]["wrong_share"][-1] == 1.0 - found["accuracy_at_end"]
    assert found["curve"]["wrong_share"][found["curve"]["n_labelled"].index(found["labels"])] in (
        found["wrong_share_at_stop"] if found["stopped"] else found["wrong_share_at_end"],
    )
    assert 0.0 < found["error_at_end"] < 0.6
    assert found["curve"]["n_labelled"][-1] == 80
    notes = " ".join(found["notes"])
    assert "one-hot; " in notes
    assert "as 'missing'" in notes
    assert "column 'text': text, TF-IDF of words, word pairs and character n-grams" in notes


@pytest.mark.slow
def test_a_person_is_told_what_was_read_and_what_came_out() -> None:
    arguments = ["--model", "ridge", "--basis", "0", "--threshold", "0.2", "--figure", "curve.svg", "--save", "run.npz"]
    # A process that starts from nothing: other tests would not notice a module that nobody has imported.
    command = [sys.executable, "-c", "from suffice.cli import main; main()", "run", houses(), "--target", "price"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for words in (
        "houses.csv: 150 rows, 4 features, target 'price'",
        "Regression; model: Bayesian ridge regression; 120 rows to label and 30 to measure the error on",
        "- column 'age': 15 missing values filled with the median 46.2",
        "It simulates up to 120 labels: 10 at random, then 1 at each step.",
        "Error ratio, and the threshold 0.2",
        "Enough at ",
        " of 120 labels.\nYou can stop now: predictions for the ",
        "Details: by the rule ErrorStability, the error ratio ",
        "is at most the threshold 0.2.",
        "Labels that would have been saved: ",
        "Measured on 30 test rows, typical error (root mean square): ",
        " at the stop, ",
        " with all 120 labels; always predicting the mean: ",
        "Certificate: The last step changed",
        "Figure: curve.svg",
        "Run saved: run.npz",
    ):
        assert words in done.stdout
    assert Path("curve.svg").read_text().startswith("<?xml")
    assert sorted(path.name for path in Path().iterdir()) == ["curve.svg", "houses.csv", "run.npz"]


def test_where_it_is_not_enough_it_says_so_and_gives_the_forecast() -> None:
    options = ["--target", "price", "--model", "ridge", "--basis", "0", "--threshold", "0.01", "--most", "60"]
    shown = RUN.invoke(app, ["run", houses(), *options]).output
    assert "Not enough within 60 labels: the error ratio" in shown
    assert "Keep labelling: predictions for the 60 unlabelled items are typically off by about " in shown
    assert "It may take all of the remaining items." in shown or "more labels (" in shown
    assert "There are 120 rows to label: look further with --most" in shown
    assert "at the stop" not in shown
    assert " with 60 labels; " in shown
    found = result("houses.csv", *options)
    assert found["stopped"] is False
    assert found["labels"] == 60
    assert found["saved"] == 0
    assert found["error_at_stop"] is None
    assert set(found["forecast"]) == {"labels", "low", "high", "coverage"}
    to_the_end = RUN.invoke(app, ["run", "houses.csv", *options[:-1], "0"]).output
    assert "Not enough within all 120 labels: " in to_the_end
    assert "look further" not in to_the_end


def test_too_few_steps_to_judge_is_not_an_error() -> None:
    options = ["run", houses(), "--target", "price", "--most", "12"]
    shown = RUN.invoke(app, options).output
    assert "Not enough within 12 labels: there are too few labels" in shown
    assert "Keep labelling" not in shown
    shown = RUN.invoke(app, [*options, "--rule", "ErrorStability"]).output
    assert "Not enough within 12 labels: step 2 of the 10 that set the scale of the error ratio." in shown


@pytest.mark.parametrize("model", [["gp"], ["ridge"], ["ridge", "--basis", "3"]])
def test_models_for_regression(model: list[str]) -> None:
    found = result(houses(60), "--target", "price", "--most", "20", "--model", *model)
    assert found["model"] == model[0]
    assert np.isfinite(found["curve"]["error"]).all()


def test_a_basis_before_the_logistic_model() -> None:
    found = result(mails(80), "--target", "kind", "--ignore", "text", "--most", "20", "--basis", "3")
    assert found["model"] == "logistic"


def test_whole_numbers_are_classes_unless_said_otherwise() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    name = write("stars.csv", x=x.round(3), stars=np.clip(np.round(2 * x), -2, 2).astype(int))
    assert result(name, "--target", "stars", "--most", "15")["task"] == "classification"
    assert result(name, "--target", "stars", "--most", "15", "--task", "regression")["model"] == "gp"


def test_a_run_is_repeatable_and_its_seed_matters() -> None:
    options = [houses(), "--target", "price", "--model", "ridge", "--most", "40"]
    first, second, other = (result(*options, "--seed", seed) for seed in ("3", "3", "4"))
    assert first == second
    assert first["curve"]["error"] != other["curve"]["error"]


def test_a_share_of_the_labels_is_random() -> None:
    options = (
        houses(60),
        "--target",
        "price",
        "--model",
        "ridge",
        "--acquisition",
        "variance",
        "--most",
        "30",
        "--save",
        "run.npz",
    )
    found = result(*options, "--random-share", "0.25")
    trace = Trace.load("run.npz")
    assert (found["acquisition"], found["random_share"]) == ("variance", 0.25)
    assert (len(trace.random_items), int(trace.is_random.sum())) == (15, 5)
    assert result(*options)["random_share"] == 0.0


def test_batches_and_other_acquisitions() -> None:
    options = [houses(), "--target", "price", "--model", "ridge", "--most", "40", "--batch", "4"]
    found = result(*options, "--initial", "12", "--acquisition", "random", "--bound", "tight")
    assert found["curve"]["n_labelled"] == [16, 20, 24, 28, 32, 36, 40]
    assert (found["acquisition"], found["batch"], found["initial"]) == ("random", 4, 12)


@pytest.mark.usefixtures("real_figure")
def test_without_a_test_set_there_is_no_error() -> None:
    found = result(houses(), "--target", "price", "--model", "ridge", "--most", "40", "--test", "0", figure=True)
    assert found["pool"] == found["rows"] == 150
    assert found["error_name"] is found["error_at_end"] is None
    assert found["curve"]["error"] == []
    assert Path(found["figure"]).exists()


def test_columns_can_be_ignored() -> None:
    options = ["--target", "price", "--model", "ridge", "--basis", "0", "--most", "20"]
    assert result(houses(), *options, "--ignore", "city", "--ignore", "age")["features"] == 1


@pytest.mark.usefixtures("real_figure")
def test_gzipped_files_and_names_that_look_like_markup() -> None:
    x = np.random.default_rng(0).normal(size=40).round(3)
    columns: dict[str, Iterable[object]] = {"[bold]x$": x, "y$^": 2 * x, "[/]": ["u", "v"] * 20}
    name = write("$a$ [red] $_.csv", **columns)
    Path(f"{name}.gz").write_bytes(gzip.compress(Path(name).read_bytes()))
    done = RUN.invoke(app, ["run", f"{name}.gz", "--target", "y$^", "--most", "15"])
    assert done.exit_code == 0, done.exception
    assert "$a$ [red] $_.csv.gz: 40 rows, 3 features, target 'y$^'" in done.output
    assert "column '[/]': 2 categories" in done.output
    assert "Figure: suffice-run.png" in done.output


def test_a_saved_run_comes_back() -> None:
    options = ["--target", "price", "--model", "ridge", "--most", "50", "--save", "run.npz", "--rule", "ErrorStability"]
    found = result(houses(), *options)
    assert found["saved_trace"] == "run.npz"
    trace = Trace.load("run.npz")
    assert trace.n_labelled.tolist() == found["curve"]["n_labelled"]
    assert np.sqrt(trace.predictive_error).tolist() == found["curve"]["error"]
    assert trace.ratio().tolist() == found["curve"]["ratio"]
    assert trace.about["acquisition"] == "random"


LETTERS = [chr(97 + k % 26) for k in range(40)]


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (
            {"x": range(40), "y": [0.5 * k for k in range(40)]},
            ["--target", "Yy"],
            "has no column 'Yy'. Did you mean 'y'?",
        ),
        ({"x": range(40), "y": [""] * 40}, [], "target 'y' has no value at all"),
        ({"x": range(40), "y": ["a"] * 40}, [], "target 'y' has one value only"),
        ({"x": range(40), "y": [1.5] * 40}, ["--task", "regression"], "target 'y' has one value only"),
        (
            {"x": range(40), "y": LETTERS},
            ["--task", "regression"],
            "must hold numbers for regression, but line 2 holds 'a'",
        ),
        (
            {"x": range(9), "y": [0.5 * k for k in range(9)]},
            [],
            "9 rows with a target, of which 2 are held back for the test: 7 are left, fewer than the 10 initial labels",
        ),
        (
            {"x": range(12), "y": [0.5 * k for k in range(12)]},
            ["--batch", "5", "--test", "0"],
            "has 12 rows with a target, too few for 10 initial labels and a step of 5",
        ),
        (
            {"x": range(40), "y": LETTERS},
            ["--model", "gp"],
            "--model gp is for regression, and the task is classification",
        ),
        (
            {"x": range(40), "y": [0.5 * k for k in range(40)]},
            ["--model", "logistic"],
            "--model logistic is for classification, and the task is regression; use --model gp or --model ridge",
        ),
        ({"x": range(40), "y": LETTERS}, ["--ignore", "z"], "has no column 'z'"),
        ({"x": range(40), "y": LETTERS}, ["--ignore", "y"], "column 'y' is the target"),
    ],
)
def test_tables_that_cannot_be_used(columns: dict[str, Iterable[object]], options: list[str], words: str) -> None:
    done = RUN.invoke(app, ["run", write("t.csv", **columns), "--target", "y", *options])
    assert isinstance(done.exception, InvalidValueError), done.exception
    assert words in str(done.exception)
    assert [path.name for path in Path().iterdir()] == ["t.csv"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--threshold", "2"], "threshold must be a number from 0 to 1, not 2.0"),
        (["--test", "1.5"], "--test must be a number from 0 (no test set) to below 1, not 1.5"),
        (["--test", "-0.1"], "--test must be a number from 0"),
        (["--test", "nan"], "--test must be a number from 0"),
        (["--initial", "0"], "--initial must be a whole number, 1 or more, not 0"),
        (["--batch", "0"], "--batch must be a whole number, 1 or more, not 0"),
        (["--most", "-1"], "--most must be a whole number, 0 or more, not -1"),
        (["--most", "5"], "--most must be 0 (no limit) or at least 11, for 10 initial labels and a step of 1; not 5"),
        (["--seed", "-1"], "--seed must be a whole number, 0 or more, not -1"),
        (["--basis", "3"], "--basis goes with the model ridge or logistic, and a Gaussian process takes none"),
        (["--basis", "-3", "--model", "ridge"], "--basis must be a whole number, 0 or more, not -3"),
        (["--random-share", "1.5"], "--random-share must be a number from 0 to 1, not 1.5"),
        (["--random-share", "-0.1"], "--random-share must be a number from 0 to 1, not -0.1"),
        (["--random-share", "nan"], "--random-share must be a number from 0 to 1, not nan"),
        (["--acquisition", "luck"], "acquisition for regression is one of variance, "),
        (["--figure", "run.doc"], "must end in .pdf, .png, .svg"),
        (["--save", "houses.csv"], "the file houses.csv to save the run to must end in .npz"),
    ],
)
def test_options_that_cannot_be_used(options: list[str], words: str) -> None:
    done = RUN.invoke(app, ["run", houses(40), "--target", "price", *options])
    assert isinstance(done.exception, InvalidValueError), done.exception
    assert words in str(done.exception)
    assert [path.name for path in Path().iterdir()] == ["houses.csv"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nothere.csv", "--target", "y"], 2, "suffice: there is no file nothere.csv; check the name and the folder"),
        (["empty.csv", "--target", "y"], 2, "suffice: empty.csv is empty"),
        ([".", "--target", "y"], 2, "is a folder"),
        (["houses.csv"], 2, "--target"),
        (["--target", "price"], 2, "DATA"),
        (["houses.csv", "--target", "prize"], 2, "has no column 'prize'. Did you mean 'price'?"),
        (["houses.csv", "--target", "price", "--model", "tree"], 2, "logistic"),
        (["houses.csv", "--target", "price", "--task", "guess"], 2, "regression"),
        (["houses.csv", "--target", "price", "--initial", "500"], 2, "fewer than the 500 initial labels"),
        (["houses.csv", "--target", "price", "--figure", "nowhere/a.png"], 1, "nowhere does not exist"),
        (["houses.csv", "--target", "price", "--save", "nowhere/a.npz"], 1, "nowhere does not exist"),
        (["houses.csv", "--target", "price", "--save", "folder.npz"], 1, "folder.npz: it is a folder"),
    ],
)
def test_wrong_use_gets_a_sentence_and_no_traceback(arguments: list[str], code: int, words: str) -> None:
    houses(30)
    Path("empty.csv").touch()
    Path("folder.npz").mkdir()
    done = run_suffice("run", *arguments, COLUMNS="200")
    assert done.returncode == code
    assert words in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert {path.name for path in Path().iterdir()} == {"houses.csv", "empty.csv", "folder.npz"}


SHORT = ["--target", "price", "--model", "ridge", "--basis", "0", "--most", "20", "--rule", "ErrorStability"]


def test_files_that_cannot_be_written_lose_nothing_else() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full here")
    for name in ("run.png", "run.npz", "suffice-run.png"):
        Path(name).symlink_to(full)
    for option, message in (
        ("figure", "the figure cannot be written to run.png"),
        ("save", "run.npz cannot be written"),
    ):
        name = "run.png" if option == "figure" else "run.npz"
        done = RUN.invoke(app, ["run", houses(40), *SHORT, f"--{option}", name])
        assert isinstance(done.exception, SufficeError)
        assert not isinstance(done.exception, InvalidValueError)
        assert str(done.exception).startswith(f"{message}: No space left")
        assert "Not enough within 20 labels" in done.stdout
        as_json = json.loads(RUN.invoke(app, ["run", "houses.csv", *SHORT, f"--{option}", name, "--json"]).stdout)
        assert as_json["figure"] is None
        assert as_json["saved_trace"] is None
    by_default = RUN.invoke(app, ["run", "houses.csv", *SHORT])
    assert by_default.exit_code == 0
    assert "No figure: the figure cannot be written to suffice-run.png" in by_default.stdout


def test_an_older_file_stays_until_the_new_one_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(_: Trace, path: Path) -> None:
        path.write_bytes(b"half")
        raise SufficeError(f"{path} cannot be written: no")

    Path("run.npz").write_bytes(b"older")
    monkeypatch.setattr(Trace, "save", half)
    done = RUN.invoke(app, ["run", houses(40), *SHORT, "--save", "run.npz"])
    assert str(done.exception) == "run.npz cannot be written: no"
    assert Path("run.npz").read_bytes() == b"older"
    assert {path.name for path in Path().iterdir()} == {"houses.csv", "run.npz", "suffice-run.png"}


def test_a_read_only_folder_gets_a_sentence() -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    name = Path(houses(40)).absolute()
    folder = Path("shut")
    folder.mkdir(mode=0o555)
    done = run_suffice("run", str(name), *SHORT, "--save", "shut/run.npz")
    assert done.returncode == 1
    assert "is read-only" in done.stderr


def test_a_folder_without_permission_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.report.figures.os.access", lambda _, mode: mode != os.W_OK)
    done = RUN.invoke(app, ["run", houses(40), *SHORT])
    assert done.exit_code == 0
    assert "No figure: the figure cannot be written to suffice-run.png" in done.output
    assert "is read-only" in done.output
    for option in ("--figure=run.png", "--save=run.npz"):
        asked = RUN.invoke(app, ["run", "houses.csv", *SHORT, option])
        assert isinstance(asked.exception, SufficeError)
        assert not isinstance(asked.exception, InvalidValueError)
        assert "is read-only" in str(asked.exception)
        assert asked.output == ""


def test_without_matplotlib_it_works_and_says_how_to_get_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = RUN.invoke(app, ["run", houses(40), *SHORT])
    assert done.exit_code == 0
    assert re.search(r"-m pip install .*'matplotlib>=", done.output)
    assert result("houses.csv", *SHORT)["figure"] is None
    asked = RUN.invoke(app, ["run", "houses.csv", *SHORT, "--figure", "run.png"])
    assert isinstance(asked.exception, MissingExtraError)


def test_interrupt_gets_a_sentence_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("suffice.learner.simulate", interrupted)
    for more in ([], ["--json"]):
        done = RUN.invoke(app, ["run", houses(40), *SHORT, "--save", "run.npz", *more])
        assert done.exit_code == 1
        assert "suffice: interrupted; no file was left half-written." in done.stderr
        assert [path.name for path in Path().iterdir()] == ["houses.csv"]
    assert done.stdout == ""


def test_a_lack_of_memory_gets_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from suffice.cli import app as application

    for error in (NotEnoughMemoryError("following the pool needs 9 TB"), MemoryError("Unable to allocate 9 TB")):

        def short(*_: object, error: MemoryError = error, **__: object) -> None:
            raise error

        monkeypatch.setattr("suffice.learner.simulate", short)
        monkeypatch.setattr(sys, "argv", ["suffice", "run", houses(40), *SHORT])
        assert application.run() == 1
        assert "9 TB" in capsys.readouterr().err


def test_the_bar_is_for_people_only() -> None:
    for console, shown in (
        (Console(file=io.StringIO(), force_terminal=True, width=80, _environ={"TERM": "xterm"}), True),
        (Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"}), False),
        (Console(file=io.StringIO(), force_terminal=True, quiet=True, _environ={"TERM": "xterm"}), False),
        (Console(file=io.StringIO()), False),
    ):
        with progress_bar(console, "labelling") as progress:
            assert (progress is not None) is shown
            if progress is not None:
                progress(3, 10)
                progress(0, 0, "reading")
        assert ("labelling" in console.file.getvalue()) is shown  # type: ignore[attr-defined]


def test_help_has_an_example() -> None:
    shown = run_suffice("run", "--help", COLUMNS="80").stdout
    assert "Example: suffice run houses.csv --target price" in shown
    for option in ("--target", "--acquisition", "--random-share", "--most", "--test", "--save", "--ignore"):
        assert option in shown


@needs_data
@pytest.mark.slow
def test_adult() -> None:
    found = result(str(Path(DATA or "") / "tables" / "adult.csv"), "--target", "class", "--most", "150")
    assert found["task"] == "classification"
    assert found["rows"] == 32561
    assert found["curve"]["n_labelled"][-1] == 150
    assert 0.0 < found["error_at_end"] < 2.0
    assert any("as 'missing'" in note for note in found["notes"])


@pytest.mark.slow
@needs_data
def test_grid_stability() -> None:
    path = str(Path(DATA or "") / "uci" / "grid_stability.csv")
    found = result(path, "--target", "stab", "--ignore", "stabf", "--most", "100")
    assert (found["task"], found["rows"], found["features"]) == ("regression", 10000, 12)
    assert found["curve"]["n_labelled"][-1] == 100
    # The target has deviation 0.037.
    assert found["error_at_end"] < 0.03


RIDGE = ["--target", "price", "--model", "ridge", "--basis", "0"]
COSTS = ["--error-cost", "2", "--label-cost", "1"]


def replayed(name: str, rule: Criterion) -> list[Verdict]:
    """What a rule says on the run that was saved."""
    return Trace.load(name).replay(rule)


def test_two_costs_take_the_place_of_a_threshold() -> None:
    found = result(houses(), *RIDGE, *COSTS, "--save", "run.npz")
    assert set(found) == FIELDS
    costs = {"error_cost": 2.0, "label_cost": 1.0, "mistake_cost": None, "tolerance": None}
    assert found["rule"] == {"name": "LabelWorth", **costs}
    verdicts = replayed("run.npz", LabelWorth(2.0, 1.0))
    stop = next(verdict for verdict in verdicts if verdict.stop)
    assert found["decision"]["since"] == stop.n_labelled <= found["labels"]
    assert found["threshold"] == 1.0 > found["value"]
    assert found["curve"]["value"] == [verdict.value for verdict in verdicts]
    assert set(found["curve"]["threshold"]) == {1.0}
    assert found["certificate"] is None
    # Errors are squared units of the target, and the curve holds their roots.
    paid = 2.0 * np.square(found["curve"]["error"]) + np.array(found["curve"]["n_labelled"])
    best, here = int(paid.argmin()), found["curve"]["n_labelled"].index(found["labels"])
    assert found["best_in_hindsight"]["labels"] == found["curve"]["n_labelled"][best]
    assert found["best_in_hindsight"]["cost_at_stop"] == pytest.approx(paid[here])
    assert found["best_in_hindsight"]["regret"] == pytest.approx(paid[here] / paid[best] - 1.0)


@pytest.mark.slow
def test_dearer_errors_are_worth_more_labels() -> None:
    options = [houses(), *RIDGE, "--label-cost", "1", "--error-cost"]
    cheap, dear = (result(*options, cost)["labels"] for cost in ("0.1", "10"))
    assert cheap < dear


@pytest.mark.slow
def test_a_person_is_told_of_costs_in_words() -> None:
    done = run_suffice("run", houses(), *RIDGE, *COSTS)
    assert done.returncode == 0, done.stderr
    for words in (
        "Error on the test rows (RMSE)",
        "You can stop now: predictions for the ",
        "More labels are not worth their cost: each further label is expected to lower the error too little.",
        "Details: by the rule LabelWorth, 1 more label is expected to lower the error by ",
        "which is below its cost of 1.",
        "In hindsight, counting 1 for a label and 2 for a mean squared error of 1: stopping there costs ",
        "Figure: suffice-run.png",
    ):
        assert words in done.stdout
    for words in ("ratio", "Certificate", "None"):
        assert words not in done.stdout


def test_the_best_stop_may_be_here() -> None:
    shown = RUN.invoke(app, ["run", houses(), *RIDGE, "--error-cost", "1e-6", "--label-cost", "1"]).output
    assert "Enough at 11 of 120 labels." in shown
    assert "stopping there costs 11, and no other stop costs less." in shown


def test_costs_without_a_test_set() -> None:
    found = result(houses(), *RIDGE, *COSTS, "--test", "0")
    assert found["best_in_hindsight"] is None
    assert found["stopped"] is True


def test_a_rule_by_its_name_however_it_is_written() -> None:
    options = [mails(), "--target", "kind", "--ignore", "text", "--most", "80", "--save", "run.npz"]
    found = result(*options, "--rule", "stabilizingPREDICTIONS", "--threshold", "0.95")
    assert found["rule"]["name"] == "StabilizingPredictions"
    assert found["rule"]["threshold"] == found["threshold"] == 0.95
    verdicts = replayed("run.npz", StabilizingPredictions(0.95))
    assert found["curve"]["value"] == [verdict.value for verdict in verdicts]
    assert found["curve"]["value"][0] is None
    assert found["best_in_hindsight"] is None
    stop = next(verdict for verdict in verdicts if verdict.stop)
    assert (found["labels"], found["reason"]) == (stop.n_labelled, stop.reason)
    assert result(*options, "--rule", "StabilizingPredictions")["threshold"] == 0.99


def test_the_rule_of_the_paper_by_name_is_the_same_rule() -> None:
    options = [houses(), *RIDGE, "--most", "60"]
    plain, named = result(*options, "--threshold", "0.02"), result(*options, "--rule", "ErrorStability")
    assert named["rule"]["name"] == "ErrorStability"
    assert (named["value"], named["threshold"], named["labels"]) == (plain["ratio"], 0.02, plain["labels"])
    assert named["curve"]["value"] == plain["curve"]["ratio"]
    shown = [
        RUN.invoke(app, ["run", *options, *more]).output
        for more in (["--bound", "paper"], ["--rule", "errorstability"])
    ]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("name", some(sorted(named_rules()), every=9))
def test_every_named_rule_on_its_table(name: str) -> None:
    numbers = named_rules()[name].requires <= {"pool_variance"} | {"kl_new_old", "kl_old_new"}
    table = [houses(60), *RIDGE] if numbers else [mails(60), "--target", "kind", "--ignore", "text"]
    done = RUN.invoke(app, ["run", *table, "--most", "40", "--rule", name])
    assert done.exit_code == 0, done.exception
    assert "nough " in done.output
    assert "Figure: suffice-run.png" in done.output
    assert ("Error ratio" in done.output) is (name == "ErrorStability")
    assert f"Value of {name}, and its threshold" in done.output or name in {
        # The error comes first.
        "LabelWorth",
        "ErrorStability",
        # Two windows of 100 labels: no number yet, and so no curve.
        "PerformanceConvergence",
        "UncertaintyConvergence",
    }
    found = result(*table, "--most", "40", "--rule", name)
    assert found["rule"]["name"] == name
    assert len(found["curve"]["value"]) == 30


@pytest.mark.usefixtures("real_figure")
def test_where_there_is_no_number_there_is_no_curve() -> None:
    options = [mails(60), "--target", "kind", "--ignore", "text", "--most", "20", "--rule", "performanceconvergence"]
    shown = RUN.invoke(app, ["run", *options]).output
    assert "┤" not in shown
    assert "Not enough within 20 labels: " in shown
    assert "Figure: suffice-run.png" in shown
    shown = RUN.invoke(app, ["run", *options, "--test", "0"]).output
    assert "No figure: there is nothing to draw: no error was measured, and the rule compared no number" in shown


def test_the_bound_goes_to_the_rules_that_have_one() -> None:
    options = [houses(), *RIDGE, "--most", "60", "--rule", "DeterministicBoundRuns", "--bound"]
    paper, tight = (result(*options, bound)["rule"]["bound"] for bound in ("paper", "tight"))
    assert (paper, tight) == ("paper", "tight")


def test_the_options_of_the_ratio_go_to_the_rule() -> None:
    options = [houses(), *RIDGE, "--most", "60", "--rule", "ErrorStability"]
    plain = result(*options)
    assert "average" not in plain["rule"]
    changed = result(*options, "--average", "5", "--calibration-labels", "8", "--scale", "median")
    assert {name: changed["rule"][name] for name in ("average", "calibration_labels", "scale")} == {
        "average": 5,
        "calibration_labels": 8,
        "scale": "median",
    }
    assert changed["curve"] != plain["curve"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--error-cost", "3", "--mistake-cost", "3"], "--error-cost and --mistake-cost both say what errors cost"),
        (["--mistake-cost", "0"], "--mistake-cost must be a number above 0, not 0.0"),
        (["--tolerance", "-1"], "--tolerance must be a number above 0, not -1.0"),
        (
            ["--rule", "ExpectedCost", "--label-cost", "3"],
            "--rule ExpectedCost weighs costs: give --error-cost and ",
        ),
        (
            ["--rule", "ExpectedCost", *COSTS, "--tolerance", "3"],
            "--tolerance is for the rule LabelWorth, and --rule",
        ),
        (["--at-most", "5%"], "--at-most must be a number in units of the target, not '5%'"),
        (
            ["--target-error", "little"],
            "--at-most must be a share such as 5% for classes, or a number above 0",
        ),
        (["--target-error", "-3"], "not '-3'"),
        (["--error-cost", "0", "--label-cost", "1"], "--error-cost must be a number above 0, not 0.0"),
        (["--error-cost", "1", "--label-cost", "nan"], "--label-cost must be a number above 0, not nan"),
        (["--error-cost", "inf", "--label-cost", "1"], "--error-cost must be a number above 0, not inf"),
        ([*COSTS, "--threshold", "0.1"], "--threshold is for the rule ErrorStability, and --label-cost for LabelWorth"),
        ([*COSTS, "--bound", "tight"], "--bound is for the rule ErrorStability, and --label-cost for LabelWorth"),
        ([*COSTS, "--rule", "MaxVariance"], "--label-cost is for the rule LabelWorth, and --rule is MaxVariance"),
        (["--rule", "labelworth", "--threshold", "0.1"], "--rule LabelWorth has no threshold (it compares the worth"),
        (["--rule", "labelworth", "--bound", "tight"], "--bound goes with ErrorStability or DeterministicBoundRuns"),
        (["--rule", "MaxVarience"], "named 'MaxVarience'. Did you mean MaxVariance? There are ClassificationChange, "),
        (["--rule", "?"], "--rule: no stopping rule is named '?'. There are ClassificationChange, "),
        (["--rule", "RegretBound"], "--rule RegretBound is for Bayesian optimisation: use it from Python"),
        (["--rule", "budget"], "--rule Budget requires labels, which cannot be given here: use sf.Budget from Python"),
        (["--rule", "HeldOutPlateau"], "--rule HeldOutPlateau requires validation_error, validation_labels"),
        (["--rule", "ClassificationChange", "--threshold", "1"], "--rule ClassificationChange has no threshold"),
        (["--rule", "MaxVariance", "--threshold", "3"], "threshold must be a number from 0 to below 1, not 3.0"),
        (["--rule", "MaxVariance", "--bound", "tight"], "MaxVariance bounds no change"),
        (["--rule", "MaxVariance", "--average", "3"], "--average goes with --rule ErrorStability; MaxVariance has no"),
        ([*COSTS, "--scale", "median"], "--scale is for the rule ErrorStability, and --label-cost for LabelWorth"),
        (["--rule", "labelworth", "--scale", "median"], "--scale goes with --rule ErrorStability; LabelWorth has no"),
        (["--rule", "ErrorStability", "--average", "0"], "average must be a whole number, 1 or more, not 0"),
        (["--rule", "ErrorStability", "--calibration-labels", "0"], "calibration_labels must be a whole number, 1 or"),
        (
            ["--rule", "StabilizingPredictions"],
            "--rule StabilizingPredictions requires stop_probabilities, which --model gp does not provide; rules for "
            "gp: DeterministicBoundRuns, ErrorStability, InformationGain, LabelWorth, MaxVariance",
        ),
    ],
)
def test_rules_that_cannot_be_used(options: list[str], words: str) -> None:
    done = RUN.invoke(app, ["run", houses(40), "--target", "price", *options])
    assert isinstance(done.exception, InvalidValueError), done.exception
    assert words in str(done.exception)
    assert done.output == ""
    assert [path.name for path in Path().iterdir()] == ["houses.csv"]


def test_a_rule_that_cannot_be_used_gets_a_sentence_and_exit_2() -> None:
    for option, words in (
        (["--error-cost", "1", "--threshold", "0.1"], "suffice: --threshold is for the rule ErrorStability, and"),
        (["--error-cost", "much", "--label-cost", "1"], "--error-cost"),
        (["--rule", "EntropyMax"], "suffice: --rule EntropyMax requires pool_max_entropy"),
    ):
        done = run_suffice("run", houses(40), "--target", "price", *option, COLUMNS="200")
        assert done.returncode == 2
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_help_says_what_an_error_costs() -> None:
    shown = " ".join(run_suffice("run", "--help", COLUMNS="200").stdout.replace("│", " ").split())
    assert "how many labels you would pay for to avoid one wrong prediction" in shown
    assert "suffice run mails.csv --target spam --label-cost 0.5 --mistake-cost 20" in shown
    assert "--rule StabilizingPredictions" in shown


def test_the_default_rule_weighs_labels_against_wrong_predictions() -> None:
    options = [mails(), "--target", "kind", "--ignore", "text", "--save", "run.npz"]
    found = result(*options)
    costs = {"error_cost": None, "label_cost": 1.0, "mistake_cost": None, "tolerance": None}
    assert found["rule"] == {"name": "LabelWorth", **costs}
    decision = found["decision"]
    assert decision["answer"] in ("enough", "limit")
    assert (decision["n_labelled"], decision["unlabelled"]) == (found["labels"], found["saved"])
    assert decision["error"]["low"] <= decision["error"]["value"] <= decision["error"]["high"]
    assert decision["error"]["random_labels"] >= 10
    stops = (
        "You can stop now: ",
        "More labels are not worth their cost: ",
        "More labels will not help this model much: ",
    )
    assert found["sentences"][0].startswith(stops)
    # In the same units: the labels, and the wrong predictions among the others, by the error of the test rows.
    labels, wrong = (np.array(found["curve"][name]) for name in ("n_labelled", "wrong_share"))
    paid = labels + (found["pool"] - labels) * wrong
    best = found["best_in_hindsight"]
    assert (best["labels"], best["cost"]) == (labels[paid.argmin()], pytest.approx(paid.min()))
    assert best["cost_at_stop"] == pytest.approx(paid[labels.tolist().index(found["labels"])])
    dear = result(*options, "--mistake-cost", "20")
    assert dear["labels"] > found["labels"]
    assert dear["rule"]["mistake_cost"] == 20.0


def test_the_error_that_is_wanted() -> None:
    options = [mails(), "--target", "kind", "--ignore", "text"]
    asked = result(*options, "--target-error", "0.01%")["decision"]
    # No check is likely to prove it, and none has shown that it is out of reach: every row is labelled.
    assert (asked["answer"], asked["at_most"], asked["unlabelled"]) == ("complete", 0.0001, 0)
    shown = RUN.invoke(app, ["run", *options, "--target-error", "0.0001"]).output
    assert "among the 0 unlabelled items" in shown
    easy = result(*options, "--target-error", "99%")["decision"]
    assert not easy["above_target"]


@pytest.mark.slow
def test_a_tolerance_counts_predictions_that_are_off() -> None:
    found = result(houses(), *RIDGE, "--tolerance", "5", "--mistake-cost", "2", "--save", "run.npz")
    off = Trace.load("run.npz").measures["share off by more than the tolerance"]
    labels = np.array(found["curve"]["n_labelled"])
    assert found["best_in_hindsight"]["cost"] == pytest.approx((labels + 2.0 * (120 - labels) * off).min())
    assert set((30 * off).round(6) % 1.0) == {0.0}
    shown = RUN.invoke(app, ["run", "houses.csv", *RIDGE, "--tolerance", "5"]).output
    assert "counting 1 for a label and 1 for each prediction that is off by more than 5 among the other rows: " in shown
    classes = RUN.invoke(app, ["run", mails(), "--target", "kind", "--tolerance", "5"])
    assert "--tolerance is for numbers" in str(classes.exception)


@pytest.mark.usefixtures("all_trees")
@pytest.mark.slow
def test_where_the_model_is_the_wrong_one_another_is_named() -> None:
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 500))
    name = write("rings.csv", x=x.round(4), z=z.round(4), ring=np.where(x**2 + z**2 < 1.4, "in", "out"))
    options = (name, "--target", "ring", "--most", "80")
    found = result(*options)
    assert found["decision"]["answer"] == "limit"
    assert found["decision"]["alternative"]["name"] in ("kernel", "forest")
    shown = RUN.invoke(app, ["run", *options]).output
    assert "This model has reached its limit at " in shown
    assert "without knowing their labels, it predicts " in shown
    assert f"To try it: suffice run with --model {found['decision']['alternative']['name']}." in shown
    assert result(*options, "--model", "kernel")["decision"]["answer"] == "enough"
