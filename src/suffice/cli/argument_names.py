"""Error messages of the command line: options instead of arguments of Python, and values that are not numbers."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from suffice.errors import MissingExtraError, SufficeError

_NAMES: Final = "at_most|share_of|recall_of|precision_of|earlier_checks|annotator_error"
# Arguments of Python in messages, each with the option. Words that are names of arguments too are replaced only where
# a message uses them as such.
_ARGUMENTS: Final = (
    (re.compile(rf"(?<!['\w])({_NAMES})=([\w.]+)"), lambda found: f"{_option(found[1])} {found[2]}"),
    (re.compile(rf"(?<!['\w-])({_NAMES})(?!['\w])"), lambda found: _option(found[1])),
    (re.compile(r"^(tolerance|accept|size|confidence|budget)(?= (must|needs|is|are)\b)"), r"--\1"),
    (re.compile(r"\b(give|leave|or|and) (tolerance|size|accept)\b(?! of)"), r"\1 --\2"),
    (re.compile(r'\banswer="(blind|verdict)"'), r"--answer \1"),
    (re.compile(r'"(all|accepted)"'), r"\1"),
    (re.compile(r"needs the probability of each prediction"), "needs --probability, the confidence in each prediction"),
    (re.compile(r"\bleave groups out\b"), "leave --group out"),
    (re.compile(r"\bwith classes$"), "with --classes"),
)
# Numbers with a separator of thousands or with a k, and with a decimal comma.
_GROUPED: Final = re.compile(r"\d{1,3}([,. _']\d{3})+")
_THOUSANDS: Final = re.compile(r"(\d+) ?[kK]")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d*,\d+")


def not_a_number(value: str, *, whole: bool) -> str:
    """What is wrong with the value of an option that must be a number, with an example of the required form.

    Args:
        value: What was given.
        whole: Whether the number must be whole.

    Examples:
        >>> not_a_number("6k", whole=True)
        "'6k' is not a whole number; write it with digits only, such as 6000"
        >>> not_a_number("0,5", whole=False)
        "'0,5' is not a number; write it with digits and a decimal point, such as 0.5"
    """
    words = value.strip()
    if whole:
        example = "200"
        if _GROUPED.fullmatch(words):
            example = re.sub(r"\D", "", words)
        elif thousands := _THOUSANDS.fullmatch(words):
            example = f"{thousands[1]}000"
        return f"{value!r} is not a whole number; write it with digits only, such as {example}"
    example = words.replace(",", ".") if _DECIMAL_COMMA.fullmatch(words) else "0.5"
    return f"{value!r} is not a number; write it with digits and a decimal point, such as {example}"


@contextmanager
def option_names() -> Iterator[None]:
    """Replace names of Python arguments in error messages by options of the command line.

    Examples:
        >>> from suffice.checks import of_predictions
        >>> with option_names():
        ...     of_predictions(["a", "b"]).check(recall_of="c")
        Traceback (most recent call last):
            ...
        suffice.errors.InvalidValueError: --recall-of must be one of the predicted classes 'a', 'b', not 'c'
    """
    try:
        yield
    except MissingExtraError:
        raise
    except SufficeError as error:
        message = str(error)
        for argument, option in _ARGUMENTS:
            message = argument.sub(option, message)
        if message == str(error):
            raise
        raise type(error)(message) from error.__cause__


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
