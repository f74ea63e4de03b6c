import numpy as np
import suffice as sf
import torch
from skorch import NeuralNetClassifier
from sklearn.datasets import load_digits
from suffice.integrations.skorch import dropout_predictions

X, y = load_digits(return_X_y=True)
X, y = (X[:800] / 16).astype(np.float32), y[:800]
torch.manual_seed(0)
layers = [torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(64, 10)]
loss = torch.nn.CrossEntropyLoss
net = NeuralNetClassifier(torch.nn.Sequential(*layers), criterion=loss, lr=0.2, train_split=None, verbose=0)

monitor = sf.StopMonitor(X, predict=dropout_predictions(members=10))
known = list(range(50))
while not monitor.update(net.fit(X[known], y[known]), known, y[known]).stop:
    rest = np.setdiff1d(np.arange(len(X)), known)
    known += rest[np.argsort(net.predict_proba(X[rest]).max(axis=1))[:50]].tolist()
print(monitor.verdict)
