"""MNIST from its files: the real ones where they are, small ones made here, and broken ones."""

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suffice.errors import InvalidValueError, SufficeError
from suffice_research.data.set_readers import read_mnist

DATA = os.environ.get("SUFFICE_DATA")
NAMES = {"train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")}
NAMES["test"] = ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
IMAGES = np.random.default_rng(0).integers(0, 256, size=(7, 28, 28), dtype=np.uint8)
LABELS = np.array([5, 0, 4, 1, 9, 2, 1], dtype=np.uint8)


def idx(array: Any) -> bytes:
    sizes = np.array(array.shape, dtype=">u4").tobytes()
    return bytes([0, 0, 8, array.ndim]) + sizes + bytes(array.tobytes())


def folder(path: Path, part: str = "train", images: Any = IMAGES, labels: Any = LABELS) -> Path:
    for name, array in zip(NAMES[part], (images, labels), strict=True):
        (path / name).write_bytes(gzip.compress(array if isinstance(array, bytes) else idx(array)))
    return path


@pytest.mark.one_in(2)
@pytest.mark.skipif(DATA is None, reason="MNIST: SUFFICE_DATA is not set")
@pytest.mark.parametrize(("part", "size", "counts"), [("test", 10_000, (980, 1009)), ("train", 60_000, (5923, 5949))])
def test_the_real_files(part: str, size: int, counts: tuple[int, int]) -> None:
    digits = read_mnist(Path(DATA or "") / "mnist", part)
    assert digits.images.shape == (size, 28, 28)
    assert digits.images.dtype == np.float32
    assert (digits.images.min(), digits.images.max()) == (0.0, 1.0)
    found = np.bincount(digits.labels, minlength=10)
    assert (len(found), int(found.sum())) == (10, size)
    # How many show a 0 and a 9, as published; and the first image of each part.
    assert (found[0], found[9]) == counts
    assert digits.labels[0] == (5 if part == "train" else 7)
    assert digits.images.mean() == pytest.approx(0.1307 if part == "train" else 0.1325, abs=1e-4)


@pytest.mark.parametrize("part", ["train", "test"])
def test_small_files(part: str, tmp_path: Path) -> None:
    digits = read_mnist(str(folder(tmp_path, part)), part)
    np.testing.assert_array_equal(digits.labels, LABELS)
    np.testing.assert_array_equal((digits.images * 255.0).round().astype(np.uint8), IMAGES)
    assert digits.images.max() <= 1.0
    # The caller's own: they can be written to.
    digits.images[0], digits.labels[0] = 0.0, 0


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    folder(tmp_path)
    with pytest.raises(SufficeError, match=r"t10k-images-idx3-ubyte\.gz is missing; MNIST is the four files"):
        read_mnist(tmp_path, "test")
    (tmp_path / NAMES["train"][1]).unlink()
    with pytest.raises(SufficeError, match=r"train-labels-idx1-ubyte\.gz is missing"):
        read_mnist(tmp_path)
    with pytest.raises(SufficeError, match="missing"):
        read_mnist(tmp_path / "nowhere")
    with pytest.raises(InvalidValueError, match="part must be train or test, not 'validation'"):
        read_mnist(tmp_path, "validation")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not begin as one"),
        (b"\x00\x00\x08", "does not begin as one"),
        (b"hello, this is text", "does not begin as one"),
        (idx(IMAGES)[:-1], "cut short"),
        (idx(IMAGES) + b"\x00", "cut short|bytes"),
        (idx(IMAGES)[:9], "cut short"),
        (idx(IMAGES)[:4], "cut short"),
        (bytes([0, 0, 8, 200]) + idx(IMAGES)[4:40], "does not begin as one"),
        (idx(IMAGES.reshape(7, 784)), "do not match"),
        (idx(IMAGES[:6]), "do not match"),
    ],
    ids=[
        "empty",
        "three bytes",
        "text",
        "a byte less",
        "a byte more",
        "half a header",
        "no sizes",
        "many axes",
        "flat",
        "six",
    ],
)
def test_content_that_is_not_what_its_name_says(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=message):
        read_mnist(folder(tmp_path, images=content))


@pytest.mark.parametrize("damage", ["no gzip", "cut", "checksum", "garbled", "folder"])
def test_files_that_cannot_be_read(damage: str, tmp_path: Path) -> None:
    path = folder(tmp_path) / NAMES["train"][0]
    whole = path.read_bytes()
    if damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        broken = {
            "no gzip": b"not a gzip file at all",
            "cut": whole[: len(whole) // 2],
            "checksum": whole[:-8] + bytes(4) + whole[-4:],
            "garbled": whole[:10] + bytes([byte ^ 0xFF for byte in whole[10:60]]) + whole[60:],
        }
        path.write_bytes(broken[damage])
    with pytest.raises(InvalidValueError, match=r"train-images-idx3-ubyte\.gz cannot be read"):
        read_mnist(tmp_path)
