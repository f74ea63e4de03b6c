"""Mistakes found in other implementations of stopping rules, tested on ours.

The three about indices, the drawing of the stop set and shares of a subsample are tried where the stop set is drawn.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from suffice import Budget, Criterion, ErrorStability, Step
from suffice.criteria import expected_f
from suffice.criteria.agreement import (
    ClassificationChange,
    IntrinsicStopping,
    PredictedFChange,
    SelectionAgreement,
    StabilizingPredictions,
    ValidationSetAgreement,
)
from suffice.criteria.bayesian import DeterministicBoundRuns, InformationGain, PacBayes
from suffice.criteria.confidence_and_accuracy import (
    EntropyMax,
    MarginExhaustion,
    MaxConfidence,
    MinExpectedError,
    OverallUncertainty,
    SelectedAccuracy,
)
from suffice.criteria.prediction_statistics import cohen_kappa, f_change
from suffice.criteria.trend import DropInConfidence
from suffice.testing import example_steps
from suffice.trace import Trace
from tests.thoroughness import thorough


class TestConsecutiveMeansInARow:
    """A counter that never starts again makes "three rounds in a row" into "three rounds ever"."""

    @staticmethod
    def first_stop(rule: Criterion, steps: Iterator[Step]) -> int:
        return next(t for t, step in enumerate(steps, start=1) if rule.observe(step).stop)

    @staticmethod
    def third_ever(events: Iterator[bool]) -> int:
        """The wrong rule: it counts events, and forgets none."""
        return next(t for t, count in enumerate(itertools.accumulate(events), start=1) if count >= 3)

    @staticmethod
    def noise(seed: int) -> Iterator[float]:
        rng = np.random.default_rng(seed)
        while True:
            yield from rng.random(64).tolist()

    def falls(self, seed: int) -> Iterator[bool]:
        yield False
        yield from (later < earlier for earlier, later in itertools.pairwise(self.noise(seed)))

    def test_falls_on_white_noise(self) -> None:
        runs = 2000 if thorough() else 700

        def steps(seed: int) -> Iterator[Step]:
            # Some at a time, for single steps take longer.
            values = self.noise(seed)
            while True:
                yield from Step.sequence(np.full(16, 9), stop_confidence=list(itertools.islice(values, 16)))

        ours = [self.first_stop(DropInConfidence(rounds=3), steps(seed)) for seed in range(runs)]
        wrong = [self.third_ever(self.falls(seed)) for seed in range(runs)]
        exact = mean_wait_for_three_falls_in_a_row()
        assert exact == pytest.approx(29.98, abs=0.01)
        assert np.mean(ours) == pytest.approx(exact, abs=4.0 * float(np.std(ours)) / math.sqrt(runs))
        assert np.mean(wrong) < 7.0

    def test_the_exact_expectation_is_that_of_all_orders(self) -> None:
        """The series behind it gives the share of orders of n values without three falls in a row."""
        for n in range(1, 8):
            orders = list(itertools.permutations(range(n)))
            without = sum(not any(a > b > c > d for a, b, c, d in windows(order, 4)) for order in orders)
            assert share_without_three_falls(n) == pytest.approx(without / len(orders), abs=1e-12)

    @pytest.mark.parametrize(
        "make", [lambda: PredictedFChange(0.05, 3), lambda: StabilizingPredictions(0.95, 1).patience(3)]
    )
    def test_rounds_that_are_small_by_the_toss_of_a_coin(self, make: Callable[[], Criterion]) -> None:
        """Each round either nothing changes or everything does; three heads in a row take 14 tosses."""
        runs = 1000 if thorough() else 400
        table = np.eye(2)[[0, 1, 1]]

        sides = [Step(n_labelled=9, stop_probabilities=table[:, ::turn]) for turn in (1, -1)]

        def steps(seed: int) -> Iterator[Step]:
            yield sides[0]
            flips = itertools.accumulate(x < 0.5 for x in self.noise(seed))
            yield from (sides[k % 2] for k in flips)

        ours = [self.first_stop(make(), steps(seed)) - 1 for seed in range(runs)]
        wrong = [self.third_ever(x >= 0.5 for x in self.noise(seed)) for seed in range(runs)]
        assert np.mean(ours) == pytest.approx(14.0, abs=4.0 * float(np.std(ours)) / math.sqrt(runs))
        assert np.mean(wrong) == pytest.approx(6.0, abs=0.4)


def windows(values: tuple[int, ...], size: int) -> Iterator[tuple[int, ...]]:
    return (values[i : i + size] for i in range(len(values) - size + 1))


def series(n: int) -> list[float]:
    """Coefficients of x^0 to x^n of 1 / sum_k (x^4k / (4k)! - x^(4k+1) / (4k+1)!)."""
    below = [
        1.0 / math.factorial(k) if k % 4 == 0 else -1.0 / math.factorial(k) if k % 4 == 1 else 0.0 for k in range(n + 1)
    ]
    found = [1.0]
    for k in range(1, n + 1):
        found.append(-sum(below[j] * found[k - j] for j in range(1, k + 1)))
    return found


def share_without_three_falls(n: int) -> float:
    """Probability that n values in random order have no three falls in a row."""
    return series(n)[n]


def mean_wait_for_three_falls_in_a_row() -> float:
    """E[T] = sum over n of P(T > n), where T > n if n values have no three falls in a row: the series at x = 1."""
    return 1.0 / sum(1.0 / math.factorial(4 * k) - 1.0 / math.factorial(4 * k + 1) for k in range(1, 5))


class TestARuleThatNeverFiresNeverStops:
    """The arg-max over verdicts that are all False is 0, the first round."""

    def rules(self) -> list[Criterion]:
        return [
            Budget(10**6),
            ErrorStability(0.0),
            InformationGain(0.0),
            PacBayes(1e-6),
            SelectionAgreement(),
            MinExpectedError(0.0),
            PredictedFChange(1e-9, 60),
            DeterministicBoundRuns(0.0, window=10),
        ]

    def test_on_a_run(self) -> None:
        steps = example_steps(50)
        for rule in self.rules():
            verdicts = rule.observe_all(steps)
            assert not any(verdict.stop for verdict in verdicts), rule
            assert int(np.argmax([verdict.stop for verdict in verdicts])) == 0  # the mistake
            assert not str(verdicts[0]).startswith("Stop")

    def test_on_a_recorded_run(self) -> None:
        trace = Trace.of_divergences([0.5, 0.3, 0.2, 0.1], [0.5, 0.3, 0.2, 0.1], first=10)
        verdicts = trace.replay(ErrorStability(0.0, calibration=1))
        assert [verdict.stop for verdict in verdicts] == [False] * 4
        assert next((v.n_labelled for v in verdicts if v.stop), None) is None


class TestNothingOverNothing:
    """0/0 on rare positives must be no change, and not a NaN that no comparison holds for."""

    def test_a_model_that_finds_no_positive_is_judged(self) -> None:
        none = [0] * 20
        assert f_change(none, none, 2) == 0.0
        assert cohen_kappa(none, none) == 1.0
        p = np.column_stack([np.full(20, 0.99), np.full(20, 0.01)])
        for rule in (PredictedFChange(), StabilizingPredictions()):
            verdicts = [rule.observe(Step(n_labelled=20 + t, stop_probabilities=p)) for t in range(4)]
            assert verdicts[-1].stop
            assert verdicts[-1].value is not None
            assert math.isfinite(verdicts[-1].value)

    def test_a_class_that_nobody_expects_has_nothing_wrong(self) -> None:
        assert expected_f(np.column_stack([np.ones(5), np.zeros(5)])) == 1.0

    def test_a_flat_bound_gives_no_nan(self) -> None:
        rule = DeterministicBoundRuns(window=4)
        for t in range(8):
            verdict = rule.observe(Step(n_labelled=10 + t, kl_new_old=0.1, kl_old_new=0.1))
            assert verdict.value is None
            assert not verdict.stop


def test_kappas_are_of_consecutive_models_and_not_of_all_pairs() -> None:
    """Predictions that drift slowly: each model agrees with the one before, the first no longer with the last."""
    run = [np.array([1] * (50 - 2 * t) + [0] * (50 + 2 * t)) for t in range(4)]
    rule = StabilizingPredictions(threshold=0.95, window=3)
    for t, codes in enumerate(run):
        verdict = rule.observe(Step(n_labelled=20 + t, stop_probabilities=np.eye(2)[codes]))
    consecutive = np.mean([cohen_kappa(a, b) for a, b in itertools.pairwise(run)])
    pairs = np.mean([cohen_kappa(a, b) for a, b in itertools.combinations(run[-3:], 2)])
    assert verdict.value == pytest.approx(consecutive)
    assert verdict.stop
    assert pairs < 0.95  # the mistake: it would have gone on


SURE: NDArray[Any] = np.array([[0.9, 0.1]])
ENTROPY = -(0.9 * math.log(0.9) + 0.1 * math.log(0.1))

# Each rule with a step at which its two numbers are equal, and whether it says stop there.
AT_EQUALITY: dict[str, tuple[Criterion, list[Step], bool]] = {
    "Budget": (Budget(20), [Step(n_labelled=20)], True),
    "ErrorStability": (
        ErrorStability(1.0, calibration=1),
        [Step(n_labelled=n, kl_new_old=0.1, kl_old_new=0.1) for n in (20, 21)],
        True,
    ),
    "EntropyMax": (EntropyMax(0.01), [Step(n_labelled=20, pool_max_entropy=0.01)], True),
    "MinExpectedError": (MinExpectedError(0.01), [Step(n_labelled=20, pool_risk=0.01)], True),
    "OverallUncertainty": (OverallUncertainty(0.05), [Step(n_labelled=20, pool_uncertainty=0.05)], False),
    "MaxConfidence": (MaxConfidence(ENTROPY), [Step(n_labelled=20, selected_probabilities=SURE)], False),
    "MarginExhaustion": (MarginExhaustion(0.5), [Step(n_labelled=20, pool_margin=0.5)], True),
    "SelectedAccuracy": (
        SelectedAccuracy(0.5, window=2),
        [Step(n_labelled=20, selected_probabilities=SURE[[0, 0]], selected_labels=np.array([0, 1]))],
        True,
    ),
    "InformationGain": (InformationGain(0.01), [Step(n_labelled=20, pool_gain=0.01)], True),
    "SelectionAgreement": (SelectionAgreement(0.9), [Step(n_labelled=20, selected_agreement=0.9)], True),
    "IntrinsicStopping": (
        IntrinsicStopping(),
        [Step(n_labelled=20, selected_agreement=0.9, stop_agreement=0.9)],
        True,
    ),
    "ValidationSetAgreement": (
        ValidationSetAgreement(1),
        [Step(n_labelled=n, stop_agreement=0.8) for n in (20, 21)],
        True,
    ),
    "ClassificationChange": (ClassificationChange(), [Step(n_labelled=20, pool_changes=0)], True),
    "StabilizingPredictions": (
        StabilizingPredictions(1.0, 1),
        [Step(n_labelled=n, stop_probabilities=SURE) for n in (20, 21)],
        True,
    ),
    "PredictedFChange": (
        PredictedFChange(1.0, 1),
        [Step(n_labelled=n, stop_probabilities=np.array([[p, 1 - p]])) for n, p in ((20, 0.9), (21, 0.1))],
        False,
    ),
}
# What a sentence says of a value and its threshold; the longer words first, since they hold the shorter ones.
SAID: dict[str, Callable[[float, float], bool]] = {
    "is not below": lambda value, limit: value >= limit,
    "is at most": lambda value, limit: value <= limit,
    "is at least": lambda value, limit: value >= limit,
    "is below": lambda value, limit: value < limit,
    "is above": lambda value, limit: value > limit,
}


class TestWordsAndCodeSayTheSame:
    """A docstring that says "falls below" over code that tests >= misleads everybody who reads it."""

    @pytest.mark.parametrize("name", AT_EQUALITY)
    def test_at_equality(self, name: str) -> None:
        given, steps, stops = AT_EQUALITY[name]
        rule = given.copy()
        verdict = [rule.observe(step) for step in steps][-1]
        assert verdict.value == verdict.threshold
        assert verdict.stop == stops
        summary = str(type(rule).__doc__).splitlines()[0]
        if "below" in summary:
            assert not stops, summary
        if "at most" in summary or "at least" in summary:
            assert stops, summary

    def test_every_reason_is_true(self) -> None:
        steps = example_steps(80, seed=1)
        said = set()
        for rule, _, _ in AT_EQUALITY.values():
            fresh = rule.copy()
            fresh.reset()
            for verdict in fresh.observe_all(steps):
                words = next((words for words in SAID if words in verdict.reason), None)
                if words is None or verdict.value is None or verdict.threshold is None:
                    continue
                assert SAID[words](verdict.value, verdict.threshold), verdict.reason
                said.add(words)
        assert said >= {"is at most", "is at least", "is below", "is above", "is not below"}
