"""Archives of images that somebody sends: what is in them is verified before and while it is unpacked."""

import os
import shutil
import stat
import struct
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final
from zipfile import BadZipFile, ZipFile, ZipInfo

from suffice.errors import InvalidValueError, MissingExtraError
from suffice.presentation.text_format import count, shortened
from suffice.project.events import printable, shown
from suffice.project.images import ENDINGS, FORMATS, KINDS, MOST_PIXELS
from suffice.tables.file_reader import table_format

# The end of an archive, and the largest part of it in which it is looked for: a comment has at most 65,535 bytes.
_END: Final = b"PK\x05\x06"
_LONGEST_END: Final = 22 + 65_535
# Bytes of the list of contents for each entry: 46, its name, and what programs add.
_LISTED_BYTES: Final = 1024
# Below this size the ratio is not looked at: an empty picture is small.
_SMALL: Final = 2**24
_PART: Final = 2**20
_MOST_NAMED: Final = 3
# Folders that programs add, and that no person has put there.
_ADDED: Final = frozenset({"__MACOSX"})
# Tables by their names that are usually something else beside images or another table: a description, say.
_SELDOM_TABLES: Final = (".txt", ".txt.gz", ".json", ".json.gz")


@dataclass(frozen=True)
class ArchiveLimits:
    """Limits of an archive.

    Attributes:
        entries: Files in it.
        unpacked: Bytes of all files together.
        ratio: Unpacked bytes for each byte of the archive.
    """

    entries: int = 20_000
    unpacked: int = 2**30
    ratio: int = 200


def unpacked_files(
    archive: Path, name: str, folder: Path, limits: ArchiveLimits
) -> tuple[list[str], list[str], list[str]]:
    """Unpack the images and tables of a ZIP archive.

    Text (.txt) and JSON (.json) count as tables only if there is no image and no other table.

    Args:
        archive: The archive.
        name: What it is called in messages.
        folder: An empty folder.
        limits: Its limits.

    Returns:
        The images, the tables and the other files, which are left out; relative to the folder, in order.

    Raises:
        InvalidValueError: It is no archive, has an entry that is not unpacked safely, or exceeds a limit.
    """
    try:
        _require_short_list(archive, name, limits)
        with ZipFile(archive) as opened:
            entries = [entry for entry in opened.infolist() if not entry.is_dir()]
            require_safe_entries(entries, archive.stat().st_size, name, limits)
            visible = [entry for entry in entries if not _is_hidden(entry)]
            images = sorted(path for path in map(_path_of, visible) if path.lower().endswith(ENDINGS))
            named = sorted(path for path in map(_path_of, visible) if table_format(Path(path)) is not None)
            tables = [path for path in named if not path.lower().endswith(_SELDOM_TABLES)]
            tables = tables if tables or images else named
            chosen = {*images, *tables}
            left_out = sorted({*map(_path_of, visible)} - chosen)
            for entry in visible:
                if _path_of(entry) in chosen:
                    _unpack(opened, entry, folder, name)
    except (BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, struct.error, zlib.error) as error:
        if isinstance(error, InvalidValueError):
            raise
        raise InvalidValueError(
            f"{name} is not a ZIP archive that can be read: {_said(error)}; make it again and upload it again"
        ) from None
    except FileExistsError as error:
        raise InvalidValueError(
            f"{name} has two files of the name {shown(Path(error.filename).name)}; rename one of them"
        ) from None
    _require_images(folder, images, name)
    return images, tables, left_out


def require_safe_entries(entries: Sequence[ZipInfo], packed: int, name: str, limits: ArchiveLimits) -> None:
    """Raise an error if an archive has an unsafe entry, or exceeds a limit by the sizes that it states.

    Args:
        entries: The files in it.
        packed: Its size in bytes.
        name: What it is called in messages.
        limits: Its limits.

    Raises:
        InvalidValueError: With the entry or the limit.
    """
    if len(entries) > limits.entries:
        raise _too_many(name, limits)
    for entry in entries:
        # Not entry.filename: there, Python has replaced what some systems use between folders.
        written = entry.orig_filename
        path = PurePosixPath(written.replace("\\", "/"))
        drive = len(path.parts) > 0 and path.parts[0].endswith(":")
        if path.is_absolute() or drive or ".." in path.parts or not printable(written):
            raise InvalidValueError(
                f"{name} has a file with the path {shown(written)}, which is outside of a folder or cannot be written; "
                "make the archive again, from one folder"
            )
        if stat.S_ISLNK(entry.external_attr >> 16):
            raise InvalidValueError(f"{name} has the link {shown(written)}; put the file itself into the archive")
        if entry.flag_bits & 1:
            raise InvalidValueError(f"{name} is protected by a password; make it again without one")
    total = sum(entry.file_size for entry in entries)
    if total > limits.unpacked:
        raise _too_large(name, limits)
    if total > max(_SMALL, limits.ratio * packed):
        raise InvalidValueError(
            f"{name} unpacks to {total // max(1, packed):,} times its size, more than {limits.ratio}: this is no usual "
            "file; save it again and upload it again"
        )


def _require_short_list(archive: Path, name: str, limits: ArchiveLimits) -> None:
    """Raise an error if the list of contents is long, because Python reads all of it at once."""
    size = archive.stat().st_size
    with archive.open("rb") as file:
        file.seek(max(0, size - _LONGEST_END))
        end = file.read()
    at = end.rfind(_END)
    if at < 0:
        raise BadZipFile("it has no end")
    entries, listed = struct.unpack_from("<HI", end, at + 10)
    if entries > limits.entries or listed > limits.entries * _LISTED_BYTES:
        raise _too_many(name, limits)


def _too_many(name: str, limits: ArchiveLimits) -> InvalidValueError:
    return InvalidValueError(
        f"{name} has more than {limits.entries:,} files; make the project with the command suffice serve FOLDER instead"
    )


def _too_large(name: str, limits: ArchiveLimits) -> InvalidValueError:
    return InvalidValueError(
        f"{name} unpacks to more than {limits.unpacked / 2**20:,.0f} MiB; make the images smaller, or make the project "
        "with the command suffice serve FOLDER"
    )


def _path_of(entry: ZipInfo) -> str:
    """The path of an entry. Some programs write backslashes between folders."""
    return entry.filename.replace("\\", "/")


def _is_hidden(entry: ZipInfo) -> bool:
    return any(part.startswith(".") or part in _ADDED for part in PurePosixPath(_path_of(entry)).parts)


def _unpack(opened: ZipFile, entry: ZipInfo, folder: Path, name: str) -> None:
    """Write one file. Python reads no more bytes than the archive states, and verifies their checksum."""
    file = folder / _path_of(entry)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with opened.open(entry) as source, file.open("xb") as target:
            shutil.copyfileobj(source, target, _PART)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno is None or isinstance(error, BadZipFile):
            raise BadZipFile(_said(error)) from None
        raise InvalidValueError(
            f"the file {shown(entry.filename)} in {name} cannot be written: {os.strerror(error.errno)}; give it a "
            "shorter name, or make room on the disk"
        ) from None


def _require_images(folder: Path, images: Sequence[str], name: str) -> None:
    """Raise an error that names the first images that are none."""
    if not images:
        return
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtraError("Pillow", "label", "Reading images") from None
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for image in images:
            if not _is_image(Image, folder / image):
                wrong.append(image)
    if wrong:
        some = ", ".join(shortened(image, 80) for image in wrong[:_MOST_NAMED]) + ", ..." * (len(wrong) > _MOST_NAMED)
        raise InvalidValueError(
            f"{name}: {count(len(wrong), 'file')} of {len(images):,} {'is' if len(wrong) == 1 else 'are'} not "
            f"{'an image' if len(wrong) == 1 else 'images'} that can be read ({some}); images are {KINDS}, of at most "
            f"{MOST_PIXELS:,} pixels. Take {'it' if len(wrong) == 1 else 'them'} out and upload the archive again"
        )


def _is_image(pillow: Any, file: Path) -> bool:
    try:
        with pillow.open(file, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                return False
            image.verify()
    # Pillow's readers raise many classes of errors for a damaged file.
    except Exception:
        return False
    return True


def _said(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:200]
