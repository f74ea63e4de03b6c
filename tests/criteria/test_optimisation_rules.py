"""The rules of Bayesian optimisation and their inputs, against dense matrices, Monte Carlo and mpmath."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import suffice as sf
from suffice.criteria import Step, confidence_factor, criterion_from_dict, regret_facts
from suffice.criteria.optimisation import expected_positive_part
from suffice.errors import InvalidValueError, MissingInputError
from suffice.posteriors import Gaussian
from suffice.testing import check_criterion
from tests.every_rule import made_up_steps

Floats = NDArray[np.float64]


def kernel(A: Floats, B: Floats, length: float = 0.3) -> Floats:
    return np.asarray(np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2) / length**2))


class Problem:
    """A Gaussian process on a grid, with the posteriors before and after one evaluation, by dense matrices."""

    def __init__(self, seed: int, n: int = 6, noise: float = 0.02, grid: int = 60, scale: float = 1.0) -> None:
        rng = np.random.default_rng(seed)
        self.grid = np.linspace(0.0, 1.0, grid)[:, None]
        self.noise = scale**2 * noise
        self.prior = scale**2 * kernel(self.grid, self.grid) + 1e-10 * scale**2 * np.eye(grid)
        truth = np.linalg.cholesky(self.prior) @ rng.standard_normal(grid)
        self.rows = rng.permutation(grid)[:n]
        self.y = truth[self.rows] + math.sqrt(self.noise) * rng.standard_normal(n)
        self.old = self.posterior(n - 1)
        self.new = self.posterior(n)

    def posterior(self, n: int) -> tuple[Floats, Floats]:
        rows = self.rows[:n]
        gain = self.prior[:, rows] @ np.linalg.inv(self.prior[np.ix_(rows, rows)] + self.noise * np.eye(n))
        return gain @ self.y[:n], self.prior - gain @ self.prior[rows]

    def facts(self, beta: tuple[float, float] = (9.0, 9.0)) -> dict[str, float]:
        mean, covariance = self.old
        lowest = [
            float((m - math.sqrt(b) * np.sqrt(np.maximum(np.diag(S), 0.0))).min())
            for (m, S), b in zip((self.old, self.new), beta, strict=True)
        ]
        return regret_facts(
            mean[self.rows],
            covariance[np.ix_(self.rows, self.rows)],
            value=float(self.y[-1]),
            noise=self.noise,
            lowest=(lowest[0], lowest[1]),
            beta=beta,
        )

    def incumbents(self) -> tuple[int, int]:
        """Rows of the grid of the incumbents before and after."""
        old, new = self.rows[:-1], self.rows
        return int(old[np.argmin(self.old[0][old])]), int(new[np.argmin(self.new[0][new])])

    def expected_regret(self, posterior: tuple[Floats, Floats], incumbent: int, draws: Floats) -> float:
        mean, covariance = posterior
        values, vectors = np.linalg.eigh(covariance)
        sample = mean + draws @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        return float(mean[incumbent] - sample.min(axis=1).mean())


@pytest.mark.parametrize("seed", range(12))
def test_facts_are_those_of_dense_matrices(seed: int) -> None:
    problem, beta = Problem(seed), (7.0, 8.0)
    facts, (old, new) = problem.facts(beta), problem.incumbents()
    (mean, before), (mean_after, after) = problem.old, problem.new
    last = int(problem.rows[-1])

    def gap(m: Floats, S: Floats, rows: Any, b: float) -> float:
        width = math.sqrt(b) * np.sqrt(np.maximum(np.diag(S), 0.0))
        return float((m + width)[rows].min() - (m - width).min())

    kappa = gap(mean, before, problem.rows[:-1], beta[0])
    # The divergence of the processes is that of the joint distribution of all values at the evaluated points.
    rows, jitter = np.unique(problem.rows), 1e-9 * np.eye(len(problem.rows))
    p = Gaussian(mean_after[rows], after[np.ix_(rows, rows)] + jitter)
    q = Gaussian(mean[rows], before[np.ix_(rows, rows)] + jitter)
    assert facts["kl_new_old"] == pytest.approx(sf.kl(p, q), rel=1e-4, abs=1e-6)
    v2 = after[old, old] + after[new, new] - 2.0 * after[old, new] if old != new else 0.0
    positive = expected_positive_part(float(mean_after[new] - mean_after[old]), math.sqrt(max(v2, 0.0)))
    change = abs(mean_after[new] - mean[old]) + positive + kappa * math.sqrt(facts["kl_new_old"] / 2.0)
    assert facts["regret_change"] == pytest.approx(change, rel=1e-6, abs=1e-9)
    s, star = math.sqrt(before[last, last]), math.sqrt(max(before[new, new], 0.0))
    by_noise = math.sqrt(problem.noise) * s * (star + kappa / 2.0) / (s**2 + problem.noise)
    assert facts["regret_change_noise"] == pytest.approx(by_noise, rel=1e-6)
    assert facts["regret_bound"] == pytest.approx(gap(mean_after, after, problem.rows, beta[1]), rel=1e-6, abs=1e-9)
    assert facts["noise_deviation"] == pytest.approx(math.sqrt(problem.noise))


def test_the_change_bounds_that_of_the_expected_regret() -> None:
    draws = np.random.default_rng(0).standard_normal((4000, 60))
    moved = 0
    for seed in range(25):
        problem = Problem(seed, n=3 + seed % 6, noise=(0.001, 0.02, 0.3)[seed % 3])
        old, new = problem.incumbents()
        moved += old != new
        before = problem.expected_regret(problem.old, old, draws)
        after = problem.expected_regret(problem.new, new, draws)
        change = problem.facts()["regret_change"]
        assert abs(after - before) <= change + 0.05
        # The upper side holds without the change of the incumbent's mean, as derived in the documentation.
        assert after - before <= change - abs(problem.new[0][new] - problem.old[0][old]) + 0.05
    assert moved >= 5


def test_the_regret_is_below_the_bound_as_often_as_it_should() -> None:
    held = []
    for seed in range(200):
        problem = Problem(seed, n=5)
        beta = confidence_factor(60, 5, 0.1)
        bound = problem.facts((beta, beta))["regret_bound"]
        mean, covariance = problem.new
        draw = np.random.default_rng([seed, 1]).multivariate_normal(mean, covariance, method="eigh")
        width = math.sqrt(beta) * np.sqrt(np.maximum(np.diag(covariance), 0.0))
        best = problem.rows[np.argmin((mean + width)[problem.rows])]
        held.append(draw[best] - draw.min() <= bound)
    assert np.mean(held) >= 0.9


@pytest.mark.parametrize("delta", [0.5, 0.1, 0.01])
def test_noise_alone_rarely_exceeds_its_threshold(delta: float) -> None:
    """A residual that is noise only: the two terms that depend on it, as in the derivation of the threshold."""
    rng, exceeded = np.random.default_rng(3), []
    s, star, kappa, noise = 0.3, 0.2, 1.1, 0.05
    limit = math.sqrt(-2.0 * math.log(delta)) * math.sqrt(noise) * s * (star + kappa / 2.0) / (s**2 + noise)
    for e in math.sqrt(noise) * rng.standard_normal(4000):
        shift = s * star * abs(e) / (s**2 + noise)
        exceeded.append(shift + kappa * math.sqrt(0.25 * s**2 * e**2) / (s**2 + noise) > limit)
    assert np.mean(exceeded) <= delta


@given(st.floats(-30.0, 30.0), st.floats(1e-6, 1e6))
def test_the_positive_part_is_that_of_many_digits(g: float, v: float) -> None:
    with mpmath.workdps(60):
        m = mpmath.mpf(g * v)
        ratio = m / mpmath.mpf(v)
        exact = float(mpmath.mpf(v) * mpmath.npdf(ratio) + m * mpmath.ncdf(ratio))
    assert expected_positive_part(g * v, v) == pytest.approx(exact, rel=1e-10, abs=1e-300)


@pytest.mark.parametrize(
    ("mean", "deviation", "expected"), [(2.0, 0.0, 2.0), (-1e300, 1e-300, 0.0), (1e300, 1.0, 1e300)]
)
def test_extremes_of_the_positive_part(mean: float, deviation: float, expected: float) -> None:
    assert expected_positive_part(mean, deviation) == expected


@given(st.integers(0, 10_000), st.floats(1e-3, 1e3), st.floats(-100.0, 100.0))
def test_units_of_the_objective_do_not_matter(seed: int, scale: float, shift: float) -> None:
    plain, problem = Problem(seed, grid=20), Problem(seed, grid=20, scale=scale)
    first = plain.facts()
    mean, covariance = problem.old
    rows = problem.rows
    lowest = [
        float((m - 3.0 * np.sqrt(np.maximum(np.diag(S), 0.0))).min()) + shift for m, S in (problem.old, problem.new)
    ]
    second = regret_facts(
        mean[rows] + shift,
        covariance[np.ix_(rows, rows)],
        value=float(problem.y[-1]) + shift,
        noise=problem.noise,
        lowest=(lowest[0], lowest[1]),
        beta=(9.0, 9.0),
    )
    for name in ("regret_change", "regret_change_noise", "regret_bound", "noise_deviation"):
        assert second[name] == pytest.approx(scale * first[name], rel=1e-5, abs=1e-9 * (scale + abs(shift)))
    assert second["kl_new_old"] == pytest.approx(first["kl_new_old"], rel=1e-5, abs=1e-9)


def test_an_incumbent_that_stays_adds_nothing_but_its_mean() -> None:
    facts = regret_facts(
        [0.0, 5.0], [[0.01, 0.0], [0.0, 1.0]], value=5.0, noise=0.01, lowest=(-1.0, -1.0), beta=(0.0, 0.0)
    )
    kappa = 1.0
    assert facts["regret_change"] == pytest.approx(kappa * math.sqrt(facts["kl_new_old"] / 2.0))
    assert facts["regret_bound"] == 1.0


def test_confidence_factor_spends_delta_over_points_and_times() -> None:
    failures = sum(50 * math.exp(-confidence_factor(50, t, 0.1) / 2.0) for t in range(1, 20_000))
    assert failures == pytest.approx(0.1, rel=1e-3)
    assert confidence_factor(2, 0, 0.1) == confidence_factor(2, 1, 0.1)


RULES: dict[str, Any] = {
    "RegretChange": sf.RegretChange,
    "RegretChange share": lambda: sf.RegretChange(share=0.3, calibration=3),
    "RegretBound": sf.RegretBound,
    "RegretBound threshold": lambda: sf.RegretBound(0.2),
}


@pytest.mark.parametrize("name", RULES)
def test_conformance_and_both_answers(name: str) -> None:
    check_criterion(RULES[name], made_up_steps(35, seed=2))
    said = {verdict.stop for verdict in RULES[name]().observe_all(made_up_steps(35, seed=2))}
    assert said == {True, False}


def step(n: int, change: float, noise: float = 1.0) -> Step:
    return Step(n_labelled=n, regret_change=change, regret_change_noise=noise)


def test_a_share_is_that_of_the_median_of_the_first_values() -> None:
    rule = sf.RegretChange(share=0.5, calibration=3)
    verdicts = [rule.observe(step(n, change)) for n, change in enumerate([8.0, 1.0, 4.0, 2.1, 2.0, 9.0], start=10)]
    assert [verdict.stop for verdict in verdicts] == [False, False, False, False, True, False]
    assert [verdict.ready for verdict in verdicts[:4]] == [False, False, False, True]
    assert verdicts[4].threshold == 2.0
    again = criterion_from_dict(rule.state_dict())
    assert again.observe(step(20, 2.0)).stop


def test_the_threshold_of_noise_is_by_delta() -> None:
    verdict = sf.RegretChange(delta=0.05).observe(step(12, 1.0, noise=0.5))
    assert verdict.threshold == pytest.approx(0.5 * math.sqrt(-2.0 * math.log(0.05)))
    assert verdict.stop


def test_the_bound_is_compared_with_noise_or_a_threshold() -> None:
    given = Step(n_labelled=5, regret_bound=0.2, noise_deviation=0.2)
    assert sf.RegretBound().observe(given).stop
    assert not sf.RegretBound(0.1).observe(given).stop
    assert "deviation of the noise" in sf.RegretBound().observe(given).reason


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sf.RegretChange(0.0), "delta must be a number between 0 and 1"),
        (lambda: sf.RegretChange(share=1.0), "share must be a number between 0 and 1"),
        (lambda: sf.RegretChange(calibration=0), "calibration must be a whole number"),
        (lambda: sf.RegretBound(-1.0), "threshold must be a number of at least 0, or None"),
        (lambda: confidence_factor(0, 1, 0.1), "size must be a whole number"),
        (lambda: confidence_factor(1, 1, 1.0), "delta must be a number between 0 and 1"),
        (lambda: Step(n_labelled=1, regret_bound=-0.1), "regret_bound must be a number of at least 0"),
    ],
)
def test_bad_arguments(make: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"mean": [0.0]}, "at least 2"),
        ({"covariance": [[1.0, 0.5], [0.2, 1.0]]}, "not symmetric"),
        ({"noise": 0.0}, "noise must be a number above 0"),
        ({"value": math.nan}, "value must be a finite number"),
        ({"beta": (1.0, -1.0)}, "beta must be a number of at least 0"),
        ({"lowest": (math.inf, 0.0)}, "lowest must be a finite number"),
        ({"mean": [0.0, math.nan]}, "mean must be finite"),
    ],
)
def test_bad_facts(changed: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "mean": [0.0, 1.0],
        "covariance": [[1.0, 0.5], [0.5, 1.0]],
        "value": 0.5,
        "noise": 0.1,
        "lowest": (-1.0, -1.0),
        "beta": (4.0, 4.0),
    }
    assert regret_facts(**good)["regret_bound"] >= 0.0
    with pytest.raises(InvalidValueError, match=message):
        regret_facts(**(good | changed))


@pytest.mark.parametrize(
    ("rule", "first", "message"),
    [
        (sf.RegretChange(), [1.0], "at most 0"),
        (sf.RegretChange(share=0.5, calibration=2), [1.0, 2.0, 3.0], "at most 2"),
        (sf.RegretChange(share=0.5, calibration=2), [-1.0], "at least 0"),
    ],
)
def test_contradictory_states_are_refused(rule: sf.Criterion, first: list[float], message: str) -> None:
    saved = rule.state_dict()
    saved["state"]["first"] = first
    with pytest.raises(InvalidValueError, match=message):
        criterion_from_dict(saved)


def test_a_learner_refuses_the_rules_with_a_remedy() -> None:
    with pytest.raises(MissingInputError, match="OptimisationMonitor"):
        sf.ActiveLearner(sf.models.GaussianProcess(), np.zeros((5, 1)), criterion=sf.RegretBound())
