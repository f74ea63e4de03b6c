"""The stop set: items on which rules observe the model's predictions, drawn once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from suffice.acquisition import Indices
from suffice.arguments import real, whole
from suffice.errors import InvalidValueError


@dataclass(frozen=True, eq=False)
class StopSet:
    r"""A fixed random sample of the pool, drawn before labelling starts and never drawn again, nor made smaller.

    Rules that watch predictions compare the same items before and after a label; an item that gets a label stays.

    Attributes:
        indices: Which items of the pool, ascending.
        pool_size: How many items the pool had when it was drawn.

    Reference: [BloodgoodVijayShanker2009], the stop set.

    Examples:
        >>> stop_set = StopSet.draw(10_000, seed=0)
        >>> len(stop_set), round(stop_set.kappa_error(0.99), 4)
        (2000, 0.0028)
    """

    indices: Indices
    pool_size: int

    @classmethod
    def draw(cls, pool: Any, size: int = 2000, *, seed: int = 0, clusters: int | None = None) -> "StopSet":
        """Draw a stop set.

        Args:
            pool: Number of items, or their inputs, ``m x D``.
            size: How many; all of a smaller pool.
            seed: Seed of the drawing.
            clusters: Draw from this many clusters of the inputs (k-means), from each in proportion to its size: a rare
                kind of item is then not missed by chance. Needs the inputs.

        Raises:
            InvalidValueError: An argument that cannot be used.
        """
        rng = np.random.default_rng(whole(seed, "seed", least=0))
        counted = isinstance(pool, int | np.integer) and not isinstance(pool, bool)
        total = whole(pool, "pool", least=1) if counted else _rows(pool)
        wanted = min(whole(size, "size", least=1), total)
        if clusters is None:
            return cls(np.sort(rng.permutation(total)[:wanted]), total)
        if counted:
            raise InvalidValueError("clusters are those of the inputs: give the inputs as pool, not their number")
        groups = _clustered(pool, min(whole(clusters, "clusters", least=1), total), rng)
        chosen = [
            rng.permutation(np.flatnonzero(groups == group))[:count] for group, count in _shares(groups, wanted).items()
        ]
        return cls(np.sort(np.concatenate(chosen)), total)

    def __post_init__(self) -> None:
        items, total = np.asarray(self.indices), whole(self.pool_size, "pool_size", least=1)
        good = items.ndim == 1 and len(items) and items.dtype.kind in "iu" and len(np.unique(items)) == len(items)
        if not good or items.min() < 0 or items.max() >= total:
            raise InvalidValueError(f"indices must be different items of the pool, from 0 to {total - 1}")
        frozen = np.sort(items.astype(np.intp))
        frozen.setflags(write=False)
        object.__setattr__(self, "indices", frozen)

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return f"StopSet({len(self)} of {self.pool_size} items)"

    def kappa_error(self, kappa: float = 0.99, *, chance: float = 0.5) -> float:
        r"""Standard error of a Cohen's kappa measured on this set, as an estimate of that of the whole pool.

        With agreement by chance :math:`p_e` and observed :math:`p_o = \kappa + (1 - \kappa) p_e`, for ``S`` of ``m``
        items drawn without replacement,

        .. math:: \frac{1}{1 - p_e} \sqrt{\frac{p_o (1 - p_o)}{S}} \sqrt{\frac{m - S}{m - 1}}.

        Args:
            kappa: The kappa measured.
            chance: Agreement that two models would have by chance: one half for two classes of equal share, near 1
                for a rare class, where kappa is known less well.

        Reference: [Cohen1960], the standard error of kappa, and the correction for a finite population.

        Examples:
            >>> StopSet.draw(2000).kappa_error(0.99)  # the whole pool: nothing is left to chance
            0.0
        """
        measured = real(kappa, "kappa", "from -1 to 1", lambda x: -1.0 <= x <= 1.0)
        by_chance = real(chance, "chance", "from 0 and below 1", lambda x: 0.0 <= x < 1.0)
        agreed = min(max(measured + (1.0 - measured) * by_chance, 0.0), 1.0)
        left = (self.pool_size - len(self)) / max(self.pool_size - 1, 1)
        return float(np.sqrt(agreed * (1.0 - agreed) / len(self) * left) / (1.0 - by_chance))


def _rows(pool: Any) -> int:
    rows = pool.shape[0] if hasattr(pool, "shape") and len(pool.shape) else 0
    if not rows:
        raise InvalidValueError("pool must be the number of items, or a table of their inputs with at least one row")
    return int(rows)


def _clustered(inputs: Any, clusters: int, rng: np.random.Generator) -> Any:
    from sklearn.cluster import MiniBatchKMeans

    X: Any = inputs.tocsr() if issparse(inputs) else np.asarray(inputs).reshape(_rows(inputs), -1)
    values = X.data if issparse(X) else X
    if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise InvalidValueError("clusters are those of the inputs, which must be finite numbers; leave clusters out")
    found = MiniBatchKMeans(clusters, random_state=int(rng.integers(2**31)), n_init=3).fit(X)
    return np.asarray(found.labels_)


def _shares(groups: Any, wanted: int) -> dict[int, int]:
    """Number of items of each group, in proportion to its size, by the largest remainders."""
    numbers, sizes = np.unique(groups, return_counts=True)
    exact = wanted * sizes / sizes.sum()
    counts = np.floor(exact).astype(int)
    rest = np.argsort(counts - exact, kind="stable")[: wanted - counts.sum()]
    counts[rest] += 1
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))
