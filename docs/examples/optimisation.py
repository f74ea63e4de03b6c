# %% [markdown]
# # Bayesian optimisation: stop the search
#
# A Gaussian process of scikit-learn looks for the least value of a function that is expensive to
# evaluate. `OptimisationMonitor` says when the search has found enough: when its best value is, by
# the confidence bounds of the model, at most 0.05 above the least value.

# %%
import matplotlib.pyplot as plt
import numpy as np
import suffice as sf
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from suffice.learner import OptimisationMonitor


def objective(x):
    return np.sin(3.0 * x) + 0.5 * (x - 2.5) ** 2


rng = np.random.default_rng(1)
grid = np.linspace(0.0, 4.0, 200)
X = rng.uniform(0.0, 4.0, size=(4, 1))
y = objective(X[:, 0])

# %% [markdown]
# The next evaluation is where the lower confidence bound is least.

# %%
kernel = ConstantKernel(4.0, "fixed") * RBF(0.7, "fixed") + WhiteKernel(1e-4, "fixed")
monitor = OptimisationMonitor([(0.0, 4.0)], sf.RegretBound(threshold=0.05))
while True:
    model = GaussianProcessRegressor(kernel, normalize_y=False).fit(X, y)
    if monitor.update(model).stop or len(y) >= 40:
        break
    mean, deviation = model.predict(grid[:, None], return_std=True)
    new = grid[np.argmin(mean - 2.0 * deviation)]
    X, y = np.append(X, [[new]], axis=0), np.append(y, objective(new))
print(monitor.verdict)
print(
    f"least value found: {y.min():.3f}; true least value: {objective(grid).min():.3f}"
)

# %%
mean, deviation = model.predict(grid[:, None], return_std=True)
fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.4), layout="constrained")
left.plot(
    np.arange(1, len(y) + 1),
    np.minimum.accumulate(y) - objective(grid).min(),
    color="black",
)
left.set(xlabel="evaluations", ylabel="distance to the least value", ylim=(0, None))
right.fill_between(
    grid, mean - 2.0 * deviation, mean + 2.0 * deviation, color="0.85", label="model"
)
right.plot(grid, objective(grid), color="black", lw=1, label="function")
right.plot(X[:, 0], y, "o", color="black", mfc="white", label="evaluations")
right.set(xlabel="x")
right.legend(frameon=False)
