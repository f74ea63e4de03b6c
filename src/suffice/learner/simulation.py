"""Runs with every label known: simulation, audit, recording, and checkpoints that resume an interrupted run."""

import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np

from suffice.arguments import whole
from suffice.checks import Guarantee
from suffice.criteria import Budget, Criterion, LabelWorth
from suffice.criteria.base import require_rule
from suffice.criteria.step_and_verdict import Known, Verdict
from suffice.divergence import KLPair
from suffice.engines.disk_rows import DiskRows
from suffice.engines.worker_rows import WorkerRows
from suffice.errors import CheckpointError, InvalidValueError, TrainingDivergedError
from suffice.files import require_writable, write_whole
from suffice.learner.active import ActiveLearner
from suffice.learner.array_identity import described_array, is_same_array
from suffice.learner.backend import (
    TEST_LOSSES,
    Backend,
    ItemSelection,
    LearnedSteps,
    RunSettings,
    StepResults,
    acquisition_and_share,
    relearned,
)
from suffice.learner.decided_run import StopSearch, stop_search
from suffice.learner.learning_loop import BackendView, CountedFields, LearningLoop
from suffice.learner.own_acquisition import (
    AcquisitionFunction,
    checked_function,
    own_acquisition,
    shown_acquisition,
)
from suffice.learner.prepare import (
    PreparedModel,
    first_items,
    generator,
    known_labels,
    label_costs,
    labelled_set,
    number_type,
    pool_device,
    pool_rows,
    prepare,
    provided_fields,
    require_provided,
    seed_name,
    usable_may_miss,
    validation_set,
)
from suffice.learner.step_inputs import (
    CLASS_COUNT_FIELDS,
    COUNTED_FIELDS,
    StopSet,
    classes_seen,
    new_step_inputs,
    optional_fields,
    requested_fields,
)
from suffice.models.threads import one_thread
from suffice.numerics import Floats
from suffice.session.guarantee_rules import ErrorGuarantee, RecallGuarantee, guarantee_rules
from suffice.session.model_check import FrozenModel, ModelCheck
from suffice.session.random_losses import RandomLabelLosses
from suffice.session.recorded_steps import DIVERGENCES, Relearned, joined_rows
from suffice.session.session import Session
from suffice.trace import DeferredMeasures, RecordedCheck, Trace

# A plan is computed again after this share of the labels that it expects before its check, or of the present labels if
# it expects no check.
_LOOK_AHEAD: Final = 0.25
_REPLANNED: Final = 0.1
# A sequential check is given up at this multiple of the largest number of answers that was expected.
_GIVEN_UP: Final = 2.0
# Seconds between two checkpoints of labels.
_SAVED_EVERY: Final = 1.0
# Counts that cost nothing. The other fields of the default rule are computed when they are read, if possible.
_CHEAP_COUNTS: Final = frozenset({"cost", "seconds", "pool_size", "validation_labels"}) | CLASS_COUNT_FIELDS
# Labels after the initial ones for which memory is allocated at the start of a run that a rule ends.
_EXPECTED_BY_RULE: Final = 256
# With a stopping rule, at most as many labels are learned at once as there are, and at least this many are allowed.
_LEAST_BLOCK: Final = 64


class CheckpointFile(NamedTuple):
    """Path of a checkpoint, the fingerprint of its run, and whether it contains labels to replay."""

    path: Path
    run: dict[str, Any]
    replays: bool = False


class RunPlan(NamedTuple):
    """Length of a run, and the actions at each step."""

    steps: int
    size: int
    about: dict[str, Any]
    progress: Callable[[int, int], None] | None
    checkpoint: CheckpointFile | None
    watch: "ModelWatcher | None"
    counting: "StepCounter | None" = None
    first_random: bool = False
    X: Any = None
    # Whether predictions after each label are compared with earlier ones.
    compares: bool = False
    # The rule that ends the run, if any.
    rule: Criterion | None = None
    # Fields of a step that are computed only when they are read from the trace.
    deferred: frozenset[str] = frozenset()
    # Makes the decisions of the run, if they are wanted.
    search: StopSearch | None = None

    @property
    def calibrated(self) -> bool:
        """Whether the losses of random labels are recorded."""
        return self._counts({"calibration", "random_labels"})

    @property
    def one_by_one(self) -> bool:
        """Whether something is measured after each label, so that labels cannot be learned in blocks."""
        if self.search is not None and self.search.active:
            return True
        return self.watch is not None or self.compares or (self.rule is not None and self._counts({"seconds"}))

    def _counts(self, names: set[str]) -> bool:
        return self.counting is not None and not self.counting.names.isdisjoint(names)


class StepCounter(NamedTuple):
    """Step fields that are counted, not computed from the model.

    Attributes:
        names: Which fields of a step are wanted.
        costs: What the label of each item costs.
        validation: Labels of the validation set.
        labels: The label of each item, for classes; None for numbers.
    """

    names: frozenset[str]
    costs: Floats
    validation: int
    labels: Any = None

    def along(
        self, first: Any, picks: Any, seconds: list[float], calibration: list[tuple[float, int]]
    ) -> dict[str, Any]:
        """The wanted counts after each step; the others are not computed."""
        steps = len(picks)
        counts: dict[str, Callable[[], Any]] = {
            "cost": lambda: self.costs[first].sum() + np.cumsum(self.costs[picks].sum(axis=1)),
            "seconds": lambda: np.array(seconds),
            "pool_size": lambda: np.full(steps, len(self.costs)),
            "validation_labels": lambda: np.full(steps, self.validation),
            "calibration": lambda: np.array([ratio for ratio, _ in calibration]),
            "random_labels": lambda: np.array([count for _, count in calibration], dtype=np.intp),
        }
        if self.labels is not None:
            counts["classes_seen"] = lambda: classes_seen(self.labels[first], self.labels[picks])
        return {name: count() for name, count in counts.items() if name in self.names}


class ModelWatcher(NamedTuple):
    """Calls the caller's function with the current model, pipeline included."""

    look: Callable[[Any], Mapping[str, Any]]
    prepared: Any

    def at(self, backend: Backend) -> dict[str, Any]:
        """Result of the function for the current model."""
        model = backend.watched_model()
        return {name: np.asarray(value).tolist() for name, value in self.look(self.prepared.joined(model)).items()}


def checkpoint_file(
    checkpoint: Path | str | None, backend: Backend, parts: Callable[[], dict[str, Any]]
) -> CheckpointFile | None:
    """The file that a run is saved in, if any; ``parts`` returns what distinguishes the run from others.

    Raises:
        InvalidValueError: The backend does not support checkpoints.
        SufficeError: It cannot be saved there.
    """
    if checkpoint is None:
        return None
    if not backend.supports_checkpoints and not backend.replays:
        raise InvalidValueError(
            "checkpoint is for networks, Gaussian processes, ridge and logistic regression; leave it out for this model"
        )
    require_writable(Path(checkpoint), "the run")
    return CheckpointFile(Path(checkpoint), fingerprint(**parts()), backend.replays)


class RunRecorder:
    """Runs the steps of a plan and collects their results."""

    def __init__(self, selection: ItemSelection, labels: Any, first: Any, plan: RunPlan) -> None:
        self.selection, self.labels, self.first, self.plan = selection, labels, first, plan
        self.backend = selection.backend
        self.random: list[Any] = [first] if plan.first_random else []
        self.random_losses = RandomLabelLosses(self.backend.task)
        self.calibration: list[tuple[float, int]] = []
        self.results: list[LearnedSteps] = []
        self.picks: list[Any] = []
        # Labels by item, and the number of picks that they include.
        self._known: dict[int, Any] = {}
        self._noted = 0
        self.relearned: list[Relearned] = []
        self.watched: list[Mapping[str, Any]] = []
        self.done = 0
        self.verdict: Verdict | None = None
        self._rule = None if plan.rule is None else plan.rule.copy()
        if self._rule is not None:
            self._rule.reset()
        self.seconds: list[float] = []
        self._since = time.monotonic()
        # Whether the initial labels or the labels of a saved run are learned; and the time of the last save.
        self.begun, self._saved_at = False, self._since

    def begin(self) -> None:
        """Learn the initial labels, or continue a saved run."""
        saved = self.plan.checkpoint
        if saved is not None and saved.replays:
            steps = load_steps(saved.path, saved.run)
            self._learn_first()
            if steps is not None:
                self._repeat(steps)
        else:
            state = None if saved is None else load_checkpoint(saved.path, saved.run)
            if state is None:
                self._learn_first()
                self.save()
            else:
                self.selection.begin(self.first)
                self._restore(state)
        self.begun = True

    def _learn_first(self) -> None:
        self.selection.begin(self.first)
        if self.plan.first_random and self.selection.draws_at_random:
            self.backend.mark_random(self.first)
        self.backend.begin(self.first, self.labels[self.first])
        if self.plan.search is not None:
            random = self.first if self.plan.first_random else self.first[:0]
            self.plan.search.loop.start(self.first, self.labels[self.first], random)

    def repeat(self, steps: "SavedSteps") -> None:
        """Learn the initial labels and those of another run, in the same steps."""
        self._learn_first()
        self._repeat(steps)

    def _repeat(self, steps: "SavedSteps") -> None:
        """Learn the labels of a saved run again, in the same steps."""
        random = np.array(steps.random, dtype=np.intp)
        for group in steps.groups:
            left = self.plan.steps - self.done
            if left <= 0:
                break
            chosen = np.array(group, dtype=np.intp)[: left if self.plan.size == 1 else None]
            single = self.plan.size == 1 and self.plan.one_by_one
            for part in np.split(chosen, len(chosen)) if single else [chosen]:
                self._learn(part, np.isin(part, random))
        self.seconds = steps.seconds[: self.done]
        self._since = time.monotonic() - (self.seconds[-1] if self.seconds else 0.0)

    def _restore(self, state: dict[str, Any]) -> None:
        """Continue a saved run of a network."""
        saved = self.plan.checkpoint
        # Checkpoints of earlier versions have no random items.
        self.random = [np.array(state.get("random", ()), dtype=np.intp)]
        self.backend.mark_random(self.random[0])
        self.backend.restore(state["course"], self.labels)
        past, size = self.backend.relearn(), self.plan.size
        self.done = min(len(past.kl_new_old), self.plan.steps)
        items = np.array(state["course"]["indices"], dtype=np.intp)[len(self.first) :]
        self.picks, self.results = [items[: self.done * size]], [past.first(self.done)]
        self.selection.take(items)
        self.seconds = [0.0] * self.done
        self.random_losses = RandomLabelLosses.from_state(self.backend.task, state.get("random_losses", []))
        ratios = state.get("calibration", [(1.0, 0)] * self.done)
        self.calibration = [(ratio, count) for ratio, count in ratios][: self.done]
        self.watched = [] if self.plan.watch is None else list(state["watched"])[: self.done]
        if self.plan.watch is not None and len(self.watched) < self.done:
            raise InvalidValueError(
                f"checkpoint {saved and saved.path} was saved without watch; leave watch out, or start over"
            )

    def step(self) -> None:
        """One step, or several steps whose items are known already."""
        plan, before = self.plan, self.done
        picks = self.selection.propose(self._most()) if plan.size == 1 else self.selection.batch(plan.size)
        if plan.size > 1 and len(picks.indices) < plan.size:
            raise InvalidValueError(
                f"the acquisition excludes so many items that {len(picks.indices)} are left for a batch of "
                f"{plan.size}; give fewer steps, or a smaller batch"
            )
        self._learn(*picks)
        if self._rule is not None:
            self._apply_rule(self._rule, before)
        self.save()

    @property
    def finished(self) -> bool:
        """Whether all steps are done, or the rule has ended the run."""
        return self.done >= self.plan.steps or (self.verdict is not None and self.verdict.stop)

    def _most(self) -> int:
        """How many labels may be learned at once."""
        plan, due = self.plan, self.backend.until_relearning()
        if plan.one_by_one or (plan.calibrated and self.selection.all_random):
            return 1
        most = plan.steps - self.done if due is None else max(1, min(plan.steps - self.done, due))
        if self._rule is None:
            return most
        # Labels after the stop are learned in vain, so the rule is applied before the labels have doubled; at once if
        # it says how many labels it waits for.
        outlook = None if self.verdict is None else self.verdict.outlook
        if isinstance(outlook, Known):
            return max(1, min(most, outlook.labels))
        return min(most, max(_LEAST_BLOCK, len(self.first) + self.done))

    def _apply_rule(self, rule: Criterion, before: int) -> None:
        """Apply the rule to the steps after the first ``before``; if it stops, forget the labels after the stop."""
        self.results = [StepResults.joined(self.results)]
        trace, reads = self.trace(), rule.reads()
        newest = self.relearned[-1] if self.relearned and self.relearned[-1].step == self.done - 1 else None
        for step in trace.steps_seen(None, before, self.done if newest is None else self.done - 1, reads):
            self.verdict = rule.observe(step)
            if self.verdict.stop:
                self._forget_after((step.n_labelled - len(self.first)) // self.plan.size)
                return
        if newest is not None:
            # As in a live loop: the history under the new hyper-parameters replaces the earlier one.
            rule.reset()
            self.verdict = rule.observe_all(trace.steps_seen(newest, 0, self.done, reads))[-1]

    def _forget_after(self, steps: int) -> None:
        """Remove the results of later steps."""
        self.done, labels = steps, steps * self.plan.size
        self.results = [StepResults.joined(self.results).first(steps)]
        self.picks = [np.concatenate(self.picks)[:labels]]
        random = np.concatenate([np.zeros(0, dtype=np.intp), *self.random])
        self.random = [random[np.isin(random, np.concatenate([self.first, *self.picks]))]]
        self.relearned = [revision for revision in self.relearned if revision.step < steps]
        self.seconds, self.calibration = self.seconds[:steps], self.calibration[:steps]

    def _learn(self, chosen: Any, random: Any) -> None:
        """Learn the labels of some items, and record the results."""
        plan, backend = self.plan, self.backend
        drawn = chosen[random]
        backend.mark_random(drawn)
        self.random.append(drawn)
        search = plan.search if plan.search is not None and plan.search.active else None
        predicted = [] if search is None else search.loop.predictions(drawn)
        if len(drawn) and plan.calibrated:
            made = BackendView(backend, plan.X, self._labels_so_far()).predictions(drawn)
            self.random_losses.record(dict(zip(drawn.tolist(), made, strict=True)))
            for item in drawn:
                self.random_losses.label(int(item), self.labels[item])
        result = backend.learn(chosen, self.labels[chosen], together=plan.size > 1)
        self.random_losses.budget.count_fit(len(self.first) + plan.size * (self.done + 1))
        self.picks.append(chosen)
        self.selection.take(chosen)
        self.done += len(chosen) if plan.size == 1 else 1
        learned, history = result, backend.relearn() if backend.until_relearning() == 0 else None
        if history is not None:
            self.relearned.append(relearned(self.done - 1, history, backend))
            result = _ending(StepResults.joined([result]), history)
        self.results.append(result)
        if plan.watch is not None:
            self.watched.append(plan.watch.at(backend))
            self._require_other_names(self.watched[-1], result)
        # The time of steps of a saved run is not known, so the time starts at the resumption.
        self.seconds += [time.monotonic() - self._since] * (self.done - len(self.seconds))
        if plan.calibrated:
            self._record_calibration(new=len(drawn) > 0)
        if search is not None:
            search.loop.add(chosen, self.labels[chosen], drawn, predicted)
            search.loop.judge(len(chosen), StepResults.joined([learned]), history, random=len(drawn) > 0)
            search.examine(self.done - 1, last=self.done >= plan.steps)

    def _record_calibration(self, *, new: bool) -> None:
        """Record the ratio of the losses of random labels to the expected losses, and the number of random labels.

        Only random labels change it, and leaving labels out is expensive.

        Args:
            new: Whether the last step has brought random labels.
        """
        if self.calibration and not new:
            self.calibration += self.calibration[-1:] * (self.done - len(self.calibration))
            return
        items = np.concatenate([np.zeros(0, dtype=np.intp), *self.random]).tolist()
        labels, losses = self._labels_so_far(), self.random_losses
        view, ratio = BackendView(self.backend, self.plan.X, labels), 1.0
        if new:
            losses.refresh(view, labels, items)
            ratio = losses.ratio(view, view.rule_items(len(self.labels)), labels, items)
        count = losses.count(view.judged_model(), items)
        self.calibration += [(ratio, count)] * (self.done - len(self.calibration))

    def _labels_so_far(self) -> dict[int, Any]:
        """All labels by item, in the order learned."""
        if not self._known:
            self._known = {item: self.labels[item] for item in self.first.tolist()}
        for picks in self.picks[self._noted :]:
            self._known.update((item, self.labels[item]) for item in picks.ravel().tolist())
        self._noted = len(self.picks)
        return self._known

    def _require_other_names(self, watched: Mapping[str, Any], result: LearnedSteps) -> None:
        recorded = set(result.measures) | self.plan.deferred
        taken = (recorded | (self.plan.counting.names if self.plan.counting else set())) & set(watched)
        if taken:
            raise InvalidValueError(f"watch gives {min(taken)}, which is recorded already; give it another name")

    def trace(self) -> Trace:
        """The run so far."""
        plan, first = self.plan, self.first
        results = StepResults.joined(self.results)
        indices = np.concatenate([np.zeros(0, dtype=np.intp), *self.picks])
        watched_names = self.watched[0] if self.watched else ()
        counted = {}
        if plan.counting is not None:
            counted = plan.counting.along(first, indices.reshape(-1, plan.size), self.seconds, self.calibration)
        return Trace(
            initial=first,
            indices=indices if plan.size == 1 else indices.reshape(-1, plan.size),
            n_labelled=len(first) + plan.size * np.arange(1, self.done + 1),
            kl_new_old=results.kl_new_old,
            kl_old_new=results.kl_old_new,
            error=results.error,
            relearned=tuple(self.relearned),
            estimated=results.estimated,
            about=plan.about,
            random_items=np.concatenate([np.zeros(0, dtype=np.intp), *self.random]),
            predictive_error=results.predictive_error,
            wrong_share=results.wrong_share,
            decisions=() if plan.search is None else tuple(plan.search.decisions),
            measures={
                **results.measures,
                **counted,
                **{name: np.array([measured[name] for measured in self.watched]) for name in watched_names},
            },
        )

    def save(self, *, now: bool = False) -> None:
        """Save the run if it has a checkpoint. Labels to replay are saved at most once per second, unless ``now``."""
        saved = self.plan.checkpoint
        if saved is not None and saved.replays:
            if self.begun and (now or time.monotonic() - self._saved_at >= _SAVED_EVERY):
                random = np.concatenate([np.zeros(0, dtype=np.intp), *self.random]).tolist()
                groups = [picks.tolist() for picks in self.picks]
                save_steps(saved, SavedSteps(groups, random, self.seconds))
                self._saved_at = time.monotonic()
        elif self.plan.checkpoint is not None:
            # The key of the backend's state is the same as in earlier versions, so that their checkpoints can be
            # resumed.
            random = np.concatenate([np.zeros(0, dtype=np.intp), *self.random]).tolist()
            state = {
                "course": self.backend.state(),
                "watched": self.watched,
                "random": random,
                "random_losses": self.random_losses.state_dict(),
                "calibration": self.calibration,
            }
            save_checkpoint(self.plan.checkpoint.path, self.plan.checkpoint.run, state)


def record_run(selection: ItemSelection, labels: Any, first: Any, plan: RunPlan) -> Trace:
    """Run the steps of a plan and return their trace."""
    recorder = RunRecorder(selection, labels, first, plan)
    try:
        recorder.begin()
        while not recorder.finished:
            recorder.step()
            if plan.progress is not None:
                plan.progress(recorder.done, plan.steps)
    except TrainingDivergedError as error:
        if plan.checkpoint is None or not plan.checkpoint.path.exists():
            raise
        raise TrainingDivergedError(f"{error}. The run up to there is saved in {plan.checkpoint.path}") from None
    except BaseException:
        if plan.checkpoint is not None and plan.checkpoint.replays:
            recorder.save(now=True)
        raise
    if plan.checkpoint is not None and plan.checkpoint.replays:
        recorder.save(now=True)
    return recorder.trace()


def _ending(result: StepResults, history: StepResults) -> StepResults:
    """The result with its last step computed with the hyper-parameters that were learned after it."""
    new_old, old_new, error, *losses = (
        np.append(getattr(result, name)[:-1], getattr(history, name)[-1:])
        for name in ("kl_new_old", "kl_old_new", "error", *TEST_LOSSES)
    )
    last = {name: values[-1:] for name, values in history.measures.items()}
    before = {name: values[: len(new_old) - 1] for name, values in result.measures.items()}
    measures = {name: joined_rows([before[name], last[name]]) if name in before else last[name] for name in last}
    pair, later = KLPair(new_old, old_new), dict(zip(TEST_LOSSES, losses, strict=True))
    return StepResults(pair, error, result.estimated, measures or result.measures, **later)


_FORMAT: Final = "suffice-checkpoint-1"
_STEPS_FORMAT: Final = "suffice-checkpoint-2"


def fingerprint(**parts: Any) -> dict[str, Any]:
    """Identity of a run: settings, and descriptions of arrays."""
    return {name: _print(part) for name, part in parts.items()}


def model_parameters(model: Any) -> dict[str, str]:
    """All parameters of a model or pipeline, in full; for a torch module also its initial weights."""
    found = model.get_params(deep=True)
    # The steps of a pipeline are also listed one by one.
    return {f"model's {name}": _full(value) for name, value in found.items() if name not in ("steps", "transformers")}


def _full(value: Any) -> str:
    if hasattr(value, "get_params"):
        return type(value).__name__
    if not hasattr(value, "state_dict"):
        # Addresses in memory are not part of the identity.
        return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    weights = b"".join(tensor.detach().cpu().double().numpy().tobytes() for tensor in value.state_dict().values())
    return f"{' '.join(repr(value).split())} whose first weights have checksum {crc32(weights):08x}"


def _print(part: Any) -> Any:
    if isinstance(part, WorkerRows) and part.plain is not None:
        # A pool in memory with the same rows gives the same fingerprint.
        part = part.plain
    if isinstance(part, DiskRows):
        return part.fingerprint()
    if hasattr(part, "tensor"):
        # A pool on a device has the fingerprint of the same pool in memory.
        part = part.array()
    if not isinstance(part, np.ndarray):
        return part
    return described_array(part)


class SavedSteps(NamedTuple):
    """The labels of a run so far, in the steps in which they were learned.

    Attributes:
        groups: Items that were learned together.
        random: Those of them that were drawn at random.
        seconds: Time after each step.
    """

    groups: list[list[int]]
    random: list[int]
    seconds: list[float]


def save_steps(checkpoint: CheckpointFile, steps: SavedSteps) -> None:
    """Write the labels of a run, and replace those that were saved before.

    Raises:
        SufficeError: They cannot be written there.
    """
    path = checkpoint.path
    text = json.dumps({"format": _STEPS_FORMAT, "run": checkpoint.run, **steps._asdict()})

    def write(part: Path) -> None:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    write_whole(path, write, part=path.with_name(f"{path.name}.part"))


def load_steps(path: Path, run: dict[str, Any]) -> SavedSteps | None:
    """The labels that were saved for this run; None if there are none yet.

    Raises:
        CheckpointError: The file is not a checkpoint, or belongs to another run.
    """
    if not path.exists():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        known = found["run"]
        steps = SavedSteps(*(found[name] for name in SavedSteps._fields))
        if found["format"] != _STEPS_FORMAT:
            raise KeyError(found["format"])
    except (ValueError, KeyError, TypeError):
        raise CheckpointError(f"checkpoint {path} is not a run that suffice saved; give another path") from None
    _require_same_run(path, known, json.loads(json.dumps(run)))
    return steps


def _require_same_run(path: Path, known: dict[str, Any], run: dict[str, Any]) -> None:
    for name, value in run.items():
        if not is_same_array(known.get(name), value):
            raise CheckpointError(
                f"checkpoint {path} is of another run: its {name} is {known.get(name)}, here it is {value}. Remove the "
                "file to start over, or give another path"
            )


def save_checkpoint(path: Path, run: dict[str, Any], state: dict[str, Any]) -> None:
    """Write a state, and replace the state that was saved before.

    Raises:
        SufficeError: It cannot be written there.
    """
    import torch

    def write(part: Path) -> None:
        with part.open("wb") as file:
            try:
                torch.save({"format": _FORMAT, "run": run, "state": state}, file)
            except RuntimeError as error:
                # torch raises this error if the disk is full.
                raise OSError(str(error).splitlines()[0]) from None
            file.flush()
            os.fsync(file.fileno())

    write_whole(path, write, part=path.with_name(f"{path.name}.part"))


def load_checkpoint(path: Path, run: dict[str, Any]) -> dict[str, Any] | None:
    """The state that was saved for this run; None if there is none yet.

    Raises:
        CheckpointError: The file is not a checkpoint, or belongs to another run.
    """
    if not path.exists():
        return None
    import torch

    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
        known, state = found["run"], found["state"]
        if found["format"] != _FORMAT:
            raise KeyError(found["format"])
    except Exception:
        raise CheckpointError(f"checkpoint {path} is not a run that suffice saved; give another path") from None
    _require_same_run(path, known, run)
    assert isinstance(state, dict)
    return state


def simulate(  # noqa: PLR0913, PLR0915 - a run has many settings, all but three by keyword
    model: Any,
    X_pool: Any,
    y_pool: Any,
    *,
    initial: Any = 10,
    steps: int | None = None,
    X_test: Any = None,
    y_test: Any = None,
    acquisition: str | AcquisitionFunction | None = None,
    random_share: float | None = None,
    batch: int = 1,
    seed: int | None = None,
    dtype: Any = np.float64,
    device: Any = None,
    client: Any = None,
    checkpoint: Path | str | None = None,
    watch: Callable[[Any], Mapping[str, Any]] | None = None,
    record: Any = None,
    stop_set: StopSet | int | None = None,
    validation: tuple[Any, Any] | None = None,
    costs: Any = None,
    rule: Criterion | None = None,
    decide: Criterion | None = None,
    at_most: float | None = None,
    may_miss: Any = (),
    check: int | Mapping[str, Any] | None = None,
    check_share: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Trace:
    """Label a pool as active learning would, and record every step.

    A label is read from ``y_pool`` only when it is requested: neither model nor record uses other labels.

    Args:
        model: One of :mod:`suffice.models`, any classifier or regressor of scikit-learn, or a pipeline that ends in
            one: its transformers are fitted on the pool.
        X_pool: Inputs, ``m x D``, in memory or on disk as for :class:`suffice.ActiveLearner`.
        y_pool: Their labels, ``m``.
        initial: Items labelled at the start: how many at random, or which.
        steps: Steps to take; to the end of the pool if left out.
        X_test: Test inputs; with them ``error``, ``predictive_error`` and, for classes, ``wrong_share`` are recorded
            after every step.
        y_test: Test labels.
        acquisition: Which item next: see :data:`suffice.acquisition.NAMES`. Left out, it is the recommended one for
            the model, with its share of random labels. Or a function, as for :class:`suffice.ActiveLearner`.
        random_share: Share of the labels, 0 to 1, that are drawn at random from the unlabelled items instead. Left out,
            it is 0 for an acquisition that is named, and the recommended share for a function.
        batch: Labels bought at each step.
        seed: Seed of all randomness. Left out, the picks are those of seed 0, and checks are drawn from fresh entropy.
        dtype: Number type that the pool is kept in; ``float32`` halves the memory.
        device: Device of torch that scores the pool, see :class:`suffice.ActiveLearner`.
        client: Client of a Dask cluster whose workers keep and score the pool, likewise.
        checkpoint: File that the run is saved in: of a network after every step, of the other models of
            :mod:`suffice.models` about every second and when it is interrupted. Called again with the same arguments,
            the run continues from there with the same picks as without the interruption; for a network, on a CPU.
            The others learn the labels of the file again first.
        watch: Called with the fitted model after every step; the numbers that it returns by name are recorded in
            ``trace.measures``.
        record: What else to record, so that rules can be replayed: a stopping rule or several (what they require),
            fields of a :class:`suffice.Step` by name, or ``"all"`` that this model can tell. Left out, it is what the
            default rule requires, :class:`suffice.LabelWorth`. For the models of :mod:`suffice.models` other than
            networks, and a pool in memory, this is computed only when it is read from the trace, by learning the same
            labels again; until then the trace refers to the pool. ``()`` records nothing else.
        stop_set: The stop set, or its size; 2000 items of the pool (or all) drawn with the seed if left out, and only
            where something is recorded of it.
        validation: Inputs and labels of a validation set, for rules that want one.
        costs: What a label costs: one number, or one for each item of the pool.
        rule: Stop when this rule says so, and record what it uses. With a rule for guarantees the run contains random
            checks: see :class:`suffice.learner.CheckedRun`. It cannot be combined with a test set, ``checkpoint``,
            ``watch`` and ``record``; nor can ``check`` and ``check_share``.
        decide: Make decisions with this stopping rule while the run goes on, as :meth:`suffice.ActiveLearner.decision`
            does, and record what it uses. The run does not stop. ``trace.decisions`` has the decision to stop, or that
            at the end of the run, and those in doubt before it.
        at_most: The error that the decisions aim at, as for :meth:`suffice.ActiveLearner.decision`.
        may_miss: With ``decide``: classes that may be missed, as for :class:`suffice.ActiveLearner`.
        check: Check the model at the end with so many labels; or the arguments of :meth:`suffice.ActiveLearner.check`,
            such as ``{"m": 100, "tolerance": 0.5}``.
        check_share: Share of the labels for a running check, see :class:`suffice.ActiveLearner`; its evaluations are
            the checks of the run.
        progress: Called now and then with the steps done and the steps to do.

    Returns:
        The run, one row per step; ``trace.checks`` are its checks.

    Raises:
        InvalidValueError: Something does not fit, named.
        NotEnoughMemoryError: The pool needs more memory than available; raised before the first step.
        TrainingDivergedError: The loss of a network is not finite; the earlier steps are in ``checkpoint``.

    Examples:
        >>> import numpy as np
        >>> from suffice.models import GaussianProcess
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 2)); y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
        >>> trace = simulate(GaussianProcess(length_scale=1.0, noise=0.01), X, y, steps=50)
        >>> len(trace), trace.indices[:3].shape
        (50, (3,))
        >>> next(verdict.n_labelled for verdict in trace.replay(LabelWorth()) if verdict.stop) < 60
        True
    """
    X_pool = pool_rows(model, X_pool, client)
    if rule is not None or check is not None or check_share is not None:
        refused = {"X_test": X_test, "y_test": y_test, "checkpoint": checkpoint, "watch": watch, "record": record}
        if given := [name for name, value in refused.items() if value is not None]:
            raise InvalidValueError(f"{given[0]} cannot be combined with rule, check or check_share; leave it out")
    for argument, given_rule in (("rule", rule), ("decide", decide)):
        if given_rule is not None:
            require_rule(given_rule, argument)
    if decide is not None and (rule is not None or check is not None or check_share is not None):
        raise InvalidValueError("decide cannot be combined with rule, check or check_share; leave it out")
    if decide is not None and record is None:
        record = decide
    if check is not None or check_share is not None or (rule is not None and guarantee_rules(rule)):
        options: dict[str, Any] = {"acquisition": acquisition, "random_share": random_share, "seed": seed}
        options |= {"dtype": dtype, "stop_set": stop_set, "validation": validation, "costs": costs}
        options |= {"check_share": check_share, "device": device}
        run = CheckedRun(model, X_pool, y_pool, rule, initial=initial, batch=batch, check=check, **options)
        return run.trace(steps, progress)
    rng, size = generator(seed), whole(batch, "batch", least=1)
    prepared, own = prepare(model, X_pool), checked_function(acquisition, X_pool, device)
    name, share = acquisition_and_share(prepared.backend, acquisition, random_share)
    place = pool_device(device, X_pool, prepared.backend, name)
    pool = prepared.pool_inputs(X_pool, place)
    labels = known_labels(y_pool, pool.shape[0], "y_pool", "X_pool")
    first = first_items(initial, pool.shape[0], rng)
    wanted = _number_of_steps(steps, pool.shape[0], len(first), size)
    held_out = validation_set(prepared, validation, pool.shape[1])
    fields = RecordedFields.asked_for(record if rule is None else rule, prepared, pool, validated=held_out is not None)
    drawn_with = int(seed) if isinstance(seed, int | np.integer) else 0
    inputs = new_step_inputs(fields.computed, pool.shape[0], stop_set, seed=drawn_with, validation=held_out)
    counter = StepCounter(
        fields.counted,
        label_costs(costs, pool.shape[0]),
        0 if held_out is None else len(held_out[1]),
        labels if prepared.backend.task == "classification" else None,
    )
    settings = RunSettings(
        X=pool,
        acquisition=name,
        rng=rng,
        dtype=number_type(dtype),
        # It is not known when a rule stops, so memory for labels is allocated as they come.
        expected=len(first) + (wanted * size if rule is None else min(wanted * size, _EXPECTED_BY_RULE)),
        test=labelled_set(prepared, (X_test, y_test), pool.shape[1], ("X_test", "y_test")),
        step_inputs=inputs,
        device=place,
    )
    about: dict[str, Any] = {"acquisition": shown_acquisition(own) or name, "seed": seed_name(seed), "batch": size}
    about |= {"random_share": share} if share else {}
    with one_thread():
        backend = prepared.backend(prepared.model, settings)
        chosen = own_acquisition(own, X_pool, prepared, backend, lambda items: labels[items])
        selection = ItemSelection(backend, pool.shape[0], share, rng, all_random=name == "random", own=chosen)
        search = None
        if decide is not None and checkpoint is not None and not backend.replays:
            raise InvalidValueError("decide cannot be combined with a checkpoint of this model; leave one of them out")
        if decide is not None:
            used = decide.reads() & prepared.backend.provided_fields(validated=held_out is not None)
            started = time.monotonic()
            session = Session(
                pool.shape[0],
                decide,
                partial(np.random.default_rng, drawn_with),
                may_miss=usable_may_miss(may_miss, prepared),
            )
            counted = CountedFields(
                used, session, counter.costs, counter.validation, lambda: time.monotonic() - started
            )
            loop = LearningLoop(session, backend, selection, pool, first, counted)
            plain = prepared.transform is not None and isinstance(X_pool, np.ndarray) and X_pool.dtype.kind in "fiu"
            search = stop_search(loop, prepared, pool, X_pool if plain else pool, at_most)
        plan = RunPlan(
            steps=wanted,
            size=size,
            about={"model": " ".join(repr(model).split()), **about},
            progress=progress,
            checkpoint=checkpoint_file(
                checkpoint, backend, lambda: {**about, **model_parameters(model), **_data(settings, first, labels)}
            ),
            watch=None if watch is None else ModelWatcher(watch, prepared),
            counting=counter,
            first_random=isinstance(initial, int | np.integer),
            X=pool,
            compares=inputs.about({"recent_gain"}),
            rule=rule,
            deferred=fields.deferred,
            search=search,
        )
        trace = record_run(selection, labels, first, plan)
    if fields.deferred:
        return DeferredEvidence.of_run(prepared, settings, labels, plan, selection).added_to(trace)
    if rule is None:
        return trace
    return replace(trace, about={**trace.about, "labels": len(first) + trace.indices.size, "labels_in_checks": 0})


def _number_of_steps(steps: int | None, rows: int, initial: int, size: int) -> int:
    """The steps to take; raises an error if the pool has not enough rows."""
    room = (rows - initial) // size
    wanted = room if steps is None else whole(steps, "steps", least=0)
    if wanted > room:
        raise InvalidValueError(
            f"steps is {wanted}, but {rows} rows less {initial} initial ones leave {room} steps of {size}"
        )
    return wanted


def _data(settings: RunSettings, first: Any, labels: Any) -> dict[str, Any]:
    """The data of a run and what it records, by name, for the fingerprint of a checkpoint."""
    inputs, (X, y) = settings.step_inputs, settings.test or (None, None)
    data = {"initial": first, "X_pool": settings.X, "y_pool": labels, "X_test": X, "y_test": y}
    if inputs.names:
        data |= {"record": sorted(inputs.names), "stop_set": inputs.stop}
    if inputs.validation is not None:
        data |= dict(zip(("X of validation", "y of validation"), inputs.validation, strict=True))
    return data


class RecordedFields(NamedTuple):
    """Fields of a step that a run provides in addition to divergences. No others are computed.

    Attributes:
        counted: Fields to count, among others.
        computed: Fields to compute from the model at each step.
        deferred: Fields to compute when they are read from the trace.
    """

    counted: frozenset[str]
    computed: frozenset[str]
    deferred: frozenset[str] = frozenset()

    @staticmethod
    def asked_for(record: Any, prepared: PreparedModel, pool: Any, *, validated: bool) -> "RecordedFields":
        """The fields that the argument ``record`` of :func:`simulate` names.

        Raises:
            MissingInputError: The model does not provide one of them.
        """
        available = prepared.backend.provided_fields(validated=validated)
        default = default_record(available) if record is None else record
        requested = requested_fields(default, available)
        require_provided(requested, prepared.model, validated=validated)
        wanted, optional = requested - DIVERGENCES, optional_fields(default) & available
        # Fields that nobody asked for are not computed before they are read. The labels must then be learned again,
        # which needs the pool, and a model that is the same if it learns the same labels.
        if record is None and prepared.backend.replays and not isinstance(pool, DiskRows):
            counted = (wanted | optional) & _CHEAP_COUNTS
            return RecordedFields(counted, frozenset(), (wanted | optional) - counted)
        # Optional counts are not part of the fingerprint of a checkpoint, as in earlier versions.
        return RecordedFields(wanted | optional, (wanted | (optional - COUNTED_FIELDS)) - CLASS_COUNT_FIELDS)


class DeferredEvidence(NamedTuple):
    """Computes step inputs of a finished run when they are read: its labels are learned again, in the same steps.

    Attributes:
        backend: The backend of the model.
        model: The model, unfitted.
        settings: Settings of the run with the wanted step inputs; items are not chosen again.
        labels: All labels, by item.
        plan: The plan of the run.
        random: Whether some or all labels after the initial ones were drawn at random.
    """

    backend: type[Backend]
    model: Any
    settings: RunSettings
    labels: Any
    plan: RunPlan
    random: bool

    @staticmethod
    def of_run(
        prepared: PreparedModel, settings: RunSettings, labels: Any, plan: RunPlan, selection: ItemSelection
    ) -> "DeferredEvidence":
        """The deferred step inputs of a run."""
        inputs = new_step_inputs(plan.deferred, settings.X.shape[0], None, seed=0, validation=None)
        # Items are not chosen again, so neither the pool nor the test set is followed.
        again = replace(settings, acquisition="order", test=None, device=None, step_inputs=inputs)
        return DeferredEvidence(prepared.backend, prepared.model, again, labels, plan, random=selection.draws_at_random)

    def added_to(self, trace: Trace) -> Trace:
        """The trace with the step inputs, which are not computed yet."""
        first, picks, random = trace.initial, trace.indices, trace.random_items
        names = self.plan.deferred

        @cache
        def learned_again() -> Trace:
            return self._learned_again(first, picks, random)

        def revision(number: int) -> Callable[[], Mapping[str, Floats]]:
            return lambda: learned_again().relearned[number].measures

        revised = names & self.backend.revised_fields
        relearned_steps = [
            replace(past, measures=DeferredMeasures(past.measures, revised, revision(number)))
            for number, past in enumerate(trace.relearned)
        ]
        measures = DeferredMeasures(trace.measures, names, lambda: learned_again().measures)
        return replace(trace, measures=measures, relearned=tuple(relearned_steps))

    def _learned_again(self, first: Any, picks: Any, random: Any) -> Trace:
        assert self.plan.counting is not None
        counting = self.plan.counting._replace(names=self.plan.deferred)
        plan = self.plan._replace(progress=None, checkpoint=None, watch=None, counting=counting)
        with one_thread():
            backend = self.backend(self.model, self.settings)
            rng = np.random.default_rng(0)
            selection = ItemSelection(backend, self.settings.X.shape[0], 0.0, rng, all_random=self.random)
            recorder = RunRecorder(selection, self.labels, first, plan)
            recorder.repeat(SavedSteps([np.atleast_1d(group).tolist() for group in picks], random.tolist(), []))
            return recorder.trace()


class CheckedRun:
    """A simulated run that stops when a rule says so, with random checks of the model.

    Labels are chosen as in every run. With :class:`suffice.learner.ErrorGuarantee`, alone or inside another rule, the
    run calls :meth:`suffice.ActiveLearner.guarantee_plan` at intervals. When a check is expected to reach the target at
    the least cost, it is drawn and answered with the known labels. If it proves the target, the run stops; otherwise
    its labels are learned and labelling continues. With :class:`suffice.learner.RecallGuarantee` a check is drawn when
    it needs no more labels than there are, according to :meth:`suffice.ActiveLearner.recall_plan`.

    The plans are recorded in ``trace.about["expected_totals"]``: pairs of the number of labels and the total number of
    labels that the plan expected, None if it expected no success. ``trace.about["labels"]`` is the number of all
    labels, and ``trace.about["labels_in_checks"]`` the number of labels in checks.

    With a running check there are no plans: the rule is applied to its evaluations.

    Args:
        model: As for :func:`simulate`, like all others.
        X_pool: Inputs.
        y_pool: All labels.
        rule: The stopping rule; None if the run has a fixed number of steps.
        initial: Items labelled at the start.
        batch: Labels bought at each step.
        check: A check at the end.
        options: Further arguments of :class:`suffice.ActiveLearner`.

    Examples:
        >>> from suffice.learner import ErrorGuarantee
        >>> from suffice.models import BayesianLogistic
        >>> X = np.random.default_rng(0).normal(size=(1000, 3)); y = np.where(X[:, 0] > 0.0, "right", "left")
        >>> trace = simulate(BayesianLogistic(), X, y, rule=ErrorGuarantee(at_most=0.1), batch=5, seed=0)
        >>> (found,) = trace.checks
        >>> found.passed, found.holds, found.guarantee.value <= 0.1
        (True, True, True)
    """

    def __init__(  # noqa: PLR0913 - as simulate
        self,
        model: Any,
        X_pool: Any,
        y_pool: Any,
        rule: Criterion | None,
        *,
        initial: Any = 10,
        batch: int = 1,
        check: int | Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if rule is not None:
            require_rule(rule, "rule")
        self._batch = whole(batch, "batch", least=1)
        self._check = _check_arguments(check)
        self._rule = rule
        self._learner = ActiveLearner(
            model, X_pool, criterion=_endless(model, X_pool) if rule is None else rule, initial=initial, **options
        )
        self._labels = known_labels(y_pool, self._learner.left, "y_pool", "X_pool")
        self._first = int(initial) if isinstance(initial, int | np.integer) else len(np.atleast_1d(initial))
        self._targets = [] if rule is None else guarantee_rules(rule)
        tolerances = [each.tolerance for each in self._targets if isinstance(each, ErrorGuarantee)]
        self._tolerance = next((each for each in tolerances if each is not None), None)
        self._recorded: list[RecordedCheck] = []
        self._totals: list[tuple[int, int | None]] = []
        self._planned_at = 0

    def trace(self, steps: int | None, progress: Callable[[int, int], None] | None = None) -> Trace:
        """Run, and return the record.

        Args:
            steps: Steps to take at most, not counting those of checks; to the end of the pool if left out.
            progress: Called after each step with the steps done and the most that there can be.
        """
        learner = self._learner
        room = (learner.left - self._first) // self._batch
        most = room if steps is None else whole(steps, "steps", least=0)
        if most > room:
            raise InvalidValueError(
                f"steps is {most}, but {learner.left} rows less {self._first} initial ones leave {room} steps of "
                f"{self._batch}"
            )
        self._label(self._first)
        done = 0
        while not self._stopped():
            if self._check_planned():
                continue
            if done == most or not learner.left:
                break
            self._label(self._batch)
            done += 1
            if progress is not None:
                progress(done, most)
        if self._check is not None and learner.left:
            self._draw(**self._check)
        trace = learner.trace()
        about = {**trace.about, "batch": self._batch}
        running = learner.running_check
        in_checks = sum(len(each.items) for each in self._recorded) if running is None else running.asked
        about |= {"labels": len(learner.labelled), "labels_in_checks": in_checks}
        if self._totals:
            about["expected_totals"] = [list(each) for each in self._totals]
        return replace(trace, checks=tuple(self._recorded), about=about)

    def _stopped(self) -> bool:
        return self._rule is not None and self._learner.rule_verdict.stop

    def _label(self, size: int) -> None:
        items = self._learner.ask(size)
        self._learner.tell(items, self._labels[items])
        running = self._learner.running_check
        for found in () if running is None else running.evaluations[len(self._recorded) :]:
            truth = _true_value(found.guarantee, found.frozen, found.items, self._labels)
            passed = self._passed(found.guarantee)
            self._recorded.append(RecordedCheck(found.n_labelled, found.items, found.guarantee, truth, passed))

    def _check_planned(self) -> bool:
        """Draw a check if it is due by the plan; return whether one was drawn."""
        learner, n = self._learner, len(self._learner.labelled)
        if not self._targets or n < self._planned_at or not learner.left or learner.running_check is not None:
            return False
        target = self._targets[0]
        if isinstance(target, RecallGuarantee):
            return self._recall_planned(target)
        plan = learner.guarantee_plan(target.at_most, tolerance=self._tolerance)
        self._totals.append((n, plan.expected_total))
        # The plan is computed again more often shortly before the check.
        wait = _REPLANNED * n if plan.more_labels is None else _LOOK_AHEAD * plan.more_labels
        self._planned_at = n + max(1, math.floor(wait))
        if not plan.check_now or plan.check_high is None:
            return False
        asked = {"tolerance": self._tolerance, "confidence": target.confidence}
        self._draw(None, _GIVEN_UP * plan.check_high, at_most=target.at_most, **asked)
        return True

    def _recall_planned(self, target: RecallGuarantee) -> bool:
        learner, n = self._learner, len(self._learner.labelled)
        self._planned_at = n + max(1, math.floor(_REPLANNED * n))
        if not np.any(self._labels[learner.labelled] == target.class_name):
            return False
        size = learner.recall_plan(target.class_name, target.at_least).labels
        self._totals.append((n, None if size is None else n + size))
        if size is None or size > n:
            return False
        self._draw(size, recall_of=target.class_name, confidence=target.confidence)
        return True

    def _draw(self, m: int | None, most: float = math.inf, **asked: Any) -> None:
        """Draw a check, answer it with the known labels, and record it.

        Args:
            m: Number of items; None for a sequential check.
            most: A sequential check is given up when it has more answers than this.
            **asked: What it is to guarantee.
        """
        learner = self._learner
        check = learner.check(None if m is None else min(m, learner.left), **asked)
        found = None
        while check.open:
            if len(check.indices) - len(check.pending) > most:
                check.abort()
            else:
                found = check.tell(self._labels[check.pending])
        truth = true_value(check, self._labels)
        pending = set(check.record.pending)
        answered = tuple(item for item in check.record.items if item not in pending)
        self._recorded.append(RecordedCheck(check.n_labelled, answered, found, truth, self._passed(found)))
        # The next plan includes the labels of the check.
        self._planned_at = len(learner.labelled) + 1

    def _passed(self, found: Guarantee | None) -> bool | None:
        """Whether a guarantee satisfies the rule for guarantees; None if there is no such rule."""
        if not self._targets:
            return None
        target = self._targets[0]
        if found is None:
            return False
        if isinstance(target, RecallGuarantee):
            return found.quantity == "recall" and found.value >= target.at_least
        return found.quantity in ("error", "within") and found.value <= target.at_most


def _check_arguments(check: int | Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The arguments of :meth:`suffice.ActiveLearner.check` for the check at the end of a run; None for no check."""
    if check is None:
        return None
    if not isinstance(check, Mapping):
        return {"m": whole(check, "check", least=1)}
    if "m" not in check:
        names = ", ".join(map(repr, check)) or "nothing"
        raise InvalidValueError(f"check must have the number of items, such as {{'m': 100}}; it has {names}")
    return {**check, "m": whole(check["m"], "m of check", least=1)}


def true_value(check: ModelCheck, labels: Any) -> float:
    """The true value of the checked quantity, given all labels of the pool; see :class:`suffice.trace.RecordedCheck`.

    Args:
        check: A check; without a guarantee the value is NaN.
        labels: All labels, by item.
    """
    return _true_value(check.guarantee, check._frozen, check.record.items, labels)


def _true_value(found: Guarantee | None, frozen: FrozenModel, sample: tuple[int, ...], labels: Any) -> float:
    items, predicted = frozen.unlabelled, frozen.predictions
    rest = ~np.isin(items, sample)
    truth = labels[items]
    if found is None:
        return math.nan
    if found.quantity in ("within", "tolerance", "error"):
        tolerance = found.tolerance
        off = truth != predicted if tolerance is None else np.abs(truth.astype(np.float64) - predicted) > tolerance
        if found.allowed is not None:
            # A sequential check is about all items from which it was drawn.
            return float(np.sum(off & rest if found.corrected else off)) / len(items)
        return float(off[rest].mean()) if rest.any() else 0.0
    of_class = np.array([str(each) == found.class_name for each in truth.tolist()], dtype=bool)
    chosen = np.array([str(each) == found.class_name for each in predicted.tolist()], dtype=bool)
    if found.quantity == "precision":
        return float(of_class[rest & chosen].mean()) if (rest & chosen).any() else 1.0
    seen = ~rest if found.predicted is None else ~rest | chosen
    total = (found.found or 0) + int(of_class.sum())
    return ((found.found or 0) + int((of_class & seen).sum())) / total if total else 1.0


def _endless(model: Any, X: Any) -> Criterion:
    """A rule that never stops, and records the inputs of the default rule if the model provides them."""
    never = Budget((X.shape[0] if hasattr(X, "shape") else len(X)) + 1)
    rule = LabelWorth()
    return rule & never if rule.needs() <= provided_fields(model) else never


def default_record(available: frozenset[str]) -> Any:
    """Fields that a run records by default: those of the default rule, if the model provides them.

    Args:
        available: Fields of a :class:`suffice.Step` that the run can provide.
    """
    rule = LabelWorth()
    return rule if rule.needs() <= available else ()


def audit(  # noqa: PLR0913 - as above
    model: Any,
    X: Any,
    y: Any,
    *,
    initial: int = 10,
    X_test: Any = None,
    y_test: Any = None,
    batch: int = 1,
    record: Any = None,
    stop_set: StopSet | int | None = None,
    validation: tuple[Any, Any] | None = None,
    rule: Criterion | None = None,
    check: int | Mapping[str, Any] | None = None,
    seed: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Trace:
    """Compute the curve of divergences for data that were labelled in this order, so that any rule can be applied.

    For Gaussian noise the whole history is computed from one factorisation, and one more each time that
    hyper-parameters are learned again, on half as many labels.

    Args:
        model: As for :func:`simulate`.
        X: Inputs in the order in which they were labelled, ``n x D``.
        y: Labels.
        initial: Labels before the first step.
        X_test: Test inputs.
        y_test: Test labels.
        batch: Labels that came at each step.
        record: What else to record, as for :func:`simulate`; likewise
        stop_set: The stop set, and
        validation: Inputs and labels of a validation set.
        rule: Stop when this rule says so, and
        check: Check the model at the end; both as for :func:`simulate`. Checks are drawn from the later rows.
        seed: Seed of the checks; they are drawn from fresh entropy if it is left out.
        progress: Called now and then with the steps done and the steps to do.

    Returns:
        The run; ``trace.ratio()`` is the error ratio, ``trace.replay(rule)`` gives the verdicts of a rule.

    Examples:
        >>> import numpy as np
        >>> from suffice.models import BayesianRidge
        >>> X = np.random.default_rng(0).normal(size=(200, 3)); y = X @ [1.0, 2.0, 3.0]
        >>> audit(BayesianRidge(alpha=1.0, beta=1.0), X, y).ratio().shape
        (190,)
    """
    n = whole(initial, "initial", least=1)
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if rows < n:
        raise InvalidValueError(f"X has {rows} rows, fewer than the {n} initial labels")
    options: dict[str, Any] = {"X_test": X_test, "y_test": y_test, "batch": batch, "record": record}
    options |= {"stop_set": stop_set, "validation": validation, "rule": rule, "check": check, "seed": seed}
    return simulate(model, X, y, initial=np.arange(n), acquisition="order", progress=progress, **options)
