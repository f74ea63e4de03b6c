"""Sentences about a goal for all labels of a project: the statement, what it covers, and what is missing."""

from collections.abc import Mapping
from typing import Any

from suffice.presentation.finish_words import goal_and_number_words, only_class_sentences
from suffice.presentation.guarantee_words import all_by_people
from suffice.presentation.text_format import (
    count,
    duration,
    number,
    percent,
    percent_at_least,
    percent_at_most,
    shortened,
    two_digits,
    utc_date,
)


def reached_sentences(reached: Mapping[str, Any]) -> list[str]:
    r"""What is guaranteed about all labels, and what is not covered.

    Args:
        reached: The result of :meth:`suffice.checks.DataSetGuarantee.to_dict`, or that of a
            :class:`suffice.checks.ScreeningGuarantee`, and ``at`` (when the check started, or None), ``added`` (rows
            that were added since) and ``classes_since``.

    Examples:
        >>> reached = {"statement": "At most 200 of all 4,000 labels are wrong.", "rows": 4000, "left_out": 0,
        ...     "at": "2026-05-03T10:00:00Z", "added": 200, "classes_since": "merged"}
        >>> print(*reached_sentences(reached), sep="\n")
        Guaranteed: at most 200 of all 4,000 labels are wrong.
        This covers the 4,000 rows of 3 May 2026; 200 new ones are not covered.
        Classes were merged since the check, which can only lower the number of wrong labels.
    """
    statement = reached["statement"]
    said = [f"Guaranteed: {statement[:1].lower()}{statement[1:]}"]
    screening = reached.get("class_name") is not None
    if reached.get("errors_of_people"):
        said.append(reached["errors_of_people"])
    if screening:
        said += only_class_sentences(reached)
    added, left_out = reached["added"], reached["left_out"]
    if added:
        new = "1 new one is" if added == 1 else f"{added:,} new ones are"
        rows = count(reached["rows"] + left_out, "row")
        said.append(f"This covers the {rows} of {utc_date(reached['at'])}; {new} not covered.")
    if left_out:
        said.append(
            "One row could not be labelled and is not covered."
            if left_out == 1
            else f"{left_out:,} rows could not be labelled and are not covered."
        )
    if reached["classes_since"] == "merged":
        since = "Other classes were merged since the check, which does not change this."
        if not screening:
            since = "Classes were merged since the check, which can only lower the number of wrong labels."
        said.append(since)
    return _plain(said)


def reached_figure(reached: Mapping[str, Any]) -> tuple[str, str]:
    r"""What is guaranteed, as a figure and a note.

    Args:
        reached: The result of :meth:`suffice.checks.DataSetGuarantee.to_dict`, or that of a
            :class:`suffice.checks.ScreeningGuarantee`.

    Examples:
        >>> reached_figure({"wrong_at_most": 200, "rows": 4000})
        ('at most 200 of 4,000', 'labels wrong, guaranteed')
        >>> reached_figure({"class_name": "yes", "recall_at_least": 0.9512})
        ('≥ 95.1\xa0%', 'of yes found, guaranteed')
    """
    if reached.get("class_name") is not None:
        name = shortened(str(reached["class_name"]), 20)
        return f"≥ {percent_at_least(reached['recall_at_least'])}", f"of {name} found, guaranteed"
    if all_by_people(reached):
        return f"all {reached['rows']:,}", "labels by people"
    return f"at most {reached['wrong_at_most']:,} of {reached['rows']:,}", "labels wrong, guaranteed"


def missing_sentence(missing: Mapping[str, Any]) -> str:
    """What is missing for the goal.

    Args:
        missing: ``reason``: ``"no goal"``, ``"unchecked"`` (with ``at_most`` and ``left``), ``"open"`` or
            ``"incomplete"`` (with ``pending``), ``"taken back"`` (with ``labels``), ``"classes"``, ``"short"`` (as for
            :func:`short_sentence`), or ``"corrected"`` (in a screening: too few items of the class are left after
            corrections); with ``"classes"`` and ``"corrected"`` ``given_up``, whether a later check was given up. In a
            screening also ``class_name``.

    Examples:
        >>> print(missing_sentence({"reason": "unchecked", "at_most": 0.05, "left": 3000}))
        the goal is not reached: no check has proven that at most 5 % of all labels are wrong; 3,000 items have no
        label; start a check, or label more items
        >>> print(missing_sentence({"reason": "taken back", "labels": 1}))
        the goal is not reached: 1 label was taken back since the check started, and nothing covers its item; label it
        again, or skip it
    """
    reason = missing["reason"]
    later = "a later check was given up; " if missing.get("given_up") else ""
    if reason == "no goal":
        return (
            "the project has no goal about all labels; set one under Settings on its page, or make the project with "
            "--at-most 5% --of all; then start a check"
        )
    if reason == "unchecked":
        most, left = percent_at_most(missing["at_most"]), missing["left"]
        goal = f"at most {most} of all labels are wrong"
        if missing.get("class_name") is not None:
            goal = _missed_words(missing["at_most"], missing["class_name"])
        why = f"no check has proven that {goal}; {count(left, 'item')} "
        why += f"{'has' if left == 1 else 'have'} no label; start a check, or label more items"
    elif reason == "taken back":
        labels = missing["labels"]
        verb, its = ("was", "its item; label it") if labels == 1 else ("were", "their items; label them")
        again = its.rpartition(" ")[2]
        why = f"{count(labels, 'label')} {verb} taken back since the check started, and nothing covers {its} again, or "
        why += f"skip {again}"
    elif reason == "classes":
        why = "classes were added or removed since the check, whose predictions are about the classes of that time; "
        why += f"{later}start another check"
    elif reason == "short":
        proven = short_sentence(missing)
        why = f"{proven[0].lower()}{proven[1:-1]}; label rows that were skipped, or go on until another check proves it"
    elif reason == "corrected":
        why = "labels were corrected since the check started, and fewer items of the class are found than it counted "
        why += f"with; {later}start another check, or label more items"
    else:
        pending = missing["pending"]
        verb = "has" if pending == 1 else "have"
        why = f"{count(pending, 'item')} of the check {verb} no answer; answer {'it' if pending == 1 else 'them'}"
    return _plain([f"the goal is not reached: {why}"])[0]


def short_sentence(proven: Mapping[str, Any]) -> str:
    """What a check has proven, if it is less than the goal because rows have left the data set.

    Args:
        proven: The result of :meth:`suffice.checks.DataSetGuarantee.to_dict`.

    Examples:
        >>> print(short_sentence({"wrong_at_most": 8, "rows": 137, "left_out": 43, "value": 8 / 137, "at_most": 0.05}))
        A check has proven 5.9 %, at most 8 of 137 labels, and the goal is 5 %: 43 rows that nobody could label do not
        count.
    """
    left_out = proven["left_out"]
    most = f"at most {proven['wrong_at_most']:,} of {count(proven['rows'], 'label')}"
    rows = f"{count(left_out, 'row')} that nobody could label {'does' if left_out == 1 else 'do'} not count"
    said = f"A check has proven {percent_at_most(proven['value'])}, {most}, and the goal is "
    return _plain([f"{said}{percent_at_most(proven['at_most'])}: {rows}."])[0]


def goal_sentences(goal: Mapping[str, Any]) -> list[str]:
    r"""The goal of a project, how far it is, and what counts as right.

    Args:
        goal: ``goal`` of the status of a project, without its sentences; and ``proven``, as for
            :func:`short_sentence`, if that is less than the goal.

    Examples:
        >>> goal = {"at_most": 0.05, "rows": 4000, "allowed": 200, "tolerance": None, "annotator_error": 0.0,
        ...     "annotator_error_seen": None, "reached": None, "check_open": False, "more_labels": 450, "hours": 1.5,
        ...     "seconds_per_label": 12.0, "by_people": 620, "predicted": 2930,
        ...     "plan": {"sentence": "620 labels so far. ... Predictions supply the other 2,930 labels."}}
        >>> print(*goal_sentences(goal), sep="\n")
        Goal: at most 5 % of all 4,000 labels are wrong (200).
        620 labels so far. ... Predictions supply the other 2,930 labels.
        That takes about 1.5 hours, at 12 seconds a label.
        Labels by people count as right: the guarantee does not cover mistakes of people.
    """
    if goal["reached"] is not None:
        # What is reached says first how labels of people count.
        told = people_sentences(goal)[1 if goal["reached"].get("errors_of_people") else 0 :]
        return _plain([*reached_sentences(goal["reached"]), *told])
    screening = goal.get("class_name") is not None
    said = [_screening_goal_sentence(goal) if screening else f"Goal: {goal_and_number_words(goal)}."]
    if goal.get("proven") is not None:
        said.append(short_sentence(goal["proven"]))
    if goal["plan"] is not None:
        said.append(goal["plan"]["sentence"])
    if goal["hours"]:
        pace = count(round(goal["seconds_per_label"]) or 1, "second")
        said.append(f"That takes about {duration(3600.0 * goal['hours'])}, at {pace} a label.")
    return _plain([*said, *people_sentences(goal)])


def _screening_goal_sentence(goal: Mapping[str, Any]) -> str:
    found, allowed = goal["found"], goal["allowed"]
    now = f"{found:,} {'is' if found == 1 else 'are'} found, so that {allowed:,} may be missed"
    if goal["check_open"]:
        now = f"{found:,} {'is' if found == 1 else 'are'} found, and the check allows {allowed:,} to be missed"
    return f"Goal: {_missed_words(goal['at_most'], goal['class_name'])}; {now}."


def _missed_words(at_most: float, class_name: Any) -> str:
    name = repr(shortened(str(class_name), 40))
    return f"at most {percent_at_most(at_most)} of the items of class {name} are missed"


def goal_check_sentences(goal: Mapping[str, Any]) -> list[str]:
    r"""What the check for the goal is, for the person who starts it; the first sentence says what is to be done.

    Args:
        goal: ``class_name`` in a screening; otherwise it is None or left out.

    Examples:
        >>> print(*goal_check_sentences({"class_name": "yes"}), sep="\n")
        You read items that are drawn at random from those that nobody has read. The check ends by itself when the goal
        is proven.
        An item of class 'yes' that the check finds is found, so each answer improves the result.
        Answer without the prediction. An item that you skip counts as an item of the class.
        You can pause, and others can help. If the check is given up, it proves nothing, and a later one is a little
        longer.
    """
    pause = "You can pause, and others can help. If the check is given up, it proves nothing, and a later one is a "
    pause += "little longer."
    ends = "The check ends by itself when the goal is proven."
    if goal.get("class_name") is not None:
        name = repr(shortened(str(goal["class_name"]), 40))
        return [
            f"You read items that are drawn at random from those that nobody has read. {ends}",
            f"An item of class {name} that the check finds is found, so each answer improves the result.",
            "Answer without the prediction. An item that you skip counts as an item of the class.",
            pause,
        ]
    return [
        f"You label items that are drawn at random from those without a label. {ends}",
        "The predictions of the model are recorded now. Those of items that nobody labels are the final labels.",
        "An item whose prediction is wrong gets your label, so each answer improves the result.",
        "Answer without the prediction. An item that you skip counts as predicted wrong.",
        pause,
    ]


def goal_words(
    at_most: float, tolerance: float | None, labels: str = "labels", *, class_name: str | None = None
) -> str:
    r"""The goal, as a part of a sentence.

    Args:
        at_most: The share of wrong labels.
        tolerance: For numbers: the largest error that is not wrong.
        labels: The labels, with their number if it is known.
        class_name: In a screening, the class of whose items this share may be missed.

    Examples:
        >>> goal_words(0.05, None).replace("\xa0", " "), goal_words(0.05, 2.5).replace("\xa0", " ")
        ('at most 5 % of all labels are wrong', 'at most 5 % of all labels are off by more than 2.5')
    """
    if class_name is not None:
        return _missed_words(at_most, class_name)
    fault = "wrong" if tolerance is None else f"off by more than {number(tolerance)}"
    return f"at most {percent_at_most(at_most)} of all {labels} are {fault}"


def expected_answers_words(answers: int) -> str:
    """How many more answers a check is expected to take.

    Examples:
        >>> expected_answers_words(148), expected_answers_words(1)
        ('about 150 more answers are expected.', 'about 1 more answer is expected.')
    """
    shown = two_digits(answers)
    return f"about {count(shown, 'more answer')} {'is' if shown == 1 else 'are'} expected."


def people_sentences(goal: Mapping[str, Any]) -> list[str]:
    r"""What the goal assumes about labels of people, and what the opinions of several people show.

    Args:
        goal: ``at_most``, ``annotator_error`` and ``annotator_error_seen`` (``share``, ``both`` and ``different``, or
            None).

    Examples:
        >>> seen = {"share": 0.05, "both": 200, "different": 19}
        >>> goal = {"at_most": 0.1, "annotator_error": 0.0, "annotator_error_seen": seen}
        >>> print(*people_sentences(goal), sep="\n")
        Labels by people count as right: the guarantee does not cover mistakes of people.
        Two people labelled 200 items, and differ on 19. If they err independently, about 5 % of the labels of one
        person are wrong. If this is stated as annotator error, it is subtracted from the goal.
        >>> print(people_sentences({**goal, "annotator_error": 0.02, "annotator_error_seen": None})[0])
        At most 2 % of the labels by people are taken to be wrong, which leaves 8 % for predictions. No check proves the
        2 %.
    """
    stated, seen = goal["annotator_error"], goal["annotator_error_seen"]
    said = ["Labels by people count as right: the guarantee does not cover mistakes of people."]
    if stated:
        left = percent(goal["at_most"] - stated)
        said = [
            f"At most {percent(stated)} of the labels by people are taken to be wrong, which leaves {left} for "
            f"predictions. No check proves the {percent(stated)}."
        ]
    if seen is None:
        return _plain(said)
    found = f"Two people labelled {count(seen['both'], 'item')}, and differ on {seen['different']:,}. If they err "
    found += f"independently, about {percent(seen['share'])} of the labels of one person are wrong."
    if seen["share"] >= goal["at_most"]:
        found += " That alone exceeds the goal: ask several people for each item, and correct where they differ."
    elif not stated:
        found += " If this is stated as annotator error, it is subtracted from the goal."
    elif seen["share"] > stated:
        found += f" That is more than the {percent(stated)} that is stated."
    return _plain([*said, found])


def _plain(sentences: list[str]) -> list[str]:
    return [sentence.replace("\u00a0", " ") for sentence in sentences]
