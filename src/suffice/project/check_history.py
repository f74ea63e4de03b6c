"""The checks of a project, computed from its events: draws, withheld answers, and guarantees."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from suffice.checks import Check
from suffice.checks.random_check import is_wrong
from suffice.project.assigned_items import AssignedItems
from suffice.project.counted_labels import Answer, CountedLabels
from suffice.project.events import ClassChange, Event, Label
from suffice.project.prediction_settings import GIVEN
from suffice.project.project_check import CheckDraw, ClassesSince, ProjectCheck, ProjectGuarantee
from suffice.session.finish import proves_goal
from suffice.session.goals import Goal

# Answers of a sequential check that are read at once.
_WINDOW: Final = 64


class _StartedCheck:
    """A check: its draw, the answers that its model had learned, and its status.

    Args:
        draw: The part of the check that is fixed.
        learned: The answers that the model had learned.
        labels: The labels that count.

    Attributes:
        items: Items of the check in the order in which they were drawn. Those of a sequential check are the answered
            ones, and the next ones that prove the target if no further answer is wrong.
        first: The first answer of each item; None if it could not be labelled.
    """

    def __init__(self, draw: CheckDraw, learned: list[Answer], labels: CountedLabels) -> None:
        self.draw, self.learned, self._labels = draw, learned, labels
        self.items = np.array(draw.items, dtype=np.intp)
        self.members = frozenset(draw.items)
        self.aborted = False
        self.classes_since: ClassesSince = "same"
        self.first: dict[int, Label | None] = {}
        # After a change of the classes: for each answer its old and current name; and old names of current classes.
        self._then: dict[int, tuple[Label, Label]] = {}
        self._same_classes: dict[str, str] = {}
        # After such a change: the current name of each class of the check.
        self.present_names: dict[str, str] = {}
        if draw.terms is not None:
            self._places = {item: place for place, item in enumerate(draw.items)}
            self._predicted = draw.prediction_of(draw.items)
            self._answered, self._wrong = np.zeros(len(self.items), dtype=bool), np.zeros(len(self.items), dtype=bool)
            self.refresh()

    def follow_answer(self, item: int) -> None:
        """Take the present answer of an item into account."""
        if item not in (self.members if self.draw.terms is None else self._places):
            return
        answers = self._labels.by_item
        if item in answers and item not in self.draw.before.skipped:
            self.first.setdefault(item, self.label_then(item, answers[item]))
        if self.draw.terms is not None:
            self._note(item)
            self._reach()

    def refresh(self) -> None:
        """Compute the items of a sequential check again from all answers."""
        if self.draw.terms is not None:
            # An item without an answer is not wrong; there can be many of these.
            self._answered[:] = self._wrong[:] = False
            for item in self._labels.by_item.keys() & self._places.keys():
                self._note(item)
            self._reach()

    def _note(self, item: int) -> None:
        place, answers = self._places[item], self._labels.by_item
        self._answered[place] = item in answers
        label = self.label_then(item, answers.get(item))
        if label is None or item in self._labels.informed:
            # The label of somebody who saw a prediction is no evidence.
            self._wrong[place] = item in answers
        else:
            asked = self.draw.asked
            self._wrong[place] = is_wrong(label, self._predicted[item], asked.tolerance, asked.relevant)

    def _reach(self) -> None:
        """Set the items that the answers require."""
        terms = self.draw.terms
        assert terms is not None
        missing = np.flatnonzero(~self._answered)
        answered = int(missing[0]) if len(missing) else len(self._answered)
        # Answers that were given outside the order count too, so that more of them may have to be read.
        window = max(answered, _WINDOW)
        proof = terms.proof(self._wrong[:window])
        while proof is not None and proof > window:
            window = proof
            proof = terms.proof(self._wrong[:window])
        self.items = np.array(self.draw.items[: max(answered if proof is None else proof, 1)], dtype=np.intp)
        self.members = frozenset(self.items.tolist())

    def label_then(self, item: int, label: Label | None) -> Label | None:
        """The current label of an item in the classes of the check. A class that was added later is not one of them."""
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
            self._renamed(change)
        else:
            if self.classes_since == "same":
                self._same_classes = {name: name for name in change.before}
                self.present_names = {name: name for name in self.draw.classes}
            self.present_names = {name: change.label(now) for name, now in self.present_names.items()}
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

    def _renamed(self, change: ClassChange) -> None:
        """Rename the classes of the check."""
        self.draw = self.draw.renamed(change.label)
        self.first = {item: None if label is None else change.label(str(label)) for item, label in self.first.items()}
        if self.draw.terms is not None:
            self._predicted = self.draw.prediction_of(self.draw.items)


class CheckHistory:
    """The checks of a project in the order in which they started, aborted ones included.

    A check withholds answers from the model. While it is open, and afterwards until somebody labels, skips, corrects or
    undoes an item outside it, the model has learned only the answers from before the check. So it is still the checked
    model when the check is complete. Answers that were released are not withheld again. The answered items of a check,
    up to the first item without an answer, count as drawn at random. Items of a check of the precision of a class do
    not.

    For a check, a renamed class is the same class. If classes are added, merged or removed, a check keeps its answers
    in the classes with which it started, and its guarantee no longer covers the current model.

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
    def next_number(self) -> int:
        """Number of the next check: one more than that of the last one."""
        return self._checks[-1].draw.number + 1 if self._checks else 1

    def number_after(self, elsewhere: int) -> int:
        """Number of the next check, if some checks of the same items were started elsewhere.

        Args:
            elsewhere: Number of checks elsewhere. Those that an earlier check counted are not counted again.
        """
        return max(self.next_number, elsewhere + len(self._checks) + 1)

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

    def goal_proof(self, goal: Goal, tolerance: float | None) -> ProjectCheck | None:
        """The newest check that has proven a goal about all final labels, or None.

        Args:
            goal: The goal. A check of a stricter one proves it as well.
            tolerance: For numbers: the largest error that is not wrong.
        """
        for started in reversed(self._checks):
            asked = started.draw.asked
            if asked.relevant is not None:
                # The class may have another name now.
                asked = replace(asked, class_name=started.present_names.get(asked.class_name, asked.class_name))
            if proves_goal(asked, goal) and asked.tolerance == tolerance:
                check = self._view(started)
                if check.guarantee is not None:
                    return check
        return None

    def newest_guarantee(self, model: str, learned: Callable[[], list[Answer]]) -> ProjectGuarantee | None:
        """The newest guarantee, or None.

        Args:
            model: Name of the model that learns now.
            learned: Returns the answers that it learns.
        """
        for started in reversed(self._checks):
            check = self._view(started)
            guarantee = check.guarantee
            if guarantee is not None and guarantee.quantity == "recall":
                # An item whose label was taken back is neither found nor one of those that the check was drawn from.
                before = np.array(started.draw.before.labelled, dtype=np.intp)
                guarantee = None if len(self._labels.open_among(before)) else guarantee
            if guarantee is not None:
                added = self._labels.size - check.draw.before.size
                same_model = check.draw.model == model and started.classes_since == "same"
                # With other items in the pool, a model may learn the same labels in another way.
                about_present_model = same_model and not added and learned() == started.learned
                if model == GIVEN:
                    # These predictions do not change.
                    about_present_model = started.classes_since == "same"
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
        if int(event.data["number"]) < self.next_number:
            raise ValueError(f"event {event.seq} starts check {event.data['number']} after {self.next_number - 1}")
        before = self._labels.items_before(event.data.get("of_items"))
        draw = CheckDraw.from_event_data(event.data, before, event.person, event.at)
        self._release()
        if self._checks and self._checks[-1].learned == answers:
            # A list that is the same is kept once, however many checks follow each other.
            answers = self._checks[-1].learned
        check = _StartedCheck(draw, answers, self._labels)
        self._request(check, check.members)
        self._checks.append(check)
        self._holding = check

    def _request(self, check: _StartedCheck, items: frozenset[int]) -> None:
        """Request items for a check from now on. Reservations of people who were asked before are removed."""
        for item in self._labels.open_among(check.items).tolist():
            if item in items:
                self._assigned.drawn.discard(item)
                self._assigned.release(item)

    def abort(self, number: int) -> None:
        """Abort a check, and release its answers."""
        check = next(each for each in self._checks if each.draw.number == number)
        if self._holding is check:
            self._release()
        check.aborted = True

    def answer_changed(self, item: int) -> None:
        """Release withheld answers after an event outside a complete check. Undoing counts as an event."""
        for started in self._checks:
            if not started.aborted:
                before = started.members
                started.follow_answer(item)
                if started.members != before and started is self._holding:
                    self._request(started, started.members - before)
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

    def refresh(self) -> None:
        """Read all answers again, after the labels have their new names."""
        for check in self._checks:
            if not check.aborted:
                check.refresh()

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
        return set(check.items[:first].tolist()) - check.draw.before.skipped

    def _view(self, check: _StartedCheck) -> ProjectCheck:
        draw, labels, items = check.draw, self._labels.by_item, tuple(check.items.tolist())
        answers = {item: check.label_then(item, labels[item]) for item in items if item in labels}
        if draw.terms is not None:
            # The label of somebody who saw a prediction is no evidence; it counts as wrong.
            answers |= dict.fromkeys(self._labels.informed.intersection(answers))
        first = {item: label for item, label in check.first.items() if item in answers and label != answers[item]}
        record = Check(
            items,
            draw.pool,
            draw.spends_as,
            draw.alpha,
            {item: label for item, label in answers.items() if label is not None},
            frozenset(item for item, label in answers.items() if label is None),
            check.aborted,
            draw.terms,
            first,
        )
        before = {item: check.label_then(item, labels.get(item)) for item in draw.before.labelled}
        present = {item: label for item, label in before.items() if label is not None}
        newest = check is self._checks[-1]
        return ProjectCheck(draw, record, present, newest, check.classes_since, check.present_names)

    def _is_open(self, check: _StartedCheck) -> bool:
        return not check.aborted and len(self._labels.open_among(check.items)) > 0
