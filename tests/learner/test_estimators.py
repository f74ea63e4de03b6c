"""Any scikit-learn classifier or regressor in a loop: it is fitted again after every step."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import suffice as sf
from suffice.criteria.base import example_rule
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError
from suffice.learner.backend import backend_type
from suffice.learner.estimator_backend import ClassifierBackend, CommitteeBackend, RegressorBackend
from suffice.learner.prepare import final_estimator, provided_fields
from tests.counted_fits import count_fits
from tests.thoroughness import crossed, examples

_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(200, 4))
CLASSES = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.3, "yes", "no")
NUMBERS = np.sin(X[:, 0]) + 0.1 * _RNG.normal(size=len(X))

CLASSIFIERS: dict[str, Any] = {
    "forest": RandomForestClassifier(10),
    "boosting": HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=3),
    "logistic": LogisticRegression(),
    "pipeline": make_pipeline(StandardScaler(), GaussianNB()),
    "search": GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
    "bagging": BaggingClassifier(n_estimators=4),
}
REGRESSORS: dict[str, Any] = {
    "forest": RandomForestRegressor(5),
    "boosting": HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3),
    "ridge": Ridge(),
    "bayesian": BayesianRidge(),
}


def _run(model: Any, y: Any, labels: int = 40, **options: Any) -> sf.ActiveLearner:
    learner = sf.ActiveLearner(model, X, initial=10, **options)
    while len(learner.labelled) < labels:
        items = learner.ask(5)
        learner.tell(items, y[items])
    return learner


@pytest.mark.no_cover
@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_run_with_a_classifier_can_be_repeated_and_gives_a_verdict(name: str) -> None:
    before = repr(CLASSIFIERS[name].get_params())
    first, second = (_run(CLASSIFIERS[name], CLASSES, seed=3) for _ in range(2))
    assert first.labelled == second.labelled
    assert first.verdicts == second.verdicts
    assert first.verdict.ready
    assert repr(CLASSIFIERS[name].get_params()) == before
    assert type(first.model) is type(CLASSIFIERS[name])
    assert (first.model.predict(X) == CLASSES).mean() > 0.7
    assert 0.0 <= first.error_estimate().value <= 1.0
    assert first.random_labels > 0
    assert first.trace().replay(sf.LabelWorth()) == first.verdicts
    assert str(first.decision())


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", REGRESSORS)
def test_a_run_with_a_regressor_can_be_repeated_and_gives_a_verdict(name: str) -> None:
    first, second = (_run(REGRESSORS[name], NUMBERS, seed=3) for _ in range(2))
    assert first.labelled == second.labelled
    assert first.verdicts == second.verdicts
    assert first.verdict.ready
    assert type(first.model) is type(REGRESSORS[name])
    # About right: the truth is known here.
    estimate, truth = first.error_estimate(), float(np.mean((first.model.predict(X) - NUMBERS) ** 2))
    assert truth / 4.0 < estimate.value < 4.0 * truth
    assert first.error_estimate(tolerance=0.3).value <= 1.0


@pytest.mark.no_cover
@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("model", "rule", "options"),
    [
        (CLASSIFIERS["forest"], sf.LabelWorth(), {}),
        (CLASSIFIERS["forest"], sf.StabilizingPredictions(), {"acquisition": "k-centre"}),
        (CLASSIFIERS["logistic"], sf.Budget(100), {"acquisition": "random"}),
        (CLASSIFIERS["boosting"], sf.SelectedAccuracy(), {}),
        (CLASSIFIERS["bagging"], sf.SelectionAgreement(), {}),
        (REGRESSORS["forest"], sf.LabelWorth(), {}),
        (REGRESSORS["bayesian"], sf.LabelWorth(), {"acquisition": "variance"}),
    ],
)
def test_a_restored_learner_is_fitted_once_and_continues_alike(
    model: Any, rule: sf.Criterion, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    y = NUMBERS if isinstance(model, RegressorMixin) else CLASSES
    learner = _run(model, y, criterion=rule, **options)
    learner.skip([k for k in range(len(X)) if k not in learner.labelled][:2])
    learner.correct(learner.labelled[3], y[0])
    learner.decision()
    state = json.loads(json.dumps(learner.state_dict()))
    fits = count_fits(monkeypatch)
    again = sf.ActiveLearner.from_state(state, model, X)
    assert len(fits) == 1
    assert again.decision() == learner.decision()
    for _ in range(3):
        items = learner.ask(4)
        assert again.ask(4).tolist() == items.tolist()
        assert again.tell(items, y[items]) == learner.tell(items, y[items])
        assert again.error_estimate() == learner.error_estimate()
        assert again.decision(0.1) == learner.decision(0.1)
    np.testing.assert_array_equal(again.model.predict(X), learner.model.predict(X))


def test_nothing_is_fitted_again_while_answers_of_a_check_count(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = _run(CLASSIFIERS["forest"], CLASSES, criterion=sf.Budget(100))
    fits = count_fits(monkeypatch)
    free = [k for k in range(len(X)) if k not in learner.labelled][:6]
    before = learner.state_dict()["loop"]
    with learner.with_checked({k: CLASSES[k] for k in free}, random=free):
        assert learner.error_estimate().random_labels >= 6
    assert not fits
    assert learner.state_dict()["loop"] == before
    # Otherwise random labels are predicted again, by models without them.
    learner.error_estimate()
    assert fits


def test_every_kind_of_estimator_has_its_backend() -> None:
    kinds = {name: backend_type(final_estimator(model)) for name, model in CLASSIFIERS.items()}
    assert kinds.pop("forest") is kinds.pop("bagging") is CommitteeBackend
    assert set(kinds.values()) == {ClassifierBackend}
    assert {backend_type(model) for model in REGRESSORS.values()} == {RegressorBackend}
    with pytest.raises(InvalidTypeError, match=r"StandardScaler is not a model that can be followed.*StopMonitor"):
        sf.ActiveLearner(StandardScaler(), X)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["logistic", "forest"])
def test_the_inputs_of_a_rule_are_those_of_a_monitor_beside_the_same_fits(name: str) -> None:
    model = CLASSIFIERS[name].set_params(random_state=1) if name == "forest" else CLASSIFIERS[name]
    rules = [sf.LabelWorth(), sf.StabilizingPredictions(), sf.OverallUncertainty()]
    for rule in rules:
        learner = _run(model, CLASSES, criterion=rule)
        monitor = sf.StopMonitor(X, rule, seed=0)
        for n in range(10, 41, 5):
            rows = learner.labelled[:n]
            monitor.update(clone(model).fit(X[rows], CLASSES[rows]), rows, CLASSES[rows])
        by_learner = learner.trace().steps()
        for name_of_field in rule.needs() - {"calibration"}:
            ours = [getattr(step, name_of_field) for step in by_learner]
            theirs = [getattr(step, name_of_field) for step in monitor.steps[-len(ours) :]]
            for one, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("rule_name", "name"), crossed(sf.criteria.RULES, ["forest", "logistic", "bayesian"], every=3))
def test_every_rule_gives_a_verdict_or_names_what_it_lacks(rule_name: str, name: str) -> None:
    rule = example_rule(sf.criteria.RULES[rule_name])
    model, y = (REGRESSORS[name], NUMBERS) if name == "bayesian" else (CLASSIFIERS[name], CLASSES)
    missing = rule.needs() - provided_fields(model) - {"validation_error", "validation_labels"}
    if missing:
        with pytest.raises(MissingInputError, match=min(missing)):
            sf.ActiveLearner(model, X, criterion=rule, validation=(X[:20], y[:20]))
        return
    learner = _run(model, y, labels=25, criterion=rule, validation=(X[:20], y[:20]))
    assert len(learner.verdicts) == 3
    assert learner.trace().replay(rule) == learner.verdicts or "seconds" in rule.needs()


def test_margin_picks_the_items_of_which_the_model_is_least_sure() -> None:
    learner = _run(LogisticRegression(), CLASSES, acquisition="margin")
    model = learner.model
    rest = np.setdiff1d(np.arange(len(X)), learner.labelled)
    unsure = rest[np.argsort(model.predict_proba(X[rest]).max(axis=1))]
    assert learner.ask(5).tolist() == unsure[:5].tolist()


def test_equal_scores_are_not_taken_in_the_order_of_the_pool() -> None:
    class Constant(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        """Every class is equally likely everywhere."""

        def fit(self, X: Any, y: Any) -> "Constant":
            del X
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X: Any) -> Any:
            return np.full((len(X), len(self.classes_)), 1.0 / len(self.classes_))

        def predict(self, X: Any) -> Any:
            return np.full(len(X), self.classes_[0])

    picks = _run(Constant(), CLASSES, acquisition="margin").labelled[10:]
    assert picks != sorted(picks)


@pytest.mark.parametrize("name", ["logistic", "boosting", "forest"])
def test_labels_of_one_class_are_learned_until_a_second_one_comes(name: str) -> None:
    order = np.argsort(CLASSES != "yes", kind="stable")
    learner = sf.ActiveLearner(CLASSIFIERS[name], X, initial=order[:6])
    verdict = learner.tell(order[:6], CLASSES[order[:6]])
    verdict = learner.tell(order[6:8], CLASSES[order[6:8]])
    assert not verdict.ready
    assert set(learner.model.predict(X)) == {"yes"}
    verdict = learner.tell(order[-3:], CLASSES[order[-3:]])
    verdict = learner.tell(order[-6:-3], CLASSES[order[-6:-3]])
    assert set(learner.model.classes_) == {"yes", "no"}
    items = learner.ask(3)
    assert not set(items.tolist()) & set(learner.labelled)


def test_a_corrected_label_is_learned_as_if_it_had_been_so() -> None:
    learner = _run(LogisticRegression(), CLASSES)
    item = learner.labelled[3]
    other = "no" if CLASSES[item] == "yes" else "yes"
    steps = len(learner.verdicts)
    learner.correct(item, other)
    rows = learner.labelled
    labels = CLASSES[rows].copy()
    labels[3] = other
    fresh = LogisticRegression().fit(X[rows], labels)
    np.testing.assert_allclose(learner.model.coef_, fresh.coef_)
    assert len(learner.verdicts) == steps
    with pytest.raises(InvalidValueError, match="number"):
        learner.correct(item, 3)
    np.testing.assert_allclose(learner.model.coef_, fresh.coef_)


def test_a_fit_that_fails_changes_nothing() -> None:
    class Fragile(LogisticRegression):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            if len(y) == 20:
                raise RuntimeError("no")
            return super().fit(X, y)

    learner = _run(Fragile(), CLASSES, labels=15)
    before, verdict = learner.labelled, learner.verdict
    items = learner.ask(5)
    with pytest.raises(RuntimeError, match="no"):
        learner.tell(items, CLASSES[items])
    assert learner.labelled == before
    assert learner.verdict == verdict
    assert learner.ask(5).tolist() == items.tolist()
    learner.tell(items[:4], CLASSES[items[:4]])
    assert len(learner.labelled) == 19


def test_texts_are_kept_as_a_sparse_matrix() -> None:
    words = [f"{'good' if label == 'yes' else 'bad'} word{k} other{k % 7}" for k, label in enumerate(CLASSES)]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    learner = sf.ActiveLearner(model, words, seed=0)
    while len(learner.labelled) < 40:
        items = learner.ask(5)
        learner.tell(items, CLASSES[items])
    assert issparse(learner._X)
    assert (learner.model.predict(words) == CLASSES).mean() > 0.9
    trace = sf.simulate(model, words, CLASSES, batch=10, steps=3, X_test=words[:50], y_test=CLASSES[:50])
    assert trace.wrong_share.shape == (3,)
    check = learner.check(30)
    assert check.tell(CLASSES[check.indices]) is not None
    with pytest.raises(InvalidValueError, match="finite"):
        sf.ActiveLearner(LogisticRegression(), csr_matrix(np.array([[np.inf, 1.0], [0.0, 1.0]])), initial=1, seed=0)


def test_missing_inputs_are_accepted_where_the_estimator_accepts_them() -> None:
    holes = X.copy()
    holes[::7, 2] = np.nan
    learner = sf.ActiveLearner(HistGradientBoostingClassifier(max_iter=5), holes, initial=10)
    items = learner.ask(10)
    learner.tell(items, CLASSES[items])
    assert learner.ask(1).shape == (1,)
    with pytest.raises(InvalidValueError, match="X_pool"):
        sf.ActiveLearner(LogisticRegression(), holes)


def test_a_pipeline_whose_transformer_needs_labels_is_fitted_whole() -> None:
    model = make_pipeline(SelectKBest(k=2), GaussianNB())
    learner = _run(model, CLASSES)
    rows = learner.labelled
    fresh = clone(model).fit(X[rows], CLASSES[rows])
    np.testing.assert_allclose(learner.model.predict_proba(X), fresh.predict_proba(X))


def test_the_error_of_a_regressor_without_deviations_is_that_of_a_cross_validation() -> None:
    learner = sf.ActiveLearner(Ridge(), X, initial=np.arange(25))
    learner.tell(np.arange(25), NUMBERS[:25], random=True)
    squares = np.zeros(25)
    for fold in range(5):
        test = np.arange(25)[fold::5]
        train = np.setdiff1d(np.arange(25), test)
        squares[test] = (Ridge().fit(X[train], NUMBERS[train]).predict(X[test]) - NUMBERS[test]) ** 2
    estimate, variance = learner.error_estimate(), NUMBERS[:25].var()
    weight = (20 / 25) ** 2
    ratio = (1.0 + weight * 0.8 ** (1.0 / 5.0) * squares.sum() / variance) / (1.0 + 25 * weight)
    assert estimate.model_alone == pytest.approx(variance)
    assert estimate.value == pytest.approx(variance * ratio)
    assert estimate.random_labels == 25


def test_recorded_losses_are_those_of_the_estimator() -> None:
    trace = sf.simulate(
        LogisticRegression(), X[:120], CLASSES[:120], batch=10, steps=4, X_test=X[120:], y_test=CLASSES[120:]
    )
    rows = np.concatenate([trace.initial, trace.indices.ravel()])
    fitted = LogisticRegression().fit(X[rows], CLASSES[rows])
    assert trace.wrong_share[-1] == (fitted.predict(X[120:]) != CLASSES[120:]).mean()
    p = fitted.predict_proba(X[120:])[np.arange(80), (CLASSES[120:] == "yes").astype(int)]
    np.testing.assert_allclose(trace.predictive_error[-1], -np.log(p).mean())
    assert np.isnan(trace.kl_new_old).all()
    numbers = sf.simulate(Ridge(), X[:120], NUMBERS[:120], batch=10, steps=4, X_test=X[120:], y_test=NUMBERS[120:])
    rows = np.concatenate([numbers.initial, numbers.indices.ravel()])
    fitted = Ridge().fit(X[rows], NUMBERS[rows])
    np.testing.assert_allclose(numbers.predictive_error[-1], np.mean((fitted.predict(X[120:]) - NUMBERS[120:]) ** 2))


def test_a_validation_set_is_used() -> None:
    rule = sf.HeldOutPlateau()
    learner = _run(LogisticRegression(), CLASSES, criterion=rule, validation=(X[:30], CLASSES[:30]))
    fitted = learner.model
    p = fitted.predict_proba(X[:30])[np.arange(30), (CLASSES[:30] == "yes").astype(int)]
    np.testing.assert_allclose(learner.trace().measures["validation_error"][-1], -np.log(p).mean())


def test_columns_of_a_table_keep_their_names() -> None:
    table = pd.DataFrame(X, columns=list("abcd"))
    learner = sf.ActiveLearner(RandomForestClassifier(5), table, initial=10)
    items = learner.ask(10)
    learner.tell(items, CLASSES[items])
    assert learner.model.feature_names_in_.tolist() == list("abcd")
    assert len(learner.model.predict(table)) == len(table)
    search = sf.ActiveLearner(CLASSIFIERS["search"], table, initial=10)
    search.tell(items, CLASSES[items])
    assert len(search.model.predict(X)) == len(X)


def test_unusable_settings_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="SVC must have predict_proba; wrap it in CalibratedClassifierCV"):
        sf.ActiveLearner(SVC(), X)
    with pytest.raises(InvalidValueError, match="bald compares the members of a committee"):
        sf.ActiveLearner(LogisticRegression(), X, acquisition="bald")
    with pytest.raises(InvalidValueError, match="return_std=True; use random"):
        sf.ActiveLearner(Ridge(), X, acquisition="variance")
    with pytest.raises(InvalidValueError, match="acquisition for this classifier is one of margin"):
        sf.ActiveLearner(LogisticRegression(), X, acquisition="variance")
    with pytest.raises(MissingInputError, match="kl_new_old"):
        sf.ActiveLearner(GaussianNB(), X, criterion=sf.ErrorStability(0.05))
    with pytest.raises(MissingInputError, match="kl_new_old"):
        sf.simulate(GaussianNB(), X, CLASSES, record=sf.ErrorStability(0.05))


def test_the_members_of_a_forest_choose_labels() -> None:
    learner = _run(RandomForestClassifier(10, min_samples_leaf=3), CLASSES, acquisition="bald")
    forest = learner.model
    rest = np.setdiff1d(np.arange(len(X)), learner.labelled)
    members = np.stack([tree.predict_proba(X[rest]) for tree in forest.estimators_], axis=1)
    best = sf.acquisition.bald(members).max()
    chosen = np.flatnonzero(rest == learner.ask(1)[0])
    np.testing.assert_allclose(sf.acquisition.bald(members)[chosen], best, rtol=1e-6)


@examples(24)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.integers(0, 5))
def test_skipped_and_labelled_items_are_never_asked_for(sizes: list[int], seed: int) -> None:
    learner = sf.ActiveLearner(GaussianNB(), X[:40], initial=4, seed=seed)
    items = learner.ask(4)
    learner.tell(items, CLASSES[items])
    for size in sizes:
        items = learner.ask(size)
        assert not set(items.tolist()) & set(learner.labelled + learner.skipped)
        learner.skip(items[:1])
        if len(items) > 1:
            learner.tell(items[1:], CLASSES[items[1:]])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["logistic", "forest"])
def test_a_screening_asks_for_the_likeliest_items_first(name: str) -> None:
    rare = np.where(X[:, 0] + X[:, 1] > 1.6, "relevant", "other")
    learner = sf.ActiveLearner(CLASSIFIERS[name], X, positive="relevant", criterion=sf.ConsecutiveIrrelevant(40))
    while not learner.verdict.stop and len(learner.labelled) < 150:
        items = learner.ask(5)
        verdict = learner.tell(items, rare[items])
    # At random it would be as many as the share of labelled items.
    assert (rare[learner.labelled] == "relevant").mean() > 1.2 * (rare == "relevant").mean()
    assert verdict.ready
    assert len(learner.labelled) < 150
    with pytest.raises(InvalidValueError, match="give positive="):
        sf.ActiveLearner(CLASSIFIERS[name], X, acquisition="relevance")
