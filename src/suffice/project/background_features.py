"""Features of the items of a project, computed in a separate thread while people label the first items."""

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from suffice.criteria import Verdict
from suffice.numerics import Floats
from suffice.presentation.decision_words import CATCHING_UP
from suffice.project.item_learner import reason
from suffice.project.learning_status import LearningStatus

#: Why there is no model yet, for an error message.
WAITING: Final = "the features of the items are being computed, which the model needs; try again in a minute"


# Seconds before the computation starts. The program starts and shows the first item meanwhile.
_HEAD_START: Final = 1.0


class FeaturedProject(Protocol):
    """The interface of a project whose features are computed."""

    @property
    def features_missing(self) -> bool:
        """Whether the features of its items are not computed yet."""

    @property
    def X(self) -> Floats:  # noqa: N802 - the field's own name
        """Features of its items; they are computed if they are missing."""


class BackgroundFeatures:
    """Computes the features of a project in a thread, if they are missing.

    They are written at once or not at all, so the thread may end at any time with the process. Then they are computed
    again at the next start.

    Args:
        project: The project.
        done: Called when the features are computed, or cannot be.
    """

    def __init__(self, project: FeaturedProject, done: Callable[[], None]) -> None:
        self._project, self._done = project, done
        self._thread: threading.Thread | None = None
        self._problem = ""

    def missing(self) -> bool:
        """Whether the features are missing. Then a thread computes them, which is started at the first call."""
        if not self._project.features_missing:
            return False
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="suffice features", daemon=True)
            self._thread.start()
        return True

    def learning_status(self) -> LearningStatus:
        """What is known of a model without features: that it waits for them, or why they cannot be computed."""
        return LearningStatus(problem=self._problem) if self._problem else waiting_for_features()

    def _run(self) -> None:
        time.sleep(_HEAD_START)
        try:
            _ = self._project.X
        # Labelling continues without the model.
        except Exception as error:
            self._problem = (
                f"The features of the items cannot be computed: {reason(error)}. No label is lost, and items are asked "
                "for at random; it is tried again at the next start."
            )
        self._done()


def waiting_for_features() -> LearningStatus:
    """The status of a model that waits for the features of the items."""
    waiting = Verdict(
        stop=False,
        value=None,
        threshold=None,
        ready=False,
        reason="the features of the items are being computed",
        rule=CATCHING_UP,
        n_labelled=0,
    )
    return LearningStatus(verdict=waiting)
