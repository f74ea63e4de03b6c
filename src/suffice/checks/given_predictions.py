"""Predictions that were made elsewhere: by a language model, by rules, or by other people."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import NDArray

from suffice.numerics import Floats
from suffice.presentation.text_format import count

#: How people answer: they label without seeing the prediction, or they say whether it is right.
AnswerWay = Literal["blind", "verdict"]
# Types of the missing values of pandas, which need not be installed.
_MISSING_TYPES: Final = ("NAType", "NaTType")


@dataclass(frozen=True, eq=False)
class PredictedColumns:
    """Predictions that were made elsewhere, one for each row.

    Attributes:
        columns: The predictions of each maker by its name, all of the same length: texts, or numbers.
        probability: Confidence of the first column in each of its predictions, from 0 to 1; None if it is not known.
        groups: Group of each row; None if there are none.
        numbers: Whether the predictions are numbers.
    """

    columns: Mapping[str, NDArray[Any]]
    probability: Floats | None = None
    groups: NDArray[Any] | None = None
    numbers: bool = False

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self.columns))
        return f"GivenPredictions({count(len(self), 'row')}, {names})"

    @property
    def first(self) -> NDArray[Any]:
        """The predictions of the first column."""
        return next(iter(self.columns.values()))

    @property
    def classes(self) -> list[str]:
        """All predicted classes in sorted order; empty for numbers."""
        if self.numbers:
            return []
        return sorted(set().union(*(set(values.tolist()) for values in self.columns.values())))

    @property
    def group_sizes(self) -> dict[str, int]:
        """Number of rows of each group; empty if there are none."""
        if self.groups is None:
            return {}
        names, sizes = np.unique(self.groups, return_counts=True)
        return dict(zip(names.tolist(), sizes.tolist(), strict=True))

    def part(self, rows: NDArray[np.intp]) -> Self:
        """The predictions for some rows, in this order."""
        return type(self)(
            {name: values[rows] for name, values in self.columns.items()},
            None if self.probability is None else self.probability[rows],
            None if self.groups is None else self.groups[rows],
            self.numbers,
        )


def class_text(value: Any) -> str:
    """A class as a text: 1.0, as in a column with missing values, is the class 1."""
    if isinstance(value, str):
        return str(value)
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def is_missing(value: Any) -> bool:
    """Whether a value is None, not a number, a missing value of pandas, or an empty text."""
    if value is None or isinstance(value, str):
        return value is None or not value.strip()
    if type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)
