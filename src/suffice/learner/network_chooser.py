"""Which items a network asks for, from draws of its predictions for the unlabelled items."""

from typing import Any, Final

import numpy as np

from suffice.acquisition import Indices, bald, batchbald, entropy, label_free_chooser, margin, require_known
from suffice.acquisition.batchbald import TIE
from suffice.engines.disk_rows import require_memory
from suffice.errors import InvalidValueError
from suffice.learner.backend import RunSettings
from suffice.models import DropoutNetwork
from suffice.models.predictive import as_numbers, exponentials
from suffice.numerics import Floats

#: Purposes of random masks: the test error and the choice of items must use different ones.
CHOOSING: Final = 1
TESTING: Final = 2


def mask_seed(model: DropoutNetwork, purpose: int) -> int:
    """Seed of masks. For the choice of items it changes with the round, for the test error it does not."""
    number = model.rounds_ if purpose == CHOOSING else 0
    return int(np.random.SeedSequence((model.seed, purpose, number)).generate_state(1)[0])


class NetworkChooser:
    """Chooses items by BatchBALD or by a score, or without the network.

    Args:
        model: The network, which is trained elsewhere.
        settings: Pool and acquisition.

    Attributes:
        free: Which items can be chosen.
        draws: Probabilities of the free items under each draw; None if the network has changed since.

    Raises:
        InvalidValueError: The acquisition cannot be used with the network.
    """

    def __init__(self, model: DropoutNetwork, settings: RunSettings) -> None:
        self._model, self._settings = model, settings
        self._name = require_known(settings.acquisition, "network")
        if self._name in ("bald", "batchbald") and model.samples < 2:
            raise InvalidValueError(f"{self._name} compares draws; samples must be 2 or more, not {model.samples}")
        flat = settings.X.reshape(len(settings.X), -1)
        self._fixed = label_free_chooser(self._name, flat, settings.rng)
        self.free = np.ones(len(settings.X), dtype=bool)
        self.draws: Any = None
        self._pool: Any = None

    def batch(self, size: int) -> Indices:
        """Picks to be labelled together: by BatchBALD, or those of largest score."""
        if self._fixed is not None:
            return self._fixed.batch(size)
        rows = np.flatnonzero(self.free)
        if self.draws is None:
            self.draws = self._probabilities(rows)
        if self._name == "batchbald":
            return np.asarray(rows[self._joint(min(size, len(rows)))])
        score = _scores(self.draws, self._name)
        best = float(score.max(initial=0.0)) or 1.0
        # Scores that are equal up to rounding are ties; the lowest index is chosen.
        return rows[np.argsort(-np.round(score / best, 6), kind="stable")[:size]]

    def _joint(self, size: int) -> Indices:
        """A batch by BatchBALD; if no label has an information gain, by the uncertainty of the rows, then at random."""
        chosen = batchbald(self.draws, size)
        telling = chosen.indices[chosen.gains > TIE]
        if len(telling) == size:
            return telling
        others = np.setdiff1d(np.arange(len(self.draws)), telling)
        score = entropy(as_numbers(self.draws.mean(1)))[others]
        shuffled = np.random.default_rng(mask_seed(self._model, CHOOSING)).permutation(len(others))
        order = shuffled[np.argsort(-np.round(score[shuffled], 6), kind="stable")]
        return np.concatenate([telling, others[order[: size - len(telling)]]])

    def take(self, indices: Indices) -> None:
        """Leave items out: they are labelled."""
        self._leave_out(indices)
        if self._fixed is not None:
            self._fixed.take(indices)

    def skip(self, indices: Indices) -> None:
        """Leave items out: they will have no label."""
        self._leave_out(indices)
        if self._fixed is not None:
            self._fixed.skip(indices)

    def _leave_out(self, indices: Indices) -> None:
        self.free[indices] = False
        self.draws = None

    def _probabilities(self, rows: Indices) -> Any:
        if self._pool is None:
            self._pool = self._model.machine_.tensor(self._settings.X)
        # New masks every round, because the same few masks would prefer the same items again.
        model = self._model
        if model.machine_.plan.device.type == "cpu":
            require_memory(8 * len(rows) * model.samples * len(model.classes_), f"{model.samples} draws of the pool")
        return exponentials(model.log_draws(self._pool[rows], model.samples, mask_seed(model, CHOOSING)))


def _scores(draws: Any, name: str) -> Floats:
    """Usefulness of the label of each row, from its draws."""
    if name == "bald":
        return bald(draws)
    averaged = as_numbers(draws.mean(1))
    return margin(averaged) if name == "margin" else entropy(averaged)
