"""The interface between a loop and a model family: next picks, the effect of labels, and the registry of backends.

A loop mixes the picks of a backend with items drawn at random.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import groupby
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, ClassVar, Final, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from suffice.acquisition import RANDOM_SHARES, Indices, RandomOrder
from suffice.arguments import real
from suffice.divergence import KLPair, in_units_of_noise
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.learner.own_acquisition import AcquisitionFunction, OwnAcquisition
from suffice.learner.step_inputs import (
    CLASS_COUNT_FIELDS,
    COUNTED_FIELDS,
    NO_STEP_INPUTS,
    SCREENING_FIELDS,
    VALIDATION_FIELDS,
    StepInputs,
)
from suffice.numerics import Floats
from suffice.session.recorded_steps import DIVERGENCES, STEP_FIELDS, Relearned, joined_rows

#: Losses of the averaged prediction on the test set: fields of :class:`StepResults` and of :class:`suffice.Trace`.
TEST_LOSSES: Final = ("predictive_error", "wrong_share")


@dataclass(frozen=True)
class StepResults:
    """Results of some steps, one entry per step.

    Attributes:
        pair: Both divergences, ``KL[new||old]`` and ``KL[old||new]``.
        error: Posterior mean of the loss on the test set after each step; empty where there is none.
        estimated: How the divergences were estimated, if they are neither exact nor bounds.
        measures: What else was measured, by name, one row a step.
        predictive_error: Loss of the averaged prediction on the test set after each step, see
            :attr:`suffice.Trace.predictive_error`; empty where there is none.
        wrong_share: Share of the test set whose class is predicted wrong after each step; empty where there is none.
    """

    pair: KLPair
    error: Floats
    estimated: str = ""
    measures: Mapping[str, Floats] = field(default_factory=dict)
    predictive_error: Floats = field(default_factory=lambda: np.zeros(0))
    wrong_share: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def kl_new_old(self) -> Floats:
        """``KL[new||old]``."""
        return self.pair.new_old

    @property
    def kl_old_new(self) -> Floats:
        """``KL[old||new]``."""
        return self.pair.old_new

    @staticmethod
    def joined(parts: "Sequence[LearnedSteps]") -> "StepResults":
        """The results of several groups of steps, in order."""
        results: list[StepResults] = []
        # Divergences of consecutive single labels are computed together, because the calls take most of the time.
        for plain, group in groupby(parts, key=lambda part: isinstance(part, SingleLabelTerms)):
            members: list[Any] = list(group)
            results.extend(
                [_divergences(members)]
                if plain
                else [part.tested() if isinstance(part, StepTestedLater) else part for part in members]
            )
        empty = np.zeros(0)
        new_old, old_new, error = (
            np.concatenate([empty, *(getattr(result, name) for result in results)])
            for name in ("kl_new_old", "kl_old_new", "error")
        )
        estimated = next((result.estimated for result in results if result.estimated), "")
        measured = [result.measures for result in results if len(result.kl_new_old)]
        names = measured[0] if measured else ()
        measures = {name: joined_rows([each[name] for each in measured]) for name in names}
        losses = {name: _joined(results, name) for name in TEST_LOSSES}
        return StepResults(KLPair(new_old, old_new), error, estimated, measures, **losses)

    def first(self, n: int) -> "StepResults":
        """The first ``n`` steps."""
        measures = {name: values[:n] for name, values in self.measures.items()}
        losses = {name: getattr(self, name)[:n] for name in TEST_LOSSES}
        pair = KLPair(self.kl_new_old[:n], self.kl_old_new[:n])
        return StepResults(pair, self.error[:n], self.estimated, measures, **losses)

    def as_dict(self) -> dict[str, Any]:
        """The results as lists and numbers, without loss."""
        return {
            "pair": [self.kl_new_old.tolist(), self.kl_old_new.tolist()],
            "error": self.error.tolist(),
            "estimated": self.estimated,
            "measures": {name: values.tolist() for name, values in self.measures.items()},
            "types": {name: str(values.dtype) for name, values in self.measures.items()},
            **{name: getattr(self, name).tolist() for name in TEST_LOSSES},
        }

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> "StepResults":
        """The results from the output of :meth:`as_dict`, also of earlier versions."""
        new_old, old_new = (np.array(values) for values in saved["pair"])
        types = saved.get("types", {})
        measures = {name: np.array(values, dtype=types.get(name)) for name, values in saved["measures"].items()}
        losses = {name: np.array(saved.get(name, ()), dtype=np.float64) for name in TEST_LOSSES}
        return StepResults(KLPair(new_old, old_new), np.array(saved["error"]), saved["estimated"], measures, **losses)


@dataclass(frozen=True)
class SingleLabelTerms:
    """Terms from which the divergences of single labels under Gaussian noise are computed.

    Attributes:
        latent: Latent variance before each label, in units of the noise variance.
        squared: Squared residual of each, in the same units.
        error: Posterior mean of the squared error on the test set after each; empty where there is none.
        predictive_error: Squared error of the posterior mean on the test set, likewise.
    """

    latent: Floats
    squared: Floats
    error: Floats
    predictive_error: Floats
    measures: ClassVar[Mapping[str, Floats]] = {}


@dataclass(frozen=True)
class StepTestedLater:
    """Results of one step whose losses on the test set are computed when they are needed.

    Attributes:
        pair: Both divergences.
        tested: Returns the results with the losses.
    """

    pair: KLPair
    tested: Callable[[], StepResults]
    measures: ClassVar[Mapping[str, Floats]] = {}


#: What a backend returns for labels that it has learned; :meth:`StepResults.joined` takes all of them.
LearnedSteps: TypeAlias = StepResults | SingleLabelTerms | StepTestedLater


def _divergences(parts: "list[SingleLabelTerms]") -> StepResults:
    latent, squared, error, predictive = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("latent", "squared", "error", "predictive_error")
    )
    return StepResults(in_units_of_noise(latent, squared), error, predictive_error=predictive)


def _joined(results: "Sequence[StepResults]", name: str) -> Floats:
    """A loss on the test set over several groups of steps; NaN if an earlier version did not record it."""
    parts = [(getattr(result, name), len(result.kl_new_old)) for result in results]
    if not any(len(values) for values, _ in parts):
        return np.zeros(0)
    return np.concatenate([values if len(values) else np.full(steps, np.nan) for values, steps in parts])


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run besides its model.

    Attributes:
        X: The pool, ``m x D``; ``X[indices]`` are some rows, also of a pool on disk.
        acquisition: Name of the acquisition.
        rng: Randomness.
        dtype: Number type that the pool is kept in.
        expected: Labels to make room for.
        test: Test inputs and labels, or None.
        step_inputs: What else to provide for each step.
        positive: The class that a screening looks for, or None.
        device: Name of the device of torch that the pool is scored on, or None for numpy in memory.
    """

    X: Floats
    acquisition: str
    rng: np.random.Generator
    dtype: Any = np.float64
    expected: int = 256
    test: tuple[Floats, Any] | None = None
    step_inputs: StepInputs = NO_STEP_INPUTS
    positive: Any = None
    device: str | None = None


class SavableBackend:
    """How the learned state of a backend is saved. Base of :class:`Backend`.

    Attributes:
        fixed_attributes: Names of the attributes that follow from model, settings and the other attributes.
        supports_checkpoints: Whether :meth:`state` and :meth:`restore` are implemented.
        replays: Whether the same labels, learned again in the same steps, lead to the same picks. A checkpoint then
            holds the labels.
    """

    fixed_attributes: ClassVar[frozenset[str]] = frozenset({"_model", "_settings"})
    supports_checkpoints: ClassVar[bool] = False
    replays: ClassVar[bool] = False

    def state(self) -> dict[str, Any]:
        """Everything that a checkpoint needs besides pool, labels and settings."""
        raise NotImplementedError

    def restore(self, state: Mapping[str, Any], y: Any) -> None:
        """Continue from a saved state; ``y`` holds the labels of the whole pool."""
        raise NotImplementedError

    def progress(self) -> dict[str, Any]:
        """The learned state: all attributes that do not follow from model and settings. They are not copied."""
        return {name: value for name, value in self.__dict__.items() if name not in self.fixed_attributes}

    def resume(self, progress: Mapping[str, Any]) -> None:
        """Continue exactly from the output of :meth:`progress` of a backend with the same model and settings."""
        self.__dict__.update(progress)


class Backend(SavableBackend, ABC):
    """Chooses items and learns labels with one family of models. Base class of all backends.

    A subclass is registered for a model type with :func:`register_backend`. The loop creates it as
    ``backend(model, settings)`` with an unfitted model and :class:`RunSettings`. Labels arrive in steps; the first step
    holds the initial labels.

    Attributes:
        task: ``"regression"`` or ``"classification"``.
        step_fields: Fields of a :class:`suffice.Step` that the backend can compute, besides the two divergences.
        screening_fields: Fields that the backend can compute if there is a positive class.
        revised_fields: Fields whose values for past steps change when hyper-parameters are learned again.
        default_acquisition: The acquisition that is used if the caller names none.
        default_random_share: The share of labels drawn at random that goes with it.
        input_dtype: Number type of the inputs that the model takes.
        any_input_shape: Whether a row of inputs may have any shape. If not, inputs are a table.
        sparse_inputs: Whether inputs may be a sparse matrix.
        device_acquisitions: Acquisitions that can be computed on a device of torch.
        device_rows: Whether a pool that is scored on a device may stay there: ``settings.X`` is then a
            :class:`~suffice.engines.device_rows.DeviceRows`. If not, it is an array in memory.
        worker_acquisitions: Acquisitions for which the pool may be on the workers of a Dask cluster: ``settings.X`` is
            then a :class:`~suffice.engines.worker_rows.WorkerRows`.
        disk_pools: Whether the pool may stay on disk: ``settings.X`` is then a
            :class:`~suffice.engines.disk_rows.DiskRows`. If not, it is read into memory.
        gives_deviation: Whether a model for numbers predicts standard deviations.
        refits: Whether the model is fitted again to all labels at every step, so that it may need labels to transform
            inputs, and may accept missing inputs.
    """

    task: ClassVar[Literal["regression", "classification"]]
    step_fields: ClassVar[frozenset[str]]
    screening_fields: ClassVar[frozenset[str]] = frozenset()
    revised_fields: ClassVar[frozenset[str]] = frozenset()
    default_acquisition: ClassVar[str]
    default_random_share: ClassVar[float] = 0.0
    input_dtype: ClassVar[Any] = np.float64
    any_input_shape: ClassVar[bool] = False
    sparse_inputs: ClassVar[bool] = False
    refits: ClassVar[bool] = False
    gives_deviation: bool = True
    device_acquisitions: ClassVar[frozenset[str]] = frozenset()
    device_rows: ClassVar[bool] = False
    worker_acquisitions: ClassVar[frozenset[str]] = frozenset()
    disk_pools: ClassVar[bool] = False

    @abstractmethod
    def __init__(self, model: Any, settings: RunSettings) -> None: ...

    @classmethod
    def for_model(cls, model: Any) -> "type[Backend]":
        """The backend class for one model of the registered type; it may be another class."""
        del model
        return cls

    @property
    def revises(self) -> frozenset[str]:
        """Measures of past steps that change when hyper-parameters are learned again."""
        return frozenset()

    def propose(self, most: int) -> Indices:
        """The next picks that do not depend on labels still to be learned: at least 1, at most ``most``."""
        del most
        return self.batch(1)

    @abstractmethod
    def batch(self, size: int) -> Indices:
        """Picks to be labelled together."""

    @abstractmethod
    def skip(self, indices: Indices) -> None:
        """Exclude unlabelled items from now on."""

    @abstractmethod
    def check(self, y: Any) -> None:
        """Raise InvalidValueError for labels that cannot be learned, naming the reason."""

    @abstractmethod
    def begin(self, indices: Indices, y: Any) -> None:
        """Learn the initial labels."""

    @abstractmethod
    def learn(self, indices: Indices, y: Any, *, together: bool) -> "LearnedSteps":
        """Learn labels, each as a step of its own or all as one step.

        If :meth:`relearn` is due afterwards, it may provide the measures of the last step instead.
        """

    def mark_random(self, indices: Indices) -> None:
        """Record that items were drawn at random from the unlabelled items; called before their labels are learned."""
        del indices

    def until_relearning(self) -> int | None:
        """Number of labels until :meth:`relearn` is due, 0 if it is due now; None if it never is."""
        return None

    @abstractmethod
    def relearn(self) -> StepResults:
        """Learn hyper-parameters again; return all steps after the initial labels with the new hyper-parameters.

        Measures that do not depend on hyper-parameters keep their values, except those of the last step, which are
        provided only now.
        """

    @abstractmethod
    def correct(self, index: int, y: Any) -> StepResults:
        """Change a label; return all steps after the initial labels with the new label."""

    @abstractmethod
    def fitted(self) -> Any:
        """The current model as an independent estimator; the caller may change it."""

    def current_model(self) -> Any:
        """The current model for reading; it may share the backend's posterior, and is valid until the next label."""
        return self.fitted()

    def judged_model(self) -> Any:
        """The current model for estimates of its error, with ``predict_proba`` or ``predict(X, return_std=True)``."""
        return self.current_model()

    def refitted_without(self, items: Indices) -> Any:
        """The model fitted again without the labels of some items; None if that is not possible.

        Args:
            items: Learned items.
        """
        del items
        return None

    def watched_model(self) -> Any:
        """The current model for a caller's function, which may keep it but must not change it."""
        return self.fitted()

    def expected_errors(self, rows: Indices) -> tuple[Floats, Floats] | None:
        """The errors that the posterior expects of some items, and their reducible parts; None if not known.

        For classes these are probabilities of a wrong prediction, for numbers variances of the label. The reducible
        part would vanish if the model knew its parameters.
        """
        del rows
        return None

    @classmethod
    def provided_fields(cls, *, validated: bool, screening: bool = False) -> frozenset[str]:
        """Fields of a step that a loop with this backend provides.

        Args:
            validated: Whether the loop has a validation set.
            screening: Whether the loop has a positive class.
        """
        counted = COUNTED_FIELDS | (CLASS_COUNT_FIELDS if cls.task == "classification" else frozenset())
        if screening and cls.task == "classification":
            counted |= SCREENING_FIELDS | cls.screening_fields
        return cls.step_fields | DIVERGENCES | counted | (VALIDATION_FIELDS if validated else frozenset())


def relearned(step: int, history: StepResults, backend: Backend) -> Relearned:
    """The history with the hyper-parameters that were learned after a step."""
    revised = {name: history.measures[name] for name in backend.revises}
    return Relearned(step, history.kl_new_old, history.kl_old_new, revised)


_BACKENDS: Final[dict[type, type[Backend]]] = {}
_AnyBackend = TypeVar("_AnyBackend", bound=type[Backend])


def register_backend(model_type: type) -> Callable[[_AnyBackend], _AnyBackend]:
    """Register a backend for a model type and its subclasses.

    With it, :class:`suffice.ActiveLearner`, :func:`suffice.simulate` and :func:`suffice.audit` accept models of that
    type, alone or as the last step of a scikit-learn pipeline. The model must follow scikit-learn (``get_params``).

    Args:
        model_type: The class of the models.

    Returns:
        A decorator for a subclass of :class:`Backend` that sets ``task``, ``step_fields`` and ``default_acquisition``.

    Raises:
        InvalidTypeError: ``model_type`` is not a class, or the decorated object is not a subclass of Backend.
        InvalidValueError: A class attribute of the backend is missing or cannot be used.
    """
    if not isinstance(model_type, type):
        raise InvalidTypeError(f"model_type must be a class, not {model_type!r}")

    def register(backend: _AnyBackend) -> _AnyBackend:
        if not isinstance(backend, type) or not issubclass(backend, Backend):
            raise InvalidTypeError(f"a backend must be a subclass of suffice.learner.Backend, not {backend!r}")
        name = backend.__name__
        for attribute in ("task", "step_fields", "default_acquisition"):
            if not hasattr(backend, attribute):
                raise InvalidValueError(f"{name} must set the class attribute {attribute}; see suffice.learner.Backend")
        if backend.task not in ("regression", "classification"):
            raise InvalidValueError(f"{name}.task must be 'regression' or 'classification', not {backend.task!r}")
        if unknown := sorted(set(backend.step_fields) - STEP_FIELDS):
            raise InvalidValueError(
                f"{name}.step_fields must be fields of suffice.Step; {', '.join(unknown)} is none of them"
            )
        if not backend.__module__.startswith("suffice.learner."):
            # The built-in backends are registered first, so that the new backend can replace one.
            _register_own()
        _BACKENDS[model_type] = backend
        return backend

    return register


@cache
def _register_own() -> None:
    """Import the modules of this package whose names end in ``_backend``: each registers its backends."""
    for module in iter_modules([str(Path(__file__).parent)]):
        if module.name.endswith("_backend"):
            import_module(f"suffice.learner.{module.name}")


def backend_type(model: Any) -> type[Backend]:
    """The backend for a model: that of its type or nearest base class, else of any classifier or regressor.

    Raises:
        InvalidTypeError: There is none.
    """
    _register_own()
    for base in type(model).__mro__:
        if base in _BACKENDS:
            return _BACKENDS[base].for_model(model)
    # The kind of a meta-estimator, such as GridSearchCV, is that of the estimator inside it.
    if not isinstance(model, type) and hasattr(model, "get_params"):
        from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier, is_regressor

        for kind, base in ((is_classifier, ClassifierMixin), (is_regressor, RegressorMixin)):
            if base in _BACKENDS and kind(model):
                return _BACKENDS[base].for_model(model)
    raise InvalidTypeError(
        f"{type(model).__name__} is not a model that can be followed; use one of suffice.models or a classifier or "
        "regressor of scikit-learn, alone or last in a Pipeline. For any other model and your own loop, use "
        "suffice.StopMonitor, or feed a rule yourself: suffice.Step.between(old, new, n_labelled=n) for posteriors. To "
        "add a model family, see suffice.learner.register_backend"
    )


@dataclass
class LabelHistory:
    """Labels in the order of labelling, and the number of labels of each step.

    Attributes:
        indices: Items, in order.
        sizes: Labels of each step; the first are the initial ones.
    """

    indices: list[int]
    sizes: list[int]

    def add(self, indices: Indices, *, together: bool) -> None:
        """Append labels, each as a separate step or all as one step."""
        self.indices.extend(int(i) for i in indices)
        self.sizes.extend([len(indices)] if together else [1] * len(indices))

    def spans(self, longest: int) -> list[tuple[slice, bool]]:
        """The steps after the initial ones as spans of labels: one larger step each, or a run of single labels."""
        spans: list[tuple[slice, bool]] = []
        at = self.sizes[0]
        for size in self.sizes[1:]:
            last = spans[-1] if spans else None
            if size == 1 and last and not last[1] and last[0].stop - last[0].start < longest:
                spans[-1] = slice(last[0].start, at + 1), False
            else:
                spans.append((slice(at, at + size), size > 1))
            at += size
        return spans


# Products of a share and a count may be below a whole number by rounding.
_ROUNDING: Final = 1e-9
_NO_ITEMS: Final[Indices] = np.zeros(0, dtype=np.intp)


class Picks(NamedTuple):
    """Items to label next.

    Attributes:
        indices: The items, in order.
        random: Whether each was drawn at random from the unlabelled items.
    """

    indices: Indices
    random: NDArray[np.bool_]


def acquisition_and_share(
    backend: type[Backend], acquisition: str | AcquisitionFunction | None, share: Any, *, screening: bool = False
) -> tuple[str, float]:
    """Return the name of the acquisition and the share of random labels of a run, with the defaults of the backend.

    If an acquisition is named, there are no random labels unless a share is given. A function of the user has the share
    of the backend, or the recommended share of its task if the backend asks for all items at random. A screening
    requests the likeliest relevant items first, and no random items.

    With a function, the backend has the acquisition that costs nothing, ``"order"``; it is not asked for items.

    Raises:
        InvalidValueError: The share is not a number from 0 to 1.
    """
    if screening and acquisition is None:
        acquisition = "relevance"
    if callable(acquisition):
        random = backend.default_acquisition == "random"
        usual = RANDOM_SHARES[backend.task] if random else backend.default_random_share
        share, acquisition = (0.0 if screening else usual) if share is None else share, "order"
    if share is None:
        return acquisition or backend.default_acquisition, 0.0 if acquisition else backend.default_random_share
    checked = real(share, "random_share", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    return acquisition or backend.default_acquisition, checked


def extended_order(drawn: int, rest: Indices, new: Indices, rng: np.random.Generator) -> Indices:
    """A random order of the unlabelled items after a pool was extended.

    Items that were drawn at random are the first of a random order of the earlier items. Each new item has a random
    place in it, so that the drawn items and the first new ones are together a random sample of all of them. New items
    with a place among the drawn ones are therefore drawn first.

    Args:
        drawn: Number of items that were drawn at random.
        rest: Earlier items without a label.
        new: The new items.
        rng: Randomness.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> order = extended_order(500, np.arange(500, 1000), np.arange(1000, 1200), rng)
        >>> len(order), bool((order[:80] >= 1000).all())
        (700, True)
    """
    earlier = np.sort(rng.random(drawn + len(rest)))
    places = np.append(earlier[drawn:], rng.random(len(new)))
    last = earlier[drawn - 1] if drawn else 0.0
    items = np.append(rng.permutation(rest), new)
    # Places among the drawn items come first; their own order does not matter.
    return np.asarray(items[np.lexsort((places, places > last))], dtype=np.intp)


class ItemSelection:
    """Mixes the picks of a backend with items drawn at random from the unlabelled ones.

    After the initial labels, label number ``k`` (from 1) is random if ``floor(k share)`` is larger than
    ``floor((k - 1) share)``: with a share of 0.2 every fifth label. The random items are taken from one permutation of
    the pool that does not depend on labels. So each unlabelled item is equally likely to be the next random item.

    Args:
        backend: Chooses the other items.
        size: Number of items in the pool.
        share: Share of random labels, 0 to 1.
        rng: Source of the permutation; used only if the share is above 0.
        all_random: Whether the picks of the backend are random ones too.
        own: Chooses the other items in place of the backend: a function of the user.
    """

    def __init__(  # noqa: PLR0913 - the last two by keyword
        self,
        backend: Backend,
        size: int,
        share: float,
        rng: np.random.Generator,
        *,
        all_random: bool = False,
        own: OwnAcquisition | None = None,
    ) -> None:
        self.backend, self._share, self.all_random, self._own = backend, share, all_random, own
        self._size = size
        self._order = RandomOrder(size, rng) if share > 0.0 else None
        self._count = 0
        self._held = np.zeros(0, dtype=np.intp)

    def propose(self, most: int) -> Picks:
        """The next picks that do not depend on labels still to be learned: at least 1, at most ``most``."""
        if len(self._held) or self._own is not None:
            return self.batch(1)
        if self._order is None:
            return self._chosen(self.backend.propose(most))
        if self._is_random(self._count):
            return Picks(self._order.batch(1), np.ones(1, dtype=bool))
        until = next((k for k in range(1, most) if self._is_random(self._count + k)), most)
        return self._chosen(self.backend.propose(until))

    def batch(self, size: int) -> Picks:
        """Picks to be labelled together; fewer than ``size`` only if fewer items are left."""
        if self._order is None:
            return self._chosen(self._picks(size))
        turns = np.array([self._is_random(self._count + k) for k in range(size)])
        drawn = self._not_held(self._order.batch, int(turns.sum()))
        if len(drawn) == size:
            return Picks(drawn, np.ones(size, dtype=bool))
        picked = self._picks(size, drawn)
        size = min(size, len(drawn) + len(picked))
        # At the end of the pool there may be fewer items than places for random or for other picks.
        random = turns[:size]
        extra = int(random.sum()) - len(drawn)
        if extra > 0:
            random[np.flatnonzero(random)[-extra:]] = False
        lack = size - int(random.sum()) - len(picked)
        if lack > 0:
            random[np.flatnonzero(~random)[-lack:]] = True
        indices = np.empty(size, dtype=np.intp)
        indices[random] = drawn[: int(random.sum())]
        indices[~random] = picked[: size - int(random.sum())]
        return Picks(indices, random | self.all_random)

    def _picks(self, size: int, drawn: Indices = _NO_ITEMS) -> Indices:
        """Picks of the backend, or of a function of the user, besides items of the same batch drawn at random."""
        if self._own is not None:
            return self._own.batch(size - len(drawn), drawn, self._held)
        # The backend may also pick some of the random items, because it does not exclude them.
        picked = self._not_held(self.backend.batch, size)
        return picked[~np.isin(picked, drawn)]

    @property
    def draws_at_random(self) -> bool:
        """Whether some or all labels after the initial ones are random."""
        return self._order is not None or self.all_random

    @property
    def random_order(self) -> Indices | None:
        """The unlabelled items in the order in which they are drawn at random; None if this draws none itself."""
        return None if self._order is None else self._order.left

    def use_order(self, order: Indices) -> None:
        """Draw random items in this order of the unlabelled items, if some or all labels are random."""
        if not self.draws_at_random:
            return
        self._order = RandomOrder.of(np.asarray(order, dtype=np.intp), self._size)
        if self.all_random:
            self._share = 1.0

    @property
    def count(self) -> int:
        """Number of labels after the initial ones."""
        return self._count

    def resume(self, count: int) -> None:
        """Continue after this number of labels after the initial ones; only for a share of 0."""
        self._count = count

    def begin(self, indices: Indices) -> None:
        """Exclude the items of the initial labels."""
        self._exclude(indices)

    def take(self, indices: Indices) -> None:
        """Exclude items that were labelled."""
        self._count += len(indices)
        self._exclude(indices)

    def skip(self, indices: Indices) -> None:
        """Exclude items that will have no label."""
        if self._order is not None:
            self._order.skip(indices)
        if self._own is not None:
            self._own.skip(indices)

    def _exclude(self, indices: Indices) -> None:
        """Exclude items that have a label."""
        if self._own is not None:
            self._own.take(indices)
        self.skip(indices)

    def corrected(self) -> None:
        """Note that a label was corrected, which changes the model."""
        if self._own is not None:
            self._own.forget()

    def hold(self, indices: Indices) -> None:
        """Replace the set of items that are temporarily excluded; an empty array excludes none."""
        self._held = np.asarray(indices, dtype=np.intp)

    def _not_held(self, picks: Callable[[int], Indices], size: int) -> Indices:
        """The first picks that are not excluded; fewer than ``size`` only if fewer items are left."""
        wanted = size
        while True:
            picked = np.asarray(picks(wanted))
            if not len(self._held):
                return picked
            free = picked[~np.isin(picked, self._held)]
            if len(free) >= size or len(picked) < wanted:
                return free[:size]
            wanted *= 2

    def _is_random(self, position: int) -> bool:
        """Whether the label at a position after the initial ones, from 0, is random."""
        before, after = (math.floor(self._share * count + _ROUNDING) for count in (position, position + 1))
        return after > before

    def _chosen(self, indices: Indices) -> Picks:
        return Picks(np.asarray(indices), np.full(len(indices), self.all_random))
