"""Checks of predictions made elsewhere in a project: start, results, and whether the error has changed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from suffice.checks import Check
from suffice.checks.error_difference import ErrorChange, error_change, fixed_answers
from suffice.checks.made_elsewhere import GivenPredictions
from suffice.checks.prediction_check import CheckDesign, PredictionCheck, PredictionResult
from suffice.errors import InvalidValueError
from suffice.presentation.given_words import change_sentences, check_words, how_to_answer_rows, rows_words
from suffice.project.journal import WriteReceipt
from suffice.project.labelling_project import Project
from suffice.project.prediction_settings import given_predictions
from suffice.project.project_check import ProjectCheck
from suffice.project.state import ProjectState
from suffice.session.goals import TargetOf


def predictions_of_project(project: Project) -> GivenPredictions:
    """The predictions that a project checks.

    Raises:
        InvalidValueError: It has a model of its own.
    """
    settings = project.settings
    if settings.checked is None:
        raise InvalidValueError(
            f"{project.place} trains a model of its own; to check predictions made elsewhere, give their file"
        )
    return given_predictions(settings.checked, settings.classes, np.asarray(project.X))


def start_prediction_check(  # noqa: PLR0913 - all but one by keyword
    project: Project,
    *,
    person: str,
    at_most: float | None = None,
    expected: float | None = None,
    of: TargetOf | None = None,
    size: int | None = None,
    share_of: str | None = None,
    recall_of: str | None = None,
    precision_of: str | None = None,
    accept: str | None = None,
    confidence: float | None = None,
    earlier_checks: int | None = None,
    budget: int | None = None,
    request: str | None = None,
) -> WriteReceipt:
    """Draw a check of predictions made elsewhere.

    A check of rows that were added later has an error probability of its own.

    Args:
        project: The project.
        person: Who starts it.
        at_most: Largest acceptable share of wrong predictions; that of the settings if left out.
        expected: Expected share of wrong predictions, to plan the check; if left out, that of the settings for their
            target, and half of the target otherwise.
        of: What it is a share of; as for :meth:`suffice.project.Project.start_check`.
        size: Number of rows of a check of fixed size; planned if it is needed and left out.
        share_of: Class whose share of the rows is stated.
        recall_of: Class whose recall is guaranteed.
        precision_of: Class whose precision is guaranteed.
        accept: Goal of the accepted part of the predictions.
        confidence: Confidence of all checks of the same rows together; that of the settings if left out.
        earlier_checks: Number of checks of these rows that were started elsewhere; those of the settings if left out.
        budget: Size of a check that has a fixed one, if ``size`` is left out.
        request: A name for this message.

    Raises:
        InvalidValueError: An argument cannot be used; nothing is spent.
        ConflictError: A check is open.
    """
    settings, given = project.settings, predictions_of_project(project)
    assert settings.checked is not None
    with project.lock:
        state = project.state()
        first = first_checked_item(state)
        # Skipped rows are drawn too, and count as wrong if they are skipped again.
        free = np.ones(state.labels.size, dtype=bool)
        free[[item for item, label in state.labels.by_item.items() if label is not None]] = False
        unlabelled = np.flatnonzero(free)
        before = max(
            (check.draw.spends_as for check in state.checks.all() if check.draw.asked.first_item == first), default=0
        )
    common: dict[str, Any] = {"person": person, "confidence": confidence, "request": request}
    if (of or settings.of) == "all":
        others: dict[str, Any] = {"size": size, "share_of": share_of, "recall_of": recall_of}
        others |= {"precision_of": precision_of, "accept": accept, "expected": expected}
        if given_too := [name for name, value in others.items() if value is not None]:
            raise InvalidValueError(
                f"{given_too[0]} is not used in a check for a goal about all labels, which ends by itself; leave it out"
            )
        return project.start_check(at_most=at_most, of="all", earlier_checks=earlier_checks, **common)
    rows = unlabelled[unlabelled >= first]
    if not len(rows):
        raise InvalidValueError("every row has an answer, so there is nothing to check")
    target = settings.at_most if at_most is None else at_most
    if expected is None and target == settings.at_most:
        expected = settings.expected
    sure = 1.0 - project.check_runner.alpha(confidence)
    part = given.part(rows)
    design = CheckDesign(
        at_most=target,
        size=size,
        expected=expected,
        tolerance=settings.tolerance,
        share_of=share_of,
        recall_of=recall_of,
        precision_of=precision_of,
        accept=accept,  # type: ignore[arg-type]
        confidence=sure,
        earlier_checks=before + (earlier_checks or 0),
    )
    if budget is not None and not (design.sequential(part) and target is not None):
        design = replace(design, size=size or min(budget, design.pool(part)))
    design = design.checked(part, answer=settings.checked.answer, classes=settings.classes)
    shared: dict[str, Any] = {"share_of": share_of, "accept": accept, "first_item": first}
    shared["parts"] = design.parts(part)
    if first:
        # Rows that were added later are other items, whose checks are counted apart.
        shared["batch_check"] = before + 1 + (earlier_checks or 0)
        earlier_checks = 0
    tolerance = settings.tolerance
    if design.sequential(given):
        return project.check_runner.start(
            at_most=target,
            expected=expected,
            of="rest",
            tolerance=tolerance,
            earlier_checks=earlier_checks,
            shared=shared,
            **common,
        )
    shared["target"] = design.at_most
    return project.check_runner.start(
        design.size,
        tolerance=tolerance,
        recall_of=recall_of,
        precision_of=precision_of,
        earlier_checks=earlier_checks,
        shared=shared,
        **common,
    )


def first_checked_item(state: ProjectState) -> int:
    """The first item of the next check: of those that were added since the newest check, or of the same as it.

    Args:
        state: State of the project.
    """
    newest = state.newest_check()
    if newest is None:
        return 0
    covered = newest.draw.before.size
    return covered if state.labels.size > covered else newest.draw.asked.first_item


def start_first_check(project: Project, person: str) -> None:
    """Start the check for the target of the settings, if the project checks predictions and has no check yet.

    Args:
        project: Any project.
        person: Who starts it.
    """
    settings = project.settings
    if settings.checked is None or settings.goal is not None or settings.at_most is None or project.checks():
        return
    start_prediction_check(project, person=person)


def check_result(project: Project, check: ProjectCheck) -> PredictionResult:
    """What a check of predictions made elsewhere has shown.

    Args:
        project: The project.
        check: One of its checks.
    """
    settings, draw = project.settings, check.draw
    assert settings.checked is not None
    asked, before = draw.asked, draw.before
    rows = before.unlabelled[before.unlabelled >= asked.first_item]
    given = predictions_of_project(project).part(rows)
    design = CheckDesign(
        at_most=asked.target if asked.at_most is None else asked.at_most,
        size=None if draw.terms is not None else len(draw.items),
        expected=asked.expected,
        tolerance=asked.tolerance,
        share_of=asked.share_of,
        recall_of=asked.class_name if asked.quantity == "recall" else None,
        precision_of=asked.class_name if asked.quantity == "precision" else None,
        accept=asked.accept,  # type: ignore[arg-type]
        confidence=1.0 - draw.alpha,
        earlier_checks=draw.spends_as - 1,
    )
    record = _translated(check.record, rows)
    return PredictionCheck.restored(given, design, record, settings.checked.answer).result


def newest_result(project: Project) -> PredictionResult | None:
    """What the newest check has shown; None before the first check."""
    with project.lock:
        newest = project.state().newest_check()
    return None if newest is None else check_result(project, newest)


def with_result(project: Project, told: dict[str, Any]) -> dict[str, Any]:
    """The status of a project that checks predictions made elsewhere, with the result of its newest check.

    Args:
        project: The project.
        told: The status.
    """
    settings = project.settings
    assert settings.checked is not None
    if settings.goal is not None:
        return told
    found = newest_result(project)
    result = None if found is None else found.to_dict()
    words = check_words(result, project.size)
    change = batch_change(project)
    later = [] if change is None else change["sentences"]
    told = {
        **told,
        "decision": {**told["decision"], **words, "remedy": "", "outlook": [], "outlook_note": "", "next_step": ""},
    }
    told["words"] = [*words["sentences"], *later]
    if told["check"] is not None:
        how = how_to_answer_rows(settings.checked.answer)
        told["check"] = {**told["check"], "sentence": words["sentences"][0], "how_to_answer": how}
    guarantee = told["guarantee"]
    if guarantee is not None:
        # What the newest check has shown is stated, not what an earlier one has.
        newest = found is not None and found.complete and guarantee["check"] == project.checks()[-1].number
        told["guarantee"] = {**guarantee, "sentences": words["sentences"]} if newest else None
    return {**told, "result": None if result is None else _shown_result(result, words["sentences"])}


def _shown_result(result: dict[str, Any], sentences: list[str]) -> dict[str, Any]:
    """The part of a result that the page shows."""
    names = ("guaranteed", "complete", "rows", "checked", "pending", "wrong", "wrong_at_most", "at_most", "groups")
    shown = {name: result[name] for name in (*names, "confidence_level", "answer")}
    columns = {name: each["wrong"] for name, each in result["columns"].items()}
    return {**shown, "columns": columns, "sentences": sentences}


def _translated(record: Check, rows: NDArray[np.intp]) -> Check:
    """The same check with places among some rows instead of items of the project."""
    places = dict(zip(record.items, np.searchsorted(rows, record.items).tolist(), strict=True))
    return replace(
        record,
        items=tuple(places[item] for item in record.items),
        labels={places[item]: label for item, label in record.labels.items()},
        unlabelable=frozenset(places[item] for item in record.unlabelable),
        first_answers={places[item]: label for item, label in record.first_answers.items()},
    )


def changed_error(checks: Sequence[ProjectCheck]) -> ErrorChange | None:
    """Whether the error of the newest batch of rows differs from that of the batch before; None if not known.

    Only a number of answers that was fixed before the draw is compared, and only of the first check of each batch:
    rows with a label are left out of later ones and skipped rows are not, so that these have more faults. Checks for
    a goal about all labels leave skipped rows out and are not compared.

    Args:
        checks: The checks of a project.
    """
    first_checks: dict[int, ProjectCheck] = {}
    for check in checks:
        first_checks.setdefault(check.draw.asked.first_item, check)
    batches = sorted(first_checks)[-2:]
    if len(batches) < 2:
        return None
    samples = [_fixed_sample(first_checks[first]) for first in batches]
    if any(sample is None for sample in samples):
        return None
    return error_change(*samples)  # type: ignore[arg-type]


def batch_change(project: Project) -> dict[str, Any] | None:
    """Whether the error of the newest batch of rows differs from that of the batch before, as JSON values.

    Args:
        project: A project that checks predictions made elsewhere.

    Returns:
        The comparison with its sentences; None if there is none.
    """
    checks = project.checks()
    change = changed_error(checks)
    if change is None:
        return None
    batches: dict[int, ProjectCheck] = {}
    for check in checks:
        batches.setdefault(check.draw.asked.first_item, check)
    parts = []
    for first, sample in zip(sorted(batches)[-2:], (change.first, change.second), strict=True):
        record, rows = batches[first].record, rows_words(first, batches[first].draw.before.size)
        parts.append({"rows": rows, "answers": len(record.items) - len(record.pending), "compared": sample[1]})
    return {**change.to_dict(), "batches": parts, "sentences": change_sentences(str(change), parts[0], parts[1])}


def batch_results(project: Project) -> list[dict[str, Any]]:
    """The result of the newest check of each batch of rows, the first batch first, as JSON values.

    Args:
        project: A project that checks predictions made elsewhere.
    """
    newest = {check.draw.asked.first_item: check for check in project.checks()}
    told = []
    for first in sorted(newest):
        result = check_result(project, newest[first])
        rows = {"first_row": first + 1, "last_row": newest[first].draw.before.size}
        told.append({**rows, **result.to_dict(), "sentences": result.sentences()})
    return told


def _fixed_sample(check: ProjectCheck) -> tuple[int, int] | None:
    """Wrong answers, and answers whose number was fixed before the draw; None if there are none of this kind."""
    record, terms, asked = check.record, check.draw.terms, check.draw.asked
    if asked.quantity not in ("error", "within") or asked.of == "all" or record.aborted:
        return None
    number = record.size if terms is None else fixed_answers(terms)
    items = record.items[:number]
    if len(items) < number or set(items) & set(record.pending):
        return None
    faults = record.faults(check.draw.prediction_of(record.items), tolerance=check.draw.asked.tolerance)
    return sum(faults[item] for item in items), number
