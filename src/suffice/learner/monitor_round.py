"""One update of a monitor: the fitted model, all labels, and the fields of the step that a rule uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.acquisition import Indices
from suffice.criteria import committee_agreement, relevance_facts
from suffice.criteria.prediction_statistics import POOL_FIELDS
from suffice.criteria.step_and_verdict import SAMPLED_FIELDS
from suffice.divergence import kl
from suffice.errors import InvalidValueError, SufficeError
from suffice.learner.available_fields import LATENT_FIELDS, predicts_classes_only
from suffice.learner.label_sets import SetClassifier
from suffice.learner.learning_loop import model_family
from suffice.learner.model_predictions import ComparedPosteriors, FittedModel, KnownPosterior
from suffice.learner.pool_predictions import PoolPredictions
from suffice.learner.pool_sample import PoolSample
from suffice.learner.refitted import can_be_fitted_again, refitted
from suffice.learner.step_inputs import (
    EXTREME_FIELDS,
    RELEVANCE_FIELDS,
    REST_FIELDS,
    SELECTED_FIELDS,
    STOP_SET_FIELDS,
    ClassPredictor,
    ExpectedErrors,
    RecentGain,
    pool_extremes,
    pool_fields,
    rest_fields,
    selected_fields,
    stop_set_fields,
)
from suffice.learner.update_memory import ClassColumns, EarlierRow, UpdateMark
from suffice.models.inputs import as_labels
from suffice.numerics import Floats
from suffice.saved_state import decoded_array, encoded_array
from suffice.session.held_out import (
    HeldOutPrediction,
    StoredLeftOut,
    class_predictions,
    has_learned,
    leaves_out,
    number_predictions,
)
from suffice.session.random_losses import LEAST_EXPECTED
from suffice.session.recorded_steps import DIVERGENCES

# Number of labels at which half of the error is assumed to be reducible if nothing else is known.
_REMOVABLE: Final = 50.0
_NOT_COMPARED: Final = "the posterior before cannot be compared in this step: {}"


@dataclass(frozen=True, eq=False)
class RememberedModel:
    """Predictions of the model of the last update for all unlabelled items, if the model itself is not available.

    Attributes:
        items: The items, rising.
        predicted: The predicted class or number of each.
        table: Class probabilities, ``N x C``; for numbers means and variances, ``N x 2``.
        votes: Votes of a committee, ``K x N``, or None.
        left_out: Predictions for the labels, each left out of the model; None if the model cannot do that.
        reducible: Expected reducible part of the error; None if it is not known.
        provided: Whether the variances are those of the model, and not that of all labels.
        doubts: For a classifier without probabilities, what stands for the probability of a wrong prediction; or None.
    """

    items: Indices
    predicted: list[Any]
    table: Floats
    votes: Any = None
    left_out: StoredLeftOut | None = None
    reducible: float | None = None
    provided: bool = True
    doubts: Floats | None = None

    @staticmethod
    def of(
        fitted: FittedModel, items: Indices, labels: Sequence[Any], columns: "ClassColumns", *, votes: bool
    ) -> "RememberedModel":
        """The predictions of a model.

        Args:
            fitted: The model.
            items: The unlabelled items.
            labels: All labels so far, which may name the classes.
            columns: Where the classes of the model are.
            votes: Whether the votes of a committee are needed.
        """
        predicted = fitted.predicted(items, labels).tolist() if len(items) else []
        if fitted.gives_probabilities:
            of_classes = fitted.class_predictions
            table = of_classes.probabilities(items, columns.places, len(columns.classes))
            cast = of_classes.votes(items, columns.places, len(columns.classes)) if votes and len(items) else None
            return RememberedModel(items, predicted, table, cast)
        if fitted.gives_numbers:
            numbers = fitted.numbers(items)
            table = np.column_stack([numbers.mean, numbers.variance])
            return RememberedModel(items, predicted, table, provided=fitted.gives_deviation)
        return RememberedModel(items, predicted, np.zeros((len(items), 0)), doubts=fitted.doubts(items))

    def places(self, items: Any) -> Indices:
        """Positions of items."""
        return np.searchsorted(self.items, np.asarray(items, dtype=np.intp))

    def state_dict(self) -> dict[str, Any]:
        """The predictions as JSON values."""
        return {
            "items": encoded_array(self.items),
            "predicted": self.predicted,
            "table": encoded_array(self.table),
            "votes": encoded_array(self.votes),
            "left_out": None if self.left_out is None else self.left_out.state_dict(),
            "reducible": self.reducible,
            "provided": self.provided,
            "doubts": encoded_array(self.doubts),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "RememberedModel":
        """Restore :meth:`state_dict`, also that of an earlier version."""
        left_out = state.get("left_out")
        return cls(
            items=decoded_array(state["items"]),
            predicted=list(state["predicted"]),
            table=decoded_array(state["table"]),
            votes=decoded_array(state["votes"]),
            left_out=None if left_out is None else StoredLeftOut.from_state(left_out),
            reducible=state.get("reducible"),
            provided=state.get("provided", True),
            doubts=decoded_array(state.get("doubts")),
        )


class StepEvidence(NamedTuple):
    """The fields of a step, the data for later comparisons, and the reason if there are no divergences."""

    fields: dict[str, Any]
    codes: Any
    posterior: KnownPosterior | None
    recent: RecentGain
    why: str


class FittedPredictor(NamedTuple):
    """Predictions of a fitted classifier for items; see :class:`suffice.learner.step_inputs.ClassPredictor`."""

    fitted: FittedModel
    columns: ClassColumns

    @property
    def _width(self) -> int:
        return len(self.columns.classes)

    def probabilities(self, rows: Indices) -> Floats:
        """Class probabilities, ``n x K``."""
        return self.fitted.class_predictions.probabilities(rows, self.columns.places, self._width)

    def votes(self, rows: Indices, members: int) -> Any:
        """The class that each member of the committee votes for."""
        del members
        return self.fitted.class_predictions.votes(rows, self.columns.places, self._width)

    def gains(self, rows: Indices) -> Floats:
        """Information gain of each item's label, in nats."""
        gains = self.fitted.class_predictions.gains(rows, self.columns.places, self._width)
        assert gains is not None
        return gains

    def errors(self, rows: Indices) -> ExpectedErrors:
        """Expected errors of items; the reducible part is 0 if it is not known."""
        return self.fitted.class_predictions.errors(rows, self.columns.places, self._width)[0]


class PredictedClasses(NamedTuple):
    """Predictions of a classifier without probabilities: 1 for the predicted class, for rules that use nothing else."""

    fitted: FittedModel
    columns: ClassColumns

    def probabilities(self, rows: Indices) -> Floats:
        """1 in the column of the predicted class and 0 in all others, ``n x K``."""
        return one_hot(self.fitted.predicted(rows, ()), self.columns.classes)

    def votes(self, rows: Indices, members: int) -> Any:
        """Not known."""
        raise NotImplementedError

    def gains(self, rows: Indices) -> Floats:
        """Not known."""
        raise NotImplementedError

    def errors(self, rows: Indices) -> ExpectedErrors:
        """Not known."""
        raise NotImplementedError


def one_hot(labels: Any, classes: Sequence[Any]) -> Floats:
    """1 in the column of each label and 0 in all others, ``n x K``.

    Examples:
        >>> one_hot(["b", "a"], ["a", "b", "c"]).tolist()
        [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    """
    place = {name: code for code, name in enumerate(classes)}
    named, codes = np.unique(np.asarray(labels), return_inverse=True)
    found = np.zeros((len(codes), len(classes)))
    found[np.arange(len(codes)), np.array([place[name] for name in named.tolist()], dtype=np.intp)[codes]] = 1.0
    return found


@dataclass(frozen=True, eq=False)
class MonitorRound:
    """One update: the model, the labels, and the predictions before the labels were known.

    Attributes:
        fitted: The model.
        labels: All labels by item.
        earlier: Predictions for items before their labels were known.
        columns: Where the classes of the model are.
        size: Number of items of the pool.
        watched: The items over which statistics of a large pool are averaged.
        sample: A fixed sample of items, over whose unlabelled ones errors are averaged.
        stop: The stop set.
        positive: The positive class of a screening, or None.
        order: The items in the order in which the caller gave them, and probably fitted the model.
    """

    fitted: FittedModel
    labels: Mapping[int, Any]
    earlier: Mapping[int, EarlierRow]
    columns: ClassColumns
    size: int
    watched: PoolSample
    sample: Indices
    stop: Indices
    positive: Any
    order: Sequence[int]

    @cached_property
    def free(self) -> Indices:
        """Unlabelled items."""
        free = np.ones(self.size, dtype=bool)
        free[list(self.labels)] = False
        return np.flatnonzero(free)

    @property
    def predictor(self) -> ClassPredictor:
        """Predictions of the model, for classes."""
        kind = PredictedClasses if predicts_classes_only(self.fitted) else FittedPredictor
        return kind(self.fitted, self.columns)

    def evidence(
        self, wanted: frozenset[str], last: UpdateMark | None, recent: RecentGain, selected: list[int]
    ) -> StepEvidence:
        """The wanted fields of the step that depend on the model, and the data for later comparisons.

        Args:
            wanted: The fields.
            last: The update before, or None.
            recent: Earlier predictions for the sample.
            selected: Items that are new since the last step.
        """
        fields: dict[str, Any] = {}
        codes = None
        if wanted & (POOL_FIELDS | LATENT_FIELDS):
            pool, codes = self._pool_fields(wanted, None if last is None else last.codes)
            fields |= pool
        if wanted & STOP_SET_FIELDS:
            fields |= self._stop_fields(wanted)
        if wanted & REST_FIELDS:
            fields |= self._rest_fields(recent, first=last is None)
        if wanted & RELEVANCE_FIELDS:
            fields |= self._relevance_fields()
        if "train_error" in wanted:
            items = np.array(list(self.labels), dtype=np.intp)
            p = self.predictor.probabilities(items)
            fields["train_error"] = float(1.0 - p[np.arange(len(items)), self._codes(items)].mean())
        if wanted & SELECTED_FIELDS and last is not None:
            fields |= self._selected_fields(selected, wanted)
        posterior, why = None, ""
        if wanted & DIVERGENCES:
            compared, divergences = self._posteriors(last)
            posterior, why = compared.known, compared.why and _NOT_COMPARED.format(compared.why)
            fields |= divergences
        return StepEvidence(fields, codes, posterior, recent, why)

    def _codes(self, items: Any) -> Any:
        """Columns of the labels of items."""
        place = {name: code for code, name in enumerate(self.columns.classes)}
        return np.array([place[self.labels[int(item)]] for item in items], dtype=np.intp)

    def _relevance_fields(self) -> dict[str, Any]:
        """Fields from the probability of the positive class."""
        classes, items, p = self.columns.classes, np.arange(self.size), np.zeros(self.size)
        if self.positive in classes:
            p = self.predictor.probabilities(items)[:, classes.index(self.positive)]
        return relevance_facts(p, np.isin(items, list(self.labels)))

    def _pool_fields(self, wanted: frozenset[str], before: Any) -> tuple[dict[str, Any], Any]:
        """Fields about all unlabelled items, and their predicted classes."""
        if self.fitted.task == "regression":
            if not len(self.free):
                return {"pool_variance": 0.0, "pool_gain": 0.0}, None
            numbers = self.fitted.numbers(self.free)
            assert numbers.latent is not None
            noise = np.maximum(numbers.variance - numbers.latent, np.finfo(np.float64).tiny)
            gain = 0.5 * float(np.log1p(numbers.latent / noise).max())
            return {"pool_variance": float(numbers.latent.max()), "pool_gain": gain}, None
        places = self.watched.places(self.labels)
        if places is not None:
            return self._fields_of_sample(wanted, before, places)
        # An item whose label was removed has no earlier prediction.
        earlier = None if before is None else self.watched.codes_of_all(before)[self.free]
        fields, predicted = pool_fields(self.predictor, self.free, wanted, earlier)
        if predicted is None:
            return fields, None
        codes = np.full(self.size, -1)
        codes[self.free] = predicted
        return fields, codes

    def _fields_of_sample(self, wanted: frozenset[str], before: Any, places: Indices) -> tuple[dict[str, Any], Any]:
        """Averages over a sample of the unlabelled items, extremes over all of them, and the classes of the sample."""
        fields: dict[str, Any] = pool_extremes(self.predictor, self.free, wanted) if wanted & EXTREME_FIELDS else {}
        if not wanted & SAMPLED_FIELDS:
            return fields, None
        earlier = None if before is None else self.watched.codes_of_sample(before)[places]
        averages, predicted = pool_fields(self.predictor, self.watched.items[places], wanted & SAMPLED_FIELDS, earlier)
        fields |= averages | {"pool_sample": len(places)}
        if predicted is None:
            return fields, None
        codes = np.full(len(self.watched.items), -1)
        codes[places] = predicted
        return fields, codes

    def _stop_fields(self, wanted: frozenset[str]) -> dict[str, Any]:
        """Fields about the stop set."""
        if self.fitted.task == "regression":
            return {"expected_error": float(self.fitted.numbers(self.stop).variance.mean())}
        return stop_set_fields(self.predictor, self.stop, wanted)

    def _rest_fields(self, recent: RecentGain, *, first: bool) -> dict[str, Any]:
        """Fields about the error of unlabelled items and its reducible part."""
        rest, n = ~np.isin(self.sample, list(self.labels)), len(self.labels)
        if self.fitted.task == "classification":
            width = len(self.columns.classes)
            errors, reducible_known = self.fitted.class_predictions.errors(self.sample, self.columns.places, width)
            fields = rest_fields(errors, rest, recent, n)
            if not leaves_out(self.fitted.last_step):
                # A model that is always certain would leave nothing to be calibrated.
                fields["unlabelled_error"] = max(fields["unlabelled_error"], LEAST_EXPECTED)
        else:
            predicted, total, reducible = self.fitted.numbers(self.sample)
            gain = recent.since_half(n, lambda past: float(np.mean((predicted - past) ** 2)))
            recent.keep(n, predicted)
            reducible_known = reducible is not None
            fields = {
                "unlabelled_error": float(total[rest].mean()) if rest.any() else 0.0,
                "reducible_error": float(reducible[rest].mean()) if reducible is not None and rest.any() else 0.0,
                "recent_gain": gain,
                "error_scale": self._label_variance(),
            }
        if first:
            del fields["recent_gain"]
        if not reducible_known and first:
            del fields["reducible_error"]
        elif not reducible_known:
            # The reducible part of the error is not known. The recent gain is used instead, or a share that decreases
            # with the number of labels if it is larger, because the recent gain of a model that has not learned yet is
            # 0.
            share = fields["unlabelled_error"] * _REMOVABLE / (_REMOVABLE + n)
            fields["reducible_error"] = max(fields["recent_gain"], share)
        return fields

    def _label_variance(self) -> float:
        """Variance of the labels from which hyper-parameters were learned; 1 if all labels are the same."""
        values = [self.labels[item] for item in self.order]
        learned = getattr(self.fitted.last_step, "learned_at_", None)
        if isinstance(learned, int | np.integer) and leaves_out(self.fitted.last_step):
            values = values[: int(learned)]
        return float(np.var(values)) or 1.0

    def _selected_fields(self, items: list[int], wanted: frozenset[str]) -> dict[str, Any]:
        """Fields about the items that are new since the last step; none if one of them was not predicted."""
        rows = [self.earlier[item] for item in items if item in self.earlier]
        if len(rows) < len(items) or not items:
            return {}
        if self.fitted.task == "regression":
            losses = [(float(self.labels[item]) - row.mean) ** 2 for item, row in zip(items, rows, strict=True)]
            expected = [row.variance for row in rows]
            return {"selected_loss": float(np.mean(losses)), "selected_expected_loss": float(np.mean(expected))}
        given = [self._row_of(row) for row in rows]
        p = np.zeros((len(given), max(map(len, given))))
        for row, values in zip(p, given, strict=True):
            row[: len(values)] = values
        fields = selected_fields(p, self._codes(items))
        if "selected_agreement" in wanted and all(row.votes is not None for row in rows):
            votes = np.array([row.votes for row in rows]).T
            fields["selected_agreement"] = committee_agreement(votes, p.shape[1])
        return fields

    def _row_of(self, row: EarlierRow) -> Sequence[float]:
        """The class probabilities of an earlier prediction; 1 for a class that was predicted without them."""
        if row.label is not None:
            return list(map(float, one_hot([row.label], self.columns.classes)[0]))
        return row.probabilities or ()

    def _posteriors(self, last: UpdateMark | None) -> tuple[ComparedPosteriors, dict[str, Any]]:
        """The posterior of this update, and the divergences from that of an earlier update, if there is one.

        Raises:
            InvalidValueError: There is no posterior.
        """
        before, posterior = (None, None) if last is None else (last.labels, last.posterior)
        try:
            compared = self.fitted.posterior.compared(self.labels, before, posterior)
            if compared.pair is None:
                return compared, {}
            old, new = compared.pair
            return compared, {"kl_new_old": kl(new, old), "kl_old_new": kl(old, new)}
        except SufficeError as error:
            raise InvalidValueError(
                f"kl_new_old and kl_old_new compare the posteriors of two updates, which is not possible here: {error}"
            ) from None


class MonitorView:
    """The model of the last update; see :class:`suffice.session.model_view.ModelView`.

    Args:
        kept: A copy of the model, or its predictions.
        columns: Where the classes of the model are.
        task: ``"classification"`` or ``"regression"``.
        name: What the model is called.
        labels: All labels of the last update, by item.
        order: Their items in the order in which the caller gave them.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the data of an update
        self,
        kept: "FittedModel | RememberedModel",
        columns: ClassColumns,
        task: str,
        name: str,
        labels: Mapping[int, Any],
        order: Sequence[int],
    ) -> None:
        self._kept, self._columns, self._task, self._name = kept, columns, task, name
        self._labels, self._order = labels, list(order)
        self._judged: Any = self._leave_out_model()

    @property
    def task(self) -> str:
        """``"classification"`` or ``"regression"``."""
        return self._task

    @property
    def name(self) -> str:
        """What the model is called in a guarantee."""
        return self._name

    @property
    def family(self) -> str:
        """Its name among :data:`suffice.models.factory.MODEL_FAMILIES`, or an empty text."""
        return (
            model_family(self._kept.last_step, self._kept.transformers) if isinstance(self._kept, FittedModel) else ""
        )

    def judged_model(self) -> Any:
        """The model of suffice without its pipeline, if it has learned the labels in the order of the caller."""
        return self._judged

    def _leave_out_model(self) -> Any:
        if isinstance(self._kept, RememberedModel):
            return self._kept.left_out
        model = self._kept.last_step
        if not leaves_out(model) or model.n_labels_ != len(self._order):
            return None
        labels = np.array([self._labels[item] for item in self._order])
        return model if has_learned(model, self.inputs(self._order), labels) else None

    def remembered(self, items: Indices, random: Sequence[int], *, votes: bool) -> RememberedModel:
        """The predictions of the model, to be saved.

        Args:
            items: The unlabelled items.
            random: Items that were drawn at random.
            votes: Whether the votes of a committee are needed.
        """
        if isinstance(self._kept, RememberedModel):
            return self._kept
        kept = RememberedModel.of(self._kept, items, list(self._labels.values()), self._columns, votes=votes)
        place = {item: k for k, item in enumerate(self._order)}
        places = np.unique(np.array([place[item] for item in random], dtype=np.intp))
        left_out = None if self._judged is None else StoredLeftOut.of_model(self._judged, places)
        return replace(kept, left_out=left_out)

    def learned_order(self) -> list[int]:
        """The labelled items in the order in which the caller gave them."""
        return self._order

    def inputs(self, items: Any) -> Any:
        """Inputs of items for :meth:`judged_model`."""
        if isinstance(self._kept, RememberedModel):
            raise SufficeError("the model of the last update is not saved with a monitor; call update first")
        if isinstance(self._kept.model, PoolPredictions):
            raise SufficeError("this requires a model, and update was given predictions; call update(model, ...) first")
        return np.asarray(self._kept.transformed(np.asarray(items, dtype=np.intp)), dtype=np.float64)

    def expected_losses(self, items: Indices) -> Floats | None:
        """The loss that the model expects of each item; None if it does not provide it."""
        kept, classes = self._kept, self._task == "classification"
        if isinstance(kept, RememberedModel):
            table = kept.table[kept.places(items)]
            if not table.shape[1]:
                return None if kept.doubts is None else kept.doubts[kept.places(items)]
            if not kept.provided:
                return None
            return np.asarray(1.0 - table.max(axis=1, initial=0.0) if classes else table[:, 1])
        if classes and kept.gives_probabilities:
            p = kept.class_predictions.probabilities(items, self._columns.places, len(self._columns.classes))
            return np.asarray(1.0 - p.max(axis=1, initial=0.0))
        if classes:
            return kept.doubts(items)
        return kept.numbers(items).variance if kept.gives_deviation else None

    def predictions(self, items: Indices) -> list[HeldOutPrediction]:
        """Predictions for items that the model has not learned."""
        kept, n = self._kept, len(self._order)
        if isinstance(kept, FittedModel):
            return self._predictions_of(kept, items, n)
        places = kept.places(items)
        labels, table = [kept.predicted[place] for place in places.tolist()], kept.table[places]
        if not table.shape[1]:
            return _label_predictions(labels, None if kept.doubts is None else kept.doubts[places], n)
        if self._task == "classification":
            return class_predictions(table, self._columns.classes, n)
        return number_predictions(table[:, 0], table[:, 1] if kept.provided else None, n)

    def predictions_without(self, items: Indices) -> list[HeldOutPrediction] | None:
        """Predictions for learned items by the model fitted again without them; None if that is not possible."""
        kept = self._kept
        if isinstance(kept, RememberedModel) or not can_be_fitted_again(kept.model):
            return None
        without = set(items.tolist())
        others = [item for item in self._order if item not in without]
        labels = np.asarray(as_labels([self._labels[item] for item in others]))
        model = refitted(
            kept.model, kept.rows(np.array(others, dtype=np.intp)), labels, classes=self._task == "classification"
        )
        return self._predictions_of(kept.with_model(model), items, len(others))

    def _predictions_of(self, fitted: FittedModel, items: Indices, n_labels: int) -> list[HeldOutPrediction]:
        labels = list(self._labels.values())
        if self._task == "regression":
            mean, variance = fitted.predicted(items, labels), None
            if fitted.gives_deviation:
                mean, variance, _ = fitted.numbers(items)
            return number_predictions(np.asarray(mean, dtype=np.float64), variance, n_labels)
        if not fitted.gives_probabilities:
            predicted = fitted.predicted(items, labels).tolist()
            return _label_predictions(predicted, fitted.doubts(items), n_labels)
        names = fitted.class_predictions.classes(labels)
        p = fitted.class_predictions.probabilities(items, range(len(names)), len(names))
        return class_predictions(p, names, n_labels)

    def expected_errors(self, items: Indices) -> tuple[Floats, Floats] | None:
        """The errors that the model expects of items, and their reducible parts; None if these are not known."""
        kept = self._kept
        if isinstance(kept, RememberedModel):
            return None
        if self._task == "classification":
            if not kept.gives_probabilities:
                return None
            errors, known = kept.class_predictions.errors(items, self._columns.places, len(self._columns.classes))
            return (errors.total, errors.reducible) if known else None
        if not kept.gives_deviation:
            return None
        numbers = kept.numbers(items)
        return None if numbers.latent is None else (numbers.variance, numbers.latent)

    def class_probabilities(self, items: Indices) -> tuple[list[Any], Floats]:
        """The classes so far, and their probabilities, ``n x K``."""
        classes, kept = self._columns.classes, self._kept
        if isinstance(kept, RememberedModel):
            return classes, kept.table[kept.places(items)]
        if not kept.gives_probabilities:
            return classes, np.zeros((len(items), len(classes)))
        if self._judged is not None:
            # The columns of the model itself, in which labels are left out.
            return np.asarray(self._judged.classes_).tolist(), kept.class_predictions.probabilities(
                items, range(len(self._columns.places)), len(self._columns.places)
            )
        return classes, kept.class_predictions.probabilities(items, self._columns.places, len(classes))

    def frozen(self, items: Indices) -> tuple[Any, Any]:
        """The model, or None if it is not available; and its predictions for items."""
        kept = self._kept
        if isinstance(kept, RememberedModel):
            return None, [kept.predicted[place] for place in kept.places(items).tolist()]
        model = None if isinstance(kept.model, PoolPredictions) else kept.model
        model = model.estimator if isinstance(model, SetClassifier) else model
        return model, kept.predicted(items, list(self._labels.values())).tolist() if len(items) else []

    def compared_inputs(self, items: Indices) -> Any:
        """Inputs of items for a comparison with other models; None if they are not numbers."""
        if self._judged is None or isinstance(self._kept, RememberedModel):
            return None
        rows = self._kept.rows(items)
        plain = isinstance(rows, np.ndarray) and rows.dtype.kind in "fiu"
        return np.asarray(rows, dtype=np.float64) if plain else self.inputs(items)


def _label_predictions(labels: Sequence[Any], doubts: Floats | None, n_labels: int) -> list[HeldOutPrediction]:
    """Predictions of a classifier without probabilities."""
    expected = [None] * len(labels) if doubts is None else doubts.tolist()
    return [HeldOutPrediction(label, doubt, None, n_labels) for label, doubt in zip(labels, expected, strict=True)]
