"""Regret of the default stopping rule beside models of scikit-learn, for several forms of the reducible error.

A stop after ``n`` labels costs ``n`` labels and ``A`` times the share of wrong predictions. The regret is relative to
the best stop of the run in hindsight. The budget is the one that is best on all other sets, for each ``A``. The form
was chosen on the development sets. The test sets were not used for it; they need the packages named in
``evaluation_sets.py``. On them the form of the monitor is compared with the budget, for classes and for numbers.

    python benchmarks/any_model.py --runs FOLDER [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import suffice as sf
from evaluation_sets import decision_names, evaluation_set
from suffice.criteria import Step
from suffice_research.data import data_folder
from tables import publish, table

POOL, TEST, INITIAL, LABELS = 2500, 2000, 20, 500
UNITS: Final = tuple(price * rest for price in (0.1, 0.3, 1.0, 3.0, 10.0) for rest in (2e3, 2e4, 2e5))
BUDGETS: Final = (20, 30, 40, 60, 80, 120, 160, 240, 320, 400, 500)
MODELS: Final[dict[str, Any]] = {
    "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
    "HistGradientBoosting": HistGradientBoostingClassifier(max_iter=40, random_state=0),
    "GaussianNB": GaussianNB(),
    "RandomForest": RandomForestClassifier(50, random_state=0),
    "ExtraTrees": ExtraTreesClassifier(50, random_state=0),
}


@dataclass(frozen=True)
class Form:
    """What stands for the reducible error: the largest of some terms of error, gain and number of labels."""

    gain: float = 0.0
    error: float = 0.0
    half_at: float = 0.0

    def value(self, error: float, gain: float, n: int) -> float:
        """The reducible error."""
        return max(self.gain * gain, self.error * error, error * self.half_at / (self.half_at + n))


#: What stands for the reducible error of a model that does not tell it: of the expected error ``e``, the gain ``g`` and
#: the number of labels ``n``. The first one is that of the monitor.
FORMS: Final[dict[str, Form]] = {
    "max(g, 50 e / (50 + n))": Form(gain=1.0, half_at=50.0),
    "g": Form(gain=1.0),
    "max(g, 20 e / (20 + n))": Form(gain=1.0, half_at=20.0),
    "e / 2": Form(error=0.5),
    "0": Form(),
}
REGRESSORS: Final[dict[str, Any]] = {
    "Ridge": make_pipeline(StandardScaler(), Ridge()),
    "HistGradientBoosting": HistGradientBoostingRegressor(max_iter=40, random_state=0),
    "RandomForest": RandomForestRegressor(30, random_state=0),
}
_LEFT_OUT: Final = {("letters", "HistGradientBoosting")}  # 26 classes take hours


def test_sets(task: str) -> Iterator[tuple[str, Any, Any]]:
    """Name, inputs and labels of each set that was not used to choose the form."""
    for name in decision_names(task):
        if name != "splice":  # 287 columns of letters
            data = evaluation_set(name)
            yield name, np.asarray(data.X, dtype=np.float64), np.asarray(data.y)


def run_numbers(X: Any, y: Any, model: Any) -> dict[str, list[float]]:
    """One run for numbers: labels at random, 10 at a time; fields of each step, and test errors."""
    order = np.random.default_rng(1).permutation(len(y))
    end = min(POOL, int(0.6 * len(order)))
    pool, test = order[:end], order[end : end + TEST]
    z = (y - y[pool].mean()) / y[pool].std()
    steps = min(LABELS, len(pool) - 20) // 10 - 2
    trace = sf.simulate(model, X[pool], z[pool], initial=INITIAL, batch=10, steps=steps, X_test=X[test], y_test=z[test])
    fields = ("unlabelled_error", "recent_gain", "calibration", "error_scale")
    measured = {name: trace.measures[name].tolist() for name in fields}
    return {"n_labelled": trace.n_labelled.tolist(), "test_error": trace.predictive_error.tolist(), **measured}


def sets() -> Iterator[tuple[str, Any, Any]]:
    """Name, inputs and labels of each data set."""
    yield "digits", *load_digits(return_X_y=True)
    yield "breast cancer", *load_breast_cancer(return_X_y=True)
    folder = data_folder()
    mails = pd.read_csv(folder / "text/sms_spam.tsv", sep="\t", header=None, quoting=3, names=["y", "text"])
    words = TfidfVectorizer(min_df=2, sublinear_tf=True).fit_transform(mails.text)
    yield "messages", TruncatedSVD(60, random_state=0).fit_transform(words), mails.y.to_numpy()
    adult = pd.read_csv(folder / "tables/adult.csv")
    inputs = adult.iloc[:, :-1].apply(lambda c: c if c.dtype.kind in "fiu" else c.astype("category").cat.codes)
    yield "adult", inputs.to_numpy(float), adult.iloc[:, -1].astype(str).to_numpy()
    letters = pd.read_csv(folder / "tables/letter_recognition.csv")
    name = next(column for column in letters if letters[column].dtype.kind not in "fiu")
    yield "letters", letters.drop(columns=name).to_numpy(float), letters[name].to_numpy(str)
    grid = pd.read_csv(folder / "uci/grid_stability.csv")
    yield "grid", grid.iloc[:, :12].to_numpy(float), grid.iloc[:, -1].to_numpy(str)
    for name, separator in (("htru2.csv", ","), ("skin.txt", r"\s+")):
        read = pd.read_csv(folder / "uci" / name, sep=separator, header=None)
        yield name.partition(".")[0], read.iloc[:, :-1].to_numpy(float), read.iloc[:, -1].to_numpy()


def run(X: Any, y: Any, model: Any, *, chosen: bool) -> dict[str, list[float]]:
    """One run: labels at random, or four fifths of them by the smallest margin; fields of each step and test errors."""
    order = np.random.default_rng(1).permutation(len(y))
    end = POOL if len(order) > POOL + 1000 else int(0.6 * len(order))
    pool, test = order[:end], order[end : end + TEST]
    rng = np.random.default_rng(2)
    known = rng.permutation(len(pool))[:INITIAL].tolist()
    while len(set(y[pool][known].tolist())) < 2:
        known = list(dict.fromkeys([*known, int(rng.integers(len(pool)))]))
    drawn, monitor, errors = list(known), sf.StopMonitor(X[pool]), []
    while True:
        fitted = clone(model).fit(X[pool][known], y[pool][known])
        monitor.update(fitted, known, y[pool][known], random=drawn)
        errors.append(float((fitted.predict(X[test]) != y[test]).mean()))
        if len(known) >= min(LABELS, len(pool) - 20):
            break
        free = np.setdiff1d(np.arange(len(pool)), known)
        size = min(max(3, len(known) // 12), len(free) - 2)
        some = rng.choice(free, max(1, round(0.2 * size)) if chosen else size, replace=False)
        rest = np.setdiff1d(free, some)
        top = np.sort(fitted.predict_proba(X[pool][rest]), axis=1)[:, -2:]
        best = rest[np.argsort(top[:, 1] - top[:, 0])[: size - len(some)]]
        known, drawn = [*known, *some.tolist(), *best.tolist()], [*drawn, *some.tolist()]
    trace = monitor.trace()
    fields = ("unlabelled_error", "reducible_error", "recent_gain", "calibration", "classes_seen")
    measured = {name: trace.measures[name].tolist() for name in fields}
    return {"n_labelled": trace.n_labelled.tolist(), "test_error": errors[1:], **measured}


def record_numbers(file: Path) -> list[dict[str, Any]]:
    """All runs for numbers on the test sets; those that the file has are not done again."""
    done = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    known = {(each["set"], each["model"]) for each in done}
    for name, X, y in test_sets("regression"):
        for model in REGRESSORS:
            if (name, model) not in known:
                done.append({"set": name, "model": model, **run_numbers(X, y, REGRESSORS[model])})
                with file.open("a") as out:
                    out.write(json.dumps(done[-1]) + "\n")
    return done


def record(file: Path, data: Iterator[tuple[str, Any, Any]]) -> list[dict[str, Any]]:
    """All runs for classes; those that the file has are not done again."""
    done = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    known = {(each["set"], each["model"], each["chosen"]) for each in done}
    for name, X, y in data:
        for model in MODELS:
            for chosen in (False, True):
                if (name, model, chosen) in known or (name, model) in _LEFT_OUT:
                    continue
                done.append({"set": name, "model": model, "chosen": chosen, **run(X, y, MODELS[model], chosen=chosen)})
                with file.open("a") as out:
                    out.write(json.dumps(done[-1]) + "\n")
    return done


def stop(each: dict[str, Any], form: Form, unit: float) -> int:
    """The place of the step at which the rule stops; the last one if it does not."""
    rule = sf.LabelWorth(error_cost=unit)
    for k, n in enumerate(each["n_labelled"]):
        error, gain = each["unlabelled_error"][k], each["recent_gain"][k]
        step = Step(
            n_labelled=n,
            pool_size=10**7,
            unlabelled_error=error,
            reducible_error=form.value(error, gain, n),
            recent_gain=gain,
            error_scale=each.get("error_scale", [1.0] * (k + 1))[k],
            calibration=each["calibration"][k],
            classes_seen=each["classes_seen"][k] if "classes_seen" in each else None,
        )
        if rule.observe(step).stop:
            return k
    return len(each["n_labelled"]) - 1


def regrets(each: dict[str, Any], unit: float) -> Any:
    """The regret of a stop at each step."""
    cost = np.array(each["n_labelled"]) + unit * np.array(each["test_error"])
    return cost / cost.min() - 1.0


def rule_regrets(runs: Sequence[dict[str, Any]], form: Form) -> tuple[Any, Any]:
    """Regrets of the rule, runs x prices, and which stops are too early."""
    found, early = [], []
    for each in runs:
        for unit in UNITS:
            regret, at = regrets(each, unit), stop(each, form, unit)
            found.append(regret[at])
            early.append(at < regret.argmin() and regret[at] > 0.1)
    shape = len(runs), len(UNITS)
    return np.array(found).reshape(shape), np.array(early).reshape(shape)


def budget_regrets(runs: Sequence[dict[str, Any]]) -> Any:
    """Regrets of the budget that is best on all other sets, runs x prices."""
    found = np.zeros((len(runs), len(UNITS)))
    names = np.array([each["set"] for each in runs])
    for column, unit in enumerate(UNITS):
        by_run = np.array(
            [
                [
                    regrets(each, unit)[min(np.searchsorted(each["n_labelled"], n), len(each["n_labelled"]) - 1)]
                    for n in BUDGETS
                ]
                for each in runs
            ]
        )
        for name in set(names.tolist()):
            own = names == name
            found[own, column] = by_run[own, int(by_run[~own].mean(axis=0).argmin())]
    return found


def advantage(rule: Any, budget: Any, names: Sequence[str]) -> str:
    """The mean regret of the budget less that of the rule, with an interval by resampling the sets."""
    kept = np.array(names)
    by_set = np.array([(budget - rule)[kept == name].mean() for name in sorted(set(names))])
    drawn = np.random.default_rng(0).integers(len(by_set), size=(4000, len(by_set)))
    low, high = np.quantile(by_set[drawn].mean(axis=1), [0.025, 0.975])
    return f"{by_set.mean():+.3f} ({low:+.3f} to {high:+.3f})"


def summary(found: Any, early: Any = None) -> list[str]:
    """Median and mean regret, and the share of early stops."""
    shown = "" if early is None else f"{100 * early.mean():.0f} %"
    return [f"{np.median(found):.3f}", f"{found.mean():.3f}", shown]


def development_table(runs: Sequence[dict[str, Any]]) -> str:
    """All forms on the sets that the form was chosen on."""
    rows = []
    for model in MODELS:
        own = [each for each in runs if each["model"] == model]
        count = str(len({each["set"] for each in own}))
        rows += [[model, count, name, *summary(*rule_regrets(own, form))] for name, form in FORMS.items()]
        rows.append([model, count, "budget", *summary(budget_regrets(own))])
    return table(["model", "sets", "reducible error", "median", "mean", "too early"], rows)


def test_table(runs: Sequence[dict[str, Any]], models: Sequence[str]) -> str:
    """The form of the monitor and the budget on other sets."""
    rows, form = [], next(iter(FORMS.values()))
    for model in models:
        own = [each for each in runs if each["model"] == model]
        names = [each["set"] for each in own]
        (found, early), fixed = rule_regrets(own, form), budget_regrets(own)
        shown = [model, str(len(set(names))), *summary(found, early), *summary(fixed)[:2]]
        rows.append([*shown, advantage(found, fixed, names)])
    heads = ["model", "sets", "median", "mean", "too early", "budget: median", "mean", "budget less rule"]
    return table(heads, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=Path, required=True, help="folder of recorded runs")
    folder = parser.parse_known_args()[0].runs
    publish("any-model", development_table(record(folder / "development.jsonl", sets())))
    publish(
        "any-model-classes", test_table(record(folder / "classes.jsonl", test_sets("classification")), list(MODELS))
    )
    publish("any-model-numbers", test_table(record_numbers(folder / "numbers.jsonl"), list(REGRESSORS)))
