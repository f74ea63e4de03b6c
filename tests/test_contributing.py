"""CONTRIBUTING.md is current: its figure, its files and names exist, and its rule can be added as it says."""

import importlib
import importlib.util
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


def test_the_figure_of_the_layers_is_current(layers: ModuleType) -> None:
    assert layers.FIGURE.read_text(encoding="utf-8") == layers.layers_svg(), "run: python docs/layers.py"


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
import suffice as sf
from suffice.criteria import RULES
from suffice.cli.rule_options import named_rules
from suffice.criteria.base import example_rule, rule_summary
from suffice.testing import check_criterion

rule = RULES["LabelLimit"]
assert sf.LabelLimit is rule and "LabelLimit" in sf.criteria.__all__ and "LabelLimit" in named_rules()
assert rule_summary(rule) == "Stop at a number of labels, as an example of a rule."
check_criterion(lambda: example_rule(rule))
print(sf.__file__)
"""


def test_a_rule_is_added_as_the_steps_say(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", section("Add a rule"), flags=re.DOTALL | re.MULTILINE)
    package = tmp_path / "suffice"
    shutil.copytree(ROOT / "src" / "suffice", package, ignore=shutil.ignore_patterns("__pycache__", "static", "*.json"))
    module = package / "criteria" / "budget.py"
    text = module.read_text(encoding="utf-8")
    listed = re.sub(r"^__all__ = \[", '__all__ = ["LabelLimit", ', text, count=1, flags=re.MULTILINE)
    module.write_text(f"{listed}\n\n{code}", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", ADDED],
        env={"PYTHONPATH": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert Path(done.stdout.strip()).parent == package
