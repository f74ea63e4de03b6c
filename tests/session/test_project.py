"""A project with people: requests sent twice, items lent to one person at a time, several threads and processes."""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.criteria import Verdict
from suffice.errors import InvalidValueError, SufficeError
from suffice.session import project as project_module
from suffice.session.events import EventKind
from suffice.session.making import create_project, has_project, open_project
from suffice.session.project import ConflictError, Project

sys.path.append(str(Path(__file__).parent))
from making_projects import CLASSES, COLUMNS, about, make, picture, replayed, some_items
from project_workers import begin, finish, start

pytest_plugins = ["project_places"]


@pytest.fixture
def project(place: str) -> Iterator[Project]:
    with make(place) as project:
        yield project


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Project]:
    """In a file: for what is decided before the place is looked at."""
    with make(tmp_path / "plain.suffice") as project:
        yield project


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> "Clock":
    clock = Clock()
    monkeypatch.setattr(project_module, "time", clock)
    return clock


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now


def kinds(project: Project) -> list[EventKind]:
    return [event.kind for event in project.events()]


# --- what was made is there ---


def test_a_project_is_there_when_it_is_opened_again(place: str) -> None:
    assert not has_project(place)
    items = some_items(50, {3: "dog", 7: "cat"})
    with create_project(place, about(overlap=0.25, notes=("a", "b")), items, person="ann") as made:
        assert (made.size, made.state().n_labelled) == (50, 2)
    assert has_project(place)
    with open_project(place) as project:
        assert project.settings == about(overlap=0.25, notes=("a", "b"))
        assert project.size == 50
        assert np.array_equal(project.X, items.X)
        assert [project.item(k).id for k in (0, 49)] == ["id-0", "id-49"]
        assert project.item(8).cells == tuple(zip(COLUMNS, items.cells[8], strict=True))
        assert [item.position for item in project.items([5, 2, 5])] == [5, 2, 5]
        state = project.state()
        assert [state.label_of(k) for k in (3, 7, 0)] == ["dog", "cat", None]
        assert [(row.person, row.label) for row in state.labelled()] == [("pets.csv", "dog"), ("pets.csv", "cat")]
        assert state.made is not None
        assert state.made.person == "ann"


def test_labels_of_the_file_are_checked_before_anything_is_made(place: str) -> None:
    with pytest.raises(InvalidValueError, match="'horse' is none of the classes"):
        make(place, 5, labels={2: "horse"})
    assert not has_project(place)


def test_a_project_without_items_is_refused(place: str) -> None:
    with pytest.raises(InvalidValueError, match="at least one item"):
        make(place, 0)
    assert not has_project(place)


def test_there_is_one_project_in_a_place(place: str) -> None:
    make(place, 5, labels={0: "cat"}).close()
    with pytest.raises(ConflictError, match=r"there is a project in .* already"):
        make(place, 9)
    with open_project(place) as project:
        assert (project.size, project.state().n_labelled) == (5, 1)


@pytest.mark.parametrize("rows", [1, 2047, 2049])
def test_features_come_back_to_the_last_bit(rows: int, tmp_path: Path) -> None:
    items = some_items(rows)
    with create_project(tmp_path / "x.suffice", about(), items) as project:
        assert project.X.dtype == np.float64
        assert project.X.tobytes() == items.X.tobytes()


def test_wide_features_are_kept_in_many_blocks(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.session.contents._BLOCK", 100)
    items = some_items(23)
    with create_project(place, about(), items) as project:
        assert np.array_equal(project.X, items.X)


def test_a_hundred_thousand_items(place: str) -> None:
    n = 100_000
    with make(place, n, labels={5: "cat"}) as project:
        assert project.X.shape == (n, 3)
        assert project.item(n - 1).id == f"id-{n - 1}"
        assert len(project.items(range(0, n, 9))) == len(range(0, n, 9))
        first = project.next("ann", 3)
        project.label(first[0].position, "dog", person="ann")
        assert project.state().left == n - 2
    with open_project(place) as project:
        assert project.size == n
        assert project.next("ann", 2) == [each._replace(new=False) for each in first[1:]]


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
    return Project(project._database, project.size)


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
    with pytest.raises(ConflictError, match="ann has labelled item 3 as cat already; correct it"):
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
    assert project.state().is_skipped(3)
    assert project.state().label_of(1) == "cat"
    project.undo(person="ann")
    assert project.state().is_open(3)


def test_what_cannot_be_done_is_refused_with_a_sentence(project: Project) -> None:
    with pytest.raises(ConflictError, match="item 3 has no label to correct; label it"):
        project.correct(3, "cat", person="ann")
    project.label(3, "cat", person="ann")
    with pytest.raises(ConflictError, match="item 3 has a label; only items without one can be skipped"):
        project.skip(3, person="bob")
    assert kinds(project) == [EventKind.made, EventKind.labelled]


# --- bad input ---


@pytest.mark.parametrize("name", ["", "   ", "x" * 65, "a\nb", "a\x00b", "\ud800", None, 7])
def test_a_name_that_is_none(plain: Project, name: Any) -> None:
    for send in (
        lambda: plain.next(name),
        lambda: plain.label(0, "cat", person=name),
        lambda: plain.undo(person=name),
        lambda: plain.resume(name),
    ):
        with pytest.raises(InvalidValueError, match="the name of a person must be 1 to 64 characters"):
            send()
    assert kinds(plain) == [EventKind.made]


@pytest.mark.parametrize("request_name", ["", "x" * 101, "a\tb", "\udfff", 7])
def test_a_request_that_is_none(plain: Project, request_name: Any) -> None:
    with pytest.raises(InvalidValueError, match="request must be 1 to 100 characters"):
        plain.label(0, "cat", person="ann", request=request_name)
    with pytest.raises(InvalidValueError, match="request must be 1 to 100 characters"):
        plain.undo(person="ann", request=request_name)
    assert kinds(plain) == [EventKind.made]


@pytest.mark.parametrize(
    "label", ["horse", "", "CAT", 1, None, float("nan"), True, "x" * 1000, "'; DROP TABLE events; --"]
)
def test_a_class_that_is_none(plain: Project, label: Any) -> None:
    with pytest.raises(InvalidValueError, match="is none of the classes; they are cat, dog, eel"):
        plain.label(0, label, person="ann")
    assert kinds(plain) == [EventKind.made]


@pytest.mark.parametrize("position", [-1, 20, True, 1.0, "1", None, 2**70])
def test_an_item_that_is_none(plain: Project, position: Any) -> None:
    for send in (
        lambda: plain.label(position, "cat", person="ann"),
        lambda: plain.skip(position, person="ann"),
        lambda: plain.item(position),
    ):
        with pytest.raises(InvalidValueError, match=r"there is no item .*; the project has items 0 to 19"):
            send()


@pytest.mark.parametrize("name", ["Zoë 🐌", "' OR 1=1 --", "%s", "{}", "x" * 64, "ann@example.org"])
def test_a_name_is_kept_as_it_is(plain: Project, name: str) -> None:
    plain.label(0, "cat", person=f"  {name} ", request=name)
    with open_project_of(plain) as other:
        assert other.state().labelled()[0].person == name
        assert other.label(0, "cat", person=name, request=name).repeated


@pytest.mark.parametrize("n", [0, -1, 1.5, True])
def test_how_many_items_is_a_whole_number(plain: Project, n: Any) -> None:
    with pytest.raises(SufficeError, match="n must be"):
        plain.next("ann", n)


def test_numbers_come_back_to_the_last_bit(place: str) -> None:
    numbers = {
        "3.5": 3.5,
        2: 2.0,
        " -1e-300 ": -1e-300,
        0.1 + 0.2: 0.1 + 0.2,
        "1.7976931348623157e308": 2.0**1023 * (2 - 2**-52),
    }
    with make(place, task="regression") as project:
        for item, (given, kept) in enumerate(numbers.items()):
            project.label(item, given, person="ann", request=f"r{item}")  # type: ignore[arg-type]
            assert project.label(item, kept, person="ann", request=f"r{item}").repeated
    with open_project(place) as project:
        found = [project.state().label_of(item) for item in range(len(numbers))]
        assert all(isinstance(each, float) for each in found)
        assert found == list(numbers.values())


def test_a_number_that_is_none(tmp_path: Path) -> None:
    with make(tmp_path / "n.suffice", task="regression") as project:
        for label in ("3,5", "nan", "inf", float("inf"), "1_000", "", None, True, "cat", 10**400, [1.0]):
            with pytest.raises(InvalidValueError, match=r"is not a number; a label is a finite number such as 3\.5"):
                project.label(0, label, person="ann")  # type: ignore[arg-type]
        assert kinds(project) == [EventKind.made]


# --- advice ---


def verdict(n_labelled: int, stop: bool) -> Verdict:
    return Verdict(stop, 0.5, 1.0, True, "the reason", "Rule", n_labelled)


def test_advice_is_written_once_and_withdrawn_once(project: Project) -> None:
    project.label(0, "cat", person="ann")
    assert not project.advise(verdict(1, stop=False))
    assert not project.advise(verdict(7, stop=True))
    assert project.advise(verdict(1, stop=True))
    assert not project.advise(verdict(1, stop=True))
    with open_project_of(project) as other:
        assert not other.advise(verdict(1, stop=True))
        advice = other.state().advice
        assert advice is not None
        assert (advice.n_labelled, advice.reason) == (1, "the reason")
    assert project.advise(verdict(1, stop=False))
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
        assert set(project.state().leases(clock.now)) == {0, 1, 2}
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
    project = make(tmp_path / "queue.suffice", initial=1)
    project.label(7, "cat", person="bob")
    project.skip(8, person="bob")
    assert [each.position for each in project.next("bob", 1, queue=[9])] == [9]
    asked = project.next("ann", 3, queue=[7, 8, 9, 11, 11, 10])
    assert [each.position for each in asked[:2]] == [11, 10]
    assert asked[0].why == "the model is least sure of it"
    assert asked[2].why == "drawn at random"
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
        assert all(len(state.opinions(item)) == 1 + (item in second) for item in range(80))


# --- several at once ---


def check_journal(place: str, acknowledged: list[tuple[int, str, int]]) -> None:
    """Everything acknowledged is there, once, and nothing else."""
    with open_project(place) as project:
        events = project.events()
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        written = [(event.item, event.data["label"], event.seq) for event in events if event.kind is EventKind.labelled]
        assert sorted(written) == sorted(acknowledged)
        state = project.state()
        assert picture(replayed(events, project.size), project.size, 0.0) == picture(state, project.size, 0.0)
        assert state.n_labelled == len({item for item, _, _ in acknowledged})


def test_two_processes_at_full_speed_lose_nothing_and_double_nothing(place: str) -> None:
    make(place, 600).close()
    workers = [start("label", place, name, "300") for name in ("ann", "bob")]
    for worker in workers:
        begin(worker)
    done = [[tuple(each) for each in finish(worker)] for worker in workers]
    assert [len(each) for each in done] == [300, 300]
    # Lent to one at a time: nobody has labelled what the other had.
    assert len({item for each in done for item, _, _ in each}) == 600
    check_journal(place, done[0] + done[1])


def test_two_projects_in_four_threads_lose_nothing_and_double_nothing(place: str) -> None:
    make(place, 200).close()
    acknowledged: list[tuple[int, str, int]] = []
    errors: list[BaseException] = []

    def work(project: Project, name: str) -> None:
        try:
            for k in range(50):
                item = project.next(name)[0].position
                receipt = project.label(item, CLASSES[k % 3], person=name, request=f"{name}{k}")
                acknowledged.append((item, CLASSES[k % 3], receipt.seq))
        except BaseException as error:
            errors.append(error)

    with open_project(place) as one, open_project(place) as two:
        threads = [
            threading.Thread(target=work, args=(project, name))
            for project, name in ((one, "ann"), (one, "bob"), (two, "carol"), (two, "dan"))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert picture(one.state(), 200, 0.0) == picture(two.state(), 200, 0.0)
    assert len({item for item, _, _ in acknowledged}) == 200
    check_journal(place, acknowledged)


def test_the_same_request_from_many_threads_is_written_once(project: Project) -> None:
    receipts = []
    barrier = threading.Barrier(8)

    def send() -> None:
        barrier.wait()
        receipts.append(project.label(3, "cat", person="ann", request="r"))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(receipt.repeated for receipt in receipts) == {False: 1, True: 7}
    assert kinds(project) == [EventKind.made, EventKind.labelled]


def test_a_clash_gives_two_opinions_and_the_first_counts(place: str) -> None:
    make(place).close()
    with open_project(place) as one, open_project(place) as two:
        first, second = one.label(3, "cat", person="ann"), two.label(3, "dog", person="bob")
        assert (first.seq, second.seq) == (2, 3)
        for project in (one, two):
            state = project.state()
            assert state.label_of(3) == "cat"
            assert [(each.person, each.label) for each in state.opinions(3)] == [("ann", "cat"), ("bob", "dog")]
            assert state.n_labelled == 1


def test_two_processes_that_make_the_same_project_get_one(place: str) -> None:
    workers = [start("create", place, "4000") for _ in range(2)]
    for worker in workers:
        begin(worker)
    said = sorted(finish(worker) for worker in workers)
    assert said == ["ConflictError", "made"]
    with open_project(place) as project:
        assert project.size == 4000
        assert kinds(project) == [EventKind.made]
    if project._database.file is not None:
        assert [each.name for each in Path(place).iterdir()] == ["project.sqlite"]
