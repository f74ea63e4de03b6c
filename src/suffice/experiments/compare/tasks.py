"""Labelling jobs: a data set by name, cut into a pool to label and a test set that no model sees."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import real, whole
from suffice.data.table import Kind
from suffice.errors import InvalidValueError
from suffice.experiments.compare.sources import SOURCES, LabelledData, LabelledSource, load, source, source_names
from suffice.experiments.tasks import Task
from suffice.special import Floats

__all__ = ["SOURCES", "LabelledData", "LabelledSource", "Task", "cut", "load", "load_task", "source", "source_names"]

#: Share of a small set that becomes the pool, where there are not rows enough for pool and test.
_POOL_SHARE: Final = 0.7

Rows = NDArray[np.intp]


def load_task(  # noqa: PLR0913 - a job has many settings, all but two by keyword
    name: str,
    seed: int,
    *,
    pool: int = 2000,
    test: int = 1000,
    target: str | None = None,
    noise: float = 0.0,
    imbalance: float | None = None,
) -> Task:
    """Load a data set and cut it into a labelling job: :func:`load`, then :func:`cut`, which says what the rest means.

    Args:
        name: One of :func:`source_names`, or the path of a table.
        seed: Of all that is drawn.
        pool: Rows to label, at most.
        test: Rows to test on, at most.
        target: The column of a table to predict; only with a path.
        noise: Label noise in the pool.
        imbalance: Share of the rarest class; as it is if left out.

    Raises:
        InvalidValueError: No such data set, or it cannot be cut so.
        MissingDataError: The data set is not in the data folder.
        CorruptDataError: A file in the data folder is not what it should be.

    Examples:
        >>> job = load_task("iris", 0)
        >>> job.X_pool.shape, job.X_test.shape
        ((105, 4), (45, 4))
    """
    return cut(load(name, target=target), seed, pool=pool, test=test, noise=noise, imbalance=imbalance)


def cut(  # noqa: PLR0913 - as above
    labelled: LabelledData,
    seed: int,
    *,
    pool: int = 2000,
    test: int = 1000,
    noise: float = 0.0,
    imbalance: float | None = None,
) -> Task:
    """Draw a pool and a test set at random from a data set; the same seed draws the same.

    The test set is drawn first, so that it stays the same for pools of other sizes; a set of fewer than
    ``pool + test`` rows is cut 70 : 30 instead. Inputs get mean 0 and deviation 1 by the pool alone (a constant one
    becomes 0 there). So do numeric targets, without their noise: a squared error of 1 is that of always saying the
    pool's mean. Classes are codes ``0 .. K-1`` of the ``K`` classes in the pool; test rows of any other are dropped.

    Args:
        labelled: The data set.
        seed: Of all that is drawn.
        pool: Rows to label, at most; at least 2.
        test: Rows to test on, at most.
        noise: For classes the share of pool labels, exact to one row, that are replaced by another class of the pool
            at random. For numbers the deviation of Gaussian noise that is added to the pool's labels, as a multiple of
            their own deviation. The test set stays as it is. Rows do not depend on it.
        imbalance: The share that the rarest class of the data set is brought down to, in the pool and in the test set,
            by dropping rows of it at random; at least one is left. As it is if left out.

    Raises:
        InvalidValueError: An option is not as it should be, or too little is left: fewer than two classes, one value
            of the target, or no test row.

    Examples:
        >>> job = cut(load("breast_cancer"), 0, imbalance=0.1)
        >>> round(float(np.mean(job.y_pool == 0)), 2)
        0.1
    """
    sizes = whole(pool, "pool", least=2), whole(test, "test", least=1)
    draws = [np.random.default_rng([whole(seed, "seed", least=0), 2, part]) for part in range(3)]
    level = _checked_noise(noise, labelled.kind)
    rows, held_back = _split(labelled, sizes, draws[0])
    if imbalance is not None:
        share = _checked_share(imbalance, labelled)
        rows, held_back = (_thinned(labelled.target, part, share, draws[1]) for part in (rows, held_back))
    known, truth = labelled.target[rows], labelled.target[held_back]
    if labelled.kind == "regression":
        known, truth = _standardised(known, truth, labelled)
        known = known + level * draws[2].standard_normal(len(known))
    else:
        known = _mislabelled(known, level, draws[2])
        held_back, known, truth = _common_classes(labelled, held_back, known, truth)
    centre, spread = labelled.inputs[rows].mean(axis=0), labelled.inputs[rows].std(axis=0)
    # What is constant but for rounding is constant.
    spread = np.where(spread > 1e-12 * np.abs(centre), spread, 1.0)
    X_pool, X_test = ((labelled.inputs[part] - centre) / spread for part in (rows, held_back))
    return Task(f"{labelled.name}: {labelled.title}", labelled.kind, X_pool, known, X_test, truth)


def _checked_noise(noise: float, kind: Kind) -> float:
    if kind == "classification":
        return real(noise, "noise", "from 0 to 1, a share of the labels", lambda x: 0.0 <= x <= 1.0)
    return real(noise, "noise", "of 0 or more, in standard deviations of the target", lambda x: x >= 0.0)


def _checked_share(imbalance: float, labelled: LabelledData) -> float:
    if labelled.kind == "regression":
        raise InvalidValueError(f"imbalance is for classes, and {labelled.name} has a number to predict; leave it out")
    rarest = _rarest(labelled.target)
    most = float(np.mean(labelled.target == rarest))
    shown = f"{int(1e4 * most) / 1e4:g}"  # rounded down, so that it can be given
    whose = f"the share of {labelled.classes[rarest]!r}, the rarest class of {labelled.name}: rows are only dropped"
    return real(imbalance, "imbalance", f"above 0 and at most {shown} ({whose})", lambda x: 0.0 < x <= most < 1.0)


def _rarest(codes: Any) -> int:
    return int(np.argmin(np.bincount(codes)))


def _split(labelled: LabelledData, sizes: tuple[int, int], rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return the rows of the pool and those of the test set."""
    n, (pool, test) = len(labelled.target), sizes
    if n < 3:
        raise InvalidValueError(f"{labelled.name} has {n} rows; 3 or more are required, to label and to test on")
    if n < pool + test:
        first = int(_POOL_SHARE * n)
        pool, test = min(pool, first), min(test, n - first)
    order: Rows = rng.permutation(n)
    return order[test : test + pool], order[:test]


def _thinned(codes: Any, rows: Rows, share: float, rng: np.random.Generator) -> Rows:
    """Return rows of which the rarest class has a share."""
    rare = np.flatnonzero(codes[rows] == _rarest(codes))
    # r / (r + others) = share.
    left = max(1, round(share / (1.0 - share) * (len(rows) - len(rare))))
    dropped = rng.permutation(rare)[left:]
    return np.delete(rows, dropped)


def _standardised(known: Floats, truth: Floats, labelled: LabelledData) -> tuple[Floats, Floats]:
    centre, spread = known.mean(), known.std()
    if not spread > 1e-12 * abs(centre):
        few = f"in the {len(known)} rows of the pool the target of {labelled.name} has one value only"
        raise InvalidValueError(f"{few}; two different ones are required: raise pool, or try another seed")
    return (known - centre) / spread, (truth - centre) / spread


def _mislabelled(codes: Any, share: float, rng: np.random.Generator) -> Any:
    """Return codes of which a share is another class, any other with the same probability."""
    classes, places = np.unique(codes, return_inverse=True)
    if len(classes) < 2:
        return codes
    wrong = rng.permutation(len(codes))[: round(share * len(codes))]
    # From 1 to K - 1 classes further on, around the end: never the same.
    places[wrong] = (places[wrong] + rng.integers(1, len(classes), len(wrong))) % len(classes)
    return classes[places]


def _common_classes(labelled: LabelledData, held_back: Rows, known: Any, truth: Any) -> tuple[Any, Any, Any]:
    """Return the test rows of classes that the pool has, and the codes of pool and test among these."""
    classes = np.unique(known)
    left = np.isin(truth, classes)
    if len(classes) < 2 or not left.any():
        came = f"the {len(known)} rows of the pool have {len(classes)} class{'es' if len(classes) != 1 else ''}"
        met = "two or more are required" if len(classes) < 2 else "no test row has one of them"
        raise InvalidValueError(f"{labelled.name}: {came}; {met}. Raise pool or test, or try another seed")
    return held_back[left], np.searchsorted(classes, known), np.searchsorted(classes, truth[left])
