"""What is stated about people: coverage of the interval of alpha, and alarms about answers by chance.

    python benchmarks/people.py alpha [--runs 300] [--write]
    python benchmarks/people.py chance [--runs 400] [--write]

``alpha``: labels are drawn so that the alpha of the population is known. A class is the true one with probability
``sqrt(alpha)``, and otherwise drawn from the shares of the classes. A number is that of the item plus independent
noise. ``chance``: a person compares with others on up to 400 items.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from suffice.project.chance_answers import ComparedAnswer, chance_of, chance_test, false_alarms_of
from suffice.project.reliability import Level, krippendorff_alpha
from tables import publish, table

SIZES: Final = (30, 100, 300)
ALPHAS: Final = (0.2, 0.5, 0.8, 0.95)
PEOPLE: Final = (2, 3, 5)
#: Part of the opinions that are missing with three people or more.
MISSING: Final = 0.15
SHARES: Final = {
    "2 equal classes": (0.5, 0.5),
    "2 classes, 90 % and 10 %": (0.9, 0.1),
    "5 equal classes": (0.2,) * 5,
}
RATINGS: Final = "whole numbers from 1 to 5"
NUMBERS: Final = ("normal numbers", "numbers with heavy tails", RATINGS)
MOST: Final = 400


def drawn_labels(name: str, n: int, people: int, alpha: float, rng: np.random.Generator) -> Any:
    """Labels of ``n`` items by some people."""
    if name in SHARES or name == RATINGS:
        shares = SHARES.get(name, (0.2,) * 5)
        truth, other = rng.choice(len(shares), n, p=shares), rng.choice(len(shares), (n, people), p=shares)
        return np.where(rng.random((n, people)) < np.sqrt(alpha), truth[:, None], other)
    draw = rng.standard_normal if name == "normal numbers" else lambda size: rng.standard_t(5, size)
    return np.sqrt(alpha) * draw((n, 1)) + np.sqrt(1.0 - alpha) * draw((n, people))


def coverage(name: str, n: int, people: int, alpha: float, runs: int) -> tuple[float, float]:
    """Share of the intervals that contain alpha, and their mean width."""
    rng, level = np.random.default_rng([n, people, round(100 * alpha)]), "nominal" if name in SHARES else "interval"
    contained, widths = 0, []
    for _ in range(runs):
        labels = drawn_labels(name, n, people, alpha, rng)
        known = rng.random(labels.shape) < (1.0 if people == 2 else 1.0 - MISSING)
        rows = [row[keep].tolist() for row, keep in zip(labels, known, strict=True)]
        measured: Level = "nominal" if level == "nominal" else "interval"
        found = krippendorff_alpha(rows, measured)
        if found is not None:
            contained += found.low <= alpha <= found.high
            widths.append(found.high - found.low)
    return contained / len(widths), float(np.mean(widths))


def alpha_table(runs: int) -> str:
    rows = []
    for name in (*SHARES, *NUMBERS):
        for n in SIZES:
            found = [[coverage(name, n, people, alpha, runs) for people in PEOPLE] for alpha in ALPHAS]
            cells = [
                f"{100 * min(each for each, _ in part):.0f} to {100 * max(each for each, _ in part):.0f} % "
                f"({np.mean([width for _, width in part]):.2f})"
                for part in found
            ]
            rows.append([name, str(n), *cells])
    return table(["labels", "items", *(f"alpha {alpha}" for alpha in ALPHAS)], rows)


def noticed(shares: Sequence[float], agreement: float, answers: Sequence[float], rng: np.random.Generator) -> float:
    """Comparisons after which a person is noticed, with a look at each; infinite if never."""
    needed = -np.log(false_alarms_of(0))
    truth = rng.choice(len(shares), MOST, p=shares)
    given = np.where(rng.random(MOST) < agreement, truth, rng.choice(len(shares), MOST, p=answers)).tolist()
    counts, found, evidence = [0] * len(shares), [], 0.0
    for k, (one, other) in enumerate(zip(given, truth.tolist(), strict=True)):
        found.append(ComparedAnswer(one == other, chance_of(counts[other], k, len(shares))))
        counts[one] += 1
        evidence += chance_test(found[-1:]).evidence
        # Without this much evidence there is no alarm.
        if evidence >= needed and chance_test(found).is_alarm(false_alarms_of(0)):
            return k + 1.0
    return np.inf


def chance_table(runs: int) -> str:
    rng, rows = np.random.default_rng(0), []

    def words(value: float) -> str:
        return f"{value:.0f}" if np.isfinite(value) else f"more than {MOST}"

    kinds = [(f"at random, {n} equal classes", (1.0 / n,) * n, (1.0 / n,) * n, 0.0) for n in (2, 3, 5, 10)]
    kinds += [("at random, 90 % and 10 %, answers too", (0.9, 0.1), (0.9, 0.1), 0.0)]
    kinds += [("at random, 90 % and 10 %, answers half and half", (0.9, 0.1), (0.5, 0.5), 0.0)]
    kinds += [("always the same of 2 equal classes", (0.5, 0.5), (1.0, 0.0), 0.0)]
    kinds += [
        (f"agreement {a}, {n} equal classes", (1.0 / n,) * n, (1.0 / n,) * n, a)
        for a, n in product((0.1, 0.2, 0.3), (2, 5))
    ]
    for name, shares, answers, agreement in kinds:
        found = np.array([noticed(shares, agreement, answers, rng) for _ in range(runs)])
        median, most = np.quantile(found, [0.5, 0.9], method="higher")
        rows.append([name, f"{100 * np.isfinite(found).mean():.3g} %", words(median), words(most)])
    return table(["answers", f"noticed within {MOST}", "half of them within", "90 % of them within"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("alpha", "chance"))
    parser.add_argument("--runs", type=int)
    given, _ = parser.parse_known_args()
    if given.what == "alpha":
        publish("reliability", alpha_table(given.runs or 300))
    else:
        publish("chance-answers", chance_table(given.runs or 400))


if __name__ == "__main__":
    main()
