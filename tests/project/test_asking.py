"""Who is asked for what: nothing that is with somebody else, nothing that is done, and not the same twice."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from suffice.project.assignment import (
    AGAIN,
    AT_FIRST,
    AT_RANDOM,
    BY_MODEL,
    SECOND_OPINION,
    TO_ESTIMATE,
    Assignment,
    AssignmentRequest,
    choose,
    wants_second,
)
from suffice.project.events import Event, EventKind
from suffice.project.state import ProjectState
from tests.project.making_projects import about

SIZE = 12
NOW = 1000.0

ITEMS = st.integers(0, SIZE - 1)
PEOPLE = st.sampled_from(["ann", "bob", "carol"])
LEASES = st.dictionaries(ITEMS, st.tuples(PEOPLE, st.floats(900.0, 1600.0)))
LABELS = st.lists(st.tuples(PEOPLE, ITEMS), unique=True)


def standing(
    labels: list[tuple[str, int]], leases: dict[int, tuple[str, float]], skipped: frozenset[int] = frozenset()
) -> ProjectState:
    """A state with labels, skips and leases, in this order."""
    state = ProjectState(SIZE)
    events = [Event(EventKind.labelled, person, item, {"label": "cat"}) for person, item in labels]
    events += [Event(EventKind.skipped, "dan", item) for item in sorted(skipped - {item for _, item in labels})]
    events += [
        Event(EventKind.asked, person, item, {"until": until, "why": ""}) for item, (person, until) in leases.items()
    ]
    for k, each in enumerate(events):
        state.apply(Event(each.kind, each.person, each.item, each.data, seq=k + 1, at=500.0))
    return state


def asked_for(
    state: ProjectState, *, n: int = SIZE, overlap: float = 0.0, share: float = 0.2, queue: tuple[int, ...] = ()
) -> list[Assignment]:
    settings = about(overlap=overlap, lease=600.0, initial=3, random_share=share)
    return choose(state, settings, AssignmentRequest("ann", n, queue, np.arange(SIZE), NOW))


@given(
    LABELS,
    LEASES,
    st.frozensets(ITEMS),
    st.integers(1, SIZE),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([0.0, 0.2, 0.35, 1.0]),
    st.lists(ITEMS),
)
def test_what_is_asked_for_is_this_persons_to_answer(
    labels: list[tuple[str, int]],
    leases: dict[int, tuple[str, float]],
    skipped: frozenset[int],
    n: int,
    overlap: float,
    share: float,
    queue: list[int],
) -> None:
    state = standing(labels, leases, skipped)
    asked = asked_for(state, n=n, overlap=overlap, share=share, queue=tuple(queue))
    positions = [each.position for each in asked]
    assert len(set(positions)) == len(positions) <= n
    mine = [item for item, (person, until) in leases.items() if person == "ann" and until > NOW]
    assert positions[: len(mine)] == mine[:n]
    others = {item for item, (person, until) in leases.items() if person != "ann" and until > NOW}
    new = random = 0
    for each in asked[len(mine) :]:
        said = {person for person, item in labels if item == each.position}
        assert each.position not in others
        assert each.new
        assert each.until == NOW + 600.0
        if said:
            assert (each.why, each.random) == (SECOND_OPINION, None)
            assert len(said) == 1
            assert "ann" not in said
            assert wants_second(about(overlap=overlap), each.position)
        else:
            assert each.position not in skipped
            turn = random + 1e-9 < share * (new + 1)
            if state.n_labelled < 3:
                assert (each.why, each.random) == (AT_FIRST, True)
            elif turn:
                assert (each.why, each.random) == (TO_ESTIMATE, True)
            else:
                chosen = each.position in queue
                assert (each.why, each.random) == ((BY_MODEL, False) if chosen else (AT_RANDOM, True))
            new, random = new + 1, random + bool(each.random)
    done = {item for _, item in labels} | skipped | others
    if len(asked) < n:
        # Whatever is open and with nobody was asked for.
        assert set(range(SIZE)) - done <= set(positions)


def test_second_opinions_come_before_new_items() -> None:
    state = standing([("bob", 3), ("ann", 4), ("bob", 5), ("carol", 5)], {})
    assert [each.position for each in asked_for(state, n=2, overlap=1.0)] == [3, 0]


def test_no_second_opinion_where_the_label_was_corrected() -> None:
    state = standing([("bob", 3)], {})
    state.apply(Event(EventKind.corrected, "bob", 3, {"label": "dog"}, seq=9))
    assert 3 not in [each.position for each in asked_for(state, overlap=1.0)]


@given(st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
def test_the_share_of_second_opinions_is_about_what_was_asked_for(seed: int, overlap: float) -> None:
    settings = about(seed=seed, overlap=overlap)
    share = np.mean([wants_second(settings, item) for item in range(2000)])
    assert abs(share - overlap) < 0.07


def test_a_lease_without_a_reason_gets_one() -> None:
    asked = asked_for(standing([], {2: ("ann", NOW + 500.0)}), n=1)
    assert asked == [Assignment(2, NOW + 500.0, AGAIN, new=False)]
