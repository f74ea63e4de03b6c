"""Read items from a file or a folder: what the user is shown, the features, and existing labels."""

import os
from pathlib import Path
from typing import Any

from suffice.session.items import Items
from suffice.session.reading.features import limited
from suffice.session.reading.frames import in_memory_columns, is_path
from suffice.session.reading.images import folder_items
from suffice.session.reading.options import ReadingOptions, parse_classes
from suffice.session.reading.tables import table_items

__all__ = ["ReadingOptions", "parse_classes", "read_items"]


def read_items(source: Any, request: ReadingOptions) -> Items:
    r"""Read the items of a project.

    Args:
        source: Path of a table (CSV, also gzipped or with tabs, or Parquet) or of a folder of images; or a table in
            memory: a DataFrame of pandas or polars, or a mapping from names of columns to values.
        request: How to read it.

    Raises:
        InvalidValueError: It cannot be used with these options; the message gives a remedy.
        MissingExtraError: A package is required that is not installed.
        SufficeError: A model for ``embed`` cannot be loaded.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "cars.csv"
        ...     _ = path.write_text("power,fuel,ok\n50,gas,yes\n60,diesel,\n70,gas,no\n")
        ...     items = read_items(path, ReadingOptions(target="ok"))
        >>> items.cells[1], items.classes, items.labels
        (('60', 'diesel'), ('no', 'yes'), {0: 'yes', 2: 'no'})
    """
    checked = request.checked()
    if not is_path(source):
        return limited(table_items(Path("the data"), checked, in_memory_columns(source)))
    path = Path(source)
    return limited(folder_items(path, checked) if os.path.isdir(path) else table_items(path, checked))
