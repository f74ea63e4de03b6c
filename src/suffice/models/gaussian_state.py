"""Posteriors of models with Gaussian noise, updated label by label."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from scipy.linalg.blas import dgemm, dtrsm
from scipy.linalg.lapack import dpotrf, dpotrs

from suffice.divergence import KLPair, batch, in_units_of_noise
from suffice.errors import NotPositiveDefiniteError
from suffice.models.kernels import GaussianKernel
from suffice.numerics import Floats, solve_lower, solve_upper
from suffice.posteriors import Gaussian, GaussianProcessPosterior

#: Smallest noise variance of a process whose kernel has variance 1. Smaller values are lost in rounding.
LEAST_NOISE: Final = 1e-13
# Rows of a triangular factor that are solved for at a time.
_BLOCK: Final = 256


class Scaling(NamedTuple):
    """Standardisation of a target: ``(y - centre) / scale``."""

    centre: float = 0.0
    scale: float = 1.0

    def apply(self, y: Floats) -> Floats:
        """Standardised targets."""
        return np.asarray((y - self.centre) / self.scale)


@dataclass(frozen=True)
class Block:
    """New points under the posterior before their labels.

    Attributes:
        features: The points, ``k x D``.
        whitened: ``W``, ``r x k``; their latent covariance is ``k(F, F) - W'W`` for functions, ``W'W`` for weights.
        lower: ``M``, lower factor of latent covariance plus noise, ``k x k``.
        latent: Latent variance of each point given the labels of those before it in the block, ``k``.
    """

    features: Floats
    whitened: Floats
    lower: Floats
    latent: Floats

    def first(self, k: int) -> "Block":
        """Its first points."""
        return Block(self.features[:k], self.whitened[:, :k], self.lower[:k, :k], self.latent[:k])


@dataclass(frozen=True)
class Extension:
    """Effect of the labels of a block.

    Attributes:
        block: The points.
        white: ``M^-1 (y - mean)``: the whitened residuals, independent with unit variance under the model; ``k``.
        noise: Noise variance.
    """

    block: Block
    white: Floats
    noise: float

    def terms(self) -> tuple[Floats, Floats]:
        """Latent variance and squared residual of each label, taken in order, in units of the noise variance."""
        residual = self.white * np.diag(self.block.lower)
        # An overflow here raises an error when the divergences are computed.
        with np.errstate(over="ignore"):
            return self.block.latent / self.noise, residual * residual / self.noise

    def one_by_one(self) -> KLPair:
        """Return both divergences of each label, in order."""
        return in_units_of_noise(*self.terms())

    def together(self) -> KLPair:
        """Return both divergences of all labels as one step."""
        lower = self.block.lower
        if len(lower) == 1:
            return self.one_by_one()
        covariance = lower @ lower.T
        covariance[np.diag_indices(len(lower))] -= self.noise
        pair = batch(covariance, lower @ self.white, self.noise)
        return KLPair(np.atleast_1d(pair.new_old), np.atleast_1d(pair.old_new))


class GaussianState(Protocol):
    """Interface of a posterior with Gaussian noise."""

    noise: float
    n: int

    def whiten(self, features: Floats) -> Floats:
        """``W`` for some points, ``r x k``."""

    def covariance(self, features: Floats, whitened: Floats) -> Floats:
        """Latent posterior covariance of some points, ``k x k``."""

    def covariance_rows(self, features: Floats, whitened: Floats, places: Any) -> Floats:
        """Some rows of it."""

    def variance(self, features: Floats, whitened: Floats) -> Floats:
        """Latent posterior variance of some points, ``k``."""

    def mean(self, features: Floats, whitened: Floats) -> Floats:
        """Latent posterior mean of some points, ``k``."""

    def extend(self, block: Block, y: Floats) -> Extension:
        """Learn the labels (standardised) of a block of points, in place."""

    def learn(self, features: Floats, y: Floats) -> None:
        """Learn many labels (standardised) at once, in place, without the effect of each one."""

    def mark(self) -> Any:
        """Present state, for :meth:`rewind`."""

    def rewind(self, mark: Any) -> None:
        """Forget the points that came after a mark."""


def block_of(state: GaussianState, features: Floats) -> Block:
    """Return some points, in the order given, as a block under a posterior.

    Raises:
        NotPositiveDefiniteError: The noise is smaller than the rounding errors of the latent variances.
    """
    whitened = state.whiten(features)
    covariance = state.covariance(features, whitened)
    lower = noisy_cholesky(covariance, state.noise)
    prior, pivots = np.diag(covariance), np.diag(lower)
    # Two formulas for the same number. The one for the smaller of latent variance and noise cancels less.
    direct = prior - (np.tril(lower, -1) ** 2).sum(axis=1)
    latent = np.where(prior < state.noise, direct, pivots**2 - state.noise)
    return Block(features, whitened, lower, np.maximum(latent, 0.0))


def noisy_cholesky(covariance: Floats, noise: float) -> Floats:
    """Return the lower factor of ``covariance + noise I``. Negative eigenvalues are allowed up to rounding only."""
    noisy = covariance + noise * np.eye(len(covariance))
    try:
        return np.asarray(np.linalg.cholesky(noisy))
    except np.linalg.LinAlgError:
        lift = 1e-13 * float(np.trace(noisy))
    try:
        return np.asarray(np.linalg.cholesky(noisy + lift * np.eye(len(noisy))))
    except np.linalg.LinAlgError:
        raise NotPositiveDefiniteError(
            f"the noise variance {noise:.3g} is so small beside the model's own variance that the covariance of the "
            "labels is singular in double precision; give a larger noise"
        ) from None


def trailing_solve(lower: Floats, rows: Floats) -> Floats:
    """Compute ``lower^-1 rows`` in place, for rows in C order, by one BLAS call on the transposed view."""
    if rows.shape[1] == 0:
        return rows
    return np.asarray(dtrsm(1.0, lower, rows.T, side=1, lower=1, trans_a=1, overwrite_b=1).T)


def subtract_product(rows: Floats, left: Floats, right: Floats) -> Floats:
    """Compute ``rows - left @ right`` in place, for arrays in C order, by one BLAS call on the transposed views.

    The product in double precision needs no array of its own. Factors in single precision are multiplied as such.
    """
    if not rows.size or left.dtype != np.float64:
        rows -= left @ right
        return rows
    return np.asarray(dgemm(-1.0, right.T, left.T, beta=1.0, c=rows.T, overwrite_c=1).T)


class KernelState:
    """The posterior over functions of a Gaussian process, by the Cholesky factor of its labelled points.

    With ``L L' = k(Z, Z) + noise``: ``W = L^-1 k(Z, F)``, latent mean ``W' L^-1 y``. A new block appends rows to ``L``:
    ``O(n^2)`` for a point, and existing rows are not computed again.

    Args:
        kernel: The prior covariance.
        noise: Noise variance; at least :data:`LEAST_NOISE` is used.
        n_features: Number of features.
        capacity: Number of labels to allocate memory for; it grows when needed.
    """

    def __init__(self, kernel: GaussianKernel, noise: float, n_features: int, capacity: int = 64) -> None:
        # Less noise than this is below the rounding of a kernel of variance 1.
        self.kernel, self.noise, self.n = kernel, max(noise, LEAST_NOISE), 0
        self._features = np.zeros((capacity, n_features))
        self._lower = np.zeros((capacity, capacity))
        self._white = np.zeros(capacity)

    @property
    def features(self) -> Floats:
        """Labelled points, ``n x D``."""
        return self._features[: self.n]

    @property
    def lower(self) -> Floats:
        """``L``, ``n x n``."""
        return self._lower[: self.n, : self.n]

    @property
    def white(self) -> Floats:
        """``L^-1 y``, ``n``."""
        return self._white[: self.n]

    def whiten(self, features: Floats) -> Floats:
        """``L^-1 k(Z, F)``, ``n x k``."""
        if not self.n:
            return np.zeros((0, len(features)))
        rows = np.array(self.kernel(self.features, features))
        # LAPACK would copy all of L, which is part of a larger array. So it is called with the diagonal blocks only.
        for start in range(0, self.n, _BLOCK):
            part = slice(start, min(start + _BLOCK, self.n))
            rows[part] -= self._lower[part, :start] @ rows[:start]
            rows[part] = solve_lower(np.ascontiguousarray(self._lower[part, part]), rows[part])
        return rows

    def covariance(self, features: Floats, whitened: Floats) -> Floats:
        """``k(F, F) - W'W``, ``k x k``."""
        prior = self.kernel(features, features)
        # With the product form of the distance, the distance of a point from itself would be a rounding error, not 0.
        np.fill_diagonal(prior, self.kernel.diagonal(features))
        return np.asarray(prior - whitened.T @ whitened)

    def covariance_rows(self, features: Floats, whitened: Floats, places: Any) -> Floats:
        """Rows of :meth:`covariance`."""
        prior = self.kernel(features[places], features)
        prior[np.arange(len(places)), places] = self.kernel.diagonal(features[places])
        return np.asarray(prior - whitened[:, places].T @ whitened)

    def variance(self, features: Floats, whitened: Floats) -> Floats:
        """Its diagonal, at least 0."""
        return np.asarray(np.maximum(self.kernel.diagonal(features) - np.einsum("ij,ij->j", whitened, whitened), 0.0))

    def mean(self, features: Floats, whitened: Floats) -> Floats:  # noqa: ARG002 - weights need the features
        """``W' L^-1 y``, ``k``."""
        return np.asarray(whitened.T @ self.white)

    def extend(self, block: Block, y: Floats) -> Extension:
        """Append the block to ``L`` and its labels to ``L^-1 y``."""
        k = len(y)
        self._make_room(self.n + k)
        rows = slice(self.n, self.n + k)
        white = solve_lower(block.lower, y - block.whitened.T @ self.white)
        self._features[rows] = block.features
        self._lower[rows, : self.n] = block.whitened.T
        self._lower[rows, rows] = block.lower
        self._white[rows] = white
        self.n += k
        return Extension(block, white, self.noise)

    def adopt(self, features: Floats, lower: Floats) -> None:
        """Append points whose rows of ``L`` were computed elsewhere, ``k x D`` and ``k x (n + k)``; without labels."""
        rows = slice(self.n, self.n + len(features))
        self._make_room(rows.stop)
        self._features[rows] = features
        self._lower[rows, : rows.stop] = lower
        self._white[rows] = 0.0
        self.n = rows.stop

    def learn(self, features: Floats, y: Floats) -> None:
        """Append all points to ``L``."""
        self.extend(block_of(self, features), y)

    def mark(self) -> int:
        """Present state, for :meth:`rewind`."""
        return self.n

    def rewind(self, mark: int) -> None:
        """Remove the rows of ``L`` that were added after a mark."""
        self.n = mark

    def posterior(self, y: Floats, scaling: Scaling) -> GaussianProcessPosterior:
        """The posterior as a value; ``y`` are the labels, standardised."""
        return GaussianProcessPosterior(self.features, y, noise=self.noise, kernel=self.kernel, scaling=tuple(scaling))

    def _make_room(self, wanted: int) -> None:
        if wanted <= len(self._white):
            return
        capacity, n = max(wanted, 2 * len(self._white)), self.n
        lower, features = np.zeros((capacity, capacity)), np.zeros((capacity, self._features.shape[1]))
        white = np.zeros(capacity)
        lower[:n, :n], features[:n], white[:n] = self.lower, self.features, self.white
        self._lower, self._features, self._white = lower, features, white


class WeightState:
    """The posterior over the weights of a linear model, by the Cholesky factor of its precision.

    With ``R R' = alpha I + Phi' Phi / noise``: ``W = R^-1 F'``, and the mean of the weights is
    ``R'^-1 R^-1 Phi' y / noise``. The precision is a sum over the labels, so rounding errors do not accumulate with the
    number of updates.

    Args:
        alpha: Prior precision of the weights.
        noise: Noise variance.
        n_features: ``J``.
        capacity: Labels to make room for; it grows when needed.
    """

    def __init__(self, alpha: float, noise: float, n_features: int, capacity: int = 64) -> None:
        self.alpha, self.noise, self.n = alpha, noise, 0
        self._features = np.zeros((capacity, n_features))
        self._gain: tuple[int, int, Floats] | None = None
        # The last block, and the number of labels before it.
        self._latest: tuple[int, Block] | None = None
        self._set(alpha * np.eye(n_features), np.zeros(n_features))

    @property
    def features(self) -> Floats:
        """Labelled points, ``n x J``."""
        return self._features[: self.n]

    def whiten(self, features: Floats) -> Floats:
        """``R^-1 F'``, ``J x k``."""
        return solve_lower(self.factor, features.T)

    def covariance(self, features: Floats, whitened: Floats) -> Floats:  # noqa: ARG002 - functions need the features
        """``W'W``, ``k x k``."""
        return np.asarray(whitened.T @ whitened)

    def covariance_rows(self, features: Floats, whitened: Floats, places: Any) -> Floats:  # noqa: ARG002 - as above
        """Rows of :meth:`covariance`."""
        return np.asarray(whitened[:, places].T @ whitened)

    def variance(self, features: Floats, whitened: Floats) -> Floats:  # noqa: ARG002 - as above
        """Its diagonal."""
        return np.asarray(np.einsum("ij,ij->j", whitened, whitened))

    def mean(self, features: Floats, whitened: Floats) -> Floats:  # noqa: ARG002 - functions need W
        """``F w``, ``k``."""
        return np.asarray(features @ self.weights)

    def extend(self, block: Block, y: Floats) -> Extension:
        """Add the block to precision and moment, and factor once."""
        white = solve_lower(block.lower, y - block.features @ self.weights)
        before = self.n
        self.learn(block.features, y)
        self._latest = before, block
        return Extension(block, white, self.noise)

    def learn(self, features: Floats, y: Floats) -> None:
        """Add all points to precision and moment."""
        end = self.n + len(y)
        if end > len(self._features):
            room = np.zeros((max(end, 2 * len(self._features)), features.shape[1]))
            room[: self.n] = self.features
            self._features = room
        self._features[self.n : end] = features
        self.n = end
        self._set(self._precision + features.T @ features / self.noise, self._moment + features.T @ y / self.noise)

    def gain(self, n: int, factor: Floats) -> Floats:
        """Return ``M^-1 W' R^-1`` of the labels after the first ``n``, ``k x J``; times features, it gives rows.

        Args:
            n: Number of labels that the other points are up to date with.
            factor: ``R`` after ``n`` labels.
        """
        if self._gain is None or self._gain[:2] != (n, self.n):
            whitened, lower = self._seen_from(n, factor)
            # Pool and test set request the same result one after the other.
            self._gain = n, self.n, solve_lower(lower, solve_upper(factor, whitened).T)
        return self._gain[2]

    def _seen_from(self, n: int, factor: Floats) -> tuple[Floats, Floats]:
        """Return ``W`` and ``M`` of the labels after the first ``n``, from the factor after ``n`` labels."""
        if self._latest is not None and self._latest[0] == n:
            return self._latest[1].whitened, self._latest[1].lower
        whitened = solve_lower(factor, self._features[n : self.n].T)
        return whitened, noisy_cholesky(whitened.T @ whitened, self.noise)

    def mark(self) -> "tuple[int, Floats, Floats]":
        """Present state, for :meth:`rewind`."""
        return self.n, self._precision, self._moment

    def rewind(self, mark: "tuple[int, Floats, Floats]") -> None:
        """Forget the points that came after a mark."""
        self.n = mark[0]
        self._set(*mark[1:])

    def posterior(self) -> Gaussian:
        """The posterior as a value."""
        return Gaussian(self.weights, precision=self._precision)

    def _set(self, precision: Floats, moment: Floats) -> None:
        self._precision, self._moment = precision, moment
        self._gain = self._latest = None
        factor, failed = dpotrf(precision, lower=1, clean=1)
        if failed:
            raise NotPositiveDefiniteError(
                f"the precision of the weights is singular in double precision: alpha is {self.alpha:.3g}, the noise "
                f"variance {self.noise:.3g}. Scale the features, or give a larger alpha"
            )
        self.factor = np.asarray(factor)
        self.weights = np.asarray(dpotrs(factor, moment, lower=1)[0])
