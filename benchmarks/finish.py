"""How many labels people give until at most a share of all labels of a data set is wrong, guaranteed.

``costs`` follows labelling runs with a logistic regression, with a forest, and with the model that is chosen on the
labels so far. For each goal the check starts when the plan says so; what it takes is its exact mean. Compared are: the
crude policy (a check of the simple form when the estimated error is below three quarters of what is allowed; given up
after three times its planned size), a check of the simple form at the model's own stop, and the same policy with the
cut known: it knows how many predictions are wrong after each number of further labels. ``false`` makes complete runs
with ``finished_run`` on small samples, and counts false guarantees. ``screening`` does both for a screening, see
``finish_screening.py``.

    python benchmarks/finish.py costs [--seeds 5] [--sets NAME ...] [--workers 2] [--runs FILE] [--write]
    python benchmarks/finish.py false [--number 2000] [--workers 2] [--write]
    python benchmarks/finish.py screening [--seeds 3] [--number 2000] [--workers 2] [--runs FILE] [--write]

The sets of tables come from ``evaluation_sets.py``; texts need ``SUFFICE_DATA``. None of them had a part in the choice
of the policy, which was made on the development sets.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np

import finish_screening
import suffice as sf
from evaluation_sets import evaluation_set
from suffice.checks import SequentialTerms, allowed_wrong
from suffice.checks.finish_plan import joint_answers
from suffice.checks.sequential_terms import planned_answers, proof_probabilities
from suffice.forecast import CURVE_POWER
from suffice.learner import ModelChoice, finished_run
from suffice.models.factory import make_model
from suffice.tables.transformers import TextComponents
from suffice_research.data.set_readers import read_texts
from tables import publish, table

GOALS: Final = (0.02, 0.05, 0.1)
MODELS: Final = ("logistic", "forest", "chosen")
ALPHA: Final = 0.025
#: Rows of a data set at most; of the largest one.
ROWS, LARGEST = 2000, 10000
# Labels at a step, as a share of those so far, and the share of the rows at which a run ends.
_STEP, _LAST = 0.06, 0.9
# A crude check starts below this share of the wrong predictions that are allowed.
_CRUDE: Final = 0.75


def _texts(name: str, classes: int | None = None) -> Callable[[], tuple[Any, Any]]:
    def load() -> tuple[Any, Any]:
        texts, labels = read_texts(name)
        groups = sorted(set(labels))[:classes]
        kept = [k for k, label in enumerate(labels) if label in groups and texts[k].strip()]
        kept = np.random.default_rng(0).permutation(kept)[:ROWS].tolist()
        return TextComponents().fit_transform([texts[k] for k in kept]), np.array([labels[k] for k in kept])

    return load


def _table(name: str, rows: int = ROWS) -> Callable[[], tuple[Any, Any]]:
    def load() -> tuple[Any, Any]:
        found = evaluation_set(name)
        kept = np.random.default_rng(0).permutation(len(found.X))[:rows]
        return found.X[kept], found.y[kept]

    return load


#: Data sets: tables, images and texts, with 2 to 20 classes.
SETS: Final[dict[str, Callable[[], tuple[Any, Any]]]] = {
    "spambase": _table("spambase"),
    "magic": _table("magic"),
    "satimage": _table("satimage"),
    "segment": _table("segment"),
    "page blocks": _table("page blocks"),
    "cells": _table("cells"),
    "optdigits (images)": _table("optdigits"),
    "skin": _table("skin", LARGEST),
    "sms_spam (texts)": _texts("sms_spam"),
    "newsgroups (texts, 20 classes)": _texts("newsgroups"),
}


@lru_cache(maxsize=8)
def data_of(name: str) -> tuple[Any, Any]:
    X, y = SETS[name]()
    return X, np.unique(y, return_inverse=True)[1]


# What a check takes.


def mean_answers(pool: int, allowed: int, wrong: int, expected: float, *, corrected: bool) -> tuple[float, float]:
    """Mean number of answers of a check, and the probability that it proves the goal.

    A check of the simple form is given up after three times its planned number of answers.
    """
    if allowed >= pool:
        return 0.0, 1.0
    if corrected:
        planned = round(float(joint_answers([pool], allowed, [expected], ALPHA)[0]))
    else:
        planned = planned_answers(allowed, expected / pool, pool, ALPHA)
    terms = SequentialTerms(pool, allowed, max(1, planned), ALPHA, corrected=corrected)
    last = pool if corrected else min(pool, 3 * terms.planned)
    proven = proof_probabilities(terms, [wrong], last)[0]
    return 1.0 + float((1.0 - proven[:-1]).sum()), float(proven[-1])


# Runs.


def _learner(model: Any, X: Any, seed: int, **others: Any) -> sf.ActiveLearner:
    return sf.ActiveLearner(model, X, criterion=sf.LabelWorth(), seed=seed, **others)


def follow(job: tuple[str, str, int]) -> dict[str, Any]:
    """One run: at each step the numbers that decide, and for each goal the labels at which the plan starts a check."""
    name, kind, seed = job
    warnings.simplefilter("ignore")
    X, y = data_of(name)
    order = np.random.default_rng([seed, 31]).permutation(len(X))
    X, y, classes = X[order], y[order], list(range(int(y.max()) + 1))
    choice = ModelChoice.of_classes(classes, seed=seed) if kind == "chosen" else None
    model = make_model(kind, classes=classes, seed=seed) if choice is None else choice.model
    learner, steps, starts, stop = _learner(model, X, seed), [], dict[str, int](), None
    first = learner.ask(10)
    learner.tell(first, y[first])
    least, enough = allowed_wrong(min(GOALS), len(X)), False
    while len(learner.labelled) < _LAST * len(X) and not enough:
        n = len(learner.labelled)
        plans = {str(goal): learner.decision(goal, of="all").finish for goal in GOALS}
        now = any(plan is not None and plan.check_now and goal not in starts for goal, plan in plans.items())
        if choice is not None and choice.due(n, before_check=now):
            items = np.array(learner.labelled)
            drawn = np.isin(items, learner.random_items)
            if choice.better(X[items], y[items], drawn) is not None:
                learner = _learner(choice.model, X, seed, initial=items)
                learner.tell(items, y[items], random=drawn)
                continue
        rest = np.setdiff1d(np.arange(len(X)), learner.labelled)
        fitted = learner.current_model
        p = fitted.predict_proba(X[rest])
        wrong = (np.asarray(fitted.classes_)[p.argmax(axis=1)] != y[rest])[np.argsort(p.max(axis=1), kind="stable")]
        left = int(wrong.sum()) - np.concatenate([[0], np.cumsum(wrong)])
        cuts = np.unique(np.concatenate([[0], np.geomspace(1, len(rest) - 1, 40).astype(int)]))
        estimate = learner.error_estimate().value
        steps.append({"n": n, "rest": len(rest), "wrong": int(wrong.sum()), "estimate": estimate})
        steps[-1] |= {"cuts": cuts.tolist(), "left": left[cuts].tolist()}
        starts |= {
            goal: len(steps) - 1 for goal, plan in plans.items() if plan and plan.check_now and goal not in starts
        }
        # The crude policy starts later.
        enough = len(starts) == len(GOALS) and steps[-1]["wrong"] <= 0.5 * least
        stop = len(steps) - 1 if stop is None and learner.verdict.stop else stop
        items = learner.ask(min(max(5, round(_STEP * n)), len(rest)))
        learner.tell(items, y[items])
    return {"set": name, "model": kind, "seed": seed, "rows": len(X), "steps": steps, "starts": starts, "stop": stop}


# Policies on a followed run.


def planned(run: dict[str, Any], goal: float) -> float:
    """Labels of people as a share of the rows: the plan starts a check with corrections."""
    step = run["steps"][run["starts"].get(str(goal), len(run["steps"]) - 1)]
    allowed = allowed_wrong(goal, run["rows"])
    answers, _ = mean_answers(step["rest"], allowed, step["wrong"], step["estimate"] * step["rest"], corrected=True)
    return float((step["n"] + answers) / run["rows"])


def cut_known(run: dict[str, Any], goal: float) -> float:
    """The same if it is known how many predictions are wrong after each number of further labels."""
    allowed = allowed_wrong(goal, run["rows"])
    for step in run["steps"]:
        more, left = np.array(step["cuts"]), np.array(step["left"], dtype=np.float64)
        possible = more <= max(0, step["rest"] - allowed)
        learned = (step["n"] / (step["n"] + more)) ** CURVE_POWER
        totals = step["n"] + more + joint_answers(step["rest"] - more, allowed, left * learned, ALPHA)
        if step["n"] >= 20 and totals[0] <= 1.02 * totals[possible].min():
            break
    answers, _ = mean_answers(step["rest"], allowed, step["wrong"], step["wrong"], corrected=True)
    return float((step["n"] + answers) / run["rows"])


def crude(run: dict[str, Any], goal: float, *, first: int = 0) -> float:
    """The crude policy with the simple form; a check that is given up is followed by more labels and another check."""
    allowed, cost, likely, n = allowed_wrong(goal, run["rows"]), 0.0, 1.0, 0.0
    for step in run["steps"][first:]:
        if step["n"] < n or step["estimate"] * step["rest"] > _CRUDE * allowed:
            continue
        expected = step["estimate"] * step["rest"]
        answers, proven = mean_answers(step["rest"], allowed, step["wrong"], expected, corrected=False)
        cost += likely * proven * (step["n"] + answers)
        likely *= 1.0 - proven
        n = step["n"] + answers
        if likely < 0.01:
            break
    return float((cost + likely * run["rows"]) / run["rows"])


def at_stop(run: dict[str, Any], goal: float) -> float:
    """A check of the simple form at the stop of the model's own rule; without a proof, people label the rest."""
    step = run["steps"][-1 if run["stop"] is None else run["stop"]]
    expected = step["estimate"] * step["rest"]
    allowed = allowed_wrong(goal, run["rows"])
    answers, proven = mean_answers(step["rest"], allowed, step["wrong"], expected, corrected=False)
    return float((proven * (step["n"] + answers) + (1.0 - proven) * run["rows"]) / run["rows"])


POLICIES: Final = {"plan": planned, "cut known": cut_known, "crude": crude, "at the model's stop": at_stop}


def geometric(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(np.maximum(values, 1e-4)))))


def costs_report(runs: Sequence[dict[str, Any]]) -> str:
    """Tables of the labels by people."""
    found = {
        (run["set"], run["model"], run["seed"], goal, policy): measure(run, goal)
        for run, goal, (policy, measure) in product(runs, GOALS, POLICIES.items())
    }
    names = [name for name in SETS if any(run["set"] == name for run in runs)]

    def mean(goal: float | None, model: str | None, policy: str, name: str | None = None) -> float:
        return geometric(
            [
                value
                for (data, kind, _, wanted, used), value in found.items()
                if used == policy and goal in (None, wanted) and model in (None, kind) and name in (None, data)
            ]
        )

    rows = []
    for name in names:
        size = next(run["rows"] for run in runs if run["set"] == name)
        cells = [f"{mean(goal, model, 'plan', name):.2f}" for goal, model in product(GOALS, MODELS)]
        rows.append([name, f"{size:,}", *cells])
    rows.append(
        ["**geometric mean**", "", *[f"{mean(goal, model, 'plan'):.2f}" for goal, model in product(GOALS, MODELS)]]
    )
    first = table(
        ["data set", "rows", *[f"{100 * goal:.0f} %, {model}" for goal, model in product(GOALS, MODELS)]], rows
    )
    others = []
    for goal in (*GOALS, None):
        values = [mean(goal, "chosen", policy) for policy in POLICIES]
        others.append(["all" if goal is None else f"{100 * goal:.0f} %", *[f"{value:.3f}" for value in values]])
        others[-1] += [f"{values[0] / values[1]:.2f}", f"{values[0] / values[2]:.2f}"]
        better = geometric(
            [
                min(found[name, kind, seed, wanted, "plan"] for kind in ("logistic", "forest"))
                for (name, kind, seed, wanted, used) in found
                if kind == "chosen" and used == "plan" and goal in (None, wanted)
            ]
        )
        others[-1].append(f"{values[0] / better:.2f}")
    header = ["goal", *POLICIES, "plan / cut known", "plan / crude", "chosen / better of logistic and forest"]
    before = np.mean([found[key] < 0.95 for key in found if key[4] == "plan"])
    return "\n\n".join(
        [
            f"Labels by people as a share of the rows (number of seeds: {len({run['seed'] for run in runs})}). "
            f"Labelling all rows is 1. {100 * before:.0f} % of the runs end before 95 % of the rows are labelled.",
            first,
            "Geometric means over the data sets, with the model that is chosen on the labels so far:",
            table(header, others),
        ]
    )


# False guarantees.


def small_run(number: int) -> tuple[bool, float]:
    """A complete run on a small sample: whether its guarantee is false, and the share of labels by people."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([number, 5])
    X, y = data_of(("spambase", "segment", "page blocks", "cells")[number * 4 // 100_000 % 4])
    kept = rng.permutation(len(X))[: int(rng.integers(100, 301))]
    X, y, goal = X[kept], y[kept], GOALS[number % len(GOALS)]
    model = make_model("logistic", classes=list(range(int(y.max()) + 1)))
    run = finished_run(model, X, y, goal, seed=None)
    return run.true_wrong > run.final.guarantee.wrong_at_most, run.final.guarantee.by_people / len(X)


def false_report(found: Sequence[tuple[bool, float]]) -> str:
    false = sum(each for each, _ in found)
    shares = [share for _, share in found]
    return (
        f"{len(found):,} complete runs of 100 to 300 rows, each with its own sample, labels, model and check; goals 2, "
        f"5 and 10 %: {false:,} guarantees are false, {100 * false / len(found):.1f} %, where 5 % are allowed. People "
        f"gave {100 * float(np.mean(shares)):.0f} % of the labels on average."
    )


def _kept(path: Path | None) -> list[Any]:
    """Results of earlier calls."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path and path.exists() else []


def _continued(
    pool: ProcessPoolExecutor, work: Callable[[Any], Any], jobs: Sequence[Any], path: Path | None
) -> list[Any]:
    """Results of earlier calls, and those of jobs, which are added to the file."""
    found = _kept(path)
    for result in pool.map(work, jobs):
        found.append(result)
        print(f"{len(found)}: {str(result)[:60]}", flush=True, file=sys.stderr)
        if path:
            with path.open("a") as file:
                file.write(json.dumps(result) + "\n")
    return found


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("kind", choices=("costs", "false", "screening"))
    reader.add_argument("--seeds", type=int, default=5)
    reader.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    reader.add_argument("--number", type=int, default=2000)
    reader.add_argument("--workers", type=int, default=2)
    reader.add_argument("--runs", type=Path, help="file to which runs are added, and from which they are read")
    given, _ = reader.parse_known_args()
    path = given.runs
    done = {(run["set"], run["model"], run["seed"]) for run in _kept(path)} if given.kind != "false" else set()
    with ProcessPoolExecutor(given.workers) as pool:
        if given.kind == "false":
            numbers = [25_000 * (k % 4) + k for k in range(len(_kept(path)), given.number)]
            found = _continued(pool, small_run, numbers, path)
            publish("finish-false", false_report(found), sys.argv[1:])
            return
        if given.kind == "screening":
            every = product(finish_screening.SETS, finish_screening.MODELS, range(given.seeds))
            runs = _continued(pool, finish_screening.follow, [job for job in every if job not in done], path)
            others = path and path.with_suffix(".small")
            small = _continued(pool, finish_screening.small_run, range(len(_kept(others)), given.number), others)
            wanted = [run for run in runs if run["seed"] < given.seeds]
            report = [finish_screening.costs_report(wanted), finish_screening.false_report(small)]
            publish("finish-screening", "\n\n".join(report), sys.argv[1:])
            return
        jobs = [job for job in product(given.sets, MODELS, range(given.seeds)) if job not in done]
        runs = _continued(pool, follow, jobs, path)
        wanted = [run for run in runs if run["set"] in given.sets and run["seed"] < given.seeds]
        publish("finish", costs_report(wanted), sys.argv[1:])


if __name__ == "__main__":
    main()
