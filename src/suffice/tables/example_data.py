"""Example data sets for the demonstration, split into a pool and a test set, and handwritten digits as image files."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from suffice.errors import InvalidValueError, MissingExtraError, SufficeError
from suffice.models.factory import ModelTask
from suffice.numerics import Floats


@dataclass(frozen=True, eq=False)
class Task:
    """A labelling task with known labels, so that an annotator can be simulated.

    Attributes:
        name: Description for users.
        kind: Regression or classification.
        X_pool: Inputs that may be labelled, standardised, ``n x D``.
        y_pool: Their labels, which are given one at a time.
        X_test: Inputs of the test set, in the same scale.
        y_test: Their labels.
    """

    name: str
    kind: ModelTask
    X_pool: Floats
    y_pool: Floats
    X_test: Floats
    y_test: Floats


def demo_task(kind: ModelTask, rng: np.random.Generator) -> Task:
    """Return the demonstration task of a kind: scikit-learn's diabetes or breast-cancer data, 30 % kept for testing.

    Features are standardised with the pool only, without its labels.

    Raises:
        InvalidValueError: ``kind`` is neither regression nor classification.

    Examples:
        >>> task = demo_task("regression", np.random.default_rng(0))
        >>> task.X_pool.shape, task.X_test.shape
        ((309, 10), (133, 10))
    """
    from sklearn.datasets import load_breast_cancer, load_diabetes

    if kind == "regression":
        data, name = load_diabetes(), "diabetes: how far has the disease progressed in a year?"
    elif kind == "classification":
        data, name = load_breast_cancer(), "breast cancer: is the tumour malignant (0) or benign (1)?"
    else:
        raise InvalidValueError(f"task must be 'regression' or 'classification', not {kind!r}")
    return split(name, kind, np.asarray(data.data), np.asarray(data.target, dtype=np.float64), rng=rng)


def digits_task(rng: np.random.Generator) -> Task:
    """Return scikit-learn's handwritten digits, images of 8 x 8 in ten classes, 30 % kept for testing.

    Examples:
        >>> digits_task(np.random.default_rng(0)).X_pool.shape
        (1257, 64)
    """
    from sklearn.datasets import load_digits

    data = load_digits()
    name = "digits: which digit from 0 to 9 is it?"
    return split(name, "classification", np.asarray(data.data), np.asarray(data.target, dtype=np.float64), rng=rng)


#: Number of images that the model of :func:`predicted_digits` learned.
_LEARNED = 600


@dataclass(frozen=True, eq=False)
class PredictedDigits:
    """Handwritten digits with labels by a model that learned other images.

    Attributes:
        images: Pixels from 0 to 16, shape (n, 8, 8).
        truth: The true digits as texts, shape (n,).
        predicted: The predictions as texts, shape (n,).
    """

    images: Floats
    truth: NDArray[np.str_]
    predicted: NDArray[np.str_]


def predicted_digits() -> PredictedDigits:
    """Return scikit-learn's handwritten digits but the first 600, with the labels of a model that learned these.

    Examples:
        >>> digits = predicted_digits()
        >>> len(digits.truth), bool(0.0 < np.mean(digits.predicted != digits.truth) < 0.1)
        (1197, True)
    """
    from sklearn.datasets import load_digits
    from sklearn.svm import SVC

    data = load_digits()
    X, y = np.asarray(data.data), np.asarray(data.target).astype(str)
    model = SVC(gamma=0.001).fit(X[:_LEARNED], y[:_LEARNED])
    return PredictedDigits(np.asarray(data.images)[_LEARNED:], y[_LEARNED:], model.predict(X[_LEARNED:]))


def split(name: str, kind: ModelTask, X: Floats, y: Floats, *, rng: np.random.Generator) -> Task:
    """Split a labelled data set at random into a pool (70 %) and a test set, standardised with the pool."""
    order: NDArray[np.intp] = rng.permutation(len(X))
    cut = int(0.7 * len(X))
    pool, test = order[:cut], order[cut:]
    centre, spread = X[pool].mean(axis=0), X[pool].std(axis=0)
    X = (X - centre) / np.where(spread > 0.0, spread, 1.0)
    return Task(name, kind, X[pool], y[pool], X[test], y[test])


#: The classes of the digits.
DIGITS = tuple("0123456789")
_SIDE = 160


def write_digits(folder: Path, n: int = 500) -> int:
    """Write scikit-learn's handwritten digits as PNG files, without their labels; existing files are kept.

    Args:
        folder: The folder; it is created if it does not exist.
        n: Number of digits, at most 1797.

    Returns:
        The number of files that were written.

    Raises:
        MissingExtraError: Pillow is not installed.
        SufficeError: The folder cannot be written to.
    """
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtraError("Pillow", "label", "Writing images") from None
    from sklearn.datasets import load_digits

    # Pixel values are 0 to 16, with ink at 16; the images are dark on white.
    pictures = (255.0 - load_digits().images[:n] * (255.0 / 16.0)).astype(np.uint8)
    written = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for k, pixels in enumerate(pictures):
            path = folder / f"digit-{k:04d}.png"
            if not path.exists():
                Image.fromarray(pixels).resize((_SIDE, _SIDE), Image.Resampling.BICUBIC).save(path)
                written += 1
    except OSError as error:
        raise SufficeError(f"the images cannot be written to {folder}: {error.strerror or error}") from None
    return written
