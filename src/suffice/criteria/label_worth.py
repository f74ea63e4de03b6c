"""Rules that weigh the cost of an error against the cost of a label."""

from bisect import bisect_right
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Final

from suffice.arguments import real
from suffice.criteria.base import Criterion, apart
from suffice.criteria.rule_info import ComparedRule, RuleInfo
from suffice.criteria.step import Step
from suffice.criteria.verdict import Verdict
from suffice.errors import InvalidValueError

__all__ = ["ExpectedCost", "LabelWorth"]

# Weight, in labels, of the model's own expectation in the ratio of losses.
_PRIOR_LABELS: Final = 5.0
_SMALLEST_WINDOW: Final = 2.0
_LARGEST_NUMBER: Final = 1e150
# Range of the ratio of observed to expected losses.
_LOSS_RATIO_RANGE: Final = (0.1, 10.0)


@dataclass
class ExpectedCost(Criterion):
    r"""Stop when the fall of the expected error per label is worth less than a label costs.

    With :math:`e_t` the error that the model expects of itself on the stop set after :math:`n_t` labels,

    .. math:: A \, \frac{e_s - e_t}{n_t - n_s} < \kappa,

    where ``s`` is the last step that lies at least ``window`` labels back. This rule is ours. :class:`LabelWorth` is a
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
    r"""Stop when one more label is estimated to be worth less than it costs.

    The rule follows the error :math:`e` that the model expects of itself on the stop set, over the last ``window``
    share of the :math:`n` labels, from step ``s`` to the present step ``t``. It estimates the effect of a label as

    .. math::
        v = c \, \max\Bigl( \min\Bigl( \frac{d}{n_t - n_s} \Bigl(\frac{n_t + n_s}{2 n_t}\Bigr)^2, \frac{e_t}{n_t}
        \Bigr),\ \frac{\textrm{caution} \cdot e_t}{n_t^2} \Bigr), \qquad
        c = \frac{\sum \ell_i + 5 e_t}{\sum \bar\ell_i + 5 e_t},

    and stops when :math:`A v < \kappa`. Each part corrects a way in which the plain slope misleads:

    - :math:`d`: the largest distance of :math:`e` from :math:`e_t` in the window, above or below. A model that was too
      confident *raises* its expected error while it improves, so any movement counts.
    - :math:`((n_t + n_s)/2n_t)^2`: the slope over a window is that at its middle, and learning curves flatten.
    - :math:`e_t/n_t`: a learning curve that falls like :math:`1/n` or more slowly is never steeper. At the first step
      this is the only estimate.
    - ``caution``: a model with too few labels may expect as little of more labels as one with enough. So a label counts
      at least as much as on a curve that falls like ``caution``:math:`/n`, and the rule buys at least
      :math:`\sqrt{\textrm{caution}\, c\, e A/\kappa}` labels. (If the model expects no error at all, :math:`e = 0`, the
      rule stops.)
    - :math:`c`: the losses :math:`\ell` of the labels in the window under the model before it learned them, divided by
      the losses that it expected, :math:`\bar\ell`; limited to 1/10 to 10. Whether predictions of labels are correct
      does not depend on how items were chosen. (After hyper-parameters were learned again, earlier losses are those
      under the new hyper-parameters, which have seen these labels.)

    This rule is ours. All constants were fixed on data sets that are not used to evaluate the rule.

    Args:
        error_cost: ``A``: cost of an error that is larger by 1, above 0. The error is in the units of
            ``expected_error``: for the models of suffice squared units of the target, or nats.
        label_cost: ``kappa``: cost of a label, above 0.
        window: Share of the labels in the window, above 0 and below 1.
        caution: In labels, 0 or more.

    Examples:
        >>> rule = LabelWorth(error_cost=1000.0, label_cost=1.0)
        >>> for n, error in ((40, 0.5), (50, 0.4), (60, 0.36), (70, 0.355), (80, 0.354)):
        ...     step = Step(n_labelled=n, expected_error=error, selected_loss=0.4, selected_expected_loss=0.5)
        ...     verdict = rule.observe(step)
        >>> print(verdict)
        Stop at 80 labels: a label lowers the expected error by 0.000831, worth 0.831, which is below its cost of 1.
    """

    error_cost: float
    label_cost: float
    _: KW_ONLY
    window: float = 0.3
    caution: float = 10.0
    counts: list[int] = field(default_factory=list, init=False, repr=False)
    errors: list[float] = field(default_factory=list, init=False, repr=False)
    losses: list[float] = field(default_factory=list, init=False, repr=False)
    expected_losses: list[float] = field(default_factory=list, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"expected_error", "selected_loss", "selected_expected_loss"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="two costs, no threshold",
        example=lambda: LabelWorth(30.0, 1.0),
        origin="ours",
        compared=(
            ComparedRule(kind="cost", make=lambda error_cost: LabelWorth(error_cost, 1.0), parameter="error_cost"),
        ),
    )

    def __post_init__(self) -> None:
        self.error_cost, self.label_cost = _costs(self.error_cost, self.label_cost)
        self.window = real(self.window, "window", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
        self.caution = real(self.caution, "caution", "of at least 0", lambda x: x >= 0.0)

    def judge(self, step: Step) -> Verdict:
        """Estimate the effect of a label, and compare its worth with its cost."""
        self._remember(step)
        n, error = max(self.counts[-1], 1), self.errors[-1]
        worth = max(min(self._slope(), error / n), self.caution * error / n / n)
        return _weighed(self, step, self._loss_ratio() * worth, self.error_cost, self.label_cost)

    def _remember(self, step: Step) -> None:
        assert step.expected_error is not None
        assert step.selected_loss is not None
        assert step.selected_expected_loss is not None
        if step.expected_error < 0.0:
            raise InvalidValueError(
                f"LabelWorth requires an expected_error of at least 0, such as a squared error or a cross entropy, not "
                f"{step.expected_error:.3g}; subtract the lower bound of your loss from it"
            )
        if self.counts and step.n_labelled < self.counts[-1]:
            raise InvalidValueError(
                f"n_labelled fell from {self.counts[-1]} to {step.n_labelled}; reset() the rule for another run"
            )
        back = max(_SMALLEST_WINDOW, self.window * step.n_labelled)
        # Losses are means over the labels of a step; for the first step the number of labels is not known.
        labels = step.n_labelled - self.counts[-1] if self.counts else 0
        if self.counts and not labels:
            self.errors[-1] = _bounded(step.expected_error)
            return
        self.counts.append(step.n_labelled)
        self.errors.append(_bounded(step.expected_error))
        self.losses.append(labels * _bounded(step.selected_loss))
        self.expected_losses.append(labels * _bounded(step.selected_expected_loss))
        start = max(0, min(bisect_right(self.counts, step.n_labelled - back), len(self.counts) - 1) - 1)
        for kept in (self.counts, self.errors, self.losses, self.expected_losses):
            del kept[:start]

    def _slope(self) -> float:
        """Return how much one label moves the expected error at the present step."""
        first, last = self.counts[0], self.counts[-1]
        if first == last:
            # There is one step only, so use the upper bound of all learning curves.
            return self.errors[-1] / max(last, 1)
        moved = max(max(self.errors) - self.errors[-1], self.errors[-1] - min(self.errors))
        return moved / (last - first) * ((last + first) / (2.0 * last)) ** 2

    def _loss_ratio(self) -> float:
        """Return the ratio of the observed losses to those that the model expected."""
        prior = _PRIOR_LABELS * abs(self.errors[-1])
        observed, expected = sum(self.losses[1:]) + prior, sum(self.expected_losses[1:]) + prior
        low, high = _LOSS_RATIO_RANGE
        return min(max(observed / expected, low), high) if expected > 0.0 else 1.0


def _bounded(value: float) -> float:
    """Limit a number, so that sums and ratios of such numbers do not overflow."""
    return min(max(value, -_LARGEST_NUMBER), _LARGEST_NUMBER)


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
