"""Labels that are there already, and what they say about the task."""

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from suffice.data.features import counted, not_a_number, short
from suffice.data.reading import MISSING, Column, Texts, as_number
from suffice.data.table import are_classes, class_name
from suffice.errors import InvalidValueError
from suffice.session.events import Label
from suffice.session.reading.options import ReadingOptions, checked_classes
from suffice.session.settings import Task

_ASK: Final = "give the classes as --classes a,b,c, or --regression if labels are numbers"


class Labelling(NamedTuple):
    """What is to be labelled how, and what is labelled already."""

    task: Task
    classes: tuple[str, ...]
    labels: dict[int, Label]
    notes: tuple[str, ...] = ()


class TargetColumn(NamedTuple):
    """The column of labels that are there already: its name, its cells as text, the same as it was read, and lines."""

    name: str
    cells: Sequence[str]
    column: Column
    place: Callable[[int], str]


def no_labels(request: ReadingOptions) -> Labelling:
    """Return the task where nothing is labelled yet.

    Raises:
        InvalidValueError: Nobody said what the labels are.
    """
    if request.task == "regression":
        return Labelling("regression", (), {})
    if not request.classes:
        column = "" if request.target else "; if a column holds labels already, name it with --target"
        raise InvalidValueError(f"there is no label yet, so it is not known what labels are; {_ASK}{column}")
    return Labelling("classification", request.classes, {})


def read_labels(target: TargetColumn, request: ReadingOptions) -> Labelling:
    """Read the labels that are there already; empty cells and NA are items to label.

    Raises:
        InvalidValueError: A label is none of the classes or no number, or the labels do not tell which they are.
    """
    if request.classes:
        return Labelling("classification", request.classes, _among(target, request.classes))
    rows = np.flatnonzero([cell.strip() not in MISSING for cell in target.cells])
    if request.task == "regression":
        return Labelling("regression", (), _numbers(target, rows.tolist()))
    if not len(rows):
        return no_labels(request)
    found = target.column[rows]
    if isinstance(found, Texts):
        return _words(target, rows.tolist(), found)
    numbers = _numbers(target, rows.tolist())
    values = np.unique(found)
    if request.task is None and len(values) > 1 and not are_classes(values):
        return Labelling("regression", (), numbers)
    classes = _found_classes(target, tuple(map(class_name, values.tolist())))
    note = (
        f"column {target.name!r}: {len(values)} distinct numbers, taken as classes; --regression takes them as numbers"
    )
    labels: dict[int, Label] = {row: class_name(float(number)) for row, number in numbers.items()}
    return Labelling("classification", classes, labels, (note,) if request.task is None else ())


def _among(target: TargetColumn, classes: tuple[str, ...]) -> dict[int, Label]:
    # A class may be called None or NA, so the classes come before what is missing; and 1.0 is the class 1.
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


def _numbers(target: TargetColumn, rows: Sequence[int]) -> dict[int, Label]:
    labels: dict[int, Label] = {}
    for row in rows:
        cell = target.cells[row]
        # As it was read where that worked, because there a decimal comma is known.
        number = as_number(cell) if isinstance(target.column, Texts) else float(target.column[row])
        if number is None or not math.isfinite(number):
            came = f"the label {short(cell.strip())} in column {target.name!r} is not a finite number"
            remedy = "correct it, leave it empty, or give --classes if labels are classes"
            raise InvalidValueError(f"{target.place(row)}: {came}; {remedy}")
        labels[row] = number
    return labels


def _words(target: TargetColumn, rows: Sequence[int], found: Texts) -> Labelling:
    labels: dict[int, Label] = {row: target.cells[row].strip() for row in rows}
    names = tuple(sorted({str(label) for label in labels.values()}))
    n, distinct = len(rows), len(names)
    if distinct > 10 and distinct >= 0.9 * n:

        def place(row: int) -> str:
            return target.place(rows[row])

        came = f"{distinct} different values in {counted(n, 'label')}, and not all are numbers"
        raise InvalidValueError(
            f"column {target.name!r} has {came} ({not_a_number(found, place)}): this looks like an identifier or free "
            f"text, not like classes. Name another column with --target, or {_ASK}"
        )
    return Labelling("classification", _found_classes(target, names), labels)


def _found_classes(target: TargetColumn, names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) < 2:
        came = f"column {target.name!r} has the label {short(names[0])} only, and there must be two at least"
        raise InvalidValueError(f"{came}; {_ASK}")
    try:
        return checked_classes(names)
    except InvalidValueError as error:
        raise InvalidValueError(f"the labels in column {target.name!r} cannot be classes. {error}") from None
