"""``suffice demo --predictions``: a simulated person checks labels that another model gave to handwritten digits."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from suffice.checks import of_predictions
from suffice.checks.prediction_check import PredictionResult
from suffice.cli.json_output import print_json
from suffice.presentation.demo_words import (
    demo_answer_sentence,
    demo_check_next_sentences,
    demo_predictions_sentences,
    demo_truth_sentence,
)
from suffice.tables.example_data import PredictedDigits, predicted_digits

#: The share of wrong predictions that the check is to prove.
TARGET: Final = 0.1
#: Questions that are shown; the others are only counted.
_SHOWN: Final = 2
_EVERY: Final = 25
# Characters of pixels from white to black, for values from 0 to 16.
_INK: Final = " .:*#"


@dataclass(frozen=True, eq=False)
class DemoCheck:
    """A check of the demonstration.

    Attributes:
        digits: The images, their true digits, and the predictions.
        rows: The rows that were asked for, in order.
        result: What the check has shown.
    """

    digits: PredictedDigits
    rows: list[int]
    result: PredictionResult

    @property
    def true_share(self) -> float:
        """The share of wrong predictions, which is known here."""
        return float(np.mean(self.digits.predicted != self.digits.truth))

    def to_dict(self) -> dict[str, Any]:
        """The check as JSON values."""
        return {**self.result.to_dict(), "true_share": self.true_share, "sentences": self.result.sentences()}


def run_prediction_demo(seed: int, *, as_json: bool) -> None:
    """Check predictions with answers that are known, and show what a person sees.

    Args:
        seed: Seed of the draw.
        as_json: Whether to print the result as JSON.
    """
    console = Console(quiet=as_json, highlight=False)
    console.soft_wrap = not console.is_terminal
    done = checked_digits(seed, console)
    console.print()
    for sentence in done.result.sentences():
        console.print(f"[bold]{sentence}[/]")
    console.print(demo_truth_sentence(done.true_share, None))
    console.print("\n" + "\n".join(demo_check_next_sentences()), markup=False)
    if as_json:
        print_json("demo", done.to_dict())


def checked_digits(seed: int, console: Console) -> DemoCheck:
    """Check the predictions, and print the first questions and some of the states between.

    Args:
        seed: Seed of the draw.
        console: Where to print.
    """
    digits = predicted_digits()
    check = of_predictions(digits.predicted).check(at_most=TARGET, seed=seed)
    for sentence in demo_predictions_sentences(len(digits.truth), TARGET):
        console.print(sentence)
    rows: list[int] = []
    result = check.result
    while check.open:
        row = int(check.next()[0])
        rows.append(row)
        answer = str(digits.truth[row])
        if len(rows) <= _SHOWN:
            console.print("\n" + picture(digits.images[row]), markup=False)
            console.print(demo_answer_sentence(row, answer, str(digits.predicted[row])))
        result = check.tell({row: answer})
        if check.open and len(rows) % _EVERY == 0:
            console.print("\n" + result.sentences()[0] if len(rows) == _EVERY else result.sentences()[0])
    return DemoCheck(digits, rows, result)


def picture(pixels: NDArray[np.float64]) -> str:
    """An image as characters, two for each pixel.

    Args:
        pixels: Values from 0, white, to 16, black, shape (rows, columns).

    Examples:
        >>> print(picture(np.array([[16.0, 0.0], [8.0, 16.0]])))
        ##
        ::##
    """
    levels = np.rint(np.clip(pixels, 0.0, 16.0) * (len(_INK) - 1) / 16.0).astype(int)
    return "\n".join("".join(2 * _INK[level] for level in line).rstrip() for line in levels.tolist())
