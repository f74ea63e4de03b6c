"""Rows of a table as items."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from suffice.data.features import Features, column_features, counted, is_text, short
from suffice.data.reading import Columns, Texts, read_columns
from suffice.data.table import first_line_notes, named_column
from suffice.errors import InvalidValueError
from suffice.session.items import Items
from suffice.session.reading.cells import clean, clean_rows
from suffice.session.reading.embeddings import embedded
from suffice.session.reading.features import as_texts, forced_text, given_features, shortened
from suffice.session.reading.images import ENDINGS, image_paths, pixel_features
from suffice.session.reading.options import ReadingOptions
from suffice.session.reading.targets import Labelling, TargetColumn, no_labels, read_labels
from suffice.session.settings import Shown

_LONGEST_ID: Final = 500
_LIKE_LABELS: Final = {"label", "target", "class"}


class _Source(NamedTuple):
    """A table that is read, and what its columns are for; target, image and text by name, None for none."""

    path: Path
    file: Columns
    rows: Sequence[Sequence[str]]
    ids: tuple[str, ...]
    target: str | None
    image: str | None
    text: str | None
    shown: tuple[str, ...]
    notes: tuple[str, ...]

    def cells(self, name: str) -> list[str]:
        """Return the cells of one column."""
        k = self.file.names.index(name)
        return [row[k] for row in self.rows]


def table_items(path: Path, request: ReadingOptions, table: Columns | None = None) -> Items:
    """Make every row of a table an item. A ``table`` that is given is not read; ``path`` is then its name.

    Raises:
        InvalidValueError: It is no table, or cannot be used so; the message says what to do about it.
        MissingExtraError: It needs a package that is not installed.
        SufficeError: The model for ``embed`` cannot be loaded.
    """
    source = _source(path, request, table)
    n = len(source.ids)
    labelling = _labelling(source, request)
    columns = {name: source.cells(name) for name in source.shown}
    root = None
    if source.image is not None:
        root = path.absolute().parent.resolve()
        columns[source.image] = image_paths(root, columns[source.image], source.file.place)
    given = request.features
    made = [given_features(given, n)] if given else [_features(source, request, columns, name) for name in columns]
    notes = (*source.notes, *labelling.notes, *(note for each in made for note in each.notes))
    if not any(each.names for each in made):
        remedy = "name a column of text with --text, or give features with --features FILE.npy"
        raise InvalidValueError(f"{path}: the model can use no column; {'; '.join([*notes[:10], remedy])}")
    shown: Shown = "image" if source.image else "text" if source.text else "table"
    return Items(
        shown=shown,
        ids=source.ids,
        columns=source.shown,
        cells=tuple(zip(*columns.values(), strict=True)) if columns else ((),) * n,
        main=source.image or source.text,
        X=np.hstack([each.X for each in made]),
        task=labelling.task,
        classes=labelling.classes,
        labels=labelling.labels,
        notes=notes,
        root=root,
    )


def _source(path: Path, request: ReadingOptions, table: Columns | None) -> _Source:
    if path.suffix.lower() in ENDINGS and os.path.isfile(path):
        raise InvalidValueError(
            f"{path} is one image; name the folder that holds the images, or a table of their paths"
        )
    file = _with_clean_names(read_columns(path) if table is None else table, path)
    rows = clean_rows(file.cells())
    if len(rows) < 2:
        raise InvalidValueError(f"{path} holds {counted(len(rows), 'item')}; at least 2 are required")
    target = _target(file, request.target, path)
    taken = _taken(file, request, target, path)
    by, ids, notes = _ids(file, rows, request.id, taken)
    hidden = {target, by, *request.ignore}
    shown = tuple(name for name in file.names if name not in hidden)
    texts = [name for name in shown if name != request.image and is_text(named_column(file, name, path))]
    text = request.text or (texts[0] if len(texts) == 1 else None)
    if request.embed is not None and text is None:
        came = f"{len(texts)} columns are text" if texts else "no column is text"
        raise InvalidValueError(f"--embed reads a text, and {came}; name the column with --text")
    use = "used as a feature" if request.features is None else "shown"
    like = [name for name in shown if name.lower() in _LIKE_LABELS] if request.target is None else []
    hints = [f"column {name!r} is {use}; give --target {name} if it holds labels" for name in like]
    every = (*file.notes, *first_line_notes(file), *notes, *hints)
    return _Source(path, file, rows, ids, target, request.image, text, shown, every)


def _with_clean_names(file: Columns, path: Path) -> Columns:
    names = tuple(map(clean, file.names))
    if len(set(names)) < len(names):
        raise InvalidValueError(f"{path}: two columns differ in control characters of their names only; rename them")
    if not names:
        raise InvalidValueError(f"{path} has no column that can be read; {'; '.join(file.notes)}")
    return replace(file, names=names)


def _target(file: Columns, wanted: str | None, path: Path) -> str | None:
    """Return the target if it is a column; if not, its name is that of the labels to come."""
    if wanted is None or wanted in file.names:
        return wanted
    lower = {name.lower(): name for name in file.names}
    near = get_close_matches(wanted.lower(), lower, n=1, cutoff=0.8)
    if near:
        meant = f"did you mean {short(lower[near[0]])}? To name a new column, choose another name"
        raise InvalidValueError(f"{path} has no column {wanted!r}, given as --target; {meant}")
    return None


def _taken(file: Columns, request: ReadingOptions, target: str | None, path: Path) -> dict[str, str]:
    """Return the columns that an option names, each with that option; each in the file, and named by one only."""
    given = [("--target", target), ("--id", request.id), ("--text", request.text), ("--image", request.image)]
    taken: dict[str, str] = {}
    for option, name in [*given, *(("--ignore", name) for name in dict.fromkeys(request.ignore))]:
        if name is None:
            continue
        try:
            named_column(file, name, path)
        except InvalidValueError as error:
            raise InvalidValueError(f"{option}: {error}") from None
        if name in taken:
            raise InvalidValueError(f"column {name!r} is given as {taken[name]} and as {option}; it can be one of them")
        taken[name] = option
    return taken


def _ids(
    file: Columns, rows: Sequence[Sequence[str]], wanted: str | None, taken: Mapping[str, str]
) -> tuple[str | None, tuple[str, ...], list[str]]:
    """Return the column that names the items (None for none), their names, and notes."""
    numbered = tuple(str(k + 1) for k in range(len(rows)))
    name = wanted or next((name for name in file.names if name.lower() == "id" and name not in taken), None)
    if name is None:
        return None, numbered, []
    k = file.names.index(name)
    ids = tuple(row[k].strip() for row in rows)
    problem = _id_problem(ids, file)
    if not problem:
        return name, ids, []
    if wanted is not None:
        raise InvalidValueError(f"--id: column {name!r} must name each item differently, but {problem}")
    return None, numbered, [f"column {name!r} does not name the items: {problem}; they are numbered"]


def _id_problem(ids: Sequence[str], file: Columns) -> str:
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if not name or len(name) > _LONGEST_ID:
            return f"{file.place(row)} has {f'more than {_LONGEST_ID} characters' if name else 'none'}"
        if first.setdefault(name, row) != row:
            return f"{short(name)} is in {file.place(first[name])} and in {file.place(row)}"
    return ""


def _labelling(source: _Source, request: ReadingOptions) -> Labelling:
    if source.target is None:
        return no_labels(request)
    column = named_column(source.file, source.target, source.path)
    return read_labels(TargetColumn(source.target, source.cells(source.target), column, source.file.place), request)


def _features(source: _Source, request: ReadingOptions, columns: Mapping[str, Sequence[str]], name: str) -> Features:
    """Return what one column becomes."""
    file = source.file
    if name == source.image:
        return pixel_features(source.path.absolute().parent, columns[name])
    column, notes = shortened(name, named_column(file, name, source.path), file.place)
    if name == source.text and (request.text is not None or request.embed is not None):
        texts = column if isinstance(column, Texts) else as_texts(columns[name])
        model = request.embed
        read = forced_text(name, texts, file.place) if model is None else embedded(name, texts, model)
    else:
        read = column_features(name, column, file.place)
    return read._replace(notes=(*notes, *read.notes))
