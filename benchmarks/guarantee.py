"""Whether the guarantees of complete runs are true, how wide they are, and how often a planned check succeeds.

Four users label with a learner and check its model. "rule" runs ``simulate(rule=ErrorGuarantee(target))``: it labels
until the plan says that a check is the cheapest way to the target, checks, and continues if it does not prove the
target. "running" has a running check with a quarter of the labels and stops as soon as its bound is at the target.
"peeking" checks 40 items after every 20 labels and stops as soon as a bound looks good. "repeating" checks 40 items
again and again, without other labels, until one passes. A run is true if every guarantee in it is true. For numbers a
prediction is wrong if it is off by more than half of the standard deviation.

What a guarantee costs is measured by ``guarantee_cost.py``, and other methods by ``guarantee_alternatives.py``.

    python benchmarks/guarantee.py [--kind runs] [--seconds 600] [--runs FILE] [--first SEED] [--write]

Other kinds: ``sequential`` measures the labels of sequential and of fixed checks until a target is proven, ``users``
how often guarantees are false for users that work in ways that broke them, and ``advice`` whether checks that the
program advises prove their targets (``--seeds``).
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

import sequential_checks
import suffice as sf
from acquisitions import model_of
from evaluation_sets import evaluation_set
from suffice import checks
from suffice.learner import ErrorGuarantee
from suffice.learner.hindsight import guaranteed_run
from suffice.learner.simulation import true_value
from suffice.trace import RecordedCheck
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
USERS: Final = ("rule", "running", "peeking", "repeating")
POOL, LABELS, BATCH, TOLERANCE = 600, 240, 10, 0.5
_SHARE: Final = 0.25
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


def is_wrong(predictions: Any, truth: Any) -> Any:
    return np.abs(predictions - truth) > TOLERANCE if truth.dtype.kind == "f" else predictions != truth


def label(learner: sf.ActiveLearner, y: Any, size: int) -> None:
    items = learner.ask(size)
    learner.tell(items, y[items])


def checked(learner: sf.ActiveLearner, y: Any, size: int) -> Any:
    check = learner.check(min(size, learner.left), tolerance=TOLERANCE if y.dtype.kind == "f" else None)
    check.tell(y[check.indices])
    return check


def steps(learner: sf.ActiveLearner, y: Any, user: str) -> Iterator[RecordedCheck]:
    """The checks that a user makes, each after the labels before it."""
    label(learner, y, BATCH)
    while len(learner.labelled) < LABELS:
        if user == "peeking":
            label(learner, y, 2 * BATCH)
        elif len(learner.labelled) < 60:
            label(learner, y, 50)
        check = checked(learner, y, 40)
        yield RecordedCheck(check.n_labelled, check.record.items, check.guarantee, true_value(check, y))


def run(name: str, data: str, target: float, user: str, seed: int) -> Run:
    X, y, _, _ = evaluation_set(data).split(seed)
    X, y = X[:POOL], y[:POOL]
    if user in ("rule", "running"):
        rule = ErrorGuarantee(target, tolerance=TOLERANCE if y.dtype.kind == "f" else None) | sf.Budget(LABELS)
        share = _SHARE if user == "running" else None
        trace = sf.simulate(model_of(name), X, y, rule=rule, batch=BATCH, seed=seed, check_share=share)
        found = guaranteed_run(trace)
        made, labels, in_checks = list(trace.checks), found.labels, found.in_checks
    else:
        learner = sf.ActiveLearner(model_of(name), X, seed=seed, criterion=sf.Budget(POOL))
        made = []
        for check in steps(learner, y, user):
            made.append(check)
            assert check.guarantee is not None
            if check.guarantee.value <= target:
                break
        labels, in_checks = len(learner.labelled), sum(len(each.items) for each in made)
    reached = bool(made) and made[-1].guarantee is not None and made[-1].guarantee.value <= target
    true, unspent = all(each.holds for each in made), all(would_hold(each, 0.05) for each in made)
    return Run(true, unspent, len(made), reached, labels, in_checks)


def would_hold(check: RecordedCheck, alpha: float) -> bool:
    """Whether a guarantee would be true with another error probability."""
    found = check.guarantee
    assert found is not None
    wrong = found.wrong + round(check.truth * found.remaining)
    return wrong <= checks.upper_bound(found.wrong, found.checked, found.pool, alpha)


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


def tolerance_table() -> str:
    """For one frozen Gaussian process of each data set: the tolerance that a check of 100 finds for a share."""
    rows = []
    for data in NUMBERS:
        X, y, _, _ = evaluation_set(data).split(0)
        learner = sf.ActiveLearner(model_of("gp"), X, seed=0, criterion=sf.Budget(len(X)))
        while len(learner.labelled) < 100:
            label(learner, y, BATCH)
        rest = np.setdiff1d(np.arange(len(X)), learner.labelled)
        residuals = y[rest] - learner.model.predict(X[rest])
        alpha, rng = checks.spent_alpha(1), np.random.default_rng(0)
        for share in (0.1, 0.3):
            held, widths = [], []
            for _ in range(_DRAWS):
                inside = np.zeros(len(rest), dtype=bool)
                inside[rng.choice(len(rest), 100, replace=False)] = True
                found = checks.Guarantee.of_tolerance(residuals[inside], share, len(rest), alpha=alpha)
                width = found.tolerance or 0.0
                held.append(np.mean(np.abs(residuals[~inside]) > width) <= share)
                widths.append(width)
            true = float(np.quantile(np.abs(residuals), 1.0 - share))
            cells = [f"{true:.2f}", f"{np.mean(widths):.2f}", f"{100 * np.mean(held):.1f} %"]
            rows.append([data, f"{len(rest):,}", f"{100 * share:.0f} %", *cells])
    return table(["data set", "unlabelled", "share", "true tolerance", "mean guaranteed", "true"], rows)


def recall_table() -> str:
    """Recall of a rare class: how often the bound is true, how wide it is, and how often a planned check succeeds."""
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
                        *planned_recall(truth, predicted, size, counted, rng),
                    ]
                )
    header = ["positive", "counts as found", "check", "mean recall after it", "mean bound", "bound true"]
    return table([*header, "target", "planned size", "observed success"], rows)


def planned_recall(truth: Any, predicted: Any, size: int, counted: bool, rng: Any) -> tuple[str, str, str]:
    """A target, the size that is planned for it with 80 %, and how often checks of that size succeed."""
    known = int(truth.sum())
    target = {(False, 300): 0.4, (False, 1000): 0.6, (True, 300): 0.6, (True, 1000): 0.8}[counted, size]
    given = {"predicted": int(predicted.sum()), "right": int((truth & predicted).sum())} if counted else {}
    missed = int((truth & ~predicted).sum()) if counted else known
    alpha = checks.spent_alpha(1)
    planned = checks.plan_recall(target, known, missed, len(truth), alpha=alpha, **given).labels
    if planned is None:
        return f"{100 * target:.0f} %", "not achievable", ""
    success = np.mean([recall(truth, predicted, planned, counted, rng)[0] >= target for _ in range(_DRAWS)])
    return f"{100 * target:.0f} %", f"{planned:,}", f"{100 * success:.0f} %"


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


def measure(seconds: float, kept: Path | None, first: int) -> str:
    """Run until the time is over, or read the runs of earlier calls besides."""
    found: dict[tuple[str, str], list[Run]] = {(data, user): [] for data in [*CLASSES, *NUMBERS] for user in USERS}
    for line in kept.read_text().splitlines() if kept is not None and kept.exists() else ():
        data, user, values = json.loads(line)
        found[data, user].append(Run(*values))
    since = time.monotonic()
    for seed in count(first):
        for name, sets in (("logistic", CLASSES), ("gp", NUMBERS)):
            # Runs of the Gaussian process take longer, so there are fewer of them.
            for data, target in sets.items() if name == "logistic" or seed % 4 == 0 else ():
                for user in USERS:
                    if time.monotonic() - since > seconds:
                        return report(found, slack_table(list(CLASSES)))
                    new = run(name, data, target, user, seed)
                    found[data, user].append(new)
                    if kept is not None:
                        with kept.open("a") as file:
                            file.write(json.dumps([data, user, new]) + "\n")
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
        f"The tolerance that at most a share of the predictions exceeds, in standard deviations of the target: one "
        f"Gaussian process at 100 labels of each data set, {_DRAWS} checks of 100 items each, first of a sequence:",
        tolerance_table(),
    ]
    return "\n\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--runs", type=Path, help="file that runs are kept in, to be continued")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--kind", choices=("runs", "sequential", "users", "advice"), default="runs")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each data set, for advice")
    options, _ = parser.parse_known_args()
    if options.kind == "sequential":
        publish("guarantee-sequential", sequential_checks.labels_report(), sys.argv[1:])
    elif options.kind == "users":
        publish("guarantee-users", sequential_checks.users_report(), sys.argv[1:])
    elif options.kind == "advice":
        publish("guarantee-advice", sequential_checks.advice_report(options.seeds), sys.argv[1:])
    else:
        publish("guarantee", measure(options.seconds, options.runs, options.first), sys.argv[1:])
