"""Draws in the containers of ArviZ."""

import numpy as np
import pytest

import suffice as sf
from suffice.errors import InvalidValueError
from suffice.integrations.draws import posterior_draws
from tests.integrations.snippets import run_snippet

az = pytest.importorskip("arviz")

RNG = np.random.default_rng(0)
VALUES = {"b": RNG.normal(size=(3, 400, 2)), "a": RNG.lognormal(size=(3, 400))}


def test_the_snippet() -> None:
    verdict = run_snippet("with_arviz")["verdict"]
    assert verdict.stop
    assert "Nothing is guaranteed" in str(verdict.certificate)


def test_chains_are_put_together_and_variables_sorted() -> None:
    data = az.from_dict(posterior=VALUES)
    expected = np.column_stack([VALUES["a"].reshape(-1), VALUES["b"].reshape(-1, 2)])
    np.testing.assert_array_equal(posterior_draws(data).samples, expected)
    np.testing.assert_array_equal(posterior_draws(data.posterior).samples, expected)
    np.testing.assert_array_equal(posterior_draws(data, ["a"], log=["a"]).samples[:, 0], np.log(expected[:, 0]))
    assert sf.kl(posterior_draws(data), posterior_draws(data)) == pytest.approx(0.0, abs=1e-9)


def test_bad_containers() -> None:
    with pytest.raises(InvalidValueError, match="no variable 'c' in result; there are a, b"):
        posterior_draws(az.from_dict(posterior=VALUES), ["c"])
    with pytest.raises(InvalidValueError, match="must have the dimensions chain and draw"):
        posterior_draws(az.from_dict(posterior=VALUES).posterior.mean("chain"))
