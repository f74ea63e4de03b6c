"""Numbers, moments and texts as people read them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from suffice.session.words import numbers, percents

#: Characters of a text that are shown.
LONGEST: Final = 200


def count(number: int, noun: str) -> str:
    """A number of things.

    Examples:
        >>> count(1, "label"), count(12345, "label")
        ('1 label', '12,345 labels')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def percent(share: float) -> str:
    r"""A share in percent, with two digits; but never rounded to nothing or to all.

    Examples:
        >>> [percent(share).replace("\xa0", "") for share in (0.123, 0.0567, 0.99999, 1.0, 0.0004)]
        ['12%', '5.7%', '99.999%', '100%', '0.04%']
    """
    value = 100.0 * share
    digits = next((d for d in range(2, 12) if float(f"{value:.{d}g}") < 100.0), 2) if value < 100.0 else 3
    return f"{value:.{digits}g}\u00a0%"


def number(value: float) -> str:
    """A number with as many digits as are of use.

    Examples:
        >>> number(1234567.8), number(0.0345678), number(3.0), number(2e12)
        ('1,234,568', '0.03457', '3', '2e+12')
    """
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.4g}"


def day(at: str) -> str:
    """A moment in UTC for a sentence.

    Examples:
        >>> day("2024-03-05T14:02:59Z")
        '5 March 2024, 14:02 UTC'
    """
    when = datetime.fromisoformat(at)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


def sentence(words: str) -> str:
    """Words with a capital at the start and a stop at the end.

    Examples:
        >>> sentence("about 40 labels (or 50)"), sentence("Why?")
        ('About 40 labels (or 50).', 'Why?')
    """
    text = words.strip()
    end = "" if not text or text.endswith((".", "!", "?", ".)")) else "."
    return f"{text[:1].upper()}{text[1:]}{end}"


def cut(text: str, most: int = LONGEST) -> str:
    """The beginning of a text, in one line.

    Examples:
        >>> cut("a  b", 10), cut("a long text", 7)
        ('a b', 'a long…')
    """
    # What comes later is not looked at: a cell may hold millions of letters.
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1].rstrip()}…"


def ahead(forecast: Mapping[str, float]) -> str:
    r"""How many more labels a forecast says, with its interval.

    Examples:
        >>> ahead({"labels": 401, "low": 73, "high": 1177, "coverage": 0.8})
        'about 400 more labels (80\xa0% sure: 73 to 1,200)'
        >>> ahead({"labels": 1, "low": 1, "high": 1, "coverage": 1.0})
        '1 more label'
    """
    if forecast["low"] == forecast["high"]:
        return count(int(forecast["labels"]), "more label")
    labels, low, high = (two_digits(int(forecast[name])) for name in ("labels", "low", "high"))
    return f"about {count(labels, 'more label')} ({percent(forecast['coverage'])} sure: {low:,} to {high:,})"


def two_digits(number: int) -> int:
    """A number with two digits and zeros: a forecast that shows more claims more.

    Examples:
        >>> two_digits(1177), two_digits(73)
        (1200, 73)
    """
    return int(float(f"{number:.2g}"))


def effort(seconds: float) -> str:
    """About how long something takes.

    Examples:
        >>> [effort(seconds) for seconds in (40.0, 3000.0, 8000.0, 90000.0)]
        ['1 minute', '50 minutes', '2.2 hours', '25 hours']
    """
    if seconds < 5400.0:
        return count(max(1, round(seconds / 60.0)), "minute")
    return f"{float(f'{seconds / 3600.0:.2g}'):,g} hours"


def with_interval(value: float, low: float, high: float, *, share: bool) -> tuple[str, str]:
    r"""An error and its interval, with the digits that the interval allows.

    Args:
        value: The error.
        low: Lower end of its interval.
        high: Upper end.
        share: Whether they are shares of the items, to be written in percent.

    Examples:
        >>> with_interval(0.1234, 0.09, 0.16, share=True)
        ('12\xa0%', '9 to 16\xa0%')
        >>> with_interval(7.54, 7.295, 7.863, share=False)
        ('7.5', '7.3 to 7.9')
    """
    one, least, most = percents(value, low, high) if share else numbers(value, low, high)
    end = "\u00a0%" if share else ""
    return f"{one}{end}", f"{least} to {most}{end}"
