"""A torch module built from a dropout network's parameters; trained, sampled, read and saved on its device."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from suffice.arguments import sizes
from suffice.errors import InvalidValueError
from suffice.models.deep.dropout_layers import Masks, Structure, dropout_posterior, must_multiply_early, structure
from suffice.models.deep.sampling import head_features, log_draws
from suffice.models.deep.training import Recipe, fitting_threads, seeded, train
from suffice.numerics.special_functions import Floats
from suffice.posteriors import DropoutPosterior


def perceptron(inputs: int, outputs: int, hidden: Sequence[int], rate: float) -> nn.Sequential:
    """Plain layers: ``linear - relu - dropout`` for each hidden width, then ``linear``."""
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(rate)]
        inputs = width
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(inputs, outputs))


def mnist_network(outputs: int, rate: float) -> nn.Sequential:
    """The paper's network for images of 28 x 28: two convolutions, each dropped by channel, and two plain layers.

    Reference: [IshibashiHino2021] section 6.1; the network of [Kirsch2019].
    """
    return nn.Sequential(
        nn.Conv2d(1, 32, 5),
        nn.Dropout2d(rate),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 5),
        nn.Dropout2d(rate),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(1024, 128),
        nn.Dropout(rate),
        nn.ReLU(),
        nn.Linear(128, outputs),
    )


def widened(module: nn.Sequential, places: Sequence[int], outputs: int) -> nn.Sequential:
    """The same network with more outputs: what it has learned stays, the new outputs start as at the beginning.

    Args:
        module: One of the networks above.
        places: Where its outputs stand among the new ones.
        outputs: Number of outputs from now on.
    """
    old: Any = module[-1]
    head = nn.Linear(old.in_features, outputs, device=old.weight.device)
    with torch.no_grad():
        # With one class there is a second output that stands for none.
        head.weight[list(places)] = old.weight[: len(places)]
        head.bias[list(places)] = old.bias[: len(places)]
    return nn.Sequential(*list(module)[:-1], head)


#: Shapes of one row that the networks known by name take.
SHAPES = {"mnist": (1, 28, 28)}


@dataclass(frozen=True)
class Plan:
    """Settings for running a network.

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
    autocast: "torch.dtype | None"
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

    def posterior(self, sigma: float) -> DropoutPosterior:
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
        """State that training and :meth:`widen` change."""
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


def device_of(model: Any) -> torch.device:
    """Device of a model: the given one, or a GPU if there is one.

    Raises:
        InvalidValueError: There is no such device.
    """
    try:
        device = torch.device(model.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except (RuntimeError, TypeError) as error:
        raise InvalidValueError(f"device must be a name that torch knows, such as cpu or cuda: {error}") from None
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError):
        raise InvalidValueError(
            f"device is {model.device!r}, which torch does not find here; use device='cpu'"
        ) from None
    return device


def new_machine(model: Any, inputs: Floats, labels: Any) -> tuple[Machine, Any]:
    """A network that has learned nothing, and the classes that it tells apart.

    Args:
        model: The estimator.
        inputs: Rows to learn from.
        labels: Their classes, or all classes there are.

    Raises:
        InvalidValueError: A module that does not fit the classes or the approximation.
    """
    by_name = isinstance(model.network, str)
    plan = _plan(model, SHAPES.get(model.network) if by_name else None)
    if by_name:
        classes = known_classes(model, labels, 0)
        size = (int(np.prod(inputs.shape[1:])), max(2, len(classes)))
        hidden = sizes(model.hidden, "hidden")
        module: Any = network_by_name(model.network, size, hidden, float(model.dropout), plan.seed)
        machine = Machine(module, plan, inputs)
    else:
        machine = Machine(copy.deepcopy(model.network).float(), plan, inputs)
        classes = known_classes(model, labels, machine.structure.outputs)
    of_last_layer = model.approximation == "last-layer"
    if not of_last_layer and not machine.structure.dropped:
        raise InvalidValueError(
            "network has no dropout layer, so every draw would be the same; add torch.nn.Dropout before a layer, or "
            "use approximation='last-layer'"
        )
    if of_last_layer and not machine.structure.head:
        raise InvalidValueError("network does not end in a plain (linear) layer; use approximation='dropout'")
    return machine, classes


def known_classes(model: Any, labels: Any, outputs: int) -> Any:
    """The classes, sorted; a module of the user's own tells apart as many as it has ``outputs``.

    Raises:
        InvalidValueError: There are not as many.
    """
    seen = np.unique(labels if model.classes is None else np.asarray(model.classes))
    if isinstance(model.network, str):
        return seen
    if model.classes is None and seen.dtype.kind in "iu" and seen[0] >= 0 and seen[-1] < outputs:
        return np.arange(outputs)
    if len(seen) == outputs:
        return seen
    raise InvalidValueError(
        f"network has {outputs} outputs, but there are {len(seen)} classes; give classes=[...] with one for each "
        "output, in their order"
    )


def _plan(model: Any, shape: tuple[int, ...] | None) -> Plan:
    device = device_of(model)
    mixed = model.precision == "bfloat16" or (model.precision == "auto" and device.type == "cuda")
    autocast = torch.bfloat16 if mixed else None
    if model.input_shape is not None:
        shape = sizes(model.input_shape, "input_shape")
    return Plan(
        shape=shape,
        device=device,
        autocast=autocast,
        recipe=Recipe(model.epochs, model.batch_size, model.train_samples, autocast),
        learning_rate=float(model.learning_rate),
        weight_decay=float(model.weight_decay),
        keep_optimizer=bool(model.keep_optimizer),
        seed=int(model.seed),
    )
