"""Texts to numbers, without looking at their classes."""

from collections.abc import Sequence

import numpy as np

from suffice.errors import InvalidValueError
from suffice.special import Floats


def text_features(texts: Sequence[str], *, components: int = 100, seed: int = 0) -> Floats:
    """Return the largest singular components of the TF-IDF weights of all texts, ``n x components``.

    With ``W`` the matrix of weights (words in at least 3 texts, the 20,000 most frequent, without the usual English
    stop words, ``1 + log`` of the count), ``W = U S V'`` and the features are ``U S``, cut off. No label has a part in
    it. An empty text is all zeros.

    Args:
        texts: At least ``components + 1`` of them, with as many words that occur in 3 or more.
        components: How many features.
        seed: Of the random projection that starts the decomposition.

    Raises:
        InvalidValueError: Too few texts or words for so many components.

    Examples:
        >>> text_features(["red wine", "red rose", "white wine", "white rose"] * 3, components=2).shape
        (12, 2)
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(sublinear_tf=True, min_df=3, max_features=20_000, stop_words="english")
    try:
        weights = words.fit_transform(texts)
    except ValueError:
        weights = np.empty((len(texts), 0))
    if min(weights.shape) <= components:
        came = f"{weights.shape[0]} texts and {weights.shape[1]} such words"
        wanted = f"more than {components} texts and more than {components} words that occur in 3 of them or more"
        raise InvalidValueError(f"texts must be {wanted}, not {came}; give more texts or lower components")
    return np.asarray(TruncatedSVD(components, random_state=seed).fit_transform(weights), dtype=np.float64)
