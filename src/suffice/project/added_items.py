"""Rows that are added to a project: read and checked like those that it was made with."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.errors import InvalidValueError
from suffice.numerics.special_functions import Floats
from suffice.project.events import Label, shown
from suffice.project.images import found_images, image_paths
from suffice.project.item_features import given_features
from suffice.project.items import Items
from suffice.project.new_rows import new_columns
from suffice.project.project_features import project_columns
from suffice.project.read_items import clean, clean_rows
from suffice.project.reading_options import ReadingOptions, TargetColumn, read_labels
from suffice.tables.file_reader import TableColumns, is_path, read_columns, table_columns
from suffice.tables.table import named_column

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project


def added_items(project: "Project", data: Any, *, id: str | None = None, features: Any = None) -> tuple[str, Items]:
    """The name of the data, and its rows as items of a project.

    Args:
        project: The project.
        data: The rows, see :meth:`suffice.project.Project.add_items`.
        id: Column that names the items.
        features: Features, an array or the path of a .npy file.

    Raises:
        InvalidValueError: The rows cannot be used; the message names the first problem.
        SufficeError: Features cannot be made of new rows.
    """
    settings = project.settings
    name, path, table = _table(project, data)
    found = project_columns(settings, table, name)
    cells = clean_rows(found.cells())
    if not cells:
        raise InvalidValueError(f"{name} has no rows to add")
    if settings.shown == "image" and settings.main is not None:
        k, root = settings.columns.index(settings.main), Path(settings.root)
        # They are kept relative to the folder of the project's images, and shown from there only.
        relative = image_paths(root, [_below(root, path, row[k]) for row in cells], table.place)
        cells = [(*row[:k], image, *row[k + 1 :]) for row, image in zip(cells, relative, strict=True)]
    X = (
        project.transformer().transform(new_columns(settings, table, path))
        if features is None
        else _given(features, len(cells), project.X.shape[1])
    )
    return name, Items(
        shown=settings.shown,
        ids=_ids(project, table, id, name),
        columns=settings.columns,
        cells=tuple(map(tuple, cells)),
        main=settings.main,
        X=np.asarray(X, dtype=np.float64),
        task=settings.task,
        classes=settings.classes,
        labels=_labels(project, table),
        notes=(),
    )


def _table(project: "Project", data: Any) -> tuple[str, Path | None, TableColumns]:
    """The name of the data, its path or None, and its rows."""
    settings = project.settings
    if is_path(data):
        path = Path(data)
        if path.is_dir() and settings.shown == "image" and settings.main is not None:
            return path.name, path, table_columns({settings.main: found_images(path)})
        return path.name, path, read_columns(path)
    if isinstance(data, Sequence) and not isinstance(data, str) and settings.main is not None:
        return "the data", None, table_columns({settings.main: list(data)})
    return "the data", None, table_columns(data)


def _below(root: Path, path: Path | None, cell: str) -> str:
    """The path of an image as it is from the folder of the project's images."""
    folder = root if path is None else path if path.is_dir() else path.absolute().parent
    image = folder.resolve() / cell.strip()
    return str(image.relative_to(root)) if image.is_relative_to(root) else str(image)


def _given(features: Any, n: int, width: int) -> Floats:
    X = given_features(Path(features), n).X if is_path(features) else np.asarray(features, dtype=np.float64)
    if X.shape != (n, width):
        raise InvalidValueError(f"features must have the shape {(n, width)}, not {X.shape}")
    if not np.isfinite(X).all():
        raise InvalidValueError("features must be finite numbers")
    return X


def _ids(project: "Project", table: TableColumns, wanted: str | None, source: str) -> tuple[str, ...]:
    """Names of the rows: those of a column, or numbers that go on from those of the project."""
    known = wanted or project.made_with.get("id")
    if wanted is not None:
        named_column(table, wanted, Path(source))
    if known not in table.names:
        known = next((name for name in table.names if name.lower() == "id"), None)
    if known is None or known in project.settings.columns:
        return tuple(str(project.size + k + 1) for k in range(len(table)))
    k = table.names.index(known)
    ids = tuple(clean(row[k]).strip() for row in table.cells())
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if not name or first.setdefault(name, row) != row:
            problem = f"{shown(name)} is there twice" if name else "it is empty"
            raise InvalidValueError(
                f"{source}, {table.place(row)}: column {known!r} must name each item differently, but {problem}"
            )
    return ids


def _labels(project: "Project", table: TableColumns) -> dict[int, Label]:
    """Labels that the rows have already, by row."""
    settings = project.settings
    if settings.target not in table.names or settings.target in settings.columns:
        return {}
    k = table.names.index(settings.target)
    target = TargetColumn(settings.target, [row[k] for row in table.cells()], table[settings.target], table.place)
    return read_labels(target, ReadingOptions(task=settings.task, classes=settings.classes)).labels
