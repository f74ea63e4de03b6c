"""How far any number of people agree, against what is counted by hand."""

import itertools
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.project.events import Event, EventKind, Label
from suffice.project.state import ProjectState
from suffice.project.status_summary import Agreement, agreement
from tests.project.making_projects import CLASSES, about

Said = list[tuple[str, int, Label]]


def state_of(said: Said, size: int = 10) -> ProjectState:
    """What people said of which item, one after the other."""
    state = ProjectState(size)
    for seq, (person, item, label) in enumerate(said, start=1):
        state.apply(Event(EventKind.labelled, person, item, {"label": label}, seq=seq, at=float(seq)))
    return state


def test_where_nobody_labelled_the_same_there_is_nothing_to_say() -> None:
    assert agreement(ProjectState(3), about()) is None
    assert agreement(state_of([("ann", 0, "cat"), ("bob", 1, "cat")]), about()) is None


def test_classes_are_compared_beyond_chance() -> None:
    pairs = [("cat", "cat"), ("cat", "dog"), ("dog", "dog"), ("eel", "eel")]
    said: Said = [(name, k, pair[at]) for k, pair in enumerate(pairs) for at, name in enumerate(("ann", "bob"))]
    found = agreement(state_of(said), about())
    assert found is not None
    assert (found.both, found.same, found.difference) == (4, 3, None)
    # Of the 8 labels, 3 are cats, 3 dogs and 2 eels.
    assert found.alpha == pytest.approx(1.0 - (1 / 4) / ((64 - 9 - 9 - 4) / 56))
    low, alpha, high = found.low, found.alpha, found.high
    assert low is not None
    assert alpha is not None
    assert high is not None
    assert low < alpha < high


def test_numbers_are_compared_by_how_far_they_are_apart() -> None:
    said: Said = [("ann", 0, 1.0), ("bob", 0, 4.0), ("ann", 1, 2.5), ("bob", 1, 2.5)]
    found = agreement(state_of(said), about("regression"))
    assert found is not None
    assert (found.both, found.same, found.people, found.difference) == (2, 1, 2, 1.5)
    said += [("eve", 0, 2.5)]
    found = agreement(state_of(said), about("regression"))
    assert found is not None
    assert (found.both, found.same, found.people, found.difference) == (2, 1, 3, 1.0)


@given(st.lists(st.tuples(st.sampled_from(CLASSES), st.sampled_from(CLASSES)), min_size=1, max_size=8))
def test_of_two_people_it_does_not_matter_who_came_first(pairs: list[tuple[str, str]]) -> None:
    in_turn = [[("ann", k, one), ("bob", k, other)] for k, (one, other) in enumerate(pairs)]
    mixed = [turn[:: 1 if k % 2 else -1] for k, turn in enumerate(in_turn)]
    found, other = (agreement(state_of(list(itertools.chain(*each))), about()) for each in (in_turn, mixed))
    assert found is not None
    assert other is not None
    # The order of a sum may change its last digit.
    assert asdict(found) == pytest.approx(asdict(other), nan_ok=True)
    assert found.same == sum(one == other for one, other in pairs)


def test_a_third_opinion_counts_and_a_correction_does_not() -> None:
    state = state_of([("ann", 0, "cat"), ("bob", 0, "dog"), ("zoe", 0, "cat")])
    before = agreement(state, about())
    state.apply(Event(EventKind.corrected, "zoe", 0, {"label": "dog"}, seq=4))
    assert agreement(state, about()) == before
    assert before is not None
    assert (before.both, before.same, before.people) == (1, 0, 3)
    assert before.alpha == pytest.approx(0.0)


def test_without_different_labels_chance_is_not_known() -> None:
    state = state_of([("ann", 0, "cat"), ("bob", 0, "cat")])
    assert agreement(state, about()) == Agreement(1, 1, 2, None, None, None, None)


def test_what_was_undone_does_not_count() -> None:
    state = state_of([("ann", 0, "cat"), ("bob", 0, "dog")])
    state.apply(Event(EventKind.undone, "bob", 0, {"of": 2}, seq=3))
    assert agreement(state, about()) is None
