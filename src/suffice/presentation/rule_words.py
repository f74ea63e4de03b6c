"""Sentences about a stopping rule: what it compares, with which limit, and what this means."""

from typing import Final

from suffice.presentation.text_format import count, percent

#: The rule that compares an error ratio.
RATIO_RULE: Final = "ErrorStability"
#: The rules that compare the worth of a label with its cost.
WORTH_RULES: Final = frozenset({"LabelWorth", "ExpectedCost"})
#: What a stop of a screening does not cover, as a clause.
RANKED_LAST: Final = "only a random check covers relevant items that are ranked last"
ERROR_RATIO_EXPLAINED: Final = (
    "The rule bounds how much each label changed the error of the model, and divides this by the bound at the start: "
    "this is the error ratio. It is 1 at the start and falls as the model learns. When it reaches the threshold, the "
    "last label changed very little, and the rule says stop. The next labels are likely to change no more, but this is "
    "not certain."
)


def quantity_name(rule: str) -> str:
    """Name of the number that a rule compares."""
    if rule == RATIO_RULE:
        return "error ratio"
    return "worth of a label" if rule in WORTH_RULES else f"value of {rule}"


def threshold_name(rule: str) -> str:
    """Name of the limit that a rule compares its number with."""
    return "cost" if rule in WORTH_RULES else "threshold"


def compared_sentence(rule: str, n_labelled: int, value: float, threshold: float | None) -> str:
    """The last comparison of a rule.

    Examples:
        >>> compared_sentence("LabelWorth", 300, 0.21, 1.0)
        'After 300 labels, the worth of a label is 0.21, and its cost is 1.'
        >>> compared_sentence("ErrorStability", 300, 0.07, 0.1)
        'After 300 labels, the error ratio is 0.07, and the threshold is 0.1.'
    """
    its = "its" if rule in WORTH_RULES else "the"
    limit = "" if threshold is None else f", and {its} {threshold_name(rule)} is {threshold:.3g}"
    return f"After {count(n_labelled, 'label')}, the {quantity_name(rule)} is {value:.3g}{limit}."


def curve_caption(rule: str, *, forecast: bool) -> str:
    """Caption of the curve of a rule."""
    least = " (thin) and its least so far (bold)" if rule == RATIO_RULE else ""
    end = " The grey area is the expected range of the stop." if forecast else ""
    limit = f"the {threshold_name(rule)} that it is compared with (dashed)"
    return f"The {quantity_name(rule)} after each label{least}, and {limit}.{end}"


def details_sentence(rule: str, reason: str) -> str:
    """Values that a rule compared at its stop.

    Examples:
        >>> details_sentence("LabelWorth", "1 more label is worth 0.9, which is below its cost of 1")
        'Details: by the rule LabelWorth, 1 more label is worth 0.9, which is below its cost of 1.'
    """
    return f"Details: by the rule {rule}, {reason}."


def certified_change_sentence(change: float) -> str:
    """Meaning of a certificate without theory."""
    return (
        "In other words: the newest label changed the error of the model by at most "
        f"{percent(change)} of the range between the best and the worst possible error."
    )
