import itertools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from suffice import Criterion, Step, Verdict
from suffice.bounds import risk_gap, total_variation
from suffice.criteria.bayesian import DeterministicBoundRuns, InformationGain, PacBayes, runs_p
from suffice.errors import InvalidValueError, MissingInputError
from suffice.testing import check_criterion
from tests.every_rule import made_up_steps

RULES: dict[str, Callable[[], Criterion]] = {
    "DeterministicBoundRuns": lambda: DeterministicBoundRuns(0.2, window=6),
    "tight": lambda: DeterministicBoundRuns(0.2, window=7, bound="tight"),
    "PacBayes": lambda: PacBayes(0.5),
    "InformationGain": lambda: InformationGain(0.02),
    "together": lambda: (DeterministicBoundRuns(0.5, window=5) & InformationGain(0.1)) | PacBayes(0.4).after(30),
}


@pytest.mark.parametrize("name", RULES)
def test_conformance(name: str) -> None:
    check_criterion(RULES[name], made_up_steps(35, seed=4))


def moved(rule: Criterion, *divergences: float) -> list[Verdict]:
    return [rule.observe(Step(n_labelled=11 + t, kl_new_old=kl, kl_old_new=kl)) for t, kl in enumerate(divergences)]


class TestRunsTest:
    def test_by_hand(self) -> None:
        # + + - + - - - +: 5 runs, four on each side; mu = 5, so p = 1/2.
        assert runs_p([8.0, 7.0, 1.0, 6.0, 2.0, 3.0, 4.0, 5.0]) == 0.5
        # + + + + - - - -: 2 runs; sigma^2 = 32 (32 - 8) / (64 x 7) = 12/7.
        falling = runs_p([8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
        assert falling == pytest.approx(norm.cdf(-3.0 / math.sqrt(12.0 / 7.0)), rel=1e-14)
        # + - + - + - + -: 8 runs.
        assert runs_p([8.0, 1.0, 7.0, 2.0, 6.0, 3.0, 5.0, 4.0]) == pytest.approx(norm.cdf(3.0 / math.sqrt(12.0 / 7.0)))

    @pytest.mark.parametrize(("a", "b"), [(2, 2), (3, 3), (3, 4), (2, 6), (1, 4), (4, 4)])
    def test_mean_and_variance_are_those_over_all_orders(self, a: int, b: int) -> None:
        """Every order of ``a`` values above and ``b`` below is as likely as any other; their median lies between."""
        size = a + b
        orders = [
            [1.0 if i in above else -1.0 for i in range(size)] for above in itertools.combinations(range(size), a)
        ]
        runs = [1 + sum(x != y for x, y in itertools.pairwise(order)) for order in orders]
        mean, deviation = np.mean(runs), np.std(runs)
        # As many values at the median, 0, as hold it there, put at the end: they are left out.
        middle = [0.0] * (abs(a - b) + 1)
        for order, count in zip(orders, runs, strict=True):
            assert runs_p([*order, *middle]) == pytest.approx(norm.cdf((count - mean) / deviation), rel=1e-12)

    @given(st.lists(st.integers(0, 5), min_size=1, max_size=24))
    def test_it_is_a_probability_or_nothing_and_ignores_scale(self, whole_values: list[int]) -> None:
        values = [float(v) for v in whole_values]
        p = runs_p(values)
        median = float(np.median(values))
        above, below = sum(v > median for v in values), sum(v < median for v in values)
        assert (p is None) == (above == 0 or below == 0 or above + below == 2)
        if p is not None:
            assert 0.0 < p < 1.0
            assert runs_p([2.0 * v + 8.0 for v in values]) == p
            assert runs_p(values[::-1]) == p
            assert runs_p([-v for v in values]) == pytest.approx(p, rel=1e-12)

    @given(st.lists(st.floats(0.0, 1.0), min_size=4, max_size=20, unique=True))
    def test_against_high_precision(self, values: list[float]) -> None:
        median = sorted(values)
        middle = (median[(len(values) - 1) // 2] + median[len(values) // 2]) / 2
        signs = [v > middle for v in values if v != middle]
        n, a = len(signs), sum(signs)
        b = n - a
        if a * b < 2:
            assert runs_p(values) is None
            return
        runs = 1 + sum(x != y for x, y in itertools.pairwise(signs))
        mu = 1 + mpmath.mpf(2 * a * b) / n
        variance = mpmath.mpf(2 * a * b * (2 * a * b - n)) / (n**2 * (n - 1))
        assert runs_p(values) == pytest.approx(float(mpmath.ncdf((runs - mu) / mpmath.sqrt(variance))), rel=1e-12)

    def test_nothing_to_go_by(self) -> None:
        for values in ([], [1.0], [1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 2.0], [1.0, 2.0], [1.0, 2.0, 3.0]):
            assert runs_p(values) is None


class TestDeterministicBoundRuns:
    def test_by_hand(self) -> None:
        rule = DeterministicBoundRuns(0.05, window=8)
        verdicts = moved(rule, *(0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1), *(0.5, 0.05, 0.6, 0.04))
        assert [v.ready for v in verdicts] == [False] * 7 + [True] * 5
        assert verdicts[6].reason == "7 of the 8 values of the bound are available"
        assert verdicts[7].value == pytest.approx(norm.cdf(-3.0 / math.sqrt(12.0 / 7.0)))
        assert verdicts[7].stop
        assert verdicts[7].reason == "the p of the runs test on the bound, 0.011, is at most the threshold 0.05"
        # .4 .3 .2 .1 .5 .05 .6 .04: the median is .25, the signs + + - - + - + -, 6 runs
        assert verdicts[-1].value == pytest.approx(norm.cdf(1.0 / math.sqrt(12.0 / 7.0)))
        assert not verdicts[-1].stop
        assert rule.values == pytest.approx([2.0 * risk_gap(kl) for kl in (0.4, 0.3, 0.2, 0.1, 0.5, 0.05, 0.6, 0.04)])

    def test_at_the_threshold_it_stops(self) -> None:
        p = runs_p([4.0, 3.0, 2.0, 1.0])
        assert p is not None
        assert moved(DeterministicBoundRuns(p, window=4), 0.4, 0.3, 0.2, 0.1)[-1].stop
        assert not moved(DeterministicBoundRuns(math.nextafter(p, 0.0), window=4), 0.4, 0.3, 0.2, 0.1)[-1].stop

    def test_the_two_bounds(self) -> None:
        run = [(0.1, 0.3), (0.2, 0.2), (0.4, 0.05), (0.01, 0.6), (0.3, 0.3)]
        steps = [Step(n_labelled=9 + t, kl_new_old=a, kl_old_new=b) for t, (a, b) in enumerate(run)]
        for bound, change in (
            ("paper", lambda a, b: risk_gap(a) + risk_gap(b)),
            ("tight", total_variation),
        ):
            rule = DeterministicBoundRuns(window=4, bound=bound)  # type: ignore[arg-type]
            verdicts = [rule.observe(step) for step in steps]
            assert verdicts[-1].value == runs_p([float(change(a, b)) for a, b in run[1:]])

    @pytest.mark.parametrize("window", [[0.2] * 6, [0.2] * 5 + [0.1], [0.1, 0.2, 0.2, 0.2, 0.2, 0.3], [0.0] * 6])
    def test_a_degenerate_window_is_not_judged(self, window: list[float]) -> None:
        verdict = moved(DeterministicBoundRuns(1.0, window=6), *window)[-1]
        assert (verdict.stop, verdict.ready, verdict.value) == (False, False, None)
        assert verdict.reason == "too few of the last 6 values of the bound differ from their median to count runs"

    def test_tighten_multiplies(self) -> None:
        rule = DeterministicBoundRuns(0.05)
        rule.tighten(0.5)
        assert rule.threshold == 0.025


class TestPacBayes:
    def test_by_hand(self) -> None:
        # n = 100, delta = 0.05: log(20 / 0.05) = log 400 = 5.99146; sqrt((4.00854 + 5.99146) / 200) = sqrt 0.05.
        kl = 10.0 - math.log(400.0)
        step = Step(n_labelled=100, train_error=0.1, kl_prior=kl)
        verdict = PacBayes(0.4).observe(step)
        assert verdict.value == pytest.approx(0.1 + math.sqrt(0.05), rel=1e-14)
        assert verdict.stop
        assert verdict.reason == "the PAC-Bayes bound on the expected error, 0.324, is at most the limit 0.4"
        assert verdict.value is not None
        assert PacBayes(verdict.value).observe(step).stop
        assert not PacBayes(math.nextafter(verdict.value, 0.0)).observe(step).stop
        assert PacBayes(0.3).observe(step).reason.endswith("0.324, is above the limit 0.3")

    @given(st.integers(1, 10**7), st.floats(0, 1), st.floats(0, 1e6), st.floats(1e-9, 0.999))
    def test_against_high_precision(self, n: int, error: float, kl: float, delta: float) -> None:
        with mpmath.workdps(40):
            expected = mpmath.mpf(error) + mpmath.sqrt(
                (mpmath.mpf(kl) + mpmath.log(2 * mpmath.sqrt(n) / mpmath.mpf(delta))) / (2 * n)
            )
        verdict = PacBayes(0.5, delta).observe(Step(n_labelled=n, train_error=error, kl_prior=kl))
        assert verdict.value == pytest.approx(float(expected), rel=1e-13)

    def test_the_constant_is_large_enough_for_any_number_of_labels(self) -> None:
        """The theorem needs 2 sqrt(n) to be at least Maurer's sum over the binomial."""
        for n in range(1, 200):
            terms = [math.comb(n, k) * (k / n) ** k * (1 - k / n) ** (n - k) for k in range(n + 1)]
            assert math.fsum(terms) <= 2.0 * math.sqrt(n) + 1e-12

    def test_the_verdict_says_that_active_learning_breaks_it(self) -> None:
        verdict = PacBayes(0.9, 0.1).observe(Step(n_labelled=400, train_error=0.1, kl_prior=3.0))
        assert verdict.certificate is not None
        assert verdict.certificate.statement.startswith("Nothing is guaranteed under active learning.")
        assert "with probability at least 1 - 0.1" in verdict.certificate.statement
        assert "i.i.d." in verdict.certificate.assumption
        assert "fails when a model chooses" in verdict.certificate.assumption
        assert verdict.certificate.change is None
        wide = PacBayes(0.9).observe(Step(n_labelled=4, train_error=0.1, kl_prior=30.0)).certificate
        assert wide is not None
        assert wide.statement.endswith("the bound would still be wider than the loss range.")

    def test_without_labels_there_is_no_bound(self) -> None:
        verdict = PacBayes(0.9).observe(Step(n_labelled=0, train_error=0.0, kl_prior=0.0))
        assert (verdict.stop, verdict.ready, verdict.value) == (False, False, None)

    def test_a_huge_divergence_stays_finite(self) -> None:
        verdict = PacBayes(0.9).observe(Step(n_labelled=1, train_error=1.0, kl_prior=1.7e308))
        assert verdict.value is not None
        assert math.isfinite(verdict.value)

    def test_it_needs_both(self) -> None:
        with pytest.raises(MissingInputError, match="PacBayes requires kl_prior"):
            PacBayes(0.1).observe(Step(n_labelled=3, train_error=0.1))

    def test_tighten_multiplies(self) -> None:
        rule = PacBayes(0.4)
        rule.tighten(0.5)
        assert rule.epsilon == 0.2


@given(st.floats(0, 10), st.floats(0, 10))
def test_information_gain_stops_at_or_under_its_threshold(gain: float, threshold: float) -> None:
    verdict = InformationGain(threshold).observe(Step(n_labelled=9, pool_gain=gain))
    assert verdict.stop == (gain <= threshold)
    assert (verdict.value, verdict.threshold) == (gain, threshold)
    assert ("is at most the threshold" in verdict.reason) == verdict.stop


def test_information_gain_by_hand() -> None:
    rule = InformationGain(0.05)
    # 1/2 log(1 + beta s) for beta = 4 and s = 1, then s = 0.02
    verdicts = [rule.observe(Step(n_labelled=20, pool_gain=0.5 * math.log1p(4.0 * s))) for s in (1.0, 0.02)]
    assert [v.stop for v in verdicts] == [False, True]
    assert verdicts[0].reason == "the largest information gain over the pool, 0.805, is above the threshold 0.05"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: DeterministicBoundRuns(1.5), "threshold must be a number from 0 to 1, not 1.5"),
        (lambda: DeterministicBoundRuns(window=3), "window must be a whole number, 4 or more"),
        (lambda: DeterministicBoundRuns(bound="loose"), "bound must be 'paper' or 'tight', not 'loose'"),  # type: ignore[arg-type]
        (lambda: PacBayes(0.0), "epsilon must be a number above 0"),
        (lambda: PacBayes(0.1, delta=1.0), "delta must be a number between 0 and 1"),
        (lambda: PacBayes(0.1, delta=math.nan), "delta must be a number between 0 and 1"),
        (lambda: InformationGain(-0.1), "threshold must be a number of at least 0"),
        (lambda: InformationGain("low"), "threshold must be"),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_are_named(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        make()
