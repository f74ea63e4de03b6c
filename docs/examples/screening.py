# %% [markdown]
# # Screening: find the relevant items
#
# Of 3,000 documents 70 are relevant. A model ranks them, a person reads the likeliest first,
# and at some point almost nothing relevant comes any more. The share found so far is the recall.

# %%
import matplotlib.pyplot as plt
import numpy as np
import suffice as sf
from sklearn.linear_model import LogisticRegression

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 8))
y = np.where(X[:, 0] + X[:, 1] + 0.2 * rng.normal(size=3000) > 2.7, "relevant", "other")
print((y == "relevant").sum(), "relevant documents")

# %% [markdown]
# `RecallTest` stops when a statistical test says that 90 % are found. `monitor.update` takes the
# fitted model and everything that was read so far.

# %%
monitor = sf.StopMonitor(X, sf.RecallTest(at_least=0.9), positive="relevant", seed=0)
known = rng.permutation(3000)[:100].tolist()
while not monitor.update(
    model := LogisticRegression().fit(X[known], y[known]), known, y[known]
).stop:
    rest = np.setdiff1d(np.arange(3000), known)
    likely = model.predict_proba(X[rest])[:, model.classes_.tolist().index("relevant")]
    known += rest[np.argsort(-likely)[:20]].tolist()
print(monitor.verdict)

# %% [markdown]
# A random check of the unread documents guarantees a recall, whatever the model is. Only documents
# that somebody has read count as found.

# %%
check = monitor.check(400, recall_of="relevant", predicted_as_found=False)
guarantee = check.tell(y[check.indices])
print(guarantee)

# %%
found = np.cumsum(y[known] == "relevant") / np.count_nonzero(y == "relevant")
fig, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
ax.plot(np.arange(1, len(known) + 1), found, color="black", label="true recall")
ax.axhline(0.9, color="black", ls=":", label="wanted: 90 %")
ax.axhline(guarantee.value, color="black", ls="--", label="guaranteed after the check")
ax.set(
    xlabel="documents read", ylabel="share of the relevant ones found", ylim=(0, 1.02)
)
ax.legend(frameon=False, loc="lower right")
