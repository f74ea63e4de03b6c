"""Features of texts by a sentence-transformers model."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

import numpy as np

from suffice.errors import MissingExtraError, SufficeError

_MOST_EMBEDDING_COMPONENTS: Final = 100


def embedding_transformer(name: str, model: str) -> Any:
    """Return a transformer of texts to sentence embeddings and their largest principal components, at most 100.

    Args:
        name: Name of the column.
        model: Name or folder of a sentence-transformers model. The transformer stores this name, not the model.
    """
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    from suffice.tables.transformers import PrincipalComponents

    description = f"column {name!r}: embeddings by {model}"
    return make_pipeline(
        FunctionTransformer(embedding_vectors, kw_args={"model": model}),
        PrincipalComponents(name, description, _MOST_EMBEDDING_COMPONENTS),
    )


def embedding_vectors(texts: Sequence[str], model: str) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    """Return a vector of length 1 for each text; a missing text is empty.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        SufficeError: The model cannot be loaded, fails, or does not return finite numbers.
    """
    # Each distinct text is encoded once; the empty text comes last.
    levels = [text for text in dict.fromkeys(texts) if text]
    code = {text: k for k, text in enumerate([*levels, ""])}
    return _encoded([*levels, ""], model)[[code[text] for text in texts]]


def _encoded(texts: Sequence[str], model: str) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    try:
        package = import_module("sentence_transformers")
    except ImportError:
        raise MissingExtraError("sentence-transformers", "embed", "Reading texts with --embed") from None
    try:
        loaded = package.SentenceTransformer(model)
        found = loaded.encode(list(texts), normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False)
        vectors = np.asarray(found, dtype=np.float32)
    # The package raises many classes of errors, from a missing file to a missing network.
    except Exception as error:
        remedy = "give the name of a sentence-transformers model, with network access, or the folder of one"
        raise SufficeError(
            f"--embed: the model {model!r} cannot be used: {_first_error_line(error)}; {remedy}"
        ) from error
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise SufficeError(
            f"--embed: the model {model!r} does not return finite numbers for these texts; use another one"
        )
    return vectors


def _first_error_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
