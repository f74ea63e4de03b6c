"""Columns to features with scikit-learn transformers, which can be applied to new rows after they are fitted.

What only fitting needs is imported there: it loads most of scikit-learn, and new rows are often few.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.utils.validation import check_is_fitted

from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.tables.column_features import ColumnType, Features, column_type, column_values, counted, short, shortened
from suffice.tables.table_columns import TableColumns, table_columns

#: Number of rows of numbers whose features are computed at a time.
MANY_ROWS: Final = 2**18
_NUMERIC: Final = frozenset({"number", "date", "boolean"})


class TableTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Convert each column of a table to features, by its type, with a :class:`~sklearn.compose.ColumnTransformer`.

    :func:`suffice.tables.read_table` lists the types and their features. The input of ``fit`` and ``transform`` is
    :class:`~suffice.tables.table_columns.TableColumns`, a mapping from column names to values, or a pandas DataFrame.

    ``transform`` finds columns by their names, so their order does not matter. New rows may differ from those of the
    fit:

    - A missing or infinite number, a missing date or a missing boolean becomes the median of the fit.
    - A category that is not among those of the fit becomes "other", and a missing one "missing". If the fit had no such
      feature, all features of the column are 0. Numbers in a column of categories are the categories of the same value.
    - Words that the fit did not see are ignored; a missing text is an empty text.
    - Columns that the fit did not see or left out are ignored.
    - A missing column, and a value that is not a number, date or boolean where the fit found these, is an error.

    Args:
        text: Column to be read as text even if its texts are short. If it has no words to learn from, it is read by its
            type like any other.
        special: Transformers for certain columns, used instead of those by type. Each gets an array of ``n`` texts,
            empty where missing, and has ``get_feature_names_out`` and ``notes``, as :class:`PrincipalComponents` has.
        most_characters: Number of characters of a text that are read; None for all.
        components: Largest number of components of a text, for a classifier that chooses how many it uses; see
            :class:`NgramComponents`. None for a model that uses all features; see :class:`TextComponents`.

    Attributes:
        transformer_: The fitted ColumnTransformer, or None if no column can be used.
        types_: Type of each column.
        columns_: Names of the columns that are used, in the order of their features.
        notes_: Descriptions of the conversions of the columns, in sentences for the user.

    Examples:
        >>> table = {"size": [1, 2, None, 3], "fuel": ["gas", "diesel", "gas", "gas"]}
        >>> transformer = TableTransformer().fit(table)
        >>> transformer.get_feature_names_out().tolist()
        ['size', 'fuel=gas', 'fuel=diesel']
        >>> transformer.transform({"fuel": ["electric", "gas"], "size": ["2", "?"], "colour": ["red", "red"]})
        array([[0., 0., 0.],
               [0., 1., 0.]])
    """

    def __init__(
        self,
        *,
        text: str | None = None,
        special: Mapping[str, Any] | None = None,
        most_characters: int | None = None,
        components: int | None = None,
    ) -> None:
        self.text = text
        self.special = special
        self.most_characters = most_characters
        self.components = components

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn types, medians, categories and words from the rows of a table; ``y`` is ignored."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Floats:  # noqa: ARG002
        """Fit to the rows of a table, and return their features, ``n x D``; ``y`` is ignored."""
        return self.fit_features(X)

    def fit_features(self, X: Any, progress: Callable[[int, int], None] | None = None) -> Floats:
        """Fit to the rows of a table, and return their features, ``n x D``.

        Args:
            X: The table.
            progress: Called with the number of rows done and the number of all rows, if there are many.
        """
        table, cut = self._read(X)
        as_text = {*(self.special or ()), *([] if self.text is None else [self.text])}
        self._require_columns(as_text, table)
        self.types_ = {
            name: ColumnType("text") if name in as_text else column_type(name, column, table.place)
            for name, column in zip(table.names, table.columns, strict=True)
        }
        features = self._fitted(table, progress)
        empty = {name: part.notes(name) for name, part in self._parts() if not len(part.get_feature_names_out([name]))}
        if empty:
            # Only the fit shows that a text has no words to learn from. This is rare, so everything is fitted again.
            for name, notes in empty.items():
                by_type = column_type(name, table[name], table.place) if name == self.text else ColumnType("text")
                self.types_[name] = ColumnType(None, notes) if by_type.kind == "text" else by_type
            features = self._fitted(table, progress)
        made = {name: part.notes(name) for name, part in self._parts() if hasattr(part, "notes")}
        self.notes_ = tuple(
            note
            for name, found in self.types_.items()
            for note in (*cut.get(name, ()), *found.notes, *made.get(name, ()))
        )
        return features

    def transform(self, X: Any) -> Floats:
        """Return the features of the rows of a table, ``n x D``.

        Raises:
            InvalidValueError: A column is missing, or a value cannot be used; the message names it.
        """
        check_is_fitted(self)
        table, _ = self._read(X)
        self._require_columns(self.columns_, table)
        if self.transformer_ is None or not len(table):
            return np.empty((len(table), len(self.get_feature_names_out())))
        features: Floats = self.transformer_.transform(self._array(table))
        infinite = np.argwhere(~np.isfinite(features))
        if len(infinite):
            row, k = infinite[0].tolist()
            name = self.get_feature_names_out()[k]
            raise InvalidValueError(f"{table.place(row)}: the value of {name!r} is too large for the fitted scale")
        return features

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """Return the names of the features: "age", "workclass=Private", "review[0]"."""
        check_is_fitted(self)
        names = [feature for name, part in self._parts() for feature in part.get_feature_names_out([name])]
        return np.array(names, dtype=object)

    def component_groups(self) -> tuple[tuple[int, int], ...]:
        """Return the columns of each text whose components a classifier chooses from: the first, and after the last."""
        check_is_fitted(self)
        groups, at = [], 0
        for name, part in self._parts():
            width = len(part.get_feature_names_out([name]))
            if isinstance(part, NgramComponents):
                groups.append((at, at + width))
            at += width
        return tuple(groups)

    def fitted_parts(self, X: Any) -> list[tuple[Any, NDArray[Any]]]:
        """Return the last step of the transformer of each column that is used, and its inputs of the rows of a table.

        Args:
            X: The table.
        """
        check_is_fitted(self)
        if self.transformer_ is None:
            return []
        array = self._array(self._read(X)[0])
        found = []
        for k, name in enumerate(self.columns_):
            fitted = self.transformer_.named_transformers_[f"column {k}"]
            values = array[:, k] if self.types_[name].kind == "text" else array[:, [k]]
            if isinstance(fitted, Pipeline):
                fitted, values = fitted[-1], fitted[:-1].transform(values)
            found.append((fitted, values))
        return found

    def _read(self, X: Any) -> tuple[TableColumns, dict[str, tuple[str, ...]]]:
        """Return the columns with texts cut to the characters that are read, and notes by column."""
        table = table_columns(X)
        if self.most_characters is None:
            return table, {}
        pairs = zip(table.names, table.columns, strict=True)
        cut = [shortened(name, column, self.most_characters, table.place) for name, column in pairs]
        notes = {name: notes for name, (_, notes) in zip(table.names, cut, strict=True)}
        return replace(table, columns=tuple(column for column, _ in cut)), notes

    @staticmethod
    def _require_columns(names: Collection[str], table: TableColumns) -> None:
        missing = [short(name) for name in names if name not in table.names]
        if missing:
            came = f"its columns are {', '.join(map(short, table.names[:20])) or 'none'}"
            raise InvalidValueError(f"the table must have the columns {', '.join(missing)}; {came}")

    def _fitted(self, table: TableColumns, progress: Callable[[int, int], None] | None = None) -> Floats:
        from sklearn.compose import ColumnTransformer

        self.columns_ = tuple(name for name, found in self.types_.items() if found.kind is not None)
        self.transformer_ = None
        if not self.columns_:
            return np.empty((len(table), 0))
        parts = []
        for k, name in enumerate(self.columns_):
            kind = self.types_[name].kind
            # Texts as an array of n, as TfidfVectorizer requires; others as n x 1.
            parts.append((f"column {k}", self._column_transformer(name), k if kind == "text" else [k]))
        self.transformer_ = ColumnTransformer(parts, sparse_threshold=0.0).set_output(transform="default")
        if len(table) > MANY_ROWS and all(self.types_[name].kind in _NUMERIC for name in self.columns_):
            return self._fitted_in_batches(table, progress)
        features: Floats = self.transformer_.fit_transform(self._array(table))
        # The memory layout decides how sums are rounded. Version 0.6 had rows contiguous if some column was left out,
        # and otherwise the layout of numpy.hstack; with the same layout the numbers of a run are the same.
        return features if len(self.columns_) == len(self.types_) else np.ascontiguousarray(features)

    def _fitted_in_batches(self, table: TableColumns, progress: Callable[[int, int], None] | None) -> Floats:
        """Return the same for many rows of numbers; columns are fitted one by one, and features computed in batches.

        A ColumnTransformer would have all columns in memory three times.
        """
        n, width = len(table), len(self.columns_)
        assert self.transformer_ is not None
        # Fitted to two rows first, for everything that does not depend on the numbers.
        self.transformer_.fit(np.repeat([[0.0], [1.0]], width, axis=1))
        values = [column_values(table, name, self.types_[name]) for name in self.columns_]
        self.transformer_.transformers_ = [
            (label, clone(part).fit(values[k][:, None]), chosen)
            for k, (label, part, chosen) in enumerate(self.transformer_.transformers_)
        ]
        features = np.empty((n, width))
        for start in range(0, n, MANY_ROWS):
            rows = slice(start, start + MANY_ROWS)
            features[rows] = self.transformer_.transform(np.column_stack([each[rows] for each in values]))
            if progress is not None:
                progress(min(start + MANY_ROWS, n), n)
        return features

    def _column_transformer(self, name: str) -> Any:
        found = self.types_[name]
        if found.kind in {"number", "date"}:
            return StandardizedNumbers(dates=found.kind == "date")
        if found.kind == "boolean":
            from sklearn.impute import SimpleImputer

            return SimpleImputer(strategy="median")
        if found.kind == "category":
            return make_pipeline(
                FunctionTransformer(known_categories, kw_args={"categories": found.categories}),
                OneHotEncoder(
                    categories=[list(found.categories)],
                    handle_unknown="ignore",
                    sparse_output=False,
                    feature_name_combiner=category_feature_name,
                ),
            )
        text = TextComponents() if self.components is None else NgramComponents(self.components)
        return (self.special or {}).get(name, text)

    def _parts(self) -> list[tuple[str, Any]]:
        """Return each column that is used, and its fitted transformer, of a pipeline the last step."""
        if self.transformer_ is None:
            return []
        fitted = [self.transformer_.named_transformers_[f"column {k}"] for k in range(len(self.columns_))]
        parts = [each[-1] if isinstance(each, Pipeline) else each for each in fitted]
        return list(zip(self.columns_, parts, strict=True))

    def _array(self, table: TableColumns) -> NDArray[Any]:
        """Return the columns that are used as an array, of objects only if some column contains texts."""
        words = any(self.types_[name].kind in {"category", "text"} for name in self.columns_)
        array = np.empty((len(table), len(self.columns_)), dtype=object if words else np.float64, order="F")
        # The cells of a file are parsed at most once here.
        table = replace(table, cells=cache(table.cells), column_cells=None)
        for k, name in enumerate(self.columns_):
            array[:, k] = column_values(table, name, self.types_[name])
        return array


def table_features(
    table: Any, transformer: TableTransformer, progress: Callable[[int, int], None] | None = None
) -> Features:
    """Fit a transformer to a table, and return the features with their names and notes.

    Args:
        table: The table.
        transformer: The transformer.
        progress: Called with the number of rows done and the number of all rows, if there are many.
    """
    # Arrays, even if scikit-learn is configured to return DataFrames.
    X = transformer.set_output(transform="default").fit_features(table, progress)
    names, groups = tuple(transformer.get_feature_names_out().tolist()), transformer.component_groups()
    return Features(X, names, transformer.notes_, transformer, groups)


def known_categories(values: NDArray[Any], categories: Sequence[str]) -> NDArray[Any]:
    """Return values with "missing" for empty ones, and "other" for those that are not among the categories."""
    known = {category: category for category in categories} | {"": "missing"}
    return np.array([known.get(value, "other") for value in values.ravel()], dtype=object).reshape(values.shape)


def category_feature_name(column: str, category: str) -> str:
    """Return the name of the feature of a category."""
    return f"{column}={category}"


class StandardizedNumbers(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """One column of numbers as ``(x - mean) / deviation``; missing and infinite values become the median first.

    This is not SimpleImputer and StandardScaler, because these reject infinite values, overflow for numbers near 1e308,
    and lose the digits of a small spread around a large mean.

    Args:
        dates: Whether the numbers are days since 1970; only the note depends on it.
    """

    def __init__(self, *, dates: bool = False) -> None:
        self.dates = dates

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn median, mean and deviation of a column, ``n x 1``; some value must be finite, and ``y`` is ignored."""
        values = np.asarray(X, dtype=np.float64).ravel()
        finite = np.isfinite(values)
        self.n_features_in_ = 1
        self.missing_, self.infinite_ = int(np.sum(~finite)), int(np.isinf(values).sum())
        # Multiply by a power of 2, which is exact, so that neither a sum nor a square overflows.
        self.exponent_ = int(np.frexp(np.abs(values[finite]).max())[1])
        self.median_ = np.median(np.ldexp(values[finite], -self.exponent_))
        scaled = self._scaled(values)
        # Subtract the first value, so that a small spread around a large mean keeps its digits.
        self.first_ = scaled[0]
        shifted = scaled - self.first_
        self.mean_, self.deviation_ = shifted.mean(), shifted.std() or 1.0
        return self

    def transform(self, X: Any) -> Floats:
        """Return the standardised column, ``n x 1``."""
        check_is_fitted(self)
        scaled = self._scaled(np.asarray(X, dtype=np.float64).ravel())
        standardised: Floats = ((scaled - self.first_) - self.mean_) / self.deviation_
        return standardised[:, None]

    def _scaled(self, values: Floats) -> Floats:
        with np.errstate(over="ignore"):
            scaled: Floats = np.ldexp(values, -self.exponent_)
        scaled[~np.isfinite(values)] = self.median_
        return scaled

    def notes(self, name: str) -> tuple[str, ...]:
        """Return a description of the conversion of the column, in sentences."""
        notes = [f"column {name!r}: dates, as days"] * self.dates
        if self.missing_:
            median = float(np.ldexp(self.median_, self.exponent_))
            shown = str(np.datetime64(math.floor(median), "D")) if self.dates else f"{median:.6g}"
            among = f" ({self.infinite_} of them infinite)" if self.infinite_ else ""
            filled = f"{counted(self.missing_, 'missing value')}{among} filled with the median {shown}"
            notes.append(f"column {name!r}: {filled}")
        return tuple(notes)


class TextComponents(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """TF-IDF of texts and its largest singular components; no features if the texts do not differ in their words.

    Words are those in at least two texts, or all words if these are fewer than two. All components are multiplied by
    one factor, so that the largest standard deviation among them is 1.

    Args:
        most: Largest number of components to keep.
    """

    def __init__(self, most: int = 50) -> None:
        self.most = most

    def fit(self, X: Sequence[str], y: Any = None) -> Self:
        """Learn words and components from texts; ``y`` is ignored."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Sequence[str], y: Any = None) -> Floats:  # noqa: ARG002
        """Fit to texts, and return their components; ``y`` is ignored."""
        from sklearn.decomposition import TruncatedSVD

        self.missing_ = sum(not text for text in X)
        self.left_out_, self.kept_ = "", np.zeros(0, dtype=bool)
        weights = self._fit_words(X)
        if weights is None:
            self.left_out_ = "text of fewer than two different words"
            return np.empty((len(X), 0))
        self.svd_ = TruncatedSVD(min(self.most, *weights.shape), random_state=0).set_output(transform="default")
        # If all texts have the same words, there is no variance but rounding, which depends on the processor.
        with np.errstate(divide="ignore", invalid="ignore"):
            Z = self.svd_.fit_transform(weights)
        kept = self.svd_.singular_values_ > 1e-10 * self.svd_.singular_values_[0]
        Z = Z[:, kept]
        if np.ptp(Z, axis=0).max() < 1e-10:
            self.left_out_ = "text with the same words in every row"
            return np.empty((len(X), 0))
        self.kept_ = kept
        # With all texts of length 1, a prior precision of 1 is too strong for a logistic regression: after 300 labels
        # of SMS spam it expected 26 % errors and made 1.5 %. With this scale it expected 3.5 %.
        self.scale_ = Z.std(axis=0).max()
        components: Floats = Z / self.scale_
        return components

    def transform(self, X: Sequence[str]) -> Floats:
        """Return the components of texts, ``n x d``."""
        check_is_fitted(self)
        if self.left_out_:
            return np.empty((len(X), 0))
        components: Floats = self.svd_.transform(self.vectorizer_.transform(X))[:, self.kept_] / self.scale_
        return components

    def get_feature_names_out(self, input_features: Sequence[str]) -> NDArray[Any]:
        """Return the names of the features: "review[0]", "review[1]"."""
        return _component_names(input_features[0], int(np.sum(self.kept_)))

    def _fit_words(self, texts: Sequence[str]) -> Any:
        for least in (2, 1):
            # Raised if no word is in that many texts.
            with suppress(ValueError):
                self.vectorizer_ = TfidfVectorizer(sublinear_tf=True, min_df=least)
                weights = self.vectorizer_.fit_transform(texts)
                if weights.shape[1] > 1:
                    return weights
        return None

    def notes(self, name: str) -> tuple[str, ...]:
        """Return a description of the conversion of the column, in sentences."""
        if self.left_out_:
            return (f"column {name!r} left out: {self.left_out_}",)
        empty = f"; {counted(self.missing_, 'missing value')} as empty text" if self.missing_ else ""
        share = 100.0 * self.svd_.explained_variance_ratio_.sum()
        made = f"text, TF-IDF and SVD, {self.kept_.sum()} components ({share:.0f} % of the variance)"
        return (f"column {name!r}: {made}{empty}",)


class NgramComponents(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """TF-IDF of words, word pairs and character n-grams, and its largest singular components.

    Words and word pairs have one half of the total weight of a text, sequences of 3 to 5 characters within a word the
    other half. Of each, the 20,000 most frequent ones in at least two texts are used. Texts that do not differ in their
    words have no features, as with :class:`TextComponents`.

    Each component is multiplied by its own standard deviation, relative to the largest. With the same prior for all
    weights, a small component then needs more labels to have an effect. So later components have little effect while
    there are few labels. The classifier chooses how many to use, see ``components`` of
    :class:`~suffice.models.BayesianLogistic`.

    If there are more than 10,000 texts, vocabulary and components are learned from 10,000 of them, drawn at random.

    Args:
        most: Largest number of components to keep.
    """

    def __init__(self, most: int = 400) -> None:
        self.most = most

    def fit(self, X: Sequence[str] | NDArray[Any], y: Any = None) -> Self:
        """Learn words, n-grams and components from texts; ``y`` is ignored."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Sequence[str] | NDArray[Any], y: Any = None) -> Floats:  # noqa: ARG002
        """Fit to texts, and return their components; ``y`` is ignored."""
        from sklearn.decomposition import TruncatedSVD

        self.missing_ = sum(not text for text in X)
        self.left_out_, self.kept_ = "", np.zeros(0, dtype=bool)
        texts = np.asarray(X, dtype=object)
        order = np.random.default_rng(0).permutation(len(texts))
        learned, others = np.sort(order[:_LEARNED_TEXTS]), np.sort(order[_LEARNED_TEXTS:])
        # Character n-grams are important for short texts; for many long ones they would take minutes.
        self.characters_ = int(np.clip(_MOST_CHARACTERS // len(texts), *_CHARACTERS_OF_A_TEXT))
        weights = self._fit_weights(texts[learned])
        if weights is None:
            self.left_out_ = "text of fewer than two different words"
            return np.empty((len(X), 0))
        # Three iterations are accurate enough for classification.
        self.svd_ = TruncatedSVD(min(self.most, *weights.shape), n_iter=3, random_state=0)
        # If all texts have the same words, there is no variance but rounding, which depends on the processor.
        with np.errstate(divide="ignore", invalid="ignore"):
            self.svd_.set_output(transform="default").fit(weights)
        kept = self.svd_.singular_values_ > 1e-10 * self.svd_.singular_values_[0]
        Z = np.empty((len(texts), int(kept.sum())))
        Z[learned] = self.svd_.transform(weights)[:, kept]
        Z[others] = self._components(texts[others])[:, kept]
        if np.ptp(Z, axis=0).max() < 1e-10:
            self.left_out_ = "text with the same words in every row"
            return np.empty((len(X), 0))
        self.kept_ = kept
        deviations = Z.std(axis=0)
        self.scales_ = deviations / deviations.max() ** 2
        Z *= self.scales_
        return Z

    def transform(self, X: Sequence[str] | NDArray[Any]) -> Floats:
        """Return the components of texts, ``n x d``."""
        check_is_fitted(self)
        if self.left_out_:
            return np.empty((len(X), 0))
        components: Floats = self._components(np.asarray(X, dtype=object))[:, self.kept_] * self.scales_
        return components

    def get_feature_names_out(self, input_features: Sequence[str]) -> NDArray[Any]:
        """Return the names of the features: "review[0]", "review[1]"."""
        return _component_names(input_features[0], int(np.sum(self.kept_)))

    def notes(self, name: str) -> tuple[str, ...]:
        """Return a description of the conversion of the column, in sentences."""
        if self.left_out_:
            return (f"column {name!r} left out: {self.left_out_}",)
        empty = f"; {counted(self.missing_, 'missing value')} as empty text" if self.missing_ else ""
        share = 100.0 * self.svd_.explained_variance_ratio_.sum()
        made = (
            f"TF-IDF of words, word pairs and character n-grams, and SVD, {counted(int(self.kept_.sum()), 'component')}"
        )
        return (f"column {name!r}: text, {made} ({share:.0f} % of the variance){empty}",)

    def _fit_weights(self, texts: NDArray[Any]) -> Any:
        """Learn the vocabularies, and return the weights of the texts; None if there are fewer than two words."""
        words = _fitted_tfidf(texts, ngram_range=(1, 2))
        if words is None or sum(" " not in term for term in words[0].vocabulary_) < 2:
            return None
        ngrams = _fitted_tfidf(self._shortened(texts), analyzer="char_wb", ngram_range=(3, 5))
        blocks = [words] if ngrams is None else [words, ngrams]
        self.vectorizers_ = tuple(vectorizer for vectorizer, _ in blocks)
        return _side_by_side([weights for _, weights in blocks])

    def _shortened(self, texts: NDArray[Any]) -> list[str]:
        return [text[: self.characters_] for text in texts]

    def weights(self, texts: NDArray[Any]) -> Any:
        """Return the weights of words and n-grams of texts, of which the components are made."""
        blocks = [self.vectorizers_[0].transform(texts)]
        blocks += [each.transform(self._shortened(texts)) for each in self.vectorizers_[1:]]
        return _side_by_side(blocks)

    def _components(self, texts: NDArray[Any]) -> Floats:
        """Return the unscaled components, some texts at a time, because their n-grams take much memory."""
        Z = np.empty((len(texts), len(self.svd_.singular_values_)))
        for first in range(0, len(texts), _LEARNED_TEXTS):
            part = slice(first, first + _LEARNED_TEXTS)
            Z[part] = self.svd_.transform(self.weights(texts[part]))
        return Z


# Largest number of texts from which vocabulary and components are learned.
_LEARNED_TEXTS: Final = 10_000
_MOST_NGRAMS: Final = 20_000
# Largest number of characters that are converted to n-grams: of all texts, and of one text.
_MOST_CHARACTERS: Final = 10_000_000
_CHARACTERS_OF_A_TEXT: Final = (200, 1000)


def _fitted_tfidf(texts: Sequence[str] | NDArray[Any], **options: Any) -> tuple[TfidfVectorizer, Any] | None:
    """Return TF-IDF fitted to texts, and their weights; None if there are fewer than two different terms.

    Terms are those in at least two texts, or all terms if these are fewer than two.
    """
    for least in (2, 1):
        vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=least, max_features=_MOST_NGRAMS, **options)
        # Raised if no term is in that many texts.
        with suppress(ValueError):
            weights = vectorizer.fit_transform(texts)
            if weights.shape[1] > 1:
                return vectorizer, weights
    return None


def _side_by_side(blocks: Sequence[Any]) -> Any:
    """Return matrices of weights as one, in which the rows have length 1."""
    joined = sparse.hstack(blocks, format="csr")
    joined.data *= np.sqrt(1.0 / len(blocks))
    return joined


class PrincipalComponents(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The largest principal components of many numbers per item; no features if all items are the same.

    The numbers are centred but not scaled one by one: otherwise a pixel at the edge that rarely changes would have
    the weight of one in the middle. All components are multiplied by one factor, so that the largest has standard
    deviation 1, like one standardised number of a table, and the others keep their relative sizes. For a logistic
    regression with prior precision 1 that is a good scale: with 150 labelled digits of MNIST the cross entropy was
    lowest near this factor, and a third higher with 0.35 times it. For a Gaussian process the relative sizes matter,
    because one length scale is used for all components.

    Args:
        name: Prefix of the feature names: "image" gives "image[0]", "image[1]".
        description: Description of the numbers, for the note.
        most: Largest number of components to keep.
    """

    def __init__(self, name: str, description: str, most: int) -> None:
        self.name = name
        self.description = description
        self.most = most

    def fit(self, X: NDArray[Any], y: Any = None) -> Self:
        """Learn the components of finite numbers, ``n x d``; ``y`` is ignored."""
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: NDArray[Any], y: Any = None) -> Floats:  # noqa: ARG002
        """Fit to finite numbers, ``n x d``, and return their components; ``y`` is ignored."""
        from sklearn.decomposition import PCA

        self.kept_ = np.zeros(0, dtype=bool)
        if np.ptp(X, axis=0).max() <= 1e-6 * np.abs(X).max():
            return np.empty((len(X), 0))
        self.pca_ = PCA(min(self.most, *X.shape), random_state=0).set_output(transform="default")
        Z = np.asarray(self.pca_.fit_transform(X), dtype=np.float64)
        self.kept_ = self.pca_.explained_variance_ > 1e-6 * self.pca_.explained_variance_[0]
        Z = Z[:, self.kept_]
        self.scale_ = Z[:, 0].std()
        components: Floats = Z / self.scale_
        return components

    def transform(self, X: NDArray[Any]) -> Floats:
        """Return the components of finite numbers, ``n x d``."""
        check_is_fitted(self)
        if not self.kept_.any():
            return np.empty((len(X), 0))
        components: Floats = np.asarray(self.pca_.transform(X), dtype=np.float64)[:, self.kept_] / self.scale_
        return components

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """Return the names of the components."""
        return _component_names(self.name, int(np.sum(self.kept_)))

    def notes(self, name: str = "") -> tuple[str, ...]:  # noqa: ARG002
        """Return a description of the conversion, in sentences."""
        if not self.kept_.any():
            return (f"{self.description} left out: the same for every item",)
        share = 100.0 * float(self.pca_.explained_variance_ratio_.sum())
        made = f"{counted(int(self.kept_.sum()), 'component')} ({share:.0f} % of the variance)"
        return (f"{self.description}, {made}",)


def _component_names(name: str, count: int) -> NDArray[Any]:
    return np.array([f"{name}[{k}]" for k in range(count)], dtype=object)
