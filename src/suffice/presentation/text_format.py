"""Numbers, shares, times and durations as text for users; shortened texts, items and curves."""

import math
from collections.abc import Sequence
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

# Larger numbers have an exponent: a computer does not hold all of their digits.
_LONGEST: Final = 1e15


def count(number: int, noun: str) -> str:
    """A number with a noun.

    Examples:
        >>> count(1, "label"), count(12345, "label")
        ('1 label', '12,345 labels')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"


def is_or_are(number: int) -> str:
    """The verb of a number of things.

    Examples:
        >>> [is_or_are(number) for number in (0, 1, 2)]
        ['are', 'is', 'are']
    """
    return "is" if number == 1 else "are"


def was_or_were(number: int) -> str:
    """The verb of a number of things in the past.

    Examples:
        >>> [was_or_were(number) for number in (0, 1, 2)]
        ['were', 'was', 'were']
    """
    return "was" if number == 1 else "were"


def percent(share: float) -> str:
    r"""A share in percent, with two digits; never rounded to 0 % or to 100 %.

    Examples:
        >>> [percent(share).replace("\xa0", "") for share in (0.123, 0.0567, 0.99999, 1.0, 0.0004)]
        ['12%', '5.7%', '99.999%', '100%', '0.04%']
    """
    value = 100.0 * share
    digits = next((d for d in range(2, 12) if float(f"{value:.{d}g}") < 100.0), 2) if value < 100.0 else 3
    return f"{value:.{digits}g}\u00a0%"


def rounded_percent(share: float) -> str:
    r"""A share in percent: a whole number from 10 % on, one decimal below.

    Examples:
        >>> [rounded_percent(share).replace("\xa0", "") for share in (0.123, 0.0567, 2.5)]
        ['12%', '5.7%', '250%']
    """
    value = 100.0 * share
    return f"{value:.{0 if value >= 10.0 else 1}f}\u00a0%"


def percent_at_most(share: float) -> str:
    r"""A share in percent, rounded up to two digits, for a statement of the form "at most".

    Examples:
        >>> [percent_at_most(share).replace("\xa0", "") for share in (0.05, 0.0501, 0.07, 0.123, 0.995, 0.0, 1.0)]
        ['5%', '5.1%', '7%', '13%', '100%', '0%', '100%']
    """
    return f"{_rounded_up(100 * Decimal(repr(float(share))), 2):f}\u00a0%"


def percent_at_least(share: float) -> str:
    r"""A share in percent, rounded down so that its difference from 100 % has two digits, for "at least".

    Examples:
        >>> [percent_at_least(share).replace("\xa0", "") for share in (0.95, 0.975, 0.9512, 0.99666, 0.5, 0.0, 1.0)]
        ['95%', '97.5%', '95.1%', '99.66%', '50%', '0%', '100%']
    """
    return f"{100 - _rounded_up(100 - 100 * Decimal(repr(float(share))), 2):f}\u00a0%"


def percents_around(low: float, high: float) -> tuple[str, str]:
    """Limits of a share in percent, the lower one rounded down and the upper one up, with digits by their distance.

    Examples:
        >>> percents_around(0.08913, 0.15), percents_around(0.0112, 0.0134), percents_around(0.0, 0.404)
        (('8.9', '15'), ('1.12', '1.34'), ('0', '41'))
    """
    width = 100 * (Decimal(repr(float(high))) - Decimal(repr(float(low))))
    step = Decimal(1).scaleb(min(0, (width / 10).adjusted())) if width else Decimal("0.01")
    first = (100 * Decimal(repr(float(low)))).quantize(step, rounding=ROUND_FLOOR)
    last = (100 * Decimal(repr(float(high)))).quantize(step, rounding=ROUND_CEILING)
    return f"{_without_zeros(first):f}", f"{_without_zeros(last):f}"


def number(value: float) -> str:
    """A number with four digits at most, or all digits before the decimal point.

    Examples:
        >>> number(1234567.8), number(0.0345678), number(3.0), number(2e12), number(2e20)
        ('1,234,568', '0.03457', '3', '2,000,000,000,000', '2e+20')
    """
    return f"{value:,.0f}" if 1e3 <= abs(value) < _LONGEST else f"{value:.4g}"


def number_at_most(value: float) -> str:
    """A number of at least 0, rounded up to four digits, for a statement of the form "more than".

    Examples:
        >>> number_at_most(3.21411), number_at_most(2.5), number_at_most(12345678.0), number_at_most(0.0)
        ('3.215', '2.5', '12,350,000', '0')
    """
    return f"{_rounded_up(Decimal(repr(float(value))), 4):,f}"


def two_digits(number: int, most: int | None = None) -> int:
    """A number rounded to two digits, for forecasts, which are not more precise; at most ``most``.

    Examples:
        >>> two_digits(1177), two_digits(73), two_digits(1055, 1055)
        (1200, 73, 1055)
    """
    rounded = int(float(f"{number:.2g}"))
    return rounded if most is None else min(rounded, most)


def interval_words(low: int, high: int) -> str:
    """An interval in brackets, with a space before it; empty if both ends are the same.

    Examples:
        >>> interval_words(51, 190), interval_words(31, 31)
        (' (between 51 and 190)', '')
    """
    return "" if low == high else f" (between {low:,} and {high:,})"


def utc_time(at: str) -> str:
    """A moment in UTC, given in ISO format.

    Examples:
        >>> utc_time("2024-03-05T14:02:59Z")
        '5 March 2024, 14:02 UTC'
    """
    return f"{utc_date(at)}, {datetime.fromisoformat(at):%H:%M} UTC"


def utc_date(at: str) -> str:
    """The day of a moment in UTC, given in ISO format.

    Examples:
        >>> utc_date("2024-03-05T14:02:59Z")
        '5 March 2024'
    """
    when = datetime.fromisoformat(at)
    return f"{when.day} {when:%B %Y}"


def duration(seconds: float) -> str:
    """About how long something takes.

    Examples:
        >>> [duration(seconds) for seconds in (40.0, 3000.0, 8000.0, 90000.0)]
        ['1 minute', '50 minutes', '2.2 hours', '25 hours']
    """
    if seconds < 5400.0:
        return count(max(1, round(seconds / 60.0)), "minute")
    return f"{float(f'{seconds / 3600.0:.2g}'):,g} hours"


def percents(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Shares in percent, with no more decimals than the interval allows, and at most two.

    Examples:
        >>> percents(0.1234, 0.09, 0.16), percents(0.0031, 0.002, 0.0045)
        (('12', '9', '16'), ('0.31', '0.20', '0.45'))
    """
    width = 100.0 * (high - low)
    digits = 0 if width >= 3.0 or width <= 0.0 else 1 if width >= 0.3 else 2
    first, second, third = (f"{100.0 * share:.{digits}f}" for share in (value, low, high))
    return first, second, third


def numbers(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Numbers with no more digits than their interval allows, but at least two.

    Examples:
        >>> numbers(0.2932, 0.2758, 0.3112), numbers(123456.0, 121000.0, 126000.0), numbers(55.2, 47.0, 66.0)
        (('0.29', '0.28', '0.31'), ('123,000', '121,000', '126,000'), ('55', '47', '66'))
    """
    width = high - low
    digits = -math.floor(math.log10(width)) if width > 0.0 else 2
    if value > 0.0:
        digits = max(digits, 1 - math.floor(math.log10(value)))
    first, second, third = (_rounded(bound, digits) for bound in (value, low, high))
    return first, second, third


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


def _rounded(value: float, digits: int) -> str:
    if digits > 6 or abs(value) >= _LONGEST:
        return f"{value:.3g}"
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def _rounded_up(value: Decimal, digits: int) -> Decimal:
    """Return the least decimal with ``digits`` digits that is not below a value of at least 0."""
    if not value:
        return Decimal(0)
    rounded = value.quantize(Decimal(1).scaleb(value.adjusted() + 1 - digits), rounding=ROUND_CEILING)
    return _without_zeros(rounded)


def _without_zeros(value: Decimal) -> Decimal:
    """Return the decimal without zeros after its last digit."""
    whole = value.to_integral_value()
    return whole if value == whole else value.normalize()


#: Largest number of characters of a text or of an item in a table.
LONGEST_SUMMARY: Final = 200
# Number of characters before a text that is looked for: on a small screen, it must be in the first lines.
_LEAD: Final = 30
#: Number of cells of an item that a summary uses.
_MOST_CELLS: Final = 40


def shortened(text: str, most: int = LONGEST_SUMMARY) -> str:
    """The beginning of a text, in one line.

    Args:
        text: Any text.
        most: Largest number of characters, including the ellipsis.

    Examples:
        >>> shortened("a  b", 10), shortened("a long text", 7)
        ('a b', 'a long…')
    """
    # A cell may contain millions of characters, so only the beginning is split into words.
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1].rstrip()}…"


def item_summary(cells: Sequence[tuple[str, str]], main: str | None) -> str:
    """The beginning of an item's text, or of its cells, in one line of at most 200 characters.

    Args:
        cells: Name and value of each cell.
        main: Name of the cell that holds the item's text, or None.

    Examples:
        >>> item_summary([("size", "3"), ("colour", ""), ("town", "Rome")], None)
        'size: 3, town: Rome'
        >>> item_summary([("subject", "Offer"), ("body", "Buy  now")], "body")
        'Buy now'
    """
    text = dict(cells).get(main) if main is not None else None
    if text is not None:
        return shortened(text)
    return shortened(
        ", ".join(f"{name}: {value[: 2 * LONGEST_SUMMARY]}" for name, value in cells[:_MOST_CELLS] if value)
    )


def item_excerpt(cells: Sequence[tuple[str, str]], main: str | None, sought: str) -> str:
    """The summary of an item; if it does not contain the text that is looked for, the part of the item that does.

    Args:
        cells: As for :func:`item_summary`.
        main: As for :func:`item_summary`.
        sought: The text, in upper or lower case; empty for none.

    Examples:
        >>> cells = [("text", "word " * 100 + "and the Prize " + "word " * 100)]
        >>> item_excerpt(cells, "text", "prize")[:60], len(item_excerpt(cells, "text", "prize"))
        ('... word word word word and the Prize word word word word wo', 200)
        >>> item_excerpt(cells, "text", "")[:9]
        'word word'
    """
    summary = item_summary(cells, main)
    if not sought or 0 <= summary.casefold().find(sought.casefold()) < _LEAD:
        return summary
    for _, value in cells:
        text = " ".join(value.split())
        at = text.casefold().find(sought.casefold())
        if at >= 0:
            start = max(0, at - _LEAD)
            # A whole word first.
            start = text.find(" ", start, at) + 1 if start else 0
            return shortened(f"... {text[start:]}" if start else text)
    return summary


def thinned_positions(values: ArrayLike, most: int) -> list[int]:
    """Return the positions of points with which a curve looks the same: the extremes of short sections, and both ends.

    Args:
        values: Values of the curve, all finite.
        most: Largest number of points, 4 or more.

    Returns:
        Positions, rising; all of them if the curve is short enough.

    Examples:
        >>> positions = thinned_positions(np.arange(8000) % 7, 400)
        >>> len(positions) <= 400, positions[0], positions[-1], max(position % 7 for position in positions)
        (True, 0, 7999, 6)
    """
    heights = np.asarray(values, dtype=float)
    if len(heights) <= most:
        return list(range(len(heights)))
    stretches = np.array_split(np.arange(len(heights)), most // 2 - 1)
    extremes = {int(stretch[at(heights[stretch])]) for stretch in stretches for at in (np.argmin, np.argmax)}
    return sorted(extremes | {0, len(heights) - 1})


def as_sentence(words: str) -> str:
    """Words with a capital at the start and a full stop at the end.

    Examples:
        >>> as_sentence("about 40 labels (or 50)"), as_sentence("Why?")
        ('About 40 labels (or 50).', 'Why?')
    """
    text = words.strip()
    end = "" if not text or text.endswith((".", "!", "?", ".)")) else "."
    return f"{text[:1].upper()}{text[1:]}{end}"


def two_digits_of(value: float) -> str:
    """A number above 0 rounded to two digits, without an exponent.

    Examples:
        >>> two_digits_of(33.7), two_digits_of(1234.0), two_digits_of(0.567), two_digits_of(1.0)
        ('34', '1,200', '0.57', '1')
    """
    if value <= 0.0:
        return "0"
    digits = 1 - math.floor(math.log10(value))
    shown = f"{round(value, digits):,.{max(digits, 0)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
