"""Error estimates calibrated by random labels: against their formula, and against the truth."""

import itertools
import math
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit, softmax
from scipy.stats import beta
from sklearn.linear_model import BayesianRidge as SklearnRidge
from sklearn.tree import DecisionTreeClassifier

import suffice as sf
from suffice.errors import SufficeError
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.models.predictive import guesses, log_probabilities
from suffice.session.error_estimate import class_error, number_error, sharpened_error, worsening
from suffice.session.held_out import class_predictions, left_out
from suffice.session.random_losses import RandomLabelLosses

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=400)
CLASSES = np.where(X[:, 0] + 0.4 * RNG.normal(size=400) > 0.0, "yes", "no")
FINE = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000}
MODELS = [
    pytest.param(GaussianProcess(1.5, 0.1), Y, id="process"),
    pytest.param(BayesianRidge(), Y, id="ridge"),
    pytest.param(BayesianLogistic(1.0), CLASSES, id="classes"),
]


def relative_losses(learner: sf.ActiveLearner, y: Any) -> Any:
    """Squared residuals of all labels relative to their variances, by models that are fitted without each of them."""
    fitted, relative = learner.model, []
    for item in learner.labelled:
        others = [i for i in learner.labelled if i != item]
        mean, deviation = fitted.at(X[others], y[others], fitted.prior_, 1).predict(X[[item]], return_std=True)
        relative.append(float((y[item] - mean[0]) ** 2 / deviation[0] ** 2))
    return np.array(relative)


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
    known = 26 / 2.0 + 4.0
    ends = beta.ppf([0.05, 0.95], known * estimate.value, known * (1.0 - estimate.value))
    np.testing.assert_allclose([estimate.low, estimate.high], ends, rtol=1e-9)


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
    assert found.low < found.high
    # Without labels it is what the model says, but never 0.
    if n == 0:
        assert found.value == pytest.approx(min(max(found.model_alone, 0.5 / 21.0), 1.0 - 0.5 / 21.0), rel=1e-9)


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
    relative = relative_losses(learner, y)
    weights = np.where(np.isin(learner.labelled, learner.random_items), 1.0, 0.25)
    rest = np.setdiff1d(np.arange(400), learner.labelled)
    alone = float(np.mean(learner.model.predict(X[rest], return_std=True)[1] ** 2))
    ratio = (10.0 + weights @ relative) / (10.0 + weights.sum())
    estimate = learner.error_estimate()
    assert estimate.model_alone == pytest.approx(alone, rel=1e-9)
    assert estimate.value == pytest.approx(alone * ratio, rel=1e-6)
    # The tails are those of all labels.
    spread = max(3.0, np.mean((relative / relative.mean() - 1.0) ** 2) / 2.0)
    width = np.exp(1.6449 * np.sqrt(2.0 * spread / (26 / 2.0 + 10.0)))
    assert estimate.high == pytest.approx(estimate.value * width, rel=1e-5)
    assert estimate.low == pytest.approx(estimate.value / width, rel=1e-5)
    assert estimate.random_labels == learner.random_labels == 26


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
        assert ratio == pytest.approx((10.0 + relative.sum()) / (10.0 + len(labelled)), rel=1e-6)


class Network:
    """A classifier that cannot leave labels out."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, inputs: Any) -> Any:
        return np.tile([0.3, 0.7], (len(inputs), 1))


def test_a_model_that_cannot_leave_labels_out_predicts_them_before() -> None:
    losses, model = RandomLabelLosses("classification"), Network()
    predictions = class_predictions(model.predict_proba(X[:3]), ["no", "yes"], 5)
    losses.record(dict(enumerate(predictions)))
    given = {0: "yes", 1: "no", 2: "perhaps", 7: "yes"}
    for item, label in given.items():
        losses.label(item, label)
    view = Mock(judged_model=lambda: model, expected_losses=lambda items: np.full(len(items), 0.3))
    labels = {**given, **dict.fromkeys(range(10, 16), "no")}
    assert losses.losses_of(view, labels, [0, 1, 2]).tolist() == [0.0, 1.0, 1.0]
    assert losses.count(model, [0, 1, 2, 9]) == 3
    # They were predicted by a model with half of the labels, so they have a quarter of the weight.
    fallen = 0.5 ** (1.0 / 5.0 + 0.7 / 6.0)
    expected = class_error([0.3] * 5, [0.3] * 3, [0.0, fallen, fallen], [0.25] * 3)
    estimate = losses.estimate(view, np.arange(5), labels, [0, 1, 2])
    assert estimate[:5] == pytest.approx(expected[:5], rel=1e-12)
    assert estimate.predicted_at == 5


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
    # Labels that were not drawn at random say how sure to be, but the interval stays wide.
    assert estimate.random_labels == 0
    assert estimate.low < 0.3 * estimate.value
    assert estimate.high > 1.7 * estimate.value


def test_with_everything_labelled_no_error_is_left() -> None:
    learner = sf.ActiveLearner(BayesianRidge(1.0, 1.0), X[:12], initial=12)
    learner.tell(learner.ask(12), Y[:12])
    assert learner.error_estimate().value == 0.0


@given(
    rest=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20),
    triples=st.lists(st.tuples(st.booleans(), st.floats(0.0, 1.0), st.floats(0.01, 1.0)), max_size=60),
)
def test_estimates_of_classes_are_shares_and_never_certain(
    rest: list[float], triples: list[tuple[bool, float, float]]
) -> None:
    wrong, expected, weights = (
        [float(loss) for loss, _, _ in triples],
        [p for _, p, _ in triples],
        [w for *_, w in triples],
    )
    estimate = class_error(rest, expected, wrong, weights)
    assert 0.0 <= estimate.low < estimate.high <= 1.0
    assert estimate.low <= estimate.value <= estimate.high
    assert estimate.value >= 0.5 / (max(len(wrong), 20) + 1.0) - 1e-12
    assert estimate.random_labels == len(wrong)


@given(seed=st.integers(0, 10**6), n=st.integers(0, 50), scale=st.floats(0.1, 5.0))
def test_the_estimate_of_classes_is_its_formula(seed: int, n: int, scale: float) -> None:
    """The calibration by a general minimiser instead of Newton's method."""
    rng = np.random.default_rng(seed)
    rest, expected = expit(scale * rng.normal(size=40) - 1.0), expit(scale * rng.normal(size=n) - 1.0)
    wrong, weights = (rng.random(n) < 0.2 + 0.3 * expected).astype(float), rng.uniform(0.1, 1.0, n)
    x, x_rest = (np.clip(logit(values), -6.0, 6.0) for values in (expected, rest))

    def penalised(point: Any) -> float:
        line = point[0] + point[1] * x
        likely = weights @ (np.logaddexp(0.0, line) - wrong * line)
        return float(likely + 0.5 * (0.25 * point[0] ** 2 + (point[1] - 1.0) ** 2))

    a, b = minimize(penalised, [0.0, 1.0], bounds=[(None, None), (0.0, None)], options=FINE).x
    labels = weights.sum() ** 2 / (weights @ weights) if n else 0.0
    known = labels / 2.0
    value = expit(a + b * x_rest).mean()
    if n:
        value += known / (known + 2.0) * (weights @ (wrong - expit(a + b * x))) / weights.sum()
    floor = 0.5 / (max(labels, 20.0) + 1.0)
    value = min(max(value, floor), 1.0 - floor)
    estimate = class_error(rest, expected, wrong, weights)
    assert estimate.value == pytest.approx(value, abs=1e-4)
    older = weights @ np.log(1.0 / np.sqrt(weights)) / weights.sum() if n else 0.0
    spread = estimate.value * (1.0 - estimate.value)
    k = max(1.0, spread / (spread / (known + 3.0) + (0.3 * estimate.value * older) ** 2) - 1.0)
    ends = beta.ppf([0.05, 0.95], estimate.value * k, (1.0 - estimate.value) * k)
    if estimate.value * min(k, known) < 0.5:
        ends[0] = 0.0
    ends[1] = max(ends[1], 0.5 / (1.0 + known / 2.0))
    assert [estimate.low, estimate.high] == pytest.approx(list(ends), rel=1e-9, abs=1e-12)


def test_nothing_is_known_without_a_random_label() -> None:
    """An error of 2 % is as possible as one of 50 % if the confidence of the model is a guess too."""
    estimate = class_error([0.5] * 50, [], [])
    assert (estimate.value, estimate.low) == (0.5, 0.0)
    assert estimate.high >= 0.95
    # Less than half an error among five effective labels, and two among forty.
    assert class_error([0.05] * 50, [0.05] * 10, [0.0] * 10).low == 0.0
    assert class_error([0.05] * 50, [0.05] * 80, [1.0] * 4 + [0.0] * 76).low > 0.005


@given(
    losses=st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=60),
    alone=st.floats(1e-3, 1e3),
    seed=st.integers(0, 10**6),
)
def test_the_estimate_of_numbers_without_a_variance_is_its_formula(
    losses: list[float], alone: float, seed: int
) -> None:
    """One label more, with the largest loss that was seen or the trivial one, whichever is less."""
    weights = np.random.default_rng(seed).uniform(0.1, 1.0, len(losses))
    estimate = number_error([alone] * 3, losses, [alone] * len(losses), weights, trivial=True)
    added = np.array([min(alone, max(losses)), alone])
    value, most = ((added + weights @ losses) / (1.0 + weights.sum())).tolist()
    spread = max(3.0, float(np.var(losses) / np.mean(losses) ** 2) / 2.0)
    known = float(weights.sum() ** 2 / (weights @ weights)) / 2.0
    width = math.exp(1.6449 * math.sqrt(2.0 * spread / (known + 1.0)))
    assert estimate[:4] == pytest.approx((value, value / width, most * width, alone), rel=1e-9)
    assert estimate.value <= max(losses) * (1.0 + 1e-12)


def test_a_model_much_better_than_the_trivial_prediction_is_not_said_to_be_worse() -> None:
    """One part in a thousand of the variance, as on the set of gas emissions."""
    rng = np.random.default_rng(0)
    held = sum(
        found.low <= 0.001 <= found.high
        for found in (
            number_error([1.0], 0.001 * rng.normal(size=50) ** 2, [1.0] * 50, trivial=True) for _ in range(200)
        )
    )
    assert held >= 190


def test_few_random_labels_of_a_certain_model_leave_its_error_open() -> None:
    """A tree is always certain. Without an error among few random labels its interval is that of a guess, or wide."""
    highs = [class_error([0.0] * 50, [0.0] * n, [0.0] * n, guessed=0.9).high for n in range(60)]
    assert highs[0] == 0.9
    assert all(before > after for before, after in itertools.pairwise(highs))
    # At most 3 / n of the predictions are wrong with a probability of 95 %, if none of n is.
    for n, share in ((4, 0.4), (10, 0.2), (40, 0.06)):
        assert share < highs[n] < 4.0 / n


def test_older_predictions_widen_the_interval() -> None:
    """The fall of the error since then is not known exactly, which no number of labels changes."""
    wrong = np.arange(4000) % 5 == 0
    widths = []
    for age in (1.0, 0.8, 0.5):
        found = class_error([0.0] * 50, [0.0] * 4000, wrong, np.full(4000, age**2))
        assert found.value == pytest.approx(0.2, rel=0.01)
        widths.append(found.high - found.low)
    least = 2.0 * 1.645 * 0.3 * 0.2 * np.log([1.0, 1.25, 2.0])
    assert widths == pytest.approx(np.hypot(widths[0], least), rel=0.03)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_a_tree_without_random_labels_is_not_verified(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 4))
    y = rng.integers(0, n_classes, 400)
    monitor = sf.StopMonitor(rows)
    for n in range(60, 110, 10):
        monitor.update(DecisionTreeClassifier().fit(rows[:n], y[:n]), range(n), y[:n])
    estimate = monitor.error_estimate()
    assert (estimate.random_labels, estimate.model_alone, estimate.low) == (0, 0.0, 0.0)
    assert estimate.high == pytest.approx(1.0 - 1.0 / n_classes)
    assert "not verified by random labels; probably 0 to" in str(monitor.decision())


@given(
    error=st.floats(1e-6, 1e6),
    pairs=st.lists(st.tuples(st.floats(0.0, 1e6), st.floats(1e-6, 1e6)), max_size=60),
)
def test_estimates_of_numbers_have_intervals_around_them(error: float, pairs: list[tuple[float, float]]) -> None:
    losses, expected = [loss for loss, _ in pairs], [p for _, p in pairs]
    for trivial in (False, True):
        estimate = number_error([error], losses, expected, trivial=trivial)
        assert 0.0 <= estimate.low <= estimate.value <= estimate.high < np.inf
        assert estimate.low < estimate.high


def test_intervals_of_independent_labels_hold_the_truth_at_least_nine_times_in_ten() -> None:
    """They are made for labels that are worth less than independent ones."""
    rng = np.random.default_rng(0)
    held = {"classes": 0, "numbers": 0}
    for _ in range(400):
        ratio = float(np.exp(0.5 * rng.normal()))
        expected, rest = rng.uniform(0.02, 0.3, 60), rng.uniform(0.02, 0.3, 500)
        wrong = (rng.random(60) < np.minimum(ratio * expected, 1.0)).astype(float)
        squares = ratio * expected * rng.normal(size=60) ** 2
        classes, numbers = class_error(rest, expected, wrong), number_error(rest, squares, expected)
        held["classes"] += classes.low <= np.minimum(ratio * rest, 1.0).mean() <= classes.high
        held["numbers"] += numbers.low <= ratio * rest.mean() <= numbers.high
    assert 370 <= held["classes"] <= 399
    assert 370 <= held["numbers"] <= 400


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
    losses = left_out(fitted, np.arange(20, 30))
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
    assert left_out(object(), np.arange(3)) is None


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
