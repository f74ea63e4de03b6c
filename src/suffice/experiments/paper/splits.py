"""Which rows are tested on, chosen from and labelled first."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from suffice.data.protocols import PUBLISHED, Experiment
from suffice.data.samples import Samples, read_samples


class DataSplit(NamedTuple):
    """A data set divided into its parts.

    Attributes:
        test: What is tested on.
        pool: What labels are chosen from.
        outside: What lies outside the run; empty under the published protocol.
        initial: Rows of the pool that are labelled first.
    """

    test: Samples
    pool: Samples
    outside: Samples
    initial: NDArray[np.intp]


def published_rows(
    experiment: Experiment, seed: int = 1, among: Mapping[str, Experiment] = PUBLISHED
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Order of the rows, and the first labels, as the authors' script draws them.

    A script seeds Python's generator once and then goes through its data sets, so those before this one matter.

    Args:
        experiment: Which one; its sizes count, not those of its namesake in ``among``.
        seed: Seed of the generator; the authors' is 1.
        among: The experiments that are run before it.

    Returns:
        Rows of the file, test rows first and then the pool; and indices into the pool.
    """
    # Not a secret: the authors' own generator, which numpy's cannot stand in for.
    draws = random.Random(seed)
    for each in among.values():
        if each.model != experiment.model:
            continue
        this = experiment if each.data == experiment.data else each
        order = draws.sample(range(this.rows), this.rows)
        first = draws.sample(range(this.pool_size), this.initial)
        if this is experiment:
            return np.array(order), np.array(first)
    raise KeyError(experiment.name)


def published_split(experiment: Experiment, seed: int, folder: Path | None = None) -> DataSplit:
    """The split of the authors' script: test rows first, then the pool."""
    samples = read_samples(experiment.data, experiment.view, folder)
    order, initial = published_rows(experiment, seed)
    return _parts(samples, order, experiment, initial)


def corrected_split(experiment: Experiment, seed: int, folder: Path | None = None) -> DataSplit:
    """A random split: test rows, rows outside the run, the pool; the first labels at random."""
    samples = read_samples(experiment.data, experiment.view, folder)
    rng = np.random.default_rng(seed)
    order = rng.permutation(experiment.rows)
    return _parts(samples, order, experiment, rng.permutation(experiment.pool_size)[: experiment.initial])


def _parts(samples: Samples, order: Any, experiment: Experiment, initial: Any) -> DataSplit:
    ends = np.cumsum([experiment.test, experiment.outside, experiment.pool_size])
    test, outside, pool = (
        Samples(samples.inputs[rows], samples.target[rows]) for rows in np.split(order, ends)[: len(ends)]
    )
    return DataSplit(test, pool, outside, initial)
