"""Answers of people: labels, skips, corrections, confirmations, and what they undo."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from suffice.checks.prediction_check import WRONG
from suffice.errors import InvalidValueError
from suffice.presentation.item_words import outside_range_sentence
from suffice.project.accounts import NotAllowedError
from suffice.project.events import (
    Draft,
    Event,
    EventKind,
    Label,
    checked_label,
    checked_person,
    checked_reason,
    checked_request,
)
from suffice.project.journal import ConflictError, ProjectJournal, WriteReceipt
from suffice.project.state import PredictedLabel, ProjectState

#: Largest number of characters of a correction.
LONGEST_CORRECTION: Final = 20_000


class OutsideRangeError(InvalidValueError):
    """A number is outside of the plausible range of the project, and was not confirmed."""


class LabelWriter:
    """Writes the answers of people to the journal.

    Methods with an argument ``request`` write a message once: sent again under the same name, it is not written again.

    Args:
        journal: Journal of the project.
    """

    def __init__(self, journal: ProjectJournal) -> None:
        self._journal = journal

    def label(  # noqa: PLR0913 - all but the first two by keyword
        self,
        position: int,
        label: Label,
        *,
        person: str,
        request: str | None = None,
        saw_prediction: bool = False,
        correction: str = "",
        outside_range: bool = False,
    ) -> WriteReceipt:
        """Write the label that a person gives an item; see :meth:`suffice.project.Project.label`."""
        data: dict[str, Any] = {"label": label} | ({"saw_prediction": True} if saw_prediction else {})
        data |= self._correction(label, correction)

        def check(state: ProjectState, item: int, name: str) -> Event | None:
            self._require_plausible(label, outside_range)
            _note_prediction(state, item, name, data)
            given = state.acts.label_by(item, name)
            if given is not None and given.data["label"] != checked_label(self._journal.settings, label):
                raise ConflictError(
                    f"{name} has labelled this item as {given.data['label']} already; correct it to change that"
                )
            return given

        return self._write_answer(Draft(EventKind.labelled, person, position, data, request), check)

    def skip(
        self, position: int, *, person: str, reason: str = "", request: str | None = None, unsure: bool = False
    ) -> WriteReceipt:
        """Write that an item cannot be labelled, or that a person does not know its label.

        See :meth:`suffice.project.Project.skip` and :meth:`suffice.project.Project.unsure`.
        """
        why = checked_reason(reason)
        data: dict[str, Any] = ({"unsure": True} if unsure else {}) | ({"reason": why} if why else {})

        def check(state: ProjectState, item: int, name: str) -> Event | None:
            if state.acts.label_by(item, name) is not None:
                raise ConflictError(f"{name} has labelled this item; undo or correct that, it cannot be skipped")
            return state.acts.skip_by(item, name)

        return self._write_answer(Draft(EventKind.skipped, person, position, data, request), check)

    def correct(  # noqa: PLR0913 - all but the first two by keyword
        self,
        position: int,
        label: Label,
        *,
        person: str,
        request: str | None = None,
        saw_prediction: bool = False,
        only_own: bool = False,
        correction: str = "",
        outside_range: bool = False,
    ) -> WriteReceipt:
        """Change the label that counts; see :meth:`suffice.project.Project.correct`."""
        data: dict[str, Any] = {"label": label} | ({"saw_prediction": True} if saw_prediction else {})
        data |= self._correction(label, correction)

        def check(state: ProjectState, item: int, name: str) -> Event | None:
            self._require_plausible(label, outside_range)
            _note_prediction(state, item, name, data)
            if state.label_of(item) is None:
                raise ConflictError("this item has no label to correct; label it")
            if only_own and not state.acts.is_only_of(item, name):
                raise NotAllowedError(
                    "somebody else has labelled this item too; to correct that, the role review is needed"
                )
            return None

        return self._write_answer(Draft(EventKind.corrected, person, position, data, request), check)

    def confirm(self, position: int, *, person: str, request: str | None = None) -> WriteReceipt:
        """Write that the current label is correct; see :meth:`suffice.project.Project.confirm`."""
        item, name = self._journal.position(position), checked_person(person)
        message = Draft(EventKind.confirmed, name, item, request=checked_request(request))

        def decide(state: ProjectState, _: float) -> Draft:
            label = state.label_of(item)
            if label is None:
                raise ConflictError("this item has no label to confirm; label it")
            return Draft(EventKind.confirmed, name, item, {"label": label}, message.request)

        return self._journal.write_once(message, decide)

    def undo(self, *, person: str, request: str | None = None) -> WriteReceipt:
        """Undo the newest label, skip or correction of a person; see :meth:`suffice.project.Project.undo`."""
        message = Draft(EventKind.undone, checked_person(person), request=checked_request(request))

        def decide(state: ProjectState, now: float) -> Draft:
            act = state.acts.newest_of(message.person)
            if act is None:
                raise ConflictError(f"there is nothing of {message.person} to undo")
            _require_not_excluded(state, act.item)
            data: dict[str, float] = {"of": act.seq}
            if state.acts.can_answer_after_undo(act):
                data["until"] = now + self._journal.settings.lease
            return Draft(EventKind.undone, message.person, act.item, data, message.request)

        return self._journal.write_once(message, decide)

    def take_back(self, position: int, *, person: str) -> int:
        """Undo all answers of a person for an item; see :meth:`suffice.project.Project.take_back`."""
        item, name = self._journal.position(position), checked_person(person)

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], None]:
            acts = [act for act in state.acts.of_item(item) if act.person == name]
            if acts:
                _require_not_excluded(state, item)
            return [Draft(EventKind.undone, name, item, {"of": act.seq}) for act in reversed(acts)], None

        return len(self._journal.write(decide)[0])

    def show_prediction(self, position: int, *, person: str) -> PredictedLabel | None:
        """Write that a person is shown a prediction; see :meth:`suffice.project.Project.show_prediction`."""
        item, name = self._journal.position(position), checked_person(person)

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], PredictedLabel | None]:
            if state.checks.includes(item):
                raise ConflictError(
                    "this item belongs to a check, so no prediction is shown for it: the label must not depend on it"
                )
            shown = state.predictions.was_shown(item, name)
            drafts = [] if shown else [Draft(EventKind.prediction_shown, name, item)]
            return drafts, state.predictions.imported(item)

        return self._journal.write(decide)[1]

    def _write_answer(self, draft: Draft, check: Callable[[ProjectState, int, str], Event | None]) -> WriteReceipt:
        """Write the answer of a person for an item, unless it was written before.

        Args:
            draft: The answer as it was received.
            check: Raises an error if the state does not allow the answer, may add something to its data, and returns an
                existing event that makes it unnecessary. Its arguments are the state, the item and the person.
        """
        item, name = self._journal.position(draft.item), checked_person(draft.person)
        sent = checked_request(draft.request)

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], Event | None]:
            earlier = None if sent is None else state.messages.get(sent)
            # The earlier event may contain a class that was renamed since.
            same = earlier is not None and earlier.data.items() >= draft.data.items()
            message = Draft(draft.kind, name, item, draft.data if same else self._stored_data(draft.data), sent)
            existing = self._journal.earlier_event(state, message) or check(state, item, name)
            if existing is not None:
                return [], existing
            # ``check`` may have added something to the data.
            return [Draft(draft.kind, name, item, self._stored_data(draft.data), sent)], None

        events, existing = self._journal.write(decide)
        event = existing or events[0]
        return WriteReceipt(event.seq, event.item, existing is not None)

    def _require_plausible(self, label: Label, confirmed: bool) -> None:
        """Refuse a number outside of the plausible range of the project, unless the person has confirmed it."""
        settings = self._journal.settings
        value = checked_label(settings, label)
        if isinstance(value, float) and not confirmed and settings.outside_range(value):
            raise OutsideRangeError(outside_range_sentence(value, settings.lowest, settings.highest, settings.unit))

    def _correction(self, label: Label, correction: str) -> dict[str, str]:
        """What is right in place of a wrong prediction, as data of an event.

        Raises:
            InvalidValueError: It is not for this label, too long, or missing.
        """
        settings, text = self._journal.settings, correction.strip()
        verdicts = settings.checked is not None and settings.checked.answer == "verdict"
        if text and (not verdicts or label != WRONG):
            raise InvalidValueError("a correction is for a prediction that is wrong; leave it out")
        if len(text) > LONGEST_CORRECTION:
            raise InvalidValueError(f"a correction must have at most {LONGEST_CORRECTION:,} characters")
        if verdicts and label == WRONG and not text and settings.goal is not None:
            raise InvalidValueError(
                "the prediction is wrong, so its correction is needed: the final file has a label for every row; skip "
                "the row if nobody knows what is right"
            )
        return {"correction": text} if text else {}

    def _stored_data(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Event data of an answer, with its label in stored form."""
        return {**data, "label": checked_label(self._journal.settings, data["label"])} if "label" in data else data


def _require_not_excluded(state: ProjectState, item: int | None) -> None:
    """Refuse to withdraw an answer of an open check that excludes items without a label.

    Otherwise an answer that disagrees with the prediction could be withdrawn and the item skipped.
    """
    draw = state.checks.open_check
    if draw is not None and draw.asked.unlabelable_as == "excluded" and item in draw.items:
        raise ConflictError(
            "this item belongs to an open check that does not count items without a label, so that its answer "
            "cannot be withdrawn; correct it instead"
        )


def _note_prediction(state: ProjectState, item: int, person: str, data: dict[str, Any]) -> None:
    """Record in the data of a label that the person has seen a prediction; raise an error for an item of a check."""
    if not (data.get("saw_prediction") or state.predictions.was_shown(item, person)):
        return
    if state.checks.includes(item):
        raise ConflictError(
            f"this item belongs to a check, and {person} has seen a prediction for it; somebody who has not seen it "
            "must label it, or skip it: then it counts as wrong"
        )
    data["saw_prediction"] = True
