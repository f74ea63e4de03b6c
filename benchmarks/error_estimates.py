"""How far the estimated error of the unlabelled items is from the true one: the model alone, and with random labels.

Labels are chosen as by default, a fifth of them at random. For classes the error is the share of wrong predictions, for
numbers the mean squared error of the standardised target. "before" is the estimate of version 0.9 for classes, and that
of the labelling page in version 0.7 for numbers. The estimate for classes was developed on the sets of development and
of the test; the others, of the stopping decision, were not used for it and are those shown for classes.

    python benchmarks/error_estimates.py classes|numbers [--seeds 5] [--sets test] [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Final, NamedTuple

import numpy as np

import suffice as sf
from acquisitions import TASKS, model_of
from evaluation_sets import arguments, decision_names, evaluation_set, names
from suffice.session.error_estimate import calibrated_error
from tables import publish, table

#: Labels at which estimates are compared with the truth.
COUNTS: Final = (50, 100, 200, 400)
SHARE: Final = 0.2
MODELS: Final = {"classes": ("logistic",), "numbers": ("gp", "ridge")}
# Pools of the sets of the stopping decision, at most, and a set that takes hours.
POOL: Final = 3000
LEFT_OUT: Final = "splice"


class Estimates(NamedTuple):
    """The true error, and three estimates of it."""

    true: float
    before: float
    alone: float
    calibrated: float
    held: bool


def estimates(learner: sf.ActiveLearner, X: Any, y: Any) -> Estimates:
    rest = np.setdiff1d(np.arange(len(X)), learner.labelled)
    model, found = learner.model, learner.error_estimate()
    predicted = model.predict(X[rest])
    if hasattr(model, "predict_proba"):
        true = float(np.mean(predicted != y[rest]))
        model_of_labels = learner._required_view().judged_model()
        losses = learner._session.estimates.losses.pairs(model_of_labels, learner.labels, learner.random_items)
        before = calibrated_error(found.model_alone, *losses, task="classification").value
    else:
        true = float(np.mean((predicted - y[rest]) ** 2))
        before = found.model_alone
    return Estimates(true, before, found.model_alone, found.value, found.low <= true <= found.high)


def run(job: tuple[str, str, int]) -> dict[int, Estimates]:
    """Estimates at some numbers of labels of one run."""
    name, data, seed = job
    X, y, _, _ = evaluation_set(data).split(seed)
    if data in decision_names("classification"):
        X, y = X[:POOL], y[:POOL]
    learner, found = sf.ActiveLearner(model_of(name), X, random_share=SHARE, seed=seed), {}
    learner.tell(first := learner.ask(10), y[first])
    while len(learner.labelled) < min(max(COUNTS), int(0.8 * len(X))):
        learner.tell(items := learner.ask(), y[items])
        if len(learner.labelled) in COUNTS:
            found[len(learner.labelled)] = estimates(learner, X, y)
    return found


def measure(kind: str, wanted: bool | None, seeds: int, processes: int) -> str:
    parts = []
    for name in MODELS[kind]:
        sets = names(TASKS[name], development=wanted)
        if kind == "classes" and not wanted:
            sets = [each for each in decision_names("classification") if each != LEFT_OUT]
        jobs = [(name, data, seed) for data in sets for seed in range(seeds)]
        with ProcessPoolExecutor(processes) as pool:
            results = dict(zip(jobs, pool.map(run, jobs), strict=True))
        rows = []
        for data in sets:
            use = "development" if evaluation_set(data).development else "test"
            rows.append([data, use, *cells([results[name, data, seed] for seed in range(seeds)])])
        rows.append(["**mean**", "", *cells([results[job] for job in jobs])])
        header = ["data set", "used for"]
        for count in COUNTS:
            header += [f"true, {count} labels", "before", "model alone", "calibrated", "interval holds it"]
        parts.append(f"**{name}**\n\n{table(header, rows)}")
    return "\n\n".join(parts)


def cells(runs: list[dict[int, Estimates]]) -> list[str]:
    found = []
    for count in COUNTS:
        values = [each[count] for each in runs if count in each]
        if not values:
            found += ["", "", "", "", ""]
            continue
        true = np.array([each.true for each in values])
        found.append(f"{true.mean():.3f}")
        for kind in ("before", "alone", "calibrated"):
            distance = np.abs(np.array([getattr(each, kind) for each in values]) - true)
            found.append(f"{distance.mean():.3f}")
        found.append(f"{100 * np.mean([each.held for each in values]):.0f} %")
    return found


if __name__ == "__main__":
    given = sys.argv.pop(1) if len(sys.argv) > 1 and sys.argv[1] in MODELS else "classes"
    publish(f"error-estimates-{given}", measure(given, *arguments(__doc__)), sys.argv[1:])
