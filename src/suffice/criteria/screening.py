"""Rules for screening: stop when enough of the items of a rare positive class are found.

A screening asks for the likeliest items of the positive class first. Below, ``N`` is the number of items, ``s`` the
number of items screened (labelled) and ``r`` the number of relevant items, those of the positive class, among them.
The *recall* is the share of all relevant items that are found. A rule stores the first step at each number of relevant
items found. A step may hold one new label or several; relevant items of a larger step count from its end.

These rules are estimates, or have assumptions that a screening does not satisfy. Only :class:`QuantileRecall` keeps its
confidence, if its control sample is as required. :class:`suffice.learner.RecallGuarantee` guarantees a recall by a
random check of the items that are unscreened at the end.
"""

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import real, whole
from suffice.criteria.base import CLASSES, Comparison, Criterion, RuleInfo, require_state, rises, snapped
from suffice.criteria.step_and_verdict import Known, Step, Verdict
from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.presentation.rule_words import RANKED_LAST

__all__ = [
    "ConsecutiveIrrelevant",
    "Knee",
    "PoissonRecall",
    "QuantCI",
    "QuantileRecall",
    "RecallTest",
    "Safe",
]

# A term of a tail that is smaller than this share of the sum is left out.
_NEGLIGIBLE: Final = 1e-17
# Terms of a tail that are computed at a time.
_BLOCK: Final = 64
_TEST: Final = Comparison("probability of so few relevant items in the last ones", "<", "level")
_CONTROL: Final = Comparison("number of control items found", ">=", "required number")
_LOWER: Final = Comparison("lower end of the estimated recall", ">=", "target")
_SLOPES: Final = Comparison("slope ratio of the gain curve", ">=", "threshold")
_ESTIMATE: Final = Comparison("estimated recall", ">=", "target")
_IN_A_ROW: Final = Comparison("number of irrelevant items in a row", ">=", "limit")
# Parameters of the knee: the least slope ratio, and how many relevant items lower the ratio to it.
_LEAST_RATIO: Final = 6
_FULL_LENGTH: Final = 150


@dataclass
class _GainCurve:
    """The gain curve: the number of relevant items found against the number screened, at the steps at which it rises.

    Attributes:
        screened: Number of items screened at the last step.
        counts: Number of items screened at the first step with each number of relevant items, rising.
        founds: These numbers, rising.
    """

    screened: int = field(default=0, init=False, repr=False)
    counts: list[int] = field(default_factory=list, init=False, repr=False)
    founds: list[int] = field(default_factory=list, init=False, repr=False)

    def check_state(self) -> None:
        """Refuse a saved state that is not a gain curve."""
        require_state(self, "counts", "rising, from 1", holds=rises([0, *self.counts]))
        require_state(self, "founds", "rising, from 1", holds=rises([0, *self.founds]))
        require_state(self, "founds", "as many as counts", holds=len(self.founds) == len(self.counts))
        within = all(found <= count for found, count in zip(self.founds, self.counts, strict=True))
        require_state(self, "founds", "at most counts", holds=within)
        require_state(self, "screened", "at least the last of counts", holds=[0, *self.counts][-1] <= self.screened)
        self._last_labelled = self.screened

    def _note(self, step: Step) -> int:
        """Add a step to the curve, and return the number of relevant items found."""
        n, found = step.n_labelled, step.relevant_found
        assert found is not None  # it is required, so observe has checked
        if found > n:
            raise InvalidValueError(f"relevant_found is {found}, and n_labelled is {n}; more are found than labelled")
        self.screened = n
        # A label may have been corrected, and a step may come again with other labels.
        while self.founds and (self.founds[-1] > found or self.counts[-1] == n):
            del self.founds[-1], self.counts[-1]
        if found > (self.founds[-1] if self.founds else 0):
            self.founds.append(found)
            self.counts.append(n)
        return found

    def _irrelevant(self) -> int:
        """Number of items screened since the last relevant one; 0 if there is none yet."""
        return self.screened - self.counts[-1] if self.counts else 0

    def _found_by(self, screened: Floats) -> NDArray[np.intp]:
        """Number of relevant items among the first ones that were screened."""
        found = np.array([0, *self.founds], dtype=np.intp)
        return np.asarray(found[np.searchsorted(np.array(self.counts, dtype=np.float64), screened, side="right")])


@dataclass
class RecallTest(_GainCurve, Criterion):
    r"""Stop when the last items contain too few relevant ones for the recall to be below a target.

    The rule tests the hypothesis that the recall is below :math:`\tau`. Then there are at least
    :math:`\lfloor r / \tau \rfloor + 1` relevant items. For each run of :math:`n` items at the end of the screening,
    with :math:`k` relevant ones in it, it computes how probable so few of them would be if the run were a random sample
    of the items unscreened before it:

    .. math:: p = P[\mathrm{Hyp}(N - (s - n), K, n) \le k], \qquad K = \lfloor r / \tau \rfloor + 1 - (r - k).

    It stops when the least :math:`p` over all runs is below :math:`1 - \textrm{confidence}`. Of the runs with the same
    :math:`k` the longest has the least :math:`p`, so that there is one candidate for each relevant item found.

    This is a valid test for one run that is drawn at random and chosen in advance. Under a ranking the last items are
    likelier to be relevant than the others, which makes the test conservative; the choice of the run, and a test after
    each label, make it less so. Neither is corrected, as in the paper. Some implementations omit the 1 in :math:`K` and
    test a recall of at most :math:`\tau`.

    The rule guarantees nothing: relevant items that the model ranks last are not seen by it, and only a random check
    covers them. A stop says so.

    Args:
        at_least: The recall :math:`\tau`, above 0 and below 1.
        confidence: Confidence of the test, above 0 and below 1.

    Raises:
        InvalidValueError: An argument is out of range.

    Reference: [CallaghanMuellerHansen2020], ranked quasi-sampling. We had the abstract and public implementations.

    Examples:
        >>> rule = RecallTest(at_least=0.95)
        >>> for n, found in ((100, 20), (140, 20), (340, 20)):
        ...     verdict = rule.observe(Step(n_labelled=n, relevant_found=found, pool_size=400))
        >>> verdict.stop, round(verdict.value, 4)
        (True, 0.0395)
    """

    at_least: float = 0.95
    confidence: float = 0.95

    requires: ClassVar[frozenset[str]] = frozenset({"relevant_found", "pool_size"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="screening", tasks=CLASSES, example=lambda: RecallTest(at_least=0.5, confidence=0.3)
    )

    def __post_init__(self) -> None:
        self.at_least = _recall(self.at_least)
        self.confidence = _confidence(self.confidence)

    def judge(self, step: Step) -> Verdict:
        """Test all runs at the end, and compare the least probability with the level."""
        assert step.pool_size is not None  # it is required, so observe has checked
        found, left = self._note(step), _left(step)
        level = 1.0 - self.confidence
        if not step.n_labelled:
            reason = "no item is screened yet"
            return self.verdict(step, stop=False, ready=False, threshold=level, reason=reason)
        missed = math.floor(found / Fraction(repr(self.at_least))) + 1 - found
        starts = np.array([0, *self.counts], dtype=np.int64)
        before = np.array([0, *self.founds], dtype=np.int64)
        sizes, relevant = step.n_labelled - starts, found - before
        value = snapped(least_lower_tail(sizes[sizes > 0], relevant[sizes > 0], missed, left), level)
        verdict = self.comparison_verdict(step, _TEST, value, level)
        return replace(verdict, reason=f"{verdict.reason}; {RANKED_LAST}") if verdict.stop else verdict


@dataclass
class QuantileRecall(Criterion):
    r"""Stop when the screening has found enough of the relevant items of a control sample.

    Before the screening, ``sample`` relevant items are drawn at random, for example by labelling random items until
    there are so many. The screening does not use these labels. It stops when it has found :math:`j` of the items
    itself, where :math:`j` is the least number with

    .. math:: \sum_{i < j} \binom{m}{i} \tau^i (1 - \tau)^{m - i} \ge \textrm{confidence}, \qquad m = \textrm{sample}.

    The recall at the stop is then below :math:`\tau` with a probability of at most ``1 - confidence``, for any number
    of looks: the stop is the place of the :math:`j`-th control item in the order of the screening. This assumes that
    the control items are drawn at random, and that the order does not depend on which items these are.
    :math:`\tau^m \le 1 - \textrm{confidence}` is required: 14 items for a recall of 0.8 and 59 for 0.95. Larger samples
    stop sooner. The labels of the control sample are paid for too.

    Args:
        sample: Number of relevant items in the control sample, at least 1.
        at_least: The recall :math:`\tau`, above 0 and below 1.
        confidence: The confidence, above 0 and below 1.

    Raises:
        InvalidValueError: An argument is out of range, or the sample is too small; the message names the least size.

    Reference: [LewisYangFrieder2021], the quantile binomial confidence bound.

    Examples:
        >>> rule = QuantileRecall(30, at_least=0.8)
        >>> print(rule.observe(Step(n_labelled=700, control_found=28)))
        Stop at 700 labels: the number of control items found, 28, is at least the required number 28.
    """

    sample: int
    at_least: float = 0.95
    confidence: float = 0.95

    requires: ClassVar[frozenset[str]] = frozenset({"control_found"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="screening", tasks=CLASSES, example=lambda: QuantileRecall(10, at_least=0.5, confidence=0.8)
    )

    def __post_init__(self) -> None:
        self.sample = whole(self.sample, "sample", least=1)
        self.at_least = _recall(self.at_least)
        self.confidence = _confidence(self.confidence)
        least = self.least_sample(self.at_least, self.confidence)
        if self.sample < least:
            raise InvalidValueError(
                f"sample must be at least {least} for a recall of {self.at_least:g} with a confidence of "
                f"{self.confidence:g}, not {self.sample}; draw more control items, or ask for less"
            )

    @staticmethod
    def least_sample(at_least: float, confidence: float = 0.95) -> int:
        """Return the least number of control items for a recall and a confidence.

        Examples:
            >>> QuantileRecall.least_sample(0.8), QuantileRecall.least_sample(0.95)
            (14, 59)
        """
        return _least_sample(_recall(at_least), _confidence(confidence))

    def required(self) -> int:
        """Return the number of control items that must be found.

        Examples:
            >>> QuantileRecall(59).required(), QuantileRecall(200).required()
            (59, 196)
        """
        from scipy.special import bdtr

        return _first(lambda j: float(bdtr(j - 1, self.sample, self.at_least)) >= self.confidence, 1, self.sample)

    def judge(self, step: Step) -> Verdict:
        """Compare the number of control items found with the required one."""
        found = step.control_found
        assert found is not None  # it is required, so observe has checked
        if found > self.sample:
            raise InvalidValueError(f"control_found is {found}, and the control sample has {self.sample} items")
        return self.comparison_verdict(step, _CONTROL, float(found), float(self.required()))


@dataclass
class QuantCI(Criterion):
    r"""Stop when the recall that the model's probabilities imply is at least a target, less some standard deviations.

    With :math:`A` and :math:`B` the sums of the probability :math:`p` of the positive class over the labelled and the
    unlabelled items, and :math:`V_A` and :math:`V_B` the sums of :math:`p (1 - p)`,

    .. math:: R = \frac{A}{A + B}, \qquad
              \mathrm{Var} = \frac{V_A}{(A + B)^2} + \frac{A^2 (V_A + V_B)}{(A + B)^4},

    the rule stops when :math:`R - z \sqrt{\mathrm{Var}} \ge \tau`. Its reliability depends on the probabilities of the
    model. They are not reliable in a part of the data in which no relevant item has been found.

    Args:
        at_least: The recall :math:`\tau`, above 0 and below 1.
        deviations: :math:`z`, at least 0.

    Raises:
        InvalidValueError: An argument is out of range.

    Reference: [YangLewisFrieder2021], QuantCI. We had public implementations.

    Examples:
        >>> rule = QuantCI(at_least=0.8)
        >>> facts = {"expected_found": 95.0, "found_variance": 2.0, "expected_missed": 5.0, "missed_variance": 4.0}
        >>> print(rule.observe(Step(n_labelled=400, **facts)))
        Stop at 400 labels: the lower end of the estimated recall, 0.896, is at least the target 0.8.
    """

    at_least: float = 0.95
    deviations: float = 2.0

    requires: ClassVar[frozenset[str]] = frozenset(
        {"expected_found", "found_variance", "expected_missed", "missed_variance"}
    )
    info: ClassVar[RuleInfo] = RuleInfo(family="screening", tasks=CLASSES, example=lambda: QuantCI(at_least=0.5))

    def __post_init__(self) -> None:
        self.at_least = _recall(self.at_least)
        self.deviations = real(self.deviations, "deviations", "of at least 0", lambda x: x >= 0.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the lower end of the estimated recall with the target."""
        a, b, v_a, v_b = step.expected_found, step.expected_missed, step.found_variance, step.missed_variance
        assert a is not None
        assert b is not None
        assert v_a is not None
        assert v_b is not None
        total = a + b
        if total <= 0.0:
            reason = "the model expects no relevant item"
            return self.verdict(step, stop=False, ready=False, threshold=self.at_least, reason=reason)
        recall = a / total
        # Shares of the total, so that squares neither overflow nor vanish.
        variance = v_a / total / total + recall * recall * ((v_a + v_b) / total / total)
        value = recall - self.deviations * math.sqrt(variance)
        return self.comparison_verdict(step, _LOWER, value, self.at_least)


@dataclass
class Knee(_GainCurve, Criterion):
    r"""Stop when the gain curve has become much flatter than it was.

    Let :math:`R_i` be the number of relevant items among the first :math:`i`, and :math:`i` the point of the curve that
    is farthest above the line from its start to its present end. The rule compares the slopes before and after it:

    .. math:: \rho = \frac{R_i / i}{(1 + R_s - R_i) / (s - i)} \ge 156 - \min(R_s, 150).

    No recall is chosen. Public implementations differ: some use :math:`R_i` on the right side, some require a number of
    screened items, usually 1000, some look after batches that grow, and some take the largest :math:`\rho` in place of
    the farthest point. Here the right side has :math:`R_s`, and ``least_screened`` items are required.

    Args:
        least_screened: Number of screened items before which the rule does not stop, at least 0.

    Raises:
        InvalidValueError: ``least_screened`` is not a whole number of at least 0.

    Reference: [CormackGrossman2016], the knee method. We had public implementations.

    Examples:
        >>> rule = Knee(least_screened=0)
        >>> for n, found in ((100, 90), (200, 150), (1000, 150), (1600, 150)):
        ...     verdict = rule.observe(Step(n_labelled=n, relevant_found=found))
        >>> verdict.stop, verdict.value, verdict.threshold
        (True, 1050.0, 6.0)
    """

    least_screened: int = 1000

    requires: ClassVar[frozenset[str]] = frozenset({"relevant_found"})
    info: ClassVar[RuleInfo] = RuleInfo(family="screening", tasks=CLASSES, example=lambda: Knee(least_screened=20))

    def __post_init__(self) -> None:
        self.least_screened = whole(self.least_screened, "least_screened", least=0)

    def judge(self, step: Step) -> Verdict:
        """Compare the slopes before and after the knee."""
        found, s = self._note(step), step.n_labelled
        threshold = float(_LEAST_RATIO + _FULL_LENGTH - min(found, _FULL_LENGTH))
        if s < self.least_screened:
            reason = f"{s} items are screened, and the rule judges from {self.least_screened} on"
            return self.verdict(step, stop=False, ready=False, threshold=threshold, reason=reason)
        if not found:
            reason = "no relevant item is found yet"
            return self.verdict(step, stop=False, ready=False, threshold=threshold, reason=reason)
        counts, founds = np.array(self.counts, dtype=np.float64), np.array(self.founds, dtype=np.float64)
        knee = int(np.argmax(founds - found / s * counts))
        i, before = self.counts[knee], self.founds[knee]
        # At the end of the curve there is no slope after the knee.
        ratio = (before / i) / ((1 + found - before) / (s - i)) if i < s else 0.0
        return self.comparison_verdict(step, _SLOPES, ratio, threshold)


@dataclass
class PoissonRecall(_GainCurve, Criterion):
    r"""Stop when a rate of relevant items that falls exponentially predicts that few of them are left.

    The screened items are divided into ``windows`` of equal length. The rate :math:`a e^{-k x}`, with :math:`k \ge 0`,
    is fitted to the shares of relevant items in them by least squares. Relevant items are taken for a Poisson process
    with this rate, so that their number among all :math:`N` items has the mean :math:`\mu = \int_0^N a e^{-k x} dx`.
    The rule stops when

    .. math:: r \ge \tau \min \{ n : P[\mathrm{Poisson}(\mu) \le n] \ge \textrm{confidence} \}

    and :math:`r` is also at least :math:`\tau` times what the fitted rate predicts for the :math:`s` items screened.

    The fit is ours. It compares the share in a window with the mean of the rate over the window, and the rate does not
    rise. The authors' code compares it with the rate at the middle of the window, which has no solution if all
    relevant items are in the first window.

    Args:
        at_least: The recall :math:`\tau`, above 0 and below 1.
        confidence: The confidence, above 0 and below 1.
        windows: Number of windows, at least 2.
        least_relevant: Relevant items before which the rule does not judge, at least 1; 20 in the authors' code.
        least_share: Share of the items that must be screened before, 0 to 1; 0.3 in the authors' code.

    Raises:
        InvalidValueError: An argument is out of range.

    Reference: [SneydStevenson2019]. We had the authors' code.

    Examples:
        >>> rule = PoissonRecall(at_least=0.9, least_share=0.1)
        >>> found = 0
        >>> for n in range(1, 301):
        ...     found += n in {round(8.0 * k**1.2) for k in range(1, 25)}
        ...     verdict = rule.observe(Step(n_labelled=n, relevant_found=found, pool_size=1000))
        >>> verdict.ready, verdict.stop
        (True, False)
    """

    at_least: float = 0.95
    confidence: float = 0.95
    windows: int = 10
    least_relevant: int = 20
    least_share: float = 0.3

    requires: ClassVar[frozenset[str]] = frozenset({"relevant_found", "pool_size"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="screening",
        tasks=CLASSES,
        example=lambda: PoissonRecall(at_least=0.5, confidence=0.5, windows=4, least_relevant=2, least_share=0.03),
    )

    def __post_init__(self) -> None:
        self.at_least = _recall(self.at_least)
        self.confidence = _confidence(self.confidence)
        self.windows = whole(self.windows, "windows", least=2)
        self.least_relevant = whole(self.least_relevant, "least_relevant", least=1)
        self.least_share = real(self.least_share, "least_share", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)

    def judge(self, step: Step) -> Verdict:
        """Fit the rate, and compare the estimated recall with the target."""
        assert step.pool_size is not None  # it is required, so observe has checked
        found, s, size = self._note(step), step.n_labelled, max(step.pool_size, step.n_labelled)
        if found < self.least_relevant or s < max(self.windows, self.least_share * size):
            first = max(self.windows, math.ceil(self.least_share * size))
            items = f"{self.least_relevant} relevant items among {first} screened ones"
            reason = f"the rule judges from {items} on; there are {found} among {s}"
            return self.verdict(step, stop=False, ready=False, threshold=self.at_least, reason=reason)
        rate = _ExponentialRate.fitted(self._found_by(np.linspace(0.0, s, self.windows + 1)), s / self.windows)
        expected = min(_poisson_quantile(rate.integral(size), self.confidence), size)
        # The quantile of the total may be below the number found already.
        value = min(found / max(expected, found), found / max(rate.integral(s), found))
        return self.comparison_verdict(step, _ESTIMATE, value, self.at_least)


@dataclass
class ConsecutiveIrrelevant(_GainCurve, Criterion):
    """Stop when a number of items in a row were irrelevant.

    By practice: many guidelines of systematic reviews have such a rule, with 50 to 200 items. It does not know the
    number of items, or how many relevant ones are expected. It does not stop before the first relevant item.

    Args:
        items: Number of irrelevant items in a row, at least 1.

    Raises:
        InvalidValueError: ``items`` is not a whole number of at least 1.

    Examples:
        >>> rule = ConsecutiveIrrelevant(50)
        >>> for n, found in ((100, 7), (120, 8), (160, 8)):
        ...     verdict = rule.observe(Step(n_labelled=n, relevant_found=found))
        >>> print(verdict)
        Go on at 160 labels: the number of irrelevant items in a row, 40, is below the limit 50. 10 more labels.
    """

    items: int = 50

    requires: ClassVar[frozenset[str]] = frozenset({"relevant_found"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="screening", tasks=CLASSES, origin="practice", example=lambda: ConsecutiveIrrelevant(8)
    )

    def __post_init__(self) -> None:
        self.items = whole(self.items, "items", least=1)

    def judge(self, step: Step) -> Verdict:
        """Compare the number of irrelevant items in a row with the limit."""
        if not self._note(step):
            reason = "no relevant item is found yet"
            return self.verdict(step, stop=False, ready=False, threshold=float(self.items), reason=reason)
        run = self._irrelevant()
        stop, reason = _IN_A_ROW.holds(run, self.items), _IN_A_ROW.sentence(run, self.items)
        return self.verdict(
            step,
            stop=stop,
            value=float(run),
            threshold=float(self.items),
            reason=reason,
            outlook=Known(self.items - run),
        )


@dataclass
class Safe(_GainCurve, Criterion):
    r"""Stop when three conditions of the SAFE procedure hold at the same time.

    - At least ``least_share`` of the items are screened.
    - At least ``multiple`` times the estimated number of relevant items are screened.
    - The last ``irrelevant`` items were irrelevant.

    The number of relevant items is estimated from labels drawn at random, ``estimated_relevant``. If a step does not
    have it, or if it is smaller, the number found is used.

    The procedure has a fourth condition: all *key papers*, relevant items that are known beforehand, are found. Check
    it yourself, or use :class:`QuantileRecall`. It continues with another model after the stop. We had the abstract of
    the paper and descriptions of it, not its text.

    Args:
        irrelevant: Number of irrelevant items in a row, at least 1.
        least_share: The least share of the items, from 0 to 1.
        multiple: How many times the estimated number of relevant items, at least 0.

    Raises:
        InvalidValueError: An argument is out of range.

    Reference: [BoetjeVanDeSchoot2024], the conditions of its second phase.

    Examples:
        >>> rule = Safe()
        >>> for n in (100, 160):
        ...     verdict = rule.observe(Step(n_labelled=n, relevant_found=30, pool_size=1000, estimated_relevant=90.0))
        >>> print(verdict)
        Go on at 160 labels: 160 items are screened, and 180 are required: twice the estimated number of relevant ones.
    """

    irrelevant: int = 50
    least_share: float = 0.1
    multiple: float = 2.0

    requires: ClassVar[frozenset[str]] = frozenset({"relevant_found", "pool_size"})
    optional: ClassVar[frozenset[str]] = frozenset({"estimated_relevant"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="screening", tasks=CLASSES, example=lambda: Safe(irrelevant=5, least_share=0.04)
    )

    def __post_init__(self) -> None:
        self.irrelevant = whole(self.irrelevant, "irrelevant", least=1)
        self.least_share = real(self.least_share, "least_share", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
        self.multiple = real(self.multiple, "multiple", "of at least 0", lambda x: x >= 0.0)

    def judge(self, step: Step) -> Verdict:
        """Check the conditions, and name those that do not hold."""
        assert step.pool_size is not None  # it is required, so observe has checked
        found, s = self._note(step), step.n_labelled
        if not found:
            return self.verdict(step, stop=False, ready=False, reason="no relevant item is found yet")
        estimated = min(max(step.estimated_relevant or 0.0, float(found)), float(max(step.pool_size, s)))
        share, several, run = self.least_share * step.pool_size, self.multiple * estimated, self._irrelevant()
        times = "twice" if self.multiple == 2.0 else f"{self.multiple:g} times"
        missing = []
        if s < math.floor(share + 0.5) and s < share:
            missing.append(f"{s} items are screened, and {math.ceil(share)} are required: {self.least_share:g} of all")
        if s < several:
            required = f"{math.ceil(several)} are required: {times} the estimated number of relevant ones"
            missing.append(f"{s} items are screened, and {required}")
        if run < self.irrelevant:
            missing.append(_IN_A_ROW.sentence(run, self.irrelevant))
        enough = f"the last {run} items are irrelevant, and {s} items are screened, which is enough"
        return self.verdict(step, stop=not missing, reason="; ".join(missing) or enough)


def _recall(at_least: Any) -> float:
    return real(at_least, "at_least", "above 0 and below 1", lambda x: 0.0 < x < 1.0)


def _confidence(confidence: Any) -> float:
    return real(confidence, "confidence", "above 0 and below 1", lambda x: 0.0 < x < 1.0)


def _left(step: Step) -> int:
    """Number of unscreened items."""
    return max((step.pool_size or 0) - step.n_labelled, 0)


def _first(holds: Any, low: int, high: int) -> int:
    """The first integer from ``low`` to ``high`` at which a condition holds that holds from there on; else ``high``."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _least_sample(recall: float, confidence: float) -> int:
    """The least ``m`` with ``recall ** m <= 1 - confidence``, decided exactly for the decimal numbers given."""
    tau, level = Fraction(repr(recall)), 1 - Fraction(repr(confidence))
    guess = max(1, math.ceil(math.log(level) / math.log(recall)))
    # The result of the logarithms may be wrong by one if the power is close to the level.
    exact = guess < 10_000
    while exact and guess > 1 and tau ** (guess - 1) <= level:
        guess -= 1
    while exact and tau**guess > level:
        guess += 1
    return guess


def least_lower_tail(sizes: Any, relevant: Any, missed: int, left: int) -> float:
    r"""Return the least of the probabilities of so few relevant items in samples of the unscreened items.

    .. math:: P[X \le k], \qquad X \sim \mathrm{Hyp}(n + u, k + d, n)

    for samples of :math:`n` items with :math:`k` relevant ones, after which :math:`u` items are unscreened and
    :math:`d \ge 1` relevant ones are missed. The tail that does not contain the mode is at least its first term, and at
    most a geometric series. Only the tails that can be the least by these bounds are summed. The relative error grows
    with the number of items, to about 1e-8 for a million.

    Args:
        sizes: ``n`` of each sample, at least 1.
        relevant: ``k`` of each sample, at most its size.
        missed: ``d``.
        left: ``u``.

    Examples:
        >>> round(least_lower_tail([3], [1], missed=1, left=1), 12)  # both of 4 are in 3: P[X <= 1] = 1/2
        0.5
    """
    from scipy.special import gammaln

    n, k = np.asarray(sizes, dtype=np.float64), np.asarray(relevant, dtype=np.float64)
    if missed > left:
        return 0.0
    d, u = float(missed), float(left)
    positives, rest = k + d, u - d
    lower = k < (positives + 1.0) * (n + 1.0) / (n + u + 2.0)
    # All items of a sample are relevant: there cannot be more.
    certain = ~lower & (k >= n)
    j = np.where(lower | certain, k, k + 1.0)
    room = rest - (k - j)
    log_first = (
        *(gammaln(each + 1.0) for each in (positives, n + rest - k, n, np.full_like(n, u))),
        *(-gammaln(each + 1.0) for each in (j, positives - j, n - j, room, n + u)),
    )
    first = np.exp(np.minimum(sum(log_first, np.zeros(len(n))), 0.0))
    # The ratio of term x + 1 to term x is (one - x)(two - x) / ((three + x)(four + x)), which falls with x.
    series = (
        np.where(lower, j, positives - j),
        np.where(lower, room, n - j),
        np.where(lower, positives - j, j) + 1.0,
        np.where(lower, n - j, room) + 1.0,
    )
    ratio = series[0] * series[1] / (series[2] * series[3])
    most = np.minimum(first / np.maximum(1.0 - ratio, 1e-300), 1.0)
    at_least = np.where(certain, 1.0, np.where(lower, first, 1.0 - most))
    at_most = np.where(certain, 1.0, np.where(lower, most, 1.0 - first))
    # Bounds may differ from the sums by rounding.
    able = np.flatnonzero(at_least <= at_most.min() * (1.0 + 1e-9))
    one, two, three, four = (each[able] for each in series)
    tails = np.minimum(first[able] * _series_sums(one, two, three, four), 1.0)
    found = np.where(certain[able], 1.0, np.where(lower[able], tails, 1.0 - tails))
    return float(found.min())


def _series_sums(one: Floats, two: Floats, three: Floats, four: Floats) -> Floats:
    """The sums of series whose ratios are ``(one - x)(two - x) / ((three + x)(four + x))`` for x = 0, 1, and so on."""
    total, term = np.ones(len(one)), np.ones(len(one))
    x = np.arange(_BLOCK, dtype=np.float64)
    while True:
        # A factor of 0 ends its series; the factors after it would be negative.
        falling = np.maximum(one[:, None] - x, 0.0) * np.maximum(two[:, None] - x, 0.0)
        ratios = falling / ((three[:, None] + x) * (four[:, None] + x))
        terms = term[:, None] * np.cumprod(ratios, axis=1)
        total += terms.sum(axis=1)
        term, ratio = terms[:, -1], ratios[:, -1]
        # The remaining terms are at most a geometric series.
        if not (term * ratio > _NEGLIGIBLE * total * (1.0 - ratio)).any():
            return total
        x = x + _BLOCK


class _ExponentialRate(NamedTuple):
    """A rate of relevant items that falls like ``exp(-k x)`` after ``x`` screened ones.

    Attributes:
        first: Mean of the rate over the first window.
        k: How fast it falls.
        width: Width of a window.
    """

    first: float
    k: float
    width: float

    @classmethod
    def fitted(cls, found: NDArray[np.intp], width: float) -> "_ExponentialRate":
        """Return the rate that fits the numbers found at the ends of windows of one width, by least squares."""
        rates = np.diff(found) / width
        # Of all k the one that explains the largest sum of squares, in units of one window.
        grid = np.concatenate([[0.0], np.geomspace(1e-4, 50.0, 80)])
        best = 0.0
        for _ in range(4):
            at = int(np.argmax(_explained(grid, rates)))
            low, best, high = (float(grid[min(max(k, 0), len(grid) - 1)]) for k in (at - 1, at, at + 1))
            grid = np.sort(np.concatenate([[best], np.linspace(low, high, 40)]))
        shape = np.exp(-best * np.arange(len(rates)))
        return cls(float(rates @ shape / (shape @ shape)), best / width, width)

    def integral(self, end: float) -> float:
        """Return the expected number of relevant items among the first ``end``."""
        if self.k * end < 1e-12:
            return self.first * end
        return self.first * self.width * math.expm1(-self.k * end) / math.expm1(-self.k * self.width)


def _explained(k: Floats, rates: Floats) -> Floats:
    """The sum of squares that a falling rate explains, for several ``k``."""
    shapes = np.exp(-np.outer(k, np.arange(len(rates))))
    return np.asarray((shapes @ rates) ** 2 / (shapes**2).sum(axis=1))


def _poisson_quantile(mean: float, probability: float) -> int:
    """The least ``n`` with ``P[Poisson(mean) <= n] >= probability``."""
    from scipy.special import pdtr

    if mean <= 0.0:
        return 0
    high = 1
    while float(pdtr(high, mean)) < probability and high < 2**62:
        high *= 2
    return _first(lambda n: float(pdtr(n, mean)) >= probability, 0, high)
