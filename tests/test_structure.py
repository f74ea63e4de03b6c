"""The structure of the package stays simple: no import cycles, distinct names, no modules that only one other uses."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.structure import ROOT, Structure, read_structure


@pytest.fixture(scope="module")
def structure() -> Structure:
    return read_structure(ROOT / "src")


def test_there_is_no_import_cycle(structure: Structure) -> None:
    assert structure.cycle() == []


IMPORT_EACH = """
import importlib, sys
for name in sys.argv[1:]:
    for loaded in [each for each in sys.modules if each.partition(".")[0] == "suffice"]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(f"{name}: {error}")
"""


@pytest.mark.slow
def test_every_package_can_be_imported_first(structure: Structure) -> None:
    """A package face imports its modules, so that a cycle through it depends on which package comes first.

    Python imports the face of a package before each module in it, so modules in packages need not be tried.
    """
    first = [name for name, path in structure.paths.items() if path.name == "__init__.py" or name.count(".") < 2]
    command = [sys.executable, "-c", IMPORT_EACH, *first]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_modules_and_classes_have_distinct_names(structure: Structure) -> None:
    assert structure.repeated_modules() == []
    assert structure.repeated_classes() == []


def test_the_figures_are_counted_right(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "first.py": "from package.second import Two\n\nclass One: ...\n",
        "second.py": "def later() -> None:\n    from package import first\n\nclass Two: ...\n",
        "inner/__init__.py": "from package.inner.third import Three\n",
        "inner/third.py": "class Three: ...\n",
        "inner/first.py": "import package.first\n\nclass One: ...\n",
    }
    for name, text in files.items():
        path = tmp_path / "package" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = read_structure(tmp_path)
    assert len(found.paths) == 6
    assert found.modules == ["package.first", "package.inner.first", "package.inner.third", "package.second"]
    assert set(found.cycle()) == {"package.first", "package.second"}
    assert found.single_importers() == {"package.second": "package.first"}
    assert found.repeated_modules() == ["first"]
    assert found.repeated_classes() == ["One"]
