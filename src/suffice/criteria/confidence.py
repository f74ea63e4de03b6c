"""Rules that stop when the model is sure of what it has not seen: one number of a step against a threshold."""

from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from suffice.arguments import real
from suffice.criteria.base import Criterion
from suffice.criteria.comparing import Comparison
from suffice.criteria.facts import entropies
from suffice.criteria.stability import tightened
from suffice.criteria.step import Step
from suffice.criteria.verdict import Verdict
from suffice.special import Floats

_SELECTED_ENTROPY: Final = Comparison("largest entropy of the examples just selected", "<")
_POOL_ENTROPY: Final = Comparison("largest entropy over the pool", "<=")
_POOL_RISK: Final = Comparison("error that the model expects on the pool", "<=")
_POOL_UNCERTAINTY: Final = Comparison("mean uncertainty over the pool", "<")
_POOL_MARGIN: Final = Comparison("least margin over the pool", ">=", limit="band")
_POOL_VARIANCE: Final = Comparison("largest variance over the pool, relative to the first", "<=")


def selected_entropies(step: Step) -> Floats:
    """Entropies in nats of the examples that a step has selected, before their labels were learned.

    Args:
        step: A step with ``selected_probabilities``.

    Returns:
        One entropy for each of the ``k`` examples, none below 0.

    Examples:
        >>> selected_entropies(Step(n_labelled=3, selected_probabilities=[[0.5, 0.5], [0.0, 1.0]])).round(4)
        array([0.6931, 0.    ])
    """
    assert step.selected_probabilities is not None  # rules that call this require it
    # Half-precision probabilities may lie outside 0 to 1 by a rounding, where -p log p is infinite or negative.
    return entropies(np.clip(step.selected_probabilities, 0.0, 1.0))


class _LowerIsStricter:
    """A threshold that a rule is stricter for the lower it is."""

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

    The probabilities are those before the labels of the batch were learned. If the loop selects what is least sure, the
    rest of the pool is surer still. A step that selected nothing is not judged.

    Args:
        threshold: In nats, above 0; the paper takes 0.001.

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

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "above 0", lambda x: x > 0.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the entropy of the least sure of the examples just selected."""
        found = selected_entropies(step)
        if not len(found):
            reason = "no example was selected in this step, so there is no entropy to compare"
            return self.verdict(step, stop=False, ready=False, threshold=self.threshold, reason=reason)
        return _SELECTED_ENTROPY.verdict(self, step, float(found.max()), self.threshold)


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

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "of at least 0", lambda x: x >= 0.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the largest entropy."""
        assert step.pool_max_entropy is not None  # it is required, so observe has checked
        return _POOL_ENTROPY.verdict(self, step, step.pool_max_entropy, self.threshold)


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

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the expected error."""
        assert step.pool_risk is not None  # it is required, so observe has checked
        return _POOL_RISK.verdict(self, step, step.pool_risk, self.threshold)


@dataclass
class OverallUncertainty(_LowerIsStricter, Criterion):
    r"""Stop when the mean uncertainty over the pool is below a threshold.

    .. math:: \frac{1}{|\text{pool}|} \sum_{i \in \text{pool}} \frac{H(p_i)}{\log K} < \theta.

    Divided by :math:`\log K`, its largest value, the entropy means the same for any number of classes.

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

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "above 0 and at most 1", lambda x: 0.0 < x <= 1.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the mean uncertainty."""
        assert step.pool_uncertainty is not None  # it is required, so observe has checked
        return _POOL_UNCERTAINTY.verdict(self, step, step.pool_uncertainty, self.threshold)


@dataclass
class MarginExhaustion(Criterion):
    r"""Stop when no item of the pool lies within the margin of the classifier.

    .. math:: \min_{i \in \text{pool}} |f(x_i)| \ge \text{band},

    where :math:`|f|` is the distance from the boundary in the units of the classifier's own function, or, for a
    classifier with probabilities, the difference between the two largest probabilities (ours: the paper has support
    vector machines only).

    Args:
        band: Half the width of the margin, above 0: 1 for a support vector machine, whose margin is ``|f| < 1``. For
            probabilities a number of at most 1; above that the rule never stops. There is no default, since no one
            number suits both.

    Raises:
        InvalidValueError: ``band`` is not a number above 0.

    Reference: [SchohnCohn2000] the stopping heuristic.

    Examples:
        >>> print(MarginExhaustion(1.0).observe(Step(n_labelled=31, pool_margin=0.3)))
        Go on at 31 labels: the least margin over the pool, 0.3, is below the band 1.
    """

    band: float

    requires: ClassVar[frozenset[str]] = frozenset({"pool_margin"})

    def __post_init__(self) -> None:
        self.band = real(self.band, "band", "above 0", lambda x: x > 0.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the least margin with the band."""
        assert step.pool_margin is not None  # it is required, so observe has checked
        return _POOL_MARGIN.verdict(self, step, step.pool_margin, self.band)


@dataclass
class MaxVariance(_LowerIsStricter, Criterion):
    r"""Stop when the largest predictive variance over the pool, relative to its first value, is at most a threshold.

    .. math:: \frac{\max_{i \in \text{pool}} v_t(x_i)}{\max_{i \in \text{pool}} v_1(x_i)} \le \theta.

    For regression, by practice. A variance of 0 at the start means that nothing is uncertain: the ratio is then taken
    as 0, and the first variance above 0 becomes the one that later ones are compared with.

    Args:
        threshold: From 0 to below 1, since the ratio begins at 1; by default 0.1.

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

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "from 0 to below 1", lambda x: 0.0 <= x < 1.0)

    def judge(self, step: Step) -> Verdict:
        """Put the largest variance in proportion and compare."""
        assert step.pool_variance is not None  # it is required, so observe has checked
        if self.first is None and step.pool_variance > 0.0:
            self.first = step.pool_variance
        ratio = 0.0 if self.first is None else step.pool_variance / self.first
        return _POOL_VARIANCE.verdict(self, step, ratio, self.threshold)
