import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import kl
from suffice.divergence import dropout_contributions
from suffice.errors import InfiniteDivergenceError, InvalidValueError
from suffice.posteriors import DropoutLayer, DropoutPosterior
from tests.thoroughness import examples

KEEP = st.floats(0.05, 0.95)
SIGMA = st.floats(0.4, 2.5)


def monte_carlo(p: DropoutPosterior, q: DropoutPosterior, n: int = 20_000) -> tuple[float, float]:
    theta = p.sample(n, np.random.default_rng(0))
    ratio = p.log_density(theta) - q.log_density(theta)
    return float(ratio.mean()), float(ratio.std() / np.sqrt(n))


def network(rng: np.random.Generator, scale: float, keep: float, sigma: float) -> DropoutPosterior:
    return DropoutPosterior(
        [
            DropoutLayer(scale * rng.normal(size=(2, 3)), scale * rng.normal(size=2), keep=keep, sigma=sigma),
            DropoutLayer(scale * rng.normal(size=(1, 2)), keep=keep, sigma=sigma),
        ]
    )


@examples(150)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3, 1.0, 3.0]), KEEP, KEEP, SIGMA, SIGMA)
def test_the_bound_is_never_under_a_monte_carlo_divergence(
    seed: int, scale: float, p_keep: float, q_keep: float, p_sigma: float, q_sigma: float
) -> None:
    rng = np.random.default_rng(seed)
    p, q = network(rng, scale, p_keep, p_sigma), network(rng, scale, q_keep, q_sigma)
    estimate, error = monte_carlo(p, q)
    assert kl(p, q) >= estimate - 5 * error - 1e-9
    assert kl(p, q).kind == "bound"


def papers_general_form(p: DropoutLayer, q: DropoutLayer) -> float:
    s, inputs, outputs = p.sigma**2 / q.sigma**2, p.inputs, p.weight.shape[0]
    bernoulli = p.keep * np.log(p.keep / q.keep) + (1 - p.keep) * np.log((1 - p.keep) / (1 - q.keep))
    moved = p.keep * ((p.weight - q.weight) ** 2).sum() + ((p.bias - q.bias) ** 2).sum()
    spread = (1 + p.keep * inputs) * outputs / 2 * (s - np.log(s) - 1)
    return float(0.5 * (moved / q.sigma**2 + inputs * bernoulli) + spread)


def test_the_papers_general_form_falls_below_the_true_divergence_and_ours_equals_it() -> None:
    # With zero means the mixture is one Gaussian, so the divergence is exact: 5 weights and 1 bias.
    p, q = (DropoutLayer(np.zeros((1, 5)), [0.0], keep=0.5, sigma=s) for s in (1.5, 1.0))
    true = 6 * 0.5 * (2.25 - 1 - np.log(2.25))
    assert papers_general_form(p, q) < 0.9 * true
    assert kl(DropoutPosterior([p]), DropoutPosterior([q])) == pytest.approx(true)


def test_with_equal_sigma_and_keep_it_is_the_papers_reduced_form() -> None:
    rng = np.random.default_rng(0)
    M, N, a, b = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=4)
    p, q = (DropoutPosterior([DropoutLayer(w, v, keep=0.3, sigma=0.7)]) for w, v in ((M, a), (N, b)))
    expected = (0.3 * ((M - N) ** 2).sum() + ((a - b) ** 2).sum()) / (2 * 0.49)
    assert kl(p, q) == pytest.approx(expected)


def test_contributions_add_up_and_a_convolution_counts_by_channel() -> None:
    rng = np.random.default_rng(1)
    p, q = (
        DropoutPosterior(
            [
                DropoutLayer(rng.normal(size=(4, 2, 3, 3)), rng.normal(size=4), keep=k, sigma=s),
                DropoutLayer(rng.normal(size=(2, 5)), keep=k, sigma=s),
            ]
        )
        for k, s in ((0.4, 1.1), (0.5, 0.9))
    )
    parts = dropout_contributions(p, q)
    assert parts.shape == (2,)
    assert kl(p, q) == pytest.approx(parts.sum())
    estimate, error = monte_carlo(p, q, n=4000)
    assert kl(p, q) >= estimate - 5 * error


def test_zero_for_equals_only() -> None:
    rng = np.random.default_rng(0)
    p = network(rng, 1.0, 0.5, 1.0)
    assert kl(p, p) == 0.0
    for keep, sigma in ((0.5001, 1.0), (0.5, 1.0001)):
        q = DropoutPosterior([DropoutLayer(a.weight, a.bias, keep=keep, sigma=sigma) for a in p.layers])
        assert kl(p, q) > 0.0


def test_shapes_must_match_and_an_infinite_layer_is_named() -> None:
    p = DropoutPosterior([DropoutLayer([[1.0]]), DropoutLayer([[1.0, 2.0]], keep=0.5)])
    with pytest.raises(InvalidValueError, match="different shapes"):
        kl(p, DropoutPosterior([DropoutLayer([[1.0]])]))
    always = DropoutPosterior([DropoutLayer([[1.0]]), DropoutLayer([[1.0, 2.0]])])
    with pytest.raises(InfiniteDivergenceError, match=r"layer 1: KL is infinite, because keep is 0.5 .* 1.0"):
        kl(p, always)
    assert kl(always, p) == pytest.approx(2 * np.log(2))
