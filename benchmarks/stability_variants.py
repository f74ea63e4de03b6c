"""Why the paper's rule is not first: what its start, its noise and its scale cost it, each put right alone."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from suffice.bounds import risk_gap
from suffice.experiments.compare.choosing import choose
from suffice.experiments.compare.costs import RATIOS, Run, regrets
from suffice.experiments.compare.recording import Recording
from suffice.experiments.runner import kept
from suffice.special import Floats
from suffice.trace import Trace
from tables import table

START = 10
THRESHOLDS = np.geomspace(3.0, 1e-4, 40)
NAMES = {
    "paper": "the paper's: last bound / least of the first ten",
    "start": "last bound / median of the first ten",
    "smooth": "median of the last ten / least of the first ten",
    "both": "median of the last ten / median of the first ten",
    "absolute": "median of the last ten, not divided",
}


def values(trace: Trace) -> dict[str, Floats]:
    """What each variant compares with its threshold after each step, told what was known then."""
    seen = _bounds(trace.kl_new_old, trace.kl_old_new)
    anew = {known.step: _bounds(known.kl_new_old, known.kl_old_new) for known in trace.relearned}
    found = {name: np.full(len(trace), np.inf) for name in NAMES}
    for step in range(len(trace)):
        if step in anew:
            seen[: step + 1] = anew[step]
        if step < START:
            continue
        first, last = seen[:START], float(np.median(seen[step - START + 1 : step + 1]))
        least, middle = max(float(first.min()), 1e-7), max(float(np.median(first)), 1e-7)
        told = (seen[step] / least, seen[step] / middle, last / least, last / middle, last)
        for name, value in zip(NAMES, told, strict=True):
            found[name][step] = value
    return found


def _bounds(new_old: Floats, old_new: Floats) -> Floats:
    return np.asarray(risk_gap(new_old) + risk_gap(old_new))


def variants_table(jobs: Sequence[Recording], traces: Path, hurt: Collection[tuple[str, str]]) -> str:
    """Regret of each variant with thresholds chosen on other data sets, and with the best in hindsight."""
    found: dict[tuple[str, str, int], dict[str, list[Floats]]] = defaultdict(lambda: defaultdict(list))
    for job in jobs:
        trace = kept(job, traces)
        assert trace is not None
        run = Run.of(trace, None)
        for name, series in values(trace).items():
            stops = [int(np.argmax(series <= limit)) if (series <= limit).any() else None for limit in THRESHOLDS]
            for batch in (0, job.batch):
                found[name, job.model, batch][job.data].append(regrets(run, stops, RATIOS))
    lines = []
    for name, words in NAMES.items():
        cells = [_regrets(found, name, batches, hurt) for batches in ((0,), (1, 10))]
        lines.append([words, *(cell for both in cells for cell in both)])
    head = ["what is compared with the threshold", "chosen on other data sets", "best in hindsight"]
    return table([*head, "chosen, batches apart", "hindsight, batches apart"], lines)


def _regrets(
    found: dict[tuple[str, str, int], dict[str, list[Floats]]],
    name: str,
    batches: Sequence[int],
    hurt: Collection[tuple[str, str]],
) -> tuple[str, str]:
    chosen, hindsight = [], []
    each = np.arange(len(RATIOS))
    for (own, model, batch), by_data in found.items():
        if own != name or batch not in batches:
            continue
        runs = {data: np.array(several) for data, several in by_data.items()}
        for data in runs:
            if (data, model) not in hurt:
                setting = np.array(choose(runs, data, default=len(THRESHOLDS) // 2).per_cost)
                chosen.append(runs[data][:, setting, each])
                hindsight.append(runs[data][:, runs[data].mean(axis=0).argmin(axis=0), each])
    return _shown(chosen), _shown(hindsight)


def _shown(parts: Sequence[Floats]) -> str:
    values = np.concatenate([part.ravel() for part in parts])
    return f"{np.median(values):.2f} / {np.mean([part.mean() for part in parts]):.2f}"
