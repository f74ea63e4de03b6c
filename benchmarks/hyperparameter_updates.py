"""What newly learned hyper-parameters do to the true error: as in version 0.7, and now.

At every update the test error under the new hyper-parameters is divided by that under the previous ones, with the same
labels. "0.7" learns by marginal likelihood or evidence alone, on labels of largest variance; "now" has a weak prior and
accepts an update only if random labels are predicted better, on labels chosen as by default.

    python benchmarks/hyperparameter_updates.py [--seeds 5] [--sets test] [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Final

import numpy as np

import suffice as sf
from evaluation_sets import arguments, evaluation_set, names
from suffice.models import BayesianRidge, GaussianProcess
from tables import publish, table

LABELS: Final = 320
#: An update that makes the error larger by this factor counts as bad.
BAD: Final = 1.1


def learner_of(name: str, form: str, X: Any, seed: int) -> sf.ActiveLearner:
    model: Any = GaussianProcess(regularize=form == "now")
    if name == "ridge":
        model = BayesianRidge(fit_intercept=form == "now", regularize=form == "now")
    options: dict[str, Any] = {"acquisition": "variance"} if form == "0.7" else {"random_share": 0.2}
    return sf.ActiveLearner(model, X, seed=seed, **options)


def run(job: tuple[str, str, str, int]) -> list[float]:
    """Ratios of the test errors after and before each update of one run."""
    name, form, data, seed = job
    X, y, X_test, y_test = evaluation_set(data).split(seed)
    learner, ratios = learner_of(name, form, X, seed), []
    learner.tell(first := learner.ask(10), y[first])
    due = 20
    while len(learner.labelled) < min(LABELS, int(0.6 * len(X))):
        items = learner.ask()
        before = learner.model.prior_ if len(learner.labelled) + 1 == due else None
        learner.tell(items, y[items])
        if before is None:
            continue
        due *= 2
        model, rows = learner.model, learner.labelled
        if model.prior_ == before:
            ratios.append(1.0)
            continue
        kept = model.at(X[rows], y[rows], before, len(rows))
        errors = [float(np.mean((each.predict(X_test) - y_test) ** 2)) for each in (kept, model)]
        ratios.append(errors[1] / errors[0])
    return ratios


def measure(wanted: bool | None, seeds: int, processes: int) -> str:
    parts = []
    for name in ("gp", "ridge"):
        sets = names("regression", development=wanted)
        jobs = [(name, form, data, seed) for data in sets for form in ("0.7", "now") for seed in range(seeds)]
        with ProcessPoolExecutor(processes) as pool:
            results = dict(zip(jobs, pool.map(run, jobs), strict=True))
        rows = []
        for data in [*sets, "**all**"]:
            row = [data, "" if data not in sets else "development" if evaluation_set(data).development else "test"]
            for form in ("0.7", "now"):
                found = np.array(
                    [
                        ratio
                        for job, each in results.items()
                        if job[1] == form and data in (job[2], "**all**")
                        for ratio in each
                    ]
                )
                kept = 100 * np.mean(found == 1.0)
                row += [str(len(found)), f"{100 * np.mean(found >= BAD):.1f} %", f"{found.max():.2f}", f"{kept:.0f} %"]
            rows.append(row)
        header = ["data set", "used for"]
        for form in ("0.7", "now"):
            header += [f"updates, {form}", "10 % worse or more", "worst", "rejected"]
        parts.append(f"**{name}**\n\n{table(header, rows)}")
    return "\n\n".join(parts)


if __name__ == "__main__":
    publish("hyperparameter-updates", measure(*arguments(__doc__)), sys.argv[1:])
