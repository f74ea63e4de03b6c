"""How many wrong labels are in the first tenth of the labels that the model considers unlikely.

500 items are labelled, chosen by the model (a fifth of them at random) or all at random. 5 % of the labels are replaced
by another class that is drawn at random, and the model learns them like all others. The list was developed on grid,
adult, breast cancer, digits, circle and stripes, which are not shown. Of numbers, 5 % are replaced by the label of
another item. A list in random order has 10 % of the wrong labels in its first tenth.

    python benchmarks/suspicious_labels.py [--seeds 5] [--processes 2] [--write]
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
from sklearn.decomposition import PCA

import suffice as sf
from evaluation_sets import evaluation_set
from suffice.models.capacity import most_components
from suffice.models.factory import make_model
from suffice.numerics import Floats
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--sets", nargs="*", default=[*CLASSES, *NUMBERS])
    given, _ = parser.parse_known_args()
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
