import itertools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score, f1_score

from suffice import Budget, Criterion, Step, Verdict, criterion_from_dict
from suffice.criteria.agreement import (
    ClassificationChange,
    KappaCertificate,
    PredictedFChange,
    StabilizingPredictions,
    ThresholdUpdate,
)
from suffice.criteria.base import snapped, tightened
from suffice.criteria.bayesian import InformationGain
from suffice.criteria.prediction_statistics import cohen_kappa, f_change
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError
from suffice.testing import check_criterion
from tests.every_rule import made_up_steps

RULES: dict[str, Callable[[], Criterion]] = {
    "ClassificationChange": ClassificationChange,
    "ThresholdUpdate": lambda: ThresholdUpdate(InformationGain(0.2)),
    "ThresholdUpdate of a rule with state": lambda: ThresholdUpdate(StabilizingPredictions(0.5, 2), factor=0.9),
    "StabilizingPredictions": lambda: StabilizingPredictions(0.9),
    "KappaCertificate": lambda: KappaCertificate(0.9, precision=0.5),
    "PredictedFChange": lambda: PredictedFChange(0.1, 2),
    "together": lambda: (StabilizingPredictions() & ClassificationChange().patience(2)) | PredictedFChange().after(20),
}

CODES = st.integers(1, 40).flatmap(
    lambda n: st.tuples(*(st.lists(st.integers(0, 3), min_size=n, max_size=n) for _ in range(2)))
)


@pytest.mark.parametrize("name", RULES)
def test_conformance(name: str) -> None:
    check_criterion(RULES[name], made_up_steps(35, seed=7))


def predicting(codes: list[int], *, n: int = 20, classes: int = 2) -> Step:
    """A step whose predictions on the stop set are these."""
    return Step(n_labelled=n, stop_probabilities=np.eye(classes)[codes])


def told(rule: Criterion, *predictions: list[int], classes: int = 2) -> list[Verdict]:
    return [rule.observe(predicting(codes, n=20 + t, classes=classes)) for t, codes in enumerate(predictions)]


# Of 100 items the first 50 are positive; the predictions differ in the last m of these.
def half(m: int) -> list[int]:
    return [1] * (50 - m) + [0] * (50 + m)


class TestKappa:
    def test_by_hand(self) -> None:
        # Of 50 items 35 alike; a has 25 positives and b 30: p_o = 0.7, p_e = 0.5 x 0.6 + 0.5 x 0.4 = 0.5.
        a = [1] * 20 + [1] * 5 + [0] * 10 + [0] * 15
        b = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15
        assert cohen_kappa(a, b) == pytest.approx(0.4, abs=1e-15)

    @given(CODES)
    def test_it_is_that_of_scikit_learn(self, codes: tuple[list[int], list[int]]) -> None:
        a, b = codes
        if len({*a, *b}) == 1:
            assert cohen_kappa(a, b) == 1.0  # where scikit-learn has 0/0, and NaN
        else:
            assert cohen_kappa(a, b) == pytest.approx(cohen_kappa_score(a, b), abs=1e-12)

    @given(CODES, st.permutations(range(4)))
    def test_properties(self, codes: tuple[list[int], list[int]], names: list[int]) -> None:
        a, b = codes
        kappa = cohen_kappa(a, b)
        assert -1.0 <= kappa <= 1.0
        assert cohen_kappa(b, a) == kappa
        assert cohen_kappa([names[k] for k in a], [names[k] for k in b]) == kappa
        assert (kappa == 1.0) == (a == b)

    def test_the_ends_of_its_range(self) -> None:
        assert cohen_kappa([0, 1], [1, 0]) == -1.0
        assert cohen_kappa([0, 1], [0, 1]) == 1.0
        assert cohen_kappa([0, 0, 0], [0, 0, 1]) == 0.0

    def test_large_counts_do_not_overflow(self) -> None:
        a = np.zeros(200_000, dtype=np.int8)
        b = a.copy()
        a[:2], b[1:3] = 1, 1
        assert cohen_kappa(a, b) == pytest.approx(0.5, abs=1e-4)

    @pytest.mark.parametrize(
        ("a", "b", "words"),
        [
            ([], [], "a must hold the class of each item"),
            ([0.5], [0], "a must hold the class of each item"),
            ([0], [-1], "b must hold the class of each item"),
            ([[0]], [0], "a must hold"),
            ([0, 1], [0], "same items; a has 2 items and b has 1"),
        ],
    )
    def test_bad_classes_are_named(self, a: Any, b: Any, words: str) -> None:
        with pytest.raises(InvalidValueError, match=words):
            cohen_kappa(a, b)
        with pytest.raises(InvalidValueError, match=words):
            f_change(a, b, 2)


class TestChangeOfF:
    def test_by_hand(self) -> None:
        # 3 both positive, 1 only the first, 2 only the second: 1 - 6/9.
        a, b = [1, 1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 1, 1, 0]
        assert f_change(a, b, 2) == pytest.approx(1.0 / 3.0, abs=1e-15)

    def test_many_classes_by_hand(self) -> None:
        # class 0: 1 both, 1 one -> 1/3; class 1: 1 both, 1 one -> 1/3; class 2: the same; class 3: nowhere -> 0.
        a, b = [0, 0, 1, 2], [0, 1, 1, 2]
        assert f_change(a, b, 3) == pytest.approx((1 / 3 + 1 / 3 + 0.0) / 3, abs=1e-15)
        assert f_change(a, b, 4) == pytest.approx((1 / 3 + 1 / 3 + 0.0 + 0.0) / 4, abs=1e-15)

    def test_nothing_over_nothing_is_no_change(self) -> None:
        assert f_change([0, 0, 0], [0, 0, 0], 2) == 0.0
        assert f_change([0], [0], 1) == 0.0
        assert f_change([0, 0, 0], [0, 0, 1], 2) == 1.0

    @given(CODES)
    def test_it_is_1_less_the_f_score_of_one_against_the_other(self, codes: tuple[list[int], list[int]]) -> None:
        a, b = codes
        f = f1_score(a, b, labels=[0, 1, 2, 3], average="macro", zero_division=1.0)
        assert f_change(a, b, 4) == pytest.approx(1.0 - f, abs=1e-12)
        two_a, two_b = ([int(k > 1) for k in each] for each in (a, b))
        assert f_change(two_a, two_b, 2) == pytest.approx(1.0 - f1_score(two_a, two_b, zero_division=1.0), abs=1e-12)
        assert f_change(b, a, 4) == f_change(a, b, 4)
        assert (f_change(a, b, 4) == 0.0) == (a == b)

    def test_a_class_beyond_the_last_is_named(self) -> None:
        with pytest.raises(InvalidValueError, match="n_classes is 2, so classes must be from 0 to 1; one is 2"):
            f_change([0, 2], [0, 1], 2)
        with pytest.raises(InvalidValueError, match="n_classes must be a whole number, 1 or more"):
            f_change([0], [0], 0)


class TestClassificationChange:
    def test_by_hand(self) -> None:
        rule = ClassificationChange()
        verdicts = [rule.observe(Step(n_labelled=20 + t, pool_changes=c)) for t, c in enumerate([3, 1, 0, 2, 0])]
        assert [v.stop for v in verdicts] == [False, False, True, False, True]
        assert (verdicts[0].value, verdicts[0].threshold) == (3.0, 0.0)
        assert verdicts[0].reason == "3 items of the pool changed their predicted class"
        assert verdicts[1].reason == "1 item of the pool changed its predicted class"
        assert verdicts[2].reason == "no item of the pool changed its predicted class"

    def test_it_is_not_judged_without_the_count(self) -> None:
        with pytest.raises(MissingInputError, match="ClassificationChange requires pool_changes"):
            ClassificationChange().observe(Step(n_labelled=3))


class TestThresholdUpdate:
    def run(self, rule: Criterion, *pairs: tuple[float, int]) -> list[Verdict]:
        return [rule.observe(Step(n_labelled=20 + t, pool_gain=g, pool_changes=c)) for t, (g, c) in enumerate(pairs)]

    def test_by_hand(self) -> None:
        rule = ThresholdUpdate(InformationGain(0.4))
        # above; at the threshold with changes: 0.2; above the new one though nothing changes; changes again: 0.1; stop
        verdicts = self.run(rule, (0.5, 0), (0.4, 1), (0.3, 0), (0.2, 5), (0.11, 0), (0.1, 0))
        assert [v.stop for v in verdicts] == [False, False, False, False, False, True]
        assert [v.threshold for v in verdicts] == [0.4, 0.4, 0.2, 0.2, 0.1, 0.1]
        assert [v.value for v in verdicts] == [0.5, 0.4, 0.3, 0.2, 0.11, 0.1]
        assert verdicts[1].reason.endswith(
            "but 1 item of the pool changed its predicted class: the threshold is tightened"
        )
        assert verdicts[5].reason.endswith(
            "at most the threshold 0.1, and no item of the pool changed its predicted class"
        )
        assert verdicts[0].reason == verdicts[0].parts[0].reason

    def test_nothing_is_tightened_while_the_rule_does_not_say_stop(self) -> None:
        rule = ThresholdUpdate(InformationGain(0.1))
        self.run(rule, (0.2, 4), (0.3, 9))
        assert rule.base == InformationGain(0.1)
        assert rule.original is None

    def test_reset_brings_the_threshold_back_also_after_a_resume(self) -> None:
        new = ThresholdUpdate(StabilizingPredictions(0.5, 1), factor=0.25)
        rule = new.copy()
        steps = [Step(n_labelled=20 + t, stop_probabilities=np.eye(2)[[0, 1, 1]], pool_changes=1) for t in range(3)]
        first = [rule.observe(step) for step in steps]
        assert [v.threshold for v in first] == [0.5, 0.5, 0.875]
        revived = criterion_from_dict(json.loads(json.dumps(rule.state_dict())))
        assert revived.state_dict() == rule.state_dict()
        for each in (rule, revived):
            each.reset()
            assert each.state_dict() == new.state_dict()
            assert [each.observe(step) for step in steps] == first

    def test_the_rule_that_was_given_is_left_alone(self) -> None:
        given_rule = InformationGain(0.4)
        self.run(ThresholdUpdate(given_rule), (0.1, 1))
        assert given_rule == InformationGain(0.4)

    @given(
        st.lists(st.tuples(st.floats(0, 1), st.integers(0, 2)), min_size=1, max_size=30),
        st.integers(0, 30),
        st.floats(0.01, 0.99),
    )
    def test_it_resumes_exactly_and_follows_its_definition(
        self, pairs: list[tuple[float, int]], cut: int, factor: float
    ) -> None:
        whole = ThresholdUpdate(InformationGain(0.5), factor)
        verdicts = self.run(whole, *pairs)
        part: Criterion = ThresholdUpdate(InformationGain(0.5), factor)
        self.run(part, *pairs[:cut])
        part = criterion_from_dict(json.loads(json.dumps(part.state_dict())))
        assert [v.stop for v in self.run(part, *pairs[cut:])] == [v.stop for v in verdicts[cut:]]
        assert part.state_dict() == whole.state_dict()
        threshold = 0.5
        for (gain, changes), verdict in zip(pairs, verdicts, strict=True):
            assert verdict.threshold == threshold
            assert verdict.stop == (gain <= threshold and changes == 0)
            threshold *= factor if gain <= threshold and changes else 1.0

    def test_it_asks_for_what_the_rule_inside_requires_too(self) -> None:
        rule = ThresholdUpdate(InformationGain())
        assert rule.needs() == {"pool_gain", "pool_changes"}
        with pytest.raises(MissingInputError, match="InformationGain requires pool_gain"):
            rule.observe(Step(n_labelled=3, pool_changes=0))

    def test_any_rule_that_can_be_tightened_will_do(self) -> None:
        rule = ThresholdUpdate(VarianceUnder(8), factor=0.5)
        told = [(7.0, 1), (5.0, 0), (3.0, 0)]
        stops = [rule.observe(Step(n_labelled=9, pool_variance=v, pool_changes=c)).stop for v, c in told]
        assert stops == [False, False, True]
        assert isinstance(rule.base, VarianceUnder)
        assert rule.base.seen == [7.0, 5.0, 3.0]  # what it has counted it keeps

    @pytest.mark.parametrize(
        ("base", "words"),
        [
            (Budget(3), "Budget has no method tighten"),
            (InformationGain() & Budget(3), "AllOf has no method tighten"),
            (0.5, "base must be a stopping rule such as sf.LabelWorth\\(\\), not float"),
        ],
    )
    def test_others_are_refused_by_name(self, base: Any, words: str) -> None:
        with pytest.raises(InvalidTypeError, match=words):
            ThresholdUpdate(base)

    @pytest.mark.parametrize("bad", [0.0, 1.0, -1.0, math.nan, "half", True])
    def test_a_bad_factor_is_named(self, bad: Any) -> None:
        for use in (lambda: ThresholdUpdate(InformationGain(), bad), lambda: InformationGain().tighten(bad)):
            with pytest.raises(InvalidValueError, match="factor must be a number between 0 and 1"):
                use()


@dataclass
class VarianceUnder(Criterion):
    """A rule with state and a threshold, as anybody may write one."""

    limit: float
    seen: list[float] = field(default_factory=list, init=False)

    requires: ClassVar[frozenset[str]] = frozenset({"pool_variance"})

    def tighten(self, factor: float) -> None:
        self.limit *= factor

    def judge(self, step: Step) -> Verdict:
        assert step.pool_variance is not None
        self.seen = [*self.seen, step.pool_variance]
        return self.verdict(step, stop=step.pool_variance < self.limit, reason="it is so")


class TestStabilizingPredictions:
    def test_by_hand(self) -> None:
        # half(0) against half(m): p_o = 1 - m/100, p_e = 1/2, so kappa = 1 - m/50.
        rule = StabilizingPredictions(threshold=0.96, window=3)
        verdicts = told(rule, half(0), half(2), half(0), half(1), half(0), half(3))
        assert [v.ready for v in verdicts] == [False, False, False, True, True, True]
        assert [v.value for v in verdicts[:3]] == [None] * 3
        # kappas 0.96, 0.96, 0.98, 0.98, 0.94
        assert verdicts[3].value == pytest.approx((0.96 + 0.96 + 0.98) / 3)
        assert verdicts[5].value == pytest.approx((0.98 + 0.98 + 0.94) / 3)
        assert [v.stop for v in verdicts[3:]] == [True, True, True]
        assert verdicts[0].reason == "0 of the 3 kappas between successive models are available"
        assert verdicts[3].reason == "the mean of the last 3 kappas, 0.967, is at least the threshold 0.96"
        strict = StabilizingPredictions(threshold=0.97, window=3)
        below = told(strict, half(0), half(2), half(0), half(1))[-1]
        assert not below.stop
        assert below.reason == "the mean of the last 3 kappas, 0.967, is below the threshold 0.97"

    def test_at_the_threshold_it_stops(self) -> None:
        rule = StabilizingPredictions(threshold=0.9, window=3)
        assert told(rule, half(0), half(5), half(0), half(5))[-1].stop  # three kappas of 0.9, whose mean is not 0.9
        assert rule.kappas == pytest.approx([0.9] * 3)
        assert told(StabilizingPredictions(1.0, 1), half(0), half(0))[-1].stop
        assert not told(StabilizingPredictions(1.0, 1), half(0), half(1))[-1].stop

    def test_classes_may_be_met_later(self) -> None:
        rule = StabilizingPredictions(window=1)
        rule.observe(predicting([0, 1, 0, 1], classes=2))
        verdict = rule.observe(predicting([0, 1, 0, 2], classes=3))
        assert verdict.value == pytest.approx(cohen_kappa_score([0, 1, 0, 1], [0, 1, 0, 2]))

    @pytest.mark.parametrize("make", [StabilizingPredictions, KappaCertificate, PredictedFChange])
    def test_a_stop_set_of_another_size_is_an_error_that_changes_nothing(self, make: Callable[[], Criterion]) -> None:
        rule = make()
        rule.observe(predicting([0, 1, 1]))
        before = rule.state_dict()
        with pytest.raises(
            InvalidValueError, match="has 2 rows, and had 3 at the previous step; draw the stop set once"
        ):
            rule.observe(predicting([0, 1]))
        assert rule.state_dict() == before
        with pytest.raises(InvalidValueError, match="stop_probabilities has no rows"):
            make().observe(Step(n_labelled=3, stop_probabilities=np.zeros((0, 2))))

    @given(
        st.lists(st.lists(st.integers(0, 2), min_size=6, max_size=6), min_size=1, max_size=12),
        st.integers(1, 4),
        st.integers(0, 12),
    )
    def test_against_a_direct_computation_and_across_a_resume(
        self, run: list[list[int]], window: int, cut: int
    ) -> None:
        verdicts = told(StabilizingPredictions(0.5, window), *run, classes=3)
        for t, verdict in enumerate(verdicts):
            pairs = [(run[s - 1], run[s]) for s in range(max(t - window + 1, 1), t + 1)]
            if t < window:
                assert (verdict.value, verdict.stop) == (None, False)
                continue
            mean = np.mean([1.0 if a == b else cohen_kappa_score(a, b) for a, b in pairs])
            assert verdict.value == pytest.approx(mean, abs=1e-12)
            assert verdict.stop == (mean >= 0.5 - 1e-12)
        first: Criterion = StabilizingPredictions(0.5, window)
        told(first, *run[:cut], classes=3)
        second = criterion_from_dict(json.loads(json.dumps(first.state_dict())))
        rest = [second.observe(predicting(codes, n=20 + cut + t, classes=3)) for t, codes in enumerate(run[cut:])]
        assert rest == verdicts[cut:]

    def test_tighten_comes_nearer_to_1(self) -> None:
        rule = StabilizingPredictions(0.9)
        rule.tighten(0.5)
        assert rule.threshold == pytest.approx(0.95)


class TestKappaCertificate:
    def certificate(self, rule: KappaCertificate, *predictions: list[int], classes: int = 2) -> tuple[str, str]:
        certificate = told(rule, *predictions, classes=classes)[-1].certificate
        assert certificate is not None
        assert certificate.change is None
        return certificate.statement, certificate.assumption

    def test_by_hand(self) -> None:
        # kappas 0.98 and 0.96: the smaller one is for both steps, 4 x 0.04 / 0.96.
        statement, assumption = self.certificate(KappaCertificate(window=2), half(0), half(1), half(3))
        assert statement == "Each of the last 2 steps changed the F score on the stop set by at most 0.167."
        assert "sampling" in assumption
        assert "positive" not in assumption
        known, assumed = self.certificate(KappaCertificate(window=2, precision=0.6), half(0), half(1), half(3))
        assert known.endswith("by at most 0.104.")  # 4 x 0.04 / (1.6 x 0.96)
        assert "at least 0.6" in assumed

    def test_it_stops_where_the_plain_rule_does(self) -> None:
        run = [half(m) for m in (0, 2, 2, 3, 3, 3, 3, 9)]
        plain, certified = told(StabilizingPredictions(0.98), *run), told(KappaCertificate(0.98), *run)
        assert [v.stop for v in plain] == [v.stop for v in certified]
        assert [v.value for v in plain] == [v.value for v in certified]
        assert [v.certificate is not None for v in certified] == [v.ready for v in certified]

    def test_it_claims_nothing_that_it_cannot(self) -> None:
        wide, _ = self.certificate(KappaCertificate(window=1), half(0), half(20))  # kappa 0.6: a bound of 2.67
        assert wide.startswith("Nothing yet: with a kappa of 0.6")
        opposite, _ = self.certificate(KappaCertificate(window=1), half(0), [1 - c for c in half(0)])
        assert opposite.startswith("Nothing yet")
        three = [0] * 10 + [1] * 10 + [2] * 10
        many, _ = self.certificate(KappaCertificate(window=1), three, [1, *three[1:]], classes=3)
        assert many.startswith("Nothing is guaranteed: the bound on F is for two classes, and there are 3")
        same, _ = self.certificate(KappaCertificate(window=1), three, three, classes=3)
        assert same == "The last step changed the F score on the stop set by at most 0."

    @given(
        st.lists(
            st.tuples(st.booleans(), st.booleans(), st.sampled_from([False] * 9 + [True])), min_size=20, max_size=80
        )
    )
    def test_the_bound_holds_whatever_the_labels(self, items: list[tuple[bool, bool, bool]]) -> None:
        """Labels, predictions, and which of them change: F moves by no more than the certificate says."""
        truth = np.array([label for label, _, _ in items])
        a = np.array([prediction for _, prediction, _ in items])
        b = np.array([prediction != changes for _, prediction, changes in items])
        kappa = cohen_kappa(a.astype(int), b.astype(int))
        moved = abs(f1_score(truth, a, zero_division=1.0) - f1_score(truth, b, zero_division=1.0))
        if kappa > 0.0:
            assert moved <= 4.0 * (1.0 - kappa) / kappa + 1e-12
        if kappa > 0.0 and (a & b).any():
            precision = float(truth[a & b].mean())
            assert moved <= 4.0 * (1.0 - kappa) / ((precision + 1.0) * kappa) + 1e-12


class TestPredictedFChange:
    def test_by_hand(self) -> None:
        # half(0) against half(m): 50 - m both, m one: 1 - 2 (50 - m) / (100 - m) = m / (100 - m).
        rule = PredictedFChange(threshold=0.05, rounds=2)
        verdicts = told(rule, half(0), half(4), half(0), half(6), half(6), half(6))
        assert [v.value for v in verdicts] == [None, *(pytest.approx(x) for x in (4 / 96, 4 / 96, 6 / 94, 0.0, 0.0))]
        assert [v.stop for v in verdicts] == [False, False, True, False, False, True]
        assert [v.ready for v in verdicts] == [False, True, True, True, True, True]
        assert verdicts[1].reason == (
            "the predicted change of F on the stop set, 0.0417, is below the threshold 0.05 (1 of 2 rounds in a row)"
        )
        assert (
            verdicts[3].reason == "the predicted change of F on the stop set, 0.0638, is not below the threshold 0.05"
        )

    def test_at_the_threshold_it_goes_on(self) -> None:
        assert not told(PredictedFChange(0.25, 1), half(0), half(20))[-1].stop  # 20/80
        assert told(PredictedFChange(math.nextafter(0.25, 1.0), 1), half(0), half(20))[-1].stop

    def test_classes_may_be_met_later_and_be_lost_again(self) -> None:
        rule = PredictedFChange(0.5, 1)
        rule.observe(predicting([0, 1], classes=2))
        assert rule.observe(predicting([0, 2], classes=3)).value == pytest.approx(2.0 / 3.0)
        assert rule.observe(predicting([0, 1], classes=2)).value == pytest.approx(2.0 / 3.0)

    @given(st.lists(st.integers(0, 49), min_size=2, max_size=25), st.integers(1, 4))
    def test_only_consecutive_rounds_count(self, run: list[int], rounds: int) -> None:
        verdicts = told(PredictedFChange(0.05, rounds), *(half(m) for m in run))
        small = [False, *(f_change(half(a), half(b), 2) < 0.05 for a, b in itertools.pairwise(run))]
        expected = [t + 1 >= rounds and all(small[t + 1 - rounds : t + 1]) for t in range(len(run))]
        assert [v.stop for v in verdicts] == expected

    def test_tighten_multiplies(self) -> None:
        rule = PredictedFChange(0.05)
        rule.tighten(0.5)
        assert rule.threshold == 0.025


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: StabilizingPredictions(1.5), "threshold must be a number from 0 to 1, not 1.5"),
        (lambda: StabilizingPredictions(math.nan), "threshold must be a number from 0 to 1"),
        (lambda: StabilizingPredictions(window=0), "window must be a whole number, 1 or more"),
        (lambda: KappaCertificate(-0.1), "threshold must be a number from 0 to 1"),
        (lambda: KappaCertificate(precision=1.1), "precision must be a number from 0 to 1"),
        (lambda: PredictedFChange(0.0), "threshold must be a number above 0 and at most 1"),
        (lambda: PredictedFChange(rounds=0), "rounds must be a whole number, 1 or more"),
        (lambda: PredictedFChange(rounds=1.5), "rounds must be a whole number"),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_are_named(make: Callable[[], Criterion], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        make()


def test_a_tightened_threshold_never_becomes_the_limit() -> None:
    assert tightened(5e-324, 0.5, limit=0.0) == 5e-324
    assert tightened(1.0 - 2**-53, 0.25, limit=1.0) < 1.0
    assert tightened(0.0, 0.5, limit=0.0) == 0.0
    assert tightened(1.0, 0.5, limit=1.0) == 1.0
    assert snapped(0.5 + 1e-11, 0.5) == 0.5 + 1e-11


def test_half_precision_tables_are_taken_as_they_are() -> None:
    table: NDArray[Any] = np.array([[0.5, 0.5], [0.25, 0.75]], dtype=np.float16)
    rule = StabilizingPredictions(window=1)
    rule.observe(Step(n_labelled=1, stop_probabilities=table))
    assert rule.previous == [0, 1]  # where two classes are equally likely, the first is predicted
