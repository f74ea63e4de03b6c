"""The final file of a project: all rows in the order of the data, with their labels and where these come from."""

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from suffice.project.exported_files import Exported
from suffice.tables.file_writer import Column, Rows, distinct, finite_cells
from suffice.tables.final_writer import (
    ADDED,
    FINAL_MEDIA_TYPES,
    TYPED_FORMATS,
    FinalFormat,
    checked_final_format,
    encoded_final,
    final_columns,
)
from suffice.tables.typed_cells import with_number_columns

if TYPE_CHECKING:
    from suffice.project.data_set_goal import ProjectLabels
    from suffice.project.labelling_project import Project

# Items that are read at a time.
_CHUNK = 5000


def final_file(
    project: "Project", final: "ProjectLabels", format: FinalFormat, *, byte_order_mark: bool = False
) -> Exported:
    """All items in the order of the data, with the final label of each.

    A row has the item's id, its cells under their names, the ``label``, its ``source`` (``person``, ``check`` for an
    answer of the check, ``model`` for a prediction, empty without a label), the ``probability`` of a prediction, and
    for a label of a person ``labelled_by`` and ``labelled_at`` (in UTC). If the data have a column of such a name, a
    number is appended to the name of the added column.

    The same project gives the same bytes.

    Args:
        project: The project.
        final: Its final labels.
        format: csv, xlsx, jsonl or parquet.
        byte_order_mark: Whether a CSV begins with a byte order mark, by which Excel recognises UTF-8.

    Raises:
        InvalidValueError: The format is not known, or cannot hold the rows.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    known = checked_final_format(format)
    columns = final_file_columns(project)
    if known in TYPED_FORMATS:
        columns = [
            *with_number_columns(columns[: -len(ADDED)], final_rows(project, final)),
            *columns[-len(ADDED) :],
        ]
    content = encoded_final(columns, final_rows(project, final), known, byte_order_mark=byte_order_mark)
    return Exported(f"final.{known}", FINAL_MEDIA_TYPES[known], content, len(final.labels))


def final_file_columns(project: "Project") -> list[Column]:
    """The columns of :func:`final_file`. The first is the id: the column of the data that has it, or ``id``."""
    settings = project.settings
    (named,) = distinct([project.made_with.get("id") or "id"], taken=settings.columns)
    return final_columns([named, *settings.columns], numbers=settings.task != "classification")


def final_rows(project: "Project", final: "ProjectLabels") -> Iterator[Rows]:
    """The rows of :func:`final_file`, some at a time."""
    added = zip(
        final.labels,
        final.source,
        finite_cells(np.asarray(final.probability)),
        (name or None for name in final.person),
        (when or None for when in final.at),
        strict=True,
    )
    for start in range(0, len(final.labels), _CHUNK):
        part = range(start, min(len(final.labels), start + _CHUNK))
        yield [(*row, *next(added)) for row in project.rows(part)]


def renamed_columns(project: "Project") -> dict[str, str]:
    """Columns that were added to the final file under another name, because the data have one of that name.

    Returns:
        The usual name and the name in the file, of each such column.
    """
    named = [column.name for column in final_file_columns(project)[-len(ADDED) :]]
    return {usual: name for usual, name in zip(ADDED, named, strict=True) if usual != name}


def final_digest(project: "Project", final: "ProjectLabels") -> str:
    """SHA-256 of the final file as CSV without a byte order mark, as hexadecimal digits."""
    return sha256(final_file(project, final, "csv").content).hexdigest()
