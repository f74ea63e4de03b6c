"""Rows that are not in a project: predictions of its model for them, and rows that are added to it."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.project.events import Label, shown
from suffice.project.images import found_images, image_paths
from suffice.project.item_features import given_features
from suffice.project.items import Items
from suffice.project.project_features import project_columns
from suffice.project.project_interface import ReadableProject
from suffice.project.project_learner import Predictor, learned_project
from suffice.project.read_items import clean, clean_rows
from suffice.project.reading_options import ReadingOptions, TargetColumn, read_labels
from suffice.tables.file_reader import TableColumns, as_texts, is_path, read_chunks, read_columns, table_columns
from suffice.tables.file_writer import Cell, Column, Format, Rows, distinct, finite_cells, write_rows
from suffice.tables.table import named_column

if TYPE_CHECKING:
    from suffice.project.settings import Settings

_CHUNK: Final = 5000


def write_predictions(
    project: ReadableProject, data: Path, to: Path, format: Format = "csv", *, features: Path | None = None
) -> int:
    """Write predictions for the rows of a file, some rows at a time, and return how many.

    A row has its cells, the prediction under the name of the target, its ``uncertainty``, and for classes the
    probability of each, ``p(name)``, as :func:`suffice.project.exported_files.predictions_file` describes.

    Args:
        project: The project.
        data: A CSV or Parquet file with the project's columns, or a folder of images.
        to: The file to write.
        format: csv, jsonl or parquet.
        features: A .npy file with a row for each row of the data, for a project whose features were given as a file.

    Raises:
        InvalidValueError: The data cannot be read, or a column is missing.
        SufficeError: There is no model yet, or features cannot be made of new rows.
    """
    predictor = learned_project(project).predictor()
    tables = iter(_tables(project.settings, data))
    first = next(tables)
    names = distinct(first.names)
    own = [Column(project.settings.target, "text" if project.settings.classes else "number")]
    own += [Column("uncertainty", "number"), *(Column(f"p({name})", "number") for name in project.settings.classes)]
    renamed = distinct([column.name for column in own], taken=names)
    columns = [*map(Column, names), *(each._replace(name=name) for each, name in zip(own, renamed, strict=True))]
    inputs = None if features is None else _features_in(features)
    transformer: Any = None if inputs is not None else project.transformer()

    def chunks() -> Iterator[Rows]:
        start = 0
        for table in _and(first, tables):
            if inputs is None:
                X = transformer.transform(new_columns(project.settings, table, data))
            else:
                X = inputs[start : start + len(table)]
            start += len(table)
            if inputs is not None and (len(X) < len(table)):
                raise InvalidValueError(f"--features has {len(inputs):,} rows, and {data} has more")
            yield _rows(predictor, X, table.cells())

    return write_rows(to, columns, chunks(), format)


def _and(first: TableColumns, others: Iterator[TableColumns]) -> Iterator[TableColumns]:
    yield first
    yield from others


def _features_in(path: Path) -> Floats:
    return given_features(path, len(np.load(path, mmap_mode="r", allow_pickle=False))).X


def _tables(settings: "Settings", data: Path) -> Iterator[TableColumns]:
    if settings.shown == "image" and os.path.isdir(data):
        paths = found_images(data)
        if not paths:
            raise InvalidValueError(f"there is no image in {data}")
        for start in range(0, len(paths), _CHUNK):
            yield table_columns({settings.main: paths[start : start + _CHUNK]})
        return
    yield from read_chunks(data, _CHUNK)


def new_columns(settings: "Settings", table: TableColumns, data: Path | None) -> TableColumns:
    """The columns of new rows as a project's transformer takes them.

    Args:
        settings: Settings of the project.
        table: The new rows.
        data: The file or folder of the rows, to which paths of images are relative; None for data in memory.
    """
    found = project_columns(settings, table, "the data" if data is None else str(data))
    cells = found.cells()
    cleaned = clean_rows(cells)
    if any(row is not before for row, before in zip(cleaned, cells, strict=True)):
        columns = [
            column if isinstance(column, np.ndarray) else as_texts([row[k] for row in cleaned])
            for k, column in enumerate(found.columns)
        ]
        found = replace(found, columns=tuple(columns), cells=lambda: cleaned)
    if settings.shown == "image" and settings.main is not None and data is not None:
        folder = (data if os.path.isdir(data) else data.absolute().parent).resolve()
        k = found.names.index(settings.main)
        # A path that is absolute stays so below the folder of the project's own images.
        absolute = as_texts([str(folder / row[k].strip()) for row in cleaned])
        found = replace(found, columns=(*found.columns[:k], absolute, *found.columns[k + 1 :]))
    return found


def _rows(predictor: Predictor, X: Floats, cells: Sequence[Sequence[str]]) -> list[tuple[Cell, ...]]:
    found = predictor.predict(np.asarray(X, dtype=np.float64))
    shares: list[Any] = [] if found.probabilities is None else list(found.probabilities.T)
    own = zip(*map(finite_cells, (found.labels, found.uncertainty, *shares)), strict=True)
    return [(*row, *said) for row, said in zip(cells, own, strict=True)]


def added_items(
    project: ReadableProject, data: Any, *, id: str | None = None, features: Any = None
) -> tuple[str, Items]:
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


def _table(project: ReadableProject, data: Any) -> tuple[str, Path | None, TableColumns]:
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


def _ids(project: ReadableProject, table: TableColumns, wanted: str | None, source: str) -> tuple[str, ...]:
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


def _labels(project: ReadableProject, table: TableColumns) -> dict[int, Label]:
    """Labels that the rows have already, by row."""
    settings = project.settings
    if settings.target not in table.names or settings.target in settings.columns:
        return {}
    k = table.names.index(settings.target)
    target = TargetColumn(settings.target, [row[k] for row in table.cells()], table[settings.target], table.place)
    return read_labels(target, ReadingOptions(task=settings.task, classes=settings.classes)).labels
