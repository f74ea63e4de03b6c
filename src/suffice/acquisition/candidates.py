"""Candidates for a label as class probabilities under posterior samples, in numpy arrays or torch tensors."""

import sys
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, NoReturn, Protocol

import numpy as np
from scipy.special import entr

from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.numerics.special_functions import Floats

#: Numbers in a block: two such blocks of float64 fit into the second-level cache of a core (1 MB).
BLOCK: Final = 2**16
#: Configurations at a time, so that a block holds several candidates.
CHUNK: Final = 1024
#: Added to probabilities before a logarithm: changes none but 0, and times a mass that counts it is still above 0.
TINY: Final = 1e-200
# Rows may miss 1 by this much whatever their precision: float64 is often the float32 of a network, copied.
_LOOSE: Final = 1e-4
# Half precision: rounding alone moves a sum by one unit in the last place; a softmax by a few.
_UNITS: Final = 8.0


class Weights(NamedTuple):
    """Configurations of labels as candidates use them; see :func:`weighed`.

    Attributes:
        rows: Probability of sample and configuration together, ``S x K``, where the candidates are.
        entropy: ``sum_s m_s log m_s`` of the configurations' masses.
        share: Sum over the configurations, ``K``.
    """

    rows: Any
    entropy: float
    share: Any


class Candidates(Protocol):
    """Candidates by their class probabilities, ``N x K x C``: ``K`` samples of the posterior, ``C`` classes."""

    shape: tuple[int, int, int]

    def bald(self) -> Floats:
        """Information of each label about the parameters, ``N``; checks every number."""

    def one(self, index: int) -> Floats:
        """The probabilities of one candidate, ``K x C``."""

    def weights(self, rows: Floats) -> Weights:
        """Configurations, ``S x K``, brought to where the candidates are."""

    def information(self, indices: Any, weights: Weights) -> Floats:
        r"""Information of some labels about the parameters, given configurations of others.

        With ``W`` the rows, ``m`` their masses, ``v`` their sum and ``p`` the candidate's probabilities,

        .. math:: \sum_s m_s I_s = \sum_s m_s \log m_s - \sum_{sc} (Wp)_{sc} \log (Wp)_{sc}
            + \sum_{kc} v_k p_{kc} \log p_{kc}

        where :math:`I_s \ge 0` is the mutual information of label and parameters in configuration ``s``.
        """


def candidates(probs: Any) -> Candidates:
    """Candidates from an array or a torch tensor, left where it is.

    Raises:
        InvalidTypeError: Not real numbers.
        InvalidValueError: Not three axes, or no sample or no class.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(probs, torch.Tensor):
        tensor = probs.detach()
        # Memory on the host is numpy's too; bfloat16 is not.
        if tensor.device.type != "cpu" or tensor.dtype == torch.bfloat16:
            return TensorCandidates(tensor)
        probs = tensor.numpy()
    return ArrayCandidates(probs)


class ArrayCandidates:
    """Candidates in a numpy array."""

    def __init__(self, probs: Any) -> None:
        try:
            array = np.asarray(probs)
        except ValueError:
            array = np.asarray(None)
        if array.dtype.kind not in "fiub":
            raise InvalidTypeError(f"probs must be an array or a tensor of real numbers, not {_named(probs)}")
        self.shape = three_axes(array.shape)
        whole = array.dtype.kind != "f"
        self._probs = array.astype(np.float64) if whole else array
        self._allowed = allowed(float(np.finfo(self._probs.dtype).eps))

    def bald(self) -> Floats:
        """Information of each label; see :class:`Candidates`."""
        n, samples, classes = self.shape
        result = np.empty(n)
        size = max(1, BLOCK // (samples * classes))
        block = np.empty((samples, classes, size))
        logs = np.empty_like(block)
        for start in range(0, n, size):
            # Candidates last: every sum below then runs along memory.
            given = self._probs[start : start + size].transpose(1, 2, 0)
            p, log_p = block[:, :, : given.shape[2]], logs[:, :, : given.shape[2]]
            np.copyto(p, given)
            sums = p.sum(axis=1)
            if not (np.abs(sums - 1.0) <= self._allowed).all() or p.min() < 0.0:
                refuse(self._probs[start : start + size].astype(np.float64), start, self._allowed)
            p *= (1.0 / sums)[:, None]
            mean = p.mean(axis=0)
            # Not entr, here and below: numpy computes logarithms with vector instructions, and the product can be BLAS.
            np.add(p, TINY, out=log_p)
            np.log(log_p, out=log_p)
            p *= log_p
            result[start : start + size] = p.sum(axis=(0, 1)) / samples - plogp(mean).sum(axis=0)
        return np.maximum(result, 0.0, out=result)

    def one(self, index: int) -> Floats:
        """The probabilities of one candidate."""
        p = self._probs[index].astype(np.float64)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def weights(self, rows: Floats) -> Weights:
        """Configurations, as they are."""
        return Weights(rows, mass_entropy(rows), rows.sum(axis=0))

    def information(self, indices: Any, weights: Weights) -> Floats:
        """Information of some labels; see :class:`Candidates`."""
        result = np.zeros(len(indices))
        _, samples, classes = self.shape
        for start, stop in pieces(len(indices), weights.rows.shape, classes, BLOCK):
            block = self._block(indices[start:stop]).reshape(-1, samples)
            entropy = ((block * np.log(block)) @ weights.share).reshape(-1, classes).sum(axis=1)
            result[start:stop] = weights.entropy + entropy - self._joint(block, weights.rows)
        return np.maximum(result, 0.0, out=result)

    def _block(self, indices: Any) -> Floats:
        """Probabilities above 0 with sums of 1, ``L x C x K``."""
        given = self._probs[indices].astype(np.float64)
        # A product with ones is many times faster than a sum along so short an axis.
        sums = (given.reshape(-1, self.shape[2]) @ np.ones(self.shape[2])).reshape(given.shape[:2])
        block = np.divide(given.transpose(0, 2, 1), sums[:, None, :], order="C")
        block += TINY
        return np.asarray(block)

    def _joint(self, block: Floats, rows: Floats) -> Floats:
        """``sum_sc q log q`` with ``q`` the joint probabilities of configuration and label, for each candidate."""
        classes = self.shape[2]
        count = len(block) // classes
        total = np.zeros(count)
        for start in range(0, len(rows), CHUNK):
            joint = block @ rows[start : start + CHUNK].T
            logs = np.log(joint)
            total += (joint.reshape(count, 1, -1) @ logs.reshape(count, -1, 1)).reshape(count)
        return total


def plogp(p: Floats) -> Floats:
    """``p log p``, elementwise, 0 at 0.

    Examples:
        >>> plogp(np.array([0.0, 1.0, 0.5])).round(4) + 0.0
        array([ 0.    ,  0.    , -0.3466])
    """
    return np.asarray(-entr(p))


def mass_entropy(rows: Floats) -> float:
    """``sum_s m_s log m_s`` of the masses of configurations, all above 0."""
    return float(plogp(rows.sum(axis=1)).sum())


def pieces(count: int, rows: tuple[int, int], classes: int, block: int) -> Iterator[tuple[int, int]]:
    """Candidates at a time, so that their joint probabilities with a chunk of configurations fill a block."""
    widest = max(min(rows[0], CHUNK), rows[1])
    size = max(1, block // (classes * widest))
    for start in range(0, count, size):
        yield start, min(start + size, count)


def three_axes(shape: Any) -> tuple[int, int, int]:
    """The shape of ``N x K x C`` probabilities, or an error."""
    if len(shape) != 3 or shape[1] < 1 or shape[2] < 1:
        raise InvalidValueError(
            f"probs must be N x K x C: candidates, samples of the posterior, classes; its shape is {tuple(shape)}"
        )
    n, samples, classes = (int(length) for length in shape)
    return n, samples, classes


def allowed(eps: float) -> float:
    """Allowed distance from 1 of a sum of probabilities of this precision."""
    return max(_LOOSE, _UNITS * eps)


def refuse(block: Floats, start: int, tolerance: float) -> NoReturn:
    """Say what is wrong with the first bad numbers of a block that begins at a candidate."""
    bad = np.argwhere(~((block >= 0.0) & np.isfinite(block)))
    if len(bad):
        place = (int(bad[0][0]) + start, int(bad[0][1]), int(bad[0][2]))
        raise InvalidValueError(f"probs must be probabilities, 0 or more, but is {block[tuple(bad[0])]} at {place}")
    sums = block.sum(axis=2)
    row = np.argwhere(np.abs(sums - 1.0) > tolerance)[0]
    raise InvalidValueError(
        f"probs must sum to 1 over its last axis, the classes, within {tolerance:.2g}, "
        f"but the sum is {sums[tuple(row)]:.6g} for candidate {int(row[0]) + start}, sample {int(row[1])}"
    )


def _named(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


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
        """Information of each label; checks every number."""
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
        """Information of some labels, given configurations of others."""
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
