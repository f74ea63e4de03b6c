"""Candidates in a torch tensor, on the device where it lives."""

from typing import Any, Final

import numpy as np

from suffice.acquisition.candidates import (
    BLOCK,
    CHUNK,
    TINY,
    Weights,
    allowed,
    mass_entropy,
    pieces,
    refuse,
    three_axes,
)
from suffice.errors import InvalidTypeError
from suffice.special import Floats

# Numbers in a block on an accelerator: 128 MB of float64, enough to keep it busy.
_WIDE: Final = 2**24


class TensorCandidates:
    """Candidates in a torch tensor; see :class:`~suffice.acquisition.candidates.Candidates`.

    Args:
        probs: Of any floating precision, on any device that knows float64.
    """

    def __init__(self, probs: Any) -> None:
        import torch

        if not probs.is_floating_point():
            raise InvalidTypeError(f"probs must be an array or a tensor of real numbers, not a tensor of {probs.dtype}")
        self.shape = three_axes(probs.shape)
        self._probs = probs
        self._allowed = allowed(torch.finfo(probs.dtype).eps)
        self._size = BLOCK if probs.device.type == "cpu" else _WIDE

    def bald(self) -> Floats:
        """What each label would tell, checked on the way."""
        n, samples, classes = self.shape
        result = np.empty(n)
        size = max(1, self._size // (samples * classes))
        for start in range(0, n, size):
            p = self._probs[start : start + size].double()
            sums = p.sum(dim=2)
            if not bool(((sums - 1.0).abs() <= self._allowed).all() & (p >= 0.0).all()):
                refuse(p.cpu().numpy(), start, self._allowed)
            p = p / sums[:, :, None]
            gain = p.xlogy(p).sum(dim=(1, 2)) / samples - _sum_plogp(p.mean(dim=1))
            result[start : start + size] = gain.cpu().numpy()
        return np.maximum(result, 0.0, out=result)

    def one(self, index: int) -> Floats:
        """The probabilities of one candidate."""
        p = self._probs[index].double().cpu().numpy()
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def weights(self, rows: Floats) -> Weights:
        """Configurations, copied to the device."""
        return Weights(self._here(rows), mass_entropy(rows), self._here(rows.sum(axis=0)))

    def information(self, indices: Any, weights: Weights) -> Floats:
        """What some labels would tell, given configurations of others."""
        result = np.zeros(len(indices))
        _, samples, classes = self.shape
        chosen = self._here(indices)
        for start, stop in pieces(len(indices), weights.rows.shape, classes, self._size):
            p = self._probs[chosen[start:stop]].double().transpose(1, 2)
            block = (p / p.sum(dim=1, keepdim=True) + TINY).reshape(-1, samples)
            gain = ((block * block.log()) @ weights.share).reshape(-1, classes).sum(dim=1) + weights.entropy
            for first in range(0, len(weights.rows), CHUNK):
                gain -= _sum_plogp((block @ weights.rows[first : first + CHUNK].T).reshape(stop - start, -1))
            result[start:stop] = gain.cpu().numpy()
        return np.maximum(result, 0.0, out=result)

    def _here(self, array: Any) -> Any:
        import torch

        return torch.from_numpy(array).to(self._probs.device)


def _sum_plogp(p: Any) -> Any:
    return p.xlogy(p).sum(dim=1)
