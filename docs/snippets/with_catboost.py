import numpy as np
import suffice as sf
from catboost import CatBoostRegressor
from sklearn.datasets import make_friedman1

X, y = make_friedman1(1000, random_state=0)  # replace y by the measurement
order = np.random.default_rng(0).permutation(len(X))

monitor = sf.StopMonitor(X, sf.LabelWorth(mistake_cost=0.5, tolerance=2.0))  # wrong: off by more than 2
for n in range(40, len(X), 20):
    known = order[:n]
    model = CatBoostRegressor(iterations=100, depth=4, thread_count=1, allow_writing_files=False, verbose=False)
    if monitor.update(model.fit(X[known], y[known]), known, y[known], random=known).stop:
        break
print(monitor.decision())
