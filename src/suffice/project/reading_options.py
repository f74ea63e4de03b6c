"""Options for reading items, and labels that the data already contain."""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from suffice.errors import InvalidValueError
from suffice.project.class_change import LONGEST_CLASS, MOST_CLASSES
from suffice.project.events import Label, printable, shown
from suffice.project.settings import Task
from suffice.tables.column_features import counted, not_a_number, short
from suffice.tables.file_reader import MISSING, Column, Texts, as_number, number_name
from suffice.tables.table import are_classes

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
    return Labelling("classification", _found_classes(target, names), labels)


def _found_classes(target: TargetColumn, names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) < 2:
        came = f"column {target.name!r} has the label {short(names[0])} only, and there must be two at least"
        raise InvalidValueError(f"{came}; {_HOW_TO_GIVE_TASK}")
    try:
        return checked_classes(names)
    except InvalidValueError as error:
        raise InvalidValueError(f"the labels in column {target.name!r} cannot be classes. {error}") from None
