"""The steps of a session as arrays: what was measured at each of them, and the steps under later hyper-parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from suffice.criteria import Step
from suffice.criteria.step_and_verdict import FIELD_KINDS
from suffice.numerics import Floats

#: Fields of a :class:`suffice.Step` besides the number of labels.
STEP_FIELDS: Final = frozenset(FIELD_KINDS)
#: The two divergences.
DIVERGENCES: Final = frozenset({"kl_new_old", "kl_old_new"})
# The number of items and classes may differ from step to step, so the arrays of several steps are padded.
_PADDED: Final = frozenset(name for name, kind in FIELD_KINDS.items() if kind in ("probabilities", "labels"))


@dataclass(frozen=True, eq=False)
class Relearned:
    """The earlier steps under hyper-parameters that were learned again.

    Attributes:
        step: The step after which they were learned, from 0.
        kl_new_old: Divergences of all steps up to and including that one, under the new prior.
        kl_old_new: The same in the other direction.
        measures: The measures that depend on the prior, for the same steps.
    """

    step: int
    kl_new_old: Floats
    kl_old_new: Floats
    measures: Mapping[str, Floats] = field(default_factory=dict)


class MeasuredSteps(Protocol):
    """The results of some steps of a model, one entry per step."""

    @property
    def kl_new_old(self) -> Floats:
        """``KL[new||old]``; NaN if it is not known."""

    @property
    def kl_old_new(self) -> Floats:
        """``KL[old||new]``."""

    @property
    def measures(self) -> Mapping[str, Floats]:
        """Other measurements by name."""

    @property
    def estimated(self) -> str:
        """How the divergences were estimated, if they are neither exact nor bounds."""


class StepRecord:
    """What was measured at each step of a learner, for its rule and for its trace.

    Attributes:
        begun: Number of initial labels; 0 before the model has started.
        sizes: Number of labels of each step.
        kl_new_old: Divergence of each step, under the hyper-parameters at that step.
        kl_old_new: The same in the other direction.
        estimated: How the divergences were estimated, if they are neither exact nor bounds.
        measures: Other measurements of each step.
        relearned: The earlier steps under each set of hyper-parameters that was learned again.
    """

    def __init__(self) -> None:
        self.begun = 0
        self.sizes: list[int] = []
        self.kl_new_old: list[float] = []
        self.kl_old_new: list[float] = []
        self.estimated = ""
        self.measures: list[Mapping[str, Any]] = []
        self.relearned: list[Relearned] = []

    @property
    def counts(self) -> NDArray[np.intp]:
        """Number of labels after each step."""
        return self.begun + np.cumsum(np.array(self.sizes, dtype=np.intp))

    def add(self, size: int, result: MeasuredSteps, counted: Mapping[str, Any]) -> None:
        """Append a step.

        Args:
            size: Number of its labels.
            result: What the model measured; the last entry counts.
            counted: Fields that are counted without the model, arrays of one entry.
        """
        self.sizes.append(size)
        self.estimated = self.estimated or result.estimated
        self.measures.append({**result.measures, **counted})
        self.kl_new_old.append(float(result.kl_new_old[-1]))
        self.kl_old_new.append(float(result.kl_old_new[-1]))

    def set_last(self, **fields: Any) -> None:
        """Add fields to the last step, or replace them."""
        self.measures[-1] = {**self.measures[-1], **{name: np.array([value]) for name, value in fields.items()}}

    def replace(self, history: MeasuredSteps, revised: frozenset[str]) -> None:
        """Replace the whole history, because hyper-parameters were learned again or a label was corrected.

        Args:
            history: All steps.
            revised: Measures of past steps that have changed.
        """
        last = len(history.kl_new_old) - 1
        self.kl_new_old[last] = float(history.kl_new_old[last])
        self.kl_old_new[last] = float(history.kl_old_new[last])
        newest = {name: values[-1:] for name, values in history.measures.items()}
        self.measures[last] = {**self.measures[last], **newest}
        changed = {name: history.measures[name] for name in revised}
        self.relearned.append(Relearned(last, history.kl_new_old, history.kl_old_new, changed))

    def recount(self, counted: Mapping[str, Any]) -> None:
        """Replace counted fields of all steps.

        Args:
            counted: The fields, one entry for each label.
        """
        for number, end in enumerate(self.counts.tolist()):
            again = {name: values[end - 1 : end] for name, values in counted.items()}
            self.measures[number] = {**self.measures[number], **again}

    def last_step(self) -> Step:
        """The last step, as it was measured."""
        fields = {name: values for name, values in self.measures[-1].items() if name in STEP_FIELDS}
        unknown = np.isnan(self.kl_new_old[-1])
        pair = (None, None) if unknown else (self.kl_new_old[-1:], self.kl_old_new[-1:])
        return Step.sequence(self.counts[-1:], *pair, estimated=self.estimated, **fields)[0]

    def columns(self) -> dict[str, Any]:
        """The steps as arrays: arguments of :class:`suffice.Trace`."""
        return {
            "n_labelled": self.counts,
            "kl_new_old": np.array(self.kl_new_old),
            "kl_old_new": np.array(self.kl_old_new),
            "relearned": tuple(self.relearned),
            "estimated": self.estimated,
            "measures": joined_measures(self.measures),
        }

    def steps(self) -> list[Step]:
        """All steps under the newest hyper-parameters."""
        columns = self.columns()
        seen = self.relearned[-1] if self.relearned else None
        rest = 0 if seen is None else seen.step + 1
        names = recorded_fields(columns["kl_new_old"], columns["kl_old_new"], columns["measures"])
        arrays = {name: columns[name] for name in ("n_labelled", "kl_new_old", "kl_old_new", "estimated", "measures")}
        return [
            *steps_between(seen, 0, rest, names, **arrays),
            *steps_between(None, rest, len(self.sizes), names, **arrays),
        ]


def recorded_fields(kl_new_old: Floats, kl_old_new: Floats, measures: Mapping[str, Any]) -> frozenset[str]:
    """The fields of a :class:`suffice.Step` that were recorded; divergences that are NaN are unknown."""
    known = not (np.isnan(kl_new_old).any() or np.isnan(kl_old_new).any())
    return (DIVERGENCES if known else frozenset()) | (STEP_FIELDS & set(measures))


def steps_between(  # noqa: PLR0913 - the arrays of a run, by keyword
    relearned: Relearned | None,
    first: int,
    end: int,
    names: frozenset[str],
    *,
    n_labelled: Any,
    kl_new_old: Any,
    kl_old_new: Any,
    measures: Mapping[str, Any],
    estimated: str,
) -> list[Step]:
    """Return some steps of a run, under the hyper-parameters at each step or under later ones.

    Args:
        relearned: Later hyper-parameters, for the steps under them; None for the hyper-parameters at each step.
        first: The first step.
        end: The step after the last.
        names: The fields to include; those that were not recorded are left out.
        n_labelled: Number of labels after each step.
        kl_new_old: Divergences.
        kl_old_new: The same in the other direction.
        measures: Other measurements, by name.
        estimated: How the divergences were estimated.
    """
    part = slice(first, end)
    later = {} if relearned is None else relearned.measures
    columns = {name: later.get(name, measures[name])[part] for name in names & set(measures)}
    # If a rule does not require divergences, they are left out and not checked.
    pair: tuple[Any, Any] = (None, None)
    if names & DIVERGENCES:
        both = (kl_new_old, kl_old_new) if relearned is None else (relearned.kl_new_old, relearned.kl_old_new)
        pair = (both[0][part], both[1][part])
    steps = Step.sequence(n_labelled[part], *pair, estimated=estimated, **columns)
    for name in _PADDED & set(columns):
        if _is_padded(columns[name]):
            for step in steps:
                step.__dict__[name] = _without_padding(step.__dict__[name])
    return steps


def stacked(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Fields of several steps by name, one row per step."""
    return joined_measures([{name: np.asarray(value)[None] for name, value in row.items()} for row in rows])


def joined_measures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Measures of several groups of steps, one after the other; the first group names them."""
    return {name: joined_rows([row[name] for row in rows]) for name in (rows[0] if rows else ())}


def joined_rows(parts: Sequence[Any]) -> Any:
    """Rows of several steps, one after the other.

    If steps differ in their number of items or classes, missing values are NaN, or -2 for integers.
    """
    if parts[0].ndim == 1 or len({part.shape[1:] for part in parts}) == 1:
        return np.concatenate(parts)
    largest = [max(part.shape[axis] for part in parts) for axis in range(1, parts[0].ndim)]
    missing = np.nan if parts[0].dtype.kind == "f" else -2
    joined = np.full((sum(map(len, parts)), *largest), missing, dtype=parts[0].dtype)
    at = 0
    for part in parts:
        rows = joined[at : at + len(part)]
        if part.ndim == 3:
            rows[:, : part.shape[1], : part.shape[2]] = part
        else:
            rows[:, : part.shape[1]] = part
        at += len(part)
    return joined


def _is_padded(values: NDArray[Any]) -> bool:
    return bool(np.isnan(values).any() if values.dtype.kind == "f" else (values == -2).any())


def _without_padding(values: NDArray[Any]) -> NDArray[Any]:
    """The part of an array that is not padding for larger steps or later classes."""
    if values.ndim == 1:
        return values[values > -2]
    there = ~np.isnan(values)
    return np.asarray(values[there.any(axis=1)][:, there.any(axis=0)])
