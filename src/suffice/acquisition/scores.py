"""How useful a label would be, from what the model predicts: larger is more useful."""

from typing import Any, Final

import numpy as np
from scipy.special import entr

from suffice.acquisition.candidates import candidates
from suffice.errors import InvalidValueError
from suffice.special import Floats

#: Names of acquisitions, by the kind of model that they serve.
NAMES: Final = {
    "regression": ("variance", "entropy", "random", "k-centre", "order"),
    "classification": ("entropy", "map-entropy", "margin", "bald", "random", "k-centre", "order"),
    "network": ("batchbald", "bald", "entropy", "margin", "random", "k-centre", "order"),
}


def require_known(name: str, kind: str) -> str:
    """Return the name of an acquisition, or say which there are.

    Examples:
        >>> require_known("k-center", "regression")
        'k-centre'
    """
    spelled = "k-centre" if name in ("k-center", "kcentre", "kcenter", "coreset") else name
    if spelled not in NAMES[kind]:
        raise InvalidValueError(f"acquisition for {kind} is one of {', '.join(NAMES[kind])}; not {name!r}")
    return spelled


def entropy(probabilities: Floats) -> Floats:
    r"""Entropy of each row, :math:`-\sum_c p_c \log p_c`, in nats; ``m x K`` to ``m``.

    Reference: [IshibashiHino2021] section 5.2, model 2.

    Examples:
        >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4)
        array([0.6931, 0.    ])
    """
    return np.asarray(entr(probabilities).sum(axis=1))


def margin(probabilities: Floats) -> Floats:
    """How close the two likeliest classes are: 1 less the difference of their probabilities; ``m x K`` to ``m``.

    Examples:
        >>> margin(np.array([[0.5, 0.4, 0.1], [1.0, 0.0, 0.0]])).round(4)
        array([0.9, 0. ])
    """
    if probabilities.shape[1] < 2:
        return np.zeros(len(probabilities))
    top = np.partition(probabilities, -2, axis=1)[:, -2:]
    return np.asarray(1.0 - (top[:, 1] - top[:, 0]))


def bald(probs: Any) -> Floats:
    r"""What each label would tell about the parameters, :math:`H[\bar p] - \overline{H[p]}` over samples, in nats.

    Args:
        probs: Probability of each class under each sample of the posterior, ``N x K x C``; a numpy array or a tensor.

    Returns:
        ``N`` numbers.

    Reference: [Houlsby2011] equation 2.

    Examples:
        >>> bald(np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]])).round(4)
        array([0.6931, 0.    ])
    """
    return candidates(probs).bald()
