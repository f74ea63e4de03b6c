"""Rules of Bayesian optimisation on five standard functions: evaluations saved, and the regret at the stop.

Each run is one optimisation by Optuna's sampler with a Gaussian process. It is recorded once, and all rules are judged
on the same evaluations. The models of suffice's rules are fitted again on each number of evaluations. To record, Optuna
and torch must be installed: ``pip install -c constraints.txt optuna torch``.
"""

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.criteria import Criterion, RegretBound, RegretChange, Step
from suffice.learner import OptimisationMonitor
from suffice.models import GaussianProcess

Floats = NDArray[np.float64]
TARGET: Final = Path(__file__).parent.parent / "docs" / "measured" / "optimisation-rules.md"
BUDGET: Final = 60
STARTUP: Final = 10
# Deviation of the noise, as a share of the deviation of the function over its space.
NOISE: Final = 0.1
FACTORS: Final = (1.0, 0.2)
# A stop is early if more than this share of the regret after the first evaluations would have been removed later.
EARLY: Final = 0.01


class Function(NamedTuple):
    """A standard function on the unit cube, its dimension and its least value."""

    value: Callable[[Floats], float]
    dimension: int
    least: float


def branin(u: Floats) -> float:
    """Branin on [-5, 10] x [0, 15]."""
    a, b = 15.0 * u[0] - 5.0, 15.0 * u[1]
    valley = b - 5.1 * a**2 / (4.0 * math.pi**2) + 5.0 * a / math.pi - 6.0
    return float(valley**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(a) + 10.0)


_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_A3 = np.array([[3.0, 10.0, 30.0], [0.1, 10.0, 35.0], [3.0, 10.0, 30.0], [0.1, 10.0, 35.0]])
_P3 = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])
_A6 = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
_P6 = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def hartmann(A: Floats, P: Floats) -> Callable[[Floats], float]:
    """Hartmann's function with its constants."""
    return lambda u: -float(_WEIGHTS @ np.exp(-(A * (u - P) ** 2).sum(axis=1)))


def ackley(u: Floats) -> float:
    """Ackley on [-5, 10]^2, so that the minimum is not in the middle."""
    x = 15.0 * u - 5.0
    bowl = -20.0 * math.exp(-0.2 * math.sqrt(float((x**2).mean())))
    return bowl - math.exp(float(np.cos(2.0 * math.pi * x).mean())) + 20.0 + math.e


def levy(u: Floats) -> float:
    """Levy on [-10, 10]^4."""
    w = 1.0 + (20.0 * u - 11.0) / 4.0
    middle = (w[:-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(math.pi * w[:-1] + 1.0) ** 2)
    last = (w[-1] - 1.0) ** 2 * (1.0 + math.sin(2.0 * math.pi * w[-1]) ** 2)
    return float(math.sin(math.pi * w[0]) ** 2 + middle.sum() + last)


FUNCTIONS: Final = {
    "Branin": Function(branin, 2, 0.39788735772973816),
    "Hartmann 3": Function(hartmann(_A3, _P3), 3, -3.862779787332663),
    "Hartmann 6": Function(hartmann(_A6, _P6), 6, -3.3223680114155147),
    "Ackley 2": Function(ackley, 2, 0.0),
    "Levy 4": Function(levy, 4, 0.0),
}


def optimised(name: str, noise: float, seed: int, budget: int) -> tuple[Floats, Floats, Floats]:
    """Inputs, observed and true values of one optimisation by Optuna's Gaussian process sampler."""
    optuna = import_module("optuna")
    function = FUNCTIONS[name]
    rng = np.random.default_rng([seed, 77])
    sampler = optuna.samplers.GPSampler(seed=seed, n_startup_trials=STARTUP, deterministic_objective=noise == 0.0)
    study = optuna.create_study(sampler=sampler)
    X, y, truth = [], [], []
    for _ in range(budget):
        trial = study.ask()
        u = np.array([trial.suggest_float(f"x{d}", 0.0, 1.0) for d in range(function.dimension)])
        true = function.value(u)
        seen = true + noise * float(rng.standard_normal())
        study.tell(trial, seen)
        X.append(u)
        y.append(seen)
        truth.append(true)
    return np.array(X), np.array(y), np.array(truth)


def spread(name: str) -> float:
    """Deviation of a function over its space."""
    function = FUNCTIONS[name]
    points = np.random.default_rng(1).random((4000, function.dimension))
    return float(np.std([function.value(u) for u in points]))


def watched(X: Floats, y: Floats) -> dict[str, list[Any]]:
    """The steps of a run by factor of beta; the model is learned again at each evaluation."""
    monitors = {factor: OptimisationMonitor([(0.0, 1.0)] * X.shape[1], beta_factor=factor) for factor in FACTORS}
    for n in range(STARTUP, len(y) + 1):
        model = GaussianProcess(per_feature=True).fit(X[:n], y[:n])
        for monitor in monitors.values():
            monitor.update(model)
    fields = ("n_labelled", "regret_change", "regret_change_noise", "regret_bound", "noise_deviation")
    return {
        str(factor): [{name: getattr(step, name) for name in fields} for step in monitor.steps]
        for factor, monitor in monitors.items()
    }


def terminated(X: Floats, y: Floats, noise: float) -> dict[str, int | None]:
    """Where Optuna's terminators stop: evaluations, or None."""
    optuna, terminator = import_module("optuna"), import_module("optuna.terminator")
    distributions = {f"x{d}": optuna.distributions.FloatDistribution(0.0, 1.0) for d in range(X.shape[1])}
    emmr = terminator.EMMREvaluator(deterministic_objective=noise == 0.0, seed=0)
    terminators = {
        "Optuna: EMMREvaluator, median": terminator.Terminator(emmr, terminator.MedianErrorEvaluator(emmr)),
        "Optuna: RegretBoundEvaluator, true noise": terminator.Terminator(
            terminator.RegretBoundEvaluator(seed=0), terminator.StaticErrorEvaluator(noise)
        ),
    }
    found: dict[str, int | None] = dict.fromkeys(terminators)
    study = optuna.create_study()
    for n, (u, value) in enumerate(zip(X, y, strict=True), start=1):
        params = {f"x{d}": float(each) for d, each in enumerate(u)}
        study.add_trial(optuna.create_trial(params=params, distributions=distributions, value=float(value)))
        for name, each in terminators.items():
            if n >= 2 * STARTUP and found[name] is None and each.should_terminate(study):
                found[name] = n
    return found


def record(path: Path, seeds: int, budget: int) -> None:
    """Run what is not in the file yet; one line for each run."""
    done = set()
    if path.exists():
        done = {tuple(json.loads(line)["run"]) for line in path.read_text().splitlines()}
    for seed in range(seeds):
        for name in FUNCTIONS:
            for share in (0.0, NOISE):
                if (name, share, seed) in done:
                    continue
                begun = time.perf_counter()
                noise = share * spread(name)
                X, y, truth = optimised(name, noise, seed, budget)
                steps, stops = watched(X, y), terminated(X, y, noise)
                regret = np.array([truth[: n + 1][int(np.argmin(y[: n + 1]))] for n in range(len(y))])
                line = {
                    "run": [name, share, seed],
                    "regret": (regret - FUNCTIONS[name].least).tolist(),
                    "values": y.tolist(),
                    "steps": steps,
                    "optuna": stops,
                    "seconds": time.perf_counter() - begun,
                }
                with path.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(f"{name}, noise {share:g}, seed {seed}: {line['seconds']:.0f} s", file=sys.stderr, flush=True)


#: Rules of suffice: name, factor of beta, and the rule.
RULES: Final[dict[str, tuple[float, Callable[[], Criterion]]]] = {
    "`RegretBound()`": (0.2, RegretBound),
    "`RegretBound()`, `beta_factor=1`": (1.0, RegretBound),
    "`RegretChange()`": (0.2, RegretChange),
    "`RegretChange()`, `beta_factor=1`": (1.0, RegretChange),
    "`RegretChange().patience(3)`": (0.2, lambda: RegretChange().patience(3)),
    "`RegretChange(share=0.1)`": (0.2, lambda: RegretChange(share=0.1)),
    "`RegretChange(share=0.1).patience(3)`": (0.2, lambda: RegretChange(share=0.1).patience(3)),
    "`RegretChange(share=0.1, calibration=10)`": (0.2, lambda: RegretChange(share=0.1, calibration=10)),
    "`RegretChange(share=0.1)`, `beta_factor=1`": (1.0, lambda: RegretChange(share=0.1)),
    "`RegretChange(share=0.01)`": (0.2, lambda: RegretChange(share=0.01)),
}
FIXED: Final = (20, 30, 40, 50, 60)
STAGNANT: Final = (10, 20)


def stop_of(rule: Criterion, steps: list[dict[str, Any]]) -> int | None:
    """Evaluations at which a rule first stops."""
    return next((step["n_labelled"] for step in steps if rule.observe(Step(**step)).stop), None)


def stagnant(values: list[float], patience: int) -> int | None:
    """Evaluations at which no better value has come for a while."""
    best = np.minimum.accumulate(values)
    for n in range(STARTUP + patience, len(values) + 1):
        if best[n - 1] == best[n - 1 - patience]:
            return n
    return None


def stops(run: dict[str, Any]) -> dict[str, int | None]:
    """Where each rule stops in a run, by name."""
    found = {name: stop_of(make(), run["steps"][str(factor)]) for name, (factor, make) in RULES.items()}
    found |= run["optuna"]
    found |= {f"no better value in {patience}": stagnant(run["values"], patience) for patience in STAGNANT}
    return found | {f"{n} evaluations": n for n in FIXED}


class Judged(NamedTuple):
    """A rule on one run: evaluations, whether it stopped, and shares of the regret at the start."""

    evaluations: int
    stopped: bool
    left: float
    forgone: float


def judged(run: dict[str, Any], stop: int | None) -> Judged:
    """Return what a stop costs; a rule that never stops uses all evaluations."""
    regret, budget = run["regret"], len(run["regret"])
    n = budget if stop is None else stop
    start, end = regret[STARTUP - 1], regret[-1]
    return Judged(n, stop is not None, regret[n - 1] / start, (regret[n - 1] - end) / start)


def table(runs: list[dict[str, Any]]) -> list[str]:
    """One row for each rule."""
    budget = len(runs[0]["regret"])
    lines = [
        "| rule | runs stopped | evaluations | saved | regret left, median | regret left, mean | early stops |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    found = [stops(run) for run in runs]
    for name in found[0]:
        of = [judged(run, each[name]) for run, each in zip(runs, found, strict=True)]
        evaluations = np.mean([each.evaluations for each in of])
        left = [each.left for each in of]
        lines.append(
            f"| {name} | {np.mean([each.stopped for each in of]):.0%} | {evaluations:.0f} "
            f"| {1 - evaluations / budget:.0%} "
            f"| {np.median(left):.1%} | {np.mean(left):.1%} | {np.mean([each.forgone > EARLY for each in of]):.0%} |"
        )
    return lines


def by_function(runs: list[dict[str, Any]]) -> list[str]:
    """Evaluations and regret left of some rules on each function."""
    names = [
        "`RegretBound()`",
        "`RegretChange()`",
        "`RegretChange(share=0.1)`",
        "no better value in 20",
        "60 evaluations",
    ]
    lines = [f"| function, noise | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    for function in FUNCTIONS:
        for share in (0.0, NOISE):
            some = [run for run in runs if run["run"][:2] == [function, share]]
            found = [stops(run) for run in some]
            cells = []
            for name in names:
                of = [judged(run, each[name]) for run, each in zip(some, found, strict=True)]
                left = np.mean([each.left for each in of])
                cells.append(f"{np.mean([each.evaluations for each in of]):.0f}, {left:.1%}")
            lines.append(f"| {function}, {share:g} | {' | '.join(cells)} |")
    return lines


def report(path: Path) -> str:
    """The tables in Markdown."""
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    seeds = len({run["run"][2] for run in runs})
    budget = len(runs[0]["regret"])
    parts = [
        f"{len(runs)} runs: {len(FUNCTIONS)} functions, with and without noise, {seeds} seeds, {budget} evaluations "
        f"each by Optuna's `GPSampler`, the first {STARTUP} at random. The noise has {NOISE:.0%} of the deviation of "
        'the function. The regret is that of the point with the best observed value; "regret left" is its share of '
        f"that after {STARTUP} evaluations. A stop is early if later evaluations of the run removed more than "
        f"{EARLY:.0%} of it. A rule that does not stop uses all evaluations.",
    ]
    for share, title in ((0.0, "Without noise"), (NOISE, "With noise")):
        parts += ["", f"**{title}**", "", *table([run for run in runs if run["run"][1] == share])]
    parts += ["", "**Evaluations and mean regret left by function**", "", *by_function(runs)]
    return "\n".join(parts) + "\n"


def main() -> None:
    """Record the runs that are missing, and print the tables or write them to the documentation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, required=True, help="file of recorded runs, which is continued")
    parser.add_argument("--seeds", type=int, default=4, help="seeds; 0 for the recorded runs alone")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--write", action="store_true", help=f"write {TARGET.name}")
    options = parser.parse_args()
    if options.seeds:
        warnings.filterwarnings("ignore")
        optuna = import_module("optuna")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        record(options.runs, options.seeds, options.budget)
    text = report(options.runs)
    if options.write:
        TARGET.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
