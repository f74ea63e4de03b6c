"""A model that learns in the background: it keeps up, says what it knows, and never dies in silence."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.errors import SufficeError
from suffice.numerics import Floats
from suffice.project import background_learner as background_module
from suffice.project.background_learner import BackgroundLearner, queue_size
from suffice.project.events import Event, EventKind
from suffice.project.labelling_project import Project
from suffice.project.project_learner import ProjectLearner
from suffice.project.settings import Settings
from suffice.project.state import Answer, ProjectState
from suffice.session.decision import Decision
from tests.project.following import CASES, Case
from tests.project.making_projects import make
from tests.thoroughness import thorough

# Seconds after which a test gives up; nothing takes that long.
LONG = 60.0


@dataclass
class Small:
    """A project in memory."""

    settings: Settings
    X: Floats
    events: ProjectState
    lock: Any = field(default_factory=threading.RLock)
    decisions: list[Decision] = field(default_factory=list)
    broken: str = ""
    settings_editor: Any = None
    features_missing: bool = False

    @property
    def size(self) -> int:
        return len(self.X)

    def state(self) -> ProjectState:
        if self.broken:
            raise SufficeError(self.broken)
        return self.events

    def advise(self, decision: Decision) -> bool:
        self.decisions.append(decision)
        kind = EventKind.advised if decision.stop else EventKind.withdrawn
        self.add(kind, data={"n_labelled": decision.n_labelled, "reason": str(decision)})
        return True

    def add(self, kind: EventKind, person: str = "", item: int | None = None, **changes: Any) -> None:
        with self.lock:
            self.events.apply(Event(kind, person, item, seq=self.events.seq + 1, at=time.time(), **changes))

    def tell(self, answers: list[Answer], person: str = "ann") -> None:
        for answer in answers:
            if answer.label is None:
                self.add(EventKind.skipped, person, answer.item)
            else:
                self.add(EventKind.labelled, person, answer.item, data={"label": answer.label})


def small(case: Case) -> Small:
    return Small(case.settings, case.X, ProjectState(len(case.X)))


def until(holds: Callable[[], bool]) -> None:
    """Wait for what a thread does."""
    end = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_module, "_POLL", 0.02)


@pytest.fixture(params=["three classes", "process"])
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def project(case: Case) -> Iterator[Small]:
    before = threading.active_count()
    yield small(case)
    assert threading.active_count() == before


def test_it_learns_what_comes(project: Small, case: Case) -> None:
    answers = case.answers(30, skips=2)
    with BackgroundLearner(project) as background:
        for n in (1, 12, 30):
            project.tell(answers[project.events.n_labelled + project.events.n_skipped : n])
            background.wake()
            assert background.wait(n, LONG)
            by_hand = ProjectLearner(case.settings, case.X)
            by_hand.follow(answers[:n])
            expected, found = by_hand.learning_status(), background.learning_status
            assert (found.verdict, found.curve, found.errors, found.decision) == (
                expected.verdict,
                expected.curve,
                expected.errors,
                expected.decision,
            )
            assert found.problem == ""
            assert len(found.queue) == 4
            assert not set(found.queue) & {answer.item for answer in answers[:n]}


def test_it_sees_what_others_wrote_without_being_woken(project: Small, case: Case) -> None:
    with BackgroundLearner(project) as background:
        until(lambda: bool(background.learning_status.queue))
        project.tell(case.answers(11))
        assert background.wait(11, LONG)
        assert background.learning_status.n_labelled == 11


def test_a_label_that_is_taken_back_is_forgotten(project: Small, case: Case) -> None:
    answers = case.answers(20)
    project.tell(answers)
    with BackgroundLearner(project) as background:
        assert background.wait(20, LONG)
        undone = project.events.acts.newest_of("ann")
        assert undone is not None
        project.add(EventKind.undone, "ann", undone.item, data={"of": undone.seq})
        background.wake()
        until(lambda: background.learning_status.n_answers == 19)
    by_hand = ProjectLearner(case.settings, case.X)
    by_hand.follow(answers[:19])
    assert background.learning_status.verdict == by_hand.learning_status().verdict


@pytest.mark.one_in(2)
def test_advice_is_given_and_withdrawn_when_it_changes(project: Small, case: Case) -> None:
    with BackgroundLearner(project) as background:
        # All but one, which leaves the rule to judge, and then nothing. The first come together.
        answers = case.answers(80)
        for told, n in pairwise((0, *range(1 if thorough() else 60, 81))):
            project.tell(answers[told:n])
            background.wake()
            assert background.wait(n, LONG)
            until(lambda: (project.events.advice is not None) == _stops(background))
        undone = project.events.acts.newest_of("ann")
        assert undone is not None
        project.add(EventKind.undone, "ann", undone.item, data={"of": undone.seq})
        until(lambda: background.learning_status.n_answers == 79)
        until(lambda: (project.events.advice is not None) == _stops(background))
    # Nothing is said twice.
    assert [each.stop for each in project.decisions] == [k % 2 == 0 for k in range(len(project.decisions))]
    assert project.decisions[0].stop


def _stops(background: BackgroundLearner) -> bool:
    verdict = background.learning_status.verdict
    return verdict is not None and verdict.stop


def test_more_people_have_more_items_ready(project: Small, case: Case) -> None:
    answers = case.answers(15)
    with BackgroundLearner(project) as background:
        for k, answer in enumerate(answers[:5]):
            project.tell([answer], person=f"person {k}")
        background.wake()
        until(lambda: len(background.learning_status.queue) == 15)
        assert background.wait(5, LONG)


def test_how_many_items_are_ready() -> None:
    assert [queue_size(people, 1000) for people in (0, 1, 2, 10, 1000)] == [4, 4, 6, 30, 100]
    assert queue_size(1, 0) == 0
    assert queue_size(50, 90) == 90


def test_while_there_is_much_to_learn_it_says_how_far_it_is(
    project: Small, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_module, "_PUBLISH", 0.0)
    monkeypatch.setattr(background_module, "_CHOOSE", 1e9)
    follow, seen = ProjectLearner.follow, []

    def one_at_a_time(self: ProjectLearner, answers: list[Answer], **_: Any) -> None:
        given = iter([False, True])
        follow(self, answers, patience=lambda: next(given))
        seen.append((background.learning_status.n_answers, background.learning_status.queue))

    monkeypatch.setattr(ProjectLearner, "follow", one_at_a_time)
    background = BackgroundLearner(project)
    project.tell(case.answers(25))
    with background:
        assert background.wait(25, LONG)
    assert [answers for answers, _ in seen] == [0, *range(1, 25)]
    # It chooses at first, and when it has caught up.
    assert len({queue for _, queue in seen[1:]}) == 1
    assert len(background.learning_status.queue) == 4


def test_a_journal_that_cannot_be_read_is_a_problem_until_it_can(project: Small, case: Case) -> None:
    project.broken = "the disk is gone"
    with BackgroundLearner(project) as background:
        until(lambda: "the disk is gone" in background.learning_status.problem)
        assert background.learning_status.problem == (
            "The model does not follow the labels: the disk is gone. No label is lost, and it is tried again."
        )
        project.broken = ""
        project.tell(case.answers(12))
        assert background.wait(12, LONG)
        assert background.learning_status.problem == ""
        project.broken = "it is gone again"
        until(lambda: "gone again" in background.learning_status.problem)
        # What was known is not forgotten.
        assert background.learning_status.n_labelled == 12
        project.broken = ""
        until(lambda: background.learning_status.problem == "")


def test_advice_that_cannot_be_written_is_tried_again(case: Case) -> None:
    project, tries = small(case), []

    class Full(Small):
        def advise(self, decision: Decision) -> bool:
            tries.append(decision)
            if len(tries) < 3:
                raise SufficeError("the disk is full")
            return super().advise(decision)

    full = Full(project.settings, project.X, project.events)
    full.tell(case.answers(80))
    with BackgroundLearner(full) as background:
        until(lambda: full.events.advice is not None)
        until(lambda: background.learning_status.problem == "")
    assert len(tries) == 3
    assert len(full.decisions) == 1


def test_a_failure_in_learning_is_said_and_not_tried_before_labels_change(
    project: Small, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    learning_status, tries = ProjectLearner.learning_status, []

    def fails(self: ProjectLearner, *, queue: int = 0) -> Any:
        if self.n_answers == 12:
            tries.append(queue)
            raise ZeroDivisionError
        return learning_status(self, queue=queue)

    monkeypatch.setattr(ProjectLearner, "learning_status", fails)
    answers = case.answers(13)
    with BackgroundLearner(project) as background:
        project.tell(answers[:12])
        assert not background.wait(12, LONG)
        assert "ZeroDivisionError" in background.learning_status.problem
        for _ in range(3):
            background.wake()
            assert not background.wait(12, LONG)
        time.sleep(0.1)
        assert len(tries) == 1
        project.tell(answers[12:])
        background.wake()
        assert background.wait(13, LONG)
        assert background.learning_status.problem == ""


def test_who_waits_for_what_cannot_be_learned_is_not_kept(
    project: Small, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise np.linalg.LinAlgError("it is singular")

    monkeypatch.setattr("suffice.project.project_learner.ActiveLearner.tell", fails)
    project.tell(case.answers(3))
    with BackgroundLearner(project) as background:
        assert not background.wait(3, LONG)
        assert "it is singular" in background.learning_status.problem
        with pytest.raises(SufficeError, match="it is singular"):
            background.predictions()


def test_waiting_ends(project: Small) -> None:
    background = BackgroundLearner(project)
    assert not background.wait(1, 0.01)
    with background:
        assert background.wait(0, LONG)
        assert not background.wait(1, 0.01)
    assert not background.wait(1, LONG)


def test_predictions_are_those_of_all_items(project: Small, case: Case) -> None:
    answers = case.answers(14)
    background = BackgroundLearner(project)
    with pytest.raises(SufficeError, match="not begun"):
        background.predictions()
    with background:
        project.tell(answers[:5])
        assert background.wait(5, LONG)
        with pytest.raises(SufficeError, match="begins with 10 labels, and there are 5"):
            background.predictions()
        project.tell(answers[5:])
        assert background.wait(14, LONG)
        found = background.predictions()
    by_hand = ProjectLearner(case.settings, case.X)
    by_hand.follow(answers)
    expected = by_hand.predict(case.X)
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.uncertainty, expected.uncertainty)


def test_it_ends_in_the_middle_of_learning(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    project, started = small(case), threading.Event()
    tell = ProjectLearner._tell

    def slowly(self: ProjectLearner, *given: Any) -> None:
        started.set()
        time.sleep(0.05)
        tell(self, *given)

    monkeypatch.setattr(ProjectLearner, "_tell", slowly)
    project.tell(case.answers(80))
    with BackgroundLearner(project) as background:
        assert started.wait(LONG)
    assert background.learning_status.n_answers < 80
    assert not background._thread.is_alive()
    # Once more does no harm.
    background.close()


def test_one_that_was_never_started_can_be_closed(project: Small) -> None:
    BackgroundLearner(project).close()


def test_the_same_verdict_whoever_follows_a_real_project(tmp_path: Path) -> None:
    with make(tmp_path / "pets", 40, initial=5) as project:
        order = np.random.default_rng(0).permutation(40)[:30].tolist()
        with BackgroundLearner(project) as background:
            for k, item in enumerate(order):
                person = f"person {k % 3}"
                if k % 7 == 6:
                    project.skip(item, person=person)
                else:
                    project.label(item, "cat" if project.X[item, 0] > 0.0 else "dog", person=person)
                background.wake()
            # On its way to 30 answers the learner has 29 too.
            until(lambda: background.learning_status.n_answers == 30)
            project.undo(person="person 1")
            background.wake()
            answers = project.state().answers()
            assert len(answers) == 29
            until(lambda: background.learning_status.n_answers == 29)
            kept = background.learning_status
        with BackgroundLearner(project) as again:
            assert again.wait(29, LONG)
            found = again.learning_status
        by_hand = ProjectLearner(project.settings, project.X)
        by_hand.follow(answers)
        assert found.verdict == kept.verdict == by_hand.learning_status().verdict
        assert found.errors == kept.errors == by_hand.learning_status().errors
        assert len(project.next("person 1", 3, queue=found.queue)) == 3
        _advised(project)


def _advised(project: Project) -> None:
    """What the journal says of advice is what the rule says."""
    project_learner = ProjectLearner(project.settings, project.X)
    project_learner.follow(project.state().answers())
    verdict = project_learner.learning_status().verdict
    assert verdict is not None
    assert (project.state().advice is not None) == verdict.stop
