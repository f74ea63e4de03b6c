"""The demonstration: a simulated person labels a pool until the rule says that it is enough."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.criteria import Criterion, Verdict
from suffice.experiments.tasks import Task
from suffice.learner import ActiveLearner
from suffice.models import BayesianLogistic, BayesianRidge
from suffice.special import Floats
from suffice.trace import Trace

#: Labels bought at random before the first question is chosen.
INITIAL = 10


@dataclass(frozen=True)
class Progress:
    """Where a labelling run stands after one more label.

    Attributes:
        n_labelled: Labels bought so far.
        error: Error on the test set.
        verdicts: What the rule says of every step so far: the newest last. Where the model's scales were learned again,
            the past is seen with the new ones.
        trace: The run so far.
    """

    n_labelled: int
    error: float
    verdicts: tuple[Verdict, ...]
    trace: Trace

    @property
    def verdict(self) -> Verdict:
        """What the rule says now."""
        return self.verdicts[-1]


def new_model(task: Task) -> Any:
    """The linear model that fits the task."""
    return BayesianRidge(fit_intercept=True) if task.kind == "regression" else BayesianLogistic(alpha=1.0)


def label_pool(task: Task, rule: Criterion, rng: np.random.Generator) -> Iterator[Progress]:
    """Buy labels one at a time, the most useful first, to the end of the pool; the caller stops when it has enough.

    A label leaves the pool only when it is bought: neither model nor rule sees another.
    """
    first = rng.choice(len(task.X_pool), size=INITIAL, replace=False)
    acquisition = "variance" if task.kind == "regression" else "map-entropy"
    learner = ActiveLearner(new_model(task), task.X_pool, criterion=rule, acquisition=acquisition, initial=first)
    while learner.left:
        items = learner.ask(1 if learner.verdicts or len(learner.labelled) >= INITIAL else INITIAL)
        learner.tell(items, task.y_pool[items.tolist()])
        if learner.verdicts:
            error = error_of(task, learner.model)
            yield Progress(len(learner.labelled), error, tuple(learner.verdicts), learner.trace())


def error_of(task: Task, model: Any) -> float:
    """Root mean squared error in the target's own units, or cross entropy."""
    if task.kind == "regression":
        return float(np.sqrt(np.mean((task.y_test - model.predict(task.X_test)) ** 2)))
    logits: Floats = model.latent(task.X_test)[0]
    return float(np.mean(np.logaddexp(0.0, np.where(task.y_test > 0.5, -logits, logits))))
