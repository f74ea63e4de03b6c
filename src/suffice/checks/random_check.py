r"""A check: a random sample of the unlabelled items, its answers, and the error probability that it spends.

A check is an immutable value without input or output and without a model. Each transition returns a new check. The
predictions of the frozen model are arguments of the methods that return guarantees.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from suffice.arguments import distinct, floats, real, whole, wholes
from suffice.checks.guarantee import Circumstances, Guarantee, PredictedItems, UnlabelableAs, known_fields
from suffice.checks.hypergeometric import LARGEST_POOL, probability
from suffice.checks.sequential_terms import SequentialTerms
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.presentation.html_parts import card
from suffice.presentation.text_format import count, percent, percent_at_least

_FORMAT: Final = 1
# Items in a message.
_SHOWN_ITEMS: Final = 5

#: The largest share of a check that may be excluded because it cannot be labelled.
MOST_EXCLUDED: Final = 0.1

#: The answer of an annotator: a class, or a number.
Label = str | int | float | bool


def spent_alpha(number: int, alpha: float = 0.05) -> float:
    r"""The error probability of one check in a sequence of any length.

    .. math:: \alpha_j = \frac{\alpha}{j (j + 1)}, \qquad \sum_{j = 1}^\infty \alpha_j = \alpha

    All guarantees of the sequence hold together with probability at least :math:`1 - \alpha`.

    Args:
        number: ``j``, the number of the check, from 1. Aborted checks count.
        alpha: Error probability of the whole sequence.

    Examples:
        >>> [round(spent_alpha(j, 0.06), 4) for j in (1, 2, 3)]
        [0.03, 0.01, 0.005]
    """
    j = whole(number, "number", least=1)
    return probability(alpha, "alpha") / (j * (j + 1))


@dataclass(frozen=True)
class EvaluationGrid:
    r"""The sample sizes at which a running check is evaluated, fixed before its first label.

    The :math:`K` evaluations share the error probability equally: each uses :math:`\alpha / K`.

    Attributes:
        sizes: Sample sizes, rising.
        alpha: Error probability of all evaluations together.

    Examples:
        >>> grid = EvaluationGrid.doubling(first=25, last=250, alpha=0.04)
        >>> grid.sizes, grid.alpha_each, grid.due(120)
        ((25, 50, 100, 200), 0.01, 100)
    """

    sizes: tuple[int, ...]
    alpha: float = 0.05

    def __post_init__(self) -> None:
        sizes = tuple(whole(size, "sizes", least=1) for size in self.sizes)
        if not sizes or any(second <= first for first, second in pairwise(sizes)):
            raise InvalidValueError(f"sizes must be at least one size, rising, not {self.sizes!r}")
        probability(self.alpha, "alpha")
        object.__setattr__(self, "sizes", sizes)

    @classmethod
    def doubling(cls, first: int, last: int, *, alpha: float = 0.05) -> "EvaluationGrid":
        """The sizes ``first``, ``2 first``, ``4 first`` and so on, up to ``last``."""
        start, end = whole(first, "first", least=1), whole(last, "last", least=1)
        if end < start:
            raise InvalidValueError(f"last must be at least first={start}, not {last!r}")
        return cls(tuple(start << j for j in range((end // start).bit_length())), alpha)

    @property
    def alpha_each(self) -> float:
        """The error probability of one evaluation."""
        return self.alpha / len(self.sizes)

    def due(self, labels: int) -> int | None:
        """Return the largest size that is at most ``labels``, or None. Evaluate only that many first labels."""
        reached = [size for size in self.sizes if size <= labels]
        return reached[-1] if reached else None


@dataclass(frozen=True)
class Check:
    r"""A random sample of the unlabelled items, with the answers so far.

    The size is fixed when the sample is drawn. A guarantee needs an answer for every item: a label, or that it cannot
    be labelled. An aborted check gives no guarantee, and its error probability is spent. A corrected answer gives a new
    guarantee at the same error probability.

    Attributes:
        items: Indices of the items, in the order in which they were drawn.
        pool: Number of unlabelled items from which they were drawn.
        number: ``j``, the number of the check in its sequence, from 1.
        alpha: Error probability of the whole sequence; this check uses :attr:`alpha_spent`.
        labels: Answers by item. Do not change it; use :meth:`tell` and :meth:`correct`.
        unlabelable: Items that cannot be labelled.
        aborted: Whether the check was aborted.
        sequential: The terms of a sequential check, see :func:`suffice.checks.sequential`; None for a check of fixed
            size. The items of a sequential check are those that were answered, and the next ones that are needed if no
            further answer is wrong, see :meth:`reaching`.
        first_answers: The first answers of items whose answer was corrected; None for one that could not be labelled.

    Examples:
        >>> import numpy as np
        >>> check = Check.draw(np.arange(4600), size=3, rng=np.random.default_rng(0))
        >>> check.pending
        (2929, 2351, 3911)
        >>> check = check.tell({2929: "spam", 2351: "ham"}).cannot_label([3911])
        >>> check.complete
        True
        >>> print(check.guarantee({2929: "spam", 2351: "ham", 3911: "ham"}))
        At most 91 % of the predictions for the 4,597 unlabelled items are wrong (95 % confidence).
    """

    items: tuple[int, ...]
    pool: int
    number: int = 1
    alpha: float = 0.05
    labels: Mapping[int, Label] = field(default_factory=dict)
    unlabelable: frozenset[int] = frozenset()
    aborted: bool = False
    sequential: SequentialTerms | None = None
    first_answers: Mapping[int, Label | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        items = wholes(self.items, "items", least=0)
        if not items or len(set(items)) < len(items):
            raise InvalidValueError(f"items must be at least one index, each once, not {self.items!r}")
        if not len(items) <= whole(self.pool, "pool", least=1) <= LARGEST_POOL:
            raise InvalidValueError(f"pool must be from {len(items)} to {LARGEST_POOL:,} items, not {self.pool!r}")
        spent_alpha(self.number, self.alpha)
        labels = {whole(item, "items of labels", least=0): _label(label) for item, label in dict(self.labels).items()}
        missing = frozenset(whole(item, "unlabelable", least=0) for item in self.unlabelable)
        if outside := sorted((set(labels) | missing) - set(items)):
            raise InvalidValueError(f"only items of the check can be answered; these are not: {_some(outside)}")
        if both := sorted(set(labels) & missing):
            raise InvalidValueError(f"an item cannot have a label and be unlabelable; these are both: {_some(both)}")
        if not isinstance(self.aborted, bool):
            raise InvalidValueError(f"aborted must be True or False, not {self.aborted!r}")
        first = {
            whole(item, "items of first_answers", least=0): None if label is None else _label(label)
            for item, label in dict(self.first_answers).items()
        }
        terms = self.sequential
        if terms is not None and (terms.pool != self.pool or not math.isclose(terms.alpha, self.alpha_spent)):
            raise InvalidValueError("the terms of a sequential check must have its pool and its error probability")
        for name, value in (("items", items), ("labels", labels), ("unlabelable", missing), ("first_answers", first)):
            object.__setattr__(self, name, value)

    @classmethod
    def draw(
        cls, unlabelled: ArrayLike, size: int, rng: np.random.Generator, *, number: int = 1, alpha: float = 0.05
    ) -> "Check":
        """Draw a check uniformly without replacement.

        Args:
            unlabelled: Indices of the items that are unlabelled now, shape (M,), each once. The draw depends on their
                order.
            size: ``m``, the number of items to draw.
            rng: Source of randomness.
            number: ``j``, the number of the check in its sequence, from 1; aborted checks count.
            alpha: Error probability of the whole sequence.

        Raises:
            InvalidTypeError: ``rng`` is not a numpy Generator, or an index is not a whole number.
            InvalidValueError: An argument is out of range, or an index occurs twice.
        """
        indices = np.asarray(unlabelled)
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise InvalidTypeError(f"unlabelled must be a series of indices, not {unlabelled!r}")
        if not distinct(indices):
            raise InvalidValueError("unlabelled must name each item once")
        if not isinstance(rng, np.random.Generator):
            raise InvalidTypeError(
                f"rng must be a numpy.random.Generator, not {rng!r}; use numpy.random.default_rng(0)"
            )
        if whole(size, "size", least=1) > len(indices):
            raise InvalidValueError(f"size must be at most the {count(len(indices), 'unlabelled item')}, not {size!r}")
        drawn = indices[rng.choice(len(indices), size=size, replace=False, shuffle=True)]
        return cls(tuple(drawn.tolist()), len(indices), number, alpha)

    # State.

    @property
    def size(self) -> int:
        """Number of items in the check."""
        return len(self.items)

    @property
    def pending(self) -> tuple[int, ...]:
        """Items without an answer, in the order of :attr:`items`."""
        return tuple(item for item in self.items if item not in self.labels and item not in self.unlabelable)

    @property
    def complete(self) -> bool:
        """Whether every item has an answer and the check was not aborted."""
        return not self.aborted and len(self.labels) + len(self.unlabelable) == len(self.items)

    @property
    def alpha_spent(self) -> float:
        r"""The error probability of this check, :math:`\alpha / (j (j + 1))`."""
        return spent_alpha(self.number, self.alpha)

    def _repr_html_(self) -> str:
        """The progress of the check, for notebooks."""
        answered = len(self.labels) + len(self.unlabelable)
        if self.aborted:
            heading = f"The check was aborted after {count(answered, 'answer')}: it proves nothing."
        elif self.complete:
            heading = f"The check of {count(self.size, 'item')} is complete."
        else:
            have = "has" if answered == 1 else "have"
            heading = f"{answered:,} of {count(self.size, 'item')} of the check {have} an answer."
        rows = [
            ("drawn from", count(self.pool, "unlabelled item")),
            ("cannot be labelled", f"{len(self.unlabelable):,}" if self.unlabelable else ""),
            ("next", ", ".join(map(str, self.pending[:_SHOWN_ITEMS])) + " …" * (len(self.pending) > _SHOWN_ITEMS)),
            ("confidence", f"{percent_at_least(1.0 - self.alpha)}, check {self.number} of its sequence"),
        ]
        return card(heading, [row for row in rows if row[1]], tone="stop" if self.complete else "go on")

    # Transitions.

    def tell(self, labels: Mapping[int, Label]) -> "Check":
        """Return the check with more labels.

        Args:
            labels: Labels by item; none of the items may have an answer already.

        Raises:
            InvalidValueError: The check was aborted, or an item is not in it or has an answer already.
        """
        _require_open(self, labels)
        return replace(self, labels={**self.labels, **labels})

    def cannot_label(self, items: Iterable[int]) -> "Check":
        """Return the check with items that cannot be labelled.

        Args:
            items: The items; none of them may have an answer already.

        Raises:
            InvalidValueError: The check was aborted, or an item is not in it or has an answer already.
        """
        given = frozenset(items)
        _require_open(self, given)
        return replace(self, unlabelable=self.unlabelable | given)

    def correct(self, item: int, label: Label | None) -> "Check":
        """Return the check with a corrected answer; it may be complete already.

        Args:
            item: An item that has an answer.
            label: The new label, or None if the item cannot be labelled.

        Raises:
            InvalidValueError: The item has no answer that could be corrected.
        """
        if item not in self.labels and item not in self.unlabelable:
            raise InvalidValueError(f"item {item!r} has no answer that could be corrected; use tell or cannot_label")
        first = {item: self.labels.get(item), **self.first_answers}
        if first[item] == label:
            del first[item]
        if label is None:
            labels = {key: value for key, value in self.labels.items() if key != item}
            return replace(self, labels=labels, unlabelable=self.unlabelable | {item}, first_answers=first)
        # The order of the answers is kept.
        labels = {**self.labels, item: label}
        return replace(self, labels=labels, unlabelable=self.unlabelable - {item}, first_answers=first)

    def renamed(self, classes: Mapping[Label, Label]) -> "Check":
        """Return the check with classes renamed or merged; rename the predictions in the same way.

        Args:
            classes: New class by old class; other classes stay.
        """
        labels = {item: classes.get(label, label) for item, label in self.labels.items()}
        first = {
            item: None if label is None else classes.get(label, label) for item, label in self.first_answers.items()
        }
        return replace(self, labels=labels, first_answers=first)

    def abort(self) -> "Check":
        """Return the check as aborted: it gives no guarantee, and its error probability is spent.

        Raises:
            InvalidValueError: The check is complete.
        """
        if self.complete:
            raise InvalidValueError("a complete check cannot be aborted; ignore its guarantee instead")
        return replace(self, aborted=True)

    # Guarantees.

    def guarantee(
        self,
        predictions: Mapping[int, Any] | Sequence[Any] | ArrayLike,
        *,
        tolerance: float | None = None,
        parts: int = 1,
        unlabelable_as: UnlabelableAs = "wrong",
        model: str = "",
    ) -> Guarantee:
        """Guarantee the share of wrong predictions.

        Args:
            predictions: Predictions of the frozen model: by item, or in the order of :attr:`items`.
            tolerance: Largest acceptable distance between number and prediction; None for classes.
            parts: Number of guarantees that this check is used for; each gets its part of :attr:`alpha_spent`.
            unlabelable_as: Whether an item that cannot be labelled counts as ``"wrong"`` or is ``"excluded"``.
            model: Name of the model or of its predictions.

        Returns:
            The guarantee; its confidence is that of the sequence, ``1 - alpha``.

        Raises:
            InvalidValueError: The check is not complete or was aborted, a prediction is missing, more than a tenth of
                the items are to be excluded, or a sequential check has not proven its target.
        """
        _, alpha, stated = complete_evidence(self, predictions, parts, unlabelable_as, model)
        values = values_by_item(self, predictions)
        if self.sequential is None:
            return part_guarantee(self, self.items, self.pool, values, tolerance=tolerance, alpha=alpha, stated=stated)
        if parts != 1 or unlabelable_as != "wrong":
            raise InvalidValueError("a sequential check proves one target, and counts all its items")
        wrong, proof = self._proven(stated, values, tolerance)
        return Guarantee.of_proof(self.sequential, wrong, proof, tolerance=tolerance, **stated)

    def found_guarantee(self, class_name: Label, found: int, *, model: str = "") -> Guarantee:
        """Guarantee the recall of a class that a sequential check of a screening has proven.

        Args:
            class_name: The class; the check counts its items as wrong.
            found: Number of its items among the labels before the check.
            model: Name of the model or of its predictions.

        Raises:
            InvalidValueError: The check is of fixed size, not complete or aborted, or has not proven its target.

        Examples:
            >>> terms = SequentialTerms(40, allowed=2, planned=30, alpha=0.025, corrected=True)
            >>> check = Check(tuple(range(32)), 40, sequential=terms).tell(dict.fromkeys(range(32), "no"))
            >>> print(check.found_guarantee("yes", found=40))
            Annotators have found at least 95.2 % of the items of class 'yes' (95 % confidence).
        """
        if self.sequential is None:
            raise InvalidValueError("the size of this check is fixed; use recall_guarantee")
        _, _, stated = complete_evidence(self, [None] * self.size, 1, "wrong", model)
        wrong, proof = self._proven(stated, {}, class_name=class_name)
        return Guarantee.of_proof(
            self.sequential, wrong, proof, class_name=str(class_name), found=whole(found, "found", least=0), **stated
        )

    def _proven(
        self,
        stated: Circumstances,
        values: Mapping[int, Any],
        tolerance: float | None = None,
        class_name: Label | None = None,
    ) -> tuple[int, int]:
        """The number of wrong answers of a sequential check up to its proof, and the number of answers by then.

        Args:
            stated: The common fields of the guarantee, to which those about the answers are added.
            values: Predictions by item.
            tolerance: As for :meth:`faults`.
            class_name: As for :meth:`faults`.
        """
        assert self.sequential is not None
        faults = self.faults(values, tolerance=tolerance, class_name=class_name)
        at_first = self._at_first(values, tolerance, class_name)
        proof = self.sequential.proof([faults[item] for item in self.items])
        if proof is None or proof > self.size:
            raise InvalidValueError("the sequential check has ended without a proof of its target")
        first = [at_first[item] for item in self.items]
        proof_at_first = self.sequential.proof(first)
        if proof_at_first is None or proof_at_first > self.size:
            stated["wrong_at_first"] = sum(first[:proof])
        # Answers after the proof are not evidence.
        counted = self.items[:proof]
        stated["unlabelable"] = sum(item in self.unlabelable for item in counted)
        return sum(faults[item] for item in counted) - stated["unlabelable"], proof

    def faults(
        self,
        predictions: Mapping[int, Any] | Sequence[Any] | ArrayLike,
        *,
        tolerance: float | None = None,
        class_name: Label | None = None,
    ) -> dict[int, bool]:
        """Whether each item has a wrong prediction or cannot be labelled; False for items without an answer.

        Args:
            predictions: Predictions of the frozen model: by item, or in the order of :attr:`items`.
            tolerance: Largest acceptable distance between number and prediction; None for classes.
            class_name: For a screening: the class that is looked for. Then an item is wrong if it is of the class, and
                predictions are not used.
        """
        values: Mapping[int, Any] = {} if class_name is not None else values_by_item(self, predictions)
        return {
            item: item in self.unlabelable
            or (item in self.labels and is_wrong(self.labels[item], values.get(item), tolerance, class_name))
            for item in self.items
        }

    def _at_first(
        self, values: Mapping[int, Any], tolerance: float | None, class_name: Label | None = None
    ) -> dict[int, bool]:
        """The result of :meth:`faults` with the first answers."""
        found = self.faults(values, tolerance=tolerance, class_name=class_name)
        for item, label in self.first_answers.items():
            found[item] = label is None or is_wrong(label, values.get(item), tolerance, class_name)
        return found

    def reaching(
        self,
        order: Sequence[int],
        predictions: Mapping[int, Any],
        *,
        tolerance: float | None = None,
        class_name: Label | None = None,
    ) -> "Check":
        """Return a sequential check with the items that its answers require.

        These are the first ones of the random order: those with an answer, and the next ones that prove the target if
        no further answer is wrong. If the target is proven, or cannot be proven any more, these are the answered items.

        Args:
            order: The random order, which begins with the items of the check.
            predictions: Predictions of the frozen model, by item.
            tolerance: As for :meth:`faults`.
            class_name: As for :meth:`faults`.

        Raises:
            InvalidValueError: The check is of fixed size.
        """
        if self.sequential is None:
            raise InvalidValueError("the size of this check is fixed")
        faults = self.faults(predictions, tolerance=tolerance, class_name=class_name)
        pending = set(self.pending)
        proof = self.sequential.proof([faults[item] for item in self.items])
        first = next((place for place, item in enumerate(self.items) if item in pending), self.size)
        if proof is None or proof <= first:
            return replace(self, items=tuple(item for item in self.items if item not in pending))
        # Items that were answered before their turn stay, also where a correction made fewer items necessary.
        answered = (place for place in range(self.size - 1, -1, -1) if self.items[place] not in pending)
        size = max(proof, next(answered, -1) + 1)
        return self if size == self.size else replace(self, items=tuple(order[:size]))

    def tolerance_guarantee(
        self,
        predictions: Mapping[int, Any] | Sequence[Any] | ArrayLike,
        share: float,
        *,
        parts: int = 1,
        unlabelable_as: UnlabelableAs = "wrong",
        model: str = "",
    ) -> Guarantee:
        """Guarantee a tolerance that at most a share of the predictions exceeds.

        Args:
            predictions: Predictions of the frozen model: by item, or in the order of :attr:`items`.
            share: The share, fixed before the check.
            parts: Number of guarantees that this check is used for.
            unlabelable_as: Whether an item that cannot be labelled counts as ``"wrong"`` or is ``"excluded"``.
            model: Name of the model or of its predictions.

        Raises:
            InvalidValueError: As for :meth:`guarantee`, or the check is too small for the share.
        """
        answers, alpha, stated = complete_evidence(self, predictions, parts, unlabelable_as, model)
        return Guarantee.of_tolerance(_residuals(answers), share, self.pool, alpha=alpha, **stated)

    def precision_guarantee(  # noqa: PLR0913 - keyword arguments with defaults
        self,
        predictions: Mapping[int, Any] | Sequence[Any] | ArrayLike,
        class_name: Label,
        predicted: int,
        *,
        parts: int = 1,
        unlabelable_as: UnlabelableAs = "wrong",
        model: str = "",
    ) -> Guarantee:
        """Guarantee the precision of a predicted class.

        Args:
            predictions: Predictions of the frozen model: by item, or in the order of :attr:`items`.
            class_name: The class.
            predicted: Number of items of the pool that are predicted as the class.
            parts: Number of guarantees that this check is used for: the number of classes, for one of each.
            unlabelable_as: Whether an item that cannot be labelled counts as ``"wrong"`` or is ``"excluded"``.
            model: Name of the model or of its predictions.

        Raises:
            InvalidValueError: As for :meth:`guarantee`.
        """
        answers, alpha, stated = complete_evidence(self, predictions, parts, unlabelable_as, model)
        values = values_by_item(self, predictions)
        chosen = [item for item in self.items if values[item] == class_name]
        stated["unlabelable"] = sum(item in self.unlabelable for item in chosen)
        wrong = sum(answers[item][0] != class_name for item in chosen if item in answers)
        require_possible(self, predicted, len(chosen))
        return Guarantee.of_precision(str(class_name), wrong, len(chosen), predicted, alpha=alpha, **stated)

    def recall_guarantee(  # noqa: PLR0913 - keyword arguments with defaults
        self,
        class_name: Label,
        found: int,
        *,
        predictions: Mapping[int, Any] | Sequence[Any] | ArrayLike | None = None,
        predicted: int | None = None,
        parts: int = 1,
        unlabelable_as: UnlabelableAs = "wrong",
        model: str = "",
    ) -> Guarantee:
        """Guarantee the recall of a class.

        Args:
            class_name: The class.
            found: Number of its items among the labels before the check.
            predictions: If items predicted as the class count as found: predictions of the frozen model, by item or in
                the order of :attr:`items`.
            predicted: Number of items of the pool that are predicted as the class; required with ``predictions``.
            parts: Number of guarantees that this check is used for.
            unlabelable_as: Whether an item that cannot be labelled counts as an item of the class that is not found
                (``"wrong"``) or is ``"excluded"``.
            model: Name of the model or of its predictions.

        Raises:
            InvalidValueError: As for :meth:`guarantee`.
        """
        if (predictions is None) != (predicted is None):
            raise InvalidValueError("predictions and predicted must be given together, or neither")
        chosen: set[int] = set()
        sample = None
        _, alpha, stated = complete_evidence(self, [None] * self.size, parts, unlabelable_as, model)
        if predictions is not None and predicted is not None:
            values = values_by_item(self, predictions)
            chosen = {item for item in self.items if values[item] == class_name}
            require_possible(self, predicted, len(chosen))
            absent = len(chosen & self.unlabelable) if unlabelable_as == "excluded" else 0
            right = sum(self.labels.get(item) == class_name for item in chosen if item in self.labels)
            sample = PredictedItems(predicted - absent, len(chosen) - absent, right, absent)
        stated["unlabelable"] = len(self.unlabelable - chosen)
        new = sum(label == class_name for item, label in self.labels.items() if item not in chosen)
        rest, checked = self.pool - (predicted or 0), self.size - len(chosen)
        return Guarantee.of_recall(str(class_name), found, new, checked, rest, predicted=sample, alpha=alpha, **stated)

    # JSON.

    def state_dict(self) -> dict[str, Any]:
        """Return the check as JSON values.

        Examples:
            >>> Check((7, 3), pool=10).tell({3: "spam"}).state_dict()["labels"]
            [[3, 'spam']]
        """
        return {
            "format": _FORMAT,
            "items": list(self.items),
            "pool": self.pool,
            "number": self.number,
            "alpha": self.alpha,
            "labels": [[item, label] for item, label in self.labels.items()],
            "unlabelable": sorted(self.unlabelable),
            "aborted": self.aborted,
            **({} if self.sequential is None else {"sequential": self.sequential.state_dict()}),
            **(
                {"first_answers": [[item, label] for item, label in self.first_answers.items()]}
                if self.first_answers
                else {}
            ),
        }

    @staticmethod
    def from_state(saved: Mapping[str, Any]) -> "Check":
        """Restore a check from :meth:`state_dict`.

        Args:
            saved: The result of :meth:`state_dict`.

        Raises:
            InvalidValueError: A field is missing, unknown or out of range.
        """
        values = known_fields(Check, saved)
        try:
            labels = dict(values.get("labels", []))
            items, missing = tuple(values["items"]), frozenset(values.get("unlabelable", []))
            first = dict(values.get("first_answers", []))
            terms = values.get("sequential")
            sequential = None if terms is None else SequentialTerms(**terms)
        except (TypeError, ValueError):
            raise InvalidValueError(
                "a saved Check must have lists of items, of labels and of unlabelable items"
            ) from None
        made = {"labels": labels, "items": items, "unlabelable": missing}
        return Check(**{**values, **made, "first_answers": first, "sequential": sequential})

    #: Earlier names of the two methods above.
    to_dict = state_dict
    from_dict = from_state


def sequential_progress(
    record: Check, predictions: Mapping[int, Any], tolerance: float | None, class_name: Label | None = None
) -> dict[str, Any] | None:
    """Progress of a sequential check as JSON values; None for one of fixed size.

    Args:
        record: The check, with the items that its answers require.
        predictions: Predictions of the frozen model, by item.
        tolerance: For numbers, the largest error that is not wrong.
        class_name: For a screening: the class that is looked for.
    """
    terms = record.sequential
    if terms is None:
        return None
    faults = record.faults(predictions, tolerance=tolerance, class_name=class_name)
    pending = set(record.pending)
    first = next((place for place, item in enumerate(record.items) if item in pending), record.size)
    flags = [faults[item] for item in record.items]
    proof = terms.proof(flags)
    proven = proof is not None and proof <= first
    if not proven and not pending:
        # It has ended: too many answers are wrong, or an answer was corrected after the proof.
        proof = None
    state = "given up" if record.aborted else "proven" if proven else "failed" if proof is None else "open"
    answered = (proof or 0) if proven else first
    return {
        "state": state,
        "answered": answered,
        "wrong": sum(flags[:answered]),
        "needed": None if proof is None else max(0, proof - first),
        "allowed": terms.allowed,
        **({} if class_name is None else {"class_name": str(class_name)}),
    }


def complete_evidence(
    check: Check, predictions: Any, parts: int, unlabelable_as: UnlabelableAs, model: str
) -> tuple[dict[int, tuple[Label, Any]], float, Circumstances]:
    """Return label and prediction of each labelled item, the error probability, and the common fields."""
    if check.aborted:
        raise InvalidValueError("an aborted check gives no guarantee; draw the next check")
    if not check.complete:
        raise InvalidValueError(
            f"a check gives a guarantee when all its {count(check.size, 'item')} have an answer; "
            f"{count(len(check.pending), 'item')} still to label: {_some(check.pending)}"
        )
    if unlabelable_as == "excluded" and len(check.unlabelable) > MOST_EXCLUDED * check.size:
        raise InvalidValueError(
            f"{len(check.unlabelable)} of {count(check.size, 'item')} could not be labelled, which is more than "
            f"{percent(MOST_EXCLUDED)}: they cannot be excluded; count them as wrong"
        )
    values = values_by_item(check, predictions)
    answers = {item: (check.labels[item], values[item]) for item in check.items if item in check.labels}
    stated = Circumstances(
        confidence=1.0 - check.alpha,
        model=model,
        unlabelable=len(check.unlabelable),
        unlabelable_as=unlabelable_as,
        corrections=len(check.first_answers),
        number=check.number,
    )
    return answers, check.alpha_spent / whole(parts, "parts", least=1), stated


def part_guarantee(  # noqa: PLR0913 - all but four by keyword
    check: Check,
    items: Sequence[int],
    pool: int,
    predictions: Mapping[int, Any],
    *,
    tolerance: float | None,
    alpha: float,
    stated: Circumstances,
) -> Guarantee:
    """Guarantee the share of wrong predictions in a part of the pool that was fixed before the draw.

    Given how many items of a check of fixed size belong to the part, these are a uniform sample of it.

    Args:
        check: A complete check of fixed size.
        items: The items of the check that belong to the part.
        pool: Number of items of the pool that belong to it.
        predictions: Predictions by item.
        tolerance: Largest acceptable distance between number and prediction; None for classes.
        alpha: Error probability of this guarantee.
        stated: The other fields of the guarantee; those about the items are replaced.
    """
    chosen = frozenset(items)
    answers = {item: (check.labels[item], predictions[item]) for item in items if item in check.labels}
    stated = {
        **stated,
        "unlabelable": len(check.unlabelable & chosen),
        "corrections": len(chosen & set(check.first_answers)),
    }
    if stated["corrections"]:
        at_first = check._at_first(predictions, tolerance)
        stated["wrong_at_first"] = max(0, sum(at_first[item] for item in items) - stated["unlabelable"])
    if tolerance is not None:
        return Guarantee.within(_residuals(answers), tolerance, pool, alpha=alpha, **stated)
    wrong = sum(is_wrong(*answer) for answer in answers.values())
    return Guarantee.of_error(wrong, len(chosen), pool, alpha=alpha, **stated)


def values_by_item(check: Check, values: Any, name: str = "predictions") -> dict[int, Any]:
    """Return the prediction of each item of the check, or another value of each, given by item or in their order."""
    if isinstance(values, Mapping):
        if missing := [item for item in check.items if item not in values]:
            raise InvalidValueError(f"{name} must cover every item of the check; missing: {_some(missing)}")
        return {item: values[item] for item in check.items}
    series = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if len(series) != check.size:
        raise InvalidValueError(f"{name} must be one for each of the {check.size} items, not {len(series)}")
    return dict(zip(check.items, series, strict=True))


def require_fixed_size(check: Any, purpose: str) -> None:
    """Raise an error unless a value is a check of fixed size, which may prove more than one target.

    Args:
        check: The value.
        purpose: What the check is for, for the error: "to compare models".
    """
    if not isinstance(check, Check):
        # The check of a learner has it as an attribute.
        raise InvalidTypeError(
            f"check must be a suffice.checks.Check, not {type(check).__name__}; that of a learner is check.record"
        )
    if check.sequential is not None:
        raise InvalidValueError(
            f"a sequential check proves the target of one model; draw a check of fixed size {purpose}"
        )


def is_wrong(label: Label, prediction: Any, tolerance: float | None = None, class_name: Label | None = None) -> bool:
    """Whether an answer of a check counts as wrong.

    It does if the prediction is another class, or a number that is off by more than a tolerance. In a screening it does
    if the label is the class that is looked for.

    Examples:
        >>> is_wrong("spam", "ham"), is_wrong(2.0, 2.4, tolerance=0.5), is_wrong("spam", "spam", class_name="spam")
        (True, False, True)
    """
    if class_name is not None:
        return bool(label == class_name)
    if tolerance is None:
        return bool(label != prediction)
    return abs(real(label, "a label") - real(prediction, "a prediction")) > tolerance


def _require_open(check: Check, items: Iterable[int]) -> None:
    """Refuse new answers of an aborted check, and of items that have an answer."""
    if check.aborted:
        raise InvalidValueError("an aborted check takes no answers; draw the next check")
    if answered := sorted(item for item in items if item in check.labels or item in check.unlabelable):
        raise InvalidValueError(f"these items have an answer already; use correct: {_some(answered)}")


def require_possible(check: Check, predicted: int, chosen: int) -> None:
    """The items predicted as a class must contain those of the check, and leave room for the others."""
    least, most = chosen, check.pool - (check.size - chosen)
    if not least <= whole(predicted, "predicted", least=0) <= most:
        raise InvalidValueError(f"predicted must be from {least} to {most}, by the check's items, not {predicted!r}")


def _label(value: Any) -> Label:
    """Return a label as a JSON value; numbers and strings of numpy are converted."""
    plain = value.item() if isinstance(value, np.generic) else value
    if not isinstance(plain, str | int | float) or (isinstance(plain, float) and not math.isfinite(plain)):
        raise InvalidValueError(f"a label must be a text or a finite number, not {value!r}; use cannot_label for none")
    return plain


def _residuals(answers: Mapping[int, tuple[Label, Any]]) -> "np.typing.NDArray[np.float64]":
    pairs = [(real(label, "a label"), real(prediction, "a prediction")) for label, prediction in answers.values()]
    return floats([label - prediction for label, prediction in pairs], "residuals")


def _some(items: Sequence[int]) -> str:
    """The first ten of several items."""
    return ", ".join(map(str, items[:10])) + (", ..." if len(items) > 10 else "")
