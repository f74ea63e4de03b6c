"""Sentences of the report of a project."""

from collections.abc import Mapping
from typing import Any, Final

from suffice.presentation.text_format import count, duration, number, percent, shortened, two_digits, utc_time

NOT_GUARANTEED: Final = (
    "The error. It is an estimate, and what more labels would bring is extrapolated from how the error fell so far.",
    "That any single prediction is correct. The error says how many are wrong, or by how much, but not which.",
    "That the labels are correct. The model also learns mistakes that people repeat.",
    "That the model is as good on other items. All statements are about the items of this data.",
    "That no other model is better. Only a few are compared.",
)


def not_guaranteed(guarantee: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Statements that are not guaranteed.

    Args:
        guarantee: As for :func:`guarantee_sentences`; None if there is none.
    """
    if guarantee is None:
        return NOT_GUARANTEED
    error = "The estimated error. Only the bound of the check is guaranteed; what more labels bring is extrapolated."
    other = "The predictions of another model. When the model learns more labels, the new one has to be checked."
    return error, other, *NOT_GUARANTEED[1:]


def summary_tiles(status: Mapping[str, Any], *, seconds: float | None) -> list[tuple[str, str]]:
    """The main numbers of a project, each with its name; the error first.

    Args:
        status: The status of the project.
        seconds: Typical time for a label, or None.
    """
    done, size, left, decision = (status[name] for name in ("n_labelled", "size", "left", "decision"))
    skipped = f", {status['n_skipped']:,} skipped" if status["n_skipped"] else ""
    tiles = [(decision["error_figure"], decision["error_note"])] if decision["error_figure"] else []
    held = f"; {status['held']:,} of them in the check, not learned yet" if status.get("held") else ""
    tiles.append((f"{done:,}", f"of {size:,} items labelled ({percent(done / size)}){skipped}{held}"))
    more, forecast = "", decision["forecast"]
    if decision["answer"] in ("enough", "limit") and left:
        tiles.append((f"{left:,}", "items without a label: the model predicts them"))
        more, labels = "to label these too", left
    elif forecast is not None and forecast["labels"] < decision["unlabelled"]:
        labels, low, high = (two_digits(forecast[name]) for name in ("labels", "low", "high"))
        until = f"more labels until they are not worth their cost, extrapolated ({low:,} to {high:,})"
        tiles.append((f"{labels:,}", until))
        more = "for these labels"
    if more and seconds is not None:
        tiles.append((duration(labels * seconds), f"{more}, at {seconds:.2g} seconds a label as so far"))
    agreement = status["agreement"]
    if agreement is not None and agreement["difference"] is None:
        same = f"{agreement['same']:,} of {agreement['both']:,}"
        tiles.append((same, "items of several people got the same label from all"))
    elif agreement is not None:
        what = f"average difference between two people, on {count(agreement['both'], 'item')}"
        tiles.append((number(agreement["difference"]), what))
    return tiles


def given_and_imported(given: int, first: str, last: str, *, imported: int, source: str) -> str:
    """Number and time of the labels that people gave, and number of labels in the data.

    Args:
        given: Labels that people gave.
        first: Time of the first, in ISO format; not used if there is none.
        last: Time of the last.
        imported: Labels in the data.
        source: Name of the data.
    """
    sentences = []
    if given:
        start, end = utc_time(first), utc_time(last)
        span = f"on {start}" if start == end else f"from {start} to {end}"
        sentences.append(f"{count(given, 'label')} {'was' if given == 1 else 'were'} given {span}.")
    if imported:
        sentences.append(f"{count(imported, 'label')} came with the data ({shortened(source)}).")
    return " ".join(sentences)


def corrections_and_skips(corrected: int, skipped: int) -> str:
    """Numbers of corrected labels and skipped items; empty if there are none.

    Examples:
        >>> corrections_and_skips(1, 2)
        '1 label was corrected. 2 items were skipped.'
    """
    counts = [(corrected, "label", "corrected"), (skipped, "item", "skipped")]
    return " ".join(f"{count(n, noun)} {'was' if n == 1 else 'were'} {verb}." for n, noun, verb in counts if n)


def not_started_sentence(initial: int, size: int) -> str:
    """Note about the start of the rule."""
    first = count(min(initial, size), "label")
    return f"The model starts after the first {first}, of items drawn at random. Then the rule is applied."
