import suffice as sf
from sklearn.datasets import load_breast_cancer
from xgboost import XGBClassifier

X, y = load_breast_cancer(return_X_y=True)  # replace y by the annotator
model = XGBClassifier(n_estimators=30, max_depth=3, n_jobs=1)

learner = sf.ActiveLearner(model, X, criterion=sf.LabelWorth(mistake_cost=1.0), seed=0)
while not learner.verdict.stop:
    items = learner.ask(10)  # ten at a time: every step costs a fit
    learner.tell(items, y[items])
print(learner.decision())
