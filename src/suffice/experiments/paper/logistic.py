"""The paper's logistic regression: as published, with a setting for each of its errata, and as it should be."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.pipeline import make_pipeline

from suffice.data.protocols import Experiment
from suffice.divergence import kl
from suffice.errors import SufficeError
from suffice.experiments.paper.labelling import label
from suffice.experiments.paper.splits import DataSplit
from suffice.linalg import solve_lower
from suffice.models import BayesianLogistic, RadialBasis
from suffice.models.predictive import hermite
from suffice.models.threads import one_thread
from suffice.posteriors import Gaussian
from suffice.special import Floats
from suffice.trace import Trace

_LEAST_INFORMATION: Final = 1e-12

Progress = Callable[[int, int], None]


def logistic_run(experiment: Experiment, split: DataSplit, *, progress: Progress | None = None) -> Trace:
    """Run a logistic regression: labels by entropy, one at a time.

    Args:
        experiment: What to run.
        split: The data.
        progress: Called now and then with the steps done and to do.
    """
    if experiment.protocol == "published":
        return _published_run(experiment, split, progress)
    basis, alpha = RadialBasis(experiment.centres, bandwidth=experiment.bandwidth), None
    if experiment.hyperparameters == "outside":
        placed = basis.fit(split.pool.inputs)
        alpha = BayesianLogistic().fit(placed.transform(split.outside.inputs), split.outside.target).alpha_
    model = make_pipeline(basis, BayesianLogistic(alpha, classes=(0, 1)))
    return label(model, experiment, split, progress)


class MostProbableWeights(NamedTuple):
    """Most probable weights, the intercept's first; and what the labels tell about them, without any prior."""

    weights: Floats
    information: Floats


def most_probable(features: Floats, labels: Floats, precision: Floats, start: Floats) -> MostProbableWeights:
    """Newton's method to the last digits, halving a step that goes too far; the authors' solver stops at 1e-4.

    Args:
        features: ``n x J``, a column of ones first.
        labels: ``n``, 0 or 1.
        precision: Prior precision of each weight, ``J``; that of the intercept is 0.
        start: Where to start, ``J``.

    Raises:
        SufficeError: All labels are of one class, so that the intercept has no most probable value.
    """
    if labels.min() == labels.max():
        raise SufficeError("all labels at hand are of one class, so the intercept grows for ever; take another seed")
    signs = 1.0 - 2.0 * labels

    def loss(weights: Floats) -> float:
        return float(np.logaddexp(0.0, signs * (features @ weights)).sum() + 0.5 * precision @ weights**2)

    weights, least = start, loss(start)
    for _ in range(200):
        p = expit(features @ weights)
        information = (features * (p * (1.0 - p))[:, None]).T @ features
        gradient = features.T @ (p - labels) + precision * weights
        # A trace of the identity keeps the system regular where all probabilities have gone to 0 or 1.
        ridge = np.diag(precision + _LEAST_INFORMATION)
        step = np.linalg.solve(information + ridge, gradient)
        while (following := loss(weights - step)) > least + 1e-12 * abs(least):
            step = 0.5 * step
        weights, least = weights - step, following
        if np.abs(step).max() <= 1e-9 * (1.0 + np.abs(weights).max()):
            break
    p = expit(features @ weights)
    return MostProbableWeights(weights, (features * (p * (1.0 - p))[:, None]).T @ features)


@one_thread()
def _published_run(experiment: Experiment, split: DataSplit, progress: Progress | None) -> Trace:
    """One pass over the pool for each label, ties to the lowest row, as in the authors' loop."""
    basis = RadialBasis(experiment.centres, bandwidth=experiment.bandwidth).fit(split.pool.inputs)
    pool, test = (_with_ones(basis.transform(part.inputs)) for part in (split.pool, split.test))
    C = experiment.inverse_precision or 1.0
    precision = np.append(0.0, np.full(pool.shape[1] - 1, 1.0 / C))
    order, target = list(map(int, split.initial)), np.asarray(split.pool.target, dtype=np.float64)
    features = np.empty((len(order) + experiment.step_count, pool.shape[1]))
    features[: len(order)] = pool[order]
    taken = np.zeros(len(pool), dtype=bool)
    taken[order] = True
    found = most_probable(pool[order], target[order], precision, np.zeros(pool.shape[1]))
    old, columns = _posterior(experiment, found, C), []
    for step in range(experiment.step_count):
        # The entropy is largest where the logit is closest to 0.
        distance = np.abs(pool @ found.weights)
        distance[taken] = np.inf
        pick = int(np.argmin(distance))
        taken[pick] = True
        features[len(order)] = pool[pick]
        order.append(pick)
        found = most_probable(features[: len(order)], target[order], precision, found.weights)
        new = _posterior(experiment, found, C)
        columns.append((kl(new, old), kl(old, new), _error(experiment, test, split.test.target, found, new)))
        old = new
        if progress is not None:
            progress(step + 1, experiment.step_count)
    new_old, old_new, error = np.array(columns).T
    first = len(split.initial)
    return Trace(
        initial=np.array(order[:first]),
        indices=np.array(order[first:]),
        n_labelled=np.arange(first + 1, len(order) + 1),
        kl_new_old=new_old,
        kl_old_new=old_new,
        error=error,
    )


def _with_ones(features: Floats) -> Floats:
    return np.column_stack([np.ones(len(features)), features])


def _posterior(experiment: Experiment, found: MostProbableWeights, C: float) -> Gaussian:
    """The posterior that divergences are computed from.

    Adding ``C`` where the prior precision is ``1 / C``, and leaving the intercept out, are the authors' errata; taking
    the information itself for the covariance is what the paper prints.
    """
    kept = slice(1 if experiment.intercept == "out" else 0, None)
    prior = np.full(len(found.weights), C if experiment.information == "C" else 1.0 / C)
    prior[0] = 0.0
    information = (found.information + np.diag(prior))[kept, kept]
    if experiment.covariance == "printed":
        return Gaussian(found.weights[kept], information)
    return Gaussian(found.weights[kept], precision=information)


def _error(experiment: Experiment, test: Floats, target: Any, found: MostProbableWeights, posterior: Gaussian) -> float:
    """Cross entropy on the test set, of one class or both, at one set of weights or as a mean over the posterior."""
    logits = test @ found.weights
    signs = 2.0 * np.asarray(target) - 1.0
    if experiment.loss == "expected":
        free = test[:, test.shape[1] - len(posterior.mean) :]
        by_precision = posterior.of == "precision"
        white = solve_lower(posterior.factor, free.T) if by_precision else posterior.factor.T @ free.T
        deviation = np.sqrt(np.einsum("ji,ji->i", white, white))
        nodes, weights = hermite(20)
        spread = logits[:, None] + deviation[:, None] * nodes
        return float((np.logaddexp(0.0, -signs[:, None] * spread) @ weights).mean())
    losses = np.logaddexp(0.0, -signs * logits)
    return float(losses.mean() if experiment.loss == "both" else (losses * (np.asarray(target) == 1)).mean())
