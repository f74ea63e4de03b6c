"""Draws of PyMC, NumPyro, Stan and others as posteriors whose divergence is estimated."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from suffice.arguments import floats
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.numerics import Floats
from suffice.posteriors import Draws

__all__ = ["posterior_draws"]


def posterior_draws(
    result: Any,
    variables: Iterable[str] | None = None,
    *,
    log: Iterable[str] = (),
    method: Literal["gaussian", "knn"] = "gaussian",
    k: int = 5,
) -> Draws:
    """The posterior draws of a sampler, one parameter vector per row, for :func:`suffice.kl` and ``Step.between``.

    The columns are the variables in alphabetical order, each flattened. The posteriors before and after a label must
    have the same variables of the same sizes: leave out variables that have one value for each label, and those that
    are computed from others, because a Gaussian fit needs columns that do not determine each other.

    Args:
        result: What the sampler returned: an ``InferenceData`` or ``DataTree`` of ArviZ with a group ``posterior``
            (PyMC, CmdStanPy and NumPyro by way of ArviZ), a ``Dataset`` of xarray with the dimensions ``chain`` and
            ``draw``, an ``MCMC`` of NumPyro or another object with ``get_samples()``, or a mapping of names to arrays
            whose first axis is the draw.
        variables: Names of the variables; all if left out.
        log: Names of variables that are above 0, such as standard deviations. Their logarithms are used. The divergence
            is the same in theory, and a Gaussian fits better.
        method: How :func:`suffice.kl` estimates the divergence, see :class:`suffice.posteriors.Draws`.
        k: Which neighbour, for ``"knn"``.

    Raises:
        InvalidTypeError: It is none of these.
        InvalidValueError: A variable is unknown, not finite, or not above 0 where it must be; or there are too few
            draws.

    Examples:
        >>> import numpy as np, suffice as sf
        >>> rng = np.random.default_rng(0)
        >>> old, new = ({"b": rng.normal(m, 1.0, (4000, 2)), "s": rng.lognormal(size=4000)} for m in (0.0, 0.1))
        >>> step = sf.Step.between(posterior_draws(old, log=["s"]), posterior_draws(new, log=["s"]), n_labelled=20)
        >>> 0.005 < step.kl_new_old < 0.02
        True
        >>> posterior_draws(new, ["b"])
        Draws(4000 draws of 2 parameters, method='gaussian')
    """
    arrays = _arrays(result)
    chosen = sorted(arrays) if variables is None else sorted(_names(variables, "variables"))
    logarithms = set(_names(log, "log"))
    unknown = [name for name in [*chosen, *sorted(logarithms)] if name not in arrays]
    if unknown:
        raise InvalidValueError(f"there is no variable {unknown[0]!r} in result; there are {', '.join(sorted(arrays))}")
    if not chosen:
        raise InvalidValueError("variables must name at least one variable")
    columns = [_column(arrays[name], name, logarithm=name in logarithms) for name in chosen]
    counts = {name: len(column) for name, column in zip(chosen, columns, strict=True)}
    if len(set(counts.values())) > 1:
        raise InvalidValueError(f"all variables must have the same number of draws; they have {counts}")
    return Draws(np.concatenate(columns, axis=1), method=method, k=k)


def _names(given: Any, argument: str) -> list[str]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidTypeError(f"{argument} must be a list of names, not {given!r}")
    return list(dict.fromkeys(map(str, given)))


def _arrays(result: Any) -> dict[str, Any]:
    """The draws of each variable; the first axis is the draw."""
    if isinstance(result, Mapping) and not hasattr(result, "data_vars") and not _has_group(result):
        return {str(name): values for name, values in result.items()}
    if hasattr(result, "get_samples"):
        samples = result.get_samples()
        if isinstance(samples, Mapping):
            return {str(name): values for name, values in samples.items()}
        raise InvalidTypeError("result.get_samples() must return a mapping of names to arrays; give such a mapping")
    data = result["posterior"] if _has_group(result) else result
    if not hasattr(data, "data_vars"):
        raise InvalidTypeError(
            "result must be what a sampler returned (with a group posterior, or get_samples) or a mapping of names to "
            f"arrays, not {type(result).__name__}"
        )
    return {str(name): _flattened(values, str(name)) for name, values in data.data_vars.items()}


def _has_group(result: Any) -> bool:
    """Whether this is a tree of groups of ArviZ with a group ``posterior``."""
    return hasattr(result, "posterior") and hasattr(result.posterior, "data_vars")


def _flattened(values: Any, name: str) -> Any:
    """Draws of all chains, one after another."""
    if not {"chain", "draw"} <= set(values.dims):
        raise InvalidValueError(f"{name} must have the dimensions chain and draw; it has {', '.join(values.dims)}")
    array = np.asarray(values.transpose("chain", "draw", ...))
    return array.reshape(array.shape[0] * array.shape[1], *array.shape[2:])


def _column(values: Any, name: str, *, logarithm: bool) -> Floats:
    array = floats(values, name)
    if array.ndim == 0:
        raise InvalidValueError(f"{name} must have an axis of draws; it is one number")
    table = array.reshape(len(array), -1)
    if not np.isfinite(table).all():
        raise InvalidValueError(f"{name} has a draw that is not finite")
    if not logarithm:
        return table
    if not (table > 0.0).all():
        raise InvalidValueError(f"{name} has a draw that is not above 0; leave it out of log")
    return np.asarray(np.log(table))
