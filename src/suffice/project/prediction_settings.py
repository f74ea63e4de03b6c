"""What a project checks if its predictions were made elsewhere, and how they are stored."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.checks.given_predictions import AnswerWay
from suffice.checks.made_elsewhere import GivenPredictions
from suffice.numerics import Floats

#: Name of the model of a project whose predictions were made elsewhere.
GIVEN: Final = "given"


@dataclass(frozen=True)
class CheckedPredictions:
    """The predictions that a project checks.

    Attributes:
        columns: Names of the columns of predictions.
        answer: How people answer: they label without seeing a prediction, or say whether it is right.
        probability: Name of the column with the confidence in each prediction of the first column, or None.
        group: Name of the column of groups, or None.
        groups: Names of the groups.
        spans: Names of the columns with the start and the end of a marked part of the text, or None.
        concealed: Names of further columns that people do not see.
    """

    columns: tuple[str, ...]
    answer: AnswerWay = "blind"
    probability: str | None = None
    group: str | None = None
    groups: tuple[str, ...] = ()
    spans: tuple[str, str] | None = None
    concealed: tuple[str, ...] = ()

    @property
    def hidden(self) -> frozenset[str]:
        """Columns that people do not see before they answer."""
        if self.answer == "verdict":
            return frozenset(self.concealed)
        return frozenset({*self.concealed, *self.columns, *([] if self.probability is None else [self.probability])})

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> "CheckedPredictions":
        """Restore it from :meth:`as_dict`, also after a round trip through JSON."""
        spans = saved.get("spans")
        lists = {name: tuple(saved.get(name, ())) for name in ("columns", "groups", "concealed")}
        return CheckedPredictions(**{**saved, **lists, "spans": None if spans is None else tuple(spans)})


def given_predictions(checked: CheckedPredictions, classes: Sequence[str], X: Floats) -> GivenPredictions:
    """The predictions of a project from its features.

    Args:
        checked: What the project checks.
        classes: The classes of the project; empty for numbers.
        X: Features of the items: a column for each column of predictions, then the probability, then the group.
    """
    names = np.asarray(classes, dtype=object)
    columns: dict[str, NDArray[Any]] = {}
    for place, name in enumerate(checked.columns):
        values = np.asarray(X[:, place])
        columns[name] = names[values.astype(np.intp)] if len(names) else values
    place, probability, groups = len(checked.columns), None, None
    if checked.probability is not None:
        probability, place = np.asarray(X[:, place], dtype=np.float64), place + 1
    if checked.group is not None:
        groups = np.asarray(checked.groups, dtype=object)[np.asarray(X[:, place]).astype(np.intp)]
    return GivenPredictions(columns, probability, groups, not len(names))
