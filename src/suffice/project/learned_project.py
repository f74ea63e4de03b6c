"""The learner of a project, of its model or of predictions made elsewhere, after its answers."""

from collections.abc import Sequence

from suffice.numerics import Floats
from suffice.project.given_learner import GivenLearner
from suffice.project.item_learner import ItemLearner
from suffice.project.item_predictor import ItemPredictor
from suffice.project.learned_files import LearnedFiles
from suffice.project.learning_status import Predictions
from suffice.project.project_interface import ReadableProject
from suffice.project.settings import Settings
from suffice.project.state import Answer


def project_learner(settings: Settings, X: Floats, *, compare: bool = True) -> ItemLearner:
    """The learner of a project: that of its model, or that of predictions made elsewhere.

    Args:
        settings: Settings of the project.
        X: Features of its items.
        compare: As for :class:`suffice.project.project_learner.ProjectLearner`.
    """
    if settings.checked is not None:
        return GivenLearner(settings, X)
    from suffice.project.project_learner import ProjectLearner

    return ProjectLearner(settings, X, compare=compare)


def predictions_after(
    settings: Settings, X: Floats, answers: Sequence[Answer], files: LearnedFiles | None = None
) -> Predictions:
    """Predictions for all items by a model that has learned some answers.

    Args:
        settings: Settings of the project, with the model.
        X: Features of its items, ``n x D``.
        answers: Labels and skips, in order.
        files: Saved files of the project; by default the model learns from the first answer on.

    Raises:
        SufficeError: There are too few labels, or the model cannot learn them.
    """
    kept = None if files is None else files.predictions(settings, answers)
    if kept is not None:
        return kept
    return _learned(settings, X, answers, files).predict(X)


def project_predictor(project: ReadableProject) -> ItemPredictor:
    """The model of a project after all current answers, from the saved files if they contain it.

    Args:
        project: The project.

    Raises:
        SufficeError: The model has not started.
    """
    # First, because features that are missing decide about the model.
    _ = project.X
    with project.lock:
        answers, settings = project.state().learned(), project.current_settings
    kept = project.learned_files.predictor(settings, answers)
    return learned_project(project).predictor() if kept is None else kept


def learned_project(project: ReadableProject) -> ItemLearner:
    """The learner of a project after all current answers.

    It continues from the saved state if there is one, and learns the other answers. Then the state is saved.
    """
    # First, because features that are missing decide about the model.
    X = project.X
    with project.lock:
        answers, settings = project.state().learned(), project.current_settings
    return _learned(settings, X, answers, project.learned_files)


def _learned(settings: Settings, X: Floats, answers: Sequence[Answer], files: LearnedFiles | None) -> ItemLearner:
    """A learner that has learned some answers, from the saved state on. A state with more answers is saved."""
    learner = project_learner(settings, X, compare=False)
    known = 0 if files is None else learner.resume_from(files, answers)
    learner.follow(answers)
    if files is not None and learner.n_answers > known:
        learner.keep_in(files)
    return learner
