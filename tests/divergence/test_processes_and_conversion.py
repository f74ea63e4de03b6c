import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge

from suffice import ErrorStability, Step, kl
from suffice.divergence import batch, one_observation
from suffice.errors import InvalidValueError
from suffice.posteriors import Gaussian, GaussianProcessPosterior, as_posterior

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(14, 2)), RNG.normal(size=14)
NOISE = 0.3


def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * ((a[:, None] - b[None]) ** 2).sum(-1)))


def process(rows: "slice | list[int]") -> GaussianProcessPosterior:
    return GaussianProcessPosterior(X[rows], Y[rows], noise=NOISE, kernel=kernel)


def dense(p_rows: list[int], q_rows: list[int]) -> float:
    """Lemma 3: the divergence of the values at all observed points, as dense Gaussians."""
    union = sorted({*p_rows, *q_rows})
    sides = []
    for rows in (p_rows, q_rows):
        K = kernel(X[union], X[rows])
        gain = K @ np.linalg.inv(kernel(X[rows], X[rows]) + NOISE * np.eye(len(rows)))
        sides.append(Gaussian(gain @ Y[rows], kernel(X[union], X[union]) - gain @ K.T))
    return kl(*sides)


@pytest.mark.parametrize(
    ("p_rows", "q_rows"),
    [
        (range(6), range(5)),
        (range(5), range(6)),
        (range(9), range(5)),
        (range(5), range(5, 8)),
        ([0, 1, 2, 5], [2, 1, 6, 7]),
    ],
    ids=["one more", "one less", "batch", "disjoint", "overlapping"],
)
def test_process_kl_equals_dense_gaussians(p_rows: range, q_rows: range) -> None:
    p, q = list(p_rows), list(q_rows)
    assert kl(process(p), process(q)) == pytest.approx(dense(p, q), rel=1e-6)


def test_process_kl_equals_the_closed_forms() -> None:
    old, new = process(slice(0, 10)), process(slice(0, 11))
    mean, covariance = old.latent(X[10:11])
    pair = one_observation(covariance[0, 0], Y[10] - mean[0], NOISE)
    step = Step.between(old, new, n_labelled=11)
    assert step.kl_new_old == pytest.approx(float(pair.new_old))
    assert step.kl_old_new == pytest.approx(float(pair.old_new))
    mean, covariance = old.latent(X[10:])
    several = batch(covariance, Y[10:] - mean, NOISE)
    assert kl(process(slice(0, 14)), old) == pytest.approx(float(several.new_old))


def test_process_kl_with_duplicates_and_the_same_data_in_another_order() -> None:
    twice = GaussianProcessPosterior(X[[0, 1, 1]], Y[[0, 1, 1]], noise=NOISE, kernel=kernel)
    once = GaussianProcessPosterior(X[[1, 0]], Y[[1, 0]], noise=NOISE, kernel=kernel)
    assert kl(once, process([0, 1])) == 0.0
    assert kl(twice, once) > 0.0
    mean, covariance = once.latent(X[[1]])
    assert kl(twice, once) == pytest.approx(float(one_observation(covariance[0, 0], Y[1] - mean[0], NOISE).new_old))


def test_different_priors_are_refused_with_the_remedy() -> None:
    other = GaussianProcessPosterior(X, Y, noise=NOISE, kernel=lambda a, b: 2 * kernel(a, b))
    with pytest.raises(InvalidValueError, match="optimizer=None"):
        kl(process(slice(0, 3)), other)


def fitted(n: int, **options: object) -> GaussianProcessRegressor:
    return GaussianProcessRegressor(RBF(1.0), alpha=NOISE, optimizer=None, **options).fit(X[:n], Y[:n])


def test_scikit_learn_gaussian_process_converts() -> None:
    assert kl(fitted(11), fitted(10)) == pytest.approx(kl(process(slice(0, 11)), process(slice(0, 10))))
    mean, covariance = as_posterior(fitted(10)).latent(X[10:])  # type: ignore[attr-defined]
    expected_mean, expected_covariance = fitted(10).predict(X[10:], return_cov=True)
    assert mean == pytest.approx(expected_mean)
    assert covariance == pytest.approx(expected_covariance)


def test_white_noise_in_the_kernel_counts_as_noise() -> None:
    both = [
        GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.2), alpha=0.1, optimizer=None).fit(X[:n], Y[:n])
        for n in (10, 11)
    ]
    assert kl(both[1], both[0]) == pytest.approx(kl(fitted(11), fitted(10)))


def test_scikit_learn_traps_are_explained() -> None:
    with pytest.raises(InvalidValueError, match="normalize_y=False"):
        kl(fitted(11, normalize_y=True), fitted(10, normalize_y=True))
    learned = [GaussianProcessRegressor(RBF(1.0), alpha=NOISE).fit(X[:n], Y[:n]) for n in (10, 14)]
    with pytest.raises(InvalidValueError, match="different priors"):
        kl(*learned)
    with pytest.raises(InvalidValueError, match="not fitted yet"):
        kl(GaussianProcessRegressor(), GaussianProcessRegressor())
    several = GaussianProcessRegressor(RBF(1.0), optimizer=None).fit(X, np.column_stack([Y, Y]))
    with pytest.raises(InvalidValueError, match="2 outputs"):
        kl(several, several)


def test_scikit_learn_bayesian_ridge_converts() -> None:
    old, new = (BayesianRidge().fit(X[:n], Y[:n]) for n in (10, 11))
    expected = kl(Gaussian(new.coef_, new.sigma_), Gaussian(old.coef_, old.sigma_))
    assert kl(new, old) == expected > 0.0
    with pytest.raises(InvalidValueError, match="BayesianRidge is not fitted yet"):
        kl(BayesianRidge(), old)


class TestTorch:
    torch = pytest.importorskip("torch", reason="torch is not installed")

    def test_gaussians_convert(self) -> None:
        import torch
        import torch.distributions as td

        L = torch.tensor([[1.0, 0.0], [0.4, 0.8]], dtype=torch.float64)
        loc = torch.tensor([0.5, -0.5], dtype=torch.float64)
        normal = td.Normal(torch.zeros(2, dtype=torch.float64), torch.tensor([1.0, 2.0], dtype=torch.float64))
        several = [
            td.MultivariateNormal(loc, scale_tril=L),
            td.MultivariateNormal(loc, precision_matrix=L @ L.T),
            td.LowRankMultivariateNormal(
                loc, torch.ones(2, 1, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
            ),
            td.MultivariateNormal(normal.loc, torch.diag(normal.scale**2)),
        ]
        for p in several:
            for q in several:
                assert kl(p, q) == pytest.approx(float(td.kl_divergence(p, q)), abs=1e-12)
        for narrow in (normal, td.Independent(normal, 1)):
            assert kl(narrow, several[0]) == pytest.approx(float(td.kl_divergence(several[3], several[0])))

    def test_gradients_and_single_precision_are_no_obstacle(self) -> None:
        import torch
        import torch.distributions as td

        p = td.Normal(torch.zeros(3, requires_grad=True), torch.ones(3))
        q = td.Normal(torch.ones(3), torch.ones(3))
        assert kl(p, q) == pytest.approx(1.5)

    def test_other_distributions_use_torchs_own_divergence(self) -> None:
        import torch
        import torch.distributions as td

        p, q = (td.Dirichlet(torch.tensor(a)) for a in ([1.0, 2.0], [2.0, 2.0]))
        assert kl(p, q) == pytest.approx(float(td.kl_divergence(p, q)))
        assert "torch.distributions" in kl(p, q).how
        coins = [td.Independent(td.Bernoulli(torch.tensor(a)), 1) for a in ([0.2, 0.4], [0.5, 0.5])]
        assert kl(*coins) == pytest.approx(float(td.kl_divergence(*coins)), rel=1e-6)

    def test_what_torch_cannot_do_is_said(self) -> None:
        import torch
        import torch.distributions as td

        from suffice.errors import InvalidTypeError

        with pytest.raises(InvalidTypeError, match=r"no KL divergence for Cauchy \|\| Gumbel"):
            kl(td.Cauchy(0.0, 1.0), td.Gumbel(0.0, 1.0))
        batched = td.MultivariateNormal(torch.zeros(3, 2), torch.eye(2))
        with pytest.raises(InvalidValueError, match="batch of shape"):
            kl(batched, batched)


def test_an_intercept_outside_the_posterior_means_nothing_is_guaranteed() -> None:
    """A label at the mean of the inputs moves the intercept alone, which no divergence of the coefficients sees."""
    rng = np.random.default_rng(52)
    inputs, y = rng.normal(size=(7, 1)), rng.uniform(0, 0.1, 7)
    inputs[6], y[6] = inputs[:6].mean(), 1.0
    old, new = (BayesianRidge().fit(inputs[:n], y[:n]) for n in (6, 7))
    assert kl(new, old).kind == "estimate"
    assert "fit_intercept=False" in Step.between(old, new, n_labelled=7).estimated
    certificate = ErrorStability(0.1, relative=False).observe(Step.between(old, new, n_labelled=7)).certificate
    assert certificate is not None
    assert certificate.statement.startswith("Nothing is guaranteed: BayesianRidge keeps its intercept outside")
    plain = [BayesianRidge(fit_intercept=False).fit(inputs[:n], y[:n]) for n in (6, 7)]
    assert kl(plain[1], plain[0]).kind == "exact"


def test_a_process_and_a_converted_regressor_share_a_prior() -> None:
    model = fitted(10)
    ours = GaussianProcessPosterior(X[:11], Y[:11], noise=NOISE, kernel=model.kernel_)
    assert kl(ours, model) == pytest.approx(kl(fitted(11), model))


def test_inputs_must_match() -> None:
    with pytest.raises(InvalidValueError, match="2 and 1 inputs"):
        kl(process(slice(0, 3)), GaussianProcessPosterior(X[:, :1], Y, noise=NOISE, kernel=kernel))
