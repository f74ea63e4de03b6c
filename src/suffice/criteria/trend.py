"""Rules that monitor a number over the rounds, and stop when it falls or converges."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from suffice.arguments import real, whole
from suffice.criteria.base import (
    CLASSES,
    ComparedRule,
    Criterion,
    RuleInfo,
    apart,
    geometric_grid,
    require_state,
    rises,
    within,
)
from suffice.criteria.confidence_and_accuracy import selected_entropies
from suffice.criteria.step_and_verdict import Step, Verdict

__all__ = ["DropInConfidence", "PerformanceConvergence", "UncertaintyConvergence", "VarianceModel"]

_ROUNDS: Final = (*range(1, 11), 12, 15)
_SLOPES: Final = geometric_grid(0.1, 1e-7, 13, 5e-5)


@dataclass
class DropInConfidence(Criterion):
    """Stop when the mean confidence on the stop set has fallen in several consecutive rounds.

    Confidence, the mean of ``max p``, rises while the model learns; the rule takes a fall as the sign that more labels
    no longer help. With ``c_t`` the confidence after round ``t``, stop when
    ``c_t < c_(t-1) < ... < c_(t-rounds)``. A round in which the confidence rises *or stays the same* restarts the count
    at 0.

    Args:
        rounds: Number of consecutive falls; the paper uses 3.

    Raises:
        InvalidValueError: ``rounds`` is not a whole number of at least 1.

    Reference: [Vlachos2008]

    Examples:
        >>> rule = DropInConfidence(rounds=2)
        >>> for n, confidence in enumerate([0.80, 0.84, 0.83, 0.81], start=11):
        ...     verdict = rule.observe(Step(n_labelled=n, stop_confidence=confidence))
        >>> print(verdict)
        Stop at 14 labels: the mean confidence on the stop set has fallen 2 times in a row, and 2 falls are required.
    """

    rounds: int = 3
    last: float | None = field(default=None, init=False, repr=False)
    falls: int = field(default=0, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"stop_confidence"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="trends",
        example=lambda: DropInConfidence(1),
        tasks=CLASSES,
        compared=(ComparedRule(settings=_ROUNDS, parameter="rounds", default=3, sense="at least"),),
    )

    def __post_init__(self) -> None:
        self.rounds = whole(self.rounds, "rounds", least=1)

    def check_state(self) -> None:
        """Refuse a confidence out of range, and falls that were counted without one."""
        last = self.last
        require_state(self, "last", "None or from 0 to 1", holds=last is None or 0.0 <= last <= 1.0)
        require_state(self, "last", "a number, because falls were counted", holds=last is not None or not self.falls)

    def judge(self, step: Step) -> Verdict:
        """Count the fall, or restart the count."""
        assert step.stop_confidence is not None  # it is required, so observe has checked
        first, self.falls = self.last is None, _falls(self.falls, self.last, step.stop_confidence)
        self.last = step.stop_confidence
        name = "the mean confidence on the stop set"
        reason = _first(name) if first else f"{_falls_sentence(name, self.falls)}, and {self.rounds} falls are required"
        return self.verdict(
            step,
            stop=self.falls >= self.rounds,
            ready=not first,
            value=float(self.falls),
            threshold=float(self.rounds),
            reason=reason,
        )


@dataclass
class VarianceModel(Criterion):
    r"""Stop when the variance of the confidence over the pool has fallen in several consecutive rounds.

    The variance of ``max p`` over the pool rises while the model becomes confident about some items and not about
    others, and falls when it is confident about nearly all. With ``v_t`` the variance after round ``t``, stop when

    .. math:: v_t < v_{t-1} < \dots < v_{t - \text{rounds}} \quad\text{and}\quad
        \max_{s \le t} v_s - v_t > \text{fall} \cdot \max_{s \le t} v_s.

    A round in which the variance rises or stays the same restarts the count. The paper's extended form requires a fall
    of more than ``m``, 0.5 in the units of its own scores. Our reading does not depend on the units: the variance has
    lost more than the share ``fall`` of its largest value so far.

    Args:
        rounds: Number of consecutive falls; the paper uses 2.
        fall: 0 for the basic form; 0.5 for the extended one; from 0 to below 1.

    Raises:
        InvalidValueError: ``rounds`` is not a whole number of at least 1, or ``fall`` not a number from 0 to below 1.

    Reference: [Ghayoomi2010]

    Examples:
        >>> rule = VarianceModel(rounds=2, fall=0.5)
        >>> variances = [0.02, 0.04, 0.03, 0.025, 0.016]
        >>> verdicts = [rule.observe(Step(n_labelled=n, pool_confidence_variance=v)) for n, v in enumerate(variances)]
        >>> [verdict.stop for verdict in verdicts]
        [False, False, False, False, True]
    """

    rounds: int = 2
    fall: float = 0.0
    last: float | None = field(default=None, init=False, repr=False)
    largest: float = field(default=0.0, init=False, repr=False)
    falls: int = field(default=0, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"pool_confidence_variance"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="trends",
        example=lambda: VarianceModel(1),
        tasks=CLASSES,
        compared=(
            # In the basic form any fall is deep enough, and only the number of falls decides.
            ComparedRule(settings=_ROUNDS, parameter="rounds", default=2, sense="at least"),
            ComparedRule(
                name="VarianceModel extended",
                make=lambda fall: VarianceModel(fall=fall),
                settings=(0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
                parameter="fall",
                default=0.5,
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.rounds = whole(self.rounds, "rounds", least=1)
        self.fall = real(self.fall, "fall", "from 0 to below 1", lambda x: 0.0 <= x < 1.0)

    def check_state(self) -> None:
        """Refuse variances below 0 or above the largest one, and falls that were counted without one."""
        last = self.last
        require_state(self, "last", "None or of at least 0", holds=last is None or last >= 0.0)
        require_state(self, "last", "a number, because falls were counted", holds=last is not None or not self.falls)
        require_state(self, "largest", "at least last, and 0 without one", holds=self.largest >= (last or 0.0))
        require_state(self, "largest", "0, because last is None", holds=last is not None or self.largest == 0.0)

    def judge(self, step: Step) -> Verdict:
        """Count the fall, or restart the count; and measure how deep it is so far."""
        variance = step.pool_confidence_variance
        assert variance is not None  # it is required, so observe has checked
        first, self.falls = self.last is None, _falls(self.falls, self.last, variance)
        self.last, self.largest = variance, max(self.largest, variance)
        lost = self.largest - variance
        deep = lost > self.fall * self.largest
        name = "the variance of the confidence over the pool"
        reason = _first(name) if first else f"{_falls_sentence(name, self.falls)}, and {self.rounds} falls are required"
        if self.fall and not first:
            share, wanted = apart(lost / self.largest if self.largest else 0.0, self.fall)
            than = "more than" if deep else "not more than"
            reason += f"; it has lost {share} of its largest value, {than} the required {wanted}"
        return self.verdict(
            step,
            stop=self.falls >= self.rounds and deep,
            ready=not first,
            value=float(self.falls),
            threshold=float(self.rounds),
            reason=reason,
        )


def _falls(so_far: int, before: float | None, now: float) -> int:
    return so_far + 1 if before is not None and now < before else 0


def _first(name: str) -> str:
    return f"{name} is known for one round only, and a fall needs two"


def _falls_sentence(name: str, falls: int) -> str:
    times = "not fallen" if not falls else "fallen once" if falls == 1 else f"fallen {falls} times in a row"
    return f"{name} has {times}"


class _Words(NamedTuple):
    """Words for a number that converges: its name, the verbs for improvement and deterioration, its best value."""

    name: str
    better: str
    worse: str
    best: str


_F: Final = _Words("mean of the expected F score on the pool", "rose", "fell", "highest")
_ENTROPY: Final = _Words("median entropy of the selected examples", "fell", "rose", "lowest")


@dataclass
class _Windows:
    """The values of the last two windows, by the number of labels at that time, and the best of all values."""

    window: int = 100
    threshold: float = 5e-5
    start: int | None = field(default=None, init=False, repr=False)
    counts: list[int] = field(default_factory=list, init=False, repr=False)
    values: list[list[float]] = field(default_factory=list, init=False, repr=False)
    best: float | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.window = whole(self.window, "window", least=1)
        self.threshold = real(self.threshold, "threshold", "above 0", lambda x: x > 0.0)

    def check_state(self) -> None:
        """Refuse counts that fall, lists of different lengths, and a best value or a start that do not fit them."""
        counts, any_step = self.counts, bool(self.counts)
        require_state(self, "counts", "rising counts", holds=rises(counts))
        require_state(self, "values", "as long as counts", holds=len(self.values) == len(counts))
        require_state(
            self, "values", "lists of at least one number of at least 0", holds=all(map(_is_kept, self.values))
        )
        require_state(self, "start", "None without counts", holds=(self.start is not None) == any_step)
        require_state(self, "start", "at most the first count", holds=not any_step or (self.start or 0) <= counts[0])
        require_state(self, "best", "None without counts", holds=(self.best is not None) == any_step)

    def _keep(self, n: int, values: list[float]) -> None:
        """Add the values of a step. They replace those of an earlier step at the same count, to bound the memory."""
        self.start = n if self.start is None else min(self.start, n)
        first, end = bisect_right(self.counts, n - 2 * self.window), bisect_left(self.counts, n)
        series: tuple[tuple[list[Any], Any], ...] = ((self.counts, n), (self.values, values))
        for kept, new in series:
            kept[end:] = [new]
            del kept[:first]

    def _two(self, n: int) -> tuple[list[float], list[float]]:
        """Return the values of the window before the last one, and of the last one."""
        middle = bisect_right(self.counts, n - self.window)
        return list(chain.from_iterable(self.values[:middle])), list(chain.from_iterable(self.values[middle:]))

    def _missing(self, n: int) -> str:
        """Return what is missing to compare two windows; empty if nothing is missing."""
        seen = 0 if self.start is None else n - self.start + 1
        if seen < 2 * self.window:
            return f"two windows of {self.window} labels are compared, and the rule has seen {seen} so far"
        if not self._two(n)[0]:
            return (
                f"no step ended in the window of {self.window} labels before the last, so there is nothing to compare; "
                "batches should be smaller than the window"
            )
        return ""

    def _reason(self, words: _Words, gain: float, at_best: bool) -> str:
        shown, against = apart(abs(gain), self.threshold)
        change = f"{words.better if gain >= 0.0 else words.worse} by {shown}"
        text = f"the {words.name} {change} from one window of {self.window} labels to the next"
        if gain < 0.0:
            return text
        if gain >= self.threshold:
            return f"{text}, not below the threshold {against}"
        best = f"{'and' if at_best else 'but'} the newest value is {'' if at_best else 'not '}the {words.best} so far"
        return f"{text}, below the threshold {against}, {best}"


@dataclass
class PerformanceConvergence(_Windows, Criterion):
    r"""Stop when the F score that the model expects of itself on the pool no longer rises.

    With :math:`W_t` the mean of the scores over the last ``window`` labels, and :math:`W'_t` over the window before,

    .. math:: g_t = W_t - W'_t, \qquad \text{stop when } 0 \le g_t < \theta
        \text{ and the newest score is the highest so far.}

    A score equal to the highest so far counts as the highest. Windows are counted in labels, not in rounds: at ``n``
    labels the last window holds the steps with ``n - window < n_labelled <= n``. The rule is not ready before two
    complete windows, or while one of them holds no step.

    Args:
        window: Labels in a window; 100 as in the paper.
        threshold: ``theta``, above 0; 0.00005 as in the paper.

    Raises:
        InvalidValueError: ``window`` is not a whole number of at least 1, or ``threshold`` not a number above 0.

    Reference: [LawsSchuetze2008] performance convergence.

    Examples:
        >>> rule = PerformanceConvergence(window=2, threshold=0.01)
        >>> for n, score in enumerate([0.5, 0.75, 0.875, 0.875, 0.875], start=11):
        ...     verdict = rule.observe(Step(n_labelled=n, pool_f=score))
        ...     print(verdict.stop, verdict.value)
        False None
        False None
        False None
        False 0.25
        False 0.0625
        >>> print(rule.observe(Step(n_labelled=16, pool_f=0.875)))
        Stop at 16 labels: the mean of the expected F score on the pool rose by 0 from one window of 2 labels to the
        next, below the threshold 0.01, and the newest value is the highest so far.
    """

    requires: ClassVar[frozenset[str]] = frozenset({"pool_f"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="trends",
        example=lambda: PerformanceConvergence(4, 0.1),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                make=lambda threshold: PerformanceConvergence(threshold=threshold),
                settings=_SLOPES,
                parameter="threshold",
                default=5e-5,
                sense="below",
            ),
            # Many runs are shorter than two windows of 100 labels.
            ComparedRule(
                name="PerformanceConvergence, window 20",
                make=lambda threshold: PerformanceConvergence(20, threshold),
                settings=_SLOPES,
                parameter="threshold",
                default=5e-5,
                sense="below",
                after="UncertaintyConvergence",
            ),
        ),
    )

    def check_state(self) -> None:
        """Refuse also a best score that is below one of the scores."""
        super().check_state()
        best, scores = self.best, list(chain.from_iterable(self.values))
        require_state(self, "best", "at least each of values", holds=best is None or best >= max(scores))

    def judge(self, step: Step) -> Verdict:
        """Compare the means of two windows."""
        newest = step.pool_f
        assert newest is not None  # it is required, so observe has checked
        self._keep(step.n_labelled, [newest])
        self.best = newest if self.best is None else max(self.best, newest)
        missing = self._missing(step.n_labelled)
        if missing:
            return self.verdict(step, stop=False, ready=False, threshold=self.threshold, reason=missing)
        # Differences from the newest score, so that equal scores have equal means to the last digit.
        previous, last = (_mean([value - newest for value in values]) for values in self._two(step.n_labelled))
        gain, at_best = last - previous, newest >= self.best
        return self.verdict(
            step,
            stop=0.0 <= gain < self.threshold and at_best,
            value=gain,
            threshold=self.threshold,
            reason=self._reason(_F, gain, at_best),
        )


@dataclass
class UncertaintyConvergence(_Windows, Criterion):
    r"""Stop when the uncertainty of the selected examples no longer falls.

    With :math:`M_t` the median entropy of the examples selected in the last ``window`` labels, and :math:`M'_t` in the
    window before,

    .. math:: g_t = M'_t - M_t, \qquad \text{stop when } 0 \le g_t < \theta
        \text{ and the newest value is the lowest so far.}

    The newest value is the median entropy of the examples selected in this step; a value equal to the lowest so far
    counts as the lowest. The rule is the mirror image of :class:`PerformanceConvergence`: uncertainty falls during
    learning, so progress is a fall, and the best value is the lowest. A step that selected nothing is not judged and
    not stored. Windows are counted in labels, as in that rule.

    Args:
        window: Labels in a window; 100 as in the paper.
        threshold: ``theta``, in nats, above 0; 0.00005 as in the paper.

    Raises:
        InvalidValueError: ``window`` is not a whole number of at least 1, or ``threshold`` not a number above 0.

    Reference: [LawsSchuetze2008] uncertainty convergence.

    Examples:
        >>> rule = UncertaintyConvergence(window=2, threshold=0.01)
        >>> for n, p in enumerate([0.6, 0.8, 0.8, 0.8, 0.8], start=11):
        ...     verdict = rule.observe(Step(n_labelled=n, selected_probabilities=[[p, 1 - p]]))
        >>> verdict.stop, verdict.value
        (True, 0.0)
    """

    requires: ClassVar[frozenset[str]] = frozenset({"selected_probabilities"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="trends",
        example=lambda: UncertaintyConvergence(4, 0.2),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                make=lambda threshold: UncertaintyConvergence(threshold=threshold),
                settings=_SLOPES,
                parameter="threshold",
                default=5e-5,
                sense="below",
            ),
            ComparedRule(
                name="UncertaintyConvergence, window 20",
                make=lambda threshold: UncertaintyConvergence(20, threshold),
                settings=_SLOPES,
                parameter="threshold",
                default=5e-5,
                sense="below",
            ),
        ),
    )

    def check_state(self) -> None:
        """Refuse also a best value that is above the median of a step."""
        super().check_state()
        best, medians = self.best, [float(np.median(values)) for values in self.values]
        require_state(self, "best", "at most the median of each step", holds=best is None or best <= min(medians))

    def judge(self, step: Step) -> Verdict:
        """Compare the medians of two windows."""
        found = selected_entropies(step)
        if not len(found):
            missing = "no example was selected in this step, so there is no uncertainty to compare"
            return self.verdict(step, stop=False, ready=False, threshold=self.threshold, reason=missing)
        newest = float(np.median(found))
        self._keep(step.n_labelled, found.tolist())
        self.best = newest if self.best is None else min(self.best, newest)
        missing = self._missing(step.n_labelled)
        if missing:
            return self.verdict(step, stop=False, ready=False, threshold=self.threshold, reason=missing)
        previous, last = (float(np.median(values)) for values in self._two(step.n_labelled))
        gain, at_best = previous - last, newest <= self.best
        return self.verdict(
            step,
            stop=0.0 <= gain < self.threshold and at_best,
            value=gain,
            threshold=self.threshold,
            reason=self._reason(_ENTROPY, gain, at_best),
        )


def _is_kept(values: Sequence[float]) -> bool:
    return bool(values) and within(values, 0.0)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
