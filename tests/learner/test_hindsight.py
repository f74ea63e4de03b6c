"""Decisions of recorded runs, and audits in several orders."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier

import suffice as sf
from suffice.errors import InvalidValueError
from suffice.learner.hindsight import audit_orders, audited_stop
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from tests.thoroughness import some

pytestmark = pytest.mark.usefixtures("all_trees")


def classes(rows: int = 240, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, np.where(X[:, 0] + 0.5 * X[:, 1] + 0.7 * rng.normal(size=rows) > 0.0, "up", "down")


def numbers(rows: int = 200, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return X, X @ [3.0, 2.0, 1.0] + rng.normal(size=rows)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("acquisition", some([None, "margin", "random"], every=2))
def test_the_decision_is_that_of_a_learner_that_is_asked_and_told(acquisition: str | None) -> None:
    X, y = classes()
    rule = sf.LabelWorth()
    trace = sf.simulate(BayesianLogistic(), X, y, acquisition=acquisition, seed=3, steps=120, decide=rule)
    found = trace.decisions[-1]
    learner = sf.ActiveLearner(BayesianLogistic(), X, acquisition=acquisition, seed=3, criterion=rule)
    while len(learner.labelled) < found.decision.n_labelled:
        items = learner.ask()
        learner.tell(items, y[items])
    assert learner.labelled == [*trace.initial, *trace.indices[: len(learner.labelled) - 10]]
    live = learner.decision()
    assert live.answer == found.decision.answer
    assert found.decision.error == pytest.approx(live.error, rel=1e-6)
    assert (live.baseline, live.common, live.since) == pytest.approx(
        (found.decision.baseline, found.decision.common, found.decision.since)
    )


@pytest.mark.parametrize("batch", some([7, 1], every=2))
def test_numbers_and_batches(batch: int) -> None:
    X, y = numbers()
    trace = sf.simulate(GaussianProcess(), X, y, batch=batch, decide=sf.LabelWorth())
    found = trace.decisions[-1]
    assert found.ends
    assert found.decision.n_labelled == trace.n_labelled[found.step]
    assert found.decision.unlabelled == 200 - found.decision.n_labelled
    assert found.decision.error is not None
    assert 0.5 < found.decision.error.value < 2.0


def test_without_a_stop_it_is_the_decision_at_the_end() -> None:
    X, y = classes()
    for rule in (sf.LabelWorth(mistake_cost=1e6), sf.ErrorStability(0.0)):
        (found,) = sf.simulate(BayesianLogistic(), X, y, steps=20, decide=rule).decisions
        assert (found.step, found.ends, found.decision.answer) == (19, False, "keep going")
        assert found.decision.n_labelled == 30


def test_the_error_that_is_wanted_decides_when_to_check() -> None:
    X, y = classes(120)
    easy, hard = (
        [
            each.decision
            for each in sf.simulate(BayesianLogistic(), X, y, decide=sf.LabelWorth(), at_most=at_most).decisions
        ]
        for at_most in (0.9, 0.001)
    )
    # A check has to guarantee the first.
    assert easy[-1].plan is not None
    assert easy[-1].plan.check_now
    # No check has shown that the second is out of reach.
    assert not any(each.target_out_of_reach or each.answer in ("limit", "enough") for each in hard)
    assert hard[-1].answer == "complete"


def test_a_run_without_steps_has_no_decisions() -> None:
    X, y = classes(30)
    assert sf.simulate(BayesianLogistic(), X, y, steps=0, decide=sf.LabelWorth()).decisions == ()


def test_decisions_change_nothing_else_and_are_saved(tmp_path: Path) -> None:
    X, y = classes()
    options_of_decisions: list[dict[str, Any]] = [{}, {"decide": sf.LabelWorth(), "at_most": 0.05}]
    plain, decided = (
        sf.simulate(BayesianLogistic(), X, y, steps=60, record=sf.LabelWorth(), **options)
        for options in options_of_decisions
    )
    np.testing.assert_array_equal(plain.indices, decided.indices)
    assert plain.replay(sf.LabelWorth()) == decided.replay(sf.LabelWorth())
    decided.save(tmp_path / "run.npz")
    assert sf.Trace.load(tmp_path / "run.npz").decisions == decided.decisions
    with pytest.raises(InvalidValueError, match="decide cannot be combined with rule"):
        sf.simulate(BayesianLogistic(), X, y, rule=sf.Budget(20), decide=sf.Budget(20))


@pytest.mark.slow
def test_a_stop_in_doubt_is_looked_at_again() -> None:
    """Where another model may be better, labelling goes on until that is clear, to twice the labels at most."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 2))
    y = np.where((X**2).sum(axis=1) < 1.4, "in", "out")
    *_, found = sf.simulate(BayesianLogistic(), X, y, steps=200, decide=sf.LabelWorth()).decisions
    assert found.decision.answer == "limit"
    assert found.decision.since is not None
    assert found.decision.n_labelled <= 2.2 * found.decision.since


def test_the_errors_of_an_audit_by_hand() -> None:
    X, y = numbers()
    rule = sf.LabelWorth(mistake_cost=0.5)
    model = BayesianRidge(alpha=1.0, beta=1.0)
    trace = sf.audit(model, X, y)
    stop = audited_stop(model, X, y, trace, rule)
    n = next(verdict.n_labelled for verdict in trace.replay(rule) if verdict.stop)
    assert (stop.n_labelled, stop.rows) == (n, 200 - n)
    fitted = model.fit(X[:n], y[:n])
    assert stop.error == pytest.approx(float(np.sqrt(np.mean((fitted.predict(X[n:]) - y[n:]) ** 2))))
    residuals = []
    for k in range(n, 200):
        rest = np.delete(np.arange(200), k)
        residuals.append(float(model.fit(X[rest], y[rest]).predict(X[k : k + 1])[0] - y[k]))
    assert stop.error_at_end == pytest.approx(float(np.sqrt(np.mean(np.square(residuals)))), rel=1e-3)
    assert stop.decision is not None
    assert stop.decision.error is not None
    assert stop.decision.error.value == stop.error


def test_an_audit_of_classes_and_of_a_rule_that_never_stops() -> None:
    X, y = classes()
    trace = sf.audit(BayesianLogistic(), X, y)
    stop = audited_stop(BayesianLogistic(), X, y, trace, sf.LabelWorth())
    assert stop.n_labelled is not None
    predicted = BayesianLogistic().fit(X[: stop.n_labelled], y[: stop.n_labelled]).predict(X[stop.n_labelled :])
    assert stop.error == pytest.approx(float(np.mean(predicted != y[stop.n_labelled :])))
    assert audited_stop(BayesianLogistic(), X, y, trace, sf.ErrorStability(0.0)).n_labelled is None


@pytest.mark.slow
def test_orders_are_different_and_always_the_same() -> None:
    X, y = classes(120)
    several = [audit_orders(BayesianLogistic(), X, y, orders=3, seed=seed) for seed in (0, 0, 1)]
    assert several[0] == several[1] != several[2]
    assert len({(stop.n_labelled, stop.error) for stop in several[0]}) > 1
    done: list[tuple[int, int]] = []
    audit_orders(BayesianRidge(), *numbers(60), orders=2, progress=lambda at, of: done.append((at, of)))
    assert done[-1][0] == done[-1][1] == 2 * 50
    assert audit_orders(BayesianRidge(), *numbers(60), orders=0) == []


def test_a_run_records_what_the_default_rule_needs() -> None:
    X, y = numbers(60)
    trace = sf.simulate(BayesianRidge(), X, y)
    assert sf.LabelWorth().needs() <= trace.recorded
    assert len(trace.replay(sf.LabelWorth())) == 50
    assert dict(sf.simulate(BayesianRidge(), X, y, record=()).measures) == {}
    assert sf.LabelWorth().needs() <= sf.audit(BayesianRidge(), X, y).recorded


@pytest.mark.slow
def test_an_audit_names_a_model_that_is_better_on_the_rows_after_the_stop() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 2))
    y = np.where((X**2).sum(axis=1) < 1.4, "inside", "outside")
    trace = sf.audit(BayesianLogistic(), X, y)
    found = audited_stop(BayesianLogistic(), X, y, trace, sf.Budget(150))
    assert found.alternative is not None
    assert found.alternative.clear
    assert found.decision is not None
    assert found.decision.answer == "limit"
    # By hand: the forest learns the same 150 rows and predicts the other 450.
    if found.alternative.name == "forest":
        from suffice.session.model_comparison import _TREES

        forest = ExtraTreesClassifier(_TREES, random_state=0).fit(X[:150], y[:150])
        assert found.alternative.error == (forest.predict(X[150:]) != y[150:]).mean()
    assert found.alternative.present == found.error
    assert found.alternative.labels == 450
    line = np.where(X[:, 0] > 0.0, "left", "right")
    straight = audited_stop(BayesianLogistic(), X, line, sf.audit(BayesianLogistic(), X, line), sf.Budget(150))
    assert straight.alternative is None
