"""Rules for Bayesian models: the bound on a step's change, the bound on the error, the information gain."""

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import pairwise
from typing import ClassVar, Final, Literal

from suffice.arguments import real, whole
from suffice.bounds import risk_gap, total_variation
from suffice.criteria.base import Comparison, Criterion, tightened
from suffice.criteria.rule_info import CLASSES, ComparedRule, RuleInfo, geometric_grid
from suffice.criteria.saved_state import require_state, within
from suffice.criteria.step import Step
from suffice.criteria.verdict import Certificate, Verdict
from suffice.errors import InvalidValueError

__all__ = ["DeterministicBoundRuns", "InformationGain", "PacBayes"]

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
        ``p``; or None where only one number of runs is possible: one side of the median has no value, or each side
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
