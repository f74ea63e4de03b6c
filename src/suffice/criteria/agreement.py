"""Rules that use the agreement of predictions: those of successive models, or those of a committee of models.

A committee may be draws from a posterior, passes of a network with dropout, or a bagging of any classifier. Its
agreement is a number from 0 to 1, see :func:`suffice.criteria.committee_agreement`.
"""

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import ClassVar, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import real, whole
from suffice.criteria.base import (
    AVERAGE_ROUNDING,
    CLASSES,
    ComparedRule,
    Comparison,
    Criterion,
    RuleInfo,
    geometric_grid,
    grid_towards_one,
    require_rule,
    require_state,
    snapped,
    tightened,
    within,
)
from suffice.criteria.confidence_and_accuracy import RISK_GRID, MinExpectedError
from suffice.criteria.prediction_statistics import cohen_kappa, f_change
from suffice.criteria.step_and_verdict import Certificate, Step, Verdict
from suffice.errors import InvalidTypeError, InvalidValueError

__all__ = [
    "ClassificationChange",
    "IntrinsicStopping",
    "KappaCertificate",
    "PredictedFChange",
    "SelectionAgreement",
    "StabilizingPredictions",
    "ThresholdUpdate",
    "ValidationSetAgreement",
]

_F_CHANGE: Final = Comparison("predicted change of F on the stop set", "<")
_KAPPA_GRID: Final = grid_towards_one(0.9, 1e-4, 15, 0.99)
_F_CHANGE_GRID: Final = geometric_grid(0.5, 1e-4, 15, 0.05)


@dataclass
class ClassificationChange(Criterion):
    """Stop when no predicted class on the pool changed since the previous step.

    Items that were labelled in this step have left the pool and do not count (``pool_changes`` of a :class:`Step`).
    If a step was computed over a random sample of the pool (``pool_sample``), as a :class:`suffice.StopMonitor` does
    for more than 100,000 items, the rule stops when no item of the sample changed: with 2000 items and a confidence of
    95 %, less than 0.15 % of the pool changed.

    Reference: [ZhuWangHovy2008b], the classification change.

    Examples:
        >>> rule = ClassificationChange()
        >>> print(rule.observe(Step(n_labelled=30, pool_changes=2)))
        Go on at 30 labels: 2 items of the pool changed their predicted class.
        >>> print(rule.observe(Step(n_labelled=31, pool_changes=0)))
        Stop at 31 labels: no item of the pool changed its predicted class.
    """

    requires: ClassVar[frozenset[str]] = frozenset({"pool_changes"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="stability of predictions",
        tasks=CLASSES,
        compared=(ComparedRule(kind="plain"),),
    )

    def judge(self, step: Step) -> Verdict:
        """Stop if nothing changed."""
        changes = _changes(step)
        return self.verdict(step, stop=changes == 0, value=float(changes), threshold=0.0, reason=_what_changed(changes))


class _Tightening(Protocol):
    """The method that the base rule of :class:`ThresholdUpdate` must have."""

    def tighten(self, factor: float) -> None:
        """Make the threshold stricter."""


@dataclass
class ThresholdUpdate(Criterion):
    """Stop when a base rule says stop and no predicted class on the pool changed; if one did, tighten the base rule.

    The user need not choose the threshold of a confidence rule exactly: if it is too loose, labels still change
    predictions, and the rule tightens it. There is at most one tightening per step. The base rule keeps its state.

    Args:
        base: A rule with a method ``tighten(factor)``; it is copied.
        factor: Factor for the distance of the threshold from its strictest value, inside (0, 1). The paper does not
            specify it; 0.5 is ours.

    Raises:
        InvalidTypeError: ``base`` is not a stopping rule, or cannot be tightened.
        InvalidValueError: ``factor`` is not inside (0, 1).

    Reference: [ZhuWangHovy2008b] and [ZhuWangHovyMa2010], the threshold update.

    Examples:
        >>> from suffice.criteria.bayesian import InformationGain
        >>> rule = ThresholdUpdate(InformationGain(0.1))
        >>> print(rule.observe(Step(n_labelled=30, pool_gain=0.08, pool_changes=1)).reason)
        the largest information gain over the pool, 0.08, is at most the threshold 0.1, but 1 item of the pool changed
        its predicted class: the threshold is tightened
        >>> rule.base
        InformationGain(threshold=0.05)
        >>> rule.observe(Step(n_labelled=31, pool_gain=0.03, pool_changes=0)).stop
        True
    """

    base: Criterion
    factor: float = 0.5
    # The base rule before its first tightening, for `reset`.
    original: Criterion | None = field(default=None, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"pool_changes"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="stability of predictions",
        example=lambda: ThresholdUpdate(MinExpectedError(0.4), factor=0.9),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                name="ThresholdUpdate of MinExpectedError",
                make=lambda threshold: ThresholdUpdate(MinExpectedError(threshold)),
                settings=RISK_GRID,
                parameter="threshold",
                default=0.01,
                after="MinExpectedError",
            ),
        ),
    )

    def __post_init__(self) -> None:
        require_rule(self.base, "base")
        if not callable(getattr(self.base, "tighten", None)):
            raise InvalidTypeError(
                f"base must be a rule whose threshold can be tightened, but {type(self.base).__name__} has no method "
                "tighten(factor); give a rule with one threshold, such as MinExpectedError"
            )
        self.factor = real(self.factor, "factor", "between 0 and 1", lambda x: 0.0 < x < 1.0)
        self.base = self.base.copy()

    def judge(self, step: Step) -> Verdict:
        """Judge with the base rule; if it says stop, check whether predictions still change."""
        part, changes = self.base.observe(step), _changes(step)
        reason = part.reason
        if part.stop:
            reason += f", and {_what_changed(changes)}" if changes == 0 else f", but {_what_changed(changes)}"
        if part.stop and changes > 0:
            reason += ": the threshold is tightened"
            self._tighten()
        passed = {name: getattr(part, name) for name in ("value", "threshold", "ready", "certificate")}
        return self.verdict(step, stop=part.stop and changes == 0, reason=reason, parts=(part,), **passed)

    def check_state(self) -> None:
        """Refuse an original rule that is not of the class of the base rule."""
        same = self.original is None or type(self.original) is type(self.base)
        require_state(self, "original", f"None or a {type(self.base).__name__}", holds=same)

    def reset(self) -> None:
        """Forget every step and every tightening."""
        if self.original is not None:
            self.base = self.original
        super().reset()

    def _tighten(self) -> None:
        if self.original is None:
            self.original = self.base.copy()
            self.original.reset()
        cast(_Tightening, self.base).tighten(self.factor)


class _Successive:
    """A rule that compares the predictions on the stop set with those of the previous step."""

    previous: list[int] | None
    # The list `previous` with its array. Converting the list at every step would take most of the time.
    _kept: tuple[list[int], NDArray[np.intp]] | None = None

    def _successive(self, step: Step) -> tuple[NDArray[np.intp] | None, NDArray[np.intp]]:
        """Return the predictions at the previous step, if there was one, and at this step."""
        assert step.stop_probabilities is not None  # it is required, so observe has checked
        codes, before = np.asarray(step.stop_probabilities.argmax(axis=1)), self.previous
        if not len(codes):
            raise InvalidValueError("stop_probabilities has no rows: the stop set must hold at least one item")
        if before is not None and len(before) != len(codes):
            raise InvalidValueError(
                f"stop_probabilities has {len(codes)} rows, and had {len(before)} at the previous step; draw the stop "
                "set once, before labelling starts, and give the same items in the same order in every Step"
            )
        kept, self.previous = self._kept, codes.tolist()
        self._kept = (self.previous, codes)
        if before is None:
            return None, codes
        # After a reset or a restore from JSON, the stored array does not belong to the list.
        if kept is not None and kept[0] is before:
            return kept[1], codes
        return np.array(before, dtype=np.intp), codes


@dataclass
class StabilizingPredictions(_Successive, Criterion):
    r"""Stop when successive models agree on the stop set: the mean of the last kappas is at least a threshold.

    .. math:: \frac{1}{w} \sum_{s = t - w + 1}^{t} \kappa(\hat y_{s-1}, \hat y_s) \ge T

    Each kappa (:func:`cohen_kappa`) compares the predictions at one step with those at the previous step, on the same
    items. A model that predicts one class everywhere agrees with itself: with very few labels and a rare class, delay
    the rule with ``.after(n)``.

    Args:
        threshold: ``T``, from 0 to 1.
        window: ``w``, the number of kappas in the mean; at least 1.

    Raises:
        InvalidValueError: An argument is out of range; or, at a step, the size of the stop set has changed.

    Reference: [BloodgoodVijayShanker2009].

    Examples:
        >>> rule = StabilizingPredictions(window=2)
        >>> p = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]
        >>> for n in (20, 21, 22):
        ...     verdict = rule.observe(Step(n_labelled=n, stop_probabilities=p))
        >>> print(verdict)
        Stop at 22 labels: the mean of the last 2 kappas, 1, is at least the threshold 0.99.
    """

    threshold: float = 0.99
    window: int = 3
    _: KW_ONLY
    previous: list[int] | None = field(default=None, init=False, repr=False)
    kappas: list[float] = field(default_factory=list, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"stop_probabilities"})
    classes_only: ClassVar[frozenset[str]] = requires
    info: ClassVar[RuleInfo] = RuleInfo(
        family="stability of predictions",
        example=lambda: StabilizingPredictions(0.9, 2),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                settings=_KAPPA_GRID, parameter="threshold", default=0.99, sense="at least", slack=AVERAGE_ROUNDING
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.threshold = _share(self.threshold, "threshold")
        self.window = whole(self.window, "window", least=1)

    def tighten(self, factor: float) -> None:
        """Multiply the distance of the threshold from 1 by ``factor``."""
        self.threshold = tightened(self.threshold, factor, limit=1.0)

    def check_state(self) -> None:
        """Refuse kappas out of range, more of them than the window holds, and kappas without predictions."""
        require_state(self, "kappas", "numbers from -1 to 1", holds=within(self.kappas, -1.0, 1.0))
        require_state(self, "kappas", f"a list of at most {self.window} numbers", holds=len(self.kappas) <= self.window)
        require_state(self, "previous", "None or not empty", holds=self.previous is None or bool(self.previous))
        known = self.previous is not None or not self.kappas
        require_state(self, "previous", "a list, because there are kappas", holds=known)

    def judge(self, step: Step) -> Verdict:
        """Compare the predictions with those of the previous step, then the mean kappa with the threshold."""
        before, codes = self._successive(step)
        if before is not None:
            self.kappas = [*self.kappas, cohen_kappa(before, codes)][-self.window :]
        if len(self.kappas) < self.window:
            reason = f"{len(self.kappas)} of the {self.window} kappas between successive models are available"
            return self.verdict(step, stop=False, ready=False, threshold=self.threshold, reason=reason)
        mean = math.fsum(self.kappas) / self.window
        name = f"mean of the last {self.window} kappas" if self.window > 1 else "kappa of the last two models"
        return self.comparison_verdict(step, Comparison(name, ">="), snapped(mean, self.threshold), self.threshold)


@dataclass
class KappaCertificate(StabilizingPredictions):
    r"""Stop when successive models agree on the stop set, with a bound on the change of the F score as a certificate.

    The rule stops when :class:`StabilizingPredictions` does. Its certificate is

    .. math:: |\Delta F| \le \frac{4 (1 - T)}{T}, \qquad \text{with the precision known:} \quad
              |\Delta F| \le \frac{4 (1 - T)}{(p + 1) T}

    for two models whose kappa is ``T > 0``, two classes, and F of the positive class, the second one. Here ``T`` is the
    smallest kappa in the window, so the statement holds for each of its steps. It is about the items of the stop set,
    with any labels. For more than two classes neither the theorem nor the certificate states anything.

    Args:
        threshold: Smallest mean of the kappas at which to stop, from 0 to 1.
        window: Number of kappas in the mean.
        precision: ``p``, from 0 to 1: the share of positive items among those that both models predict to be positive.
            The bound falls with it, so give a lower bound. None: not known, which counts as 0.

    Raises:
        InvalidValueError: An argument out of range.

    Reference: [BloodgoodGrothendieck2013], the bound in all cases and the one with known precision.

    Examples:
        >>> rule = KappaCertificate(window=1)
        >>> p = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]]
        >>> for n in (20, 21):
        ...     verdict = rule.observe(Step(n_labelled=n, stop_probabilities=p))
        >>> print(verdict.certificate.statement)
        The last step changed the F score on the stop set by at most 0.
    """

    _: KW_ONLY
    precision: float | None = None

    info: ClassVar[RuleInfo] = RuleInfo(
        family="stability of predictions",
        example=lambda: KappaCertificate(0.9, 2, precision=0.5),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                settings=_KAPPA_GRID, parameter="threshold", default=0.99, sense="at least", slack=AVERAGE_ROUNDING
            ),
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.precision is not None:
            self.precision = _share(self.precision, "precision")

    def judge(self, step: Step) -> Verdict:
        """Judge as :class:`StabilizingPredictions`, and add the certificate."""
        verdict = super().judge(step)
        assert step.stop_probabilities is not None  # it is required, so observe has checked
        classes = step.stop_probabilities.shape[1]
        return replace(verdict, certificate=self._certificate(classes)) if verdict.ready else verdict

    def _certificate(self, classes: int) -> Certificate:
        kappa = min(self.kappas)
        steps = "The last step" if self.window == 1 else f"Each of the last {self.window} steps"
        bound = 4.0 * (1.0 - kappa) / ((1.0 + (self.precision or 0.0)) * kappa) if kappa > 0.0 else math.inf
        assumption = (
            "F is that of the second class on the items of the stop set, whatever their labels; for other items, add "
            "the sampling error of the stop set. (That the next step changes no more is an extrapolation.)"
        )
        if self.precision:
            assumption += f" Of the items that both models predict to be positive, at least {self.precision:.3g} are."
        # Unchanged predictions have the same F for any number of classes.
        if classes > 2 and kappa < 1.0:
            statement = f"Nothing is guaranteed: the bound on F is for two classes, and there are {classes}."
        elif bound >= 1.0:
            statement = f"Nothing yet: with a kappa of {kappa:.3g} the F score may have changed over its whole range."
        else:
            statement = f"{steps} changed the F score on the stop set by at most {bound:.3g}."
        return Certificate(statement, assumption)


@dataclass
class PredictedFChange(_Successive, Criterion):
    r"""Stop when the predicted change of F on the stop set is below a threshold for several consecutive rounds.

    .. math:: \widehat{\Delta F} = 1 - \frac{2 n_{11}}{2 n_{11} + n_{10} + n_{01}}

    between the predictions of two successive models, see :func:`f_change`. A round at or above the threshold restarts
    the count.

    Args:
        threshold: Above 0, at most 1; the change of F must be *below* it.
        rounds: Number of consecutive rounds; at least 1.

    Raises:
        InvalidValueError: An argument is out of range; or, at a step, the size of the stop set has changed.

    Reference: [AltschulerBloodgood2019].

    Examples:
        >>> rule = PredictedFChange(rounds=1)
        >>> for n, p in ((20, 0.8), (21, 0.7)):
        ...     verdict = rule.observe(Step(n_labelled=n, stop_probabilities=[[1 - p, p], [0.6, 0.4]]))
        >>> print(verdict)
        Stop at 21 labels: the predicted change of F on the stop set, 0, is below the threshold 0.05 (1 of 1 rounds in
        a row).
    """

    threshold: float = 0.05
    rounds: int = 3
    _: KW_ONLY
    previous: list[int] | None = field(default=None, init=False, repr=False)
    in_a_row: int = field(default=0, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"stop_probabilities"})
    classes_only: ClassVar[frozenset[str]] = requires
    info: ClassVar[RuleInfo] = RuleInfo(
        family="stability of predictions",
        example=lambda: PredictedFChange(0.2, 2),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                settings=_F_CHANGE_GRID,
                parameter="threshold",
                default=0.05,
                sense="below",
                in_a_row=rounds,
                once=lambda: PredictedFChange(_F_CHANGE_GRID[0], rounds=1),
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.threshold = real(self.threshold, "threshold", "above 0 and at most 1", lambda x: 0.0 < x <= 1.0)
        self.rounds = whole(self.rounds, "rounds", least=1)

    def tighten(self, factor: float) -> None:
        """Multiply the threshold by ``factor``."""
        self.threshold = tightened(self.threshold, factor, limit=0.0)

    def check_state(self) -> None:
        """Refuse rounds that were counted without predictions."""
        require_state(self, "previous", "None or not empty", holds=self.previous is None or bool(self.previous))
        known = self.previous is not None or not self.in_a_row
        require_state(self, "previous", "a list, because rounds were counted", holds=known)

    def judge(self, step: Step) -> Verdict:
        """Compare the predictions with those of the previous step, and count the rounds."""
        before, codes = self._successive(step)
        if before is None:
            reason = "there are no earlier predictions to compare with"
            return self.verdict(step, stop=False, ready=False, threshold=self.threshold, reason=reason)
        assert step.stop_probabilities is not None  # it is required, so observe has checked
        change = f_change(before, codes, max(step.stop_probabilities.shape[1], int(before.max()) + 1))
        small = _F_CHANGE.holds(change, self.threshold)
        self.in_a_row = self.in_a_row + 1 if small else 0
        reason = _F_CHANGE.sentence(change, self.threshold)
        if small:
            reason += f" ({self.in_a_row} of {self.rounds} rounds in a row)"
        stop = self.in_a_row >= self.rounds
        return self.verdict(step, stop=stop, value=change, threshold=self.threshold, reason=reason)


def _share(value: float, name: str) -> float:
    return real(value, name, "from 0 to 1", lambda x: 0.0 <= x <= 1.0)


def _changes(step: Step) -> int:
    assert step.pool_changes is not None  # it is required, so observe has checked
    return step.pool_changes


def _what_changed(changes: int) -> str:
    if changes == 0:
        return "no item of the pool changed its predicted class"
    return (
        f"{changes} item{'s' * (changes != 1)} of the pool changed {'its' if changes == 1 else 'their'} predicted class"
    )


_SELECTED: Final = Comparison("agreement of the committee on the selected items", ">=", limit="level")
_RISE: Final = Comparison("rise of the committee's agreement on the stop set", "<=", limit="tolerance")
_AGAINST: Final = Comparison(
    "agreement of the committee on the selected items", ">=", limit="agreement on the stop set,"
)


@dataclass
class SelectionAgreement(Criterion):
    r"""Stop when the agreement of a committee on the items just selected is at least a level.

    .. math:: SA_t \ge \ell

    The items were chosen because the committee disagreed on them most, so agreement on them means that little
    disagreement is left. At the default level all members must give the same vote on every item. Differences by
    rounding (1e-12) are ignored.

    Args:
        level: From 0 to 1.

    Raises:
        InvalidValueError: ``level`` is not from 0 to 1.

    Reference: [TomanekWermterHahn2007].

    Examples:
        >>> rule = SelectionAgreement(level=0.9)
        >>> print(rule.observe(Step(n_labelled=30, selected_agreement=0.85)))
        Go on at 30 labels: the agreement of the committee on the selected items, 0.85, is below the level 0.9.
        >>> rule.observe(Step(n_labelled=31, selected_agreement=0.9)).stop
        True
    """

    level: float = 1.0

    requires: ClassVar[frozenset[str]] = frozenset({"selected_agreement"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="committees",
        example=lambda: SelectionAgreement(0.2),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                settings=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0),
                parameter="level",
                default=1.0,
                sense="at least",
                slack=AVERAGE_ROUNDING,
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.level = real(self.level, "level", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)

    def tighten(self, factor: float) -> None:
        """Multiply the distance of the level from 1 by ``factor``."""
        self.level = tightened(self.level, factor, limit=1.0)

    def judge(self, step: Step) -> Verdict:
        """Compare the agreement with the level."""
        assert step.selected_agreement is not None  # it is required, so observe has checked
        return self.comparison_verdict(step, _SELECTED, snapped(step.selected_agreement, self.level), self.level)


@dataclass
class ValidationSetAgreement(Criterion):
    r"""Stop when the agreement of a committee on the stop set no longer rises.

    .. math:: \max(A_{t-k+1}, \dots, A_t) - \max(A_1, \dots, A_{t-k}) \le \text{tolerance}

    The paper reads the end of the rise from the curve. Our rule compares the best of the last ``k`` steps with the best
    of all steps before. It needs ``k + 1`` steps.

    Args:
        rounds: ``k``, at least 1. With one label per step a committee is noisy; use more than 3 then.
        tolerance: Largest rise that is ignored, from 0 to below 1. At 0 every new maximum counts.

    Raises:
        InvalidValueError: An argument out of range.

    Reference: [TomanekHahn2008], for the agreement and its use.

    Examples:
        >>> rule = ValidationSetAgreement(rounds=2)
        >>> for n, agreement in enumerate([0.6, 0.8, 0.9, 0.9, 0.89], start=20):
        ...     verdict = rule.observe(Step(n_labelled=n, stop_agreement=agreement))
        >>> print(verdict)
        Stop at 24 labels: the rise of the committee's agreement on the stop set, 0, is at most the tolerance 0.
    """

    rounds: int = 3
    tolerance: float = 0.0
    best: float | None = field(default=None, init=False, repr=False)
    recent: list[float] = field(default_factory=list, init=False, repr=False)

    requires: ClassVar[frozenset[str]] = frozenset({"stop_agreement"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="committees",
        example=lambda: ValidationSetAgreement(2, 0.02),
        tasks=CLASSES,
        compared=(
            ComparedRule(
                settings=(1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100),
                parameter="rounds",
                default=3,
            ),
        ),
    )

    def __post_init__(self) -> None:
        self.rounds = whole(self.rounds, "rounds", least=1)
        self.tolerance = real(self.tolerance, "tolerance", "from 0 to below 1", lambda x: 0.0 <= x < 1.0)

    def check_state(self) -> None:
        """Refuse agreements out of range, and a best one before there are enough steps."""
        best, full = self.best, len(self.recent) == self.rounds
        require_state(self, "recent", "numbers from 0 to 1", holds=within(self.recent, 0.0, 1.0))
        require_state(self, "recent", f"a list of at most {self.rounds} numbers", holds=len(self.recent) <= self.rounds)
        require_state(self, "best", "None or from 0 to 1", holds=best is None or 0.0 <= best <= 1.0)
        require_state(self, "best", f"None before {self.rounds} steps are in recent", holds=best is None or full)

    def judge(self, step: Step) -> Verdict:
        """Compare the best of the last steps with the best before."""
        assert step.stop_agreement is not None  # it is required, so observe has checked
        self.recent = [*self.recent, step.stop_agreement]
        if len(self.recent) > self.rounds:
            oldest, *self.recent = self.recent
            self.best = oldest if self.best is None else max(self.best, oldest)
        if self.best is None:
            reason = f"{len(self.recent)} of the {self.rounds + 1} steps that are needed to measure a rise are done"
            return self.verdict(step, stop=False, ready=False, threshold=self.tolerance, reason=reason)
        rise = max(self.recent) - self.best
        return self.comparison_verdict(step, _RISE, snapped(rise, self.tolerance), self.tolerance)


@dataclass
class IntrinsicStopping(Criterion):
    r"""Stop when the agreement of a committee on the items just selected is at least that on the stop set.

    .. math:: SA_t \ge VSA_t

    Then the selected items are no longer harder than others. There is no threshold to choose. Differences by rounding
    (1e-12) are ignored.

    Reference: [OlssonTomanek2009].

    Examples:
        >>> rule = IntrinsicStopping()
        >>> print(rule.observe(Step(n_labelled=30, selected_agreement=0.7, stop_agreement=0.9)))
        Go on at 30 labels: the agreement of the committee on the selected items, 0.7, is below the agreement on the
        stop set, 0.9.
        >>> rule.observe(Step(n_labelled=31, selected_agreement=0.93, stop_agreement=0.92)).stop
        True
    """

    requires: ClassVar[frozenset[str]] = frozenset({"selected_agreement", "stop_agreement"})
    info: ClassVar[RuleInfo] = RuleInfo(
        family="committees",
        tasks=CLASSES,
        compared=(ComparedRule(kind="plain"),),
    )

    def judge(self, step: Step) -> Verdict:
        """Compare the two agreements."""
        assert step.selected_agreement is not None  # both are required, so observe has checked
        assert step.stop_agreement is not None
        value = snapped(step.selected_agreement, step.stop_agreement)
        return self.comparison_verdict(step, _AGAINST, value, step.stop_agreement)
