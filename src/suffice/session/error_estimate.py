"""The error of the unlabelled items, estimated by the model and calibrated by labels that were drawn at random."""

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc, expit, log_softmax, logit
from scipy.stats import beta

from suffice.arguments import real
from suffice.checks import GuaranteePlan, plan_total
from suffice.errors import InvalidValueError
from suffice.models.predictive import FACTORS, Guesses, sharpness
from suffice.numerics import Floats
from suffice.session.decision import ErrorNow, Worsening

# Weight of the model's own estimate in the ratio of losses: for classes in expected errors, for numbers in labels.
_PRIOR_ERRORS: Final = 4.0
_PRIOR_LABELS: Final = 10.0
# The same for a trivial prediction in place of an estimate of the model, in labels.
_TRIVIAL_LABELS: Final = 1.0
# For numbers, the weight of a label that was not drawn at random, and the least spread of the losses. Few labels rarely
# contain one of the large residuals that dominate a mean of squares.
NUMBER_CHOSEN_WEIGHT: Final = 0.25
_LEAST_SPREAD: Final = 3.0
# For classes after sharpening: the weight of the model's own estimate in expected errors, and of a chosen label.
_PRIOR_SHARPENED: Final = 8.0
_CHOSEN_WEIGHT: Final = 0.5
# Weight of the model's own estimate in labels: in general, and after sharpening, in the interval.
_OWN_LABELS: Final = 2.0
_OWN_LABELS_SHARPENED: Final = 4.0
# A label counts as less than one in an interval, because labels are left out in parts, predictions are of different
# ages, and models differ in more than one parameter. The divisor was chosen by coverage.
_DIVISOR: Final = 2.0
# Precisions of the normal prior of intercept and slope of a logistic calibration, about 0 and 1; largest log odds.
_CALIBRATION_PRECISION: Final = (0.25, 1.0)
_LARGEST_LOGIT: Final = 6.0
# An estimate is at least half an error among this many labels, or among the random labels if these are more.
_FLOOR_LABELS: Final = 20.0
# With fewer expected errors than this among the effective labels, an interval starts at 0.
_FEWEST_ERRORS: Final = 0.5
# Standard deviation, over models and sets of development, of the power with which the error falls with the labels.
_CURVE_SPREAD: Final = 0.3
# Least number of labels of a beta distribution.
_FEWEST_KNOWN: Final = 1.0
# With this number of effective labels, an interval reaches at least to half of the error of a guess.
_HALF_GUESSED: Final = 2.0
# Probability of each tail of an interval, and the corresponding quantile of the normal distribution.
_TAIL: Final = 0.05
_NORMAL_POINT: Final = 1.6449
#: Minimal number of labels for the comparison with earlier losses.
FEWEST_COMPARED: Final = 10
# Number of standard errors for a clear result.
_CLEARLY: Final = 2.5
# Newton's method: most steps, and the step at which it has converged.
_NEWTON_STEPS: Final = 50
_CONVERGED: Final = 1e-10
#: Maximal number of unlabelled items over which the model's own estimate is averaged.
REST_ITEMS: Final = 2000
# Number of halvings of the interval for a shift of log odds.
_SHIFT_HALVINGS: Final = 60


class CalibratedError(NamedTuple):
    """An estimate of the error of the unlabelled items. It is not a guarantee.

    Attributes:
        value: The estimate: for classes the share of wrong predictions, for numbers the mean squared error, in squared
            units of the labels (or the share of predictions that are off by more than a tolerance).
        low: Lower end of the 90 % interval, in the unit of ``value``.
        high: Upper end, in the same unit.
        model_alone: The error that the model expects of itself, in the same unit.
        random_labels: Number of random labels that calibrate it. With none, ``value`` is ``model_alone``, or for a
            classifier of suffice what all of its labels make of that.
        predicted_at: Number of labels of the oldest model whose predictions it uses, for a model that is fitted
            again or has predicted labels before it learned them. None if all are of the current model.
    """

    value: float
    low: float
    high: float
    model_alone: float
    random_labels: int
    predicted_at: int | None = None


def error_now(found: CalibratedError, *, share: bool) -> ErrorNow:
    """Return an estimate in the units of a decision: a share of wrong predictions, or a root mean squared error.

    Args:
        found: The estimate.
        share: Whether it is a share of wrong predictions; otherwise a mean squared error.

    Examples:
        >>> error_now(CalibratedError(4.0, 1.0, 9.0, 3.0, 20), share=False)
        ErrorNow(value=2.0, low=1.0, high=3.0, random_labels=20)
    """
    value, low, high = (each if share else math.sqrt(each) for each in (found.value, found.low, found.high))
    return ErrorNow(value, low, high, found.random_labels)


def checked_tolerance(tolerance: float | None, *, share: bool) -> float | None:
    """Return the largest error that does not count as wrong, or None.

    Args:
        tolerance: As the caller gave it.
        share: Whether the model predicts classes, which have no tolerance.

    Raises:
        InvalidValueError: It is for classes, or below 0.
    """
    if tolerance is None:
        return None
    if share:
        raise InvalidValueError("tolerance is for numbers, and the model predicts classes; leave it out")
    return real(tolerance, "tolerance", "of at least 0", lambda x: x >= 0.0)


def calibration_ratio(losses: Any, expected: Any, weights: Any = None, *, task: str) -> float:
    r"""Return the ratio of the losses of labels to the losses that the model expects, shrunk towards 1.

    For classes and for numbers, with losses :math:`l_i`, expected losses :math:`p_i` and weights :math:`w_i`,

    .. math:: \rho = \frac{4 + \sum_i w_i l_i}{4 + \sum_i w_i p_i}, \qquad
              \rho = \frac{10 + \sum_i w_i l_i / p_i}{10 + \sum_i w_i}.

    Squared residuals are divided one by one, because a few large residuals would dominate a quotient of sums.

    Args:
        losses: Loss of each label under a model without it: 0 or 1 for classes, the squared residual for numbers.
        expected: The loss that the model expects of it: the probability of all other classes, the variance of the
            label.
        weights: Weight of each label; 1 if left out.
        task: ``"regression"`` or ``"classification"``.

    Examples:
        >>> calibration_ratio([1.0, 1.0, 1.0], [0.5, 0.25, 0.25], task="classification")
        1.4
        >>> calibration_ratio([4.0, 4.0], [2.0, 1.0], task="regression")
        1.3333...
    """
    loss, hoped, w = _arrays(losses, expected, weights)
    if task == "classification":
        return (_PRIOR_ERRORS + float(w @ loss)) / (_PRIOR_ERRORS + float(w @ hoped))
    return (_PRIOR_LABELS + float(w @ _relative(loss, hoped))) / (_PRIOR_LABELS + float(w.sum()))


def _arrays(losses: Any, expected: Any, weights: Any) -> tuple[Floats, Floats, Floats]:
    loss, hoped = np.asarray(losses, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    return loss, hoped, np.ones(len(loss)) if weights is None else np.asarray(weights, dtype=np.float64)


def _relative(losses: Floats, expected: Floats) -> Floats:
    """Losses relative to the expected losses; 1 if no loss was expected."""
    return np.divide(losses, expected, out=np.ones(len(losses)), where=expected > 0.0)


def effective_labels(weights: Any) -> float:
    r"""Number of labels of equal weight that have the same variance, :math:`(\sum w)^2 / \sum w^2`.

    Examples:
        >>> effective_labels([1.0, 1.0, 0.5]), effective_labels([])
        (2.777..., 0.0)
    """
    w = np.asarray(weights, dtype=np.float64)
    return float(w.sum()) ** 2 / float(w @ w) if w.any() else 0.0


def number_error(  # noqa: PLR0913 - the data of an estimate
    rest: Any, losses: Any, expected: Any, weights: Any = None, random: Any = None, *, trivial: bool = False
) -> CalibratedError:
    r"""Estimate the mean squared error of the unlabelled items, for a model that expects a variance of each label.

    The estimate is :math:`\rho` times the mean of the expected variances, see :func:`calibration_ratio`. The interval
    is log-normal, with the variance :math:`2 \kappa / (m / 2 + 10)` of a mean of squares, where :math:`m` is the
    effective number of random labels, and :math:`\kappa \ge 3` is the variance of the losses of all labels
    relative to that of Gaussian residuals. Without a label it is twice as wide, in logarithms.

    Args:
        rest: The variance that the model expects of each unlabelled item.
        losses: Squared residuals of labels under models without them.
        expected: The variances that these models expect of them.
        weights: Weight of each label; 1 if left out.
        random: Which of them were drawn at random; all if left out.
        trivial: Whether the variances are not those of a model, but of a trivial prediction. They count like one label
            instead of ten, and in value and lower end like the largest loss of the labels if that is less: a model may
            be much better than the trivial prediction.

    Examples:
        >>> estimate = number_error([1.0], [2.0] * 40, [1.0] * 40)
        >>> round(estimate.value, 3), round(estimate.low, 3), round(estimate.high, 3)
        (1.8, 0.863, 3.756)
        >>> estimate = number_error([1.0], [0.001] * 40, [1.0] * 40, trivial=True)
        >>> round(estimate.value, 4), round(estimate.low, 4), round(estimate.high, 4)
        (0.001, 0.0004, 0.0611)
    """
    loss, hoped, w = _arrays(losses, expected, weights)
    drawn = np.ones(len(loss), dtype=bool) if random is None else np.asarray(random, dtype=bool)
    own = _TRIVIAL_LABELS if trivial else _PRIOR_LABELS
    alone, relative = float(np.mean(rest)) if len(rest) else 0.0, _relative(loss, hoped)
    likely = min(1.0, float(relative.max())) if trivial and relative.any() else 1.0
    value, most = (alone * (own * each + float(w @ relative)) / (own + float(w.sum())) for each in (likely, 1.0))
    spread = _LEAST_SPREAD
    if relative.any():
        spread = max(spread, float(np.mean((relative / relative.mean() - 1.0) ** 2)) / 2.0)
    known = effective_labels(w[drawn]) / _DIVISOR
    width = math.exp(_NORMAL_POINT * math.sqrt(2.0 * spread / (known + own)) * (1.0 if drawn.any() else 2.0))
    return CalibratedError(value, value / width, most * width, alone, int(drawn.sum()))


def class_error(rest: Any, expected: Any, wrong: Any, weights: Any = None, *, guessed: float = 0.5) -> CalibratedError:
    r"""Estimate the share of wrong predictions of the unlabelled items from random labels, for a model of any kind.

    The model's confidence is calibrated by logistic regression: with :math:`q` the probability of a wrong prediction
    that a model expects, and :math:`\mathrm{logit}\, g(q) = a + b \,\mathrm{logit}\, q`, where
    :math:`a \sim N(0, 4)` and :math:`b \sim N(1, 1)`, at least 0. The estimate is the mean of :math:`g` over the
    unlabelled items, corrected by the random labels (a difference estimator),

    .. math:: \hat e = \overline{g(q_{rest})} + \frac{m}{m + 2} \;
              \frac{\sum_i w_i (l_i - g(q_i))}{\sum_i w_i},
              \qquad m = \frac12 \frac{(\sum w_i)^2}{\sum w_i^2},

    where :math:`l_i` is 1 if random label ``i`` was predicted wrong by a model that has not learned it. So the estimate
    is that of the labels where the confidence says nothing, and it takes account of the unlabelled items being easier
    than the labelled ones. It is at least half an error among all random labels.

    The 90 % interval is that of the distribution :math:`\mathrm{Beta}(\hat e k, (1 - \hat e) k)`. For labels that were
    predicted by the current model, :math:`k = m + 2`. For older predictions the fall of the error since then is
    uncertain, so that the variance is larger,

    .. math:: \frac{\hat e (1 - \hat e)}{k + 1} = \frac{\hat e (1 - \hat e)}{m + 3} + (0.3 \, \hat e \, d)^2, \qquad
              d = \frac{\sum_i w_i \log (N / n_i)}{\sum_i w_i}.

    The interval starts at 0 if :math:`\hat e \min(k, m) < 1/2`. It ends at :math:`\gamma / (1 + m / 2)` or above, where
    :math:`\gamma` is the error of a guess, because few random labels do not show that a model is as good as it expects
    to be.

    Args:
        rest: The probability of a wrong prediction that the model expects of each unlabelled item.
        expected: The same for each random label, by a model that has not learned it.
        wrong: 1 for each random label that this model predicts wrong, 0 for the others.
        weights: Weight of each random label, :math:`(n / N)^2` if it was predicted by a model that had learned ``n`` of
            the present ``N`` labels; 1 if left out.
        guessed: The error of a guess, :math:`\gamma`: :math:`1 - 1/K` for ``K`` classes.

    Examples:
        >>> certain = class_error([0.0] * 100, [0.0] * 40, [1.0] * 6 + [0.0] * 34)
        >>> round(certain.value, 3), round(certain.low, 3), round(certain.high, 3)
        (0.15, 0.048, 0.288)
        >>> nothing = class_error([0.0] * 100, [], [])
        >>> round(nothing.value, 3), round(nothing.high, 3)
        (0.024, 0.5)
    """
    loss, hoped, w = _arrays(wrong, expected, weights)
    rest_logits, logits = _logits(rest), _logits(hoped)
    intercept, slope = _calibration(logits, loss, w)
    value = float(expit(intercept + slope * rest_logits).mean()) if len(rest_logits) else 0.0
    known = effective_labels(w) / _DIVISOR
    if w.any():
        residual = float(w @ (loss - expit(intercept + slope * logits))) / float(w.sum())
        value += known / (known + _OWN_LABELS) * residual
    floor = 0.5 / (max(effective_labels(w), _FLOOR_LABELS) + 1.0)
    alone = float(np.mean(rest)) if len(rest) else 0.0
    drift = _CURVE_SPREAD * float(w @ -np.log(w)) / 2.0 / float(w.sum()) if w.any() else 0.0
    estimate = _share_estimate(value, floor, known + _OWN_LABELS, alone, len(loss), drift)
    low = estimate.low if estimate.value * known >= _FEWEST_ERRORS else 0.0
    return estimate._replace(low=low, high=max(estimate.high, guessed / (1.0 + known / _HALF_GUESSED)))


def _share_estimate(  # noqa: PLR0913, PLR0917 - the data of an estimate
    value: float, floor: float, known: float, alone: float, random_labels: int, drift: float = 0.0
) -> CalibratedError:
    """An estimate of a share with a beta distribution as for ``known`` labels, and a relative error of ``drift``."""
    value = min(max(value, floor), 1.0 - floor)
    if drift > 0.0:
        spread = value * (1.0 - value)
        known = max(spread / (spread / (known + 1.0) + (drift * value) ** 2) - 1.0, _FEWEST_KNOWN)
    low, high = (float(beta.ppf(point, value * known, (1.0 - value) * known)) for point in (_TAIL, 1.0 - _TAIL))
    if value * known < _FEWEST_ERRORS:
        # So few errors are expected that there may be none.
        low = 0.0
    return CalibratedError(value, min(low, value), max(high, value), alone, random_labels)


def _logits(shares: Any) -> Floats:
    """Log odds, between -6 and 6."""
    with np.errstate(divide="ignore"):
        odds = logit(np.clip(np.asarray(shares, dtype=np.float64), 0.0, 1.0))
    return np.asarray(np.clip(odds, -_LARGEST_LOGIT, _LARGEST_LOGIT))


def _calibration(logits: Floats, wrong: Floats, weights: Floats) -> tuple[float, float]:
    """Intercept and slope of a logistic calibration, with a normal prior; the slope is at least 0."""
    design = np.column_stack([np.ones(len(logits)), logits])
    precision, centre = np.array(_CALIBRATION_PRECISION), np.array([0.0, 1.0])

    def penalised(point: Floats) -> float:
        """Negative log posterior, without a constant."""
        line = design @ point
        penalty = 0.5 * float(precision @ (point - centre) ** 2)
        return float(weights @ (np.logaddexp(0.0, line) - wrong * line)) + penalty

    def minimum(free: int) -> Floats:
        """Newton's method with halved steps on the first parameters; the slope is 0 if it is not free."""
        point = centre.copy() if free == 2 else np.zeros(2)
        value = penalised(point)
        for _ in range(_NEWTON_STEPS):
            p = expit(design @ point)
            gradient = design.T @ (weights * (p - wrong)) + precision * (point - centre)
            curvature = (design.T * (weights * p * (1.0 - p))) @ design + np.diag(precision)
            step = np.zeros(2)
            step[:free] = np.linalg.solve(curvature[:free, :free], gradient[:free])
            while np.abs(step).max() > _CONVERGED and penalised(point - step) > value:
                step /= 2.0
            if np.abs(step).max() <= _CONVERGED:
                break
            point, value = point - step, penalised(point - step)
        return point

    point = minimum(2)
    intercept, slope = point if point[1] >= 0.0 else minimum(1)
    return float(intercept), float(slope)


def sharpened_error(rest: Any, left_out: Any, codes: Any, random: Any) -> CalibratedError:
    r"""Estimate the share of wrong predictions of a classifier whose labels can be left out, in two steps.

    First, all labels are used to correct the confidence of the model. Each label is predicted without itself, with log
    probabilities :math:`z_i`. A factor :math:`t` is learned from them, see
    :func:`suffice.models.predictive.sharpness`, with half the weight for labels that were not drawn at random. Second,
    with :math:`e(z) = 1 - \max_k \mathrm{softmax}(t z)_k`, the random labels calibrate the error:

    .. math:: \hat e = \overline{e(z_{rest})} \; \frac{8 + \sum_i l_i}{8 + \sum_i e(z_i)},

    where :math:`l_i` is 1 if random label ``i`` is predicted wrong without itself, and 0 otherwise. The estimate is at
    least half an error among the random labels. The 90 % interval is that of the distribution
    :math:`\mathrm{Beta}(\hat e (m + 4), (1 - \hat e)(m + 4))`, where :math:`m` is the number of random labels divided
    by 2.

    Args:
        rest: Log probabilities of unlabelled items, ``m x K``.
        left_out: Log probabilities of labelled items, each without its label, ``n x K``.
        codes: Their labels, as columns of ``left_out``.
        random: Which of them were drawn at random, ``n`` flags.

    Examples:
        >>> right, unsure = np.array([1, 0] * 50), np.log([[0.4, 0.6], [0.6, 0.4]] * 50)
        >>> estimate = sharpened_error(unsure, unsure, right, np.arange(100) < 20)
        >>> round(estimate.model_alone, 3), round(estimate.value, 3)
        (0.4, 0.031)
    """
    here, there = np.asarray(rest, dtype=np.float64), np.asarray(left_out, dtype=np.float64)
    labels, drawn = np.asarray(codes, dtype=np.intp), np.asarray(random, dtype=bool)
    factor = sharpening(there, labels, drawn)
    losses = (there.argmax(axis=1) != labels)[drawn]
    wrong, expected = float(losses.sum()), float(_wrong_shares(factor * there[drawn]).sum())
    ratio = (_PRIOR_SHARPENED + wrong) / (_PRIOR_SHARPENED + expected)
    value = float(_wrong_shares(factor * here).mean()) * ratio
    n = int(drawn.sum())
    floor = 0.5 / (max(n, _FLOOR_LABELS) + 1.0)
    known = n / _DIVISOR + _OWN_LABELS_SHARPENED
    return _share_estimate(value, floor, known, float(_wrong_shares(here).mean()), n)


def sharpening(left_out: Floats, codes: NDArray[np.intp], random: NDArray[np.bool_]) -> float:
    """The factor of log probabilities that corrects the confidence of a classifier.

    Arguments as for :func:`sharpened_error`.
    """
    probable = sharpness(Guesses(left_out, codes), np.where(random, 1.0, _CHOSEN_WEIGHT))
    return float(np.exp(probable @ np.log(FACTORS)))


def _wrong_shares(logits: Floats) -> Floats:
    """Probability of all classes except the likeliest, ``m``."""
    return np.asarray(1.0 - np.exp(log_softmax(logits, axis=1)).max(axis=1)) if len(logits) else np.zeros(0)


def shifted_shares(expected: Floats, mean: float, *, first: int | None = None) -> Floats:
    r"""Probabilities with the same order and a given mean: the same constant is added to all log odds.

    Args:
        expected: Probabilities.
        mean: Their mean afterwards, above 0 and below 1.
        first: Number of the first probabilities that are to have this mean; all if left out.

    Examples:
        >>> shifted_shares(np.array([0.1, 0.3]), 0.4).round(3).tolist()
        [0.245, 0.555]
        >>> shifted_shares(np.array([0.5, 0.1]), 0.2, first=1).round(3).tolist()
        [0.2, 0.027]
    """
    odds = _logits(expected)
    low, high = -40.0, 40.0
    for _ in range(_SHIFT_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if float(expit(odds[:first] + middle).mean()) < mean else (low, middle)
    return np.asarray(expit(odds + 0.5 * (low + high)))


def share_beyond(tolerance: float, variances: Any) -> Floats:
    r"""The probability :math:`2\Phi(-w/\sqrt v)` that a normal error of variance ``v`` is larger than ``w``.

    Args:
        tolerance: ``w``, at least 0.
        variances: ``v`` of each item.

    Examples:
        >>> share_beyond(1.0, [1.0, 0.25, 0.0]).round(3).tolist()
        [0.317, 0.046, 0.0]
    """
    v = np.asarray(variances, dtype=np.float64)
    scaled = np.divide(tolerance, np.sqrt(2.0 * v), out=np.full(v.shape, np.inf), where=v > 0.0)
    return np.asarray(erfc(scaled))


def plan_from_estimate(  # noqa: PLR0913 - all but two by keyword
    target: float,
    found: CalibratedError,
    *,
    reducible: float,
    n_labelled: int,
    pool: int,
    alpha: float,
    skipped: float = 0.0,
    one_class: bool = False,
    check_advised: bool = False,
) -> GuaranteePlan:
    """Plan labels and a check from an estimate of the error; see :func:`suffice.checks.plan_total`.

    The plan never expects an error below ``1 / (2 (n + 1))``, or ``3 / n`` while only one class is known, because a few
    labels without an error do not show that the error is 0.

    Args:
        target: The share of wrong predictions to guarantee.
        found: The estimate.
        reducible: The part of the error that more labels can remove, by the model's own account; it is calibrated like
            the error.
        n_labelled: ``n``, the number of labels.
        pool: Number of unlabelled items.
        alpha: Error probability of the check.
        skipped: Share of the unlabelled items that were skipped. They can be drawn, and count as wrong.
        one_class: Whether all labels are of one class.
        check_advised: As for :func:`suffice.checks.plan_total`.
    """
    n = max(1, n_labelled)
    ratio = found.value / found.model_alone if found.model_alone > 0.0 else 1.0
    error = least_expected(found.value, n, one_class=one_class)
    removable = min(error - found.value + ratio * reducible, error)
    now, low, high = (
        min(1.0, share * (1.0 - skipped) + skipped) for share in (error, min(found.low, error), max(found.high, error))
    )
    return plan_total(
        target,
        now,
        low=low,
        high=high,
        reducible=removable * (1.0 - skipped),
        n_labelled=n,
        pool=pool,
        alpha=alpha,
        check_advised=check_advised,
    )


def least_expected(share: float, n_labelled: int, *, one_class: bool = False) -> float:
    """The share of wrong predictions to plan with: the estimate, but at least ``1 / (2 (n + 1))``.

    Args:
        share: The estimated share of wrong predictions.
        n_labelled: ``n``, the number of labels.
        one_class: Whether all labels are of one class; then it is at least ``3 / n``.

    Examples:
        >>> least_expected(0.0, 99), least_expected(0.0, 60, one_class=True), least_expected(0.2, 99)
        (0.005, 0.05, 0.2)
    """
    return min(1.0, max(share, 3.0 / max(1, n_labelled) if one_class else 0.5 / (n_labelled + 1)))


def worsening(before: Any, now: Any) -> Worsening | None:
    r"""Compare the losses of the same labels under earlier models and under the current model.

    With :math:`d_i` the differences, the model counts as worse if :math:`\bar d > 0` and
    :math:`\bar d / (s_d / \sqrt n) > 2.5`. At least 10 labels are needed.

    Args:
        before: Loss of each random label under the model before it learned the label, in the order of the labels. The
            newer half counts.
        now: Loss of each under the model of now without the label.

    Returns:
        The comparison if the model is worse; None otherwise.

    Examples:
        >>> worsening([1.0] * 30, [1.5 + 0.01 * k for k in range(30)]).random_labels
        15
        >>> worsening([1.0] * 30, [0.5 + 0.01 * k for k in range(30)]) is None
        True
    """
    then, here = np.asarray(before, dtype=np.float64), np.asarray(now, dtype=np.float64)
    count = len(then) // 2
    if count < FEWEST_COMPARED:
        return None
    return compared_losses(then[-count:], here[-count:])


def compared_losses(before: Any, now: Any) -> Worsening | None:
    """Return the comparison of losses of the same labels if the later ones are clearly larger; otherwise None.

    Args:
        before: Earlier losses, at least 10.
        now: Later losses of the same labels.
    """
    then, here = np.asarray(before, dtype=np.float64), np.asarray(now, dtype=np.float64)
    if len(then) < FEWEST_COMPARED:
        return None
    difference = here - then
    error = float(difference.std(ddof=1)) / math.sqrt(len(then))
    if not float(difference.mean()) > _CLEARLY * error:
        return None
    return Worsening(float(then.mean()), float(here.mean()), len(then))


def relevance_ratio(hits: int, expected: float) -> float:
    """Ratio of the labels of a class to their expected number, shrunk towards 1 like :func:`calibration_ratio`."""
    return (_PRIOR_ERRORS + hits) / (_PRIOR_ERRORS + expected)
