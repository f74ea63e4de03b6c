r"""Rules for Bayesian optimisation: stop when another evaluation of the objective improves the best one very little.

The objective :math:`f` is minimised; to maximise, change the signs. A Gaussian process gives its posterior mean
:math:`\mu_t(x)` and deviation :math:`s_t(x)` after :math:`t` evaluations. The *incumbent* :math:`x^*_t` is the
evaluated point with the least :math:`\mu_t`. The *regret* is :math:`f(x^*_t) - \min_x f(x)`. The number of evaluations
is the ``n_labelled`` of a step. :class:`suffice.learner.OptimisationMonitor` computes what these rules require.
"""

import math
import sys
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike

from suffice.arguments import real, whole
from suffice.criteria.base import NUMBERS, Comparison, Criterion, RuleInfo, require_state, within
from suffice.criteria.step_and_verdict import Step, Verdict
from suffice.divergence import one_observation
from suffice.errors import InvalidValueError
from suffice.numerics import Floats, symmetric
from suffice.posteriors.distributions import frozen

__all__ = ["RegretBound", "RegretChange"]

#: Fields of a step that :func:`regret_facts` computes for these rules.
REGRET_FIELDS: Final = frozenset({"regret_change", "regret_change_noise", "regret_bound", "noise_deviation"})
_CHANGE: Final = "bound on the change of the expected regret"
_BY_NOISE: Final = Comparison(_CHANGE, "<=", "change that noise explains,")
_BY_SHARE: Final = Comparison(_CHANGE, "<=")
_BOUND: Final = Comparison("bound on the regret", "<=")
_OVER_NOISE: Final = Comparison("bound on the regret", "<=", "deviation of the noise,")


@dataclass
class RegretChange(Criterion):
    r"""Stop when an evaluation changes the expected regret by no more than the noise of one evaluation explains.

    The expected regret :math:`R_t = \mu_t(x^*_t) - E_t[\min f]` is that of the incumbent. One evaluation changes it by
    at most

    .. math:: D_t = |\mu_t(x^*_t) - \mu_{t-1}(x^*_{t-1})| + E_t[(f(x^*_t) - f(x^*_{t-1}))_+]
              + \kappa_{t-1} \sqrt{\mathrm{KL}[p_t \| p_{t-1}] / 2},

    except for the probability that :math:`f` leaves its confidence bounds, which is neglected. :math:`\kappa` is the
    bound that :class:`RegretBound` compares. The rule stops when :math:`D_t` is at most

    .. math:: \sqrt{-2 \log \delta}\; \frac{\sigma\, s_{t-1}(x_t)\, (s_{t-1}(x^*_t) + \kappa_{t-1} / 2)}
              {s_{t-1}(x_t)^2 + \sigma^2}.

    Noise of variance :math:`\sigma^2` in the last evaluation changes the first and the last term of :math:`D_t` by more
    than this with a probability of at most :math:`\delta`. With ``share``, the rule stops when :math:`D_t` is at most
    this share of the median of its first values.

    A small change is no proof of a small regret: a search that repeats one point changes nothing. The derivation and
    the differences from other implementations are on the page "Bayesian optimisation" of the documentation.

    Args:
        delta: Probability :math:`\delta`, above 0 and below 1.
        share: Share of the median of the first values, above 0 and below 1, which replaces the comparison with noise;
            None for that comparison.
        calibration: Number of first values, at least 1, for ``share``. The rule does not stop at these.

    Raises:
        InvalidValueError: An argument is out of range.

    Reference: [IshibashiEtAl2023] Theorem 1 and Algorithm 1. We had public implementations.

    Examples:
        >>> verdict = RegretChange().observe(Step(n_labelled=31, regret_change=0.02, regret_change_noise=0.005))
        >>> verdict.stop, round(verdict.threshold, 4)
        (False, 0.0107)
    """

    delta: float = 0.1
    _: KW_ONLY
    share: float | None = None
    calibration: int = 20
    first: list[float] = field(default_factory=list, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"regret_change", "regret_change_noise"})
    info: ClassVar[RuleInfo] = RuleInfo(family="optimisation", tasks=NUMBERS)

    def __post_init__(self) -> None:
        self.delta = real(self.delta, "delta", "between 0 and 1", lambda x: 0.0 < x < 1.0)
        if self.share is not None:
            self.share = real(self.share, "share", "between 0 and 1", lambda x: 0.0 < x < 1.0)
        self.calibration = whole(self.calibration, "calibration", least=1)

    def judge(self, step: Step) -> Verdict:
        """Compare the change with the one that noise explains, or with a share of the first changes."""
        change, by_noise = step.regret_change, step.regret_change_noise
        assert change is not None  # both are required, so observe has checked
        assert by_noise is not None
        if self.share is None:
            limit = min(math.sqrt(-2.0 * math.log(self.delta)) * by_noise, sys.float_info.max)
            return self.comparison_verdict(step, _BY_NOISE, change, limit)
        if len(self.first) < self.calibration:
            self.first = [*self.first, change]
            reason = f"evaluation {len(self.first)} of the {self.calibration} that set the scale of the change"
            return self.verdict(step, stop=False, ready=False, value=change, reason=reason)
        return self.comparison_verdict(step, _BY_SHARE, change, self.share * float(np.median(self.first)))

    def check_state(self) -> None:
        """Refuse first values that are negative or too many, or that are not used."""
        most = 0 if self.share is None else self.calibration
        require_state(self, "first", "numbers of at least 0", holds=within(self.first, 0.0))
        require_state(self, "first", f"a list of at most {most} numbers", holds=len(self.first) <= most)


@dataclass
class RegretBound(Criterion):
    r"""Stop when the regret is at most a threshold by the confidence bounds of the model.

    .. math:: \kappa_t = \min_{x\ \mathrm{evaluated}} \{\mu_t(x) + \sqrt{\beta_t}\, s_t(x)\}
              - \min_x \{\mu_t(x) - \sqrt{\beta_t}\, s_t(x)\}

    If the confidence bounds hold at all points, the regret of the point with the least upper bound is at most
    :math:`\kappa_t`.
    The paper compares it with the error with which the objective is measured; here that is the deviation of the noise
    that the model has learned. Give a threshold, in the units of the objective, if you know what difference matters.

    Args:
        threshold: Largest regret, at least 0, in the units of the objective; None for the deviation of the noise.

    Raises:
        InvalidValueError: ``threshold`` is below 0.

    Reference: [MakarovaEtAl2022] equation 5. We had public implementations.

    Examples:
        >>> rule = RegretBound(threshold=0.01)
        >>> print(rule.observe(Step(n_labelled=40, regret_bound=0.008, noise_deviation=0.002)))
        Stop at 40 labels: the bound on the regret, 0.008, is at most the threshold 0.01.
    """

    threshold: float | None = None

    requires: ClassVar[frozenset[str]] = frozenset({"regret_bound", "noise_deviation"})
    info: ClassVar[RuleInfo] = RuleInfo(family="optimisation", tasks=NUMBERS)

    def __post_init__(self) -> None:
        if self.threshold is not None:
            self.threshold = real(self.threshold, "threshold", "of at least 0, or None", lambda x: x >= 0.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the bound with the threshold, or with the deviation of the noise."""
        bound, noise = step.regret_bound, step.noise_deviation
        assert bound is not None  # both are required, so observe has checked
        assert noise is not None
        if self.threshold is None:
            return self.comparison_verdict(step, _OVER_NOISE, bound, noise)
        return self.comparison_verdict(step, _BOUND, bound, self.threshold)


def confidence_factor(size: int, evaluations: int, delta: float) -> float:
    r"""Return :math:`\beta_t = 2 \log(N t^2 \pi^2 / 6 \delta)`, whose root is the width of confidence bounds.

    A Gaussian deviates by more than :math:`\sqrt{\beta_t}` deviations with a probability of at most
    :math:`e^{-\beta_t / 2}`. The sum over :math:`N` points and all :math:`t` is :math:`\delta`, so the bounds hold at
    all of ``N`` points and all times with a probability of at least :math:`1 - \delta` if the model is right.

    Args:
        size: ``N``, at least 1. Implementations use the number of inputs of the objective, which is not a number of
            points.
        evaluations: ``t``; 0 counts as 1.
        delta: Above 0 and below 1.

    Raises:
        InvalidValueError: An argument is out of range.

    Reference: [SrinivasEtAl2010] Theorem 1.

    Examples:
        >>> round(confidence_factor(2, 30, 0.1), 3)
        20.592
    """
    points, t = whole(size, "size", least=1), whole(evaluations, "evaluations", least=0)
    share = real(delta, "delta", "between 0 and 1", lambda x: 0.0 < x < 1.0)
    return 2.0 * math.log(points * max(t, 1) ** 2 * math.pi**2 / (6.0 * share))


def expected_positive_part(mean: float, deviation: float) -> float:
    r"""Return :math:`E[Z_+]` of a Gaussian :math:`Z`: :math:`v \phi(g) + v g \Phi(g)` with :math:`g = m / v`.

    Args:
        mean: ``m``.
        deviation: ``v``, at least 0.

    Examples:
        >>> round(expected_positive_part(0.0, 1.0), 6), expected_positive_part(-1.0, 0.0)
        (0.398942, 0.0)
    """
    from scipy.special import erfcx, ndtr

    if deviation <= 0.0 or not math.isfinite(mean / deviation):
        return max(mean, 0.0)
    g = mean / deviation
    if g > 0.0:
        return float(mean * ndtr(g) + deviation * math.exp(-0.5 * g * g) / math.sqrt(2.0 * math.pi))
    # phi(g) + g Phi(g) = phi(g) {1 + g Phi(g) / phi(g)}; the ratio is a scaled complementary error function.
    ratio = math.sqrt(0.5 * math.pi) * float(erfcx(-g * math.sqrt(0.5)))
    return deviation * math.exp(-0.5 * g * g) / math.sqrt(2.0 * math.pi) * max(1.0 + g * ratio, 0.0)


def regret_facts(  # noqa: PLR0913 - the numbers of one evaluation
    mean: ArrayLike,
    covariance: ArrayLike,
    *,
    value: float,
    noise: float,
    lowest: tuple[float, float],
    beta: tuple[float, float],
) -> dict[str, Any]:
    r"""Return the fields that the rules of Bayesian optimisation require, for one evaluation of a minimised objective.

    They are computed from the posterior before the evaluation and from the observed value. With
    :math:`c = \mathrm{Cov}_{t-1}[f(x), f(x_t)]` and the residual :math:`e`, the posterior after it is

    .. math:: \mu_t = \mu_{t-1} + \frac{c\, e}{s_{t-1}(x_t)^2 + \sigma^2}, \qquad
              S_t = S_{t-1} - \frac{c\, c'}{s_{t-1}(x_t)^2 + \sigma^2}.

    Args:
        mean: :math:`\mu_{t-1}` at the evaluated points, ``n``; the last one is the new point :math:`x_t`.
        covariance: Posterior covariance before the evaluation, of the noise-free values, ``n x n``.
        value: The value that was observed at the new point.
        noise: Variance :math:`\sigma^2` of the noise, above 0.
        lowest: Least value of :math:`\mu - \sqrt\beta s` over the whole space, before and after the evaluation.
        beta: :math:`\beta` before and after, at least 0.

    Returns:
        The fields ``regret_change``, ``regret_change_noise``, ``regret_bound``, ``noise_deviation``, ``kl_new_old`` and
        ``kl_old_new`` of a :class:`suffice.Step`.

    Raises:
        InvalidValueError: Shapes that do not fit, fewer than two points, or an argument out of range.

    Reference: [IshibashiEtAl2023], [MakarovaEtAl2022].

    Examples:
        >>> facts = regret_facts([0.0, 0.5], [[0.01, 0.0], [0.0, 1.0]], value=0.4, noise=0.01,
        ...                      lowest=(-1.5, -0.2), beta=(4.0, 4.0))
        >>> Step(n_labelled=2, **{name: facts[name] for name in ("regret_change", "regret_bound")})
        Step(n_labelled=2, regret_change=1.62054, regret_bound=0.4)
    """
    mu, before = frozen(mean, "mean", ndim=1), frozen(covariance, "covariance", ndim=2)
    if before.shape != (len(mu), len(mu)) or len(mu) < 2:
        raise InvalidValueError(
            f"mean has shape {mu.shape} and covariance {before.shape}; for n evaluated points, at least 2, they must "
            "be (n,) and (n, n)"
        )
    before = symmetric(before, "covariance", tolerance=1e-5)
    variance = real(noise, "noise", "above 0: it is a variance", lambda x: x > 0.0)
    residual = real(value, "value") - float(mu[-1])
    roots = [math.sqrt(real(each, "beta", "of at least 0", lambda x: x >= 0.0)) for each in beta]
    floors = [real(each, "lowest") for each in lowest]
    # Latent variances are differences of larger numbers, so rounding may take them slightly below 0.
    latent, own = np.maximum(np.diag(before), 0.0), max(float(before[-1, -1]), 0.0)
    total = own + variance
    gain = before[:, -1] / total
    after, mean_after = before - np.outer(gain, before[:, -1]), mu + gain * residual
    latent_after = np.maximum(np.diag(after), 0.0)
    old, new = int(np.argmin(mu[:-1])), int(np.argmin(mean_after))
    moved = max(latent_after[new] + latent_after[old] - 2.0 * float(after[new, old]), 0.0) if new != old else 0.0
    step = expected_positive_part(float(mean_after[new] - mean_after[old]), math.sqrt(moved))
    bound_before = _gap(mu[:-1], latent[:-1], roots[0], floors[0])
    pair = one_observation(own, residual, variance)
    change = abs(float(mean_after[new]) - float(mu[old])) + step + bound_before * math.sqrt(0.5 * float(pair.new_old))
    spread = math.sqrt(latent[new]) + 0.5 * bound_before
    return {
        "regret_change": change,
        "regret_change_noise": math.sqrt(variance) * math.sqrt(own) * spread / total,
        "regret_bound": _gap(mean_after, latent_after, roots[1], floors[1]),
        "noise_deviation": math.sqrt(variance),
        "kl_new_old": float(pair.new_old),
        "kl_old_new": float(pair.old_new),
    }


def _gap(mean: Floats, latent: Floats, root: float, lowest: float) -> float:
    """Least upper bound over the evaluated points less the least lower bound over all, at least 0."""
    width = root * np.sqrt(latent)
    return max(float((mean + width).min()) - min(lowest, float((mean - width).min())), 0.0)
