"""Replay of rules on recorded runs without look-ahead, the cost of each stop, and the ranking of rules.

Every data set has the same weight in the ranking.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import whole
from suffice.criteria import Criterion, Step, Verdict
from suffice.errors import InvalidValueError, MissingInputError
from suffice.numerics import Floats
from suffice.trace import DIVERGENCES, Trace
from suffice_research.recommendation.compared_rules import (
    AT_ONCE,
    NEVER,
    ORACLE,
    RANDOM_STOP,
    Entry,
    catalogue,
    for_trace,
)
from suffice_research.recommendation.stopping_costs import (
    RATIOS,
    CostedRun,
    first_good,
    optimal_steps,
    paid_steps,
    random_regrets,
    regrets,
)

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
        >>> from suffice_research.recommendation.compared_rules import catalogue
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
        >>> from suffice_research.recommendation.compared_rules import catalogue
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

        When hyper-parameters were learned again, the rule starts over with the history under the new hyper-parameters,
        as in :meth:`suffice.Trace.replay`. The time is that of the rule only, without the creation of its steps.

        Args:
            entry: The rule and its settings.

        Raises:
            MissingInputError: The rule requires inputs that were not recorded; the message names them.
            InvalidValueError: The entry is a reference that is not a rule.
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
        """One replay, whose values are compared with the limits of all settings."""
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
        """The steps for a rule; it starts over only if inputs that it uses were computed again."""
        needs = rule.needs()
        missing = sorted(needs - self._trace.recorded)
        if missing:
            raise MissingInputError(
                f"{type(rule).__name__} requires {', '.join(missing)}, which the run did not record"
            )
        # A rule that does not use divergences gets none, as in its own replay, because one may be infinite.
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
    """The step of a rule's first stop, and the number of steps until then."""
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
    """Steps at which each setting would stop: the loosest stops, and the value is within the setting's limit."""
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
        """Number of labels minus that at the first good step, for each setting."""
        return self.labels - self.good_labels

    @property
    def forgone(self) -> Floats:
        """Error minus the best error of the run, for each setting."""
        return self.error - self.best_error


def scores(
    case: RunCase,
    trace: Trace,
    *,
    ratios: Sequence[float] = RATIOS,
    entries: Sequence[Entry] | None = None,
    error: Any = None,
) -> list[RuleScore]:
    """Replay all comparable rules on a run, and compute their scores.

    Args:
        case: Which run it is.
        trace: The run, recorded with a test set.
        ratios: What an error of 1 costs, in labels.
        entries: What to compare; all that the run recorded enough for if left out.
        error: What to judge by, one number for each step; the predictive error of the run if left out.

    Returns:
        One score for each entry.

    Raises:
        InvalidValueError: The run has no recorded error.
        MissingInputError: An entry requires inputs that were not recorded.

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


# Sums of weights that should be equal may differ by this much.
_SHARE_ROUNDING = 1e-12


def equal_weights(groups: Sequence[Hashable]) -> Floats:
    """Weights that add up to 1, equal for all groups and equal within each group.

    Examples:
        >>> equal_weights(["a", "a", "b"])
        array([0.25, 0.25, 0.5 ])
    """
    sizes = Counter(groups)
    return np.array([1.0 / (len(sizes) * sizes[group]) for group in groups])


def weighted_quantile(values: Any, weights: Any, share: float) -> float:
    """Weighted quantile: the value at or below which a share of the weight lies; on a tie the mean with the next value.

    With equal weights and a share of one half it is the usual median.

    Examples:
        >>> weighted_quantile([3.0, 1.0, 2.0], [0.25, 0.5, 0.25], 0.5), weighted_quantile([3.0, 1.0], [1, 1], 0.9)
        (1.5, 3.0)
    """
    order = np.argsort(values, kind="stable")
    sorted_values = np.asarray(values, dtype=np.float64)[order]
    below = np.cumsum(np.asarray(weights, dtype=np.float64)[order])
    below /= below[-1]
    at = int(np.argmax(below >= share - _SHARE_ROUNDING))
    exactly = abs(below[at] - share) <= _SHARE_ROUNDING and at + 1 < len(below)
    return float(sorted_values[at] if not exactly else 0.5 * (sorted_values[at] + sorted_values[at + 1]))


def mean_by_group(values: Any, groups: Sequence[Hashable]) -> Floats:
    """Means of the values that are not NaN, with the same weight for every group, ``rows``.

    Args:
        values: ``rows x items``.
        groups: The group of each item.

    Examples:
        >>> mean_by_group([[1.0, 3.0, 6.0], [1.0, np.nan, 2.0]], ["a", "a", "b"])
        array([4. , 1.5])
    """
    table = np.asarray(values, dtype=np.float64)
    sums, counts = _by_group(table, np.unique(np.asarray(groups), return_inverse=True)[1])
    return _mean_of_means(sums, counts)


def resampled_means(
    values: Any, data: Sequence[Hashable], seeds: Sequence[Hashable], *, resamples: int = 1000, seed: int = 0
) -> Floats:
    """Bootstrap of the means of :func:`mean_by_group`: runs are drawn with replacement, first data sets, then seeds.

    All runs of a data set with the same seed are drawn together, since they share their data and first labels. Every
    row is averaged over the same drawn runs, so that differences between rows are paired.

    Args:
        values: ``rows x runs``, NaN if a row has no such run.
        data: Data set of each run.
        seeds: Seed of each run.
        resamples: How many times to draw.
        seed: Seed of the drawing.

    Returns:
        ``rows x resamples``; NaN if no run of a row was drawn.

    Examples:
        >>> resampled_means([[1.0, 1.0, 1.0]], ["a", "a", "b"], [0, 1, 0], resamples=3)
        array([[1., 1., 1.]])
    """
    table, rng = np.asarray(values, dtype=np.float64), np.random.default_rng(seed)
    names = list(dict.fromkeys(data))
    within = [list(dict.fromkeys(s for d, s in zip(data, seeds, strict=True) if d == name)) for name in names]
    most = max(map(len, within))
    places = np.array(
        [names.index(d) * most + within[names.index(d)].index(s) for d, s in zip(data, seeds, strict=True)]
    )
    sums, counts = (part.reshape(len(table), len(names), most) for part in _by_group(table, places, len(names) * most))
    means = np.empty((len(table), whole(resamples, "resamples", least=1)))
    for number in range(means.shape[1]):
        drawn = rng.integers(len(names), size=len(names))
        times = np.array([_times(len(within[d]), most, rng) for d in drawn])
        means[:, number] = _mean_of_means(
            np.einsum("rds,ds->rd", sums[:, drawn], times), np.einsum("rds,ds->rd", counts[:, drawn], times)
        )
    return means


def interval(resampled: Floats, share: float = 0.9) -> list[float] | None:
    """The central interval that contains a share of the drawn means; None if there are none (all are NaN).

    Examples:
        >>> [round(end, 6) for end in interval(np.arange(101.0))]
        [5.0, 95.0]
    """
    there = resampled[~np.isnan(resampled)]
    if not len(there):
        return None
    return [float(end) for end in np.quantile(there, [0.5 - share / 2.0, 0.5 + share / 2.0])]


def _times(size: int, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Count of each of ``size`` seeds in a sample with replacement."""
    return np.bincount(rng.integers(size, size=size), minlength=most)


def _by_group(table: Floats, places: NDArray[np.intp], count: int | None = None) -> tuple[Floats, Floats]:
    """Sums and counts of the values that are not NaN, ``rows x groups``."""
    groups = int(places.max()) + 1 if count is None else count
    member = np.zeros((table.shape[1], groups))
    member[np.arange(table.shape[1]), places] = 1.0
    there = ~np.isnan(table)
    return np.where(there, table, 0.0) @ member, there @ member


def _mean_of_means(sums: Floats, counts: Floats) -> Floats:
    there = counts > 0
    means = np.divide(sums, counts, out=np.zeros_like(sums), where=there)
    groups = there.sum(axis=1)
    return np.asarray(np.divide(means.sum(axis=1), groups, out=np.full(len(sums), np.nan), where=groups > 0))


# Means of the same regrets in another order may differ by this share.
_REGRET_ROUNDING = 1e-12


class ChosenSettings(NamedTuple):
    """The settings chosen for a data set, as positions in the list of settings.

    Attributes:
        one: The setting for all costs.
        per_cost: The setting for each cost.
    """

    one: int
    per_cost: tuple[int, ...]


def choose(regrets: Mapping[str, Floats], judged: str, *, default: int) -> ChosenSettings:
    """Choose the settings with the least mean regret over all other data sets.

    Every data set has the same weight, independent of its number of runs. Of equally good settings the default is
    chosen, or otherwise the strictest.

    Args:
        regrets: By data set, ``runs x settings x ratios``; settings from the loosest to the strictest.
        judged: The data set that the choice is for; its regrets are not looked at, but for how many ratios there are.
        default: Place of the default setting: the choice where there is no other data set.

    Examples:
        >>> regrets = {"a": np.array([[[0.5, 0.1], [0.3, 0.4]]]), "b": np.array([[[9.0, 9.0], [0.0, 0.0]]])}
        >>> choose(regrets, "b", default=0)
        ChosenSettings(one=0, per_cost=(1, 0))
    """
    others = [np.asarray(values).mean(axis=0) for data, values in regrets.items() if data != judged]
    if not others:
        return ChosenSettings(default, (default,) * np.shape(regrets[judged])[-1])
    mean = np.mean(others, axis=0)
    return ChosenSettings(_least(mean.mean(axis=1), default), tuple(_least(column, default) for column in mean.T))


def _least(values: Floats, default: int) -> int:
    """Position of the least value; of several the default, or otherwise the last."""
    best = values.min()
    tied = np.flatnonzero(values <= best + _REGRET_ROUNDING * max(abs(best), _REGRET_ROUNDING))
    return default if default in tied else int(tied[-1])


Row = dict[str, Any]

# If a row has a stop for each cost, the stop at this ratio is shown, or at the nearest available ratio.
_SHOWN: Final = 1000.0
_CASE: Final = ("data", "model", "seed", "batch", "variant")


def ratio_name(ratio: float) -> str:
    """Key of a ratio: 21.5, 1000.

    Examples:
        >>> ratio_name(1000.0), ratio_name(21.5)
        ('1000', '21.5')
    """
    return f"{ratio:.10g}"


def rows(scores: Sequence[RuleScore], *, entries: Sequence[Entry] | None = None, ends: bool = True) -> list[Row]:
    """One row for each run, rule and way to set it.

    A row contains ``rule``, ``params``, the run (``data``, ``model``, ``seed``, ``batch``, ``variant``), ``setting``,
    ``stop`` (a step from 0, None without a stop), ``labels`` (all labels of the run until then), ``wrong_share`` and
    ``least_wrong_share`` (of the test set, at the stop and the least of the run; None for numbers), ``error`` (of the
    averaged prediction: squared error, or share of wrong classes), ``regret`` by ratio, ``premature``, ``fired``,
    ``over`` (labels minus those at the first good step), ``forgone`` (error minus the best error) and
    ``seconds_per_step``. The settings are

    - ``default``: the setting of the literature, or the only setting;
    - ``one threshold``: the best setting on the other data sets, in runs of the same model and batch, for all
      costs: by the geometric mean of the cost over that of the best stop, which a single bad run does not rule.
      In addition to its listed settings, a rule may be set to stop at once or never, if both are among the scores;
      - ``per cost``: the same, but one setting for each cost. ``params`` contains the setting by ratio;
      - ``costs``: the rule is given the costs, and no setting is chosen;
      - ``reference``: no setting is chosen.

    In rows with another stop for each cost (``per cost``, ``costs`` and the oracle), ``stop``, ``labels``,
    ``wrong_share``, ``error``, ``premature``, ``fired``, ``over`` and ``forgone`` are those at a ratio of 1000, or at
    the nearest available ratio.

    Args:
        scores: Those of all runs that are compared.
        entries: What the scores are of; the catalogue if left out.
        ends: Whether the two ends may be chosen.

    Raises:
        InvalidValueError: A score belongs to none of the entries.

    Examples:
        >>> from dataclasses import replace
        >>> from suffice_research.compare.scoring import RunCase, scores
        >>> from suffice.trace import Trace
        >>> trace = Trace.of_divergences([0.5, 0.1], [0.6, 0.1], first=10)
        >>> trace = replace(trace, predictive_error=np.array([0.4, 0.3]))
        >>> found = scores(RunCase("toy", "gp", 0), trace, ratios=[10.0, 100.0])
        >>> never = next(row for row in rows(found) if row["rule"] == "Never")
        >>> never["setting"], never["labels"], never["regret"]
        ('reference', 12, {'10': 0.0, '100': 0.0})
    """
    if not scores:
        return []
    made: list[Row] = []
    by_name = {entry.name: entry for entry in entries or catalogue(scores[0].ratios)}
    groups: dict[tuple[str, str, int], list[RuleScore]] = defaultdict(list)
    limits = _ends(scores) if ends else {}
    for score in scores:
        if score.rule not in by_name:
            raise InvalidValueError(f"{score.rule} is none of the entries: {', '.join(by_name)}")
        groups[score.rule, score.case.model, score.case.batch].append(score)
    for key, group in groups.items():
        if by_name[key[0]].swept and all(score.case in limits for score in group):
            groups[key] = [_between(score, *limits[score.case]) for score in group]
    for (rule, _, _), group in groups.items():
        choices = _choices(by_name[rule], group)
        for score in group:
            made.extend(_score_rows(by_name[rule], score, choices.get(score.case.data)))
    return made


def _ends(scores: Sequence[RuleScore]) -> dict[RunCase, tuple[RuleScore, RuleScore]]:
    """The scores of stopping at once and of never stopping, for the runs that have both."""
    at_once, never = ({s.case: s for s in scores if s.rule == name} for name in (AT_ONCE, NEVER))
    return {case: (first, never[case]) for case, first in at_once.items() if case in never}


def _between(score: RuleScore, first: RuleScore, last: RuleScore) -> RuleScore:
    """A score with two more settings, to stop at once and never."""
    names = ("regrets", "labels", "error", "premature", "fired", "wrong_share")
    joined: dict[str, Any] = {n: np.concatenate([getattr(part, n) for part in (first, score, last)]) for n in names}
    settings = ("at once", *score.settings, "never")
    return replace(score, settings=settings, stops=(*first.stops, *score.stops, *last.stops), **joined)


def _choices(entry: Entry, group: Sequence[RuleScore]) -> dict[str, ChosenSettings]:
    """The settings chosen for each data set, from runs of the same model and batch on the other data sets."""
    if not entry.swept:
        return {}
    by_data: dict[str, list[Floats]] = defaultdict(list)
    for score in group:
        by_data[score.case.data].append(np.log1p(score.regrets))
    regrets = {data: np.array(several) for data, several in by_data.items()}
    default = group[0].settings.index(entry.default)
    return {data: choose(regrets, data, default=default) for data in regrets}


def _score_rows(entry: Entry, score: RuleScore, choice: ChosenSettings | None) -> Iterator[Row]:
    shown = int(np.argmin(np.abs(np.log(np.array(score.ratios) / _SHOWN))))
    each = np.arange(len(score.ratios))
    if entry.kind == "cost" or entry.name == ORACLE:
        setting = "costs" if entry.kind == "cost" else "reference"
        yield _row(score, setting, {}, shown, score.regrets[each, each])
    elif choice is None:
        setting = "reference" if entry.kind == "reference" else "default"
        yield _row(score, setting, {}, 0, score.regrets[0])
    else:
        for setting, at in (("default", score.settings.index(entry.default)), ("one threshold", choice.one)):
            yield _row(score, setting, {entry.parameter: score.settings[at]}, at, score.regrets[at])
        params = {
            ratio_name(ratio): score.settings[at] for ratio, at in zip(score.ratios, choice.per_cost, strict=True)
        }
        chosen = np.array(choice.per_cost)
        yield _row(score, "per cost", params, choice.per_cost[shown], score.regrets[chosen, each])


def _row(score: RuleScore, setting: str, params: Mapping[str, Any], at: int, regrets: Floats) -> Row:
    return {
        "rule": score.rule,
        "params": dict(params),
        **{name: getattr(score.case, name) for name in _CASE},
        "setting": setting,
        "stop": score.stops[at],
        "labels": _plain(score.labels[at]),
        "wrong_share": _if_there(score.wrong_share[at]),
        "least_wrong_share": _if_there(score.least_wrong_share),
        "error": float(score.error[at]),
        "regret": {ratio_name(ratio): float(value) for ratio, value in zip(score.ratios, regrets, strict=True)},
        "premature": _yes_or_share(score.premature[at]),
        "fired": _yes_or_share(score.fired[at]),
        "over": _plain(score.over[at]),
        "forgone": float(score.forgone[at]),
        "seconds_per_step": score.seconds_per_step,
    }


def _plain(number: Any) -> int | float:
    return int(number) if float(number).is_integer() else float(number)


def _if_there(share: Any) -> float | None:
    return None if np.isnan(share) else float(share)


def _yes_or_share(share: Any) -> bool | float:
    return bool(share) if share in (0.0, 1.0) else float(share)


def leaderboard(rows: Sequence[Row], *, resamples: int = 1000, seed: int = 0) -> list[Row]:
    """Rules ranked by their mean relative regret over all runs and costs; every data set has the same weight.

    For each rule and setting: ``mean``, ``median`` and ``p90`` of the regret; ``typical``, the geometric mean of the
    cost over that of the best stop, less 1; ``interval``, the middle 90 % of means
    of runs drawn again (data sets, then seeds in each); ``difference`` of the mean to that of the best rule over the
    runs that both have (None if there are none), and its ``difference_interval``, paired; the share of ``premature``
    stops, the ``stop_rate``, ``wrong_share`` at the stop (mean over runs with classes; None without one), ``over``
    (median), ``forgone`` (mean), ``seconds_per_step`` (median); and how many ``data_sets`` and ``runs``. The best rule
    is that of least mean among those that have all runs, references apart.

    Args:
        rows: What :func:`rows` made, of one kind of task or of all.
        resamples: How many times to draw.
        seed: Seed of the drawing.

    Examples:
        >>> from dataclasses import replace
        >>> from suffice_research.compare.scoring import RunCase, scores
        >>> from suffice.trace import Trace
        >>> trace = Trace.of_divergences([0.5, 0.1], [0.6, 0.1], first=10)
        >>> trace = replace(trace, predictive_error=np.array([0.4, 0.3]))
        >>> found = scores(RunCase("toy", "gp", 0), trace, ratios=[10.0, 100.0])
        >>> ranked = leaderboard(rows(found), resamples=100)
        >>> oracle = next(row for row in ranked if row["rule"] == "Oracle")
        >>> oracle["mean"], oracle["interval"], oracle["runs"]
        (0.0, [0.0, 0.0], 1)
    """
    groups: dict[tuple[str, str], dict[tuple[Any, ...], Row]] = defaultdict(dict)
    for row in rows:
        groups[row["rule"], row["setting"]][tuple(row[name] for name in _CASE)] = row
    if not groups:
        return []
    cases = list(dict.fromkeys(case for group in groups.values() for case in group))
    table = np.full((len(groups), len(cases)), np.nan)
    for number, group in enumerate(groups.values()):
        for place, case in enumerate(cases):
            if case in group:
                table[number, place] = np.mean(list(group[case]["regret"].values()))
    data, seeds = [case[0] for case in cases], [case[2] for case in cases]
    means = mean_by_group(table, data)
    apart = table - table[_best(list(groups), table, means)]
    differences = mean_by_group(apart, data)
    drawn, drawn_apart = (
        resampled_means(regrets, data, seeds, resamples=resamples, seed=seed) for regrets in (table, apart)
    )
    ranked = [
        {
            "rule": rule,
            "setting": setting,
            "mean": float(means[number]),
            **_spread(list(group.values())),
            "interval": interval(drawn[number]),
            "difference": None if np.isnan(differences[number]) else float(differences[number]),
            "difference_interval": interval(drawn_apart[number]),
            **_habits(list(group.values())),
        }
        for number, ((rule, setting), group) in enumerate(groups.items())
    ]
    return sorted(ranked, key=lambda row: row["mean"])


def _best(names: list[tuple[str, str]], table: Floats, means: Floats) -> int:
    """The rule with the least mean among the rules with most runs; references are excluded if there are other rules."""
    there = (~np.isnan(table)).sum(axis=1)
    rules = np.array([setting != "reference" for _, setting in names])
    eligible = rules if rules.any() else ~rules
    whole = eligible & (there == there[eligible].max())
    return int(np.argmin(np.where(whole, means, np.inf)))


def _spread(group: Sequence[Row]) -> Row:
    weights = equal_weights([row["data"] for row in group])
    values = np.array([list(row["regret"].values()) for row in group])
    spread = np.repeat(weights, values.shape[1])
    found = {name: weighted_quantile(values.ravel(), spread, share) for name, share in (("median", 0.5), ("p90", 0.9))}
    return {**found, "typical": float(np.expm1(weights @ np.log1p(values).mean(axis=1)))}


def _habits(group: Sequence[Row]) -> Row:
    weights = equal_weights([row["data"] for row in group])

    def mean(name: str) -> float:
        return float(weights @ np.array([float(row[name]) for row in group]))

    classes = [row for row in group if row["wrong_share"] is not None]
    wrong = equal_weights([row["data"] for row in classes]) @ np.array([row["wrong_share"] for row in classes])
    seconds = [row["seconds_per_step"] for row in group if row["seconds_per_step"] is not None]
    return {
        "premature": mean("premature"),
        "stop_rate": mean("fired"),
        "wrong_share": float(wrong) if classes else None,
        "over": weighted_quantile([row["over"] for row in group], weights, 0.5),
        "forgone": mean("forgone"),
        "seconds_per_step": float(np.median(seconds)) if seconds else None,
        "data_sets": len({row["data"] for row in group}),
        "runs": len(group),
    }


def curves(scores: Sequence[RuleScore]) -> list[Row]:
    """Labels against error: means over runs for each rule with several settings, each model and each setting.

    ``labels`` is relative to the labels at the run's first good step, ``error`` relative to its best error. Every data
    set has the same weight. Runs whose best error is 0 are left out.

    Args:
        scores: Those of all runs.

    Returns:
        ``rule``, ``model``, ``value`` (the setting), ``labels``, ``error``, ``data_sets`` and ``runs``; settings from
        the loosest to the strictest.

    Examples:
        >>> from dataclasses import replace
        >>> from suffice_research.compare.scoring import RunCase, scores
        >>> from suffice.trace import Trace
        >>> trace = Trace.of_divergences([0.5, 0.1], [0.6, 0.1], first=10)
        >>> trace = replace(trace, predictive_error=np.array([0.4, 0.3]))
        >>> found = scores(RunCase("toy", "gp", 0), trace, ratios=[10.0, 100.0])
        >>> point = next(point for point in curves(found) if point["rule"] == "Budget")
        >>> point["value"], round(point["labels"], 3), round(point["error"], 3)
        (10, 0.917, 1.333)
    """
    groups: dict[tuple[str, str], list[RuleScore]] = defaultdict(list)
    for score in scores:
        if len(score.settings) > 1 and score.best_error > 0.0:
            groups[score.rule, score.case.model].append(score)
    points: list[Row] = []
    for (rule, model), group in groups.items():
        weights = equal_weights([score.case.data for score in group])
        labels = weights @ np.array([score.labels / score.good_labels for score in group])
        errors = weights @ np.array([score.error / score.best_error for score in group])
        about = {"data_sets": len({score.case.data for score in group}), "runs": len(group)}
        points += [
            {"rule": rule, "model": model, "value": value, "labels": float(x), "error": float(y), **about}
            for value, x, y in zip(group[0].settings, labels, errors, strict=True)
        ]
    return points
