"""The state of a project is a replay of its journal, and what a plain telling of the rules comes to."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.project import journal as journal_module
from suffice.project.events import Event, EventKind
from suffice.project.labelling_project import ConflictError, Project
from suffice.project.state import Advice, ProjectState
from suffice.project.storage import sa
from tests.project.making_projects import CLASSES, make, picture, replayed
from tests.project.naive_project import NaiveProject, RefusedError
from tests.thoroughness import examples

SIZE = 4
LEASE = 100.0
PEOPLE = ("ann", "bob", "Zoë")

ITEMS = st.integers(0, SIZE - 1)
STEPS = st.tuples(
    st.sampled_from(["next", "next", "label", "label", "label", "skip", "correct", "undo", "undo"]),
    st.sampled_from(PEOPLE),
    ITEMS,
    st.sampled_from(CLASSES),
    # Seconds that pass: leases run half out, and out.
    st.sampled_from([0.25, 1.0, 30.0, 60.0, 150.0]),
)


class Clock:
    """A clock that is told the time."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(journal_module, "time", clock)
    return clock


def rows(project: Project) -> list[Any]:
    """The journal as it lies in the database."""
    with project.journal.database.reading() as connection:
        return [tuple(row) for row in connection.execute(sa.text("SELECT * FROM events ORDER BY seq"))]


def emptied(project: Project) -> Project:
    """The same project as if it had just been made."""
    with project.journal.database.exclusive() as connection:
        connection.execute(sa.text("DELETE FROM events WHERE seq > 1"))
    return Project(project.journal.database, project.size)


def take(project: Project, naive: NaiveProject, step: tuple[str, str, int, str, float], clock: Clock) -> None:
    """Do one thing in the project and in its plain telling."""
    kind, person, item, label, seconds = step
    clock.now += seconds
    if kind == "next":
        n = 1 + item % 3
        asked = project.next(person, n, queue=[item])
        # Whether the model has started, and which item is open, is as it was before.
        naive.drew([(each.position, each.random) for each in asked if each.random is not None], [item])
        naive.asked(person, [(each.position, each.until) for each in asked], n, clock.now)
        return
    try:
        if kind == "undo":
            position: int | None = naive.undo(person, clock.now)
            new = True
        else:
            position = item
            arguments = (person, item) if kind == "skip" else (person, item, label)
            new = getattr(naive, kind)(*arguments, clock.now)
    except RefusedError:
        with pytest.raises(ConflictError):
            do(project, kind, person, item, label)
        return
    receipt = do(project, kind, person, item, label)
    assert (receipt.position, receipt.repeated) == (position, not new)


def do(project: Project, kind: str, person: str, item: int, label: str) -> Any:
    if kind == "undo":
        return project.undo(person=person)
    if kind == "skip":
        return project.skip(item, person=person)
    return getattr(project, kind)(item, label, person=person)


@pytest.fixture
def used(place: str) -> Iterator[Project]:
    with make(place, SIZE, lease=LEASE, initial=2, random_share=0.4) as project:
        sa.event.listen(project.journal.database._engine, "checkout", hurry)
        yield project


def hurry(connection: Any, *_: Any) -> None:
    """What follows is about the rules, not about the disk."""
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA synchronous=OFF")
    else:
        connection.execute("SET synchronous_commit TO off")


def test_any_course_of_events_is_what_the_rules_say_and_what_a_replay_gives(used: Project, clock: Clock) -> None:
    @examples(100 if used.journal.database.file else 40)
    @given(st.lists(STEPS, min_size=10, max_size=40))
    def check(steps: list[tuple[str, str, int, str, float]]) -> None:
        project, naive = emptied(used), NaiveProject(SIZE, LEASE, initial=2, share=0.4)
        before = rows(project)
        for step in steps:
            take(project, naive, step, clock)
            live = picture(project.state(), SIZE, clock.now)
            expected = naive.picture(clock.now)
            assert {name: live[name] for name in expected} == expected
            after = rows(project)
            assert after[: len(before)] == before
            before = after
        events = project.events()
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        again = picture(replayed(events, SIZE), SIZE, clock.now)
        assert again == live
        fresh = Project(used.journal.database, SIZE)
        assert picture(fresh.state(), SIZE, clock.now) == live

    check()


def event(seq: int, kind: EventKind, person: str = "", item: int | None = None, **data: Any) -> Event:
    return Event(kind, person, item, data, seq=seq, at=float(seq))


def test_advice_stands_until_it_is_withdrawn() -> None:
    state = ProjectState(3)
    state.apply(event(1, EventKind.advised, n_labelled=7, reason="enough"))
    assert state.advice == Advice(7, "enough", 1.0)
    state.apply(event(2, EventKind.labelled, "ann", 0, label="cat"))
    state.apply(event(3, EventKind.resumed, "ann"))
    assert state.advice == Advice(7, "enough", 1.0)
    state.apply(event(4, EventKind.withdrawn, n_labelled=8, reason="more"))
    assert state.advice is None


def test_a_correction_outlives_the_label_that_it_corrects() -> None:
    state = ProjectState(3)
    state.apply(event(1, EventKind.labelled, "ann", 0, label="cat"))
    state.apply(event(2, EventKind.corrected, "bob", 0, label="dog"))
    state.apply(event(3, EventKind.undone, "ann", 0, of=1))
    assert state.label_of(0) == "dog"
    assert state.n_labelled == 1
    assert state.acts.opinions(0) == ()
    assert state.labelled()[0].corrected


def test_an_item_keeps_its_place_in_the_order_when_it_is_corrected() -> None:
    state = ProjectState(3)
    for k in range(3):
        state.apply(event(k + 1, EventKind.labelled, "ann", k, label="cat"))
    state.apply(event(4, EventKind.corrected, "ann", 0, label="eel"))
    assert [answer.item for answer in state.answers()] == [0, 1, 2]
    assert state.counts() == {"cat": 2, "eel": 1}


def test_two_labels_of_one_person_for_one_item_are_taken_back_one_by_one() -> None:
    # An older layout could write what was sent twice.
    state = ProjectState(2)
    state.apply(event(1, EventKind.labelled, "ann", 1, label="cat"))
    state.apply(event(2, EventKind.labelled, "ann", 1, label="cat"))
    assert state.n_labelled == 1
    newest = state.acts.newest_of("ann")
    assert newest is not None
    assert newest.seq == 2
    assert not state.acts.can_answer_after_undo(newest)
    state.apply(event(3, EventKind.undone, "ann", 1, of=2))
    assert state.label_of(1) == "cat"
    state.apply(event(4, EventKind.undone, "ann", 1, of=1))
    assert state.labels.is_open(1)
    assert state.people["ann"].labels == 0
