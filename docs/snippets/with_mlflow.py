import mlflow
import suffice as sf
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from suffice.integrations.tracking import log_verdict

X, y = load_breast_cancer(return_X_y=True)
monitor = sf.StopMonitor(X)

with mlflow.start_run() as run:
    for n in range(30, len(X), 20):
        model = RandomForestClassifier(50, random_state=0).fit(X[:n], y[:n])
        verdict = monitor.update(model, range(n), y[:n])
        log_verdict(verdict, mlflow.log_metrics, mlflow.set_tag, decision=monitor.decision())
        if verdict.stop:
            break
