"""The rows of the guard: a public call and a plain reference with the same result, both small."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr, lambertw
from scipy.stats import hypergeom
from sklearn.linear_model import LogisticRegression

import suffice as sf
from learner_data import Floats, Pool
from learner_references import gaussian_divergences, plain_process, plain_ridge_step
from suffice.acquisition import batchbald
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess


class GuardRow(NamedTuple):
    """A public call beside its reference.

    Attributes:
        call: The public call; its result is compared.
        reference: A plain computation of the same result.
        agree: Raises an AssertionError if the two results differ.
    """

    call: Callable[[], Any]
    reference: Callable[[], Any]
    agree: Callable[[Any, Any], None]


def guard_rows() -> dict[str, GuardRow]:
    """All rows by name."""
    return {
        "Gaussian process: simulate": _process(),
        "ridge: simulate": _ridge(),
        "logistic: simulate": _logistic(),
        "bounds.risk_gap": _risk_gap(),
        "batchbald": _batchbald(),
        "ActiveLearner: ask and tell": _ask_and_tell(),
        "checks.plan": _plan(),
    }


def _numbers(rows: int, columns: int, test: int = 500) -> Pool:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows + test, columns))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=len(X))
    return Pool(X[test:], y[test:], X[:test], y[:test])


def _classes(rows: int, columns: int) -> Pool:
    pool = _numbers(rows, columns)
    return replace(pool, y=(pool.y > 0.0).astype(int), y_test=(pool.y_test > 0.0).astype(int))


def _simulated(model: Any, pool: Pool, initial: Any, steps: int, acquisition: str) -> list[int]:
    trace = sf.simulate(
        model,
        pool.X,
        pool.y,
        initial=initial,
        steps=steps,
        X_test=pool.X_test,
        y_test=pool.y_test,
        acquisition=acquisition,
    )
    return [int(index) for index in trace.indices]


def _same(first: Any, second: Any) -> None:
    assert first == second, "the reference gives another result"


def _close(first: Any, second: Any) -> None:
    np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-9)


def _process() -> GuardRow:
    pool, initial, steps = _numbers(4000, 4), np.arange(10), 400
    return GuardRow(
        partial(_simulated, GaussianProcess(2.0, 0.1), pool, initial, steps, "variance"),
        partial(plain_process, pool, initial, steps, 2.0, 0.1),
        _same,
    )


def _ridge() -> GuardRow:
    pool, initial, steps = _numbers(2000, 30), np.arange(10), 400

    def recomputed() -> list[int]:
        return _one_by_one(initial, steps, lambda labelled: plain_ridge_step(pool, labelled, 1.0, 10.0))

    return GuardRow(
        partial(_simulated, BayesianRidge(1.0, 10.0, fit_intercept=False), pool, initial, steps, "variance"),
        recomputed,
        _same,
    )


def _logistic() -> GuardRow:
    pool, initial, steps = _classes(3000, 10), np.arange(20), 200

    def refitted() -> list[int]:
        return _one_by_one(initial, steps, lambda labelled: _refit_step(pool, labelled))

    model = BayesianLogistic(alpha=1.0, fit_intercept=False)
    return GuardRow(partial(_simulated, model, pool, initial, steps, "map-entropy"), refitted, _same)


def _one_by_one(initial: Any, steps: int, step: Callable[[Any], int]) -> list[int]:
    """Picks of a step that reads all labels so far."""
    labelled: list[int] = initial.tolist()
    for _ in range(steps):
        labelled.append(step(np.array(labelled)))
    return labelled[len(initial) :]


def _refit(X: Floats, y: Any) -> LogisticRegression:
    # Newton's method, because the picks require more digits than the default solver gives.
    return LogisticRegression(C=1.0, fit_intercept=False, solver="newton-cholesky", tol=1e-10).fit(X, y)


def _refit_step(pool: Pool, labelled: Any) -> int:
    """One step by scikit-learn: fit, divergences, scores of the pool, loss on the test set."""
    X = pool.X[labelled]
    model = _refit(X, pool.y[labelled])
    p = model.predict_proba(X)[:, 1]
    precision = (X * (p * (1.0 - p))[:, None]).T @ X + np.eye(X.shape[1])
    gaussian_divergences(precision, precision, model.coef_[0], model.coef_[0])
    score = entr(model.predict_proba(pool.X)).sum(axis=1)
    variance = np.einsum("ij,ij->i", pool.X_test @ np.linalg.inv(precision), pool.X_test)
    averaged = (pool.X_test @ model.coef_[0]) / np.sqrt(1.0 + np.pi / 8.0 * variance)
    float(np.mean(np.logaddexp(0.0, np.where(pool.y_test == 1, -averaged, averaged))))
    score[labelled] = -1.0
    return int(np.argmax(score))


def _risk_gap() -> GuardRow:
    kl = 10.0 ** np.random.default_rng(0).uniform(-3, 3, 1_000_000)

    def lambert_form() -> Any:
        return np.exp(lambertw((kl - 1.0) / np.e).real + 1.0) - 1.0

    return GuardRow(partial(sf.bounds.risk_gap, kl), lambert_form, _close)


def _batchbald() -> GuardRow:
    probs, size = np.random.default_rng(0).dirichlet(np.full(5, 0.5), size=(10_000, 20)), 4
    return GuardRow(
        partial(_chosen, probs, size),
        partial(_plain_batchbald, probs, size),
        _same,
    )


def _chosen(probs: Floats, size: int) -> list[int]:
    return [int(index) for index in batchbald(probs, size).indices]


def _plain_batchbald(probs: Floats, size: int) -> list[int]:
    """Greedy search that computes the joint entropy of every candidate with all configurations of the batch."""
    N, K = probs.shape[:2]
    given = entr(probs).sum(axis=2).mean(axis=1)
    batch: list[int] = []
    joint = np.ones((1, K))
    for _ in range(size):
        gains = np.empty(N)
        for start in range(0, N, 200):
            part = slice(start, start + 200)
            masses = np.einsum("mk,nkc->nmc", joint, probs[part], optimize=True) / K
            gains[part] = entr(masses).sum(axis=(1, 2)) - given[part]
        gains[batch] = -np.inf
        batch.append(int(np.argmax(gains)))
        joint = (joint[:, None, :] * probs[batch[-1]].T).reshape(-1, K)
    return batch


def _ask_and_tell() -> GuardRow:
    pool, labels = _classes(5000, 10), 100
    asked: list[int] = []

    def learner() -> Any:
        active = sf.ActiveLearner(BayesianLogistic(alpha=1.0, fit_intercept=False), pool.X, seed=0)
        asked.clear()
        for _ in range(labels):
            items = active.ask()
            active.tell(items, pool.y[items])
            asked.extend(int(item) for item in items)
        return active.model.coef_[0]

    def refitted() -> Any:
        model = None
        for n in range(1, labels + 1):
            y = pool.y[asked[:n]]
            # While there is one class, scikit-learn has no model.
            if y.min() != y.max():
                model = _refit(pool.X[asked[:n]], y)
                model.predict_proba(pool.X)
        assert model is not None, "the labels are of one class"
        return model.coef_[0]

    return GuardRow(learner, refitted, _close)


#: Target, expected share and pool of some checks.
CHECKS = ((0.1, 0.05, 4600), (0.05, 0.02, 20_000), (0.02, 0.01, 5000))


def _plan() -> GuardRow:
    return GuardRow(
        lambda: [sf.checks.plan(*check).labels for check in CHECKS],
        lambda: [_plain_plan(*check) for check in CHECKS],
        _same,
    )


def _plain_plan(target: float, expected: float, pool: int) -> int:
    """Try all sizes of a check, each with all numbers of wrong items that it can find."""
    wrong = int(np.ceil(expected * pool))
    for size in range(1, pool):
        allowed = int(np.floor(target * (pool - size)))
        accepted = -1
        for found in count():
            # The bound is at most allowed + found if one more wrong item would be improbable.
            if found > size or hypergeom.cdf(found, pool, allowed + found + 1, size) > 0.05:
                break
            accepted = found
        if accepted >= 0 and hypergeom.cdf(accepted, pool, wrong, size) >= 0.8:
            return size
    raise AssertionError("no size is enough")
