"""The demonstration's small models against dense computation, and the promise that no unbought label is seen."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from suffice import ErrorStability, kl
from suffice.errors import InvalidValueError
from suffice.experiments.demo import INITIAL, label_pool
from suffice.experiments.small_models import LinearRegression, LogisticRegression, with_constant
from suffice.experiments.tasks import Task, demo_task
from suffice.posteriors import Gaussian
from suffice.special import Floats

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=60) + 4.0


def weights(model: LinearRegression, n: int) -> Gaussian:
    phi, y = with_constant(X[:n]), (Y[:n] - model.centre) / model.scale
    precision = phi.T @ phi / model.noise + model.alpha * np.eye(4)
    return Gaussian(np.linalg.solve(precision, phi.T @ y / model.noise), precision=precision)


def test_linear_steps_equal_dense_posteriors_and_are_replayed_on_doubling() -> None:
    model = LinearRegression()
    assert model.learn(X[:10], Y[:10], 10) == []
    for n in range(11, 41):
        steps = model.learn(X[:n], Y[:n], 10)
        assert [s.n_labelled for s in steps] == (list(range(11, n + 1)) if n in (20, 40) else [n])
        for step in steps:
            old, new = (weights(model, k) for k in (step.n_labelled - 1, step.n_labelled))
            assert step.kl_new_old == pytest.approx(kl(new, old), rel=1e-7)
            assert step.kl_old_new == pytest.approx(kl(old, new), rel=1e-7)


def test_linear_scales_maximise_the_evidence() -> None:
    model = LinearRegression()
    model.learn(X, Y, 10)
    phi, y = with_constant(X), (Y - Y.mean()) / Y.std()

    def minus_log_evidence(logs: Floats) -> float:
        covariance = phi @ phi.T * np.exp(logs[0]) + np.exp(logs[1]) * np.eye(len(y))
        return float(0.5 * (np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y)))

    best = minimize(minus_log_evidence, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-12})
    assert -np.log(model.alpha) == pytest.approx(best.x[0], abs=1e-4)
    assert np.log(model.noise) == pytest.approx(best.x[1], abs=1e-4)


def test_linear_score_is_the_predictive_variance() -> None:
    model = LinearRegression()
    model.learn(X[:20], Y[:20], 10)
    phi = with_constant(X)
    covariance = np.linalg.inv(with_constant(X[:20]).T @ with_constant(X[:20]) / model.noise + model.alpha * np.eye(4))
    assert model.score(X) == pytest.approx(np.diag(phi @ covariance @ phi.T))


def test_logistic_weights_maximise_the_posterior_and_the_spread_is_its_curvature() -> None:
    y = (Y > 4.0).astype(float)
    model = LogisticRegression()
    model.learn(X, y, 10)
    phi = with_constant(X)

    def minus_log_posterior(w: Floats) -> float:
        a = phi @ w
        return float(np.sum(np.logaddexp(0.0, a) - y * a) + 0.5 * w @ w)

    best = minimize(minus_log_posterior, np.zeros(4), tol=1e-12)
    assert model.weights == pytest.approx(best.x, abs=1e-5)
    h = 1e-4
    eye = h * np.eye(4)
    w = model.weights
    hessian = np.array(
        [
            [
                (
                    minus_log_posterior(w + a + b)
                    - minus_log_posterior(w + a - b)
                    - minus_log_posterior(w - a + b)
                    + minus_log_posterior(w - a - b)
                )
                / (4 * h * h)
                for b in eye
            ]
            for a in eye
        ]
    )
    assert model.posterior is not None
    assert model.posterior.factor @ model.posterior.factor.T == pytest.approx(hessian, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("kind", ["regression", "classification"])
def test_no_label_is_seen_before_it_is_bought(kind: str) -> None:
    """Labels that are never bought are made NaN: nothing may change."""
    rng = np.random.default_rng(1)
    task = demo_task(kind, rng)  # type: ignore[arg-type]
    state = rng.bit_generator.state

    def run(job: Task, steps: int) -> list[tuple[int, float | None]]:
        rng.bit_generator.state = state
        out = []
        for progress, _ in zip(label_pool(job, ErrorStability(0.1), rng), range(steps), strict=False):
            out.append((progress.n_labelled, progress.verdict.value))
        return out

    bought = _bought(task, state, 30)
    hidden = np.full_like(task.y_pool, np.nan)
    hidden[bought] = task.y_pool[bought]
    blind = Task(task.name, task.kind, task.X_pool, hidden, task.X_test, task.y_test)
    assert run(blind, 30) == run(task, 30)


def _bought(task: Task, state: Any, steps: int) -> list[int]:
    """Indices that the run asks for, by watching which labels it reads."""
    read: list[int] = []

    class Watched(np.ndarray[Any, Any]):
        def __getitem__(self, key: Any) -> Any:
            if isinstance(key, list):
                read.extend(i for i in key if i not in read)
            return np.asarray(self)[key]

    rng = np.random.default_rng(1)
    demo_task(task.kind, rng)
    rng.bit_generator.state = state
    job = Task(task.name, task.kind, task.X_pool, task.y_pool.view(Watched), task.X_test, task.y_test)
    for progress, _ in zip(label_pool(job, ErrorStability(0.1), rng), range(steps), strict=False):
        assert len(read) == progress.n_labelled
    assert len(read) >= INITIAL + steps
    return read


def test_an_unknown_task_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="task must be 'regression' or 'classification'"):
        demo_task("guessing", RNG)  # type: ignore[arg-type]
