"""Predictions of any fitted model for items of any pool: class probabilities, committees, means and deviations."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.sparse import issparse

from suffice.acquisition import Indices, bald
from suffice.errors import InvalidTypeError, InvalidValueError, SufficeError
from suffice.learner.step_inputs import ExpectedErrors, LaplacePredictor
from suffice.models.logistic import BayesianLogistic
from suffice.models.regression import GaussianRegressor
from suffice.numerics import Floats
from suffice.posteriors import PosteriorPair
from suffice.posteriors.fitted_models import ModelPrior, model_prior, same_rows

# The average of a committee may differ from the prediction of the model by rounding.
_SAME: Final = 1e-6
# Tolerance of the sum of a row of probabilities, for single precision.
_SUM_TOLERANCE: Final = 1e-3
# Members of a committee with a larger mean probability of their class than this are always certain.
_CERTAIN: Final = 0.95
# Number of items for which the predictions of all members of a committee are in memory at a time.
_ROWS: Final = 4096

#: ``predict(model, X)`` of a caller: class probabilities, or a mean and a standard deviation.
Predict = Callable[[Any, Any], Any]


class PoolRows:
    """The rows of a pool of any kind.

    Args:
        X: A numpy array, a table of pandas, polars or pyarrow, a sparse matrix, a data set with ``select`` (Hugging
            Face), a list of texts, or anything else with a length whose items can be selected by number. It is not
            copied.

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

    def rows(self, indices: Any) -> Any:
        """Some items in the form of the pool."""
        items, X = np.asarray(indices, dtype=np.intp), self._X
        if issparse(X) or isinstance(X, np.ndarray):
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


class NumberPredictions(NamedTuple):
    """Predicted numbers of some items.

    Attributes:
        mean: Predictions, ``N``.
        variance: Variances of the labels, ``N``.
        latent: Variances of the noise-free values, ``N``; None if the model does not tell noise apart.
    """

    mean: Floats
    variance: Floats
    latent: Floats | None


class KnownPosterior(NamedTuple):
    """The posterior of an update, and the data for computing it.

    Attributes:
        value: The posterior.
        prior: Hyper-parameters and transformers; None for a model whose posterior follows from more than that.
        features: Inputs of the labels.
        labels: The labels.
    """

    value: Any
    prior: ModelPrior | None = None
    features: Any = None
    labels: tuple[Any, ...] = ()


class ComparedPosteriors(NamedTuple):
    """The posterior of an update, and the pair of posteriors for its divergences.

    Attributes:
        known: That of this update.
        pair: The posteriors before and after, under the prior of this update; None if the first is not known.
        why: Why it is not known.
    """

    known: KnownPosterior
    pair: PosteriorPair | None
    why: str = ""


class FittedModel:
    """The interface of a monitor to a fitted model: its capabilities, and its predictions for items of a pool.

    Args:
        model: The model.
        predict: As for :class:`suffice.StopMonitor`.
        pool: The pool.

    Attributes:
        name: What to call the model.
        task: ``"classification"`` or ``"regression"``.
        gives_probabilities: Whether it predicts class probabilities.
        gives_deviation: Whether it predicts numbers with their standard deviations.
    """

    def __init__(self, model: Any, predict: Predict | None, pool: PoolRows) -> None:
        _require_fitted(model)
        self._model, self._predict, self._pool = model, predict, pool
        *_, self._last = [step for _, step in model.steps] if _is_pipeline(model) else [model]
        self.name = type(self._last).__name__
        if predict is not None:
            answer = self._answer(np.array([0]))
            self.gives_deviation = isinstance(answer, tuple)
            self.gives_probabilities = not self.gives_deviation
            self.task = "regression" if self.gives_deviation else "classification"
            return
        self.gives_probabilities = _has_method(model, "predict_proba")
        self.task = "classification" if self.gives_probabilities or hasattr(model, "classes_") else "regression"
        self.gives_deviation = self.task == "regression" and _returns_deviation(self._last)

    def frozen(self) -> "FittedModel | None":
        """The same object with a copy of the model, which later fits do not change; None if it cannot be copied."""
        try:
            copied = _copy_of(self._model)
        except Exception:
            return None
        twin = object.__new__(FittedModel)
        twin.__dict__.update(self.__dict__, _model=copied)
        twin._last = copied.steps[-1][1] if _is_pipeline(copied) else copied
        return twin

    @property
    def model(self) -> Any:
        """The model itself."""
        return self._model

    @property
    def last_step(self) -> Any:
        """The last step of a pipeline, or the model itself."""
        return self._last

    @property
    def transformers(self) -> list[Any]:
        """The steps of a pipeline before the last one."""
        return [step for _, step in self._model.steps[:-1]] if self.is_pipeline else []

    def rows(self, items: Indices) -> Any:
        """Items in the form of the pool."""
        return self._pool.rows(items)

    @property
    def is_pipeline(self) -> bool:
        """Whether the model is a pipeline."""
        return self._last is not self._model

    @cached_property
    def _prior(self) -> ModelPrior | str | None:
        """The prior of the model, the reason why there is none, or None if the type of the model is unknown."""
        try:
            return model_prior(self._model)
        except SufficeError as error:
            return str(error)

    @property
    def has_posterior(self) -> bool:
        """Whether the model has a posterior."""
        return isinstance(self._prior, ModelPrior) or self._own_posterior is not None

    @property
    def why_no_posterior(self) -> str:
        """Reason why the model has no posterior, with the remedy."""
        if isinstance(self._prior, str):
            return self._prior
        return f"suffice knows none of {self.name}; use a rule that reads predictions"

    @property
    def _own_posterior(self) -> Any:
        """The posterior of a model of suffice, or None for other models."""
        return getattr(self._model, "posterior", None) if type(self._model).__module__.startswith("suffice") else None

    def posteriors(
        self, labels: Mapping[int, Any], before: Mapping[int, Any] | None, known: KnownPosterior | None
    ) -> ComparedPosteriors:
        """The posterior of the model, and the posterior given the earlier labels with the same prior.

        Args:
            labels: All labels by item.
            before: Those of an earlier update, or None.
            known: The posterior of that update, which is used again if the prior has not changed.

        Raises:
            InvalidValueError: There is no posterior after these labels.
        """
        prior = self._prior
        if not isinstance(prior, ModelPrior):
            # A network: its weights depend on how it was trained.
            value = self._own_posterior
            return ComparedPosteriors(
                KnownPosterior(value), None if known is None else PosteriorPair(known.value, value)
            )
        place = {item: row for row, item in enumerate(dict.fromkeys([*(before or ()), *labels]))}
        features = prior.features(self._pool.rows(list(place)))
        rows = np.array([place[item] for item in labels], dtype=np.intp)
        now = rows, list(labels.values())
        why = "" if before is None else prior.absent(list(before.values()))
        if before is None or why:
            (new,) = prior.posteriors(features, [now], own=0)
            pair = None
        else:
            old_rows, old_labels = np.array([place[item] for item in before], dtype=np.intp), list(before.values())
            if (
                known is not None
                and known.prior == prior
                and known.labels == tuple(old_labels)
                and not prior.reduced(features.shape[1])
                and same_rows(known.features, features[old_rows])
            ):
                old, (new,) = known.value, prior.posteriors(features, [now], own=0)
            else:
                old, new = prior.posteriors(features, [(old_rows, old_labels), now], own=1)
            pair = PosteriorPair(old, new)
        return ComparedPosteriors(KnownPosterior(new, prior, features[rows], tuple(now[1])), pair, why)

    # Classes.

    def has_committee(self, items: Indices) -> bool:
        """Whether the model has a committee; an ensemble is tested on some items."""
        if isinstance(self._last, BayesianLogistic):
            return len(self._last.classes_) > 1
        return self._with_members(items)[1] is not None

    def classes(self, labels: Sequence[Any]) -> list[Any]:
        """The class of each column of the model's own predictions.

        Args:
            labels: All labels so far. They name the columns if the model does not: their classes in sorted order, or
                the numbers of the columns.

        Raises:
            InvalidValueError: The columns cannot be named.
        """
        found = getattr(self._model, "classes_", None)
        named = None if found is None else np.asarray(found).tolist()
        if self._predict is None:
            if named is None or (named and isinstance(named[0], list)):
                raise InvalidValueError(f"{self.name} must predict one class for each item and have classes_")
            return list(named)
        width = self._table(self._answer(np.array([0])), 1).shape[-1]
        if named is not None and len(named) == width:
            return list(named)
        seen = sorted(set(labels), key=lambda label: (str(type(label)), label))
        if len(seen) == width:
            return list(seen)
        if all(isinstance(label, int) and 0 <= label < width for label in seen):
            return list(range(width))
        raise InvalidValueError(
            f"predict returned {width} columns, and the labels are of {len(seen)} classes; give the model an attribute "
            "classes_ with the class of each column"
        )

    def probabilities(self, items: Indices, columns: Sequence[int], width: int) -> Floats:
        """Class probabilities of items, ``N x width``.

        Args:
            items: The items.
            columns: Where each column of the model goes.
            width: Number of columns of the result; 0 in those that no column goes to.
        """
        if not len(items):
            return np.zeros((0, width))
        return _placed(self._averaged(items), columns, width)

    def members(self, items: Indices, columns: Sequence[int], width: int) -> Floats | None:
        """Class probabilities by each member of a committee, ``N x K x width``; None if the model has no committee.

        A committee is what ``predict`` returns with three axes, what ``sample_proba`` of a network draws, or the
        ``estimators_`` of an ensemble, if the prediction of the ensemble is their average.
        """
        _, found = self._with_members(items if len(items) else np.array([0]))
        return None if found is None else _placed(found[: len(items)], columns, width)

    def _averaged(self, items: Indices) -> Floats:
        """Class probabilities, with the columns of the model."""
        if _is_forest(self._last):
            return self._with_members(items)[0]
        if self._predict is None:
            return self._table(self._model.predict_proba(self._pool.rows(items)), len(items))
        p = self._table(self._answer(items), len(items))
        return p.mean(axis=1) if p.ndim == 3 else p

    def _with_members(self, items: Indices) -> tuple[Floats, Floats | None]:
        """Class probabilities, and those by each member of a committee, with the columns of the model."""
        if self._predict is not None:
            p = self._table(self._answer(items), len(items))
            return (p.mean(axis=1), p) if p.ndim == 3 else (p, None)
        if _is_forest(self._last):
            return _forest_members(self._last, self.transformed(items))
        averaged, found = self._averaged(items), None
        if _has_method(self._last, "sample_proba"):
            found = np.asarray(self._last.sample_proba(self.transformed(items), seed=0), dtype=np.float64)
        elif hasattr(self._last, "estimators_"):
            found = _ensemble_members(self._last, self.transformed(items), averaged)
        return averaged, found

    def votes(self, items: Indices, columns: Sequence[int], width: int) -> Any:
        """The class that each member votes for, ``K x N``; None if the model has no committee."""
        if isinstance(self._last, BayesianLogistic) and len(columns) > 1:
            return self._laplace(items, columns, width).votes(np.arange(len(items)), 10)
        parts = [self.members(part, columns, width) for part in _parts(items)]
        if any(part is None for part in parts):
            return None
        return np.concatenate([part.argmax(axis=2).T for part in parts if part is not None], axis=1)

    def gains(self, items: Indices, columns: Sequence[int], width: int) -> Floats | None:
        """Information gain of each label in nats; None if the model has no committee."""
        if isinstance(self._last, BayesianLogistic) and len(columns) > 1:
            return self._laplace(items, columns, width).gains(np.arange(len(items)))
        parts = [self.members(part, columns, width) for part in _parts(items)]
        return None if any(part is None for part in parts) else np.concatenate([bald(part) for part in parts])

    def errors(self, items: Indices, columns: Sequence[int], width: int) -> tuple[ExpectedErrors, bool]:
        """Expected errors of items, and whether their reducible part is known; it is 0 if not.

        It is not known without a committee. It is also not known for a committee whose members are always certain, such
        as trees with pure leaves: such a committee does not distinguish noise from uncertainty about the model.
        """
        if isinstance(self._last, BayesianLogistic) and len(columns) > 1:
            return self._laplace(items, columns, width).errors(np.arange(len(items))), True
        averages, members = self._with_members(items)
        p = _placed(averages, columns, width)
        total = 1.0 - p.max(axis=1)
        if members is None or members.max(axis=2).mean() > _CERTAIN:
            return ExpectedErrors(total, np.zeros(len(p)), p), False
        averaged = members.mean(axis=1).max(axis=1)
        reducible = np.maximum(members.max(axis=2).mean(axis=1) - averaged, 0.0)
        return ExpectedErrors(total, reducible, p), True

    def _laplace(self, items: Indices, columns: Sequence[int], width: int) -> LaplacePredictor:
        """The Laplace posterior of a classifier of suffice."""
        codes = [-1] * width
        for code, column in enumerate(columns):
            codes[column] = code
        X = np.asarray(self.transformed(items), dtype=np.float64)
        return LaplacePredictor(self._last.state_, self._last.features(X), codes)

    # Numbers.

    def numbers(self, items: Indices) -> NumberPredictions:
        """Means and variances of items."""
        if not len(items):
            return NumberPredictions(np.zeros(0), np.zeros(0), np.zeros(0))
        if self._predict is not None:
            answer = self._answer(items)
        else:
            answer = self._model.predict(self._pool.rows(items), return_std=True)
        mean, deviation = (np.asarray(each, dtype=np.float64) for each in answer)
        if mean.shape != (len(items),) or deviation.shape != (len(items),):
            raise InvalidValueError(
                f"{self._who} must return a mean and a standard deviation for each of {len(items)} items; their shapes "
                f"are {mean.shape} and {deviation.shape}"
            )
        if not np.isfinite(mean).all() or not np.isfinite(deviation).all() or (deviation < 0.0).any():
            raise InvalidValueError(f"{self._who} returned a number that is not finite, or a deviation below 0")
        variance = deviation**2
        return NumberPredictions(mean, variance, self._latent(items, variance))

    def _latent(self, items: Indices, variance: Floats) -> Floats | None:
        """Variances of the noise-free values; None if the model does not provide them."""
        if self._predict is not None:
            return None
        if isinstance(self._last, GaussianRegressor):
            return np.asarray(self._last.latent(self.transformed(items))[1])
        names = {(base.__module__.partition(".")[0], base.__name__) for base in type(self._last).__mro__}
        if names & {("sklearn", "BayesianRidge"), ("sklearn", "ARDRegression")}:
            return np.asarray(np.maximum(variance - 1.0 / self._last.alpha_, 0.0))
        if ("sklearn", "GaussianProcessRegressor") in names:
            X, kernel = np.asarray(self.transformed(items)), self._last.kernel_
            # A kernel omits white noise if it is called with two arguments, and includes it with one argument.
            parts = [X[k : k + _ROWS // 8] for k in range(0, len(X), _ROWS // 8)]
            white = np.concatenate([kernel.diag(part) - np.diag(kernel(part, part)) for part in parts])
            scale = float(np.squeeze(self._last._y_train_std)) ** 2
            return np.asarray(np.maximum(variance - white * scale, 0.0))
        return None

    # Predictions in the user's classes and units.

    def predicted(self, items: Indices, labels: Sequence[Any]) -> Any:
        """The predicted class or number of each item.

        Args:
            items: The items.
            labels: All labels so far, which may name the classes.
        """
        if self._predict is None:
            return np.asarray(self._model.predict(self._pool.rows(items)))
        if self.task == "regression":
            return self.numbers(items).mean
        names = self.classes(labels)
        codes = self.probabilities(items, range(len(names)), len(names)).argmax(axis=1)
        return np.array([names[code] for code in codes.tolist()])

    @property
    def _who(self) -> str:
        return "predict" if self._predict is not None else f"{self.name}.predict"

    def answers(self, items: Indices) -> Any:
        """Result of the caller's function for items, as one array."""
        return np.asarray(self._answer(items))

    def _answer(self, items: Indices) -> Any:
        """Result of the caller's function."""
        assert self._predict is not None
        answer = self._predict(self._model, self._pool.rows(items))
        if isinstance(answer, tuple):
            if len(answer) != 2:
                raise InvalidValueError(f"predict must return (mean, std) for numbers, not {len(answer)} values")
            return tuple(each.detach().cpu().numpy() if hasattr(each, "detach") else each for each in answer)
        return answer.detach().cpu().numpy() if hasattr(answer, "detach") else answer

    def _table(self, answer: Any, rows: int) -> Floats:
        """Validated class probabilities, ``N x C`` or ``N x K x C``."""
        try:
            p = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError):
            p = np.zeros(0)
        who = "predict" if self._predict is not None else f"{self.name}.predict_proba"
        axes = (2, 3) if self._predict is not None else (2,)
        if p.ndim not in axes or p.shape[0] != rows or 0 in p.shape:
            form = "N x C or N x K x C" if self._predict is not None else "N x C"
            raise InvalidValueError(
                f"{who} must return class probabilities of shape {form} for N = {rows} items; its shape is {p.shape}"
            )
        if not (p >= -1e-9).all() or not (np.abs(p.sum(axis=-1) - 1.0) <= _SUM_TOLERANCE).all():
            raise InvalidValueError(f"{who} must return probabilities: no number below 0, and each row adds up to 1")
        return p

    def transformed(self, items: Indices) -> Any:
        """Inputs of items for the last step of a pipeline, without the names of columns."""
        X = self._pool.rows(items)
        if self.is_pipeline and len(self._model.steps) > 1:
            X = self._model[:-1].transform(X)
        return np.asarray(X) if hasattr(X, "columns") else X


def _is_pipeline(model: Any) -> bool:
    from sklearn.pipeline import Pipeline

    return isinstance(model, Pipeline)


def _has_method(model: Any, name: str) -> bool:
    """Whether a model has a method; a method that is unavailable with the present settings counts as absent."""
    return callable(getattr(model, name, None))


def _returns_deviation(model: Any) -> bool:
    try:
        return "return_std" in inspect.signature(model.predict).parameters
    except (AttributeError, TypeError, ValueError):
        return False


def _require_fitted(model: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if isinstance(model, type):
        raise InvalidTypeError(f"model must be a fitted model, not the class {model.__name__}; call fit(X, y) first")
    if not (hasattr(model, "fit") and hasattr(model, "get_params")):
        return
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise SufficeError(f"this {type(model).__name__} is not fitted yet; call fit(X, y) first") from None


def _placed(p: Floats, columns: Sequence[int], width: int) -> Floats:
    """Columns in another order, with zeros for missing columns."""
    if list(columns) == list(range(width)):
        return p
    placed = np.zeros((*p.shape[:-1], width))
    placed[..., list(columns)] = p
    return placed


def _parts(items: Indices) -> list[Indices]:
    return [items[k : k + _ROWS] for k in range(0, max(len(items), 1), _ROWS)]


def _is_forest(model: Any) -> bool:
    """Whether a model is a forest of scikit-learn, which is faster tree by tree; a subclass may predict otherwise."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

    return type(model) in (RandomForestClassifier, ExtraTreesClassifier)


def _forest_members(forest: Any, X: Any) -> tuple[Floats, Floats]:
    """Probabilities by a forest, ``N x C``, and by each of its trees, ``N x K x C``."""
    found = np.stack(_tree_probabilities(forest.estimators_, X), axis=1)
    averaged = np.zeros((found.shape[0], found.shape[2]))
    # In the order in which the forest adds its trees.
    for k in range(found.shape[1]):
        averaged += found[:, k]
    return averaged / found.shape[1], found


def _tree_probabilities(trees: Sequence[Any], X: Any) -> list[Floats]:
    """Probabilities by each of several trees. The first one validates the inputs for all of them."""
    inputs = X.astype(np.float32).tocsr() if issparse(X) else np.asarray(X, dtype=np.float32)
    first = np.asarray(trees[0].predict_proba(inputs))
    return [first, *(np.asarray(tree.predict_proba(inputs, check_input=False)) for tree in trees[1:])]


def _copy_of(model: Any) -> Any:
    """A copy that later fits of the model do not change."""
    if not _is_forest(model):
        return deepcopy(model)
    # Trees are never changed; only their list grows, with warm_start.
    twin = copy(model)
    twin.estimators_ = list(model.estimators_)
    return twin


def _ensemble_members(model: Any, X: Any, averaged: Floats) -> Floats | None:
    """Probabilities by each of the ``estimators_`` of an ensemble, ``N x K x C``, if it predicts their average."""
    members = getattr(model, "estimators_", None)
    classes = getattr(model, "classes_", None)
    if classes is None or members is None or not len(members):
        return None
    if not all(_has_method(member, "predict_proba") and hasattr(member, "classes_") for member in members):
        return None
    parts: Any = getattr(model, "estimators_features_", None)
    if parts is None and all(hasattr(member, "tree_") for member in members):
        found = _tree_probabilities(members, X)
    else:
        inputs = [X if parts is None else X[:, parts[k]] for k in range(len(members))]
        found = [np.asarray(member.predict_proba(each)) for member, each in zip(members, inputs, strict=True)]
    # Members have codes or names of classes; a member may lack some classes.
    for names in (list(range(len(classes))), np.asarray(classes).tolist()):
        known = [np.asarray(member.classes_).tolist() for member in members]
        if not all(set(each) <= set(names) for each in known):
            continue
        table = np.zeros((len(found[0]), len(found), len(names)))
        for k, (p, own) in enumerate(zip(found, known, strict=True)):
            table[:, k, [names.index(name) for name in own]] = p
        if averaged.shape == table.shape[::2] and np.abs(table.mean(axis=1) - averaged).max() <= _SAME:
            return table
    return None
