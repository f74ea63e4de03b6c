"""The paper's tables as numbers: all rows, all columns, as they are in the files."""

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from suffice.data.catalogue import DataSet, data_set
from suffice.data.checking import checked_contents
from suffice.errors import InvalidValueError
from suffice.special import Floats

#: What data sets are that are no tables of numbers, and how to read them.
_OTHERWISE: Final = {
    "images": "images, not a table; read it with suffice.data.mnist.read_mnist(mnist_folder())",
    "words": "a table with words in it, not of numbers alone; read it with suffice.data.read_words",
    "texts": "texts, not a table; read it with suffice.data.read_texts",
}


class NumericColumns(NamedTuple):
    """The columns of a table: their names (``k``) and the numbers in them (``n x k``)."""

    names: tuple[str, ...]
    values: Floats


def read_columns(name: str, folder: Path | None = None) -> NumericColumns:
    """Read a table of the paper, whole and as it is, once its checksum is found right.

    Args:
        name: Name of the data set: one of the paper's in ``suffice data list`` but mnist.
        folder: The data folder; :func:`suffice.data.folder.data_folder` if left out.

    Raises:
        InvalidValueError: There is no table of that name.
        MissingDataError: A file is not there; the message says how to get it.
        CorruptDataError: A file is not what it should be.
    """
    wanted = data_set(name)
    if wanted.holds != "numbers":
        raise InvalidValueError(f"the data set {name} is {_OTHERWISE[wanted.holds]}")
    tables = [_numbers(content, wanted) for content in checked_contents(name, folder)]
    return NumericColumns(wanted.columns, np.concatenate(tables) if len(tables) > 1 else tables[0])


def _numbers(content: bytes, wanted: DataSet) -> Floats:
    # Split here, for the lines of some files end in a carriage return alone.
    lines = content.decode("ascii").splitlines()[wanted.header :]
    values: Floats = np.loadtxt(lines, dtype=np.float64, delimiter=wanted.separator, ndmin=2, comments=None)
    return values
