"""Comparison of the current model with others on the same labels."""

import math
import warnings
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.special import ndtr, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from suffice.models.capacity import most_principal
from suffice.models.factory import MODEL_FAMILIES, ModelTask, default_model, make_model, model_description, model_names
from suffice.models.kernels import KernelFeatures
from suffice.models.principal import PrincipalFeatures
from suffice.numerics import Floats
from suffice.session.decision import Alternative
from suffice.session.held_out import left_out_losses

# Minimal and maximal number of labels for a comparison, and number of folds.
_FEWEST_COMPARED: Final = 30
_MOST_COMPARED: Final = 2000
# Linear models for classes.
_LINEAR: Final = ("logistic", "components")
_FOLDS: Final = 10
# Trees of a forest, and of boosting with a larger learning rate and smaller leaves, that are compared: as good as those
# of the models of these names on the development sets, and fitted in half the time.
_TREES: Final = 50
_RATE: Final = 0.15
_LEAF: Final = 3
# While labelling goes on, models are compared at 30 labels, and each time that their number has grown by the first
# factor. The second one holds if a stop stands, or is expected before the labels grow by it.
_GROWN: Final = 1.25
_GROWN_NEAR_STOP: Final = 1.1
# On other rows, another model is clearly better if the difference is at least this many standard errors, and its error
# at most this share of the error of the current model. For a possibly better model both conditions are weaker.
_CLEARLY: Final = 2.0
_CLEARLY_BETTER: Final = 0.8
_POSSIBLY: Final = 1.0
_POSSIBLY_BETTER: Final = 0.9
# Smaller differences are ignored: of the share of wrong classes, or of squared errors relative to the variance.
_SMALLEST: Final = 0.01
# Minimal number of random labels for a clearly better model, and of other rows; for a possibly better model.
_FEWEST_RANDOM: Final = 15
_FEWEST_POSSIBLY: Final = 10
_FEWEST_ROWS: Final = 20
# Models that have weights or trees for each class are not compared above this number of classes, and boosting not above
# this product of classes and columns: a comparison would take too long.
_MOST_CLASSES: Final = 10
_MOST_BOOSTED: Final = 2000


class UsualError(NamedTuple):
    """The usual logarithm of the error of a model, relative to that of a linear model on the same labels.

    Attributes:
        at_50: With 50 labels.
        slope: Its change when the number of labels grows by a factor of e.
    """

    at_50: float
    slope: float

    def at(self, n_labelled: int) -> float:
        """The usual logarithm with a number of labels; constant outside of the range that it was fitted to."""
        fewest, most = _FITTED_LABELS
        return self.at_50 + self.slope * math.log(min(max(n_labelled, fewest), most) / 50.0)


class RatioPrior(NamedTuple):
    """What is usual for the logarithm of the ratio of two errors, from development sets.

    The true ratio of two models on the same labels is a mixture of two normal distributions with the same mean: most
    pairs are nearly equal, and in some one model is far better.

    Attributes:
        deviation: Standard deviation of most ratios.
        far: Standard deviation of the others.
        share_far: Share of the others.
        handicap: How much too large the ratio is estimated, because the other model is fitted to nine tenths of the
            labels.
        noise: Factor of the squared standard error of the estimate.
        shift: Standard deviation of the difference between labels and unlabelled items, beyond chance.
        chosen: Weight of a label that was chosen, relative to a random one.
        errors: Usual errors of models by name. The usual ratio is 1 if that of either model is not known.
        clearly: Another model is clearly better if it is better with at least this probability.
    """

    deviation: float
    far: float
    share_far: float
    handicap: float
    noise: float
    shift: float
    chosen: float
    errors: Mapping[str, UsualError]
    clearly: float

    def posterior(self, usual: float, estimate: float, squared_error: float) -> "ErrorRatio":
        """The posterior of the logarithm of a ratio, after an estimate of it.

        Args:
            usual: The mean of the prior.
            estimate: The logarithm of the ratio on the labels.
            squared_error: Its squared standard error.
        """
        variance = self.noise * squared_error + self.shift**2
        difference = estimate - self.handicap - usual
        deviations, shares = np.array([self.deviation, self.far]), np.array([1.0 - self.share_far, self.share_far])
        total = deviations**2 + variance
        means = usual + difference * deviations**2 / total
        remaining = deviations * np.sqrt(variance / total)
        with np.errstate(divide="ignore"):
            weights = softmax(np.log(shares) - 0.5 * (np.log(total) + difference**2 / total))
        mean = float(weights @ means)
        deviation = math.sqrt(float(weights @ (remaining**2 + (means - mean) ** 2)))
        # The weights add up to 1 except for rounding.
        return ErrorRatio(mean, deviation, min(float(weights @ ndtr(-means / remaining)), 1.0))

    def mean(self, name: str, present: str, n_labelled: int) -> float:
        """The usual logarithm of the ratio of the error of a model to that of the present one.

        Args:
            name: Name of the model.
            present: Name of the current model.
            n_labelled: Number of labels.
        """
        if name not in self.errors or present not in self.errors:
            return 0.0
        return self.errors[name].at(n_labelled) - self.errors[present].at(n_labelled)


# Numbers of labels that usual errors were fitted to.
_FITTED_LABELS: Final = (30, 150)
# Close to what `benchmarks/better_models.py --fit` fits to runs on the development sets; for numbers with one normal
# distribution. Several models are compared, several times: with these probabilities at least 95 % of the models that
# were named there were better.
_CLASS_RATIO: Final = RatioPrior(
    deviation=0.21,
    far=1.0,
    share_far=0.3,
    handicap=0.0,
    noise=1.4,
    shift=0.07,
    chosen=0.5,
    errors={
        "logistic": UsualError(0.0, 0.0),
        "components": UsualError(0.0, 0.0),
        "kernel": UsualError(-0.11, -0.15),
        "forest": UsualError(-0.17, -0.15),
        "boosting": UsualError(0.02, -0.15),
    },
    clearly=0.95,
)
_NUMBER_RATIO: Final = RatioPrior(
    deviation=0.55,
    far=0.55,
    share_far=0.0,
    handicap=0.037,
    noise=2.0,
    shift=0.047,
    chosen=0.0,
    errors={},
    clearly=0.977,
)
# Wrong predictions that each model is given in addition, so that a ratio is defined.
_ADDED_WRONG: Final = 1.0
# A model that was named as clearly better stays so while it is better with this probability; and a clearly better model
# has at most this ratio.
_STAYS: Final = 0.69
_LARGEST_RATIO: Final = 0.9


class ErrorRatio(NamedTuple):
    """Posterior of the logarithm of the error of another model relative to that of the present one.

    Attributes:
        mean: Its mean; below 0 if the other model is better.
        deviation: Its standard deviation.
        better: Probability that it is below 0.
    """

    mean: float
    deviation: float
    better: float


def comparison_due(n_labelled: int, last: int | None, *, stopped: bool, left: int | None = None) -> bool:
    """Whether to compare the current model with others.

    A comparison is due at 30 labels, and when their number has grown by a quarter. It is due when the number has grown
    by a tenth if a stop stands, or is expected within a tenth of the labels: so a better model is named before.

    Args:
        n_labelled: Number of labels.
        last: Number of labels at the last comparison; None before the first one.
        stopped: Whether a stop stands.
        left: Expected number of labels until the stop; None if it is not known.

    Examples:
        >>> [comparison_due(n, 40, stopped=False, left=20) for n in (44, 49, 50)]
        [False, False, True]
        >>> [comparison_due(n, 40, stopped=False, left=4) for n in (43, 44)]
        [False, True]
    """
    if last is None or n_labelled < last:
        return stopped or n_labelled >= _FEWEST_COMPARED
    near = stopped or (left is not None and left <= (_GROWN_NEAR_STOP - 1.0) * n_labelled)
    return n_labelled >= (_GROWN_NEAR_STOP if near else _GROWN) * last


def better_model(  # noqa: PLR0913 - all but four by keyword
    model: Any,
    X: Floats,
    y: Any,
    random: Any,
    *,
    present: str = "",
    named: Alternative | None = None,
    trees: bool = True,
) -> Alternative | None:
    r"""Compare a fitted model with others on the same labels.

    The current model predicts each label with this label left out, if it can do that in closed form. Trees, and the
    models that the present one is compared with, predict them by ten-fold cross validation. Labels of items that were
    drawn at random have the weight 1. The current model has chosen the others because it is uncertain about them: for
    classes they have the weight 0.5, and for numbers they do not count. The logarithm of the ratio of the two errors,
    :math:`\theta`, is estimated by that of the weighted losses (0 or 1 for classes, squares for numbers), less what is
    usual because of cross validation. Its standard error follows from the delta method; for classes each sum of
    losses is increased by 1. For classes, the prior for :math:`\theta` is a mixture of two normal distributions, whose
    mean is the usual ratio of the two kinds of models at this number of labels; for numbers it is normal. Its constants
    were fitted to development sets, see ``benchmarks/better_models.py``. Another model is clearly better if
    :math:`P(\theta < 0)` is at least 0.95 for classes and 0.977 for numbers, if the posterior mean of :math:`\theta` is
    at most :math:`\log 0.9`, and if there are at least 15 random labels. One that was named before stays so while
    :math:`P(\theta < 0) \ge 0.69`, and keeps its place unless another one is lower by a tenth. It is possibly better if
    on the random labels alone its loss is lower by one standard error of the difference, and at most 0.9 times that of
    the current model, if there are at least 10 random labels. A difference of the losses below 0.01, for numbers below
    0.01 of the variance of the labels, does not count.

    Args:
        model: The current model, fitted; one that can leave labels out (:class:`suffice.models.BayesianLogistic`,
            :class:`suffice.models.GaussianProcess`, :class:`suffice.models.BayesianRidge`), or trees.
        X: Inputs of the labels, before any transformer of a pipeline, ``n x D``.
        y: The labels, in the order in which the model learned them.
        random: Which labels are of items that were drawn at random, ``n``.
        present: Name of the current model, which is not compared with itself.
        named: The result of the comparison before.
        trees: Whether other models may consist of trees.

    Returns:
        The best clearly better model, or otherwise a possibly better one; None if there is neither, if there are fewer
        than 30 labels, or if the current model is neither trees nor one that can leave labels out.
    """
    losses = comparison_losses(model, X, y, random, present=present, trees=trees)
    return None if losses is None else losses.best(named)


class ComparedLosses(NamedTuple):
    """Losses of the same labels under the current model and under others, which have not learned the label.

    Attributes:
        ours: Losses of the current model: 0 or 1 for classes, squares for numbers.
        others: Losses of the other models by name.
        random: Which labels are of items that were drawn at random.
        share: Whether labels are classes.
        scale: The variance of the labels, or 1 for classes.
        present: Name of the current model; empty if it is of another kind.
    """

    ours: Floats
    others: dict[str, Floats]
    random: Any
    share: bool
    scale: float
    present: str = ""

    @property
    def usual(self) -> RatioPrior:
        """What is usual for ratios of errors of this task."""
        return _CLASS_RATIO if self.share else _NUMBER_RATIO

    def ratio(self, name: str, usual: RatioPrior | None = None) -> ErrorRatio:
        """The posterior of the logarithm of the ratio of the errors of a model and of the present one.

        Args:
            name: Name of the model.
            usual: In place of :attr:`usual`.
        """
        usual = usual or self.usual
        added, power = (_ADDED_WRONG, 1.0) if self.share else (1e-12 * self.scale, 2.0)
        weights = np.where(self.random, 1.0, usual.chosen)
        ours, theirs = (float(weights @ loss) + added for loss in (self.ours, self.others[name]))
        influence = weights * (self.others[name] / theirs - self.ours / ours)
        squared_error = float(influence @ influence)
        if self.share:
            squared_error += added / 2.0 * (ours**-2 + theirs**-2)
        estimate = math.log(theirs / ours) / power
        return usual.posterior(usual.mean(name, self.present, len(self.ours)), estimate, squared_error / power**2)

    def best(self, named: Alternative | None = None) -> Alternative | None:
        """The best clearly better model, or otherwise the best possibly better one; see :func:`better_model`.

        Args:
            named: The result of the comparison before.
        """
        drawn = int(np.count_nonzero(self.random))
        before = named.name if named is not None and named.clear else None
        clear, possible = [], []
        for name, theirs in self.others.items():
            ratio = self.ratio(name)
            errors = _errors(theirs, self.ours, share=self.share)
            probability = _STAYS if name == before else self.usual.clearly
            other = Alternative(name, model_description(name), *errors, len(self.ours), ratio=math.exp(ratio.mean))
            ours = float(self.ours.mean())
            differs = ours - float(theirs.mean()) >= _SMALLEST * self.scale and errors[0] <= _LARGEST_RATIO * errors[1]
            better = ratio.better >= probability and math.exp(ratio.mean) <= _LARGEST_RATIO
            if better and differs and drawn >= _FEWEST_RANDOM:
                # The one that was named before stays, unless another one is better by a tenth.
                clear.append((ratio.mean + (math.log(_LARGEST_RATIO) if name == before else 0.0), other))
            elif drawn >= _FEWEST_POSSIBLY and self._possibly(theirs):
                possible.append((ratio.mean, other._replace(clear=False)))
        return min(clear or possible, key=lambda pair: pair[0])[1] if clear or possible else None

    def _possibly(self, theirs: Floats) -> bool:
        """Whether another model is possibly better on the random labels."""
        ours, theirs = self.ours[self.random], theirs[self.random]
        return _lower(ours, theirs, _POSSIBLY, _POSSIBLY_BETTER, _SMALLEST * self.scale)


def comparison_losses(  # noqa: PLR0913 - all but four by keyword
    model: Any, X: Floats, y: Any, random: Any, *, present: str = "", trees: bool = True
) -> ComparedLosses | None:
    """The losses of :func:`better_model`, with its arguments; None if the models cannot be compared."""
    labels, drawn = np.asarray(y), np.asarray(random, dtype=bool)
    if len(labels) < _FEWEST_COMPARED or len(labels) > _MOST_COMPARED:
        return None
    share = hasattr(model, "classes_")
    if np.count_nonzero(drawn) < _FEWEST_POSSIBLY or (share and len(np.unique(labels)) < 2):
        return None
    current = left_out_losses(model)
    # The other models need inputs without gaps, which trees do not.
    if current is None and _consists_of_trees(present) and isinstance(X, np.ndarray) and np.isfinite(X).all():
        current = cross_validated_losses(model, X, labels, share=share, folds=_FOLDS)
    if current is None:
        return None
    # Boosting uses all processors otherwise, which takes longer for so few labels.
    with threadpool_limits(limits=1, user_api="openmp"):
        others = {
            name: cross_validated_losses(
                _compared_estimator(name, labels, share=share), X, labels, share=share, folds=_FOLDS
            )
            for name in _candidates(X, labels, present, share=share, trees=trees)
        }
    return ComparedLosses(current, others, drawn, share, 1.0 if share else float(labels.var()), present)


def _errors(theirs: Floats, ours: Floats, *, share: bool) -> tuple[float, float]:
    """The errors of both models as they are stated: shares of wrong predictions, or root mean squared errors."""
    means = float(theirs.mean()), float(ours.mean())
    return means if share else (math.sqrt(means[0]), math.sqrt(means[1]))


def _lower(ours: Floats, theirs: Floats, times: float, share_of: float, smallest: float) -> bool:
    """Whether losses are lower than others, by so many standard errors, to this share, and by this difference."""
    difference = ours - theirs
    mean, error = float(difference.mean()), float(difference.std(ddof=1)) / math.sqrt(len(ours))
    return mean > times * error and float(theirs.mean()) <= share_of * float(ours.mean()) and mean >= smallest


def better_on_rest(  # noqa: PLR0913 - labels to learn and labels to compare on
    losses: Any, X: Floats, y: Any, X_rest: Floats, y_rest: Any, *, share: bool, present: str = ""
) -> Alternative | None:
    r"""Compare a model with others that learn the same labels, on other rows whose labels are known.

    With :math:`d_i` the differences of the losses (0 or 1 for classes, squares for numbers) of the :math:`m` other
    rows, another model is clearly better if :math:`\bar d > 2\, s_d / \sqrt m`, if its loss is at most 0.8 times
    that of the current model, and if there are at least 20 rows. It is possibly better with 1 in place of 2 and 0.9 in
    place of 0.8. The rows need not be random: every model predicts the same rows, and has learned none of them.

    Args:
        losses: Losses of the current model on the other rows: 0 or 1 for classes, squares for numbers.
        X: Inputs of the labels to learn, before any transformer of a pipeline, ``n x D``.
        y: The labels to learn.
        X_rest: Inputs of the other rows, ``m x D``. Of more than 2000, the first 2000 count.
        y_rest: Their labels.
        share: Whether the labels are classes, so that the error is the share of wrong predictions.
        present: Name of the current model, which is not compared with itself.

    Returns:
        As :func:`better_model`; None if there are fewer than 30 labels or more than 2000, or fewer than 10 other rows.
    """
    labels, truth = np.asarray(y), np.asarray(y_rest)[:_MOST_COMPARED]
    few = len(labels) < _FEWEST_COMPARED or len(truth) < _FEWEST_POSSIBLY
    if few or len(labels) > _MOST_COMPARED or (share and len(np.unique(labels)) < 2):
        return None
    current = np.asarray(losses, dtype=np.float64)[: len(truth)]
    smallest = _SMALLEST * (1.0 if share else float(labels.var()))
    found = []
    for name in _candidates(X, labels, present, share=share):
        estimator = quick_estimator(name, labels, _task(share=share))
        theirs = _predicted_losses(estimator, (X, labels), (X_rest[: len(truth)], truth), share=share)
        if not _lower(current, theirs, _POSSIBLY, _POSSIBLY_BETTER, smallest):
            continue
        clear = len(truth) >= _FEWEST_ROWS and _lower(current, theirs, _CLEARLY, _CLEARLY_BETTER, smallest)
        error, ours = _errors(theirs, current, share=share)
        found.append(Alternative(name, model_description(name), error, ours, len(truth), clear, error / ours))
    return min(found, key=lambda other: (not other.clear, other.error)) if found else None


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
    return make_model(name, task=task)


def _compared_estimator(name: str, labels: Any, *, share: bool) -> Any:
    """An estimator for the comparison while labelling goes on, which takes less time."""
    made = quick_estimator(name, labels, _task(share=share))
    faster: dict[str, Any] = {
        "forest": {"n_estimators": _TREES},
        "boosting": {"max_iter": _TREES, "learning_rate": _RATE, "min_samples_leaf": _LEAF},
    }
    return made.set_params(**faster.get(name, {}))


def _consists_of_trees(name: str) -> bool:
    return name in MODEL_FAMILIES and MODEL_FAMILIES[name].estimator


def _task(*, share: bool) -> ModelTask:
    return "classification" if share else "regression"


def _candidates(X: Any, labels: Any, present: str, *, share: bool, trees: bool = True) -> list[str]:
    """Names of the models to compare the present one with, on these inputs and labels."""
    classes = len(np.unique(labels)) if share else 1
    slow = {"kernel", "boosting"} if classes > _MOST_CLASSES else set()
    if classes * X.shape[1] > _MOST_BOOSTED:
        slow.add("boosting")
    names = model_names(_task(share=share))
    usable = [name for name in names if MODEL_FAMILIES[name].interactive and name not in slow and name != present]
    if share:
        # Of the linear models one is compared, and none with a model of another kind, which may be linear itself.
        linear = default_model("classification", n_features=X.shape[1], n_classes=classes).name if present else ""
        usable = [name for name in usable if name not in _LINEAR or name == linear]
    return [name for name in usable if trees or not _consists_of_trees(name)]


def cross_validated_losses(estimator: Any, X: Floats, labels: Any, *, share: bool, folds: int = 5) -> Floats:
    """Losses of the labels, each predicted by a model fitted to the labels of other folds.

    Args:
        estimator: An estimator; it is not changed.
        X: Inputs of the labels, ``n x D``.
        labels: The labels, ``n``.
        share: Whether they are classes: losses are 0 or 1 then, and squared errors for numbers.
        folds: Number of folds.
    """
    order = np.random.default_rng(0).permutation(len(labels))
    losses = np.zeros(len(labels))
    for k in range(folds):
        test, train = order[k::folds], np.concatenate([order[j::folds] for j in range(folds) if j != k])
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
