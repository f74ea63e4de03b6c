r"""Both KL divergences of one more label (or a batch) in closed form, for Gaussian noise: no posterior is formed.

They hold for Gaussian processes and for linear models alike: the divergence depends on the new points' latent
covariance, residuals and noise alone.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from suffice.bounds import ROUNDING
from suffice.errors import InfiniteDivergenceError, InvalidValueError
from suffice.numerics.cholesky import cholesky, solve_lower, symmetric
from suffice.numerics.special_functions import Floats, log1p_gap
from suffice.posteriors.distributions import frozen


class KLPair(NamedTuple):
    """``KL[new||old]`` and ``KL[old||new]``, for the posteriors after (new) and before (old) a label."""

    new_old: Floats
    old_new: Floats


def one_observation(latent_variance: ArrayLike, residual: ArrayLike, noise: ArrayLike) -> KLPair:
    r"""Return both divergences for one label, elementwise over arrays of labels.

    With :math:`u = s / \sigma^2` for latent variance :math:`s` and noise variance :math:`\sigma^2`, residual :math:`e`:

    .. math::
        2\,\mathrm{KL}[old\|new] &= u - \log(1 + u) + \frac{u}{1 + u}\frac{e^2}{\sigma^2} \\
        2\,\mathrm{KL}[new\|old] &= \log(1 + u) - \frac{u}{1 + u} + \frac{u}{(1 + u)^2}\frac{e^2}{\sigma^2}

    Args:
        latent_variance: Variance of the noise-free value at the new point, before its label.
        residual: Label minus predicted mean, before the label.
        noise: Variance of the observation noise.

    Returns:
        :class:`KLPair` of arrays (0-dimensional for scalars).

    Raises:
        InvalidValueError: A negative variance, a noise that is not above 0, or a NaN.

    Reference: [IshibashiHino2021] appendix B, Lemmas 4 and 5.

    Examples:
        >>> pair = one_observation(latent_variance=0.5, residual=1.0, noise=0.25)
        >>> pair.new_old.round(6), pair.old_new.round(6)
        (np.float64(0.660417), np.float64(1.784027))
    """
    s, e, variance = (
        frozen(value, name)
        for value, name in ((latent_variance, "latent_variance"), (residual, "residual"), (noise, "noise"))
    )
    _require_noise(variance)
    # A latent variance is a difference of larger numbers, so rounding may take it slightly below 0.
    if (s < -ROUNDING * variance).any():
        raise InvalidValueError(f"latent_variance is a variance, at least 0; the smallest is {float(s.min())!r}")
    with np.errstate(over="ignore", invalid="ignore"):
        return in_units_of_noise(np.maximum(s, 0.0) / variance, e / variance * e)


def in_units_of_noise(u: Floats, squared: Floats) -> KLPair:
    """Both divergences from the latent variance and the squared residual, in units of the noise variance.

    Args:
        u: Latent variances over the noise variance, none below 0.
        squared: Squared residuals over the noise variance.

    Returns:
        As :func:`one_observation`, of which this is the formula without the checks.
    """
    if not (np.isfinite(u).all() and np.isfinite(squared).all()):
        raise _overflows()
    shrink = u / (1.0 + u)
    # log(1+u) - u/(1+u) = x - log(1+x) with x = -u/(1+u): where u is small nothing may be subtracted.
    small = log1p_gap(-np.minimum(shrink, 0.5))
    old_new = 0.5 * (log1p_gap(u) + shrink * squared)
    new_old = 0.5 * (np.where(u < 1.0, small, np.log1p(u) - shrink) + shrink / (1.0 + u) * squared)
    if not (np.isfinite(new_old).all() and np.isfinite(old_new).all()):
        raise _overflows()
    return KLPair(new_old, old_new)


def _overflows() -> InfiniteDivergenceError:
    return InfiniteDivergenceError("latent_variance or residual is so large beside noise that the divergence overflows")


def batch(covariance: ArrayLike, residual: ArrayLike, noise: ArrayLike) -> KLPair:
    r"""Return both divergences for ``q`` labels that arrive together.

    Scaled by the noise, the latent covariance is :math:`\sum_i u_i v_i v_i'`. Along each :math:`v_i` the batch is one
    observation of variance :math:`u_i` and unit noise, so the divergences are sums of :func:`one_observation`.

    Args:
        covariance: Latent covariance ``S`` of the ``q`` points before the labels, ``q x q``.
        residual: Labels minus predicted means, ``q``.
        noise: Noise variance: one number, or one per label.

    Returns:
        :class:`KLPair` of 0-dimensional arrays.

    Raises:
        InvalidValueError: Shapes that do not fit, or a covariance with a truly negative eigenvalue.

    Reference: [IshibashiHino2021] appendix B, for several points at once.

    Examples:
        >>> pair = batch([[0.5, 0.0], [0.0, 0.5]], residual=[1.0, 1.0], noise=0.25)
        >>> pair.new_old.round(6), pair.old_new.round(6)
        (np.float64(1.320835), np.float64(3.568054))
    """
    S, e = frozen(covariance, "covariance", ndim=2), frozen(residual, "residual", ndim=1)
    variance = frozen(noise, "noise")
    _require_noise(variance)
    if S.shape != (len(e), len(e)) or variance.shape not in {(), e.shape}:
        raise InvalidValueError(
            f"covariance has shape {S.shape}, residual {e.shape} and noise {variance.shape}; for q labels they must be "
            "(q, q), (q,) and one number or (q,)"
        )
    scale = 1.0 / np.sqrt(np.broadcast_to(variance, e.shape))
    u, vectors = np.linalg.eigh(scale[:, None] * symmetric(S, "covariance") * scale)
    if len(u) and u[0] < -ROUNDING * max(1.0, u[-1]):
        raise InvalidValueError(f"covariance has a negative eigenvalue, {u[0]:.3g} relative to the noise")
    pair = one_observation(np.maximum(u, 0.0), vectors.T @ (scale * e), 1.0)
    return KLPair(pair.new_old.sum(), pair.old_new.sum())


def history(covariance: ArrayLike, y: ArrayLike, noise: ArrayLike) -> KLPair:
    r"""Return both divergences of every label of a whole history, from one factorisation.

    With ``L`` the Cholesky factor of ``K + noise`` over the points in labelling order, the latent variance before label
    ``i`` is :math:`L_{ii}^2 - \sigma_i^2` and its residual :math:`(L^{-1} y)_i L_{ii}`. So after hyper-parameters
    change, the whole past is recomputed under one prior by one factorisation.

    Args:
        covariance: Prior covariance ``K`` of the latent values, ``n x n``, in labelling order.
        y: Labels less the prior mean, ``n``.
        noise: Noise variance: one number, or one per label.

    Returns:
        :class:`KLPair` of arrays of length ``n``: entry ``i`` compares ``i + 1`` labels with ``i``.

    Raises:
        InvalidValueError: Shapes that do not fit.
        NotPositiveDefiniteError: ``K + noise`` is not positive definite.

    Reference: [IshibashiHino2021] appendix B, Lemmas 4 and 5, applied to every prefix.

    Examples:
        >>> history([[1.0, 0.5], [0.5, 1.0]], y=[1.0, 0.0], noise=0.1).old_new.round(4)
        array([8.3465, 3.6951])
    """
    K, targets = frozen(covariance, "covariance", ndim=2), frozen(y, "y", ndim=1)
    variance = frozen(noise, "noise")
    if K.shape != (len(targets), len(targets)) or variance.shape not in {(), targets.shape}:
        raise InvalidValueError(f"covariance has shape {K.shape}, y {targets.shape} and noise {variance.shape}")
    _require_noise(variance)
    if not len(targets):
        return KLPair(np.zeros(0), np.zeros(0))
    noisy = symmetric(K, "covariance") + np.diag(np.broadcast_to(variance, targets.shape))
    lower = cholesky(noisy, "covariance plus noise")
    pivots, prior = np.diag(lower), np.diag(K)
    # The same number by two roads: less of it cancels on the side of the smaller of prior variance and noise.
    latent = np.where(prior < variance, prior - (np.tril(lower, -1) ** 2).sum(axis=1), pivots**2 - variance)
    # For a point that the earlier ones determine, rounding may take it below 0.
    return one_observation(np.maximum(latent, 0.0), solve_lower(lower, targets) * pivots, variance)


def _require_noise(variance: Floats) -> None:
    if not (variance > 0.0).all():
        raise InvalidValueError(f"noise is a variance, above 0; the smallest is {float(variance.min())!r}")
