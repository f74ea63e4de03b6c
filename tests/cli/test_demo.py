import json
import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import suffice
from suffice.cli.app import app
from suffice.cli.demo_command import CHECK_SIZE, LEAST_CHECK, SHARE_BEYOND
from suffice.cli.project_options import ProjectOptions
from suffice.errors import InvalidValueError, SufficeError
from tests.processes import run_suffice, start_suffice
from tests.smaller_work import DEMO_NAME, main_with_small_demo, small_demo_task

RUN = CliRunner()
WITH_SMALL_POOL = f"{main_with_small_demo.__module__}:{main_with_small_demo.__name__}"


@pytest.fixture
def no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some tests do not look at the figure, which takes its time."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.fixture
def small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some tests do not need all items."""
    monkeypatch.setattr(DEMO_NAME, small_demo_task)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_demo_stops_early_with_nearly_the_error_of_all_labels(task: str) -> None:
    done = run_suffice("demo", "--task", task, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    result = json.loads(done.stdout)
    assert result["task"] == task
    assert result["stopped"] is True
    assert result["labels"] + result["check_labels"] + result["saved"] == result["pool"]
    assert result["check_labels"] == CHECK_SIZE
    assert result["saved"] > (0.3 if task == "regression" else 0.6) * result["pool"]
    assert result["true_share"] <= (SHARE_BEYOND if task == "regression" else result["guaranteed"])
    assert result["error_at_stop"] <= (1.05 if task == "regression" else 1.06) * result["error_with_all"]
    if task == "classification":
        assert result["wrong_share_at_stop"] <= result["wrong_share_with_all"] + 0.005
        assert result["wrong_share_at_stop"] == pytest.approx(1.0 - result["accuracy_at_stop"])
    assert result["ratio"] <= result["threshold"] == 0.1
    assert Path("suffice-demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_demo_tells_a_person_what_happened() -> None:
    done = run_suffice("demo", "--figure", "run.svg")
    assert done.returncode == 0, done.stderr
    # Off a terminal, lines are not broken.
    assert max(map(len, done.stdout.splitlines())) > 120
    for words in ("Go on at 50 labels", "more labels (", "Stop at", "Labels saved:", "with all labels", "Certificate:"):
        assert words in done.stdout
    # The end: what was saved, what is guaranteed, and the next command.
    *_, saved, guaranteed, truth, figure, _, _, serve, run = done.stdout.splitlines()
    assert re.fullmatch(r"Labels saved: \d+ of 398 \(\d+.%\)\. \d+ were needed until the stop, and 60 for .*", saved)
    assert re.fullmatch(
        r"Guaranteed: at most [\d.]+.% of the predictions .* are wrong \(95.% confidence\)\.", guaranteed
    )
    assert "in fact wrong" in truth
    assert figure == "Figure: run.svg"
    assert serve.startswith("  suffice serve data.csv --classes")
    assert run.startswith("  suffice run labelled.csv --target")
    assert Path("run.svg").read_text().startswith("<?xml")
    assert "Figure: run.svg" in done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("no_figure", "small_pool")
def test_demo_is_repeatable() -> None:
    first, second = (RUN.invoke(app, ["demo", "--json", "--seed", "3"]).output for _ in range(2))
    other = RUN.invoke(app, ["demo", "--json", "--seed", "4"]).output
    assert first == second != other


@pytest.mark.usefixtures("no_figure", "small_pool")
def test_demo_where_the_rule_never_stops_says_so() -> None:
    result = RUN.invoke(app, ["demo", "--task", "regression", "--threshold", "0.001"])
    assert result.exit_code == 0
    assert "No stop: all 90 labels are used up, and the error ratio" in result.output
    for words in ("at the stop", "Labels saved", "Guaranteed"):
        assert words not in result.output
    assert "Next, with data of your own:" in result.output
    as_json = json.loads(RUN.invoke(app, ["demo", "--threshold", "0", "--json"]).output)
    assert as_json["stopped"] is False
    assert as_json["error_at_stop"] is None
    assert as_json["saved"] == as_json["check_labels"] == 0
    assert as_json["guarantee"] is None


@pytest.mark.usefixtures("no_figure", "small_pool")
def test_a_stop_near_the_end_leaves_too_few_items_for_a_check() -> None:
    result = json.loads(RUN.invoke(app, ["demo", "--task", "regression", "--threshold", "0.2", "--json"]).output)
    assert result["stopped"] is True
    assert result["pool"] - result["labels"] < 2 * LEAST_CHECK
    assert result["guarantee"] is None


@pytest.mark.usefixtures("no_figure", "small_pool")
def test_the_bound_can_be_chosen() -> None:
    paper, tight = (json.loads(RUN.invoke(app, ["demo", "--json", "--bound", b]).output) for b in ("paper", "tight"))
    assert paper["certificate"] != tight["certificate"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["demo", "--threshold", "7"], 2, "threshold must be a number from 0 to 1, not 7.0"),
        (["demo", "--threshold", "low"], 2, "--threshold"),
        (["demo", "--task", "guessing"], 2, "regression"),
        (["demo", "--seed", "-1"], 2, "--seed"),
        (["demo", "--figure", "run.doc"], 2, "must end in .pdf, .png, .svg"),
        (["demo", "--figure", "nowhere/run.png"], 1, "nowhere does not exist"),
        (["demo", "--figure", "."], 1, "it is a folder"),
        (["demp"], 2, "No such command"),
        (["demo", "extra"], 2, "unexpected extra argument"),
    ],
)
def test_wrong_use_gets_a_sentence_and_no_traceback(arguments: list[str], code: int, words: str) -> None:
    done = run_suffice(*arguments)
    assert done.returncode == code
    assert words in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert not list(Path().iterdir())


@pytest.mark.slow
def test_a_figure_that_cannot_be_written_loses_nothing_else() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full here")
    Path("run.png").symlink_to(full)
    done = run_suffice("demo", "--figure", "run.png")
    assert done.returncode == 1
    assert "the figure cannot be written to run.png: No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Stop at" in done.stdout


@pytest.mark.slow
def test_a_figure_that_cannot_be_written_loses_no_json_and_the_default_one_nothing() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full here")
    Path("run.png").symlink_to(full)
    as_json = run_suffice("demo", "--figure", "run.png", "--json")
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["figure"] is None
    Path("suffice-demo.png").symlink_to(full)
    by_default = run_suffice("demo")
    assert by_default.returncode == 0
    assert "No figure: the figure cannot be written to suffice-demo.png" in by_default.stdout


@pytest.mark.usefixtures("small_pool")
def test_a_read_only_folder_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.report.figures.os.access", lambda *_: False)
    result = RUN.invoke(app, ["demo"])
    assert result.exit_code == 0
    assert "is read-only" in result.output
    asked = RUN.invoke(app, ["demo", "--figure", "run.png"])
    assert isinstance(asked.exception, SufficeError)
    assert "Go on" not in asked.output


def test_a_full_disk_gets_a_sentence() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with (
        Path("/dev/full").open("w") as full,
        start_suffice("demo", stdout=full.fileno(), function=WITH_SMALL_POOL) as done,
    ):
        _, said = done.communicate()
    assert done.returncode == 1
    assert said == "suffice: the output cannot be written: No space left on device\n"


def test_interrupt_gets_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("suffice.cli.demo_command.label_pool", interrupted)
    result = RUN.invoke(app, ["demo"])
    assert result.exit_code == 1
    assert "interrupted. Nothing was written" in result.output


@pytest.mark.usefixtures("small_pool")
def test_without_matplotlib_the_demo_works_and_says_how_to_get_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = RUN.invoke(app, ["demo"])
    assert result.exit_code == 0
    assert re.search(r"-m pip install .*'matplotlib>=", " ".join(result.output.split()))
    asked = RUN.invoke(app, ["demo", "--figure", "run.png"])
    assert isinstance(asked.exception, SufficeError)
    assert not isinstance(asked.exception, InvalidValueError)


def test_version_and_help() -> None:
    assert run_suffice("--version").stdout == f"suffice {suffice.__version__}\n"
    shown = run_suffice("demo", "--help").stdout
    assert "Example: suffice demo --task regression" in shown
    assert run_suffice("-h").returncode == 0
    assert run_suffice().returncode == 2


def test_the_page_of_the_demo_names_the_error_to_guarantee_and_the_next_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served: list[ProjectOptions] = []

    def serve(options: ProjectOptions, *_: object, **__: object) -> None:
        served.append(options)

    monkeypatch.setattr("suffice.cli.label_commands.serve_project", serve)
    monkeypatch.setattr("suffice.tables.example_data.write_digits", lambda _: 0)
    result = RUN.invoke(app, ["demo", "--page"])
    assert result.exit_code == 0, result.output
    (options,) = served
    assert options.stopping.at_most == "10%"
    assert "whether at most 10% are wrong" in result.output
    assert "suffice serve data.csv --classes" in result.output
    assert RUN.invoke(app, ["demo", "--page", "--json"]).output == ""
