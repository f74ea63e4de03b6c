"""A network with dropout as a Bayesian model."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from suffice.arguments import real, sizes, whole
from suffice.errors import InvalidValueError, MissingExtraError
from suffice.models.inputs import as_labels, prediction_inputs, training_inputs
from suffice.models.logistic import class_labels
from suffice.models.predictive import exponentials
from suffice.numerics import Floats

_NAMES: Final = ("mlp", "mnist")
_APPROXIMATIONS: Final = ("dropout", "last-layer")
_PRECISIONS: Final = ("auto", "float32", "bfloat16")


class DropoutNetwork(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A classifier with dropout, whose masks are draws of a posterior over its weights.

    Each unit of a layer is kept with probability ``p``, and its weights are ``N(m, sigma^2 I)`` if so and
    ``N(0, sigma^2 I)`` if not. With the same ``p`` and ``sigma`` before and after a training,

    .. math:: \mathrm{KL} \le \sum_l \frac{1}{2 \sigma_l^2}
              \left\{ p_l \|M_l - M'_l\|_F^2 + \|\nu_l - \nu'_l\|^2 \right\}.

    That measures how far the training has moved the weights, not what the labels tell: a network that is trained on
    after it has converged, or by steps of a fixed size, never comes to rest. The posterior of the last layer
    (``approximation="last-layer"``) is a proper one: with the features of now held fixed, it is the Laplace posterior
    of softmax regression on them, before the labels and after.

    Args:
        network: ``"mlp"`` (plain layers, for tables), ``"mnist"`` (the paper's, for images of 28 x 28), or any
            ``torch.nn.Module`` that gives class scores and holds dropout layers. A module is copied, and training
            starts from its weights.
        hidden: Widths of the hidden layers of ``"mlp"``.
        dropout: Probability of dropping a unit, for networks known by name.
        input_shape: Shape of one row, if the network does not take rows as they come in a table.
        classes: All classes there are, if known beforehand; for a module of your own one for each of its outputs, in
            their order.
        epochs: Times that :meth:`fit` goes through the labels.
        warm_epochs: Times that :meth:`observe` goes through all labels, from the weights it finds; as often as
            ``epochs`` if left out. Rounds can be compared only if they are trained alike.
        batch_size: Labels to a step of training; if None all at once, so that a round is as many steps at the end of a
            run as at its start.
        learning_rate: Step size of Adam.
        weight_decay: Weight decay of Adam.
        keep_optimizer: Whether Adam's running averages live on from one training to the next.
        train_samples: Dropout draws whose logits are averaged in the training loss.
        samples: Posterior draws of a prediction.
        approximation: ``"dropout"``, or ``"last-layer"`` for the Laplace posterior of the last layer.
        sigma: Deviation of every weight about its mean, in the dropout posterior.
        alpha: For the last layer, the inverse of the prior variance of a logit (see
            :func:`~suffice.models.deep.trained_module.last_layer`); None to learn the prior from the labels.
        device: Where to run, as torch names it; a GPU if there is one, if left out.
        precision: ``"float32"``; ``"bfloat16"`` for mixed precision; ``"auto"`` for that on a GPU.
        seed: Seed of weights, training and masks. On a CPU the same seed repeats a run exactly.

    Attributes:
        classes_: The classes, sorted.
        module_: The trained module.
        layers_: Names of the layers, in the order in which :attr:`posterior` holds them.
        losses_: Mean training loss of each epoch of the last training.
        rounds_: Trainings so far.

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
        """Refuse parameters that cannot be used, by name.

        Raises:
            MissingExtraError: torch is not installed.
            InvalidValueError: A parameter out of range.
        """
        if not isinstance(self.network, require_torch().nn.Module) and self.network not in _NAMES:
            raise InvalidValueError(
                f"network must be one of {', '.join(_NAMES)}, or a torch.nn.Module, not {self.network!r}"
            )
        for name, allowed in (("approximation", _APPROXIMATIONS), ("precision", _PRECISIONS)):
            if getattr(self, name) not in allowed:
                raise InvalidValueError(f"{name} must be one of {', '.join(allowed)}, not {getattr(self, name)!r}")
        for name in ("epochs", "train_samples", "samples"):
            whole(getattr(self, name), name, least=1)
        for name in ("warm_epochs", "batch_size"):
            if getattr(self, name) is not None:
                whole(getattr(self, name), name, least=1)
        real(self.learning_rate, "learning_rate", "above 0 and at most 1e30", lambda x: 0.0 < x <= 1e30)
        real(self.sigma, "sigma", "above 0", lambda x: x > 0.0)
        real(self.weight_decay, "weight_decay", "0 or above", lambda x: x >= 0.0)
        real(self.dropout, "dropout", "above 0 and below 1", lambda p: 0.0 < p < 1.0)
        if self.alpha is not None:
            real(self.alpha, "alpha", "above 0, or None", lambda x: x > 0.0)
        sizes(self.hidden, "hidden")
        if self.input_shape is not None:
            sizes(self.input_shape, "input_shape")
        whole(self.seed, "seed", least=0)
        self._building().device_of(self)

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
            machine, classes = self._building().new_machine(self, inputs, labels)
            self.X_, self.y_, self.classes_, self.machine_, self.rounds_ = inputs, labels, classes, machine, 0
            self._train(self.epochs)
            self.__dict__.pop("_last_layer", None)
        return self

    def observe(self, X: Any, y: Any) -> Self:
        """Train on with more labels, from the weights of now: on all labels, ``warm_epochs`` times.

        Args:
            X: Inputs of the new labels.
            y: The new labels.

        Returns:
            The model.

        Raises:
            TrainingDivergedError: The loss is not finite any more; the model is as it was before.
        """
        if not hasattr(self, "machine_"):
            return self.fit(X, y)
        self.check()
        inputs, given = training_inputs(self, X, as_labels(y), reset=False, dtype=np.float32)
        self._require_shape(inputs)
        with self.unless_it_fails():
            self.prepare(given)
            everything = np.concatenate([self.y_, class_labels(given, self.classes)])
            self.learn(np.concatenate([self.X_, inputs]), everything)
        return self

    @contextmanager
    def unless_it_fails(self) -> Iterator[None]:
        """Undo all changes of the model if the block does not complete, also after an interrupt."""
        kept, machine = dict(self.__dict__), self.machine_.kept() if hasattr(self, "machine_") else None
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(kept)
            if machine is not None:
                self.machine_.put_back(machine)
            raise

    def prepare(self, y: Any) -> None:
        """Make room for classes that are new; nothing is trained.

        Raises:
            InvalidValueError: A class that the network has no output for.
        """
        labels = class_labels(as_labels(y), self.classes)
        # A class that was corrected away stays: the network has an output for it.
        everything = np.concatenate([self.classes_, labels])
        classes = self._building().known_classes(self, everything, self.machine_.structure.outputs)
        if len(classes) == len(self.classes_):
            return
        places = np.searchsorted(classes, self.classes_)
        self.machine_.widen(places, max(2, len(classes)), round_number=self.rounds_)
        self.classes_ = classes
        self.__dict__.pop("_last_layer", None)

    def learn(self, X: Floats, y: Any) -> None:
        """Train on with these labels, which are all there are: a round."""
        self.X_, self.y_ = X, y
        self._train(self.epochs if self.warm_epochs is None else self.warm_epochs)

    def _train(self, epochs: int) -> None:
        machine = self.machine_
        codes = self._outputs[np.searchsorted(self.classes_, self.y_)]
        self.losses_ = machine.train(machine.tensor(self.X_), codes, epochs, round_number=self.rounds_)
        self.rounds_ += 1
        self.__dict__.pop("_last_layer", None)

    @property
    def _outputs(self) -> Any:
        """The network's output for each class: a module's are in the order in which the classes were given."""
        given = None if isinstance(self.network, str) else self.classes
        return np.arange(len(self.classes_)) if given is None else np.argsort(np.asarray(given), kind="stable")

    def state(self) -> dict[str, Any]:
        """All that training has changed, to go on from later with :meth:`restore`."""
        check_is_fitted(self, "machine_")
        kept = {"classes": self.classes_.tolist(), "rounds": self.rounds_, "losses": list(self.losses_)}
        return {"machine": self.machine_.state(), **kept}

    def restore(self, X: Any, y: Any, state: Mapping[str, Any]) -> Self:
        """Become what :meth:`state` was taken of; ``X`` and ``y`` are all its labels."""
        self.check()
        inputs, given = training_inputs(self, X, as_labels(y), dtype=np.float32)
        labels, classes = class_labels(given, self.classes), np.asarray(state["classes"])
        machine, _ = self._building().new_machine(self, inputs, classes)
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
        return self.last_layer().posterior() if self._of_last_layer else self.machine_.posterior(float(self.sigma))

    def last_layer(self) -> Any:
        """The Laplace posterior of the last layer on the features of now, as it grows label by label."""
        check_is_fitted(self, "machine_")
        if "_last_layer" not in self.__dict__:
            self._last_layer = self.last_layer_at(len(self.y_))
        return self._last_layer

    def last_layer_at(self, n: int) -> Any:
        """The Laplace posterior of the last layer after the first ``n`` labels only, on the features of now."""
        from suffice.models.deep.trained_module import last_layer

        return last_layer(self._labelled(), self.alpha, n)

    def last_layer_pair(self, n: int) -> tuple[Any, Any]:
        """The posteriors of the last layer after the first ``n`` labels and after all, both on the features of now."""
        from suffice.models.deep.trained_module import last_layer

        labelled = self._labelled()
        state = last_layer(labelled, self.alpha, n)
        before = state.posterior()
        # Not kept as that of the model, which must not depend on the steps in which labels came: a run that is resumed
        # has not taken them.
        return before, state.extend(labelled.rows[n:], labelled.codes[n:]).posterior()

    def _labelled(self) -> Any:
        from suffice.models.deep.trained_module import LabelledFeatures

        machine = self.machine_
        codes = np.searchsorted(self.classes_, self.y_)
        return LabelledFeatures(machine.features(machine.tensor(self.X_)), codes, machine.structure.outputs)

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
        self._require_shape(rows)
        inputs = self.machine_.tensor(rows)
        draws = self.samples if k is None else whole(k, "k", least=1)
        found = self.log_draws(inputs, draws, self.seed if seed is None else whole(seed, "seed", least=0))
        probabilities = exponentials(found)
        return np.asarray(probabilities if isinstance(probabilities, np.ndarray) else probabilities.cpu().numpy())

    def log_draws(self, inputs: Any, draws: int, seed: int) -> Any:
        """Log probabilities under draws of the posterior, ``N x k x C``: an array or a tensor on the device.

        Args:
            inputs: Rows as a tensor.
            draws: Number of draws.
            seed: Seed of the draws.
        """
        if len(self.classes_) == 1:
            return np.zeros((len(inputs), draws, 1))
        if not self._of_last_layer:
            found, outputs = self.machine_.log_draws(inputs, draws, seed), self._outputs
            return found if np.array_equal(outputs, np.arange(len(outputs))) else found[:, :, outputs.tolist()]
        from suffice.models.deep.trained_module import last_layer_draws

        return last_layer_draws(self.last_layer(), self.machine_.features(inputs), draws, seed)

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, averaged over ``samples`` draws, ``N x C``."""
        found = self.sample_proba(X).astype(np.float64).mean(axis=1)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> Any:
        """Predict classes, ``N``."""
        check_is_fitted(self, "machine_")
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def _require_shape(self, inputs: Floats) -> None:
        wanted, came = self.X_.shape[1:], inputs.shape[1:]
        if wanted != came and self.input_shape is None and self.network != "mnist":
            raise InvalidValueError(
                f"each row of X must have the shape {wanted} that the model was fitted with, not {came}"
            )

    @property
    def _of_last_layer(self) -> bool:
        return bool(self.approximation == "last-layer")

    @staticmethod
    def _building() -> Any:
        """Import what needs torch, which is imported only when a network is created."""
        require_torch()
        from suffice.models.deep import trained_module

        return trained_module


def require_torch() -> Any:
    """Return torch, or say how to get it.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtraError("torch", "torch", "A dropout network") from None
    return torch
