"""StopMonitor: the steps that it builds, the models and pools that it takes, and what it refuses."""

import json
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import ARDRegression, BayesianRidge, LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import suffice as sf
from suffice.acquisition import bald
from suffice.criteria import Criterion, Step, committee_agreement, entropies, pool_facts, worth_facts
from suffice.criteria.base import example_rule
from suffice.criteria.prediction_statistics import selected_losses
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError, SufficeError
from suffice.learner import ErrorGuarantee
from suffice.learner.step_inputs import RecentGain
from suffice.posteriors import fitted_posterior, posterior_pair
from suffice.saved_state import sealed
from suffice.session.advice import AdviceByTarget
from suffice.session.error_estimate import class_error
from tests.every_rule import OF_OPTIMISATION, OF_SCREENING
from tests.thoroughness import crossed, examples

RNG = np.random.default_rng(0)
N = 260
X = RNG.normal(size=(N, 4))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=N) > 0.0, "right", "left")
Z = 2.0 * X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=N)
TEXTS = [f"{'good' if label == 'right' else 'bad'} word{i % 7} thing{i % 11}" for i, label in enumerate(Y)]
ROUNDS = (20, 24, 30, 40)
ITEMS = RNG.permutation(N)

MODELS: dict[str, tuple[Any, Any, Any]] = {
    "RandomForest": (RandomForestClassifier(8, random_state=0), X, Y),
    "ExtraTrees": (ExtraTreesClassifier(8, min_samples_leaf=4, random_state=0), X, Y),
    "HistGradientBoosting": (HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5), X, Y),
    "LogisticRegression": (LogisticRegression(), X, Y),
    "GaussianNB": (GaussianNB(), X, Y),
    "texts": (make_pipeline(TfidfVectorizer(), LogisticRegression()), TEXTS, Y),
    "GaussianProcess": (GaussianProcessRegressor(RBF(2.0) + WhiteKernel(0.1), optimizer=None), X, Z),
    "BayesianRidge": (BayesianRidge(fit_intercept=False), X, Z),
    "GaussianProcessClassifier": (GaussianProcessClassifier(1.0 * RBF(2.0)), X, Y),
    "ARDRegression": (ARDRegression(), X, Z),
}
COMMITTEES = {"RandomForest", "ExtraTrees"}
NUMBERS = {"GaussianProcess", "BayesianRidge", "ARDRegression"}
NEEDS_COMMITTEE = {"InformationGain", "SelectionAgreement", "ValidationSetAgreement", "IntrinsicStopping"}
#: Rules that no model gets a verdict of, with the missing input.
NEVER = {"PacBayes": "kl_prior", "HeldOutPlateau": "validation_error, validation_labels"}
DIVERGENCES = {"ErrorStability", "DeterministicBoundRuns"}
POSTERIORS = {"LogisticRegression", "texts", "GaussianProcessClassifier", *NUMBERS}
FOR_NUMBERS = {"ExpectedCost", "LabelWorth", "MaxVariance", "InformationGain", "Budget", "PoolFraction", "CostLimit"}


def rows(pool: Any, items: Any) -> Any:
    return [pool[i] for i in items] if isinstance(pool, list) else pool[items]


@cache
def fitted(name: str, n: int) -> Any:
    model, pool, labels = MODELS[name]
    return clone(model).fit(rows(pool, ITEMS[:n]), labels[ITEMS[:n]])


def updated(name: str, rule: Criterion | None = None, rounds: Sequence[int] = ROUNDS, **options: Any) -> sf.StopMonitor:
    """A monitor that does not fit models again, unless the options say so."""
    _, pool, labels = MODELS[name]
    monitor = sf.StopMonitor(pool, rule, **{"estimate_time": 0.0, "seed": 0, **options})
    for n in rounds:
        monitor.update(fitted(name, n), ITEMS[:n], labels[ITEMS[:n]], random=ITEMS[:n:2])
    return monitor


def refusal(name: str, rule: str) -> str | None:
    """The missing input that a refusal must name; None for a verdict."""
    if rule in NEVER:
        return NEVER[rule]
    needs = ", ".join(sorted(example_rule(sf.criteria.RULES[rule]).needs()))
    if rule in OF_SCREENING | OF_OPTIMISATION:
        return needs.removeprefix("pool_size, ")
    if rule in DIVERGENCES:
        return None if name in POSTERIORS else needs
    if name in NUMBERS:
        return None if rule in FOR_NUMBERS | {"TimeLimit"} else needs
    if rule == "MaxVariance" or (rule in NEEDS_COMMITTEE and name not in COMMITTEES):
        return needs
    return None


# A step built by hand, with nothing of the monitor.


@cache
def by_hand(name: str, rounds: Sequence[int] = ROUNDS) -> tuple[dict[str, Any], ...]:
    return tuple((numbers_by_hand if name in NUMBERS else classes_by_hand)(name, rounds))


def sampled() -> Any:
    return np.sort(np.random.default_rng(0).permutation(N)[:500])


def class_gain(p: Any, past: Any) -> float:
    return float((p.max(axis=1) - p[np.arange(len(p)), past]).mean())


def number_gain(mean: Any, past: Any) -> float:
    return float(np.mean((mean - past) ** 2))


def divergences_by_hand(name: str, before: int, n: int) -> dict[str, Any]:
    """Of two posteriors under one prior; that of the labels before is computed anew if the prior has changed."""
    _, pool, labels = MODELS[name]
    sets = [(rows(pool, ITEMS[:size]), labels[ITEMS[:size]]) for size in (before, n)]
    if name == "GaussianProcess":
        old, new = fitted(name, before), fitted(name, n)
    elif name == "LogisticRegression":
        old, new = (fitted_posterior(fitted(name, len(y)), inputs, y) for inputs, y in sets)
    else:
        old, new = posterior_pair(fitted(name, n), *sets)
    return {"kl_new_old": sf.kl(new, old), "kl_old_new": sf.kl(old, new)}


def classes_by_hand(name: str, rounds: Sequence[int]) -> list[dict[str, Any]]:
    _, pool, labels = MODELS[name]
    found, recent, losses = [], RecentGain(), []
    sample, stop = sampled(), sf.StopSet.draw(N, seed=0).indices
    for n, before in zip(rounds, (0, *rounds), strict=False):
        model, known = fitted(name, n), ITEMS[:n]
        free = np.setdiff1d(np.arange(N), known)
        p = model.predict_proba(rows(pool, sample))
        gain = recent.since_half(n, partial(class_gain, p))
        recent.keep(n, p.argmax(axis=1))
        rest = ~np.isin(sample, known)
        facts: dict[str, Any] = {
            "n_labelled": n,
            "pool_size": N,
            "cost": float(n),
            "classes_seen": len(set(labels[known].tolist())),
            "unlabelled_error": float((1.0 - p.max(axis=1))[rest].mean()),
            "error_scale": 1.0,
        }
        if before:
            share = facts["unlabelled_error"] * 50.0 / (50.0 + n)
            facts |= {"reducible_error": max(gain, share), "recent_gain": gain}
            facts |= divergences_by_hand(name, before, n) if name in POSTERIORS else {}
        p_stop = model.predict_proba(rows(pool, stop))
        facts |= {
            "stop_probabilities": p_stop.astype(np.float16),
            "stop_confidence": float(p_stop.max(axis=1).mean()),
            "expected_error": float(entropies(p_stop).mean()),
        }
        p_pool, changes = model.predict_proba(rows(pool, free)), None
        if before:
            old = fitted(name, before)
            changes = old.predict_proba(rows(pool, free)).argmax(axis=1)
            new, codes = ITEMS[before:n], np.searchsorted(model.classes_, labels[ITEMS[before:n]])
            q = old.predict_proba(rows(pool, new))
            facts |= {"selected_probabilities": q, "selected_labels": codes, **selected_losses(q, codes)}
            drawn = np.isin(new, ITEMS[:n:2])
            then = np.full(int(drawn.sum()), before)
            losses += list(zip(q.argmax(axis=1)[drawn] != codes[drawn], 1.0 - q.max(axis=1)[drawn], then, strict=True))
        facts |= pool_facts(p_pool, before=changes)
        wrong, expected, then = np.array(losses, dtype=float).reshape(-1, 3).T
        own = 1.0 - p.max(axis=1)[rest]
        estimate = class_error(own, expected, wrong * (then / n) ** (1.0 / 5.0 + 0.5 / 6.0), (then / n) ** 2)
        facts["calibration"] = estimate.value / own.mean() if losses else 1.0
        facts["random_labels"] = len(losses)
        if name in COMMITTEES:
            facts |= {"pool_gain": float(bald(trees(model, pool, free)).max())}
            votes = trees(model, pool, stop).argmax(axis=2).T
            facts["stop_agreement"] = committee_agreement(votes, 2)
            members = trees(model, pool, sample)
            # The leaves of the other forest are pure, and its trees certain of everything.
            assert (members.max(axis=2).mean() > 0.95) == (name == "RandomForest")
            if name == "ExtraTrees":
                facts["reducible_error"] = worth_facts(p[rest], draws=members[rest])["reducible_error"]
            if before:
                votes = trees(fitted(name, before), pool, ITEMS[before:n]).argmax(axis=2).T
                facts["selected_agreement"] = committee_agreement(votes, 2)
        found.append(facts)
    return found


def trees(model: Any, pool: Any, items: Any) -> Any:
    return np.stack([tree.predict_proba(pool[items]) for tree in model.estimators_], axis=1)


def noise_of(model: Any, inputs: Any) -> Any:
    if isinstance(model, BayesianRidge | ARDRegression):
        return 1.0 / model.alpha_
    return model.kernel_.diag(inputs) - np.diag(model.kernel_(inputs, inputs))


def numbers_by_hand(name: str, rounds: Sequence[int]) -> list[dict[str, Any]]:
    _, pool, labels = MODELS[name]
    found, recent, losses = [], RecentGain(), []
    sample, stop = sampled(), sf.StopSet.draw(N, seed=0).indices
    for n, before in zip(rounds, (0, *rounds), strict=False):
        model, known = fitted(name, n), ITEMS[:n]
        mean, deviation = model.predict(pool[sample], return_std=True)
        gain = recent.since_half(n, partial(number_gain, mean))
        recent.keep(n, mean)
        rest = ~np.isin(sample, known)
        free = np.setdiff1d(np.arange(N), known)
        # The noise that the variances of labels contain.
        total = model.predict(pool[free], return_std=True)[1] ** 2
        latent = np.maximum(total - noise_of(model, pool[free]), 0.0)
        facts: dict[str, Any] = {
            "n_labelled": n,
            "pool_size": N,
            "cost": float(n),
            "expected_error": float((model.predict(pool[stop], return_std=True)[1] ** 2).mean()),
            "unlabelled_error": float((deviation**2)[rest].mean()),
            "reducible_error": float(np.maximum(deviation**2 - noise_of(model, pool[sample]), 0.0)[rest].mean()),
            "error_scale": float(np.var(labels[known])),
            "pool_variance": float(latent.max()),
            "pool_gain": 0.5 * float(np.log1p(latent / (total - latent)).max()),
        }
        if before:
            old = fitted(name, before)
            facts |= {"recent_gain": gain, **divergences_by_hand(name, before, n)}
            new = ITEMS[before:n][np.isin(ITEMS[before:n], ITEMS[:n:2])]
            guess, spread = old.predict(pool[new], return_std=True)
            losses += list(zip((labels[new] - guess) ** 2, spread**2, np.full(len(new), before), strict=True))
        squares, expected, then = np.array(losses, dtype=float).reshape(-1, 3).T
        weights, fallen = (then / n) ** 2, (then / n) ** (1.0 / 5.0 + 0.5 / 6.0)
        relative = fallen * squares / np.maximum(expected, 1e-300)
        facts["calibration"] = (10.0 + weights @ relative) / (10.0 + weights.sum())
        facts["random_labels"] = len(losses)
        found.append(facts)
    return found


@pytest.mark.parametrize(("name", "rule_name"), crossed(MODELS, sf.criteria.RULES, every=4))
def test_every_rule_gives_the_verdict_on_a_step_built_by_hand_or_names_what_is_missing(
    name: str, rule_name: str
) -> None:
    rule = example_rule(sf.criteria.RULES[rule_name])
    missing = refusal(name, rule_name)
    if missing is not None:
        with pytest.raises(MissingInputError, match=f"^{rule_name} requires .*{missing}"):
            updated(name, rule)
        return
    monitor = updated(name, rule)
    expected, steps = [], []
    for number, known in enumerate(by_hand(name)):
        timed = {"seconds": monitor.trace().measures["seconds"][number]} if rule_name == "TimeLimit" else {}
        facts = {**known, **timed}
        if rule.needs() <= set(facts):
            steps.append(Step(**{key: value for key, value in facts.items() if key in rule.reads() | {"n_labelled"}}))
            expected.append(rule.observe(steps[-1]))
    told = monitor.trace().steps()
    assert len(told) == len(steps) >= 3
    # Predictions for fewer rows may differ in the last bits, depending on the processor.
    for one, other in zip(told, steps, strict=True):
        for field in rule.reads() | {"n_labelled"}:
            ours, theirs = getattr(one, field), getattr(other, field)
            assert (ours is None) == (theirs is None), field
            if ours is not None:
                np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12, err_msg=field)
    assert monitor.rule_verdict is monitor.verdicts[-1]
    for said, hand in zip(monitor.verdicts, expected, strict=True):
        assert (said.stop, said.ready, said.n_labelled) == (hand.stop, hand.ready, hand.n_labelled)
        assert said.value == (hand.value if hand.value is None else pytest.approx(hand.value, rel=1e-9, abs=1e-12))


def test_white_noise_is_told_from_the_latent_variance() -> None:
    monitor = updated("GaussianProcess", sf.MaxVariance(0.7))
    model = fitted("GaussianProcess", ROUNDS[-1])
    free = np.setdiff1d(np.arange(N), ITEMS[: ROUNDS[-1]])
    quiet = model.predict(X[free], return_std=True)[1] ** 2 - 0.1
    assert monitor.trace().measures["pool_variance"][-1] == pytest.approx(quiet.max())


# Labels that are new, corrected, removed; classes that come late.


def classifier(items: Any, labels: Any = Y, kind: Callable[[], Any] = GaussianNB) -> Any:
    return kind().fit(X[items], labels[items])


def test_the_first_update_is_judged_unless_the_rule_compares_models() -> None:
    first = ITEMS[:20]
    assert sf.StopMonitor(X, sf.Budget(20)).update(classifier(first), first, Y[first]).stop
    said = sf.StopMonitor(X).update(classifier(first), first, Y[first])
    assert not said.stop
    assert not said.ready
    assert "this is the first" in said.reason


@pytest.mark.parametrize(
    "rule_name", ["LabelWorth", "SelectedAccuracy", "StabilizingPredictions", "ClassificationChange"]
)
def test_an_update_without_new_labels_replaces_the_step(rule_name: str) -> None:
    rule = example_rule(sf.criteria.RULES[rule_name])
    once, twice = updated("GaussianNB", rule), updated("GaussianNB", rule, [20, 20, 24, 24, 30, 30, 30, 40, 40])
    assert once.verdicts == twice.verdicts
    assert once.trace().steps() == twice.trace().steps()


def test_the_order_of_the_labels_does_not_matter() -> None:
    one, other = sf.StopMonitor(X), sf.StopMonitor(X)
    for n in ROUNDS:
        items = ITEMS[:n]
        a = one.update(fitted("GaussianNB", n), items, Y[items])
        b = other.update(fitted("GaussianNB", n), items[::-1].tolist(), Y[items][::-1].tolist())
        assert a == b


def test_a_corrected_label_changes_the_loss_of_a_random_label() -> None:
    monitor = updated("GaussianNB", rounds=(20, 40))
    before = monitor.error_estimate()
    labels = Y[ITEMS[:40]].copy()
    for k in range(20, 40, 2):
        labels[k] = "left" if labels[k] == "right" else "right"
    monitor.update(fitted("GaussianNB", 40), ITEMS[:40], labels)
    after = monitor.error_estimate()
    assert after.value > before.value
    assert after.random_labels == before.random_labels == 10
    assert after.model_alone == before.model_alone


def test_removed_labels_take_the_monitor_back() -> None:
    rule = sf.LabelWorth(mistake_cost=5.0)
    monitor, other = updated("GaussianNB", rule, (20, 24, 30, 40, 50)), updated("GaussianNB", rule, (20, 24, 30))
    for each in (monitor, other):
        said = each.update(fitted("GaussianNB", 35), ITEMS[:35], Y[ITEMS[:35]])
    assert said.n_labelled == 35
    assert [step.n_labelled for step in monitor.trace().steps()] == [24, 30, 35]
    assert monitor.left == N - 35
    assert monitor.trace().steps()[:2] == other.trace().steps()[:2]
    # Items that were removed are unlabelled again, and their predictions are forgotten.
    assert monitor.random_labels == 8
    said = monitor.update(fitted("GaussianNB", 50), ITEMS[:50], Y[ITEMS[:50]], random=ITEMS[35:50])
    assert said.n_labelled == 50
    assert monitor.random_labels == 8 + 15


def test_removing_many_labels_of_a_rule_that_compares_the_pool_is_undecided() -> None:
    monitor = updated("GaussianNB", sf.ClassificationChange(), (20, 24, 30, 40))
    said = monitor.update(fitted("GaussianNB", 26), ITEMS[:26], Y[ITEMS[:26]])
    assert not said.ready
    assert "pool_changes is not known any more" in said.reason
    assert monitor.update(fitted("GaussianNB", 30), ITEMS[:30], Y[ITEMS[:30]]).ready


def test_classes_that_come_late_get_a_column() -> None:
    labels = np.array(["b"] * 20 + ["a"] * 20 + ["c"] * (N - 40))
    rule = sf.SelectedAccuracy(0.6, window=4) & sf.StabilizingPredictions(0.9, window=2) & sf.LabelWorth()
    monitor = sf.StopMonitor(X, rule)
    said = [
        monitor.update(GaussianNB().fit(X[:n], labels[:n]), np.arange(n), labels[:n], random=range(n))
        for n in (30, 40, 60, 80)
    ]
    steps = monitor.trace().steps()
    assert [step.stop_probabilities.shape[1] for step in steps if step.stop_probabilities is not None] == [2, 3, 3]
    # "c" is new to the model of 40 labels.
    assert steps[1].selected_labels is not None
    assert set(steps[1].selected_labels.tolist()) == {-1}
    assert [step.classes_seen for step in steps] == [2, 3, 3]
    assert len(said) == 4


def test_the_columns_keep_their_order() -> None:
    labels = np.array(["b"] * 10 + ["c"] * 10 + ["a"] * (N - 20))
    monitor = sf.StopMonitor(X, sf.StabilizingPredictions())
    for n in (20, 60):
        model = GaussianNB().fit(X[:n], labels[:n])
        monitor.update(model, np.arange(n), labels[:n])
    stop = sf.StopSet.draw(N, seed=0).indices
    told = monitor.trace().steps()[-1].stop_probabilities
    np.testing.assert_array_equal(told, model.predict_proba(X[stop])[:, [1, 2, 0]].astype(np.float16))


def test_one_class_is_not_judged() -> None:
    monitor = sf.StopMonitor(X, sf.MinExpectedError(0.9))
    forest = RandomForestClassifier(3, random_state=0)
    one = np.array(["only"] * N)
    said = monitor.update(clone(forest).fit(X[:10], one[:10]), range(10), one[:10])
    assert not said.ready
    assert "one class" in said.reason
    said = monitor.update(clone(forest).fit(X[:20], Y[:20]), range(20), Y[:20])
    assert said.ready


def test_a_class_that_no_label_has_any_more_keeps_its_column() -> None:
    labels = np.array(["a", "b", "c"] * 20)
    monitor = sf.StopMonitor(X[:60], sf.StabilizingPredictions())
    monitor.update(GaussianNB().fit(X[:30], labels[:30]), range(30), labels[:30])
    fewer = np.where(labels == "b", "a", labels)
    monitor.update(GaussianNB().fit(X[:40], fewer[:40]), range(40), fewer[:40])
    told = monitor.trace().steps()[-1].stop_probabilities
    assert told is not None
    assert told.shape[1] == 3
    assert not told[:, 1].any()


def test_everything_labelled_is_a_stop() -> None:
    monitor = sf.StopMonitor(X[:30], sf.Budget(1000))
    said = monitor.update(classifier(np.arange(30)), range(30), Y[:30])
    assert said.stop
    assert "every item of the pool is labelled" in said.reason
    assert monitor.decision().answer == "complete"


# Models.


def test_the_model_may_be_fitted_again_in_place() -> None:
    """The monitor keeps a copy, so that earlier predictions are those of the earlier model."""
    rule = sf.SelectedAccuracy(0.6, window=4)
    monitor, model = sf.StopMonitor(X, rule), GaussianNB()
    for n in ROUNDS:
        monitor.update(model.fit(X[ITEMS[:n]], Y[ITEMS[:n]]), ITEMS[:n], Y[ITEMS[:n]])
    assert monitor.trace().steps() == updated("GaussianNB", rule).trace().steps()


class _Uncopyable:
    """A model that cannot be copied."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.classes_ = inner, inner.classes_

    def predict_proba(self, inputs: Any) -> Any:
        return self.inner.predict_proba(inputs)

    def predict(self, inputs: Any) -> Any:
        return self.inner.predict(inputs)

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("a socket cannot be copied")


def test_a_model_that_cannot_be_copied_gives_the_same_verdicts() -> None:
    rule = sf.SelectedAccuracy(0.6, window=4) | sf.LabelWorth()
    monitor = sf.StopMonitor(X, rule, estimate_time=0.0, seed=0)
    for n in ROUNDS:
        model = _Uncopyable(fitted("GaussianNB", n))
        monitor.update(model, ITEMS[:n], Y[ITEMS[:n]], random=ITEMS[:n:2])
    other = updated("GaussianNB", rule)
    assert monitor.verdicts == other.verdicts
    assert monitor.error_estimate() == other.error_estimate()
    assert monitor.check(20).predictions.tolist() == other.check(20).predictions.tolist()


@pytest.mark.parametrize("labels", [Y, np.where(Y == "right", 7, 3), np.where(Y == "right", 2.0, 1.0), Y == "right"])
def test_members_of_a_forest_have_the_classes_of_the_forest(labels: Any) -> None:
    monitor = sf.StopMonitor(X, sf.SelectionAgreement(0.2) & sf.LabelWorth())
    for n in ROUNDS:
        model = RandomForestClassifier(5, min_samples_leaf=4, random_state=0).fit(X[:n], labels[:n])
        monitor.update(model, range(n), labels[:n])
    errors = monitor.trace().measures["reducible_error"]
    assert (errors > 0.0).all()


@pytest.mark.parametrize(
    ("model", "committee"),
    [
        (BaggingClassifier(GaussianNB(), 4, random_state=0), True),
        (BaggingClassifier(DecisionTreeClassifier(), 4, max_features=0.5, random_state=0), True),
        (VotingClassifier([("a", GaussianNB()), ("b", LogisticRegression())], voting="soft"), True),
        (VotingClassifier([("a", GaussianNB()), ("b", LogisticRegression())], voting="soft", weights=[1, 3]), False),
        (AdaBoostClassifier(n_estimators=4, random_state=0), False),
        (GradientBoostingClassifier(n_estimators=4), False),
        (make_pipeline(StandardScaler(), RandomForestClassifier(4, random_state=0)), True),
    ],
    ids=["bagging", "features", "voting", "weighted", "ada", "gradient", "pipeline"],
)
def test_an_ensemble_is_a_committee_if_it_predicts_the_average(model: Any, committee: bool) -> None:
    labels = np.where(X[:, 1] > 0.8, "third", Y)
    monitor = sf.StopMonitor(X, sf.SelectionAgreement(0.2))
    if not committee:
        with pytest.raises(MissingInputError, match=r"selected_agreement: a committee is needed.*N x K x C"):
            monitor.update(clone(model).fit(X[:40], labels[:40]), range(40), labels[:40])
        return
    for n in (40, 60):
        said = monitor.update(clone(model).fit(X[:n], labels[:n]), range(n), labels[:n])
    assert said.ready


def test_a_bootstrap_that_misses_a_class() -> None:
    labels = np.array(["rare"] + ["common", "other"] * 30)
    monitor = sf.StopMonitor(X[:61], sf.LabelWorth())
    for n in (20, 30, 40):
        model = BaggingClassifier(KNeighborsClassifier(2), 5, random_state=1).fit(X[:n], labels[:n])
        assert any(len(member.classes_) < 3 for member in model.estimators_)
        monitor.update(model, range(n), labels[:n])
    assert "reducible_error" in monitor.trace().measures


def test_models_of_suffice_use_their_posteriors() -> None:
    rule = sf.ErrorStability(0.6, calibration=2) & sf.LabelWorth() & sf.InformationGain(0.1)
    monitor, errors = sf.StopMonitor(X, rule), []
    for n in ROUNDS:
        model = sf.models.BayesianLogistic(alpha=1.0).fit(X[:n], Y[:n])
        monitor.update(model, range(n), Y[:n])
        errors.append(model)
    step = monitor.trace().steps()[-1]
    assert step.kl_new_old == sf.kl(errors[-1].posterior, errors[-2].posterior)
    # The same run by the learner, which asks for the same items in the same order.
    learner = sf.ActiveLearner(sf.models.BayesianLogistic(alpha=1.0), X, criterion=rule, initial=range(20))
    learner.tell(range(20), Y[:20])
    for n, before in zip(ROUNDS[1:], ROUNDS, strict=False):
        learner.tell(range(before, n), Y[before:n])
    other = learner.trace().steps()[-1]
    for name in ("unlabelled_error", "reducible_error", "recent_gain", "pool_gain", "kl_new_old", "kl_old_new"):
        assert getattr(step, name) == pytest.approx(getattr(other, name), rel=1e-6), name


def test_regressors_of_suffice_are_judged_like_the_learner() -> None:
    rule = sf.LabelWorth() & sf.MaxVariance(0.1) & sf.InformationGain(0.1) & sf.ErrorStability(0.5, calibration=2)
    monitor = sf.StopMonitor(X, rule)
    for n in ROUNDS:
        model = sf.models.GaussianProcess(length_scale=2.0, noise=0.1).fit(X[:n], Z[:n])
        monitor.update(model, range(n), Z[:n])
    learner = sf.ActiveLearner(
        sf.models.GaussianProcess(length_scale=2.0, noise=0.1),
        X,
        criterion=rule,
        initial=range(20),
        acquisition="random",
    )
    learner.tell(range(20), Z[:20])
    for n, before in zip(ROUNDS[1:], ROUNDS, strict=False):
        learner.tell(range(before, n), Z[before:n])
    step, other = monitor.trace().steps()[-1], learner.trace().steps()[-1]
    for name in ("unlabelled_error", "reducible_error", "recent_gain", "pool_gain", "pool_variance", "kl_new_old"):
        assert getattr(step, name) == pytest.approx(getattr(other, name), rel=1e-6), name


# Posteriors.

STABLE = sf.ErrorStability(0.5, calibration=2)


def followed(models: Sequence[Any], sets: Sequence[tuple[Any, Any]], pool: Any = X) -> sf.StopMonitor:
    """A monitor after updates with models that are fitted on the labels of some items."""
    monitor = sf.StopMonitor(pool, STABLE)
    for model, (items, labels) in zip(models, sets, strict=True):
        monitor.update(model.fit(rows(pool, items), labels), items, labels)
    return monitor


def pair_of(model: Any, old: tuple[Any, Any], new: tuple[Any, Any], pool: Any = X) -> dict[str, Any]:
    """Divergences of two sets of items and labels under the prior of a model."""
    before, after = posterior_pair(model, *((rows(pool, items), labels) for items, labels in (old, new)))
    return {"kl_new_old": sf.kl(after, before), "kl_old_new": sf.kl(before, after)}


def assert_divergences(monitor: sf.StopMonitor, expected: dict[str, Any], relative: float = 1e-9) -> None:
    step = monitor.trace().steps()[-1]
    assert step.kl_new_old == pytest.approx(expected["kl_new_old"], rel=relative)
    assert step.kl_old_new == pytest.approx(expected["kl_old_new"], rel=relative)


@pytest.mark.parametrize(
    ("models", "labels"),
    [
        ([LogisticRegression(C=1.0), LogisticRegression(C=30.0)], Y),
        ([LogisticRegression(), LogisticRegression(class_weight="balanced")], Y),
        ([LogisticRegression(), LogisticRegression(fit_intercept=False)], Y),
        ([GaussianProcessClassifier(1.0 * RBF(1.0)) for _ in range(2)], Y),
        ([GaussianProcessRegressor(1.0 * RBF(1.0) + WhiteKernel(), normalize_y=True) for _ in range(2)], Z),
        ([ARDRegression(), ARDRegression()], Z),
        ([BayesianRidge(), BayesianRidge(fit_intercept=False)], Z),
        ([make_pipeline(StandardScaler(), LogisticRegression()) for _ in range(2)], Y),
        ([LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())], Y),
        ([make_pipeline(StandardScaler(), GaussianProcessRegressor(RBF(), alpha=0.1)) for _ in range(2)], Z),
        ([sf.models.GaussianProcess(length_scale=scale, noise=0.1) for scale in (2.0, 1.0)], Z),
        ([sf.models.BayesianLogistic(alpha=alpha) for alpha in (2.0, 1.0)], Y),
        ([LogisticRegression(), sf.models.BayesianLogistic(alpha=1.0)], Y),
    ],
    ids=lambda value: "-".join(type(each).__name__ for each in value) if isinstance(value, list) else "",
)
def test_the_posterior_before_has_the_prior_of_the_present_model(models: list[Any], labels: Any) -> None:
    sets = [(ITEMS[:n], labels[ITEMS[:n]]) for n in (40, 50)]
    monitor = followed(models, sets)
    assert_divergences(monitor, pair_of(models[-1], *sets))
    step = monitor.trace().steps()[-1]
    assert step.kl_new_old is not None
    assert 0.0 < step.kl_new_old < 100.0
    # The posteriors of scikit-learn's classifiers are Laplace's approximations.
    last = models[-1][-1] if isinstance(models[-1], Pipeline) else models[-1]
    assert bool(step.estimated) == isinstance(last, LogisticRegression | GaussianProcessClassifier)


def test_texts_whose_words_change() -> None:
    model, sets = make_pipeline(TfidfVectorizer(), LogisticRegression()), [(np.arange(n), Y[:n]) for n in (30, 60)]
    texts = [f"{text} only{i // 30}" for i, text in enumerate(TEXTS)]
    monitor = followed([clone(model), model], sets, texts)
    assert "only1" in model[0].vocabulary_
    assert_divergences(monitor, pair_of(model, sets[0], sets[1], texts))


def test_an_unchanged_prior_gives_the_numbers_of_the_models_themselves() -> None:
    """Posteriors that were computed for the update before are used again."""
    sets = [(ITEMS[:n], Y[ITEMS[:n]]) for n in (40, 50)]
    models = [LogisticRegression(), LogisticRegression()]
    monitor = followed(models, sets)
    old, new = (fitted_posterior(model, X[items], y) for model, (items, y) in zip(models, sets, strict=True))
    assert monitor.trace().steps()[-1] == Step.between(old, new, n_labelled=50, pool_size=N)


def test_corrected_labels_are_compared_with_those_of_the_update_before() -> None:
    first = ITEMS[:40], Y[ITEMS[:40]]
    labels = Y[ITEMS[:50]].copy()
    labels[[3, 8]] = np.where(labels[[3, 8]] == "left", "right", "left")
    model = LogisticRegression()
    monitor = followed([LogisticRegression(), model], [first, (ITEMS[:50], labels)])
    assert_divergences(monitor, pair_of(model, first, (ITEMS[:50], labels)))
    # Without a new label the step is replaced: it is compared with the update before it.
    again = model.fit(X[ITEMS[:50]], Y[ITEMS[:50]])
    monitor.update(again, ITEMS[:50], Y[ITEMS[:50]])
    assert_divergences(monitor, pair_of(model, first, (ITEMS[:50], Y[ITEMS[:50]])))
    assert len(monitor.trace()) == 1


def test_removed_labels_are_part_of_the_posterior_before() -> None:
    first, second = (ITEMS[:40], Y[ITEMS[:40]]), (ITEMS[5:60], Y[ITEMS[5:60]])
    model = LogisticRegression()
    monitor = followed([LogisticRegression(), model], [first, second])
    assert_divergences(monitor, pair_of(model, first, second))
    # Fewer labels than at all updates: nothing is left to compare with.
    said = monitor.update(clone(model).fit(X[ITEMS[:30]], Y[ITEMS[:30]]), ITEMS[:30], Y[ITEMS[:30]])
    assert not said.ready
    assert "this is the first" in said.reason


@examples(100)
@given(st.data())
def test_any_change_of_labels_is_compared_under_one_prior(data: st.DataObject) -> None:
    """Labels, classes and C change: each update has the divergences of its labels, or says why not."""
    monitor = sf.StopMonitor(X[:14], STABLE)
    marks: list[tuple[Any, Any]] = []
    for _ in range(data.draw(st.integers(2, 5))):
        items = data.draw(st.lists(st.integers(0, 13), min_size=4, max_size=14, unique=True))
        labels = data.draw(st.lists(st.sampled_from("abc"), min_size=len(items), max_size=len(items)))
        labels[:2] = ["a", "b"]
        now = np.array(items), np.array(labels)
        model = LogisticRegression(C=data.draw(st.sampled_from([0.5, 2.0]))).fit(X[now[0]], now[1])
        said = monitor.update(model, *now)
        marks = [mark for mark in marks if len(mark[0]) < len(items)]
        if said.value is not None:
            assert_divergences(monitor, pair_of(model, marks[-1], now), 1e-6)
        elif marks and set(marks[-1][1].tolist()) != set(labels):
            assert "class 'c' had" in said.reason
        else:
            assert "this is the first" in said.reason or "not known any more" in said.reason
        marks.append(now)


def test_a_late_class_leaves_one_step_undecided() -> None:
    labels = np.where(np.arange(N) % 3 == 0, "late", Y)
    labels[:40] = Y[:40]
    sets = [(np.arange(n), labels[:n]) for n in (30, 40, 50, 60)]
    monitor, said = sf.StopMonitor(X, STABLE), []
    for items, y in sets:
        said.append(monitor.update(LogisticRegression().fit(X[items], y), items, y))
    assert not said[2].ready
    assert said[2].value is None
    assert "class 'late' had no label before, and without one there is no posterior" in said[2].reason
    assert [step.n_labelled for step in monitor.trace().steps()] == [40, 60]
    assert said[3].value is not None
    model = LogisticRegression().fit(X[:60], labels[:60])
    assert_divergences(monitor, pair_of(model, *sets[2:]))
    # Priors that are proper have a posterior without a label of the class.
    for kind in (GaussianProcessClassifier(optimizer=None), sf.models.BayesianLogistic(alpha=1.0)):
        other = followed([clone(kind) for _ in sets], sets)
        assert [step.n_labelled for step in other.trace().steps()] == [40, 50, 60]


def test_a_class_that_is_gone_leaves_one_step_undecided() -> None:
    labels = np.where(np.arange(N) % 7 == 0, "wrong", Y)
    monitor = followed([LogisticRegression()], [(np.arange(40), labels[:40])])
    said = monitor.update(LogisticRegression().fit(X[:50], Y[:50]), range(50), Y[:50])
    assert not said.ready
    assert "class 'wrong' had labels before, and LogisticRegression does not know it" in said.reason


def test_divergences_without_a_posterior_are_refused_in_a_sentence() -> None:
    lasso = LogisticRegression().fit(X[:40], Y[:40])
    lasso.penalty = "l1"
    with pytest.raises(
        MissingInputError, match=r"kl_new_old, kl_old_new: posteriors are compared, and this Logist.*l2"
    ):
        sf.StopMonitor(X, STABLE).update(lasso, range(40), Y[:40])
    with pytest.raises(MissingInputError, match="posteriors are compared, and suffice knows none of GaussianNB; use"):
        sf.StopMonitor(X, STABLE).update(fitted("GaussianNB", 40), ITEMS[:40], Y[ITEMS[:40]])
    monitor = followed([LogisticRegression()], [(ITEMS[:40], Y[ITEMS[:40]])])
    before = json.dumps({**monitor.state_dict(), "seconds": 0, "checksum": ""})
    # A model that was not fitted on the labels that are given.
    with pytest.raises(InvalidValueError, match=r"kl_new_old and kl_old_new compare .*are not those that X and y"):
        monitor.update(LogisticRegression().fit(X[ITEMS[:9]], Y[ITEMS[:9]]), ITEMS[:90], Y[ITEMS[:90]])
    assert json.dumps({**monitor.state_dict(), "seconds": 0, "checksum": ""}) == before


def test_texts_with_twenty_thousand_words() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{word}" for word in rng.integers(0, 25_000, size=400)) for _ in range(150)]
    texts = [f"{text} {'good' if label == 'right' else 'bad'}" for text, label in zip(texts, Y, strict=False)]
    model = make_pipeline(TfidfVectorizer(vocabulary=[f"w{k}" for k in range(25_000)]), LogisticRegression())
    monitor = followed([clone(model), clone(model)], [(np.arange(n), Y[:n]) for n in (80, 90)], texts)
    step = monitor.trace().steps()[-1]
    assert step.kl_new_old is not None
    assert 0.0 < step.kl_new_old < 10.0


@pytest.mark.parametrize("name", sorted(POSTERIORS))
@pytest.mark.parametrize("rule_name", sorted(DIVERGENCES))
def test_divergences_continue_from_json(name: str, rule_name: str) -> None:
    rule = example_rule(sf.criteria.RULES[rule_name])
    _, pool, labels = MODELS[name]
    monitor = updated(name, rule, ROUNDS[:3])
    saved = json.loads(json.dumps(monitor.state_dict(), allow_nan=False))
    other = sf.StopMonitor.from_state(saved, pool)
    assert json.dumps({**other.state_dict(), "seconds": 0, "checksum": ""}) == json.dumps(
        {**saved, "seconds": 0, "checksum": ""}
    )
    for n in (ROUNDS[3], 46):
        given = fitted(name, n), ITEMS[:n], labels[ITEMS[:n]], ITEMS[:n:2]
        one, two = monitor.update(*given), other.update(*given)
        assert (one.ready, one.stop) == (two.ready, two.stop)
        step = monitor.trace().steps()[-1]
        assert_divergences(other, {"kl_new_old": step.kl_new_old, "kl_old_new": step.kl_old_new})
    assert len(other.trace()) == len(monitor.trace()) == 4


def test_the_posterior_of_a_network_is_not_known_after_json() -> None:
    pytest.importorskip("torch")
    monitor = sf.StopMonitor(X, STABLE)
    for n in (30, 40, 50, 60):
        network = sf.models.DropoutNetwork(epochs=2, seed=0).fit(X[:n], Y[:n])
        if n == 50:
            monitor = sf.StopMonitor.from_state(json.loads(json.dumps(monitor.state_dict())), X)
        said = monitor.update(network, range(n), Y[:n])
        if n == 50:
            assert not said.ready
            assert "is not known any more" in said.reason
    assert [step.n_labelled for step in monitor.trace().steps()] == [40, 60]


def test_a_state_without_the_labels_of_updates() -> None:
    """As it was saved before posteriors were computed from labels."""
    state = updated("BayesianRidge", STABLE).state_dict()
    content = {name: value for name, value in state.items() if name not in ("format", "checksum")}
    content["marks"] = [mark[:3] for mark in state["marks"]]
    other = sf.StopMonitor.from_state(sealed(state["format"], content), X)
    said = other.update(fitted("BayesianRidge", 46), ITEMS[:46], Z[ITEMS[:46]])
    assert not said.ready
    assert "is not known any more" in said.reason


@pytest.mark.filterwarnings("ignore")
def test_wrappers_of_scikit_activeml_are_followed() -> None:
    classifiers = pytest.importorskip("skactiveml.classifier")
    codes, steps = np.where(Y == "left", 3, 7), []
    for wrapped in (False, True):
        monitor = sf.StopMonitor(X, STABLE & sf.LabelWorth())
        for n in (30, 40, 50):
            some = np.where(np.arange(N) < n, codes, np.nan)
            model: Any = LogisticRegression().fit(X[:n], codes[:n])
            if wrapped:
                model = classifiers.SklearnClassifier(LogisticRegression(), classes=[3, 7]).fit(X, some)
            monitor.update(model, range(n), codes[:n])
        steps.append(monitor.trace().steps())
    for one, other in zip(*steps, strict=True):
        assert one.kl_new_old == pytest.approx(other.kl_new_old, rel=1e-9)
        assert one.unlabelled_error == pytest.approx(other.unlabelled_error, rel=1e-9)


# Functions.


def probabilities(model: Any, inputs: Any) -> Any:
    return model.predict_proba(inputs)


def test_a_function_of_probabilities_is_as_good_as_the_method() -> None:
    monitor = updated("GaussianNB", predict=probabilities)
    assert monitor.verdicts == updated("GaussianNB").verdicts


def test_a_function_of_members_is_a_committee() -> None:
    def members(model: Any, inputs: Any) -> Any:
        return np.stack([tree.predict_proba(inputs) for tree in model.estimators_], axis=1)

    rule = sf.IntrinsicStopping() & sf.InformationGain(0.1) & sf.LabelWorth()
    steps = [updated("RandomForest", rule, predict=each).trace().steps()[-1] for each in (members, None)]
    for name in rule.needs():
        assert getattr(steps[0], name) == pytest.approx(getattr(steps[1], name), rel=1e-9), name


def test_a_function_of_mean_and_deviation() -> None:
    def spread(model: Any, inputs: Any) -> Any:
        return model.predict(inputs), np.full(len(inputs), 0.5)

    monitor = sf.StopMonitor(X, predict=spread)
    for n in ROUNDS:
        said = monitor.update(LinearRegression().fit(X[:n], Z[:n]), range(n), Z[:n], random=range(n))
    assert said.ready
    assert monitor.trace().measures["unlabelled_error"].tolist() == [0.25] * 3
    assert monitor.error_estimate().random_labels == 40
    # Nothing tells noise apart, so the recent gain or a falling share of the error stands for the reducible error.
    measured = monitor.trace().measures
    wanted = [max(gain, 0.25 * 50 / (50 + n)) for gain, n in zip(measured["recent_gain"], ROUNDS[1:], strict=True)]
    assert measured["reducible_error"].tolist() == pytest.approx(wanted)
    with pytest.raises(MissingInputError, match=r"pool_variance: LinearRegression does not tell the variance"):
        sf.StopMonitor(X, sf.MaxVariance(0.1), predict=spread).update(
            LinearRegression().fit(X[:9], Z[:9]), range(9), Z[:9]
        )


def test_columns_of_a_function_are_named_by_the_labels() -> None:
    class Net:
        def __init__(self, p: Any) -> None:
            self.p = p

    monitor = sf.StopMonitor(
        X, sf.StabilizingPredictions(), predict=lambda model, inputs: np.tile(model.p, (len(inputs), 1)), seed=0
    )
    monitor.update(Net([0.2, 0.8]), [0, 1], ["no", "yes"])
    assert monitor.check(3).predictions.tolist() == ["yes"] * (N - 2)
    # Whole numbers are the columns, also those that no label has yet.
    monitor = sf.StopMonitor(
        X, sf.StabilizingPredictions(), predict=lambda model, inputs: np.tile(model.p, (len(inputs), 1)), seed=0
    )
    monitor.update(Net([0.2, 0.1, 0.7]), [0, 1], [0, 1])
    assert monitor.check(3).predictions.tolist() == [2] * (N - 2)
    with pytest.raises(
        InvalidValueError, match=r"3 columns, and the labels are of 2 classes; give the model .*classes_"
    ):
        sf.StopMonitor(X, predict=lambda model, inputs: np.tile(model.p, (len(inputs), 1)), seed=0).update(
            Net([0.2, 0.1, 0.7]), [0, 1], ["no", "yes"]
        )


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda n: np.full(n, 0.5), r"shape N x C or N x K x C for N = 1 items; its shape is \(1,\)"),
        (lambda n: np.full((n + 1, 2), 0.5), r"its shape is \(2, 2\)"),
        (lambda n: np.full((n, 2), 0.4), "each row adds up to 1"),
        (lambda n: np.full((n, 2), np.nan), "each row adds up to 1"),
        (lambda n: [["a"]] * n, "class probabilities of shape"),
        (lambda n: (np.zeros(n),), r"must return \(mean, std\) for numbers, not 1 values"),
    ],
)
def test_what_a_function_returns_is_checked(answer: Any, message: str) -> None:
    monitor = sf.StopMonitor(X, predict=lambda model, inputs: answer(len(inputs)))
    with pytest.raises(InvalidValueError, match=message):
        monitor.update(object(), range(20), Y[:20])


@pytest.mark.parametrize(("spread", "message"), [(np.nan, "not finite"), (-1.0, "below 0")])
def test_numbers_of_a_function_are_checked(spread: float, message: str) -> None:
    def predict(_: Any, inputs: Any) -> Any:
        return np.zeros(len(inputs)), np.full(len(inputs), spread)

    with pytest.raises(InvalidValueError, match=message):
        sf.StopMonitor(X, predict=predict).update(object(), range(20), Z[:20])


def test_a_function_that_does_not_use_its_model_is_refused() -> None:
    newest: list[Any] = []
    monitor = sf.StopMonitor(X, predict=lambda model, inputs: newest[-1].predict_proba(inputs))
    newest.append(fitted("GaussianNB", 20))
    monitor.update(object(), ITEMS[:20], Y[ITEMS[:20]])
    newest.append(fitted("GaussianNB", 30))
    # Without random labels nothing is judged by the model before.
    monitor.update(object(), ITEMS[:30], Y[ITEMS[:30]])
    newest.append(fitted("GaussianNB", 40))
    with pytest.raises(InvalidValueError, match="predict must use the model that it is given"):
        monitor.update(object(), ITEMS[:40], Y[ITEMS[:40]], random=ITEMS[30:40])


@pytest.mark.parametrize(
    ("model", "labels", "message"),
    [
        (LinearSVC(), Y, "LinearSVC has no predict_proba; give predict="),
        (LinearRegression(), Z, ""),
        (RandomForestRegressor(3), Z, ""),
    ],
)
def test_models_without_a_distribution(model: Any, labels: Any, message: str) -> None:
    """A rule that needs probabilities refuses a classifier without them; a regressor needs no standard deviation."""
    fit = clone(model).fit(X[:20], labels[:20])
    if message:
        with pytest.raises(MissingInputError, match=message):
            sf.StopMonitor(X, seed=0).update(fit, range(20), labels[:20])
    else:
        assert not sf.StopMonitor(X, seed=0).update(fit, range(20), labels[:20]).ready
    monitor = sf.StopMonitor(X, sf.Budget(15) & sf.CostLimit(30.0), label_cost=2.0, seed=0)
    assert monitor.update(fit, range(20), labels[:20], random=range(20)).stop
    estimate = monitor.error_estimate()
    assert estimate.random_labels == 20
    assert estimate.low < estimate.value < estimate.high
    # A check needs predictions only.
    check = monitor.check(50, tolerance=None if labels is Y else 1.0)
    assert check.tell(labels[check.indices]) is not None


# Pools.


def pools() -> dict[str, Any]:
    found: dict[str, Any] = {
        "list": [list(row) for row in X],
        "csr": sparse.csr_matrix(X),
        "coo": sparse.coo_matrix(X),
        "array": sparse.csc_array(X),
    }
    return found


@pytest.mark.parametrize("kind", ["list", "csr", "coo", "array"])
def test_pools_that_are_not_arrays(kind: str) -> None:
    assert_same_in(pools()[kind], lambda pool, items: X[items])


def test_tables_of_pandas() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"], index=np.arange(N)[::-1])
    assert_same_in(table, lambda pool, items: pool.iloc[items])
    series = pd.Series(Y, index=np.arange(N)[::-1])
    monitor = sf.StopMonitor(table)
    for n in ROUNDS:
        model = RandomForestClassifier(5, random_state=0).fit(table.iloc[:n], series.iloc[:n])
        monitor.update(model, pd.Index(range(n)), series.iloc[:n], random=pd.Series(range(n)))
    assert monitor.error_estimate().random_labels == 40


def test_tables_of_polars() -> None:
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({name: X[:, k] for k, name in enumerate("abcd")})
    assert_same_in(table, lambda pool, items: pool[items.tolist()])


def test_tables_of_pyarrow() -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({name: X[:, k] for k, name in enumerate("abcd")})

    def predict(model: Any, part: Any) -> Any:
        return model.predict_proba(np.column_stack([column.to_numpy() for column in part.columns]))

    assert_same_in(table, lambda pool, items: X[items], predict=predict)


def test_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    assert_same_in(torch.tensor(X), lambda pool, items: X[items])


@pytest.mark.slow
def test_data_sets_of_hugging_face() -> None:
    datasets = pytest.importorskip("datasets")
    pool = datasets.Dataset.from_dict({"x": X.tolist()})
    assert_same_in(
        pool, lambda pool, items: X[items], predict=lambda model, part: model.predict_proba(np.array(part["x"]))
    )


class _Selectable:
    """A data set with ``select``, like those of Hugging Face."""

    def __init__(self, inputs: Any) -> None:
        self.inputs = inputs

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, item: Any) -> Any:
        raise AssertionError("rows are selected at once")

    def select(self, items: list[int]) -> "_Selectable":
        return _Selectable(self.inputs[items])


class _Indexed:
    """A data set with a length and items, like those of torch."""

    def __len__(self) -> int:
        return N

    def __getitem__(self, item: int) -> Any:
        return X[item]


def test_data_sets_by_their_methods() -> None:
    assert_same_in(
        _Selectable(X), lambda pool, items: X[items], predict=lambda model, part: model.predict_proba(part.inputs)
    )
    assert_same_in(_Indexed(), lambda pool, items: X[items])


def assert_same_in(pool: Any, select: Any, **options: Any) -> None:
    """The verdicts for a pool are those for an array of the same numbers."""
    monitor = sf.StopMonitor(pool, estimate_time=0.0, **options)
    for n in ROUNDS:
        model = clone(MODELS["LogisticRegression"][0]).fit(select(pool, ITEMS[:n]), Y[ITEMS[:n]])
        monitor.update(model, ITEMS[:n], Y[ITEMS[:n]], random=ITEMS[:n:2])
    expected = updated("LogisticRegression")
    values = [[said.value for said in each.verdicts] for each in (monitor, expected)]
    np.testing.assert_allclose(np.array(values[0], float), np.array(values[1], float), rtol=1e-3)


@pytest.mark.parametrize(
    ("pool", "error", "message"),
    [
        ([], InvalidValueError, "X_pool must have at least one item"),
        ("texts", InvalidTypeError, "not str"),
        ({"a": 1}, InvalidTypeError, "not dict"),
        (7, InvalidTypeError, "not int"),
        (iter([1]), InvalidTypeError, "X_pool must be an array, a table"),
    ],
)
def test_what_is_no_pool(pool: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        sf.StopMonitor(pool)


# Estimate, decision, checks.


def test_the_estimate_is_calibrated_by_random_labels() -> None:
    monitor = updated("GaussianNB")
    estimate = monitor.error_estimate()
    assert estimate.random_labels == 10
    facts = by_hand("GaussianNB")[-1]
    free = np.setdiff1d(np.arange(N), ITEMS[: ROUNDS[-1]])
    p = fitted("GaussianNB", ROUNDS[-1]).predict_proba(X[free])
    assert estimate.model_alone == pytest.approx(float(1.0 - p.max(axis=1).mean()))
    # The rule uses the same estimate.
    assert estimate.value == pytest.approx(estimate.model_alone * facts["calibration"])
    assert monitor.error_estimate(10).model_alone != estimate.model_alone
    with pytest.raises(InvalidValueError, match="tolerance is for numbers"):
        monitor.error_estimate(tolerance=1.0)
    numbers = updated("BayesianRidge")
    assert 0.0 < numbers.error_estimate(tolerance=0.5).value < 1.0
    assert numbers.error_estimate().value > 0.0


def test_random_may_be_flags_or_indices() -> None:
    monitors = [sf.StopMonitor(X) for _ in range(3)]
    for n in ROUNDS:
        items, model = ITEMS[:n], fitted("GaussianNB", n)
        monitors[0].update(model, items, Y[items], random=items)
        monitors[1].update(model, items, Y[items], random=np.ones(n, dtype=bool))
        monitors[2].update(model, items, Y[items], random=True)
    assert len({monitor.error_estimate() for monitor in monitors}) == 1
    assert monitors[0].random_labels == 40


def test_the_decision_is_that_of_a_learner() -> None:
    monitor = sf.StopMonitor(X, mistake_cost=0.01)
    assert monitor.decision().answer == "too early"
    for n in (20, 40, 60, 80):
        monitor.update(fitted("GaussianNB", n), ITEMS[:n], Y[ITEMS[:n]], random=ITEMS[:n])
    found = monitor.decision()
    assert found.answer == "enough"
    assert found.error is not None
    assert found.error.random_labels == 80
    assert found.n_labelled == 80
    assert found.unlabelled == N - 80
    assert "80 labels" in str(found) or "wrong" in str(found)
    assert monitor.decision(at_most=0.3).plan is not None or monitor.decision(at_most=0.3).answer == "enough"
    numbers = updated("BayesianRidge")
    assert numbers.decision().error is not None


def checks_advised(target: float, *, forget: bool) -> list[bool]:
    """Whether a check is advised at each update, for a target."""
    pool, labels = load_breast_cancer(return_X_y=True)
    pool = (pool - pool.mean(0)) / pool.std(0)
    order = np.random.default_rng(0).permutation(len(pool)).tolist()
    monitor, known = sf.StopMonitor(pool, sf.LabelWorth(), seed=0), order[:10]
    drawn, said = list(known), []
    while len(known) <= 190:
        model = LogisticRegression(max_iter=1000).fit(pool[known], labels[known])
        monitor.update(model, known, labels[known], drawn)
        if forget:
            monitor._session._advice = AdviceByTarget()
        found = monitor.decision(target)
        if len(known) % 60 == 0:
            # A monitor from a file decides the same, and other targets in between change nothing.
            other = sf.StopMonitor.from_state(json.loads(json.dumps(monitor.state_dict())), pool)
            assert [other.decision(at_most) for at_most in (0.1, None, target)][-1] == found == monitor.decision(target)
            monitor = other
        said.append(found.plan is not None and found.plan.check_now)
        certainty = model.predict_proba(pool).max(axis=1)
        certainty[known] = np.inf
        known += np.argsort(certainty, kind="stable")[:4].tolist()
        drawn.append(next(item for item in order if item not in known))
        known.append(drawn[-1])
    return said


@pytest.mark.slow
def test_a_check_that_is_advised_stays_advised() -> None:
    found = checks_advised(0.08, forget=False)
    assert any(found)
    assert found == sorted(found)
    # Without memory it would be advised at the first plan, and not at the second.
    assert checks_advised(0.08, forget=True).index(True) < found.index(True)


@pytest.mark.parametrize("target", ["5%", [0.1], np.array([0.1, 0.2]), float("nan"), -0.1, 1.5, True])
def test_a_target_that_is_no_share_is_refused(target: Any) -> None:
    learner = sf.ActiveLearner(sf.models.BayesianLogistic(), X)
    items = learner.ask(12)
    learner.tell(items, Y[items])
    for found in (updated("GaussianNB"), learner):
        with pytest.raises(InvalidValueError, match="at_most must be a number from 0 to 1, not"):
            found.decision(at_most=target)


def test_a_target_for_numbers_is_an_error_in_their_unit() -> None:
    numbers = 100.0 * X[:, 0]
    model = LinearRegression().fit(X[ITEMS[:40]], numbers[ITEMS[:40]])
    monitor = sf.StopMonitor(X)
    monitor.update(model, ITEMS[:40], numbers[ITEMS[:40]], random=ITEMS[:40])
    decision = monitor.decision(at_most=50.0)
    assert decision.at_most == 50.0
    learner = sf.ActiveLearner(sf.models.BayesianRidge(), X)
    items = learner.ask(12)
    learner.tell(items, numbers[items])
    assert learner.decision(at_most=50.0).at_most == 50.0
    for found in (monitor, learner):
        with pytest.raises(InvalidValueError, match="at_most must be a number of at least 0, not -1"):
            found.decision(at_most=-1.0)
        with pytest.raises(InvalidValueError, match="at_most must be a number from 0 to 1, not 50"):
            found.decision(at_most=50.0, of="all", tolerance=1.0)


def test_a_check_guarantees_the_predictions_of_the_last_update() -> None:
    model = clone(MODELS["GaussianNB"][0]).fit(X[ITEMS[:40]], Y[ITEMS[:40]])
    monitor = sf.StopMonitor(X, seed=0)
    monitor.update(model, ITEMS[:40], Y[ITEMS[:40]])
    expected = model.predict(X)
    # Fitted again with wrong labels: the frozen predictions do not change.
    model.fit(X, np.where(Y == "left", "right", "left"))
    check = monitor.check(60)
    assert check.predictions.tolist() == expected[check.unlabelled].tolist()
    assert set(check.indices.tolist()).isdisjoint(ITEMS[:40].tolist())
    proven = check.tell(Y[check.indices])
    assert proven is not None
    wrong = int((expected[check.indices] != Y[check.indices]).sum())
    assert proven == sf.checks.Guarantee.of_error(
        wrong, 60, N - 40, alpha=0.025, confidence=0.95, model="GaussianNB at 40 labels"
    )
    assert monitor.guarantee is not None
    assert monitor.guarantee.about_present_model
    assert monitor.decision().guarantee == proven
    assert monitor.left == N - 100
    # The labels of the check count as random ones in the next update.
    items = [*ITEMS[:40].tolist(), *check.indices.tolist()]
    monitor.update(classifier(np.array(items)), items, Y[items])
    assert monitor.random_labels == 60
    stale = monitor.guarantee
    assert not stale.about_present_model
    # A corrected label corrects the check.
    labels = Y[items].copy()
    labels[-1] = "left" if labels[-1] == "right" else "right"
    monitor.update(classifier(np.array(items)), items, labels)
    assert abs(monitor.guarantee.guarantee.wrong - wrong) == 1


def test_checks_of_a_monitor() -> None:
    monitor = sf.StopMonitor(X, sf.LabelWorth() | ErrorGuarantee(at_most=0.5), seed=0)
    with pytest.raises(SufficeError, match="no model yet; call update"):
        monitor.check(10)
    with pytest.raises(SufficeError, match="no model yet; call update"):
        monitor.error_estimate()
    monitor.update(classifier(ITEMS[:40]), ITEMS[:40], Y[ITEMS[:40]])
    said = monitor.update(classifier(ITEMS[:44]), ITEMS[:44], Y[ITEMS[:44]])
    assert not said.stop
    check = monitor.check(50)
    with pytest.raises(SufficeError, match="a check is open"):
        monitor.check(10)
    taken = check.indices[:3].tolist()
    with pytest.raises(InvalidValueError, match="belongs to the open check"):
        monitor.update(classifier(ITEMS[:44]), [*ITEMS[:44], *taken], Y[[*ITEMS[:44], *taken]])
    check.cannot_label(check.indices[0])
    check.tell({int(item): Y[item] for item in check.pending})
    assert monitor.verdict.stop
    assert monitor.verdict.certificate is not None
    # The next check spends less, and does not draw items that are known.
    second = monitor.check(20, recall_of="right")
    assert set(second.indices.tolist()).isdisjoint(check.indices.tolist())
    assert second.record.number == 2
    second.abort()
    assert [each.aborted for each in monitor.checks] == [False, True]
    for m in (0, 10_000, 2.5):
        words = rf"m, the number of items to check, must be a whole number from 1 to {monitor.left + 1} \(.*\), not {m}"
        with pytest.raises(InvalidValueError, match=words):
            monitor.check(m)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="tolerance cannot be checked: the model predicts classes"):
        monitor.check(10, tolerance=0.5)


def test_a_check_of_numbers() -> None:
    monitor = updated("BayesianRidge")
    check = monitor.check(60, tolerance=1.0)
    proven = check.tell(Z[check.indices])
    assert proven is not None
    assert proven.quantity == "within"
    with pytest.raises(InvalidValueError, match="a label must be a finite number"):
        monitor.check(10, tolerance=1.0).tell(["a"] * 10)


# Records.


@pytest.mark.parametrize(
    ("name", "rule_name"),
    crossed(
        ["RandomForest", "texts", "LogisticRegression", "BayesianRidge"],
        sorted(set(sf.criteria.RULES) - DIVERGENCES - {"TimeLimit"}),
        every=4,
    ),
)
def test_a_monitor_continues_from_json_with_the_same_verdicts(name: str, rule_name: str) -> None:
    if refusal(name, rule_name) is not None:
        return
    rule = example_rule(sf.criteria.RULES[rule_name])
    _, pool, labels = MODELS[name]
    monitor = updated(name, rule, ROUNDS[:3])
    saved = json.dumps(monitor.state_dict(), allow_nan=False)
    other = sf.StopMonitor.from_state(json.loads(saved), pool)
    assert other.verdict == monitor.verdict
    assert json.dumps({**other.state_dict(), "seconds": 0, "checksum": ""}) == json.dumps(
        {**json.loads(saved), "seconds": 0, "checksum": ""}
    )
    for n in (ROUNDS[3], 46):
        given = fitted(name, n), ITEMS[:n], labels[ITEMS[:n]], ITEMS[:n:2]
        assert other.update(*given) == monitor.update(*given)
    assert other.trace().steps() == monitor.trace().steps()
    assert other.error_estimate() == monitor.error_estimate()


def test_checks_continue_from_json() -> None:
    monitor = updated("GaussianNB")
    first = monitor.check(20)
    first.tell(Y[first.indices])
    second = monitor.check(30, precision_of="right")
    second.cannot_label(second.indices[3])
    other = sf.StopMonitor.from_state(json.loads(json.dumps(monitor.state_dict())), X)
    assert other.guarantee is not None
    assert monitor.guarantee is not None
    assert other.guarantee.guarantee == monitor.guarantee.guarantee
    assert other.error_estimate() == monitor.error_estimate()
    assert other.decision(at_most=0.2) == monitor.decision(at_most=0.2)
    for each in (monitor, other):
        each.checks[-1].tell({int(item): Y[item] for item in each.checks[-1].pending})
    assert other.checks[-1].guarantee == monitor.checks[-1].guarantee
    assert other.check(10).indices.tolist() == monitor.check(10).indices.tolist()


def test_a_new_monitor_can_be_saved() -> None:
    other = sf.StopMonitor.from_state(json.loads(json.dumps(sf.StopMonitor(X).state_dict())), X)
    assert other.update(fitted("GaussianNB", 20), ITEMS[:20], Y[ITEMS[:20]]).n_labelled == 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: [], "must be the result of StopMonitor.state_dict"),
        (lambda state: {**state, "format": "other"}, "must be the result of StopMonitor.state_dict"),
        (lambda state: {**state, "pool_size": 7}, "state was changed or damaged since StopMonitor.state_dict"),
        (lambda state: {key: value for key, value in state.items() if key != "steps"}, "changed or damaged"),
        (lambda state: {key: value for key, value in state.items() if key != "checksum"}, "changed or damaged"),
        (lambda state: resealed(state, pool_size=7), "X_pool has 260 items, and the monitor was saved with 7"),
        (lambda state: resealed(state, session=None), "not a complete result of StopMonitor.state_dict"),
        (lambda state: resealed(state, steps=[{"n_labelled": "many"}]), "n_labelled"),
    ],
)
def test_a_state_that_cannot_be_used(change: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        sf.StopMonitor.from_state(change(updated("GaussianNB").state_dict()), X)


def resealed(state: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The state with changes that were made on purpose."""
    content = {name: value for name, value in state.items() if name not in ("format", "checksum")}
    return sealed(state["format"], content | changes)


def test_the_trace_replays_other_rules() -> None:
    monitor = updated("RandomForest")
    trace = monitor.trace()
    assert trace.initial.tolist() == ITEMS[:20].tolist()
    assert trace.n_labelled.tolist() == [24, 30, 40]
    assert set(trace.random_items.tolist()) == set(ITEMS[:40:2].tolist())
    assert trace.replay(sf.LabelWorth()) == monitor.verdicts
    with pytest.raises(MissingInputError, match="kl_new_old, kl_old_new, which this run did not record"):
        trace.replay(sf.ErrorStability(0.5))
    assert len(sf.StopMonitor(X).trace()) == 0


def test_the_table_of_steps() -> None:
    pytest.importorskip("pandas")
    frame = updated("RandomForest").to_frame()
    assert frame["n_labelled"].tolist() == [24, 30, 40]
    assert {"stop", "ready", "value", "threshold", "reason", "unlabelled_error", "recent_gain"} <= set(frame.columns)
    assert list(sf.StopMonitor(X).to_frame().columns)[:2] == ["n_labelled", "stop"]
    # Tables of probabilities are left out.
    assert "stop_probabilities" not in updated("RandomForest", sf.StabilizingPredictions()).to_frame()


def test_the_plot_shows_value_threshold_and_stop() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    monitor = updated("GaussianNB", sf.LabelWorth(mistake_cost=0.01))
    assert monitor.verdict.stop
    ax = monitor.plot()
    assert [line.get_label() for line in ax.lines] == ["value", "threshold", "stop at 24 labels"]
    assert monitor.plot(ax) is ax
    assert monitor.trace().plot(sf.LabelWorth()) is not None
    assert monitor.trace().plot(ax=ax).get_ylabel() == "expected error of unlabelled items"
    assert sf.StopMonitor(X).plot() is not None
    pyplot.close("all")


def test_displays_escape_everything() -> None:
    labels = np.where(Y == "left", "<script>", "</style>&")
    monitor = sf.StopMonitor(X, seed=0)
    assert "no model was given yet" in monitor._repr_html_()
    for n in ROUNDS:
        monitor.update(GaussianNB().fit(X[:n], labels[:n]), range(n), labels[:n])
    check = monitor.check(20, recall_of="<script>")
    proven = check.tell(labels[check.indices])
    assert proven is not None
    for shown in (monitor, proven, monitor.verdict, monitor.trace()):
        html: str = shown._repr_html_()
        assert "<script>" not in html
        assert html.count("</style>") == 1
        assert html.endswith("</div>")
    assert "&lt;script&gt;" in proven._repr_html_()
    assert "<svg" in monitor._repr_html_()


# Arguments.


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rule": "LabelWorth"}, InvalidTypeError, "rule must be a stopping rule such as"),
        ({"label_cost": 0.0}, InvalidValueError, "label_cost must be a number above 0"),
        ({"mistake_cost": -1.0}, InvalidValueError, "mistake_cost must be a number above 0"),
        ({"seed": -1}, InvalidValueError, "seed must be a whole number"),
        ({"predict": 3}, InvalidTypeError, "predict must be a function"),
    ],
)
def test_bad_settings(options: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        sf.StopMonitor(X, **options)


@pytest.mark.parametrize(
    ("items", "labels", "random", "message"),
    [
        (range(20), Y[:19], (), r"labels must be one for each of the 20 items of indices; their shape is \(19,\)"),
        (range(20), "text", (), "labels must be one for each"),
        ([0, 0], Y[:2], (), "indices holds an item twice"),
        ([0, N], Y[:2], (), f"indices holds {N}, but the pool has items 0 to {N - 1}"),
        ([-1, 0], Y[:2], (), "indices holds -1"),
        ([0.5], Y[:1], (), "indices must be indices into the pool"),
        ([], [], (), "indices must be indices into the pool"),
        (np.arange(N) < 5, Y[:5], (), rf"not a mask of {N} flags; give indices, e\.g\. np\.flatnonzero\(mask\)"),
        ([0, 1], Y[:2], np.arange(N) < 1, rf"not a mask of {N} flags for 2 items; give .* np\.flatnonzero\(mask\)"),
        ([0, 1], ["left", None], (), "labels holds None for item 1; leave out items without a label"),
        ([0, 1], ["left", float("nan")], (), "labels holds nan for item 1"),
        ([0, 1], [1.0, np.nan], (), "labels holds nan for item 1"),
        ([0, 1], ["left", 3], (), "all words or all numbers"),
        ([0, 1], Y[:2], [5], "random holds item 5, which is not in indices"),
        ([0, 1], Y[:2], ["a"], "random must be some of indices"),
        ([0, 1], Y[:2], [True, False, True], "random must be some of indices"),
    ],
)
def test_bad_labels_change_nothing(items: Any, labels: Any, random: Any, message: str) -> None:
    monitor = updated("GaussianNB", rounds=ROUNDS[:2])
    before = json.dumps({**monitor.state_dict(), "seconds": 0, "checksum": ""})
    with pytest.raises(InvalidValueError, match=message):
        monitor.update(fitted("GaussianNB", 40), items, labels, random)
    assert json.dumps({**monitor.state_dict(), "seconds": 0, "checksum": ""}) == before


def test_bad_models() -> None:
    monitor = sf.StopMonitor(X)
    with pytest.raises(SufficeError, match="this GaussianNB is not fitted yet; call fit"):
        monitor.update(GaussianNB(), range(20), Y[:20])
    with pytest.raises(SufficeError, match="this Pipeline is not fitted yet"):
        monitor.update(make_pipeline(StandardScaler(), GaussianNB()), range(20), Y[:20])
    with pytest.raises(InvalidTypeError, match="not the class GaussianNB"):
        monitor.update(GaussianNB, range(20), Y[:20])
    monitor.update(fitted("GaussianNB", 20), ITEMS[:20], Y[ITEMS[:20]])
    with pytest.raises(InvalidValueError, match="BayesianRidge is for regression, and the model before was for class"):
        monitor.update(fitted("BayesianRidge", 20), ITEMS[:20], Z[ITEMS[:20]])
    with pytest.raises(InvalidValueError, match="the label of item"):
        sf.StopMonitor(X).update(fitted("BayesianRidge", 20), ITEMS[:20], Y[ITEMS[:20]])


def test_the_time_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monitor = sf.StopMonitor(X, sf.TimeLimit(12.0))
    now[0] = 107.0
    assert not monitor.update(fitted("GaussianNB", 20), ITEMS[:20], Y[ITEMS[:20]]).stop
    other = sf.StopMonitor.from_state(json.loads(json.dumps(monitor.state_dict())), X)
    now[0] = 112.0
    for each in (monitor, other):
        assert each.update(fitted("GaussianNB", 24), ITEMS[:24], Y[ITEMS[:24]]).stop


def test_nothing_is_predicted_for_a_rule_that_counts() -> None:
    class Counted:
        classes_ = np.array(["left", "right"])

        def predict_proba(self, inputs: Any) -> Any:
            raise AssertionError(f"nothing is to be predicted, but {inputs} came")

    monitor = sf.StopMonitor(X, sf.Budget(30))
    for n in ROUNDS:
        said = monitor.update(Counted(), ITEMS[:n], Y[ITEMS[:n]])
    assert said.stop


def test_the_representation() -> None:
    assert repr(sf.StopMonitor(X)) == "StopMonitor(LabelWorth: 0 of 260 items labelled, go on)"


class _Table:
    """A model that is a table of probabilities."""

    def __init__(self, p: Any) -> None:
        self.p = p


@examples(60)
@given(st.data())
def test_any_sequence_of_updates_leaves_a_consistent_monitor(data: st.DataObject) -> None:
    size = 12
    labels: dict[int, int] = {}
    pool = np.arange(size)

    def predict(model: _Table, part: Any) -> Any:
        return model.p[part]

    rule = sf.LabelWorth() & sf.SelectedAccuracy(0.6, window=4) & sf.ClassificationChange()
    monitor = sf.StopMonitor(pool, rule, predict=predict)
    for _ in range(data.draw(st.integers(1, 6))):
        chosen = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=size, unique=True))
        # An update has at least one of the earlier items.
        chosen = chosen if not labels or labels.keys() & set(chosen) else [*chosen, min(labels)]
        labels = {item: data.draw(st.sampled_from([0, 1, 2])) for item in chosen}
        p = np.random.default_rng(data.draw(st.integers(0, 9))).dirichlet(np.ones(3), size=size)
        random = data.draw(st.lists(st.sampled_from(chosen), unique=True))
        said = monitor.update(_Table(p), list(labels), list(labels.values()), random)
        assert said.n_labelled == len(labels)
        assert monitor.labels == labels
        counts = monitor.trace().n_labelled.tolist()
        assert counts == sorted(set(counts))
        assert not counts or counts[-1] <= len(labels)
        assert monitor.random_labels <= len(labels)
        assert len(monitor.verdicts) == len(counts)
        again = sf.StopMonitor.from_state(json.loads(json.dumps(monitor.state_dict())), pool, predict)
        given_again = _Table(p[::-1]), list(labels), list(labels.values())
        assert again.update(*given_again) == sf.StopMonitor.from_state(monitor.state_dict(), pool, predict).update(
            *given_again
        )
    # The same update again changes nothing.
    last = monitor.verdict
    assert monitor.update(_Table(p), list(labels), list(labels.values())) == last


def test_an_update_with_the_new_labels_only_is_refused_and_changes_nothing() -> None:
    monitor = sf.StopMonitor(X)
    model = RandomForestClassifier(3, random_state=0).fit(X[:60], Y[:60])
    monitor.update(model, range(20), Y[:20])
    with pytest.raises(ValueError, match="all labels so far, and none of the 20 earlier ones is among these 30"):
        monitor.update(model, range(20, 50), Y[20:50])
    assert list(monitor.labels) == list(range(20))
    assert monitor.update(model, range(19, 50), Y[19:50]).n_labelled == 31


def test_forests_are_copied_without_their_trees() -> None:
    """With warm_start a forest grows in place."""
    monitor = sf.StopMonitor(X, sf.SelectedAccuracy(0.6, window=4))
    forest = RandomForestClassifier(3, warm_start=True, random_state=0).fit(X[:20], Y[:20])
    monitor.update(forest, range(20), Y[:20])
    expected = forest.predict_proba(X[20:30])
    forest.set_params(n_estimators=9).fit(X[:30], Y[:30])
    monitor.update(forest, range(30), Y[:30])
    np.testing.assert_array_equal(monitor.trace().steps()[-1].selected_probabilities, expected)


def test_inputs_of_another_width_are_refused() -> None:
    narrow = RandomForestClassifier(3, random_state=0).fit(X[:20, :2], Y[:20])
    with pytest.raises(ValueError, match="4 features"):
        sf.StopMonitor(X).update(narrow, range(20), Y[:20])


def test_a_network_of_suffice_is_a_committee() -> None:
    pytest.importorskip("torch")
    network = sf.models.DropoutNetwork(epochs=2, seed=0).fit(X[:40], Y[:40])
    monitor = sf.StopMonitor(X, sf.ValidationSetAgreement() & sf.LabelWorth())
    monitor.update(network, range(30), Y[:30])
    said = monitor.update(network, range(40), Y[:40], random=range(30, 40))
    assert said.n_labelled == 40
    assert monitor.random_labels == 10


def test_labels_of_other_classes_than_those_of_the_model_are_refused() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0.0, "yes", "no")
    model = LogisticRegression().fit(X[:30], y[:30])
    monitor = sf.StopMonitor(X, stop_set=20)
    for labels in (np.where(y[:30] == "yes", "Yes", "No"), (y[:30] == "yes").astype(int)):
        with pytest.raises(
            InvalidValueError, match=r"no label is of a class that LogisticRegression predicts.*'no', 'yes'"
        ):
            monitor.update(model, np.arange(30), labels)
    assert monitor.update(model, np.arange(30), y[:30]).n_labelled == 30


class Wrapper(BaseEstimator):  # type: ignore[misc]
    """Like the wrappers of other packages: fitted without attributes that show it, and without ``classes_``."""

    def __init__(self, inner: Any = None) -> None:
        self.inner = inner

    def fit(self, X: Any, y: Any) -> "Wrapper":
        self.fitted = clone(self.inner).fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return self.fitted.predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.fitted.predict_proba(X)


class Plain:
    """Any object that predicts probabilities."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, X: Any) -> Any:
        return self.model.predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(X)


class EmptyClasses(BayesianRidge):  # type: ignore[misc]
    """A regressor with an attribute for classes, which is empty, as that of CatBoost."""

    @property
    def classes_(self) -> list[Any]:
        return []


@pytest.mark.parametrize("wrap", [Wrapper, Plain])
def test_wrappers_without_classes_are_monitored_like_a_function_that_predicts(wrap: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=200) > 0.0, "yes", "no")
    reference = sf.StopMonitor(X, predict=lambda model, rows: model.predict_proba(rows), estimate_time=0.0)
    monitor = sf.StopMonitor(X, estimate_time=0.0)
    for n in (20, 40, 60):
        model = LogisticRegression().fit(X[:n], y[:n])
        wrapped = Wrapper(LogisticRegression()).fit(X[:n], y[:n]) if wrap is Wrapper else Plain(model)
        # The posterior of a model that is known gives more than its predictions.
        expected = reference.update(Plain(model), np.arange(n), y[:n], random=np.arange(n))
        assert monitor.update(wrapped, np.arange(n), y[:n], random=np.arange(n)) == expected
    assert monitor.error_estimate() == reference.error_estimate()
    # A wrapper that can be fitted again is, for the estimate of its error.
    again = sf.StopMonitor(X)
    again.update(Wrapper(LogisticRegression()).fit(X[:60], y[:60]), np.arange(60), y[:60], random=np.arange(60))
    estimate, wrong = again.error_estimate(), (model.predict(X[60:]) != y[60:]).mean()
    assert estimate.low <= wrong <= estimate.high


def test_a_wrapper_that_is_not_fitted_is_refused() -> None:
    X = np.zeros((20, 2))
    with pytest.raises(SufficeError, match="this Wrapper is not fitted yet"):
        sf.StopMonitor(X).update(Wrapper(LogisticRegression()), [0, 1], ["a", "b"])


def test_a_regressor_with_an_empty_list_of_classes_predicts_numbers() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=100)
    monitor = sf.StopMonitor(X)
    verdict = monitor.update(EmptyClasses().fit(X[:30], y[:30]), np.arange(30), y[:30])
    assert verdict.n_labelled == 30
    assert monitor.error_estimate().value < 0.5


class TwoColumns(DecisionTreeClassifier):  # type: ignore[misc]
    """A tree that always returns two columns, as LightGBM does if all labels are of one class."""

    def predict_proba(self, X: Any, check_input: bool = True) -> Any:
        p = super().predict_proba(X, check_input)
        return np.column_stack([p, np.zeros(len(p))]) if p.shape[1] == 1 else p


def test_a_second_column_of_a_model_that_knows_one_class() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = np.where(np.arange(200) < 60, "no", "yes")
    one, other = sf.StopMonitor(X), sf.StopMonitor(X)
    for n in (40, 50, 70):
        known = np.arange(n)
        found = [
            monitor.update(kind(random_state=0).fit(X[:n], y[:n]), known, y[:n], random=known)
            for monitor, kind in ((one, TwoColumns), (other, DecisionTreeClassifier))
        ]
        assert found[0] == found[1]
    assert one.decision() == other.decision()


def test_columns_that_are_not_the_classes_of_the_model() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = TwoColumns(random_state=0).fit(X[:30], np.arange(30) % 2)
    model.classes_ = np.arange(3)
    with pytest.raises(InvalidValueError, match="returned 2 columns, and classes_ of the model has 3 classes"):
        sf.StopMonitor(X).update(model, np.arange(30), np.arange(30) % 2)
