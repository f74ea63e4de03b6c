"""Comparison of the present model with others on the same labels."""

import math
import warnings
from typing import Any, Final

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from suffice.models.capacity import most_principal
from suffice.models.factory import MODEL_FAMILIES, ModelTask, default_model, make_model, model_description
from suffice.models.kernels import KernelFeatures
from suffice.models.principal import PrincipalFeatures
from suffice.numerics import Floats
from suffice.session.decision import Alternative
from suffice.session.held_out import left_out_losses

# Minimal and maximal number of labels for a comparison, and number of folds.
_FEWEST_COMPARED: Final = 30
_MOST_COMPARED: Final = 2000
_FOLDS: Final = 5
_TREES: Final = 100
# Another model is clearly better if the difference is at least this many standard errors, and its error at most this
# share of the error of the present model. For a possibly better model both conditions are weaker.
_CLEARLY: Final = 2.0
_CLEARLY_BETTER: Final = 0.8
_POSSIBLY: Final = 1.0
_POSSIBLY_BETTER: Final = 0.9
# Smaller differences are ignored: of the share of wrong classes, or of squared errors relative to the variance.
_SMALLEST: Final = 0.01
# Minimal number of random labels for a clearly better model; half of it for a possibly better model.
_FEWEST_RANDOM: Final = 20


def better_model(model: Any, X: Floats, y: Any, random: Any, *, present: str = "") -> Alternative | None:
    r"""Compare a fitted model with others on the same labels.

    The present model predicts each label with this label left out, if it can do that in closed form. Trees, and the
    models that the present one is compared with, predict them by five-fold cross validation. Only labels of items that
    were drawn at random are used: the present model has chosen the other items because it is uncertain about them, and
    any other model would look better there. With :math:`d_i` the differences of the losses (0 or 1 for classes, squares
    for numbers) of :math:`m` such labels, another model is clearly better if :math:`\bar d > 2\, s_d / \sqrt m`, if its
    loss is at most 0.8 times that of the present model, and if there are at least 20 random labels. It is possibly
    better with 1 in place of 2 and 0.9 in place of 0.8. A difference below 0.01, for numbers below 0.01 of the variance
    of the labels, does not count.

    Args:
        model: The present model, fitted; one that can leave labels out (:class:`suffice.models.BayesianLogistic`,
            :class:`suffice.models.GaussianProcess`, :class:`suffice.models.BayesianRidge`), or trees.
        X: Inputs of the labels, before any transformer of a pipeline, ``n x D``.
        y: The labels, in the order in which the model learned them.
        random: Which labels are of items that were drawn at random, ``n``.
        present: Name of the present model, which is not compared with itself.

    Returns:
        The best clearly better model, or otherwise a possibly better one; None if there is neither, if there are fewer
        than 30 labels, or if the present model is neither trees nor one that can leave labels out.
    """
    labels, drawn = np.asarray(y), np.asarray(random, dtype=bool)
    if len(labels) < _FEWEST_COMPARED or len(labels) > _MOST_COMPARED:
        return None
    share = hasattr(model, "classes_")
    if share and len(np.unique(labels)) < 2:
        return None
    rows = np.flatnonzero(drawn)
    if len(rows) < _FEWEST_RANDOM // 2:
        return None
    current = left_out_losses(model)
    # The other models need inputs without gaps, which trees do not.
    if current is None and _consists_of_trees(present) and isinstance(X, np.ndarray) and np.isfinite(X).all():
        current = cross_validated_losses(model, X, labels, share=share)
    if current is None:
        return None
    others = [
        (name, description, cross_validated_losses(estimator, X, labels, share=share)[rows])
        for name, description, estimator in _candidates(labels, present, X.shape[1], share=share)
    ]
    return _best_of(others, current[rows], share=share, scale=1.0 if share else float(labels.var()))


def better_on_rest(  # noqa: PLR0913 - labels to learn and labels to compare on
    losses: Any, X: Floats, y: Any, X_rest: Floats, y_rest: Any, *, share: bool, present: str = ""
) -> Alternative | None:
    """Compare a model with others that learn the same labels, on other rows whose labels are known.

    The criteria are those of :func:`better_model`, with the losses of the other rows. These rows need not be random:
    every model predicts the same rows, and has learned none of them.

    Args:
        losses: Losses of the present model on the other rows: 0 or 1 for classes, squares for numbers.
        X: Inputs of the labels to learn, before any transformer of a pipeline, ``n x D``.
        y: The labels to learn.
        X_rest: Inputs of the other rows, ``m x D``. Of more than 2000, the first 2000 count.
        y_rest: Their labels.
        share: Whether the labels are classes, so that the error is the share of wrong predictions.
        present: Name of the present model, which is not compared with itself.

    Returns:
        As :func:`better_model`; None if there are fewer than 30 labels or more than 2000, or fewer than 10 other rows.
    """
    labels, truth = np.asarray(y), np.asarray(y_rest)[:_MOST_COMPARED]
    few = len(labels) < _FEWEST_COMPARED or len(truth) < _FEWEST_RANDOM // 2
    if few or len(labels) > _MOST_COMPARED or (share and len(np.unique(labels)) < 2):
        return None
    others = [
        (name, description, _predicted_losses(estimator, (X, labels), (X_rest[: len(truth)], truth), share=share))
        for name, description, estimator in _candidates(labels, present, X.shape[1], share=share)
    ]
    current = np.asarray(losses, dtype=np.float64)[: len(truth)]
    return _best_of(others, current, share=share, scale=1.0 if share else float(labels.var()))


def _best_of(others: list[tuple[str, str, Floats]], ours: Floats, *, share: bool, scale: float) -> Alternative | None:
    """The best clearly better one of several models, or otherwise a possibly better one."""
    found = []
    for name, description, theirs in others:
        difference = ours - theirs
        error = float(difference.std(ddof=1)) / math.sqrt(len(ours))
        possibly, clearly = (
            float(difference.mean()) > times * error and float(theirs.mean()) <= share_of * float(ours.mean())
            for times, share_of in ((_POSSIBLY, _POSSIBLY_BETTER), (_CLEARLY, _CLEARLY_BETTER))
        )
        if possibly and float(difference.mean()) >= _SMALLEST * scale:
            errors = [float(each.mean()) if share else math.sqrt(float(each.mean())) for each in (theirs, ours)]
            clear = clearly and len(ours) >= _FEWEST_RANDOM
            found.append((not clear, errors[0], Alternative(name, description, errors[0], errors[1], len(ours), clear)))
    return min(found, key=lambda each: each[:2])[2] if found else None


def quick_estimator(name: str, labels: Any, task: ModelTask = "classification") -> Any:
    """An estimator that predicts much like the model of a name; for classes it fits many times faster.

    Args:
        name: One of :data:`suffice.models.factory.MODEL_FAMILIES`, except networks.
        labels: The labels that it is fitted to.
        task: The task.
    """
    # The posterior mode of the models of these names, without the posterior.
    logistic = LogisticRegression(C=1.0, max_iter=500)
    if name == "logistic":
        return logistic
    if name == "kernel":
        return make_pipeline(KernelFeatures(min(100, len(labels))), logistic)
    if name == "components":
        return make_pipeline(PrincipalFeatures(most_principal(len(np.unique(labels)))), logistic)
    made = make_model(name, task=task)
    return made.set_params(n_estimators=_TREES) if name == "forest" else made


def _consists_of_trees(name: str) -> bool:
    return name in MODEL_FAMILIES and MODEL_FAMILIES[name].estimator


def _candidates(labels: Any, present: str, n_features: int, *, share: bool) -> list[tuple[str, str, Any]]:
    """Models to compare the present one with: name, description, and an estimator to fit."""
    names = ("kernel", "forest") if share else ("gp", "ridge", "forest")
    task: ModelTask = "classification" if share else "regression"
    if share and _consists_of_trees(present):
        usual = default_model(task, n_features=n_features, n_classes=len(np.unique(labels)))
        names = (usual.name, *names)
    return [(name, model_description(name), quick_estimator(name, labels, task)) for name in names if name != present]


def cross_validated_losses(estimator: Any, X: Floats, labels: Any, *, share: bool) -> Floats:
    """Losses of the labels, each predicted by a model fitted to four fifths of the labels without it.

    Args:
        estimator: An estimator; it is not changed.
        X: Inputs of the labels, ``n x D``.
        labels: The labels, ``n``.
        share: Whether they are classes: losses are 0 or 1 then, and squared errors for numbers.
    """
    order = np.random.default_rng(0).permutation(len(labels))
    losses = np.zeros(len(labels))
    for k in range(_FOLDS):
        test, train = order[k::_FOLDS], np.concatenate([order[j::_FOLDS] for j in range(_FOLDS) if j != k])
        losses[test] = _predicted_losses(estimator, (X[train], labels[train]), (X[test], labels[test]), share=share)
    return losses


def _predicted_losses(estimator: Any, learned: tuple[Any, Any], others: tuple[Any, Any], *, share: bool) -> Floats:
    """Losses of some labels under a model that is fitted to others."""
    (X, y), (inputs, labels) = learned, others
    if share and len(np.unique(y)) < 2:
        predicted = np.full(len(labels), y[0])
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            predicted = clone(estimator).fit(X, y).predict(inputs)
    return np.asarray(predicted != labels if share else (predicted - labels) ** 2, dtype=np.float64)
