"""Labels in the table, and the task that follows from them."""

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from suffice.data.features import counted, not_a_number, short
from suffice.data.reading import MISSING, Column, Texts, as_number, number_name
from suffice.data.table import are_classes
from suffice.errors import InvalidValueError
from suffice.session.events import Label
from suffice.session.reading.options import ReadingOptions, checked_classes
from suffice.session.settings import Task

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
    return Labelling("classification", _found_classes(target, names), labels)


def _found_classes(target: TargetColumn, names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) < 2:
        came = f"column {target.name!r} has the label {short(names[0])} only, and there must be two at least"
        raise InvalidValueError(f"{came}; {_HOW_TO_GIVE_TASK}")
    try:
        return checked_classes(names)
    except InvalidValueError as error:
        raise InvalidValueError(f"the labels in column {target.name!r} cannot be classes. {error}") from None
