"""Words of the statement about a finished data set, for readers who did not take part in the labelling."""

from collections.abc import Mapping
from typing import Any

from suffice.presentation.text_format import count, number_at_most, percent, percent_at_least, percent_at_most, utc_time


def fault_words(tolerance: float | None) -> str:
    """What "wrong" means: wrong, or off by more than a tolerance.

    Examples:
        >>> fault_words(None), fault_words(2.5)
        ('wrong', 'off by more than 2.5')
    """
    return "wrong" if tolerance is None else f"off by more than {number_at_most(tolerance)}"


def guaranteed_sentence(guarantee: Mapping[str, Any]) -> str:
    r"""What is guaranteed, in one sentence.

    Args:
        guarantee: Result of :meth:`suffice.checks.DataSetGuarantee.to_dict`.

    Examples:
        >>> guaranteed_sentence({"wrong_at_most": 50, "rows": 1000, "value": 0.05})
        'At most 50 of all 1,000 labels (5\xa0%) are wrong.'
    """
    most = f"At most {guarantee['wrong_at_most']:,} of all {count(guarantee['rows'], 'label')}"
    return f"{most} ({percent_at_most(guarantee['value'])}) are {fault_words(guarantee.get('tolerance'))}."


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


def check_facts(
    guarantee: Mapping[str, Any], *, started: str, by: str, given_up: int = 0, merged: bool = False
) -> list[str]:
    """How the statement was checked, in sentences.

    Args:
        guarantee: Result of :meth:`suffice.checks.DataSetGuarantee.to_dict`.
        started: When the check started, in ISO format; empty if there was none.
        by: Who started it.
        given_up: Number of earlier checks that proved nothing.
        merged: Whether classes were merged since the check.

    Examples:
        >>> proof = {"pool": 800, "checked": 110, "wrong": 2, "number": 1, "unlabelable": 0}
        >>> facts = check_facts({"proof": proof, "rows": 1000, "predicted": 690, "by_people": 310}, started="", by="")
        >>> facts[1]
        '110 of these were drawn at random and labelled by people, who did not see the predictions.'
    """
    proof = guarantee.get("proof")
    if proof is None:
        left = count(guarantee["predicted"], "row")
        return [
            f"People labelled all rows but {left}. This is no more than the number of labels that may be wrong, so no "
            "check was necessary."
        ]
    when = f", started on {utc_time(started)}" if started else ""
    who = f" by {by}" if by else ""
    found = proof["wrong"] + proof.get("unlabelable", 0)
    was = "prediction was" if found == 1 else "predictions were"
    facts = [
        f"Random check number {proof['number']} of these rows{when}{who}. At that time {count(proof['pool'], 'row')} "
        "had no label of a person. The model predicted all of them, and these predictions were recorded.",
        f"{proof['checked']:,} of these were drawn at random and labelled by people, who did not see the predictions.",
        f"{found:,} of the {proof['checked']:,} {was} {fault_words(guarantee.get('tolerance'))}."
        + (" In the final file, these rows have the labels of people." if found else ""),
    ]
    if proof.get("unlabelable"):
        facts[-1] += (
            f" Among them are {count(proof['unlabelable'], 'row')} that nobody could label; they count as wrong."
        )
    if proof.get("corrections"):
        facts.append(
            f"{count(proof['corrections'], 'answer')} of the check {_was(proof['corrections'])} corrected later."
        )
    facts.append(
        "The check ended when the result was proven. The predictions in the final file are those that were recorded "
        "before the check."
    )
    if merged:
        facts.append("Classes were merged since the check, which can only lower the number of wrong labels.")
    if given_up:
        earlier = "An earlier check" if given_up == 1 else f"{given_up:,} earlier checks"
        facts.append(f"{earlier} of these rows proved nothing. The confidence takes this into account.")
    return facts


def people_sentence(guarantee: Mapping[str, Any]) -> str:
    """How labels of people count.

    Args:
        guarantee: Result of :meth:`suffice.checks.DataSetGuarantee.to_dict`.

    Examples:
        >>> people_sentence({"annotator_error": 0.0})
        'Labels of people count as right.'
    """
    if not guarantee.get("annotator_error"):
        return "Labels of people count as right."
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
        'Errors of people. A label of a person counts as right, also if the person was mistaken.'
    """
    rows, checked = guarantee["rows"], guarantee.get("proof") is not None
    said = ["Errors of people. A label of a person counts as right, also if the person was mistaken."]
    if guarantee.get("annotator_error"):
        share = percent(guarantee["annotator_error"])
        said = [f"More errors of people than stated. The statement assumes at most {share} among their labels."]
    if checked:
        said.append("Wrong answers in the check. Predictions are compared with these answers, which have to be right.")
    said.append(
        f"Other rows. The statement is about the {rows:,} labels{f' of {data}' if data else ''} in the final file; new "
        "rows are not covered, even if they are similar."
    )
    if added:
        said.append(f"{count(added, 'row')} that {_was(added)} added after the check: {_is(added)} not covered.")
    if guarantee.get("left_out"):
        left = guarantee["left_out"]
        said.append(f"{count(left, 'row')} that nobody could label: {_has(left)} no label in the final file.")
    said.append(
        "Later changes. If somebody changes labels in the file, or uses another model, the statement does not hold."
    )
    said.append("Parts of the data. The share is that of all rows; in a single class or group it can be larger.")
    return said


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _is(number: int) -> str:
    return "it is" if number == 1 else "they are"


def _has(number: int) -> str:
    return "it has" if number == 1 else "they have"
