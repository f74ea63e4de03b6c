"""The decisions of a run whose labels are all known, made while it runs."""

from typing import Any, Final

from suffice.learner.learning_loop import LearnerView, LearningLoop
from suffice.session.advice import standing_stop
from suffice.session.decision import doubt_ends
from suffice.trace import RecordedDecision

# A stop in doubt is examined again when the number of labels has grown by this factor.
_EXAMINED_AGAIN: Final = 1.1


class StopSearch:
    """Makes the decisions of a run, until one of them is to stop or to check the model.

    The decision is made when a stop of the rule stands. If it is not to stop, it is made again some labels later, and
    where the doubt about it ends.

    Args:
        loop: The loop, whose session applies the rule to each step.
        view: The current model.
        at_most: The error that is wanted, as for :meth:`suffice.ActiveLearner.decision`.

    Attributes:
        decisions: The decisions so far.
    """

    def __init__(self, loop: LearningLoop, view: LearnerView, at_most: float | None) -> None:
        self.loop, self._view, self._at_most = loop, view, at_most
        self.decisions: list[RecordedDecision] = []
        self._examined = 0

    @property
    def active(self) -> bool:
        """Whether no decision was to stop or to check the model yet."""
        return not (self.decisions and self.decisions[-1].ends)

    def examine(self, step: int, *, last: bool = False) -> None:
        """Make the decision after a step if it is due.

        Args:
            step: Index of the step.
            last: Whether it is the last step of the run.
        """
        stop, n = standing_stop(self.loop.session.history.verdicts), len(self.loop.session.labels.everything)
        if stop is None:
            self._examined = 0
        if not self.active or (stop is None and not last):
            return
        ends = [] if stop is None else [end for end in doubt_ends(stop.n_labelled) if self._examined < end <= n]
        if n < _EXAMINED_AGAIN * self._examined and not ends and not last:
            return
        self._examined = n
        decision = self.loop.session.decide(self._view, self._at_most)
        worsening = self.loop.session.estimates.worsening(self._view)
        self.decisions.append(RecordedDecision(step, decision, worsening))


def stop_search(loop: LearningLoop, prepared: Any, X: Any, compared: Any, at_most: float | None) -> StopSearch:
    """The search for the stop of a run.

    Args:
        loop: The loop.
        prepared: The model and its pipeline.
        X: Inputs of the pool, as the backend takes them.
        compared: Inputs for the comparison with other models.
        at_most: The error that is wanted, or None.
    """
    view = LearnerView(loop, prepared, X, compared, type(prepared.model).__name__, _predict(X))
    return StopSearch(loop, view, at_most)


def _predict(X: Any) -> Any:
    return lambda fitted, items: fitted.predict(X[items])
