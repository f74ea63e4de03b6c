"""CONTRIBUTING.md is current: its figure, its files and names exist, and its rule can be added as it says."""

import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.structure import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", TEXT, flags=re.DOTALL | re.MULTILINE))
GUIDES = ("Add a rule", "Add a model", "Add an adapter")


@pytest.fixture(scope="module")
def layers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("layers", ROOT / "docs" / "layers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", TEXT, flags=re.DOTALL | re.MULTILINE)
    assert found is not None, title
    return found[1]


@pytest.mark.slow
def test_the_figure_of_the_layers_is_current(layers: ModuleType) -> None:
    assert layers.FIGURE.read_text(encoding="utf-8") == layers.layers_svg(), "run: python docs/layers.py"


@pytest.mark.slow
def test_the_figure_can_be_read_on_a_telephone(layers: ModuleType) -> None:
    svg = layers.layers_svg()
    (width,) = re.findall(r'<svg [^>]*\bwidth="(\d+)"', svg)
    shown = min(1.0, 358 / int(width))  # 390 pixels less the margins of a page
    assert min(int(size) for size in re.findall(r"font-size:(\d+)px", svg)) * shown >= 11.0
    letters = max(len(re.sub(r"<[^>]*>", "", text)) for text in re.findall(r"<text .*?</text>", svg))
    assert letters * 7.5 < int(width), "a line is longer than the figure"


@pytest.mark.slow
def test_the_figure_has_every_package_in_an_order_in_which_imports_point_down(layers: ModuleType) -> None:
    rows: list[list[str]] = layers.contract_layers()
    place = {name: number for number, row in enumerate(rows) for name in row}
    packages = {path.stem for path in (ROOT / "src" / "suffice").iterdir() if not path.name.startswith("_")}
    assert place.keys() == layers.CONTENTS.keys() == packages - {"py"}
    for name, imported in layers.direct_imports().items():
        assert all(place[other] >= place[name] for other in imported if name in place)


@pytest.mark.parametrize("title", GUIDES)
def test_a_guide_has_at_most_six_steps(title: str) -> None:
    assert 1 <= len(re.findall(r"^\d\. ", section(title), flags=re.MULTILINE)) <= 6


def test_files_that_are_named_exist() -> None:
    named = [text for text in CODE if re.fullmatch(r"[\w.-]+(/[\w.-]+)*", text) and ("/" in text or "." in text)]
    paths = [text for text in named if "/" in text or text.endswith((".md", ".toml"))]
    assert len(paths) > 15
    created = {".venv/bin/pre-commit"}
    assert [path for path in paths if path not in created and not (ROOT / path).exists()] == []


def test_names_and_targets_that_are_named_exist() -> None:
    names = [text for text in CODE if re.fullmatch(r"suffice(\.\w+)+", text)]
    assert len(names) >= 4
    for name in names:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make ([\w-]+)|`make ([\w-]+)`", TEXT, flags=re.MULTILINE):
        assert re.search(rf"^{''.join(target)}:", makefile, flags=re.MULTILINE), target


ADDED = """
import pytest
import suffice as sf
from suffice.criteria import RULES
from suffice.cli.rule_options import named_rules
from suffice.criteria.base import example_rule, rule_info, rule_summary
from suffice.errors import InvalidValueError, MissingInputError
from suffice.testing import check_criterion

rule = RULES["RestLimit"]
assert sf.RestLimit is rule and "RestLimit" in sf.criteria.__all__ and "RestLimit" in named_rules()
assert rule_summary(rule) == "Stop when few items of the pool have no label, as an example of a rule."
check_criterion(lambda: example_rule(rule))
with pytest.raises(MissingInputError, match="requires pool_size"):
    rule(3).observe(sf.Step(n_labelled=3))
with pytest.raises(InvalidValueError, match="most must be a whole number, 0 or more, not -1"):
    rule(-1)
(compared,) = rule_info(rule).compared
stops = [rule(setting).observe(sf.Step(n_labelled=50, pool_size=100)).stop for setting in compared.settings]
assert stops == sorted(stops, reverse=True) and any(stops) and not all(stops)
print(sf.__file__)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the rule of the guide, added as its steps say."""
    (code,) = re.findall(r"^```python\n(.*?)^```", section("Add a rule"), flags=re.DOTALL | re.MULTILINE)
    copied = tmp_path_factory.mktemp("rule") / "suffice"
    shutil.copytree(ROOT / "src" / "suffice", copied, ignore=shutil.ignore_patterns("__pycache__", "static", "*.json"))
    module = copied / "criteria" / "budget.py"
    text = module.read_text(encoding="utf-8")
    (names,) = re.findall(r"^__all__ = \[(.*?)\]", text, flags=re.DOTALL | re.MULTILINE)
    listed = sorted([*re.findall(r'"(\w+)"', names), "RestLimit"])
    text = text.replace(f"__all__ = [{names}]", f"__all__ = {json.dumps(listed)}")
    module.write_text(f"{text}\n\n{code}", encoding="utf-8")
    return copied


def run_python(*arguments: str, package: Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(package.parent), str(ROOT)])
    return subprocess.run(
        [sys.executable, *arguments],
        env={"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_rule_is_added_as_the_steps_say(package: Path) -> None:
    done = run_python("-c", ADDED, package=package)
    assert done.stderr == ""
    assert Path(done.stdout.strip()).parent == package


@pytest.mark.slow
def test_the_added_rule_passes_the_tests_and_checks_that_the_steps_name(package: Path) -> None:
    steps = section("Add a rule")
    assert "pytest tests/criteria -k NAME" in steps
    options = ["-n", "0", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
    tested = run_python(
        "-m", "pytest", *options, "tests/criteria/test_every_rule.py", "-k", "RestLimit", package=package
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert re.search(r"[1-9]\d* passed", tested.stdout), tested.stdout
    module, configuration = package / "criteria" / "budget.py", f"--config={ROOT / 'pyproject.toml'}"
    for command in (["ruff", "format", "--check"], ["ruff", "check"]):
        assert " ".join(command[:2]) in steps
        done = run_python("-m", *command, "--no-cache", configuration, str(module), package=package)
        assert done.returncode == 0, done.stdout + done.stderr
