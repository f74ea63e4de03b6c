"""A check of a project: its data in the journal, the answers so far, and the resulting guarantee."""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.checks import Check, Guarantee, SequentialTerms, spent_alpha
from suffice.checks.random_check import sequential_progress
from suffice.checks.sequential_terms import LONGEST
from suffice.errors import InvalidValueError
from suffice.presentation.check_words import guarantee_sentences, later_check_sentence
from suffice.presentation.text_format import count
from suffice.project.prediction_settings import GIVEN
from suffice.project.settings import described_model
from suffice.session.model_check import (
    CheckedQuantity,
    checked_pool,
    least_error,
    proven_guarantee,
)

#: Change of the classes since a check started: none or renamed only; merged only; or any other change.
ClassesSince = Literal["same", "merged", "changed"]
#: Significant bits of a stored predicted number, about 9 digits.
_BITS: Final = 32
# Stored probabilities are multiples of the inverse.
_SHARE_STEPS: Final = 10_000


def packed_predictions(predictions: NDArray[Any], classes: Sequence[str]) -> str:
    """Predictions as a short text: class codes or numbers, compressed.

    Numbers are rounded to 32 significant bits. The check uses the rounded numbers.

    Args:
        predictions: Names of classes, or finite numbers, shape (M,).
        classes: The classes, in the order of their codes; empty for numbers.

    Raises:
        InvalidValueError: A prediction is not one of the classes, or not a finite number.

    Examples:
        >>> text = packed_predictions(np.array(["ham", "spam", "ham"]), ("ham", "spam"))
        >>> unpacked_predictions(text, ("ham", "spam"), 3).tolist()
        ['ham', 'spam', 'ham']
    """
    if classes:
        codes = {name: code for code, name in enumerate(classes)}
        unknown = sorted(set(predictions.tolist()) - set(codes), key=repr)
        if unknown:
            raise InvalidValueError(f"predictions must be classes of the project, not {unknown[0]!r}")
        values = np.array([codes[name] for name in predictions.tolist()], dtype=_code_type(classes))
    else:
        values = rounded_numbers(np.asarray(predictions, dtype=np.float64)).astype("<f8")
        if not np.isfinite(values).all():
            raise InvalidValueError("predictions must be finite numbers")
    # All first bytes, then all second bytes, because similar bytes compress well.
    rows = values.view(np.uint8).reshape(len(values), values.itemsize)
    return b64encode(zlib.compress(np.ascontiguousarray(rows.T).tobytes())).decode("ascii")


def unpacked_predictions(text: str, classes: Sequence[str], size: int) -> NDArray[Any]:
    """The predictions of :func:`packed_predictions`.

    Args:
        text: Result of :func:`packed_predictions`.
        classes: The same classes.
        size: Number of predictions.

    Raises:
        ValueError: The text is damaged, or has another number of predictions.
    """
    kind = np.dtype(_code_type(classes) if classes else "<f8")
    try:
        content = zlib.decompress(b64decode(text, validate=True))
    except zlib.error as error:
        raise ValueError(f"the predictions of a check cannot be read: {error}") from None
    if len(content) != size * kind.itemsize:
        raise ValueError(f"the predictions of a check are not those of {size} items")
    rows = np.frombuffer(content, dtype=np.uint8).reshape(kind.itemsize, size)
    values = np.ascontiguousarray(rows.T).view(kind).reshape(size)
    if not classes:
        return values.astype(np.float64)
    if size and values.max() >= len(classes):
        raise ValueError(f"the predictions of a check are of more than {len(classes)} classes")
    return np.asarray(np.asarray(classes)[values])


def rounded_numbers(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers with 32 significant bits.

    Examples:
        >>> rounded_numbers(np.array([0.1, -12345.678, 0.0])).tolist()
        [0.10000000000582077, -12345.678001403809, 0.0]
    """
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, _BITS)), exponent - _BITS))


def packed_shares(shares: NDArray[np.float64]) -> str:
    """Probabilities as a short text, rounded to four decimals.

    Examples:
        >>> unpacked_shares(packed_shares(np.array([0.5, 0.99996, 0.12344])), 3).tolist()
        [0.5, 1.0, 0.1234]
    """
    codes = np.rint(np.clip(shares, 0.0, 1.0) * _SHARE_STEPS).astype("<u2")
    rows = codes.view(np.uint8).reshape(len(codes), 2)
    return b64encode(zlib.compress(np.ascontiguousarray(rows.T).tobytes())).decode("ascii")


def unpacked_shares(text: str, size: int) -> NDArray[np.float64]:
    """The probabilities of :func:`packed_shares`.

    Args:
        text: Result of :func:`packed_shares`.
        size: Number of probabilities.

    Raises:
        ValueError: The text is damaged, or has another number of probabilities.
    """
    try:
        content = zlib.decompress(b64decode(text, validate=True))
    except zlib.error as error:
        raise ValueError(f"the probabilities of a check cannot be read: {error}") from None
    if len(content) != 2 * size:
        raise ValueError(f"the probabilities of a check are not those of {size} items")
    rows = np.frombuffer(content, dtype=np.uint8).reshape(2, size)
    return np.ascontiguousarray(rows.T).view("<u2").reshape(size) / _SHARE_STEPS


def packed_order(items: Sequence[int]) -> str:
    """The random order of a sequential check as a short text.

    Examples:
        >>> unpacked_order(packed_order([70_000, 2, 5]))
        (70000, 2, 5)
    """
    rows = np.asarray(items, dtype="<u8").view(np.uint8).reshape(len(items), 8)
    return b64encode(zlib.compress(np.ascontiguousarray(rows.T).tobytes())).decode("ascii")


def unpacked_order(text: str) -> tuple[int, ...]:
    """The items of :func:`packed_order`.

    Raises:
        ValueError: The text is damaged.
    """
    try:
        content = zlib.decompress(b64decode(text, validate=True))
    except zlib.error as error:
        raise ValueError(f"the random order of a check cannot be read: {error}") from None
    if len(content) % 8:
        raise ValueError("the random order of a check is damaged")
    rows = np.frombuffer(content, dtype=np.uint8).reshape(8, len(content) // 8)
    return tuple(np.ascontiguousarray(rows.T).view("<u8").reshape(-1).tolist())


def _code_type(classes: Sequence[str]) -> str:
    return "<u1" if len(classes) <= 2**8 else "<u4"


class ItemsBefore(NamedTuple):
    """The items of a project when a check starts; items that are added later are not covered by its guarantee.

    Attributes:
        size: Number of items of the project.
        labelled: Items with a label, in the order of labelling.
        unlabelled: Items without a label, skipped ones included, in rising order.
        skipped: Unlabelled items that were skipped.
    """

    size: int
    labelled: tuple[int, ...]
    unlabelled: NDArray[np.intp]
    skipped: frozenset[int]


@dataclass(frozen=True, eq=False)
class CheckDraw:
    """The part of a check that is fixed when it starts.

    Attributes:
        items: The items that were drawn, in this order. Those of a sequential check are all that it may need.
        pool: Number of items that they were drawn from.
        number: Number of the check in the project, from 1; more if the items were checked elsewhere before.
        alpha: Error probability of all checks of the project together.
        asked: The quantity to guarantee.
        model: Name of the model whose predictions are checked.
        classes: The classes of the project at the start, with their present names if they were only renamed since;
            empty for numbers. A class that is added later is never predicted, so a label of this class is a wrong
            prediction.
        before: The items with and without a label at the start. The model had learned the items with a label.
        predictions: Prediction of the model for each item without a label, in rising order of the items.
        person: Who started the check.
        at: Time of the start, in seconds since 1970.
        terms: The terms of a sequential check; None for a check of fixed size.
        probabilities: For a goal about all labels, the probability of each of ``predictions``; None if it is not known.
    """

    items: tuple[int, ...]
    pool: int
    number: int
    alpha: float
    asked: CheckedQuantity
    model: str
    classes: tuple[str, ...]
    before: ItemsBefore
    predictions: NDArray[Any]
    person: str = ""
    at: float = 0.0
    terms: SequentialTerms | None = None
    probabilities: NDArray[np.float64] | None = None

    @property
    def spends_as(self) -> int:
        """Number of the check among those of the same items, which determines its error probability."""
        return self.number if self.asked.batch_check is None else self.asked.batch_check

    def later_sentence(self, items: str) -> str:
        """What it means that this is not the first check of the same items; empty for the first.

        Args:
            items: What the items are called.
        """
        first, later = (spent_alpha(number, self.alpha) for number in (1, self.spends_as))
        return later_check_sentence(self.spends_as, later, first, items=items)

    def event_data(self) -> dict[str, Any]:
        """Data for the journal, as JSON values; the rest follows from the events before it."""
        drawn: dict[str, Any] = {"size": len(self.items), "items": list(self.items)}
        if self.terms is not None:
            drawn = {"size": None, "order": packed_order(self.items), "terms": self.terms.state_dict()}
        known = {} if self.probabilities is None else {"probabilities": packed_shares(self.probabilities)}
        return {
            "number": self.number,
            "alpha": self.alpha,
            "of_items": self.before.size,
            **drawn,
            "pool": self.pool,
            "n_labelled": len(self.before.labelled),
            "model": self.model,
            **self.asked.as_dict(),
            "classes": list(self.classes),
            "predictions": packed_predictions(self.predictions, self.classes),
            **known,
        }

    @staticmethod
    def from_event_data(data: Mapping[str, Any], before: ItemsBefore, person: str, at: float) -> "CheckDraw":
        """Create it from the result of :meth:`event_data`.

        Args:
            data: Result of :meth:`event_data`.
            before: The items with and without a label.
            person: Who started the check.
            at: When.

        Raises:
            ValueError: The data does not fit.
        """
        terms = SequentialTerms(**data["terms"]) if "terms" in data else None
        items = tuple(int(item) for item in data["items"]) if terms is None else unpacked_order(data["order"])
        pool, size = set(before.unlabelled.tolist()), data["size"] if terms is None else terms.longest
        if not items or len(items) != size or len(set(items)) < len(items) or not pool.issuperset(items):
            raise ValueError("the items of a check are not so many unlabelled ones")
        classes = tuple(data["classes"])
        asked = {each.name: data[each.name] for each in fields(CheckedQuantity) if each.name in data}
        return CheckDraw(
            items=items,
            pool=int(data["pool"]),
            number=int(data["number"]),
            alpha=float(data["alpha"]),
            asked=CheckedQuantity(**asked),
            model=str(data["model"]),
            classes=classes,
            before=before,
            predictions=unpacked_predictions(data["predictions"], classes, len(before.unlabelled)),
            person=person,
            at=at,
            terms=terms,
            probabilities=None
            if "probabilities" not in data
            else unpacked_shares(data["probabilities"], len(before.unlabelled)),
        )

    def renamed(self, name: Callable[[str], str]) -> "CheckDraw":
        """A copy with other names of the classes.

        Args:
            name: Returns the new name of a class.
        """
        if not self.classes:
            return self
        places = {each: place for place, each in enumerate(self.classes)}
        codes = np.array([places[each] for each in self.predictions.tolist()], dtype=np.intp)
        classes = tuple(map(name, self.classes))
        asked = self.asked
        if asked.class_name is not None:
            asked = replace(asked, class_name=name(asked.class_name))
        return replace(self, classes=classes, asked=asked, predictions=np.asarray(classes)[codes])

    @property
    def covered(self) -> NDArray[np.intp]:
        """Items whose predictions a goal about all labels covers: those without a label that were not skipped."""
        return self.before.unlabelled[self._covered]

    @property
    def _covered(self) -> NDArray[np.bool_]:
        return ~np.isin(self.before.unlabelled, list(self.before.skipped))

    def delivered(self) -> tuple[NDArray[np.intp], NDArray[Any], NDArray[np.float64]]:
        """The covered items, their predictions, and the probabilities of these; NaN if they are not known."""
        covered = self._covered
        probable = np.full(len(covered), np.nan) if self.probabilities is None else self.probabilities
        return self.before.unlabelled[covered], self.predictions[covered], probable[covered]

    def prediction_of(self, items: Iterable[int]) -> dict[int, Any]:
        """Predictions of some items that had no label."""
        wanted = list(items)
        places = np.searchsorted(self.before.unlabelled, wanted)
        return dict(zip(wanted, self.predictions[places].tolist(), strict=True))


def drawn_items(
    size: int | None, asked: CheckedQuantity, before: ItemsBefore, predictions: NDArray[Any], rng: np.random.Generator
) -> tuple[tuple[int, ...], int]:
    """Draw the items of a check uniformly without replacement.

    Args:
        size: Number of items; None for all that a sequential check may need.
        asked: The quantity to guarantee.
        before: The items with and without a label.
        predictions: Prediction for each item without a label.
        rng: Source of randomness.

    Returns:
        The items, and the number of items that they were drawn from.

    Raises:
        InvalidValueError: The number of items cannot be drawn.
    """
    pool, which = checked_pool(asked, before.unlabelled, before.skipped, predictions)
    if not len(pool):
        raise InvalidValueError(f"there is no {which} to check")
    if size is None:
        size = min(len(pool), LONGEST)
    if size > len(pool):
        words = which if len(pool) == 1 else which.replace("item", "items", 1).replace(" was ", " were ")
        words = words if len(pool) == 1 else words.replace(" and is ", " and are ")
        raise InvalidValueError(f"size must be at most the {len(pool):,} {words}, not {size:,}")
    return Check.draw(pool, size, rng).items, len(pool)


@dataclass(frozen=True, eq=False)
class ProjectCheck:
    """A check of a project, with the answers that count now.

    Attributes:
        draw: The part that was fixed when the check started.
        record: The sample and its answers.
        labels: Current labels of the items that were labelled before it started.
        newest: Whether no other check has started since.
        classes_since: Change of the classes since the check started. If classes were merged, added or removed, the
            check uses the original classes, also in ``record`` and ``labels``.
        present_names: After such a change: present names of the original classes.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> from suffice.project import create_project
        >>> folder = TemporaryDirectory()
        >>> project = create_project(f"{folder.name}/sizes", {"x": range(30)}, classes=["small", "large"])
        >>> for item, size in enumerate(["small"] * 5 + ["large"] * 5):
        ...     receipt = project.label(item, size, person="ann")
        >>> receipt = project.start_check(2, person="ann")
        >>> (check,) = project.checks()
        >>> isinstance(check, ProjectCheck), check.number, check.n_labelled, check.state
        (True, 1, 10, 'open')
        >>> project.close(); folder.cleanup()
    """

    draw: CheckDraw
    record: Check
    labels: Mapping[int, Any]
    newest: bool
    classes_since: ClassesSince = "same"
    present_names: Mapping[str, str] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """Its number, from 1."""
        return self.draw.number

    @property
    def n_labelled(self) -> int:
        """Number of labels that the checked model has learned."""
        return len(self.draw.before.labelled)

    @property
    def state(self) -> str:
        """``"open"``, ``"complete"``, ``"aborted"``, or ``"incomplete"``: an older check of which an answer was undone.

        The check is complete again when the item has an answer.
        """
        if self.record.aborted:
            return "aborted"
        return "complete" if self.record.complete else "open" if self.newest else "incomplete"

    @property
    def guarantee(self) -> Guarantee | None:
        """Guarantee of the check; None if an answer is missing, the check was aborted, or nothing can be guaranteed.

        With ``share`` there is no guarantee if too many items could not be labelled.
        """
        draw, asked = self.draw, self.draw.asked
        if not self.record.complete or asked.share_of is not None or asked.accept is not None:
            return None
        if draw.model == GIVEN and asked.quantity == "recall":
            # What people have found is not predicted; the recall of predictions made elsewhere is that of the result.
            return None

        def predicted_as_class() -> int:
            excluded = draw.before.skipped if asked.unlabelable_as == "excluded" else frozenset[int]()
            as_class = draw.before.unlabelled[np.asarray(draw.predictions == asked.class_name)].tolist()
            return sum(item not in excluded for item in as_class)

        return proven_guarantee(
            self.record,
            asked,
            draw.prediction_of(self.record.items),
            model=self.model_words,
            found=lambda: sum(label == asked.class_name for label in self.labels.values()),
            predicted_as_class=predicted_as_class,
        )

    @property
    def model_words(self) -> str:
        """The checked model, for a guarantee; empty for predictions made elsewhere."""
        if self.draw.model == GIVEN:
            return ""
        return f"{described_model(self.draw.model)} at {count(self.n_labelled, 'label')}"

    @property
    def least_error(self) -> float | None:
        """Least share of wrong predictions, by the check; None if it is open or of another quantity."""
        return least_error(self.record, self.guarantee, self.progress)

    @property
    def progress(self) -> dict[str, Any] | None:
        """Progress of a sequential check, see :attr:`suffice.learner.ModelCheck.progress`; None for a fixed size."""
        predicted = self.draw.prediction_of(self.record.items)
        asked = self.draw.asked
        return sequential_progress(self.record, predicted, asked.tolerance, asked.relevant)


@dataclass(frozen=True, eq=False)
class ProjectGuarantee:
    """The newest guarantee of a project, and whether it covers the current model.

    Attributes:
        guarantee: The statement.
        check: The check that proves it, with the covered predictions.
        about_present_model: Whether the project's model is still the checked model. If it has learned more labels, was
            replaced, or learns other classes, the current model has no guarantee; the statement holds for the checked
            model.
        added: Number of items that were added to the project since the check was drawn; they are not covered.
    """

    guarantee: Guarantee
    check: ProjectCheck
    about_present_model: bool
    added: int = 0

    def __str__(self) -> str:
        return " ".join(guarantee_sentences(self.as_dict()))

    def as_dict(self) -> dict[str, Any]:
        """The guarantee as JSON values."""
        draw = self.check.draw
        return {
            **self.guarantee.to_dict(),
            "evidence": self.guarantee.evidence,
            "about_present_model": self.about_present_model,
            "added": self.added,
            "check": draw.number,
            "n_labelled": self.check.n_labelled,
            "model_name": draw.model,
            "classes": list(draw.classes),
            "classes_since": self.check.classes_since,
        }
