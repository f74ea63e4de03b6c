"""Sentences of ``suffice demo``."""

from suffice.presentation.text_format import count, percent_at_most


def run_error_sentence(name: str, at_stop: float | None, at_end: float, end: str) -> str:
    """The error on the test set at the stop, if there is one, and at the end.

    Args:
        name: Name of the error.
        at_stop: The error at the stop, or None.
        at_end: The error at the end.
        end: Number of labels at the end, in words.
    """
    if at_stop is None:
        return f"{name.capitalize()}: {at_end:.4g} {end}."
    change = f" ({100.0 * (at_stop - at_end) / at_end:+.1f}\u00a0%)" if at_end > 0.0 else ""
    return f"{name.capitalize()}: {at_stop:.4g} at the stop, {at_end:.4g} {end}{change}."


def run_wrong_share_sentence(at_stop: float | None, at_end: float, end: str) -> str:
    r"""The share of wrong predictions on the test set at the stop, if there is one, and at the end.

    Args:
        at_stop: The share at the stop, or None.
        at_end: The share at the end.
        end: Number of labels at the end, in words.

    Examples:
        >>> run_wrong_share_sentence(0.0833, 0.079, "with all 300 labels").replace("\xa0", " ")
        '8.33 % of the test items predicted wrong at the stop, 7.9 % with all 300 labels.'
    """
    wrong = "of the test items predicted wrong"
    last = f"{100.0 * at_end:.3g}\u00a0%"
    if at_stop is None:
        return f"{last} {wrong} {end}."
    return f"{100.0 * at_stop:.3g}\u00a0% {wrong} at the stop, {last} {end}."


def demo_saved_sentence(pool: int, labelled: int, checked: int) -> str:
    r"""Number of items of a pool that were not labelled.

    Args:
        pool: Number of items.
        labelled: Labels until the stop.
        checked: Labels of the check after it; 0 without a check.

    Examples:
        >>> demo_saved_sentence(398, 78, 60).replace("\xa0", " ")
        'Labels saved: 260 of 398 (65 %). 78 were needed until the stop, and 60 for the check.'
    """
    saved = pool - labelled - checked
    needed = f"{labelled:,} were needed until the stop" + (f", and {checked:,} for the check." if checked else ".")
    return f"Labels saved: {saved:,} of {pool:,} ({100.0 * saved / pool:.0f}\u00a0%). {needed}"


def demo_truth_sentence(share: float, tolerance: float | None) -> str:
    r"""The true share of wrong predictions for the unlabelled items of the demonstration, which knows all labels.

    Args:
        share: The share.
        tolerance: For numbers: a prediction is wrong if it is off by more than this.

    Examples:
        >>> demo_truth_sentence(0.023, None).replace("\xa0", " ")
        'The demonstration knows all labels: 2.3 % of these predictions are in fact wrong.'
    """
    what = "wrong" if tolerance is None else f"off by more than {tolerance:.3g}"
    return f"The demonstration knows all labels: {100.0 * share:.2g}\u00a0% of these predictions are in fact {what}."


def demo_page_sentence(error: str) -> str:
    """What to do on the page of the demonstration.

    Args:
        error: The error to guarantee, as it is shown.

    Examples:
        >>> demo_page_sentence("10%")
        'Label digits until the page says that you can stop. A random check then shows whether at most 10% are wrong.'
    """
    return (
        "Label digits until the page says that you can stop. "
        f"A random check then shows whether at most {error} are wrong."
    )


def demo_next_sentences() -> list[str]:
    """The commands for the user's own data, after the demonstration."""
    return [
        "Next, with data of your own:",
        "  suffice serve data.csv --classes yes,no    # label rows, texts or images on a page",
        "  suffice run labelled.csv --target COLUMN   # already labelled: how many labels would have been enough?",
    ]


def demo_predictions_sentences(rows: int, at_most: float) -> list[str]:
    r"""What is checked in the demonstration of predictions made elsewhere.

    Args:
        rows: Number of images.
        at_most: The share of wrong predictions to prove.

    Examples:
        >>> print(demo_predictions_sentences(1197, 0.1)[1].replace("\xa0", " "))
        Is it true that at most 10 % of its labels are wrong?
    """
    return [
        f"A model that learned other images has labelled {count(rows, 'handwritten digit')}. It stands in for any "
        "model, such as a language model.",
        f"Is it true that at most {percent_at_most(at_most)} of its labels are wrong?",
        "A simulated person labels images that are drawn at random, without seeing the predictions.",
    ]


def demo_answer_sentence(row: int, answer: str, predicted: str) -> str:
    """A question of the demonstration, its answer, and what was predicted.

    Args:
        row: The row, from 0.
        answer: The answer.
        predicted: The prediction.

    Examples:
        >>> demo_answer_sentence(41, "3", "5")
        'Row 42: which digit is it? The person answers 3. The prediction was 5: wrong.'
    """
    verdict = "right" if answer == predicted else "wrong"
    return (
        f"Row {row + 1:,}: which digit is it? The person answers {answer}. The prediction was {predicted}: {verdict}."
    )


def demo_check_next_sentences() -> list[str]:
    """The commands for the user's own predictions, after the demonstration."""
    return [
        "Next, with predictions of your own in the column llm:",
        "  suffice check answers.csv --prediction llm --at-most 5%   # answer in the terminal",
        "  suffice serve answers.csv --prediction llm --at-most 5%   # answer in the browser",
    ]
