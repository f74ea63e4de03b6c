"""The data sets as arrays and texts: those of the paper, and others."""

import gzip
import io
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.errors import InvalidValueError, SufficeError
from suffice.numerics import Floats
from suffice.tables.table import Table, read_table
from suffice_research.data.catalogue import DataSet, checked_contents, data_folder, data_set, require_set
from suffice_research.data.protocols import CORRECTED_VIEWS, PUBLISHED_VIEWS, ColumnRoles

#: Data sets that are not tables of numbers, and the functions that read them.
_OTHERWISE: Final = {
    "images": "images, not a table; read it with suffice_research.data.set_readers.read_mnist(mnist_folder())",
    "words": "a table with words in it, not of numbers alone; read it with suffice_research.data.read_words",
    "texts": "texts, not a table; read it with suffice_research.data.read_texts",
}


class NumericColumns(NamedTuple):
    """The columns of a table: their names (``k``) and the numbers in them (``n x k``)."""

    names: tuple[str, ...]
    values: Floats


def read_columns(name: str, folder: Path | None = None) -> NumericColumns:
    """Verify the checksum of a table of the paper, and read all of it unchanged.

    Args:
        name: Name of the data set: one of the paper's in ``suffice data list`` but mnist.
        folder: The data folder; :func:`suffice_research.data.catalogue.data_folder` if left out.

    Raises:
        InvalidValueError: There is no table of that name.
        MissingDataError: A file is missing; the message says how to get it.
        CorruptDataError: A file has the wrong checksum.
    """
    wanted = data_set(name)
    if wanted.holds != "numbers":
        raise InvalidValueError(f"the data set {name} is {_OTHERWISE[wanted.holds]}")
    tables = [_numbers(content, wanted) for content in checked_contents(name, folder)]
    return NumericColumns(wanted.columns, np.concatenate(tables) if len(tables) > 1 else tables[0])


def _numbers(content: bytes, wanted: DataSet) -> Floats:
    # Split here, because the lines of some files end in a carriage return only.
    lines = content.decode("ascii").splitlines()[wanted.header :]
    values: Floats = np.loadtxt(lines, dtype=np.float64, delimiter=wanted.separator, ndmin=2, comments=None)
    return values


class Samples(NamedTuple):
    """Inputs (``n x D``, standardised) and targets (``n``: numbers, or classes 0 and 1).

    Examples:
        >>> inputs, target = Samples(np.array([[-1.0], [1.0]]), np.array([0, 1]))
        >>> inputs[target == 1]
        array([[1.]])
    """

    inputs: Floats
    target: Any


def read_set(name: str, protocol: str = "corrected", *, folder: Path | None = None) -> Samples:
    """Read a data set of the paper: the right columns, or those that the paper's authors used.

    Args:
        name: One of the paper's in ``suffice data list`` but mnist.
        protocol: ``corrected`` or ``published``.
        folder: The data folder; the usual one if left out.

    Raises:
        InvalidValueError: There is no such data set or protocol, or the data set is not a table.
        MissingDataError: The data set is missing.
        CorruptDataError: A file has the wrong checksum.
    """
    views = {"corrected": CORRECTED_VIEWS, "published": PUBLISHED_VIEWS}
    if protocol not in views:
        raise InvalidValueError(f"protocol must be corrected or published, not {protocol!r}")
    if (wanted := data_set(name)).name not in views[protocol]:
        reader = "read_texts" if wanted.holds == "texts" else "read_words"
        raise InvalidValueError(f"{name} is no data set of the paper; read it with suffice_research.data.{reader}")
    return read_samples(name, views[protocol][name], folder)


def read_samples(data: str, view: ColumnRoles, folder: Path | None = None) -> Samples:
    """Read a table and choose its columns.

    Args:
        data: Name of the data set.
        view: Which columns are inputs, and which is the target.
        folder: The data folder; the usual one if left out.

    Raises:
        MissingDataError: The data set is missing.
        CorruptDataError: A file has the wrong checksum.
    """
    names, values = read_columns(data, folder)
    values = values[view.rows_lost :]
    inputs = _standardised(values[:, [names.index(name) for name in view.inputs]])
    target = values[:, names.index(view.target)]
    if view.positive is not None:
        return Samples(inputs, (target == view.positive).astype(int))
    return Samples(inputs, _standardised(target) if view.standardised else target)


def _standardised(values: Floats) -> Floats:
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0))


_FILES = {
    "train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
}


class Digits(NamedTuple):
    """Handwritten digits: images (``n x 28 x 28``, from 0 to 1, single precision) and what they show (``n``)."""

    images: Floats
    labels: Any


def mnist_folder(folder: Path | None = None) -> Path:
    """Verify the checksums of the four files, and return their folder for :func:`read_mnist`.

    Args:
        folder: The data folder; :func:`suffice_research.data.catalogue.data_folder` if left out.

    Raises:
        MissingDataError: A file is missing; the message says how to get it.
        CorruptDataError: A file has the wrong checksum.
    """
    place = data_folder() if folder is None else folder
    require_set("mnist", place)
    return place / "mnist"


def read_mnist(folder: Path | str, part: str = "train") -> Digits:
    """Read the 60,000 training images (``part="train"``) or the 10,000 test images (``part="test"``).

    Args:
        folder: Where the four files lie.
        part: Which of the two.

    Raises:
        SufficeError: A file is missing.
        InvalidValueError: The contents of a file do not match its name.

    Reference: [LeCun1998].
    """
    if part not in _FILES:
        raise InvalidValueError(f"part must be train or test, not {part!r}")
    images, labels = (_idx(Path(folder) / name) for name in _FILES[part])
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise InvalidValueError(f"{folder} holds {images.shape} images and {labels.shape} labels; they do not match")
    return Digits(images.astype(np.float32) / 255.0, labels.astype(np.int64))


def _idx(path: Path) -> Any:
    """The array in a file: two zero bytes, type, number of axes, the sizes, and the bytes themselves."""
    try:
        content = gzip.decompress(path.read_bytes())
    except FileNotFoundError:
        raise SufficeError(
            f"{path} is missing; MNIST is the four files {', '.join(sum(_FILES.values(), ()))}"
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidValueError(f"{path} cannot be read: {error}") from None
    axes = content[3] if len(content) > 3 else 0
    if content[:3] != b"\x00\x00\x08" or not 1 <= axes <= 3:
        raise InvalidValueError(f"{path} is not a file of MNIST: it does not begin as one")
    if len(content) < 4 + 4 * axes:
        raise InvalidValueError(f"{path} is cut short: {len(content)} bytes, and its sizes are not all there")
    shape = tuple(np.frombuffer(content, ">u4", axes, 4).tolist())
    if len(content) != 4 + 4 * axes + int(np.prod(shape)):
        raise InvalidValueError(f"{path} is cut short: {len(content)} bytes, but its sizes are {shape}")
    return np.frombuffer(content, np.uint8, offset=4 + 4 * axes).reshape(shape)


#: The column that is predicted, in those tables.
_TARGETS: Final = {"letter": "lettr", "adult": "class"}
#: Prefixes of a quoted line, and suffixes of a line that announces quotations ("Ann <ann@x.org> writes:").
_MARKS: Final = (">", "|", ":")
_ANNOUNCED: Final = ("writes", "wrote", "says", "said")


class LabelledTexts(NamedTuple):
    """Texts and the class of each, as a name.

    Examples:
        >>> found = LabelledTexts(("win a prize", "see you"), ("spam", "ham"))
        >>> dict(zip(found.texts, found.labels))["see you"]
        'ham'
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]


def read_texts(name: str, folder: Path | None = None) -> LabelledTexts:
    """Verify the checksum of a file of texts, and read the texts with their classes.

    - ``sms_spam``: one message per line, unchanged.
    - ``newsgroups``: the messages of both parts, one folder per class, in the order of folder and number. Only the
      author's own text is used (:func:`body`), because headers and signatures reveal the group. Messages that become
      empty are kept.

    Args:
        name: ``sms_spam`` or ``newsgroups``.
        folder: The data folder; :func:`suffice_research.data.catalogue.data_folder` if left out.

    Raises:
        InvalidValueError: There is no data set of that name, or it is no texts.
        MissingDataError: The file is missing; the message says how to get it.
        CorruptDataError: The file has the wrong checksum.
    """
    _require(name, "texts")
    (content,) = checked_contents(name, folder)
    return _messages(content) if name == "newsgroups" else _lines(content)


def read_words(name: str, folder: Path | None = None) -> Table:
    """Verify the checksum of a table that contains words, and read it like a user's table.

    Words become 0/1 columns, one of them for the missing (``NA`` in the file of ``adult``, ``?`` where it comes from);
    see :func:`suffice.tables.table.read_table`.

    Args:
        name: ``letter`` or ``adult``.
        folder: The data folder; :func:`suffice_research.data.catalogue.data_folder` if left out.

    Raises:
        InvalidValueError: There is no data set of that name, or it is no such table.
        MissingDataError: The file is missing; the message says how to get it.
        CorruptDataError: The file has the wrong checksum.
    """
    wanted, place = _require(name, "words"), data_folder() if folder is None else folder
    require_set(name, place)
    return read_table(place.joinpath(*wanted.files[0].path.split("/")), _TARGETS[name])


def body(message: str) -> str:
    r"""Return the author's own text of a newsgroup message, without header, quotations and signature.

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
        raise InvalidValueError(f"the data set {name} is not {what}; read it with suffice_research.data.{reader}")
    return wanted


def _lines(content: bytes) -> LabelledTexts:
    # Split at line feeds only, because a message may contain other characters that Python treats as line ends.
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
