"""What the model makes of the labels, in sentences for whoever labels."""

import math
from typing import Final

from suffice.criteria import ErrorStability, Verdict
from suffice.session.insight import LearningStatus, Purchase
from suffice.session.settings import Settings

#: What a learner calls itself where it is not the rule that speaks.
_LEARNER: Final = "ActiveLearner"
# A fall of the error by less than this share is next to nothing.
_NOTHING: Final = 0.02


def sentences(insight: LearningStatus, settings: Settings, n_labelled: int, *, size: int | None = None) -> list[str]:
    """Verdict, forecast, error and purchase, each in a sentence, as far as there is something to say.

    Args:
        insight: What the model makes of the labels.
        settings: What the project is about.
        n_labelled: Labels that there are; the model may have learned fewer.
        size: Items that there are, without those that were skipped, where that is known.

    Returns:
        Sentences, the most important first.

    Examples:
        >>> settings = Settings("demo", "classification", ("no", "yes"), "y", "table", (), None, "logistic", {})
        >>> sentences(LearningStatus(n_labelled=6), settings, 6)
        ['Too early to say: 4 more labels are needed before the model starts.']
    """
    said = [] if insight.problem and insight.verdict is None else [_verdict(insight, settings, n_labelled, size)]
    left = None if size is None else size - n_labelled
    said += [*_forecast(insight, left), *_error(insight, settings), *_purchase(insight, settings)]
    behind = n_labelled - insight.n_labelled
    if behind > 0 and insight.errors:
        last = _labels(behind) if behind > 1 else "label"
        said.append(f"The model is still learning the last {last}.")
    return said + ([insight.problem] if insight.problem else [])


def _verdict(insight: LearningStatus, settings: Settings, n_labelled: int, size: int | None) -> str:
    verdict = insight.verdict
    if verdict is not None and verdict.stop:
        return _stop(verdict, insight.stopped_at)
    if verdict is None or (verdict.rule == _LEARNER and not insight.errors):
        missing = min(settings.initial, settings.initial if size is None else size) - n_labelled
        if missing > 0:
            are = "are" if missing > 1 else "is"
            return f"Too early to say: {_labels(missing, 'more')} {are} needed before the model starts."
        return "Too early to say: the model is learning the first labels."
    if not verdict.ready:
        return f"Too early to say: {verdict.reason}."
    if verdict.rule == ErrorStability.__name__:
        return f"Keep going: the last label still changed what the model says ({verdict.reason})."
    return f"Keep going: {verdict.reason}."


def _stop(verdict: Verdict, at: int | None) -> str:
    if verdict.rule == _LEARNER:
        return "There is nothing left to do: every item is labelled or skipped."
    if verdict.rule == ErrorStability.__name__:
        which = "the last label" if at is None else f"label {at:,}"
        return f"You can stop now: {which} changed hardly anything ({verdict.reason})."
    return f"You can stop now: {verdict.reason}{'' if at is None else f' (at {at:,} labels)'}."


def _forecast(insight: LearningStatus, left: int | None) -> list[str]:
    verdict, forecast = insight.verdict, insight.forecast
    if verdict is None or verdict.stop or not verdict.ready:
        return []
    if forecast is None:
        return ["How many more labels that takes cannot be told yet."]
    if not forecast.high:
        return []
    if left is not None and forecast.low > left:
        return [f"The {_labels(left)} that can still be given will hardly be enough for that."]
    text = str(forecast)
    only = f" Only {left:,} {'items are' if left != 1 else 'item is'} left." if left and forecast.high > left else ""
    return [f"{text[0].upper()}{text[1:]} until it is enough.{only}"]


def _error(insight: LearningStatus, settings: Settings) -> list[str]:
    if not insight.errors:
        return []
    now = insight.errors[-1]
    if settings.task == "classification":
        value, low, high = percents(now.value, now.low, now.high)
        said = f"The model expects to be wrong on {value} % of the items ({low} to {high} %)"
    else:
        value, low, high = numbers(now.value, now.low, now.high)
        said = f"The model expects to be off by about {value} (root mean squared; {low} to {high})"
    return [f"{said}, if it is right about itself."]


def _purchase(insight: LearningStatus, settings: Settings) -> list[str]:
    bought = insight.purchase
    if bought is None:
        return []
    next_ones = f"The next {bought.labels} labels" if bought.labels != 1 else "The next label"
    now, then = _shown(bought, settings)
    if now.split(" (")[0] == then.split(" (")[0] or bought.now - bought.then < _NOTHING * bought.now:
        return [f"{next_ones} would change next to nothing in that."]
    return [f"{next_ones} would lower that to about {then}."]


def _shown(bought: Purchase, settings: Settings) -> tuple[str, str]:
    """The error now, and then with its interval."""
    if settings.task == "classification":
        (now, *_), (value, low, high) = (percents(v, bought.low, bought.high) for v in (bought.now, bought.then))
        return f"{now} %", f"{value} % ({low} to {high} %)"
    (now, *_), (value, low, high) = (numbers(v, bought.low, bought.high) for v in (bought.now, bought.then))
    return now, f"{value} ({low} to {high})"


def percents(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Shares in percent, with no more digits than the interval allows, and at most two.

    Examples:
        >>> percents(0.1234, 0.09, 0.16), percents(0.0031, 0.002, 0.0045)
        (('12', '9', '16'), ('0.31', '0.20', '0.45'))
    """
    width = 100.0 * (high - low)
    digits = 0 if width >= 3.0 or width <= 0.0 else 1 if width >= 0.3 else 2
    first, second, third = (f"{100.0 * each:.{digits}f}" for each in (value, low, high))
    return first, second, third


def numbers(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Numbers with no more digits than their interval allows.

    Examples:
        >>> numbers(0.2932, 0.2758, 0.3112), numbers(123456.0, 121000.0, 126000.0)
        (('0.29', '0.28', '0.31'), ('123,000', '121,000', '126,000'))
    """
    width = high - low
    digits = -math.floor(math.log10(width)) if width > 0.0 else 2
    first, second, third = (_number(each, digits) for each in (value, low, high))
    return first, second, third


def _number(value: float, digits: int) -> str:
    if digits > 6 or abs(value) >= 1e9:
        return f"{value:.3g}"
    return f"{round(value, digits):,.{max(digits, 0)}f}"


def _labels(count: int, more: str = "") -> str:
    return f"{count} {more + ' ' if more else ''}label{'s' * (count != 1)}"
