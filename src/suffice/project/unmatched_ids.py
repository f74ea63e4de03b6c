"""Names of rows and of items that are not equal: examples of both, and in what they differ."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from suffice.errors import InvalidValueError
from suffice.project.events import shown

# Maximal number of examples of each side.
_EXAMPLES: Final = 3


def _without_spaces(name: str) -> str:
    return "".join(name.split())


def _without_zeros(name: str) -> str:
    return re.sub(r"(?<![\d.,])0+(?=\d)", "", name)


def _without_decimals(name: str) -> str:
    return re.sub(r"(?<=\d)[.,]0+$", "", name)


def _without_all(name: str) -> str:
    return _without_zeros(_without_decimals(_without_spaces(name).casefold()))


# Differences that spreadsheets and programs make, with the form in which names that differ so are equal.
_FORMS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("leading zeros", _without_zeros),
    ("decimal places such as .0", _without_decimals),
    ("upper and lower case", str.casefold),
    ("spaces", _without_spaces),
    ("several of leading zeros, decimal places, upper and lower case, and spaces", _without_all),
)


class NoMatchError(InvalidValueError):
    """No row of a file belongs to an item of the project."""


class IdDifference(NamedTuple):
    """How names of rows differ from the names of items.

    Attributes:
        rows: Examples of names of rows.
        items: Examples of names of items; where ``cause`` is known, those of the same items.
        cause: In what the names differ, or None if that is not known.
        equal: Number of rows that would have the name of an item without this difference.
    """

    rows: tuple[str, ...]
    items: tuple[str, ...]
    cause: str | None
    equal: int

    def sentences(self, kind: str, column: str) -> str:
        """The names side by side, and in what they differ.

        Args:
            kind: What the names are: ids or texts.
            column: Column of the names of the rows.

        Examples:
            >>> print(id_difference(["012", "013"], ["11", "12", "13"]).sentences("ids", "nr"))
            The ids in the file, in column 'nr': '012', '013'. The ids in the project: '12', '13'. They differ in \
leading zeros; without that, 2 rows would belong to items.
        """
        here, there = (", ".join(map(shown, names)) for names in (self.rows, self.items))
        said = f"The {kind} in the file, in column {column!r}: {here}. The {kind} in the project: {there}."
        if self.cause is None:
            return said
        belong = "1 row would belong to an item" if self.equal == 1 else f"{self.equal:,} rows would belong to items"
        return f"{said} They differ in {self.cause}; without that, {belong}."


def id_difference(rows: Sequence[str], items: Iterable[str]) -> IdDifference:
    """Compare names of rows with names of items that are not equal to any of them.

    Args:
        rows: Names of rows.
        items: Names of items, read once.

    Examples:
        >>> id_difference([" A7"], ["a7", "a8"]).cause
        'several of leading zeros, decimal places, upper and lower case, and spaces'
        >>> id_difference(["12.0", "x"], ["12"])
        IdDifference(rows=('12.0',), items=('12',), cause='decimal places such as .0', equal=1)
        >>> id_difference(["x", "y"], ["12", "13"])
        IdDifference(rows=('x', 'y'), items=('12', '13'), cause=None, equal=0)
    """
    wanted = [{form(name): name for name in reversed(rows)} for _, form in _FORMS]
    found: list[dict[str, str]] = [{} for _ in _FORMS]
    first: list[str] = []
    for name in items:
        if len(first) < _EXAMPLES:
            first.append(name)
        for (_, form), keys, pairs in zip(_FORMS, wanted, found, strict=True):
            key = form(name)
            if key in keys:
                pairs.setdefault(key, name)
    equal = [sum(form(name) in pairs for name in rows) for (_, form), pairs in zip(_FORMS, found, strict=True)]
    best = max(range(len(_FORMS)), key=equal.__getitem__)
    if not equal[best]:
        return IdDifference(tuple(rows[:_EXAMPLES]), tuple(first), None, 0)
    cause, form = _FORMS[best]
    some = [name for name in dict.fromkeys(rows) if form(name) in found[best]][:_EXAMPLES]
    return IdDifference(tuple(some), tuple(found[best][form(name)] for name in some), cause, equal[best])
