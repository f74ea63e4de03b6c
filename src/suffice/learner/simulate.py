"""Runs with every label known: what would have happened, and when it would have been enough."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from suffice.arguments import whole
from suffice.errors import InvalidValueError
from suffice.learner.checkpoint import settings
from suffice.learner.course import Setting
from suffice.learner.recording import Plan, Watch, new_place, record_run
from suffice.learner.start import (
    default_acquisition,
    first_items,
    generator,
    new_course,
    number_type,
    prepare,
    seed_name,
)
from suffice.models.inputs import as_labels
from suffice.models.threads import one_thread
from suffice.trace import Trace


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
    labels = _labels(y_pool, len(pool), "y_pool", "X_pool")
    first = first_items(initial, len(pool), rng)
    room = (len(pool) - len(first)) // size
    wanted = room if steps is None else whole(steps, "steps", least=0)
    if wanted > room:
        raise InvalidValueError(
            f"steps is {wanted}, but {len(pool)} rows less {len(first)} initial ones leave {room} steps of {size}"
        )
    name = acquisition or default_acquisition(prepared.model)
    setting = Setting(
        X=pool,
        acquisition=name,
        rng=rng,
        dtype=number_type(dtype),
        expected=len(first) + wanted * size,
        test=_test(prepared, X_test, y_test, pool.shape[1]),
    )
    about = {"model": " ".join(repr(model).split()), "acquisition": name, "seed": seed_name(seed), "batch": size}
    with one_thread():
        course = new_course(prepared.model, setting)
        X, y = setting.test or (None, None)
        parts = {"acquisition": name, "seed": about["seed"], "batch": size, **settings(model)}
        data = {"initial": first, "X_pool": pool, "y_pool": labels, "X_test": X, "y_test": y}
        place = new_place(checkpoint, course, {**parts, **data})
        seen = None if watch is None else Watch(watch, prepared)
        return record_run(course, labels, first, Plan(wanted, size, about, progress, place, seen))


def audit(  # noqa: PLR0913 - as above
    model: Any,
    X: Any,
    y: Any,
    *,
    initial: int = 10,
    X_test: Any = None,
    y_test: Any = None,
    batch: int = 1,
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
    options: dict[str, Any] = {"X_test": X_test, "y_test": y_test, "batch": batch, "progress": progress}
    return simulate(model, X, y, initial=np.arange(n), acquisition="order", **options)


def _labels(y: Any, rows: int, name: str, beside: str) -> Any:
    labels = np.asarray(as_labels(y))
    if labels.ndim != 1 or len(labels) != rows:
        raise InvalidValueError(
            f"{name} must hold one label for each of the {rows} rows of {beside}; its shape is {labels.shape}"
        )
    return labels


def _test(prepared: Any, X_test: Any, y_test: Any, width: int) -> tuple[Any, Any] | None:
    if X_test is None and y_test is None:
        return None
    if X_test is None or y_test is None:
        raise InvalidValueError("X_test and y_test belong together: give both, or neither")
    inputs = prepared.inputs(X_test, "X_test")
    if inputs.shape[1] != width:
        raise InvalidValueError(f"X_test has {inputs.shape[1]} features and X_pool has {width}; they must match")
    return inputs, _labels(y_test, len(inputs), "y_test", "X_test")
