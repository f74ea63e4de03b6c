"""Projects that suffice 0.6.0 created: they open, say what 0.6.0 said, and labelling goes on.

The worth of a label is another since 0.7.0, whose expected error counted the variance of the posterior twice: in the
project ``ridge`` the rule now stops at 17 labels, and not at 20.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from suffice.project.create import open_project
from suffice.project.labelling_project import Project
from suffice.project.project_learner import ProjectLearner
from suffice.project.settings import Settings
from suffice.project.status_summary import status

FOLDER: Final = Path(__file__).parent / "projects_of_0_6_0"
EXPECTED: Final = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
NAMES: Final = sorted(EXPECTED)
#: Numbers that a model computes may differ in the last digits between machines.
CLOSE: Final = 1e-9

#: The project whose rule compares the worth of a label, which is computed in another way since version 0.9.
OF_LABEL_WORTH = "ridge"


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def project(name: str, tmp_path: Path) -> Iterator[Project]:
    place = tmp_path / f"{name}.suffice"
    place.mkdir()
    shutil.copy(FOLDER / f"{name}.sqlite", place / "project.sqlite")
    with open_project(place) as opened:
        yield opened


def learner_of(project: Project) -> ProjectLearner:
    learner = ProjectLearner(project.settings, project.X)
    with project.lock:
        learner.follow(project.state().answers())
    return learner


def assert_same(found: Any, expected: Any, at: str = "") -> None:
    """Compare JSON values: texts and whole numbers exactly, other numbers to rounding."""
    if isinstance(expected, dict):
        assert sorted(found) == sorted(expected), at
        for key, value in expected.items():
            assert_same(found[key], value, f"{at}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), at
        for k, value in enumerate(expected):
            assert_same(found[k], value, f"{at}[{k}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=CLOSE, abs=0.0), at
    else:
        assert found == expected, at


def calls(project: Project) -> list[list[Any]]:
    """What a learner is told, as 0.6.0 said it: without what was drawn at random."""
    return [[answer.item, answer.label] for answer in project.state().answers()]


def numbers_in(sentence: str) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)?", sentence)


def test_all_are_there() -> None:
    assert sorted(file.stem for file in FOLDER.glob("*.sqlite")) == NAMES
    assert {each["status"]["verdict"]["stop"] for each in EXPECTED.values()} == {True, False}
    assert {each["settings"]["model"] for each in EXPECTED.values()} == {"gp", "ridge", "logistic"}
    assert any(each["corrected"] for each in EXPECTED.values())
    kinds = {kind for each in EXPECTED.values() for kind in each["events"]}
    assert kinds >= {"labelled", "skipped", "corrected", "undone", "stop advised"}


def test_settings_items_and_labels_are_the_same(name: str, project: Project) -> None:
    expected = EXPECTED[name]
    assert project.settings == Settings.from_dict(expected["settings"])
    assert project.settings.random_share == 0.0
    if name != OF_LABEL_WORTH:
        assert project.settings.criterion().state_dict() == expected["settings"]["rule"]
    assert project.size == expected["size"]
    assert [project.item(k).id for k in range(project.size)] == expected["ids"]
    assert [list(cell) for cell in project.item(0).cells] == expected["first item"]
    width, total = expected["features"]
    assert project.X.shape == (project.size, width)
    assert float(np.abs(project.X).sum()) == pytest.approx(total, rel=1e-14)
    assert [each.kind.value for each in project.events()] == expected["events"]
    with project.lock:
        state = project.state()
        assert state.seq == expected["seq"]
        assert calls(project) == expected["calls"]
        assert not any(answer.random for answer in state.answers())
        assert (state.assigned.n_asked, state.assigned.n_random) == (0, 0)
        assert [state.label_of(k) for k in range(project.size)] == expected["labels"]
        opinions = [[[each.person, each.label] for each in state.acts.opinions(k)] for k in range(project.size)]
        assert opinions == expected["opinions"]
        assert [k for k in range(project.size) if state.acts.has_correction(k)] == expected["corrected"]
        unanswered = {person: [item for item, _ in state.assigned.of_person(person)] for person in sorted(state.people)}
        assert unanswered == expected["unanswered"]


def test_the_model_and_the_rule_say_the_same(name: str, project: Project) -> None:
    expected = EXPECTED[name]
    learner = learner_of(project)
    found = learner.learning_status(queue=5)
    assert found.verdict is not None
    assert found.verdict.n_labelled == expected["verdict"]["n_labelled"]
    # 0.6.0 stated the first stop of the history with the newest hyper-parameters.
    assert learner._judge is not None
    rule_stop = learner._judge._session.history.stop
    said = rule_stop or found.verdict
    if name != OF_LABEL_WORTH:
        assert_same(said.value, expected["verdict"]["value"])
        assert found.verdict.stop == expected["verdict"]["stop"]
        assert numbers_in(said.reason) == numbers_in(expected["verdict"]["reason"])
        assert (None if rule_stop is None else rule_stop.n_labelled) == expected["stopped at"]
        assert (found.stopped_at is None) == (rule_stop is None)
    # Version 0.6.0 estimated the error in another way.
    assert [each.n_labelled for each in found.errors] == [n for n, *_ in expected["errors"]]
    assert all(0.0 <= each.low <= each.value <= each.high for each in found.errors)
    # Numbers, and items of many classes, are chosen by another acquisition since version 0.8.
    assert len(project.settings.classes) != 2 or list(found.queue) == expected["queue"]
    told = status(project, found)
    for key in ("sentence", "certificate"):
        told["verdict"].pop(key)
    told["verdict"]["value"] = said.value
    del told["words"]
    assert told.pop("model")["name"] == expected["settings"]["model"]
    if name == OF_LABEL_WORTH:
        for key in ("verdict", "curve", "forecast", "advice"):
            told[key] = expected["status"][key]
    elif told["advice"] is not None:
        # The label number of the advice is that of the decision.
        assert told["advice"].pop("n_labelled") == told["decision"]["since"]
        expected["status"]["advice"].pop("n_labelled", None)
    del told["decision"]
    told["error"]["estimates"] = expected["status"]["error"]["estimates"]
    # 0.6.0 counted all labels that people gave; those that count are counted now.
    assert sum(each["labels"] for each in told.pop("people")) == told["n_labelled"]
    del expected["status"]["people"]
    if told["agreement"] is not None:
        # Krippendorff's alpha has replaced Cohen's kappa, and the differences are those of all opinions.
        for key in ("people", "alpha", "low", "high"):
            del told["agreement"][key]
        del expected["status"]["agreement"]["kappa"]
    # What 0.6.0 did not know of.
    assert (told["error"].pop("random_labels"), told.pop("warning")) == (0, "")
    assert (told.pop("check"), told.pop("guarantee"), told.pop("goal"), told.pop("result")) == (None, None, None, None)
    assert (told.pop("usual_numbers") is None) == bool(project.settings.classes)
    assert (told.pop("n_unsure"), told.pop("revision"), told.pop("held")) == (0, 0, 0)
    # No forecast exceeds the items that have no label, since version 0.9.
    forecast, rest = expected["status"]["forecast"], project.size - found.verdict.n_labelled
    capped = forecast and {key: min(value, rest) for key, value in forecast.items()}
    then = {key: value for key, value in expected["status"].items() if key != "purchase"}
    assert_same(told, {**then, "forecast": capped})
    if "predictions" in expected:
        predictions = learner.predict(project.X)
        assert_same(predictions.labels.tolist(), expected["predictions"])
        np.testing.assert_allclose(predictions.uncertainty, expected["uncertainty"], rtol=CLOSE)


def test_labelling_goes_on(name: str, project: Project) -> None:
    learner = learner_of(project)
    before = learner.learning_status(queue=4)
    [asked] = project.next("a new person", queue=before.queue)
    label = project.settings.classes[0] if project.settings.classes else 1.25
    project.label(asked.position, label, person="a new person")
    with project.lock:
        opinions = project.state().acts.opinions(asked.position)
        learner.follow(project.state().answers())
    assert opinions[-1].person == "a new person"
    assert opinions[-1].label == label
    second_opinion = len(opinions) > 1
    assert learner.learning_status().n_labelled == before.n_labelled + (not second_opinion)
    project.undo(person="a new person")
    with project.lock:
        assert calls(project) == EXPECTED[name]["calls"]


def test_its_model_can_be_checked(project: Project) -> None:
    asked: dict[str, Any] = {} if project.settings.classes else {"tolerance": 1.0}
    label = project.settings.classes[0] if project.settings.classes else 1.25
    project.start_check(5, person="a new person", predict=lambda *_: np.array([label] * project.size), **asked)
    for item in project.state().checks.pending().tolist():
        project.label(item, label, person="a new person")
    found = project.guarantee()
    assert found is not None
    assert found.about_present_model
    assert (found.guarantee.checked, found.guarantee.wrong) == (5, 0)
