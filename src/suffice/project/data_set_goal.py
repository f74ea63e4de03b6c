"""The goal of a project about all final labels: what is guaranteed, what is missing, and the final labels."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.checks.data_set import DataSetGuarantee, FinalGuarantee
from suffice.checks.random_check import is_wrong
from suffice.errors import SufficeError
from suffice.numerics import Floats
from suffice.presentation.given_words import given_column_sentence
from suffice.presentation.goal_words import missing_sentence, reached_figure, reached_sentences
from suffice.presentation.guarantee_words import errors_of_people_words
from suffice.project.events import moment
from suffice.project.learning_status import Predictions
from suffice.project.opinions import annotator_error_seen
from suffice.project.project_check import CheckDraw, ProjectCheck
from suffice.project.settings import Settings
from suffice.project.state import ProjectState
from suffice.session.finish import MODEL, PERSON, FinalLabels, joined_labels, proven_data_set, unchecked_data_set
from suffice.session.goals import Goal


@dataclass(frozen=True, eq=False)
class ReachedGoal:
    """What is guaranteed about all final labels of a project.

    Attributes:
        guarantee: The statement.
        check: The check that proves it; None if no check was necessary.
        added: Number of rows that were added since the check started; they are not covered.
        column: The column of the predictions, if these were made elsewhere; otherwise None.
        seen: The share of wrong labels of one person that the opinions of several people show; None if unknown.
    """

    guarantee: FinalGuarantee
    check: ProjectCheck | None = None
    added: int = 0
    column: str | None = None
    seen: float | None = None

    def sentences(self) -> list[str]:
        """The statement, what it does not cover, and its evidence."""
        return reached_sentences(self.values())

    def values(self) -> dict[str, Any]:
        """The statement as JSON values: those of the guarantee, and what it covers."""
        check = self.check
        return {
            **self.guarantee.to_dict(),
            "evidence": self._evidence,
            "errors_of_people": errors_of_people_words(self.guarantee.to_dict(), seen=self.seen, option=True),
            "check": None if check is None else check.number,
            "at": None if check is None else moment(check.draw.at),
            "classes_since": "same" if check is None else check.classes_since,
            "added": self.added,
        }

    @property
    def _evidence(self) -> str:
        """The check behind the statement, and where the predictions come from."""
        evidence = self.guarantee.evidence
        if self.column is None or not self.guarantee.predicted:
            return evidence
        return f"{evidence} {given_column_sentence(self.column)}"

    def as_dict(self) -> dict[str, Any]:
        """The same with sentences, and as a figure with a note."""
        values = self.values()
        figure, note = reached_figure(values)
        return {**values, "sentences": reached_sentences(values), "figure": figure, "figure_note": note}


@dataclass(frozen=True, eq=False)
class ProjectLabels(FinalLabels):
    """All labels of a project, in the order of its items.

    Attributes:
        person: Who gave each label; empty for predictions, and without a label.
        at: When, in UTC; empty as above.
        reached: What is guaranteed about them, and by which check. Rows that were added since have a label only if
            somebody gave one, and are not covered.
    """

    person: list[str]
    at: list[str]
    reached: ReachedGoal

    def __str__(self) -> str:
        return " ".join(self.reached.sentences())

    def to_frame(self) -> Any:
        """The labels as a DataFrame with the columns ``label``, ``source``, ``probability``, ``person`` and ``at``."""
        return super().to_frame().assign(person=self.person, at=self.at)


def reached_goal(state: ProjectState, settings: Settings) -> ReachedGoal | None:
    """What is guaranteed about all final labels; None if the project has no such goal, or it is not reached.

    The newest check that has proven the goal counts, with the answers that count now. Labels that people gave since
    replace its predictions. Without a check, people must have labelled all items but the number that may be wrong.

    Args:
        state: The state of the project.
        settings: Settings of the project.
    """
    reached = _reached(state, settings)
    seen = None if reached is None else annotator_error_seen(state, settings)
    return reached if reached is None or seen is None else replace(reached, seen=seen["share"])


def _reached(state: ProjectState, settings: Settings) -> ReachedGoal | None:
    """The same without what the opinions of several people show."""
    goal = settings.goal
    if goal is None:
        return None
    check = state.goal_proof(goal, settings.tolerance)
    found = None if check is None or _voided(state, check) else _proven(state, check, goal)
    found = None if found is None or not found.guarantee.reached else found
    if found is None or found.added:
        # If people have labelled nearly all rows, a statement without a check covers the new ones too.
        counted: dict[str, Any] = {"by_people": state.n_labelled, "left_out": state.n_skipped}
        counted["found"] = found_items(state, goal)
        unchecked = unchecked_data_set(goal, state.left, **counted, tolerance=settings.tolerance)
        if unchecked is not None and state.n_labelled:
            return ReachedGoal(unchecked, column=_given_column(settings))
    return None if found is None else replace(found, column=_given_column(settings))


def _given_column(settings: Settings) -> str | None:
    """The column of predictions that were made elsewhere, or None."""
    return None if settings.checked is None else settings.checked.columns[0]


def found_items(state: ProjectState, goal: Goal, size: int | None = None) -> int | None:
    """Number of items of the class of a screening that people have found; None if the goal is another one.

    Args:
        state: The state of the project.
        goal: The goal.
        size: Number of the first items that count; all if left out.
    """
    if goal.class_name is None:
        return None
    answers = state.labels.by_item.items()
    return sum(bool(label == goal.class_name) for item, label in answers if size is None or item < size)


def missing_for_goal(state: ProjectState, settings: Settings) -> str:
    """What is missing for the goal, in a sentence; empty if it is reached.

    Args:
        state: The state of the project.
        settings: Settings of the project.
    """
    goal = settings.goal
    if goal is None:
        return missing_sentence({"reason": "no goal"})
    if reached_goal(state, settings) is not None:
        return ""
    newest = state.newest_check()
    if newest is not None and newest.draw.asked.of == "all" and newest.state in ("open", "incomplete"):
        return missing_sentence({"reason": newest.state, "pending": len(newest.record.pending)})
    check = state.goal_proof(goal, settings.tolerance)
    if check is not None and (goal.class_name is not None or _voided(state, check)):
        reason = _voided(state, check) or "corrected"
        given_up = newest is not None and newest.number > check.number and newest.state == "aborted"
        about = {"labels": len(_taken_back(state, check.draw)), "given_up": given_up}
        return missing_sentence({"reason": reason, **about})
    proven = proven_short(state, settings)
    if proven is not None:
        return missing_sentence({"reason": "short", **proven.to_dict()})
    unchecked = {"left": state.left, "at_most": goal.at_most, "class_name": goal.class_name}
    return missing_sentence({"reason": "unchecked", **unchecked})


def proven_short(state: ProjectState, settings: Settings) -> FinalGuarantee | None:
    """What a check has proven about all final labels, if it is less than the goal; None otherwise.

    Rows that nobody could label have left the data set since the check started. Then the number of wrong labels that
    the check allows is more than the goal allows of the others.

    Args:
        state: The state of the project.
        settings: Settings of the project.
    """
    goal = settings.goal
    if goal is None or goal.class_name is not None or reached_goal(state, settings) is not None:
        return None
    check = state.goal_proof(goal, settings.tolerance)
    return None if check is None or _voided(state, check) else _proven(state, check, goal).guarantee


def _voided(state: ProjectState, check: ProjectCheck) -> str:
    """Why a check no longer covers all labels; empty if it does."""
    if check.classes_since == "changed" or _class_merged(check):
        return "classes"
    return "taken back" if len(_taken_back(state, check.draw)) else ""


def _class_merged(check: ProjectCheck) -> bool:
    """Whether the class of a screening was merged with another since its check started."""
    name, names = check.draw.asked.relevant, check.present_names
    return name is not None and any(names[other] == names[name] for other in names if other != name)


def _taken_back(state: ProjectState, draw: CheckDraw) -> list[int]:
    """Items that had a label or were skipped when a check started, and are open now: nothing covers them."""
    answered = np.setdiff1d(np.arange(draw.before.size, dtype=np.intp), draw.covered, assume_unique=True)
    found: list[int] = state.labels.open_among(answered).tolist()
    return found


def _proven(state: ProjectState, check: ProjectCheck, goal: Goal) -> ReachedGoal:
    """What a check guarantees about the labels of the items that existed when it started; it may be too little now."""
    assert check.guarantee is not None
    size = check.draw.before.size
    labels = [label for item, label in state.labels.by_item.items() if item < size]
    left_out = sum(label is None for label in labels)
    rows, people = size - left_out, len(labels) - left_out
    counted: dict[str, Any] = {"by_people": people, "left_out": left_out, "found": found_items(state, goal, size)}
    # The class of a screening may have another name now.
    asked = replace(check.draw.asked, class_name=goal.class_name)
    made = proven_data_set(asked, check.guarantee, goal=goal, rows=rows, **counted)
    if isinstance(made, DataSetGuarantee) and not made.reached:
        made = made.after_corrections(_found_later(state, check))
    return ReachedGoal(made, check, state.labels.size - size)


def _found_later(state: ProjectState, check: ProjectCheck) -> int:
    """Number of wrong predictions that people have corrected among the items that a check left unlabelled."""
    draw, labels = check.draw, state.labels
    informed, counted = labels.informed, list(check.record.items)
    known = {item: label for item, label in labels.by_item.items() if label is not None and item not in informed}
    later = np.setdiff1d(np.intersect1d(np.array(list(known), dtype=np.intp), draw.covered), counted).tolist()
    # After a merge of classes, a label is wrong only if it was wrong before.
    names, predicted = check.present_names, draw.prediction_of(later)
    return sum(
        is_wrong(known[item], names.get(value, value) if names else value, draw.asked.tolerance)
        for item, value in predicted.items()
    )


def needs_present_model(state: ProjectState, settings: Settings) -> bool:
    """Whether the final labels have predictions of the current model, because no check was necessary.

    Args:
        state: The state of the project.
        settings: Settings of the project.
    """
    reached = reached_goal(state, settings)
    return reached is not None and reached.check is None and state.left > 0


def joined_final_labels(state: ProjectState, settings: Settings, predictions: Predictions | None) -> ProjectLabels:
    """All labels of a project.

    Args:
        state: The state of the project.
        settings: Settings of the project.
        predictions: Predictions of the current model for all items, if :func:`needs_present_model` says so.

    Raises:
        SufficeError: The goal is not reached; the message says what is missing.
    """
    reached = reached_goal(state, settings)
    if reached is None:
        raise SufficeError(missing_for_goal(state, settings))
    answers, size = state.labels.by_item, state.labels.size
    people = {item: label for item, label in answers.items() if label is not None}
    left_out = [item for item, label in answers.items() if label is None]
    check = reached.check
    if check is None:
        items, values, probable = _predicted_rest(state, predictions)
        answered = frozenset[int]()
    else:
        items, values, probable = check.draw.delivered()
        answered = frozenset(check.record.labels)
        if check.present_names:
            values = np.array([check.present_names[str(name)] for name in values.tolist()], dtype=object)
    joined = joined_labels(size, (items, values.tolist(), probable), people, answered, left_out, reached.guarantee)
    person, at = _authors(state)
    return ProjectLabels(joined.labels, joined.source, joined.probability, joined.guarantee, person, at, reached)


@dataclass(frozen=True, eq=False)
class PresentLabels:
    """The current label of each item of a project, of which nothing is guaranteed; see :class:`ProjectLabels`.

    Attributes:
        labels: The label of each item; None for an item without one.
        source: ``"person"`` or ``"model"``; empty without a label.
        probability: Probability of each prediction, by the model; NaN for labels of people, and if it is not known.
        person: Who gave each label; empty for predictions, and without a label.
        at: When, in UTC; empty as above.
    """

    labels: list[Any]
    source: list[str]
    probability: Floats
    person: list[str]
    at: list[str]


def present_labels(state: ProjectState, predictions: Predictions | None) -> PresentLabels:
    """The labels of people, and for the items that nobody has labelled or skipped the given predictions.

    Args:
        state: The state of the project.
        predictions: Predictions for all items; None if there are none.
    """
    size, answers = state.labels.size, state.labels.by_item
    labels: list[Any] = [None] * size
    source, probability = [""] * size, np.full(size, np.nan)
    if predictions is not None:
        columns = (column.tolist() for column in _predicted_rest(state, predictions))
        for item, label, share in zip(*columns, strict=True):
            labels[item], source[item], probability[item] = label, MODEL, share
    for item, label in answers.items():
        if label is not None:
            labels[item], source[item] = label, PERSON
    return PresentLabels(labels, source, probability, *_authors(state))


def _predicted_rest(
    state: ProjectState, predictions: Predictions | None
) -> tuple[NDArray[np.intp], NDArray[Any], Floats]:
    """The items without an answer, their predictions, and the probabilities of these."""
    answers = state.labels.by_item
    items = np.array([item for item in range(state.labels.size) if item not in answers], dtype=np.intp)
    if not len(items):
        return items, np.zeros(0), np.zeros(0)
    assert predictions is not None
    known = predictions.probabilities
    probable = np.full(len(items), np.nan) if known is None else known[items].max(axis=1)
    return items, predictions.labels[items], probable


def _authors(state: ProjectState) -> tuple[list[str], list[str]]:
    """Who labelled each item, and when; empty for others."""
    person, at = [""] * state.labels.size, [""] * state.labels.size
    for each in state.labelled():
        person[each.item], at[each.item] = each.person, moment(each.at)
    return person, at
