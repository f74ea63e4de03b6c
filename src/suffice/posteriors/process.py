"""The posterior of a Gaussian process: a distribution over functions, given by its data and its prior."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from suffice.errors import InvalidValueError
from suffice.linalg import cholesky, solve_lower
from suffice.posteriors.arrays import Value, frozen
from suffice.special import Floats

Kernel = Callable[[Floats, Floats], Any]


@dataclass(frozen=True, init=False, eq=False)
class GaussianProcess(Value):
    """The posterior of ``f ~ GP(0, kernel)`` after observing ``y = f(X) + noise``.

    Two such posteriors can be compared when they share the prior: kernel, and the constants ``y`` was scaled by. Else
    their KL divergence is infinite.

    Args:
        X: Inputs, ``n x D``.
        y: Targets, ``n``.
        noise: Variance of the observation noise: one number, or one per observation.
        kernel: ``kernel(A, B)`` is the latent covariance of rows of ``A`` and ``B``, without noise. Two posteriors
            share a prior when their kernels compare equal.
        scaling: Whatever constants ``y`` was standardised with before it came here; part of the prior.

    Raises:
        InvalidValueError: Shapes that do not fit, a NaN, or a noise that is not above 0.

    Reference: [IshibashiHino2021] section 5.2, model 3, and appendix B.

    Examples:
        >>> import numpy as np
        >>> def kernel(A, B):
        ...     return np.exp(-0.5 * (A[:, None, 0] - B[None, :, 0]) ** 2)
        >>> GaussianProcess([[0.0], [1.0]], [0.1, 0.7], noise=0.1, kernel=kernel)
        GaussianProcess(2 observations)
    """

    X: Floats
    y: Floats
    noise: Floats
    kernel: Kernel
    scaling: tuple[float, ...]

    def __init__(
        self, X: ArrayLike, y: ArrayLike, *, noise: ArrayLike, kernel: Kernel, scaling: tuple[float, ...] = ()
    ) -> None:
        inputs, targets = frozen(X, "X", ndim=2), frozen(y, "y", ndim=1)
        if len(inputs) != len(targets):
            raise InvalidValueError(f"X has {len(inputs)} rows and y has {len(targets)}; they must match")
        variances = frozen(noise, "noise")
        if variances.shape not in {(), (len(inputs),)}:
            raise InvalidValueError(f"noise must be one number or {len(inputs)}, but its shape is {variances.shape}")
        if not (variances > 0.0).all():
            raise InvalidValueError(f"noise holds variances, all above 0; the smallest is {variances.min()}")
        spread = np.broadcast_to(variances, targets.shape)
        parts = {"X": inputs, "y": targets, "noise": spread, "kernel": kernel, "scaling": scaling}
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    def latent(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """Posterior mean (``m``) and covariance (``m x m``) of ``f`` at the rows of ``X``."""
        points = np.asarray(X, dtype=np.float64)
        prior = np.asarray(self.kernel(points, points), dtype=np.float64)
        if not len(self.y):
            return np.zeros(len(points)), prior
        lower = cholesky(np.asarray(self.kernel(self.X, self.X)) + np.diag(self.noise), "the kernel matrix plus noise")
        white = solve_lower(lower, np.asarray(self.kernel(self.X, points), dtype=np.float64))
        return white.T @ solve_lower(lower, self.y), prior - white.T @ white

    def shares_prior(self, other: "GaussianProcess") -> bool:
        """Whether both started from the same prior, so that their KL divergence is finite."""
        return bool(self.kernel == other.kernel) and self.scaling == other.scaling

    def keep(self, rows: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> "GaussianProcess":
        """The posterior that the observations marked in ``rows`` alone would give."""
        return GaussianProcess(
            self.X[rows], self.y[rows], noise=self.noise[rows], kernel=self.kernel, scaling=self.scaling
        )

    def __repr__(self) -> str:
        return f"GaussianProcess({len(self.y)} observations)"
