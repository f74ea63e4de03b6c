"""The model of a learner as one can look at it while labels come, and the error that it expects of itself."""

from copy import deepcopy
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from suffice.learner import ActiveLearner
from suffice.session.estimates import expected_error
from suffice.session.events import Label
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


class Witness:
    """What a learner's model says of itself, label by label.

    The learner gives away its model by fitting it anew, which takes long where there are many labels. So that is done
    when hyper-parameters were learned, and between such moments the model learns the same labels by itself, in steps of
    :func:`spacing`; for any number of labels in between a copy goes the rest of the way. So what is said of some labels
    does not depend on when it was looked at.

    Args:
        learner: The learner, which is told each label before the witness is.
        X: Features of all items, ``n x D``.
        sample: The items on which the error is estimated.
        initial: Labels that the learner's model begins with.
    """

    def __init__(self, learner: ActiveLearner, X: Floats, sample: NDArray[np.intp], initial: int) -> None:
        self._learner, self._X, self._sample, self._initial = learner, X, sample, initial
        self._items: list[int] = []
        self._labels: list[Label] = []
        self._transform: Any = None
        self._inputs: Floats | None = None
        self._estimates: list[ErrorEstimate] = []
        # The model after the last step, and at the newest label when that was looked at: with their numbers of labels.
        self._step: tuple[int, Any] = 0, None
        self._newest: tuple[int, Any] = 0, None

    @property
    def n(self) -> int:
        """Labels learned."""
        return len(self._items)

    @property
    def begun(self) -> bool:
        """Whether the learner has a model: it begins with fewer labels where no more are to be had."""
        return self.n >= self._initial or (self.n > 0 and not self._learner.left)

    def note(self, item: int, label: Label) -> None:
        """Take in a label that the learner has just been told."""
        self._items.append(item)
        self._labels.append(label)
        if self.begun and self.n % spacing(self.n) == 0:
            known, model = self._step
            self._step = self.n, self._grown(known, model)
            self._estimates.append(self._estimate(self._step[1]))

    def errors(self) -> tuple[ErrorEstimate, ...]:
        """The error that the model expected of itself at each step, and now; empty before it has begun."""
        if not self.begun or self._step[0] == self.n:
            return tuple(self._estimates)
        if self._newest[0] != self.n:
            self._newest = self.n, self._estimate(self._here())
        return (*self._estimates, self._newest[1])

    def model(self) -> tuple[Any, Any]:
        """What turns features into inputs, or None; and the model as it stands, which belongs to the caller.

        Raises:
            SufficeError: The learner has no model yet.
        """
        model = self._here()
        return self._transform, deepcopy(model) if model is self._step[1] else model

    def _here(self) -> Any:
        """The model at the newest label."""
        known, model = self._step
        return model if known == self.n and model is not None else self._grown(known, deepcopy(model))

    def _grown(self, known: int, model: Any) -> Any:
        """A model that knew some labels, with all of them: itself, or that of the learner where that learned anew."""
        if model is None or (model.learns and self.n >= 2 * model.learned_at_):
            return self._fresh()
        rows = self._X[self._items[known:]]
        return model.observe(rows if self._transform is None else self._transform.transform(rows), self._labels[known:])

    def _fresh(self) -> Any:
        model = self._learner.model
        if not hasattr(model, "steps"):
            return model
        self._transform = model[:-1]
        return model[-1]

    def _estimate(self, model: Any) -> ErrorEstimate:
        if self._inputs is None:
            rows = self._X[self._sample]
            self._inputs = rows if self._transform is None else self._transform.transform(rows)
        return expected_error(model, self._inputs).at(self.n)
