"""Rules about confidence and accuracy of predictions.

Confidence is one number of a step about the unlabelled items, compared with a threshold. Accuracy compares predictions
with labels: the labels just bought, or those of a validation set.
"""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from suffice.arguments import real, whole
from suffice.criteria.base import (
    CLASSES,
    NUMBERS,
    ComparedRule,
    Comparison,
    Criterion,
    RuleInfo,
    geometric_grid,
    require_state,
    tightened,
    within,
)
from suffice.criteria.prediction_statistics import entropies
from suffice.criteria.step_and_verdict import Step, Verdict
from suffice.numerics import Floats

__all__ = [
    "EntropyMax",
    "HeldOutPlateau",
    "MarginExhaustion",
    "MaxConfidence",
    "MaxVariance",
    "MinExpectedError",
    "OverallUncertainty",
    "SelectedAccuracy",
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
    # Half-precision probabilities may be outside [0, 1] by rounding; -p log p is infinite or negative there.
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


@dataclass
class SelectedAccuracy(Criterion):
    r"""Stop when the accuracy on the labels just bought, before the model learned them, is at least a threshold.

    .. math:: \frac{\#\{i : \arg\max_k p_{ik} = y_i\}}{\#\{i\}} \ge \theta,

    over the examples of the latest steps: the fewest steps that have at least ``window`` labels together. If two
    classes are equally likely, the first counts as predicted. A label of a class that is new to the model (-1) counts
    as wrong. A loop asks for the labels that are hardest to predict, so this accuracy is usually lower than that on the
    pool.

    Args:
        threshold: Above 0, at most 1; 0.9 as in the paper.
        window: Smallest number of labels for which the accuracy is computed; 10 by default. With fewer labels the rule
            is not ready.

    Raises:
        InvalidValueError: ``threshold`` is not a number above 0 and at most 1, or ``window`` not a whole number of at
            least 1.

    Reference: [ZhuHovy2007], where it is called min-error; [ZhuWangHovyMa2010] selected accuracy.

    Examples:
        >>> rule = SelectedAccuracy(threshold=0.75, window=4)
        >>> p = [[0.9, 0.1], [0.2, 0.8]]
        >>> rule.observe(Step(n_labelled=12, selected_probabilities=p, selected_labels=[0, 0])).ready
        False
        >>> print(rule.observe(Step(n_labelled=14, selected_probabilities=p, selected_labels=[0, 1])))
        Stop at 14 labels: the accuracy on the last 4 labels, before they were learned, 0.75, is at least the threshold
        0.75.
    """

    threshold: float = 0.9
    window: int = 10
    right: list[int] = field(default_factory=list, init=False, repr=False)
    sizes: list[int] = field(default_factory=list, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"selected_probabilities", "selected_labels"})
    classes_only: ClassVar[frozenset[str]] = frozenset({"selected_probabilities"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="accuracy",
        example=lambda: SelectedAccuracy(0.6, window=4),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                settings=(0.1, 0.3, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.94, 0.96, 0.98, 1.0),
                parameter="threshold",
                default=0.9,
                sense="at least",
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "above 0 and at most 1", lambda x: 0.0 < x <= 1.0)
        self.window = whole(self.window, "window", least=1)

    def tighten(self, factor: float) -> None:
        """Make the rule stricter: multiply the share of wrong predictions that it allows by ``factor``.

        Args:
            factor: Between 0 and 1.

        Raises:
            InvalidValueError: ``factor`` is not between 0 and 1.
        """
        self.threshold = tightened(self.threshold, factor, limit=1.0)

    def check_state(self) -> None:
        """Refuse numbers of right predictions that do not fit the numbers of labels."""
        require_state(self, "sizes", "counts of at least 1", holds=within(self.sizes, 1))
        require_state(self, "right", "as long as sizes", holds=len(self.right) == len(self.sizes))
        fits = all(right <= size for right, size in zip(self.right, self.sizes, strict=True))
        require_state(self, "right", "at most sizes, step by step", holds=fits)

    def judge(self, step: Step) -> Verdict:
        """Compute the accuracy over the latest steps and compare it with the threshold."""
        probabilities, labels = step.selected_probabilities, step.selected_labels
        assert probabilities is not None  # both are required, so observe has checked
        assert labels is not None
        if len(labels):
            self.right.append(int(np.count_nonzero(probabilities.argmax(axis=1) == labels)))
            self.sizes.append(len(labels))
        while self.sizes and sum(self.sizes) - self.sizes[0] >= self.window:
            del self.right[0], self.sizes[0]
        total = sum(self.sizes)
        if total < self.window:
            reason = f"the accuracy is computed on at least {self.window} labels, and there are {total} so far"
            return self.verdict(step, stop=False, ready=False, threshold=self.threshold, reason=reason)
        those = "label, before it was" if total == 1 else f"{total} labels, before they were"
        comparison = Comparison(f"accuracy on the last {those} learned", ">=")
        return self.comparison_verdict(step, comparison, sum(self.right) / total, self.threshold)


@dataclass
class HeldOutPlateau(Criterion):
    r"""Stop when the error on a labelled validation set has not improved for some rounds.

    With :math:`e_t` the error after round ``t``, stop when

    .. math:: \min_{s \le t - \text{rounds}} e_s - \min_{t - \text{rounds} < s \le t} e_s \le \text{tolerance}.

    By practice. It is expensive: the labels of the validation set are paid for too. The reason states their number,
    and a comparison of rules must count them.

    Args:
        tolerance: Largest improvement, in the units of the error, that is ignored; 0 or more.
        rounds: Number of rounds without a larger improvement after which to stop, at least 1.

    Raises:
        InvalidValueError: ``tolerance`` is not a number of at least 0, or ``rounds`` not a whole number of at least 1.

    Examples:
        >>> rule = HeldOutPlateau(tolerance=0.01, rounds=2)
        >>> for n, error in enumerate([0.5, 0.25, 0.26, 0.245], start=11):
        ...     verdict = rule.observe(Step(n_labelled=n, validation_error=error, validation_labels=100))
        >>> print(verdict)
        Stop at 14 labels: the improvement of the best validation error in the last 2 rounds, 0.005, is at most the
        tolerance 0.01; 14 labels and 100 validation labels are paid for.
    """

    tolerance: float = 0.001
    rounds: int = 5
    before: float | None = field(default=None, init=False, repr=False)
    recent: list[float] = field(default_factory=list, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"validation_error", "validation_labels"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="accuracy",
        example=lambda: HeldOutPlateau(0.05, 2),
        origin="practice",
        compared=(
            ComparedRule(
                make=lambda rounds: HeldOutPlateau(rounds=rounds),
                settings=(1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200),
                parameter="rounds",
                default=5,
                charged="validation_labels",
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.tolerance = real(self.tolerance, "tolerance", "of at least 0", lambda x: x >= 0.0)
        self.rounds = whole(self.rounds, "rounds", least=1)

    def check_state(self) -> None:
        """Refuse more recent errors than rounds, and an earlier error before there are that many."""
        full = len(self.recent) == self.rounds
        require_state(self, "recent", f"a list of at most {self.rounds} numbers", holds=len(self.recent) <= self.rounds)
        early = f"None before {self.rounds} errors are in recent"
        require_state(self, "before", early, holds=self.before is None or full)

    def judge(self, step: Step) -> Verdict:
        """Compare the best error of the latest rounds with the best before them."""
        assert step.validation_error is not None  # both are required, so observe has checked
        assert step.validation_labels is not None
        self.recent.append(step.validation_error)
        if len(self.recent) > self.rounds:
            oldest = self.recent.pop(0)
            self.before = oldest if self.before is None else min(self.before, oldest)
        paid = f"{_labels(step.n_labelled, '')} and {_labels(step.validation_labels, 'validation ')} are paid for"
        if self.before is None:
            seen = f"{len(self.recent)} round{'s are' if len(self.recent) > 1 else ' is'} done"
            reason = f"the rule compares more than {self.rounds} rounds, and {seen}; {paid}"
            return self.verdict(step, stop=False, ready=False, threshold=self.tolerance, reason=reason)
        latest = "round" if self.rounds == 1 else f"{self.rounds} rounds"
        comparison = Comparison(f"improvement of the best validation error in the last {latest}", "<=", "tolerance")
        verdict = self.comparison_verdict(step, comparison, self.before - min(self.recent), self.tolerance)
        return dataclasses.replace(verdict, reason=f"{verdict.reason}; {paid}")


def _labels(number: int, kind: str) -> str:
    return f"{number} {kind}label{'' if number == 1 else 's'}"
