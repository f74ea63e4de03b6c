"""A pool and new rows of the same form, joined to a larger pool of that form."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy

from suffice.engines.disk_rows import DiskRows
from suffice.engines.worker_rows import WorkerRows
from suffice.errors import InvalidTypeError, InvalidValueError

_NUMBERS: Final = "fiub"
_SHOWN_NAMES: Final = 5


def extended_pool(X_pool: Any, X_new: Any) -> Any:
    """A pool with more rows after its own.

    Args:
        X_pool: The pool: a numpy array, a pandas or polars DataFrame, a pyarrow Table, a pandas Series, a sparse
            matrix, a tensor, a list of items, or a data set of Hugging Face.
        X_new: The new rows, in the same form.

    Raises:
        InvalidTypeError: The new rows are of another kind, or the pool cannot be extended.
        InvalidValueError: There are none, or they have another width or other columns.

    Examples:
        >>> extended_pool(["good", "bad"], ["fine"])
        ['good', 'bad', 'fine']
        >>> extended_pool(np.zeros((4, 2)), np.ones((3, 2))).shape
        (7, 2)
    """
    kind = _kind(X_pool)
    if kind not in _JOINED:
        where = "on disk" if kind == "disk" else "on the workers of a cluster" if kind == "dask" else f"a {kind}"
        raise InvalidTypeError(
            f"the pool is {where} and cannot be extended; put all rows together, start a new object with them, and "
            "give it the labels so far"
        )
    if _kind(X_new) != kind:
        raise InvalidTypeError(
            f"X_new must be rows of the same kind as the pool, {_NAMES[kind]}, not "
            f"{_NAMES.get(_kind(X_new)) or _article(type(X_new).__name__)}"
        )
    if not (X_new.shape[0] if hasattr(X_new, "shape") else len(X_new)):
        raise InvalidValueError("X_new must have at least one row; it is empty")
    return _JOINED[kind](X_pool, X_new)


def _kind(X: Any) -> str:
    """The form of a pool."""
    origin = type(X).__module__.partition(".")[0]
    if isinstance(X, DiskRows | np.memmap | str | Path):
        return "disk"
    if isinstance(X, WorkerRows) or origin in ("dask", "dask_expr"):
        return "dask"
    if scipy.sparse.issparse(X):
        return "sparse"
    if isinstance(X, np.ndarray | list | tuple | range):
        return "array" if isinstance(X, np.ndarray) else "list"
    if origin in ("pandas", "polars", "pyarrow") and hasattr(X, "shape"):
        return f"{origin} {'table' if len(X.shape) == 2 else 'series'}"
    return {"torch": "tensor", "datasets": "data set"}.get(origin, type(X).__name__)


def _article(name: str) -> str:
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _same_shape(X_pool: Any, X_new: Any) -> None:
    wanted, given = tuple(X_pool.shape[1:]), tuple(X_new.shape[1:])
    if len(X_new.shape) != len(X_pool.shape):
        raise InvalidValueError(
            f"X_new must have {len(X_pool.shape)} axes, as the pool has, and not the shape {tuple(X_new.shape)}"
        )
    if wanted == given:
        return
    if len(wanted) == 1:
        raise InvalidValueError(f"X_new has {given[0]} columns and the pool has {wanted[0]}; they must match")
    raise InvalidValueError(f"the rows of X_new have the shape {given} and those of the pool {wanted}; they must match")


def _arrays(X_pool: Any, X_new: Any) -> Any:
    kinds = [X.dtype.kind for X in (X_pool, X_new)]
    numbers = [kind in _NUMBERS for kind in kinds]
    if kinds[0] != kinds[1] and not all(numbers):
        raise InvalidTypeError(f"X_new must hold {X_pool.dtype}, as the pool does, not {X_new.dtype}")
    _same_shape(X_pool, X_new)
    # The pool keeps its precision.
    new = X_new.astype(X_pool.dtype) if kinds == ["f", "f"] else X_new
    return np.concatenate([X_pool, new])


def _sparse(X_pool: Any, X_new: Any) -> Any:
    _same_shape(X_pool, X_new)
    return scipy.sparse.vstack([X_pool.tocsr(), X_new.tocsr().astype(X_pool.dtype)], format="csr")


def _lists(X_pool: Any, X_new: Any) -> Any:
    first, others = X_pool[0], X_new
    text = isinstance(first, str)
    for place, item in enumerate(others):
        if isinstance(item, str) != text:
            wanted, came = "a text" if text else f"a {type(first).__name__}", type(item).__name__
            raise InvalidTypeError(f"item {place} of X_new must be {wanted}, as those of the pool are, not {came}")
        if not text and hasattr(first, "__len__") and hasattr(item, "__len__") and len(item) != len(first):
            raise InvalidValueError(
                f"item {place} of X_new has {len(item)} values and those of the pool have {len(first)}; they must match"
            )
    return [*X_pool, *X_new]


def _same_columns(wanted: list[Any], given: list[Any]) -> None:
    if set(wanted) == set(given) and len(wanted) == len(given):
        return
    missing, other = ([name for name in one if name not in two] for one, two in ((wanted, given), (given, wanted)))
    said = [f"misses {_listed(missing)}"] * bool(missing) + [f"has {_listed(other)}, which it has not"] * bool(other)
    raise InvalidValueError(f"X_new must have the columns of the pool; it {' and '.join(said) or 'repeats a column'}")


def _listed(names: list[Any]) -> str:
    return ", ".join(map(repr, names[:_SHOWN_NAMES])) + (", ..." if len(names) > _SHOWN_NAMES else "")


def _pandas_tables(X_pool: Any, X_new: Any) -> Any:
    import pandas as pd

    _same_columns(list(X_pool.columns), list(X_new.columns))
    return pd.concat([X_pool, X_new[list(X_pool.columns)]], ignore_index=True)


def _pandas_series(X_pool: Any, X_new: Any) -> Any:
    import pandas as pd

    return pd.concat([X_pool, X_new], ignore_index=True)


def _polars_tables(X_pool: Any, X_new: Any) -> Any:
    import polars as pl

    _same_columns(list(X_pool.columns), list(X_new.columns))
    return pl.concat([X_pool, X_new.select(X_pool.columns)], how="vertical_relaxed")


def _arrow_tables(X_pool: Any, X_new: Any) -> Any:
    pa = import_module("pyarrow")
    _same_columns(X_pool.column_names, X_new.column_names)
    return pa.concat_tables([X_pool, X_new.select(X_pool.column_names)])


def _tensors(X_pool: Any, X_new: Any) -> Any:
    import torch

    _same_shape(X_pool, X_new)
    return torch.cat([X_pool, X_new.to(X_pool)])


def _data_sets(X_pool: Any, X_new: Any) -> Any:
    datasets = import_module("datasets")
    _same_columns(X_pool.column_names, X_new.column_names)
    return datasets.concatenate_datasets([X_pool, X_new])


_JOINED: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "array": _arrays,
    "sparse": _sparse,
    "list": _lists,
    "pandas table": _pandas_tables,
    "pandas series": _pandas_series,
    "polars table": _polars_tables,
    "pyarrow table": _arrow_tables,
    "tensor": _tensors,
    "data set": _data_sets,
}
_NAMES: Final = {
    "array": "a numpy array",
    "sparse": "a sparse matrix",
    "list": "a list of items",
    "pandas table": "a pandas DataFrame",
    "pandas series": "a pandas Series",
    "polars table": "a polars DataFrame",
    "pyarrow table": "a pyarrow table",
    "tensor": "a tensor",
    "data set": "a data set of Hugging Face",
}
