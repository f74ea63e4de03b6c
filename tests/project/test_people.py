"""What is known about people, and opinions of any number of them, on small journals."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from suffice.checks.binomial import binomial_limits
from suffice.errors import InvalidValueError
from suffice.project.assignment import SECOND_OPINION, wants_second
from suffice.project.events import Event, EventKind, Label
from suffice.project.labelling_project import Project
from suffice.project.opinions import majority_of
from suffice.project.people import PersonRecord, people_records, people_summary
from suffice.project.settings import Settings
from suffice.project.state import ProjectState
from tests.project.making_projects import CLASSES, about, make


class Journal:
    """A state to which people add their answers, one every few seconds."""

    def __init__(self, size: int = 500) -> None:
        self.state = ProjectState(size)

    def add(self, kind: EventKind, person: str, item: int, **data: object) -> None:
        seq = self.state.seq + 1
        self.state.apply(Event(kind, person, item, data, seq=seq, at=2.0 * seq))

    def label(self, person: str, item: int, label: Label) -> None:
        self.add(EventKind.labelled, person, item, label=label)

    def draw(self, item: int) -> None:
        """Ask for an item that is drawn at random."""
        self.add(EventKind.asked, "ann", item, until=0.0, why="", random=True, started=True)


def of(journal: Journal, name: str, settings: Settings) -> PersonRecord:
    (found,) = [each for each in people_records(journal.state, settings) if each.name == name]
    return found


def test_settled_items_are_compared_with_what_somebody_else_has_said() -> None:
    journal = Journal()
    for item in range(4):
        journal.label("ann", item, "cat")
    journal.add(EventKind.corrected, "bob", 0, label="dog")
    journal.add(EventKind.corrected, "bob", 1, label="cat")
    # Neither her own correction nor her own confirmation settles anything for her.
    journal.add(EventKind.corrected, "ann", 2, label="eel")
    journal.add(EventKind.confirmed, "ann", 3, label="cat")
    found = of(journal, "ann", about())
    assert found.settled is not None
    assert (found.settled.items, found.settled.right) == (2, 1)
    assert (found.settled.low, found.settled.high) == binomial_limits(1, 2)
    journal.add(EventKind.confirmed, "bob", 3, label="cat")
    settled = of(journal, "ann", about()).settled
    assert settled is not None
    assert (settled.items, settled.right) == (3, 2)
    assert (found.labels, found.answers, found.random) == (2, 4, None)


def test_items_drawn_at_random_are_compared_with_most_of_the_others() -> None:
    journal = Journal()
    said = [("cat", "cat", "cat"), ("cat", "dog", "dog"), ("cat", "cat", "dog"), ("cat", "dog", "dog")]
    for item, labels in enumerate(said):
        if item != 3:
            journal.draw(item)
        for person, label in zip(("ann", "bob", "eve"), labels, strict=True):
            journal.label(person, item, label)
    # The others differ on item 2, and item 3 was not drawn at random.
    found = of(journal, "ann", about(opinions=3)).random
    assert found is not None
    assert (found.items, found.right) == (2, 1)
    journal.add(EventKind.corrected, "bob", 2, label="cat")
    found = of(journal, "ann", about(opinions=3)).random
    assert found is not None
    assert (found.items, found.right) == (3, 2)


def test_numbers_are_right_within_the_tolerance() -> None:
    journal = Journal()
    for item, numbers in enumerate([(1.0, 1.1, 0.9), (5.0, 1.0, 1.2)]):
        journal.draw(item)
        for person, number in zip(("ann", "bob", "eve"), numbers, strict=True):
            journal.label(person, item, number)
    assert of(journal, "ann", about("regression", opinions=3)).random is None
    goal = about("regression", opinions=3, tolerance=0.5, of="all", at_most=0.1)
    found = of(journal, "ann", goal).random
    assert found is not None
    assert (found.items, found.right) == (2, 1)


def crowd(answers: dict[str, float], items: int, settings: Settings, *, seed: int = 0) -> Journal:
    """All people label all items; each is right with a probability, and otherwise answers at random."""
    rng, journal = np.random.default_rng(seed), Journal(items)
    for item in range(items):
        truth = float(rng.normal()) if settings.task == "regression" else CLASSES[rng.integers(3)]
        for person, right in answers.items():
            other = float(rng.normal()) if settings.task == "regression" else CLASSES[rng.integers(3)]
            journal.label(person, item, truth if rng.random() < right else other)
    return journal


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_person_who_answers_at_random_is_named_and_nobody_else(task: str) -> None:
    settings = about(task, opinions=3)
    journal = crowd({"ann": 0.9, "bob": 0.8, "eve": 0.0}, 400, settings)
    assert {each.name for each in people_records(journal.state, settings) if each.by_chance} == {"eve"}
    told = people_summary(journal.state, settings)
    (eve,) = [each for each in told["people"] if each["name"] == "eve"]
    assert eve["sentences"][-1] == "The answers of eve agree with those of others no more than by chance."
    assert any("at most 1 % of projects" in note for note in told["notes"])
    # The others of a person are compared when they are complete.
    assert all(each.compared == 0 for each in people_records(journal.state, about(task, opinions=4)))


def test_of_two_people_the_review_shows_whose_answers_are_by_chance() -> None:
    settings = about()
    journal = crowd({"ann": 0.95, "eve": 0.0}, 250, settings)
    assert [each.by_chance for each in people_records(journal.state, settings)] == [True, True]
    assert any("With two people" in note for note in people_summary(journal.state, settings)["notes"])
    for item in range(40):
        # Ann is nearly always right.
        label = journal.state.acts.opinions(item)[0].label
        if journal.state.acts.opinions(item)[1].label != label:
            journal.add(EventKind.corrected, "zoe", item, label=label)
    assert {each.name for each in people_records(journal.state, settings) if each.by_chance} == {"eve"}


def test_the_pace_of_each_person_leaves_breaks_out() -> None:
    journal = Journal()
    for item in range(15):
        journal.label("ann", item, "cat")
    journal.state.apply(Event(EventKind.labelled, "ann", 20, {"label": "dog"}, seq=16, at=9000.0))
    journal.label("bob", 30, "cat")
    assert (of(journal, "ann", about()).seconds, of(journal, "bob", about()).seconds) == (2.0, None)


@pytest.mark.parametrize("opinions", [2, 3, 5])
def test_every_item_of_the_overlap_gets_its_opinions_from_different_people(tmp_path: Path, opinions: int) -> None:
    people = [f"p{k}" for k in range(5)]
    rng, given = np.random.default_rng(opinions), Counter[tuple[str, int]]()
    with make(tmp_path / "pets.suffice", 30, overlap=0.5, opinions=opinions, initial=30) as project:
        before = -1
        while sum(given.values()) > before:
            before = sum(given.values())
            for name in rng.permutation(people).tolist():
                for asked in project.next(name):
                    given[name, asked.position] += 1
                    project.label(asked.position, CLASSES[rng.integers(3)], person=name)
                    seconds = asked.why == SECOND_OPINION
                    assert seconds == (sum(item == asked.position for _, item in given) > 1)
        assert set(given.values()) == {1}
        counts = Counter(item for _, item in given)
        settings = project.settings
        assert counts == {item: opinions if wants_second(settings, item) else 1 for item in range(30)}
        # People who answer equally fast answer about equally many.
        load = Counter(name for name, _ in given)
        assert max(load.values()) - min(load.values()) <= 3


def test_a_settled_item_is_not_given_to_more_people(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", 3, overlap=1.0, opinions=3) as project:
        project.label(0, "cat", person="ann")
        project.label(0, "dog", person="bob")
        assert [each.position for each in project.next("eve")] == [0]
        project.correct(0, "dog", person="zoe")
        assert 0 not in [each.position for each in project.next("dan", 3)]


def test_the_number_of_opinions_is_a_setting_that_two_need_not_write(tmp_path: Path) -> None:
    assert "opinions" not in about().as_dict()
    assert Settings.from_dict(about().as_dict()).opinions == 2
    with make(tmp_path / "pets.suffice") as project:
        assert isinstance(project, Project)
        project.change_settings({"opinions": 3}, person="ann")
        assert project.settings.opinions == 3
        project.change_settings({"opinions": 2}, person="ann")
        assert "opinions" not in project.settings.as_dict()
        for wrong in (1, 101, 2.5, True):
            with pytest.raises(InvalidValueError, match="opinions must be"):
                project.change_settings({"opinions": wrong}, person="ann")


def test_the_majority_is_the_only_most_frequent_label() -> None:
    assert majority_of(["a", "b", "b", "c"]) == "b"
    assert majority_of(["a", "a", "b", "b", "c"]) is None
    assert majority_of([True, True, False]) is True
