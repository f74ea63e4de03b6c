"""A file to columns: every kind of CSV that people have, Parquet, and what is said of a file that is neither.

JSON lines and Excel workbooks are in ``test_json_reader.py`` and ``test_excel_reader.py``.
"""

import csv
import gzip
import importlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError, MissingExtraError
from suffice.tables import csv_reader, file_content, parquet_reader
from suffice.tables.file_reader import read_chunks, read_columns, table_format, without_ending
from suffice.tables.parquet_reader import ParquetCells
from suffice.tables.table_columns import MISSING, Texts, as_number, as_texts, column
from tests.tables.table_contents import cells, content, plain, read
from tests.thoroughness import thorough

DATA = os.environ.get("SUFFICE_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="people's tables: SUFFICE_DATA is not set")


SMALL = {"a": [1.0, 2.5], "b": ["x", "y, z"]}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_separators_line_ends_and_byte_order_marks(separator: str, end: str, start: str) -> None:
    lines = [f"a{separator}b", f"1{separator}x", f'2.5{separator}"y, z"', ""]
    file = read(start + end.join(lines))
    assert content(file) == SMALL
    assert file.notes == ()


def test_the_separator_is_found_among_others_that_occur() -> None:
    assert content(read('name|note\n"a|b",1;2;3\nc,"d;e"\n'.replace(",", "|"))) == {
        "name": ["a|b", "c"],
        "note": ["1;2;3", "d;e"],
    }
    # A text with commas after a semicolon; the first line decides, and the others have as many.
    assert read("id;text\n1;one, two, three\n2;four, five, six\n").names == ("id", "text")


@pytest.mark.parametrize("name", ["t.tsv", "t.TSV", "t.tsv.gz"])
def test_tsv_means_tabs(name: str) -> None:
    data = b"a,b,c\tlabel\n1,2,3\tx\n4,5,6\ty\n"
    file = read(gzip.compress(data) if name.endswith("gz") else data, name)
    assert file.names == ("a,b,c", "label")


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv", "t"])
def test_gzip_is_known_by_its_bytes(name: str) -> None:
    assert content(read(gzip.compress(b'a,b\n1,x\n2.5,"y, z"\n'), name)) == SMALL


def test_unknown_endings_are_read_as_csv() -> None:
    assert content(read('a,b\n1,x\n2.5,"y, z"\n', "table.dat")) == SMALL


def test_latin_1_where_it_is_not_utf_8() -> None:
    file = read("stadt,n\nKöln,1\nBonn,2\n".encode("latin-1"))
    assert content(file)["stadt"] == ["Köln", "Bonn"]
    assert file.notes == ("the file is not in UTF-8; it was read as Latin-1",)
    assert read("stadt,n\nKöln,1\n").notes == ()


def test_windows_1252_where_it_has_characters_that_latin_1_has_not() -> None:
    file = read("stadt;preis (€)\nKöln;„5 €“\n".encode("cp1252"))
    assert file.names == ("stadt", "preis (€)")
    assert content(file)["preis (€)"] == ["„5 €“"]
    assert file.notes == ("the file is not in UTF-8; it was read as Windows-1252",)
    # Byte 0x81 is no character of Windows-1252.
    assert read(b"stadt,n\nK\x81ln \x80,1\n").notes == ("the file is not in UTF-8; it was read as Latin-1",)


def test_quoted_cells_may_hold_line_ends_and_quotes() -> None:
    file = read('n,text\n1,"first\nsecond, ""third"""\n\n2,plain\n')
    assert content(file) == {"n": [1.0, 2.0], "text": ['first\nsecond, "third"', "plain"]}
    assert [file.place(row) for row in range(2)] == ["line 2", "line 5"]


def test_spaces_after_a_separator_do_not_hide_quotes() -> None:
    assert content(read('a, b\n1, "x"\n2.5, "y, z"\n')) == SMALL


def test_a_quote_that_never_closes_swallows_no_line() -> None:
    file = read('label\ttext\nham\t"Hello\nspam\tcall now\nham\t"bye" he said\nham\tlast "one"\n', "t.tsv")
    assert content(file)["text"] == ['"Hello', "call now", '"bye" he said', 'last "one"']
    assert file.notes == ("double quotes are read as plain characters, because they do not enclose cells",)
    # By the rules of quoting this could be one cell; but a cell with just the tabs of a row is hardly meant.
    assert len(read('label\ttext\nham\t"Hello\nspam\tbye"\n', "t.tsv").columns[0]) == 2
    assert content(read('label,text\nham,"Hello\nspam,call "now"\n'))["text"] == ['"Hello', 'call "now"']
    # So long that Python's reader gives up on the cell.
    long = read('label\ttext\nham\t"Hello\n' + "spam\tcall now and win\n" * 10_000, "t.tsv")
    assert len(long.columns[0]) == 10_001


def test_a_cell_without_end_is_an_error_that_says_so() -> None:
    with pytest.raises(InvalidValueError, match=r"field larger .* is a double quote opened and never closed\?"):
        read('a,b\n1,"x\n' + "word " * 40_000 + "\n")


def test_blank_lines_are_skipped_and_lines_counted_all_the_same() -> None:
    file = read("\n\na,b\n\n1,x\n   \n2.5,y\n\n")
    assert content(file) == {"a": [1.0, 2.5], "b": ["x", "y"]}
    assert [file.place(row) for row in range(2)] == ["line 5", "line 7"]


def test_what_counts_as_missing() -> None:
    tokens = ["", "NA", "N/A", "NaN", "nan", "null", "None", "?", "  ", " ? ", "#N/A", "NULL"]
    rows = "".join(f"{token},{token},1\n" for token in [*tokens, "7"]).replace("7,7", "7,seven")
    file = read("n,s,k\n" + rows)
    assert content(file)["n"] == [None] * len(tokens) + [7.0]
    assert content(file)["s"] == [None] * len(tokens) + ["seven"]


def test_numbers_are_numbers_and_names_with_underscores_are_not() -> None:
    file = read("a,b,c\n 1e3 ,1_000,-inf\n-.5,2,+2\n")
    assert content(file) == {"a": [1000.0, -0.5], "b": ["1_000", "2"], "c": [-np.inf, 2.0]}
    assert as_number("1_0") is None


def test_decimal_commas_where_semicolons_separate() -> None:
    file = read("a;b;c\n1,5;x,y;3\n2;u,v;4\n")
    assert content(file) == {"a": [1.5, 2.0], "b": ["x,y", "u,v"], "c": [3.0, 4.0]}
    assert file.notes == ("column 'a': commas read as decimal points",)
    assert content(read('a,b\n"1,500",x\n"2,500",y\n'))["a"] == ["1,500", "2,500"]


def test_a_column_without_a_name_gets_its_position() -> None:
    assert read(",a\n0,5\n1,6\n").names == ("column 1", "a")


def test_texts_at_some_rows() -> None:
    texts = column(["b", "?", "a", "b", "7"])
    assert isinstance(texts, Texts)
    some = texts[np.array([1, 2, 4])]
    assert isinstance(some, Texts)
    assert plain(some) == [None, "a", "7"]
    assert some.counts.tolist() == [1, 1]
    assert plain(texts[np.array([1, 4])]) == [None, 7.0]
    assert plain(texts[np.array([1])]) == [None]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("", r"table\.csv is empty; a line of column names and lines of data are required"),
        (" \n\n", r"table\.csv is empty"),
        ("\ufeff", r"table\.csv is empty"),
        ("a,b\n", r"table\.csv holds one line only; a line of column names and lines of data"),
        (
            "a,b,c\n1,2,3\n\n4,5\n",
            r"line 4: the number of cells is 2, and of column names 3\. They must .* separator ','",
        ),
        ('a,b\n1,"x\ny"\n1,2,3\n', "line 4: the number of cells is 3"),
        ("a,b,a\n1,2,3\n", "2 columns are named 'a', and names must be distinct"),
        ("a,b, a \n1,2,3\n", "2 columns are named 'a'"),
        ("1,2.5,-3e2\n1,2,3\n", "the first line holds numbers only, so there are no column names. Add a first line"),
        (b"a,b\n1,\0\n", "is not text: it contains NUL bytes. Save it as CSV in UTF-8"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is not text"),
        ("a,b\n1,2\n".encode("utf-16"), "is not text"),
        (gzip.compress(b"a,b\n1,2\n" * 100, mtime=0)[:-9], "cannot be unpacked"),
        (b"\x1f\x8b junk", "cannot be unpacked"),
    ],
)
def test_what_is_not_a_table_is_an_error(table: str | bytes, words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        read(table)


def test_files_that_cannot_be_read_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidValueError, match=r"there is no file nowhere/table\.csv; check the name"):
        read_columns(Path("nowhere/table.csv"))
    with pytest.raises(InvalidValueError, match=r"\. is a folder; name the table in it: a CSV, Excel, JSON"):
        read_columns(Path())
    with pytest.raises(InvalidValueError, match="cannot be read"):
        read_columns(Path("x" * 5000))

    def refused(_: Path) -> bytes:
        raise PermissionError

    # Not by chmod: the tests may run as root, who may read everything.
    monkeypatch.setattr(Path, "read_bytes", refused)
    with pytest.raises(InvalidValueError, match=r"table\.csv may not be read: permission denied"):
        read_columns(Path("table.csv"))


# Without what Python's reader takes off or folds: spaces at either end, and lone line ends are kept inside quotes.
CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=8), st.sampled_from(",;\t|"))
def test_any_cells_come_back_stripped(rows: list[tuple[str, str, str]], separator: str) -> None:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=separator, quoting=csv.QUOTE_ALL)
    writer.writerows([("name a", "name b", "name c", "key"), *((*row, "key") for row in rows)])
    name = "t.tsv" if separator == "\t" else "t.csv"
    file = read(stream.getvalue(), name)
    for k, col in enumerate(file.columns[:3]):
        assert len(col) == len(rows)
        if isinstance(col, Texts):
            wanted = [row[k].strip() for row in rows]
            assert [a if a is not None else b for a, b in zip(plain(col), wanted, strict=True)] == wanted


def test_parquet_without_pyarrow_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"Reading Parquet needs pyarrow.*-m pip install 'pyarrow>="):
        read(b"PAR1", "t.parquet")
    with pytest.raises(InvalidValueError, match="there is no file"):
        read_columns(Path("nowhere.parquet"))


def arrow() -> Any:
    return pytest.importorskip("pyarrow", reason="Parquet: pyarrow is not installed")


@pytest.fixture(params=["small", "large"])
def parquet_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parquet files are read as small ones, and as large ones."""
    if request.param == "large":
        monkeypatch.setattr(parquet_reader, "LARGE_PARQUET", -1)
        monkeypatch.setattr(parquet_reader, "_BATCH", 2)


@pytest.mark.usefixtures("parquet_size")
def test_parquet_gives_what_csv_gives() -> None:
    pa = arrow()
    from datetime import date, datetime
    from decimal import Decimal

    table = pa.table(
        {
            "whole": pa.array([1, None, 3], pa.int64()),
            "real": [0.5, None, float("inf")],
            "money": [Decimal("1.25"), Decimal("2.50"), None],
            "word": ["a", None, " b "],
            "digits": ["1", "2", "NA"],
            "truth": [True, False, None],
            "day": [date(2020, 1, 2), None, date(2021, 1, 2)],
            "moment": pa.array([datetime(2020, 1, 2, 3, 4), None, None], pa.timestamp("ns")),
            "night": pa.array([datetime(2020, 1, 2), None, datetime(2020, 1, 3, 0, 0, 1, 500000)], pa.timestamp("us")),
            "zone": pa.array([datetime(2020, 1, 2), None, None], pa.timestamp("s", tz="UTC")),
            "coded": pa.array(["x", "y", "x"]).dictionary_encode(),
            "coded_numbers": pa.array([5, 6, None]).dictionary_encode(),
            "nothing": pa.nulls(3),
            "several": [[1, 2], [], None],
        }
    )
    for name in ("t.parquet", "t.pq"):
        importlib.import_module("pyarrow.parquet").write_table(table, name)
        file = read_columns(Path(name))
        assert content(file) == {
            "whole": [1.0, None, 3.0],
            "real": [0.5, None, np.inf],
            "money": [1.25, 2.5, None],
            "word": ["a", None, "b"],
            "digits": [1.0, 2.0, None],
            "truth": ["true", "false", None],
            "day": ["2020-01-02", None, "2021-01-02"],
            "moment": ["2020-01-02 03:04:00", None, None],
            "night": ["2020-01-02", None, "2020-01-03 00:00:01.500000"],
            "zone": ["2020-01-02 00:00:00.000Z", None, None],
            "coded": ["x", "y", "x"],
            "coded_numbers": [5.0, 6.0, None],
            "nothing": [None, None, None],
        }
        assert len(file.notes) == 1
        assert file.notes[0].startswith("column 'several' left out: list<")
        assert file.place(0) == "row 1"
        cells = file.cells()
        last = ("3", "inf", "", " b ", "NA", "", "2021-01-02", "", "2020-01-03 00:00:01.500000", "", "x", "", "")
        assert [*map(tuple, cells)][2] == last
        assert len(cells) == 3


def test_cells_of_a_large_parquet_file_stay_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pa = arrow()
    monkeypatch.setattr(parquet_reader, "LARGE_PARQUET", -1)
    monkeypatch.setattr(parquet_reader, "_BATCH", 3)
    table = pa.table(
        {"a": [1, 2, None, 4, 5], "w": ["x", 'say "y"', None, "\u00e9", "z"], "b": [0.5, 1.0, 2.0, 1e-7, 3.0]}
    )
    write = importlib.import_module("pyarrow.parquet").write_table
    write(table, "t.parquet", row_group_size=4)
    cells = read_columns(Path("t.parquet")).cells()
    assert isinstance(cells, ParquetCells)
    rows = [("1", "x", "0.5"), ("2", 'say "y"', "1"), ("", "", "2"), ("4", "\u00e9", "1e-7"), ("5", "z", "3")]
    assert [*cells] == rows
    assert (cells[-2], cells[1:4], cells.column(1)) == (rows[3], rows[1:4], [row[1] for row in rows])
    for chosen in ([0, 1, 2], [2, 0], [1], [2]):
        part = cells.selected(chosen)
        assert [*part] == [tuple(row[k] for k in chosen) for row in rows]
        assert [*part.json_rows()] == [json.dumps([row[k] for k in chosen], ensure_ascii=False) for row in rows]
    assert cells.text_columns() == [1]
    with pytest.raises(IndexError):
        cells[5]
    write(table.slice(1), "t.parquet")
    with pytest.raises(InvalidValueError, match=r"t\.parquet was changed while it was read"):
        list(cells)


@pytest.mark.usefixtures("parquet_size")
def test_parquet_that_is_none() -> None:
    pa = arrow()
    for data in (b"", b"a,b\n1,2\n", b"PAR1 junk PAR1"):
        with pytest.raises(InvalidValueError, match=r"t\.parquet is not a Parquet file that can be read"):
            read(data, "t.parquet")
    write = importlib.import_module("pyarrow.parquet").write_table
    write(pa.table({"a": pa.array([], pa.int64())}), "t.parquet")
    with pytest.raises(InvalidValueError, match="holds no rows"):
        read_columns(Path("t.parquet"))
    write(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), "t.parquet")
    with pytest.raises(InvalidValueError, match="2 columns are named 'a'"):
        read_columns(Path("t.parquet"))


@pytest.mark.parametrize(
    ("names", "format"),
    [
        (("a.csv", "a.CSV.gz", "a.tsv", "a.tsv.gz", "a.txt"), "csv"),
        (("a.xlsx", "a.XLSM", "a.xls"), "excel"),
        (("a.jsonl", "a.ndjson.gz", "a.json"), "json"),
        (("a.parquet", "a.pq"), "parquet"),
        (("a.dat", "csv", "a.csv.zip", "a.gz"), None),
    ],
)
def test_the_ending_says_the_format(names: tuple[str, ...], format: str | None) -> None:
    for name in names:
        assert table_format(Path("folder.json", name)) == format
        assert without_ending(Path("folder", name)) == ("a" if format else name)


def naive_texts(values: list[str]) -> tuple[list[str], list[int]]:
    levels: list[str] = []
    codes = []
    for value in map(str.strip, values):
        if value not in levels and value not in MISSING:
            levels.append(value)
        codes.append(-1 if value in MISSING else levels.index(value))
    return levels, codes


@given(st.lists(st.one_of(st.sampled_from(["a", " a", "b", "", " ", "NA", "? ", "1", "01"]), st.text(max_size=2))))
def test_texts_are_numbered_as_they_appear(values: list[str]) -> None:
    found = as_texts(values)
    assert ([*found.levels], found.codes.tolist()) == naive_texts(values)


@given(
    st.lists(st.lists(st.sampled_from(["a", "1", "", "NA", 'x"y', "p\nq", ";"]), min_size=3, max_size=3), max_size=9),
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_blocks_do_not_change_a_table(rows: list[list[str]], block: int, shared: int) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([["one", "two", "three"], ["first", "2", "x"], *rows])
    whole = read(text.getvalue())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_reader, "BLOCK", block)
        patch.setattr(file_content, "_MOST_SHARED", shared)
        parts = read(text.getvalue())
    assert content(parts) == content(whole)
    assert cells(parts) == cells(whole) == [*map(tuple, [["first", "2", "x"], *rows])]


def test_blank_lines_and_wrong_rows_in_later_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_reader, "BLOCK", 2)
    file = read("\n\n\na,b\n1,2\n\n\n\n3,4\n")
    assert (content(file), file.place(1)) == ({"a": [1.0, 3.0], "b": [2.0, 4.0]}, "line 9")
    assert content(read("a\n1\n\n2\n\n\n3\n"))["a"] == [1.0, 2.0, 3.0]
    with pytest.raises(InvalidValueError, match="line 8: the number of cells is 3, and of column names 2"):
        read("a,b\n1,2\n1,2\n1,2\n\n1,2\n1,2\n1,2,3\n1,2\n")
    with pytest.raises(InvalidValueError, match="the first line holds numbers only"):
        read("1,2\n1,2,3\n")


def test_characters_of_any_width_and_parts_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_content, "_PART", 3)
    assert content(read("a,b\nsnail \U0001f40c,é\nи,1\n"))["a"] == ["snail \U0001f40c", "и"]
    # The last character is incomplete.
    file = read("a,b\nsnail,é".encode()[:-1])
    assert (content(file)["b"], len(file.notes)) == (["Ã"], 1)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "xlsx"])
def test_chunks_are_the_rows_of_the_file(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": f"00{k}", "n": str(k), "w": "xyz"[k % 3]} for k in range(7)]
    name = Path(f"t.{ending}")
    if ending == "xlsx":
        sheet = pytest.importorskip("openpyxl").Workbook()
        for row in [[*rows[0]], *([*row.values()] for row in rows)]:
            sheet.active.append(row)
        sheet.save(name)
    elif ending == "csv":
        name.write_text("\n".join(",".join(row) for row in [[*rows[0]], *(row.values() for row in rows)]))
    else:
        lines = [json.dumps(row) for row in rows]
        name.write_text("\n\n".join(lines) if ending == "jsonl" else f"[{', '.join(lines)}]")
    whole = read_columns(name)
    for large in (False, True):
        if large:
            monkeypatch.setattr(file_content, "_WHOLE_FILE", 0)
        parts = [*read_chunks(name, 3)]
        assert [len(part) for part in parts] == [3, 3, 1]
        assert {part.names for part in parts} == {("id", "n", "w")}
        assert [row for part in parts for row in cells(part)] == cells(whole) == [tuple(row.values()) for row in rows]
        assert plain(parts[1]["n"]) == [3.0, 4.0, 5.0]
        if ending != "csv":
            assert [part.place(k) for part in parts for k in range(len(part))] == [whole.place(k) for k in range(7)]


def test_chunks_of_what_is_not_a_table_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    if not thorough():
        monkeypatch.setattr(csv_reader, "_LONGEST_STREAMED", 2**18)
    wide = "a" * (csv_reader._LONGEST_STREAMED + 1)
    for written, message in (
        (b"id,n\n", "holds one line only"),
        (b"id,n\n1,2\n3,4,5\n", "row 2: the number of cells is 3, and of column names 2"),
        (b"id,n\n\xff\xfe,2\n", "UTF-8"),
        (f'id,n\n1,"{wide}"\n'.encode(), "cannot be read|field larger"),
    ):
        Path("t.csv").write_bytes(written)
        for large in (False, True):
            with monkeypatch.context() as patch:
                if large:
                    patch.setattr(file_content, "_WHOLE_FILE", 0)
                    with pytest.raises(InvalidValueError, match=message):
                        list(read_chunks(Path("t.csv"), 3))
                elif written.endswith(b"n\n"):
                    with pytest.raises(InvalidValueError, match=message):
                        list(read_chunks(Path("t.csv"), 3))
    # Decimal commas count in each part of a large file, too.
    monkeypatch.setattr(file_content, "_WHOLE_FILE", 0)
    Path("t.csv").write_text("id;n\n1;2,5\n2;3,25\n3;4,0\n")
    assert [plain(part["n"]) for part in read_chunks(Path("t.csv"), 2)] == [[2.5, 3.25], [4.0]]


@needs_data
def test_sms_messages_lose_no_line_to_their_quotes() -> None:
    source = (Path(DATA or "") / "text" / "sms_spam.tsv").read_bytes()
    file = read(b"label\tmessage\n" + source, "sms.tsv")
    assert len(file.columns[0]) == source.count(b"\n") == 5574
    assert set(content(file)["label"]) == {"ham", "spam"}


@needs_data
def test_lines_that_end_in_cr_and_have_no_names() -> None:
    path = Path(DATA or "") / "uci" / "htru2.csv"
    with pytest.raises(InvalidValueError, match="the first line holds numbers only"):
        read_columns(path)
    names = ",".join("abcdefghi").encode()
    file = read(names + b"\r" + path.read_bytes())
    assert len(file.columns) == 9
    assert len(file.columns[0]) == 17898


def test_numbers_as_texts() -> None:
    texts = as_texts(["7", "", " 8", "7"])
    assert (texts.levels, texts.codes.tolist()) == (("7", "8"), [0, -1, 1, 0])
    file = read("a,b\n007,x\n,y\n7,x\n")
    assert file.texts("a").levels == ("007", "7")
    assert file.texts("b").levels == ("x", "y")
