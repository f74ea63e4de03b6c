"""Rules that compare predictions with labels: those just bought, or those of a validation set."""

import dataclasses
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from suffice.arguments import real, whole
from suffice.criteria.base import Criterion
from suffice.criteria.comparing import Comparison
from suffice.criteria.stability import tightened
from suffice.criteria.step import Step
from suffice.criteria.verdict import Verdict


@dataclass
class SelectedAccuracy(Criterion):
    r"""Stop when the model was right about the labels that it was just given, before it learned them, often enough.

    .. math:: \frac{\#\{i : \arg\max_k p_{ik} = y_i\}}{\#\{i\}} \ge \theta,

    over the examples of the latest steps: of as few as hold at least ``window`` labels together. Where two classes are
    equally likely, the first counts as predicted. A label of a class that the model had not met (-1) counts as wrong.
    A loop asks for the labels that are hardest to tell, so this accuracy is as a rule lower than that on the pool.

    Args:
        threshold: Above 0, at most 1; 0.9 as in the paper.
        window: Least number of labels to compute an accuracy of; 10 by default. Until there are as many, the rule is
            not ready.

    Raises:
        InvalidValueError: ``threshold`` is not a number above 0 and at most 1, or ``window`` not a whole number of at
            least 1.

    Reference: [ZhuHovy2007], where it is called min-error; [ZhuWangHovyMa2010] selected accuracy.

    Examples:
        >>> rule = SelectedAccuracy(threshold=0.75, window=4)
        >>> p = [[0.9, 0.1], [0.2, 0.8]]
        >>> rule.observe(Step(n_labelled=12, selected_probabilities=p, selected_labels=[0, 0])).ready
        False
        >>> print(rule.observe(Step(n_labelled=14, selected_probabilities=p, selected_labels=[0, 1])))
        Stop at 14 labels: the accuracy on the last 4 labels, before they were learned, 0.75, is at least the threshold
        0.75.
    """

    threshold: float = 0.9
    window: int = 10
    right: list[int] = field(default_factory=list, init=False, repr=False)
    sizes: list[int] = field(default_factory=list, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"selected_probabilities", "selected_labels"})

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "above 0 and at most 1", lambda x: 0.0 < x <= 1.0)
        self.window = whole(self.window, "window", least=1)

    def tighten(self, factor: float) -> None:
        """Make the rule stricter: multiply by ``factor`` the share of wrong predictions that it allows.

        Args:
            factor: Between 0 and 1.

        Raises:
            InvalidValueError: ``factor`` is not between 0 and 1.
        """
        self.threshold = tightened(self.threshold, factor, limit=1.0)

    def judge(self, step: Step) -> Verdict:
        """Count the right predictions over the latest steps and compare."""
        probabilities, labels = step.selected_probabilities, step.selected_labels
        assert probabilities is not None  # both are required, so observe has checked
        assert labels is not None
        if len(labels):
            self.right.append(int(np.count_nonzero(probabilities.argmax(axis=1) == labels)))
            self.sizes.append(len(labels))
        while self.sizes and sum(self.sizes) - self.sizes[0] >= self.window:
            del self.right[0], self.sizes[0]
        total = sum(self.sizes)
        if total < self.window:
            reason = f"the accuracy is computed on at least {self.window} labels, and there are {total} so far"
            return self.verdict(step, stop=False, ready=False, threshold=self.threshold, reason=reason)
        those = "label, before it was" if total == 1 else f"{total} labels, before they were"
        comparison = Comparison(f"accuracy on the last {those} learned", ">=")
        return comparison.verdict(self, step, sum(self.right) / total, self.threshold)


@dataclass
class HeldOutPlateau(Criterion):
    r"""Stop when the error on a labelled validation set has not improved for some rounds.

    With :math:`e_t` the error after round ``t``, stop when

    .. math:: \min_{s \le t - \text{rounds}} e_s - \min_{t - \text{rounds} < s \le t} e_s \le \text{tolerance}.

    By practice, and dear: the labels of the validation set were paid for too. The reason names their number, and a
    comparison of rules has to count them.

    Args:
        tolerance: Improvement, in the units of the error, that does not count as one; 0 or more.
        rounds: How many rounds without a larger improvement to wait for, at least 1: the patience of the rule.

    Raises:
        InvalidValueError: ``tolerance`` is not a number of at least 0, or ``rounds`` not a whole number of at least 1.

    Examples:
        >>> rule = HeldOutPlateau(tolerance=0.01, rounds=2)
        >>> for n, error in enumerate([0.5, 0.25, 0.26, 0.245], start=11):
        ...     verdict = rule.observe(Step(n_labelled=n, validation_error=error, validation_labels=100))
        >>> print(verdict)
        Stop at 14 labels: the improvement of the best validation error in the last 2 rounds, 0.005, is at most the
        tolerance 0.01; 14 labels and 100 validation labels are paid for.
    """

    tolerance: float = 0.001
    rounds: int = 5
    before: float | None = field(default=None, init=False, repr=False)
    recent: list[float] = field(default_factory=list, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"validation_error", "validation_labels"})

    def __post_init__(self) -> None:
        self.tolerance = real(self.tolerance, "tolerance", "of at least 0", lambda x: x >= 0.0)
        self.rounds = whole(self.rounds, "rounds", least=1)

    def judge(self, step: Step) -> Verdict:
        """Compare the best error of the latest rounds with the best before them."""
        assert step.validation_error is not None  # both are required, so observe has checked
        assert step.validation_labels is not None
        self.recent.append(step.validation_error)
        if len(self.recent) > self.rounds:
            oldest = self.recent.pop(0)
            self.before = oldest if self.before is None else min(self.before, oldest)
        paid = f"{_labels(step.n_labelled, '')} and {_labels(step.validation_labels, 'validation ')} are paid for"
        if self.before is None:
            seen = f"{len(self.recent)} round{'s are' if len(self.recent) > 1 else ' is'} seen"
            reason = f"the rule looks back over more than {self.rounds} rounds, and {seen}; {paid}"
            return self.verdict(step, stop=False, ready=False, threshold=self.tolerance, reason=reason)
        latest = "round" if self.rounds == 1 else f"{self.rounds} rounds"
        comparison = Comparison(f"improvement of the best validation error in the last {latest}", "<=", "tolerance")
        verdict = comparison.verdict(self, step, self.before - min(self.recent), self.tolerance)
        return dataclasses.replace(verdict, reason=f"{verdict.reason}; {paid}")


def _labels(number: int, kind: str) -> str:
    return f"{number} {kind}label{'' if number == 1 else 's'}"
