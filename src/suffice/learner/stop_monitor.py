"""A stopping rule for any model and loop: one call per round with the model and all labels so far."""

import operator
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from suffice.acquisition import Indices
from suffice.arguments import real, whole
from suffice.checks.random_source import CHECK_STREAM, check_rng
from suffice.checks.registry import CheckRegistry, registered_items
from suffice.criteria import Criterion, LabelWorth, QuantileRecall, Step, Verdict, criterion_from_dict
from suffice.criteria.base import require_rule
from suffice.deprecation import warn_deprecated
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.learner.available_fields import CLASS_FIELDS, FUNCTION, wanted_fields
from suffice.learner.class_columns import columns_of
from suffice.learner.earlier_predictions import answered_before, predicted_before, uses_own_model
from suffice.learner.label_sets import label_codes
from suffice.learner.model_predictions import FittedModel, PoolRows, Predict
from suffice.learner.monitor_records import (
    FORMAT,
    OLDER_FORMAT,
    frame_of_steps,
    from_older_state,
    restored_steps,
    saved_steps,
    trace_of_steps,
    verdict_card,
)
from suffice.learner.monitor_round import MonitorRound, MonitorView, RememberedModel, StepEvidence
from suffice.learner.more_rows import extended_pool
from suffice.learner.pool_predictions import PoolPredictions, flag
from suffice.learner.pool_sample import PoolSample
from suffice.learner.prepare import checked_indices
from suffice.learner.set_questions import SetQuestions
from suffice.learner.step_inputs import (
    SELECTED_FIELDS,
    STOP_SET_FIELDS,
    StopSet,
    positive_class,
    relevant_estimates,
    stop_items,
)
from suffice.learner.update_arguments import ArgumentReader, GivenArguments, UpdateArguments
from suffice.learner.update_memory import EarlierRow, UpdateMark, UpdateMemory
from suffice.models.inputs import as_labels
from suffice.models.logistic import class_labels
from suffice.models.threads import SingleUse, one_at_a_time
from suffice.presentation.text_format import percent
from suffice.saved_state import restored, sealed
from suffice.session.guarantee_rules import rules_of_type
from suffice.session.model_check import ModelCheck
from suffice.session.random_losses import RandomLabelLosses
from suffice.session.recorded_steps import DIVERGENCES
from suffice.session.refit_budget import checked_estimate_time
from suffice.session.rule_history import RuleHistory
from suffice.session.session import Session
from suffice.session.session_labels import RULE_ITEMS, SKIPPED, UNLABELLED, sampled_items
from suffice.session.standing_stop import Cause, classes_that_may_be_missed
from suffice.trace import Trace, drawn_curve

# Number of items for which the caller's function is called again as a test.
_ASKED_ITEMS: Final = 5
_FIRST: Final = "the rule compares the model with the one before, and this is the first"
_NOT_KEPT: Final = "the rule compares the model with the one before, of which {} is not known any more"


class StopMonitor(SetQuestions):
    """Applies a stopping rule to a model and a loop of any kind.

    Call :meth:`update` after each round with the fitted model and all labels so far. The monitor finds which labels are
    new, corrected or removed, computes the inputs that the rule requires, and returns its verdict. It never fits or
    changes a model. It uses whichever of these the model provides:

    - ``predict_proba``, with ``classes_``;
    - ``estimators_``, as a committee, if the prediction of the ensemble is their average (forests, bagging);
    - ``predict(X, return_std=True)``, for numbers;
    - the posterior of a model of suffice, or of one that :func:`suffice.posteriors.fitted_posterior` knows: among them
      scikit-learn's ``LogisticRegression``, ``BayesianRidge`` and Gaussian processes, also at the end of a pipeline;
    - ``predict=``, for any other model.

    Instead of a model, :meth:`update` takes class probabilities, predicted classes or numbers of the whole pool, so
    that a program in another language can use it; or whether earlier predictions were right, for boxes and other
    structured answers. The error is then estimated from predictions that were made before the labels were learned.

    Some rules compare the model with the model of the previous update. Their first verdict is undecided. An update
    without new labels replaces the previous step. If labels were removed, steps with as many labels or more are
    removed.

    Divergences compare two posteriors that differ in labels only. Both have the hyper-parameters and the transformers
    of the current model. If these have changed, the posterior of the previous update is computed again from its labels.

    Averages and counts over a pool of more than 100,000 items are computed over a random sample of it: the unlabelled
    ones of 2000 items, the same at each update. The verdict says so. A maximum or minimum is computed over all items.

    A classifier without probabilities can be judged by rules that use nothing but the predicted classes, such as
    :class:`suffice.StabilizingPredictions`.

    :class:`suffice.LabelWorth` requires the part of the error that more labels can remove. It is computed from a
    committee, the posterior of a model of suffice, or the variance of a Bayesian regression. Otherwise the recent gain
    is used, or the share ``50 / (50 + n)`` of the error at ``n`` labels if that is larger. This also applies to a
    committee whose members are always certain, such as the trees of a forest with default settings, because it does not
    distinguish noise from uncertainty about the model.

    Args:
        X_pool: All items, labelled and unlabelled: an array, a pandas or polars DataFrame, a sparse matrix, a list of
            texts, a Hugging Face data set, or anything else with a length whose items can be selected. It is not
            copied.
        rule: The stopping rule, which is copied; :class:`suffice.LabelWorth` with the two costs if left out.
        label_cost: Cost of a label, above 0.
        mistake_cost: Cost of a wrong prediction among the unlabelled items, above 0.
        seed: Seed of the samples and of the checks. Left out, the samples are those of seed 0, and checks are drawn
            from fresh entropy: several monitors do not draw the same check.
        predict: For a model without the methods above, a function ``predict(model, X)`` that returns class
            probabilities, ``N x C``, or those of ``K`` members of a committee, ``N x K x C``; for numbers, a mean and a
            standard deviation of the label, ``(N, N)``. ``X`` is a part of the pool in its own form. The function must
            use the model that it is given, which may be a copy. The columns are those of ``model.classes_``, else the
            classes in sorted order.
        stop_set: The stop set, or its size, for rules that watch predictions; 2000 items of the pool (or all), drawn
            with the seed, if left out.
        positive: For screening: the class that is looked for. Rules such as :class:`suffice.RecallTest` require it.
        may_miss: For classes: a class, or several, that may be missed, as for :class:`suffice.ActiveLearner`.
        control: For :class:`suffice.QuantileRecall`: items of the positive class that were drawn at random before the
            screening, as indices into the pool. Do not give their labels to :meth:`update` before the screening finds
            them.
        estimate_time: How often the model may be fitted again to estimate its error, as a multiple of your own fits; 0
            for never. See :meth:`error_estimate`.
        checks: The registry that counts the checks of these items, see :class:`suffice.checks.CheckRegistry`. Give the
            same one to all learners and monitors of the same items: their checks share the error probability. Left out,
            the monitor counts its own checks.
        earlier_checks: Instead of ``checks``: how many checks of these items were started before, by other objects. The
            next one has the number after them.

    Attributes:
        verdict: The verdict now, which agrees with :meth:`decision` without a target.
        rule_verdict: The verdict of the rule alone.
        verdicts: The verdicts of the rule at each step.

    Examples:
        >>> import numpy as np
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> X = np.random.default_rng(0).normal(size=(1000, 4)); y = np.where(X[:, 0] > 0.0, "right", "left")
        >>> monitor = StopMonitor(X, label_cost=1.0, mistake_cost=0.5)
        >>> for n in range(20, 1000, 20):
        ...     model = RandomForestClassifier(random_state=0).fit(X[:n], y[:n])
        ...     verdict = monitor.update(model, np.arange(n), y[:n], random=np.arange(n))
        ...     if verdict.stop:
        ...         break
        >>> verdict.stop, verdict.n_labelled < 200
        (True, True)
    """

    def __init__(  # noqa: PLR0913, PLR0917 - all but one have defaults
        self,
        X_pool: Any,
        rule: Criterion | None = None,
        label_cost: float = 1.0,
        mistake_cost: float = 1.0,
        seed: int | None = None,
        predict: Predict | None = None,
        *,
        stop_set: StopSet | int | None = None,
        positive: Any = None,
        may_miss: Any = (),
        control: Any = (),
        estimate_time: float = 1.0,
        checks: CheckRegistry | None = None,
        earlier_checks: int = 0,
    ) -> None:
        self._label_cost = real(label_cost, "label_cost", "above 0", lambda x: x > 0.0)
        self._mistake_cost = real(mistake_cost, "mistake_cost", "above 0", lambda x: x > 0.0)
        if rule is None:
            rule = LabelWorth(label_cost=self._label_cost, mistake_cost=self._mistake_cost)
        require_rule(rule, "rule")
        if predict is not None and not callable(predict):
            raise InvalidTypeError(f"predict must be {FUNCTION} predictions, not {type(predict).__name__}")
        self._given_seed = None if seed is None else whole(seed, "seed", least=0)
        self._seed = self._given_seed or 0
        self._pool, self._predict = PoolRows(X_pool), predict
        size = len(self._pool)
        self._estimate_time = checked_estimate_time(estimate_time)
        self._may_miss = classes_that_may_be_missed(may_miss)
        self._session = Session(
            size,
            rule,
            partial(check_rng, self._given_seed, CHECK_STREAM),
            positive=positive_class(positive),
            estimate_time=self._estimate_time,
            registered=registered_items(checks, earlier_checks, X_pool),
            may_miss=self._may_miss,
        )
        self._session.rule_verdict = self._undecided("no model was given yet; call update", 0)
        self._control = self._checked_control(control)
        self._single_use = SingleUse()
        self._stop: Indices = np.zeros(0, dtype=np.intp)
        if self._rule.reads() & STOP_SET_FIELDS:
            self._stop = stop_items(stop_set, size, self._seed)
        self._watched = self._drawn_sample()
        self._since = time.monotonic()
        self._memory = UpdateMemory()
        # The model of the last update: a copy, or its predictions.
        self._kept: FittedModel | RememberedModel | None = None
        self._last_view: MonitorView | None = None
        # Results of the caller's function for some items.
        self._answers: Any = None

    def _drawn_sample(self) -> PoolSample:
        """The items over which the statistics of a large pool are averaged, if the rule reads any."""
        return PoolSample.draw(len(self._pool), self._seed, wanted="pool_sample" in self._rule.reads())

    def _checked_control(self, control: Any) -> frozenset[int]:
        items = checked_indices(control, len(self._pool), "control").tolist() if np.size(control) else []
        if items and self._session.positive is None:
            raise InvalidValueError("control holds items of the positive class; give positive= too, its name")
        for rule in rules_of_type(self._rule, QuantileRecall):
            if items and rule.sample != len(items):
                raise InvalidValueError(
                    f"QuantileRecall is for a control sample of {rule.sample} items, and control has {len(items)}; "
                    "give all of them, or another sample"
                )
        return frozenset(items)

    def __repr__(self) -> str:
        count = f"{len(self._session.labels.learned)} of {len(self._pool)} items labelled"
        return f"StopMonitor({type(self._rule).__name__}: {count}, {'stop' if self.verdict.stop else 'go on'})"

    @property
    def _rule(self) -> Criterion:
        return self._session.history.rule

    @property
    def _task(self) -> str | None:
        return self._session.estimates.task

    def _no_model(self) -> str:
        return "the monitor has no model yet; call update(model, indices, labels) first"

    def _view(self) -> MonitorView | None:
        return self._last_view

    def _make_view(self) -> None:
        """Make the view of the model of the last update."""
        if self._kept is not None:
            assert self._task is not None
            learned, memory = self._session.labels.learned, self._memory
            self._last_view = MonitorView(
                self._kept, memory.columns, self._task, memory.model_name, learned, memory.order
            )

    @property
    def steps(self) -> list[Step]:
        """The steps that the rule has judged, or judged again after labels were removed."""
        return list(self._session.history.steps)

    @one_at_a_time
    def update(  # noqa: PLR0913 - all but four by keyword
        self,
        model: Any = None,
        indices: Any = None,
        labels: Any = None,
        random: Any = (),
        *,
        probabilities: Any = None,
        predictions: Any = None,
        classes: Any = None,
        correct: Any = None,
    ) -> Verdict:
        """Update with a model, or its predictions, and all labels so far, and return the verdict.

        Args:
            model: The fitted model. It is not changed; a copy is kept until the next update. Or a function of a part of
                the pool that returns what ``probabilities`` or ``predictions`` may hold. It is called for all items.
            indices: All items that are labelled, as indices into the pool.
            labels: Their labels: classes or numbers, in the same order; or sets of classes, as a matrix of 0 and 1 with
                a column for each class. Left out with ``correct``.
            random: Those of the items that were drawn at random from the unlabelled ones, as indices or as one flag for
                each item. They calibrate the estimate of the error: the model of the update before has predicted each
                of them without knowing it. Items that were named once need not be named again.
            probabilities: Instead of a model: its class probabilities for all items of the pool, ``N x C``, or those of
                ``K`` members of a committee, ``N x K x C``.
            predictions: Instead of a model: its predicted class or number for each item of the pool; for numbers also
                ``(mean, std)``. Text, flags, and whole numbers if the labels are whole numbers, are classes.
            classes: With ``probabilities``: the class of each column. Left out, the names of the columns of a DataFrame
                if they are classes, otherwise those of the update before if they are as many, otherwise the classes of
                the labels in sorted order. With ``predictions``: all classes, if they
                are numbers. With sets of classes: the name of each column.
            correct: Instead of a model and labels, for boxes, sets of classes and other structured answers: whether the
                prediction for an item, made before its label was learned, was right. True or False by item, or one for
                each of ``indices`` with None for an item without such a prediction.

        Raises:
            MissingInputError: The rule requires an input that the model or its predictions do not provide; the message
                names it, and rules that work.
            InvalidValueError: An argument cannot be used. Nothing is changed.
            SufficeError: The model is not fitted.

        Examples:
            Predictions of a program in another language, and right or wrong answers:

            >>> import numpy as np
            >>> from suffice import Budget
            >>> rng = np.random.default_rng(0); truth = np.arange(500) % 2
            >>> monitor = StopMonitor(range(500), rule=LabelWorth() & Budget(20))
            >>> for n in (20, 30):
            ...     right = np.where(rng.random(500) < 0.9, truth, 1 - truth)  # read from a file
            ...     p = np.where(right[:, None] == [0, 1], 0.8, 0.2)
            ...     verdict = monitor.update(probabilities=p, indices=range(n), labels=truth[:n], random=range(n))
            >>> monitor.error_estimate().random_labels
            10
            >>> monitor = StopMonitor(range(500), rule=Budget(40))
            >>> print(monitor.update(correct={10: True, 11: False}, indices=range(12), random=[10, 11]))
            Go on at 12 labels: 12 labels are bought, and the budget is 40. 28 more labels.
        """
        said = self._reader().read(
            GivenArguments(model, indices, labels, random, probabilities, predictions, classes, correct)
        )
        fitted, given, memory = said.fitted, said.labels, self._memory
        new = self._new_items(given)
        self._session.checks.require_not_in_open(new, "tell")
        drawn = said.drawn | self._checked_at_random().intersection(given)
        wanted = self._wanted(fitted)
        earlier = self._usable(self._earlier_predictions(said, new, drawn, wanted), fitted, drawn)
        marks = memory.marks_before(len(given))
        update = MonitorRound(
            fitted,
            given,
            {**memory.earlier, **earlier},
            columns_of(fitted, given, memory.columns.classes, predicted=bool(wanted & CLASS_FIELDS)),
            len(self._pool),
            self._watched,
            sampled_items(len(self._pool), RULE_ITEMS[fitted.task]),
            self._stop,
            self._session.positive,
            said.items.tolist(),
        )
        serial = self._session.labels.version + 1
        arrival = {item: memory.arrival.get(item, serial) for item in given}
        since = marks[-1].serial if marks else -1
        selected = [item for item, number in arrival.items() if number > since]
        evidence = update.evidence(wanted, marks[-1] if marks else None, memory.recent.before(len(given)), selected)
        at_random = drawn.union(self._session.labels.random)
        random_items = [item for item in given if item in at_random]
        kept = self._keep(update, wanted)
        view = MonitorView(kept, update.columns, fitted.task, fitted.name, given, update.order)
        losses = self._losses_after(update, random_items)
        counted, calibration = self._counted(update, view, losses, random_items, wanted)
        fields = {name: value for name, value in (evidence.fields | counted).items() if name in wanted}
        history, verdict = self._judged(given, fields, evidence.why, marked=bool(marks))
        asked = fitted.answers(update.sample[:_ASKED_ITEMS]) if fitted.asks_function else None

        # Nothing was changed until here.
        session = self._session
        corrected, change = self._corrected(given)
        session.labels.replace(given, random_items)
        session.estimates.set_losses(fitted.task, losses)
        session.estimates.right_or_wrong = said.answers is not None
        session.estimates.label_columns = len(said.names)
        session.history, session.labels.version = history, serial
        session.estimates.reducible_error = (
            float(fields.get("reducible_error", 0.0)) if session.estimates.share else 0.0
        )
        self._memory = UpdateMemory(
            columns=update.columns,
            arrival=arrival,
            order=list(update.order),
            earlier={item: row for item, row in update.earlier.items() if item in given},
            marks=_marks_after(marks, given, serial, evidence, wanted),
            recent=evidence.recent,
            calibration=calibration,
            names=said.names,
            model_name=fitted.name,
        )
        self._kept, self._answers, self._last_view = kept, asked, view
        for item in [*new, *corrected]:
            session.checks.answered(item, given[item])
        session.conclude(verdict, change=change)
        return self._settled()

    # Labels.

    def _reader(self) -> ArgumentReader:
        """What was given before, on which the arguments of an update depend."""
        session = self._session
        return ArgumentReader(
            pool=self._pool,
            predict=self._predict,
            positive=session.positive,
            may_miss=self._may_miss,
            task=self._task,
            right_or_wrong=session.estimates.right_or_wrong,
            names=self._memory.names,
            columns=self._memory.columns.of_model,
            learned=session.labels.learned,
            everything=session.labels.everything,
            checked={item: label for check in session.checks.checks for item, label in check.record.labels.items()},
        )

    def _new_items(self, given: Mapping[int, Any]) -> list[int]:
        """The items of an update that had no label before."""
        learned = self._session.labels.learned
        new = [item for item in given if item not in learned]
        if learned and given and len(new) == len(given):
            raise InvalidValueError(
                f"update takes all labels so far, and none of the {len(learned):,} earlier ones is among these "
                f"{len(given):,}; give the earlier labels too, or use a new StopMonitor to start again"
            )
        return new

    def _corrected(self, given: Mapping[int, Any]) -> tuple[list[int], Cause | None]:
        """The items whose labels have changed, and what has happened to the labels besides new ones."""
        learned = self._session.labels.learned
        corrected = [item for item in given if item in learned and learned[item] != given[item]]
        return corrected, "removed" if learned.keys() - given.keys() else "corrected" if corrected else None

    def _checked_at_random(self) -> set[int]:
        """The items of checks that are a random sample."""
        return {item for check in self._session.checks.checks for item in check.random_prefix}

    # Inputs of the rule, and capabilities of the model.

    def _wanted(self, fitted: FittedModel) -> frozenset[str]:
        """The fields that the rule uses and this model provides.

        Raises:
            MissingInputError: The rule requires another one.
        """
        screening, control = self._session.positive is not None, bool(self._control)
        return wanted_fields(self._rule, fitted, size=len(self._pool), screening=screening, control=control)

    def _earlier_predictions(
        self, said: UpdateArguments, new: list[int], drawn: set[int], wanted: frozenset[str]
    ) -> dict[int, EarlierRow]:
        """Predictions of the previous model for items that were labelled since."""
        if said.answers is not None:
            losses = None if self._task is None else self._session.estimates.losses
            known = set() if losses is None else {item for item in said.answers if losses.has(item)}
            # In the first update, the labels without a prediction are those that the model had learned.
            n = len(said.labels)
            return answered_before(said.answers, drawn, known, len(self._memory.order) or n - len(said.answers) or n)
        items = new if wanted & SELECTED_FIELDS else [item for item in new if item in drawn]
        if not items or self._kept is None:
            return {}
        assert self._last_view is not None
        votes = "selected_agreement" in wanted
        return predicted_before(self._kept, self._last_view, self._memory.columns, items, votes=votes)

    def _usable(self, earlier: dict[int, EarlierRow], fitted: FittedModel, drawn: set[int]) -> dict[int, EarlierRow]:
        """Earlier predictions; none by a function that does not use the model that it is given.

        Raises:
            InvalidValueError: The rule or a random label needs these predictions.
        """
        if not earlier or not fitted.asks_function or self._answers is None or not isinstance(self._kept, FittedModel):
            return earlier
        sample = sampled_items(len(self._pool), RULE_ITEMS[fitted.task])[:_ASKED_ITEMS]
        if uses_own_model(self._kept, fitted, sample, self._answers):
            return earlier
        if self._rule.needs() & SELECTED_FIELDS or not drawn.isdisjoint(earlier):
            raise InvalidValueError(
                "predict must use the model that it is given, a copy of the one of the update before; it returned the "
                "predictions of the current one, so that labels would be judged by a model that has learned them"
            )
        return {}

    @staticmethod
    def _keep(update: MonitorRound, wanted: frozenset[str]) -> FittedModel | RememberedModel:
        """A copy of the model, or its predictions for all unlabelled items if it cannot be copied."""
        copied = update.fitted.frozen()
        if copied is not None:
            return copied
        votes = "selected_agreement" in wanted
        return RememberedModel.of(update.fitted, update.free, list(update.labels.values()), update.columns, votes=votes)

    def _unlabelled(self, given: Mapping[int, Any]) -> Indices:
        free = np.ones(len(self._pool), dtype=bool)
        free[list(given)] = False
        return np.flatnonzero(free)

    # The step.

    def _losses_after(self, update: MonitorRound, random_items: Sequence[int]) -> RandomLabelLosses:
        """The losses of random labels after an update."""
        task = update.fitted.task
        if self._task is None:
            losses = RandomLabelLosses(task, self._estimate_time)
        else:
            losses = self._session.estimates.losses.only(random_items)
        if update.fitted.name != self._memory.model_name:
            losses.refit_problem = ""
        if update.labels.keys() != self._session.labels.learned.keys():
            losses.budget.count_fit(len(update.labels))
        classes = self._memory.columns.classes
        for item in random_items:
            if item in update.earlier:
                if not losses.has(item):
                    losses.record({item: update.earlier[item].prediction(classes)})
                losses.label(item, update.labels[item])
        return losses

    def _counted(
        self,
        update: MonitorRound,
        view: MonitorView,
        losses: RandomLabelLosses,
        random_items: Sequence[int],
        wanted: frozenset[str],
    ) -> tuple[dict[str, Any], float]:
        """Fields that are counted, and the calibration."""
        labels, positive = update.labels, self._session.positive
        fields: dict[str, Any] = {
            "seconds": time.monotonic() - self._since,
            "cost": self._label_cost * len(labels),
            "pool_size": len(self._pool),
        }
        calibration = self._memory.calibration
        if wanted & {"calibration", "random_labels"}:
            model = view.judged_model()
            # Only random labels change it, and leaving labels out is expensive. The labels of the first update do not
            # count, as those from which a learner starts.
            if self._memory.marks and list(random_items) != self._session.labels.random:
                learned = {item: labels[item] for item in view.learned_order()}
                losses.refresh(view, learned, random_items)
                rest = update.sample[~np.isin(update.sample, list(labels))]
                calibration = losses.ratio(view, rest, learned, random_items)
            fields |= {"calibration": calibration, "random_labels": losses.count(model, random_items)}
        if update.fitted.task == "classification":
            fields["classes_seen"] = len(set(labels.values()))
        if positive is not None:
            relevance = [bool(label == positive) for label in labels.values()]
            fields["relevant_found"] = sum(relevance)
            fields["control_found"] = len(self._control.intersection(labels))
            if "estimated_relevant" in wanted:
                drawn = set(random_items)
                estimates = relevant_estimates(relevance, [item in drawn for item in labels], len(self._pool))
                fields["estimated_relevant"] = float(estimates[-1])
        return fields, calibration

    def _judged(
        self, given: Mapping[int, Any], fields: Mapping[str, Any], why: str, *, marked: bool
    ) -> tuple[RuleHistory, Verdict]:
        """The history of the rule after an update, and its verdict.

        Args:
            given: All labels.
            fields: The fields of the step.
            why: Why there are no divergences, if so.
            marked: Whether there was an update with fewer labels.
        """
        history = self._session.history.before(len(given))
        steps = self._recounted(history.steps, given)
        if any(map(operator.is_not, steps, history.steps)):
            history.restart(steps)
        missing = sorted(history.rule.needs() - fields.keys())
        if not missing:
            return history, history.observe(Step(n_labelled=len(given), **fields))
        unknown = why if DIVERGENCES.issuperset(missing) else ""
        reason = unknown or (_NOT_KEPT.format(", ".join(missing)) if marked else _FIRST)
        return history, self._undecided(reason, len(given))

    def _recounted(self, steps: list[Step], given: Mapping[int, Any]) -> list[Step]:
        """Earlier steps, with updated numbers of relevant items if labels were corrected or removed."""
        counts = np.cumsum([label == self._session.positive for label in given.values()])
        return [
            step
            if step.relevant_found is None or step.relevant_found == counts[step.n_labelled - 1]
            else replace(step, relevant_found=int(counts[step.n_labelled - 1]))
            for step in steps
        ]

    @staticmethod
    def _undecided(reason: str, n_labelled: int) -> Verdict:
        return Verdict(
            stop=False,
            value=None,
            threshold=None,
            ready=False,
            reason=reason,
            rule="StopMonitor",
            n_labelled=n_labelled,
        )

    # Checks.

    def _draw_check(self, m: int | None, asked: dict[str, Any]) -> ModelCheck:
        check = self._session.check(self._required_view(), m, self, asked)
        if not check.open:
            self._check_closed(check)
        return check

    def _usable_labels(self, labels: Any) -> list[Any]:
        """Labels as plain values; raises InvalidValueError for one that cannot be used."""
        if self._session.estimates.label_columns:
            return list(label_codes(labels, "labels of the check", self._session.estimates.label_columns).tolist())
        if self._session.estimates.right_or_wrong:
            return [flag(value, "an answer of the check") for value in np.atleast_1d(np.asarray(labels)).tolist()]
        values = np.atleast_1d(np.asarray(as_labels(labels)))
        if self._session.estimates.share:
            return list(class_labels(values).tolist())
        return [real(label, "a label") for label in values.tolist()]

    def _check_extended(self, check: ModelCheck) -> None:
        """Nothing to do: the user chooses the items."""

    @one_at_a_time
    def _check_closed(self, check: ModelCheck) -> None:
        """Receive the labels of a check, and apply the rule to its guarantee."""
        labels = self._session.labels
        unlearned = {item: label for item, label in check.record.labels.items() if item not in labels.learned}
        labels.add_checked(unlearned, check.random_prefix)
        missing = np.array(sorted(check.record.unlabelable), dtype=np.intp)
        labels.mark(missing[labels.status[missing] == UNLABELLED], SKIPPED)
        self._session.judge_guarantee(check.guarantee if check.version == self._session.labels.version else None)
        self._settled()

    # A growing pool.

    @one_at_a_time
    def extend(self, X_new: Any) -> Indices:
        """Add items to the pool, after the present ones, whose indices stay.

        The last step is judged again with the larger pool, as by an update without new labels. Earlier steps are about
        the items that were there then. The stop set stays, the sample of more than 100,000 items is drawn again from
        all of them, and the recent gain starts again. If the model is not available (predictions or right and wrong
        answers were given in its place, it predicts sets of classes, it was not saved, or it cannot be copied), call
        :meth:`update` with the same labels and predictions for all items before you go on: there is no estimate until
        then, and labels that are drawn at random before it do not calibrate one.

        A guarantee of an earlier check covers the items that were there then, and not the new ones;
        :attr:`guarantee` says so. Its error probability stays spent, and counts for the extended pool. An open check
        goes on with its own items. Labels that were drawn at random before are a sample of the earlier items: draw some
        of the new items at random, too, so that estimates hold for all.

        Args:
            X_new: The new rows, in the form of the pool.

        Returns:
            The indices of the new items.

        Raises:
            InvalidTypeError: The rows are of another kind than the pool.
            InvalidValueError: They have another width or other columns, or there is a control sample.

        Examples:
            >>> import numpy as np
            >>> from sklearn.ensemble import RandomForestClassifier
            >>> X = np.random.default_rng(0).normal(size=(300, 2)); y = np.where(X[:, 0] > 0.0, "right", "left")
            >>> monitor, forest = StopMonitor(X[:200]), RandomForestClassifier(random_state=0)
            >>> verdict = monitor.update(forest.fit(X[:40], y[:40]), np.arange(40), y[:40])
            >>> monitor.extend(X[200:])[:3], monitor.left
            (array([200, 201, 202]), 260)
        """
        if self._control:
            raise InvalidValueError(
                "control was drawn from the items so far, and says nothing about new ones; start a new StopMonitor "
                "with all items and another control sample"
            )
        session, pool, size = self._session, self._pool.whole, len(self._pool)
        labels, X_pool = session.labels, extended_pool(pool, X_new)
        registered = session.checks.registered.extended(X_pool)
        before = [(part, dict(part.__dict__)) for part in (self, session, labels)]
        try:
            self._pool.replace(X_pool)
            self._take_more(len(self._pool) - size)
        except BaseException:
            self._pool.replace(pool)
            for part, values in before:
                part.__dict__.update(values)
            raise
        session.checks.registered = registered
        return np.arange(size, len(self._pool), dtype=np.intp)

    def _take_more(self, more: int) -> None:
        """Judge the last step again after items were added."""
        labels = self._session.labels
        labels.extend(more)
        self._memory, self._answers = self._memory.extended(len(self._pool) - more, more), None
        self._watched = self._drawn_sample()
        self._session.conclude(self.rule_verdict, change="items")
        of_items = not (self._memory.names or self._session.estimates.right_or_wrong)
        if of_items and isinstance(self._kept, FittedModel) and not isinstance(self._kept.model, PoolPredictions):
            items = list(self._memory.order)
            self.update(self._kept.model, items, [labels.learned[item] for item in items])
            return
        # The predictions for the new items are not known before the next update.
        self._kept = self._last_view = None
        self._settled()

    # Records.

    @one_at_a_time
    def trace(self) -> Trace:
        """The run so far, as :meth:`suffice.ActiveLearner.trace`: the inputs of the rule at each step.

        The divergences are NaN if the rule does not use them.
        """
        items, steps = np.array(list(self._session.labels.learned), dtype=np.intp), self._session.history.steps
        begun = bool(self._memory.marks) and (not steps or self._memory.marks[0].n_labelled < steps[0].n_labelled)
        first = self._memory.marks[0].n_labelled if begun else 0
        about = {"model": self._memory.model_name, "rule": repr(self._rule), "seed": self._seed}
        return trace_of_steps(steps, items, first, self._session.labels.random, about)

    def to_frame(self) -> Any:
        """The steps as a pandas DataFrame: the verdicts of the rule, and its inputs.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return frame_of_steps(self._session.history.steps, self.verdicts)

    def plot(self, ax: Any = None) -> Any:
        """Draw the value that the rule compares, and its threshold, against the number of labels.

        Args:
            ax: matplotlib Axes; new ones if left out.

        Returns:
            The axes.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        return drawn_curve(self.verdicts, ax)

    def _repr_html_(self) -> str:
        """The verdict with a chart, for notebooks."""
        labels, positive, kept = self._session.labels, self._session.positive, self._kept
        rows = [
            ("rule", repr(self._rule)),
            ("model", self._memory.model_name),
            ("labelled", f"{len(labels.learned):,}"),
        ]
        rows.append(("unlabelled", f"{self.left:,}"))
        if positive is not None:
            rows.append(("relevant", f"{self.relevant_found:,} found, class {str(positive)!r}"))
        predicts = isinstance(kept, RememberedModel) or (kept is not None and kept.gives_probabilities)
        if self._session.estimates.share and predicts:
            estimate = self.error_estimate()
            basis = f"{estimate.random_labels} random labels" if estimate.random_labels else "not verified"
            if estimate.predicted_at is not None:
                basis += f", predicted by models of {estimate.predicted_at:,} labels or more"
            ends = f"{percent(estimate.low)} to {percent(estimate.high)}"
            rows.append(("estimated error", f"{percent(estimate.value)} ({ends}; {basis})"))
        if self.guarantee is not None:
            rows.append(("guarantee", str(self.guarantee)))
        return verdict_card(self.verdict, rows, self.verdicts)

    # Saving.

    @one_at_a_time
    def state_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; :meth:`from_state` continues with the same verdicts and decisions.

        The predictions of the model for all unlabelled items are saved, because the model is not. A posterior is not
        saved, but computed again from the labels. That is not possible for a network: the first update after that of a
        rule that uses divergences is then undecided.
        """
        remembered, labels = None, self._session.labels
        if self._last_view is not None:
            votes = "selected_agreement" in self._rule.reads()
            rest = self._unlabelled(labels.learned)
            remembered = self._last_view.remembered(rest, labels.random, votes=votes)
        kept = None if remembered is None else remembered.state_dict()
        return sealed(FORMAT, {**self.progress(), "kept": kept})

    def progress(self) -> dict[str, Any]:
        """The state without the predictions of the model, for a loop that fits the model again; see :meth:`resume`."""
        return {
            "label_cost": self._label_cost,
            "mistake_cost": self._mistake_cost,
            "seed": self._given_seed,
            "pool_size": len(self._pool),
            "positive": self._session.positive,
            "may_miss": list(self._may_miss),
            "control": sorted(self._control),
            "estimate_time": self._estimate_time,
            "stop_set": self._stop.tolist(),
            "seconds": time.monotonic() - self._since,
            "session": self._session.state_dict(),
            "steps": saved_steps(self._session.history.steps),
            "reducible": self._session.estimates.reducible_error,
            "right_or_wrong": self._session.estimates.right_or_wrong,
            **self._memory.state(),
        }

    def resume(self, progress: Mapping[str, Any], model: Any) -> None:
        """Continue from :meth:`progress` of a monitor with the same arguments.

        Args:
            progress: The result of :meth:`progress`.
            model: The model of the last update, fitted again to the same labels.
        """
        self._load({**progress, "kept": None})
        if model is not None:
            self._kept = FittedModel(model, self._predict, self._pool)
            self._kept.assume_label_variance(list(self._session.labels.learned.values()))
            self._make_view()

    @classmethod
    def from_state(
        cls,
        state: Mapping[str, Any],
        X_pool: Any,
        predict: Predict | None = None,
        *,
        checks: CheckRegistry | None = None,
    ) -> "StopMonitor":
        """Restore a monitor from :meth:`state_dict`.

        Args:
            state: The result of ``state_dict``, also after a round trip through JSON, and of version 1.0.0rc1.
            X_pool: The same pool.
            predict: As for :class:`StopMonitor`; functions are not saved.
            checks: As for :class:`StopMonitor`. Without it, the monitor goes on counting by itself. In a registry, the
                checks of the monitor that it has counted already are not counted again.

        Raises:
            InvalidValueError: It is not such a result, is damaged, or belongs to another pool.
        """

        def restore(content: Mapping[str, Any]) -> "StopMonitor":
            saved = content if content["format"] == FORMAT else from_older_state(content)
            rule = criterion_from_dict(saved["session"]["rule"])
            pool = PoolRows(X_pool)
            if len(pool) != saved["pool_size"]:
                raise InvalidValueError(
                    f"X_pool has {len(pool)} items, and the monitor was saved with {saved['pool_size']}"
                )
            stop_set = saved.get("stop_set")
            monitor = cls(
                X_pool,
                rule,
                saved["label_cost"],
                saved["mistake_cost"],
                seed=saved["seed"],
                predict=predict,
                stop_set=StopSet(np.array(stop_set, dtype=np.intp), len(pool)) if stop_set else None,
                positive=saved["positive"],
                may_miss=saved.get("may_miss", ()),
                control=saved["control"],
                estimate_time=saved.get("estimate_time", 1.0),
                checks=checks,
            )
            monitor._load(saved)
            return monitor

        older = isinstance(state, Mapping) and state.get("format") == OLDER_FORMAT
        kind = OLDER_FORMAT if older else FORMAT
        return restored(kind, state, "StopMonitor.state_dict", restore, older=older)

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], X_pool: Any, predict: Predict | None = None) -> "StopMonitor":
        """Restore a monitor; deprecated, use :meth:`from_state`."""
        warn_deprecated("StopMonitor.from_state_dict", "use StopMonitor.from_state")
        return cls.from_state(state, X_pool, predict)

    def _load(self, saved: Mapping[str, Any]) -> None:
        """Restore the state of a monitor with the same arguments."""
        session, task = self._session, saved["session"]["task"]
        self._since = time.monotonic() - saved["seconds"]
        session.load_state(saved["session"], restored_steps(saved["steps"]), self)
        session.estimates.reducible_error = saved["reducible"]
        session.estimates.right_or_wrong = saved.get("right_or_wrong", False)
        self._memory = UpdateMemory.from_state(saved, task)
        session.estimates.label_columns = len(self._memory.names)
        if saved["kept"] is not None:
            self._kept = RememberedModel.from_state(saved["kept"])
            self._make_view()
        verdicts, n = session.history.verdicts, len(session.labels.learned)
        if verdicts and verdicts[-1].n_labelled == n:
            session.conclude(verdicts[-1])
        elif self._memory.marks:
            session.conclude(self._undecided(_FIRST, n))
        newest = session.guarantee
        if newest is not None and newest.about_present_model:
            session.judge_guarantee(newest.guarantee)


def _marks_after(
    marks: list[UpdateMark],
    given: Mapping[int, Any],
    serial: int,
    evidence: StepEvidence,
    wanted: frozenset[str],
) -> list[UpdateMark]:
    """Data of an update and of earlier ones, for comparisons."""
    # Codes, posteriors and labels of the last two updates are enough, because labels are rarely removed.
    labelled = given if wanted & DIVERGENCES else None
    newest = UpdateMark(len(given), serial, evidence.codes, evidence.posterior, labelled)
    return [*[mark.shortened for mark in marks[:-1]], *marks[-1:], newest]
