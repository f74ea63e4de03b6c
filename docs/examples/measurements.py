# %% [markdown]
# # Numbers: measurements that cost
#
# A laboratory can measure a number for each of 600 samples, and each measurement costs. A Gaussian
# process predicts the others. Here the truth is Friedman's function, a common test of regression.

# %%
import matplotlib.pyplot as plt
import numpy as np
import suffice as sf
from sklearn.datasets import make_friedman1

X, y = make_friedman1(n_samples=600, n_features=5, noise=0.5, random_state=0)

# %% [markdown]
# A prediction that is off by more than 1.5 is wrong. A wrong prediction costs as much as half a
# measurement. The learner asks which sample to measure next, and says when it is enough.

# %%
rule = sf.LabelWorth(mistake_cost=0.5, tolerance=1.5)
learner = sf.ActiveLearner(sf.models.GaussianProcess(), X, criterion=rule, seed=0)
sizes, errors = [], []
while not learner.verdict.stop:
    items = learner.ask(10)
    learner.tell(items, y[items])
    rest = np.setdiff1d(np.arange(len(X)), learner.labelled)
    sizes.append(len(learner.labelled))
    errors.append(np.sqrt(np.mean((learner.model.predict(X[rest]) - y[rest]) ** 2)))
print(learner.decision())

# %% [markdown]
# A check of 60 samples guarantees how many predictions are off by more than 1.5.

# %%
check = learner.check(60, tolerance=1.5)
predicted = learner.model.predict(X[rest])
print(check.tell(y[check.indices]))

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.4), layout="constrained")
left.plot(sizes, errors, color="black")
left.set(
    xlabel="measurements",
    ylabel="root mean squared error of the others",
    ylim=(0, None),
)
right.plot(y[rest], predicted, ".", color="black", ms=3)
ends = np.array([y.min(), y.max()])
right.fill_between(
    ends, ends - 1.5, ends + 1.5, color="0.85", label="off by at most 1.5"
)
right.set(xlabel="truth", ylabel="prediction at the stop")
right.legend(frameon=False, loc="upper left")
