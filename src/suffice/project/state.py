"""State of a labelling project. It is a function of the events in the journal."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from suffice.project.accounts import ACCOUNT_KINDS, Account, accounts_after
from suffice.project.assigned_items import AssignedItems, Lease
from suffice.project.check_history import CheckHistory
from suffice.project.counted_labels import Answer, CountedLabels
from suffice.project.events import ACTS, ClassChange, Event, EventKind, Label
from suffice.project.item_acts import ItemActs, Opinion
from suffice.project.prediction_log import PredictedLabel, PredictionLog
from suffice.project.project_check import ProjectCheck, ProjectGuarantee
from suffice.session.goals import Goal
from suffice.session.standing_stop import Cause, StopWithdrawal

__all__ = [
    "Advice",
    "Answer",
    "LabelledItem",
    "Lease",
    "ModelComparison",
    "Opinion",
    "Person",
    "PredictedLabel",
    "ProjectState",
    "SkippedItem",
]

# Events about one item.
_ITEM_KINDS: Final = ACTS | {EventKind.undone, EventKind.asked, EventKind.confirmed, EventKind.prediction_shown}
# Events after which the model learns all labels again.
_CHANGES: Final[Mapping[EventKind, Cause]] = {
    EventKind.corrected: "corrected",
    EventKind.undone: "removed",
    EventKind.items_added: "items",
    EventKind.model_changed: "switched",
    EventKind.classes_changed: "settings",
    EventKind.settings_changed: "settings",
}


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
    """A person: number of items whose label that counts is by them, and time of the last activity."""

    labels: int
    last: float


class Advice(NamedTuple):
    """Advice to stop."""

    n_labelled: int
    reason: str
    at: float


class ModelComparison(NamedTuple):
    """A comparison of models on the labels so far.

    Attributes:
        n_labelled: Number of labels, from the first one on.
        model: Name of the model that is used from then on.
        errors: The estimated share of wrong predictions of each model, by name.
    """

    n_labelled: int
    model: str
    errors: Mapping[str, float]


def _is_unsure(act: Event) -> bool:
    return bool(act.data.get("unsure"))


class ProjectState:
    """State of a project after its events.

    The label that counts is the newest correction of an item, or its first label if there is no correction. Undone
    events are ignored. An item keeps its place in the order of labelling when its label is corrected. Whether an item
    was drawn at random is recorded when it is requested as a new item, and does not depend on the answer. If the label
    that counts was given by a person who saw a prediction for the item, the learner does not treat it as random: the
    answer may be biased towards the prediction, and the estimated error would be too small.

    When the classes change, all labels have their new names from then on; a name can be used again later.

    Args:
        size: Number of items.

    Attributes:
        acts: Labels, skips and corrections that were not undone.
        labels: The label that counts for each item.
        assigned: Items that people were asked for.
        predictions: Imported predictions, and who has seen a prediction.
        checks: The checks.
        seq: Number of the last event.
        last: The last event; None before the first.
        messages: Events by the name that the sender chose for the message.
        advice: The advice to stop, while it is valid.
        withdrawn: The last advice to stop that was withdrawn, until there is another one; or None.
        model: Name of the current model, or None if the model was never changed.
        model_by_person: Whether a person has chosen the current model; False if it was never changed.
        comparison: The newest comparison of models, or None.
        made: The event that made the project; None before it was read.
        features_missing: Whether the features of the items are not computed yet.
        changes: Settings that were changed since, with their present values. It is replaced, never modified.
        changed_by: The events that changed settings, classes or the model, in order, without the event that is written
            with the features of the items. Nothing is removed.
        revision: Number of the last event that changed settings, the model or accounts; 0 if there was none.
        accounts: The accounts, by name, in the order in which they were made. It is replaced, never modified.
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
        self.acts, self.labels, self.assigned = ItemActs(), CountedLabels(size), AssignedItems()
        self.predictions = PredictionLog()
        self.checks = CheckHistory(self.labels, self.assigned)
        self.seq = self.revision = 0
        self.last: Event | None = None
        self.messages: dict[str, Event] = {}
        self.advice: Advice | None = None
        self.withdrawn: StopWithdrawal | None = None
        # What has changed since the advice to stop, besides new labels.
        self._changed: Cause = "model"
        self.model: str | None = None
        self.model_by_person = False
        self.comparison: ModelComparison | None = None
        self.made: Event | None = None
        self.features_missing = False
        self.changes: Mapping[str, Any] = {}
        self.changed_by: list[Event] = []
        self.accounts: Mapping[str, Account] = {}
        self.n_items_made: int | None = None
        # Time of the last event of each person.
        self._last_at: dict[str, float] = {}
        # Cache of the newest guarantee, with the number of the last event and the name of the model.
        self._newest_guarantee: tuple[int, str, ProjectGuarantee | None] | None = None
        # Cache of the check that has proven a goal, with the number of the last event, the goal and the tolerance.
        self._goal_proof: tuple[int, Goal, float | None, ProjectCheck | None] | None = None
        # Cache of the newest check, with the number of the last event.
        self._newest_check: tuple[int, ProjectCheck | None] | None = None

    def apply(self, event: Event) -> None:
        """Apply the next event."""
        self._changed = _CHANGES.get(event.kind, self._changed)
        if event.kind in _ITEM_KINDS:
            self._apply_to_item(event)
        else:
            self._apply_to_project(event)
        # At the end, so that an event that raised an error is not skipped at the next attempt.
        self.seq, self.last = event.seq, event
        if event.request is not None:
            self.messages[event.request] = event
        if event.person:
            self._last_at[event.person] = event.at

    def _apply_to_item(self, event: Event) -> None:
        kind, item = event.kind, event.item
        assert item is not None
        if kind is EventKind.asked:
            self.assigned.assign(event)
        elif kind is EventKind.confirmed:
            self.labels.confirm(item, event.data["label"], event.person)
        elif kind is EventKind.prediction_shown:
            self.predictions.add_shown(item, event.person)
        else:
            if kind is EventKind.undone:
                self.acts.undo(event)
                if "until" in event.data:
                    self.assigned.assign_again(event)
            else:
                self.acts.add(event)
                # Another person who sees the item may still answer, but is not asked again.
                self.assigned.release(item)
            self.labels.update(item, self.acts.deciding(item), skipped=bool(self.acts.of_item(item)))
            self.checks.answer_changed(item)

    def _apply_to_project(self, event: Event) -> None:
        kind, data = event.kind, event.data
        if kind is EventKind.made:
            self.made, self.features_missing = event, data.get("features") is not None
        elif kind is EventKind.advised:
            self.advice = Advice(int(data["n_labelled"]), str(data["reason"]), event.at)
            self.withdrawn, self._changed = None, "model"
        elif kind is EventKind.withdrawn:
            self.withdrawn = self.withdrawal(int(data["n_labelled"]))
            self.advice = None
        elif kind is EventKind.check_started:
            self.checks.start(event, self.answers())
        elif kind is EventKind.check_aborted:
            self.checks.abort(int(data["number"]))
        elif kind is EventKind.items_added:
            if self.n_items_made is None:
                self.n_items_made = int(data["first"])
            self.labels.extend(int(data["first"]) + int(data["count"]))
        elif kind is EventKind.predictions_imported:
            self.predictions.add_imported(data)
        elif kind is EventKind.models_compared:
            self.comparison = ModelComparison(int(data["n_labelled"]), str(data["model"]), dict(data["errors"]))
        else:
            self._change_settings(event)

    def _change_settings(self, event: Event) -> None:
        if event.kind is EventKind.model_changed:
            self.model, self.model_by_person = str(event.data["model"]), bool(event.person)
        elif event.kind is EventKind.classes_changed:
            change = ClassChange.from_event_data(event.data)
            # The checks first, because they read the labels before the change.
            for part in (self.checks, self.labels, self.acts, self.predictions):
                part.change_classes(change)
            self.checks.refresh()
            # Settings that name classes.
            named = {key: event.data[key] for key in ("descriptions", "positive", "may_miss") if key in event.data}
            self.changes = {**self.changes, "classes": change.after, **named}
        elif event.kind is EventKind.settings_changed:
            self.changes = {**self.changes, **event.data["settings"]}
            # Written once, by the program, together with the features.
            self.features_missing = self.features_missing and "features" not in event.data
        elif event.kind in ACCOUNT_KINDS:
            self.accounts = accounts_after(self.accounts, event)
        else:
            return
        if event.kind not in ACCOUNT_KINDS and "features" not in event.data:
            self.changed_by.append(event)
        self.revision = event.seq

    def withdrawal(self, n_labelled: int) -> StopWithdrawal | None:
        """The advice to stop as withdrawn, or the last one that was; None if there is neither.

        Args:
            n_labelled: Number of labels at which the present advice is withdrawn.
        """
        if self.advice is None:
            return self.withdrawn
        return StopWithdrawal(self.advice.n_labelled, n_labelled, self._changed)

    @property
    def n_labelled(self) -> int:
        """Items with a label."""
        return self.labels.n_labelled

    @property
    def n_skipped(self) -> int:
        """Items that were skipped."""
        return self.labels.n_skipped

    @property
    def left(self) -> int:
        """Items neither labelled nor skipped."""
        return self.labels.left

    @property
    def people(self) -> dict[str, Person]:
        """Everybody who did something, by name."""
        return {name: Person(self.acts.n_counting_of(name), last) for name, last in self._last_at.items()}

    def counts(self) -> dict[Label, int]:
        """Number of items of each label."""
        return self.labels.counts()

    def label_of(self, item: int) -> Label | None:
        """The label that counts, or None."""
        return self.labels.label_of(item)

    def random_items(self) -> set[int]:
        """Items that were drawn at random: when they were last asked for as new items, or by a check."""
        return self.assigned.drawn | self.checks.random_items()

    def answers(self) -> list[Answer]:
        """All labels and skips, in order."""
        random = self.random_items() - self.labels.informed
        return [Answer(item, label, item in random) for item, label in self.labels.by_item.items()]

    def learned(self) -> list[Answer]:
        """Answers for the model, in order: all, or those from before an open check."""
        before_check = self.checks.learned
        return self.answers() if before_check is None else before_check

    def checked(self) -> list[Answer]:
        """Answers that a complete check withholds from the model, in order; empty while a check is open.

        Only the items of the check count as drawn at random.
        """
        before_check = self.checks.learned
        if before_check is None or self.checks.open_check is not None:
            return []
        labelled = {answer.item for answer in before_check if answer.label is not None}
        skipped = {answer.item for answer in before_check if answer.label is None}
        random = self.checks.random_items() - self.labels.informed
        return [
            Answer(item, label, item in random)
            for item, label in self.labels.by_item.items()
            if item not in labelled and (label is not None or item not in skipped)
        ]

    @property
    def n_decided(self) -> int:
        """Labels that the decision is about: those that the model learns now, and those of a complete check."""
        return self.n_learned + sum(answer.label is not None for answer in self.checked())

    @property
    def n_learned(self) -> int:
        """Labels that the model learns now."""
        before_check = self.checks.learned
        return self.n_labelled if before_check is None else sum(answer.label is not None for answer in before_check)

    def labelled(self, *, several_acts: bool = False, newest: int | None = None) -> list[LabelledItem]:
        """All items with a label, in the order of labelling.

        Args:
            several_acts: Return only items with more than one label, skip or correction.
            newest: Return only so many, the last in the order.
        """
        items = [item for item, label in self.labels.by_item.items() if label is not None]
        if several_acts:
            items = [item for item in items if len(self.acts.of_item(item)) > 1]
        if newest is not None:
            items = items[-newest:]
        deciding = [(item, act) for item in items if (act := self.acts.deciding(item)) is not None]
        random = self.random_items() if items else set()
        return [
            LabelledItem(
                item,
                act.data["label"],
                act.person,
                act.at,
                act.kind is EventKind.corrected,
                self.acts.opinions(item),
                item in random,
                item in self.labels.informed,
                self.labels.is_confirmed(item),
            )
            for item, act in deciding
        ]

    def skipped(self) -> list[SkippedItem]:
        """All skipped items without a label, in order. The person is the first who was unsure, or who skipped."""
        skips = ((item, self.acts.of_item(item)) for item, label in self.labels.by_item.items() if label is None)
        deciding = ((item, next((act for act in acts if _is_unsure(act)), acts[0])) for item, acts in skips)
        return [
            SkippedItem(item, act.person, act.at, _is_unsure(act), str(act.data.get("reason", "")))
            for item, act in deciding
        ]

    @property
    def n_checks(self) -> int:
        """Checks so far, aborted ones included."""
        return len(self.checks)

    def newest_check(self) -> ProjectCheck | None:
        """The newest check with the answers that count now, or None."""
        if self._newest_check is None or self._newest_check[0] != self.seq:
            self._newest_check = self.seq, self.checks.newest()
        return self._newest_check[1]

    def goal_proof(self, goal: Goal, tolerance: float | None) -> ProjectCheck | None:
        """The newest check that has proven a goal about all final labels, or None.

        Args:
            goal: The goal.
            tolerance: For numbers: the largest error that is not wrong.
        """
        if self._goal_proof is None or self._goal_proof[:3] != (self.seq, goal, tolerance):
            self._goal_proof = self.seq, goal, tolerance, self.checks.goal_proof(goal, tolerance)
        return self._goal_proof[3]

    def guarantee(self, model: str) -> ProjectGuarantee | None:
        """The newest guarantee, or None.

        Args:
            model: Name of the model that learns now.
        """
        if self._newest_guarantee is None or self._newest_guarantee[:2] != (self.seq, model):
            self._newest_guarantee = self.seq, model, self.checks.newest_guarantee(model, self.learned)
        return self._newest_guarantee[2]
