"""The figure of one labelling run: the error, and the stop of the rule."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from textwrap import fill
from typing import Any, Literal
from warnings import catch_warnings, filterwarnings

from suffice.errors import InvalidValueError, MissingExtraError, SufficeError

_FORMATS = frozenset({".png", ".pdf", ".svg"})
#: What the share of wrong predictions is called on the axis.
WRONG_SHARE_NAME = "share of the test items predicted wrong"
_INK, _MUTED, _STOP, _LINE = "#1f2933", "#9aa5b1", "#c2410c", "#1d4ed8"


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
    """Say before a run, rather than after it, what would keep the figure from being written.

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
    try:
        import_module("matplotlib")
    except ImportError:
        raise MissingExtraError("matplotlib", "plot", "the figure") from None


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
    axes[-1].set_xlabel("labels", color=_INK)
    _set_title(axes[0], curves.title, pad=6.0 if measured else 20.0)
    if measured and compared:
        axes[-1].set_title(_reason(curves), color=_INK, fontsize=9, loc="left")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(colors=_INK, which="both")
        if curves.stop is not None:
            axis.axvline(curves.n_labelled[curves.stop], color=_STOP, lw=1.2)
    try:
        with catch_warnings():
            # A letter that the font lacks becomes a box; that is no news worth a line on the terminal.
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
    axis.axhline(curves.error[-1], color=_MUTED, ls=":", lw=1.2)
    name = fill(curves.error_name, 32)
    axis.set_ylabel(name, color=_INK, fontsize=9 if "\n" in name else None)
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
    axis.set_title(shown, color=_INK, fontsize=11, loc="left", pad=pad, parse_math=False)


def _draw_value(axis: Any, curves: RunCurves) -> None:
    from matplotlib.ticker import LogFormatter, StrMethodFormatter

    thresholds = [curves.threshold] if isinstance(curves.threshold, float | int) else curves.threshold
    if curves.scale == "ratio":
        _draw_ratio(axis, curves, thresholds[0])
    else:
        _two_tone(axis, curves, curves.value, lw=1.5)
        axis.set_yscale(curves.scale)
        axis.set_ylabel(fill(curves.value_name, 24), color=_INK)
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
    # What happens far below the threshold is of no interest and would flatten the rest.
    above = [v for v in curves.value if v > 0.0] or [1.0]
    bottom = 0.5 * max(min(*above, threshold or 1.0), threshold / 20.0, 1e-6)
    # The name of the threshold is below its line, and needs a share of the height.
    room = threshold * (threshold / max(*above, 1.0)) ** 0.15
    axis.set_ylim(bottom=min(bottom, room or bottom))
    axis.set_ylabel(f"{curves.value_name}\nand its minimum so far", color=_INK)


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
    axis.plot(curves.n_labelled[stop - 1 :], series[stop - 1 :], color=_MUTED, **style)
