"""Cost of an update of a StopMonitor relative to the user's own fit of the model, without refits for the estimate.

Processor time of one thread. A pool has 8 columns and two classes. From 500 labels on, ten labels come at a time, of
which two are random. The times are medians of the updates after the first one, and so are those of the fits. "Rest" is
the update without the time to predict the items that the rule needs: 500 for LabelWorth; for OverallUncertainty, all
unlabelled items of a pool of at most 100,000 items, and a sample of 2000 of a larger one.

    python benchmarks/update_cost.py [--write] [--quick]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, Final, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

import suffice as sf
from suffice.learner.pool_sample import PoolSample
from suffice.session.session_labels import RULE_ITEMS, sampled_items
from tables import publish, table
from timing import seconds

COLUMNS, FIRST, BATCH, UPDATES = 8, 500, 10, 9
SIZES: Final = (10_000, 100_000, 1_000_000)
MODELS: Final[dict[str, Any]] = {
    "LogisticRegression": LogisticRegression(),
    "GaussianNB": GaussianNB(),
    "KNeighbors": KNeighborsClassifier(),
    "RandomForest": RandomForestClassifier(random_state=0),
    "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
    "MLP": MLPClassifier(random_state=0, max_iter=300),
}
RULES: Final[dict[str, Callable[[], sf.Criterion]]] = {
    "LabelWorth": sf.LabelWorth,
    "OverallUncertainty": sf.OverallUncertainty,
}
LIMIT: Final = 0.25


class Cost(NamedTuple):
    """Processor times in seconds: of the predictions that a rule needs, and of an update."""

    needed: float
    update: float

    def rest(self, fit: float) -> float:
        """The update without the needed predictions, relative to a fit."""
        return max(0.0, self.update - self.needed) / fit


def predicted_items(rule: str, size: int, known: Any) -> Any:
    """The items whose predictions a rule needs."""
    if rule == "LabelWorth":
        return sampled_items(size, RULE_ITEMS["classification"])
    watched = PoolSample.draw(size, 0, wanted=True)
    return np.setdiff1d(watched.items if len(watched.items) else np.arange(size), known)


def one_update(monitor: sf.StopMonitor, data: tuple[Any, Any], model: Any, known: Any, rule: str) -> Cost:
    """The times of the predictions that the rule needs, and of the update."""
    X, labels, random = data[0], data[1][known], known[::5]
    needed = predicted_items(rule, len(X), known)
    predict = seconds(lambda: model.predict_proba(X[needed]), 1, time.process_time)
    update = seconds(lambda: monitor.update(model, known, labels, random=random), 1, time.process_time)
    return Cost(predict, update)


def measured(X: Any, y: Any, made: Any) -> tuple[float, dict[str, Cost]]:
    """The time of a fit, and the times for each rule: medians over some updates after the same fits."""
    monitors = {rule: sf.StopMonitor(X, new(), seed=0, estimate_time=0.0) for rule, new in RULES.items()}
    order, fits = np.random.default_rng(1).permutation(len(X)), []
    costs: dict[str, list[Cost]] = {rule: [] for rule in RULES}
    for n in range(FIRST, FIRST + UPDATES * BATCH, BATCH):
        model, known = clone(made), order[:n]
        fits.append(seconds(partial(model.fit, X[known], y[known]), 1, time.process_time))
        for rule, monitor in monitors.items():
            costs[rule].append(one_update(monitor, (X, y), model, known, rule))
    medians = {rule: Cost(*map(median, zip(*each[1:], strict=True))) for rule, each in costs.items()}
    return median(fits[1:]), medians


def shown(value: float) -> str:
    """A time in milliseconds."""
    return f"{1e3 * value:,.0f}" if value >= 0.1 else f"{1e3 * value:.2g}"


def row(size: int, name: str, X: Any, y: Any) -> list[str]:
    """One line of the table."""
    fit, costs = measured(X, y, MODELS[name])
    fitted = clone(MODELS[name]).fit(X[:FIRST], y[:FIRST])
    whole = seconds(lambda: fitted.predict_proba(X), 1, time.process_time)
    cells = [f"{size:,}", name, shown(fit), shown(whole)]
    for cost in costs.values():
        rest = cost.rest(fit)
        cells += [shown(cost.update), f"{cost.update / fit:.2f}", f"{rest:.2f}{'' if rest <= LIMIT else ' *'}"]
    return cells


def main() -> None:
    """Measure, and publish the table."""
    warnings.simplefilter("ignore")
    header = ["items", "model", "fit, ms", "predicting the pool, ms"]
    header += [f"{rule}: {part}" for rule in RULES for part in ("update, ms", "update / fit", "rest / fit")]
    rows = []
    for size in SIZES[: 1 if "--quick" in sys.argv else None]:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(size, COLUMNS))
        y = (X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=size) > 0.7).astype(int)
        for name in MODELS:
            rows.append(row(size, name, X, y))
            print(rows[-1], file=sys.stderr, flush=True)
    publish("update-cost", table(header, rows))


if __name__ == "__main__":
    main()
