# %% [markdown]
# # A large pool: half a million items on disk
#
# The pool is a NumPy file. The learner reads it in batches and keeps a few numbers for each item,
# so that the pool may be larger than the memory. The picks are those of a pool in memory.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import suffice as sf
from suffice.engines import NpyPool

rng = np.random.default_rng(0)
X = rng.normal(size=(500_000, 12)).astype(np.float32)
y = X[:, 0] + X[:, 1] - 0.5 * X[:, 2] + 0.3 * rng.normal(size=500_000) > 0.5
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "pool.npy"
np.save(path, X)
print(f"{path.stat().st_size / 2**20:.0f} MiB on disk")

# %% [markdown]
# `NpyPool` limits the memory that rows may take to 8 MiB. The rule weighs the cost of a label
# against that of a wrong prediction: for so many items, labels are worth more.

# %%
pool = NpyPool(path, memory_limit=8 * 2**20)
model = sf.models.BayesianLogistic(alpha=1.0)
rule = sf.LabelWorth(mistake_cost=0.01) | sf.Budget(400)
learner = sf.ActiveLearner(
    model, pool, criterion=rule, acquisition="margin", random_share=0.2, seed=0
)
sizes, errors = [], []
while not learner.verdict.stop:
    items = learner.ask(20)
    learner.tell(items, y[items])
    sizes.append(len(learner.labelled))
    errors.append(np.mean(learner.model.predict(X[:20_000]) != y[:20_000]))
print(learner.verdict)

# %% [markdown]
# The size of a check hardly depends on the size of the pool. 200 random labels are enough for a
# guarantee about half a million predictions.

# %%
check = learner.check(200)
guarantee = check.tell(y[check.indices])
print(guarantee)

# %%
fig, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
ax.plot(sizes, errors, color="black", label="error of 20,000 items of the pool")
ax.axhline(guarantee.value, color="black", ls="--", label="guaranteed for all items")
ax.set(xlabel="labels", ylabel="share predicted wrong", ylim=(0, None))
ax.legend(frameon=False)
folder.cleanup()
