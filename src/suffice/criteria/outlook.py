"""Forecasts of the number of labels until a rule stops, computed only when they are used."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from suffice.forecast import Forecast, labels_left


class Outlook(Protocol):
    """An object that can forecast when a rule will stop."""

    def forecast(self) -> Forecast | None:
        """Return the number of labels left, or None if it cannot be forecast."""


@dataclass(frozen=True)
class Known:
    """A number of labels that is certain.

    Attributes:
        labels: Number of labels left.
    """

    labels: int

    def forecast(self) -> Forecast:
        """Return that number, or 0 if it is negative."""
        left = max(0, self.labels)
        return Forecast(labels=left, low=left, high=left, coverage=1.0)


@dataclass(frozen=True)
class Curve:
    """A falling curve and the threshold that it has to cross, as a view of lists that only grow.

    Attributes:
        n_labelled: Labels bought, one entry per step.
        values: The values that the rule compares with its threshold.
        length: Number of entries that belong to this view.
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
    """The first stop of several rules.

    Attributes:
        outlooks: Outlooks of rules of which one is enough; None for a rule without an outlook.
    """

    outlooks: tuple[Outlook | None, ...]

    def forecast(self) -> Forecast | None:
        """Return the minimum of the known forecasts, number by number; another rule can only stop sooner."""
        return _combined_forecast(min, [f for f in _forecasts(self.outlooks) if f is not None])


@dataclass(frozen=True)
class Last:
    """The last stop of several rules.

    Attributes:
        outlooks: Outlooks of rules that must all stop; None for a rule without an outlook.
    """

    outlooks: tuple[Outlook | None, ...]

    def forecast(self) -> Forecast | None:
        """Return the maximum, if it can be forecast.

        An uncertain forecast is about the first stop of its rule, not about later ones. So it is used only if it is the
        only uncertain one, and if its whole interval is later than the certain ones.
        """
        forecasts = _forecasts(self.outlooks)
        known = [f for f in forecasts if f is not None]
        certain = [f for f in known if f.coverage == 1.0]
        wait, uncertain = max((f.labels for f in certain), default=0), [f for f in known if f.coverage < 1.0]
        if len(known) < len(forecasts) or len(uncertain) > 1 or any(f.low < wait for f in uncertain):
            return None
        return uncertain[0] if uncertain else _combined_forecast(max, certain)


def _forecasts(outlooks: tuple[Outlook | None, ...]) -> list[Forecast | None]:
    return [None if outlook is None else outlook.forecast() for outlook in outlooks]


def _combined_forecast(choose: Callable[[Iterable[int]], int], forecasts: list[Forecast]) -> Forecast | None:
    if not forecasts:
        return None
    labels, low, high = (choose(getattr(f, name) for f in forecasts) for name in ("labels", "low", "high"))
    return Forecast(labels=labels, low=low, high=high, coverage=min(f.coverage for f in forecasts))
