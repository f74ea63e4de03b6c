"""Covariance functions of Gaussian processes: frozen values that compare equal when they are the same prior."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from suffice.errors import InvalidValueError
from suffice.numerics.special_functions import Floats

# Beyond this squared distance from the middle, in length scales, |a|^2 + |b|^2 - 2ab would lose more than 11 digits.
_FAR = 1e4


@dataclass(frozen=True)
class GaussianKernel:
    r"""The Gaussian covariance :math:`k(a, b) = \exp\{-\frac12 \sum_d (a_d - b_d)^2 / l_d^2\}`.

    Args:
        length_scale: One ``l`` for all features (a tuple of one), or one for each.

    Reference: [IshibashiHino2021] section 5.2, model 3.

    Examples:
        >>> GaussianKernel((2.0,))(np.array([[0.0], [2.0]]), np.array([[0.0]])).round(4)
        array([[1.    ],
               [0.6065]])
    """

    length_scale: tuple[float, ...]

    def __call__(self, A: Floats, B: Floats) -> Floats:
        """Covariance of the rows of ``A`` and ``B``, ``n x m``."""
        return scaled_kernel(self.scaled(A), self.scaled(B))

    def scaled(self, X: Floats) -> Floats:
        """The inputs in units of the length scale, in which the kernel has length scale 1."""
        if len(self.length_scale) not in (1, X.shape[1]):
            raise InvalidValueError(
                f"length_scale has {len(self.length_scale)} entries and X has {X.shape[1]} features; "
                "give one length scale, or one per feature"
            )
        return np.asarray(X / np.asarray(self.length_scale), dtype=np.float64)

    def diagonal(self, X: Floats) -> Floats:
        """Variance of each row, ``n``."""
        return np.ones(len(X))


def scaled_kernel(A: Floats, B: Floats) -> Floats:
    """The Gaussian kernel of length scale 1; near the middle of the data by one matrix product.

    Examples:
        >>> scaled_kernel(np.array([[1e8]]), np.array([[1e8], [1e8 + 1]])).round(4)
        array([[1.    , 0.6065]])
    """
    if not len(A) or not len(B):
        return np.zeros((len(A), len(B)))
    middle = A.mean(axis=0)
    a, b = A - middle, B - middle
    half_a, half_b = half_squares(a), half_squares(b)
    return centred_kernel(a, half_a, b, half_b)


def centred_kernel(a: Floats, half_a: Floats, b: Floats, half_b: Floats) -> Floats:
    """The same for points around the origin whose :func:`half_squares` are known."""
    if half_a.max() + half_b.max() > _FAR:
        return np.asarray(np.exp(-0.5 * cdist(a, b, "sqeuclidean")))
    exponent = a @ b.T
    exponent -= half_a[:, None]
    exponent -= half_b
    np.minimum(exponent, 0.0, out=exponent)
    return np.asarray(np.exp(exponent, out=exponent))


def half_squares(X: Floats) -> Floats:
    """Half of the squared norm of each row."""
    return np.asarray(0.5 * np.einsum("ij,ij->i", X, X))
