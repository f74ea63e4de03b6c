"""A run with known labels as it is written down: step by step, watched, and saved on the way."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from suffice.divergence import KLPair
from suffice.errors import InvalidValueError, TrainingDivergedError
from suffice.files import require_writable
from suffice.learner.checkpoint import fingerprint, load_checkpoint, save_checkpoint
from suffice.learner.course import Course, Labels, Outcome
from suffice.learner.facts import joined_rows
from suffice.learner.networks import NetworkCourse
from suffice.special import Floats
from suffice.trace import Relearned, Trace


class Place(NamedTuple):
    """Where a run is saved, and how it is known again."""

    path: Path
    run: dict[str, Any]


class Plan(NamedTuple):
    """How far a run goes, and what is made of it."""

    steps: int
    size: int
    about: dict[str, Any]
    progress: Callable[[int, int], None] | None
    place: Place | None
    watch: "Watch | None"
    counting: "Counting | None" = None


class Counting(NamedTuple):
    """What is counted along a run rather than asked of its model.

    Attributes:
        names: Which fields of a step are wanted.
        costs: What the label of each item costs.
        validation: Labels of the validation set.
    """

    names: frozenset[str]
    costs: Floats
    validation: int

    def along(self, first: Any, picks: Any, seconds: list[float]) -> dict[str, Any]:
        """The counts after each step, of those that are wanted."""
        steps = len(picks)
        spent = self.costs[first].sum() + np.cumsum(self.costs[picks].sum(axis=1))
        found = {
            "cost": spent,
            "seconds": np.array(seconds),
            "pool_size": np.full(steps, len(self.costs)),
            "validation_labels": np.full(steps, self.validation),
        }
        return {name: values for name, values in found.items() if name in self.names}


class Watch(NamedTuple):
    """What the caller wants to see of the model, as he knows it: with its pipeline."""

    look: Callable[[Any], Mapping[str, Any]]
    prepared: Any

    def at(self, course: Course) -> dict[str, Any]:
        """What is seen now."""
        model = course.model if isinstance(course, NetworkCourse) else course.fitted()
        return {name: np.asarray(value).tolist() for name, value in self.look(self.prepared.joined(model)).items()}


def new_place(checkpoint: Path | str | None, course: Course, parts: dict[str, Any]) -> Place | None:
    """Where a run is saved, if it is; ``parts`` tell it from others.

    Raises:
        InvalidValueError: The model is no network.
        SufficeError: It cannot be saved there.
    """
    if checkpoint is None:
        return None
    if not isinstance(course, NetworkCourse):
        raise InvalidValueError("checkpoint is for networks; the other models run a pool in seconds, so leave it out")
    require_writable(Path(checkpoint), "the run")
    return Place(Path(checkpoint), fingerprint(**parts))


class Record:
    """A run as it is written down."""

    def __init__(self, course: Course, labels: Any, first: Any, plan: Plan) -> None:
        self.course, self.labels, self.first, self.plan = course, labels, first, plan
        self.outcomes: list[Outcome | Labels] = []
        self.picks: list[Any] = []
        self.relearned: list[Relearned] = []
        self.watched: list[Mapping[str, Any]] = []
        self.done = 0
        self.seconds: list[float] = []
        self._since = time.monotonic()

    def begin(self) -> None:
        """Learn the initial labels, or take up a saved run."""
        place = self.plan.place
        state = None if place is None else load_checkpoint(place.path, place.run)
        if state is None:
            self.course.begin(self.first, self.labels[self.first])
            self.save()
            return
        assert isinstance(self.course, NetworkCourse)
        self.course.restore(state["course"], self.labels)
        past, size = self.course.relearn(), self.plan.size
        self.done = min(len(past.kl_new_old), self.plan.steps)
        items = np.array(state["course"]["indices"], dtype=np.intp)[len(self.first) :]
        self.picks, self.outcomes = [items[: self.done * size]], [past.first(self.done)]
        self.seconds = [0.0] * self.done
        self.watched = [] if self.plan.watch is None else list(state["watched"])[: self.done]
        if self.plan.watch is not None and len(self.watched) < self.done:
            raise InvalidValueError(
                f"checkpoint {place and place.path} was saved without watch; leave watch out, or start over"
            )

    def step(self) -> None:
        """One step, or several that are known already."""
        plan, course = self.plan, self.course
        due, left = course.until_relearning(), 1 if plan.watch is not None else plan.steps - self.done
        most = left if due is None else max(1, min(left, due))
        chosen = course.propose(most) if plan.size == 1 else course.batch(plan.size)
        outcome = course.learn(chosen, self.labels[chosen], together=plan.size > 1)
        self.picks.append(chosen)
        self.done += len(chosen) if plan.size == 1 else 1
        if course.until_relearning() == 0:
            history = course.relearn()
            self.relearned.append(relearned(self.done - 1, history, course))
            outcome = _ending(Outcome.joined([outcome]), history)
        self.outcomes.append(outcome)
        if plan.watch is not None:
            self.watched.append(plan.watch.at(course))
            self._require_other_names(self.watched[-1], outcome)
        # Of steps that were taken up from a saved run, the time is not known any more: it counts from there.
        self.seconds += [time.monotonic() - self._since] * (self.done - len(self.seconds))
        self.save()

    def _require_other_names(self, watched: Mapping[str, Any], outcome: Outcome | Labels) -> None:
        recorded = set(outcome.measures if isinstance(outcome, Outcome) else ())
        taken = (recorded | (self.plan.counting.names if self.plan.counting else set())) & set(watched)
        if taken:
            raise InvalidValueError(f"watch gives {min(taken)}, which is recorded already; give it another name")

    def save(self) -> None:
        """Save the run, if it is to be saved."""
        if self.plan.place is not None:
            assert isinstance(self.course, NetworkCourse)
            state = {"course": self.course.state(), "watched": self.watched}
            save_checkpoint(self.plan.place.path, self.plan.place.run, state)


def record_run(course: Course, labels: Any, first: Any, plan: Plan) -> Trace:
    """Take the steps, and write them down."""
    record = Record(course, labels, first, plan)
    try:
        record.begin()
        while record.done < plan.steps:
            record.step()
            if plan.progress is not None:
                plan.progress(record.done, plan.steps)
    except TrainingDivergedError as error:
        if plan.place is None or not plan.place.path.exists():
            raise
        raise TrainingDivergedError(f"{error}. The run up to there is saved in {plan.place.path}") from None
    found = Outcome.joined(record.outcomes)
    indices, size = np.concatenate([np.zeros(0, dtype=np.intp), *record.picks]), plan.size
    names = record.watched[0] if record.watched else ()
    counted = {} if plan.counting is None else plan.counting.along(first, indices.reshape(-1, size), record.seconds)
    return Trace(
        initial=first,
        indices=indices if size == 1 else indices.reshape(-1, size),
        n_labelled=len(first) + size * np.arange(1, plan.steps + 1),
        kl_new_old=found.kl_new_old,
        kl_old_new=found.kl_old_new,
        error=found.error,
        relearned=tuple(record.relearned),
        estimated=found.estimated,
        about=plan.about,
        measures={
            **found.measures,
            **counted,
            **{name: np.array([each[name] for each in record.watched]) for name in names},
        },
    )


def _ending(outcome: Outcome, history: Outcome) -> Outcome:
    """The outcome with its last step as the hyper-parameters learned after it see it."""
    new_old, old_new, error = (
        np.append(getattr(outcome, name)[:-1], getattr(history, name)[-1:])
        for name in ("kl_new_old", "kl_old_new", "error")
    )
    last = {name: values[-1:] for name, values in history.measures.items()}
    before = {name: values[: len(new_old) - 1] for name, values in outcome.measures.items()}
    measures = {name: joined_rows([before[name], last[name]]) if name in before else last[name] for name in last}
    return Outcome(KLPair(new_old, old_new), error, outcome.estimated, measures or outcome.measures)


def relearned(step: int, history: Outcome, course: Course) -> Relearned:
    """The past as hyper-parameters learned after a step see it."""
    revised = {name: history.measures[name] for name in course.revises}
    return Relearned(step, history.kl_new_old, history.kl_old_new, revised)
