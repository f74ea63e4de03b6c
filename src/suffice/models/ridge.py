"""Bayesian ridge regression, exact, one label at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from suffice.arguments import real
from suffice.models.evidence import RidgeScales, learn_ridge, ridge_evidence
from suffice.models.latent import Scaling, WeightState
from suffice.models.regression import GaussianRegressor, scaling_of
from suffice.posteriors import Gaussian
from suffice.special import Floats


@dataclass(frozen=True)
class RidgePrior:
    """Prior precision of the weights, precision of the noise, and what targets are standardised by."""

    alpha: float
    beta: float
    scaling: Scaling

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
            posterior, as the guarantee of the stopping rule needs.
        normalize_y: Whether targets are standardised by the labels at hand when hyper-parameters are learned. Left out:
            yes if a hyper-parameter is learned, no if all are given.

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
        Gaussian(2 parameters, by precision)
    """

    def __init__(
        self,
        alpha: float | None = None,
        beta: float | None = None,
        *,
        fit_intercept: bool = False,
        normalize_y: bool | None = None,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.fit_intercept = fit_intercept
        self.normalize_y = normalize_y

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

    def prior(self, features: Floats, y: Floats, previous: Any = None) -> RidgePrior:
        """Both precisions: as given, the rest by the evidence of these labels."""
        scaling = scaling_of(y, self.learns if self.normalize_y is None else self.normalize_y)
        if not self.learns:
            return RidgePrior(*self._start(None), scaling)
        target, fixed = scaling.apply(y), (self.alpha is not None, self.beta is not None)
        # Where few labels spoke for no weights at all, the fixed point stays there whatever comes: so it is also
        # looked for from the beginning, and the evidence decides.
        starts = dict.fromkeys((self._start(previous), self._start(None)))
        found = [learn_ridge(features, target, start, fixed=fixed) for start in starts]
        best = max(found, key=lambda scales: ridge_evidence(features, target, scales)) if len(found) > 1 else found[0]
        return RidgePrior(*best, scaling)

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
