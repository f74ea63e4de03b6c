import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood

from suffice.integrations.botorch import optimisation_monitor

torch.manual_seed(0)
bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)
X = torch.rand(6, 2, dtype=torch.double)
y = -((X - 0.3) ** 2).sum(1, keepdim=True)

monitor = optimisation_monitor(bounds)
while not monitor.verdict.stop and len(X) < 40:
    model = SingleTaskGP(X, y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    monitor.update(model)
    new, _ = optimize_acqf(LogExpectedImprovement(model, y.max()), bounds, q=1, num_restarts=2, raw_samples=32)
    X, y = torch.cat([X, new]), torch.cat([y, -((new - 0.3) ** 2).sum(1, keepdim=True)])
print(monitor.verdict)
