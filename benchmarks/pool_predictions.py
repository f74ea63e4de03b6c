"""How often the estimate of a StopMonitor holds the truth without a model: predictions, right answers, sets of classes.

Simulated classes of four inputs, in pools of 1,500 items (800 for sets of classes). Twenty labels are given at a time,
all or a quarter of them at random; the others have the smallest margin. For sets of classes there are 30, 60 and 90
random labels, and a check of 60 items.

    python benchmarks/pool_predictions.py [--seeds 60]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from suffice import Budget, StopMonitor

MODELS: Final[tuple[Callable[[], Any], ...]] = (GaussianNB, DecisionTreeClassifier, LogisticRegression)
KINDS: Final = ("probabilities", "predictions", "correct")
READ_AT: Final = (80, 180)


def one_class_each(make: Callable[[], Any], seed: int, *, all_random: bool) -> list[tuple[str, int, bool]]:
    """Whether the interval of each kind of update holds the truth, by the number of labels."""
    rng, size, held = np.random.default_rng(seed), 1500, []
    noise, X = rng.choice([0.2, 0.5, 1.0]), rng.normal(size=(size, 4))
    y = np.where(X[:, 0] + rng.choice([0.0, 0.5]) * X[:, 1] * X[:, 2] + noise * rng.normal(size=size) > 0.0, "b", "a")
    known = rng.permutation(size)[:20].tolist()
    drawn, right = list(known), dict[int, bool]()
    monitors = {kind: StopMonitor(range(size), Budget(9999), estimate_time=0.0) for kind in KINDS}
    while len(known) <= READ_AT[-1]:
        model = make().fit(X[known], y[known])
        predicted, told = model.predict(X), {"indices": known, "random": drawn}
        monitors["probabilities"].update(probabilities=model.predict_proba(X), labels=y[known], **told)
        monitors["predictions"].update(predictions=predicted, labels=y[known], **told)
        monitors["correct"].update(correct=right, **told)
        rest = np.setdiff1d(np.arange(size), known)
        if len(known) in READ_AT:
            truth = (predicted != y)[rest].mean()
            for kind, monitor in monitors.items():
                found = monitor.error_estimate()
                held.append((kind, len(known), bool(found.low <= truth <= found.high)))
        unsure = rest[np.argsort(model.predict_proba(X[rest]).max(axis=1))[: 0 if all_random else 15]]
        random = rng.choice(np.setdiff1d(rest, unsure), 20 - len(unsure), replace=False)
        right = {int(item): bool(predicted[item] == y[item]) for item in [*unsure, *random]}
        known, drawn = [*known, *unsure.tolist(), *random.tolist()], [*drawn, *random.tolist()]
    return held


def sets_of_classes(make: Callable[[], Any], seed: int) -> list[tuple[str, bool]]:
    """Whether intervals and guarantees for sets of four classes hold the truth."""
    rng, size = np.random.default_rng(seed), 800
    X = rng.normal(size=(size, 4))
    Y = (X + rng.choice([0.3, 0.8]) * rng.normal(size=(size, 4)) > np.array([0.0, 0.3, 0.6, 1.0])).astype(int)
    monitor = StopMonitor(X, Budget(9999), seed=seed)
    for n in (30, 60, 90):
        model = make().fit(X[:n], Y[:n])
        monitor.update(model, range(n), Y[:n], random=range(n))
    wrong = model.predict(X) != Y
    found, truth = monitor.error_estimate(), wrong[90:].any(axis=1).mean()
    held = [("interval of sets", bool(found.low <= truth <= found.high))]
    for column, found in enumerate(monitor.class_errors().values()):
        held.append(("interval of a class", bool(found.low <= wrong[90:, column].mean() <= found.high)))
    check = monitor.check(60)
    guarantee = check.tell(Y[check.indices])
    rest = np.setdiff1d(np.arange(90, size), check.indices)
    bounds = [each.value for each in monitor.class_guarantees().values()]
    assert guarantee is not None
    held.append(("guarantee of sets", bool(wrong[rest].any(axis=1).mean() <= guarantee.value)))
    return [*held, ("guarantees of all classes", bool((wrong[rest].mean(axis=0) <= bounds).all()))]


def main() -> None:
    """Print how often each holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=60)
    seeds = range(parser.parse_args().seeds)
    warnings.simplefilter("ignore")
    held: dict[tuple[Any, ...], list[bool]] = defaultdict(list)
    for seed in seeds:
        for make in MODELS:
            for all_random in (True, False):
                for kind, n, inside in one_class_each(make, seed, all_random=all_random):
                    held[kind, n].append(inside)
        for make in (DecisionTreeClassifier, lambda: OneVsRestClassifier(LogisticRegression())):
            for name, inside in sets_of_classes(make, seed):
                held[name,].append(inside)
    for case, values in sorted(held.items(), key=str):
        print(*case, f"{np.mean(values):.3f} of {len(values)}")


if __name__ == "__main__":
    main()
