"""Losses of labels that were drawn at random, each under a model that has not learned it, and estimates from them."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.acquisition import Indices
from suffice.models.predictive import guessed_places
from suffice.numerics import Floats
from suffice.session.decision import Worsening
from suffice.session.error_estimate import (
    FEWEST_COMPARED,
    NUMBER_CHOSEN_WEIGHT,
    CalibratedError,
    calibration_ratio,
    class_error,
    compared_losses,
    number_error,
    relevance_ratio,
    share_beyond,
    sharpened_error,
    sharpening,
    worsening,
)
from suffice.session.held_out import (
    HeldOutPrediction,
    StoredLeftOut,
    leaves_classes_out,
    leaves_out,
    left_out,
    left_out_logs,
)
from suffice.session.model_view import EstimatedModel
from suffice.session.refit_budget import FOLDS, RefitBudget

# A prediction by a model with n of the present N labels has the weight (n / N) to this power.
_AGE_POWER: Final = 2.0
# The error falls with (n / N) to the power 1/5 if all labels are random, and to the sum of both if all are chosen:
# chosen labels are those of the hardest items, and what is left is easier. Both were chosen on sets of development.
_FALL_RANDOM, _FALL_CHOSEN = 1.0 / 5.0, 1.0 / 6.0
#: Least share of wrong predictions that a model of another package may expect, in the inputs of rules.
LEAST_EXPECTED: Final = 0.001


class _HeldOutLosses(NamedTuple):
    """Losses of some labels under models without them.

    Attributes:
        losses: 0 or 1 for classes, squared residuals for numbers.
        expected: What the models expect of them; NaN if a model does not provide it.
        weights: Weight of each label.
        predicted_at: Number of labels of the oldest model; None if it is not known, or that of now.
    """

    losses: Floats
    expected: Floats
    weights: Floats
    predicted_at: int | None = None


class RareClassEvidence(NamedTuple):
    """What labels say about the probabilities of a class.

    Attributes:
        factor: Factor of log probabilities that corrects the confidence of the model; 1 if it is not known.
        ratio: Ratio of random labels of the class to the number that the model then expects, shrunk towards 1.
        found: Number of random labels of the class that a model without them predicts as such.
        labels: Number of random labels of the class.
    """

    factor: float
    ratio: float
    found: int
    labels: int


class RandomLabelLosses:
    """Losses of the labels that were drawn at random, each under a model without it.

    - Gaussian processes, ridge and logistic regression of suffice leave labels out in closed form, so the current model
      predicts each random label.
    - Other models are fitted again, if that is possible: the random labels are divided into five parts, and each part
      is predicted by a model that has learned all other labels. A :class:`RefitBudget` limits the number of fits. The
      parts with the oldest predictions are renewed first.
    - Labels that were not predicted in this way have been predicted before they were learned.

    A prediction by a model with ``n`` of the present ``N`` labels has the weight :math:`(n / N)^2`, and its loss is
    multiplied by :math:`(n / N)^{1/5 + c/6}`, because the error has fallen since; ``c`` is the share of labels that
    were not drawn at random.

    Args:
        task: ``"regression"`` or ``"classification"``.
        estimate_time: Number of refits per fit of the user, at most.

    Attributes:
        budget: Limits the refits.
        refit_problem: Why the model cannot be fitted again, or an empty text.
    """

    def __init__(self, task: str, estimate_time: float = 1.0) -> None:
        self._task = task
        self._predicted: dict[int, HeldOutPrediction] = {}
        self._losses: dict[int, float] = {}
        self._refitted: dict[int, HeldOutPrediction] = {}
        self._folds: dict[int, int] = {}
        self.budget = RefitBudget(estimate_time)
        self.refit_problem = ""

    def count(self, model: Any, items: Sequence[int]) -> int:
        """Number of random labels that calibrate the estimate of a model."""
        if leaves_out(model):
            return len(items)
        return len(self._losses.keys() | self._refitted.keys())

    def record(self, predictions: Mapping[int, HeldOutPrediction]) -> None:
        """Store predictions for random items that were made before their labels were learned."""
        self._predicted.update(predictions)

    def has(self, item: int) -> bool:
        """Whether a prediction for the item is stored."""
        return item in self._predicted

    def only(self, items: Collection[int]) -> "RandomLabelLosses":
        """A copy with the predictions and losses of some items only."""
        copied = RandomLabelLosses(self._task)
        for name in ("_predicted", "_losses", "_refitted", "_folds"):
            setattr(copied, name, {item: value for item, value in getattr(self, name).items() if item in items})
        copied.budget = RefitBudget.from_state(self.budget.state_dict())
        copied.refit_problem = self.refit_problem
        return copied

    def of_column(self, column: int, labels: Mapping[int, Any]) -> "RandomLabelLosses":
        """The same for one class of labels that are sets of classes.

        Args:
            column: The class.
            labels: Whether each label has the class, by item.
        """
        copied = self.only(labels)
        for name in ("_predicted", "_refitted"):
            said = getattr(copied, name).items()
            setattr(copied, name, {item: each._replace(label=each.label[column], logs=None) for item, each in said})
        copied._losses = {item: copied._loss(copied._predicted[item], labels[item]) for item in copied._losses}
        return copied

    def label(self, item: int, label: Any) -> None:
        """Store the loss of an item's new or corrected label; items without a prediction are ignored."""
        predicted = self._predicted.get(item)
        if predicted is not None:
            self._losses[item] = self._loss(predicted, label)

    def _loss(self, predicted: HeldOutPrediction, label: Any) -> float:
        if self._task == "classification":
            return float(predicted.label != label)
        return float((float(label) - predicted.label) ** 2)

    # Refits.

    def refresh(self, view: EstimatedModel, labels: Mapping[int, Any], items: Sequence[int]) -> None:
        """Predict random labels by models that are fitted again without them, as far as the budget allows.

        A model that cannot be fitted again is not tried a second time; :attr:`refit_problem` says why.

        Args:
            view: The current model.
            labels: All labels by item.
            items: The items that were drawn at random.
        """
        if not items or not self.budget.share or self.refit_problem or leaves_out(view.judged_model()):
            return
        for item in items:
            self._folds.setdefault(item, len(self._folds) % FOLDS)
        folds: dict[int, list[int]] = {}
        for item in items:
            folds.setdefault(self._folds[item], []).append(item)
        n = len(labels)
        stale = {number: sum(self._age(item, n - len(fold)) for item in fold) for number, fold in folds.items()}
        due = sorted((number for number in folds if stale[number] > 0.0), key=lambda number: -stale[number])
        for number in due[: self.budget.allowed(n, len(due))]:
            without = folds[number]
            if len(without) == n:
                continue
            try:
                predictions = view.predictions_without(np.array(without, dtype=np.intp))
            # A fit of any package can fail in any way; the estimate continues with earlier predictions.
            except Exception as error:
                self.refit_problem = f"{type(error).__name__}: {error}"
                return
            if predictions is None:
                return
            self._refitted.update(zip(without, predictions, strict=True))
            self.budget.spend(n - len(without), 1)

    def _age(self, item: int, n: int) -> float:
        """How much of its weight the last refit without an item has lost; above 1 if there was none."""
        refitted = self._refitted.get(item)
        return 1.0 + 1e-9 if refitted is None else 1.0 - min(1.0, refitted.n_labels / max(n, 1)) ** _AGE_POWER

    def _freshest(self, item: int) -> HeldOutPrediction:
        """The prediction for an item by the newest model without it."""
        return self._refitted.get(item) or self._predicted[item]

    def _held_out(
        self, view: EstimatedModel, labels: Mapping[int, Any], items: Sequence[int], unlearned: Mapping[int, Any]
    ) -> _HeldOutLosses:
        """Losses of random labels under models without them, for a model that does not leave labels out.

        Args:
            view: The current model.
            labels: All labels by item.
            items: The items that were drawn at random.
            unlearned: Labels of random items that the current model has not learned, which it predicts itself.
        """
        losses, expected, counts = [], [], []
        trusted = not self._refits_are_worse(labels)
        for item in items:
            refitted = self._refitted.get(item) if trusted else None
            if refitted is not None:
                losses.append(self._loss(refitted, labels[item]))
            elif item in self._losses:
                losses.append(self._losses[item])
            else:
                continue
            prediction = refitted or self._predicted[item]
            expected.append(prediction.expected)
            counts.append(prediction.n_labels)
        n = max(len(labels), 1)
        if unlearned:
            predictions = view.predictions(np.array(list(unlearned), dtype=np.intp))
            for label, prediction in zip(unlearned.values(), predictions, strict=True):
                losses.append(self._loss(prediction, label))
                expected.append(prediction.expected)
                counts.append(n)
        weights = np.array([1.0 if not count else min(1.0, count / n) for count in counts]) ** _AGE_POWER
        values = np.array([math.nan if value is None else value for value in expected])
        oldest = min((count for count in counts if count), default=n)
        return _HeldOutLosses(np.array(losses), values, weights, oldest if oldest < n else None)

    def _refits_are_worse(self, labels: Mapping[int, Any]) -> bool:
        """Whether refits are clearly worse than the user's own models were, which then learn from more than labels."""
        both = [item for item in self._refitted if item in self._losses and item in labels]
        before = [self._losses[item] for item in both]
        return compared_losses(before, [self._loss(self._refitted[item], labels[item]) for item in both]) is not None

    # Results.

    def worsening(self, model: Any, labels: Mapping[int, Any]) -> Worsening | None:
        """Whether the current model predicts the newer random labels worse than earlier models did.

        Args:
            model: The current model.
            labels: All labels by item, in the order learned.

        Returns:
            The comparison if it is worse; None otherwise, and for a model that cannot leave labels out.
        """
        place = {item: k for k, item in enumerate(labels)}
        items = [item for item in self._losses if self._earlier_loss(item, labels[item]) is not None]
        if len(items) < 2 * FEWEST_COMPARED:
            return None
        now = left_out(model, np.array([place[item] for item in items]))
        if now is None:
            return None
        return worsening([self._earlier_loss(item, labels[item]) for item in items], now.comparable)

    def _earlier_loss(self, item: int, label: Any) -> float | None:
        """The loss of a label when it was learned; None for a class that was new then."""
        predicted = self._predicted[item]
        if self._task == "regression":
            return self._losses[item]
        log_probability = None if predicted.logs is None else predicted.logs.get(label)
        return None if log_probability is None else -float(log_probability)

    def ratio(self, view: EstimatedModel, rest: Indices, labels: Mapping[int, Any], items: Sequence[int]) -> float:
        """Ratio of the losses of random labels to the expected ones: the calibration of a rule.

        For a model that does not leave labels out, the error that the model expects of the unlabelled items, at least
        :data:`LEAST_EXPECTED`, times this ratio is the value of :meth:`estimate`.

        Args:
            view: The current model.
            rest: Unlabelled items.
            labels: All labels by item, in the order learned.
            items: The items that were drawn at random.
        """
        model = view.judged_model()
        if leaves_out(model):
            if not items:
                return 1.0
            losses, expected, weights, _ = self._left_out_pairs(model, labels, items)
            return calibration_ratio(losses, expected, weights, task=self._task)
        if not self.count(model, items) or not len(rest):
            return 1.0
        estimate = self.estimate(view, rest, labels, items)
        least = LEAST_EXPECTED if self._task == "classification" else 0.0
        expected_error = max(estimate.model_alone, least)
        return estimate.value / expected_error if expected_error > 0.0 else 1.0

    def _left_out_pairs(
        self, model: Any, labels: Mapping[int, Any], items: Sequence[int]
    ) -> tuple[Floats, Floats, Floats, Any]:
        """Losses and expected losses of labels that a model leaves out, their weights, and which of them are random.

        For numbers, labels that were not drawn at random have a small weight.
        """
        place = {item: k for k, item in enumerate(labels)}
        drawn = np.array([place[item] for item in items], dtype=np.intp)
        stored = isinstance(model, StoredLeftOut)
        places = drawn if self._task == "classification" else model.places if stored else np.arange(len(place))
        random = np.isin(places, drawn)
        losses = left_out(model, places)
        assert losses is not None
        return losses.losses, losses.expected, np.where(random, 1.0, NUMBER_CHOSEN_WEIGHT), random

    def losses_of(self, view: EstimatedModel, labels: Mapping[int, Any], items: Sequence[int]) -> Floats:
        """Losses of random labels under models without them, as far as there are any.

        Args:
            view: The current model.
            labels: All labels by item, in the order learned.
            items: The items that were drawn at random.
        """
        if not leaves_out(view.judged_model()):
            return self._held_out(view, labels, items, {}).losses
        losses, _, _, random = self._left_out_pairs(view.judged_model(), labels, items)
        return np.asarray(losses[random])

    def class_ratio(self, model: Any, labels: Mapping[int, Any], items: Sequence[int], class_name: Any) -> float:
        r"""Ratio of random labels of a class to the number that the model expects, shrunk towards 1.

        .. math:: (4 + \sum_i 1[y_i = c]) / (4 + \sum_i p_i)

        Args:
            model: The current model.
            labels: All labels by item, in the order learned.
            items: The items that were drawn at random.
            class_name: The class.
        """
        predicted = self._class_predictions(model, labels, items)
        expected = sum(by_class.get(class_name, 0.0) for _, by_class in predicted)
        hits = sum(bool(label == class_name) for label, _ in predicted)
        return relevance_ratio(hits, expected)

    def class_evidence(
        self, view: EstimatedModel, labels: Mapping[int, Any], items: Sequence[int], class_name: Any
    ) -> RareClassEvidence:
        """What the labels say about the probabilities of a class.

        Args:
            view: The current model.
            labels: All labels by item, in the order learned.
            items: The items that were drawn at random.
            class_name: The class.
        """
        model, factor = view.judged_model(), 1.0
        if items and leaves_classes_out(model):
            logs, codes, random = _left_out_classes(model, labels, items)
            factor = sharpening(logs, codes, random)
        predicted = self._class_predictions(model, labels, items)
        names = [(label, max(each, key=lambda name: each[name])) for label, each in predicted]
        hits = sum(bool(label == class_name) for label, _ in names)
        found = sum(bool(label == class_name and guess == class_name) for label, guess in names)
        expected = sum(_sharpened_share(each, class_name, factor) for _, each in predicted)
        return RareClassEvidence(factor, relevance_ratio(hits, expected), found, hits)

    def _class_predictions(
        self, model: Any, labels: Mapping[int, Any], items: Sequence[int]
    ) -> list[tuple[Any, dict[Any, float]]]:
        """Random labels, and the probability of each class by a model that has not learned the label."""
        if items and leaves_classes_out(model):
            place = {item: k for k, item in enumerate(labels)}
            classes = list(model.classes) if isinstance(model, StoredLeftOut) else model.classes_.tolist()
            p = np.exp(left_out_logs(model, np.array([place[item] for item in items], dtype=np.intp))[0])
            # A model that knows a single class has a column more.
            rows = [dict(zip(classes, row, strict=False)) for row in p.tolist()]
            return [(labels[item], row) for item, row in zip(items, rows, strict=True)]
        logs = {item: self._freshest(item).logs for item in self._losses.keys() | self._refitted.keys()}
        return [
            (labels[item], {name: math.exp(log) for name, log in by_class.items()})
            for item, by_class in logs.items()
            if by_class
        ]

    def estimate(  # noqa: PLR0913, PLR0917 - the data of a session
        self,
        view: EstimatedModel,
        rest: Indices,
        labels: Mapping[int, Any],
        items: Sequence[int],
        tolerance: float | None = None,
        unlearned: Mapping[int, Any] | None = None,
    ) -> CalibratedError:
        """The calibrated error of a model on unlabelled items.

        Args:
            view: The current model.
            rest: Unlabelled items; the error is 0 if there is none.
            labels: All labels by item, in the order in which the model has learned them.
            items: The items that were drawn at random.
            tolerance: If given, the error of numbers is the share that is off by more than this: a loss is 1 if so,
                and the model expects it with the probability of :func:`share_beyond`.
            unlearned: Labels of random items that the model has not learned, such as those of a check.
        """
        model, extra, predicted_at = view.judged_model(), unlearned or {}, None
        # How far the losses have fallen since the labels were predicted.
        fallen: Any = 1.0
        if not len(rest):
            return CalibratedError(0.0, 0.0, 0.0, 0.0, len(items) + len(extra))
        if leaves_classes_out(model):
            return _sharpened(model, view, rest, labels, items, extra)
        if leaves_out(model):
            losses, expected, weights, random = self._left_out_pairs(model, labels, items)
            if extra:
                more = self._held_out(view, labels, (), extra)
                losses, expected = np.append(losses, more.losses), np.append(expected, more.expected)
                weights, random = np.append(weights, more.weights), np.append(random, np.ones(len(extra), dtype=bool))
        else:
            losses, expected, weights, predicted_at = self._held_out(view, labels, items, extra)
            chosen = 1.0 - len(items) / max(len(labels), 1)
            fallen = weights ** ((_FALL_RANDOM + _FALL_CHOSEN * chosen) / _AGE_POWER)
            random = np.ones(len(losses), dtype=bool)
        expected_rest = view.expected_losses(rest)
        trivial = expected_rest is None or bool(np.isnan(expected).any())
        if trivial:
            # A model that provides no expected losses is compared with a trivial prediction.
            value = 0.5 if self._task == "classification" else float(np.var(list(labels.values()))) or 1.0
            expected_rest, expected = np.full(len(rest), value), np.full(len(losses), value)
        if self._task == "classification":
            guessed = 1.0 - 1.0 / max(2, len(set(labels.values())))
            estimate = class_error(expected_rest, expected, fallen * losses, weights, guessed=guessed)
            return estimate._replace(predicted_at=predicted_at)
        if tolerance is None:
            estimate = number_error(expected_rest, fallen * losses, expected, weights, random, trivial=trivial)
            return estimate._replace(predicted_at=predicted_at)
        beyond = fallen * (losses > tolerance**2).astype(np.float64)
        shares, rest_shares = share_beyond(tolerance, expected), share_beyond(tolerance, expected_rest)
        estimate = class_error(rest_shares, shares[random], beyond[random], weights[random])
        return estimate._replace(predicted_at=predicted_at)

    # Saving.

    def state_dict(self) -> dict[str, Any]:
        """The predictions and losses as JSON values."""
        return {
            "predicted": [[item, *_encoded(said), self._losses.get(item)] for item, said in self._predicted.items()],
            "refitted": [[item, *_encoded(said)] for item, said in self._refitted.items()],
            "folds": [[item, fold] for item, fold in self._folds.items()],
            "budget": self.budget.state_dict(),
            "problem": self.refit_problem,
        }

    @classmethod
    def from_state(cls, task: str, state: Any) -> "RandomLabelLosses":
        """Restore :meth:`state_dict`; or what an earlier version saved, a list of predictions."""
        restored = cls(task)
        if not isinstance(state, Mapping):
            for item, *values in state:
                label, expected, logs, loss = values if len(values) > 2 else (None, values[0], None, values[1])
                restored._predicted[item] = _decoded(label, expected, logs, 0)
                if loss is not None:
                    restored._losses[item] = loss
            return restored
        for item, label, expected, logs, n_labels, loss in state["predicted"]:
            restored._predicted[item] = _decoded(label, expected, logs, n_labels)
            if loss is not None:
                restored._losses[item] = loss
        for item, *values in state["refitted"]:
            restored._refitted[item] = _decoded(*values)
        restored._folds = dict(map(tuple, state["folds"]))
        restored.budget = RefitBudget.from_state(state["budget"])
        restored.refit_problem = state["problem"]
        return restored


def _encoded(prediction: HeldOutPrediction) -> list[Any]:
    label, expected, logs, n_labels = prediction
    return [label, expected, None if logs is None else list(map(list, logs.items())), n_labels]


def _decoded(label: Any, expected: float | None, logs: Any, n_labels: int) -> HeldOutPrediction:
    return HeldOutPrediction(label, expected, None if logs is None else dict(map(tuple, logs)), n_labels)


def _sharpened(  # noqa: PLR0913, PLR0917 - the data of a session
    model: Any,
    view: EstimatedModel,
    rest: Indices,
    labels: Mapping[int, Any],
    items: Sequence[int],
    unlearned: Mapping[int, Any],
) -> CalibratedError:
    """The estimate of :func:`sharpened_error`, from all random labels and a limited number of other labels.

    Args:
        model: A classifier that leaves labels out.
        view: The same model.
        rest: Unlabelled items.
        labels: All labels by item, in the order learned.
        items: The items that were drawn at random.
        unlearned: Labels of random items that the model has not learned.
    """
    logs, codes, random = _left_out_classes(model, labels, items)
    if unlearned:
        classes, p = view.class_probabilities(np.array(list(unlearned), dtype=np.intp))
        # A class that the model does not know is predicted wrong, whichever other class it is counted as.
        column = {name: code for code, name in enumerate(classes)}
        least_likely = p.argmin(axis=1)
        extra = [column.get(label, int(code)) for label, code in zip(unlearned.values(), least_likely, strict=True)]
        logs = np.concatenate([logs, _logs(p)])
        codes, random = np.append(codes, extra), np.append(random, np.ones(len(extra), dtype=bool))
    return sharpened_error(_logs(view.class_probabilities(rest)[1]), logs, codes, random)


def _left_out_classes(
    model: Any, labels: Mapping[int, Any], items: Sequence[int]
) -> tuple[Floats, NDArray[np.intp], NDArray[np.bool_]]:
    """Log probabilities of labels without them, their columns, and which of them are random; of a limited number."""
    place = {item: k for k, item in enumerate(labels)}
    drawn = np.array([place[item] for item in items], dtype=np.intp)
    guessed = model.guessed if isinstance(model, StoredLeftOut) else guessed_places(model.state_)
    places = np.union1d(guessed, drawn).astype(np.intp)
    logs, codes = left_out_logs(model, places)
    return logs, codes, np.isin(places, drawn)


def _sharpened_share(by_class: Mapping[Any, float], class_name: Any, factor: float) -> float:
    """The probability of a class after the correction of the confidence."""
    powers = {name: share**factor for name, share in by_class.items()}
    total = sum(powers.values())
    return powers.get(class_name, 0.0) / total if total > 0.0 else 0.0


def _logs(p: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(p, np.finfo(np.float64).tiny)))
