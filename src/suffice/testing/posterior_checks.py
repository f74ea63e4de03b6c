"""Checks that every posterior must pass."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from suffice.criteria import Step
from suffice.divergence import Divergence, kl
from suffice.testing.failures import require

PosteriorCheck = Callable[[Any, Any], None]


def check_posterior(p: object, q: object) -> None:
    """Run every check of :data:`POSTERIOR_CHECKS` on two different posteriors of a type.

    Where they have ``sample(n, rng)`` and ``log_density(theta)``, the divergence is compared with a Monte-Carlo one.

    Raises:
        AssertionError: A check failed.

    Examples:
        >>> from suffice.posteriors import Gaussian
        >>> check_posterior(Gaussian([0.0, 1.0], diagonal=[1.0, 2.0]), Gaussian([0.5, 1.0], diagonal=[1.5, 1.0]))
    """
    for check in POSTERIOR_CHECKS:
        check(p, q)


def divergence_is_finite_and_nonnegative(p: object, q: object) -> None:
    """Both directions are finite numbers of at least 0, and above 0 for two different posteriors."""
    for first, second in ((p, q), (q, p)):
        value = _kl(first, second)
        require(math.isfinite(value) and value >= 0.0, f"kl({first!r}, {second!r}) is {float(value)}")
        require(value > 0.0, "kl is 0 for two posteriors that were said to differ")


def divergence_to_itself_is_zero(p: object, q: object) -> None:
    """A posterior does not diverge from itself, nor from a copy of itself."""
    for posterior in (p, q):
        for twin in (posterior, copy.deepcopy(posterior)):
            value = _kl(posterior, twin)
            require(value <= 1e-12, f"kl of {posterior!r} with itself is {float(value)}, not 0")


def divergence_is_repeatable(p: object, q: object) -> None:
    """Asking twice, or after pickling, gives the same number: a posterior is a value that asking does not change."""
    value = _kl(p, q)
    require(_kl(p, q) == value, "asked twice, kl gives two numbers")
    try:
        p_again, q_again = pickle.loads(pickle.dumps((p, q)))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(f"{type(p).__name__} cannot be pickled: {error}") from error
    require(_kl(p_again, q_again) == value, "kl changes when the posteriors are pickled")


def divergence_feeds_a_step(p: object, q: object) -> None:
    """``Step.between(old, new)`` holds both directions, the right way round."""
    step = Step.between(p, q, n_labelled=2)
    require(step.kl_old_new == _kl(p, q), "kl_old_new is not kl(old, new)")
    require(step.kl_new_old == _kl(q, p), "kl_new_old is not kl(new, old)")


def divergence_is_not_below_monte_carlo(p: Any, q: Any) -> None:
    """Where there is a density, the divergence is not below its Monte-Carlo estimate, and equals it if said exact."""
    if not all(hasattr(side, name) for side in (p, q) for name in ("sample", "log_density")):
        return
    value = _kl(p, q)
    theta = p.sample(20_000, np.random.default_rng(0))
    ratio = np.asarray(p.log_density(theta)) - np.asarray(q.log_density(theta))
    estimate, error = float(ratio.mean()), float(ratio.std() / np.sqrt(len(ratio)))
    margin = 6.0 * error + 1e-9
    if value.kind != "estimate":
        require(value >= estimate - margin, f"kl is {float(value)}, below the Monte-Carlo {estimate} +- {error}")
    if value.kind == "exact":
        require(value <= estimate + margin, f"kl is {float(value)}, but Monte Carlo gives {estimate} +- {error}")


#: Every check for posteriors: functions of two different posteriors.
POSTERIOR_CHECKS: Final[tuple[PosteriorCheck, ...]] = (
    divergence_is_finite_and_nonnegative,
    divergence_to_itself_is_zero,
    divergence_is_repeatable,
    divergence_feeds_a_step,
    divergence_is_not_below_monte_carlo,
)


def _kl(p: object, q: object) -> Divergence:
    try:
        return kl(p, q)
    except Exception as error:
        raise AssertionError(f"kl raised {error!r}") from error
