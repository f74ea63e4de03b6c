"""`suffice repair`: what it says of a project, and what it recovers."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.project.create import open_project
from suffice.project.storage import FILE
from tests.project.labelled_projects import label_some
from tests.project.making_projects import make

RUN = CliRunner()


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    with make(tmp_path / "pets.suffice") as project:
        label_some(project, range(5))
    return tmp_path / "pets.suffice"


def damage(place: Path, statement: str) -> None:
    with closing(sqlite3.connect(place / FILE)) as connection, connection:
        connection.execute(statement)


def said(place: Path, *options: str, code: int = 0) -> list[str]:
    result = RUN.invoke(app, ["repair", str(place), *options])
    assert result.exit_code == code, result.output
    return result.stdout.splitlines()


def test_nothing_is_damaged(pets: Path) -> None:
    (line,) = said(pets)
    assert line.startswith("Nothing is damaged: ")
    assert line.endswith(" events and 20 items have their checksums.")
    assert json.loads(said(pets, "--json")[0])["intact"] is True


def test_what_is_damaged_is_named_then_repaired(pets: Path) -> None:
    damage(pets, "UPDATE events SET person = 'eve' WHERE seq = 3")
    damage(pets, "UPDATE items SET id = 'x' WHERE position = 7")
    lines = said(pets, "--check", code=1)
    assert lines[1:] == ["1 event is lost: 3.", "1 item is damaged: 7.", f"To repair it: suffice repair {pets}"]
    lines = said(pets)
    assert lines[-1].startswith("Repaired. The damaged file is kept as ")
    kept = Path(lines[-1].removeprefix("Repaired. The damaged file is kept as ").removesuffix("."))
    assert kept.exists()
    with open_project(pets) as project:
        assert project.state().n_labelled == 4
    assert said(pets)[0].startswith("Nothing is damaged")


def test_labels_are_saved_if_nothing_else_can_be(pets: Path) -> None:
    damage(pets, "UPDATE features SET width = 0")
    lines = said(pets, code=1)
    assert "The features are damaged." in lines
    assert lines[-1].startswith(f"The project cannot be repaired. Its labels are in {pets / 'recovered-labels.csv'}: ")
    assert len((pets / "recovered-labels.csv").read_text().splitlines()) == 6


def test_bad_places(tmp_path: Path) -> None:
    for place in (str(tmp_path), str(tmp_path / "none.suffice")):
        result = RUN.invoke(app, ["repair", place])
        assert result.exception is not None
        assert "no project" in str(result.exception) or "does not exist" in str(result.exception)
