"""Files that suffice 1.0.0rc1 wrote: projects, what they had learned, labels, states, runs and checkpoints.

``projects_of_1_0_0rc1/make_files.py`` made them. States of monitors are in ``tests/learner/test_saved_learners.py``.
"""

import json
import re
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

import suffice as sf
from suffice import checks
from suffice.criteria import RULES, criterion_from_dict
from suffice.errors import SufficeError
from suffice.learner import OptimisationMonitor
from suffice.models import BayesianRidge, GaussianProcess
from suffice.project.accounts import Account
from suffice.project.create import open_project
from suffice.project.labelling_project import Project
from suffice.project.learned_files import FOLDER as LEARNED
from suffice.project.project_learner import ProjectLearner
from suffice.project.status_summary import status
from suffice.testing import example_steps
from tests.processes import run_suffice

FOLDER: Final = Path(__file__).parent / "projects_of_1_0_0rc1"
EXPECTED: Final = json.loads((FOLDER / "files.json").read_text(encoding="utf-8"))
NAMES: Final = ("texts", "numbers", "screening")
#: Rules whose formula has changed since then; see the changelog.
CHANGED: Final = {"LabelWorth"}


def copied(name: str, folder: Path) -> Path:
    place = folder / f"{name}.suffice"
    place.mkdir()
    shutil.copy(FOLDER / f"{name}.sqlite", place / "project.sqlite")
    return place


def about(account: Account) -> list[str]:
    return [account.name, account.role]


def guaranteed(project: Project) -> dict[str, Any] | None:
    """The guarantee as 1.0.0rc1 wrote it: models have names for people since then."""
    guarantee = project.guarantee()
    if guarantee is None:
        return None
    told = guarantee.as_dict()
    for key in ("model", "evidence"):
        told[key] = re.sub(r"Bayesian ridge regression.* at (?=\d)", "ridge at ", told[key])
    return told


@pytest.mark.parametrize("name", NAMES)
def test_a_project_opens_with_all_that_is_in_its_journal(name: str, tmp_path: Path) -> None:
    expected = EXPECTED[name]
    with open_project(copied(name, tmp_path)) as project:
        state = project.state()
        assert [state.label_of(item) for item in range(project.size)] == expected["labels"]
        assert list(map(about, project.accounts())) == expected["accounts"]
        assert list(project.current_settings.classes or ()) == expected["classes"]
        assert [[check.number, check.state] for check in project.checks()] == expected["checks"]
        found = guaranteed(project)
        assert (found is None) == (expected["guarantee"] is None)
        if found is not None:
            assert {key: found[key] for key in expected["guarantee"]} == expected["guarantee"]
        learner = ProjectLearner(project.current_settings, project.X, compare=False)
        learner.follow(state.learned())
        learned = learner.learning_status(queue=5)
        told = status(project, learned)
        assert (told["n_labelled"], told["n_skipped"]) == (expected["n_labelled"], expected["n_skipped"])
        # Labelling goes on.
        [asked] = project.next("ann", queue=learned.queue)
        labels: dict[str, str | float] = {"texts": "sport", "numbers": 1.5, "screening": "no"}
        label = labels[name]
        project.label(asked.position, label, person="ann")
        assert project.state().label_of(asked.position) == label


def test_an_open_check_is_completed(tmp_path: Path) -> None:
    with open_project(copied("texts", tmp_path)) as project:
        assert project.guarantee() is None
        while project.checks()[0].state == "open":
            [asked] = project.next("ann")
            project.label(asked.position, "sport", person="ann")
        guarantee = project.guarantee()
        assert guarantee is not None
        assert guarantee.guarantee.checked == 12


@pytest.mark.parametrize("name", NAMES)
def test_commands_accept_the_project_and_nothing_in_it_is_damaged(name: str, tmp_path: Path) -> None:
    place = copied(name, tmp_path)
    if name == "numbers":
        shutil.unpack_archive(FOLDER / "learned.zip", place / LEARNED)
    told = json.loads(run_suffice("status", str(place), "--json").stdout)
    assert told["n_labelled"] == EXPECTED[name]["n_labelled"]
    assert "Nothing is damaged" in run_suffice("repair", str(place)).stdout
    written = json.loads(run_suffice("export", str(place), "--json").stdout)
    assert Path(written["labels"]["path"]).is_file()


def test_labels_that_were_exported_are_imported(tmp_path: Path) -> None:
    expected = EXPECTED["numbers"]["labels"]
    with open_project(copied("numbers", tmp_path)) as project:
        checked = project.checks()[0].record.items
        given = [item for item, label in enumerate(expected) if label is not None and item not in checked]
        for item in given:
            project.take_back(item, person="ann")
            assert project.state().label_of(item) is None
        report = project.import_labels(FOLDER / "labels.csv", label="y", person="ann")
        assert (report.labelled, report.same) == (len(given), len(checked))
        assert [project.state().label_of(item) for item in range(project.size)] == expected


def test_an_exported_guarantee_is_read() -> None:
    written = json.loads((FOLDER / "guarantee.json").read_text(encoding="utf-8"))
    known = {field.name for field in fields(checks.Guarantee)}
    found = checks.Guarantee.from_dict({key: value for key, value in written.items() if key in known})
    assert (found.value, found.checked, str(found)) == (written["value"], written["checked"], written["statement"])


@pytest.mark.parametrize("name", EXPECTED["rules"])
def test_the_state_of_a_rule_is_restored(name: str) -> None:
    saved, step = EXPECTED["rules"][name], example_steps(40, seed=1)[20]
    rule = criterion_from_dict(saved["state"])
    assert type(rule) is RULES[name]
    verdict = rule.observe(step)
    stop, value, n_labelled = saved["next"]
    assert verdict.n_labelled == n_labelled
    if name not in CHANGED:
        assert verdict.stop == stop
        assert verdict.value == (None if value is None else pytest.approx(value, rel=1e-9))


def test_every_rule_of_1_0_0rc1_still_exists() -> None:
    assert set(EXPECTED["rules"]) <= set(RULES)
    assert len(EXPECTED["rules"]) == 39


def test_the_monitor_of_an_optimisation_is_restored() -> None:
    saved = EXPECTED["optimisation"]
    X = np.array(saved["X"])
    monitor = OptimisationMonitor.from_state(saved["state"], [[0.0, 1.0]])
    verdict = monitor.update(GaussianProcess(length_scale=0.3, noise=0.01).fit(X, np.sin(6.0 * X[:, 0])))
    assert [verdict.stop, verdict.n_labelled] == saved["next"]


def test_a_saved_run_is_loaded_and_judged() -> None:
    trace = sf.Trace.load(FOLDER / "trace.npz")
    assert trace.indices.tolist() == EXPECTED["runs"]["trace"]
    assert len(trace.replay(sf.LabelWorth())) == len(trace)


def test_an_interrupted_run_goes_on_with_the_same_picks(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.json"
    shutil.copy(FOLDER / path.name, path)
    X = np.random.default_rng(0).normal(size=(60, 2))
    found = sf.simulate(BayesianRidge(), X, X @ [1.0, 2.0], steps=20, seed=0, checkpoint=path)
    assert found.indices.tolist() == EXPECTED["runs"]["checkpoint"]
    saved = json.loads((FOLDER / path.name).read_text(encoding="utf-8"))
    assert [item for group in saved["groups"] for item in group] != found.indices.tolist()
    with pytest.raises(SufficeError, match="is of another run"):
        sf.simulate(BayesianRidge(), X + 1.0, X @ [1.0, 2.0], steps=20, seed=0, checkpoint=path)
