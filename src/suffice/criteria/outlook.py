"""Where a rule is heading: the number of labels still to buy, worked out only when somebody asks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from suffice.forecast import Forecast, labels_left


class Outlook(Protocol):
    """Something that can forecast when a rule will stop."""

    def forecast(self) -> Forecast | None:
        """The number of labels left, or None where it cannot be told."""


@dataclass(frozen=True)
class Known:
    """A number of labels that is certain.

    Attributes:
        labels: How many are left.
    """

    labels: int

    def forecast(self) -> Forecast:
        """Return that number, 0 for one that is past."""
        left = max(0, self.labels)
        return Forecast(labels=left, low=left, high=left, coverage=1.0)


@dataclass(frozen=True)
class Curve:
    """A falling curve and the threshold it has to cross, as a view on lists that only ever grow.

    Attributes:
        n_labelled: Labels bought, one entry a step.
        values: The value that the rule compares with its threshold.
        length: How many entries belong to this view.
        threshold: The value at which the rule stops.
    """

    n_labelled: list[int]
    values: list[float]
    length: int
    threshold: float

    def forecast(self) -> Forecast | None:
        """Extrapolate the curve to the threshold."""
        counts, values = (np.array(series[: self.length]) for series in (self.n_labelled, self.values))
        return labels_left(counts, values, self.threshold)


@dataclass(frozen=True)
class First:
    """Whichever of several comes first.

    Attributes:
        outlooks: Those of the rules of which one is enough; None for a rule that has none.
    """

    outlooks: tuple[Outlook | None, ...]

    def forecast(self) -> Forecast | None:
        """The least of those that can be told, number by number: another rule can only make it sooner."""
        return _each(min, [f for f in _forecasts(self.outlooks) if f is not None])


@dataclass(frozen=True)
class Last:
    """Whichever of several comes last.

    Attributes:
        outlooks: Those of the rules that must all stop; None for a rule that cannot tell.
    """

    outlooks: tuple[Outlook | None, ...]

    def forecast(self) -> Forecast | None:
        """The greatest, if it can be told.

        A forecast that is not certain says when its rule first stops, not when it does so again. So it counts only if
        it is the only such one, and lies wholly beyond what is certain.
        """
        forecasts = _forecasts(self.outlooks)
        known = [f for f in forecasts if f is not None]
        certain = [f for f in known if f.coverage == 1.0]
        wait, open_ones = max((f.labels for f in certain), default=0), [f for f in known if f.coverage < 1.0]
        if len(known) < len(forecasts) or len(open_ones) > 1 or any(f.low < wait for f in open_ones):
            return None
        return open_ones[0] if open_ones else _each(max, certain)


def _forecasts(outlooks: tuple[Outlook | None, ...]) -> list[Forecast | None]:
    return [None if outlook is None else outlook.forecast() for outlook in outlooks]


def _each(choose: Callable[[Iterable[int]], int], forecasts: list[Forecast]) -> Forecast | None:
    if not forecasts:
        return None
    labels, low, high = (choose(getattr(f, name) for f in forecasts) for name in ("labels", "low", "high"))
    return Forecast(labels=labels, low=low, high=high, coverage=min(f.coverage for f in forecasts))
