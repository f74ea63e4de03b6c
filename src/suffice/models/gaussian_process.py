"""Gaussian process regression, exact, one label at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from suffice.arguments import real
from suffice.errors import InvalidValueError
from suffice.models.gaussian_state import KernelState, Scaling
from suffice.models.hyperparameters import ProcessScales, ScalesPrior, learn_process, process_left_out
from suffice.models.kernels import GaussianKernel
from suffice.models.regressor import GaussianRegressor, preferred, scaling_of
from suffice.numerics.special_functions import Floats
from suffice.posteriors import GaussianProcessPosterior


@dataclass(frozen=True)
class ProcessPrior:
    """Kernel, noise variance, and what targets are standardised by."""

    kernel: GaussianKernel
    noise: float
    scaling: Scaling
    regularized: bool = False

    @property
    def scales(self) -> ProcessScales:
        """Length scale and noise."""
        return ProcessScales(np.array(self.kernel.length_scale), self.noise)

    def left_out(self, features: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of each label given all others."""
        mean, variance = process_left_out(features, self.scaling.apply(y), self.scales)
        return self.scaling.centre + self.scaling.scale * mean, self.scaling.scale**2 * variance

    def log_density(self, features: Floats, y: Floats) -> float:
        """Log density of length scale and noise under their prior."""
        if not self.regularized:
            return 0.0
        theta = np.log(np.append(self.scales.length_scale, self.noise))
        return ScalesPrior.of_data(features, self.scaling.apply(y)).log_density(theta)[0]

    def start(self, n_features: int, capacity: int) -> KernelState:
        """The posterior before any label."""
        return KernelState(self.kernel, self.noise, n_features, capacity)


class GaussianProcess(GaussianRegressor):
    r"""Gaussian process regression: ``y = f(x) + noise`` with ``f ~ GP(0, k)`` and a Gaussian kernel.

    .. math:: k(x, x') = \exp\{-|x - x'|^2 / 2 l^2\}, \qquad
              \mu(x) = k(x)' (K + \sigma^2 I)^{-1} y, \qquad s(x) = 1 - k(x)' (K + \sigma^2 I)^{-1} k(x).

    Args:
        length_scale: ``l``: one number, or one per feature. Left out, it is learned from the labels by marginal
            likelihood: when fitted, and again whenever the labels have doubled.
        noise: Variance of the noise; left out, learned likewise.
        per_feature: Whether a length scale that is learned is one per feature.
        normalize_y: Whether targets are standardised by the labels at hand when hyper-parameters are learned; the prior
            has mean 0 and variance 1. Left out: yes if a hyper-parameter is learned, no if all are given (then
            ``noise`` is in the squared units of ``y``).
        regularize: Whether hyper-parameters are learned with a weak prior, which keeps few labels from suggesting
            extreme ones; see :class:`~suffice.models.hyperparameters.ScalesPrior`. The paper has none.

    Attributes:
        prior_: Hyper-parameters in use.
        learned_at_: Number of labels that they were learned from.
        n_labels_: Labels learned from.

    Reference: [IshibashiHino2021] section 5.2, model 3.

    Examples:
        >>> model = GaussianProcess(length_scale=1.0, noise=0.1).fit([[0.0], [1.0], [2.0]], [0.0, 0.8, 0.9])
        >>> mean, std = model.predict([[1.5]], return_std=True)
        >>> mean.round(3), std.round(3)
        (array([0.906]), array([0.427]))
        >>> model.observe([[1.5]], [1.0]).posterior
        GaussianProcessPosterior(4 observations)
    """

    def __init__(
        self,
        length_scale: float | Sequence[float] | None = None,
        noise: float | None = None,
        *,
        per_feature: bool = False,
        normalize_y: bool | None = None,
        regularize: bool = True,
    ) -> None:
        self.length_scale = length_scale
        self.noise = noise
        self.per_feature = per_feature
        self.normalize_y = normalize_y
        self.regularize = regularize

    @property
    def learns(self) -> bool:
        """Whether length scale or noise is left to be learned."""
        return self.length_scale is None or self.noise is None

    def check(self, n_features: int) -> None:
        """Refuse a length scale or a noise that cannot be used."""
        self._start(np.zeros((1, n_features)), None)

    def prior(self, features: Floats, y: Floats, previous: Any = None, random: Any = None) -> ProcessPrior:
        """Kernel and noise: as given, the rest by the marginal likelihood of these labels."""
        scaling = scaling_of(y, self.learns if self.normalize_y is None else self.normalize_y)
        start = self._start(features, previous)
        if self.learns:
            fixed = self.length_scale is not None, self.noise is not None
            weak = ScalesPrior.of_data(features, scaling.apply(y)) if self.regularize else None
            start = learn_process(features, scaling.apply(y), start, fixed=fixed, prior=weak)
        kernel = GaussianKernel(tuple(float(v) for v in start.length_scale))
        new = ProcessPrior(kernel, start.noise, scaling, self.learns and self.regularize)
        found: ProcessPrior = preferred(previous if self.learns else None, new, features, y, random)
        return found

    @property
    def posterior(self) -> GaussianProcessPosterior:
        """The posterior over functions, as a value."""
        check_is_fitted(self, "state_")
        state: KernelState = self.state_
        return state.posterior(self.prior_.scaling.apply(self.y_), self.prior_.scaling)

    def _start(self, features: Floats, previous: ProcessPrior | None) -> ProcessScales:
        n_features = features.shape[1]
        if self.length_scale is not None:
            length = np.atleast_1d(
                np.array(
                    [
                        real(v, "length_scale", "above 0", lambda x: x > 0.0)
                        for v in np.ravel(np.asarray(self.length_scale, dtype=object))
                    ]
                )
            )
            if len(length) not in (1, n_features):
                raise InvalidValueError(
                    f"length_scale has {len(length)} entries and X {n_features} features; give one, or one per feature"
                )
        elif previous is not None:
            length = np.array(previous.kernel.length_scale)
        else:
            # Typical distance of two standardised points; where features are not standardised, of these.
            typical = float(np.sqrt(2.0 * features.var(axis=0).sum())) or 1.0
            length = np.full(n_features if self.per_feature else 1, typical)
        noise = 0.1 if previous is None else previous.noise
        if self.noise is not None:
            noise = real(self.noise, "noise", "above 0: it is a variance", lambda x: x > 0.0)
        return ProcessScales(length, noise)
