"""Words about checks of predictions that were made elsewhere."""

from collections.abc import Mapping
from typing import Any, Final

from suffice.presentation.check_words import sequential_words
from suffice.presentation.guarantee_words import fault_words
from suffice.presentation.text_format import count, percent, percent_at_least, percent_at_most

# Groups that are listed in sentences; all are in the table.
_MOST_GROUPS: Final = 5


def result_sentences(result: Mapping[str, Any]) -> list[str]:
    """What a check of given predictions has shown, the most important first.

    Args:
        result: Result of :meth:`suffice.checks.PredictionResult.to_dict`.

    Examples:
        >>> result = {"complete": False, "progress": None, "checked": 3, "pending": 97, "wrong": 0}
        >>> print(*result_sentences(result))
        3 of 100 rows are answered, with 0 wrong predictions. Nothing is proven yet.
    """
    if not result["complete"]:
        if result["progress"] is not None:
            return [sequential_words(result["progress"])]
        size = result["checked"] + result["pending"]
        return [
            f"{result['checked']:,} of {count(size, 'row')} are answered, with "
            f"{count(result['wrong'], 'wrong prediction')}. Nothing is proven yet."
        ]
    said = _statements(result)
    if result["at_most"] is not None and not result["guaranteed"]:
        said.insert(0, f"Not proven: at most {percent_at_most(result['at_most'])} wrong.")
    return [sentence.replace("\u00a0", " ") for sentence in said]


def _statements(result: Mapping[str, Any]) -> list[str]:
    for name in ("accepted", "share"):
        if result[name] is not None:
            return [result[name]["statement"], result[name]["evidence"]]
    columns = {name: each for name, each in result["columns"].items() if each["guarantee"] is not None}
    if not columns:
        progress = result["progress"]
        return ["" if progress is None else sequential_words(progress)]
    if len(columns) > 1:
        return _compared(result, columns)
    (found,) = columns.values()
    return [_guaranteed(found["guarantee"], result), _evidence(found["guarantee"], result), *_groups(result)]


def _sure(result: Mapping[str, Any]) -> str:
    return f"{percent_at_least(result['confidence_level'])} confidence"


def _guaranteed(guarantee: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """What is guaranteed about the predictions of all rows."""
    number = guarantee.get("number", 1)
    sure = _sure(result) + (f"; check {number} of these rows" if number > 1 else "")
    name = guarantee.get("class_name")
    if guarantee["quantity"] == "recall":
        least = percent_at_least(guarantee["predicted_recall"])
        return f"At least {least} of the rows of class {name!r} are predicted as such ({sure})."
    if guarantee["quantity"] == "precision":
        rows, least = count(guarantee["pool"], "row"), 1.0 - guarantee["wrong_at_most"] / guarantee["pool"]
        those = f"the {rows} predicted as {name!r}"
        return f"At least {percent_at_least(least)} of {those} belong to that class ({sure})."
    share = percent_at_most(guarantee["wrong_at_most"] / guarantee["pool"])
    which = f"the {count(guarantee['pool'], 'row')}"
    return f"At most {share} of the predictions for {which} are {fault_words(guarantee.get('tolerance'))} ({sure})."


def _evidence(guarantee: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    wrong, checked = result["wrong"], result["checked"]
    if result["progress"] is not None:
        return f"A random check ended after {count(checked, 'answer')}, with {count(wrong, 'wrong prediction')}."
    if guarantee["quantity"] == "recall":
        return f"A random check of {count(checked, 'row')}."
    return f"A random check of {count(checked, 'row')} found {wrong:,} wrong."


def _compared(result: Mapping[str, Any], columns: Mapping[str, Any]) -> list[str]:
    """The columns, the best first."""
    bounds = {name: each["guarantee"]["wrong_at_most"] / each["guarantee"]["pool"] for name, each in columns.items()}
    ordered = sorted(columns, key=lambda name: (bounds[name], name))
    lines = [
        f"{name!r}: at most {percent_at_most(bounds[name])} wrong ({columns[name]['wrong']:,} of "
        f"{result['checked']:,} in the check)."
        for name in ordered
    ]
    together = f"These bounds hold together ({_sure(result)}), so that the best column may be kept."
    return [*lines, together, *_groups(result)]


def _groups(result: Mapping[str, Any]) -> list[str]:
    groups = result["groups"]
    if not groups:
        return []
    ordered = sorted(groups, key=lambda name: (-groups[name]["at_most"], name))
    said = []
    for name in ordered[:_MOST_GROUPS]:
        each = groups[name]
        found = f"{each['wrong']:,} of {each['checked']:,} in the check"
        most = percent_at_most(each["at_most"])
        said.append(f"Group {name!r}, {count(each['rows'], 'row')}: at most {most} wrong ({found}).")
    if len(groups) > _MOST_GROUPS:
        said.append(f"{len(groups) - _MOST_GROUPS:,} other groups have lower bounds.")
    return [*said, "The bounds of all groups and of the total hold together."]


def answer_way_sentence(answer: str) -> str:
    """How people answered, and why it matters.

    Examples:
        >>> answer_way_sentence("blind")
        'People labelled the rows without seeing the predictions.'
    """
    if answer == "blind":
        return "People labelled the rows without seeing the predictions."
    return (
        "People saw each prediction and said whether it is right. Somebody who sees a prediction tends to agree with "
        "it, so that errors can be overlooked; an overlooked error counts as right."
    )


def change_sentence(first: tuple[int, int], second: tuple[int, int], p_value: float) -> str:
    """Whether the error of new rows differs from that of the rows before.

    Args:
        first: Wrong answers and answers of the earlier rows.
        second: The same of the new rows.
        p_value: Probability of such a difference by chance.
    """
    shares = [percent(wrong / max(1, size)) for wrong, size in (first, second)]
    seen = f"{shares[0]} wrong in the check before, {shares[1]} in this one (p = {p_value:.2g})"
    said = "The error has changed" if p_value < 0.05 else "No change of the error is visible"
    return f"{said}: {seen}.".replace("\u00a0", " ")


def check_words(result: Mapping[str, Any] | None, rows: int) -> dict[str, Any]:
    """The state of a check as headline, tone, sentences and summary, as of a decision.

    Args:
        result: Result of :meth:`suffice.checks.PredictionResult.to_dict`; None before the first check.
        rows: Number of rows with a prediction.

    Examples:
        >>> check_words(None, 2000)["sentences"]
        ['No check has started: nothing is known yet about the 2,000 predictions.']
    """
    if result is None:
        said = [f"No check has started: nothing is known yet about the {count(rows, 'prediction')}."]
        headline, tone = "Start a check", "quiet"
    else:
        said = result_sentences(result)
        headline, tone = "A check is running", "on"
        if result["complete"]:
            headline, tone = "The check has ended", "quiet"
            if result["at_most"] is not None:
                headline, tone = "Your target is not proven", "limit"
            if result["at_most"] is not None and result["guaranteed"]:
                headline, tone = "Your target is guaranteed", "good"
    return {"headline": headline, "tone": tone, "sentences": said, "summary": said[0] if said else ""}


def how_to_answer_rows(answer: str) -> str:
    """What people do in a check of predictions made elsewhere.

    Args:
        answer: ``"blind"`` or ``"verdict"``.
    """
    skip = "Skip one only if it cannot be answered: it then counts as predicted wrong."
    if answer == "blind":
        return f"These rows are drawn at random, without the prediction. {skip}"
    return (
        "These rows are drawn at random. Read each row first, and then say whether its prediction is right. People "
        f"tend to agree with what they see. {skip}"
    )


def covered_sentence(first: int, size: int) -> str:
    """Which rows a statement covers.

    Args:
        first: Number of the first row, from 0.
        size: Number of rows of the data when the check started.

    Examples:
        >>> covered_sentence(0, 2000)
        'The statement covers rows 1 to 2,000 of the data; other rows are not covered.'
    """
    return f"The statement covers rows {first + 1:,} to {size:,} of the data; other rows are not covered."


def group_rows(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Rows of a table of groups: name, number of rows, checked, wrong, and the guaranteed share; the worst first."""
    groups = result["groups"]
    ordered = sorted(groups, key=lambda name: (-groups[name]["at_most"], name))
    return [
        (
            name,
            f"{groups[name]['rows']:,}",
            f"{groups[name]['checked']:,}",
            f"{groups[name]['wrong']:,}",
            f"at most {percent_at_most(groups[name]['at_most'])}",
        )
        for name in ordered
    ]


def not_covered_by_check(answer: str) -> list[str]:
    """What a statement about predictions made elsewhere does not cover.

    Args:
        answer: How people answered.
    """
    said = [
        "Wrong answers. If an answer of a person is wrong, the result can be wrong.",
        "Other rows. New rows are not covered, even if they are similar; check them on their own.",
        "Other predictions. If predictions change after the check was drawn, the statement does not hold for them.",
        "Parts of the data. The share is that of all rows; in a single class or group it can be larger, unless a bound "
        "is stated for it.",
    ]
    if answer == "verdict":
        said.insert(1, "Overlooked errors. People saw the predictions, and tend to agree with what they see.")
    return said
