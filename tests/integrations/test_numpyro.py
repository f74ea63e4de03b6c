"""Draws of NumPyro."""

import pytest

from tests.integrations.snippets import run_snippet

pytest.importorskip("numpyro")


def test_the_snippet() -> None:
    variables = run_snippet("with_numpyro")
    verdict, new = variables["verdict"], variables["new"]
    assert verdict.ready
    assert verdict.n_labelled == 80
    # Logarithm of the noise, and the slope.
    assert new.samples.shape[1] == 2
    assert new.samples.mean(axis=0) == pytest.approx([0.0, 1.5], abs=0.35)
