"""The stopping rule of a session: the steps that it has judged, its verdicts, and the stop that stands."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from suffice.checks import Guarantee
from suffice.criteria import Criterion, Step, Verdict, criterion_from_dict
from suffice.criteria.step_and_verdict import FIELD_KINDS
from suffice.session.guarantee_rules import proven_fields
from suffice.session.standing_stop import RuleStop, clearly_above


class RuleHistory:
    """The verdicts of a rule on the steps of a session.

    Args:
        rule: The stopping rule, which is copied without its state.

    Attributes:
        rule: The rule after all steps.
        steps: The steps that it has judged, under the newest hyper-parameters.
        verdicts: Its verdict for each of them.
    """

    def __init__(self, rule: Criterion) -> None:
        self.rule = rule.copy()
        self.rule.reset()
        self.steps: list[Step] = []
        self.verdicts: list[Verdict] = []
        self._stop = RuleStop()

    @property
    def stop(self) -> Verdict | None:
        """The verdict that first said stop, if it stands; see :class:`suffice.session.standing_stop.RuleStop`."""
        return self._stop.stop

    @property
    def clearly_above(self) -> bool:
        """Whether a label is clearly worth more than it costs, by the last verdicts."""
        if not self.verdicts:
            return False
        before = self.verdicts[-2] if len(self.verdicts) > 1 else None
        return clearly_above(before, self.verdicts[-1])

    def before(self, n_labelled: int) -> "RuleHistory":
        """A copy without steps at this number of labels or more."""
        copied = RuleHistory(self.rule)
        copied.rule = self.rule.copy()
        copied.steps = [step for step in self.steps if step.n_labelled < n_labelled]
        copied.verdicts = self.verdicts[: len(copied.steps)]
        if len(copied.steps) < len(self.steps):
            copied.restart(copied.steps)
        else:
            copied._stop = RuleStop(copied.verdicts)
        return copied

    def observe(self, step: Step) -> Verdict:
        """Apply the rule to the next step."""
        verdict = self.rule.observe(step)
        self.steps.append(step)
        self.verdicts.append(verdict)
        self._stop.add(verdict)
        return verdict

    def restart(self, steps: Sequence[Step]) -> None:
        """Apply the rule to other steps from the start."""
        self.rule.reset()
        self.steps = list(steps)
        self.verdicts = self.rule.observe_all(self.steps) if self.steps else []
        self._stop = RuleStop(self.verdicts)

    def with_guarantee(self, guarantee: Guarantee | None, n_labelled: int, begun: int) -> Verdict | None:
        """The verdict of the rule if a check has guaranteed something for the current model.

        A copy of the rule is used, because no labels were learned: only the guarantee is new in the last step.

        Args:
            guarantee: The guarantee, or None if there is none.
            n_labelled: Number of labels, those of the check included.
            begun: Number of labels that the model has learned, if there is no step yet.

        Returns:
            The verdict; None if the rule uses no guarantees, or requires a field that is not known yet.
        """
        proven = proven_fields(self.rule, guarantee)
        if proven is None:
            return None
        step = replace(self.steps[-1] if self.steps else Step(n_labelled=begun), **proven)
        if self.rule.needs() - {name for name in FIELD_KINDS if getattr(step, name) is not None}:
            return None
        return self.rule.copy().observe(replace(step, n_labelled=n_labelled))

    def state_dict(self) -> dict[str, Any]:
        """The rule as JSON values. Its verdicts follow from its steps, which the owner saves."""
        return self.rule.state_dict()

    def load_state(self, rule: Mapping[str, Any], steps: Sequence[Step]) -> None:
        """Restore the rule and its verdicts.

        Args:
            rule: The result of :meth:`state_dict`.
            steps: The steps that it has judged.
        """
        self.rule = criterion_from_dict(rule)
        self.restart(steps)
