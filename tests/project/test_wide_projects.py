"""Projects with many columns and classes: the model that learns fast is used, and every place says which and why."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.models import PrincipalFeatures
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import create_project, open_project
from suffice.project.labelling_project import Project
from suffice.project.learned_project import learned_project
from suffice.project.model_selection import chosen_models
from suffice.project.settings import Settings
from suffice.project.status_summary import status

CLASSES = tuple(f"c{k}" for k in range(6))
WIDTH = 200
REASON = (
    "200 columns and 6 classes: logistic regression on their 82 largest principal components at most, because with all "
    "columns it has 1,206 weights and learns too slowly."
)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    codes = np.arange(250) % len(CLASSES)
    X = rng.normal(size=(250, WIDTH)) + 2.0 * rng.normal(size=(len(CLASSES), WIDTH))[codes]
    lines = [",".join([*(f"v{k}" for k in range(WIDTH)), "kind"])]
    numbers = [",".join(map(str, row)) for row in X.round(3).tolist()]
    # Of the first 20 rows the class is known.
    lines += [
        f"{row},{CLASSES[code] if k < 20 else ''}" for k, (row, code) in enumerate(zip(numbers, codes, strict=True))
    ]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines))
    every = [f"{row},{CLASSES[code]}" for row, code in zip(numbers, codes, strict=True)]
    (tmp_path / "labelled.csv").write_text("\n".join([lines[0], *every]))
    return path


@pytest.fixture
def project(rows: Path, tmp_path: Path) -> Project:
    with create_project(tmp_path / "p", rows, target="kind", seed=0) as made:
        return made


def test_the_project_says_which_model_it_has_and_why(project: Project, tmp_path: Path) -> None:
    assert (project.settings.model, project.settings.model_reason) == ("components", REASON)
    assert project.settings.creation_notes[-1] == REASON
    assert REASON not in project.settings.notes
    with open_project(tmp_path / "p") as again, BackgroundLearner(again) as background:
        assert again.settings == project.settings
        assert background.wait_settled(60.0)
        told = status(again, background.learning_status)["model"]
        description = "Bayesian logistic regression on principal components"
        assert told == {"name": "components", "description": description, "reason": REASON, "choice": None}
        again.switch_model("forest", person="ann")
        assert status(again, background.learning_status)["model"]["reason"] == ""
        again.switch_model("components", person="ann")
        assert status(again, background.learning_status)["model"]["reason"] == REASON


@pytest.mark.usefixtures("project")
def test_a_reopened_project_and_its_pipeline_predict_the_same(tmp_path: Path) -> None:
    with open_project(tmp_path / "p") as again:
        first = learned_project(again.contents).predict(again.X).probabilities
        with BackgroundLearner(again, again.learned_files) as background:
            assert background.wait_settled(60.0)
        second = learned_project(again.contents).predict(again.X).probabilities
        assert first is not None
        assert second is not None
        np.testing.assert_allclose(second, first, rtol=1e-9)
        *_, (_, inputs), (_, model) = again.model_results.pipeline().steps
        assert isinstance(inputs.steps[-1][1], PrincipalFeatures)
        np.testing.assert_allclose(model.predict_proba(inputs.transform(again.X)).max(axis=1), first.max(axis=1))


def test_a_named_model_is_used(rows: Path, tmp_path: Path) -> None:
    for name in ("logistic", "forest", "components"):
        with create_project(tmp_path / name, rows, target="kind", model=name, seed=0) as made:
            assert (made.settings.model, made.settings.model_reason) == (name, "")


def test_the_choice_between_models_begins_with_it(rows: Path, tmp_path: Path) -> None:
    with create_project(tmp_path / "p", rows, target="kind", of="all", at_most=0.05, seed=0) as made:
        assert (made.settings.model, made.settings.choose_model) == ("components", True)
        assert chosen_models(made.settings) == ["components", "kernel", "forest"]
        assert chosen_models(made.settings.using("forest")) == ["components", "kernel", "forest"]


def test_settings_of_earlier_versions_keep_their_model(project: Project) -> None:
    saved = project.settings.as_dict()
    assert Settings.from_dict(saved) == project.settings
    del saved["model_reason"]
    saved["model"] = "logistic"
    older = Settings.from_dict(saved)
    assert (older.model, older.model_reason, older.usual_model) == ("logistic", "", "logistic")
    assert "model_reason" not in older.as_dict()
    assert older.creation_notes == older.notes
    # The reason is only shown.
    assert "model_reason" not in project.settings.learned_part()


def test_the_commands_say_it(rows: Path) -> None:
    rows = rows.with_name("labelled.csv")
    run = CliRunner().invoke(app, ["run", str(rows), "--target", "kind", "--most", "20"])
    assert "model: Bayesian logistic regression on principal components;" in run.output
    assert f"- {REASON}" in run.output
    found = json.loads(CliRunner().invoke(app, ["run", str(rows), "--target", "kind", "--most", "20", "--json"]).stdout)
    assert found["model"] == "components"
    assert found["notes"][-1] == REASON
    audited = CliRunner().invoke(app, ["audit", str(rows), "--target", "kind", "--most", "20", "--json"])
    assert json.loads(audited.stdout)["model"] == "components"
    named = ["run", str(rows), "--target", "kind", "--model", "kernel", "--most", "20", "--json"]
    found = json.loads(CliRunner().invoke(app, named).stdout)
    assert found["model"] == "kernel"
    assert REASON not in found["notes"]
