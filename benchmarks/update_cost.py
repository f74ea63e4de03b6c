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
    """Processor times in seconds: of a fit, of the predictions that the rule needs, and of an update."""

    fit: float
    needed: float
    update: float

    @property
    def rest(self) -> float:
        """The update without predictions, relative to the fit."""
        return max(0.0, self.update - self.needed) / self.fit


def predicted_items(rule: str, size: int, known: Any) -> Any:
    """The items whose predictions a rule needs."""
    if rule == "LabelWorth":
        return sampled_items(size, RULE_ITEMS["classification"])
    watched = PoolSample.draw(size, 0, wanted=True)
    return np.setdiff1d(watched.items if len(watched.items) else np.arange(size), known)


def one_round(monitor: sf.StopMonitor, data: tuple[Any, Any], model: Any, known: Any, rule: str) -> Cost:
    """The times of a fit, of the predictions that the rule needs, and of the update with the model."""
    X, labels, random = data[0], data[1][known], known[::5]
    needed = predicted_items(rule, len(X), known)
    fit = seconds(lambda: model.fit(X[known], labels), 1, time.process_time)
    predict = seconds(lambda: model.predict_proba(X[needed]), 1, time.process_time)
    update = seconds(lambda: monitor.update(model, known, labels, random=random), 1, time.process_time)
    return Cost(fit, predict, update)


def measured(X: Any, y: Any, made: Any, rule: str) -> Cost:
    """Medians over some updates."""
    monitor = sf.StopMonitor(X, RULES[rule](), seed=0, estimate_time=0.0)
    order = np.random.default_rng(1).permutation(len(X))
    rounds = [order[:n] for n in range(FIRST, FIRST + UPDATES * BATCH, BATCH)]
    costs = [one_round(monitor, (X, y), clone(made), known, rule) for known in rounds]
    return Cost(*(median(times) for times in zip(*costs[1:], strict=True)))


def shown(value: float) -> str:
    """A time in milliseconds."""
    return f"{1e3 * value:.3g}"


def row(size: int, name: str, X: Any, y: Any) -> list[str]:
    """One line of the table."""
    costs = {rule: measured(X, y, MODELS[name], rule) for rule in RULES}
    fitted = clone(MODELS[name]).fit(X[:FIRST], y[:FIRST])
    whole = seconds(lambda: fitted.predict_proba(X), 1, time.process_time)
    cells = [f"{size:,}", name, shown(costs["LabelWorth"].fit), shown(whole)]
    for cost in costs.values():
        reached = "" if cost.rest <= LIMIT else " *"
        cells += [shown(cost.update), f"{cost.update / cost.fit:.2f}", f"{cost.rest:.2f}{reached}"]
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
