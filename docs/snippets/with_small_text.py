import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from small_text import BreakingTies, PoolBasedActiveLearner, SklearnClassifierFactory, SklearnDataset
from suffice.integrations.small_text import SmallTextCriterion

X, y = load_digits(return_X_y=True)  # replace these by the features of texts
data = SklearnDataset(X / 16, y, target_labels=np.arange(10))
factory = SklearnClassifierFactory(LogisticRegression(), num_classes=10)
learner = PoolBasedActiveLearner(factory, BreakingTies(), data)
learner.initialize_data(np.arange(40), y[:40])

criterion = SmallTextCriterion(label_cost=1.0, mistake_cost=1.0)
while not criterion.stop(active_learner=learner):
    items = learner.query(num_samples=20)
    learner.update(y[items])
print(criterion.verdict)
