"""Where a project stands, as JSON: what the API promises, and numbers that add up."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suffice.criteria import Certificate, Verdict
from suffice.forecast import Forecast
from suffice.project.learning_status import ErrorEstimate, LearningStatus, Point
from suffice.project.status_summary import MOST_POINTS, status
from tests.project.decided import decision
from tests.project.labelled_projects import busy_project, label_some, learned
from tests.project.making_projects import make

NOT_YET = Verdict(
    stop=False, value=math.inf, threshold=math.nan, ready=True, reason="no", rule="ErrorStability", n_labelled=9
)


def strict(told: dict[str, Any]) -> dict[str, Any]:
    """What is left after a way through strict JSON, which must be all of it."""
    back: dict[str, Any] = json.loads(json.dumps(told, allow_nan=False))
    assert back == told
    return back


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_it_is_what_the_api_promises(tmp_path: Path, task: str) -> None:
    schemas = pytest.importorskip("suffice.web.http_messages")
    with busy_project(tmp_path / "p", task=task) as project:
        _, learning_status = learned(project)
        project.advise(decision(stop=True))
        told = strict(status(project, learning_status))
        assert schemas.StatusAnswer(**told).model_dump(mode="json").keys() == told.keys()
        with make(tmp_path / "empty", task=task) as empty:
            schemas.StatusAnswer(**strict(status(empty, LearningStatus())))


def test_labels_that_are_not_learned_yet_are_counted_once(tmp_path: Path) -> None:
    """One number of unlabelled items, that of the journal, also in the words, while the model is behind."""
    with busy_project(tmp_path / "p") as project:
        _, learning_status = learned(project)
        label_some(project, [item for item in range(60, 66) if project.state().labels.is_open(item)])
        told = strict(status(project, learning_status))
    assert told["behind"] > 0
    assert told["decision"]["unlabelled"] == told["left"] == told["size"] - told["n_labelled"] - told["n_skipped"]
    said = " ".join([*told["decision"]["sentences"], told["decision"]["error_note"], *told["words"]])
    assert set(re.findall(r"(\d+) unlabelled items", said)) == {str(told["left"])}
    assert f"after {told['learned']} labels" in told["decision"]["error_note"]


def test_its_numbers_are_those_of_the_project(tmp_path: Path) -> None:
    with busy_project(tmp_path / "p") as project:
        _, learning_status = learned(project)
        project.advise(decision(stop=True))
        told = strict(status(project, learning_status))
    assert (told["n_labelled"], told["n_skipped"], told["size"], told["left"]) == (40, 2, 120, 78)
    assert (told["learned"], told["behind"]) == (40, 0)
    assert sum(each["count"] for each in told["classes"]) == 40
    assert [each["name"] for each in told["classes"]] == ["cat", "dog", "eel"]
    assert [(each["name"], each["labels"]) for each in told["people"]] == [
        *(("ann", 37), ("pets.csv", 2), ("Zoë <b>", 1), ("bob", 0))
    ]
    assert (told["agreement"]["both"], told["agreement"]["same"]) == (5, 4)
    assert told["advice"]["n_labelled"] == 33
    assert told["model"] == {
        "name": "logistic",
        "description": "Bayesian logistic regression",
        "reason": "",
        "choice": None,
    }
    assert (told["decision"]["n_labelled"], told["decision"]["unlabelled"]) == (40, 78)
    assert [told["decision"]["error"][key] for key in ("value", "low", "high")] == told["error"]["estimates"][-1][1:]
    assert told["advice"]["at"].endswith("Z")
    assert told["error"]["unit"] == "share"
    assert told["error"]["estimates"][-1][0] == 40
    assert told["curve"][-1] == [40, told["verdict"]["value"], told["verdict"]["threshold"]]
    assert told["words"][0] == told["verdict"]["sentence"]
    assert told["verdict"]["certificate"].keys() == {"statement", "assumption"}


def test_a_model_that_lags_is_said_to(tmp_path: Path) -> None:
    with busy_project(tmp_path / "p") as project:
        _, learning_status = learned(project)
        label_some(project, [60, 61])
        project.skip(62, person="ann")
        told = strict(status(project, learning_status))
        assert (told["n_labelled"], told["learned"], told["behind"]) == (42, 40, 3)
        project.undo(person="ann")
        project.undo(person="ann")
        project.undo(person="ann")
        project.undo(person="ann")
        assert strict(status(project, learning_status))["behind"] == 0


def test_before_the_first_label_there_is_little_to_say(tmp_path: Path) -> None:
    with make(tmp_path / "p") as project:
        told = strict(status(project, LearningStatus()))
    assert (told["n_labelled"], told["left"], told["learned"], told["behind"]) == (0, 20, 0, 0)
    assert told["verdict"] is told["forecast"] is told["agreement"] is told["advice"] is None
    assert told["curve"] == told["people"] == told["error"]["estimates"] == []
    assert told["words"] == ["Too early to say: 10 more labels are needed before the model starts."]


def test_no_number_is_infinite_or_none_at_all(tmp_path: Path) -> None:
    nan, inf = math.nan, math.inf
    learning_status = LearningStatus(
        n_answers=9,
        n_labelled=9,
        verdict=replace(NOT_YET, certificate=Certificate("It is so.", "that it is.")),
        curve=(Point(8, nan, 1.0), Point(9, 0.5, inf)),
        forecast=Forecast(5, 3, 9),
        errors=(ErrorEstimate(8, 0.5, 0.1, inf), ErrorEstimate(9, 0.5, 0.1, 0.9)),
    )
    with make(tmp_path / "p") as project:
        told = strict(status(project, learning_status))
    assert (told["verdict"]["value"], told["verdict"]["threshold"]) == (None, None)
    assert told["curve"] == [[9, 0.5, None]]
    assert told["error"]["estimates"] == [[9, 0.5, 0.1, 0.9]]
    assert told["forecast"] == {"labels": 5, "low": 3, "high": 9, "coverage": 0.8}
    assert told["verdict"]["certificate"] == {"statement": "It is so.", "assumption": "that it is."}


def test_a_long_curve_is_thinned_and_keeps_its_ends_and_extremes(tmp_path: Path) -> None:
    curve = [Point(n, math.sin(n / 50.0), 0.1) for n in range(10, 5000)]
    curve[777] = Point(787, 40.0, 0.1)
    curve[3001] = Point(3011, -40.0, 0.1)
    with make(tmp_path / "p") as project:
        kept = strict(status(project, LearningStatus(curve=tuple(curve))))["curve"]
        short = strict(status(project, LearningStatus(curve=tuple(curve[:MOST_POINTS]))))["curve"]
    rows = [[point.n_labelled, point.value, point.threshold] for point in curve]
    assert len(kept) <= MOST_POINTS
    assert [kept[0], kept[-1]] == [rows[0], rows[-1]]
    assert rows[777] in kept
    assert rows[3001] in kept
    assert [row[0] for row in kept] == sorted({row[0] for row in kept})
    assert short == rows[:MOST_POINTS]
