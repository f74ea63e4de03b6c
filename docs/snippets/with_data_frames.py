import datasets
import numpy as np
import polars as pl
import suffice as sf
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

texts = [f"{'good' if k % 3 else 'bad'} text {k % 40}" for k in range(300)]
frame = pl.DataFrame({"text": texts, "label": [int(k % 3 > 0) for k in range(300)]})
data = datasets.Dataset.from_dict(frame.to_dict(as_series=False))

monitor = sf.StopMonitor(data, predict=lambda model, part: model.predict_proba(part["text"]))
for n in range(20, 300, 20):
    model = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts[:n], data["label"][:n])
    if monitor.update(model, np.arange(n), data["label"][:n]).stop:
        break
steps = monitor.to_frame()  # pandas; pl.from_pandas(steps) for polars
print(steps[["n_labelled", "stop", "value", "threshold"]])
