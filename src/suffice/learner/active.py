"""The active learning loop: ask for the most useful label, tell it, and get a verdict. It does no input or output."""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from suffice.acquisition import Indices
from suffice.arguments import real, whole
from suffice.checks import CheckPlan, Guarantee, GuaranteePlan, plan, plan_recall
from suffice.checks.guarantee import UnlabelableAs
from suffice.checks.planner import MOST_MISSED
from suffice.criteria import Criterion, LabelWorth, Step, Verdict, criterion_from_dict
from suffice.criteria.base import require_rule
from suffice.decision import (
    Alternative,
    Decision,
    DecisionMemory,
    ErrorNow,
    checked_target,
    decide,
    first_stop,
    numbers_from_labels,
)
from suffice.engines.disk_rows import DiskRows, require_memory
from suffice.errors import InvalidValueError, MissingInputError, SufficeError
from suffice.learner.backend import ItemSelection, RunSettings, StepResults, acquisition_and_share, relearned
from suffice.learner.error_estimate import (
    REST_ITEMS,
    CalibratedError,
    RandomLabelLosses,
    Worsening,
    checked_tolerance,
    error_now,
    plan_from_estimate,
    share_beyond,
)
from suffice.learner.guarantee_rules import ErrorGuarantee, proven_fields, rules_of_type
from suffice.learner.model_check import (
    CheckSequence,
    FrozenModel,
    ModelCheck,
    ModelGuarantee,
    RunningCheck,
    RunningSample,
    checked_quantity,
    require_size,
)
from suffice.learner.model_comparison import better_model
from suffice.learner.prepare import (
    PreparedModel,
    checked_indices,
    first_items,
    generator,
    label_costs,
    number_type,
    pool_device,
    pool_rows,
    prepare,
    require_provided,
    seed_name,
    validation_set,
)
from suffice.learner.step_inputs import (
    CLASS_COUNT_FIELDS,
    COUNTED_FIELDS,
    SCREENING_FIELDS,
    StepInputs,
    StopSet,
    classes_seen,
    joined_rows,
    new_step_inputs,
    positive_class,
    relevant_estimates,
)
from suffice.learner.suspicious_labels import SuspiciousLabel, suspicious_labels
from suffice.models.inputs import as_labels
from suffice.models.kernels import KernelFeatures
from suffice.models.regression import GaussianProcess
from suffice.models.threads import SingleUse, one_at_a_time, one_thread
from suffice.numerics import Floats
from suffice.trace import DIVERGENCES, STEP_FIELDS, Relearned, Trace

# Number of items over which the reducible part of the error is averaged.
_REDUCIBLE_ITEMS: Final = 500
# Numbers of the random streams for checks, and for the order of a running check.
_CHECK_STREAM: Final = 18
_RUNNING_STREAM: Final = 19
# Bytes that a check needs for each unlabelled item.
_CHECKED_ITEM: Final = 150


# Attributes that are not saved: they follow from the arguments of a learner, or are saved in another form.
_FIXED_ATTRIBUTES: Final = frozenset(
    {
        "_rule",
        "_single_use",
        "_prepared",
        "_X",
        "_compared_inputs",
        "_costs",
        "_clock",
        "_since",
        "_validated",
        "_first",
        "_backend",
        "_selection",
        "_about",
        "_looked_at",
        "_check_sequence",
        "_unlearned",
        "_running",
        "_used",
    }
)


class ActiveLearner:
    """An active learning loop: a pool, a model and a stopping rule. The caller provides the labels.

    The first ``initial`` items are chosen at random. Afterwards the model chooses, and the rule is applied after each
    step. Labels of one call of :meth:`tell` are one step. All results are determined by the pool, the seed and the
    sequence of calls, so the same calls give the same picks and verdicts.

    Args:
        model: One of :mod:`suffice.models`, or any classifier or regressor of scikit-learn, which is fitted again after
            every step and has no divergences; or a pipeline that ends in one: its transformers are fitted on the pool.
            It is not changed.
        X_pool: Inputs, ``m x D``. A memory map, or the path of a NumPy file (``.npy``), a Parquet file or a folder of
            Parquet files, stays on disk if it is large: :class:`suffice.engines.ParquetPool` names the columns to use
            and limits the memory. Logistic and ridge regression read it in batches; for other models it is read into
            memory if it fits. A Dask array or a Dask DataFrame stays on the workers of its cluster.
        criterion: The stopping rule, which is copied. Left out, it is :class:`suffice.LabelWorth` with its defaults: a
            wrong prediction among the unlabelled items costs as much as a label.
        acquisition: Which item next: see :data:`suffice.acquisition.NAMES`. Left out, it is the recommended one for
            the model, with its share of random labels; with ``positive``, it is ``"relevance"``.
        random_share: Share of the labels, 0 to 1, that are drawn at random from the unlabelled items instead. Such
            labels tell how good the model is on the others. Left out, it is 0 for an acquisition that is named.
        seed: Seed of all randomness.
        initial: Items asked for before the model chooses: how many at random, or which.
        dtype: Number type that the pool is kept in; ``float32`` halves the memory. Networks compute in it anyway.
        device: Device of torch on which a Gaussian process or a logistic regression scores the pool, such as
            ``"cuda"``. A tensor on a graphics card is scored there if this is left out.
        client: A ``distributed.Client``, on whose workers a Gaussian process or a logistic regression keeps and scores
            the pool: an array, a path that the workers can read, or a Dask collection. For a Dask collection it is the
            default client if left out. A worker that is lost is replaced, and the picks stay the same.
        stop_set: The stop set, or its size, for rules that watch predictions; 2000 items of the pool (or all), drawn
            with the seed, if left out. It is drawn, and followed, only for a rule that asks for it.
        validation: Inputs and labels of a validation set, for rules that want one.
        costs: What a label costs, for rules that count it: one number, or one for each item of the pool.
        check_share: Share of the labels, above 0 and below 1, for a running check: they are asked for in one random
            order and never learned, and bound the error at all times; see :attr:`running_check`. For numbers the rule
            must have a tolerance: :class:`suffice.learner.ErrorGuarantee` or :class:`suffice.LabelWorth`. Left out,
            there is no running check, and :meth:`check` draws checks on demand.
        positive: For screening: the class that is looked for. The acquisition ``"relevance"`` asks for the items with
            the largest probability of it; until the first one is found, for items at random. Rules such as
            :class:`suffice.RecallTest` require it.
        clock: Seconds, for rules that limit time; they count from here.

    Attributes:
        verdict: The verdict of the rule.
        verdicts: Verdicts of the rule for each step so far, with the present hyper-parameters.

    Examples:
        >>> import numpy as np
        >>> from suffice.models import GaussianProcess
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(400, 3)); y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=400)
        >>> learner = ActiveLearner(GaussianProcess(), X, criterion=LabelWorth(mistake_cost=0.1))
        >>> while not learner.verdict.stop:
        ...     i = learner.ask()
        ...     verdict = learner.tell(i, y[i])
        >>> verdict.stop, len(learner.labelled) < 100
        (True, True)
    """

    def __init__(  # noqa: PLR0913 - a learner has many settings, all but two by keyword
        self,
        model: Any,
        X_pool: Any,
        *,
        criterion: Criterion | None = None,
        acquisition: str | None = None,
        random_share: float | None = None,
        seed: int = 0,
        initial: Any = 10,
        dtype: Any = np.float64,
        device: Any = None,
        client: Any = None,
        stop_set: StopSet | int | None = None,
        validation: tuple[Any, Any] | None = None,
        costs: Any = None,
        check_share: float | None = None,
        positive: Any = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if criterion is not None:
            require_rule(criterion, "criterion")
        self._single_use = SingleUse()
        rng = generator(seed)
        self._rule = LabelWorth() if criterion is None else criterion.copy()
        self._rule.reset()
        X_pool = pool_rows(model, X_pool, client)
        self._prepared = prepare(model, X_pool)
        self._positive = positive_class(positive)
        if self._positive is not None and not self._of_classes:
            raise InvalidValueError(f"positive is a class, {positive!r}, and the model predicts numbers; leave it out")
        name, share = acquisition_and_share(
            self._prepared.backend, acquisition, random_share, screening=self._positive is not None
        )
        place = pool_device(device, X_pool, self._prepared.backend, name)
        self._X = self._prepared.pool_inputs(X_pool, place)
        self._size = self._X.shape[0]
        # Inputs for the comparison with other models: those before the pipeline, if they are numbers.
        plain = self._prepared.transform is not None and isinstance(X_pool, np.ndarray) and X_pool.dtype.kind in "fiu"
        self._compared_inputs = X_pool if plain else self._X
        inputs = self._step_inputs(stop_set, validation, seed)
        self._costs, self._clock, self._since = label_costs(costs, self._size), clock, clock()
        self._validated = 0 if inputs.validation is None else len(inputs.validation[1])
        self._first = first_items(initial, self._size, rng)
        with one_thread():
            self._backend = self._prepared.backend(
                self._prepared.model,
                RunSettings(
                    self._X,
                    name,
                    rng,
                    dtype=number_type(dtype),
                    expected=256,
                    step_inputs=inputs,
                    positive=self._positive,
                    device=place,
                ),
            )
        self._selection = ItemSelection(self._backend, self._size, share, rng, all_random=name == "random")
        self._about: dict[str, Any] = {
            "model": " ".join(repr(model).split()),
            "acquisition": name,
            "seed": seed_name(seed),
        }
        if share > 0.0:
            self._about["random_share"] = share
        if self._positive is not None:
            self._about["positive"] = self._positive
        # Items that were drawn at random: the requested items, and the labelled ones among them, in order.
        self._drawn = {int(i) for i in self._first} if isinstance(initial, int | np.integer) else set()
        self._random_items: list[int] = []
        self._random_losses = RandomLabelLosses(self._prepared.backend.task)
        self._calibration = 1.0
        # The order in which items are used for the error estimate; drawn at first use.
        self._looked_at: Indices | None = None
        self._check_sequence = CheckSequence(partial(_check_rng, seed))
        # The complete check whose labels are not learned yet, and the number of changes of the model.
        self._unlearned: ModelCheck | None = None
        self._version = 0
        self._running = None if check_share is None else self._new_running_sample(check_share, seed)
        # 0: no label; 1: learned; 2: skipped; 3: labelled for the running check, and not learned.
        self._status = np.zeros(self._size, dtype=np.int8)
        self._labels: dict[int, Any] = {}
        self._advice = DecisionMemory()
        self._sizes: list[int] = []
        self._new_old: list[float] = []
        self._old_new: list[float] = []
        self._estimated = ""
        self._measures: list[Mapping[str, Floats]] = []
        self._relearned: list[Relearned] = []
        self._begun = 0
        self.verdict = self._undecided()
        self.verdicts: list[Verdict] = []

    def _step_inputs(self, stop_set: Any, validation: Any, seed: Any) -> StepInputs:
        """The fields that the rule uses. Other fields are not computed."""
        held_out = validation_set(self._prepared, validation, self._X.shape[1])
        validated, screening = held_out is not None, self._positive is not None
        require_provided(self._rule.needs(), self._prepared.model, validated=validated, screening=screening)
        provided = self._prepared.backend.provided_fields(validated=validated, screening=screening)
        self._used = self._rule.reads() & provided
        counted = CLASS_COUNT_FIELDS | SCREENING_FIELDS
        names = self._used - DIVERGENCES - counted - (COUNTED_FIELDS - self._rule.needs())
        number = int(seed) if isinstance(seed, int | np.integer) else 0
        return new_step_inputs(names, self._size, stop_set, seed=number, validation=held_out)

    def _new_running_sample(self, share: Any, seed: Any) -> RunningSample:
        wanted = rules_of_type(self._rule, ErrorGuarantee)
        given = [rule.tolerance for rule in wanted] + [rule.tolerance for rule in rules_of_type(self._rule, LabelWorth)]
        tolerances = [each for each in given if each is not None]
        if not self._of_classes and not tolerances:
            raise InvalidValueError(
                "check_share for numbers needs a rule with a tolerance, such as ErrorGuarantee(at_most, tolerance=...)"
            )
        confidence = max((rule.confidence for rule in wanted), default=0.95)
        rng = _check_rng(seed, _RUNNING_STREAM)
        self._about["check_share"] = float(share) if isinstance(share, float) else share
        return RunningSample.start(self._size, share, confidence, None if self._of_classes else min(tolerances), rng)

    def __repr__(self) -> str:
        return f"ActiveLearner({self._about['model']}: {len(self._labels)} labelled, {self.left} left)"

    @property
    def labelled(self) -> list[int]:
        """Labelled items in the order of their labels."""
        return list(self.labels)

    @property
    def labels(self) -> dict[int, Any]:
        """The label of each item."""
        checked = {} if self._unlearned is None else self._unlearned.record.labels
        running = {} if self._running is None else self._running.labels
        return {**self._labels, **checked, **running}

    @property
    def skipped(self) -> list[int]:
        """Skipped items."""
        return [int(i) for i in np.flatnonzero(self._status == 2)]

    @property
    def random_items(self) -> list[int]:
        """Labelled items that were drawn at random from the unlabelled ones, in the order of their labels."""
        return list(self._random_items)

    @property
    def random_labels(self) -> int:
        """Number of labels that calibrate :meth:`error_estimate`."""
        return self._random_losses.count(self._prepared.model, self._random_items)

    @property
    def relevant_found(self) -> int | None:
        """Number of labelled items of the positive class; None without ``positive``."""
        return None if self._positive is None else sum(self._relevance(self.labels.values()))

    def expected_missed(self, most: int = REST_ITEMS) -> float:
        """The expected number of items of the positive class among the unlabelled items.

        It is the sum of the probabilities of the class, calibrated by the random labels. It is an estimate. It does not
        account for kinds of items of which none is found yet.

        Args:
            most: Maximal number of unlabelled items to use.

        Raises:
            SufficeError: The model has no label yet.
            InvalidValueError: There is no positive class.
        """
        if self._positive is None:
            raise InvalidValueError("expected_missed is for screening: give the learner positive=, the class")
        rest, model = self._some_unlabelled(whole(most, "most", least=1)), self._bare_model()
        classes = model.classes_.tolist()
        if not len(rest) or self._positive not in classes:
            return 0.0
        with one_thread():
            p = model.predict_proba(self._X[rest])[:, classes.index(self._positive)]
            ratio = self._random_losses.class_ratio(model, self._labels, self._random_items, self._positive)
        left = int(np.count_nonzero(self._status != 1))
        return min(float(left), ratio * left * float(p.mean()))

    def _relevance(self, labels: Iterable[Any]) -> list[bool]:
        """Whether each label is the positive class."""
        return [bool(label == self._positive) for label in labels]

    @property
    def left(self) -> int:
        """Items that are neither labelled nor skipped."""
        return int(np.count_nonzero(self._status == 0))

    @property
    def model(self) -> Any:
        """A fitted copy of the model for predictions, with its pipeline if there is one."""
        self._require_begun()
        with one_thread():
            return self._prepared.joined(self._backend.fitted())

    def _require_begun(self) -> None:
        if not self._begun:
            raise SufficeError(f"the model has no label yet: {len(self._first)} are wanted before it learns")

    @property
    def current_model(self) -> Any:
        """The model of :attr:`model` without fitting it: it shares the posterior of the learner.

        Use it to predict, do not change it, and do not keep it: it is valid until the next label.
        """
        self._require_begun()
        return self._prepared.joined(self._backend.current_model())

    @one_at_a_time
    def error_estimate(self, most: int = REST_ITEMS, *, tolerance: float | None = None) -> CalibratedError:
        """The error of the unlabelled items: the error that the model expects, calibrated by the random labels.

        For classes it is the share of wrong predictions. For numbers it is the mean squared error, in squared units of
        the labels: ``value ** 0.5`` is the root mean squared error, in their unit, which :meth:`decision` states and
        takes as ``at_most``. With ``tolerance`` it is the share of predictions whose error exceeds the tolerance. It is
        an estimate, not a guarantee. If there are many unlabelled items, a sample of them is used; it stays the same
        except for items that are labelled.

        Args:
            most: Maximal number of unlabelled items to use.
            tolerance: For numbers: the largest error that is not wrong, at least 0.

        Raises:
            SufficeError: The model has no label yet.
            InvalidValueError: An argument is out of range, or ``tolerance`` is given for classes.
        """
        rest = self._some_unlabelled(whole(most, "most", least=1))
        limit = checked_tolerance(tolerance, share=self._of_classes)
        model = self._bare_model()
        with one_thread():
            return self._random_losses.estimate(model, self._X[rest], self._labels, self._random_items, limit)

    def _some_unlabelled(self, most: int) -> Indices:
        """Unlabelled items over which estimates are averaged: a fixed sample without the items that are labelled."""
        if self._looked_at is None:
            self._looked_at = np.random.default_rng(0).permutation(self._size)
        order = self._looked_at
        return np.sort(order[self._status[order] != 1][:most])

    @one_at_a_time
    def decision(self, *, at_most: float | None = None, compare: bool = True) -> Decision:
        """The decision: keep labelling, enough, or this model has reached its limit.

        Decisions for the same ``at_most`` build on each other: a check that was advised stays advised unless a later
        one saves a quarter of the labels, and a target that was out of reach stays so until a check is advised.

        Args:
            at_most: The error that you want to reach: for classes the share of wrong predictions, for numbers the root
                of the mean squared error.
            compare: Whether to compare the model with others on the same labels once the rule says stop. It takes a few
                seconds.

        Raises:
            InvalidValueError: ``at_most`` is not a number, or out of range.

        Examples:
            >>> import numpy as np
            >>> from suffice.models import BayesianLogistic
            >>> X = np.random.default_rng(0).normal(size=(300, 2)); y = np.where(X[:, 0] > 0.0, "right", "left")
            >>> learner = ActiveLearner(BayesianLogistic(), X)
            >>> while not learner.verdict.stop:
            ...     i = learner.ask()
            ...     verdict = learner.tell(i, y[i])
            >>> learner.decision().answer
            'enough'
            >>> learner.decision(at_most=0.2).answer  # a check has to guarantee that
            'keep going'
        """
        at_most = checked_target(at_most, share=self._of_classes)
        error = error_now(self.error_estimate(), share=self._of_classes) if self._begun else None
        since = first_stop(self.verdicts) if self.verdict.stop else None
        before = self._advice.before(at_most, len(self.labelled))
        numbers = self._numbers(self.verdict, error, since=since, at_most=at_most, compare=compare)
        plan = self.plan_for(at_most, error, check_advised=before.check_advised)
        return self._advice.decide(self.verdict, numbers, before, plan)

    @one_at_a_time
    def decision_about(  # noqa: PLR0913 - all but two by keyword
        self,
        verdict: Verdict,
        error: ErrorNow | None,
        *,
        since: int | None,
        at_most: float | None = None,
        compare: bool = True,
        rule: Criterion | None = None,
    ) -> Decision:
        """The decision for a verdict and an estimate of the error, without plans of checks and without memory.

        Args:
            verdict: What the rule says.
            error: The estimate; None before the model has started.
            since: Number of labels at which the stop that stands was said first.
            at_most: As for :meth:`decision`.
            compare: As for :meth:`decision`.
            rule: The rule that gave the verdict; that of the learner if left out.
        """
        return decide(verdict, self._numbers(verdict, error, since=since, at_most=at_most, compare=compare, rule=rule))

    def _numbers(  # noqa: PLR0913 - all but two by keyword
        self,
        verdict: Verdict,
        error: ErrorNow | None,
        *,
        since: int | None,
        at_most: float | None,
        compare: bool,
        rule: Criterion | None = None,
    ) -> Decision:
        """The numbers of a decision; arguments as for :meth:`decision_about`."""
        about = Decision(
            answer="too early",
            n_labelled=len(self.labelled),
            unlabelled=self.left,
            share=self._of_classes,
            since=since,
            error=error,
            at_most=at_most,
            alternative=self.better_model() if compare and verdict.stop and self._begun and self.left else None,
            guarantee=self._present_guarantee(),
        )
        return numbers_from_labels(verdict, about, rule or self._rule, self._labels, self._random_items)

    def plan_for(
        self, at_most: float | None, error: ErrorNow | None, *, check_advised: bool = False
    ) -> GuaranteePlan | None:
        """The plan for a target error; None for numbers, and if there is nothing to plan.

        Args:
            at_most: The share of wrong predictions that is wanted, or None.
            error: The estimate of the error to plan with; that of :meth:`error_estimate` if None.
            check_advised: As for :func:`suffice.checks.plan_total`.
        """
        if at_most is None or at_most >= 1.0 or not (self._of_classes and self._begun and self.left):
            return None
        found = self._wrong_share(None)
        found = found if error is None else found._replace(value=error.value)
        return self._planned(at_most, found, None, check_advised=check_advised)

    def _present_guarantee(self) -> Guarantee | None:
        """Guarantee for the present model, from a check or from the running check."""
        if self._running is not None:
            last = self._running.evaluations[-1] if self._running.evaluations else None
            return last.guarantee if last is not None and last.frozen.version == self._version else None
        newest = self.guarantee
        return newest.guarantee if newest is not None and newest.about_present_model else None

    @one_at_a_time
    def better_model(self) -> Alternative | None:
        """Another model that is better on the labels so far, or None.

        See :func:`suffice.learner.model_comparison.better_model`.

        Raises:
            SufficeError: The model has no label yet.
        """
        items = np.array(list(self._labels), dtype=np.intp)
        random = np.isin(items, self._random_items)
        labels = np.asarray(as_labels(list(self._labels.values())))
        with one_thread():
            return better_model(
                self._bare_model(), self._compared_inputs[items], labels, random, present=family_name(self._prepared)
            )

    @property
    def _of_classes(self) -> bool:
        return self._prepared.backend.task == "classification"

    @one_at_a_time
    def worsening(self) -> Worsening | None:
        """Evidence from the newer random labels that the model has become worse; None if there is none.

        Each random label was predicted before it was learned. If the present model, with each of these labels left out,
        predicts them clearly worse, the labels in between have made the model worse.

        Raises:
            SufficeError: The model has no label yet.
        """
        model = self._bare_model()
        with one_thread():
            return self._random_losses.worsening(model, self._labels)

    @one_at_a_time
    def suspicious_labels(self, n: int | None = None) -> list[SuspiciousLabel]:
        """The labels, ranked by how unlikely they are to models that have not learned them, the least likely first.

        See :func:`suffice.learner.suspicious_labels.suspicious_labels`. The first labels should be reviewed; not all of
        them are wrong. The method takes about a second for 500 labels.

        Args:
            n: How many labels to return; all if left out.

        Returns:
            The labels with their predictions without them; empty if there are fewer than 20 or all are the same.

        Raises:
            SufficeError: The model has no label yet.
            InvalidValueError: ``n`` is not a whole number of at least 1.

        Examples:
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
        rows = np.array(list(self._labels), dtype=np.intp)
        return suspicious_labels(self._bare_model(), self._X[rows], self._labels)[:wanted]

    def _bare_model(self) -> Any:
        """The current model without its pipeline, for inputs as they are stored here."""
        self._require_begun()
        return self._backend.judged_model()

    @one_at_a_time
    def ask(self, n: int = 1) -> Indices:
        """The next items to label, the most useful first. A repeated call before :meth:`tell` returns the same items.

        Args:
            n: How many, to be labelled together. Fewer come back only where the pool ends.

        Returns:
            Indices into the pool.

        Raises:
            SufficeError: Nothing is left to label.
        """
        size = whole(n, "n", least=1)
        self._learn_checked()
        if not self.left:
            raise SufficeError("every item of the pool is labelled or skipped; there is nothing left to ask for")
        check = self._check_sequence.open
        if check is not None and self.left == len(check.indices):
            raise SufficeError("every item that is left belongs to the open check; tell its labels with check.tell")
        if not self._begun:
            waiting = self._first[self._status[self._first] == 0]
            others = np.flatnonzero(self._status == 0)
            rest = others[~np.isin(others, waiting)]
            return np.append(waiting, rest).astype(np.intp)[:size]
        with one_thread():
            return self._picked(size) if self._running is None else self._picked_and_checked(size, self._running)

    def _picked(self, size: int) -> Indices:
        """The next items to learn."""
        while True:
            picks = self._selection.propose(1) if size == 1 else self._selection.batch(size)
            own = self._status[picks.indices] == 3
            if not own.any():
                break
            # Items of the running check that the learner chooses are learned, and are removed from the sample.
            items = picks.indices[own]
            self._leave_sample(items, picks.indices[own & picks.random])
        self._drawn.update(int(i) for i in picks.indices[picks.random])
        return np.array(picks.indices)

    def _picked_and_checked(self, size: int, running: RunningSample) -> Indices:
        """The next items to learn, followed by the next items of the running check."""
        number = running.turns(size, len(self.labelled) - self._begun)
        picked = self._picked(size - number) if number < size else np.zeros(0, dtype=np.intp)
        chosen = {int(item) for item in picked}
        sampled = running.next_items(size - len(picked), self._status, chosen)
        running.offered = (running.offered - chosen) | set(sampled)
        return np.concatenate([picked, np.array(sampled, dtype=np.intp)])

    def _leave_sample(self, items: Indices, drawn: Indices, labels: Any = None) -> None:
        """Learn items of the running check that were chosen, with their labels."""
        assert self._running is not None
        known = [self._running.labels[int(item)] for item in items] if labels is None else list(labels)
        given = np.asarray(as_labels(known))
        if self._selection.draws_at_random:
            self._backend.mark_random(drawn)
        kept = {int(item): self._running.labels.pop(int(item)) for item in items}
        try:
            self._tell(items, given, drawn)
        except BaseException:
            self._running.labels.update(kept)
            self._status[items] = 3
            raise

    @one_at_a_time
    def tell(self, indices: Any, labels: Any, *, random: Any = None) -> Verdict:
        """Learn labels of requested or other items; all labels of one call are one step.

        Args:
            indices: One item or several.
            labels: Their labels.
            random: Whether the items were drawn at random from the unlabelled ones: True, False, or one entry for each
                item. Left out, these are the items that :meth:`ask` drew at random.

        Returns:
            The verdict of the rule, which is also the attribute ``verdict``.

        Raises:
            InvalidValueError: A label that cannot be used, or an item that has one: nothing is changed.
        """
        items = checked_indices(indices, self._size, "indices")
        given = np.atleast_1d(np.asarray(as_labels(labels)))
        if given.shape != items.shape:
            raise InvalidValueError(
                f"{len(items)} items came with labels of shape {given.shape}; one label for each is needed"
            )
        known = items[self._status[items] == 1]
        if len(known):
            raise InvalidValueError(
                f"item {known[0]} has a label already; to change it, call correct({known[0]}, label)"
            )
        self._check_sequence.require_not_in_open(items.tolist(), "tell")
        drawn = self._which_random(items, random)
        if self._running is not None:
            return self._tell_running(items, given, drawn, marked=random is not None)
        if self._unlearned is not None:
            self._backend.check(given)
            self._learn_checked()
        # If only the initial labels are random, hyper-parameters are learned as in earlier versions.
        if self._selection.draws_at_random or random is not None:
            self._backend.mark_random(drawn)
        with one_thread():
            verdict = self._tell(items, given, drawn)
        # An item that could not be labelled in a check may have a label now.
        for item, label in zip(items.tolist(), given.tolist(), strict=True):
            self._check_sequence.answered(item, label)
        return verdict

    def _tell_running(
        self, items: Indices, given: "np.typing.NDArray[Any]", drawn: Indices, *, marked: bool
    ) -> Verdict:
        """Learn labels, except those of the running check, which are stored separately."""
        running = self._running
        assert running is not None
        self._backend.check(given)
        sampled = np.array([int(item) in running.offered for item in items], dtype=bool)
        # The caller chose these items, so they are removed from the sample.
        again = ~sampled & (self._status[items] == 3)
        with one_thread():
            if again.any():
                self._leave_sample(items[again], drawn[np.isin(drawn, items[again])], given[again])
            rest = ~sampled & ~again
            if rest.any():
                others = drawn[np.isin(drawn, items[rest])]
                if self._selection.draws_at_random or marked:
                    self._backend.mark_random(others)
                self._tell(items[rest], given[rest], others)
        for item, label in zip(items[~sampled].tolist(), given[~sampled].tolist(), strict=True):
            running.answered(item, label)
        for item, label in zip(items[sampled].tolist(), given[sampled].tolist(), strict=True):
            running.labels[item] = label
            running.offered.discard(item)
            running.asked += 1
            self._status[item] = 3
        self._evaluate_running(running)
        self.verdict = self._exhausted(self.verdict)
        return self.verdict

    def _evaluate_running(self, running: RunningSample) -> None:
        """Compute the bound of the running check if it is due, and apply the rule to it."""
        while self._begun and (items := running.due(self._status)) is not None:
            found = running.evaluate(items, self._frozen())
            self.verdict = self._exhausted(self._judged(found.guarantee) or self.verdict)

    @property
    @one_at_a_time
    def running_check(self) -> RunningCheck | None:
        """The state of the running check: its sample, its evaluations and the newest guarantee; None if there is none.

        A share of the labels is requested in a random order that was fixed at the start. These labels are not learned.
        They affect neither the model nor its hyper-parameters, the error estimate or the choice of items. The bound is
        computed at the sizes of a fixed grid; between them, the newest bound is shown with the model that it covers. An
        item of the sample that the learner chooses is learned and removed from the sample. If you choose items
        yourself, choose among all items that the model has not learned, including the sample, and pass their labels to
        :meth:`tell` again; otherwise the sample is no longer random. A rule counts the labels that were learned.

        Examples:
            >>> import numpy as np
            >>> from suffice.models import BayesianLogistic
            >>> X = np.random.default_rng(0).normal(size=(1000, 2)); y = np.where(X[:, 0] > 0.0, "right", "left")
            >>> learner = ActiveLearner(BayesianLogistic(), X, check_share=0.2)
            >>> while len(learner.labelled) < 200:
            ...     i = learner.ask()
            ...     verdict = learner.tell(i, y[i])
            >>> print(learner.running_check)
            At most 13 % of the predictions for the 815 unlabelled items are wrong (95 % confidence). This is about the
            model at 155 labels, not the present one. The next evaluation is at a sample of 60; it has 31 now.
        """
        return None if self._running is None else self._running.state(self._status, self._version)

    @one_at_a_time
    def skip(self, indices: Any) -> Verdict:
        """Never request these items again. Their labels can still be passed to :meth:`tell` later.

        Returns:
            The verdict of the rule: stop if no items are left.
        """
        items = checked_indices(indices, self._size, "indices")
        known = items[np.isin(self._status[items], (1, 3))]
        if len(known):
            raise InvalidValueError(f"item {known[0]} has a label; only items without one can be skipped")
        self._check_sequence.require_not_in_open(items.tolist(), "cannot_label")
        verdict = self._skip(items)
        if self._running is not None:
            # An item of the running check that cannot be labelled counts as wrong.
            self._running.asked += len(self._running.offered.intersection(items.tolist()))
            self._running.offered -= set(items.tolist())
            self._evaluate_running(self._running)
        return self.verdict if self._running is not None else verdict

    def _skip(self, items: Indices) -> Verdict:
        before = self._status[items].copy()
        self._status[items] = 2
        try:
            self._selection.skip(items)
            if self._begun:
                self._backend.skip(items)
            elif not self.left and self._labels:
                self._begin()
        except BaseException:
            self._status[items] = before
            raise
        self.verdict = self._exhausted(self.verdict)
        return self.verdict

    @one_at_a_time
    def correct(self, index: Any, label: Any) -> Verdict:
        """Change the label of an item in the whole history: all steps are computed and judged again.

        Some records of earlier steps do not change: for a classifier all records except divergences (predictions for
        selected items, pool and stop set, train error), and for any model the recent gain. A network learns the
        corrected label like a new label, and the inputs of the rule for earlier rounds do not change. The guarantee of
        a check that contains the item is computed again, at the same error probability.

        Returns:
            The verdict of the rule.

        Raises:
            InvalidValueError: The item has no label, or the new one cannot be used: nothing is changed.
        """
        items, given = checked_indices(index, self._size, "index"), np.atleast_1d(np.asarray(as_labels(label)))
        if len(items) != 1 or given.shape != (1,):
            raise InvalidValueError("correct takes one item and its label at a time")
        item, label = int(items[0]), given[0]
        if self._correct_in_check(item, given) or self._correct_in_running(item, given):
            return self.verdict
        if item not in self._labels:
            raise InvalidValueError(f"item {item} has no label to correct; tell({item}, label) gives it one")
        self._backend.check(given)
        with one_thread():
            history = self._backend.correct(item, label) if self._begun else None
            self._labels[item] = label
            self._random_losses.label(item, label)
            if history is not None:
                self._version += 1
                self._recount()
                self._replaced(history)
        self._check_sequence.answered(item, given.tolist()[0])
        if self._running is not None:
            self._running.answered(item, given.tolist()[0])
        return self.verdict

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
        """Freeze the model and draw a random check of the unlabelled items, to guarantee its predictions for them.

        For classes the check guarantees the share of wrong predictions, or the recall or precision of a class. For
        numbers it guarantees the share of predictions whose error exceeds ``tolerance``, or the tolerance that at most
        a ``share`` of the predictions exceeds. See :class:`suffice.learner.ModelCheck` for the labels of the
        check, and the guide on guarantees for what is guaranteed.

        Several checks share the error probability: check number j spends ``alpha / (j (j + 1))``, also if it is
        aborted. While a check is open, :meth:`ask` does not return its items, and other items can be labelled.

        Args:
            m: Number of items to draw; fixed from now on.
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
            confidence: Confidence of all checks of this learner together; 0.95 if left out at the first check, and that
                of the first check afterwards.

        Raises:
            SufficeError: The model has no label yet, or another check is open.
            InvalidValueError: An argument cannot be used; nothing is spent.
        """
        self._require_no_running()
        if self._check_sequence.open is not None:
            raise SufficeError("a check is open; complete it with check.tell, or give it up with check.abort")
        self._require_begun()
        alpha = self._check_sequence.alpha(confidence)
        asked = checked_quantity(
            self._prepared.backend.task,
            self._known_classes() if self._of_classes else [],
            {"recall_of": recall_of, "precision_of": precision_of, "tolerance": tolerance, "share": share},
            unlabelable_as=unlabelable_as,
            predicted_as_found=predicted_as_found,
        )
        require_size(m, int(np.count_nonzero(self._status != 1)))
        self._learn_checked()
        check = self._check_sequence.draw(m, asked, self._frozen(), self, alpha)
        if check.open:
            self._selection.hold(check.indices)
        else:
            self._check_closed(check)
        return check

    def _require_no_running(self) -> None:
        if self._running is not None:
            raise SufficeError(
                "the running check uses the whole error probability, so that there is none for other checks; leave "
                "check_share out to check on demand"
            )

    def _known_classes(self) -> list[Any]:
        """Classes of the model, and classes of labels that it has not learned yet."""
        known = self._bare_model().classes_.tolist()
        return list(dict.fromkeys([*known, *np.asarray(as_labels(list(self.labels.values()))).tolist()]))

    def _frozen(self) -> FrozenModel:
        unlabelled = np.flatnonzero(self._status != 1)
        with one_thread():
            fitted = self._backend.fitted()
            predictions = self._predictions(fitted, unlabelled) if len(unlabelled) else np.zeros(0)
            model = self._prepared.joined(fitted)
        return FrozenModel(
            model=model,
            name=f"{self._about['model']} at {len(self._labels)} labels",
            n_labelled=len(self._labels),
            version=self._version,
            labelled=tuple(self._labels),
            unlabelled=unlabelled,
            skipped=frozenset(self.skipped),
            predictions=np.asarray(predictions),
        )

    def _predictions(self, fitted: Any, items: Indices) -> Any:
        """Predictions for some items; for a pool on disk in batches."""
        if not isinstance(self._X, DiskRows):
            return fitted.predict(self._X[items])
        # A check stores the prediction of every unlabelled item as a Python object.
        require_memory(_CHECKED_ITEM * len(items), f"a check of {len(items):,} unlabelled items")
        size = self._X.batch_rows
        return np.concatenate([fitted.predict(self._X[items[k : k + size]]) for k in range(0, len(items), size)])

    @property
    def checks(self) -> list[ModelCheck]:
        """All checks in the order in which they were drawn, aborted ones included."""
        return list(self._check_sequence.checks)

    @property
    def guarantee(self) -> ModelGuarantee | None:
        """The newest guarantee, and whether it covers the present model; None if there is none."""
        check = self._check_sequence.newest
        if check is None or check.guarantee is None:
            return None
        return ModelGuarantee(check.guarantee, check, check.version == self._version)

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
            The least size such that it and every larger check succeed with that probability; None if every item must be
            labelled.

        Raises:
            SufficeError: The model has no label yet, or nothing is left to label.
            InvalidValueError: The model predicts numbers and no tolerance is given, or an argument is out of range.
        """
        target = real(at_most, "at_most", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
        pool, expected = self._checkable(), self._wrong_share(tolerance).value
        alpha = self._check_sequence.next_alpha()
        return plan(target, expected, pool, alpha=alpha, probability=probability).labels

    @one_at_a_time
    def guarantee_plan(
        self, at_most: float, *, tolerance: float | None = None, probability: float = 0.8
    ) -> GuaranteePlan:
        """Plan of labels and check that guarantee at most a given share of wrong predictions at the least cost.

        The plan is computed from :meth:`error_estimate` and its reducible part. The reducible part is the decrease of
        the error that the model expects if its parameters were known, calibrated like the error. See
        :func:`suffice.checks.plan_total`. The plan is an estimate, and its accuracy increases with the number of random
        labels. It never expects a smaller share of wrong predictions than :math:`1 / (2 (n + 1))` at :math:`n` labels,
        or :math:`3 / n` while only one class is known.

        Args:
            at_most: The share of wrong predictions to guarantee.
            tolerance: For numbers: a prediction is wrong if it is off by more than this.
            probability: Requested probability that the check succeeds.

        Raises:
            SufficeError: The model has no label yet, or nothing is left to label.
            InvalidValueError: The model predicts numbers and no tolerance is given, or an argument is out of range.

        Examples:
            >>> import numpy as np
            >>> from suffice.models import BayesianLogistic
            >>> rng = np.random.default_rng(0)
            >>> X = rng.normal(size=(2000, 5)); y = np.where(X[:, 0] + X[:, 1] > 0.0, "right", "left")
            >>> learner = ActiveLearner(BayesianLogistic(), X)
            >>> verdict = learner.tell(learner.ask(10), y[learner.ask(10)])
            >>> while not (plan := learner.guarantee_plan(at_most=0.1)).check_now:
            ...     i = learner.ask()
            ...     verdict = learner.tell(i, y[i])
            >>> check = learner.check(plan.check_size)
            >>> check.tell(y[check.indices]).value <= 0.1
            True
        """
        target = real(at_most, "at_most", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
        return self._planned(target, self._wrong_share(tolerance), tolerance, probability)

    def _planned(
        self,
        target: float,
        found: CalibratedError,
        tolerance: float | None,
        probability: float = 0.8,
        *,
        check_advised: bool = False,
    ) -> GuaranteePlan:
        """The plan for an estimate of the error."""
        return plan_from_estimate(
            target,
            found,
            reducible=self._reducible(tolerance),
            n_labelled=len(self.labelled),
            pool=self._checkable(),
            alpha=self._check_sequence.next_alpha(),
            one_class=self._of_classes and len(self._known_classes()) < 2,
            probability=probability,
            check_advised=check_advised,
        )

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
            SufficeError: The model has no label yet, or nothing is left to label.
            InvalidValueError: The model predicts numbers or does not know the class, or an argument is out of range.

        Examples:
            >>> import numpy as np
            >>> from suffice.models import BayesianLogistic
            >>> X = np.random.default_rng(0).normal(size=(3000, 2)); y = np.where(X[:, 0] > 1.3, "spam", "ham")
            >>> learner = ActiveLearner(BayesianLogistic(), X)
            >>> for _ in range(10):
            ...     i = learner.ask(10)
            ...     verdict = learner.tell(i, y[i])
            >>> learner.recall_plan("spam", at_least=0.9).labels
            615
            >>> learner.recall_plan("spam", at_least=0.9, predicted_as_found=False).labels > 2500
            True
        """
        pool = self._checkable()
        if not self._of_classes:
            raise InvalidValueError("recall_plan is for classes, and the model predicts numbers; use guarantee_plan")
        classes = self._known_classes()
        if class_name not in classes:
            known = ", ".join(repr(each) for each in classes[:10])
            raise InvalidValueError(
                f"class_name must be one of the classes that the model knows, {known}, not {class_name!r}"
            )
        real(at_least, "at_least", "above 0 and at most 1", lambda x: 0.0 < x <= 1.0)
        rest, model = self._some_unlabelled(REST_ITEMS), self._bare_model()
        with one_thread():
            p = model.predict_proba(self._X[rest])
            ratio = self._random_losses.class_ratio(model, self._labels, self._random_items, class_name)
        learned = model.classes_.tolist()
        column = p[:, learned.index(class_name)] if class_name in learned else np.zeros(len(rest))
        chosen = np.zeros(len(rest), dtype=bool)
        if predicted_as_found and class_name in learned:
            chosen = p.argmax(axis=1) == learned.index(class_name)
        scale = pool / max(1, len(rest))
        predicted = min(pool, round(scale * int(chosen.sum())))
        right = min(predicted, round(scale * ratio * float(column[chosen].sum())))
        missed = min(pool - predicted, MOST_MISSED, round(scale * ratio * float(column[~chosen].sum())))
        found = sum(bool(label == class_name) for label in self.labels.values())
        alpha = self._check_sequence.next_alpha()
        return plan_recall(
            at_least, found, missed, pool, predicted=predicted, right=right, alpha=alpha, probability=probability
        )

    def _checkable(self) -> int:
        """Number of items from which a check is drawn."""
        self._require_no_running()
        self._require_begun()
        pool = int(np.count_nonzero(self._status != 1))
        if not pool:
            raise SufficeError("every item of the pool is labelled; there is nothing left to check")
        return pool

    def _wrong_share(self, tolerance: float | None) -> CalibratedError:
        """The estimated share of wrong predictions, for classes and for numbers."""
        if tolerance is None and not self._of_classes:
            raise InvalidValueError("the model predicts numbers: give tolerance, the largest error that is not wrong")
        return self.error_estimate(tolerance=tolerance)

    def _reducible(self, tolerance: float | None) -> float:
        """The part of the share of wrong predictions that more labels can remove, as estimated by the model."""
        rest = self._some_unlabelled(_REDUCIBLE_ITEMS)
        with one_thread():
            found = self._backend.expected_errors(rest) if len(rest) else None
        if found is None:
            return 0.0
        total, reducible = found
        if tolerance is None:
            return float(reducible.mean())
        return float((share_beyond(tolerance, total) - share_beyond(tolerance, total - reducible)).mean())

    def _usable_labels(self, labels: Any) -> list[Any]:
        """Labels as plain values; raises InvalidValueError for one that cannot be learned."""
        given = np.atleast_1d(np.asarray(as_labels(labels)))
        self._backend.check(given)
        return list(given.tolist())

    @one_at_a_time
    def _check_closed(self, check: ModelCheck) -> None:
        """Receive the labels of a check that is complete or aborted."""
        self._selection.hold(np.zeros(0, dtype=np.intp))
        if check.aborted:
            items = [item for item in check.record.items if item in check.record.labels]
            try:
                self._learn_random(items, check)
            except BaseException:
                self._selection.hold(check.indices)
                raise
        elif check.record.labels:
            self._take_checked(check)
        missing = np.array(sorted(check.record.unlabelable), dtype=np.intp)
        if len(missing):
            self._skip(missing)

    def _take_checked(self, check: ModelCheck) -> None:
        """Mark items as labelled, and store their labels until labelling continues."""
        labelled = np.array(list(check.record.labels), dtype=np.intp)
        self._status[labelled] = 1
        self._unlearned = check
        self.verdict = self._exhausted(
            self._judged(check.guarantee if check.version == self._version else None) or self.verdict
        )

    def _judged(self, found: Guarantee | None) -> Verdict | None:
        """Verdict of the rule on a guarantee of the present model; None if it does not use guarantees.

        A copy of the rule is used, because no labels were learned: only the guarantee is new in the last step.
        """
        proven = proven_fields(self._rule, found)
        if proven is None:
            return None
        steps = self.trace().steps() if self.verdicts else []
        step = replace(steps[-1] if steps else Step(n_labelled=self._begun), n_labelled=len(self.labelled), **proven)
        try:
            return self._rule.copy().observe(step)
        except MissingInputError:
            # There is no step yet for other rules in a composed rule.
            return None

    def _correct_in_check(self, item: int, given: "np.typing.NDArray[Any]") -> bool:
        """Correct an answer of a check that is not learned yet; False if the item has no such answer."""
        check = self._check_sequence.open or self._unlearned
        if check is None or item not in check.record.items or item in check.record.pending:
            return False
        (label,) = self._usable_labels(given)
        if check is self._unlearned:
            self._check_sequence.answered(item, label)
            self._take_checked(check)
        else:
            check.correct(item, label)
        return True

    def _correct_in_running(self, item: int, given: "np.typing.NDArray[Any]") -> bool:
        """Correct a label of the running check; False if the item is not in its sample."""
        running = self._running
        if running is None or item not in running.labels:
            return False
        (label,) = self._usable_labels(given)
        running.labels[item] = label
        running.answered(item, label)
        if running.evaluations and running.evaluations[-1].frozen.version == self._version:
            self.verdict = self._exhausted(self._judged(running.evaluations[-1].guarantee) or self.verdict)
        return True

    def _learn_checked(self) -> None:
        """Learn the labels of a complete check as random labels, because labelling continues."""
        check, self._unlearned = self._unlearned, None
        if check is None:
            return
        try:
            self._learn_random([item for item in check.record.items if item in check.record.labels], check)
        except BaseException:
            self._unlearned = check
            raise

    def _learn_random(self, items: list[int], check: ModelCheck) -> None:
        """Learn labels of a check as one step; those that were drawn at random count as such."""
        if not items:
            return
        drawn = np.array(check.random_prefix, dtype=np.intp)
        labels = np.asarray(as_labels([check.record.labels[item] for item in items]))
        if len(drawn):
            self._backend.mark_random(drawn)
        with one_thread():
            self._tell(np.array(items, dtype=np.intp), labels, drawn)
        # Some of them may have been skipped in an earlier check.
        for item in items:
            self._check_sequence.answered(item, check.record.labels[item])

    @one_at_a_time
    def progress(self) -> dict[str, Any]:
        """State for :meth:`resume`: plain values, arrays, and objects of this package.

        The values are not copied; save them before the next label.

        Raises:
            SufficeError: The learner draws random items or has checks; their state is not part of it.
        """
        if self._selection.draws_at_random or self._running is not None or self._check_sequence.checks:
            raise SufficeError(
                "progress is for a learner with random_share=0.0 and without checks; this one has others"
            )
        return {
            "attributes": {name: value for name, value in self.__dict__.items() if name not in _FIXED_ATTRIBUTES},
            "rule": self._rule.state_dict(),
            "count": self._selection.count,
            "backend": self._backend.progress(),
        }

    @one_at_a_time
    def resume(self, progress: Mapping[str, Any]) -> None:
        """Continue from the state of another learner. Further labels give exactly the same results, to the last bit.

        Args:
            progress: What :meth:`progress` returned, of a learner with the same arguments. It belongs to this learner
                from now on.

        Raises:
            InvalidValueError: The saved rule cannot be restored.

        Examples:
            >>> import numpy as np
            >>> from copy import deepcopy
            >>> from suffice.models import BayesianRidge
            >>> X = np.random.default_rng(0).normal(size=(50, 2)); y = X @ [1.0, 2.0]
            >>> first = ActiveLearner(BayesianRidge(), X, acquisition="order")
            >>> verdicts = [first.tell(item, y[item]) for item in range(20)]
            >>> second = ActiveLearner(BayesianRidge(), X, acquisition="order")
            >>> second.resume(deepcopy(first.progress()))
            >>> first.tell(20, y[20]) == second.tell(20, y[20])
            True
        """
        self.__dict__.update(progress["attributes"])
        self._rule = criterion_from_dict(progress["rule"])
        self._selection.resume(progress["count"])
        self._backend.resume(progress["backend"])

    @one_at_a_time
    def trace(self) -> Trace:
        """The run so far. If steps differ in size, ``indices`` contains all items in order."""
        items = np.array(list(self._labels), dtype=np.intp)
        begun = self._begun or len(items)
        first, rest = items[:begun], items[begun:]
        sizes = np.array(self._sizes, dtype=np.intp)
        square = len(set(self._sizes)) == 1 and self._sizes[0] > 1
        return Trace(
            initial=first,
            indices=rest.reshape(len(sizes), -1) if square else rest,
            n_labelled=self._begun + np.cumsum(sizes),
            kl_new_old=np.array(self._new_old),
            kl_old_new=np.array(self._old_new),
            error=np.zeros(0),
            relearned=tuple(self._relearned),
            estimated=self._estimated,
            about=self._about,
            random_items=np.array(self._random_items, dtype=np.intp),
            measures={
                name: joined_rows([measured[name] for measured in self._measures])
                for name in (self._measures[0] if self._measures else ())
            },
        )

    def _which_random(self, items: Indices, random: Any) -> Indices:
        """The given items that were drawn at random."""
        if random is None:
            return np.asarray(items[[int(i) in self._drawn for i in items]])
        try:
            mask = np.broadcast_to(np.asarray(random, dtype=bool), items.shape)
        except ValueError:
            raise InvalidValueError(
                f"random must be True, False, or one of them for each of the {len(items)} items, not {random!r}"
            ) from None
        return np.asarray(items[mask])

    def _tell(self, items: Indices, given: "np.typing.NDArray[Any]", drawn: Indices) -> Verdict:
        if self._begun:
            if len(drawn):
                self._random_losses.predict(self._backend.judged_model(), self._X[drawn], drawn)
            result = self._backend.learn(items, given, together=True)
            self._version += 1
            self._note(items, given, drawn)
            for item in drawn:
                self._random_losses.label(int(item), self._labels[int(item)])
            self._selection.take(items)
            self._sizes.append(len(items))
            self._judge(StepResults.joined([result]), random=len(drawn) > 0)
        else:
            before = self._status[items].copy()
            self._note(items, given, drawn)
            try:
                self._begin()
            except BaseException:
                for item in items:
                    del self._labels[int(item)]
                del self._random_items[len(self._random_items) - len(drawn) :]
                self._status[items] = before
                raise
            self.verdict = self._exhausted(self._undecided())
        return self.verdict

    def _note(self, items: Indices, given: "np.typing.NDArray[Any]", drawn: Indices) -> None:
        self._status[items] = 1
        self._random_items.extend(int(i) for i in drawn)
        self._labels.update(zip((int(i) for i in items), given, strict=True))

    def _begin(self) -> None:
        """Start the model when there are enough labels."""
        if len(self._labels) < len(self._first) and self.left:
            self._backend.check(np.asarray(as_labels(list(self._labels.values()))))
            return
        items = np.array(list(self._labels), dtype=np.intp)
        self._backend.begin(items, np.asarray(as_labels(list(self._labels.values()))))
        self._selection.begin(items)
        self._begun = len(items)
        skipped = np.flatnonzero(self._status == 2)
        if len(skipped):
            self._backend.skip(skipped)

    def _judge(self, result: StepResults, *, random: bool) -> None:
        self._estimated = self._estimated or result.estimated
        self._measures.append({**result.measures, **self._counted()})
        self._new_old.append(float(result.kl_new_old[-1]))
        self._old_new.append(float(result.kl_old_new[-1]))
        history = self._backend.relearn() if self._backend.until_relearning() == 0 else None
        if "calibration" in self._used:
            # Only random labels change it, and leaving labels out is expensive.
            if random:
                model = self._backend.judged_model()
                self._calibration = self._random_losses.ratio(model, self._labels, self._random_items)
            self._measures[-1] = {**self._measures[-1], "calibration": np.array([self._calibration])}
        if history is not None:
            self._replaced(history)
        else:
            inputs = {name: values for name, values in self._measures[-1].items() if name in STEP_FIELDS}
            count = [self._begun + sum(self._sizes)]
            known = not math.isnan(self._new_old[-1])
            pair = (self._new_old[-1:], self._old_new[-1:]) if known else (None, None)
            step = Step.sequence(count, *pair, estimated=self._estimated, **inputs)[0]
            self.verdicts.append(self._rule.observe(step))
            self.verdict = self._exhausted(self.verdicts[-1])

    def _replaced(self, history: StepResults) -> None:
        """Replace the whole history, and apply the rule to it again."""
        self._rule.reset()
        self.verdicts = []
        if not len(history.kl_new_old):
            self.verdict = self._exhausted(self._undecided())
            return
        last = len(history.kl_new_old) - 1
        self._new_old[last], self._old_new[last] = float(history.kl_new_old[last]), float(history.kl_old_new[last])
        newest = {name: values[-1:] for name, values in history.measures.items()}
        self._measures[last] = {**self._measures[last], **newest}
        self._relearned.append(relearned(last, history, self._backend))
        self.verdicts = self._rule.observe_all(self.trace().steps())
        self.verdict = self._exhausted(self.verdicts[-1])

    def _counted(self) -> dict[str, Any]:
        """Fields that are counted, without the model, if the rule requires them."""
        counts: dict[str, Callable[[], Any]] = {
            "cost": lambda: float(self._costs[self.labelled].sum()),
            "seconds": lambda: self._clock() - self._since,
            "pool_size": lambda: self._size,
            "validation_labels": lambda: self._validated,
            "random_labels": lambda: self.random_labels,
            "classes_seen": lambda: len(set(self._labels.values())),
        }
        counted = {name: count() for name, count in counts.items() if name in self._used}
        if self._used & SCREENING_FIELDS:
            counted |= {name: values[-1] for name, values in self._screening_counts().items() if name in self._used}
        return {name: np.array([value]) for name, value in counted.items()}

    def _screening_counts(self) -> dict[str, Any]:
        """The numbers of found and of estimated relevant items after each label."""
        relevance = self._relevance(self._labels.values())
        random = set(self._random_items)
        return {
            "relevant_found": np.cumsum(relevance),
            "estimated_relevant": relevant_estimates(relevance, [item in random for item in self._labels], self._size),
        }

    def _recount(self) -> None:
        """Count the classes and the relevant items of all steps again, after a label was changed."""
        ends = self._begun + np.cumsum(np.array(self._sizes, dtype=np.intp))
        if self._used & SCREENING_FIELDS:
            counted = {name: values for name, values in self._screening_counts().items() if name in self._used}
            for number, end in enumerate(ends):
                again = {name: values[end - 1 : end] for name, values in counted.items()}
                self._measures[number] = {**self._measures[number], **again}
        if "classes_seen" in self._used:
            labels = np.asarray(as_labels(list(self._labels.values())))
            counts: Any = classes_seen(labels[:1], labels[1:, None])
            for number, end in enumerate(ends):
                self._measures[number] = {**self._measures[number], "classes_seen": counts[end - 2 : end - 1]}

    def _undecided(self) -> Verdict:
        n, wanted = len(self._labels), len(self._first)
        reason = (
            f"{n} of the {wanted} labels that the model starts from"
            if not self._begun
            else "the model has learned its first labels and chooses from here on"
        )
        return Verdict(
            stop=False, value=None, threshold=None, ready=False, reason=reason, rule="ActiveLearner", n_labelled=n
        )

    def _exhausted(self, verdict: Verdict) -> Verdict:
        """The verdict of the rule; a stop if the rule would go on but no items are left."""
        if self.left or verdict.stop:
            return verdict
        return Verdict(
            stop=True,
            value=verdict.value,
            threshold=verdict.threshold,
            ready=True,
            reason=f"every item of the pool is labelled or skipped; the rule itself: {verdict.reason}",
            rule="ActiveLearner",
            n_labelled=len(self.labelled),
            certificate=verdict.certificate,
        )


def _check_rng(seed: Any, stream: int = _CHECK_STREAM) -> np.random.Generator:
    """The random generator of checks. It is a separate stream, so that checks do not affect the choice of items."""
    if isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed.integers(0, 2**32, size=8))
    return np.random.default_rng([int(seed), stream])


def family_name(prepared: PreparedModel) -> str:
    """Name of the model family of a model, from :data:`suffice.models.factory.MODEL_FAMILIES`."""
    steps = [] if prepared.transform is None else [step for _, step in prepared.transform.steps]
    if any(isinstance(step, KernelFeatures) for step in steps):
        return "kernel"
    return "gp" if isinstance(prepared.model, GaussianProcess) else "ridge" if not steps else ""
