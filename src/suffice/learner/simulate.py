"""Runs with every label known: what would have happened, and when it would have been enough."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from suffice.arguments import whole
from suffice.errors import InvalidValueError
from suffice.learner.checkpoint import model_parameters
from suffice.learner.course import RunSettings
from suffice.learner.facts import new_step_inputs, requested_fields
from suffice.learner.recording import ModelWatcher, RunPlan, StepCounter, checkpoint_file, record_run
from suffice.learner.start import (
    first_items,
    generator,
    known_labels,
    label_costs,
    labelled_set,
    number_type,
    prepare,
    require_provided,
    seed_name,
    validation_set,
)
from suffice.learner.stop_set import StopSet
from suffice.models.threads import one_thread
from suffice.trace import DIVERGENCES, Trace


def simulate(  # noqa: PLR0913 - a run has many settings, all but three by keyword
    model: Any,
    X_pool: Any,
    y_pool: Any,
    *,
    initial: Any = 10,
    steps: int | None = None,
    X_test: Any = None,
    y_test: Any = None,
    acquisition: str | None = None,
    batch: int = 1,
    seed: int = 0,
    dtype: Any = np.float64,
    checkpoint: Path | str | None = None,
    watch: Callable[[Any], Mapping[str, Any]] | None = None,
    record: Any = (),
    stop_set: StopSet | int | None = None,
    validation: tuple[Any, Any] | None = None,
    costs: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> Trace:
    """Label a pool as active learning would, and record every step.

    A label leaves ``y_pool`` only when it is bought: neither model nor record sees another.

    Args:
        model: One of :mod:`suffice.models`, or a pipeline that ends in one: its transformers are fitted on the pool.
        X_pool: Inputs, ``m x D``.
        y_pool: Their labels, ``m``.
        initial: Items labelled at the start: how many at random, or which.
        steps: Steps to take; to the end of the pool if left out.
        X_test: Test inputs; with them the expected error is recorded after every step.
        y_test: Test labels.
        acquisition: Which item next: see :data:`suffice.acquisition.NAMES`; variance or entropy if left out, or
            BatchBALD for a network.
        batch: Labels bought at each step.
        seed: Seed of all randomness.
        dtype: Number type that the pool is kept in; ``float32`` halves the memory.
        checkpoint: File that a network's run is saved in after every step. Called again with the same arguments, it
            goes on from there; on a CPU exactly as if it had never been interrupted.
        watch: Called with the fitted model after every step; the numbers that it returns by name are recorded in
            ``trace.measures``.
        record: What else to record, so that rules can be replayed: a stopping rule or several (what they require),
            fields of a :class:`suffice.Step` by name, or ``"all"`` that this model can tell.
        stop_set: The stop set, or its size; 2000 items of the pool (or all) drawn with the seed if left out, and only
            where something is recorded of it.
        validation: Inputs and labels of a validation set, for rules that want one.
        costs: What a label costs: one number, or one for each item of the pool.
        progress: Called now and then with the steps done and the steps to do.

    Returns:
        The run, one row a step.

    Raises:
        InvalidValueError: Something does not fit, named.
        NotEnoughMemoryError: The pool needs more memory than there is; said before the first step.
        TrainingDivergedError: A network's loss is not finite any more; the steps before are in ``checkpoint``.

    Examples:
        >>> import numpy as np
        >>> from suffice.models import GaussianProcess
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 2)); y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=300)
        >>> trace = simulate(GaussianProcess(length_scale=1.0, noise=0.01), X, y, steps=50)
        >>> len(trace), trace.indices[:3].shape
        (50, (3,))
    """
    rng, size = generator(seed), whole(batch, "batch", least=1)
    prepared = prepare(model, X_pool)
    pool = prepared.inputs(X_pool, "X_pool")
    labels = known_labels(y_pool, len(pool), "y_pool", "X_pool")
    first = first_items(initial, len(pool), rng)
    room = (len(pool) - len(first)) // size
    wanted = room if steps is None else whole(steps, "steps", least=0)
    if wanted > room:
        raise InvalidValueError(
            f"steps is {wanted}, but {len(pool)} rows less {len(first)} initial ones leave {room} steps of {size}"
        )
    name = acquisition or prepared.backend.default_acquisition
    held_out = validation_set(prepared, validation, pool.shape[1])
    available = prepared.backend.provided_fields(validated=held_out is not None)
    wanted_fields = requested_fields(record, available) - DIVERGENCES
    require_provided(wanted_fields, prepared.model, validated=held_out is not None)
    drawn_with = seed if isinstance(seed, int | np.integer) else 0
    inputs = new_step_inputs(wanted_fields, len(pool), stop_set, seed=int(drawn_with), validation=held_out)
    counter = StepCounter(wanted_fields, label_costs(costs, len(pool)), 0 if held_out is None else len(held_out[1]))
    settings = RunSettings(
        X=pool,
        acquisition=name,
        rng=rng,
        dtype=number_type(dtype),
        expected=len(first) + wanted * size,
        test=labelled_set(prepared, (X_test, y_test), pool.shape[1], ("X_test", "y_test")),
        step_inputs=inputs,
    )
    about = {"model": " ".join(repr(model).split()), "acquisition": name, "seed": seed_name(seed), "batch": size}
    with one_thread():
        backend = prepared.backend(prepared.model, settings)
        X, y = settings.test or (None, None)
        parts = {"acquisition": name, "seed": about["seed"], "batch": size, **model_parameters(model)}
        data = {"initial": first, "X_pool": pool, "y_pool": labels, "X_test": X, "y_test": y}
        recorded: dict[str, Any] = {"record": sorted(inputs.names), "stop_set": inputs.stop} if inputs.names else {}
        if inputs.validation is not None:
            recorded |= dict(zip(("X of validation", "y of validation"), inputs.validation, strict=True))
        saved = checkpoint_file(checkpoint, backend, {**parts, **data, **recorded})
        watcher = None if watch is None else ModelWatcher(watch, prepared)
        return record_run(backend, labels, first, RunPlan(wanted, size, about, progress, saved, watcher, counter))


def audit(  # noqa: PLR0913 - as above
    model: Any,
    X: Any,
    y: Any,
    *,
    initial: int = 10,
    X_test: Any = None,
    y_test: Any = None,
    batch: int = 1,
    record: Any = (),
    stop_set: StopSet | int | None = None,
    validation: tuple[Any, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Trace:
    """Look back on data that were labelled in this order: the whole curve of divergences, and so any rule's verdicts.

    For Gaussian noise the whole history comes from one factorisation (and one more for each time that hyper-parameters
    are learned again, on half as many labels).

    Args:
        model: One of :mod:`suffice.models`, or a pipeline that ends in one.
        X: Inputs in the order in which they were labelled, ``n x D``.
        y: Labels.
        initial: Labels before the first step.
        X_test: Test inputs.
        y_test: Test labels.
        batch: Labels that came at each step.
        record: What else to record, as for :func:`simulate`; likewise
        stop_set: The stop set, and
        validation: Inputs and labels of a validation set.
        progress: Called now and then with the steps done and the steps to do.

    Returns:
        The run; ``trace.ratio()`` is the error ratio, ``trace.replay(rule)`` what a rule would have said.

    Examples:
        >>> import numpy as np
        >>> from suffice.models import BayesianRidge
        >>> X = np.random.default_rng(0).normal(size=(200, 3)); y = X @ [1.0, 2.0, 3.0]
        >>> audit(BayesianRidge(alpha=1.0, beta=1.0), X, y).ratio().shape
        (190,)
    """
    n = whole(initial, "initial", least=1)
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if rows < n:
        raise InvalidValueError(f"X has {rows} rows, fewer than the {n} initial labels")
    options: dict[str, Any] = {"X_test": X_test, "y_test": y_test, "batch": batch, "record": record}
    options |= {"stop_set": stop_set, "validation": validation}
    return simulate(model, X, y, initial=np.arange(n), acquisition="order", progress=progress, **options)
