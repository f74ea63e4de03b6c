"""Gaussian kernels: as covariance functions of Gaussian processes, and as features of linear models."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from suffice.arguments import real, whole
from suffice.errors import InvalidValueError
from suffice.models.inputs import column_names, prediction_inputs, require_finite
from suffice.numerics import Floats

# Beyond this squared distance from the centre, in length scales, |a|^2 + |b|^2 - 2ab would lose more than 11 digits.
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
    """Return the Gaussian kernel of length scale 1, by one matrix product for points near the centre of the data.

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
    """Return the same for points around the origin with known :func:`half_squares`."""
    if half_a.max() + half_b.max() > _FAR:
        from scipy.spatial.distance import cdist

        return np.asarray(np.exp(-0.5 * cdist(a, b, "sqeuclidean")))
    exponent = a @ b.T
    exponent -= half_a[:, None]
    exponent -= half_b
    np.minimum(exponent, 0.0, out=exponent)
    return np.asarray(np.exp(exponent, out=exponent))


def half_squares(X: Floats) -> Floats:
    """Half of the squared norm of each row."""
    return np.asarray(0.5 * np.einsum("ij,ij->i", X, X))


# Number of points from which the typical distance is computed.
_SAMPLE = 300


class KernelFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Features whose products approximate a Gaussian kernel: :math:`\phi(x)'\phi(x') \approx s^2 e^{-|x - x'|^2 / m}`.

    Here ``m`` is the median squared distance between inputs; the Nystroem method approximates the kernel by some of the
    inputs. A linear classifier on these features represents boundaries that are not linear in the inputs. Inputs need
    no labels, so fit it on the whole pool; standardise the inputs first.

    Args:
        n_components: Number of features at most; fewer if there are fewer inputs.
        scale: ``s``, above 0.
        seed: Seed of the choice of inputs.

    Attributes:
        gamma_: :math:`1/m`.
        nystroem_: The fitted approximation.

    Reference: [WilliamsSeeger2001].

    Examples:
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> features = KernelFeatures(n_components=50).fit_transform(X)
        >>> features.shape, bool(abs(features[0] @ features[0] - 100.0) < 1.0)
        ((200, 50), True)
    """

    gamma_: float
    nystroem_: Any

    def __init__(self, n_components: int = 100, *, scale: float = 10.0, seed: int = 0) -> None:
        self.n_components = n_components
        self.scale = scale
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Choose the width of the kernel and the inputs to approximate it by."""
        from sklearn.kernel_approximation import Nystroem

        names = column_names(X)
        inputs: Floats = validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        require_finite(inputs, names)
        components = min(whole(self.n_components, "n_components", least=1), len(inputs))
        real(self.scale, "scale", "above 0", lambda x: x > 0.0)
        rng = np.random.default_rng(whole(self.seed, "seed", least=0))
        some = inputs[rng.permutation(len(inputs))[:_SAMPLE]]
        squares = np.einsum("ij,ij->i", some, some)
        distances = np.maximum(squares[:, None] + squares[None, :] - 2.0 * some @ some.T, 0.0)
        apart = distances[distances > 1e-12 * max(float(distances.max()), 1e-300)]
        self.gamma_ = 1.0 / float(np.median(apart)) if len(apart) else 1.0
        self.nystroem_ = Nystroem(gamma=self.gamma_, n_components=components, random_state=self.seed).fit(inputs)
        return self

    def transform(self, X: Any) -> Floats:
        """The features of each row, ``n x n_components``."""
        check_is_fitted(self, "nystroem_")
        return np.asarray(self.scale * self.nystroem_.transform(prediction_inputs(self, X)), dtype=np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> Any:  # noqa: ARG002 - scikit-learn's signature
        """Name of each feature."""
        check_is_fitted(self, "nystroem_")
        return np.array([f"kernel{k}" for k in range(len(self.nystroem_.components_))], dtype=object)
