"""Labelled rows and the loss of logistic regression on them, for two classes or many."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import sqrt
from typing import Any, Final

import numpy as np
from scipy.special import softmax

from suffice.numerics import Floats

_EPS: Final = float(np.finfo(np.float64).eps)
_TINY: Final = float(np.finfo(np.float64).tiny)
# From this number of classes on, one large product is faster than one for each pair of classes.
_MANY_CLASSES: Final = 8
# Largest size of its factor, in bytes.
_LARGEST_PRODUCT: Final = 1 << 25
# A general matrix product is faster than a symmetric one below this number of features.
_SMALL: Final = 24


class LabelledLoss(ABC):
    """The labelled rows, and the negative log likelihood of their labels as a function of the logits.

    There are ``P = C J`` weights. Methods with ``start`` are about the rows from that number on.

    Args:
        n_features: ``J``.
        n_classes: ``K``; labels are class codes ``0 .. K-1``.
        outputs: Number of logits of a row, ``C``: 1 for two classes, else ``K``.

    Attributes:
        n: Number of labels.
        n_features: ``J``.
        n_classes: ``K``.
        outputs: ``C``.
        longest: Largest norm of a row.
    """

    def __init__(self, n_features: int, n_classes: int, outputs: int) -> None:
        self.n, self.n_features, self.n_classes, self.outputs, self.longest = 0, n_features, n_classes, outputs, 0.0
        self._unreached: Floats | None = None
        # One column per label: a product with the first n columns needs no copy, and long rows are fast to read.
        # Zeros, because the array is saved, and a file must not contain earlier contents of the memory.
        self._columns, self._scratch = np.zeros((2, n_features, 16))
        self._codes = np.zeros(16, dtype=np.intp)

    def append(self, features: Floats, labels: Any) -> int:
        """Store rows (``k x J``) with their class codes, and return the number of rows before."""
        start, end = self.n, self.n + len(labels)
        if end > len(self._codes):
            # Not a power of 2, because columns at such a distance would map to the same cache lines.
            room = 2 * end + 24
            wider = np.zeros((2, self.n_features, room))
            wider[0, :, :start] = self._columns[:, :start]
            self._columns, self._scratch = wider
            self._codes = np.concatenate([self._codes[:start], np.zeros(room - start, dtype=np.intp)])
        self._columns[:, start:end] = features.T
        self._codes[start:end] = labels
        self.longest = max(self.longest, sqrt((features * features).sum(axis=1).max()))
        self.n, self._unreached = end, None
        return start

    def labelled(self) -> tuple[Floats, Any]:
        """Features (``n x J``) and class codes (``n``) of all labels so far."""
        return np.ascontiguousarray(self._columns[:, : self.n].T), self._codes[: self.n].copy()

    def logits(self, weights: Floats, start: int) -> Floats:
        """Logits of the rows from ``start`` on, ``C x (n - start)``."""
        return np.asarray(weights.reshape(self.outputs, -1) @ self._columns[:, start : self.n])

    def gradient(self, logits: Floats, start: int) -> Floats:
        """Gradient of the loss of the rows from ``start`` on by the weights, ``P``."""
        return np.asarray((self.residual(logits, start) @ self._columns[:, start : self.n].T).ravel())

    def hessian_product(self, logits: Floats) -> Callable[[Floats], Floats]:
        """The function that multiplies ``P`` numbers by the Hessian of the loss at the given logits of all rows."""
        H = self.curvature(logits, 0)
        return lambda vector: np.asarray(H @ vector)

    def within_span(self, vector: Floats) -> Floats:
        """Return weights, a gradient or a step without rounding errors that a weak prior does not suppress.

        These are in directions orthogonal to all rows, because the minimum is a combination of rows, and in the part
        that all classes have in common, because the residuals of a row sum to 0.
        """
        if self._unreached is None:
            rows = self._columns[:, : self.n].T
            scale = np.abs(rows).max(axis=0) + _TINY
            _, sizes, basis = np.linalg.svd(np.linalg.qr(rows / scale, mode="r"))
            rank = int((sizes > sizes[0] * max(rows.shape) * _EPS).sum())
            # For rows of scaled features the weights are w * scale.
            self._unreached = np.linalg.qr(basis[rank:].T / scale[:, None])[0]
        parts = vector.reshape(self.outputs, -1)
        parts = parts - parts @ self._unreached @ self._unreached.T
        return (parts - parts.mean(axis=0) if self.outputs > 1 else parts).ravel()

    @abstractmethod
    def value(self, logits: Floats) -> float:
        """Negative log likelihood of all labels."""

    @abstractmethod
    def residual(self, logits: Floats, start: int) -> Floats:
        """Derivative of the loss of the rows from ``start`` on by their logits, of the same shape."""

    @abstractmethod
    def curvature(self, logits: Floats, start: int) -> Floats:
        """Hessian of the loss of the rows from ``start`` on by the weights, a new ``P x P`` matrix."""

    @abstractmethod
    def curvature_roots(self, logits: Floats) -> Floats:
        """Rows ``A`` with ``A'A`` the Hessian of the loss of all labels."""


class BinaryLoss(LabelledLoss):
    """The loss for two classes, ``p(y = 1) = sigmoid(w'x)``.

    Rows are stored with the sign of their label, so the loss depends only on the logit ``s`` of the observed label:
    ``p - y`` is ``-sigmoid(-s)``.

    Args:
        n_features: ``J``.
    """

    def __init__(self, n_features: int) -> None:
        super().__init__(n_features, n_classes=2, outputs=1)

    def append(self, features: Floats, labels: Any) -> int:
        """Store rows (``k x J``) with their class codes, and return the number of rows before."""
        return super().append(features * (2.0 * labels - 1.0)[:, None], labels)

    def labelled(self) -> tuple[Floats, Any]:
        """Features (``n x J``) and class codes (``n``) of all labels so far."""
        features, codes = super().labelled()
        return features * (2.0 * codes - 1.0)[:, None], codes

    def value(self, logits: Floats) -> float:
        """Negative log likelihood of all labels."""
        return float(np.logaddexp(0.0, -logits).sum())

    def residual(self, logits: Floats, start: int) -> Floats:  # noqa: ARG002
        """Derivative of the loss by the logits of the observed labels."""
        # Above 700 the exponential overflows, and the residual is practically 0.
        residual: Floats = -1.0 / (1.0 + np.exp(np.minimum(logits, 700.0)))
        return residual

    def curvature(self, logits: Floats, start: int) -> Floats:
        """Hessian ``X' diag(p (1 - p)) X`` of the loss of the rows from ``start`` on."""
        rows, root = self._columns[:, start : self.n], _deviation(logits[0])
        weighted = self._scratch[:, start : self.n]
        if len(rows) < _SMALL:
            product: Floats = rows @ np.multiply(rows, root * root, out=weighted).T
            return 0.5 * (product + product.T)
        np.multiply(rows, root, out=weighted)
        return weighted @ weighted.T

    def curvature_roots(self, logits: Floats) -> Floats:
        """Rows ``A`` with ``A'A`` the Hessian of the loss of all labels."""
        return (self._columns[:, : self.n] * _deviation(logits[0])).T


class SoftmaxLoss(LabelledLoss):
    """The loss for ``K`` classes, ``p_k = exp(w_k'x) / sum_l exp(w_l'x)``.

    Args:
        n_features: ``J``.
        n_classes: ``K``.
    """

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__(n_features, n_classes, outputs=n_classes)

    def value(self, logits: Floats) -> float:
        """Negative log likelihood of all labels."""
        own = logits[self._codes[: self.n], np.arange(self.n)]
        return float((np.logaddexp.reduce(logits, axis=0) - own).sum())

    def residual(self, logits: Floats, start: int) -> Floats:
        """Derivative of the loss by the logits, ``p - y``."""
        own = self._codes[start : self.n], np.arange(self.n - start)
        odds = np.exp(logits - logits.max(axis=0))
        mine = odds[own]
        # 1 - p of the label's class is computed as the sum of the others, not as a difference of nearly equal numbers.
        odds[own] = 0.0
        odds[own] = -(others := odds.sum(axis=0))
        return np.asarray(odds / (mine + others))

    def curvature(self, logits: Floats, start: int) -> Floats:
        """Hessian of the loss of the rows from ``start`` on: ``K(K-1)/2`` products, or one of larger matrices."""
        rows, scratch = self._columns[:, start : self.n], self._scratch[:, start : self.n]
        p, J = softmax(logits, axis=0), self.n_features
        if self.n_classes >= _MANY_CLASSES:
            return _curvature_of_many(p, rows)
        blocks = np.zeros((self.n_classes, J, self.n_classes, J))
        for k in range(self.n_classes):
            for other in range(k):
                product = rows @ np.multiply(rows, 0.5 * p[k] * p[other], out=scratch).T
                product = product + product.T
                blocks[k, :, other] = blocks[other, :, k] = -product
                blocks[k, :, k] += product
                blocks[other, :, other] += product
        return blocks.reshape(self.n_classes * J, self.n_classes * J)

    def hessian_product(self, logits: Floats) -> Callable[[Floats], Floats]:
        """The function that multiplies ``P`` numbers by the Hessian of the loss, which is not formed."""
        p, rows = softmax(logits, axis=0), self._columns[:, : self.n]

        def times(vector: Floats) -> Floats:
            change = p * (vector.reshape(self.n_classes, -1) @ rows)
            change -= p * change.sum(axis=0)
            return np.asarray((change @ rows.T).ravel())

        return times

    def curvature_roots(self, logits: Floats) -> Floats:
        """Rows ``A`` with ``A'A`` the Hessian of the loss of all labels."""
        # diag(p) - p p' = B B' with B = diag(u)(I - u u') and u = sqrt(p), because I - u u' is a projection.
        u = np.sqrt(softmax(logits, axis=0))
        halves = u * (np.eye(self.n_classes)[:, :, None] - u[:, None] * u)
        rows = np.einsum("cki,ji->cikj", halves, self._columns[:, : self.n])
        return np.asarray(rows.reshape(-1, self.n_classes * self.n_features))


def _curvature_of_many(p: Floats, rows: Floats) -> Floats:
    """Hessian of the loss of many classes: one product ``Z Z'`` of the rows ``p_k x``, ``K J x n``.

    Args:
        p: Probabilities, ``K x n``.
        rows: Features, ``J x n``.
    """
    (K, n), J = p.shape, len(rows)
    H = np.zeros((K * J, K * J))
    at_once = max(1, _LARGEST_PRODUCT // (8 * K * J))
    for start in range(0, n, at_once):
        part = slice(start, start + at_once)
        Z = (p[:, None, part] * rows[:, part]).reshape(K * J, -1)
        H -= Z @ Z.T
    blocks, own = H.reshape(K, J, K, J), np.arange(K)
    # The blocks of a class sum to 0 up to rounding.
    blocks[own, :, own] = 0.0
    half = -0.5 * (H @ np.tile(np.eye(J), (K, 1))).reshape(K, J, J)
    blocks[own, :, own] = half + half.transpose(0, 2, 1)
    return H


def _deviation(logits: Floats) -> Floats:
    """Return ``sqrt(p (1 - p))``, accurate also for very small values."""
    half = np.exp(-0.5 * np.abs(logits))
    return half / (1.0 + half * half)
