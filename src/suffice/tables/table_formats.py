"""The formats of files that are written: one declaration of each.

Commands, the HTTP interface and the page offer what is declared here.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal

from suffice.errors import InvalidValueError


@dataclass(frozen=True)
class TableFormat:
    """A format of a file with rows.

    Attributes:
        title: Its name for people.
        media_type: Its media type.
        endings: Endings of the names of its files, the usual one first.
        writer: The function that writes it, as module and name, which is loaded when it is used. It takes the columns,
            the rows, some at a time, and a binary file.
        typed: Whether it has numbers and missing cells of its own.
        all_rows_only: Whether it is for one file with all rows only, and not for labels and predictions.
    """

    title: str
    media_type: str
    endings: tuple[str, ...]
    writer: str
    typed: bool = False
    all_rows_only: bool = False

    def write(self, columns: Any, chunks: Any, file: BinaryIO) -> None:
        """Write rows to a file in this format.

        Args:
            columns: The columns.
            chunks: The rows, some at a time.
            file: The file.
        """
        module, _, name = self.writer.partition(":")
        getattr(import_module(module), name)(columns, chunks, file)


_WRITERS: Final = "suffice.tables.file_writer"
TABLE_FORMATS: Final = {
    "csv": TableFormat("CSV", "text/csv; charset=utf-8", (".csv",), f"{_WRITERS}:write_csv"),
    "xlsx": TableFormat(
        "Excel (XLSX)",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        (".xlsx",),
        "suffice.tables.final_writer:write_workbook",
        all_rows_only=True,
    ),
    "jsonl": TableFormat(
        "JSON lines", "application/x-ndjson", (".jsonl", ".ndjson"), f"{_WRITERS}:write_json_lines", typed=True
    ),
    "parquet": TableFormat(
        "Parquet", "application/vnd.apache.parquet", (".parquet", ".pq"), f"{_WRITERS}:write_parquet", typed=True
    ),
}
#: Names of the formats of one file with all rows.
FINAL_FORMATS: Final = tuple(TABLE_FORMATS)
#: Names of the formats of labels and predictions.
FORMATS: Final = tuple(name for name, format in TABLE_FORMATS.items() if not format.all_rows_only)
if TYPE_CHECKING:
    Format = str
    FinalFormat = str
else:
    Format = Literal[FORMATS]
    FinalFormat = Literal[FINAL_FORMATS]
#: Media types of the formats, by name.
MEDIA_TYPES: Final = {name: TABLE_FORMATS[name].media_type for name in FORMATS}
FINAL_MEDIA_TYPES: Final = {name: format.media_type for name, format in TABLE_FORMATS.items()}
#: Formats that have numbers and missing cells of their own.
TYPED_FORMATS: Final = frozenset(name for name, format in TABLE_FORMATS.items() if format.typed)


def one_of(names: tuple[str, ...]) -> str:
    """Names as part of a sentence.

    Examples:
        >>> one_of(("csv", "jsonl", "parquet"))
        'csv, jsonl or parquet'
    """
    return f"{', '.join(names[:-1])} or {names[-1]}"


def usual_endings(names: tuple[str, ...] = FORMATS) -> str:
    """The usual endings of formats, as part of a sentence.

    Examples:
        >>> usual_endings()
        '.csv, .jsonl or .parquet'
    """
    return one_of(tuple(TABLE_FORMATS[name].endings[0] for name in names))


def format_of(name: str | PurePath, among: tuple[str, ...] = FORMATS) -> str | None:
    """The format of a file by the ending of its name; None if no format has it.

    Examples:
        >>> format_of("new.ndjson"), format_of("new.xlsx")
        ('jsonl', None)
    """
    ending = PurePath(name).suffix.lower()
    return next((each for each in among if ending in TABLE_FORMATS[each].endings), None)


def checked_format(value: str, among: tuple[str, ...] = FORMATS) -> Format:
    """Return the format with this name.

    Args:
        value: The name.
        among: The formats that are possible.

    Raises:
        InvalidValueError: There is no such format.

    Examples:
        >>> checked_format("csv")
        'csv'
    """
    if value not in among:
        raise InvalidValueError(f"format must be {one_of(among)}, not {value!r}")
    return value
