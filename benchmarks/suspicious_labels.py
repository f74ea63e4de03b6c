"""How many wrong labels are in the first tenth of the labels that the model considers unlikely.

500 items are labelled, chosen by the model (a fifth of them at random) or all at random. 5 % of the labels are replaced
by another class that is drawn at random, and the model learns them like all others. The list was developed on grid,
adult, breast cancer, digits, circle and stripes, which are not shown. Of numbers, 5 % are replaced by the label of
another item. A list in random order has 10 % of the wrong labels in its first tenth.

With ``--shown`` another table: how many of the labels that the review shows (those more likely wrong than right) are
wrong, and how many are expected to be, on scikit-learn's digits, breast cancer and wine, with 0, 5 and 20 % of random
labels replaced. It takes about two minutes.

    python benchmarks/suspicious_labels.py [--shown] [--seeds 5] [--processes 2] [--write]
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import gzip
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

import suffice as sf
from evaluation_sets import evaluation_set
from suffice.models.capacity import most_components
from suffice.models.factory import make_model
from suffice.numerics import Floats
from suffice.session.suspicious_labels import suspicious_labels
from suffice.tables.transformers import NgramComponents
from suffice_research.data.set_readers import read_texts
from tables import publish, table

LABELS: Final = 500
POOL: Final = 3000
WRONG: Final = 0.05
TEXTS: Final = {
    "SMS spam": ("sms_spam", ()),
    "4 newsgroups": ("newsgroups", ("rec.autos", "sci.med", "comp.graphics", "talk.politics.misc")),
}
CLASSES: Final = ("htru2", "skin", "letter", "MNIST", "SMS spam", "4 newsgroups")
NUMBERS: Final = ("power plant", "gas emission", "protein", "diabetes")


@cache
def features(name: str) -> tuple[Floats, Any, tuple[tuple[int, int], ...]]:
    """Features and labels of a data set, and the components of texts."""
    if name == "MNIST":
        folder = Path(os.environ["SUFFICE_DATA"]) / "mnist"
        images = np.frombuffer(gzip.decompress((folder / "train-images-idx3-ubyte.gz").read_bytes()), np.uint8, -1, 16)
        digits = np.frombuffer(gzip.decompress((folder / "train-labels-idx1-ubyte.gz").read_bytes()), np.uint8, -1, 8)
        X = PCA(50, random_state=0).fit_transform(images.reshape(-1, 784)[: 2 * POOL] / 255.0)
        return X / X[:, 0].std(), digits[: 2 * POOL].astype(str), ()
    if name in TEXTS:
        source, groups = TEXTS[name]
        texts, labels = (np.asarray(each, dtype=object) for each in read_texts(source))
        kept = np.isin(labels, groups) if groups else np.ones(len(labels), dtype=bool)
        order = np.random.default_rng(0).permutation(np.flatnonzero(kept))[: 2 * POOL]
        classes = len(np.unique(labels[order]))
        X = NgramComponents(most_components(classes, len(order))).fit_transform(texts[order])
        return X, labels[order].astype(str), ((0, X.shape[1]),)
    found = evaluation_set(name)
    return found.X[: 2 * POOL], found.y[: 2 * POOL], ()


def with_wrong_labels(y: Any, seed: int) -> Any:
    """Labels of which 5 % are wrong."""
    rng = np.random.default_rng([seed, 5])
    given, chosen = y.copy(), np.flatnonzero(rng.random(len(y)) < WRONG)
    if y.dtype.kind == "f":
        given[chosen] = y[rng.integers(0, len(y), len(chosen))]
        return given
    classes = np.unique(y)
    for item in chosen:
        given[item] = rng.choice(classes[classes != y[item]])
    return given


def found_share(job: tuple[str, str, int]) -> float:
    """Share of the wrong labels in the first tenth of the list."""
    name, chosen_by, seed = job
    X, y, components = features(name)
    pool = np.random.default_rng([seed, 9]).permutation(len(X))[:POOL]
    X, y = X[pool], y[pool]
    given = with_wrong_labels(y, seed)
    options: dict[str, Any] = {} if name in NUMBERS else {"classes": tuple(np.unique(y).tolist())}
    if components:
        options["components"] = components
    model = make_model("gp" if name in NUMBERS else "logistic", **options)
    how: dict[str, Any] = {"random_share": 0.2} if chosen_by == "model" else {"acquisition": "random"}
    learner = sf.ActiveLearner(model, X, seed=seed, **how)
    while len(learner.labelled) < min(LABELS, int(0.8 * len(X))):
        items = learner.ask(10)
        learner.tell(items, given[items])
    listed = learner.suspicious_labels(len(learner.labelled) // 10)
    wrong = {item for item in learner.labelled if given[item] != y[item]}
    return len(wrong & {each.item for each in listed}) / len(wrong)


REVIEWED: Final = {"digits": (load_digits, 300), "breast cancer": (load_breast_cancer, 300), "wine": (load_wine, 150)}
FLIPPED: Final = (0.0, 0.05, 0.2)


def shown_labels(job: tuple[str, float, int]) -> tuple[int, float, int, float]:
    """Labels that are shown, the expected and the true number of wrong ones among them, and the expected variance."""
    name, flipped, seed = job
    load, n = REVIEWED[name]
    X, y = load(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), y.astype(str)
    rng = np.random.default_rng([seed, 7])
    items = rng.permutation(len(X))[:n]
    X, y = X[items], y[items]
    if name == "digits":
        X = PCA(20, random_state=0).fit_transform(X)
    classes, given = np.unique(y), y.copy()
    for item in rng.permutation(n)[: round(flipped * n)]:
        given[item] = rng.choice(classes[classes != y[item]])
    model = make_model("logistic", classes=tuple(classes.tolist())).fit(X, given)
    shown = [each for each in suspicious_labels(model, X, dict(enumerate(given.tolist()))) if each.likely_wrong]
    wrong = [each.wrong for each in shown]
    true = sum(given[each.item] != y[each.item] for each in shown)
    return len(shown), sum(wrong), true, sum(p * (1.0 - p) for p in wrong)


def shown_table(seeds: int, processes: int) -> str:
    """The table of the labels that are shown."""
    jobs = [(name, flipped, seed) for name in REVIEWED for flipped in FLIPPED for seed in range(seeds)]
    with ProcessPoolExecutor(processes) as pool:
        found = dict(zip(jobs, pool.map(shown_labels, jobs), strict=True))
    rows = []
    for name in REVIEWED:
        for flipped in FLIPPED:
            runs = np.array([found[name, flipped, seed] for seed in range(seeds)])
            shown, expected, true, variance = runs.T
            # Half a label, because a number of labels is whole.
            within = np.abs(expected - true) <= 2.0 * np.sqrt(variance) + 0.5
            share = f"{100 * true.sum() / shown.sum():.0f} %" if shown.sum() else "none shown"
            replaced = round(flipped * REVIEWED[name][1])
            means = [f"{each.mean():.1f}" for each in (shown, expected, true)]
            rows.append([name, f"{replaced} of {REVIEWED[name][1]}", *means, share, f"{within.sum()} of {seeds}"])
    header = ["data set", "replaced", "shown", "expected to be wrong", "wrong", "share of shown that is wrong"]
    return table([*header, "runs within the sampling error"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--shown", action="store_true")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--sets", nargs="*", default=[*CLASSES, *NUMBERS])
    given, _ = parser.parse_known_args()
    if given.shown:
        publish("suspicious-labels-shown", shown_table(given.seeds, given.processes))
        return
    jobs = [(name, by, seed) for name in given.sets for by in ("model", "random") for seed in range(given.seeds)]
    with ProcessPoolExecutor(given.processes) as pool:
        found = dict(zip(jobs, pool.map(found_share, jobs), strict=True))
    rows = []
    for name in given.sets:
        shares = [np.array([found[name, by, seed] for seed in range(given.seeds)]) for by in ("model", "random")]
        cells = [f"{100 * each.mean():.0f} % ({100 * each.min():.0f} to {100 * each.max():.0f})" for each in shares]
        classes = "numbers" if name in NUMBERS else f"{len(np.unique(features(name)[1]))} classes"
        rows.append([name.replace("htru2", "HTRU2"), classes, *cells])
    header = ["data set", "labels", "chosen by the model", "chosen at random"]
    publish("suspicious-labels", table(header, rows))


if __name__ == "__main__":
    main()
