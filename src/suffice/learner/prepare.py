"""Preparation of a loop: pipelines split into transformers and model, arguments validated."""

from contextlib import suppress
from copy import deepcopy
from typing import Any, NamedTuple, cast
from zlib import crc32

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from suffice.acquisition import Indices
from suffice.arguments import distinct, whole
from suffice.criteria.optimisation import REGRET_FIELDS
from suffice.engines.disk_rows import DiskRows, require_memory, rows_on_disk
from suffice.engines.worker_rows import WorkerRows, rows_on_workers
from suffice.errors import InvalidValueError, MissingExtraError, MissingInputError
from suffice.learner.backend import Backend, backend_type
from suffice.learner.step_inputs import RELEVANCE_FIELDS, SCREENING_FIELDS, VALIDATION_FIELDS
from suffice.models.inputs import SETS_OF_CLASSES, as_labels, column_names, require_finite, require_numbers
from suffice.numerics import Floats
from suffice.session.standing_stop import classes_that_may_be_missed, require_known


class PreparedModel(NamedTuple):
    """A model without its pipeline.

    Attributes:
        transform: The transformers of the pipeline, fitted on the pool; None if there are none.
        model: The Bayesian model itself.
        backend: The backend of its type.
        name: Its name in the pipeline.
        columns: Names of the columns of the pool, if it has any.
        allows_missing: Whether the model accepts NaN in its inputs.
    """

    transform: Any
    model: Any
    backend: type[Backend]
    name: str = "model"
    columns: tuple[str, ...] = ()
    allows_missing: bool = False

    def inputs(self, X: Any, name: str) -> Floats:
        """Validated inputs in the form that the model requires."""
        if isinstance(X, DiskRows):
            rows = X if self.transform is None else X.mapped(self.transform.transform)
            if rows is not X:
                rows.require_finite(name)
            # It has length and shape, and rows[indices] is an array.
            return cast(Floats, rows)
        X, names = _on_host(X), column_names(X)
        given = X if self.transform is None else self.transform.transform(X)
        if issparse(given) and self.backend.sparse_inputs:
            sparse: Any = given.tocsr().astype(self.backend.input_dtype)
            if not sparse.shape[0] or not np.isfinite(sparse.data).all():
                raise InvalidValueError(f"{name} must have at least one row and finite numbers only")
            return cast(Floats, sparse)
        if issparse(given):
            require_memory(8 * given.shape[0] * given.shape[1], f"{name} with all its zeros")
            given = given.toarray()
        require_numbers(given, name)
        try:
            # A copy: the caller may change the original.
            array: Any = np.array(given, dtype=self.backend.input_dtype)
        except (TypeError, ValueError):
            raise InvalidValueError(
                f"{name} must be a table of numbers; put what turns it into numbers before the model, in a Pipeline"
            ) from None
        if array.ndim < 2 or (array.ndim > 2 and not self.backend.any_input_shape) or not array.size:
            raise InvalidValueError(f"{name} must be a table of at least one row, but its shape is {array.shape}")
        known = np.where(np.isnan(array), 0.0, array) if self.allows_missing else array
        require_finite(known.reshape(len(array), -1), names if self.transform is None else None, name)
        return cast(Floats, array)

    def pool_inputs(self, X: Any, device: str | None) -> Floats:
        """Validated inputs of the pool; they stay on a device of torch if the backend follows them there.

        Args:
            X: The pool.
            device: Name of the device that scores it, or None.
        """
        if device is None or self.transform is not None or not self.backend.device_rows or not _is_plain_table(X):
            return self.inputs(X, "X_pool")
        from suffice.engines.device_rows import DeviceRows

        rows = DeviceRows(X, device)
        rows.require_finite("X_pool")
        # It has length and shape, and rows[indices] is an array.
        return cast(Floats, rows)

    def unfitted(self) -> Any:
        """The model as it was given, with its transformers, none of them fitted."""
        if self.transform is None:
            return clone(self.model)
        return Pipeline([*[(name, clone(step)) for name, step in self.transform.steps], (self.name, clone(self.model))])

    def joined(self, fitted: Any) -> Any:
        """The fitted model with its transformers in front again."""
        if self.transform is None:
            if self.columns:
                # Meta-estimators take the names from the estimator inside them, and do not allow setting them.
                with suppress(AttributeError):
                    fitted.feature_names_in_ = np.array(self.columns, dtype=object)
            return fitted
        return Pipeline([*deepcopy(self.transform.steps), (self.name, fitted)])


def prepare(model: Any, X_pool: Any) -> PreparedModel:
    """Split a pipeline and fit its transformers on the pool, which needs no label; a bare model is cloned.

    A pipeline with a transformer that needs labels is not split if its last step is fitted again at every step anyway.

    Raises:
        InvalidTypeError: No backend is registered for the model.
    """
    last = final_estimator(model)
    backend = backend_type(last)
    missing = backend.refits and bool(get_tags(model).input_tags.allow_nan)
    names = tuple(() if isinstance(X_pool, DiskRows) else column_names(X_pool) or ())
    if last is model:
        return PreparedModel(None, clone(model), backend, "model", names, missing)
    *steps, (name, _) = model.steps
    if isinstance(X_pool, DiskRows):
        return PreparedModel(_fitted_in_batches(steps, X_pool) if steps else None, clone(last), backend, name)
    try:
        transform = clone(Pipeline(steps)).fit(X_pool) if steps else None
    except (TypeError, ValueError):
        if not backend.refits:
            raise
        # A transformer that needs labels, or invalid inputs, which are reported by the fit of the whole pipeline.
        return PreparedModel(None, clone(model), backend, "model", names, missing)
    missing = backend.refits and bool(get_tags(last).input_tags.allow_nan)
    return PreparedModel(transform, clone(last), backend, name, allows_missing=missing)


def pool_rows(model: Any, X_pool: Any, client: Any = None) -> Any:
    """A pool on disk or on workers as rows that stay there if the model supports it; otherwise in memory.

    Args:
        model: A model, or a pipeline that ends in one.
        X_pool: Inputs of any kind. A path, a memory map and :class:`~suffice.engines.disk_rows.DiskRows` are pools on
            disk, which stay there if they are large. A Dask collection stays on its workers. Everything else is
            returned as it is.
        client: A ``distributed.Client``, on whose workers the pool is kept; None for the default one if the pool is a
            Dask collection.

    Raises:
        InvalidValueError: The pool cannot be used, or has a value that is not a finite number.
        NotEnoughMemoryError: The model needs the pool in memory, and it does not fit.
    """
    there = rows_on_workers(client, X_pool)
    if there is not None:
        last = final_estimator(model)
        if not backend_type(last).worker_acquisitions:
            raise InvalidValueError(
                f"{type(last).__name__} cannot use a pool on the workers of a cluster; use GaussianProcess, "
                "BayesianRidge or BayesianLogistic, or leave client out and give the pool in memory"
            )
        if last is model and not there.finite:
            there.require_finite("X_pool")
        return there
    rows = rows_on_disk(X_pool)
    if rows is None:
        return X_pool
    last = final_estimator(model)
    backend = backend_type(last)
    if rows.small or not backend.disk_pools:
        found = rows.array(f"the pool in memory, as {type(last).__name__} needs it")
        if last is model and not backend.refits:
            require_finite(found, rows.columns, "X_pool")
        return found
    if last is model and not rows.finite:
        rows.require_finite("X_pool")
    return rows


def _fitted_in_batches(steps: Any, rows: DiskRows) -> Pipeline:
    """Transformers fitted on a pool on disk, one after the other, in batches."""
    fitted: list[tuple[str, Any]] = []
    for name, step in steps:
        if step is None or step == "passthrough":
            continue
        if not hasattr(step, "partial_fit"):
            raise InvalidValueError(
                f"the transformer {name!r} ({type(step).__name__}) cannot be fitted on a pool on disk or on workers, a "
                "batch at a time: it has no partial_fit. Use one that has, such as StandardScaler; transform the file "
                "beforehand; or give the pool in memory"
            )
        before = Pipeline(list(fitted)) if fitted else None
        new = clone(step)
        for _, block in (rows if before is None else rows.mapped(before.transform)).batches():
            new.partial_fit(block)
        fitted.append((name, new))
    return Pipeline(fitted or [("passthrough", "passthrough")])


def final_estimator(model: Any) -> Any:
    """The last step of a pipeline; any other model as it is."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def provided_fields(model: Any, *, validated: bool = False, screening: bool = False) -> frozenset[str]:
    """Fields of a step that a loop with this model, or a pipeline that ends in it, provides."""
    return backend_type(final_estimator(model)).provided_fields(validated=validated, screening=screening)


def usable_may_miss(may_miss: Any, prepared: "PreparedModel") -> tuple[Any, ...]:
    """Return the classes that may be missed, validated for a model.

    Args:
        may_miss: One class, or several.
        prepared: The model.

    Raises:
        InvalidValueError: The model predicts numbers, or a class is none of those that it declares.
        InvalidTypeError: It is not a class or several.
    """
    missed = classes_that_may_be_missed(may_miss)
    if missed and prepared.backend.task != "classification":
        raise InvalidValueError(f"may_miss is for classes, {missed!r}, and the model predicts numbers; leave it out")
    declared = getattr(prepared.model, "classes", None)
    require_known(missed, () if declared is None else np.asarray(as_labels(list(declared))).tolist())
    return missed


def require_provided(  # noqa: PLR0913 - all but two by keyword
    required: frozenset[str],
    model: Any,
    *,
    validated: bool = False,
    screening: bool = False,
    names: tuple[str, str] | None = None,
    remedy: str = "",
) -> None:
    """Raise an error if a rule or record requires fields of a step that a loop with this model does not provide.

    Args:
        required: The fields, as :meth:`suffice.Criterion.needs` returns them.
        model: A model, or a pipeline that ends in one.
        validated: Whether the loop has a validation set.
        screening: Whether the loop has a positive class.
        names: What the error calls the rule and the loop; "criterion" and "a loop of regression" or likewise if left
            out.
        remedy: How to correct it; the error lists the fields that the loop provides if left out.

    Raises:
        MissingInputError: A field is not provided; the message names it.
    """
    provided = provided_fields(model, validated=validated, screening=screening)
    missing = sorted(required - provided)
    if not missing:
        return
    rule, loop = names or ("criterion", f"a loop of {backend_type(final_estimator(model)).task}")
    if not remedy:
        remedy = f"it provides n_labelled, {', '.join(sorted(provided))}"
        if VALIDATION_FIELDS.issuperset(missing):
            remedy += ". Give a validation set: validation=(X, y)"
        elif not screening and (SCREENING_FIELDS | RELEVANCE_FIELDS).issuperset(missing):
            remedy += ". Give the class that is looked for: positive=..."
        elif REGRET_FIELDS.issuperset(missing):
            remedy += ". The rule is for Bayesian optimisation: use suffice.learner.OptimisationMonitor"
        elif "control_found" in missing:
            remedy += ". A control sample is for suffice.StopMonitor: control=[...]"
    raise MissingInputError(f"{rule} requires {', '.join(missing)}, which {loop} does not provide; {remedy}")


def labelled_set(prepared: PreparedModel, given: Any, width: int, names: tuple[str, str]) -> tuple[Floats, Any] | None:
    """Inputs and labels of a test or validation set in the form that the model requires; None if neither is given.

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
    return inputs, known_labels(y, inputs.shape[0], names[1], names[0])


def validation_set(prepared: PreparedModel, given: Any, width: int) -> tuple[Floats, Any] | None:
    """The validation set in the form that the model requires, or None."""
    if given is None:
        return None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidValueError("validation must be a pair of inputs and labels, (X, y)")
    return labelled_set(prepared, given, width, ("the X of validation", "the y of validation"))


def known_labels(y: Any, rows: int, name: str, beside: str) -> Any:
    """Labels as an array, one for each row; raises an error that names the argument."""
    labels = np.asarray(as_labels(y))
    if labels.ndim != 1 or len(labels) != rows:
        remedy = f"; {SETS_OF_CLASSES}" if labels.ndim == 2 and labels.shape[1] > 1 else ""
        raise InvalidValueError(
            f"{name} must hold one label for each of the {rows} rows of {beside}; its shape is {labels.shape}{remedy}"
        )
    return labels


def label_costs(costs: Any, size: int) -> Floats:
    """Cost of the label of each item; 1 by default."""
    if costs is None:
        # A broadcast number needs no memory per item.
        return np.broadcast_to(1.0, (size,))
    try:
        found = np.broadcast_to(np.asarray(costs, dtype=np.float64), (size,))
    except (TypeError, ValueError):
        found = np.full(size, np.nan)
    if not (found >= 0.0).all() or not np.isfinite(found).all():
        raise InvalidValueError(f"costs must be one number, or one for each of the {size} items, none below 0")
    return found if np.ndim(costs) == 0 else np.array(found)


def generator(seed: Any) -> np.random.Generator:
    """The random generator for a seed; without one, that of the seed 0."""
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is None:
        return np.random.default_rng(0)
    return np.random.default_rng(whole(seed, "seed", least=0))


def seed_name(seed: Any) -> int | str:
    """Name of the seed of the picks in a record."""
    if not isinstance(seed, np.random.Generator):
        return 0 if seed is None else int(seed)
    return f"{seed} at state {crc32(repr(seed.bit_generator.state).encode()):08x}"


def first_items(initial: Any, size: int, rng: np.random.Generator) -> Indices:
    """The initial items: a number of random items, or the given items.

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
    """Return valid indices into a pool as an array, or raise an error that names the problem."""
    array = np.atleast_1d(np.asarray(indices))
    if array.dtype.kind == "b":
        came = f"a mask of {array.size} flags" if np.ndim(indices) else repr(indices)
        raise InvalidValueError(
            f"{name} must be indices into the pool, whole numbers, not {came}; give indices, e.g. np.flatnonzero(mask)"
        )
    if array.dtype.kind not in "iu" or array.ndim != 1 or not len(array):
        raise InvalidValueError(f"{name} must be indices into the pool, whole numbers, not {indices!r}")
    bad = array[(array < 0) | (array >= size)]
    if len(bad):
        raise InvalidValueError(f"{name} holds {bad[0]}, but the pool has items 0 to {size - 1}")
    if not distinct(array):
        raise InvalidValueError(f"{name} holds an item twice")
    return array.astype(np.intp)


def _is_tensor(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "torch" and hasattr(X, "detach")


def _is_plain_table(X: Any) -> bool:
    """Whether ``X`` is a table of real numbers, an array or a tensor, that needs no conversion or check by numpy."""
    if _is_tensor(X):
        return X.ndim == 2 and X.shape[0] > 0 and X.shape[1] > 0 and not X.is_complex()
    return type(X) is np.ndarray and X.dtype in (np.float64, np.float32) and X.ndim == 2 and X.size > 0


def _on_host(X: Any) -> Any:
    """A tensor as an array in memory; anything else as it is."""
    return X.detach().cpu().numpy() if _is_tensor(X) else X


def pool_device(device: Any, X_pool: Any, backend: type[Backend], acquisition: str) -> str | None:
    """The torch device for scoring a pool: the named device, or that of a tensor on a graphics card.

    Args:
        device: The name, or None.
        X_pool: The pool, as given by the caller.
        backend: The backend of the model.
        acquisition: Name of the acquisition.

    Raises:
        InvalidValueError: There is no such device, or it cannot compute the acquisition.
        MissingExtraError: torch is not installed.
    """
    able = acquisition in backend.device_acquisitions
    if isinstance(X_pool, WorkerRows):
        if device is not None:
            raise InvalidValueError("device and client cannot be combined: the pool is on one of them; leave one out")
        if acquisition not in backend.worker_acquisitions:
            names = ", ".join(map(repr, sorted(backend.worker_acquisitions)))
            raise InvalidValueError(
                f"the acquisition {acquisition!r} of this model cannot use a pool on the workers of a cluster; give "
                f"one of {names}, or leave client out"
            )
        return None
    if device is None:
        return str(X_pool.device) if able and _is_tensor(X_pool) and X_pool.is_cuda else None
    try:
        import torch
    except ImportError:
        raise MissingExtraError("torch", "torch", "A pool on a device") from None
    try:
        found = torch.device(device)
        torch.zeros(1, device=found)
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise InvalidValueError(
            f"device must be one that torch can use, such as 'cuda' or 'cpu', not {device!r}: {reason}"
        ) from None
    if not able:
        known = sorted(backend.device_acquisitions)
        remedy = f"give acquisition={known[0]!r}, or leave device out" if known else "leave device out"
        raise InvalidValueError(f"the acquisition {acquisition!r} of this model cannot use a device; {remedy}")
    return str(found)


def number_type(dtype: Any) -> Any:
    """Return the number type for storing a pool, or raise an error that lists the supported types."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    if found not in (np.float64, np.float32):
        raise InvalidValueError(f"dtype must be float64 or float32, not {dtype!r}")
    return found
