# %% [markdown]
# # Images: handwritten digits
#
# The pool holds 1,797 images of 8 x 8 pixels in ten classes. The model is a logistic regression of
# scikit-learn. A wrong prediction costs as much as two labels.

# %%
import matplotlib.pyplot as plt
import numpy as np
import suffice as sf
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

images = load_digits()
X, y = images.data / 16.0, images.target
model = LogisticRegression(C=3.0, max_iter=300, tol=1e-3)

# %% [markdown]
# A round asks for 24 images: those whose two likeliest classes are closest, and four at random.

# %%
monitor = sf.StopMonitor(X, mistake_cost=2.0)
rng = np.random.default_rng(0)
known = rng.permutation(len(X))[:50].tolist()
drawn, sizes, errors = list(known), [], []
while True:
    verdict = monitor.update(
        model.fit(X[known], y[known]), known, y[known], random=drawn
    )
    rest = np.setdiff1d(np.arange(len(X)), known)
    sizes.append(len(known))
    errors.append(np.mean(model.predict(X[rest]) != y[rest]))
    if verdict.stop:
        break
    first, second = np.sort(model.predict_proba(X[rest]), axis=1)[:, :-3:-1].T
    close = rest[np.argsort(first - second)[:20]]
    some = rng.choice(np.setdiff1d(rest, close), 4, replace=False)
    known, drawn = [*known, *close.tolist(), *some.tolist()], [*drawn, *some.tolist()]
print(verdict)
print(monitor.decision())

# %% [markdown]
# The figure shows the error first. Below it are the images that were asked for last: those that
# are hard to read for a person too.

# %%
fig = plt.figure(figsize=(7.2, 4.2), layout="constrained")
above, below = fig.subfigures(2, 1, height_ratios=(3, 1))
ax = above.subplots()
ax.plot(sizes, errors, color="black")
ax.set(
    xlabel="labels", ylabel="share of the other images\npredicted wrong", ylim=(0, None)
)
for axis, k in zip(below.subplots(1, 10), known[-24:-14], strict=True):
    axis.imshow(images.images[k], cmap="gray_r")
    axis.set_title(str(y[k]), fontsize=9)
    axis.axis("off")
