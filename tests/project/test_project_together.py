"""Several threads and processes on one project: nothing lost, nothing double, everything in one order."""

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from suffice.project.create import open_project
from suffice.project.events import EventKind
from suffice.project.labelling_project import Project
from tests.project.making_projects import CLASSES, make, picture, replayed
from tests.project.project_workers import begin, finish, start


@pytest.fixture
def project(place: str) -> Iterator[Project]:
    with make(place) as project:
        yield project


def kinds(project: Project) -> list[EventKind]:
    return [event.kind for event in project.events()]


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


@pytest.mark.one_in(2)
@pytest.mark.parametrize("labels", [60, pytest.param(300, marks=pytest.mark.slow)])
def test_two_processes_at_full_speed_lose_nothing_and_double_nothing(place: str, labels: int) -> None:
    make(place, 2 * labels).close()
    workers = [start("label", place, name, str(labels)) for name in ("ann", "bob")]
    for worker in workers:
        begin(worker)
    done = [[tuple(each) for each in finish(worker)] for worker in workers]
    assert [len(each) for each in done] == [labels, labels]
    # Lent to one at a time: nobody has labelled what the other had.
    assert len({item for each in done for item, _, _ in each}) == 2 * labels
    check_journal(place, done[0] + done[1])


@pytest.mark.one_in(2)
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
            assert [(each.person, each.label) for each in state.acts.opinions(3)] == [("ann", "cat"), ("bob", "dog")]
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
    if project.journal.database.file is not None:
        assert [each.name for each in Path(place).iterdir()] == ["project.sqlite"]
