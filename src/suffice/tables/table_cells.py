"""The cells of a table as texts, stored by column."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from json.encoder import encode_basestring
from typing import Any, Final

# Rows whose cells are encoded at a time.
_BLOCK: Final = 5000
# Bytes that JSON escapes in a text. In UTF-8 they are no part of another character.
_ESCAPED: Final = bytes(range(0x20)) + b'"\\'


class TableCells(Sequence[Sequence[str]]):
    """The rows of a table, whose cells can also be read by column."""

    @abstractmethod
    def column(self, k: int) -> list[str]:
        """All cells of one column."""

    @abstractmethod
    def selected(self, columns: Sequence[int]) -> "TableCells":
        """The cells of some of the columns, by their numbers."""

    @abstractmethod
    def changed(self, change: Callable[[list[str]], list[str]]) -> "TableCells":
        """The cells with each column changed by a function.

        Args:
            change: Returns the cells of a column as they are to be; the same object if none changes.

        Returns:
            This object itself if no column changes.
        """

    @abstractmethod
    def json_rows(self) -> Iterator[str]:
        """The cells of each row as a list of JSON, as :mod:`json` writes it without ASCII escapes."""


class CellColumns(TableCells):
    r"""The cells of a table in memory. A list for each row would take more memory than the cells of most tables.

    Args:
        columns: The cells of each column, all of the same length.
        size: Number of rows, which must be given if there are no columns.

    Examples:
        >>> cells = CellColumns([["1", "2"], ["a", 'b"']])
        >>> list(cells), cells[1], cells[:1], list(cells.selected([1]))
        ([('1', 'a'), ('2', 'b"')], ('2', 'b"'), [('1', 'a')], [('a',), ('b"',)])
        >>> list(cells.json_rows())
        ['["1", "a"]', '["2", "b\\""]']
    """

    def __init__(self, columns: Sequence[list[str]], size: int | None = None) -> None:
        self._columns = [*columns]
        self._size = size if size is not None else len(columns[0]) if columns else 0

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[str]]) -> "CellColumns":
        """The cells of rows that have the same length."""
        return cls([[*column] for column in zip(*rows, strict=True)], len(rows))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Sequence[str]]:
        return zip(*self._columns, strict=True) if self._columns else repeat((), self._size)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return [*CellColumns([column[key] for column in self._columns], len(range(self._size)[key]))]
        if not self._columns:
            range(self._size)[key]  # raises an error if there is no such row
        return tuple(column[key] for column in self._columns)

    def column(self, k: int) -> list[str]:
        """All cells of one column."""
        return self._columns[k]

    def selected(self, columns: Sequence[int]) -> "CellColumns":
        """The cells of some of the columns; these are not copied."""
        return CellColumns([self._columns[k] for k in columns], self._size)

    def changed(self, change: Callable[[list[str]], list[str]]) -> "CellColumns":
        """See :meth:`TableCells.changed`."""
        found = [change(column) for column in self._columns]
        same = all(after is before for after, before in zip(found, self._columns, strict=True))
        return self if same else CellColumns(found, self._size)

    def json_rows(self) -> Iterator[str]:
        """See :meth:`TableCells.json_rows`. Cells are encoded by column, some rows at a time."""
        if not self._columns:
            yield from repeat("[]", self._size)
        for start in range(0, self._size if self._columns else 0, _BLOCK):
            parts = [column[start : start + _BLOCK] for column in self._columns]
            plain = [not contains_bytes(part, _ESCAPED) for part in parts]
            row = "[{}]".format(", ".join('"%s"' if quoted else "%s" for quoted in plain))
            encoded = (
                part if quoted else map(encode_basestring, part) for part, quoted in zip(parts, plain, strict=True)
            )
            yield from map(row.__mod__, zip(*encoded, strict=True))


def contains_bytes(texts: Sequence[str], wanted: bytes) -> bool:
    r"""Whether some text has one of these ASCII characters. All texts are searched at once, without a loop in Python.

    Examples:
        >>> contains_bytes(["a", "b\n"], b"\n"), contains_bytes(["a", "é"], b"\n")
        (True, False)
    """
    data = "".join(texts).encode("utf-8", "surrogatepass")
    return len(data.translate(None, wanted)) < len(data)
