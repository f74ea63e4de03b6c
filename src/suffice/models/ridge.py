"""Bayesian ridge regression, exact, one label at a time, and the paper's radial basis features."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from suffice.arguments import real, whole
from suffice.models.gaussian_state import Scaling, WeightState
from suffice.models.hyperparameters import RidgeScales, learn_ridge, ridge_evidence, ridge_left_out, with_freedom
from suffice.models.inputs import column_names, prediction_inputs, require_finite
from suffice.models.regressor import GaussianRegressor, preferred, scaling_of
from suffice.numerics.special_functions import Floats
from suffice.posteriors import Gaussian


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


@dataclass(frozen=True)
class RidgePrior:
    """Prior precision of the weights, precision of the noise, and what targets are standardised by."""

    alpha: float
    beta: float
    scaling: Scaling

    def left_out(self, features: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of each label given all others."""
        mean, variance = ridge_left_out(features, self.scaling.apply(y), RidgeScales(self.alpha, self.beta))
        return self.scaling.centre + self.scaling.scale * mean, self.scaling.scale**2 * variance

    def log_density(self, features: Floats, y: Floats) -> float:
        """Both precisions have no prior."""
        del features, y
        return 0.0

    def start(self, n_features: int, capacity: int) -> WeightState:
        """The posterior before any label."""
        return WeightState(self.alpha, 1.0 / self.beta, n_features, capacity)


class BayesianRidge(GaussianRegressor):
    r"""Bayesian ridge regression: ``y = w'x + noise`` with ``w ~ N(0, I/alpha)`` and noise variance ``1/beta``.

    .. math:: p(w | S) = N(\beta \Sigma \Phi' y, \Sigma), \qquad \Sigma^{-1} = \alpha I + \beta \Phi'\Phi.

    Put :class:`RadialBasis` before it, in a pipeline, for the paper's model.

    Args:
        alpha: Prior precision of the weights. Left out, it is learned from the labels by the evidence: when fitted, and
            again whenever the labels have doubled.
        beta: Precision of the noise (one over its variance); left out, learned likewise.
        fit_intercept: Whether a constant feature is added, in front. Its weight has the same prior and is part of the
            posterior, as the guarantee of the stopping rule needs. Without it, the mean of the labels at hand is the
            constant, and labels that were chosen have another mean than the pool. The paper has none.
        normalize_y: Whether targets are standardised by the labels at hand when hyper-parameters are learned. Left out:
            yes if a hyper-parameter is learned, no if all are given.
        regularize: Whether a learned noise variance accounts for the degrees of freedom of its labels, see
            :func:`~suffice.models.hyperparameters.with_freedom`. In the paper it does not.

    Attributes:
        coef_, intercept_: Mean of the weights, in the units of ``y``.
        prior_: Hyper-parameters in use.
        learned_at_: Number of labels that they were learned from.

    Reference: [IshibashiHino2021] section 5.2, model 1.

    Examples:
        >>> model = BayesianRidge(alpha=1.0, beta=10.0).fit([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])
        >>> model.coef_.round(3)
        array([ 0.909, -0.909])
        >>> model.observe([[1.0, 1.0]], [0.2]).posterior
        Gaussian(3 parameters, by precision)
    """

    def __init__(
        self,
        alpha: float | None = None,
        beta: float | None = None,
        *,
        fit_intercept: bool = True,
        normalize_y: bool | None = None,
        regularize: bool = True,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.fit_intercept = fit_intercept
        self.normalize_y = normalize_y
        self.regularize = regularize

    @property
    def learns(self) -> bool:
        """Whether alpha or beta is left to be learned."""
        return self.alpha is None or self.beta is None

    def check(self, n_features: int) -> None:
        """Refuse an alpha or a beta that cannot be used."""
        del n_features
        self._start(None)

    def features(self, X: Floats) -> Floats:
        """The inputs, with a column of ones in front if there is an intercept."""
        return np.column_stack([np.ones(len(X)), X]) if self.fit_intercept else X

    def prior(self, features: Floats, y: Floats, previous: Any = None, random: Any = None) -> RidgePrior:
        """Both precisions: as given, the rest by the evidence of these labels."""
        scaling = scaling_of(y, self.learns if self.normalize_y is None else self.normalize_y)
        if not self.learns:
            return RidgePrior(*self._start(None), scaling)
        target, fixed = scaling.apply(y), (self.alpha is not None, self.beta is not None)
        # Where few labels spoke for no weights at all, the fixed point stays there whatever comes: so it is also
        # looked for from the beginning, and the evidence decides.
        starts = dict.fromkeys((self._start(previous), self._start(None)))
        ends = [learn_ridge(features, target, start, fixed=fixed) for start in starts]
        best = max(ends, key=lambda scales: ridge_evidence(features, target, scales)) if len(ends) > 1 else ends[0]
        if self.regularize:
            best = with_freedom(features, best, fixed=fixed)
        found: RidgePrior = preferred(previous, RidgePrior(*best, scaling), features, y, random)
        return found

    def _start(self, previous: RidgePrior | None) -> RidgeScales:
        return RidgeScales(
            *(
                getattr(previous, name, 1.0) if given is None else real(given, name, "above 0", lambda x: x > 0.0)
                for name, given in (("alpha", self.alpha), ("beta", self.beta))
            )
        )

    @property
    def posterior(self) -> Gaussian:
        """The posterior over the weights (the intercept's first), for the standardised target."""
        check_is_fitted(self, "state_")
        state: WeightState = self.state_
        return state.posterior()

    @property
    def coef_(self) -> Floats:
        """Mean of the weights of the inputs, in the units of ``y``."""
        check_is_fitted(self, "state_")
        return np.asarray(self.prior_.scaling.scale * self.state_.weights[int(self.fit_intercept) :])

    @property
    def intercept_(self) -> float:
        """Mean of the constant, in the units of ``y``."""
        check_is_fitted(self, "state_")
        centre, scale = self.prior_.scaling
        return float(centre + scale * (self.state_.weights[0] if self.fit_intercept else 0.0))
