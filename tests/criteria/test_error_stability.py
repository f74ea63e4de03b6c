import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import ErrorStability, Step, criterion_from_dict, kl
from suffice.bounds import risk_gap, threshold, total_variation
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError
from suffice.posteriors import Draws, Gaussian

KLS = st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=1, max_size=40)


def steps(pairs: list[tuple[float, float]], start: int = 11) -> list[Step]:
    return [Step(n_labelled=start + t, kl_new_old=a, kl_old_new=b) for t, (a, b) in enumerate(pairs)]


def by_hand(pairs: list[tuple[float, float]], m: int) -> list[float]:
    r = [risk_gap(a) + risk_gap(b) for a, b in pairs]
    return [1.0 if t < m else r[t] / min(r[:m]) for t in range(len(r))]


@given(st.lists(st.tuples(st.floats(1e-6, 10), st.floats(1e-6, 10)), min_size=1, max_size=40), st.integers(1, 12))
def test_the_ratio_is_the_papers(pairs: list[tuple[float, float]], m: int) -> None:
    rule = ErrorStability(0.3, calibration=m)
    verdicts = [rule.observe(step) for step in steps(pairs)]
    assert [v.value for v in verdicts] == pytest.approx(by_hand(pairs, m), rel=1e-14)
    assert [v.ready for v in verdicts] == [t >= m for t in range(len(pairs))]
    assert [v.stop for v in verdicts] == [t >= m and v.value <= 0.3 for t, v in enumerate(verdicts)]  # type: ignore[operator]


def test_it_never_stops_while_it_calibrates() -> None:
    rule = ErrorStability(1.0, calibration=3)
    assert [rule.observe(step).stop for step in steps([(0.1, 0.1)] * 4)] == [False, False, False, True]


def test_a_step_without_change_does_not_spoil_the_scale() -> None:
    rule = ErrorStability(0.1, calibration=3)
    verdicts = [rule.observe(step) for step in steps([(0.5, 0.5), (0.0, 0.0), (0.4, 0.4), (0.1, 0.1), (0.0, 0.0)])]
    scale = 2 * risk_gap(0.4)
    assert verdicts[3].value == pytest.approx(2 * risk_gap(0.1) / scale)
    assert verdicts[4].value == 0.0
    assert verdicts[4].stop


def test_a_posterior_that_never_moves_is_undecided_not_stable() -> None:
    rule = ErrorStability(0.1, calibration=2)
    verdicts = [rule.observe(step) for step in steps([(0.0, 0.0)] * 5 + [(0.3, 0.3), (0.3, 0.3)])]
    assert not any(v.stop for v in verdicts)
    assert not verdicts[4].ready
    assert "no label has changed the posterior yet" in verdicts[4].reason
    assert verdicts[6].ready
    assert verdicts[6].value == 1.0


@pytest.mark.parametrize("bound", ["paper", "tight"])
def test_absolute_mode_compares_the_certified_change_itself(bound: str) -> None:
    rule = ErrorStability(0.02, relative=False, bound=bound)  # type: ignore[arg-type]
    certified = risk_gap(1e-3) + risk_gap(2e-3) if bound == "paper" else total_variation(1e-3, 2e-3)
    first = rule.observe(Step(n_labelled=1, kl_new_old=1e-3, kl_old_new=2e-3))
    assert first.ready
    assert first.value == pytest.approx(certified)
    assert first.certificate is not None
    assert first.certificate.change == pytest.approx(certified)
    assert not first.stop
    assert rule.observe(Step(n_labelled=2, kl_new_old=1e-6, kl_old_new=1e-6)).stop


def test_tight_is_at_least_four_times_smaller() -> None:
    pair = (0.01, 0.02)
    paper, tight = (
        ErrorStability(0.5, relative=False, bound=b).observe(steps([pair])[0]).value for b in ("paper", "tight")
    )
    assert paper is not None
    assert tight is not None
    assert paper >= 4 * tight


def test_from_confidence_is_theorem_2_and_says_so() -> None:
    rule = ErrorStability.from_confidence(eta=0.4, delta=0.1, calibration=1)
    assert rule.threshold == threshold(0.4, 0.1)
    rule.observe(steps([(0.1, 0.1)])[0])
    certificate = rule.observe(steps([(1e-4, 1e-4)])[0]).certificate
    assert certificate is not None
    gamma = 2 * risk_gap(0.1)
    assert gamma * 0.4 < 1.0
    assert f"within {gamma * 0.4:.3g} of the loss range" in certificate.statement
    assert "probability at least 1 - 0.1" in certificate.statement
    assert "supermartingale" in certificate.assumption
    assert ErrorStability.from_confidence(eta=0.99, delta=0.99).threshold == 1.0


def test_from_cost_is_equations_1_to_3() -> None:
    rule = ErrorStability.from_cost(label_cost=2.0, error_cost=100.0)
    assert rule.threshold == 0.02
    assert not rule.relative
    # the same decision as comparing the ratio with kappa / ((b - a) gamma), whatever gamma
    for kl_value in (1e-6, 4e-5, 6e-5, 1e-2):
        r = 2 * risk_gap(kl_value)
        for gamma in (0.01, 3.0):
            stop = rule.observe(Step(n_labelled=1, kl_new_old=kl_value, kl_old_new=kl_value)).stop
            assert stop == (r / gamma <= 2.0 / (100.0 * gamma))
    assert ErrorStability.from_cost(label_cost=5.0, error_cost=1.0).threshold == 1.0
    for bad in (0.0, -1.0, math.nan, math.inf, "much"):
        with pytest.raises(InvalidValueError, match="label_cost must be"):
            ErrorStability.from_cost(label_cost=bad, error_cost=1.0)  # type: ignore[arg-type]
        with pytest.raises(InvalidValueError, match="error_cost must be"):
            ErrorStability.from_cost(label_cost=1.0, error_cost=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"threshold": 1.5}, "threshold must be a number from 0 to 1, not 1.5"),
        ({"threshold": math.nan}, "threshold must be a number from 0 to 1, not nan"),
        ({"threshold": "low"}, "threshold"),
        ({"threshold": True}, "threshold"),
        ({"calibration": 0}, "calibration must be a whole number, 1 or more"),
        ({"calibration": 2.5}, "calibration"),
        ({"relative": "no"}, "relative must be True or False"),
        ({"delta": "x"}, "delta must be a number between 0 and 1"),
        ({"bound": "loose"}, "bound must be 'paper' or 'tight'"),
        ({"delta": 1.0}, "delta must be a number between 0 and 1"),
        ({"delta": 0.1, "relative": False}, "use it with relative=True"),
    ],
)
def test_bad_parameters_are_named(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        ErrorStability(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("given_fields", [{}, {"kl_new_old": 0.1}, {"kl_old_new": 0.1}])
def test_without_posteriors_it_fails_at_the_first_step_by_name(given_fields: dict[str, float]) -> None:
    missing = sorted({"kl_new_old", "kl_old_new"} - set(given_fields))
    with pytest.raises(MissingInputError, match=f"ErrorStability requires {', '.join(missing)}.*Step.between"):
        ErrorStability().observe(Step(n_labelled=5, **given_fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
@pytest.mark.parametrize("name", ["kl_new_old", "kl_old_new"])
def test_a_bad_divergence_is_named_before_any_rule_sees_it(name: str, bad: float) -> None:
    with pytest.raises(InvalidValueError, match=f"{name} is (negative|NaN|infinite)"):
        Step(n_labelled=12, **({"kl_new_old": 0.1, "kl_old_new": 0.1} | {name: bad}))  # type: ignore[arg-type]
    assert Step(n_labelled=12, **{name: -1e-12}) == Step(n_labelled=12, **{name: 0.0})  # type: ignore[arg-type]


def test_two_equal_posteriors_up_to_rounding_do_not_spoil_the_scale() -> None:
    """The same posterior fitted in another order of rows has a divergence of 1e-30, not 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    again = X[rng.permutation(200)]
    rounding = kl(*(Gaussian(np.zeros(5), precision=Z.T @ Z + np.eye(5)) for Z in (X, again)))
    assert 0.0 <= rounding < 1e-25
    pairs = [(0.5 / n**2, 0.5 / n**2) for n in range(1, 60)]
    clean, rough = ErrorStability(0.1), ErrorStability(0.1)
    for t, step in enumerate(steps(pairs)):
        clean.observe(step)
        rough.observe(step if t != 4 else Step(n_labelled=15, kl_new_old=rounding, kl_old_new=rounding))
    assert rough.gamma == clean.gamma


def test_extreme_divergences_leave_the_rule_usable() -> None:
    rule = ErrorStability(0.05, calibration=1)
    for step in steps([(1e-13, 1e-13), (1.7e308, 1.7e308), (1e-320, 1e-320)]):
        verdict = rule.observe(step)
        assert verdict.value is not None
        assert math.isfinite(verdict.value)
        str(verdict)
    json.dumps(rule.state_dict(), allow_nan=False)


def test_a_first_step_without_labels_can_be_printed() -> None:
    rule = ErrorStability(0.01, relative=False)
    for step in steps([(0.1, 0.1)] * 6, start=0):
        str(rule.observe(step))
    assert rule.n_labelled == [1, 2, 3, 4, 5]


def test_observe_takes_a_step() -> None:
    with pytest.raises(InvalidTypeError, match=r"observe takes a suffice\.Step, not float"):
        ErrorStability().observe(0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-1, 1.5, True, "many"])
def test_step_wants_a_count(bad: object) -> None:
    with pytest.raises(InvalidValueError, match="n_labelled must be a whole number"):
        Step(n_labelled=bad)  # type: ignore[arg-type]


def test_step_wants_numbers() -> None:
    with pytest.raises(InvalidTypeError, match="kl_new_old must be a real number"):
        Step(n_labelled=1, kl_new_old="small", kl_old_new=0.1)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="kl_new_old must be one number"):
        Step(n_labelled=1, kl_new_old=[0.1, 0.2], kl_old_new=0.1)  # type: ignore[arg-type]
    assert Step(n_labelled=np.int64(3), kl_new_old=np.float32(0.5)).kl_new_old == 0.5  # type: ignore[arg-type]


@given(KLS, st.integers(0, 40), st.sampled_from(["paper", "tight"]), st.booleans(), st.integers(1, 5))
def test_resume_continues_bit_for_bit(
    pairs: list[tuple[float, float]], cut: int, bound: str, relative: bool, m: int
) -> None:
    def make() -> ErrorStability:
        return ErrorStability(0.2, bound=bound, relative=relative, calibration=m)  # type: ignore[arg-type]

    rule = make()
    run = steps(pairs)
    whole = [rule.observe(step) for step in run]
    first = make()
    before = [first.observe(step) for step in run[:cut]]
    second = criterion_from_dict(json.loads(json.dumps(first.state_dict())))
    after = [second.observe(step) for step in run[cut:]]
    assert before + after == whole
    assert [str(v) for v in before + after] == [str(v) for v in whole]
    assert second.state_dict() == rule.state_dict()


def test_estimates_guarantee_nothing_and_the_certificate_says_so() -> None:
    rng = np.random.default_rng(0)
    old, new = (Draws(rng.normal(size=(400, 2)) + shift, method="gaussian") for shift in (0.0, 0.1))
    certificate = ErrorStability().observe(Step.between(old, new, n_labelled=20)).certificate
    assert certificate is not None
    assert certificate.statement.startswith("Nothing is guaranteed: estimate by Gaussian fits to 400 and 400 draws")
    assert certificate.change is None
    exact = ErrorStability().observe(Step.between(Gaussian(0.0, 1.0), Gaussian(0.01, 1.0), n_labelled=20)).certificate
    assert exact is not None
    assert "changed the expected error by at most" in exact.statement
    assert exact.change == pytest.approx(2 * risk_gap(kl(Gaussian(0.0, 1.0), Gaussian(0.01, 1.0))))


def test_a_bound_wider_than_the_loss_range_claims_nothing() -> None:
    certificate = ErrorStability().observe(steps([(5.0, 5.0)])[0]).certificate
    assert certificate is not None
    assert certificate.statement.startswith("Nothing yet")
    assert certificate.change == 1.0


def test_a_verdict_reads_well() -> None:
    rule = ErrorStability(0.05, calibration=5)
    texts = []
    for t in range(60):
        kl_value = 0.5 * ((t + 1) / 5) ** -2.0
        texts.append(str(rule.observe(Step(n_labelled=11 + t, kl_new_old=kl_value, kl_old_new=kl_value))))
    assert texts[0] == ("Go on (undecided) at 11 labels: step 1 of the 5 that set the scale of the error ratio.")
    assert texts[4].endswith("it is judged from the next step on.")
    assert texts[30].startswith("Go on at 41 labels: the error ratio 0.143 is above the threshold 0.05. About ")
    assert " more labels (" in texts[30]


def test_a_step_told_twice_does_not_break_the_forecast() -> None:
    rule = ErrorStability(0.3, calibration=1)
    for step in steps([(0.5, 0.5)] + [(0.1, 0.1)] * 9, start=11):
        rule.observe(step)
        verdict = rule.observe(step)
    assert verdict.forecast is not None
