"""Fitted transformers of tables as plain values and arrays, so that they are read from a file instead of fitted again.

A restored transformer returns the same features to the last bit. Nothing but values is stored, so reading a file runs
no code of it.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline

from suffice.numerics import Floats
from suffice.tables.column_features import ColumnType
from suffice.tables.transformers import (
    NgramComponents,
    PrincipalComponents,
    StandardizedNumbers,
    TableTransformer,
    TextComponents,
)

_NUMBERS: Final = ("n_features_in_", "missing_", "infinite_", "exponent_", "median_", "first_", "mean_", "deviation_")
_SVD: Final = ("n_features_in_", "components_", "singular_values_", "explained_variance_", "explained_variance_ratio_")
_PCA: Final = ("n_features_in_", "n_components_", "mean_", *_SVD[1:])


class _Parts:
    """The fitted transformers of the columns of a table, in place of a ColumnTransformer."""

    def __init__(self, parts: list[tuple[Any, bool]]) -> None:
        self._parts = parts
        self.named_transformers_ = {f"column {k}": part for k, (part, _) in enumerate(parts)}

    def transform(self, array: NDArray[Any]) -> Floats:
        """The features of an array with the columns of the table."""
        found = [
            part.transform(array[:, k] if is_text else array[:, [k]]) for k, (part, is_text) in enumerate(self._parts)
        ]
        features: Floats = np.hstack(found)
        return features


class _SingularComponents:
    """The fitted components of a TruncatedSVD. Importing that class takes longer than most predictions."""

    components_: Floats

    def transform(self, weights: Any) -> Floats:
        """The components of a sparse matrix of weights."""
        components: Floats = weights @ self.components_.T
        return components


def _pca() -> Any:
    """The class of PCA, imported when it is needed."""
    from sklearn.decomposition import PCA

    return PCA


def transformer_state(transformer: Any) -> dict[str, Any]:
    """A fitted transformer as plain values and arrays.

    Args:
        transformer: A fitted :class:`~suffice.tables.transformers.TableTransformer`, alone or followed by a PCA.

    Raises:
        TypeError: It is another transformer.

    Examples:
        >>> table = {"size": [1, 2, None, 3], "fuel": ["gas", "diesel", "gas", "gas"]}
        >>> fitted = TableTransformer().fit(table)
        >>> restored = restored_transformer(transformer_state(fitted), {})
        >>> bool((restored.transform(table) == fitted.transform(table)).all())
        True
    """
    steps = [step for _, step in transformer.steps] if isinstance(transformer, Pipeline) else [transformer]
    table, *others = steps
    if not isinstance(table, TableTransformer) or len(others) > 1 or not all(type(each) is _pca() for each in others):
        raise TypeError(f"the transformer {type(table).__name__} is not saved")
    parts: Any = {} if table.transformer_ is None else table.transformer_.named_transformers_
    return {
        "options": {name: getattr(table, name) for name in ("text", "most_characters", "components")},
        "types": {
            name: [found.kind, list(found.notes), list(found.categories)] for name, found in table.types_.items()
        },
        "columns": list(table.columns_),
        "notes": list(table.notes_),
        "parts": [_part_state(parts[f"column {k}"]) for k in range(len(table.columns_))],
        "reduction": [_values(each, _PCA) for each in others],
    }


def restored_transformer(state: Mapping[str, Any], special: Mapping[str, Any]) -> Any:
    """The transformer that was passed to :func:`transformer_state`.

    Args:
        state: The result of that function.
        special: New transformers for certain columns, as for the transformer.

    Raises:
        LookupError: Something is missing.
        TypeError: Something has another form.
        ValueError: The same.
    """
    table = TableTransformer(special=special or None, **state["options"])
    table.types_ = {
        name: ColumnType(kind, tuple(notes), tuple(categories))
        for name, (kind, notes, categories) in state["types"].items()
    }
    table.columns_, table.notes_ = tuple(state["columns"]), tuple(state["notes"])
    parts = [
        (_restored_part(table._column_transformer(name), table.types_[name], each), table.types_[name].kind == "text")
        for name, each in zip(table.columns_, state["parts"], strict=True)
    ]
    table.transformer_ = _Parts(parts)
    reductions = [_with_values(_pca()(), each) for each in state["reduction"]]
    return make_pipeline(table, *reductions) if reductions else table


def _values(fitted: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(fitted, name) for name in names}


def _with_values(part: Any, values: Mapping[str, Any]) -> Any:
    for name, value in values.items():
        setattr(part, name, value)
    return part


def _part_state(part: Any) -> dict[str, Any]:
    """The values that a fitted transformer of one column has learned."""
    last = part.steps[-1][1] if isinstance(part, Pipeline) else part
    if isinstance(last, StandardizedNumbers):
        return _values(last, _NUMBERS)
    if isinstance(last, PrincipalComponents):
        learned = _values(last, ("kept_",))
        return {**learned, "scale_": last.scale_, "pca": _values(last.pca_, _PCA)} if last.kept_.any() else learned
    if isinstance(last, TextComponents | NgramComponents):
        return _text_state(last)
    # A median of yes and no; and categories, which follow from the type of the column.
    return {"statistics_": last.statistics_} if hasattr(last, "statistics_") else {}


def _text_state(part: Any) -> dict[str, Any]:
    learned = _values(part, ("missing_", "left_out_", "kept_"))
    if part.left_out_:
        return learned
    several = isinstance(part, NgramComponents)
    vectorizers = part.vectorizers_ if several else (part.vectorizer_,)
    learned |= _values(part, ("characters_", "scales_") if several else ("scale_",))
    return {**learned, "svd": _values(part.svd_, _SVD), "words": [*map(_words_state, vectorizers)]}


def _words_state(vectorizer: TfidfVectorizer) -> dict[str, Any]:
    terms = sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.__getitem__)
    options = {"analyzer": vectorizer.analyzer, "ngram_range": tuple(vectorizer.ngram_range)}
    return {"options": options, "terms": terms, "idf": vectorizer.idf_}


def _restored_words(state: Mapping[str, Any]) -> TfidfVectorizer:
    vectorizer = TfidfVectorizer(sublinear_tf=True, **state["options"])
    vectorizer.vocabulary_ = {term: k for k, term in enumerate(state["terms"])}
    vectorizer.fixed_vocabulary_ = False
    vectorizer.idf_ = state["idf"]
    return vectorizer


def _restored_part(part: Any, found: ColumnType, state: Mapping[str, Any]) -> Any:
    """A transformer of one column with the values that another one has learned."""
    last = part.steps[-1][1] if isinstance(part, Pipeline) else part
    if isinstance(last, PrincipalComponents):
        _with_values(last, {name: value for name, value in state.items() if name != "pca"})
        if "pca" in state:
            last.pca_ = _with_values(_pca()(), state["pca"])
        return part
    if isinstance(last, TextComponents | NgramComponents):
        return _restored_text(last, state)
    if isinstance(last, StandardizedNumbers):
        return _with_values(last, state)
    if found.kind == "category":
        # The categories are an argument, so the values of the fit do not matter.
        return part.fit(np.array([[found.categories[0]]], dtype=object))
    return part.fit(np.asarray(state["statistics_"], dtype=np.float64).reshape(1, 1))


def _restored_text(part: Any, state: Mapping[str, Any]) -> Any:
    _with_values(part, {name: value for name, value in state.items() if name not in ("svd", "words")})
    if "svd" not in state:
        return part
    part.svd_ = _with_values(_SingularComponents(), state["svd"])
    vectorizers = tuple(map(_restored_words, state["words"]))
    if isinstance(part, NgramComponents):
        part.vectorizers_ = vectorizers
    else:
        (part.vectorizer_,) = vectorizers
    return part
