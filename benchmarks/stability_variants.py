"""Why the paper's rule is not first: what its start, its noise and its scale cost it, each put right alone."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

import suffice as sf
from suffice.bounds import risk_gap
from suffice.numerics.special_functions import Floats
from suffice.recommendation.stopping_costs import RATIOS, CostedRun, regrets
from suffice.research.compare.leaderboard import choose
from suffice.research.compare.recording import RecordingJob
from suffice.research.runner import kept
from suffice.trace import Trace
from tables import table

THRESHOLDS = np.geomspace(3.0, 1e-6, 50)
NAMES = {
    "paper": "the paper's: last bound / least of the first ten",
    "start": "last bound / median of the first ten",
    "smooth": "median of the last ten / least of the first ten",
    "both": "median of the last ten / median of the first ten",
    "absolute": "median of the last ten, not divided",
    "labels": "median of the last ten labels' steps / median of the first ten labels' steps",
    "waiting": "nothing: the best stop of each run that waits ten steps",
    "worth": "`LabelWorth`, with nothing to choose",
}

RATIOS_OF_BOUNDS = ("paper", "start", "smooth", "both", "absolute", "labels")


def values(trace: Trace, batch: int) -> dict[str, Floats]:
    """What each variant compares with its threshold after each step, told what was known then."""
    seen = _bounds(trace.kl_new_old, trace.kl_old_new)
    anew = {known.step: _bounds(known.kl_new_old, known.kl_old_new) for known in trace.relearned}
    found = {name: np.full(len(trace), np.inf) for name in RATIOS_OF_BOUNDS}
    few = max(1, 10 // batch)
    for step in range(len(trace)):
        if step in anew:
            seen[: step + 1] = anew[step]
        if step >= few:
            found["labels"][step] = _median(seen[step - few + 1 : step + 1]) / _median(seen[:few])
        if step >= 10:
            least, middle = max(float(seen[:10].min()), 1e-7), _median(seen[:10])
            last = _median(seen[step - 9 : step + 1])
            told = (seen[step] / least, seen[step] / middle, last / least, last / middle, last)
            for name, value in zip(RATIOS_OF_BOUNDS, told, strict=False):
                found[name][step] = value
    return found


def _median(bounds: Floats) -> float:
    return max(float(np.median(bounds)), 1e-7)


def _bounds(new_old: Floats, old_new: Floats) -> Floats:
    return np.asarray(risk_gap(new_old) + risk_gap(old_new))


def variants_table(jobs: Sequence[RecordingJob], traces: Path, hurt: Collection[tuple[str, str]]) -> str:
    """Regret of each variant with thresholds chosen on other data sets, and with the best in hindsight.

    Every variant may also stop at once or never. Thresholds are chosen for each batch, on runs in which labels help.
    """
    found: dict[tuple[str, str, int], dict[str, list[Floats]]] = defaultdict(lambda: defaultdict(list))
    for job in jobs:
        if (job.data, job.model) in hurt:
            continue
        trace = kept(job, traces)
        assert trace is not None
        run = CostedRun.of(trace, None)
        for name, series in values(trace, job.batch).items():
            stops = [int(np.argmax(series <= limit)) if (series <= limit).any() else None for limit in THRESHOLDS]
            found[name, job.model, job.batch][job.data].append(regrets(run, [0, *stops, None], RATIOS))
        late = list(range(10, len(trace)))
        found["waiting", job.model, job.batch][job.data].append(regrets(run, late, RATIOS).min(axis=0)[None])
        worth = [_first(trace, sf.LabelWorth(ratio, 1.0)) for ratio in RATIOS]
        found["worth", job.model, job.batch][job.data].append(np.diag(regrets(run, worth, RATIOS))[None])
    lines = [[words, *_cells(found, name)] for name, words in NAMES.items()]
    return table(["what is compared with the threshold", "chosen on other data sets", "best in hindsight"], lines)


def _first(trace: Trace, rule: sf.Criterion) -> int | None:
    return next((number for number, verdict in enumerate(trace.replay(rule)) if verdict.stop), None)


def _cells(found: dict[tuple[str, str, int], dict[str, list[Floats]]], name: str) -> tuple[str, str]:
    chosen, hindsight = [], []
    each = np.arange(len(RATIOS))
    for (own, _, _), by_data in found.items():
        if own != name:
            continue
        runs = {data: np.array(several) for data, several in by_data.items()}
        logs = {data: np.log1p(several) for data, several in runs.items()}
        for data in runs:
            setting = np.array(choose(logs, data, default=0).per_cost)
            chosen.append(runs[data][:, setting, each])
            hindsight.append(runs[data][:, logs[data].mean(axis=0).argmin(axis=0), each])
    first = "" if name == "waiting" else _shown(chosen)
    return first, "" if name == "worth" else _shown(hindsight)


def _shown(parts: Sequence[Floats]) -> str:
    values = np.concatenate([part.ravel() for part in parts])
    return f"{np.median(values):.2f} / {np.mean([part.mean() for part in parts]):.2f}"
