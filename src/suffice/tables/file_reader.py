"""Files to columns: CSV, Excel workbooks, JSON lines and Parquet, by the ending of the name."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Literal

from suffice.tables.csv_reader import csv_chunks, read_csv
from suffice.tables.excel_reader import excel_chunks, is_excel, read_excel
from suffice.tables.json_reader import json_chunks, read_json
from suffice.tables.parquet_reader import parquet_chunks, read_parquet
from suffice.tables.table_columns import TableColumns

TableFormat = Literal["csv", "excel", "json", "parquet"]

_ENDINGS: Final[dict[str, TableFormat]] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".xls": "excel",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_ENDING: Final = re.compile(rf"({'|'.join(map(re.escape, _ENDINGS))})(\.gz)?$", re.IGNORECASE)


def table_format(path: Path) -> TableFormat | None:
    """Return the format of a table by the ending of its name; None if the ending is not known.

    Examples:
        >>> table_format(Path("a.tsv.gz")), table_format(Path("b.XLSX")), table_format(Path("c.ndjson"))
        ('csv', 'excel', 'json')
    """
    found = _ENDING.search(path.name)
    return _ENDINGS[found[1].lower()] if found else None


def without_ending(path: Path) -> str:
    """Return the name of a table without its ending.

    Examples:
        >>> without_ending(Path("data/mails.csv.gz")), without_ending(Path("v1.2"))
        ('mails', 'v1.2')
    """
    return _ENDING.sub("", path.name)


def read_columns(
    path: Path, progress: Callable[[int, int], None] | None = None, *, keep_cells: bool = False
) -> TableColumns:
    """Read a table. The ending of the name says the format; a file with another ending is read as CSV.

    - ``.csv``, ``.tsv``, ``.txt``: CSV, separated by commas, semicolons, tabs or bars. ``.tsv`` means tabs.
    - ``.xlsx``, ``.xlsm``: the first sheet of an Excel workbook that is not empty, see
      :func:`~suffice.tables.excel_reader.read_excel`.
    - ``.jsonl``, ``.ndjson``, ``.json``: one JSON object a line, or a list of objects, see
      :func:`~suffice.tables.json_reader.read_json`.
    - ``.parquet``, ``.pq``: Parquet.

    CSV and JSON may be gzipped.

    Args:
        path: The file.
        progress: Called with the number of rows read and the number of all rows, for a large Parquet file.
        keep_cells: Whether the cells of a CSV or JSON file stay in memory, because they are needed as well. Otherwise
            the file is parsed again when they are.

    Raises:
        InvalidValueError: There is no such file, it cannot be read, or it is not a table.
        MissingExtraError: It is Parquet and pyarrow is not installed, or it is an Excel workbook and openpyxl is not.
    """
    found = table_format(path)
    if found == "parquet":
        return read_parquet(path, progress)
    if found == "json":
        return read_json(path, keep_cells=keep_cells)
    return read_excel(path) if found == "excel" and is_excel(path) else read_csv(path, keep_cells=keep_cells)


def read_chunks(path: Path, rows: int = 10_000) -> Iterator[TableColumns]:
    """Read a table as :func:`read_columns` does, some rows at a time, so that it need not fit into memory.

    A CSV file of more than 32 MiB is not searched for quotes that never close; a Parquet file is read in its own
    batches. JSON lines of more than 32 MiB are read twice: the keys, and the values. An Excel workbook and a list of
    JSON are read at once. The positions of rows in messages are those in the file.

    Args:
        path: The file.
        rows: Rows at a time.

    Raises:
        InvalidValueError: There is no such file, it cannot be read, or it is not a table.
        MissingExtraError: It is Parquet and pyarrow is not installed, or it is an Excel workbook and openpyxl is not.
    """
    found = table_format(path)
    if found == "parquet":
        return parquet_chunks(path, rows)
    if found == "json":
        return json_chunks(path, rows)
    return excel_chunks(path, rows) if found == "excel" and is_excel(path) else csv_chunks(path, rows)
