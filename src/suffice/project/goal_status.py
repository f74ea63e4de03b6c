"""Progress towards the goal of a project about all final labels, as JSON values."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any, Final

from suffice.checks import FinishPlan
from suffice.checks.finish_plan import joint_answers
from suffice.presentation.goal_words import goal_check_sentences, goal_sentences
from suffice.presentation.text_format import thinned_positions
from suffice.project.data_set_goal import found_items, missing_for_goal, proven_short, reached_goal
from suffice.project.labelling_pace import pace
from suffice.project.project_check import ProjectCheck
from suffice.project.settings import Settings
from suffice.project.state import ProjectState

# The pace is that of the last labels.
_RECENT: Final = 500
# Maximal number of points of the curve of expected totals.
_MOST_POINTS: Final = 200
_HOUR: Final = 3600.0
# Number of answers of a check that the estimate before it counts as.
_PLAN_ANSWERS: Final = 30


def plan_now(plan: FinishPlan | None, check: ProjectCheck | None, n_labelled: int) -> FinishPlan | None:
    """The plan while a check for the goal is open: the answers that are still expected.

    The expected share of wrong predictions is that of the plan, which counts as some answers, with those of the check.

    Args:
        plan: The plan of the learner, which has not learned the answers of the check; or None.
        check: The open check, if it is for the goal; otherwise None.
        n_labelled: Number of labels, those of the check included.
    """
    if plan is None or check is None or check.progress is None or check.draw.terms is None:
        return plan
    terms, progress = check.draw.terms, check.progress
    answered, needed = progress["answered"], progress["needed"] or 0
    before = [share / max(plan.rows - plan.by_people, 1) for share in (plan.wrong, plan.low, plan.high)]
    wrong = [(share * _PLAN_ANSWERS + progress["wrong"]) / (_PLAN_ANSWERS + answered) * terms.pool for share in before]
    sizes = joint_answers([terms.pool] * 3, terms.allowed, wrong, terms.alpha)
    more, low, high = (max(needed, ceil(size) - answered) for size in sizes)
    return replace(
        plan, by_people=n_labelled, more_labels=0, check_size=more, check_low=low, check_high=high, check_open=True
    )


def goal_status(
    state: ProjectState,
    settings: Settings,
    *,
    plan: FinishPlan | None,
    totals: Sequence[tuple[int, int]],
    seen: Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    """Progress towards the goal about all final labels; None if the project has no such goal.

    Args:
        state: The state of the project.
        settings: Settings of the project.
        plan: The plan now; None if the goal is reached, or nothing can be planned yet.
        totals: Number of labels at each plan so far, and the labels by people that it expected at the end.
        seen: The error of annotators that opinions of several people show, or None.
    """
    goal = settings.goal
    if goal is None:
        return None
    reached, check = reached_goal(state, settings), state.newest_check()
    is_open = reached is None and check is not None and check.draw.asked.of == "all" and check.state == "open"
    rows = state.n_labelled + state.left if reached is None else reached.guarantee.rows
    found = found_items(state, goal)
    allowed = goal.allowed(rows, found or 0) if reached is None else reached.guarantee.allowed
    people = state.n_labelled if reached is None else reached.guarantee.by_people
    if is_open and check is not None and check.draw.terms is not None:
        allowed = check.draw.terms.allowed
    more = 0 if reached is not None else None if plan is None else plan.by_people_at_end - plan.by_people
    given = [each for each in state.labelled(newest=_RECENT) if each.person != settings.source]
    seconds = pace(given)
    # The learner plans on with the labels of a check; the curve ends with the check.
    end = check if is_open else None if reached is None else reached.check
    points = [[n, total] for n, total in totals if end is None or n <= end.n_labelled]
    if end is not None and more is not None:
        points.append([people, people + more])
    told: dict[str, Any] = {
        "at_most": goal.at_most,
        "of": goal.of,
        "tolerance": settings.tolerance,
        "annotator_error": goal.annotator_error,
        "correction_cost": goal.answer_cost,
        "rows": rows,
        "by_people": people,
        "left_out": state.n_skipped if reached is None else reached.guarantee.left_out,
        "allowed": allowed,
        "plan": None if plan is None or reached is not None else plan.as_dict(),
        "check_open": is_open,
        "reached": None if reached is None else reached.as_dict(),
        "missing": missing_for_goal(state, settings),
        "more_labels": more,
        "expected_total": None if more is None else people + more,
        "predicted": None if more is None else rows - people - more,
        "seconds_per_label": seconds,
        "hours": None if more is None or seconds is None else more * seconds / _HOUR,
        "history": [points[at] for at in thinned_positions([total for _, total in points], _MOST_POINTS)],
        # A share of wrong labels of people does not apply to a screening.
        "annotator_error_seen": seen if goal.class_name is None else None,
        "class_name": goal.class_name,
        "found": found,
    }
    proven = proven_short(state, settings)
    short = None if proven is None else proven.to_dict()
    sentences = goal_sentences({**told, "proven": short})
    return {**told, "sentences": sentences, "check_sentences": goal_check_sentences(told)}
