"""Regret of the default stopping rule beside models of scikit-learn, for several forms of the reducible error.

A stop after ``n`` labels costs ``n`` labels and ``A`` times the share of wrong predictions. The regret is relative to
the best stop of the run in hindsight. The budget is the one that is best on all other sets, for each ``A``.

    python benchmarks/any_model.py --runs FILE [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import suffice as sf
from suffice.criteria import Step
from suffice.research.data import data_folder
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
#: What stands for the reducible error of a model that does not tell it: of the expected error ``e`` and the gain ``g``.
FORMS: Final = {"recent gain": (0.0, 1.0), "0": (0.0, 0.0), "half of the error": (0.5, 0.0), "the error": (1.0, 0.0)}
_LEFT_OUT: Final = {("letters", "HistGradientBoosting")}  # 26 classes take hours


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


def record(file: Path) -> list[dict[str, Any]]:
    """All runs; those that the file has are not done again."""
    done = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    known = {(each["set"], each["model"], each["chosen"]) for each in done}
    for name, X, y in sets():
        for model in MODELS:
            for chosen in (False, True):
                if (name, model, chosen) in known or (name, model) in _LEFT_OUT:
                    continue
                done.append({"set": name, "model": model, "chosen": chosen, **run(X, y, MODELS[model], chosen=chosen)})
                with file.open("a") as out:
                    out.write(json.dumps(done[-1]) + "\n")
    return done


def stop(each: dict[str, Any], form: tuple[float, float], unit: float) -> int:
    """The place of the step at which the rule stops; the last one if it does not."""
    rule = sf.LabelWorth(error_cost=unit)
    for k, n in enumerate(each["n_labelled"]):
        error, gain = each["unlabelled_error"][k], each["recent_gain"][k]
        step = Step(
            n_labelled=n,
            pool_size=10**7,
            unlabelled_error=error,
            reducible_error=form[0] * error + form[1] * gain,
            recent_gain=gain,
            error_scale=1.0,
            calibration=each["calibration"][k],
            classes_seen=each["classes_seen"][k],
        )
        if rule.observe(step).stop:
            return k
    return len(each["n_labelled"]) - 1


def regrets(each: dict[str, Any], unit: float) -> Any:
    """The regret of a stop at each step."""
    cost = np.array(each["n_labelled"]) + unit * np.array(each["test_error"])
    return cost / cost.min() - 1.0


def row(runs: Sequence[dict[str, Any]], form: tuple[float, float]) -> list[str]:
    """Median and mean regret and share of early stops of one form, over the runs of a model."""
    found, early = [], []
    for each in runs:
        for unit in UNITS:
            regret, at = regrets(each, unit), stop(each, form, unit)
            found.append(regret[at])
            early.append(at < regret.argmin() and regret[at] > 0.1)
    return [f"{np.median(found):.3f}", f"{np.mean(found):.3f}", f"{100 * np.mean(early):.0f} %"]


def budget(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Median and mean regret of the budget that is best on all other sets."""
    found = []
    for unit in UNITS:
        by_run = [
            [
                regrets(each, unit)[min(np.searchsorted(each["n_labelled"], n), len(each["n_labelled"]) - 1)]
                for n in BUDGETS
            ]
            for each in runs
        ]
        for name in {each["set"] for each in runs}:
            own = np.array([each["set"] == name for each in runs])
            best = int(np.array(by_run)[~own].mean(axis=0).argmin())
            found += np.array(by_run)[own][:, best].tolist()
    return [f"{np.median(found):.3f}", f"{np.mean(found):.3f}", ""]


def tables(runs: Sequence[dict[str, Any]]) -> str:
    """The result as a table."""
    rows = []
    for model in MODELS:
        own = [each for each in runs if each["model"] == model]
        count = str(len({each["set"] for each in own}))
        rows += [[model, count, name, *row(own, form)] for name, form in FORMS.items()]
        rows.append([model, count, "budget", *budget(own)])
    return table(["model", "sets", "reducible error", "median", "mean", "too early"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=Path, required=True, help="file of recorded runs")
    publish("any-model", tables(record(parser.parse_known_args()[0].runs)))
