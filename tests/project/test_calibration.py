"""How sure a model should be: against models fitted without each label, and labels whose factor is known."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, softmax

from suffice.models import predictive
from suffice.models.laplace import laplace
from suffice.models.predictive import FACTORS, Guesses, guesses, moderated_logits, sharpness
from suffice.numerics import Floats


def made(n: int, n_classes: int, seed: int = 0, *, width: int = 3, scale: float = 1.0) -> tuple[Floats, Any]:
    """Items and classes drawn from the model with weights of this scale."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width))
    scores = scale * X @ rng.normal(size=(width, n_classes if n_classes > 2 else 1))
    if n_classes == 2:
        return X, (rng.random(n) < expit(scores[:, 0])).astype(int)
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def typical(probable: Floats) -> float:
    return float(np.exp(probable @ np.log(FACTORS)))


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_a_label_that_is_taken_out_is_as_one_that_never_came(n_classes: int) -> None:
    X, y = made(120, n_classes)
    found = guesses(laplace(X, y, n_classes, 1.0))
    known = laplace(X, y, n_classes, 1.0)
    others = np.arange(len(y))[:, None] != np.arange(len(y))
    expected = np.array([moderated_logits(laplace(X[o], y[o], n_classes, 1.0), X[~o])[0] for o in others])
    np.testing.assert_array_equal(found.codes, y)
    # The logits of many classes have no place of their own.
    with_it = moderated_logits(known, X)
    if n_classes > 2:
        expected, with_it = (each - each.mean(axis=1, keepdims=True) for each in (expected, with_it))
        found = found._replace(logits=found.logits - found.logits.mean(axis=1, keepdims=True))
    step = np.sqrt(np.mean((found.logits - expected) ** 2))
    # One step of Newton's goes nearly all the way.
    assert step < 0.1 * np.sqrt(np.mean((with_it - expected) ** 2))
    np.testing.assert_allclose(found.logits, expected, atol=0.12)


def test_two_classes_written_as_many_are_guessed_alike() -> None:
    # Weights of N(0, 1/2) each make a difference of N(0, 1).
    X, y = made(60, 2)
    two = guesses(laplace(X, y, 2, 1.0))
    many = predictive._many_without(SoftmaxOfTwo(X, y), X, y)[0]
    mean = predictive._two_without(laplace(X, y, 2, 1.0), X, y)[0]
    np.testing.assert_allclose(many[:, 1] - many[:, 0], mean, rtol=1e-6, atol=1e-8)
    assert two.logits.shape == (60,)


class SoftmaxOfTwo:
    """The posterior of a softmax for two classes, by plain formulas."""

    n_classes, alpha = 2, 2.0

    def __init__(self, X: Floats, y: Any) -> None:
        half = laplace(X, y, 2, 1.0).weights / 2.0
        self.weights, self.n_features = np.array([-half, half]), X.shape[1]
        p = softmax(X @ self.weights.T, axis=1)
        curved = np.einsum("ik,ikl,ia,ib->kalb", p, np.eye(2) - p[:, None], X, X).reshape(self.weights.size, -1)
        lower = np.linalg.cholesky(curved + self.alpha * np.eye(len(curved)))
        self.inverse_factor = np.linalg.inv(lower)

    def snapshot(self) -> "SoftmaxOfTwo":
        """Where the factor is looked for."""
        return self


def test_guesses_in_pieces_are_as_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = made(70, 4)
    posterior = laplace(X, y, 4, 1.0)
    at_once = guesses(posterior)
    monkeypatch.setattr(predictive, "_MOST_HELD", 200)
    np.testing.assert_allclose(guesses(posterior).logits, at_once.logits, rtol=1e-12)


def test_of_many_labels_some_are_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = made(700, 3)
    posterior = laplace(X, y, 3, 1.0)
    found = guesses(posterior)
    assert len(found.codes) == 500
    monkeypatch.setattr(predictive, "_MOST", 1000)
    every = guesses(posterior)
    taken = np.unique(np.linspace(0, 699, 500).astype(int))
    np.testing.assert_allclose(found.logits, every.logits[taken], rtol=1e-12)
    np.testing.assert_array_equal(found.codes, y[taken])
    monkeypatch.setattr(predictive, "_COST", 1)
    assert len(guesses(posterior).codes) == 100


def quantiles(probable: Floats, points: list[float]) -> Floats:
    """Quantiles of the distribution of the factors."""
    reached = np.cumsum(probable) - 0.5 * probable
    return np.asarray(np.exp(np.interp(points, reached, np.log(FACTORS))))


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("factor", [0.4, 1.0, 3.0])
def test_logits_of_another_scale_give_back_the_factor(n_classes: int, factor: float) -> None:
    rng = np.random.default_rng(8)
    logits = rng.normal(size=1500 if n_classes == 2 else (1500, n_classes))
    p = (
        np.column_stack([expit(-factor * logits), expit(factor * logits)])
        if n_classes == 2
        else softmax(factor * logits, axis=1)
    )
    codes = (p.cumsum(axis=1) < rng.random((1500, 1))).sum(axis=1)
    probable = sharpness(Guesses(logits, codes))
    assert probable.sum() == pytest.approx(1.0)
    assert typical(probable) == pytest.approx(factor, rel=0.2)
    low, high = quantiles(probable, [0.005, 0.995])
    assert low < factor < high


def test_without_evidence_the_factor_stays_near_one() -> None:
    none = sharpness(Guesses(np.zeros(0), np.zeros(0, dtype=np.intp)))
    even = sharpness(Guesses(np.zeros((9, 4)), np.arange(9) % 4))
    np.testing.assert_allclose(even, none, rtol=1e-9)
    assert typical(none) == pytest.approx(1.0)
    low, middle, high = quantiles(none, [0.16, 0.5, 0.84])
    np.testing.assert_allclose([low, middle, high], np.exp([-0.7, 0.0, 0.7]), rtol=0.05)
    # Two right guesses change little, and hundreds change much.
    few, many = (sharpness(Guesses(np.ones(n), np.ones(n, dtype=np.intp))) for n in (2, 400))
    assert 1.0 < typical(few) < 1.6
    assert typical(many) > 3.0


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_right_model_keeps_its_factor_near_one(n_classes: int) -> None:
    typicals = [typical(sharpness(guesses(laplace(*made(300, n_classes, seed), n_classes, 1.0)))) for seed in range(12)]
    assert np.exp(np.mean(np.log(typicals))) == pytest.approx(1.0, abs=0.15)
    assert all(0.6 < each < 1.6 for each in typicals)
