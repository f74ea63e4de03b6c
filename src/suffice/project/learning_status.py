"""The current results of a project's model as one value, read by page, terminal, report and scripts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.criteria import Verdict
from suffice.decision import Decision
from suffice.forecast import Forecast
from suffice.numerics import Floats

#: Items on which the error of classes, and of numbers, is estimated.
ITEMS: Final = {"classification": 500, "regression": 200}


@dataclass(frozen=True)
class ErrorEstimate:
    """An estimate of the model's error, with a 90 % interval. It is not a guarantee.

    Without random labels it is the error that the model expects of itself on items drawn at random. With them it is the
    error of unlabelled items, calibrated by how well the random labels were predicted before they were learned.

    Attributes:
        n_labelled: Labels learned then.
        value: For classes the share of items that it gets wrong, for numbers the root of the mean squared error.
        low: Lower end of the interval.
        high: Upper end of the interval.
        random_labels: Number of random labels that calibrate it; 0 where it is the model's own account alone.
    """

    n_labelled: int
    value: float
    low: float
    high: float
    random_labels: int = 0


@dataclass(frozen=True)
class Point:
    """One step of the curve that the rule watches.

    Attributes:
        n_labelled: Labels at that step.
        value: What the rule compared; for the paper's rule the error ratio.
        threshold: What it compared it with, or None.
    """

    n_labelled: int
    value: float
    threshold: float | None


@dataclass(frozen=True)
class LearningStatus:
    """State of the learning.

    Attributes:
        n_answers: Labels and skips learned so far.
        n_labelled: Labels learned so far.
        verdict: What the rule says, or None before the model has begun. It stops where it first says stop, and that
            stands unless labels before it are changed, or hyper-parameters are learned again and it no longer says so.
        curve: What the rule watched, one point a step.
        forecast: Number of labels until it stops, or None if it is unknown.
        errors: Estimates of the model's error, at some of the steps and now.
        queue: Items to ask for next, the most useful first.
        problem: Why the model cannot learn, or cannot choose items, in a sentence; empty where it can.
        stopped_at: Labels at which the rule first said stop, or None where it did not.
        decision: What follows from all of this, or None before the model has begun.
        warning: That the model may be getting worse, in a sentence; empty where it is not known to.
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
    decision: Decision | None = None


class Predictions(NamedTuple):
    """Predictions for some items.

    Attributes:
        labels: The class, or the number, of each.
        uncertainty: For classes the probability that it is another one; for numbers the standard deviation of a label,
            in the units of the labels.
        probabilities: Probability of each class, in the order of the project's classes, ``n x K``; None for numbers.
    """

    labels: NDArray[Any]
    uncertainty: Floats
    probabilities: Floats | None

    @staticmethod
    def of_classes(classes: Sequence[str], probabilities: Floats) -> "Predictions":
        """The predictions of class probabilities, ``n x K``: the likeliest class of each item."""
        labels = np.asarray(classes)[probabilities.argmax(axis=1)]
        return Predictions(labels, 1.0 - probabilities.max(axis=1), probabilities)

    @staticmethod
    def joined(parts: "Sequence[Predictions]") -> "Predictions":
        """The predictions of several groups of items, in order; at least one group."""
        labels, uncertainty, probabilities = zip(*parts, strict=True)
        joined = None if probabilities[0] is None else np.concatenate(probabilities)
        return Predictions(np.concatenate(labels), np.concatenate(uncertainty), joined)
