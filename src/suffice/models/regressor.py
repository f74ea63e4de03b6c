"""The base class of the two regression models: labels in, a growing posterior, predictions out."""

from typing import Any, Final, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from suffice.models.gaussian_state import KernelState, Scaling, WeightState
from suffice.models.inputs import prediction_inputs, targets, training_inputs, unfitted
from suffice.numerics.special_functions import Floats

# Rows predicted for at a time: what is held for them stays within a few tens of megabytes.
_ROWS = 4096


class RegressionPrior(Protocol):
    """Hyper-parameters, and the posterior that starts from them. A frozen value: equal means the same prior."""

    @property
    def scaling(self) -> Scaling:
        """Standardisation of the targets."""

    def left_out(self, features: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of each label given all others, in the units of ``y``, ``n`` each."""

    def log_density(self, features: Floats, y: Floats) -> float:
        """Log density of the hyper-parameters under their own prior, up to a constant; 0 where there is none."""

    def start(self, n_features: int, capacity: int) -> KernelState | WeightState:
        """The posterior before any label."""


class GaussianRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of regressors with Gaussian noise. A model says its :meth:`features` and how it learns its :meth:`prior`."""

    X_: Floats
    y_: Floats
    prior_: Any
    state_: Any
    learned_at_: int

    @property
    def learns(self) -> bool:
        """Whether a hyper-parameter is left to be learned from the labels."""
        raise NotImplementedError

    def check(self, n_features: int) -> None:
        """Refuse parameters of the constructor that cannot be used, by name."""
        raise NotImplementedError

    def features(self, X: Floats) -> Floats:
        """Features in which the posterior is linear, or on which the kernel is evaluated."""
        return X

    def prior(self, features: Floats, y: Floats, previous: Any = None, random: Any = None) -> Any:
        """Hyper-parameters from these labels and no others.

        Args:
            features: ``n x D``.
            y: Labels, ``n``.
            previous: Earlier hyper-parameters, from which the search starts.
            random: Which labels were drawn at random, ``n``. If it is given, new hyper-parameters are accepted only if
                they predict these labels better than the previous ones, see :func:`preferred`.
        """
        raise NotImplementedError

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from labels, forgetting earlier ones.

        Args:
            X: Inputs, ``n x D``.
            y: Numbers, ``n``.

        Returns:
            The model.
        """
        inputs, labels = training_inputs(self, X, y)
        self._learn(inputs, targets(labels), None)
        return self

    def observe(self, X: Any, y: Any) -> Self:
        """Learn from more labels: the same posterior as :meth:`fit` on all of them, without starting over.

        Hyper-parameters that are learned are learned again when the labels have doubled since the last time.

        Args:
            X: Inputs of the new labels, ``k x D``.
            y: The new labels, ``k``.

        Returns:
            The model.
        """
        if not hasattr(self, "state_"):
            return self.fit(X, y)
        inputs, labels = training_inputs(self, X, y, reset=False)
        numbers = targets(labels)
        if self.learns and self.n_labels_ + len(numbers) >= 2 * self.learned_at_:
            self._learn(np.vstack([self.X_, inputs]), np.append(self.y_, numbers), self.prior_)
        else:
            self.state_.learn(self.features(inputs), self.prior_.scaling.apply(numbers))
            self.X_, self.y_ = np.vstack([self.X_, inputs]), np.append(self.y_, numbers)
        return self

    def at(self, X: Floats, y: Floats, prior: RegressionPrior, learned_at: int, state: Any = None) -> Self:
        """A model of the same parameters that has learned these labels under a prior that is known already.

        With ``state``, the posterior after these labels, nothing is computed: the model refers to that object.
        """
        model = unfitted(self)
        model.n_features_in_ = X.shape[1]
        model._set(X, y, prior, learned_at, state)
        return model

    @property
    def hyperparameters(self) -> Any:
        """Hyper-parameters in use: two models of one class with equal ones have the same prior."""
        return self.prior_

    def posterior_after(self, X: Any, y: Any) -> Any:
        """The posterior after other labels under the hyper-parameters in use, ``n x D`` inputs and ``n`` numbers."""
        inputs, numbers = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        return self.at(inputs, numbers, self.prior_, self.learned_at_).posterior

    @property
    def posterior(self) -> Any:
        """The posterior as a value."""
        raise NotImplementedError

    @property
    def n_labels_(self) -> int:
        """Labels learned from."""
        return len(self.y_)

    def latent(self, X: Any) -> tuple[Floats, Floats]:
        """Mean and variance of the noise-free value at each row, ``m`` each."""
        check_is_fitted(self, "state_")
        features = self.features(prediction_inputs(self, X))
        mean, variance = np.empty(len(features)), np.empty(len(features))
        for first in range(0, len(features), _ROWS):
            part = features[first : first + _ROWS]
            whitened = self.state_.whiten(part)
            mean[first : first + _ROWS] = self.state_.mean(part, whitened)
            variance[first : first + _ROWS] = self.state_.variance(part, whitened)
        centre, scale = self.prior_.scaling
        return centre + scale * mean, scale**2 * variance

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict labels.

        Args:
            X: Inputs, ``m x D``.
            return_std: Whether to return the standard deviation of the label too, its noise included.

        Returns:
            Means, ``m``; with ``return_std`` a pair of means and standard deviations.
        """
        mean, variance = self.latent(X)
        if not return_std:
            return mean
        return mean, np.sqrt(variance + self.prior_.scaling.scale**2 * self.state_.noise)

    def _learn(self, X: Floats, y: Floats, previous: RegressionPrior | None) -> None:
        self._set(X, y, self.prior(self.features(X), y, previous), len(y))

    def _set(self, X: Floats, y: Floats, prior: RegressionPrior, learned_at: int, state: Any = None) -> None:
        self.X_, self.y_, self.prior_, self.learned_at_, self.state_ = X, y, prior, learned_at, state
        if state is not None:
            return
        features = self.features(X)
        self.state_ = prior.start(features.shape[1], len(y))
        self.state_.learn(features, prior.scaling.apply(y))


# Fewer random labels than this do not decide between hyper-parameters.
_FEWEST_RANDOM: Final = 5
# Of more labels than this some are looked at, evenly spread.
_MOST_COMPARED: Final = 1000


def preferred(previous: Any, new: Any, features: Floats, y: Floats, random: Any) -> Any:
    r"""Return those of two sets of hyper-parameters that predict the random labels better, each without itself.

    .. math:: \sum_{i\ \mathrm{random}} \log N(y_i; \mu_{-i}, v_{-i}) + \log p(\theta)

    Labels that the model chose are not typical of the pool. So the marginal likelihood of all labels can prefer
    hyper-parameters that are worse there; labels drawn at random cannot be misled in this way.

    Args:
        previous: The hyper-parameters in use, or None.
        new: Those learned from these labels.
        features: ``n x D``.
        y: Labels, ``n``.
        random: Which of them were drawn at random, ``n``; None if that is not known.
    """
    if previous is None or random is None or np.count_nonzero(random) < _FEWEST_RANDOM:
        return new
    if len(y) > _MOST_COMPARED:
        rows = np.unique(np.linspace(0, len(y) - 1, _MOST_COMPARED).astype(int))
        features, y, random = features[rows], y[rows], random[rows]

    def score(prior: RegressionPrior) -> float:
        mean, variance = prior.left_out(features, y)
        density = -0.5 * ((y - mean) ** 2 / variance + np.log(variance))
        return float(density[random].sum()) + prior.log_density(features, y)

    return new if score(new) >= score(previous) else previous


def scaling_of(y: Floats, wanted: bool) -> Scaling:
    """Mean and deviation of the labels at hand; or nothing, where it is not wanted.

    Examples:
        >>> scaling_of(np.array([1.0, 3.0]), True)
        Scaling(centre=2.0, scale=1.0)
    """
    if not wanted:
        return Scaling()
    scale = float(y.std())
    # Equal labels have no deviation but rounding.
    return Scaling(float(y.mean()), scale if scale > 1e-12 * float(np.abs(y).max(initial=0.0)) else 1.0)
