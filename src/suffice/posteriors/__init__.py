"""Posteriors as values: distributions of a model's parameters at one step of labelling.

Old and new posterior are two immutable objects; :func:`suffice.kl` compares them.
"""

from suffice.posteriors.distributions import (
    Draws,
    DropoutLayer,
    DropoutPosterior,
    Gaussian,
    GaussianProcessPosterior,
    IndependentPosteriors,
    as_posterior,
    caveat,
)
from suffice.posteriors.fitted_models import PosteriorPair, fitted_posterior, posterior_pair

__all__ = [
    "Draws",
    "DropoutLayer",
    "DropoutPosterior",
    "Gaussian",
    "GaussianProcessPosterior",
    "IndependentPosteriors",
    "PosteriorPair",
    "as_posterior",
    "caveat",
    "fitted_posterior",
    "posterior_pair",
]
