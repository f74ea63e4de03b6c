"""A project with people: requests sent twice, items lent to one person at a time, several threads and processes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from suffice.project import journal as journal_module
from suffice.project.create import open_project
from suffice.project.events import EventKind
from suffice.project.labelling_project import ConflictError, Project
from suffice.session.decision import Decision
from tests.project.decided import decision
from tests.project.making_projects import make


@pytest.fixture
def project(place: str) -> Iterator[Project]:
    with make(place) as project:
        yield project


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> "Clock":
    clock = Clock()
    monkeypatch.setattr(journal_module, "time", clock)
    return clock


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now


def kinds(project: Project) -> list[EventKind]:
    return [event.kind for event in project.events()]


# --- requests ---


@pytest.mark.parametrize("act", ["label", "skip", "correct", "undo"])
def test_what_is_sent_twice_under_one_name_is_written_once(project: Project, act: str) -> None:
    project.label(3, "cat", person="ann", request="first")
    if act == "skip":
        project.undo(person="ann")

    def send() -> Any:
        if act == "undo":
            return project.undo(person="ann", request="r")
        arguments = (3,) if act == "skip" else (3, "dog") if act == "correct" else (3, "cat")
        return getattr(project, act)(*arguments, person="bob", request="r")

    first = send()
    events = project.events()
    with open_project_of(project) as other:
        assert other.events() == events
    second = send()
    assert first._replace(repeated=True) == second
    assert not first.repeated
    assert project.events() == events
    # Also after something else has happened, and from another process.
    project.label(9, "eel", person="bob")
    assert send() == second


def open_project_of(project: Project) -> Project:
    """The same place, opened once more."""
    return Project(project.journal.database, project.size)


def test_a_label_sent_again_after_it_was_undone_stays_undone(project: Project) -> None:
    written = project.label(3, "cat", person="ann", request="r")
    project.undo(person="ann", request="u")
    assert project.label(3, "cat", person="ann", request="r") == (written.seq, 3, True)
    assert project.state().label_of(3) is None


def test_a_name_that_was_used_for_something_else_is_refused(project: Project) -> None:
    project.label(3, "cat", person="ann", request="r")
    before = project.events()
    with pytest.raises(ConflictError, match="the request 'r' was used before, for something else"):
        project.label(3, "dog", person="ann", request="r")
    others: list[Callable[[], Any]] = [
        lambda: project.label(4, "cat", person="ann", request="r"),
        lambda: project.label(3, "cat", person="bob", request="r"),
        lambda: project.skip(3, person="ann", request="r"),
        lambda: project.correct(3, "cat", person="ann", request="r"),
        lambda: project.undo(person="ann", request="r"),
    ]
    for send in others:
        with pytest.raises(ConflictError, match="was used before"):
            send()
    assert project.events() == before


def test_the_same_label_again_without_a_name_is_not_written_again(project: Project) -> None:
    first = project.label(3, "cat", person="ann")
    assert project.label(3, "cat", person="ann") == (first.seq, 3, True)
    with pytest.raises(ConflictError, match="ann has labelled this item as cat already; correct it"):
        project.label(3, "dog", person="ann")
    assert kinds(project) == [EventKind.made, EventKind.labelled]


# --- taking back ---


def test_what_is_undone_is_asked_first(project: Project) -> None:
    asked = [each.position for each in project.next("ann", 3)]
    project.label(asked[0], "cat", person="ann")
    project.label(asked[1], "cat", person="ann")
    assert project.undo(person="ann").position == asked[1]
    again = project.next("ann")
    assert [each.position for each in again] == [asked[1]]
    assert again[0].why == "taken back"
    assert project.undo(person="ann").position == asked[0]
    assert [each.position for each in project.next("ann", 3)] == asked
    with pytest.raises(ConflictError, match="there is nothing of ann to undo"):
        project.undo(person="ann")


def test_nobody_else_is_asked_for_what_is_taken_back(project: Project) -> None:
    item = project.next("ann")[0].position
    project.skip(item, person="ann")
    project.undo(person="ann")
    assert item not in [each.position for each in project.next("bob", 20)]


def test_who_takes_back_a_correction_is_not_asked_for_what_they_have_labelled(project: Project) -> None:
    project.label(3, "cat", person="ann")
    project.correct(3, "dog", person="ann")
    project.undo(person="ann")
    assert project.state().label_of(3) == "cat"
    # Neither a label nor a skip of it could be given, so asking would never end.
    assert 3 not in [each.position for each in project.next("ann", 20)]


def test_who_takes_back_a_correction_of_somebody_else_is_not_asked_either(project: Project) -> None:
    project.label(3, "cat", person="ann")
    project.correct(3, "dog", person="bob")
    project.undo(person="bob")
    assert 3 not in [each.position for each in project.next("bob", 20)]


def test_two_people_can_skip_the_same_item_and_each_takes_back_their_own(project: Project) -> None:
    project.label(1, "cat", person="bob")
    assert not project.skip(3, person="ann").repeated
    second = project.skip(3, person="bob")
    assert not second.repeated
    assert project.skip(3, person="bob") == (second.seq, 3, True)
    assert project.undo(person="bob").position == 3
    assert project.state().labels.is_skipped(3)
    assert project.state().label_of(1) == "cat"
    project.undo(person="ann")
    assert project.state().labels.is_open(3)


def test_who_skips_what_somebody_else_has_labelled_is_not_asked_for_a_second_opinion(place: str) -> None:
    with make(place, 3, overlap=1.0) as project:
        project.label(1, "cat", person="ann")
        assert project.next("bob")[0].position == 1
        assert not project.skip(1, person="bob").repeated
        assert 1 not in [each.position for each in project.next("bob", 3)]
        state = project.state()
        assert (state.label_of(1), state.n_labelled, state.n_skipped) == ("cat", 1, 0)
        # Somebody else may still be asked; and once nobody has a label for it, the skip is what is left.
        assert project.next("carol")[0].position == 1
        project.undo(person="ann")
        assert project.state().labels.is_skipped(1)


def test_what_cannot_be_done_is_refused_with_a_sentence(project: Project) -> None:
    with pytest.raises(ConflictError, match="this item has no label to correct; label it"):
        project.correct(3, "cat", person="ann")
    project.label(3, "cat", person="ann")
    with pytest.raises(ConflictError, match="ann has labelled this item; undo or correct that, it cannot be skipped"):
        project.skip(3, person="ann")
    assert kinds(project) == [EventKind.made, EventKind.labelled]


# --- advice ---


def decided(n_labelled: int, *, stop: bool) -> Decision:
    return decision(stop=stop, n_labelled=n_labelled, since=1 if stop else None, unlabelled=19)


def test_advice_is_written_once_and_withdrawn_once(project: Project) -> None:
    project.label(0, "cat", person="ann")
    assert not project.advise(decided(1, stop=False))
    assert not project.advise(decided(7, stop=True))
    assert project.advise(decided(1, stop=True))
    assert not project.advise(decided(1, stop=True))
    with open_project_of(project) as other:
        assert not other.advise(decided(1, stop=True))
        advice = other.state().advice
        assert advice is not None
        assert advice.n_labelled == 1
        assert advice.reason == (
            "You can stop now: about 12 % of the 19 unlabelled items are predicted wrong (estimate; probably 9 to "
            "16 %)."
        )
    assert project.advise(decided(1, stop=False))
    assert project.state().advice is None
    project.resume("ann")
    written = kinds(project)[2:]
    assert written == [EventKind.advised, EventKind.withdrawn, EventKind.resumed]


# --- leases ---


def test_an_item_is_lent_to_one_person_until_the_time_is_over(place: str, clock: Clock) -> None:
    with make(place, 3, lease=100.0) as project:
        mine = project.next("ann", 3)
        assert [each.until for each in mine] == [clock.now + 100.0] * 3
        assert project.next("bob") == []
        clock.now += 99.9
        assert project.next("bob") == []
        clock.now += 0.1
        theirs = project.next("bob", 3)
        assert {each.position for each in theirs} == {0, 1, 2}
        assert project.next("ann") == []
        assert set(project.state().assigned.valid_leases(clock.now)) == {0, 1, 2}
        # Who comes late may still answer; then nobody is asked any more.
        late = mine[0].position
        project.label(late, "cat", person="ann")
        assert late not in [each.position for each in project.next("bob", 3)]


def test_asking_again_gives_the_same_and_writes_nothing_until_half_the_time_is_over(place: str, clock: Clock) -> None:
    with make(place, lease=100.0) as project:
        mine = project.next("ann", 2)
        before = project.events()
        clock.now += 49.0
        assert [each[:2] for each in project.next("ann", 2)] == [each[:2] for each in mine]
        assert project.events() == before
        clock.now += 2.0
        renewed = project.next("ann", 1)
        assert [(each.position, each.until) for each in renewed] == [(mine[0].position, clock.now + 100.0)]
        # The one that was lent anew is still the first.
        assert project.next("ann", 1)[0].position == mine[0].position
        assert len(project.events()) == len(before) + 1
        clock.now += 60.0
        assert [each.position for each in project.next("ann", 1)] == [mine[0].position]


def test_the_queue_of_the_model_comes_first_without_what_others_have(tmp_path: Path) -> None:
    project = make(tmp_path / "queue.suffice", initial=1, random_share=0.0)
    project.label(7, "cat", person="bob")
    project.skip(8, person="bob")
    assert [each.position for each in project.next("bob", 1, queue=[9])] == [9]
    asked = project.next("ann", 3, queue=[7, 8, 9, 11, 11, 10])
    assert [each.position for each in asked[:2]] == [11, 10]
    assert asked[0].why == "the model is least sure of it"
    assert asked[2].why == "drawn at random"
    assert [each.random for each in asked] == [False, False, True]
    project.close()


def test_everything_is_asked_for_once(project: Project) -> None:
    seen = []
    while asked := project.next("ann"):
        seen.append(asked[0].position)
        project.label(seen[-1], "cat", person="ann")
    assert sorted(seen) == list(range(20))
    assert project.next("bob") == []


def test_a_share_of_the_items_is_asked_of_two(place: str) -> None:
    with make(place, 80, overlap=0.3) as project:
        for _ in range(80):
            project.label(project.next("ann")[0].position, "cat", person="ann")
        assert project.next("ann") == []
        second = []
        while asked := project.next("bob"):
            assert asked[0].why.startswith("a second opinion")
            second.append(asked[0].position)
            project.label(second[-1], "dog", person="bob")
        assert len(set(second)) == len(second)
        assert 12 <= len(second) <= 36
        # Two are enough, and the first label counts.
        assert project.next("carol") == []
        state = project.state()
        assert state.n_labelled == 80
        assert state.counts() == {"cat": 80}
        assert all(len(state.acts.opinions(item)) == 1 + (item in second) for item in range(80))


# --- what somebody takes back ---


def test_what_a_person_said_of_one_item_is_taken_back(project: Project, place: str) -> None:
    project.label(3, "cat", person="ann")
    project.label(3, "dog", person="bob")
    project.correct(3, "dog", person="ann")
    project.label(4, "dog", person="ann")
    project.skip(5, person="ann")
    assert project.take_back(3, person="ann") == 2
    assert project.state().label_of(3) == "dog"
    assert [act.person for act in project.state().acts.of_item(3)] == ["bob"]
    assert project.take_back(5, person="ann") == 1
    assert project.take_back(5, person="ann") == 0
    assert project.state().labels.is_open(5)
    assert project.state().label_of(4) == "dog"
    # Nobody is asked for it at once, and the newest act that stands can still be undone.
    assert project.state().assigned.of_person("ann") == []
    assert project.undo(person="ann").position == 4
    with open_project(place) as again:
        assert [again.state().label_of(item) for item in (3, 4, 5)] == ["dog", None, None]
    with pytest.raises(ValueError, match="there is no item"):
        project.take_back(10_000, person="ann")
