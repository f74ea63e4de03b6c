"""The paper's additive radial basis, as a scikit-learn transformer."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from suffice.arguments import real, whole
from suffice.models.inputs import column_names, prediction_inputs, require_finite
from suffice.special import Floats


class RadialBasis(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Each input as ``M`` bumps: :math:`\psi_{dm}(x) = \exp\{-(x_d - c_m)^2 / 2h^2\}`, ``D M`` features in all.

    The centres lie at equal steps over the range of all inputs that it is fitted to, and are shared by the ``D``
    dimensions: standardise the inputs first. Inputs need no labels, so fit it on the whole pool.

    Args:
        n_centres: ``M``.
        bandwidth: ``h`` in steps between centres: 1 in the paper, 0.5 in its authors' code.

    Attributes:
        centres_: ``M`` numbers.
        width_: ``h``.

    Reference: [IshibashiHino2021] section 5.2, model 1.

    Examples:
        >>> RadialBasis(n_centres=3).fit_transform([[0.0], [2.0]]).round(3)
        array([[1.   , 0.607, 0.135],
               [0.135, 0.607, 1.   ]])
    """

    def __init__(self, n_centres: int = 10, *, bandwidth: float = 1.0) -> None:
        self.n_centres = n_centres
        self.bandwidth = bandwidth

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Place the centres over the range of ``X``."""
        names = column_names(X)
        inputs: Floats = validate_data(self, X, dtype=np.float64, ensure_all_finite=False)
        require_finite(inputs, names)
        n = whole(self.n_centres, "n_centres", least=1)
        bandwidth = real(self.bandwidth, "bandwidth", "above 0", lambda x: x > 0.0)
        low, high = float(inputs.min()), float(inputs.max())
        step = (high - low) / max(n - 1, 1) or 1.0
        self.centres_ = np.linspace(low, high, n)
        self.width_ = bandwidth * step
        return self

    def transform(self, X: Any) -> Floats:
        """The bumps at each row, ``n x D M``: those of the first input first."""
        check_is_fitted(self, "centres_")
        inputs = prediction_inputs(self, X)
        distance = (inputs[:, :, None] - self.centres_) / self.width_
        return np.asarray(np.exp(-0.5 * distance**2).reshape(len(inputs), -1))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Name of each feature: that of the input, and the number of the bump."""
        check_is_fitted(self, "centres_")
        given = getattr(self, "feature_names_in_", None) if input_features is None else input_features
        names = [f"x{d}" for d in range(self.n_features_in_)] if given is None else given
        return np.asarray([f"{name}_rbf{m}" for name in names for m in range(len(self.centres_))], dtype=object)
