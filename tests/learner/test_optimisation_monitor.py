"""OptimisationMonitor against dense matrices, fine grids and itself."""

import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import suffice as sf
from suffice.criteria import confidence_factor
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError
from suffice.learner import OptimisationMonitor
from suffice.learner.optimisation_monitor import _Space
from suffice.models import BayesianRidge, GaussianProcess

Floats = NDArray[np.float64]


def data(n: int = 14, width: int = 1, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, width))
    return X, 3.0 * np.sin(5.0 * X.sum(axis=1)) + 10.0 + 0.1 * rng.standard_normal(n)


def fitted(n: int, **options: Any) -> GaussianProcess:
    X, y = data(**options)
    return GaussianProcess().fit(X[:n], y[:n])


def test_the_numbers_are_those_of_a_fine_grid() -> None:
    X, y = data()
    model = GaussianProcess(length_scale=0.3, noise=0.05, normalize_y=True).fit(X, y)
    monitor = OptimisationMonitor([(0.0, 1.0)], beta_factor=0.5)
    monitor.update(model)
    (step,) = monitor.steps
    grid = np.linspace(0.0, 1.0, 4001)[:, None]
    mean, variance = model.latent(grid)
    at, of = model.latent(X)
    root = math.sqrt(0.5 * confidence_factor(1, 14, 0.1))
    bound = (at + root * np.sqrt(of)).min() - (mean - root * np.sqrt(variance)).min()
    assert step.regret_bound == pytest.approx(bound, rel=1e-3)
    assert step.noise_deviation == pytest.approx(math.sqrt(0.05) * y.std())
    old = model.posterior_after(X[:-1], y[:-1])
    assert step.kl_new_old == pytest.approx(sf.kl(model.posterior, old), rel=1e-8)
    assert step.kl_old_new == pytest.approx(sf.kl(old, model.posterior), rel=1e-8)


@pytest.mark.parametrize("width", [2, 4])
def test_the_search_finds_the_least_lower_bound(width: int) -> None:
    X, y = data(25, width, seed=3)
    model = GaussianProcess(length_scale=0.4, noise=0.02, normalize_y=True).fit(X, y)
    monitor = OptimisationMonitor([(0.0, 1.0)] * width)
    monitor.update(model)
    points = np.random.default_rng(5).random((40_000, width))
    mean, variance = model.latent(points)
    at, of = model.latent(X)
    root = math.sqrt(0.2 * confidence_factor(width, 25, 0.1))
    sampled = (at + root * np.sqrt(of)).min() - (mean - root * np.sqrt(variance)).min()
    found = monitor.steps[-1].regret_bound
    assert found is not None
    # A local search is better than many random points.
    assert found >= sampled - 1e-3 * abs(sampled)


def test_several_evaluations_are_judged_one_by_one() -> None:
    X, y = data()
    model = GaussianProcess(length_scale=0.3, noise=0.05, normalize_y=False).fit(X, y)
    together, single = (OptimisationMonitor([(0.0, 1.0)]) for _ in range(2))
    together.update(model.at(X[:9], y[:9], model.prior_, 14))
    together.update(model)
    for n in range(9, 15):
        single.update(model.at(X[:n], y[:n], model.prior_, 14))
    assert [step.n_labelled for step in together.steps] == list(range(9, 15))
    for one, other in zip(together.steps, single.steps, strict=True):
        assert one.regret_change == pytest.approx(other.regret_change, rel=1e-9)
        assert one.regret_bound == pytest.approx(other.regret_bound, rel=1e-9)


def test_a_maximum_is_the_minimum_of_the_negative() -> None:
    X, y = data()
    monitors = [OptimisationMonitor([(0.0, 1.0)], direction=each) for each in ("minimize", "maximize")]
    for monitor, sign in zip(monitors, (1.0, -1.0), strict=True):
        monitor.update(GaussianProcess(length_scale=0.3, noise=0.05).fit(X, sign * y))
    for name in ("regret_change", "regret_change_noise", "regret_bound", "noise_deviation"):
        assert getattr(monitors[0].steps[0], name) == pytest.approx(getattr(monitors[1].steps[0], name), rel=1e-9)


def test_a_model_of_scikit_learn() -> None:
    X, y = data()
    kernel = ConstantKernel(2.0) * RBF(0.3) + WhiteKernel(0.05)
    model = GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True).fit(X, y)
    monitor = OptimisationMonitor([(0.0, 1.0)])
    monitor.update(model)
    assert monitor.steps[0].noise_deviation == pytest.approx(math.sqrt(0.05) * y.std())
    own = OptimisationMonitor([(0.0, 1.0)])
    own.update(sf.posteriors.as_posterior(model))
    assert own.steps == monitor.steps


def test_repeated_points_are_possible() -> None:
    X = np.array([[0.2], [0.8], [0.2], [0.2]])
    monitor = OptimisationMonitor([(0.0, 1.0)])
    model = GaussianProcess(length_scale=0.3, noise=1e-4, normalize_y=False)
    monitor.update(model.fit(X[:2], np.array([0.1, 0.9])))
    monitor.update(model.fit(X, np.array([0.1, 0.9, 0.1, 0.1])))
    changes = [step.regret_change for step in monitor.steps]
    assert all(change is not None and math.isfinite(change) for change in changes)


def test_a_search_that_repeats_itself_changes_nothing_but_is_not_done() -> None:
    """The weakness that the documentation of RegretChange names."""
    X = np.array([[0.1], [0.9], *[[0.5]] * 10])
    y = np.array([1.0, 1.0, *[0.5] * 10])
    monitor = OptimisationMonitor([(0.0, 1.0)])
    model = GaussianProcess(length_scale=0.05, noise=1e-3, normalize_y=False)
    monitor.update(model.fit(X[:2], y[:2]))
    monitor.update(model.fit(X, y))
    first, last = monitor.steps[0], monitor.steps[-1]
    assert first.regret_change is not None
    assert last.regret_change is not None
    assert last.regret_bound is not None
    assert last.regret_change < 0.1 * first.regret_change
    assert last.regret_bound > 1.0


def test_a_state_continues_with_the_same_verdicts() -> None:
    rule = sf.RegretChange(share=0.5, calibration=3)
    whole = OptimisationMonitor([(0.0, 1.0)], rule)
    part = OptimisationMonitor([(0.0, 1.0)], rule)
    for n in range(5, 15):
        whole.update(fitted(n))
        if n == 9:
            part = OptimisationMonitor.from_state(json.loads(json.dumps(part.state_dict())), [(0.0, 1.0)])
        part.update(fitted(n))
    assert part.verdicts == whole.verdicts[4:]
    assert repr(part).startswith("OptimisationMonitor(RegretChange: 14 evaluations")


def test_rules_of_divergences_and_counts_are_possible() -> None:
    monitor = OptimisationMonitor([(0.0, 1.0)], sf.ErrorStability(0.1, calibration=2) | sf.Budget(10))
    for n in range(5, 12):
        monitor.update(fitted(n))
    assert monitor.verdict.stop


def test_no_new_evaluation_and_too_few() -> None:
    monitor = OptimisationMonitor([(0.0, 1.0)])
    assert not monitor.update(fitted(1)).ready
    first = monitor.update(fitted(5))
    assert [step.n_labelled for step in monitor.steps] == [2, 3, 4, 5]
    assert monitor.update(fitted(5)) is first
    with pytest.raises(InvalidValueError, match="fitted on 4 evaluations, and 5 are known"):
        monitor.update(fitted(4))


def test_categories_stay_indicators() -> None:
    space = _Space([(0.0, 1.0)] * 5, [[1, 2, 3]])
    rng = np.random.default_rng(0)
    points = space.spread(200, rng)
    near = space.near(points, 0.1, rng)
    for found in (points, near):
        assert set(np.unique(found[:, 1:4])) == {0.0, 1.0}
        assert (found[:, 1:4].sum(axis=1) == 1.0).all()
    assert space.dimension == 3
    assert (near[:, 1:4] != points[:, 1:4]).any()
    # Each of 200 equal parts of the range of a number has one point.
    assert sorted((points[:, 0] * 200).astype(int)) == list(range(200))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bounds": [0.0, 1.0]}, "bounds must be D x 2"),
        ({"bounds": [(1.0, 1.0)]}, "the lowest value of each input below the highest"),
        ({"bounds": [(0.0, math.inf)]}, "bounds must be finite"),
        ({"direction": "down"}, "direction must be 'minimize' or 'maximize'"),
        ({"delta": 1.0}, "delta must be a number between 0 and 1"),
        ({"beta_factor": 0.0}, "beta_factor must be a number above 0"),
        ({"points": 0}, "points must be a whole number"),
        ({"one_hot": [[0], [0]]}, "each column in one group"),
        ({"one_hot": [[3]]}, "one_hot holds column 3"),
        ({"one_hot": [[]]}, "groups of at least one column"),
    ],
)
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        OptimisationMonitor(**({"bounds": [(0.0, 1.0)]} | options))


def test_bad_rules_models_and_states() -> None:
    with pytest.raises(MissingInputError, match="EntropyMax requires pool_max_entropy"):
        OptimisationMonitor([(0.0, 1.0)], sf.EntropyMax())
    with pytest.raises(InvalidTypeError, match="rule must be a stopping rule"):
        OptimisationMonitor([(0.0, 1.0)], "RegretBound")  # type: ignore[arg-type]
    monitor = OptimisationMonitor([(0.0, 1.0)])
    X, y = data()
    with pytest.raises(InvalidTypeError, match="model must be a fitted Gaussian process"):
        monitor.update(BayesianRidge().fit(X, y))
    with pytest.raises(InvalidValueError, match="the model has 2 inputs, and bounds has 1 rows"):
        monitor.update(GaussianProcess().fit(np.hstack([X, X]), y))
    with pytest.raises(InvalidValueError, match="state must be the result of"):
        OptimisationMonitor.from_state({}, [(0.0, 1.0)])
    with pytest.raises(InvalidValueError, match="rule is in the state"):
        OptimisationMonitor.from_state(monitor.state_dict(), [(0.0, 1.0)], rule=sf.RegretBound())
