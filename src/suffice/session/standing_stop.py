"""The stop of a session: why it is held back, how long it stands, and why it was withdrawn."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import scipy

from suffice.criteria import LabelWorth, Verdict
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.presentation.decision_words import held_back_reason

#: A stop of LabelWorth is withdrawn if a label is worth more than this multiple of its cost at two successive steps, or
#: more than the larger multiple at one step.
WITHDRAWN: Final = 1.5
WITHDRAWN_AT_ONCE: Final = 3.0
#: Fewer labels of a rare class than these hold a stop back.
FEW_LABELS: Final = 5
# A class whose share is below this one may be missed, with this error probability.
_LEAST_SHARE: Final = 0.01
_ALPHA: Final = 0.05

#: What has changed when a stop is withdrawn: the worth of a label, a new class, labels that were corrected or removed,
#: hyper-parameters that were learned again, a guarantee that is about an earlier model, or the model itself; in a
#: project also items that were added, another model that was chosen, or the settings.
Cause = Literal[
    "worth", "class", "corrected", "removed", "relearned", "guarantee", "model", "items", "switched", "settings"
]


class StopWithdrawal(NamedTuple):
    """A stop that was withdrawn, and why.

    Attributes:
        stopped_at: Number of labels at the stop.
        withdrawn_at: Number of labels when it was withdrawn.
        cause: What has changed.
        ratio: Worth of a label then, as a multiple of its cost; None for other rules than :class:`suffice.LabelWorth`.
        class_name: For ``"class"``: the new class.
    """

    stopped_at: int
    withdrawn_at: int
    cause: Cause
    ratio: float | None = None
    class_name: str | None = None


class ScarceClass(NamedTuple):
    """A rare class with so few labels that a stop is held back.

    Attributes:
        name: The class.
        labels: Number of its labels.
        wanted: Number of its labels from which on it does not hold a stop back.
        until: Number of labels of all classes from which on it does not hold a stop back if no more of it are found.
    """

    name: str
    labels: int
    wanted: int
    until: int


class StandingStop(NamedTuple):
    """A stop that stands.

    Attributes:
        verdict: The verdict of the rule, at the number of labels at which the stop was stated.
        classes: The classes of the labels then.
        proven: Whether the rule said so because of a guarantee.
    """

    verdict: Verdict
    classes: frozenset[Any]
    proven: bool = False


class RuleStop:
    """The stop of a rule on successive verdicts, while it stands.

    A stop of :class:`suffice.LabelWorth` stands until a label is worth more than 1.5 times its cost at two successive
    steps, or more than 3 times at one. A stop of another rule always stands, although a noisy curve may be above its
    threshold at the next label.

    Attributes:
        stop: The verdict that first said stop; None if there is none.

    Examples:
        >>> def verdict(n: int, value: float) -> Verdict:
        ...     return Verdict(value <= 1.0, value, 1.0, True, "", "LabelWorth", n)
        >>> RuleStop([verdict(10, 0.9), verdict(11, 2.0), verdict(12, 1.2)]).stop.n_labelled
        10
        >>> RuleStop([verdict(10, 0.9), verdict(11, 2.0), verdict(12, 1.6), verdict(13, 0.9)]).stop.n_labelled
        13
    """

    def __init__(self, verdicts: Iterable[Verdict] = ()) -> None:
        self.stop: Verdict | None = None
        self._last: Verdict | None = None
        for verdict in verdicts:
            self.add(verdict)

    def add(self, verdict: Verdict) -> None:
        """Continue with the next verdict."""
        if verdict.stop:
            self.stop = self.stop or verdict
        elif self.stop is not None and clearly_above(self._last, verdict):
            self.stop = None
        self._last = verdict


def worth_ratio(verdict: Verdict | None) -> float | None:
    """The worth of a label as a multiple of its cost; None for another rule than :class:`suffice.LabelWorth`."""
    if verdict is None or verdict.rule != LabelWorth.__name__ or verdict.value is None or verdict.threshold is None:
        return None
    return verdict.value / verdict.threshold


def clearly_above(before: Verdict | None, verdict: Verdict) -> bool:
    """Whether a label is clearly worth more than it costs.

    Args:
        before: The verdict before; None if there is none.
        verdict: The verdict.
    """
    now, earlier = worth_ratio(verdict) or 0.0, worth_ratio(before) or 0.0
    return now > WITHDRAWN_AT_ONCE or min(now, earlier) > WITHDRAWN


def scarce_class(
    labels: Collection[Any], classes: Collection[Any], size: int, may_miss: Collection[Any] = ()
) -> ScarceClass | None:
    r"""Return the rare class with the fewest labels, if they are so few that a stop is held back.

    A class with :math:`k` of :math:`n` labels holds a stop back if :math:`k < 5` and it is rare: one of two classes, or
    significantly rarer than an equal share, :math:`P[\textrm{Bin}(n, 1/K) \le k] \le 0.05` of :math:`K` classes. It
    ends when with 95 % probability, as if all labels were drawn at random, the class is less than 1 % of the items,

    .. math:: P[\textrm{Bin}(n, s) \le k] \le 0.05, \quad s = \max(0.01, 5 / m),

    or has fewer than 5 of the :math:`m` items of the pool. Without a label of the class that is at 299 labels, with one
    label at 473.

    Args:
        labels: All labels.
        classes: All classes that are known.
        size: ``m``.
        may_miss: Classes that may be missed.

    Examples:
        >>> scarce_class(["no"] * 38 + ["yes"] * 2, ["no", "yes"], 5000)
        ScarceClass(name='yes', labels=2, wanted=5, until=628)
        >>> scarce_class(["no"] * 300, ["no", "yes"], 5000) is None
        True
    """
    n, counts = len(labels), Counter(labels)
    if len(classes) < 2 or not size:
        return None
    share = min(1.0, max(_LEAST_SHARE, FEW_LABELS / size))
    for name in sorted(classes, key=lambda each: counts[each]):
        k = counts[name]
        if k >= FEW_LABELS:
            return None
        rare = len(classes) == 2 or scipy.special.bdtr(k, n, 1.0 / len(classes)) <= _ALPHA
        if rare and name not in may_miss and scipy.special.bdtr(k, n, share) > _ALPHA:
            return ScarceClass(str(name), k, FEW_LABELS, _first_below(k, share))
    return None


def _first_below(k: int, share: float) -> int:
    """The least number of draws of which more than ``k`` are of a class of this share with 95 % probability."""
    low, high = k, k + 1
    while scipy.special.bdtr(k, high, share) > _ALPHA:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if scipy.special.bdtr(k, middle, share) > _ALPHA else (low, middle)
    return high


def classes_that_may_be_missed(may_miss: Any, *, name: str = "may_miss") -> tuple[Any, ...]:
    """Return classes that may be missed as plain values.

    Args:
        may_miss: One class, or several.
        name: Name of the argument in an error message.

    Raises:
        InvalidTypeError: It is not a class or a sequence of classes.

    Examples:
        >>> classes_that_may_be_missed("spam"), classes_that_may_be_missed([3, 4])
        (('spam',), (3, 4))
    """
    listed = may_miss.tolist() if hasattr(may_miss, "tolist") else may_miss
    several = [listed] if isinstance(listed, str | int | float) else listed
    if not isinstance(several, list | tuple | set | frozenset) or not all(
        isinstance(each, str | int | float) for each in several
    ):
        raise InvalidTypeError(f"{name} must be a class or several, each a text or a number, not {may_miss!r}")
    return tuple(dict.fromkeys(several))


def require_known(may_miss: Collection[Any], classes: Collection[Any], *, name: str = "may_miss") -> None:
    """Raise an error for a class that may be missed and is none of the declared classes.

    Args:
        may_miss: The classes that may be missed.
        classes: The declared classes; empty if they are not declared.
        name: Name of the argument in an error message.

    Raises:
        InvalidValueError: A class is not among them.
    """
    if classes and (others := [each for each in may_miss if each not in classes]):
        listed = ", ".join(repr(each) for each in classes)
        raise InvalidValueError(f"{name} must be one of the classes {listed}, not {others[0]!r}")


class Moment(NamedTuple):
    """A session after its last labels, as far as its stop depends on it.

    Attributes:
        verdict: The verdict of the rule now.
        rule: The stop of the rule that stands, or None.
        n_labelled: Number of labels.
        above: Whether a label is now clearly worth more than it costs.
        change: What has happened besides new labels, if anything.
        classes: Returns the classes of the labels.
        scarce: Returns the class that holds a stop back, or None.
    """

    verdict: Verdict
    rule: Verdict | None
    n_labelled: int
    above: bool
    change: Cause | None
    classes: Callable[[], frozenset[Any]]
    scarce: Callable[[], ScarceClass | None]


@dataclass(frozen=True)
class StopState:
    """The stop of a session.

    Attributes:
        standing: The stop that stands; None if there is none.
        held_back: The class that holds back a stop of the rule; None if there is no such class.
        withdrawn: The last stop that was withdrawn; None if there is none.
    """

    standing: StandingStop | None = None
    held_back: ScarceClass | None = None
    withdrawn: StopWithdrawal | None = None

    def next(self, now: Moment) -> "StopState":
        """The state after the last labels. Without a stop of the rule nothing is computed."""
        # A stop that is not in the history of the rule follows from a guarantee.
        stop = now.rule or (now.verdict if now.verdict.stop else None)
        if self.standing is not None:
            return self._after_stop(self.standing, stop, now)
        held = None if stop is None else now.scarce()
        if stop is None or held is not None:
            return replace(self, held_back=held)
        stated = replace(stop, n_labelled=now.n_labelled)
        return replace(self, standing=StandingStop(stated, now.classes(), now.rule is None), held_back=None)

    def _after_stop(self, standing: StandingStop, stop: Verdict | None, now: Moment) -> "StopState":
        """The state after the last labels, if a stop stood before."""
        at, ratio = standing.verdict.n_labelled, worth_ratio(now.verdict)
        if stop is None:
            if ratio is not None and not (now.above or standing.proven or now.change == "removed"):
                # By other hyper-parameters the history of the rule has no stop, but a label is hardly worth its cost.
                return self
            cause: Cause = now.change or ("model" if ratio is None else "worth")
            if standing.proven and now.change != "items":
                cause = "guarantee"
            return StopState(withdrawn=StopWithdrawal(at, now.n_labelled, cause, ratio))
        new = {str(each) for each in now.classes() - standing.classes}
        if new and (held := now.scarce()) is not None and held.name in new:
            withdrawn = StopWithdrawal(at, now.n_labelled, "class", ratio, held.name)
            return StopState(held_back=held, withdrawn=withdrawn)
        if now.n_labelled < at:
            # Labels were removed, and the rule says stop for the others too.
            stated = replace(stop, n_labelled=now.n_labelled)
            return replace(self, standing=StandingStop(stated, now.classes(), now.rule is None))
        return self if now.rule is None else replace(self, standing=standing._replace(proven=False))

    def stated(self, verdict: Verdict, n_labelled: int, *, left: int, pending: int) -> Verdict:
        """The verdict that is stated: that of the rule, unless a stop stands, is held back, or waits for a check.

        Args:
            verdict: The verdict of the rule now.
            n_labelled: Number of labels.
            left: Number of items without a label.
            pending: Number of items of an open check without an answer.
        """
        if not left:
            if verdict.stop:
                return verdict
            reason = f"every item of the pool is labelled or skipped; the rule itself: {verdict.reason}"
            return replace(
                verdict, stop=True, ready=True, reason=reason, rule="Session", n_labelled=n_labelled, outlook=None
            )
        stop = verdict if verdict.stop else None
        if self.standing is not None and stop is None:
            stop = replace(self.standing.verdict, n_labelled=n_labelled)
        if pending:
            return verdict if stop is None else _going_on(stop, n_labelled, "a check is open")
        if self.held_back is not None:
            return _going_on(stop or verdict, n_labelled, held_back_reason(self.held_back._asdict()))
        return verdict if stop is None else stop

    def state_dict(self) -> dict[str, Any]:
        """The state as JSON values."""
        standing = None
        if self.standing is not None:
            verdict = self.standing.verdict
            names = ("stop", "value", "threshold", "ready", "reason", "rule", "n_labelled")
            standing = {
                "verdict": {name: getattr(verdict, name) for name in names},
                "classes": sorted(self.standing.classes, key=str),
                "proven": self.standing.proven,
            }
        held, withdrawn = self.held_back, self.withdrawn
        return {
            "standing": standing,
            "held_back": None if held is None else list(held),
            "withdrawn": None if withdrawn is None else list(withdrawn),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "StopState":
        """Restore :meth:`state_dict`."""
        standing = state["standing"]
        return cls(
            None
            if standing is None
            else StandingStop(Verdict(**standing["verdict"]), frozenset(standing["classes"]), standing["proven"]),
            None if state["held_back"] is None else ScarceClass(*state["held_back"]),
            None if state["withdrawn"] is None else StopWithdrawal(*state["withdrawn"]),
        )


def _going_on(stop: Verdict, n_labelled: int, reason: str) -> Verdict:
    """A stop of the rule that is not stated."""
    return replace(
        stop, stop=False, ready=True, n_labelled=n_labelled, reason=f"the rule says stop, but {reason}", outlook=None
    )
