"""The divergences of the posteriors that suffice ships."""

from collections import Counter

import numpy as np

from suffice.divergence.registry import Divergence, kl, register_kl
from suffice.errors import InfiniteDivergenceError, InvalidValueError
from suffice.numerics.cholesky import solve_lower
from suffice.numerics.special_functions import Floats, bernoulli_kl, variance_gap
from suffice.posteriors import (
    Draws,
    DropoutLayer,
    DropoutPosterior,
    Gaussian,
    GaussianProcessPosterior,
    IndependentPosteriors,
)


@register_kl(Gaussian, Gaussian)
def gaussian_kl(p: Gaussian, q: Gaussian) -> float:
    r"""KL of two Gaussians by their factors.

    With a triangular ``T`` such that :math:`\|T\|_F^2 = \mathrm{tr}(S_q^{-1} S_p)` and
    :math:`\prod T_{ii}^2 = \det(S_q^{-1} S_p)`, for example :math:`T = L_q^{-1} L_p`:

    .. math:: 2\,\mathrm{KL}[p\|q] = \sum_i \{T_{ii}^2 - 1 - \log T_{ii}^2\} + \sum_{i \ne j} T_{ij}^2
              + \|S_q^{-1/2}(m_p - m_q)\|^2

    Every term is non-negative, so nothing cancels; and ``T - I`` is formed from the difference of the factors, so
    nearly equal posteriors lose no more digits than their factors were rounded by, and equal ones give exactly 0.

    Reference: [IshibashiHino2021] section 5.2, the Gaussian KL (whose ``log`` of a matrix is a log determinant).
    """
    if p.dimension != q.dimension:
        raise InvalidValueError(f"the two Gaussians have {p.dimension} and {q.dimension} parameters; they must match")
    # A divergence too large for a float comes out infinite, which kl() reports.
    with np.errstate(over="ignore"):
        return _gaussian_kl(p, q)


def _gaussian_kl(p: Gaussian, q: Gaussian) -> float:
    shift = p.mean - q.mean
    # T_ii^2 - 1 - log T_ii^2 is the gap of the ratio of two diagonals.
    if p.factor.ndim == 1 and q.factor.ndim == 1:
        return _half_sum(variance_gap(p.factor, q.factor), np.zeros(1), shift / q.factor)
    first, first_of = _matrix_factor(p, q)
    second, second_of = _matrix_factor(q, p)
    white = second.T @ shift if second_of == "precision" else solve_lower(second, shift)
    if first_of == second_of:
        low, high = (second, first) if first_of == "covariance" else (first, second)
        # T - I = low^-1 (high - low), with low, high = L_q, L_p for covariances and R_p, R_q for precisions.
        excess = solve_lower(low, high - low)
        return _half_sum(variance_gap(np.diag(high), np.diag(low)), np.tril(excess, -1), white)
    # One covariance factor L, one precision factor R: R'L = Q T, and its inverse for the other order.
    product = second.T @ first if second_of == "precision" else first.T @ second
    triangle: Floats = np.asarray(np.linalg.qr(product, mode="r"))
    if second_of == "covariance":
        triangle = solve_lower(triangle.T, np.eye(len(triangle))).T
    return _half_sum(variance_gap(np.abs(np.diag(triangle)), 1.0), np.triu(triangle, 1), white)


def _matrix_factor(one: Gaussian, other: Gaussian) -> tuple[Floats, str]:
    """Return the factor of ``one`` as a matrix; a diagonal one takes the side that ``other`` is on."""
    if one.factor.ndim == 2:
        return one.factor, one.of
    return (np.diag(one.factor), "covariance") if other.of == "covariance" else (np.diag(1.0 / one.factor), "precision")


def _half_sum(diagonal: Floats, off_diagonal: Floats, white: Floats) -> float:
    return 0.5 * float(diagonal.sum() + (off_diagonal**2).sum() + (white**2).sum())


@register_kl(GaussianProcessPosterior, GaussianProcessPosterior)
def process_kl(p: GaussianProcessPosterior, q: GaussianProcessPosterior) -> float:
    """KL of two posteriors of one Gaussian process prior.

    What both have observed (set ``C``) is their common prior. Given ``C``, the values at the other observed points are
    ``m + F z`` with ``z`` standard normal; each side's own observations make ``z`` Gaussian with precision
    ``I + F' N^-1 F``, and the divergence between those two is that of the processes.

    Reference: [IshibashiHino2021] appendix B, Lemma 3.
    """
    if p.X.shape[1] != q.X.shape[1]:
        raise InvalidValueError(
            f"the two Gaussian processes have {p.X.shape[1]} and {q.X.shape[1]} inputs; they must match"
        )
    if not p.shares_prior(q):
        raise InvalidValueError(
            "the two Gaussian processes have different priors (kernel or scaling of y), which makes their KL infinite. "
            "Fit both with the same fixed kernel: in scikit-learn, optimizer=None and normalize_y=False"
        )
    p_own, q_own = _own_rows(p, q), _own_rows(q, p)
    if not (p_own.any() or q_own.any()):
        return 0.0
    points, where = _distinct(np.concatenate([p.X[p_own], q.X[q_own]]))
    mean, covariance = p.keep(~p_own).latent(points)
    values, vectors = np.linalg.eigh(covariance)
    spread = vectors * np.sqrt(np.maximum(values, 0.0))
    here, there = np.split(where, [np.count_nonzero(p_own)])
    sides = [
        _given(spread[rows], posterior.y[own] - mean[rows], posterior.noise[own])
        for posterior, own, rows in ((p, p_own, here), (q, q_own, there))
    ]
    return gaussian_kl(*sides)


def _distinct(points: Floats) -> "tuple[Floats, np.ndarray[tuple[int], np.dtype[np.intp]]]":
    """The points without repetitions, in the order of their first occurrence, and the place of each among them."""
    places: dict[bytes, int] = {}
    where = np.array([places.setdefault(row.tobytes(), len(places)) for row in points], dtype=np.intp)
    return points[np.unique(where, return_index=True)[1]], where


def _own_rows(p: GaussianProcessPosterior, q: GaussianProcessPosterior) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Mark the observations of ``p`` that ``q`` has not, each observation of ``q`` matching one of ``p``."""
    theirs = Counter(row.tobytes() for row in np.column_stack([q.X, q.y, q.noise]))
    own = np.zeros(len(p.y), dtype=bool)
    for i, row in enumerate(np.column_stack([p.X, p.y, p.noise])):
        key = row.tobytes()
        own[i] = theirs[key] == 0
        theirs[key] -= not own[i]
    return own


def _given(design: Floats, residual: Floats, noise: Floats) -> Gaussian:
    """Posterior of ``z ~ N(0, I)`` after ``residual = design z + noise``."""
    weighted = design / np.sqrt(noise)[:, None]
    precision = np.eye(design.shape[1]) + weighted.T @ weighted
    return Gaussian(np.linalg.solve(precision, weighted.T @ (residual / np.sqrt(noise))), precision=precision)


@register_kl(IndependentPosteriors, IndependentPosteriors)
def independent_kl(p: IndependentPosteriors, q: IndependentPosteriors) -> float:
    """KL of independent posteriors: the sum over their parts."""
    first, second = tuple(p.parts), tuple(q.parts)
    if len(first) != len(second):
        raise InvalidValueError(f"the two posteriors have {len(first)} and {len(second)} parts; they must match")
    return sum(kl(one, other) for one, other in zip(first, second, strict=True))


@register_kl(DropoutPosterior, DropoutPosterior, kind="bound")
def dropout_kl(p: DropoutPosterior, q: DropoutPosterior) -> float:
    """Bound the KL of two dropout networks: the sum of :func:`dropout_contributions`.

    Reference: [IshibashiHino2021] appendix C, Lemma 6, corrected.
    """
    total = float(dropout_contributions(p, q).sum())
    return Divergence(total, kind="bound", how="upper bound by the chain rule over kept and dropped units, per layer")


def dropout_contributions(p: DropoutPosterior, q: DropoutPosterior) -> Floats:
    r"""Return each layer's share of the upper bound on ``KL[p||q]``.

    With :math:`H` input units of :math:`D` weights each, :math:`B` biases, :math:`s = \sigma_p^2 / \sigma_q^2`:

    .. math:: \frac{k_p \|M_p - M_q\|_F^2 + \|\nu_p - \nu_q\|^2}{2 \sigma_q^2} + H\,\mathrm{kl}(k_p, k_q)
              + \frac{H D + B}{2} \{s - \log s - 1\}

    The paper's general form lacks the variance term of the dropped component and halves the Bernoulli term, and so can
    fall below the true divergence; this is the form its own proof gives.

    Args:
        p: First network.
        q: Second network, with layers of the same shapes.

    Returns:
        One non-negative number a layer.

    Raises:
        InvalidValueError: The shapes differ.
        InfiniteDivergenceError: A unit that ``p`` may drop is always kept by ``q``.

    Reference: [IshibashiHino2021] appendix C, Lemma 6, corrected.

    Examples:
        >>> from suffice.posteriors import DropoutLayer, DropoutPosterior
        >>> old = DropoutPosterior([DropoutLayer([[0.0, 0.0]], keep=0.5), DropoutLayer([[1.0]])])
        >>> new = DropoutPosterior([DropoutLayer([[1.0, 0.0]], keep=0.5), DropoutLayer([[1.0]])])
        >>> dropout_contributions(new, old)
        array([0.25, 0.  ])
    """
    shapes = [[(a.weight.shape, a.bias.shape) for a in network.layers] for network in (p, q)]
    if shapes[0] != shapes[1]:
        raise InvalidValueError(f"the two networks have layers of different shapes: {shapes[0]} and {shapes[1]}")
    return np.array([_layer_bound(a, b, number) for number, (a, b) in enumerate(zip(p.layers, q.layers, strict=True))])


def _layer_bound(p: DropoutLayer, q: DropoutLayer, number: int) -> float:
    units = p.inputs * bernoulli_kl(p.keep, q.keep)
    if np.isinf(units):
        raise InfiniteDivergenceError(
            f"layer {number}: KL is infinite, because keep is {p.keep} in the first network and {q.keep} in the "
            "second; use the same keep in both"
        )
    weights, biases = (((a - b) / q.sigma) ** 2 for a, b in ((p.weight, q.weight), (p.bias, q.bias)))
    moved = p.keep * weights.sum() + biases.sum()
    spread = float(variance_gap(p.sigma, q.sigma))
    return float(0.5 * moved + units + 0.5 * (p.weight.size + p.bias.size) * spread)


@register_kl(Draws, Draws, kind="estimate")
def draws_kl(p: Draws, q: Draws) -> float:
    """Estimate the KL of two posteriors from draws, by the method that the user chose for both."""
    if p.method != q.method or (p.method == "knn" and p.k != q.k):
        raise InvalidValueError(f"both sets of draws must use one method; these use {p!r} and {q!r}")
    if p.samples.shape[1] != q.samples.shape[1]:
        raise InvalidValueError(f"the draws have {p.samples.shape[1]} and {q.samples.shape[1]} parameters")
    counts = f"{len(p.samples)} and {len(q.samples)} draws"
    if p.method == "gaussian":
        value, how = gaussian_kl(_fit(p), _fit(q)), f"estimate by Gaussian fits to {counts}"
    else:
        value, how = _neighbour_kl(p, q), f"estimate by nearest neighbours, k={p.k}, {counts}"
    if value < 0.0:
        how += f" (set to 0; the raw estimate was {value:.3g})"
    return Divergence(max(value, 0.0), kind="estimate", how=how)


def _fit(draws: Draws) -> Gaussian:
    return Gaussian(draws.samples.mean(axis=0), np.atleast_2d(np.cov(draws.samples, rowvar=False)))


def _neighbour_kl(p: Draws, q: Draws) -> float:
    r"""``J/n sum_i log(nu_k(i) / rho_k(i)) + log(m / (n - 1))``, distances to the k-th neighbour across and within.

    Reference: [WangKulkarniVerdu2009] equation 5.
    """
    from scipy.spatial import KDTree

    n, size = p.samples.shape
    m = len(q.samples)
    within = KDTree(p.samples).query(p.samples, k=[p.k + 1])[0][:, 0]
    across = KDTree(q.samples).query(p.samples, k=[p.k])[0][:, 0]
    if not (within.all() and across.all()):
        raise InvalidValueError(
            f"more than {p.k} draws are identical, so the nearest-neighbour estimate has no distance to work with; "
            "thin the chain, raise k, or use method='gaussian'"
        )
    return float(size * np.mean(np.log(across / within)) + np.log(m / (n - 1.0)))
