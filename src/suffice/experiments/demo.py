"""The demonstration: a simulated person labels a pool until the rule says that it is enough."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from suffice.criteria import Criterion, Step, Verdict
from suffice.experiments.small_models import LinearRegression, LogisticRegression, SmallModel
from suffice.experiments.tasks import Task

#: Labels bought at random before the first question is chosen.
INITIAL = 10


@dataclass(frozen=True)
class Progress:
    """Where a labelling run stands after one more label.

    Attributes:
        n_labelled: Labels bought so far.
        error: Error on the test set.
        verdicts: What the rule says: the newest last, and before it the whole history where it was replayed because
            the model's scales were learned again.
    """

    n_labelled: int
    error: float
    verdicts: tuple[Verdict, ...]

    @property
    def verdict(self) -> Verdict:
        """What the rule says now."""
        return self.verdicts[-1]


def new_model(task: Task) -> SmallModel:
    """The small model that fits the task."""
    return LinearRegression() if task.kind == "regression" else LogisticRegression()


def label_pool(task: Task, rule: Criterion, rng: np.random.Generator) -> Iterator[Progress]:
    """Buy labels one at a time, the most useful first, to the end of the pool; the caller stops when it has enough.

    A label leaves the pool only when it is bought: neither model nor rule sees another.
    """
    model = new_model(task)
    labelled = [int(i) for i in rng.choice(len(task.X_pool), size=INITIAL, replace=False)]
    _teach(model, task, labelled)
    while len(labelled) < len(task.X_pool):
        score = model.score(task.X_pool)
        score[labelled] = -np.inf
        labelled.append(int(np.argmax(score)))
        steps = _teach(model, task, labelled)
        if len(steps) > 1:
            rule.reset()
        verdicts = tuple(rule.observe(step) for step in steps)
        yield Progress(len(labelled), model.error(task.X_test, task.y_test), verdicts)


def _teach(model: SmallModel, task: Task, labelled: list[int]) -> list[Step]:
    return model.learn(task.X_pool[labelled], task.y_pool[labelled], INITIAL)
