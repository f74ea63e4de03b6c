"""Whether the guarantees of complete runs are true, how wide they are, and how often a planned check succeeds.

Three users label with a learner and check its model. "rule" labels until the calibrated estimate says that a check of
at most 100 items is likely to prove the target (80 %), checks, and continues if it does not. "peeking" checks 40 items
after every 20 labels and stops as soon as a bound looks good. "repeating" checks 40 items again and again, without
other labels, until one passes. A run is true if every guarantee in it is true. For numbers a prediction is wrong if it
is off by more than half of the standard deviation.

    python benchmarks/guarantee.py [--seconds 600] [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import count
from typing import Any, Final, NamedTuple

import numpy as np

import suffice as sf
from acquisitions import model_of
from evaluation_sets import evaluation_set
from suffice import checks
from tables import publish, table

#: Data sets with the target of the rule, the share of wrong predictions.
CLASSES: Final = {
    "htru2": 0.1,
    "grid classes": 0.25,
    "breast cancer": 0.15,
    "circle": 0.4,
    "skin": 0.2,
    "phoneme": 0.35,
    "magic": 0.3,
    "churn": 0.25,
    "page blocks": 0.15,
    "banana": 0.5,
}
NUMBERS: Final = {"power plant": 0.15, "concrete": 0.5, "grid": 0.6, "boston": 0.35}
USERS: Final = ("rule", "peeking", "repeating")
POOL, LABELS, BATCH, TOLERANCE = 600, 240, 10, 0.5
_SLACK_LABELS, _DRAWS = 200, 400
_RECALL_POOL, _RECALL_DRAWS = 3000, 1000


class Run(NamedTuple):
    """One run.

    Attributes:
        true: Whether every guarantee was true.
        unspent: Whether they would have been true with 5 % for each check.
        checks: Number of guarantees.
        reached: Whether the target was guaranteed.
        labels: Labels at the end, those of checks included.
        in_checks: Labels of checks.
    """

    true: bool
    unspent: bool
    checks: int
    reached: bool
    labels: int
    in_checks: int


def is_true(check: Any, y: Any, alpha: float | None = None) -> bool:
    """Whether the guarantee of a check is true, or would be with another error probability."""
    wrong = int(is_wrong(check.predictions, y[check.unlabelled]).sum())
    found = check.guarantee
    if alpha is None:
        return bool(wrong <= found.wrong_at_most)
    return bool(wrong <= checks.upper_bound(found.wrong, found.checked, found.pool, alpha))


def is_wrong(predictions: Any, truth: Any) -> Any:
    return np.abs(predictions - truth) > TOLERANCE if truth.dtype.kind == "f" else predictions != truth


def label(learner: sf.ActiveLearner, y: Any, size: int) -> None:
    items = learner.ask(size)
    learner.tell(items, y[items])


def checked(learner: sf.ActiveLearner, y: Any, size: int) -> Any:
    check = learner.check(min(size, learner.left), tolerance=TOLERANCE if y.dtype.kind == "f" else None)
    check.tell(y[check.indices])
    return check


def planned(learner: sf.ActiveLearner, y: Any, target: float) -> int | None:
    """Size of the check that the rule would request now."""
    if y.dtype.kind != "f":
        return learner.check_size(target)
    # A Gaussian of the estimated variance: the share beyond the tolerance.
    from scipy.stats import norm

    expected = 2.0 * float(norm.sf(TOLERANCE / max(1e-9, np.sqrt(learner.error_estimate().value))))
    alpha = checks.spent_alpha(len(learner.checks) + 1)
    return checks.plan(target, expected, learner.left, alpha=alpha).labels


def steps(learner: sf.ActiveLearner, y: Any, target: float, user: str) -> Iterator[Any]:
    """The checks that a user makes, each after the labels before it."""
    label(learner, y, BATCH)
    while len(learner.labelled) < LABELS:
        if user == "rule":
            label(learner, y, BATCH)
            size = planned(learner, y, target)
            if size is not None and size <= 100:
                yield checked(learner, y, max(size, 10))
        elif user == "peeking":
            label(learner, y, 2 * BATCH)
            yield checked(learner, y, 40)
        else:
            if len(learner.labelled) < 60:
                label(learner, y, 50)
            yield checked(learner, y, 40)


def run(name: str, data: str, target: float, user: str, seed: int) -> Run:
    X, y, _, _ = evaluation_set(data).split(seed)
    X, y = X[:POOL], y[:POOL]
    learner = sf.ActiveLearner(model_of(name), X, seed=seed, criterion=sf.Budget(POOL))
    true, unspent, reached = True, True, False
    for check in steps(learner, y, target, user):
        true, unspent = true and is_true(check, y), unspent and is_true(check, y, 0.05)
        if check.guarantee.value <= target:
            reached = True
            break
    in_checks = sum(len(check.indices) for check in learner.checks)
    return Run(true, unspent, len(learner.checks), reached, len(learner.labelled), in_checks)


def runs_table(found: dict[tuple[str, str], list[Run]]) -> str:
    rows = []
    for user in USERS:
        for kind, sets in (("classes, logistic", CLASSES), ("numbers, Gaussian process", NUMBERS)):
            rows.append([user, kind, *cells([each for data in sets for each in found[data, user]])])
    everything = [each for runs in found.values() for each in runs]
    rows.append(["**all**", "", *cells(everything)])
    header = [
        "user",
        "predictions",
        "runs",
        "all guarantees true",
        "with 5 % for each check",
        "guarantees",
        "target reached",
    ]
    header += ["labels", "of these in checks"]
    return table(header, rows)


def cells(runs: list[Run]) -> list[str]:
    if not runs:
        return [""] * 7
    true, unspent, reached, labels, in_checks = (
        np.mean([getattr(each, name) for each in runs])
        for name in ("true", "unspent", "reached", "labels", "in_checks")
    )
    return [
        f"{len(runs):,}",
        f"{100 * true:.1f} %",
        f"{100 * unspent:.1f} %",
        f"{sum(each.checks for each in runs):,}",
        f"{100 * reached:.0f} %",
        f"{labels:.0f}",
        f"{in_checks:.0f}",
    ]


def slack_table(names: list[str]) -> str:
    """For one frozen model of each data set: the bound of a check of 100, and the success of planned checks."""
    rows = []
    for data in names:
        X, y, _, _ = evaluation_set(data).split(0)
        learner = sf.ActiveLearner(model_of("logistic"), X, seed=0, criterion=sf.Budget(len(X)))
        while len(learner.labelled) < min(_SLACK_LABELS, len(X) // 3):
            label(learner, y, BATCH)
        rest = np.setdiff1d(np.arange(len(X)), learner.labelled)
        wrong = is_wrong(learner.model.predict(X[rest]), y[rest])
        alpha, rng = checks.spent_alpha(1), np.random.default_rng(0)
        counts = [int(wrong[rng.choice(len(rest), 100, replace=False)].sum()) for _ in range(_DRAWS)]
        bounds = {k: checks.Guarantee.of_error(k, 100, len(rest), alpha=alpha) for k in set(counts)}
        values = np.array([bounds[k].value for k in counts])
        held = np.mean([bounds[k].wrong_at_most >= wrong.sum() for k in counts])
        error, target = float(wrong.mean()), max(0.05, round(2.0 * float(wrong.mean()), 2))
        size = checks.plan(target, error, len(rest), alpha=alpha).labels
        estimated = learner.error_estimate().value
        success = [success_share(n, target, wrong, alpha, rng) for n in (size, learner.check_size(target))]
        rows.append(
            [
                data,
                f"{len(rest):,}",
                f"{100 * error:.1f} %",
                f"{100 * values.mean():.1f} %",
                f"{100 * (values.mean() - error):.1f}",
                f"{100 * held:.1f} %",
                f"{100 * target:.0f} %",
                "" if size is None else str(size),
                success[0],
                f"{100 * estimated:.1f} %",
                success[1],
            ]
        )
    header = ["data set", "unlabelled", "wrong", "mean bound, check of 100", "slack, points", "bound true"]
    header += ["target", "planned size", "observed success", "estimated error", "success if planned from it"]
    return table(header, rows)


def success_share(size: int | None, target: float, wrong: Any, alpha: float, rng: np.random.Generator) -> str:
    """How often a check of a size guarantees the target."""
    if size is None:
        return "not planned"
    counts = [int(wrong[rng.choice(len(wrong), size, replace=False)].sum()) for _ in range(_DRAWS)]
    bound = {k: checks.Guarantee.of_error(k, size, len(wrong), alpha=alpha).value for k in set(counts)}
    return f"{100 * np.mean([bound[k] <= target for k in counts]):.0f} %"


def recall_table() -> str:
    """Recall of a rare class: how often the bound is true, and how wide it is."""
    rows = []
    for rate in (0.01, 0.03, 0.1):
        rng = np.random.default_rng(1)
        truth = rng.random(_RECALL_POOL) < rate
        predicted = np.where(truth, rng.random(_RECALL_POOL) < 0.8, rng.random(_RECALL_POOL) < 0.3 * rate)
        for counted in (False, True):
            for size in (300, 1000):
                drawn = [recall(truth, predicted, size, counted, rng) for _ in range(_RECALL_DRAWS)]
                rows.append(
                    [
                        f"{100 * rate:.0f} %",
                        "labelled or predicted" if counted else "labelled",
                        str(size),
                        f"{100 * np.mean([true for _, true in drawn]):.0f} %",
                        f"{100 * np.mean([bound for bound, _ in drawn]):.0f} %",
                        f"{100 * np.mean([bound <= true + 1e-12 for bound, true in drawn]):.1f} %",
                    ]
                )
    header = ["positive", "counts as found", "check", "mean recall after it", "mean bound", "bound true"]
    return table(header, rows)


def recall(truth: Any, predicted: Any, size: int, counted: bool, rng: Any) -> tuple[float, float]:
    """The bound of one check, and the recall after it."""
    check, found = checks.Check.draw(np.arange(len(truth)), size, rng), int(truth.sum())
    items = list(check.items)
    check = check.tell({item: int(truth[item]) for item in items})
    given = {"predictions": predicted[items].astype(int), "predicted": int(predicted.sum())} if counted else {}
    bound = check.recall_guarantee(1, found, **given).value
    known = np.zeros(len(truth), dtype=bool)
    known[items] = True
    seen = int((truth & (known | predicted if counted else known)).sum())
    return bound, (found + seen) / (2 * found)


def measure(seconds: float) -> str:
    slack = slack_table(list(CLASSES))
    found: dict[tuple[str, str], list[Run]] = {(data, user): [] for data in [*CLASSES, *NUMBERS] for user in USERS}
    since = time.monotonic()
    for seed in count():
        for name, sets in (("logistic", CLASSES), ("gp", NUMBERS)):
            # Runs of the Gaussian process take longer, so there are fewer of them.
            for data, target in sets.items() if name == "logistic" or seed % 4 == 0 else ():
                for user in USERS:
                    if time.monotonic() - since > seconds:
                        return report(found, slack)
                    found[data, user].append(run(name, data, target, user, seed))
    raise AssertionError


def report(found: dict[tuple[str, str], list[Run]], slack: str) -> str:
    number = sum(len(runs) for runs in found.values())
    lines = [
        f"{number:,} complete runs on {len(CLASSES)} data sets of classes and {len(NUMBERS)} of numbers, {POOL} items "
        f"each at most, {LABELS} labels at most; 95 % confidence for all checks of a run.",
        runs_table(found),
        f"One frozen logistic model of each data set, {_SLACK_LABELS} labels at most, {_DRAWS} checks drawn from its "
        "unlabelled items, each as the first check of a sequence:",
        slack,
        f"Recall of a class, {_RECALL_POOL:,} unlabelled items. Annotators had found as many of its items as are left. "
        "The model predicts 80 % of those left and about as many others as 30 % of them. "
        f"{_RECALL_DRAWS:,} checks each, first of a sequence:",
        recall_table(),
    ]
    return "\n\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    options, _ = parser.parse_known_args()
    publish("guarantee", measure(options.seconds), sys.argv[1:])
