"""Two small Bayesian models, linear in the inputs, for demonstrations: exact, and simple enough to read at a glance."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.special import expit

from suffice.criteria import Step
from suffice.divergence import history
from suffice.linalg import cholesky, solve_lower
from suffice.posteriors import Gaussian
from suffice.special import Floats


class SmallModel(Protocol):
    """What the demonstration needs of a model."""

    def learn(self, X: Floats, y: Floats, initial: int) -> list[Step]:
        """Learn from all labels so far; return the steps that the rule has not seen, or all if the past changed."""

    def score(self, X: Floats) -> Floats:
        """How useful the label of each row would be."""

    def error(self, X: Floats, y: Floats) -> float:
        """Error of the predictions for labelled rows."""


def with_constant(X: Floats) -> Floats:
    """The inputs with a column of ones in front."""
    return np.column_stack([np.ones(len(X)), X])


@dataclass
class LinearRegression:
    """``y = w'x + noise`` with ``w ~ N(0, I/alpha)``, both scales learned from the labels bought, and no others.

    They are learned again whenever the labels have doubled. Both posteriors of a step must share one prior, so after
    that the whole history is replayed under the new one: :meth:`learn` then returns every step from the first.

    Reference: [IshibashiHino2021] section 5.2, model 1.
    """

    alpha: float = 1.0
    noise: float = 1.0
    centre: float = 0.0
    scale: float = 1.0
    learned_at: int = 0
    mean: Floats = field(default_factory=lambda: np.zeros(0))
    factor: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def learn(self, X: Floats, y: Floats, initial: int) -> list[Step]:
        """Update the posterior; relearn the scales on doubling."""
        features, replay = with_constant(X), len(y) >= 2 * self.learned_at
        if replay:
            self._learn_scales(features, y)
        target = (y - self.centre) / self.scale
        pair = history(features @ features.T / self.alpha, target, self.noise)
        precision = features.T @ features / self.noise + self.alpha * np.eye(features.shape[1])
        self.factor = cholesky(precision, "the precision of the weights")
        self.mean = np.asarray(np.linalg.solve(precision, features.T @ target / self.noise), dtype=np.float64)
        first = initial if replay else len(y) - 1
        return [
            Step(n_labelled=n + 1, kl_new_old=float(pair.new_old[n]), kl_old_new=float(pair.old_new[n]))
            for n in range(first, len(y))
        ]

    def score(self, X: Floats) -> Floats:
        """Predictive variance."""
        return np.asarray((solve_lower(self.factor, with_constant(X).T) ** 2).sum(axis=0))

    def error(self, X: Floats, y: Floats) -> float:
        """Root mean squared error, in the target's own units."""
        predicted = self.centre + self.scale * (with_constant(X) @ self.mean)
        return float(np.sqrt(np.mean((y - predicted) ** 2)))

    def _learn_scales(self, features: Floats, y: Floats) -> None:
        """Evidence fixed point for prior precision and noise; the target is standardised by the same labels."""
        self.learned_at = len(y)
        self.centre, self.scale = float(y.mean()), float(y.std()) or 1.0
        target = (y - self.centre) / self.scale
        gram, moment = features.T @ features, features.T @ target
        eigenvalues = np.maximum(np.linalg.eigvalsh(gram), 0.0)
        for _ in range(50):
            weights = np.linalg.solve(gram / self.noise + self.alpha * np.eye(len(gram)), moment / self.noise)
            determined = float(np.sum(eigenvalues / (eigenvalues + self.alpha * self.noise)))
            residual = float(np.sum((target - features @ weights) ** 2))
            self.alpha = float(np.clip(determined / (weights @ weights), 1e-3, 1e6))
            self.noise = float(np.clip(residual / (len(y) - determined), 1e-3, 1e3))


@dataclass
class LogisticRegression:
    """``p(y = 1) = sigmoid(w'x)`` with ``w ~ N(0, I/alpha)`` and Laplace's approximation of the posterior.

    Reference: [IshibashiHino2021] section 5.2, model 2 (where the covariance is the inverse of the paper's ``H``).
    """

    alpha: float = 1.0
    posterior: Gaussian | None = None
    weights: Floats = field(default_factory=lambda: np.zeros(0))

    def learn(self, X: Floats, y: Floats, initial: int) -> list[Step]:
        """Newton's method from the last weights."""
        features = with_constant(X)
        if not len(self.weights):
            self.weights = np.zeros(features.shape[1])
        for _ in range(100):
            gradient, information = self._derivatives(features, y)
            if np.linalg.norm(gradient) <= 1e-10 * (1.0 + len(y)):
                break
            self.weights = self.weights - np.linalg.solve(information, gradient)
        old, self.posterior = self.posterior, Gaussian(self.weights, precision=information)
        if old is None or len(y) <= initial:
            return []
        return [Step.between(old, self.posterior, n_labelled=len(y))]

    def score(self, X: Floats) -> Floats:
        """Closeness to even odds: the order is that of the predictive entropy."""
        return -np.abs(with_constant(X) @ self.weights)

    def error(self, X: Floats, y: Floats) -> float:
        """Mean cross entropy."""
        logits = with_constant(X) @ self.weights
        return float(np.mean(np.logaddexp(0.0, np.where(y > 0.5, -logits, logits))))

    def _derivatives(self, features: Floats, y: Floats) -> tuple[Floats, Floats]:
        p = expit(features @ self.weights)
        gradient = features.T @ (p - y) + self.alpha * self.weights
        information = (features * (p * (1.0 - p))[:, None]).T @ features + self.alpha * np.eye(features.shape[1])
        return gradient, information
