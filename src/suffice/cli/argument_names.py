"""Options of the command line in error messages instead of arguments of Python."""

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
