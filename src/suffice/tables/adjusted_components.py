"""Components that make given features: those of the same rows, fitted on another processor.

Components of equal size can be rotated among each other, so rounding decides which of them a fit finds, and rounding
depends on the processor and its libraries. The features that a project stores are then not those of a second fit.
Components that make them are found from the features: of all that do, they are the ones with the smallest weights,
as those of each fit are.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack
from scipy.sparse.linalg import lsqr
from sklearn.pipeline import Pipeline

from suffice.numerics import Floats
from suffice.tables.transformers import NgramComponents, PrincipalComponents, TextComponents

# Components whose features differ by less, relative to the largest feature, are left as they are.
_EXACT: Final = 1e-9
# Steps of the iteration for a single component; components of equal size need few of them.
_MOST_STEPS: Final = 1000
# Largest cosine between two components. Rounding is less, also in the smallest components that are kept.
_LARGEST_COSINE: Final = 1e-3
# Texts whose weights are computed at a time.
_TEXTS_AT_ONCE: Final = 10_000


def adjust_components(transformer: Any, table: Any, features: Floats) -> bool:
    """Change the components of a fitted transformer, so that it makes given features of a table, if any components can.

    Only the last linear step of each feature is changed: components of a text or of many numbers, or the principal
    components of all features.

    Args:
        transformer: A :class:`~suffice.tables.transformers.TableTransformer`, alone or followed by a PCA, that was
            fitted to the table.
        table: The table.
        features: The features, as many columns as those of the transformer.

    Returns:
        Whether the components are orthogonal. With other rows, such as changed images, there may be components that
        make the features too, but these are not orthogonal.
    """
    steps = [step for _, step in transformer.steps] if isinstance(transformer, Pipeline) else [transformer]
    if len(steps) > 1:
        numbers, pca = steps[0].transform(table) - steps[1].mean_, steps[1]
        return _adjust(pca, np.ones(len(pca.components_), dtype=bool), numbers, features)
    at, orthogonal = 0, True
    for part, values in steps[0].fitted_parts(table):
        width = len(part.get_feature_names_out(["column"]))
        wanted = features[:, at : at + width]
        at += width
        if not width:
            continue
        if isinstance(part, PrincipalComponents):
            numbers = np.asarray(values, dtype=np.float64) - part.pca_.mean_
            orthogonal &= _adjust(part.pca_, part.kept_, numbers, wanted * part.scale_)
        elif isinstance(part, TextComponents):
            orthogonal &= _adjust(part.svd_, part.kept_, part.vectorizer_.transform(values), wanted * part.scale_)
        elif isinstance(part, NgramComponents):
            starts = range(0, len(values), _TEXTS_AT_ONCE)
            weights = vstack([part.weights(values[start : start + _TEXTS_AT_ONCE]) for start in starts], format="csr")
            orthogonal &= _adjust(part.svd_, part.kept_, weights, wanted / part.scales_)
    return orthogonal


def _adjust(step: Any, kept: NDArray[np.bool_], inputs: Any, wanted: Floats) -> bool:
    """Change the components of a step that are kept; return whether they are orthogonal."""
    found = np.array(step.components_[kept], dtype=np.float64)
    missing = wanted - inputs @ found.T
    scale = np.abs(wanted).max(axis=0, initial=0.0)
    changed = np.flatnonzero(np.abs(missing).max(axis=0, initial=0.0) > _EXACT * scale)
    for k in changed:
        # Starts at zero, so that the component remains in the space of the rows, where its weights are smallest.
        found[k] += lsqr(inputs, missing[:, k], atol=1e-14, btol=1e-14, conlim=0.0, iter_lim=_MOST_STEPS)[0]
    if not len(changed):
        return True
    components = np.array(step.components_, dtype=np.float64)
    components[kept] = found
    step.components_ = components
    length = np.linalg.norm(found, axis=1, keepdims=True)
    cosines = (found / np.maximum(length, 1e-300)) @ (found / np.maximum(length, 1e-300)).T
    return len(found) > 1 and float(np.abs(cosines - np.eye(len(found))).max()) <= _LARGEST_COSINE
