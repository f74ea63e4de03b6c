"""Error estimates calibrated by random labels: against their formula, and against the truth."""

from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from scipy.stats import gamma
from sklearn.linear_model import BayesianRidge as SklearnRidge

import suffice as sf
from suffice.errors import SufficeError
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.models.predictive import guesses, log_probabilities
from suffice.session.error_estimate import (
    RandomLabelLosses,
    _left_out,
    calibrated_error,
    calibration_ratio,
    sharpened_error,
    worsening,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=400)
CLASSES = np.where(X[:, 0] + 0.4 * RNG.normal(size=400) > 0.0, "yes", "no")
MODELS = [
    pytest.param(GaussianProcess(1.5, 0.1), Y, id="process"),
    pytest.param(BayesianRidge(), Y, id="ridge"),
    pytest.param(BayesianLogistic(1.0), CLASSES, id="classes"),
]


def without_each(learner: sf.ActiveLearner, y: Any) -> tuple[list[float], list[float]]:
    """Losses of the random labels, and expected losses, by models that are fitted without each of them."""
    fitted, losses, expected = learner.model, [], []
    for item in learner.random_items:
        others = [i for i in learner.labelled if i != item]
        if y.dtype.kind == "U":
            guessed = guesses(fitted.state_, [learner.labelled.index(item)])
            p = np.exp(log_probabilities(guessed.logits))[0]
            losses.append(float(fitted.classes_[p.argmax()] != y[item]))
            expected.append(float(1.0 - p.max()))
        else:
            mean, deviation = fitted.at(X[others], y[others], fitted.prior_, 1).predict(X[[item]], return_std=True)
            losses.append(float((y[item] - mean[0]) ** 2))
            expected.append(float(deviation[0] ** 2))
    return losses, expected


def agrees_with_sharpened_formula(learner: sf.ActiveLearner, y: Any) -> None:
    """Compare the estimate of a classifier with its formula, by a finer integral over the factor."""
    logits, codes = guesses(learner.model.state_, np.arange(50))
    z = log_probabilities(logits)
    random = np.isin(learner.labelled, learner.random_items)
    logs = np.linspace(np.log(0.1), np.log(10.0), 2001)
    likely = np.array(
        [
            np.where(random, 1.0, 0.5) @ log_softmax(np.exp(t) * z, axis=1)[np.arange(50), codes] - 0.5 * (t / 0.7) ** 2
            for t in logs
        ]
    )
    odds = np.exp(likely - likely.max())
    factor = np.exp(odds @ logs / odds.sum())
    rest = np.setdiff1d(np.arange(400), learner.labelled)
    probabilities = learner.model.predict_proba(X[rest])

    def wrong(logs: Any) -> Any:
        return 1.0 - softmax(factor * logs, axis=1).max(axis=1)

    expected = wrong(z[random]).sum()
    losses = float((learner.model.classes_[z.argmax(axis=1)] != y[learner.labelled])[random].sum())
    value = wrong(np.log(probabilities)).mean() * (8.0 + losses) / (8.0 + expected)
    estimate = learner.error_estimate()
    assert estimate.value == pytest.approx(value, rel=1e-3)
    assert estimate.model_alone == pytest.approx(1.0 - probabilities.max(axis=1).mean(), rel=1e-9)
    assert estimate.random_labels == random.sum() == 26
    ends = gamma.ppf([0.05, 0.95], 1.0 + 0.7 * losses) / (1.0 + 0.7 * losses)
    np.testing.assert_allclose([estimate.low, estimate.high], estimate.value * ends, rtol=1e-9)


@given(
    n_classes=st.integers(2, 5),
    seed=st.integers(0, 10**6),
    scale=st.floats(0.0, 30.0),
    share=st.floats(0.0, 1.0),
    n=st.integers(0, 40),
)
def test_sharpened_estimates_are_shares(n_classes: int, seed: int, scale: float, share: float, n: int) -> None:
    rng = np.random.default_rng(seed)
    rest, left_out = (log_softmax(scale * rng.normal(size=(m, n_classes)), axis=1) for m in (30, n))
    found = sharpened_error(rest, left_out, rng.integers(0, n_classes, n), rng.random(n) < share)
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0
    # Without labels it is what the model says.
    if n == 0:
        assert found.value == pytest.approx(found.model_alone, rel=1e-9)


def test_a_model_that_is_too_unsure_is_told_so_by_its_labels() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2000, 3)) * 4.0
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    truth = float((logits.argmax(axis=1) != labels).mean())
    # It says a third of the logits; 300 labels, of which 60 are random.
    said = log_softmax(logits / 3.0, axis=1)
    found = sharpened_error(said[300:], said[:300], labels[:300], np.arange(300) < 60)
    assert found.model_alone > 2.0 * truth
    assert found.value == pytest.approx(truth, rel=0.25)
    assert found.low < truth < found.high


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("model", "y"), MODELS)
@pytest.mark.parametrize("batch", [1, 5])
def test_the_estimate_is_its_formula(model: Any, y: Any, batch: int) -> None:
    name = "entropy" if y.dtype.kind == "U" else "variance"
    learner = sf.ActiveLearner(model, X, acquisition=name, random_share=0.4, seed=1)
    learner.tell(first := learner.ask(10), y[first])
    for _ in range(40 // batch):
        learner.tell(items := learner.ask(batch), y[items])
    if y.dtype.kind == "U":
        agrees_with_sharpened_formula(learner, y)
        return
    losses, expected = without_each(learner, y)
    assert len(losses) == learner.random_labels == 26
    rest = np.setdiff1d(np.arange(400), learner.labelled)
    alone = float(np.mean(learner.model.predict(X[rest], return_std=True)[1] ** 2))
    ratio = (20.0 + sum(np.array(losses) / expected)) / (20.0 + len(losses))
    estimate = learner.error_estimate()
    assert estimate.model_alone == pytest.approx(alone, rel=1e-9)
    assert estimate.value == pytest.approx(alone * ratio, rel=1e-6)
    assert estimate.low < estimate.value < estimate.high
    assert estimate.random_labels == 26


@pytest.mark.parametrize("kind", ["learner", "monitor"])
def test_an_estimate_of_numbers_is_in_squared_units_and_a_decision_in_units(kind: str) -> None:
    y = 1000.0 + 50.0 * X[:, 0]
    learner: Any
    if kind == "learner":
        learner = sf.ActiveLearner(BayesianRidge(), X)
        items = learner.ask(20)
        learner.tell(items, y[items])
    else:
        learner = sf.StopMonitor(X)
        learner.update(SklearnRidge().fit(X[:20], y[:20]), np.arange(20), y[:20])
    error, estimate = learner.decision().error, learner.error_estimate()
    assert error is not None
    for name in ("value", "low", "high"):
        assert getattr(error, name) == pytest.approx(getattr(estimate, name) ** 0.5, rel=1e-12)


@pytest.mark.parametrize(("model", "y"), MODELS)
def test_a_simulation_records_what_a_learner_knows(model: Any, y: Any) -> None:
    options: dict[str, Any] = {"acquisition": "entropy", "random_share": 0.3, "seed": 2}
    trace = sf.simulate(model, X, y, steps=30, record=["calibration", "random_labels"], **options)
    learner = sf.ActiveLearner(model, X, criterion=Calibrated(), **options)
    learner.tell(first := learner.ask(10), y[first])
    for _ in range(30):
        items = learner.ask()
        learner.tell(items, y[items])
    assert trace.measures["random_labels"][-1] == 19
    assert np.array_equal(learner.trace().measures["calibration"], trace.measures["calibration"])
    assert np.array_equal(learner.trace().measures["random_labels"], trace.measures["random_labels"])
    assert len(set(trace.measures["calibration"])) > 5


class Calibrated(sf.Budget):
    """A rule that requires both fields."""

    requires = frozenset({"calibration", "random_labels"})

    def __init__(self) -> None:
        super().__init__(1000)


@pytest.mark.parametrize("size", [1, 3])
def test_the_random_acquisition_calibrates_when_that_is_recorded(size: int) -> None:
    trace = sf.simulate(
        GaussianProcess(1.5, 0.1), X, Y, steps=12, batch=size, acquisition="random", record=["calibration"]
    )
    labelled = trace.initial.tolist()
    for picks, ratio in zip(trace.indices.reshape(12, size), trace.measures["calibration"], strict=True):
        labelled += picks.tolist()
        model = GaussianProcess(1.5, 0.1).fit(X[labelled], Y[labelled])
        mean, variance = model.prior_.left_out(X[labelled], Y[labelled])
        relative = (Y[labelled] - mean) ** 2 / variance
        assert ratio == pytest.approx((20.0 + relative.sum()) / (20.0 + len(labelled)), rel=1e-6)


class Network:
    """A classifier that cannot leave labels out."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, inputs: Any) -> Any:
        return np.tile([0.3, 0.7], (len(inputs), 1))


def test_a_model_that_cannot_leave_labels_out_predicts_them_before() -> None:
    losses, model = RandomLabelLosses("classification"), Network()
    losses.predict(model, X[:3], np.array([0, 1, 2]))
    for item, label in ((0, "yes"), (1, "no"), (2, "perhaps"), (7, "yes")):
        losses.label(item, label)
    found, expected = losses.pairs(model, {}, [0, 1, 2])
    assert found.tolist() == [0.0, 1.0, 1.0]
    assert expected == pytest.approx([0.3, 0.3, 0.3])
    assert losses.count(model, [0, 1, 2, 9]) == 3
    view = Mock(judged_model=lambda: model, expected_losses=lambda items: np.full(len(items), 0.3))
    assert losses.estimate(view, np.arange(5), {}, [0, 1, 2]).value == pytest.approx(0.3 * 6.0 / 4.9)


def test_a_corrected_label_changes_its_loss() -> None:
    learner = sf.ActiveLearner(BayesianRidge(1.0, 1.0), X, acquisition="order", random_share=1.0, seed=1)
    learner.tell(first := learner.ask(10), Y[first])
    learner.tell(item := learner.ask(), Y[item])
    before = learner.error_estimate().value
    learner.correct(int(item[0]), Y[item[0]] + 100.0)
    assert learner.error_estimate().value > 2.0 * before


@pytest.mark.parametrize(("model", "y"), MODELS)
def test_without_random_labels_the_model_speaks_alone(model: Any, y: Any) -> None:
    learner = sf.ActiveLearner(model, X, acquisition="random")
    with pytest.raises(SufficeError, match="no label yet"):
        learner.error_estimate()
    learner.tell(first := learner.ask(10), y[first], random=False)
    estimate = learner.error_estimate()
    # What labels that were not drawn at random say of classes is how sure to be.
    assert y.dtype.kind == "U" or estimate.value == estimate.model_alone
    assert estimate.random_labels == 0
    assert estimate.low < estimate.value < estimate.high


def test_with_everything_labelled_no_error_is_left() -> None:
    learner = sf.ActiveLearner(BayesianRidge(1.0, 1.0), X[:12], initial=12)
    learner.tell(learner.ask(12), Y[:12])
    assert learner.error_estimate().value == 0.0


@given(
    share=st.floats(0.0, 1.0),
    pairs=st.lists(st.tuples(st.booleans(), st.floats(0.0, 1.0)), max_size=60),
)
def test_estimates_of_classes_are_shares(share: float, pairs: list[tuple[bool, float]]) -> None:
    losses, expected = [float(wrong) for wrong, _ in pairs], [p for _, p in pairs]
    found = calibrated_error(share, losses, expected, task="classification")
    assert 0.0 <= found.low <= found.value <= found.high <= 1.0 or not pairs
    assert found.value == min(1.0, share * calibration_ratio(losses, expected, task="classification"))


@given(
    error=st.floats(1e-6, 1e6),
    pairs=st.lists(st.tuples(st.floats(0.0, 1e6), st.floats(1e-6, 1e6)), max_size=60),
)
def test_estimates_of_numbers_have_intervals_around_them(error: float, pairs: list[tuple[float, float]]) -> None:
    losses, expected = [loss for loss, _ in pairs], [p for _, p in pairs]
    found = calibrated_error(error, losses, expected, task="regression")
    assert 0.0 <= found.low <= found.value <= found.high < np.inf


def test_intervals_hold_the_true_ratio_about_nine_times_in_ten() -> None:
    rng = np.random.default_rng(0)
    held = {"classification": 0, "regression": 0}
    for _ in range(400):
        ratio = float(np.exp(0.5 * rng.normal()))
        expected = rng.uniform(0.02, 0.3, 60)
        wrong = (rng.random(60) < np.minimum(ratio * expected, 1.0)).astype(float)
        squares = ratio * expected * rng.normal(size=60) ** 2
        for task, losses in (("classification", wrong), ("regression", squares)):
            found = calibrated_error(0.1, losses, expected, task=task)
            held[task] += found.low <= 0.1 * ratio <= found.high
    assert 340 <= held["classification"] <= 392
    assert 330 <= held["regression"] <= 390


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("model", "y"), MODELS)
def test_labels_that_make_the_model_worse_are_noticed(model: Any, y: Any) -> None:
    learner = sf.ActiveLearner(model, X, initial=[0, 1, 2, 3, 4, 5])
    learner.tell(range(6), y[:6])
    assert learner.worsening() is None
    for item in range(6, 90):
        learner.tell(item, y[item], random=True)
    assert learner.worsening() is None
    # Chosen labels that contradict the random ones.
    flipped = np.where(y == "yes", "no", "yes") if y.dtype.kind == "U" else -y
    learner.tell(range(90, 330), flipped[90:330], random=False)
    found = learner.worsening()
    assert found is not None
    assert found.now > 1.5 * found.before
    assert found.random_labels == 42


@pytest.mark.parametrize(("model", "y"), MODELS)
def test_left_out_losses_are_those_of_a_model_without_the_label(model: Any, y: Any) -> None:
    learner = sf.ActiveLearner(model, X, initial=[0, 1, 2, 3, 4, 5, 6, 7])
    learner.tell(range(8), y[:8])
    for item in range(8, 60):
        learner.tell(item, y[item], random=True)
    fitted = learner.model
    losses = _left_out(fitted, np.arange(20, 30))
    assert losses is not None
    found = losses.comparable
    for k, item in enumerate(range(20, 30)):
        others = [i for i in range(60) if i != item]
        if y.dtype.kind == "U":
            without = BayesianLogistic(1.0).fit(X[others], y[others])
            expected = -np.log(without.predict_proba(X[[item]])[0, without.classes_.tolist().index(y[item])])
            # Newton's step from the model with the label is not the whole way.
            assert found[k] == pytest.approx(expected, rel=0.1, abs=0.02)
        else:
            without = fitted.at(X[others], y[others], fitted.prior_, len(others))
            assert found[k] == pytest.approx((y[item] - without.predict(X[[item]])[0]) ** 2, rel=1e-6, abs=1e-9)


def test_a_model_that_cannot_leave_labels_out_says_nothing() -> None:
    losses = RandomLabelLosses("regression")
    assert losses.worsening(object(), {}) is None
    assert _left_out(object(), np.arange(3)) is None


@given(
    noise=st.floats(0.01, 2.0),
    shift=st.floats(0.0, 3.0),
    n=st.integers(0, 60),
)
def test_only_a_clear_rise_of_the_newer_half_counts(noise: float, shift: float, n: int) -> None:
    rng = np.random.default_rng(n)
    before = rng.exponential(size=n)
    now = before + shift + noise * rng.normal(size=n)
    found = worsening(before, now)
    half = n // 2
    if half < 10:
        assert found is None
        return
    difference = (now - before)[-half:]
    clear = difference.mean() > 2.5 * difference.std(ddof=1) / np.sqrt(half)
    assert (found is not None) == clear
    if found is not None:
        assert found.now - found.before == pytest.approx(difference.mean(), rel=1e-9)
