"""Labels that are probably wrong: the probability of each label under models that have not learned it."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, log_softmax, softmax
from scipy.stats import norm

from suffice.models.logistic import BayesianLogistic
from suffice.models.predictive import FACTORS, Guesses, guesses, log_probabilities, sharpness
from suffice.models.regression import GaussianRegressor
from suffice.models.threads import one_thread
from suffice.numerics import Floats

#: Minimal number of labels for a ranking.
FEWEST: Final = 20
_TREES: Final = 200
_LEAF: Final = 3
# Probability in a forest of a class that occurs in none of its trees.
_UNSEEN: Final = 1e-3
# Shares of wrong labels that are considered, and the parameters of their prior, a beta distribution.
_SHARES: Final[Floats] = np.geomspace(1e-4, 0.45, 30)
_PRIOR: Final = (0.5, 10.0)
# Factors of the logits of a prediction, and of the deviation of a number, that are considered.
_SHARPER: Final[Floats] = np.geomspace(0.1, 10.0, 41)
_WIDER: Final[Floats] = np.geomspace(0.3, 3.0, 24)


class SuspiciousLabel(NamedTuple):
    """A label, and the prediction of models that have not learned it.

    Attributes:
        item: The item.
        label: Its label.
        prediction: The class, or the number, that is predicted for it without its label.
        probability: For classes the probability of the label. For numbers the probability of a label that is at least
            as far from the prediction.
        deviation: For numbers the standard deviation of the label, given all others; None for classes.
        wrong: Probability that the label is wrong, by :func:`wrong_probabilities`.
    """

    item: int
    label: Any
    prediction: Any
    probability: float
    deviation: float | None = None
    wrong: float = 0.0

    @property
    def likely_wrong(self) -> bool:
        """Whether the label is more likely wrong than right."""
        return self.wrong >= 0.5


@one_thread()
def suspicious_labels(model: Any, X: Any, labels: Mapping[int, Any]) -> list[SuspiciousLabel]:
    r"""Rank labels by the probability that they are wrong, the largest first.

    Each label is evaluated by models that have not learned it. For classes these are the model itself, if it can leave
    labels out in closed form (:func:`suffice.models.predictive.guesses`), and a random forest, of which each tree has
    learned only a part of the labels. The logits of each are multiplied by the factor that suits all labels best
    (:func:`suffice.models.predictive.sharpness`), and the probability is

    .. math:: p(y_i \mid \text{others}) \propto \sqrt{p_{model}(y_i)\; p_{forest}(y_i)} .

    The forest finds wrong labels if the model cannot represent the classes, and the model if a forest would need more
    labels. For numbers the probability is :math:`2\,\Phi(-|y_i - \mu_{-i}| / s_{-i})` with mean and deviation of the
    label given all others; a model that cannot leave labels out is replaced by a random forest, with one deviation for
    all labels.

    Labels of items near the boundary of two classes have a low probability even if they are correct.
    :func:`wrong_probabilities` takes account of that: it estimates from all labels how sure the prediction is and how
    many labels are wrong.

    Args:
        model: A fitted model without its pipeline.
        X: Inputs of the labelled items, in the order in which the model learned their labels, ``n x D``.
        labels: The label of each item, in the same order.

    Returns:
        All labels; an empty list if there are fewer than 20, or if they are all the same.

    Examples:
        >>> from suffice.models import BayesianLogistic
        >>> X = np.linspace(-2.0, 2.0, 40)[:, None]
        >>> y = np.where(X[:, 0] < 0.0, "left", "right")
        >>> y[3] = "right"
        >>> found = suspicious_labels(BayesianLogistic().fit(X, y), X, dict(enumerate(y.tolist())))[0]
        >>> found.item, found.label, found.prediction, found.probability < 0.1
        (3, 'right', 'left', True)
    """
    items, given = list(labels), list(labels.values())
    if len(items) < FEWEST or all(label == given[0] for label in given):
        return []
    rows = X if getattr(X, "ndim", 2) == 2 else np.asarray(X).reshape(len(items), -1)
    if hasattr(model, "classes_"):
        return _unlikely_classes(model, rows, items, given)
    return _unlikely_numbers(model, rows, items, np.asarray(given, dtype=np.float64))


def _unlikely_classes(model: Any, X: Any, items: Sequence[int], given: Sequence[Any]) -> list[SuspiciousLabel]:
    classes = list(model.classes_.tolist())
    codes = np.array([classes.index(label) for label in given])
    found = [_sharpened(_forest_logs(X, codes, len(classes)), codes)]
    if isinstance(model, BayesianLogistic):
        logits, _ = guesses(model.state_, np.arange(len(codes)))
        found.append(_sharpened(log_probabilities(logits), codes))
    logs = np.asarray(log_softmax(np.mean(found, axis=0), axis=1))
    own, each = logs[np.arange(len(codes)), codes], np.arange(len(codes))
    right = np.array([log_softmax(factor * logs, axis=1)[each, codes] for factor in _SHARPER])
    # A wrong label is any of the other classes, each with the same probability; a right one is none of them.
    others = np.log(np.maximum(-np.expm1(right), np.finfo(np.float64).tiny)) - math.log(max(len(classes) - 1, 1))
    wrong = wrong_probabilities(right, others)
    return [
        SuspiciousLabel(items[k], given[k], classes[int(logs[k].argmax())], math.exp(own[k]), wrong=float(wrong[k]))
        for k in np.argsort(-wrong, kind="stable").tolist()
    ]


def wrong_probabilities(right: Floats, wrong: Floats) -> Floats:
    r"""Probability that each label is wrong, in a mixture of right and wrong labels.

    Let :math:`\varepsilon` be the share of wrong labels, :math:`p_t` the probability of a label that is right, under a
    prediction whose sureness is changed by the factor ``t``, and :math:`q_t` that of a wrong one. Then

    .. math:: w_i = \operatorname{E}\left[
        \frac{\varepsilon\, q_t(y_i)}{(1 - \varepsilon)\, p_t(y_i) + \varepsilon\, q_t(y_i)} \right] .

    The average is over ``t`` and :math:`\varepsilon`, weighted by the likelihood of all labels. The prior is flat in
    :math:`\log t`, and :math:`\mathrm{Beta}(1/2, 10)` for :math:`\varepsilon`, whose mean is 5 %.

    Args:
        right: Log probabilities or log densities of the given labels if they are right, for each factor, ``T x n``.
        wrong: The same if they are wrong, ``T x n`` or ``n``.

    Examples:
        >>> right = np.log(np.array([[0.95] * 19 + [0.001]]))
        >>> wrong_probabilities(right, np.log1p(-np.exp(right))).round(3)[[0, 19]]
        array([0.003, 0.95 ])
    """
    likelihood = np.array([_mixed(right, wrong, share).sum(axis=1) for share in _SHARES])
    # The shares are evenly spaced in their logarithm.
    prior = _PRIOR[0] * np.log(_SHARES) + (_PRIOR[1] - 1.0) * np.log1p(-_SHARES)
    weights = softmax(likelihood + prior[:, None])
    found = np.zeros(right.shape[1])
    for share, of_share in zip(_SHARES, weights, strict=True):
        found += of_share @ np.exp(math.log(share) + wrong - _mixed(right, wrong, share))
    return np.asarray(np.clip(found, 0.0, 1.0))


def _mixed(right: Floats, wrong: Floats, share: float) -> Floats:
    """Log probability of labels of which a share is wrong."""
    return np.asarray(np.logaddexp(math.log1p(-share) + right, math.log(share) + wrong))


def _sharpened(logs: Floats, codes: NDArray[np.intp]) -> Floats:
    """Log probabilities with the factor that suits the labels best."""
    factor = float(np.exp(sharpness(Guesses(logs, codes)) @ np.log(FACTORS)))
    return log_probabilities(factor * logs)


def _forest_logs(X: Any, codes: NDArray[np.intp], n_classes: int) -> Floats:
    """Log probabilities of all classes, for each item from the trees that have not learned it, ``n x K``."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(_TREES, min_samples_leaf=_LEAF, oob_score=True, random_state=0)
    p = np.full((len(codes), n_classes), _UNSEEN)
    with warnings.catch_warnings():
        # With few trees an item may have been learned by all of them; then all classes have the same probability.
        warnings.simplefilter("ignore")
        forest.fit(X, codes)
    p[:, forest.classes_] += np.nan_to_num(forest.oob_decision_function_)
    return np.asarray(np.log(p / p.sum(axis=1, keepdims=True)))


def _unlikely_numbers(model: Any, X: Any, items: Sequence[int], y: Floats) -> list[SuspiciousLabel]:
    if isinstance(model, GaussianRegressor):
        mean, variance = model.prior_.left_out(model.features(model.X_), model.y_)
        deviation = np.sqrt(variance)
    else:
        mean = _forest_means(X, y)
        deviation = np.full(len(y), np.std(y - mean))
    deviation = np.maximum(deviation, np.finfo(np.float64).tiny)
    scaled = np.abs(y - mean) / deviation
    logs = math.log(2.0) + log_ndtr(-scaled)
    right = np.array([norm.logpdf(scaled, scale=factor) for factor in _WIDER]) - np.log(deviation)
    # A wrong number is like that of another item.
    wrong = wrong_probabilities(right, norm.logpdf(y, y.mean(), y.std()))
    return [
        SuspiciousLabel(
            items[k], float(y[k]), float(mean[k]), math.exp(logs[k]), float(deviation[k]), wrong=float(wrong[k])
        )
        # Several may be certainly wrong.
        for k in np.lexsort((logs, -wrong)).tolist()
    ]


def _forest_means(X: Any, y: Floats) -> Floats:
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(_TREES, min_samples_leaf=_LEAF, oob_score=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forest.fit(X, y)
    return np.asarray(forest.oob_prediction_)
