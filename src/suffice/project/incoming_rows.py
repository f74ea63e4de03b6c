"""Rows of a file or table for a project: labels and predictions to import, rows to add, and rows to predict."""

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

import numpy as np

from suffice.errors import InvalidValueError
from suffice.files import digest_of
from suffice.numerics import Floats
from suffice.presentation.item_words import import_sentences, items_added_sentences, range_words
from suffice.presentation.project_words import some_counts
from suffice.presentation.text_format import count, is_or_are, shortened
from suffice.project.events import Draft, EventKind, Label, checked_label, shown
from suffice.project.images import found_images, image_paths
from suffice.project.item_features import given_features, project_columns
from suffice.project.items import Items
from suffice.project.prediction_columns import added_features
from suffice.project.project_interface import ReadableProject
from suffice.project.read_items import ReadingOptions, TargetColumn, clean, clean_cells, read_labels
from suffice.project.settings import Settings
from suffice.project.state import ProjectState
from suffice.project.unmatched_ids import NoMatchError, id_difference
from suffice.tables.file_reader import read_chunks, read_columns
from suffice.tables.file_writer import Cell, Column, Rows, distinct, exact, finite_cells, write_rows
from suffice.tables.table import named_column
from suffice.tables.table_cells import CellColumns, TableCells
from suffice.tables.table_columns import (
    MISSING,
    TableColumns,
    Texts,
    as_number,
    as_texts,
    is_path,
    number_name,
    table_columns,
)
from suffice.tables.table_columns import Column as ReadColumn
from suffice.tables.table_formats import Format

if TYPE_CHECKING:
    from suffice.project.item_predictor import ItemPredictor


#: What to do with a label in a file if the item has another label.
Conflicts = Literal["keep", "replace", "opinion"]
#: How the rows of a file are matched with items.
MatchBy = Literal["id", "row", "text"]
# Maximal number of examples in a report.
_EXAMPLES: Final = 5
# Rows of a file that are compared with their items, to notice shifted ids.
_COMPARED: Final = 200
# Classes that a message names.
_NAMED_CLASSES: Final = 10
# Items or rows that are read at a time.
_CHUNK: Final = 5000
_LISTS: Final = ("unmatched_examples", "conflicting_examples", "outside_range_examples", "notes")


@dataclass(frozen=True)
class ImportReport:
    """Result of an import: counts of rows.

    Attributes:
        rows: Rows of the file.
        matched_by: How rows were matched with items: by id, row or text.
        matched: Rows that belong to an item.
        labelled: Items that got their first label.
        opinions: Items that got a further opinion.
        replaced: Items whose label was corrected.
        same: Items that had this label already.
        kept: Items with another label, which was kept.
        predicted: Items that got a prediction.
        empty: Rows without a label or prediction.
        unmatched: Rows that belong to no item; ``unmatched_examples`` has the first of them.
        unknown: Labels that are not one of the classes or not numbers, each with its number of rows.
        contradictory: Items with several different labels in the file; none of these labels was used.
        in_check: Items of the open check, whose labels were not used: people label them without knowing an answer.
        conflicting: Items with another label than in the file, or with another imported prediction;
            ``conflicting_examples`` has the first of them.
        conflicts: What happens to them; for predictions always ``"replace"``.
        outside_range: Numbers outside of the plausible range of the project; they are used.
            ``outside_range_examples`` has the first of them, and ``plausible`` is the range in words.
        repeated: Whether the request was processed before, and this is the report of then.
        written: Whether the project was changed; False for a trial run, or if there was nothing to write.
        notes: Sentences about how the file was read, such as which sheet of a workbook.
    """

    rows: int
    matched_by: MatchBy
    matched: int = 0
    labelled: int = 0
    opinions: int = 0
    replaced: int = 0
    same: int = 0
    kept: int = 0
    predicted: int = 0
    empty: int = 0
    unmatched: int = 0
    unmatched_examples: tuple[str, ...] = ()
    unknown: Mapping[str, int] | None = None
    contradictory: int = 0
    in_check: int = 0
    conflicting: int = 0
    conflicting_examples: tuple[str, ...] = ()
    conflicts: Conflicts = "keep"
    outside_range: int = 0
    outside_range_examples: tuple[str, ...] = ()
    plausible: str = ""
    written: bool = False
    repeated: bool = False
    notes: tuple[str, ...] = ()

    @property
    def added(self) -> int:
        """Items that got a label, a further opinion, a correction or a prediction."""
        return self.labelled + self.opinions + self.replaced + self.predicted

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        lists = {name: list(getattr(self, name)) for name in _LISTS}
        return asdict(self) | {"unknown": dict(self.unknown or {}), **lists, "added": self.added}

    @staticmethod
    def repeated_from(saved: Mapping[str, Any]) -> "ImportReport":
        """The report of a request that was processed before, from the result of :meth:`as_dict`."""
        values: dict[str, Any] = {
            name: tuple(value) if name in _LISTS else value for name, value in saved.items() if name != "added"
        }
        return ImportReport(**(values | {"repeated": True}))

    def sentences(self, *, trial: bool = False) -> list[str]:
        """The same in words."""
        return import_sentences(self.as_dict(), trial=trial)


@dataclass(frozen=True)
class AddReport:
    """Result of adding rows: counts. Rows of items that the project has already are refused, all rows with them.

    Attributes:
        rows: Rows of the file.
        added: Rows that were added as items, or would be.
        labelled: Rows of these that have a label.
        size: Number of items of the project now.
        guaranteed: Whether the project has a guarantee, which does not cover the new items.
        outside_range: Labels that are numbers outside of the plausible range of the project; they are used.
        written: Whether the project was changed; False for a trial run.
        repeated: Whether the request was processed before, and this is the report of then.
        notes: Sentences about how the file was read, such as which sheet of a workbook.
    """

    rows: int
    added: int
    labelled: int
    size: int
    guaranteed: bool = False
    outside_range: int = 0
    written: bool = False
    repeated: bool = False
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON values, with the counts that an :class:`ImportReport` has too."""
        nothing = {"matched": 0, "unmatched": self.rows, "conflicting": 0}
        return asdict(self) | nothing | {"notes": list(self.notes)}

    @staticmethod
    def repeated_from(saved: Mapping[str, Any]) -> "AddReport":
        """The report of a request that was processed before, from the result of :meth:`as_dict`."""
        known = {each.name for each in fields(AddReport)}
        values = {name: value for name, value in saved.items() if name in known}
        return AddReport(**(values | {"notes": tuple(saved["notes"]), "repeated": True}))

    def sentences(self, *, trial: bool = False) -> list[str]:
        """The same in words."""
        sentences = items_added_sentences(
            self.added, self.size, trial=trial, guaranteed=self.guaranteed, labelled=self.labelled
        )
        if self.outside_range:
            sentences.append(f"Labels outside of the plausible range: {self.outside_range:,}. They are used.")
        return sentences


class ImportedRows(NamedTuple):
    """Rows of a file that belong to items.

    Attributes:
        values: Label or prediction of each item.
        probabilities: Probability of the prediction, for predictions that have one.
        names: Name of each item in the file: its id or text, or the number of its row.
        report: Counts of the rows so far.
    """

    values: dict[int, Label]
    probabilities: dict[int, float]
    names: dict[int, str]
    report: ImportReport


def matched_rows(  # noqa: PLR0913 - the columns of a file, all by keyword
    project: ReadableProject,
    data: Any,
    *,
    value: str,
    by: MatchBy | None = None,
    key: str | None = None,
    probability: str | None = None,
) -> ImportedRows:
    """Match the rows of a table with the items of a project.

    Args:
        project: The project.
        data: A path, a DataFrame, or a mapping from names of columns to values.
        value: Column of labels or predictions.
        by: ``"id"``, ``"row"`` or ``"text"``. By default id if ``key`` is given, or if there is a column of ids; else
            text if there is a column with the text of the items; else the order of the rows.
        key: Column of ids or of texts. By default a column called id, or that of the project's texts.
        probability: Column with the probability of each prediction. By default it is taken from the columns
            ``p(class)`` if there are such columns.

    Raises:
        InvalidValueError: The file cannot be read, a column is missing, or the rows cannot be matched.
        NoMatchError: No row has the id or the text of an item.
    """
    name = Path(data) if is_path(data) else Path("the data")
    table = read_columns(name, keep_cells=True) if is_path(data) else table_columns(data)
    column = named_column(table, value, name)
    cells, at = table.cells(), {each: k for k, each in enumerate(table.names)}
    how, where = _matching(project, table, name, by, key)
    if where is not None:
        named_column(table, where, name)
    if probability is not None:
        named_column(table, probability, name)
    keys = None if where is None else cells.column(at[where])
    found: dict[int, list[Label]] = {}
    probabilities: dict[int, float] = {}
    names: dict[int, str] = {}
    rows_of_items: dict[int, int] = {}
    empty, unknown, unmatched, matched = 0, Counter[str](), [], 0
    for row, (items, row_cells) in enumerate(zip(_items_of(project, how, keys, len(cells)), cells, strict=True)):
        if not items:
            unmatched.append(str(row + 1) if keys is None else keys[row])
            continue
        matched += 1
        names |= dict.fromkeys(items, str(row + 1) if keys is None else keys[row])
        rows_of_items |= dict.fromkeys(items, row)
        cell = row_cells[at[value]]
        label = _label(project.settings, cell, column, row)
        if label is None:
            if cell.strip() in MISSING:
                empty += 1
            else:
                unknown[cell.strip()] += 1
            continue
        share = _probability(row_cells, at, probability, label)
        for item in items:
            found.setdefault(item, []).append(label)
            if share is not None:
                probabilities[item] = share
    if unmatched and not matched:
        assert where is not None  # rows that are matched by their order belong to items
        difference = id_difference(unmatched, _names_of(project, how)).sentences(f"{how}s", where)
        raise NoMatchError(
            f"no row of {name} belongs to an item of the project, matched by {how}, so nothing was imported. "
            f"{difference} Write them as in the project, or name another column (id)"
        )
    advice = _unknown_advice(list(unknown), project.settings.classes)
    if unknown and not found:
        raise NoMatchError(
            f"no label of {name} can be used, so nothing was imported: "
            f"{some_counts(list(unknown.most_common()))}. {advice}"
        )
    values = {item: labels[0] for item, labels in found.items() if len(set(labels)) == 1}
    differs = "" if how == "text" else _different_rows(project, table, rows_of_items, names, {value, where})
    limits = project.settings
    outside = [item for item, value in values.items() if isinstance(value, float) and limits.outside_range(value)]
    report = ImportReport(
        rows=len(cells),
        matched_by=how,
        matched=matched,
        empty=empty,
        unmatched=len(unmatched),
        unmatched_examples=tuple(shown(each) for each in unmatched[:_EXAMPLES]),
        unknown=dict(unknown.most_common()),
        contradictory=len(found) - len(values),
        outside_range=len(outside),
        outside_range_examples=tuple(f"{shown(names[k])} ({_label_text(values[k])})" for k in outside[:_EXAMPLES]),
        plausible=range_words(limits.lowest, limits.highest, limits.unit) if outside else "",
        notes=(*table.notes, *([advice] if unknown else []), *([differs] if differs else [])),
    )
    return ImportedRows(values, probabilities, names, report)


def _different_rows(
    project: ReadableProject,
    table: TableColumns,
    rows: Mapping[int, int],
    names: Mapping[int, str],
    without: Container[str | None],
) -> str:
    """A sentence if most rows differ from their items in a column that both have; then the ids may be shifted.

    Args:
        project: The project.
        table: The table of the file.
        rows: The row of each item.
        names: Name of each item in the file.
        without: Columns that are not compared.
    """
    own, cells = project.settings.columns, table.cells()
    for at, column in enumerate(table.names):
        if column not in own or column in without:
            continue
        there, here = cells.column(at), own.index(column) + 1
        # A cell that is left empty says nothing.
        items = [item for item, row in islice(rows.items(), _COMPARED) if clean(there[row])]
        texts = (each[here] for each in project.rows(items))
        other = [item for item, text in zip(items, texts, strict=True) if not _same_cell(there[rows[item]], text)]
        if len(other) > max(1, len(items) // 2):
            return (
                f"{len(other):,} of {len(items):,} compared rows differ from their items in column {shown(column)}, "
                f"such as {shown(names[other[0]])}; check that the ids are those of this project"
            )
    return ""


def _same_cell(one: str, other: str) -> bool:
    """Whether two cells hold the same text or number."""
    if clean(one) in _variants(clean(other)) or clean(other) in _variants(clean(one)):
        return True
    number = as_number(one)
    return number is not None and number == as_number(other)


def _unknown_advice(unknown: Sequence[str], classes: Sequence[str]) -> str:
    """How labels that are not classes should be written; numbers in a project of numbers."""
    if not classes:
        return "Write numbers, with a point"
    like = {name.casefold(): name for name in classes}
    near = next((label for label in unknown if label.casefold() in like), None)
    if near is not None:
        pair = f"The label {shown(near)} differs from the class {shown(like[near.casefold()])}"
        return f"{pair} in upper and lower case only; write labels as the classes"
    others = " and others" if len(classes) > _NAMED_CLASSES else ""
    return f"The classes are {', '.join(map(shown, classes[:_NAMED_CLASSES]))}{others}"


def _matching(
    project: ReadableProject, table: TableColumns, path: Path, by: MatchBy | None, key: str | None
) -> tuple[MatchBy, str | None]:
    """How rows are matched, and the column of ids or texts; None for the order of the rows."""
    if by is not None and by not in get_args(MatchBy):
        raise InvalidValueError(f"by must be id, row or text, not {by!r}")
    text, names, rows = project.settings.main, table.names, len(table)
    ids = key or next((name for name in names if name.lower() == "id"), None)
    if by is None:
        by = "id" if ids is not None else "text" if text in names else "row"
    if by == "id" and ids is None:
        raise InvalidValueError(f"{path} has no column called id; name the column of ids")
    if by == "text" and key is None and text is None:
        raise InvalidValueError("the items of the project are not texts; name the column to match by, or match by id")
    if by == "row" and rows != project.size:
        raise InvalidValueError(
            f"{path} has {rows:,} rows and the project {project.size:,} items, so rows cannot be matched by their "
            "order; name the column of ids"
        )
    return by, None if by == "row" else ids if by == "id" else key or text


def _items_of(project: ReadableProject, by: MatchBy, keys: Sequence[str] | None, rows: int) -> Iterator[Sequence[int]]:
    """The items of each row of a file: at most one if matched by id or row, all items with the text if by text."""
    if keys is None:
        yield from ((item,) for item in range(rows))
        return
    wanted, known = {variant for key in keys for variant in _variants(clean(key))}, dict[str, list[int]]()
    for item, name in enumerate(_names_of(project, by)):
        if name in wanted:
            known.setdefault(name, []).append(item)
    for key in keys:
        yield next((known[variant] for variant in _variants(clean(key)) if variant in known), ())


def _names_of(project: ReadableProject, by: MatchBy) -> Iterator[str]:
    """The id or the text of each item."""
    column = None if by == "id" else project.settings.columns.index(_text_column(project))
    for start in range(0, project.size, _CHUNK):
        for cells in project.rows(range(start, min(project.size, start + _CHUNK))):
            yield cells[0] if column is None else cells[1 + column].strip()


def _text_column(project: ReadableProject) -> str:
    main = project.settings.main
    if main is None:
        raise InvalidValueError("the items of the project are not texts; match by id")
    return main


def _variants(key: str) -> tuple[str, ...]:
    """A key, also without the apostrophe that an exported CSV has before texts that look like formulas."""
    text = key.strip()
    return text, exact(text)


def _label(settings: Settings, cell: str, column: ReadColumn, row: int) -> Label | None:
    """The label of a cell, or None if it is missing or cannot be used."""
    text = cell.strip()
    if settings.task == "regression":
        number = as_number(text) if isinstance(column, Texts) else float(column[row])
        try:
            return None if number is None or math.isnan(number) else checked_label(settings, number)
        except InvalidValueError:
            return None
    number = as_number(text)
    for name in settings.classes:
        if name in _variants(text) or (number is not None and as_number(name) == number):
            return name
    return None


def _probability(cells: Sequence[str], at: Mapping[str, int], column: str | None, label: Label) -> float | None:
    name = column if column is not None else f"p({label})"
    number = as_number(cells[at[name]]) if name in at else None
    return number if number is not None and 0.0 <= number <= 1.0 else None


def label_drafts(
    state: ProjectState, rows: ImportedRows, person: str, conflicts: Conflicts
) -> tuple[list[Draft], ImportReport]:
    """The events that import labels, and a report of the rows.

    Args:
        state: The state of the project.
        rows: Labels by item.
        person: Who gives the labels.
        conflicts: What to do if an item has another label: ``"keep"`` it, ``"replace"`` it by a correction, or
            add the new one as an ``"opinion"`` of the person.

    Raises:
        InvalidValueError: ``conflicts`` is something else.
    """
    if conflicts not in get_args(Conflicts):
        raise InvalidValueError(f"conflicts must be keep, replace or opinion, not {conflicts!r}")
    pending = frozenset(state.checks.pending().tolist())
    drafts, counts = [], Counter[str]()
    others: dict[int, tuple[Any, Any]] = {}
    for item, label in rows.values.items():
        before, mine = state.label_of(item), state.acts.label_by(item, person)
        if item in pending:
            counts["in_check"] += 1
            continue
        kind, counted = _fate(before, mine is not None, label, conflicts)
        counts[counted] += 1
        if before not in (None, label):
            others[item] = before, label
        if kind is not None:
            drafts.append(Draft(kind, person, item, {"label": label, "imported": True}))
    numbers: dict[str, Any] = dict(counts)
    return drafts, replace(with_conflicts(rows, others), conflicts=conflicts, **numbers)


def with_conflicts(rows: ImportedRows, others: Mapping[int, tuple[Any, Any]]) -> ImportReport:
    """The report of rows, with the items that have another label or prediction in the project.

    Args:
        rows: The rows.
        others: What the project and the file say about these items.
    """
    examples = (
        f"{shown(rows.names[item])} (project: {_label_text(before)}, file: {_label_text(label)})"
        for item, (before, label) in islice(others.items(), _EXAMPLES)
    )
    return replace(rows.report, conflicting=len(others), conflicting_examples=tuple(examples))


def _label_text(label: Label) -> str:
    return shortened(label, 60) if isinstance(label, str) else number_name(label)


def _fate(before: Label | None, given: bool, label: Label, conflicts: Conflicts) -> tuple[EventKind | None, str]:
    """The event to write for a label, and the count that it belongs to."""
    if before is None:
        return EventKind.labelled, "labelled"
    if conflicts == "opinion" and not given:
        return EventKind.labelled, "opinions"
    if before == label:
        return None, "same"
    return (EventKind.corrected, "replaced") if conflicts == "replace" else (None, "kept")


def write_predictions(  # noqa: PLR0913 - by keyword
    project: ReadableProject,
    data: Path,
    to: Path,
    format: Format = "csv",
    *,
    features: Path | None = None,
    tell: Callable[[str], None] | None = None,
) -> int:
    """Write predictions for the rows of a file, some rows at a time, and return how many.

    A row has its cells, the prediction under the name of the target, its ``uncertainty``, and for classes the
    probability of each, ``p(name)``, as :func:`suffice.project.exported_files.predictions_file` describes.

    Args:
        project: The project.
        data: A table (CSV, Excel, JSON lines or Parquet) with the project's columns, or a folder of images.
        to: The file to write.
        format: One of :data:`~suffice.tables.table_formats.FORMATS`.
        features: A .npy file with a row for each row of the data, for a project whose features were given as a file.
        tell: Called with each note about how the file was read, such as which sheet of a workbook.

    Raises:
        InvalidValueError: The data cannot be read, or a column is missing.
        SufficeError: There is no model yet, or features of new rows cannot be computed.
    """
    from suffice.project.learned_project import project_predictor

    predictor = project_predictor(project)
    tables = iter(_tables(project.settings, data))
    first = next(tables)
    if tell is not None:
        for note in first.notes:
            tell(note)
    names = distinct(first.names)
    own = [Column(project.settings.target, "text" if project.settings.classes else "number")]
    own += [Column("uncertainty", "number"), *(Column(f"p({name})", "number") for name in project.settings.classes)]
    renamed = distinct([column.name for column in own], taken=names)
    columns = [*map(Column, names), *(each._replace(name=name) for each, name in zip(own, renamed, strict=True))]
    inputs = None if features is None else _features_in(features)
    transformer: Any = None if inputs is not None else project.row_transformer()

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


def _tables(settings: Settings, data: Path) -> Iterator[TableColumns]:
    if settings.shown == "image" and os.path.isdir(data):
        paths = found_images(data)[0]
        if not paths:
            raise InvalidValueError(f"there is no image in {data}")
        for start in range(0, len(paths), _CHUNK):
            yield table_columns({settings.main: paths[start : start + _CHUNK]})
        return
    yield from read_chunks(data, _CHUNK)


def new_columns(settings: Settings, table: TableColumns, data: Path | None) -> TableColumns:
    """The columns of new rows in the form that a project's transformer requires.

    Args:
        settings: Settings of the project.
        table: The new rows.
        data: The file or folder of the rows, to which paths of images are relative; None for data in memory.
    """
    found = project_columns(settings, table, "the data" if data is None else str(data))
    cells = found.cells()
    cleaned = clean_cells(cells)
    if cleaned is not cells:
        columns = [
            column if isinstance(column, np.ndarray) else as_texts(cleaned.column(k))
            for k, column in enumerate(found.columns)
        ]
        found = replace(found, columns=tuple(columns), cells=lambda: cleaned, column_cells=None)
    if settings.shown == "image" and settings.main is not None and data is not None:
        folder = (data if os.path.isdir(data) else data.absolute().parent).resolve()
        k = found.names.index(settings.main)
        # An absolute path stays absolute when it is joined to the folder of the project's images.
        absolute = as_texts([str(folder / cell.strip()) for cell in cleaned.column(k)])
        found = replace(found, columns=(*found.columns[:k], absolute, *found.columns[k + 1 :]))
    return found


def _rows(predictor: "ItemPredictor", X: Floats, cells: TableCells) -> list[tuple[Cell, ...]]:
    found = predictor.predict(np.asarray(X, dtype=np.float64))
    shares: list[Any] = [] if found.probabilities is None else list(found.probabilities.T)
    own = zip(*map(finite_cells, (found.labels, found.uncertainty, *shares)), strict=True)
    return [(*row, *said) for row, said in zip(cells, own, strict=True)]


def rows_digest(data: Any) -> str:
    """SHA-256 digest of rows as they were received.

    Args:
        data: A path, a DataFrame, a mapping from names of columns to values, or a list of texts.
    """
    if is_path(data):
        path = Path(data)
        return _digest(sorted(found_images(path)[0])) if path.is_dir() else digest_of(path)
    if isinstance(data, Sequence) and not isinstance(data, str):
        return _digest(list(data))
    table = table_columns(data)
    return _digest([list(table.names), *(list(row) for row in table.cells())])


def _digest(values: Sequence[Any]) -> str:
    return sha256(json.dumps(values).encode()).hexdigest()


def existing_rows_error(state: ProjectState, items: Items, positions: Mapping[str, int]) -> InvalidValueError | None:
    """The error for rows of items that the project has already; None if there are none.

    Args:
        state: The state of the project.
        items: The rows.
        positions: Positions of the items of the project by name.
    """
    rows = {name: row for row, name in enumerate(items.ids) if name in positions}
    if not rows:
        return None
    others = []
    for name, row in rows.items():
        before, label = state.label_of(positions[name]), items.labels.get(row)
        if before is not None and label is not None and before != label:
            others.append(f"{shown(name)} (project: {_label_text(before)}, file: {_label_text(label)})")
    some = ", ".join(shown(name) for name in list(rows)[:_EXAMPLES])
    new, have = len(items) - len(rows), "has" if len(others) == 1 else "have"
    differ = f"; {len(others):,} of them {have} another label, such as {others[0]}" if others else ""
    return InvalidValueError(
        f"nothing was added: the project has items with the ids of {len(rows):,} of {count(len(items), 'row')} "
        f"already, such as {some}{differ}. Leave these rows out, or import their labels instead; "
        f"{count(new, 'row')} {is_or_are(new)} new"
    )


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
        SufficeError: Features of new rows cannot be computed.
    """
    settings = project.settings
    name, path, table = _table(project, data)
    found = project_columns(settings, table, name)
    cells = clean_cells(found.cells())
    if not cells:
        raise InvalidValueError(f"{name} has no rows to add")
    if settings.shown == "image" and settings.main is not None:
        k, root = settings.columns.index(settings.main), Path(settings.root)
        # Paths are stored relative to the folder of the project's images; only files in this folder are shown.
        relative = image_paths(root, [_below(root, path, cell) for cell in cells.column(k)], table.place)
        cells = CellColumns([relative if j == k else cells.column(j) for j in range(len(settings.columns))])
    if settings.checked is not None:
        X = added_features(settings, table)
    elif features is None:
        X = project.row_transformer().transform(new_columns(settings, table, path))
    else:
        X = _given(features, len(cells), project.X.shape[1])
    return name, Items(
        shown=settings.shown,
        ids=_ids(project, table, id, name),
        columns=settings.columns,
        cells=cells,
        main=settings.main,
        X=np.asarray(X, dtype=np.float64),
        task=settings.task,
        classes=settings.classes,
        labels=_labels(project, table),
        notes=table.notes,
    )


def _table(project: ReadableProject, data: Any) -> tuple[str, Path | None, TableColumns]:
    """The name of the data, its path or None, and its rows."""
    settings = project.settings
    if is_path(data):
        path = Path(data)
        if path.is_dir() and settings.shown == "image" and settings.main is not None:
            return path.name, path, table_columns({settings.main: found_images(path)[0]})
        return path.name, path, read_columns(path)
    if isinstance(data, Sequence) and not isinstance(data, str) and settings.main is not None:
        return "the data", None, table_columns({settings.main: list(data)})
    return "the data", None, table_columns(data)


def _below(root: Path, path: Path | None, cell: str) -> str:
    """The path of an image relative to the folder of the project's images."""
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
    """Names of the rows: from a column, or numbers that continue those of the project."""
    known = wanted or project.made_with.get("id")
    if wanted is not None:
        named_column(table, wanted, Path(source))
    if known not in table.names:
        known = next((name for name in table.names if name.lower() == "id"), None)
    if known is None or known in project.settings.columns:
        return tuple(str(project.size + k + 1) for k in range(len(table)))
    ids = tuple(clean(cell).strip() for cell in table.cells_of(known))
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if not name or first.setdefault(name, row) != row:
            problem = f"{shown(name)} is there twice" if name else "it is empty"
            raise InvalidValueError(
                f"{source}, {table.place(row)}: column {known!r} must name each item differently, but {problem}"
            )
    return ids


def _labels(project: ReadableProject, table: TableColumns) -> dict[int, Label]:
    """Existing labels of the rows, by row."""
    settings = project.settings
    if settings.target not in table.names or settings.target in settings.columns:
        return {}
    cells = table.cells_of(settings.target)
    target = TargetColumn(settings.target, cells, table[settings.target], table.place)
    return read_labels(target, ReadingOptions(task=settings.task, classes=settings.classes)).labels
