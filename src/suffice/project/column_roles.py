"""The role of each column of a table in a new project, guessed from its name and its values, with the reason."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from suffice.presentation.text_format import number
from suffice.project.images import ENDINGS
from suffice.tables.column_features import ColumnKind, column_type, is_text, short
from suffice.tables.table_cells import TableCells
from suffice.tables.table_columns import Column, TableColumns, Texts

#: What a column is used for: the text to read, the path of an image, the name of an item, existing labels, other
#: information that is shown and learned from, or nothing.
Role = Literal["text", "image", "id", "label", "feature", "ignored"]

_LIKE_LABELS: Final = frozenset({"label", "target", "class"})
_LIKE_IDS: Final = frozenset({"id", "no", "nr", "number", "key"})
_LONGEST_ID: Final = 500
# Distinct values that an explanation names.
_MOST_NAMED: Final = 3
_KINDS: Final[Mapping[ColumnKind, str]] = {
    "date": "dates",
    "boolean": "yes and no, or true and false",
    "text": "texts",
}


@dataclass(frozen=True)
class ColumnLabels:
    """What the labels of a project are if a column holds them.

    Attributes:
        classes: The classes in the column; empty for numbers.
        count: Number of rows with a label.
        problem: Why the column cannot hold the labels; empty if it can.
    """

    classes: tuple[str, ...] = ()
    count: int = 0
    problem: str = ""


@dataclass(frozen=True)
class ColumnGuess:
    """The guessed role of a column.

    Attributes:
        name: Name of the column.
        role: Its role.
        reason: One sentence that explains the guess.
        labels: What the labels are if the column holds them.
    """

    name: str
    role: Role
    reason: str
    labels: ColumnLabels


def is_like_label(name: str) -> bool:
    """Whether a column has a name that is usual for labels.

    Examples:
        >>> is_like_label("Label"), is_like_label("price")
        (True, False)
    """
    return name.lower() in _LIKE_LABELS


def id_column(names: Sequence[str]) -> str | None:
    """Name of the column that is called id, or None.

    Examples:
        >>> id_column(["text", "ID"])
        'ID'
    """
    return next((name for name in names if name.lower() == "id"), None)


def is_like_id(name: str) -> bool:
    """Whether the last word of the name of a column is usual for what names an item.

    Examples:
        >>> [name for name in ("mail_no", "Mail no", "orderId", "paid", "rooms") if is_like_id(name)]
        ['mail_no', 'Mail no', 'orderId']
    """
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    return bool(words) and words[-1].lower() in _LIKE_IDS and not name[-1].isdigit()


def id_problem(ids: Sequence[str], place: Callable[[int], str]) -> str:
    """Why cells cannot name the items; empty if they can.

    Args:
        ids: The cells without spaces around them.
        place: Position of a row in the file, for the message.
    """
    if len(set(ids)) == len(ids) and min(map(len, ids)) > 0 and max(map(len, ids)) <= _LONGEST_ID:
        return ""
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        if not name or len(name) > _LONGEST_ID:
            return f"{place(row)} has {f'more than {_LONGEST_ID} characters' if name else 'none'}"
        if first.setdefault(name, row) != row:
            return f"{short(name)} is in {place(first[name])} and in {place(row)}"
    return ""


def text_column(columns: Mapping[str, Column]) -> tuple[str | None, list[str]]:
    """The column that is the text of an item, if there is exactly one text; and all columns that are texts."""
    texts = [name for name, column in columns.items() if is_text(column)]
    return (texts[0] if len(texts) == 1 else None), texts


def is_image_column(column: Column) -> bool:
    """Whether all values of a column are names of image files.

    Examples:
        >>> from suffice.tables.table_columns import as_texts
        >>> is_image_column(as_texts(["cats/1.JPG", "2.png"])), is_image_column(as_texts(["a.png", ""]))
        (True, False)
    """
    if not isinstance(column, Texts) or not column.levels or (column.codes < 0).any():
        return False
    return all(level.strip().lower().endswith(ENDINGS) for level in column.levels)


def guessed_columns(
    table: TableColumns, rows: TableCells, labels: Callable[[str], ColumnLabels], *, images: bool = False
) -> list[ColumnGuess]:
    """Guess the role of each column of a table.

    Args:
        table: The table.
        rows: Its cells.
        labels: Returns what the labels are if a column holds them.
        images: Whether image files are there, so that a column of their names can be the image.

    Examples:
        >>> from suffice.tables.table_columns import table_columns
        >>> table = table_columns({"id": [3, 1, 2], "size": [1.5, 2.0, 9.5], "label": ["a", "b", ""]})
        >>> for guess in guessed_columns(table, table.cells(), lambda _: ColumnLabels(("a", "b"), 2)):
        ...     print(guess.role, "-", guess.reason)
        id - 'id' is different in each row, so it names the items.
        feature - 'size' holds numbers, from 1.5 to 9.5.
        label - 'label' has the name of a label, and holds 2 labels: a, b.
    """
    found = {name: labels(name) for name in table.names}
    roles: dict[str, tuple[Role, str]] = {}
    for name in table.names:
        if is_like_label(name) and "label" not in {role for role, _ in roles.values()} and not found[name].problem:
            roles[name] = "label", f"{name!r} has the name of a label, and {_held(found[name])}."
        elif is_image_column(table[name]):
            roles[name] = _image_role(name, images=images, taken={role for role, _ in roles.values()})
    by = _guessed_id([name for name in table.names if name not in roles], table, rows)
    if by is not None:
        roles[by] = "id", f"{by!r} is different in each row, so it names the items."
    others = {name: table[name] for name in table.names if name not in roles}
    _, texts = text_column(others)
    longest = ""
    if texts and "image" not in {role for role, _ in roles.values()}:
        longest = max(texts, key=lambda name: _words(others[name]))
        roles[longest] = "text", _why_text(longest, texts, _words(others[longest]))
    for name, column in others.items():
        if name not in roles:
            roles[name] = _feature_role(name, column, table, longest=longest if name in texts else "")
    return [ColumnGuess(name, *roles[name], found[name]) for name in table.names]


def _guessed_id(names: Sequence[str], table: TableColumns, rows: TableCells) -> str | None:
    """The column that names the items: the one called id, or the first that is named like one; None if there is none.

    Columns that are not different in each row are not guessed, and numbers with decimals neither.
    """
    called = id_column(names)
    for name in [*([] if called is None else [called]), *filter(is_like_id, names)]:
        column = table[name]
        whole = name == called or isinstance(column, Texts) or bool(np.all(column == np.floor(column)))
        if whole and not id_problem([*map(str.strip, rows.column(table.names.index(name)))], table.place):
            return name
    return None


def _why_text(name: str, texts: Sequence[str], words: float) -> str:
    """Why a column is guessed as the text."""
    average = f"{round(words):,} words on average"
    if len(texts) == 1:
        return f"{name!r} is the only column with longer texts ({average})."
    others = [repr(other) for other in texts if other != name]
    if len(others) > _MOST_NAMED:
        others = [*others[:_MOST_NAMED], f"{len(others) - _MOST_NAMED:,} others"]
    also = f"{', '.join(others[:-1])} and {others[-1]} are texts" if len(others) > 1 else f"{others[0]} is a text"
    return f"{name!r} has the longest texts ({average}); {also} too."


def _image_role(name: str, *, images: bool, taken: set[Role]) -> tuple[Role, str]:
    if not images:
        return "feature", f"{name!r} holds names of images; upload a ZIP archive with this table and the images."
    if "image" in taken:
        return "feature", f"{name!r} holds names of images too; one column can be shown as the image."
    return "image", f"{name!r} holds names of images."


def _held(labels: ColumnLabels) -> str:
    """The labels of a column, as a part of a sentence."""
    if not labels.count:
        return "is empty so far"
    what = f"{labels.count:,} label" + "s" * (labels.count != 1)
    return f"holds {what}: {_some(labels.classes)}" if labels.classes else f"holds {what} that are numbers"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(name if len(name) <= 40 else f"{name[:37]}..." for name in names[:_MOST_NAMED])
    return f"{shown} and {len(names) - _MOST_NAMED:,} others" if len(names) > _MOST_NAMED else shown


def _words(column: Column) -> float:
    """Average number of words."""
    assert isinstance(column, Texts)
    words = np.dot([len(level.split()) for level in column.levels], column.counts)
    return float(words / max(1, column.counts.sum()))


def _feature_role(name: str, column: Column, table: TableColumns, *, longest: str) -> tuple[Role, str]:
    """The role of a column that is neither text, image, id nor label; ``longest`` is the text if this is one too."""
    kind = column_type(name, column, table.place).kind
    if longest:
        return "feature", f"{name!r} holds texts too; those of {longest!r} are longer."
    if kind is None:
        return _left_out(name, column)
    if kind == "category":
        assert isinstance(column, Texts)
        order = np.argsort(-column.counts, kind="stable")
        names = [column.levels[k] for k in order]
        return "feature", f"{name!r} holds {len(names):,} different values: {_some(names)}."
    if kind == "number":
        assert not isinstance(column, Texts)
        finite = column[np.isfinite(column)]
        return "feature", f"{name!r} holds numbers, from {number(finite.min())} to {number(finite.max())}."
    return "feature", f"{name!r} holds {_KINDS[kind]}."


def _left_out(name: str, column: Column) -> tuple[Role, str]:
    """The role of a column that no model can use."""
    if isinstance(column, Texts):
        distinct = len(column.levels)
        empty = not distinct
    else:
        finite = column[np.isfinite(column)]
        distinct, empty = len(np.unique(finite)), not len(finite)
    if empty:
        return "ignored", f"{name!r} is empty."
    if distinct == 1:
        return "ignored", f"{name!r} is the same in each row."
    return "feature", f"{name!r} is different in nearly each row; it is shown, and the model does not use it."
