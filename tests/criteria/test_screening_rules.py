"""Rules for screening, against brute force with rational arithmetic, definitions, and simulated screenings."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, stats

from suffice.criteria import (
    ConsecutiveIrrelevant,
    Criterion,
    Knee,
    PoissonRecall,
    QuantCI,
    QuantileRecall,
    RecallTest,
    Safe,
    Step,
    Verdict,
    criterion_from_dict,
    relevance_facts,
)
from suffice.criteria.screening import _ExponentialRate, _poisson_quantile, least_lower_tail
from suffice.errors import InvalidValueError, MissingInputError


def screened(
    rule: Criterion, relevance: Any, *, size: int | None = None, batch: int = 1, **others: Any
) -> list[Verdict]:
    """The verdicts of a rule on a screening, with a look after each label or after each batch."""
    found = np.cumsum(relevance)
    pool = len(found) if size is None else size
    return [
        rule.observe(Step(n_labelled=n, relevant_found=int(found[n - 1]), pool_size=pool, **others))
        for n in range(batch, len(found) + 1, batch)
    ]


def stop_of(verdicts: list[Verdict]) -> int | None:
    return next((verdict.n_labelled for verdict in verdicts if verdict.stop), None)


def tail(population: int, positives: int, size: int, most: int) -> Fraction:
    """``P[Hyp(population, positives, size) <= most]`` in rational arithmetic."""
    if positives > population:
        return Fraction(0)
    terms = (math.comb(positives, j) * math.comb(population - positives, size - j) for j in range(min(most, size) + 1))
    return Fraction(sum(terms), math.comb(population, size))


def least_p(relevance: list[int], size: int, recall: Fraction) -> Fraction:
    """The least probability over all runs at the end, from the definition."""
    s, r = len(relevance), sum(relevance)
    found = []
    for n in range(1, s + 1):
        k = sum(relevance[s - n :])
        positives = math.floor(r / recall - (r - k) + 1)
        found.append(tail(size - (s - n), positives, n, k))
    return min(found)


def some_screening(rng: np.random.Generator, size: int, share: float, skill: float) -> NDArray[np.intp]:
    """Relevance in the order of a ranking with some skill, 0 for a random order."""
    relevant = rng.random(size) < share
    return np.asarray(relevant[np.argsort(-skill * relevant + rng.gumbel(size=size))], dtype=np.intp)


# The test.


@given(
    st.lists(st.integers(0, 1), min_size=1, max_size=25),
    st.integers(0, 30),
    st.sampled_from(["0.5", "0.7", "0.8", "0.9", "0.95", "0.99"]),
)
def test_the_least_probability_is_that_of_all_runs(relevance: list[int], left: int, recall: str) -> None:
    size = len(relevance) + left
    verdicts = screened(RecallTest(at_least=float(recall)), relevance, size=size)
    for n in {len(relevance), (len(relevance) + 1) // 2}:
        exact = least_p(relevance[:n], size, Fraction(recall))
        assert verdicts[n - 1].value == pytest.approx(float(exact), rel=1e-9, abs=1e-300)


@given(st.integers(1, 60), st.integers(0, 60), st.integers(1, 12), st.integers(0, 60))
def test_tails_are_exact(size: int, relevant: int, missed: int, left: int) -> None:
    k = min(relevant, size)
    exact = tail(size + left, k + missed, size, k) if missed <= left else Fraction(0)
    assert least_lower_tail([size], [k], missed, left) == pytest.approx(float(exact), rel=1e-10, abs=1e-300)


@pytest.mark.parametrize(
    ("size", "relevant", "missed", "left"),
    [(200_000, 300, 120, 800_000), (50_000, 0, 53, 950_000), (400_000, 9000, 900, 600_000), (990_000, 40, 3, 10_000)],
)
def test_tails_of_a_million_items(size: int, relevant: int, missed: int, left: int) -> None:
    found = least_lower_tail([size], [relevant], missed, left)
    # The sum of all terms in integers, by their ratio.
    positives, population = relevant + missed, size + left
    scale = 10**60
    term, total = scale, 0
    for j in range(relevant, -1, -1):
        total += term
        room = population - positives - size + j
        term = term * j * room // ((positives - j + 1) * (size - j + 1))
    log_first = stats.hypergeom.logpmf(relevant, population, positives, size)
    assert math.log(found) == pytest.approx(log_first + math.log(total) - math.log(scale), abs=1e-6)


def test_the_test_is_exact_where_the_quotient_is_a_whole_number() -> None:
    # 19 of 20 is a recall of .95; 21 items would make it lower. So 2 are missed.
    verdict = screened(RecallTest(at_least=0.95), [1] * 19 + [0] * 40, size=100)[-1]
    assert verdict.value == pytest.approx(float(tail(81, 2, 40, 0)), rel=1e-12)
    for found in range(1, 400):
        missed = math.floor(Fraction(found) / Fraction("0.95")) + 1 - found
        assert Fraction(found, found + missed) < Fraction("0.95") <= Fraction(found, found + missed - 1)


def test_a_stop_of_the_test_says_what_only_a_random_check_covers() -> None:
    verdicts = screened(RecallTest(at_least=0.8), [1] * 20 + [0] * 200, size=240)
    stops = [verdict for verdict in verdicts if verdict.stop]
    assert stops
    assert len(stops) < len(verdicts)
    said = "only a random check covers relevant items that are ranked last."
    assert all(str(verdict).endswith(f"; {said}") == verdict.stop for verdict in verdicts)


def test_a_batch_is_judged_like_its_end() -> None:
    rng = np.random.default_rng(0)
    relevance = some_screening(rng, 300, 0.1, 3.0)
    single, batches = (screened(RecallTest(0.8), relevance, batch=batch) for batch in (1, 10))
    # A batch hides some runs, so that its probability is not smaller.
    assert all(batch.value >= single[batch.n_labelled - 1].value - 1e-12 for batch in batches)  # type: ignore[operator]


def test_nothing_relevant_stops_the_test_only_near_the_end() -> None:
    verdicts = screened(RecallTest(), [0] * 200)
    assert stop_of(verdicts) == 191
    assert verdicts[0].value == pytest.approx(199 / 200)


def test_a_level_of_significance_holds_for_one_run_drawn_at_random() -> None:
    rng = np.random.default_rng(1)
    false = 0
    for _ in range(2000):
        relevance = np.zeros(200, dtype=int)
        relevance[rng.choice(200, 20, replace=False)] = 1
        # One look, at a place chosen in advance, with the run of all items: 60 % are screened at random.
        found = int(relevance[:120].sum())
        missed = math.floor(found / Fraction("0.7")) + 1 - found
        rejected = least_lower_tail([120], [found], missed, 80) < 0.05
        false += bool(rejected and found / 20 < 0.7)
    assert false / 2000 <= 0.06


def test_many_looks_are_cheap() -> None:
    rng = np.random.default_rng(2)
    relevance = some_screening(rng, 100_000, 0.02, 4.0)
    rule, found = RecallTest(), np.cumsum(relevance)
    for n in range(1, 100_000, 500):
        rule.observe(Step(n_labelled=n, relevant_found=int(found[n - 1]), pool_size=1_000_000))
    assert len(rule.counts) <= found[-1]


# The control sample.


@given(st.integers(1, 150), st.sampled_from(["0.5", "0.8", "0.9", "0.95"]), st.sampled_from(["0.8", "0.9", "0.95"]))
def test_the_required_number_is_exact(sample: int, recall: str, confidence: str) -> None:
    tau, level = Fraction(recall), Fraction(confidence)
    if tau**sample > 1 - level:
        with pytest.raises(InvalidValueError, match="sample must be at least"):
            QuantileRecall(sample, float(recall), float(confidence))
        return
    chances = [math.comb(sample, i) * tau**i * (1 - tau) ** (sample - i) for i in range(sample + 1)]
    least = next(j for j in range(1, sample + 1) if sum(chances[:j]) >= level)
    assert QuantileRecall(sample, float(recall), float(confidence)).required() == least


def test_the_least_samples_of_the_paper() -> None:
    assert [QuantileRecall.least_sample(tau) for tau in (0.5, 0.7, 0.8, 0.9, 0.95)] == [5, 9, 14, 29, 59]
    # 0.8 ** 1 is the level itself.
    assert QuantileRecall.least_sample(0.8, 0.2) == 1


def test_the_control_sample_keeps_its_confidence_with_a_look_after_every_label() -> None:
    rng = np.random.default_rng(3)
    below = 0
    for _ in range(1000):
        # Places of 200 relevant items in the order of the screening; 30 of them are the control sample.
        control = np.sort(rng.choice(200, 30, replace=False))
        needed = QuantileRecall(30, 0.8).required()
        below += (control[needed - 1] + 1) / 200 < 0.8
    assert below / 1000 <= 0.05


def test_more_control_items_than_there_are() -> None:
    with pytest.raises(InvalidValueError, match="control_found is 31"):
        QuantileRecall(30, 0.8).observe(Step(n_labelled=100, control_found=31))


# Probabilities.


def test_the_interval_of_the_probabilities_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(4)
    p, labelled = rng.random(50), rng.random(50) < 0.5
    facts = relevance_facts(p, labelled)
    a, b = p[labelled].sum(), p[~labelled].sum()
    v_a, v_b = (p * (1 - p))[labelled].sum(), (p * (1 - p))[~labelled].sum()
    variance = v_a / (a + b) ** 2 + a**2 * (v_a + v_b) / (a + b) ** 4
    verdict = QuantCI(0.5, deviations=1.5).observe(Step(n_labelled=25, **facts))
    assert verdict.value == pytest.approx(a / (a + b) - 1.5 * math.sqrt(variance))
    assert QuantCI(0.5, deviations=0.0).observe(Step(n_labelled=25, **facts)).value == pytest.approx(a / (a + b))


def test_a_model_that_expects_nothing_is_not_judged() -> None:
    facts = relevance_facts(np.zeros(4), np.array([True, False, False, True]))
    verdict = QuantCI().observe(Step(n_labelled=2, **facts))
    assert not verdict.stop
    assert not verdict.ready


@pytest.mark.parametrize(
    ("p", "labelled", "said"),
    [
        ([0.5, 1.5], [True, False], "from 0 to 1"),
        ([[0.5]], [[True]], "from 0 to 1"),
        ([0.5], [1], "True or False"),
        ([0.5, 0.5], [True], "each of the 2 items"),
    ],
)
def test_wrong_probabilities_are_refused(p: Any, labelled: Any, said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        relevance_facts(p, labelled)


# The knee.


def slow_knee(relevance: Any) -> float:
    """The slope ratio at the point farthest above the chord, over all points."""
    found, s = np.cumsum(relevance), len(relevance)
    slope = found[-1] / s
    i = int(np.argmax(found - slope * np.arange(1, s + 1))) + 1
    return 0.0 if i == s else float(found[i - 1] / i / ((1 + found[-1] - found[i - 1]) / (s - i)))


@given(st.integers(0, 10_000))
def test_the_knee_is_that_of_the_whole_curve(seed: int) -> None:
    relevance = some_screening(np.random.default_rng(seed), 120, 0.3, 4.0)
    relevance[0] = 1
    verdicts = screened(Knee(least_screened=0), relevance)
    for n in (1, 40, 120):
        assert verdicts[n - 1].value == pytest.approx(slow_knee(relevance[:n]))
        assert verdicts[n - 1].threshold == 156 - min(int(relevance[:n].sum()), 150)


def test_the_knee_waits_for_enough_items() -> None:
    relevance = [1] * 200 + [0] * 1300
    assert stop_of(screened(Knee(), relevance)) == 1000
    first = next(s for s in range(201, 1500) if 1.0 / (1 / (s - 200)) >= 6)
    assert stop_of(screened(Knee(least_screened=0), relevance)) == first


# The Poisson process.


def test_the_rate_is_the_one_of_least_squares() -> None:
    rng = np.random.default_rng(5)
    edges = np.arange(11) * 40.0

    def mean_rate(_: Any, a: float, k: float) -> Any:
        return a * -np.diff(np.exp(-k * edges)) / (40.0 * k)

    for _ in range(20):
        a, k = rng.uniform(0.2, 0.9), rng.uniform(0.001, 0.02)
        counts = rng.poisson(40.0 * mean_rate(None, a, k))
        rate = _ExponentialRate.fitted(np.concatenate([[0], np.cumsum(counts)]), 40.0)
        (other_a, other_k), _ = optimize.curve_fit(mean_rate, edges[1:], counts / 40.0, p0=(a, k))
        assert rate.k == pytest.approx(other_k, rel=1e-3, abs=1e-6)
        assert rate.integral(1000.0) == pytest.approx(other_a * -np.expm1(-other_k * 1000.0) / other_k, rel=1e-3)


def test_all_relevant_items_in_the_first_window() -> None:
    rate = _ExponentialRate.fitted(np.array([0, 30, 30, 30, 30]), 100.0)
    assert rate.integral(100.0) == pytest.approx(30.0)
    assert rate.integral(10_000.0) == pytest.approx(30.0)


def test_a_rate_that_rises_counts_as_constant() -> None:
    rate = _ExponentialRate.fitted(np.array([0, 1, 3, 6, 10]), 10.0)
    assert rate.k == 0.0
    assert rate.integral(100.0) == pytest.approx(100.0 * rate.first)


@given(st.floats(1e-6, 1e6), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_the_quantile_of_a_poisson_distribution(mean: float, probability: float) -> None:
    assert _poisson_quantile(mean, probability) == stats.poisson.ppf(probability, mean)


@pytest.mark.slow
def test_the_process_stops_when_nothing_comes_any_more() -> None:
    rng = np.random.default_rng(6)
    relevance = (rng.random(2000) < 0.8 * np.exp(-np.arange(2000) / 60.0)).astype(int)
    verdicts = screened(PoissonRecall(at_least=0.8, least_share=0.0), relevance)
    stop = stop_of(verdicts)
    assert stop is not None
    assert relevance[:stop].sum() >= 0.8 * relevance.sum()
    assert stop < 600
    early = screened(PoissonRecall(at_least=0.8), relevance[:500], size=2000)
    assert not any(verdict.ready for verdict in early)


# A run of irrelevant items, and several conditions.


def test_irrelevant_items_count_from_the_last_relevant_one() -> None:
    relevance = [0] * 60 + [1] + [0] * 30 + [1] + [0] * 70
    verdicts = screened(ConsecutiveIrrelevant(50), relevance)
    assert not any(verdict.ready for verdict in verdicts[:60])
    assert stop_of(verdicts) == 60 + 1 + 30 + 1 + 50
    assert verdicts[100].forecast is not None
    assert verdicts[100].forecast.labels == stop_of(verdicts) - 101  # type: ignore[operator]


@pytest.mark.parametrize(
    ("size", "estimated", "stop"),
    [(400, None, 80), (1000, None, 100), (400, 55.0, 110), (400, 1000.0, None), (400, 5.0, 80)],
)
def test_all_conditions_must_hold(size: int, estimated: float | None, stop: int | None) -> None:
    relevance = [1] * 30 + [0] * 130
    others: dict[str, Any] = {} if estimated is None else {"estimated_relevant": estimated}
    assert stop_of(screened(Safe(), relevance, size=size, **others)) == stop
    for verdict in screened(Safe(), relevance, size=size, **others):
        assert ("required" in verdict.reason or "below the limit" in verdict.reason) != verdict.stop


# Corrections, other runs, bad arguments.

GAIN_RULES: tuple[Criterion, ...] = (RecallTest(), Knee(0), PoissonRecall(), ConsecutiveIrrelevant(), Safe())


@pytest.mark.parametrize("rule", GAIN_RULES, ids=lambda rule: type(rule).__name__)
def test_a_corrected_label_leaves_the_curve(rule: Any) -> None:
    one, other = rule.copy(), rule.copy()
    for n, found in ((10, 2), (20, 3), (30, 5), (40, 4)):
        one.observe(Step(n_labelled=n, relevant_found=found, pool_size=100))
    for n, found in ((10, 2), (20, 3), (40, 3), (40, 4)):
        other.observe(Step(n_labelled=n, relevant_found=found, pool_size=100))
    assert one.counts == other.counts == [10, 20, 40]
    assert one.founds == other.founds == [2, 3, 4]


@pytest.mark.parametrize("rule", GAIN_RULES, ids=lambda rule: type(rule).__name__)
def test_another_run_needs_a_reset(rule: Any) -> None:
    used = rule.copy()
    used.observe(Step(n_labelled=30, relevant_found=3, pool_size=100))
    with pytest.raises(InvalidValueError, match="reset"):
        used.observe(Step(n_labelled=20, relevant_found=3, pool_size=100))
    used.reset()
    used.observe(Step(n_labelled=20, relevant_found=3, pool_size=100))
    with pytest.raises(InvalidValueError, match="more are found than labelled"):
        used.observe(Step(n_labelled=30, relevant_found=31, pool_size=100))


@pytest.mark.parametrize("rule", GAIN_RULES, ids=lambda rule: type(rule).__name__)
def test_a_saved_curve_is_checked(rule: Any) -> None:
    used = rule.copy()
    for n, found in ((10, 2), (20, 3)):
        used.observe(Step(n_labelled=n, relevant_found=found, pool_size=100))
    for name, value in (
        ("counts", [20, 10]),
        ("founds", [3, 3]),
        ("founds", [2]),
        ("founds", [11, 12]),
        ("screened", 15),
    ):
        saved = used.state_dict()
        saved["state"][name] = value
        with pytest.raises(InvalidValueError, match="saved state"):
            criterion_from_dict(saved)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RecallTest(1.0), "at_least"),
        (lambda: RecallTest(0.9, confidence=0.0), "confidence"),
        (lambda: QuantileRecall(0), "sample"),
        (lambda: QuantileRecall(58), "at least 59"),
        (lambda: QuantCI(0.9, deviations=-1.0), "deviations"),
        (lambda: Knee(-1), "least_screened"),
        (lambda: PoissonRecall(windows=1), "windows"),
        (lambda: PoissonRecall(least_relevant=0), "least_relevant"),
        (lambda: PoissonRecall(least_share=1.1), "least_share"),
        (lambda: ConsecutiveIrrelevant(0), "items"),
        (lambda: Safe(irrelevant=0), "irrelevant"),
        (lambda: Safe(least_share=-0.1), "least_share"),
        (lambda: Safe(multiple=-1.0), "multiple"),
    ],
)
def test_wrong_arguments_are_named(make: Any, said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        make()


def test_a_missing_input_is_named() -> None:
    with pytest.raises(MissingInputError, match="relevant_found"):
        RecallTest().observe(Step(n_labelled=10, pool_size=100))
