"""Types of the cells of final files: numbers in columns of texts, and the types of a Parquet file."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.tables.file_writer import Column
from suffice.tables.final_writer import encoded_final
from suffice.tables.typed_cells import extended_parquet, parquet_cells, typed_chunks, with_number_columns


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "-20", "NA", ""], "count"),
        (["1", " 2.5", "1e-3"], "number"),
        (["1", "007"], "text"),
        (["1_000"], "text"),
        (["12345678901234567890"], "text"),
        (["0.12345678901234567890"], "text"),
        (["", "NA"], "text"),
        (["true", "false"], "text"),
        ([None, "x"], "text"),
        (["inf"], "text"),
    ],
)
def test_a_column_of_numbers(cells: list[Any], kind: str) -> None:
    (column,) = with_number_columns([Column("a")], [[(cell,) for cell in cells[:1]], [(cell,) for cell in cells[1:]]])
    assert column.kind == kind


@given(st.lists(st.one_of(st.integers(-(10**18) + 1, 10**18 - 1).map(str), st.just("")), min_size=1))
def test_whole_numbers_keep_their_digits(cells: list[str]) -> None:
    rows = [(cell,) for cell in cells]
    columns = with_number_columns([Column("a")], [rows])
    (typed,) = typed_chunks(columns, [rows])
    assert ["" if cell is None else str(cell) for (cell,) in typed] == cells


def test_missing_cells_of_json_lines_are_null() -> None:
    rows = [("", "1", "x"), ("b", "NA", None)]
    columns = with_number_columns([Column("a"), Column("b"), Column("label")], [rows])
    lines = encoded_final(columns, [rows], "jsonl", added=1).decode().splitlines()
    assert [tuple(json.loads(line).values()) for line in lines] == [(None, 1, "x"), ("b", None, None)]


def test_the_types_of_a_parquet_file(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table(
        {
            "whole": arrow.array([1, None], arrow.int32()),
            "flag": [True, None],
            "number": arrow.array([0.5, float("nan")], arrow.float32()),
            "day": arrow.array([0, None], arrow.date32()),
            "kind": arrow.array(["a", None]).dictionary_encode(),
            "list": [[1], [2]],
        }
    )
    parquet.write_table(table, tmp_path / "t.parquet")
    names = ["whole", "flag", "number", "day", "kind"]
    assert [*zip(*parquet_cells(tmp_path / "t.parquet", names), strict=True)] == [
        (1, True, 0.5, "1970-01-01", "a"),
        (None, None, None, None, None),
    ]
    added = [Column("label"), Column("probability", "number")]
    content = extended_parquet(tmp_path / "t.parquet", names, added, [("yes", None), (None, 0.5)])
    found = parquet.read_table(io.BytesIO(content))
    assert found.select(names).schema == table.select(names).schema
    assert found["whole"].to_pylist() == [1, None]
    assert found["label"].to_pylist() == ["yes", None]
    assert found["probability"].to_pylist() == [None, 0.5]
