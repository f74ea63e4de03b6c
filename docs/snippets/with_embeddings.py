import tempfile
from pathlib import Path

import numpy as np
import suffice as sf
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

texts = [f"{'good' if k % 3 else 'bad'} text {k % 40}" for k in range(600)]
labels = np.where(np.arange(600) % 3, "positive", "negative")  # replace these by the annotator
file = Path(tempfile.mkdtemp(), "embeddings.npy")
# Replace this by SentenceTransformer(...).encode(texts), or by the embeddings of a service.
np.save(file, make_pipeline(TfidfVectorizer(), TruncatedSVD(20, random_state=0)).fit_transform(texts))

rule = sf.LabelWorth(mistake_cost=1.0)
learner = sf.ActiveLearner(sf.models.BayesianLogistic(), np.load(file), criterion=rule, seed=0)
while not learner.verdict.stop:
    items = learner.ask(10)
    learner.tell(items, labels[items])
print(learner.decision())
