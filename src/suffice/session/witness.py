"""The error that the model of a project expects of itself, recorded while labels come."""

from copy import deepcopy
from typing import Any, Final

from suffice.learner import ActiveLearner
from suffice.session.estimates import expected_error
from suffice.session.insight import ErrorEstimate
from suffice.special import Floats

_EVERY: Final = 5
_OFTEN_UP_TO: Final = 400


def spacing(n: int) -> int:
    """Labels between two estimates: 5 up to 400 labels, 10 up to 800, and twice as many for each doubling after that.

    Examples:
        >>> [spacing(n) for n in (10, 400, 401, 800, 3000)]
        [5, 5, 10, 10, 40]
    """
    every = _EVERY
    while n * _EVERY > _OFTEN_UP_TO * every:
        every *= 2
    return every


class SelfErrorTracker:
    """Records the error that a learner's model expects of itself, every few labels.

    It reads the posterior of the learner and learns nothing itself. The learner takes one label at a time, so an
    estimate depends on the labels alone, and not on when it was read.

    Args:
        learner: The learner. It is told each label before the tracker is.
        rows: Features of the items on which the error is estimated, ``m x D``.
        initial: Labels that the learner's model starts from.

    Attributes:
        n: Labels learned.
    """

    def __init__(self, learner: ActiveLearner, rows: Floats, initial: int) -> None:
        self._learner, self._rows, self._initial = learner, rows, initial
        self._inputs: Floats | None = None
        self._estimates: list[ErrorEstimate] = []
        # The estimate for a number of labels at which none is recorded, kept because it is read several times.
        self._newest: ErrorEstimate | None = None
        self.n = 0

    @property
    def begun(self) -> bool:
        """Whether the learner has a model. It starts from fewer labels where no item is left."""
        return self.n >= self._initial or (self.n > 0 and not self._learner.left)

    def label_learned(self) -> None:
        """Count a label that the learner has just been told, and record an estimate if one is due."""
        self.n += 1
        if self.begun and self.n % spacing(self.n) == 0:
            self._estimates.append(self._estimate())

    def errors(self) -> tuple[ErrorEstimate, ...]:
        """The recorded estimates, and the one of now; empty before the model has started."""
        if not self.begun or (self._estimates and self._estimates[-1].n_labelled == self.n):
            return tuple(self._estimates)
        if self._newest is None or self._newest.n_labelled != self.n:
            self._newest = self._estimate()
        return (*self._estimates, self._newest)

    def model(self) -> tuple[Any, Any]:
        """The transformer of features into inputs, or None; and a copy of the model as it is now.

        Raises:
            SufficeError: The learner has no model yet.
        """
        transform, model = self._parts()
        return transform, deepcopy(model)

    def _parts(self) -> tuple[Any, Any]:
        model = self._learner.current_model
        return (model[:-1], model[-1]) if hasattr(model, "steps") else (None, model)

    def _estimate(self) -> ErrorEstimate:
        transform, model = self._parts()
        if self._inputs is None:
            self._inputs = self._rows if transform is None else transform.transform(self._rows)
        return expected_error(model, self._inputs).at(self.n)
