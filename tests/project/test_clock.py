"""Leases while the clock of the system is set to another time."""

from pathlib import Path

import pytest

from suffice.project import journal as journal_module
from suffice.project.create import open_project
from suffice.project.events import EventKind
from suffice.project.labelling_project import Project
from tests.project.making_projects import make

HOUR = 3600.0
LEASE = 600.0


class TwoClocks:
    """The clock of the system, which somebody sets, and one that only goes on."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_000_000.0, 500.0

    def time(self) -> float:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> TwoClocks:
    clock = TwoClocks()
    monkeypatch.setattr(journal_module, "time", clock)
    return clock


def taken(project: Project, person: str, n: int = 12) -> set[int]:
    return {each.position for each in project.next(person, n)}


@pytest.mark.parametrize("jump", [-HOUR, HOUR, -LEASE, LEASE, -3.0, 3.0, -1000 * HOUR])
def test_no_item_goes_to_two_people_and_no_lease_is_shortened_when_the_clock_is_set(
    place: str, clock: TwoClocks, jump: float
) -> None:
    with make(place, 12, lease=LEASE) as project, open_project(place) as other:
        held = taken(project, "ann", 8)
        clock.pass_by(10.0)
        assert taken(other, "bob", 2).isdisjoint(held)
        clock.wall += jump
        clock.pass_by(1.0)
        for each in (project, other):
            assert taken(each, "eve").isdisjoint(held)
        # Asked again, ann has the same items, and still for the rest of the time, as the clock tells it now.
        again = project.next("ann", 8)
        assert {each.position for each in again} == held
        assert all(abs(each.until - (clock.wall + LEASE - 11.0)) < 3.0 for each in again)
        # Half of the time is over: an answer of the program is as before.
        clock.pass_by(LEASE - 12.0)
        for each in (project, other):
            assert taken(each, "zoe") == set()
        clock.pass_by(1.5)
        assert taken(other, "zoe") == held


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_leases_after_the_clock_was_set_are_of_the_usual_length(place: str, clock: TwoClocks, jump: float) -> None:
    with make(place, 12, lease=LEASE) as project, open_project(place) as other:
        project.next("ann")
        clock.wall += jump
        mine = project.next("bob")[0]
        assert mine.until == pytest.approx(clock.wall + LEASE, abs=1e-3)
        asked = next(event for event in project.events() if event.kind is EventKind.asked and event.person == "bob")
        # The journal is by the clock of the system, so that others understand it.
        assert asked.at == clock.wall
        assert asked.data["until"] == pytest.approx(clock.wall + LEASE, abs=1e-3)
        clock.pass_by(LEASE - 1.0)
        assert mine.position not in taken(other, "eve")
        clock.pass_by(1.5)
        assert mine.position in taken(other, "eve", 12)


def test_what_is_taken_back_is_held_too(place: str, clock: TwoClocks) -> None:
    with make(place, 3, lease=LEASE) as project:
        item = project.next("ann")[0].position
        project.label(item, "cat", person="ann")
        clock.wall -= HOUR
        project.undo(person="ann")
        clock.wall += HOUR
        assert item not in taken(project, "bob")
        assert project.next("ann")[0].position == item


def test_a_process_that_starts_after_the_clock_was_set_back_frees_nothing(tmp_path: Path, clock: TwoClocks) -> None:
    place = tmp_path / "pets.suffice"
    with make(place, 12, lease=LEASE) as project:
        held = taken(project, "ann", 8)
        clock.wall -= HOUR
        with open_project(place) as other:
            assert taken(other, "bob") == set(range(12)) - held
            clock.pass_by(LEASE - 1.0)
            assert taken(other, "eve") == set()
            # It cannot know how much of the time was over, and holds it for the whole of it.
            clock.pass_by(1.5)
            assert held <= taken(other, "eve")


def test_the_clock_of_another_machine_does_not_matter(place: str, clock: TwoClocks) -> None:
    """Two machines at one database, one of which is an hour behind."""
    with make(place, 12, lease=LEASE) as project, open_project(place) as other:
        taken(other, "bob", 1)
        held = taken(project, "ann", 8)
        clock.wall -= HOUR
        clock.pass_by(5.0)
        assert taken(other, "eve", 12).isdisjoint(held)
