"""Every command that reads a table reads each format, with the same result: run, audit, label, add, import, predict."""

import csv
import gzip
import io
import json
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.cli.project_options import ProjectOptions, opened_project, place_of
from suffice.cli.settings_options import settings_of
from suffice.errors import InvalidValueError
from suffice.project.create import create_project, open_project
from suffice.project.read_items import ReadingOptions, read_items
from suffice.tables.table import read_table
from tests.thoroughness import some

RUN = CliRunner()
Rows = list[dict[str, str]]
FORMATS = ["tsv", "csv.gz", "tsv.gz", "xlsx", "jsonl", "ndjson.gz", "json", "parquet"]


def mails(rows: int, first: int = 0) -> Rows:
    """Mails with an id that has leading zeros, a number that may be missing, and a kind."""
    rng = np.random.default_rng(first)
    words = {"spam": ["win", "money", "now", "free"], "ham": ["meeting", "report", "noon", "lunch"]}
    found = []
    for k in range(first, first + rows):
        kind = ("ham", "spam")[int(rng.integers(2))]
        body = " ".join(rng.choice(words[kind], 5))
        size = "" if k % 7 == 3 else f"{rng.normal(2.0 * (kind == 'spam')):.2f}1"
        found.append({"id": f"{k:05d}", "size": size, "body": f"{body}, é", "kind": kind})
    return found


def written(rows: Rows, name: str) -> str:
    """Write rows in the format of the ending of the name."""
    ending = name.removesuffix(".gz").rpartition(".")[2]
    values = [{**row, "size": float(row["size"]) if row["size"] else None} for row in rows]
    if ending in ("csv", "tsv"):
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter="," if ending == "csv" else "\t")
        writer.writerows([[*rows[0]], *(row.values() for row in rows)])
        data = text.getvalue().encode()
    elif ending == "parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.Table.from_pylist(rows), name)
        return name
    elif ending == "xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in [[*rows[0]], *([*row.values()] for row in values)]:
            book.active.append(row)
        book.save(name)
        return name
    else:
        lines = [json.dumps(row) for row in values]
        data = (f"[{', '.join(lines)}]" if ending == "json" else "\n".join(lines)).encode()
    Path(name).write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
    return name


def told(*arguments: str) -> dict[str, Any]:
    """The result of a command as JSON."""
    done = RUN.invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def said(*arguments: str) -> str:
    done = RUN.invoke(app, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def put_aside(book_name: str) -> None:
    """Add a sheet with data to a workbook."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(book_name)
    book.create_sheet("older")["A1"] = "id"
    book.save(book_name)


@pytest.mark.parametrize("ending", FORMATS)
def test_a_table_and_the_items_are_those_of_csv(ending: str) -> None:
    rows = mails(40)
    written(rows, "t.csv")
    wanted, found = (read_table(Path(written(rows, f"t.{each}")), "kind") for each in ("csv", ending))
    np.testing.assert_array_equal(found.X, wanted.X)
    assert (found.y.tolist(), found.columns, found.notes) == (wanted.y.tolist(), wanted.columns, wanted.notes)
    options = ReadingOptions(target="kind", text="body", classes=("ham", "spam"))
    first, second = (read_items(Path(f"t.{each}"), options) for each in ("csv", ending))
    np.testing.assert_array_equal(second.X, first.X)
    assert (second.ids, second.labels, second.notes) == (first.ids, first.labels, first.notes)
    assert [*map(tuple, second.cells)] == [*map(tuple, first.cells)]
    assert first.ids[:2] == ("00000", "00001")


@pytest.mark.parametrize("ending", some(["xlsx", "jsonl", "tsv.gz"], every=2))
def test_run_says_the_same_of_each_format(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    rows = mails(60)
    for name in ("t.csv", f"t.{ending}"):
        written(rows, name)
    options = ["--target", "kind", "--most", "15"]
    assert told("run", f"t.{ending}", *options) == told("run", "t.csv", *options)


def test_run_names_the_sheet_that_was_read() -> None:
    put_aside(written(mails(60), "t.xlsx"))
    text = said("run", "t.xlsx", "--target", "kind", "--most", "12")
    assert "- the sheet 'Sheet' was read, and others with data were not: 'older'" in text
    with pytest.raises(
        InvalidValueError, match=r"t\.xlsx has no column 'kin'\. Did you mean 'kind'\? Its columns, by the"
    ):
        RUN.invoke(app, ["run", "t.xlsx", "--target", "kin"], catch_exceptions=False)
    Path("t.jsonl").write_text('{"kind": "ham"}\n{"kind": }\n')
    with pytest.raises(InvalidValueError, match=r"t\.jsonl, line 2 is not an object of JSON"):
        RUN.invoke(app, ["run", "t.jsonl", "--target", "kind"], catch_exceptions=False)
    Path("t.jsonl").write_text('{"kind": "ham"}\n{"kind": "spam"}\n')
    with pytest.raises(
        InvalidValueError, match=r"t\.jsonl has no column 'kin'\. Did you mean 'kind'\? Its columns are"
    ):
        RUN.invoke(app, ["run", "t.jsonl", "--target", "kin"], catch_exceptions=False)


@pytest.mark.parametrize("ending", FORMATS)
def test_a_project_is_beside_its_data(ending: str) -> None:
    assert place_of(f"data/mails.{ending}") == ("data/mails.suffice", False)


@pytest.mark.parametrize("ending", some(["jsonl", "xlsx", "json"], every=2))
def test_a_project_from_each_format_takes_more_of_it(ending: str) -> None:
    rows = mails(30)
    data = written(rows, f"mails.{ending}")
    output = Console(file=StringIO(), width=1000)
    options = settings_of(ProjectOptions, data=data, text="body", classes="ham,spam", ignore=["kind"], person="ann")
    with opened_project(options, output) as project:
        assert [project.item(k).id for k in range(2)] == ["00000", "00001"]
    more = written(mails(5, first=100), f"more.{ending}")
    if ending == "xlsx":
        put_aside(more)
    note = "- the sheet 'Sheet' was read, and others with data were not: 'older'"
    text = said("add", "mails.suffice", more, "--person", "ann", "--check")
    assert text.startswith(note) == (ending == "xlsx")
    assert "5 items would be added, 0 with a label; the project has 30" in text
    assert told("add", "mails.suffice", more, "--person", "ann")["size"] == 35

    answers = written([{"id": row["id"], "answer": row["kind"], "size": ""} for row in rows[:20]], f"a.{ending}")
    if ending == "xlsx":
        put_aside(answers)
    found = told("import", "mails.suffice", answers, "--label", "answer", "--person", "bob")
    assert (found["matched_by"], found["matched"], found["labelled"]) == ("id", 20, 20)
    assert len(found["notes"]) == (ending == "xlsx")
    with open_project("mails.suffice") as project:
        assert (project.size, project.item(30).id) == (35, "00100")
        assert project.state().label_of(3) == rows[3]["kind"]
    if ending == "xlsx":
        text = said("import", "mails.suffice", answers, "--label", "answer", "--person", "bob")
        assert "The sheet 'Sheet' was read, and others with data were not: 'older'" in text

    new = written(mails(6, first=200), f"new.{ending}")
    found = told("predict", "mails.suffice", new)
    assert (found["path"], found["rows"]) == ("new-predictions.csv", 6)
    with Path("new-predictions.csv").open(encoding="utf-8", newline="") as file:
        assert [row["id"] for row in csv.DictReader(file)] == [f"{k:05d}" for k in range(200, 206)]
    if ending == "xlsx":
        put_aside(new)
        assert said("predict", "mails.suffice", new).startswith(note)


def test_a_project_of_python_from_json_lines() -> None:
    data = written(mails(30), "mails.jsonl")
    with create_project("p.suffice", data, text="body", target="kind", classes=["ham", "spam"]) as project:
        assert project.size == 30
        assert project.state().label_of(0) == mails(1)[0]["kind"]
    Path("bad.jsonl").write_text("id,text\n1,x\n")
    with pytest.raises(InvalidValueError, match=r"bad\.jsonl, line 1 is not an object"):
        create_project("q.suffice", "bad.jsonl", classes=["ham", "spam"])
    assert not Path("q.suffice").exists()
