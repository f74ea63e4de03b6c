"""Another model for a project: written once, the same for everybody, and after a restart."""

import multiprocessing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from suffice import LabelWorth
from suffice.cli.app import app
from suffice.errors import InvalidValueError
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import open_project, write_project
from suffice.project.events import Event, EventKind
from suffice.project.exported_files import predictions_file
from suffice.project.items import Items
from suffice.project.labelling_project import ConflictError, Project
from suffice.project.project_learner import ProjectLearner
from suffice.project.settings import Settings
from suffice.project.state import ProjectState
from suffice.project.status_summary import status
from suffice.tables.table_cells import CellColumns
from tests.project.making_projects import make


@pytest.fixture
def project(place: str) -> Iterator[Project]:
    with make(place) as project:
        yield project


def test_the_model_is_changed_and_changed_back(project: Project, place: str) -> None:
    assert project.current_settings == project.settings
    receipt = project.switch_model("kernel", person="ann", request="one")
    assert not receipt.repeated
    assert project.current_settings == replace(project.settings, model="kernel")
    assert project.settings.model == "logistic"
    last = project.events()[-1]
    assert (last.kind, last.person, last.item, dict(last.data)) == (
        *(EventKind.model_changed, "ann", None),
        {"model": "kernel"},
    )
    with open_project(place) as other:
        assert other.settings.model == "logistic"
        assert other.current_settings.model == "kernel"
        assert other.switch_model("kernel", person="ann", request="one").repeated
        other.switch_model("logistic", person="bob")
    assert project.current_settings == project.settings
    assert [event.kind for event in project.events()].count(EventKind.model_changed) == 2


def test_what_cannot_be_changed_is_answered(project: Project) -> None:
    for name, answer in (
        ("gp", "the model gp is for regression, and this is a project of classification; use logistic or kernel"),
        ("forest", "the rule ErrorStability requires kl_new_old.* a forest of randomised trees .*; use LabelWorth"),
        ("tree", "model must be one of gp, ridge, logistic, kernel, components, forest, boosting, not 'tree'"),
        ("dropout", "learns too slowly for a person who waits"),
    ):
        with pytest.raises(InvalidValueError, match=answer):
            project.switch_model(name, person="ann")
    with pytest.raises(ConflictError, match="the project uses the model logistic already"):
        project.switch_model("logistic", person="ann")
    with pytest.raises(InvalidValueError, match="the name of a person"):
        project.switch_model("kernel", person="")
    project.switch_model("kernel", person="ann", request="one")
    with pytest.raises(ConflictError, match="was used before, for something else"):
        project.switch_model("logistic", person="ann", request="one")
    assert [event.kind for event in project.events()][1:] == [EventKind.model_changed]


def test_the_state_keeps_the_newest_model() -> None:
    state = ProjectState(3)
    assert state.model is None
    for seq, name in enumerate(("kernel", "logistic", "kernel"), start=1):
        state.apply(Event(EventKind.model_changed, "ann", data={"model": name}, seq=seq))
        assert state.model == name
    assert state.n_labelled == 0


def test_a_classifier_of_texts_uses_all_components_once_it_is_switched() -> None:
    settings = Settings(
        *("p", "classification", ("a", "b"), "y", "text", ("t",), "t", "logistic"), LabelWorth().state_dict()
    )
    chosen = replace(settings, components=((0, 3),))
    assert chosen.using("kernel").estimator()[-1].components is None
    assert settings.models() == ["logistic", "kernel", "components", "forest", "boosting"]
    for name in ("forest", "boosting"):
        assert chosen.using(name).estimator().random_state == 0
        chosen.using(name).require_usable_rule()


# --- the model of a circle ---

N = 240
X = np.random.default_rng(0).normal(size=(N, 2))
LABELS = ["inside" if float(x @ x) < 1.4 else "outside" for x in X]


def circle(place: Path, labels: int = 70, *, mistake_cost: float | None = None, **changes: Any) -> Project:
    """A project whose boundary the logistic model cannot represent, with labels of items drawn at random."""
    settings = Settings(
        *("circle", "classification", ("inside", "outside"), "y", "table", ("a", "b"), None, "logistic"),
        LabelWorth(mistake_cost=mistake_cost).state_dict(),
        **{"random_share": 1.0, **changes},
    )
    cells = CellColumns.of_rows([(str(a), str(b)) for a, b in X])
    names = tuple(map(str, range(N)))
    items = Items("table", names, ("a", "b"), cells, None, X, "classification", settings.classes, {}, ())
    project = write_project(place, settings, items)
    for asked in project.next("ann", labels):
        project.label(asked.position, LABELS[asked.position], person="ann")
    return project


def by_hand(project: Project) -> Any:
    learner = ProjectLearner(project.current_settings, project.X)
    learner.follow(project.state().answers())
    return learner.learning_status()


@pytest.mark.slow
def test_another_model_learns_all_labels_anew(tmp_path: Path) -> None:
    with circle(tmp_path / "p") as project, BackgroundLearner(project) as background:
        assert background.wait_settled(60.0)
        before = background.learning_status.decision
        assert before is not None
        assert before == by_hand(project).decision
        assert before.answer == "limit"
        assert before.alternative is not None
        assert before.alternative.name == "kernel"
        assert project.state().advice is not None

        project.switch_model("kernel", person="ann")
        assert background.wait_settled(60.0)
        after = background.learning_status
        assert after.decision == by_hand(project).decision
        assert after.decision is not None
        assert after.decision.answer != "limit"
        assert before.error is not None
        assert after.decision.error is not None
        assert after.decision.error.value < before.error.value / 2.0
        assert after.n_labelled == 70
        assert (project.state().advice is not None) == after.decision.stop
        told = status(project, after)
        assert told["model"]["name"] == "kernel"
        right = background.predictions().labels == np.array(LABELS)
        assert right.mean() > 0.9
        assert predictions_file(project, background.predictions(), "csv").rows == N - 70
        # Journal and learner agree after a restart.
        with open_project(str(tmp_path / "p")) as again:
            assert by_hand(again).decision == after.decision


def test_a_better_model_is_named_while_labelling_goes_on(tmp_path: Path) -> None:
    with circle(tmp_path / "p", 60, mistake_cost=100.0) as project, BackgroundLearner(project) as background:
        assert background.wait_settled(60.0)
        found = background.learning_status.decision
        assert found is not None
        assert found == by_hand(project).decision
        assert found.answer == "keep going"
        other = found.alternative
        assert other is not None
        assert other.clear
        told = status(project, background.learning_status)["decision"]["alternative"]
        assert (told["name"], told["avoided"]) == (other.name, other.avoided)
        assert told["worth"] == pytest.approx(other.worth)
        # A stop of the rule is not recorded.
        assert project.state().advice is None
        project.switch_model("boosting", person="ann")
        assert background.wait_settled(60.0)
        assert status(project, background.learning_status)["model"]["name"] == "boosting"
    shown = CliRunner().invoke(app, ["status", str(tmp_path / "p")]).output
    assert "Model: gradient-boosted trees." in shown
    with open_project(str(tmp_path / "p")) as project:
        project.switch_model("logistic", person="ann")
    shown = CliRunner().invoke(app, ["status", str(tmp_path / "p")]).output
    assert f"Switch the model: suffice switch {tmp_path / 'p'} --model {other.name}" in shown


def _switch(place: str, pipe: Any) -> None:
    with open_project(place) as project, BackgroundLearner(project) as background:
        project.switch_model("kernel", person="bob")
        background.wait_settled(60.0)
        pipe.send(background.learning_status.decision)


@pytest.mark.slow
def test_two_processes_agree(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    with circle(tmp_path / "p", 40) as project:
        other = context.Process(target=_switch, args=(str(tmp_path / "p"), there))
        other.start()
        assert here.poll(90.0)
        decided = here.recv()
        other.join(30.0)
        assert other.exitcode == 0
        with BackgroundLearner(project) as background:
            assert background.wait_settled(60.0)
            assert background.learning_status.decision == decided == by_hand(project).decision
            # Neither of them takes back what the other wrote.
            advice = [event.kind for event in project.events()]
            background.wait_settled(5.0)
            assert [event.kind for event in project.events()] == advice
