import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import Criterion, Step, Verdict
from suffice.criteria import committee_agreement
from suffice.criteria.agreement import IntrinsicStopping, SelectionAgreement, ValidationSetAgreement
from suffice.errors import InvalidValueError, MissingInputError
from suffice.testing import check_criterion
from tests.every_rule import made_up_steps

RULES: dict[str, Callable[[], Criterion]] = {
    "SelectionAgreement": lambda: SelectionAgreement(0.9),
    "ValidationSetAgreement": lambda: ValidationSetAgreement(2, 0.01),
    "IntrinsicStopping": IntrinsicStopping,
    "together": lambda: (
        (SelectionAgreement(0.8) & ValidationSetAgreement().patience(2)) | IntrinsicStopping().after(30)
    ),
}

SHARES = st.floats(0.0, 1.0)


@pytest.mark.parametrize("name", RULES)
def test_conformance(name: str) -> None:
    check_criterion(RULES[name], made_up_steps(35, seed=2))


def selected(rule: Criterion, agreement: float) -> Verdict:
    return rule.observe(Step(n_labelled=30, selected_agreement=agreement))


def stop_set(rule: Criterion, *agreements: float) -> list[Verdict]:
    return [rule.observe(Step(n_labelled=20 + t, stop_agreement=a)) for t, a in enumerate(agreements)]


def test_selection_agreement_by_hand() -> None:
    rule = SelectionAgreement(0.9)
    below, at, above = (selected(rule, a) for a in (0.89, 0.9, 0.95))
    assert [v.stop for v in (below, at, above)] == [False, True, True]
    assert (below.value, below.threshold) == (0.89, 0.9)
    assert below.reason == "the agreement of the committee on the selected items, 0.89, is below the level 0.9"
    assert at.reason == "the agreement of the committee on the selected items, 0.9, is at least the level 0.9"


def test_by_default_every_member_must_vote_alike() -> None:
    rule = SelectionAgreement()
    assert selected(rule, committee_agreement([[1, 0, 2]] * 3, n_classes=3)).stop
    assert not selected(rule, committee_agreement([[1, 0, 2], [1, 0, 2], [1, 0, 1]], n_classes=3)).stop


def test_rounding_does_not_keep_a_committee_from_agreeing() -> None:
    assert selected(SelectionAgreement(), 1.0 - 1e-13).stop
    assert not selected(SelectionAgreement(), 1.0 - 1e-11).stop
    both = Step(n_labelled=9, selected_agreement=0.1 + 0.2 - 1e-16, stop_agreement=0.1 + 0.2)
    assert IntrinsicStopping().observe(both).stop


def test_a_level_can_be_tightened() -> None:
    rule = SelectionAgreement(0.8)
    rule.tighten(0.25)
    assert rule.level == pytest.approx(0.95)


def test_validation_set_agreement_by_hand() -> None:
    rule = ValidationSetAgreement(rounds=2)
    verdicts = stop_set(rule, 0.5, 0.7, 0.8, 0.75, 0.8, 0.81, 0.6, 0.6)
    assert [v.ready for v in verdicts] == [False, False, True, True, True, True, True, True]
    # best of the last two less the best before: .8-.5, .8-.7, .8-.8, .81-.8, .81-.8, .6-.81
    assert [v.value for v in verdicts[2:]] == [pytest.approx(x, abs=1e-15) for x in (0.3, 0.1, 0.0, 0.01, 0.01, -0.21)]
    assert [v.stop for v in verdicts] == [False, False, False, False, True, False, False, True]
    assert verdicts[0].reason == "1 of the 3 steps that are needed to measure a rise are done"
    assert verdicts[4].reason == "the rise of the committee's agreement on the stop set, 0, is at most the tolerance 0"
    assert verdicts[5].reason == "the rise of the committee's agreement on the stop set, 0.01, is above the tolerance 0"


def test_a_rise_of_just_the_tolerance_does_not_count() -> None:
    assert stop_set(ValidationSetAgreement(1, 0.1), 0.3, 0.4)[-1].stop  # 0.4 - 0.3 is above 0.1 in floating point
    assert not stop_set(ValidationSetAgreement(1, 0.1), 0.3, 0.41)[-1].stop


def test_an_agreement_that_keeps_rising_never_stops() -> None:
    assert not any(v.stop for v in stop_set(ValidationSetAgreement(), *(t / 50 for t in range(50))))


@given(st.lists(SHARES, min_size=1, max_size=25), st.integers(1, 5), st.floats(0.0, 0.5))
def test_validation_set_agreement_against_the_definition(run: list[float], k: int, tolerance: float) -> None:
    for t, verdict in enumerate(stop_set(ValidationSetAgreement(k, tolerance), *run)):
        seen = run[: t + 1]
        assert verdict.ready == (len(seen) > k)
        assert verdict.stop == (len(seen) > k and max(seen[-k:]) - max(seen[:-k]) <= tolerance + 1e-12)


@given(SHARES, SHARES)
def test_intrinsic_stopping_compares_the_two(selected_one: float, stop_one: float) -> None:
    verdict = IntrinsicStopping().observe(Step(n_labelled=9, selected_agreement=selected_one, stop_agreement=stop_one))
    assert verdict.stop == (selected_one >= stop_one - 1e-12)
    assert verdict.threshold == stop_one
    assert ("is at least the agreement on the stop set" in verdict.reason) == verdict.stop


def test_intrinsic_stopping_by_hand() -> None:
    rule = IntrinsicStopping()
    pairs = [(0.5, 0.9), (0.9, 0.9), (0.95, 0.9)]
    verdicts = [
        rule.observe(Step(n_labelled=20 + t, selected_agreement=s, stop_agreement=v)) for t, (s, v) in enumerate(pairs)
    ]
    assert [v.stop for v in verdicts] == [False, True, True]
    assert verdicts[0].reason == (
        "the agreement of the committee on the selected items, 0.5, is below the agreement on the stop set, 0.9"
    )


@pytest.mark.parametrize("given_field", ["selected_agreement", "stop_agreement"])
def test_intrinsic_stopping_needs_both(given_field: str) -> None:
    with pytest.raises(MissingInputError, match="IntrinsicStopping requires"):
        IntrinsicStopping().observe(Step(n_labelled=3, **{given_field: 0.5}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: SelectionAgreement(1.1), "level must be a number from 0 to 1, not 1.1"),
        (lambda: SelectionAgreement(math.nan), "level must be a number from 0 to 1"),
        (lambda: ValidationSetAgreement(0), "rounds must be a whole number, 1 or more"),
        (lambda: ValidationSetAgreement(tolerance=-0.1), "tolerance must be a number from 0 to below 1"),
        (lambda: ValidationSetAgreement(tolerance=1.0), "tolerance must be a number from 0 to below 1"),
    ],
)
def test_bad_arguments_are_named(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        make()
