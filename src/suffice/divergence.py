"""KL divergence between two posteriors, with a registry of types, and the closed forms for one more label.

:func:`kl` dispatches on the types of both arguments; other types can be registered. For Gaussian noise, both
divergences of one more label or a batch have a closed form, without computing a posterior. It is the same for Gaussian
processes and for linear models: the divergence depends only on the latent covariance, residuals and noise of the new
points.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from suffice.bounds import ROUNDING, nonnegative
from suffice.errors import InfiniteDivergenceError, InvalidTypeError, InvalidValueError
from suffice.numerics import Floats, bernoulli_kl, cholesky, log1p_gap, solve_lower, symmetric, variance_gap
from suffice.posteriors import (
    Draws,
    DropoutLayer,
    DropoutPosterior,
    Gaussian,
    GaussianProcessPosterior,
    IndependentPosteriors,
    as_posterior,
    caveat,
)
from suffice.posteriors.distributions import frozen

__all__ = [
    "Divergence",
    "KLPair",
    "batch",
    "dropout_contributions",
    "history",
    "kl",
    "known_pairs",
    "one_observation",
    "register_kl",
]

Kind = Literal["exact", "bound", "estimate"]
Function = TypeVar("Function", bound=Callable[[Any, Any], float])


class Divergence(float):
    """A float that is a KL divergence, with attributes for the way in which it was computed.

    Attributes:
        kind: ``"exact"``, ``"bound"`` (never below the true value) or ``"estimate"`` (above or below it).
        how: The method, in words.
        terms: Size of the terms from which it was summed; a negative value down to ``-1e-9 * terms`` is rounding.

    Examples:
        >>> d = Divergence(0.25, kind="estimate", how="a Gaussian fit to 400 and 400 draws")
        >>> d + 1, d.kind
        (1.25, 'estimate')
    """

    kind: Kind
    how: str
    terms: float

    def __new__(cls, value: float, *, kind: Kind, how: str, terms: float = 1.0) -> "Divergence":
        """Create the float and set the attributes."""
        self = super().__new__(cls, value)
        self.kind, self.how, self.terms = _checked_kind(kind), how, terms
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, Any]]:
        return (float(self),), {"kind": self.kind, "how": self.how, "terms": self.terms}

    def __add__(self, other: float) -> float:
        """Return a sum; with another divergence, its kind is the less certain of the two; otherwise it is a float."""
        if not isinstance(other, Divergence):
            return float(self) + other
        kind = max(self.kind, other.kind, key=_KINDS.index)
        how = "; ".join(dict.fromkeys((self.how, other.how)))
        return Divergence(float(self) + float(other), kind=kind, how=how, terms=self.terms + other.terms)

    def __radd__(self, other: float) -> float:
        # sum() starts from 0, which must not discard the attributes.
        return self if other == 0 else other + float(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Divergence":
        return self


_KINDS: Final = ("exact", "bound", "estimate")
_REGISTRY: Final[dict[tuple[type, type], tuple[Callable[[Any, Any], float], Kind]]] = {}


def register_kl(p_type: type, q_type: type, *, kind: Kind = "exact") -> Callable[[Function], Function]:
    """Register a function as the KL divergence of a pair of types, subclasses included.

    Args:
        p_type: Type of the first argument.
        q_type: Type of the second.
        kind: Kind of the returned value: exact, an upper bound, or an estimate.

    Returns:
        A decorator for ``function(p, q) -> float``. The function may return a :class:`Divergence` with its own
        attributes.

    Examples:
        >>> import math
        >>> class Coin:
        ...     def __init__(self, p):
        ...         self.p = p
        >>> @register_kl(Coin, Coin)
        ... def coin_kl(p, q):
        ...     return p.p * math.log(p.p / q.p) + (1 - p.p) * math.log((1 - p.p) / (1 - q.p))
        >>> round(kl(Coin(0.5), Coin(0.25)), 6)
        0.143841
    """
    for name, given in (("p_type", p_type), ("q_type", q_type)):
        if not isinstance(given, type):
            raise InvalidTypeError(f"{name} must be a class, not {given!r}")
    _checked_kind(kind)

    def register(function: Function) -> Function:
        _REGISTRY[p_type, q_type] = (function, kind)
        return function

    return register


def _checked_kind(kind: Kind) -> Kind:
    if kind not in _KINDS:
        raise InvalidValueError(f"kind must be one of {', '.join(map(repr, _KINDS))}, not {kind!r}")
    return kind


def known_pairs() -> list[str]:
    """Return the pairs of types for which :func:`kl` has a function, as ``"P || Q"``.

    Examples:
        >>> "Gaussian || Gaussian" in known_pairs()
        True
    """
    return sorted(f"{p.__name__} || {q.__name__}" for p, q in _REGISTRY)


def kl(p: object, q: object) -> Divergence:
    r"""KL divergence ``KL[p||q]`` of two posteriors.

    .. math:: \mathrm{KL}[p \| q] = E_{\theta \sim p} \log \frac{p(\theta)}{q(\theta)}

    Args:
        p: A posterior of :mod:`suffice.posteriors`, of a registered type, or of a type that
            :func:`suffice.posteriors.as_posterior` converts.
        q: The other posterior.

    Returns:
        A non-negative float, with attributes for the way in which it was computed.

    Raises:
        InvalidTypeError: No function is registered for the pair; the message lists those that are.
        InvalidValueError: The two cannot be compared, or the result is not a number.
        InfiniteDivergenceError: The result is infinite.

    Examples:
        >>> from suffice.posteriors import Gaussian
        >>> kl(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0))
        0.5
    """
    found, doubts = _find(type(p), type(q)), [doubt for doubt in (caveat(p), caveat(q)) if doubt]
    if found is None:
        p, q = as_posterior(p), as_posterior(q)
        found = _find(type(p), type(q)) or _torch_pair(p, q)
    if found is None:
        raise InvalidTypeError(
            f"no KL divergence is known for {type(p).__name__} || {type(q).__name__}. Known: "
            f"{'; '.join(known_pairs())}; two torch.distributions; fitted scikit-learn BayesianRidge and "
            "GaussianProcessRegressor; an ExactGP of GPyTorch. For other fitted models give "
            "suffice.posteriors.fitted_posterior(model, X, y). "
            "Add yours with suffice.register_kl"
        )
    function, kind = found
    value, name = function(p, q), f"{type(p).__name__} || {type(q).__name__}"
    if not isinstance(value, Divergence):
        value = Divergence(_number(value, name), kind=kind, how=f"{kind}, {name}")
    kind, how = ("estimate", doubts[0]) if doubts else (value.kind, value.how)
    return Divergence(float(nonnegative(value, f"KL[{name}]", terms=value.terms)), kind=kind, how=how)


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidTypeError(f"the function registered for {name} must return one number, not {value!r}") from None


def _find(p_type: type, q_type: type) -> tuple[Callable[[Any, Any], float], Kind] | None:
    """Return the entry for the nearest pair of base classes; ties are decided by the first argument's distance."""
    pairs = [
        (i + j, i, (p_base, q_base))
        for i, p_base in enumerate(p_type.__mro__)
        for j, q_base in enumerate(q_type.__mro__)
        if (p_base, q_base) in _REGISTRY
    ]
    return _REGISTRY[min(pairs, key=lambda entry: entry[:2])[2]] if pairs else None


def _torch_pair(p: object, q: object) -> tuple[Callable[[Any, Any], float], Kind] | None:
    """Return torch's divergence for its distributions that are not Gaussian, summed over a batch."""
    if not all(type(d).__module__.startswith("torch.distributions") for d in (p, q)):
        return None

    def torch_kl(first: Any, second: Any) -> float:
        from torch.distributions import kl_divergence

        try:
            value = float(kl_divergence(first, second).sum())
        except NotImplementedError:
            names = f"{type(first).__name__} || {type(second).__name__}"
            raise InvalidTypeError(f"torch.distributions knows no KL divergence for {names}") from None
        return Divergence(value, kind="exact", how="exact, by torch.distributions.kl_divergence")

    return torch_kl, "exact"


@register_kl(Gaussian, Gaussian)
def gaussian_kl(p: Gaussian, q: Gaussian) -> float:
    r"""Return the KL divergence of two Gaussians, computed from their factors.

    With a triangular ``T`` such that :math:`\|T\|_F^2 = \mathrm{tr}(S_q^{-1} S_p)` and
    :math:`\prod T_{ii}^2 = \det(S_q^{-1} S_p)`, for example :math:`T = L_q^{-1} L_p`:

    .. math:: 2\,\mathrm{KL}[p\|q] = \sum_i \{T_{ii}^2 - 1 - \log T_{ii}^2\} + \sum_{i \ne j} T_{ij}^2
              + \|S_q^{-1/2}(m_p - m_q)\|^2

    Every term is non-negative, so nothing cancels. ``T - I`` is computed from the difference of the factors, so for
    nearly equal posteriors the error is only that of the rounded factors, and for equal ones the result is exactly 0.

    Reference: [IshibashiHino2021] section 5.2, the Gaussian KL (whose ``log`` of a matrix is a log determinant).
    """
    if p.dimension != q.dimension:
        raise InvalidValueError(f"the two Gaussians have {p.dimension} and {q.dimension} parameters; they must match")
    # A divergence too large for a float becomes infinite; kl() then raises an error.
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
    """Return the factor of ``one`` as a matrix; a diagonal one is a factor of the same kind of matrix as ``other``."""
    if one.factor.ndim == 2:
        return one.factor, one.of
    return (np.diag(one.factor), "covariance") if other.of == "covariance" else (np.diag(1.0 / one.factor), "precision")


def _half_sum(diagonal: Floats, off_diagonal: Floats, white: Floats) -> float:
    return 0.5 * float(diagonal.sum() + (off_diagonal**2).sum() + (white**2).sum())


@register_kl(GaussianProcessPosterior, GaussianProcessPosterior)
def process_kl(p: GaussianProcessPosterior, q: GaussianProcessPosterior) -> float:
    """Return the KL divergence of two posteriors with the same Gaussian process prior.

    The posterior after the common observations (set ``C``) is their common prior. Given ``C``, the values at the other
    observed points are ``m + F z`` with ``z`` standard normal. Given the own observations of one posterior, ``z`` is
    Gaussian with precision ``I + F' N^-1 F``. The divergence between these two Gaussians is that of the processes.

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
    """Return the distinct points, in the order of their first occurrence, and the position of each point among them."""
    places: dict[bytes, int] = {}
    where = np.array([places.setdefault(row.tobytes(), len(places)) for row in points], dtype=np.intp)
    return points[np.unique(where, return_index=True)[1]], where


def _own_rows(p: GaussianProcessPosterior, q: GaussianProcessPosterior) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Mark the observations of ``p`` that are not in ``q``; each observation of ``q`` matches one of ``p``."""
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
    """Return the KL divergence of independent posteriors: the sum over their parts."""
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

    The paper's general form omits the variance term of the dropped component and halves the Bernoulli term, so it can
    be below the true divergence. The form here follows from the paper's proof.

    Args:
        p: First network.
        q: Second network, with layers of the same shapes.

    Returns:
        One non-negative number per layer.

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


class KLPair(NamedTuple):
    """``KL[new||old]`` and ``KL[old||new]``, for the posteriors after (new) and before (old) a label.

    Examples:
        >>> import numpy as np
        >>> pair = KLPair(new_old=np.array([0.3, 0.1]), old_new=np.array([0.2, 0.1]))
        >>> pair.new_old + pair.old_new
        array([0.5, 0.2])
    """

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
    # A latent variance is a difference of larger numbers, so it may be slightly below 0 by rounding.
    if (s < -ROUNDING * variance).any():
        raise InvalidValueError(f"latent_variance is a variance, at least 0; the smallest is {float(s.min())!r}")
    with np.errstate(over="ignore", invalid="ignore"):
        return in_units_of_noise(np.maximum(s, 0.0) / variance, e / variance * e)


def in_units_of_noise(u: Floats, squared: Floats) -> KLPair:
    """Return both divergences from the latent variance and the squared residual, in units of the noise variance.

    Args:
        u: Latent variances over the noise variance, none below 0.
        squared: Squared residuals over the noise variance.

    Returns:
        As :func:`one_observation`; this function is its formula without the checks.
    """
    if not (np.isfinite(u).all() and np.isfinite(squared).all()):
        raise _overflows()
    shrink = u / (1.0 + u)
    # log(1+u) - u/(1+u) = x - log(1+x) with x = -u/(1+u), which avoids a subtraction if u is small.
    small = log1p_gap(-np.minimum(shrink, 0.5))
    old_new = 0.5 * (log1p_gap(u) + shrink * squared)
    new_old = 0.5 * (np.where(u < 1.0, small, np.log1p(u) - shrink) + shrink / (1.0 + u) * squared)
    if not (np.isfinite(new_old).all() and np.isfinite(old_new).all()):
        raise _overflows()
    return KLPair(new_old, old_new)


def _overflows() -> InfiniteDivergenceError:
    return InfiniteDivergenceError("latent_variance or residual is so large beside noise that the divergence overflows")


def batch(covariance: ArrayLike, residual: ArrayLike, noise: ArrayLike) -> KLPair:
    r"""Return both divergences for a batch of ``q`` labels.

    Scaled by the noise, the latent covariance is :math:`\sum_i u_i v_i v_i'`. Along each :math:`v_i` the batch is one
    observation of variance :math:`u_i` and unit noise, so the divergences are sums of :func:`one_observation`.

    Args:
        covariance: Latent covariance ``S`` of the ``q`` points before the labels, ``q x q``.
        residual: Labels minus predicted means, ``q``.
        noise: Noise variance: one number, or one per label.

    Returns:
        :class:`KLPair` of 0-dimensional arrays.

    Raises:
        InvalidValueError: Shapes do not match, or the covariance has an eigenvalue that is negative beyond rounding.

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
    return KLPair(pair.new_old.sum(axis=0), pair.old_new.sum(axis=0))


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
    # Two formulas for the same number. The one for the smaller of prior variance and noise cancels less.
    latent = np.where(prior < variance, prior - (np.tril(lower, -1) ** 2).sum(axis=1), pivots**2 - variance)
    # For a point that is determined by the earlier ones, it may be below 0 by rounding.
    return one_observation(np.maximum(latent, 0.0), solve_lower(lower, targets) * pivots, variance)


def _require_noise(variance: Floats) -> None:
    if not (variance > 0.0).all():
        raise InvalidValueError(f"noise is a variance, above 0; the smallest is {float(variance.min())!r}")
