"""Unit and plausible range of numbers: settings, labels that must be confirmed, imports, and the terminal."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from suffice.cli.labeller import Labeller, label_by_lines
from suffice.errors import InvalidValueError
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import create_project, open_project
from tests.project.making_projects import make
from tests.web.web_projects import running_app, script_of


def test_a_number_outside_of_the_range_must_be_confirmed(tmp_path: Path) -> None:
    data = {"x": [float(k) for k in range(20)]}
    with create_project(tmp_path / "p", data, regression=True, unit="kg", lowest=0.0, highest=120.0) as project:
        for inside in (0.0, 120.0):
            project.label(int(inside > 0), inside, person="ann")
        before = project.events()
        for wrong, said in ((-0.1, "-0.1 kg"), (1200.0, "1,200 kg")):
            with pytest.raises(InvalidValueError, match=f"{said} is outside of the plausible range, 0 to 120 kg"):
                project.label(2, wrong, person="ann")
            with pytest.raises(InvalidValueError, match="outside of the plausible range"):
                project.correct(0, wrong, person="ann")
        assert project.events() == before
        project.label(2, 1200.0, person="ann", outside_range=True)
        project.correct(0, -1.0, person="ann", outside_range=True)
        assert (project.state().label_of(2), project.state().label_of(0)) == (1200.0, -1.0)
        project.change_settings({"highest": None}, person="ann")
        project.label(3, 5000.0, person="ann")
    with open_project(tmp_path / "p") as again:
        assert (again.settings.unit, again.settings.lowest, again.settings.highest) == ("kg", 0.0, None)


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ("regression", {"lowest": 3.0, "highest": 3.0}, "lowest must be below highest"),
        ("regression", {"lowest": float("nan")}, "lowest must be"),
        ("regression", {"unit": "x" * 41}, "unit must be 0 to 40 characters"),
        ("classification", {"unit": "kg"}, "unit is for numbers"),
        ("classification", {"highest": 3.0}, "highest is for numbers"),
    ],
)
def test_what_cannot_be_a_range(tmp_path: Path, task: Any, changes: dict[str, Any], message: str) -> None:
    with make(tmp_path / "p.suffice", task=task) as project, pytest.raises(InvalidValueError, match=message):
        project.change_settings(changes, person="ann")


def test_imported_numbers_outside_of_the_range_are_used_and_named(tmp_path: Path) -> None:
    with make(tmp_path / "n.suffice", 20, task="regression", lowest=0.0, unit="m") as project:
        found = {"id": ["id-3", "id-4"], "y": [1.5, -3.0]}
        report = project.import_labels(found, label="y", person="ann", check=True)
        assert (report.outside_range, report.outside_range_examples) == (1, ("'id-4' (-3)",))
        said = "Labels outside of the plausible range, at least 0 m: 1, such as 'id-4' (-3). They are used"
        assert any(each.startswith(said) for each in report.sentences())
        assert project.import_labels(found, label="y", person="ann").labelled == 2


def test_in_the_terminal_the_same_number_again_confirms_it(tmp_path: Path) -> None:
    with make(tmp_path / "n.suffice", 20, task="regression", highest=10.0) as project:
        with BackgroundLearner(project) as background:
            out = StringIO()
            labeller = Labeller(project, background, "ann")
            label_by_lines(labeller, Console(file=out), ["99", "98", "98", "7", "q"])
        assert sorted(project.state().counts()) == [7.0, 98.0]
        assert out.getvalue().count("is outside of the plausible range, at most 10; if it is right, give it again") == 2


def test_the_api_wants_a_confirmation(tmp_path: Path) -> None:
    data = {"x": [float(k) for k in range(20)]}
    with running_app(create_project(tmp_path / "p", data, regression=True)) as app:
        script = script_of(app)

        def sent(path: str, **body: Any) -> Any:
            return script.post(f"/api/{path}", json={"person": "Ann", **body})

        assert sent("settings", unit="km", lowest=0, highest=40).status_code == 200
        found = script.get("/api/project").json()
        assert (found["unit"], found["lowest"], found["highest"]) == ("km", 0.0, 40.0)
        refused = sent("labels", item=0, label=400.0)
        assert refused.status_code == 422
        assert "outside of the plausible range, 0 to 40 km" in refused.json()["detail"]
        assert sent("labels", item=0, label=400.0, outside_range=True).status_code == 200
        assert sent("settings", highest=None).status_code == 200
        assert script.get("/api/settings").json()["highest"] is None
