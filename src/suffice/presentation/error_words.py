"""Sentences about the error of the model on the unlabelled items."""

from collections.abc import Mapping
from typing import Any, Final

from suffice.presentation.text_format import count, number, numbers, percent, percents, with_interval

#: What an estimate without random labels is called.
UNVERIFIED: Final = "the model's own estimate, not verified by random labels"


def error_value(error: float, *, share: bool) -> str:
    r"""An error as text: a share in percent, or a number.

    Examples:
        >>> error_value(0.123, share=True), error_value(0.0, share=True), error_value(2.5, share=False)
        ('12\xa0%', '0\xa0%', '2.5')
    """
    return (percent(error) if error else "0\u00a0%") if share else number(error)


def error_words(decision: Mapping[str, Any]) -> str:
    """The estimated error of the unlabelled items, as a part of a sentence; empty if there is none."""
    error = decision.get("error")
    if error is None:
        return ""
    left = f"the {count(decision['unlabelled'], 'unlabelled item')}"
    kind = "estimate" if error["random_labels"] else UNVERIFIED
    if decision["share"]:
        value, low, high = percents(error["value"], error["low"], error["high"])
        return f"about {value} % of {left} are predicted wrong ({kind}; probably {low} to {high} %)"
    value, low, high = numbers(error["value"], error["low"], error["high"])
    return f"predictions for {left} are typically off by about {value} ({kind}; probably {low} to {high})"


def error_figure(decision: Mapping[str, Any]) -> tuple[str, str]:
    """Return the error as a figure, and its explanation; empty if there is none."""
    error = decision.get("error")
    if error is None:
        return "", ""
    figure, interval = with_interval(error["value"], error["low"], error["high"], share=decision["share"])
    left = f"the {count(decision['unlabelled'], 'unlabelled item')}"
    what = f"of {left} predicted wrong" if decision["share"] else f"typical error of a prediction, for {left}"
    random_labels = error["random_labels"]
    basis = estimated_with(random_labels) if random_labels else UNVERIFIED
    return figure, f"{what}, after {count(decision['n_labelled'], 'label')} (probably {interval}; {basis})"


def error_then(decision: Mapping[str, Any]) -> str:
    """The error of numbers after the labels of the forecast, with the digits of the error now; empty if it is equal."""
    error, then = decision.get("error"), decision.get("error_then")
    if error is None or then is None or decision["share"]:
        return ""
    now, _, _ = numbers(error["value"], error["low"], error["high"])
    later = numbers(then, error["low"], error["high"])[0]
    return "" if later == now else later


def estimated_with(random_labels: int) -> str:
    """Basis of an estimate of the error, as a part of a sentence.

    Examples:
        >>> estimated_with(24)
        'estimated from 24 labels of items drawn at random'
    """
    return f"estimated from {count(random_labels, 'label')} of items drawn at random"


def expected_error_basis(items: int, random_labels: int = 0) -> str:
    """Basis of the estimate of the error.

    Args:
        items: Number of items for which it was computed.
        random_labels: Number of random labels that calibrate the estimate.
    """
    if random_labels:
        return (
            f"This is an estimate, and no guarantee. The model states how sure it is of its predictions for "
            f"{count(items, 'unlabelled item')}. That was corrected with {count(random_labels, 'label')} of items that "
            "were drawn at random: each was predicted without its label, and compared with it. The more such labels "
            "there are, the more precise the estimate is."
        )
    return (
        "This is the model's own estimate: no labels were held back to measure it. It comes from the model's own "
        f"probabilities on {count(items, 'item')} drawn at random, so it is only correct if the model fits the data. "
        "On real data it was often off by a factor of two. To be sure, draw some more items at random, label them, and "
        "compare."
    )


def target_words(at_most: float, task: str) -> str:
    """The error that the user asked for.

    Examples:
        >>> target_words(0.1, "classification").replace("\u00a0", " "), target_words(0.5, "regression")
        ('at most 10 % of wrong predictions', 'a typical error of at most 0.5')
    """
    if task == "classification":
        return f"at most {percent(at_most)} of wrong predictions"
    return f"a typical error of at most {number(at_most)}"


def worsening_sentence(random_labels: int) -> str:
    """Warning that the newest labels have made a model worse.

    Examples:
        >>> worsening_sentence(12)
        'The newest labels made the model worse: it predicts the last 12 random labels less accurately than before.'
    """
    return (
        "The newest labels made the model worse: it predicts the last "
        f"{random_labels} random labels less accurately than before."
    )
