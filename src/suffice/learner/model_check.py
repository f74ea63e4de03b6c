"""Checks of a learner's model by random samples of its items, and the guarantees that the samples prove.

A check is drawn from the unlabelled items at one time. A running check requests a share of the labels in a random
order, never learns them, and computes bounds of the error repeatedly.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from suffice.arguments import real
from suffice.checks import Check, EvaluationGrid, Guarantee, spent_alpha
from suffice.checks.guarantee import Quantity, UnlabelableAs
from suffice.errors import InvalidValueError
from suffice.models.inputs import as_labels
from suffice.presentation.text_format import count

if TYPE_CHECKING:
    from suffice.acquisition import Indices


@dataclass(frozen=True)
class CheckedQuantity:
    """Quantity that a check guarantees; validated.

    Attributes:
        quantity: As of :class:`suffice.checks.Guarantee`.
        class_name: The class, for recall and precision.
        tolerance: The tolerance, for ``"within"``.
        share: The share, for ``"tolerance"``.
        predicted_as_found: Whether items that are predicted as the class count as found, for recall.
        unlabelable_as: How items that cannot be labelled count.
    """

    quantity: Quantity
    class_name: Any = None
    tolerance: float | None = None
    share: float | None = None
    predicted_as_found: bool = True
    unlabelable_as: UnlabelableAs = "wrong"


def checked_quantity(
    task: str, classes: list[Any], given: Mapping[str, Any], *, unlabelable_as: Any, predicted_as_found: bool
) -> CheckedQuantity:
    """Return the validated quantity that a check will guarantee.

    Args:
        task: ``"classification"`` or ``"regression"``.
        classes: The classes that the model knows.
        given: ``recall_of``, ``precision_of``, ``tolerance`` and ``share`` as the caller gave them; None if not.
        unlabelable_as: ``"wrong"`` or ``"excluded"``.
        predicted_as_found: Whether items that are predicted as the class count as found, for recall.

    Raises:
        InvalidValueError: An argument is not for the task, more than one is given, or its value cannot be used.

    Examples:
        >>> none = {"recall_of": None, "precision_of": None, "tolerance": None, "share": None}
        >>> checked_quantity("regression", [], {**none, "tolerance": 0.5}, unlabelable_as="wrong",
        ...                  predicted_as_found=True).quantity
        'within'
    """
    if unlabelable_as not in ("wrong", "excluded"):
        raise InvalidValueError(f'unlabelable_as must be "wrong" or "excluded", not {unlabelable_as!r}')
    for_task = ("recall_of", "precision_of") if task == "classification" else ("tolerance", "share")
    asked = [name for name, value in given.items() if value is not None]
    if other := [name for name in asked if name not in for_task]:
        kind = "classes" if task == "classification" else "numbers"
        raise InvalidValueError(f"{other[0]} cannot be checked: the model predicts {kind}; use {' or '.join(for_task)}")
    if len(asked) > 1:
        raise InvalidValueError(f"a check guarantees one quantity; give {asked[0]} or {asked[1]}, not both")
    if not asked:
        if task == "regression":
            raise InvalidValueError(
                "a check of numbers needs tolerance (the largest acceptable distance from the truth) or share (the "
                "share of predictions that may exceed a tolerance, which the check finds)"
            )
        return CheckedQuantity("error", unlabelable_as=unlabelable_as)
    (name,) = asked
    value = given[name]
    if name == "tolerance":
        limit = real(value, "tolerance", "of at least 0", lambda x: x >= 0.0)
        return CheckedQuantity("within", tolerance=limit, unlabelable_as=unlabelable_as)
    if name == "share":
        part = real(value, "share", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
        return CheckedQuantity("tolerance", share=part, unlabelable_as=unlabelable_as)
    if value not in classes:
        known = ", ".join(repr(each) for each in classes[:10])
        raise InvalidValueError(f"{name} must be one of the classes that the model knows, {known}, not {value!r}")
    quantity: Quantity = "recall" if name == "recall_of" else "precision"
    return CheckedQuantity(
        quantity, class_name=value, predicted_as_found=bool(predicted_as_found), unlabelable_as=unlabelable_as
    )


def proven_guarantee(  # noqa: PLR0913 - all but three by keyword
    check: Check,
    asked: CheckedQuantity,
    predictions: Mapping[int, Any],
    *,
    model: str,
    found: Callable[[], int],
    predicted_as_class: Callable[[], int],
) -> Guarantee | None:
    """Return the guarantee of a complete check; None if there is no guarantee.

    With ``share`` there is no guarantee if too many items could not be labelled.

    Args:
        check: The check.
        asked: What it is to guarantee.
        predictions: Predictions of the frozen model, by item; at least those of the check's items.
        model: What the model is called in the guarantee.
        found: Returns the number of items of the class that were labelled before the check, for recall.
        predicted_as_class: Returns the number of unlabelled items that are predicted as the class, for recall.
    """
    predicted = {item: predictions[item] for item in check.items}
    stated: dict[str, Any] = {"unlabelable_as": asked.unlabelable_as, "model": model}
    if asked.quantity == "tolerance":
        try:
            return check.tolerance_guarantee(predicted, asked.share or 0.0, **stated)
        except InvalidValueError:
            return None
    if asked.quantity == "precision":
        # The sample was drawn from the items predicted as the class.
        return check.precision_guarantee(predicted, asked.class_name, check.pool, **stated)
    if asked.quantity == "recall":
        if asked.predicted_as_found:
            stated |= {"predictions": predicted, "predicted": predicted_as_class()}
        return check.recall_guarantee(asked.class_name, found(), **stated)
    return check.guarantee(predicted, tolerance=asked.tolerance, **stated)


@dataclass(frozen=True, eq=False)
class FrozenModel:
    """The state of a model when a check is drawn.

    Attributes:
        model: The fitted model, independent of the learner.
        name: What it is called in a guarantee.
        n_labelled: Number of labels that it has learned.
        version: Number of times that the learner's model had changed.
        labelled: Items with a label.
        unlabelled: Items without a label, skipped ones included, in rising order.
        skipped: Those of them that were skipped.
        predictions: Prediction for each item of ``unlabelled``.
    """

    model: Any
    name: str
    n_labelled: int
    version: int
    labelled: tuple[int, ...]
    unlabelled: "Indices"
    skipped: frozenset[int]
    predictions: Any


class CheckOwner(Protocol):
    """The interface of the learner for a check."""

    @property
    def labels(self) -> dict[int, Any]:
        """All labels by item."""

    def _usable_labels(self, labels: Any) -> list[Any]:
        """Labels as plain values; raises InvalidValueError for one that cannot be learned."""

    def _check_closed(self, check: "ModelCheck") -> None:
        """Receive the labels of a check that is complete or aborted."""


class ModelCheck:
    """A random sample of the unlabelled items, drawn to guarantee the predictions of a learner's model.

    :meth:`suffice.ActiveLearner.check` returns it. The model is frozen: the guarantee covers the predictions of the
    model when the check was drawn. The labels are given with :meth:`tell`, in any order and in any number of calls.
    When every item of :attr:`indices` has an answer, the check is complete, and :attr:`guarantee` is available.

    The learner learns the labels of the check when labelling continues: at the next
    :meth:`~suffice.ActiveLearner.ask`, :meth:`~suffice.ActiveLearner.tell` or :meth:`~suffice.ActiveLearner.check`.
    Until then the learner's model is the checked model.

    Attributes:
        record: The sample and its answers, as a :class:`suffice.checks.Check`.

    Examples:
        >>> import numpy as np
        >>> import suffice as sf
        >>> X = np.random.default_rng(0).normal(size=(500, 2)); y = np.where(X[:, 0] > 0.0, "right", "left")
        >>> learner = sf.ActiveLearner(sf.models.BayesianLogistic(), X)
        >>> for _ in range(40):
        ...     i = learner.ask()
        ...     verdict = learner.tell(i, y[i])
        >>> check = learner.check(60)
        >>> print(check.tell(y[check.indices]))
        At most 6.3 % of the predictions for the 400 unlabelled items are wrong (95 % confidence).
        >>> learner.guarantee.about_present_model
        True
    """

    def __init__(self, record: Check, asked: CheckedQuantity, frozen: FrozenModel, owner: CheckOwner) -> None:
        self._asked, self._frozen, self._owner = asked, frozen, owner
        # Items that were skipped before count as answered.
        self.record = record.cannot_label(frozen.skipped.intersection(record.items))
        self._indices = np.array(self.record.pending, dtype=np.intp)
        self._predicted = dict(zip(frozen.unlabelled.tolist(), frozen.predictions.tolist(), strict=True))

    def __repr__(self) -> str:
        state = "aborted" if self.aborted else "complete" if self.complete else f"{len(self.pending)} pending"
        return f"ModelCheck({count(self.record.size, 'item')} of {self.record.pool:,}, {state})"

    # The sample and the frozen model.

    @property
    def indices(self) -> "Indices":
        """Items to label, in the order in which they were drawn; items that were skipped before are not among them."""
        return self._indices.copy()

    @property
    def pending(self) -> "Indices":
        """Items of :attr:`indices` that have no answer yet."""
        return np.array(self.record.pending, dtype=np.intp)

    @property
    def complete(self) -> bool:
        """Whether every item has an answer and the check was not aborted."""
        return self.record.complete

    @property
    def aborted(self) -> bool:
        """Whether the check was aborted."""
        return self.record.aborted

    @property
    def open(self) -> bool:
        """Whether answers are missing and the check was not aborted."""
        return not (self.complete or self.aborted)

    @property
    def model(self) -> Any:
        """The frozen model, with its pipeline if there is one. It is fitted, and independent of the learner."""
        return self._frozen.model

    @property
    def n_labelled(self) -> int:
        """Number of labels that the frozen model has learned."""
        return self._frozen.n_labelled

    @property
    def version(self) -> int:
        """Number of times that the learner's model had changed when it was frozen."""
        return self._frozen.version

    @property
    def unlabelled(self) -> "Indices":
        """Items that were unlabelled when the check was drawn, including skipped items, in rising order."""
        return self._frozen.unlabelled.copy()

    @property
    def predictions(self) -> Any:
        """Predictions of the frozen model for the items of :attr:`unlabelled`, in the same order."""
        return self._frozen.predictions.copy()

    # Answers.

    def tell(self, labels: Any) -> Guarantee | None:
        """Record labels of items of the check. They are not learned before the check is complete or aborted.

        Args:
            labels: Labels by item; or a series with one label for each item of :attr:`pending`, in that order. A class
                that the model does not know is a wrong prediction.

        Returns:
            The guarantee, if the check is complete now.

        Raises:
            InvalidValueError: The check is complete or aborted, a label cannot be used, or an item is not in the check
                or has an answer: nothing is changed.
        """
        self._require_open()
        given = self._by_item(labels)
        usable = self._owner._usable_labels(list(given.values())) if given else []
        return self._changed(self.record.tell(dict(zip(given, usable, strict=True))))

    def cannot_label(self, items: Any) -> Guarantee | None:
        """Record items of the check that cannot be labelled. Each counts as a wrong prediction, or is excluded.

        When the check is complete or aborted, the learner skips these items.

        Args:
            items: One item or several.

        Returns:
            The guarantee, if the check is complete now.

        Raises:
            InvalidValueError: The check is complete or aborted, or an item is not in it or has an answer.
        """
        self._require_open()
        return self._changed(self.record.cannot_label(_items(items)))

    def correct(self, item: Any, label: Any) -> None:
        """Change an answer while the check is open; afterwards use :meth:`suffice.ActiveLearner.correct`.

        Args:
            item: An item of the check that has an answer.
            label: The new label, or None if the item cannot be labelled.

        Raises:
            InvalidValueError: The check is not open, the item has no answer, or the label cannot be used.
        """
        self._require_open()
        usable = None if label is None else self._owner._usable_labels([label])[0]
        self.record = self.record.correct(_items(item)[0], usable)

    def abort(self) -> None:
        """Abort the check. It yields no guarantee, and its error probability stays spent.

        The learner learns the labels that were given. Labels before the first unanswered item in the order of
        :attr:`indices` count as random labels.

        Raises:
            InvalidValueError: The check is complete or aborted.
        """
        self._require_open()
        self._changed(self.record.abort())

    # The guarantee.

    @property
    def guarantee(self) -> Guarantee | None:
        """Guarantee of the check; None if it is open, was aborted, or nothing can be guaranteed.

        With ``share`` there is no guarantee if too many items could not be labelled. The guarantee changes if a label
        of the check is corrected, or (for recall) a label from before the check; the error probability stays the same.
        """
        if not self.complete:
            return None
        asked = self._asked
        labels, pool = self._owner.labels, self._frozen.unlabelled.tolist()
        if asked.unlabelable_as == "excluded":
            pool = self._not_skipped()
        return proven_guarantee(
            self.record,
            asked,
            self._predicted,
            model=self._frozen.name,
            found=lambda: sum(bool(labels[item] == asked.class_name) for item in self._frozen.labelled),
            predicted_as_class=lambda: sum(self._predicted[item] == asked.class_name for item in pool),
        )

    def _not_skipped(self) -> list[int]:
        return [item for item in self._frozen.unlabelled.tolist() if item not in self._frozen.skipped]

    @property
    def random_prefix(self) -> list[int]:
        """Labelled items before the first item without an answer, in the order in which they were drawn.

        They are a random sample of the items that were unlabelled. The list is empty if the check was drawn from one
        predicted class.
        """
        if self._asked.quantity == "precision":
            return []
        items, pending = self.record.items, set(self.record.pending)
        first = next((k for k, item in enumerate(items) if item in pending), len(items))
        return [item for item in items[:first] if item in self.record.labels]

    def _changed(self, record: Check) -> Guarantee | None:
        """Store new answers; pass them to the learner if the check is closed now."""
        before, self.record = self.record, record
        if not self.open:
            try:
                self._owner._check_closed(self)
            except BaseException:
                self.record = before
                raise
        return self.guarantee

    def _require_open(self) -> None:
        if self.aborted:
            raise InvalidValueError("the check was aborted and takes no answers; draw the next one with learner.check")
        if self.complete:
            raise InvalidValueError(
                "the check is complete; to change an answer, call learner.correct(item, label); to check again, call "
                "learner.check"
            )

    def _by_item(self, labels: Any) -> dict[int, Any]:
        if isinstance(labels, Mapping):
            return {int(_items(item)[0]): label for item, label in labels.items()}
        given, pending = np.atleast_1d(np.asarray(as_labels(labels))), self.record.pending
        if given.shape != (len(pending),):
            raise InvalidValueError(
                f"labels must be one for each of the {count(len(pending), 'pending item')}, or a mapping of items to "
                f"labels; their shape is {given.shape}"
            )
        return dict(zip(pending, given.tolist(), strict=True))


@dataclass(frozen=True)
class ModelGuarantee:
    """The newest guarantee of a learner, and whether it covers the present model.

    Attributes:
        guarantee: The statement.
        check: The check that proves it, with the frozen model and its predictions.
        about_present_model: Whether the learner's model is still the one that was checked. If labels were learned or
            corrected since, the present model has no guarantee; the statement holds for the frozen model.
    """

    guarantee: Guarantee
    check: ModelCheck
    about_present_model: bool

    def __str__(self) -> str:
        if self.about_present_model:
            return str(self.guarantee)
        then = count(self.check.n_labelled, "label")
        return f"{self.guarantee} This is about the model at {then}. The present model is another and has no guarantee."


class CheckSequence:
    """The checks of one learner. They share an error probability: check number j spends alpha / (j (j + 1)).

    Args:
        rng: Returns the source of randomness; called at the first check.
    """

    def __init__(self, rng: Callable[[], np.random.Generator]) -> None:
        self._source = rng
        self._rng: np.random.Generator | None = None
        self.checks: list[ModelCheck] = []
        self._alpha: float | None = None

    @property
    def open(self) -> ModelCheck | None:
        """The check that is open, or None."""
        return self.checks[-1] if self.checks and self.checks[-1].open else None

    @property
    def newest(self) -> ModelCheck | None:
        """The newest check with a guarantee, or None."""
        return next((check for check in reversed(self.checks) if check.guarantee is not None), None)

    def alpha(self, confidence: float | None = None) -> float:
        """The error probability of all checks together.

        Raises:
            InvalidValueError: The confidence is not between 0 and 1, or not that of the earlier checks.
        """
        if confidence is None:
            return 0.05 if self._alpha is None else self._alpha
        level = 1.0 - real(confidence, "confidence", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
        if self._alpha is not None and abs(level - self._alpha) > 1e-12:
            raise InvalidValueError(
                f"confidence must be {1.0 - self._alpha:.10g}, as for the first check, because all checks share it; "
                f"not {confidence!r}"
            )
        # Rounded, because 1 - 0.95 is not exactly 0.05 in floating point.
        return round(level, 15)

    def next_alpha(self, confidence: float | None = None) -> float:
        """The error probability of the next check."""
        return spent_alpha(len(self.checks) + 1, self.alpha(confidence))

    def draw(
        self, size: Any, asked: CheckedQuantity, frozen: FrozenModel, owner: CheckOwner, alpha: float
    ) -> ModelCheck:
        """Draw the next check; it is complete immediately if all its items were skipped before.

        Raises:
            InvalidValueError: The size is not possible, or too small for the quantity: nothing is drawn or spent.
        """
        pool = frozen.unlabelled
        if asked.unlabelable_as == "excluded":
            pool = pool[~np.isin(pool, list(frozen.skipped))]
        which = "unlabelled item"
        if asked.quantity == "precision":
            places = np.searchsorted(frozen.unlabelled, pool)
            pool = pool[frozen.predictions[places] == asked.class_name]
            which += f" predicted as {str(asked.class_name)!r}"
        require_size(size, len(pool), which)
        number = len(self.checks) + 1
        if asked.quantity == "tolerance":
            assert asked.share is not None
            Guarantee.of_tolerance(np.zeros(int(size)), asked.share, len(pool), alpha=spent_alpha(number, alpha))
        if self._rng is None:
            self._rng = self._source()
        record = Check.draw(pool, int(size), self._rng, number=number, alpha=alpha)
        check = ModelCheck(record, asked, frozen, owner)
        self.checks.append(check)
        self._alpha = alpha
        return check

    def answered(self, item: int, label: Any) -> None:
        """Update every closed check that contains an item with its new or corrected label."""
        for check in self.checks:
            if not check.open and not check.aborted and item in check.record.items:
                check.record = check.record.correct(item, label)

    def require_not_in_open(self, items: Iterable[int], method: str) -> None:
        """Raise an error for items that belong to the open check.

        Raises:
            InvalidValueError: An item belongs to it; the message names the method of the check to use.
        """
        if self.open is not None and (inside := sorted(set(self.open.record.items).intersection(items))):
            raise InvalidValueError(f"item {inside[0]} belongs to the open check; answer it with check.{method}")


def require_size(m: Any, pool: int, which: str = "unlabelled item") -> int:
    """Return the validated size of a check.

    Args:
        m: The size.
        pool: Number of items to draw from.
        which: What these are called.

    Raises:
        InvalidValueError: The size is not a whole number from 1 to the number of items.
    """
    if not pool:
        raise InvalidValueError(f"there is no {which} to check")
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or not 1 <= m <= pool:
        there = f"there {'is' if pool == 1 else 'are'} {count(pool, 'unlabelled item')}"
        there += which.removeprefix("unlabelled item")
        raise InvalidValueError(
            f"m, the number of items to check, must be a whole number from 1 to {pool} ({there}), not {m!r}"
        )
    return int(m)


def _items(items: Any) -> list[int]:
    array = np.atleast_1d(np.asarray(items))
    if array.dtype.kind == "b":
        raise InvalidValueError(
            "items must be indices of items of the check, whole numbers, not flags; give indices, e.g. "
            "np.flatnonzero(mask)"
        )
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidValueError(f"items must be indices of items of the check, whole numbers, not {items!r}")
    return [int(item) for item in array]


# The smallest and the largest size of the sample for evaluations.
_FIRST_SIZE: Final = 30
_LAST_SIZE: Final = 480
# Products of a share and a count may be below a whole number by rounding.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, eq=False)
class RunningEvaluation:
    """One evaluation of a running check.

    Attributes:
        frozen: The model at that moment, and its predictions for all items that it had not learned.
        items: The sample: the first of these items in the random order.
        labels: Their labels; an item without one cannot be labelled, and counts as wrong.
        alpha: Error probability of this evaluation.
        confidence: Confidence of all evaluations together.
        tolerance: Largest acceptable distance between number and prediction; None for classes.
    """

    frozen: FrozenModel
    items: tuple[int, ...]
    labels: Mapping[int, Any]
    alpha: float
    confidence: float
    tolerance: float | None = None

    @property
    def n_labelled(self) -> int:
        """Number of labels that the model had learned."""
        return self.frozen.n_labelled

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of the evaluation, for the predictions of the model at that time."""
        place = np.searchsorted(self.frozen.unlabelled, self.items)
        predicted = dict(zip(self.items, self.frozen.predictions[place].tolist(), strict=True))
        pool = len(self.frozen.unlabelled)
        stated: dict[str, Any] = {
            "alpha": self.alpha,
            "confidence": self.confidence,
            "model": self.frozen.name,
            "unlabelable": len(self.items) - len(self.labels),
        }
        if self.tolerance is not None:
            residuals = [float(label) - predicted[item] for item, label in self.labels.items()]
            return Guarantee.within(residuals, self.tolerance, pool, **stated)
        wrong = sum(bool(label != predicted[item]) for item, label in self.labels.items())
        return Guarantee.of_error(wrong, len(self.items), pool, **stated)

    def answered(self, item: int, label: Any) -> "RunningEvaluation":
        """The evaluation with a new or corrected label of an item, at the same error probability."""
        if item not in self.items:
            return self
        return replace(self, labels={**self.labels, item: label})


@dataclass(frozen=True, eq=False)
class RunningCheck:
    """The state of a running check, see :attr:`suffice.ActiveLearner.running_check`.

    Attributes:
        share: Share of the labels that are asked for in the random order.
        grid: Sizes of the sample at which the bound is computed, fixed at the start.
        sample: Labels of the sample by item, in the random order. The model has not learned them.
        size: Size of the sample that can be evaluated: items with an answer, before the first one without.
        asked: Number of labels that were asked for so far; some of them may have left the sample.
        pending: Items of the sample that were asked for and have no label yet.
        evaluations: The evaluations so far.
        about_present_model: Whether the newest evaluation is about the present model.
    """

    share: float
    grid: EvaluationGrid
    sample: Mapping[int, Any]
    size: int
    asked: int
    pending: tuple[int, ...]
    evaluations: tuple[RunningEvaluation, ...]
    about_present_model: bool

    @property
    def newest(self) -> RunningEvaluation | None:
        """The newest evaluation, with its model; None before the first."""
        return self.evaluations[-1] if self.evaluations else None

    @property
    def guarantee(self) -> Guarantee | None:
        """The newest guarantee; None before the first evaluation."""
        return None if self.newest is None else self.newest.guarantee

    @property
    def next_size(self) -> int | None:
        """Size of the sample at the next evaluation; None after the last."""
        done = len(self.evaluations)
        return self.grid.sizes[done] if done < len(self.grid.sizes) else None

    def __str__(self) -> str:
        if self.newest is None:
            words = "Nothing is guaranteed yet."
        else:
            words = str(self.newest.guarantee)
            if not self.about_present_model:
                words += f" This is about the model at {count(self.newest.n_labelled, 'label')}, not the present one."
        if self.next_size is not None:
            words += f" The next evaluation is at a sample of {self.next_size:,}; it has {self.size:,} now."
        return words.replace("\u00a0", " ")


@dataclass
class RunningSample:
    r"""The random order, the labels of the sample, and the evaluations of a running check.

    The order is one permutation of the pool, drawn before the first label. The sample consists of the first items of
    that order, without the items that the model has learned. The learner chooses among all items that it has not
    learned, including the sample; a chosen item is removed from the sample. The learned items, and the times at which
    they were learned, depend on the labels and on the positions of the learned items in the order, and not on the order
    of the other items. So, given the learned items, every order of the other items is equally likely, and the first
    :math:`m` of them are a simple random sample.

    Attributes:
        order: The permutation.
        share: Share of the labels.
        grid: When the sample is evaluated.
        confidence: Confidence of all evaluations together.
        tolerance: For numbers, the largest error that is not wrong.
        labels: Labels of items of the sample.
        offered: Items that were asked for as items of the sample and have no answer yet.
        asked: Number of labels that came for the sample, those included that left it.
        evaluations: The evaluations so far.
    """

    order: "Indices"
    share: float
    grid: EvaluationGrid
    confidence: float
    tolerance: float | None = None
    labels: dict[int, Any] = field(default_factory=dict)
    offered: set[int] = field(default_factory=set)
    asked: int = 0
    evaluations: list[RunningEvaluation] = field(default_factory=list)

    def __post_init__(self) -> None:
        # The position of each item in the order.
        self._place = np.argsort(self.order)

    @staticmethod
    def start(
        size: int, share: Any, confidence: float, tolerance: float | None, rng: np.random.Generator
    ) -> "RunningSample":
        """The sample before the first label.

        Args:
            size: Number of items in the pool.
            share: Share of the labels, above 0 and below 1.
            confidence: Confidence of all evaluations together.
            tolerance: For numbers, the largest error that is not wrong.
            rng: Source of the permutation.

        Raises:
            InvalidValueError: The share is out of range, or the pool is too small for it.
        """
        part = real(share, "check_share", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
        last = int(min(_LAST_SIZE, part * size + _ROUNDING))
        if last < 1:
            raise InvalidValueError(
                f"check_share is {part:g}, which is less than one of the {count(size, 'item')} of the pool; give a "
                "larger share"
            )
        # Rounded, because 1 - 0.95 is not exactly 0.05 in floating point.
        alpha = round(1.0 - confidence, 15)
        grid = EvaluationGrid.doubling(min(_FIRST_SIZE, last), last, alpha=alpha)
        return RunningSample(rng.permutation(size), part, grid, confidence, tolerance)

    def turns(self, size: int, paid: int) -> int:
        """Number of the next labels that belong to the sample.

        Args:
            size: Number of the next labels.
            paid: Number of labels so far, without the initial ones.
        """
        if len(self.evaluations) == len(self.grid.sizes):
            return 0
        return max(0, min(size, int(self.share * (paid + size) + _ROUNDING) - self.asked))

    def next_items(self, number: int, status: Any, others: Collection[int]) -> list[int]:
        """The next items of the sample without a label; fewer only if fewer items are left.

        Args:
            number: How many.
            status: Status of each item: 0 without a label, 1 learned, 2 skipped, 3 in the sample.
            others: Items that are not to be taken, because the learner has just chosen them.
        """
        waiting = self.order[status[self.order] == 0]
        free = [int(item) for item in waiting[: number + len(others)] if int(item) not in others]
        return free[:number]

    def prefix(self, status: Any) -> list[int]:
        """The sample so far: items in the random order before the first item without an answer."""
        rest = self.order[status[self.order] != 1]
        waiting = np.flatnonzero(status[rest] == 0)
        return [int(item) for item in (rest[: waiting[0]] if len(waiting) else rest)]

    def due(self, status: Any) -> tuple[int, ...] | None:
        """The items of the evaluation that is due now, or None."""
        done = len(self.evaluations)
        if done == len(self.grid.sizes):
            return None
        size = self.grid.sizes[done]
        if len(self.labels) + np.count_nonzero(status == 2) < size:
            return None
        found = self.prefix(status)
        return tuple(found[:size]) if len(found) >= size else None

    def evaluate(self, items: tuple[int, ...], frozen: FrozenModel) -> RunningEvaluation:
        """Compute the bound from these items, and store it."""
        known = {item: self.labels[item] for item in items if item in self.labels}
        each = self.grid.alpha_each
        found = RunningEvaluation(frozen, items, known, each, self.confidence, self.tolerance)
        self.evaluations.append(found)
        return found

    def answered(self, item: int, label: Any) -> None:
        """Update the evaluations that contain an item with its new or corrected label."""
        self.evaluations = [each.answered(item, label) for each in self.evaluations]

    def state(self, status: Any, version: int) -> RunningCheck:
        """A copy of the state.

        Args:
            status: Status of each item.
            version: Number of times that the learner's model has changed.
        """
        last = self.evaluations[-1] if self.evaluations else None
        place = self._place
        return RunningCheck(
            share=self.share,
            grid=self.grid,
            sample={item: self.labels[item] for item in sorted(self.labels, key=place.__getitem__)},
            size=len(self.prefix(status)),
            asked=self.asked,
            pending=tuple(sorted(self.offered, key=place.__getitem__)),
            evaluations=tuple(self.evaluations),
            about_present_model=last is not None and last.frozen.version == version,
        )
