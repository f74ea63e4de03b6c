"""Predictions of classifiers for items of the pool: probabilities, committee votes, gains, expected error."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_softmax

from suffice.acquisition import Indices, bald, class_scores
from suffice.engines.cross_entropy import expected_softplus
from suffice.models.predictive import as_numbers, exponentials, moderated_logits, probabilities, weight_draws
from suffice.special import Floats

# Draws by which the error of many classes is averaged; always the same ones.
_DRAWS = 32


class LaplacePredictor(NamedTuple):
    """Predictions of a Laplace posterior on rows of features.

    Attributes:
        posterior: Of two classes or many.
        features: Of all items, ``m x J``.
        columns: Which code each column is of; -1 for a class that no label has any more, which has no probability.
            While one class is met, a second column stands for whatever else there may be.
    """

    posterior: Any
    features: Floats
    columns: list[int]

    def probabilities(self, rows: Indices) -> Floats:
        """Averaged probabilities by MacKay's formula, ``n x K``."""
        found = probabilities(moderated_logits(self.posterior, self.features[rows]))
        return np.column_stack([found[:, code] if code >= 0 else np.zeros(len(found)) for code in self.columns])

    def votes(self, rows: Indices, members: int) -> Any:
        """The likeliest class under each of several draws of the weights, always of the same random numbers."""
        features = self.features[rows]
        place = np.array([self.columns.index(code) for code in range(1 + max(self.columns))])
        drawn = weight_draws(self.posterior, members)
        if drawn.ndim == 2:
            return place[(drawn @ features.T > 0.0).astype(np.intp)]
        return place[np.stack([(features @ weights.T).argmax(axis=1) for weights in drawn])]

    def gains(self, rows: Indices) -> Floats:
        """Information gain of each label (BALD)."""
        return class_scores(self.posterior, self.features[rows], "bald")

    def expected_error(self, rows: Indices) -> float:
        r"""Expected cross entropy where labels fall as predicted, :math:`E_w[-\sum_k \bar p_k \log p_k(w)]`."""
        features = self.features[rows]
        averaged = probabilities(moderated_logits(self.posterior, features))
        if averaged.shape[1] == 2:
            mean, variance = self.posterior.latent(features)
            return float((expected_softplus(mean, variance) - averaged[:, 1] * mean).mean())
        drawn = weight_draws(self.posterior, _DRAWS)
        losses = [-(averaged * log_softmax(features @ weights.T, axis=1)).sum(axis=1).mean() for weights in drawn]
        return float(np.mean(losses))


class SampledPredictor(NamedTuple):
    """Predictions of a network from posterior samples.

    Attributes:
        log_draws: Log probabilities of some items, ``n x draws x K``, with the same masks every time.
    """

    log_draws: Callable[[Indices], Any]

    def probabilities(self, rows: Indices) -> Floats:
        """Probabilities averaged over the draws, ``n x K``."""
        return as_numbers(exponentials(self.log_draws(rows)).mean(1))

    def votes(self, rows: Indices, members: int) -> Any:
        """The likeliest class in each of the first draws."""
        return as_numbers(self.log_draws(rows))[:, :members].argmax(axis=2).T

    def gains(self, rows: Indices) -> Floats:
        """Information gain of each label (BALD)."""
        return np.asarray(bald(exponentials(self.log_draws(rows))))

    def expected_error(self, rows: Indices) -> float:
        r"""Expected cross entropy where labels fall as predicted, :math:`E_w[-\sum_k \bar p_k \log p_k(w)]`."""
        logs = as_numbers(self.log_draws(rows))
        averaged = np.exp(logs).mean(axis=1)
        return float(-(averaged * logs.mean(axis=1)).sum(axis=1).mean())
