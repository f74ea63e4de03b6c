"""Figures: their common style (colours, axes, reproducible files), and the figure of one labelling run."""

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from itertools import accumulate
from pathlib import Path
from textwrap import fill
from typing import Any, Final, Literal
from warnings import catch_warnings, filterwarnings

import numpy as np

from suffice.errors import InvalidValueError, MissingExtraError, SufficeError
from suffice.files import write_bytes_whole
from suffice.numerics import Floats
from suffice.presentation.text_format import thinned_positions

INK: Final = "#1f2933"
MUTED: Final = "#7b8794"
GRID: Final = "#e4e7eb"

#: Maximal number of points of a curve; more points make no visible difference.
_MOST_POINTS: Final = 600
#: Errors that differ by more than this factor are drawn on a logarithmic axis.
_LOGARITHMIC_FROM: Final = 20.0
#: Resolution of a PNG in dots per inch.
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
        """Write both files, each completely or not at all; the same figure gives the same bytes.

        Raises:
            SufficeError: A file cannot be written.
        """
        png, pdf = folder / f"{self.name}.png", folder / f"{self.name}.pdf"
        # Laid out once, and not again for each form.
        self.figure.draw_without_rendering()
        self.figure.set_layout_engine("none")
        # Without metadata (date, version of the library), so that files are reproducible.
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
    """Raise an error before the runs if figures cannot be drawn.

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
        # A character that the font lacks becomes a box; the warning about it is suppressed.
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


_FORMATS = frozenset({".png", ".pdf", ".svg"})
#: What the share of wrong predictions is called on the axis.
WRONG_SHARE_NAME = "share of the test items predicted wrong"
_LIGHT, _STOP, _LINE = "#9aa5b1", "#c2410c", "#1d4ed8"


@dataclass(frozen=True)
class RunCurves:
    """The data to draw.

    Attributes:
        title: Heading.
        n_labelled: Labels bought, one entry a step, to the end of the run.
        error: Error on the test set at each step; empty where there is none, and then nothing is drawn of it.
        error_name: What that error is, for the axis.
        value: What the rule compared with its threshold; NaN where there was nothing to compare, and where there never
            was, nothing is drawn of it.
        value_name: What that value is, for the axis.
        threshold: The threshold; or, where it is another at every step, all of them.
        stop: Index of the step at which the rule stopped, or None.
        complete: Whether the run went to the end of the pool.
        scale: ``ratio`` for the error ratio, whose minimum so far is drawn too, on a log scale that ends a little below
            the threshold; ``log`` or ``linear`` for any other number.
        threshold_name: What the threshold is called.
        error_is_share: Whether the error is a share, shown in percent.
        guarantee: The error that a check after the stop guarantees, as it is shown; empty without one.
    """

    title: str
    n_labelled: Sequence[int]
    error: Sequence[float]
    error_name: str
    value: Sequence[float]
    value_name: str
    threshold: float | Sequence[float]
    stop: int | None
    complete: bool = True
    scale: Literal["ratio", "log", "linear"] = "ratio"
    threshold_name: str = "threshold"
    error_is_share: bool = False
    guarantee: str = ""


def require_writable_figure(path: Path) -> None:
    """Raise an error before a run if the figure could not be written.

    Raises:
        InvalidValueError: The file's ending is not one that can be drawn.
        SufficeError: The path is a folder, or its folder does not exist or cannot be written to.
        MissingExtraError: matplotlib is not installed.
    """
    folder = path.absolute().parent
    if path.is_dir():
        raise SufficeError(f"the figure cannot be written to {path}: it is a folder")
    if path.suffix.lower() not in _FORMATS:
        raise InvalidValueError(f"the figure {path} must end in {', '.join(sorted(_FORMATS))}")
    if not folder.is_dir():
        raise SufficeError(f"the figure cannot be written to {path}: the folder {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise SufficeError(f"the figure cannot be written to {path}: the folder {folder} is read-only")
    require_matplotlib("the figure")


def draw_run(curves: RunCurves, path: Path) -> None:
    """Draw the run to a file: error above where there is one, the rule's value below, on one axis of labels.

    Raises:
        SufficeError: The file cannot be written, or there is nothing to draw.
    """
    from matplotlib.figure import Figure

    measured, compared = len(curves.error) > 0, not all(map(math.isnan, curves.value))
    if not measured and not compared:
        raise SufficeError("there is nothing to draw: no error was measured, and the rule compared no number")
    figure = Figure(figsize=(7.2, 4.8 if measured and compared else 3.2), layout="constrained")
    axes = figure.subplots(measured + compared, 1, sharex=True, squeeze=False)[:, 0]
    if measured:
        _draw_error(axes[0], curves)
    else:
        _say_stop_above(axes[0], curves)
    if compared:
        _draw_value(axes[-1], curves)
    axes[-1].set_xlabel("labels", color=INK)
    _set_title(axes[0], curves.title, pad=6.0 if measured else 20.0)
    if measured and compared:
        axes[-1].set_title(_reason(curves), color=INK, fontsize=9, loc="left")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(colors=INK, which="both")
        if curves.stop is not None:
            axis.axvline(curves.n_labelled[curves.stop], color=_STOP, lw=1.2)
    try:
        with catch_warnings():
            # A character that the font lacks becomes a box; the warning about it is suppressed.
            filterwarnings("ignore", "Glyph .* missing from", UserWarning)
            figure.savefig(path, dpi=150)
    except OSError as error:
        raise SufficeError(f"the figure cannot be written to {path}: {error.strerror or error}") from None


def _reason(curves: RunCurves) -> str:
    """What the lower part shows."""
    line = f"why it {'stopped' if curves.stop is not None else 'did not stop'}: {curves.value_name} and"
    line += f" {curves.threshold_name}"
    return line if len(line) <= 90 else f"{line[:87]}..."


def _draw_error(axis: Any, curves: RunCurves) -> None:
    from matplotlib.ticker import PercentFormatter

    def shown(error: float) -> str:
        return f"{100.0 * error:.3g}\u00a0%" if curves.error_is_share else f"{error:.3g}"

    _two_tone(axis, curves, curves.error, lw=1.5)
    if curves.error_is_share:
        axis.yaxis.set_major_formatter(PercentFormatter(1.0, symbol="\u00a0%"))
    axis.axhline(curves.error[-1], color=_LIGHT, ls=":", lw=1.2)
    name = fill(curves.error_name, 32)
    axis.set_ylabel(name, color=INK, fontsize=9 if "\n" in name else None)
    end = f"all {curves.n_labelled[-1]}" if curves.complete else f"{curves.n_labelled[-1]} labels"
    all_labels = f"with {end}: {shown(curves.error[-1])}"
    if curves.stop is None:
        # With no stop to point at, the words are at the end, where the curve is low.
        text, n = f"no stop\n{all_labels}", curves.n_labelled[-1]
    else:
        n = curves.n_labelled[curves.stop]
        text = f"stop at {n} labels: {shown(curves.error[curves.stop])}\n{all_labels}"
        if curves.guarantee:
            text += f"\nguaranteed for the unlabelled items: at most {curves.guarantee}"
    # The error falls to the right, so the upper right is free; a stop in the last part is described on its left.
    late = n > 0.65 * curves.n_labelled[-1]
    axis.annotate(
        text,
        (n, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-6 if late else 6, -4),
        textcoords="offset points",
        ha="right" if late else "left",
        va="top",
        color=_STOP,
        fontsize=9,
    )


def _say_stop_above(axis: Any, curves: RunCurves) -> None:
    """Write over the axis where the rule stopped: inside, the value may go up to the top anywhere."""
    n = curves.n_labelled[curves.stop or 0]
    text = "no stop" if curves.stop is None else f"stop at {n} labels"
    where = "left" if n < 0.15 * curves.n_labelled[-1] else "right" if n > 0.85 * curves.n_labelled[-1] else "center"
    style: dict[str, Any] = {"textcoords": "offset points", "va": "bottom", "color": _STOP, "fontsize": 9}
    axis.annotate(text, (n, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 3), ha=where, **style)


def _set_title(axis: Any, title: str, *, pad: float) -> None:
    line = " ".join(title.split())
    shown = line if len(line) <= 80 else f"{line[:77]}..."
    # A name out of somebody's file is shown as it is: a dollar sign starts no formula.
    axis.set_title(shown, color=INK, fontsize=11, loc="left", pad=pad, parse_math=False)


def _draw_value(axis: Any, curves: RunCurves) -> None:
    from matplotlib.ticker import LogFormatter, StrMethodFormatter

    thresholds = [curves.threshold] if isinstance(curves.threshold, float | int) else curves.threshold
    if curves.scale == "ratio":
        _draw_ratio(axis, curves, thresholds[0])
    else:
        _two_tone(axis, curves, curves.value, lw=1.5)
        axis.set_yscale(curves.scale)
        axis.set_ylabel(fill(curves.value_name, 24), color=INK)
        # The name of the threshold is below its line, and needs a share of the height.
        axis.margins(y=0.15)
    if curves.scale != "linear":
        axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        # Between powers of ten only where there are few of them, and plainly too.
        axis.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))
    if len(thresholds) > 1:
        axis.plot(curves.n_labelled, thresholds, color=_STOP, ls="--", lw=1.0)
        _name_threshold(axis, curves, (thresholds[0], thresholds[-1]), "")
    elif curves.scale != "ratio" or thresholds[0] != 0.0:
        axis.axhline(thresholds[0], color=_STOP, ls="--", lw=1.0)
        _name_threshold(axis, curves, (thresholds[0], thresholds[0]), f" {thresholds[0]:g}")


def _draw_ratio(axis: Any, curves: RunCurves, threshold: float) -> None:
    _two_tone(axis, curves, curves.value, lw=0.7, alpha=0.6)
    _two_tone(axis, curves, list(accumulate(curves.value, min)), lw=1.8)
    axis.set_yscale("log")
    # The axis is cut far below the threshold, because smaller values would flatten the rest.
    above = [v for v in curves.value if v > 0.0] or [1.0]
    bottom = 0.5 * max(min(*above, threshold or 1.0), threshold / 20.0, 1e-6)
    # The name of the threshold is below its line, and needs a share of the height.
    room = threshold * (threshold / max(*above, 1.0)) ** 0.15
    axis.set_ylim(bottom=min(bottom, room or bottom))
    axis.set_ylabel(f"{curves.value_name}\nand its minimum so far", color=INK)


def _name_threshold(axis: Any, curves: RunCurves, ends: tuple[float, float], shown: str) -> None:
    """Write what the dashed line is at its left end, unless the line of the stop would go through it."""
    early = curves.stop is not None and curves.n_labelled[curves.stop] < 0.25 * curves.n_labelled[-1]
    axis.annotate(
        f"{curves.threshold_name}{shown}",
        (float(early), ends[early]),
        xycoords=("axes fraction", "data"),
        xytext=(-6 if early else 6, -4),
        textcoords="offset points",
        ha="right" if early else "left",
        va="top",
        color=_STOP,
        fontsize=9,
        bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.0}
        if early or curves.scale != "ratio"
        else None,
    )


def _two_tone(axis: Any, curves: RunCurves, series: Sequence[float], **style: float) -> None:
    """Draw a series in full colour up to the stop, and muted from there on."""
    stop = len(series) if curves.stop is None else curves.stop + 1
    axis.plot(curves.n_labelled[:stop], series[:stop], color=_LINE, **style)
    axis.plot(curves.n_labelled[stop - 1 :], series[stop - 1 :], color=_LIGHT, **style)
