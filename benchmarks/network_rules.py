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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

import suffice as sf
from evaluation_sets import evaluation_set
from stopping_decision import INITIAL, TEST
from suffice.models import DropoutNetwork
from suffice.trace import Trace
from suffice_research.recommendation.compared_rules import catalogue
from tables import publish, table

Floats = NDArray[np.float64]
# What an error of 1 costs in labels: a wrong prediction among the unlabelled items, times their number.
UNITS: Final = tuple(sorted({price * rest for price in (0.1, 0.3, 1.0, 3.0, 10.0) for rest in (2e3, 2e4, 2e5)}))
#: Sets of several classes, or that no linear boundary separates; nothing was chosen on them.
SETS: Final = ("optdigits", "texture", "vehicle", "banana")
LABELS, BATCH, VALIDATION = 250, 10, 100
_CONTROL_PRICE: Final = 2000.0
#: References and rules that look at nothing but the number of labels.
COUNTING: Final = ("AtOnce", "Never", "CostLimit", "PoolFraction")
_RESAMPLES: Final = 2000


class ForgetfulNetwork(DropoutNetwork):
    """A network that is trained on the first labels alone, however many it is given."""

    def learn(self, X: Any, y: Any) -> None:
        """Train on with the first labels."""
        super().learn(X[:INITIAL], y[:INITIAL])


#: Networks and shares of random labels: None is the default, one in five.
KINDS: Final[dict[str, tuple[type[DropoutNetwork], float | None]]] = {
    "run": (DropoutNetwork, None),
    "no random labels": (DropoutNetwork, 0.0),
    "control": (ForgetfulNetwork, None),
}


def recorded(folder: Path, kind: str, name: str, seed: int) -> Trace:
    """A run with everything that rules look at, from the folder if it is there."""
    path = folder / f"{kind}-{name}-{seed}.npz"
    if not path.exists():
        X, y, X_test, y_test = evaluation_set(name).split(seed)
        held_out = X_test[:VALIDATION], y_test[:VALIDATION]
        model, share = KINDS[kind]
        trace = sf.simulate(
            model("mlp", classes=np.unique(y).tolist(), device="cpu", seed=seed),
            *(X, y),
            X_test=X_test[VALIDATION:][:TEST],
            y_test=y_test[VALIDATION:][:TEST],
            initial=INITIAL,
            steps=(LABELS - INITIAL) // BATCH,
            batch=BATCH,
            record="all",
            validation=held_out,
            random_share=share,
            seed=seed,
        )
        trace.save(path)
        print(kind, name, seed, flush=True)
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


class Judged(NamedTuple):
    """Regrets of a rule, ``runs x prices``, which stops were too early at a regret above 0.1, and which there were."""

    regret: Floats
    early: NDArray[np.bool_]
    stopped: NDArray[np.bool_]


def judged(traces: Sequence[Trace], judge: Judge) -> Judged:
    """Judge a rule by what its stops cost."""
    shape = (len(traces), len(UNITS))
    found = Judged(np.zeros(shape), np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool))
    for i, trace in enumerate(traces):
        for j, price in enumerate(UNITS):
            stop, paid = first_stop(trace, judge.rule(price)), costs(trace, price)
            at = len(trace) - 1 if stop is None else stop
            found.regret[i, j] = (paid[at] + judge.extra) / paid.min() - 1.0
            found.early[i, j] = at < paid.argmin() and found.regret[i, j] > 0.1
            found.stopped[i, j] = stop is not None
    return found


def compared(sets: Sequence[str], runs: Sequence[Trace], controls: Sequence[Trace]) -> str:
    """The table of all rules that the runs can tell something to, and how many stop in the control runs."""
    budget = budget_regrets(list(zip(sets, runs, strict=True)))
    rows: list[tuple[float, list[str]]] = [(float(budget.mean()), ["budget", *_shares(budget), *[""] * 6])]
    silent = [without_labels(control) for control in controls]
    stops: dict[str, list[int | None]] = {}
    for judge in judges():
        if not judge.rule(_CONTROL_PRICE).needs() <= runs[0].recorded:
            continue
        found = judged(runs, judge)
        middle, low, high = interval(budget - found.regret, sets)
        cells = [f"{100 * found.early.mean():.0f} %", f"{100 * found.stopped.mean():.0f} %"]
        cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
        told = [_stops(group, judge) for group in (runs, controls, silent)]
        if judge.name not in COUNTING:
            stops[judge.name] = [None if rounds is None else len(rounds) for rounds in told[1:]]
        rows.append((float(found.regret.mean()), [judge.name, *_shares(found.regret), *cells, *map(_rounds, told)]))
    head = ["rule", "median regret", "mean", "too early", "stopped", "budget less rule", "run: stops, round"]
    head += ["control: stops, round", "control, no label counted"]
    shown = table(head, [cells for _, cells in sorted(rows, key=lambda row: row[0])])
    lines = []
    for which, what in enumerate(("if the labels are counted as bought", "if no label is counted")):
        each = [counts[which] for counts in stops.values()]
        asked = [count for count in each if count is not None]
        half = sum(2 * count >= len(controls) for count in asked)
        some = sum(count > 0 for count in asked)
        lines.append(
            f"- {what}: of {len(asked)} rules that look at more than the number of labels, {some} stop in at least one "
            f"control run and {half} in at least half of them."
        )
    return f"{shown}\n\nControl runs, {len(controls)} in all:\n\n" + "\n".join(lines)


def _shares(regret: Floats) -> list[str]:
    return [f"{np.median(regret):.2f}", f"{regret.mean():.2f}"]


def _stops(traces: Sequence[Trace], judge: Judge) -> list[int] | None:
    """The rounds at which a rule stops, of the runs in which it does; None if they do not record what it needs."""
    rule = judge.rule(_CONTROL_PRICE)
    if not rule.needs() <= traces[0].recorded:
        return None
    found = [first_stop(trace, rule) for trace in traces]
    return [stop + 1 for stop in found if stop is not None]


def _rounds(stops: list[int] | None) -> str:
    if stops is None:
        return "-"
    return f"{len(stops)}, {np.median(stops):.0f}" if stops else "0"


def by_set(sets: Sequence[str], kinds: Mapping[str, Sequence[Trace]]) -> str:
    """Mean regret of the default rule and of the budget on each data set."""
    rows = []
    default = next(judge for judge in judges() if judge.name == "LabelWorth")
    found = {kind: judged(traces, default).regret for kind, traces in kinds.items() if kind != "control"}
    budget = budget_regrets(list(zip(sets, kinds["run"], strict=True)))
    for name in dict.fromkeys(sets):
        mask = [each == name for each in sets]
        rows.append([name, *(f"{regret[mask].mean():.3f}" for regret in (*found.values(), budget))])
    return table(["data", *(f"LabelWorth, {kind}" for kind in found), "budget, run"], rows)


def errors(sets: Sequence[str], kinds: Mapping[str, Sequence[Trace]]) -> str:
    """The true and the estimated error of the runs, at the first step, in the middle and at the end."""
    rows, some = [], kinds["run"][0]
    places = (0, len(some) // 2 - 1, len(some) - 1)
    for name in dict.fromkeys(sets):
        for kind, every in kinds.items():
            traces = [trace for each, trace in zip(sets, every, strict=True) if each == name]
            cells = []
            for at in places:
                told = np.array([trace.measures["unlabelled_error"][at] for trace in traces])
                factor = np.array([trace.measures["calibration"][at] for trace in traces])
                true = np.mean([trace.wrong_share[at] for trace in traces])
                cells.append(f"{true:.3f}, {told.mean():.3f}, {(told * factor).mean():.3f}")
            rows.append([name, kind, *cells])
    return table(["data", "", *(f"{some.n_labelled[at]} labels" for at in places)], rows)


def main() -> None:
    import torch

    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    given.runs.mkdir(parents=True, exist_ok=True)
    cases = [(name, seed) for name in SETS for seed in range(given.seeds)]
    sets = [name for name, _ in cases]
    kinds = {kind: [recorded(given.runs, kind, name, seed) for name, seed in cases] for kind in KINDS}
    parts = [
        compared(sets, kinds["run"], kinds["control"]),
        "Mean regret by data set:",
        by_set(sets, kinds),
        "Error on the test set, the network's own estimate, and the estimate calibrated by random labels:",
        errors(sets, kinds),
    ]
    publish("network-rules", "\n\n".join(parts))


if __name__ == "__main__":
    main()
