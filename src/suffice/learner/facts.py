"""Step inputs: what a rule requires besides divergences, and how a classifier provides it for pool and stop set."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from suffice.acquisition import Indices
from suffice.arguments import whole
from suffice.criteria import Criterion, committee_agreement, pool_facts
from suffice.criteria.facts import selected_losses
from suffice.errors import InvalidValueError
from suffice.learner.stop_set import StopSet
from suffice.special import Floats
from suffice.trace import STEP_FIELDS

#: Fields of a step that any loop can count.
COUNTED_FIELDS: Final = frozenset({"seconds", "cost", "pool_size"})
VALIDATION_FIELDS: Final = frozenset({"validation_error", "validation_labels"})
#: Losses of the selected items before their labels were learned, and the losses that the model expected.
LOSS_FIELDS: Final = frozenset({"selected_loss", "selected_expected_loss"})
_SELECTED_FIELDS: Final = LOSS_FIELDS | {"selected_probabilities", "selected_labels", "selected_agreement"}
# Fields about the pool, with their values for an empty pool, where nothing is uncertain.
_NOTHING_LEFT: Final = {
    "pool_max_entropy": 0.0,
    "pool_uncertainty": 0.0,
    "pool_risk": 0.0,
    "pool_margin": 1.0,
    "pool_confidence_variance": 0.0,
    "pool_changes": 0,
    "pool_f": 1.0,
}
_POOL_FIELDS: Final = frozenset(_NOTHING_LEFT)
_STOP_SET_FIELDS: Final = frozenset({"stop_probabilities", "stop_confidence", "stop_agreement", "expected_error"})
#: Fields that :class:`ClassInputCollector` computes.
CLASSIFIER_FIELDS: Final = _SELECTED_FIELDS | _POOL_FIELDS | _STOP_SET_FIELDS | {"pool_gain"}
# Members of a committee: posterior draws, or passes of a network.
_MEMBERS: Final = 10
_ROWS: Final = 4096


@dataclass(frozen=True)
class StepInputs:
    """The fields that a run has to provide for each step besides its divergences.

    Attributes:
        names: Fields of a :class:`suffice.Step`.
        stop: The stop set, if a field needs it.
        validation: Inputs and labels of a validation set, if a field needs it.
    """

    names: frozenset[str] = frozenset()
    stop: Indices | None = None
    validation: tuple[Floats, Any] | None = None

    def about(self, names: Iterable[str]) -> bool:
        """Whether any of these fields is wanted."""
        return not self.names.isdisjoint(names)


NO_STEP_INPUTS: Final = StepInputs()


def requested_fields(record: "Criterion | str | Iterable[Any]", available: frozenset[str]) -> frozenset[str]:
    """Fields to record: those that one rule or several require, fields by name, or ``"all"`` available ones."""
    if isinstance(record, Criterion):
        return record.needs()
    if isinstance(record, str):
        if record == "all":
            return available
        if record not in STEP_FIELDS:
            raise InvalidValueError(
                f"record must be 'all', stopping rules, or fields of a Step; {record!r} is none of them"
            )
        return frozenset({record})
    if not isinstance(record, Iterable):
        raise InvalidValueError(f"record must be 'all', stopping rules, or fields of a Step, not {record!r}")
    return frozenset().union(*(requested_fields(part, available) for part in record))


def new_step_inputs(names: frozenset[str], pool_size: int, stop_set: Any, *, seed: int, validation: Any) -> StepInputs:
    """The fields that a run has to provide; the stop set is drawn if a field needs it and none is given."""
    stop = None
    if names & _STOP_SET_FIELDS:
        found = stop_set if isinstance(stop_set, StopSet) else _drawn(pool_size, stop_set, seed)
        if found.pool_size != pool_size:
            raise InvalidValueError(
                f"stop_set was drawn from a pool of {found.pool_size} items, and this one has {pool_size}"
            )
        stop = found.indices
    return StepInputs(names, stop, validation if names & VALIDATION_FIELDS else None)


def _drawn(pool_size: int, size: Any, seed: int) -> StopSet:
    return StopSet.draw(pool_size, 2000 if size is None else whole(size, "stop_set", least=1), seed=seed)


class ClassPredictor(Protocol):
    """The current predictions of a classifier for items of the pool. The column of a class never changes."""

    def probabilities(self, rows: Indices) -> Floats:
        """Averaged class probabilities, ``n x K``."""

    def votes(self, rows: Indices, members: int) -> Any:
        """The class that each of several draws votes for, ``members x n``."""

    def gains(self, rows: Indices) -> Floats:
        """Information gain of each item's label, in nats."""

    def expected_error(self, rows: Indices) -> float:
        """The expected error according to the classifier itself."""


class _Selected(NamedTuple):
    probabilities: Floats
    agreement: float | None


class ClassInputCollector:
    """Computes the wanted step inputs from a classifier's predictions for selected items, pool and stop set.

    Args:
        wanted: The wanted fields.
        size: Number of items of the pool.
    """

    def __init__(self, wanted: StepInputs, size: int) -> None:
        self._wanted, self._free = wanted, np.ones(size, dtype=bool)
        self._predicted = np.full(size, -1)
        self._selected: _Selected | None = None

    def take(self, indices: Indices) -> None:
        """Remove items from the pool."""
        self._free[indices] = False

    def begin(self, model: ClassPredictor) -> None:
        """Store the predictions before the first step."""
        if self._wanted.about({"pool_changes"}):
            rows = np.flatnonzero(self._free)
            self._predicted[rows] = _in_parts(model.probabilities, rows).argmax(axis=1)

    def before(self, model: ClassPredictor, indices: Indices) -> None:
        """Store the predictions for items before their labels are learned."""
        if self._wanted.about(_SELECTED_FIELDS):
            p = model.probabilities(indices)
            agreed = None
            if self._wanted.about({"selected_agreement"}):
                agreed = committee_agreement(model.votes(indices, _MEMBERS), p.shape[1])
            self._selected = _Selected(p, agreed)

    def after(self, model: ClassPredictor, codes: Any) -> dict[str, Any]:
        """The wanted fields after a step whose labels are ``codes``."""
        found: dict[str, Any] = {**self._of_selected(codes), **self._of_pool(model), **self._of_stop_set(model)}
        return {name: value for name, value in found.items() if name in self._wanted.names}

    def _of_selected(self, codes: Any) -> dict[str, Any]:
        if self._selected is None:
            return {}
        p, agreed = self._selected
        known = np.asarray(codes)
        labels = np.where(known < p.shape[1], known, -1)
        return {
            "selected_probabilities": p,
            "selected_labels": labels,
            "selected_agreement": agreed,
            **selected_losses(p, labels),
        }

    def _of_pool(self, model: ClassPredictor) -> dict[str, Any]:
        rows = np.flatnonzero(self._free)
        found: dict[str, Any] = {}
        if self._wanted.about({"pool_gain"}):
            found["pool_gain"] = max(0.0, float(_in_parts(model.gains, rows).max(initial=0.0))) if len(rows) else 0.0
        if not self._wanted.about(_POOL_FIELDS):
            return found
        if not len(rows):
            return found | _NOTHING_LEFT
        p = _in_parts(model.probabilities, rows)
        found |= pool_facts(p, before=self._predicted[rows])
        self._predicted[rows] = p.argmax(axis=1)
        return found

    def _of_stop_set(self, model: ClassPredictor) -> dict[str, Any]:
        stop, found = self._wanted.stop, {}
        if stop is None:
            return {}
        if self._wanted.about({"stop_probabilities", "stop_confidence"}):
            p = _in_parts(model.probabilities, stop)
            # Half precision, as a record keeps them: a rule sees the same live and replayed.
            found = {"stop_probabilities": p.astype(np.float16), "stop_confidence": float(p.max(axis=1).mean())}
        if self._wanted.about({"stop_agreement"}):
            votes = np.concatenate([model.votes(part, _MEMBERS) for part in _parts(stop)], axis=1)
            found["stop_agreement"] = committee_agreement(votes, model.probabilities(stop[:1]).shape[1])
        if self._wanted.about({"expected_error"}):
            found["expected_error"] = float(
                sum(len(part) * model.expected_error(part) for part in _parts(stop)) / len(stop)
            )
        return found


def stacked(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Step inputs of several steps by name, one row per step."""
    return {name: joined_rows([np.asarray(row[name])[None] for row in rows]) for name in (rows[0] if rows else ())}


def joined_rows(parts: "Sequence[Any]") -> Any:
    """Rows of several steps, one after the other.

    Where steps differ in their number of items, or a class was met later, what is not there is NaN, or -2 among whole
    numbers.
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


def _parts(rows: Indices) -> list[Indices]:
    return [rows[k : k + _ROWS] for k in range(0, len(rows), _ROWS)]


def _in_parts(of: Callable[[Indices], Floats], rows: Indices) -> Floats:
    return np.concatenate([of(part) for part in _parts(rows)])
