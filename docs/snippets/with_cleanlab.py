import numpy as np
import suffice as sf
from cleanlab.classification import CleanLearning
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

X, y = load_breast_cancer(return_X_y=True)
X, order = StandardScaler().fit_transform(X), np.random.default_rng(0).permutation(len(X))
given = np.where(np.arange(len(y)) % 15 == 0, 1 - y, y)  # replace this by annotators, who make mistakes

monitor = sf.StopMonitor(X)
for n in range(40, len(X), 20):
    known = order[:n]
    model = CleanLearning(LogisticRegression(), seed=0).fit(X[known], given[known])
    if monitor.update(model, known, given[known], random=known).stop:
        break
print(monitor.decision())
suspicious = known[model.get_label_issues()["is_label_issue"]]
print(f"labels to check again: {suspicious.tolist()}")
