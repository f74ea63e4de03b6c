"""Cells come as the file has them, whatever is in them, and can be stored and sent."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError
from suffice.project.item_features import READ
from suffice.project.read_items import ReadingOptions, clean, clean_cells, read_items
from suffice.tables.file_reader import read_columns
from suffice.tables.table_cells import CellColumns

AB = ReadingOptions(classes=("a", "b"))
CELL = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=2, max_size=8), st.sampled_from(",;\t|"))
@example([("=1+1", "007", "NaN"), ("😀🇩🇪", "'; DROP TABLE items; --", "\ufeff")], ",")
def test_any_cells_come_back(rows: list[tuple[str, str, str]], separator: str) -> None:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=separator, quoting=csv.QUOTE_ALL)
    writer.writerows([("x", "y", "z", "key"), *((*row, k) for k, row in enumerate(rows))])
    path = Path("t.csv")
    path.write_bytes(stream.getvalue().encode())
    items = read_items(path, AB)
    assert [*items.cells] == [(*map(clean, row), str(k)) for k, row in enumerate(rows)]
    assert items.X.shape[0] == len(rows)


ANY = st.text(st.characters(), max_size=20)


@given(ANY)
def test_a_clean_text_can_be_stored_and_sent(text: str) -> None:
    cleaned = clean(text)
    assert len(cleaned) == len(text)
    assert json.loads(json.dumps(cleaned, ensure_ascii=False).encode("utf-8")) == cleaned
    assert "\0" not in cleaned
    assert clean(cleaned) == cleaned
    kept = [a for a, b in zip(text, cleaned, strict=True) if a == b]
    assert len(kept) + sum(ord(a) < 0xA0 or 0xD800 <= ord(a) < 0xE000 for a in text if a not in kept) == len(text)


def test_what_is_replaced() -> None:
    assert clean("tab\tline\r\nend") == "tab\tline\r\nend"
    assert clean("\x00\x1b[31m\x7f") == "\ufffd\ufffd[31m\ufffd"
    assert clean("\ud83d") == "\ufffd"
    assert clean("\x80\x81") == "€\ufffd"
    rows = clean_cells(CellColumns.of_rows([("a", "b"), ("c\x07", "d")]))
    assert [*rows] == [("a", "b"), ("c\ufffd", "d")]


def test_windows_quotes_are_shown() -> None:
    Path("t.csv").write_bytes(b"text,n\n\x93hello\x94,1\nK\xf6ln,2\n")
    items = read_items(Path("t.csv"), AB)
    assert [cells[0] for cells in items.cells] == ["\u201chello\u201d", "Köln"]
    assert items.notes[0] == "the file is not in UTF-8; it was read as Windows-1252"


def test_odd_names_of_columns() -> None:
    names = ['"; DROP TABLE events; --', "😀", "<script>", "a\x07b", "", "select"]
    with Path("t.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([names, [1] * 6, [2] * 6, [4] * 6])
    items = read_items(Path("t.csv"), AB)
    assert items.columns == ('"; DROP TABLE events; --', "😀", "<script>", "a\ufffdb", "column 5", "select")
    named = read_items(Path("t.csv"), ReadingOptions(target='"; DROP TABLE events; --', task="regression"))
    assert named.labels == {0: 1.0, 1: 2.0, 2: 4.0}


@pytest.mark.parametrize(("separator", "ending"), [(",", ""), (";", "\n"), ("\t", "")])
@pytest.mark.parametrize("megabytes", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_megabytes_in_a_cell(separator: str, ending: str, megabytes: int) -> None:
    long = "word " * (megabytes * 2**20 // 5) + ending
    texts = [f"here are words number{k % 5}" for k in range(12)]
    texts[7] = long
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=separator)
    writer.writerows([("n", "text"), *enumerate(texts)])
    Path("t.csv").write_bytes(stream.getvalue().encode())
    before = csv.field_size_limit()
    items = read_items(Path("t.csv"), ReadingOptions(task="regression", text="text"))
    assert csv.field_size_limit() == before == 131072
    assert len(items) == 12
    assert items.cells[7] == ("7", long)
    said = "column 'text': line 9 is longer than 100,000 characters; the model reads the first 100,000"
    assert items.notes[0] == said


def test_the_model_reads_the_beginning_of_a_long_text() -> None:
    rows = [("same words here " * 20_000 + end, k) for k, end in enumerate(["alpha", "beta", "gamma"])]
    rows += [("other things there", 3), ("other things where", 4), ("same things here", 5)]
    with Path("t.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([("text", "n"), *rows])
    items = read_items(Path("t.csv"), AB)
    assert READ == 100_000
    assert items.notes[0].startswith("column 'text': line 2 and 2 others are longer than 100,000 characters")
    assert (items.X[0, :-1] == items.X[1, :-1]).all()
    assert items.cells[1][0].endswith("beta")


def test_a_quote_that_never_closes_in_a_large_file_is_an_error() -> None:
    Path("t.csv").write_text('a,b\n1,x\n2,"y\n' + "word word\n" * 20_000)
    before = csv.field_size_limit()
    with pytest.raises(InvalidValueError, match=r"line 3: a field larger than 131072 .* never closed\?"):
        read_items(Path("t.csv"), AB)
    assert csv.field_size_limit() == before


def test_lines_are_counted_through_long_cells() -> None:
    Path("t.csv").write_text('a,b\n1,"' + "word\n" * 40_000 + '"\n2,x\n')
    file = read_columns(Path("t.csv"))
    assert [file.place(row) for row in range(2)] == ["line 2", "line 40003"]
    assert [len(cells[1]) for cells in file.cells()] == [200_000, 1]
