"""The interval of the share of a class from a random sample."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from suffice.session.session_estimates import share_interval
from tests.thoroughness import examples


@pytest.mark.parametrize(("hits", "size"), [(0, 1), (0, 20), (2, 40), (40, 40), (311, 2000)])
def test_the_ends_are_quantiles_of_a_beta_distribution(hits: int, size: int) -> None:
    assert share_interval(hits, size) == pytest.approx(beta(hits + 0.5, size - hits + 0.5).interval(0.9), rel=1e-9)


@given(st.integers(0, 500), st.integers(0, 500))
@examples(100)
def test_the_complement_has_the_mirrored_interval(hits: int, misses: int) -> None:
    low, high = share_interval(hits, hits + misses)
    assert 0.0 <= low < high <= 1.0
    assert share_interval(misses, hits + misses) == pytest.approx((1.0 - high, 1.0 - low), abs=1e-9)


def test_the_interval_holds_90_percent_of_samples_on_average_over_shares() -> None:
    # Exact: all numbers of hits of a sample of 40, at shares from 0.5 to 20 %.
    shares, ends = np.linspace(0.005, 0.2, 79), np.array([share_interval(hits, 40) for hits in range(41)])
    inside = (ends[:, :1] <= shares) & (shares <= ends[:, 1:])
    held = (binom(40, shares).pmf(np.arange(41)[:, None]) * inside).sum(axis=0)
    assert held.mean() == pytest.approx(0.9, abs=0.02)
    assert held.min() > 0.8
