"""The conformance suites must fail on what is wrong: each check has a rule or posterior made to break it."""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from suffice import Criterion, ErrorStability, Step, Verdict, register_kl, testing
from suffice.forecast import Forecast
from suffice.models import BayesianRidge
from suffice.posteriors import Draws, DropoutLayer, DropoutPosterior, Gaussian, GaussianProcessPosterior
from suffice.testing import check_criterion, check_posterior, example_steps

CLOCK = itertools.count()


@dataclass
class UnreadyStop(Criterion):
    def judge(self, step: Step) -> Verdict:
        return self.verdict(step, stop=True, ready=False, reason="because")


@dataclass
class InfiniteValue(Criterion):
    def judge(self, step: Step) -> Verdict:
        return self.verdict(step, stop=False, value=math.inf, reason="undecided")


@dataclass
class NoReason(Criterion):
    def judge(self, step: Step) -> Verdict:
        return self.verdict(step, stop=False, reason=" ")


@dataclass
class UsesAClock(Criterion):
    def judge(self, step: Step) -> Verdict:
        return self.verdict(step, stop=False, value=float(next(CLOCK)), reason="time passes")


@dataclass
class SharesState(Criterion):
    seen: ClassVar[list[int]] = []

    def judge(self, step: Step) -> Verdict:
        self.seen.append(step.n_labelled)
        return self.verdict(step, stop=False, value=float(len(self.seen)), reason="counting")


@dataclass
class HidesState(Criterion):
    def __post_init__(self) -> None:
        self.count = 0

    def judge(self, step: Step) -> Verdict:
        self.count += 1
        return self.verdict(step, stop=False, value=float(self.count), reason="counting")


@dataclass
class KeepsArrays(Criterion):
    total: Any = field(default_factory=lambda: np.zeros(1), init=False)

    def judge(self, step: Step) -> Verdict:
        self.total = self.total + 1.0
        return self.verdict(step, stop=False, value=float(self.total[0]), reason="counting")


@dataclass
class NeverResets(Criterion):
    count: int = field(default=0, init=False)

    def reset(self) -> None:
        pass

    def judge(self, step: Step) -> Verdict:
        self.count += 1
        return self.verdict(step, stop=False, value=float(self.count), reason="counting")


@dataclass
class RequiresTheUnknown(Criterion):
    requires: ClassVar[frozenset[str]] = frozenset({"colour"})

    def observe(self, step: Step) -> Verdict:
        return self.judge(step)

    def judge(self, step: Step) -> Verdict:
        return self.verdict(step, stop=False, reason="no matter")


@dataclass
class ForgetsToCheck(Criterion):
    requires: ClassVar[frozenset[str]] = frozenset({"kl_new_old"})

    def observe(self, step: Step) -> Verdict:
        return self.judge(step)

    def judge(self, step: Step) -> Verdict:
        return self.verdict(step, stop=False, reason="no matter")


@dataclass
class DividesByZero(Criterion):
    requires: ClassVar[frozenset[str]] = frozenset({"kl_new_old"})

    def judge(self, step: Step) -> Verdict:
        assert step.kl_new_old is not None
        value = 1.0 / step.kl_new_old if step.kl_new_old else math.nan
        return self.verdict(step, stop=False, value=value, reason="a ratio")


@dataclass
class ReadsSecretly(Criterion):
    def judge(self, step: Step) -> Verdict:
        return self.verdict(step, stop=False, value=step.kl_new_old, reason="peeking")


@dataclass
class FailsSecretly(Criterion):
    def judge(self, step: Step) -> Verdict:
        return self.verdict(step, stop=step.kl_new_old < 1e-9, reason="comparing")  # type: ignore[operator]


@dataclass
class Raises(Criterion):
    def judge(self, step: Step) -> Verdict:
        return self.verdict(step, stop=1 / 0 > 1, reason="dividing")


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Raises, "the rule raised ZeroDivisionError"),
        (ReadsSecretly, "reads kl_new_old without requiring it"),
        (FailsSecretly, "which it does not require: the rule raised TypeError"),
        (UnreadyStop, "says stop while it is not ready"),
        (InfiniteValue, "where there is no number it must be None"),
        (NoReason, "gives no reason"),
        (UsesAClock, "answered the same steps differently"),
        (SharesState, "answered the same steps differently"),
        (HidesState, "continues differently"),
        (KeepsArrays, "is not JSON"),
        (NeverResets, "reset leaves something"),
        (RequiresTheUnknown, "requires 'colour', which a Step does not have"),
        (ForgetsToCheck, "did not fail without it"),
        (DividesByZero, "the value at step 0 is nan"),
    ],
)
def test_a_broken_rule_fails_its_check(rule: type[Criterion], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_criterion(rule)


@dataclass
class Moves:
    left: list[int]

    def forecast(self) -> Forecast:
        return Forecast(self.left[-1], self.left[-1], self.left[-1], 1.0)


@dataclass
class Rewrites(Criterion):
    """Its verdicts hold on to what the rule learns later."""

    left: list[int] = field(default_factory=list, init=False)

    def judge(self, step: Step) -> Verdict:
        self.left.append(step.n_labelled)
        return self.verdict(step, stop=False, reason="moving", outlook=Moves(self.left))


def test_a_rule_that_lets_later_steps_into_its_verdicts_fails() -> None:
    with pytest.raises(AssertionError, match="changed earlier verdicts"):
        testing.no_look_ahead(Rewrites, example_steps())
    with pytest.raises(AssertionError, match="changed afterwards"):
        testing.verdicts_stay_as_given(Rewrites, example_steps())


def test_an_empty_run_is_refused() -> None:
    with pytest.raises(AssertionError, match="at least 2 steps"):
        check_criterion(lambda: ErrorStability(0.1), [])
    with pytest.raises(AssertionError, match="the class of the rule or a function that makes it"):
        check_criterion(ErrorStability(0.1))  # type: ignore[arg-type]


def test_a_rule_whose_saves_follow_it_fails() -> None:
    @dataclass
    class Leaks(Criterion):
        log: list[int] = field(default_factory=list, init=False)

        def state_dict(self) -> dict[str, Any]:
            return super().state_dict() | {"state": {"log": self.log}}

        def judge(self, step: Step) -> Verdict:
            self.log.append(step.n_labelled)
            return self.verdict(step, stop=False, value=float(len(self.log)), reason="logging")

    with pytest.raises(AssertionError, match="saved state changed"):
        testing.saving_changes_nothing(Leaks, example_steps())


def test_a_rule_that_composes_badly_fails() -> None:
    @dataclass
    class Selfish(ErrorStability):
        def copy(self) -> "Selfish":
            return self

    with pytest.raises(AssertionError):
        testing.composition_keeps_the_rule(lambda: Selfish(0.3, calibration=3), example_steps())


def kernel(a: Any, b: Any) -> Any:
    return np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1))


RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 2)), RNG.normal(size=6)
GOOD = {
    "Gaussian": (Gaussian([0.0, 0.0], np.eye(2)), Gaussian([0.3, 0.0], precision=[[1.0, 0.5], [0.5, 2.0]])),
    "diagonal": (Gaussian([0.0, 0.0], diagonal=[1.0, 2.0]), Gaussian([0.3, 0.0], diagonal=[1.0, 1.0])),
    "GaussianProcessPosterior": tuple(GaussianProcessPosterior(X[:n], Y[:n], noise=0.2, kernel=kernel) for n in (5, 6)),
    "DropoutPosterior": tuple(
        DropoutPosterior([DropoutLayer(RNG.normal(size=(2, 3)), [0.0, 1.0], keep=0.5, sigma=s)]) for s in (1.0, 1.2)
    ),
    "Draws": tuple(Draws(RNG.normal(size=(300, 2)) + shift, method="gaussian") for shift in (0.0, 1.0)),
    "neighbours": tuple(Draws(RNG.normal(size=(300, 2)) + shift, method="knn") for shift in (0.0, 1.0)),
}


@pytest.mark.parametrize("check", testing.POSTERIOR_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", GOOD)
def test_every_posterior_conforms(name: str, check: testing.PosteriorCheck) -> None:
    check(*GOOD[name])


@dataclass
class Exponential:
    rate: float

    def sample(self, n: int, rng: np.random.Generator) -> Any:
        return rng.exponential(1.0 / self.rate, size=(n, 1))

    def log_density(self, theta: Any) -> Any:
        return math.log(self.rate) - self.rate * theta[:, 0]


def right(p: Exponential, q: Exponential) -> float:
    return math.log(p.rate / q.rate) + q.rate / p.rate - 1.0


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (lambda p, q: 0.5 * right(p, q), "exact", "below the Monte-Carlo"),
        (lambda p, q: 0.5 * right(p, q), "bound", "below the Monte-Carlo"),
        (lambda p, q: 2.0 * right(p, q), "exact", "but Monte Carlo gives"),
        (lambda p, q: 0.1 + right(p, q), "bound", "with itself is 0.1"),
        (lambda p, q: 0.0, "bound", "is 0 for two posteriors"),
        (lambda p, q: math.nan, "exact", "kl raised InvalidValueError"),
        (lambda p, q: "small", "exact", "kl raised InvalidTypeError"),
        (lambda p, q: right(p, q) * (1.0 + 1e-3 * next(CLOCK)), "bound", "two numbers"),
    ],
)
def test_a_broken_posterior_fails_its_check(function: Any, kind: Any, words: str) -> None:
    register_kl(Exponential, Exponential, kind=kind)(function)
    with pytest.raises(AssertionError, match=words):
        check_posterior(Exponential(1.0), Exponential(2.0))


def test_an_outside_posterior_that_is_right_passes() -> None:
    register_kl(Exponential, Exponential)(right)
    check_posterior(Exponential(1.0), Exponential(2.0))
    register_kl(Exponential, Exponential, kind="bound")(lambda p, q: 2.0 * right(p, q))
    check_posterior(Exponential(1.0), Exponential(2.0))


def test_a_model_that_cannot_be_pickled_fails() -> None:
    class Local(BayesianRidge):
        """No module has it, so pickle does not find it."""

    rows = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(AssertionError, match="Local cannot be pickled: "):
        testing.a_copy_goes_on_alone(lambda: Local(alpha=1.0, beta=2.0), rows, rows[:, 0])


def test_a_posterior_that_cannot_be_pickled_fails() -> None:
    class Local(Exponential):
        pass

    register_kl(Exponential, Exponential)(right)
    with pytest.raises(AssertionError, match="cannot be pickled"):
        testing.divergence_is_repeatable(Local(1.0), Local(2.0))
