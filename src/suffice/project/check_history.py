"""The checks of a project, computed from its events: draws, withheld answers, and guarantees."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from suffice.checks import Check
from suffice.project.assigned_items import AssignedItems
from suffice.project.counted_labels import Answer, CountedLabels
from suffice.project.events import ClassChange, Event, Label
from suffice.project.project_check import CheckDraw, ClassesSince, ProjectCheck, ProjectGuarantee


class _StartedCheck:
    """A check: its draw, the answers that its model had learned, and its status."""

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
            present = {
                item: label
                for item in (*self.draw.items, *self.draw.before.labelled)
                if (label := labels.get(item)) is not None
            }
            then = {item: self.label_then(item, label) for item, label in present.items()}
            self._then = {
                item: (name, change.label(str(present[item]))) for item, name in then.items() if name is not None
            }
            successors = change.kept
            self._same_classes = {
                successors[name]: then_name for name, then_name in self._same_classes.items() if name in successors
            }
            if change.added or change.removed:
                self.classes_since = "changed"
            elif change.merged and self.classes_since == "same":
                self.classes_since = "merged"
        self.learned = [answer._replace(label=change.answer(answer.label)) for answer in self.learned]


class CheckHistory:
    """The checks of a project in the order in which they started, aborted ones included.

    A check withholds answers from the model. While it is open, and afterwards until somebody labels, skips, corrects or
    undoes an item outside it, the model has learned only the answers from before the check. So it is still the checked
    model when the check is complete. Answers that were released are not withheld again. The answered items of a check,
    up to the first item without an answer, count as drawn at random. Items of a check of the precision of a class do
    not.

    For a check, a renamed class is the same class. If classes are added, merged or removed, a check keeps its answers
    in the classes with which it started, and its guarantee no longer covers the present model.

    Args:
        labels: The labels that count.
        assigned: Items that people were asked for.
    """

    def __init__(self, labels: CountedLabels, assigned: AssignedItems) -> None:
        self._labels, self._assigned = labels, assigned
        self._checks: list[_StartedCheck] = []
        # The newest check, while it withholds answers.
        self._holding: _StartedCheck | None = None

    def __len__(self) -> int:
        return len(self._checks)

    @property
    def alpha(self) -> float | None:
        """The error probability of all checks together, or None before the first."""
        return self._checks[0].draw.alpha if self._checks else None

    @property
    def open_check(self) -> CheckDraw | None:
        """The check that waits for answers, or None; only the newest can be open."""
        return self._checks[-1].draw if self._checks and self._is_open(self._checks[-1]) else None

    @property
    def learned(self) -> list[Answer] | None:
        """The answers that the model has learned, if a check withholds others; otherwise None."""
        return None if self._holding is None else list(self._holding.learned)

    def pending(self) -> NDArray[np.intp]:
        """Items of the open check that have no answer, in the order in which they were drawn; empty if none is open."""
        if self.open_check is None:
            return np.zeros(0, dtype=np.intp)
        return self._labels.open_among(self._checks[-1].items)

    def includes(self, item: int) -> bool:
        """Whether an item was drawn for a check that was not aborted: its label is evidence for a guarantee."""
        return any(item in check.members for check in self._checks if not check.aborted)

    def random_items(self) -> set[int]:
        """Items that count as drawn at random because of the check that withholds answers."""
        return set() if self._holding is None else self._random_prefix(self._holding)

    def all(self) -> list[ProjectCheck]:
        """All checks in order, with the answers that count now."""
        return [self._view(check) for check in self._checks]

    def newest(self) -> ProjectCheck | None:
        """The newest check with the answers that count now, or None."""
        return self._view(self._checks[-1]) if self._checks else None

    def newest_guarantee(self, model: str, learned: Callable[[], list[Answer]]) -> ProjectGuarantee | None:
        """The newest guarantee, or None.

        Args:
            model: Name of the model that learns now.
            learned: Returns the answers that it learns.
        """
        for started in reversed(self._checks):
            check = self._view(started)
            guarantee = check.guarantee
            if guarantee is not None:
                added = self._labels.size - check.draw.before.size
                same_model = check.draw.model == model and started.classes_since == "same"
                # With other items in the pool, a model may learn the same labels in another way.
                about_present_model = same_model and not added and learned() == started.learned
                return ProjectGuarantee(guarantee, check, about_present_model, added)
        return None

    def start(self, event: Event, answers: list[Answer]) -> None:
        """Apply the event that starts a check.

        Args:
            event: The event.
            answers: All answers before it, which the checked model has learned.

        Raises:
            ValueError: The event does not fit.
        """
        if int(event.data["number"]) != len(self._checks) + 1:
            raise ValueError(f"event {event.seq} starts check {event.data['number']} after {len(self._checks)}")
        before = self._labels.items_before(event.data.get("of_items"))
        draw = CheckDraw.from_event_data(event.data, before, event.person, event.at)
        self._release()
        check = _StartedCheck(draw, answers)
        # The check requests these items from now on. Reservations of people who were asked before are removed.
        for item in self._labels.open_among(check.items).tolist():
            self._assigned.drawn.discard(item)
            self._assigned.release(item)
        self._checks.append(check)
        self._holding = check

    def abort(self, number: int) -> None:
        """Abort a check, and release its answers."""
        check = self._checks[number - 1]
        if self._holding is check:
            self._release()
        check.aborted = True

    def answer_changed(self, item: int) -> None:
        """Release withheld answers after an event outside a complete check. Undoing counts as an event."""
        check = self._holding
        if check is not None and item not in check.members and not self._is_open(check):
            self._release()

    def change_classes(self, change: ClassChange) -> None:
        """Apply a change of the classes, before the labels have their new names."""
        if not change.keeps_answers:
            # The model learns other classes from now on, so it is no longer the checked model.
            self._release()
        for check in self._checks:
            check.follow(change, self._labels.by_item)

    def _release(self) -> None:
        """Release the withheld answers, and determine which of them count as random."""
        self._assigned.drawn |= self.random_items()
        self._holding = None

    def _random_prefix(self, check: _StartedCheck) -> set[int]:
        """Items that were drawn and answered, up to the first without an answer."""
        if check.draw.asked.quantity == "precision":
            return set()
        pending = self._labels.open_among(check.items)
        first = check.draw.items.index(pending[0]) if len(pending) else len(check.items)
        # Items that were skipped before the check were not answered because of the check.
        return set(check.draw.items[:first]) - check.draw.before.skipped

    def _view(self, check: _StartedCheck) -> ProjectCheck:
        draw, labels = check.draw, self._labels.by_item
        answers = {item: check.label_then(item, labels[item]) for item in draw.items if item in labels}
        record = Check(
            draw.items,
            draw.pool,
            draw.number,
            draw.alpha,
            {item: label for item, label in answers.items() if label is not None},
            frozenset(item for item, label in answers.items() if label is None),
            check.aborted,
        )
        before = {item: check.label_then(item, labels.get(item)) for item in draw.before.labelled}
        present = {item: label for item, label in before.items() if label is not None}
        return ProjectCheck(draw, record, present, check is self._checks[-1], check.classes_since)

    def _is_open(self, check: _StartedCheck) -> bool:
        return not check.aborted and len(self._labels.open_among(check.items)) > 0
