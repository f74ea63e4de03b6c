"""How often the estimate of a StopMonitor holds the truth: with predictions, right answers, sets of classes, models.

Twenty labels are given at a time, in pools of 1,500 items or all items of a set: all of them at random, or a quarter
(five) of them. The others have the smallest margin; for numbers, they are the farthest from all labelled items. At 40,
80, 120, 160 and 200 labels, the 90 % interval is compared with the true error of the unlabelled items. The pools are
simulated, from scikit-learn, and from the catalogue (``SUFFICE_DATA``).

``without refits`` and ``with refits`` are the model itself with ``estimate_time=0`` and with the default. The others
are what a program in another language can give. Sets of four or five classes are the binary digits of the class number;
for them there are 30, 60 and 90 random labels, and a check of 60 items.

    python benchmarks/pool_predictions.py [--seeds 6] [--processes 1] [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from estimate_conditions import changed
from evaluation_sets import evaluation_set
from suffice import Budget, StopMonitor
from tables import publish, table

POOL: Final = 1500
FIRST: Final = 20
ROUND: Final = 20
READ_AT: Final = (40, 80, 120, 160, 200)
SHARES: Final = (1.0, 0.25)
#: Pools for sets of classes, their labels at each update, and the items of the check.
SETS_POOL: Final = 800
SETS_COUNTS: Final = (30, 60, 90)
CHECKED: Final = 60
PROBABILITIES, PREDICTIONS, CORRECT = "probabilities=", "predictions=", "correct="
MODEL_ALONE, REFITTED = "without refits", "with refits"
KINDS: Final = (PROBABILITIES, PREDICTIONS, CORRECT, MODEL_ALONE, REFITTED)

CLASSIFIERS: Final[dict[str, Callable[[], Any]]] = {
    "logistic regression": lambda: LogisticRegression(max_iter=300),
    "naive Bayes": GaussianNB,
    "decision tree": lambda: DecisionTreeClassifier(random_state=0),
    "1 nearest neighbour": lambda: KNeighborsClassifier(1),
    "support vectors": lambda: SVC(random_state=0),
}
REGRESSORS: Final[dict[str, Callable[[], Any]]] = {
    "ridge": lambda: Ridge(1.0),
    "decision tree, numbers": lambda: DecisionTreeRegressor(random_state=0),
    "1 nearest neighbour, numbers": lambda: KNeighborsRegressor(1),
}
SET_MODELS: Final[dict[str, Callable[[], Any]]] = {
    "decision tree": lambda: DecisionTreeClassifier(random_state=0),
    "1 nearest neighbour": lambda: KNeighborsClassifier(1),
    "logistic regression": lambda: OneVsRestClassifier(LogisticRegression(max_iter=300)),
}
REAL: Final = ("digits", "breast cancer", "adult", "letter", "grid classes", "htru2", "skin")
RARE: Final = ("digits", "adult", "letter", "grid classes", "htru2")
FIFTY: Final = ("50 clusters", "digits and letter")
NUMBERS: Final = ("diabetes", "power plant", "protein", "gas emission", "grid")
#: Kinds of data: names of the sets.
CASES: Final[dict[str, tuple[str, ...]]] = {
    "simulated": ("simulated",),
    "real sets": REAL,
    "rare class, 2 %": RARE,
    "50 classes": FIFTY,
    "numbers": NUMBERS,
}
SETS_OF_CLASSES: Final = ("simulated", "digits", "letter")


class Job(NamedTuple):
    """One run.

    Attributes:
        case: The kind of data.
        data, model: Names.
        share: Share of the labels that is drawn at random.
        seed: Seed of the pool and of the labels.
    """

    case: str
    data: str
    model: str
    share: float
    seed: int


class Compared(NamedTuple):
    """An interval and the truth.

    Attributes:
        kind: What the monitor was given.
        labels: Number of labels.
        held: Whether the interval holds the true error.
        width: Its width; for numbers relative to the variance of the labels.
        side: -1 if the interval lies below the truth, 1 if above it, otherwise 0.
    """

    kind: str
    labels: int
    held: bool
    width: float
    side: int


def data_of(job: Job) -> tuple[Any, Any]:
    """Pool and labels."""
    rng = np.random.default_rng([job.seed, 60])
    if job.data == "simulated":
        noise, X = rng.choice([0.2, 0.5, 1.0]), rng.normal(size=(POOL, 4))
        product = rng.choice([0.0, 0.5]) * X[:, 1] * X[:, 2]
        return X, np.where(X[:, 0] + product + noise * rng.normal(size=POOL) > 0.0, "b", "a")
    change = {"rare class, 2 %": "rare", "50 classes": "classes"}.get(job.case, "")
    if change:
        return changed(job.data, change, job.seed, POOL)
    found = evaluation_set(job.data)
    rows = rng.permutation(len(found.X))[:POOL]
    return found.X[rows], found.y[rows]


class Beside:
    """The monitors of a run, which are told the same labels.

    Args:
        X: The pool.
        labels: The true labels of all items.
        numbers: Whether they are numbers.
    """

    def __init__(self, X: Any, labels: Any, *, numbers: bool) -> None:
        self._X, self._labels, self._numbers = X, labels, numbers
        self._monitors: dict[str, StopMonitor] = {}

    def _monitor(self, kind: str) -> StopMonitor:
        pool = self._X if kind in (MODEL_ALONE, REFITTED) else range(len(self._X))
        time = 1.0 if kind == REFITTED else 0.0
        return self._monitors.setdefault(kind, StopMonitor(pool, Budget(9999), estimate_time=time))

    def tell(self, model: Any, known: list[int], drawn: list[int], right: dict[int, bool]) -> None:
        """Tell each monitor the labels, with what it is given of the model."""
        told: dict[str, Any] = {"indices": known, "random": drawn}
        labels = self._labels[known]
        predicted = model.predict(self._X)
        classes = {} if self._numbers else {"classes": model.classes_}
        self._monitor(PREDICTIONS).update(predictions=predicted, labels=labels, **classes, **told)
        if hasattr(model, "predict_proba"):
            p = model.predict_proba(self._X)
            self._monitor(PROBABILITIES).update(probabilities=p, labels=labels, **classes, **told)
        if not self._numbers:
            self._monitor(CORRECT).update(correct=right, **told)
        for kind in (MODEL_ALONE, REFITTED):
            self._monitor(kind).update(model, labels=labels, **told)

    def compare(self, truth: float, n: int) -> list[Compared]:
        """Compare the interval of each monitor with the true error."""
        scale = float(np.var(self._labels)) if self._numbers else 1.0
        return [compared(kind, n, monitor.error_estimate(), truth, scale) for kind, monitor in self._monitors.items()]


def compared(kind: str, n: int, found: Any, truth: float, scale: float = 1.0) -> Compared:
    """Compare an estimate with the truth."""
    side = int(found.low > truth) - int(found.high < truth)
    return Compared(kind, n, side == 0, (found.high - found.low) / scale, side)


def run(job: Job) -> list[Compared]:
    """The comparisons of one run."""
    warnings.simplefilter("ignore")
    X, y = data_of(job)
    numbers = job.case == "numbers"
    make = (REGRESSORS if numbers else CLASSIFIERS)[job.model]
    rng, held = np.random.default_rng([job.seed, 61]), []
    known = rng.permutation(len(X))[:FIRST].tolist()
    drawn, right, monitors = list(known), dict[int, bool](), Beside(X, y, numbers=numbers)
    while len(known) <= READ_AT[-1]:
        rest = np.setdiff1d(np.arange(len(X)), known)
        if len(set(y[known])) < 2:  # most models require two classes
            more = rng.choice(rest, ROUND, replace=False).tolist()
            known, drawn = known + more, drawn + more
            continue
        model = make().fit(X[known], y[known])
        monitors.tell(model, known, drawn, right)
        predicted = model.predict(X)
        wrong = (predicted - y) ** 2 if numbers else predicted != y
        if len(known) in READ_AT:
            held += monitors.compare(float(wrong[rest].mean()), len(known))
        order = farthest(X, known, rest) if numbers else least_sure(model, X, rest, rng)
        chosen = order[: ROUND - round(job.share * ROUND)]
        random = rng.choice(np.setdiff1d(rest, chosen), ROUND - len(chosen), replace=False)
        new = [*chosen.tolist(), *random.tolist()]
        right = {} if numbers else {item: not wrong[item] for item in new}
        known, drawn = known + new, drawn + random.tolist()
    return held


def farthest(X: Any, known: list[int], rest: Any) -> Any:
    """Unlabelled items by their distance from the nearest labelled item, the farthest first."""
    return rest[np.argsort(-cdist(X[rest], X[known]).min(axis=1))]


def least_sure(model: Any, X: Any, rest: Any, rng: Any) -> Any:
    """Unlabelled items by their margin, the smallest first; equal ones in random order."""
    p = model.predict_proba(X[rest]) if hasattr(model, "predict_proba") else model.decision_function(X[rest])
    ordered = np.sort(p, axis=1) if p.ndim == 2 else np.column_stack([-np.abs(p), np.abs(p)])
    return rest[np.lexsort((rng.random(len(rest)), ordered[:, -1] - ordered[:, -2]))]


def sets_data(job: Job) -> tuple[Any, Any]:
    """Pool and sets of classes: four inputs with noise, or the binary digits of the number of a class."""
    rng = np.random.default_rng([job.seed, 62])
    if job.data == "simulated":
        X = rng.normal(size=(SETS_POOL, 4))
        noise = rng.choice([0.3, 0.8]) * rng.normal(size=(SETS_POOL, 4))
        return X, (X + noise > np.array([0.0, 0.3, 0.6, 1.0])).astype(int)
    found = evaluation_set(job.data)
    rows = rng.permutation(len(found.X))[:SETS_POOL]
    names, codes = np.unique(found.y, return_inverse=True)
    return found.X[rows], (codes[rows, None] >> np.arange(int(len(names) - 1).bit_length())) & 1


def run_sets(job: Job) -> list[Compared]:
    """The intervals of one run with sets of classes, and how often its guarantees hold."""
    warnings.simplefilter("ignore")
    X, Y = sets_data(job)
    monitor, last = StopMonitor(X, Budget(9999), seed=job.seed), SETS_COUNTS[-1]
    for n in SETS_COUNTS:
        model = SET_MODELS[job.model]().fit(X[:n], Y[:n])
        monitor.update(model, range(n), Y[:n], random=range(n))
    wrong = model.predict(X) != Y
    held = [compared("interval of sets", last, monitor.error_estimate(), wrong[last:].any(axis=1).mean())]
    for column, found in enumerate(monitor.class_errors().values()):
        held.append(compared("interval of a class", last, found, wrong[last:, column].mean()))
    check = monitor.check(CHECKED)
    guarantee = check.tell(Y[check.indices])
    rest = np.setdiff1d(np.arange(last, len(X)), check.indices)
    bounds = [each.value for each in monitor.class_guarantees().values()]
    assert guarantee is not None
    whole = bool(wrong[rest].any(axis=1).mean() <= guarantee.value)
    each = bool((wrong[rest].mean(axis=0) <= bounds).all())
    held.append(Compared("guarantee of sets", last, whole, guarantee.value, 0))
    return [*held, Compared("guarantees of all classes", last, each, max(bounds), 0)]


def jobs_of(seeds: int) -> list[Job]:
    """The runs with one class or number for each item; the simulated pools differ more, so they have more seeds."""
    return [
        Job(case, data, model, share, seed)
        for case, sets in CASES.items()
        for data in sets
        for model in (REGRESSORS if case == "numbers" else CLASSIFIERS)
        for share in SHARES
        for seed in range(seeds * (5 if data == "simulated" else 2 if case == "50 classes" else 1))
    ]


def set_jobs(seeds: int) -> list[Job]:
    """The runs with sets of classes."""
    return [
        Job("sets of classes", data, model, 1.0, seed)
        for data in SETS_OF_CLASSES
        for model in SET_MODELS
        for seed in range(10 * seeds)
    ]


def cell(values: Sequence[Compared]) -> str:
    """How often the intervals hold the truth, and their median width."""
    if not values:
        return ""
    return f"{100 * np.mean([each.held for each in values]):.0f} % ({np.median([each.width for each in values]):.3f})"


def grouped(pairs: Iterable[tuple[Job, list[Compared]]], key: Callable[[Job], str]) -> dict[str, list[Any]]:
    """Runs by a key, in the order in which the keys occur."""
    groups: dict[str, list[Any]] = defaultdict(list)
    for job, values in pairs:
        groups[key(job)].append((job, values))
    return groups


def rows_of(pairs: Sequence[tuple[Job, list[Compared]]], key: Callable[[Job], str]) -> Iterator[list[str]]:
    """One row for each key: runs, and a cell for each kind."""
    for name, some in grouped(pairs, key).items():
        found = [each for _, values in some for each in values]
        yield [name, str(len(some)), *(cell([each for each in found if each.kind == kind]) for kind in KINDS)]


def by_count(pairs: Sequence[tuple[Job, list[Compared]]]) -> Iterator[list[str]]:
    """One row for each number of labels, for runs with classes."""
    found = [each for job, values in pairs if job.case != "numbers" for each in values]
    for count in READ_AT:
        some = [each for each in found if each.labels == count]
        yield [str(count), *(cell([each for each in some if each.kind == kind]) for kind in KINDS)]


def set_rows(pairs: Sequence[tuple[Job, list[Compared]]]) -> Iterator[list[str]]:
    """One row for each set and what is stated about sets of classes."""
    for name, some in grouped(pairs, lambda job: job.data).items():
        found = [each for _, values in some for each in values]
        for kind in dict.fromkeys(each.kind for each in found):
            values = [each for each in found if each.kind == kind]
            held = f"{100 * np.mean([each.held for each in values]):.1f} %"
            yield [name, kind, str(len(some)), held, f"{np.median([each.width for each in values]):.3f}"]


def report(pairs: Sequence[tuple[Job, list[Compared]]], sets: Sequence[tuple[Job, list[Compared]]]) -> str:
    """The tables."""
    header = ["runs", *KINDS]
    random = {1.0: "all random", 0.25: "a quarter random"}
    named = [(job, values) for job, values in pairs if job.case == "real sets"]
    hard = [(job, values) for job, values in pairs if job.case != "simulated"]
    parts = [
        table(["data, labels", *header], [*rows_of(pairs, lambda job: f"{job.case}, {random[job.share]}")]),
        table(["model, all sets but simulated", *header], [*rows_of(hard, lambda job: job.model)]),
        table(["real set", *header], [*rows_of(named, lambda job: job.data)]),
        table(["labels", *KINDS], [*by_count(pairs)]),
        table(["sets of classes", "stated", "runs", "holds", "median width or bound"], [*set_rows(sets)]),
    ]
    return "\n\n".join(parts)


def main() -> None:
    """Run everything and show the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    jobs, some = jobs_of(given.seeds), set_jobs(given.seeds)
    with ProcessPoolExecutor(given.processes) as pool:
        pairs = [*zip(jobs, pool.map(run, jobs), strict=True)]
        sets = [*zip(some, pool.map(run_sets, some), strict=True)]
    publish("pool-predictions", report(pairs, sets), ["--write"] if given.write else [])


if __name__ == "__main__":
    main()
