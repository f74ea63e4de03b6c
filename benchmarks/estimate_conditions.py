"""Conditions under which estimates of the error are measured: many classes, a rare class, wrong labels, and others.

All data sets are made from sets of the evaluation, on which no constant of the estimates was chosen.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from evaluation_sets import Floats, evaluation_set

#: Share of the rare class, and share of wrong labels.
RARE: Final = 0.02
NOISE: Final = 0.1
SETS: Final = ("satimage", "phoneme", "magic", "page blocks", "optdigits")
MODELS: Final = ("logistic regression", "random forest", "decision tree", "naive Bayes", "1 nearest neighbour")
# A forest takes ten times as long as the others, so it has two sets for each condition.
_SLOW: Final = "random forest"


class Condition(NamedTuple):
    """One condition of a benchmark.

    Attributes:
        name: What the table calls it.
        change: Name of the change of the data; empty for none.
        sets: Names of data sets.
        models: Names of models.
        batch: Labels of a round.
        share: Share of the labels that is drawn at random.
    """

    name: str
    change: str = ""
    sets: tuple[str, ...] = SETS
    models: tuple[str, ...] = MODELS
    batch: int = 10
    share: float = 0.2

    def pairs(self) -> list[tuple[str, str]]:
        """Models and data sets."""
        return [(model, data) for model in self.models for data in self.sets[: 2 if model == _SLOW else None]]


def _shares() -> list[Condition]:
    return [Condition(f"random share {share:g}", share=share) for share in (1.0, 0.5, 0.2, 0.05, 0.0)]


CONDITIONS: Final = (
    *_shares(),
    Condition("50 classes", "classes", ("penbased and segment", "texture and segment", "50 clusters")),
    Condition("rare class, 2 %", "rare"),
    Condition("10 % wrong labels", "noise"),
    Condition("batches of 1", sets=SETS[:2], models=("decision tree", "naive Bayes"), batch=1),
    Condition("batches of 100", batch=100),
)


def changed(name: str, change: str, seed: int, pool: int) -> tuple[Floats, Any]:
    """Pool and labels of a data set after a change."""
    if change:
        return _CHANGES[change](name, seed, pool)
    X, y, _, _ = evaluation_set(name).split(seed)
    return X[:pool], y[:pool]


def _fifty_classes(name: str, seed: int, pool: int) -> tuple[Floats, Any]:
    """Clusters; or pairs of rows of two sets, with the pair of their classes as the class: 10 times 5 classes."""
    rng = np.random.default_rng([seed, 50])
    if name == "50 clusters":
        y = rng.integers(0, 50, pool)
        centres = rng.normal(size=(50, 10))
        return np.asarray(centres[y] + 0.5 * rng.normal(size=(pool, 10))), y
    columns, codes = [], np.zeros(pool, dtype=int)
    for part, most in zip(name.split(" and "), (10, 5), strict=True):
        found = evaluation_set(part)
        known = np.unique(found.y)[:most]
        rows = rng.choice(np.flatnonzero(np.isin(found.y, known)), pool)
        columns.append(found.X[rows])
        codes = most * codes + np.searchsorted(known, found.y[rows])
    return np.hstack(columns), codes


def _rare_class(name: str, seed: int, pool: int) -> tuple[Floats, Any]:
    """The smallest class against all others, with so few of its rows that it has a share of 2 %."""
    rng, found = np.random.default_rng([seed, 51]), evaluation_set(name)
    known, sizes = np.unique(found.y, return_counts=True)
    rare = found.y == known[sizes.argmin()]
    others = rng.permutation(np.flatnonzero(~rare))[: round((1.0 - RARE) * pool)]
    few = rng.permutation(np.flatnonzero(rare))[: round(RARE / (1.0 - RARE) * len(others))]
    rows = rng.permutation(np.concatenate([others, few]))
    return found.X[rows], np.where(rare[rows], "rare", "other")


def _wrong_labels(name: str, seed: int, pool: int) -> tuple[Floats, Any]:
    """A tenth of the labels replaced by another class. The wrong label counts as the true one."""
    X, y, _, _ = evaluation_set(name).split(seed)
    X, y, rng = X[:pool], y[:pool], np.random.default_rng([seed, 52])
    known, codes = np.unique(y, return_inverse=True)
    wrong = rng.random(len(y)) < NOISE
    codes[wrong] = (codes[wrong] + rng.integers(1, len(known), int(wrong.sum()))) % len(known)
    return X, known[codes]


_CHANGES: Final[dict[str, Callable[[str, int, int], tuple[Floats, Any]]]] = {
    "classes": _fifty_classes,
    "rare": _rare_class,
    "noise": _wrong_labels,
}
