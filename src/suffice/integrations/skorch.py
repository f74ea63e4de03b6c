"""skorch networks with dropout as committees.

A ``NeuralNetClassifier`` has ``predict_proba`` and ``classes_``, so :class:`suffice.StopMonitor` can use it directly.
The function of this module adds information from dropout: the part of the error that more labels can remove.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from suffice.arguments import real, whole
from suffice.errors import InvalidTypeError, InvalidValueError, MissingExtraError
from suffice.numerics import Floats

__all__ = ["dropout_predictions"]


def dropout_predictions(members: int = 20, *, seed: int = 0, noise: float | None = None) -> Callable[[Any, Any], Any]:
    r"""A function for ``predict`` of :class:`suffice.StopMonitor` that samples a skorch network with dropout.

    Each of ``K`` passes draws masks for all dropout layers; other layers, such as batch normalisation, predict as
    usual. For a classifier the passes are a committee. For a regressor with predictions :math:`f_k`, the label has the
    mean and the variance

    .. math:: \mu_i = \frac1K \sum_k f_{ik}, \qquad s_i^2 = \sigma^2 + \frac1K \sum_k (f_{ik} - \mu_i)^2.

    Args:
        members: Number of passes ``K``, at least 2.
        seed: Seed of the masks. They are the same at each call, and the random numbers of the training do not change.
        noise: For a regressor: the standard deviation :math:`\sigma` of the noise of a label, above 0.

    Returns:
        A function of a fitted network and inputs. It returns ``N x K x C`` for a classifier and ``(N, N)``, mean and
        standard deviation, for a regressor.

    Raises:
        InvalidValueError: An argument is out of range. The function raises it for a network without dropout, and for a
            regressor without ``noise``.
        InvalidTypeError: By the function, if the model is not a skorch network.
        MissingExtraError: By the function, if skorch is not installed.

    Examples:
        >>> import numpy as np, torch
        >>> from skorch import NeuralNetClassifier
        >>> layers = torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(16, 2)
        >>> X = np.random.default_rng(0).normal(size=(80, 4)).astype(np.float32); y = (X[:, 0] > 0).astype(int)
        >>> net = NeuralNetClassifier(torch.nn.Sequential(*layers), criterion=torch.nn.CrossEntropyLoss, verbose=0)
        >>> dropout_predictions(members=5)(net.fit(X, y), X).shape
        (80, 5, 2)
    """
    size, start = whole(members, "members", least=2), whole(seed, "seed", least=0)
    sigma = None if noise is None else real(noise, "noise", "above 0", lambda x: x > 0.0)

    def predict(net: Any, X: Any) -> Any:
        passes = _sampled(net, X, size, start)
        if hasattr(net, "classes_"):
            return passes
        if sigma is None:
            raise InvalidValueError(
                f"{type(net).__name__} predicts numbers; give dropout_predictions noise=, the standard deviation of "
                "the noise of a label"
            )
        values = passes[:, :, 0]
        return values.mean(axis=1), np.sqrt(sigma**2 + values.var(axis=1))

    return predict


def _sampled(net: Any, X: Any, members: int, seed: int) -> Floats:
    """Predictions of several passes with dropout, ``N x K x C``."""
    try:
        import torch
        from skorch import NeuralNet
    except ImportError:
        raise MissingExtraError("skorch", "", "dropout_predictions") from None
    if not isinstance(net, NeuralNet):
        raise InvalidTypeError(f"model must be a skorch network, not {type(net).__name__}")
    layers = [layer for layer in net.module_.modules() if isinstance(layer, torch.nn.modules.dropout._DropoutNd)]
    if not any(layer.p > 0.0 for layer in layers):
        raise InvalidValueError(
            f"the module of {type(net).__name__} has no dropout layer; use StopMonitor without predict="
        )
    # predict_proba computes the probabilities, because its transformation of the outputs depends on the loss.
    predicted = net.predict_proba if hasattr(net, "classes_") else net.predict
    active = [layer.register_forward_pre_hook(_switched_on) for layer in layers]
    try:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            passes = [np.asarray(predicted(X), dtype=np.float64) for _ in range(members)]
    finally:
        for hook in active:
            hook.remove()
        net.module_.eval()
    return np.stack([each.reshape(len(each), -1) for each in passes], axis=1)


def _switched_on(layer: Any, _: Any) -> None:
    """Draw masks in this layer, also during predictions."""
    layer.train()
