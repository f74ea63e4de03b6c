"""What a monitor of sets of classes answers about each class: errors and guarantees."""

from typing import Any

from suffice.checks import Guarantee
from suffice.errors import InvalidValueError, SufficeError
from suffice.learner.label_sets import guarantees_by_class
from suffice.learner.session_driver import SessionDriver
from suffice.learner.update_memory import UpdateMemory
from suffice.models.threads import one_at_a_time
from suffice.session.error_estimate import CalibratedError
from suffice.session.model_check import ModelCheck


class SetQuestions(SessionDriver):
    """Base class of a monitor whose labels may be sets of classes."""

    _memory: UpdateMemory

    @one_at_a_time
    def class_errors(self) -> dict[Any, CalibratedError]:
        """For labels that are sets of classes: how often each class is predicted wrong for the unlabelled items.

        It is estimated as :meth:`error_estimate`, which is the share of wrong sets. Each interval has 90 % by itself.

        Raises:
            SufficeError: There is no model yet.
            InvalidValueError: Labels are not sets of classes.

        Examples:
            >>> import numpy as np
            >>> import suffice as sf
            >>> from sklearn.neighbors import KNeighborsClassifier
            >>> X = np.random.default_rng(0).normal(size=(400, 2)); Y = (X > 0.0).astype(int)
            >>> monitor = sf.StopMonitor(X, rule=sf.learner.ErrorGuarantee(0.2), seed=0)
            >>> model = KNeighborsClassifier().fit(X[:100], Y[:100])
            >>> verdict = monitor.update(model, range(100), Y[:100], random=range(100), classes=["right", "up"])
            >>> {name: error.value < 0.2 for name, error in monitor.class_errors().items()}
            {'right': True, 'up': True}
            >>> check = monitor.check(100)
            >>> print(check.tell(Y[check.indices]))
            At most 19 % of the predictions for the 200 unlabelled items are wrong (95 % confidence).
            >>> print(monitor.class_guarantees()["up"])
            At most 9 % of the predictions for the 200 unlabelled items are wrong (95 % confidence).
        """
        view = self._required_view()
        self._require_sets("class_errors")
        return dict(zip(self._memory.names, self._session.estimates.by_column(view), strict=True))

    def class_guarantees(self, check: ModelCheck | None = None) -> dict[Any, Guarantee]:
        """For labels that are sets of classes: a guarantee for each class, from the answers of one check.

        Each gets its part of the error probability of the check, so that they hold together. They take the place of the
        guarantee of the check, which is about whole sets: state one or the other.

        Args:
            check: A complete check of fixed size; the newest one if left out.

        Raises:
            SufficeError: There is no complete check.
            InvalidValueError: Labels are not sets of classes, or the check is sequential.
        """
        self._require_sets("class_guarantees")
        drawn = check or self._session.checks.newest
        if drawn is None:
            raise SufficeError("no check is complete; draw one with check(m), and give it all its answers")
        return guarantees_by_class(drawn, self._memory.names)

    def _require_sets(self, method: str) -> None:
        if not self._memory.names:
            raise InvalidValueError(
                f"{method} is for labels that are sets of classes, a matrix of 0 and 1 with a column for each class"
            )
