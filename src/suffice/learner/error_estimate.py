"""The error of the unlabelled items, estimated by the model and calibrated by labels that were drawn at random."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.special import erfc, log_softmax
from scipy.stats import gamma

from suffice.acquisition import Indices
from suffice.arguments import real
from suffice.checks import GuaranteePlan, plan_total
from suffice.decision import ErrorNow
from suffice.errors import InvalidValueError
from suffice.models.logistic import BayesianLogistic
from suffice.models.predictive import FACTORS, Guesses, guessed_places, guesses, log_probabilities, sharpness
from suffice.models.regression import GaussianRegressor
from suffice.numerics import Floats

# Weight of the model's own estimate: for classes in expected errors, for numbers in labels.
_PRIOR_ERRORS: Final = 4.0
_PRIOR_LABELS: Final = 20.0
# The same weight after sharpening with all labels; the weight of a label that was not drawn at random; and the weight
# of errors in the interval. Both are below 1, because labels are few and one factor does not correct every model.
_PRIOR_SHARPENED: Final = 8.0
_CHOSEN_WEIGHT: Final = 0.5
_ERRORS_KNOWN: Final = (1.0, 0.7)
# Probability of each tail of an interval, and the corresponding quantile of the normal distribution.
_TAIL: Final = 0.05
_NORMAL_POINT: Final = 1.6449
# Minimal number of labels for the comparison with earlier losses, and number of standard errors for a clear result.
_FEWEST_COMPARED: Final = 10
_CLEARLY: Final = 2.5
#: Maximal number of unlabelled items over which the model's own estimate is averaged.
REST_ITEMS: Final = 2000


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
    """

    value: float
    low: float
    high: float
    model_alone: float
    random_labels: int


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


def calibration_ratio(losses: Any, expected: Any, *, task: str) -> float:
    r"""Return the ratio of the losses of random labels to the losses that the model expects, shrunk towards 1.

    For classes and for numbers, with losses :math:`l_i` and expected losses :math:`p_i`,

    .. math:: \rho = \frac{4 + \sum_i l_i}{4 + \sum_i p_i}, \qquad
              \rho = \frac{20 + \sum_i l_i / p_i}{20 + n}.

    Squared residuals are divided one by one, because a few large residuals would dominate a quotient of sums.

    Args:
        losses: Loss of each random label under a model without it: 0 or 1 for classes, the squared residual for
            numbers.
        expected: The loss that the model expects of it: the probability of all other classes, the variance of the
            label.
        task: ``"regression"`` or ``"classification"``.

    Examples:
        >>> calibration_ratio([1.0, 1.0, 1.0], [0.5, 0.25, 0.25], task="classification")
        1.4
        >>> calibration_ratio([4.0, 4.0], [2.0, 1.0], task="regression")
        1.1818...
    """
    found, hoped = np.asarray(losses, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if task == "classification":
        return (_PRIOR_ERRORS + float(found.sum())) / (_PRIOR_ERRORS + float(hoped.sum()))
    return (_PRIOR_LABELS + float(_relative(found, hoped).sum())) / (_PRIOR_LABELS + len(found))


def _relative(losses: Floats, expected: Floats) -> Floats:
    """Losses relative to the expected losses; 1 if no loss was expected."""
    return np.divide(losses, expected, out=np.ones(len(losses)), where=expected > 0.0)


def calibrated_error(model_alone: float, losses: Any, expected: Any, *, task: str) -> CalibratedError:
    r"""Calibrate the error that a model expects of itself by random labels.

    The estimate is :math:`\rho` times the expected error, see :func:`calibration_ratio`. For classes the interval
    is that of a Poisson count of errors with a gamma prior: :math:`\rho \sim \mathrm{Gamma}(4 + \sum l, 4 + \sum p)`.
    For numbers it is log-normal, with the variance :math:`2 \kappa / (n + 20)` of a mean of squares, where
    :math:`\kappa \ge 1` is the variance of the losses relative to that of Gaussian residuals.

    Args:
        model_alone: The mean loss that the model expects of the unlabelled items.
        losses: Losses of random labels under a model without each, see :func:`calibration_ratio`.
        expected: The losses that the model expects of them.
        task: ``"regression"`` or ``"classification"``.

    Returns:
        The estimate with a 90 % interval. For classes both are between 0 and 1.

    Examples:
        >>> wrong, expected = [1.0] * 6 + [0.0] * 34, [0.1] * 40
        >>> estimate = calibrated_error(0.08, wrong, expected, task="classification")
        >>> round(estimate.value, 3), round(estimate.low, 3), round(estimate.high, 3)
        (0.1, 0.054, 0.157)
    """
    found, hoped = np.asarray(losses, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    ratio = calibration_ratio(found, hoped, task=task)
    if task == "classification":
        shape, rate = _PRIOR_ERRORS + float(found.sum()), _PRIOR_ERRORS + float(hoped.sum())
        low, high = (float(gamma.ppf(point, shape)) / rate for point in (_TAIL, 1.0 - _TAIL))
        value, low, high = (min(1.0, model_alone * each) for each in (ratio, low, high))
        return CalibratedError(value, low, high, model_alone, len(found))
    spread = 1.0
    if len(found) and ratio > 0.0:
        spread = max(1.0, float(np.mean((_relative(found, hoped) / ratio - 1.0) ** 2)) / 2.0)
    width = math.exp(_NORMAL_POINT * math.sqrt(2.0 * spread / (len(found) + _PRIOR_LABELS)))
    value = model_alone * ratio
    return CalibratedError(value, value / width, value * width, model_alone, len(found))


def sharpened_error(rest: Any, left_out: Any, codes: Any, random: Any) -> CalibratedError:
    r"""Estimate the share of wrong predictions of a classifier whose labels can be left out, in two steps.

    First, all labels are used to correct the confidence of the model. Each label is predicted without itself, with log
    probabilities :math:`z_i`. A factor :math:`t` is learned from them, see
    :func:`suffice.models.predictive.sharpness`, with half the weight for labels that were not drawn at random. Second,
    with :math:`e(z) = 1 - \max_k \mathrm{softmax}(t z)_k`, the random labels calibrate the error:

    .. math:: \hat e = \overline{e(z_{rest})} \; \frac{8 + \sum_i l_i}{8 + \sum_i e(z_i)},

    where :math:`l_i` is 1 if random label ``i`` is predicted wrong without itself, and 0 otherwise. The 90 % interval
    is :math:`\hat e` times that of a gamma distribution with mean 1 and shape :math:`1 + 0.7 \sum_i l_i`.

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
    probable = sharpness(Guesses(there, labels), np.where(drawn, 1.0, _CHOSEN_WEIGHT))
    factor = float(np.exp(probable @ np.log(FACTORS)))
    losses = (there.argmax(axis=1) != labels)[drawn]
    wrong, expected = float(losses.sum()), float(_wrong_shares(factor * there[drawn]).sum())
    ratio = (_PRIOR_SHARPENED + wrong) / (_PRIOR_SHARPENED + expected)
    value = float(_wrong_shares(factor * here).mean()) * ratio
    shape = _ERRORS_KNOWN[0] + _ERRORS_KNOWN[1] * wrong
    low, high = (value * float(gamma.ppf(point, shape)) / shape for point in (_TAIL, 1.0 - _TAIL))
    alone = float(_wrong_shares(here).mean())
    return CalibratedError(min(1.0, value), min(1.0, low), min(1.0, high), alone, int(drawn.sum()))


def _wrong_shares(logits: Floats) -> Floats:
    """Probability of all classes except the likeliest, ``m``."""
    return np.asarray(1.0 - np.exp(log_softmax(logits, axis=1)).max(axis=1)) if len(logits) else np.zeros(0)


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
    one_class: bool = False,
    probability: float = 0.8,
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
        one_class: Whether all labels are of one class.
        probability: Requested probability that the check succeeds.
        check_advised: As for :func:`suffice.checks.plan_total`.
    """
    n = max(1, n_labelled)
    ratio = found.value / found.model_alone if found.model_alone > 0.0 else 1.0
    error = least_expected(found.value, n, one_class=one_class)
    removable = min(error - found.value + ratio * reducible, error)
    return plan_total(
        target,
        error,
        reducible=removable,
        n_labelled=n,
        pool=pool,
        alpha=alpha,
        probability=probability,
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


class Worsening(NamedTuple):
    """Evidence that the model has become worse, from random labels.

    Attributes:
        before: Mean loss of the newer random labels under the model before it learned each of them: the squared error
            for numbers, the cross entropy for classes.
        now: Mean loss of the same labels under the model of now, each left out of it.
        random_labels: How many labels are compared.
    """

    before: float
    now: float
    random_labels: int


def worsening(before: Any, now: Any) -> Worsening | None:
    r"""Compare the losses of the same labels under earlier models and under the present model.

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
    if count < _FEWEST_COMPARED:
        return None
    then, here = then[-count:], here[-count:]
    difference = here - then
    error = float(difference.std(ddof=1)) / math.sqrt(count)
    if not float(difference.mean()) > _CLEARLY * error:
        return None
    return Worsening(float(then.mean()), float(here.mean()), count)


class _LeftOut(NamedTuple):
    """Losses of some labels under a model without each of them.

    Attributes:
        losses: 0 or 1 for classes, squared residuals for numbers.
        expected: What the model expects of them.
        comparable: Cross entropies for classes, squared residuals for numbers.
    """

    losses: Floats
    expected: Floats
    comparable: Floats


def _leaves_out(model: Any) -> bool:
    """Whether labels can be left out of a model in closed form."""
    return isinstance(model, GaussianRegressor | BayesianLogistic)


def _left_out(model: Any, places: Any) -> _LeftOut | None:
    """Losses of the labels at some positions, each left out of a model; None if the model cannot leave labels out."""
    if isinstance(model, GaussianRegressor):
        mean, variance = model.prior_.left_out(model.features(model.X_), model.y_)
        squares = (model.y_ - mean)[places] ** 2
        return _LeftOut(squares, variance[places], squares)
    if _leaves_out(model):
        logits, codes = guesses(model.state_, places)
        logs = log_probabilities(logits)
        p = np.exp(logs)
        wrong = (p.argmax(axis=1) != codes).astype(np.float64)
        return _LeftOut(wrong, 1.0 - p.max(axis=1), np.asarray(-logs[np.arange(len(codes)), codes]))
    return None


def left_out_losses(model: Any) -> Floats | None:
    """Losses of all labels of a fitted model, each left out of it: 0 or 1 for classes, squared residuals for numbers.

    Returns:
        The losses in the order in which the labels were learned; None for a model that cannot leave labels out.
    """
    found = _left_out(model, np.arange(model.n_labels_)) if _leaves_out(model) else None
    return None if found is None else found.losses


def _sharpened(
    model: BayesianLogistic, X_rest: Floats, labels: Mapping[int, Any], items: Sequence[int]
) -> CalibratedError:
    """The estimate of :func:`sharpened_error`, from all random labels and a limited number of other labels."""
    place = {item: k for k, item in enumerate(labels)}
    drawn = np.array([place[item] for item in items], dtype=np.intp)
    places = np.union1d(guessed_places(model.state_), drawn)
    logits, codes = guesses(model.state_, places)
    rest = np.log(np.maximum(model.predict_proba(X_rest), np.finfo(np.float64).tiny))
    return sharpened_error(rest, log_probabilities(logits), codes, np.isin(places, drawn))


class _Prediction(NamedTuple):
    """Prediction for an item: a class or a number, the expected loss, and the log probability of each class."""

    label: Any
    expected: float
    logs: Any = None


def _predictions(model: Any, X: Floats, task: str) -> list[_Prediction]:
    if task == "classification":
        p = model.predict_proba(X)
        logs = np.log(np.maximum(p, np.finfo(np.float64).tiny))
        return [
            _Prediction(
                model.classes_[row.argmax()],
                float(1.0 - row.max()),
                dict(zip(model.classes_.tolist(), log, strict=True)),
            )
            for row, log in zip(p, logs, strict=True)
        ]
    mean, deviation = model.predict(X, return_std=True)
    return [_Prediction(float(m), float(s) ** 2) for m, s in zip(mean, deviation, strict=True)]


class RandomLabelLosses:
    """Losses of the labels that were drawn at random, each under a model without it.

    Gaussian processes, ridge and logistic regression leave labels out in closed form, so the present model predicts
    each random label, including initial labels. Other models predict each random label before they learn it.

    Args:
        task: ``"regression"`` or ``"classification"``.
    """

    def __init__(self, task: str) -> None:
        self._task = task
        self._predicted: dict[int, _Prediction] = {}
        self._losses: dict[int, float] = {}

    def count(self, model: Any, items: Sequence[int]) -> int:
        """Number of random labels that calibrate the estimate of a model."""
        return len(items) if _leaves_out(model) else len(self._losses)

    def predict(self, model: Any, X: Floats, items: Indices) -> None:
        """Store the model's predictions for random items before it learns their labels.

        Args:
            model: The current model.
            X: Inputs of the items, ``n x D``.
            items: The items.
        """
        if len(items):
            found = _predictions(model, X, self._task)
            self._predicted.update(zip((int(i) for i in items), found, strict=True))

    def label(self, item: int, label: Any) -> None:
        """Store the loss of an item's new or corrected label; items without a prediction are ignored."""
        predicted = self._predicted.get(item)
        if predicted is None:
            return
        if self._task == "classification":
            self._losses[item] = float(predicted.label != label)
        else:
            self._losses[item] = (float(label) - predicted.label) ** 2

    def worsening(self, model: Any, labels: Mapping[int, Any]) -> Worsening | None:
        """Whether the present model predicts the newer random labels worse than earlier models did.

        Args:
            model: The current model.
            labels: All labels by item, in the order learned.

        Returns:
            The comparison if it is worse; None otherwise, and for a model that cannot leave labels out.
        """
        place = {item: k for k, item in enumerate(labels)}
        items = [item for item in self._losses if self._told(item, labels[item]) is not None]
        if len(items) < 2 * _FEWEST_COMPARED:
            return None
        now = _left_out(model, np.array([place[item] for item in items]))
        return None if now is None else worsening([self._told(item, labels[item]) for item in items], now.comparable)

    def _told(self, item: int, label: Any) -> float | None:
        """The loss of a label when it was learned; None for a class that was new then."""
        predicted = self._predicted[item]
        if self._task == "regression":
            return self._losses[item]
        found = None if predicted.logs is None else predicted.logs.get(label)
        return None if found is None else -float(found)

    def state(self) -> list[tuple[int, float, float]]:
        """Item, expected loss and loss of each label, for a checkpoint."""
        return [(item, self._predicted[item].expected, loss) for item, loss in self._losses.items()]

    def restore(self, state: "list[tuple[int, float, float]]") -> None:
        """Continue from the output of :meth:`state`."""
        self._predicted = {item: _Prediction(None, expected) for item, expected, _ in state}
        self._losses = {item: loss for item, _, loss in state}

    def pairs(self, model: Any, labels: Mapping[int, Any], items: Sequence[int]) -> tuple[Floats, Floats]:
        """Losses of random labels, and the losses that the model expects of them.

        Args:
            model: The current model.
            labels: All labels by item, in the order learned.
            items: The items that were drawn at random.
        """
        if items and _leaves_out(model):
            place = {item: k for k, item in enumerate(labels)}
            found = _left_out(model, np.array([place[item] for item in items], dtype=np.intp))
            assert found is not None
            return found.losses, found.expected
        expected = [self._predicted[item].expected for item in self._losses]
        return np.array(list(self._losses.values())), np.array(expected)

    def ratio(self, model: Any, labels: Mapping[int, Any], items: Sequence[int]) -> float:
        """Ratio of the losses of :meth:`pairs` to the expected ones; see :func:`calibration_ratio`."""
        return calibration_ratio(*self.pairs(model, labels, items), task=self._task)

    def class_ratio(self, model: Any, labels: Mapping[int, Any], items: Sequence[int], class_name: Any) -> float:
        r"""Ratio of random labels of a class to the number that the model expects, shrunk towards 1.

        .. math:: (4 + \sum_i 1[y_i = c]) / (4 + \sum_i p_i)

        Args:
            model: The current model.
            labels: All labels by item, in the order learned.
            items: The items that were drawn at random.
            class_name: The class.
        """
        if items and isinstance(model, BayesianLogistic):
            place, classes = {item: k for k, item in enumerate(labels)}, model.classes_.tolist()
            logits, _ = guesses(model.state_, np.array([place[item] for item in items], dtype=np.intp))
            p = np.exp(log_probabilities(logits))
            expected = float(p[:, classes.index(class_name)].sum()) if class_name in classes else 0.0
            hits = sum(bool(labels[item] == class_name) for item in items)
        else:
            told = [item for item in self._losses if self._predicted[item].logs is not None]
            expected = sum(math.exp(self._predicted[item].logs.get(class_name, -math.inf)) for item in told)
            hits = sum(bool(labels[item] == class_name) for item in told)
        return (_PRIOR_ERRORS + hits) / (_PRIOR_ERRORS + expected)

    def estimate(
        self,
        model: Any,
        X_rest: Floats,
        labels: Mapping[int, Any],
        items: Sequence[int],
        tolerance: float | None = None,
    ) -> CalibratedError:
        """The calibrated error of a model on unlabelled items.

        Args:
            model: The current model.
            X_rest: Inputs of the unlabelled items, ``m x D``; the error is 0 if there is none.
            labels: All labels by item, in the order learned.
            items: The items that were drawn at random.
            tolerance: If given, the error of numbers is the share that is off by more than this: a loss is 1 if so,
                and the model expects it with the probability of :func:`share_beyond`.
        """
        if isinstance(model, BayesianLogistic) and len(X_rest):
            return _sharpened(model, X_rest, labels, items)
        rest = [each.expected for each in _predictions(model, X_rest, self._task)] if len(X_rest) else [0.0]
        losses, expected = self.pairs(model, labels, items)
        if tolerance is None:
            return calibrated_error(float(np.mean(rest)), losses, expected, task=self._task)
        beyond = (losses > tolerance**2).astype(np.float64)
        alone = float(np.mean(share_beyond(tolerance, rest)))
        return calibrated_error(alone, beyond, share_beyond(tolerance, expected), task="classification")
