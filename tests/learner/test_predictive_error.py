"""Errors of the averaged prediction along a run: each is that of the fitted model's own predictions."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline

import suffice as sf
from suffice.divergence import KLPair
from suffice.learner.backend import StepResults
from suffice.models import BayesianLogistic, BayesianRidge, DropoutNetwork, GaussianProcess, RadialBasis
from suffice.models.laplace import Laplace, SoftmaxLaplace
from suffice.models.latent_series import most_together
from suffice.models.predictive import AveragedPredictions, BinaryCrossEntropy, quality
from suffice.numerics import Floats
from suffice.trace import Trace
from tests.thoroughness import crossed, examples

INITIAL = 8


class Data(NamedTuple):
    X: Floats
    y: Any
    X_test: Floats
    y_test: Any


def numbers(seed: int = 1) -> Data:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 2))
    y = 20.0 + 6.0 * np.sin(X[:, 0]) + 3.0 * X[:, 1] + 0.5 * rng.normal(size=90)
    return Data(X[:60], y[:60], X[60:], y[60:])


def classes(K: int, *, late: bool = False) -> Data:
    """Overlapping classes; those from the third on come late in the order of the rows, if wanted."""
    rng = np.random.default_rng(K)
    X = rng.normal(size=(110, 3))
    names = np.array(["spam", "ham", "eggs", "toast"])[:K]
    codes = (X[:, :K] + 0.6 * rng.normal(size=(110, min(K, 3)))).argmax(axis=1)
    if K == 4:
        codes = np.where(X[:, 0] > 1.2, 3, codes)
    if late:
        order = np.argsort(codes[:60] >= 2, kind="stable")
        X[:60], codes[:60] = X[:60][order], codes[:60][order]
    y = names[codes]
    return Data(X[:60], y[:60], X[60:], y[60:])


REGRESSORS: dict[str, Any] = {
    "process": GaussianProcess(1.2, 0.05),
    "learned process": GaussianProcess(),
    "ridge": BayesianRidge(0.5, 4.0, fit_intercept=True),
    "learned pipeline": make_pipeline(RadialBasis(4), BayesianRidge()),
}
CLASSIFIERS: dict[str, tuple[Any, Data]] = {
    "two": (BayesianLogistic(alpha=0.7), classes(2)),
    "two, learned": (BayesianLogistic(), classes(2)),
    "three, learned": (BayesianLogistic(), classes(3)),
    "four, met late": (BayesianLogistic(alpha=1.0), classes(4, late=True)),
    "four, given": (BayesianLogistic(alpha=1.0, classes=["eggs", "ham", "spam", "toast"]), classes(4, late=True)),
}


def watched(model: Any, data: Data, **options: Any) -> tuple[Trace, list[Any]]:
    models: list[Any] = []

    def look(fitted: Any) -> dict[str, Any]:
        models.append(fitted)
        return {}

    settings: dict[str, Any] = {"initial": np.arange(INITIAL), "X_test": data.X_test, "y_test": data.y_test}
    return sf.simulate(model, data.X, data.y, watch=look, **{**settings, **options}), models


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("name", "batch"), crossed(REGRESSORS, [4, 1], every=2))
def test_of_numbers_it_is_the_squared_error_of_the_mean(name: str, batch: int) -> None:
    data = numbers()
    trace, models = watched(REGRESSORS[name], data, steps=40 // batch, batch=batch)
    assert bool(trace.relearned) == ("learned" in name)
    dense = [np.mean((data.y_test - model.predict(data.X_test)) ** 2) for model in models]
    assert trace.predictive_error == pytest.approx(np.array(dense), rel=1e-9, abs=1e-9)
    assert trace.wrong_share.shape == (0,)
    # The posterior mean of the loss has the variance besides.
    assert (trace.predictive_error <= trace.error).all()
    # Without somebody who looks, labels are learned in blocks.
    plain = sf.simulate(
        REGRESSORS[name], *data[:2], initial=np.arange(INITIAL), steps=40 // batch, batch=batch, X_test=data.X_test,
        y_test=data.y_test,
    )  # fmt: skip
    assert plain.predictive_error == pytest.approx(trace.predictive_error, rel=1e-9, abs=1e-9)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "batch"), crossed(CLASSIFIERS, [1, 3], every=2))
def test_of_classes_it_is_the_log_loss_of_predict_proba(name: str, batch: int) -> None:
    model, data = CLASSIFIERS[name]
    trace, models = watched(model, data, steps=39 // batch, batch=batch, acquisition="order")
    unknown = 0
    for step, fitted in enumerate(models):
        p, known = fitted.predict_proba(data.X_test), np.isin(data.y_test, fitted.classes_)
        codes = np.searchsorted(fitted.classes_, data.y_test[known])
        unknown += not known.all()
        assert trace.predictive_error[step] == pytest.approx(-np.log(p[known, codes]).mean(), rel=1e-9, abs=1e-9)
        # Rows of classes that the model has not met are wrong. Classes that are given but not met are equally likely,
        # and which of them is predicted is a matter of rounding.
        first, second = np.sort(p, axis=1)[:, -1], np.sort(p, axis=1)[:, -2]
        tied = np.mean(first - second < 1e-9)
        assert not tied or name == "four, given"
        wrong = np.mean(fitted.predict(data.X_test) != data.y_test)
        assert trace.wrong_share[step] == pytest.approx(wrong, abs=tied + 1e-12)
    assert (unknown > 0) == (name == "four, met late")
    assert bool(trace.relearned) == (name in ("two, learned", "three, learned", "four, met late"))
    assert ((trace.wrong_share >= 0.0) & (trace.wrong_share <= 1.0)).all()
    assert len(trace.predictive_error) == len(trace.wrong_share) == len(trace.error) == len(trace)


def test_losses_of_many_steps_are_those_of_each() -> None:
    """More steps than are computed together, and some that are left at the end."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(330, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=330) > 0.0).astype(int)
    data = Data(X[:230], y[:230], X[230:], y[230:])
    trace, models = watched(BayesianLogistic(alpha=1.0), data, steps=200)
    assert 2 * most_together(data.X_test) < len(trace) < 4 * most_together(data.X_test)
    for step, fitted in enumerate(models):
        p = fitted.predict_proba(data.X_test)[np.arange(100), data.y_test]
        assert trace.predictive_error[step] == pytest.approx(-np.log(p).mean(), rel=1e-9)
        assert trace.wrong_share[step] == pytest.approx(np.mean(fitted.predict(data.X_test) != data.y_test))
        expected = BinaryCrossEntropy(np.column_stack([np.ones(100), data.X_test]), data.y_test)
        assert trace.error[step] == pytest.approx(expected.error(fitted.state_), rel=1e-6)


def test_with_one_class_all_others_are_wrong() -> None:
    data = classes(2)
    order = np.argsort(data.y == "ham", kind="stable")
    alone = int(np.flatnonzero(data.y[order] == "ham")[0])
    trace, models = watched(
        BayesianLogistic(alpha=1.0), data._replace(X=data.X[order], y=data.y[order]), acquisition="order"
    )
    early = alone - INITIAL
    assert early > 1
    assert models[0].classes_.tolist() == ["spam"]
    assert trace.wrong_share[:early] == pytest.approx(np.full(early, np.mean(data.y_test == "ham")))
    # The log loss is that of the posterior, which leaves something to others.
    assert (trace.predictive_error[:early] > 0.0).all()


def network() -> DropoutNetwork:
    return DropoutNetwork(hidden=(8,), epochs=15, samples=12, seed=3)


@lru_cache
def network_run(K: int) -> tuple[Trace, list[tuple[Floats, Any]]]:
    """A run; after each step the log probabilities of the test rows under the draws of the record, and the classes."""
    pytest.importorskip("torch")
    data, found = classes(K), []
    seed = int(np.random.SeedSequence((3, 2, 0)).generate_state(1)[0])

    def look(fitted: Any) -> dict[str, Any]:
        draws = fitted.log_draws(fitted.machine_.tensor(data.X_test.astype(np.float32)), fitted.samples, seed)
        found.append((np.asarray(draws, dtype=np.float64), fitted.classes_.tolist()))
        return {}

    options: dict[str, Any] = {"initial": 20, "steps": 3, "batch": 5, "X_test": data.X_test, "y_test": data.y_test}
    return sf.simulate(network(), data.X, data.y, watch=look, **options), found


@pytest.mark.parametrize("K", [2, 3])
def test_of_networks_it_is_the_log_loss_of_the_mean_over_draws(K: int) -> None:
    trace, found = network_run(K)
    y_test = classes(K).y_test
    for step, (draws, names) in enumerate(found):
        p, codes = np.exp(draws).mean(axis=1), np.searchsorted(names, y_test)
        assert trace.predictive_error[step] == pytest.approx(-np.log(p[np.arange(len(p)), codes]).mean(), abs=1e-9)
        assert trace.wrong_share[step] == pytest.approx(np.mean(p.argmax(axis=1) != codes), abs=1e-12)
    # By Jensen's inequality, which holds for means over the same draws.
    assert (trace.predictive_error <= trace.error).all()
    assert trace.wrong_share == pytest.approx(1.0 - trace.measures["accuracy"], abs=1e-12)


def test_a_network_that_goes_on_records_the_same(tmp_path: Any) -> None:
    pytest.importorskip("torch")
    data = classes(2)
    options: dict[str, Any] = {"initial": 20, "batch": 5, "X_test": data.X_test, "y_test": data.y_test}
    whole = sf.simulate(network(), data.X, data.y, steps=3, **options)
    for steps in (1, 3):
        parts = sf.simulate(network(), data.X, data.y, steps=steps, checkpoint=tmp_path / "run.pt", **options)
    for name in ("error", "predictive_error", "wrong_share"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))


def test_checkpoints_of_earlier_versions_go_on(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they did not record is not known."""
    pytest.importorskip("torch")
    data = classes(2)
    options: dict[str, Any] = {"initial": 20, "batch": 5, "X_test": data.X_test, "y_test": data.y_test}
    options |= {"checkpoint": tmp_path / "run.pt"}
    plain = StepResults.as_dict

    def earlier(self: StepResults) -> dict[str, Any]:
        return {name: value for name, value in plain(self).items() if name not in ("predictive_error", "wrong_share")}

    with monkeypatch.context() as patched:
        patched.setattr(StepResults, "as_dict", earlier)
        sf.simulate(network(), data.X, data.y, steps=2, **options)
    trace = sf.simulate(network(), data.X, data.y, steps=3, **options)
    assert np.isfinite(trace.error).all()
    assert np.isnan(trace.predictive_error).tolist() == np.isnan(trace.wrong_share).tolist() == [True, True, False]


def test_results_keep_them() -> None:
    pair = KLPair(np.arange(3.0), np.arange(3.0))
    full = StepResults(
        pair, np.arange(3.0), predictive_error=np.array([0.5, 0.4, 0.3]), wrong_share=np.array([0.2] * 3)
    )
    again = StepResults.from_dict(full.as_dict())
    joined = StepResults.joined([full.first(1), again, StepResults(KLPair(np.zeros(1), np.zeros(1)), np.zeros(1))])
    assert joined.predictive_error[:4].tolist() == [0.5, 0.5, 0.4, 0.3]
    assert joined.wrong_share[:4].tolist() == [0.2] * 4
    assert np.isnan([joined.predictive_error[4], joined.wrong_share[4]]).all()
    none = StepResults.joined([StepResults(pair, np.zeros(0))] * 2)
    assert none.predictive_error.shape == none.wrong_share.shape == (0,)
    earlier = {name: value for name, value in full.as_dict().items() if name not in ("predictive_error", "wrong_share")}
    assert len(StepResults.from_dict(earlier).predictive_error) == 0


@examples(40)
@given(K=st.integers(2, 5), scale=st.floats(1e-3, 1e3), unknown=st.integers(0, 7), seed=st.integers(0, 1000))
def test_averaged_predictions_are_those_of_the_probabilities(K: int, scale: float, unknown: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, codes = scale * rng.normal(size=(25, 2)), rng.integers(K, size=25)
    posterior = (Laplace if K == 2 else SoftmaxLaplace)(2, K, 1.0).extend(X[:10], codes[:10])
    found = AveragedPredictions(X[10:], codes[10:], classes=K, unknown=unknown).losses(posterior)
    assert np.isfinite(found.log_loss)
    assert found.log_loss >= 0.0
    assert unknown / (15 + unknown) <= found.wrong_share <= 1.0
    # The same rows twice are the same on average.
    twice = AveragedPredictions(np.tile(X[10:], (2, 1)), np.tile(codes[10:], 2), classes=K, unknown=2 * unknown)
    assert twice.losses(posterior) == pytest.approx(found, rel=1e-9)


@given(st.integers(1, 12), st.integers(1, 9), st.integers(2, 6), st.integers(0, 1000))
def test_the_loss_of_the_mean_is_at_most_the_mean_of_the_losses(rows: int, draws: int, K: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits = 5.0 * rng.normal(size=(rows, draws, K))
    log_draws = logits - np.logaddexp.reduce(logits, axis=2, keepdims=True)
    found = quality(log_draws, rng.integers(K, size=rows))
    assert 0.0 <= found.log_loss <= found.error + 1e-12
