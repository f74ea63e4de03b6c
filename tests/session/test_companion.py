"""A model that learns in the background: it keeps up, says what it knows, and never dies in silence."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.criteria import Verdict
from suffice.errors import SufficeError
from suffice.session import companion as companion_module
from suffice.session.companion import Companion, queue_size
from suffice.session.events import Event, EventKind
from suffice.session.learning import Follower
from suffice.session.project import Project
from suffice.session.settings import Settings
from suffice.session.state import Call, State
from suffice.special import Floats
from tests.session.following import CASES, Case
from tests.session.making_projects import make

# Seconds after which a test gives up; nothing takes that long.
LONG = 60.0


@dataclass
class Small:
    """A project in memory."""

    settings: Settings
    X: Floats
    events: State
    lock: Any = field(default_factory=threading.RLock)
    verdicts: list[Verdict] = field(default_factory=list)
    broken: str = ""

    def state(self) -> State:
        if self.broken:
            raise SufficeError(self.broken)
        return self.events

    def advise(self, verdict: Verdict) -> bool:
        self.verdicts.append(verdict)
        kind = EventKind.advised if verdict.stop else EventKind.withdrawn
        self.add(kind, data={"n_labelled": verdict.n_labelled, "reason": verdict.reason})
        return True

    def add(self, kind: EventKind, person: str = "", item: int | None = None, **changes: Any) -> None:
        with self.lock:
            self.events.apply(Event(kind, person, item, seq=self.events.seq + 1, at=time.time(), **changes))

    def tell(self, calls: list[Call], person: str = "ann") -> None:
        for call in calls:
            if call.label is None:
                self.add(EventKind.skipped, person, call.item)
            else:
                self.add(EventKind.labelled, person, call.item, data={"label": call.label})


def small(case: Case) -> Small:
    return Small(case.settings, case.X, State(len(case.X)))


def until(holds: Callable[[], bool]) -> None:
    """Wait for what a thread does."""
    end = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(companion_module, "_POLL", 0.02)


@pytest.fixture(params=["three classes", "process"])
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def project(case: Case) -> Iterator[Small]:
    before = threading.active_count()
    yield small(case)
    assert threading.active_count() == before


def test_it_learns_what_comes(project: Small, case: Case) -> None:
    calls = case.calls(30, skips=2)
    with Companion(project) as companion:
        for n in (1, 12, 30):
            project.tell(calls[project.events.n_labelled + project.events.n_skipped : n])
            companion.wake()
            assert companion.wait(n, LONG)
            by_hand = Follower(case.settings, case.X)
            by_hand.follow(calls[:n])
            expected, found = by_hand.insight(), companion.insight
            assert (found.verdict, found.curve, found.errors, found.purchase) == (
                expected.verdict,
                expected.curve,
                expected.errors,
                expected.purchase,
            )
            assert found.problem == ""
            assert len(found.queue) == 4
            assert not set(found.queue) & {call.item for call in calls[:n]}


def test_it_sees_what_others_wrote_without_being_woken(project: Small, case: Case) -> None:
    with Companion(project) as companion:
        until(lambda: bool(companion.insight.queue))
        project.tell(case.calls(11))
        assert companion.wait(11, LONG)
        assert companion.insight.n_labelled == 11


def test_a_label_that_is_taken_back_is_forgotten(project: Small, case: Case) -> None:
    calls = case.calls(20)
    project.tell(calls)
    with Companion(project) as companion:
        assert companion.wait(20, LONG)
        undone = project.events.newest_act("ann")
        assert undone is not None
        project.add(EventKind.undone, "ann", undone.item, data={"of": undone.seq})
        companion.wake()
        until(lambda: companion.insight.calls == 19)
    by_hand = Follower(case.settings, case.X)
    by_hand.follow(calls[:19])
    assert companion.insight.verdict == by_hand.insight().verdict


def test_advice_is_given_and_withdrawn_when_it_changes(project: Small, case: Case) -> None:
    with Companion(project) as companion:
        # All but one, which leaves the rule to judge, and then nothing.
        calls = case.calls(80)
        for n in range(1, 81):
            project.tell(calls[n - 1 : n])
            companion.wake()
            assert companion.wait(n, LONG)
            until(lambda: (project.events.advice is not None) == _stops(companion))
        undone = project.events.newest_act("ann")
        assert undone is not None
        project.add(EventKind.undone, "ann", undone.item, data={"of": undone.seq})
        until(lambda: companion.insight.calls == 79)
        until(lambda: (project.events.advice is not None) == _stops(companion))
    # Nothing is said twice.
    assert [verdict.stop for verdict in project.verdicts] == [k % 2 == 0 for k in range(len(project.verdicts))]
    assert project.verdicts[0].stop


def _stops(companion: Companion) -> bool:
    verdict = companion.insight.verdict
    return verdict is not None and verdict.stop


def test_more_people_have_more_items_ready(project: Small, case: Case) -> None:
    calls = case.calls(15)
    with Companion(project) as companion:
        for k, call in enumerate(calls[:5]):
            project.tell([call], person=f"person {k}")
        companion.wake()
        until(lambda: len(companion.insight.queue) == 15)
        assert companion.wait(5, LONG)


def test_how_many_items_are_ready() -> None:
    assert [queue_size(people, 1000) for people in (0, 1, 2, 10, 1000)] == [4, 4, 6, 30, 100]
    assert queue_size(1, 0) == 0
    assert queue_size(50, 90) == 90


def test_while_there_is_much_to_learn_it_says_how_far_it_is(
    project: Small, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(companion_module, "_PUBLISH", 0.0)
    monkeypatch.setattr(companion_module, "_CHOOSE", 1e9)
    follow, seen = Follower.follow, []

    def one_at_a_time(self: Follower, calls: list[Call], **_: Any) -> None:
        given = iter([False, True])
        follow(self, calls, patience=lambda: next(given))
        seen.append((companion.insight.calls, companion.insight.queue))

    monkeypatch.setattr(Follower, "follow", one_at_a_time)
    companion = Companion(project)
    project.tell(case.calls(25))
    with companion:
        assert companion.wait(25, LONG)
    assert [calls for calls, _ in seen] == [0, *range(1, 25)]
    # It chooses at first, and when it has caught up.
    assert len({queue for _, queue in seen[1:]}) == 1
    assert len(companion.insight.queue) == 4


def test_a_journal_that_cannot_be_read_is_a_problem_until_it_can(project: Small, case: Case) -> None:
    project.broken = "the disk is gone"
    with Companion(project) as companion:
        until(lambda: "the disk is gone" in companion.insight.problem)
        assert companion.insight.problem == (
            "The model does not follow the labels: the disk is gone. No label is lost, and it is tried again."
        )
        project.broken = ""
        project.tell(case.calls(12))
        assert companion.wait(12, LONG)
        assert companion.insight.problem == ""
        project.broken = "it is gone again"
        until(lambda: "gone again" in companion.insight.problem)
        # What was known is not forgotten.
        assert companion.insight.n_labelled == 12
        project.broken = ""
        until(lambda: companion.insight.problem == "")


def test_advice_that_cannot_be_written_is_tried_again(case: Case) -> None:
    project, tries = small(case), []

    class Full(Small):
        def advise(self, verdict: Verdict) -> bool:
            tries.append(verdict)
            if len(tries) < 3:
                raise SufficeError("the disk is full")
            return super().advise(verdict)

    full = Full(project.settings, project.X, project.events)
    full.tell(case.calls(80))
    with Companion(full) as companion:
        until(lambda: full.events.advice is not None)
        until(lambda: companion.insight.problem == "")
    assert len(tries) == 3
    assert len(full.verdicts) == 1


def test_a_failure_in_learning_is_said_and_not_tried_before_labels_change(
    project: Small, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    insight, tries = Follower.insight, []

    def fails(self: Follower, *, queue: int = 0) -> Any:
        if self.calls == 12:
            tries.append(queue)
            raise ZeroDivisionError
        return insight(self, queue=queue)

    monkeypatch.setattr(Follower, "insight", fails)
    calls = case.calls(13)
    with Companion(project) as companion:
        project.tell(calls[:12])
        assert not companion.wait(12, LONG)
        assert "ZeroDivisionError" in companion.insight.problem
        for _ in range(3):
            companion.wake()
            assert not companion.wait(12, LONG)
        time.sleep(0.1)
        assert len(tries) == 1
        project.tell(calls[12:])
        companion.wake()
        assert companion.wait(13, LONG)
        assert companion.insight.problem == ""


def test_who_waits_for_what_cannot_be_learned_is_not_kept(
    project: Small, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise np.linalg.LinAlgError("it is singular")

    monkeypatch.setattr("suffice.session.learning.ActiveLearner.tell", fails)
    project.tell(case.calls(3))
    with Companion(project) as companion:
        assert not companion.wait(3, LONG)
        assert "it is singular" in companion.insight.problem
        with pytest.raises(SufficeError, match="it is singular"):
            companion.predictions()


def test_waiting_ends(project: Small) -> None:
    companion = Companion(project)
    assert not companion.wait(1, 0.01)
    with companion:
        assert companion.wait(0, LONG)
        assert not companion.wait(1, 0.01)
    assert not companion.wait(1, LONG)


def test_predictions_are_those_of_all_items(project: Small, case: Case) -> None:
    calls = case.calls(14)
    companion = Companion(project)
    with pytest.raises(SufficeError, match="not begun"):
        companion.predictions()
    with companion:
        project.tell(calls[:5])
        assert companion.wait(5, LONG)
        with pytest.raises(SufficeError, match="begins with 10 labels, and there are 5"):
            companion.predictions()
        project.tell(calls[5:])
        assert companion.wait(14, LONG)
        found = companion.predictions()
    by_hand = Follower(case.settings, case.X)
    by_hand.follow(calls)
    expected = by_hand.predict(case.X)
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.uncertainty, expected.uncertainty)


def test_it_ends_in_the_middle_of_learning(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    project, started = small(case), threading.Event()
    tell = Follower._tell

    def slowly(self: Follower, *given: Any) -> None:
        started.set()
        time.sleep(0.05)
        tell(self, *given)

    monkeypatch.setattr(Follower, "_tell", slowly)
    project.tell(case.calls(80))
    with Companion(project) as companion:
        assert started.wait(LONG)
    assert companion.insight.calls < 80
    assert not companion._thread.is_alive()
    # Once more does no harm.
    companion.close()


def test_one_that_was_never_started_can_be_closed(project: Small) -> None:
    Companion(project).close()


def test_the_same_verdict_whoever_follows_a_real_project(tmp_path: Path) -> None:
    with make(tmp_path / "pets", 40, initial=5) as project:
        order = np.random.default_rng(0).permutation(40)[:30].tolist()
        with Companion(project) as companion:
            for k, item in enumerate(order):
                person = f"person {k % 3}"
                if k % 7 == 6:
                    project.skip(item, person=person)
                else:
                    project.label(item, "cat" if project.X[item, 0] > 0.0 else "dog", person=person)
                companion.wake()
            project.undo(person="person 1")
            calls = project.state().calls()
            assert len(calls) == 29
            until(lambda: companion.insight.calls == 29)
            kept = companion.insight
        with Companion(project) as again:
            assert again.wait(29, LONG)
            found = again.insight
        by_hand = Follower(project.settings, project.X)
        by_hand.follow(calls)
        assert found.verdict == kept.verdict == by_hand.insight().verdict
        assert found.errors == kept.errors == by_hand.insight().errors
        assert len(project.next("person 1", 3, queue=found.queue)) == 3
        _advised(project)


def _advised(project: Project) -> None:
    """What the journal says of advice is what the rule says."""
    follower = Follower(project.settings, project.X)
    follower.follow(project.state().calls())
    verdict = follower.insight().verdict
    assert verdict is not None
    assert (project.state().advice is not None) == verdict.stop
