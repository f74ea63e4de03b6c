"""Predictions of a project's model for rows that are not in the project, some at a time."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from suffice.errors import InvalidValueError
from suffice.numerics.special_functions import Floats
from suffice.project.exported_files import finite_cells
from suffice.project.images import found_images
from suffice.project.item_features import given_features
from suffice.project.project_features import project_columns
from suffice.project.project_learner import Predictor, learned_project
from suffice.project.read_items import clean_rows
from suffice.tables.file_reader import TableColumns, as_texts, read_chunks, table_columns
from suffice.tables.file_writer import Cell, Column, Format, Rows, distinct, write_rows

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project
    from suffice.project.settings import Settings

_CHUNK: Final = 5000


def write_predictions(
    project: "Project", data: Path, to: Path, format: Format = "csv", *, features: Path | None = None
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
    inputs = _given(features) if features is not None else None
    transformer = None if inputs is not None else project.transformer()

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


def _given(path: Path) -> Floats:
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
        settings: What the project is about.
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
