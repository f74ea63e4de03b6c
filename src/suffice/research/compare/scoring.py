"""Replay of rules on a recorded run without look-ahead, and the cost of each stop."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.criteria import Criterion, Step, Verdict
from suffice.errors import MissingInputError
from suffice.numerics import Floats
from suffice.recommendation.compared_rules import ORACLE, RANDOM_STOP, Entry, for_trace
from suffice.recommendation.stopping_costs import (
    RATIOS,
    CostedRun,
    first_good,
    optimal_steps,
    paid_steps,
    random_regrets,
    regrets,
)
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
    """First stop of a rule at each of its settings; see :meth:`Replayer.replay`.

    Examples:
        >>> from suffice.recommendation.compared_rules import catalogue
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
        >>> from suffice.recommendation.compared_rules import catalogue
        >>> entries = {entry.name: entry for entry in catalogue()}
        >>> replayer = Replayer(Trace.of_divergences([0.5, 0.4, 0.1], [0.6, 0.4, 0.1], first=18))
        >>> replayer.replay(entries["Budget"]).stops[20], replayer.replay(entries["Never"]).stops
        (1, {None: None})
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._made: dict[tuple[int | None, bool], list[Step]] = {}

    def replay(self, entry: Entry) -> ReplayResult:
        """First stop of a rule at each of its settings, without later steps; and the computing time.

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
    """Number of consecutive steps up to each step, starting from ``before``."""
    at = np.arange(len(holding))[:, None]
    last = np.maximum.accumulate(np.where(holding, -1 - before, at), axis=0)
    return np.asarray(at - last)


@dataclass(frozen=True, order=True)
class RunCase:
    """Identifies a run.

    Attributes:
        data: Name of the data set. Runs on the same data set have the same name, whatever else differs.
        model: Name of the model: settings are chosen among runs of the same.
        seed: Seed of the run.
        batch: Labels bought at each step.
        variant: What else was varied, in words: label noise, imbalance, the size of the stop set.
    """

    data: str
    model: str
    seed: int
    batch: int = 1
    variant: str = ""


@dataclass(frozen=True, eq=False)
class RuleScore:
    """One rule on one run, at each of its settings.

    Attributes:
        case: Which run.
        rule: Name of the entry.
        ratios: What an error of 1 costs, in labels.
        settings: Settings of the rule. For a rule of costs, and the oracle, they are the ratios.
        stops: Step of the stop at each setting, from 0; None where there is none.
        regrets: Relative regret, ``settings x ratios``.
        labels: Labels paid for at each setting, the whole run's where there was no stop.
        error: Error at the stop, of the averaged prediction: see :attr:`suffice.Trace.predictive_error`.
        premature: Whether it stopped before the first good step; for a random stop the share of steps before it.
        fired: Whether it stopped.
        good_labels: Labels at the first good step of the run.
        best_error: Least error of the run.
        seconds_per_step: What the rule took for one step; None for a reference that is no rule.
        wrong_share: Share of the test set predicted wrong at the stop; NaN for numbers, and if left out.
        least_wrong_share: Least such share of the run; NaN for numbers.
    """

    case: RunCase
    rule: str
    ratios: tuple[float, ...]
    settings: tuple[Any, ...]
    stops: tuple[int | None, ...]
    regrets: Floats
    labels: Floats
    error: Floats
    premature: Floats
    fired: Floats
    good_labels: float
    best_error: float
    seconds_per_step: float | None = None
    wrong_share: Floats = field(default_factory=lambda: np.zeros(0))
    least_wrong_share: float = np.nan

    def __post_init__(self) -> None:
        if not len(self.wrong_share):
            object.__setattr__(self, "wrong_share", np.full(len(self.settings), np.nan))

    @property
    def over(self) -> Floats:
        """Labels beyond those at the first good step, at each setting; below 0 where there are fewer."""
        return self.labels - self.good_labels

    @property
    def forgone(self) -> Floats:
        """Error above the best of the run, at each setting."""
        return self.error - self.best_error


def scores(
    case: RunCase,
    trace: Trace,
    *,
    ratios: Sequence[float] = RATIOS,
    entries: Sequence[Entry] | None = None,
    error: Any = None,
) -> list[RuleScore]:
    """Replay everything that can be compared on a run, and judge it.

    Args:
        case: Which run it is.
        trace: The run, recorded with a test set.
        ratios: What an error of 1 costs, in labels.
        entries: What to compare; all that the run recorded enough for if left out.
        error: What to judge by, one number for each step; the predictive error of the run if left out.

    Returns:
        One score for each entry.

    Raises:
        InvalidValueError: The run has no error to judge by.
        MissingInputError: An entry requires what was not recorded.

    Examples:
        >>> from dataclasses import replace
        >>> trace = Trace.of_divergences([0.5, 0.1], [0.6, 0.1], first=10)
        >>> trace = replace(trace, predictive_error=np.array([0.4, 0.3]))
        >>> found = {score.rule: score for score in scores(RunCase("toy", "gp", 0), trace, ratios=[1.0, 100.0])}
        >>> found["Oracle"].stops, found["Never"].regrets.round(2)
        ((0, 1), array([[0.08, 0.  ]]))
    """
    run, replayer, wanted = CostedRun.of(trace, error), Replayer(trace), tuple(float(ratio) for ratio in ratios)
    wrong = trace.wrong_share if len(trace.wrong_share) else np.full(len(trace), np.nan)
    compared = for_trace(trace, wanted) if entries is None else entries
    made = []
    for entry in compared:
        if entry.name == RANDOM_STOP:
            made.append(_random(case, run, wanted, wrong))
        elif entry.name == ORACLE:
            stops = tuple(int(step) for step in optimal_steps(run, wanted))
            made.append(_score(case, run, wanted, wrong, name=entry.name, settings=wanted, stops=stops))
        else:
            found = replayer.replay(entry)
            made.append(
                _score(
                    case,
                    run,
                    wanted,
                    wrong,
                    name=entry.name,
                    settings=entry.settings,
                    stops=tuple(found.stops.values()),
                    extra=entry.extra_labels(trace),
                    seconds=found.seconds_per_step,
                )
            )
    return made


def _score(  # noqa: PLR0913 - what a score is made of, all but four by keyword
    case: RunCase,
    run: CostedRun,
    ratios: tuple[float, ...],
    wrong: Floats,
    *,
    name: str,
    settings: tuple[Any, ...],
    stops: tuple[int | None, ...],
    extra: int = 0,
    seconds: float | None = None,
) -> RuleScore:
    steps, good = paid_steps(run, stops), first_good(run)
    fired = np.array([stop is not None for stop in stops])
    return RuleScore(
        case=case,
        rule=name,
        ratios=ratios,
        settings=settings,
        stops=stops,
        regrets=regrets(run, stops, ratios, extra=extra),
        labels=run.n_labelled[steps] + extra,
        error=run.error[steps],
        premature=(fired & (steps < good)).astype(np.float64),
        fired=fired.astype(np.float64),
        good_labels=float(run.n_labelled[good]),
        best_error=run.best_error,
        seconds_per_step=seconds,
        wrong_share=wrong[steps],
        least_wrong_share=float(wrong.min()),
    )


def _random(case: RunCase, run: CostedRun, ratios: tuple[float, ...], wrong: Floats) -> RuleScore:
    """Expected result of a stop at a random step."""
    good = first_good(run)
    return RuleScore(
        case=case,
        rule=RANDOM_STOP,
        ratios=ratios,
        settings=(None,),
        stops=(None,),
        regrets=random_regrets(run, ratios)[None],
        labels=np.array([run.n_labelled.mean()]),
        error=np.array([run.error.mean()]),
        premature=np.array([good / len(run)]),
        fired=np.ones(1),
        good_labels=float(run.n_labelled[good]),
        best_error=run.best_error,
        wrong_share=np.array([wrong.mean()]),
        least_wrong_share=float(wrong.min()),
    )
