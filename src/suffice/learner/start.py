"""From a model and a pool to the course of a run: pipelines taken apart, arguments checked."""

from copy import deepcopy
from typing import Any, NamedTuple, cast
from zlib import crc32

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from suffice.acquisition import Indices
from suffice.arguments import whole
from suffice.engines.memory import require_memory
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.learner.classes import ClassCourse
from suffice.learner.course import Course, Setting
from suffice.learner.facts import COUNTED, OF_CLASSES, OF_NETWORKS, OF_NUMBERS, VALIDATED
from suffice.learner.gaussian import GaussianCourse
from suffice.learner.networks import NetworkCourse
from suffice.models import DropoutNetwork
from suffice.models.inputs import as_labels, column_names, require_finite
from suffice.models.logistic import BayesianLogistic
from suffice.models.regression import GaussianRegressor
from suffice.special import Floats


class Prepared(NamedTuple):
    """A model taken apart: what transforms inputs, fitted on the pool; and the Bayesian model itself."""

    transform: Any
    model: Any
    name: str = "model"
    columns: tuple[str, ...] = ()

    def inputs(self, X: Any, name: str) -> Floats:
        """Inputs as the Bayesian model takes them, checked."""
        names = column_names(X)
        given = X if self.transform is None else self.transform.transform(X)
        if issparse(given):
            require_memory(8 * given.shape[0] * given.shape[1], f"{name} with all its zeros")
            given = given.toarray()
        # Networks compute in single precision, and take rows of any shape.
        deep = isinstance(self.model, DropoutNetwork)
        try:
            # A copy: the caller may write to what is his.
            array: Any = np.array(given, dtype=np.float32 if deep else np.float64)
        except (TypeError, ValueError):
            raise InvalidValueError(
                f"{name} must be a table of numbers; put what turns it into numbers before the model, in a Pipeline"
            ) from None
        if array.ndim < 2 or (array.ndim > 2 and not deep) or not array.size:
            raise InvalidValueError(f"{name} must be a table of at least one row, but its shape is {array.shape}")
        require_finite(array.reshape(len(array), -1), names if self.transform is None else None, name)
        return cast(Floats, array)

    def joined(self, fitted: Any) -> Any:
        """The fitted model with its transformers in front again."""
        if self.transform is None:
            if self.columns:
                fitted.feature_names_in_ = np.array(self.columns, dtype=object)
            return fitted
        return Pipeline([*deepcopy(self.transform.steps), (self.name, fitted)])


def prepare(model: Any, X_pool: Any) -> Prepared:
    """Take a pipeline apart and fit its transformers on the pool, which needs no label; a bare model stays as it is."""
    if not hasattr(model, "get_params"):
        raise _not_a_model(model)
    if isinstance(model, Pipeline):
        *steps, (name, last) = model.steps
        transform = clone(Pipeline(steps)).fit(X_pool) if steps else None
        return Prepared(transform, clone(last), name)
    return Prepared(None, clone(model), columns=tuple(column_names(X_pool) or ()))


def new_course(model: Any, setting: Setting) -> Course:
    """The course that fits the model."""
    if isinstance(model, GaussianRegressor):
        return GaussianCourse(model, setting)
    if isinstance(model, BayesianLogistic):
        return ClassCourse(model, setting)
    if isinstance(model, DropoutNetwork):
        return NetworkCourse(model, setting)
    raise _not_a_model(model)


def available_facts(model: Any, *, validated: bool) -> frozenset[str]:
    """The fields of a step that a loop with this model can tell, besides divergences."""
    if isinstance(model, GaussianRegressor):
        told = OF_NUMBERS
    else:
        told = OF_NETWORKS if isinstance(model, DropoutNetwork) else OF_CLASSES
    return told | COUNTED | (VALIDATED if validated else frozenset())


def kind_of(model: Any) -> str:
    """What a loop with this model is called in an error."""
    return "a loop of regression" if isinstance(model, GaussianRegressor) else "a loop of classification"


def labelled_set(prepared: Prepared, given: Any, width: int, names: tuple[str, str]) -> tuple[Floats, Any] | None:
    """Inputs and labels of a test or validation set as the model takes them, or None where neither is given.

    Raises:
        InvalidValueError: One is there without the other, or they do not fit.
    """
    X, y = given
    if X is None and y is None:
        return None
    if X is None or y is None:
        raise InvalidValueError(f"{names[0]} and {names[1]} belong together: give both, or neither")
    inputs = prepared.inputs(X, names[0])
    if inputs.shape[1] != width:
        raise InvalidValueError(f"{names[0]} has {inputs.shape[1]} features and X_pool has {width}; they must match")
    return inputs, known_labels(y, len(inputs), names[1], names[0])


def validation_set(prepared: Prepared, given: Any, width: int) -> tuple[Floats, Any] | None:
    """The validation set as the model takes it, or None where there is none."""
    if given is None:
        return None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidValueError("validation must be a pair of inputs and labels, (X, y)")
    return labelled_set(prepared, given, width, ("the X of validation", "the y of validation"))


def known_labels(y: Any, rows: int, name: str, beside: str) -> Any:
    """Labels as an array, one for each row, or an error that names them."""
    labels = np.asarray(as_labels(y))
    if labels.ndim != 1 or len(labels) != rows:
        raise InvalidValueError(
            f"{name} must hold one label for each of the {rows} rows of {beside}; its shape is {labels.shape}"
        )
    return labels


def label_costs(costs: Any, size: int) -> Floats:
    """What the label of each item costs: 1 each if nothing is said."""
    if costs is None:
        return np.ones(size)
    try:
        found = np.broadcast_to(np.asarray(costs, dtype=np.float64), (size,))
    except (TypeError, ValueError):
        found = np.full(size, np.nan)
    if not (found >= 0.0).all() or not np.isfinite(found).all():
        raise InvalidValueError(f"costs must be one number, or one for each of the {size} items, none below 0")
    return np.array(found)


def _not_a_model(model: Any) -> InvalidTypeError:
    return InvalidTypeError(
        f"{type(model).__name__} is not a model that can be followed; use one of suffice.models, alone or last in a "
        "Pipeline. For any other model, feed a rule yourself: suffice.Step.between(old, new, n_labelled=n) for "
        "posteriors, suffice.Step(n_labelled=n, **suffice.criteria.pool_facts(p)) for probabilities"
    )


def generator(seed: Any) -> np.random.Generator:
    """The randomness that a seed stands for."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(whole(seed, "seed", least=0))


def seed_name(seed: Any) -> int | str:
    """How a record names the seed."""
    if not isinstance(seed, np.random.Generator):
        return int(seed)
    return f"{seed} at state {crc32(repr(seed.bit_generator.state).encode()):08x}"


def default_acquisition(model: Any) -> str:
    """What is asked for where nothing is said: variance for numbers, entropy for classes, BatchBALD for networks."""
    if isinstance(model, DropoutNetwork):
        return "batchbald"
    return "variance" if isinstance(model, GaussianRegressor) else "entropy"


def first_items(initial: Any, size: int, rng: np.random.Generator) -> Indices:
    """The items labelled first: so many at random, or those given.

    Raises:
        InvalidValueError: There are not so many, or an index is out of range or comes twice.
    """
    if isinstance(initial, int | np.integer) and not isinstance(initial, bool):
        if not 1 <= initial <= size:
            raise InvalidValueError(
                f"initial is {initial} labels, but the pool has {size} rows; it must be from 1 to {size}"
            )
        return np.asarray(rng.permutation(size)[: int(initial)])
    return checked_indices(initial, size, "initial")


def checked_indices(indices: Any, size: int, name: str) -> Indices:
    """Return indices into a pool as an array, or say what is wrong with them."""
    array = np.atleast_1d(np.asarray(indices))
    if array.dtype.kind not in "iu" or array.ndim != 1 or not len(array):
        raise InvalidValueError(f"{name} must be indices into the pool, whole numbers, not {indices!r}")
    bad = array[(array < 0) | (array >= size)]
    if len(bad):
        raise InvalidValueError(f"{name} holds {bad[0]}, but the pool has items 0 to {size - 1}")
    if len(np.unique(array)) < len(array):
        raise InvalidValueError(f"{name} holds an item twice")
    return array.astype(np.intp)


def number_type(dtype: Any) -> Any:
    """Return the number type that a pool is kept in, or say which there are."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if found not in (np.float64, np.float32):
        raise InvalidValueError(f"dtype must be float64 or float32, not {dtype!r}")
    return found
