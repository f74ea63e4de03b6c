import numpy as np
from skactiveml.classifier import SklearnClassifier
from skactiveml.pool import UncertaintySampling
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import suffice as sf

X, y_true = load_breast_cancer(return_X_y=True)
y = np.full(len(X), np.nan)
y[:30] = y_true[:30]
model = SklearnClassifier(make_pipeline(StandardScaler(), LogisticRegression()), classes=[0, 1])
strategy = UncertaintySampling(random_state=0)

monitor = sf.StopMonitor(X)
while not monitor.verdict.stop:
    items = strategy.query(X, y, clf=model, batch_size=5)
    y[items] = y_true[items]
    known = np.flatnonzero(~np.isnan(y))
    monitor.update(model.fit(X, y), known, y[known].astype(int))
print(monitor.verdict)
