"""A data set of the paper as a model takes it: chosen columns, standardised."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from suffice.data.catalogue import data_set
from suffice.data.columns import read_columns
from suffice.data.protocols import CORRECTED_VIEWS, PUBLISHED_VIEWS, ColumnRoles
from suffice.errors import InvalidValueError
from suffice.special import Floats


class Samples(NamedTuple):
    """Inputs (``n x D``, standardised) and targets (``n``: numbers, or classes 0 and 1)."""

    inputs: Floats
    target: Any


def read_set(name: str, protocol: str = "corrected", *, folder: Path | None = None) -> Samples:
    """Read a data set of the paper: the right columns, or those that the paper's authors took.

    Args:
        name: One of the paper's in ``suffice data list`` but mnist.
        protocol: ``corrected`` or ``published``.
        folder: The data folder; the usual one if left out.

    Raises:
        InvalidValueError: No such data set or protocol, or a data set that is no table.
        MissingDataError: The data set is not there.
        CorruptDataError: A file is not what it should be.
    """
    views = {"corrected": CORRECTED_VIEWS, "published": PUBLISHED_VIEWS}
    if protocol not in views:
        raise InvalidValueError(f"protocol must be corrected or published, not {protocol!r}")
    if (wanted := data_set(name)).name not in views[protocol]:
        reader = "read_texts" if wanted.holds == "texts" else "read_words"
        raise InvalidValueError(f"{name} is no data set of the paper; read it with suffice.data.{reader}")
    return read_samples(name, views[protocol][name], folder)


def read_samples(data: str, view: ColumnRoles, folder: Path | None = None) -> Samples:
    """Read a table and choose its columns.

    Args:
        data: Name of the data set.
        view: Which columns are inputs, and which is the target.
        folder: The data folder; the usual one if left out.

    Raises:
        MissingDataError: The data set is not there.
        CorruptDataError: A file is not what it should be.
    """
    names, values = read_columns(data, folder)
    values = values[view.rows_lost :]
    inputs = _standardised(values[:, [names.index(name) for name in view.inputs]])
    target = values[:, names.index(view.target)]
    if view.positive is not None:
        return Samples(inputs, (target == view.positive).astype(int))
    return Samples(inputs, _standardised(target) if view.standardised else target)


def _standardised(values: Floats) -> Floats:
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0))
