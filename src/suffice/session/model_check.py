"""Checks of a model by random samples of the unlabelled items, and the guarantees that the samples prove."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from scipy.sparse import issparse

from suffice.arguments import real
from suffice.checks import Check, Guarantee, SequentialTerms, lower_bound, spent_alpha
from suffice.checks.finish_plan import allowed_missed, allowed_wrong, joint_answers
from suffice.checks.guarantee import Quantity, UnlabelableAs
from suffice.checks.random_check import MOST_EXCLUDED, sequential_progress
from suffice.checks.registry import RegisteredItems
from suffice.errors import InvalidValueError
from suffice.models.inputs import as_labels
from suffice.presentation.check_words import sequential_words
from suffice.presentation.text_format import count, is_or_are
from suffice.saved_state import decoded_array, encoded_array
from suffice.session.goals import TargetOf, checked_goal

if TYPE_CHECKING:
    from suffice.acquisition import Indices


# Fields that are stored only where they are used, each with its value if it is not.
_FOR_GIVEN: Final[Mapping[str, Any]] = {
    "parts": 1,
    "share_of": None,
    "accept": None,
    "first_item": 0,
    "batch_check": None,
    "target": None,
    "expected": None,
}


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
        at_most: The target of a sequential check, a share of the unlabelled items; None for a check of fixed size.
        corrected: Whether items that a sequential check finds wrong are corrected, and do not count.
        of: What the target is a share of: ``"rest"``, the unlabelled items, or ``"all"``, all final labels. Then the
            check corrects what it finds wrong.
        annotator_error: For ``"all"``: share of the labels by people that may be wrong.
        parts: Number of statements that share the error probability of the check.
        share_of: Class whose share of the items is stated instead of the error; None for none.
        accept: Goal of the part of the predictions that is accepted, instead of the error; None for none.
        first_item: The check is about items from this one on.
        batch_check: Number of the check among those of the same items, if later items have checks of their own.
        target: The share that a check of fixed size is to prove, fixed before the draw; None for none.
        expected: The share of wrong predictions that a sequential check is planned for; None if it is not known.
    """

    quantity: Quantity
    class_name: Any = None
    tolerance: float | None = None
    share: float | None = None
    predicted_as_found: bool = True
    unlabelable_as: UnlabelableAs = "wrong"
    at_most: float | None = None
    corrected: bool = False
    of: TargetOf = "rest"
    annotator_error: float = 0.0
    parts: int = 1
    share_of: str | None = None
    accept: str | None = None
    first_item: int = 0
    batch_check: int | None = None
    target: float | None = None
    expected: float | None = None

    def as_dict(self, *, given: bool = True) -> dict[str, Any]:
        """The quantity as JSON values.

        Args:
            given: Whether to include what is for predictions made elsewhere, if it is used.
        """
        values = asdict(self)
        for name, unused in _FOR_GIVEN.items():
            if not given or values[name] == unused:
                del values[name]
        return values

    @property
    def relevant(self) -> Any:
        """In a screening, the class whose items a sequential check counts as wrong; otherwise None."""
        return self.class_name if self.quantity == "recall" and self.at_most is not None else None

    def for_target(
        self,
        at_most: Any,
        *,
        corrected: bool = False,
        of: Any = "rest",
        annotator_error: Any = 0.0,
        size: str = "m",
    ) -> "CheckedQuantity":
        """The quantity with the target of a sequential check.

        Raises:
            InvalidValueError: The target is out of range, or a sequential check is not for this quantity.
        """
        share = real(at_most, "at_most", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
        screening = self.quantity == "recall" and of == "all" and not self.predicted_as_found
        if self.quantity not in ("error", "within") and not screening:
            raise InvalidValueError(
                f"at_most is for the share of wrong predictions, not for {self.quantity}; give {size}, the number of "
                "items to check"
            )
        if self.unlabelable_as == "excluded":
            raise InvalidValueError(
                'a check for at_most counts items that cannot be labelled as wrong; leave unlabelable_as="excluded" '
                f"out, or give {size}, the number of items to check"
            )
        goal = checked_goal(of, share, annotator_error, class_name=self.class_name)
        everything = goal.of == "all"
        return replace(
            self,
            at_most=share,
            corrected=bool(corrected) or everything,
            of=goal.of,
            annotator_error=goal.annotator_error,
        )


def checked_quantity(  # noqa: PLR0913 - all but three by keyword
    task: str,
    classes: list[Any],
    given: Mapping[str, Any],
    *,
    unlabelable_as: Any,
    predicted_as_found: bool,
    screening_for: Any = None,
) -> CheckedQuantity:
    """Return the validated quantity that a check will guarantee.

    Args:
        task: ``"classification"`` or ``"regression"``.
        classes: The classes that the model knows.
        given: ``recall_of``, ``precision_of``, ``tolerance`` and ``share`` as the caller gave them; None if not.
        unlabelable_as: ``"wrong"`` or ``"excluded"``.
        predicted_as_found: Whether items that are predicted as the class count as found, for recall.
        screening_for: For a goal of a screening: the class that is looked for, of which only items that people have
            read count as found.

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
    if screening_for is not None:
        if asked and (asked != ["recall_of"] or given["recall_of"] != screening_for):
            raise InvalidValueError(
                f"{asked[0]} is not for the goal of a screening, which is about the class {screening_for!r}; leave it "
                "out"
            )
        return CheckedQuantity(
            "recall", class_name=screening_for, predicted_as_found=False, unlabelable_as=unlabelable_as
        )
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
        names = ", ".join(map(repr, classes[:10]))
        raise InvalidValueError(f"{name} must be one of the classes that the model knows, {names}, not {value!r}")
    quantity: Quantity = "recall" if name == "recall_of" else "precision"
    return CheckedQuantity(
        quantity, class_name=value, predicted_as_found=bool(predicted_as_found), unlabelable_as=unlabelable_as
    )


def proven_guarantee(  # noqa: PLR0911, PLR0913 - one return for each quantity; all but three by keyword
    check: Check,
    asked: CheckedQuantity,
    predictions: Mapping[int, Any],
    *,
    model: str,
    found: Callable[[], int],
    predicted_as_class: Callable[[], int],
) -> Guarantee | None:
    """Return the guarantee of a complete check; None if there is no guarantee.

    With ``share`` there is no guarantee if too many items could not be labelled. A sequential check has none if it
    ended without a proof. If more than a tenth of the items could not be labelled, they count as wrong.

    Args:
        check: The check.
        asked: What it is to guarantee.
        predictions: Predictions of the frozen model, by item; at least those of the check's items.
        model: What the model is called in the guarantee.
        found: Returns the number of items of the class that were labelled before the check, for recall.
        predicted_as_class: Returns the number of unlabelled items that are predicted as the class, for recall.
    """
    predicted = {item: predictions[item] for item in check.items}
    excluded = asked.unlabelable_as == "excluded" and len(check.unlabelable) <= MOST_EXCLUDED * check.size
    stated: dict[str, Any] = {"unlabelable_as": "excluded" if excluded else "wrong", "model": model}
    if asked.quantity == "tolerance":
        try:
            return check.tolerance_guarantee(predicted, asked.share or 0.0, **stated)
        except InvalidValueError:
            return None
    if asked.quantity == "precision":
        # The sample was drawn from the items predicted as the class.
        return check.precision_guarantee(predicted, asked.class_name, check.pool, **stated)
    if asked.quantity == "recall" and check.sequential is None:
        if asked.predicted_as_found:
            stated |= {"predictions": predicted, "predicted": predicted_as_class()}
        return check.recall_guarantee(asked.class_name, found(), **stated)
    try:
        if asked.relevant is not None:
            return check.found_guarantee(asked.relevant, found(), model=model)
        return check.guarantee(predicted, tolerance=asked.tolerance, parts=asked.parts, **stated)
    except InvalidValueError:
        if check.sequential is None:
            raise
        return None


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
        probabilities: Probability of each prediction; None if not known, or not needed.
    """

    model: Any
    name: str
    n_labelled: int
    version: int
    labelled: tuple[int, ...]
    unlabelled: "Indices"
    skipped: frozenset[int]
    predictions: Any
    probabilities: Any = None

    def state_dict(self) -> dict[str, Any]:
        """Everything but the model itself, as JSON values."""
        return {
            "name": self.name,
            "n_labelled": self.n_labelled,
            "version": self.version,
            "labelled": list(self.labelled),
            "unlabelled": encoded_array(self.unlabelled),
            "skipped": sorted(self.skipped),
            "predictions": self.predictions.tolist(),
            "probabilities": None if self.probabilities is None else encoded_array(self.probabilities),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "FrozenModel":
        """Restore :meth:`state_dict`; the model is None."""
        probabilities = state.get("probabilities")
        probabilities = None if probabilities is None else decoded_array(probabilities)
        return cls(
            **{
                **state,
                "model": None,
                "labelled": tuple(state["labelled"]),
                "unlabelled": decoded_array(state["unlabelled"]),
                "skipped": frozenset(state["skipped"]),
                "predictions": np.asarray(as_labels(state["predictions"])),
                "probabilities": probabilities,
            }
        )


class CheckOwner(Protocol):
    """The interface of the learner for a check."""

    @property
    def labels(self) -> dict[int, Any]:
        """All labels by item."""

    @property
    def _label_columns(self) -> int:
        """Number of columns of labels that are sets of classes; 0 for other labels."""

    def _usable_labels(self, labels: Any) -> list[Any]:
        """Labels as plain values; raises InvalidValueError for one that cannot be learned."""

    def _check_closed(self, check: "ModelCheck") -> None:
        """Receive the labels of a check that is complete or aborted."""

    def _check_extended(self, check: "ModelCheck") -> None:
        """Take note that a sequential check needs other items."""


class ModelCheck:
    """A random sample of the unlabelled items, drawn to guarantee the predictions of a learner's model.

    :meth:`suffice.ActiveLearner.check` returns it. The model is frozen: the guarantee covers the predictions of the
    model when the check was drawn. The labels are given with :meth:`tell`, in any order and in any number of calls.
    When every item of :attr:`indices` has an answer, the check is complete, and :attr:`guarantee` is available.

    A sequential check is for a target. It has as many items as prove the target if no further answer is wrong; each
    wrong answer adds items. It is complete as soon as the target is proven, or cannot be proven any more. It may be
    paused and continued at any time.

    The learner learns the labels of the check when labelling continues: at the next
    :meth:`~suffice.ActiveLearner.ask`, :meth:`~suffice.ActiveLearner.tell` or :meth:`~suffice.ActiveLearner.check`.
    Until then the learner's model is the checked model.

    Attributes:
        record: The sample and its answers, as a :class:`suffice.checks.Check`.

    Examples:
        >>> import numpy as np
        >>> import suffice as sf
        >>> X = np.random.default_rng(0).normal(size=(500, 2)); y = np.where(X[:, 0] > 0.0, "right", "left")
        >>> learner = sf.ActiveLearner(sf.models.BayesianLogistic(), X, seed=0)
        >>> for _ in range(40):
        ...     i = learner.ask()
        ...     verdict = learner.tell(i, y[i])
        >>> check = learner.check(60)
        >>> print(check.tell(y[check.indices]))
        At most 6.3 % of the predictions for the 400 unlabelled items are wrong (95 % confidence).
        >>> learner.guarantee.about_present_model
        True
    """

    def __init__(  # noqa: PLR0913 - for this module
        self,
        record: Check,
        asked: CheckedQuantity,
        frozen: FrozenModel,
        owner: CheckOwner,
        order: Sequence[int] | None = None,
        *,
        restored: bool = False,
    ) -> None:
        self._asked, self._frozen, self._owner = asked, frozen, owner
        self._order = None if order is None else list(order)
        self._predicted = dict(zip(frozen.unlabelled.tolist(), frozen.predictions.tolist(), strict=True))
        self.record = record if restored else self._reaching(record)

    def __repr__(self) -> str:
        state = "aborted" if self.aborted else "complete" if self.complete else f"{len(self.pending)} pending"
        sample = f"{count(self.record.size, 'item')} of {self.record.pool:,}"
        return f"ModelCheck({sample}, check {self.record.number} of these items, {state})"

    def __str__(self) -> str:
        guarantee, progress = self.guarantee, self.progress
        which = f"Check {self.record.number} of these items"
        if guarantee is not None:
            return str(guarantee)
        if progress is not None:
            return sequential_words(progress).replace("Check", which, 1)
        if self.open:
            missing = len(self.pending)
            return f"{which}: {missing:,} of {count(self.record.size, 'answer')} {is_or_are(missing)} missing."
        return f"{which}: {'aborted' if self.aborted else 'complete'}; it guarantees nothing."

    # The sample and the frozen model.

    @property
    def indices(self) -> "Indices":
        """Items to label, in the order in which they were drawn; items that were skipped before are not among them.

        The items of a sequential check are those that were answered, and the next ones that are needed if no further
        answer is wrong.
        """
        skipped = self._frozen.skipped
        return np.array([item for item in self.record.items if item not in skipped], dtype=np.intp)

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
    def pool_size(self) -> int:
        """Number of items of the pool when the check was drawn; the check does not cover items that came later."""
        return len(self._frozen.labelled) + len(self._frozen.unlabelled)

    @property
    def covered(self) -> "Indices":
        """Items of :attr:`unlabelled` that a goal about all labels covers: those that were not skipped."""
        unlabelled = self._frozen.unlabelled
        return unlabelled[~np.isin(unlabelled, list(self._frozen.skipped))]

    @property
    def asked(self) -> CheckedQuantity:
        """What the check is to guarantee."""
        return self._asked

    @property
    def probabilities(self) -> Any:
        """Probabilities of :attr:`predictions`, for a goal about all labels; None if they are not known."""
        return self._frozen.probabilities

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
        given = _labels_by_item(labels, tuple(self.record.pending), self._owner._label_columns)
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
        if usable is None and self._asked.unlabelable_as == "excluded":
            raise InvalidValueError(
                "this check excludes items that cannot be labelled, so that an answer cannot be withdrawn while it is "
                "open; give the right label"
            )
        self._changed(self.record.correct(_items(item)[0], usable))

    def _reaching(self, record: Check) -> Check:
        """A sequential check with the items that its answers require; items that were skipped count as answered."""
        while not record.aborted:
            before = record.items
            known = record.labels.keys() | record.unlabelable
            record = record.cannot_label(self._frozen.skipped.intersection(before) - known)
            if self._order is None:
                return record
            # A label that was given outside the order counts when its turn comes.
            labels = self._owner.labels
            record = record.tell({item: labels[item] for item in record.pending if item in labels})
            counts = {"tolerance": self._asked.tolerance, "class_name": self._asked.relevant}
            record = record.reaching(self._order, self._predicted, **counts)
            if record.items == before:
                return record
        return record

    @property
    def progress(self) -> dict[str, Any] | None:
        """Progress of a sequential check as JSON values; None for a check of fixed size.

        Returns:
            ``state`` (``"open"``, ``"proven"``, ``"failed"`` or ``"given up"``), ``answered``, ``wrong``, ``needed``
            (next answers that prove the target if none of them is wrong) and ``allowed`` (wrong items that the target
            allows). In a screening also ``class_name``: an answer is wrong if it is this class.
        """
        asked = self._asked
        return sequential_progress(self._counted or self.record, self._predicted, asked.tolerance, asked.relevant)

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
        For recall there is none while a label from before the check is taken back.
        """
        counted = self._counted
        if not self.complete or counted is None:
            return None
        asked = self._asked
        labels, pool = self._owner.labels, self._frozen.unlabelled.tolist()
        if asked.quantity == "recall" and not labels.keys() >= set(self._frozen.labelled):
            # An item whose label was taken back is neither found nor one of those that the check was drawn from.
            return None
        if asked.unlabelable_as == "excluded":
            pool = [item for item in pool if item not in self._frozen.skipped]
        return proven_guarantee(
            counted,
            asked,
            self._predicted,
            model=self._frozen.name,
            found=lambda: sum(bool(labels[item] == asked.class_name) for item in self._frozen.labelled),
            predicted_as_class=lambda: sum(self._predicted[item] == asked.class_name for item in pool),
        )

    @property
    def least_error(self) -> float | None:
        """Least share of wrong predictions, by the check; None if it is open or of another quantity."""
        return least_error(self.record, self.guarantee, self.progress)

    @property
    def random_prefix(self) -> list[int]:
        """Labelled items before the first item without an answer, in the order in which they were drawn.

        They are a random sample of the items that were unlabelled. The list is empty if the check was drawn from one
        predicted class.
        """
        if self._asked.quantity == "precision":
            return []
        items, pending = () if self._counted is None else self._counted.items, set(self.record.pending)
        first = next((k for k, item in enumerate(items) if item in pending), len(items))
        return [item for item in items[:first] if item in self.record.labels]

    @property
    def _counted(self) -> Check | None:
        """The check without items whose turn in the random order has not come; None if these are all its items.

        A sequential check that has ended may contain them, because it can be answered in any order.
        """
        record, order = self.record, self._order
        if order is None or record.items == tuple(order[: record.size]):
            return record
        turns = next(place for place, item in enumerate(record.items) if item != order[place])
        if not turns:
            return None
        inside = set(record.items[:turns])
        return replace(
            record,
            items=record.items[:turns],
            labels={item: label for item, label in record.labels.items() if item in inside},
            unlabelable=record.unlabelable & inside,
            first_answers={item: label for item, label in record.first_answers.items() if item in inside},
        )

    def _changed(self, record: Check) -> Guarantee | None:
        """Store new answers; pass them to the learner if the check is closed now."""
        before, self.record = self.record, self._reaching(record)
        try:
            if not self.open:
                self._owner._check_closed(self)
            elif self.record.items != before.items:
                self._owner._check_extended(self)
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


def least_error(record: Check, found: Guarantee | None, progress: Mapping[str, Any] | None) -> float | None:
    """The share of wrong predictions that a check shows at least; None if it is open or of another quantity.

    It is an exact lower bound at the error probability of the check. A sequential check shows one only if it has found
    more wrong predictions than its target allows.

    Args:
        record: The check.
        found: Its guarantee.
        progress: Its progress, if it is sequential.
    """
    if progress is not None:
        failed = progress["state"] == "failed" and "class_name" not in progress
        return progress["wrong"] / record.pool if failed else None
    if found is None or found.quantity != "error":
        return None
    return lower_bound(found.wrong, found.checked, found.pool, found.alpha) / found.pool


def _labels_by_item(labels: Any, pending: tuple[int, ...], columns: int) -> dict[int, Any]:
    """Labels by item, from a mapping or from a series with one label for each pending item.

    Args:
        labels: As the user gave them.
        pending: The items.
        columns: For sets of classes, the number of columns of a label.
    """
    if isinstance(labels, Mapping):
        return {int(_items(item)[0]): label for item, label in labels.items()}
    given = np.atleast_1d(np.asarray(labels.toarray() if issparse(labels) else as_labels(labels)))
    if given.shape != ((len(pending), columns) if columns else (len(pending),)):
        one = f"a row of {columns} columns" if columns else "one"
        raise InvalidValueError(
            f"labels must be {one} for each of the {count(len(pending), 'pending item')}, or a mapping of items to "
            f"labels; their shape is {given.shape}"
        )
    return dict(zip(pending, given.tolist(), strict=True))


@dataclass(frozen=True)
class ModelGuarantee:
    """The newest guarantee of a learner, and whether it covers the current model.

    Attributes:
        guarantee: The statement.
        check: The check that proves it, with the frozen model and its predictions.
        about_present_model: Whether the learner's model is still the one that was checked. If labels were learned or
            corrected since, the current model has no guarantee; the statement holds for the frozen model. Nor has it
            one if the pool was extended since.
        later_items: Number of items that were added to the pool since; the statement does not cover them.
    """

    guarantee: Guarantee
    check: ModelCheck
    about_present_model: bool
    later_items: int = 0

    def __str__(self) -> str:
        if self.about_present_model:
            return str(self.guarantee)
        then = count(self.check.n_labelled, "label")
        if self.later_items:
            return (
                f"{self.guarantee} This is about the model at {then} and the {self.check.pool_size:,} items before the "
                f"extension; it does not cover the {count(self.later_items, 'item')} that came later. The current "
                "model has no guarantee until it is checked."
            )
        later = "The current model is different and has no guarantee until it is checked."
        return f"{self.guarantee} This is about the model at {then}. {later}"


class SessionChecks:
    """The checks of one learner or monitor.

    All checks of the same items share an error probability: check number j spends alpha / (j (j + 1)). Their numbers
    are those of a registry.

    Args:
        rng: Returns the source of randomness; called at the first check.
        registered: The items in the registry that counts their checks; in a new one if left out.

    Attributes:
        checks: The checks in the order in which they were drawn.
        registered: As given.
    """

    def __init__(self, rng: Callable[[], np.random.Generator], registered: RegisteredItems | None = None) -> None:
        self._source = rng
        self._rng: np.random.Generator | None = None
        self.checks: list[ModelCheck] = []
        self.registered = RegisteredItems() if registered is None else registered

    @property
    def open(self) -> ModelCheck | None:
        """The check that is open, or None."""
        return self.checks[-1] if self.checks and self.checks[-1].open else None

    @property
    def newest(self) -> ModelCheck | None:
        """The newest check with a guarantee, or None."""
        return next((check for check in reversed(self.checks) if check.guarantee is not None), None)

    def alpha(self, confidence: float | None = None) -> float:
        """The error probability of all checks together; see :func:`shared_alpha`."""
        return shared_alpha(confidence, self.registered.alpha)

    def next_alpha(self, confidence: float | None = None) -> float:
        """The error probability of the next check."""
        return spent_alpha(self.registered.started + 1, self.alpha(confidence))

    def draw(  # noqa: PLR0913, PLR0917 - all of them are needed
        self,
        size: Any,
        asked: CheckedQuantity,
        frozen: FrozenModel,
        owner: CheckOwner,
        alpha: float,
        expected: float | None = None,
    ) -> ModelCheck:
        """Draw the next check; it is complete immediately if all its items were skipped before.

        Args:
            size: Number of items; None for a sequential check.
            asked: What it is to guarantee.
            frozen: The model.
            owner: The loop.
            alpha: Error probability of all checks together.
            expected: For a sequential check, the expected share of wrong predictions.

        Raises:
            InvalidValueError: The size is not possible, or too small for the quantity: nothing is drawn or spent.
        """
        pool, which = checked_pool(asked, frozen.unlabelled, frozen.skipped, frozen.predictions)
        if size is not None:
            require_size(size, len(pool), which)
        elif not len(pool):
            raise InvalidValueError(f"there is no {which} to check")
        terms, spent = None, spent_alpha(self.registered.started + 1, alpha)
        if asked.quantity == "tolerance":
            assert asked.share is not None
            Guarantee.of_tolerance(np.zeros(int(size)), asked.share, len(pool), alpha=spent)
        if size is None:
            labels = owner.labels
            terms = sequential_terms(asked, len(pool), spent, expected, [labels[item] for item in frozen.labelled])
        if self._rng is None:
            self._rng = self._source()
        number = self.registered.start(alpha)
        if terms is not None:
            order = Check.draw(pool, terms.longest, self._rng).items
            record = Check(order[: terms.proof([]) or 1], len(pool), number, alpha, sequential=terms)
            check = ModelCheck(record, asked, frozen, owner, order)
        else:
            check = ModelCheck(Check.draw(pool, int(size), self._rng, number=number, alpha=alpha), asked, frozen, owner)
        self.checks.append(check)
        return check

    def answered(self, item: int, label: Any) -> None:
        """Update every check that contains an item with its new or corrected label.

        An open check contains it if it was labelled before its turn in a sequential check came.
        """
        for check in self.checks:
            if check.open and item in check.record.labels:
                check.correct(item, label)
            elif not check.open and not check.aborted and item in check.record.items:
                check.record = check.record.correct(item, label)

    def state_dict(self) -> dict[str, Any]:
        """The checks as JSON values. Frozen models are not saved, but their predictions are."""
        saved = []
        for check in self.checks:
            frozen = check._frozen.state_dict()
            record, order = check.record.state_dict(), check._order
            saved.append({"record": record, "asked": asdict(check._asked), "frozen": frozen, "order": order})
        drawn = None if self._rng is None else self._rng.bit_generator.state
        return {"checks": saved, "registered": self.registered.state_dict(), "random_state": drawn}

    def load_state(self, state: Mapping[str, Any], owner: CheckOwner) -> None:
        """Restore :meth:`state_dict`.

        Args:
            state: The result of :meth:`state_dict`.
            owner: The object that the checks belong to.
        """
        for saved in state["checks"]:
            frozen = FrozenModel.from_state(saved["frozen"])
            record, asked = Check.from_state(saved["record"]), CheckedQuantity(**saved["asked"])
            self.checks.append(ModelCheck(record, asked, frozen, owner, saved.get("order"), restored=True))
        registered = state.get("registered")
        if registered is None:
            # Saved by an earlier version, which counted the checks of one object.
            registered = {"alpha": state["alpha"], "earlier": len(self.checks), "checks": [], "running": []}
        self.registered.load_state(registered)
        if state["random_state"] is not None:
            self._rng = np.random.default_rng()
            self._rng.bit_generator.state = state["random_state"]

    def require_not_in_open(self, items: Iterable[int], method: str) -> None:
        """Raise an error for items that belong to the open check.

        Raises:
            InvalidValueError: An item belongs to it; the message names the method of the check to use.
        """
        if self.open is not None and (inside := sorted(set(self.open.record.items).intersection(items))):
            raise InvalidValueError(f"item {inside[0]} belongs to the open check; answer it with check.{method}")


def sequential_terms(
    asked: CheckedQuantity, pool: int, alpha: float, expected: float | None, labels: Sequence[Any] = ()
) -> SequentialTerms:
    """The terms of a sequential check.

    Args:
        asked: What it is to guarantee, with its target.
        pool: Number of items.
        alpha: Error probability of this check.
        expected: Expected share of wrong predictions, or in a screening of items of the class; or None.
        labels: Labels by people, for a target about all final labels.

    Raises:
        InvalidValueError: There is nothing to check, or no number of answers proves the target.
    """
    assert asked.at_most is not None
    if asked.of == "all":
        if asked.relevant is None:
            allowed = allowed_wrong(asked.at_most, len(labels) + pool, asked.annotator_error)
        else:
            allowed = allowed_missed(asked.at_most, sum(bool(label == asked.relevant) for label in labels))
        guess = 0.5 * allowed if expected is None else expected * pool
        planned = max(1, round(float(joint_answers([pool], allowed, [guess], alpha)[0])))
        terms = SequentialTerms(pool, allowed, planned, alpha, corrected=True)
    else:
        terms = SequentialTerms.of_share(
            asked.at_most, pool=pool, alpha=alpha, expected=expected, corrected=asked.corrected
        )
    if terms.allowed >= terms.pool:
        which = "item" if asked.of == "rest" or asked.relevant is not None else "prediction"
        fault = "wrong" if asked.relevant is None else "missed"
        raise InvalidValueError(
            f"at_most={asked.at_most!r} allows every {which} to be {fault}: there is nothing to check"
        )
    terms.require_provable()
    return terms


def checked_pool(
    asked: CheckedQuantity, unlabelled: "Indices", skipped: Collection[int], predictions: Any
) -> tuple["Indices", str]:
    """Return the items that a check is drawn from, and what they are called.

    Args:
        asked: The quantity to guarantee.
        unlabelled: Items without a label, skipped ones included, in rising order.
        skipped: Those of them that were skipped.
        predictions: Prediction for each item of ``unlabelled``.
    """
    candidates, which = np.asarray(unlabelled) >= asked.first_item, "unlabelled item"
    if asked.unlabelable_as == "excluded" or asked.of == "all":
        candidates &= ~np.isin(unlabelled, list(skipped))
        which = "unlabelled item that was not skipped"
    if asked.quantity == "precision":
        candidates &= np.asarray(predictions == asked.class_name)
        which += f"{' and is' if ' that ' in which else ''} predicted as {str(asked.class_name)!r}"
    return unlabelled[candidates], which


def shared_alpha(confidence: float | None, earlier: float | None) -> float:
    """Return the error probability of all checks of a pool together.

    Args:
        confidence: The confidence that the user asked for; None for that of the earlier checks, or 0.95.
        earlier: The error probability of the earlier checks; None if there was none.

    Raises:
        InvalidValueError: The confidence is not between 0 and 1, or not that of the earlier checks.

    Examples:
        >>> shared_alpha(None, None), shared_alpha(0.9, None), shared_alpha(None, 0.1)
        (0.05, 0.1, 0.1)
    """
    if confidence is None:
        return 0.05 if earlier is None else earlier
    level = 1.0 - real(confidence, "confidence", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
    if earlier is not None and abs(level - earlier) > 1e-12:
        raise InvalidValueError(
            f"confidence must be {1.0 - earlier:.10g}, as for the first check, because all checks share it; "
            f"not {confidence!r}"
        )
    # Rounded, because 1 - 0.95 is not exactly 0.05 in floating point.
    return round(level, 15)


def sized_quantity(
    asked: CheckedQuantity, m: Any, at_most: Any, *, size: str = "m", **conditions: Any
) -> CheckedQuantity:
    """Return the quantity with its target, if the check is sequential.

    Args:
        asked: The quantity.
        m: Number of items of a check of fixed size, or None.
        at_most: The target of a sequential check, or None.
        size: Name of the argument ``m``.
        **conditions: ``corrected``, ``of`` and ``annotator_error``, as for :class:`CheckedQuantity`.

    Raises:
        InvalidValueError: Both or none of ``m`` and ``at_most`` are given, or a sequential check is not possible.
    """
    if (m is None) == (at_most is None):
        raise InvalidValueError(
            f"a check needs at_most, the share of wrong predictions that it is to prove, or {size}, the number of "
            f"items to check; {'neither is' if m is None else 'both are'} given"
        )
    if at_most is not None:
        return asked.for_target(at_most, size=size, **conditions)
    for name, plain in (("corrected", False), ("of", "rest"), ("annotator_error", 0.0)):
        if conditions.get(name, plain) != plain:
            raise InvalidValueError(
                f"{name}={conditions[name]!r} is for a check with at_most; leave it out, or give at_most instead of "
                f"{size}"
            )
    return asked


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
