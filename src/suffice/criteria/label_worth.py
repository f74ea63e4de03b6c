"""Rules that weigh the cost of an error against the cost of a label."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from statistics import median
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from suffice.arguments import real
from suffice.criteria.base import ComparedRule, Criterion, RuleInfo, apart, require_state, rises, within
from suffice.criteria.step_and_verdict import Step, Verdict
from suffice.errors import InvalidValueError
from suffice.forecast import CURVE_POWER, Forecast, LearningCurve
from suffice.numerics import Floats
from suffice.presentation.text_format import count

__all__ = ["ExpectedCost", "LabelWorth"]

# The fall of the error is averaged over this many labels, or over this share of all labels if these are more. A step
# with few new labels is replaced by the median of three.
_AVERAGED_LABELS: Final = 5.0
_AVERAGED_SHARE: Final = 0.1
_MEDIAN_STEPS: Final = 3
# The share of mistakes is that of the labels after the first ones, which are this share of all labels.
_RECENT_SHARE: Final = 0.5
# Before this many labels, and at the first step, the whole error counts as reducible, times a factor, and as at least
# this share of the error of a trivial prediction. Models for numbers learn their hyper-parameters again at 20 labels,
# and are often far worse before.
_FIRST_CLASSES: Final = 12
_FIRST_NUMBERS: Final = 20
# The same for a classifier whose expected share of wrong predictions is above this one: fewer labels do not show
# whether it cannot learn the classes, or another model could.
_FIRST_OF_POOR: Final = 40
_POOR: Final = 0.4
_DOUBT: Final = 2.0
_LEAST_DOUBT: Final = 0.25
# Number of labels that are always waited for; the largest d of a forecast; the largest ratio of its ends; its coverage.
_WAIT: Final = 3
_FARTHEST: Final = 2.0
_WIDEST: Final = 30.0
# Largest d of a forecast that all items will be labelled, if the mistakes of the own items count: these end sooner.
_WHOLE_REST: Final = 0.4
_COVERAGE: Final = 0.9
_HALVINGS: Final = 60
# The fall of the error at one label is in proportion to the labels to the power of minus this number.
_CURVE: Final = 1.0 + CURVE_POWER
_LEAST_WORTH: Final = 1e-300
_LARGEST_NUMBER: Final = 1e150


class _Shares(NamedTuple):
    """What the next label avoids, as shares of the parts of an estimate; chosen on the sets of development.

    Attributes:
        reducible: Of the reducible error, divided by the number of labels.
        gain: Of the recent gain, divided by the number of labels.
        error: Of the whole error, divided by the square of the number of labels.
        own: Of the expected mistake of the label's own item.
    """

    reducible: float
    gain: float
    error: float
    own: float


class _Interval(NamedTuple):
    """The interval of a forecast; chosen on the sets of development.

    With ``d`` the logarithm of all labels at the forecast over those of now, the ends are at the following multiples of
    ``d``; and at least as far as the forecasts for an error that is smaller or larger.

    Attributes:
        near: The lower end, as a multiple of ``d``.
        wait: Added to the upper end.
        far: The upper end, as a multiple of ``d``.
        certain: Logarithm of the factor by which the error may be smaller or larger.
        uncertain: The same for each unit of ``d``.
        vanishing: How fast the mistakes of the own items may end: they are gone after the labels so far, divided by
            this number. 0 if they fall like the error.
    """

    near: float
    wait: float
    far: float
    certain: float
    uncertain: float
    vanishing: float


_INTERVAL: Final = _Interval(0.4, 0.2, 1.2, 0.3, 0.5, 0.0)
_INTERVAL_WITH_MISTAKES: Final = _Interval(0.3, 0.15, 1.1, 0.3, 0.5, 4.0)
_SHARES: Final = _Shares(0.5, 0.5, 2.0, 1.0)
# For classes, if it is known which labels were predicted wrong. The item of a label that is chosen because the model is
# not sure of it is often predicted wrong, and this is a large part of what a label avoids. It counts with less than 1,
# because some of these labels are noise, from which the model learns nothing good.
_SHARES_WITH_MISTAKES: Final = _Shares(0.15, 0.9, 0.5, 0.75)


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
    next label, after :math:`n` others, to lower the error of the other items by

    .. math:: \Delta = \frac1n \max\Bigl( a \rho \, r + b g, \frac{c \rho \, e}{n} \Bigr),

    and to avoid :math:`d q` wrong predictions of its own item. It combines these estimates:

    - :math:`r`, the *reducible error*: the model's estimate of how much its error would fall if it knew its parameters.
      :math:`\rho` is the calibration by random labels. This estimate is about the labels to come.
    - :math:`g`, the *recent gain*: the fall of the error from the predictions at half of the labels to the present
      ones, as estimated by the current model. This estimate is about the labels already bought.
    - :math:`q`, the share of wrong predictions of the items that are labelled: with :math:`k` of the newer half of the
      labels, :math:`m` of them, predicted wrong before they were learned, :math:`q = (k + \rho e) / (m + 1)`. Items
      that are chosen because the model is not sure of them are often predicted wrong.

    Neither :math:`r` nor :math:`g` includes the irreducible part of the error, so noise does not increase the worth of a
    label for other items. The second term of the maximum, with :math:`e` the expected error, is for the first labels,
    from which a model may conclude that all of its error is noise. For classes :math:`a = 0.15, b = 0.9, c = 0.5,
    d = 0.75`. For numbers, and for classes if it is not known which labels were predicted wrong, :math:`a = b = 0.5,
    c = 2, d = 1` and :math:`q = \rho e`. The rule stops when

    .. math:: \textrm{mistake\_cost} \cdot (M \Delta + d q) < \textrm{label\_cost}.

    The error is expected to fall as on a :class:`suffice.forecast.LearningCurve`, and the forecast of the stop is where
    this inequality holds on that curve. To reduce the noise of single steps, :math:`\log(n^{4/3} \Delta)`, which is
    constant on the curve, is averaged with weights that fall by a factor of :math:`e` within 5 labels, or a tenth of
    the labels if these are more. So a batch counts by its labels. At the first step, before 12 labels, for numbers
    before 20 labels, and for classes before 40 labels if :math:`\rho e > 0.4`, the rule stops only if a label is not
    worth its cost even if a pessimistic error is reducible completely: with
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
        Stop at 320 labels: 1 more label is expected to avoid 0.257 wrong predictions among the 4,680 unlabelled items, worth 0.257, which is below its cost of 1.
    """  # noqa: E501 - one sentence

    error_cost: float | None = None
    label_cost: float = 1.0
    _: KW_ONLY
    mistake_cost: float | None = None
    tolerance: float | None = None
    counts: list[int] = field(default_factory=list, init=False, repr=False)
    # log(n^(4/3) times the fall of the error) at each step, and its average.
    falls: list[float] = field(default_factory=list, init=False, repr=False)
    levels: list[float] = field(default_factory=list, init=False, repr=False)
    # Up to each step: labels that were predicted before they were learned, and those of them that were predicted wrong.
    predicted: list[int] = field(default_factory=list, init=False, repr=False)
    mistakes: list[float] = field(default_factory=list, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset(
        {"unlabelled_error", "reducible_error", "recent_gain", "error_scale", "calibration", "pool_size"}
    )
    optional: ClassVar[frozenset[str]] = frozenset({"selected_wrong"})
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
        """Return a rule saved by an earlier version.

        Version 1.0.0 did not count mistakes of labels. A rule of a version before starts without its history.
        """
        if "mistakes" in state:
            return params, state
        if "levels" in state and isinstance(state.get("counts"), list):
            steps = len(state["counts"])
            return params, {**state, "predicted": [0] * steps, "mistakes": [0.0] * steps}
        names = ("error_cost", "label_cost", "mistake_cost", "tolerance")
        costs = {name: params[name] for name in names if name in params}
        return costs, {name: [] for name in ("counts", "falls", "levels", "predicted", "mistakes")}

    def check_state(self) -> None:
        """Refuse a saved state whose counts do not rise, or whose averages do not follow from the falls."""
        require_state(self, "counts", "rising", holds=rises(self.counts))
        lengths = {len(series) for series in self._series()}
        require_state(self, "falls", "as many as counts, levels, predicted and mistakes", holds=len(lengths) == 1)
        wrong = np.diff([0.0, *self.mistakes])
        possible = bool((wrong >= 0.0).all() and (wrong <= np.diff([0, *self.predicted]) + 1e-6).all())
        require_state(self, "mistakes", "those of predicted labels", holds=possible)
        least, most = math.log(_LEAST_WORTH) - 1.0, math.log(_LARGEST_NUMBER) + 100.0
        require_state(self, "falls", f"from {least:.0f} to {most:.0f}", holds=within(self.falls, least, most))
        follow = all(math.isclose(level, self._average(at), abs_tol=1e-9) for at, level in enumerate(self.levels))
        require_state(self, "levels", "those that follow from falls", holds=follow)
        self._last_labelled = [0, *self.counts][-1]

    def _series(self) -> tuple[list[Any], ...]:
        """What is known of each step."""
        return self.counts, self.falls, self.levels, self.predicted, self.mistakes

    def _average(self, at: int) -> float:
        """Return the average of the falls at a step, from the average at the step before."""
        first = at + 1 - _MEDIAN_STEPS
        if first >= 0 and self.counts[at] - self.counts[first] < _AVERAGED_LABELS:
            newest = median(self.falls[first : at + 1])
        else:
            newest = self.falls[at]
        if not at:
            return newest
        n, added = self.counts[at], self.counts[at] - self.counts[at - 1]
        weight = -math.expm1(-added / max(_AVERAGED_LABELS, _AVERAGED_SHARE * n))
        return self.levels[at - 1] + weight * (newest - self.levels[at - 1])

    @property
    def fall(self) -> float:
        """By how much the next label lowers the error of the other items, at the last step."""
        return math.exp(self.levels[-1] - _CURVE * math.log(max(self.counts[-1], 1)))

    def judge(self, step: Step) -> Verdict:
        """Estimate the worth of a label, and compare it with its cost."""
        self._count(step)
        error, fall, at_most = self._expected(step)
        self.falls.append(math.log(fall) + _CURVE * math.log(max(step.n_labelled, 1)))
        self.levels.append(self._average(len(self.counts) - 1))
        curve = LearningCurve(max(step.n_labelled, 1), error, self.fall)
        own = self._own_mistake(step, error)
        costs = _Costs(self._unlabelled(step), self._cost_of_mistake, self.error_cost, self.label_cost, own / error)
        worth = judged = costs.worth(curve)
        wait = self._wait(step, curve)
        if wait:
            judged = costs.worth(replace(curve, fall=max(curve.fall, at_most)))
        stop = judged < self.label_cost
        # After the first labels, a poor classifier is judged by what a label is worth at the very best.
        ready = stop or not self._first(step)
        return self.verdict(
            step,
            stop=stop,
            ready=ready,
            value=judged if ready and not stop else worth,
            threshold=self.label_cost,
            reason=self._reason(step, judged, at_best=wait > 0, ready=ready),
            outlook=_WorthOutlook(curve, costs, wait, self._interval(step)),
        )

    def _count(self, step: Step) -> None:
        """Add the labels of a step, and those of them that were predicted wrong."""
        again = bool(self.counts) and step.n_labelled == self.counts[-1]
        if again:
            # No label was bought since the last step: keep the newest value for this count.
            replaced = self.predicted[-1], self.mistakes[-1]
            for series in self._series():
                del series[-1]
        predicted, mistakes = (self.predicted[-1], self.mistakes[-1]) if self.counts else (0, 0.0)
        if step.selected_wrong is not None and self.counts:
            new = step.n_labelled - self.counts[-1]
            predicted, mistakes = predicted + new, mistakes + new * step.selected_wrong
        elif again:
            predicted, mistakes = replaced
        self.counts.append(step.n_labelled)
        self.predicted.append(predicted)
        self.mistakes.append(mistakes)

    def _knows_mistakes(self, step: Step) -> bool:
        """Whether the mistakes of labels are known and count."""
        known = step.selected_wrong is not None or self.predicted[-1] > 0
        return known and self._counts_own_items(step)

    def _shares(self, step: Step) -> _Shares:
        return _SHARES_WITH_MISTAKES if self._knows_mistakes(step) else _SHARES

    def _interval(self, step: Step) -> _Interval:
        return _INTERVAL_WITH_MISTAKES if self._knows_mistakes(step) else _INTERVAL

    def _counts_own_items(self, step: Step) -> bool:
        """Whether the worth of a label includes its own item, and this is predicted right or wrong."""
        return self.error_cost is None and self._of_classes(step)

    def _own_mistake(self, step: Step, error: float) -> float:
        """Return the expected mistake of the next label's own item, as it counts."""
        shares = self._shares(step)
        if not self._counts_own_items(step):
            return shares.own * error
        recent = bisect_right(self.counts, _RECENT_SHARE * step.n_labelled)
        older = (self.predicted[recent - 1], self.mistakes[recent - 1]) if recent else (0, 0.0)
        predicted, mistakes = self.predicted[-1] - older[0], self.mistakes[-1] - older[1]
        return shares.own * (max(mistakes, 0.0) + error) / (predicted + 1.0)

    def _first(self, step: Step) -> int:
        """Return the number of labels until the estimates say anything; 0 if they do now."""
        fewest = _FIRST_CLASSES if self._of_classes(step) else _FIRST_NUMBERS
        return max(max(self.counts[0] + 1, fewest) - step.n_labelled, 0)

    def _wait(self, step: Step, curve: LearningCurve) -> int:
        """Return the number of labels until the estimates are taken as they are; 0 if they are now."""
        n, of_classes, wait = step.n_labelled, self._of_classes(step), self._first(step)
        if of_classes and curve.error > _POOR and n < _FIRST_OF_POOR:
            until_better = curve.labels_to(_POOR, _FIRST_OF_POOR - n)
            wait = max(wait, _FIRST_OF_POOR - n if until_better is None else until_better)
        return wait

    def _expected(self, step: Step) -> tuple[float, float, float]:
        """Return the error, its fall at the next label, and that fall at most, in the units of the costs."""
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
        n, shares = max(step.n_labelled, 1), self._shares(step)
        fall = max(shares.reducible * reducible + shares.gain * gain, shares.error * error / n) / n
        # If all labels are equal, they do not determine the error of a trivial prediction.
        known = self._error_scale(step) > _LEAST_WORTH
        at_most = min(trivial, max(_DOUBT * error, _LEAST_DOUBT * trivial)) / n if known else _LARGEST_NUMBER
        limited = (min(max(value, _LEAST_WORTH), _LARGEST_NUMBER) for value in (error, fall, at_most))
        return next(limited), next(limited), next(limited)

    @staticmethod
    def _error_scale(step: Step) -> float:
        assert step.error_scale is not None
        return max(step.error_scale, _LEAST_WORTH)

    def _of_classes(self, step: Step) -> bool:
        """Whether an error is a share of wrong classes."""
        return self.tolerance is None and self._error_scale(step) == 1.0

    @property
    def _cost_of_mistake(self) -> float:
        return 1.0 if self.mistake_cost is None else self.mistake_cost

    @staticmethod
    def _unlabelled(step: Step) -> int:
        return max((step.pool_size or 0) - step.n_labelled, 0)

    def _reason(self, step: Step, worth: float, *, at_best: bool, ready: bool) -> str:
        if not ready:
            return "there are too few labels to estimate the worth of one more"
        shown, cost = apart(worth, self.label_cost)
        expected = "expected, at the very best, to" if at_best else "expected to"
        compared = f"worth {shown}, which is {'below' if worth < self.label_cost else 'not below'} its cost of {cost}"
        if self.error_cost is not None:
            return f"1 more label is {expected} lower the error by {worth / self.error_cost:.3g}, {compared}"
        avoided, left = worth / self._cost_of_mistake, self._unlabelled(step)
        if self.tolerance is None and not self._of_classes(step):
            fall = f"{100.0 * avoided / max(left, 1):.2g}\u00a0% of the variance of the labels"
            what = f"the squared error of the {count(left, 'unlabelled item')} by {fall}"
            return f"1 more label is {expected} lower {what}, {compared}"
        number = f"{avoided:.3g}"
        what = f"wrong prediction{'s' * (number != '1')} among the {count(left, 'unlabelled item')}"
        return f"1 more label is {expected} avoid {number} {what}, {compared}"


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
class _Costs:
    """What an error costs.

    Attributes:
        left: Number of items without a label.
        mistake_cost: Cost of one wrong prediction among them.
        error_cost: In its place, the cost of an error that is larger by 1, for a number of items that does not change.
        label_cost: Cost of a label.
        own: The expected mistake of the next label's own item, relative to the error.
    """

    left: int
    mistake_cost: float
    error_cost: float | None
    label_cost: float
    own: float = 1.0

    def worth(self, curve: LearningCurve, more: float = 0.0, vanishing: float = 0.0) -> float:
        """Return the worth of a label after ``more`` others: for other items, and for its own item.

        Args:
            curve: The error, and its fall.
            more: Number of further labels.
            vanishing: How fast the mistakes of the own items end, as in :class:`_Interval`.
        """
        fall = curve.fall_after(more)
        if self.error_cost is not None:
            return min(self.error_cost * fall, _LARGEST_NUMBER)
        left = max(self.left - more, 0.0)
        error = curve.error_after(more)
        own = min(self.own * error, max(1.0, error)) if left else 0.0
        own *= max(0.0, 1.0 - vanishing * more / curve.n_labelled)
        return min(self.mistake_cost * (left * fall + own), _LARGEST_NUMBER)

    def labels_until_cost(self, curve: LearningCurve, vanishing: float = 0.0) -> float:
        """Return the number of labels until a label is worth less than it costs; all if it never is."""
        if self.worth(curve) < self.label_cost:
            return 0.0
        if self.worth(curve, max(self.left - 1.0, 0.0), vanishing) >= self.label_cost:
            return float(self.left)
        low, high = math.log(curve.n_labelled), math.log(curve.n_labelled + self.left)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            if self.worth(curve, math.exp(middle) - curve.n_labelled, vanishing) >= self.label_cost:
                low = middle
            else:
                high = middle
        return math.exp(high) - curve.n_labelled


@dataclass(frozen=True)
class _WorthOutlook:
    """Labels until the worth of a label is below its cost, on the curve that the rule itself uses.

    Attributes:
        curve: The error, and its fall at the next label.
        costs: What an error and a label cost.
        wait: Number of labels before which the rule hardly stops, because there are too few.
        interval: How the interval is computed.
    """

    curve: LearningCurve
    costs: _Costs
    wait: int = 0
    interval: _Interval = _INTERVAL

    def forecast(self) -> Forecast | None:
        """Return the number of labels, with an interval from the errors of such forecasts in past runs.

        None if it is more than 7.4 times the labels so far in all, if the ends of the interval are too far apart, or if
        it would be that all of many items will be labelled: such stops are not predictable.
        """
        n, left = self.curve.n_labelled, self.costs.left
        if not left:
            return None
        likely = max(self.costs.labels_until_cost(self.curve), self.wait)
        distance = math.log1p(likely / n)
        if distance > _FARTHEST:
            return None
        interval = self.interval
        if interval.vanishing and likely >= left and distance > _WHOLE_REST:
            return None
        factor = math.exp(interval.certain + interval.uncertain * distance)
        better, worse = (
            replace(self.curve, error=min(error, _LARGEST_NUMBER))
            for error in (self.curve.error / factor, self.curve.error * factor)
        )
        smaller, larger = self.costs.labels_until_cost(better, interval.vanishing), self.costs.labels_until_cost(worse)
        low = min(n * math.expm1(interval.near * distance), smaller)
        high = max(n * math.expm1(interval.wait + interval.far * distance) + _WAIT, larger)
        labels, first, last = (
            max(1, min(round_(value), left))
            for round_, value in ((math.ceil, likely), (math.floor, low), (math.ceil, high))
        )
        return None if last > _WIDEST * first else Forecast(labels, min(first, labels), max(last, labels), _COVERAGE)


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
