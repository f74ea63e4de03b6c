"""A posterior known only by draws from it."""

from dataclasses import dataclass
from typing import Literal

from numpy.typing import ArrayLike

from suffice.arguments import whole
from suffice.errors import InvalidValueError
from suffice.posteriors.arrays import Value, frozen
from suffice.special import Floats


@dataclass(frozen=True, init=False, eq=False)
class Draws(Value):
    """Draws from a posterior (MCMC, an ensemble), and how the KL divergence between two such sets is estimated.

    The estimate is not a bound: a rule that is fed with it guarantees nothing, and its certificate says so.

    Args:
        samples: ``n x J``, one parameter vector a row.
        method: ``"gaussian"`` fits a Gaussian to each set (right when the posterior is nearly one; needs clearly more
            draws than parameters); ``"knn"`` compares distances to the ``k``-th neighbour within and across the sets
            (no shape assumed; for few parameters and distinct draws).
        k: Which neighbour, for ``"knn"``.

    Raises:
        InvalidValueError: Too few draws, a NaN, an unknown method.

    Reference: [WangKulkarniVerdu2009] for ``"knn"``.

    Examples:
        >>> import numpy as np
        >>> Draws(np.random.default_rng(0).normal(size=(100, 3)), method="gaussian")
        Draws(100 draws of 3 parameters, method='gaussian')
    """

    samples: Floats
    method: Literal["gaussian", "knn"]
    k: int

    def __init__(self, samples: ArrayLike, *, method: Literal["gaussian", "knn"], k: int = 5) -> None:
        if method not in ("gaussian", "knn"):
            raise InvalidValueError(f"method must be 'gaussian' or 'knn', not {method!r}")
        k = whole(k, "k", least=1)
        values = frozen(samples, "samples", ndim=2)
        n, size = values.shape
        needed = size + 2 if method == "gaussian" else k + 1
        if size == 0 or n < needed:
            raise InvalidValueError(
                f"samples holds {n} draws of {size} parameters; method={method!r} needs at least "
                f"{needed} draws of 1 or more parameters"
            )
        object.__setattr__(self, "samples", values)
        object.__setattr__(self, "method", method)
        object.__setattr__(self, "k", k)

    def __repr__(self) -> str:
        n, size = self.samples.shape
        neighbour = f", k={self.k}" if self.method == "knn" else ""
        return f"Draws({n} draws of {size} parameters, method={self.method!r}{neighbour})"
