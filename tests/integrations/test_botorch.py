"""Models of BoTorch and GPyTorch as posteriors, and their loops."""

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.integrations.botorch import optimisation_monitor, predict
from suffice.learner import OptimisationMonitor
from suffice.posteriors import GaussianProcessPosterior, as_posterior, posterior_pair
from tests.integrations.snippets import run_snippet

torch = pytest.importorskip("torch")
gpytorch = pytest.importorskip("gpytorch")
botorch = pytest.importorskip("botorch")
pytestmark = pytest.mark.filterwarnings("ignore")


def data(n: int = 15) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(0)
    X = 10.0 * torch.rand(n, 2, dtype=torch.double, generator=generator)
    return X, 3.0 * torch.sin(X.sum(1, keepdim=True) / 3.0) + 5.0


def fitted(**options: Any) -> Any:

    model = botorch.models.SingleTaskGP(*data(), **options)
    botorch.fit.fit_gpytorch_mll(gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def options_of(name: str) -> dict[str, Any]:

    return {
        "plain": {},
        "normalised inputs": {"input_transform": botorch.models.transforms.Normalize(2)},
        "raw labels": {"outcome_transform": None},
        "known noise": {"train_Yvar": torch.full((15, 1), 0.01, dtype=torch.double)},
        "scaled Matern": {"covar_module": gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(ard_num_dims=2))},
    }[name]


NAMES = ["plain", "normalised inputs", "raw labels", "known noise", "scaled Matern"]


@pytest.mark.parametrize("name", NAMES)
def test_the_posterior_is_that_of_the_model(name: str) -> None:
    model = fitted(**options_of(name))
    points = data(40)[0][15:]
    for mode in (model.train, model.eval):
        mode()
        posterior = as_posterior(model)
        assert isinstance(posterior, GaussianProcessPosterior)
        assert np.allclose(posterior.X, data()[0].numpy())
        mean, covariance = posterior.latent(points.numpy())
        centre, scale = posterior.scaling
        said = model.posterior(points)
        assert np.allclose(centre + scale * mean, said.mean.detach().numpy().ravel(), atol=1e-6)
        assert np.allclose(scale**2 * np.diag(covariance), said.variance.detach().numpy().ravel(), atol=1e-6)
        assert np.allclose(centre + scale * posterior.y, data()[1].numpy().ravel())


def test_divergences_of_one_model() -> None:
    model = fitted()
    new = as_posterior(model)
    assert isinstance(new, GaussianProcessPosterior)
    old = new.keep(np.arange(15) < 14)
    direct = sf.kl(model, old)
    assert direct.kind == "exact"
    X, y = data()
    pair = posterior_pair(model, (X[:14], y[:14, 0].tolist()), (X, y[:, 0].tolist()))
    assert sf.kl(pair.new, pair.old) == pytest.approx(direct, rel=1e-9)
    monitor = OptimisationMonitor([(0.0, 10.0)] * 2)
    monitor.update(model)
    assert monitor.steps[0].kl_new_old == pytest.approx(direct, rel=1e-6)
    other = fitted()
    other.covar_module.lengthscale = 7.0
    with pytest.raises(InvalidValueError, match="different priors"):
        sf.kl(model, other)


def test_a_later_fit_does_not_change_a_posterior() -> None:
    model = fitted()
    posterior = as_posterior(model)
    assert isinstance(posterior, GaussianProcessPosterior)
    before = posterior.latent(np.array([[1.0, 2.0]]))
    model.covar_module.lengthscale = 9.0
    assert posterior.latent(np.array([[1.0, 2.0]])) == before
    assert not posterior.shares_prior(as_posterior(model))  # type: ignore[arg-type]


ExactGP: Any = gpytorch.models.ExactGP


class Plain(ExactGP):  # type: ignore[misc]
    """A model of GPyTorch alone."""

    def __init__(self, X: Any, y: Any, mean: Any = None) -> None:
        super().__init__(X, y, gpytorch.likelihoods.GaussianLikelihood())
        self.mean_module = mean or gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x: Any) -> Any:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def test_a_model_of_gpytorch_alone_in_single_precision() -> None:
    X, y = data()
    model = Plain(X.float(), y[:, 0].float())
    model.mean_module.constant = 4.0
    posterior = as_posterior(model)
    assert isinstance(posterior, GaussianProcessPosterior)
    assert posterior.scaling == (4.0, 1.0)
    points = data(20)[0][15:]
    mean, deviation = predict(model, points)
    own, covariance = posterior.latent(points.numpy())
    assert np.allclose(4.0 + own, mean, atol=1e-3)
    assert np.allclose(np.diag(covariance) + posterior.noise[0], deviation**2, atol=1e-3)


def test_the_stop_monitor_takes_the_models() -> None:
    X, y = data(40)
    monitor = sf.StopMonitor(X.numpy(), sf.ErrorStability(0.5, calibration=2), predict=predict)

    for n in range(10, 16):
        monitor.update(botorch.models.SingleTaskGP(X[:n], y[:n]), np.arange(n), y[:n, 0].numpy())
    assert [step.n_labelled for step in monitor.steps] == list(range(11, 16))
    assert all(step.kl_new_old is not None and step.kl_new_old > 0.0 for step in monitor.steps)


def test_the_monitor_of_botorch_maximises() -> None:
    monitor = optimisation_monitor(torch.tensor([[0.0, 0.0], [10.0, 10.0]]))
    same = OptimisationMonitor([(0.0, 10.0)] * 2, direction="maximize")
    model = fitted()
    assert monitor.update(model) == same.update(model)
    with pytest.raises(InvalidValueError, match="bounds must be 2 x D as in BoTorch"):
        optimisation_monitor([(0.0, 1.0)] * 3)


def test_refusals() -> None:

    X, y = data()
    with pytest.raises(InvalidValueError, match="one output"):
        as_posterior(botorch.models.SingleTaskGP(X, torch.cat([y, y], 1)))
    with pytest.raises(InvalidValueError, match="ConstantMean"):
        as_posterior(Plain(X, y[:, 0], gpytorch.means.LinearMean(2)))
    with pytest.raises(InvalidValueError, match="outcome_transform of SingleTaskGP must be a shift"):
        as_posterior(botorch.models.SingleTaskGP(X, y, outcome_transform=botorch.models.transforms.Log()))
    with pytest.raises(InvalidTypeError, match="no KL divergence is known"):
        sf.kl(
            botorch.models.ModelListGP(botorch.models.SingleTaskGP(X, y)),
            botorch.models.ModelListGP(botorch.models.SingleTaskGP(X, y)),
        )
    with pytest.raises(InvalidTypeError, match="model must be an ExactGP"):
        predict(object(), X)
    model = botorch.models.SingleTaskGP(X, y, train_Yvar=torch.full((15, 1), 0.01, dtype=torch.double))
    with pytest.raises(InvalidValueError, match="one number for each label"):
        posterior_pair(model, (X[:14], y[:14, 0].tolist()), (X, y[:, 0].tolist()))


def test_the_snippet() -> None:
    monitor = run_snippet("with_botorch")["monitor"]
    assert monitor.verdict.stop
    assert monitor.verdict.n_labelled < 40
