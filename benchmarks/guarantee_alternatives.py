"""Other ways to bound the error of the unlabelled items, at a nominal confidence of 95 %: how often they are true.

Each method states an upper bound on the share of wrong predictions among the unlabelled items of a frozen model. The
labels of the model were chosen by the default acquisition. Methods that need labels besides get 40 or 100 of them, the
same random ones; importance weights draw their own.

    python benchmarks/guarantee_alternatives.py [--seconds 200] [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
import time
from collections import defaultdict
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

import suffice as sf
from acquisitions import model_of
from evaluation_sets import evaluation_set
from guarantee import label
from suffice import checks
from suffice.session.held_out import left_out_losses
from tables import publish, table

Floats = NDArray[np.float64]
SETS: Final = (
    "htru2",
    "grid classes",
    "breast cancer",
    "circle",
    "skin",
    "phoneme",
    "magic",
    "churn",
    "page blocks",
    "adult",
)
POOL, LABELS, SIZES, DRAWS, ALPHA = 1500, 200, (40, 100), 20, 0.05
_NORMAL_POINT: Final = 1.6449


def exact(losses: Floats, pool: int) -> float:
    """The bound of a check."""
    return checks.upper_bound(int(losses.sum()), len(losses), pool, ALPHA) / pool


def betting(losses: Floats, pool: int) -> float:
    """The upper end of a confidence sequence by betting, without replacement (Waudby-Smith and Ramdas).

    For each number D of wrong items the capital is the product of 1 + b_t (m_t - x_t), where m_t is the expectation of
    the next loss given D, and b_t the predictable plug-in bet. D is excluded once the capital reaches 1 / alpha.
    """
    wrong = np.arange(pool + 1, dtype=np.float64)
    capital, largest = np.ones(pool + 1), np.ones(pool + 1)
    seen, mean, spread = 0.0, 0.5, 0.25
    for t, loss in enumerate(losses, start=1):
        left = pool - (t - 1)
        expected = (wrong - seen) / left
        possible = (expected >= 0.0) & (expected <= 1.0)
        bet = np.sqrt(2.0 * np.log(1.0 / ALPHA) / (spread * t * np.log1p(t)))
        room = np.maximum(1.0 - expected, 1e-9)
        capital = np.where(possible, capital * (1.0 + np.minimum(bet, 0.75 / room) * (expected - loss)), np.inf)
        largest = np.maximum(largest, capital)
        seen += loss
        mean = (0.5 + seen) / (t + 1)
        spread = (spread * t + (loss - mean) ** 2) / (t + 1)
    # Too few wrong items for what was seen are excluded too; the bound is about the upper end.
    kept = np.flatnonzero((largest < 1.0 / ALPHA) & (wrong >= seen))
    return float(kept.max(initial=int(seen))) / pool


def normal(values: Floats, pool: int, centre: float = 0.0, variance: float = 0.0) -> float:
    """A normal interval for a mean, without replacement."""
    error = values.var(ddof=1) / len(values) * (1.0 - len(values) / pool) + variance
    return centre + float(values.mean()) + _NORMAL_POINT * float(np.sqrt(error))


def bounds(learner: sf.ActiveLearner, X: Any, y: Any, rng: np.random.Generator) -> tuple[float, dict[str, list[float]]]:
    """The true error, and the bounds that each method gives."""
    rest = np.setdiff1d(np.arange(len(X)), learner.labelled)
    model = learner.model
    p = model.predict_proba(X[rest])
    hoped, wrong = 1.0 - p.max(axis=1), (model.predict(X[rest]) != y[rest]).astype(np.float64)
    m, found = len(rest), defaultdict(list)
    left_out = left_out_losses(model)
    assert left_out is not None
    found["cross-validation, chosen labels included"].append(
        float(beta.ppf(1.0 - ALPHA, left_out.sum() + 1.0, max(len(left_out) - left_out.sum(), 1e-9)))
    )
    found["the model's own estimate"].append(
        float(hoped.mean()) + _NORMAL_POINT * float(np.sqrt(np.sum(hoped * (1.0 - hoped)))) / m
    )
    found["calibrated estimate, upper end"].append(learner.error_estimate(m).high)
    for size in SIZES:
        for _ in range(DRAWS):
            drawn = rng.choice(m, size, replace=False)
            losses = wrong[drawn]
            found[f"**exact bound of a check**, {size}"].append(exact(losses, m))
            found[f"betting confidence sequence, {size}"].append(betting(losses, m))
            found[f"normal interval, {size}"].append(normal(losses, m))
            found[f"prediction-powered normal interval, {size}"].append(
                normal(losses - hoped[drawn], m, float(hoped.mean()))
            )
            chances = 0.5 / m + 0.5 * hoped / max(hoped.sum(), 1e-12)
            weighted = rng.choice(m, size, p=chances / chances.sum())
            found[f"importance weights, normal interval, {size}"].append(
                normal(wrong[weighted] / (m * chances[weighted]), 10**9)
            )
    return float(wrong.mean()), found


def measure(seconds: float) -> str:
    held: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    slack: dict[str, list[float]] = defaultdict(list)
    since, models = time.monotonic(), 0
    for seed in count():
        for data in SETS:
            if time.monotonic() - since > seconds:
                return report(held, slack, models)
            X, y, _, _ = evaluation_set(data).split(seed)
            X, y = X[:POOL], y[:POOL]
            learner = sf.ActiveLearner(model_of("logistic"), X, seed=seed, criterion=sf.Budget(len(X)))
            while len(learner.labelled) < min(LABELS, len(X) // 3):
                label(learner, y, 10)
            truth, found = bounds(learner, X, y, np.random.default_rng([seed, 7]))
            models += 1
            for method, values in found.items():
                held[method][data] += [value >= truth - 1e-12 for value in values]
                slack[method] += [value - truth for value in values]
    raise AssertionError


def report(held: dict[str, dict[str, list[bool]]], slack: dict[str, list[float]], models: int) -> str:
    rows = []
    for method in sorted(held, key=lambda each: (each.rpartition(", ")[2].isdigit(), each.rpartition(", ")[2], each)):
        by_set = {data: float(np.mean(values)) for data, values in held[method].items()}
        worst = min(by_set, key=by_set.__getitem__)
        rows.append(
            [
                method,
                f"{100 * np.mean(list(by_set.values())):.1f} %",
                f"{100 * by_set[worst]:.0f} % ({worst})",
                f"{100 * np.mean(slack[method]):.1f}",
            ]
        )
    header = [
        "upper bound, labels besides",
        "true, mean of the data sets",
        "true, worst data set",
        "mean slack, points",
    ]
    about = (
        f"{models} logistic models on {len(SETS)} data sets, {POOL:,} items and {LABELS} labels at most, {DRAWS} draws "
        "of other labels for each. Nominal: 95 %. The number after a method is that of the labels besides."
    )
    return "\n\n".join([about, table(header, rows)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=200.0)
    options, _ = parser.parse_known_args()
    publish("guarantee-alternatives", measure(options.seconds), sys.argv[1:])
