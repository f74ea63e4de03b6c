"""An object that only one thread may use says so to the second one."""

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import suffice as sf
from suffice.errors import SufficeError
from suffice.models import BayesianLogistic
from suffice.models.threads import SingleUse, one_at_a_time

X = np.random.default_rng(0).normal(size=(60, 2))
LABELS = np.where(X[:, 0] > 0.0, "a", "b")


class Counter:
    def __init__(self) -> None:
        self._single_use = SingleUse()
        self.count = 0

    @one_at_a_time
    def add(self, inside: Callable[[], object] = lambda: None) -> int:
        """Add one."""
        self.count += 1
        inside()
        return self.count

    @one_at_a_time
    def add_two(self) -> int:
        return self.add() + self.add() - self.count + 1


def elsewhere(work: Callable[[], Any]) -> list[Any]:
    """What work returns or raises in another thread."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(work())
        except SufficeError as error:
            found.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found


def test_a_second_thread_is_refused_while_the_first_is_inside() -> None:
    counter, found = Counter(), []
    assert counter.add(lambda: found.extend(elsewhere(counter.add))) == 1
    assert found == [
        "another thread is using this object; use one for each thread, or protect it with a threading.Lock"
    ]
    # Afterwards, from a method to another, and after an error it is free.
    assert elsewhere(counter.add) == [2]
    assert counter.add_two() == 4
    with pytest.raises(ZeroDivisionError):
        counter.add(lambda: 1 // 0)
    assert elsewhere(counter.add) == [6]
    assert counter.add.__doc__ == "Add one."


def test_a_copy_is_used_for_itself() -> None:
    counter, found = Counter(), []
    with counter._single_use:
        found += [elsewhere(each.add) for each in (copy.deepcopy(counter), pickle.loads(pickle.dumps(counter)))]
    assert found == [[1], [1]]


def test_a_learner_and_a_monitor_are_used_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, monitor = sf.ActiveLearner(BayesianLogistic(), X), sf.StopMonitor(X)
    first = learner.ask(10)
    learner.tell(first, LABELS[first])
    model = LogisticRegression().fit(X[:20], LABELS[:20])
    monitor.update(model, np.arange(20), LABELS[:20])
    (item,) = learner.ask()
    judge, calls, found = sf.LabelWorth.judge, list[Callable[[], Any]](), list[Any]()

    def judged(self: sf.LabelWorth, step: sf.Step) -> sf.Verdict:
        while calls:
            found.extend(elsewhere(calls.pop()))
        return judge(self, step)

    monkeypatch.setattr(sf.LabelWorth, "judge", judged)
    other = next(each for each in range(60) if each not in (*first, item))
    calls += [lambda: learner.tell(other, LABELS[other]), learner.ask, learner.decision, learner.trace]
    learner.tell(item, LABELS[item])
    assert learner.labelled == [*first, item]
    calls += [lambda: monitor.update(model, np.arange(22), LABELS[:22]), monitor.decision, monitor.state_dict]
    monitor.update(model, np.arange(21), LABELS[:21])
    assert len(monitor.labels) == 21
    assert len(found) == 7
    assert all(str(each).startswith("another thread is using this object") for each in found)
