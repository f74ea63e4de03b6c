"""Many columns and classes: error by number of labels of the default model, and the time of its labels.

``python benchmarks/wide_classes.py --write`` writes docs/measured/wide-classes.md and wide-classes-times.md. The data
sets mnist, newsgroups and letter must be there (``suffice data fetch mnist newsgroups letter``).
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import multiprocessing
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import suffice as sf
from suffice.models import BayesianLogistic
from suffice.models.factory import default_model, make_model
from suffice.models.threads import one_thread
from suffice.numerics import Floats
from suffice_research.data.set_readers import mnist_folder, read_mnist, read_texts, read_words
from tables import MEASURED, table
from text_models import DEVELOPED, TESTED, docstrings

LABELS, REPEATS, HELD_OUT = (50, 100, 200, 500), 3, 1500
FIRST, TIMED = 10, 50
# Seconds after which the model with all columns is ended.
LIMIT = 150


class WideSet(NamedTuple):
    """Inputs with their classes as codes."""

    X: Floats
    codes: Any

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns and classes."""
        return (*self.X.shape, int(self.codes.max()) + 1)


def standardised(X: Floats, codes: Any) -> WideSet:
    """Columns as ``suffice run`` reads them, without those that are constant."""
    deviation = X.std(axis=0)
    return WideSet((X[:, deviation > 0] - X[:, deviation > 0].mean(axis=0)) / deviation[deviation > 0], codes)


def pixels() -> WideSet:
    images, labels = read_mnist(mnist_folder())
    order = np.random.default_rng(0).permutation(len(images))[:12_000]
    return WideSet(images[order].reshape(len(order), -1).astype(np.float64), labels[order])


def small_digits() -> WideSet:
    X, y = load_digits(return_X_y=True)
    return standardised(np.hstack([X, *(X * np.roll(X, k, axis=1) for k in (1, 7, 8, 9))]), y)


def letters() -> WideSet:
    plain = read_words("letter")
    order = np.random.default_rng(0).permutation(len(plain.y))[:8000]
    X, codes = plain.X[order], np.unique(plain.y[order], return_inverse=True)[1]
    return standardised(np.hstack([X, *(X[:, [k]] * X[:, k:] for k in range(X.shape[1]))]), codes)


def words(texts: Any, names: Any) -> WideSet:
    codes = np.unique(names, return_inverse=True)[1]
    weights = TfidfVectorizer(max_features=1000, sublinear_tf=True, stop_words="english").fit_transform(texts)
    return standardised(weights.toarray(), codes)


def newsgroups() -> WideSet:
    texts, names = read_texts("newsgroups")
    order = np.random.default_rng(0).permutation(len(texts))[:5000]
    return words([texts[k] for k in order], np.array(names)[order])


def clusters(columns: int, classes: int, seed: int) -> WideSet:
    """Classes whose means are far apart, with noise of equal size in each column."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, size=6000)
    means = rng.normal(size=(classes, columns)) * (5.0 / np.sqrt(columns))
    return WideSet(means[codes] + rng.normal(size=(6000, columns)), codes)


def generated(columns: int, classes: int, seed: int) -> WideSet:
    """The problem of scikit-learn, in which most columns are noise."""
    options = {"n_informative": 20, "n_redundant": 30, "n_clusters_per_class": 1, "class_sep": 2.0}
    X, codes = make_classification(6000, columns, n_classes=classes, random_state=seed, **options)
    return standardised(X, codes)


SETS: dict[str, tuple[bool, Callable[[], WideSet]]] = {
    "MNIST, pixels": (False, lambda: standardised(*pixels())),
    "small digits, pixels and products": (False, small_digits),
    "newsgroups, TF-IDF of 1000 words": (False, newsgroups),
    "clusters": (False, partial(clusters, 256, 12, 0)),
    "few informative columns": (False, partial(generated, 300, 10, 0)),
    "letters, numbers and products": (False, letters),
    "docstrings, TF-IDF of 1000 words": (True, lambda: words(*docstrings((*DEVELOPED, *TESTED), 500))),
    "other clusters": (True, partial(clusters, 400, 15, 7)),
    "other informative columns": (True, partial(generated, 500, 16, 7)),
}


def errors(data: WideSet) -> list[str]:
    """Share of wrong classes by number of random labels: all columns, the default model, and a forest."""
    _, columns, classes = data.shape
    name = default_model("classification", n_features=columns, n_classes=classes).name
    # The components are those of the pool, as in a learner; the first step needs no labels.
    *steps, model = (step for _, step in make_model(name, classes=range(classes)).steps)
    Z = data.X
    for step in steps:
        Z = step.fit_transform(Z)
    models = (
        (LogisticRegression(C=1.0, max_iter=300), data.X),
        (model, Z),
        (ExtraTreesClassifier(100, random_state=0), data.X),
    )
    cells = []
    for n in LABELS:
        shares = np.zeros((REPEATS, len(models)))
        for repeat in range(REPEATS):
            order = np.random.default_rng(repeat).permutation(len(Z))
            train, test = order[:n], order[-HELD_OUT:] if len(order) >= HELD_OUT + LABELS[-1] else order[LABELS[-1] :]
            for k, (estimator, inputs) in enumerate(models):
                fitted = clone(estimator).fit(inputs[train], data.codes[train])
                shares[repeat, k] = float((fitted.predict(inputs[test]) != data.codes[test]).mean())
        old, new, forest = 100.0 * shares.mean(axis=0)
        cells.append(f"{old:.1f} / **{new:.1f}** / {forest:.1f}")
    return [f"{columns} x {classes}, {Z.shape[1]}", *cells]


class Times(NamedTuple):
    """Seconds for the first labels, and for each of the next."""

    first: float
    each: float


def times(data: WideSet, model: Any, later: int = TIMED) -> Times:
    """The time of a learner with a pool of 10,000 items, from its making to the first labels, and of later labels."""
    X, codes, taken = data.X[:10_000], data.codes, []
    start = time.perf_counter()
    learner = sf.ActiveLearner(model, X, seed=0)
    items = learner.ask(FIRST)
    learner.tell(items, codes[items])
    first = time.perf_counter() - start
    for _ in range(later):
        start = time.perf_counter()
        item = learner.ask()
        learner.tell(item, codes[item])
        taken.append(time.perf_counter() - start)
    return Times(first, median(taken) if taken else 0.0)


def reference(data: WideSet) -> float:
    """Seconds of a plain loop for a label: scikit-learn is fitted to 50 labels and predicts the pool."""
    X, taken = data.X[:10_000], []
    for seed in range(5):
        rows = np.random.default_rng(seed).permutation(len(X))[:TIMED]
        start = time.perf_counter()
        LogisticRegression(C=1.0, max_iter=300).fit(X[rows], data.codes[rows]).predict_proba(X)
        taken.append(time.perf_counter() - start)
    return median(taken)


def _all_columns(later: int) -> Times:
    return times(pixels(), BayesianLogistic(alpha=1.0, classes=range(10)), later)


def of_all_columns(plain: float) -> list[str]:
    """The times of the model with all columns, in processes of their own that are ended in time."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            result = pool.apply_async(_all_columns, (1,)).get(LIMIT)
        except multiprocessing.TimeoutError:
            return [f"more than {LIMIT} s for eleven labels", "", ""]
        return [f"{result.first:.0f} s", f"{1e3 * result.each:,.0f} ms", f"{result.each / plain:.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write the tables of the documentation")
    parser.add_argument("--only", choices=["errors", "times"], help="one of the tables")
    given = parser.parse_args()
    results = {}
    if given.only != "times":
        rows = []
        for name, (evaluation, read) in SETS.items():
            with one_thread():
                rows.append([f"{name}{'*' if evaluation else ''}", *errors(read())])
        header = ["data set", "columns x classes, components", *(f"{n} labels" for n in LABELS)]
        results["wide-classes"] = table(header, rows)
    if given.only != "errors":
        data = pixels()
        plain = reference(data)
        rows = []
        for name in ("components", "forest"):
            result = times(data, make_model(name, classes=range(10) if name == "components" else None))
            rows.append([name, f"{result.first:.2f} s", f"{1e3 * result.each:.0f} ms", f"{result.each / plain:.2f}"])
        rows.append(["logistic, all columns", *of_all_columns(plain)])
        rows.append(["scikit-learn, fitted again", "", f"{1e3 * plain:.0f} ms", "1"])
        results["wide-classes-times"] = table(["model", "first ten labels", "each label", "ratio"], rows)
    for name, text in results.items():
        if given.write:
            (MEASURED / f"{name}.md").write_text(text + "\n")
        print(f"\n{text}")


if __name__ == "__main__":
    main()
