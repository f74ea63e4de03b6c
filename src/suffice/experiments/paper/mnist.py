"""The paper's deep experiment: MNIST, a dropout network, five labels a round by BatchBALD."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from suffice.data.mnist import Digits
from suffice.data.protocols import PUBLISHED
from suffice.divergence import kl
from suffice.engines.sampled import quality
from suffice.learner import simulate
from suffice.learner.start import first_items, generator
from suffice.models import DropoutNetwork
from suffice.models.predictive import as_numbers, exponentials
from suffice.special import Floats
from suffice.trace import Trace

_RECORD: Final = PUBLISHED["bdnn/mnist"]
#: The first training is the first of the 100 rounds, so there are 99 steps.
STEPS: Final = _RECORD.steps
INITIAL: Final = _RECORD.initial
BATCH: Final = _RECORD.batch


def published_network(seed: int, **options: Any) -> DropoutNetwork:
    """The paper's network and its training: five times over all labels at once, one Adam for the whole run.

    Args:
        seed: Seed.
        options: Anything else that :class:`~suffice.models.DropoutNetwork` takes.
    """
    settings = {
        "classes": tuple(range(10)),
        "epochs": 5,
        "warm_epochs": 5,
        "batch_size": None,
        "learning_rate": 1e-3,
        "train_samples": 5,
        "samples": 5,
    }
    return DropoutNetwork("mnist", seed=seed, **{**settings, **options})


def published_run(  # noqa: PLR0913 - a run has many settings
    train: Digits,
    test: Digits,
    *,
    seed: int = 0,
    steps: int = STEPS,
    acquisition: str = "batchbald",
    checkpoint: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Trace:
    """Run the published protocol: 1000 random labels, then rounds of 5 over the whole remaining pool.

    ``trace.error`` is the posterior mean of the cross entropy; ``trace.measures["published_error"]`` what the authors
    recorded, a cross entropy that takes probabilities for logits.

    Args:
        train: Images and labels to choose from.
        test: Images and labels to test on.
        seed: Seed of the first labels, the weights, the training and the draws.
        steps: Rounds after the first.
        acquisition: Which labels next.
        checkpoint: File that the run is saved in after every round.
        progress: Called with the rounds done and to do.
        options: Of the network; what is left out is as published.
    """
    watch = _PublishedError(test)
    return simulate(
        published_network(seed, **options),
        train.images,
        train.labels,
        initial=INITIAL,
        steps=steps,
        acquisition=acquisition,
        batch=BATCH,
        seed=seed,
        X_test=test.images,
        y_test=test.labels,
        checkpoint=checkpoint,
        watch=watch,
        progress=progress,
    )


def unlabelled_run(train: Digits, test: Digits, *, seed: int = 0, steps: int = STEPS, **options: Any) -> Trace:
    """The published run with no label bought after the first 1000: what the training alone does to the rule.

    ``trace.n_labelled`` counts rounds as if each had bought its labels, so that the curves can be laid side by side.

    Args:
        train: Images and labels to choose from.
        test: Images and labels to test on.
        seed: Seed.
        steps: Rounds after the first.
        options: Of the network.
    """
    first = first_items(INITIAL, len(train.images), generator(seed))
    model = published_network(seed, **options).fit(train.images[first], train.labels[first])
    inputs, moved, error, accuracy = model.machine_.tensor(test.images), [], [], []
    for _ in range(steps):
        old = model.posterior
        model.learn(model.X_, model.y_)
        found = quality(model.log_draws(inputs, model.samples, seed), test.labels)
        moved.append(float(kl(model.posterior, old)))
        error.append(found.error)
        accuracy.append(found.accuracy)
    return Trace(
        initial=first,
        indices=np.zeros(0, dtype=np.intp),
        n_labelled=INITIAL + BATCH * np.arange(1, steps + 1),
        kl_new_old=np.array(moved),
        kl_old_new=np.array(moved),
        error=np.array(error),
        measures={"accuracy": np.array(accuracy)},
    )


class _PublishedError:
    """The authors' error of a network on the test set."""

    def __init__(self, test: Digits) -> None:
        self._test, self._inputs = test, None

    def __call__(self, model: DropoutNetwork) -> dict[str, float]:
        if self._inputs is None:
            self._inputs = model.machine_.tensor(self._test.images)
        draws = model.log_draws(self._inputs, model.samples, model.rounds_)
        averaged = as_numbers(exponentials(draws).mean(1))
        return {"published_error": published_error(averaged, self._test.labels)}


def published_error(probabilities: Floats, codes: Any) -> float:
    """Cross entropy of a softmax of probabilities: an erratum of the authors' code, at least 1.46 for ten classes."""
    wrong = np.log(np.exp(probabilities).sum(axis=1)) - probabilities[np.arange(len(codes)), codes]
    return float(wrong.mean())
