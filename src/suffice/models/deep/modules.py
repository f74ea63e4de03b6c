"""Networks by name: the paper's for MNIST, and one of plain layers for tables."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn


def perceptron(inputs: int, outputs: int, hidden: Sequence[int], rate: float) -> nn.Sequential:
    """Plain layers: ``linear - relu - dropout`` for each hidden width, then ``linear``."""
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(rate)]
        inputs = width
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(inputs, outputs))


def mnist_network(outputs: int, rate: float) -> nn.Sequential:
    """The paper's network for images of 28 x 28: two convolutions, each dropped by channel, and two plain layers.

    Reference: [IshibashiHino2021] section 6.1; the network of [Kirsch2019].
    """
    return nn.Sequential(
        nn.Conv2d(1, 32, 5),
        nn.Dropout2d(rate),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 5),
        nn.Dropout2d(rate),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(1024, 128),
        nn.Dropout(rate),
        nn.ReLU(),
        nn.Linear(128, outputs),
    )


def widened(module: nn.Sequential, places: Sequence[int], outputs: int) -> nn.Sequential:
    """The same network with more outputs: what it has learned stays, the new outputs start as at the beginning.

    Args:
        module: One of the networks above.
        places: Where its outputs stand among the new ones.
        outputs: Number of outputs from now on.
    """
    old: Any = module[-1]
    head = nn.Linear(old.in_features, outputs, device=old.weight.device)
    with torch.no_grad():
        # With one class there is a second output that stands for none.
        head.weight[list(places)] = old.weight[: len(places)]
        head.bias[list(places)] = old.bias[: len(places)]
    return nn.Sequential(*list(module)[:-1], head)
