"""What a rule asks for besides divergences: who can tell it, and what a classifier says of pool and stop set."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from suffice.acquisition import Indices
from suffice.arguments import whole
from suffice.criteria import Criterion, committee_agreement, pool_facts
from suffice.criteria.facts import selected_losses
from suffice.errors import InvalidValueError, MissingInputError
from suffice.learner.stop_set import StopSet
from suffice.special import Floats
from suffice.trace import DIVERGENCES, STEP_FIELDS

#: Fields of a step that any loop can count.
COUNTED: Final = frozenset({"seconds", "cost", "pool_size"})
VALIDATED: Final = frozenset({"validation_error", "validation_labels"})
_LOSSES: Final = frozenset({"selected_loss", "selected_expected_loss"})
OF_NUMBERS: Final = _LOSSES | {"pool_variance", "pool_gain", "expected_error"}
_OF_SELECTED: Final = _LOSSES | {"selected_probabilities", "selected_labels", "selected_agreement"}
# What is said of a pool, and of an empty one, where nothing is uncertain.
_NOTHING_LEFT: Final = {
    "pool_max_entropy": 0.0,
    "pool_uncertainty": 0.0,
    "pool_risk": 0.0,
    "pool_margin": 1.0,
    "pool_confidence_variance": 0.0,
    "pool_changes": 0,
    "pool_f": 1.0,
}
_OF_POOL: Final = frozenset(_NOTHING_LEFT)
OF_NETWORKS: Final = (
    _OF_SELECTED | _OF_POOL | {"pool_gain", "stop_probabilities", "stop_confidence", "stop_agreement", "expected_error"}
)
OF_CLASSES: Final = OF_NETWORKS | {"kl_prior", "train_error"}
_OF_STOP_SET: Final = frozenset({"stop_probabilities", "stop_confidence", "stop_agreement", "expected_error"})
# Members of a committee: posterior draws, or passes of a network.
_MEMBERS: Final = 10
_ROWS: Final = 4096


@dataclass(frozen=True)
class Facts:
    """What a run has to tell besides its divergences.

    Attributes:
        names: Fields of a :class:`suffice.Step`.
        stop: The stop set, where one of them is about it.
        validation: Inputs and labels of a validation set, where one of them is about it.
    """

    names: frozenset[str] = frozenset()
    stop: Indices | None = None
    validation: tuple[Floats, Any] | None = None

    def about(self, names: Iterable[str]) -> bool:
        """Whether any of these is wanted."""
        return not self.names.isdisjoint(names)


NOTHING: Final = Facts()


def asked_for(record: "Criterion | str | Iterable[Any]", available: frozenset[str]) -> frozenset[str]:
    """Fields that somebody wants recorded: those of a rule, of several, by name, or ``"all"`` that there are."""
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
    return frozenset().union(*(asked_for(part, available) for part in record))


def require_told(names: frozenset[str], available: frozenset[str], what: str) -> None:
    """Refuse a field that a loop cannot tell.

    Raises:
        MissingInputError: One is missing, named.
    """
    missing = sorted(names - available - DIVERGENCES)
    if not missing:
        return
    hint = ""
    if VALIDATED.issuperset(missing):
        hint = ". Give a validation set: validation=(X, y)"
    raise MissingInputError(
        f"criterion requires {', '.join(missing)}, which {what} does not have; it gives n_labelled, "
        f"{', '.join(sorted(available | DIVERGENCES))}{hint}"
    )


def facts_of(names: frozenset[str], pool_size: int, stop_set: Any, *, seed: int, validation: Any) -> Facts:
    """What a run has to tell; the stop set is drawn where it is wanted and not given."""
    stop = None
    if names & _OF_STOP_SET:
        found = stop_set if isinstance(stop_set, StopSet) else _drawn(pool_size, stop_set, seed)
        if found.pool_size != pool_size:
            raise InvalidValueError(
                f"stop_set was drawn from a pool of {found.pool_size} items, and this one has {pool_size}"
            )
        stop = found.indices
    return Facts(names, stop, validation if names & VALIDATED else None)


def _drawn(pool_size: int, size: Any, seed: int) -> StopSet:
    return StopSet.draw(pool_size, 2000 if size is None else whole(size, "stop_set", least=1), seed=seed)


class Believer(Protocol):
    """A classifier as it stands, seen by what it says of items of the pool. Columns of classes never move."""

    def probabilities(self, rows: Indices) -> Floats:
        """Averaged class probabilities, ``n x K``."""

    def votes(self, rows: Indices, members: int) -> Any:
        """The class that each of several draws votes for, ``members x n``."""

    def gains(self, rows: Indices) -> Floats:
        """Information gain of each item's label, in nats."""

    def expected_error(self, rows: Indices) -> float:
        """The error that it expects of itself."""


class _Selected(NamedTuple):
    probabilities: Floats
    agreement: float | None


class ClassFacts:
    """What a classifier says of the items selected, of the pool and of the stop set, as far as it is wanted.

    Args:
        facts: What is wanted.
        size: Number of items of the pool.
    """

    def __init__(self, facts: Facts, size: int) -> None:
        self._facts, self._free = facts, np.ones(size, dtype=bool)
        self._predicted = np.full(size, -1)
        self._selected: _Selected | None = None

    def take(self, indices: Indices) -> None:
        """Items that are not in the pool any more."""
        self._free[indices] = False

    def begin(self, model: Believer) -> None:
        """Note what is predicted before the first step."""
        if self._facts.about({"pool_changes"}):
            rows = np.flatnonzero(self._free)
            self._predicted[rows] = _in_parts(model.probabilities, rows).argmax(axis=1)

    def before(self, model: Believer, indices: Indices) -> None:
        """Note what is said of items before their labels are learned."""
        if self._facts.about(_OF_SELECTED):
            p = model.probabilities(indices)
            agreed = None
            if self._facts.about({"selected_agreement"}):
                agreed = committee_agreement(model.votes(indices, _MEMBERS), p.shape[1])
            self._selected = _Selected(p, agreed)

    def after(self, model: Believer, codes: Any) -> dict[str, Any]:
        """All that is wanted, after a step whose labels are ``codes``."""
        found: dict[str, Any] = {**self._of_selected(codes), **self._of_pool(model), **self._of_stop_set(model)}
        return {name: value for name, value in found.items() if name in self._facts.names}

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

    def _of_pool(self, model: Believer) -> dict[str, Any]:
        rows = np.flatnonzero(self._free)
        found: dict[str, Any] = {}
        if self._facts.about({"pool_gain"}):
            found["pool_gain"] = max(0.0, float(_in_parts(model.gains, rows).max(initial=0.0))) if len(rows) else 0.0
        if not self._facts.about(_OF_POOL):
            return found
        if not len(rows):
            return found | _NOTHING_LEFT
        p = _in_parts(model.probabilities, rows)
        found |= pool_facts(p, before=self._predicted[rows])
        self._predicted[rows] = p.argmax(axis=1)
        return found

    def _of_stop_set(self, model: Believer) -> dict[str, Any]:
        stop, found = self._facts.stop, {}
        if stop is None:
            return {}
        if self._facts.about({"stop_probabilities", "stop_confidence"}):
            p = _in_parts(model.probabilities, stop)
            # Half precision, as a record keeps them: a rule sees the same live and replayed.
            found = {"stop_probabilities": p.astype(np.float16), "stop_confidence": float(p.max(axis=1).mean())}
        if self._facts.about({"stop_agreement"}):
            votes = np.concatenate([model.votes(part, _MEMBERS) for part in _parts(stop)], axis=1)
            found["stop_agreement"] = committee_agreement(votes, model.probabilities(stop[:1]).shape[1])
        if self._facts.about({"expected_error"}):
            found["expected_error"] = float(
                sum(len(part) * model.expected_error(part) for part in _parts(stop)) / len(stop)
            )
        return found


def stacked(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Facts of several steps by name, one row a step."""
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
