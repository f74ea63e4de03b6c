"""Draws as posteriors; those of ArviZ, PyMC and NumPyro have tests of their own."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.integrations.draws import posterior_draws

RNG = np.random.default_rng(0)


def test_the_divergence_of_two_gaussians() -> None:
    """The formula is the oracle."""
    p, q = ({"x": RNG.normal(mean, scale, size=(20_000, 1))} for mean, scale in ((0.0, 1.0), (0.5, 1.5)))
    exact = np.log(1.5) + (1.0 + 0.25) / (2 * 1.5**2) - 0.5
    for method in ("gaussian", "knn"):
        found = sf.kl(*(posterior_draws(each, method=method) for each in (p, q)))
        assert found == pytest.approx(exact, rel=0.15)
        assert found.kind == "estimate"


def test_logarithms_make_a_gaussian_fit_right() -> None:
    p, q = ({"s": np.exp(RNG.normal(mean, 1.0, size=20_000))} for mean in (0.0, 0.3))
    assert sf.kl(*(posterior_draws(each, log=["s"]) for each in (p, q))) == pytest.approx(0.045, rel=0.2)


def test_anything_with_samples() -> None:
    sampler = SimpleNamespace(
        get_samples=lambda: {"b": np.zeros((9, 2, 2)) + RNG.normal(size=(9, 2, 2)), "a": range(9)}
    )
    found = posterior_draws(sampler)
    assert found.samples.shape == (9, 5)
    assert found.samples[:, 0].tolist() == list(range(9))


@pytest.mark.parametrize(
    ("result", "options", "message"),
    [
        ({"a": [1.0, 2.0, 3.0]}, {"variables": ["b"]}, "no variable 'b' in result; there are a"),
        ({"a": [1.0, 2.0, 3.0]}, {"log": ["b"]}, "no variable 'b'"),
        ({"a": [1.0, 2.0, 3.0]}, {"variables": []}, "at least one variable"),
        ({"a": [1.0, 0.0, 3.0]}, {"log": ["a"]}, "not above 0"),
        ({"a": [1.0, np.nan, 3.0]}, {}, "not finite"),
        ({"a": 3.0}, {}, "an axis of draws"),
        ({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0]}, {}, "same number of draws"),
        ({"a": [1.0, 2.0]}, {}, "needs at least 3 draws"),
        ({"a": [1.0, 2.0, 3.0]}, {"method": "exact"}, "method must be"),
    ],
)
def test_bad_values(result: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        posterior_draws(result, **options)


@pytest.mark.parametrize(
    ("result", "options", "message"),
    [
        (np.zeros((5, 2)), {}, "a mapping of names to arrays, not ndarray"),
        (SimpleNamespace(get_samples=lambda: [1, 2]), {}, "must return a mapping"),
        ({"a": [1.0, 2.0, 3.0]}, {"variables": "a"}, "variables must be a list of names, not 'a'"),
        ({"a": ["x", "y", "z"]}, {}, "a must be a real number"),
    ],
)
def test_bad_types(result: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        posterior_draws(result, **options)
