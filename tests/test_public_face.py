"""What `import suffice` gives and costs, and that documentation and code name the same things."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import suffice
import suffice_research.recommendation
from suffice.errors import MissingResearchError

ROOT = Path(__file__).parent.parent
SOURCES = sorted(path for folder in ("src", "research/src") for path in (ROOT / folder).rglob("*.py"))

#: What is public besides the stopping rules.
OTHERS = {
    "ActiveLearner",
    "Certificate",
    "Criterion",
    "Forecast",
    "Step",
    "StopMonitor",
    "StopSet",
    "SufficeError",
    "Trace",
    "Verdict",
    "__version__",
    "acquisition",
    "audit",
    "bounds",
    "checks",
    "criteria",
    "criterion_from_dict",
    "divergence",
    "errors",
    "forecast",
    "kl",
    "learner",
    "models",
    "posteriors",
    "project",
    "recommend",
    "register_kl",
    "simulate",
    "tables",
    "testing",
}
#: Rules that were released: their names stay. Rules added since are public by being in the list of rules.
RELEASED_RULES = {
    "Budget",
    "ClassificationChange",
    "CostLimit",
    "DeterministicBoundRuns",
    "DropInConfidence",
    "EntropyMax",
    "ErrorStability",
    "ExpectedCost",
    "HeldOutPlateau",
    "InformationGain",
    "IntrinsicStopping",
    "KappaCertificate",
    "LabelWorth",
    "MarginExhaustion",
    "MaxConfidence",
    "MaxVariance",
    "MinExpectedError",
    "OverallUncertainty",
    "PacBayes",
    "PerformanceConvergence",
    "PoolFraction",
    "PredictedFChange",
    "SelectedAccuracy",
    "SelectionAgreement",
    "StabilizingPredictions",
    "ThresholdUpdate",
    "TimeLimit",
    "UncertaintyConvergence",
    "ValidationSetAgreement",
    "VarianceModel",
}


def test_the_public_list_is_the_public_list() -> None:
    rules = suffice.criteria.RULES
    assert set(rules) >= RELEASED_RULES
    assert set(suffice.__all__) == OTHERS | set(rules)
    assert len(suffice.__all__) == len(set(suffice.__all__))
    for name in suffice.__all__:
        assert getattr(suffice, name) is not None
    for name, rule in rules.items():
        assert getattr(suffice, name) is getattr(suffice.criteria, name) is rule
    with pytest.raises(AttributeError, match="has no attribute 'guess'"):
        _ = suffice.guess
    with pytest.raises(AttributeError, match=r"has no attribute 'data'; use suffice.tables"):
        _ = suffice.data


def test_a_recommendation_comes_from_research() -> None:
    assert suffice.recommend is suffice_research.recommendation.recommend


def test_without_research_a_recommendation_names_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("suffice_research.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "suffice_research", None)
    assert callable(suffice.recommend)  # `from suffice import *` works
    with pytest.raises(MissingResearchError, match=r"suffice\.recommend needs suffice-research.* Run: .*pip install"):
        suffice.recommend("regression", error_cost=1.0)


def test_an_error_within_research_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "suffice_research.recommendation", None)
    with pytest.raises(ModuleNotFoundError, match=r"suffice_research\.recommendation"):
        _ = suffice.recommend


@pytest.mark.parametrize(
    ("use", "allowed"),
    [("import suffice", {"suffice"}), ("import suffice; suffice.LabelWorth", {"suffice", "numpy", "scipy"})],
)
def test_import_loads_what_is_used_only(use: str, allowed: set[str]) -> None:
    code = (
        f"import sys; before = set(sys.modules); {use}; "
        "print(*sorted({m.split('.')[0] for m in set(sys.modules) - before}))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    known = {*allowed, "cython_runtime", *sys.stdlib_module_names}
    assert [name for name in loaded if name not in known and not name.startswith("_")] == []


def test_all_names_are_listed_before_they_are_used() -> None:
    code = "from suffice import *; print(LabelWorth.__name__, kl.__name__, checks.__name__, sorted(dir())[0])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert said[:3] == ["LabelWorth", "kl", "suffice.checks"]
    code = "import suffice; print(*dir(suffice))"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(suffice.__all__) <= set(listed)


def test_versions_agree() -> None:
    for path in ("pyproject.toml", "research/pyproject.toml"):
        assert tomllib.loads((ROOT / path).read_text())["project"]["version"] == suffice.__version__
    assert f"version: {suffice.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {suffice.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_reference_is_in_the_bibliography() -> None:
    bibliography = (ROOT / "docs" / "bibliography.md").read_text()
    known = set(re.findall(r"^\(?\[?\*\*(\w+)\*\*", bibliography, flags=re.MULTILINE))
    cited = {
        key
        for path in SOURCES
        for line in re.findall(r"Reference: (.*)", path.read_text())
        for key in re.findall(r"\[(\w+)\]", line)
    }
    assert cited
    assert cited <= known, f"not in docs/bibliography.md: {sorted(cited - known)}"


def test_every_symbol_of_the_table_exists() -> None:
    page = (ROOT / "docs" / "mathematics.md").read_text()
    names = re.findall(r"`(suffice\.[\w.]+)`", page)
    assert len(names) >= 10
    for name in names:
        module, _, attribute = name.rpartition(".")
        try:
            assert hasattr(importlib.import_module(module), attribute), name
        except ModuleNotFoundError:
            parent, _, owner = module.rpartition(".")
            holder = getattr(importlib.import_module(parent), owner)
            fields = getattr(holder, "__dataclass_fields__", {})
            assert hasattr(holder, attribute) or attribute in fields, name
