"""Every stopping rule of suffice, with parameters at which it says both "go on" and "stop" on short runs."""

from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Final

import numpy as np

import suffice as sf
from suffice.criteria import Criterion, Step
from suffice.criteria.base import example_rule, rule_info
from suffice.testing import example_steps

RULES: Final[dict[str, Criterion]] = {
    **{name: example_rule(kind) for name, kind in sf.criteria.RULES.items()},
    "AllOf": sf.ErrorStability(0.9, calibration=2) & sf.PoolFraction(0.3),
    "AnyOf": sf.ErrorStability(0.3, calibration=2) | sf.CostLimit(60.0),
    "Patience": sf.ErrorStability(0.9, calibration=2).patience(2),
    "After": sf.ErrorStability(0.9, calibration=2).after(24),
}
OF_CLASSES_ONLY: Final = frozenset(
    name for name, kind in sf.criteria.RULES.items() if "regression" not in rule_info(kind).tasks
)
#: Rules that require a positive class.
OF_SCREENING: Final = frozenset(
    name for name, kind in sf.criteria.RULES.items() if rule_info(kind).family == "screening"
)
#: Rules of Bayesian optimisation, whose inputs no learner computes.
OF_OPTIMISATION: Final = frozenset(
    name for name, kind in sf.criteria.RULES.items() if rule_info(kind).family == "optimisation"
)


@cache
def made_up_steps(n: int, *, seed: int = 0) -> tuple[Step, ...]:
    """The run of :func:`suffice.testing.example_steps`, made once for all tests, so its arrays are read-only."""
    steps = tuple(example_steps(n, seed=seed))
    for step in steps:
        for value in vars(step).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
    return steps


@dataclass
class LossRule(sf.Criterion):
    """Requires the losses of the selected items, and never stops."""

    requires: ClassVar[frozenset[str]] = frozenset({"selected_loss", "selected_expected_loss"})

    def judge(self, step: sf.Step) -> sf.Verdict:
        return self.verdict(step, stop=False, reason="nothing is compared")
