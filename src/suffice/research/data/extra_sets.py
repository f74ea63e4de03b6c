"""The data sets that the paper does not use: short and long texts, and tables with words."""

import io
import tarfile
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from suffice.errors import InvalidValueError
from suffice.research.data.catalogue import DataSet, data_set
from suffice.research.data.folder import checked_contents, data_folder, require_set
from suffice.tables.table import Table, read_table

#: The column that is predicted, in those tables.
_TARGETS: Final = {"letter": "lettr", "adult": "class"}
#: How a quoted line begins, and how one ends that announces quotations ("Ann <ann@x.org> writes:").
_MARKS: Final = (">", "|", ":")
_ANNOUNCED: Final = ("writes", "wrote", "says", "said")


class LabelledTexts(NamedTuple):
    """Texts and the class of each, as a name."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]


def read_texts(name: str, folder: Path | None = None) -> LabelledTexts:
    """Read texts with their classes, once the checksum of the file is found right.

    - ``sms_spam``: a message a line, as it stands.
    - ``newsgroups``: the messages of both parts, one folder a class, in the order of folder and number. Of each only
      what its author wrote is left (:func:`body`), for headers and signatures tell the group without any of its
      subject. Some are empty then, and are kept.

    Args:
        name: ``sms_spam`` or ``newsgroups``.
        folder: The data folder; :func:`suffice.research.data.folder.data_folder` if left out.

    Raises:
        InvalidValueError: There is no data set of that name, or it is no texts.
        MissingDataError: The file is not there; the message says how to get it.
        CorruptDataError: The file is not what it should be.
    """
    _require(name, "texts")
    (content,) = checked_contents(name, folder)
    return _messages(content) if name == "newsgroups" else _lines(content)


def read_words(name: str, folder: Path | None = None) -> Table:
    """Read a table with words in it as people's own tables are read, once its checksum is found right.

    Words become 0/1 columns, one of them for the missing (``NA`` in the file of ``adult``, ``?`` where it comes from);
    see :func:`suffice.tables.table.read_table`.

    Args:
        name: ``letter`` or ``adult``.
        folder: The data folder; :func:`suffice.research.data.folder.data_folder` if left out.

    Raises:
        InvalidValueError: There is no data set of that name, or it is no such table.
        MissingDataError: The file is not there; the message says how to get it.
        CorruptDataError: The file is not what it should be.
    """
    wanted, place = _require(name, "words"), data_folder() if folder is None else folder
    require_set(name, place)
    return read_table(place.joinpath(*wanted.files[0].path.split("/")), _TARGETS[name])


def body(message: str) -> str:
    r"""Return what the author of a newsgroup message wrote: without header, quotations and signature.

    The header ends at the first empty line. A quoted line begins with ``>``, ``|`` or ``:``; one that ends in "writes:"
    announces quotations. The signature begins at a line of two dashes.

    Args:
        message: The whole message.

    Examples:
        >>> body("From: ann\n\nBob writes:\n> It rains.\nNo, it snows.\n--\nAnn, Norway\n")
        'No, it snows.'
    """
    lines = message.partition("\n\n")[2].split("\n")
    end = next((k for k, line in enumerate(lines) if line.rstrip() == "--"), len(lines))
    return "\n".join(line for line in lines[:end] if not _quoted(line)).strip()


def _quoted(line: str) -> bool:
    return line.lstrip().startswith(_MARKS) or line.rstrip(": \t").lower().endswith(_ANNOUNCED)


def _require(name: str, holds: str) -> DataSet:
    wanted = data_set(name)
    if wanted.holds != holds:
        what = {"texts": "texts", "words": "a table with words in it"}[holds]
        reader = {"texts": "read_texts", "words": "read_words", "images": "read_mnist"}.get(wanted.holds, "read_set")
        raise InvalidValueError(f"the data set {name} is not {what}; read it with suffice.research.data.{reader}")
    return wanted


def _lines(content: bytes) -> LabelledTexts:
    # By line feeds alone: a message may hold other characters that Python takes for the end of a line.
    pairs = [line.partition("\t") for line in content.decode("utf-8").split("\n") if line]
    return LabelledTexts(tuple(text for _, _, text in pairs), tuple(label for label, _, _ in pairs))


def _messages(content: bytes) -> LabelledTexts:
    found = []
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        for entry in archive:
            path = PurePosixPath(entry.name)
            # A message is a file with a number for a name; the archive holds others as well.
            if entry.isfile() and path.name.isdecimal() and (stream := archive.extractfile(entry)) is not None:
                found.append((path.parts[-3:], body(stream.read().decode("latin-1"))))
    # By part, folder and number, so that the order in the archive does not matter.
    found.sort()
    return LabelledTexts(tuple(text for _, text in found), tuple(parts[1] for parts, _ in found))
