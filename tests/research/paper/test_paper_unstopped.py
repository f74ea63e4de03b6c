"""The paper's claims where runs never stop, or where a correlation is undefined."""

from collections.abc import Sequence
from itertools import product
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice_research.data.protocols import PUBLISHED
from suffice_research.paper.claims import FAILS, HOLDS, IN_PART, ClaimFinding, judge
from suffice_research.paper.outcome import RunOutcome

SAME_PLACE = "One threshold stops at about the same place on every data set"
CORRELATES = "The error ratio and the error correlate"
REPEATS = "The published correlations are what"
SETS = ("gpr/protein", "gpr/power_plant", "gpr/gas_emission")
STEPS = 40


def outcome(
    name: str,
    places: Sequence[float | None] = (0.3, 0.2, 0.1),
    *,
    least_at: int = 20,
    correlation: float | None = 0.95,
    seed: int = 1,
    **changes: Any,
) -> RunOutcome:
    """A run of forty steps whose error falls from 11 to 1 until some step, and is a little higher from then on.

    ``places`` are the shares of the fall that are still to come at the stops; None where it never stops.
    """
    model, data = name.split("/")
    thresholds = [f"{each:g}" for each in PUBLISHED[name].thresholds[:3]]
    error = np.append(np.linspace(11.0, 1.0, least_at + 1), np.full(STEPS - least_at - 1, 1.01))
    made: dict[str, Any] = {
        "protocol": "published", "model": model, "data": data, "seed": seed, "arm": None, "features": 4, "pool": 5000,
        "initial": 10, "steps": STEPS, "correlation": correlation,
        "published_correlation": PUBLISHED[name].correlation,
        "stops": dict(zip(thresholds, (None if place is None else 12 for place in places), strict=True)),
        "error_at_stop": dict(
            zip(thresholds, (None if place is None else 1.0 + 10.0 * place for place in places), strict=True)
        ),
        "error_first": 11.0, "error_best": 1.0, "seconds": 1.0, "ratio": np.geomspace(1.0, 0.01, STEPS), "error": error,
        "counted_from": 10,
    }  # fmt: skip
    return RunOutcome(**{**made, **changes})


def finding(claim: str, *outcomes: RunOutcome) -> ClaimFinding:
    (found,) = [each for each in judge(outcomes) if each.claim.startswith(claim)]
    return found


FALLING = STEPS - 1
NEVER = (None, None, None)
STOPPED = [outcome(name) for name in SETS[:2]]


def test_an_error_that_falls_to_the_end_is_no_witness() -> None:
    found = finding(SAME_PLACE, *STOPPED, outcome(SETS[2], NEVER, least_at=FALLING))
    assert found.verdict == HOLDS
    said = " On gas_emission the error falls to the end of the run: not to stop is right, and counts neither way."
    assert found.words.endswith(said)
    # Where there was a stop to make, never to stop is another place.
    missed = finding(SAME_PLACE, *STOPPED, outcome(SETS[2], NEVER))
    assert missed.verdict == FAILS
    assert "counts neither way" not in missed.words
    assert "Threshold 0.05: 0.300 to 0.300, gas_emission never" in missed.words


@pytest.mark.parametrize(("least_at", "expected"), [(37, FAILS), (38, HOLDS), (39, HOLDS)])
def test_the_end_of_a_run_is_its_last_twentieth(least_at: int, expected: str) -> None:
    assert finding(SAME_PLACE, *STOPPED, outcome(SETS[2], NEVER, least_at=least_at)).verdict == expected


def test_only_the_thresholds_that_do_not_stop_count_neither_way() -> None:
    # It stops twice, once elsewhere than the others; falling on does not excuse that.
    found = finding(SAME_PLACE, *STOPPED, outcome(SETS[2], (0.3, 0.9, None), least_at=FALLING))
    assert found.verdict == IN_PART
    elsewhere = finding(SAME_PLACE, *STOPPED, outcome(SETS[2], (0.9, 0.9, None), least_at=FALLING))
    assert elsewhere.verdict == FAILS


def test_a_witness_to_the_contrary_is_heard_all_the_same() -> None:
    others = [outcome(SETS[0]), outcome(SETS[1], (0.9, 0.8, 0.7))]
    assert finding(SAME_PLACE, *others, outcome(SETS[2], NEVER, least_at=FALLING)).verdict == FAILS


def test_whether_the_error_falls_on_is_the_median_over_seeds() -> None:
    others = [outcome(name, seed=seed) for name in SETS[:2] for seed in range(3)]
    for ends, expected in (((20, 39, 39), HOLDS), ((20, 20, 39), FAILS)):
        last = [outcome(SETS[2], NEVER, least_at=end, seed=seed) for seed, end in enumerate(ends)]
        assert finding(SAME_PLACE, *others, *last).verdict == expected


def test_one_data_set_that_is_left_shows_no_common_place() -> None:
    runs = [outcome(SETS[0]), *(outcome(name, NEVER, least_at=FALLING) for name in SETS[1:])]
    everywhere = [outcome(name, NEVER, least_at=FALLING) for name in SETS]
    assert not [each for given in (runs, everywhere) for each in judge(given) if each.claim.startswith(SAME_PLACE)]


PLACES = st.one_of(st.none(), st.sampled_from([0.0, 0.05, 0.1, 0.125, 0.5]))


@given(st.lists(st.tuples(PLACES, PLACES, PLACES, st.booleans()), min_size=3, max_size=3))
def test_the_verdict_is_that_of_a_plain_count(made: list[tuple[Any, Any, Any, bool]]) -> None:
    runs = [
        outcome(name, places, least_at=FALLING if falls else 20)
        for name, (*places, falls) in zip(SETS, made, strict=True)
    ]
    same = total = 0
    for at in range(3):
        witnesses = [
            inf if row[at] is None else row[at]
            for row in made
            if not (row[at] is None and row[3])  # never stopped, and rightly so
        ]
        pairs = product(witnesses, witnesses)
        total += len(witnesses) > 1
        same += len(witnesses) > 1 and all(a < inf and b < inf and abs(a - b) <= 0.1 + 1e-12 for a, b in pairs)
    found = [each.verdict for each in judge(runs) if each.claim.startswith(SAME_PLACE)]
    assert found == ([HOLDS if same == total else IN_PART if 2 * same >= total else FAILS] if total else [])


# ------------------------------------------------------------------------------------- undefined correlations


def correlated(*values: float | None, name: str = "gpr/protein") -> list[RunOutcome]:
    return [outcome(name, correlation=value, seed=seed) for seed, value in enumerate(values, start=1)]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ((None,), "Gaussian process regression on Protein undefined."),
        ((None, None), "Gaussian process regression on Protein undefined."),
        ((None, None, 0.5), "Gaussian process regression on Protein 0.500, undefined in 2."),
        (
            (None, None, None, 0.5, 0.7),
            "Gaussian process regression on Protein 0.600 (0.500 to 0.700), undefined in 3.",
        ),
    ],
)
def test_an_undefined_correlation_is_told_and_counts_as_none(values: tuple[float | None, ...], told: str) -> None:
    found = finding(CORRELATES, *correlated(*values))
    assert found.verdict == FAILS
    assert f"At most that: {told}" in found.words


def test_what_the_paper_excepts_may_be_undefined_too() -> None:
    runs = [outcome("gpr/protein"), *correlated(0.2, None, name="blr/htru2")]
    assert (
        "What the paper excepts: Bayesian logistic regression on HTRU2 0.200, undefined in 1."
        in finding(CORRELATES, *runs).words
    )


def test_an_undefined_correlation_is_not_the_published_one() -> None:
    found = finding(REPEATS, *correlated(None), outcome("brr/protein", correlation=0.9795))
    assert found.verdict == IN_PART
    models = "Gaussian process regression and Bayesian ridge regression"
    assert found.words.startswith(f"{models}: 2 correlations, some of them undefined.")
    assert "Further away than expected: Gaussian process regression on Protein." in found.words
