"""Names of 1.0.0rc1 that have changed work until 1.2.0, with a warning that says what to use instead."""

import importlib
import json
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice import checks, deprecation
from suffice.errors import InvalidValueError
from suffice.learner import OptimisationMonitor
from suffice.models import BayesianLogistic
from tests.structure import ROOT

#: The documented names of 1.0.0rc1 in modules that have moved.
NAMES = {
    "suffice.decision": ["Alternative", "Decision", "ErrorNow", "ScreeningProgress"],
    "suffice.learner.suspicious_labels": ["SuspiciousLabel", "suspicious_labels"],
    "suffice.models.deep.sampling": ["last_layer"],
    "suffice.recommendation": ["Expectation", "Recommendation", "recommend"],
    "suffice.recommendation.compared_rules": ["Entry", "catalogue"],
    "suffice.research.compare.recording": ["RecordingJob", "RecordingSettings", "cut", "load_task", "recordings"],
    "suffice.research.compare.scoring": ["RuleScore", "RunCase", "scores"],
    "suffice.research.data": [
        *("CORRECTED", "ColumnRoles", "DataSet", "Experiment", "LabelledTexts", "PAPER_SETS", "PUBLISHED", "SETS"),
        *("Samples", "data_folder", "read_columns", "read_mnist", "read_set", "read_texts", "read_words"),
    ],
    "suffice.research.data.catalogue": ["DataFile", "DataSet", "FileSource", "SETS", "data_set"],
    "suffice.research.data.download": ["FetchResult", "fetch"],
    "suffice.research.data.protocols": ["CORRECTED", "ColumnRoles", "Experiment", "PUBLISHED"],
    "suffice.research.data.set_readers": [
        *("NumericColumns", "Samples", "mnist_folder", "read_columns", "read_mnist", "read_set", "read_texts"),
        "read_words",
    ],
    "suffice.research.paper.claims": ["ClaimFinding", "Erratum", "judge"],
    "suffice.research.paper.experiments": ["run_experiment"],
    "suffice.research.paper.outcome": ["RunOutcome", "correlation", "first_at_most", "measure", "running_minima"],
    "suffice.research.paper.paper_report": ["paper_tables"],
}


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No module has been imported under its earlier name."""
    for name in [name for name in sys.modules if deprecation.is_moved(name)]:
        monkeypatch.delitem(sys.modules, name)
    for old in deprecation.MOVED:
        parent, _, name = old.rpartition(".")
        monkeypatch.delitem(vars(importlib.import_module(parent)), name, raising=False)


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("module", NAMES)
def test_a_module_that_has_moved_has_its_documented_names(module: str) -> None:
    if ".deep." in module:
        pytest.importorskip("torch")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = importlib.import_module(module)
    (warning,) = [each for each in caught if str(each.message).startswith(f"{module} ")]
    assert warning.category is DeprecationWarning
    current = str(warning.message).rpartition("; use ")[2]
    assert str(warning.message) == f"{module} is deprecated and will be removed in suffice 1.2.0; use {current}"
    for name in NAMES[module]:
        assert getattr(found, name) is getattr(importlib.import_module(current), name)
    with pytest.raises(AttributeError, match="no_such_name"):
        found.no_such_name  # noqa: B018


def test_each_moved_module_is_listed_here_and_in_the_upgrade_note() -> None:
    assert {next(old for old in deprecation.MOVED if name.startswith(old)) for name in NAMES} == set(deprecation.MOVED)
    note = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
    for old, new in deprecation.MOVED.items():
        assert f"`{old}`" in note
        assert f"`{new}`" in note


def test_a_moved_module_is_an_attribute_of_its_package() -> None:
    code = (
        "import warnings; warnings.simplefilter('ignore'); import suffice as sf; "
        "print(sf.decision.Decision.__module__, sf.recommendation.recommend.__name__, hasattr(sf, 'decisions'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["suffice.session.decision", "recommend", "False"]


def test_the_warning_is_shown_at_the_line_of_the_program(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import suffice\n\nfrom suffice.decision import Decision\n", encoding="utf-8")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert f"{program}:3: DeprecationWarning: suffice.decision is deprecated" in done.stderr
    assert done.stderr.count("Warning: ") == 1


def test_without_research_its_former_modules_name_the_pip_command() -> None:
    code = (
        "import sys; sys.modules['suffice_research'] = None\n"
        "from importlib import util\n"
        "import suffice.deprecation\n"
        "suffice.deprecation.find_spec = lambda name: None\n"
        "try:\n    import suffice.recommendation\n"
        "except suffice.errors.MissingResearchError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("suffice.recommendation needs suffice-research")
    assert "pip install" in done.stdout


def learner() -> sf.ActiveLearner:
    X = np.random.default_rng(0).normal(size=(60, 2))
    labels = np.where(X[:, 0] > 0.0, "right", "left")
    made = sf.ActiveLearner(BayesianLogistic(), X, seed=0)
    made.tell(list(range(30)), labels[:30])
    return made


def plan_of_a_learner(**arguments: Any) -> Any:
    return learner().guarantee_plan(0.3, **arguments)


def total(**arguments: Any) -> Any:
    return checks.plan_total(0.1, error=0.04, reducible=0.01, n_labelled=400, pool=4300, **arguments)


CHECK = checks.plan(target=0.05, expected=0.02, pool=4600)
#: What is used, the same with current names, the subject of the warning, and the end of the sentence.
USES: dict[str, tuple[Callable[[], Any], Callable[[], Any], str, str]] = {
    "least": (lambda: CHECK.least, lambda: CHECK.labels, "CheckPlan.least", "use labels"),
    "probability": (
        lambda: total().probability,
        lambda: total().success,
        "GuaranteePlan.probability",
        "use success",
    ),
    "plan_total": (
        lambda: total(probability=0.9),
        total,
        "the argument probability of plan_total",
        "leave it out",
    ),
    "guarantee_plan": (
        lambda: plan_of_a_learner(probability=0.9),
        plan_of_a_learner,
        "the argument probability of guarantee_plan",
        "leave it out",
    ),
    "progress": (
        lambda: learner().progress()["loop"],
        lambda: learner().state_dict()["loop"],
        "ActiveLearner.progress",
        "use state_dict",
    ),
    "monitor": (
        lambda: sf.StopMonitor.from_state_dict(sf.StopMonitor(np.eye(3), seed=0).state_dict(), np.eye(3)).state_dict()[
            "session"
        ],
        lambda: sf.StopMonitor(np.eye(3), seed=0).state_dict()["session"],
        "StopMonitor.from_state_dict",
        "use StopMonitor.from_state",
    ),
    "optimisation": (
        lambda: OptimisationMonitor.from_state_dict(
            OptimisationMonitor([(0.0, 1.0)]).state_dict(), [(0.0, 1.0)]
        ).state_dict(),
        lambda: OptimisationMonitor([(0.0, 1.0)]).state_dict(),
        "OptimisationMonitor.from_state_dict",
        "use OptimisationMonitor.from_state",
    ),
}


@pytest.mark.parametrize("name", USES)
def test_a_deprecated_name_works_and_says_what_to_use(name: str) -> None:
    use, current, subject, remedy = USES[name]
    with pytest.warns(DeprecationWarning, match=f"^{re.escape(subject)} is deprecated") as caught:
        found = use()
    assert json.dumps(found, default=str) == json.dumps(current(), default=str)
    (warning,) = caught
    assert str(warning.message).startswith(f"{subject} is deprecated and will be removed in suffice 1.2.0; {remedy}")
    assert warning.filename == __file__


def test_resume_continues_a_state_and_refuses_the_progress_of_1_0_0rc1() -> None:
    first, second = learner(), learner()
    with pytest.warns(
        DeprecationWarning, match=r"ActiveLearner\.resume is deprecated .* use ActiveLearner\.from_state"
    ):
        second.resume(first.state_dict())
    assert second.ask() == first.ask()
    older: dict[str, Any] = {"attributes": {}, "rule": {}, "count": 3, "backend": {}}
    with (
        pytest.warns(DeprecationWarning, match=r"ActiveLearner\.resume is deprecated"),
        pytest.raises(InvalidValueError, match=r"progress of a learner of suffice 1\.0\.0rc1.* tell a new learner"),
    ):
        second.resume(older)


def test_what_is_deprecated_goes_with_the_version_that_the_warnings_state() -> None:
    """From 1.2.0 on this fails until the deprecated names are removed."""
    version, removed_in = (
        [int(part) for part in re.findall(r"\d+", text)[:3]] for text in (sf.__version__, deprecation.REMOVED_IN)
    )
    assert version < removed_in
    policy = (ROOT / "docs" / "versioning.md").read_text(encoding="utf-8")
    assert deprecation.REMOVED_IN in policy
    note = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
    for name in ("least", "probability", "progress", "resume", "from_state_dict"):
        assert f"`{name}`" in note or f".{name}`" in note
