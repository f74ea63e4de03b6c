"""Stopping rules on runs of a network, judged by cost, and on control runs whose network learns no further label.

A run has 10 random labels and buys 24 batches of 10, one in five of them at random and the others by BatchBALD. In the
control run the network trains for as many rounds on the 10 first labels alone. A rule that says stop there follows the
training and not the labels. It is asked twice: told that the labels were bought, and told that none was.

The cost of a stop and the budget are those of ``stopping_decision.py``. Rules have their defaults; rules that take
costs are told the price, in control runs that of 2,000 items and one label for a wrong prediction.

    python benchmarks/network_rules.py --runs FOLDER [--seeds 2] [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from evaluation_sets import evaluation_set
from stopping_decision import INITIAL, TEST, UNITS
from suffice.models import DropoutNetwork
from suffice.recommendation.compared_rules import catalogue
from suffice.trace import Trace
from tables import publish, table

Floats = NDArray[np.float64]
#: Sets of several classes, or that no linear boundary separates; nothing was chosen on them.
SETS: Final = ("optdigits", "texture", "vehicle", "banana")
LABELS, BATCH, VALIDATION = 250, 10, 100
_CONTROL_PRICE: Final = 2000.0
_RESAMPLES: Final = 2000


class ForgetfulNetwork(DropoutNetwork):
    """A network that is trained on the first labels alone, however many it is given."""

    def learn(self, X: Any, y: Any) -> None:
        """Train on with the first labels."""
        super().learn(X[:INITIAL], y[:INITIAL])


def recorded(folder: Path, kind: type[DropoutNetwork], name: str, seed: int) -> Trace:
    """A run with everything that rules look at, from the folder if it is there."""
    path = folder / f"{kind.__name__}-{name}-{seed}.npz"
    if not path.exists():
        X, y, X_test, y_test = evaluation_set(name).split(seed)
        held_out = X_test[:VALIDATION], y_test[:VALIDATION]
        trace = sf.simulate(
            kind("mlp", classes=np.unique(y).tolist(), device="cpu", seed=seed),
            *(X, y),
            X_test=X_test[VALIDATION:][:TEST],
            y_test=y_test[VALIDATION:][:TEST],
            initial=INITIAL,
            steps=(LABELS - INITIAL) // BATCH,
            batch=BATCH,
            record="all",
            validation=held_out,
            seed=seed,
        )
        trace.save(path)
        print(kind.__name__, name, seed, flush=True)
    return Trace.load(path)


def without_labels(control: Trace) -> Trace:
    """A control run as it is seen by somebody who knows that no label was bought after the first ones."""
    steps = len(control)
    measures = {name: values for name, values in control.measures.items() if not name.startswith("selected_")}
    measures |= {
        "calibration": np.ones(steps),
        "random_labels": np.zeros(steps, dtype=np.intp),
        "recent_gain": np.zeros(steps),
        "cost": np.full(steps, float(INITIAL)),
        "classes_seen": np.repeat(measures["classes_seen"][:1], steps),
    }
    return replace(control, n_labelled=np.full(steps, INITIAL), measures=measures)


class Judge(NamedTuple):
    """A rule of the comparison.

    Attributes:
        name: Name in the table.
        rule: Returns the rule for what an error of 1 costs in labels.
        extra: Labels that it needs besides those of the run.
    """

    name: str
    rule: Callable[[float], sf.Criterion]
    extra: int = 0


def judges() -> list[Judge]:
    """All rules at their defaults, and the two ends."""
    found = [Judge("ErrorStability(0.2, calibration=1)", lambda _: sf.ErrorStability(0.2, calibration=1))]
    for entry in catalogue(UNITS):
        # Where a time limit stops depends on the machine; budgets are chosen, not taken at a default.
        if entry.make is None or "classification" not in entry.tasks or entry.name in ("TimeLimit", "Budget"):
            continue
        given = entry.rule if entry.kind == "cost" else (lambda _, entry=entry: entry.rule(entry.default))
        found.append(Judge(entry.name, given, VALIDATION if entry.charged else 0))
    return found


def first_stop(trace: Trace, rule: sf.Criterion) -> int | None:
    """The step of the first stop; None if there is none."""
    return next((at for at, verdict in enumerate(trace.replay(rule)) if verdict.stop), None)


def costs(trace: Trace, price: float) -> Floats:
    """What a stop at each step costs, in labels."""
    return np.asarray(price * trace.wrong_share + trace.n_labelled)


def budget_regrets(runs: Sequence[tuple[str, Trace]]) -> Floats:
    """Regrets of the budget that is best on the other sets, ``runs x prices``."""
    sets = np.array([name for name, _ in runs])
    found = np.zeros((len(runs), len(UNITS)))
    for j, price in enumerate(UNITS):
        every = np.array([costs(trace, price) / costs(trace, price).min() - 1.0 for _, trace in runs])
        for i, name in enumerate(sets):
            found[i, j] = every[i, every[sets != name].mean(axis=0).argmin()]
    return found


def interval(differences: Floats, sets: Sequence[str]) -> tuple[float, float, float]:
    """Mean over the data sets, with a 95 % interval by resampling them."""
    means = np.array([differences[[each == name for each in sets]].mean() for name in dict.fromkeys(sets)])
    drawn = means[np.random.default_rng(0).integers(0, len(means), (_RESAMPLES, len(means)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(means.mean()), float(low), float(high)


def compared(runs: Sequence[tuple[str, Trace]], controls: Sequence[Trace]) -> str:
    """The table of all rules that the runs can tell something to."""
    sets = [name for name, _ in runs]
    budget = budget_regrets(runs)
    rows: list[tuple[float, list[str]]] = [
        (float(budget.mean()), ["budget", *_shares(budget), "", "", "", "", ""]),
    ]
    silent = [without_labels(control) for control in controls]
    for judge in judges():
        if not judge.rule(_CONTROL_PRICE).needs() <= runs[0][1].recorded:
            continue
        regret, early = np.zeros((len(runs), len(UNITS))), np.zeros((len(runs), len(UNITS)), dtype=bool)
        stopped = np.zeros(regret.shape, dtype=bool)
        for i, (_, trace) in enumerate(runs):
            for j, price in enumerate(UNITS):
                stop, paid = first_stop(trace, judge.rule(price)), costs(trace, price)
                at = len(trace) - 1 if stop is None else stop
                regret[i, j] = (paid[at] + judge.extra) / paid.min() - 1.0
                early[i, j] = at < paid.argmin() and regret[i, j] > 0.1
                stopped[i, j] = stop is not None
        middle, low, high = interval(budget - regret, sets)
        asked = [_stops(group, judge) for group in (controls, silent)]
        cells = [f"{100 * early.mean():.0f} %", f"{100 * stopped.mean():.0f} %"]
        cells += [f"{middle:.2f} ({low:.2f} to {high:.2f})", *asked]
        rows.append((float(regret.mean()), [judge.name, *_shares(regret), *cells]))
    head = ["rule", "median regret", "mean", "too early", "stopped", "budget less rule"]
    head += ["control: stopped, labels counted", "control: stopped, no label counted"]
    return table(head, [cells for _, cells in sorted(rows, key=lambda row: row[0])])


def _shares(regret: Floats) -> list[str]:
    return [f"{np.median(regret):.2f}", f"{regret.mean():.2f}"]


def _stops(traces: Sequence[Trace], judge: Judge) -> str:
    """In how many runs the rule stops; nothing if they do not record what it needs."""
    rule = judge.rule(_CONTROL_PRICE)
    if not rule.needs() <= traces[0].recorded:
        return "-"
    return f"{sum(first_stop(trace, rule) is not None for trace in traces)} of {len(traces)}"


def errors(runs: Sequence[tuple[str, Trace]], controls: Sequence[Trace]) -> str:
    """The true and the estimated error of the runs, at the first step, in the middle and at the end."""
    rows = []
    for name in dict.fromkeys(name for name, _ in runs):
        for kind, traces in (
            ("run", [trace for each, trace in runs if each == name]),
            ("control", [control for (each, _), control in zip(runs, controls, strict=True) if each == name]),
        ):
            cells = []
            for at in (0, len(traces[0]) // 2 - 1, len(traces[0]) - 1):
                true = np.mean([trace.wrong_share[at] for trace in traces])
                told = [trace.measures["unlabelled_error"][at] for trace in traces]
                factor = [trace.measures["calibration"][at] for trace in traces]
                cells.append(f"{true:.3f}, {np.mean(told):.3f}, {np.mean(np.multiply(told, factor)):.3f}")
            rows.append([name, kind, *cells])
    counts = [int(runs[0][1].n_labelled[at]) for at in (0, len(runs[0][1]) // 2 - 1, -1)]
    return table(["data", "", *(f"{count} labels" for count in counts)], rows)


def main() -> None:
    import torch

    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    cases = [(name, seed) for name in given.sets for seed in range(given.seeds)]
    runs = [(name, recorded(given.runs, DropoutNetwork, name, seed)) for name, seed in cases]
    controls = [recorded(given.runs, ForgetfulNetwork, name, seed) for name, seed in cases]
    shown = f"{compared(runs, controls)}\n\nError on the test set, the model's own estimate, and the calibrated one:"
    publish("network-rules", f"{shown}\n\n{errors(runs, controls)}")


if __name__ == "__main__":
    main()
