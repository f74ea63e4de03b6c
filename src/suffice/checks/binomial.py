"""Exact limits of a probability from a number of independent trials."""

from suffice.arguments import real, whole
from suffice.errors import InvalidValueError


def binomial_limits(count: int, trials: int, alpha: float = 0.05) -> tuple[float, float]:
    r"""Return the Clopper-Pearson limits of a probability.

    .. math::

        p_l: P[\mathrm{Bin}(n, p_l) \ge k] = \alpha / 2, \qquad p_u: P[\mathrm{Bin}(n, p_u) \le k] = \alpha / 2

    Each limit fails with probability at most :math:`\alpha / 2`, whatever the probability is.

    Args:
        count: ``k``, the number of trials in which it happened.
        trials: ``n``, the number of independent trials; at least 1.
        alpha: Probability with which the limits may fail, above 0 and below 1.

    Raises:
        InvalidValueError: A number cannot be used.

    Reference: [ClopperPearson1934].

    Examples:
        >>> [round(limit, 4) for limit in binomial_limits(18, 20)]
        [0.683, 0.9877]
    """
    from scipy.special import betaincinv  # takes as long to import as the rest, and is not always needed

    n, k = whole(trials, "trials", least=1), whole(count, "count", least=0)
    if k > n:
        raise InvalidValueError(f"count must be at most the number of trials, {n}, not {k}")
    tail = real(alpha, "alpha", "above 0 and below 1", lambda x: 0.0 < x < 1.0) / 2.0
    low = 0.0 if k == 0 else float(betaincinv(k, n - k + 1, tail))
    high = 1.0 if k == n else float(betaincinv(k + 1, n - k, 1.0 - tail))
    return low, high
