"""The decisions of a run whose labels are all known, made while it runs."""

from typing import Any, Final

from suffice.learner.learning_loop import LearnerView, LearningLoop
from suffice.session.decision import target_doubt_end
from suffice.trace import RecordedDecision

# A stop in doubt is examined again when the number of labels has grown by this factor.
_EXAMINED_AGAIN: Final = 1.1


class StopSearch:
    """Makes the decisions of a run, until one of them is to stop or to check the model.

    Without a target it is made when the verdict is to stop. With a target it is made when a stop of the rule stands,
    and every few labels before, because a check may be advised; if it is not to stop, it is made again some labels
    later, and where the doubt about the target ends.

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
        if not self.active:
            return
        session = self.loop.session
        stop = session.settle(self._view).stop
        if not (last or self._due() or (stop and self._at_most is None)):
            return
        self._examined = len(session.labels.everything)
        decision = session.decide(self._view, self._at_most)
        made = RecordedDecision(step, decision, session.estimates.worsening(self._view))
        # Without a stop, only the decision to check and the last one are of interest.
        if last or made.ends or session.history.stop is not None:
            self.decisions.append(made)

    def _due(self) -> bool:
        """Whether a decision is due after the last label."""
        session, stop = self.loop.session, self.loop.session.history.stop
        n = len(session.labels.everything)
        if stop is None:
            self._examined = 0
            return self._at_most is not None and session.due(self._at_most, compare=False)
        ends = self._examined < target_doubt_end(stop.n_labelled) <= n
        advised = self._at_most is not None and session.due(self._at_most, compare=False)
        return n >= _EXAMINED_AGAIN * self._examined or ends or advised


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
