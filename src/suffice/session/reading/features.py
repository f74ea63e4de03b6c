"""What the model sees of the items: columns by their type, components of many numbers, or features that are given."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile

import numpy as np

from suffice.data.features import Features, column_features, counted, text_features
from suffice.data.reading import MISSING, Column, Texts
from suffice.errors import InvalidValueError
from suffice.session.items import Items
from suffice.special import Floats

#: Characters of a text that the model reads; a person sees all of them.
READ: Final = 100_000
_UNEVEN: Final = 1000.0
# Weights of a classifier with many classes: with 1000 a label takes it a third of a second.
_WEIGHTS: Final = 1000
_FEWEST: Final = 5


def forced_text(name: str, texts: Texts, place: Callable[[int], str]) -> Features:
    """Make a column into TF-IDF and SVD, however short its texts; by its type where that finds no words in it."""
    made = text_features(name, texts)
    return made if made.names else column_features(name, texts, place)


def as_texts(cells: Sequence[str]) -> Texts:
    """Return cells as texts, also where all of them are numbers.

    Examples:
        >>> as_texts(["7", " 7", "NA"]).levels
        ('7',)
    """
    levels: dict[str, int] = {}
    stripped = (cell.strip() for cell in cells)
    codes = [-1 if text in MISSING else levels.setdefault(text, len(levels)) for text in stripped]
    return Texts(tuple(levels), np.array(codes, dtype=np.intp))


def shortened(name: str, column: Column, place: Callable[[int], str]) -> tuple[Column, tuple[str, ...]]:
    """Return a column with the first 100,000 characters of each text, and a note where one is longer."""
    long = [k for k, level in enumerate(column.levels) if len(level) > READ] if isinstance(column, Texts) else []
    if not isinstance(column, Texts) or not long:
        return column, ()
    rows = np.flatnonzero(np.isin(column.codes, long))
    others = len(rows) - 1
    what = place(int(rows[0])) + (f" and {counted(others, 'other')}" if others else "")
    longer = f"{'are' if others else 'is'} longer than {READ:,} characters; the model reads the first {READ:,}"
    levels = tuple(level[:READ] for level in column.levels)
    return Texts(levels, column.codes), (f"column {name!r}: {what} {longer}",)


def principal(name: str, what: str, numbers: Any, most: int) -> Features:
    """Make many numbers an item into its largest principal components, at most ``most``.

    The numbers are centred and not scaled one by one: a pixel at the edge that hardly ever changes would else weigh as
    much as one in the middle. Then all components are times one factor, so that the largest has deviation 1 and the
    others keep their sizes beside it. The largest then weighs as much as one standardised number of a table. For a
    logistic regression with prior precision 1 that is a good size: with 150 labelled digits of MNIST the cross entropy
    was least near this factor, and a third larger with one of 0.35 times it. For a Gaussian process the sizes among
    each other matter, and one length fits all components.

    Args:
        name: Of the features: "image" gives "image[0]", "image[1]".
        what: What they are made of, for the note.
        numbers: ``n x d``, finite.
        most: Components to keep at most.
    """
    from sklearn.decomposition import PCA

    spread = np.ptp(numbers, axis=0).max()
    if spread <= 1e-6 * np.abs(numbers).max():
        return Features(np.empty((len(numbers), 0)), (), (f"{what} left out: the same for every item",))
    pca = PCA(min(most, *numbers.shape), random_state=0)
    Z = np.asarray(pca.fit_transform(numbers), dtype=np.float64)
    Z = Z[:, pca.explained_variance_ > 1e-6 * pca.explained_variance_[0]]
    share = 100.0 * float(pca.explained_variance_ratio_.sum())
    note = f"{what}, {counted(Z.shape[1], 'component')} ({share:.0f} % of the variance)"
    return Features(Z / Z[:, 0].std(), tuple(f"{name}[{k}]" for k in range(Z.shape[1])), (note,))


def limited(items: Items) -> Items:
    """Items with fewer features where a classifier would have more weights than it can learn while somebody waits.

    It has a weight for each feature and class; beyond 1000 the features become their largest principal components,
    their sizes as they are.

    Args:
        items: What was read.
    """
    from sklearn.decomposition import PCA

    classes = len(items.classes) if len(items.classes) > 2 else 1
    n, width = items.X.shape
    most = max(_FEWEST, _WEIGHTS // classes - 1)
    if items.task != "classification" or width <= most or n <= most:
        return items
    pca = PCA(most, random_state=0)
    X = np.asarray(pca.fit_transform(items.X), dtype=np.float64)
    share = 100.0 * float(pca.explained_variance_ratio_.sum())
    note = (
        f"{width} features for {classes} classes are more than can be learned while somebody waits: their {most} "
        f"largest principal components are taken ({share:.0f} % of the variance)"
    )
    return replace(items, X=X, notes=(*items.notes, note))


def given_features(path: Path, n: int) -> Features:
    """Read features that somebody made elsewhere, and take them as they are.

    Args:
        path: A .npy file, one row for each item, in the order of the items.
        n: Number of items.

    Raises:
        InvalidValueError: It is not such a file; the message says what it is instead.
    """
    X = _numbers(path)
    if X.ndim != 2 or X.shape[1] == 0:
        need = "a row for each item and a column for each feature are required"
        remedy = "; a single feature is written as x.reshape(-1, 1)" if X.ndim == 1 else ""
        raise InvalidValueError(f"--features {path} has the shape {X.shape}; {need}{remedy}")
    if len(X) != n:
        raise InvalidValueError(f"--features {path} has {counted(len(X), 'row')}, and there are {counted(n, 'item')}")
    bad = np.argwhere(~np.isfinite(X))
    if len(bad):
        row, column = bad[0].tolist()
        where = f"row {row + 1}, column {column + 1} (from 1)"
        raise InvalidValueError(f"--features {path} must hold finite numbers, and at {where} is {X[row, column]}")
    notes = [f"features: {X.shape[1]} of {path.name}, taken as they are, in the order of the items"]
    with np.errstate(over="ignore"):
        spread = np.ptp(X, axis=0)
    if not spread.any():
        raise InvalidValueError(f"--features {path}: every item has the same features; some must differ")
    least, largest = float(spread[spread > 0].min()), float(spread.max())
    if largest / least > _UNEVEN:
        notes.append(
            f"features: the range of a column goes from {least:.3g} to {largest:.3g}, and large ones weigh more; "
            "standardise them if that is not meant"
        )
    return Features(X, tuple(f"features[{k}]" for k in range(X.shape[1])), tuple(notes))


def _numbers(path: Path) -> Floats:
    need = "required is one array of numbers, as numpy.save writes it"
    try:
        with path.open("rb") as stream:
            array = np.load(stream, allow_pickle=False)
    except FileNotFoundError:
        raise InvalidValueError(
            f"there is no file {path}, given as --features; check the name and the folder"
        ) from None
    except MemoryError:
        raise InvalidValueError(f"--features {path} does not fit into memory") from None
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise InvalidValueError(f"--features {path} cannot be read: {error}; {need}") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise InvalidValueError(f"--features {path} is an archive of several arrays; {need}")
    if array.dtype.kind not in "biuf":
        raise InvalidValueError(f"--features {path} holds values of type {array.dtype}; {need}")
    return array.astype(np.float64)
