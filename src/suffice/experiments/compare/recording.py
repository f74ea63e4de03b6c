"""Runs to compare rules on: each is recorded once, with all that any rule may ask for."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.arguments import whole
from suffice.data.catalogue import SETS
from suffice.data.checking import require_set
from suffice.errors import InvalidValueError
from suffice.experiments.compare.tasks import LabelledData, Task, cut, load, source
from suffice.experiments.runner import StepProgress
from suffice.learner import StopSet, simulate
from suffice.models.factory import MODEL_FAMILIES, make_model
from suffice.special import Floats
from suffice.trace import Trace

# To be raised whenever the code makes a model's runs come out otherwise: what was kept before is then run again.
_VERSIONS: Final = {"gp": 2, "ridge": 2, "logistic": 1}
#: Models that can be compared on, and what they are for.
MODELS: Final = {name: MODEL_FAMILIES[name].task for name in _VERSIONS}
# Weights of a classifier of many classes; more features than that are replaced by principal components.
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
        noise: Label noise in the pool, see :func:`suffice.experiments.compare.tasks.cut`.
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
    """A run to record; a :class:`suffice.experiments.runner.RunJob`.

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
        """What it is called, for people."""
        return f"{self.model} on {self.data}, seed {self.seed}, {self.batch} at a time"

    @property
    def stem(self) -> str:
        """What its files are called: readable, and different for different runs."""
        return f"{Path(self.data).stem}-{self.model}-{self.batch}-{self.seed}-{self.identity[:8]}"

    @property
    def identity(self) -> str:
        """Differs whenever settings, data or, by its version, the code do."""
        text = json.dumps([_VERSIONS[self.model], asdict(self), _checksums(self.data)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def steps(self) -> int | None:
        """Steps that it takes at most; a small pool has fewer."""
        return None

    @property
    def alone(self) -> bool:
        """No model here takes the whole machine."""
        return False

    def ready(self) -> None:
        """Make sure that its data are there.

        Raises:
            SufficeError: They are missing or damaged.
        """
        found = source(self.data)
        if found.data:
            require_set(found.data)
        elif found.origin == "file":
            _labelled(self.data, self.target)

    def run(self, traces: Path, progress: StepProgress | None) -> Trace:
        """Label the pool as active learning would, and record all that rules may ask for."""
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
    stop_set: StopSet
    validation: tuple[Floats, Any] | None


def prepared(job: RecordingJob) -> PreparedRun:
    """Everything that a run starts from, drawn by its seed."""
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
    # Runs come data set by data set, so that each is read once.
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
