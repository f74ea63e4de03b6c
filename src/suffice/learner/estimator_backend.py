"""The backend of any other scikit-learn classifier or regressor: it is fitted again after every step."""

import inspect
from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.pipeline import Pipeline

from suffice.acquisition import RANDOM_SHARES, Indices, entropy, label_free_chooser, margin, require_known
from suffice.criteria import Criterion, Step, Verdict
from suffice.divergence import KLPair
from suffice.engines.disk_rows import require_memory
from suffice.errors import InvalidValueError
from suffice.learner.available_fields import COMMITTEE_FIELDS
from suffice.learner.backend import Backend, LabelHistory, RunSettings, StepResults, register_backend
from suffice.learner.model_predictions import FittedModel, PoolRows
from suffice.learner.refitted import refitted
from suffice.learner.step_inputs import (
    CLASS_COUNT_FIELDS,
    CLASSIFIER_FIELDS,
    COUNTED_FIELDS,
    LOSS_FIELDS,
    RELEVANCE_FIELDS,
    REST_FIELDS,
    VALIDATION_FIELDS,
    StopSet,
)
from suffice.learner.stop_monitor import StopMonitor
from suffice.models.inputs import as_labels, targets
from suffice.models.logistic import class_labels
from suffice.numerics import Floats
from suffice.session.recorded_steps import DIVERGENCES, stacked

# Names of base classes of ensembles that predict the average of their members; importing the classes takes long.
_AVERAGING: Final = frozenset({"ForestClassifier", "BaggingClassifier"})
# Number of digits to which scores of items are compared.
_DIGITS: Final = 9
_LEAST_PROBABILITY: Final = float(np.finfo(np.float64).eps)


@dataclass
class _StepRecorder(Criterion):
    """A rule that never stops. It makes a monitor compute fields, and stores the last step."""

    names: tuple[str, ...] = ()

    def needs(self) -> frozenset[str]:
        """No field is required: fields that cannot be computed are left out."""
        return frozenset()

    def reads(self) -> frozenset[str]:
        """The fields to compute."""
        return frozenset(self.names)

    def judge(self, step: Step) -> Verdict:
        """Never stop."""
        return self.verdict(step, stop=False, ready=False, reason="the step is recorded")


class EstimatorBackend(Backend):
    """Learns labels by fitting a scikit-learn estimator again at each step. Base of the backends below.

    The estimator is cloned and fitted to all labels so far. A parameter ``random_state`` that is None is set from the
    seed of the learner, so that runs can be repeated. A :class:`suffice.StopMonitor` computes the inputs of the
    stopping rule. A corrected label is learned by another fit; earlier steps do not change.

    Args:
        model: The estimator; it is not changed.
        settings: Pool, acquisition and test set.
    """

    default_random_share = 0.0
    sparse_inputs = True
    refits = True

    def __init__(self, model: Any, settings: RunSettings) -> None:
        self._settings, self._size = settings, settings.X.shape[0]
        self._estimator = _seeded(clone(model), settings.rng)
        self._name = require_known(settings.acquisition, f"any {self.task}")
        self._fixed = self._label_free_chooser()
        self._free = np.ones(self._size, dtype=bool)
        # Trees give many items the same score, so ties are broken at random.
        self._order = settings.rng.permutation(self._size)
        self._history = LabelHistory([], [])
        self._labels: list[Any] = []
        self._past: list[StepResults] = []
        self._model: Any = None
        self._pool = PoolRows(settings.X)
        inputs = settings.step_inputs
        self._names = inputs.names - COUNTED_FIELDS - CLASS_COUNT_FIELDS - VALIDATION_FIELDS
        self._monitor = StopMonitor(
            settings.X,
            _StepRecorder(tuple(sorted(self._names))),
            stop_set=None if inputs.stop is None else StopSet(inputs.stop, self._size),
            seed=int(settings.rng.integers(2**31)),
            positive=settings.positive,
        )

    @classmethod
    def provided_fields(cls, *, validated: bool, screening: bool = False) -> frozenset[str]:
        """Fields of a step; divergences are not computed."""
        return super().provided_fields(validated=validated, screening=screening) - DIVERGENCES

    def _label_free_chooser(self) -> Any:
        X: Any = self._settings.X
        if issparse(X) and self._name == "k-centre":
            require_memory(8 * self._size * X.shape[1], "the pool with all its zeros, for k-centre")
            X = X.toarray()
        features = X if not issparse(X) else np.zeros((self._size, 1))
        return label_free_chooser(self._name, features, self._settings.rng)

    def batch(self, size: int) -> Indices:
        """The items of largest score."""
        if self._fixed is not None:
            return np.asarray(self._fixed.batch(size))
        rows = self._order[self._free[self._order]]
        score = self._scores(rows)
        return np.asarray(rows[np.argsort(-np.round(score, _DIGITS), kind="stable")[:size]])

    def _scores(self, rows: Indices) -> Floats:
        """Usefulness of the label of each item."""
        raise NotImplementedError

    def skip(self, indices: Indices) -> None:
        """Exclude items."""
        self._free[indices] = False
        if self._fixed is not None:
            self._fixed.skip(indices)

    def begin(self, indices: Indices, y: Any) -> None:
        """Fit to the initial labels."""
        self.check(y)
        self._learn(indices, y)

    def learn(self, indices: Indices, y: Any, *, together: bool) -> StepResults:
        """Learn labels, with a fit for each step."""
        self.check(y)
        labels = np.asarray(y)
        groups = [slice(0, len(indices))] if together else [slice(k, k + 1) for k in range(len(indices))]
        for group in groups:
            self._past.append(self._learn(indices[group], labels[group]))
        return StepResults.joined(self._past[-len(groups) :])

    def relearn(self) -> StepResults:
        """The unchanged history, because there are no hyper-parameters to learn again."""
        return StepResults.joined(self._past)

    def correct(self, index: int, y: Any) -> StepResults:
        """Change a label and fit again; earlier steps do not change."""
        self.check([y])
        place = self._history.indices.index(index)
        kept, self._labels[place] = self._labels[place], y
        model = self._model
        try:
            found = self._refitted()
        except Exception:
            self._labels[place], self._model = kept, model
            raise
        if self._past:
            self._past[-1] = found
        return StepResults.joined(self._past)

    def progress(self) -> dict[str, Any]:
        """The labels and the results of all steps. The estimator is not saved: it is an object of another package."""
        return {
            "indices": list(self._history.indices),
            "sizes": list(self._history.sizes),
            "labels": list(self._labels),
            "free": self._free.copy(),
            "past": [step.as_dict() for step in self._past],
            # The loop counts the time, not the monitor.
            "monitor": self._monitor.progress() | {"seconds": 0.0},
        }

    def resume(self, progress: Mapping[str, Any]) -> None:
        """Continue from :meth:`progress`. The estimator is fitted once, to all labels."""
        self._history = LabelHistory(progress["indices"], progress["sizes"])
        self._labels = progress["labels"]
        self._past = [StepResults.from_dict(step) for step in progress["past"]]
        taken = np.array(self._history.indices, dtype=np.intp)
        self._free = progress["free"]
        if self._fixed is not None:
            self._fixed.take(taken)
            self._fixed.skip(np.setdiff1d(np.flatnonzero(~self._free), taken))
        self._model = self._fit(self._settings.X[self._history.indices], np.asarray(as_labels(self._labels)))
        self._monitor.resume(progress["monitor"], self._model if self._names else None)

    def fitted(self) -> Any:
        """The fitted estimator; the caller may change it."""
        return deepcopy(self._model)

    def current_model(self) -> Any:
        """The fitted estimator."""
        return copy(self._model)

    def _learn(self, indices: Indices, y: Any) -> StepResults:
        model, before = self._model, len(self._labels)
        self._history.add(indices, together=True)
        self._labels.extend(np.asarray(y).tolist())
        try:
            found = self._refitted()
        except Exception:
            del self._history.indices[before:], self._history.sizes[-1:], self._labels[before:]
            self._model = model
            raise
        self._free[indices] = False
        if self._fixed is not None:
            self._fixed.take(indices)
        return found

    def _refitted(self) -> StepResults:
        """Fit to all labels, and return the results of the step."""
        rows, labels = self._history.indices, np.asarray(as_labels(self._labels))
        self._model = self._fit(self._settings.X[rows], labels)
        measures: dict[str, Any] = {}
        if self._names:
            self._monitor.update(self._model, rows, labels)
            measures = {name: getattr(self._monitor.steps[-1], name) for name in sorted(self._names)}
        measures = {name: value for name, value in measures.items() if value is not None}
        inputs = self._settings.step_inputs
        if inputs.validation is not None and "validation_error" in inputs.names:
            measures["validation_error"] = self._losses(*inputs.validation)[0]
        unknown, loss, wrong = np.full(1, np.nan), np.zeros(0), np.zeros(0)
        if self._settings.test is not None:
            found, share = self._losses(*self._settings.test)
            # Without a posterior the loss of the prediction replaces the mean of the loss over the posterior.
            loss, wrong = np.array([found]), wrong if share is None else np.array([share])
        pair = KLPair(unknown, unknown)
        return StepResults(pair, loss, measures=stacked([measures]), predictive_error=loss, wrong_share=wrong)

    def refitted_without(self, items: Indices) -> Any:
        """The estimator fitted again without the labels of some items."""
        left = np.flatnonzero(~np.isin(self._history.indices, items))
        labels = np.asarray(as_labels([self._labels[place] for place in left]))
        return self._fit(self._settings.X[np.asarray(self._history.indices)[left]], labels)

    def _fit(self, X: Any, labels: Any) -> Any:
        return refitted(self._estimator, X, labels, classes=self.task == "classification")

    def _losses(self, X: Any, y: Any) -> tuple[float, float | None]:
        """The loss on some labelled items, and the share of wrong predictions."""
        raise NotImplementedError

    def _now(self) -> FittedModel:
        """The fitted estimator on the pool."""
        return FittedModel(self._model, None, self._pool)


@register_backend(ClassifierMixin)
class ClassifierBackend(EstimatorBackend):
    """Any classifier that predicts class probabilities."""

    task = "classification"
    step_fields = (CLASSIFIER_FIELDS - COMMITTEE_FIELDS) | {"train_error"}
    screening_fields = RELEVANCE_FIELDS
    default_acquisition = "margin"
    default_random_share = RANDOM_SHARES["classification"]
    has_committee: ClassVar[bool] = False

    def __init__(self, model: Any, settings: RunSettings) -> None:
        if not callable(getattr(model, "predict_proba", None)):
            raise InvalidValueError(
                f"{type(model).__name__} must have predict_proba; wrap it in CalibratedClassifierCV, or choose the "
                "parameters with which it predicts probabilities"
            )
        super().__init__(model, settings)
        if self._name == "relevance" and settings.positive is None:
            raise InvalidValueError("acquisition 'relevance' asks for one class first: give positive=, the class")
        if self._name == "bald" and not self.has_committee:
            raise InvalidValueError(
                f"bald compares the members of a committee, and {type(model).__name__} has none; use margin, or a "
                "forest or BaggingClassifier"
            )

    @classmethod
    def for_model(cls, model: Any) -> type[Backend]:
        """Forests and bagging have a committee."""
        averaging = any(base.__name__ in _AVERAGING for base in type(model).__mro__)
        return CommitteeBackend if averaging else ClassifierBackend

    def check(self, y: Any) -> None:
        """Raise an error for a label that is missing, or a number among words."""
        class_labels(y)
        if self._labels:
            class_labels(as_labels([self._labels[0], *np.asarray(as_labels(y)).tolist()]))

    def expected_errors(self, rows: Indices) -> tuple[Floats, Floats] | None:
        """Probabilities of a wrong prediction, and their reducible parts if a committee provides them."""
        width = len(self._model.classes_)
        found, known = self._now().class_predictions.errors(rows, range(width), width)
        return (found.total, found.reducible) if known else None

    def _scores(self, rows: Indices) -> Floats:
        fitted, width = self._now(), len(self._model.classes_)
        if self._name == "bald":
            gains = fitted.class_predictions.gains(rows, range(width), width)
            return np.zeros(len(rows)) if gains is None else gains
        p = fitted.class_predictions.probabilities(rows, range(width), width)
        if self._name == "relevance":
            # A class without a label has no probability, so its first item is searched at random.
            columns = np.flatnonzero(np.asarray(self._model.classes_) == self._settings.positive)
            return p[:, columns[0]] if len(columns) else np.zeros(len(rows))
        return margin(p) if self._name == "margin" else entropy(p)

    def _losses(self, X: Any, y: Any) -> tuple[float, float | None]:
        names = {name: code for code, name in enumerate(np.asarray(self._model.classes_).tolist())}
        codes = np.array([names.get(label, -1) for label in np.asarray(y).tolist()])
        p = np.asarray(self._model.predict_proba(X), dtype=np.float64)
        wrong = float((p.argmax(axis=1) != codes).mean())
        known = codes >= 0
        if not known.any():
            return float("nan"), wrong
        # The loss of an unknown class is not finite; its rows count as wrong predictions.
        chosen = p[known, codes[known]]
        return float(-np.log(np.maximum(chosen, _LEAST_PROBABILITY)).mean()), wrong


class CommitteeBackend(ClassifierBackend):
    """An ensemble of classifiers that predicts the average of its members."""

    step_fields = CLASSIFIER_FIELDS | {"train_error"}
    has_committee = True


@register_backend(RegressorMixin)
class RegressorBackend(EstimatorBackend):
    """Any regressor.

    If ``predict`` has no ``return_std``, rules take the variance of all labels for that of each label, and the random
    labels calibrate it.
    """

    task = "regression"
    step_fields = LOSS_FIELDS | REST_FIELDS | {"expected_error"}
    default_acquisition = "random"

    def __init__(self, model: Any, settings: RunSettings) -> None:
        self.gives_deviation = _tells_deviation(model)
        super().__init__(model, settings)
        if self._name == "variance" and not self.gives_deviation:
            raise InvalidValueError(
                f"variance needs the standard deviation of each prediction, and {type(model).__name__}.predict does "
                "not take return_std=True; use random or k-centre"
            )

    def check(self, y: Any) -> None:
        """Raise an error for a label that is not a number."""
        targets(y)

    def expected_errors(self, rows: Indices) -> tuple[Floats, Floats] | None:
        """Variances of the label, and of the noise-free value if the estimator provides them."""
        if not self.gives_deviation:
            return None
        numbers = self._now().numbers(rows)
        return None if numbers.latent is None else (numbers.variance, numbers.latent)

    def _fit(self, X: Any, labels: Any) -> Any:
        return super()._fit(X, labels.astype(np.float64))

    def _scores(self, rows: Indices) -> Floats:
        return self._now().numbers(rows).variance

    def _losses(self, X: Any, y: Any) -> tuple[float, float | None]:
        return float(np.mean((np.asarray(self._model.predict(X)) - np.asarray(y)) ** 2)), None


def _tells_deviation(model: Any) -> bool:
    last = model.steps[-1][1] if isinstance(model, Pipeline) else model
    return "return_std" in inspect.signature(last.predict).parameters


def _seeded(estimator: Any, rng: np.random.Generator) -> Any:
    """The estimator with each ``random_state`` that is None replaced by a number."""
    found = estimator.get_params(deep=True)
    names = sorted(name for name in found if name.rpartition("__")[2] == "random_state" and found[name] is None)
    return estimator.set_params(**{name: int(rng.integers(2**31)) for name in names})
