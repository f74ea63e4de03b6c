"""A fitted model together with a pool: the model's own inputs of items, and the results of a caller's function."""

from collections.abc import Callable
from copy import copy, deepcopy
from typing import Any

import numpy as np
from scipy.sparse import issparse

from suffice.acquisition import Indices
from suffice.engines.disk_rows import DiskRows
from suffice.errors import InvalidTypeError, InvalidValueError, SufficeError

#: ``predict(model, X)`` of a caller: class probabilities, or a mean and a standard deviation.
Predict = Callable[[Any, Any], Any]


class PoolRows:
    """The rows of a pool of any kind.

    Args:
        X: A numpy array, a pandas or polars DataFrame, a pyarrow Table, a sparse matrix, a data set with ``select``
            (Hugging Face), a list of texts, or anything else with a length whose items can be selected by number. It is
            not copied.

    Raises:
        InvalidTypeError: It has no length or no items.
        InvalidValueError: It is empty.

    Examples:
        >>> PoolRows(["good", "bad", "fine"]).rows([2, 0])
        ['fine', 'good']
    """

    def __init__(self, X: Any) -> None:
        if issparse(X):
            # Not every sparse format can select rows.
            self._X, self._size = X.tocsr(), X.shape[0]
        elif isinstance(X, str | bytes | dict) or not (hasattr(X, "__len__") and hasattr(X, "__getitem__")):
            raise InvalidTypeError(
                "X_pool must be an array, a table, a sparse matrix, a list of items or a data set, not "
                f"{type(X).__name__}"
            )
        else:
            self._X, self._size = X, len(X)
        if not self._size:
            raise InvalidValueError("X_pool must have at least one item; it is empty")

    def __len__(self) -> int:
        return int(self._size)

    @property
    def whole(self) -> Any:
        """All items in the form of the pool."""
        return self._X

    def replace(self, X: Any) -> None:
        """Take a larger pool with the same items first."""
        other = PoolRows(X)
        self._X, self._size = other._X, other._size

    def rows(self, indices: Any) -> Any:
        """Some items in the form of the pool."""
        items, X = np.asarray(indices, dtype=np.intp), self._X
        if issparse(X) or isinstance(X, np.ndarray | DiskRows):
            return X[items]
        if hasattr(X, "iloc"):
            return X.iloc[items]
        origin = type(X).__module__.partition(".")[0]
        if origin in ("torch", "polars", "pyarrow"):
            # A data set of torch has items, but is not a tensor.
            whole = hasattr(X, "index_select") or origin != "torch"
            if whole:
                return X.take(items) if origin == "pyarrow" else X[items.tolist()]
        elif callable(getattr(X, "select", None)):
            return X.select(items.tolist())
        return [X[int(item)] for item in items]


class PoolModel:
    """A fitted model, the pool whose items it predicts, and the caller's function that predicts with it.

    Args:
        model: The model.
        predict: As for :class:`suffice.StopMonitor`.
        pool: The pool.

    Attributes:
        model: The model.
        predict: The caller's function, or None.
        pool: The pool.
        last_step: The last step of a pipeline, or the model itself.
        name: What to call the model.
    """

    def __init__(self, model: Any, predict: Predict | None, pool: PoolRows) -> None:
        self.model, self.predict, self.pool = model, predict, pool
        self.last_step = model.steps[-1][1] if _is_pipeline(model) else model
        # Predictions that are given in place of a model have a name for messages.
        shown = getattr(self.last_step, "shown_name", None)
        self.name: str = shown if isinstance(shown, str) else type(self.last_step).__name__

    def frozen(self) -> "PoolModel | None":
        """The same object with a copy of the model, which later fits do not change; None if it cannot be copied."""
        try:
            copied = _copy_of(self.model)
        except Exception:
            return None
        return PoolModel(copied, self.predict, self.pool)

    @property
    def function(self) -> str:
        """What predicts class probabilities, for messages."""
        return f"{self.name}.predict_proba" if self.predict is None else "predict"

    @property
    def is_pipeline(self) -> bool:
        """Whether the model is a pipeline."""
        return self.last_step is not self.model

    @property
    def transformers(self) -> list[Any]:
        """The steps of a pipeline before the last one."""
        return [step for _, step in self.model.steps[:-1]] if self.is_pipeline else []

    def rows(self, items: Any) -> Any:
        """Items in the form of the pool."""
        return self.pool.rows(items)

    def transformed(self, items: Indices) -> Any:
        """Inputs of items for the last step of a pipeline, without the names of columns."""
        X = self.pool.rows(items)
        if self.is_pipeline and len(self.model.steps) > 1:
            X = self.model[:-1].transform(X)
        return np.asarray(X) if hasattr(X, "columns") else X

    def answer(self, items: Indices) -> Any:
        """Result of the caller's function for items.

        Raises:
            InvalidValueError: It is a tuple, and not one of a mean and a standard deviation.
        """
        assert self.predict is not None
        answer = self.predict(self.model, self.pool.rows(items))
        if isinstance(answer, tuple):
            if len(answer) != 2:
                raise InvalidValueError(f"predict must return (mean, std) for numbers, not {len(answer)} values")
            return tuple(map(as_array, answer))
        return as_array(answer)


def as_array(answer: Any) -> Any:
    """A tensor as an array; everything else unchanged."""
    return answer.detach().cpu().numpy() if hasattr(answer, "detach") else answer


def require_fitted(model: Any, try_it: Callable[[], Any]) -> None:
    """Raise an error if a model is a class, or an estimator that is not fitted.

    Wrappers of other packages do not always show that they are fitted. They are if they predict.

    Args:
        model: The model.
        try_it: Predicts an item.

    Raises:
        InvalidTypeError: It is a class.
        SufficeError: It is not fitted.
    """
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if isinstance(model, type):
        raise InvalidTypeError(f"model must be a fitted model, not the class {model.__name__}; call fit(X, y) first")
    if not (hasattr(model, "fit") and hasattr(model, "get_params")):
        return
    try:
        check_is_fitted(model)
    except NotFittedError:
        try:
            try_it()
        # An estimator of any package that is not fitted can fail in any way.
        except Exception:
            raise SufficeError(f"this {type(model).__name__} is not fitted yet; call fit(X, y) first") from None


def _is_pipeline(model: Any) -> bool:
    from sklearn.pipeline import Pipeline

    return isinstance(model, Pipeline)


def has_method(model: Any, name: str) -> bool:
    """Whether a model has a method; a method that is unavailable with the present settings counts as absent."""
    return callable(getattr(model, name, None))


def is_forest(model: Any) -> bool:
    """Whether a model is a forest of scikit-learn, which is faster tree by tree; a subclass may predict otherwise."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

    return type(model) in (RandomForestClassifier, ExtraTreesClassifier)


def _copy_of(model: Any) -> Any:
    """A copy that later fits of the model do not change."""
    if not is_forest(model):
        return deepcopy(model)
    # Trees are never changed; only their list grows, with warm_start.
    twin = copy(model)
    twin.estimators_ = list(model.estimators_)
    return twin
