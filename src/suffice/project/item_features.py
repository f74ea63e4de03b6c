"""Features of items and of new rows: columns, principal components, given features, and text embeddings.

A project does not store its fitted transformers: loading them would need pickle, which runs any code in a file. They
are fitted again to the items with which the project was made. Fitting is deterministic, apart from rounding, which
depends on the processor. The resulting features must equal the stored ones up to rounding; components that rounding
decides about are found from the stored features.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from itertools import chain, product
from pathlib import Path
from typing import Any, Final, NamedTuple
from zipfile import BadZipFile

import numpy as np

from suffice.errors import InvalidValueError, MissingExtraError, SufficeError
from suffice.models.factory import default_model
from suffice.numerics import Floats
from suffice.project.images import image_transformer, require_images
from suffice.project.items import Items
from suffice.project.project_interface import ReadableProject
from suffice.project.settings import Settings
from suffice.tables.column_features import Features, column_type, counted, short
from suffice.tables.table_cells import CellColumns, TableCells
from suffice.tables.table_columns import Column, TableColumns, Texts, as_texts
from suffice.tables.table_columns import column as read_column

#: Characters of a text that the model reads; the user sees all of them.
READ: Final = 100_000
_UNEVEN_RANGES: Final = 1000.0
# Rows whose features are read at a time for a checksum.
_ROWS_AT_ONCE: Final = 2**16


def limited(items: Items) -> Items:
    """Return items with fewer features if a classifier would be too slow to learn during labelling.

    A classifier has a weight for each feature and class. If there would be more than 1000, the features are replaced by
    their largest principal components, without scaling. Of the components of a text, the minimal number is counted.

    Args:
        items: The items with all features.
    """
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline

    from suffice.models.capacity import FEWEST_COMPONENTS, Capacity, most_features

    classes = len(items.classes) if len(items.classes) > 2 else 1
    n, width = items.X.shape
    most = most_features(classes)
    used = Capacity(items.components, width, intercept=False).width(FEWEST_COMPONENTS)
    if items.task != "classification" or used <= most or n <= most:
        return items
    pca = PCA(most, random_state=0)
    X = np.asarray(pca.fit_transform(items.X), dtype=np.float64)
    share = 100.0 * float(pca.explained_variance_ratio_.sum())
    note = (
        f"{width} features for {classes} classes are too many to learn during labelling: they are replaced by their "
        f"{most} largest principal components ({share:.0f} % of the variance)"
    )
    transformer = None if items.transformer is None else make_pipeline(items.transformer, pca)
    return replace(items, X=X, notes=(*items.notes, note), transformer=transformer, components=())


def prepared(items: Items) -> Items:
    """Return items with fewer features if there are too many, and with the model for all of their features.

    Args:
        items: The items with all features.
    """
    width, n_classes = items.X.shape[1], len(items.classes)
    default = default_model(items.task, n_features=width, n_classes=n_classes, components=items.components)
    return replace(limited(items), default=default)


def given_features(path: Path, n: int) -> Features:
    """Read features from a file, and use them unchanged.

    Args:
        path: A .npy file with one row for each item, in the order of the items.
        n: Number of items.

    Raises:
        InvalidValueError: The file does not contain such an array; the message says what it contains.
    """
    X = _array_from_file(path)
    if X.ndim != 2 or X.shape[1] == 0:
        need = "a row for each item and a column for each feature are required"
        remedy = "; a single feature is written as x.reshape(-1, 1)" if X.ndim == 1 else ""
        raise InvalidValueError(f"--features {path} has the shape {X.shape}; {need}{remedy}")
    if len(X) != n:
        raise InvalidValueError(f"--features {path} has {counted(len(X), 'row')}, and there are {counted(n, 'item')}")
    bad = np.argwhere(~np.isfinite(X))
    if len(bad):
        row, column = bad[0].tolist()
        where = f"row {row + 1}, column {column + 1} (from 1)"
        raise InvalidValueError(f"--features {path} must hold finite numbers, and at {where} is {X[row, column]}")
    notes = [f"features: {X.shape[1]} of {path.name}, taken as they are, in the order of the items"]
    with np.errstate(over="ignore"):
        spread = np.ptp(X, axis=0)
    if not spread.any():
        raise InvalidValueError(f"--features {path}: every item has the same features; some must differ")
    least, largest = float(spread[spread > 0].min()), float(spread.max())
    if largest / least > _UNEVEN_RANGES:
        notes.append(
            f"features: the range of a column goes from {least:.3g} to {largest:.3g}, and large ones weigh more; "
            "standardise them if that is not meant"
        )
    return Features(X, tuple(f"features[{k}]" for k in range(X.shape[1])), tuple(notes))


def _array_from_file(path: Path) -> Floats:
    need = "required is one array of numbers, as numpy.save writes it"
    try:
        with path.open("rb") as stream:
            array = np.load(stream, allow_pickle=False)
    except FileNotFoundError:
        raise InvalidValueError(
            f"there is no file {path}, given as --features; check the name and the folder"
        ) from None
    except MemoryError:
        raise InvalidValueError(f"--features {path} does not fit into memory") from None
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise InvalidValueError(f"--features {path} cannot be read: {error}; {need}") from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise InvalidValueError(f"--features {path} is an archive of several arrays; {need}")
    if array.dtype.kind not in "biuf":
        raise InvalidValueError(f"--features {path} holds values of type {array.dtype}; {need}")
    return array.astype(np.float64)


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


#: Items from which on features are computed after the project is made, while people label the first items.
FEWEST_DEFERRED: Final = 500
# More cells would take much memory when they are read again.
_MOST_DEFERRED_CELLS: Final = 2**24
# Texts that are examined for words.
_EXAMINED_TEXTS: Final = 1000
_WORD: Final = re.compile(r"(?u)\b\w\w+\b")


class ImageColumn(NamedTuple):
    """The column with paths of images, and the folder that they are relative to."""

    name: str
    root: Path


def deferred_features(
    columns: Mapping[str, Column],
    cells: TableCells,
    texts: str | None,
    *,
    known: bool,
    image: ImageColumn | None = None,
) -> dict[str, Any] | None:
    """How features can be computed later from the stored cells of a table, as JSON values.

    Args:
        columns: The columns, with their values as they were read.
        cells: The cells that are stored.
        texts: Column that is read as text even if its texts are short.
        known: Whether it is known that the columns are those of :func:`suffice.tables.table_columns.column`.
        image: The column with paths of images, if there is one.

    Returns:
        The argument of :func:`computed_features`. None if there are few rows or very many cells, if the cells have
        other values than the columns, such as dates of a workbook, or if there may be no feature at all. Then they are
        computed at once.

    Raises:
        InvalidValueError: A file is not an image; the message names it.
        MissingExtraError: Pillow is not installed, and there are images.
    """
    n = len(cells)
    if n < FEWEST_DEFERRED or n * len(columns) > _MOST_DEFERRED_CELLS:
        return None
    others = {name: each for name, each in columns.items() if image is None or name != image.name}
    stored = {name: cells.column(k) for k, name in enumerate(columns)}
    differ = image is not None and require_images(image.root, stored[image.name])
    if not (differ or any(_has_features(name, each, texts) for name, each in others.items())):
        return None
    if known:
        return {"decimal": "."}
    for decimal in (".", ","):
        table = _table(stored, None if image is None else image.name, decimal)
        if table is not None and all(map(_is_equal, table.columns, columns.values())):
            return {"decimal": decimal}
    return None


def _has_features(name: str, column: Column, texts: str | None) -> bool:
    """Whether a column certainly has features, without computing them."""
    kind = "text" if name == texts else column_type(name, column, str).kind
    if kind != "text":
        return kind is not None
    if not isinstance(column, Texts):
        return False
    words = [frozenset(_WORD.findall(text.lower())) for text in column.levels[:_EXAMINED_TEXTS]]
    counts = Counter(chain.from_iterable(words))
    frequent = {word for word, count in counts.items() if count > 1}
    return len(frequent) > 1 and len({each & frequent for each in words}) > 2


def _is_equal(one: Column, other: Column) -> bool:
    if isinstance(one, Texts) and isinstance(other, Texts):
        return one.levels == other.levels and np.array_equal(one.codes, other.codes)
    if isinstance(one, Texts) or isinstance(other, Texts):
        return False
    # Every bit, so that the features are the same too.
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


class ComputedFeatures(NamedTuple):
    """Features of all items of a project, the transformer, and the settings that follow from them, as JSON values."""

    X: Floats
    transformer: Any
    settings: dict[str, Any]


def computed_features(project: ReadableProject) -> ComputedFeatures:
    """Compute the features of a project that was made without them. They depend on the cells of its items only.

    Args:
        project: The project.

    Raises:
        InvalidValueError: No column can be used.
    """
    settings, deferred = project.first_settings, project.deferred_features
    assert deferred is not None
    cells = [row[1:] for row in project.rows(range(project.n_items_made))]
    table, transformer = next(_candidates(settings, project.made_with, cells, decimals=[deferred["decimal"]]))
    del cells
    X = np.asarray(transformer.set_output(transform="default").fit_transform(table), dtype=np.float64)
    if not X.shape[1]:
        raise InvalidValueError(f"the model can use no column; {'; '.join(transformer.notes_[:10])}")
    found = prepared(replace(_as_items(settings, X, transformer), notes=(*settings.notes, *transformer.notes_)))
    changes: dict[str, Any] = {"notes": list(found.notes), "components": [list(each) for each in found.components]}
    # Only the reason is not known to older versions, which open projects without one.
    if deferred["default_model"] and found.default is not None and found.default.reason:
        changes |= {"model": found.default.name, "model_reason": found.default.reason}
    return ComputedFeatures(found.X, found.transformer, changes)


# Tolerance between recomputed and stored features, relative to the largest value of a column.
_ROUNDING: Final = 1e-6


def fitted_transformer(project: ReadableProject) -> Any:
    """The fitted transformer of a project, from a table with the project's columns to features.

    Args:
        project: The project.

    Raises:
        SufficeError: The features were given as a file, or cannot be computed again.
    """
    reading = project.made_with
    if reading.get("features"):
        raise SufficeError(
            "the features of this project were given as a file, so they cannot be made of new rows; give the features "
            "of the new rows too"
        )
    size, X = project.n_items_made, project.X[: project.n_items_made]
    cells = [row[1:] for row in project.rows(range(size))]
    for table, transformer in _candidates(project.first_settings, reading, cells):
        try:
            made = transformer.set_output(transform="default").fit_transform(table)
        except InvalidValueError:
            continue
        found = limited(_as_items(project.first_settings, np.asarray(made, dtype=np.float64), transformer))
        if _is_same(found.X, X):
            return found.transformer
        if found.X.shape == X.shape and _adjusted(found.transformer, table, X):
            return found.transformer
    raise SufficeError(
        "the features of this project cannot be made again: they were given as a file, images have changed, or another "
        "version of a library made them; make a new project of all rows, and take the labels over with suffice import"
    )


def _adjusted(transformer: Any, table: TableColumns, X: Floats) -> bool:
    """Whether a transformer makes given features after its components were changed."""
    from suffice.tables.adjusted_components import adjust_components

    return adjust_components(transformer, table, X) and _is_same(np.asarray(transformer.transform(table)), X)


def _is_same(made: Floats, kept: Floats) -> bool:
    if made.shape != kept.shape:
        return False
    scale = np.maximum(np.abs(kept).max(axis=0, initial=0.0), 1e-300)
    return bool((np.abs(made - kept) <= _ROUNDING * scale).all())


def _candidates(
    settings: Settings,
    reading: Mapping[str, Any],
    cells: Sequence[Sequence[str]],
    decimals: Sequence[str] = (".", ","),
) -> Iterator[tuple[TableColumns, Any]]:
    """Candidate tables and transformers for the features; a single one if the reading options are known."""
    from suffice.models.capacity import most_components
    from suffice.tables.transformers import TableTransformer

    columns = dict(zip(settings.columns, zip(*cells, strict=True), strict=True))
    texts: list[str | None] = [None, settings.main] if settings.shown == "text" else [None]
    if "text" in reading:
        texts = [reading["text"]]
    special = _special(settings, reading, len(cells))
    if settings.shown != "image" and special:
        texts = [None]
    most = most_components(len(settings.classes), len(cells)) if settings.classes else None
    for text, decimal in product(texts, decimals):
        table = _table(columns, settings.main if special else None, decimal)
        if table is not None:
            yield table, TableTransformer(text=text, special=special, most_characters=READ, components=most)


def _special(settings: Settings, reading: Mapping[str, Any], n: int) -> dict[str, Any]:
    """Transformers, not fitted, of columns that are neither numbers nor words."""
    embed = reading.get("embed")
    if settings.main is None:
        return {}
    if settings.shown == "image":
        return {settings.main: image_transformer(Path(settings.root), n)}
    return {} if embed is None else {settings.main: embedding_transformer(settings.main, embed)}


def made_checksum(project: ReadableProject) -> str:
    """A checksum of all that the transformer of a project was fitted to.

    Args:
        project: The project.
    """
    about = {"settings": project.first_settings.as_dict(), "reading": dict(project.made_with)}
    found = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    size = project.n_items_made
    for start in range(0, size, _ROWS_AT_ONCE):
        found.update(np.ascontiguousarray(project.X[start : min(start + _ROWS_AT_ONCE, size)]).tobytes())
    return found.hexdigest()


def keep_transformer(project: ReadableProject, transformer: Any) -> None:
    """Save a fitted transformer with the files of the learner, if it can be saved.

    Args:
        project: The project.
        transformer: The transformer.
    """
    if not project.learned_files.kept:
        return
    from suffice.tables.saved_transformer import transformer_state

    # Another version of scikit-learn may have other attributes; then it is fitted again when it is needed.
    with suppress(AttributeError, LookupError, TypeError, ValueError):
        project.learned_files.keep_transformer(made_checksum(project), transformer_state(transformer))


def saved_transformer(project: ReadableProject) -> Any:
    """The transformer of a project as it was saved; None if it was not.

    Args:
        project: The project.
    """
    if project.made_with.get("features"):
        return None
    state = project.learned_files.transformer(made_checksum(project))
    if state is None:
        return None
    from suffice.tables.saved_transformer import restored_transformer

    special = _special(project.first_settings, project.made_with, project.n_items_made)
    try:
        return restored_transformer(state, special)
    except (AttributeError, LookupError, TypeError, ValueError):
        return None


def _table(columns: Mapping[str, Sequence[str]], as_text: str | None, decimal: str) -> TableColumns | None:
    """Cells as columns; None if decimal commas are requested and no column has any."""
    found: dict[str, Column] = {}
    commas = False
    for name, cells in columns.items():
        values = as_texts(cells) if name == as_text else read_column(cells)
        if decimal == "," and isinstance(values, Texts) and name != as_text:
            numbers = values.numbers(decimal=",")
            commas |= numbers is not None
            values = values if numbers is None else numbers
        found[name] = values
    if decimal == "," and not commas:
        return None
    return TableColumns(
        tuple(found),
        tuple(found.values()),
        (),
        lambda row: f"item {row + 1}",
        lambda: CellColumns([*map(list, columns.values())]),
    )


def _as_items(settings: Settings, X: Floats, transformer: Any) -> Items:
    """Items with features only, for the reduction of features."""
    n = len(X)
    return Items(
        shown=settings.shown,
        ids=("",) * n,
        columns=(),
        cells=CellColumns([], n),
        main=None,
        X=X,
        task=settings.task,
        classes=settings.classes,
        labels={},
        notes=(),
        transformer=transformer,
        components=transformer.component_groups(),
    )


def project_columns(settings: Settings, table: TableColumns, source: str) -> TableColumns:
    """The columns of a project in a table of new rows; other columns are left out.

    Args:
        settings: Settings of the project.
        table: The new rows.
        source: Name of the table, for an error.

    Raises:
        InvalidValueError: A column is missing.
    """
    missing = [name for name in settings.columns if name not in table.names]
    if missing:
        some = ", ".join(map(short, missing[:20]))
        came = ", ".join(map(short, table.names[:20]))
        raise InvalidValueError(
            f"{source} must have the columns of the project, of which {some} "
            f"{'is' if len(missing) == 1 else 'are'} missing; its columns are {came}"
        )
    return table.selected(settings.columns, np.arange(len(table)))
