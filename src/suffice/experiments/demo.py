"""The demonstration: a simulated person labels a pool until the rule says that it is enough."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.criteria import Criterion, Verdict
from suffice.engines.sampled import quality
from suffice.experiments.tasks import Task
from suffice.learner import ActiveLearner
from suffice.models.factory import make_model
from suffice.special import Floats
from suffice.trace import Trace

#: Labels bought at random before the first question is chosen.
INITIAL = 10
#: The same for a network, which then asks for some at a time.
NETWORK_INITIAL, NETWORK_BATCH = 50, 10


# Error on the test set, and the share of right predictions for classes.
Errors = tuple[float, float | None]


@dataclass(frozen=True)
class Progress:
    """Where a labelling run stands after one more label.

    Attributes:
        n_labelled: Labels bought so far.
        error: Error on the test set.
        accuracy: Share of the test set that is predicted right; None for numbers.
        verdicts: What the rule says of every step so far: the newest last. Where the model's scales were learned again,
            the past is seen with the new ones.
        trace: The run so far.
    """

    n_labelled: int
    error: float
    accuracy: float | None
    verdicts: tuple[Verdict, ...]
    trace: Trace

    @property
    def verdict(self) -> Verdict:
        """What the rule says now."""
        return self.verdicts[-1]


def new_model(task: Task) -> Any:
    """The linear model that fits the task."""
    return make_model("ridge", basis=0) if task.kind == "regression" else make_model("logistic")


def label_pool(task: Task, rule: Criterion, rng: np.random.Generator) -> Iterator[Progress]:
    """Buy labels one at a time, the most useful first, to the end of the pool; the caller stops when it has enough.

    A label leaves the pool only when it is bought: neither model nor rule sees another.
    """
    first = rng.choice(len(task.X_pool), size=INITIAL, replace=False)
    acquisition = "variance" if task.kind == "regression" else "map-entropy"
    learner = ActiveLearner(new_model(task), task.X_pool, criterion=rule, acquisition=acquisition, initial=first)
    yield from _bought(task, learner, (INITIAL, 1), linear_error)


def label_with_network(task: Task, rule: Criterion, rng: np.random.Generator) -> Iterator[Progress]:
    """The same with a dropout network, which asks for ten labels at a time by BatchBALD."""
    first = rng.choice(len(task.X_pool), size=NETWORK_INITIAL, replace=False)
    model = make_model("dropout", classes=np.unique(task.y_pool).tolist(), seed=int(rng.integers(2**31)))
    learner = ActiveLearner(model, task.X_pool, criterion=rule, initial=first)
    yield from _bought(task, learner, (NETWORK_INITIAL, NETWORK_BATCH), network_error)


def _bought(
    task: Task, learner: ActiveLearner, counts: tuple[int, int], error_of: Callable[[Task, Any], Errors]
) -> Iterator[Progress]:
    initial, size = counts
    while learner.left:
        items = learner.ask(size if learner.labelled else initial)
        learner.tell(items, task.y_pool[items.tolist()])
        if learner.verdicts:
            error, accuracy = error_of(task, learner.model)
            yield Progress(len(learner.labelled), error, accuracy, tuple(learner.verdicts), learner.trace())


def linear_error(task: Task, model: Any) -> Errors:
    """Root mean squared error in the units of the target; or cross entropy, and the share of right predictions."""
    if task.kind == "regression":
        return float(np.sqrt(np.mean((task.y_test - model.predict(task.X_test)) ** 2))), None
    logits: Floats = model.latent(task.X_test)[0]
    accuracy = float(np.mean((logits > 0.0) == (task.y_test > 0.5)))
    return float(np.mean(np.logaddexp(0.0, np.where(task.y_test > 0.5, -logits, logits)))), accuracy


def network_error(task: Task, model: Any) -> Errors:
    """Cross entropy of a network, averaged over its draws, and the share of right predictions."""
    draws = model.log_draws(model.machine_.tensor(task.X_test), model.samples, model.seed)
    found = quality(draws, np.searchsorted(model.classes_, task.y_test))
    return found.error, found.accuracy
