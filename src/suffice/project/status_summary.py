"""The status of a project as JSON values, and the agreement between people."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from suffice.checks import Guarantee, GuaranteePlan, plan_total, spent_alpha
from suffice.checks.data_set import FinalGuarantee
from suffice.checks.finish_plan import FinishPlan
from suffice.criteria import Verdict
from suffice.presentation.answer_plan_words import planned_for_sentence
from suffice.presentation.check_words import (
    check_sentence,
    checks_sentences,
    guarantee_figure,
    guarantee_sentences,
    how_to_answer,
    sequential_target_words,
)
from suffice.presentation.decision_words import DecisionWords, decision_words, status_sentences
from suffice.presentation.goal_words import expected_answers_words
from suffice.presentation.project_words import model_choice_sentences
from suffice.presentation.text_format import thinned_positions
from suffice.project.data_set_goal import reached_goal
from suffice.project.events import moment
from suffice.project.goal_status import goal_status, plan_now
from suffice.project.learning_status import LearningStatus, Point
from suffice.project.model_selection import chooses_model, next_comparison
from suffice.project.opinions import annotator_error_seen
from suffice.project.prediction_settings import GIVEN
from suffice.project.project_check import ProjectCheck
from suffice.project.reliability import krippendorff_alpha
from suffice.project.settings import Settings, described_model
from suffice.project.state import ProjectState
from suffice.session.decision import Decision, DecisionNumbers, decide
from suffice.session.standing_stop import StopWithdrawal

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project

# Labels from which a number is known to be unusual, and how far beyond them, in widths of their range.
_ENOUGH_NUMBERS: Final = 10
_ROOM: Final = 3.0


@dataclass(frozen=True)
class Agreement:
    """Agreement of any number of people on the same items.

    Attributes:
        both: Items that at least two people labelled.
        same: Number of these items with the same label from all of them.
        people: Number of people who labelled these items.
        alpha: Krippendorff's alpha, the agreement beyond chance, at most 1: nominal for classes, interval for numbers.
            None if all labels are the same.
        low: Lower limit of alpha (95 % confidence).
        high: Upper limit.
        difference: Mean absolute difference of the numbers of two people; None for classes.
    """

    both: int
    same: int
    people: int
    alpha: float | None
    low: float | None
    high: float | None
    difference: float | None


def agreement(state: ProjectState, settings: Settings) -> Agreement | None:
    """Compare all opinions of each item with at least two; corrections do not count.

    Args:
        state: The state of the project.
        settings: Settings of the project.

    Returns:
        The agreement, or None while no item has the opinions of two people.

    Examples:
        >>> from suffice.project.events import Event, EventKind
        >>> state = ProjectState(1)
        >>> for seq, (name, label) in enumerate([("ann", 2.0), ("bob", 5.0), ("eve", 2.0)], start=1):
        ...     state.apply(Event(EventKind.labelled, name, 0, {"label": label}, seq=seq))
        >>> found = agreement(state, Settings("p", "regression", (), "y", "table", ("a",), None, "gp", {}))
        >>> found.both, found.same, found.people, found.difference
        (1, 0, 3, 2.0)
    """
    compared = [each.opinions for each in state.labelled(several_acts=True) if len(each.opinions) > 1]
    if not compared:
        return None
    labels = [[opinion.label for opinion in opinions] for opinions in compared]
    same = sum(len(set(each)) == 1 for each in labels)
    people = len({opinion.person for opinions in compared for opinion in opinions})
    regression = settings.task == "regression"
    found = krippendorff_alpha(labels, "interval" if regression else "nominal")
    apart: float | None = None
    if regression:
        apart = math.fsum(_mean_difference([float(x) for x in each]) / len(labels) for each in labels)
    if found is None:
        return Agreement(len(labels), same, people, None, None, None, apart)
    return Agreement(len(labels), same, people, found.alpha, found.low, found.high, apart)


def _mean_difference(numbers: Sequence[float]) -> float:
    """Mean absolute difference of two of several numbers."""
    return math.fsum(abs(one - other) for one, other in combinations(numbers, 2)) / math.comb(len(numbers), 2)


@dataclass(frozen=True)
class CheckStatus:
    """Status of the checks of a project.

    Attributes:
        check: The newest check as JSON values, or None.
        guarantee: The newest guarantee as JSON values, or None.
        held: Number of labels that the model does not learn yet, because a check withholds them.
        alpha: Error probability of the next check; None if there was no check yet.
        proven: The guarantee, if it covers the current model.
        least_error: The share of wrong predictions of the current model that its last check has found at least; None
            if it is not known.
        data_set: What is guaranteed about all final labels, if that is the goal and it is reached; otherwise None.
        goal_check: The open check, if it is for a goal about all final labels; otherwise None.
        withdrawn: The advice to stop in the journal, as withdrawn now or before; None if there is none. A learner that
            has learned all labels again does not know it.
    """

    check: dict[str, Any] | None = None
    guarantee: dict[str, Any] | None = None
    held: int = 0
    alpha: float | None = None
    proven: Guarantee | None = None
    least_error: float | None = None
    data_set: FinalGuarantee | None = None
    goal_check: ProjectCheck | None = None
    withdrawn: StopWithdrawal | None = None

    @property
    def awaits_answers(self) -> bool:
        """Whether a check is open."""
        return self.check is not None and self.check["state"] == "open"

    @property
    def sequential_open(self) -> bool:
        """Whether a check is open that ends when its target is proven."""
        return self.check is not None and self.awaits_answers and self.check["sequential"] is not None

    def sentences(self) -> list[str]:
        """The same in words."""
        first, last = checks_sentences(self.guarantee, self.check)
        return first + last


def check_status(state: ProjectState, settings: Settings) -> CheckStatus:
    """Status of the checks of a project.

    Args:
        state: The state of the project.
        settings: Settings of the project.
    """
    newest, reached = state.newest_check(), reached_goal(state, settings)
    data_set = None if reached is None else reached.guarantee
    withdrawn = state.withdrawal(state.n_decided)
    if newest is None:
        return CheckStatus(data_set=data_set, withdrawn=withdrawn)
    found, draw, record = state.guarantee(settings.using(state.model).model), newest.draw, newest.record
    told: dict[str, Any] = {
        "number": newest.number,
        "state": newest.state,
        "size": record.size,
        "answered": record.size - len(record.pending),
        "pool": record.pool,
        **draw.asked.as_dict(given=False),
        "confidence": 1.0 - record.alpha,
        "model_name": draw.model,
        "n_labelled": newest.n_labelled,
        "person": draw.person,
        "at": moment(draw.at),
        "proves": found is not None and found.check.number == newest.number,
        "sequential": None if (progress := newest.progress) is None else {**progress, **sequential_curves(newest)},
    }
    # What a check of given predictions has shown, is said by its result.
    has_result = draw.model == GIVEN and newest.state == "complete" and newest.progress is None
    told["sentence"], told["how_to_answer"] = "" if has_result else check_sentence(told), how_to_answer(told)
    told["target_words"] = None if draw.asked.at_most is None else sequential_target_words(told)
    expected = told["expected"] = draw.asked.expected
    told["plan_words"] = "" if expected is None else planned_for_sentence(expected, told["at_most"])
    guarantee = None
    if found is not None:
        guarantee = found.as_dict()
        guarantee["sentences"] = guarantee_sentences(guarantee)
        if reached is not None and reached.check is not None and reached.check.number == found.check.number:
            guarantee["sentences"] = reached.sentences()
        guarantee["figure"], guarantee["figure_note"] = guarantee_figure(guarantee)
    return CheckStatus(
        told,
        guarantee,
        state.n_labelled - state.n_learned,
        spent_alpha(state.checks.number_after(settings.earlier_checks), record.alpha),
        found.guarantee if found is not None and found.about_present_model else None,
        newest.least_error if state.checks.learned is not None else None,
        data_set,
        newest if newest.state == "open" and draw.asked.of == "all" else None,
        withdrawn,
    )


# Part of the answers so far up to which the limits are given.
_FURTHER: Final = 1.1


def sequential_curves(check: ProjectCheck) -> dict[str, Any]:
    """The wrong answers of a sequential check and the limits, each as points at which they change.

    Args:
        check: The check.

    Returns:
        ``counts`` and ``limits``, each a list of pairs: number of answers, and number of wrong ones. The target is
        proven when the count is at or below the limit. ``horizon`` is the number of answers up to which both are given.
    """
    record, terms = check.record, check.draw.terms
    assert terms is not None
    progress = check.progress or {}
    asked = check.draw.asked
    predicted = check.draw.prediction_of(record.items)
    faults = record.faults(predicted, tolerance=asked.tolerance, class_name=asked.relevant)
    wrong = np.cumsum([faults[item] for item in record.items[: progress["answered"]]], dtype=np.int64)
    # Some more than the answers so far, so that the step of the limit at the proof is seen.
    horizon = min(terms.longest, max(record.size, terms.planned, math.ceil(_FURTHER * record.size) + 5))
    return {
        "planned": terms.planned,
        "horizon": horizon,
        "counts": _changes(wrong),
        "limits": _changes(terms.limits(horizon)),
    }


def _changes(values: Any) -> list[list[int]]:
    """Number of answers and value, wherever the value changes; the first and the last are included."""
    places = [k for k in range(len(values)) if not k or values[k] != values[k - 1] or k == len(values) - 1]
    return [[k + 1, int(values[k])] for k in places]


#: Maximal number of points of a curve; more points make no visible difference.
MOST_POINTS: Final = 400
_UNITS: Final = {"classification": "share", "regression": "root mean squared"}


def status(project: "Project", learning_status: LearningStatus) -> dict[str, Any]:
    """Status of a project.

    Args:
        project: The project.
        learning_status: Results of the model. It may have learned fewer labels than there are.

    Returns:
        JSON values without NaN or infinity; None is an unknown number.
    """
    with project.lock:
        state = project.state()
        counted, model = _counted(state, project.settings, project.size), project.settings.using(state.model).model
        behind = answers_behind(state, learning_status)
        checks, choice = check_status(state, project.settings), model_choice(state, project.settings)
        n_labelled, size = counted["n_labelled"], project.size - counted["n_skipped"]
        decision = decision_of(learning_status, project.settings, n_labelled, size=size, checks=checks)
        seen = None if project.settings.goal is None else annotator_error_seen(state, project.settings)
        goal = goal_status(
            state, project.settings, plan=decision.finish, totals=learning_status.finish_totals, seen=seen
        )
    words = _words(decision, project.settings, checks)
    sentences = _sentences(decision, words, learning_status, n_labelled, checks)
    if counted["advice"] is not None and decision.since is not None:
        counted["advice"]["n_labelled"] = decision.since
    told: dict[str, Any] = {
        **counted,
        "learned": learning_status.n_labelled,
        "held": checks.held,
        "behind": behind,
        "model": {
            "name": model,
            "description": described_model(model),
            "reason": project.settings.model_reason if model == project.settings.model else "",
            "choice": choice,
        },
        "decision": {**_without_guarantee(decision), **words._asdict()},
        "verdict": None
        if learning_status.verdict is None
        else _verdict(_stated(learning_status.verdict, decision), words.sentences[0]),
        "forecast": None if learning_status.forecast is None else asdict(learning_status.forecast),
        "curve": [[each.n_labelled, each.value, each.threshold] for each in _thinned_curve(learning_status.curve)],
        "error": {
            "unit": _UNITS[project.settings.task],
            "estimates": [
                [each.n_labelled, each.value, each.low, each.high]
                for each in learning_status.errors
                if all(map(math.isfinite, (each.value, each.low, each.high)))
            ],
            "random_labels": learning_status.errors[-1].random_labels if learning_status.errors else 0,
        },
        "check": checks.check,
        "guarantee": checks.guarantee,
        "goal": goal,
        "result": None,
        "warning": learning_status.warning,
        "problem": learning_status.problem,
        "words": sentences,
    }
    if project.settings.checked is not None:
        from suffice.project.prediction_results import with_result

        # There is no model that learns the answers of a check later.
        told = with_result(project, {**told, "held": 0})
    finite: dict[str, Any] = _finite(told)
    return finite


def answers_behind(state: ProjectState, learning_status: LearningStatus) -> int:
    """Number of answers that the decision does not count yet.

    Args:
        state: The state of the project.
        learning_status: Results of the model.
    """
    n_counted = learning_status.n_answers + learning_status.n_checked
    return max(0, len(state.learned()) + len(state.checked()) - n_counted)


def model_choice(state: ProjectState, settings: Settings) -> dict[str, Any] | None:
    """The choice of the model on the labels as JSON values; None if a person has chosen it.

    Args:
        state: The state of the project.
        settings: Settings of the project.
    """
    goes_on, compared = chooses_model(state, settings), state.comparison
    if not settings.choose_model or state.model_by_person or not (goes_on or compared):
        return None
    errors = {} if compared is None else dict(compared.errors)
    choice = {
        "model": settings.using(state.model).model,
        "compared_at": None if compared is None else compared.n_labelled,
        "errors": errors,
        "next_at": next_comparison(state) if goes_on else None,
    }
    return {**choice, "sentences": model_choice_sentences({name: described_model(name) for name in errors}, choice)}


_NO_CHECKS: Final = CheckStatus()


def learning_sentences(
    learning_status: LearningStatus,
    settings: Settings,
    n_labelled: int,
    *,
    size: int | None = None,
    checks: CheckStatus = _NO_CHECKS,
) -> list[str]:
    """Status of a project in sentences, the most important first.

    Args:
        learning_status: Results of the model.
        settings: Settings of the project.
        n_labelled: Number of labels; the model may have learned fewer.
        size: Number of items without skipped items, if it is known.
        checks: Status of the checks of the project.

    Examples:
        >>> settings = Settings("demo", "classification", ("no", "yes"), "y", "table", (), None, "logistic", {})
        >>> learning_sentences(LearningStatus(n_labelled=6), settings, 6)
        ['Too early to say: 4 more labels are needed before the model starts.']
    """
    decision = decision_of(learning_status, settings, n_labelled, size=size, checks=checks)
    return _sentences(decision, _words(decision, settings, checks), learning_status, n_labelled, checks)


def _sentences(
    decision: Decision, words: DecisionWords, learning_status: LearningStatus, n_labelled: int, checks: CheckStatus
) -> list[str]:
    """A decision in sentences, with the warnings and the checks."""
    first, last = checks_sentences(checks.guarantee, checks.check, open_told=decision.check_pending > 0)
    if decision.data_set is not None and checks.guarantee is not None and checks.guarantee.get("corrected"):
        # The decision states the guarantee about all labels, and of which class it is.
        said, stated = " ".join(words.sentences), checks.guarantee["sentences"][0]
        # What the guarantee assumes and leaves out comes after it.
        last = [sentence for sentence in first if sentence != stated and sentence not in said] + last
        first = []
    return status_sentences(
        words,
        warning=learning_status.warning,
        problem=learning_status.problem,
        behind=_not_learned(learning_status, n_labelled, checks),
        checked=(first, last),
    )


def _words(decision: Decision, settings: Settings, checks: CheckStatus) -> DecisionWords:
    """A decision in words; the guarantee is shown separately."""
    words = decision_words(_without_guarantee(decision), initial=settings.initial)
    if not (decision.check_pending and checks.sequential_open and len(words.sentences) > 1):
        return words
    # The end of a sequential check is not known: its own sentence states what is missing.
    assert checks.check is not None
    first, pending, *rest = words.sentences
    said = str(checks.check["sentence"])
    if decision.finish is not None:
        expected = expected_answers_words(decision.finish.check_size)
        return words._replace(sentences=[f"{words.headline}: {expected}", said, pending, *rest], summary=expected)
    note = "This is computed again when the check has ended." if words.outlook_note == pending else words.outlook_note
    return words._replace(sentences=[first, said, *rest], outlook_note=note)


def decision_of(
    learning_status: LearningStatus,
    settings: Settings,
    n_labelled: int,
    *,
    size: int | None = None,
    checks: CheckStatus = _NO_CHECKS,
) -> Decision:
    """The decision of a project: that of its learner, with the checks in the journal.

    Before the model has started, it is too early to decide.

    Args:
        learning_status: Results of the model.
        settings: Settings of the project.
        n_labelled: Number of labels; the model may have learned fewer.
        size: Number of items without skipped items, if it is known.
        checks: Status of the checks of the project.
    """
    left = settings.initial if size is None else size - n_labelled
    numbers = learning_status.numbers
    # A screening states both counts of the model: items that are read, and all items.
    counted = numbers is not None and size is not None and (checks.held or numbers.screening is None)
    if counted and numbers is not None and numbers.unlabelled != left:
        # All numbers of unlabelled items are those of the journal. For the model, items whose labels are not learned
        # yet, or are withheld by an open check, are unlabelled.
        numbers = replace(numbers, unlabelled=left) if left else None
    if numbers is None:
        # While all labels are learned again, the verdict states the progress.
        share, goal = settings.task == "classification", settings.goal
        about = DecisionNumbers(n_labelled, max(left, 0), share)
        if goal is not None:
            about = replace(about, share=True, at_most=goal.at_most, of=goal.of, data_set=checks.data_set)
        return decide(learning_status.verdict, about)
    verdict = learning_status.verdict
    given = _not_learned(learning_status, n_labelled, checks)
    numbers = replace(numbers, not_learned=given)
    numbers = _with_withdrawal(numbers, checks.withdrawn)
    pending = checks.check["size"] - checks.check["answered"] if checks.check and checks.awaits_answers else 0
    if numbers.of == "all":
        reached = checks.data_set or numbers.data_set
        finish = None if reached is not None or numbers.finish is None else numbers.finish
        if finish is not None and checks.alpha is not None:
            finish = finish.with_alpha(checks.alpha)
        if finish is not None and given:
            finish = _not_yet_due(finish, finish.after(finish.by_people + given))
        finish = plan_now(finish, checks.goal_check, n_labelled)
        # The goal may be reached while another check is open.
        pending = pending if reached is None else 0
        if numbers.far_behind and not pending and finish is not None and not finish.check_now:
            finish = None
        return decide(verdict, replace(numbers, check_pending=pending, data_set=reached, finish=finish))
    plan = next_check_plan(numbers.plan, checks)
    if plan is not None and given:
        plan = _not_yet_due(plan, plan.after(plan.n_labelled + given, max(left, 0)))
    if numbers.far_behind:
        numbers = replace(numbers, forecast=None, error_then=None)
        plan = plan if plan is not None and plan.check_now else None
    found = replace(numbers, check_pending=pending, guarantee=checks.proven, plan=plan, least_error=checks.least_error)
    return decide(verdict, found)


def _not_learned(learning_status: LearningStatus, n_labelled: int, checks: CheckStatus) -> int:
    """Number of labels that were given and that the model has not learned yet."""
    return max(0, n_labelled - checks.held - learning_status.n_labelled)


_Plan = TypeVar("_Plan", GuaranteePlan, FinishPlan)


def _not_yet_due(plan: _Plan, later: _Plan) -> _Plan:
    """A plan with fewer labels before its check, which is due only when the model has learned them."""
    return replace(later, more_labels=1) if later.check_now and not plan.check_now else later


def _with_withdrawal(numbers: DecisionNumbers, by_journal: StopWithdrawal | None) -> DecisionNumbers:
    """Numbers with the withdrawal in the journal if it is the newer one.

    A learner that has learned all labels again does not know the stop that was withdrawn.
    """
    by_learner = numbers.withdrawn
    if by_journal is None or numbers.since is not None or numbers.of == "all":
        return numbers
    newer = by_learner is None or by_learner.stopped_at < by_journal.stopped_at
    return replace(numbers, withdrawn=by_journal) if newer else numbers


def next_check_plan(plan: GuaranteePlan | None, checks: CheckStatus) -> GuaranteePlan | None:
    """The plan for the next check. Its error probability differs from that of the first check.

    Args:
        plan: The plan of the learner, or None. The learner has no checks.
        checks: The checks of the project.
    """
    if plan is None or checks.alpha is None:
        return plan
    later = plan_total(
        plan.target,
        plan.error,
        low=plan.low,
        high=plan.high,
        reducible=plan.reducible,
        n_labelled=plan.n_labelled,
        pool=plan.pool,
        alpha=checks.alpha,
        check_advised=plan.check_now,
    )
    # A check that the learner does not advise yet is not advised here either.
    return replace(later, more_labels=plan.more_labels) if later.check_now and plan.more_labels else later


def decision_in_words(
    learning_status: LearningStatus,
    settings: Settings,
    n_labelled: int,
    *,
    size: int | None = None,
    checks: CheckStatus = _NO_CHECKS,
) -> DecisionWords:
    """The decision of a project in words, the same wherever it is shown; arguments as for :func:`decision_of`."""
    return _words(decision_of(learning_status, settings, n_labelled, size=size, checks=checks), settings, checks)


def _without_guarantee(decision: Decision) -> dict[str, Any]:
    """The decision as JSON values; the guarantee is separate, see :class:`CheckStatus`."""
    return replace(decision, guarantee=None).as_dict() | {
        name: getattr(decision, name) for name in ("target_guaranteed", "target_missed")
    }


def _thinned_curve(curve: Sequence[Point]) -> list[Point]:
    """A curve with fewer points and the same shape; points whose value is not finite are left out."""
    points = [point for point in curve if math.isfinite(point.value)]
    return [points[at] for at in thinned_positions([point.value for point in points], MOST_POINTS)]


def _counted(state: ProjectState, settings: Settings, size: int) -> dict[str, Any]:
    """The part of the status that depends on the journal only."""
    counts, alike = state.counts(), agreement(state, settings)
    # The same numbers as in the final file and its statement. Second opinions are labels, but do not count.
    people = sorted(
        ((name, each) for name, each in state.people.items() if state.acts.has_label_of(name)),
        key=lambda each: (-each[1].labels, each[0]),
    )
    advice = state.advice
    return {
        "n_labelled": state.n_labelled,
        "n_skipped": state.n_skipped,
        "n_unsure": sum(each.unsure for each in state.skipped()) if state.n_skipped else 0,
        "size": size,
        "left": state.left,
        "revision": state.revision,
        "classes": [{"name": name, "count": counts.get(name, 0)} for name in settings.classes],
        "usual_numbers": usual_numbers(state, settings),
        "people": [{"name": name, "labels": each.labels, "last": moment(each.last)} for name, each in people],
        "agreement": None if alike is None else asdict(alike),
        "advice": None
        if advice is None
        else {"n_labelled": advice.n_labelled, "reason": advice.reason, "at": moment(advice.at)},
    }


def usual_numbers(state: ProjectState, settings: Settings) -> tuple[float, float] | None:
    """For numbers: the range of the labels so far, widened on both sides. None for classes, and for few labels.

    A number outside of it is so far from all labels that it is probably a slip, such as a missing decimal point.

    Args:
        state: The state of the project.
        settings: Settings of the project.
    """
    if settings.task != "regression":
        return None
    found = [float(label) for label in state.labels.by_item.values() if label is not None]
    if len(found) < _ENOUGH_NUMBERS or min(found) == max(found):
        return None
    room = _ROOM * (max(found) - min(found))
    return min(found) - room, max(found) + room


def _stated(verdict: Verdict, decision: Decision) -> Verdict:
    """The verdict, which without a target is to stop exactly if the decision is, also while a check is open."""
    return verdict if decision.at_most is not None else replace(verdict, stop=decision.stop)


def _verdict(verdict: Verdict, sentence: str) -> dict[str, Any]:
    certificate = verdict.certificate
    return {
        "stop": verdict.stop,
        "ready": verdict.ready,
        "value": verdict.value,
        "threshold": verdict.threshold,
        "rule": verdict.rule,
        "sentence": sentence,
        "certificate": None
        if certificate is None
        else {"statement": certificate.statement, "assumption": certificate.assumption},
    }


def _finite(value: Any) -> Any:
    """JSON values in which every number is finite; others are replaced by None."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    if isinstance(value, np.generic):
        return _finite(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value
