"""Stopping rules for the experiments of baal, and its predictions as those of a committee."""

from typing import Any

import numpy as np

from suffice.arguments import floats, whole
from suffice.criteria import Criterion, Verdict
from suffice.errors import InvalidTypeError, InvalidValueError, MissingExtraError
from suffice.learner import StopMonitor
from suffice.numerics import Floats

__all__ = ["BaalCriterion", "committee_probabilities"]

# Tolerance of the sum of a row of probabilities, for single precision.
_SUM_TOLERANCE = 1e-3


def committee_probabilities(predictions: Any) -> Floats:
    r"""Class probabilities of a committee from predictions of baal.

    For predictions :math:`z` of ``K`` forward passes,

    .. math:: p_{ikc} = \frac{\exp z_{ick}}{\sum_{c'} \exp z_{ic'k}}.

    Predictions that are probabilities already (at least 0, with a sum of 1 over the classes) are returned unchanged.

    Args:
        predictions: ``N x C x K`` as ``ModelWrapper.predict_on_dataset`` returns them, or ``N x C`` for one pass;
            logits or probabilities.

    Returns:
        ``N x K x C``, as ``predict`` of :class:`suffice.StopMonitor` returns them.

    Raises:
        InvalidTypeError: They are not numbers.
        InvalidValueError: They have another shape, one class, or a number that is not finite.

    Examples:
        >>> import numpy as np
        >>> logits = np.zeros((5, 3, 20)); logits[:, 2] = np.log(2.0)
        >>> p = committee_probabilities(logits)
        >>> p.shape, p[0, 0].tolist()
        ((5, 20, 3), [0.25, 0.25, 0.5])
    """
    z = floats(predictions, "predictions")
    z = z[:, :, None] if z.ndim == 2 else z
    if z.ndim != 3 or 0 in z.shape or z.shape[1] < 2:
        raise InvalidValueError(
            f"predictions must be N x C x K with at least two classes, or N x C; their shape is {np.shape(predictions)}"
        )
    if not np.isfinite(z).all():
        raise InvalidValueError("predictions must be finite; one of them is NaN or infinite")
    if not ((z >= 0.0).all() and (np.abs(z.sum(axis=1) - 1.0) <= _SUM_TOLERANCE).all()):
        z = np.exp(z - z.max(axis=1, keepdims=True))
        z /= z.sum(axis=1, keepdims=True)
    return np.ascontiguousarray(z.transpose(0, 2, 1))


class BaalCriterion:
    """A stopping rule as a ``StoppingCriterion`` of baal, for ``ActiveLearningExperiment`` or a loop.

    ``should_stop`` of baal receives metrics and uncertainties, but no predictions and no labels. So this class takes
    the model too, and predicts the items that the rule requires: the forward passes with dropout are a committee. All
    state is in a :class:`suffice.StopMonitor`.

    ``ActiveLearningExperiment`` labels the next items before it asks whether to stop. The model has not learned these
    labels, so the verdict is for the labels before them. They are determined by the number of items on which
    ``ModelWrapper`` was trained.

    Args:
        active_dataset: The ``ActiveLearningDataset``. An item of the data set in it is a pair of input and class.
        model: The ``ModelWrapper`` that is trained, with dropout that is active in predictions (``patch_module`` or
            ``MCDropoutModule``).
        rule: The stopping rule; :class:`suffice.LabelWorth` with the two costs if left out.
        iterations: Number of forward passes, the size of the committee, at least 1.
        random: Items that were or will be drawn at random, as indices into the whole data set. They calibrate the
            estimate of the error if they are labelled after the first call.
        **options: Other arguments of :class:`suffice.StopMonitor`: ``label_cost``, ``mistake_cost``, ``seed``,
            ``stop_set``, ``positive``, ``control``.

    Attributes:
        monitor: The monitor.

    Raises:
        MissingExtraError: baal is not installed.
        InvalidTypeError: An argument is of another type.
        InvalidValueError: ``iterations`` is below 1, or an option is out of range.
    """

    def __init__(
        self,
        active_dataset: Any,
        model: Any,
        rule: Criterion | None = None,
        *,
        iterations: int = 20,
        random: Any = (),
        **options: Any,
    ) -> None:
        try:
            from baal import ActiveLearningDataset, ModelWrapper
        except ImportError:
            raise MissingExtraError("baal", "", "BaalCriterion") from None
        required = {"active_dataset": (active_dataset, ActiveLearningDataset), "model": (model, ModelWrapper)}
        for name, (value, kind) in required.items():
            if not isinstance(value, kind):
                raise InvalidTypeError(
                    f"{name} must be of the class {kind.__name__} of baal, not {type(value).__name__}"
                )
        self._data, self._model = active_dataset, model
        self._iterations = whole(iterations, "iterations", least=1)
        self._seed = options.get("seed", 0)
        self._random = frozenset(np.atleast_1d(np.asarray(random, dtype=np.intp)).tolist())
        # A copy of the whole data set without augmentation, as baal predicts the pool.
        self._inputs = active_dataset.pool._dataset.dataset
        # The labels that were read; a data set may read a file for each item.
        self._labels: dict[int, int] = {}
        size = len(active_dataset.labelled_map)
        self.monitor = StopMonitor(np.arange(size), rule, predict=self._predicted, **options)

    @property
    def verdict(self) -> Verdict:
        """Verdict of the last call, with its reason."""
        return self.monitor.verdict

    @property
    def verdicts(self) -> list[Verdict]:
        """Verdicts of all steps."""
        return self.monitor.verdicts

    def should_stop(self, metrics: Any = None, uncertainty: Any = None) -> bool:  # noqa: ARG002 - arguments of baal
        """Return whether the rule says stop.

        Args:
            metrics: Not used.
            uncertainty: Not used.

        Raises:
            InvalidValueError: The model was not trained on the labelled items of the data set.
            MissingInputError: The rule requires an input that the model does not provide.
        """
        items = self._learned()
        for item in items:
            if item not in self._labels:
                self._labels[item] = int(self._data.get_raw(item)[1])
        labels = [self._labels[item] for item in items]
        drawn = [item for item in items if item in self._random]
        return self.monitor.update(self._model, items, labels, random=drawn).stop

    def _learned(self) -> list[int]:
        """The items on which the model was trained: all labelled items except those labelled after the training."""
        steps = np.asarray(self._data.labelled_map, dtype=int)
        size, window = int(self._model._active_dataset_size), int(self._data.last_active_steps)
        for step in range(int(steps.max()), 0, -1):
            first = 0 if window == -1 else max(0, step - window)
            if np.count_nonzero((steps > first) & (steps <= step)) == size:
                return [int(item) for item in np.flatnonzero((steps > 0) & (steps <= step))]
        raise InvalidValueError(
            f"model was trained on {max(size, 0)} items, which are not those of active_dataset at any step; call "
            "model.train_on_dataset(active_dataset) before should_stop"
        )

    def _predicted(self, model: Any, items: Any) -> Floats:
        """Class probabilities by each forward pass for items of the whole data set."""
        import torch

        some = torch.utils.data.Subset(self._inputs, np.asarray(items).tolist())
        # The same masks for the same items, without affecting the random numbers of the training.
        with torch.random.fork_rng():
            torch.manual_seed(self._seed)
            return committee_probabilities(model.predict_on_dataset(some, self._iterations, verbose=False))
