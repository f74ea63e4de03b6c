"""Stopping rules as stoppers of ASReview, for its simulations.

A stopper of ASReview receives the labels in their order, but not the model. So only rules that count labels are
possible: rules for screening, except :class:`suffice.QuantCI`, and budgets. The entry points are
``suffice_recall_test``, ``suffice_quantile_recall``, ``suffice_poisson_recall``, ``suffice_knee``,
``suffice_consecutive_irrelevant``, ``suffice_safe``, and ``suffice`` for any other rule, also a composed one.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np

from suffice.criteria import (
    ConsecutiveIrrelevant,
    Criterion,
    Knee,
    PoissonRecall,
    QuantileRecall,
    RecallTest,
    Safe,
    Step,
    Verdict,
    criterion_from_dict,
)
from suffice.criteria.base import inner_rules, requiring_rule
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError

__all__ = [
    "ConsecutiveIrrelevantStopper",
    "KneeStopper",
    "PoissonRecallStopper",
    "QuantileRecallStopper",
    "RecallTestStopper",
    "RuleStopper",
    "SafeStopper",
]

_PROVIDED: Final = frozenset({"relevant_found", "pool_size", "control_found", "cost", "seconds"})


class RuleStopper:
    """A stopping rule as a stopper of ASReview.

    Give it to ``Simulate`` or to ``ActiveLearningCycle`` as ``stopper``. The rule is applied after every label. Its
    last verdict, with the reason, is in :attr:`verdict`. The result depends only on the labels: the stopper stores how
    many labels the rule has observed, and starts again if earlier labels have changed.

    Args:
        rule: A rule that requires nothing of a model, or its ``state_dict()``, for a configuration file.
        control: For :class:`suffice.QuantileRecall`: the record ids of the control sample.

    Attributes:
        verdict: Verdict of the last call; None before the first label.
        verdicts: What the rule said after each label.

    Raises:
        InvalidTypeError: ``rule`` is not a stopping rule.
        MissingInputError: The rule requires predictions of a model.
        InvalidValueError: The control sample has another size than the rule requires.

    Examples:
        >>> import suffice as sf
        >>> stopper = RuleStopper(sf.ConsecutiveIrrelevant(3) | sf.Budget(100))
        >>> stopper.stop({"record_id": [5, 2, 7, 1], "label": [1, 0, 0, 0]}, range(1000))
        True
        >>> stopper.verdict.reason
        'the number of irrelevant items in a row, 3, is at least the limit 3'
    """

    name: ClassVar[str] = "suffice"
    label: ClassVar[str] = "suffice"

    def __init__(self, rule: Criterion | Mapping[str, Any], control: Any = ()) -> None:
        if isinstance(rule, Mapping):
            rule = criterion_from_dict(rule)
        if not isinstance(rule, Criterion):
            raise InvalidTypeError(f"rule must be a stopping rule or its state_dict(), not {type(rule).__name__}")
        self.rule = rule.copy()
        self.rule.reset()
        self.control = tuple(np.atleast_1d(np.asarray(control, dtype=np.intp)).tolist())
        missing = sorted(self.rule.needs() - _PROVIDED)
        if missing:
            raise MissingInputError(
                f"{requiring_rule(self.rule, missing)} requires {', '.join(missing)}, and a stopper of ASReview does "
                "not see the model; use a rule that counts labels, such as RecallTest"
            )
        sizes = [each.sample for each in _rules_in(self.rule) if isinstance(each, QuantileRecall)]
        if any(size != len(set(self.control)) for size in sizes):
            raise InvalidValueError(
                f"control must hold the record ids of the {sizes[0]} control items that QuantileRecall is for, not "
                f"{len(set(self.control))}"
            )
        self._begin()

    def _begin(self) -> None:
        self.rule.reset()
        self.verdicts: list[Verdict] = []
        self._seen: list[tuple[int, bool]] = []

    @property
    def verdict(self) -> Verdict | None:
        """Verdict of the last call; None before the first label."""
        return self.verdicts[-1] if self.verdicts else None

    def stop(self, results: Any, data: Any) -> bool:
        """Return whether the review should stop: the rule says so, or every record is labelled.

        Args:
            results: The labels so far in order: a table with the columns ``record_id`` and ``label``; 1 is relevant.
                Records without a label (NaN) are left out. ``time``, in seconds, is used by a rule that limits time.
            data: All records, whose number is used.

        Raises:
            InvalidValueError: A label is neither 0 nor 1, or there are more labels than records.
        """
        size = len(data)
        labels = np.asarray(results["label"], dtype=np.float64)
        kept = np.flatnonzero(~np.isnan(labels))
        odd = [value for value in labels[kept].tolist() if value not in (0.0, 1.0)]
        if odd:
            raise InvalidValueError(f"results must have labels 0 (irrelevant) or 1 (relevant), not {odd[0]:g}")
        if len(kept) > size:
            raise InvalidValueError(f"results has {len(kept)} labels, and data has {size} records")
        records = np.asarray(results["record_id"])[kept].tolist()
        given = list(zip(records, (labels[kept] == 1.0).tolist(), strict=True))
        if given[: len(self._seen)] != self._seen:
            self._begin()
        fields = self._fields(results, kept, given, size)
        for n in range(len(self._seen) + 1, len(given) + 1):
            step = Step(n_labelled=n, pool_size=size, **{name: values[n - 1] for name, values in fields.items()})
            self.verdicts.append(self.rule.observe(step))
        self._seen = given
        return len(given) == size or (bool(self.verdicts) and self.verdicts[-1].stop)

    def _fields(self, results: Any, kept: Any, given: list[tuple[int, bool]], size: int) -> dict[str, list[Any]]:
        """Fields of the steps, for each label."""
        wanted, control = self.rule.reads(), set(self.control)
        found: dict[str, list[Any]] = {
            "relevant_found": np.cumsum([relevant for _, relevant in given]).tolist(),
            "control_found": np.cumsum([record in control for record, _ in given]).tolist(),
            "cost": [float(n) for n in range(1, len(given) + 1)],
        }
        if "seconds" in wanted and size:
            times = np.asarray(results["time"], dtype=np.float64)[kept]
            found["seconds"] = np.maximum.accumulate(times - times[:1]).tolist()
        return {name: values for name, values in found.items() if name in wanted}

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - as in scikit-learn
        """Return the arguments of the constructor as JSON values, for configuration files of ASReview."""
        blank = self.rule.copy()
        blank.reset()
        return {"rule": blank.state_dict(), "control": list(self.control)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.rule!r})"


def _rules_in(rule: Criterion) -> list[Criterion]:
    return [rule, *(inner for part in inner_rules(rule) for inner in _rules_in(part))]


class _OneRuleStopper(RuleStopper):
    """A stopper of one rule, whose arguments are those of the rule.

    Args:
        control: For :class:`suffice.QuantileRecall`: the record ids of the control sample.
        **params: Arguments of the rule.
    """

    _kind: ClassVar[type[Criterion]]

    def __init__(self, control: Any = (), **params: Any) -> None:
        super().__init__(self._kind(**params), control)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor."""
        control = {"control": list(self.control)} if self.control else {}
        return {**super().get_params(deep)["rule"]["params"], **control}


class RecallTestStopper(_OneRuleStopper):
    """:class:`suffice.RecallTest` as a stopper: ``at_least``, ``confidence``."""

    name, label, _kind = "suffice_recall_test", "Recall test (suffice)", RecallTest


class QuantileRecallStopper(_OneRuleStopper):
    """:class:`suffice.QuantileRecall` as a stopper: ``sample``, ``at_least``, ``confidence``, and ``control``."""

    name, label, _kind = "suffice_quantile_recall", "Quantile recall (suffice)", QuantileRecall


class PoissonRecallStopper(_OneRuleStopper):
    """:class:`suffice.PoissonRecall` as a stopper, with its arguments."""

    name, label, _kind = "suffice_poisson_recall", "Poisson recall (suffice)", PoissonRecall


class KneeStopper(_OneRuleStopper):
    """:class:`suffice.Knee` as a stopper: ``least_screened``."""

    name, label, _kind = "suffice_knee", "Knee (suffice)", Knee


class ConsecutiveIrrelevantStopper(_OneRuleStopper):
    """:class:`suffice.ConsecutiveIrrelevant` as a stopper: ``items``."""

    name, label, _kind = "suffice_consecutive_irrelevant", "Consecutive irrelevant (suffice)", ConsecutiveIrrelevant


class SafeStopper(_OneRuleStopper):
    """:class:`suffice.Safe` as a stopper, with its arguments."""

    name, label, _kind = "suffice_safe", "SAFE (suffice)", Safe
