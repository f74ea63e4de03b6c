"""Files with all final labels of a data set: CSV, XLSX, JSON lines and Parquet. The same rows give the same bytes.

XLSX is written without another package. All its cells are texts, numbers or flags, never formulas.
"""

import re
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import PurePath
from typing import BinaryIO, Final, Literal
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from suffice.errors import InvalidValueError
from suffice.tables.file_writer import Cell, Column, Rows, distinct, encoded, harmless
from suffice.tables.table_formats import (
    FINAL_FORMATS,
    TYPED_FORMATS,
    FinalFormat,
    checked_format,
    format_of,
    usual_endings,
)
from suffice.tables.typed_cells import typed_chunks

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
#: The columns after those of the data and whether they are numbers, see :func:`final_columns`.
ADDED: Final[dict[str, Literal["text", "number"]]] = {
    "label": "text",
    "source": "text",
    "probability": "number",
    "labelled_by": "text",
    "labelled_at": "text",
}


def final_format(name: str | PurePath) -> FinalFormat:
    """The format of a file, by the ending of its name.

    Raises:
        InvalidValueError: The ending is not known.

    Examples:
        >>> final_format("final.xlsx"), final_format("FINAL.CSV")
        ('xlsx', 'csv')
    """
    found = format_of(name, FINAL_FORMATS)
    if found is None:
        endings = usual_endings(FINAL_FORMATS)
        raise InvalidValueError(f"the name of the final file must end in {endings}, not {PurePath(name).name!r}")
    return found


def final_columns(cells: Sequence[str], *, numbers: bool = False, added: Sequence[str] = tuple(ADDED)) -> list[Column]:
    """The columns of a final file: those of the data, then ``label``, ``source``, and so on.

    If the data have a column with the name of an added one, a number is appended to the name of the added one.

    Args:
        cells: Names of the columns of the data.
        numbers: Whether labels are numbers.
        added: Those of :data:`ADDED` that are added.

    Examples:
        >>> [column.name for column in final_columns(["id", "label", "text"])]
        ['id', 'label', 'text', 'label_2', 'source', 'probability', 'labelled_by', 'labelled_at']
    """
    first = distinct(cells)
    kinds = {**ADDED, "label": "number"} if numbers else ADDED
    named = zip(distinct(added, taken=first), added, strict=True)
    return [*map(Column, first), *(Column(name, kinds[usual]) for name, usual in named)]


def encoded_final(
    columns: Sequence[Column],
    chunks: Iterable[Rows],
    format: FinalFormat,
    *,
    byte_order_mark: bool = False,
    added: int = len(ADDED),
) -> bytes:
    r"""Write all rows as a file.

    In JSON lines and Parquet, an empty cell is missing, and a text in a column of numbers is written as a number, see
    :func:`suffice.tables.typed_cells.with_number_columns`.

    Args:
        columns: The columns.
        chunks: The rows, some at a time: each with a cell for every column. Numbers must be finite.
        format: The format of the file.
        byte_order_mark: Whether a CSV begins with a byte order mark, by which Excel recognises UTF-8.
        added: Number of columns at the end that are not of the data.

    Raises:
        MissingExtraError: It is Parquet, and pyarrow is not installed.
        InvalidValueError: The format is not known, has no byte order mark, or cannot hold the rows.

    Examples:
        >>> encoded_final([Column("label")], [[("=1",)]], "csv", byte_order_mark=True)
        b"\xef\xbb\xbflabel\n'=1\n"
    """
    known = checked_format(format, FINAL_FORMATS)
    if known in TYPED_FORMATS:
        chunks = typed_chunks(columns, chunks)
    if byte_order_mark and known != "csv":
        raise InvalidValueError(f"a byte order mark is for csv only, not for {known}")
    if known == "xlsx":
        return workbook(columns, chunks, texts=added)
    return _BYTE_ORDER_MARK * byte_order_mark + encoded(columns, chunks, known)


# XLSX: a ZIP archive of XML files.

#: Limits of the format.
_MOST_ROWS, _MOST_COLUMNS, _LONGEST_TEXT = 1_048_575, 16_384, 32_767
# A whole or decimal number that a spreadsheet stores with all of its digits.
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_MOST_DIGITS: Final = 15
# Characters that XML does not allow, and texts that would be read as such a character.
_NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_DECLARED: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_SHEET: Final = "xl/worksheets/sheet1.xml"
# Styles of cells: plain, of the first row, and a text that must stay one if somebody edits it.
_HEAD, _QUOTED = ' s="1"', ' s="2"'
_PARTS: Final = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
    f'<Override PartName="/{_SHEET}" ContentType="{_TYPE}.worksheet+xml"/>'
    f'<Override PartName="/xl/styles.xml" ContentType="{_TYPE}.styles+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}">'
    '<sheets><sheet name="labels" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{_RELATIONS}/styles" Target="styles.xml"/></Relationships>',
    "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}">'
    '<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>'
    '</fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="3"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/>'
    '<xf numFmtId="49" fontId="0" fillId="0" borderId="0" xfId="0" quotePrefix="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>',
}


def workbook(columns: Sequence[Column], chunks: Iterable[Rows], *, texts: int = 0) -> bytes:
    """Write rows as a workbook with one sheet.

    A text is written as a text, also if it begins like a formula. A text of the data that is a plain number is written
    as a number.

    Args:
        columns: The columns.
        chunks: The rows, some at a time.
        texts: Number of columns at the end that are not of the data: their texts are written as texts.

    Raises:
        InvalidValueError: There are more rows or columns than a sheet can have, or a cell is too long.
    """
    content = BytesIO()
    write_workbook(columns, chunks, content, texts=texts)
    return content.getvalue()


def write_workbook(columns: Sequence[Column], chunks: Iterable[Rows], file: BinaryIO, *, texts: int = 0) -> None:
    """Write rows as a workbook to a file; see :func:`workbook`."""
    if len(columns) > _MOST_COLUMNS:
        raise InvalidValueError(f"XLSX has at most {_MOST_COLUMNS:,} columns, not {len(columns):,}; use another format")
    letters, read = [_letters(k) for k in range(len(columns))], len(columns) - texts
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, text in _PARTS.items():
            archive.writestr(_entry(name), _DECLARED + text)
        with archive.open(_entry(_SHEET), "w", force_zip64=True) as sheet:
            widths = "".join(
                f'<col min="{k}" max="{k}" width="{_width(column)}" customWidth="1"/>'
                for k, column in enumerate(columns, 1)
            )
            start = (
                f'{_DECLARED}<worksheet xmlns="{_MAIN}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" '
                'topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>'
                f"<cols>{widths}</cols><sheetData>"
            )
            head = (_text_cell(f"{at}1", column.name, _HEAD) for at, column in zip(letters, columns, strict=True))
            sheet.write(f'{start}<row r="1">{"".join(head)}</row>'.encode())
            number = 1
            for rows in chunks:
                for row in rows:
                    number += 1
                    if number > _MOST_ROWS + 1:
                        raise InvalidValueError(f"XLSX has at most {_MOST_ROWS:,} rows; use another format")
                    sheet.write(_row(number, letters, columns, row, read).encode())
            sheet.write(b"</sheetData></worksheet>")


def _entry(name: str) -> ZipInfo:
    """A file of the archive; its time and its system are always the same."""
    entry = ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.create_system, entry.external_attr, entry.compress_type = 3, 0o600 << 16, ZIP_DEFLATED
    return entry


def _width(column: Column) -> int:
    return 22 if column.kind == "text" else 14


def _row(number: int, letters: Sequence[str], columns: Sequence[Column], row: Sequence[Cell], read: int) -> str:
    """A row; texts of the first ``read`` columns may be numbers."""
    cells = enumerate(zip(letters, columns, row, strict=True))
    shown = (_cell(f"{at}{number}", column, cell, read=k < read) for k, (at, column, cell) in cells)
    return f'<row r="{number}">{"".join(shown)}</row>'


def _cell(at: str, column: Column, cell: Cell, *, read: bool) -> str:
    if cell is None or cell == "":
        return ""
    if isinstance(cell, bool):
        return f'<c r="{at}" t="b"><v>{int(cell)}</v></c>'
    if not isinstance(cell, str):
        return f'<c r="{at}"><v>{cell!r}</v></c>'
    if read and _NUMBER.fullmatch(cell) and len(re.sub("[^0-9]", "", cell)) <= _MOST_DIGITS:
        return f'<c r="{at}"><v>{cell}</v></c>'
    if len(cell) > _LONGEST_TEXT:
        raise InvalidValueError(
            f"cell {at}, column {column.name[:40]!r}, has {len(cell):,} characters; XLSX allows {_LONGEST_TEXT:,}: use "
            "another format"
        )
    return _text_cell(at, cell, _QUOTED if harmless(cell) != cell else "")


def _text_cell(at: str, text: str, style: str) -> str:
    allowed = _NOT_XML.sub(lambda found: f"_x{ord(found[0]):04X}_", text)
    # A reader of XML would turn a carriage return into a line break.
    shown = escape(allowed, {"\r": "&#13;"})
    return f'<c r="{at}"{style} t="inlineStr"><is><t xml:space="preserve">{shown}</t></is></c>'


def _letters(k: int) -> str:
    """Letters of a column, from 0.

    Examples:
        >>> _letters(0), _letters(25), _letters(26), _letters(16383)
        ('A', 'Z', 'AA', 'XFD')
    """
    found = ""
    k += 1
    while k:
        k, rest = divmod(k - 1, 26)
        found = chr(65 + rest) + found
    return found
