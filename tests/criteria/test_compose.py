import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import Budget, Criterion, ErrorStability, Forecast, Step, Verdict, criterion_from_dict
from suffice.criteria import AllOf, AnyOf
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError
from suffice.testing import check_criterion, example_steps
from tests.every_rule import made_up_steps
from tests.thoroughness import some


def at(*counts: int) -> list[Step]:
    return [Step(n_labelled=n) for n in counts]


def stops(rule: Criterion, steps: list[Step]) -> list[bool]:
    return [rule.observe(step).stop for step in steps]


@dataclass
class VarianceBelow(Criterion):
    """A rule that may say stop and then go on."""

    limit: float
    requires: ClassVar[frozenset[str]] = frozenset({"pool_variance"})

    def judge(self, step: Step) -> Verdict:
        assert step.pool_variance is not None
        return self.verdict(step, stop=step.pool_variance < self.limit, reason="it is so")


RULES: dict[str, Callable[[], Criterion]] = {
    "ErrorStability": lambda: ErrorStability(0.1, calibration=4),
    "absolute": lambda: ErrorStability(0.1, relative=False),
    "tight": lambda: ErrorStability(0.1, calibration=4, bound="tight"),
    "confidence": lambda: ErrorStability.from_confidence(0.3, 0.1, calibration=4),
    "Budget": lambda: Budget(30),
    "and": lambda: ErrorStability(0.2, calibration=4) & Budget(20),
    "or": lambda: ErrorStability(0.01, calibration=4) | Budget(40),
    "patience": lambda: ErrorStability(0.3, calibration=4).patience(3),
    "after": lambda: ErrorStability(0.3, calibration=4).after(50),
    "nested": lambda: ((ErrorStability(0.3, calibration=4).patience(2) & Budget(20)) | Budget(60)).after(12),
}


@pytest.mark.parametrize("name", some(list(RULES), every=2))
def test_conformance(name: str) -> None:
    check_criterion(RULES[name], made_up_steps(35, seed=3))


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 4))
def test_patience_counts_consecutive_stops_and_resets(pattern: list[bool], k: int) -> None:
    run = [Step(n_labelled=n, pool_variance=1.0 if on else 3.0) for n, on in enumerate(pattern)]
    expected = [t + 1 >= k and all(pattern[t + 1 - k : t + 1]) for t in range(len(pattern))]
    assert stops(VarianceBelow(2.0).patience(k), run) == expected


@given(st.lists(st.integers(0, 20), min_size=1, max_size=20), st.integers(1, 20), st.integers(1, 20))
def test_and_or_are_what_they_say(counts: list[int], a: int, b: int) -> None:
    counts.sort()
    run = at(*counts)
    assert stops(Budget(a) & Budget(b), run) == [n >= a and n >= b for n in counts]
    assert stops(Budget(a) | Budget(b), run) == [n >= a or n >= b for n in counts]
    assert stops(Budget(a).after(b), run) == [n >= a and n >= b for n in counts]


@pytest.mark.parametrize("rule", [Budget(5), ErrorStability(), Budget(5).patience(2) & ErrorStability(relative=False)])
def test_steps_out_of_order_are_refused(rule: Criterion) -> None:
    first, second = (Step(n_labelled=n, kl_new_old=0.1, kl_old_new=0.1) for n in (10, 11))
    told = "n_labelled fell from 11 to 10; give the steps of one run in order"
    with pytest.raises(InvalidValueError, match=told):
        rule.observe_all([second, first])
    rule.reset()
    rule.observe(second)
    with pytest.raises(InvalidValueError, match=told):
        rule.observe(first)
    rule.reset()
    assert len(rule.observe_all([first, first, second])) == 3


def test_composition_is_flat_and_reads_as_written() -> None:
    rule = (Budget(1) & Budget(2) & Budget(3)) | Budget(4)
    assert repr(rule) == (
        "AnyOf(rules=(AllOf(rules=(Budget(labels=1), Budget(labels=2), Budget(labels=3))), Budget(labels=4)))"
    )


def test_a_composed_rule_has_its_own_copies() -> None:
    shared = ErrorStability(0.5, calibration=1)
    both = shared & shared
    for step in example_steps(5):
        both.observe(step)
    assert shared.steps == 0
    assert shared.state_dict() == ErrorStability(0.5, calibration=1).state_dict()


def test_the_reason_names_what_is_waited_for() -> None:
    verdict = (Budget(5) & Budget(9)).observe(Step(n_labelled=6))
    assert verdict.reason == "6 labels are bought, and the budget is 9"
    assert (Budget(5) | Budget(9)).observe(Step(n_labelled=6)).reason == "6 labels are bought, and the budget is 5"
    assert [part.stop for part in verdict.parts] == [True, False]
    held = Budget(5).after(9).observe(Step(n_labelled=6))
    assert held.reason == "6 labels are bought, and the budget is 5, but at least 9 labels are required"


def test_forecasts_compose() -> None:
    step = Step(n_labelled=6)
    for rule, left in (
        (Budget(10) | Budget(30), 4),
        (Budget(10) & Budget(30), 24),
        (Budget(10).after(50), 44),
        (Budget(10).patience(1), 4),
    ):
        forecast = rule.observe(step).forecast
        assert forecast is not None
        assert forecast.labels == left
    # How long a rule stays at its stop is not what it forecasts.
    assert Budget(10).patience(3).observe(step).forecast is None


def last_forecast(rule: Criterion, n: int = 50) -> Forecast | None:
    for step in made_up_steps(n):
        verdict = rule.observe(step)
    return verdict.forecast


def test_a_budget_beside_a_rule_caps_its_forecast() -> None:
    alone = last_forecast(ErrorStability(0.02, calibration=2))
    capped = last_forecast(ErrorStability(0.02, calibration=2) | Budget(110))
    assert alone is not None
    assert capped is not None
    assert alone.low < 50 < alone.high
    assert (capped.low, capped.high, capped.coverage) == (alone.low, 50, alone.coverage)


def test_a_rule_that_has_to_stop_again_is_not_forecast() -> None:
    """A forecast says when a noisy value first crosses; held back beyond that, nobody knows when it does again."""
    waits: list[Callable[[Criterion, int], Criterion]] = [lambda r, n: r.after(n), lambda r, n: r & Budget(n)]
    for wait in waits:
        alone = last_forecast(ErrorStability(0.02, calibration=2))
        assert alone is not None
        assert last_forecast(wait(ErrorStability(0.02, calibration=2), 60 + alone.low)) == alone
        assert last_forecast(wait(ErrorStability(0.02, calibration=2), 61 + alone.low)) is None
        # It says stop now, but is held back.
        assert last_forecast(wait(ErrorStability(0.9, calibration=2), 500)) is None
    assert last_forecast(ErrorStability(0.02, calibration=2) & ErrorStability(0.01, calibration=2)) is None


def test_certificates_pass_through_and_the_best_is_kept() -> None:
    step = example_steps(40)[39]
    for rule in (ErrorStability() & Budget(5), ErrorStability() | Budget(5), ErrorStability().patience(2).after(3)):
        certificate = rule.observe(step).certificate
        assert certificate is not None
        assert "expected error" in certificate.statement
    paper, tight = (ErrorStability(0.1, relative=False, bound=b) for b in ("paper", "tight"))
    best = tight.copy().observe(step).certificate
    for rule in (paper & tight, tight | paper):
        assert rule.observe(step).certificate == best


def test_what_is_required_is_collected_and_missed_at_the_first_step() -> None:
    rule = (ErrorStability().patience(2) & Budget(3)) | Budget(9)
    assert rule.needs() == {"kl_new_old", "kl_old_new"}
    with pytest.raises(MissingInputError, match="kl_new_old, kl_old_new"):
        rule.observe(Step(n_labelled=1))
    with pytest.raises(MissingInputError, match=r"^ErrorStability requires"):
        (Budget(3) | ErrorStability().after(5)).observe(Step(n_labelled=1))


@pytest.mark.parametrize("make", [lambda: Budget(0), lambda: Budget(2.5), lambda: Budget(True)])  # type: ignore[arg-type]
def test_budget_wants_a_count(make: Callable[[], Criterion]) -> None:
    with pytest.raises(InvalidValueError, match="labels must be a whole number, 1 or more"):
        make()


def test_bad_compositions_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="AllOf needs a tuple of at least one rule"):
        AllOf(())
    with pytest.raises(InvalidValueError, match="AnyOf needs a tuple of at least one rule"):
        AnyOf(Budget(3))  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="each part of a composed rule must be a stopping rule such as"):
        AnyOf((Budget(1), 3))  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match=r"not its class; give Budget\(\.\.\.\)"):
        AnyOf((Budget(1), Budget))  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="patience must be a whole number, 1 or more"):
        Budget(1).patience(0)
    with pytest.raises(InvalidValueError, match="after must be a whole number, 0 or more"):
        Budget(1).after(-1)
    with pytest.raises(TypeError):
        Budget(1) & 3  # type: ignore[operator]


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({}, "the keys 'rule', 'params' and 'state'"),
        (None, "the keys 'rule', 'params' and 'state'"),
        ({"rule": ["Budget"], "params": {}, "state": {}}, "no stopping rule is named"),
        ({"rule": "Guess", "params": {}, "state": {}}, "no stopping rule is named 'Guess'; known: .*Budget"),
        ({"rule": "Budget", "params": {"money": 3}, "state": {}}, "parameters do not fit Budget"),
        (
            {"rule": "Budget", "params": {"labels": 3}, "state": {"x": 1}},
            r"state of Budget is \{'x': 1\}; it should hold \[\]",
        ),
        ({"rule": "Budget", "params": {"labels": -3}, "state": {}}, "1 or more"),
        ({"rule": "Budget", "params": None, "state": {}}, "parameters do not fit Budget"),
        ({"rule": "Budget", "params": {"labels": 3}, "state": None}, "state of Budget is None"),
    ],
)
def test_a_broken_save_is_explained(state: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        criterion_from_dict(state)


def test_a_restored_rule_does_not_share_with_the_save() -> None:
    rule = ErrorStability(0.1, calibration=1)
    for step in example_steps(5):
        rule.observe(step)
    saved = rule.state_dict()
    text = json.dumps(saved)
    criterion_from_dict(saved).observe(example_steps(6)[5])
    assert json.dumps(saved) == text


@dataclass
class Remembering(Criterion):
    """Holds every kind of value that the contract allows."""

    levels: list[float] = field(default_factory=lambda: [0.5, 0.2])
    options: dict[str, Any] = field(default_factory=lambda: {"rule": "of thumb"})
    inner: tuple[Criterion, ...] = field(default_factory=lambda: (ErrorStability(0.3, calibration=2),))
    spare: Criterion = field(default_factory=lambda: Budget(30), init=False)
    seen: list[float] = field(default_factory=list, init=False)

    def judge(self, step: Step) -> Verdict:
        parts = (*(rule.observe(step) for rule in self.inner), self.spare.observe(step))
        self.seen.append(float(len(self.seen)))
        stop = isinstance(self.levels, list) and self.options["rule"] == "of thumb" and all(p.stop for p in parts)
        return self.verdict(step, stop=stop, reason="looking", value=self.seen[-1], parts=parts)


def test_a_rule_may_hold_lists_dictionaries_and_rules() -> None:
    check_criterion(Remembering, made_up_steps(40))


def test_a_rule_of_elsewhere_may_have_any_name() -> None:
    @dataclass
    class Budget(Criterion):
        def judge(self, step: Step) -> Verdict:
            return self.verdict(step, stop=True, reason="it is mine")

    assert isinstance(criterion_from_dict(Budget().state_dict()), Budget)
    assert repr(criterion_from_dict({"rule": "Budget", "params": {"labels": 3}, "state": {}})) == "Budget(labels=3)"


@dataclass(frozen=True, kw_only=True)
class MeasuredStep(Step):
    accuracy: float | None = None


@dataclass
class Accurate(Criterion):
    requires: ClassVar[frozenset[str]] = frozenset({"accuracy"})

    def judge(self, step: Step) -> Verdict:
        assert isinstance(step, MeasuredStep)
        assert step.accuracy is not None
        return self.verdict(step, stop=step.accuracy >= 0.9, value=step.accuracy, reason="as accurate as wanted")


def test_a_rule_may_take_its_own_measurement_from_a_step_of_its_own() -> None:
    check_criterion(Accurate, [MeasuredStep(n_labelled=n, accuracy=n / 20) for n in range(1, 20)])
    with pytest.raises(MissingInputError, match="Accurate requires accuracy in every Step; a Step can be subclassed"):
        Accurate().observe(Step(n_labelled=3))


def test_a_judge_must_return_a_verdict() -> None:
    @dataclass
    class Careless(Criterion):
        def judge(self, step: Step) -> Verdict:  # noqa: ARG002
            return True  # type: ignore[return-value]

    with pytest.raises(InvalidTypeError, match=r"Careless\.judge must return a Verdict, not bool"):
        Careless().observe(Step(n_labelled=1))


def test_numpy_numbers_are_as_good_as_pythons() -> None:
    rules: list[Criterion] = [
        Budget(np.int64(5)),  # type: ignore[arg-type]
        Budget(5).patience(np.int64(2)),  # type: ignore[arg-type]
        Budget(5).after(np.int32(2)),  # type: ignore[arg-type]
        ErrorStability(np.float32(0.05), calibration=np.int64(3), relative=np.bool_(True)),  # type: ignore[arg-type]
        ErrorStability(np.int64(1)),  # type: ignore[arg-type]
        ErrorStability.from_confidence(np.float32(0.1), np.float32(0.1)),  # type: ignore[arg-type]
        ErrorStability.from_confidence(np.array(0.1), np.array(0.1)),  # type: ignore[arg-type]
        ErrorStability.from_cost(np.float32(1), np.int64(1000)),  # type: ignore[arg-type]
    ]
    for rule in rules:
        rule.observe(example_steps(1)[0])
        assert criterion_from_dict(json.loads(json.dumps(rule.state_dict()))) == rule


def test_verdicts_can_be_put_in_a_set() -> None:
    rule = ErrorStability(0.1, calibration=2) | Budget(500)
    assert len({rule.observe(step) for step in example_steps(20)}) == 20
