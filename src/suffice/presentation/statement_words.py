"""Words of the statement about a finished data set, for readers who did not take part in the labelling."""

from collections.abc import Mapping
from typing import Any

from suffice.presentation.guarantee_words import all_by_people, errors_of_people_words, fault_words, wrong_labels_words
from suffice.presentation.text_format import (
    as_sentence,
    count,
    percent,
    percent_at_least,
    percent_at_most,
    shortened,
    utc_time,
    was_or_were,
)


def guaranteed_sentence(guarantee: Mapping[str, Any]) -> str:
    r"""What is guaranteed, in one sentence.

    Args:
        guarantee: Result of :meth:`suffice.checks.DataSetGuarantee.to_dict`, or of that of a
            :class:`suffice.checks.ScreeningGuarantee`.

    Examples:
        >>> guaranteed_sentence({"wrong_at_most": 50, "rows": 1000, "value": 0.05})
        'At most 50 of all 1,000 labels (5\xa0%) are wrong.'
        >>> screening = {"class_name": "yes", "found": 312, "missed_at_most": 16, "recall_at_least": 0.9512}
        >>> print(guaranteed_sentence({**screening, "predicted": 4200}).replace("\xa0", " "))
        People have found at least 95.1 % of the rows of class 'yes': 312 found, at most 16 missed among the 4,200 rows
        that nobody read.
    """
    if guarantee.get("class_name") is not None:
        return _found_sentence(guarantee)
    if all_by_people(guarantee):
        return f"All {count(guarantee['rows'], 'label')} are by people; none is a prediction."
    return as_sentence(wrong_labels_words(guarantee, share=True))


def _found_sentence(guarantee: Mapping[str, Any]) -> str:
    """What is guaranteed about the class of a screening."""
    name, found = class_words(guarantee), f"{guarantee['found']:,} found"
    if not guarantee["predicted"]:
        return f"People have found all rows {name}: {found}, and all rows are read."
    least = percent_at_least(guarantee["recall_at_least"])
    others = f"the {count(guarantee['predicted'], 'row')} that nobody read"
    return (
        f"People have found at least {least} of the rows {name}: {found}, at most {guarantee['missed_at_most']:,} "
        f"missed among {others}."
    )


def class_words(guarantee: Mapping[str, Any]) -> str:
    """The class of a screening, as a part of a sentence.

    Examples:
        >>> class_words({"class_name": "yes"})
        "of class 'yes'"
    """
    return f"of class {shortened(str(guarantee['class_name']), 60)!r}"


def confidence_sentences(guarantee: Mapping[str, Any]) -> list[str]:
    """How sure the statement is, and what this means.

    Args:
        guarantee: Result of :meth:`suffice.checks.DataSetGuarantee.to_dict`.

    Examples:
        >>> confidence_sentences({"confidence": 1.0})
        ['This is certain if the labels of people are right: no check was necessary.']
    """
    if guarantee["confidence"] >= 1.0:
        return ["This is certain if the labels of people are right: no check was necessary."]
    sure = percent_at_least(guarantee["confidence"])
    # Without the rounding of the difference.
    chance = percent_at_most(round(1.0 - guarantee["confidence"], 12))
    return [
        f"Confidence: {sure}. The rows of the check were drawn at random. By bad luck in this draw, the statement can "
        f"be false; the probability of this is at most {chance}, for any data and any model."
    ]


def check_facts(  # noqa: PLR0913 - all but one by keyword
    guarantee: Mapping[str, Any],
    *,
    started: str,
    by: str,
    given_up: int = 0,
    merged: bool = False,
    column: str | None = None,
) -> list[str]:
    """How the statement was checked, in sentences.

    Args:
        guarantee: Result of :meth:`suffice.checks.DataSetGuarantee.to_dict`.
        started: When the check started, in ISO format; empty if there was none.
        by: Who started it.
        given_up: Number of earlier checks that proved nothing.
        merged: Whether classes were merged since the check.
        column: The column of the predictions, if these were made elsewhere; otherwise None.

    Examples:
        >>> proof = {"pool": 800, "checked": 110, "wrong": 2, "number": 1, "unlabelable": 0}
        >>> facts = check_facts({"proof": proof, "rows": 1000, "predicted": 690, "by_people": 310}, started="", by="")
        >>> facts[1]
        '110 of these were drawn at random and labelled by people, who did not see the predictions.'
        >>> proof |= {"wrong": 0, "unlabelable": 1}
        >>> facts = check_facts({"proof": proof, "rows": 1000, "predicted": 690, "by_people": 309}, started="", by="")
        >>> print(facts[1], facts[2])
        110 of these were drawn at random and shown to people, who did not see the predictions. People labelled 109; 1
        could not be labelled. None of the 109 predictions was wrong. The row without a label counts as wrong.
    """
    proof = guarantee.get("proof")
    if guarantee.get("class_name") is not None:
        return _screening_facts(guarantee, started, by, given_up, merged=merged)
    if proof is None:
        left = count(guarantee["predicted"], "row")
        return [
            f"People labelled all rows but {left}. This is no more than the number of labels that may be wrong, so no "
            "check was necessary."
        ]
    wrong, missing = proof["wrong"], proof.get("unlabelable", 0)
    recorded = "The model predicted all of them, and these predictions were recorded."
    if column is not None:
        recorded = f"The predictions for them in column {shortened(column, 60)!r} were recorded."
    facts = [
        f"{_which_check(proof, started, by)}. At that time {count(proof['pool'], 'row')} had no label of a person. "
        f"{recorded}",
        _drawn_fact(proof, "of these", "labelled"),
        _wrong_fact(wrong, proof["checked"] - missing, fault_words(guarantee.get("tolerance"))),
    ]
    if missing:
        facts[-1] += _missing_words(missing, "wrong")
    facts += _ended_facts(proof)
    if merged:
        facts.append("Classes were merged since the check, which can only lower the number of wrong labels.")
    return facts + _given_up_facts(given_up)


def _screening_facts(guarantee: Mapping[str, Any], started: str, by: str, given_up: int, *, merged: bool) -> list[str]:
    """How the statement about a class was checked; arguments as for :func:`check_facts`."""
    proof, name = guarantee.get("proof"), class_words(guarantee)
    if proof is None:
        left = count(guarantee["predicted"], "row")
        return [
            f"People read all rows but {left}. This is no more than the number of rows {name} that may be missed, so "
            "no check was necessary."
        ]
    new, missing, before = proof["wrong"], proof.get("unlabelable", 0), proof.get("found") or 0
    read = proof["checked"] - missing
    facts = [
        f"{_which_check(proof, started, by)}. At that time nobody had read {count(proof['pool'], 'row')}. "
        f"{count(before, 'row')} {name} {was_or_were(before)} found, so that {guarantee['allowed']:,} may be missed.",
        _drawn_fact(proof, "of the rows that nobody had read", "read"),
        f"{new:,} of the {read:,} {was_or_were(new)} {name}. Now {'it is' if new == 1 else 'they are'} found."
        if new
        else f"None of the {read:,} was {name}.",
    ]
    if missing:
        facts[-1] += _missing_words(missing, "of the class in the proof")
    facts += _ended_facts(proof)
    if merged:
        facts.append("Other classes were merged since the check, which does not change this.")
    return facts + _given_up_facts(given_up)


def _drawn_fact(proof: Mapping[str, Any], rows: str, labelled: str) -> str:
    """How many rows were drawn, and how many of them people could label."""
    checked, missing = proof["checked"], proof.get("unlabelable", 0)
    was = was_or_were(checked)
    if not missing:
        return f"{checked:,} {rows} {was} drawn at random and {labelled} by people, who did not see the predictions."
    return (
        f"{checked:,} {rows} {was} drawn at random and shown to people, who did not see the predictions. People "
        f"labelled {checked - missing:,}; {missing:,} could not be labelled."
    )


def _wrong_fact(wrong: int, labelled: int, fault: str) -> str:
    """How many predictions for the labelled rows of a check were wrong."""
    if not labelled:
        return "No prediction could be compared with a label."
    predictions = f"the {count(labelled, 'prediction')}" if labelled > 1 else "this prediction"
    if not wrong:
        return f"None of {predictions} was {fault}." if labelled > 1 else f"The prediction was not {fault}."
    rows = "this row has the label of a person" if wrong == 1 else "these rows have the labels of people"
    said = (
        f"{wrong:,} of {predictions} {was_or_were(wrong)} {fault}." if labelled > 1 else f"The prediction was {fault}."
    )
    return f"{said} In the final file, {rows}."


def _missing_words(missing: int, counted: str) -> str:
    """How the rows that nobody could label count."""
    rows = "The row without a label counts" if missing == 1 else f"The {missing:,} rows without a label count"
    return f" {rows} as {counted}."


def _which_check(proof: Mapping[str, Any], started: str, by: str) -> str:
    when = f", started on {utc_time(started)}" if started else ""
    return f"Random check number {proof['number']} of these rows{when}{f' by {by}' if by else ''}"


def _ended_facts(proof: Mapping[str, Any]) -> list[str]:
    """Corrections of the check, and its end."""
    changed = proof.get("corrections")
    said = [f"{count(changed, 'answer')} of the check {was_or_were(changed)} corrected later."] if changed else []
    return [
        *said,
        "The check ended when the result was proven. The predictions in the final file are those that were recorded "
        "before the check.",
    ]


def _given_up_facts(given_up: int) -> list[str]:
    """Earlier checks that proved nothing."""
    if not given_up:
        return []
    earlier = "An earlier check" if given_up == 1 else f"{given_up:,} earlier checks"
    return [f"{earlier} of these rows proved nothing. The confidence takes this into account."]


def people_sentence(guarantee: Mapping[str, Any], *, seen: float | None = None) -> str:
    """How labels of people count.

    Args:
        guarantee: Result of :meth:`suffice.checks.DataSetGuarantee.to_dict`.
        seen: The share of wrong labels of one person that the opinions of several people show, or None.

    Examples:
        >>> people_sentence({"annotator_error": 0.0, "class_name": "yes"})
        'Labels of people count as right.'
    """
    if not guarantee.get("annotator_error"):
        return errors_of_people_words(guarantee, seen=seen) or "Labels of people count as right."
    share = percent(guarantee["annotator_error"])
    return f"At most {share} of the labels of people are taken to be wrong; this share was stated before the check."


def not_covered(guarantee: Mapping[str, Any], *, added: int = 0, data: str = "") -> list[str]:
    """What the statement does not cover.

    Args:
        guarantee: Result of :meth:`suffice.checks.DataSetGuarantee.to_dict`.
        added: Number of rows that were added after the check.
        data: Name of the data.

    Examples:
        >>> not_covered({"rows": 10, "annotator_error": 0.0, "left_out": 0})[0]
        'Errors of people. A label of a person counts as right, even if the person was mistaken.'
    """
    rows, checked, screening = guarantee["rows"], guarantee.get("proof") is not None, "class_name" in guarantee
    said = ["Errors of people. A label of a person counts as right, even if the person was mistaken."]
    if guarantee.get("annotator_error"):
        share = percent(guarantee["annotator_error"])
        said = [f"More errors of people than stated. The statement assumes at most {share} among their labels."]
    if screening and guarantee["predicted"]:
        said.append(
            f"Other classes. The statement is about the rows {class_words(guarantee)}. The labels of the "
            f"{count(guarantee['predicted'], 'row')} that nobody read are predictions, and it is not stated how many "
            "of them are wrong."
        )
    if checked and screening:
        said.append(
            "Wrong answers in the check. A row of the class that a person overlooks counts as a row outside the class."
        )
    elif checked:
        said.append("Wrong answers in the check. If an answer in the check is wrong, the result can be wrong.")
    said.append(
        f"Other rows. The statement is about the {rows:,} labels{f' of {data}' if data else ''} in the final file; new "
        "rows are not covered, even if they are similar."
    )
    if added:
        said.append(f"{count(added, 'row')} that {was_or_were(added)} added after the check: {_is(added)} not covered.")
    if guarantee.get("left_out"):
        left = guarantee["left_out"]
        said.append(f"{count(left, 'row')} that nobody could label: {_has(left)} no label in the final file.")
    said.append(
        "Later changes. If somebody changes labels in the file, or uses another model, the statement does not hold."
    )
    parts = "The share is that of all rows; in a single class or group it can be larger."
    if screening:
        parts = "The share that is found is that of all rows of the class; in a single group it can be smaller."
    said.append(f"Parts of the data. {parts}")
    return said


def _is(number: int) -> str:
    return "it is" if number == 1 else "they are"


def _has(number: int) -> str:
    return "it has" if number == 1 else "they have"
