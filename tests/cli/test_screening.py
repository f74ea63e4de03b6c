"""``suffice run --positive``: what a screening of a table says, and what it refuses."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from suffice import RecallTest, Trace
from suffice.checks import Guarantee, spent_alpha
from suffice.cli.app import app
from suffice.cli.rule_options import named_rules, screening_rule
from suffice.errors import InvalidValueError, SufficeError
from tests.cli.test_run import write

pytestmark = pytest.mark.usefixtures("in_a_folder")
RUN = CliRunner()
ROWS = 240


@pytest.fixture(name="in_a_folder")
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def records(rows: int = ROWS, **others: Iterable[object]) -> str:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, 2)).round(3)
    kind = np.where(x[:, 0] + 0.2 * rng.normal(size=rows) > 1.4, "in", "out")
    return write("records.csv", a=x[:, 0], b=x[:, 1], kind=kind, score=x[:, 0] * 2.0, **others)


def result(*arguments: str) -> dict[str, Any]:
    done = RUN.invoke(app, ["run", *arguments, "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    return dict(json.loads(done.output))


def refused(*arguments: str) -> str:
    done = RUN.invoke(app, ["run", *arguments])
    assert done.exit_code != 0
    assert isinstance(done.exception, SufficeError), done.exception
    return str(done.exception)


def test_a_screening_as_json() -> None:
    name = records()
    found = result(name, "--target", "kind", "--ignore", "score", "--positive", "in", "--recall", "80%")
    lines = Path(name).read_text().splitlines()[1:]
    relevant = sum(line.split(",")[2] == "in" for line in lines)
    assert (found["size"], found["relevant"], found["recall"]) == (ROWS, relevant, 0.8)
    assert found["stopped"]
    assert found["screened"] < ROWS
    assert found["rule"] == {"name": "RecallTest", "at_least": 0.8, "confidence": 0.95}
    assert found["recall_reached"] == found["found"] / relevant >= 0.8
    assert found["value"] < found["threshold"] == pytest.approx(0.05)
    assert found["curve"]["n_labelled"][-1] == found["screened"]
    assert found["curve"]["found"][-1] == found["found"]
    rest = ROWS - found["screened"]
    proven = Guarantee.of_recall("in", found["found"], 0, found["check_for_recall"], rest, alpha=spent_alpha(1)).value
    assert proven >= 0.8
    less = Guarantee.of_recall("in", found["found"], 0, found["check_for_recall"] - 1, rest, alpha=spent_alpha(1)).value
    assert less < 0.8
    assert found == result(name, "--target", "kind", "--ignore", "score", "--positive", "in", "--recall", "0.8")


def test_a_person_gets_a_sentence_for_a_review() -> None:
    done = RUN.invoke(
        app, ["run", records(), "--target", "kind", "--ignore", "score", "--positive", "in", "--recall", "0.7"]
    )
    assert done.exit_code == 0, done.exception
    said = done.output.replace("\xa0", " ")
    assert "Enough: " in said
    assert "were screened in the order of their predicted relevance, until the rule RecallTest(at_least=0.7" in said
    assert "By the labels of the file these are" in said
    assert "can guarantee a recall" in said
    assert "Relevant rows found, by rows screened" in said


def test_other_rules_batches_and_saved_runs() -> None:
    found = result(
        records(),
        *("--target", "kind", "--ignore", "score", "--positive", "in", "--rule", "consecutiveirrelevant"),
        *("--batch", "5", "--initial", "15", "--save", "run.npz", "--random-share", "0.2"),
    )
    assert found["rule"] == {"name": "ConsecutiveIrrelevant", "items": 50}
    assert np.diff(found["curve"]["n_labelled"]).tolist() == [5] * (len(found["curve"]["n_labelled"]) - 1)
    trace = Trace.load(found["saved_trace"])
    assert trace.about["acquisition"] == "relevance"
    assert trace.n_labelled[-1] == found["screened"]
    assert len(trace.random_items) > 15


def test_a_screening_may_end_before_its_rule_stops() -> None:
    done = RUN.invoke(
        app, ["run", records(), "--target", "kind", "--ignore", "score", "--positive", "in", "--most", "40"]
    )
    assert done.exit_code == 0, done.exception
    assert "Not enough within 40 of 240 rows" in done.output
    found = result(records(), "--target", "kind", "--ignore", "score", "--positive", "in", "--most", "40")
    assert (found["screened"], found["stopped"]) == (40, False)


def test_classes_that_are_numbers_and_a_class_of_several() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=150).round(3)
    name = write("stars.csv", x=x, stars=np.clip(np.round(2 * x), -2, 2).astype(int))
    found = result(name, "--target", "stars", "--positive", "2", "--recall", "60%")
    assert found["relevant"] == (np.clip(np.round(2 * x), -2, 2) == 2).sum()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--positive", "inn"], "--positive must be a class of the column 'kind', not 'inn'. Did you mean 'in'?"),
        (["--positive", "in", "--recall", "1"], "--recall must be a share above 0 and below 1"),
        (["--positive", "in", "--recall", "95"], "write 95% for 95 percent"),
        (["--positive", "in", "--recall", "much"], "--recall must be a share"),
        (["--recall", "0.9"], "--recall is for screening: give --positive CLASS too"),
        (["--positive", "in", "--rule", "LabelWorth"], "--rule with --positive must be one of ConsecutiveIrrelevant"),
        (["--positive", "in", "--mistake-cost", "3"], "--mistake-cost is not used with --positive"),
        (["--positive", "in", "--at-most", "5%"], "--at-most is not used with --positive"),
        (["--positive", "in", "--figure", "a.png"], "--figure is not used with --positive"),
        (["--positive", "in", "--may-miss", "out"], "--may-miss cannot be combined with --positive"),
        (["--may-miss", "inn"], "--may-miss must be a class of the column 'kind', not 'inn'. Did you mean 'in'?"),
        (["--positive", "in", "--task", "regression"], "regression"),
        (["--rule", "RecallTest"], "--rule RecallTest is for screening"),
        (["--rule", "QuantileRecall"], "--rule QuantileRecall is for screening"),
    ],
)
def test_options_that_cannot_be_used(options: list[str], said: str) -> None:
    assert said in refused(records(), "--target", "kind", *options)


def test_a_rare_class_holds_the_stop_of_a_run_back_unless_it_may_be_missed() -> None:
    options = (records(), "--target", "kind", "--ignore", "score", "--mistake-cost", "0.02", "--test", "0")
    held, missed = result(*options), result(*options, "--may-miss", "in")
    assert held["stopped"]
    assert missed["stopped"]
    assert missed["labels"] < held["labels"]
    assert "held_back" in held["decision"]


def test_numbers_have_no_positive_class() -> None:
    assert "the target 'score' is a number" in refused(
        records(), "--target", "score", "--ignore", "kind", "--positive", "in"
    )


def test_names_of_rules() -> None:
    assert isinstance(screening_rule(None, 0.9), RecallTest)
    assert not {"RecallTest", "Knee", "QuantCI", "Safe", "QuantileRecall"} & set(named_rules())
    with pytest.raises(InvalidValueError, match="not 'QuantileRecall'"):
        screening_rule("QuantileRecall", 0.9)
