"""Runs to a goal for a whole data set, on real data and on data that one model cannot learn."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.preprocessing import scale

from suffice.checks import ScreeningGuarantee
from suffice.errors import InvalidValueError
from suffice.learner import FinishedRun, ModelChoice, finished_run
from suffice.models import BayesianLogistic, BayesianRidge


def cancer() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), np.where(y == 1, "benign", "malignant")


def diabetes() -> tuple[Any, Any]:
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y


def crossed(rows: int = 1000) -> tuple[Any, Any]:
    """Classes that no line separates."""
    X = np.random.default_rng(0).normal(size=(rows, 2))
    return X, np.where(X[:, 0] * X[:, 1] > 0.0, "same", "other")


def require_consistent(run: FinishedRun, y: Any, tolerance: float | None = None) -> None:
    """The counts of a run agree with its labels, and people's labels are those of the data."""
    guarantee, source = run.final.guarantee, np.array(run.final.source)
    people = source != "model"
    assert guarantee.rows == len(y) == len(source)
    assert guarantee.by_people == people.sum()
    assert run.in_check == np.sum(source == "check")
    labels = np.array(run.final.labels)
    assert (labels[people] == y[people]).all()
    wrong = labels != y if tolerance is None else np.abs(labels - y) > tolerance
    assert run.true_wrong == wrong.sum()
    assert run.true_share == run.true_wrong / len(y)
    assert np.isnan(run.final.probability[people]).all()


@pytest.mark.parametrize("at_most", [0.02, 0.1])
def test_classes(at_most: float) -> None:
    X, y = cancer()
    run = finished_run(BayesianLogistic(), X, y, at_most, seed=1)
    require_consistent(run, y)
    guarantee = run.final.guarantee
    assert guarantee.wrong_at_most == int(at_most * len(y)) >= run.true_wrong
    assert guarantee.confidence == 0.95
    assert guarantee.by_people < 0.7 * len(y)
    predicted = run.final.probability[np.array(run.final.source) == "model"]
    assert ((predicted >= 0.5) & (predicted <= 1.0)).all()
    counts = [planned.n_labelled for planned in run.planned]
    assert counts == sorted(counts)
    assert counts[0] == 10
    assert counts[-1] + run.in_check == guarantee.by_people
    assert [tuple(used) for used in run.models] == [("BayesianLogistic", 0)]
    assert f"In truth {run.true_wrong} " in str(run)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("model", [BayesianLogistic(), ExtraTreesClassifier(30, random_state=0)])
def test_a_screening(model: Any) -> None:
    X, y = cancer()
    run = finished_run(model, X, y, 0.1, positive="malignant", seed=1)
    guarantee, source = run.final.guarantee, np.array(run.final.source)
    assert isinstance(guarantee, ScreeningGuarantee)
    relevant, read = y == "malignant", source != "model"
    assert (guarantee.rows, guarantee.by_people, run.in_check) == (len(y), read.sum(), np.sum(source == "check"))
    assert guarantee.found == (relevant & read).sum()
    assert run.true_wrong == (relevant & ~read).sum() <= guarantee.missed_at_most
    assert run.true_share == run.true_wrong / relevant.sum() <= 0.1
    assert guarantee.recall_at_least >= 0.9
    assert guarantee.by_people < 0.9 * len(y)
    assert str(run).endswith(f"In truth {run.true_wrong} {'is' if run.true_wrong == 1 else 'are'} missed.")


def test_a_screening_takes_no_annotator_error() -> None:
    X, y = cancer()
    with pytest.raises(InvalidValueError, match="annotator_error does not apply to a screening"):
        finished_run(BayesianLogistic(), X, y, 0.1, positive="malignant", annotator_error=0.01)


def test_numbers_with_a_tolerance() -> None:
    X, y = diabetes()
    run = finished_run(BayesianRidge(), X, y, 0.1, tolerance=100.0, seed=0)
    require_consistent(run, y, 100.0)
    assert run.final.guarantee.tolerance == 100.0
    assert run.true_wrong <= run.final.guarantee.wrong_at_most == 44
    assert run.final.guarantee.by_people < len(y)
    assert "off by more than 100" in str(run)


def test_the_same_seed_gives_the_same_run() -> None:
    X, y = cancer()
    first, again, other = (finished_run(BayesianLogistic(), X, y, 0.05, seed=seed).final for seed in (3, 3, 4))
    assert (first.labels, first.source) == (again.labels, again.source)
    assert first.source != other.source


def test_mistakes_of_people_are_subtracted_from_the_goal() -> None:
    X, y = cancer()
    run = finished_run(BayesianLogistic(), X, y, 0.05, annotator_error=0.02, seed=0)
    guarantee = run.final.guarantee
    assert guarantee.allowed == int(0.03 * len(y))
    assert guarantee.wrong_at_most == guarantee.allowed + 2 * guarantee.by_people // 100 <= 0.05 * len(y)
    with pytest.raises(InvalidValueError, match="leaves nothing"):
        finished_run(BayesianLogistic(), X, y, 0.05, annotator_error=0.05)


@pytest.mark.no_cover
def test_cheap_answers_lead_to_an_earlier_check() -> None:
    X, y = crossed()
    before = [
        run.final.guarantee.by_people - run.in_check
        for cost in (1.0, 0.2)
        for run in [finished_run(ExtraTreesClassifier(10, random_state=0), X, y, 0.05, correction_cost=cost, seed=0)]
    ]
    assert before[1] < before[0]


def test_without_any_wrong_label_people_label_everything() -> None:
    X, y = cancer()
    run = finished_run(BayesianLogistic(), X[:60], y[:60], 0.0, seed=0)
    require_consistent(run, y[:60])
    assert (run.final.guarantee.predicted, run.true_wrong) == (0, 0)
    assert run.final.guarantee.wrong_at_most == 0


def test_the_better_model_is_used_before_the_check() -> None:
    X, y = crossed()
    choice = ModelChoice.of_classes(["other", "same"])
    run = finished_run(choice, X, y, 0.05, seed=0)
    require_consistent(run, y)
    (first, start), (second, switched) = run.models
    assert (first, start) == ("logistic", 0)
    assert second in ("kernel", "forest")
    assert switched in range(50, 110)
    assert switched < run.final.guarantee.by_people - run.in_check
    proof = run.final.guarantee.proof
    assert proof is not None
    assert proof.model.startswith("Pipeline" if second == "kernel" else "ExtraTrees")
    line = finished_run(BayesianLogistic(), X, y, 0.05, seed=0)
    assert run.final.guarantee.by_people < 0.7 * line.final.guarantee.by_people
    # A choice is not changed by a run.
    assert choice.name == "logistic"
    assert choice.due(100)


def test_a_model_that_is_not_better_is_not_used() -> None:
    X, y = cancer()
    choice = ModelChoice({"logistic": BayesianLogistic(), "same": BayesianLogistic()})
    assert [choice.due(n) for n in (99, 100)] == [False, True]
    assert [choice.due(n, before_check=True) for n in (49, 50)] == [False, True]
    assert choice.better(X[:100], y[:100], np.ones(100, dtype=bool)) is None
    # It is compared again when there are twice as many labels, or before a check.
    assert [choice.due(n) for n in (100, 199, 200)] == [False, False, True]
    assert [choice.due(n, before_check=True) for n in (119, 120)] == [False, True]
    assert choice.better(X[:200], np.full(200, "benign"), np.ones(200, dtype=bool)) is None
    assert choice.name == "logistic"
    assert not ModelChoice({"only": BayesianLogistic()}).due(1000)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((BayesianRidge(), *diabetes()), {}, "give tolerance"),
        ((BayesianLogistic(), *cancer()), {"tolerance": 1.0}, "tolerance"),
        ((BayesianLogistic(), cancer()[0], ["benign"]), {}, "X has 569 rows and y 1 labels"),
        ((BayesianLogistic(), *cancer()), {"batch": 0}, "batch must be"),
        ((BayesianLogistic(), *cancer()), {"correction_cost": 0.0}, "correction_cost must be"),
    ],
)
def test_arguments_that_cannot_be_used(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        finished_run(arguments[0], arguments[1], arguments[2], 0.05, **options)


def test_models_that_are_compared() -> None:
    assert ModelChoice.of_classes(["a", "b"]).names == ["logistic", "kernel", "forest"]
    assert ModelChoice.of_classes(list(range(26))).names == ["logistic", "forest"]
    wide = ModelChoice.of_classes(list(range(10)), n_features=784)
    assert wide.names == ["components", "kernel", "forest"]
    assert wide.name == "components"
    # The columns of a text are its components, of which 25 are counted.
    assert ModelChoice.of_classes(["a", "b"], n_features=1200, components=[(0, 400)]).names[0] == "logistic"


@given(st.integers(0, 5000), st.integers(0, 5000), st.booleans())
def test_where_a_comparison_is_due_does_not_depend_on_when_one_asks(n: int, compared: int, before_check: bool) -> None:
    choice = ModelChoice({"one": None, "other": None}, name="other", compared=compared)
    at = choice.due_at(n, before_check=before_check)
    assert choice.due(n, before_check=before_check) == (at is not None)
    if at is None:
        assert n < max(100, 2 * compared)
        return
    assert compared < at <= n < 2 * at
    if not before_check:
        assert at % max(100, 2 * compared) == 0
        # Asking at every label gives the same last comparison.
        stepwise = ModelChoice({"one": None, "other": None}, compared=compared)
        for k in range(compared, n + 1):
            stepwise.compared = stepwise.due_at(k) or stepwise.compared
        assert stepwise.compared == at


def test_a_comparison_tells_the_errors() -> None:
    X, y = cancer()
    models = {"linear": BayesianLogistic(), "constant": DummyClassifier()}
    choice = ModelChoice(models, name="constant")
    assert (choice.name, choice.compared, choice.errors) == ("constant", 0, {})
    assert choice.better(X[:100], y[:100], np.ones(100, dtype=bool)) == "linear"
    assert choice.compared == 100
    assert choice.errors["linear"] < choice.errors["constant"] == pytest.approx(np.mean(y[:100] == "benign"))
    with pytest.raises(InvalidValueError, match="name must be one of linear, constant, not 'trees'"):
        ModelChoice(models, name="trees")


def test_a_choice_needs_a_model() -> None:
    with pytest.raises(InvalidValueError, match="at least one model"):
        ModelChoice({})
