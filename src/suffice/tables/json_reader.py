"""JSON lines and lists of JSON objects to columns."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from suffice.errors import InvalidValueError
from suffice.tables.file_content import (
    BLOCK,
    STREAM_ERRORS,
    CellColumn,
    TextContent,
    chunks_of,
    content_of,
    converted_columns,
    is_small,
    require_few_cells,
    row_after,
    text_content,
    text_stream,
    unreadable,
    whole_text,
)
from suffice.tables.table_cells import CellColumns
from suffice.tables.table_columns import TableColumns, column, distinct_names

_KIND: Final = "JSON lines"
_REMEDY: Final = (
    'write each object on one line, such as {"id": "7", "text": "good"}, or all of them in one list, [{...}, {...}]'
)
_SPACE: Final = re.compile(r"\s*")
_LIST: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")

#: An object: its line or its number in the list (from 1), its text, and its values.
_Record = tuple[int, str, dict[str, Any]]


def read_json(path: Path, *, keep_cells: bool = False) -> TableColumns:
    """Read JSON lines, or a list of JSON objects; see :func:`suffice.tables.file_reader.read_columns`.

    Every key is a column, in the order in which they appear; a key that an object does not have is missing there. A
    number is the text that is in the file, true and false are the texts ``true`` and ``false``, and null is missing.
    Lists and objects in an object become texts of JSON without spaces. As in a CSV file, texts that are all numbers
    become numbers, and texts such as ``NA`` mean that the value is missing.
    """
    text = text_content(content_of(path), path, _KIND)
    records: Callable[[], Iterator[_Record]]
    place: Callable[[int], str]
    if _LIST.match(text.data):
        records, place = partial(_in_list, text.data.decode(text.encoding), path), row_after(0)
    else:
        records, place = lambda: _in_lines(text.lines(), path), partial(_line, text)
    found, size = _gathered(records(), path)
    keys = [*found]
    names = _names(keys, path, empty=not size)
    columns, kept = converted_columns([*map(found.pop, keys)], keep_cells=keep_cells)
    return TableColumns(
        names,
        columns,
        tuple(text.notes),
        place,
        kept or (lambda: CellColumns([*_gathered(records(), path)[0].values()])),
        column_cells=kept().column if kept else lambda k: _gathered(records(), path, only=keys[k])[0][keys[k]],
    )


def json_chunks(path: Path, rows: int) -> Iterator[TableColumns]:
    """Read some rows at a time; see :func:`suffice.tables.file_reader.read_chunks`."""
    opened = None if is_small(path) else text_stream(path, _KIND)
    if opened is None or _is_list(path, opened):
        table = read_json(path, keep_cells=True)
        cells = table.cells()
        yield from chunks_of(table, [cells.column(k) for k in range(len(table.names))], rows)
        return

    def records() -> Iterator[_Record]:
        try:
            with opened() as stream:
                yield from _in_lines(stream, path)
        except STREAM_ERRORS as error:
            raise unreadable(path, error, _KIND) from None

    keys, empty = dict[str, None](), True
    for _, _, found in records():
        keys.update(dict.fromkeys(found))
        empty = False
    names = _names(keys, path, empty=empty)
    second = records()
    while block := list(islice(second, rows)):
        yield _chunk(block, names, [*keys])


def _chunk(block: list[_Record], names: tuple[str, ...], keys: list[str]) -> TableColumns:
    parts = [*_cells(block, keys).values()]

    def place(row: int) -> str:
        return f"line {block[row][0]}"

    return TableColumns(names, tuple(map(column, parts)), (), place, lambda: CellColumns(parts))


def _is_list(path: Path, opened: Callable[[], Any]) -> bool:
    try:
        with opened() as stream:
            return next((line.lstrip()[0] for line in stream if line.strip()), "") == "["
    except STREAM_ERRORS as error:
        raise unreadable(path, error, _KIND) from None


def _names(keys: Iterable[str], path: Path, *, empty: bool) -> tuple[str, ...]:
    """Return the names of the columns; an empty key becomes "column" and its number."""
    names = [whole_text(key).strip() or f"column {k}" for k, key in enumerate(keys, start=1)]
    if empty:
        raise InvalidValueError(f"{path} holds no rows; {_REMEDY}")
    if not names:
        raise InvalidValueError(f"{path} holds no columns: its objects have no keys; {_REMEDY}")
    return distinct_names(names, path)


def _line(text: TextContent, row: int) -> str:
    filled = (number for number, line in enumerate(text.lines(), start=1) if line.strip())
    return f"line {next(islice(filled, row, None))}"


def _gathered(records: Iterator[_Record], path: Path, only: str | None = None) -> tuple[dict[str, list[str]], int]:
    """Return the cells of each key, or of one key only, and the number of rows."""
    columns: dict[str, CellColumn] = {}
    size = 0
    while block := list(islice(records, BLOCK)):
        keys = [only] if only is not None else [*dict.fromkeys(chain(columns, *(found for _, _, found in block)))]
        require_few_cells(size + len(block), len(keys), path)
        for key, part in _cells(block, keys).items():
            if key not in columns:
                columns[key] = CellColumn(size)
            columns[key].add(part)
        size += len(block)
    return {key: found.cells for key, found in columns.items()}, size


def _cells(block: list[_Record], keys: list[str]) -> dict[str, list[str]]:
    """Return the cells of each key."""
    cells: dict[str, list[str]] = {}
    for key, values in _values(block, keys):
        texts = [*values]
        if set(map(type, texts)) != {str}:
            texts = [
                value if type(value) is str else _cell(value, key, text)
                for value, (_, text, _) in zip(values, block, strict=True)
            ]
        every = "".join(texts)
        cells[key] = texts if every.isascii() or not _SURROGATE.search(every) else [*map(whole_text, texts)]
    return cells


def _values(block: list[_Record], keys: list[str]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the values of each key, None where an object does not have it."""
    objects = [found for _, _, found in block]
    try:
        if len(keys) > 1:
            yield from zip(keys, [*zip(*map(itemgetter(*keys), objects), strict=True)], strict=True)
            return
    except KeyError:
        pass
    for key in keys:
        yield key, [found.get(key) for found in objects]


def _cell(value: Any, key: str, text: str) -> str:
    """Return the text of a value that is not a text, of an object with this text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    # Numbers were read as texts, so the list or object is read again.
    return json.dumps(json.loads(text)[key], ensure_ascii=False, separators=(",", ":"))


class _RepeatedKeyError(ValueError):
    """An object has a key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _RepeatedKeyError(next(key for key in found if keys.count(key) > 1))
    return found


# Numbers are texts as in the file, so that none is rounded.
_DECODE: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=str, parse_int=str, parse_constant=str
).raw_decode


def _in_lines(lines: Iterable[str], path: Path) -> Iterator[_Record]:
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        try:
            found, end = _DECODE(text)
        except (ValueError, RecursionError):
            end = -1
        if end < len(text) or type(found) is not dict:
            # It is decoded again for the message.
            found, end = _decoded(text, 0, path, f"line {number}")
            raise InvalidValueError(
                f"{path}, line {number}: there is more after the object, from character {end + 1} on; {_REMEDY}"
            )
        yield number, text, found


def _in_list(text: str, path: Path) -> Iterator[_Record]:
    number, at = 0, _after_space(text, text.index("[") + 1)
    ended = text.startswith("]", at)
    while not ended:
        number += 1
        found, end = _decoded(text, at, path, f"row {number}")
        yield number, text[at:end], found
        at = _after_space(text, end)
        ended = text.startswith("]", at)
        if not ended and not text.startswith(",", at):
            came = f"line {text.count(chr(10), 0, at) + 1}: after row {number}, a comma or ] is missing"
            raise InvalidValueError(f"{path}, {came}; is the file complete?")
        at = _after_space(text, at + 1)
    rest = text[at + (number == 0) :].strip()
    if rest:
        raise InvalidValueError(f"{path}: there is more after the list; {_REMEDY}")


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None  # it matches everywhere
    return found.end()


def _decoded(text: str, at: int, path: Path, place: str) -> tuple[dict[str, Any], int]:
    """Return the object that starts at a character of a text, and the character after it."""
    try:
        found, end = _DECODE(text, at)
    except _RepeatedKeyError as error:
        raise InvalidValueError(
            f"{path}, {place}: the key {error.args[0]!r} is there twice in an object; rename or remove one"
        ) from None
    except json.JSONDecodeError as error:
        where = f"character {error.pos + 1}" if not at else f"line {error.lineno}, character {error.colno}"
        raise InvalidValueError(f"{path}, {place} is not an object of JSON: {error.msg} ({where}); {_REMEDY}") from None
    except RecursionError:
        raise InvalidValueError(f"{path}, {place}: lists or objects are nested too deeply; leave them out") from None
    if not isinstance(found, dict):
        names = {list: "a list", bool: "true or false", type(None): "null"}
        came = names.get(type(found), "a text" if text[at] == '"' else "a number")
        raise InvalidValueError(f"{path}, {place} is {came}, and must be an object; {_REMEDY}")
    return found, end
