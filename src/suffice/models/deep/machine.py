"""A network on its device: built, trained, sampled, read out, and saved."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from suffice.errors import InvalidValueError
from suffice.models.deep.last_layer import head_features
from suffice.models.deep.masks import Masks, must_multiply_early
from suffice.models.deep.modules import mnist_network, perceptron, widened
from suffice.models.deep.readout import Structure, dropout_posterior, structure
from suffice.models.deep.sampling import log_draws
from suffice.models.deep.training import Recipe, fitting_threads, seeded, train
from suffice.posteriors import DropoutNetwork
from suffice.special import Floats

#: Shapes of one row that the networks known by name take.
SHAPES = {"mnist": (1, 28, 28)}


@dataclass(frozen=True)
class Plan:
    """How a network is run.

    Attributes:
        shape: Shape of one row, or None to take rows as they come.
        device: Where it runs.
        autocast: Number type of the arithmetic of draws, or None.
        recipe: How it is trained.
        learning_rate: Step of Adam.
        weight_decay: Weight decay of Adam.
        keep_optimizer: Whether Adam's averages live on from one training to the next.
        seed: Seed of weights, training and masks.
    """

    shape: tuple[int, ...] | None
    device: torch.device
    autocast: torch.dtype | None
    recipe: Recipe
    learning_rate: float
    weight_decay: float
    keep_optimizer: bool
    seed: int


def network_by_name(name: str, size: tuple[int, int], hidden: Sequence[int], rate: float, seed: int) -> nn.Sequential:
    """A new network with random weights; ``size`` is the number of its inputs and outputs."""
    with seeded((seed, 0), torch.device("cpu")):
        return mnist_network(size[1], rate) if name == "mnist" else perceptron(*size, hidden, rate)


def _on_cpu(state: Any) -> Any:
    """A copy with every tensor on the CPU."""
    if isinstance(state, torch.Tensor):
        return state.detach().cpu().clone()
    if isinstance(state, dict):
        return {name: _on_cpu(value) for name, value in state.items()}
    return [_on_cpu(value) for value in state] if isinstance(state, list) else state


class Machine:
    """A module with everything that is needed to run it.

    Args:
        module: Gives class scores; it is moved to the device.
        plan: How it is run.
        example: A few rows, by which its structure is found.
    """

    def __init__(self, module: nn.Module, plan: Plan, example: Floats) -> None:
        self.plan = plan
        self.module = module.to(plan.device).eval()
        self._averages: Any = None
        self._example = np.array(example[:2])
        rows = self.tensor(self._example)
        try:
            self.structure: Structure = structure(self.module, rows)
            self.early = self.structure.dropped and must_multiply_early(self.module, rows)
        except (RuntimeError, IndexError, ValueError) as error:
            if isinstance(error, InvalidValueError):
                raise
            shape = tuple(rows.shape[1:])
            raise InvalidValueError(
                f"network cannot take rows of shape {shape}, in single precision: {error}"
            ) from None

    def tensor(self, X: Any) -> torch.Tensor:
        """Rows on the device, in the module's shape."""
        rows = np.ascontiguousarray(X, dtype=np.float32)
        if self.plan.shape is not None and rows.shape[1:] != self.plan.shape:
            wanted = int(np.prod(self.plan.shape))
            if rows[:1].size != wanted:
                raise InvalidValueError(
                    f"each row must hold {wanted} numbers, {'x'.join(map(str, self.plan.shape))}, not {rows[:1].size}"
                )
            rows = rows.reshape(len(rows), *self.plan.shape)
        # A copy: torch would share the memory of an array that the caller may write to.
        return torch.tensor(rows, device=self.plan.device)

    def train(self, X: torch.Tensor, codes: Any, epochs: int, *, round_number: int) -> list[float]:
        """Train on labelled rows. What :meth:`kept` gave before can be put back if it fails.

        Args:
            X: Labelled rows.
            codes: Class codes.
            epochs: Times over.
            round_number: Which training this is: its randomness follows from that and the seed.

        Returns:
            Mean loss of each epoch.
        """
        plan = self.plan
        trained = [weights for weights in self.module.parameters() if weights.requires_grad]
        optimizer = torch.optim.Adam(trained, lr=plan.learning_rate, weight_decay=plan.weight_decay)
        if self._averages is not None:
            # A copy: the optimizer goes on writing to what it is given.
            optimizer.load_state_dict(copy.deepcopy(self._averages))
        targets = torch.as_tensor(np.asarray(codes, dtype=np.int64), device=plan.device)
        recipe = Recipe(epochs, plan.recipe.batch_size, plan.recipe.draws, plan.recipe.autocast)
        try:
            with seeded((plan.seed, 1, round_number), plan.device), fitting_threads(self.module, plan.device):
                losses = train(self.module, X, targets, optimizer=optimizer, recipe=recipe)
        finally:
            self.module.eval()
        self._averages = optimizer.state_dict() if plan.keep_optimizer else None
        return losses

    def log_draws(self, X: torch.Tensor, draws: int, seed: int) -> torch.Tensor:
        """Log probabilities under draws of the masks, ``N x k x C``."""
        # A module may have noise of its own: it is the same for the same seed.
        with seeded((seed, 3), self.plan.device):
            return log_draws(self.module, X, Masks(draws, seed, early=self.early), autocast=self.plan.autocast)

    def features(self, X: torch.Tensor) -> Floats:
        """Inputs of the last layer, a constant first."""
        return head_features(self.module, X)

    def posterior(self, sigma: float) -> DropoutNetwork:
        """The weights of now as a dropout posterior."""
        return dropout_posterior(self.module, self.structure.layers, sigma)

    def widen(self, places: Sequence[int], outputs: int, *, round_number: int) -> None:
        """Make room for more classes, for a network known by name: what is learned stays."""
        assert isinstance(self.module, nn.Sequential)
        with seeded((self.plan.seed, 2, round_number), self.plan.device):
            self.module = widened(self.module, places, outputs).eval()
        # Adam's averages are of the smaller network.
        self._averages = None
        self.structure = structure(self.module, self.tensor(self._example))

    def state(self) -> dict[str, Any]:
        """All that training has changed."""
        return copy.deepcopy({"weights": dict(self.module.state_dict()), "averages": self._averages})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.module.load_state_dict(state["weights"])
        self._averages = copy.deepcopy(state["averages"])

    def kept(self) -> tuple[nn.Module, Structure, dict[str, Any]]:
        """What training and :meth:`widen` change."""
        return self.module, self.structure, self.state()

    def put_back(self, kept: tuple[nn.Module, Structure, dict[str, Any]]) -> None:
        """Undo whatever was done since :meth:`kept`."""
        self.module, self.structure, state = kept
        self.restore(state)

    def __getstate__(self) -> dict[str, Any]:
        # Pickled on the CPU, so that it can be read where there is no GPU.
        state = dict(self.__dict__)
        state["module"] = copy.deepcopy(self.module).cpu()
        state["_averages"] = _on_cpu(self._averages)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.module = self.module.to(self.plan.device)
