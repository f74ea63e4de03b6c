"""The answer of a stopping rule: decision, compared numbers, reason, certificate, forecast."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
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
        left: Number of unlabelled items of the pool; None if it is not known.
        averaged: Whether each value is a mean over several steps.
    """

    n_labelled: list[int]
    values: list[float]
    length: int
    threshold: float
    left: int | None = None
    averaged: bool = False

    def forecast(self) -> Forecast | None:
        """Extrapolate the curve to the threshold."""
        counts, values = (np.array(series[: self.length]) for series in (self.n_labelled, self.values))
        return labels_left(counts, values, self.threshold, left=self.left, averaged=self.averaged)


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


@dataclass(frozen=True)
class Certificate:
    """Statement that a rule guarantees, and its assumption.

    Attributes:
        statement: The guarantee, in a sentence.
        assumption: The assumption of the guarantee, in a sentence.
        change: The certified change of the expected error as a share of the loss range; None if there is none.

    Examples:
        >>> print(Certificate("The last step changed nothing.", "A bounded loss."))
        The last step changed nothing. Assumption: A bounded loss.
    """

    statement: str
    assumption: str
    change: float | None = None

    @staticmethod
    def best(verdicts: "Iterable[Verdict]") -> "Certificate | None":
        """Return the certificate of the smallest change among those of several verdicts."""
        carried = [v.certificate for v in verdicts if v.certificate is not None]
        return min(carried, key=lambda c: math.inf if c.change is None else c.change, default=None)

    def __str__(self) -> str:
        return f"{self.statement} Assumption: {self.assumption}"


@dataclass(frozen=True, repr=False)
class Verdict:
    """The answer of a rule at one step.

    Attributes:
        stop: Whether the rule says stop.
        value: The number that was compared; None if there is none (a composed rule).
        threshold: The number that it was compared with, or None.
        ready: Whether the rule has enough steps to judge. If not, it never says stop.
        reason: The reason, in a sentence for the user.
        rule: Name of the rule.
        n_labelled: Number of labels bought so far.
        certificate: What is guaranteed and under which assumption, or None.
        parts: Verdicts of the rules that this one is composed of.
        outlook: Computes :attr:`forecast`.

    Examples:
        >>> print(Verdict(stop=True, value=0.04, threshold=0.05, ready=True, rule="R", n_labelled=31,
        ...               reason="the error ratio 0.04 is at most the threshold 0.05"))
        Stop at 31 labels: the error ratio 0.04 is at most the threshold 0.05.
        >>> Verdict(stop=False, value=None, threshold=0.05, ready=False, rule="R", n_labelled=9, reason="no scale yet")
        Verdict(stop=False, threshold=0.05, ready=False, reason='no scale yet', rule='R', n_labelled=9)
    """

    stop: bool
    value: float | None
    threshold: float | None
    ready: bool
    reason: str
    rule: str
    n_labelled: int
    certificate: Certificate | None = None
    parts: "tuple[Verdict, ...]" = ()
    outlook: Outlook | None = field(default=None, repr=False, compare=False)

    @cached_property
    def forecast(self) -> Forecast | None:
        """The number of labels until this rule stops, or None if it cannot be forecast; computed at first use."""
        return None if self.stop or self.outlook is None else self.outlook.forecast()

    def __repr__(self) -> str:
        # Only the fields that are given; of a certificate only the statement, because the assumption is long.
        given = {spec.name: getattr(self, spec.name) for spec in fields(self) if spec.repr}
        if self.certificate is not None:
            given["certificate"] = self.certificate.statement
        shown = (f"{name}={value!r}" for name, value in given.items() if value is not None and value != ())
        return f"Verdict({', '.join(shown)})"

    def _repr_html_(self) -> str:
        """The verdict for notebooks."""
        from suffice.presentation.html_parts import card

        rows = [("rule", self.rule)]
        rows += [("value", f"{self.value:.6g}")] if self.value is not None else []
        rows += [("threshold", f"{self.threshold:.6g}")] if self.threshold is not None else []
        rows += [("certificate", str(self.certificate))] if self.certificate is not None else []
        rows += [(part.rule, str(part)) for part in self.parts]
        return card(str(self), rows, tone="stop" if self.stop else "go on" if self.ready else "undecided")

    def __str__(self) -> str:
        head = "Stop" if self.stop else "Go on" if self.ready else "Go on (undecided)"
        text = f"{head} at {self.n_labelled} label{'s' * (self.n_labelled != 1)}: {self.reason}."
        if self.forecast is None:
            return text
        left = str(self.forecast)
        return f"{text} {left[0].upper()}{left[1:]}."
