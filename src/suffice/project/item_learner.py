"""What learns the answers of a project: a model of its own, or the count of wrong predictions that were made elsewhere.

The interface is apart from the learner of models, so that predictions made elsewhere are checked without loading a
library of models.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from suffice.errors import SufficeError
from suffice.numerics import Floats
from suffice.project.item_predictor import ItemPredictor
from suffice.project.learning_status import LearningStatus, Predictions
from suffice.project.settings import Settings
from suffice.project.state import Answer

if TYPE_CHECKING:
    from suffice.project.learned_files import LearnedFiles


class ItemLearner(ABC):
    """Learns the answers of a project in their order. It must not be used by several threads at once.

    Args:
        settings: Settings of the project.
        X: Features of its items, ``n x D``.
    """

    def __init__(self, settings: Settings, X: Floats) -> None:
        self._settings, self._X = settings, X
        self._initial = min(settings.initial, len(X))
        self._answers: list[Answer] = []
        # Answers of a complete check that are not learned, and the number of answers of the checked model.
        self._checked: tuple[list[Answer], int] = ([], 0)

    @property
    def model(self) -> str:
        """Name of the model."""
        return self._settings.model

    @property
    def settings(self) -> Settings:
        """Settings of the project."""
        return self._settings

    @property
    def answers(self) -> list[Answer]:
        """Labels and skips so far, also those that wait for the next fit."""
        return list(self._answers)

    @property
    def n_answers(self) -> int:
        """Labels and skips so far, also those that wait for the next fit."""
        return len(self._answers)

    @property
    def checked(self) -> list[Answer]:
        """Answers of a complete check that the results count, although the model has not learned them."""
        checked, n_answers = self._checked
        return list(checked) if n_answers == len(self._answers) else []

    @property
    def n_items(self) -> int:
        """Number of items of the pool."""
        return len(self._X)

    @property
    @abstractmethod
    def begun(self) -> bool:
        """Whether there is a state to save: a model that has the labels that it starts from."""

    @abstractmethod
    def follow(
        self,
        answers: Sequence[Answer],
        *,
        checked: Sequence[Answer] = (),
        patience: Callable[[], bool] | None = None,
    ) -> None:
        """Learn new answers. If an earlier answer was corrected or taken back, go back to the state before it.

        If the model cannot learn, :meth:`learning_status` contains the reason. Learning is tried again when the answers
        change.

        Args:
            answers: All labels and skips for the model, in order.
            checked: Answers of a complete check of the model after these answers. They are not learned, but the
                error and the decision count them.
            patience: Called before each answer; if it returns True, the other answers are not learned in this call.
        """

    @abstractmethod
    def learning_status(self, *, queue: int = 0) -> LearningStatus:
        """The results of what is learned.

        Args:
            queue: Number of items to choose for the next labels.
        """

    @abstractmethod
    def predictor(self) -> ItemPredictor:
        """A copy of the current model for predictions; it does not change while more is learned.

        Raises:
            SufficeError: The model has not started.
        """

    def predict(self, X: Floats) -> Predictions:
        """Predictions for some items.

        Args:
            X: Features, ``n x D``.

        Raises:
            SufficeError: The model has not started.
        """
        return self.predictor().predict(X)

    def resume_from(self, files: "LearnedFiles", answers: Sequence[Answer]) -> int:  # noqa: ARG002 - nothing is saved
        """Continue from a saved state for these answers or the first of them. The result is the same as after learning.

        Args:
            files: The saved files.
            answers: Labels and skips of the project, in order.

        Returns:
            The number of answers that the learner has learned now; 0 if its state is not saved.
        """
        return 0

    def keep_in(self, files: "LearnedFiles", learning_status: LearningStatus | None = None) -> bool:  # noqa: ARG002
        """Save the state, and return whether the learner itself was saved.

        Args:
            files: The files to write to.
            learning_status: The results for all learned answers; they are not saved if left out.
        """
        return False

    def predictions_kept_in(self, files: "LearnedFiles", X: Floats) -> Predictions:  # noqa: ARG002
        """Predictions for all items; they are also saved if the learner saves its state.

        Args:
            files: The files to write to.
            X: Features of all items, ``n x D``.

        Raises:
            SufficeError: The model has not started.
        """
        return self.predict(X)


def reason(error: Exception) -> str:
    """Message of an error, without the full stop."""
    said = str(error).strip().rstrip(".")
    if isinstance(error, SufficeError) and said:
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
