"""MNIST as it is distributed: four gzipped files of bytes."""

import gzip
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from suffice.data.checking import require_set
from suffice.data.folder import data_folder
from suffice.errors import InvalidValueError, SufficeError
from suffice.special import Floats

_FILES = {
    "train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
}


class Digits(NamedTuple):
    """Handwritten digits: images (``n x 28 x 28``, from 0 to 1, single precision) and what they show (``n``)."""

    images: Floats
    labels: Any


def mnist_folder(folder: Path | None = None) -> Path:
    """Return where the four files lie, for :func:`read_mnist`, once the checksum of each is found right.

    Args:
        folder: The data folder; :func:`suffice.data.folder.data_folder` if left out.

    Raises:
        MissingDataError: A file is not there; the message says how to get it.
        CorruptDataError: A file is not what it should be.
    """
    place = data_folder() if folder is None else folder
    require_set("mnist", place)
    return place / "mnist"


def read_mnist(folder: Path | str, part: str = "train") -> Digits:
    """Read the 60,000 images to learn from (``part="train"``) or the 10,000 to test on (``part="test"``).

    Args:
        folder: Where the four files lie.
        part: Which of the two.

    Raises:
        SufficeError: A file is not there.
        InvalidValueError: A file that is not what its name says.

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
