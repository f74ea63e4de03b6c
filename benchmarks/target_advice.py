"""How often the advice for a target changes while people label, as a labelling project shows it.

Each run labels up to 300 items of a set: 10 at random, then those that the model chooses, and one in five at random.
After each label the headline of the decision is read. A target of 5 % and of 10 % of wrong predictions is asked for.
The rules of the advice were developed on breast cancer and on the sets named made; htru2, skin, grid and adult were not
used for that.

    python benchmarks/target_advice.py [--seeds 2] [--processes 2] [--write]

``--monitor`` reads the decision of a ``StopMonitor`` beside scikit-learn's logistic regression instead, after each five
labels; ``--monitor forget`` makes it forget its earlier advice.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LogisticRegression

from evaluation_sets import evaluation_set
from suffice import LabelWorth, StopMonitor
from suffice.presentation.decision_words import decision_words
from suffice.project.project_learner import ProjectLearner
from suffice.project.settings import Settings
from suffice.project.state import Answer
from suffice.project.status_summary import decision_of
from suffice.session.advice import AdviceByTarget
from tables import publish, table

LABELS: Final = 300
POOL: Final = 3000
TARGETS: Final = (0.05, 0.1)
DEVELOPED_ON: Final = ("breast cancer", "made 1", "made 2", "made 3")
UNSEEN: Final = ("htru2", "skin", "grid classes", "adult")


def features(name: str) -> tuple[Any, Any]:
    """Features and labels of a set."""
    if name.startswith("made"):
        seed = int(name[-1])
        X, y = datasets.make_classification(
            POOL,
            12,
            n_informative=5,
            n_redundant=2,
            flip_y=0.02 * seed,
            class_sep=1.0 + 0.3 * seed,
            random_state=seed,
        )
        return (X - X.mean(0)) / X.std(0), y.astype(str)
    if name == "breast cancer":
        X, y = datasets.load_breast_cancer(return_X_y=True)
        return (X - X.mean(0)) / X.std(0), y.astype(str)
    found = evaluation_set(name)
    return found.X[:POOL], found.y[:POOL].astype(str)


def advice(job: tuple[str, float, int]) -> list[tuple[int, str]]:
    """The headlines of a run, each with the number of labels at which it begins."""
    name, target, seed = job
    X, y = features(name)
    classes = tuple(np.unique(y).tolist())
    rule = LabelWorth().state_dict()
    settings = Settings(
        name, "classification", classes, "y", "table", (), None, "logistic", rule, seed=seed, at_most=target
    )
    learner = ProjectLearner(settings, X, compare=False)
    order = np.random.default_rng(seed).permutation(len(X)).tolist()
    answers: list[Answer] = []
    labelled: set[int] = set()
    said: list[tuple[int, str]] = []
    while len(answers) < LABELS:
        n = len(answers)
        chosen = () if n < settings.initial or n % 5 == 0 else learner.learning_status(queue=1).queue
        item = chosen[0] if chosen else next(each for each in order if each not in labelled)
        labelled.add(item)
        answers.append(Answer(item, y[item], random=not chosen))
        learner.follow(answers)
        found = learner.learning_status()
        if found.decision is not None:
            decision = decision_of(found, settings, len(answers), size=len(X))
            headline = decision_words(decision.as_dict()).headline
            if not said or said[-1][1] != headline:
                said.append((len(answers), headline))
    return said


def monitored_advice(job: tuple[str, float, int], *, forget: bool) -> list[tuple[int, str]]:
    """As :func:`advice`, for a monitor: 10 labels at random, then 4 of 5 that the model is least certain of."""
    name, target, seed = job
    X, y = features(name)
    order = np.random.default_rng(seed).permutation(len(X)).tolist()
    monitor = StopMonitor(X, LabelWorth(), seed=seed)
    items = order[:10]
    random = list(items)
    said: list[tuple[int, str]] = []
    while len(items) <= LABELS:
        if len(np.unique(y[items])) > 1:
            model = LogisticRegression(max_iter=1000).fit(X[items], y[items])
            monitor.update(model, items, y[items], random)
            if forget:
                monitor._session._advice = AdviceByTarget()
            headline = decision_words(monitor.decision(target).as_dict()).headline
            if not said or said[-1][1] != headline:
                said.append((len(items), headline))
            certainty = model.predict_proba(X).max(axis=1)
            certainty[items] = np.inf
            items += np.argsort(certainty, kind="stable")[:4].tolist()
        # The random item is drawn after the others, from the rest.
        drawn = next(each for each in order if each not in items)
        items.append(drawn)
        random.append(drawn)
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--monitor", nargs="?", const="remember", choices=("remember", "forget"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--processes", type=int, default=2)
    given, _ = parser.parse_known_args()
    jobs = list(product((*DEVELOPED_ON, *UNSEEN), TARGETS, range(given.seeds)))
    with ProcessPoolExecutor(given.processes) as pool:
        run = partial(monitored_advice, forget=given.monitor == "forget") if given.monitor else advice
        results = dict(zip(jobs, pool.map(run, jobs), strict=True))
    rows = []
    for name in (*DEVELOPED_ON, *UNSEEN):
        runs = [results[job] for job in jobs if job[0] == name]
        # A headline that comes back after another one.
        reversals = [len(run) - len({headline for _, headline in run}) for run in runs]
        last = [run[-1][1] for run in runs]
        checks, out = (last.count(each) for each in ("Time for a check", "Your target is out of reach for this model"))
        changes = sum(len(run) - 1 for run in runs)
        part = "yes" if name in DEVELOPED_ON else "no"
        rows.append([name, part, str(len(runs)), str(changes), str(sum(reversals)), str(checks), str(out)])
    header = ["set", "used in development", "runs", "changes", "reversals", "ends: check", "ends: out of reach"]
    publish("monitor-target-advice" if given.monitor else "target-advice", table(header, rows))
    for job in jobs:
        print(*job, " | ".join(f"{n} {headline}" for n, headline in results[job]))


if __name__ == "__main__":
    main()
