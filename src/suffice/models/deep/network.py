"""A network with dropout as a Bayesian model."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from suffice.arguments import whole
from suffice.models.deep.network_posterior import (
    is_of_last_layer,
    last_layer_after,
    last_layer_before_and_after,
    posterior_log_draws,
)
from suffice.models.deep.network_settings import check_settings, require_row_shape, require_torch
from suffice.models.deep.network_training import add_classes, train_round, unchanged_on_failure
from suffice.models.inputs import as_labels, prediction_inputs, training_inputs
from suffice.models.logistic import class_labels
from suffice.models.predictive import exponentials
from suffice.numerics import Floats

__all__ = ["DropoutNetwork", "require_torch"]


class DropoutNetwork(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A classifier with dropout, whose masks are draws of a posterior over its weights.

    Each unit of a layer is kept with probability ``p``, and its weights are ``N(m, sigma^2 I)`` if so and
    ``N(0, sigma^2 I)`` if not. With the same ``p`` and ``sigma`` before and after a training,

    .. math:: \mathrm{KL} \le \sum_l \frac{1}{2 \sigma_l^2}
              \left\{ p_l \|M_l - M'_l\|_F^2 + \|\nu_l - \nu'_l\|^2 \right\}.

    This measures how much the training has changed the weights, not the information in the labels. With further
    training after convergence, or with steps of a fixed size, it does not approach 0. The posterior of the last layer
    (``approximation="last-layer"``) does not have this problem: it is the Laplace posterior of softmax regression on
    the present features, which are the same before and after the labels.

    Args:
        network: ``"mlp"`` (linear layers, for tables), ``"mnist"`` (the paper's, for images of 28 x 28), or any
            ``torch.nn.Module`` with dropout layers that returns class scores. A module is copied, and training starts
            from its weights.
        hidden: Widths of the hidden layers of ``"mlp"``.
        dropout: Probability of dropping a unit, for networks given by name.
        input_shape: Shape of one row, if the network does not take the rows of a table.
        classes: All classes, if known beforehand. For your own module: one for each output, in their order.
        epochs: Number of epochs of :meth:`fit`.
        warm_epochs: Number of epochs of :meth:`observe`, over all labels and from the present weights; the same as
            ``epochs`` by default. Rounds are comparable only if they are trained in the same way.
        batch_size: Number of labels in a training step. None for all labels, so that a round has the same number of
            steps at the end of a run as at its start.
        learning_rate: Step size of Adam.
        weight_decay: Weight decay of Adam.
        keep_optimizer: Whether Adam's running averages are kept from one training to the next.
        train_samples: Number of dropout draws whose logits are averaged in the training loss.
        samples: Number of posterior draws of a prediction.
        approximation: ``"dropout"``, or ``"last-layer"`` for the Laplace posterior of the last layer.
        sigma: Deviation of every weight about its mean, in the dropout posterior.
        alpha: For the last layer, the inverse of the prior variance of a logit (see
            :func:`~suffice.models.deep.trained_module.last_layer`); None to learn the prior from the labels.
        device: PyTorch device, such as ``cuda:0``; by default a GPU if there is one, else the CPU.
        precision: ``"float32"``; ``"bfloat16"`` for mixed precision; ``"auto"`` for that on a GPU.
        seed: Seed of weights, training and masks. On a CPU the same seed repeats a run exactly.

    Attributes:
        classes_: The classes, sorted.
        module_: The trained module.
        layers_: Names of the layers, in the order in which :attr:`posterior` holds them.
        losses_: Mean training loss of each epoch of the last training.
        rounds_: Number of trainings so far.

    Reference: [IshibashiHino2021] section 5.2, model 4; [GalGhahramani2016] section 3.

    Examples:
        >>> X = np.random.default_rng(0).normal(size=(60, 2)); y = X[:, 0] > 0
        >>> model = DropoutNetwork(hidden=(16,), epochs=40, device="cpu").fit(X[:50], y[:50])
        >>> model.sample_proba(X, 5).shape
        (60, 5, 2)
        >>> model.observe(X[50:], y[50:]).posterior
        DropoutPosterior(layers=(DropoutLayer(16x2, keep=1, sigma=1), DropoutLayer(2x16, keep=0.5, sigma=1)))
    """

    X_: Floats
    y_: Any
    classes_: Any
    machine_: Any
    losses_: list[float]
    rounds_: int

    def __init__(  # noqa: PLR0913 - an estimator's settings are its parameters
        self,
        network: Any = "mlp",
        *,
        hidden: Any = (128,),
        dropout: float = 0.5,
        input_shape: Any = None,
        classes: Any = None,
        epochs: int = 20,
        warm_epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float = 3e-3,
        weight_decay: float = 0.0,
        keep_optimizer: bool = True,
        train_samples: int = 1,
        samples: int = 20,
        approximation: str = "dropout",
        sigma: float = 1.0,
        alpha: float | None = 0.1,
        device: str | None = None,
        precision: str = "auto",
        seed: int = 0,
    ) -> None:
        self.network = network
        self.hidden = hidden
        self.dropout = dropout
        self.input_shape = input_shape
        self.classes = classes
        self.epochs = epochs
        self.warm_epochs = warm_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.keep_optimizer = keep_optimizer
        self.train_samples = train_samples
        self.samples = samples
        self.approximation = approximation
        self.sigma = sigma
        self.alpha = alpha
        self.device = device
        self.precision = precision
        self.seed = seed

    def check(self) -> None:
        """Raise an error that names the parameter, if a parameter is invalid.

        Raises:
            MissingExtraError: torch is not installed.
            InvalidValueError: A parameter out of range.
        """
        check_settings(self)

    def fit(self, X: Any, y: Any) -> Self:
        """Train from the start, forgetting earlier labels.

        Args:
            X: Inputs, ``n x D`` or ``n x ...``.
            y: Classes, ``n``.

        Returns:
            The model.

        Raises:
            TrainingDivergedError: The loss is not finite any more.
        """
        self.check()
        with self.unless_it_fails():
            inputs, given = training_inputs(self, X, as_labels(y), dtype=np.float32)
            labels = class_labels(given, self.classes)
            from suffice.models.deep.trained_module import new_machine

            machine, classes = new_machine(self, inputs, labels)
            self.X_, self.y_, self.classes_, self.machine_, self.rounds_ = inputs, labels, classes, machine, 0
            train_round(self, self.epochs)
            self.__dict__.pop("_last_layer", None)
        return self

    def observe(self, X: Any, y: Any) -> Self:
        """Add labels and continue training from the present weights: ``warm_epochs`` epochs on all labels.

        Args:
            X: Inputs of the new labels.
            y: The new labels.

        Returns:
            The model.

        Raises:
            TrainingDivergedError: The loss is not finite any more; the model is unchanged.
        """
        if not hasattr(self, "machine_"):
            return self.fit(X, y)
        self.check()
        inputs, given = training_inputs(self, X, as_labels(y), reset=False, dtype=np.float32)
        require_row_shape(self, inputs)
        with self.unless_it_fails():
            self.prepare(given)
            everything = np.concatenate([self.y_, class_labels(given, self.classes)])
            self.learn(np.concatenate([self.X_, inputs]), everything)
        return self

    def unless_it_fails(self) -> AbstractContextManager[None]:
        """Undo all changes of the model if the block does not complete, also after an interrupt."""
        return unchanged_on_failure(self)

    def prepare(self, y: Any) -> None:
        """Add outputs for new classes; nothing is trained.

        Raises:
            InvalidValueError: The network has no output for a class.
        """
        if add_classes(self, class_labels(as_labels(y), self.classes)):
            self.__dict__.pop("_last_layer", None)

    def learn(self, X: Floats, y: Any) -> None:
        """Train one round on these labels, which are all labels."""
        self.X_, self.y_ = X, y
        train_round(self, self.epochs if self.warm_epochs is None else self.warm_epochs)
        self.__dict__.pop("_last_layer", None)

    def state(self) -> dict[str, Any]:
        """Return everything that training changes, for :meth:`restore`."""
        check_is_fitted(self, "machine_")
        return {
            "machine": self.machine_.state(),
            "classes": self.classes_.tolist(),
            "rounds": self.rounds_,
            "losses": list(self.losses_),
        }

    def restore(self, X: Any, y: Any, state: Mapping[str, Any]) -> Self:
        """Restore the result of :meth:`state`; ``X`` and ``y`` are all labels at that time."""
        self.check()
        from suffice.models.deep.trained_module import new_machine

        inputs, given = training_inputs(self, X, as_labels(y), dtype=np.float32)
        labels, classes = class_labels(given, self.classes), np.asarray(state["classes"])
        machine, _ = new_machine(self, inputs, classes)
        machine.restore(state["machine"])
        self.X_, self.y_, self.classes_, self.machine_ = inputs, labels, classes, machine
        self.rounds_, self.losses_ = int(state["rounds"]), list(state["losses"])
        self.__dict__.pop("_last_layer", None)
        return self

    @property
    def module_(self) -> Any:
        """The trained module."""
        check_is_fitted(self, "machine_")
        return self.machine_.module

    @property
    def layers_(self) -> list[str]:
        """Names of the layers of the posterior."""
        check_is_fitted(self, "machine_")
        return [layer.name for layer in self.machine_.structure.layers]

    @property
    def n_labels_(self) -> int:
        """Labels learned from."""
        return len(self.y_)

    @property
    def posterior(self) -> Any:
        """The posterior: of all weights by dropout, or of the last layer by Laplace's approximation."""
        check_is_fitted(self, "machine_")
        return self.last_layer().posterior() if is_of_last_layer(self) else self.machine_.posterior(float(self.sigma))

    def last_layer(self) -> Any:
        """The Laplace posterior of the last layer on the present features, after all labels."""
        check_is_fitted(self, "machine_")
        if "_last_layer" not in self.__dict__:
            self._last_layer = self.last_layer_at(len(self.y_))
        return self._last_layer

    def last_layer_at(self, n: int) -> Any:
        """Return the Laplace posterior of the last layer after the first ``n`` labels only, on the present features."""
        return last_layer_after(self, n)

    def last_layer_pair(self, n: int) -> tuple[Any, Any]:
        """Return the last layer's posteriors after the first ``n`` labels and after all, on the present features."""
        # Not stored as the posterior of the model, which must not depend on the batches in which labels were added:
        # a resumed run does not repeat these batches.
        return last_layer_before_and_after(self, n)

    def sample_proba(self, X: Any, k: int | None = None, *, seed: int | None = None) -> Floats:
        """Class probabilities under draws of the posterior; one draw is one network for all rows.

        Args:
            X: Inputs, ``N x D`` or ``N x ...``.
            k: Number of draws; ``samples`` if left out.
            seed: Seed of the draws; that of the model if left out.

        Returns:
            ``N x k x C``.
        """
        check_is_fitted(self, "machine_")
        rows = prediction_inputs(self, X, dtype=np.float32)
        require_row_shape(self, rows)
        inputs = self.machine_.tensor(rows)
        draws = self.samples if k is None else whole(k, "k", least=1)
        logs = self.log_draws(inputs, draws, self.seed if seed is None else whole(seed, "seed", least=0))
        probabilities = exponentials(logs)
        return np.asarray(probabilities if isinstance(probabilities, np.ndarray) else probabilities.cpu().numpy())

    def log_draws(self, inputs: Any, draws: int, seed: int) -> Any:
        """Log probabilities under draws of the posterior, ``N x k x C``: an array or a tensor on the device.

        Args:
            inputs: Rows as a tensor.
            draws: Number of draws.
            seed: Seed of the draws.
        """
        return posterior_log_draws(self, inputs, draws, seed)

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, averaged over ``samples`` draws, ``N x C``."""
        averages = self.sample_proba(X).astype(np.float64).mean(axis=1)
        return np.asarray(averages / averages.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> Any:
        """Predict classes, ``N``."""
        check_is_fitted(self, "machine_")
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]
