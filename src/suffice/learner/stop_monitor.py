"""A stopping rule for any model and loop: one call per round with the model and all labels so far."""

import base64
import math
import operator
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.acquisition import Indices
from suffice.arguments import real, whole
from suffice.checks import Check, GuaranteePlan
from suffice.checks.guarantee import UnlabelableAs
from suffice.criteria import (
    Criterion,
    LabelWorth,
    QuantileRecall,
    Step,
    Verdict,
    committee_agreement,
    criterion_from_dict,
    pool_facts,
    relevance_facts,
)
from suffice.criteria.base import require_rule
from suffice.criteria.optimisation import REGRET_FIELDS
from suffice.criteria.prediction_statistics import entropies, selected_losses
from suffice.criteria.step_and_verdict import FIELD_KINDS
from suffice.decision import Decision, DecisionMemory, checked_target, first_stop, numbers_from_labels
from suffice.divergence import kl
from suffice.errors import InvalidTypeError, InvalidValueError, MissingExtraError, MissingInputError, SufficeError
from suffice.learner.error_estimate import (
    REST_ITEMS,
    CalibratedError,
    calibrated_error,
    calibration_ratio,
    checked_tolerance,
    error_now,
    plan_from_estimate,
    share_beyond,
)
from suffice.learner.guarantee_rules import proven_fields, rules_of_type
from suffice.learner.model_check import (
    CheckedQuantity,
    CheckSequence,
    FrozenModel,
    ModelCheck,
    ModelGuarantee,
    checked_quantity,
    require_size,
)
from suffice.learner.model_predictions import ComparedPosteriors, FittedModel, KnownPosterior, PoolRows, Predict
from suffice.learner.prepare import checked_indices
from suffice.learner.step_inputs import (
    COUNTED_FIELDS,
    LOSS_FIELDS,
    NOTHING_LEFT,
    POOL_FIELDS,
    RELEVANCE_FIELDS,
    REST_FIELDS,
    SCREENING_FIELDS,
    SELECTED_FIELDS,
    STOP_SET_FIELDS,
    VALIDATION_FIELDS,
    RecentGain,
    StopSet,
    positive_class,
    relevant_estimates,
    stacked,
    stop_items,
)
from suffice.models.inputs import as_labels, is_missing
from suffice.models.logistic import class_labels
from suffice.models.threads import SingleUse, one_at_a_time
from suffice.numerics import Floats
from suffice.presentation.html_parts import card, curve
from suffice.presentation.text_format import percent
from suffice.trace import DIVERGENCES, Trace, drawn_curve

_FORMAT: Final = "suffice-monitor-1"
# Maximal number of items over which errors are averaged at each update; the same as for the models of suffice.
_SAMPLE_ITEMS: Final = 500
# Number of items for testing whether an ensemble predicts the average of its members.
_TRIED_ITEMS: Final = 50
# Number of items for which the caller's function is called again as a test.
_ASKED_ITEMS: Final = 5
# Number of the random stream for checks.
_CHECK_STREAM: Final = 18
#: Fields that require a committee of classifiers.
COMMITTEE_FIELDS: Final = frozenset({"selected_agreement", "stop_agreement", "pool_gain"})
# Number of labels at which half of the error is assumed to be reducible if nothing else is known.
_REMOVABLE: Final = 50.0
# Fields that require the variance of noise-free values.
_LATENT_FIELDS: Final = frozenset({"pool_variance", "pool_gain"})
_PROBABILITY_FIELDS: Final = (SELECTED_FIELDS | POOL_FIELDS | STOP_SET_FIELDS | REST_FIELDS | {"train_error"}) - (
    COMMITTEE_FIELDS
)
_NUMBER_FIELDS: Final = LOSS_FIELDS | REST_FIELDS | {"expected_error"}
# Fields that compare the model with the one of the update before.
_COMPARING_FIELDS: Final = SELECTED_FIELDS | DIVERGENCES | {"pool_changes", "recent_gain"}
_FIRST: Final = "the rule compares the model with the one before, and this is the first"
_NOT_KEPT: Final = "the rule compares the model with the one before, of which {} is not known any more"
_NOT_COMPARED: Final = "the posterior before cannot be compared in this step: {}"
_FUNCTION: Final = "a function predict(model, X) that returns"


class _Earlier(NamedTuple):
    """Prediction of the previous model for an item that was labelled since.

    Attributes:
        probabilities: Of the classes known then; None for numbers.
        votes: The class that each member of a committee votes for, if the rule asks for it.
        mean: The prediction, for numbers.
        variance: The variance of the label, for numbers.
    """

    probabilities: tuple[float, ...] | None = None
    votes: tuple[int, ...] | None = None
    mean: float = 0.0
    variance: float = 0.0


@dataclass(frozen=True, eq=False)
class _Remembered:
    """Predictions of the model of the last update for all unlabelled items, if the model cannot be copied.

    Attributes:
        items: The items, rising.
        predicted: The predicted class or number of each.
        table: Class probabilities, ``N x C``; for numbers means and variances, ``N x 2``.
        votes: Votes of a committee, ``K x N``, or None.
    """

    items: Indices
    predicted: list[Any]
    table: Floats
    votes: Any = None

    def places(self, items: Any) -> Indices:
        """Positions of items."""
        return np.searchsorted(self.items, np.asarray(items, dtype=np.intp))


class _Mark(NamedTuple):
    """Data of an update for comparison with later updates.

    Attributes:
        n_labelled: Labels then.
        serial: Number of the update.
        codes: The class predicted for each item of the pool, -1 for labelled ones; None if it is not needed.
        posterior: The posterior, or None.
        labels: The labels as they were then, by item, if posteriors are compared.
    """

    n_labelled: int
    serial: int
    codes: Any = None
    posterior: KnownPosterior | None = None
    labels: Mapping[int, Any] | None = None


class _Facts(NamedTuple):
    """The fields of a step, the data for later comparisons, and the reason if there are no divergences."""

    fields: dict[str, Any]
    codes: Any
    posterior: KnownPosterior | None
    recent: RecentGain
    why: str


class StopMonitor:
    """Applies a stopping rule to a model and a loop of any kind.

    Call :meth:`update` after each round with the fitted model and all labels so far. The monitor finds which labels are
    new, corrected or removed, computes the inputs that the rule requires, and returns its verdict. It never fits or
    changes a model. It uses one of these, as far as the model has them:

    - ``predict_proba``, with ``classes_``;
    - ``estimators_``, as a committee, if the prediction of the ensemble is their average (forests, bagging);
    - ``predict(X, return_std=True)``, for numbers;
    - the posterior of a model of suffice, or of one that :func:`suffice.posteriors.fitted_posterior` knows: among them
      scikit-learn's ``LogisticRegression``, ``BayesianRidge`` and Gaussian processes, also at the end of a pipeline;
    - ``predict=``, for any other model.

    Some rules compare the model with the model of the previous update. Their first verdict is undecided. An update
    without new labels replaces the previous step. If labels were removed, steps with as many labels or more are
    removed.

    Divergences compare two posteriors that differ in labels only. Both have the hyper-parameters and the transformers
    of the present model. If these have changed, the posterior of the previous update is computed again from its labels.

    :class:`suffice.LabelWorth` requires the part of the error that more labels can remove. It is computed from a
    committee, the posterior of a model of suffice, or the variance of a Bayesian regression. Otherwise the recent gain
    is used, or the share ``50 / (50 + n)`` of the error at ``n`` labels if that is larger. This also applies to a
    committee whose members are always certain, such as the trees of a forest with default settings, because it does not
    distinguish noise from uncertainty about the model.

    Args:
        X_pool: All items, labelled and unlabelled: an array, a table of pandas or polars, a sparse matrix, a list of
            texts, a data set of Hugging Face, or anything else with a length whose items can be selected. It is not
            copied.
        rule: The stopping rule, which is copied; :class:`suffice.LabelWorth` with the two costs if left out.
        label_cost: Cost of a label, above 0.
        mistake_cost: Cost of a wrong prediction among the unlabelled items, above 0.
        seed: Seed of the samples and of the checks.
        predict: For a model without the methods above, a function ``predict(model, X)`` that returns class
            probabilities, ``N x C``, or those of ``K`` members of a committee, ``N x K x C``; for numbers, a mean and a
            standard deviation of the label, ``(N, N)``. ``X`` is a part of the pool in its own form. The function must
            use the model that it is given, which may be a copy. The columns are those of ``model.classes_``, else the
            classes in sorted order.
        stop_set: The stop set, or its size, for rules that watch predictions; 2000 items of the pool (or all), drawn
            with the seed, if left out.
        positive: For screening: the class that is looked for. Rules such as :class:`suffice.RecallTest` require it.
        control: For :class:`suffice.QuantileRecall`: items of the positive class that were drawn at random before the
            screening, as indices into the pool. Do not give their labels to :meth:`update` before the screening finds
            them.

    Attributes:
        verdict: What the rule says now.
        verdicts: What it said at each step.

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
        seed: int = 0,
        predict: Predict | None = None,
        *,
        stop_set: StopSet | int | None = None,
        positive: Any = None,
        control: Any = (),
    ) -> None:
        self._label_cost = real(label_cost, "label_cost", "above 0", lambda x: x > 0.0)
        self._mistake_cost = real(mistake_cost, "mistake_cost", "above 0", lambda x: x > 0.0)
        if rule is None:
            rule = LabelWorth(label_cost=self._label_cost, mistake_cost=self._mistake_cost)
        require_rule(rule, "rule")
        if predict is not None and not callable(predict):
            raise InvalidTypeError(f"predict must be {_FUNCTION} predictions, not {type(predict).__name__}")
        self._seed = whole(seed, "seed", least=0)
        self._pool, self._predict = PoolRows(X_pool), predict
        self._positive = positive_class(positive)
        self._control = frozenset(
            checked_indices(control, len(self._pool), "control").tolist() if np.size(control) else ()
        )
        if self._control and self._positive is None:
            raise InvalidValueError("control holds items of the positive class; give positive= too, its name")
        for each in rules_of_type(rule, QuantileRecall):
            if self._control and each.sample != len(self._control):
                raise InvalidValueError(
                    f"QuantileRecall is for a control sample of {each.sample} items, and control has "
                    f"{len(self._control)}; give all of them, or another sample"
                )
        self._single_use = SingleUse()
        self._rule = rule.copy()
        self._rule.reset()
        size = len(self._pool)
        # A fixed set of items, and a fixed order for choosing some unlabelled items.
        self._order = np.random.default_rng(self._seed).permutation(size)
        self._sample = np.sort(self._order[:_SAMPLE_ITEMS])
        self._stop: Indices = np.zeros(0, dtype=np.intp)
        if self._rule.reads() & STOP_SET_FIELDS:
            self._stop = stop_items(stop_set, size, self._seed)
        self._since = time.monotonic()
        self._task: str | None = None
        self._classes: list[Any] = []
        # Labels by item in their order, and the number of the update of each label.
        self._labels: dict[int, Any] = {}
        self._arrival: dict[int, int] = {}
        self._random: dict[int, None] = {}
        self._earlier: dict[int, _Earlier] = {}
        self._marks: list[_Mark] = []
        self._recent = RecentGain()
        self._advice = DecisionMemory()
        self._steps: list[Step] = []
        self._serial = 0
        # The model of the last update: a copy, or its predictions.
        self._kept: FittedModel | _Remembered | None = None
        self._columns: list[int] = []
        # Results of the caller's function for some items.
        self._answers: Any = None
        self._model_name = "model"
        self._checks = CheckSequence(partial(np.random.default_rng, [self._seed, _CHECK_STREAM]))
        # Labels of checks that were not in an update yet.
        self._checked: dict[int, Any] = {}
        self.verdicts: list[Verdict] = []
        self.verdict = self._undecided("no model was given yet; call update")

    def __repr__(self) -> str:
        count = f"{len(self._labels)} of {len(self._pool)} items labelled"
        return f"StopMonitor({type(self._rule).__name__}: {count}, {'stop' if self.verdict.stop else 'go on'})"

    # State.

    @property
    def labels(self) -> dict[int, Any]:
        """The label of each item, including labels of checks."""
        return {**self._labels, **self._checked}

    @property
    def left(self) -> int:
        """Number of items without a label."""
        return len(self._pool) - len(self.labels)

    @property
    def random_labels(self) -> int:
        """Number of labels that calibrate :meth:`error_estimate`."""
        return len(self._calibrating())

    @property
    def steps(self) -> list[Step]:
        """The steps that the rule has judged, or judged again after labels were removed."""
        return list(self._steps)

    @property
    def relevant_found(self) -> int | None:
        """Number of labelled items of the positive class, including those of checks; None without ``positive``."""
        if self._positive is None:
            return None
        return sum(bool(label == self._positive) for label in self.labels.values())

    def _new_items(self, given: Mapping[int, Any]) -> list[int]:
        """The items of an update that had no label before."""
        new = [item for item in given if item not in self._labels]
        if self._labels and given and len(new) == len(given):
            raise InvalidValueError(
                f"update takes all labels so far, and none of the {len(self._labels):,} earlier ones is among these "
                f"{len(given):,}; give the earlier labels too, or use a new StopMonitor to start again"
            )
        return new

    @one_at_a_time
    def update(self, model: Any, indices: Any, labels: Any, random: Any = ()) -> Verdict:
        """Update with a model and all labels so far, and return the verdict of the rule.

        Args:
            model: The fitted model. It is not changed; a copy is kept until the next update.
            indices: All items that are labelled, as indices into the pool.
            labels: Their labels: classes or numbers, in the same order.
            random: Those of the items that were drawn at random from the unlabelled ones, as indices or as one flag for
                each item. They calibrate the estimate of the error: the model of the update before has predicted each
                of them without knowing it. Items that were named once need not be named again.

        Raises:
            MissingInputError: The rule requires an input that the model does not provide; the message names it.
            InvalidValueError: An argument cannot be used. Nothing is changed.
            SufficeError: The model is not fitted.
        """
        items = checked_indices(indices, len(self._pool), "indices")
        fitted = FittedModel(model, self._predict, self._pool)
        if self._task is not None and fitted.task != self._task:
            raise InvalidValueError(
                f"{fitted.name} is for {fitted.task}, and the model before was for {self._task}; use a new StopMonitor"
            )
        if self._positive is not None and fitted.task != "classification":
            raise InvalidValueError(
                f"positive is a class, {self._positive!r}, and {fitted.name} predicts numbers; leave positive out"
            )
        given = self._plain_labels(labels, items, fitted.task)
        drawn = self._drawn(random, items)
        new = self._new_items(given)
        self._checks.require_not_in_open(new, "tell")
        # Items of a check are a random sample.
        drawn |= {item for check in self._checks.checks for item in check.random_prefix}.intersection(given)
        wanted = self._wanted(fitted)
        earlier = self._predicted_before(new, drawn, wanted)
        if earlier and self._predict is not None:
            self._require_own_model(fitted)
        serial = self._serial + 1
        arrival = {item: self._arrival.get(item, serial) for item in given}
        classes, columns = self._with_classes(fitted, given)
        marks = [mark for mark in self._marks if mark.n_labelled < len(given)]
        facts = self._facts(
            _Round(fitted, given, {**self._earlier, **earlier}, classes, columns, drawn | set(self._random)),
            wanted,
            marks[-1] if marks else None,
            [item for item, number in arrival.items() if not marks or number > marks[-1].serial],
        )
        kept_steps = [step for step in self._steps if step.n_labelled < len(given)]
        steps = self._recounted(kept_steps, given)
        verdicts, rule = self.verdicts[: len(steps)], self._rule.copy()
        if len(steps) < len(self._steps) or any(map(operator.is_not, steps, kept_steps)):
            rule.reset()
            verdicts = rule.observe_all(steps)
        missing = sorted(self._rule.needs() - facts.fields.keys())
        if missing:
            unknown = facts.why if DIVERGENCES.issuperset(missing) else ""
            reason = unknown or (_NOT_KEPT.format(", ".join(missing)) if marks else _FIRST)
            verdict = self._undecided(reason, len(given))
        else:
            steps = [*steps, Step(n_labelled=len(given), **facts.fields)]
            verdict = rule.observe(steps[-1])
            verdicts = [*verdicts, verdict]
        kept = self._keep(fitted, given, classes, columns, wanted)
        self._answers = None if self._predict is None else fitted.answers(self._sample[:_ASKED_ITEMS])

        self._task, self._rule, self._steps, self.verdicts = fitted.task, rule, steps, verdicts
        self._classes, self._columns, self._kept, self._model_name = classes, columns, kept, fitted.name
        corrected = {item for item in given if item in self._labels and self._labels[item] != given[item]}
        self._labels, self._arrival, self._serial, self._recent = given, arrival, serial, facts.recent
        self._random = {item: None for item in [*self._random, *sorted(drawn)] if item in given}
        self._earlier = {item: said for item, said in {**self._earlier, **earlier}.items() if item in given}
        # Codes, posteriors and labels of the last two updates are enough, because labels are rarely removed.
        marks = [*[_Mark(mark.n_labelled, mark.serial) for mark in marks[:-1]], *marks[-1:]]
        labelled = given if wanted & DIVERGENCES else None
        self._marks = [*marks, _Mark(len(given), serial, facts.codes, facts.posterior, labelled)]
        for item in [*new, *corrected]:
            self._checks.answered(item, given[item])
        self._checked = {item: label for item, label in self._checked.items() if item not in given}
        self.verdict = self._exhausted(verdict)
        return self.verdict

    # Arguments.

    def _plain_labels(self, labels: Any, items: Indices, task: str) -> dict[int, Any]:
        """Labels by item as plain values, in the order of their first updates."""
        listed = isinstance(labels, np.ndarray) or not hasattr(labels, "__iter__")
        values = np.asarray(as_labels(labels if listed else list(labels)))
        if values.shape != items.shape:
            raise InvalidValueError(
                f"labels must be one for each of the {len(items)} items of indices; their shape is {values.shape}"
            )
        if values.dtype.kind not in "USiub":
            missing = [k for k, label in enumerate(values.tolist()) if is_missing(label)]
            if missing:
                label, item = values.tolist()[missing[0]], items[missing[0]]
                raise InvalidValueError(f"labels holds {label!r} for item {item}; leave out items without a label")
        if task == "classification":
            plain = class_labels(values).tolist()
        else:
            plain = [real(label, f"the label of item {item}") for item, label in zip(items, values, strict=True)]
        by_item = dict(zip(items.tolist(), plain, strict=True))
        known = {item: by_item[item] for item in self._labels if item in by_item}
        return {**known, **by_item}

    @staticmethod
    def _drawn(random: Any, items: Indices) -> set[int]:
        """The items that were drawn at random."""
        given = np.atleast_1d(np.asarray(random))
        if not given.size:
            return set()
        if given.dtype.kind == "b" and given.shape in ((1,), items.shape):
            return set(items[np.broadcast_to(given, items.shape)].tolist())
        if given.dtype.kind not in "iu" or given.ndim != 1:
            came = f"a mask of {given.size} flags for {len(items)} items" if given.dtype.kind == "b" else repr(random)
            raise InvalidValueError(
                f"random must be some of indices, or one flag for each of them, not {came}; give indices, e.g. "
                "np.flatnonzero(mask)"
            )
        if other := sorted(set(given.tolist()).difference(items.tolist())):
            raise InvalidValueError(f"random holds item {other[0]}, which is not in indices")
        return set(given.tolist())

    # Inputs of the rule, and capabilities of the model.

    def _wanted(self, fitted: FittedModel) -> frozenset[str]:
        """The fields that the rule uses and this model provides.

        Raises:
            MissingInputError: The rule requires another one.
        """
        reads = self._rule.reads()
        provided = set(COUNTED_FIELDS)
        if fitted.task == "classification":
            provided.add("classes_seen")
            if self._positive is not None:
                provided |= SCREENING_FIELDS | ({"control_found"} if self._control else set())
            if fitted.gives_probabilities:
                provided |= _PROBABILITY_FIELDS | (RELEVANCE_FIELDS if self._positive is not None else set())
                if reads & COMMITTEE_FIELDS and fitted.has_committee(self._sample[:_TRIED_ITEMS]):
                    provided |= COMMITTEE_FIELDS
        elif fitted.gives_deviation:
            provided |= _NUMBER_FIELDS
            if reads & _LATENT_FIELDS and fitted.numbers(self._sample[:1]).latent is not None:
                provided |= _LATENT_FIELDS
        if reads & DIVERGENCES and fitted.has_posterior:
            provided |= DIVERGENCES
        missing = sorted(self._rule.needs() - provided)
        if missing:
            raise MissingInputError(
                f"{self._rule._asking(missing)} requires {', '.join(missing)}: {_why_missing(missing, fitted)}"
            )
        return reads & provided

    def _with_classes(self, fitted: FittedModel, given: Mapping[int, Any]) -> tuple[list[Any], list[int]]:
        """All classes so far in a fixed order, and the position of each column of the model among them."""
        if fitted.task != "classification":
            return [], []
        known = fitted.classes(list(given.values())) if fitted.gives_probabilities else []
        every = [*self._classes, *known, *sorted(set(given.values()), key=lambda label: (str(type(label)), label))]
        classes = list(dict.fromkeys(every))
        return classes, [classes.index(name) for name in known]

    def _predicted_before(self, new: list[int], drawn: set[int], wanted: frozenset[str]) -> dict[int, _Earlier]:
        """Predictions of the previous model for items that were labelled since."""
        items = new if wanted & SELECTED_FIELDS else [item for item in new if item in drawn]
        if not items or self._kept is None:
            return {}
        where, votes = np.array(items, dtype=np.intp), None
        if isinstance(self._kept, _Remembered):
            found = self._kept.table[self._kept.places(where)]
            if self._kept.votes is not None:
                votes = self._kept.votes[:, self._kept.places(where)]
        elif self._task == "classification":
            found = self._kept.probabilities(where, self._columns, len(self._classes))
            if "selected_agreement" in wanted:
                votes = self._kept.votes(where, self._columns, len(self._classes))
        else:
            mean, variance, _ = self._kept.numbers(where)
            found = np.column_stack([mean, variance])
        if self._task == "regression":
            return {
                item: _Earlier(mean=row[0], variance=row[1]) for item, row in zip(items, found.tolist(), strict=True)
            }
        voted = [None] * len(items) if votes is None else [tuple(column) for column in votes.T.tolist()]
        rows = zip(items, found.tolist(), voted, strict=True)
        return {item: _Earlier(tuple(row), ballot) for item, row, ballot in rows}

    def _require_own_model(self, fitted: FittedModel) -> None:
        """Raise an error for a function that does not use the model that it is given.

        Raises:
            InvalidValueError: Its result for the copy of the previous model has changed to that of the present model.
        """
        if not isinstance(self._kept, FittedModel) or self._answers is None:
            return
        again, now = (each.answers(self._sample[:_ASKED_ITEMS]) for each in (self._kept, fitted))
        if np.array_equal(again, now) and not np.array_equal(again, self._answers):
            raise InvalidValueError(
                "predict must use the model that it is given, a copy of the one of the update before; it returned the "
                "predictions of the present one, so that labels would be judged by a model that has learned them"
            )

    def _keep(
        self,
        fitted: FittedModel,
        given: Mapping[int, Any],
        classes: list[Any],
        columns: list[int],
        wanted: frozenset[str],
    ) -> FittedModel | _Remembered:
        """A copy of the model, or its predictions for all unlabelled items if it cannot be copied."""
        copied = fitted.frozen()
        if copied is not None:
            return copied
        return _remembered(
            fitted, self._unlabelled(given), given, classes, columns, votes="selected_agreement" in wanted
        )

    def _unlabelled(self, given: Mapping[int, Any]) -> Indices:
        free = np.ones(len(self._pool), dtype=bool)
        free[list(given)] = False
        return np.flatnonzero(free)

    # The fields of a step.

    def _facts(self, now: "_Round", wanted: frozenset[str], last: _Mark | None, selected: list[int]) -> _Facts:
        """The fields of the step, without fields that need a previous update if there is none."""
        found: dict[str, Any] = {
            "seconds": time.monotonic() - self._since,
            "cost": self._label_cost * len(now.labels),
            "pool_size": len(self._pool),
        }
        if wanted & {"calibration", "random_labels"}:
            losses = [now.loss(item) for item in now.labels if item in now.random and item in now.earlier]
            pairs = np.array(losses).reshape(-1, 2)
            found["calibration"] = calibration_ratio(pairs[:, 0], pairs[:, 1], task=now.fitted.task)
            found["random_labels"] = len(losses)
        if now.fitted.task == "classification":
            found["classes_seen"] = len(set(now.labels.values()))
        if self._positive is not None:
            found |= self._screening_facts(now, wanted)
        free = self._unlabelled(now.labels)
        recent, codes, posterior, why = self._recent.before(len(now.labels)), None, None, ""
        if wanted & (POOL_FIELDS | _LATENT_FIELDS):
            pool, codes = self._pool_facts(now, free, wanted, None if last is None else last.codes)
            found |= pool
        if wanted & STOP_SET_FIELDS:
            found |= self._stop_facts(now, wanted)
        if wanted & REST_FIELDS:
            found |= self._rest_facts(now, recent, last)
        if "train_error" in wanted:
            items = np.array(list(now.labels), dtype=np.intp)
            p = now.probabilities(items)
            found["train_error"] = float(1.0 - p[np.arange(len(items)), now.codes(items)].mean())
        if wanted & SELECTED_FIELDS and last is not None:
            found |= now.selected_facts(selected, wanted)
        if wanted & DIVERGENCES:
            compared, divergences = _posteriors(now, last)
            posterior, why = compared.known, compared.why and _NOT_COMPARED.format(compared.why)
            found |= divergences
        return _Facts({name: value for name, value in found.items() if name in wanted}, codes, posterior, recent, why)

    def _recounted(self, steps: list[Step], given: Mapping[int, Any]) -> list[Step]:
        """Earlier steps, with updated numbers of relevant items if labels were corrected or removed."""
        counts = np.cumsum([label == self._positive for label in given.values()])
        return [
            step
            if step.relevant_found is None or step.relevant_found == counts[step.n_labelled - 1]
            else replace(step, relevant_found=int(counts[step.n_labelled - 1]))
            for step in steps
        ]

    def _screening_facts(self, now: "_Round", wanted: frozenset[str]) -> dict[str, Any]:
        """Fields about the positive class."""
        relevance = [bool(label == self._positive) for label in now.labels.values()]
        found: dict[str, Any] = {
            "relevant_found": sum(relevance),
            "control_found": len(self._control.intersection(now.labels)),
        }
        if "estimated_relevant" in wanted:
            drawn = [item in now.random for item in now.labels]
            found["estimated_relevant"] = float(relevant_estimates(relevance, drawn, len(self._pool))[-1])
        if wanted & RELEVANCE_FIELDS:
            items = np.arange(len(self._pool))
            known = self._positive in now.classes
            p = now.probabilities(items)[:, now.classes.index(self._positive)] if known else np.zeros(len(items))
            found |= relevance_facts(p, np.isin(items, list(now.labels)))
        return found

    def _pool_facts(
        self, now: "_Round", free: Indices, wanted: frozenset[str], before: Any
    ) -> tuple[dict[str, Any], Any]:
        """Fields about all unlabelled items, and their predicted classes."""
        found: dict[str, Any] = {}
        if now.fitted.task == "regression":
            if not len(free):
                return {"pool_variance": 0.0, "pool_gain": 0.0}, None
            said = now.fitted.numbers(free)
            assert said.latent is not None
            noise = np.maximum(said.variance - said.latent, np.finfo(np.float64).tiny)
            gain = 0.5 * float(np.log1p(said.latent / noise).max())
            return {"pool_variance": float(said.latent.max()), "pool_gain": gain}, None
        if "pool_gain" in wanted:
            gains = now.fitted.gains(free, now.columns, len(now.classes)) if len(free) else np.zeros(1)
            assert gains is not None
            found["pool_gain"] = max(0.0, float(gains.max()))
        if not wanted & POOL_FIELDS:
            return found, None
        codes = np.full(len(self._pool), -1)
        if not len(free):
            return found | NOTHING_LEFT, codes
        p = now.probabilities(free)
        codes[free] = p.argmax(axis=1)
        # An item whose label was removed has no earlier prediction.
        compared = None if before is None else np.where(before[free] < 0, codes[free], before[free])
        return found | pool_facts(p, before=compared), codes

    def _stop_facts(self, now: "_Round", wanted: frozenset[str]) -> dict[str, Any]:
        """Fields about the stop set."""
        if now.fitted.task == "regression":
            return {"expected_error": float(now.fitted.numbers(self._stop).variance.mean())}
        found: dict[str, Any] = {}
        if wanted & {"stop_probabilities", "stop_confidence", "expected_error"}:
            p = now.probabilities(self._stop)
            # Half precision, as a record keeps them: a rule sees the same live and replayed.
            found = {"stop_probabilities": p.astype(np.float16), "stop_confidence": float(p.max(axis=1).mean())}
            found["expected_error"] = float(entropies(p).mean())
        if "stop_agreement" in wanted:
            votes = now.fitted.votes(self._stop, now.columns, len(now.classes))
            found["stop_agreement"] = committee_agreement(votes, len(now.classes))
        return found

    def _rest_facts(self, now: "_Round", recent: RecentGain, last: _Mark | None) -> dict[str, Any]:
        """Fields about the error of unlabelled items and its reducible part."""
        rest, n = ~np.isin(self._sample, list(now.labels)), len(now.labels)
        reducible: Floats | None
        predicted: Any
        if now.fitted.task == "classification":
            errors, known = now.fitted.errors(self._sample, now.columns, len(now.classes))
            total, reducible = errors.total, errors.reducible if known else None
            p, rows = errors.probabilities, np.arange(len(self._sample))
            predicted, scale = p.argmax(axis=1), 1.0
            gain = recent.since_half(n, lambda past: float((p[rows, predicted] - p[rows, past]).mean()))
        else:
            predicted, total, reducible = now.fitted.numbers(self._sample)
            # If all labels are the same, their variance is 0 and errors cannot be compared with it.
            scale = float(np.var(list(now.labels.values()))) or 1.0
            gain = recent.since_half(n, lambda past: float(np.mean((predicted - past) ** 2)))
        recent.keep(n, predicted)
        found = {"unlabelled_error": float(total[rest].mean()) if rest.any() else 0.0, "error_scale": scale}
        if last is not None:
            found["recent_gain"] = gain
        if reducible is not None:
            found["reducible_error"] = float(reducible[rest].mean()) if rest.any() else 0.0
        elif last is not None:
            # The reducible part of the error is not known. The recent gain is used instead, or a share that decreases
            # with the number of labels if it is larger, because the recent gain of a model that has not learned yet is
            # 0.
            found["reducible_error"] = max(gain, found["unlabelled_error"] * _REMOVABLE / (_REMOVABLE + n))
        return found

    # Verdicts.

    def _undecided(self, reason: str, n_labelled: int | None = None) -> Verdict:
        n = len(self._labels) if n_labelled is None else n_labelled
        return Verdict(
            stop=False, value=None, threshold=None, ready=False, reason=reason, rule="StopMonitor", n_labelled=n
        )

    def _exhausted(self, verdict: Verdict) -> Verdict:
        """The verdict of the rule; a stop if the rule would go on but every item is labelled."""
        if self.left or verdict.stop:
            return verdict
        reason = f"every item of the pool is labelled; the rule itself: {verdict.reason}"
        return replace(verdict, stop=True, ready=True, reason=reason, rule="StopMonitor", outlook=None)

    # The error of the unlabelled items.

    def _calibrating(self) -> list[int]:
        """Random labels that were predicted by a model without them."""
        return [item for item in self._labels if item in self._random and item in self._earlier]

    def _require_model(self) -> "FittedModel | _Remembered":
        if self._kept is None:
            raise SufficeError("the monitor has no model yet; call update(model, indices, labels) first")
        return self._kept

    @one_at_a_time
    def error_estimate(self, most: int = REST_ITEMS, *, tolerance: float | None = None) -> CalibratedError:
        """The error of the unlabelled items: the error that the model expects, calibrated by the random labels.

        For classes it is the share of wrong predictions. For numbers it is the mean squared error, in squared units of
        the labels: ``value ** 0.5`` is the root mean squared error, in their unit, which :meth:`decision` states and
        takes as ``at_most``. With ``tolerance`` it is the share of predictions whose error exceeds the tolerance. Each
        random label was predicted by the model of the previous update. It is an estimate, not a guarantee. Without
        random labels it is the error that the model expects of itself, which may be far too low.

        Args:
            most: Maximal number of unlabelled items to use.
            tolerance: For numbers: the largest error that is not wrong, at least 0.

        Raises:
            SufficeError: There was no update yet, or the model predicts neither probabilities nor deviations.
            InvalidValueError: An argument is out of range, or ``tolerance`` is given for classes.
        """
        size, limit = whole(most, "most", least=1), checked_tolerance(tolerance, share=self._of_classes)
        self._require_model()
        labelled = np.zeros(len(self._pool), dtype=bool)
        labelled[list(self.labels)] = True
        rest = np.sort(self._order[~labelled[self._order]][:size])
        expected = self._expected_losses(rest)
        pairs = np.array([self._loss(item) for item in self._calibrating()]).reshape(-1, 2)
        losses, hoped = pairs[:, 0], pairs[:, 1]
        assert self._task is not None
        if limit is None:
            return calibrated_error(float(expected.mean()) if len(rest) else 0.0, losses, hoped, task=self._task)
        alone = float(share_beyond(limit, expected).mean()) if len(rest) else 0.0
        beyond = (losses > limit**2).astype(np.float64)
        return calibrated_error(alone, beyond, share_beyond(limit, hoped), task="classification")

    def _loss(self, item: int) -> tuple[float, float]:
        return _loss_of(self._earlier[item], self._labels[item], self._classes)

    def _expected_losses(self, items: Indices) -> Floats:
        """The loss that the model of the last update expects of each item."""
        kept = self._require_model()
        if isinstance(kept, _Remembered):
            table = kept.table[kept.places(items)]
            return np.asarray(1.0 - table.max(axis=1, initial=0.0) if self._of_classes else table[:, 1])
        if self._of_classes and kept.gives_probabilities:
            p = kept.probabilities(items, self._columns, len(self._classes))
            return np.asarray(1.0 - p.max(axis=1, initial=0.0))
        if kept.gives_deviation:
            return kept.numbers(items).variance
        offer = "class probabilities" if self._of_classes else "(mean, std)"
        raise SufficeError(f"the error of {kept.name} cannot be estimated; give predict=, {_FUNCTION} {offer}")

    @property
    def _of_classes(self) -> bool:
        return self._task == "classification"

    @one_at_a_time
    def decision(self, at_most: float | None = None) -> Decision:
        """The decision: keep labelling, enough, or this model has reached its limit.

        As :meth:`suffice.ActiveLearner.decision`, without a comparison with other models. The advice for each target
        is saved with the monitor.

        Args:
            at_most: The error that you want to reach: for classes the share of wrong predictions, for numbers the root
                of the mean squared error.

        Raises:
            InvalidValueError: ``at_most`` is not a number, or out of range.
            SufficeError: The model predicts neither probabilities nor deviations.
        """
        at_most = checked_target(at_most, share=self._of_classes)
        found = None if self._kept is None else self.error_estimate()
        newest = self.guarantee
        before = self._advice.before(at_most, len(self.labels))
        about = Decision(
            answer="too early",
            n_labelled=len(self.labels),
            unlabelled=self.left,
            share=self._of_classes,
            since=first_stop(self.verdicts) if self.verdict.stop else None,
            error=None if found is None else error_now(found, share=self._of_classes),
            at_most=at_most,
            guarantee=newest.guarantee if newest is not None and newest.about_present_model else None,
            check_pending=0 if self._checks.open is None else len(self._checks.open.pending),
        )
        numbers = numbers_from_labels(self.verdict, about, self._rule, self._labels, self._random)
        plan = None if found is None else self._plan(at_most, found, check_advised=before.check_advised)
        return self._advice.decide(self.verdict, numbers, before, plan)

    def _plan(self, at_most: float | None, found: CalibratedError, *, check_advised: bool) -> GuaranteePlan | None:
        """Time and size of the next check for the target error; None if there is nothing to plan."""
        if at_most is None or at_most >= 1.0 or not (self._of_classes and self.left):
            return None
        return plan_from_estimate(
            at_most,
            found,
            reducible=self._reducible(),
            n_labelled=len(self.labels),
            pool=self.left,
            alpha=self._checks.next_alpha(),
            one_class=len(set(self._labels.values())) < 2,
            check_advised=check_advised,
        )

    def _reducible(self) -> float:
        """The part of the error that more labels can remove, if it is known."""
        if self._steps and self._steps[-1].reducible_error is not None:
            return self._steps[-1].reducible_error
        if not isinstance(self._kept, FittedModel) or not self._kept.gives_probabilities:
            return 0.0
        rest = self._sample[~np.isin(self._sample, list(self.labels))]
        if not len(rest):
            return 0.0
        return float(self._kept.errors(rest, self._columns, len(self._classes))[0].reducible.mean())

    # Checks.

    @one_at_a_time
    def check(  # noqa: PLR0913 - one quantity of several, by keyword
        self,
        m: int,
        *,
        recall_of: Any = None,
        precision_of: Any = None,
        tolerance: float | None = None,
        share: float | None = None,
        unlabelable_as: UnlabelableAs = "wrong",
        predicted_as_found: bool = True,
        confidence: float | None = None,
    ) -> ModelCheck:
        """Draw a random check of the unlabelled items, to guarantee the predictions of the model of the last update.

        The arguments and the guarantee are those of :meth:`suffice.ActiveLearner.check`. Give the labels of the check
        to :meth:`suffice.learner.ModelCheck.tell`. If your model should learn them too, fit it and pass them to the
        next :meth:`update`, where they count as random labels.

        Raises:
            SufficeError: There was no update yet, or another check is open.
            InvalidValueError: An argument cannot be used; nothing is spent.
        """
        if self._checks.open is not None:
            raise SufficeError("a check is open; complete it with check.tell, or give it up with check.abort")
        self._require_model()
        assert self._task is not None
        alpha = self._checks.alpha(confidence)
        asked = checked_quantity(
            self._task,
            list(dict.fromkeys([*self._classes, *self._checked.values()])) if self._of_classes else [],
            {"recall_of": recall_of, "precision_of": precision_of, "tolerance": tolerance, "share": share},
            unlabelable_as=unlabelable_as,
            predicted_as_found=predicted_as_found,
        )
        require_size(m, self.left)
        check = self._checks.draw(m, asked, self._frozen(), self, alpha)
        if not check.open:
            self._check_closed(check)
        return check

    @property
    def checks(self) -> list[ModelCheck]:
        """All checks in the order in which they were drawn, aborted ones included."""
        return list(self._checks.checks)

    @property
    def guarantee(self) -> ModelGuarantee | None:
        """The newest guarantee, and whether it covers the model of the last update; None if there is none."""
        check = self._checks.newest
        if check is None or check.guarantee is None:
            return None
        return ModelGuarantee(check.guarantee, check, check.version == self._serial)

    def _frozen(self) -> FrozenModel:
        kept = self._require_model()
        unlabelled = self._unlabelled(self.labels)
        if isinstance(kept, _Remembered):
            model, predicted = None, [kept.predicted[place] for place in kept.places(unlabelled).tolist()]
        else:
            model, predicted = kept.model, kept.predicted(unlabelled, list(self._labels.values())).tolist()
        skipped = {item for check in self._checks.checks for item in check.record.unlabelable}
        return FrozenModel(
            model=model,
            name=f"{self._model_name} at {len(self._labels)} labels",
            n_labelled=len(self._labels),
            version=self._serial,
            labelled=tuple(self.labels),
            unlabelled=unlabelled,
            skipped=frozenset(skipped.difference(self.labels)),
            predictions=np.asarray(as_labels(predicted)),
        )

    def _usable_labels(self, labels: Any) -> list[Any]:
        """Labels as plain values; raises InvalidValueError for one that cannot be used."""
        values = np.atleast_1d(np.asarray(as_labels(labels)))
        if self._of_classes:
            return list(class_labels(values).tolist())
        return [real(label, "a label") for label in values.tolist()]

    @one_at_a_time
    def _check_closed(self, check: ModelCheck) -> None:
        """Receive the labels of a check, and apply the rule to its guarantee."""
        self._checked.update({item: label for item, label in check.record.labels.items() if item not in self._labels})
        found = check.guarantee
        proven = proven_fields(self._rule, found if check.version == self._serial else None)
        if proven is not None:
            step = replace(self._steps[-1] if self._steps else Step(n_labelled=len(self._labels)), **proven)
            if not self._rule.needs() - {name for name in FIELD_KINDS if getattr(step, name) is not None}:
                # A copy of the rule is used, because no labels were learned: only the guarantee is new in the step.
                self.verdict = self._rule.copy().observe(replace(step, n_labelled=len(self.labels)))
        self.verdict = self._exhausted(self.verdict)

    # Records.

    @one_at_a_time
    def trace(self) -> Trace:
        """The run so far, as :meth:`suffice.ActiveLearner.trace`: the inputs of the rule at each step.

        The divergences are NaN if the rule does not use them.
        """
        items = np.array(list(self._labels), dtype=np.intp)
        begun = bool(self._marks) and (not self._steps or self._marks[0].n_labelled < self._steps[0].n_labelled)
        first = self._marks[0].n_labelled if begun else 0
        rows = [_given(step) for step in self._steps]
        shared = frozenset(rows[0]).intersection(*rows) if rows else frozenset()
        return Trace(
            initial=items[:first],
            indices=items[first:],
            n_labelled=np.array([step.n_labelled for step in self._steps], dtype=np.intp),
            kl_new_old=np.array([_or_nan(step.kl_new_old) for step in self._steps], dtype=np.float64),
            kl_old_new=np.array([_or_nan(step.kl_old_new) for step in self._steps], dtype=np.float64),
            error=np.zeros(0),
            estimated=next((step.estimated for step in self._steps if step.estimated), ""),
            about={"model": self._model_name, "rule": repr(self._rule), "seed": self._seed},
            measures=stacked([{name: row[name] for name in sorted(shared - DIVERGENCES)} for row in rows]),
            random_items=np.array(list(self._random), dtype=np.intp),
        )

    def to_frame(self) -> Any:
        """The steps as a table of pandas: the verdicts of the rule, and its inputs.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("pandas", "", "a data frame") from None
        rows = []
        for step, said in zip(self._steps, self.verdicts, strict=True):
            numbers = {name: value for name, value in _given(step).items() if not isinstance(value, np.ndarray)}
            told = {"stop": said.stop, "ready": said.ready, "value": said.value, "threshold": said.threshold}
            rows.append({"n_labelled": step.n_labelled, **told, **numbers, "reason": said.reason})
        columns = ["n_labelled", "stop", "ready", "value", "threshold", "reason"]
        return pd.DataFrame(rows) if rows else pd.DataFrame(columns=columns)

    def plot(self, ax: Any = None) -> Any:
        """Draw the value that the rule compares, and its threshold, against the number of labels.

        Args:
            ax: Axes of matplotlib; new ones if left out.

        Returns:
            The axes.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        return drawn_curve(self.verdicts, ax)

    def _repr_html_(self) -> str:
        """The verdict with a chart, for notebooks."""
        rows = [("rule", repr(self._rule)), ("model", self._model_name), ("labelled", f"{len(self._labels):,}")]
        rows.append(("unlabelled", f"{self.left:,}"))
        if self._positive is not None:
            rows.append(("relevant", f"{self.relevant_found:,} found, class {str(self._positive)!r}"))
        if self._kept is not None and (isinstance(self._kept, _Remembered) or self._kept.gives_probabilities):
            found = self.error_estimate()
            basis = f"{found.random_labels} random labels" if found.random_labels else "the model alone"
            ends = f"{percent(found.low)} to {percent(found.high)}"
            if self._of_classes:
                rows.append(("estimated error", f"{percent(found.value)} ({ends}; {basis})"))
        if self.guarantee is not None:
            rows.append(("guarantee", str(self.guarantee)))
        said = self.verdict
        tone = "stop" if said.stop else "go on" if said.ready else "undecided"
        return card(str(said), rows, tone=tone, chart=curve("Value of the rule", *_curve_of(self.verdicts)))

    # JSON.

    @one_at_a_time
    def state_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; :meth:`from_state_dict` continues with the same verdicts.

        The predictions of the model for all unlabelled items are saved, because the model is not. A posterior is not
        saved, but computed again from the labels. That is not possible for a network: the first update after that of a
        rule that uses divergences is then undecided.
        """
        kept = self._kept
        if isinstance(kept, FittedModel):
            rest, voted = self._unlabelled(self._labels), "selected_agreement" in self._rule.reads()
            kept = _remembered(kept, rest, self._labels, self._classes, self._columns, votes=voted)
        return {
            "format": _FORMAT,
            "rule": self._rule.state_dict(),
            "label_cost": self._label_cost,
            "mistake_cost": self._mistake_cost,
            "seed": self._seed,
            "pool_size": len(self._pool),
            "positive": self._positive,
            "control": sorted(self._control),
            "seconds": time.monotonic() - self._since,
            "task": self._task,
            "classes": self._classes,
            "columns": self._columns,
            "labels": [[item, label, self._arrival[item]] for item, label in self._labels.items()],
            "random": list(self._random),
            "earlier": [[item, *said] for item, said in self._earlier.items()],
            "marks": [
                [mark.n_labelled, mark.serial, _encoded(mark.codes), mark.labels and list(mark.labels.items())]
                for mark in self._marks
            ],
            "recent": self._recent.state(),
            "steps": [{"n_labelled": step.n_labelled, **_encoded_fields(step)} for step in self._steps],
            "serial": self._serial,
            "model": self._model_name,
            "kept": None if kept is None else {name: _encoded(getattr(kept, name)) for name in _KEPT},
            "checks": self._checks_state(),
            "checked": [[item, label] for item, label in self._checked.items()],
            "advice": self._advice.state(),
        }

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], X_pool: Any, predict: Predict | None = None) -> "StopMonitor":
        """Restore a monitor from :meth:`state_dict`.

        Args:
            state: The result of ``state_dict``, also after a round trip through JSON.
            X_pool: The same pool.
            predict: As for :class:`StopMonitor`; functions are not saved.

        Raises:
            InvalidValueError: It is not such a result, or of another pool.
        """
        if not isinstance(state, Mapping) or state.get("format") != _FORMAT:
            raise InvalidValueError(f"state must be the result of StopMonitor.state_dict with format {_FORMAT!r}")
        try:
            rule = criterion_from_dict(state["rule"])
            costs = state["label_cost"], state["mistake_cost"]
            # Monitors of earlier versions have no positive class.
            screening = {"positive": state.get("positive"), "control": state.get("control", ())}
            monitor = cls(X_pool, rule, *costs, seed=state["seed"], predict=predict, **screening)
            if len(monitor._pool) != state["pool_size"]:
                raise InvalidValueError(
                    f"X_pool has {len(monitor._pool)} items, and the monitor was saved with {state['pool_size']}"
                )
            monitor._restore(state)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise InvalidValueError(f"state is not a complete result of StopMonitor.state_dict: {error!r}") from None
        return monitor

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._since = time.monotonic() - state["seconds"]
        self._task, self._classes, self._columns = state["task"], list(state["classes"]), list(state["columns"])
        self._labels = {item: label for item, label, _ in state["labels"]}
        self._arrival = {item: serial for item, _, serial in state["labels"]}
        self._random = dict.fromkeys(state["random"])
        for item, probabilities, votes, mean, variance in state["earlier"]:
            p, ballot = (None if each is None else tuple(each) for each in (probabilities, votes))
            self._earlier[item] = _Earlier(p, ballot, mean, variance)
        for n, serial, codes, *labels in state["marks"]:
            labelled = dict(map(tuple, labels[0])) if labels and labels[0] is not None else None
            self._marks.append(_Mark(n, serial, _decoded(codes), None, labelled))
        self._recent.restore(state["recent"], np.float64 if self._task == "regression" else np.intp)
        self._steps = [Step(**{name: _decoded(value) for name, value in step.items()}) for step in state["steps"]]
        self._serial, self._model_name = state["serial"], state["model"]
        self.verdicts = self._rule.observe_all(self._steps)
        if state["kept"] is not None:
            self._kept = _Remembered(**{name: _decoded(value) for name, value in state["kept"].items()})
        self._restore_checks(state["checks"])
        self._checked = dict(map(tuple, state["checked"]))
        # Monitors of earlier versions remember no advice.
        if "advice" in state:
            self._advice.restore(state["advice"])
        self.verdict = self.verdicts[-1] if self.verdicts else self.verdict
        if self._marks and (not self.verdicts or self.verdicts[-1].n_labelled != len(self._labels)):
            self.verdict = self._undecided(_FIRST)
        self.verdict = self._exhausted(self.verdict)

    def _checks_state(self) -> dict[str, Any]:
        source = self._checks._rng
        saved = []
        for check in self._checks.checks:
            frozen = check._frozen
            about = {
                "name": frozen.name,
                "n_labelled": frozen.n_labelled,
                "version": frozen.version,
                "labelled": list(frozen.labelled),
                "unlabelled": _encoded(frozen.unlabelled),
                "skipped": sorted(frozen.skipped),
                "predictions": frozen.predictions.tolist(),
            }
            saved.append({"record": check.record.to_dict(), "asked": asdict(check._asked), "frozen": about})
        drawn = None if source is None else source.bit_generator.state
        return {"checks": saved, "alpha": self._checks._alpha, "random_state": drawn}

    def _restore_checks(self, state: Mapping[str, Any]) -> None:
        for saved in state["checks"]:
            about = saved["frozen"]
            frozen = FrozenModel(
                **{
                    **about,
                    "model": None,
                    "labelled": tuple(about["labelled"]),
                    "unlabelled": _decoded(about["unlabelled"]),
                    "skipped": frozenset(about["skipped"]),
                    "predictions": np.asarray(as_labels(about["predictions"])),
                }
            )
            record, asked = Check.from_dict(saved["record"]), CheckedQuantity(**saved["asked"])
            check = ModelCheck(replace(record, unlabelable=frozenset()), asked, frozen, self)
            check.record = record
            self._checks.checks.append(check)
        self._checks._alpha = state["alpha"]
        if state["random_state"] is not None:
            self._checks._rng = np.random.default_rng()
            self._checks._rng.bit_generator.state = state["random_state"]


@dataclass(frozen=True, eq=False)
class _Round:
    """One update: the model, the labels, and the predictions before the labels were known."""

    fitted: FittedModel
    labels: Mapping[int, Any]
    earlier: Mapping[int, _Earlier]
    classes: list[Any]
    columns: list[int]
    random: set[int]

    def probabilities(self, items: Indices) -> Floats:
        """Class probabilities of items, for all classes so far."""
        return self.fitted.probabilities(items, self.columns, len(self.classes))

    def codes(self, items: Any) -> Any:
        """Columns of the labels of items."""
        place = {name: code for code, name in enumerate(self.classes)}
        return np.array([place[self.labels[int(item)]] for item in items], dtype=np.intp)

    def loss(self, item: int) -> tuple[float, float]:
        """The loss of an item's label under the previous model, and the loss that this model expected."""
        return _loss_of(self.earlier[item], self.labels[item], self.classes)

    def selected_facts(self, items: list[int], wanted: frozenset[str]) -> dict[str, Any]:
        """Fields about the items that are new since the last step; none if one of them was not predicted."""
        said = [self.earlier.get(item) for item in items]
        known = [each for each in said if each is not None]
        if len(known) < len(items) or not items:
            return {}
        if self.fitted.task == "regression":
            losses, expected = zip(*(self.loss(item) for item in items), strict=True)
            return {"selected_loss": float(np.mean(losses)), "selected_expected_loss": float(np.mean(expected))}
        rows = [each.probabilities or () for each in known]
        p = np.zeros((len(rows), max(map(len, rows))))
        for row, values in zip(p, rows, strict=True):
            row[: len(values)] = values
        codes = self.codes(items)
        # A class that was unknown to the model then.
        labels = np.where(codes < p.shape[1], codes, -1)
        found = {"selected_probabilities": p, "selected_labels": labels, **selected_losses(p, labels)}
        if "selected_agreement" in wanted and all(each.votes is not None for each in known):
            votes = np.array([each.votes for each in known]).T
            found["selected_agreement"] = committee_agreement(votes, p.shape[1])
        return found


def _loss_of(said: _Earlier, label: Any, classes: Sequence[Any]) -> tuple[float, float]:
    """The loss of a label under an earlier prediction, and the loss that was expected."""
    if said.probabilities is None:
        return (float(label) - said.mean) ** 2, said.variance
    p = np.array(said.probabilities)
    return float(classes[int(p.argmax())] != label), float(1.0 - p.max())


def _posteriors(now: _Round, last: _Mark | None) -> tuple[ComparedPosteriors, dict[str, Any]]:
    """The posterior of an update, and the divergences from the posterior of an earlier update, if there is one.

    Raises:
        InvalidValueError: There is no posterior.
    """
    before, known = (None, None) if last is None else (last.labels, last.posterior)
    try:
        found = now.fitted.posteriors(now.labels, before, known)
        if found.pair is None:
            return found, {}
        old, new = found.pair
        return found, {"kl_new_old": kl(new, old), "kl_old_new": kl(old, new)}
    except SufficeError as error:
        raise InvalidValueError(
            f"kl_new_old and kl_old_new compare the posteriors of two updates, which is not possible here: {error}"
        ) from None


def _why_missing(missing: Sequence[str], fitted: FittedModel) -> str:  # noqa: PLR0911, PLR0912 - one sentence for each case
    """Reason why a model does not provide some fields, and the remedy."""
    name = fitted.name
    lacks = frozenset(missing)
    if "control_found" in lacks and not lacks & SCREENING_FIELDS:
        return "give control= to StopMonitor, items of the positive class that were drawn at random, and positive="
    if lacks & (SCREENING_FIELDS | RELEVANCE_FIELDS) and fitted.task == "classification":
        if fitted.gives_probabilities or lacks & SCREENING_FIELDS:
            return "give positive= to StopMonitor, the class that the screening looks for"
        return f"{name} has no predict_proba; give predict=, {_FUNCTION} class probabilities, N x C"
    if lacks <= REGRET_FIELDS:
        return "the rule is for Bayesian optimisation; use suffice.learner.OptimisationMonitor"
    if lacks & DIVERGENCES:
        return f"posteriors are compared, and {fitted.why_no_posterior}"
    if "kl_prior" in lacks:
        return "the monitor knows no prior of the model; use suffice.simulate with a model of suffice"
    if lacks & VALIDATION_FIELDS:
        return "the monitor has no validation set; compute the error on yours and give it to the rule in a suffice.Step"
    if fitted.task == "regression" and not lacks <= _NUMBER_FIELDS | _LATENT_FIELDS:
        return f"it is computed from class probabilities, and {name} predicts numbers"
    if fitted.task == "regression" and fitted.gives_deviation:
        return f"{name} does not tell the variance of the noise-free value from that of the label"
    if fitted.task == "regression":
        return f"{name}.predict does not take return_std=True; give predict=, {_FUNCTION} (mean, std)"
    if "pool_variance" in lacks:
        return f"it is for numbers, and {name} predicts classes"
    if fitted.gives_probabilities and lacks & COMMITTEE_FIELDS:
        return (
            f"a committee is needed, and {name} has no estimators_ whose average it predicts; give predict=, "
            f"{_FUNCTION} the probabilities of K members, N x K x C"
        )
    if not fitted.gives_probabilities:
        return f"{name} has no predict_proba; give predict=, {_FUNCTION} class probabilities, N x C"
    return "the monitor does not compute it; give it to the rule in a suffice.Step"


def _remembered(  # noqa: PLR0913 - what a model predicts, and how its classes are arranged
    fitted: FittedModel,
    items: Indices,
    given: Mapping[int, Any],
    classes: list[Any],
    columns: list[int],
    *,
    votes: bool,
) -> _Remembered:
    """The predictions of a model for items."""
    predicted = fitted.predicted(items, list(given.values())).tolist() if len(items) else []
    if fitted.gives_probabilities:
        table = fitted.probabilities(items, columns, len(classes))
        voted = fitted.votes(items, columns, len(classes)) if votes and len(items) else None
        return _Remembered(items, predicted, table, voted)
    if fitted.gives_deviation:
        said = fitted.numbers(items)
        return _Remembered(items, predicted, np.column_stack([said.mean, said.variance]))
    return _Remembered(items, predicted, np.zeros((len(items), 0)))


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _given(step: Step) -> dict[str, Any]:
    """The fields of a step that are given, besides the number of labels."""
    return {name: getattr(step, name) for name in FIELD_KINDS if getattr(step, name) is not None}


def _curve_of(verdicts: Sequence[Verdict]) -> tuple[list[tuple[float, float]], list[tuple[float, float]], int | None]:
    """Labels and values of verdicts, their thresholds, and the first stop."""
    line = [(float(said.n_labelled), said.value) for said in verdicts if said.value is not None]
    limit = [(float(said.n_labelled), said.threshold) for said in verdicts if said.threshold is not None]
    return line, limit, first_stop(verdicts)


_KEPT: Final = ("items", "predicted", "table", "votes")


def _encoded(value: Any) -> Any:
    """An array as JSON values with exactly the same numbers; other values are returned unchanged."""
    if not isinstance(value, np.ndarray):
        return value
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
    return {"dtype": value.dtype.str, "shape": list(value.shape), "data": data}


def _decoded(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    array = np.frombuffer(base64.b64decode(value["data"]), dtype=np.dtype(value["dtype"]))
    return array.reshape(value["shape"]).copy()


def _encoded_fields(step: Step) -> dict[str, Any]:
    found = {name: _encoded(value) for name, value in _given(step).items()}
    return {**found, "estimated": step.estimated} if step.estimated else found
