"""Checks of a project: any course of events, and what is written of them."""

import json
from collections.abc import Iterable, Iterator
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chisquare

from suffice.checks import Guarantee, spent_alpha
from suffice.errors import InvalidValueError, SufficeError
from suffice.project import journal as journal_module
from suffice.project.assignment import IN_CHECK
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import open_project
from suffice.project.events import Event, EventKind
from suffice.project.labelling_project import ConflictError, Project
from suffice.project.project_check import (
    ItemsBefore,
    drawn_items,
    packed_predictions,
    rounded_numbers,
    unpacked_predictions,
)
from suffice.project.project_learner import ProjectLearner
from suffice.project.state import Answer
from suffice.project.storage import StorageError, sa
from suffice.session.model_check import CheckedQuantity
from tests.project.labelled_projects import label_some, of_feature
from tests.project.making_projects import CLASSES, make, picture, replayed
from tests.project.naive_project import NaiveCheck, NaiveProject, RefusedError
from tests.project.test_state import Clock, emptied, hurry, rows
from tests.project.test_state import take as take_ordinary
from tests.thoroughness import examples

SIZE = 6
LEASE = 100.0
PEOPLE = ("ann", "bob")
KINDS = ["next", "label", "label", "label", "label", "skip", "correct", "undo", "start", "start", "abort", "switch"]
STEPS = st.tuples(
    st.sampled_from(KINDS),
    st.sampled_from(PEOPLE),
    st.integers(0, SIZE - 1),
    st.sampled_from(CLASSES),
    st.sampled_from([0.25, 60.0, 150.0]),
)
ASKED: dict[str, dict[str, Any]] = {
    "cat": {},
    "dog": {"precision_of": "dog"},
    "eel": {"recall_of": "eel", "unlabelable_as": "excluded"},
}


def predicted(item: int) -> str:
    return CLASSES[item % 3]


def predictions(model: str, answers: list[Answer]) -> NDArray[Any]:
    """Predictions that depend on nothing."""
    del model, answers
    return np.array([predicted(item) for item in range(SIZE)])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(journal_module, "time", clock)
    return clock


@pytest.fixture
def used(tmp_path: Path) -> Iterator[Project]:
    with make(tmp_path / "pets.suffice", SIZE, lease=LEASE, initial=2, random_share=0.4) as project:
        sa.event.listen(project.journal.database._engine, "checkout", hurry)
        yield project


def take(project: Project, naive: NaiveProject, step: tuple[str, str, int, str, float], clock: Clock) -> None:
    kind, person, item, label, seconds = step
    if kind not in ("start", "abort", "switch"):
        take_ordinary(project, naive, step, clock)
        return
    clock.now += seconds
    before = len(project.events())
    if kind == "switch":
        naive.model = "kernel" if naive.model == "logistic" else "logistic"
        project.switch_model(naive.model, person=person)
    elif kind == "abort":
        try:
            naive.abort()
        except RefusedError:
            with pytest.raises(ConflictError, match="no check is open"):
                project.abort_check(person=person)
            assert len(project.events()) == before
            return
        project.abort_check(person=person)
    elif not start(project, naive, person, 1 + item % 4, label):
        assert len(project.events()) == before
        return
    naive.seen[person] = clock.now


def start(project: Project, naive: NaiveProject, person: str, size: int, label: str) -> bool:
    asked = ASKED[label]
    excluded = "unlabelable_as" in asked
    pool = [item for item in range(SIZE) if naive.status(item) == "open"]
    pool += [item for item in range(SIZE) if naive.status(item) == "skipped" and not excluded]
    pool = [item for item in pool if predicted(item) == "dog"] if label == "dog" else pool
    if naive.pending():
        with pytest.raises(ConflictError, match="a check is open"):
            project.start_check(size, person=person, predict=predictions, **asked)
        return False
    if size > len(pool):
        with pytest.raises(InvalidValueError, match="to check" if not pool else "size must be at most"):
            project.start_check(size, person=person, predict=predictions, **asked)
        return False
    receipt = project.start_check(size, person=person, predict=predictions, **asked)
    check = project.checks()[-1]
    assert len(check.record.items) == size
    assert set(check.record.items) <= set(pool)
    assert check.record.pool == len(pool)
    assert receipt.seq == len(project.events())
    quantity = {"cat": "error", "dog": "precision", "eel": "recall"}[label]
    naive.start(list(check.record.items), quantity, None if label == "cat" else label, excluded=excluded)
    return True


def largest_wrong(wrong: int, checked: int, pool: int, alpha: float) -> int:
    """The bound by its definition."""
    found = [0]
    for d in range(pool + 1):
        below = sum(comb(d, k) * comb(pool - d, checked - k) for k in range(wrong + 1))
        found += [d] if below > alpha * comb(pool, checked) else []
    return max(found)


def check_guarantee(project: Project, naive: NaiveProject) -> None:
    """The newest guarantee is that of the newest complete check, with the bound by its definition."""
    found = project.guarantee()
    complete = [each for each in naive.checks if naive.wrong(each, predicted) is not None]
    assert (found is None) == (not complete)
    if found is None:
        return
    newest: NaiveCheck = complete[-1]
    number = 1 + next(k for k, each in enumerate(naive.checks) if each is newest)
    guarantee = found.guarantee
    assert found.check.number == number
    assert guarantee.alpha == spent_alpha(number)
    assert found.about_present_model == (newest.model == naive.model and newest.learned == naive.learned())
    if newest.quantity == "recall":
        assert guarantee.class_name == "eel"
        assert guarantee.found == len([item for item in newest.labelled if naive.label_of(item) == "eel"])
        return
    counted = naive.wrong(newest, predicted)
    assert counted is not None
    wrong, checked, pool = counted
    at_most = largest_wrong(wrong, checked, pool, guarantee.alpha)
    assert guarantee.wrong_at_most == at_most
    share = (at_most - wrong) / (pool - checked) if pool > checked else 0.0
    assert guarantee.value == (1.0 - share if newest.quantity == "precision" else share)


def test_any_course_of_events_is_what_the_rules_say_and_what_a_replay_gives(used: Project, clock: Clock) -> None:
    @examples(60)
    @given(st.lists(STEPS, min_size=10, max_size=40))
    def check(steps: list[tuple[str, str, int, str, float]]) -> None:
        project, naive = emptied(used), NaiveProject(SIZE, LEASE, initial=2, share=0.4)
        before = rows(project)
        for step in steps:
            take(project, naive, step, clock)
            live, expected = picture(project.state(), SIZE, clock.now), naive.picture(clock.now)
            assert {name: live[name] for name in expected} == expected
            check_guarantee(project, naive)
            after = rows(project)
            assert after[: len(before)] == before
            before = after
        events = project.events()
        assert picture(replayed(events, SIZE), SIZE, clock.now) == live
        again = Project(used.journal.database, SIZE)
        assert picture(again.state(), SIZE, clock.now) == live
        assert str(again.guarantee()) == str(project.guarantee())

    check()


# --- what is written ---


@pytest.mark.parametrize("n_classes", [2, 256, 257, 70_000])
def test_classes_come_back_from_the_journal(n_classes: int) -> None:
    classes = tuple(f"c{k}" for k in range(n_classes))
    given_ones = np.asarray(classes)[np.random.default_rng(0).integers(n_classes, size=500)]
    text = packed_predictions(given_ones, classes)
    assert unpacked_predictions(text, classes, 500).tolist() == given_ones.tolist()


@examples(60)
@given(st.lists(st.floats(-1e100, 1e100), min_size=1, max_size=20))
def test_numbers_come_back_rounded_to_nine_digits_and_are_not_rounded_twice(values: list[float]) -> None:
    numbers = np.array(values)
    kept = unpacked_predictions(packed_predictions(numbers, ()), (), len(values))
    assert kept == pytest.approx(numbers, rel=2.0**-32, abs=1e-300)
    assert kept.tolist() == rounded_numbers(kept).tolist() == rounded_numbers(numbers).tolist()


@pytest.mark.parametrize(("n_classes", "most"), [(2, 25_000), (50, 100_000), (0, 700_000)])
def test_predictions_for_a_hundred_thousand_items_take_less_than_a_megabyte(n_classes: int, most: int) -> None:
    rng = np.random.default_rng(0)
    classes = tuple(f"class {k}" for k in range(n_classes))
    values = np.asarray(classes)[rng.integers(n_classes, size=100_000)] if classes else rng.normal(size=100_000)
    assert len(packed_predictions(values, classes)) < most


@pytest.mark.parametrize(
    ("values", "classes", "sentence"),
    [
        (np.array(["cat", "cow"]), CLASSES, "predictions must be classes of the project, not 'cow'"),
        (np.array([1.0, np.nan]), (), "predictions must be finite numbers"),
    ],
)
def test_predictions_that_cannot_be_kept_are_refused(values: Any, classes: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(InvalidValueError, match=sentence):
        packed_predictions(values, classes)


@pytest.mark.parametrize("damage", ["number", "items", "predictions", "size", "classes", "of_items"])
def test_a_check_that_is_damaged_in_the_journal_is_noticed(tmp_path: Path, damage: str) -> None:
    place = tmp_path / "pets.suffice"
    with make(place, SIZE) as project:
        project.start_check(3, person="ann", predict=predictions)
        data = dict(project.events()[-1].data)
        other = {"number": 2, "items": [0, 0, 1], "predictions": data["predictions"][8:], "size": 4}
        other |= {"classes": ["a"], "of_items": 5}
        with project.journal.database.exclusive() as connection:
            text = json.dumps(data | {damage: other[damage]})
            connection.execute(sa.text("UPDATE events SET data = :data WHERE seq = 2"), {"data": text})
    with pytest.raises(StorageError, match="is damaged"):
        open_project(place)


# --- starting ---


@pytest.fixture
def project(place: str) -> Iterator[Project]:
    with make(place, 40, initial=4) as project:
        label_some(project, range(10))
        yield project


def answer(project: Project, items: Iterable[int], person: str = "ann") -> None:
    """Label items as they should be."""
    label_some(project, [int(item) for item in items], person)


def test_a_check_freezes_the_model_that_has_learned_all_answers(project: Project) -> None:
    project.skip(30, person="ann")
    project.start_check(8, person="ann")
    (check,) = project.checks()
    learner = ProjectLearner(project.settings, project.X)
    learner.follow(project.state().answers())
    assert check.draw.predictions.tolist() == learner.predict(project.X).labels[check.draw.before.unlabelled].tolist()
    assert check.draw.before.unlabelled.tolist() == list(range(10, 40))
    assert (check.state, check.n_labelled, check.record.pool) == ("open", 10, 30)
    assert (check.draw.person, check.draw.model, check.draw.classes) == ("ann", "logistic", CLASSES)
    assert project.guarantee() is None
    answer(project, check.record.pending)
    found = project.guarantee()
    assert found is not None
    assert found.about_present_model
    wrong = sum(of_feature(project, item) != check.draw.prediction_of([item])[item] for item in check.record.items)
    absent = int(30 in check.record.items)
    expected = Guarantee.of_error(wrong - absent, 8, 30, alpha=0.025, confidence=0.95, unlabelable=absent)
    assert str(found.guarantee) == str(expected)
    # The next label of another item: the model learns, and the guarantee is about an earlier one.
    before = len(project.state().learned())
    label_some(project, [next(item for item in range(10, 40) if project.state().labels.is_open(item))])
    assert len(project.state().learned()) == before + 8 - absent + 1
    again = project.guarantee()
    assert again is not None
    assert not again.about_present_model
    assert str(again).endswith("The current model is different and has no guarantee until it is checked.")


def test_the_items_depend_on_the_seed_and_the_number_of_the_check_alone(tmp_path: Path) -> None:
    drawn = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        with make(tmp_path / f"{name}.suffice", 40, seed=seed) as project:
            project.start_check(10, person="ann", predict=lambda *_: np.array(["cat"] * 40))
            first = project.checks()[0].record.items
            project.abort_check(person="ann")
            project.start_check(10, person="bob", predict=lambda *_: np.array(["dog"] * 40))
            drawn.append((first, project.checks()[1].record.items))
    assert drawn[0] == drawn[1]
    assert len({*drawn[0], *drawn[2]}) == 4


def test_a_request_that_is_sent_again_does_not_start_or_abort_again(project: Project) -> None:
    first = project.start_check(3, person="ann", request="r")
    events = project.events()

    def never(*_: Any) -> NDArray[Any]:
        raise AssertionError

    assert project.start_check(3, person="ann", request="r", predict=never) == first._replace(repeated=True)
    with pytest.raises(ConflictError, match="was used before, for something else"):
        project.start_check(4, person="ann", request="r")
    with pytest.raises(ConflictError, match="was used before, for something else"):
        project.start_check(3, person="ann", request="r", precision_of="cat")
    assert project.events() == events
    aborted = project.abort_check(person="ann", request="a")
    assert project.abort_check(person="ann", request="a") == aborted._replace(repeated=True)
    # Also long afterwards it is not started again.
    assert project.start_check(3, person="ann", request="r", predict=never).seq == first.seq
    assert [check.state for check in project.checks()] == ["aborted"]


def test_a_check_is_of_answers_that_came_while_the_model_predicted(project: Project) -> None:
    asked: list[int] = []

    def slow(model: str, answers: list[Answer]) -> NDArray[Any]:
        assert model == "logistic"
        asked.append(len(answers))
        if len(asked) < 3:
            answer(project, [20 + len(asked)], "bob")
        return np.array(["cat"] * 40)

    project.start_check(3, person="ann", predict=slow)
    assert asked == [10, 11, 12]
    assert project.checks()[0].n_labelled == 12

    def always(model: str, answers: list[Answer]) -> NDArray[Any]:
        del model
        answer(project, [next(item for item in range(40) if project.state().labels.is_open(item))], "bob")
        return np.array(["cat"] * (40 + 0 * len(answers)))

    project.abort_check(person="ann")
    with pytest.raises(ConflictError, match="labels come faster than the model learns"):
        project.start_check(3, person="ann", predict=always)
    assert len(project.checks()) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"size": 0}, "size must be a whole number, 1 or more, not 0"),
        ({"size": 2.5}, "size must be a whole number"),
        ({"size": 31}, "size must be at most the 30 unlabelled items, not 31"),
        ({"recall_of": "cow"}, "recall_of must be one of the classes"),
        ({"precision_of": "eel"}, "there is no unlabelled item predicted as 'eel' to check"),
        ({"precision_of": "eel", "unlabelable_as": "excluded"}, "no unlabelled item that was not skipped and is pre"),
        ({"tolerance": 0.5}, "tolerance cannot be checked: the model predicts classes"),
        ({"recall_of": "cat", "precision_of": "cat"}, "a check guarantees one quantity"),
        ({"unlabelable_as": "right"}, 'unlabelable_as must be "wrong" or "excluded"'),
        ({"confidence": 1.0}, "confidence must be"),
        ({"person": ""}, "the name of a person"),
        ({"predict": lambda *_: np.zeros(3)}, "predict must return one prediction for each of the 40 items"),
        ({"predict": lambda *_: np.array(["cow"] * 40)}, "predictions must be classes of the project, not 'cow'"),
    ],
)
def test_a_check_that_cannot_be_started_spends_nothing(
    tmp_path: Path, arguments: dict[str, Any], sentence: str
) -> None:
    with make(tmp_path / "pets.suffice", 40, initial=4) as project:
        label_some(project, range(10))
        events = project.events()
        given_ones: dict[str, Any] = {"size": 5, "person": "ann", **arguments}
        with pytest.raises(SufficeError, match=sentence):
            project.start_check(**given_ones)
        assert project.events() == events
        assert project.checks() == []


def test_a_model_without_its_first_labels_is_not_checked(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", 40) as project:
        label_some(project, range(9))
        with pytest.raises(SufficeError, match="it begins with 10 labels, and there are 9"):
            project.start_check(5, person="ann")
        assert project.checks() == []


def test_the_confidence_of_the_first_check_is_that_of_all(project: Project) -> None:
    project.start_check(2, person="ann", confidence=0.9)
    project.abort_check(person="ann")
    with pytest.raises(InvalidValueError, match=r"confidence must be 0\.9, as for the first check"):
        project.start_check(2, person="ann", confidence=0.95)
    project.start_check(2, person="ann")
    answer(project, project.checks()[1].record.items)
    found = project.guarantee()
    assert found is not None
    assert found.guarantee.confidence == 0.9
    assert found.guarantee.alpha == pytest.approx(0.1 / 6)


# --- numbers ---


def test_numbers_within_a_tolerance_and_the_tolerance_of_a_share(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", 300, task="regression", initial=4) as project:
        label_some(project, range(20))
        with pytest.raises(InvalidValueError, match="a check of numbers needs tolerance"):
            project.start_check(50, person="ann")
        with pytest.raises(InvalidValueError, match=r"is too small for share=0\.01"):
            project.start_check(10, person="ann", share=0.01)
        project.start_check(50, person="ann", tolerance=0.5)
        answer(project, project.checks()[0].record.items)
        within = project.guarantee()
        project.start_check(50, person="ann", share=0.2)
        assert project.checks()[1].n_labelled == 70
        answer(project, project.checks()[1].record.items)
        tolerance = project.guarantee()
        assert within is not None
        assert tolerance is not None
        assert within.guarantee.quantity == "within"
        assert "are off by more than 0.5" in str(within)
        residuals = [
            abs(float(of_feature(project, item)) - tolerance.check.draw.prediction_of([item])[item])
            for item in tolerance.check.record.items
        ]
        expected = Guarantee.of_tolerance(residuals, 0.2, 230, alpha=0.05 / 6, confidence=0.95, number=2)
        assert str(tolerance.guarantee) == str(expected)


# --- people ---


def test_two_people_are_asked_for_different_items_of_the_check_before_all_others(project: Project) -> None:
    project.start_check(4, person="ann")
    items = project.checks()[0].record.items
    queue = [item for item in range(10, 40) if item not in items]
    ann, bob = (project.next(name, 2, queue=queue) for name in ("ann", "bob"))
    assert [each.position for each in [*ann, *bob]] == list(items)
    assert all(each.check and each.why == IN_CHECK and each.random is None for each in [*ann, *bob])
    # Nobody waits: when no item of the check is free there are others.
    carol = project.next("carol", 2, queue=queue)
    assert len(carol) == 2
    assert not any(each.check or each.position in items for each in carol)
    answer(project, [carol[0].position], "carol")
    assert project.state().learned() == project.state().answers()[:10]
    answer(project, items[:2], "ann")
    answer(project, items[2:], "bob")
    found = project.guarantee()
    assert found is not None
    assert found.about_present_model
    assert project.state().checks.open_check is None
    assert not project.next("ann", queue=queue)[0].check


def test_an_item_that_somebody_had_before_the_check_can_be_answered_by_everybody(project: Project) -> None:
    everything = [each.position for each in project.next("bob", 30, queue=list(range(10, 40)))]
    project.start_check(3, person="ann")
    items = project.checks()[0].record.items
    # Bob may have left, and nobody should wait for him.
    asked = project.next("ann", 3)
    assert [each.position for each in asked] == list(items)
    assert [each.position for each in project.next("bob", 30)] == [item for item in everything if item not in items]
    # If he has not left, his answer counts too.
    answer(project, items[:1], "bob")
    answer(project, items, "ann")
    found = project.guarantee()
    assert found is not None
    assert len(project.state().acts.opinions(items[0])) == 2
    assert all(each.random for each in project.state().labelled() if each.item in items)


def test_second_opinions_within_a_check(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", 40, initial=4, overlap=1.0) as project:
        label_some(project, range(10))
        project.start_check(3, person="ann")
        items = project.checks()[0].record.items
        answer(project, items, "ann")
        before = project.guarantee()
        assert before is not None
        asked = {each.position for each in project.next("bob", 13)}
        assert asked >= set(items)
        # The first opinion counts; a second one is an answer to an item of the check, so the model does not change.
        project.label(items[0], "eel", person="bob")
        again = project.guarantee()
        assert again is not None
        assert again.about_present_model
        assert again.guarantee == before.guarantee
        # A correction counts, at the same error probability.
        right, other = of_feature(project, items[0]), before.check.draw.prediction_of([items[0]])[items[0]]
        project.correct(items[0], "eel", person="bob")
        corrected = project.guarantee()
        assert corrected is not None
        assert corrected.about_present_model
        assert corrected.guarantee.wrong == before.guarantee.wrong + (right == other)
        assert corrected.guarantee.alpha == before.guarantee.alpha


def test_skips_and_undone_answers_within_a_check(project: Project) -> None:
    project.start_check(3, person="ann")
    one, two, three = project.checks()[0].record.items
    project.skip(one, person="ann")
    answer(project, [two, three])
    complete = project.guarantee()
    assert complete is not None
    assert (complete.guarantee.unlabelable, complete.guarantee.unlabelable_as) == (1, "wrong")
    # Somebody else can label it after all.
    answer(project, [one], "bob")
    again = project.guarantee()
    assert again is not None
    assert again.guarantee.unlabelable == 0
    project.undo(person="bob")
    assert project.guarantee() is not None
    # Undone: the check is open again, and its items are asked for first.
    project.undo(person="ann")
    assert project.guarantee() is None
    assert [check.state for check in project.checks()] == ["open"]
    (again_asked,) = project.next("ann")
    assert (again_asked.position, again_asked.why, again_asked.check) == (three, IN_CHECK, True)
    with pytest.raises(ConflictError, match="a check is open: 1 of its 3 items have no answer"):
        project.start_check(3, person="bob")
    answer(project, [three])
    found = project.guarantee()
    assert found is not None
    assert found.about_present_model


def test_an_answer_of_an_older_check_that_is_undone_leaves_it_incomplete(project: Project) -> None:
    project.start_check(2, person="ann")
    first = project.checks()[0].record.items
    answer(project, first, "bob")
    project.start_check(2, person="ann")
    second = project.checks()[1].record.items
    assert project.checks()[1].n_labelled == 12
    answer(project, second, "ann")
    project.undo(person="bob")
    assert [check.state for check in project.checks()] == ["incomplete", "complete"]
    newest = project.guarantee()
    assert newest is not None
    assert newest.check.number == 2
    assert project.state().checks.open_check is None


def test_an_aborted_check_spends_its_part_and_its_labels_are_learned(project: Project) -> None:
    project.start_check(4, person="ann")
    items = project.checks()[0].record.items
    answer(project, [items[0], items[1], items[3]])
    project.abort_check(person="bob")
    assert project.guarantee() is None
    learned = project.state().learned()
    assert [(each.item, each.random) for each in learned[10:]] == [
        (items[0], True),
        (items[1], True),
        (items[3], False),
    ]
    # Later answers to its items complete nothing, and are not random.
    answer(project, [items[2]])
    assert [check.state for check in project.checks()] == ["aborted"]
    assert not project.state().learned()[-1].random
    project.start_check(2, person="ann")
    answer(project, project.checks()[1].record.items)
    found = project.guarantee()
    assert found is not None
    assert found.guarantee.alpha == pytest.approx(0.05 / 6)


def test_a_model_that_was_switched_is_not_the_one_that_was_checked(project: Project) -> None:
    project.start_check(2, person="ann")
    answer(project, project.checks()[0].record.items)
    for model, present in (("kernel", False), ("logistic", True)):
        project.switch_model(model, person="ann")
        found = project.guarantee()
        assert found is not None
        assert found.about_present_model == present


def test_a_correction_of_an_earlier_label_is_learned_when_labelling_goes_on(project: Project) -> None:
    project.start_check(2, person="ann", recall_of="cat")
    items = project.checks()[0].record.items
    before = project.state().learned()
    project.correct(0, "eel", person="ann")
    assert project.state().learned() == before
    answer(project, items)
    found = project.guarantee()
    assert found is not None
    assert found.about_present_model
    assert found.guarantee.found == sum(project.state().label_of(item) == "cat" for item in range(10))
    project.correct(1, "eel", person="ann")
    assert project.state().learned() == project.state().answers()
    found = project.guarantee()
    assert found is not None
    assert not found.about_present_model


def test_items_and_classes_that_are_added_later_are_not_covered(project: Project) -> None:
    project.start_check(4, person="ann")
    items = project.checks()[0].record.items
    answer(project, items)
    found = project.guarantee()
    assert found is not None
    # As if five items were added in a later version of the project: what was guaranteed stays.
    state = replayed(project.events(), 45)
    assert state.left == 45 - 14
    later = state.guarantee("logistic")
    assert later is not None
    assert later.guarantee == found.guarantee
    assert (later.check.draw.before.size, len(later.check.draw.before.unlabelled)) == (40, 30)
    # A label of a class that did not exist: it was predicted for no item.
    right = [item for item in items if of_feature(project, item) == found.check.draw.prediction_of([item])[item]]
    seq = len(project.events()) + 1
    state.apply(Event(EventKind.corrected, "ann", right[0], {"label": "fox"}, seq=seq))
    again = state.guarantee("logistic")
    assert again is not None
    assert again.guarantee.wrong == found.guarantee.wrong + 1
    assert again.check.draw.classes == CLASSES


def test_a_background_learner_keeps_to_the_checked_model(project: Project) -> None:
    with BackgroundLearner(project) as background:
        assert background.wait_settled(60)
        project.start_check(3, person="ann", predict=background.predictions_after)
        draw = project.checks()[0].draw
        answer(project, draw.items[:2])
        assert background.wait_settled(60)
        # What a check holds back is not waited for.
        assert background.wait(12, 0.0)
        assert background.learning_status.n_labelled == 10
        assert background.predictions().labels[draw.before.unlabelled].tolist() == draw.predictions.tolist()
        answer(project, draw.items[2:])
        assert background.wait_settled(60)
        assert background.learning_status.n_labelled == 10
        # A second check is of a model that has learned the first.
        project.start_check(3, person="ann", predict=background.predictions_after)
        assert background.wait_settled(60)
        assert background.learning_status.n_labelled == 13
        project.abort_check(person="ann")
        with pytest.raises(InvalidValueError, match="size must be at most"):
            project.start_check(100, person="ann", predict=background.predictions_after)
        assert background.wait_settled(60)
        assert background.learning_status.n_labelled == 13


def test_the_items_of_checks_are_random_samples_and_those_of_two_checks_are_independent() -> None:
    pool, size, wrong, seeds = 60, 12, 9, 1500
    before = ItemsBefore(pool, (), np.arange(pool), frozenset())
    asked = CheckedQuantity("error")
    found = np.zeros((seeds, 2), dtype=int)
    drawn = np.zeros(pool)
    for seed in range(seeds):
        for k in (0, 1):
            rng = np.random.default_rng([seed, 13, k + 1])
            items, of = drawn_items(size, asked, before, np.array(["cat"] * pool), rng)
            assert of == pool
            found[seed, k] = sum(item < wrong for item in items)
            drawn[list(items)] += 1
    pmf = np.array([comb(wrong, k) * comb(pool - wrong, size - k) / comb(pool, size) for k in range(wrong + 1)])
    for each in found.T:
        counts = np.bincount(each, minlength=wrong + 1)
        expected = seeds * pmf
        kept = expected >= 5.0
        merged = np.append(counts[kept], counts[~kept].sum()), np.append(expected[kept], expected[~kept].sum())
        assert chisquare(*merged).pvalue > 1e-4
    assert chisquare(drawn).pvalue > 1e-4
    assert abs(np.corrcoef(found.T)[0, 1]) < 4.0 / np.sqrt(seeds)
