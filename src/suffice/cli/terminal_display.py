"""Texts and images in a terminal: control characters made visible, lines wrapped, two pixels to a character.

Images are read in the background, so that no key waits for them.
"""

import unicodedata
import warnings
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from dataclasses import dataclass
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from suffice.errors import MissingExtraError

# Characters that change the direction of writing, and could make a text look different.
_TURNING: Final = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)))
_LINE_ENDS: Final = {"\r\n": "\n", "\r": "\n", "\u2028": "\n", "\u2029": "\n", "\x85": "\n", "\t": "    "}
_PLAIN: Final = {
    "\u2026": "...",
    "\u00b7": "-",
    "\u2013": "-",
    "\u2014": "-",
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u00a0": " ",
}


def visible(text: str, encoding: str = "utf-8") -> str:
    r"""A text with every control character made visible, and with letters that the terminal has not replaced.

    Lines stay lines, and tabs become spaces.

    Args:
        text: Any text.
        encoding: The encoding of the terminal.

    Examples:
        >>> visible("a\x1b[31mb\r\nc\td")
        'a␛[31mb\nc    d'
        >>> visible("a\x1b\u202e…é", "ascii")
        'a^[?...?'
    """
    for end, newline in _LINE_ENDS.items():
        text = text.replace(end, newline)
    plain = not encoding.lower().replace("-", "").startswith("utf")
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    shown = "".join(_letter(letter, plain) for letter in text)
    if not plain:
        return shown
    for letter, instead in _PLAIN.items():
        shown = shown.replace(letter, instead)
    return shown.encode(encoding, "replace").decode(encoding)


def one_line(text: str, encoding: str = "utf-8") -> str:
    r"""A text on one line, as :func:`visible` shows it.

    Examples:
        >>> one_line("  two\n lines ")
        'two lines'
    """
    return " ".join(visible(text, encoding).split())


def _letter(letter: str, plain: bool) -> str:
    code = ord(letter)
    if letter == "\n":
        return letter
    if code < 32 or code == 127:
        # Unicode symbols of control characters, and their caret notation.
        return f"^{chr(code ^ 64)}" if plain else chr(0x2421 if code == 127 else 0x2400 + code)
    return "\ufffd" if letter in _TURNING or unicodedata.category(letter) in {"Cc", "Cs"} else letter


_UNBROKEN: Final = "\ue0a0"


@lru_cache(maxsize=256)
def wrapped(text: str, width: int) -> tuple[str, ...]:
    """A text broken into lines of a maximal number of columns, between words if possible.

    Examples:
        >>> wrapped("one two three", 8)
        ('one two', 'three')
    """
    # rich treats a no-break space like any other space.
    kept = text.replace("\u00a0", _UNBROKEN)
    lines = Text(kept).wrap(_console(), max(1, width), tab_size=4)
    return tuple(line.plain.rstrip().replace(_UNBROKEN, " ") for line in lines) or ("",)


@lru_cache(maxsize=1)
def _console() -> Console:
    # Only for its rules of wrapping; nothing is printed.
    return Console(file=StringIO(), width=80, legacy_windows=False)


# Maximal number of pixels along the longer side: more than a terminal can show.
_SIDE: Final = 256
_KEPT: Final = 16
_RAMP: Final = " .:-=+*#%@"


@dataclass(frozen=True, eq=False)
class Picture:
    """A reduced image.

    Attributes:
        size: Its true width and height.
        pixels: The small one, rows by columns by red, green and blue.
        problem: Why there is none, in words; empty where there is.
    """

    size: tuple[int, int] = (0, 0)
    pixels: NDArray[np.uint8] | None = None
    problem: str = ""


def read_picture(path: Path) -> Picture:
    """Read an image and reduce it; a problem is stated in the picture.

    Raises:
        MissingExtraError: Pillow is not installed.
    """
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise MissingExtraError("pillow", "label", "Showing images") from None
    from suffice.project.images import FORMATS

    try:
        with warnings.catch_warnings():
            # An image that decompresses to gigabytes is refused.
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=FORMATS) as image:
                size = image.size
                image.draft("RGB", (_SIDE, _SIDE))
                upright = ImageOps.exif_transpose(image)
                upright.thumbnail((_SIDE, _SIDE))
                small = upright.convert("RGBA")
                # Transparent pixels are drawn on grey, on which both black and white are visible.
                ground = Image.new("RGBA", small.size, (128, 128, 128, 255))
                ground.alpha_composite(small)
                pixels = np.asarray(ground.convert("RGB"))
    except FileNotFoundError:
        return Picture(problem="the file is not there")
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        return Picture(problem="it is too large to be shown")
    except Exception as error:  # a damaged image may fail in any way, and is no reason to stop
        return Picture(problem=f"it cannot be read: {str(error) or type(error).__name__}")
    return Picture(size, pixels)


class Pictures:
    """Pictures of a project, the newest kept.

    Args:
        root: The folder that they are in; nothing outside it is read.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="pictures")
        self._kept: OrderedDict[str, Future[Picture]] = OrderedDict()

    def get(self, name: str, timeout: float = 0.0) -> Picture | None:
        """The picture of a file, or None while it is loading.

        Args:
            name: The file, relative to the folder.
            timeout: Seconds to wait for it at most.
        """
        if name not in self._kept:
            self._kept[name] = self._pool.submit(self._read, name)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        try:
            return self._kept[name].result(timeout)
        except NotYetError:
            return None

    def close(self) -> None:
        """End the work in the background."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _read(self, name: str) -> Picture:
        try:
            root = self._root.resolve()
            path = (root / name).resolve()
            if not path.is_relative_to(root):
                return Picture(problem="it is outside the folder of the images")
            return read_picture(path)
        except (OSError, ValueError, MissingExtraError) as error:
            return Picture(problem=str(error))


def drawn(picture: Picture, width: int, height: int, *, plain: bool) -> list[Text]:
    """A picture as lines of text, no larger than it is.

    Args:
        picture: The picture; one without pixels has no lines.
        width: Columns to fill at most.
        height: Lines to fill at most.
        plain: Whether to draw with letters alone, without colours.
    """
    if picture.pixels is None or width < 1 or height < 1:
        return []
    rows, columns = picture.pixels.shape[:2]
    # A character is twice as high as wide, and holds two pixels.
    share = min(width / columns, 2 * height / rows, 1.0 if max(picture.size) > _SIDE else 4.0)
    wide, high = max(1, int(columns * share)), max(1, int(rows * share))
    small = _resized(picture.pixels, wide, high + high % 2)
    if plain:
        light = (small[::2].astype(np.float64) + small[1::2]).mean(axis=2) / 2.0
        levels = np.minimum(light / 256.0 * len(_RAMP), len(_RAMP) - 1).astype(int)
        return [Text("".join(_RAMP[level] for level in line)) for line in levels]
    return [_line(small[row], small[row + 1]) for row in range(0, len(small), 2)]


def _line(upper: NDArray[np.uint8], lower: NDArray[np.uint8]) -> Text:
    line = Text(no_wrap=True)
    for above, below in zip(upper.tolist(), lower.tolist(), strict=True):
        line.append("▀", Style(color=Color.from_rgb(*above), bgcolor=Color.from_rgb(*below)))
    return line


def _resized(pixels: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    """The mean colour of the area of each pixel; the nearest pixel if the image is enlarged."""
    rows, columns = pixels.shape[:2]
    if width > columns or height > rows:
        nearest: NDArray[np.uint8] = pixels[np.arange(height) * rows // height][:, np.arange(width) * columns // width]
        return nearest
    tops, lefts = np.arange(height) * rows // height, np.arange(width) * columns // width
    sums = np.add.reduceat(np.add.reduceat(pixels.astype(np.int64), tops, axis=0), lefts, axis=1)
    counts = np.diff(tops, append=rows)[:, None, None] * np.diff(lefts, append=columns)[None, :, None]
    means: NDArray[np.uint8] = (sums / counts).astype(np.uint8)
    return means
