"""One run of one experiment of the paper."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from suffice.data.folder import data_folder
from suffice.data.mnist import mnist_folder, read_mnist
from suffice.data.protocols import Experiment
from suffice.experiments.paper.logistic import logistic_run
from suffice.experiments.paper.regression import regression_run
from suffice.experiments.paper.splits import corrected_split, published_split
from suffice.trace import Trace


def run_experiment(
    experiment: Experiment,
    seed: int,
    *,
    folder: Path | None = None,
    checkpoint: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Trace:
    """Run an experiment of the paper.

    Args:
        experiment: What to run.
        seed: Seed of everything random.
        folder: The data folder; the usual one if left out.
        checkpoint: Where a network's run is kept after every round, to go on from.
        progress: Called now and then with the steps done and to do.

    Returns:
        The run. That of a network also has the authors' error, in ``measures["published_error"]``.

    Raises:
        MissingDataError: The data set is not there.
        CorruptDataError: A file of it is not what it should be.
    """
    if experiment.model == "bdnn":
        return _network_run(experiment, seed, folder, checkpoint, progress)
    split = (published_split if experiment.protocol == "published" else corrected_split)(experiment, seed, folder)
    run = logistic_run if experiment.model == "blr" else regression_run
    return run(experiment, split, progress=progress)


def _network_run(experiment: Experiment, seed: int, folder: Path | None, checkpoint: Any, progress: Any) -> Trace:
    # Torch comes with an extra, and only this experiment needs it.
    from suffice.experiments.paper.mnist import published_run

    place = mnist_folder(folder or data_folder())
    train, test = read_mnist(place), read_mnist(place, "test")
    return published_run(train, test, seed=seed, steps=experiment.step_count, checkpoint=checkpoint, progress=progress)


def arms(experiment: Experiment) -> list[tuple[str | None, Experiment]]:
    """The ways in which an experiment is run: by what its hyper-parameters are learned from, if that is a question."""
    if experiment.protocol == "published" or experiment.model == "bdnn":
        return [(None, experiment)]
    return [
        ("bought", replace(experiment, hyperparameters="bought")),
        ("outside", replace(experiment, hyperparameters="outside")),
    ]
