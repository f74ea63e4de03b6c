"""The paper's regressions: a Gaussian process, and ridge regression on a radial basis."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from scipy.optimize import minimize
from sklearn.pipeline import make_pipeline

from suffice.data.protocols import Experiment
from suffice.data.samples import Samples
from suffice.experiments.paper.labelling import label
from suffice.experiments.paper.splits import DataSplit
from suffice.models import BayesianRidge, GaussianProcess, RadialBasis
from suffice.models.evidence import RidgeScales, learn_ridge, log_marginal
from suffice.models.threads import one_thread
from suffice.special import Floats
from suffice.trace import Trace

#: Labels that the authors learn the process's hyper-parameters from, and the bounds that they set.
_LEARNED_FROM: Final = 1000
_LENGTHS: Final = (1e-3, 1e3)
_MOST_NOISE: Final = 1e3
_MOST_ITERATIONS: Final = 1000


def regression_run(
    experiment: Experiment, split: DataSplit, *, progress: Callable[[int, int], None] | None = None
) -> Trace:
    """Run a regression: labels by variance, one at a time.

    Args:
        experiment: What to run.
        split: The data.
        progress: Called now and then with the steps done and to do.
    """
    build = _process if experiment.model == "gpr" else _ridge
    return label(build(experiment, split), experiment, split, progress)


def _process(experiment: Experiment, split: DataSplit) -> Any:
    if experiment.hyperparameters == "bought":
        return GaussianProcess(normalize_y=False)
    if experiment.hyperparameters == "outside":
        learned = GaussianProcess(normalize_y=False).fit(*split.outside).prior_
        return GaussianProcess(length_scale=learned.kernel.length_scale, noise=learned.noise)
    length_scale, noise = published_process(experiment, split.pool)
    return GaussianProcess(length_scale, noise)


def published_process(experiment: Experiment, pool: Samples) -> tuple[float, float]:
    """Length scale and noise as the authors learn them: from the first 1000 labels of the pool, within bounds.

    One climb from (1, 1); the authors start five more at random, which found nothing better on their seed.
    """
    X, y = (values[:_LEARNED_FROM] for values in pool)
    limits = np.log([_LENGTHS, (experiment.noise_floor or _LENGTHS[0], _MOST_NOISE)])

    def loss(theta: Floats) -> tuple[float, Floats]:
        found = log_marginal(X, y, np.exp(theta[:1]), float(np.exp(theta[1])))
        return -found.value, -found.gradient

    with one_thread():
        found = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=limits, options={"gtol": 1e-6})
    length, noise = np.exp(found.x)
    return float(length), float(noise)


def _ridge(experiment: Experiment, split: DataSplit) -> Any:
    basis = RadialBasis(experiment.centres, bandwidth=experiment.bandwidth)
    if experiment.hyperparameters == "bought":
        return make_pipeline(basis, BayesianRidge(normalize_y=False))
    # The inputs of the whole pool are known; their labels are not.
    placed = basis.fit(split.pool.inputs)
    if experiment.hyperparameters == "outside":
        learned = BayesianRidge(normalize_y=False).fit(placed.transform(split.outside.inputs), split.outside.target)
        return make_pipeline(basis, BayesianRidge(learned.prior_.alpha, learned.prior_.beta))
    return make_pipeline(basis, BayesianRidge(*published_ridge(experiment, split.pool, placed)))


def published_ridge(experiment: Experiment, pool: Samples, basis: RadialBasis) -> RidgeScales:
    """Precisions as the authors learn them: by the evidence of as many labels of the pool as there are steps."""
    X, y = (values[: experiment.step_count] for values in pool)
    start = RidgeScales(alpha=1.0, beta=0.1)
    features, most = basis.transform(X), experiment.iterations or _MOST_ITERATIONS
    return learn_ridge(features, y, start, fixed=(False, False), iterations=most)
