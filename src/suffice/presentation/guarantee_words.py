"""Parts of sentences about what is guaranteed for a finished data set, the same wherever it is stated."""

from collections.abc import Mapping
from typing import Any, Final

from suffice.presentation.text_format import count, number_at_most, percent, percent_at_most

#: The share of wrong labels of people in the example, if the opinions of several people show none.
_EXAMPLE_ERROR: Final = 0.05


def fault_words(tolerance: float | None) -> str:
    """What "wrong" means: wrong, or off by more than a tolerance.

    Examples:
        >>> fault_words(None), fault_words(2.5)
        ('wrong', 'off by more than 2.5')
    """
    return "wrong" if tolerance is None else f"off by more than {number_at_most(tolerance)}"


def all_by_people(guarantee: Mapping[str, Any]) -> bool:
    """Whether all labels are by people and count as right.

    Args:
        guarantee: Result of :meth:`suffice.checks.DataSetGuarantee.to_dict`.
    """
    return guarantee.get("predicted") == 0 and not guarantee.get("annotator_error")


def wrong_labels_words(guarantee: Mapping[str, Any], *, share: bool = False) -> str:
    r"""How many of all labels are wrong at most, as a part of a sentence.

    Args:
        guarantee: Result of :meth:`suffice.checks.DataSetGuarantee.to_dict`.
        share: Whether the share is told too.

    Examples:
        >>> wrong_labels_words({"wrong_at_most": 50, "rows": 1000, "value": 0.05}, share=True)
        'at most 50 of all 1,000 labels (5\xa0%) are wrong'
        >>> wrong_labels_words({"wrong_at_most": 1, "rows": 30, "tolerance": 2.0})
        'at most 1 of all 30 labels is off by more than 2'
        >>> wrong_labels_words({"wrong_at_most": 0, "rows": 60})
        'none of all 60 labels is wrong'
    """
    wrong, fault = guarantee["wrong_at_most"], fault_words(guarantee.get("tolerance"))
    labels = count(guarantee["rows"], "label")
    if not wrong:
        return f"none of all {labels} is {fault}"
    labels += f" ({percent_at_most(guarantee['value'])})" if share else ""
    return f"at most {wrong:,} of all {labels} {'is' if wrong == 1 else 'are'} {fault}"


def errors_of_people_words(guarantee: Mapping[str, Any], *, seen: float | None = None, option: bool = False) -> str:
    r"""What it would mean if some labels of people are wrong, with the numbers of the project; empty without need.

    It is empty if a share is stated, in a screening, and without labels of people.

    Args:
        guarantee: Result of :meth:`suffice.checks.DataSetGuarantee.to_dict`.
        seen: The share of wrong labels of one person that the opinions of several people show, or None.
        option: Whether to name the option that states the share.

    Examples:
        >>> print(errors_of_people_words({"by_people": 276}).replace("\xa0", " "))
        Labels of people count as right. If 5 % of the 276 labels of people are wrong, about 14 more labels are wrong.
        >>> print(errors_of_people_words({"by_people": 276}, seen=0.04).replace("\xa0", " "))
        Labels of people count as right. By the opinions of several people, about 4 % of the 276 labels of people are
        wrong: then about 11 more labels are wrong.
        >>> errors_of_people_words({"by_people": 276, "annotator_error": 0.02})
        ''
    """
    if guarantee.get("annotator_error") or guarantee.get("class_name") is not None or not guarantee["by_people"]:
        return ""
    people = guarantee["by_people"]
    more = max(1, round((_EXAMPLE_ERROR if seen is None else seen) * people))
    others = "label" if guarantee.get("predicted") == 0 else "more label"
    labels, wrong = count(people, "label"), f"about {count(more, others)} {'is' if more == 1 else 'are'} wrong"
    said = f"If {percent(_EXAMPLE_ERROR)} of the {labels} of people are wrong, {wrong}"
    if seen is not None:
        share = f"about {percent(seen)} of the {labels} of people are wrong"
        said = f"By the opinions of several people, {share}: then {wrong}"
    how = "; state such a share with --annotator-error (Settings: wrong labels of people)"
    return f"Labels of people count as right. {said}{how if option else ''}."
