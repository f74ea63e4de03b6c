"""Sentences about a goal for all labels of a project: the statement, what it covers, and what is missing."""

from collections.abc import Mapping
from typing import Any

from suffice.presentation.text_format import count, duration, number, percent, percent_at_most, two_digits


def reached_sentences(reached: Mapping[str, Any]) -> list[str]:
    r"""What is guaranteed about all labels, and what is not covered.

    Args:
        reached: The result of :meth:`suffice.checks.DataSetGuarantee.to_dict`, and ``at`` (when the check started, or
            None), ``added`` (rows that were added since) and ``classes_since``.

    Examples:
        >>> reached = {"statement": "At most 200 of all 4,000 labels are wrong.", "rows": 4000, "left_out": 0,
        ...     "at": "2026-05-03T10:00:00Z", "added": 200, "classes_since": "merged"}
        >>> print(*reached_sentences(reached), sep="\n")
        Guaranteed: at most 200 of all 4,000 labels are wrong.
        This covers the 4,000 rows of 2026-05-03; 200 new ones are not covered.
        Classes were merged since the check, which can only lower the number of wrong labels.
    """
    statement = reached["statement"]
    said = [f"Guaranteed: {statement[:1].lower()}{statement[1:]}"]
    added, left_out = reached["added"], reached["left_out"]
    if added:
        new = "1 new one is" if added == 1 else f"{added:,} new ones are"
        rows = count(reached["rows"] + left_out, "row")
        said.append(f"This covers the {rows} of {reached['at'][:10]}; {new} not covered.")
    if left_out:
        verb = "has" if left_out == 1 else "have"
        said.append(f"{count(left_out, 'row')} that nobody could label {verb} no label, and no part in this.")
    if reached["classes_since"] == "merged":
        said.append("Classes were merged since the check, which can only lower the number of wrong labels.")
    return _plain(said)


def missing_sentence(missing: Mapping[str, Any]) -> str:
    """What is missing for the goal.

    Args:
        missing: ``reason``: ``"no goal"``, ``"unchecked"`` (with ``at_most`` and ``left``), ``"open"`` or
            ``"incomplete"`` (with ``pending``), ``"taken back"`` (with ``labels``) or ``"classes"``.

    Examples:
        >>> print(missing_sentence({"reason": "unchecked", "at_most": 0.05, "left": 3000}))
        the goal is not reached: no check has proven that at most 5 % of all labels are wrong; 3,000 items have no
        label; start a check, or label more items
        >>> print(missing_sentence({"reason": "taken back", "labels": 1}))
        the goal is not reached: 1 label was taken back since the check started, and nothing covers its item; label it
        again, or skip it
    """
    reason = missing["reason"]
    if reason == "no goal":
        return 'the project has no goal about all labels; set at_most and of="all" in its settings, then start a check'
    if reason == "unchecked":
        most, left = percent_at_most(missing["at_most"]), missing["left"]
        why = f"no check has proven that at most {most} of all labels are wrong; {count(left, 'item')} "
        why += f"{'has' if left == 1 else 'have'} no label; start a check, or label more items"
    elif reason == "taken back":
        labels = missing["labels"]
        verb, its = ("was", "its item; label it") if labels == 1 else ("were", "their items; label them")
        again = its.rpartition(" ")[2]
        why = f"{count(labels, 'label')} {verb} taken back since the check started, and nothing covers {its} again, or "
        why += f"skip {again}"
    elif reason == "classes":
        why = "classes were added or removed since the check, whose predictions are about the classes of that time; "
        why += "start another check"
    else:
        pending = missing["pending"]
        verb = "has" if pending == 1 else "have"
        why = f"{count(pending, 'item')} of the check {verb} no answer; answer {'it' if pending == 1 else 'them'}"
    return _plain([f"the goal is not reached: {why}"])[0]


def goal_sentences(goal: Mapping[str, Any]) -> list[str]:
    r"""The goal of a project, how far it is, and what counts as right.

    Args:
        goal: ``goal`` of the status of a project, without its sentences.

    Examples:
        >>> goal = {"at_most": 0.05, "rows": 4000, "allowed": 200, "tolerance": None, "annotator_error": 0.0,
        ...     "annotator_error_seen": None, "reached": None, "check_open": False, "more_labels": 450, "hours": 1.5,
        ...     "seconds_per_label": 12.0, "by_people": 620, "predicted": 2930,
        ...     "plan": {"sentence": "620 labels by people so far, ...; then 2,930 labels are predictions."}}
        >>> print(*goal_sentences(goal), sep="\n")
        The goal: at most 5 % of all 4,000 labels are wrong, that is 200.
        620 labels by people so far, ...; then 2,930 labels are predictions.
        That takes about 1.5 hours, at 12 seconds a label.
        Labels by people count as right: the guarantee does not cover mistakes of people.
    """
    if goal["reached"] is not None:
        return _plain([*reached_sentences(goal["reached"]), *people_sentences(goal)])
    most = goal_words(goal["at_most"], goal["tolerance"], count(goal["rows"], "label"))
    part = "and of the predictions at most" if goal["annotator_error"] else "that is"
    said = [f"The goal: {most}, {part} {goal['allowed']:,}."]
    if goal["check_open"] and goal["plan"] is not None:
        so_far = f"{count(goal['by_people'], 'label')} by people so far"
        then = count(two_digits(goal["predicted"]), "label")
        expected = expected_answers_words(goal["more_labels"]).removesuffix(".")
        said.append(f"{so_far}; in the check {expected}; then {then} are predictions.")
    elif goal["plan"] is not None:
        said.append(goal["plan"]["sentence"])
    if goal["hours"]:
        pace = count(round(goal["seconds_per_label"]) or 1, "second")
        said.append(f"That takes about {duration(3600.0 * goal['hours'])}, at {pace} a label.")
    return _plain([*said, *people_sentences(goal)])


def goal_words(at_most: float, tolerance: float | None, labels: str = "labels") -> str:
    r"""The goal, as a part of a sentence.

    Args:
        at_most: The share of wrong labels.
        tolerance: For numbers: the largest error that is not wrong.
        labels: The labels, with their number if it is known.

    Examples:
        >>> goal_words(0.05, None).replace("\xa0", " "), goal_words(0.05, 2.5).replace("\xa0", " ")
        ('at most 5 % of all labels are wrong', 'at most 5 % of all labels are off by more than 2.5')
    """
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
