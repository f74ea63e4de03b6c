"""How fast the learners are: against refitting at every step and against the plain loop; and what a rule adds.

Processor time of one thread; every ratio is measured in one run, and the plain loop in turn with the learner, so that
both see the same load of the machine. References that would take hours are timed at a few steps, integrated. The runs
are calls of ``simulate`` as a user writes them, without ``record``. The last table lists what was computed for some
rules, as the trace of each run has it. With SUFFICE_DATA set the paper's data sets are used, else random numbers of the
same shape. Parts: gp, ridge, logistic, classes, default, evidence.
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
from learner_references import (
    plain_process,
    plain_ridge_step,
    process_step,
    sklearn_logistic_step,
    sklearn_softmax_step,
)
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess, RadialBasis
from suffice.session.recorded_steps import DIVERGENCES
from suffice.trace import DeferredMeasures
from tables import publish, table
from timing import seconds

HEADER = ["work, with the error on a test set", "suffice", "reference", "takes", "ratio", "wanted"]
EVIDENCE_HEADER = ["run", "rule", "computed at each step", "ms a step"]


# Times that a run and the plain loop are measured.
PLAIN_TIMES = 5


def integrated(step: Callable[[int], object], counts: list[int]) -> float:
    """Time of all steps from the first count to the last, from the time of a few."""
    return float(np.trapezoid([seconds(partial(step, n), clock=time.process_time) for n in counts], counts))


def processor_time(work: Callable[[], object], times: int = 3) -> float:
    return seconds(work, times, time.process_time)


def row(work: str, ours: float, reference: str, theirs: float, wanted: float | None = None) -> list[str]:
    ratio = f"**{theirs / ours:.1f}x**" if theirs >= ours else f"{theirs / ours:.2f}x"
    return [work, f"{ours:.2f} s", reference, f"{theirs:.2f} s", ratio, "" if wanted is None else f"{wanted:g}x"]


def rule_row(work: str, run: Callable[[], sf.Trace], times: int = 3) -> list[str]:
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
            start = time.process_time()
            result = function(*given)
            spent[0] += time.process_time() - start
            return result

        return call

    kept = [getattr(*place) for place in places]
    for place, function in zip(places, kept, strict=True):
        setattr(*place, clocked(function))
    shares, loops = [], []
    for _ in range(times):
        spent[0] = 0.0
        start = time.process_time()
        trace = run()
        whole = time.process_time() - start
        start = time.process_time()
        trace.replay(sf.ErrorStability(0.001))
        rule = spent[0] + time.process_time() - start
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
        ("5000 x 4", loaded("power plant", (5000, 4), 2000, power), 4.3, 0.065, 5.0),
        ("43,730 x 9", loaded("protein", (43_730, 9), 2000, protein), 2.0, 0.3, 5.0),
    )
    rows = []
    for shape, pool, length, noise, wanted in sets:
        name, initial = f"GP, 1000 picks from {shape}", np.arange(10)
        run = partial(_simulated, GaussianProcess(length, noise), pool, initial, 1000, "variance")
        trace = run()
        plain_loop = partial(plain_process, pool, initial, 1000, length, noise)
        assert trace.indices.tolist() == plain_loop(), "the plain loop picks otherwise"
        times = [(processor_time(run, 1), processor_time(plain_loop, 1)) for _ in range(PLAIN_TIMES)]
        ours = median(taken for taken, _ in times)
        # The median of the ratios, each of two runs one after the other.
        plain = ours * median(reference / taken for taken, reference in times)
        if len(pool.X) == 5000:
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
    # The reference has no intercept either.
    model = BayesianRidge(1.0, 20.0, fit_intercept=False)
    run = partial(_simulated, model, features, np.arange(10), 7990, "variance")
    order = np.concatenate([np.arange(10), run().indices])
    ours = processor_time(run)

    def step(n: int) -> None:
        pick = plain_ridge_step(features, order[:n], 1.0, 20.0)
        assert n == len(order) or pick == order[n], "the reference picks otherwise"

    whole = integrated(step, [10, 500, 1000, 2000, 4000, 6000, 8000])
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
        model = BayesianLogistic(alpha=1.0, fit_intercept=False)
        run = partial(_simulated, model, features, np.arange(100), 3000, "entropy")
        start = time.process_time()
        trace = run()
        ours = time.process_time() - start
        step = partial(_logistic_step, pool, np.concatenate([trace.initial, trace.indices]), basis)
        refit = integrated(step, [100, 300, 1000, 2000, 3100])
        name = f"logistic, 3000 picks from {shape}"
        rows.append(row(name, ours, "scikit-learn refitted, basis and pool recomputed at every step", refit, wanted))
        rows.append(rule_row(name, run, 1))
    return rows


# Steps of the runs with many classes.
CLASS_STEPS = 40


def class_rows() -> list[list[str]]:
    """Runs with many classes, from 20 labels on, beside a refit and the operations that a label cannot do without."""
    rows = []
    for shape, classes, inputs in (("2000 x 17, 26 classes", 26, 16), ("2000 x 6, 200 classes", 200, 5)):
        pool = gaussian_classes(classes, inputs)
        model = BayesianLogistic(alpha=1.0, classes=list(range(classes)))
        # The initial labels alone are no part of a step.
        ours, before = (
            processor_time(partial(_simulated, model, pool, np.arange(20), steps, "margin"))
            for steps in (CLASS_STEPS, 0)
        )
        order = np.arange(20 + CLASS_STEPS)
        refit = integrated(partial(_softmax_step, pool, order, classes), [20, 20 + CLASS_STEPS])
        name = f"logistic, {CLASS_STEPS} picks from {shape}"
        reference = "scikit-learn refitted, pool recomputed at every step"
        rows.append(row(name, ours - before, reference, refit))
        floor = CLASS_STEPS * _factor_and_inverse(classes * (inputs + 1))
        rows.append(row(name, ours - before, "floor: one factor and one inverse of the Hessian a label", floor))
    return rows


def gaussian_classes(classes: int, inputs: int) -> Pool:
    """Classes around random centres, 2000 points to choose from and 500 to test on."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, size=2500)
    X = 2.0 * rng.normal(size=(classes, inputs))[y] + rng.normal(size=(2500, inputs))
    return Pool(X[:2000], y[:2000], X[2000:], y[2000:])


def _factor_and_inverse(size: int) -> float:
    """Time of ``P^3`` operations at the speed of a product of ``P x P`` matrices, which are ``2 P^3``."""
    A = np.random.default_rng(0).normal(size=(size, size))
    return 0.5 * processor_time(lambda: A @ A[::-1], 5)


def default_rows() -> list[list[str]]:
    """Runs as they are if nothing is said: the recommended picks, and what the default rule needs at every step."""
    pool = loaded("grid, classes", (5000, 11), 5000, partial(grid, classes=True))
    basis = RadialBasis(5).fit(pool.X)
    features = Pool(basis.transform(pool.X), pool.y, basis.transform(pool.X_test), pool.y_test)
    two = partial(_default, BayesianLogistic(alpha=1.0, fit_intercept=False), features, np.arange(100))
    letters = partial(_default, BayesianLogistic(alpha=1.0, classes=list(range(26))), gaussian_classes(26, 16), 20)
    rows = []
    for name, run, steps in (("5000 x 55", two, 1000), ("2000 x 17, 26 classes", letters, CLASS_STEPS)):
        ours = (processor_time(partial(run, steps), 1) - processor_time(partial(run, 0), 1)) / steps
        work = f"logistic, {steps} picks from {name}, with what `LabelWorth` needs"
        rows.append([work, f"{1e3 * ours:.1f} ms a step", "", "", "", ""])
    return rows


def _default(model: Any, pool: Pool, initial: Any, steps: int) -> sf.Trace:
    record = sf.LabelWorth()
    return sf.simulate(model, pool.X, pool.y, initial=initial, steps=steps, record=record)


def _simulated(model: Any, pool: Pool, initial: Any, steps: int, acquisition: str, **asked: Any) -> sf.Trace:
    asked |= {"X_test": pool.X_test, "y_test": pool.y_test, "acquisition": acquisition}
    return sf.simulate(model, pool.X, pool.y, initial=initial, steps=steps, **asked)


def evidence_rows() -> list[list[str]]:
    """What is computed for some rules, read from the traces, and the time of a step."""
    numbers = loaded("power plant", (5000, 4), 2000, power)
    classes = loaded("grid, classes", (5000, 11), 2000, partial(grid, classes=True))
    process = partial(_simulated, GaussianProcess(4.3, 0.065), numbers, np.arange(10), 500, "variance")
    logistic = partial(_simulated, BayesianLogistic(alpha=1.0), classes, np.arange(100), 200, "entropy")
    rules = [None, sf.ErrorStability(0.05), sf.Budget(500), sf.LabelWorth()]
    of_classes = [sf.StabilizingPredictions(), sf.OverallUncertainty()]
    rows = []
    for name, run, tried in (
        ("GP, 500 picks from 5000 x 4", process, rules),
        ("logistic, 200 picks from 5000 x 12", logistic, [*rules, *of_classes]),
    ):
        for rule in tried:
            # A run without a rule is called without record.
            asked = partial(run) if rule is None else partial(run, record=rule)
            trace = asked()
            taken = 1e3 * processor_time(asked) / len(trace)
            rule_name = "none" if rule is None else f"`{type(rule).__name__}`"
            rows.append([name, rule_name, ", ".join(f"`{field}`" for field in computed(trace)), f"{taken:.2f}"])
    return rows


def computed(trace: sf.Trace) -> list[str]:
    """What a run computed: divergences, losses on the test set, and fields of steps that are not deferred."""
    measures = trace.measures.computed if isinstance(trace.measures, DeferredMeasures) else set(trace.measures)
    losses = {name for name in ("error", "predictive_error", "wrong_share") if len(getattr(trace, name))}
    divergences = {"kl_new_old", "kl_old_new"} - {name for name in DIVERGENCES if np.isnan(getattr(trace, name)).any()}
    return [*sorted(divergences), *sorted(losses), *sorted(measures)]


def _process_step(pool: Pool, order: Any, length: float, noise: float, n: int) -> object:
    return process_step(pool, order[:n], length, noise)


def _logistic_step(pool: Pool, order: Any, basis: Any, n: int) -> object:
    return sklearn_logistic_step(pool, order[:n], basis)


def _softmax_step(pool: Pool, order: Any, classes: int, n: int) -> object:
    return sklearn_softmax_step(pool, order[:n], classes)


def main() -> None:
    parts = {
        "gp": process_rows,
        "ridge": ridge_rows,
        "logistic": logistic_rows,
        "classes": class_rows,
        "default": default_rows,
    }
    asked = [name for name in (*parts, "evidence") if name in sys.argv] or [*parts, "evidence"]
    rows = [entry for name in asked if name in parts for entry in parts[name]()]
    tables = [table(HEADER, rows)] if rows else []
    if "evidence" in asked:
        tables.append(table(EVIDENCE_HEADER, evidence_rows()))
    publish("learners", "\n\n".join(tables))


if __name__ == "__main__":
    main()
