"""What a stopping rule answers: the decision, the two numbers compared, why, and what is guaranteed."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from suffice.criteria.outlook import Outlook
from suffice.forecast import Forecast


@dataclass(frozen=True)
class Certificate:
    """What a rule guarantees, and what has to be true for that.

    Attributes:
        statement: The guarantee, in a sentence.
        assumption: What it rests on, in a sentence.
        change: The certified change of the expected error as a share of the loss range, where there is one.

    Examples:
        >>> print(Certificate("The last step changed nothing.", "A bounded loss."))
        The last step changed nothing. Assumption: A bounded loss.
    """

    statement: str
    assumption: str
    change: float | None = None

    @staticmethod
    def best(verdicts: "Iterable[Verdict]") -> "Certificate | None":
        """The certificate of the least change among those that several verdicts carry."""
        carried = [v.certificate for v in verdicts if v.certificate is not None]
        return min(carried, key=lambda c: math.inf if c.change is None else c.change, default=None)

    def __str__(self) -> str:
        return f"{self.statement} Assumption: {self.assumption}"


@dataclass(frozen=True)
class Verdict:
    """A rule's answer at one step.

    Attributes:
        stop: Whether the rule says stop.
        value: The number that was compared, or None where there is none (a composed rule).
        threshold: What it was compared with, or None.
        ready: Whether the rule has seen enough to judge; until then it never says stop.
        reason: Why, in a sentence for a person.
        rule: Name of the rule.
        n_labelled: Labels bought when the verdict was given.
        certificate: What is guaranteed and under which assumption, or None.
        parts: Verdicts of the rules that this one is composed of.
        outlook: Where the rule is heading, for :attr:`forecast`.

    Examples:
        >>> print(Verdict(stop=True, value=0.04, threshold=0.05, ready=True, rule="R", n_labelled=31,
        ...               reason="the error ratio 0.04 is at most the threshold 0.05"))
        Stop at 31 labels: the error ratio 0.04 is at most the threshold 0.05.
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
        """How many more labels until this rule stops, if that can be told; computed when first asked for."""
        return None if self.stop or self.outlook is None else self.outlook.forecast()

    def __str__(self) -> str:
        head = "Stop" if self.stop else "Go on" if self.ready else "Go on (undecided)"
        text = f"{head} at {self.n_labelled} label{'s' * (self.n_labelled != 1)}: {self.reason}."
        if self.forecast is None:
            return text
        left = str(self.forecast)
        return f"{text} {left[0].upper()}{left[1:]}."
