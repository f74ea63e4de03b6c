# %% [markdown]
# # A finished data set: at most 5 % of all labels are wrong
#
# A forest of scikit-learn learns handwritten digits in ten classes. People label the images of
# which it is least sure. A check of the others ends the work: at most 5 % of all 1,797 labels are
# wrong, guaranteed.

# %%
import matplotlib.pyplot as plt
import numpy as np
import suffice as sf
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

X, truth = load_digits(return_X_y=True)

# %% [markdown]
# A tenth of the labels is drawn at random, so that the error can be estimated. In the check, one
# answer after the other is given until the goal is proven.

# %%
rng, monitor, plans = np.random.default_rng(0), sf.StopMonitor(X, seed=0), []
items = random = list(rng.permutation(len(X))[:30])
while True:
    forest = RandomForestClassifier(random_state=0).fit(X[items], truth[items])
    monitor.update(forest, items, truth[items], random=random)
    plans.append(monitor.decision(at_most=0.05, of="all").finish)
    if plans[-1].check_now:
        break
    unsure = [k for k in forest.predict_proba(X).max(1).argsort() if k not in items]
    random = [*random, rng.choice(unsure[9:])]
    items = [*items, *unsure[:9], random[-1]]
check = monitor.check(at_most=0.05, of="all")
while check.open:
    check.tell(truth[check.pending])
final = monitor.final_labels()

# %%
print(final)
print(final.guarantee.evidence)
print("Truly wrong:", sum(np.array(final.labels) != truth), "of", len(truth))

# %% [markdown]
# The figure shows how many labels of people each plan expected in the end. The first plans are far
# too high: a forest learns these digits faster than models do on average.

# %%
fig, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
given = [plan.by_people for plan in plans]
axes.plot(given, [plan.by_people_at_end for plan in plans], color="black")
axes.plot(given, given, color="black", linestyle=":")
axes.plot(final.guarantee.by_people, final.guarantee.by_people, "ko")
axes.text(final.guarantee.by_people, final.guarantee.by_people, "the end  ", ha="right")
axes.set(xlabel="labels by people so far", ylabel="expected in the end", ylim=(0, None))
