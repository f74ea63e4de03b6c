"""Files of all rows of a project in the order of the data, with their labels and where these come from."""

from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.project.data_set_goal import present_labels
from suffice.project.exported_files import Exported, guaranteed_predictions
from suffice.tables.file_writer import Column, Rows, distinct, finite_cells
from suffice.tables.final_writer import ADDED, encoded_final, final_columns
from suffice.tables.table_formats import FINAL_FORMATS, FINAL_MEDIA_TYPES, TYPED_FORMATS, FinalFormat, checked_format
from suffice.tables.typed_cells import with_number_columns

if TYPE_CHECKING:
    from suffice.project.data_set_goal import ProjectLabels
    from suffice.project.labelling_project import Project
    from suffice.project.learning_status import Predictions

# Items that are read at a time.
_CHUNK = 5000


class RowLabels(Protocol):
    """A label of each item, as :class:`suffice.project.ProjectLabels` has them."""

    @property
    def labels(self) -> list[Any]:
        """The label of each item; None for an item without one."""
        ...

    @property
    def source(self) -> list[str]:
        """Where each comes from; empty without a label."""
        ...

    @property
    def probability(self) -> Floats:
        """Probability of each prediction; NaN for labels of people."""
        ...

    @property
    def person(self) -> list[str]:
        """Who gave each label; empty for predictions."""
        ...

    @property
    def at(self) -> list[str]:
        """When; empty for predictions."""
        ...


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
        format: One of :data:`~suffice.tables.table_formats.FINAL_FORMATS`.
        byte_order_mark: Whether a CSV begins with a byte order mark, by which Excel recognises UTF-8.

    Raises:
        InvalidValueError: The format is not known, or cannot hold the rows.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    return _labelled_rows(project, final, format, "final", byte_order_mark=byte_order_mark)


def all_rows_file(
    project: "Project", predictions: "Predictions | None", format: FinalFormat, *, byte_order_mark: bool = False
) -> Exported:
    """All items in the order of the data, with labels of people, and for the others the current predictions.

    The columns are those of :func:`final_file`. No goal is needed, and nothing is guaranteed: how many predictions are
    wrong is estimated (see :attr:`suffice.project.Project.learning_status`), or what a check says of them holds.
    Skipped items have no label.

    Args:
        project: The project.
        predictions: Predictions of the model for all items of the project; None if there are none: items without a
            label of somebody then have none.
        format: One of :data:`~suffice.tables.table_formats.FINAL_FORMATS`.
        byte_order_mark: Whether a CSV begins with a byte order mark, by which Excel recognises UTF-8.

    Raises:
        InvalidValueError: The format is not known, or cannot hold the rows, or people say whether predictions are
            right in this project.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    checked = project.settings.checked
    if checked is not None and checked.answer == "verdict":
        raise InvalidValueError(
            "in this project people say whether predictions are right, so that rows have no labels; export the answers"
        )
    found = None if predictions is None else guaranteed_predictions(project, predictions)
    with project.lock:
        rows = present_labels(project.state(), found)
    return _labelled_rows(project, rows, format, "all-rows", byte_order_mark=byte_order_mark)


def _labelled_rows(
    project: "Project", final: RowLabels, format: FinalFormat, name: str, *, byte_order_mark: bool
) -> Exported:
    """A file of all items with these labels."""
    known = checked_format(format, FINAL_FORMATS)
    columns = final_file_columns(project)
    if known in TYPED_FORMATS:
        columns = [
            *with_number_columns(columns[: -len(ADDED)], final_rows(project, final)),
            *columns[-len(ADDED) :],
        ]
    content = encoded_final(columns, final_rows(project, final), known, byte_order_mark=byte_order_mark)
    return Exported(f"{name}.{known}", FINAL_MEDIA_TYPES[known], content, len(final.labels))


def final_file_columns(project: "Project") -> list[Column]:
    """The columns of :func:`final_file`. The first is the id: the column of the data that has it, or ``id``."""
    settings = project.settings
    (named,) = distinct([project.made_with.get("id") or "id"], taken=settings.columns)
    return final_columns([named, *settings.columns], numbers=settings.task != "classification")


def final_rows(project: "Project", final: RowLabels) -> Iterator[Rows]:
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
