"""What comes out of a project, read back by others: by csv, json and pandas."""

import csv
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.checks import Guarantee
from suffice.errors import InvalidValueError, MissingExtraError
from suffice.project import exported_files
from suffice.project.create import write_project
from suffice.project.exported_files import (
    Exported,
    checked_predictions_file,
    guarantee_file,
    labels_file,
    predictions_file,
)
from suffice.project.labelling_project import Project
from suffice.project.learning_status import Predictions
from suffice.tables.file_writer import Column, encoded, exact, harmless
from suffice.tables.table_cells import CellColumns
from suffice.tables.table_formats import Format
from tests.project.labelled_projects import HOSTILE, busy_project, hostile_project, label_some, learned
from tests.project.making_projects import about, make, some_items
from tests.thoroughness import crossed

FORMATS: tuple[Format, ...] = ("csv", "jsonl", "parquet")
#: Signs at which a spreadsheet begins to run a cell, also in other widths.
SIGNS = "=+-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\t\r\n"
texts = st.text(max_size=8) | st.builds(
    "{}{}{}".format, st.text("' \u00a0\ufeff\u200b", max_size=3), st.sampled_from(SIGNS), st.text(max_size=5)
)


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Project]:
    with busy_project(tmp_path / "pets.suffice") as project:
        yield project


def rows_of(file: Exported) -> list[dict[str, Any]]:
    """A file as somebody else reads it."""
    if file.name.endswith("parquet"):
        import pandas

        return [dict(row) for row in pandas.read_parquet(io.BytesIO(file.content)).to_dict("records")]
    text = file.content.decode("utf-8")
    if file.name.endswith("csv"):
        return list(csv.DictReader(io.StringIO(text, newline="")))
    return [json.loads(line) for line in text.split("\n")[:-1]]


def is_number(text: str) -> bool:
    try:
        float(text.replace(",", ".", 1))
    except ValueError:
        return False
    return True


@given(texts)
def test_no_cell_begins_with_what_a_spreadsheet_runs_and_every_text_is_found_again(text: str) -> None:
    cell = harmless(text)
    bare = cell.lstrip(" \u00a0\ufeff\u200b")
    assert not bare or bare[0] not in SIGNS or is_number(cell)
    assert exact(cell) == text
    assert cell in (text, f"'{text}")


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("-1,64", "-1,64"),
        ("+,5", "+,5"),
        ("-1,5e3", "-1,5e3"),
        ("-1,000,000", "'-1,000,000"),
        ("-1,A1", "'-1,A1"),
        ("-1,5+2", "'-1,5+2"),
        ("=1,5", "'=1,5"),
    ],
)
def test_a_number_with_a_decimal_comma_stays_a_number(text: str, cell: str) -> None:
    assert (harmless(text), exact(cell)) == (cell, text)


@given(st.lists(st.tuples(texts, texts), max_size=5), texts)
def test_a_csv_read_back_holds_the_texts(rows: list[tuple[str, str]], name: str) -> None:
    columns = [Column(f"{name} "), Column("other")]
    content = encoded(columns, [rows], "csv").decode("utf-8", "surrogatepass")
    read = list(csv.reader(io.StringIO(content, newline="")))
    assert exact(read[0][0]) == f"{name} "
    for found, (one, other) in zip(read[1:], rows, strict=True):
        assert [exact(cell) for cell in found] == [one, other]
        assert all(cell[:1] not in tuple("=+-@") or is_number(cell) for cell in found)


@given(st.lists(texts, min_size=1, max_size=5))
def test_json_lines_and_parquet_keep_texts_as_they_are(found: list[str]) -> None:
    import pandas

    rows = [[(text,)] for text in found]
    lines = encoded([Column("text")], rows, "jsonl").decode("utf-8").split("\n")
    assert [json.loads(line)["text"] for line in lines[:-1]] == found
    table = pandas.read_parquet(io.BytesIO(encoded([Column("text")], rows, "parquet")))
    assert table["text"].tolist() == found


def test_what_is_almost_a_number_is_looked_at_once() -> None:
    digits = "1" * 300_000
    assert harmless(f"+{digits}") == f"+{digits}"
    assert harmless(f"+{digits}x") == f"'+{digits}x"
    assert harmless(f" -{digits}.{digits}e+{digits} ") == f" -{digits}.{digits}e+{digits} "
    assert harmless(" " * 300_000 + "=") == "'" + " " * 300_000 + "="


def test_half_a_letter_out_of_a_file_name_stops_no_export() -> None:
    import pandas

    rows = [[("caf\udce9",)]]
    assert encoded([Column("a")], rows, "csv") == b"a\ncaf\\udce9\n"
    assert json.loads(encoded([Column("a")], rows, "jsonl")) == {"a": "caf\udce9"}
    assert pandas.read_parquet(io.BytesIO(encoded([Column("a")], rows, "parquet")))["a"][0] == "caf\\udce9"


@pytest.mark.parametrize("format", FORMATS)
def test_labels_come_in_their_order_with_all_that_is_known_of_them(busy: Project, format: Format) -> None:
    file = labels_file(busy, format)
    rows = rows_of(file)
    with busy.lock:
        labelled = busy.state().labelled()
    assert file.name == f"labels.{format}"
    assert file.rows == len(rows) == 40
    assert [row["id"] for row in rows] == [f"id-{each.item}" for each in labelled]
    assert [row["animal"] for row in rows] == [each.label for each in labelled]
    assert [row["text"] for row in rows] == [f"pet {each.item} 🐌" for each in labelled]
    assert list(rows[0]) == [
        *("id", "text", "number", "animal", "labelled_by", "labelled_at", "corrected", "opinions", "agreed"),
        *("random", "saw_prediction", "confirmed", "majority", "opinion_of_each"),
    ]
    by_id = {row["id"]: row for row in rows}
    flags = ("true", "false", "") if format == "csv" else (True, False, None)
    count, empty = (str, "") if format == "csv" else (int, None)
    assert (by_id["id-10"]["opinions"], by_id["id-10"]["agreed"]) == (count(2), flags[0])
    assert by_id["id-14"]["agreed"] == flags[1]
    assert by_id["id-30"]["agreed"] == flags[2]
    for row, each in zip(rows, labelled, strict=True):
        said = {opinion.person: opinion.label for opinion in each.opinions}
        assert json.loads(row["opinion_of_each"]) == said
        # Pandas reads a missing text as a number.
        majority = None if isinstance(row["majority"], float) else row["majority"]
        assert majority == (next(iter(said.values())) if len(set(said.values())) == 1 else empty)
    assert (by_id["id-20"]["corrected"], by_id["id-20"]["animal"]) == (flags[0], "eel")
    assert (by_id["id-20"]["labelled_by"], by_id["id-0"]["labelled_by"]) == ("Zoë <b>", "pets.csv")
    assert by_id["id-2"]["corrected"] == flags[1]
    assert by_id["id-2"]["labelled_at"].endswith("Z")
    assert {row["random"] for row in rows} == {flags[1]}


@pytest.mark.parametrize("format", FORMATS)
def test_labels_say_which_items_were_drawn_at_random(tmp_path: Path, format: Format) -> None:
    with make(tmp_path / "pets.suffice", initial=2, random_share=0.2) as project:
        label_some(project, [17])
        label_some(project, [asked.position for asked in project.next("ann", 3)])
        label_some(project, [asked.position for asked in project.next("ann", 3, queue=range(20))])
        with project.lock:
            items = [answer.item for answer in project.state().answers()]
        rows = rows_of(labels_file(project, format))
    flags = ("true", "false") if format == "csv" else (True, False)
    assert [row["id"] for row in rows] == [f"id-{item}" for item in items]
    assert [row["random"] for row in rows] == [flags[each] for each in (1, 0, 0, 0, 0, 1, 1)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("format", FORMATS)
def test_predictions_are_of_all_items_without_a_label(busy: Project, format: Format) -> None:
    project_learner, _ = learned(busy)
    predictions = project_learner.predict(busy.X)
    file = predictions_file(busy, predictions, format)
    rows = rows_of(file)
    assert [row["id"] for row in rows] == [f"id-{item}" for item in range(40, 120)]
    assert list(rows[0]) == [
        "id",
        "text",
        "number",
        "animal",
        "uncertainty",
        "skipped",
        *("p(cat)", "p(dog)", "p(eel)"),
    ]
    assert [row["id"] for row in rows if row["skipped"] in (True, "true")] == ["id-50", "id-51"]
    for row, item in zip(rows, range(40, 120), strict=True):
        shares = [float(row[f"p({name})"]) for name in ("cat", "dog", "eel")]
        assert shares == predictions.probabilities[item].tolist()  # type: ignore[index]
        assert float(row["uncertainty"]) == pytest.approx(1.0 - max(shares))
        assert row["animal"] == ("cat", "dog", "eel")[int(np.argmax(shares))]


@pytest.mark.parametrize("format", FORMATS)
def test_numbers_stay_numbers(tmp_path: Path, format: Format) -> None:
    with busy_project(tmp_path / "p", task="regression") as project:
        project_learner, _ = learned(project)
        predictions = project_learner.predict(project.X)
        labels, rest = rows_of(labels_file(project, format)), rows_of(predictions_file(project, predictions, format))
        with project.lock:
            assert [float(row["animal"]) for row in labels] == [each.label for each in project.state().labelled()]
        assert [float(row["animal"]) for row in rest] == predictions.labels[40:].tolist()
        assert [float(row["uncertainty"]) for row in rest] == predictions.uncertainty[40:].tolist()
        assert list(rest[0]) == ["id", "text", "number", "animal", "uncertainty", "skipped"]


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_texts_go_out_as_they_came_in(tmp_path: Path, format: Format) -> None:
    with hostile_project(tmp_path / "p") as project:
        label_some(project, range(len(HOSTILE)))
        rows = rows_of(labels_file(project, format))
    back = exact if format == "csv" else str
    assert [back(row["text"]) for row in rows] == list(HOSTILE)
    assert [back(row["id"]) for row in rows] == [f"{text} {k}" for k, text in enumerate(HOSTILE)]
    if format == "csv":
        cells = [cell for row in rows for cell in row.values()]
        assert all(cell.lstrip()[:1] not in tuple("=+-@") or is_number(cell) for cell in cells)
        assert not any(cell.startswith(("\t", "\r", "\n")) for cell in cells)


@pytest.mark.parametrize("format", FORMATS)
def test_a_cell_of_a_megabyte_is_whole(tmp_path: Path, format: Format) -> None:
    long = "=" + "ab," * 400_000
    items = replace(some_items(2), cells=CellColumns([[long, "b"], ["1", "2"]]))
    with write_project(tmp_path / "p", about(), items) as project:
        label_some(project, [0])
        limit = csv.field_size_limit(10_000_000)
        try:
            (row,) = rows_of(labels_file(project, format))
        finally:
            csv.field_size_limit(limit)
    assert (exact(row["text"]) if format == "csv" else row["text"]) == long


@pytest.mark.parametrize("format", FORMATS)
def test_a_project_without_labels_gives_a_table_without_rows(tmp_path: Path, format: Format) -> None:
    import pandas

    with make(tmp_path / "p") as project:
        file = labels_file(project, format)
    assert file.rows == 0
    assert rows_of(file) == []
    if format == "csv":
        own = b"labelled_by,labelled_at,corrected,opinions,agreed,random,saw_prediction,confirmed,"
        own += b"majority,opinion_of_each"
        assert file.content == b"id,text,number,animal," + own + b"\n"
    if format == "parquet":
        assert str(pandas.read_parquet(io.BytesIO(file.content))["corrected"].dtype) == "bool"


def test_a_name_that_a_cell_has_already_gets_a_number(tmp_path: Path) -> None:
    columns = ("id", "agreed", "animal", "animal_2", "=x")
    items = replace(some_items(2), columns=columns, cells=CellColumns.of_rows([tuple("abcde")] * 2), main="id")
    with write_project(tmp_path / "p", about(columns=columns, main="id"), items) as project:
        label_some(project, [0])
        file = labels_file(project, "csv")
        (row,) = rows_of(file)
        (line,) = rows_of(labels_file(project, "jsonl"))
    assert list(line) == [
        *("id_2", "id", "agreed", "animal", "animal_2", "=x", "animal_3"),
        *("labelled_by", "labelled_at", "corrected", "opinions", "agreed_2", "random"),
        *("saw_prediction", "confirmed", "majority", "opinion_of_each"),
    ]
    assert (row["id_2"], row["id"], row["'=x"], line["=x"]) == ("id-0", "a", "e", "e")
    assert row["animal_3"] in ("cat", "dog")


def test_many_items_are_read_in_parts_and_none_is_lost(busy: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project_learner, _ = learned(busy)
    predictions = project_learner.predict(busy.X)
    whole = [labels_file(busy, "csv"), predictions_file(busy, predictions, "jsonl")]
    monkeypatch.setattr(exported_files, "_CHUNK", 7)
    assert [labels_file(busy, "csv"), predictions_file(busy, predictions, "jsonl")] == whole
    assert len(rows_of(labels_file(busy, "parquet"))) == 40


def test_a_number_that_is_none_leaves_its_cell_empty(busy: Project) -> None:
    nothing = np.full(busy.size, np.nan)
    predictions = Predictions(np.array(["cat"] * busy.size), nothing, np.full((busy.size, 3), np.inf))
    assert rows_of(predictions_file(busy, predictions, "csv"))[0]["uncertainty"] == ""
    assert rows_of(predictions_file(busy, predictions, "jsonl"))[0]["p(dog)"] is None


def test_what_cannot_be_exported_is_said(busy: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidValueError, match="format must be csv, jsonl or parquet, not 'xlsx'"):
        labels_file(busy, "xlsx")
    few = Predictions(np.array(["cat"]), np.zeros(1), None)
    with pytest.raises(InvalidValueError, match="all 120 items of the project; there are 1"):
        predictions_file(busy, few, "csv")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"Writing Parquet needs pyarrow.*-m pip install 'pyarrow>="):
        labels_file(busy, "parquet")


# --- checks ---


def checked(project: Project, size: int = 20) -> list[int]:
    """Check the model; return the items of the check."""
    project.start_check(size, person="ann")
    items = list(project.checks()[-1].record.items)
    label_some(project, [item for item in items if project.state().labels.is_open(item)])
    return items


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("task", "format"), crossed(["classification", "regression"], FORMATS, every=2))
def test_predictions_are_those_that_the_guarantee_is_about(tmp_path: Path, format: Format, task: str) -> None:
    asked: dict[str, Any] = {} if task == "classification" else {"tolerance": 0.5}
    with busy_project(tmp_path / "pets.suffice", task=task) as project:
        assert checked_predictions_file(project, format) is None
        assert guarantee_file(project) is None
        # As if another machine had predicted: the recorded ones are exported.
        recorded = np.array(["eel"] * 120) if task == "classification" else np.arange(120) / 3.0
        project.start_check(20, person="ann", predict=lambda *_: recorded, **asked)
        draw = project.checks()[0].draw
        label_some(project, [item for item in draw.items if project.state().labels.is_open(item)])
        learner, _ = learned(project)
        rows = rows_of(predictions_file(project, learner.predict(project.X), format))
        assert checked_predictions_file(project, format) is None
        open_ones = [item for item in range(120) if project.state().label_of(item) is None]
        assert [row["id"] for row in rows] == [f"id-{item}" for item in open_ones]
        expected = draw.prediction_of(open_ones)
        for row, item in zip(rows, open_ones, strict=True):
            value = row["animal"] if task == "classification" else float(row["animal"])
            assert value == expected[item]
        # Labelling goes on: the predictions of the earlier model are a file of their own.
        label_some(project, [item for item in open_ones if project.state().labels.is_open(item)][:1])
        file = checked_predictions_file(project, format)
        assert file is not None
        older = rows_of(file)
        assert [row["id"] for row in older] == [f"id-{item}" for item in draw.before.unlabelled.tolist()]
        drawn = {f"id-{item}" for item in draw.items}
        assert [str(row["in_check"]).lower() == "true" for row in older] == [row["id"] in drawn for row in older]
        values = [row["animal"] if task == "classification" else float(row["animal"]) for row in older]
        assert values == draw.predictions.tolist()
        present = rows_of(predictions_file(project, learner.predict(project.X), format))
        assert {row["animal"] for row in present} != {"eel"}


def test_the_guarantee_is_a_file_with_its_evidence(busy: Project) -> None:
    busy.start_check(4, person="Zoë")
    busy.abort_check(person="Zoë")
    items = checked(busy)
    file = guarantee_file(busy)
    found = busy.guarantee()
    assert file is not None
    assert found is not None
    assert (file.name, file.media_type) == ("guarantee.json", "application/json")
    told = json.loads(file.content)
    assert told["statement"] == str(found.guarantee)
    assert Guarantee.from_dict({name: told[name] for name in found.guarantee.to_dict()}) == found.guarantee
    assert (told["about_present_model"], told["predictions_in"]) == (True, "predictions")
    assert (told["n_labelled"], told["model_name"], told["classes"]) == (40, "logistic", ["cat", "dog", "eel"])
    classes = ["cat", "dog", "eel"]
    assert told["covers"] == {
        "items_of_project": 120,
        "items_added_later": 0,
        "unlabelled_items": 80,
        "classes": classes,
    }
    assert [each["item"] for each in told["check_items"]] == items
    assert [each["id"] for each in told["check_items"]] == [f"id-{item}" for item in items]
    state = busy.state()
    assert [each["label"] for each in told["check_items"]] == [state.label_of(item) for item in items]
    wrong = sum(each["label"] not in (None, each["prediction"]) for each in told["check_items"])
    assert told["wrong"] == wrong
    assert [(each["number"], each["state"]) for each in told["checks"]] == [(1, "aborted"), (2, "complete")]
    assert told["checks"][0]["statement"] is None
    assert sum(each["alpha"] for each in told["checks"]) == pytest.approx(0.025 + 0.05 / 6)
    label_some(busy, [item for item in range(120) if busy.state().labels.is_open(item)][:1])
    later = guarantee_file(busy)
    assert later is not None
    assert json.loads(later.content)["predictions_in"] == "checked_predictions"
