"""Simulated and audited runs with checks: when they are drawn, what is recorded, and what is summarised."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.checks import Guarantee, sequential_plan
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.learner import ErrorGuarantee, RecallGuarantee
from suffice.learner.hindsight import guaranteed_run
from suffice.learner.simulation import true_value
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.trace import RecordedCheck, Trace


def classes(m: int = 800, noise: float = 0.2, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    return X, np.where(X[:, 0] + noise * rng.normal(size=m) > 0.0, "spam", "ham")


def numbers(m: int = 600, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    return X, X[:, 0] + 0.3 * rng.normal(size=m)


def test_labels_until_the_error_is_guaranteed() -> None:
    X, y = classes()
    trace = sf.simulate(BayesianLogistic(), X, y, rule=ErrorGuarantee(0.15), batch=5, seed=3)
    found = guaranteed_run(trace)
    assert found.reached
    assert found.guarantee is not None
    assert found.guarantee.value <= 0.15
    assert all(check.holds for check in found.checks)
    *failed, last = trace.checks
    assert [check.passed for check in failed] == [False] * len(failed)
    assert last.passed
    # The model of the last check had learned what the trace contains; the labels of the check come on top.
    assert last.n_labelled == len(trace.initial) + trace.indices.size
    assert found.labels == last.n_labelled + len(last.items)
    assert found.in_checks == sum(len(check.items) for check in trace.checks)
    assert not np.isin(last.items, trace.indices).any()
    assert found.expected_totals[0][0] == 10
    assert any(total is not None for _, total in found.expected_totals)
    assert str(found).startswith("At most ")


def test_the_same_seed_gives_the_same_run() -> None:
    X, y = classes()
    one, two = (sf.simulate(BayesianLogistic(), X, y, rule=ErrorGuarantee(0.2), batch=5, seed=0) for _ in range(2))
    assert one.checks == two.checks
    assert one.indices.tolist() == two.indices.tolist()
    assert one.about == two.about


def test_the_truth_is_that_of_the_frozen_model() -> None:
    X, y = classes()
    trace = sf.simulate(BayesianLogistic(alpha=1.0), X, y, steps=30, check=60, seed=0)
    (check,) = trace.checks
    assert (check.n_labelled, len(check.items), check.passed) == (40, 60, None)
    learned = np.concatenate([trace.initial, trace.indices])
    rest = np.setdiff1d(np.arange(800), np.concatenate([learned, check.items]))
    model = BayesianLogistic(alpha=1.0).fit(X[learned], y[learned])
    assert check.truth == np.mean(model.predict(X[rest]) != y[rest])
    assert check.guarantee is not None
    wrong = int(np.sum(model.predict(X[list(check.items)]) != y[list(check.items)]))
    assert (check.guarantee.wrong, check.guarantee.pool) == (wrong, 760)
    # Without a rule the run is the one that is simulated without a check.
    plain = sf.simulate(BayesianLogistic(alpha=1.0), X, y, steps=30)
    assert plain.indices.tolist() == trace.indices.tolist()
    np.testing.assert_allclose(plain.kl_new_old, trace.kl_new_old)
    assert [v.value for v in plain.replay(sf.LabelWorth())] == [v.value for v in trace.replay(sf.LabelWorth())]


def test_another_rule_stops_and_is_checked_there() -> None:
    X, y = classes()
    trace = sf.simulate(BayesianLogistic(), X, y, rule=sf.Budget(50), check=40, seed=0)
    assert (trace.n_labelled[-1], trace.checks[0].n_labelled, len(trace.checks[0].items)) == (50, 50, 40)
    found = guaranteed_run(trace)
    assert (found.labels, found.in_checks, found.reached, found.expected_totals) == (90, 40, None, ())
    stopped = sf.simulate(BayesianLogistic(), X, y, rule=sf.LabelWorth(mistake_cost=0.2), seed=0)
    assert stopped.checks == ()
    assert stopped.replay(sf.LabelWorth(mistake_cost=0.2))[-1].stop


def test_a_composed_rule_ends_a_run_that_does_not_reach_its_target() -> None:
    X, y = classes(noise=3.0)
    trace = sf.simulate(BayesianLogistic(), X, y, rule=ErrorGuarantee(0.02) | sf.Budget(60), batch=10, seed=0)
    found = guaranteed_run(trace)
    assert (found.labels, found.checks, found.guarantee, found.reached) == (60, (), None, None)
    assert {total for _, total in found.expected_totals} == {None}
    assert str(found) == "Nothing is guaranteed. It took 60 labels, 0 of them in 0 checks."


def test_a_failed_check_is_learned_and_labelling_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    # The target is near the true error and plans are too optimistic, so that some checks fail.
    monkeypatch.setattr(sequential_plan, "_LIKELY", 0.5)
    sequential_plan.plan_total.cache_clear()
    for seed in range(9):
        X, y = classes(noise=1.0, seed=seed)
        trace = sf.simulate(BayesianLogistic(), X, y, rule=ErrorGuarantee(0.33), batch=10, seed=seed)
        found = guaranteed_run(trace)
        if len(trace.checks) > 1:
            first, second = trace.checks[:2]
            assert set(first.items) <= set(trace.indices.ravel().tolist())
            assert set(first.items) <= set(trace.random_items.tolist())
            assert second.n_labelled >= first.n_labelled + len(first.items) + 10
            # A check that was given up proves nothing, and its error probability is spent.
            assert first.guarantee is None
            if second.guarantee is not None:
                assert second.guarantee.alpha == pytest.approx(0.05 / 6)
            assert found.labels == len(trace.initial) + trace.indices.size + len(trace.checks[-1].items)
            sequential_plan.plan_total.cache_clear()
            return
    raise AssertionError("no check failed")


def test_numbers_within_a_tolerance() -> None:
    X, y = numbers()
    rule = ErrorGuarantee(0.3, tolerance=0.6)
    trace = sf.simulate(GaussianProcess(1.0, 0.1), X, y, rule=rule, batch=5, seed=0)
    found = guaranteed_run(trace)
    assert found.reached
    assert found.guarantee is not None
    assert (found.guarantee.quantity, found.guarantee.tolerance) == ("within", 0.6)
    with pytest.raises(InvalidValueError, match="the model predicts numbers: give tolerance"):
        sf.simulate(GaussianProcess(1.0, 0.1), X, y, rule=ErrorGuarantee(0.3), seed=0)


@pytest.mark.slow
def test_recall() -> None:
    X, y = classes(1500)
    trace = sf.simulate(BayesianLogistic(), X, y, rule=RecallGuarantee("spam", 0.8), batch=10, seed=0)
    found = guaranteed_run(trace)
    assert found.reached
    assert found.guarantee is not None
    assert (found.guarantee.quantity, found.guarantee.class_name) == ("recall", "spam")
    assert found.checks[-1].truth >= found.guarantee.value >= 0.8


@pytest.mark.parametrize(
    "asked", [{"recall_of": "spam"}, {"recall_of": "spam", "predicted_as_found": False}, {"precision_of": "spam"}]
)
def test_the_truth_of_other_quantities(asked: dict[str, Any]) -> None:
    X, y = classes(300)
    trace = sf.simulate(BayesianLogistic(alpha=1.0), X, y, steps=20, check={"m": 50, **asked}, seed=0)
    (check,) = trace.checks
    learned, items = np.concatenate([trace.initial, trace.indices]), list(check.items)
    model = BayesianLogistic(alpha=1.0).fit(X[learned], y[learned])
    known, predicted, spam = np.zeros(300, dtype=bool), model.predict(X) == "spam", y == "spam"
    known[learned] = True
    found = known.copy()
    found[items] = True
    if "precision_of" in asked:
        expected = np.mean(spam[predicted & ~found])
    elif asked.get("predicted_as_found", True):
        expected = np.sum(spam & (found | predicted)) / np.sum(spam)
    else:
        expected = np.sum(spam & found) / np.sum(spam)
    assert check.truth == pytest.approx(expected)
    assert check.holds


def test_the_truth_of_a_tolerance() -> None:
    X, y = numbers(300)
    trace = sf.simulate(BayesianRidge(alpha=1.0, beta=10.0), X, y, steps=20, check={"m": 60, "share": 0.2}, seed=0)
    (check,) = trace.checks
    assert check.guarantee is not None
    assert 0.0 < check.truth < 0.2
    assert check.holds


def test_audit() -> None:
    X, y = classes()
    trace = sf.audit(BayesianLogistic(), X, y, rule=ErrorGuarantee(0.15), batch=10, seed=0)
    found = guaranteed_run(trace)
    assert found.reached
    first = trace.indices.ravel()[:20].tolist()
    assert first == list(range(10, 30))
    assert min(trace.checks[-1].items) >= trace.checks[-1].n_labelled - found.in_checks
    plain = sf.audit(BayesianLogistic(), X, y, rule=sf.Budget(100), check=30, seed=0)
    assert min(plain.checks[0].items) >= 100


def test_a_run_with_checks_can_be_saved(tmp_path: Path) -> None:
    X, y = classes()
    trace = sf.simulate(BayesianLogistic(), X, y, rule=ErrorGuarantee(0.15), batch=5, seed=0)
    trace.save(tmp_path / "run.npz")
    again = Trace.load(tmp_path / "run.npz")
    assert again.checks == trace.checks
    assert guaranteed_run(again) == guaranteed_run(trace)
    plain = sf.simulate(BayesianLogistic(), X, y, steps=3)
    plain.save(tmp_path / "plain.npz")
    assert Trace.load(tmp_path / "plain.npz").checks == ()


def test_whether_a_guarantee_holds() -> None:
    error = Guarantee.of_error(2, 50, 500)
    assert RecordedCheck(10, (1,), error, error.value).holds
    assert not RecordedCheck(10, (1,), error, error.value + 1e-6).holds
    recall = Guarantee.of_recall("spam", 40, 2, 50, 500)
    assert RecordedCheck(10, (1,), recall, recall.value).holds
    assert not RecordedCheck(10, (1,), recall, recall.value - 1e-6).holds
    assert RecordedCheck(10, (1,), None, math.nan).holds


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"X_test": [[1.0] * 3], "y_test": ["spam"]}, "X_test cannot be combined with rule, check or check_share"),
        ({"watch": lambda model: {}}, "watch cannot be combined"),
        ({"record": "all"}, "record cannot be combined"),
        ({"steps": 10_000}, "steps is 10000, but 800 rows less 10 initial ones leave 790"),
        ({"batch": 0}, "batch must be"),
        ({"check": 0}, "check must be a whole number, 1 or more, not 0"),
        ({"check": {"m": 0}}, "m of check must be a whole number, 1 or more, not 0"),
        ({"check": {"size": 20}}, "check must have the number of items, such as {'m': 100}; it has 'size'"),
        ({"check": {"m": 20, "tolerance": 1.0}}, "tolerance cannot be checked"),
    ],
)
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    X, y = classes()
    with pytest.raises(InvalidValueError, match=message):
        sf.simulate(BayesianLogistic(), X, y, **{"rule": sf.Budget(20), **options})


def test_a_rule_is_required_to_be_one() -> None:
    with pytest.raises(InvalidTypeError, match="rule must be a stopping rule"):
        sf.simulate(BayesianLogistic(), *classes(), rule=0.05, seed=0)  # type: ignore[arg-type]


def test_no_truth_without_a_guarantee() -> None:
    X, y = classes(100)
    learner = sf.ActiveLearner(BayesianLogistic(), X, seed=0)
    items = learner.ask(10)
    learner.tell(items, y[items])
    assert math.isnan(true_value(learner.check(10), y))
