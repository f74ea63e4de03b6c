"""Texts as a language model sees them."""

from collections.abc import Sequence
from importlib import import_module
from typing import Final

import numpy as np

from suffice.data.features import Features
from suffice.data.reading import Texts
from suffice.errors import MissingExtraError, SufficeError
from suffice.session.reading.features import principal

_MOST: Final = 100


def embedded(name: str, texts: Texts, model: str) -> Features:
    """Make a column into sentence embeddings of length 1 and their largest principal components, at most 100.

    Args:
        name: Of the column.
        texts: Its values; a missing one is read as empty text.
        model: Name or folder of a sentence-transformers model.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        SufficeError: The model cannot be loaded or fails, or gives something else than numbers.
    """
    vectors = _vectors([*texts.levels, ""], model)
    return principal(name, f"column {name!r}: embeddings by {model}", vectors[texts.codes], _MOST)


def _vectors(texts: Sequence[str], model: str) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    """Return a vector of length 1 for each text."""
    try:
        package = import_module("sentence_transformers")
    except ImportError:
        raise MissingExtraError("sentence-transformers", "embed", "Reading texts with --embed") from None
    try:
        loaded = package.SentenceTransformer(model)
        found = loaded.encode(list(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False)
        vectors = np.asarray(found, dtype=np.float32)
    # Everything from a missing file to a network that is not there, each with a class of its own.
    except Exception as error:
        remedy = "give the name of a sentence-transformers model while there is a network, or the folder of one"
        raise SufficeError(f"--embed: the model {model!r} cannot be used: {_first_line(error)}; {remedy}") from error
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise SufficeError(f"--embed: the model {model!r} gives no finite numbers for these texts; take another one")
    return vectors


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
