import numpy as np
from asreview import ActiveLearningCycle, Simulate
from asreview.models.balancers import Balanced
from asreview.models.classifiers import SVM
from asreview.models.feature_extractors import Tfidf
from asreview.models.queriers import Max, TopDown
from asreview.models.stoppers import IsFittable
import pandas as pd
from suffice.integrations.asreview import RecallTestStopper

rng = np.random.default_rng(0)
relevant = rng.random(600) < 0.05  # replace these by the records of a review
words = np.where(relevant[:, None], rng.integers(0, 200, (600, 20)), rng.integers(150, 900, (600, 20)))
records = pd.DataFrame({"title": "", "abstract": [" ".join(f"word{k}" for k in row) for row in words]})

stopper = RecallTestStopper(at_least=0.95)
cycle = ActiveLearningCycle(Max(), SVM(), Balanced(ratio=9.8), Tfidf(), n_query=5)
start = ActiveLearningCycle(TopDown(), stopper=IsFittable())
simulation = Simulate(records, relevant.astype(int), [start, cycle], stopper=stopper, print_progress=False)
simulation.label([int(relevant.argmax())])
simulation.review()
print(stopper.verdict)
