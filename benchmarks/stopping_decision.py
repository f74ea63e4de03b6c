"""Regret of the default stopping rule on data sets that were not used to develop it, and regret of a fixed budget.

A stop after ``n`` labels costs ``n`` labels, and for each item that stays unlabelled the price of a wrong prediction
times the error: for classes the share of wrong predictions, for numbers the mean squared error of standardised targets.
The error is that of the items that stay unlabelled, which the user pays for; with ``--errors test`` it is that of a
test set, which is higher when the hardest items have been labelled. Thirteen prices from 0.1 to 100 labels are used.
The regret is the cost of the stop above that of the best stop of the run in hindsight, relative to the latter. The
budget is the number of labels that is best on all other sets, for each price.

    python benchmarks/stopping_decision.py --runs FOLDER [--sets evaluation] [--seeds 3] [--batch 10] [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from evaluation_sets import GROUPS, evaluation_set, group_names
from suffice.criteria import LabelWorth, Step, Verdict
from suffice.criteria.label_worth import total_costs
from suffice.models.capacity import most_components
from suffice.models.factory import default_model, make_model
from suffice.session.standing_stop import RuleStop
from suffice.tables.transformers import NgramComponents
from tables import publish, table
from text_models import SETS as DEVELOPMENT_TEXTS
from text_models import newsgroups

Floats = NDArray[np.float64]
INITIAL, LABELS, POOL, TEST = 10, 600, 3000, 2000
_MANY_WEIGHTS: Final = 300
#: What a wrong prediction costs, in labels.
PRICES: Final = tuple(10.0 ** (-1.0 + quarter / 4.0) for quarter in range(13))
DEFAULT_PRICE: Final = PRICES.index(1.0)
MODELS: Final = {"gp": "regression", "ridge": "regression", "logistic": "classification"}
_GROUPS: Final = ("alt.atheism", "comp.os.ms-windows.misc", "rec.motorcycles", "talk.religion.misc")
#: Texts that nothing was chosen on.
TEST_TEXTS: Final[dict[str, Callable[[], tuple[Any, Any]]]] = {"messages, 4 newsgroups": lambda: newsgroups(_GROUPS)}
FIELDS: Final = ("unlabelled_error", "reducible_error", "recent_gain", "error_scale", "calibration")
#: A field of runs with classes.
MISTAKES: Final = "selected_wrong"


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


def run(folder: Path, batch: int, job: tuple[str, str, int]) -> None:
    """One run with the default acquisition, saved as what the rule looks at and the true errors."""
    model, name, seed = job
    path = folder / f"{model}-{name}-{seed}-{batch}.npz"
    if path.exists():
        return
    X, y, X_test, y_test, components = data_of(name, seed)
    classes = np.unique(y).tolist() if MODELS[model] == "classification" else None
    labels = min(LABELS, int(0.9 * len(X)))
    size = max(batch, 5 if classes and len(classes) * X.shape[1] > _MANY_WEIGHTS else 1)
    family = model
    if classes:
        # Many columns and classes have another default model.
        default = default_model("classification", n_features=X.shape[1], n_classes=len(classes), components=components)
        family = default.name
    wrong: list[Floats] = []

    def watch(fitted: Any) -> dict[str, float]:
        predicted = fitted.predict(X)
        wrong.append((predicted != y).astype(np.float32) if classes else ((predicted - y) ** 2).astype(np.float32))
        return {}

    trace = sf.simulate(
        make_model(family, classes=classes, basis=0, components=components),
        *(X, y),
        X_test=X_test,
        y_test=y_test,
        initial=INITIAL,
        steps=(labels - INITIAL) // size,
        batch=size,
        record=LabelWorth(),
        watch=watch,
        seed=seed,
    )
    unlabelled = np.ones(len(X), dtype=bool)
    unlabelled[trace.initial] = False
    rest = np.empty(len(wrong))
    for at, picks in enumerate(trace.indices):
        unlabelled[picks] = False
        rest[at] = wrong[at][unlabelled].mean()
    part = path.with_suffix(".part")
    steps = trace.steps()
    fields = (*FIELDS, MISTAKES) if classes else FIELDS
    recorded: dict[str, Any] = {field: np.array([getattr(step, field) for step in steps]) for field in fields}
    with part.open("wb") as file:
        error = trace.wrong_share if classes else trace.predictive_error
        np.savez(file, n=trace.n_labelled, test=error, rest=rest, pool=len(X), **recorded)
    part.replace(path)
    print(*job, flush=True)


@dataclass(frozen=True, eq=False)
class Recorded:
    """A run: its set, items of the pool, labels, true errors, and the steps that the rule sees."""

    name: str
    pool: int
    n: Floats
    error: Floats
    steps: list[Step]

    @classmethod
    def load(cls, path: Path, name: str, errors: str = "rest") -> "Recorded":
        """Read a run that :func:`run` has saved, with the errors of the unlabelled items or of the test set."""
        with np.load(path) as file:
            pool = int(file["pool"])
            recorded = {field: file[field] for field in (*FIELDS, MISTAKES) if field in file}
            steps = Step.sequence(file["n"], pool_size=np.full(len(file["n"]), pool), **recorded)
            return cls(name, pool, file["n"], file[errors], steps)

    def costs(self, price: float, error: Floats | None = None) -> Floats:
        """What a stop at each step costs, in labels; with another error curve if one is given."""
        return total_costs(self.n, self.error if error is None else error, self.pool, mistake_cost=price)

    def verdicts(self, price: float) -> list[Verdict]:
        """Verdicts of the default rule at a price of a wrong prediction."""
        return LabelWorth(mistake_cost=price).observe_all(self.steps)

    def informed_verdicts(self, price: float) -> list[Verdict]:
        """The same for a rule that is told the true error after each step, in place of the model's estimate.

        No rule can know it. The regret that is left is for what the error will do with more labels.
        """
        steps = [
            replace(
                step,
                unlabelled_error=float(error) * (step.error_scale or 1.0),
                reducible_error=(step.calibration or 1.0) * (step.reducible_error or 0.0),
                calibration=1.0,
            )
            for step, error in zip(self.steps, self.error, strict=True)
        ]
        return LabelWorth(mistake_cost=price).observe_all(steps)


def stop_of(verdicts: Sequence[Verdict]) -> int:
    """The step at which the rule first says stop; the last one if it never does."""
    return next((at for at, verdict in enumerate(verdicts) if verdict.stop), len(verdicts) - 1)


@dataclass(frozen=True, eq=False)
class Regrets:
    """Regrets of all runs at all prices, ``runs x prices``, and which stops were too early at a regret above 0.1."""

    rule: Floats
    early: NDArray[np.bool_]
    withdrawn: NDArray[np.bool_]
    budget: Floats
    informed: Floats
    hindsight: Floats


def regrets(runs: Sequence[Recorded]) -> Regrets:
    """Regrets of the rule and of those that it is compared with, for each run and price.

    These are: the budget that is best on the other sets, the rule that is told the true error after each step, and the
    best stop by a smoothed curve.
    """
    budgets = np.unique(np.geomspace(INITIAL, LABELS, 50).astype(int))
    shape = (len(runs), len(PRICES))
    early, withdrawn = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    measured = Regrets(np.zeros(shape), early, withdrawn, *(np.zeros(shape) for _ in range(3)))
    sets = np.array([run.name for run in runs])
    for j, price in enumerate(PRICES):
        by_budget = np.zeros((len(runs), len(budgets)))
        for i, run in enumerate(runs):
            costs = run.costs(price)
            regret, best = costs / costs.min() - 1.0, int(costs.argmin())
            verdicts = run.verdicts(price)
            stop = stop_of(verdicts)
            measured.rule[i, j], measured.early[i, j] = regret[stop], stop < best and regret[stop] > 0.1
            later = RuleStop(verdicts).stop
            measured.withdrawn[i, j] = verdicts[stop].stop and (later is None or later.n_labelled != run.n[stop])
            measured.informed[i, j] = regret[stop_of(run.informed_verdicts(price))]
            by_budget[i] = regret[np.minimum(np.searchsorted(run.n, budgets), len(run.n) - 1)]
            width = max(3, len(run.n) // 10) | 1
            smooth = np.convolve(np.pad(run.error, width // 2, "edge"), np.ones(width) / width, "valid")
            measured.hindsight[i, j] = regret[int(run.costs(price, smooth).argmin())]
        for i, name in enumerate(sets):
            others = by_budget[sets != name] if (sets != name).any() else by_budget
            measured.budget[i, j] = by_budget[i, others.mean(axis=0).argmin()]
    return measured


def sets_of(model: str, group: str) -> list[str]:
    """Names of the data sets of a group for a model."""
    texts = {"development": list(DEVELOPMENT_TEXTS), "test": list(TEST_TEXTS)}.get(group, [])
    return [*group_names(MODELS[model], group), *(texts if model == "logistic" else [])]


def tables(load: Callable[[str, str], list[Recorded]], groups: Sequence[str]) -> str:
    """Regrets by task and group of sets, by price, and by data set."""
    rows: list[list[str]] = []
    by_price: list[list[str]] = []
    by_set: list[list[str]] = []
    for task, models in (("numbers", ("gp", "ridge")), ("classes", ("logistic",))):
        for group in groups:
            runs = [run for model in models for run in load(model, group)]
            if not runs:
                continue
            measured, title = regrets(runs), f"{len({run.name for run in runs})} {group}"
            for prices, columns in (("all 13", slice(None)), ("1", slice(DEFAULT_PRICE, DEFAULT_PRICE + 1))):
                rows.append(
                    [
                        *(task, title, str(len(runs)), prices),
                        *(_middle(each[:, columns]) for each in (measured.rule, measured.budget)),
                        f"{100 * measured.early[:, columns].mean():.1f} %",
                        f"{100 * measured.withdrawn[:, columns].mean():.1f} %",
                        *(_middle(each[:, columns]) for each in (measured.informed, measured.hindsight)),
                    ]
                )
            by_price += [
                [task, group, kind, *(f"{value:.3f}" for value in regret.mean(axis=0))]
                for kind, regret in (("LabelWorth", measured.rule), ("budget", measured.budget))
            ]
            for name in dict.fromkeys(run.name for run in runs):
                mask = [run.name == name for run in runs]
                default = f"{measured.rule[mask][:, DEFAULT_PRICE].mean():.3f}"
                by_set.append([task, group, name, *_of_set(measured, mask), default])
    head = ["task", "sets", "runs", "prices", "LabelWorth: median / mean", "budget: median / mean", "premature"]
    head += ["withdrawn later", "the rule if told the true error", "smoothed curve in hindsight"]
    price_head = ["task", "sets", "mean regret", *(f"{price:.2g}" for price in PRICES)]
    set_head = ["task", "sets", "data", "median", "mean", "premature", "budget: mean", "mean at price 1"]
    parts = (table(head, rows), "By price:", table(price_head, by_price), "By data set:", table(set_head, by_set))
    return "\n\n".join(parts)


#: Prices at which a stop is forecast, and moments of a run, as shares of the labels at the stop.
FORECAST_PRICES: Final = (0.1, 1.0, 10.0, 100.0)
MOMENTS: Final = (0.2, 0.3, 0.5, 0.7, 0.8, 0.9)


def forecast_table(load: Callable[[str, str], list[Recorded]], groups: Sequence[str]) -> str:
    """How often the forecast interval held the number of labels left, and how wide it was."""
    lines = []
    for task, models in (("numbers", ("gp", "ridge")), ("classes", ("logistic",))):
        for group in groups:
            runs = [run for model in models for run in load(model, group)]
            for price in FORECAST_PRICES:
                moments = [moment for run in runs for moment in _forecasts(run, price)]
                stated = [moment for moment in moments if moment is not None]
                if stated:
                    cells = (
                        f"{100 * np.mean([held for held, _ in stated]):.0f} %",
                        f"{np.median([width for _, width in stated]):.1f}",
                        f"{100 * (1 - len(stated) / len(moments)):.0f} %",
                    )
                    lines.append([task, group, f"{price:g}", str(len(stated)), *cells])
    head = ["task", "sets", "price", "forecasts", "interval held the truth", "upper / lower end, median"]
    return table([*head, "not predictable"], lines)


def _forecasts(run: Recorded, price: float) -> list[tuple[bool, float] | None]:
    """Forecasts of the stop of a run: whether the interval held the truth, and its width; None where there is none.

    A run that ends before the stop shows only that more labels are needed: intervals that end beyond are left out.
    """
    verdicts = run.verdicts(price)
    stop, stopped = stop_of(verdicts), verdicts[stop_of(verdicts)].stop
    moments: list[tuple[bool, float] | None] = []
    for at in dict.fromkeys(int(np.searchsorted(run.n, moment * run.n[stop])) for moment in MOMENTS):
        if at >= stop:
            continue
        forecast, left = verdicts[at].forecast, run.n[stop] - run.n[at]
        if forecast is None:
            moments.append(None)
        elif stopped or forecast.high < left:
            held = stopped and forecast.low <= left <= forecast.high
            moments.append((bool(held), forecast.high / forecast.low))
    return moments


def _middle(values: Floats) -> str:
    return f"{np.median(values):.3f} / {values.mean():.3f}"


def _of_set(measured: Regrets, mask: Any) -> list[str]:
    rule, early, budget = measured.rule[mask], measured.early[mask], measured.budget[mask]
    return [f"{np.median(rule):.3f}", f"{rule.mean():.3f}", f"{100 * early.mean():.1f} %", f"{budget.mean():.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--model", choices=list(MODELS))
    parser.add_argument("--sets", choices=[*GROUPS, "evaluation", "all"], default="evaluation")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--errors", choices=["rest", "test"], default="rest")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    groups = {"evaluation": GROUPS[2:], "all": GROUPS}.get(given.sets, (given.sets,))
    models = [given.model] if given.model else list(MODELS)
    jobs = [
        (model, name, seed)
        for seed in range(given.seeds)
        for group in groups
        for model in models
        for name in sets_of(model, group)
    ]
    with ProcessPoolExecutor(given.processes) as pool:
        list(pool.map(partial(run, given.runs, given.batch), jobs))

    @cache
    def load(model: str, group: str) -> list[Recorded]:
        paths = [
            (given.runs / f"{model}-{name}-{seed}-{given.batch}.npz", name)
            for name in (sets_of(model, group) if model in models else [])
            for seed in range(given.seeds)
        ]
        return [Recorded.load(path, name, given.errors) for path, name in paths if path.exists()]

    suffix = "" if given.batch == 1 else f"-batches-of-{given.batch}"
    of_errors = "" if given.errors == "rest" else "-test-errors"
    publish(f"stopping-decision{suffix}{of_errors}", tables(load, groups))
    publish(f"stopping-forecast{suffix}", forecast_table(load, groups))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
