"""How many answers a check takes, and what a random sample has shown, in sentences."""

from collections.abc import Mapping, Sequence
from math import isclose
from typing import Any

from suffice.presentation.text_format import (
    count,
    duration,
    percent,
    percent_at_least,
    percent_at_most,
    percents_around,
    two_digits,
)


def answer_plan_sentences(plan: Mapping[str, Any], seconds: float | None = None) -> list[str]:
    r"""How many answers a check takes.

    Args:
        plan: The fields of :class:`suffice.checks.AnswerPlan`.
        seconds: Seconds that an answer takes, to state the time; None if it is not known.

    Examples:
        >>> plan = {"at_most": 0.05, "expected": 0.06, "planned_for": 0.06, "pool": 900, "confidence": 0.95,
        ...     "alpha": 0.025, "fixed": None, "corrected": False, "fewest": 74, "low": None, "median": None,
        ...     "high": None}
        >>> for sentence in answer_plan_sentences(plan):
        ...     print(sentence.replace("\xa0", " "))
        That at most 5 % of 900 predictions are wrong cannot be proven if 6 % are wrong.
        Let people correct the wrong ones that a check finds, or allow more.
    """
    goal, size = percent_at_most(plan["at_most"]), plan["pool"]
    expected = _share_words(plan["expected"])
    later = " after corrections" if plan["corrected"] else ""
    what = f"at most {goal} of {count(size, 'prediction')} are wrong{later}"
    if plan["median"] is None:
        remedy = "Let people correct the wrong ones that a check finds, or allow more."
        return [
            f"That {what} cannot be proven if {expected} are wrong.",
            "Allow more." if plan["corrected"] else remedy,
        ]
    sure = f"({percent_at_least(plan['confidence'])} confidence)"
    time = "" if seconds is None else f", about {duration(plan['median'] * seconds)}"
    sentences = [
        f"To prove that {what} {sure} takes about {count(two_digits(plan['median'], size), 'answer')}{time}, "
        f"if {expected} are wrong."
    ]
    low, high = (None if plan[name] is None else two_digits(plan[name], size) for name in ("low", "high"))
    within = "" if low is None else f"One check of ten ends within {count(low, 'answer')}"
    if high is None:
        sentences.append(f"{within}, and more than one of ten proves nothing.")
    elif low != high:
        longest = "" if seconds is None else f" (about {duration(plan['high'] * seconds)})"
        sentences.append(f"{within}, and nine of ten within {high:,}{longest}.")
    if plan["fixed"] is not None:
        sentences.append(
            f"A check of fixed size takes {count(plan['fixed'], 'answer')}, and succeeds with a probability of "
            f"{percent(0.8)}."
        )
    return [*sentences, planned_for_sentence(plan["planned_for"], plan["at_most"])]


def planned_for_sentence(share: float, at_most: float) -> str:
    r"""Which share of wrong predictions a check is planned for.

    Args:
        share: That share.
        at_most: The target.

    Examples:
        >>> for share in (0.0, 0.01, 0.025):
        ...     print(planned_for_sentence(share, 0.05).replace("\xa0", " "))
        The check is planned for no wrong prediction.
        The check is planned for 1 % wrong.
        The check is planned for 2.5 % wrong, half of the target.
    """
    if not share:
        return "The check is planned for no wrong prediction."
    half = ", half of the target" if isclose(share, 0.5 * at_most) else ""
    return f"The check is planned for {percent(share)} wrong{half}."


def answer_table_rows(plans: Sequence[Mapping[str, Any]], seconds: float | None = None) -> list[list[str]]:
    """The rows of a table of plans for one target: the share that is wrong, and numbers of answers.

    Args:
        plans: As for :func:`answer_plan_sentences`, with growing expected shares.
        seconds: As for :func:`answer_plan_sentences`.

    Examples:
        >>> plan = {"expected": 0.01, "pool": 900, "low": 76, "median": 124, "high": 310, "fixed": 138}
        >>> [cell.replace(chr(160), " ") for cell in answer_table_rows([plan], seconds=10.0)[0]]
        ['1 %', '120', '76 to 310', '138', '21 minutes']
    """
    rows = []
    for plan in plans:
        numbers = [None if plan[name] is None else two_digits(plan[name], plan["pool"]) for name in ("low", "high")]
        within = " to ".join(dict.fromkeys("never" if each is None else f"{each:,}" for each in numbers))
        row = [_share_words(plan["expected"])]
        row.append("never" if plan["median"] is None else f"{two_digits(plan['median'], plan['pool']):,}")
        row += [within, "" if plan["fixed"] is None else f"{plan['fixed']:,}"]
        if seconds is not None:
            row.append("" if plan["median"] is None else duration(plan["median"] * seconds))
        rows.append(row)
    return rows


def sample_sentences(sample: Mapping[str, Any]) -> list[str]:
    r"""What a random sample has shown.

    Args:
        sample: The fields of :class:`suffice.checks.SampleBounds`.

    Examples:
        >>> sample = {"pool": 60, "checked": 60, "wrong": 3, "confidence": 0.95, "at_most": 0.05, "at_least": 0.05,
        ...     "remaining_at_most": None}
        >>> print(sample_sentences(sample)[0].replace("\xa0", " "))
        All 60 predictions were checked, and 3 are wrong, 5 %.
    """
    size, checked, wrong = (sample[name] for name in ("pool", "checked", "wrong"))
    faults, verb = (f"{wrong:,}" if wrong else "none"), ("is" if wrong == 1 else "are")
    part = f", {percent(wrong / checked)}" if wrong else ""
    if checked == size:
        return [f"All {count(size, 'prediction')} were checked, and {faults} {verb} wrong{part}."]
    sure = f"({percent_at_least(sample['confidence'])} confidence)"
    sentences = [
        f"At most {percent_at_most(sample['at_most'])} of the {size:,} predictions are wrong {sure}.",
        f"{faults.capitalize()} of the {count(checked, 'checked one')} {verb} wrong{part}.",
    ]
    others, rest = f"{size - checked:,}", percent_at_most(sample["remaining_at_most"])
    if not wrong:
        return [*sentences, f"Of the other {others}, at most {rest} are wrong."]
    least = percents_around(sample["at_least"], sample["at_most"])[0]
    return [
        *sentences,
        f"With the same confidence at least {least}\u00a0% are wrong.",
        f"If the wrong ones that were found are corrected, at most {rest} of the other {others} are wrong.",
    ]


def _share_words(share: float) -> str:
    """A share in percent, or that none is."""
    return percent(share) if share else "none"
