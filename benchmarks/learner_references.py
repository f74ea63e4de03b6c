"""What the learners are measured against: straightforward loops, written with care but without their algorithms."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def gaussian_kernel(A: Floats, B: Floats, length: float) -> Floats:
    a, b = A / length, B / length
    squared = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2.0 * a @ b.T
    return np.asarray(np.exp(-0.5 * np.maximum(squared, 0.0)))


def plain_process(pool: Any, initial: Any, steps: int, length: float, noise: float) -> list[int]:
    """Pivoted Cholesky, one column a pick: each reads all rows made so far, once. Pool and test set in one array."""
    points, m = np.vstack([pool.X, pool.X_test]), len(pool.X)
    total = len(initial) + steps
    rows, variance = np.empty((total, len(points))), np.ones(len(points))
    mean, free = np.zeros(len(points)), np.ones(m, dtype=bool)
    picks: list[int] = []
    for t in range(total):
        j = int(initial[t]) if t < len(initial) else int(np.argmax(np.where(free, variance[:m], -1.0)))
        free[j] = False
        scale = np.sqrt(variance[j] + noise)
        row = (gaussian_kernel(points[j : j + 1], points, length)[0] - rows[:t, j] @ rows[:t]) / scale
        mean += row * (pool.y[j] - mean[j]) / scale
        variance -= row * row
        rows[t] = row
        float(np.mean((pool.y_test - mean[m:]) ** 2 + variance[m:]))
        picks.append(j)
    return picks[len(initial) :]


def process_step(pool: Any, labelled: Any, length: float, noise: float) -> int:
    """One step by scikit-learn: fit, score the pool, error on the test set."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    model = GaussianProcessRegressor(RBF(length), alpha=noise, optimizer=None).fit(pool.X[labelled], pool.y[labelled])
    deviation = model.predict(pool.X, return_std=True)[1]
    mean, spread = model.predict(pool.X_test, return_std=True)
    float(np.mean((pool.y_test - mean) ** 2 + spread**2))
    deviation[labelled] = -1.0
    return int(np.argmax(deviation))


def plain_ridge_step(pool: Any, labelled: Any, alpha: float, beta: float) -> int:
    """One step that recomputes posterior, all pool variances and the error on the test set."""
    phi, y = pool.X[labelled], pool.y[labelled]
    covariance = np.linalg.inv(alpha * np.eye(phi.shape[1]) + beta * phi.T @ phi)
    weights = beta * covariance @ (phi.T @ y)
    variance = np.einsum("ij,ij->i", pool.X @ covariance, pool.X)
    spread = np.einsum("ij,ij->i", pool.X_test @ covariance, pool.X_test)
    float(np.mean((pool.y_test - pool.X_test @ weights) ** 2 + spread))
    variance[labelled] = -1.0
    return int(np.argmax(variance))


def sklearn_logistic_step(pool: Any, labelled: Any, basis: Any) -> int:
    """One step by scikit-learn, with all that the learner gives: posterior, divergences, entropy, expected error."""
    from scipy.special import entr
    from sklearn.linear_model import LogisticRegression

    phi = basis.transform(pool.X[labelled])
    model = LogisticRegression(C=1.0, fit_intercept=False, max_iter=1000).fit(phi, pool.y[labelled])
    p = model.predict_proba(phi)[:, 1]
    precision = (phi * (p * (1.0 - p))[:, None]).T @ phi + np.eye(phi.shape[1])
    gaussian_divergences(precision, precision, model.coef_[0], model.coef_[0])
    score = entr(model.predict_proba(basis.transform(pool.X))).sum(axis=1)
    test = basis.transform(pool.X_test)
    variance = np.einsum("ij,ij->i", test @ np.linalg.inv(precision), test)
    expected_cross_entropy(test @ model.coef_[0], variance, pool.y_test)
    score[labelled] = -1.0
    return int(np.argmax(score))


def sklearn_softmax_step(pool: Any, labelled: Any, classes: int) -> int:
    """One step for many classes by scikit-learn: posterior, divergences, margins, and both losses on the test set.

    A class without a label has weights of 0, which is not what the prior says, but costs the same.
    """
    from sklearn.linear_model import LogisticRegression

    phi, J = np.column_stack([np.ones(len(labelled)), pool.X[labelled]]), pool.X.shape[1] + 1
    model = LogisticRegression(C=1.0, fit_intercept=False, max_iter=1000).fit(phi, pool.y[labelled])
    weights = np.zeros((classes, J))
    if len(model.classes_) > 2:
        weights[model.classes_] = model.coef_
    p = softmax(phi @ weights.T)
    curvature = np.einsum("nk,kl->nkl", p, np.eye(classes)) - p[:, :, None] * p[:, None]
    precision = np.einsum("nkl,ni,nj->kilj", curvature, phi, phi, optimize=True).reshape(classes * J, classes * J)
    precision += np.eye(classes * J)
    gaussian_divergences(precision, precision, weights.ravel(), weights.ravel())
    blocks = np.linalg.inv(precision).reshape(classes, J, classes, J)[np.arange(classes), :, np.arange(classes)]
    averaged = []
    for X in (pool.X, pool.X_test):
        points = np.column_stack([np.ones(len(X)), X])
        variance = np.einsum("mi,kij,mj->mk", points, blocks, points, optimize=True)
        averaged.append(softmax(points @ weights.T / np.sqrt(1.0 + np.pi / 8.0 * variance)))
    float(-np.log(averaged[1][np.arange(len(pool.y_test)), pool.y_test]).mean())
    test = np.column_stack([np.ones(len(pool.X_test)), pool.X_test])
    draws = np.random.default_rng(0).multivariate_normal(weights.ravel(), np.eye(classes * J), 32, method="cholesky")
    float(np.mean([np.log(softmax(test @ draw.reshape(classes, J).T)).mean() for draw in draws]))
    best = np.sort(averaged[0], axis=1)
    margin = best[:, -1] - best[:, -2]
    margin[labelled] = np.inf
    return int(np.argmin(margin))


def softmax(logits: Floats) -> Floats:
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def gaussian_divergences(A: Floats, B: Floats, a: Floats, b: Floats) -> tuple[float, float]:
    """Both KL divergences of two Gaussians by their precisions (here of one with itself: the cost is the same)."""
    spread, log_det = np.linalg.solve(A, B), np.linalg.slogdet(A)[1] - np.linalg.slogdet(B)[1]
    back, shift = np.linalg.solve(B, A), a - b
    there = 0.5 * float(np.trace(spread) - len(a) + log_det + shift @ B @ shift)
    return there, 0.5 * float(np.trace(back) - len(a) - log_det + shift @ A @ shift)


def expected_cross_entropy(mean: Floats, variance: Floats, y: Any) -> float:
    """By Gauss-Hermite with 20 nodes."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    logits = mean + np.sqrt(variance) * nodes[:, None]
    return float(np.mean(weights @ np.logaddexp(0.0, np.where(y == 1, -logits, logits)) / weights.sum()))
