"""Recording of a run with known labels: step by step, observed by a callback, and saved to a checkpoint."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from suffice.divergence import KLPair
from suffice.errors import InvalidValueError, TrainingDivergedError
from suffice.files import require_writable
from suffice.learner.checkpoint import fingerprint, load_checkpoint, save_checkpoint
from suffice.learner.course import Backend, SingleLabelTerms, StepResults
from suffice.learner.facts import joined_rows
from suffice.special import Floats
from suffice.trace import Relearned, Trace


class CheckpointFile(NamedTuple):
    """Path of a checkpoint, and the fingerprint of the run that it belongs to."""

    path: Path
    run: dict[str, Any]


class RunPlan(NamedTuple):
    """Length of a run, and what to do at each step."""

    steps: int
    size: int
    about: dict[str, Any]
    progress: Callable[[int, int], None] | None
    checkpoint: CheckpointFile | None
    watch: "ModelWatcher | None"
    counting: "StepCounter | None" = None


class StepCounter(NamedTuple):
    """Step fields that are counted, not computed from the model.

    Attributes:
        names: Which fields of a step are wanted.
        costs: What the label of each item costs.
        validation: Labels of the validation set.
    """

    names: frozenset[str]
    costs: Floats
    validation: int

    def along(self, first: Any, picks: Any, seconds: list[float]) -> dict[str, Any]:
        """The wanted counts after each step."""
        steps = len(picks)
        spent = self.costs[first].sum() + np.cumsum(self.costs[picks].sum(axis=1))
        found = {
            "cost": spent,
            "seconds": np.array(seconds),
            "pool_size": np.full(steps, len(self.costs)),
            "validation_labels": np.full(steps, self.validation),
        }
        return {name: values for name, values in found.items() if name in self.names}


class ModelWatcher(NamedTuple):
    """Calls the caller's function with the current model, pipeline included."""

    look: Callable[[Any], Mapping[str, Any]]
    prepared: Any

    def at(self, backend: Backend) -> dict[str, Any]:
        """What the function returns for the current model."""
        model = backend.current_model()
        return {name: np.asarray(value).tolist() for name, value in self.look(self.prepared.joined(model)).items()}


def checkpoint_file(checkpoint: Path | str | None, backend: Backend, parts: dict[str, Any]) -> CheckpointFile | None:
    """The file that a run is saved in, if any; ``parts`` distinguish the run from others.

    Raises:
        InvalidValueError: The backend does not support checkpoints.
        SufficeError: It cannot be saved there.
    """
    if checkpoint is None:
        return None
    if not backend.supports_checkpoints:
        raise InvalidValueError("checkpoint is for networks; the other models run a pool in seconds, so leave it out")
    require_writable(Path(checkpoint), "the run")
    return CheckpointFile(Path(checkpoint), fingerprint(**parts))


class RunRecorder:
    """Runs the steps of a plan and collects their results."""

    def __init__(self, backend: Backend, labels: Any, first: Any, plan: RunPlan) -> None:
        self.backend, self.labels, self.first, self.plan = backend, labels, first, plan
        self.results: list[StepResults | SingleLabelTerms] = []
        self.picks: list[Any] = []
        self.relearned: list[Relearned] = []
        self.watched: list[Mapping[str, Any]] = []
        self.done = 0
        self.seconds: list[float] = []
        self._since = time.monotonic()

    def begin(self) -> None:
        """Learn the initial labels, or continue a saved run."""
        saved = self.plan.checkpoint
        state = None if saved is None else load_checkpoint(saved.path, saved.run)
        if state is None:
            self.backend.begin(self.first, self.labels[self.first])
            self.save()
            return
        self.backend.restore(state["course"], self.labels)
        past, size = self.backend.relearn(), self.plan.size
        self.done = min(len(past.kl_new_old), self.plan.steps)
        items = np.array(state["course"]["indices"], dtype=np.intp)[len(self.first) :]
        self.picks, self.results = [items[: self.done * size]], [past.first(self.done)]
        self.seconds = [0.0] * self.done
        self.watched = [] if self.plan.watch is None else list(state["watched"])[: self.done]
        if self.plan.watch is not None and len(self.watched) < self.done:
            raise InvalidValueError(
                f"checkpoint {saved and saved.path} was saved without watch; leave watch out, or start over"
            )

    def step(self) -> None:
        """One step, or several that are known already."""
        plan, backend = self.plan, self.backend
        due, left = backend.until_relearning(), 1 if plan.watch is not None else plan.steps - self.done
        most = left if due is None else max(1, min(left, due))
        chosen = backend.propose(most) if plan.size == 1 else backend.batch(plan.size)
        result = backend.learn(chosen, self.labels[chosen], together=plan.size > 1)
        self.picks.append(chosen)
        self.done += len(chosen) if plan.size == 1 else 1
        if backend.until_relearning() == 0:
            history = backend.relearn()
            self.relearned.append(relearned(self.done - 1, history, backend))
            result = _ending(StepResults.joined([result]), history)
        self.results.append(result)
        if plan.watch is not None:
            self.watched.append(plan.watch.at(backend))
            self._require_other_names(self.watched[-1], result)
        # Of steps that were taken up from a saved run, the time is not known any more: it counts from there.
        self.seconds += [time.monotonic() - self._since] * (self.done - len(self.seconds))
        self.save()

    def _require_other_names(self, watched: Mapping[str, Any], result: StepResults | SingleLabelTerms) -> None:
        taken = (set(result.measures) | (self.plan.counting.names if self.plan.counting else set())) & set(watched)
        if taken:
            raise InvalidValueError(f"watch gives {min(taken)}, which is recorded already; give it another name")

    def save(self) -> None:
        """Save the run if it has a checkpoint."""
        if self.plan.checkpoint is not None:
            state = {"course": self.backend.state(), "watched": self.watched}
            save_checkpoint(self.plan.checkpoint.path, self.plan.checkpoint.run, state)


def record_run(backend: Backend, labels: Any, first: Any, plan: RunPlan) -> Trace:
    """Run the steps of a plan and return their trace."""
    recorder = RunRecorder(backend, labels, first, plan)
    try:
        recorder.begin()
        while recorder.done < plan.steps:
            recorder.step()
            if plan.progress is not None:
                plan.progress(recorder.done, plan.steps)
    except TrainingDivergedError as error:
        if plan.checkpoint is None or not plan.checkpoint.path.exists():
            raise
        raise TrainingDivergedError(f"{error}. The run up to there is saved in {plan.checkpoint.path}") from None
    found = StepResults.joined(recorder.results)
    indices, size = np.concatenate([np.zeros(0, dtype=np.intp), *recorder.picks]), plan.size
    names = recorder.watched[0] if recorder.watched else ()
    counted = {} if plan.counting is None else plan.counting.along(first, indices.reshape(-1, size), recorder.seconds)
    return Trace(
        initial=first,
        indices=indices if size == 1 else indices.reshape(-1, size),
        n_labelled=len(first) + size * np.arange(1, plan.steps + 1),
        kl_new_old=found.kl_new_old,
        kl_old_new=found.kl_old_new,
        error=found.error,
        relearned=tuple(recorder.relearned),
        estimated=found.estimated,
        about=plan.about,
        measures={
            **found.measures,
            **counted,
            **{name: np.array([each[name] for each in recorder.watched]) for name in names},
        },
    )


def _ending(result: StepResults, history: StepResults) -> StepResults:
    """The result with its last step as the hyper-parameters learned after it see it."""
    new_old, old_new, error = (
        np.append(getattr(result, name)[:-1], getattr(history, name)[-1:])
        for name in ("kl_new_old", "kl_old_new", "error")
    )
    last = {name: values[-1:] for name, values in history.measures.items()}
    before = {name: values[: len(new_old) - 1] for name, values in result.measures.items()}
    measures = {name: joined_rows([before[name], last[name]]) if name in before else last[name] for name in last}
    return StepResults(KLPair(new_old, old_new), error, result.estimated, measures or result.measures)


def relearned(step: int, history: StepResults, backend: Backend) -> Relearned:
    """The past as hyper-parameters learned after a step see it."""
    revised = {name: history.measures[name] for name in backend.revises}
    return Relearned(step, history.kl_new_old, history.kl_old_new, revised)
