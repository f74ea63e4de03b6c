import suffice as sf
import wandb
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from suffice.integrations.tracking import log_verdict

X, y = load_breast_cancer(return_X_y=True)
monitor = sf.StopMonitor(X)

with wandb.init(project="labels", mode="offline") as run:
    for n in range(30, len(X), 20):
        model = RandomForestClassifier(50, random_state=0).fit(X[:n], y[:n])
        verdict = monitor.update(model, range(n), y[:n])
        log_verdict(verdict, run.log, run.summary.__setitem__, decision=monitor.decision())
        if verdict.stop:
            break
