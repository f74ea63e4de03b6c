"""The number of unlabelled items is that of their status, after any sequence of changes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.session.session_labels import LABELLED, SAMPLED, SKIPPED, UNLABELLED, SessionLabels

SIZE = 12
ITEMS = st.lists(st.integers(0, SIZE - 1), max_size=6)
CHANGES: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.just("mark"), ITEMS, st.sampled_from([UNLABELLED, LABELLED, SKIPPED, SAMPLED])),
    st.tuples(st.just("add"), ITEMS, st.just(0)),
    st.tuples(st.just("add_checked"), ITEMS, st.just(0)),
    st.tuples(st.just("replace"), ITEMS, st.just(0)),
    st.tuples(st.just("extend"), st.just([]), st.integers(0, 3)),
)


def change(labels: SessionLabels, how: str, items: list[int], number: int) -> None:
    if how == "mark":
        labels.mark(items, number)
    elif how == "add":
        labels.add(items, [1] * len(items))
    elif how == "add_checked":
        labels.add_checked(dict.fromkeys(items, 1), items)
    elif how == "replace":
        labels.replace(dict.fromkeys(items, 1), [])
    else:
        labels.extend(number)


@given(st.lists(CHANGES, max_size=12))
def test_left_is_the_number_of_unlabelled_items(changes: list[tuple[str, list[int], int]]) -> None:
    labels = SessionLabels(SIZE)
    for how, items, number in changes:
        change(labels, how, items, number)
        assert labels.left == len(labels.left_items) == np.count_nonzero(labels.status == UNLABELLED)


@pytest.mark.parametrize("repeated", [[3, 3], [3, 4, 3]])
def test_an_item_that_is_named_twice_counts_once(repeated: list[int]) -> None:
    labels = SessionLabels(SIZE)
    labels.mark(repeated, SKIPPED)
    assert labels.left == SIZE - len(set(repeated))
    labels.mark(repeated, UNLABELLED)
    assert labels.left == SIZE
