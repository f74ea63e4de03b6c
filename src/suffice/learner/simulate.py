"""Runs with every label known: what would have happened, and when it would have been enough."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from suffice.arguments import whole
from suffice.divergence import KLPair
from suffice.errors import InvalidValueError, TrainingDivergedError
from suffice.files import require_writable
from suffice.learner.checkpoint import fingerprint, load_checkpoint, save_checkpoint, settings
from suffice.learner.course import Course, Labels, Outcome, Setting
from suffice.learner.networks import NetworkCourse
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
from suffice.trace import Relearned, Trace


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
        place = _place(checkpoint, course, {**parts, **data})
        seen = None if watch is None else _Watch(watch, prepared)
        return _record(course, labels, first, _Plan(wanted, size, about, progress, place, seen))


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


class _Place(NamedTuple):
    """Where a run is saved, and how it is known again."""

    path: Path
    run: dict[str, Any]


class _Plan(NamedTuple):
    steps: int
    size: int
    about: dict[str, Any]
    progress: Callable[[int, int], None] | None
    place: _Place | None
    watch: "_Watch | None"


class _Watch(NamedTuple):
    """What the caller wants to see of the model, as he knows it: with its pipeline."""

    look: Callable[[Any], Mapping[str, Any]]
    prepared: Any

    def at(self, course: Course) -> dict[str, Any]:
        """What is seen now."""
        model = course.model if isinstance(course, NetworkCourse) else course.fitted()
        return {name: np.asarray(value).tolist() for name, value in self.look(self.prepared.joined(model)).items()}


def _place(checkpoint: Path | str | None, course: Course, parts: dict[str, Any]) -> _Place | None:
    if checkpoint is None:
        return None
    if not isinstance(course, NetworkCourse):
        raise InvalidValueError("checkpoint is for networks; the other models run a pool in seconds, so leave it out")
    require_writable(Path(checkpoint), "the run")
    return _Place(Path(checkpoint), fingerprint(**parts))


class _Record:
    """A run as it is written down."""

    def __init__(self, course: Course, labels: Any, first: Any, plan: _Plan) -> None:
        self.course, self.labels, self.first, self.plan = course, labels, first, plan
        self.outcomes: list[Outcome | Labels] = []
        self.picks: list[Any] = []
        self.relearned: list[Relearned] = []
        self.watched: list[Mapping[str, Any]] = []
        self.done = 0

    def begin(self) -> None:
        """Learn the initial labels, or take up a saved run."""
        place = self.plan.place
        state = None if place is None else load_checkpoint(place.path, place.run)
        if state is None:
            self.course.begin(self.first, self.labels[self.first])
            self.save()
            return
        assert isinstance(self.course, NetworkCourse)
        self.course.restore(state["course"], self.labels)
        past, size = self.course.relearn(), self.plan.size
        self.done = min(len(past.kl_new_old), self.plan.steps)
        items = np.array(state["course"]["indices"], dtype=np.intp)[len(self.first) :]
        self.picks, self.outcomes = [items[: self.done * size]], [past.first(self.done)]
        self.watched = [] if self.plan.watch is None else list(state["watched"])[: self.done]
        if self.plan.watch is not None and len(self.watched) < self.done:
            raise InvalidValueError(
                f"checkpoint {place and place.path} was saved without watch; leave watch out, or start over"
            )

    def step(self) -> None:
        """One step, or several that are known already."""
        plan, course = self.plan, self.course
        due, left = course.until_relearning(), 1 if plan.watch is not None else plan.steps - self.done
        most = left if due is None else max(1, min(left, due))
        chosen = course.propose(most) if plan.size == 1 else course.batch(plan.size)
        outcome = course.learn(chosen, self.labels[chosen], together=plan.size > 1)
        self.picks.append(chosen)
        self.done += len(chosen) if plan.size == 1 else 1
        if course.until_relearning() == 0:
            history = course.relearn()
            self.relearned.append(Relearned(self.done - 1, history.kl_new_old, history.kl_old_new))
            outcome = _ending(Outcome.joined([outcome]), history)
        self.outcomes.append(outcome)
        if plan.watch is not None:
            self.watched.append(plan.watch.at(course))
        self.save()

    def save(self) -> None:
        """Save the run, if it is to be saved."""
        if self.plan.place is not None:
            assert isinstance(self.course, NetworkCourse)
            state = {"course": self.course.state(), "watched": self.watched}
            save_checkpoint(self.plan.place.path, self.plan.place.run, state)


def _record(course: Course, labels: Any, first: Any, plan: _Plan) -> Trace:
    """Take the steps, and write them down."""
    record = _Record(course, labels, first, plan)
    try:
        record.begin()
        while record.done < plan.steps:
            record.step()
            if plan.progress is not None:
                plan.progress(record.done, plan.steps)
    except TrainingDivergedError as error:
        if plan.place is None or not plan.place.path.exists():
            raise
        raise TrainingDivergedError(f"{error}. The run up to there is saved in {plan.place.path}") from None
    found = Outcome.joined(record.outcomes)
    indices, size = np.concatenate([np.zeros(0, dtype=np.intp), *record.picks]), plan.size
    names = record.watched[0] if record.watched else ()
    return Trace(
        initial=first,
        indices=indices if size == 1 else indices.reshape(-1, size),
        n_labelled=len(first) + size * np.arange(1, plan.steps + 1),
        kl_new_old=found.kl_new_old,
        kl_old_new=found.kl_old_new,
        error=found.error,
        relearned=tuple(record.relearned),
        estimated=found.estimated,
        about=plan.about,
        measures={**found.measures, **{name: np.array([each[name] for each in record.watched]) for name in names}},
    )


def _ending(outcome: Outcome, history: Outcome) -> Outcome:
    """The outcome with its last step as the hyper-parameters learned after it see it."""
    new_old, old_new, error = (
        np.append(getattr(outcome, name)[:-1], getattr(history, name)[-1:])
        for name in ("kl_new_old", "kl_old_new", "error")
    )
    return Outcome(KLPair(new_old, old_new), error, outcome.estimated, outcome.measures)


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
