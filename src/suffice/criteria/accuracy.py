"""Rules that compare predictions with labels: the labels just bought, or those of a validation set."""

import dataclasses
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from suffice.arguments import real, whole
from suffice.criteria.base import Comparison, Criterion, tightened
from suffice.criteria.rule_info import CLASSES, ComparedRule, RuleInfo
from suffice.criteria.saved_state import require_state, within
from suffice.criteria.step import Step
from suffice.criteria.verdict import Verdict

__all__ = ["HeldOutPlateau", "SelectedAccuracy"]


@dataclass
class SelectedAccuracy(Criterion):
    r"""Stop when the accuracy on the labels just bought, before the model learned them, is at least a threshold.

    .. math:: \frac{\#\{i : \arg\max_k p_{ik} = y_i\}}{\#\{i\}} \ge \theta,

    over the examples of the latest steps: the fewest steps that have at least ``window`` labels together. Where two
    classes are equally likely, the first counts as predicted. A label of a class that is new to the model (-1) counts
    as wrong. A loop asks for the labels that are hardest to predict, so this accuracy is usually lower than that on the
    pool.

    Args:
        threshold: Above 0, at most 1; 0.9 as in the paper.
        window: Smallest number of labels for which the accuracy is computed; 10 by default. With fewer labels the rule
            is not ready.

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
    info: ClassVar[RuleInfo] = RuleInfo(
        family="accuracy",
        example=lambda: SelectedAccuracy(0.6, window=4),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                settings=(0.1, 0.3, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.94, 0.96, 0.98, 1.0),
                parameter="threshold",
                default=0.9,
                sense="at least",
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "above 0 and at most 1", lambda x: 0.0 < x <= 1.0)
        self.window = whole(self.window, "window", least=1)

    def tighten(self, factor: float) -> None:
        """Make the rule stricter: multiply the share of wrong predictions that it allows by ``factor``.

        Args:
            factor: Between 0 and 1.

        Raises:
            InvalidValueError: ``factor`` is not between 0 and 1.
        """
        self.threshold = tightened(self.threshold, factor, limit=1.0)

    def check_state(self) -> None:
        """Refuse numbers of right predictions that do not fit the numbers of labels."""
        require_state(self, "sizes", "counts of at least 1", holds=within(self.sizes, 1))
        require_state(self, "right", "as long as sizes", holds=len(self.right) == len(self.sizes))
        fits = all(right <= size for right, size in zip(self.right, self.sizes, strict=True))
        require_state(self, "right", "at most sizes, step by step", holds=fits)

    def judge(self, step: Step) -> Verdict:
        """Compute the accuracy over the latest steps and compare it with the threshold."""
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
        return self.comparison_verdict(step, comparison, sum(self.right) / total, self.threshold)


@dataclass
class HeldOutPlateau(Criterion):
    r"""Stop when the error on a labelled validation set has not improved for some rounds.

    With :math:`e_t` the error after round ``t``, stop when

    .. math:: \min_{s \le t - \text{rounds}} e_s - \min_{t - \text{rounds} < s \le t} e_s \le \text{tolerance}.

    By practice. It is expensive: the labels of the validation set are paid for too. The reason states their number,
    and a comparison of rules must count them.

    Args:
        tolerance: Largest improvement, in the units of the error, that is ignored; 0 or more.
        rounds: Number of rounds without a larger improvement after which to stop, at least 1.

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
    info: ClassVar[RuleInfo] = RuleInfo(
        family="accuracy",
        example=lambda: HeldOutPlateau(0.05, 2),
        origin="practice",
        compared=(
            ComparedRule(
                make=lambda rounds: HeldOutPlateau(rounds=rounds),
                settings=(1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200),
                parameter="rounds",
                default=5,
                charged="validation_labels",
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.tolerance = real(self.tolerance, "tolerance", "of at least 0", lambda x: x >= 0.0)
        self.rounds = whole(self.rounds, "rounds", least=1)

    def check_state(self) -> None:
        """Refuse more recent errors than rounds, and an earlier error before there are that many."""
        full = len(self.recent) == self.rounds
        require_state(self, "recent", f"a list of at most {self.rounds} numbers", holds=len(self.recent) <= self.rounds)
        early = f"None before {self.rounds} errors are in recent"
        require_state(self, "before", early, holds=self.before is None or full)

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
            seen = f"{len(self.recent)} round{'s are' if len(self.recent) > 1 else ' is'} done"
            reason = f"the rule compares more than {self.rounds} rounds, and {seen}; {paid}"
            return self.verdict(step, stop=False, ready=False, threshold=self.tolerance, reason=reason)
        latest = "round" if self.rounds == 1 else f"{self.rounds} rounds"
        comparison = Comparison(f"improvement of the best validation error in the last {latest}", "<=", "tolerance")
        verdict = self.comparison_verdict(step, comparison, self.before - min(self.recent), self.tolerance)
        return dataclasses.replace(verdict, reason=f"{verdict.reason}; {paid}")


def _labels(number: int, kind: str) -> str:
    return f"{number} {kind}label{'' if number == 1 else 's'}"
