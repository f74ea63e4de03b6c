"""Titles above the names of the columns of a CSV file are left out, and what is no title is read as before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError
from tests.tables.table_contents import content, read

TABLE = ["id{0}name{0}size", "1{0}Ann{0}3", "2{0}Bob{0}4"]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize(
    ("above", "titles"),
    [
        (["Sales 2026"], "'Sales 2026'"),
        (["Sales 2026{0}{0}"], "'Sales 2026'"),
        (["Sales 2026", "", "as of May"], "'Sales 2026', 'as of May'"),
    ],
)
def test_titles_are_left_out(separator: str, end: str, start: str, above: list[str], titles: str) -> None:
    lines = [line.format(separator) for line in [*above, *TABLE]]
    table = read(start + end.join(lines))
    assert content(table) == {"id": [1.0, 2.0], "name": ["Ann", "Bob"], "size": [3.0, 4.0]}
    names = len(above) + 1
    assert table.notes == (f"line {names} names the columns; what stands above it was left out: {titles}",)
    assert [table.place(row) for row in range(2)] == [f"line {names + 1}", f"line {names + 2}"]


def test_a_title_may_contain_another_separator_and_a_line_end() -> None:
    assert read("Sales, of 2026\nid;name;size\n1;Ann;3\n").names == ("id", "name", "size")
    table = read('"Sales\nof 2026";;\nid;name;size\n1;Ann;3\n')
    assert (table.names, table.place(0)) == (("id", "name", "size"), "line 4")
    assert table.notes[0].endswith("left out: 'Sales of 2026'")


@pytest.mark.parametrize(
    ("text", "names", "size"),
    [
        # The row with several cells has a number.
        ("text;;\na;1;b\nc;2;d\n", ("text", "column 2", "column 3"), 2),
        # The rows below have one cell.
        ("text;;\na;b;c\nd;;\n", ("text", "column 2", "column 3"), 2),
        # Two columns, of which one has no name.
        ("text;\na;b\nc;d\n", ("text", "column 2"), 2),
        # Names alone.
        ("text;;\na;b;c\n", ("text", "column 2", "column 3"), 1),
    ],
)
def test_what_is_no_title(text: str, names: tuple[str, ...], size: int) -> None:
    table = read(text)
    assert (table.names, len(table), table.notes) == (names, size, ())


def test_sentences_below_a_name_are_not_names() -> None:
    with pytest.raises(InvalidValueError, match="line 2: the number of cells is 3, and of column names 1"):
        read("text\nhello, world, again\nfoo, bar, baz\n")


@given(
    st.lists(st.sampled_from(["Sales", "as of May", "", ";;"]), max_size=8),
    st.integers(min_value=1, max_value=60),
)
def test_a_table_is_the_same_with_and_without_titles(above: list[str], rows: int) -> None:
    plain = "\n".join(["id;name;size", *(f"{k};Ann;{k + 1}" for k in range(rows))])
    expected, table = read(plain), read("\n".join([*above, plain]))
    filled = any(line.strip(";") for line in above)
    if filled or not any(above):
        assert content(table) == content(expected)
        assert len(table.notes) == filled
        assert table.place(rows - 1) == f"line {len(above) + rows + 1}"
