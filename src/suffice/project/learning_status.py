"""The current results of a project's model as one value, read by page, terminal, report and scripts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.criteria import Verdict
from suffice.forecast import Forecast
from suffice.numerics import Floats
from suffice.session.decision import Decision, DecisionNumbers, decide


@dataclass(frozen=True)
class ErrorEstimate:
    """An estimate of the model's error, with a 90 % interval. It is not a guarantee.

    It is the error of the unlabelled items that the model expects, calibrated by how well the random labels are
    predicted without themselves; see :meth:`suffice.ActiveLearner.error_estimate`.

    Attributes:
        n_labelled: Number of labels at that time: those learned, and those of a complete check.
        value: For classes the share of wrong predictions, for numbers the root mean squared error.
        low: Lower end of the interval.
        high: Upper end of the interval.
        random_labels: Number of random labels for the calibration.
    """

    n_labelled: int
    value: float
    low: float
    high: float
    random_labels: int = 0


@dataclass(frozen=True)
class Point:
    """One step of the curve of a rule.

    Attributes:
        n_labelled: Labels at that step.
        value: The value that the rule compared; for the paper's rule the error ratio.
        threshold: The threshold of the comparison, or None.

    Examples:
        >>> Point(n_labelled=40, value=1.5, threshold=1.0)
        Point(n_labelled=40, value=1.5, threshold=1.0)
    """

    n_labelled: int
    value: float
    threshold: float | None


@dataclass(frozen=True)
class LearningStatus:
    """State of the learning.

    Attributes:
        n_answers: Labels and skips learned so far.
        n_checked: Labels and skips of a complete check that the model has not learned. The last one of ``errors`` and
            ``numbers`` count them.
        n_labelled: Labels learned so far.
        verdict: The verdict, from which the decision without a target follows; None before the model has started. See
            :attr:`suffice.session.session.Session.verdict`.
        curve: The values of the rule, one point per step.
        forecast: Number of labels until the rule stops, or None if it is unknown.
        errors: Estimates of the model's error, at some of the steps and now.
        queue: Items to ask for next, the most useful first.
        problem: A sentence why the model cannot learn or cannot choose items; empty if there is no problem.
        stopped_at: Number of labels at which the stop was stated, if it stands; or None.
        numbers: The numbers of the decision, or None before the model has started.
        warning: A sentence if the model may be getting worse; otherwise empty.
        finish_totals: For a goal about all final labels: number of labels at each plan, and the labels by people that
            it expected at the end.
    """

    n_answers: int = 0
    n_labelled: int = 0
    verdict: Verdict | None = None
    curve: tuple[Point, ...] = ()
    forecast: Forecast | None = None
    errors: tuple[ErrorEstimate, ...] = ()
    queue: tuple[int, ...] = field(default=(), repr=False)
    problem: str = ""
    stopped_at: int | None = None
    warning: str = ""
    numbers: DecisionNumbers | None = None
    n_checked: int = 0
    finish_totals: tuple[tuple[int, int], ...] = ()

    @property
    def decision(self) -> Decision | None:
        """The decision without the checks in the journal; None before the model has started."""
        return None if self.numbers is None else decide(self.verdict, self.numbers)


class Predictions(NamedTuple):
    """Predictions for some items.

    Attributes:
        labels: The predicted class or number of each item.
        uncertainty: For classes the probability of all other classes; for numbers the standard deviation of a label, in
            the units of the labels.
        probabilities: Probability of each class, in the order of the project's classes, ``n x K``; None for numbers.
        class_ratios: For each class, the ratio of random labels of the class to the number that the model expects of
            them; None if it is not known.
    """

    labels: NDArray[Any]
    uncertainty: Floats
    probabilities: Floats | None
    class_ratios: tuple[float, ...] | None = None

    @staticmethod
    def of_classes(classes: Sequence[str], probabilities: Floats) -> "Predictions":
        """Predictions from class probabilities, ``n x K``: the likeliest class of each item.

        Of classes with the same probability the first by name is predicted, as models of scikit-learn do. Trees often
        give two classes the same one.
        """
        names = np.asarray(classes)
        order = np.argsort(names)
        labels = names[order[probabilities[:, order].argmax(axis=1)]]
        return Predictions(labels, 1.0 - probabilities.max(axis=1), probabilities)

    @staticmethod
    def joined(parts: "Sequence[Predictions]") -> "Predictions":
        """The predictions of several groups of items, in order; at least one group."""
        labels, uncertainty, probabilities, ratios = zip(*parts, strict=True)
        joined = None if probabilities[0] is None else np.concatenate(probabilities)
        return Predictions(np.concatenate(labels), np.concatenate(uncertainty), joined, ratios[0])
