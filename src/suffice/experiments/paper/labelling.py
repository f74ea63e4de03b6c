"""A model of this package, led through an experiment of the paper."""

from collections.abc import Callable
from typing import Any

from suffice.data.protocols import Experiment
from suffice.experiments.paper.splits import DataSplit
from suffice.learner import simulate
from suffice.trace import Trace


def label(model: Any, experiment: Experiment, split: DataSplit, progress: Callable[[int, int], None] | None) -> Trace:
    """Label the pool as the model asks for it, one item at a time.

    Args:
        model: A model of :mod:`suffice.models`, or a pipeline that ends in one.
        experiment: What is run.
        split: The data.
        progress: Called now and then with the steps done and to do.
    """
    return simulate(
        model,
        split.pool.inputs,
        split.pool.target,
        initial=split.initial,
        steps=experiment.step_count,
        X_test=split.test.inputs,
        y_test=split.test.target,
        progress=progress,
    )
