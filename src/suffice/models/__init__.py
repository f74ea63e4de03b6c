"""The Bayesian models of the paper as scikit-learn estimators that learn one label at a time."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from suffice.models.deep.network import DropoutNetwork
    from suffice.models.kernels import GaussianKernel, KernelFeatures
    from suffice.models.logistic import BayesianLogistic
    from suffice.models.principal import PrincipalFeatures
    from suffice.models.regression import BayesianRidge, GaussianProcess, RadialBasis

__all__ = [
    "BayesianLogistic",
    "BayesianRidge",
    "DropoutNetwork",
    "GaussianKernel",
    "GaussianProcess",
    "KernelFeatures",
    "PrincipalFeatures",
    "RadialBasis",
]

# Imported when first used: names and descriptions of models (suffice.models.factory) do not need scikit-learn.
_LAZY_NAMES = {
    "BayesianLogistic": "logistic",
    "BayesianRidge": "regression",
    "DropoutNetwork": "deep.network",
    "GaussianKernel": "kernels",
    "GaussianProcess": "regression",
    "KernelFeatures": "kernels",
    "PrincipalFeatures": "principal",
    "RadialBasis": "regression",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"suffice.models.{_LAZY_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
