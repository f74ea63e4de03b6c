"""One labelling session, without input and output: labels in, decisions out.

Every loop of the package drives a :class:`Session`, so that the same labels give the same decision everywhere.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from suffice.checks import Guarantee
from suffice.checks.registry import RegisteredItems
from suffice.criteria import Criterion, Step, Verdict
from suffice.errors import InvalidValueError, SufficeError
from suffice.models.inputs import as_labels
from suffice.models.threads import one_thread
from suffice.session.advice import AdviceByTarget
from suffice.session.check_plans import CheckPlans
from suffice.session.decision import (
    Alternative,
    Decision,
    DecisionNumbers,
    ErrorNow,
    ScreeningProgress,
    checked_target,
    decide,
    numbers_from_labels,
)
from suffice.session.error_estimate import error_now
from suffice.session.finish import DataSetFinish, prediction_probabilities
from suffice.session.goals import Goal
from suffice.session.model_check import (
    CheckedQuantity,
    CheckOwner,
    FrozenModel,
    ModelCheck,
    ModelGuarantee,
    SessionChecks,
    checked_quantity,
    require_size,
    sized_quantity,
)
from suffice.session.model_comparison import comparison_due
from suffice.session.model_view import ModelView
from suffice.session.recorded_steps import DIVERGENCES
from suffice.session.rule_history import RuleHistory
from suffice.session.running_check import RunningSample
from suffice.session.session_estimates import SessionEstimates
from suffice.session.session_labels import SKIPPED, SessionLabels
from suffice.session.standing_stop import (
    Cause,
    Moment,
    ScarceClass,
    StandingStop,
    StopState,
    scarce_class,
)


class Session:
    """The labels, the verdicts, the standing advice and the checks of one labelling session.

    A session does not hold a model. Methods that need the current model take a view of it.

    Args:
        size: Number of items of the pool.
        rule: The stopping rule, which is copied.
        check_rng: Returns the source of randomness of checks; called at the first check.
        positive: For screening: the class that is looked for.
        estimate_time: Refits of the model for the estimate of the error per fit of the user, at most.
        registered: The items in the registry that counts their checks; in a new one if left out.
        may_miss: Classes that do not hold a stop back, see :func:`suffice.session.standing_stop.scarce_class`.

    Attributes:
        labels: The labels.
        history: The rule, and its verdicts on all steps.
        checks: The checks of this session. They share an error probability with all other checks of these items.
        running: The running check, or None.
        estimates: Estimates about the unlabelled items.
        plans: Plans of the next check.
        finish: Plans and final labels for a goal about the whole data set.
        rule_verdict: The verdict of the rule alone, now.
    """

    def __init__(  # noqa: PLR0913 - all but three by keyword
        self,
        size: int,
        rule: Criterion,
        check_rng: Callable[[], np.random.Generator],
        *,
        positive: Any = None,
        estimate_time: float = 1.0,
        registered: RegisteredItems | None = None,
        may_miss: Collection[Any] = (),
    ) -> None:
        self.labels = SessionLabels(size)
        self.history = RuleHistory(rule)
        self.checks = SessionChecks(check_rng, registered)
        self.running: RunningSample | None = None
        self.positive = positive
        self.estimates = SessionEstimates(self.labels, positive, estimate_time=estimate_time)
        self.plans = CheckPlans(self.labels, self.estimates, self.checks)
        self.finish = DataSetFinish(self.labels, self.estimates, self.checks)
        self.rule_verdict = Verdict(False, None, None, False, "no model has learned a label yet", "Session", 0)
        self._may_miss = tuple(may_miss)
        self._stop = StopState()
        # What has happened since the last labels, besides new labels.
        self._change: Cause | None = None
        self._advice = AdviceByTarget()
        # Number of labels at the last comparison with other models, and its result.
        self._compared: tuple[int, Alternative | None] | None = None

    # Labels.

    @property
    def relevant_found(self) -> int | None:
        """Number of labelled items of the positive class; None without one."""
        return None if self.positive is None else self.labels.of_class(self.positive)

    # The rule, and the stop.

    def judge(self, step: Step) -> Verdict:
        """Apply the rule to the next step."""
        return self.conclude(self.history.observe(step))

    def rejudge(self, steps: Sequence[Step], undecided: Verdict, *, change: Cause) -> Verdict:
        """Apply the rule to all steps again, because hyper-parameters were learned again or labels have changed.

        Args:
            steps: All steps.
            undecided: The verdict if there is none.
            change: What has changed.
        """
        self.history.restart(steps)
        return self.conclude(self.history.verdicts[-1] if steps else undecided, change=change)

    def conclude(self, verdict: Verdict, *, change: Cause | None = None) -> Verdict:
        """Set the verdict of the rule; :meth:`settle` follows from it what is stated.

        Args:
            verdict: The verdict of the rule.
            change: What has happened since the last one, besides new labels.
        """
        self.rule_verdict, self._change = verdict, change or self._change
        return verdict

    def judge_guarantee(self, guarantee: Guarantee | None) -> None:
        """Apply the rule to a guarantee of the current model; None if a check has proven nothing about it."""
        labels = self.labels.everything
        verdict = self.history.with_guarantee(guarantee, len(labels), len(self.labels.learned))
        self.conclude(verdict or self.rule_verdict)

    def settle(self, view: ModelView | None) -> Verdict:
        """Follow from the last labels whether a stop is stated, held back or withdrawn, and return :attr:`verdict`.

        Args:
            view: The current model; None before it has started.
        """
        rule, state = self.history.stop, self._stop
        if rule is not None or self.rule_verdict.stop or state.standing is not None or state.held_back is not None:
            above, n = self.history.clearly_above, len(self.labels.everything)
            scarce = partial(self._scarce_class, view)
            self._stop = state.next(
                Moment(self.rule_verdict, rule, n, above, self._change, self._labelled_classes, scarce)
            )
        self._change = None
        return self.verdict

    def _labelled_classes(self) -> frozenset[Any]:
        """The classes of all labels; empty if labels are something else than one class for each item."""
        if not self.estimates.one_class_each:
            return frozenset()
        return frozenset(np.asarray(as_labels(list(self.labels.without_sample.values()))).tolist())

    def _scarce_class(self, view: ModelView | None) -> ScarceClass | None:
        """The rare class with so few labels that a stop is held back; None if there is none, or in a screening."""
        estimates = self.estimates
        if view is None or not estimates.one_class_each or self.positive is not None:
            return None
        labels, classes = self.labels.without_sample.values(), estimates.known_classes(view)
        return scarce_class(labels, classes, self.labels.size, self._may_miss)

    @property
    def verdict(self) -> Verdict:
        """The stated verdict, from which the decision without a target follows: both say stop, or neither does.

        It is that of the rule, with these exceptions: a stop stands although the rule would go on by little; a stop of
        the rule is held back by a rare class with few labels, or while a check is open; and it is to stop if no items
        are left.
        """
        n, pending = len(self.labels.everything), self._pending
        return self._stop.stated(self.rule_verdict, n, left=self.labels.left, pending=pending)

    @property
    def standing_stop(self) -> Verdict | None:
        """The verdict of the rule at which the stop was stated, if it stands."""
        return None if self._stop.standing is None else self._stop.standing.verdict

    @property
    def _pending(self) -> int:
        """Number of items of an open check that have no answer."""
        return 0 if self.checks.open is None else len(self.checks.open.pending)

    # The decision.

    def decide(self, view: ModelView | None, at_most: float | None = None, *, compare: bool = True) -> Decision:
        """Return the decision: keep labelling, enough, or this model has reached its limit.

        Decisions for the same target build on each other: the advice is updated at the first decision after every few
        labels, see :func:`suffice.session.advice.spacing`.

        Args:
            view: The current model; None before it has started.
            at_most: The error that the user wants to reach.
            compare: Whether to compare the model with others.

        Raises:
            InvalidValueError: ``at_most`` is not a number, or out of range.
        """
        return decide(self.verdict, self.numbers(view, at_most, compare=compare))

    def numbers(
        self,
        view: ModelView | None,
        at_most: float | None = None,
        *,
        compare: bool = True,
        screening: float | None = None,
    ) -> DecisionNumbers:
        """Return the numbers of a decision, with the standing advice.

        Args:
            view: The current model; None before it has started.
            at_most: As for :meth:`decide`.
            compare: As for :meth:`decide`.
            screening: The recall to be reached for the positive class, if that is the aim.
        """
        target = checked_target(at_most, share=self.estimates.share)
        verdict, stop, n = self.verdict, self.standing_stop, len(self.labels.everything)
        estimate = None if view is None else self.estimates.estimate(view)
        if view is not None and compare and screening is None and self._comparison_due:
            named = None if self._compared is None else self._compared[1]
            # Trees have no divergences, so a rule that requires these cannot be used with them.
            trees = not self.history.rule.needs() & DIVERGENCES
            self._compared = n, self.estimates.better_model(view, named, trees=trees)
        numbers = DecisionNumbers(
            n_labelled=n,
            unlabelled=self.labels.left,
            share=self.estimates.share,
            since=None if stop is None else stop.n_labelled,
            error=None if estimate is None else error_now(estimate, share=self.estimates.share),
            at_most=target,
            alternative=self._alternative if compare else None,
            guarantee=self._current_guarantee(),
            least_error=self._least_error(),
            check_pending=self._pending,
            screening=None if screening is None or view is None else self._screening(view, screening),
            held_back=self._stop.held_back,
            withdrawn=self._stop.withdrawn,
            rare_class=None if view is None or self.positive is not None else self.estimates.rare_class(view),
        )
        numbers = numbers_from_labels(verdict, numbers, self.history.rule, self.labels.learned, self.labels.random)
        if self.estimates.right_or_wrong:
            # Such answers do not say how good a trivial prediction is.
            numbers = replace(numbers, baseline=None, common=None)
        if view is None or screening is not None:
            return numbers
        advice = self._advice.of(target, n)
        if advice.due(n):
            plan = self.plans.for_target(view, target, estimate, check_advised=advice.check_advised)
            advice = advice.next(numbers, plan)
            self._advice.keep(target, advice)
        return advice.applied(numbers, len(self.labels.unlabelled))

    def decide_finish(self, view: ModelView | None, goal: Goal, tolerance: float | None = None) -> Decision:
        """Return the decision for a goal about all final labels: the goal alone decides when to stop.

        Args:
            view: The current model; None before it has started.
            goal: The goal.
            tolerance: For numbers: the largest error that is not wrong.
        """
        return decide(self.verdict, self.finish_numbers(view, goal, tolerance))

    def finish_numbers(self, view: ModelView | None, goal: Goal, tolerance: float | None = None) -> DecisionNumbers:
        """Return the numbers of :meth:`decide_finish`, with the standing plan; arguments as there."""
        labels, reached = self.labels, self.finish.guarantee(goal, tolerance)
        estimate = plan = screening = None
        if view is not None and labels.left:
            plan = None if reached is not None else self.finish.plan(view, goal, tolerance)
            if goal.class_name is None:
                estimate = self.estimates.estimate(view, tolerance=tolerance)
        if goal.class_name is not None:
            n_found = labels.of_class(goal.class_name)
            expected = n_found + (0.0 if plan is None else plan.wrong)
            screening = ScreeningProgress(str(goal.class_name), n_found, expected, goal.recall)
        return DecisionNumbers(
            n_labelled=len(labels.everything),
            unlabelled=labels.left,
            share=self.estimates.share or tolerance is not None,
            error=None if estimate is None else ErrorNow(*estimate[:3], estimate.random_labels),
            at_most=goal.at_most,
            of="all",
            check_pending=self._pending,
            screening=screening,
            finish=plan,
            data_set=reached,
        )

    def due(self, at_most: float | None, *, compare: bool) -> bool:
        """Whether a decision would update the standing advice, or compare the model with others."""
        n = len(self.labels.everything)
        return self._advice.of(at_most, n).due(n) or (compare and self._comparison_due)

    @property
    def _comparison_due(self) -> bool:
        """Whether to compare the model with others; see :func:`suffice.session.model_comparison.comparison_due`."""
        n, last = len(self.labels.everything), None if self._compared is None else self._compared[0]
        forecast = self.verdict.forecast
        left = None if forecast is None else forecast.labels
        return bool(self.labels.left) and comparison_due(n, last, stopped=self.history.stop is not None, left=left)

    @property
    def _alternative(self) -> Alternative | None:
        """The better model of the last comparison. Before a stop, only a clearly better one is of interest."""
        other = None if self._compared is None else self._compared[1]
        return other if other is None or other.clear or self.history.stop is not None else None

    def _screening(self, view: ModelView, recall: float) -> ScreeningProgress:
        n_found = self.relevant_found or 0
        return ScreeningProgress(str(self.positive), n_found, n_found + self.estimates.expected_missed(view), recall)

    # Checks.

    def validate_check(self, view: ModelView, m: int | None, asked: Mapping[str, Any]) -> tuple[float, CheckedQuantity]:
        """Validate the arguments of a check; arguments as for :meth:`check`.

        Returns:
            The error probability of all checks together, and the quantity to guarantee.
        """
        for name in ("recall_of", "precision_of"):
            if asked[name] is not None:
                self.require_labels(f"{name} is about a class")
        if asked["of"] == "all":
            self.require_labels('of="all" is about final labels')
        self.checks.registered.require_free()
        alpha = self.checks.alpha(asked["confidence"])
        quantity = checked_quantity(
            view.task,
            self.estimates.known_classes(view) if self.estimates.share else [],
            {name: asked[name] for name in ("recall_of", "precision_of", "tolerance", "share")},
            unlabelable_as=asked["unlabelable_as"],
            predicted_as_found=asked["predicted_as_found"],
            screening_for=self.positive if asked["of"] == "all" else None,
        )
        conditions = {name: asked[name] for name in ("corrected", "of", "annotator_error")}
        quantity = sized_quantity(quantity, m, asked["at_most"], **conditions)
        if m is not None:
            require_size(m, len(self.labels.unlabelled))
        return alpha, quantity

    def check(self, view: ModelView, m: int | None, owner: CheckOwner, asked: Mapping[str, Any]) -> ModelCheck:
        """Freeze the model and draw a random check of the unlabelled items.

        Args:
            view: The current model.
            m: Number of items to draw; None for a sequential check.
            owner: The loop, which receives the labels of the check.
            asked: The quantity and its conditions, by the argument names of :meth:`suffice.ActiveLearner.check`.
        """
        alpha, quantity = self.validate_check(view, m, asked)
        expected = None if m is not None else self.plans.expected_share(view, quantity)
        frozen = self.frozen(view, probabilities=quantity.of == "all")
        return self.checks.draw(m, quantity, frozen, owner, alpha, expected)

    def require_labels(self, reason: str) -> None:
        """Raise an error if labels say only that predictions were right or wrong, or are sets of classes.

        Args:
            reason: What needs one class or number for each item, as the start of the message.

        Raises:
            InvalidValueError: Labels are something else.
        """
        if self.estimates.label_columns:
            raise InvalidValueError(
                f"{reason}, and labels are sets of classes; leave it out, or use one StopMonitor for each class"
            )
        if self.estimates.right_or_wrong:
            raise InvalidValueError(f"{reason}, and correct= says only whether predictions are right; leave it out")

    def continue_from(self, other: "Session", change: Cause = "switched") -> None:
        """Take the checks and the stop of a session whose model is replaced, or whose pool is extended.

        The checks share an error probability. :meth:`settle` says whether the stop stands.

        Args:
            other: The session.
            change: What has changed.
        """
        self.checks = other.checks
        self._stop, self._change = other._stop, change
        self.plans = CheckPlans(self.labels, self.estimates, self.checks)
        self.finish = DataSetFinish(self.labels, self.estimates, self.checks)

    def require_no_open_check(self) -> None:
        """Raise an error while a check is open.

        Raises:
            SufficeError: A check is open.
        """
        if self.checks.open is not None:
            raise SufficeError("a check is open; complete it with check.tell, or give it up with check.abort")

    def frozen(self, view: ModelView, *, probabilities: bool = False) -> FrozenModel:
        """The current model and its predictions, fixed for a check.

        Args:
            view: The current model.
            probabilities: Whether to store the probability of each prediction as well.
        """
        unlabelled = self.labels.unlabelled
        with one_thread():
            model, predictions = view.frozen(unlabelled)
            probable = prediction_probabilities(view, unlabelled) if probabilities else None
        return FrozenModel(
            model=model,
            name=f"{view.name} at {len(self.labels.learned)} labels",
            n_labelled=len(self.labels.learned),
            version=self.labels.version,
            labelled=tuple({**self.labels.learned, **self.labels.checked}),
            unlabelled=unlabelled,
            skipped=frozenset(self.labels.skipped),
            predictions=np.asarray(predictions),
            probabilities=probable,
        )

    @contextmanager
    def with_checked(
        self, labels: Mapping[int, Any], random: Collection[int], skipped: Collection[int] = ()
    ) -> Iterator[None]:
        """Count answers of a check that another object holds, until the context ends.

        In the context, estimates and decisions are those after the check, and no model is fitted again for them.
        Afterwards the session is as before, and so is the standing advice.

        Args:
            labels: Labels of the check that the model has not learned, by item.
            random: Those of the items that were drawn at random.
            skipped: Items of the check that cannot be labelled.
        """
        own, items = self.labels, [*labels, *skipped]
        status, checked, checked_random = own.status[items].copy(), own.checked, own.checked_random
        advice, compared, stop = self._advice, self._compared, self._stop
        own.checked, own.checked_random, self._advice = dict(checked), list(checked_random), advice.copy()
        try:
            own.add_checked(labels, random)
            own.mark(list(skipped), SKIPPED)
            if compared is not None:
                # The model has learned nothing since the last comparison.
                self._compared = len(own.everything), compared[1]
            with self.finish.kept(), self.estimates.without_refits():
                yield
        finally:
            own.checked, own.checked_random = checked, checked_random
            own.mark(items, status)
            self._advice, self._compared, self._stop = advice, compared, stop

    @property
    def guarantee(self) -> ModelGuarantee | None:
        """The newest guarantee, and whether it covers the current model; None if there is none."""
        check = self.checks.newest
        if check is None or check.guarantee is None:
            return None
        later = max(0, self.labels.size - check.pool_size)
        return ModelGuarantee(check.guarantee, check, check.version == self.labels.version, later)

    def _least_error(self) -> float | None:
        """The share of wrong predictions that the last check of the current model shows at least; None if not known."""
        check = self.checks.checks[-1] if self.checks.checks else None
        return check.least_error if check is not None and check.version == self.labels.version else None

    def _current_guarantee(self) -> Guarantee | None:
        """The guarantee of the current model, from a check or from the running check."""
        if self.running is not None:
            last = self.running.evaluations[-1] if self.running.evaluations else None
            return last.guarantee if last is not None and last.frozen.version == self.labels.version else None
        newest = self.guarantee
        return newest.guarantee if newest is not None and newest.about_present_model else None

    # Saving.

    def state_dict(self) -> dict[str, Any]:
        """The session as JSON values, without the steps, which the loop saves."""
        compared = None if self._compared is None else [self._compared[0], _as_list(self._compared[1])]
        return {
            "task": self.estimates.task,
            "labels": self.labels.state_dict(),
            "losses": self.estimates.losses.state_dict() if self.estimates.task else [],
            "rule": self.history.state_dict(),
            "checks": self.checks.state_dict(),
            "running": None if self.running is None else self.running.state_dict(),
            "version": self.labels.version,
            "advice": self._advice.state_dict(),
            "finish": self.finish.state_dict(),
            "compared": compared,
            "stop": self._stop.state_dict(),
        }

    def load_state(self, state: Mapping[str, Any], steps: Sequence[Step], owner: CheckOwner) -> None:
        """Restore :meth:`state_dict` into a new session.

        Args:
            state: The result of :meth:`state_dict`.
            steps: The steps that the rule has judged.
            owner: The loop, which receives the labels of checks.
        """
        self.labels.load_state(state["labels"])
        if state["task"] is not None:
            self.estimates.load_losses(state["task"], state["losses"])
        self.history.load_state(state["rule"], steps)
        self.checks.load_state(state["checks"], owner)
        if state["running"] is not None:
            self.running = RunningSample.from_state(state["running"])
            self.labels.sampled = self.running.labels
        self.labels.version = int(state["version"])
        self._advice = AdviceByTarget.from_state(state["advice"])
        self.finish.load_state(state.get("finish", ()))
        compared = state["compared"]
        if compared is not None:
            self._compared = compared[0], None if compared[1] is None else Alternative(*compared[1])
        self._stop = self._loaded_stop(state.get("stop"))

    def _loaded_stop(self, state: Mapping[str, Any] | None) -> StopState:
        """The saved stop. In states of earlier versions it follows from the history of the rule."""
        if state is None:
            stop = self.history.stop
            return StopState(None if stop is None else StandingStop(stop, self._labelled_classes()))
        loaded = StopState.from_state(state)
        if loaded.standing is None:
            return loaded
        # The verdict with its certificate, which is not saved.
        stop = loaded.standing.verdict
        same = next((each for each in self.history.verdicts if each.stop and each.reason == stop.reason), stop)
        return replace(loaded, standing=loaded.standing._replace(verdict=replace(same, n_labelled=stop.n_labelled)))


def _as_list(alternative: Alternative | None) -> list[Any] | None:
    return None if alternative is None else list(alternative)
