"""`suffice compare`: files, rows, exit codes, and what it says to whatever can go wrong."""

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.errors import InvalidValueError, SufficeError
from suffice.report.html_page import ReportTable
from suffice_research.compare.compare_command import (
    chosen_data,
    chosen_models,
    chosen_rules,
    numbers,
    planned,
    show_board,
)
from suffice_research.compare.judging import variant
from suffice_research.compare.recording import RecordingSettings, source_names
from suffice_research.recommendation.compared_rules import catalogue
from tests.json_schemas import problems
from tests.processes import ForkedProcess, run_suffice, start_suffice
from tests.thoroughness import thorough

RUN = CliRunner()
SMALL = ("--labels", "25", "--pool", "100", "--seeds", "2")
# Two worker processes cost more than such runs. How many there are changes nothing but the time.
TINY = (*SMALL, "--jobs", "1")
KEYS = [
    "rule",
    "params",
    "data",
    "model",
    "seed",
    "batch",
    "variant",
    "setting",
    "stop",
    "labels",
    "wrong_share",
    "least_wrong_share",
    "error",
    "regret",
    "premature",
    "fired",
    "over",
    "forgone",
    "seconds_per_step",
]
REFERENCES = {"Budget", "AtOnce", "Never", "RandomStop", "Oracle"}


def invoke(*arguments: str, code: int = 0) -> Any:
    done = RUN.invoke(app, ["compare", *arguments])
    assert done.exit_code == code, (done.output, done.exception)
    return done


def refused(*arguments: str) -> Any:
    """The error that the command's main turns into a sentence and an exit code."""
    return RUN.invoke(app, ["compare", *arguments]).exception


def rows(path: str | Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(Path(path).read_text())
    assert problems("compare", found) == []
    return found


def without_times(path: str | Path) -> list[dict[str, Any]]:
    return [{**row, "seconds_per_step": None} for row in rows(path)]


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most tests do not look at figures, which take their time."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.mark.slow
def test_it_leaves_rows_tables_figures_and_a_report() -> None:
    pytest.importorskip("matplotlib")
    done = invoke("--data", "wine,diabetes", *TINY, "--out", "out", "--json", "rows.json")
    found = rows("rows.json")
    assert found == rows("out/rows.json")
    assert all(list(row) == KEYS for row in found)
    assert {(row["data"], row["model"]) for row in found} == {
        ("wine", "logistic"),
        ("diabetes", "gp"),
        ("diabetes", "ridge"),
    }
    assert {(row["seed"], row["batch"], row["variant"]) for row in found} == {(0, 1, ""), (1, 1, "")}
    # A rule that needs classes is left out where there are none, and the other way round.
    regression = {row["rule"] for row in found if row["data"] == "diabetes"}
    classification = {row["rule"] for row in found if row["data"] == "wine"}
    assert {"MaxVariance"} == regression - classification
    assert {"StabilizingPredictions", "MarginExhaustion", "IntrinsicStopping"} <= classification - regression
    assert regression | classification == {entry.name for entry in catalogue()} - {"TimeLimit"}
    for row in found:
        check(row)
    assert_board(done.stdout, "Numbers to predict: 4 runs on 1 data set", "MaxVariance")
    assert_board(done.stdout, "Classes to predict: 2 runs on 1 data set", "StabilizingPredictions")
    assert "All runs: 6 runs on 2 data sets; rules that have them all" in done.stdout
    assert "Relative regret: how much more the stop costs" in done.stdout
    assert "6 runs; read out/report.html" in done.stdout
    names = {
        *("regret-regression", "regret-classification", "regret-all", "labels-gp", "labels-ridge"),
        *("stops-wine", "stops-diabetes"),
    }
    # No prediction of wine is wrong in the end, so there is no curve of labels relative to the least error.
    assert {path.stem for path in Path("out/figures").glob("*.png")} == names
    page = Path("out/report.html").read_text()
    for name in names:
        assert Path(f"out/figures/{name}.png").stat().st_size > 5000
        assert Path(f"out/figures/{name}.pdf").read_bytes().startswith(b"%PDF")
        assert f'<figure id="{name}">' in page
    assert not [word for word in ("http://", "https://", 'src="figures') if word in page]
    assert "PacBayes" in Path("out/tables/guarantees.md").read_text()
    assert "ErrorStability tight" in Path("out/tables/leaderboard-all.csv").read_text()
    with Path("out/leaderboard.csv").open(newline="") as file:
        ranked = list(csv.DictReader(file))
    assert {row["tasks"] for row in ranked} == {"regression", "classification", "all"}
    assert all(0.0 <= float(row["typical"]) <= float(row["mean"]) + 1e-9 for row in ranked)
    with Path("out/rows.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(found)


def check(row: dict[str, Any]) -> None:
    assert len(row["regret"]) == 13
    assert min(row["regret"].values()) >= 0.0
    assert isinstance(row["premature"], bool | float)
    assert row["labels"] >= 10
    assert row["stop"] is None or 0 <= row["stop"] < 15
    if row["rule"] != "RandomStop":
        assert row["fired"] is (row["stop"] is not None)
        # Labels of a run are counted from the first; a rule that validates is charged for more.
        charged = row["rule"] == "HeldOutPlateau"
        assert charged or row["labels"] == (25 if row["stop"] is None else 11 + row["stop"])
    assert row["setting"] in ("default", "one threshold", "per cost", "costs", "reference")
    assert (row["seconds_per_step"] is None) == (row["rule"] in ("Oracle", "RandomStop"))


def assert_board(text: str, title: str, rule: str) -> None:
    board = text[text.index(title) :].split("\n\n", maxsplit=1)[0]
    assert f" {rule} " in board
    for word in ("rank", "mean", "interval", "median", "typical", "premature", "stops", "labels", "µs a"):
        assert word in board


@pytest.mark.usefixtures("no_figures")
def test_without_matplotlib_there_are_tables_rows_and_a_report_all_the_same() -> None:
    done = invoke("--data", "wine", *TINY, "--rules", "LabelWorth", "--out", "out")
    assert "there are no figures: drawing figures needs matplotlib" in done.stderr
    assert re.search(r"-m pip install .*'matplotlib>=", done.stderr)
    assert rows("out/rows.json")
    assert "LabelWorth" in Path("out/tables/leaderboard-classification.md").read_text()
    assert "There are no figures" in Path("out/report.html").read_text()
    assert not list(Path("out/figures").iterdir())


@pytest.mark.slow
@pytest.mark.usefixtures("no_figures")
def test_rules_by_name_come_with_the_references_and_rows_alone_go_to_the_terminal() -> None:
    asked = "errorstability, Margin_Exhaustion,performance-convergence, window 20"
    done = invoke("--data", "wine", *TINY, "--rules", asked, "--json", "-", "--out", "out")
    found = json.loads(done.stdout)
    names = {"ErrorStability", "MarginExhaustion", "PerformanceConvergence, window 20"}
    assert {row["rule"] for row in found} == names | REFERENCES
    again = json.loads(invoke("--data", "wine", *TINY, "--rules", asked, "--json", "-", "--out", "out").stdout)
    for one, other in zip(found, again, strict=True):
        assert {**one, "seconds_per_step": 0} == {**other, "seconds_per_step": 0}


@pytest.mark.usefixtures("no_figures")
def test_rules_that_no_run_has_are_named() -> None:
    done = invoke("--data", "diabetes", "--model", "ridge", *TINY, "--rules", "EntropyMax,MaxVariance", "--out", "out")
    assert "Left out: EntropyMax, which" in done.stdout
    assert {row["rule"] for row in rows("out/rows.json")} == {"MaxVariance"} | REFERENCES


@pytest.mark.slow
@pytest.mark.usefixtures("no_figures")
def test_every_way_to_set_a_rule_is_shown_where_it_is_asked_for() -> None:
    options = ("--data", "wine,breast_cancer", *TINY, "--rules", "EntropyMax", "--out", "out")
    few, every = invoke(*options).stdout, invoke(*options, "--all-settings").stdout
    assert few.count(" EntropyMax ") == 1
    assert every.count(" EntropyMax ") == 3
    assert "--all-settings shows them all" in few
    assert "--all-settings" not in every


@pytest.mark.slow
@pytest.mark.usefixtures("no_figures")
def test_where_labels_are_dear_a_rule_may_be_set_to_stop_at_once() -> None:
    options = ("--data", "wine,breast_cancer", *TINY, "--rules", "HeldOutPlateau", "--out", "out")
    assert " AtOnce * " in invoke(*options).stdout
    found = rows("out/rows.json")
    # Where an error of 1 costs 10 labels, those that the rule validates on are never worth it.
    chosen = [row for row in found if (row["rule"], row["setting"]) == ("HeldOutPlateau", "per cost")]
    assert [row["params"]["10"] for row in chosen] == ["at once"] * 4
    at_once = {(row["data"], row["seed"]): row for row in found if row["rule"] == "AtOnce"}
    for row in chosen:
        assert row["regret"]["10"] == at_once[row["data"], row["seed"]]["regret"]["10"]
    assert {(row["stop"], row["labels"]) for row in at_once.values()} == {(0, 11)}
    assert "at once" in Path("out/tables/chosen-classification.md").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("no_figures")
def test_batches_noise_imbalance_and_stop_sets_are_crossed() -> None:
    varied = ("--batch", "1,5", "--noise", "0,0.2", "--imbalance", "0.2", "--stop-set", "50")
    invoke("--data", "diabetes,breast_cancer", "--model", "ridge,logistic", *TINY, *varied, "--out", "out")
    found = {(row["data"], row["batch"], row["variant"]) for row in rows("out/rows.json")}
    assert found == {
        (data, batch, f"{noise}{share}stop set 50")
        for data, share in (("diabetes", ""), ("breast_cancer", "imbalance 0.2, "))
        for batch in (1, 5)
        for noise in ("", "noise 0.2, ")
    }
    table = Path("out/tables/by-variation-regression.md").read_text()
    assert "5 at a time, noise 0.2, stop set 50" in table
    assert "label noise 0, 0.2" in Path("out/report.html").read_text()


@pytest.mark.usefixtures("no_figures")
def test_a_table_of_ones_own() -> None:
    lines = ["size,weight,kind", *(f"{n % 7},{n % 11},{'odd' if n % 7 + n % 11 > 8 else 'even'}" for n in range(120))]
    Path("my, table.csv").write_text("\n".join(lines))
    options = ("--data", "my, table.csv", *TINY, "--rules", "LabelWorth", "--out", "out")
    invoke(*options, "--target", "kind")
    assert {(row["data"], row["model"]) for row in rows("out/rows.json")} == {("my, table.csv", "logistic")}
    error = refused(*options, "--target", "kinds")
    assert isinstance(error, InvalidValueError)
    assert "'kind'" in str(error)
    assert "'kind'" in str(refused(*options))
    missing = refused("--data", "no-such.csv", "--target", "kind")
    assert isinstance(missing, SufficeError)
    assert "no-such.csv" in str(missing)


@pytest.mark.slow
@pytest.mark.usefixtures("no_figures")
def test_tables_with_columns_of_their_own() -> None:
    rng = np.random.default_rng(0)
    for name, column in (("a.csv", "kind"), ("b:c.csv", "label")):
        x, z = rng.normal(size=(2, 100)).round(3)
        lines = [f"{p},{q},{'up' if p + q > 0.0 else 'down'},{p - q:.3f}" for p, q in zip(x, z, strict=True)]
        Path(name).write_text("\n".join([f"x,z,{column},number", *lines]))
    options = (*TINY, "--rules", "LabelWorth", "--seeds", "1", "--model", "ridge,logistic", "--out", "out")
    shown = " ".join(invoke("a.csv:kind", "b:c.csv:label", *options).output.split())
    assert {row["data"] for row in rows("out/rows.json")} == {"a.csv", "b:c.csv"}
    for name in ("a.csv", "b:c.csv"):
        assert f"{name}, logistic, 1 run with 70 rows to label, counting 1 for a label and 1 for each wrong" in shown
    assert "LabelWorth stops at " in shown
    # One column for each in order; and a table with two columns to predict is two data sets.
    invoke("a.csv", "b:c.csv", "--target", "kind", "--target", "label", *options)
    assert {row["data"] for row in rows("out/rows.json")} == {"a.csv", "b:c.csv"}
    invoke("a.csv:kind", "a.csv:number", *options)
    found = {(row["data"], row["model"]) for row in rows("out/rows.json")}
    assert found == {("a.csv:kind", "logistic"), ("a.csv:number", "ridge")}
    assert "3 columns are given with --target for 2 tables" in str(
        refused("a.csv", "b:c.csv", "--target", "x", "--target", "y", "--target", "z")
    )


@pytest.mark.usefixtures("no_figures")
def test_missing_data_are_skipped_by_name_and_the_others_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUFFICE_DATA", str(Path("empty").absolute()))
    done = invoke("--data", "htru2,wine", *TINY, "--rules", "LabelWorth", "--out", "out", code=1)
    assert "suffice: skipped htru2: data set htru2:" in done.stderr
    assert "suffice data fetch htru2" in done.stderr
    assert {row["data"] for row in rows("out/rows.json")} == {"wine"}
    assert "logistic on htru2, seed 1, 1 at a time" in Path("out/report.html").read_text()
    none = invoke("--data", "htru2", *TINY, "--out", "none", code=1)
    assert "skipped htru2" in none.stderr
    assert rows("none/rows.json") == []
    assert not Path("none/report.html").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("no_figures")
def test_a_run_that_cannot_be_made_is_skipped_by_name() -> None:
    done = invoke("--data", "wine,breast_cancer", *TINY, "--imbalance", "0.35", "--out", "out", code=1)
    assert "suffice: skipped wine: imbalance must be" in done.stderr
    assert {row["data"] for row in rows("out/rows.json")} == {"breast_cancer"}


@pytest.mark.usefixtures("no_figures")
def test_kept_runs_are_judged_without_their_data(monkeypatch: pytest.MonkeyPatch) -> None:
    invoke("--data", "wine", *TINY, "--rules", "LabelWorth", "--out", "out")
    first = without_times("out/rows.json")

    def gone(job: Any) -> None:
        raise SufficeError(f"{job.data} is gone")

    monkeypatch.setattr("suffice_research.compare.judging.prepared", gone)
    done = invoke("--data", "wine", *TINY, "--rules", "LabelWorth", "--out", "out")
    assert without_times("out/rows.json") == first
    assert "25 labels" in done.stdout
    assert not Path("out/guarantees.csv").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered_figures")
def test_tables_and_figures_of_other_runs_are_taken_away() -> None:
    pytest.importorskip("matplotlib")
    options = (*TINY, "--rules", "ErrorStability", "--out", "out")
    invoke("--data", "diabetes", "--model", "ridge", *options)
    assert Path("out/figures/stops-diabetes.png").exists()
    Path("out/tables/mine.md").write_text("kept")
    invoke("--data", "wine", *options)
    drawn = {path.stem for path in Path("out/figures").iterdir()}
    # No prediction is wrong in the end, so there is no curve of labels relative to the least error.
    assert drawn == {"regret-classification", "stops-wine"}
    assert not list(Path("out/tables").glob("*-regression.*"))
    assert Path("out/tables/mine.md").exists()


def start(*arguments: str) -> ForkedProcess:
    return start_suffice("compare", *arguments, env={**os.environ, "PYTHONUNBUFFERED": "1"})


@pytest.mark.slow
@pytest.mark.usefixtures("no_figures")
def test_killed_in_the_middle_and_resumed_the_rows_are_the_same() -> None:
    options = ("--data", "wine,diabetes", "--model", "ridge,logistic", *SMALL, "--seeds", "2", "--jobs", "2")
    with start(*options, "--out", "broken") as process:
        assert process.stdout is not None
        assert "25 labels" in process.stdout.readline()
        process.kill()
    assert list(Path("broken/traces").glob("*.npz"))
    assert not Path("broken/rows.json").exists()
    invoke(*options, "--out", "broken")
    invoke(*options, "--jobs", "1", "--out", "whole")
    texts = [
        [line for line in Path(folder, "rows.json").read_text().splitlines() if "seconds_per_step" not in line]
        for folder in ("broken", "whole")
    ]
    assert texts[0] == texts[1]
    assert len(rows("whole/rows.json")) > 100
    for table in Path("whole/tables").glob("by-*.md"):
        assert table.read_bytes() == Path("broken/tables", table.name).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_an_interrupt_says_how_to_go_on(workers: str) -> None:
    with start("--data", "wine,diabetes", "--seeds", "9", "--jobs", workers, "--out", "out") as process:
        assert process.stdout is not None
        assert re.search(r" labels, (\S+ to \S+\s% wrong at best, )?error ", process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "of 27 runs are kept in out, and the same command continues from there" in said
    assert "Traceback" not in said
    # The workers are gone too: nothing is written any more.
    before = sorted(path.name for path in Path("out/traces").iterdir())
    time.sleep(1.0)
    assert sorted(path.name for path in Path("out/traces").iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "guess"),
    [
        (("--data", "wien"), "Did you mean wine?"),
        (("--data", "embeded"), "Did you mean embedded?"),
        (("--data", "wine,power-plant"), "Did you mean power_plant?"),
        (("--model", "logistc"), "Did you mean logistic?"),
        (("--rules", "ErorStability"), "Did you mean ErrorStability?"),
        (("--rules", "Budget,MaxVarience"), "Did you mean MaxVariance?"),
        (("--data", "wine", "--model", "gp"), "there is logistic"),
        (("--data", " , "), "--data is empty"),
        (("--target", "kind"), "goes with the path of a table"),
        (("wine:kind",), "there is no data set 'wine:kind'"),
        (("wine",), "wine is no table but a data set; give it with --data wine"),
        (("a.csv:",), "the column to predict is missing behind the colon"),
        (("a.csv:y", "--target", "y"), "goes with the path of a table without a column; each has one"),
        (("--batch", "0"), "--batch must be whole numbers of 1 or more with commas between, not '0'"),
        (("--batch", "1.5"), "not '1.5'"),
        (("--noise", "nan"), "--noise must be numbers of 0.0 or more"),
        (("--labels", "12", "--batch", "1,5"), "2 steps of 5 or more are required"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_made(arguments: tuple[str, ...], guess: str) -> None:
    error = refused(*arguments, "--out", "new")
    assert isinstance(error, InvalidValueError)
    assert guess in str(error)
    assert not Path("new").exists()


def test_numbers_out_of_range_are_refused() -> None:
    for arguments in (("--seeds", "0"), ("--jobs", "0"), ("--labels", "many"), ("--pool", "1"), ("--test", "0")):
        assert RUN.invoke(app, ["compare", *arguments]).exit_code == 2


def test_a_typo_ends_in_a_sentence_and_exit_code_2() -> None:
    done = run_suffice("compare", "--rules", "Bugdet")
    assert done.returncode == 2
    assert "suffice: there is no rule 'Bugdet'. Did you mean Budget?" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_cannot_be_written_is_said_before_the_runs() -> None:
    Path("file").write_text("")
    for arguments, word in (
        (("--out", "file"), "is a file"),
        (("--out", "file/below"), "cannot be made"),
        (("--json", "nowhere/rows.json"), "does not exist"),
    ):
        error = refused("--data", "wine", *arguments)
        assert isinstance(error, SufficeError)
        assert word in str(error)
    assert not list(Path().rglob("*.npz"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only() -> None:
    Path("out").mkdir(mode=0o500)
    assert "read-only" in str(refused("--data", "wine", "--out", "out"))


def test_a_read_only_folder_is_said_for_root_too(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("out").mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: mode != os.W_OK)
    assert "the folder out is read-only; name another with --out" in str(refused("--data", "wine", "--out", "out"))


def test_help_needs_neither_scikit_learn_nor_matplotlib() -> None:
    code = (
        "import sys\nsys.argv = ['suffice', {}]\nfrom suffice.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({{'sklearn', 'matplotlib'}} & set(sys.modules)))"
    )
    for words in ("'--help'", "'compare', '--help'") if thorough() else ("'compare', '--help'",):
        done = subprocess.run([sys.executable, "-c", code.format(words)], capture_output=True, text=True, check=True)
        assert "compare" in done.stdout
        assert done.stdout.splitlines()[-1] == "[]"


def test_words_for_several_data_sets() -> None:
    every = list(chosen_models(None))
    assert chosen_data("embedded", every, None) == [
        "diabetes",
        "friedman",
        "breast_cancer",
        "digits",
        "wine",
        "iris",
    ]
    paper = chosen_data("paper", every, None)
    assert paper == ["power_plant", "protein", "gas_emission", "grid_stability", "grid_stable", "skin", "htru2"]
    assert chosen_data("all", every, None) == source_names()
    assert chosen_data("paper", ["logistic"], None) == ["grid_stable", "skin", "htru2"]
    assert chosen_data("wine,embedded", ["logistic"], None) == ["wine", "breast_cancer", "digits", "iris"]
    assert chosen_data(None, every, None) == ["diabetes", "friedman", "breast_cancer", "wine"]


def test_all_rules_but_the_one_that_looks_at_the_clock() -> None:
    every = {entry.name for entry in catalogue()}
    assert set(chosen_rules(None)) == every - {"TimeLimit"}
    assert chosen_rules("timelimit") == ("TimeLimit", "Budget", "AtOnce", "Never", "RandomStop", "Oracle")
    # Every name can be given, alone and with others around it.
    for name in every:
        assert name in chosen_rules(name)
        assert set(chosen_rules(f"LabelWorth,{name},Never")) == {"LabelWorth", name} | REFERENCES


def test_runs_come_data_set_by_data_set_and_none_twice() -> None:
    settings = [RecordingSettings(imbalance=share) for share in (0.1, 0.2)]
    found = planned(["wine", "diabetes"], ["ridge", "logistic"], None, seeds=2, batches=[1], settings=settings)
    assert [(job.data, job.seed, job.setting.imbalance) for job in found] == [
        ("wine", 0, 0.1),
        ("wine", 1, 0.1),
        ("wine", 0, 0.2),
        ("wine", 1, 0.2),
        ("diabetes", 0, None),
        ("diabetes", 1, None),
    ]
    assert numbers("5, 1,5", "--batch", int, 1) == [5, 1]


def test_what_was_varied_in_words() -> None:
    assert variant(RecordingSettings(labels=40, pool=100)) == ""
    assert (
        variant(RecordingSettings(noise=0.1, imbalance=0.05, stop_set=100)) == "noise 0.1, imbalance 0.05, stop set 100"
    )


def shown(width: int, *, terminal: bool = True) -> str:
    head = ("rank", "rule", "set by", "mean regret", "90 % interval", "median", "µs a step")
    lines = (
        ("", "Oracle *", "reference", "0.00", "0.00 to 0.00", "0.00", "-"),
        ("1", "A [rule]", "costs", "0.25", "0.10 to 0.30", "0.20", "7"),
    )
    console = Console(
        file=(screen := io.StringIO()), width=width, force_terminal=terminal, color_system=None, _environ={}
    )
    console.soft_wrap = not terminal
    show_board(console, ReportTable("t", "A board", head, lines), ["Oracle *"])
    return screen.getvalue()


def test_a_narrow_terminal_is_told_what_it_has_no_room_for() -> None:
    wide, narrow, tiny = shown(120), shown(60), shown(30)
    assert "No room" not in wide
    assert "A [rule]" in wide
    assert "No room for: µs a step. The report has them." in narrow
    assert "0.10 to 0.30" in narrow
    assert max(map(len, narrow.splitlines())) <= 60
    assert "No room for: set by, median, 90 % interval, µs a step." in " ".join(tiny.split())
    assert "A [rule]" in tiny


def test_elsewhere_every_column_is_there() -> None:
    assert "0.10 to 0.30" in shown(30, terminal=False)
    assert "No room" not in shown(30, terminal=False)
