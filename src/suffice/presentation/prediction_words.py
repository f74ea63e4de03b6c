"""Sentences about predictions that were made elsewhere: groups, classes, accepted parts, changes, confidences."""

from collections.abc import Mapping, Sequence
from typing import Any

from suffice.presentation.guarantee_words import fault_words
from suffice.presentation.text_format import (
    count,
    is_or_are,
    number,
    percent,
    percent_at_least,
    percent_at_most,
    percents_around,
    was_or_were,
)


def group_lines(total: str, groups: Sequence[Mapping[str, Any]]) -> list[str]:
    """Guarantees of all items and of groups, one line for each.

    Args:
        total: The statement about all items.
        groups: For each group what :func:`group_line` requires, and ``group``, its name.
    """
    lines = [f"- {group['group']!r}: {group_line(group)}" for group in groups]
    return [total, "Together with this, for each group, the worst first:", *lines]


def group_line(group: Mapping[str, Any]) -> str:
    """The guarantee of a group, without its name.

    Args:
        group: ``value``, the largest share of wrong predictions, or None if nothing is guaranteed; ``items``, and
            whether these are ``unlabelled``; ``checked``, ``wrong``, ``unlabelable`` and ``tolerance``.

    Examples:
        >>> group = {"value": 0.104, "items": 812, "unlabelled": True, "checked": 35, "wrong": 1, "unlabelable": 0,
        ...     "tolerance": None}
        >>> group_line(group)
        'at most 11 % of 812 unlabelled items are wrong (35 checked, 1 wrong)'
        >>> group_line({**group, "value": None, "checked": 0})
        'nothing is guaranteed for 812 unlabelled items (0 checked)'
    """
    items = count(group["items"], "unlabelled item" if group["unlabelled"] else "item")
    fault = fault_words(group["tolerance"])
    absent = f", {group['unlabelable']:,} without a possible label" if group["unlabelable"] else ""
    if group["value"] is None:
        return f"nothing is guaranteed for {items} ({group['checked']:,} checked{absent})"
    are = "is" if group["items"] == 1 else "are"
    found = f"{group['checked']:,} checked, {group['wrong']:,} {fault}{absent}"
    return _plain(f"at most {percent_at_most(group['value'])} of {items} {are} {fault} ({found})")


def share_sentence(share: Mapping[str, Any]) -> str:
    """How many items belong to a class.

    Args:
        share: ``least`` and ``most``, numbers of items of the class; ``rows``, the number of all; ``class_name``;
            ``confidence``; and ``number``, that of the check.

    Examples:
        >>> share = {"least": 410, "most": 690, "rows": 4600, "class_name": "spam", "confidence": 0.95, "number": 1}
        >>> share_sentence(share)
        "Between 410 and 690 of the 4,600 items (8.9 to 15 %) belong to class 'spam' (95 % confidence)."
        >>> share_sentence({**share, "least": 690, "number": 2})
        "Exactly 690 of the 4,600 items (15 %) belong to class 'spam' (95 % confidence; check 2 of these items)."
    """
    low, high = percents_around(share["least"] / share["rows"], share["most"] / share["rows"])
    items = f"of the {count(share['rows'], 'item')}"
    to = f"to class {share['class_name']!r} ({_sure(share)})."
    if share["least"] == share["most"]:
        belong = "belongs" if share["least"] == 1 else "belong"
        return _plain(f"Exactly {share['least']:,} {items} ({percent(share['most'] / share['rows'])}) {belong} {to}")
    return _plain(f"Between {share['least']:,} and {share['most']:,} {items} ({low} to {high} %) belong {to}")


def share_evidence(share: Mapping[str, Any]) -> str:
    """The sample behind the share of a class, in sentences.

    Args:
        share: ``pool``, ``checked``, ``found``, ``unlabelable``, ``split``, ``labelled_before``, ``found_before`` and
            ``model``.

    Examples:
        >>> share = {"pool": 4600, "checked": 200, "found": 24, "unlabelable": 2, "split": True, "labelled_before": 400,
        ...     "found_before": 90, "model": ""}
        >>> print(share_evidence(share))
        A random check of 200 of 4,600 items found 24 of the class. 2 items could not be labelled: they count as not of
        the class in the lower limit, and as of the class in the upper one. Items that are predicted as the class and
        the others have limits of their own, which were added. Of 400 items that were labelled before, 90 are of the
        class.
    """
    items = count(share["pool"], "item")
    said = [f"A random check of {share['checked']:,} of {items} found {share['found']:,} of the class."]
    if share["unlabelable"]:
        they = "it counts" if share["unlabelable"] == 1 else "they count"
        said.append(
            f"{count(share['unlabelable'], 'item')} could not be labelled: {they} as not of the class in the lower "
            "limit, and as of the class in the upper one."
        )
    if share["split"]:
        said.append("Items that are predicted as the class and the others have limits of their own, which were added.")
    if share["labelled_before"]:
        before, are = count(share["labelled_before"], "item"), "is" if share["found_before"] == 1 else "are"
        said.append(f"Of {before} that were labelled before, {share['found_before']:,} {are} of the class.")
    if share["model"]:
        said.append(f"The predictions are those of this model: {share['model']}.")
    return " ".join(said)


def share_plan_sentence(plan: Mapping[str, Any]) -> str:
    """Number of labels that a share of a class needs.

    Args:
        plan: ``labels``, ``width``, ``expected``, ``pool``, ``alpha``, ``predicted`` and ``right``, both None without
            a split by prediction.

    Examples:
        >>> plan = {"labels": 830, "width": 0.04, "expected": 0.12, "pool": 4600, "alpha": 0.05, "predicted": None}
        >>> print(share_plan_sentence(plan))
        A check of 830 of 4,600 items typically gives an interval of at most 4 percentage points for the share of the
        class (95 % confidence), if 12 % belong to it.
    """
    split = ""
    if plan["predicted"] is not None:
        split = f" and {plan['right']:,} of the {plan['predicted']:,} that are predicted as the class are right"
    points = count_of_points(plan["width"])
    return _plain(
        f"A check of {plan['labels']:,} of {count(plan['pool'], 'item')} typically gives an interval of at most "
        f"{points} for the share of the class ({percent_at_least(1.0 - plan['alpha'])} confidence), if "
        f"{percent(plan['expected'])} belong to it{split}."
    )


def count_of_points(share: float) -> str:
    """A difference of shares in percentage points.

    Examples:
        >>> count_of_points(0.04), count_of_points(0.01)
        ('4 percentage points', '1 percentage point')
    """
    points = number(100.0 * share)
    return f"{points} percentage point{'s' * (points != '1')}"


def accepted_sentence(part: Mapping[str, Any]) -> str:
    """Which predictions can be accepted, and what is guaranteed about them.

    Args:
        part: ``goal``, ``pool``, ``threshold``, ``accepted``, ``predicted`` (accepted without a label), ``allowed``,
            ``at_most``, ``left``, ``confidence``, ``number`` and ``tolerance``.

    Examples:
        >>> part = {"goal": "corrected", "pool": 3000, "threshold": 0.71, "accepted": 2310, "predicted": 2170,
        ...     "allowed": 50, "at_most": None, "left": 560, "confidence": 0.95, "number": 1, "tolerance": None}
        >>> print(accepted_sentence(part))
        Of the 2,170 items with a confidence of at least 0.71 that are not in the check, at most 50 are predicted wrong
        (95 % confidence). 560 items are left for people. If people label them, at most 50 of all 3,000 labels are
        wrong.
        >>> print(accepted_sentence({**part, "goal": "share", "at_most": 0.05, "allowed": 115}))
        Of the 2,310 items with a confidence of at least 0.71, at most 5 % are predicted wrong (95 % confidence). 560
        items are left for people.
        >>> print(accepted_sentence({**part, "threshold": None, "left": 2800}))
        No prediction can be accepted: the check does not show for any part that at most 50 are predicted wrong. 2,800
        items are left for people.
    """
    fault = f"predicted {fault_words(part['tolerance'])}"
    corrected = part["goal"] == "corrected"
    most = f"at most {part['allowed']:,}" if corrected else f"at most {percent_at_most(part['at_most'])}"
    left = f"{count(part['left'], 'item')} {is_or_are(part['left'])} left for people."
    if part["threshold"] is None:
        return _plain(
            f"No prediction can be accepted: the check does not show for any part that {most} are {fault}. {left}"
        )
    items = count(part["predicted"] if corrected else part["accepted"], "item")
    outside = f" that {is_or_are(part['predicted'])} not in the check" if corrected else ""
    are = is_or_are(part["allowed"]) if corrected else "are"
    which = f"Of the {items} with a confidence of at least {part['threshold']:.12g}{outside}"
    if corrected:
        then = f"If people label {'it' if part['left'] == 1 else 'them'}, " if part["left"] else "So "
        left += f" {then}{most} of all {part['pool']:,} labels {are} {fault_words(part['tolerance'])}."
    return _plain(f"{which}, {most} {are} {fault} ({_sure(part)}). {left}")


def accepted_evidence(part: Mapping[str, Any]) -> str:
    """The sample behind an accepted part, in sentences.

    Args:
        part: ``goal``, ``pool``, ``checked``, ``accepted_checked``, ``wrong``, ``unlabelable``, ``tolerance`` and
            ``model``.

    Examples:
        >>> part = {"goal": "corrected", "pool": 3000, "checked": 200, "accepted_checked": 140, "wrong": 2,
        ...     "unlabelable": 1, "tolerance": None, "model": ""}
        >>> print(accepted_evidence(part))
        A random check of 200 of 3,000 items contains 140 of the accepted part, of which 2 are wrong. 1 of these could
        not be labelled and counts as wrong. The items that the check found wrong have the labels of people.
    """
    are = "is" if part["wrong"] == 1 else "are"
    found = f"{part['accepted_checked']:,} of the accepted part, of which {part['wrong']:,} {are}"
    drawn = f"A random check of {part['checked']:,} of {count(part['pool'], 'item')}"
    said = [f"{drawn} contains {found} {fault_words(part['tolerance'])}."]
    if not part["accepted_checked"]:
        said = [f"{drawn} was answered."]
    if part["unlabelable"]:
        counts = "counts" if part["unlabelable"] == 1 else "count"
        said.append(f"{part['unlabelable']:,} of these could not be labelled and {counts} as wrong.")
    if part["goal"] == "corrected":
        said.append("The items that the check found wrong have the labels of people.")
    if part["model"]:
        said.append(f"The predictions are those of this model: {part['model']}.")
    return " ".join(said)


def change_sentence(change: Mapping[str, Any]) -> str:
    """Whether the error of two batches differs.

    Args:
        change: ``changed``, ``first`` and ``second`` (each a number of wrong and of checked items) and ``p_value``.

    Examples:
        >>> change = {"changed": True, "first": (2, 100), "second": (12, 100), "p_value": 0.0104}
        >>> print(change_sentence(change))
        The error has changed: 2 of 100 checked predictions were wrong, then 12 of 100 (2 % and 12 %, p = 0.01).
        >>> print(change_sentence({**change, "changed": False, "second": (4, 100), "p_value": 0.683}))
        No change of the error is visible: 2 of 100 checked predictions were wrong, then 4 of 100 (2 % and 4 %,
        p = 0.68).
    """
    (first, of_first), (second, of_second) = change["first"], change["second"]
    lead = "The error has changed" if change["changed"] else "No change of the error is visible"
    counts = f"{first:,} of {count(of_first, 'checked prediction')} {was_or_were(first)} wrong"
    counts += f", then {second:,} of {of_second:,}"
    shares = f"{percent(first / of_first)} and {percent(second / of_second)}"
    return _plain(f"{lead}: {counts} ({shares}, {p_words(change['p_value'])}).")


def confidence_sentence(judged: Mapping[str, Any]) -> str:
    """Whether a confidence orders errors.

    Args:
        judged: ``orders`` (None if this cannot be said), ``auc``, ``p_value``, ``wrong`` and ``right``.

    Examples:
        >>> judged = {"orders": True, "auc": 0.81, "p_value": 0.0004, "wrong": 12, "right": 188}
        >>> print(confidence_sentence(judged))
        The confidence orders errors: a wrong prediction is less sure than a right one in 81 % of all pairs
        (12 wrong, 188 right, p < 0.001).
        >>> print(confidence_sentence({**judged, "orders": False, "auc": 0.52, "p_value": 0.4}))
        No order of errors by confidence is visible: a wrong prediction is less sure than a right one in 52 % of all
        pairs (12 wrong, 188 right, p = 0.4).
        >>> print(confidence_sentence({**judged, "orders": None, "wrong": 1}))
        Whether the confidence orders errors cannot be said yet: the checked items have 1 wrong and 188 right
        predictions.
    """
    if judged["orders"] is None:
        return (
            f"Whether the confidence orders errors cannot be said yet: the checked items have {judged['wrong']:,} "
            f"wrong and {judged['right']:,} right predictions."
        )
    lead = "The confidence orders errors" if judged["orders"] else "No order of errors by confidence is visible"
    pairs = f"a wrong prediction is less sure than a right one in {percent(judged['auc'])} of all pairs"
    counts = f"{judged['wrong']:,} wrong, {judged['right']:,} right, {p_words(judged['p_value'])}"
    return _plain(f"{lead}: {pairs} ({counts}).")


def p_words(value: float) -> str:
    """A p-value with two digits.

    Examples:
        >>> p_words(0.0104), p_words(0.0004), p_words(0.996)
        ('p = 0.01', 'p < 0.001', 'p = 1')
    """
    return "p < 0.001" if value < 0.001 else f"p = {value:.2g}"


def _sure(statement: Mapping[str, Any]) -> str:
    """The confidence, and the number of the check if it is not the first."""
    sure = f"{percent_at_least(statement['confidence'])} confidence"
    return sure if statement["number"] == 1 else f"{sure}; check {statement['number']} of these items"


def _plain(words: str) -> str:
    return words.replace("\u00a0", " ")
