"""Rules that ask for no threshold but for two costs: of an error, and of a label."""

from bisect import bisect_right
from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar, Final

from suffice.arguments import real
from suffice.criteria.base import Criterion
from suffice.criteria.comparing import apart
from suffice.criteria.step import Step
from suffice.criteria.verdict import Verdict
from suffice.errors import InvalidValueError

# How many labels the model is believed for before its own ones speak.
_BELIEVED: Final = 5.0
_LEAST_LABELS: Final = 2.0
_LARGEST: Final = 1e150
# How far what was found of the model's judgement may change the worth of a label.
_MISJUDGED: Final = (0.1, 10.0)


@dataclass
class ExpectedCost(Criterion):
    r"""Stop when the fall of the expected error that a label brings is worth less than the label costs.

    With :math:`e_t` the error that the model expects of itself on the stop set after :math:`n_t` labels,

    .. math:: A \, \frac{e_s - e_t}{n_t - n_s} < \kappa,

    where ``s`` is the last step that lies at least ``window`` labels back. Ours: two costs in, no threshold.
    :class:`LabelWorth` is the same idea made robust.

    Args:
        error_cost: ``A``: what it costs when the error is larger by 1, above 0.
        label_cost: ``kappa``: what a label costs, above 0.
        window: Labels that the fall is measured over, at least 1.

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

    def __post_init__(self) -> None:
        self.error_cost, self.label_cost = _costs(self.error_cost, self.label_cost)
        self.window = real(self.window, "window", "of at least 1", lambda x: x >= 1.0)

    def judge(self, step: Step) -> Verdict:
        """Measure the fall, and weigh it."""
        assert step.expected_error is not None
        if self.counts and self.counts[-1] == step.n_labelled:
            # No label was bought: what is known of this count is what was said last.
            self.errors[-1] = step.expected_error
        else:
            self.counts.append(step.n_labelled)
            self.errors.append(step.expected_error)
        start = bisect_right(self.counts, step.n_labelled - self.window) - 1
        if start < 0:
            reason = f"the fall of the expected error is measured over {self.window:g} labels, which are not bought yet"
            return self.verdict(step, stop=False, ready=False, threshold=self.label_cost, reason=reason)
        del self.counts[:start], self.errors[:start]
        fall = (self.errors[0] - self.errors[-1]) / (self.counts[-1] - self.counts[0])
        return _weighed(self, step, fall, self.error_cost, self.label_cost)


@dataclass
class LabelWorth(Criterion):
    r"""Stop when one more label is worth less than it costs, as far as the model can be believed.

    The error :math:`e` that the model expects of itself on the stop set is followed over the last ``window`` share of
    the :math:`n` labels, from step ``s`` to now, ``t``. What a label brings is taken to be

    .. math::
        v = c \, \max\Bigl( \min\Bigl( \frac{d}{n_t - n_s} \Bigl(\frac{n_t + n_s}{2 n_t}\Bigr)^2, \frac{e_t}{n_t}
        \Bigr),\ \frac{\textrm{caution} \cdot e_t}{n_t^2} \Bigr), \qquad
        c = \frac{\sum \ell_i + 5 e_t}{\sum \bar\ell_i + 5 e_t},

    and the rule stops when :math:`A v < \kappa`. Each part answers a way in which the plain slope misleads:

    - :math:`d`, the farthest that :math:`e` was from :math:`e_t` in the window, above or below. A model that finds it
      was too sure *raises* its expected error, and is improving: what counts is that it still moves.
    - :math:`((n_t + n_s)/2n_t)^2`: a slope over a window is that of its middle, and curves of learning flatten.
    - :math:`e_t/n_t`: no curve of learning that falls like :math:`1/n` or slower is steeper. It is what there is to go
      by at the first step.
    - ``caution``: a model that has seen nothing yet expects nothing of labels either, and says the same as one that has
      seen everything. So a label counts at least as much as on a curve that falls like ``caution``:math:`/n`, and at
      least :math:`\sqrt{\textrm{caution}\, c\, e A/\kappa}` labels are bought. (One that expects no error at all,
      :math:`e = 0`, stops.)
    - :math:`c`: the losses :math:`\ell` of the labels in the window under the model before it learned them, against
      what it expected, :math:`\bar\ell`; within 1/10 and 10. Whether labels come as predicted does not depend on how
      items were chosen. (Where hyper-parameters were learned again, losses before that are those under the new ones,
      which have seen these labels.)

    Ours. All constants were fixed on data sets other than those that the rule is judged on.

    Args:
        error_cost: ``A``: what it costs when the error is larger by 1, above 0. The error is in the units of
            ``expected_error``: for the models of suffice squared units of the target, or nats.
        label_cost: ``kappa``: what a label costs, above 0.
        window: Share of the labels that is looked back on, above 0 and below 1.
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

    def __post_init__(self) -> None:
        self.error_cost, self.label_cost = _costs(self.error_cost, self.label_cost)
        self.window = real(self.window, "window", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
        self.caution = real(self.caution, "caution", "of at least 0", lambda x: x >= 0.0)

    def judge(self, step: Step) -> Verdict:
        """Estimate what a label brings, and weigh it."""
        self._remember(step)
        n, error = max(self.counts[-1], 1), self.errors[-1]
        worth = max(min(self._slope(), error / n), self.caution * error / n / n)
        return _weighed(self, step, self._misjudged() * worth, self.error_cost, self.label_cost)

    def _remember(self, step: Step) -> None:
        assert step.expected_error is not None
        assert step.selected_loss is not None
        assert step.selected_expected_loss is not None
        if step.expected_error < 0.0:
            raise InvalidValueError(
                f"LabelWorth takes an expected error of at least 0, as a squared error or a cross entropy is, not "
                f"{step.expected_error:.3g}; for another loss, add what it can be at least"
            )
        if self.counts and step.n_labelled < self.counts[-1]:
            raise InvalidValueError(
                f"n_labelled fell from {self.counts[-1]} to {step.n_labelled}; reset() the rule for another run"
            )
        back = max(_LEAST_LABELS, self.window * step.n_labelled)
        # Losses are means over the labels of a step; how many these were is not known of the first.
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
        """How far a label moves the expected error now."""
        first, last = self.counts[0], self.counts[-1]
        if first == last:
            # Nothing was bought since, so nothing is known but what no curve exceeds.
            return self.errors[-1] / max(last, 1)
        moved = max(max(self.errors) - self.errors[-1], self.errors[-1] - min(self.errors))
        return moved / (last - first) * ((last + first) / (2.0 * last)) ** 2

    def _misjudged(self) -> float:
        believed = _BELIEVED * abs(self.errors[-1])
        came, expected = sum(self.losses[1:]) + believed, sum(self.expected_losses[1:]) + believed
        low, high = _MISJUDGED
        return min(max(came / expected, low), high) if expected > 0.0 else 1.0


def _bounded(value: float) -> float:
    """A number that sums and ratios of many like it cannot overflow."""
    return min(max(value, -_LARGEST), _LARGEST)


def _costs(error_cost: float, label_cost: float) -> tuple[float, float]:
    return (
        real(error_cost, "error_cost", "above 0", lambda x: x > 0.0),
        real(label_cost, "label_cost", "above 0", lambda x: x > 0.0),
    )


def _weighed(rule: Criterion, step: Step, fall: float, error_cost: float, label_cost: float) -> Verdict:
    """The verdict on a fall of the error per label: what it is worth against what the label costs."""
    worth = min(max(error_cost * fall, -1e300), 1e300)
    stop = worth < label_cost
    shown, cost = apart(worth, label_cost)
    moves = f"lowers the expected error by {fall:.3g}" if fall >= 0.0 else f"raises the expected error by {-fall:.3g}"
    reason = f"a label {moves}, worth {shown}, which is {'below' if stop else 'not below'} its cost of {cost}"
    return rule.verdict(step, stop=stop, value=worth, threshold=label_cost, reason=reason)
