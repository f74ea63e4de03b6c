"""Recorded runs for the comparison: data sets by name, tasks, models, and every input that a rule may require."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import product
from os.path import isfile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import real, whole
from suffice.errors import InvalidValueError
from suffice.models.factory import MODEL_FAMILIES, make_model
from suffice.numerics import Floats
from suffice.tables.example_data import Task
from suffice.tables.file_reader import read_columns, table_format
from suffice.tables.table import Kind, read_table
from suffice.trace import Trace
from suffice_research.data.catalogue import SETS, require_set
from suffice_research.data.set_readers import read_set, read_texts, read_words
from suffice_research.runner import StepProgress

if TYPE_CHECKING:
    from suffice.learner import StopSet


def text_features(texts: Sequence[str], *, components: int = 100, seed: int = 0) -> Floats:
    """Return the largest singular components of the TF-IDF weights of all texts, ``n x components``.

    With ``W`` the matrix of weights (words in at least 3 texts, the 20,000 most frequent, without the usual English
    stop words, ``1 + log`` of the count), ``W = U S V'`` and the features are the first columns of ``U S``. Labels are
    not used. The features of an empty text are all 0.

    Args:
        texts: At least ``components + 1`` of them, with as many words that occur in 3 or more.
        components: How many features.
        seed: Of the random projection that starts the decomposition.

    Raises:
        InvalidValueError: There are too few texts or words for this number of components.

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


@dataclass(frozen=True, eq=False)
class LabelledSource:
    """The source of a labelled data set.

    Attributes:
        name: What it is called here; the path of a file.
        title: What it is, for a person.
        kind: Regression or classification; None for a file, whose target decides when it is read.
        origin: ``embedded`` (part of scikit-learn), ``data folder`` (``suffice data fetch`` downloads it) or ``file``.
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

#: All named data sets, by name.
SOURCES: Final[Mapping[str, LabelledSource]] = MappingProxyType({each.name: each for each in _ALL})


def source_names() -> list[str]:
    """Return the names that :func:`load` accepts, in addition to paths of files.

    Examples:
        >>> source_names()[:3]
        ['diabetes', 'friedman', 'breast_cancer']
    """
    return list(SOURCES)


def source(name: str) -> LabelledSource:
    """Return the source of a data set, without reading it.

    Args:
        name: One of :func:`source_names`, or the path of a table. A name goes before a file of the same name: write
            ``./iris`` for that.

    Raises:
        InvalidValueError: It is neither; the message contains the nearest name and all names.

    Examples:
        >>> source("wine").origin, source("wines.csv").origin
        ('embedded', 'file')
    """
    if name in SOURCES:
        return SOURCES[name]
    if table_format(Path(name)) is not None or name.lower().endswith(".gz") or isfile(name):
        return LabelledSource(name, Path(name).name, None, "file")
    near = get_close_matches(name.lower().replace("-", "_").replace(" ", "_"), SOURCES, n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    known = f"The data sets are {', '.join(SOURCES)}; or give the path of a table"
    raise InvalidValueError(f"there is no data set {name!r}.{guess} {known}")


def load(name: str, *, target: str | None = None) -> LabelledData:
    """Read a labelled data set, whole.

    Data sets of the paper have the columns of the corrected protocol. Words in a table become 0/1 columns. Texts become
    100 numbers each (:func:`suffice_research.compare.recording.text_features`), fitted on all texts and no label.

    Args:
        name: One of :func:`source_names`, or the path of a table, read as ``suffice run`` reads it.
        target: The column of a table to predict; only with a path.

    Raises:
        InvalidValueError: No such data set, a table that cannot be used, or no such column in it.
        MissingDataError: The data set is not in the data folder; the message says how to get it.
        CorruptDataError: A file in the data folder has the wrong checksum.

    Examples:
        >>> iris = load("iris")
        >>> iris.inputs.shape, iris.classes
        ((150, 4), ('setosa', 'versicolor', 'virginica'))
    """
    labelled_source = source(name)
    if labelled_source.origin == "file":
        return _from_file(labelled_source, target)
    if target is not None:
        remedy = "leave target out, or name a table"
        raise InvalidValueError(f"target {target!r} goes with a file, and {name} has a target of its own; {remedy}")
    return (
        _from_scikit_learn(labelled_source) if labelled_source.origin == "embedded" else _from_folder(labelled_source)
    )


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


#: Share of a small data set for the pool, if there are too few rows for pool and test set.
_POOL_SHARE: Final = 0.7

Rows = NDArray[np.intp]


def load_task(  # noqa: PLR0913 - a job has many settings, all but two by keyword
    name: str,
    seed: int,
    *,
    pool: int = 2000,
    test: int = 1000,
    target: str | None = None,
    noise: float = 0.0,
    imbalance: float | None = None,
) -> Task:
    """Load a data set with :func:`load`, and split it with :func:`cut`, which describes the other arguments.

    Args:
        name: One of :func:`source_names`, or the path of a table.
        seed: Of all that is drawn.
        pool: Rows to label, at most.
        test: Rows to test on, at most.
        target: The column of a table to predict; only with a path.
        noise: Label noise in the pool.
        imbalance: Share of the rarest class; as it is if left out.

    Raises:
        InvalidValueError: There is no such data set, or it cannot be split.
        MissingDataError: The data set is not in the data folder.
        CorruptDataError: A file in the data folder has the wrong checksum.

    Examples:
        >>> job = load_task("iris", 0)
        >>> job.X_pool.shape, job.X_test.shape
        ((105, 4), (45, 4))
    """
    return cut(load(name, target=target), seed, pool=pool, test=test, noise=noise, imbalance=imbalance)


def cut(  # noqa: PLR0913 - as above
    labelled: LabelledData,
    seed: int,
    *,
    pool: int = 2000,
    test: int = 1000,
    noise: float = 0.0,
    imbalance: float | None = None,
) -> Task:
    """Draw a pool and a test set at random from a data set; the same seed draws the same.

    The test set is drawn first, so that it is the same for pools of other sizes. A data set of fewer than ``pool +
    test`` rows is split 70 : 30 instead. Inputs are standardised with the mean and standard deviation of the pool; a
    constant input becomes 0. Numeric targets are standardised too, before noise is added: predicting the pool's mean
    has a squared error of 1. Classes are codes ``0 .. K-1`` of the ``K`` classes in the pool; test rows of other
    classes are dropped.

    Args:
        labelled: The data set.
        seed: Of all that is drawn.
        pool: Rows to label, at most; at least 2.
        test: Rows to test on, at most.
        noise: For classes the share of pool labels, exact to one row, that are replaced by another class of the pool
            at random. For numbers the deviation of Gaussian noise that is added to the pool's labels, as a multiple of
            their own deviation. The test set is not changed. The choice of rows does not depend on it.
        imbalance: The share that the rarest class of the data set is brought down to, in the pool and in the test set,
            by dropping rows of it at random; at least one is left. Unchanged if left out.

    Raises:
        InvalidValueError: An option is not as it should be, or too little is left: fewer than two classes, one value
            of the target, or no test row.

    Examples:
        >>> job = cut(load("breast_cancer"), 0, imbalance=0.1)
        >>> round(float(np.mean(job.y_pool == 0)), 2)
        0.1
    """
    sizes = whole(pool, "pool", least=2), whole(test, "test", least=1)
    draws = [np.random.default_rng([whole(seed, "seed", least=0), 2, part]) for part in range(3)]
    level = _checked_noise(noise, labelled.kind)
    rows, held_back = _split(labelled, sizes, draws[0])
    if imbalance is not None:
        share = _checked_share(imbalance, labelled)
        rows, held_back = (_thinned(labelled.target, part, share, draws[1]) for part in (rows, held_back))
    known, truth = labelled.target[rows], labelled.target[held_back]
    if labelled.kind == "regression":
        known, truth = _standardised(known, truth, labelled)
        known = known + level * draws[2].standard_normal(len(known))
    else:
        known = _mislabelled(known, level, draws[2])
        held_back, known, truth = _common_classes(labelled, held_back, known, truth)
    centre, spread = labelled.inputs[rows].mean(axis=0), labelled.inputs[rows].std(axis=0)
    # Columns that are constant up to rounding count as constant.
    spread = np.where(spread > 1e-12 * np.abs(centre), spread, 1.0)
    X_pool, X_test = ((labelled.inputs[part] - centre) / spread for part in (rows, held_back))
    return Task(f"{labelled.name}: {labelled.title}", labelled.kind, X_pool, known, X_test, truth)


def _checked_noise(noise: float, kind: Kind) -> float:
    if kind == "classification":
        return real(noise, "noise", "from 0 to 1, a share of the labels", lambda x: 0.0 <= x <= 1.0)
    return real(noise, "noise", "of 0 or more, in standard deviations of the target", lambda x: x >= 0.0)


def _checked_share(imbalance: float, labelled: LabelledData) -> float:
    if labelled.kind == "regression":
        raise InvalidValueError(f"imbalance is for classes, and {labelled.name} has a number to predict; leave it out")
    rarest = _rarest(labelled.target)
    most = float(np.mean(labelled.target == rarest))
    shown = f"{int(1e4 * most) / 1e4:g}"  # rounded down, so that it can be given
    whose = f"the share of {labelled.classes[rarest]!r}, the rarest class of {labelled.name}: rows are only dropped"
    return real(imbalance, "imbalance", f"above 0 and at most {shown} ({whose})", lambda x: 0.0 < x <= most < 1.0)


def _rarest(codes: Any) -> int:
    return int(np.argmin(np.bincount(codes)))


def _split(labelled: LabelledData, sizes: tuple[int, int], rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return the rows of the pool and those of the test set."""
    n, (pool, test) = len(labelled.target), sizes
    if n < 3:
        raise InvalidValueError(f"{labelled.name} has {n} rows; 3 or more are required, to label and to test on")
    if n < pool + test:
        first = int(_POOL_SHARE * n)
        pool, test = min(pool, first), min(test, n - first)
    order: Rows = rng.permutation(n)
    return order[test : test + pool], order[:test]


def _thinned(codes: Any, rows: Rows, share: float, rng: np.random.Generator) -> Rows:
    """Return rows of which the rarest class has a share."""
    rare = np.flatnonzero(codes[rows] == _rarest(codes))
    # r / (r + others) = share.
    left = max(1, round(share / (1.0 - share) * (len(rows) - len(rare))))
    dropped = rng.permutation(rare)[left:]
    return np.delete(rows, dropped)


def _standardised(known: Floats, truth: Floats, labelled: LabelledData) -> tuple[Floats, Floats]:
    centre, spread = known.mean(), known.std()
    if not spread > 1e-12 * abs(centre):
        few = f"in the {len(known)} rows of the pool the target of {labelled.name} has one value only"
        raise InvalidValueError(f"{few}; two different ones are required: raise pool, or try another seed")
    return (known - centre) / spread, (truth - centre) / spread


def _mislabelled(codes: Any, share: float, rng: np.random.Generator) -> Any:
    """Return codes of which a share is replaced by another class, drawn uniformly."""
    classes, places = np.unique(codes, return_inverse=True)
    if len(classes) < 2:
        return codes
    wrong = rng.permutation(len(codes))[: round(share * len(codes))]
    # Shifted cyclically by 1 to K - 1 classes, so that the class always changes.
    places[wrong] = (places[wrong] + rng.integers(1, len(classes), len(wrong))) % len(classes)
    return classes[places]


def _common_classes(labelled: LabelledData, held_back: Rows, known: Any, truth: Any) -> tuple[Any, Any, Any]:
    """Return the test rows whose classes occur in the pool, and the codes of pool and test set."""
    classes = np.unique(known)
    left = np.isin(truth, classes)
    if len(classes) < 2 or not left.any():
        came = f"the {len(known)} rows of the pool have {len(classes)} class{'es' if len(classes) != 1 else ''}"
        met = "two or more are required" if len(classes) < 2 else "no test row has one of them"
        raise InvalidValueError(f"{labelled.name}: {came}; {met}. Raise pool or test, or try another seed")
    return held_back[left], np.searchsorted(classes, known), np.searchsorted(classes, truth[left])


# Increase the version of a model if changes of the code change its runs; saved runs are then repeated.
_VERSIONS: Final = {"gp": 3, "ridge": 3, "logistic": 2}
#: Models of the comparison, each with its task.
MODELS: Final = {name: MODEL_FAMILIES[name].tasks[0] for name in _VERSIONS}
# Maximal number of weights of a classifier of many classes; with more, principal components replace the features.
_MOST_WEIGHTS: Final = 250
_LEAST_COMPONENTS: Final = 5


@dataclass(frozen=True)
class RecordingSettings:
    """Sizes and label noise of the recorded runs.

    Attributes:
        labels: Labels bought in all, or the whole pool where that is smaller.
        initial: Of which so many at random before the first step.
        pool: Rows to label from, at most.
        test: Rows to test on, at most.
        stop_set: Items of the stop set, or all.
        validation: Labelled rows for rules that want a validation set; a quarter of a small test set at most.
        noise: Label noise in the pool, see :func:`suffice_research.compare.recording.cut`.
        imbalance: Share of the rarest class; as it is if left out.
    """

    labels: int = 500
    initial: int = 10
    pool: int = 2000
    test: int = 1000
    stop_set: int = 2000
    validation: int = 100
    noise: float = 0.0
    imbalance: float | None = None

    def __post_init__(self) -> None:
        for name, least in (
            ("labels", 1),
            ("initial", 1),
            ("pool", 2),
            ("test", 1),
            ("stop_set", 1),
            ("validation", 0),
        ):
            whole(getattr(self, name), name, least=least)


@dataclass(frozen=True)
class RecordingJob:
    """A run to record; a :class:`suffice_research.runner.RunJob`.

    Attributes:
        data: Name of the data set, or path of a table.
        model: One of :data:`MODELS`.
        seed: Of all that is drawn.
        batch: Labels bought at each step.
        setting: How it is made.
        target: Column of a table to predict.
    """

    data: str
    model: str
    seed: int
    batch: int = 1
    setting: RecordingSettings = RecordingSettings()
    target: str | None = None

    def __post_init__(self) -> None:
        _require_model(self.model)

    @property
    def name(self) -> str:
        """Name for people."""
        return f"{self.model} on {self.data}, seed {self.seed}, {self.batch} at a time"

    @property
    def stem(self) -> str:
        """Base name of its files: readable, and different for different runs."""
        return f"{Path(self.data).stem}-{self.model}-{self.batch}-{self.seed}-{self.identity[:8]}"

    @property
    def identity(self) -> str:
        """Identity of the run, which depends on settings, data and the version of the code."""
        text = json.dumps([_VERSIONS[self.model], asdict(self), _checksums(self.data)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def steps(self) -> int | None:
        """Maximal number of steps; a small pool has fewer."""
        return None

    @property
    def alone(self) -> bool:
        """False, because no model of the comparison needs the whole machine."""
        return False

    def ready(self) -> None:
        """Check that its data are available.

        Raises:
            SufficeError: They are missing or damaged.
        """
        found = source(self.data)
        if found.data:
            require_set(found.data)
        elif found.origin == "file":
            _labelled(self.data, self.target)

    def run(self, traces: Path, progress: StepProgress | None) -> Trace:
        """Simulate active learning on the pool, and record all inputs that rules may require."""
        from suffice.learner import simulate

        del traces
        made = prepared(self)
        how, task = self.setting, made.task
        labels = min(how.labels, len(task.X_pool))
        steps = (labels - how.initial) // self.batch
        if steps < 2:
            raise InvalidValueError(
                f"{self.data}: a pool of {len(task.X_pool)} rows leaves {max(steps, 0)} steps of {self.batch} after "
                f"{how.initial} initial labels; 2 or more are required"
            )
        return simulate(
            made.model,
            task.X_pool,
            task.y_pool,
            initial=how.initial,
            steps=steps,
            batch=self.batch,
            seed=self.seed,
            X_test=task.X_test,
            y_test=task.y_test,
            record="all",
            stop_set=made.stop_set,
            validation=made.validation,
            progress=progress,
        )


class PreparedRun(NamedTuple):
    """The task, model and stop set that a run starts with.

    Attributes:
        task: Pool and test set.
        model: The model, not fitted.
        stop_set: The stop set.
        validation: Inputs and labels of the validation set; None without one.
    """

    task: Task
    model: Any
    stop_set: "StopSet"
    validation: tuple[Floats, Any] | None


def prepared(job: RecordingJob) -> PreparedRun:
    """Everything with which a run starts, drawn with its seed."""
    from suffice.learner import StopSet

    how = job.setting
    task = cut(
        _labelled(job.data, job.target),
        job.seed,
        pool=how.pool,
        test=how.test,
        noise=how.noise,
        imbalance=how.imbalance,
    )
    if MODELS[job.model] != task.kind:
        raise InvalidValueError(f"{job.model} is for {MODELS[job.model]}, and {job.data} is a task of {task.kind}")
    X_pool, X_test = _fewer_features(task) if task.kind == "classification" else (task.X_pool, task.X_test)
    cutoff = min(how.validation, len(X_test) // 4)
    validation = (X_test[:cutoff], task.y_test[:cutoff]) if cutoff else None
    rest = Task(task.name, task.kind, X_pool, task.y_pool, X_test[cutoff:], task.y_test[cutoff:])
    classes = np.unique(task.y_pool).tolist() if task.kind == "classification" else None
    model, stop_set = make_model(job.model, classes=classes), StopSet.draw(len(X_pool), how.stop_set, seed=job.seed)
    return PreparedRun(rest, model, stop_set, validation)


def recordings(  # noqa: PLR0913 - what is crossed with what, all but two by keyword
    data: Sequence[str],
    models: Sequence[str],
    *,
    seeds: int,
    batches: Sequence[int],
    setting: RecordingSettings,
    target: str | None,
) -> list[RecordingJob]:
    """The runs of some data sets with the models that fit them, seed by seed.

    Args:
        data: Names of data sets, or paths.
        models: Some of :data:`MODELS`.
        seeds: How many.
        batches: Labels at a time.
        setting: How runs are made.
        target: Column of a table to predict.

    Raises:
        InvalidValueError: A data set or model is not known, or none fits the other.

    Examples:
        >>> settings = RecordingSettings()
        >>> runs = recordings(["wine"], ["gp", "logistic"], seeds=2, batches=(1,), setting=settings, target=None)
        >>> [run.name for run in runs]
        ['logistic on wine, seed 0, 1 at a time', 'logistic on wine, seed 1, 1 at a time']
    """
    found = []
    for model in models:
        _require_model(model)
    for name in data:
        kind = source(name).kind or _labelled(name, target).kind
        fitting = [model for model in models if MODELS[model] == kind]
        if not fitting:
            others = ", ".join(model for model, what in MODELS.items() if what == kind)
            raise InvalidValueError(f"{name} is a task of {kind}, and no model given is for that; there is {others}")
        found += [
            RecordingJob(name, model, seed, batch, setting, target if source(name).origin == "file" else None)
            for model, batch, seed in product(fitting, batches, range(seeds))
        ]
    return found


def _require_model(model: str) -> None:
    if model not in MODELS:
        raise InvalidValueError(f"there is no model {model!r} to compare on; there is {', '.join(MODELS)}")


def _labelled(name: str, target: str | None) -> LabelledData:
    # A table may have changed since it was read.
    return _read(name, target, tuple(_checksums(name)) if source(name).origin == "file" else ())


@lru_cache(maxsize=2)
def _read(name: str, target: str | None, checksums: tuple[str, ...]) -> LabelledData:
    # Runs are ordered by data set, so that each data set is read once.
    del checksums
    return load(name, target=target)


def _checksums(name: str) -> list[str]:
    found = source(name)
    if found.data:
        return [each.sha256 for each in SETS[found.data].files]
    if found.origin == "file" and Path(name).is_file():
        return [hashlib.sha256(Path(name).read_bytes()).hexdigest()]
    return []


def _fewer_features(task: Task) -> tuple[Floats, Floats]:
    """Inputs of pool and test; of many classes and features, principal components of the pool."""
    classes, width = len(np.unique(task.y_pool)), task.X_pool.shape[1]
    if classes == 2 or classes * width <= _MOST_WEIGHTS:
        return task.X_pool, task.X_test
    from sklearn.decomposition import PCA

    size = min(max(_LEAST_COMPONENTS, _MOST_WEIGHTS // classes), width, len(task.X_pool))
    components = PCA(size, random_state=0).fit(task.X_pool)
    scale = np.sqrt(np.maximum(components.explained_variance_[0], 1e-12))
    return components.transform(task.X_pool) / scale, components.transform(task.X_test) / scale
