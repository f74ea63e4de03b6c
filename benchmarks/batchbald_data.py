"""Class probabilities over a pool of MNIST: the paper's network, 20 draws of its dropout masks.

Two of them: trained on 1000 labels, and after 5 steps only, where nearly everything is still possible. Each takes
minutes on one core and is kept in the system's temporary folder. Without SUFFICE_DATA, random numbers of that shape.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LABELS, SAMPLES, CLASSES = 1000, 20, 10
POOL = 60_000 - LABELS
Probabilities = NDArray[np.float32]


def trained() -> Probabilities:
    """``N x K x C`` of the network after 50 epochs in batches."""
    return _kept("trained", epochs=50, batch_size=64, train_samples=1)


def early() -> Probabilities:
    """``N x K x C`` of the network after the first round of the published protocol: 5 steps with all the labels."""
    return _kept("early")


def exchangeable(spread: float = 1.0) -> Probabilities:
    """``N x K x C`` where every row is drawn alike: no candidate stands out, the worst that can come."""
    drawn = np.random.default_rng(0).dirichlet(np.full(CLASSES, spread), size=(POOL, SAMPLES))
    return np.asarray(drawn, dtype=np.float32)


def _kept(name: str, **options: Any) -> Probabilities:
    folder = os.environ.get("SUFFICE_DATA")
    if folder is None:
        print(f"{name}: random numbers, for SUFFICE_DATA is not set", file=sys.stderr)
        return exchangeable(0.2 if name == "trained" else 2.0)
    path = Path(tempfile.gettempdir()) / f"suffice-mnist-{name}.npy"
    if not path.exists():
        print(f"{name}: training and predicting, some minutes", file=sys.stderr)
        np.save(path, _predicted(Path(folder) / "mnist", options))
    return np.asarray(np.load(path), dtype=np.float32)


def _predicted(folder: Path, options: dict[str, Any]) -> Any:
    from suffice_research.data.set_readers import read_mnist
    from suffice_research.paper.experiments import published_network

    images, labels = read_mnist(folder)
    order = np.random.default_rng(0).permutation(len(images))
    model = published_network(0, device="cpu", **options).fit(images[order[:LABELS]], labels[order[:LABELS]])
    return model.sample_proba(images[order[LABELS:]], SAMPLES)
