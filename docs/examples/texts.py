# %% [markdown]
# # Texts: from which library is this sentence?
#
# The pool holds the summaries of about 1,300 functions of NumPy, SciPy and scikit-learn. A person
# who reads them says which library each belongs to; here the truth is known. The model is a
# pipeline of scikit-learn, which counts words and fits a logistic regression.

# %%
import inspect

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.stats
import sklearn.datasets
import sklearn.linear_model
import sklearn.metrics
import sklearn.preprocessing
import suffice as sf
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

LIBRARIES = {
    "NumPy": [np, np.linalg, np.fft, np.ma, np.random, np.polynomial],
    "SciPy": [scipy.stats, scipy.optimize, scipy.signal, scipy.linalg],
    "scikit-learn": [
        sklearn.datasets,
        sklearn.linear_model,
        sklearn.metrics,
        sklearn.preprocessing,
    ],
}


def summaries(module):
    for name in module.__all__:
        documented = inspect.getdoc(getattr(module, name, None)) or ""
        sentence = " ".join(
            documented.split("\n\n", 2)[min(1, documented.count("\n\n"))].split()
        )
        if 20 < len(sentence) < 400:
            yield sentence


pairs = sorted(
    {
        (text, name)
        for name, modules in LIBRARIES.items()
        for each in modules
        for text in summaries(each)
    }
)
texts, truth = (np.array(column) for column in zip(*pairs, strict=True))
print(len(texts), "sentences, for example:", texts[0])

# %% [markdown]
# Every round adds twelve sentences that the model is least sure about, and four at random. Random
# labels tell how good the model is on the rest. `StopMonitor` takes the fitted model and all
# labels so far. A wrong prediction costs as much as two labels.

# %%
model = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=10.0))
monitor = sf.StopMonitor(texts, mistake_cost=2.0, seed=0)
rng = np.random.default_rng(0)
known = rng.permutation(len(texts))[:40].tolist()
drawn, sizes, errors = list(known), [], []
while True:
    verdict = monitor.update(
        model.fit(texts[known], truth[known]), known, truth[known], random=drawn
    )
    rest = np.setdiff1d(np.arange(len(texts)), known)
    sizes.append(len(known))
    errors.append(np.mean(model.predict(texts[rest]) != truth[rest]))
    if verdict.stop:
        break
    unsure = rest[np.argsort(model.predict_proba(texts[rest]).max(axis=1))[:12]]
    some = rng.choice(np.setdiff1d(rest, unsure), 4, replace=False)
    known, drawn = [*known, *unsure.tolist(), *some.tolist()], [*drawn, *some.tolist()]
print(verdict)

# %% [markdown]
# A random check of 80 of the other sentences turns the estimate into a guarantee.

# %%
check = monitor.check(80)
guarantee = check.tell(truth[check.indices])
print(guarantee)

# %%
fig, ax = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
ax.plot(sizes, errors, color="black", label="true error of the unlabelled sentences")
ax.axhline(guarantee.value, color="black", ls="--", label="guaranteed after the stop")
ax.set(xlabel="labels", ylabel="share predicted wrong", ylim=(0, None))
ax.legend(frameon=False)
