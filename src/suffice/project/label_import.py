"""Labels and predictions from a file: which rows belong to which items, and what becomes of them."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from suffice.errors import InvalidValueError
from suffice.presentation.messages import import_sentences
from suffice.project.events import Draft, EventKind, Label, checked_label, shown
from suffice.project.project_interface import ReadableProject
from suffice.project.settings import Settings
from suffice.project.state import ProjectState
from suffice.tables.file_reader import (
    MISSING,
    Column,
    TableColumns,
    Texts,
    as_number,
    is_path,
    read_columns,
    table_columns,
)
from suffice.tables.file_writer import exact
from suffice.tables.table import named_column

#: What happens to a label of a file where the item has another label.
Conflicts = Literal["keep", "replace", "opinion"]
#: By what the rows of a file are matched with items.
MatchBy = Literal["id", "row", "text"]
# Examples that a report names.
_EXAMPLES: Final = 5
# Items whose names or texts are read at a time.
_CHUNK: Final = 5000


@dataclass(frozen=True)
class ImportReport:
    """Result of an import: counts of rows.

    Attributes:
        rows: Rows of the file.
        matched_by: By what rows were matched with items: id, row or text.
        matched: Rows that belong to an item.
        labelled: Items that got their first label.
        opinions: Items that got a further opinion.
        replaced: Items whose label was corrected.
        same: Items that had this label already.
        kept: Items with another label, which was kept.
        predicted: Items that got a prediction.
        empty: Rows without a label or prediction.
        unmatched: Rows that belong to no item, and ``unmatched_examples``: the first of them.
        unknown: Labels that are none of the classes, or no numbers, each with its number of rows.
        contradictory: Items that the file has with several labels; none of them was used.
        in_check: Items of the open check, whose labels were not used: people label them without knowing an answer.
        written: Whether the project was changed; False for a trial run, or where there was nothing to write.
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
    written: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self) | {
            "unknown": dict(self.unknown or {}),
            "unmatched_examples": list(self.unmatched_examples),
        }

    def sentences(self, *, trial: bool = False) -> list[str]:
        """The same in words."""
        return import_sentences(self.as_dict(), trial=trial)


class ImportedRows(NamedTuple):
    """Rows of a file that belong to items.

    Attributes:
        values: Label or prediction of each item.
        probabilities: Probability of the prediction, for those that have one.
        report: What became of the rows so far.
    """

    values: dict[int, Label]
    probabilities: dict[int, float]
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
    """
    name = Path(data) if is_path(data) else Path("the data")
    table = read_columns(name) if is_path(data) else table_columns(data)
    column = named_column(table, value, name)
    cells, at = table.cells(), {each: k for k, each in enumerate(table.names)}
    how, where = _matching(project, table, name, by, key)
    if where is not None:
        named_column(table, where, name)
    if probability is not None:
        named_column(table, probability, name)
    keys = None if where is None else [row[at[where]] for row in cells]
    found: dict[int, list[Label]] = {}
    probabilities: dict[int, float] = {}
    empty, unknown, unmatched, matched = 0, Counter[str](), [], 0
    for row, items in enumerate(_items_of(project, how, keys, len(cells))):
        if not items:
            unmatched.append(str(row + 1) if keys is None else keys[row])
            continue
        matched += 1
        cell = cells[row][at[value]]
        label = _label(project.settings, cell, column, row)
        if label is None:
            if cell.strip() in MISSING:
                empty += 1
            else:
                unknown[cell.strip()] += 1
            continue
        share = _probability(cells[row], at, probability, label)
        for item in items:
            found.setdefault(item, []).append(label)
            if share is not None:
                probabilities[item] = share
    values = {item: labels[0] for item, labels in found.items() if len(set(labels)) == 1}
    report = ImportReport(
        rows=len(cells),
        matched_by=how,
        matched=matched,
        empty=empty,
        unmatched=len(unmatched),
        unmatched_examples=tuple(shown(each) for each in unmatched[:_EXAMPLES]),
        unknown=dict(unknown.most_common()),
        contradictory=len(found) - len(values),
    )
    return ImportedRows(values, probabilities, report)


def _matching(
    project: ReadableProject, table: TableColumns, path: Path, by: MatchBy | None, key: str | None
) -> tuple[MatchBy, str | None]:
    """By what rows are matched, and the column that has it; None for the order of the rows."""
    if by is not None and by not in get_args(MatchBy):
        raise InvalidValueError(f"by must be id, row or text, not {by!r}")
    text, names, rows = project.settings.main, table.names, len(table)
    ids = key or next((name for name in names if name.lower() == "id"), None)
    if by is None:
        by = "id" if ids is not None else "text" if text in names else "row"
    if by == "id" and ids is None:
        raise InvalidValueError(f"{path} has no column called id; name the column of ids")
    if by == "text" and key is None and text is None:
        raise InvalidValueError("the items of the project are no texts; name the column to match by, or match by id")
    if by == "row" and rows != project.size:
        raise InvalidValueError(
            f"{path} has {rows:,} rows and the project {project.size:,} items, so rows cannot be matched by their "
            "order; name the column of ids"
        )
    return by, None if by == "row" else ids if by == "id" else key or text


def _items_of(project: ReadableProject, by: MatchBy, keys: Sequence[str] | None, rows: int) -> Iterator[Sequence[int]]:
    """The items of each row of a file: one at most by id or row, and all that have the same text by text."""
    if keys is None:
        yield from ((item,) for item in range(rows))
        return
    from suffice.project.read_items import clean

    wanted, known = {variant for key in keys for variant in _variants(clean(key))}, dict[str, list[int]]()
    column = None if by == "id" else project.settings.columns.index(_text_column(project))
    for start in range(0, project.size, _CHUNK):
        part = range(start, min(project.size, start + _CHUNK))
        for item, cells in zip(part, project.rows(part), strict=True):
            name = cells[0] if column is None else cells[1 + column].strip()
            if name in wanted:
                known.setdefault(name, []).append(item)
    for key in keys:
        yield next((known[variant] for variant in _variants(clean(key)) if variant in known), ())


def _text_column(project: ReadableProject) -> str:
    main = project.settings.main
    if main is None:
        raise InvalidValueError("the items of the project are no texts; match by id")
    return main


def _variants(key: str) -> tuple[str, ...]:
    """A key, and what it is without the apostrophe that an exported CSV has before texts like formulas."""
    text = key.strip()
    return text, exact(text)


def _label(settings: Settings, cell: str, column: Column, row: int) -> Label | None:
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
    """The events that import labels, and what became of the rows.

    Args:
        state: The state of the project.
        rows: Labels by item.
        person: Who gives the labels.
        conflicts: What happens where an item has another label: ``"keep"`` it, ``"replace"`` it by a correction, or
            add the new one as an ``"opinion"`` of the person.

    Raises:
        InvalidValueError: ``conflicts`` is something else.
    """
    if conflicts not in get_args(Conflicts):
        raise InvalidValueError(f"conflicts must be keep, replace or opinion, not {conflicts!r}")
    pending = frozenset(state.pending().tolist())
    drafts, counts = [], Counter[str]()
    for item, label in rows.values.items():
        before, mine = state.label_of(item), state.act_of(item, person)
        if item in pending:
            counts["in_check"] += 1
            continue
        kind, counted = _fate(before, mine is not None, label, conflicts)
        counts[counted] += 1
        if kind is not None:
            drafts.append(Draft(kind, person, item, {"label": label, "imported": True}))
    return drafts, ImportReport(**(_fields(rows.report) | dict(counts)))


def _fate(before: Label | None, given: bool, label: Label, conflicts: Conflicts) -> tuple[EventKind | None, str]:
    """The event to write for a label, and the count that it belongs to."""
    if before is None:
        return EventKind.labelled, "labelled"
    if conflicts == "opinion" and not given:
        return EventKind.labelled, "opinions"
    if before == label:
        return None, "same"
    return (EventKind.corrected, "replaced") if conflicts == "replace" else (None, "kept")


def _fields(report: ImportReport) -> dict[str, Any]:
    return dict(report.__dict__)
