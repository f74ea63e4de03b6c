"""What every object that drives a session offers its users: labels, estimates, decisions, plans and checks."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from suffice.arguments import real, whole
from suffice.checks import CheckPlan, GuaranteePlan
from suffice.checks.guarantee import UnlabelableAs
from suffice.checks.sequential_plan import NO_PROBABILITY
from suffice.criteria import Verdict
from suffice.deprecation import without_argument
from suffice.errors import InvalidValueError, SufficeError
from suffice.models.threads import SingleUse, one_at_a_time
from suffice.session.decision import Alternative, Decision, DecisionNumbers, Worsening
from suffice.session.error_estimate import REST_ITEMS, CalibratedError, checked_tolerance
from suffice.session.finish import FinalLabels
from suffice.session.goals import Goal, TargetOf, checked_goal
from suffice.session.model_check import ModelCheck, ModelGuarantee
from suffice.session.model_view import ModelView
from suffice.session.session import Session
from suffice.session.suspicious_labels import SuspiciousLabel, suspicious_labels


class SessionDriver(ABC):
    """Base class of the loops. It answers all questions about a session from the session itself.

    Attributes:
        verdict: The verdict now, which agrees with :meth:`decision` without a target.
        verdicts: Verdicts of the rule for each step so far, with the current hyper-parameters.
    """

    _session: Session
    _single_use: SingleUse

    @abstractmethod
    def _view(self) -> ModelView | None:
        """The current model; None before it has started."""

    def _required_view(self) -> ModelView:
        """The current model.

        Raises:
            SufficeError: There is none yet.
        """
        view = self._view()
        if view is None:
            raise SufficeError(self._no_model())
        return view

    @abstractmethod
    def _no_model(self) -> str:
        """Why there is no model yet, and what to do."""

    @property
    def verdict(self) -> Verdict:
        """The verdict now, from which :meth:`decision` without a target follows: both are to stop, or neither is.

        It is that of the rule, with these exceptions. A stop stands although the rule would go on by little. A stop of
        the rule is held back by a rare class with few labels, and while a check is open. It is to stop if no items are
        left.
        """
        return self._session.verdict

    @property
    def rule_verdict(self) -> Verdict:
        """The verdict of the rule alone, now."""
        return self._session.rule_verdict

    def _settled(self) -> Verdict:
        """The verdict after the last labels."""
        return self._session.settle(self._view())

    @property
    def verdicts(self) -> list[Verdict]:
        """Verdicts of the rule for each step so far, with the current hyper-parameters."""
        return self._session.history.verdicts

    @property
    def labels(self) -> dict[int, Any]:
        """The label of each item, including labels of checks."""
        return self._session.labels.everything

    @property
    def _label_columns(self) -> int:
        return self._session.estimates.label_columns

    @property
    def left(self) -> int:
        """Items that are neither labelled nor skipped."""
        return self._session.labels.left

    @property
    def random_labels(self) -> int:
        """Number of labels that calibrate :meth:`error_estimate`."""
        view = self._view()
        return 0 if view is None else self._session.estimates.random_labels(view)

    @property
    def relevant_found(self) -> int | None:
        """Number of labelled items of the positive class, including those of checks; None without ``positive``."""
        return self._session.relevant_found

    @one_at_a_time
    def error_estimate(self, most: int = REST_ITEMS, *, tolerance: float | None = None) -> CalibratedError:
        """The error of the unlabelled items, estimated from the random labels and the model's own expectation.

        For classes it is the share of wrong predictions. For numbers it is the mean squared error, in squared units of
        the labels: ``value ** 0.5`` is the root mean squared error, in their unit, which :meth:`decision` states and
        takes as ``at_most``. With ``tolerance`` it is the share of predictions whose error exceeds the tolerance. It is
        an estimate, not a guarantee. Without random labels it cannot be verified: it is the error that the model
        expects of itself, which may be far too low, with a wide interval. If there are many unlabelled items, a sample
        of them is used; it stays the same except for items that are labelled.

        Each random label is predicted by a model that has not learned it. A Gaussian process, ridge or logistic
        regression of suffice leaves each label out. Any other model is copied and fitted again without a fifth of the
        random labels at a time, within the limit of ``estimate_time``; labels that were not predicted since have been
        predicted before they were learned, and count less. A model that cannot be fitted again has predicted all random
        labels before it learned them. Labels of complete checks are random labels.

        Args:
            most: Maximal number of unlabelled items to use.
            tolerance: For numbers: the largest error that is not wrong, at least 0.

        Raises:
            SufficeError: There is no model yet, or it predicts neither probabilities nor deviations.
            InvalidValueError: An argument is out of range, or ``tolerance`` is given for classes.
        """
        view = self._required_view()
        return self._session.estimates.estimate(view, most, tolerance=tolerance)

    @one_at_a_time
    def worsening(self) -> Worsening | None:
        """Evidence from the newer random labels that the model has become worse; None if there is none.

        Each random label was predicted before it was learned. If the current model, with each of these labels left out,
        predicts them clearly worse, the labels in between have made the model worse.

        Raises:
            SufficeError: There is no model yet.
        """
        return self._session.estimates.worsening(self._required_view())

    def expected_missed(self, most: int = REST_ITEMS) -> float:
        """The expected number of items of the positive class among the unlabelled items.

        It is the sum of the probabilities of the class, calibrated by the random labels. It is an estimate. It does not
        account for kinds of items of which none is found yet.

        Args:
            most: Maximal number of unlabelled items to use.

        Raises:
            SufficeError: There is no model yet.
            InvalidValueError: There is no positive class.
        """
        if self._session.positive is None:
            raise InvalidValueError("expected_missed is for screening: give positive=, the class")
        return self._session.estimates.expected_missed(self._required_view(), most)

    def class_ratio(self, class_name: Any) -> float:
        """Ratio of random labels of a class to the number that the model expects of them, shrunk towards 1.

        Args:
            class_name: The class.

        Raises:
            SufficeError: There is no model yet.
        """
        return self._session.estimates.class_ratio(self._required_view(), class_name)

    @one_at_a_time
    def decision(  # noqa: PLR0913 - all but one by keyword
        self,
        at_most: float | None = None,
        *,
        of: TargetOf = "rest",
        tolerance: float | None = None,
        annotator_error: float = 0.0,
        correction_cost: float = 1.0,
        compare: bool = True,
    ) -> Decision:
        """The decision: keep labelling, enough, or this model has reached its limit.

        Without a target, :attr:`verdict` and the decision are to stop at the same labels. A stop stands until a label
        is worth more than 1.5 times its cost at two successive steps, or 3 times at one, or a rare class appears, or
        the history is judged again and the rule does not say stop. The decision then states why the stop was withdrawn.
        A stop is held back while a rare class has fewer than 5 labels, see ``may_miss``. Decisions for the same
        ``at_most`` build on each other: a check that was advised stays advised unless a later one saves a quarter of
        the labels, and a target that was out of reach stays so until a check is advised.

        Args:
            at_most: The error that you want to reach: for classes the share of wrong predictions, for numbers the root
                of the mean squared error. With ``of="all"``: the acceptable share of wrong labels.
            of: What ``at_most`` is about. ``"rest"``: the items without a label. ``"all"``: all final labels, those of
                people included, which count as right. Every such goal can be reached, and it alone decides when to
                stop: people label items, a check covers the rest, and :meth:`final_labels` returns the result. In a
                screening (``positive``), ``at_most`` is the share of all items of the class that may be missed.
            tolerance: With ``of="all"``, for numbers: a value is wrong if it is off by more than this.
            annotator_error: With ``of="all"``: the share of the labels by people that may be wrong. It is subtracted
                from ``at_most``.
            correction_cost: With ``of="all"``: cost of an answer in the check relative to a label, below 1 if it is
                cheaper to confirm or correct a prediction that is shown.
            compare: Whether to compare the model with others on the same labels: at 30 labels, each time that their
                number has grown by half, and while a stop stands by a fifth. It takes a few seconds. A model is
                compared if it can leave its labels out, as the models of suffice can, or consists of trees, and if the
                inputs are numbers. A clearly better one can be given to :meth:`suffice.ActiveLearner.switch`.

        Raises:
            InvalidValueError: ``at_most`` is not a number, or out of range.
            SufficeError: The model predicts neither probabilities nor deviations.

        Examples:
            >>> import numpy as np
            >>> import suffice as sf
            >>> X = np.random.default_rng(0).normal(size=(300, 2)); y = np.where(X[:, 0] > 0.0, "right", "left")
            >>> learner = sf.ActiveLearner(sf.models.BayesianLogistic(), X)
            >>> while not learner.verdict.stop:
            ...     i = learner.ask()
            ...     verdict = learner.tell(i, y[i])
            >>> learner.decision().answer
            'enough'
            >>> learner.decision(at_most=0.2).answer  # a check has to guarantee that
            'keep going'
        """
        goal = None
        if at_most is not None or of != "rest":
            # Without a goal for all labels, the session validates the target: for numbers it is an error, not a share.
            share = at_most if of == "all" else 0.0
            goal = checked_goal(of, share, annotator_error, correction_cost, class_name=self._session.positive)
        if goal is None or goal.of == "rest":
            if tolerance is not None:
                raise InvalidValueError('tolerance is for a goal about all labels; give of="all", or leave it out')
            return self._session.decide(self._view(), at_most, compare=compare)
        self._require_no_running()
        self._session.require_labels('of="all" is about final labels')
        return self._session.decide_finish(self._view(), goal, checked_tolerance(tolerance, share=self.share))

    @one_at_a_time
    def final_labels(
        self, at_most: float | None = None, *, tolerance: float | None = None, annotator_error: float = 0.0
    ) -> FinalLabels:
        """All labels of the data set: those of people, and for the other items predictions that a check has covered.

        The predictions are those of the model when the check was drawn. Labels that people gave since replace them.
        Items that were skipped have no label, and do not count. In a screening, the guarantee is about the class that
        is looked for only.

        Args:
            at_most: The goal; that of the newest check with ``of="all"`` if left out.
            tolerance: For numbers: a value is wrong if it is off by more than this.
            annotator_error: As for :meth:`decision`.

        Raises:
            SufficeError: The goal is not reached.

        Examples:
            >>> import numpy as np
            >>> import suffice as sf
            >>> X = np.random.default_rng(0).normal(size=(600, 2)); y = np.where(X[:, 0] > 0.0, "right", "left")
            >>> learner = sf.ActiveLearner(sf.models.BayesianLogistic(), X, seed=0)
            >>> while not (decision := learner.decision(at_most=0.05, of="all")).stop:
            ...     if decision.finish is not None and decision.finish.check_now:
            ...         check = learner.check(at_most=0.05, of="all")
            ...         while check.open:
            ...             proven = check.tell(y[check.pending])
            ...     else:
            ...         i = learner.ask(5)
            ...         verdict = learner.tell(i, y[i])
            >>> final = learner.final_labels()
            >>> final.guarantee.wrong_at_most, int(sum(np.array(final.labels) != y)) <= 30
            (30, True)
        """
        self._session.require_labels("final_labels are classes or numbers")
        goal = None
        if at_most is not None:
            goal = checked_goal("all", at_most, annotator_error, class_name=self._session.positive)
        return self._session.finish.final_labels(self._view(), goal, checked_tolerance(tolerance, share=self.share))

    @one_at_a_time
    def decision_numbers(
        self, at_most: float | None = None, *, compare: bool = True, recall: float | None = None
    ) -> DecisionNumbers:
        """The numbers of :meth:`decision`, for a program that adds numbers of its own before it decides.

        Args:
            at_most: As for :meth:`decision`.
            compare: As for :meth:`decision`.
            recall: In a screening: the recall of the positive class that is to be reached.
        """
        return self._session.numbers(self._view(), at_most, compare=compare, screening=recall)

    @one_at_a_time
    def finish_numbers(self, goal: Goal, tolerance: float | None = None) -> DecisionNumbers:
        """The numbers of :meth:`decision` for a goal about all final labels, as :meth:`decision_numbers`.

        Args:
            goal: The goal.
            tolerance: For numbers: a value is wrong if it is off by more than this.
        """
        return self._session.finish_numbers(self._view(), goal, checked_tolerance(tolerance, share=self.share))

    def finish_due(self, goal: Goal, tolerance: float | None = None) -> bool:
        """Whether :meth:`finish_numbers` would make the plan again; arguments as there."""
        return self._session.finish.due(goal, tolerance)

    def finish_totals(self, goal: Goal, tolerance: float | None = None) -> tuple[tuple[int, int], ...]:
        """Number of labels at each plan for a goal so far, and the labels by people that it expected at the end."""
        return self._session.finish.totals(goal, tolerance)

    @contextmanager
    def with_checked(
        self, labels: Mapping[int, Any], *, random: Collection[int], skipped: Collection[int] = ()
    ) -> Iterator[None]:
        """Count answers of a check that a program of its own has drawn, until the context ends.

        In the context, estimates and decisions are those after the check. The model does not learn the labels, and
        nothing remains of them afterwards.

        Args:
            labels: Labels of the check by item. The model has not learned them.
            random: Those of the items that were drawn at random from the unlabelled ones.
            skipped: Items of the check that cannot be labelled.
        """
        with self._session.with_checked(labels, random, skipped):
            self._settled()
            yield

    def decision_due(self, at_most: float | None = None, *, compare: bool = True) -> bool:
        """Whether a decision now would update the standing advice, or compare the model with others."""
        return self._session.due(at_most, compare=compare)

    @property
    def standing_stop(self) -> Verdict | None:
        """The verdict of the rule at which the stop was stated, if it stands."""
        return self._session.standing_stop

    @property
    def share(self) -> bool:
        """Whether errors are shares of wrong predictions, because labels are classes."""
        return self._session.estimates.share

    @one_at_a_time
    def better_model(self) -> Alternative | None:
        """Another model that is better on the labels so far, or None.

        See :func:`suffice.session.model_comparison.better_model`.

        Raises:
            SufficeError: There is no model yet.
        """
        return self._session.estimates.better_model(self._required_view())

    @one_at_a_time
    def suspicious_labels(self, n: int | None = None) -> list[SuspiciousLabel]:
        """The labels, ranked by how unlikely they are to models that have not learned them, the least likely first.

        See :func:`suffice.session.suspicious_labels.suspicious_labels`. The first labels should be reviewed; not all of
        them are wrong. The method takes about a second for 500 labels. Items of checks that were not aborted are left
        out: their labels are the evidence for a guarantee, and correcting only the unlikely ones would bias it.

        Args:
            n: How many labels to return; all if left out.

        Returns:
            The labels with their predictions without them; empty if there are fewer than 20 or all are the same.

        Raises:
            SufficeError: There is no model yet.
            InvalidValueError: ``n`` is not a whole number of at least 1.

        Examples:
            >>> import numpy as np
            >>> import suffice as sf
            >>> X = np.linspace(-2.0, 2.0, 60)[:, None]
            >>> y = np.where(X[:, 0] < 0.0, "left", "right")
            >>> learner = sf.ActiveLearner(sf.models.BayesianLogistic(), X, initial=10, seed=0)
            >>> while len(learner.labelled) < 40:
            ...     items = learner.ask(10)
            ...     verdict = learner.tell(items, y[items])
            >>> wrong = max(learner.labelled)
            >>> verdict = learner.correct(wrong, "left")
            >>> learner.suspicious_labels(1)[0].item == wrong
            True
        """
        wanted = None if n is None else whole(n, "n", least=1)
        view, learned = self._required_view(), self._session.labels.learned
        order = list(view.learned_order())
        labels = {item: learned[item] for item in order}
        ranked = suspicious_labels(view.judged_model(), view.inputs(np.array(order, dtype=np.intp)), labels)
        evidence = {item for check in self._session.checks.checks if not check.aborted for item in check.record.items}
        return [each for each in ranked if each.item not in evidence][:wanted]

    # Checks.

    @one_at_a_time
    def check(  # noqa: PLR0913 - one quantity of several, by keyword
        self,
        m: int | None = None,
        at_most: float | None = None,
        *,
        recall_of: Any = None,
        precision_of: Any = None,
        tolerance: float | None = None,
        share: float | None = None,
        unlabelable_as: UnlabelableAs = "wrong",
        predicted_as_found: bool = True,
        corrected: bool = False,
        of: TargetOf = "rest",
        annotator_error: float = 0.0,
        confidence: float | None = None,
    ) -> ModelCheck:
        """Freeze the model and draw a random check of the unlabelled items, to guarantee its predictions for them.

        With a target, ``at_most``, the check is sequential: it ends by itself as soon as the target is proven. With a
        size, ``m``, it guarantees what its sample shows.

        For classes the check guarantees the share of wrong predictions, or the recall or precision of a class. For
        numbers it guarantees the share of predictions whose error exceeds ``tolerance``, or the tolerance that at most
        a ``share`` of the predictions exceeds. See :class:`suffice.learner.ModelCheck` for the labels of the
        check, and the guide on guarantees for what is guaranteed.

        Several checks share the error probability: check number j spends ``alpha / (j (j + 1))``, also if it is
        aborted. While a check is open, other items can be labelled.

        Args:
            m: Number of items to draw, for a check of fixed size.
            at_most: The target, for a sequential check: the largest acceptable share of wrong predictions. It is a
                share of the items that are unlabelled now.
            recall_of: Guarantee the share of the items of this class that are labelled or predicted as such.
            precision_of: Guarantee the share of the items predicted as this class that belong to it. The check is drawn
                from these items only, and its labels do not count as random labels.
            tolerance: Largest acceptable distance between number and prediction.
            share: Share of the predictions that may exceed the tolerance that the check finds.
            unlabelable_as: How items that cannot be labelled count. ``"wrong"``: as wrong predictions; items skipped
                before are part of the pool, and if drawn they are not asked for. ``"excluded"``: not at all; items
                skipped before are not part of the pool.
            predicted_as_found: Whether items predicted as the class count as found, for ``recall_of``. If not, only
                the items that annotators labelled count.
            corrected: With ``at_most``: whether the items that the check finds wrong are corrected, and do not count.
            of: With ``at_most``: what it is a share of, as for :meth:`decision`. With ``"all"``, at most so many wrong
                predictions are proven for the items that nobody labels that ``at_most`` of all final labels are wrong.
                In a screening (``positive``), at most so many missed items of the class are proven that ``at_most`` of
                the class are missed; items that cannot be labelled count as items of the class.
            annotator_error: With ``of="all"``: as for :meth:`decision`.
            confidence: Confidence of all checks together; 0.95 if left out at the first check, and that of the first
                check afterwards.

        Raises:
            SufficeError: There is no model yet, or another check is open.
            InvalidValueError: An argument cannot be used; nothing is spent.
        """
        self._require_no_running()
        self._session.require_no_open_check()
        self._required_view()
        asked: dict[str, Any] = {"recall_of": recall_of, "precision_of": precision_of, "tolerance": tolerance}
        asked |= {"share": share, "unlabelable_as": unlabelable_as, "predicted_as_found": predicted_as_found}
        asked |= {"at_most": at_most, "corrected": corrected, "of": of}
        asked |= {"annotator_error": annotator_error, "confidence": confidence}
        return self._draw_check(m, asked)

    @abstractmethod
    def _draw_check(self, m: int | None, asked: dict[str, Any]) -> ModelCheck:
        """Draw a check of a validated kind, and keep its items apart."""

    def _require_no_running(self) -> None:
        if self._session.running is not None:
            raise SufficeError(
                "the running check uses the whole error probability, so that there is none for other checks; leave "
                "check_share out to check on demand"
            )

    @property
    def checks(self) -> list[ModelCheck]:
        """All checks in the order in which they were drawn, aborted ones included."""
        return list(self._session.checks.checks)

    @property
    def guarantee(self) -> ModelGuarantee | None:
        """The newest guarantee, and whether it covers the current model; None if there is none."""
        return self._session.guarantee

    @one_at_a_time
    def check_size(self, at_most: float, *, tolerance: float | None = None, probability: float = 0.8) -> int | None:
        """Number of labels of a check that is likely to guarantee an error of at most ``at_most`` now.

        It assumes that :meth:`error_estimate` is correct, and uses the error probability of the next check; see
        :func:`suffice.checks.plan`. :meth:`guarantee_plan` states whether to check now or to label more first.

        Args:
            at_most: The share of wrong predictions to guarantee.
            tolerance: For numbers: a prediction is wrong if it is off by more than this.
            probability: Requested probability that the check succeeds.

        Returns:
            The least size that succeeds with that probability; None if every item must be labelled.

        Raises:
            SufficeError: There is no model yet, or nothing is left to label.
            InvalidValueError: The model predicts numbers and no tolerance is given, or an argument is out of range.
        """
        target = real(at_most, "at_most", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
        return self._session.plans.size(self._checkable(), target, tolerance=tolerance, probability=probability)

    @without_argument("probability", NO_PROBABILITY)
    @one_at_a_time
    def guarantee_plan(self, at_most: float, *, tolerance: float | None = None) -> GuaranteePlan:
        """Plan of labels and check that guarantee at most a given share of wrong predictions at the least cost.

        The plan is computed from :meth:`error_estimate` and its reducible part. The reducible part is the decrease of
        the error that the model expects if its parameters were known, calibrated like the error. See
        :func:`suffice.checks.plan_total`. The plan is an estimate, and its accuracy increases with the number of random
        labels. It never expects a smaller share of wrong predictions than :math:`1 / (2 (n + 1))` at :math:`n` labels,
        or :math:`3 / n` while only one class is known. Skipped items can be drawn, and count as wrong.

        Args:
            at_most: The share of wrong predictions to guarantee.
            tolerance: For numbers: a prediction is wrong if it is off by more than this.

        Raises:
            SufficeError: There is no model yet, or nothing is left to label.
            InvalidValueError: The model predicts numbers and no tolerance is given, or an argument is out of range.

        Examples:
            >>> import numpy as np
            >>> import suffice as sf
            >>> rng = np.random.default_rng(0)
            >>> X = rng.normal(size=(2000, 5)); y = np.where(X[:, 0] + X[:, 1] > 0.0, "right", "left")
            >>> learner = sf.ActiveLearner(sf.models.BayesianLogistic(), X, seed=0)
            >>> verdict = learner.tell(learner.ask(10), y[learner.ask(10)])
            >>> while not (plan := learner.guarantee_plan(at_most=0.1)).check_now:
            ...     i = learner.ask()
            ...     verdict = learner.tell(i, y[i])
            >>> check = learner.check(at_most=0.1)
            >>> while check.open:
            ...     proven = check.tell(y[check.pending])
            >>> proven.value <= 0.1
            True
        """
        target = real(at_most, "at_most", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
        return self._session.plans.total(self._checkable(), target, tolerance=tolerance)

    @one_at_a_time
    def recall_plan(
        self, class_name: Any, at_least: float, *, predicted_as_found: bool = True, probability: float = 0.8
    ) -> CheckPlan:
        """Cost of a check of the recall of a class, ``check(m, recall_of=class_name)``, before it is drawn.

        The plan assumes that the model's estimate of the number of items of the class, calibrated by the random labels,
        is correct. It uses the error probability of the next check; see :func:`suffice.checks.plan_recall`. It states
        if every item must be labelled.

        Args:
            class_name: The class.
            at_least: The recall to guarantee, above 0 and at most 1.
            predicted_as_found: As for :meth:`check`.
            probability: Requested probability that the check succeeds.

        Raises:
            SufficeError: There is no model yet, or nothing is left to label.
            InvalidValueError: The model predicts numbers or does not know the class, or an argument is out of range.

        Examples:
            >>> import numpy as np
            >>> import suffice as sf
            >>> X = np.random.default_rng(0).normal(size=(3000, 2)); y = np.where(X[:, 0] > 1.3, "spam", "ham")
            >>> learner = sf.ActiveLearner(sf.models.BayesianLogistic(), X)
            >>> for _ in range(10):
            ...     i = learner.ask(10)
            ...     verdict = learner.tell(i, y[i])
            >>> learner.recall_plan("spam", at_least=0.9).labels
            614
            >>> learner.recall_plan("spam", at_least=0.9, predicted_as_found=False).labels > 2500
            True
        """
        view = self._checkable()
        if not self._session.estimates.share:
            raise InvalidValueError("recall_plan is for classes, and the model predicts numbers; use guarantee_plan")
        return self._session.plans.recall(
            view, class_name, at_least, predicted_as_found=predicted_as_found, probability=probability
        )

    def _checkable(self) -> ModelView:
        """The current model, if there are items from which a check can be drawn."""
        self._require_no_running()
        view = self._required_view()
        if not len(self._session.labels.unlabelled):
            raise SufficeError("every item of the pool is labelled; there is nothing left to check")
        return view
