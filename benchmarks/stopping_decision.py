"""Regret of the default stopping rule on data sets that were not used to develop it, and regret of a fixed budget.

A stop after ``n`` labels costs ``n`` labels and ``A`` times the error: for classes the share of wrong predictions, for
numbers the mean squared error of standardised targets. ``A`` is what a wrong prediction costs times the number of items
that stay unlabelled: 0.1 to 10 labels times 2,000 to 200,000 items, and the thirteen prices of the comparison of rules.
The regret is relative to the best stop of the run in hindsight. The budget is the one that is best on all other sets.

    python benchmarks/stopping_decision.py --runs FOLDER [--sets test] [--seeds 3] [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from evaluation_sets import decision_names, evaluation_set, names
from suffice.criteria import LabelWorth, Step
from suffice.models.capacity import most_components
from suffice.models.factory import make_model
from suffice.tables.transformers import NgramComponents
from suffice_research.recommendation.stopping_costs import RATIOS
from tables import publish, table
from text_models import SETS as DEVELOPMENT_TEXTS
from text_models import newsgroups

Floats = NDArray[np.float64]
INITIAL, LABELS, POOL, TEST = 10, 500, 3000, 2000
_MANY_WEIGHTS: Final = 300
_RESAMPLES: Final = 2000
#: What an error of 1 costs in labels: a wrong prediction among the unlabelled items, times their number.
UNITS: Final = tuple(sorted({price * rest for price in (0.1, 0.3, 1.0, 3.0, 10.0) for rest in (2e3, 2e4, 2e5)}))
MODELS: Final = {"gp": "regression", "ridge": "regression", "logistic": "classification"}
_GROUPS: Final = ("alt.atheism", "comp.os.ms-windows.misc", "rec.motorcycles", "talk.religion.misc")
#: Texts that nothing was chosen on.
TEST_TEXTS: Final[dict[str, Callable[[], tuple[Any, Any]]]] = {"messages, 4 newsgroups": lambda: newsgroups(_GROUPS)}
FIELDS: Final = ("unlabelled_error", "reducible_error", "recent_gain", "error_scale", "calibration")


@cache
def _texts(name: str) -> tuple[Any, Any]:
    return TEST_TEXTS[name]() if name in TEST_TEXTS else DEVELOPMENT_TEXTS[name][1]()


def data_of(name: str, seed: int) -> tuple[Any, Any, Any, Any, tuple[tuple[int, int], ...]]:
    """Pool, its labels, test set, its labels, and the components of a text."""
    if name not in TEST_TEXTS and name not in DEVELOPMENT_TEXTS:
        X, y, X_test, y_test = evaluation_set(name).split(seed)
        return X, y, X_test[:TEST], y_test[:TEST], ()
    texts, codes = _texts(name)
    order = np.random.default_rng([seed, 77]).permutation(len(codes))
    pool, test = order[: min(POOL, 2 * len(order) // 3)], order[-min(TEST, len(order) // 3) :]
    components = NgramComponents(most_components(int(codes.max()) + 1, len(pool)))
    X = components.fit_transform(texts[pool])
    return X, codes[pool], components.transform(texts[test]), codes[test], ((0, int(components.kept_.sum())),)


def run(folder: Path, job: tuple[str, str, int]) -> None:
    """One run with the default acquisition, saved as what the rule looks at and the true errors."""
    model, name, seed = job
    path = folder / f"{model}-{name}-{seed}.npz"
    if path.exists():
        return
    X, y, X_test, y_test, components = data_of(name, seed)
    classes = np.unique(y).tolist() if MODELS[model] == "classification" else None
    labels = min(LABELS, int(0.6 * len(X)))
    batch = 5 if classes and len(classes) * X.shape[1] > _MANY_WEIGHTS else 1
    trace = sf.simulate(
        make_model(model, classes=classes, basis=0, components=components),
        *(X, y),
        X_test=X_test,
        y_test=y_test,
        initial=INITIAL,
        steps=(labels - INITIAL) // batch,
        batch=batch,
        record=LabelWorth(),
        seed=seed,
    )
    part = path.with_suffix(".part")
    steps = trace.steps()
    recorded: dict[str, Any] = {field: np.array([getattr(step, field) for step in steps]) for field in FIELDS}
    with part.open("wb") as file:
        error = trace.wrong_share if classes else trace.predictive_error
        np.savez(file, n=trace.n_labelled, error=error, pool=len(X), **recorded)
    part.replace(path)
    print(*job, flush=True)


@dataclass(frozen=True, eq=False)
class Recorded:
    """A run: its set, labels, true errors, and the steps that the rule sees."""

    name: str
    n: Floats
    error: Floats
    steps: list[Step]

    @classmethod
    def load(cls, path: Path, name: str) -> "Recorded":
        """Read a run that :func:`run` has saved."""
        with np.load(path) as file:
            recorded = {field: file[field] for field in FIELDS}
            steps = Step.sequence(file["n"], pool_size=np.full(len(file["n"]), int(file["pool"])), **recorded)
            return cls(name, file["n"], file["error"], steps)

    def costs(self, price: float, *, above_best: bool) -> Floats:
        """What a stop at each step costs, in labels."""
        return np.asarray(price * (self.error - (self.error.min() if above_best else 0.0)) + self.n)


def stop_of(run: Recorded, price: float) -> int:
    """The step at which the default rule stops where an error of 1 costs so many labels."""
    rule = LabelWorth(price, 1.0)
    for at, step in enumerate(run.steps):
        if rule.observe(step).stop:
            return at
    return len(run.steps) - 1


@dataclass(frozen=True, eq=False)
class Regrets:
    """Regrets of all runs at all prices, ``runs x prices``, and which stops were too early at a regret above 0.1."""

    rule: Floats
    early: NDArray[np.bool_]
    budget: Floats
    hindsight: Floats


def regrets(runs: Sequence[Recorded], prices: Sequence[float], *, above_best: bool) -> Regrets:
    """Regrets of the rule, of the budget that is best on the other sets, and of the best stop by a smoothed curve."""
    budgets = np.unique(np.geomspace(INITIAL + 1, LABELS, 40).astype(int))
    shape = (len(runs), len(prices))
    found = Regrets(np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(shape), np.zeros(shape))
    sets = np.array([run.name for run in runs])
    for j, price in enumerate(prices):
        by_budget = np.zeros((len(runs), len(budgets)))
        for i, run in enumerate(runs):
            costs = run.costs(price, above_best=above_best)
            regret, best = costs / costs.min() - 1.0, int(costs.argmin())
            stop = stop_of(run, price)
            found.rule[i, j], found.early[i, j] = regret[stop], stop < best and regret[stop] > 0.1
            by_budget[i] = regret[np.minimum(np.searchsorted(run.n, budgets), len(run.n) - 1)]
            width = max(3, len(run.n) // 10) | 1
            smooth = np.convolve(np.pad(run.error, width // 2, "edge"), np.ones(width) / width, "valid")
            found.hindsight[i, j] = regret[int((price * smooth + run.n).argmin())]
        for i, name in enumerate(sets):
            found.budget[i, j] = by_budget[i, by_budget[sets != name].mean(axis=0).argmin()]
    return found


def difference(found: Regrets, sets: Sequence[str]) -> tuple[float, float, float]:
    """Mean regret of the budget less that of the rule, with a 95 % interval by resampling the sets."""
    means = np.array([(found.budget - found.rule)[[s == name for s in sets]].mean() for name in dict.fromkeys(sets)])
    rng = np.random.default_rng(0)
    drawn = means[rng.integers(0, len(means), (_RESAMPLES, len(means)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(means.mean()), float(low), float(high)


def sets_of(model: str, *, development: bool) -> list[str]:
    """Names of the sets that the rule was developed on, or of those that it is tested on."""
    task = MODELS[model]
    found = names(task) if development else decision_names(task)
    texts = DEVELOPMENT_TEXTS if development else TEST_TEXTS
    return [*found, *texts] if model == "logistic" else found


def tables(load: Callable[[str, bool], list[Recorded]], developments: Sequence[bool]) -> str:
    head = ["model", "sets", "units", "median", "mean", "too early", "budget: median", "mean", "budget less rule"]
    head.append("smoothed curve in hindsight: median, mean")
    rows, details = [], []
    for model in MODELS:
        for development in developments:
            runs = load(model, development)
            if not runs:
                continue
            kind = f"{len({run.name for run in runs})} of {'development' if development else 'test'}"
            for units, prices, above in (("whole costs", UNITS, False), ("above the best error", RATIOS, True)):
                found = regrets(runs, prices, above_best=above)
                middle, low, high = difference(found, [run.name for run in runs])
                rows.append(
                    [
                        *(model, kind, units),
                        *(
                            f"{np.median(found.rule):.3f}",
                            f"{found.rule.mean():.3f}",
                            f"{100 * found.early.mean():.1f} %",
                        ),
                        *(f"{np.median(found.budget):.3f}", f"{found.budget.mean():.3f}"),
                        f"{middle:.3f} ({low:.3f} to {high:.3f})",
                        f"{np.median(found.hindsight):.3f}, {found.hindsight.mean():.3f}",
                    ]
                )
                if not above:
                    details += [
                        [model, kind.rsplit(maxsplit=1)[-1], name, *_of_set(found, [run.name == name for run in runs])]
                        for name in dict.fromkeys(run.name for run in runs)
                    ]
    by_set = table(["model", "", "data", "median", "mean", "too early", "budget: mean"], details)
    return f"{table(head, rows)}\n\nIn whole costs, by data set:\n\n{by_set}"


#: Prices at which most runs stop, and moments of a run at which its stop is forecast, as shares of the labels at it.
FORECAST_PRICES: Final = (200.0, 600.0, 2000.0, 6000.0, 20000.0, 60000.0)
MOMENTS: Final = (0.3, 0.5, 0.7, 0.8, 0.9)


def forecast_table(load: Callable[[str, bool], list[Recorded]], developments: Sequence[bool]) -> str:
    """How often the forecast interval held the number of labels left, and how wide it was."""
    lines = []
    for model in MODELS:
        for development in developments:
            found: dict[float, list[tuple[bool, float] | None]] = {moment: [] for moment in MOMENTS}
            for run in load(model, development):
                for price in FORECAST_PRICES:
                    rule = LabelWorth(price, 1.0)
                    verdicts = [rule.observe(step) for step in run.steps]
                    stop = next((at for at, verdict in enumerate(verdicts) if verdict.stop), 0)
                    for moment in MOMENTS:
                        at = int(np.searchsorted(run.n, moment * run.n[stop]))
                        if not 3 <= at < stop:
                            continue
                        forecast, left = verdicts[at].forecast, run.n[stop] - run.n[at]
                        held = None if forecast is None else (forecast.low <= left <= forecast.high)
                        width = None if forecast is None else forecast.high / forecast.low
                        found[moment].append(None if held is None or width is None else (bool(held), width))
            for moment, moments in found.items():
                told = [each for each in moments if each is not None]
                if told:
                    cells = (
                        f"{100 * np.mean([held for held, _ in told]):.0f} %",
                        f"{np.median([width for _, width in told]):.1f}",
                        f"{100 * (1 - len(told) / len(moments)):.0f} %",
                    )
                    kind = "development" if development else "test"
                    lines.append([model, kind, f"{100 * moment:.0f} %", str(len(moments)), *cells])
    head = ["model", "sets", "at this share of the labels at the stop", "moments", "interval held the truth"]
    return table([*head, "upper / lower end, median", "not predictable"], lines)


def _of_set(found: Regrets, mask: Any) -> list[str]:
    rule, early, budget = found.rule[mask], found.early[mask], found.budget[mask]
    return [f"{np.median(rule):.3f}", f"{rule.mean():.3f}", f"{100 * early.mean():.1f} %", f"{budget.mean():.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--model", choices=list(MODELS))
    parser.add_argument("--sets", choices=["development", "test", "all"], default="test")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    developments = {"development": [True], "test": [False], "all": [True, False]}[given.sets]
    models = [given.model] if given.model else list(MODELS)
    jobs = [
        (model, name, seed)
        for seed in range(given.seeds)
        for development in developments
        for model in models
        for name in sets_of(model, development=development)
    ]
    with ProcessPoolExecutor(given.processes) as pool:
        list(pool.map(partial(run, given.runs), jobs))

    def load(model: str, development: bool) -> list[Recorded]:
        paths = [
            (given.runs / f"{model}-{name}-{seed}.npz", name)
            for name in (sets_of(model, development=development) if model in models else [])
            for seed in range(given.seeds)
        ]
        return [Recorded.load(path, name) for path, name in paths if path.exists()]

    publish("stopping-decision", tables(load, developments))
    publish("stopping-forecast", forecast_table(load, developments))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
