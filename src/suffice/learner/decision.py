"""The answer to "have I labelled enough?": keep going, enough, or this model has reached its limit."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from suffice.criteria import Criterion, LabelWorth, Verdict
from suffice.forecast import Forecast
from suffice.learner.error_estimate import left_out_losses
from suffice.models.factory import make_model
from suffice.numerics.special_functions import Floats
from suffice.presentation.messages import STOPS, decision_words

Answer = Literal["too early", "keep going", "enough", "limit", "complete"]

# An error above this share of the error of the trivial prediction is hardly below it: of classes, and of numbers (root
# mean squared, so that the model explains less than 19 % of the variance).
_HARDLY_BELOW: Final = 0.9
# A model is compared with others from so many labels on, in so many parts.
_FEWEST_COMPARED: Final = 30
_FOLDS: Final = 5
_MOST_COMPARED: Final = 2000
# Another model is clearly better if it is so by this many standard errors, and its error is at most this share; it may
# be better from fewer standard errors on, which is a reason to go on, but not beyond this multiple of the labels.
_CLEARLY: Final = 2.5
_CLEARLY_BETTER: Final = 0.8
_POSSIBLY: Final = 1.0
_POSSIBLY_BETTER: Final = 0.9
_LONGEST_DOUBT: Final = 2.0
# An error above this share of that of the trivial prediction has to rest on enough random labels.
_NEAR: Final = 0.75
# Errors are stated for random labels if there are so many of them.
_FEWEST_RANDOM: Final = 20


class ErrorNow(NamedTuple):
    """The estimated error of the unlabelled items.

    Attributes:
        value: For classes the share of wrong predictions, for numbers the root of the mean squared error.
        low: Lower end of the 90 % interval.
        high: Upper end.
        random_labels: Number of random labels that calibrate it; 0 if the model alone estimates it.
    """

    value: float
    low: float
    high: float
    random_labels: int = 0


class Alternative(NamedTuple):
    """Another model that is better on the same labels.

    Attributes:
        name: Name of the model: one of :data:`suffice.models.factory.MODEL_FAMILIES`, or ``"forest"``.
        description: What to call it in a sentence.
        error: Its error on the compared labels, each predicted by a model that has not seen it.
        present: Error of the present model on the same labels.
        labels: Number of labels that the errors are stated for.
        clear: Whether the difference is larger than chance explains; if not, more labels will tell.
    """

    name: str
    description: str
    error: float
    present: float
    labels: int
    clear: bool = True


@dataclass(frozen=True)
class Decision:
    """Whether to go on labelling, with the numbers that the decision rests on.

    Attributes:
        answer: ``"too early"``, ``"keep going"``, ``"enough"``, ``"limit"`` (more labels are not worth their cost, but
            the error is not what the user asked for, or another model is clearly better), or ``"complete"`` (nothing
            is left to label).
        n_labelled: Number of labels that the decision is about.
        unlabelled: Number of items without a label.
        share: Whether errors are shares of wrong predictions (classes), or root mean squared errors (numbers).
        since: Number of labels at which the rule first said stop, if it still does.
        error: The estimated error of the unlabelled items, or None before the model has started.
        baseline: Error of the trivial prediction: always the most common class, or the mean of the labels; or None.
        common: The most common class, for the sentence; None for numbers.
        at_most: The error that the user asked for, or None.
        forecast: How many more labels it takes until the rule stops. It is extrapolated. None if it is not predictable.
        error_then: The error after so many more labels, extrapolated; None if it is not known.
        alternative: A model that is better on the same labels, or None. If the difference is not clear, the answer is
            ``"keep going"``, to find out, see :attr:`in_doubt`.
        rule: Name of the stopping rule.
        reason: What the rule compared, in a sentence.
    """

    answer: Answer
    n_labelled: int
    unlabelled: int
    share: bool
    since: int | None = None
    error: ErrorNow | None = None
    baseline: float | None = None
    common: str | None = None
    at_most: float | None = None
    forecast: Forecast | None = None
    error_then: float | None = None
    alternative: Alternative | None = None
    rule: str = ""
    reason: str = ""

    @property
    def stop(self) -> bool:
        """Whether more labels are not worth their cost, or nothing is left to label."""
        return self.answer in STOPS

    @property
    def hardly_better(self) -> bool:
        """Whether the error is hardly below that of the trivial prediction."""
        return self.error is not None and self.baseline is not None and self.error.value > _HARDLY_BELOW * self.baseline

    @property
    def in_doubt(self) -> bool:
        """Whether the rule says stop, but more labels are needed to know the error or to compare models.

        That is so if another model is possibly better, or if the error is not far below that of the trivial prediction
        and rests on fewer than 20 random labels. It ends at twice the labels at which the rule first said stop.
        """
        if self.since is None or self.n_labelled >= _LONGEST_DOUBT * self.since:
            return False
        possibly = self.alternative is not None and not self.alternative.clear
        return possibly or self.error_in_doubt

    @property
    def error_in_doubt(self) -> bool:
        """Whether the error is close to that of the trivial prediction, and rests on few random labels."""
        if self.error is None or self.baseline is None or self.error.random_labels >= _FEWEST_RANDOM:
            return False
        return self.error.value > _NEAR * self.baseline

    @property
    def above_target(self) -> bool:
        """Whether the error is above the one that the user asked for."""
        return self.error is not None and self.at_most is not None and self.error.value > self.at_most

    @property
    def wrong(self) -> int | None:
        """Estimated number of wrong predictions among the unlabelled items; None for numbers."""
        return None if self.error is None or not self.share else round(self.error.value * self.unlabelled)

    @property
    def corrected(self) -> int | None:
        """Estimated number of wrong predictions that the labels of the forecast would avoid; None if not known."""
        if self.error is None or self.error_then is None or not self.share:
            return None
        return max(0, round((self.error.value - self.error_then) * self.unlabelled))

    def as_dict(self) -> dict[str, Any]:
        """The decision as JSON values."""
        names = ("wrong", "corrected", "hardly_better", "above_target")
        return {**asdict(self), **{name: getattr(self, name) for name in names}} | {
            "error": None if self.error is None else self.error._asdict(),
            "alternative": None if self.alternative is None else self.alternative._asdict(),
        }

    def __str__(self) -> str:
        return " ".join(decision_words(self.as_dict()).sentences)


def decide(verdict: Verdict | None, about: Decision) -> Decision:
    """Return the decision that follows from what a rule says and from what is known of the error.

    Args:
        verdict: What the rule says; None before the model has started.
        about: The numbers; its ``answer``, ``rule`` and ``reason`` are ignored.
    """
    answer: Answer
    if about.n_labelled and not about.unlabelled:
        answer = "complete"
    elif verdict is None or not (verdict.ready or verdict.stop):
        answer = "too early"
    elif not verdict.stop:
        answer = "keep going"
    elif about.alternative is not None and about.alternative.clear:
        answer = "limit"
    elif about.in_doubt:
        answer = "keep going"
    else:
        answer = "limit" if about.above_target or about.hardly_better else "enough"
    said = {} if verdict is None else {"rule": verdict.rule, "reason": verdict.reason}
    goes_on = answer == "keep going"
    return Decision(
        **{
            **about.__dict__,
            "answer": answer,
            **said,
            "forecast": about.forecast if goes_on else None,
            "error_then": about.error_then if goes_on else None,
            "alternative": about.alternative if answer in ("limit", "keep going") else None,
        }
    )


def trivial_error(labels: Any, *, share: bool) -> tuple[float | None, str | None]:
    """Return the error of the trivial prediction, and the most common class.

    Args:
        labels: Labels that were drawn at random, as far as there are any.
        share: Whether they are classes.

    Returns:
        For classes the share of labels of other classes than the most common one; for numbers the standard deviation.
        None if there are fewer than two labels.

    Examples:
        >>> trivial_error(["a", "a", "a", "b"], share=True), trivial_error([1.0, 3.0], share=False)
        ((0.25, 'a'), (1.0, None))
    """
    values = np.asarray(labels)
    if len(values) < 2:
        return None, None
    if not share:
        return float(values.astype(np.float64).std()), None
    classes, counts = np.unique(values, return_counts=True)
    return float(1.0 - counts.max() / len(values)), str(classes[counts.argmax()])


def error_after(error: float, per_label: float, n_labelled: int, more: int) -> float:
    r"""Extrapolate an error to more labels, on a curve whose reducible part falls like 1/n.

    .. math:: e' = e - \Delta \, \frac{n k}{n + k}

    Args:
        error: ``e`` now.
        per_label: The fall of the error at the next label, the rule's :math:`\Delta`.
        n_labelled: ``n``.
        more: ``k``.

    Examples:
        >>> round(error_after(0.1, 0.0005, 100, 100), 4)
        0.075
    """
    return max(0.0, error - per_label * n_labelled * more / (n_labelled + more)) if more > 0 else error


def fall_per_label(rule: Criterion, verdict: Verdict, unlabelled: int) -> float | None:
    """Return by how much the next label lowers the error, as :class:`suffice.LabelWorth` estimates it.

    For classes it is the fall of the share of wrong predictions; for numbers that of the mean squared error relative to
    the variance of the labels. None for another rule, or if the rule counts errors above a tolerance.
    """
    if not isinstance(rule, LabelWorth) or rule.tolerance is not None or verdict.value is None or not unlabelled:
        return None
    if rule.error_cost is not None:
        return None
    return verdict.value / ((rule.mistake_cost or 1.0) * unlabelled)


def more_labels_error(error: ErrorNow, fall: float, n_labelled: int, more: int, scale: float | None) -> float | None:
    """Return the error after more labels, extrapolated.

    Args:
        error: The error now.
        fall: The result of :func:`fall_per_label`.
        n_labelled: Labels so far.
        more: How many more.
        scale: None for classes; the standard deviation of the labels for numbers.
    """
    if scale is None:
        return error_after(error.value, fall, n_labelled, more)
    return math.sqrt(error_after(error.value**2, fall * scale**2, n_labelled, more))


def better_model(model: Any, X: Floats, y: Any, random: Any, *, present: str = "") -> Alternative | None:
    r"""Compare a fitted model with others on the same labels.

    The present model predicts each label without having learned it; the others by cross validation in five parts. With
    :math:`d_i` the differences of the losses (0 or 1 for classes, squares for numbers) another model is clearly better
    if :math:`\bar d > 2.5\, s_d / \sqrt n`, its loss is at most 0.8 times that of the present model, and it is no worse
    on the random labels alone. It is possibly better with 1 in place of 2.5 and 0.9 in place of 0.8.

    Args:
        model: The present model, fitted; one that can leave labels out (:class:`suffice.models.BayesianLogistic`,
            :class:`suffice.models.GaussianProcess`, :class:`suffice.models.BayesianRidge`).
        X: Inputs of the labels, before any transformer of a pipeline, ``n x D``.
        y: The labels, in the order in which the model learned them.
        random: Which labels are of items that were drawn at random, ``n``.
        present: Name of the present model, which is not compared with itself.

    Returns:
        The best model that is clearly better, else one that is possibly better; None if there is none, if there are
        fewer than 30 labels, or if the present model cannot leave labels out.
    """
    labels, drawn = np.asarray(y), np.asarray(random, dtype=bool)
    current = left_out_losses(model)
    if current is None or len(labels) < _FEWEST_COMPARED or len(labels) > _MOST_COMPARED:
        return None
    share = hasattr(model, "classes_")
    if share and len(np.unique(labels)) < 2:
        return None
    found = []
    for name, description, estimator in _candidates(labels, share=share):
        if name == present:
            continue
        losses = _cross_validated(estimator, X, labels, share=share)
        difference = current - losses
        error = float(difference.std(ddof=1)) / math.sqrt(len(labels))
        possibly, clearly = (
            float(difference.mean()) > times * error and float(losses.mean()) <= share_of * float(current.mean())
            for times, share_of in ((_POSSIBLY, _POSSIBLY_BETTER), (_CLEARLY, _CLEARLY_BETTER))
        )
        not_worse = not drawn.any() or float(difference[drawn].mean()) >= 0.0
        if possibly and not_worse:
            rows = drawn if np.count_nonzero(drawn) >= _FEWEST_RANDOM else np.ones(len(labels), dtype=bool)
            errors = [float(each[rows].mean()) for each in (losses, current)]
            ours, theirs = errors if share else [math.sqrt(each) for each in errors]
            better = Alternative(name, description, ours, theirs, int(np.count_nonzero(rows)), clearly)
            found.append((not clearly, float(losses.mean()), better))
    return min(found, key=lambda each: each[:2])[2] if found else None


def _candidates(labels: Any, *, share: bool) -> list[tuple[str, str, Any]]:
    """Models to compare with: name, description, and an estimator to fit."""
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from suffice.models import KernelFeatures
    from suffice.models.factory import model_description

    if share:
        # The posterior mode of the model of that name, without its posterior: it fits many times faster.
        kernel = make_pipeline(KernelFeatures(min(100, len(labels))), LogisticRegression(C=1.0, max_iter=500))
        return [
            ("kernel", model_description("kernel"), kernel),
            ("forest", "a forest of randomised trees", ExtraTreesClassifier(100, random_state=0)),
        ]
    return [
        ("gp", model_description("gp"), make_model("gp")),
        ("ridge", model_description("ridge"), make_model("ridge")),
        ("forest", "a forest of randomised trees", ExtraTreesRegressor(100, min_samples_leaf=2, random_state=0)),
    ]


def _cross_validated(estimator: Any, X: Floats, labels: Any, *, share: bool) -> Floats:
    """Losses of the labels, each predicted by a model fitted to the other parts."""
    import warnings

    from sklearn.base import clone

    order = np.random.default_rng(0).permutation(len(labels))
    losses = np.zeros(len(labels))
    for k in range(_FOLDS):
        test, train = order[k::_FOLDS], np.concatenate([order[j::_FOLDS] for j in range(_FOLDS) if j != k])
        if share and len(np.unique(labels[train])) < 2:
            predicted = np.full(len(test), labels[train][0])
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                predicted = clone(estimator).fit(X[train], labels[train]).predict(X[test])
        losses[test] = predicted != labels[test] if share else (predicted - labels[test]) ** 2
    return losses
