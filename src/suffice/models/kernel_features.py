"""Kernel features: a linear model on them represents curved boundaries."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.kernel_approximation import Nystroem
from sklearn.utils.validation import check_is_fitted, validate_data

from suffice.arguments import real, whole
from suffice.models.inputs import column_names, prediction_inputs, require_finite
from suffice.numerics.special_functions import Floats

# Points from which the typical distance is computed.
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
