# %% [markdown]
# # Another framework's loop: scikit-activeml
#
# The loop, the classifier and the choice of the next items belong to scikit-activeml. A
# `StopMonitor` adds one call per round. It works in the same way with small-text, skorch, baal
# and others.

# %%
import matplotlib.pyplot as plt
import numpy as np
import suffice as sf
from skactiveml.classifier import SklearnClassifier
from skactiveml.pool import UncertaintySampling
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

X, y_true = load_breast_cancer(return_X_y=True)
y = np.full(len(X), np.nan)
y[:30] = y_true[:30]
model = SklearnClassifier(
    make_pipeline(StandardScaler(), LogisticRegression()), classes=[0, 1]
)
strategy = UncertaintySampling(random_state=0)

# %%
monitor = sf.StopMonitor(X, mistake_cost=4.0)
sizes, errors = [], []
while not monitor.verdict.stop:
    items = strategy.query(X, y, clf=model, batch_size=5)
    y[items] = y_true[items]
    known = np.flatnonzero(~np.isnan(y))
    monitor.update(model.fit(X, y), known, y[known].astype(int))
    sizes.append(len(known))
    errors.append(np.mean(model.predict(X)[np.isnan(y)] != y_true[np.isnan(y)]))
print(monitor.verdict)

# %% [markdown]
# The figure shows the error first, and then why it stopped: the worth of the next label is below its
# cost. A wrong prediction costs as much as four labels here.

# %%
fig, (above, below) = plt.subplots(
    2, 1, sharex=True, figsize=(7.2, 4.2), layout="constrained"
)
above.plot(sizes, errors, color="black")
above.set(ylabel="share of the unlabelled\npredicted wrong", ylim=(0, None))
monitor.plot(below)
