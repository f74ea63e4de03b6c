"""Sheets of Excel workbooks to columns, with files of openpyxl and of this package, and what is said of other files."""

import io
import re
import sys
import zipfile
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError, MissingExtraError
from suffice.tables import excel_reader, file_content
from suffice.tables.file_reader import read_chunks, read_columns
from suffice.tables.file_writer import Column
from suffice.tables.final_writer import encoded_final, final_columns, workbook
from suffice.tables.table import named_column
from suffice.tables.table_columns import TableColumns
from tests.tables.table_contents import cells, content, read

openpyxl: Any = pytest.importorskip("openpyxl", reason="Excel: openpyxl is not installed")

Row = list[Any]
SHEET = "xl/worksheets/sheet1.xml"


def book_of(*rows: Row, title: str = "Sheet") -> Any:
    """A workbook with one sheet."""
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    return book


def saved(book: Any, name: str = "t.xlsx") -> TableColumns:
    book.save(name)
    return read_columns(Path(name))


def sheet_of(*rows: Row, name: str = "t.xlsx") -> TableColumns:
    return saved(book_of(*rows), name)


def parts_of(name: str) -> dict[str, str]:
    """The parts of a workbook."""
    with zipfile.ZipFile(name) as opened:
        return {each: opened.read(each).decode() for each in opened.namelist()}


def archive(**parts: str) -> bytes:
    """An archive with these parts."""
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, text in parts.items():
            opened.writestr(name, text)
    return found.getvalue()


def changed(change: Callable[[str], str], part: str = SHEET, name: str = "t.xlsx") -> TableColumns:
    """Read a workbook after a part of it was changed."""
    parts = parts_of(name)
    return read(archive(**parts | {part: change(parts[part])}), name)


def with_shared_texts(data: str) -> TableColumns:
    """Read a workbook whose texts are in a part of their own, as Excel writes them; openpyxl writes them to cells."""
    parts, texts = parts_of(data), list[str]()

    def moved(found: re.Match[str]) -> str:
        texts.append(found[2])
        return f'<c r="{found[1]}" t="s"><v>{len(texts) - 1}</v></c>'

    parts[SHEET] = re.sub(r'<c r="(\w+)" t="inlineStr"><is>(.*?)</is></c>', moved, parts[SHEET], flags=re.DOTALL)
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    parts["xl/sharedStrings.xml"] = f'<sst xmlns="{space}">{"".join(f"<si>{text}</si>" for text in texts)}</sst>'
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    known = parts["[Content_Types].xml"]
    shared = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
    parts["[Content_Types].xml"] = known.replace("</Types>", shared)
    return read(archive(**parts), data)


@pytest.mark.parametrize("name", ["t.xlsx", "t.XLSX", "t.xlsm", "t.xls"])
def test_values_become_cells_as_in_csv(name: str) -> None:
    file = sheet_of(
        ["id", "n", "text", "flag", "day", "moment", "hour", "mixed"],
        ["007", 1, 'good, "fine"\nnew \' line', True, date(2024, 2, 29), datetime(2024, 2, 29, 12, 30), time(8, 5), 1],
        ["8", 2.5, " é \U0001f40c", False, datetime(1999, 1, 1), datetime(2024, 3, 1), None, "x"],
        ["9", None, "NA", None, None, None, None, 1e-7],
        name=name,
    )
    assert cells(file) == [
        ("007", "1", 'good, "fine"\nnew \' line', "true", "2024-02-29", "2024-02-29T12:30:00", "08:05:00", "1"),
        ("8", "2.5", " é \U0001f40c", "false", "1999-01-01", "2024-03-01", "", "x"),
        ("9", "", "NA", "", "", "", "", "1e-07"),
    ]
    found = content(file)
    assert (found["id"], found["n"]) == ([7.0, 8.0, 9.0], [1.0, 2.5, None])
    assert found["text"] == ['good, "fine"\nnew \' line', "é \U0001f40c", None]
    assert found["flag"] == ["true", "false", None]
    assert file.texts("id").levels == ("007", "8", "9")
    assert (file.notes, file.header) == ((), "first row")
    assert [file.place(row) for row in range(3)] == ["row 2", "row 3", "row 4"]


def test_numbers_have_no_more_digits_than_in_the_file() -> None:
    values = [3, -0.5, 0.1234567890123456, 10**15, 1e20, 100.0, 1e-300]
    file = sheet_of(["n", "k"], *([value, 1] for value in values))
    assert file.cells_of("n") == [
        "3",
        "-0.5",
        "0.1234567890123456",
        "1000000000000000",
        f"1{'0' * 20}",
        "100",
        "1e-300",
    ]
    assert content(file)["n"] == values


def test_a_duration_is_shown_in_hours() -> None:
    values = [timedelta(hours=26, minutes=3), timedelta(seconds=59.5), timedelta(0)]
    assert sheet_of(["d", "k"], *([value, 1] for value in values)).cells_of("d") == [
        "26:03:00",
        "0:00:59.500",
        "0:00:00",
    ]


def test_the_epoch_of_old_macs() -> None:
    book = book_of(["day", "k"], [date(2024, 2, 29), 1])
    book.epoch = openpyxl.utils.datetime.MAC_EPOCH
    assert saved(book).cells_of("day") == ["2024-02-29"]


def test_the_first_row_that_is_not_empty_names_the_columns() -> None:
    book = book_of(
        [], [None, "  "], [None, "a", None, None, "b"], [], [None, 1, None, None, "x"], [None, None], [None, 2]
    )
    # Formats without values, as left behind when cells are emptied.
    for place in ("A9", "H3", "Z40"):
        book.active[place].font = openpyxl.styles.Font(bold=True)
    file = saved(book)
    assert content(file) == {"a": [1.0, 2.0], "b": ["x", None]}
    assert [file.place(row) for row in range(2)] == ["row 5", "row 7"]


def test_columns_without_a_name_but_with_values_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    for block in (500, 1):
        monkeypatch.setattr(excel_reader, "BLOCK", block)
        file = sheet_of(["a", None, "b"], [1, None, "x"], [2, None, "y", "late"], [3, " ", "z"])
        assert content(file) == {"a": [1.0, 2.0, 3.0], "b": ["x", "y", "z"], "column 3": [None, "late", None]}


def test_a_wrong_size_in_the_file_hides_nothing() -> None:
    book_of(["a", "b"], [1, 2], [3, 4]).save("t.xlsx")
    for wrong in ("A1", "A1:A2", "C5:D9"):
        size = f'dimension ref="{wrong}"'
        file = changed(lambda text, size=size: re.sub('dimension ref="[^"]*"', size, text))  # type: ignore[misc]
        assert content(file) == {"a": [1.0, 3.0], "b": [2.0, 4.0]}


def test_which_sheet_is_read() -> None:
    book = openpyxl.Workbook()
    hidden, empty, first, other = book.active, *map(book.create_sheet, ("empty", "mails", "costs"))
    hidden.title, hidden.sheet_state = "codes", "hidden"
    for sheet, value in ((hidden, 0), (first, 1), (other, 2)):
        sheet.append(["a"])
        sheet.append([value])
    empty["B2"].font = openpyxl.styles.Font(bold=True)
    file = saved(book)
    assert content(file) == {"a": [1.0]}
    assert file.notes == (
        "the sheet 'mails' was read, and others with data were not: 'codes' (hidden), 'costs'; to read another one, "
        "move it to the front or save it in its own file",
    )
    assert next(read_chunks(Path("t.xlsx"))).notes == file.notes
    for name in ("mails", "costs"):
        del book[name]
    with pytest.raises(
        InvalidValueError, match="all sheets with data are hidden, such as 'codes'; unhide the one to read"
    ):
        saved(book)
    hidden.sheet_state = "veryHidden"
    with pytest.raises(InvalidValueError, match="all sheets with data are hidden"):
        saved(book)
    # A single sheet with data needs no note.
    hidden.sheet_state = "visible"
    assert saved(book).notes == ()


def test_titles_above_the_names_of_the_columns_are_left_out() -> None:
    table = sheet_of(["Customers 2026"], [], ["as of May"], ["name", "size"], ["Ann", 3], ["Bob", 4])
    assert (table.names, table.place(0)) == (("name", "size"), "row 5")
    assert table.notes == ("row 4 names the columns; what stands above it was left out: 'Customers 2026', 'as of May'",)


@pytest.mark.parametrize(
    ("rows", "names", "size"),
    [
        # One column of texts, with a remark beside one of them.
        ([["text"], ["a"], ["b", "odd"], ["c"]], ("text", "column 2"), 3),
        # A first column without a value in the second one.
        ([["name", "size"], ["Ann"], ["Bob", 4]], ("name", "size"), 2),
        # No names: the row with several cells has numbers.
        ([["x"], [1, 2], [3, 4]], ("x", "column 2"), 2),
    ],
)
def test_what_is_no_title(rows: list[Row], names: tuple[str, ...], size: int) -> None:
    table = sheet_of(*rows)
    assert (table.names, len(table), table.notes) == (names, size, ())


def test_a_cover_before_the_table_is_not_read() -> None:
    def with_table(book: Any) -> Any:
        sheet = book.create_sheet("Data")
        for row in (["name", "size"], ["Ann", 3], ["Bob", 4]):
            sheet.append(row)
        return book

    table = saved(with_table(book_of(["Customers"], ["Made by Ann"], title="About")))
    assert table.names == ("name", "size")
    assert table.notes[0].startswith("the sheet 'Data' was read, and others with data were not: 'About'")
    # A sheet of texts is no cover if it is long, or if nothing else is a table.
    assert len(saved(with_table(book_of(*([f"text {k}"] for k in range(20)))))) == 19
    assert len(saved(book_of(["text"], ["a"], ["b"]))) == 2


def test_a_chart_that_fills_a_sheet_is_none_with_data() -> None:
    book = book_of(["a"], [1], title="data")
    book.create_chartsheet("chart", 0).add_chart(openpyxl.chart.BarChart())
    file = saved(book)
    assert (content(file), file.notes) == ({"a": [1.0]}, ())


def with_values(values: str) -> Callable[[str], str]:
    """Store values with formulas, as Excel does; openpyxl does not compute them. Each is a type, a colon and a tag."""
    kept = iter(values.split("|"))

    def stored(found: re.Match[str]) -> str:
        kind, value = next(kept).split(":")
        return f'<c r="{found[1]}"' + (f' t="{kind}"' if kind else "") + f"><f>{found[2]}</f>{value}</c>"

    return lambda text: re.sub(r'<c r="(\w+)"><f>(.*?)</f><v ?/></c>', stored, text)


def test_the_stored_values_of_formulas_are_read() -> None:
    book_of(["a", "b"], [1, "=A2*2"], [2, "=A3*2"], [3, '=""'], [4, "=A1/0"]).save("t.xlsx")
    file = changed(with_values(":<v>2</v>|str:<v>four</v>|str:<v></v>|e:<v>#DIV/0!</v>"))
    assert file.cells_of("b") == ["2", "four", "", ""]
    assert file.notes == (
        "column 'b': 1 error value read as missing, such as #DIV/0! in row 5; correct the formulas if there should be "
        "values",
        "4 stored values of formulas were read, and the file asks that they are computed when it is opened: open it in "
        "Excel or LibreOffice and save it, so that they are right",
    )
    file = changed(lambda text: text.replace(' fullCalcOnLoad="1"', ""), "xl/workbook.xml")
    assert len(file.notes) == 1


@pytest.mark.parametrize("stored", [":", ":<v></v>", "e:", "n:<v/>"])
def test_a_formula_without_a_stored_value_is_an_error(stored: str) -> None:
    book_of(["a", "b"], [1, 2], [2, "=A3*2"], [3, "=A4*2"]).save("t.xlsx")
    words = (
        r"t\.xlsx, sheet 'Sheet', cell B3: the formula has no stored value; open the file in Excel or LibreOffice, "
        "which compute it, and save it"
    )
    with pytest.raises(InvalidValueError, match=words):
        read_columns(Path("t.xlsx"))
    with pytest.raises(InvalidValueError, match=words):
        changed(with_values(f"{stored}|:<v>6</v>"))
    # With a prefix of the name space, as some programs write it.
    with pytest.raises(InvalidValueError, match=words):
        changed(lambda text: re.sub("<(/?)(?=[a-z])", r"<\1x:", text).replace("xmlns=", "xmlns:x="))


def test_a_formula_far_below_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excel_reader, "_PART", 7)
    with pytest.raises(InvalidValueError, match="cell A9: the formula has no stored value"):
        sheet_of(["a"], *([k] for k in range(7)), ["=A2"])
    assert len(sheet_of(["a <f> b"], ["<f>"], ["</f>"])) == 2


@pytest.mark.parametrize("merged", ["A1:B1", "A2:A3", "B3:C4", "A1:A9", "B4:B5"])
def test_merged_cells_of_a_table_are_an_error(merged: str) -> None:
    book = book_of(["a", "b"], [1, 2], [3, 4], [5, 6])
    book.active.merge_cells(merged)
    words = rf"t\.xlsx, sheet 'Sheet': the cells {merged} are merged, and each cell of a table needs .*; unmerge them"
    with pytest.raises(InvalidValueError, match=words):
        saved(book)


def test_merged_cells_beside_a_table_do_not_matter() -> None:
    book = book_of(["a", "b"], [1, 2], [3, 4])
    for place in ("D1:E2", "A7:B9"):
        book.active.merge_cells(place)
    assert content(saved(book)) == {"a": [1.0, 3.0], "b": [2.0, 4.0]}


def test_error_values_are_missing_and_reported() -> None:
    file = sheet_of(["a", "b", "c"], [1, "#N/A", "x"], ["#DIV/0!", "#REF!", "y"], ["#DIV/0!", 2, "#1"])
    assert content(file) == {"a": [1.0, None, None], "b": [None, None, 2.0], "c": ["x", "y", "#1"]}
    assert cells(file)[1] == ("", "", "y")
    assert [note.split(";")[0] for note in file.notes] == [
        "column 'a': 2 error values read as missing, such as #DIV/0! in row 3",
        "column 'b': 2 error values read as missing, such as #N/A in row 2",
    ]


def test_a_text_that_looks_like_an_error_value_is_a_text() -> None:
    # openpyxl writes such a text as an error value.
    book_of(["a", "b"], ["#REF!", "#REF!"], ["#DIV/0!", 2]).save("t.xlsx")
    as_text = '<c r="A2" t="inlineStr"><is><t>#REF!</t></is></c>'
    file = changed(lambda text: re.sub(r'<c r="A2" t="e">.*?</c>', as_text, text))
    assert cells(file) == [("#REF!", ""), ("", "2")]
    assert [note.split(";")[0] for note in file.notes] == [
        "column 'a': 1 error value read as missing, such as #DIV/0! in row 3",
        "column 'b': 1 error value read as missing, such as #REF! in row 2",
    ]


def test_a_date_that_is_none_is_an_error_value() -> None:
    book_of(["day", "k"], [date(2024, 2, 29), 1], [date(2024, 3, 1), 2]).save("t.xlsx")
    file = changed(lambda text: text.replace("<v>45352</v>", "<v>1000000000</v>"))
    assert file.cells_of("day") == ["2024-02-29", ""]
    assert file.notes[0].startswith("column 'day': 1 error value read as missing, such as #VALUE! in row 3")


def test_escaped_characters_are_read() -> None:
    book_of(["a"], ["one_x000D_\ntwo"], ["plain _x"], ["_xD83D__xDC0C_"]).save("t.xlsx")
    for file in (read_columns(Path("t.xlsx")), with_shared_texts("t.xlsx")):
        assert file.cells_of("a") == ["one\r\ntwo", "plain _x", "\U0001f40c"]


def test_shared_texts() -> None:
    book_of(["id", "text"], ["007", "a <b> & c"], ["8", " spaces "], ["9", "runs"], ["10", "a <b> & c"]).save("t.xlsx")
    before = cells(read_columns(Path("t.xlsx")))
    file = with_shared_texts("t.xlsx")
    assert 't="inlineStr"' not in parts_of("t.xlsx")[SHEET]
    assert cells(file) == before
    # A text of several formats.
    runs = "<r><t>ru</t></r><r><rPr><b/></rPr><t>ns</t></r>"
    file = changed(lambda text: text.replace("<t>runs</t>", runs), "xl/sharedStrings.xml")
    assert cells(file) == before


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], r"t\.xlsx has no sheet with data; a row of column names and rows of data are required"),
        ([[" "], []], "has no sheet with data"),
        ([["a", "b"]], r"t\.xlsx, sheet 'Sheet', holds one row only; a row of column names and rows of data"),
        ([[1, 2.5], [3, 4]], "the first row holds numbers only, so there are no column names. Add a first row"),
        ([["a", "a "], [3, 4]], "2 columns are named 'a', and names must be distinct"),
    ],
)
def test_what_is_not_a_table_is_an_error(rows: list[Row], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        sheet_of(*rows)


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
BAD = [
    ("t.xlsx", b"", r"t\.xlsx is empty; if it is a text, give it a name that ends in \.csv"),
    ("t.xlsx", b"a,b\n1,2\n", r"t\.xlsx is not an Excel workbook; if it is a text, give it a name that ends in \.csv"),
    (
        "t.xlsx",
        OLE,
        r"is a workbook of the old Excel format \(\.xls\), which cannot be read; open it in Excel or Libre",
    ),
    ("t.xls", OLE, r"t\.xls is a workbook of the old Excel format"),
    (
        "t.xlsx",
        OLE + "EncryptedPackage".encode("utf-16-le"),
        "is protected by a password, which cannot be read; open it in Excel, remove the password",
    ),
    ("t.xlsx", b"PK\x03\x04 junk", "is not an Excel workbook that can be read: .*; copy or download it again, or open"),
    ("t.xlsx", archive(), "is an archive but not an Excel workbook"),
    ("t.xlsx", archive(mimetype="application/vnd.oasis.opendocument.spreadsheet"), "is an archive but not an Excel"),
    ("t.xlsx", archive(**{"xl/workbook.bin": ""}), r"is a binary workbook \(\.xlsb\), which cannot be read"),
    ("t.xlsx", archive(**{"[Content_Types].xml": "<"}), "is not an Excel workbook that can be read"),
]


@pytest.mark.parametrize(("name", "data", "words"), BAD)
def test_other_files_are_an_error_with_a_remedy(name: str, data: bytes, words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        read(data, name)


def test_a_damaged_workbook_is_an_error() -> None:
    book_of(["a", "b"], *([k, f"text {k}"] for k in range(50))).save("t.xlsx")
    data = Path("t.xlsx").read_bytes()
    with pytest.raises(InvalidValueError, match="is not an Excel workbook that can be read"):
        read(data[: len(data) // 2], "u.xlsx")
    for cut in ("<sheetData>", "<row", "</c>"):
        Path("t.xlsx").write_bytes(data)
        with pytest.raises(InvalidValueError, match="is not an Excel workbook that can be read"):
            changed(lambda text, cut=cut: text[: text.index(cut) + 4])  # type: ignore[misc]
    Path("t.xlsx").write_bytes(data)
    with pytest.raises(InvalidValueError, match=r"it has more than 1,048,576 rows, the most that a sheet can have"):
        changed(lambda text: text.replace("</sheetData>", '<row r="999999999"><c><v>1</v></c></row></sheetData>'))
    broken = bytearray(data)
    broken[len(data) // 2] ^= 255
    with pytest.raises(InvalidValueError):
        read(bytes(broken), "u.xlsx")


def test_texts_with_the_ending_of_old_workbooks_are_read_as_csv() -> None:
    assert content(read("a\tb\n1\tx\n2\ty\n", "t.xls")) == {"a": [1.0, 2.0], "b": ["x", "y"]}
    with pytest.raises(InvalidValueError, match="there is no file"):
        read_columns(Path("none.xls"))


def test_a_small_file_that_unpacks_to_a_large_one_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    # The size is changed in the directory of the archive, so that the test does not write as much.
    data = archive(**{"[Content_Types].xml": "", SHEET: "x" * 54_321})
    size = (54_321).to_bytes(4, "little")
    assert data.count(size) == 2
    with pytest.raises(InvalidValueError, match="unpacks to 1,025 MiB, and at most 1,024 MiB are read; remove what"):
        read(data.replace(size, (1025 * 2**20).to_bytes(4, "little")), "t.xlsx")
    file = sheet_of(["a"], [1])
    monkeypatch.setattr(excel_reader, "MOST_UNPACKED", 100)
    with pytest.raises(InvalidValueError, match="at most 0 MiB are read"):
        read_columns(Path("t.xlsx"))
    assert content(file) == {"a": [1.0]}


def test_entities_that_expand_are_refused() -> None:
    entities = "".join(f'<!ENTITY e{k + 1} "{f"&e{k};" * 10}">' for k in range(7))
    for start, words in (("", "it declares a document type, which no workbook does"), (" " * 5000, "amplification")):
        book_of(["a"], ["entity"]).save("t.xlsx")
        declared = f'<!--{start}--><!DOCTYPE s [<!ENTITY e0 "many">{entities}]>'
        with pytest.raises(InvalidValueError, match=f"is not an Excel workbook that can be read: .*{words}"):
            changed(lambda text, declared=declared: declared + text.replace("entity", "&e7;"))  # type: ignore[misc]


def test_names_far_to_the_right_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_content, "MOST_CELLS", 100)
    with pytest.raises(InvalidValueError, match="at most 100 cells are read"):
        sheet_of([f"c{k}" for k in range(50)], *([k] for k in range(9)))
    # A value far away is one column.
    book = book_of(["a"], [1])
    book.active["XFD3"] = 7
    assert content(saved(book)) == {"a": [1.0, None], "column 2": [None, 7.0]}


def test_without_openpyxl_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    book_of(["a"], [1]).save("t.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingExtraError, match=r"Reading Excel workbooks needs openpyxl.*-m pip install '?openpyxl"):
        read_columns(Path("t.xlsx"))
    # What is wrong with a file is said first.
    with pytest.raises(InvalidValueError, match="there is no file"):
        read_columns(Path("none.xlsx"))


def test_a_column_that_is_missing_is_named_by_the_first_row() -> None:
    file = sheet_of(["age", "income"], [1, 2])
    with pytest.raises(
        InvalidValueError, match=r"has no column 'incom'\. Did you mean 'income'\? Its columns, by the first row,"
    ):
        named_column(file, "incom", Path("t.xlsx"))
    below = sheet_of(["Export of May"], [], ["age", "income"], [1, 2])
    with pytest.raises(InvalidValueError, match="Its columns, by the first row below the titles, are 'age', 'income'"):
        named_column(below, "incom", Path("t.xlsx"))


def test_the_workbooks_of_this_package_come_back() -> None:
    columns = final_columns(["id", "text", "size"])
    rows = [
        ("1", "=1+1", "1.50", "spam", "model", 0.93, None, None),
        ("007", "a <b> & \"c\", 'd'\r\nnew", "", "1.0", "person", None, "Ann", "2024-03-05T14:02:59Z"),
        ("-3", "@sum\ttab", "123456789012345678", "ham", "check", None, "Bob", "2024-03-05T14:03:59Z"),
        ("4", "\U0001f40c é _x0041_", "x", None, "", None, None, None),
    ]
    file = read(encoded_final(columns, [rows], "xlsx"), "final.xlsx")
    assert file.names == tuple(column.name for column in columns)
    # Only numbers lose their form.
    wanted = [["" if cell is None else str(cell) for cell in row] for row in rows]
    wanted[0][2] = "1.5"
    assert cells(file) == [*map(tuple, wanted)]
    in_lines = read(encoded_final(columns, [rows], "jsonl"), "final.jsonl")
    assert cells(in_lines) == [*map(tuple, [[*wanted[0][:2], "1.50", *wanted[0][3:]], *wanted[1:]])]


# Lone surrogates, which are no text in any file, are written as escapes.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\ufffe\uffff"), max_size=6)


@example([("#REF!", "#N/A")])
@example([("", " ")])
@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=6))
def test_any_texts_come_back_from_a_workbook_of_this_package(rows: list[tuple[str, str]]) -> None:
    written = [("first", *row) for row in rows]
    # Texts are not read as numbers in columns that are not of the data.
    file = read(workbook([Column("key"), Column("a"), Column("b")], [written], texts=3), "t.xlsx")
    found = dict.fromkeys(("key", "a", "b"), [""] * len(rows)) | {name: [*file.cells_of(name)] for name in file.names}
    assert [*zip(*found.values(), strict=True)] == written
