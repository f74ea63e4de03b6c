"""The number of ordered components that a classifier uses: chosen from the labels at hand, and from no others."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.learner import ActiveLearner
from suffice.models import BayesianLogistic, newton_search
from suffice.models.capacity import Capacity, most_components, most_features
from suffice.models.factory import make_model
from suffice.models.laplace import divergences, laplace
from suffice.models.predictive import left_out_loss
from suffice.numerics import Floats
from suffice.project.project_learner import ProjectLearner
from suffice.project.settings import Settings
from suffice.project.state import Answer
from tests.thoroughness import some


def data(n: int, k: int, *, width: int = 60, seed: int = 0) -> tuple[Floats, Any]:
    """Ordered components of falling size, all of which tell the classes apart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width)) * np.linspace(1.0, 0.2, width)
    score = 2.0 * X @ np.random.default_rng(1).normal(size=(width, k)) + rng.gumbel(size=(n, k))
    return X, np.array(["a", "b", "c", "d"])[score.argmax(axis=1)]


def growing(k: int, width: int = 60, **options: Any) -> BayesianLogistic:
    return BayesianLogistic(**{"alpha": 1.0, "classes": list("abcd"[:k]), "components": [(0, width)], **options})


@pytest.mark.parametrize("k", [2, 3])
def test_the_model_is_that_of_the_first_columns(k: int) -> None:
    X, y = data(200, k)
    model = growing(k).fit(X[:150], y[:150])
    d = model.n_components_
    assert d in {25, 50, 60}
    plain = BayesianLogistic(alpha=1.0, classes=model.classes).fit(X[:150, :d], y[:150])
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X[:, :d]), rtol=1e-12)
    np.testing.assert_allclose(model.coef_[:, :d], plain.coef_, rtol=1e-12, atol=1e-14)
    assert model.coef_.shape == (1 if k == 2 else k, 60)
    assert not model.coef_[:, d:].any()
    np.testing.assert_allclose(model.posterior.mean, plain.posterior.mean, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("alpha", [1.0, None])
def test_the_choice_is_the_best_of_all(alpha: float | None) -> None:
    X, y = data(120, 2, seed=3)
    model = growing(2, alpha=alpha).fit(X, y)
    losses = {
        d: left_out_loss(BayesianLogistic(alpha=alpha, classes=["a", "b"]).fit(X[:, :d], y).state_)
        for d in Capacity([(0, 60)], 60, intercept=True).choices(120, 2)
    }
    assert model.n_components_ == min(losses, key=lambda d: losses[d])


def test_left_out_loss_is_that_of_models_without_the_label() -> None:
    X, y = data(40, 2, width=3)
    codes = np.searchsorted(["a", "b"], y)
    model = BayesianLogistic(alpha=1.0, classes=["a", "b"])
    keep = ~np.eye(40, dtype=bool)
    logits = np.array([model.fit(X[keep[i]], y[keep[i]]).decision_function(X[[i]])[0] for i in range(40)])
    signs = 2.0 * codes - 1.0
    best = min(np.logaddexp(0.0, -t * signs * logits).mean() for t in np.geomspace(0.1, 10.0, 21))
    F = np.column_stack([np.ones(40), X])
    assert left_out_loss(laplace(F, codes, 2, 1.0)) == pytest.approx(best, rel=0.05)


@given(
    st.lists(st.integers(1, 450), min_size=1, max_size=3),
    st.integers(0, 30),
    st.integers(0, 5000),
    st.integers(2, 60),
)
def test_choices_are_bounded_by_labels_and_weights(widths: list[int], others: int, n: int, k: int) -> None:
    ends = np.cumsum([others, *widths])
    capacity = Capacity(list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)), int(ends[-1]), intercept=True)
    choices = capacity.choices(n, k)
    assert choices == sorted(set(choices))
    assert choices[0] == min(25, max(widths))
    assert all(d <= n and capacity.width(d) * (k if k > 2 else 1) <= 1000 for d in choices[1:])
    for d in choices:
        columns = np.arange(int(ends[-1]) + 1)[capacity.columns(d)]
        assert len(columns) == capacity.width(d) == 1 + others + sum(min(d, width) for width in widths)
        assert set(range(others + 1)) <= set(columns.tolist())


def test_groups_among_other_columns() -> None:
    capacity = Capacity([(1, 31), (32, 72)], 73, intercept=False)
    assert capacity.columns(30) == pytest.approx([*range(62), 72])
    assert capacity.columns(25) == pytest.approx([*range(26), *range(31, 57), 72])
    assert capacity.columns(40) == slice(0, 73)


@pytest.mark.parametrize("groups", [[(0, 4), (3, 6)], [(2, 2)], [(-1, 3)], [(0, 7)]])
def test_groups_that_do_not_fit(groups: Any) -> None:
    with pytest.raises(InvalidValueError, match="components must be pairs of columns from 0 to 6"):
        growing(2, components=groups).fit(np.ones((2, 6)), ["a", "b"])


@pytest.mark.parametrize("groups", [3, [4], [(0, 1.5)], "text"])
def test_groups_that_are_no_pairs(groups: Any) -> None:
    with pytest.raises(InvalidTypeError, match="components must be pairs"):
        growing(2, components=groups).fit(np.ones((2, 6)), ["a", "b"])


def test_the_most_that_can_be_used() -> None:
    assert (most_components(2, 100), most_components(6, 100), most_components(500, 100)) == (400, 165, 5)
    assert most_components(2, 10**7) == 5
    assert most_features(10) == 99


def test_observing_is_fitting_whenever_the_labels_have_doubled() -> None:
    X, y = data(200, 2)
    model = growing(2).fit(X[:20], y[:20])
    for n in range(21, 200):
        model.observe(X[n - 1 : n], y[n - 1 : n])
        if n in {40, 80, 160}:
            fitted = growing(2).fit(X[:n], y[:n])
            assert (model.n_components_, model.learned_at_) == (fitted.n_components_, n)
            np.testing.assert_allclose(model.coef_, fitted.coef_, atol=1e-8)
    assert model.n_components_ is not None
    assert model.n_components_ > 25


def told(X: Floats, y: Any, k: int, n: int) -> ActiveLearner:
    learner = ActiveLearner(growing(k), X, criterion=sf.ErrorStability(), acquisition="order", initial=10)
    for item in range(n):
        learner.tell(item, y[item])
    return learner


@pytest.mark.parametrize("k", some([2, 3], every=2))
def test_components_are_chosen_from_the_labels_at_hand_alone(k: int) -> None:
    X, y = data(110, k)
    learner, used = ActiveLearner(growing(k), X, acquisition="order", initial=10), []
    for item in range(101):
        learner.tell(item, y[item])
        if item >= 9:
            used.append(learner.current_model.n_components_)
    changes = [n for n, (old, new) in enumerate(itertools.pairwise(used), start=11) if old != new]
    assert changes
    assert set(changes) <= {20, 40, 80}
    for n in (20, 40, 80):
        assert used[n - 10] == growing(k).fit(X[:n], y[:n]).n_components_
    # Labels to come do not matter, whatever they are.
    other = np.where(np.arange(len(y)) < 85, y, "a")
    assert told(X, other, k, 100).current_model.n_components_ == used[85 - 10]


@pytest.mark.parametrize("k", some([2, 3], every=2))
def test_live_is_replayed(k: int) -> None:
    X, y = data(120, k)
    rule = sf.ErrorStability()
    learner, live = ActiveLearner(growing(k), X, criterion=rule, acquisition="order", initial=10), []
    for item in range(100):
        learner.tell(item, y[item])
        live += [learner.rule_verdict.value] if item >= 10 else []
    assert [each.value for each in learner.trace().replay(rule)] == live
    # The whole past is that of the components of now.
    d = learner.current_model.n_components_
    plain = ActiveLearner(growing(k, components=None), X[:, :d], acquisition="order", initial=10)
    for item in range(100):
        plain.tell(item, y[item])
    assert learner.trace().kl_new_old[-1] == pytest.approx(plain.trace().kl_new_old[-1], rel=1e-9)
    simulated = sf.simulate(growing(k), X, y, initial=np.arange(10), steps=90, acquisition="order")
    np.testing.assert_allclose(simulated.kl_new_old, learner.trace().kl_new_old, rtol=1e-9)
    np.testing.assert_allclose(learner.model.predict_proba(X), learner.current_model.predict_proba(X), atol=1e-9)


@pytest.mark.slow
def test_a_corrected_label_is_as_if_it_had_been_so() -> None:
    X, y = data(100, 2)
    wrong = y.copy()
    wrong[5], wrong[70] = np.where(y[[5, 70]] == "a", "b", "a")
    corrected = told(X, wrong, 2, 90)
    for item in (5, 70):
        corrected.correct(item, y[item])
    right = told(X, y, 2, 90)
    assert corrected.current_model.n_components_ == right.current_model.n_components_
    assert corrected.rule_verdict.value == pytest.approx(right.rule_verdict.value, rel=1e-9)


def test_a_class_that_is_met_later() -> None:
    X, y = data(120, 3)
    order = np.argsort(y == "c", kind="stable")
    learner = ActiveLearner(growing(3, classes=None), X, acquisition="order", initial=10)
    for item in order[:110]:
        learner.tell(item, y[item])
    assert learner.current_model.classes_.tolist() == ["a", "b", "c"]
    assert learner.current_model.n_components_ >= 25


@pytest.mark.slow
def test_a_project_that_is_resumed_says_the_same() -> None:
    X, y = data(120, 3)
    rule = sf.ErrorStability().state_dict()
    settings = Settings(
        "demo", "classification", ("a", "b", "c"), "y", "text", ("x",), None, "logistic", rule, components=((0, 60),)
    )
    assert Settings.from_dict(settings.as_dict()) == settings
    answers = [Answer(item, str(y[item])) for item in range(46)]
    at_once, slowly = ProjectLearner(settings, X), ProjectLearner(settings, X)
    at_once.follow(answers)
    for n in (0, 5, 12, 30, 45):
        slowly.follow(answers[:n])
        slowly.learning_status(queue=2)
    slowly.follow(answers)
    assert slowly.learning_status() == at_once.learning_status()
    assert at_once.predictor().model.n_components_ == growing(3).fit(X[:40], y[:40]).n_components_
    np.testing.assert_array_equal(at_once.predict(X).labels, slowly.predict(X).labels)
    np.testing.assert_array_equal(at_once.predict(X).uncertainty, slowly.predict(X).uncertainty)


def test_projects_of_older_versions_use_all_features() -> None:
    rule = sf.ErrorStability().state_dict()
    saved = Settings("d", "classification", ("a", "b"), "y", "text", ("x",), None, "logistic", rule).as_dict()
    del saved["components"]
    model = Settings.from_dict(saved).estimator()
    assert model.components is None
    assert not model.learns


def test_models_that_use_all_features() -> None:
    with pytest.raises(InvalidValueError, match="a Gaussian process uses all features; leave components out"):
        make_model("gp", components=[(0, 3)])
    with pytest.raises(InvalidValueError, match="uses all features"):
        make_model("logistic", basis=5, components=[(0, 3)])


@pytest.mark.parametrize(("k", "width"), [(2, 420), (3, 140)])
def test_divergences_of_many_weights(k: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, width)) * np.linspace(1.0, 0.1, width), rng.integers(k, size=90)
    posterior = laplace(X[:80], y[:80], k, 1.0)
    old = posterior.snapshot()
    new = posterior.extend(X[80:], y[80:]).snapshot()
    by_traces = divergences(old, new)
    exact = sf.kl(new.gaussian(), old.gaussian()), sf.kl(old.gaussian(), new.gaussian())
    np.testing.assert_allclose(by_traces, exact, rtol=1e-9)
    monkeypatch.setattr(newton_search, "_MANY_WEIGHTS", 10**6)
    np.testing.assert_allclose(by_traces, divergences(old, new), rtol=1e-9)


def test_small_divergences_of_many_weights_keep_their_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(81, 420)), rng.integers(2, size=81)
    X[80] *= 1e-3
    posterior = laplace(X[:80], y[:80], 2, 1.0)
    old = posterior.snapshot()
    new = posterior.extend(X[80:], y[80:]).snapshot()
    found = divergences(old, new)
    monkeypatch.setattr(newton_search, "_MANY_WEIGHTS", 10**6)
    np.testing.assert_allclose(found, divergences(old, new), rtol=1e-9)
