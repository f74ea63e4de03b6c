"""Rules told a recorded run step by step, none seeing a later one; and where each setting of a rule stops."""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.criteria import Criterion, Step, Verdict
from suffice.errors import MissingInputError
from suffice.experiments.compare.entry import Entry
from suffice.trace import DIVERGENCES, Trace

Stops = dict[Any, int | None]


class ReplayResult(NamedTuple):
    """The result of replaying an entry.

    Attributes:
        stops: For each setting the step, from 0, of the first stop; None if it never stops.
        seconds_per_step: What the rule alone took for one step.
    """

    stops: Stops
    seconds_per_step: float


class ReplaySegment(NamedTuple):
    """Consecutive steps of a replay.

    Attributes:
        steps: They.
        first: Number of the first of them in the run.
        anew: Whether a rule starts over with them: the past, as hyper-parameters that were learned again see it. Its
            verdict is then asked for at the last one only.
    """

    steps: list[Step]
    first: int
    anew: bool


def first_stops(trace: Trace, entry: Entry) -> Stops:
    """Where a rule first stops, at each of its settings: see :meth:`Replayer.replay`.

    Examples:
        >>> from suffice.experiments.compare.rules import catalogue
        >>> trace = Trace.of_divergences([0.5] * 12 + [0.01, 0.0001], [0.5] * 12 + [0.01, 0.0001], first=10)
        >>> found = first_stops(trace, next(entry for entry in catalogue() if entry.name == "ErrorStability"))
        >>> found[0.215], found[0.0215], found[0.001]
        (12, 13, None)
    """
    return Replayer(trace).replay(entry).stops


class Replayer:
    """A recorded run whose steps are created once and passed to any number of rules.

    Args:
        trace: The run.

    Examples:
        >>> from suffice.experiments.compare.rules import catalogue
        >>> entries = {entry.name: entry for entry in catalogue()}
        >>> replayer = Replayer(Trace.of_divergences([0.5, 0.4, 0.1], [0.6, 0.4, 0.1], first=18))
        >>> replayer.replay(entries["Budget"]).stops[20], replayer.replay(entries["Never"]).stops
        (1, {None: None})
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._made: dict[tuple[int | None, bool], list[Step]] = {}

    def replay(self, entry: Entry) -> ReplayResult:
        """Where a rule first stops, at each of its settings, told only what was known then; and how long it took.

        Where hyper-parameters were learned again the rule starts over on the past as they see it, as in
        :meth:`suffice.Trace.replay`. The time is that of the rule alone, its steps ready made.

        Args:
            entry: The rule and its settings.

        Raises:
            MissingInputError: The rule requires what was not recorded, named.
            InvalidValueError: The entry is a reference that is no rule.
        """
        return self._one_by_one(entry) if entry.sense is None else self._at_once(entry)

    def _one_by_one(self, entry: Entry) -> ReplayResult:
        """A replay for each setting, up to its first stop."""
        found: Stops = {}
        seconds, seen = 0.0, 0
        for setting in entry.settings:
            rule = _fresh(entry.rule(setting))
            pieces = list(self._pieces(rule))
            start = time.perf_counter()
            found[setting], told = _first_stop(rule, pieces)
            seconds, seen = seconds + time.perf_counter() - start, seen + told
        return ReplayResult(found, seconds / max(seen, 1))

    def _at_once(self, entry: Entry) -> ReplayResult:
        """One replay, whose numbers are held against the limits of all settings."""
        judge, count = _fresh(entry.replayed_once()), len(entry.settings)
        found: list[int | None] = [None] * count
        row = np.zeros(count, dtype=np.intp)
        seconds, seen = 0.0, 0
        for piece in self._pieces(judge):
            if not piece.steps:
                continue
            start = time.perf_counter()
            if piece.anew:
                judge.reset()
                row[:] = 0
            verdicts = judge.observe_all(piece.steps)
            seconds, seen = seconds + time.perf_counter() - start, seen + len(piece.steps)
            lengths = _rows_of(_holding(entry, verdicts), row)
            row, said = lengths[-1], lengths >= entry.in_a_row
            first = piece.first
            if piece.anew:
                said, first = said[-1:], first + len(piece.steps) - 1
            for number in np.flatnonzero(said.any(axis=0)):
                if found[number] is None:
                    found[number] = first + int(said[:, number].argmax())
        return ReplayResult(dict(zip(entry.settings, found, strict=True)), seconds / max(seen, 1))

    def _pieces(self, rule: Criterion) -> Iterator[ReplaySegment]:
        """The steps as a rule sees them; it starts over only where what it asks for is seen anew."""
        needs = rule.needs()
        missing = sorted(needs - self._trace.recorded)
        if missing:
            raise MissingInputError(
                f"{type(rule).__name__} requires {', '.join(missing)}, which the run did not record"
            )
        # A rule that asks for no divergences is spared them, as in a replay of its own: one may be infinite.
        with_divergences = bool(needs & DIVERGENCES)
        done, steps = 0, self._steps(None, with_divergences)
        for number, known in enumerate(self._trace.relearned):
            if needs & {*DIVERGENCES, *known.measures}:
                yield ReplaySegment(steps[done : known.step], done, anew=False)
                yield ReplaySegment(self._steps(number, with_divergences), 0, anew=True)
                done = known.step + 1
        yield ReplaySegment(steps[done:], done, anew=False)

    def _steps(self, number: int | None, with_divergences: bool) -> list[Step]:
        key = number, with_divergences
        if key not in self._made:
            trace = self._trace
            known = None if number is None else trace.relearned[number]
            end = len(trace) if known is None else known.step + 1
            names = trace.recorded if with_divergences else trace.recorded - DIVERGENCES
            self._made[key] = trace.steps_seen(known, 0, end, names)
        return self._made[key]


def _fresh(rule: Criterion) -> Criterion:
    copied = rule.copy()
    copied.reset()
    return copied


def _first_stop(rule: Criterion, pieces: list[ReplaySegment]) -> tuple[int | None, int]:
    """The step of a rule's first stop, and how many steps it was told until then."""
    told = 0
    for piece in pieces:
        if piece.anew:
            rule.reset()
            told += len(piece.steps)
            if rule.observe_all(piece.steps)[-1].stop:
                return piece.first + len(piece.steps) - 1, told
            continue
        for number, step in enumerate(piece.steps, start=piece.first):
            told += 1
            if rule.observe(step).stop:
                return number, told
    return None, told


def _holding(entry: Entry, verdicts: list[Verdict]) -> NDArray[np.bool_]:
    """At which steps each setting would hold: where the loosest stops, and the number is within its own limit."""
    stopping = np.array([verdict.stop for verdict in verdicts])
    values = np.array([np.nan if verdict.value is None else verdict.value for verdict in verdicts], dtype=np.float64)
    return stopping[:, None] & entry.holds(values)


def _rows_of(holding: NDArray[np.bool_], before: NDArray[np.intp]) -> NDArray[np.intp]:
    """How many steps in a row it has held by each step, having held ``before`` steps in a row at the start."""
    at = np.arange(len(holding))[:, None]
    last = np.maximum.accumulate(np.where(holding, -1 - before, at), axis=0)
    return np.asarray(at - last)
