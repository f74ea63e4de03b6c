"""The active learning loop: ask for the most useful label, tell it, and get a verdict. It does no input or output."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.acquisition import Indices
from suffice.arguments import whole
from suffice.checks.random_source import CHECK_STREAM, RUNNING_STREAM, check_rng
from suffice.checks.registry import CheckRegistry, registered_items
from suffice.criteria import Criterion, LabelWorth, Verdict, criterion_from_dict
from suffice.criteria.base import require_rule
from suffice.deprecation import warn_deprecated
from suffice.engines.disk_rows import DiskRows, require_memory
from suffice.errors import InvalidTypeError, InvalidValueError, SufficeError
from suffice.learner.backend import ItemSelection, RunSettings, acquisition_and_share, backend_type, extended_order
from suffice.learner.learning_loop import CountedFields, LearnerView, LearningLoop
from suffice.learner.model_switch import NamedModel, learning_steps
from suffice.learner.more_rows import extended_pool
from suffice.learner.own_acquisition import (
    AcquisitionFunction,
    checked_function,
    function_name,
    own_acquisition,
    shown_acquisition,
)
from suffice.learner.pool_model import PoolRows
from suffice.learner.prepare import (
    checked_indices,
    final_estimator,
    first_items,
    generator,
    label_costs,
    number_type,
    pool_device,
    pool_rows,
    prepare,
    require_provided,
    seed_name,
    usable_may_miss,
    validation_set,
)
from suffice.learner.session_driver import SessionDriver
from suffice.learner.step_inputs import (
    CLASS_COUNT_FIELDS,
    COUNTED_FIELDS,
    SCREENING_FIELDS,
    StepInputs,
    StopSet,
    new_step_inputs,
    positive_class,
)
from suffice.models.inputs import SETS_OF_CLASSES, as_labels
from suffice.models.threads import SingleUse, one_at_a_time, one_thread
from suffice.saved_state import decoded_array, encoded_array, restored, sealed
from suffice.session.guarantee_rules import ErrorGuarantee, rules_of_type
from suffice.session.model_check import ModelCheck
from suffice.session.recorded_steps import DIVERGENCES
from suffice.session.refit_budget import checked_estimate_time
from suffice.session.running_check import RunningCheck, RunningSample
from suffice.session.session import Session
from suffice.session.session_labels import LABELLED, SAMPLED, UNLABELLED
from suffice.trace import Trace

# Bytes that a check needs for each unlabelled item.
_CHECKED_ITEM: Final = 150
_FORMAT: Final = "suffice-learner-1"
# Attributes about the last model that was given as an object. They stay when a name replaces it.
_OF_GIVEN_MODEL: Final = ("_given", "_given_name", "_compared_inputs", "_compares_plain")


class ActiveLearner(SessionDriver):
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
            the model, with its share of random labels; with ``positive``, it is ``"relevance"``. Or a function
            ``acquisition(model, X_candidates, labelled)`` that returns one number for each candidate: the largest are
            chosen, ``-inf`` excludes. ``model`` is the fitted model with its pipeline, ``X_candidates`` are rows in the
            form of ``X_pool``, and ``labelled`` is a :class:`suffice.learner.LabelledRows`. If it has an argument
            ``batch``, it is called once for each item of a batch, and ``batch`` has the rows of the batch so far.
        random_share: Share of the labels, 0 to 1, that are drawn at random from the unlabelled items instead. Such
            labels tell how good the model is on the others. Left out, it is 0 for an acquisition that is named, and the
            recommended share for a function.
        seed: Seed of all randomness. Left out, the picks are those of seed 0, and checks are drawn from fresh entropy:
            several learners do not draw the same check.
        initial: Items asked for before the model chooses: how many at random, or which.
        dtype: Number type that the pool is kept in; ``float32`` halves the memory. Networks compute in it anyway.
        device: torch device on which a Gaussian process or a logistic regression scores the pool, such as
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
            there is no running check, and :meth:`check` draws checks on demand. A running check uses the whole error
            probability of the items: there may be no other check of them, before or after it.
        positive: For screening: the class that is looked for. The acquisition ``"relevance"`` asks for the items with
            the largest probability of it; until the first one is found, for items at random. Rules such as
            :class:`suffice.RecallTest` require it.
        may_miss: For classes: a class, or several, that may be missed. Any other class that is known, by the labels or
            by the model, holds a stop back while it is rare and has fewer than 5 labels, until it is below 1 % of the
            items with 95 % probability; see :func:`suffice.session.standing_stop.scarce_class`. In a screening
            (``positive``) no class does.
        estimate_time: For estimators of scikit-learn: how often they may be fitted again to estimate their error, as a
            multiple of the fits of the learner; 0 for never. See :meth:`error_estimate`.
        checks: The registry that counts the checks of these items, see :class:`suffice.checks.CheckRegistry`. Give the
            same one to all learners and monitors of the same items: their checks share the error probability. Left out,
            the learner counts its own checks.
        earlier_checks: Instead of ``checks``: how many checks of these items were started before, by other objects. The
            next one has the number after them.
        clock: Seconds, for rules that limit time; they count from here.

    Attributes:
        verdict: The verdict, which agrees with :meth:`decision` without a target.
        rule_verdict: The verdict of the rule alone.
        verdicts: Verdicts of the rule for each step so far, with the current hyper-parameters.

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

    def __init__(  # noqa: PLR0913, PLR0915 - a learner has many settings, all but two by keyword
        self,
        model: Any,
        X_pool: Any,
        *,
        criterion: Criterion | None = None,
        acquisition: str | AcquisitionFunction | None = None,
        random_share: float | None = None,
        seed: int | None = None,
        initial: Any = 10,
        dtype: Any = np.float64,
        device: Any = None,
        client: Any = None,
        stop_set: StopSet | int | None = None,
        validation: tuple[Any, Any] | None = None,
        costs: Any = None,
        check_share: float | None = None,
        positive: Any = None,
        may_miss: Any = (),
        estimate_time: float = 1.0,
        checks: CheckRegistry | None = None,
        earlier_checks: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if criterion is not None:
            require_rule(criterion, "criterion")
        self._single_use = SingleUse()
        rng = generator(seed)
        rule = LabelWorth() if criterion is None else criterion
        pool, X_pool = X_pool, pool_rows(model, X_pool, client)
        self._prepared = prepare(model, X_pool)
        positive = self._checked_positive(positive)
        missed = usable_may_miss(may_miss, self._prepared)
        own = checked_function(acquisition, X_pool, device)
        name, share = acquisition_and_share(
            self._prepared.backend, acquisition, random_share, screening=positive is not None
        )
        place = pool_device(device, X_pool, self._prepared.backend, name)
        self._X = self._prepared.pool_inputs(X_pool, place)
        size = self._X.shape[0]
        refits = checked_estimate_time(estimate_time)
        registered = registered_items(checks, earlier_checks, X_pool)
        self._session = Session(
            size,
            rule,
            partial(check_rng, seed, CHECK_STREAM),
            positive=positive,
            estimate_time=refits,
            registered=registered,
            may_miss=missed,
        )
        self._rule = self._session.history.rule
        # The arguments that are not saved, for another model.
        self._not_saved: dict[str, Any] = {
            "X_pool": pool,
            "device": device,
            "client": client,
            "validation": validation,
            "seed": seed,
            "clock": clock,
        }
        if own is not None:
            self._not_saved["acquisition"] = own
        # Inputs for the comparison with other models: those before the pipeline, if they are numbers.
        plain = self._prepared.transform is not None and isinstance(X_pool, np.ndarray) and X_pool.dtype.kind in "fiu"
        self._compared_inputs, self._compares_plain = X_pool if plain else self._X, plain
        inputs = self._step_inputs(stop_set, validation, seed)
        first = first_items(initial, size, rng)
        settings = RunSettings(
            self._X,
            name,
            rng,
            dtype=number_type(dtype),
            expected=256,
            step_inputs=inputs,
            positive=positive,
            device=place,
        )
        with one_thread():
            backend = self._prepared.backend(self._prepared.model, settings)
        chooser = own_acquisition(own, X_pool, self._prepared, backend, self._labels_of)
        selection = ItemSelection(backend, size, share, rng, all_random=name == "random", own=chooser)
        started, self._clock = clock(), clock
        validated = 0 if inputs.validation is None else len(inputs.validation[1])
        self._started = started
        counted = CountedFields(self._used, self._session, label_costs(costs, size), validated, self._seconds)
        self._loop = LearningLoop(self._session, backend, selection, self._X, first, counted)
        self._about: dict[str, Any] = {
            "model": " ".join(repr(model).split()),
            "acquisition": shown_acquisition(own) or name,
            "seed": seed_name(seed),
        }
        if share > 0.0:
            self._about["random_share"] = share
        if positive is not None:
            self._about["positive"] = positive
        at_random = isinstance(initial, int | np.integer)
        # Items that were drawn at random: the requested items.
        self._drawn = {int(i) for i in first} if at_random else set()
        if check_share is not None:
            self._session.running = self._new_running_sample(check_share, seed)
            self._session.labels.sampled = self._session.running.labels
        self._random_seed = isinstance(seed, np.random.Generator)
        # The complete check whose labels are not learned yet.
        self._unlearned: ModelCheck | None = None
        # The last model that was given as an object, and the present one, if it was given by name since.
        self._given, self._given_name = self._prepared, self._about["model"]
        self._named: NamedModel | None = None
        self._arguments: dict[str, Any] = {
            "rule": rule.state_dict(),
            "acquisition": acquisition if own is None else None,
            "random_share": random_share,
            "seed": int(seed) if isinstance(seed, int | np.integer) else None,
            "initial": int(initial) if at_random else first.tolist(),
            "dtype": np.dtype(settings.dtype).name,
            "stop_set": None if inputs.stop is None else inputs.stop.tolist(),
            "costs": None if costs is None else encoded_array(np.asarray(costs, dtype=np.float64)),
            "check_share": check_share,
            "positive": positive,
            "may_miss": list(missed),
            "estimate_time": refits,
            # How a stop set is drawn again for an extended pool: 0 stands for the usual size, None for a given set.
            "stop_set_size": None if isinstance(stop_set, StopSet) else int(stop_set or 0),
        }
        # Numbers of items before each extension of the pool.
        self._extended: list[int] = []

    def _checked_positive(self, positive: Any) -> Any:
        """The positive class as a plain value, or None."""
        plain = positive_class(positive)
        if plain is not None and self._prepared.backend.task != "classification":
            raise InvalidValueError(f"positive is a class, {positive!r}, and the model predicts numbers; leave it out")
        return plain

    def _labels_of(self, items: Indices) -> NDArray[Any]:
        """The labels of items that the model has learned."""
        learned = self._session.labels.learned
        return np.asarray(as_labels([learned[item] for item in items.tolist()]))

    def _seconds(self) -> float:
        """Time since the start, for rules that limit it."""
        return self._clock() - self._started

    def _step_inputs(self, stop_set: Any, validation: Any, seed: Any) -> StepInputs:
        """The fields that the rule uses. Other fields are not computed."""
        held_out = validation_set(self._prepared, validation, self._X.shape[1])
        validated, screening = held_out is not None, self._session.positive is not None
        require_provided(self._rule.needs(), self._prepared.model, validated=validated, screening=screening)
        provided = self._prepared.backend.provided_fields(validated=validated, screening=screening)
        self._used = self._rule.reads() & provided
        counted = CLASS_COUNT_FIELDS | SCREENING_FIELDS
        names = self._used - DIVERGENCES - counted - (COUNTED_FIELDS - self._rule.needs())
        number = int(seed) if isinstance(seed, int | np.integer) else 0
        return new_step_inputs(names, self._session.labels.size, stop_set, seed=number, validation=held_out)

    def _new_running_sample(self, share: Any, seed: Any) -> RunningSample:
        wanted = rules_of_type(self._rule, ErrorGuarantee)
        given = [rule.tolerance for rule in wanted] + [rule.tolerance for rule in rules_of_type(self._rule, LabelWorth)]
        tolerances = [tolerance for tolerance in given if tolerance is not None]
        classes = self._prepared.backend.task == "classification"
        if not classes and not tolerances:
            raise InvalidValueError(
                "check_share for numbers needs a rule with a tolerance, such as ErrorGuarantee(at_most, tolerance=...)"
            )
        confidence = max((rule.confidence for rule in wanted), default=0.95)
        rng = check_rng(seed, RUNNING_STREAM)
        self._about["check_share"] = float(share) if isinstance(share, float) else share
        tolerance = None if classes else min(tolerances)
        sample = RunningSample.start(self._X.shape[0], share, confidence, tolerance, rng)
        self._session.checks.registered.start_running(sample.grid.alpha)
        return sample

    def __repr__(self) -> str:
        return f"ActiveLearner({self._about['model']}: {len(self._session.labels.learned)} labelled, {self.left} left)"

    def _no_model(self) -> str:
        return f"the model has no label yet: {len(self._loop.first)} are wanted before it learns"

    def _view(self) -> LearnerView | None:
        if not self._loop.begun:
            return None
        compared, name = self._compared_inputs, str(self._about["model"])
        return LearnerView(self._loop, self._prepared, self._X, compared, name, self._predictions)

    @property
    def _function_name(self) -> str | None:
        """The name of the acquisition function of the user; None if the acquisition has a name."""
        function = self._not_saved.get("acquisition")
        return None if function is None else function_name(function)

    @property
    def labelled(self) -> list[int]:
        """Labelled items in the order of their labels."""
        return list(self.labels)

    @property
    def skipped(self) -> list[int]:
        """Skipped items."""
        return self._session.labels.skipped

    @property
    def random_items(self) -> list[int]:
        """Labelled items that were drawn at random from the unlabelled ones, in the order of their labels."""
        return list(self._session.labels.random)

    @property
    def model(self) -> Any:
        """A fitted copy of the model for predictions, with its pipeline if there is one."""
        self._required_view()
        with one_thread():
            return self._prepared.joined(self._loop.backend.fitted())

    @property
    def current_model(self) -> Any:
        """The model of :attr:`model` without fitting it: it shares the posterior of the learner.

        Use it to predict, do not change it, and do not keep it: it is valid until the next label.
        """
        self._required_view()
        return self._prepared.joined(self._loop.backend.current_model())

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
        labels, check = self._session.labels, self._session.checks.open
        if not labels.left:
            raise SufficeError("every item of the pool is labelled or skipped; there is nothing left to ask for")
        if check is not None and labels.left == np.sum(labels.status[check.indices] == UNLABELLED):
            raise SufficeError("every item that is left belongs to the open check; tell its labels with check.tell")
        if not self._loop.begun:
            first = self._loop.first
            waiting = first[labels.status[first] == UNLABELLED]
            others = np.flatnonzero(labels.status == UNLABELLED)
            rest = others[~np.isin(others, waiting)]
            return np.append(waiting, rest).astype(np.intp)[:size]
        with one_thread():
            running = self._session.running
            return self._picked(size) if running is None else self._picked_and_checked(size, running)

    def _picked(self, size: int) -> Indices:
        """The next items to learn."""
        selection = self._loop.selection
        while True:
            picks = selection.propose(1) if size == 1 else selection.batch(size)
            own = self._session.labels.status[picks.indices] == SAMPLED
            if not own.any():
                break
            # Items of the running check that the learner chooses are learned, and are removed from the sample.
            items = picks.indices[own]
            self._leave_sample(items, picks.indices[own & picks.random])
            self._settled()
        self._drawn.update(picks.indices[picks.random].tolist())
        return np.array(picks.indices)

    def _picked_and_checked(self, size: int, running: RunningSample) -> Indices:
        """The next items to learn, followed by the next items of the running check."""
        number = running.turns(size, len(self.labelled) - self._loop.record.begun)
        picked = self._picked(size - number) if number < size else np.zeros(0, dtype=np.intp)
        chosen = set(picked.tolist())
        sampled = running.next_items(size - len(picked), self._session.labels.status, chosen)
        running.offered = (running.offered - chosen) | set(sampled)
        return np.concatenate([picked, np.array(sampled, dtype=np.intp)])

    def _leave_sample(self, items: Indices, drawn: Indices, labels: Any = None) -> None:
        """Learn items of the running check that were chosen, with their labels."""
        running = self._session.running
        assert running is not None
        given = [running.labels[item] for item in items.tolist()] if labels is None else list(labels)
        if self._loop.selection.draws_at_random:
            self._loop.mark_random(drawn)
        removed = {item: running.labels.pop(item) for item in items.tolist()}
        try:
            self._loop.learn(items, np.asarray(as_labels(given)), drawn)
        except BaseException:
            running.labels.update(removed)
            self._session.labels.mark(items, SAMPLED)
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
            The verdict, which is also the attribute ``verdict``.

        Raises:
            InvalidValueError: A label that cannot be used, or an item that has one: nothing is changed.
        """
        items = checked_indices(indices, self._session.labels.size, "indices")
        given = np.atleast_1d(np.asarray(as_labels(labels)))
        if given.shape != items.shape:
            raise InvalidValueError(
                f"{len(items)} items came with labels of shape {given.shape}; one label for each is needed"
                + (f"; {SETS_OF_CLASSES}" if given.ndim == 2 and given.shape[1] > 1 else "")
            )
        labelled = items[self._session.labels.status[items] == LABELLED]
        if len(labelled):
            raise InvalidValueError(
                f"item {labelled[0]} has a label already; to change it, call correct({labelled[0]}, label)"
            )
        self._session.checks.require_not_in_open(items.tolist(), "tell")
        drawn = self._which_random(items, random)
        # If only the initial labels are random, hyper-parameters are learned as in earlier versions.
        marked = self._loop.selection.draws_at_random or random is not None
        if self._session.running is not None:
            return self._tell_running(self._session.running, items, given, drawn, marked=marked)
        if self._unlearned is not None:
            self._loop.backend.check(given)
            self._learn_checked()
        if marked:
            self._loop.mark_random(drawn)
        with one_thread():
            self._loop.learn(items, given, drawn)
        # An item that could not be labelled in a check may have a label now.
        for item, label in zip(items.tolist(), given.tolist(), strict=True):
            self._session.checks.answered(item, label)
        return self._settled()

    def _tell_running(
        self, running: RunningSample, items: Indices, given: NDArray[Any], drawn: Indices, *, marked: bool
    ) -> Verdict:
        """Learn labels, except those of the running check, which are stored separately."""
        self._loop.backend.check(given)
        status = self._session.labels.status
        sampled = np.array([item in running.offered for item in items.tolist()], dtype=bool)
        # The caller chose these items, so they are removed from the sample.
        again = ~sampled & (status[items] == SAMPLED)
        with one_thread():
            if again.any():
                self._leave_sample(items[again], drawn[np.isin(drawn, items[again])], given[again])
            rest = ~sampled & ~again
            if rest.any():
                others = drawn[np.isin(drawn, items[rest])]
                if marked:
                    self._loop.mark_random(others)
                self._loop.learn(items[rest], given[rest], others)
        for item, label in zip(items[~sampled].tolist(), given[~sampled].tolist(), strict=True):
            running.answered(item, label)
        for item, label in zip(items[sampled].tolist(), given[sampled].tolist(), strict=True):
            running.labels[item] = label
            running.offered.discard(item)
            running.asked += 1
        self._session.labels.mark(items[sampled], SAMPLED)
        self._evaluate_running(running)
        return self._settled()

    def _evaluate_running(self, running: RunningSample) -> None:
        """Compute the bound of the running check if it is due, and apply the rule to it."""
        while (view := self._view()) is not None and (items := running.due(self._session.labels.status)) is not None:
            evaluation = running.evaluate(items, self._session.frozen(view))
            self._session.judge_guarantee(evaluation.guarantee)

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
            >>> learner = ActiveLearner(BayesianLogistic(), X, check_share=0.2, seed=0)
            >>> while len(learner.labelled) < 200:
            ...     i = learner.ask()
            ...     verdict = learner.tell(i, y[i])
            >>> print(learner.running_check)
            At most 13 % of the predictions for the 820 unlabelled items are wrong (95 % confidence). This is about the
            model at 150 labels, not the current one. The next evaluation is at a sample of 60; it has 33 now.
        """
        running = self._session.running
        return None if running is None else running.state(self._session.labels.status, self._session.labels.version)

    @one_at_a_time
    def skip(self, indices: Any) -> Verdict:
        """Never request these items again. Their labels can still be passed to :meth:`tell` later.

        Returns:
            The verdict: stop if no items are left.
        """
        items = checked_indices(indices, self._session.labels.size, "indices")
        labelled = items[np.isin(self._session.labels.status[items], (LABELLED, SAMPLED))]
        if len(labelled):
            raise InvalidValueError(f"item {labelled[0]} has a label; only items without one can be skipped")
        self._session.checks.require_not_in_open(items.tolist(), "cannot_label")
        self._loop.skip(items)
        running = self._session.running
        if running is not None:
            # An item of the running check that cannot be labelled counts as wrong.
            running.asked += len(running.offered.intersection(items.tolist()))
            running.offered -= set(items.tolist())
            self._evaluate_running(running)
        return self._settled()

    @one_at_a_time
    def correct(self, index: Any, label: Any) -> Verdict:
        """Change the label of an item in the whole history: all steps are computed and judged again.

        Some records of earlier steps do not change: for a classifier all records except divergences (predictions for
        selected items, pool and stop set, train error), and for any model the recent gain. A network learns the
        corrected label like a new label, and the inputs of the rule for earlier rounds do not change. The guarantee of
        a check that contains the item is computed again, at the same error probability.

        Returns:
            The verdict.

        Raises:
            InvalidValueError: The item has no label, or the new one cannot be used: nothing is changed.
        """
        items = checked_indices(index, self._session.labels.size, "index")
        given = np.atleast_1d(np.asarray(as_labels(label)))
        if len(items) != 1 or given.shape != (1,):
            raise InvalidValueError("correct takes one item and its label at a time")
        item, label = int(items[0]), given[0]
        learned = item in self._session.labels.learned
        if not learned and (self._correct_in_check(item, given) or self._correct_in_running(item, given)):
            return self._settled()
        if not learned:
            raise InvalidValueError(f"item {item} has no label to correct; tell({item}, label) gives it one")
        self._loop.backend.check(given)
        with one_thread():
            self._loop.correct(item, label)
        plain = given.tolist()[0]
        self._session.checks.answered(item, plain)
        if self._unlearned is not None and item in self._unlearned.record.items:
            self._take_checked(self._unlearned)
        if self._session.running is not None:
            self._session.running.answered(item, plain)
        return self._settled()

    def _correct_in_check(self, item: int, given: NDArray[Any]) -> bool:
        """Correct an answer of a check that is not learned yet; False if the item has no such answer."""
        check = self._session.checks.open or self._unlearned
        if check is None or item not in check.record.items or item in check.record.pending:
            return False
        (label,) = self._usable_labels(given)
        if check is self._unlearned:
            self._session.checks.answered(item, label)
            self._take_checked(check)
        else:
            check.correct(item, label)
        return True

    def _correct_in_running(self, item: int, given: NDArray[Any]) -> bool:
        """Correct a label of the running check; False if the item is not in its sample."""
        running = self._session.running
        if running is None or item not in running.labels:
            return False
        (label,) = self._usable_labels(given)
        running.labels[item] = label
        running.answered(item, label)
        if running.evaluations and running.evaluations[-1].frozen.version == self._session.labels.version:
            self._session.judge_guarantee(running.evaluations[-1].guarantee)
        return True

    def _draw_check(self, m: int | None, asked: dict[str, Any]) -> ModelCheck:
        # The arguments are validated before labels of an earlier check are learned.
        self._session.validate_check(self._required_view(), m, asked)
        self._learn_checked()
        check = self._session.check(self._required_view(), m, self, asked)
        if check.open:
            self._loop.selection.hold(check.indices)
        else:
            self._check_closed(check)
        return check

    def _predictions(self, fitted: Any, items: Indices) -> Any:
        """Predictions for some items; for a pool on disk in batches."""
        if not isinstance(self._X, DiskRows):
            return fitted.predict(self._X[items])
        # A check stores the prediction of every unlabelled item as a Python object.
        require_memory(_CHECKED_ITEM * len(items), f"a check of {len(items):,} unlabelled items")
        size = self._X.batch_rows
        return np.concatenate([fitted.predict(self._X[items[k : k + size]]) for k in range(0, len(items), size)])

    def _usable_labels(self, labels: Any) -> list[Any]:
        """Labels as plain values; raises InvalidValueError for one that cannot be learned."""
        given = np.atleast_1d(np.asarray(as_labels(labels)))
        self._loop.backend.check(given)
        return list(given.tolist())

    def _check_extended(self, check: ModelCheck) -> None:
        """Do not choose the items that a sequential check needs."""
        self._loop.selection.hold(check.indices)

    @one_at_a_time
    def _check_closed(self, check: ModelCheck) -> None:
        """Receive the labels of a check that is complete or aborted."""
        self._loop.selection.hold(np.zeros(0, dtype=np.intp))
        if check.aborted:
            try:
                self._learn_random(check)
            except BaseException:
                self._loop.selection.hold(check.indices)
                raise
        elif check.record.labels:
            self._take_checked(check)
        missing = np.array(sorted(check.record.unlabelable), dtype=np.intp)
        if len(missing):
            self._loop.skip(missing)
        self._settled()

    def _take_checked(self, check: ModelCheck) -> None:
        """Mark items as labelled, and store their labels until labelling continues."""
        labels = self._session.labels
        labels.checked, labels.checked_random = {}, []
        # A sequential check counts labels that were given outside its order; these are learned already.
        new = {item: label for item, label in check.record.labels.items() if item not in labels.learned}
        labels.add_checked(new, [item for item in check.random_prefix if item in new])
        self._unlearned = check
        self._session.judge_guarantee(check.guarantee if check.version == self._session.labels.version else None)

    def _learn_checked(self) -> None:
        """Learn the labels of a complete check as random labels, because labelling continues."""
        check, self._unlearned = self._unlearned, None
        if check is None:
            return
        try:
            self._learn_random(check)
        except BaseException:
            self._unlearned = check
            raise

    def _learn_random(self, check: ModelCheck) -> None:
        """Learn labels of a check as one step; those that were drawn at random count as such."""
        # A sequential check counts labels that were given outside its order; these are learned already.
        new = check.record.labels.keys() - self._session.labels.learned.keys()
        items = [item for item in check.record.items if item in new]
        if not items:
            return
        drawn = np.array([item for item in check.random_prefix if item in new], dtype=np.intp)
        labels = np.asarray(as_labels([check.record.labels[item] for item in items]))
        self._loop.mark_random(drawn)
        with one_thread():
            self._loop.learn(np.array(items, dtype=np.intp), labels, drawn)
        # Some of them may have been skipped in an earlier check.
        for item in items:
            self._session.checks.answered(item, check.record.labels[item])
        self._settled()

    @one_at_a_time
    def trace(self) -> Trace:
        """The run so far. If steps differ in size, ``indices`` contains all items in order."""
        record, learned = self._loop.record, self._session.labels.learned
        items = np.array(list(learned), dtype=np.intp)
        begun = record.begun or len(items)
        square = len(set(record.sizes)) == 1 and record.sizes[0] > 1
        return Trace(
            initial=items[:begun],
            indices=items[begun:].reshape(len(record.sizes), -1) if square else items[begun:],
            error=np.zeros(0),
            about=self._about,
            random_items=np.array(self._session.labels.random, dtype=np.intp),
            **record.columns(),
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

    # Another model.

    @one_at_a_time
    def switch(self, model: Any) -> Verdict:
        """Replace the model; the new one learns all labels so far, in the same steps.

        Labels, random labels, skipped items, costs and the time that a rule counts stay. The rule judges all steps
        again, with the new model. A guarantee of an earlier check is about the model that it has checked, and does not
        cover the new one; its error probability stays spent. Labels of a complete check are learned. An estimator that
        is fitted again at each step learns them in larger steps, as in a project.

        Args:
            model: Another model, as for :class:`ActiveLearner`; or the name of a family of
                :data:`suffice.models.factory.MODEL_FAMILIES`, such as the name of the better model of a decision.

        Returns:
            The verdict of the rule.

        Raises:
            InvalidValueError: The model has another task, or its name is not known: nothing is changed.
            InvalidTypeError: It is no model.
            MissingInputError: The rule requires a field that a loop with this model does not provide.
            SufficeError: A check is open, or there is a running check.

        Examples:
            >>> import numpy as np
            >>> import suffice as sf
            >>> X = np.random.default_rng(0).normal(size=(400, 2)); y = np.where((X**2).sum(axis=1) < 1.4, "in", "out")
            >>> learner = sf.ActiveLearner(sf.models.BayesianLogistic(), X, seed=0)
            >>> while len(learner.labelled) < 110:
            ...     i = learner.ask()
            ...     verdict = learner.tell(i, y[i])
            >>> better = learner.decision().alternative
            >>> better.clear, better.error < better.present / 2
            (True, True)
            >>> verdict = learner.switch(better.name)
            >>> len(learner.labelled), bool((learner.model.predict(X) == y).mean() > 0.9)
            (110, True)
        """
        if self._session.running is not None:
            raise SufficeError(
                "the running check has begun with the current model, which cannot be replaced; start a new learner "
                "with the other model"
            )
        self._session.require_no_open_check()
        before = dict(self.__dict__)
        named = NamedModel.beside(model, self._given) if isinstance(model, str) else None
        try:
            self._replace_model(model if named is None else self._made(named), named)
            self._learn_labels_of(before)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self._settled()

    # A growing pool.

    @one_at_a_time
    def extend(self, X_new: Any, *, costs: Any = None) -> Indices:
        """Add items to the pool, after the present ones, whose indices stay.

        The model learns all labels again, in the same steps, and the rule judges these again with the larger pool, as
        after :meth:`switch`: an estimator that is fitted again at each step learns them in larger steps. Transformers
        of a pipeline are fitted on the larger pool. A stop set that was drawn is drawn again. The result is that of a
        learner that had all items and was given the same labels.

        A guarantee of an earlier check covers the items that were there then, and not the new ones;
        :attr:`guarantee` says so. Its error probability stays spent, and counts for the extended pool. An open check
        goes on with its own items. The next labels that are drawn at random come from the new items, until the random
        labels are a random sample of all items; the labels of a check that was drawn before are not.

        Args:
            X_new: The new rows, in the form of the pool.
            costs: What their labels cost, if the costs of the pool were given for each item.

        Returns:
            The indices of the new items.

        Raises:
            InvalidTypeError: The rows are of another kind than the pool, or the pool is on disk or on workers.
            InvalidValueError: They have another width, or cannot be used. Nothing is changed.
            SufficeError: There is a running check.

        Examples:
            >>> import numpy as np
            >>> from suffice.models import BayesianLogistic
            >>> X = np.random.default_rng(0).normal(size=(300, 2)); y = np.where(X[:, 0] > 0.0, "right", "left")
            >>> learner = ActiveLearner(BayesianLogistic(), X[:200], seed=0)
            >>> for _ in range(30):
            ...     i = learner.ask()
            ...     verdict = learner.tell(i, y[i])
            >>> new = learner.extend(X[200:])
            >>> new[:2].tolist(), len(new), learner.left, len(learner.labelled)
            ([200, 201], 100, 270, 30)
        """
        if self._session.running is not None:
            raise SufficeError(
                "the running check has begun with the items so far, and its order cannot be extended; start a new "
                "learner with all items"
            )
        if self._not_saved["client"] is not None:
            raise InvalidTypeError("the pool is on the workers of a cluster and cannot be extended; leave client out")
        X_pool = extended_pool(self._not_saved["X_pool"], X_new)
        own, size, rows = dict(self._arguments), self._session.labels.size, PoolRows(X_pool)
        new = np.arange(size, len(rows), dtype=np.intp)
        self._prepared.inputs(rows.rows(new), "X_new")
        own["initial"] = self._loop.first.tolist()
        own["costs"] = _extended_costs(decoded_array(own["costs"]), costs, len(new))
        registered = self._session.checks.registered.extended(X_pool)
        before = dict(self.__dict__)
        try:
            self._start_again(X_pool, own)
            self._learn_labels_of(before)
            # Whether the stop stands is decided once, after all labels.
            self._session.continue_from(before["_session"], "items")
            self._extend_order(new)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        open_check = self._session.checks.open
        if open_check is not None:
            self._loop.selection.hold(open_check.indices)
        self._session.checks.registered = registered
        self._settled()
        return new

    def _start_again(self, X_pool: Any, own: dict[str, Any]) -> None:
        """Start again with the same model, arguments and checks and a larger pool, without labels."""
        single_use, session, name = self._single_use, self._session, self._about["model"]
        extended, named = [*self._extended, session.labels.size], self._named
        given = (self._given, self._given_name)
        arguments = _constructor_arguments(own, session.labels.size) | self._not_saved
        arguments["X_pool"] = X_pool
        if own.get("stop_set_size") is not None and own["stop_set"] is not None:
            arguments["stop_set"] = own["stop_set_size"] or None
        elif own["stop_set"] is not None:
            # A set that was given stays.
            arguments["stop_set"] = StopSet(np.array(own["stop_set"], dtype=np.intp), len(PoolRows(X_pool)))
        model = self._prepared.unfitted()
        ActiveLearner.__init__(self, model, criterion=session.history.rule, **arguments)
        self._single_use, self._arguments = single_use, {**own, "stop_set": self._arguments["stop_set"]}
        self._about["model"], self._named = name, named
        if named is not None:
            self._given, self._given_name = given
        else:
            self._given_name = name
        self._note_extensions(extended)
        self._session.continue_from(session, "items")

    def _note_extensions(self, sizes: list[int]) -> None:
        """Record the numbers of items before each extension."""
        self._extended = sizes
        if sizes:
            self._about["extended"] = list(sizes)

    def _extend_order(self, new: Indices) -> None:
        """Draw the order of random items again, with the new ones in it."""
        status, seed = self._session.labels.status, self._not_saved["seed"]
        rest = np.flatnonzero(status[: new[0]] == UNLABELLED)
        number = int(seed) if isinstance(seed, int | np.integer) else 0
        rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng([number, len(status)])
        self._loop.selection.use_order(extended_order(len(self.random_items), rest, new, rng))

    def _made(self, named: NamedModel) -> Any:
        """A model by name, for the inputs with which models are compared."""
        return named.made(self._given, plain=self._compares_plain)

    def _replace_model(self, model: Any, named: NamedModel | None) -> None:
        """Start again with another model and the same arguments, without labels."""
        own, single_use, session = dict(self._arguments), self._single_use, self._session
        extended, order = self._extended, self._loop.selection.random_order
        kept = {name: self.__dict__[name] for name in _OF_GIVEN_MODEL}
        last, task = final_estimator(model), self._prepared.backend.task
        backend = backend_type(last)
        if backend.task != task:
            raise InvalidValueError(
                f"model must be for {task}, as the labels of this learner are, and {type(last).__name__} is for "
                f"{backend.task}"
            )
        others = dict(self._not_saved)
        if not backend.device_acquisitions:
            others["device"] = None
        acquisition, first = own["acquisition"], self._loop.first
        arguments = _constructor_arguments(own, self._session.labels.size) | others
        X_pool = arguments.pop("X_pool")
        try:
            ActiveLearner.__init__(self, model, X_pool, criterion=session.history.rule, **arguments)
        except InvalidValueError:
            if acquisition is None:
                raise
            # The new model may not know the acquisition that was named.
            arguments["acquisition"] = own["acquisition"] = None
            ActiveLearner.__init__(self, model, X_pool, criterion=session.history.rule, **arguments)
        self._single_use, self._arguments, self._named = single_use, own, named
        if named is not None:
            self.__dict__.update(kept)
        # A generator that is the seed has gone on.
        self._loop.first = first
        self._session.continue_from(session)
        self._note_extensions(extended)
        if extended and order is not None:
            self._loop.selection.use_order(order)

    def _learn_labels_of(self, before: Mapping[str, Any]) -> None:
        """Learn the labels of the learner as it was before its model was replaced."""
        loop, labels = before["_loop"], before["_session"].labels
        drawn, refits = set(labels.random), self._loop.backend.refits
        self._started, self._drawn = before["_started"], before["_drawn"]
        sizes = [loop.record.begun or len(labels.learned), *loop.record.sizes]
        draws = self._loop.selection.draws_at_random
        with one_thread():
            for items in learning_steps(list(labels.learned), sizes, refits=refits):
                given = np.asarray(as_labels([labels.learned[item] for item in items]))
                random = np.array([item for item in items if item in drawn], dtype=np.intp)
                self._loop.mark_random(random if draws else random[np.isin(random, loop.marked_random)])
                self._loop.learn(np.array(items, dtype=np.intp), given, random)
            if labels.skipped:
                self._loop.skip(np.array(labels.skipped, dtype=np.intp))
        self._session.labels.version = labels.version + 1
        if before["_unlearned"] is not None:
            self._learn_random(before["_unlearned"])

    # Saving.

    @one_at_a_time
    def state_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; :meth:`from_state` continues with the same picks, decisions and guarantees.

        It can be called at any step, also while a check is open. Model and pool are not saved. If the model can be
        saved exactly, it is. An estimator of scikit-learn is fitted once to the labels when it is restored; any other
        model learns the labels again, in the same steps.

        Raises:
            InvalidValueError: The seed of the learner is a random generator, so that it cannot be made again.

        Examples:
            >>> import json
            >>> import numpy as np
            >>> from suffice.models import BayesianLogistic
            >>> X = np.random.default_rng(0).normal(size=(200, 2)); y = np.where(X[:, 0] > 0.0, "right", "left")
            >>> learner = ActiveLearner(BayesianLogistic(), X)
            >>> for _ in range(30):
            ...     i = learner.ask()
            ...     verdict = learner.tell(i, y[i])
            >>> saved = json.dumps(learner.state_dict())
            >>> again = ActiveLearner.from_state(json.loads(saved), BayesianLogistic(), X)
            >>> again.ask(3).tolist() == learner.ask(3).tolist(), again.decision() == learner.decision()
            (True, True)
        """
        if self._random_seed:
            raise InvalidValueError("a learner whose seed is a random generator cannot be saved; give it a number")
        content = {
            "arguments": self._arguments,
            "model": self._about["model"],
            "named": None if self._named is None else [self._given_name, *self._named],
            "function": self._function_name,
            "extended": self._extended,
            "order": self._saved_order(),
            "pool": list(self._X.shape),
            "seconds": self._seconds(),
            "drawn": sorted(self._drawn),
            "unlearned": self._unlearned is not None,
            "loop": self._loop.state_dict(),
        }
        return sealed(_FORMAT, content)

    def _saved_order(self) -> dict[str, Any] | None:
        """The order of random items, if it does not follow from the seed because the pool was extended."""
        order = self._loop.selection.random_order if self._extended else None
        return None if order is None else encoded_array(order)

    @classmethod
    def from_state(cls, state: Mapping[str, Any], model: Any, X_pool: Any, **others: Any) -> "ActiveLearner":
        """Restore a learner from :meth:`state_dict`.

        Args:
            state: The result of ``state_dict``, also after a round trip through JSON.
            model: The same model. After :meth:`switch` to a name, the model before works too.
            X_pool: The same pool.
            others: Arguments of :class:`ActiveLearner` that are not saved: ``validation``, ``device``, ``client``,
                ``clock`` and ``checks``; and ``acquisition`` if it is a function. Without ``checks`` the learner goes
                on counting by itself. In a registry, the checks of the learner that it has counted already are not
                counted again.

        Raises:
            InvalidValueError: The state is not such a result, is damaged, or belongs to another model or pool.
        """

        def restore(content: Mapping[str, Any]) -> "ActiveLearner":
            arguments, rows = _constructor_arguments(content["arguments"], content["pool"][0]), content["pool"][0]
            rule = criterion_from_dict(content["arguments"]["rule"])
            others_allowed = {"validation", "device", "client", "clock", "checks"}
            if content.get("function") is not None:
                _require_function(content["function"], others.get("acquisition"))
                others_allowed.add("acquisition")
                del arguments["acquisition"]
            if saved_too := sorted(set(others) - others_allowed):
                raise InvalidValueError(f"{saved_too[0]} is saved with the learner; leave it out")
            given_rows = X_pool.shape[0] if hasattr(X_pool, "shape") else rows
            if given_rows != rows:
                raise InvalidValueError(f"X_pool has {given_rows} rows, and the learner was saved with {rows}")
            share = content["arguments"]["check_share"]
            learner = cls(model, X_pool, criterion=rule, **arguments, **others)
            named = content.get("named")
            if named is not None and learner._about["model"] == named[0]:
                # The model before it was replaced by a name.
                replaced = NamedModel(*named[1:])
                learner._replace_model(learner._made(replaced), replaced)
                learner._arguments = dict(content["arguments"])
            learner._load(content)
            learner._arguments["stop_set_size"] = content["arguments"].get("stop_set_size")
            if share is not None:
                learner._arguments["check_share"] = learner._about["check_share"] = share
            return learner

        return restored(_FORMAT, state, "ActiveLearner.state_dict", restore)

    def progress(self) -> dict[str, Any]:
        """Return :meth:`state_dict`; deprecated, use that."""
        warn_deprecated("ActiveLearner.progress", "use state_dict")
        return self.state_dict()

    @one_at_a_time
    def resume(self, progress: Mapping[str, Any]) -> None:
        """Continue from the state of a learner with the same arguments; deprecated, use :meth:`from_state`."""
        warn_deprecated("ActiveLearner.resume", "use ActiveLearner.from_state")
        if isinstance(progress, Mapping) and "attributes" in progress and "format" not in progress:
            raise InvalidValueError(
                "this is the progress of a learner of suffice 1.0.0rc1, which only that version restores; tell a new "
                "learner the same labels in the same order, and save it with state_dict"
            )
        restored(_FORMAT, progress, "ActiveLearner.state_dict", self._load)

    def _load(self, content: Mapping[str, Any]) -> None:
        """Restore the state of a learner with the same arguments."""
        if self._about["model"] != content["model"] or list(self._X.shape) != content["pool"]:
            raise InvalidValueError(
                f"the learner was saved with {content['model']} and a pool of shape {tuple(content['pool'])}; here "
                f"they are {self._about['model']} and {tuple(self._X.shape)}"
            )
        self._started = self._clock() - content["seconds"]
        self._drawn = set(content["drawn"])
        with one_thread():
            self._loop.load_state(content["loop"], self)
        self._rule = self._session.history.rule
        self._note_extensions(list(content.get("extended", ())))
        if content.get("order") is not None:
            self._loop.selection.use_order(decoded_array(content["order"]))
        checks = self._session.checks
        if checks.open is not None:
            self._loop.selection.hold(checks.open.indices)
        if content["unlearned"]:
            self._unlearned = checks.checks[-1]
            self._take_checked(self._unlearned)


def _extended_costs(costs: Any, new: Any, more: int) -> Any:
    """The costs of the labels of an extended pool, to be saved.

    Args:
        costs: The costs of the pool so far: None, one number, or one for each item.
        new: The costs of the new items, or None.
        more: Number of new items.
    """
    if costs is None or not np.ndim(costs):
        if new is not None:
            raise InvalidValueError("costs of new items are for a pool with a cost for each item; leave costs out")
        return None if costs is None else encoded_array(np.asarray(costs))
    if new is None:
        raise InvalidValueError(f"the pool has a cost for each item; give costs= for the {more} new ones too")
    return encoded_array(np.append(costs, label_costs(new, more)))


def _require_function(name: str, given: Any) -> None:
    """Raise an error if the acquisition function with which a learner was saved is not given again."""
    if not callable(given) or function_name(given) != name:
        came = "" if given is None else f", not {shown_acquisition(given)!r}"
        raise InvalidValueError(
            f"the learner was saved with the function {name} as its acquisition, and functions are not saved; give it "
            f"again: from_state(..., acquisition={name}){came}"
        )


def _constructor_arguments(saved: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """Arguments of the constructor from those that a learner saves, without the rule and the running check.

    Args:
        saved: The saved arguments.
        rows: Number of items of the pool.
    """
    # A running check is restored, not started.
    arguments = {
        name: value for name, value in saved.items() if name not in ("rule", "check_share", "stop_set", "stop_set_size")
    }
    arguments["costs"] = decoded_array(saved["costs"])
    if saved["stop_set"] is not None:
        arguments["stop_set"] = StopSet(np.array(saved["stop_set"], dtype=np.intp), rows)
    return arguments
