import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import suffice as sf
from sklearn.datasets import load_digits

X, y = load_digits(return_X_y=True)  # replace y by the annotator
X = (X / 16).astype(np.float32)
keras.utils.set_random_seed(0)

monitor = sf.StopMonitor(X, predict=lambda model, part: model.predict(part, batch_size=512, verbose=0))
for n in range(100, len(X), 100):
    layers = [keras.layers.Dense(64, "relu"), keras.layers.Dense(10, "softmax")]
    model = keras.Sequential([keras.Input((64,)), *layers])
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
    model.fit(X[:n], y[:n], epochs=20, verbose=0)
    if monitor.update(model, range(n), y[:n], random=range(n)).stop:
        break
print(monitor.decision())
