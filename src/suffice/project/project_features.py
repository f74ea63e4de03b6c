"""Features of new rows, made by the transformers of a project.

A project does not keep its fitted transformers: loading them would need pickle, which runs whatever code a file holds.
They are fitted again to the items that the project was made with. Fitting is deterministic, and the features that come
out must be those that the project keeps.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from suffice.errors import InvalidValueError, SufficeError
from suffice.models.capacity import most_components
from suffice.numerics import Floats
from suffice.project.images import image_transformer
from suffice.project.item_features import READ, embedding_transformer, limited
from suffice.project.items import Items
from suffice.project.project_interface import ReadableProject
from suffice.tables.column_features import short
from suffice.tables.file_reader import Column, TableColumns, Texts, as_texts
from suffice.tables.file_reader import column as read_column

if TYPE_CHECKING:
    from suffice.project.settings import Settings

# How far features that are made again may be from those that are kept, relative to the largest of a column.
_ROUNDING: Final = 1e-6


def fitted_transformer(project: ReadableProject) -> Any:
    """The transformer that made the features of a project: a table with the project's columns in, features out.

    Args:
        project: The project.

    Raises:
        SufficeError: The features were given as a file, or cannot be made again.
    """
    reading = project.made_with
    if reading.get("features"):
        raise SufficeError(
            "the features of this project were given as a file, so they cannot be made of new rows; give the features "
            "of the new rows too"
        )
    size, X = project.n_items_made, project.X[: project.n_items_made]
    cells = [row[1:] for row in project.rows(range(size))]
    for table, transformer in _candidates(project.first_settings, reading, cells):
        try:
            made = transformer.set_output(transform="default").fit_transform(table)
        except InvalidValueError:
            continue
        found = limited(_as_items(project.first_settings, np.asarray(made, dtype=np.float64), transformer))
        if _is_same(found.X, X):
            return found.transformer
    raise SufficeError(
        "the features of this project cannot be made again: they were given as a file, images have changed, or another "
        "version of a library made them; make a new project of all rows, and take the labels over with suffice import"
    )


def _is_same(made: Floats, kept: Floats) -> bool:
    if made.shape != kept.shape:
        return False
    scale = np.maximum(np.abs(kept).max(axis=0, initial=0.0), 1e-300)
    return bool((np.abs(made - kept) <= _ROUNDING * scale).all())


def _candidates(
    settings: "Settings", reading: Mapping[str, Any], cells: Sequence[Sequence[str]]
) -> Iterator[tuple[TableColumns, Any]]:
    """Tables and transformers that may have made the features; one if it is known how the data was read."""
    from suffice.tables.transformers import TableTransformer

    columns = dict(zip(settings.columns, zip(*cells, strict=True), strict=True))
    texts: list[str | None] = [None, settings.main] if settings.shown == "text" else [None]
    if "text" in reading:
        texts = [reading["text"]]
    embed = reading.get("embed")
    special: dict[str, Any] = {}
    if settings.shown == "image" and settings.main is not None:
        special[settings.main] = image_transformer(Path(settings.root), len(cells))
    elif embed is not None and settings.main is not None:
        special[settings.main], texts = embedding_transformer(settings.main, embed), [None]
    most = most_components(len(settings.classes), len(cells)) if settings.classes else None
    for text, decimal in product(texts, (".", ",")):
        table = _table(columns, settings.main if special else None, decimal)
        if table is not None:
            yield table, TableTransformer(text=text, special=special, most_characters=READ, components=most)


def _table(columns: Mapping[str, Sequence[str]], as_text: str | None, decimal: str) -> TableColumns | None:
    """Cells as columns; with decimal commas None if no column has any."""
    found: dict[str, Column] = {}
    commas = False
    for name, cells in columns.items():
        values = as_texts(cells) if name == as_text else read_column(cells)
        if decimal == "," and isinstance(values, Texts) and name != as_text:
            numbers = values.numbers(decimal=",")
            commas |= numbers is not None
            values = values if numbers is None else numbers
        found[name] = values
    if decimal == "," and not commas:
        return None
    return TableColumns(
        tuple(found),
        tuple(found.values()),
        (),
        lambda row: f"item {row}",
        lambda: [*zip(*columns.values(), strict=True)],
    )


def _as_items(settings: "Settings", X: Floats, transformer: Any) -> Items:
    """Items with features only, for what reduces them."""
    n = len(X)
    return Items(
        shown=settings.shown,
        ids=("",) * n,
        columns=(),
        cells=((),) * n,
        main=None,
        X=X,
        task=settings.task,
        classes=settings.classes,
        labels={},
        notes=(),
        transformer=transformer,
        components=transformer.component_groups(),
    )


def project_columns(settings: "Settings", table: TableColumns, source: str) -> TableColumns:
    """The columns of a project in a table of new rows; others are left out.

    Args:
        settings: Settings of the project.
        table: The new rows.
        source: Name of the table, for an error.

    Raises:
        InvalidValueError: A column is missing.
    """
    missing = [name for name in settings.columns if name not in table.names]
    if missing:
        some = ", ".join(map(short, missing[:20]))
        came = ", ".join(map(short, table.names[:20]))
        raise InvalidValueError(
            f"{source} must have the columns of the project, of which {some} "
            f"{'is' if len(missing) == 1 else 'are'} missing; its columns are {came}"
        )
    return table.selected(settings.columns, np.arange(len(table)))
