"""The model behind a labelling project, by its name."""

from typing import Any, Final, NamedTuple

from suffice.errors import InvalidValueError
from suffice.session.settings import Settings, Task


class Known(NamedTuple):
    """A model that a project can have: for which task, and what to call it."""

    task: Task
    words: str


#: The models, by name; the first of a task is what is taken where nothing is said.
KNOWN: Final = {
    "gp": Known("regression", "a Gaussian process"),
    "ridge": Known("regression", "Bayesian ridge regression on 10 bumps a feature"),
    "logistic": Known("classification", "Bayesian logistic regression"),
}


def default_model(task: Task) -> str:
    """The model for a task where nothing else is asked for.

    Examples:
        >>> default_model("classification")
        'logistic'
    """
    return next(name for name, known in KNOWN.items() if known.task == task)


def model_words(name: str) -> str:
    """What to call a model, in a sentence.

    Raises:
        InvalidValueError: It is none that a project can have.

    Examples:
        >>> model_words("gp")
        'a Gaussian process'
    """
    return _known(name).words


def make_model(settings: Settings) -> Any:
    """The model of a project, before any label.

    Args:
        settings: What the project is about.

    Returns:
        A model of :mod:`suffice.models`, or a pipeline that ends in one.

    Raises:
        InvalidValueError: There is no such model, it is for the other task, or its classes are fewer than 2.
    """
    known = _known(settings.model)
    if known.task != settings.task:
        fitting = " or ".join(name for name, each in KNOWN.items() if each.task == settings.task)
        raise InvalidValueError(
            f"the model {settings.model} is for {known.task}, and this is a project of {settings.task}; use {fitting}"
        )
    if settings.task == "classification" and len(settings.classes) < 2:
        raise InvalidValueError(
            f"a project of classification needs at least 2 classes, and this one has {len(settings.classes)}; name all"
        )
    # scikit-learn takes a while to import, and not everybody who reads a project wants its model.
    from suffice import models

    if settings.model == "gp":
        return models.GaussianProcess()
    if settings.model == "ridge":
        from sklearn.pipeline import make_pipeline

        return make_pipeline(models.RadialBasis(10), models.BayesianRidge(fit_intercept=False))
    # Features are standardised, so weights of order 1 are a fair prior; labels bought where the model is unsure would
    # mislead the evidence.
    return models.BayesianLogistic(alpha=1.0, classes=list(settings.classes))


def require_rule(settings: Settings) -> None:
    """Refuse a stopping rule that cannot be followed in a project.

    Args:
        settings: What the project is about.

    Raises:
        InvalidValueError: The rule limits time, or asks for what the model cannot tell.
    """
    from suffice.learner.start import available_facts
    from suffice.trace import DIVERGENCES

    rule, model = settings.criterion(), make_model(settings)
    if "seconds" in rule.needs():
        raise InvalidValueError(
            f"the rule {type(rule).__name__} counts seconds, and a project may rest for days between two labels; use "
            "Budget to limit the labels"
        )
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    missing = sorted(rule.needs() - available_facts(last, validated=False) - DIVERGENCES)
    if missing:
        raise InvalidValueError(
            f"the rule {type(rule).__name__} requires {', '.join(missing)}, which a project with "
            f"{model_words(settings.model)} does not have; use ErrorStability, which every project can have"
        )


def _known(name: str) -> Known:
    if name == "dropout":
        raise InvalidValueError(
            "a network with dropout takes too long to learn while somebody waits for the next item; use the model gp, "
            "ridge or logistic"
        )
    if name not in KNOWN:
        raise InvalidValueError(f"model must be one of {', '.join(KNOWN)}, not {name!r}")
    return KNOWN[name]
