"""Rules for Bayesian models: the bound on the change of the error, the bound on the error, the information gain.

:class:`ErrorStability` is the rule of the paper: stop when a label changes the expected error very little.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import pairwise
from typing import ClassVar, Final, Literal

import numpy as np

from suffice.arguments import real, whole
from suffice.bounds import risk_gap, threshold, total_variation
from suffice.criteria.base import (
    ADDED_LATER,
    CLASSES,
    ComparedRule,
    Comparison,
    Criterion,
    RuleInfo,
    geometric_grid,
    require_order,
    require_state,
    rises,
    tightened,
    within,
)
from suffice.criteria.step_and_verdict import Certificate, Curve, Step, Verdict
from suffice.errors import InvalidValueError

__all__ = ["DeterministicBoundRuns", "ErrorStability", "InformationGain", "PacBayes"]

# A smaller bound is the rounding of two equal posteriors: a KL of about 1e-15.
_NEGLIGIBLE: Final = 1e-7
# From this many averaged steps on, the forecast is that of a smooth curve.
_SMOOTH: Final = 5
_GRID: Final = geometric_grid(1.0, 1e-6, 19, 0.05)
_SAYS_NOTHING: Final = "Nothing yet: the bound on the last step's change is wider than the loss range."
_ASSUMPTION: Final = (
    "the loss is bounded and the posteriors are the model's own; nothing is assumed about how examples were "
    "chosen. (That the next step changes no more than the last one is an extrapolation.)"
)
_ASSUMPTION_OF_THEOREM_2: Final = (
    " For the second sentence: expected errors are a supermartingale, and the size of a label's change is known before "
    "the label (Theorem 2)."
)


@dataclass
class ErrorStability(Criterion):
    r"""Stop when the bound on the change of the expected error, relative to its first values, is at most a threshold.

    .. math::
        r_t &= r(\mathrm{KL}[new\|old]) + r(\mathrm{KL}[old\|new]), \qquad \lambda_t = r_t / \gamma, \qquad
        \gamma = \min(r_1, \dots, r_m), \\
        &\text{stop at the first } t > m \text{ with } \lambda_t \le \lambda.

    During the first ``m`` steps the ratio is 1 and the rule is not ready. The minimum ignores a step that changed
    nothing beyond rounding (:math:`r_t < 10^{-7}`, for example a label for a point that is known exactly); otherwise
    all later ratios would be huge or infinite.

    The defaults are the paper's rule. One small ratio is enough to stop it. Three options, each of them ours, make it
    less dependent on single steps: ``average``, ``calibration_labels`` and ``scale``. With ``average=k`` the rule
    compares

    .. math:: \exp\Bigl(\frac{1}{k} \sum_{s=t-k+1}^{t} \log \lambda_s\Bigr) \le \lambda

    and is not ready before ``k`` ratios are available. In the mean, :math:`r_s < 10^{-7}`, which is a change by
    rounding, counts as :math:`10^{-7}`: the log of 0 does not exist, and a single step that changed nothing must not
    decide.

    Args:
        threshold: ``lambda``, from 0 to 1: the share of the early change at which to stop. With ``relative=False`` the
            share of the loss range.
        calibration: ``m``; the paper uses 10, and 1 for a deep network.
        bound: ``"paper"`` for Theorem 1; ``"tight"`` for the bound on the total variation, which is at least four times
            smaller than ``r_t`` and never above 1.
        relative: Whether to divide by ``gamma``. If not, the rule stops when the certified change itself is at most
            ``threshold`` times the loss range, and needs no calibration.
        delta: For the certificate only: the probability with which Theorem 2's guarantee may fail. Set it with
            :meth:`from_confidence`.
        average: ``k``, the number of last steps over which the log of the ratio is averaged; 1 for the last ratio
            alone, as in the paper. With ``relative=False`` the certified change is averaged in the same way.
        calibration_labels: The length of the calibration period in labels instead of steps. A step belongs to the
            period while fewer than this many labels were bought since the first step. It replaces ``calibration``; the
            two are equal if each step buys one label. None for a period in steps, as in the paper.
        scale: ``gamma``: the ``"minimum"`` of the values of the calibration period, as in the paper, or their
            ``"median"``.

    Raises:
        InvalidValueError: An argument out of range.

    Reference: [IshibashiHino2021] equation 5, Algorithm 1 and the footnote on the choice of gamma.

    Examples:
        >>> rule = ErrorStability(threshold=0.05, calibration=2)
        >>> for n, kl in enumerate([0.5, 0.4, 0.1, 0.0004], start=11):
        ...     verdict = rule.observe(Step(n_labelled=n, kl_new_old=kl, kl_old_new=kl))
        >>> print(verdict)
        Stop at 14 labels: the error ratio 0.0279 is at most the threshold 0.05.
        >>> print(verdict.certificate.statement)
        The last step changed the expected error by at most 0.0568 of the loss range.
    """

    threshold: float = 0.05
    _: KW_ONLY
    calibration: int = 10
    bound: Literal["paper", "tight"] = "paper"
    relative: bool = True
    delta: float | None = None
    average: int = field(default=1, metadata=ADDED_LATER)
    calibration_labels: int | None = field(default=None, metadata=ADDED_LATER)
    scale: Literal["minimum", "median"] = field(default="minimum", metadata=ADDED_LATER)
    steps: int = field(default=0, init=False, repr=False)
    gamma: float | None = field(default=None, init=False, repr=False)
    n_labelled: list[int] = field(default_factory=list, init=False, repr=False)
    values: list[float] = field(default_factory=list, init=False, repr=False)
    # Each of these is used by one of the options only, and empty otherwise.
    recent: list[float] = field(default_factory=list, init=False, repr=False, metadata=ADDED_LATER)
    first: int | None = field(default=None, init=False, repr=False, metadata=ADDED_LATER)
    early: list[float] = field(default_factory=list, init=False, repr=False, metadata=ADDED_LATER)

    requires: ClassVar[frozenset[str]] = frozenset({"kl_new_old", "kl_old_new"})
    # For the forecast, which cannot exceed the rest of the pool.
    optional: ClassVar[frozenset[str]] = frozenset({"pool_size"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="bounds and posteriors",
        example=lambda: ErrorStability(0.6, calibration=3),
        compared=(
            ComparedRule(settings=_GRID, parameter="threshold", default=0.05, sense="at most"),
            ComparedRule(
                name="ErrorStability tight",
                make=lambda threshold: ErrorStability(threshold, bound="tight"),
                settings=_GRID,
                parameter="threshold",
                default=0.05,
                sense="at most",
            ),
            ComparedRule(
                name="ErrorStability mean of 10",
                make=lambda threshold: ErrorStability(threshold, average=10),
                settings=_GRID,
                parameter="threshold",
                default=0.05,
                sense="at most",
            ),
            # The same as the first form if each step buys one label.
            ComparedRule(
                name="ErrorStability by labels",
                make=lambda threshold: ErrorStability(threshold, calibration_labels=10),
                settings=_GRID,
                parameter="threshold",
                default=0.05,
                sense="at most",
            ),
            ComparedRule(
                name="ErrorStability median",
                make=lambda threshold: ErrorStability(threshold, scale="median"),
                settings=_GRID,
                parameter="threshold",
                default=0.05,
                sense="at most",
            ),
            ComparedRule(
                name="ErrorStability of costs",
                kind="cost",
                make=lambda error_cost: ErrorStability.from_cost(1.0, error_cost, bound="tight"),
                parameter="error_cost",
                sense="at most",
                limit="threshold",
                after="LabelWorth",
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
        self.calibration = whole(self.calibration, "calibration", least=1)
        if self.bound not in ("paper", "tight"):
            raise InvalidValueError(f"bound must be 'paper' or 'tight', not {self.bound!r}")
        if not isinstance(self.relative, bool | np.bool_):
            raise InvalidValueError(f"relative must be True or False, not {self.relative!r}")
        self.relative = bool(self.relative)
        if self.delta is not None:
            self.delta = real(self.delta, "delta", "between 0 and 1", lambda x: 0.0 < x < 1.0)
            if not self.relative:
                raise InvalidValueError(
                    "delta belongs to Theorem 2, which is about the ratio; use it with relative=True"
                )
        self.average = whole(self.average, "average", least=1)
        if self.calibration_labels is not None:
            self.calibration_labels = whole(self.calibration_labels, "calibration_labels", least=1)
        if self.scale not in ("minimum", "median"):
            raise InvalidValueError(f"scale must be 'minimum' or 'median', not {self.scale!r}")
        if not self.relative and (self.calibration_labels is not None or self.scale != "minimum"):
            raise InvalidValueError(
                "calibration_labels and scale set the scale of the ratio, which relative=False does not use; leave "
                "them out"
            )
        if self.average > 1 and self.delta is not None:
            raise InvalidValueError(
                "delta belongs to Theorem 2, which is about the ratio of the last step; use it with average=1"
            )

    @classmethod
    def from_confidence(
        cls, eta: float, delta: float, *, calibration: int = 10, bound: Literal["paper", "tight"] = "paper"
    ) -> "ErrorStability":
        """Return the rule whose threshold gives Theorem 2's guarantee.

        Args:
            eta: Size of the change tolerated, relative to gamma; inside (0, 1).
            delta: Probability that the guarantee may fail; inside (0, 1).
            calibration: ``m``.
            bound: As in the constructor.

        Returns:
            A rule with threshold ``eta sqrt(-2 / log(delta/2))``, but at most 1.

        Reference: [IshibashiHino2021] Theorem 2.

        Examples:
            >>> round(ErrorStability.from_confidence(eta=0.05, delta=0.05).threshold, 6)
            0.036816
        """
        return cls(min(float(threshold(eta, delta)), 1.0), calibration=calibration, bound=bound, delta=delta)

    @classmethod
    def from_cost(
        cls, label_cost: float, error_cost: float, *, bound: Literal["paper", "tight"] = "paper"
    ) -> "ErrorStability":
        r"""Return the rule that stops when a label costs more than the certified change of error by the last one.

        With label cost :math:`\kappa` the paper's threshold is :math:`\lambda = \kappa / ((b - a) \gamma)`. The ratio
        is divided by the same :math:`\gamma`, so the rule compares :math:`r_t` itself with :math:`\kappa / (b - a)`.

        Args:
            label_cost: ``kappa``: cost of one label, above 0.
            error_cost: Cost, in the same currency, of a rise of the expected error over its whole range ``b - a``;
                above 0.
            bound: As in the constructor.

        Returns:
            A rule in absolute mode with threshold ``label_cost / error_cost``, but at most 1.

        Reference: [IshibashiHino2021] equations 1 to 3.

        Examples:
            >>> ErrorStability.from_cost(label_cost=0.5, error_cost=1000.0).threshold
            0.0005
        """
        label, error = (
            real(cost, name, "above 0", lambda x: x > 0.0)
            for name, cost in (("label_cost", label_cost), ("error_cost", error_cost))
        )
        return cls(min(label / error, 1.0), bound=bound, relative=False)

    def judge(self, step: Step) -> Verdict:
        """Bound this step's change, compute the ratio and compare it with the threshold."""
        return self._judged(step, self._change(step))

    def observe_all(self, steps: Sequence[Step]) -> list[Verdict]:
        """Return the verdicts on several steps; the bounds of all steps are computed at once."""
        if any(step.kl_new_old is None or step.kl_old_new is None for step in steps):
            return super().observe_all(steps)
        for step in steps:
            require_order(self, step)
        new_old, old_new = np.array([(step.kl_new_old, step.kl_old_new) for step in steps]).reshape(-1, 2).T
        changes = total_variation(new_old, old_new) if self.bound == "tight" else risk_gap(new_old) + risk_gap(old_new)
        return [self._judged(step, change) for step, change in zip(steps, np.atleast_1d(changes).tolist(), strict=True)]

    def _judged(self, step: Step, change: float) -> Verdict:
        self.steps += 1
        calibrated = not self._in_calibration(step) and self.gamma is not None
        if not calibrated and change > _NEGLIGIBLE:
            self.gamma = self._new_scale(change)
        certificate = self._certificate(change, step)
        if not self.relative:
            return self._decided(step, change, certificate)
        if not calibrated or self.gamma is None:
            return self._calibrating(step, certificate)
        return self._decided(step, min(change / self.gamma, sys.float_info.max), certificate)

    def check_state(self) -> None:
        """Refuse a scale that is not above 0, lists that do not match, and values without a scale."""
        gamma, many = self.gamma, len(self.values)
        require_state(self, "gamma", f"None or above {_NEGLIGIBLE:g}", holds=gamma is None or gamma > _NEGLIGIBLE)
        require_state(self, "n_labelled", "rising counts", holds=rises([0, *self.n_labelled]))
        require_state(self, "values", "numbers of at least 0", holds=within(self.values, 0.0))
        require_state(self, "values", "as long as n_labelled", holds=many == len(self.n_labelled))
        require_state(self, "steps", f"at least {many}, the number of values", holds=self.steps >= many)
        require_state(self, "steps", "above 0, because gamma is set", holds=gamma is None or self.steps > 0)
        require_state(self, "recent", "numbers above 0", holds=all(value > 0.0 for value in self.recent))
        most = self.average if self.average > 1 else 0
        require_state(self, "recent", f"a list of at most {most} numbers", holds=len(self.recent) <= most)
        judged = bool(self.values or self.recent)
        if self.relative:
            require_state(self, "gamma", "a number, because steps were judged", holds=gamma is not None or not judged)
        if self.average > 1 and self.values:
            require_state(self, "recent", f"a list of {most} numbers", holds=len(self.recent) == most)
        if self.scale == "median":
            found = _median(self.early) if self.early else None
            require_state(self, "early", "numbers above 0", holds=within(self.early, _NEGLIGIBLE))
            require_state(self, "gamma", "the median of early", holds=gamma == found)
        else:
            require_state(self, "early", "empty, because scale is 'minimum'", holds=not self.early)
        started = self.calibration_labels is not None and self.steps > 0
        require_state(self, "first", "a count" if started else "None", holds=(self.first is not None) == started)

    def _in_calibration(self, step: Step) -> bool:
        """Whether the step, which is counted already, belongs to the calibration period."""
        if self.calibration_labels is None:
            return self.steps <= self.calibration
        if self.first is None:
            self.first = step.n_labelled
        return step.n_labelled - self.first < self.calibration_labels

    def _new_scale(self, change: float) -> float:
        """Return the scale with one more value of the calibration period."""
        if self.scale == "median":
            self.early.append(change)
            return _median(self.early)
        return change if self.gamma is None else min(self.gamma, change)

    def _change(self, step: Step) -> float:
        assert step.kl_new_old is not None  # both are required, so observe has checked
        assert step.kl_old_new is not None
        if self.bound == "tight":
            return total_variation(step.kl_new_old, step.kl_old_new)
        return risk_gap(step.kl_new_old) + risk_gap(step.kl_old_new)

    def _calibrating(self, step: Step, certificate: Certificate) -> Verdict:
        bought = 0 if self.first is None else step.n_labelled - self.first + 1
        if self.calibration_labels is not None and bought < self.calibration_labels:
            reason = f"label {bought} of the {self.calibration_labels} that set the scale of the error ratio"
        elif self.calibration_labels is None and self.steps < self.calibration:
            reason = f"step {self.steps} of the {self.calibration} that set the scale of the error ratio"
        elif self.gamma is None:
            reason = "no label has changed the posterior yet, so the error ratio has no scale"
        else:
            reason = "the scale of the error ratio is set; it is judged from the next step on"
        return self.verdict(
            step,
            stop=False,
            ready=False,
            value=1.0,
            threshold=self.threshold,
            reason=reason,
            certificate=certificate,
        )

    def _averaging(self, step: Step, value: float, certificate: Certificate) -> Verdict:
        """Return the verdict on a step before there are enough ratios for a mean."""
        name = self._name(step, "error ratios", "changes of error")
        return self.verdict(
            step,
            stop=False,
            ready=False,
            value=value,
            threshold=self.threshold,
            reason=f"{len(self.recent)} of the {self.average} {name} that are averaged are available",
            certificate=certificate,
        )

    def _name(self, step: Step, ratio: str, change: str) -> str:
        """The number that is compared; what is based on estimated divergences is neither exact nor certified."""
        if step.estimated:
            return f"estimated {ratio if self.relative else change}"
        return ratio if self.relative else f"certified {change}"

    def _decided(self, step: Step, value: float, certificate: Certificate) -> Verdict:
        name = self._name(step, "error ratio", "change of error")
        if self.average > 1:
            least = _NEGLIGIBLE / (self.gamma if self.relative and self.gamma is not None else 1.0)
            self.recent = [*self.recent, max(value, least)][-self.average :]
            value = _mean_of_logs(self.recent)
            if len(self.recent) < self.average:
                return self._averaging(step, value, certificate)
            name = f"mean {name} of the last {self.average} steps"
        # The forecast is a curve over the number of labels, so a step without new labels adds no point.
        if step.n_labelled > (self.n_labelled[-1] if self.n_labelled else 0):
            self.n_labelled.append(step.n_labelled)
            self.values.append(value)
        stop = value <= self.threshold
        comparison = "at most" if stop else "above"
        # A replay creates thousands of verdicts, and the constructor of a frozen dataclass is slow.
        verdict = object.__new__(Verdict)
        verdict.__dict__.update(
            stop=stop,
            value=value,
            threshold=self.threshold,
            ready=True,
            reason=f"the {name} {value:.3g} is {comparison} the threshold {self.threshold:.3g}",
            rule=type(self).__name__,
            n_labelled=step.n_labelled,
            certificate=certificate,
            # A composed rule may wait for other rules; whether this one stops again then is not forecast.
            outlook=None if stop else self._outlook(step),
        )
        return verdict

    def _outlook(self, step: Step) -> Curve:
        left = None if step.pool_size is None else max(0, step.pool_size - step.n_labelled)
        averaged = self.average >= _SMOOTH
        return Curve(self.n_labelled, self.values, len(self.values), self.threshold, left, averaged)

    def _certificate(self, change: float, step: Step) -> Certificate:
        bounded = f"changed the expected error by at most {change:.3g} of the loss range."
        if step.estimated:
            otherwise = f"the last step {bounded}" if change < 1.0 else "they would be too large to bound anything."
            return Certificate(
                statement=f"Nothing is guaranteed: {step.estimated}.",
                assumption=f"if the divergences were exact bounds, {otherwise}",
            )
        statement = f"The last step {bounded}" if change < 1.0 else _SAYS_NOTHING
        assumption = _ASSUMPTION
        if self.delta is not None and self.gamma is not None:
            # The change lies in an interval of width r_t for the paper's bound and twice the total variation.
            scale = self.gamma if self.bound == "paper" else 2.0 * self.gamma
            within = scale * self.threshold / threshold(0.5, self.delta) * 0.5
            if within < 1.0:
                statement += (
                    f" At a stop the expected error is within {within:.3g} of the loss range of its conditional "
                    f"expectation, with probability at least 1 - {self.delta:g}."
                )
                assumption += _ASSUMPTION_OF_THEOREM_2
        return Certificate(statement, assumption, change=min(change, 1.0))


def _median(values: Sequence[float]) -> float:
    ordered, size = sorted(values), len(values)
    # Halves are added, because the sum of two large numbers may overflow.
    return 0.5 * ordered[(size - 1) // 2] + 0.5 * ordered[size // 2]


def _mean_of_logs(values: Sequence[float]) -> float:
    """Return the exponential of the mean of the logs of numbers above 0."""
    mean = math.fsum(map(math.log, values)) / len(values)
    return min(math.exp(min(mean, math.log(sys.float_info.max))), sys.float_info.max)


_RUNS: Final = Comparison("p of the runs test on the bound", "<=")
_PAC_BAYES: Final = Comparison("PAC-Bayes bound on the expected error", "<=", limit="limit")
_GAIN: Final = Comparison("largest information gain over the pool", "<=")


def runs_p(values: "list[float]") -> float | None:
    r"""Return the probability of at most this number of runs about the median if the order of the values is random.

    A run is a sequence of consecutive values that are all above, or all below, the median. With ``a`` values above,
    ``b`` below, ``n = a + b`` and ``R`` runs,

    .. math:: p = \Phi\left(\frac{R - \mu}{\sigma}\right), \qquad \mu = 1 + \frac{2ab}{n}, \qquad
              \sigma^2 = \frac{2ab (2ab - n)}{n^2 (n - 1)},

    the normal approximation without a correction for continuity. Values equal to the median are ignored.

    Args:
        values: In order of time.

    Returns:
        ``p``; or None if only one number of runs is possible: one side of the median has no value, or each side
        has a single one.

    Reference: [WaldWolfowitz1940].

    Examples:
        >>> round(runs_p([5.0, 4.0, 6.0, 2.0, 1.0, 3.0]), 4)  # three above, then three below: R = 2, mu = 4
        0.0339
        >>> runs_p([1.0, 1.0, 1.0, 2.0]) is None
        True
    """
    ordered, size = sorted(values), len(values)
    median = 0.5 * (ordered[(size - 1) // 2] + ordered[size // 2]) if values else math.nan
    above = [value > median for value in values if value != median]
    n, a = len(above), sum(above)
    pairs = 2 * a * (n - a)
    if pairs <= n:
        return None
    runs = 1 + sum(one != other for one, other in pairwise(above))
    deviation = math.sqrt(pairs * (pairs - n) / (n * n * (n - 1)))
    # The normal distribution function.
    return 0.5 * math.erfc(-(runs - 1.0 - pairs / n) / (deviation * math.sqrt(2.0)))


@dataclass
class DeterministicBoundRuns(Criterion):
    r"""Stop when a runs test rejects that the last bounds on a step's change are in random order.

    .. math:: r_t = r(\mathrm{KL}[new\|old]) + r(\mathrm{KL}[old\|new]), \qquad
              p(r_{t-w+1}, \dots, r_t) \le \theta

    with ``p`` from :func:`runs_p`. It is small when the window has fewer runs about its median than a random order
    would give, that is, when the bound drifts (for example falls steadily) more than it varies from label to label. For
    a bound in random order ``p`` is uniform on 0 to 1. The steep fall at the start is a drift too: delay the rule with
    ``.after(n)``. The rule does not judge a window whose values are all equal, or, ties aside, all on one side of the
    median.

    The paper combines its bound with a statistical test; we did not have its window, level and treatment of ties. Those
    here are ours: the usual level of a test, and the 10 values on each side that the normal approximation is commonly
    said to need.

    Args:
        threshold: ``theta``, from 0 to 1.
        window: ``w``, at least 4.
        bound: ``"paper"`` for the bound above; ``"tight"`` for the one on the total variation.

    Raises:
        InvalidValueError: An argument out of range.

    Reference: [IshibashiHino2020], with the bound of [IshibashiHino2021] Theorem 1 and the test of
    [WaldWolfowitz1940].

    Examples:
        >>> rule = DeterministicBoundRuns(window=6)
        >>> for n, kl in enumerate([0.5, 0.4, 0.6, 0.2, 0.1, 0.3], start=11):
        ...     verdict = rule.observe(Step(n_labelled=n, kl_new_old=kl, kl_old_new=kl))
        >>> print(verdict)
        Stop at 16 labels: the p of the runs test on the bound, 0.0339, is at most the threshold 0.05.
    """

    threshold: float = 0.05
    _: KW_ONLY
    window: int = 20
    bound: Literal["paper", "tight"] = "paper"
    values: list[float] = field(default_factory=list, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"kl_new_old", "kl_old_new"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="bounds and posteriors",
        example=lambda: DeterministicBoundRuns(0.5, window=4),
        compared=(
            ComparedRule(
                settings=geometric_grid(1.0, 1e-6, 13, 0.05), parameter="threshold", default=0.05, sense="at most"
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
        self.window = whole(self.window, "window", least=4)
        if self.bound not in ("paper", "tight"):
            raise InvalidValueError(f"bound must be 'paper' or 'tight', not {self.bound!r}")

    def tighten(self, factor: float) -> None:
        """Multiply the threshold by ``factor``."""
        self.threshold = tightened(self.threshold, factor, limit=0.0)

    def check_state(self) -> None:
        """Refuse bounds below 0, and more of them than the window holds."""
        require_state(self, "values", "numbers of at least 0", holds=within(self.values, 0.0))
        few = len(self.values) <= self.window
        require_state(self, "values", f"a list of at most {self.window} numbers", holds=few)

    def judge(self, step: Step) -> Verdict:
        """Bound this step's change, compute p of the window and compare it with the threshold."""
        self.values = [*self.values, self._change(step)][-self.window :]
        p = runs_p(self.values) if len(self.values) == self.window else None
        if p is not None:
            return self.comparison_verdict(step, _RUNS, p, self.threshold)
        reason = (
            f"{len(self.values)} of the {self.window} values of the bound are available"
            if len(self.values) < self.window
            else f"too few of the last {self.window} values of the bound differ from their median to count runs"
        )
        return self.verdict(step, stop=False, ready=False, threshold=self.threshold, reason=reason)

    def _change(self, step: Step) -> float:
        assert step.kl_new_old is not None  # both are required, so observe has checked
        assert step.kl_old_new is not None
        if self.bound == "tight":
            return total_variation(step.kl_new_old, step.kl_old_new)
        return risk_gap(step.kl_new_old) + risk_gap(step.kl_old_new)


@dataclass
class PacBayes(Criterion):
    r"""Stop when the PAC-Bayes bound on the expected error is at most a limit.

    .. math:: \hat L + \sqrt{\frac{\mathrm{KL}[new\|prior] + \log(2 \sqrt n / \delta)}{2 n}} \le \epsilon

    with :math:`\hat L` the expected error on the ``n`` labels bought, as a share of the loss range. The bound holds
    with probability :math:`1 - \delta` for labels that are drawn i.i.d. and whose number is fixed beforehand. Active
    learning violates the first assumption, and a rule that stops when the bound is low violates the second. So nothing
    is guaranteed under active learning, and the certificate says so.

    Args:
        epsilon: Limit, above 0, as a share of the loss range.
        delta: Probability with which the bound may fail, inside (0, 1).

    Raises:
        InvalidValueError: An argument out of range.

    Reference: [McAllester1999]; the constant :math:`2 \sqrt n` is that of [Maurer2004].

    Examples:
        >>> rule = PacBayes(epsilon=0.3)
        >>> verdict = rule.observe(Step(n_labelled=200, train_error=0.1, kl_prior=5.0))
        >>> print(verdict)
        Stop at 200 labels: the PAC-Bayes bound on the expected error, 0.268, is at most the limit 0.3.
        >>> print(verdict.certificate.statement)
        Nothing is guaranteed under active learning. For labels drawn at random the expected error would be at most
        0.268 of the loss range with probability at least 1 - 0.05.
    """

    epsilon: float
    delta: float = 0.05

    requires: ClassVar[frozenset[str]] = frozenset({"train_error", "kl_prior"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="bounds and posteriors",
        example=lambda: PacBayes(0.95),
        tasks=CLASSES,
        compared=(
            # The paper has no limit of its own. Half the loss range is the error of a guess between two classes.
            ComparedRule(
                settings=geometric_grid(3.0, 0.05, 16, 0.5), parameter="epsilon", default=0.5, sense="at most"
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.epsilon = real(self.epsilon, "epsilon", "above 0", lambda x: x > 0.0)
        self.delta = real(self.delta, "delta", "between 0 and 1", lambda x: 0.0 < x < 1.0)

    def tighten(self, factor: float) -> None:
        """Multiply the limit by ``factor``."""
        self.epsilon = tightened(self.epsilon, factor, limit=0.0)

    def judge(self, step: Step) -> Verdict:
        """Compute the bound and compare."""
        assert step.train_error is not None  # both are required, so observe has checked
        assert step.kl_prior is not None
        n = step.n_labelled
        if n == 0:
            reason = "there are no labels yet, so there is no bound"
            return self.verdict(step, stop=False, ready=False, threshold=self.epsilon, reason=reason)
        # Divide each term by 2 n first, because their sum may overflow.
        scaled = step.kl_prior / (2.0 * n) + math.log(2.0 * math.sqrt(n) / self.delta) / (2.0 * n)
        bound = step.train_error + math.sqrt(scaled)
        verdict = self.comparison_verdict(step, _PAC_BAYES, bound, self.epsilon)
        return replace(verdict, certificate=self._certificate(bound))

    def _certificate(self, bound: float) -> Certificate:
        would = (
            f"the expected error would be at most {bound:.3g} of the loss range with probability at least "
            f"1 - {self.delta:g}"
            if bound < 1.0
            else "the bound would still be wider than the loss range"
        )
        return Certificate(
            statement=f"Nothing is guaranteed under active learning. For labels drawn at random {would}.",
            assumption="the labels are an i.i.d. sample of a size fixed beforehand, and the prior does not depend on "
            "them. This fails when a model chooses which items are labelled.",
        )


@dataclass
class InformationGain(Criterion):
    r"""Stop when the largest information gain over the pool is at most a threshold.

    .. math:: \max_{x \in \text{pool}} I(y_x; \theta) \le \text{threshold}

    in nats: :math:`\tfrac12 \log(1 + \beta s(x))` for a Gaussian model with noise precision :math:`\beta` and latent
    variance ``s``, and for a classifier the mutual information of its label and its parameters (BALD).

    Args:
        threshold: In nats, at least 0. The default, 0.01, is ours.

    Raises:
        InvalidValueError: ``threshold`` is negative or not a number.

    Reference: [KrauseGuestrin2007] for Gaussian processes; [Houlsby2011] for classifiers.

    Examples:
        >>> rule = InformationGain(threshold=0.05)
        >>> print(rule.observe(Step(n_labelled=30, pool_gain=0.2)))
        Go on at 30 labels: the largest information gain over the pool, 0.2, is above the threshold 0.05.
        >>> rule.observe(Step(n_labelled=31, pool_gain=0.05)).stop
        True
    """

    threshold: float = 0.01

    requires: ClassVar[frozenset[str]] = frozenset({"pool_gain"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="bounds and posteriors",
        example=lambda: InformationGain(0.15),
        compared=(
            ComparedRule(
                settings=geometric_grid(3.0, 1e-5, 18, 0.01), parameter="threshold", default=0.01, sense="at most"
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "of at least 0", lambda x: x >= 0.0)

    def tighten(self, factor: float) -> None:
        """Multiply the threshold by ``factor``."""
        self.threshold = tightened(self.threshold, factor, limit=0.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the largest gain with the threshold."""
        assert step.pool_gain is not None  # it is required, so observe has checked
        return self.comparison_verdict(step, _GAIN, step.pool_gain, self.threshold)
