"""Long texts, items and curves, made short."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.presentation.text_format import LONGEST_SUMMARY, item_summary, shortened, thinned_positions


@given(st.text(), st.integers(2, 50))
def test_a_shortened_text_is_one_line_of_at_most_so_many_characters(text: str, most: int) -> None:
    line = shortened(text, most)
    assert len(line) <= most
    assert line == " ".join(line.split())
    if line != " ".join(text.split()):
        assert line.endswith("…")


def test_an_item_is_its_text_or_its_cells() -> None:
    cells = [("subject", "An  offer"), ("empty", ""), ("body", "Buy\nnow")]
    assert item_summary(cells, "body") == "Buy now"
    assert item_summary(cells, None) == "subject: An offer, body: Buy now"
    assert item_summary(cells, "not there") == "subject: An offer, body: Buy now"
    assert item_summary([("body", "")], "body") == ""
    assert item_summary([], None) == ""


@pytest.mark.parametrize("cells", [[("body", "x" * 1_000_000)], [(f"column {k}", "x" * 9) for k in range(10_000)]])
@pytest.mark.parametrize("main", ["body", None])
def test_a_large_item_is_cut(cells: list[tuple[str, str]], main: str | None) -> None:
    line = item_summary(cells, main)
    assert LONGEST_SUMMARY - 1 <= len(line) <= LONGEST_SUMMARY
    assert line.endswith("…")


@given(st.lists(st.floats(-1e9, 1e9), max_size=300), st.integers(4, 60))
def test_a_thinned_curve_keeps_its_ends_and_extremes(values: list[float], most: int) -> None:
    kept = thinned_positions(values, most)
    assert len(kept) <= most
    assert kept == sorted(set(kept))
    if len(values) <= most:
        assert kept == list(range(len(values)))
    else:
        assert {0, len(values) - 1} <= set(kept)
        assert {min(values), max(values)} <= set(np.asarray(values)[kept])
