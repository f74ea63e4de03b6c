"""The rule of the paper: stop when a label changes the expected error very little."""

import math
import sys
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Final, Literal

import numpy as np

from suffice.arguments import real, whole
from suffice.bounds import risk_gap, threshold, total_variation
from suffice.criteria.base import ADDED_LATER, Criterion
from suffice.criteria.rule_info import ComparedRule, RuleInfo, geometric_grid
from suffice.criteria.saved_state import require_state, rises, within
from suffice.criteria.step import Step
from suffice.criteria.verdict import Certificate, Curve, Verdict
from suffice.errors import InvalidValueError

__all__ = ["ErrorStability"]

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
            # The same as the first form where each step buys one label.
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
            A rule with threshold ``eta sqrt(-2 / log(delta/2))``, or 1 where that is larger.

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
            A rule in absolute mode with threshold ``label_cost / error_cost``, or 1 where that is larger.

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
            self._require_order(step)
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
        name = "error ratios" if self.relative else "certified changes of error"
        return self.verdict(
            step,
            stop=False,
            ready=False,
            value=value,
            threshold=self.threshold,
            reason=f"{len(self.recent)} of the {self.average} {name} that are averaged are available",
            certificate=certificate,
        )

    def _decided(self, step: Step, value: float, certificate: Certificate) -> Verdict:
        name = "error ratio" if self.relative else "certified change of error"
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
