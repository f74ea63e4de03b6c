"""The common style of the figures: colours, axes, and reproducible files."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from warnings import catch_warnings, filterwarnings

import numpy as np

from suffice.errors import MissingExtraError, SufficeError
from suffice.files import write_bytes_whole
from suffice.numerics import Floats
from suffice.presentation.text_format import thinned_positions

INK: Final = "#1f2933"
MUTED: Final = "#7b8794"
GRID: Final = "#e4e7eb"

#: A curve of more points than this looks the same with fewer.
_MOST_POINTS: Final = 600
#: Errors that differ by more than this factor are drawn on a logarithmic axis.
_LOGARITHMIC_FROM: Final = 20.0
#: Dots an inch of a PNG.
DPI: Final = 150


@dataclass(frozen=True)
class Drawn:
    """A figure in its files.

    Attributes:
        name: Of the files, without their endings.
        title: What it shows.
        caption: How to read it.
        alt: What one would see, in words.
        png: The file for a page.
        pdf: The file for a paper.
    """

    name: str
    title: str
    caption: str
    alt: str
    png: Path
    pdf: Path


@dataclass(frozen=True)
class Sketch:
    """A figure that is not yet in a file; the attributes are those of :class:`Drawn`."""

    name: str
    title: str
    caption: str
    alt: str
    figure: Any

    def save(self, folder: Path) -> Drawn:
        """Write both files, each whole or not at all; the same figure gives the same bytes.

        Raises:
            SufficeError: A file cannot be written.
        """
        png, pdf = folder / f"{self.name}.png", folder / f"{self.name}.pdf"
        # Laid out once, and not again for each form.
        self.figure.draw_without_rendering()
        self.figure.set_layout_engine("none")
        # What a file would tell of its making (the day, the release of the library) changes from one to the next.
        _write(self.figure, png, {"Software": None}, dpi=DPI)
        _write(self.figure, pdf, {"CreationDate": None, "Creator": None, "Producer": None})
        return Drawn(self.name, self.title, self.caption, self.alt, png, pdf)


def draw_all(sketches: Iterable[Sketch], folder: Path, purpose: str = "the report") -> list[Drawn]:
    """Draw figures, each as PNG and as PDF. The same figures give the same bytes.

    Args:
        sketches: Makes the figures one after the other, as they are asked for: in :func:`plain_style`.
        folder: Folder for the files, created if missing.
        purpose: What needs the figures, for an error.

    Raises:
        MissingExtraError: matplotlib is not installed.
        SufficeError: A file cannot be written.
    """
    require_matplotlib(purpose)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SufficeError(f"the folder {folder} cannot be made: {error.strerror or error}") from None
    with plain_style():
        return [each.save(folder) for each in sketches]


def require_matplotlib(purpose: str = "the report") -> None:
    """Say before the runs, rather than after them, that figures cannot be drawn.

    Args:
        purpose: What needs them, as the subject of the sentence.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import_module("matplotlib")
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", purpose) from None


@contextmanager
def plain_style() -> Iterator[None]:
    """Draw in the same way on every machine, independent of the user's style."""
    from matplotlib import style

    small = {"font.size": 9, "axes.titlesize": 9.5, "axes.labelsize": 9, "xtick.labelsize": 8, "ytick.labelsize": 8}
    inks = dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK)
    frame = {"axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": MUTED, "legend.frameon": False}
    with catch_warnings(), style.context(["default", {**small, **inks, **frame, "axes.titlelocation": "left"}]):
        # A letter that the font lacks becomes a box; that is no news worth a line on the terminal.
        filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


def new_figure(width: float, height: float) -> Any:
    """An empty figure, in inches."""
    from matplotlib.figure import Figure

    # Laid out at the resolution that it is saved at: letters are not equally wide at every one.
    figure: Any = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    # What is written beside one panel must not run into what is written beside the next.
    figure.get_layout_engine().set(w_pad=0.13, h_pad=0.06)
    return figure


def literal(text: str) -> str:
    """The text with dollar signs that start no formula."""
    return text.replace("$", r"\$")


def thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """A curve with at most 600 points that looks the same.

    Examples:
        >>> x, y = thinned(np.arange(8000.0), np.arange(8000.0) % 7.0)
        >>> len(x) <= 600, y.min(), y.max()
        (True, np.float64(0.0), np.float64(6.0))
    """
    kept = thinned_positions(y, _MOST_POINTS)
    return x[kept], y[kept]


def scale_errors(axis: Any, curves: Sequence[Floats]) -> None:
    """Choose a logarithmic axis where errors differ by much, and name its ticks plainly."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    values = np.concatenate(curves)
    values = values[np.isfinite(values)]
    if not len(values) or values.min() <= 0.0 or values.max() < _LOGARITHMIC_FROM * values.min():
        return
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(numticks=6))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    # Between powers of ten only where there are few of them.
    few = values.max() < 100.0 * values.min()
    axis.yaxis.set_minor_locator(LogLocator(subs=(2.0, 5.0) if few else "auto", numticks=12))
    axis.yaxis.set_minor_formatter(StrMethodFormatter("{x:g}") if few else NullFormatter())


def few_ticks(*sides: Any, most: int = 5) -> None:
    """Leave room between the names of the ticks on an x or y axis, and let them be round numbers."""
    from matplotlib.ticker import MaxNLocator

    for side in sides:
        side.set_major_locator(MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10]))


def say_beside(axis: Any, words: str, y: float, *, size: float = 7.0) -> None:
    """Write to the right of the axes, where nothing is drawn, at a height in data."""
    style: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    axis.annotate(words, (1.0, y), xytext=(8, 0), va="center_baseline", fontsize=size, color=INK, **style)


def _write(figure: Any, path: Path, metadata: dict[str, None], **options: Any) -> None:
    content = BytesIO()
    figure.savefig(content, format=path.suffix[1:], metadata=metadata, **options)
    write_bytes_whole(path, content.getvalue())
