"""`suffice export --final` and `--statement`: the files, what is said, and what is refused."""

import csv
import io
import json
from pathlib import Path

import openpyxl  # type: ignore[import-untyped]
import pytest
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.errors import SufficeError
from suffice.project import create_project
from suffice.project.create import open_project
from tests.cli.test_project_commands import said, told
from tests.processes import run_suffice
from tests.project.test_data_set_goal import LABELLED, SIZE, checked, goal_project
from tests.project.test_final_files import half_labelled

RUN = CliRunner()


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """A project whose goal is reached."""
    with half_labelled(tmp_path / "pets.suffice") as project:
        checked(project)
    return tmp_path / "pets.suffice"


def refused(*arguments: str) -> str:
    """The sentence of a command that is refused."""
    result = RUN.invoke(app, arguments)
    assert isinstance(result.exception, SufficeError), result.output
    return str(result.exception)


def test_the_final_file_and_the_statement(pets: Path, tmp_path: Path) -> None:
    final, statement = tmp_path / "final.csv", tmp_path / "statement.html"
    text = said("export", str(pets), "--final", str(final), "--statement", str(statement))
    with open_project(pets) as project:
        assert str(project.final_labels().guarantee) in " ".join(text.split())
    assert f"Final file: {final} ({SIZE} rows)" in text
    assert f"Statement: {statement}" in text
    rows = list(csv.DictReader(io.StringIO(final.read_text(encoding="utf-8"))))
    assert len(rows) == SIZE
    assert {row["source"] for row in rows} == {"person", "check", "model"}
    assert "At most 12 of all 120 labels" in statement.read_text(encoding="utf-8")
    # Nothing else is written.
    assert not (pets / "export").exists()
    before = final.read_bytes()
    said("export", str(pets), "--final", str(final), "--bom")
    assert final.read_bytes() == b"\xef\xbb\xbf" + before


@pytest.mark.parametrize(("ending", "start"), [("xlsx", b"PK"), ("jsonl", b'{"id"'), ("parquet", b"PAR1")])
def test_the_ending_says_the_format(pets: Path, tmp_path: Path, ending: str, start: bytes) -> None:
    file = tmp_path / f"final.{ending}"
    answer = told("export", str(pets), "--final", str(file))
    assert answer["final"] == {"path": str(file), "rows": SIZE, "renamed": {}}
    assert (answer["statement"], answer["guarantee"]["wrong_at_most"]) == (None, 12)
    assert file.read_bytes().startswith(start)


def test_a_goal_that_is_not_reached(tmp_path: Path) -> None:
    half_labelled(tmp_path / "pets.suffice").close()
    file = tmp_path / "final.csv"
    result = run_suffice("export", str(tmp_path / "pets.suffice"), "--final", str(file))
    assert (result.returncode, result.stdout) == (1, "")
    assert "the goal is not reached: no check has proven that at most 10 %" in " ".join(result.stderr.split())
    assert not file.exists()


def test_all_rows_without_a_goal(tmp_path: Path) -> None:
    place, file = tmp_path / "pets.suffice", tmp_path / "rows.xlsx"
    half_labelled(place, of="rest").close()
    assert f"All rows: {file} ({SIZE} rows)" in said("export", str(place), "--all-rows", str(file))
    sheet = openpyxl.load_workbook(file).active
    header, *rows = sheet.iter_rows(values_only=True)
    source = header.index("source")
    assert [row[source] for row in rows] == ["person"] * LABELLED + ["model"] * (SIZE - LABELLED)
    assert told("export", str(place), "--all-rows", str(tmp_path / "rows.csv"), "--bom") == {
        "all_rows": {"path": str(tmp_path / "rows.csv"), "rows": SIZE},
        "left_out": "",
    }
    assert (tmp_path / "rows.csv").read_bytes().startswith(b"\xef\xbb\xbfid,")
    with goal_project(tmp_path / "new.suffice", of="rest"):
        pass
    early = told("export", str(tmp_path / "new.suffice"), "--all-rows", str(tmp_path / "new.csv"))
    assert early["left_out"].startswith("No predictions: ")
    rows = csv.DictReader(io.StringIO((tmp_path / "new.csv").read_text(encoding="utf-8")))
    assert {row["source"] for row in rows} == {""}


def test_a_project_without_a_goal(tmp_path: Path) -> None:
    half_labelled(tmp_path / "pets.suffice", of="rest").close()
    sentence = refused("export", str(tmp_path / "pets.suffice"), "--statement", str(tmp_path / "s.html"))
    assert "the project has no goal about all labels" in sentence
    assert "under Settings on its page, or make the project with --at-most 5% --of all" in sentence


def test_a_choice_that_there_is_not_is_answered_with_all_choices(pets: Path) -> None:
    for arguments, choices in [
        (("export", str(pets), "--format", "xlsx"), "'csv', 'jsonl', 'parquet', 'hf', 'label-studio'"),
        (("accounts", "add", str(pets), "Bob", "--role", "boss"), "'label', 'review', 'manage'"),
    ]:
        result = run_suffice(*arguments)
        words = " ".join(result.stderr.replace("│", " ").split())
        assert result.returncode == 2
        assert f"'{arguments[-1]}' is not one of {choices}." in words
        assert "Value error" not in words


def test_options_that_do_not_fit(pets: Path, tmp_path: Path) -> None:
    place, file = str(pets), str(tmp_path / "final.csv")
    assert "must end in .csv, .xlsx, .jsonl or .parquet" in refused("export", place, "--final", str(tmp_path / "a.txt"))
    assert "--bom is for the CSV file of --final" in refused("export", place, "--bom")
    assert "--bom is for the CSV file of --final" in refused(
        "export", place, "--final", str(tmp_path / "a.xlsx"), "--bom"
    )
    assert "give one" in refused("export", place, "--final", file, "--all-rows", file)
    assert "must end in .csv, .xlsx" in refused("export", place, "--all-rows", str(tmp_path / "a.txt"))
    assert "leave --out out" in refused("export", place, "--all-rows", file, "--out", str(tmp_path))
    assert "leave --out out" in refused("export", place, "--final", file, "--out", str(tmp_path))
    assert "leave --model out" in refused("export", place, "--final", file, "--model", str(tmp_path / "m.joblib"))
    missing = tmp_path / "missing" / "final.csv"
    assert refused("export", place, "--final", str(missing))
    assert not list(tmp_path.glob("*.csv"))


def test_a_column_that_is_renamed_is_named(tmp_path: Path) -> None:
    data = tmp_path / "pets.csv"
    data.write_text("label,size\n" + "".join(f"{k % 3},{k}\n" for k in range(40)), encoding="utf-8")
    options = {"classes": ["no", "yes"], "target": "kind", "at_most": 0.2, "of": "all", "seed": 1}
    with create_project(tmp_path / "pets.suffice", data, **options) as project:
        for item in range(35):
            project.label(item, "no" if item < 20 else "yes", person="ann")
    text = said("export", str(tmp_path / "pets.suffice"), "--final", str(tmp_path / "final.jsonl"))
    assert "The column label is named label_2, because the data have a column label." in text
    first = json.loads((tmp_path / "final.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert (first["label"], first["label_2"]) == (0, "no")
