"""The paper's claims judged: made-up runs at and around each boundary, and runs that cannot speak to a claim."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice_research.data.protocols import PUBLISHED
from suffice_research.paper.claims import FAILS, HOLDS, IN_PART, ClaimFinding, judge
from suffice_research.paper.outcome import RunOutcome, grouped, middle

REPEATS = "The published correlations are what"
CORRELATES = "The error ratio and the error correlate"
SAME_PLACE = "One threshold stops at about the same place on every data set"
LESS_IS_MORE = "Where the error rises again"
LEVELS_OFF = "The network's error ratio levels off"

#: Sixteen steps, of which the last six count; ratio and error fall all the while.
RATIO = np.append(np.ones(10), [0.9, 0.7, 0.5, 0.3, 0.2, 0.1])
FALLING = np.append(np.full(10, 11.0), [9.0, 7.0, 5.0, 3.0, 2.0, 1.0])


def outcome(
    name: str,
    correlation: float | None = 0.95,
    *,
    protocol: str = "published",
    seed: int = 1,
    arm: str | None = None,
    places: Mapping[str, float | None] | Sequence[float | None] = (0.3, 0.2, 0.1),
    error: Any = FALLING,
    **changes: Any,
) -> RunOutcome:
    """A run whose error falls from 11 to 1; ``places`` are the shares of that fall that are still to come."""
    model, data = name.split("/")
    thresholds = [f"{each:g}" for each in PUBLISHED[name].thresholds[:3]]
    at = dict(places) if isinstance(places, Mapping) else dict(zip(thresholds, places, strict=True))
    made: dict[str, Any] = {
        "protocol": protocol, "model": model, "data": data, "seed": seed, "arm": arm, "features": 4, "pool": 5000,
        "initial": 10, "steps": 16, "correlation": correlation, "published_correlation": PUBLISHED[name].correlation,
        "stops": {threshold: None if place is None else 12 for threshold, place in at.items()},
        "error_at_stop": {name: None if place is None else 1.0 + 10.0 * place for name, place in at.items()},
        "error_first": 11.0, "error_best": 1.0, "seconds": 1.0, "ratio": RATIO,
        "error": np.asarray(error, dtype=float), "counted_from": 10,
    }  # fmt: skip
    return RunOutcome(**{**made, **changes})


def finding(claim: str, outcomes: Sequence[RunOutcome], protocol: str = "published") -> ClaimFinding | None:
    found = [each for each in judge(outcomes) if each.claim.startswith(claim) and each.protocol == protocol]
    assert len(found) <= 1
    return found[0] if found else None


def verdict(claim: str, *outcomes: RunOutcome, protocol: str = "published") -> str | None:
    found = finding(claim, outcomes, protocol)
    return None if found is None else found.verdict


def test_nothing_was_run() -> None:
    assert judge([]) == []


# --------------------------------------------------------------------------------- the published correlations again


@pytest.mark.parametrize(
    ("name", "off", "expected"),
    [
        ("gpr/protein", 0.0, HOLDS),
        ("gpr/protein", 5e-5, HOLDS),
        ("gpr/protein", -5e-5, HOLDS),
        ("gpr/protein", 1e-4, FAILS),
        ("brr/gas_emission", -1e-4, FAILS),
        ("blr/skin", 0.0, HOLDS),
        ("blr/skin", -0.049, HOLDS),
        ("blr/skin", -0.051, FAILS),
        ("blr/htru2", 0.049, HOLDS),
        ("bdnn/mnist", 0.04, HOLDS),
        ("bdnn/mnist", -0.06, FAILS),
    ],
)
def test_how_close_the_published_correlation_must_be(name: str, off: float, expected: str) -> None:
    published = PUBLISHED[name].correlation
    assert published is not None
    assert verdict(REPEATS, outcome(name, published + off)) == expected


def test_some_are_met_and_some_are_not() -> None:
    met = [outcome("gpr/power_plant", 0.9482), outcome("blr/skin", 0.98)]
    found = finding(REPEATS, [*met, outcome("brr/protein", 0.97), outcome("blr/htru2", None)])
    assert found is not None
    assert found.verdict == IN_PART
    assert (
        "Further away than expected: Bayesian ridge regression on Protein, Bayesian logistic regression on HTRU2."
        in found.words
    )
    assert "Bayesian logistic regression on Skin 0.980 (0.987)" in found.words
    assert "Bayesian logistic regression on HTRU2 undefined (0.2434)" in found.words
    assert verdict(REPEATS, *met) == HOLDS


def test_a_correlation_that_is_undefined_is_not_told_as_infinite() -> None:
    found = finding(REPEATS, [outcome("gpr/protein", None), outcome("brr/protein", 0.9795)])
    assert found is not None
    assert found.verdict == IN_PART
    assert "inf " not in found.words


def test_only_the_authors_seed_and_protocol_can_repeat_them() -> None:
    assert verdict(REPEATS, outcome("gpr/protein", 0.5, seed=2)) is None
    assert verdict(REPEATS, outcome("gpr/protein", 0.5, seed=2), outcome("gpr/protein", 0.9695)) == HOLDS
    corrected = outcome("gpr/protein", 0.9695, protocol="corrected", seed=1, arm="bought")
    assert verdict(REPEATS, corrected) is verdict(REPEATS, corrected, protocol="corrected") is None


# ------------------------------------------------------------------------------------------- correlation above 0.9


@pytest.mark.parametrize(
    ("correlation", "expected"), [(0.9, FAILS), (np.nextafter(0.9, 1.0), HOLDS), (0.89, FAILS), (None, FAILS)]
)
def test_more_than_0_9_is_more(correlation: float | None, expected: str) -> None:
    assert verdict(CORRELATES, outcome("gpr/protein", correlation)) == expected


def spread(
    name: str, *correlations: float | None, arm: str | None = None, protocol: str = "corrected"
) -> list[RunOutcome]:
    return [
        outcome(name, each, seed=seed, arm=arm, protocol=protocol) for seed, each in enumerate(correlations, start=1)
    ]


@pytest.mark.parametrize(
    ("correlations", "expected"),
    [
        ((0.95, 0.95, 0.1), HOLDS),
        ((0.95, 0.1, 0.1), FAILS),
        ((0.92, 0.89), HOLDS),  # the middle is 0.905
        ((0.92, 0.88), FAILS),  # the middle is 0.9
        ((0.95, None), FAILS),
        ((0.95, 0.95, None), HOLDS),
        ((None,), FAILS),
    ],
)
def test_the_median_over_seeds_counts(correlations: tuple[float | None, ...], expected: str) -> None:
    assert verdict(CORRELATES, *spread("gpr/protein", *correlations), protocol="corrected") == expected


@pytest.mark.parametrize(
    ("high", "low", "expected"),
    [(4, 0, HOLDS), (3, 1, IN_PART), (2, 2, IN_PART), (1, 2, FAILS), (0, 1, FAILS), (1, 1, IN_PART)],
)
def test_of_several_cases(high: int, low: int, expected: str) -> None:
    names = list(PUBLISHED)
    runs = [outcome(name, 0.95) for name in names[:high]] + [outcome(name, 0.5) for name in names[high : high + low]]
    found = finding(CORRELATES, runs)
    assert found is not None
    assert found.verdict == expected
    assert f"in {high} of {high + low} cases" in found.words


def test_htru2_is_excepted() -> None:
    assert verdict(CORRELATES, outcome("blr/htru2", 0.2)) is None
    found = finding(CORRELATES, [outcome("gpr/protein"), outcome("blr/htru2", 0.256)])
    assert found is not None
    assert found.verdict == HOLDS
    assert "What the paper excepts: Bayesian logistic regression on HTRU2 0.256." in found.words


def test_arms_are_cases_of_their_own() -> None:
    runs = spread("brr/protein", 0.95, 0.97, 0.96, arm="bought") + spread("brr/protein", 0.7, 0.5, 0.6, arm="outside")
    found = finding(CORRELATES, runs, "corrected")
    assert found is not None
    assert found.verdict == IN_PART
    assert "in 1 of 2 cases" in found.words
    assert "Bayesian ridge regression on Protein, outside 0.600 (0.500 to 0.700)" in found.words


def test_one_seed_has_no_range() -> None:
    found = finding(CORRELATES, [outcome("gpr/protein", 0.5)])
    assert found is not None
    assert "Gaussian process regression on Protein 0.500." in found.words


# --------------------------------------------------------------------------------------- the same place everywhere


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ((0.3, 0.2, 0.1), HOLDS),
        ((0.2001, 0.1001, 0.0), HOLDS),
        ((0.3, 0.2, 0.21), IN_PART),
        ((0.3, 0.31, 0.21), FAILS),
        ((0.41, 0.31, 0.21), FAILS),
        ((0.3, 0.2, None), IN_PART),
        ((0.3, None, None), FAILS),
        ((None, None, None), FAILS),
    ],
)
def test_within_a_tenth_of_the_fall(second: tuple[float | None, ...], expected: str) -> None:
    first = outcome("gpr/protein", places=(0.3, 0.2, 0.1))
    assert verdict(SAME_PLACE, first, outcome("gpr/power_plant", places=second)) == expected


def test_a_tenth_exactly_is_the_same_place() -> None:
    first = outcome("brr/protein", places=(0.0, 0.0, 0.0))
    assert verdict(SAME_PLACE, first, outcome("brr/power_plant", places=(0.1, 0.1, 0.1))) == HOLDS
    assert verdict(SAME_PLACE, first, outcome("brr/power_plant", places=(0.1001, 0.1001, 0.1001))) == FAILS


def test_what_is_told_of_the_places() -> None:
    runs = [outcome("gpr/protein", places=(0.3, 0.2, None)), outcome("gpr/power_plant", places=(0.35, 0.05, None))]
    found = finding(SAME_PLACE, [*runs, outcome("gpr/gas_emission", places=(0.31, None, None))])
    assert found is not None
    assert "Threshold 0.05: 0.300 to 0.350; threshold 0.04: 0.050 to 0.200, gas_emission never;" in found.words
    assert "threshold 0.03: no data set stops." in found.words
    assert found.claim.endswith(": Gaussian process regression (GPR)")


def test_one_data_set_or_none_has_no_place_to_share() -> None:
    assert verdict(SAME_PLACE, outcome("gpr/protein"), outcome("gpr/protein", seed=2)) is None
    assert verdict(SAME_PLACE, outcome("gpr/protein"), outcome("brr/power_plant")) is None
    assert verdict(SAME_PLACE, outcome("bdnn/mnist")) is None
    assert verdict(SAME_PLACE, outcome("gpr/protein"), outcome("gpr/protein", protocol="corrected")) is None


def test_each_model_is_judged_by_its_own_thresholds() -> None:
    runs = [outcome(name) for name in PUBLISHED if not name.startswith("bdnn")]
    found = [each for each in judge(runs) if each.claim.startswith(SAME_PLACE)]
    assert [each.claim[-5:] for each in found] == ["(GPR)", "(BRR)", "(BLR)"]
    for each, thresholds in zip(found, ("0.05 0.04 0.03", "0.02 0.015 0.01", "0.3 0.2 0.1"), strict=True):
        assert all(f"threshold {threshold}: " in each.words.lower() for threshold in thresholds.split())


def test_the_place_of_a_data_set_is_the_median_over_seeds() -> None:
    first = [outcome("blr/skin", seed=seed, places=(place, 0.2, 0.1)) for seed, place in enumerate((0.3, 0.9, 0.31))]
    second = [outcome("blr/htru2", seed=seed, places=(0.3, 0.2, 0.1)) for seed in range(3)]
    assert verdict(SAME_PLACE, *first, *second) == HOLDS
    # Two of three seeds never stop: neither does the data set.
    never = [outcome("blr/skin", seed=seed, places=(place, 0.2, 0.1)) for seed, place in enumerate((0.3, None, None))]
    assert verdict(SAME_PLACE, *never, *second) == IN_PART
    once = [outcome("blr/skin", seed=seed, places=(place, 0.2, 0.1)) for seed, place in enumerate((0.3, 0.3, None))]
    assert verdict(SAME_PLACE, *once, *second) == HOLDS


def test_arms_have_their_own_places() -> None:
    def both(arm: str, second: tuple[float, ...]) -> list[RunOutcome]:
        options: dict[str, Any] = {"protocol": "corrected", "arm": arm}
        return [outcome("gpr/protein", **options), outcome("gpr/power_plant", places=second, **options)]

    runs = both("bought", (0.3, 0.2, 0.1)) + both("outside", (0.9, 0.8, 0.7))
    found = finding(SAME_PLACE, runs, "corrected")
    assert found is not None
    assert found.verdict == IN_PART
    assert "Labels bought: threshold 0.05: 0.300 to 0.300" in found.words
    assert "Labels outside: threshold 0.05: 0.300 to 0.900" in found.words


# --------------------------------------------------------------------------------------------- less is more


def rising(
    last: float, before: Sequence[float] = (6.0, 5.0, 4.0, 3.0, 1.0), name: str = "blr/htru2", **options: Any
) -> RunOutcome:
    """A run whose error is 1 at its least, after five steps that count, and ``last`` in the end."""
    return outcome(name, error=[*[9.0] * 10, *before, last], **options)


def test_an_error_that_hardly_rises_says_nothing() -> None:
    assert verdict(LESS_IS_MORE, rising(1.0), rising(1.049, name="blr/skin")) is None
    assert verdict(LESS_IS_MORE, rising(1.051)) == HOLDS


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ((6.0, 5.0, 4.0, 3.0, 1.0), HOLDS),  # 0.97
        ((5.0, 6.0, 2.0, 5.0, 1.0), IN_PART),  # 0.77
        ((3.0, 6.0, 7.0, 6.0, 1.0), FAILS),  # 0.30
        ((2.0, 5.0, 6.0, 9.0, 1.0), FAILS),  # below 0
    ],
)
def test_the_correlation_up_to_the_least_error(before: tuple[float, ...], expected: str) -> None:
    found = finding(LESS_IS_MORE, [rising(2.0, before)])
    assert found is not None
    correlation = np.corrcoef(RATIO[10:15], before)[0, 1]
    assert (correlation > 0.9, correlation > 0.5) == (expected == HOLDS, expected != FAILS)
    assert found.verdict == expected
    assert (
        f"Bayesian logistic regression on HTRU2: 100% above by the end, correlation up to the least {correlation:.3f}."
        in found.words
    )


def test_an_error_that_is_least_at_once_has_no_correlation() -> None:
    assert verdict(LESS_IS_MORE, outcome("blr/skin", error=[1.0, *[2.0] * 15])) == FAILS


def test_only_logistic_regressions_count_and_all_of_them() -> None:
    assert verdict(LESS_IS_MORE, rising(2.0, name="gpr/protein")) is None
    found = finding(LESS_IS_MORE, [rising(2.0), rising(1.5, name="blr/skin"), rising(1.0, name="blr/grid_stability_c")])
    assert found is not None
    assert "in 2 of 3 cases" in found.words
    low = rising(2.0, (2.0, 5.0, 6.0, 9.0, 1.0), name="blr/skin")
    assert verdict(LESS_IS_MORE, rising(2.0), low) == FAILS
    some = rising(2.0, (5.0, 6.0, 2.0, 5.0, 1.0), name="blr/skin")
    assert verdict(LESS_IS_MORE, rising(2.0), some) == IN_PART


# --------------------------------------------------------------------------------------------------- the network


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([(0.1, None, None)], HOLDS),
        ([(0.9, None, None)], HOLDS),  # at whatever time
        ([(0.0, None, None), (0.05, None, None), (0.9, None, None)], HOLDS),
        ([(0.05, None, None), (None, None, None)], IN_PART),
        ([(0.05, 0.02, None)], IN_PART),
        ([(0.05, None, None), (0.05, 0.02, 0.01)], IN_PART),
        ([(None, None, None)], FAILS),
    ],
)
def test_the_network_levels_off(runs: list[tuple[float | None, ...]], expected: str) -> None:
    made = [outcome("bdnn/mnist", seed=seed, places=places) for seed, places in enumerate(runs)]
    assert verdict(LEVELS_OFF, *made) == expected
    assert verdict(LEVELS_OFF, outcome("gpr/protein")) is None


def test_what_is_told_of_the_network() -> None:
    runs = [outcome("bdnn/mnist", seed=seed, places=(0.25, None, None)) for seed in range(3)]
    found = finding(LEVELS_OFF, runs)
    assert found is not None
    assert "3 of 3 runs stop at 0.2, at round 12 (12 to 12)" in found.words
    assert "with an excess of 0.250 (0.250 to 0.250);" in found.words
    assert "; 0 of 6 stop at 0.15 or 0.1. The last ten rounds have a ratio of" in found.words


# ------------------------------------------------------------------------------------------------- and in general


def test_findings_on_what_was_published_come_first() -> None:
    runs = [outcome(name, protocol=protocol) for protocol in ("corrected", "published") for name in PUBLISHED]
    found = judge(runs)
    assert [each.protocol for each in found] == ["published"] * 6 + ["corrected"] * 5
    assert {each.claim for each in found if each.protocol == "published"} >= {
        each.claim for each in found if each.protocol == "corrected"
    }


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3.0], 3.0),
        ([1.0, 2.0], 1.5),
        ([5.0, 1.0, 2.0], 2.0),
        ([np.inf], np.inf),
        ([1.0, np.inf], np.inf),
        ([1.0, 2.0, np.inf], 2.0),
        ([1.0, 2.0, 3.0, np.inf], 3.0),
        ([1.0, np.inf, np.inf], np.inf),
    ],
)
def test_the_middle_with_some_that_never_come(values: list[float], expected: float) -> None:
    assert middle(values[::-1]) == expected


def test_runs_that_differ_in_their_seed_alone() -> None:
    runs = [outcome("gpr/protein", seed=seed, arm=arm) for seed in (2, 1) for arm in ("outside", "bought")]
    found = grouped([outcome("brr/protein"), *runs, outcome("gpr/protein", protocol="corrected")], "published")
    assert [(each.name, each.arm, [run.seed for run in each.outcomes]) for each in found] == [
        ("gpr/protein", "bought", [1, 2]),
        ("gpr/protein", "outside", [1, 2]),
        ("brr/protein", None, [1]),
    ]


PLACES = st.lists(st.one_of(st.none(), st.floats(0.0, 2.0)), min_size=3, max_size=3)
ERRORS = st.lists(st.floats(0.1, 9.0), min_size=16, max_size=16)
KINDS = st.sampled_from([(None, "published"), ("bought", "corrected"), ("outside", "corrected")])
MADE = st.tuples(st.sampled_from(list(PUBLISHED)), st.floats(-1.0, 1.0), PLACES, ERRORS, KINDS, st.integers(0, 3))


@given(st.lists(MADE, max_size=12))
def test_whatever_was_measured_is_judged(made: list[Any]) -> None:
    runs = []
    for name, correlation, places, error, (arm, protocol), seed in made:
        options: dict[str, Any] = {"arm": arm, "protocol": protocol, "seed": seed, "error_best": min(error)}
        runs.append(outcome(name, correlation, places=places, error=error, **options))
    for each in judge(runs):
        assert each.verdict in (HOLDS, IN_PART, FAILS)
        assert not {"nan", "inf", "None"} & set(re.findall(r"\w+", each.words))
        assert each.words.endswith(".")
