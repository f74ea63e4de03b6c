"""Images: the files in a folder, their paths, and their features."""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np

from suffice.errors import InvalidValueError, MissingExtraError
from suffice.project.events import printable, shown
from suffice.tables.column_features import Features

#: File name extensions of images.
ENDINGS: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
_SIDE: Final = 16
_MOST: Final = 50
# With a difference of a colour above this, images are not the same.
_SAME_COLOURS: Final = 1e-5
#: Formats that are read. Others are refused, because some of Pillow's readers start programs.
FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
#: Pixels of an image. A file of a few kilobytes can decompress to gigabytes.
MOST_PIXELS: Final = 50_000_000
#: The extensions, for a sentence.
KINDS: Final = f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"


def found_images(folder: Path) -> tuple[list[str], int]:
    """Return the images in a folder, relative to it and in order, and how many other files there are."""
    root = folder.resolve()
    paths, others = [], 0
    for path in _files(folder):
        relative = path.relative_to(folder).as_posix()
        if not relative.lower().endswith(ENDINGS):
            others += 1
            continue
        if not printable(relative):
            raise InvalidValueError(f"the name of the image {relative!a} must be plain UTF-8 text; rename it")
        _inside(path, root, repr(relative))
        paths.append(relative)
    return sorted(paths), others


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, except hidden files and files in linked folders."""

    def refuse(error: OSError) -> None:
        raise InvalidValueError(f"the folder {error.filename} cannot be read: {error.strerror}") from None

    for place, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in files if not name.startswith("."))


def image_paths(folder: Path, cells: Sequence[str], place: Callable[[int], str]) -> list[str]:
    """Return paths of images relative to a folder, each of them a file in it.

    Args:
        folder: Folder of the table.
        cells: Paths in the table.
        place: Returns the position of a row in the table, for messages.

    Raises:
        InvalidValueError: A cell is empty, there is no such file, it is outside of the folder or no image by its name.
    """
    root = folder.resolve()
    paths = []
    for row, cell in enumerate(cells):
        try:
            paths.append(_image_path(root, cell.strip()))
        except InvalidValueError as error:
            raise InvalidValueError(f"{place(row)}: {error}") from None
    return paths


def _image_path(root: Path, cell: str) -> str:
    if not cell:
        raise InvalidValueError("there is no path of an image; give one, or take the line out")
    if not cell.lower().endswith(ENDINGS):
        raise InvalidValueError(f"the image {shown(cell)} must be a file named {KINDS}")
    # A table made on Windows has backslashes.
    path = next((root / text for text in (cell, cell.replace("\\", "/")) if os.path.exists(root / text)), root / cell)
    real = _inside(path, root, shown(cell))
    plain = path.relative_to(root) if path.is_relative_to(root) else real
    return (real if ".." in plain.parts else plain).as_posix()


def _inside(path: Path, root: Path, name: str) -> Path:
    """Return the path of a file relative to the root, after following links; files outside the root are refused."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise InvalidValueError(f"there is no image {name} in the folder {root}; correct the path") from None
    if not real.is_relative_to(root):
        remedy = "copy it into that folder"
        raise InvalidValueError(f"the image {name} lies outside of the folder {root}; {remedy}")
    if not real.is_file():
        raise InvalidValueError(f"the image {name} is not a file")
    return real.relative_to(root)


def image_transformer(folder: Path, count: int) -> Any:
    """Return a transformer of image paths to pixels and their largest principal components, at most 50.

    Args:
        folder: Folder that the paths are relative to.
        count: Number of images, for the note.
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    from suffice.tables.transformers import PrincipalComponents

    description = f"{count} images: {_SIDE} x {_SIDE} pixels and SVD"
    return make_pipeline(
        FunctionTransformer(image_pixels, kw_args={"folder": folder}),
        PrincipalComponents("image", description, _MOST),
    )


def pixel_features(folder: Path, paths: Sequence[str]) -> Features:
    """Reduce images to 16 x 16 pixels of three colours and their largest principal components, at most 50.

    Args:
        folder: Folder that contains them.
        paths: Relative to the folder.

    Raises:
        InvalidValueError: An image cannot be read; the message names it.
        MissingExtraError: Pillow is not installed.
    """
    transformer = image_transformer(folder, len(paths)).set_output(transform="default")
    X = transformer.fit_transform(np.array(paths, dtype=object))
    components = transformer[-1]
    return Features(X, tuple(components.get_feature_names_out().tolist()), components.notes(), transformer)


# Images that are compared with each other before features are computed.
_COMPARED: Final = 50


def require_images(folder: Path, paths: Sequence[str]) -> bool:
    """Raise an error for a file that is not an image, by its first bytes; return whether some images certainly differ.

    Args:
        folder: Folder that contains them.
        paths: Relative to the folder.

    Raises:
        InvalidValueError: A file is not an image; the message names it.
        MissingExtraError: Pillow is not installed.
    """
    pillow = _pillow()
    with warnings.catch_warnings(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        warnings.simplefilter("ignore")
        for _ in pool.map(lambda path: _read_image(pillow, folder / path, lambda _: None), paths):
            pass
    pixels = image_pixels(paths[:_COMPARED], folder)
    return bool(np.ptp(pixels, axis=0).max() > _SAME_COLOURS)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtraError("Pillow", "label", "Reading images") from None
    return Image


def image_pixels(paths: Sequence[str], folder: Path) -> Any:
    """Return the colours of images reduced to 16 x 16 pixels, ``n x 768``, from 0 to 1.

    Raises:
        InvalidValueError: An image cannot be read; the message names it.
        MissingExtraError: Pillow is not installed.
    """
    pillow = _pillow()

    def read(path: str) -> Any:
        return _pixels(pillow, folder / path)

    # Pillow warns about large images, and about damaged ones that it can still read.
    with warnings.catch_warnings(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        warnings.simplefilter("ignore")
        pixels = np.stack(list(pool.map(read, paths)))  # an error cancels the images that are not started
    return pixels.reshape(len(paths), -1)


def _pixels(pillow: Any, path: Path) -> Any:
    """Return the colours of a reduced image, ``16 x 16 x 3``, from 0 to 1."""
    return _read_image(pillow, path, lambda image: _reduced(pillow, image))


def _reduced(pillow: Any, image: Any) -> Any:
    whole, most = _coloured(pillow, image)
    small = whole.resize((_SIDE, _SIDE), pillow.Resampling.BOX, reducing_gap=2.0)
    colours = np.asarray(small, dtype=np.float32).reshape(_SIDE, _SIDE, -1) / np.float32(most)
    return np.broadcast_to(colours, (_SIDE, _SIDE, 3))


def _read_image(pillow: Any, path: Path, read: Callable[[Any], Any]) -> Any:
    """Return what a function returns for an open image.

    Raises:
        InvalidValueError: The image cannot be read; the message names it.
    """
    try:
        with pillow.open(path, formats=FORMATS) as image:
            # A JPEG can be decoded at reduced size, which is many times faster.
            image.draft("RGB", (4 * _SIDE, 4 * _SIDE))
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"it has {image.width:,} x {image.height:,} pixels, more than {MOST_PIXELS:,}")
            return read(image)
    # Pillow's readers raise many classes of errors for a damaged file.
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise InvalidValueError(f"the image {path} cannot be read: {why}; mend it, or take it out") from None


def _coloured(pillow: Any, image: Any) -> tuple[Any, float]:
    """Return an image as red, green and blue, or as grey of more than 8 bits, and its largest value."""
    if image.mode.startswith("I"):
        # Pillow's own conversion would keep the lowest 8 of 16 bits.
        return pillow.fromarray(np.asarray(image, dtype=np.float32)), 65535.0
    if image.has_transparency_data:
        # Transparent pixels are drawn on white, as on the page.
        over = image.convert("RGBA")
        image = pillow.alpha_composite(pillow.new("RGBA", over.size, "white"), over)
    return image.convert("RGB"), 255.0
