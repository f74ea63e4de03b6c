"""Another model for a learner: the labels stay, the new model learns them, and checks stay spent."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import suffice as sf
from suffice.checks import CheckRegistry
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError, SufficeError
from suffice.learner.model_switch import learning_steps
from suffice.learner.refitted import fit_due
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.models.factory import make_model

X = np.random.default_rng(0).normal(size=(300, 2))
Y = np.where((X**2).sum(axis=1) < 1.4, "in", "out")
NUMBERS = X[:, 0] * X[:, 1]


def learned(n: int, model: Any = None, y: Any = Y, **settings: Any) -> sf.ActiveLearner:
    made = sf.ActiveLearner(model or BayesianLogistic(), X, **{"seed": 0, **settings})
    while len(made.labelled) < n:
        items = made.ask()
        made.tell(items, y[items])
    return made


def told_like(other: sf.ActiveLearner, model: Any, **settings: Any) -> sf.ActiveLearner:
    """A learner with a model that learns the labels of another one, in its steps."""
    made = sf.ActiveLearner(model, X, **{"seed": 0, **settings})
    random = set(other.random_items)
    items = other.labelled
    for step in [items[:10], *[[item] for item in items[10:]]]:
        made.tell(step, [other.labels[item] for item in step], random=[item in random for item in step])
    return made


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("before", "after"), [("logistic", "kernel"), ("kernel", "logistic")])
def test_the_new_model_learns_the_labels_in_their_steps(before: str, after: str) -> None:
    learner = learned(40, make_model(before))
    labels, random = learner.labels, learner.random_items
    stopped = learner.decision().since
    verdict = learner.switch(make_model(after))
    assert (learner.labels, learner.random_items) == (labels, random)
    other = told_like(learner, make_model(after))
    assert verdict == learner.verdict
    assert learner.rule_verdict == other.rule_verdict
    assert learner.verdicts == other.verdicts
    assert learner.verdict.stop == other.verdict.stop
    # The stop that was stated stands, from the labels at which it was.
    decision, told = learner.decision(), other.decision()
    assert (decision.since, decision.withdrawn) == (stopped, None)
    assert replace(decision, since=None) == replace(told, since=None)
    assert np.array_equal(learner.model.predict(X), other.model.predict(X))
    # Labelling goes on.
    items = learner.ask(3)
    assert not set(items.tolist()) & set(labels)
    learner.tell(items, Y[items])
    assert len(learner.labelled) == 43


def test_a_name_is_a_model_with_the_settings_of_the_commands() -> None:
    learner = learned(30)
    learner.switch("kernel")
    by_hand = learned(30)
    by_hand.switch(make_model("kernel"))
    assert learner.verdict == by_hand.verdict
    assert np.array_equal(learner.ask(3), by_hand.ask(3))
    known = learned(30, BayesianLogistic(classes=["in", "out", "other"]))
    known.switch("kernel")
    assert known.model.classes_.tolist() == ["in", "other", "out"]


def test_trees_are_fitted_where_projects_fit_them() -> None:
    learner = learned(33)
    learner.switch("boosting")
    sizes = [verdict.n_labelled for verdict in learner.verdicts]
    assert sizes == [n for n in range(11, 33) if fit_due(n)] + [33]
    items = learner.ask()
    learner.tell(items, Y[items])
    assert learner.verdicts[-1].n_labelled == 34
    learner.switch("logistic")
    assert learner.model.predict(X).shape == (300,)


def test_steps_of_learning() -> None:
    items = list(range(40))
    steps = list(learning_steps(items, [10, *[1] * 30], refits=True))
    assert [item for step in steps for item in step] == items
    ends = np.cumsum([len(step) for step in steps])
    assert all(fit_due(int(end)) for end in ends[1:-1])
    assert list(learning_steps(items, [10, *[1] * 30], refits=False))[1] == [10]
    assert not list(learning_steps([], [0], refits=True))


def test_numbers() -> None:
    learner = learned(40, GaussianProcess(), NUMBERS)
    learner.switch("ridge")
    assert learner.verdict == told_like(learner, make_model("ridge")).verdict
    learner.switch(ExtraTreesRegressor(10, random_state=0))
    assert learner.model.predict(X).shape == (300,)
    assert len(learner.ask(2)) == 2


def test_skipped_items_costs_and_corrections_stay() -> None:
    costs = np.linspace(1.0, 2.0, len(X))
    learner = learned(30, costs=costs)
    skipped = learner.ask(2)
    learner.skip(skipped)
    first = learner.labelled[3]
    learner.correct(first, "out" if learner.labels[first] == "in" else "in")
    labels = learner.labels
    learner.switch("kernel")
    assert learner.labels == labels
    assert learner.skipped == sorted(skipped.tolist())
    assert not set(learner.ask(20).tolist()) & set(skipped.tolist())
    assert learner.verdict == told_like(learner, make_model("kernel")).verdict


def test_time_goes_on() -> None:
    now = [0.0]
    learner = sf.ActiveLearner(BayesianLogistic(), X, criterion=sf.TimeLimit(100.0), seed=0, clock=lambda: now[0])
    for _ in range(5):
        items = learner.ask(10)
        learner.tell(items, Y[items])
    now[0] = 90.0
    assert not learner.switch("kernel").stop
    now[0] = 101.0
    items = learner.ask()
    assert learner.tell(items, Y[items]).stop


def test_labels_before_the_start_of_the_model_stay() -> None:
    learner = sf.ActiveLearner(BayesianLogistic(), X, seed=0)
    first = learner.ask(10)
    learner.tell(first[:4], Y[first[:4]])
    learner.switch("kernel")
    assert learner.labelled == first[:4].tolist()
    assert learner.ask(6).tolist() == first[4:].tolist()
    learner.tell(first[4:], Y[first[4:]])
    assert learner.random_items == first.tolist()
    generator: Any = np.random.default_rng(3)
    empty = sf.ActiveLearner(BayesianLogistic(), X, seed=generator)
    wanted = empty.ask(10).tolist()
    empty.switch("kernel")
    assert empty.ask(10).tolist() == wanted


def test_a_check_stays_spent_and_does_not_cover_the_new_model() -> None:
    learner = learned(40, checks=CheckRegistry())
    check = learner.check(20)
    check.tell(Y[check.pending])
    before = learner.guarantee
    assert before is not None
    assert before.about_present_model
    learner.switch("kernel")
    after = learner.guarantee
    assert after is not None
    assert not after.about_present_model
    assert after.guarantee == before.guarantee
    assert learner.decision().guarantee is None
    assert learner.checks == [check]
    # Its labels are learned, as random labels.
    assert set(check.indices.tolist()) <= set(learner.labelled)
    assert set(check.indices.tolist()) <= set(learner.random_items)
    assert learner.labels == {item: Y[item] for item in learner.labelled}
    second = learner.check(20)
    second.tell(Y[second.pending])
    assert second.guarantee is not None
    assert check.guarantee is not None
    # The second check spends a third of what the first has spent.
    assert second.guarantee.alpha == pytest.approx(check.guarantee.alpha / 3.0)


def test_what_cannot_be_replaced_is_answered_and_changes_nothing() -> None:
    learner = learned(30)
    for model, error, answer in (
        (None, InvalidTypeError, "NoneType is not a model"),
        (GaussianProcess(), InvalidValueError, "model must be for classification.*GaussianProcess is for regression"),
        ("gp", InvalidValueError, "the model gp is for regression"),
        ("tree", InvalidValueError, "model must be one of gp, ridge"),
        (BayesianLogistic(classes=["a", "b"]), InvalidValueError, "a.*b"),
    ):
        with pytest.raises(error, match=answer):
            learner.switch(model)
        assert learner.verdicts == learned(30).verdicts
        assert learner.ask(3).tolist() == learned(30).ask(3).tolist()
    check = learner.check(10)
    with pytest.raises(SufficeError, match="a check is open"):
        learner.switch("kernel")
    check.abort()
    learner.switch("kernel")
    running = learned(30, check_share=0.2)
    with pytest.raises(SufficeError, match="running check"):
        running.switch("kernel")
    paper = learned(30, criterion=sf.ErrorStability())
    with pytest.raises(MissingInputError, match="kl_new_old"):
        paper.switch("forest")
    assert paper.verdict == learned(30, criterion=sf.ErrorStability()).verdict


def test_an_acquisition_that_the_new_model_does_not_know_is_replaced() -> None:
    learner = learned(30, acquisition="map-entropy", random_share=0.3)
    learner.switch("boosting")
    assert learner.trace().about["acquisition"] == "margin"
    kept = learned(30, acquisition="entropy")
    kept.switch("boosting")
    assert kept.trace().about["acquisition"] == "entropy"


@pytest.mark.parametrize("name", ["kernel", "boosting"])
def test_a_switched_learner_is_saved_and_restored(name: str) -> None:
    learner = learned(40)
    check = learner.check(10)
    check.tell(Y[check.pending])
    learner.switch(name)
    state = json.loads(json.dumps(learner.state_dict()))
    # The model before, or the present one.
    for model in (BayesianLogistic(), make_model(name)):
        again = sf.ActiveLearner.from_state(state, model, X)
        assert again.verdict == learner.verdict
        assert again.random_items == learner.random_items
        assert again.ask(4).tolist() == learner.ask(4).tolist()
        assert again.guarantee is not None
        assert not again.guarantee.about_present_model
        assert again.decision(compare=False) == learner.decision(compare=False)
    with pytest.raises(InvalidValueError, match="the learner was saved with"):
        sf.ActiveLearner.from_state(state, make_model("forest"), X)
    again.switch("logistic")
    assert len(again.labelled) == 50


def test_a_model_by_name_keeps_what_makes_numbers_of_other_inputs() -> None:
    texts = [f"{'good fine' if label == 'in' else 'bad poor'} word{k % 7}" for k, label in enumerate(Y)]
    dense = make_pipeline(TfidfVectorizer(), BayesianLogistic())
    learner = sf.ActiveLearner(dense, texts, seed=0)
    while len(learner.labelled) < 20:
        items = learner.ask()
        learner.tell(items, Y[items])
    learner.switch("boosting")
    assert [name for name, _ in learner.model.steps] == ["tfidfvectorizer", "dense", "model"]
    assert (learner.model.predict(texts) == Y).mean() > 0.9
    # The features of a kernel are those of the model that it replaces, and stay behind.
    learner.switch("kernel")
    learner.switch("forest")
    assert [name for name, _ in learner.model.steps] == ["tfidfvectorizer", "model"]
    # Numbers are given to the new model as they are.
    scaled = learned(30, make_pipeline(StandardScaler(), clone(BayesianLogistic())))
    scaled.switch("forest")
    assert not hasattr(scaled.model, "steps")


def test_a_decision_names_what_switch_takes() -> None:
    learner = learned(110)
    other = learner.decision().alternative
    assert other is not None
    learner.switch(other.name)
    found = learner.decision()
    assert found.alternative is None or not found.alternative.clear
    assert (learner.model.predict(X) == Y).mean() > 0.85


def test_ridge_can_be_replaced_by_its_own_family() -> None:
    learner = learned(30, BayesianRidge(), NUMBERS)
    learner.switch(BayesianRidge(regularize=False))
    assert learner.verdict == told_like(learner, BayesianRidge(regularize=False)).verdict
