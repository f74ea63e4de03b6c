"""Items of a project from a table or a folder."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from suffice.errors import InvalidValueError
from suffice.models.capacity import most_components
from suffice.project.images import ENDINGS, folder_items, image_paths, image_transformer
from suffice.project.item_features import READ, embedding_transformer, given_features, limited
from suffice.project.items import ItemProgress, Items, RowNumbers, no_progress
from suffice.project.reading_options import (
    Labelling,
    ReadingOptions,
    TargetColumn,
    no_labels,
    parse_classes,
    read_labels,
)
from suffice.project.settings import Shown
from suffice.tables.column_features import Features, counted, is_text, short
from suffice.tables.file_reader import (
    Column,
    ParquetCells,
    TableColumns,
    Texts,
    as_texts,
    is_path,
    read_columns,
    table_columns,
)
from suffice.tables.table import first_line_notes, named_column

# Tabs and line ends are kept. Other control characters break terminals, PostgreSQL rejects NUL, and UTF-8 surrogates.
_UNSAFE_CHARACTER: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_REPLACEMENT_CHARACTER: Final = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    r"""Return a text with control characters and surrogates replaced.

    Characters 128 to 159 occur when a file in Windows-1252 is read as Latin-1; they become the characters of
    Windows-1252.

    Examples:
        >>> clean("a\x00b"), clean("\x93quoted\x94"), clean("two\nlines")
        ('a\ufffdb', '\u201cquoted\u201d', 'two\nlines')
    """
    return _UNSAFE_CHARACTER.sub(_replacement, text)


def clean_rows(rows: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return rows with every cell clean."""
    # Search the whole row first, because such characters are rare.
    return [tuple(map(clean, row)) if _UNSAFE_CHARACTER.search("".join(row)) else row for row in rows]


def _replacement(found: re.Match[str]) -> str:
    code = ord(found[0])
    return bytes([code]).decode("cp1252", "replace") if 0x80 <= code < 0xA0 else _REPLACEMENT_CHARACTER


_LONGEST_ID: Final = 500
_LIKE_LABELS: Final = {"label", "target", "class"}


class _TableSource(NamedTuple):
    """A table and the roles of its columns; target, image and text are names of columns or None.

    ``cleaned`` says whether a cell had characters that were replaced.
    """

    path: Path
    file: TableColumns
    rows: Sequence[Sequence[str]]
    ids: Sequence[str]
    target: str | None
    image: str | None
    text: str | None
    shown: tuple[str, ...]
    notes: tuple[str, ...]
    cleaned: bool

    def cells(self, name: str) -> list[str]:
        """Return the cells of one column."""
        k = self.file.names.index(name)
        return self.rows.column(k) if isinstance(self.rows, ParquetCells) else [row[k] for row in self.rows]

    def shown_cells(self, columns: Mapping[str, Sequence[str]]) -> Sequence[Sequence[str]]:
        """Return the cells of each item, from those of each column."""
        if not columns:
            return ((),) * len(self.ids)
        if isinstance(self.rows, ParquetCells):
            return self.rows.selected([self.file.names.index(name) for name in columns])
        return tuple(zip(*columns.values(), strict=True))


def table_items(
    path: Path, request: ReadingOptions, table: TableColumns | None = None, progress: ItemProgress = no_progress
) -> Items:
    """Make every row of a table an item. A ``table`` that is given is not read; ``path`` is then its name.

    Raises:
        InvalidValueError: The file is not a table, or cannot be used with these options; the message gives a remedy.
        MissingExtraError: A package is required that is not installed.
        SufficeError: The model for ``embed`` cannot be loaded.
    """
    source = _table_source(path, request, table, progress)
    n = len(source.ids)
    labelling = _labelling(source, request)
    kept = source.rows if isinstance(source.rows, ParquetCells) else None
    # Of a large file the cells stay there.
    columns = {name: source.cells(name) if kept is None else [] for name in source.shown}
    root = None
    if source.image is not None:
        root = path.absolute().parent.resolve()
        columns[source.image] = image_paths(root, columns[source.image], source.file.place)
    given = request.features
    progress("computing features", 0, 0)
    most = most_components(len(labelling.classes), n) if labelling.task == "classification" else None
    told = partial(progress, "computing features")
    made = _features_of_columns(source, request, columns, most, told) if given is None else given_features(given, n)
    notes = (*source.notes, *labelling.notes, *made.notes)
    if not made.names:
        remedy = "name a column of text with --text, or give features with --features FILE.npy"
        raise InvalidValueError(f"{path}: the model can use no column; {'; '.join([*notes[:10], remedy])}")
    shown: Shown = "image" if source.image else "text" if source.text else "table"
    return Items(
        shown=shown,
        ids=source.ids,
        columns=source.shown,
        cells=source.shown_cells(columns),
        main=source.image or source.text,
        X=made.X,
        task=labelling.task,
        classes=labelling.classes,
        labels=labelling.labels,
        notes=notes,
        root=root,
        transformer=made.transformer,
        components=made.components,
    )


def _table_source(
    path: Path, request: ReadingOptions, table: TableColumns | None, progress: ItemProgress
) -> _TableSource:
    if path.suffix.lower() in ENDINGS and os.path.isfile(path):
        raise InvalidValueError(
            f"{path} is one image; name the folder that holds the images, or a table of their paths"
        )
    if table is None:
        table = read_columns(path, partial(progress, "reading the items"))
    file = _with_clean_names(table, path)
    read = file.cells()
    # Cells of a large file stay there, unless they are changed or looked at one by one.
    stays = isinstance(read, ParquetCells) and request.image is None and request.embed is None and _is_clean(read)
    rows = read if stays else clean_rows(read)
    if len(rows) < 2:
        raise InvalidValueError(f"{path} holds {counted(len(rows), 'item')}; at least 2 are required")
    target = _target_column(file, request.target, path)
    taken = _columns_by_option(file, request, target, path)
    by, ids, notes = _item_ids(file, rows, request.id, taken)
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
    cleaned = not stays and any(row is not before for row, before in zip(rows, read, strict=True))
    return _TableSource(path, file, rows, ids, target, request.image, text, shown, every, cleaned)


def _is_clean(cells: ParquetCells) -> bool:
    """Whether no text has characters that are replaced."""
    texts = (part for k in cells.text_columns() for batch in cells.selected([k]).batches() for part in batch)
    return not any(_UNSAFE_CHARACTER.search("".join(part)) for part in texts)


def _with_clean_names(file: TableColumns, path: Path) -> TableColumns:
    names = tuple(map(clean, file.names))
    if len(set(names)) < len(names):
        raise InvalidValueError(f"{path}: two columns differ in control characters of their names only; rename them")
    if not names:
        raise InvalidValueError(f"{path} has no column that can be read; {'; '.join(file.notes)}")
    return replace(file, names=names)


def _target_column(file: TableColumns, wanted: str | None, path: Path) -> str | None:
    """Return the target if it is a column, and None if it is the name of labels to come."""
    if wanted is None or wanted in file.names:
        return wanted
    lower = {name.lower(): name for name in file.names}
    near = get_close_matches(wanted.lower(), lower, n=1, cutoff=0.8)
    if near:
        meant = f"did you mean {short(lower[near[0]])}? To name a new column, choose another name"
        raise InvalidValueError(f"{path} has no column {wanted!r}, given as --target; {meant}")
    return None


def _columns_by_option(file: TableColumns, request: ReadingOptions, target: str | None, path: Path) -> dict[str, str]:
    """Return the option that names each column; a column must be in the file and be named by one option only."""
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


def _item_ids(
    file: TableColumns, rows: Sequence[Sequence[str]], wanted: str | None, taken: Mapping[str, str]
) -> tuple[str | None, Sequence[str], list[str]]:
    """Return the column that names the items or None, the names, and notes."""
    numbered = RowNumbers(len(rows)) if isinstance(rows, ParquetCells) else tuple(map(str, range(1, len(rows) + 1)))
    name = wanted or next((name for name in file.names if name.lower() == "id" and name not in taken), None)
    if name is None:
        return None, numbered, []
    k = file.names.index(name)
    cells = rows.column(k) if isinstance(rows, ParquetCells) else [row[k] for row in rows]
    ids = tuple(cell.strip() for cell in cells)
    problem = _id_problem(ids, file)
    if not problem:
        return name, ids, []
    if wanted is not None:
        raise InvalidValueError(f"--id: column {name!r} must name each item differently, but {problem}")
    return None, numbered, [f"column {name!r} does not name the items: {problem}; they are numbered"]


def _id_problem(ids: Sequence[str], file: TableColumns) -> str:
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if not name or len(name) > _LONGEST_ID:
            return f"{file.place(row)} has {f'more than {_LONGEST_ID} characters' if name else 'none'}"
        if first.setdefault(name, row) != row:
            return f"{short(name)} is in {file.place(first[name])} and in {file.place(row)}"
    return ""


def _labelling(source: _TableSource, request: ReadingOptions) -> Labelling:
    if source.target is None:
        return no_labels(request)
    column = named_column(source.file, source.target, source.path)
    return read_labels(TargetColumn(source.target, source.cells(source.target), column, source.file.place), request)


def _features_of_columns(
    source: _TableSource,
    request: ReadingOptions,
    cells: Mapping[str, Sequence[str]],
    components: int | None,
    progress: Callable[[int, int], None],
) -> Features:
    from suffice.tables.transformers import TableTransformer, table_features

    columns: dict[str, Column] = {name: source.file[name] for name in cells}
    if source.cleaned:
        # The features are those of the cells that the project keeps, so that they can be made again.
        texts = [name for name, column in columns.items() if isinstance(column, Texts)]
        columns |= {name: as_texts(cells[name]) for name in texts}
    special: dict[str, Any] = {}
    if source.image is not None:
        columns[source.image] = as_texts(cells[source.image])
        special[source.image] = image_transformer(source.path.absolute().parent, len(source.ids))
    if source.text is not None and request.embed is not None:
        special[source.text] = embedding_transformer(source.text, request.embed)
    table = TableColumns(
        names=tuple(columns),
        columns=tuple(columns.values()),
        notes=(),
        place=source.file.place,
        cells=lambda: source.shown_cells(cells),
    )
    text = None if request.embed else request.text
    transformer = TableTransformer(text=text, special=special, most_characters=READ, components=components)
    return table_features(table, transformer, progress)


__all__ = ["ReadingOptions", "parse_classes", "read_items"]


def read_items(source: Any, request: ReadingOptions, progress: ItemProgress = no_progress) -> Items:
    r"""Read the items of a project.

    Args:
        source: Path of a table (CSV, also gzipped or with tabs, or Parquet) or of a folder of images; or a table in
            memory: a DataFrame of pandas or polars, or a mapping from names of columns to values.
        request: How to read it.
        progress: Receives what is done now.

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
    progress("reading the items", 0, 0)
    if not is_path(source):
        table = table_columns(source)
        if not table.names or not len(table.columns[0]):
            missing = "rows" if table.names else "columns"
            raise InvalidValueError(f"the data has no {missing}; at least 2 items are required")
        return replace(limited(table_items(Path("the data"), checked, table, progress)), reading=_reading(checked))
    path = Path(source)
    found = folder_items(path, checked) if os.path.isdir(path) else table_items(path, checked, progress=progress)
    return replace(limited(found), reading=_reading(checked))


def _reading(request: ReadingOptions) -> dict[str, Any]:
    return {"text": request.text, "embed": request.embed, "id": request.id, "features": request.features is not None}
