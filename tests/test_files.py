"""Files that are written whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import SufficeError
from suffice.files import require_writable, write_bytes_whole, write_whole


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_bytes_come_back_as_they_are(first: bytes, second: bytes) -> None:
    path = Path("file.bin")
    for content in (first, second):
        write_bytes_whole(path, content)
        assert path.read_bytes() == content
        assert os.listdir() == ["file.bin"]


def fails(path: Path) -> None:
    path.write_bytes(b"half")
    raise OSError(28, "No space left on device")


def complains(path: Path) -> None:
    path.write_bytes(b"half")
    raise SufficeError(f"{path} cannot be written: it is full")


def breaks(path: Path) -> None:
    path.write_bytes(b"half")
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("write", "raised", "told"),
    [
        (fails, SufficeError, "file.txt cannot be written: No space left on device"),
        (complains, SufficeError, "file.txt cannot be written: it is full"),
        (breaks, KeyboardInterrupt, ""),
    ],
)
def test_what_is_cut_short_leaves_what_was_there(write: Callable[[Path], None], raised: Any, told: str) -> None:
    path = Path("file.txt")
    for before in (None, b"old"):
        if before is not None:
            path.write_bytes(before)
        with pytest.raises(raised) as error:
            write_whole(path, write)
        assert str(error.value) == told
        assert [each.read_bytes() for each in Path().iterdir()] == ([] if before is None else [before])


def test_a_link_stays_a_link() -> None:
    Path("real").write_bytes(b"old")
    Path("link").symlink_to("real")
    write_bytes_whole(Path("link"), b"new")
    assert Path("link").is_symlink()
    assert Path("real").read_bytes() == b"new"


def test_a_folder_that_is_missing_is_said() -> None:
    with pytest.raises(SufficeError, match=r"^nowhere/file cannot be written: No such file or directory$"):
        write_bytes_whole(Path("nowhere/file"), b"x")
    with pytest.raises(SufficeError, match=r"the rows cannot be saved to nowhere/file: the folder .*nowhere does not"):
        require_writable(Path("nowhere/file"), "the rows")


@pytest.mark.parametrize("path", ["taken", "/dev/full"])
def test_what_is_no_file_is_said(path: str) -> None:
    Path("taken").mkdir()
    if not Path(path).exists():
        pytest.skip(f"there is no {path} here")
    with pytest.raises(SufficeError, match=f"{path} cannot be written"):
        write_bytes_whole(Path(path), b"x")
