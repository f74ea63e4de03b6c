"""Posteriors as values: what is believed about a model's parameters at one moment of labelling.

Old and new posterior are two objects that never change; :func:`suffice.kl` compares them.
"""

from suffice.posteriors.convert import as_posterior, caveat
from suffice.posteriors.draws import Draws
from suffice.posteriors.dropout import DropoutLayer, DropoutNetwork
from suffice.posteriors.gaussian import Gaussian
from suffice.posteriors.process import GaussianProcess

__all__ = ["Draws", "DropoutLayer", "DropoutNetwork", "Gaussian", "GaussianProcess", "as_posterior", "caveat"]
