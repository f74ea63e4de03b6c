"""Models by name, with the settings that the commands, labelling projects and experiments use."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from suffice.arguments import whole
from suffice.errors import InvalidValueError

ModelTask = Literal["regression", "classification"]


@dataclass(frozen=True)
class ModelRequest:
    """What a new model is made for; see :func:`make_model`.

    Attributes:
        task: The task, one of those of the model.
        classes: All classes, or None.
        basis: Number of radial basis functions per feature, 0 for none.
        seed: Seed of a network or of trees.
        components: Groups of ordered components.
        regularize: Whether hyper-parameters are learned with a weak prior.
    """

    task: ModelTask
    classes: list[Any] | None = None
    basis: int = 0
    seed: int = 0
    components: Sequence[tuple[int, int]] = ()
    regularize: bool = True


class ModelFamily(NamedTuple):
    """A kind of model that can be created by name.

    Attributes:
        tasks: The tasks it is for.
        description: Its name in a sentence.
        make: Makes a model without labels.
        basis: Default number of radial basis functions per feature; None if the model has none.
        interactive: Whether it learns fast enough for interactive labelling.
        estimator: Whether it is a scikit-learn estimator, which is fitted again after each step.
    """

    tasks: tuple[ModelTask, ...]
    description: str
    make: Callable[[ModelRequest], Any]
    basis: int | None = None
    interactive: bool = True
    estimator: bool = False


_TREES: Final = 100
# If fewer components than this stand out from noise, all are used.
_FEWEST_OUTSTANDING: Final = 5
# Number of classes for which principal components are chosen if the classes are not known.
_USUAL_CLASSES: Final = 10
# Labels in a leaf of a forest for numbers, at least: the mean of one label would repeat its noise.
_LEAF: Final = 2
# For gradient boosting: labels in a leaf at least, leaves of a tree at most, and share of the features at each split.
# They were chosen on development sets with 40 to 300 labels.
_BOOSTED_LEAF: Final = 5
_BOOSTED_LEAVES: Final = 6
_BOOSTED_FEATURES: Final = 0.4


# scikit-learn takes a while to import, and names and descriptions do not need it. So each of these functions imports
# what it uses.


def _gaussian_process(options: ModelRequest) -> Any:
    from suffice.models.regression import GaussianProcess

    return GaussianProcess(regularize=options.regularize)


def _ridge(options: ModelRequest) -> Any:
    from suffice.models.regression import BayesianRidge

    return _on_basis(options, BayesianRidge(fit_intercept=not options.basis, regularize=options.regularize))


def _logistic(options: ModelRequest) -> Any:
    from suffice.models.logistic import BayesianLogistic

    # Features are standardised, so a prior with weights of order 1 is adequate. The evidence would be biased by labels
    # of items that were chosen because the model is uncertain about them.
    groups = [tuple(group) for group in options.components] or None
    return _on_basis(options, BayesianLogistic(alpha=1.0, classes=options.classes, components=groups))


def _on_basis(options: ModelRequest, model: Any) -> Any:
    """The model, on radial basis functions if there are any."""
    if not options.basis:
        return model
    from sklearn.pipeline import make_pipeline

    from suffice.models.regression import RadialBasis

    return make_pipeline(RadialBasis(options.basis), model)


def _on_kernel_features(options: ModelRequest) -> Any:
    from sklearn.pipeline import make_pipeline

    from suffice.models.kernels import KernelFeatures
    from suffice.models.logistic import BayesianLogistic

    return make_pipeline(KernelFeatures(), BayesianLogistic(alpha=1.0, classes=options.classes))


def _on_principal_components(options: ModelRequest) -> Any:
    from sklearn.pipeline import make_pipeline

    from suffice.models.capacity import most_principal
    from suffice.models.logistic import BayesianLogistic
    from suffice.models.principal import PrincipalFeatures

    most = most_principal(_USUAL_CLASSES if options.classes is None else len(options.classes))
    # The means of K classes differ in K - 1 directions.
    fewest = max(_FEWEST_OUTSTANDING, len(options.classes or ()) - 1)
    return make_pipeline(PrincipalFeatures(most, fewest=fewest), BayesianLogistic(alpha=1.0, classes=options.classes))


def _network(options: ModelRequest) -> Any:
    from suffice.models.deep.network import DropoutNetwork, require_torch

    require_torch()
    # A few epochs in every round, as in the paper, where the rule monitors the convergence of the network.
    return DropoutNetwork("mlp", classes=options.classes, samples=10, device="cpu", seed=options.seed)


def _forest(options: ModelRequest) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    if options.task == "classification":
        return ExtraTreesClassifier(_TREES, random_state=options.seed)
    return ExtraTreesRegressor(_TREES, min_samples_leaf=_LEAF, random_state=options.seed)


def _boosting(options: ModelRequest) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    of_classes = options.task == "classification"
    # The default of 20 labels in a leaf needs hundreds of labels. Small trees that see a part of the features at each
    # split have a lower error up to some hundreds of labels, and are learned faster.
    return (HistGradientBoostingClassifier if of_classes else HistGradientBoostingRegressor)(
        max_iter=_TREES,
        min_samples_leaf=_BOOSTED_LEAF,
        max_leaf_nodes=_BOOSTED_LEAVES,
        max_features=_BOOSTED_FEATURES,
        early_stopping=False,
        random_state=options.seed,
    )


_NUMBERS: Final[tuple[ModelTask, ...]] = ("regression",)
_CLASSES: Final[tuple[ModelTask, ...]] = ("classification",)
#: The models by name; the first one of a task is its default, except for many columns and classes: see
#: :func:`default_model`. Commands, projects and comparisons offer what is declared here.
MODEL_FAMILIES: Final = {
    "gp": ModelFamily(_NUMBERS, "a Gaussian process", _gaussian_process),
    "ridge": ModelFamily(_NUMBERS, "Bayesian ridge regression", _ridge, basis=10),
    "logistic": ModelFamily(_CLASSES, "Bayesian logistic regression", _logistic, basis=0),
    "kernel": ModelFamily(_CLASSES, "Bayesian logistic regression on kernel features", _on_kernel_features),
    "components": ModelFamily(
        _CLASSES, "Bayesian logistic regression on principal components", _on_principal_components
    ),
    "dropout": ModelFamily(_CLASSES, "a network with dropout", _network, interactive=False),
    "forest": ModelFamily(_CLASSES + _NUMBERS, "a forest of randomised trees", _forest, estimator=True),
    "boosting": ModelFamily(_CLASSES + _NUMBERS, "gradient-boosted trees", _boosting, estimator=True),
}


def model_names(task: ModelTask) -> list[str]:
    """Names of the models for a task, the default first.

    Examples:
        >>> model_names("classification")
        ['logistic', 'kernel', 'components', 'dropout', 'forest', 'boosting']
    """
    return [name for name, family in MODEL_FAMILIES.items() if task in family.tasks]


class DefaultModel(NamedTuple):
    """The model that is used if none is named.

    Attributes:
        name: One of :data:`MODEL_FAMILIES`.
        reason: Why it is not the usual one, in a sentence; empty if it is.
    """

    name: str
    reason: str = ""


def default_model(
    task: ModelTask, *, n_features: int = 0, n_classes: int = 0, components: Sequence[tuple[int, int]] = ()
) -> DefaultModel:
    """Return the model for a task, and for a number of columns and classes, if none is named.

    For numbers it is a Gaussian process, for classes logistic regression. That has a weight for each column and class
    (for two classes, for each column), and the time for a label grows with the cube of their number. With more than
    1000 weights it is the one on :func:`~suffice.models.capacity.most_principal` principal components.

    Args:
        task: The task.
        n_features: Number of columns of the inputs.
        n_classes: Number of classes.
        components: As for :func:`make_model`: of each group only the smallest number of columns is counted.

    Examples:
        >>> default_model("classification", n_features=20, n_classes=10)
        DefaultModel(name='logistic', reason='')
        >>> print(default_model("classification", n_features=784, n_classes=10).reason)
        784 columns and 10 classes: logistic regression on their 49 largest principal components at most, because with
        all columns it has 7,850 weights and learns too slowly.
    """
    usual = DefaultModel(model_names(task)[0])
    if task == "regression" or not n_features:
        return usual
    from suffice.models.capacity import FEWEST_COMPONENTS, Capacity, most_features, most_principal

    if Capacity(components, n_features, intercept=False).width(FEWEST_COMPONENTS) <= most_features(n_classes):
        return usual
    weights = (n_classes if n_classes > 2 else 1) * (n_features + 1)
    return DefaultModel(
        "components",
        f"{n_features:,} columns and {n_classes:,} classes: logistic regression on their "
        f"{most_principal(n_classes):,} largest principal components at most, because with all columns it has "
        f"{weights:,} weights and learns too slowly.",
    )


def basis_size(name: str, basis: int | None = None, *, argument: str = "basis") -> int:
    """Number of radial basis functions per feature, 0 for none.

    Args:
        name: Name of the model.
        basis: The number asked for; the model's default if None.
        argument: Name of ``basis`` in error messages.

    Raises:
        InvalidValueError: It is not a whole number of at least 0, or the model has no basis.
    """
    default = MODEL_FAMILIES[name].basis
    if basis is None:
        return default or 0
    size = whole(basis, argument, least=0)
    if size and default is None:
        fitting = " or ".join(each for each, family in MODEL_FAMILIES.items() if family.basis is not None)
        raise InvalidValueError(
            f"{argument} goes with the model {fitting}, and {MODEL_FAMILIES[name].description} takes none; leave it out"
        )
    return size


def model_description(name: str, basis: int | None = None) -> str:
    """Description of a model for a sentence.

    Examples:
        >>> model_description("ridge")
        'Bayesian ridge regression on 10 radial basis functions per feature'
    """
    size = basis_size(name, basis)
    functions = f" on {size} radial basis function{'s' * (size != 1)} per feature" if size else ""
    return f"{MODEL_FAMILIES[name].description}{functions}"


def chooses_components(name: str, basis: int | None = None) -> bool:
    """Whether a model chooses how many ordered components of a text it uses.

    Examples:
        >>> chooses_components("logistic"), chooses_components("logistic", basis=5), chooses_components("gp")
        (True, False, False)
    """
    return name == "logistic" and not basis_size(name, basis)


def make_model(  # noqa: PLR0913 - all but one by keyword
    name: str,
    *,
    task: ModelTask | None = None,
    classes: Iterable[Any] | None = None,
    basis: int | None = None,
    seed: int = 0,
    components: Sequence[tuple[int, int]] = (),
    regularize: bool = True,
) -> Any:
    """Return a new model without labels.

    Args:
        name: One of :data:`MODEL_FAMILIES`.
        task: The task, for a model that has several; the first of its tasks if left out.
        classes: All classes, for a classifier; learned from the labels if left out, and by trees. The number of
            principal components depends on that of the classes; it is that for 10 classes if they are left out.
        basis: Radial basis functions that replace each feature, 0 for none; the model's default if left out.
        seed: Seed of a network or of trees; the other models have no randomness.
        components: First column and column after the last of each group of ordered components, such as those of a
            text; how many of them are used is chosen from the labels. Only if :func:`chooses_components`.
        regularize: Whether a regression model learns its hyper-parameters as since version 0.8; see the models.

    Returns:
        A model of :mod:`suffice.models`, a pipeline that ends in one, or a scikit-learn estimator.

    Raises:
        InvalidValueError: There is no such model, or an argument does not apply to it.
        MissingExtraError: The model needs torch, which is not installed.

    Examples:
        >>> make_model("logistic", classes=["cat", "dog"])
        BayesianLogistic(alpha=1.0, classes=['cat', 'dog'])
    """
    if name not in MODEL_FAMILIES:
        raise InvalidValueError(f"model must be one of {', '.join(MODEL_FAMILIES)}, not {name!r}")
    tasks = MODEL_FAMILIES[name].tasks
    if task is not None and task not in tasks:
        raise InvalidValueError(f"the model {name} is for {' and '.join(tasks)}, not for {task}; use {_fitting(task)}")
    if classes is not None and (task or tasks[0]) == "regression":
        raise InvalidValueError(f"classes go with a classifier, and the model {name} is for regression; leave them out")
    size, known = basis_size(name, basis), None if classes is None else list(classes)
    if components and not chooses_components(name, basis):
        raise InvalidValueError(f"{model_description(name, basis)} uses all features; leave components out")
    return MODEL_FAMILIES[name].make(
        ModelRequest(task or tasks[0], known, size, seed, components=components, regularize=regularize)
    )


def _fitting(task: ModelTask) -> str:
    return " or ".join(model_names(task))
