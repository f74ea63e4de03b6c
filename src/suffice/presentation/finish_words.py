"""Sentences about a goal for a whole data set: progress towards it, its check, and what is guaranteed at the end."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, NamedTuple

from suffice.presentation.guarantee_words import all_by_people, fault_words, wrong_labels_words
from suffice.presentation.text_format import (
    count,
    interval_words,
    is_or_are,
    number,
    percent,
    percent_at_least,
    shortened,
    two_digits,
)

#: Why the model of a screening is not chosen on its labels.
NO_CHOICE_IN_SCREENING: Final = (
    "--model auto compares models by their errors, which are not the aim of a screening; name a model, or leave "
    "--model out"
)


class FinishWords(NamedTuple):
    """A decision about a goal for a whole data set, in words.

    Attributes:
        headline: The answer in a few words.
        tone: Name of its colour, as in :class:`suffice.presentation.decision_words.DecisionWords`.
        sentences: The answer with its numbers; the first one begins with the headline.
    """

    headline: str
    tone: str
    sentences: list[str]


def finish_words(decision: Mapping[str, Any]) -> FinishWords:
    r"""A decision about a goal for a whole data set, after the model has started.

    Args:
        decision: The result of :meth:`suffice.session.decision.Decision.as_dict`, with ``of="all"``.

    Examples:
        >>> plan = {"at_most": 0.05, "rows": 4000, "by_people": 620, "allowed": 200, "wrong": 310.0, "more_labels": 300,
        ...     "check_size": 148, "check_low": 90, "check_high": 260, "check_now": False, "predicted": 2932}
        >>> words = finish_words({"answer": "keep going", "n_labelled": 620, "unlabelled": 3380, "finish": plan})
        >>> print("\n".join(words.sentences).replace("\xa0", " "))
        Keep labelling: 620 labels so far, about 300 more and a check of about 150; then about 2,900 labels are
        predictions (extrapolated).
        Your goal: at most 5 % of all 4,000 labels are wrong (200). Now about 310 of 3,380 predictions would be wrong
        (estimate).
        >>> screened = {**plan, "class_name": "yes", "found": 190, "allowed": 13, "wrong": 61.0}
        >>> words = finish_words({"answer": "keep going", "n_labelled": 620, "unlabelled": 3380, "finish": screened})
        >>> print("\n".join(words.sentences).replace("\xa0", " "))
        Keep screening: 620 items are read, about 300 more and a check of about 150; then about 2,900 items are not
        read (extrapolated).
        Your goal: at most 5 % of the items of class 'yes' are missed. 190 are found, and about 61 are among the 3,380
        items that nobody has read (estimate).
    """
    reached, pending = decision.get("data_set"), decision.get("check_pending")
    if decision["answer"] in ("enough", "complete") and reached is not None:
        headline = "Your goal is reached"
        return FinishWords(headline, "good", [f"{headline}: {reached_words(reached)}"])
    if decision["answer"] == "complete":
        return FinishWords("Nothing is left to label", "quiet", ["Nothing is left to label."])
    plan = decision["finish"]
    # A check may start before the first plan.
    goal = "" if plan is None else f" Your goal: {goal_and_number_words(plan)}."
    if pending:
        headline = "A check is running"
        now = f"{count(pending, 'random item')} {'has' if pending == 1 else 'have'} no answer yet"
        return FinishWords(headline, "on", [f"{headline}: {now}.", f"It ends as soon as your goal is proven.{goal}"])
    goal = goal.lstrip()
    screening = plan.get("class_name") is not None
    headline = "Time for a check" if plan["check_now"] else "Keep screening" if screening else "Keep labelling"
    unlabelled = decision["unlabelled"]
    if screening:
        left = two_digits(round(plan["wrong"]))
        verb = "is" if left == 1 else "are"
        others = f"about {left:,} {verb} among the {count(unlabelled, 'item')} that nobody has read (estimate)"
        said = f"{goal} {plan['found']:,} {'is' if plan['found'] == 1 else 'are'} found, and {others}."
        return FinishWords(headline, "on", [f"{headline}: {progress_words(plan)}.", said])
    about = f"{two_digits(round(plan['wrong'])):,} of {count(unlabelled, 'prediction')}"
    fault = fault_words(plan.get("tolerance"))
    wrong = f"Now about {about} would be {fault} (estimate)."
    return FinishWords(headline, "on", [f"{headline}: {progress_words(plan)}.", f"{goal} {wrong}"])


def progress_words(plan: Mapping[str, Any]) -> str:
    """Labels so far, labels and check to come, and what is left for the model; a part of a sentence.

    Args:
        plan: The result of :meth:`suffice.checks.FinishPlan.as_dict`.

    Examples:
        >>> plan = {"by_people": 620, "more_labels": 0, "check_size": 148, "check_low": 90, "check_high": 260,
        ...     "check_now": True, "predicted": 3232}
        >>> print(progress_words(plan))
        620 labels so far, and a check of about 150 (between 90 and 260) now; then about 3,200 labels are predictions
        (extrapolated)
    """
    so_far, size = f"{count(plan['by_people'], 'label')} so far", two_digits(plan["check_size"])
    screening = plan.get("class_name") is not None
    if screening:
        so_far = f"{count(plan['by_people'], 'item')} {is_or_are(plan['by_people'])} read"
    if plan["check_now"]:
        left = plan["check_size"] + plan["predicted"]
        low, high = two_digits(plan["check_low"], left), two_digits(plan["check_high"], left)
        parts = f"and a check of about {size:,}{interval_words(low, high)} now"
    elif plan["check_size"]:
        parts = f"about {two_digits(plan['more_labels']):,} more and a check of about {size:,}"
    else:
        parts = f"about {two_digits(plan['more_labels']):,} more, and no check"
    left = two_digits(plan["predicted"])
    then = f"then about {count(left, 'label')} {_are_predictions(left)}"
    if screening:
        then = f"then about {count(left, 'item')} {is_or_are(left)} not read"
    return f"{so_far}, {parts}; {then} (extrapolated)"


def reached_words(reached: Mapping[str, Any]) -> str:
    r"""What is guaranteed about all final labels, or about the class of a screening.

    Args:
        reached: The result of :meth:`suffice.checks.DataSetGuarantee.to_dict`, or of that of a
            :class:`suffice.checks.ScreeningGuarantee`.

    Examples:
        >>> print(reached_words({"rows": 4000, "by_people": 770, "predicted": 3230, "wrong_at_most": 200,
        ...     "confidence": 0.95, "annotator_error": 0.0}).replace("\xa0", " "))
        at most 200 of all 4,000 labels are wrong (95 % confidence). 770 labels are by people, which count as right, and
        3,230 are predictions.
        >>> print(reached_words({"class_name": "yes", "predicted": 4200, "statement": "People have found all."}))
        people have found all. This is about class 'yes' only: the labels of the 4,200 items that nobody read are
        predictions, which may be wrong.
    """
    if reached.get("class_name") is not None:
        return " ".join(
            [f"{reached['statement'][:1].lower()}{reached['statement'][1:]}", *only_class_sentences(reached)]
        )
    if all_by_people(reached):
        return f"all {count(reached['rows'], 'label')} are by people, which count as right."
    sure, error = reached["confidence"], reached["annotator_error"]
    confidence = f" ({percent_at_least(sure)} confidence)" if sure < 1.0 else ""
    counts = "counts" if reached["by_people"] == 1 else "count"
    people = f"of which at most {percent(error)} are taken to be wrong" if error else f"which {counts} as right"
    most = f"{wrong_labels_words(reached)}{confidence}."
    if not reached["predicted"]:
        return f"{most} All of them are by people, {people}."
    given = f"{count(reached['by_people'], 'label')} {is_or_are(reached['by_people'])} by people, {people}"
    return f"{most} {given}, and {reached['predicted']:,} {_are_predictions(reached['predicted'])}."


def only_class_sentences(reached: Mapping[str, Any]) -> list[str]:
    """What the guarantee of a screening is not about; empty if all items are read.

    Args:
        reached: The result of :meth:`suffice.checks.ScreeningGuarantee.to_dict`.

    Examples:
        >>> only_class_sentences({"class_name": "yes", "predicted": 0})
        []
    """
    if not reached["predicted"]:
        return []
    items = f"the {count(reached['predicted'], 'item')} that nobody read"
    name = repr(shortened(str(reached["class_name"]), 40))
    return [f"This is about class {name} only: the labels of {items} are predictions, which may be wrong."]


def all_or_rest_sentences(plan: Mapping[str, Any]) -> list[str]:
    r"""The difference between a goal for all labels and a target for the rest, with the numbers of a project.

    Args:
        plan: The result of :meth:`suffice.checks.FinishPlan.as_dict`.

    Examples:
        >>> sentences = all_or_rest_sentences({"at_most": 0.05, "rows": 4000, "by_people": 620, "allowed": 200})
        >>> print("\n".join(sentences).replace("\xa0", " "))
        Of all: at most 5 % of all 4,000 labels are wrong (200). The 620 labels by people count as right, so 200 of the
        3,380 predictions may be wrong, 5.9 %. With more labels by people it is a larger share of fewer predictions, so
        every goal can be reached.
        Of the rest: at most 5 % of the 3,380 predictions are wrong, 169. Labels by people do not count, and a model
        that is wrong more often does not reach it.
    """
    rows, people, allowed = plan["rows"], plan["by_people"], plan["allowed"]
    rest = rows - people
    share, most = percent(plan["at_most"]), int(Fraction(repr(plan["at_most"])) * rest)
    of_rest = f" of the {count(rest, 'prediction')} may be wrong"
    wrong = f"{min(allowed, rest):,}{of_rest}, {percent(allowed / rest)}" if 0 < allowed < rest else f"any{of_rest}"
    wrong = wrong if allowed else f"none{of_rest}"
    return [
        f"Of all: {goal_and_number_words(plan)}. The {count(people, 'label')} by people count as right, so {wrong}. "
        "With more labels by people it is a larger share of fewer predictions, so every goal can be reached.",
        f"Of the rest: at most {share} of the {count(rest, 'prediction')} are wrong, {most:,}. Labels by people do not "
        "count, and a model that is wrong more often does not reach it.",
    ]


def finished_run_sentences(about: Mapping[str, Any]) -> list[str]:
    r"""The result of a simulated run to a goal for a whole data set, the most important first.

    Args:
        about: ``rows``, ``labelled_by_people``, ``in_check``, ``true_wrong``, ``at_most``, and ``guarantee``, the
            result of :meth:`suffice.checks.DataSetGuarantee.to_dict`. For a screening ``true_missed`` and ``found``
            instead of ``true_wrong``.

    Examples:
        >>> guarantee = {"rows": 4000, "by_people": 770, "predicted": 3230, "wrong_at_most": 200, "confidence": 0.95,
        ...     "annotator_error": 0.0}
        >>> about = {"rows": 4000, "labelled_by_people": 770, "in_check": 150, "true_wrong": 118, "at_most": 0.05}
        >>> print("\n".join(finished_run_sentences({**about, "guarantee": guarantee})).replace("\xa0", " "))
        Labels of people: 770 of 4,000, of which 150 in the check. 3,230 labels (81 %) would have been saved.
        Guaranteed: at most 200 of all 4,000 labels are wrong (95 % confidence). 770 labels are by people, which count
        as right, and 3,230 are predictions.
        In truth 118 of the 4,000 labels are wrong (2.9 %). Your goal was at most 5 %.
    """
    rows, people, guarantee = about["rows"], about["labelled_by_people"], about["guarantee"]
    checked = f", of which {about['in_check']:,} in the check" if about["in_check"] else ""
    saved = rows - people
    share = f" ({percent(saved / rows)})" if saved else ""
    if guarantee.get("class_name") is not None:
        return [
            f"Read by people: {people:,} of {count(rows, 'item')}{checked}. {count(saved, 'item')}{share} would not "
            "have been read.",
            f"Guaranteed: {reached_words(guarantee)}",
            _truly_missed(about),
        ]
    wrong = about["true_wrong"]
    tolerance = guarantee.get("tolerance")
    fault = "wrong" if tolerance is None else f"off by more than {number(tolerance)}"
    truly = f" ({percent(wrong / rows)})" if wrong else ""
    return [
        f"Labels of people: {people:,} of {rows:,}{checked}. {count(saved, 'label')}{share} would have been saved.",
        f"Guaranteed: {reached_words(guarantee)}",
        f"In truth {wrong:,} of the {count(rows, 'label')} {is_or_are(wrong)} {fault}{truly}. "
        f"Your goal was at most {percent(about['at_most'])}.",
    ]


def model_switch_sentence(name: str, n_labelled: int) -> str:
    """That another model was used from a number of labels on.

    Examples:
        >>> model_switch_sentence("a forest of randomised trees", 50)
        'From 50 labels on, the model was a forest of randomised trees, which was better on the labels so far.'
    """
    return f"From {count(n_labelled, 'label')} on, the model was {name}, which was better on the labels so far."


def _truly_missed(about: Mapping[str, Any]) -> str:
    """How many rows of the class a simulated screening has missed."""
    missed, found = about["true_missed"], about["found"]
    total = found + missed
    share = f" ({percent(missed / total)})" if missed else ""
    name = repr(shortened(str(about["guarantee"]["class_name"]), 40))
    said = f"In truth {missed:,} of the {count(total, 'item')} of class {name} {is_or_are(missed)} missed{share}."
    return f"{said} Your goal was at most {percent(about['at_most'])}."


def goal_and_number_words(goal: Mapping[str, Any]) -> str:
    r"""The goal with the number of labels that may be wrong, without the full stop at the end.

    Args:
        goal: ``at_most``, ``rows``, ``allowed`` (the number of wrong predictions), ``annotator_error`` and
            ``tolerance``; in a screening ``class_name``.

    Examples:
        >>> goal = {"at_most": 0.05, "rows": 403, "allowed": 20}
        >>> print(goal_and_number_words(goal).replace("\xa0", " "))
        at most 5 % of all 403 labels are wrong (20)
        >>> print(goal_and_number_words({**goal, "allowed": 12, "annotator_error": 0.02}).replace("\xa0", " "))
        at most 5 % of all 403 labels are wrong (20). Up to 2 % of the labels of people may be wrong, so at most 12
        predictions may be
    """
    if goal.get("class_name") is not None:
        name = repr(shortened(str(goal["class_name"]), 40))
        return f"at most {percent(goal['at_most'])} of the items of class {name} are missed"
    number_of, fault = int(Fraction(repr(goal["at_most"])) * goal["rows"]), fault_words(goal.get("tolerance"))
    said = f"at most {percent(goal['at_most'])} of all {count(goal['rows'], 'label')} are {fault} ({number_of:,})"
    if not goal.get("annotator_error"):
        return said
    share, allowed = percent(goal["annotator_error"]), goal["allowed"]
    predictions = f"at most {count(allowed, 'prediction')}" if allowed else "no prediction"
    return f"{said}. Up to {share} of the labels of people may be wrong, so {predictions} may be"


def _are_predictions(number_of: int) -> str:
    return "is a prediction" if number_of == 1 else "are predictions"
