"""The files of a release agree with pyproject.toml: the conda recipe, the citation, wheels and sdists."""

import json
import re
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from suffice.cli.app import COMMANDS, GROUP, _loaded_command
from tests.structure import ROOT

#: Names of packages in conda, where they differ from PyPI.
CONDA = {"matplotlib": "matplotlib-base", "torch": "pytorch"}
#: Extras of the project itself, and of packages that conda does not have.
NOT_IN_RECIPE = {"all", "dev", "docs", "embed"}


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"])


@pytest.fixture(scope="module")
def research() -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / "research" / "pyproject.toml").read_text(encoding="utf-8"))["project"])


@pytest.fixture(scope="module")
def recipe() -> str:
    return (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")


def listed(recipe: str, key: str) -> set[str]:
    block = re.search(rf"^  {key}:\n((?:    - .*\n)+)", recipe, flags=re.MULTILINE)
    assert block is not None, key
    return set(re.findall(r"- (.*)\n", block[1]))


def conda_form(requirement: str) -> str:
    name, bound = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?(>=[\d.]+)", requirement, flags=re.ASCII).groups()  # type: ignore[union-attr]
    return f"{CONDA.get(name, name.lower())} {bound}"


def test_the_recipe_has_the_version_and_the_requirements(project: dict[str, Any], recipe: str) -> None:
    assert f'set version = "{project["version"]}"' in recipe
    python = f"python {project['requires-python']}"
    assert listed(recipe, "run") == {python, *map(conda_form, project["dependencies"])}
    extras = {
        conda_form(requirement)
        for name, requirements in project["optional-dependencies"].items()
        if name not in NOT_IN_RECIPE
        for requirement in requirements
        if not requirement.startswith("suffice[")
    }
    assert listed(recipe, "run_constrained") == extras


def test_the_recipe_has_the_commands(project: dict[str, Any], recipe: str) -> None:
    assert {f"{name} = {target}" for name, target in project["scripts"].items()} == {
        line.strip().removeprefix("- ")
        for line in recipe.split("entry_points:")[1].split("\n\n", maxsplit=1)[0].splitlines()
        if line
    }


def test_research_belongs_to_the_same_release(project: dict[str, Any], research: dict[str, Any]) -> None:
    for key in ("version", "license", "requires-python"):
        assert research[key] == project[key]
    assert f"suffice[plot]=={project['version']}" in research["dependencies"]
    assert (ROOT / "research" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    locations = research["entry-points"][GROUP]
    assert locations.keys() == {name for name, entry in COMMANDS.items() if entry.location is None}


@pytest.mark.slow
def test_each_wheel_has_its_own_package_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is not installed")
    needed = {
        ROOT: {"suffice/py.typed", "suffice/report/templates/page.html.jinja"},
        ROOT / "research": {
            *("suffice_research/py.typed", "suffice_research/recommendation/evidence.json"),
            "suffice_research/templates/paper_report.html.jinja",
        },
    }
    for folder, files in needed.items():
        monkeypatch.chdir(folder)
        (path,) = wheel.WheelBuilder(str(folder)).build(directory=str(tmp_path), versions=["standard"])
        # Nine tenths of the wheel of suffice are Python with its docstrings. It shall not grow without notice.
        assert Path(path).stat().st_size < 1_650_000
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
        assert files <= names
        (package,) = {name.partition("/")[0] for name in files}
        assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {package}


@pytest.mark.slow
def test_the_sdist_is_small_and_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sdist = pytest.importorskip("hatchling.builders.sdist", reason="hatchling is not installed")
    monkeypatch.chdir(ROOT)
    (path,) = sdist.SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    assert Path(path).stat().st_size < 2_000_000
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", "src/suffice/py.typed"} <= names
    assert {name.partition("/")[0] for name in names if "/" in name} == {"src"}


def test_workflows_run_what_is_run_here(project: dict[str, Any]) -> None:
    yaml = pytest.importorskip("yaml")
    runs, publishes = (
        yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))
        for name in ("ci", "publish")
    )
    job = runs["jobs"]["test"]
    assert job["steps"][-1] == {"run": "bash .ci/run"}
    assert {machine.endswith("-arm") for machine in job["strategy"]["matrix"]["machine"]} == {True, False}
    # Python 3.14 gets its classifier after a run.
    listed = {each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)}
    assert set(job["strategy"]["matrix"]["python"]) == listed | {"3.14"}
    # YAML reads the key "on" as true.
    assert publishes[True] == {"push": {"tags": ["v*"]}}
    assert publishes["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert "run: make dist" in (ROOT / ".github" / "workflows" / "publish.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("command", "files"),
    [
        (("hadolint",), ["Dockerfile"]),
        (("check-jsonschema", "--builtin-schema", "vendor.github-workflows"), [".github/workflows/*.yml"]),
    ],
    ids=lambda value: value[0],
)
def test_the_image_and_the_workflows_are_valid(command: tuple[str, ...], files: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    paths = sorted(str(path) for pattern in files for path in ROOT.glob(pattern))
    assert paths
    done = subprocess.run([*command, *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_starts_the_command_that_exists(project: dict[str, Any]) -> None:
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    entry = re.search(r"^ENTRYPOINT (.*)$", image, re.MULTILINE)
    assert entry is not None
    name, command, *options = json.loads(entry[1])
    assert name in project["scripts"]
    known = {each for option in _loaded_command(command).params for each in option.opts}
    assert {each for each in options if each.startswith("--")} <= known
    extras = re.search(r"\.\[([\w,]+)\]", image)
    assert extras is not None
    assert set(extras[1].split(",")) <= project["optional-dependencies"].keys()
