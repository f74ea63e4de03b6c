"""Sentences about items of a project: predictions, imported labels, added items, and labels to review."""

from collections.abc import Mapping
from typing import Any, Final

from suffice.presentation.project_words import some_counts
from suffice.presentation.text_format import count, number, percent

#: Why a label at the top of the list of suspicious labels may be right.
REVIEW_NOTE: Final = (
    "The model judges each label without having learned it. The probability of being wrong takes account of how sure "
    "its predictions are on all labels. It is an estimate, and not all of them are wrong. Confirm the correct ones; "
    "they are not listed again."
)


def prediction_sentence(
    prediction: Any, *, probability: float | None = None, deviation: float | None = None, source: str = ""
) -> str:
    r"""Prediction of a model for an item.

    Args:
        prediction: The class, or the number.
        probability: Probability of the class, if it is known.
        deviation: For numbers the standard deviation, if it is known.
        source: Name of the file that the prediction is from; empty for the project's own model.

    Examples:
        >>> print(prediction_sentence("spam", probability=0.934).replace("\N{NO-BREAK SPACE}", " "))
        The model says spam (93 %).
        >>> prediction_sentence(3.25, deviation=1.5)
        'The model says 3.25, give or take 1.5.'
        >>> prediction_sentence("ham", source="old.csv")
        'The file old.csv says ham.'
    """
    who = f"The file {source}" if source else "The model"
    what = number(float(prediction)) if isinstance(prediction, float) else str(prediction)
    near = f", give or take {number(deviation)}" if deviation is not None else ""
    return f"{who} says {what}{near}{'' if probability is None else f' ({percent(probability)})'}."


def items_added_sentences(
    added: int, size: int, *, trial: bool = False, guaranteed: bool = False, labelled: int = 0
) -> list[str]:
    """Note that items were added to a project, and the consequences.

    Args:
        added: Number of items that were added.
        size: Number of items of the project now.
        trial: Whether nothing was changed.
        guaranteed: Whether the project has a guarantee.
        labelled: Number of added items with a label.

    Examples:
        >>> print(items_added_sentences(50, 150, guaranteed=True)[1])
        The guarantee does not cover them: draw a new check to cover all.
        >>> items_added_sentences(1, 100, trial=True)
        ['1 item would be added, 0 with a label; the project has 100.', 'No row is an item that the project has already.', 'Nothing was changed: this was a trial run.']
    """  # noqa: E501 - one list
    done = "would be" if trial else "was" if added == 1 else "were"
    sentences = [f"{count(added, 'item')} {done} added, {labelled:,} with a label; the project has {size:,}."]
    if trial:
        none = "No row is an item that the project has already."
        return [*sentences, none, "Nothing was changed: this was a trial run."]
    return (
        [*sentences, "The guarantee does not cover them: draw a new check to cover all."] if guaranteed else sentences
    )


def import_sentences(report: Mapping[str, Any], *, trial: bool = False) -> list[str]:
    """Result of an import.

    Args:
        report: The values of :class:`suffice.project.incoming_rows.ImportReport`.
        trial: Whether nothing was to be written.

    Examples:
        >>> names = ["opinions", "replaced", "same", "predicted", "contradictory", "in_check"]
        >>> report = dict.fromkeys(names, 0) | {"rows": 12, "matched": 10, "matched_by": "id", "labelled": 7}
        >>> report |= {"empty": 1, "unmatched": 2, "unmatched_examples": ["'x7'"], "unknown": {"egg": 1}, "same": 1}
        >>> report |= {"kept": 1, "conflicting": 1, "conflicts": "keep"}
        >>> report |= {"conflicting_examples": ["'a1' (project: ham, file: spam)"]}
        >>> report |= {"notes": ["the file is not in UTF-8; it was read as Latin-1"]}
        >>> for sentence in import_sentences(report):
        ...     print(sentence)
        10 of 12 rows belong to items, matched by id.
        Items: 7 newly labelled, 1 with this label already, 1 with another label, which is kept.
        Rows that belong to no item: 2, such as 'x7'.
        Conflicts with what the project has: 1, such as 'a1' (project: ham, file: spam). The project keeps its own; "replace" would correct them, "opinion" add those of the file as opinions.
        Rows without a label: 1.
        Rows with a label that cannot be used: 1 (egg 1).
        The file is not in UTF-8; it was read as Latin-1.
    """  # noqa: E501 - one sentence
    matched_by = _MATCHED[report["matched_by"]]
    belong = "belongs to an item" if report["matched"] == 1 else "belong to items"
    sentences = [f"{report['matched']:,} of {count(report['rows'], 'row')} {belong}, matched by {matched_by}."]
    items = [f"{report[name]:,} {words}" for name, words in _IMPORTED if report[name]]
    sentences += [f"Items: {', '.join(items)}."] if items else ["No item is changed."]
    some = f", such as {', '.join(report['unmatched_examples'])}" if report["unmatched"] else ""
    sentences.append(f"Rows that belong to no item: {report['unmatched']:,}{some}.")
    sentences.append(_conflicts_sentence(report))
    if report["empty"]:
        sentences.append(f"Rows without a label: {report['empty']:,}.")
    if report["unknown"]:
        listed = some_counts(list(report["unknown"].items()))
        sentences.append(f"Rows with a label that cannot be used: {sum(report['unknown'].values()):,} ({listed}).")
    if report.get("outside_range"):
        listed = ", ".join(report["outside_range_examples"])
        of = f"Labels outside of the plausible range, {report['plausible']}: {report['outside_range']:,}"
        sentences.append(f"{of}, such as {listed}. They are used; check whether they have the right unit.")
    sentences += [f"{note[0].upper()}{note[1:]}." for note in report["notes"]]
    return [*sentences, "Nothing was written: this was a trial run."] if trial else sentences


def _conflicts_sentence(report: Mapping[str, Any]) -> str:
    """Number of items with another label or prediction in the project, and what happens to them."""
    if not report["conflicting"]:
        return "Conflicts with what the project has: 0."
    some = ", ".join(report["conflicting_examples"])
    happens = _CONFLICTS[report["conflicts"]]
    return f"Conflicts with what the project has: {report['conflicting']:,}, such as {some}. {happens}"


# What happens in a conflict.
_CONFLICTS: Final = {
    "keep": 'The project keeps its own; "replace" would correct them, "opinion" add those of the file as opinions.',
    "replace": "Those of the file replace those of the project.",
    "opinion": "Those of the file are opinions; the labels that count stay.",
}
_MATCHED: Final = {"id": "id", "row": "their order", "text": "their text"}
# Counts of an imported file, and their descriptions.
_IMPORTED: Final = (
    ("labelled", "newly labelled"),
    ("opinions", "with a further opinion"),
    ("replaced", "with a replaced label"),
    ("same", "with this label already"),
    ("kept", "with another label, which is kept"),
    ("predicted", "with a prediction"),
    ("contradictory", "in the file with several labels, of which none is used"),
    ("in_check", "of the open check, which are left out"),
)


def range_words(lowest: float | None, highest: float | None, unit: str) -> str:
    """The plausible range of a number.

    Examples:
        >>> range_words(0.0, 120.0, "kg"), range_words(None, 5.0, ""), range_words(0.5, None, "m")
        ('0 to 120 kg', 'at most 5', 'at least 0.5 m')
    """
    of = f" {unit}" if unit else ""
    if lowest is None or highest is None:
        limit = highest if lowest is None else lowest
        assert limit is not None
        return f"at {'most' if lowest is None else 'least'} {number(limit)}{of}"
    return f"{number(lowest)} to {number(highest)}{of}"


def outside_range_sentence(label: float, lowest: float | None, highest: float | None, unit: str) -> str:
    """A number that is outside of the plausible range, and what to do about it.

    Examples:
        >>> outside_range_sentence(1200.0, 0.0, 120.0, "kg")
        '1,200 kg is outside of the plausible range, 0 to 120 kg; if it is right, confirm it (outside_range)'
    """
    of = f" {unit}" if unit else ""
    plausible = range_words(lowest, highest, unit)
    outside = f"{number(label)}{of} is outside of the plausible range, {plausible}"
    return f"{outside}; if it is right, confirm it (outside_range)"


def suspicious_label_sentence(label: Any, prediction: Any, wrong: float, deviation: float | None) -> str:
    r"""Prediction of the model for a label that it has not learned, and the probability that the label is wrong.

    Args:
        label: The label.
        prediction: The prediction without it.
        wrong: Probability that the label is wrong.
        deviation: For numbers the standard deviation; None for classes.

    Examples:
        >>> print(suspicious_label_sentence("ham", "spam", 0.8312, None).replace("\N{NO-BREAK SPACE}", " "))
        Labelled ham; without this label the model says spam. The label is wrong with a probability of 83 %.
        >>> suspicious_label_sentence(9.5, 3.25, 0.6, 1.5).split(". ")[0]
        'Labelled 9.5; without this label the model says 3.25, give or take 1.5'
    """
    if deviation is not None:
        said = f"{number(float(prediction))}, give or take {number(deviation)}"
    else:
        said = "the same" if prediction == label else str(prediction)
    given = number(float(label)) if deviation is not None else str(label)
    first = f"Labelled {given}; without this label the model says {said}."
    return f"{first} The label is wrong with a probability of {percent(wrong)}."


def review_sentences(review: Mapping[str, Any]) -> list[str]:
    r"""Number of labels to review, how many of them are expected to be wrong, and why these.

    Args:
        review: ``listed``, ``total`` (labels that are worth a second look), ``n_labelled``, ``expected`` (wrong labels
            among those listed), ``expected_all`` (among all), ``at_least`` (the smallest probability of being wrong
            that is worth a second look), and ``priced`` (whether that is by the prices of the project).

    Examples:
        >>> review = {"listed": 5, "total": 5, "n_labelled": 500, "expected": 3.8, "expected_all": 6.2}
        >>> review |= {"at_least": 0.5, "priced": False}
        >>> print(*review_sentences(review), sep="\n")
        Of 500 labels, 5 are worth a second look; about 3.8 of these 5 are expected to be wrong.
        These labels are more likely wrong than right. Among the others, about 2.4 are expected to be wrong.
        >>> review |= {"listed": 0, "total": 0, "expected": 0.0, "expected_all": 0.4}
        >>> print(*review_sentences(review), sep="\n")
        None of the 500 labels is worth a second look.
        No label is more likely wrong than right. Among all, about 0.4 are expected to be wrong.
        >>> review |= {"listed": 6, "total": 6, "expected": 5.98, "expected_all": 6.01}
        >>> print(*review_sentences(review), sep="\n")
        Of 500 labels, 6 are worth a second look; about 6 of these 6 are expected to be wrong.
        These labels are more likely wrong than right. Among the others, none is expected to be wrong.
    """
    n, total, listed = review["n_labelled"], review["total"], review["listed"]
    at_least = percent(review["at_least"])
    rest = _expected(review["expected_all"] - review["expected"])
    if not total:
        none = "No label is more likely wrong than right."
        if review["priced"]:
            none = f"By the costs of a label and of a mistake, that takes a probability of being wrong of {at_least}."
        return [f"None of the {n:,} labels is worth a second look.", f"{none} Among all, {rest} expected to be wrong."]
    some = f"; the first {listed:,} are listed" if listed < total else ""
    are, these = ("is", "it is") if total == 1 else ("are", f"of these {listed:,}")
    expected = _expected(review["expected"])
    wrong = (
        f"it is wrong with a probability of {percent(review['expected'])}"
        if total == 1
        else f"{expected.removesuffix(' is').removesuffix(' are')} {these} are expected to be wrong"
    )
    why = "These labels are more likely wrong than right." if total > 1 else "It is more likely wrong than right."
    if review["priced"]:
        why = f"By the costs of a label and of a mistake, a second look pays from a probability of {at_least} on."
    first = f"Of {n:,} labels, {total:,} {are} worth a second look{some}; {wrong}."
    return [first, f"{why} Among the others, {rest} expected to be wrong."]


def _expected(number_of: float) -> str:
    """An expected number of labels, with its verb."""
    value = f"{number_of:.1f}".removesuffix(".0") if number_of < 9.95 else f"{number_of:,.0f}"
    return "none is" if value == "0" else f"about {value} {'is' if value == '1' else 'are'}"


def too_few_to_review_sentence(fewest: int) -> str:
    """Note that there are too few labels to find unlikely ones.

    Examples:
        >>> too_few_to_review_sentence(20)
        'Unlikely labels are listed once there are 20 labels of at least two kinds.'
    """
    return f"Unlikely labels are listed once there are {fewest} labels of at least two kinds."
