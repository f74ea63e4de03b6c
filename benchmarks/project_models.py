"""Models of labelling projects: the time from an answer to the status, and what ``--model auto`` saves.

``times`` labels items of generated tables one by one with each model, with a background learner as the page has one. It
measures the time until the answer is written, until the status counts it, and of learning all labels again.

``auto`` lets a simulated person label whole data sets to a goal: four items at a time, chosen by the project, then a
check when the project advises one. It compares the default model with ``--model auto`` and with a forest.

    python benchmarks/project_models.py times [--labels 60] [--write]
    python benchmarks/project_models.py auto [--sets NAME ...] [--models NAME ...] [--seeds 1] [--goal 0.05] [--write]

The sets of ``auto`` come from ``finish.py``.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from typing import Any, Final

import numpy as np

from finish import data_of
from suffice.project import create_project
from suffice.project.background_learner import BackgroundLearner
from suffice.project.events import EventKind
from suffice.project.project_learner import ProjectLearner
from suffice.project.status_summary import status
from tables import publish, table

SIZES: Final = ((2000, 20), (10000, 50))
MODELS: Final = ("logistic", "forest", "boosting")
SETS: Final = ("spambase", "satimage", "skin")
# Items that a person labels before the next ones are chosen, and the longest time to wait for the model, in seconds.
_TOGETHER: Final = 4
_PATIENCE: Final = 600.0


def times(labels: int) -> str:
    """A table of times."""
    rows = [_timed(size, model, labels) for size in SIZES for model in MODELS]
    head = ("items and features", "model", "answer written", "status", "status, 95 % of answers", "all labels again")
    return table(head, rows)


def _timed(size: tuple[int, int], model: str, labels: int) -> list[str]:
    n, width = size
    rng = np.random.default_rng(0)
    X = rng.normal(size=size)
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n) > 0.0, "yes", "no")
    columns = {f"x{k}": X[:, k] for k in range(width)}
    written, counted = [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        create_project(f"{folder}/p", columns, classes=["yes", "no"], model=model, seed=0) as project,
        BackgroundLearner(project, project.learned_files) as background,
    ):
        for _ in range(labels):
            [asked] = project.next("ann", queue=background.learning_status.queue)
            start = time.perf_counter()
            project.label(asked.position, str(y[asked.position]), person="ann")
            written.append(time.perf_counter() - start)
            background.wake()
            assert background.wait(len(written), _PATIENCE)
            status(project, background.learning_status)
            counted.append(time.perf_counter() - start)
        answers = project.state().answers()
        start = time.perf_counter()
        learner = ProjectLearner(project.current_settings, project.X)
        learner.follow(answers)
        learner.learning_status(queue=_TOGETHER)
        again = time.perf_counter() - start
    later = counted[len(counted) // 3 :]
    measured = [statistics.median(written), statistics.median(later), float(np.quantile(later, 0.95)), again]
    return [f"{n:,} x {width}", model, *(f"{seconds:.2g} s" for seconds in measured)]


def auto(names: list[str], models: list[str], seeds: int, goal: float) -> str:
    """A table of labels by people."""
    rows = []
    for name in names:
        shares = []
        for model in models:
            runs = [_finished(name, model, seed, goal) for seed in range(seeds)]
            share = float(np.mean([labels for labels, _, _ in runs]))
            used = " ".join(sorted({used for _, used, _ in runs}))
            wrong = max(wrong for _, _, wrong in runs)
            shares.append(f"{share:.3f} ({used}; {100.0 * wrong:.1f} % wrong)")
            print(name, model, shares[-1], flush=True)
        rows.append([name, f"{len(data_of(name)[1]):,}", *shares])
    return table(("data set", "rows", *models), rows)


def _finished(name: str, model: str, seed: int, goal: float) -> tuple[float, str, float]:
    """Labels by people as a share of the rows, the models that were used, and the share of wrong final labels."""
    warnings.simplefilter("ignore")
    X, codes = data_of(name)
    order = np.random.default_rng([seed, 31]).permutation(len(X))
    X, y = X[order], codes[order].astype(str)
    options: dict[str, Any] = {} if model == "default" else {"model": model}
    with (
        tempfile.TemporaryDirectory() as folder,
        create_project(
            f"{folder}/p",
            {"row": np.arange(len(X)).astype(str)},
            features=X,
            classes=sorted(set(y)),
            at_most=goal,
            of="all",
            seed=seed,
            **options,
        ) as project,
        BackgroundLearner(project) as background,
    ):
        while project.reached_goal() is None:
            with project.lock:
                checking = project.state().checks.open_check is not None
            if not checking:
                assert background.wait_settled(_PATIENCE)
                plan = status(project, background.learning_status)["decision"]["finish"]
                if plan is not None and plan["check_now"]:
                    project.start_check(person="ann", predict=background.predictions_after)
                    continue
            for asked in project.next("ann", _TOGETHER, queue=background.learning_status.queue):
                project.label(asked.position, str(y[asked.position]), person="ann")
                if project.reached_goal() is not None:
                    break
        final = project.final_labels()
        wrong = float(np.mean(np.array(final.labels) != y))
        changes = [event for event in project.events() if event.kind is EventKind.model_changed]
        used = [project.settings.model, *(str(event.data["model"]) for event in changes)]
    return final.guarantee.by_people / len(X), " > ".join(used), wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("times", "auto"))
    parser.add_argument("--labels", type=int, default=60)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--models", nargs="+", default=["default", "auto", "forest"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--goal", type=float, default=0.05)
    given, rest = parser.parse_known_args()
    if given.what == "times":
        publish("project-model-times", times(given.labels), rest)
    else:
        publish("project-models", auto(given.sets, given.models, given.seeds, given.goal), rest)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    main()
