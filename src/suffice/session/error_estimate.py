"""The error of the unlabelled items, estimated by the model and calibrated by labels that were drawn at random."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.special import erfc, log_softmax
from scipy.stats import gamma

from suffice.acquisition import Indices
from suffice.arguments import real
from suffice.checks import GuaranteePlan, plan_total
from suffice.errors import InvalidValueError
from suffice.models.logistic import BayesianLogistic
from suffice.models.predictive import FACTORS, Guesses, guessed_places, guesses, log_probabilities, sharpness
from suffice.models.regression import GaussianRegressor
from suffice.numerics import Floats
from suffice.saved_state import decoded_array, encoded_array
from suffice.session.decision import ErrorNow, Worsening
from suffice.session.model_view import ModelView

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
    skipped: float = 0.0,
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
        skipped: Share of the unlabelled items that were skipped. They can be drawn, and count as wrong.
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
        min(1.0, error * (1.0 - skipped) + skipped),
        reducible=removable * (1.0 - skipped),
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


@dataclass(frozen=True, eq=False)
class StoredLeftOut:
    """Predictions for some labels of a model, each left out of it, in place of the model itself.

    Attributes:
        places: Positions of the labels in the order in which the model has learned them, rising.
        guessed: Those of the positions that correct the confidence of a classifier.
        codes: For classes, the column of each label in ``logs``.
        logs: For classes, log probabilities without the label, ``n x K``.
        classes: The class of each column.
        squares: For numbers, the squared residual of each label.
        variances: For numbers, the variance that the model expects of each label.
    """

    places: Any
    guessed: Any
    codes: Any = None
    logs: Any = None
    classes: tuple[Any, ...] = ()
    squares: Any = None
    variances: Any = None

    @staticmethod
    def of_model(model: Any, places: Any) -> "StoredLeftOut | None":
        """The predictions of a model for these labels and those that it needs itself; None if it leaves none out."""
        if isinstance(model, GaussianRegressor):
            losses = _left_out(model, places)
            assert losses is not None
            return StoredLeftOut(places, places[:0], squares=losses.losses, variances=losses.expected)
        if isinstance(model, BayesianLogistic):
            guessed = guessed_places(model.state_)
            stored = np.union1d(guessed, places).astype(np.intp)
            logits, codes = guesses(model.state_, stored)
            logs, classes = log_probabilities(logits), tuple(model.classes_.tolist())
            return StoredLeftOut(stored, guessed, codes, logs, classes)
        return None

    def state_dict(self) -> dict[str, Any]:
        """The predictions as JSON values."""
        return {spec.name: encoded_array(getattr(self, spec.name)) for spec in fields(self)} | {
            "classes": list(self.classes)
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "StoredLeftOut":
        """Restore :meth:`state_dict`."""
        values = {name: decoded_array(value) for name, value in state.items()}
        return cls(**{**values, "classes": tuple(state["classes"])})


def leaves_out(model: Any) -> bool:
    """Whether labels can be left out of a model in closed form."""
    return isinstance(model, GaussianRegressor | BayesianLogistic | StoredLeftOut)


def has_learned(model: Any, X: Floats, y: Any) -> bool:
    """Whether a model that leaves labels out has learned exactly these labels, in this order.

    Args:
        model: A fitted Gaussian process, ridge or logistic regression of suffice.
        X: Inputs, ``n x D``.
        y: Labels.
    """
    if isinstance(model, GaussianRegressor):
        same = model.X_.shape == X.shape and np.allclose(model.X_, X)
        return bool(same and np.allclose(model.y_, np.asarray(y, dtype=np.float64)))
    rows, codes = model.state_.labelled()
    features = model.features(X)
    same = rows.shape == features.shape and np.allclose(rows, features)
    return bool(same and np.array_equal(np.asarray(model.classes_)[codes], np.asarray(y)))


def _left_out_logs(model: Any, places: Any) -> tuple[Floats, Any]:
    """Log probabilities of some labels of a classifier, each left out of it, and their columns."""
    if isinstance(model, StoredLeftOut):
        rows = np.searchsorted(model.places, places)
        return model.logs[rows], model.codes[rows]
    logits, codes = guesses(model.state_, places)
    return log_probabilities(logits), codes


def _left_out(model: Any, places: Any) -> _LeftOut | None:
    """Losses of the labels at some positions, each left out of a model; None if the model cannot leave labels out."""
    if not leaves_out(model):
        return None
    if isinstance(model, StoredLeftOut) and model.logs is None:
        rows = np.searchsorted(model.places, places)
        return _LeftOut(model.squares[rows], model.variances[rows], model.squares[rows])
    if isinstance(model, GaussianRegressor):
        mean, variance = model.prior_.left_out(model.features(model.X_), model.y_)
        squares = (model.y_ - mean)[places] ** 2
        return _LeftOut(squares, variance[places], squares)
    logs, codes = _left_out_logs(model, places)
    p = np.exp(logs)
    wrong = (p.argmax(axis=1) != codes).astype(np.float64)
    return _LeftOut(wrong, 1.0 - p.max(axis=1), np.asarray(-logs[np.arange(len(codes)), codes]))


def left_out_losses(model: Any) -> Floats | None:
    """Losses of all labels of a fitted model, each left out of it: 0 or 1 for classes, squared residuals for numbers.

    Returns:
        The losses in the order in which the labels were learned; None for a model that cannot leave labels out.
    """
    if not isinstance(model, GaussianRegressor | BayesianLogistic):
        return None
    left_out = _left_out(model, np.arange(model.n_labels_))
    return None if left_out is None else left_out.losses


def _sharpened(model: Any, rest: Floats, labels: Mapping[int, Any], items: Sequence[int]) -> CalibratedError:
    """The estimate of :func:`sharpened_error`, from all random labels and a limited number of other labels.

    Args:
        model: A classifier that leaves labels out.
        rest: Class probabilities of unlabelled items, ``m x K``.
        labels: All labels by item, in the order learned.
        items: The items that were drawn at random.
    """
    place = {item: k for k, item in enumerate(labels)}
    drawn = np.array([place[item] for item in items], dtype=np.intp)
    guessed = model.guessed if isinstance(model, StoredLeftOut) else guessed_places(model.state_)
    places = np.union1d(guessed, drawn).astype(np.intp)
    logs, codes = _left_out_logs(model, places)
    rest_logs = np.log(np.maximum(rest, np.finfo(np.float64).tiny))
    return sharpened_error(rest_logs, logs, codes, np.isin(places, drawn))


def _is_classifier(model: Any) -> bool:
    """Whether a model leaves labels out and predicts classes."""
    return isinstance(model, BayesianLogistic) or (isinstance(model, StoredLeftOut) and model.logs is not None)


class EarlierPrediction(NamedTuple):
    """Prediction for an item before its label was learned.

    Attributes:
        label: The class or the number.
        expected: The loss that the model expected: the probability of all other classes, the variance of the label.
        logs: Log probability of each class; None for numbers.
    """

    label: Any
    expected: float
    logs: Mapping[Any, float] | None = None


def class_predictions(p: Floats, classes: Sequence[Any]) -> list[EarlierPrediction]:
    """Predictions from class probabilities, ``n x K``, with the class of each column."""
    logs = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    return [
        EarlierPrediction(classes[int(row.argmax())], float(1.0 - row.max()), dict(zip(classes, log, strict=True)))
        for row, log in zip(p, logs.tolist(), strict=True)
    ]


def number_predictions(mean: Floats, variance: Floats) -> list[EarlierPrediction]:
    """Predictions from means and variances of labels, ``n`` each."""
    return [EarlierPrediction(m, v) for m, v in zip(mean.tolist(), variance.tolist(), strict=True)]


def predictions_of(model: Any, X: Any, task: str) -> list[EarlierPrediction]:
    """Predictions of a fitted model with ``predict_proba`` or ``predict(X, return_std=True)``."""
    if task == "classification":
        return class_predictions(model.predict_proba(X), model.classes_.tolist())
    mean, deviation = model.predict(X, return_std=True)
    return number_predictions(np.asarray(mean, dtype=np.float64), np.asarray(deviation, dtype=np.float64) ** 2)


class RandomLabelLosses:
    """Losses of the labels that were drawn at random, each under a model without it.

    Gaussian processes, ridge and logistic regression leave labels out in closed form, so the current model predicts
    each random label, including initial labels. Other models predict each random label before they learn it.

    Args:
        task: ``"regression"`` or ``"classification"``.
    """

    def __init__(self, task: str) -> None:
        self._task = task
        self._predicted: dict[int, EarlierPrediction] = {}
        self._losses: dict[int, float] = {}

    def count(self, model: Any, items: Sequence[int]) -> int:
        """Number of random labels that calibrate the estimate of a model."""
        return len(items) if leaves_out(model) else len(self._losses)

    def predict(self, model: Any, X: Floats, items: Indices) -> None:
        """Store the model's predictions for random items before it learns their labels.

        Args:
            model: The current model.
            X: Inputs of the items, ``n x D``.
            items: The items.
        """
        if len(items):
            self.record(dict(zip(np.asarray(items).tolist(), predictions_of(model, X, self._task), strict=True)))

    def record(self, predictions: Mapping[int, EarlierPrediction]) -> None:
        """Store predictions for random items that were made before their labels were learned."""
        self._predicted.update(predictions)

    def has(self, item: int) -> bool:
        """Whether a prediction for the item is stored."""
        return item in self._predicted

    def only(self, items: Collection[int]) -> "RandomLabelLosses":
        """A copy with the predictions and losses of some items only."""
        copied = RandomLabelLosses(self._task)
        copied._predicted = {item: value for item, value in self._predicted.items() if item in items}
        copied._losses = {item: value for item, value in self._losses.items() if item in items}
        return copied

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
        """Whether the current model predicts the newer random labels worse than earlier models did.

        Args:
            model: The current model.
            labels: All labels by item, in the order learned.

        Returns:
            The comparison if it is worse; None otherwise, and for a model that cannot leave labels out.
        """
        place = {item: k for k, item in enumerate(labels)}
        items = [item for item in self._losses if self._earlier_loss(item, labels[item]) is not None]
        if len(items) < 2 * _FEWEST_COMPARED:
            return None
        now = _left_out(model, np.array([place[item] for item in items]))
        return (
            None
            if now is None
            else worsening([self._earlier_loss(item, labels[item]) for item in items], now.comparable)
        )

    def _earlier_loss(self, item: int, label: Any) -> float | None:
        """The loss of a label when it was learned; None for a class that was new then."""
        predicted = self._predicted[item]
        if self._task == "regression":
            return self._losses[item]
        log_probability = None if predicted.logs is None else predicted.logs.get(label)
        return None if log_probability is None else -float(log_probability)

    def state_dict(self) -> list[list[Any]]:
        """The predictions and losses as JSON values: item, label, expected loss, log probabilities, and loss."""
        return [
            [item, label, expected, None if logs is None else list(map(list, logs.items())), self._losses.get(item)]
            for item, (label, expected, logs) in self._predicted.items()
        ]

    @classmethod
    def from_state(cls, task: str, state: Sequence[Sequence[Any]]) -> "RandomLabelLosses":
        """Restore :meth:`state_dict`; or what an earlier version saved: item, expected loss, and loss."""
        restored = cls(task)
        for item, *values in state:
            label, expected, logs, loss = values if len(values) > 2 else (None, values[0], None, values[1])
            log_probabilities = None if logs is None else dict(map(tuple, logs))
            restored._predicted[item] = EarlierPrediction(label, expected, log_probabilities)
            if loss is not None:
                restored._losses[item] = loss
        return restored

    def pairs(self, model: Any, labels: Mapping[int, Any], items: Sequence[int]) -> tuple[Floats, Floats]:
        """Losses of random labels, and the losses that the model expects of them.

        Args:
            model: The current model.
            labels: All labels by item, in the order learned.
            items: The items that were drawn at random.
        """
        if items and leaves_out(model):
            place = {item: k for k, item in enumerate(labels)}
            left_out = _left_out(model, np.array([place[item] for item in items], dtype=np.intp))
            assert left_out is not None
            return left_out.losses, left_out.expected
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
        if items and _is_classifier(model):
            place = {item: k for k, item in enumerate(labels)}
            classes = list(model.classes) if isinstance(model, StoredLeftOut) else model.classes_.tolist()
            p = np.exp(_left_out_logs(model, np.array([place[item] for item in items], dtype=np.intp))[0])
            expected = float(p[:, classes.index(class_name)].sum()) if class_name in classes else 0.0
            hits = sum(bool(labels[item] == class_name) for item in items)
        else:
            logs = {item: self._predicted[item].logs or {} for item in self._losses}
            expected = sum(math.exp(by_class.get(class_name, -math.inf)) for by_class in logs.values())
            hits = sum(bool(labels[item] == class_name) for item, by_class in logs.items() if by_class)
        return (_PRIOR_ERRORS + hits) / (_PRIOR_ERRORS + expected)

    def estimate(
        self,
        view: ModelView,
        rest: Indices,
        labels: Mapping[int, Any],
        items: Sequence[int],
        tolerance: float | None = None,
    ) -> CalibratedError:
        """The calibrated error of a model on unlabelled items.

        Args:
            view: The current model.
            rest: Unlabelled items; the error is 0 if there is none.
            labels: All labels by item, in the order in which the model has learned them.
            items: The items that were drawn at random.
            tolerance: If given, the error of numbers is the share that is off by more than this: a loss is 1 if so,
                and the model expects it with the probability of :func:`share_beyond`.
        """
        model = view.judged_model()
        if _is_classifier(model) and len(rest):
            return _sharpened(model, view.class_probabilities(rest)[1], labels, items)
        expected_rest = view.expected_losses(rest) if len(rest) else np.zeros(1)
        losses, expected = self.pairs(model, labels, items)
        if tolerance is None:
            return calibrated_error(float(np.mean(expected_rest)), losses, expected, task=self._task)
        beyond = (losses > tolerance**2).astype(np.float64)
        alone = float(np.mean(share_beyond(tolerance, expected_rest)))
        return calibrated_error(alone, beyond, share_beyond(tolerance, expected), task="classification")
