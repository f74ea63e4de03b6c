"""The values that a rule compared with its threshold, step by step, and their names."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from suffice.criteria import Verdict
from suffice.presentation.messages import RATIO_RULE, quantity_name, threshold_name
from suffice.presentation.text_chart import number_chart


@dataclass(frozen=True)
class RuleValues:
    """What a rule compared.

    Attributes:
        rule: Name of the rule.
        values: The number at each step; NaN where there was none.
        thresholds: What it was compared with, likewise.

    Examples:
        >>> verdict = Verdict(
        ...     stop=False, value=3.0, threshold=1.0, ready=True, reason="", rule="LabelWorth", n_labelled=9
        ... )
        >>> RuleValues.of([verdict]).caption
        'worth of a label, and its cost 1'
    """

    rule: str
    values: list[float]
    thresholds: list[float]

    @classmethod
    def of(cls, verdicts: Sequence[Verdict]) -> "RuleValues":
        """What is in some verdicts of one rule, at least one."""
        return cls(verdicts[0].rule, [_number(v.value) for v in verdicts], [_number(v.threshold) for v in verdicts])

    @property
    def name(self) -> str:
        """What the number is called."""
        return quantity_name(self.rule)

    @property
    def threshold_name(self) -> str:
        """What it is compared with."""
        return threshold_name(self.rule)

    @property
    def threshold(self) -> float | None:
        """The threshold, or None where it is another at every step."""
        found = set(_there(self.thresholds))
        return found.pop() if len(found) == 1 else None

    @property
    def caption(self) -> str:
        """A heading for the curve."""
        level = "" if self.threshold is None else f" {self.threshold:g}"
        return f"{self.name}, and {'the' if self.rule == RATIO_RULE else 'its'} {self.threshold_name}{level}"

    @property
    def any(self) -> bool:
        """Whether there is a number at all."""
        return bool(_there(self.values))

    @property
    def log(self) -> bool:
        """Whether a log scale fits: all numbers are above 0, and they are far apart."""
        numbers = _there([*self.values, *self.thresholds])
        return min(numbers, default=0.0) > 0.0 and max(numbers) >= 10.0 * min(numbers)

    def chart(self, *, width: int, height: int, plain: bool) -> list[str]:
        """The curve as text, see :func:`suffice.presentation.text_chart.number_chart`."""
        size = {"width": width, "height": height}
        return number_chart(self.values, self.thresholds, log=self.log, plain=plain, **size) if self.any else []


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _there(values: Sequence[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]
