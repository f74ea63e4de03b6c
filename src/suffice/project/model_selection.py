"""The choice of the model of a project on the labels so far, until its check starts."""

from collections.abc import Sequence

import numpy as np

from suffice.errors import SufficeError
from suffice.numerics import Floats
from suffice.project.settings import Settings
from suffice.project.state import Answer, ModelComparison, ProjectState
from suffice.session.advice import FIRST_COMPARISON


def chooses_model(state: ProjectState, settings: Settings) -> bool:
    """Whether the model of a project is still chosen on its labels.

    It is not once a check has started, because the check is about the model that it has started with, or once a person
    has chosen a model.

    Args:
        state: The state of the project.
        settings: Settings of the project.
    """
    wanted = settings.choose_model and settings.goal is not None and settings.task == "classification"
    return wanted and not state.model_by_person and not state.n_checks


def next_comparison(state: ProjectState) -> int:
    """Number of labels at which models are compared next, if no check starts before.

    Args:
        state: The state of the project.
    """
    return max(FIRST_COMPARISON, 2 * (0 if state.comparison is None else state.comparison.n_labelled))


def chosen_models(settings: Settings) -> list[str]:
    """Names of the models between which the model of a project is chosen: those that its rule supports.

    Args:
        settings: Settings of the project.
    """
    # Imported here, because it loads scikit-learn.
    from suffice.learner.model_choice import choice_names

    names = choice_names(len(settings.classes), settings.usual_model)
    return [name for name in names if _supported(settings.using(name))]


def _supported(settings: Settings) -> bool:
    try:
        settings.require_usable_rule()
    except SufficeError:
        return False
    return True


def compared_models(
    settings: Settings, answers: Sequence[Answer], X: Floats, *, compared: int, before_check: bool
) -> ModelComparison | None:
    """Compare the models of a project, if that is due.

    See :class:`suffice.learner.ModelChoice`. The comparison is a function of the labels, not of the time.

    Args:
        settings: Settings of the project, with the current model.
        answers: All labels and skips, in order.
        X: Features of the items, ``n x D``.
        compared: Number of labels at the last comparison; 0 before the first.
        before_check: Whether a check is advised.

    Returns:
        The comparison; None if it is not due, or all labels are of one class.
    """
    from suffice.learner.model_choice import ModelChoice

    names = chosen_models(settings)
    if settings.model not in names:
        return None
    choice = ModelChoice(dict.fromkeys(names), quick=True, name=settings.model, compared=compared)
    labelled = [answer for answer in answers if answer.label is not None]
    at = choice.due_at(len(labelled), before_check=before_check)
    if at is None:
        return None
    items, labels, random = zip(*labelled[:at], strict=True)
    choice.better(np.asarray(X[list(items)], dtype=np.float64), list(labels), list(random))
    return ModelComparison(at, choice.name, choice.errors) if choice.errors else None
