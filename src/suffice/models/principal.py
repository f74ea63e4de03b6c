"""Principal components as features of a linear model, for inputs with many columns."""

from typing import Any, Final, Self

import numpy as np
from scipy.sparse import issparse, vstack
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from suffice.arguments import whole
from suffice.errors import InvalidValueError
from suffice.models.inputs import column_names, require_finite, require_numbers
from suffice.numerics import Floats

# Rows from which components are computed at most, and fewer of very many columns: so many numbers, but so many rows.
_MOST_ROWS: Final = 10_000
_MOST_NUMBERS: Final = 20_000_000
_FEWEST_ROWS: Final = 1000
# Components of a smaller share of the variance of the first one are rounding.
_LEAST_VARIANCE: Final = 1e-6


class PrincipalFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""The largest principal components of the inputs, all divided by the standard deviation of the first one.

    Later components have smaller values, so with one prior for all weights they have less effect while there are few
    labels. Components that do not stand out from noise are left out. For ``n`` rows of ``D`` independent columns of
    variance :math:`\sigma^2`, the largest variance of a component is about :math:`\sigma^2 (1 + \sqrt{D / n})^2`. Those
    above are used, with :math:`\sigma^2` the mean variance of all others.

    Inputs need no labels, so fit it on the whole pool; standardise columns of different units first. Of more
    than 10,000 rows, the components are computed from 10,000 that are drawn at random (of rows with more than 2,000
    columns from fewer, 1,000 at least). Sparse matrices are accepted.

    With ``partial_fit`` in batches, the components are those of ``fit`` on all batches. They are computed when they are
    first needed; a batch after that starts again.

    Args:
        n_components: Number of components at most; fewer if the inputs have fewer.
        fewest: All of them are used if fewer than this number stand out from noise.
        seed: Seed of the draw of rows and of the search for components.

    Attributes:
        pca_: The fitted :class:`sklearn.decomposition.PCA`.
        n_components_: Number of components in use, at least 1.
        scale_: Standard deviation of the first component; 1 if all inputs are the same.

    Reference: [MarchenkoPastur1967] for the largest variance of noise.

    Raises:
        InvalidValueError: An input is not a finite number; the message names its row and column.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(500, 20)) @ rng.normal(size=(20, 300)) + rng.normal(size=(500, 300))
        >>> features = PrincipalFeatures(50).fit_transform(X)
        >>> features.shape, features[:, 0].std().round(6)
        ((500, 20), np.float64(1.0))
    """

    pca_: Any
    n_components_: int
    scale_: float

    def __init__(self, n_components: int = 50, *, fewest: int = 5, seed: int = 0) -> None:
        self.n_components = n_components
        self.fewest = fewest
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Compute the components; ``y`` is ignored."""
        self._forget()
        return self._add(X, first=True)._compute()

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Add a batch of rows; ``y`` is ignored."""
        first = not hasattr(self, "_rows")
        if first:
            self._forget()
        return self._add(X, first=first)

    def transform(self, X: Any) -> Floats:
        """The components of each row, ``n x n_components_``."""
        check_is_fitted(self, "n_features_in_")
        if hasattr(self, "_rows"):
            self._compute()
        components = self.pca_.transform(self._inputs(X, reset=False))[:, : self.n_components_]
        return np.asarray(components / self.scale_, dtype=np.float64)

    def get_feature_names_out(self, input_features: Any = None) -> Any:  # noqa: ARG002 - scikit-learn's signature
        """Name of each component."""
        check_is_fitted(self, "n_features_in_")
        if hasattr(self, "_rows"):
            self._compute()
        return np.array([f"component{k}" for k in range(self.n_components_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _forget(self) -> None:
        for name in ("_rows", "_keys", "_rng", "pca_", "n_components_", "scale_"):
            self.__dict__.pop(name, None)

    def _inputs(self, X: Any, *, reset: bool) -> Any:
        names = column_names(X)
        if not issparse(X) and getattr(getattr(X, "dtype", None), "kind", "") != "c":
            require_numbers(X)
        inputs = validate_data(self, X, accept_sparse="csr", reset=reset, dtype=np.float64, ensure_all_finite=False)
        if not issparse(inputs):
            require_finite(inputs, names)
        elif not np.isfinite(inputs.data).all():
            place = int(np.flatnonzero(~np.isfinite(inputs.data))[0])
            row = int(np.searchsorted(inputs.indptr, place, side="right")) - 1
            raise InvalidValueError(
                f"X contains {inputs.data[place]:g} at row {row}, column {inputs.indices[place]}; every number must "
                "be finite. Remove the row, or fill in the value"
            )
        return inputs

    def _add(self, X: Any, *, first: bool) -> Self:
        """Add rows to the sample: those with the smallest of random keys, in the order in which they came."""
        inputs = self._inputs(X, reset=first)
        if first:
            whole(self.n_components, "n_components", least=1)
            whole(self.fewest, "fewest", least=0)
            self._rng = np.random.default_rng(whole(self.seed, "seed", least=0))
            self._rows, self._keys = inputs[:0], np.zeros(0)
        keys = np.concatenate([self._keys, self._rng.random(inputs.shape[0])])
        most = max(_FEWEST_ROWS, min(_MOST_ROWS, _MOST_NUMBERS // inputs.shape[1]))
        joined = vstack([self._rows, inputs]).tocsr() if issparse(inputs) else np.vstack([self._rows, inputs])
        used = slice(None) if len(keys) <= most else np.sort(np.argpartition(keys, most)[:most])
        self._rows, self._keys = joined[used], keys[used]
        return self

    def _outstanding(self, variance: Floats, shape: tuple[int, int]) -> int:
        """Number of components that stand out from the noise of all others."""
        n, width = shape
        share = float(self.pca_.explained_variance_ratio_.sum())
        if width == len(variance) or not share > 0.0:
            return len(variance)
        total = float(variance.sum()) / share
        largest = (1.0 + float(np.sqrt(width / n))) ** 2
        # Noise in components that are taken out makes the rest too small, so the number falls from step to step. Where
        # the rest is rounding error it could rise again, without an end.
        count, fewer = len(variance) + 1, len(variance)
        while fewer < count:
            count = fewer
            noise = max(0.0, total - float(variance[:count].sum())) / (width - count)
            fewer = int(np.count_nonzero(variance > noise * largest))
        return count

    def _compute(self) -> Self:
        from sklearn.decomposition import PCA

        rows = self._rows
        if issparse(rows) and rows.shape[0] * rows.shape[1] <= _MOST_NUMBERS:
            rows = rows.toarray()
        # The solver for large sparse matrices finds all components but one at most.
        most = min(self.n_components, *(size - int(issparse(rows)) for size in rows.shape))
        if rows.shape[0] < 2:
            raise InvalidValueError(
                f"X must have at least 2 rows for principal components, not n_samples = {rows.shape[0]}"
            )
        self.pca_ = PCA(most, random_state=self.seed).set_output(transform="default")
        with np.errstate(divide="ignore", invalid="ignore"):
            self.pca_.fit(rows)
        variance = np.maximum(self.pca_.explained_variance_, 0.0)
        usable = int(np.count_nonzero(variance > _LEAST_VARIANCE * variance[0]))
        outstanding = min(usable, self._outstanding(variance, rows.shape))
        self.n_components_ = max(1, usable if outstanding < self.fewest else outstanding)
        deviation = float(np.sqrt(variance[0] * (1.0 - 1.0 / rows.shape[0])))
        self.scale_ = deviation if deviation > 0.0 else 1.0
        for name in ("_rows", "_keys", "_rng"):
            del self.__dict__[name]
        return self
