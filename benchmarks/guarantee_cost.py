"""What a guarantee costs in labels: "label until at most x are wrong", and the running check.

"Without" is the number of labels from which the true error of the unlabelled items stays at or below the target, in the
same run without checks. Nobody knows it, because the true error is not known.

    python benchmarks/guarantee_cost.py [--seconds 400] [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
import time
from itertools import count
from typing import Any, Final, NamedTuple

import numpy as np

import suffice as sf
from acquisitions import model_of
from evaluation_sets import evaluation_set
from guarantee import TOLERANCE, is_wrong, label
from suffice.learner import ErrorGuarantee
from suffice.learner.hindsight import guaranteed_run
from tables import publish, table

#: Data sets with two targets each.
CLASSES: Final = {
    "htru2": (0.1, 0.05),
    "grid classes": (0.3, 0.25),
    "skin": (0.2, 0.1),
    "phoneme": (0.35, 0.3),
    "magic": (0.35, 0.3),
    "churn": (0.2, 0.15),
    "page blocks": (0.15, 0.1),
    "adult": (0.25, 0.2),
}
NUMBERS: Final = {"power plant": (0.15, 0.1), "grid": (0.4, 0.3)}
POOL, LABELS, BATCH, SHARE = 2000, 800, 10, 0.1
_EARLY, _FOLLOWED = 100, 400


class Until(NamedTuple):
    """One run until a target is guaranteed."""

    reached: bool
    true: bool
    first_passed: bool | None
    without: int | None
    labels: int
    in_checks: int
    early: int | None


class Running(NamedTuple):
    """One run with a running check."""

    true: bool
    evaluations: int
    learned: int
    labels: int
    slack: float | None


def pool_of(data: str, seed: int) -> tuple[Any, Any]:
    X, y, _, _ = evaluation_set(data).split(seed)
    return X[:POOL], y[:POOL]


def errors_of(name: str, X: Any, y: Any, seed: int) -> list[tuple[int, float]]:
    """The true error of the unlabelled items along a run without checks."""
    learner = sf.ActiveLearner(model_of(name), X, seed=seed, criterion=sf.Budget(len(X)))
    found = []
    while len(learner.labelled) < _FOLLOWED:
        label(learner, y, BATCH)
        rest = np.setdiff1d(np.arange(len(X)), learner.labelled)
        found.append((len(learner.labelled), float(is_wrong(learner.current_model.predict(X[rest]), y[rest]).mean())))
    return found


def until(name: str, pool: tuple[Any, Any], target: float, seed: int, errors: list[tuple[int, float]]) -> Until:
    X, y = pool
    rule = ErrorGuarantee(target, tolerance=TOLERANCE if y.dtype.kind == "f" else None) | sf.Budget(LABELS)
    trace = sf.simulate(model_of(name), X, y, rule=rule, batch=BATCH, seed=seed)
    found = guaranteed_run(trace)
    reached = bool(found.reached)
    above = [n for n, error in errors if error > target]
    without = errors[0][0] if not above else above[-1] + BATCH if above[-1] < errors[-1][0] else None
    early = next((total for n, total in found.expected_totals if n >= _EARLY), None)
    first = found.checks[0].passed if found.checks else None
    true = all(each.holds for each in found.checks)
    return Until(reached, true, first, without, found.labels, found.in_checks, early)


def running(name: str, X: Any, y: Any, seed: int) -> Running:
    # For numbers the rule says which tolerance the bound is about; its target is never reached.
    rule = sf.Budget(400) if y.dtype.kind != "f" else ErrorGuarantee(1e-9, tolerance=TOLERANCE) | sf.Budget(300)
    trace = sf.simulate(model_of(name), X, y, rule=rule, batch=BATCH, seed=seed, check_share=SHARE)
    learned = len(trace.initial) + trace.indices.size
    last = trace.checks[-1] if trace.checks else None
    slack = None if last is None or last.guarantee is None else last.guarantee.value - last.truth
    true = all(each.holds for each in trace.checks)
    return Running(true, len(trace.checks), learned, trace.about["labels"], slack)


def share(values: list[Any]) -> str:
    known = [each for each in values if each is not None]
    return f"{100 * np.mean(known):.0f} %" if known else ""


def mean(values: list[Any]) -> str:
    known = [each for each in values if each is not None]
    return f"{np.mean(known):,.0f}" if known else ""


def until_table(found: dict[tuple[str, float], list[Until]]) -> str:
    rows = []
    everything = [("**all**", "", [each for runs in found.values() for each in runs])]
    for data, target, runs in [*((d, f"{100 * t:.0f} %", r) for (d, t), r in found.items()), *everything]:
        reached = [each for each in runs if each.reached]
        both = [each for each in reached if each.without is not None]
        ratio = [each.labels / each.without for each in both if each.without]
        early = [each.labels / each.early for each in reached if each.early]
        cells = [
            data,
            target,
            str(len(runs)),
            share([each.true for each in runs]),
            share([each.reached for each in runs]),
            share([each.first_passed for each in runs]),
            mean([each.without for each in both]) if data != "**all**" else "",
            mean([each.labels for each in both]) if data != "**all**" else "",
            mean([each.in_checks for each in both]) if data != "**all**" else "",
            f"{np.median(ratio):.1f}" if ratio else "",
            f"{np.median(early):.2f}" if early else "",
            share([each.without is not None for each in runs if not each.reached]),
        ]
        rows.append(cells)
    header = ["data set", "at most", "runs", "all guarantees true", "reached", "first check passed"]
    header += ["labels without", "labels with", "of these in checks", "with / without, median"]
    header += [f"with / expected at {_EARLY} labels, median", "not reached, but true"]
    return table(header, rows)


def running_table(found: dict[str, list[Running]]) -> str:
    rows = []
    everything = [each for runs in found.values() for each in runs]
    for data, runs in [*found.items(), ("**all**", everything)]:
        if not runs:
            continue
        more = [each.labels / each.learned - 1.0 for each in runs]
        slack = [each.slack for each in runs if each.slack is not None]
        rows.append(
            [
                data,
                str(len(runs)),
                share([each.true for each in runs]),
                f"{sum(each.evaluations for each in runs):,}",
                f"{100 * np.mean(more):.1f} %",
                f"{100 * max(more):.1f} %",
                f"{100 * np.mean(slack):.1f}" if slack else "",
            ]
        )
    header = ["data set", "runs", "all bounds true", "evaluations", "more labels, mean", "most"]
    return table([*header, "slack of the last bound, points"], rows)


def measure(seconds: float) -> str:
    by_target: dict[tuple[str, float], list[Until]] = {}
    by_set: dict[str, list[Running]] = {data: [] for data in [*CLASSES, *NUMBERS]}
    for data, targets in (CLASSES | NUMBERS).items():
        by_target |= {(data, target): [] for target in targets}
    since = time.monotonic()
    for seed in count():
        for name, sets in (("logistic", CLASSES), ("gp", NUMBERS)):
            # Runs of the Gaussian process take longer, so there are fewer of them.
            for data, targets in sets.items() if name == "logistic" or seed % 4 == 0 else ():
                if time.monotonic() - since > seconds:
                    return report(by_target, by_set)
                X, y = pool_of(data, seed)
                errors = errors_of(name, X, y, seed)
                for target in targets:
                    by_target[data, target].append(until(name, (X, y), target, seed, errors))
                by_set[data].append(running(name, X, y, seed))
    raise AssertionError


def report(by_target: dict[tuple[str, float], list[Until]], by_set: dict[str, list[Running]]) -> str:
    lines = [
        f"{sum(map(len, by_target.values()))} runs of `simulate(rule=ErrorGuarantee(at_most) | Budget({LABELS}))`, "
        f"{POOL:,} items at most, {BATCH} labels at a time. "
        f'"Without" is the number of labels from which the true error stayed at or below the target, up to {_FOLLOWED} '
        "labels, in the same run without checks; nobody knows that number. Means and medians are over the runs that "
        "reached both.",
        until_table(by_target),
        f"A running check with {100 * SHARE:.0f} % of the labels, 400 labels (numbers: 300). The model learns the same "
        'labels as without it, so "more labels" is the cost for the same error:',
        running_table(by_set),
    ]
    return "\n\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=400.0)
    options, _ = parser.parse_known_args()
    publish("guarantee-cost", measure(options.seconds), sys.argv[1:])
