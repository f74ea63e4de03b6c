"""The pip commands in messages work in the way in which suffice was installed."""

import json
import shlex
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from suffice.errors import MissingExtraError, MissingResearchError, extra_requirements, pip_install, upgrade_advice


class Installed:
    """Stands for what is recorded of an installation."""

    def __init__(self, direct_url: dict[str, object] | None) -> None:
        self.recorded = None if direct_url is None else json.dumps(direct_url)

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self.recorded


def installed(monkeypatch: pytest.MonkeyPatch, direct_url: dict[str, object] | None) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(direct_url))


def absent(name: str) -> None:
    raise metadata.PackageNotFoundError(name)


def python_named(monkeypatch: pytest.MonkeyPatch, path: str | None) -> None:
    monkeypatch.setattr("shutil.which", lambda name: path)


def test_a_missing_extra_names_the_packages_that_it_installs(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = ["numpy>=1.26", "fastapi>=0.110; extra == 'web'", 'psycopg[binary]>=3.1; extra == "postgres"']
    monkeypatch.setattr(metadata, "requires", lambda name: listed)
    python_named(monkeypatch, sys.executable)
    assert extra_requirements("web") == ["fastapi>=0.110"]
    assert extra_requirements("eb") == []
    assert str(MissingExtraError("fastapi", "web", "The page")) == (
        "The page needs fastapi, which is not installed. Run: python -m pip install 'fastapi>=0.110'"
    )
    assert "Run: python -m pip install 'psycopg[binary]>=3.1'" in str(MissingExtraError("psycopg", "postgres", "It"))


def test_without_metadata_the_package_itself_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "requires", absent)
    python_named(monkeypatch, sys.executable)
    assert "Run: python -m pip install matplotlib" in str(MissingExtraError("matplotlib", "plot", "A figure"))


def test_research_is_installed_in_the_way_in_which_suffice_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python_named(monkeypatch, sys.executable)
    checkout = tmp_path / "suffice"
    (checkout / "research").mkdir(parents=True)
    url = checkout.as_uri()
    cases: list[tuple[dict[str, object] | None, str]] = [
        (None, "suffice-research"),
        ({"url": "file:///tmp/suffice.whl", "archive_info": {}}, "suffice-research"),
        ({"url": (tmp_path / "removed").as_uri(), "dir_info": {}}, "suffice-research"),
        ({"url": url, "dir_info": {}}, f"{checkout / 'research'}"),
        ({"url": url, "dir_info": {"editable": True}}, f"-e {checkout / 'research'}"),
    ]
    for recorded, arguments in cases:
        installed(monkeypatch, recorded)
        assert str(MissingResearchError("It")) == (
            f"It needs suffice-research, which is not installed. Run: python -m pip install {arguments}"
        )
    monkeypatch.setattr(metadata, "distribution", absent)
    assert str(MissingResearchError("It")).endswith("Run: python -m pip install suffice-research")


def test_the_running_python_is_named_where_another_one_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for other in (None, "/somewhere/else/python"):
        python_named(monkeypatch, other)
        assert pip_install(["torch>=2.5"]) == f"{shlex.quote(sys.executable)} -m pip install 'torch>=2.5'"


def test_every_extra_that_a_message_names_has_requirements() -> None:
    for extra in ("plot", "parquet", "excel", "torch", "label", "postgres", "web", "embed"):
        assert extra_requirements(extra), extra


def test_an_upgrade_follows_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    python_named(monkeypatch, sys.executable)
    folder = "/home/a b/suffice"
    url = "file:///home/a%20b/suffice"
    cases: list[tuple[dict[str, object] | None, str]] = [
        (None, "run: python -m pip install --upgrade suffice"),
        (
            {"url": url, "dir_info": {}},
            f"update {folder} (git pull), then run: python -m pip install '{folder}'",
        ),
        (
            {"url": url, "dir_info": {"editable": True}},
            f"update {folder} (git pull), then run: python -m pip install -e '{folder}'",
        ),
        (
            {"url": "file:///tmp/suffice.whl", "archive_info": {}},
            "install a newer version of suffice; this one came from file:///tmp/suffice.whl",
        ),
    ]
    for recorded, advice in cases:
        installed(monkeypatch, recorded)
        assert upgrade_advice() == advice
    monkeypatch.setattr(metadata, "distribution", absent)
    assert upgrade_advice() == "install a newer version of suffice"


@pytest.mark.slow
def test_the_command_is_one_that_pip_accepts(tmp_path: Path) -> None:
    """What is installed already satisfies it, so that nothing is downloaded."""
    command = shlex.split(pip_install([*extra_requirements("plot"), "--no-index", "--dry-run"]))
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "already satisfied: matplotlib" in done.stdout
