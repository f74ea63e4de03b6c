"""A multivariate Gaussian, kept as the factor it was given by."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from suffice.errors import InvalidValueError
from suffice.linalg import cholesky, solve_lower, symmetric
from suffice.posteriors.arrays import Value, frozen
from suffice.special import Floats


@dataclass(frozen=True, init=False, eq=False)
class Gaussian(Value):
    """The distribution ``N(mean, S)`` over ``J`` parameters, given by exactly one description of ``S``.

    The lower factor of the covariance (``S = L L'``) or of the precision (``S^-1 = R R'``) is kept, whichever was
    given; neither an inverse nor a determinant is ever formed.

    Args:
        mean: ``J`` numbers.
        covariance: ``S``, ``J x J``.
        precision: ``S^-1``, ``J x J``.
        cholesky: ``L``, lower triangular, ``J x J``.
        diagonal: The ``J`` variances of independent parameters.

    Attributes:
        mean: ``J`` numbers, read-only.
        factor: Lower factor, ``J x J``; or the ``J`` standard deviations of independent parameters. Read-only.
        of: Which matrix ``factor`` is the factor of.

    Raises:
        InvalidValueError: Shapes that do not fit, a NaN, or none or several descriptions of ``S``.
        NotPositiveDefiniteError: The matrix is not positive definite.

    Reference: [IshibashiHino2021] section 5.2, models 1 and 2.

    Examples:
        >>> Gaussian([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]])
        Gaussian(2 parameters, by covariance)
        >>> Gaussian([0.0, 1.0], diagonal=[2.0, 1.0]).dimension
        2
    """

    mean: Floats
    factor: Floats
    of: Literal["covariance", "precision"]

    def __init__(
        self,
        mean: ArrayLike,
        covariance: ArrayLike | None = None,
        *,
        precision: ArrayLike | None = None,
        cholesky: ArrayLike | None = None,
        diagonal: ArrayLike | None = None,
    ) -> None:
        given = {"covariance": covariance, "precision": precision, "cholesky": cholesky, "diagonal": diagonal}
        named = [(name, value) for name, value in given.items() if value is not None]
        if len(named) != 1:
            came = " and ".join(name for name, _ in named) or "none"
            raise InvalidValueError(f"give exactly one of {', '.join(given)}; {came} came")
        name, value = named[0]
        mean = frozen(mean, "mean", ndim=1, promote=True)
        if not len(mean):
            raise InvalidValueError("mean is empty; a Gaussian has at least one parameter")
        factor = _factor(name, value, len(mean))
        factor.flags.writeable = False
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "factor", factor)
        object.__setattr__(self, "of", "precision" if name == "precision" else "covariance")

    @property
    def dimension(self) -> int:
        """Number of parameters, ``J``."""
        return len(self.mean)

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw ``n`` parameter vectors, ``n x J``."""
        z = rng.standard_normal((n, self.dimension))
        if self.factor.ndim == 1:
            return np.asarray(self.mean + z * self.factor)
        if self.of == "covariance":
            return np.asarray(self.mean + z @ self.factor.T)
        return np.asarray(self.mean + np.linalg.solve(self.factor.T, z.T).T)

    def log_density(self, theta: Floats) -> Floats:
        """Log density of each row of ``theta``, ``n x J`` to ``n``."""
        deviation = np.asarray(theta) - self.mean
        if self.factor.ndim == 1:
            white, log_scale = deviation / self.factor, float(np.log(self.factor).sum())
        elif self.of == "covariance":
            white, log_scale = solve_lower(self.factor, deviation.T).T, float(np.log(np.diag(self.factor)).sum())
        else:
            white, log_scale = deviation @ self.factor, -float(np.log(np.diag(self.factor)).sum())
        return np.asarray(-0.5 * (white**2).sum(axis=1) - log_scale - 0.5 * self.dimension * np.log(2 * np.pi))

    def __repr__(self) -> str:
        shape = "by independent variances" if self.factor.ndim == 1 else f"by {self.of}"
        return f"Gaussian({self.dimension} parameter{'s' * (self.dimension != 1)}, {shape})"


def _factor(name: str, value: ArrayLike, size: int) -> Floats:
    if name == "diagonal":
        variances = frozen(value, name, ndim=1, promote=True)
        _require_shape(variances, (size,), name)
        if not (variances > 0.0).all():
            index = int(np.argmin(variances))
            raise InvalidValueError(f"diagonal holds variances, all above 0; entry {index} is {variances[index]}")
        return np.sqrt(variances)
    matrix = frozen(value, name, ndim=2, promote=True)
    _require_shape(matrix, (size, size), name)
    if name == "cholesky":
        return _checked_cholesky(matrix)
    single = getattr(value, "dtype", None) in (np.dtype(np.float32), np.dtype(np.float16))
    return cholesky(symmetric(matrix, name, tolerance=1e-3 if single else 1e-8), name)


def _checked_cholesky(lower: Floats) -> Floats:
    if np.triu(lower, 1).any():
        raise InvalidValueError("cholesky must be lower triangular; for an upper factor U give U.T")
    if not (np.diag(lower) > 0.0).all():
        raise InvalidValueError("cholesky must have a positive diagonal, else the covariance is not positive definite")
    return lower.copy()


def _require_shape(array: Floats, shape: tuple[int, ...], name: str) -> None:
    if array.shape != shape:
        raise InvalidValueError(f"{name} must have shape {shape} to match mean, but its shape is {array.shape}")
