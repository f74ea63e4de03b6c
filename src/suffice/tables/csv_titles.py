"""Titles above the names of the columns of a CSV file, as spreadsheets and other programs export them."""

import csv
from collections.abc import Sequence
from itertools import islice
from typing import Final

from suffice.tables.file_content import TextContent
from suffice.tables.table_columns import as_number

# A comma comes last: a title may contain one.
_DELIMITERS: Final = ";\t|,"
_MOST_TITLES: Final = 10
# Rows with the names and the cells, all of which must have the same number of cells.
_ROWS: Final = 20
_FEWEST_COLUMNS: Final = 3
_SHOWN: Final = 60


def without_titles(text: TextContent) -> tuple[TextContent, str]:
    r"""Return a text whose titles are blank lines, so that the numbers of its lines stay, and a note about them.

    Titles are rows with one cell above a row of three or more texts, the names, if the rows below these have as many
    cells, several of them filled. What could be a table of fewer columns is returned as it is.

    Examples:
        >>> text = TextContent(b"Sales 2026;;\nid;name;size\n1;Ann;3\n", "utf-8-sig")
        >>> rest, note = without_titles(text)
        >>> rest.data
        b'\nid;name;size\n1;Ann;3\n'
        >>> note
        "line 2 names the columns; what stands above it was left out: 'Sales 2026'"
    """
    for delimiter in _DELIMITERS:
        titles, end, line = _titles(text, delimiter)
        if titles:
            listed = ", ".join(repr(" ".join(title.split())[:_SHOWN]) for title in titles)
            lines = text.data.split(b"\n", end)
            note = f"line {line} names the columns; what stands above it was left out: {listed}"
            return text._replace(data=b"\n" * end + lines[end]), note
    return text, ""


def _titles(text: TextContent, delimiter: str) -> tuple[list[str], int, int]:
    """The titles, the number of lines that they take, and the line of the names."""
    # Lines that end with a line feed only or with both characters; a text with other line ends is not examined.
    lines = list(islice(text.lines(), _MOST_TITLES + _ROWS))
    rows: list[tuple[int, list[str]]] = []
    before = 0
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for cells in reader:
            if _filled(cells):
                rows.append((before, [cell.strip() for cell in cells]))
            before = reader.line_num
    except csv.Error:
        return [], 0, 0
    at = next((k for k, (_, cells) in enumerate(rows) if _filled(cells) > 1), 0)
    below = [cells for _, cells in rows[at + 1 :]]
    # The last row of the part may be incomplete.
    below = below[:-1] if len(lines) == _MOST_TITLES + _ROWS else below
    if not at or not below or not _are_names(rows[at][1], lines[rows[at][0]], delimiter):
        return [], 0, 0
    if any(len(cells) != len(rows[at][1]) or _filled(cells) < 2 for cells in below):
        return [], 0, 0
    titles = [next(cell for cell in cells if cell) for _, cells in rows[:at]]
    end = rows[at][0]
    return (titles, end, end + 1) if all(line.endswith("\n") for line in lines[:end]) else ([], 0, 0)


def _are_names(cells: Sequence[str], line: str, delimiter: str) -> bool:
    # A comma and a space are rather part of a sentence.
    if delimiter == "," and ", " in line:
        return False
    texts = all(as_number(cell) is None for cell in cells if cell)
    return _filled(cells) >= _FEWEST_COLUMNS and texts


def _filled(cells: Sequence[str]) -> int:
    return sum(bool(cell.strip()) for cell in cells)
