"""Recorded runs for the tests of the comparison: real ones, small, and made-up ones with everything in them."""

from collections.abc import Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

import suffice as sf
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.tables.example_data import Task, demo_task
from suffice.testing import example_steps
from suffice.trace import Relearned, Trace

STEPS = 60
VALIDATION = 40


@lru_cache
def task(kind: Any) -> Task:
    made = demo_task(kind, np.random.default_rng(0))
    if kind == "classification":
        return made
    centre, spread = made.y_pool.mean(), made.y_pool.std()
    return replace(made, y_pool=(made.y_pool - centre) / spread, y_test=(made.y_test - centre) / spread)


@lru_cache
def real_run(name: str, seed: int = 0) -> Trace:
    """A run on scikit-learn's own data, with all that can be recorded of it and hyper-parameters learned again."""
    made = task("classification" if name.startswith("logistic") else "regression")
    models = {"gp": GaussianProcess(), "ridge": BayesianRidge(), "logistic": BayesianLogistic()}
    return sf.simulate(
        models[name.split(maxsplit=1)[0]],
        made.X_pool[VALIDATION:],
        made.y_pool[VALIDATION:],
        initial=12,
        steps=STEPS if not name.endswith("batch") else STEPS // 4,
        batch=4 if name.endswith("batch") else 1,
        X_test=made.X_test,
        y_test=made.y_test,
        validation=(made.X_pool[:VALIDATION], made.y_pool[:VALIDATION]),
        record="all",
        stop_set=stop_set(len(made.X_pool) - VALIDATION),
        seed=seed,
    )


REAL = ("gp", "ridge", "logistic", "logistic batch")


def stop_set(size: int) -> sf.StopSet:
    return sf.StopSet.draw(size, 80, seed=3)


@lru_cache(maxsize=128)
def columns(steps: int, seed: int) -> Mapping[str, Any]:
    """All fields of made-up steps, one row a step, read-only."""
    made = example_steps(steps, seed=seed)
    names = [spec.name for spec in fields(sf.Step) if spec.name not in ("n_labelled", "estimated")]
    found = {name: np.array([getattr(step, name) for step in made]) for name in names}
    for values in found.values():
        values.setflags(write=False)
    return found


def made_up_run(steps: int = 50, *, seed: int = 0, relearned: tuple[int, ...] = ()) -> Trace:
    """A run with every field, all of which look different wherever hyper-parameters are learned again."""
    measures = dict(columns(steps, seed))
    pair = measures.pop("kl_new_old"), measures.pop("kl_old_new")
    known = []
    for step in relearned:
        seen = {name: values[: step + 1] for name, values in columns(steps, seed + 100 + step).items()}
        known.append(Relearned(step, seen.pop("kl_new_old"), seen.pop("kl_old_new"), seen))
    error = 0.2 + 1.0 / (1.0 + np.arange(steps)) + 0.01 * np.random.default_rng(seed).normal(size=steps)
    made = Trace.of_divergences(*pair, first=10)
    return replace(made, error=1.1 * error, predictive_error=error, measures=measures, relearned=tuple(known))


def first_steps(trace: Trace, count: int) -> Trace:
    """The run as it was after so many steps."""
    names = ("indices", "n_labelled", "kl_new_old", "kl_old_new", "error", "predictive_error", "wrong_share")
    return replace(
        trace,
        **{name: getattr(trace, name)[:count] for name in names},
        relearned=tuple(known for known in trace.relearned if known.step < count),
        measures={name: values[:count] for name, values in trace.measures.items()},
    )
