"""State of a labelling project, including imported predictions. It is a function of the events in the journal."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.checks import Check
from suffice.project.accounts import ACCOUNT_KINDS, Account, accounts_after
from suffice.project.events import ACTS, ClassChange, Event, EventKind, Label
from suffice.project.project_check import (
    CheckDraw,
    ClassesSince,
    ItemsBefore,
    ProjectCheck,
    ProjectGuarantee,
    packed_predictions,
    unpacked_predictions,
)


class PredictedLabel(NamedTuple):
    """An imported prediction: the label, its probability or None, and the name of the imported file."""

    label: Label
    probability: float | None
    source: str


def prediction_data(
    predictions: Mapping[int, Label], probabilities: Mapping[int, float], classes: Sequence[str], source: str
) -> dict[str, Any]:
    """Data of imported predictions for the journal, as JSON values.

    Args:
        predictions: The prediction for each item.
        probabilities: Probabilities of the predictions, as far as they are known.
        classes: Classes of the project; empty for numbers.
        source: Name of the file.

    Examples:
        >>> data = prediction_data({7: "ham", 2: "spam"}, {2: 0.5}, ("ham", "spam"), "old.csv")
        >>> dict(predictions_of(data))[2]
        PredictedLabel(label='spam', probability=0.5, source='old.csv')
    """
    items = sorted(predictions)
    predicted = np.array([predictions[item] for item in items], dtype=object if classes else np.float64)
    shares = np.array([probabilities.get(item, -1.0) for item in items])
    return {
        "source": source,
        "items": items,
        "classes": list(classes),
        "predictions": packed_predictions(predicted, classes),
        "probabilities": packed_predictions(shares, ()) if probabilities else None,
    }


def predictions_of(data: Mapping[str, Any]) -> Iterator[tuple[int, PredictedLabel]]:
    """The predictions of :func:`prediction_data`, each with its item.

    Raises:
        ValueError: The data is damaged.
    """
    items = data["items"]
    labels = unpacked_predictions(data["predictions"], tuple(data["classes"]), len(items)).tolist()
    packed = data.get("probabilities")
    shares: NDArray[Any] = np.full(len(items), -1.0) if packed is None else unpacked_predictions(packed, (), len(items))
    for item, label, share in zip(items, labels, shares.tolist(), strict=True):
        yield int(item), PredictedLabel(label, None if share < 0.0 else round(share, 9), str(data["source"]))


class Answer(NamedTuple):
    """Answer for a learner: an item, its label or None if skipped, and whether it was drawn at random."""

    item: int
    label: Label | None
    random: bool = False


class Opinion(NamedTuple):
    """Label of an item by one person."""

    person: str
    label: Label
    at: float


class LabelledItem(NamedTuple):
    """An item with the label that counts, who gave it and when, whether it is a correction, and all opinions.

    ``random`` says whether the item was drawn at random, ``saw_prediction`` whether the person who gave the label that
    counts saw a prediction for the item, and ``confirmed`` whether somebody has confirmed that label.
    """

    item: int
    label: Label
    person: str
    at: float
    corrected: bool
    opinions: tuple[Opinion, ...]
    random: bool = False
    saw_prediction: bool = False
    confirmed: bool = False


class SkippedItem(NamedTuple):
    """A skipped item: the person, whether they were unsure, and the reason if they gave one."""

    item: int
    person: str
    at: float
    unsure: bool = False
    reason: str = ""


class Person(NamedTuple):
    """A person: number of labels, and time of the last activity."""

    labels: int
    last: float


class Lease(NamedTuple):
    """Reservation of an item for a person, with its end."""

    person: str
    until: float


class Advice(NamedTuple):
    """Advice to stop."""

    n_labelled: int
    reason: str
    at: float


class _CheckState:
    """A check, computed from the events: its draw, the answers that its model had learned, and its status."""

    def __init__(self, draw: CheckDraw, learned: list[Answer]) -> None:
        self.draw, self.learned = draw, learned
        self.items = np.array(draw.items, dtype=np.intp)
        self.members = frozenset(draw.items)
        self.aborted = False
        self.classes_since: ClassesSince = "same"
        # After a change of the classes: for each answer its old and present name; and old names of present classes.
        self._then: dict[int, tuple[Label, Label]] = {}
        self._same_classes: dict[str, str] = {}

    def label_then(self, item: int, label: Label | None) -> Label | None:
        """The present label of an item in the classes of the check. A class that was added later is not one of them."""
        if self.classes_since == "same" or label is None:
            return label
        if item in self._then and self._then[item][1] == label:
            return self._then[item][0]
        name = str(label)
        if name in self._same_classes:
            return self._same_classes[name]
        return f"{name} (later class)" if name in self.draw.classes else name

    def follow(self, change: ClassChange, labels: Mapping[int, Label | None]) -> None:
        """Apply a change of the classes: rename them, or keep the answers in the classes of the check.

        Args:
            change: The change.
            labels: The labels before it.
        """
        if self.classes_since == "same" and change.keeps_answers:
            self.draw = self.draw.renamed(change.label)
        else:
            if self.classes_since == "same":
                self._same_classes = {name: name for name in change.before}
            known = {
                item: label
                for item in (*self.draw.items, *self.draw.before.labelled)
                if (label := labels.get(item)) is not None
            }
            then = {item: self.label_then(item, label) for item, label in known.items()}
            self._then = {
                item: (name, change.label(str(known[item]))) for item, name in then.items() if name is not None
            }
            kept = change.kept
            self._same_classes = {
                kept[name]: then_name for name, then_name in self._same_classes.items() if name in kept
            }
            if change.added or change.removed:
                self.classes_since = "changed"
            elif change.merged and self.classes_since == "same":
                self.classes_since = "merged"
        self.learned = [each._replace(label=_moved(each.label, change)) for each in self.learned]


def _is_unsure(act: Event) -> bool:
    return bool(act.data.get("unsure"))


def _moved(label: Label | None, change: ClassChange) -> Label | None:
    return change.label(label) if isinstance(label, str) else label


class ProjectState:
    """State of a project after its events.

    The label that counts is the newest correction of an item, or its first label if there is no correction. Undone
    events are ignored. An item keeps its place in the order of labelling when its label is corrected. Whether an item
    was drawn at random is recorded when it is requested as a new item, and does not depend on the answer. If the label
    that counts was given by a person who saw a prediction for the item, the learner does not treat it as random: the
    answer may be biased towards the prediction, and the estimated error would be too small.

    A check withholds answers from the model. While it is open, and afterwards until somebody labels, skips, corrects or
    undoes an item outside it, the model has learned only the answers from before the check. So it is still the checked
    model when the check is complete. Answers that were released are not withheld again. The answered items of a check,
    up to the first item without an answer, count as drawn at random. Items of a check of the precision of a class do
    not.

    When the classes change, all labels have their new names from then on; a name can be used again later. For a check,
    a renamed class is the same class. If classes are added, merged or removed, a check keeps its answers in the classes
    with which it started, and its guarantee no longer covers the present model.

    Args:
        size: Number of items.

    Attributes:
        seq: Number of the last event.
        last: The last event; None before the first.
        advice: The advice to stop, while it is valid.
        model: Name of the present model, or None if the model was never changed.
        made: The event that made the project; None before it was read.
        changes: Settings that were changed since, with their present values. It is replaced, never modified.
        revision: Number of the last event that changed settings, the model or accounts; 0 if there was none.
        accounts: The accounts, by name, in the order in which they were made. It is replaced, never modified.
        n_asked: Number of new items that were requested since the model started.
        n_random: Number of these items that were drawn at random.
        n_items_made: Number of items that the project was made with; None while no others were added.

    Examples:
        >>> state = ProjectState(3)
        >>> state.apply(Event(EventKind.labelled, "ann", 2, {"label": "spam"}, seq=1))
        >>> state.apply(Event(EventKind.corrected, "bob", 2, {"label": "ham"}, seq=2))
        >>> state.answers(), state.n_labelled
        ([Answer(item=2, label='ham', random=False)], 1)
        >>> state.apply(Event(EventKind.undone, "bob", 2, {"of": 2}, seq=3))
        >>> state.label_of(2)
        'spam'
    """

    def __init__(self, size: int) -> None:
        self.seq = 0
        self.last: Event | None = None
        self.advice: Advice | None = None
        self.model: str | None = None
        self.made: Event | None = None
        self.changes: Mapping[str, Any] = {}
        self.accounts: Mapping[str, Account] = {}
        self.n_asked = self.n_random = self.revision = 0
        # Number of items that the project was made with, once others were added.
        self.n_items_made: int | None = None
        # Items that were drawn at random when they were last asked for as new ones.
        self._drawn: set[int] = set()
        # Labels that somebody has confirmed, by item.
        self._confirmed: dict[int, Label] = {}
        # Who was shown a prediction, by item; and predictions that were imported.
        self._shown: dict[int, set[str]] = {}
        self._predicted: dict[int, PredictedLabel] = {}
        # Items whose label that counts was given by somebody who saw a prediction.
        self._informed: set[int] = set()
        # 0: open; 1: labelled; 2: skipped.
        self._done = np.zeros(size, dtype=np.int8)
        self._acts: dict[int, list[Event]] = {}
        self._by_person: dict[str, list[Event]] = {}
        self._last: dict[str, float] = {}
        self._requests: dict[str, Event] = {}
        self._leases: dict[int, Lease] = {}
        self._asked_of: dict[str, dict[int, None]] = {}
        self._why: dict[int, str] = {}
        self._labels_of: Counter[str] = Counter()
        # Items that one person has labelled and nobody corrected, with that person.
        self._single: dict[int, str] = {}
        # In the order in which a learner learns.
        self._told: dict[int, Label | None] = {}
        self._counts: Counter[Label] = Counter()
        self._checks: list[_CheckState] = []
        # The newest check, while it withholds answers.
        self._holding: _CheckState | None = None
        # Cache of the newest guarantee, with the number of the last event and the name of the model.
        self._proven: tuple[int, str, ProjectGuarantee | None] | None = None
        # Cache of the newest check, with the number of the last event.
        self._viewed: tuple[int, ProjectCheck] | None = None

    @property
    def n_labelled(self) -> int:
        """Items with a label."""
        return len(self._told) - self.n_skipped

    @property
    def n_skipped(self) -> int:
        """Items that were skipped."""
        return int(np.count_nonzero(self._done == 2))

    @property
    def left(self) -> int:
        """Items neither labelled nor skipped."""
        return len(self._done) - len(self._told)

    @property
    def people(self) -> dict[str, Person]:
        """Everybody who did something, by name."""
        return {name: Person(self._labels_of[name], last) for name, last in self._last.items()}

    def apply(self, event: Event) -> None:
        """Apply the next event."""
        if event.kind in ACTS:
            self._act(event)
        elif event.kind is EventKind.undone:
            self._undo(event)
        elif event.kind is EventKind.asked and event.item is not None:
            self._lend(event.item, Lease(event.person, float(event.data["until"])), str(event.data.get("why", "")))
            if "random" in event.data:
                self._draw(event.item, random=bool(event.data["random"]), started=bool(event.data.get("started")))
        elif event.kind is EventKind.advised:
            self.advice = Advice(int(event.data["n_labelled"]), str(event.data["reason"]), event.at)
        elif event.kind is EventKind.withdrawn:
            self.advice = None
        elif event.kind is EventKind.check_started:
            self._start_check(event)
        elif event.kind is EventKind.check_aborted:
            self._abort_check(int(event.data["number"]))
        else:
            self._apply_other(event)
        # At the end, so that an event that raised an error is not skipped at the next attempt.
        self.seq, self.last = event.seq, event
        if event.request is not None:
            self._requests[event.request] = event
        if event.person:
            self._last[event.person] = event.at

    def _change_settings(self, event: Event) -> None:
        if event.kind is EventKind.model_changed:
            self.model = str(event.data["model"])
        elif event.kind is EventKind.classes_changed:
            self._change_classes(ClassChange.from_event_data(event.data))
            # Settings that name classes.
            named = {key: event.data[key] for key in ("descriptions", "positive") if key in event.data}
            self.changes = {**self.changes, **named}
        elif event.kind is EventKind.settings_changed:
            self.changes = {**self.changes, **event.data["settings"]}
        elif event.kind in ACCOUNT_KINDS:
            self.accounts = accounts_after(self.accounts, event)
        else:
            return
        self.revision = event.seq

    def _apply_other(self, event: Event) -> None:
        """Apply an event that changes no answer."""
        if event.kind is EventKind.made:
            self.made = event
        elif event.kind is EventKind.confirmed:
            assert event.item is not None
            self._confirmed[event.item] = event.data["label"]
        elif event.kind is EventKind.prediction_shown:
            assert event.item is not None
            self._shown.setdefault(event.item, set()).add(event.person)
        elif event.kind is EventKind.items_added:
            self._add_items(int(event.data["first"]), int(event.data["count"]))
        elif event.kind is EventKind.predictions_imported:
            self._predicted.update(predictions_of(event.data))
        else:
            self._change_settings(event)

    def _add_items(self, first: int, count: int) -> None:
        """Extend the arrays for added items. Items that existed when the project was opened are included already."""
        if self.n_items_made is None:
            self.n_items_made = first
        missing = first + count - len(self._done)
        if missing > 0:
            self._done = np.concatenate([self._done, np.zeros(missing, dtype=np.int8)])

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self._done)

    def answers(self) -> list[Answer]:
        """All labels and skips, in order."""
        random = self._random_items() - self._informed if self._informed else self._random_items()
        return [Answer(item, label, item in random) for item, label in self._told.items()]

    def learned(self) -> list[Answer]:
        """Answers for the model, in order: all, or those from before an open check."""
        return self.answers() if self._holding is None else list(self._holding.learned)

    @property
    def n_learned(self) -> int:
        """Labels that the model learns now."""
        held = self._holding
        return self.n_labelled if held is None else sum(answer.label is not None for answer in held.learned)

    # Checks.

    @property
    def n_checks(self) -> int:
        """Checks so far, aborted ones included."""
        return len(self._checks)

    @property
    def checks_alpha(self) -> float | None:
        """The error probability of all checks together, or None before the first."""
        return self._checks[0].draw.alpha if self._checks else None

    @property
    def open_check(self) -> CheckDraw | None:
        """The check that waits for answers, or None; only the newest can be open."""
        return self._checks[-1].draw if self._checks and self._is_open(self._checks[-1]) else None

    def pending(self) -> NDArray[np.intp]:
        """Items of the open check that have no answer, in the order in which they were drawn; empty if none is open."""
        if self.open_check is None:
            return np.zeros(0, dtype=np.intp)
        return self.open_among(self._checks[-1].items)

    def checks(self) -> list[ProjectCheck]:
        """All checks in order, with the answers that count now."""
        return [self._check(each) for each in self._checks]

    def newest_check(self) -> ProjectCheck | None:
        """The newest check with the answers that count now, or None."""
        if not self._checks:
            return None
        if self._viewed is None or self._viewed[0] != self.seq:
            self._viewed = self.seq, self._check(self._checks[-1])
        return self._viewed[1]

    def guarantee(self, model: str) -> ProjectGuarantee | None:
        """The newest guarantee, or None.

        Args:
            model: Name of the model that learns now.
        """
        if self._proven is None or self._proven[:2] != (self.seq, model):
            self._proven = self.seq, model, self._newest_guarantee(model)
        return self._proven[2]

    def _newest_guarantee(self, model: str) -> ProjectGuarantee | None:
        for each in reversed(self._checks):
            check = self._check(each)
            found = check.guarantee
            if found is not None:
                same = check.draw.model == model and each.classes_since == "same"
                # With other items in the pool, a model may learn the same labels in another way.
                same_items = check.draw.before.size == self.size
                present = same and same_items and self.learned() == each.learned
                return ProjectGuarantee(found, check, present, self.size - check.draw.before.size)
        return None

    def items_before(self, size: int | None = None) -> ItemsBefore:
        """The items with and without a label, for a check that starts now.

        Args:
            size: Number of items at that time; all if left out. Later items are added by later events.
        """
        done = self._done[:size]
        labelled = tuple(item for item, label in self._told.items() if label is not None)
        return ItemsBefore(
            len(done), labelled, np.flatnonzero(done != 1), frozenset(np.flatnonzero(done == 2).tolist())
        )

    def _check(self, found: _CheckState) -> ProjectCheck:
        draw = found.draw
        told = {item: found.label_then(item, self._told[item]) for item in draw.items if item in self._told}
        record = Check(
            draw.items,
            draw.pool,
            draw.number,
            draw.alpha,
            {item: label for item, label in told.items() if label is not None},
            frozenset(item for item, label in told.items() if label is None),
            found.aborted,
        )
        labels = {item: found.label_then(item, self._told.get(item)) for item in draw.before.labelled}
        before = {item: label for item, label in labels.items() if label is not None}
        return ProjectCheck(draw, record, before, found is self._checks[-1], found.classes_since)

    def _is_open(self, check: _CheckState) -> bool:
        return not check.aborted and len(self.open_among(check.items)) > 0

    def _start_check(self, event: Event) -> None:
        if int(event.data["number"]) != len(self._checks) + 1:
            raise ValueError(f"event {event.seq} starts check {event.data['number']} after {len(self._checks)}")
        before = self.items_before(event.data.get("of_items"))
        draw = CheckDraw.from_event_data(event.data, before, event.person, event.at)
        if self._holding is not None:
            self._let_go(self._holding)
        check = _CheckState(draw, self.answers())
        # The check requests these items from now on. Reservations of people who were asked before are removed.
        for item in self.open_among(check.items).tolist():
            self._drawn.discard(item)
            self._take_back(item)
        self._checks.append(check)
        self._holding = check

    def _abort_check(self, number: int) -> None:
        check = self._checks[number - 1]
        if self._holding is check:
            self._let_go(check)
        check.aborted = True

    def _let_go(self, check: _CheckState) -> None:
        """Release the withheld answers, and determine which of them count as random."""
        self._drawn |= self._random_prefix(check)
        self._holding = None

    def _random_prefix(self, check: _CheckState) -> set[int]:
        """Items that were drawn and answered, up to the first without an answer."""
        if check.draw.asked.quantity == "precision":
            return set()
        answered = self._done[check.items] != 0
        first = len(answered) if answered.all() else int(np.argmin(answered))
        # Items that were skipped before the check were not answered because of the check.
        return set(check.draw.items[:first]) - check.draw.before.skipped

    def _random_items(self) -> set[int]:
        """All items that count as drawn at random."""
        return self._drawn if self._holding is None else self._drawn | self._random_prefix(self._holding)

    def uses_class(self, name: str) -> bool:
        """Whether a label of this class was given and not undone, including labels that do not count."""
        return any(act.data.get("label") == name for acts in self._acts.values() for act in acts)

    def _change_classes(self, change: ClassChange) -> None:
        """Give all labels their new names."""
        if self._holding is not None and not change.keeps_answers:
            # The model learns other classes from now on, so it is no longer the checked model.
            self._let_go(self._holding)
        for check in self._checks:
            check.follow(change, self._told)
        self._told = {item: _moved(label, change) for item, label in self._told.items()}
        self._counts = Counter(label for label in self._told.values() if label is not None)

        def renamed(act: Event) -> Event:
            label = act.data.get("label")
            new = _moved(label, change)
            return act if new == label else replace(act, data={**act.data, "label": new})

        self._confirmed = {item: change.label(str(label)) for item, label in self._confirmed.items()}
        # Predictions of a removed class are removed.
        self._predicted = {
            item: each._replace(label=change.label(str(each.label)))
            for item, each in self._predicted.items()
            if each.label not in change.removed
        }
        self._acts = {item: [renamed(act) for act in acts] for item, acts in self._acts.items()}
        self._by_person = {person: [renamed(act) for act in acts] for person, acts in self._by_person.items()}
        self.changes = {**self.changes, "classes": change.after}

    def is_only_of(self, item: int, person: str) -> bool:
        """Whether all valid labels and corrections of an item are by one person."""
        return all(act.person == person for act in self._acts.get(item, ()) if act.kind is not EventKind.skipped)

    def _answered(self, item: int) -> None:
        """Release withheld answers after an event outside a complete check. Undoing counts as an event."""
        check = self._holding
        if check is not None and item not in check.members and not self._is_open(check):
            self._let_go(check)

    def label_of(self, item: int) -> Label | None:
        """The label that counts, or None."""
        return self._told.get(item)

    def is_open(self, item: int) -> bool:
        """Whether an item is neither labelled nor skipped."""
        return bool(self._done[item] == 0)

    def open_among(self, items: NDArray[np.intp]) -> NDArray[np.intp]:
        """The given items without those that are labelled or skipped, in the same order."""
        return np.asarray(items[self._done[items] == 0])

    def is_skipped(self, item: int) -> bool:
        """Whether an item was skipped, and has no label."""
        return bool(self._done[item] == 2)

    def is_random(self, item: int) -> bool:
        """Whether an item was drawn at random: when it was last asked for as a new one, or by a check."""
        return item in self._random_items()

    def is_confirmed(self, item: int) -> bool:
        """Whether somebody has confirmed the label that counts."""
        return item in self._confirmed and self._confirmed[item] == self.label_of(item)

    def saw_prediction(self, item: int, person: str) -> bool:
        """Whether a person was shown a prediction for an item."""
        return person in self._shown.get(item, ())

    def imported_prediction(self, item: int) -> "PredictedLabel | None":
        """The newest prediction for an item that was imported from a file, or None."""
        return self._predicted.get(item)

    @property
    def n_imported_predictions(self) -> int:
        """Items with a prediction that was imported from a file."""
        return len(self._predicted)

    def is_in_check(self, item: int) -> bool:
        """Whether an item was drawn for a check that was not aborted: its label is evidence for a guarantee."""
        return any(item in check.members for check in self._checks if not check.aborted)

    def opinions(self, item: int) -> tuple[Opinion, ...]:
        """Labels of an item by all people, in order."""
        labels = (act for act in self._acts.get(item, ()) if act.kind is EventKind.labelled)
        return tuple(Opinion(act.person, act.data["label"], act.at) for act in labels)

    def labelled(self) -> list[LabelledItem]:
        """All items with a label, in the order of labelling."""
        random = self._random_items()
        return [self._labelled(item, item in random) for item, label in self._told.items() if label is not None]

    def labelled_often(self) -> list[LabelledItem]:
        """The labelled items with more than one label, skip or correction, in the order of labelling."""
        often = [item for item, label in self._told.items() if label is not None and len(self._acts[item]) > 1]
        random = self._random_items() if often else set()
        return [self._labelled(item, item in random) for item in often]

    def skipped(self) -> list[SkippedItem]:
        """All skipped items without a label, in order. The person is the first who was unsure, or who skipped."""
        skips = ((item, self._acts[item]) for item, label in self._told.items() if label is None)
        deciding = ((item, next((act for act in acts if _is_unsure(act)), acts[0])) for item, acts in skips)
        return [
            SkippedItem(item, act.person, act.at, _is_unsure(act), str(act.data.get("reason", "")))
            for item, act in deciding
        ]

    def counts(self) -> dict[Label, int]:
        """Number of items of each label."""
        return {label: count for label, count in self._counts.items() if count}

    def leases(self, now: float) -> dict[int, Lease]:
        """Leases that are valid at a time, by item."""
        return {item: lease for item, lease in self._leases.items() if lease.until > now}

    def lease(self, item: int) -> Lease | None:
        """The last lease of an item that was not answered, expired or not."""
        return self._leases.get(item)

    def end_lease_at(self, item: int, until: float) -> None:
        """Set the end of the lease of an item, for callers whose clock differs from that of the journal."""
        lease = self._leases.get(item)
        if lease is not None:
            self._leases[item] = lease._replace(until=until)

    def known_request(self, request: str | None) -> Event | None:
        """The event that was written under a name, if there is one."""
        return None if request is None else self._requests.get(request)

    def newest_act(self, person: str) -> Event | None:
        """The last label, skip or correction of a person that was not undone."""
        acts = self._by_person.get(person)
        return acts[-1] if acts else None

    def acts(self, item: int) -> tuple[Event, ...]:
        """Labels, skips and corrections of an item that were not undone, in order."""
        return tuple(self._acts.get(item, ()))

    def act_of(self, item: int, person: str) -> Event | None:
        """The label that a person gave an item, unless it was undone."""
        mine = (act for act in self._acts.get(item, ()) if act.person == person and act.kind is EventKind.labelled)
        return next(mine, None)

    def skip_of(self, item: int, person: str) -> Event | None:
        """The event by which a person skipped an item, unless it was undone."""
        mine = (act for act in self._acts.get(item, ()) if act.person == person and act.kind is EventKind.skipped)
        return next(mine, None)

    def has_more_to_say(self, act: Event) -> bool:
        """Whether a person who undoes an action can answer for its item: not if they have another valid label."""
        assert act.item is not None
        return act.kind is not EventKind.corrected and self.act_of(act.item, act.person) in (None, act)

    def mine(self, person: str) -> list[tuple[int, Lease]]:
        """Unanswered items of a person, with expired or valid leases, items that were taken back first."""
        return [(item, self._leases[item]) for item in self._asked_of.get(person, ())]

    def why(self, item: int) -> str:
        """Reason for the last request of an item."""
        return self._why.get(item, "")

    def single_opinions(self, person: str) -> list[int]:
        """Items with a single label, by somebody else, that nobody has corrected and this person has not skipped."""
        others = (item for item, only in self._single.items() if only != person)
        return [item for item in others if self.skip_of(item, person) is None]

    def has_correction(self, item: int) -> bool:
        """Whether the label that counts is a correction."""
        return any(act.kind is EventKind.corrected for act in self._acts.get(item, ()))

    def _act(self, event: Event) -> None:
        assert event.item is not None
        self._acts.setdefault(event.item, []).append(event)
        self._by_person.setdefault(event.person, []).append(event)
        self._labels_of[event.person] += event.kind is EventKind.labelled
        # Another person who sees the item may still answer, but is not asked again.
        self._take_back(event.item)
        self._recount(event.item)
        self._answered(event.item)

    def _undo(self, event: Event) -> None:
        of, item = event.data["of"], event.item
        assert item is not None
        undone = next(act for act in self._acts[item] if act.seq == of)
        self._acts[item].remove(undone)
        self._by_person[event.person].remove(undone)
        self._labels_of[event.person] -= undone.kind is EventKind.labelled
        if "until" in event.data:
            self._lend(item, Lease(event.person, float(event.data["until"])), "taken back")
            others = self._asked_of[event.person]
            self._asked_of[event.person] = {item: None} | others
        self._recount(item)
        self._answered(item)

    def _lend(self, item: int, lease: Lease, why: str) -> None:
        before = self._leases.get(item)
        if before is not None and before.person != lease.person:
            self._take_back(item)
        # A renewed lease of the same person keeps its place.
        self._leases[item] = lease
        self._asked_of.setdefault(lease.person, {})[item] = None
        self._why[item] = why

    def _draw(self, item: int, *, random: bool, started: bool) -> None:
        if random:
            self._drawn.add(item)
        else:
            self._drawn.discard(item)
        self.n_asked += started
        self.n_random += started and random

    def _take_back(self, item: int) -> None:
        lease = self._leases.pop(item, None)
        if lease is not None:
            del self._asked_of[lease.person][item]
            self._why.pop(item, None)

    def _recount(self, item: int) -> None:
        """Compute the label that counts, and its place in the order."""
        label, done = self._counting(item)
        before = self._done[item]
        if before == 1:
            self._counts[self._told[item]] -= 1  # type: ignore[index]
        if done != before:
            self._told.pop(item, None)
        if done:
            self._told[item] = label
        if label is not None:
            self._counts[label] += 1
        self._done[item] = done
        deciding = self.deciding_act(item)
        if deciding is not None and deciding.data.get("saw_prediction"):
            self._informed.add(item)
        else:
            self._informed.discard(item)
        self._single.pop(item, None)
        acts = self._acts.get(item, [])
        people = [act.person for act in acts if act.kind is EventKind.labelled]
        if len(people) == 1 and not self.has_correction(item):
            self._single[item] = people[0]

    def _counting(self, item: int) -> tuple[Label | None, int]:
        deciding = self.deciding_act(item)
        if deciding is not None:
            return deciding.data["label"], 1
        return None, 2 if self._acts.get(item) else 0

    def deciding_act(self, item: int) -> Event | None:
        """The event whose label counts: the newest correction, or otherwise the first label."""
        acts = self._acts.get(item, ())
        corrected = [act for act in acts if act.kind is EventKind.corrected]
        labels = [act for act in acts if act.kind is EventKind.labelled]
        return corrected[-1] if corrected else labels[0] if labels else None

    def _labelled(self, item: int, random: bool) -> LabelledItem:
        deciding = self.deciding_act(item)
        assert deciding is not None
        corrected = deciding.kind is EventKind.corrected
        return LabelledItem(
            item,
            deciding.data["label"],
            deciding.person,
            deciding.at,
            corrected,
            self.opinions(item),
            random,
            item in self._informed,
            self.is_confirmed(item),
        )
