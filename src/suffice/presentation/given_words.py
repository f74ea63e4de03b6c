"""Words about checks of predictions that were made elsewhere."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from suffice.presentation.check_words import sequential_words
from suffice.presentation.guarantee_words import fault_words
from suffice.presentation.text_format import count, is_or_are, percent_at_least, percent_at_most, shortened

# Share of the rows from which on a check takes nearly all of them.
_NEARLY_ALL: Final = 0.8
# Groups that are listed in sentences; all are in the table.
_MOST_GROUPS: Final = 10


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
            f"{result['checked']:,} of {count(size, 'row')} {is_or_are(result['checked'])} answered, with "
            f"{count(result['wrong'], 'wrong prediction')}. Nothing is proven yet."
        ]
    said = _target_and_statements(result)
    unlabelable = result.get("unlabelable", 0)
    if unlabelable and result["accepted"] is None and result["share"] is None:
        said.append(
            f"{count(unlabelable, 'row')} of the check could not be labelled and "
            f"{'counts' if unlabelable == 1 else 'count'} as wrong."
        )
    said += _corrections(result, said)
    return [sentence.replace("\u00a0", " ") for sentence in said]


def _target_and_statements(result: Mapping[str, Any]) -> list[str]:
    said = _statements(result)
    if result["at_most"] is not None and not result["guaranteed"]:
        guarantees = [each["guarantee"] for each in result["columns"].values() if each["guarantee"] is not None]
        recall = any(each["quantity"] == "recall" for each in guarantees)
        fault = "missed" if recall else "wrong"
        said.insert(0, f"It is not proven that at most {percent_at_most(result['at_most'])} are {fault}.")
    return said


def _corrections(result: Mapping[str, Any], said: Sequence[str]) -> list[str]:
    """How many answers were corrected, and what the first answers show."""
    number, first = result.get("corrections", 0), result.get("at_first")
    if not number or first is None:
        return []
    corrected = f"{count(number, 'answer')} {'was' if number == 1 else 'were'} corrected."
    before = _target_and_statements(first)
    if before[0] == said[0]:
        return [f"{corrected} The first answers show the same."]
    if result["progress"] is not None and not first["guaranteed"]:
        # With other answers the check would not have ended, so that they state no other bound.
        return [f"{corrected} The first answers do not prove it."]
    return [f"{corrected} By the first answers: {before[0]}"]


def given_column_sentence(column: str) -> str:
    """Where predictions come from that were made elsewhere.

    Examples:
        >>> given_column_sentence("llm")
        "The predictions are those of column 'llm'."
    """
    return f"The predictions are those of column {shortened(column, 60)!r}."


def _statements(result: Mapping[str, Any]) -> list[str]:
    for name in ("accepted", "share"):
        if result[name] is not None:
            judged = result.get("judged_confidence")
            return [result[name]["statement"], result[name]["evidence"], *([judged["statement"]] if judged else [])]
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
        least, rows = percent_at_least(guarantee["predicted_recall"]), count(result["rows"], "row")
        return f"Of the rows of class {name!r} among the {rows}, at least {least} are predicted as such ({sure})."
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
        f"{result['checked']:,} in the check){_of_target(columns[name])}."
        for name in ordered
    ]
    together = f"These bounds hold together ({_sure(result)}), so that you may keep the better column."
    if result["groups"]:
        together += f" The groups are those of {ordered[0]!r}."
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
        rows = count(each["rows"], "row")
        said.append(f"Group {name!r}, {rows}: at most {most} wrong ({found}){_of_target(each)}.")
    if len(groups) > _MOST_GROUPS:
        others = len(groups) - _MOST_GROUPS
        are = "bound of 1 other group is" if others == 1 else f"bounds of {others:,} other groups are"
        said.append(f"The {are} not higher.")
    return [*said, groups_sentence(result)]


def groups_sentence(result: Mapping[str, Any]) -> str:
    """How the bounds of groups and the target belong together.

    Args:
        result: Result of :meth:`suffice.checks.PredictionResult.to_dict`.

    Examples:
        >>> groups_sentence({"at_most": 0.05})
        'The bounds of all groups and of the total hold together. The target is about all rows together.'
    """
    together = "The bounds of all groups and of the total hold together."
    return together if result["at_most"] is None else f"{together} The target is about all rows together."


def _of_target(part: Mapping[str, Any]) -> str:
    """Whether the bound of a part proves the target; nothing without a target."""
    reaches = part.get("reaches_target")
    return "" if reaches is None else ": target proven" if reaches else ": target not proven"


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


def rows_words(first: int, end: int) -> str:
    """Rows as a person counts them.

    Args:
        first: The first row, from 0.
        end: The row after the last.

    Examples:
        >>> rows_words(2000, 2600), rows_words(4, 5)
        ('rows 2,001 to 2,600', 'row 5')
    """
    return f"row {end:,}" if end == first + 1 else f"rows {first + 1:,} to {end:,}"


def change_sentences(statement: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    r"""Whether the error of new rows differs from that of the rows before.

    Args:
        statement: The comparison in words.
        before: ``rows`` in words, the number of ``answers`` of the check, and how many of them are ``compared``.
        now: The same of the new rows.

    Examples:
        >>> before = {"rows": "rows 1 to 2,000", "answers": 205, "compared": 111}
        >>> now = {"rows": "rows 2,001 to 2,600", "answers": 80, "compared": 80}
        >>> print(*change_sentences("No change of the error is visible.", before, now), sep="\n")
        Rows 1 to 2,000 and rows 2,001 to 2,600 are compared.
        No change of the error is visible.
        Of the first check only the first 111 of 205 answers are compared, because their number was fixed before.
    """
    said = [f"{before['rows'].capitalize()} and {now['rows']} are compared.", statement]
    fewer = [
        f"of the {which} check only the first {each['compared']:,} of {each['answers']:,} answers"
        for which, each in (("first", before), ("second", now))
        if each["compared"] < each["answers"]
    ]
    if fewer:
        words = " and ".join(fewer)
        said.append(f"{words[0].upper()}{words[1:]} are compared, because their number was fixed before.")
    return said


def fixed_size_sentence(size: int, pool: int, *, parts: int = 1) -> str:
    """How many answers a check of fixed size takes.

    Args:
        size: Number of answers.
        pool: Number of rows from which they are drawn.
        parts: Number of bounds that hold together, if the size was planned for them; otherwise 1.

    Examples:
        >>> fixed_size_sentence(300, 2000)
        'This check takes 300 answers of 2,000 rows.'
        >>> print(fixed_size_sentence(2000, 2000, parts=5))
        This check takes 2,000 answers of 2,000 rows. Nearly all rows are needed, because the target is strict for 5
        bounds that hold together: with a larger --at-most, or with --size, it takes fewer. End it with --abort first.
    """
    said = f"This check takes {count(size, 'answer')} of {count(pool, 'row')}."
    if parts == 1 or size < _NEARLY_ALL * pool:
        return said
    return (
        f"{said} Nearly all rows are needed, because the target is strict for {parts:,} bounds that hold together: "
        "with a larger --at-most, or with --size, it takes fewer. End it with --abort first."
    )


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


def covered_sentence(first: int, size: int, rows: int) -> str:
    """Which rows a statement covers.

    Args:
        first: Number of the first row, from 0.
        size: Number of rows of the data when the check started.
        rows: Number of rows from which the check was drawn.

    Examples:
        >>> covered_sentence(0, 2000, 2000)
        'The statement covers rows 1 to 2,000 of the data; other rows are not covered.'
        >>> covered_sentence(0, 2000, 1900)
        'The statement covers the 1,900 of rows 1 to 2,000 that had no answer before; other rows are not covered.'
    """
    which = f"rows {first + 1:,} to {size:,}"
    if rows < size - first:
        return f"The statement covers the {rows:,} of {which} that had no answer before; other rows are not covered."
    return f"The statement covers {which} of the data; other rows are not covered."


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
            f"at most {percent_at_most(groups[name]['at_most'])}{_of_target(groups[name])}",
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
