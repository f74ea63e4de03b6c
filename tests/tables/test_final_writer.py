"""Final files: the same rows in every format, safe in a spreadsheet, and the same bytes each time."""

import csv
import io
import json
import zipfile
from typing import Any
from xml.etree import ElementTree

import pytest

from suffice.errors import InvalidValueError, MissingExtraError
from suffice.tables.file_writer import Column
from suffice.tables.final_writer import ADDED, encoded_final, final_columns, final_format, workbook

COLUMNS = final_columns(["id", "text", "size"])
ROWS = [
    ("1", "=1+1", "1.50", "spam", "model", 0.93, None, None),
    ("007", "a <b> & \"c\", 'd'\r\nnew", "", "1.0", "person", None, "Ann", "2024-03-05T14:02:59Z"),
    ("-3", "@sum\ttab", "123456789012345678", "ham", "check", None, "Bob", "2024-03-05T14:03:59Z"),
    ("4", "🐌 é", "x", None, "", None, None, None),
]
_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def cells(content: bytes) -> list[list[tuple[str, str]]]:
    """The cells of a workbook: type and text."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            ElementTree.fromstring(archive.read(name))
        sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))
    return [
        [(cell.get("t", "n"), "".join(cell.itertext())) for cell in row.iter(f"{_SHEET}c")]
        for row in sheet.iter(f"{_SHEET}row")
    ]


def test_the_names_of_the_columns() -> None:
    assert [column.name for column in COLUMNS] == ["id", "text", "size", *ADDED]
    renamed = [column.name for column in final_columns(["label", "source", "label_2"])]
    # Columns of the data keep their names.
    assert renamed[:5] == ["label", "source", "label_2", "label_3", "source_2"]


def test_formats_by_the_ending_of_a_name() -> None:
    assert [final_format(f"a.b{end}") for end in (".csv", ".XLSX", ".jsonl", ".ndjson", ".parquet", ".pq")] == [
        *("csv", "xlsx", "jsonl", "jsonl", "parquet", "parquet")
    ]
    for name in ("final", "final.xls", "final.txt"):
        with pytest.raises(InvalidValueError, match=r"must end in \.csv, \.xlsx, \.jsonl or \.parquet"):
            final_format(name)


@pytest.mark.parametrize("format", ["csv", "xlsx", "jsonl", "parquet"])
def test_the_same_rows_give_the_same_bytes(format: Any) -> None:
    if format == "parquet":
        pytest.importorskip("pyarrow")
    once = encoded_final(COLUMNS, [ROWS], format)
    assert once == encoded_final(COLUMNS, [ROWS], format)
    if format != "parquet":
        # However they are divided.
        assert once == encoded_final(COLUMNS, [ROWS[:1], ROWS[1:]], format)


def test_csv_is_safe_in_a_spreadsheet() -> None:
    content = encoded_final(COLUMNS, [ROWS], "csv")
    read = list(csv.reader(io.StringIO(content.decode(), newline="")))
    assert [row[1] for row in read[1:]] == ["'=1+1", ROWS[1][1], "'@sum\ttab", "🐌 é"]
    marked = encoded_final(COLUMNS, [ROWS], "csv", byte_order_mark=True)
    assert marked == b"\xef\xbb\xbf" + content
    with pytest.raises(InvalidValueError, match="a byte order mark is for csv only"):
        encoded_final(COLUMNS, [ROWS], "xlsx", byte_order_mark=True)


def test_json_lines_hold_every_value() -> None:
    lines = encoded_final(COLUMNS, [ROWS], "jsonl").decode().splitlines()
    # An empty cell is missing.
    wanted = [tuple(None if cell == "" else cell for cell in row) for row in ROWS]
    assert [tuple(json.loads(line).values()) for line in lines] == wanted


def test_a_workbook_has_texts_and_numbers_and_no_formula() -> None:
    content = encoded_final(COLUMNS, [ROWS], "xlsx")
    head, *rows = cells(content)
    assert head == [("inlineStr", column.name) for column in COLUMNS]
    assert rows[0] == [
        ("n", "1"),
        ("inlineStr", "=1+1"),
        ("n", "1.50"),
        ("inlineStr", "spam"),
        ("inlineStr", "model"),
        ("n", "0.93"),
    ]
    # A name with leading zeros, and a number with too many digits, stay texts; a label always does.
    assert rows[1][0] == ("inlineStr", "007")
    assert ("inlineStr", "1.0") in rows[1]
    assert rows[2][2] == ("inlineStr", "123456789012345678")
    assert rows[1][1] == ("inlineStr", ROWS[1][1])
    assert b"<f>" not in zipfile.ZipFile(io.BytesIO(content)).read("xl/worksheets/sheet1.xml")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert {each.date_time for each in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_workbook_opens_in_other_programs() -> None:
    openpyxl, pandas = pytest.importorskip("openpyxl"), pytest.importorskip("pandas")
    content = encoded_final(COLUMNS, [ROWS], "xlsx")
    sheet = openpyxl.load_workbook(io.BytesIO(content)).active
    assert sheet.freeze_panes == "A2"
    read = [[cell.value for cell in row] for row in sheet.iter_rows()]
    assert read[1] == [1, "=1+1", 1.5, "spam", "model", 0.93, None, None]
    assert {cell.data_type for row in sheet.iter_rows() for cell in row} <= {"s", "n"}
    frame = pandas.read_excel(io.BytesIO(content), dtype={"id": str})
    assert frame["id"].tolist() == ["1", "007", "-3", "4"]
    assert frame["text"][3] == "🐌 é"


def test_what_a_workbook_cannot_hold() -> None:
    with pytest.raises(InvalidValueError, match="cell A2, column 'text', has 32,768 characters"):
        workbook([Column("text")], [[("x" * 32_768,)]])
    with pytest.raises(InvalidValueError, match="at most 16,384 columns"):
        workbook([Column(f"c{k}") for k in range(16_385)], [])
    odd = cells(workbook([Column("text")], [[("\x01 _x0041_ \ud800",)]]))
    assert odd[1] == [("inlineStr", "_x0001_ _x005F_x0041_ _xD800_")]


def test_parquet_needs_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("suffice.tables.file_writer.import_module", missing)
    with pytest.raises(MissingExtraError, match="pyarrow"):
        encoded_final(COLUMNS, [ROWS], "parquet")
