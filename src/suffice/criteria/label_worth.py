"""Rules that weigh the cost of an error against the cost of a label."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from statistics import median
from typing import Any, ClassVar, Final

import numpy as np

from suffice.arguments import real
from suffice.criteria.base import ComparedRule, Criterion, RuleInfo, apart, require_state, rises, within
from suffice.criteria.step_and_verdict import Step, Verdict
from suffice.errors import InvalidValueError
from suffice.forecast import Forecast
from suffice.numerics import Floats

__all__ = ["ExpectedCost", "LabelWorth"]

# The median of the worth is taken over this many labels, and over at least this many steps.
_MEDIAN_LABELS: Final = 5
_MEDIAN_STEPS: Final = 3
# Gain by the next label as a share of the reducible error and of the recent gain, times the labels so far.
_SHARE: Final = 0.75
# The same as a share of the whole error, after the first label.
_CAUTION: Final = 3.0
# Before there are enough steps for the median, the whole error counts as reducible, times this factor, and as at least
# this share of the error of a trivial prediction.
_DOUBT: Final = 2.0
_LEAST_DOUBT: Final = 0.25
# Labels left as multiples of the forecast: the 10, 50 and 90 % quantiles over the runs on which the rule was developed.
# Then the number of labels that are always waited for, and the largest forecast as a multiple of the labels so far.
_FORECAST_SHARES: Final = (0.45, 0.9, 1.9)
_WAIT: Final = 3
_FARTHEST: Final = 3.5
_LEAST_WORTH: Final = 1e-300
_LARGEST_NUMBER: Final = 1e150


@dataclass
class ExpectedCost(Criterion):
    r"""Stop when the fall of the expected error per label is worth less than a label costs.

    With :math:`e_t` the error that the model expects of itself on the stop set after :math:`n_t` labels,

    .. math:: A \, \frac{e_s - e_t}{n_t - n_s} < \kappa,

    where ``s`` is the last step at least ``window`` labels ago. This rule is ours. :class:`LabelWorth` is a
    robust form of it.

    Args:
        error_cost: ``A``: cost of an error that is larger by 1, above 0.
        label_cost: ``kappa``: cost of a label, above 0.
        window: Number of labels over which the fall is measured, at least 1.

    Examples:
        >>> rule = ExpectedCost(error_cost=1000.0, label_cost=1.0, window=10)
        >>> rule.observe(Step(n_labelled=20, expected_error=0.30)).ready
        False
        >>> print(rule.observe(Step(n_labelled=30, expected_error=0.28)))
        Go on at 30 labels: a label lowers the expected error by 0.002, worth 2, which is not below its cost of 1.
        >>> rule.observe(Step(n_labelled=40, expected_error=0.275)).stop
        True
    """

    error_cost: float
    label_cost: float
    _: KW_ONLY
    window: float = 10.0
    counts: list[int] = field(default_factory=list, init=False, repr=False)
    errors: list[float] = field(default_factory=list, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"expected_error"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="two costs, no threshold",
        example=lambda: ExpectedCost(100.0, 1.0, window=3),
        origin="ours",
        compared=(
            ComparedRule(kind="cost", make=lambda error_cost: ExpectedCost(error_cost, 1.0), parameter="error_cost"),
        ),
    )

    def __post_init__(self) -> None:
        self.error_cost, self.label_cost = _costs(self.error_cost, self.label_cost)
        self.window = real(self.window, "window", "of at least 1", lambda x: x >= 1.0)

    def check_state(self) -> None:
        """Refuse a saved state whose counts do not rise, or that has another number of errors."""
        require_state(self, "counts", "rising", holds=rises(self.counts))
        require_state(self, "errors", "as many as counts", holds=len(self.errors) == len(self.counts))
        self._last_labelled = [0, *self.counts][-1]

    def judge(self, step: Step) -> Verdict:
        """Measure the fall, and compare its worth with the cost of a label."""
        assert step.expected_error is not None
        if self.counts and self.counts[-1] == step.n_labelled:
            # No label was bought since the last step: keep the newest value for this count.
            self.errors[-1] = step.expected_error
        else:
            self.counts.append(step.n_labelled)
            self.errors.append(step.expected_error)
        start = bisect_right(self.counts, step.n_labelled - self.window) - 1
        if start < 0:
            reason = f"the fall of the expected error is measured over {self.window:g} labels, which are not yet bought"
            return self.verdict(step, stop=False, ready=False, threshold=self.label_cost, reason=reason)
        del self.counts[:start], self.errors[:start]
        fall = (self.errors[0] - self.errors[-1]) / (self.counts[-1] - self.counts[0])
        return _weighed(self, step, fall, self.error_cost, self.label_cost)


@dataclass
class LabelWorth(Criterion):
    r"""Stop when one more label is expected to be worth less than it costs.

    The worth of a label is the cost of the errors that it avoids on the :math:`M` unlabelled items. The rule expects the
    next label, after :math:`n` others, to lower their error by

    .. math:: \Delta = \frac1n \max\Bigl( \frac34 (\rho \, r + g), \frac{3 \rho \, e}{n} \Bigr),

    as on a learning curve that falls like :math:`1/n`. It is the average of two estimates, times 1.5:

    - :math:`r`, the *reducible error*: the model's estimate of how much its error would fall if it knew its parameters.
      :math:`\rho` is the calibration by random labels. This estimate is about the labels to come.
    - :math:`g`, the *recent gain*: the fall of the error from the predictions at half of the labels to the present
      ones, as estimated by the current model. This estimate is about the labels already bought.

    Neither includes the irreducible part of the error, so noise does not increase the worth of a label. The second term
    of the maximum, with :math:`e` the expected error, is for the first labels, from which a model may conclude that all
    of its error is noise. A label avoids :math:`M \Delta` wrong predictions of other items, and with probability
    :math:`\rho e` that of its own item. The rule stops when

    .. math:: \textrm{mistake\_cost} \cdot (M \Delta + \rho e) < \textrm{label\_cost}.

    To reduce the noise of single steps, the rule takes the median of :math:`n^2 \Delta`, which changes little from
    label to label, over the last 5 labels and at least 3 steps. Before that it stops only if a label is not worth its
    cost even if a pessimistic error is reducible completely: with
    :math:`\Delta = \max(1/4, \min(1, 2 \rho e)) / n`, where 1 is the error of a trivial prediction.

    *Wrong* means: for classes, another class than the true one. For numbers, an error above ``tolerance``; with
    :math:`v` the expected squared error, :math:`e` becomes the share :math:`s(v) = 2\Phi(-w/\sqrt v)`, :math:`r` becomes
    :math:`s(v) - s(v - r)` and :math:`g` becomes :math:`s(v + g) - s(v)`. Without a tolerance, errors are relative to the variance of the labels: an item that is predicted as badly as by the mean of
    the labels counts as one wrong prediction.

    This rule is ours. Its constants were chosen on data sets that are not used to evaluate it, see
    :doc:`/which-rule`.

    Args:
        error_cost: Cost of an error of all unlabelled items that is larger by 1, above 0; in place of ``mistake_cost``
            times the number of unlabelled items.
        label_cost: Cost of a label, above 0.
        mistake_cost: Cost of one wrong prediction among the unlabelled items, above 0; 1 if left out.
        tolerance: For numbers: the largest error that is not wrong, above 0, in units of the target.

    Examples:
        >>> rule = LabelWorth(mistake_cost=1.0, label_cost=1.0)
        >>> for n, reducible in ((40, 0.08), (80, 0.04), (160, 0.02), (320, 0.01)):
        ...     step = Step(n_labelled=n, pool_size=5000, unlabelled_error=0.1 + reducible, reducible_error=reducible,
        ...                 recent_gain=reducible, error_scale=1.0, calibration=1.0)
        ...     verdict = rule.observe(step)
        >>> print(verdict)
        Stop at 320 labels: 1 more label is expected to avoid 0.337 wrong predictions among the 4,680 unlabelled items, worth 0.337, which is below its cost of 1.
    """  # noqa: E501 - one sentence

    error_cost: float | None = None
    label_cost: float = 1.0
    _: KW_ONLY
    mistake_cost: float | None = None
    tolerance: float | None = None
    counts: list[int] = field(default_factory=list, init=False, repr=False)
    # log(n^2 worth) for the other items at each step, and that worth by the median.
    worths: list[float] = field(default_factory=list, init=False, repr=False)
    values: list[float] = field(default_factory=list, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset(
        {"unlabelled_error", "reducible_error", "recent_gain", "error_scale", "calibration", "pool_size"}
    )
    info: ClassVar[RuleInfo] = RuleInfo(
        family="two costs, no threshold",
        example=lambda: LabelWorth(30.0, 1.0),
        origin="ours",
        compared=(
            ComparedRule(kind="cost", make=lambda error_cost: LabelWorth(error_cost, 1.0), parameter="error_cost"),
        ),
    )

    def __post_init__(self) -> None:
        if self.error_cost is not None and self.mistake_cost is not None:
            raise InvalidValueError("give error_cost or mistake_cost, not both")
        for name in ("error_cost", "label_cost", "mistake_cost", "tolerance"):
            value = getattr(self, name)
            if value is not None or name == "label_cost":
                setattr(self, name, real(value, name, "above 0", lambda x: x > 0.0))

    @classmethod
    def from_older_version(
        cls, params: Mapping[str, Any], state: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the two costs of a rule saved by version 0.8 or older, which then starts without its history."""
        if "window" not in params:
            return params, state
        kept = {name: params[name] for name in ("error_cost", "label_cost") if name in params}
        return kept, {"counts": [], "worths": [], "values": []}

    def check_state(self) -> None:
        """Refuse a saved state whose counts do not rise, or whose values do not follow from the worths."""
        require_state(self, "counts", "rising", holds=rises(self.counts))
        lengths = len(self.worths) == len(self.values) == len(self.counts)
        require_state(self, "worths", "as many as counts and values", holds=lengths)
        least, most = math.log(_LEAST_WORTH) - 1.0, math.log(_LARGEST_NUMBER) + 100.0
        require_state(self, "worths", f"from {least:.0f} to {most:.0f}", holds=within(self.worths, least, most))
        follow = all(
            math.isclose(value, self._median(at), rel_tol=1e-9, abs_tol=1e-300) for at, value in enumerate(self.values)
        )
        require_state(self, "values", "those that follow from worths", holds=follow)
        self._last_labelled = [0, *self.counts][-1]

    def _median(self, at: int) -> float:
        """Return the worth at a step, as the median over the last labels and at least three steps."""
        n = self.counts[at]
        first = min(bisect_right(self.counts, n - _MEDIAN_LABELS, hi=at + 1), at + 1 - _MEDIAN_STEPS)
        recent = self.worths[max(first, 0) : at + 1]
        return math.exp(median(recent) - 2.0 * math.log(max(n, 1)))

    def judge(self, step: Step) -> Verdict:
        """Estimate the worth of a label, and compare it with its cost."""
        if self.counts and step.n_labelled == self.counts[-1]:
            # No label was bought since the last step: keep the newest value for this count.
            for kept in (self.counts, self.worths, self.values):
                del kept[-1]
        self.counts.append(step.n_labelled)
        found = self._worth(step)
        for_others, own, most = (min(max(each, _LEAST_WORTH), _LARGEST_NUMBER) for each in found)
        self.worths.append(math.log(for_others) + 2.0 * math.log(max(step.n_labelled, 1)))
        for_others = self._median(len(self.counts) - 1)
        self.values.append(for_others)
        worth = for_others + own
        enough_steps = len(self.counts) >= _MEDIAN_STEPS
        told = worth if enough_steps else most + own
        ready = enough_steps or told < self.label_cost
        stop = ready and told < self.label_cost
        outlook = _WorthOutlook(step.n_labelled, for_others, self.label_cost - own, self._unlabelled(step))
        return self.verdict(
            step,
            stop=stop,
            ready=ready,
            value=worth,
            threshold=self.label_cost,
            reason=self._reason(step, told, ready=ready),
            outlook=outlook,
        )

    def _worth(self, step: Step) -> tuple[float, float, float]:
        """Return the worth of the next label at one step: for other items, for its own item, and at most for others."""
        assert step.reducible_error is not None
        assert step.unlabelled_error is not None
        assert step.calibration is not None
        assert step.recent_gain is not None
        error, reducible = (
            step.calibration * min(value, _LARGEST_NUMBER) for value in (step.unlabelled_error, step.reducible_error)
        )
        gain = min(step.recent_gain, _LARGEST_NUMBER)
        trivial = 1.0 if self.error_cost is None or self.tolerance is not None else self._error_scale(step)
        if self.tolerance is not None:
            w, variance = self.tolerance, error
            error = _share_above(w, variance)
            reducible = error - _share_above(w, variance - reducible)
            gain = _share_above(w, variance + gain) - error
        elif self.error_cost is None:
            error, reducible, gain = (value / self._error_scale(step) for value in (error, reducible, gain))
        n = max(step.n_labelled, 1)
        fall = max(_SHARE * (reducible + gain), _CAUTION * error / n) / n
        # With the cost of an error, the number of items that it is about does not change.
        own = self._cost_of_mistake * error if self.error_cost is None and self._unlabelled(step) else 0.0
        # If all labels are equal, they do not determine the error of a trivial prediction.
        known = self._error_scale(step) > _LEAST_WORTH
        at_most = min(trivial, max(_DOUBT * error, _LEAST_DOUBT * trivial)) / n if known else _LARGEST_NUMBER
        return self._cost_of_error(step) * fall, own, self._cost_of_error(step) * max(fall, at_most)

    @staticmethod
    def _error_scale(step: Step) -> float:
        assert step.error_scale is not None
        return max(step.error_scale, _LEAST_WORTH)

    def _of_classes(self, step: Step) -> bool:
        """Whether an error is a share of wrong classes."""
        return self.tolerance is None and self._error_scale(step) == 1.0

    def _cost_of_error(self, step: Step) -> float:
        """Return the cost of an error that is larger by 1, as if all unlabelled items were wrong."""
        return self._cost_of_mistake * self._unlabelled(step) if self.error_cost is None else self.error_cost

    @property
    def _cost_of_mistake(self) -> float:
        return 1.0 if self.mistake_cost is None else self.mistake_cost

    @staticmethod
    def _unlabelled(step: Step) -> int:
        return max((step.pool_size or 0) - step.n_labelled, 0)

    def _reason(self, step: Step, worth: float, *, ready: bool) -> str:
        if not ready:
            return f"the worth of a label is estimated from {_MEDIAN_STEPS} steps, which are not yet done"
        shown, cost = apart(worth, self.label_cost)
        expected = "expected to" if len(self.counts) >= _MEDIAN_STEPS else "expected, at the very best, to"
        compared = f"worth {shown}, which is {'below' if worth < self.label_cost else 'not below'} its cost of {cost}"
        if self.error_cost is not None:
            return f"1 more label is {expected} lower the error by {worth / self.error_cost:.3g}, {compared}"
        avoided, left = worth / self._cost_of_mistake, self._unlabelled(step)
        if self.tolerance is None and not self._of_classes(step):
            fall = f"{100.0 * avoided / max(left, 1):.2g}\u00a0% of the variance of the labels"
            what = f"the squared error of the {left:,} unlabelled items by {fall}"
            return f"1 more label is {expected} lower {what}, {compared}"
        what = f"wrong predictions among the {left:,} unlabelled items"
        return f"1 more label is {expected} avoid {avoided:.3g} {what}, {compared}"


def total_costs(
    n_labelled: Any, error: Any, pool: int, *, label_cost: float = 1.0, mistake_cost: float = 1.0
) -> Floats:
    r"""Cost of a stop at each step: labels and wrong predictions together.

    .. math:: C(t) = \textrm{label\_cost} \cdot n_t + \textrm{mistake\_cost} \cdot (m - n_t) \, e_t

    Args:
        n_labelled: ``n``, labels bought after each step.
        error: ``e``, the share of wrong predictions after each step; for numbers without a tolerance, the mean squared
            error relative to the variance of the target.
        pool: ``m``, items in all; those without a label are predicted.
        label_cost: Cost of a label.
        mistake_cost: Cost of one wrong prediction.

    Examples:
        >>> total_costs([10, 20, 30], [0.5, 0.2, 0.15], 100)
        array([55. , 36. , 40.5])
    """
    n, wrong = np.asarray(n_labelled, dtype=np.float64), np.asarray(error, dtype=np.float64)
    return np.asarray(label_cost * n + mistake_cost * (pool - n) * wrong)


@dataclass(frozen=True)
class _WorthOutlook:
    r"""Labels until the worth of a label is below its cost, if it falls like :math:`1/n^2`.

    Attributes:
        n_labelled: ``n``.
        worth: ``v``, the worth of the next label for the other items.
        cost: ``c``, the cost of a label minus its worth for its own item.
        left: Number of items without a label.
    """

    n_labelled: int
    worth: float
    cost: float
    left: int

    def forecast(self) -> Forecast | None:
        r"""Return :math:`n (\sqrt{v/c} - 1)`, with an interval from the errors of such forecasts in past runs.

        None if the forecast is above 3.5 times the labels so far: such stops are not predictable.
        """
        n = max(self.n_labelled, 1)
        if self.cost <= 0.0:
            # The worth of a label for its own item alone is at least its cost.
            return Forecast(self.left, max(1, self.left // 2), self.left) if self.left else None
        factor = math.sqrt(self.worth / self.cost)
        if factor - 1.0 > _FARTHEST:
            return None
        due = n * max(factor - 1.0, 0.0)
        low, labels, high = (math.ceil(share * due) for share in _FORECAST_SHARES)
        return Forecast(
            *(max(1, min(each, max(self.left, 1))) for each in (labels, low, high + _WAIT)),
        )


def _share_above(tolerance: float, variance: float) -> float:
    """Return the share of normal errors of a variance that are larger than a tolerance."""
    return math.erfc(tolerance / math.sqrt(2.0 * variance)) if variance > 0.0 else 0.0


def _costs(error_cost: float, label_cost: float) -> tuple[float, float]:
    return (
        real(error_cost, "error_cost", "above 0", lambda x: x > 0.0),
        real(label_cost, "label_cost", "above 0", lambda x: x > 0.0),
    )


def _weighed(rule: Criterion, step: Step, fall: float, error_cost: float, label_cost: float) -> Verdict:
    """Return the verdict on a fall of the error per label: its worth compared with the cost of a label."""
    worth = min(max(error_cost * fall, -1e300), 1e300)
    stop = worth < label_cost
    shown, cost = apart(worth, label_cost)
    moves = f"lowers the expected error by {fall:.3g}" if fall >= 0.0 else f"raises the expected error by {-fall:.3g}"
    reason = f"a label {moves}, worth {shown}, which is {'below' if stop else 'not below'} its cost of {cost}"
    return rule.verdict(step, stop=stop, value=worth, threshold=label_cost, reason=reason)
