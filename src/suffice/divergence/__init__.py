"""KL divergence between two posteriors, by an open registry, and the closed forms for one more label."""

from suffice.divergence.observations import KLPair, batch, history, one_observation
from suffice.divergence.pairs import dropout_contributions
from suffice.divergence.registry import Divergence, kl, known_pairs, register_kl

__all__ = [
    "Divergence",
    "KLPair",
    "batch",
    "dropout_contributions",
    "history",
    "kl",
    "known_pairs",
    "one_observation",
    "register_kl",
]
