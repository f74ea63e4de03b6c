import numpy as np
import suffice as sf
from lightgbm import LGBMClassifier
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)  # replace y by the annotator
model = LGBMClassifier(n_estimators=30, min_child_samples=5, num_threads=1, random_state=0, verbose=-1)

monitor = sf.StopMonitor(X, label_cost=1.0, mistake_cost=1.0)
rng = np.random.default_rng(0)
known, drawn = list(range(60)), list(range(60))
while not monitor.update(model.fit(X[known], y[known]), known, y[known], random=drawn).stop:
    rest = np.setdiff1d(np.arange(len(X)), known)
    unsure = rest[np.argsort(model.predict_proba(X[rest]).max(axis=1))[:32]]
    some = rng.choice(np.setdiff1d(rest, unsure), 8, replace=False)  # a fifth at random
    known, drawn = [*known, *unsure, *some], [*drawn, *some]
print(monitor.decision())
