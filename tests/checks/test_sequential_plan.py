"""Plans for a target: labels first, then a sequential check."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.checks import SequentialTerms, plan_total, spent_alpha
from suffice.checks.sequential_plan import GuaranteePlan
from suffice.checks.sequential_terms import proof_probabilities, typical_answers
from suffice.errors import InvalidValueError
from tests.thoroughness import examples

LATER: dict[str, Any] = {"low": 0.06, "high": 0.12, "reducible": 0.05, "n_labelled": 100, "pool": 4600, "alpha": 0.025}


def mean_answers(target: float, error: float, pool: int, alpha: float) -> float:
    """The exact mean number of answers of a check that is planned with the true error."""
    terms = SequentialTerms.of_share(target, pool=pool, alpha=alpha, expected=error)
    proven = proof_probabilities(terms, [round(error * pool)], pool)[0]
    return float(np.sum(1.0 - np.concatenate([[0.0], proven[:-1]])))


@pytest.mark.parametrize("pool", [300, 1500])
@pytest.mark.parametrize("alpha", [0.05, 0.025, 0.05 / 6])
@pytest.mark.parametrize(
    ("target", "error"), [(0.05, 0.01), (0.05, 0.03), (0.1, 0.04), (0.1, 0.07), (0.2, 0.05), (0.2, 0.15), (0.3, 0.1)]
)
def test_the_typical_number_of_answers_is_near_the_mean(target: float, error: float, alpha: float, pool: int) -> None:
    typical = float(typical_answers(target, np.array([error]), np.array([pool]), alpha)[0])
    mean = mean_answers(target, error, pool, alpha)
    assert typical == pytest.approx(mean, rel=0.4)


def test_a_check_of_too_many_errors_takes_the_pool() -> None:
    assert typical_answers(0.1, np.array([0.1, 0.3]), np.array([500, 500]), 0.05).tolist() == [500.0, 500.0]


@given(
    target=st.floats(0.01, 1.0),
    error=st.floats(0.0, 1.0),
    widths=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
    share=st.floats(0.0, 1.0),
    n=st.integers(1, 5000),
    pool=st.integers(1, 3000),
    number=st.integers(1, 4),
    advised=st.booleans(),
)
@examples(60)
def test_a_plan_is_consistent(
    target: float,
    error: float,
    widths: tuple[float, float],
    share: float,
    n: int,
    pool: int,
    number: int,
    advised: bool,
) -> None:
    low, high = error * (1.0 - widths[0]), error + (1.0 - error) * widths[1]
    found = plan_total(
        target,
        error,
        low=low,
        high=high,
        reducible=share * error,
        n_labelled=n,
        pool=pool,
        alpha=spent_alpha(number),
        check_advised=advised,
    )
    assert 0.0 <= found.success <= 1.0
    assert found.check_now == (found.more_labels == 0)
    if found.more_labels is None:
        assert (found.check_size, found.check_low, found.check_high, found.expected_total) == (None,) * 4
        assert str(found).startswith("No check is likely to prove at most ")
        return
    assert found.check_size is not None
    assert found.check_low is not None
    assert found.check_high is not None
    assert found.check_low <= found.check_size <= found.check_high <= pool
    assert found.expected_total == n + found.more_labels + found.check_size
    assert found.success >= (0.6 if advised else 0.8) - 1e-9
    assert found.error_at_check is not None
    assert found.error_at_check <= error
    assert str(found).startswith("About ")


def test_a_plan_in_words() -> None:
    now = plan_total(0.1, 0.04, low=0.02, high=0.06, reducible=0.01, n_labelled=400, pool=4300, alpha=0.025)
    assert str(now) == (
        "About 520 labels in all: a check of about 120 (53 to 360) now, which succeeds with a probability of 100 %."
    )
    later = plan_total(0.1, 0.09, **LATER)
    assert str(later) == "About 600 labels in all: 200 more, then a check of about 300 (220 to 440)."
    never = plan_total(0.05, 0.12, low=0.08, high=0.16, reducible=0.04, n_labelled=200, pool=4000)
    assert str(never) == (
        "No check is likely to prove at most 5 % before most of the 4,200 items are labelled: about 12 % of the "
        "predictions are wrong now, and more labels lower that to 8 % at best."
    )
    assert never.error_at_check is None
    assert not never.check_now


def test_the_interval_of_a_check_now_holds_its_number_of_answers() -> None:
    """The number of answers lies in the interval with a probability of at least 80 %, over the possible errors."""
    found = plan_total(0.1, 0.04, low=0.02, high=0.06, reducible=0.0, n_labelled=400, pool=2000, alpha=0.025)
    assert found.check_now
    rng = np.random.default_rng(0)
    mean, deviation = 0.04, 0.04 / 3.29
    labels = mean * (1.0 - mean) / deviation**2 - 1.0
    terms = SequentialTerms.of_share(0.1, pool=2000, alpha=0.025, expected=0.04)
    inside = 0
    for _ in range(300):
        wrong = np.zeros(2000, dtype=bool)
        wrong[: round(2000 * rng.beta(mean * labels, (1.0 - mean) * labels))] = True
        ended = terms.proof(rng.permutation(wrong))
        assert found.check_low is not None
        assert found.check_high is not None
        inside += ended is not None and found.check_low <= ended <= found.check_high
    # More than 80 %, because the number of answers has few likely values.
    assert inside / 300 >= 0.8


def test_an_uncertain_estimate_delays_the_check() -> None:
    def planned(low: float, high: float) -> GuaranteePlan:
        return plan_total(0.1, 0.06, low=low, high=high, reducible=0.01, n_labelled=100, pool=3000, alpha=0.025)

    known, unknown = planned(0.055, 0.065), planned(0.01, 0.13)
    assert known.check_now
    assert unknown.more_labels
    assert unknown.expected_total is not None
    assert known.expected_total is not None
    assert known.success > 0.99


def test_a_check_that_was_advised_remains_advised_unless_a_later_one_is_clearly_better() -> None:
    given = {"low": 0.02, "high": 0.1, "reducible": 0.01, "n_labelled": 100, "pool": 2000, "alpha": 0.025}
    fresh, advised = plan_total(0.1, 0.06, **given), plan_total(0.1, 0.06, **given, check_advised=True)
    assert fresh.more_labels
    assert advised.check_now
    assert plan_total(0.1, 0.09, **LATER, check_advised=True).more_labels
    # If no check is likely to succeed now, advice does not help.
    hopeless = {"low": 0.08, "high": 0.16, "reducible": 0.04, "n_labelled": 200, "pool": 4000}
    assert not plan_total(0.05, 0.12, **hopeless, check_advised=True).check_now


@given(given=st.integers(0, 600))
def test_a_plan_counts_down(given: int) -> None:
    made = plan_total(0.1, 0.09, **LATER)
    assert made.more_labels is not None
    later = made.after(100 + given, 4600 - given)
    assert (later.n_labelled, later.pool) == (100 + given, 4600 - given)
    assert later.more_labels == max(0, made.more_labels - given)
    assert later.check_size == made.check_size
    if given <= made.more_labels:
        assert later.expected_total == made.expected_total


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": 1.5}, "target must be a number from 0 to 1"),
        ({"error": -0.1}, "error must be a number from 0 to 1"),
        ({"low": -0.1}, "low must be a number from 0 to 1"),
        ({"high": 1.1}, "high must be a number from 0 to 1"),
        ({"reducible": 0.3}, "reducible must be a number from 0 to error=0.2"),
        ({"n_labelled": 0}, "n_labelled must be a whole number"),
        ({"pool": 0}, "pool must be a whole number"),
        ({"alpha": 0.0}, "alpha"),
    ],
)
def test_bad_arguments_of_a_plan(change: dict[str, float], message: str) -> None:
    arguments: dict[str, Any] = {"target": 0.1, "error": 0.2, "reducible": 0.1, "n_labelled": 10, "pool": 100}
    with pytest.raises(InvalidValueError, match=message):
        plan_total(**(arguments | change))


def test_extreme_targets() -> None:
    everything = plan_total(1.0, 1.0, reducible=0.0, n_labelled=1, pool=200)
    assert (everything.more_labels, everything.check_size, everything.success) == (0, 0, 1.0)
    for error in (0.0, 0.1):
        assert plan_total(0.0, error, reducible=0.0, n_labelled=1, pool=200).expected_total is None
