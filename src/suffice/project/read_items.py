"""Items of a project from a table or a folder: options for reading them, the labels that the data already contain."""

import csv
import io
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.project.column_roles import id_column, id_problem, is_image_column, is_like_label, text_column
from suffice.project.events import LONGEST_CLASS, MOST_CLASSES, Label, printable, shown
from suffice.project.images import ENDINGS, KINDS, found_images, image_paths, image_transformer, pixel_features
from suffice.project.item_features import (
    READ,
    ImageColumn,
    deferred_features,
    embedding_transformer,
    given_features,
    prepared,
)
from suffice.project.items import ItemProgress, Items, RowNumbers, no_progress
from suffice.project.settings import Shown, Task
from suffice.tables.column_features import Features, column_type, counted, not_a_number, short
from suffice.tables.file_reader import read_columns
from suffice.tables.table import alike_notes, are_classes, first_line_notes, named_column
from suffice.tables.table_cells import CellColumns, TableCells, contains_bytes
from suffice.tables.table_columns import (
    MISSING,
    Column,
    TableColumns,
    Texts,
    as_number,
    as_texts,
    is_path,
    number_name,
    table_columns,
)

_HOW_TO_WRITE_CLASSES: Final = "write them as --classes a,b,c, and a name that holds a comma in double quotes"


@dataclass(frozen=True)
class ReadingOptions:
    """Options for reading a file or folder of items.

    Attributes:
        target: Name of the label. If a column has this name, its values are existing labels, and the column is neither
            shown nor a feature.
        task: Whether labels are classes or numbers; None to decide by ``classes`` or by the existing labels.
        classes: Names of the classes, in the order of their keys.
        text: Column that is the text of an item; it is read as text even if it is short.
        image: Column of paths of images, relative to the folder of the file.
        id: Column that names the items. By default a column called id is used if its values are distinct, and otherwise
            the rows are numbered.
        ignore: Columns that are neither shown nor features.
        features: A .npy file of features, ``n x D``, used instead of features made from the columns.
        embed: Name or folder of a sentence-transformers model for the text, used instead of TF-IDF.
    """

    target: str | None = None
    task: Task | None = None
    classes: tuple[str, ...] = ()
    text: str | None = None
    image: str | None = None
    id: str | None = None
    ignore: tuple[str, ...] = ()
    features: Path | None = None
    embed: str | None = None

    def checked(self) -> "ReadingOptions":
        """Return the same options with classes stripped and the task that follows from them.

        Raises:
            InvalidValueError: The options contradict each other, or a class cannot be one.
        """
        if self.task not in {None, "regression", "classification"}:
            raise InvalidValueError(f"task must be 'regression' or 'classification', not {self.task!r}")
        if self.target is not None and not (self.target.strip() and printable(self.target)):
            raise InvalidValueError(f"--target must be a name without control characters, not {shown(self.target)}")
        if self.features is not None and self.embed is not None:
            raise InvalidValueError(
                "--features and --embed exclude each other: features that are given are the only ones"
            )
        if not self.classes:
            return self
        if self.task == "regression":
            raise InvalidValueError("--classes and --regression exclude each other: labels are classes or numbers")
        return replace(self, task="classification", classes=checked_classes(self.classes))


def parse_classes(text: str) -> tuple[str, ...]:
    """Return the names of classes in one line of CSV.

    Args:
        text: Names separated by commas; a name that contains a comma is in double quotes.

    Raises:
        InvalidValueError: There are fewer than two or more than 200 names, they are empty or not distinct, or quotes do
            not match.

    Examples:
        >>> parse_classes('"red, dark", blue')
        ('red, dark', 'blue')
    """
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise InvalidValueError(f"--classes {shown(text)} cannot be read: {error}; {_HOW_TO_WRITE_CLASSES}") from None
    if len(lines) > 1:
        raise InvalidValueError(f"--classes must be one line, not {len(lines)}; {_HOW_TO_WRITE_CLASSES}")
    return checked_classes(lines[0] if lines else [])


def checked_classes(names: Sequence[str]) -> tuple[str, ...]:
    """Return names of classes without spaces around them.

    Raises:
        InvalidValueError: There are fewer than two or more than 200 names, or they are empty, too long or not distinct.
    """
    classes = tuple(name.strip() for name in names)
    for k, name in enumerate(classes):
        if not name:
            raise InvalidValueError(f"--classes: name {k + 1} of {len(classes)} is empty; {_HOW_TO_WRITE_CLASSES}")
        if len(name) > LONGEST_CLASS or not printable(name):
            need = f"at most {LONGEST_CLASS} characters, none of them a control character"
            raise InvalidValueError(f"--classes: the name of a class must be {need}, not {shown(name)}")
    if len(classes) < 2:
        came = f"there is only {shown(classes[0])}" if classes else "there is none"
        raise InvalidValueError(f"--classes: at least two classes are required, and {came}; {_HOW_TO_WRITE_CLASSES}")
    if len(classes) > MOST_CLASSES:
        remedy = "put some together, or label in two rounds"
        raise InvalidValueError(f"--classes: at most {MOST_CLASSES} classes are possible, not {len(classes)}; {remedy}")
    twice = next((name for k, name in enumerate(classes) if name in classes[:k]), None)
    if twice is not None:
        raise InvalidValueError(f"--classes: {shown(twice)} is there twice, and classes must be distinct; take one out")
    return classes


_HOW_TO_GIVE_TASK: Final = "give the classes as --classes a,b,c, or --regression if labels are numbers"


class Labelling(NamedTuple):
    """The task, its classes, and the labels in the table by position."""

    task: Task
    classes: tuple[str, ...]
    labels: dict[int, Label]
    notes: tuple[str, ...] = ()


class TargetColumn(NamedTuple):
    """The column of labels: its name, its cells as text, its values as read, and the position of a row in the file."""

    name: str
    cells: Sequence[str]
    column: Column
    place: Callable[[int], str]


def no_labels(request: ReadingOptions) -> Labelling:
    """Return the task if nothing is labelled yet.

    Raises:
        InvalidValueError: The options do not say what the labels are.
    """
    if request.task == "regression":
        return Labelling("regression", (), {})
    if not request.classes:
        column = "" if request.target else "; if a column holds labels already, name it with --target"
        raise InvalidValueError(
            f"there is no label yet, so it is not known what labels are; {_HOW_TO_GIVE_TASK}{column}"
        )
    return Labelling("classification", request.classes, {})


def read_labels(target: TargetColumn, request: ReadingOptions) -> Labelling:
    """Read the labels in the table; items with an empty cell or NA are unlabelled.

    Raises:
        InvalidValueError: A label is not one of the classes or not a number, or the labels do not determine the task.
    """
    if request.classes:
        return Labelling("classification", request.classes, _given_class_labels(target, request.classes))
    rows = np.flatnonzero([cell.strip() not in MISSING for cell in target.cells])
    if request.task == "regression":
        return Labelling("regression", (), _number_labels(target, rows.tolist()))
    if not len(rows):
        return no_labels(request)
    found = target.column[rows]
    if isinstance(found, Texts):
        return _word_labels(target, rows.tolist(), found)
    numbers = _number_labels(target, rows.tolist())
    values = np.unique(found)
    if request.task is None and len(values) > 1 and not are_classes(values):
        return Labelling("regression", (), numbers)
    classes = _found_classes(target, tuple(map(number_name, values.tolist())))
    note = (
        f"column {target.name!r}: {len(values)} distinct numbers, taken as classes; --regression takes them as numbers"
    )
    labels: dict[int, Label] = {row: number_name(float(number)) for row, number in numbers.items()}
    return Labelling("classification", classes, labels, (note,) if request.task is None else ())


def _given_class_labels(target: TargetColumn, classes: tuple[str, ...]) -> dict[int, Label]:
    # A class may be called None or NA, so classes take precedence over missing values. 1.0 is the class 1.
    known: dict[str, str | None] = {**dict.fromkeys(MISSING), **{name: name for name in classes}}
    numbers = {number: name for name in reversed(classes) if (number := as_number(name)) is not None}
    labels: dict[int, Label] = {}
    for row, cell in enumerate(target.cells):
        text = cell.strip()
        if text not in known:
            number = as_number(text)
            if number not in numbers:
                some = ", ".join(map(short, classes[:20])) + (", ..." if len(classes) > 20 else "")
                came = f"the label {short(text)} in column {target.name!r} is none of the classes {some}"
                remedy = "correct it, leave it empty, or add it to --classes"
                raise InvalidValueError(f"{target.place(row)}: {came}; {remedy}")
            known[text] = numbers[number]
        label = known[text]
        if label is not None:
            labels[row] = label
    return labels


def _number_labels(target: TargetColumn, rows: Sequence[int]) -> dict[int, Label]:
    labels: dict[int, Label] = {}
    for row in rows:
        cell = target.cells[row]
        # Use the number that was read if there is one, because the reader knows about decimal commas.
        number = as_number(cell) if isinstance(target.column, Texts) else float(target.column[row])
        if number is None or not math.isfinite(number):
            came = f"the label {short(cell.strip())} in column {target.name!r} is not a finite number"
            remedy = "correct it, leave it empty, or give --classes if labels are classes"
            raise InvalidValueError(f"{target.place(row)}: {came}; {remedy}")
        labels[row] = number
    return labels


def _word_labels(target: TargetColumn, rows: Sequence[int], found: Texts) -> Labelling:
    labels: dict[int, Label] = {row: target.cells[row].strip() for row in rows}
    names = tuple(sorted({str(label) for label in labels.values()}))
    n, distinct = len(rows), len(names)
    if distinct > 10 and distinct >= 0.9 * n:

        def place(row: int) -> str:
            return target.place(rows[row])

        came = f"{distinct} different values in {counted(n, 'label')}, and not all are numbers"
        raise InvalidValueError(
            f"column {target.name!r} has {came} ({not_a_number(found, place)}): this looks like an identifier or free "
            f"text, not like classes. Name another column with --target, or {_HOW_TO_GIVE_TASK}"
        )
    classes = _found_classes(target, names)
    return Labelling("classification", classes, labels, tuple(alike_notes(classes)))


def _found_classes(target: TargetColumn, names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) < 2:
        came = f"column {target.name!r} has the label {short(names[0])} only, and there must be two at least"
        raise InvalidValueError(f"{came}; {_HOW_TO_GIVE_TASK}")
    try:
        return checked_classes(names)
    except InvalidValueError as error:
        raise InvalidValueError(f"the labels in column {target.name!r} cannot be classes. {error}") from None


# Tabs and line ends are kept. Other control characters break terminals, PostgreSQL rejects NUL, and UTF-8 surrogates.
_UNSAFE_CHARACTER: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_UNSAFE_ASCII: Final = bytes(k for k in range(128) if _UNSAFE_CHARACTER.match(chr(k)))
_REPLACEMENT_CHARACTER: Final = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    r"""Return a text with control characters and surrogates replaced.

    Characters 128 to 159 occur when text in Windows-1252 was read as Latin-1; they become the characters of
    Windows-1252.

    Examples:
        >>> clean("a\x00b"), clean("\x93quoted\x94"), clean("two\nlines")
        ('a\ufffdb', '\u201cquoted\u201d', 'two\nlines')
    """
    return _UNSAFE_CHARACTER.sub(_replacement, text)


def clean_cells(cells: TableCells) -> TableCells:
    """Return cells that are clean; the same object if all of them are."""
    return cells.changed(_clean_column)


def _clean_column(cells: list[str]) -> list[str]:
    # Many cells are searched at once, because such characters are rare.
    parts = (cells[start : start + _SEARCHED] for start in range(0, len(cells), _SEARCHED))
    return [*map(clean, cells)] if any(_has_unsafe("".join(part)) for part in parts) else cells


def _has_unsafe(text: str) -> bool:
    # The regular expression takes four times as long.
    if text.isascii():
        return contains_bytes([text], _UNSAFE_ASCII)
    return _UNSAFE_CHARACTER.search(text) is not None


def _replacement(found: re.Match[str]) -> str:
    code = ord(found[0])
    return bytes([code]).decode("cp1252", "replace") if 0x80 <= code < 0xA0 else _REPLACEMENT_CHARACTER


# Cells that are searched at once.
_SEARCHED: Final = 10_000


class TableSource(NamedTuple):
    """A table and the roles of its columns; target, image and text are names of columns or None.

    ``cleaned`` says whether a cell had characters that were replaced.
    """

    path: Path
    file: TableColumns
    rows: TableCells
    ids: Sequence[str]
    target: str | None
    image: str | None
    text: str | None
    shown: tuple[str, ...]
    notes: tuple[str, ...]
    cleaned: bool

    def cells(self, name: str) -> list[str]:
        """Return the cells of one column."""
        return self.rows.column(self.file.names.index(name))

    @property
    def shown_as(self) -> Shown:
        """How an item is shown."""
        return "image" if self.image else "text" if self.text else "table"

    def shown_cells(self) -> tuple[TableCells, Path | None]:
        """The cells that are shown of each item, and the folder of the images."""
        cells = self.rows.selected([self.file.names.index(name) for name in self.shown])
        if self.image is None:
            return cells, None
        root = self.path.absolute().parent.resolve()
        columns = {name: cells.column(k) for k, name in enumerate(self.shown)}
        columns[self.image] = image_paths(root, columns[self.image], self.file.place)
        return CellColumns([*columns.values()]), root

    def items(self, X: Floats, task: Task, classes: tuple[str, ...]) -> Items:
        """The rows as items without labels.

        Args:
            X: Features.
            task: Whether labels are classes or numbers.
            classes: The classes; empty for numbers.
        """
        cells, root = self.shown_cells()
        return Items(
            shown=self.shown_as,
            ids=self.ids,
            columns=self.shown,
            cells=cells,
            main=self.image or self.text,
            X=X,
            task=task,
            classes=classes,
            labels={},
            notes=self.notes,
            root=root,
            reading={"text": self.text, "embed": None, "id": None, "features": True},
        )


def table_items(
    path: Path,
    request: ReadingOptions,
    table: TableColumns | None = None,
    progress: ItemProgress = no_progress,
    *,
    later: bool = False,
) -> Items:
    """Make every row of a table an item. If ``table`` is given, no file is read, and ``path`` is its name.

    With ``later``, the features of many rows are not computed, if they can be computed from the cells.

    Raises:
        InvalidValueError: The file is not a table, or cannot be used with these options; the message gives a remedy.
        MissingExtraError: A package is required that is not installed.
        SufficeError: The model for ``embed`` cannot be loaded.
    """
    source = _table_source(path, request, table, progress)
    n = len(source.ids)
    labelling = _labelling(source, request)
    cells, root = source.shown_cells()
    given = request.features
    hints = (*_label_hints(source, request), *_text_hints(source), *_repeated_hints(source, request, cells))
    if later and given is None and request.embed is None:
        # Paths of images are not the cells of the file.
        known = source.file.of_cells and not source.cleaned and source.image is None
        image = None if source.image is None or root is None else ImageColumn(source.image, root)
        deferred = deferred_features(_feature_columns(source, cells), cells, request.text, known=known, image=image)
        if deferred is not None:
            items = source.items(np.empty((n, 0)), labelling.task, labelling.classes)
            notes = (*source.notes, *hints, *labelling.notes)
            return replace(items, labels=labelling.labels, notes=notes, deferred=deferred)
    # This import takes a tenth of a second.
    from suffice.models.capacity import most_components

    progress("computing features", 0, 0)
    most = most_components(len(labelling.classes), n) if labelling.task == "classification" else None
    told = partial(progress, "computing features")
    made = _features_of_columns(source, request, cells, most, told) if given is None else given_features(given, n)
    notes = (*source.notes, *hints, *_image_hints(source), *labelling.notes, *made.notes)
    if not made.names:
        remedy = "name a column of text with --text, or give features with --features FILE.npy"
        raise InvalidValueError(f"{path}: the model can use no column; {'; '.join([*notes[:10], remedy])}")
    return Items(
        shown=source.shown_as,
        ids=source.ids,
        columns=source.shown,
        cells=cells,
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


def read_source(data: Any, request: ReadingOptions, progress: ItemProgress = no_progress) -> TableSource:
    """Read a table, without features.

    Args:
        data: Path of a table, or a table in memory.
        request: How to read it.
        progress: Receives the present activity.

    Raises:
        InvalidValueError: The file is not a table, or cannot be used with these options; the message gives a remedy.
    """
    checked = request.checked()
    progress("reading the items", 0, 0)
    if is_path(data):
        if os.path.isdir(data):
            raise InvalidValueError(f"{data} is a folder; name a file with a table")
        return _table_source(Path(data), checked, None, progress)
    return _table_source(Path("the data"), checked, table_columns(data), progress)


def _label_hints(source: TableSource, request: ReadingOptions) -> list[str]:
    """Notes about columns that look like labels and are not named as such."""
    use = "used as a feature" if request.features is None else "shown"
    like = [*filter(is_like_label, source.shown)] if request.target is None else []
    return [f"column {name!r} is {use}; give --target {name} if it holds labels" for name in like]


def _text_hints(source: TableSource) -> list[str]:
    """A note if several columns are texts, and none of them is the text to read."""
    if source.text is not None or source.image is not None:
        return []
    _, texts = text_column({name: source.file[name] for name in source.shown})
    if len(texts) < 2:
        return []
    some = ", ".join(map(repr, texts[:5])) + ", ..." * (len(texts) > 5)
    return [f"{len(texts)} columns are texts ({some}); name the one to read with --text"]


def _repeated_hints(source: TableSource, request: ReadingOptions, cells: TableCells) -> list[str]:
    """A note if rows are identical in all columns from which features are computed."""
    if request.features is not None:
        return []
    read = [
        k
        for k, name in enumerate(source.shown)
        if name in (source.image, request.text) or column_type(name, source.file[name], source.file.place).kind
    ]
    rows = cells.selected(read)
    # Rows take more memory than their hashes, and most tables have no identical rows.
    if not read or len(set(map(hash, map(tuple, rows)))) == len(rows):
        return []
    repeated = len(rows) - len(set(map(tuple, rows)))
    asked = "is identical to an earlier row in all columns that the model reads; it is asked for on its own"
    if repeated > 1:
        asked = "are identical to earlier rows in all columns that the model reads; each is asked for on its own"
    return [f"{counted(repeated, 'row')} {asked}"] if repeated else []


def _image_hints(source: TableSource) -> list[str]:
    """Notes about columns of names of images, if none is shown as an image."""
    like = [] if source.image else [name for name in source.shown if is_image_column(source.file[name])]
    return [f"column {name!r} holds names of images; give --image {name} to show them" for name in like]


def _table_source(
    path: Path, request: ReadingOptions, table: TableColumns | None, progress: ItemProgress
) -> TableSource:
    if path.suffix.lower() in ENDINGS and os.path.isfile(path):
        raise InvalidValueError(
            f"{path} is one image; name the folder that holds the images, or a table of their paths"
        )
    if table is None:
        table = read_columns(path, partial(progress, "reading the items"), keep_cells=True)
    file = _with_clean_names(table, path)
    read = file.cells()
    rows = clean_cells(read)
    if len(rows) < 2:
        raise InvalidValueError(f"{path} holds {counted(len(rows), 'item')}; at least 2 are required")
    target = _target_column(file, request.target, path)
    taken = _columns_by_option(file, request, target, path)
    by, ids, notes = _item_ids(file, rows, request.id, taken)
    hidden = {target, by, *request.ignore}
    shown = tuple(name for name in file.names if name not in hidden)
    text, texts = request.text, list[str]()
    if text is None:
        text, texts = text_column({name: file[name] for name in shown if name != request.image})
    if request.embed is not None and text is None:
        came = f"{len(texts)} columns are text" if texts else "no column is text"
        raise InvalidValueError(f"--embed reads a text, and {came}; name the column with --text")
    every = (*file.notes, *first_line_notes(file), *notes)
    return TableSource(path, file, rows, ids, target, request.image, text, shown, every, rows is not read)


def _with_clean_names(file: TableColumns, path: Path) -> TableColumns:
    names = tuple(map(clean, file.names))
    if len(set(names)) < len(names):
        raise InvalidValueError(f"{path}: two columns differ in control characters of their names only; rename them")
    if not names:
        raise InvalidValueError(f"{path} has no column that can be read; {'; '.join(file.notes)}")
    return replace(file, names=names)


def _target_column(file: TableColumns, wanted: str | None, path: Path) -> str | None:
    """Return the target if it is a column; None if there is no such column."""
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
    file: TableColumns, rows: TableCells, wanted: str | None, taken: Mapping[str, str]
) -> tuple[str | None, Sequence[str], list[str]]:
    """Return the column that names the items or None, the names, and notes."""
    numbered = RowNumbers(len(rows))
    name = wanted or id_column([name for name in file.names if name not in taken])
    if name is None:
        return None, numbered, []
    ids = tuple(map(str.strip, rows.column(file.names.index(name))))
    problem = id_problem(ids, file.place)
    if not problem:
        return name, ids, []
    if wanted is not None:
        raise InvalidValueError(f"--id: column {name!r} must name each item differently, but {problem}")
    return None, numbered, [f"column {name!r} does not name the items: {problem}; they are numbered"]


def _labelling(source: TableSource, request: ReadingOptions) -> Labelling:
    if source.target is None:
        return no_labels(request)
    column = named_column(source.file, source.target, source.path)
    return read_labels(TargetColumn(source.target, source.cells(source.target), column, source.file.place), request)


def _feature_columns(source: TableSource, cells: TableCells) -> dict[str, Column]:
    """The columns that are shown, from which features are computed."""
    columns: dict[str, Column] = {name: source.file[name] for name in source.shown}
    if source.cleaned:
        # Features are computed from the stored cells, so that they can be computed again.
        texts = [(k, name) for k, (name, column) in enumerate(columns.items()) if isinstance(column, Texts)]
        columns |= {name: as_texts(cells.column(k)) for k, name in texts}
    return columns


def _features_of_columns(
    source: TableSource,
    request: ReadingOptions,
    cells: TableCells,
    components: int | None,
    progress: Callable[[int, int], None],
) -> Features:
    from suffice.tables.transformers import TableTransformer, table_features

    columns = _feature_columns(source, cells)
    special: dict[str, Any] = {}
    if source.image is not None:
        columns[source.image] = as_texts(cells.column(source.shown.index(source.image)))
        special[source.image] = image_transformer(source.path.absolute().parent, len(source.ids))
    if source.text is not None and request.embed is not None:
        special[source.text] = embedding_transformer(source.text, request.embed)
    table = TableColumns(
        names=tuple(columns),
        columns=tuple(columns.values()),
        notes=(),
        place=source.file.place,
        cells=lambda: cells,
    )
    text = None if request.embed else request.text
    transformer = TableTransformer(text=text, special=special, most_characters=READ, components=components)
    return table_features(table, transformer, progress)


def folder_items(folder: Path, request: ReadingOptions, *, later: bool = False) -> Items:
    """Make every image in a folder and its subfolders an item, in the order of their names.

    With ``later``, the features of many images are not computed.

    Raises:
        InvalidValueError: There are fewer than two, one cannot be read, or an option is about a table.
        MissingExtraError: Pillow is not installed, and no features are given.
    """
    for option in ("text", "image", "id", "ignore", "embed"):
        if getattr(request, option):
            raise InvalidValueError(f"--{option} is about a table, and {folder} is a folder of images; leave it out")
    labelling = no_labels(request)
    paths, others = found_images(folder)
    if len(paths) < 2:
        came = f"{counted(len(paths), 'image')} in {folder}"
        raise InvalidValueError(f"there {'is' if paths else 'are'} {came}; at least 2 are required, named {KINDS}")
    given = request.features
    left = [f"{counted(others, 'file')} that {'is' if others == 1 else 'are'} no image left out"] if others else []
    items = Items(
        shown="image",
        ids=tuple(paths),
        columns=("image",),
        cells=CellColumns([[*paths]]),
        main="image",
        X=np.empty((len(paths), 0)),
        task=labelling.task,
        classes=labelling.classes,
        labels=labelling.labels,
        notes=tuple(left),
        root=folder.resolve(),
    )
    if later and given is None:
        column, image = {"image": as_texts(paths)}, ImageColumn("image", folder)
        deferred = deferred_features(column, items.cells, None, known=False, image=image)
        if deferred is not None:
            return replace(items, deferred=deferred)
    made = pixel_features(folder, paths) if given is None else given_features(given, len(paths))
    if not made.names:
        raise InvalidValueError(
            f"{folder}: {made.notes[0]}; give features that tell them apart with --features FILE.npy"
        )
    return replace(items, X=made.X, notes=(*left, *made.notes), transformer=made.transformer)


def read_items(
    source: Any, request: ReadingOptions, progress: ItemProgress = no_progress, *, later: bool = False
) -> Items:
    r"""Read the items of a project.

    Args:
        source: Path of a table (CSV, Excel, JSON lines or Parquet) or of a folder of images; or a table in
            memory: a pandas or polars DataFrame, or a mapping from names of columns to values.
        request: How to read it.
        progress: Receives the present activity.
        later: Whether features of many items may be computed after the project is made; see ``deferred`` of the items.

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
        found = table_items(Path("the data"), checked, table, progress, later=later)
    elif os.path.isdir(source):
        found = folder_items(Path(source), checked, later=later)
    else:
        found = table_items(Path(source), checked, progress=progress, later=later)
    return replace(found if found.deferred is not None else prepared(found), reading=_reading(checked))


def _reading(request: ReadingOptions) -> dict[str, Any]:
    return {"text": request.text, "embed": request.embed, "id": request.id, "features": request.features is not None}
