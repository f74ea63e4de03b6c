"""Sentences of ``suffice audit``."""

from collections.abc import Sequence

from suffice.presentation.error_words import error_value
from suffice.presentation.text_format import count, duration, number


def audit_headline(labels: int | None, rows: int, reason: str) -> str:
    """Result of an audit.

    Args:
        labels: Labels at the stop; None if there was none.
        rows: Labels in all.
        reason: Reason of the verdict there, or at the end.

    Examples:
        >>> audit_headline(143, 500, "1 more label was worth less than it costs")
        'Labelling could have stopped at 143 of 500 labels: 1 more label was worth less than it costs.'
    """
    if labels is None:
        return f"Not enough within all {rows:,} labels: {reason}."
    return f"Labelling could have stopped at {labels:,} of {rows:,} labels: {reason}."


def audit_error_sentence(error: float, at_end: float | None, rows: int, *, share: bool) -> str:
    r"""The error on the rows after the stop: of the model at the stop, and of one with all other labels.

    Examples:
        >>> audit_error_sentence(0.081, 0.069, 357, share=True).replace("\xa0", " ")
        'On the 357 rows labelled after that: 8.1 % predicted wrong at the stop, 6.9 % with all other labels.'
    """
    kind = " predicted wrong" if share else ""
    lead = f"On the {count(rows, 'row')} labelled after that{'' if share else ', typical error (root mean square)'}"
    end = "" if at_end is None else f", {error_value(at_end, share=share)} with all other labels"
    return f"{lead}: {error_value(error, share=share)}{kind} at the stop{end}."


def audit_orders_sentences(stops: Sequence[int | None], errors: Sequence[float], *, share: bool) -> list[str]:
    r"""Dependence of the stop on the order of the rows.

    Args:
        stops: Labels at the stop in each order; None if there was none.
        errors: The error on the rows after the stop, for the orders with a stop and such rows.
        share: Whether errors are shares of wrong predictions.

    Examples:
        >>> audit_orders_sentences([120, 143, 180], [0.07, 0.08, 0.1], share=True)[0].replace("\xa0", " ")
        'In 3 random orders of the same rows: stop at 120 to 180 labels, with 7 to 10 % of the later rows predicted wrong.'
    """  # noqa: E501 - one sentence
    reached = [stop for stop in stops if stop is not None]
    orders = f"In {count(len(stops), 'random order')} of the same rows"
    if not reached:
        return [f"{orders}: no stop."]
    low, high = min(reached), max(reached)
    sentence = f"{orders}: stop at {low:,}{'' if low == high else f' to {high:,}'} labels"
    if errors:
        ends = sorted((min(errors), max(errors)))
        if share:
            first, last = (f"{100.0 * error:.2g}" for error in ends)
            span = f"{first} %" if first == last else f"{first} to {last} %"
            sentence += f", with {span} of the later rows predicted wrong"
        else:
            first, last = (number(error) for error in ends)
            sentence += f", with an error of {first if first == last else f'{first} to {last}'} on the later rows"
    never = len(stops) - len(reached)
    return [f"{sentence}.", *([f"In {never} of them there was no stop."] if never else [])]


def unlike_random_sentence() -> str:
    """Note that the stop or its error in the order of the file differs from that in random orders."""
    return "The order of the file is unlike a random one, which matters here: check whether the file is sorted."


def orders_skipped_sentence(orders: int, seconds: float) -> str:
    """Note that other orders were not measured because of the time."""
    return (
        f"How much this depends on the order was not measured: {count(orders, 'other order')} would take "
        f"{duration(seconds)}; request them with --orders {orders}."
    )


def unseen_classes_sentence(unmet: int, classes: int, *, stopped: bool) -> str:
    """Warning of an audit that some classes have no label among those that the statement is about.

    Args:
        unmet: Number of these classes.
        classes: Number of all classes.
        stopped: Whether the labels are those before a stop; otherwise all labels that were used.

    Examples:
        >>> unseen_classes_sentence(1, 3, stopped=True)
        'Warning: 1 of the 3 classes has no label before this stop. The model cannot predict it, so do not rely on the \
stop.'
    """
    have, it = ("has", "it") if unmet == 1 else ("have", "them")
    labels, result = ("before this stop", "stop") if stopped else ("among the labels that were used", "result")
    return (
        f"Warning: {unmet} of the {classes} classes {have} no label {labels}. The model cannot predict {it}, so do not "
        f"rely on the {result}."
    )
