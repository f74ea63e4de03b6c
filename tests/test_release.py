"""The files of a release agree with pyproject.toml: the conda recipe, the citation, and the contents of the sdist."""

import re
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.structure import ROOT

#: Names of packages in conda, where they differ from PyPI.
CONDA = {"matplotlib": "matplotlib-base", "torch": "pytorch"}
#: Extras of the project itself, and of packages that conda does not have.
NOT_IN_RECIPE = {"all", "dev", "docs", "embed"}


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


@pytest.fixture(scope="module")
def recipe() -> str:
    return (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")


def listed(recipe: str, key: str) -> set[str]:
    found = re.search(rf"^  {key}:\n((?:    - .*\n)+)", recipe, flags=re.MULTILINE)
    assert found is not None, key
    return set(re.findall(r"- (.*)\n", found[1]))


def conda_form(requirement: str) -> str:
    name, bound = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?(>=[\d.]+)", requirement, flags=re.ASCII).groups()  # type: ignore[union-attr]
    return f"{CONDA.get(name, name.lower())} {bound}"


def test_the_recipe_has_the_version_and_the_requirements(project: dict[str, Any], recipe: str) -> None:
    assert f'set version = "{project["version"]}"' in recipe
    python = f"python {project['requires-python']}"
    assert listed(recipe, "run") == {python, *map(conda_form, project["dependencies"])}
    extras = {
        conda_form(each)
        for name, requirements in project["optional-dependencies"].items()
        if name not in NOT_IN_RECIPE
        for each in requirements
        if not each.startswith("suffice[")
    }
    assert listed(recipe, "run_constrained") == extras


def test_the_recipe_has_the_commands(project: dict[str, Any], recipe: str) -> None:
    assert {f"{name} = {target}" for name, target in project["scripts"].items()} == {
        line.strip().removeprefix("- ")
        for line in recipe.split("entry_points:")[1].split("\n\n", maxsplit=1)[0].splitlines()
        if line
    }


@pytest.mark.slow
def test_the_sdist_is_small_and_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sdist = pytest.importorskip("hatchling.builders.sdist", reason="hatchling is not installed")
    monkeypatch.chdir(ROOT)
    (path,) = sdist.SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    assert Path(path).stat().st_size < 2_000_000
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "src/suffice/py.typed", "tests/test_bounds.py"} <= names
    assert [name for name in names if name.startswith(("docs/measured", "docs/images", "docs/_build"))] == []
