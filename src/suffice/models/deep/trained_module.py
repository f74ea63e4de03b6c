"""Building, training, sampling and saving of the torch module of a dropout network.

Training uses the labelled rows, in batches and epochs. Samples are class probabilities under posterior draws, either by
dropout or from the Laplace posterior of the last layer.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import log_softmax
from torch import nn

from suffice.arguments import sizes
from suffice.errors import InvalidValueError, TrainingDivergedError
from suffice.models.deep.dropout_layers import (
    Masks,
    Structure,
    dropout_posterior,
    head_inputs,
    must_multiply_early,
    structure,
)
from suffice.models.laplace import laplace, learn_alpha
from suffice.models.predictive import weight_draws
from suffice.models.threads import one_thread
from suffice.numerics import Floats
from suffice.posteriors import DropoutPosterior

# Networks with fewer weights than this train faster on one thread.
_SMALL: Final = 100_000


@dataclass(frozen=True)
class Recipe:
    """Settings for training a network.

    Attributes:
        epochs: Number of epochs.
        batch_size: Number of labels in a training step; None for all.
        draws: Number of dropout draws whose logits are averaged before the loss.
        autocast: Number type of the arithmetic, or None for that of the weights.
    """

    epochs: int
    batch_size: int | None
    draws: int = 1
    autocast: "torch.dtype | None" = None


def train(
    module: torch.nn.Module, inputs: torch.Tensor, codes: torch.Tensor, *, optimizer: Any, recipe: Recipe
) -> list[float]:
    """Train a module on labelled rows, in place, with PyTorch's random generator.

    Args:
        module: Returns ``B x C`` class scores.
        inputs: ``n x ...``.
        codes: Class codes, ``n``.
        optimizer: Optimizer of the module's weights.
        recipe: Settings of the training.

    Returns:
        Mean loss of each epoch.

    Raises:
        TrainingDivergedError: The loss or a weight is not finite any more.
    """
    module.train()
    losses: list[float] = []
    for epoch in range(recipe.epochs):
        total = torch.zeros((), device=inputs.device)
        for rows in batches(len(codes), recipe.batch_size):
            optimizer.zero_grad(set_to_none=True)
            loss = _loss(module, inputs[rows], codes[rows], recipe)
            loss.backward()
            optimizer.step()
            total += loss.detach() * (len(rows) / len(codes))
        losses.append(float(total))
        if not np.isfinite(losses[-1]):
            raise TrainingDivergedError(f"the loss became {losses[-1]} in epoch {epoch + 1} of {recipe.epochs}")
    module.eval()
    with torch.no_grad():
        finite = all(bool(torch.isfinite(weights).all()) for weights in module.parameters())
        # Outputs may overflow although all weights are finite.
        if not finite or not bool(torch.isfinite(module(inputs[:2])).all()):
            raise TrainingDivergedError("a weight or an output became infinite or NaN")
    return losses


def _loss(module: torch.nn.Module, inputs: torch.Tensor, codes: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    try:
        return averaged_loss(module, inputs, codes, recipe)
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise InvalidValueError(
            "network normalises over a batch, which takes two labels at least; give more labels, or a larger batch_size"
        ) from None


def averaged_loss(module: torch.nn.Module, inputs: torch.Tensor, codes: torch.Tensor, recipe: Recipe) -> torch.Tensor:
    """Return the cross entropy of the logits averaged over dropout draws, with separate masks for each row."""
    rows = inputs if recipe.draws == 1 else inputs.repeat(recipe.draws, *[1] * (inputs.ndim - 1))
    with precision(inputs.device, recipe.autocast):
        logits = module(rows)
    return F.cross_entropy(logits.float().unflatten(0, (recipe.draws, -1)).mean(dim=0), codes)


def batches(size: int, batch_size: int | None) -> Iterator[torch.Tensor]:
    """Yield row numbers in random order, in batches; a single remaining row is added to the batch before it."""
    order = torch.randperm(size)
    if batch_size is None or batch_size >= size:
        yield order
        return
    ends = list(range(batch_size, size, batch_size))
    # Batch normalisation cannot learn from one row.
    if size - ends[-1] == 1:
        ends.pop()
    yield from torch.tensor_split(order, ends)


@contextmanager
def precision(device: torch.device, dtype: "torch.dtype | None") -> Iterator[None]:
    """Use mixed precision if a number type is given."""
    if dtype is None:
        yield
        return
    with torch.autocast(device.type, dtype=dtype):
        yield


@contextmanager
def seeded(seed: tuple[int, ...], device: torch.device) -> Iterator[None]:
    """Seed PyTorch's random generators, and restore their state afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] >> 1))
        yield


@contextmanager
def fitting_threads(module: torch.nn.Module, device: torch.device) -> Iterator[None]:
    """Use one thread for a small network on the CPU, because a second one makes it slower."""
    before = torch.get_num_threads()
    small = device.type == "cpu" and sum(weights.numel() for weights in module.parameters()) < _SMALL
    if small and before > 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if small and before > 1:
            torch.set_num_threads(before)


# Largest number of inputs of a block, over all draws: small enough for the caches of a CPU, large enough for a GPU.
_CACHED: Final = 100_000
_FILLED: Final = 25_000_000


def log_draws(
    module: torch.nn.Module, inputs: torch.Tensor, masks: Masks, *, autocast: "torch.dtype | None" = None
) -> torch.Tensor:
    """Return the log probabilities of the classes under draws of the dropout masks, the same for all rows.

    Args:
        module: In evaluation mode.
        inputs: ``N x ...``, on the module's device.
        masks: The draws, ``k`` of them.
        autocast: Number type of the arithmetic, or None for that of the weights.

    Returns:
        ``N x k x C``, float32, on the module's device.
    """
    with torch.no_grad(), fitting_threads(module, inputs.device), precision(inputs.device, autocast):
        found: torch.Tensor | None = None
        for rows in _blocks(inputs, masks.draws):
            logits = masks.forward(module, inputs[rows]).float()
            if found is None:
                found = torch.empty((len(inputs), *logits.shape[1:]), device=logits.device)
            found[rows] = torch.log_softmax(logits, dim=-1)
    assert found is not None
    return found


def features(module: torch.nn.Module, inputs: torch.Tensor) -> torch.Tensor:
    """Inputs of the last layer without dropout, ``N x J``."""
    with fitting_threads(module, inputs.device):
        return torch.cat([head_inputs(module, inputs[rows]).float() for rows in _blocks(inputs, 1)])


def _blocks(inputs: torch.Tensor, draws: int) -> Iterator[slice]:
    room = _CACHED if inputs.device.type == "cpu" else _FILLED
    size = max(8, room // (draws * inputs[0].numel()))
    for first in range(0, len(inputs), size):
        yield slice(first, first + size)


class LabelledFeatures(NamedTuple):
    """Features of the labelled rows (``n x J``), their class codes, and the number of classes."""

    rows: Floats
    codes: Any
    classes: int


def head_features(module: torch.nn.Module, inputs: torch.Tensor) -> Floats:
    """Return the inputs of the last layer after a constant column, ``N x (1 + J)``."""
    found = features(module, inputs).double().cpu().numpy()
    return np.column_stack([np.ones(len(found)), found])


@one_thread()
def last_layer(labelled: LabelledFeatures, alpha: float | None, n: int) -> Any:
    r"""Return the Laplace posterior of the last layer after the first ``n`` labels, with ``w ~ N(0, I / precision)``.

    The scale of the features grows during training. The precision is therefore
    :math:`\alpha \, \overline{|\phi|^2}`: with features of any scale, the prior variance of a logit is
    :math:`1 / \alpha` on average over the labelled rows.

    Args:
        labelled: All labels. The precision is computed from all of them, so that posteriors after different ``n`` have
            the same prior.
        alpha: Inverse of the prior variance of a logit; if None, the precision is learned by Laplace's evidence.
        n: Number of labels of the posterior.

    Reference: [MacKay1992] section 4; [Daxberger2021] section 3.
    """
    size = float(np.einsum("ij,ij->", labelled.rows, labelled.rows)) / len(labelled.rows)
    precision = learn_alpha(*labelled) if alpha is None else float(alpha) * size
    return laplace(labelled.rows[:n], labelled.codes[:n], labelled.classes, precision)


@one_thread()
def last_layer_draws(posterior: Any, rows: Floats, draws: int, seed: int) -> Floats:
    """Log probabilities of the classes under draws of the last layer's weights, ``N x k x C``."""
    found = np.stack([rows @ weights.T for weights in weight_draws(posterior, draws, seed)], axis=1)
    logits = found if found.ndim == 3 else np.stack([np.zeros_like(found), found], axis=2)
    return np.asarray(log_softmax(logits, axis=2))


def perceptron(inputs: int, outputs: int, hidden: Sequence[int], rate: float) -> nn.Sequential:
    """Return a multilayer perceptron: ``linear - relu - dropout`` for each hidden width, then ``linear``."""
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(rate)]
        inputs = width
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(inputs, outputs))


def mnist_network(outputs: int, rate: float) -> nn.Sequential:
    """Return the paper's network for images of 28 x 28: two convolutions with dropout of channels, two linear layers.

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
    """Return the network with more outputs. The weights of the old outputs are kept, those of the new ones are random.

    Args:
        module: One of the networks above.
        places: Positions of the old outputs among the new ones.
        outputs: New number of outputs.
    """
    old: Any = module[-1]
    head = nn.Linear(old.in_features, outputs, device=old.weight.device)
    with torch.no_grad():
        # With one class there is a second output that belongs to no class.
        head.weight[list(places)] = old.weight[: len(places)]
        head.bias[list(places)] = old.bias[: len(places)]
    return nn.Sequential(*list(module)[:-1], head)


#: Shapes of one row for the networks given by name.
SHAPES = {"mnist": (1, 28, 28)}


@dataclass(frozen=True)
class Plan:
    """Settings for running a network.

    Attributes:
        shape: Shape of one row, or None for rows as they are given.
        device: The device.
        autocast: Number type of the arithmetic of draws, or None.
        recipe: Settings of the training.
        learning_rate: Step size of Adam.
        weight_decay: Weight decay of Adam.
        keep_optimizer: Whether Adam's running averages are kept from one training to the next.
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
    """Return a new network with random weights; ``size`` holds the numbers of inputs and outputs."""
    with seeded((seed, 0), torch.device("cpu")):
        return mnist_network(size[1], rate) if name == "mnist" else perceptron(*size, hidden, rate)


def _on_cpu(state: Any) -> Any:
    """Return a copy with all tensors on the CPU."""
    if isinstance(state, torch.Tensor):
        return state.detach().cpu().clone()
    if isinstance(state, dict):
        return {name: _on_cpu(value) for name, value in state.items()}
    return [_on_cpu(value) for value in state] if isinstance(state, list) else state


class Machine:
    """A module with its optimizer and settings.

    Args:
        module: Returns class scores; it is moved to the device.
        plan: Settings for running it.
        example: A few rows, from which its structure is found.
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
        """Return rows on the device, in the shape that the module takes."""
        rows = np.ascontiguousarray(X, dtype=np.float32)
        if self.plan.shape is not None and rows.shape[1:] != self.plan.shape:
            wanted = int(np.prod(self.plan.shape))
            if rows[:1].size != wanted:
                raise InvalidValueError(
                    f"each row must hold {wanted} numbers, {'x'.join(map(str, self.plan.shape))}, not {rows[:1].size}"
                )
            rows = rows.reshape(len(rows), *self.plan.shape)
        # A copy, because torch would share the memory of an array that the caller may modify.
        return torch.tensor(rows, device=self.plan.device)

    def train(self, X: torch.Tensor, codes: Any, epochs: int, *, round_number: int) -> list[float]:
        """Train on labelled rows. If it fails, :meth:`put_back` restores the result of :meth:`kept`.

        Args:
            X: Labelled rows.
            codes: Class codes.
            epochs: Number of epochs.
            round_number: Number of this training; with the seed, it determines the random numbers.

        Returns:
            Mean loss of each epoch.
        """
        plan = self.plan
        trained = [weights for weights in self.module.parameters() if weights.requires_grad]
        optimizer = torch.optim.Adam(trained, lr=plan.learning_rate, weight_decay=plan.weight_decay)
        if self._averages is not None:
            # A copy, because the optimizer modifies the state that it is given.
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
        # A module may contain other random operations; they are the same for the same seed.
        with seeded((seed, 3), self.plan.device):
            return log_draws(self.module, X, Masks(draws, seed, early=self.early), autocast=self.plan.autocast)

    def features(self, X: torch.Tensor) -> Floats:
        """Inputs of the last layer, a constant first."""
        return head_features(self.module, X)

    def posterior(self, sigma: float) -> DropoutPosterior:
        """Return the present weights as a dropout posterior."""
        return dropout_posterior(self.module, self.structure.layers, sigma)

    def widen(self, places: Sequence[int], outputs: int, *, round_number: int) -> None:
        """Add outputs for more classes to a network given by name; the trained weights are kept."""
        assert isinstance(self.module, nn.Sequential)
        with seeded((self.plan.seed, 2, round_number), self.plan.device):
            self.module = widened(self.module, places, outputs).eval()
        # Adam's running averages belong to the smaller network.
        self._averages = None
        self.structure = structure(self.module, self.tensor(self._example))

    def state(self) -> dict[str, Any]:
        """Return everything that training changes."""
        return copy.deepcopy({"weights": dict(self.module.state_dict()), "averages": self._averages})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to a saved state."""
        self.module.load_state_dict(state["weights"])
        self._averages = copy.deepcopy(state["averages"])

    def kept(self) -> tuple[nn.Module, Structure, dict[str, Any]]:
        """Return the state that training and :meth:`widen` change."""
        return self.module, self.structure, self.state()

    def put_back(self, kept: tuple[nn.Module, Structure, dict[str, Any]]) -> None:
        """Undo all changes since :meth:`kept`."""
        self.module, self.structure, state = kept
        self.restore(state)

    def __getstate__(self) -> dict[str, Any]:
        # Pickled on the CPU, so that it can be loaded on a machine without a GPU.
        state = dict(self.__dict__)
        state["module"] = copy.deepcopy(self.module).cpu()
        state["_averages"] = _on_cpu(self._averages)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.module = self.module.to(self.plan.device)


def device_of(model: Any) -> torch.device:
    """Return the device of a model: the given one, or by default a GPU if there is one.

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
    """Return an untrained network and its classes.

    Args:
        model: The estimator.
        inputs: Rows to learn from.
        labels: Their classes, or all classes.

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
    """Return the classes, sorted; the number of classes of a user's module is its number of ``outputs``.

    Raises:
        InvalidValueError: The numbers of classes and outputs differ.
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
