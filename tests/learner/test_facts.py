"""What a loop tells of its steps: each number is that of a dense recomputation, live and recorded alike."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, softmax
from scipy.stats import entropy
from sklearn.pipeline import make_pipeline

import suffice as sf
from suffice.errors import InvalidValueError
from suffice.learner.class_backend import ClassBackend
from suffice.learner.gaussian_backend import GaussianBackend
from suffice.learner.network_backend import NetworkBackend
from suffice.learner.step_inputs import CLASS_COUNT_FIELDS, COUNTED_FIELDS, VALIDATION_FIELDS
from suffice.models import BayesianLogistic, BayesianRidge, DropoutNetwork, GaussianProcess, RadialBasis
from suffice.models.laplace import Laplace, SoftmaxLaplace, divergence_from_prior
from suffice.models.predictive import weight_draws
from suffice.numerics import Floats
from suffice.posteriors import Gaussian
from suffice.trace import Trace
from tests.every_rule import LossRule
from tests.thoroughness import crossed

STOP = sf.StopSet(np.array([3, 4, 11, 20, 21, 30, 44, 58]), 60)


class Run(NamedTuple):
    """A recorded run with the model as it was after each step."""

    trace: Trace
    models: list[Any]

    def labelled(self, step: int) -> list[int]:
        """Items labelled after a step, in order; -1 for the initial ones alone."""
        return [*self.trace.initial.tolist(), *self.trace.indices[: step + 1].ravel().tolist()]

    def picked(self, step: int) -> list[int]:
        items: list[int] = np.atleast_1d(self.trace.indices[step]).tolist()
        return items


def recorded(model: Any, X: Floats, y: Any, **options: Any) -> Run:
    models: list[Any] = []

    def look(fitted: Any) -> dict[str, Any]:
        models.append(fitted)
        return {}

    settings: dict[str, Any] = {"record": "all", "stop_set": STOP}
    return Run(sf.simulate(model, X, y, watch=look, **{**settings, **options}), models)


# Numbers: Gaussian processes and ridge regression


def numbers(m: int = 60) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(m, 2))
    return X, 30.0 + 7.0 * np.sin(X[:, 0]) + 5.0 * X[:, 1] + 0.7 * rng.normal(size=m)


REGRESSORS: dict[str, Any] = {
    "process": GaussianProcess(1.2, 0.05),
    "learned process": GaussianProcess(),
    "process by feature": GaussianProcess(per_feature=True, noise=0.02),
    "ridge": BayesianRidge(0.5, 4.0, fit_intercept=True),
    "learned ridge": BayesianRidge(fit_intercept=True),
    "learned pipeline": make_pipeline(RadialBasis(5), BayesianRidge()),
}


@lru_cache
def regression_run(name: str, batch: int, dtype: Any = np.float64) -> Run:
    X, y = numbers()
    held = numbers(75)
    steps = 44 // batch
    return recorded(
        REGRESSORS[name],
        X,
        y,
        initial=6,
        steps=steps,
        batch=batch,
        dtype=dtype,
        validation=(held[0][60:], held[1][60:]),
    )


class Truth:
    """The posterior of some labels, from the textbook: every matrix in full."""

    def __init__(self, fitted: Any, X: Floats, y: Floats, rows: list[int]) -> None:
        bare = fitted.steps[-1][1] if hasattr(fitted, "steps") else fitted
        self._features: Callable[[Floats], Floats] = lambda Z: bare.features(
            fitted[:-1].transform(Z) if hasattr(fitted, "steps") else Z
        )
        prior = bare.prior_
        self.centre, self.scale = prior.scaling
        self.noise = prior.noise if hasattr(prior, "noise") else 1.0 / prior.beta
        F, target = self._features(X[rows]), (y[rows] - self.centre) / self.scale
        self._kernel = self._covariance_of(prior)
        K = self._kernel(F, F) + self.noise * np.eye(len(rows))
        self._F, self._inverse = F, np.linalg.inv(K)
        self._weights = self._inverse @ target

    @staticmethod
    def _covariance_of(prior: Any) -> Callable[[Floats, Floats], Floats]:
        if hasattr(prior, "alpha"):
            return lambda A, B: np.asarray(A @ B.T / prior.alpha)
        scale = np.array(prior.kernel.length_scale)
        return lambda A, B: np.asarray(np.exp(-0.5 * (((A / scale)[:, None] - (B / scale)[None]) ** 2).sum(axis=-1)))

    def latent(self, Z: Floats) -> tuple[Floats, Floats]:
        """Mean and variance in the units of the target."""
        G = self._features(Z)
        across = self._kernel(G, self._F)
        variance = np.diag(self._kernel(G, G)) - np.einsum("ij,jk,ik->i", across, self._inverse, across)
        return self.centre + self.scale * (across @ self._weights), self.scale**2 * variance

    @property
    def noise_of_labels(self) -> float:
        return float(self.scale**2 * self.noise)


def facts_of_numbers(run: Run, step: int, prior_of: Any) -> dict[str, float]:
    """What is to be told of a step, under the hyper-parameters of some model."""
    X, y = numbers()
    held_X, held_y = (part[60:] for part in numbers(75))
    after = Truth(prior_of, X, y, run.labelled(step))
    free = np.setdiff1d(np.arange(len(X)), run.labelled(step))
    variance = after.latent(X)[1]
    mean = after.latent(held_X)[0]
    # Each label of a batch is seen as it was before all of them.
    picked = run.picked(step)
    guessed, unsure = Truth(prior_of, X, y, run.labelled(step - 1)).latent(X[picked])
    largest = float(variance[free].max(initial=0.0))
    return {
        "pool_variance": largest,
        "pool_gain": 0.5 * np.log1p(largest / after.noise_of_labels),
        "expected_error": variance[STOP.indices].mean() + after.noise_of_labels,
        "selected_loss": float(((y[picked] - guessed) ** 2).mean()),
        "selected_expected_loss": float(unsure.mean() + after.noise_of_labels),
        "validation_error": float(((held_y - mean) ** 2).mean()),
    }


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "batch", "dtype"), crossed(REGRESSORS, [1, 4], [np.float64, np.float32], every=3))
def test_facts_of_numbers_are_those_of_the_textbook(name: str, batch: int, dtype: Any) -> None:
    run = regression_run(name, batch, dtype)
    assert len(run.trace) == len(run.models) == 44 // batch
    assert set(run.trace.measures) == GaussianBackend.step_fields | COUNTED_FIELDS | VALIDATION_FIELDS
    for step, fitted in enumerate(run.models):
        for fact, value in facts_of_numbers(run, step, fitted).items():
            assert run.trace.measures[fact][step] == pytest.approx(value, rel=2e-6, abs=1e-9), (fact, step)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "batch"),
    crossed([name for name in REGRESSORS if "learned" in name or "by feature" in name], [4, 1], every=2),
)
def test_the_past_seen_anew_is_that_of_the_new_hyper_parameters(name: str, batch: int) -> None:
    run = regression_run(name, batch)
    assert [known.step for known in run.trace.relearned] == ([5, 17, 41] if batch == 1 else [1, 5])
    for known in run.trace.relearned:
        # The gain is over predictions as they were made.
        assert set(known.measures) == (GaussianBackend.step_fields | {"validation_error"}) - {"recent_gain"}
        for step in range(known.step + 1):
            for fact, value in facts_of_numbers(run, step, run.models[known.step]).items():
                assert known.measures[fact][step] == pytest.approx(value, rel=2e-6, abs=1e-9), (fact, step)


def test_a_fresh_run_under_those_hyper_parameters_tells_the_same() -> None:
    X, y = numbers()
    run = regression_run("learned process", 1)
    known, order = run.trace.relearned[1], run.labelled(len(run.trace) - 1)
    prior = run.models[known.step].prior_
    target = (y - prior.scaling.centre) / prior.scaling.scale
    rest = np.setdiff1d(np.arange(len(X)), order)
    place = np.argsort([*order, *rest])
    fresh = sf.simulate(
        GaussianProcess(prior.kernel.length_scale, prior.noise),
        X[[*order, *rest]],
        target[[*order, *rest]],
        initial=np.arange(6),
        steps=known.step + 1,
        acquisition="order",
        record="all",
        stop_set=sf.StopSet(place[STOP.indices], len(X)),
    )
    for fact in GaussianBackend.step_fields - {"recent_gain", "error_scale"}:
        units = 1.0 if fact == "pool_gain" else prior.scaling.scale**2
        assert known.measures[fact] == pytest.approx(units * fresh.measures[fact], rel=1e-6), fact


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "batch"), crossed(REGRESSORS, [1, 4], every=2))
def test_many_labels_at_once_tell_the_same_as_one_after_the_other(name: str, batch: int) -> None:
    """An observed run goes step by step; otherwise picks that depend on no label come in blocks."""
    X, y = numbers()
    held = numbers(75)
    slow = regression_run(name, batch).trace
    quick = sf.simulate(
        REGRESSORS[name],
        X,
        y,
        initial=6,
        steps=44 // batch,
        batch=batch,
        record="all",
        stop_set=STOP,
        validation=(held[0][60:], held[1][60:]),
    )
    assert quick.indices.tolist() == slow.indices.tolist()
    for fact in set(slow.measures) - {"seconds"}:
        assert quick.measures[fact] == pytest.approx(slow.measures[fact], rel=1e-6), fact
    for one, other in zip(quick.relearned, slow.relearned, strict=True):
        for fact, values in one.measures.items():
            assert values == pytest.approx(other.measures[fact], rel=1e-6), fact


@pytest.mark.parametrize("name", ["process", "ridge"])
def test_losses_of_a_batch_are_those_of_the_model_before_it(name: str) -> None:
    """By what the model itself said before the labels came, and not of one label after the other."""
    X, y = numbers()
    run = regression_run(name, 4)
    for step in range(1, len(run.models)):
        before, known, picked = run.models[step - 1], run.labelled(step - 1), run.picked(step)
        mean, variance = before.latent(X[picked])
        noise = Truth(before, X, y, known).noise_of_labels
        came, expected = (run.trace.measures[fact][step] for fact in ("selected_loss", "selected_expected_loss"))
        assert came == pytest.approx(((y[picked] - mean) ** 2).mean(), rel=1e-6)
        assert expected == pytest.approx(variance.mean() + noise, rel=1e-6)
        # Variances fall with every label, those of the same batch too.
        in_turn = [Truth(before, X, y, [*known, *picked[:k]]).latent(X[[picked[k]]])[1][0] for k in range(4)]
        assert expected > np.mean(in_turn) + noise + 1e-6


@pytest.mark.parametrize("name", ["process", "ridge"])
def test_what_is_told_of_a_batch_does_not_depend_on_its_order(name: str) -> None:
    X, y = numbers()
    told = []
    for turn in (1, -1):
        rule = sf.LabelWorth() | sf.ExpectedCost(1.0, 1.0) | LossRule()
        learner = sf.ActiveLearner(REGRESSORS[name], X, criterion=rule, initial=6, stop_set=STOP)
        learner.tell(np.arange(6), y[:6])
        for first in range(6, 30, 4):
            items = np.arange(first, first + 4)[::turn]
            learner.tell(items, y[items])
        told.append(learner.trace().measures)
    names = ("selected_loss", "selected_expected_loss", "expected_error", "reducible_error", "recent_gain")
    for fact in names:
        assert told[0][fact] == pytest.approx(told[1][fact], rel=1e-9), fact


@pytest.mark.parametrize("model", [GaussianProcess(1.0, 0.05), BayesianRidge(1.0, 4.0)])
def test_of_a_pool_that_is_used_up_nothing_is_uncertain(model: Any) -> None:
    X, y = numbers(9)
    trace = sf.simulate(model, X, y, initial=3, record="all")
    assert trace.measures["pool_variance"][-1] == trace.measures["pool_gain"][-1] == 0.0
    assert (trace.measures["pool_variance"][:-1] > 0.0).all()
    assert trace.measures["expected_error"][-1] > 0.0


@pytest.mark.parametrize("model", [GaussianProcess(1.0, 0.05), GaussianProcess(), BayesianRidge(1.0, 4.0)])
def test_skipped_items_are_not_in_the_pool(model: Any) -> None:
    X, y = numbers()
    learner = sf.ActiveLearner(model, X, criterion=sf.MaxVariance(0.0), initial=6)
    learner.skip(int(learner.ask()[0]))
    for turn in range(20):
        item = learner.ask()
        if turn % 3 == 2:
            learner.skip(item)
        else:
            learner.tell(item, y[item])
        if learner.trace().measures:
            variance = learner.model.latent(X)[1]
            left = np.setdiff1d(np.arange(len(X)), [*learner.labelled, *learner.skipped])
            told = learner.trace().measures["pool_variance"][-1]
            if turn % 3 != 2:
                assert told == pytest.approx(variance[left].max(), rel=1e-6)
    assert len(learner.skipped) == 7


# Classes: Laplace posteriors

WORDS = np.array(["ham", "spam", "eggs", "toast"])


def words(m: int = 60, k: int = 2, *, seed: int = 0) -> tuple[Floats, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    score = 2.0 * X @ np.random.default_rng(1).normal(size=(2, k)) + rng.gumbel(size=(m, k))
    return X, WORDS[score.argmax(axis=1)]


def late(m: int = 60) -> tuple[Floats, Any]:
    """Two classes at first; "eggs", in the alphabet before both, is met at item 14, "toast" at item 25."""
    X, y = words(m, 4, seed=2)
    order = np.argsort(np.where(y == "eggs", 14.5, np.where(y == "toast", 25.5, -1.0)), kind="stable")
    early = [i for i in order if y[i] in ("ham", "spam")]
    eggs, toast = ([i for i in order if y[i] == name] for name in ("eggs", "toast"))
    mixed = [*early[:14], eggs[0], *early[14:20], *eggs[1:5], toast[0]]
    rest = [i for i in order if i not in mixed]
    return X[[*mixed, *rest]], y[[*mixed, *rest]]


CLASSIFIERS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "two": (BayesianLogistic(alpha=1.0), words(), {}),
    "two, learned": (BayesianLogistic(), words(), {}),
    "three": (BayesianLogistic(alpha=0.5), words(k=3), {}),
    "three, learned, given": (BayesianLogistic(classes=["spam", "eggs", "ham"]), words(k=3), {}),
    "met late": (BayesianLogistic(alpha=1.0), late(), {"acquisition": "order", "initial": np.arange(8)}),
    "met late, learned": (BayesianLogistic(), late(), {"acquisition": "order", "initial": np.arange(8)}),
    "met late, given": (
        BayesianLogistic(alpha=1.0, classes=sorted(WORDS)),
        late(),
        {"acquisition": "order", "initial": np.arange(8)},
    ),
}
HELD: dict[str, tuple[Floats, Any]] = {name: words(12, 2, seed=9) for name in CLASSIFIERS}


@lru_cache
def class_run(name: str, batch: int) -> Run:
    model, (X, y), options = CLASSIFIERS[name]
    settings: dict[str, Any] = {"initial": 8, "steps": 30 // batch, "batch": batch, "validation": HELD[name]}
    settings |= {} if "acquisition" in options else {"acquisition": "margin", "random_share": 0.2}
    run = recorded(model, X, y, **{**settings, **options})
    first = BayesianLogistic(**model.get_params()).fit(X[run.trace.initial], y[run.trace.initial])
    return Run(run.trace, [*run.models, first])


class Seen(NamedTuple):
    """A model with the order of its columns."""

    model: Any
    order: list[str]

    @property
    def codes(self) -> Any:
        return np.searchsorted(self.model.classes_, self.order)

    def p(self, X: Floats) -> Floats:
        return np.asarray(self.model.predict_proba(X)[:, self.codes])


def seen(run: Run, y: Any, step: int) -> Seen:
    """The model after a step (-1: before the first), its classes in the order in which they were met."""
    model = run.models[step]
    if model.classes is not None:
        return Seen(model, sorted(model.classes))
    met = sorted(set(y[run.trace.initial].tolist()))
    for earlier in range(step + 1):
        met += sorted(set(y[run.picked(earlier)].tolist()) - set(met))
    return Seen(model, met)


def f_by_hand(p: Floats) -> float:
    scores = []
    for k in range(p.shape[1]):
        predicted = p.round(10).argmax(axis=1) == k
        right, wrong = sum(p[predicted, k]), sum(1.0 - p[predicted, k]) + sum(p[~predicted, k])
        scores.append(2.0 * right / (2.0 * right + wrong) if 2.0 * right + wrong > 0.0 else 1.0)
    return scores[1] if len(scores) == 2 else float(np.mean(scores))


def agreement_by_hand(model: Any, X: Floats) -> float:
    """1 less the normalised vote entropy of ten draws of the weights."""
    F, K = model.features(X), max(2, len(model.classes_))
    drawn = weight_draws(model.state_, 10)
    votes = [F @ w > 0 if w.ndim == 1 else (F @ w.T).argmax(axis=1) for w in drawn]
    return agreement_of_votes(np.array(votes).T.astype(int), K)


def agreement_of_votes(votes: NDArray[Any], K: int) -> float:
    """Of ten members, ``m x 10``."""
    shares = np.array([np.bincount(row, minlength=K) / 10.0 for row in votes])
    return float(1.0 - np.mean(entropy(shares, axis=1)) / np.log(min(K, 10)))


def logit_grid(model: Any, X: Floats) -> tuple[Floats, Floats]:
    """Logits on a fine grid and their probabilities, for integrals over the posterior of two classes."""
    mean, variance = model.latent(X)
    z = np.linspace(-9.0, 9.0, 901)
    weight = np.exp(-0.5 * z * z)
    return mean[:, None] + np.sqrt(variance)[:, None] * z, weight / weight.sum()


def probabilities_of_draws(model: Any, X: Floats, n: int) -> Floats:
    """``n x m x K`` by the draws that suffice takes."""
    F = model.features(X)
    return np.stack([softmax(F @ w.T, axis=1) for w in weight_draws(model.state_, n)])


def gain_by_hand(model: Any, X: Floats) -> float:
    if len(model.classes_) == 2:
        logits, weight = logit_grid(model, X)
        p = expit(logits)
        inner = (entropy(np.stack([p, 1.0 - p]), axis=0) * weight).sum(axis=1)
        averaged = (p * weight).sum(axis=1)
        return float((entropy(np.stack([averaged, 1.0 - averaged]), axis=0) - inner).max())
    p = probabilities_of_draws(model, X, 32)
    return float((entropy(p.mean(axis=0), axis=1) - entropy(p, axis=2).mean(axis=0)).max())


def facts_of_classes(run: Run, step: int, X: Floats, y: Any, held: tuple[Floats, Any]) -> dict[str, Any]:
    before, after = seen(run, y, step - 1), seen(run, y, step)
    picked, labelled, model = run.picked(step), run.labelled(step), run.models[step]
    free = np.setdiff1d(np.arange(len(X)), labelled)
    p, q, s = after.p(X[free]), before.p(X[picked]), after.p(X[STOP.indices])
    codes = [before.order.index(label) if label in before.order else -1 for label in y[picked]]
    K, top = p.shape[1], np.sort(p, axis=1)
    # Classes that nobody has met are equally likely, but for rounding.
    was, now = (
        one.model.classes_[one.model.predict_proba(X[free]).round(10).argmax(axis=1)] for one in (before, after)
    )
    bought = np.searchsorted(model.classes_, y[labelled])
    precision = model.alpha_ * np.eye(model.state_.weights.size)
    known = np.isin(held[1], model.classes_)
    held_codes = np.searchsorted(model.classes_, held[1][known])
    return {
        "pool_max_entropy": max(entropy(p, axis=1)),
        "pool_uncertainty": np.mean(entropy(p, axis=1)) / np.log(K),
        "pool_risk": np.mean(1.0 - top[:, -1]),
        "pool_margin": min(top[:, -1] - top[:, -2]),
        "pool_confidence_variance": np.mean(top[:, -1] ** 2) - np.mean(top[:, -1]) ** 2,
        "pool_changes": sum(a != b for a, b in zip(was, now, strict=True)),
        "pool_f": f_by_hand(p),
        "pool_gain": gain_by_hand(model, X[free]),
        "stop_probabilities": s,
        "stop_confidence": np.mean(s.max(axis=1)),
        "stop_agreement": agreement_by_hand(model, X[STOP.indices]),
        "expected_error": np.mean(entropy(s, axis=1)),
        "selected_probabilities": q,
        "selected_labels": codes,
        "selected_agreement": agreement_by_hand(before.model, X[picked]),
        "selected_loss": np.mean([-np.log(q[i, c]) if c >= 0 else -np.log(1e-6) for i, c in enumerate(codes)]),
        "selected_expected_loss": np.mean(entropy(q, axis=1)),
        "kl_prior": float(sf.kl(model.posterior, Gaussian(np.zeros(len(precision)), precision=precision))),
        "train_error": np.mean(1.0 - model.predict_proba(X[labelled])[np.arange(len(labelled)), bought]),
        "validation_error": -np.log(model.predict_proba(held[0][known])[np.arange(known.sum()), held_codes]).mean(),
    }


TABLES = {"stop_probabilities", "selected_probabilities"}
# Probabilities are kept in half precision.
LOOSE = {"stop_probabilities": 6e-4}


def require_recomputed_facts(name: str, batch: int, steps: Iterable[int]) -> None:
    _, (X, y), _ = CLASSIFIERS[name]
    run = class_run(name, batch)
    counted = COUNTED_FIELDS | CLASS_COUNT_FIELDS
    assert set(run.trace.measures) == ClassBackend.step_fields | counted | VALIDATION_FIELDS
    for step in steps:
        for fact, value in facts_of_classes(run, step, X, y, HELD[name]).items():
            told = run.trace.measures[fact][step]
            if fact in TABLES:
                # A class that is met later is not there yet.
                assert np.isnan(told[:, value.shape[1] :]).all(), (fact, step)
                told = told[:, : value.shape[1]]
            assert told == pytest.approx(value, rel=1e-6, abs=LOOSE.get(fact, 1e-7)), (fact, step)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "batch"), crossed(CLASSIFIERS, [1, 3], every=2))
def test_facts_of_classes_are_those_of_a_recomputation(name: str, batch: int) -> None:
    """Of the long run at every fourth step, and where a class is met late: at steps 6 and 17."""
    require_recomputed_facts(name, batch, (*range(0, 30, 4), 6, 7, 17, 18) if batch == 1 else range(10))


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_facts_of_all_steps_are_those_of_a_recomputation(name: str) -> None:
    require_recomputed_facts(name, 1, range(30))


@pytest.mark.parametrize("batch", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_what_the_cases_hold(batch: int) -> None:
    """The runs above do what they are there for."""
    for name in CLASSIFIERS:
        trace = class_run(name, batch).trace
        learned = CLASSIFIERS[name][0].alpha is None
        met_late = name.startswith("met late") and "given" not in name
        assert (len(trace.relearned) > 0) == (learned or met_late), name
        assert (trace.measures["selected_labels"] == -1).sum() == (2 if met_late else 0), name
        assert trace.measures["pool_changes"].max() > 0, name
        assert all(not known.measures for known in trace.relearned), name
    assert class_run("met late", batch).trace.measures["stop_probabilities"].shape[1:] == (8, 4)


def test_columns_never_move() -> None:
    """The new class comes first in the alphabet, and last in the table."""
    _, (X, y), _ = CLASSIFIERS["met late"]
    run = class_run("met late", 1)
    early, last = run.trace.measures["stop_probabilities"][[0, -1]]
    assert sorted(set(y[:8])) == ["ham", "spam"]
    assert np.isnan(early[:, 2:]).all()
    assert early[:, :2] == pytest.approx(run.models[0].predict_proba(X[STOP.indices]), abs=1e-3)
    model = run.models[len(run.trace) - 1]
    assert model.classes_.tolist() == ["eggs", "ham", "spam", "toast"]
    assert last == pytest.approx(model.predict_proba(X[STOP.indices])[:, [1, 2, 0, 3]], abs=1e-3)


@pytest.mark.parametrize("name", ["two", "three"])
def test_the_expected_error_is_the_log_loss_of_labels_that_the_posterior_draws(name: str) -> None:
    """MacKay's formula averages two classes to a percent or so; its form for many classes is rougher."""
    _, (X, _), _ = CLASSIFIERS[name]
    run = class_run(name, 1)
    model = run.models[len(run.trace) - 1]
    posterior, F, p = model.posterior, model.features(X[STOP.indices]), model.predict_proba(X[STOP.indices])
    z = np.random.default_rng(5).normal(size=(20_000, len(posterior.mean)))
    drawn = posterior.mean + np.linalg.solve(posterior.factor.T, z.T).T
    if name == "two":
        second = expit(drawn @ F.T)
        labels = np.stack([1.0 - second, second], axis=2)
    else:
        labels = softmax(np.einsum("nkj,mj->nmk", drawn.reshape(-1, 3, 3), F), axis=2)
    losses = -(labels * np.log(p)).sum(axis=2)
    told = run.trace.measures["expected_error"][-1]
    assert told == pytest.approx(losses.mean(), rel=0.01 if name == "two" else 0.1)


@pytest.mark.parametrize("kind", [Laplace, SoftmaxLaplace])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 50.0])
def test_the_divergence_from_the_prior_is_kl(kind: Any, alpha: float) -> None:
    rng = np.random.default_rng(0)
    K = 2 if kind is Laplace else 4
    posterior = kind(3, K, alpha)
    assert divergence_from_prior(posterior) == pytest.approx(0.0, abs=1e-12)
    last = 0.0
    for _ in range(5):
        posterior.extend(rng.normal(size=(4, 3)), rng.integers(K, size=4))
        found = posterior.posterior()
        prior = Gaussian(np.zeros(len(found.mean)), precision=alpha * np.eye(len(found.mean)))
        assert divergence_from_prior(posterior) == pytest.approx(float(sf.kl(found, prior)), rel=1e-9)
        last = divergence_from_prior(posterior)
    assert last > 0.0


class TestOneClassSoFar:
    """Before a second class is met there are two columns: the one class, and anything else."""

    def run(self, **options: Any) -> Run:
        X, y = words()
        order = np.argsort(y == "ham", kind="stable")
        settings: dict[str, Any] = {"initial": np.arange(6), "steps": 40, "acquisition": "order", "stop_set": STOP}
        return recorded(BayesianLogistic(alpha=1.0), X[order], y[order], **{**settings, **options})

    def test_columns_stay_when_the_second_is_met(self) -> None:
        run = self.run()
        told = run.trace.measures["stop_probabilities"]
        met = next(step for step, model in enumerate(run.models) if len(model.classes_) == 2)
        assert 3 < met < 38
        X, y = words()
        X = X[np.argsort(y == "ham", kind="stable")]
        # "spam" came first, "ham" is first in the alphabet.
        assert told[-1] == pytest.approx(run.models[-1].predict_proba(X[STOP.indices])[:, ::-1], abs=1e-3)
        logits = run.models[met - 1].decision_function(X[STOP.indices])
        assert told[met - 1] == pytest.approx(np.column_stack([expit(-logits), expit(logits)]), abs=1e-3)
        assert run.trace.measures["selected_labels"][:met].tolist() == [[0]] * met
        assert run.trace.measures["selected_labels"][met + 1 :].tolist() == [[1]] * (39 - met)

    def test_the_second_class_to_be_met_takes_the_column_of_anything_else(self) -> None:
        run = self.run()
        met = next(step for step, model in enumerate(run.models) if len(model.classes_) == 2)
        assert run.trace.measures["selected_labels"][met].tolist() == [1]
        # What was thought likely of anything else is what this label cost.
        p = run.trace.measures["selected_probabilities"][met, 0, 1]
        assert 0.0 < p < 1.0
        assert run.trace.measures["selected_loss"][met] == pytest.approx(-np.log(p), rel=1e-6)
        assert run.trace.measures["stop_probabilities"].shape[2] == 2
        assert not np.isnan(run.trace.measures["stop_probabilities"]).any()

    def test_the_third_class_is_new_when_it_comes(self) -> None:
        X, y = words(k=3)
        order = np.argsort([["spam", "ham", "eggs"].index(label) for label in y], kind="stable")
        run = recorded(
            BayesianLogistic(alpha=1.0), X[order], y[order], initial=np.arange(6), steps=50, acquisition="order"
        )
        classes = [len(model.classes_) for model in run.models]
        second, third = classes.index(2), classes.index(3)
        told = run.trace.measures["selected_labels"].ravel().tolist()
        # "spam", "ham", "eggs": columns in the order in which they were met.
        assert told == [0] * second + [1] * (third - second) + [-1] + [2] * (49 - third)
        assert run.trace.measures["selected_loss"][third] == pytest.approx(-np.log(1e-6))
        for number, step in enumerate(run.trace.steps()):
            assert step.stop_probabilities is not None
            assert step.stop_probabilities.shape == (8, 2 if number < third else 3)

    def test_far_from_all_labels_anything_else_may_be_likelier(self) -> None:
        """The model itself names the one class that it knows; the column says how likely it is wrong in that."""
        X = np.linspace(3.0, -3.0, 60)[:, None]
        model = BayesianLogistic(alpha=1.0, fit_intercept=False)
        run = recorded(model, X, ["spam"] * 60, initial=np.arange(5), steps=5, acquisition="order")
        assert all(set(fitted.predict(X)) == {"spam"} for fitted in run.models)
        told = run.trace.measures["stop_probabilities"]
        assert told.sum(axis=2) == pytest.approx(np.ones((5, 8)), abs=1e-3)
        # Labels so far are of inputs above 0; without an intercept, below 0 the opposite is expected.
        assert ((told[:, :, 0] > 0.5) == (X[STOP.indices, 0] > 0.0)).all()
        assert (run.trace.measures["selected_labels"] == 0).all()


def test_of_classes_in_a_pool_that_is_used_up_nothing_is_uncertain() -> None:
    X, y = words(12)
    trace = sf.simulate(BayesianLogistic(alpha=1.0), X, y, initial=4, record="all")
    last = {name: values[-1] for name, values in trace.measures.items() if name.startswith("pool_")}
    assert last.pop("pool_size") == 12
    assert last.pop("pool_margin") == last.pop("pool_f") == 1.0
    assert set(last.values()) == {0.0}
    for rule in (sf.EntropyMax(0.0), sf.MinExpectedError(0.0), sf.MarginExhaustion(1.0), sf.ClassificationChange()):
        assert trace.replay(rule)[-1].stop


def test_skipped_items_of_classes_are_not_in_the_pool() -> None:
    X, y = words()
    learner = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, criterion=sf.MinExpectedError(0.0), initial=6)
    learner.skip([50, 51])
    for item in (*range(6), 7, 8):
        learner.tell(item, y[item])
    learner.skip(np.arange(20, 40))
    learner.tell(9, y[9])
    left = [i for i in range(60) if i not in (*range(10), *range(20, 40), 50, 51) or i == 6]
    p = learner.model.predict_proba(X[left])
    assert learner.trace().measures["pool_risk"][-1] == pytest.approx((1.0 - p.max(axis=1)).mean(), rel=1e-6)


# Networks: facts of draws


def network(**options: Any) -> DropoutNetwork:
    pytest.importorskip("torch", reason="torch is not installed")
    settings: dict[str, Any] = {"hidden": (6,), "epochs": 6, "warm_epochs": 2, "samples": 12, "learning_rate": 0.02}
    return DropoutNetwork(**{**settings, "device": "cpu", **options})


# The seed of the masks through which a network with seed 0 is seen, always the same.
MASKS = int(np.random.SeedSequence((0, 2, 0)).generate_state(1)[0])


@lru_cache
def network_run(case: str, approximation: str = "dropout") -> tuple[Trace, list[Any], list[list[str]]]:
    """A run, the draws of all items before it and after each step (``m x draws x K``), and the classes then."""
    X, y = late() if case == "met late" else words(k=3)
    order: dict[str, Any] = {"acquisition": "order", "initial": np.arange(8)} if case == "met late" else {}
    draws, classes = [], []
    model = network(approximation=approximation, alpha=1.0)

    def look(fitted: Any) -> dict[str, Any]:
        draws.append(fitted.sample_proba(X, seed=MASKS).astype(np.float64))
        classes.append(fitted.classes_.tolist())
        return {}

    settings: dict[str, Any] = {"initial": 20, "steps": 5, "batch": 4, "acquisition": "entropy", **order}
    trace = sf.simulate(
        model, X, y, watch=look, record="all", stop_set=STOP, validation=words(12, 2, seed=9), **settings
    )
    first = network(approximation=approximation, alpha=1.0).fit(X[trace.initial], y[trace.initial])
    look(first)
    return trace, draws, classes


def facts_of_draws(case: str, approximation: str, step: int) -> dict[str, Any]:
    X, y = late() if case == "met late" else words(k=3)
    trace, draws, classes = network_run(case, approximation)
    met = sorted(classes[-1])
    orders = [met]
    for known in classes[:-1]:
        met = [*met, *sorted(set(known) - set(met))]
        orders.append(met)

    def ordered(number: int) -> Any:
        """Draws with their columns in the order in which the classes were met."""
        return draws[number][:, :, [classes[number].index(label) for label in orders[number + 1]]]

    before, after = ordered(step - 1) if step else draws[-1], ordered(step)
    labelled = [*trace.initial, *trace.indices[: step + 1].ravel()]
    picked, free = trace.indices[step], np.setdiff1d(np.arange(len(X)), labelled)
    p, q, s = after.mean(axis=1)[free], before.mean(axis=1)[picked], after[STOP.indices]
    codes = [orders[step].index(label) if label in orders[step] else -1 for label in y[picked]]
    top = np.sort(p, axis=1)
    was = before.mean(axis=1)[free].argmax(axis=1)
    return {
        "pool_max_entropy": max(entropy(p, axis=1)),
        "pool_uncertainty": np.mean(entropy(p, axis=1)) / np.log(p.shape[1]),
        "pool_risk": np.mean(1.0 - top[:, -1]),
        "pool_margin": min(top[:, -1] - top[:, -2]),
        "pool_confidence_variance": np.var(top[:, -1]),
        "pool_changes": sum(was != p.argmax(axis=1)),
        "pool_f": f_by_hand(p),
        "pool_gain": max(entropy(p, axis=1) - entropy(after[free], axis=2).mean(axis=1)),
        "stop_probabilities": s.mean(axis=1),
        "stop_confidence": np.mean(s.mean(axis=1).max(axis=1)),
        "stop_agreement": agreement_of_votes(s[:, :10].argmax(axis=2), p.shape[1]),
        "expected_error": np.mean(entropy(s.mean(axis=1), axis=1)),
        "selected_probabilities": q,
        "selected_labels": codes,
        "selected_agreement": agreement_of_votes(before[picked][:, :10].argmax(axis=2), q.shape[1]),
        "selected_loss": np.mean([-np.log(q[i, c]) if c >= 0 else -np.log(1e-6) for i, c in enumerate(codes)]),
        "selected_expected_loss": np.mean(entropy(q, axis=1)),
    }


@pytest.mark.slow
@pytest.mark.parametrize("approximation", ["dropout", "last-layer"])
@pytest.mark.parametrize("case", ["three", "met late"])
def test_facts_of_a_network_are_those_of_its_draws(case: str, approximation: str) -> None:
    network()
    trace, _, classes = network_run(case, approximation)
    assert set(trace.measures) >= NetworkBackend.step_fields | COUNTED_FIELDS | VALIDATION_FIELDS
    assert len(classes[-1]) == (2 if case == "met late" else 3)
    assert len(classes[-2]) == (4 if case == "met late" else 3)
    for step in range(len(trace)):
        for fact, value in facts_of_draws(case, approximation, step).items():
            told = trace.measures[fact][step]
            if fact in TABLES:
                assert np.isnan(told[:, value.shape[1] :]).all(), (fact, step)
                told = told[:, : value.shape[1]]
            assert told == pytest.approx(value, rel=1e-4, abs=6e-4 if fact in TABLES else 1e-6), (fact, step)


@pytest.mark.slow
def test_the_validation_error_of_a_network_is_that_of_the_mean_of_its_draws() -> None:
    X, y = words(12, 3, seed=9)
    model, found = network(), []

    def look(fitted: Any) -> dict[str, Any]:
        draws = fitted.sample_proba(X, seed=MASKS).astype(np.float64)
        found.append(-np.log(draws[np.arange(12), :, np.searchsorted(fitted.classes_, y)].mean(axis=1)).mean())
        return {}

    trace = sf.simulate(
        model, *words(k=3), steps=2, batch=5, initial=20, watch=look, record="validation_error", validation=(X, y)
    )
    assert trace.measures["validation_error"] == pytest.approx(np.array(found), rel=1e-4)
    assert "stop_probabilities" not in trace.measures


def test_a_network_that_has_met_one_class_has_one_column() -> None:
    X, y = words()
    order = np.argsort(y == "ham", kind="stable")
    met = int(np.flatnonzero(y[order] == "ham")[0])
    model = network()
    trace = sf.simulate(
        model, X[order], y[order], initial=np.arange(met - 6), acquisition="order", steps=4, batch=3, record="all"
    )
    assert trace.measures["selected_labels"].tolist() == [[0] * 3, [0] * 3, [-1] * 3, [1] * 3]
    for number, step in enumerate(trace.steps()):
        assert step.selected_probabilities is not None
        assert step.stop_probabilities is not None
        assert step.selected_probabilities.shape == (3, 1 if number < 3 else 2)
        assert step.stop_probabilities.shape == (60, 1 if number < 2 else 2)
        if number < 2:
            assert (step.selected_probabilities == 1.0).all()
            assert (step.stop_probabilities == 1.0).all()
    assert np.isnan(trace.measures["selected_probabilities"][:3, :, 1]).all()
    assert np.isnan(trace.measures["stop_probabilities"][:2, :, 1]).all()
    assert trace.measures["pool_gain"][:2].tolist() == trace.measures["pool_risk"][:2].tolist() == [0.0, 0.0]
    assert trace.measures["pool_gain"][-1] > 0.0
    assert all(np.isfinite(values).all() for name, values in trace.measures.items() if name not in TABLES)


def interrupted(case: str, path: Any) -> tuple[Trace, Trace]:
    """A run in one go, and one that was stopped after two steps and taken up again."""
    X, y = late() if case == "met late" else words(k=3)
    order: dict[str, Any] = {"acquisition": "order", "initial": np.arange(8)} if case == "met late" else {}
    settings: dict[str, Any] = {
        **{"initial": 20, "batch": 4, "record": "all", "stop_set": STOP, "validation": words(12, 2, seed=9)},
        **order,
    }
    whole = sf.simulate(network(), X, y, steps=4, **settings)
    sf.simulate(network(), X, y, steps=2, checkpoint=path, **settings)
    return whole, sf.simulate(network(), X, y, steps=4, checkpoint=path, **settings)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", ["three", "met late"])
def test_a_run_taken_up_again_tells_the_same(case: str, tmp_path: Any) -> None:
    whole, again = interrupted(case, tmp_path / "run.pt")
    assert set(again.measures) == set(whole.measures)
    for name in set(whole.measures) - {"seconds"}:
        np.testing.assert_array_equal(again.measures[name], whole.measures[name], err_msg=name)
        assert again.measures[name].dtype == whole.measures[name].dtype


def test_a_run_with_another_validation_set_is_another_run(tmp_path: Any) -> None:
    X, y = words(k=3)
    settings: dict[str, Any] = {"initial": 20, "batch": 4, "record": "validation_error"}
    checkpoint = {"checkpoint": tmp_path / "run.pt"}
    sf.simulate(network(), X, y, steps=1, validation=words(12, 3, seed=9), **settings, **checkpoint)
    for other in (words(30, 3, seed=8), (words(12, 3, seed=9)[0], words(12, 3, seed=9)[1][::-1])):
        with pytest.raises(InvalidValueError, match=r"another run: its [Xy] of validation"):
            sf.simulate(network(), X, y, steps=2, validation=other, **settings, **checkpoint)
    trace = sf.simulate(network(), X, y, steps=2, validation=words(12, 3, seed=9), **settings, **checkpoint)
    assert len(trace) == 2


@pytest.mark.parametrize("other", [{"stop_set": 9}, {"record": "stop_confidence"}])
def test_a_run_that_tells_something_else_is_another_run(other: dict[str, Any], tmp_path: Any) -> None:
    X, y = words(k=3)
    settings: dict[str, Any] = {"initial": 20, "batch": 4, "record": "stop_probabilities", "stop_set": STOP}
    sf.simulate(network(), X, y, steps=1, checkpoint=tmp_path / "run.pt", **settings)
    with pytest.raises(InvalidValueError, match=f"another run: its {next(iter(other))}"):
        sf.simulate(network(), X, y, steps=2, checkpoint=tmp_path / "run.pt", **{**settings, **other})
