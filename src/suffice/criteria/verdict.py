"""The output of a stopping rule: the decision, the two numbers compared, the reason, and what is guaranteed."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property

from suffice.criteria.outlook import Outlook
from suffice.forecast import Forecast


@dataclass(frozen=True)
class Certificate:
    """What a rule guarantees, and under which assumption.

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

    def __str__(self) -> str:
        head = "Stop" if self.stop else "Go on" if self.ready else "Go on (undecided)"
        text = f"{head} at {self.n_labelled} label{'s' * (self.n_labelled != 1)}: {self.reason}."
        if self.forecast is None:
            return text
        left = str(self.forecast)
        return f"{text} {left[0].upper()}{left[1:]}."
