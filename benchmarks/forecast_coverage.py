"""How often the forecast's interval holds the true number of labels, on replayed runs.

The coefficients of ``suffice.forecast`` come from seeds 0 to 3 of the made and embedded data sets (``--fit`` computes
them anew). Its form (window, typical slope, which features) was chosen among some seventy variants: most compared on
runs like those of the calibration, the last few on seeds 10 to 12, of the paper's data sets too. Coverage is measured
on seeds that were used for neither.
"""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import eye, hstack

from runs import Run, paper_folder, random_runs, runs
from suffice import forecast
from suffice.bounds import risk_gap
from suffice.forecast import Forecast, labels_left
from tables import publish, table

CALIBRATION = 10
AVERAGE = 10
# Looked at once, for the published table. Seeds 10 to 12 were looked at while the form of the forecast was chosen.
FRESH = (20, 21, 22)
THRESHOLDS = (0.7, 0.5, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01)
MOMENTS = np.unique((3.0 * 1.4 ** np.arange(20)).astype(int))


@dataclass(frozen=True, eq=False)
class Question:
    """A moment of a run at which the number of labels left is asked for, and the answer."""

    run: str
    counts: NDArray[np.intp]
    ratios: NDArray[np.float64]
    threshold: float
    truth: int
    averaged: bool = False

    @property
    def late(self) -> bool:
        """Whether it is asked in the last third of the labels up to the stop."""
        return 3 * int(self.counts[-1]) >= 2 * (int(self.counts[-1]) + self.truth)


def questions(run: Run, *, averaged: bool = False) -> Iterator[Question]:
    """Ask at moments fixed beforehand, evenly spread on a log scale, for as long as the threshold is not crossed."""
    bound = np.asarray(risk_gap(run.kl_new_old)) + np.asarray(risk_gap(run.kl_old_new))
    ratio, counts = bound[CALIBRATION:] / bound[:CALIBRATION].min(), run.n_labelled[CALIBRATION:]
    if averaged and len(ratio) >= AVERAGE:
        floor = 1e-7 / bound[:CALIBRATION].min()
        logs = np.convolve(np.log(np.maximum(ratio, floor)), np.full(AVERAGE, 1.0 / AVERAGE), mode="valid")
        ratio, counts = np.exp(logs), counts[AVERAGE - 1 :]
    for threshold in THRESHOLDS:
        crossed = np.flatnonzero(ratio <= threshold)
        if not len(crossed):
            continue
        end = int(crossed[0])
        for t in MOMENTS[end > MOMENTS]:
            truth = int(counts[end] - counts[t])
            yield Question(run.name, counts[: t + 1], ratio[: t + 1], threshold, truth, averaged)


def holds(found: Forecast, truth: int) -> bool:
    return found.low <= truth <= found.high


def row(name: str, asked: Iterable[Question]) -> list[str]:
    """Coverage with each run weighing the same, the width of the interval, the bias, and how often nothing is said."""
    by_run: dict[str, list[tuple[Forecast | None, int]]] = defaultdict(list)
    for q in asked:
        by_run[q.run].append((labels_left(q.counts, q.ratios, q.threshold, averaged=q.averaged), q.truth))
    told = {run: [(f, t) for f, t in pairs if f is not None] for run, pairs in by_run.items()}
    told = {run: pairs for run, pairs in told.items() if pairs}
    flat = [pair for pairs in told.values() for pair in pairs]
    covered = np.mean([np.mean([holds(f, t) for f, t in pairs]) for pairs in told.values()])
    below = np.mean([np.mean([t < f.labels for f, t in pairs]) for pairs in told.values()])
    width = np.median([f.high / f.low for f, _ in flat])
    miss = np.median([abs(np.log(t / f.labels)) for f, t in flat])
    silent = 1.0 - len(flat) / sum(len(pairs) for pairs in by_run.values())
    return [
        name,
        str(len(told)),
        str(len(flat)),
        f"{100 * covered:.0f} %",
        f"{100 * below:.0f} %",
        f"{width:.1f}",
        f"{np.exp(miss):.2f}",
        f"{100 * silent:.0f} %",
    ]


def labelled(all_runs: Iterable[Run], seed: int, *, averaged: bool = False) -> Iterator[Question]:
    for run in all_runs:
        for q in questions(run, averaged=averaged):
            yield replace(q, run=f"{run.name} #{seed}")


def measure() -> str:
    made = {seed: list(runs(seed)) for seed in FRESH}
    fresh = [q for seed in FRESH for q in labelled(made[seed], seed)]
    rows = [row("all, fresh seeds", fresh)]
    rows.append(row("the last third of the labels", [q for q in fresh if q.late]))
    smooth = [q for seed in FRESH for q in labelled(made[seed], seed, averaged=True)]
    rows.append(row("`average=10`", smooth))
    rows.append(row("`average=10`, the last third of the labels", [q for q in smooth if q.late]))
    for kind in ("Gaussian process", "ridge", "logistic"):
        rows.append(row(kind, [q for q in fresh if q.run.startswith(kind)]))
    for low, high in ((0, 20), (20, 100), (100, 10**9)):
        name = f"{low} to {high} steps judged" if high < 10**9 else f"{low} or more steps judged"
        rows.append(row(name, [q for q in fresh if low <= len(q.counts) < high]))
    chance = [q for seed in FRESH for q in labelled(random_runs(seed), seed)]
    rows.append(row("labelled at random", chance))
    if paper_folder() is not None:
        of_paper = {seed: list(runs(seed, paper=True)) for seed in FRESH}
        papers = [q for seed in FRESH for q in labelled(of_paper[seed], seed)]
        rows.append(row("the paper's data sets", papers))
        rows.append(row("the paper's, the last third of the labels", [q for q in papers if q.late]))
        smooth = [q for seed in FRESH for q in labelled(of_paper[seed], seed, averaged=True)]
        rows.append(row("the paper's, `average=10`", smooth))
        rows.append(row("the paper's, `average=10`, the last third of the labels", [q for q in smooth if q.late]))
        for kind in ("Gaussian process", "ridge", "logistic"):
            rows.append(row(f"the paper's, {kind}", [q for q in papers if q.run.startswith(kind)]))
    header = [
        "runs",
        "number of runs",
        "forecasts",
        "interval holds the truth",
        "truth below the middle",
        "median high / low",
        "median factor off",
        "no forecast",
    ]
    return table(header, rows)


def fit(*, averaged: bool, levels: tuple[float, ...]) -> None:
    """Quantile regression of the log distance to go on the features of the forecast, every run weighing the same."""
    asked = [q for seed in range(4) for q in labelled((*runs(seed), *random_runs(seed)), seed, averaged=averaged)]
    features = np.array([forecast.features(q.counts.astype(float), q.ratios, q.threshold) for q in asked])
    target = np.log([np.log1p(q.truth / q.counts[-1]) for q in asked])
    names, index, counts = np.unique([q.run for q in asked], return_inverse=True, return_counts=True)
    weight, n = 1.0 / counts[index], len(asked)
    print(f"{n} questions on {len(names)} runs")
    equations = hstack([features, -features, eye(n), -eye(n)])
    for level in levels:
        cost = np.concatenate([np.zeros(8), level * weight, (1.0 - level) * weight])
        solved = linprog(cost, A_eq=equations, b_eq=target, bounds=(0, None), method="highs").x
        print(level, np.round(solved[:4] - solved[4:8], 3).tolist())


if __name__ == "__main__":
    if "--fit" in sys.argv:
        fit(averaged=False, levels=(0.1, 0.5, 0.9))
        # A little narrower: at these levels the interval holds the truth about as often as it promises on other runs.
        fit(averaged=True, levels=(0.15, 0.5, 0.85))
    elif "--write" in sys.argv and paper_folder() is None:
        sys.exit("the table in the documentation has the paper's data sets too: set SUFFICE_DATA to a folder with uci/")
    else:
        publish("forecast", measure())
