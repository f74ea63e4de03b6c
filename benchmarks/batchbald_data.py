"""Class probabilities over a pool of MNIST: the network of BatchBALD's paper, 20 samples of its dropout masks.

Two of them: trained on 1000 labels, and after 5 steps only, where nearly everything is still possible. Each takes
minutes on one core and is kept in the system's temporary folder. Without SUFFICE_DATA, random numbers of that shape.
"""

import gzip
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LABELS, SAMPLES, CLASSES, KEPT = 1000, 20, 10, 0.5
POOL = 60_000 - LABELS
#: Width of the three layers that have masks.
MASKED = (32, 64, 128)
Probabilities = NDArray[np.float32]


def trained() -> Probabilities:
    """``N x K x C`` of the network after 50 epochs."""
    return _kept("trained", epochs=50, batch=64)


def early() -> Probabilities:
    """``N x K x C`` of the network after 5 steps with all the labels."""
    return _kept("early", epochs=5, batch=LABELS)


def exchangeable(spread: float = 1.0) -> Probabilities:
    """``N x K x C`` where every row is drawn alike: no candidate stands out, the worst that can come."""
    drawn = np.random.default_rng(0).dirichlet(np.full(CLASSES, spread), size=(POOL, SAMPLES))
    return np.asarray(drawn, dtype=np.float32)


def _kept(name: str, *, epochs: int, batch: int) -> Probabilities:
    folder = os.environ.get("SUFFICE_DATA")
    if folder is None:
        print(f"{name}: random numbers, for SUFFICE_DATA is not set", file=sys.stderr)
        return exchangeable(0.2 if name == "trained" else 2.0)
    path = Path(tempfile.gettempdir()) / f"suffice-batchbald-{name}.npy"
    if not path.exists():
        print(f"{name}: training, some minutes", file=sys.stderr)
        np.save(path, _predicted(Path(folder) / "mnist", epochs, batch))
    return np.asarray(np.load(path), dtype=np.float32)


def _predicted(folder: Path, epochs: int, batch: int) -> Probabilities:
    import torch

    torch.manual_seed(0)
    images, labels = _images(folder), _labels(folder)
    order = np.random.default_rng(0).permutation(len(images))
    layers = _fitted(images[order[:LABELS]], labels[order[:LABELS]], epochs, batch)
    masks = [[_mask(width) for width in MASKED] for _ in range(SAMPLES)]
    result = np.empty((POOL, SAMPLES, CLASSES), dtype=np.float32)
    with torch.no_grad():
        for start in range(0, POOL, 1000):
            block = images[order[LABELS + start : LABELS + start + 1000]]
            for sample, mask in enumerate(masks):
                result[start : start + 1000, sample] = torch.softmax(_logits(layers, block, mask), dim=1).numpy()
    return result


def _fitted(images: Any, labels: Any, epochs: int, batch: int) -> Any:
    import torch
    from torch import nn

    layers = nn.ModuleList([nn.Conv2d(1, 32, 5), nn.Conv2d(32, 64, 5), nn.Linear(1024, 128), nn.Linear(128, CLASSES)])
    adam = torch.optim.Adam(layers.parameters(), lr=1e-3)
    for _ in range(epochs):
        for chosen in torch.randperm(len(images)).split(batch):
            adam.zero_grad()
            masks = [_mask(width, len(chosen)) for width in MASKED]
            nn.functional.cross_entropy(_logits(layers, images[chosen], masks), labels[chosen]).backward()
            adam.step()
    return layers


def _logits(layers: Any, images: Any, masks: Any) -> Any:
    """One forward pass; masks of one row are shared by all images: one sample of the weights."""
    from torch.nn.functional import max_pool2d, relu

    first = relu(max_pool2d(layers[0](images) * masks[0][:, :, None, None], 2))
    second = relu(max_pool2d(layers[1](first) * masks[1][:, :, None, None], 2))
    return layers[3](relu(layers[2](second.flatten(1)) * masks[2]))


def _mask(width: int, rows: int = 1) -> Any:
    import torch

    return torch.bernoulli(torch.full((rows, width), KEPT)) / KEPT


def _images(folder: Path) -> Any:
    import torch

    values = np.frombuffer(gzip.decompress((folder / "train-images-idx3-ubyte.gz").read_bytes()), np.uint8, offset=16)
    return torch.from_numpy((values.reshape(-1, 1, 28, 28).astype(np.float32) / 255.0 - 0.1307) / 0.3081)


def _labels(folder: Path) -> Any:
    import torch

    values = np.frombuffer(gzip.decompress((folder / "train-labels-idx1-ubyte.gz").read_bytes()), np.uint8, offset=8)
    return torch.from_numpy(values.astype(np.int64))
