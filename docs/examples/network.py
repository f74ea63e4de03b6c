# %% [markdown]
# # A network: dropout and BatchBALD
#
# A network with dropout is a Bayesian model: each set of masks is a draw of its weights. This
# example needs PyTorch. The pool holds 500 handwritten digits.

# %%
import matplotlib.pyplot as plt
import numpy as np
import suffice as sf
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)
X, y, X_test, y_test = X[:500] / 16.0, y[:500], X[500:] / 16.0, y[500:]

# %% [markdown]
# The network asks for 10 labels at a time by BatchBALD: those that tell most together. The rule
# compares the posteriors before and after a batch. A budget ends the run if it does not stop.

# %%
model = sf.models.DropoutNetwork(classes=range(10))
rule = sf.ErrorStability(0.4, calibration=1) | sf.Budget(200)
learner = sf.ActiveLearner(
    model, X, criterion=rule, acquisition="batchbald", initial=50, seed=0
)
learner.tell(first := learner.ask(50), y[first])
sizes, errors = [], []
while not learner.verdict.stop:
    items = learner.ask(10)
    learner.tell(items, y[items])
    sizes.append(len(learner.labelled))
    errors.append(np.mean(learner.model.predict(X_test) != y_test))
print(learner.verdict)

# %% [markdown]
# What a rule says about a network follows its training as much as its labels. A check does not
# depend on that: it counts wrong predictions of a random sample.

# %%
check = learner.check(60)
print(check.tell(y[check.indices]))

# %%
fig, (above, below) = plt.subplots(
    2, 1, sharex=True, figsize=(7.2, 4.2), layout="constrained"
)
above.plot(sizes, errors, "o-", color="black")
above.set(ylabel="test error", ylim=(0, None))
below.plot(
    [v.n_labelled for v in learner.verdicts],
    learner.trace().kl_new_old,
    "s-",
    color="black",
)
below.set(xlabel="labels", ylabel="KL divergence of a batch", yscale="log")
