"""Features of items that are given in a file, and a limit on the number of features."""

from dataclasses import replace
from pathlib import Path
from typing import Final
from zipfile import BadZipFile

import numpy as np

from suffice.data.features import Features, counted
from suffice.errors import InvalidValueError
from suffice.session.items import Items
from suffice.special import Floats

#: Characters of a text that the model reads; the user sees all of them.
READ: Final = 100_000
_UNEVEN_RANGES: Final = 1000.0
# With 1000 weights, a classifier with many classes learns a label in a third of a second.
_MOST_WEIGHTS: Final = 1000
_FEWEST_FEATURES: Final = 5


def limited(items: Items) -> Items:
    """Return items with fewer features if a classifier would be too slow to learn during labelling.

    A classifier has a weight for each feature and class. If there would be more than 1000, the features are replaced by
    their largest principal components, without scaling.

    Args:
        items: The items with all features.
    """
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline

    classes = len(items.classes) if len(items.classes) > 2 else 1
    n, width = items.X.shape
    most = max(_FEWEST_FEATURES, _MOST_WEIGHTS // classes - 1)
    if items.task != "classification" or width <= most or n <= most:
        return items
    pca = PCA(most, random_state=0)
    X = np.asarray(pca.fit_transform(items.X), dtype=np.float64)
    share = 100.0 * float(pca.explained_variance_ratio_.sum())
    note = (
        f"{width} features for {classes} classes are too many to learn during labelling: they are replaced by their "
        f"{most} largest principal components ({share:.0f} % of the variance)"
    )
    transformer = None if items.transformer is None else make_pipeline(items.transformer, pca)
    return replace(items, X=X, notes=(*items.notes, note), transformer=transformer)


def given_features(path: Path, n: int) -> Features:
    """Read features from a file, and use them unchanged.

    Args:
        path: A .npy file with one row for each item, in the order of the items.
        n: Number of items.

    Raises:
        InvalidValueError: The file does not contain such an array; the message says what it contains.
    """
    X = _array_from_file(path)
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
    if largest / least > _UNEVEN_RANGES:
        notes.append(
            f"features: the range of a column goes from {least:.3g} to {largest:.3g}, and large ones weigh more; "
            "standardise them if that is not meant"
        )
    return Features(X, tuple(f"features[{k}]" for k in range(X.shape[1])), tuple(notes))


def _array_from_file(path: Path) -> Floats:
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
