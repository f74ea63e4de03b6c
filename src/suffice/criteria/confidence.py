"""Rules that stop when the model is confident about unlabelled items: one number of a step against a threshold."""

import math
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from suffice.arguments import real
from suffice.criteria.base import Comparison, Criterion, tightened
from suffice.criteria.prediction_statistics import entropies
from suffice.criteria.rule_info import CLASSES, NUMBERS, ComparedRule, RuleInfo, geometric_grid
from suffice.criteria.saved_state import require_state
from suffice.criteria.step import Step
from suffice.criteria.verdict import Verdict
from suffice.numerics.special_functions import Floats

__all__ = [
    "EntropyMax",
    "MarginExhaustion",
    "MaxConfidence",
    "MaxVariance",
    "MinExpectedError",
    "OverallUncertainty",
]

# The margin |f| = 1 of a support vector machine, for the logistic function: 2 p - 1 = tanh(f / 2).
_SVM_MARGIN: Final = math.tanh(0.5)
#: Settings of MinExpectedError that are compared, also as the base of other rules.
RISK_GRID: Final = geometric_grid(0.5, 1e-4, 15, 0.01)
_SELECTED_ENTROPY: Final = Comparison("largest entropy of the examples just selected", "<")
_POOL_ENTROPY: Final = Comparison("largest entropy over the pool", "<=")
_POOL_RISK: Final = Comparison("error that the model expects on the pool", "<=")
_POOL_UNCERTAINTY: Final = Comparison("mean uncertainty over the pool", "<")
_POOL_MARGIN: Final = Comparison("smallest margin over the pool", ">=", limit="band")
_POOL_VARIANCE: Final = Comparison("largest variance over the pool, relative to the first", "<=")


def selected_entropies(step: Step) -> Floats:
    """Return the entropies in nats of the examples just selected, before the model learned their labels.

    Args:
        step: A step with ``selected_probabilities``.

    Returns:
        One entropy for each of the ``k`` examples, at least 0.

    Examples:
        >>> selected_entropies(Step(n_labelled=3, selected_probabilities=[[0.5, 0.5], [0.0, 1.0]])).round(4)
        array([0.6931, 0.    ])
    """
    assert step.selected_probabilities is not None  # rules that call this require it
    # Half-precision probabilities may leave 0 to 1 by rounding, where -p log p is infinite or negative.
    return entropies(np.clip(step.selected_probabilities, 0.0, 1.0))


class _LowerIsStricter:
    """A rule that is stricter the lower its threshold is."""

    threshold: float

    def tighten(self, factor: float) -> None:
        """Make the rule stricter: multiply its threshold by ``factor``.

        Args:
            factor: Between 0 and 1.

        Raises:
            InvalidValueError: ``factor`` is not between 0 and 1.
        """
        self.threshold = tightened(self.threshold, factor, limit=0.0)


@dataclass
class MaxConfidence(_LowerIsStricter, Criterion):
    r"""Stop when every example just selected has an entropy below a threshold.

    .. math:: \max_{i \in \text{batch}} H(p_i) < \theta, \qquad H(p) = -\sum_k p_k \log p_k.

    The probabilities are those before the model learned the labels of the batch. If the loop selects the least certain
    items, the rest of the pool is more certain. A step that selected nothing is not judged.

    Args:
        threshold: In nats, above 0; the paper uses 0.001.

    Raises:
        InvalidValueError: ``threshold`` is not a number above 0.

    Reference: [ZhuHovy2007] the max-confidence criterion.

    Examples:
        >>> rule = MaxConfidence(threshold=0.001)
        >>> print(rule.observe(Step(n_labelled=31, selected_probabilities=[[0.9, 0.1], [0.99999, 0.00001]])))
        Go on at 31 labels: the largest entropy of the examples just selected, 0.325, is not below the threshold 0.001.
        >>> rule.observe(Step(n_labelled=33, selected_probabilities=[[0.99999, 0.00001]])).stop
        True
    """

    threshold: float = 0.001

    requires: ClassVar[frozenset[str]] = frozenset({"selected_probabilities"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="confidence",
        example=lambda: MaxConfidence(0.68),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                settings=geometric_grid(2.0, 1e-5, 17, 1e-3), parameter="threshold", default=1e-3, sense="below"
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "above 0", lambda x: x > 0.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the largest entropy of the examples just selected."""
        found = selected_entropies(step)
        if not len(found):
            reason = "no example was selected in this step, so there is no entropy to compare"
            return self.verdict(step, stop=False, ready=False, threshold=self.threshold, reason=reason)
        return self.comparison_verdict(step, _SELECTED_ENTROPY, float(found.max()), self.threshold)


@dataclass
class EntropyMax(_LowerIsStricter, Criterion):
    r"""Stop when no item of the pool has an entropy above a threshold.

    .. math:: \max_{i \in \text{pool}} H(p_i) \le \theta.

    Args:
        threshold: In nats, 0 or more; the usual value is 0.01.

    Raises:
        InvalidValueError: ``threshold`` is not a number of at least 0.

    Reference: [ZhuWangHovy2008b] and [ZhuWangHovyMa2010], where it is called maximum uncertainty.

    Examples:
        >>> print(EntropyMax().observe(Step(n_labelled=31, pool_max_entropy=0.004)))
        Stop at 31 labels: the largest entropy over the pool, 0.004, is at most the threshold 0.01.
    """

    threshold: float = 0.01

    requires: ClassVar[frozenset[str]] = frozenset({"pool_max_entropy"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="confidence",
        example=lambda: EntropyMax(0.69),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                settings=geometric_grid(2.0, 1e-4, 15, 0.01), parameter="threshold", default=0.01, sense="at most"
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "of at least 0", lambda x: x >= 0.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the largest entropy."""
        assert step.pool_max_entropy is not None  # it is required, so observe has checked
        return self.comparison_verdict(step, _POOL_ENTROPY, step.pool_max_entropy, self.threshold)


@dataclass
class MinExpectedError(_LowerIsStricter, Criterion):
    r"""Stop when the error that the model expects of itself on the pool is at most a threshold.

    .. math:: \frac{1}{|\text{pool}|} \sum_{i \in \text{pool}} \left(1 - \max_k p_{ik}\right) \le \theta.

    Args:
        threshold: From 0 to 1; the usual value is 0.01.

    Raises:
        InvalidValueError: ``threshold`` is not a number from 0 to 1.

    Reference: [ZhuWangHovy2008] the minimum expected error strategy.

    Examples:
        >>> print(MinExpectedError().observe(Step(n_labelled=31, pool_risk=0.2)))
        Go on at 31 labels: the error that the model expects on the pool, 0.2, is above the threshold 0.01.
    """

    threshold: float = 0.01

    requires: ClassVar[frozenset[str]] = frozenset({"pool_risk"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="confidence",
        example=lambda: MinExpectedError(0.3),
        tasks=CLASSES,
        compared=(ComparedRule(settings=RISK_GRID, parameter="threshold", default=0.01, sense="at most"),),
    )

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the expected error."""
        assert step.pool_risk is not None  # it is required, so observe has checked
        return self.comparison_verdict(step, _POOL_RISK, step.pool_risk, self.threshold)


@dataclass
class OverallUncertainty(_LowerIsStricter, Criterion):
    r"""Stop when the mean uncertainty over the pool is below a threshold.

    .. math:: \frac{1}{|\text{pool}|} \sum_{i \in \text{pool}} \frac{H(p_i)}{\log K} < \theta.

    The entropy is divided by its largest value, :math:`\log K`, and so is comparable for any number of classes.

    Args:
        threshold: Above 0, at most 1; the usual value is 0.05.

    Raises:
        InvalidValueError: ``threshold`` is not a number above 0 and at most 1.

    Reference: [ZhuWangHovy2008b] and [ZhuWangHovyMa2010], overall uncertainty.

    Examples:
        >>> print(OverallUncertainty().observe(Step(n_labelled=31, pool_uncertainty=0.05)))
        Go on at 31 labels: the mean uncertainty over the pool, 0.05, is not below the threshold 0.05.
    """

    threshold: float = 0.05

    requires: ClassVar[frozenset[str]] = frozenset({"pool_uncertainty"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="confidence",
        example=lambda: OverallUncertainty(0.8),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                settings=geometric_grid(1.0, 1e-3, 13, 0.05), parameter="threshold", default=0.05, sense="below"
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "above 0 and at most 1", lambda x: 0.0 < x <= 1.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the mean uncertainty."""
        assert step.pool_uncertainty is not None  # it is required, so observe has checked
        return self.comparison_verdict(step, _POOL_UNCERTAINTY, step.pool_uncertainty, self.threshold)


@dataclass
class MarginExhaustion(Criterion):
    r"""Stop when no item of the pool is inside the margin of the classifier.

    .. math:: \min_{i \in \text{pool}} |f(x_i)| \ge \text{band},

    where :math:`|f|` is the distance from the decision boundary in the units of the decision function. For a classifier
    with probabilities it is the difference between the two largest ones (our extension: the paper has support vector
    machines only).

    Args:
        band: Half the width of the margin, above 0: 1 for a support vector machine, whose margin is ``|f| < 1``. For
            probabilities, a number of at most 1; above that the rule never stops. There is no default, because no
            number suits both cases.

    Raises:
        InvalidValueError: ``band`` is not a number above 0.

    Reference: [SchohnCohn2000] the stopping heuristic.

    Examples:
        >>> print(MarginExhaustion(1.0).observe(Step(n_labelled=31, pool_margin=0.3)))
        Go on at 31 labels: the smallest margin over the pool, 0.3, is below the band 1.
    """

    band: float

    requires: ClassVar[frozenset[str]] = frozenset({"pool_margin"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="confidence",
        example=lambda: MarginExhaustion(0.01),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                settings=tuple(sorted({*geometric_grid(1e-3, 0.999, 13), 0.9, 0.95, 0.99, _SVM_MARGIN})),
                parameter="band",
                default=_SVM_MARGIN,
                sense="at least",
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.band = real(self.band, "band", "above 0", lambda x: x > 0.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the smallest margin with the band."""
        assert step.pool_margin is not None  # it is required, so observe has checked
        return self.comparison_verdict(step, _POOL_MARGIN, step.pool_margin, self.band)


@dataclass
class MaxVariance(_LowerIsStricter, Criterion):
    r"""Stop when the largest predictive variance over the pool, relative to its first value, is at most a threshold.

    .. math:: \frac{\max_{i \in \text{pool}} v_t(x_i)}{\max_{i \in \text{pool}} v_1(x_i)} \le \theta.

    For regression, by practice. A variance of 0 at the start means that nothing is uncertain: the ratio is then 0, and
    later variances are compared with the first one above 0.

    Args:
        threshold: From 0 to below 1, because the ratio begins at 1; 0.1 by default.

    Raises:
        InvalidValueError: ``threshold`` is not a number from 0 to below 1.

    Examples:
        >>> rule = MaxVariance(threshold=0.1)
        >>> [rule.observe(Step(n_labelled=n, pool_variance=v)).stop for n, v in ((11, 2.0), (12, 0.5), (13, 0.2))]
        [False, False, True]
    """

    threshold: float = 0.1
    first: float | None = field(default=None, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"pool_variance"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="confidence",
        example=lambda: MaxVariance(0.7),
        tasks=NUMBERS,
        origin="practice",
        compared=(
            ComparedRule(
                settings=geometric_grid(0.99, 1e-4, 16, 0.1),
                parameter="threshold",
                default=0.1,
                sense="at most",
                after="InformationGain",
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "from 0 to below 1", lambda x: 0.0 <= x < 1.0)

    def check_state(self) -> None:
        """Refuse a first variance that is not above 0."""
        require_state(self, "first", "None or above 0", holds=self.first is None or self.first > 0.0)

    def judge(self, step: Step) -> Verdict:
        """Compute the ratio of the largest variance to the first one and compare it with the threshold."""
        assert step.pool_variance is not None  # it is required, so observe has checked
        if self.first is None and step.pool_variance > 0.0:
            self.first = step.pool_variance
        ratio = 0.0 if self.first is None else step.pool_variance / self.first
        return self.comparison_verdict(step, _POOL_VARIANCE, ratio, self.threshold)
