"""The paper's regressions: hyper-parameters against scikit-learn and plain iterations, and which labels they see."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.pipeline import make_pipeline

from suffice.models import BayesianRidge, GaussianProcess, RadialBasis
from suffice.models.regression import log_marginal
from suffice.numerics import Floats
from suffice.trace import Trace
from suffice_research.data.protocols import CORRECTED, PUBLISHED, Experiment
from suffice_research.data.set_readers import Samples
from suffice_research.paper import experiments
from suffice_research.paper.experiments import DataSplit, label, published_process, published_ridge, regression_run

FIELDS = ("initial", "indices", "n_labelled", "kl_new_old", "kl_old_new", "error")


def samples(n: int, seed: int, noise: float = 0.3) -> Samples:
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n, 2))
    target = np.sin(inputs[:, 0]) + 0.5 * inputs[:, 1] + noise * rng.normal(size=n)
    return Samples(inputs, (target - target.mean()) / target.std())


def small_split(seed: int = 0) -> DataSplit:
    initial = np.random.default_rng(seed).permutation(90)[:10]
    return DataSplit(samples(40, seed + 100), samples(90, seed + 200), samples(70, seed + 300), initial)


# ------------------------------------------------------------------------------------- as the authors learn them


def by_sklearn(pool: Samples, floor: float) -> GaussianProcessRegressor:
    kernel = RBF(1.0, (1e-3, 1e3)) + WhiteKernel(1.0, (floor, 1e3))
    with warnings.catch_warnings():
        # It warns where it ends at a bound, which is meant here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianProcessRegressor(kernel, alpha=0.0).fit(*pool)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("noise", "floor"), [(0.3, 1e-3), (0.05, 1e-3), (0.05, 1e-1)])
def test_the_process_is_that_of_scikit_learn(seed: int, noise: float, floor: float) -> None:
    pool = samples(120, seed, noise)
    model = by_sklearn(pool, floor)
    length, found = published_process(replace(PUBLISHED["gpr/protein"], noise_floor=floor), pool)
    assert length == pytest.approx(model.kernel_.k1.length_scale, rel=2e-3)
    assert found == pytest.approx(model.kernel_.k2.noise_level, rel=2e-3)
    assert found >= floor * (1 - 1e-9)
    ours = model.log_marginal_likelihood(np.log([length, found]))
    assert ours >= model.log_marginal_likelihood_value_ - 1e-4


def test_the_bound_holds_where_there_is_less_noise() -> None:
    pool = samples(120, 0, 0.01)
    free, bound = (published_process(replace(PUBLISHED["gpr/protein"], noise_floor=at), pool) for at in (1e-3, 1e-1))
    assert free[1] < 0.05
    assert bound[1] == pytest.approx(1e-1, rel=1e-9)


def test_the_process_sees_the_first_1000_labels_of_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, seen = samples(1010, 1), []

    def few(X: Floats, y: Floats, length_scale: Floats, noise: float) -> Any:
        # What it is asked for is noted; some of it is enough for an answer, and quicker.
        seen.append((X.tolist(), y.tolist()))
        return log_marginal(X[-60:], y[-60:], length_scale, noise)

    monkeypatch.setattr(experiments, "log_marginal", few)
    found = published_process(PUBLISHED["gpr/protein"], pool)
    assert len(seen) > 3
    assert all(each == (pool.inputs[:1000].tolist(), pool.target[:1000].tolist()) for each in seen)
    # Labels beyond do not matter, and the thousandth does.
    target = pool.target.copy()
    target[1000:] = 77.0
    assert published_process(PUBLISHED["gpr/protein"], Samples(pool.inputs, target)) == found
    target[999] = 7.0
    assert published_process(PUBLISHED["gpr/protein"], Samples(pool.inputs, target)) != found


def plain_iterations(features: Floats, y: Floats, number: int = 10) -> tuple[float, float]:
    """Some of the paper's iterations, with an inverse and eigenvalues each time."""
    alpha, beta = 1.0, 0.1
    for _ in range(number):
        information = beta * features.T @ features
        mean = beta * np.linalg.inv(information + alpha * np.eye(features.shape[1])) @ features.T @ y
        values = np.linalg.eigvalsh(information)
        tau = float(np.sum(values / (values + alpha)))
        alpha = tau / float(mean @ mean)
        beta = (len(y) - tau) / float(np.sum((y - features @ mean) ** 2))
    return alpha, beta


def bumps(inputs: Floats, pool: Floats, experiment: Experiment) -> Floats:
    centres = np.linspace(pool.min(), pool.max(), experiment.centres)
    width = experiment.bandwidth * (centres[1] - centres[0])
    columns = [np.exp(-((inputs[:, d] - c) ** 2) / (2 * width**2)) for d in range(inputs.shape[1]) for c in centres]
    return np.column_stack(columns)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("steps", [40, 150])
def test_the_ridge_is_that_of_ten_plain_iterations(seed: int, steps: int) -> None:
    experiment, pool = replace(PUBLISHED["brr/protein"], steps=steps), samples(200, seed)
    basis = RadialBasis(10, bandwidth=0.5).fit(pool.inputs)
    found = published_ridge(experiment, pool, basis)
    expected = plain_iterations(bumps(pool.inputs[:steps], pool.inputs, experiment), pool.target[:steps])
    assert tuple(found) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("steps", "seed"), [(60, 1), (60, 2), (30, 1)])
def test_the_ridge_is_that_of_the_fixed_point_where_no_number_is_set(steps: int, seed: int) -> None:
    # Much noise, so that ten iterations are not enough.
    experiment, pool = replace(PUBLISHED["brr/protein"], steps=steps, iterations=None), samples(200, seed, 1.0)
    basis = RadialBasis(10, bandwidth=0.5).fit(pool.inputs)
    found, ten = (published_ridge(replace(experiment, iterations=most), pool, basis) for most in (None, 10))
    features, y = bumps(pool.inputs[:steps], pool.inputs, experiment), pool.target[:steps]
    assert tuple(found) == pytest.approx(plain_iterations(features, y, 400), rel=1e-6)
    assert tuple(ten) == pytest.approx(plain_iterations(features, y, 10), rel=1e-8)
    assert abs(ten.alpha / found.alpha - 1.0) > 1e-4


def test_the_ridge_sees_as_many_labels_as_there_are_steps() -> None:
    experiment, pool = replace(PUBLISHED["brr/protein"], steps=50), samples(200, 3)
    basis, target = RadialBasis(10, bandwidth=0.5).fit(pool.inputs), pool.target.copy()
    target[50:] = 77.0
    beyond = published_ridge(experiment, Samples(pool.inputs, target), basis)
    assert published_ridge(experiment, pool, basis) == beyond
    target[49] = 7.0
    assert published_ridge(experiment, Samples(pool.inputs, target), basis) != beyond


def dense_run(kernel: Any, noise: float, split: DataSplit, steps: int) -> dict[str, Any]:
    """Greedy by latent variance, with the whole posterior computed afresh for every label."""
    pool, test, y = split.pool.inputs, split.test.inputs, split.pool.target
    bought: list[int] = split.initial.tolist()
    found: dict[str, Any] = {name: [] for name in ("indices", "kl_new_old", "kl_old_new", "error")}

    def at(inputs: Floats, rows: list[int]) -> tuple[Floats, Floats]:
        gain = np.linalg.solve(kernel(pool[rows], pool[rows]) + noise * np.eye(len(rows)), kernel(pool[rows], inputs))
        return gain.T @ y[rows], np.diag(kernel(inputs, inputs)) - np.sum(kernel(pool[rows], inputs) * gain, axis=0)

    for _ in range(steps):
        mean, variance = at(pool, bought)
        pick = max((row for row in range(len(pool)) if row not in bought), key=lambda row: variance[row])
        s, gap = float(variance[pick]), float(y[pick] - mean[pick])
        found["kl_old_new"].append(0.5 * (s / noise - np.log1p(s / noise) + s / noise * gap**2 / (s + noise)))
        shrunk = np.log1p(s / noise) - s / (s + noise)
        found["kl_new_old"].append(0.5 * (shrunk + s * gap**2 / (s + noise) ** 2))
        bought.append(pick)
        mean, variance = at(test, bought)
        found["indices"].append(pick)
        found["error"].append(np.mean((split.test.target - mean) ** 2) + np.mean(variance))
    return found


@pytest.mark.parametrize("model", ["gpr", "brr"])
@pytest.mark.parametrize("seed", range(2))
def test_a_published_run_is_that_of_the_formulas(model: str, seed: int) -> None:
    experiment, split = replace(PUBLISHED[f"{model}/protein"], steps=20), small_split(seed)
    if model == "gpr":
        length, noise = published_process(experiment, split.pool)

        def kernel(a: Floats, b: Floats) -> Any:
            return np.exp(-((a[:, None] - b[None]) ** 2).sum(axis=-1) / (2 * length**2))
    else:
        alpha, beta = plain_iterations(
            bumps(split.pool.inputs[:20], split.pool.inputs, experiment), split.pool.target[:20]
        )
        noise = 1.0 / beta

        def kernel(a: Floats, b: Floats) -> Any:
            return bumps(a, split.pool.inputs, experiment) @ bumps(b, split.pool.inputs, experiment).T / alpha

    trace, expected = regression_run(experiment, split), dense_run(kernel, noise, split, 20)
    assert trace.initial.tolist() == split.initial.tolist()
    assert trace.indices.tolist() == expected["indices"]
    for name in ("kl_new_old", "kl_old_new", "error"):
        np.testing.assert_allclose(getattr(trace, name), expected[name], rtol=1e-6)


# ---------------------------------------------------------------------------------- which labels a run depends on


def corrected(model: str, arm: Any) -> Experiment:
    return replace(CORRECTED[f"{model}/protein"], steps=25, hyperparameters=arm)


def unbought(trace: Trace, rows: int) -> Any:
    return np.setdiff1d(np.arange(rows), np.concatenate([trace.initial, trace.indices]))


def with_labels(split: DataSplit, rows: Any, seed: int = 9) -> DataSplit:
    """The same pool with other labels in some rows, of the same kind but in other places, and ten times larger."""
    target = split.pool.target.copy()
    target[rows] = 10.0 * np.random.default_rng(seed).permutation(target[rows])
    return split._replace(pool=Samples(split.pool.inputs, target))


def same(first: Trace, second: Trace) -> bool:
    equal = all(getattr(first, name).tolist() == getattr(second, name).tolist() for name in FIELDS)
    return equal and len(first.relearned) == len(second.relearned)


@pytest.mark.parametrize("model", ["gpr", "brr"])
@pytest.mark.parametrize("arm", ["bought", "outside"])
def test_labels_that_were_not_bought_do_not_matter(model: str, arm: str) -> None:
    split = small_split()
    first = regression_run(corrected(model, arm), split)
    rest = unbought(first, 90)
    assert len(rest) == 90 - 10 - 25
    second = regression_run(corrected(model, arm), with_labels(split, rest))
    assert same(first, second)
    for a, b in zip(first.relearned, second.relearned, strict=True):
        assert (a.step, a.kl_new_old.tolist(), a.kl_old_new.tolist()) == (
            b.step,
            b.kl_new_old.tolist(),
            b.kl_old_new.tolist(),
        )
    # The check has teeth: other values of two bought labels are seen.
    assert not same(first, regression_run(corrected(model, arm), with_labels(split, first.indices[:2])))


@pytest.mark.parametrize("model", ["gpr", "brr"])
def test_the_published_runs_do_see_labels_that_were_not_bought(model: str) -> None:
    experiment, split = replace(PUBLISHED[f"{model}/protein"], steps=25), small_split()
    first = regression_run(experiment, split)
    assert not same(first, regression_run(experiment, with_labels(split, unbought(first, 90))))


@pytest.mark.parametrize("model", ["gpr", "brr"])
def test_only_one_arm_sees_the_labels_outside(model: str) -> None:
    split = small_split()
    other = split._replace(
        outside=Samples(split.outside.inputs, np.random.default_rng(0).permutation(split.outside[1]))
    )
    for arm, alike in (("bought", True), ("outside", False)):
        first, second = (regression_run(corrected(model, arm), each) for each in (split, other))
        assert same(first, second) is alike


@pytest.mark.parametrize("model", ["gpr", "brr"])
def test_the_arm_outside_learns_from_nothing_else(model: str) -> None:
    # Picks by variance depend on the hyper-parameters alone, so all the pool's labels may change.
    split = small_split()
    first = regression_run(corrected(model, "outside"), split)
    second = regression_run(corrected(model, "outside"), with_labels(split, np.arange(90)))
    assert first.indices.tolist() == second.indices.tolist()
    assert first.error.tolist() != second.error.tolist()
    assert first.relearned == second.relearned == ()


@pytest.mark.parametrize("model", ["gpr", "brr"])
def test_the_target_is_standardised_once(model: str) -> None:
    # By the protocol, and not again by the labels that a model happens to have: these are far from standardised.
    split = small_split()
    bought = with_labels(split, np.arange(90))
    experiment = corrected(model, "bought")

    def own(**options: Any) -> Any:
        if model == "gpr":
            return GaussianProcess(**options, regularize=False)
        basis = RadialBasis(experiment.centres, bandwidth=experiment.bandwidth)
        return make_pipeline(basis, BayesianRidge(**options, fit_intercept=False, regularize=False))

    found = regression_run(experiment, bought)
    assert same(found, label(own(normalize_y=False), experiment, bought, None))
    assert not same(found, label(own(), experiment, bought, None))


def test_bought_labels_are_learned_from_again_and_again() -> None:
    trace = regression_run(corrected("gpr", "bought"), small_split())
    assert len(trace.relearned) >= 1
    assert trace.relearned[0].step < 25


@pytest.mark.parametrize("model", ["gpr", "brr"])
def test_as_many_steps_as_the_record_says(model: str) -> None:
    told: list[tuple[int, int]] = []
    trace = regression_run(corrected(model, "bought"), small_split(), progress=lambda *done: told.append(done))
    assert len(trace) == 25
    assert told[-1] == (25, 25)
    assert len({*trace.initial.tolist(), *trace.indices.tolist()}) == 35
