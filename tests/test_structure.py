"""The structure of both packages stays simple: no import cycles, distinct names, and one direction of imports."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.structure import SOURCES, Structure, read_structure


@pytest.fixture(scope="module")
def structure() -> Structure:
    return read_structure(*SOURCES)


@pytest.mark.no_cover
def test_there_is_no_import_cycle(structure: Structure) -> None:
    assert structure.cycle() == []


def test_suffice_does_not_import_research(structure: Structure) -> None:
    packages = {name.partition(".")[0] for name in structure.paths}
    assert packages == {"suffice", "suffice_research"}
    importers = {
        name for name, imported in structure.imports.items() if any(m.startswith("suffice_research") for m in imported)
    }
    assert importers
    assert {name.partition(".")[0] for name in importers} == {"suffice_research"}


IMPORT_EACH = """
import importlib, sys
for name in sys.argv[1:]:
    for loaded in [module for module in sys.modules if module.partition(".")[0] in ("suffice", "suffice_research")]:
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
    small = read_structure(tmp_path)
    assert len(small.paths) == 6
    assert small.modules == ["package.first", "package.inner.first", "package.inner.third", "package.second"]
    assert set(small.cycle()) == {"package.first", "package.second"}
    assert small.repeated_modules() == ["first"]
    assert small.repeated_classes() == ["One"]
