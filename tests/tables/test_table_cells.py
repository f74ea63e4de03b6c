"""The cells of a table by row, by column and as JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.tables.table_cells import CellColumns

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(TEXT, min_size=width, max_size=width), max_size=6)))
def test_cells_are_those_of_the_rows(rows: list[list[str]]) -> None:
    cells = CellColumns.of_rows(rows)
    assert len(cells) == len(rows)
    assert [*map(list, cells)] == rows
    assert [list(cells[k]) for k in range(-len(rows), 0)] == rows
    assert [*map(list, cells[1:5:2])] == rows[1:5:2]
    assert [*cells.json_rows()] == [json.dumps(row, ensure_ascii=False) for row in rows]
    for k in range(len(rows[0]) if rows else 0):
        assert cells.column(k) == [row[k] for row in rows]
        assert [*cells.selected([k, 0])] == [(row[k], row[0]) for row in rows]


def test_rows_without_cells_are_counted() -> None:
    cells = CellColumns([["a", "b"]]).selected([])
    assert [*cells] == [(), ()] == cells[:]
    assert [*cells.json_rows()] == ["[]", "[]"]
    assert cells[1] == ()
    with pytest.raises(IndexError):
        cells[2]


def test_cells_are_the_same_object_unless_one_changes() -> None:
    cells = CellColumns([["a", "b"], ["c", "d"]])
    assert cells.changed(lambda column: column) is cells
    changed = cells.changed(lambda column: [*map(str.upper, column)] if "c" in column else column)
    assert [*changed] == [("a", "C"), ("b", "D")]
    assert changed.column(0) is cells.column(0)
