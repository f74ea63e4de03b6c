# %% [markdown]
# # Check what a language model labelled
#
# Somebody else's model has labelled a file. How many of its labels are wrong? People label rows
# that are drawn at random, and a check says it with a guarantee. No model is trained for it.
#
# The file here has one-sentence summaries of functions of SciPy and scikit-learn, and a label for
# each: is it about statistics, or not? A classifier that learned other sentences made these labels.
# It stands in for a language model. The truth is known, and simulates the people who answer.

# %%
import inspect
import sys

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.stats
import sklearn.metrics
import suffice as sf
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline


def sentences(module):
    for name in sorted(module.__all__):
        documented = inspect.getdoc(getattr(module, name, None)) or ""
        sentence = " ".join(documented.split("\n\n")[0].split())
        if 20 < len(sentence) < 400:
            yield sentence


subjects = {
    "statistics": [scipy.stats, sklearn.metrics],
    "other": [scipy.linalg, scipy.optimize, scipy.signal],
}
rows = sorted(
    {
        (text, kind)
        for kind in subjects
        for each in subjects[kind]
        for text in sentences(each)
    }
)
texts, truth = (np.array(column) for column in zip(*rows, strict=True))
elsewhere = np.random.default_rng(0).permutation(len(texts)) < len(texts) // 3
model = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=30.0))
model.fit(texts[elsewhere], truth[elsewhere])

texts, truth = texts[~elsewhere], truth[~elsewhere]
llm = model.predict(texts)
confidence = model.predict_proba(texts).max(axis=1)
print(len(texts), "sentences, for example:", texts[0])

# %% [markdown]
# Prove that at most 15 % are wrong. The check asks one row after the other, in random order, and
# ends by itself.

# %%
given = sf.checks.of_predictions(llm, confidence)
check = given.check(at_most=0.15, seed=0)
result = check.run(lambda row: truth[row])
print(result)
print("Truly wrong:", np.sum(llm != truth), "of", len(truth))

# %% [markdown]
# If that is not good enough, people label the least sure rows, and a check of the others ends the
# work: at most 5 % of all final labels are wrong.

# %%
work = given.finish(at_most=0.05, seed=0)
guarantee = work.run(lambda row: truth[row])
print(guarantee)
print("Truly wrong:", np.sum(np.array(work.final_labels()) != truth))

# %% [markdown]
# In a pipeline, let the step fail if the labels are not good enough. This sample was labelled
# before: 100 rows that were drawn at random.


# %%
def require_good_labels(predicted, sample, at_most):
    """Leave with status 1 unless a check of a labelled random sample proves the target."""
    check = sf.checks.of_predictions(predicted).check(size=100, at_most=at_most, seed=1)
    result = check.tell([sample[row] for row in check.next(100)])
    print(result)
    if not result.guaranteed:
        sys.exit(1)


require_good_labels(llm, truth, at_most=0.2)

# %% [markdown]
# The figure shows what the answers of the first check say as they arrive, and where it ends.

# %%
record = check.record
found = np.cumsum([llm[row] != truth[row] for row in record.items])
answers = np.arange(1, len(found) + 1)
fig, axes = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
axes.plot(answers, found / answers, color="black", label="wrong so far")
axes.axhline(0.15, color="black", ls="--", label="target")
axes.axhline(np.mean(llm != truth), color="black", ls=":", label="truth")
axes.set(xlabel="answers", ylabel="share predicted wrong", ylim=(0, None))
axes.legend(frameon=False)
