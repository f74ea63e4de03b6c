import numpy as np
import suffice as sf
from modAL.models import ActiveLearner
from modAL.uncertainty import margin_sampling
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

X, y = load_digits(return_X_y=True)  # replace y by the annotator
known = list(range(60))
forest = RandomForestClassifier(random_state=0)
learner = ActiveLearner(forest, margin_sampling, X_training=X[known], y_training=y[known])

monitor = sf.StopMonitor(X, label_cost=1.0, mistake_cost=1.0)
while not monitor.update(learner, known, y[known]).stop:
    rest = np.setdiff1d(np.arange(len(X)), known)
    chosen, _ = learner.query(X[rest], n_instances=20)
    learner.teach(X[rest[chosen]], y[rest[chosen]])
    known += rest[chosen].tolist()
print(monitor.verdict)
