"""How many labels an acquisition needs for the error that random labels reach, by model and data set.

The cost ratio is the number of labels after which the mean error curve of an acquisition reaches the error that random
labels have at the reference number, divided by that number. Below 1 the acquisition saves labels. Its interval is a
bootstrap over the seeds, which draw another pool, test set and start each. Runs are kept in a folder, so that an
interrupted benchmark goes on where it was:

    python benchmarks/acquisitions.py --runs FOLDER [--model gp] [--seeds 4] [--sets development] [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

import suffice as sf
from evaluation_sets import evaluation_set, names
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from tables import publish, table

Floats = NDArray[np.float64]
#: Labels of a run, at which number of random labels the error is to be reached, and labels at the start.
LABELS, REFERENCE, INITIAL = 300, 120, 10
_RESAMPLES: Final = 200
_MANY_WEIGHTS: Final = 300


class Strategy(NamedTuple):
    """An acquisition with its share of random labels."""

    name: str
    acquisition: str
    share: float = 0.0


STRATEGIES: Final = {
    "gp": (
        Strategy("random", "random"),
        Strategy("largest variance (0.7)", "variance"),
        Strategy("variance reduction, a fifth random", "variance-reduction", 0.2),
    ),
    "ridge": (
        Strategy("random", "random"),
        Strategy("largest variance (0.7)", "variance"),
        Strategy("variance reduction, a fifth random", "variance-reduction", 0.2),
    ),
    "logistic": (
        Strategy("random", "random"),
        Strategy("entropy (0.7)", "entropy"),
        Strategy("entropy, a fifth random", "entropy", 0.2),
        Strategy("margin, a fifth random", "margin", 0.2),
    ),
}
TASKS: Final = {"gp": "regression", "ridge": "regression", "logistic": "classification"}


def model_of(name: str) -> Any:
    if name == "gp":
        return GaussianProcess()
    return BayesianRidge() if name == "ridge" else BayesianLogistic(alpha=1.0)


def run(folder: Path, job: tuple[str, str, Strategy, int]) -> None:
    """One run, saved as its error curves by number of labels."""
    model, data, strategy, seed = job
    path = folder / f"{model}-{data}-{strategy.name}-{seed}.npz"
    if path.exists():
        return
    X, y, X_test, y_test = evaluation_set(data).split(seed)
    labels = min(LABELS, int(0.6 * len(X)))
    # A posterior of many weights is slow, so labels are bought ten at a time there.
    weights = len(np.unique(y)) * X.shape[1] if TASKS[model] == "classification" else 0
    batch = 10 if weights > _MANY_WEIGHTS else 1
    trace = sf.simulate(
        model_of(model),
        X,
        y,
        X_test=X_test,
        y_test=y_test,
        initial=INITIAL,
        steps=(labels - INITIAL) // batch,
        batch=batch,
        acquisition=strategy.acquisition,
        random_share=strategy.share,
        seed=seed,
    )
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        np.savez(file, n=trace.n_labelled, error=trace.predictive_error, wrong=trace.wrong_share)
    part.replace(path)


def curves(runs: str, seeds: int, loss: str) -> Floats:
    """Error curves of the runs whose files begin like this, one number for each label, ``seeds x labels``."""
    found = []
    for seed in range(seeds):
        with np.load(f"{runs}-{seed}.npz") as file:
            every = np.arange(INITIAL + 1, file["n"][-1] + 1)
            found.append(np.interp(every, file["n"], file["wrong" if loss == "wrong" else "error"]))
    return np.array(found)


def reached(curve: Floats, target: float) -> int:
    """Labels at which the falling part of a mean curve reaches a target; the end of the run if it does not."""
    n = INITIAL + 1 + np.arange(len(curve))
    falling = IsotonicRegression(increasing=False).fit_transform(n, curve)
    below = np.flatnonzero(falling <= target)
    return int(n[below[0]]) if len(below) else int(n[-1])


def cost_ratio(strategy: Floats, random: Floats) -> tuple[float, float, float]:
    """Labels for the same error relative to random labels, with a 90 % interval by resampling the seeds."""
    rng = np.random.default_rng(0)
    at = min(REFERENCE, int(0.5 * random.shape[1])) - INITIAL - 1

    def ratio(rows: Any) -> float:
        plain = IsotonicRegression(increasing=False).fit_transform(
            np.arange(random.shape[1]), random[rows].mean(axis=0)
        )
        mixed = reached(strategy[rows].mean(axis=0), float(plain[at]))
        return mixed / reached(random[rows].mean(axis=0), float(plain[at]))

    everyone = np.arange(len(random))
    drawn = [ratio(rng.choice(everyone, len(everyone))) for _ in range(_RESAMPLES)]
    low, high = np.quantile(drawn, [0.05, 0.95])
    return ratio(everyone), float(low), float(high)


def measure(folder: Path, model: str, sets: list[str], seeds: int, loss: str) -> str:
    """The table of one model: one row a data set, one column a strategy."""
    others = STRATEGIES[model][1:]
    rows, ratios = [], []
    for data in sets:
        random, *chosen = (curves(f"{folder}/{model}-{data}-{each.name}", seeds, loss) for each in STRATEGIES[model])
        found = [cost_ratio(each, random) for each in chosen]
        ratios.append([ratio for ratio, _, _ in found])
        kind = "development" if evaluation_set(data).development else "test"
        rows.append([data, kind, *(f"{ratio:.2f} ({low:.2f} to {high:.2f})" for ratio, low, high in found)])
    logs = np.log(ratios)
    for name, wanted in (("development", True), ("test", False)):
        kept = [k for k, data in enumerate(sets) if evaluation_set(data).development == wanted]
        if kept:
            rows.append([f"**median of {name}**", "", *(f"**{v:.2f}**" for v in np.exp(np.median(logs[kept], axis=0)))])
    return table(["data set", "used for", *(each.name for each in others)], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--model", choices=list(STRATEGIES))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--sets", choices=["development", "test", "all"], default="all")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    wanted = {"development": True, "test": False, "all": None}[given.sets]
    parts = []
    for model in [given.model] if given.model else list(STRATEGIES):
        sets = names(TASKS[model], development=wanted)
        jobs = [(model, data, each, seed) for data in sets for each in STRATEGIES[model] for seed in range(given.seeds)]
        with ProcessPoolExecutor(given.processes) as pool:
            for done, _ in enumerate(pool.map(partial(run, given.runs), jobs), 1):
                print(f"\r{model}: {done} of {len(jobs)} runs", end="", file=sys.stderr)
        print(file=sys.stderr)
        losses = {"gp": ["squared error"], "ridge": ["squared error"], "logistic": ["wrong", "log loss"]}[model]
        for loss in losses:
            shown = {"wrong": "share of wrong predictions"}.get(loss, loss)
            parts.append(f"**{model}, {shown}**\n\n{measure(given.runs, model, sets, given.seeds, loss)}")
    publish("acquisitions", "\n\n".join(parts), sys.argv[1:])


if __name__ == "__main__":
    main()
