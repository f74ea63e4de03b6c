"""Labelled data sets by name: from scikit-learn, from the data folder, or a user's table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from os.path import isfile
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np

from suffice.errors import InvalidValueError
from suffice.numerics import Floats
from suffice.research.data.catalogue import SETS
from suffice.research.data.set_readers import read_set, read_texts, read_words
from suffice.tables.file_reader import read_columns
from suffice.tables.table import Kind, read_table


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


_FILES: Final = (".csv", ".tsv", ".parquet", ".pq", ".gz")


@dataclass(frozen=True, eq=False)
class LabelledSource:
    """The source of a labelled data set.

    Attributes:
        name: What it is called here; the path of a file.
        title: What it is, for a person.
        kind: Regression or classification; None for a file, whose target decides when it is read.
        origin: ``embedded`` (comes with scikit-learn), ``data folder`` (``suffice data fetch`` brings it) or ``file``.
        data: Its name in ``suffice data list``; nothing if it is not there.
        classes: Names of the classes, where the files hold numbers for them.
    """

    name: str
    title: str
    kind: Kind | None
    origin: Literal["embedded", "data folder", "file"]
    data: str = ""
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class LabelledData:
    """A labelled data set as numbers.

    Attributes:
        name: What it is called here.
        title: What it is, for a person.
        kind: Regression or classification.
        inputs: ``n x D``, in any scale; no value is missing.
        target: ``n`` numbers, or class codes ``0 .. K-1``.
        classes: Names of the ``K`` classes; none for regression.
    """

    name: str
    title: str
    kind: Kind
    inputs: Floats
    target: Any
    classes: tuple[str, ...] = ()


def _embedded(name: str, kind: Kind, title: str) -> LabelledSource:
    return LabelledSource(name, title, kind, "embedded")


def _fetched(name: str, kind: Kind, title: str, *, data: str = "", classes: tuple[str, ...] = ()) -> LabelledSource:
    return LabelledSource(name, title, kind, "data folder", data or name, classes)


_ALL: Final = (
    _embedded("diabetes", "regression", "How far has the disease progressed in a year?"),
    _embedded("friedman", "regression", "Friedman's function of five of ten inputs, 2000 generated rows, noise 1"),
    _embedded("breast_cancer", "classification", "Is the tumour malignant or benign?"),
    _embedded("digits", "classification", "Which digit from 0 to 9 is it?"),
    _embedded("wine", "classification", "Which of three growers made the wine?"),
    _embedded("iris", "classification", "Which of three kinds of iris is it?"),
    _fetched("power_plant", "regression", "How much power does the plant give?"),
    _fetched("protein", "regression", "How far is the predicted fold of a protein from the true one?"),
    _fetched("gas_emission", "regression", "How much energy does the gas turbine yield?"),
    _fetched("grid_stability", "regression", "How stable is the power grid?"),
    _fetched(
        "grid_stable",
        "classification",
        "Is the power grid stable?",
        data="grid_stability_c",
        classes=("unstable", "stable"),
    ),
    _fetched("skin", "classification", "Is the pixel skin?", classes=("not skin", "skin")),
    _fetched("htru2", "classification", "Is the candidate a pulsar?", classes=("no pulsar", "pulsar")),
    _fetched("sms_spam", "classification", "Is the message spam?"),
    _fetched("newsgroups", "classification", "Which of 20 newsgroups is the message from?"),
    _fetched("letter", "classification", "Which of 26 letters is it?"),
    _fetched("adult", "classification", "Is the income above 50,000 dollars?"),
)

#: All that have a name, by name.
SOURCES: Final[Mapping[str, LabelledSource]] = MappingProxyType({each.name: each for each in _ALL})


def source_names() -> list[str]:
    """Return the names that :func:`load` takes, besides paths of files.

    Examples:
        >>> source_names()[:3]
        ['diabetes', 'friedman', 'breast_cancer']
    """
    return list(SOURCES)


def source(name: str) -> LabelledSource:
    """Return where a data set comes from, before anything of it is read.

    Args:
        name: One of :func:`source_names`, or the path of a table (CSV or Parquet). A name goes before a file of the
            same name: write ``./iris`` for that.

    Raises:
        InvalidValueError: It is neither; the message holds the nearest name and all of them.

    Examples:
        >>> source("wine").origin, source("wines.csv").origin
        ('embedded', 'file')
    """
    if name in SOURCES:
        return SOURCES[name]
    if name.lower().endswith(_FILES) or isfile(name):
        return LabelledSource(name, Path(name).name, None, "file")
    near = get_close_matches(name.lower().replace("-", "_").replace(" ", "_"), SOURCES, n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    known = f"The data sets are {', '.join(SOURCES)}; or give the path of a CSV file"
    raise InvalidValueError(f"there is no data set {name!r}.{guess} {known}")


def load(name: str, *, target: str | None = None) -> LabelledData:
    """Read a labelled data set, whole.

    Those of the paper have the columns of the corrected protocol. Words in a table become 0/1 columns. Texts become
    100 numbers each (:func:`suffice.research.compare.sources.text_features`), fitted on all texts and no label.

    Args:
        name: One of :func:`source_names`, or the path of a table, read as ``suffice run`` reads it.
        target: The column of a table to predict; only with a path.

    Raises:
        InvalidValueError: No such data set, a table that cannot be used, or no such column in it.
        MissingDataError: The data set is not in the data folder; the message says how to get it.
        CorruptDataError: A file in the data folder is not what it should be.

    Examples:
        >>> iris = load("iris")
        >>> iris.inputs.shape, iris.classes
        ((150, 4), ('setosa', 'versicolor', 'virginica'))
    """
    found = source(name)
    if found.origin == "file":
        return _from_file(found, target)
    if target is not None:
        remedy = "leave target out, or name a CSV file"
        raise InvalidValueError(f"target {target!r} goes with a file, and {name} has a target of its own; {remedy}")
    return _from_scikit_learn(found) if found.origin == "embedded" else _from_folder(found)


def columns_of(path: Path) -> str:
    """The columns of a table, for a message."""
    names = read_columns(path).names
    return ", ".join(map(repr, names[:20])) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _from_file(found: LabelledSource, target: str | None) -> LabelledData:
    path = Path(found.name)
    if target is None:
        raise InvalidValueError(f"{path}: target must name the column to predict. Its columns are {columns_of(path)}")
    table = read_table(path, target)
    title = f"column {target}"
    if table.kind == "regression":
        return LabelledData(found.name, title, table.kind, table.X, table.y)
    return _with_classes(LabelledSource(found.name, title, table.kind, "file"), table.X, table.y)


def _from_scikit_learn(found: LabelledSource) -> LabelledData:
    from sklearn import datasets

    if found.name == "friedman":
        X, y = datasets.make_friedman1(n_samples=2000, noise=1.0, random_state=0)
        return LabelledData(found.name, found.title, "regression", X, y)
    data = getattr(datasets, f"load_{found.name}")()
    X = np.asarray(data.data, dtype=np.float64)
    if found.kind == "regression":
        return LabelledData(found.name, found.title, "regression", X, np.asarray(data.target, dtype=np.float64))
    classes = tuple(map(str, data.target_names))
    return LabelledData(found.name, found.title, "classification", X, np.asarray(data.target, dtype=np.intp), classes)


def _from_folder(found: LabelledSource) -> LabelledData:
    holds = SETS[found.data].holds
    if holds == "texts":
        texts, labels = read_texts(found.data)
        return _with_classes(found, text_features(texts), labels)
    if holds == "words":
        table = read_words(found.data)
        return _with_classes(found, table.X, table.y)
    inputs, target = read_set(found.data, "corrected")
    return LabelledData(found.name, found.title, found.kind or "regression", inputs, target, found.classes)


def _with_classes(found: LabelledSource, inputs: Floats, labels: Any) -> LabelledData:
    classes, codes = np.unique(labels, return_inverse=True)
    return LabelledData(found.name, found.title, "classification", inputs, codes, tuple(classes.tolist()))
