"""The Bayesian models of the paper as scikit-learn estimators that learn one label at a time."""

from suffice.models.basis import RadialBasis
from suffice.models.deep.network import DropoutNetwork
from suffice.models.kernels import GaussianKernel
from suffice.models.logistic import BayesianLogistic
from suffice.models.process import GaussianProcess
from suffice.models.ridge import BayesianRidge

__all__ = ["BayesianLogistic", "BayesianRidge", "DropoutNetwork", "GaussianKernel", "GaussianProcess", "RadialBasis"]
