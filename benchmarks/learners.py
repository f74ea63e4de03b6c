"""How fast the learners are: against refitting at every step and against the plain loop; and what the rule adds.

One thread; every ratio is measured in one run. References that would take hours are timed at a few steps, integrated.
With SUFFICE_DATA set the paper's data sets are used, else random numbers of the same shape. Parts: gp, ridge, logistic.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import suffice as sf
from learner_data import Pool, grid, loaded, power, protein, skin
from learner_references import plain_process, plain_ridge_step, process_step, sklearn_logistic_step
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess, RadialBasis
from tables import publish, table
from timing import seconds

HEADER = ["work, with the error on a test set", "suffice", "reference", "takes", "ratio", "wanted"]


def integrated(step: Callable[[int], object], counts: list[int]) -> float:
    """Time of all steps from the first count to the last, from the time of a few."""
    return float(np.trapezoid([seconds(partial(step, n)) for n in counts], counts))


def row(work: str, ours: float, reference: str, theirs: float, wanted: float) -> list[str]:
    return [work, f"{ours:.2f} s", reference, f"{theirs:.1f} s", f"**{theirs / ours:.1f}x**", f"{wanted:g}x"]


def rule_row(work: str, run: Callable[[], sf.Trace]) -> list[str]:
    """What divergences and verdicts add to a run, by the clock around them within the run."""
    from suffice.learner import backend, class_backend
    from suffice.models.gaussian_state import Extension

    places: list[tuple[Any, str]] = [
        (Extension, "terms"),
        (backend, "in_units_of_noise"),
        (class_backend, "divergences"),
    ]

    spent = [0.0]

    def clocked(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            start = time.perf_counter()
            result = function(*given)
            spent[0] += time.perf_counter() - start
            return result

        return call

    kept = [getattr(*place) for place in places]
    for place, function in zip(places, kept, strict=True):
        setattr(*place, clocked(function))
    shares, loops = [], []
    for _ in range(3):
        spent[0] = 0.0
        start = time.perf_counter()
        trace = run()
        whole = time.perf_counter() - start
        start = time.perf_counter()
        trace.replay(sf.ErrorStability(0.001))
        rule = spent[0] + time.perf_counter() - start
        loops.append(whole - spent[0])
        shares.append(rule / loops[-1])
    for place, function in zip(places, kept, strict=True):
        setattr(*place, function)
    share = median(shares)
    extra = f"{1e6 * share * median(loops) / len(trace):.0f} us a step"
    return [
        f"{work}: both divergences and a verdict at every step",
        extra,
        "the loop without a rule",
        f"{median(loops):.2f} s",
        f"**+{100 * share:.1f} %**",
        "+5 %",
    ]


def process_rows() -> list[list[str]]:
    sets = (
        ("5000 x 4", loaded("power plant", (5000, 4), 2000, power), 4.3, 0.065, 2.5),
        ("43,730 x 9", loaded("protein", (43_730, 9), 2000, protein), 2.0, 0.3, 5.0),
    )
    rows = []
    for shape, pool, length, noise, wanted in sets:
        name, initial = f"GP, 1000 picks from {shape}", np.arange(10)
        run = partial(_simulated, GaussianProcess(length, noise), pool, initial, 1000)
        ours = seconds(run)
        start = time.perf_counter()
        picks = plain_process(pool, initial, 1000, length, noise)
        plain = time.perf_counter() - start
        trace = run()
        assert trace.indices.tolist() == picks, "the plain loop picks otherwise"
        if wanted < 5.0:
            step = partial(_process_step, pool, np.concatenate([initial, trace.indices]), length, noise)
            refit = integrated(step, [10, 100, 250, 500, 750, 1010])
            rows.append(row(name, ours, "scikit-learn refitted at every step", refit, 250))
        rows.append(row(name, ours, "plain incremental", plain, wanted))
        rows.append(rule_row(name, run))
    return rows


def ridge_rows() -> list[list[str]]:
    pool = loaded("grid", (8000, 11), 2000, grid)
    basis = RadialBasis(10).fit(pool.X)
    features = Pool(basis.transform(pool.X), pool.y, basis.transform(pool.X_test), pool.y_test)
    run = partial(_simulated, BayesianRidge(1.0, 20.0), features, np.arange(10), 7990)
    order = np.random.default_rng(0).permutation(8000)
    ours = seconds(run)
    whole = integrated(
        lambda n: plain_ridge_step(features, order[:n], 1.0, 20.0), [10, 500, 1000, 2000, 4000, 6000, 8000]
    )
    name = "ridge, 7990 picks from 8000 x 110"
    return [row(name, ours, "posterior and pool recomputed at every step", whole, 200), rule_row(name, run)]


def logistic_rows() -> list[list[str]]:
    sets = (
        ("240,057 x 15", loaded("skin", (240_057, 3), 5000, skin), 60),
        ("5000 x 55", loaded("grid, classes", (5000, 11), 5000, partial(grid, classes=True)), 40),
    )
    rows = []
    for shape, pool, wanted in sets:
        basis = RadialBasis(5).fit(pool.X)
        features = Pool(basis.transform(pool.X), pool.y, basis.transform(pool.X_test), pool.y_test)
        run = partial(_simulated, BayesianLogistic(alpha=1.0, fit_intercept=False), features, np.arange(100), 3000)
        ours = seconds(run)
        trace = run()
        step = partial(_logistic_step, pool, np.concatenate([trace.initial, trace.indices]), basis)
        refit = integrated(step, [100, 300, 1000, 2000, 3100])
        name = f"logistic, 3000 picks from {shape}"
        rows.append(row(name, ours, "scikit-learn refitted, basis and pool recomputed at every step", refit, wanted))
        rows.append(rule_row(name, run))
    return rows


def _simulated(model: Any, pool: Pool, initial: Any, steps: int) -> sf.Trace:
    return sf.simulate(model, pool.X, pool.y, initial=initial, steps=steps, X_test=pool.X_test, y_test=pool.y_test)


def _process_step(pool: Pool, order: Any, length: float, noise: float, n: int) -> object:
    return process_step(pool, order[:n], length, noise)


def _logistic_step(pool: Pool, order: Any, basis: Any, n: int) -> object:
    return sklearn_logistic_step(pool, order[:n], basis)


def main() -> None:
    parts = {"gp": process_rows, "ridge": ridge_rows, "logistic": logistic_rows}
    chosen = [name for name in parts if name in sys.argv] or list(parts)
    publish("learners", table(HEADER, [entry for name in chosen for entry in parts[name]()]))


if __name__ == "__main__":
    main()
