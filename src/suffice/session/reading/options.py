"""Options for reading items, validated before the data is read."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from suffice.errors import InvalidValueError
from suffice.session.labels import printable, shown
from suffice.session.settings import Task

_MOST_CLASSES: Final = 200
_LONGEST_CLASS: Final = 200
_HOW_TO_WRITE_CLASSES: Final = "write them as --classes a,b,c, and a name that holds a comma in double quotes"


@dataclass(frozen=True)
class ReadingOptions:
    """How to read a file or folder of items.

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
        if len(name) > _LONGEST_CLASS or not printable(name):
            need = f"at most {_LONGEST_CLASS} characters, none of them a control character"
            raise InvalidValueError(f"--classes: the name of a class must be {need}, not {shown(name)}")
    if len(classes) < 2:
        came = f"there is only {shown(classes[0])}" if classes else "there is none"
        raise InvalidValueError(f"--classes: at least two classes are required, and {came}; {_HOW_TO_WRITE_CLASSES}")
    if len(classes) > _MOST_CLASSES:
        remedy = "put some together, or label in two rounds"
        raise InvalidValueError(
            f"--classes: at most {_MOST_CLASSES} classes are possible, not {len(classes)}; {remedy}"
        )
    twice = next((name for k, name in enumerate(classes) if name in classes[:k]), None)
    if twice is not None:
        raise InvalidValueError(f"--classes: {shown(twice)} is there twice, and classes must be distinct; take one out")
    return classes
