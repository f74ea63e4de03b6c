"""The course of a run for one family of models: which item next, what a label did, what the past looks like anew."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Protocol

import numpy as np

from suffice.acquisition import Indices
from suffice.divergence import KLPair
from suffice.divergence.observations import in_units_of_noise
from suffice.learner.facts import NOTHING, Facts, joined_rows
from suffice.special import Floats


@dataclass(frozen=True)
class Outcome:
    """What some steps did, one entry a step.

    Attributes:
        pair: Both divergences, ``KL[new||old]`` and ``KL[old||new]``.
        error: Expected error on the test set after each step; empty where there is none.
        estimated: How the divergences were estimated, if they are neither exact nor bounds.
        measures: What else was measured, by name, one row a step.
    """

    pair: KLPair
    error: Floats
    estimated: str = ""
    measures: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def kl_new_old(self) -> Floats:
        """``KL[new||old]``."""
        return self.pair.new_old

    @property
    def kl_old_new(self) -> Floats:
        """``KL[old||new]``."""
        return self.pair.old_new

    @staticmethod
    def joined(parts: "Sequence[Outcome | Labels]") -> "Outcome":
        """Several outcomes, one after the other."""
        outcomes: list[Outcome] = []
        # Labels in a row are turned into divergences together: for a few, the calls would cost more than the numbers.
        for plain, group in groupby(parts, key=lambda part: isinstance(part, Labels)):
            members: list[Any] = list(group)
            outcomes.extend([_divergences(members)] if plain else members)
        empty = np.zeros(0)
        new_old, old_new, error = (
            np.concatenate([empty, *(getattr(outcome, name) for outcome in outcomes)])
            for name in ("kl_new_old", "kl_old_new", "error")
        )
        estimated = next((outcome.estimated for outcome in outcomes if outcome.estimated), "")
        measured = [outcome.measures for outcome in outcomes if len(outcome.kl_new_old)]
        names = measured[0] if measured else ()
        measures = {name: joined_rows([each[name] for each in measured]) for name in names}
        return Outcome(KLPair(new_old, old_new), error, estimated, measures)

    def first(self, n: int) -> "Outcome":
        """The first ``n`` steps."""
        measures = {name: values[:n] for name, values in self.measures.items()}
        return Outcome(KLPair(self.kl_new_old[:n], self.kl_old_new[:n]), self.error[:n], self.estimated, measures)

    def as_dict(self) -> dict[str, Any]:
        """The outcome as lists and numbers, exactly."""
        return {
            "pair": [self.kl_new_old.tolist(), self.kl_old_new.tolist()],
            "error": self.error.tolist(),
            "estimated": self.estimated,
            "measures": {name: values.tolist() for name, values in self.measures.items()},
            "types": {name: str(values.dtype) for name, values in self.measures.items()},
        }

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> "Outcome":
        """What :meth:`as_dict` gave."""
        new_old, old_new = (np.array(values) for values in saved["pair"])
        types = saved.get("types", {})
        measures = {name: np.array(values, dtype=types.get(name)) for name, values in saved["measures"].items()}
        return Outcome(KLPair(new_old, old_new), np.array(saved["error"]), saved["estimated"], measures)


@dataclass(frozen=True)
class Labels:
    """What single labels under Gaussian noise did: all that their divergences follow from.

    Attributes:
        latent: Latent variance before each label, in units of the noise variance.
        squared: Squared residual of each, in the same units.
        error: Expected error on the test set after each; empty where there is none.
    """

    latent: Floats
    squared: Floats
    error: Floats


def _divergences(parts: "list[Labels]") -> Outcome:
    latent, squared, error = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("latent", "squared", "error")
    )
    return Outcome(in_units_of_noise(latent, squared), error)


@dataclass(frozen=True)
class Setting:
    """What a run is made of besides its model.

    Attributes:
        X: The pool, ``m x D``.
        acquisition: Name of the acquisition.
        rng: Randomness.
        dtype: Number type that the pool is kept in.
        expected: Labels to make room for.
        test: Test inputs and labels, or None.
        facts: What else is to be told of each step.
    """

    X: Floats
    acquisition: str
    rng: np.random.Generator
    dtype: Any = np.float64
    expected: int = 256
    test: tuple[Floats, Any] | None = None
    facts: Facts = NOTHING


class Course(Protocol):
    """What a loop needs, whatever the model. Labels are told in steps; the first step holds the initial labels."""

    @property
    def revises(self) -> frozenset[str]:
        """Measures of past steps that are others once hyper-parameters are learned again."""

    def propose(self, most: int) -> Indices:
        """The next picks, as many as are known whatever the labels will be: at least 1, at most ``most``."""

    def batch(self, size: int) -> Indices:
        """Picks to be labelled together."""

    def skip(self, indices: Indices) -> None:
        """Leave items out from now on, unlabelled."""

    def check(self, y: Any) -> None:
        """Refuse labels that could not be learned, by name."""

    def begin(self, indices: Indices, y: Any) -> None:
        """Learn the initial labels."""

    def learn(self, indices: Indices, y: Any, *, together: bool) -> "Outcome | Labels":
        """Learn labels, each a step of its own or all as one step.

        Where :meth:`relearn` is due then, measures of the last step may be left to it.
        """

    def until_relearning(self) -> int | None:
        """Labels to go until :meth:`relearn` is due, 0 when it is; None where nothing is learned."""

    def relearn(self) -> Outcome:
        """Learn hyper-parameters again; return all steps after the initial labels as they are under the new ones.

        Measures that the new ones do not change are those of the time, but for the last step's, told only now.
        """

    def correct(self, index: int, y: Any) -> Outcome:
        """Change a label; return all steps after the initial labels as they are with it."""

    def fitted(self) -> Any:
        """The model as it stands."""

    def current_model(self) -> Any:
        """The same without a fit: it refers to the posterior of this course, and is valid until the next label."""


@dataclass
class History:
    """Labels in the order bought, and how many came at each step.

    Attributes:
        indices: Items, in order.
        sizes: Labels of each step; the first are the initial ones.
    """

    indices: list[int]
    sizes: list[int]

    def add(self, indices: Indices, *, together: bool) -> None:
        """Append labels, each a step of its own or all as one."""
        self.indices.extend(int(i) for i in indices)
        self.sizes.extend([len(indices)] if together else [1] * len(indices))

    def spans(self, longest: int) -> list[tuple[slice, bool]]:
        """The steps after the initial ones as spans of labels: one larger step each, or a run of single labels."""
        spans: list[tuple[slice, bool]] = []
        at = self.sizes[0]
        for size in self.sizes[1:]:
            last = spans[-1] if spans else None
            if size == 1 and last and not last[1] and last[0].stop - last[0].start < longest:
                spans[-1] = slice(last[0].start, at + 1), False
            else:
                spans.append((slice(at, at + size), size > 1))
            at += size
        return spans
