"""The backend of dropout networks: rounds of labels, each learned by continued training."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from suffice.acquisition import Indices
from suffice.divergence import KLPair, dropout_contributions, kl
from suffice.engines.disk_rows import require_memory
from suffice.errors import TrainingDivergedError
from suffice.learner.backend import Backend, LabelHistory, RunSettings, StepResults, register_backend
from suffice.learner.network_chooser import TESTING, NetworkChooser, mask_seed
from suffice.learner.network_losses import NetworkLosses
from suffice.learner.step_inputs import CLASSIFIER_FIELDS, ClassInputCollector, SampledPredictor
from suffice.models import DropoutNetwork
from suffice.models.logistic import class_labels
from suffice.numerics import Floats
from suffice.session.recorded_steps import stacked


@register_backend(DropoutNetwork)
class NetworkBackend(Backend):
    """Learns labels by further training.

    The history cannot be computed again, because networks of earlier rounds are not stored. A corrected label is
    learned like a new label, and the divergences of earlier rounds do not change.

    Args:
        model: The network; it is not changed.
        settings: Pool, acquisition and test set.
    """

    task = "classification"
    step_fields = CLASSIFIER_FIELDS
    default_acquisition = "batchbald"
    # A network cannot leave labels out, so only random labels can calibrate its own estimate of its error.
    default_random_share = 0.2
    # Networks compute in single precision, and an image is a row of several axes.
    input_dtype = np.float32
    any_input_shape = True
    supports_checkpoints = True

    def __init__(self, model: DropoutNetwork, settings: RunSettings) -> None:
        model.check()
        self._model, self._settings = copy.deepcopy(model), settings
        self._chooser = NetworkChooser(self._model, settings)
        self._losses = NetworkLosses(self._model, settings)
        self._history = LabelHistory([], [])
        self._labels: list[Any] = []
        self._past: list[StepResults] = []
        self._collector = ClassInputCollector(settings.step_inputs, len(settings.X))
        # Classes in the order of their first labels, so that the column of a class never changes.
        self._order: list[Any] = []

    def batch(self, size: int) -> Indices:
        """Picks to be labelled together."""
        return self._chooser.batch(size)

    def skip(self, indices: Indices) -> None:
        """Exclude items."""
        self._chooser.skip(indices)
        self._collector.take(indices)

    def check(self, y: Any) -> None:
        """Raise an error for a label that is missing, or that is not one of the given classes."""
        class_labels(y, self._model.classes)

    def begin(self, indices: Indices, y: Any) -> None:
        """Train on the initial labels."""
        self.check(y)
        with self._model.unless_it_fails():
            self._trained(lambda: self._model.fit(self._settings.X[indices], y))
            _require_memory(self._model)
        self._add(indices, y, together=True)
        self._collector.begin(self._predictor(), len(indices))

    def learn(self, indices: Indices, y: Any, *, together: bool) -> StepResults:
        """Learn labels, a round of training for each step."""
        groups = [slice(0, len(indices))] if together else [slice(k, k + 1) for k in range(len(indices))]
        labels = np.asarray(y)
        for group in groups:
            self._past.append(self._round(indices[group], labels[group]))
            self._add(indices[group], labels[group], together=True)
        return StepResults.joined(self._past[-len(groups) :])

    def relearn(self) -> StepResults:
        """The unchanged history, because there is nothing to learn again."""
        return StepResults.joined(self._past)

    def correct(self, index: int, y: Any) -> StepResults:
        """Change a label and continue training; earlier rounds do not change."""
        self.check([y])
        labels = list(self._labels)
        labels[self._history.indices.index(index)] = y
        with self._model.unless_it_fails():
            self._model.prepare([y])
            self._trained(lambda: self._model.learn(self._rows(), np.asarray(labels)))
        self._labels, self._chooser.draws = labels, None
        return StepResults.joined(self._past)

    def fitted(self) -> Any:
        """The present network as an independent estimator."""
        return copy.deepcopy(self._model)

    def current_model(self) -> Any:
        """The network of this backend; valid until the next label."""
        return copy.copy(self._model)

    def watched_model(self) -> Any:
        """The network itself: a copy of its weights at every step would be too expensive."""
        return self._model

    def expected_errors(self, rows: Indices) -> tuple[Floats, Floats]:
        """The probabilities of a wrong prediction, and their reducible parts."""
        errors = self._predictor().errors(rows)
        return errors.total, errors.reducible

    def state(self) -> dict[str, Any]:
        """Everything that a checkpoint needs besides pool, labels and settings."""
        return {
            "network": self._model.state(),
            "indices": list(self._history.indices),
            "sizes": list(self._history.sizes),
            "past": [result.as_dict() for result in self._past],
            "order": list(self._order),
            "recent": self._collector.state(),
        }

    def restore(self, state: Mapping[str, Any], y: Any) -> None:
        """Continue from a saved state; ``y`` holds the labels of the whole pool."""
        indices = np.asarray(state["indices"], dtype=np.intp)
        self._model.restore(self._settings.X[indices], y[indices], state["network"])
        at = 0
        for size in state["sizes"]:
            self._add(indices[at : at + size], y[indices[at : at + size]], together=True)
            at += size
        self._past = [_with_new_names(StepResults.from_dict(part)) for part in state["past"]]
        self._order = list(state.get("order", ()))
        self._collector.begin(self._predictor(), len(indices))
        self._collector.restore(state.get("recent", ()))

    def _round(self, indices: Indices, y: Any) -> StepResults:
        model, n = self._model, len(self._labels)
        labels = class_labels(np.concatenate([np.asarray(self._labels), y]), model.classes)
        of_weights = model.approximation == "dropout"
        with model.unless_it_fails():
            self._collector.before(self._predictor(), indices)
            model.prepare(y)
            old: Any = model.posterior if of_weights else None
            self._trained(lambda: model.learn(np.concatenate([self._rows(), self._settings.X[indices]]), labels))
            # The last layer before the new labels, with the present features, so that both posteriors belong to one
            # model.
            old, new = (old, model.posterior) if of_weights else model.last_layer_pair(n)
            measures = {"loss": np.array([model.losses_[-1]])}
            if of_weights:
                measures["contributions"] = dropout_contributions(new, old)[None, :]
            pair = KLPair(np.array([float(kl(new, old))]), np.array([float(kl(old, new))]))
            result = self._losses.results(pair, measures)
            self._collector.take(indices)
            return replace(result, measures={**result.measures, **self._round_inputs(y)})

    def _round_inputs(self, y: Any) -> dict[str, Any]:
        """The step inputs of the round, besides its divergences."""
        inputs = self._settings.step_inputs
        if not inputs.names:
            return {}
        predictor = self._predictor()
        fields = self._collector.after(predictor, [self._order.index(label) for label in np.asarray(y).tolist()])
        if inputs.validation is not None and "validation_error" in inputs.names:
            fields["validation_error"] = self._losses.on_validation()
        return stacked([fields])

    def _predictor(self) -> SampledPredictor:
        """The present network, always with the same masks."""
        model = self._model
        self._order += [label for label in model.classes_.tolist() if label not in self._order]
        columns = np.searchsorted(model.classes_, np.asarray(self._order))

        def draws(rows: Indices) -> Any:
            inputs = model.machine_.tensor(self._settings.X[rows])
            return model.log_draws(inputs, model.samples, mask_seed(model, TESTING))[:, :, columns]

        return SampledPredictor(draws)

    def _trained(self, training: Any) -> None:
        try:
            training()
        except TrainingDivergedError as error:
            raise TrainingDivergedError(
                f"round {len(self._past) + bool(self._history.sizes)}: {error}. Lower learning_rate, or look for "
                "inputs that are not standardised; the network is as it was before this round"
            ) from None

    def _rows(self) -> Floats:
        return self._settings.X[self._history.indices]

    def _add(self, indices: Indices, y: Any, *, together: bool) -> None:
        self._history.add(indices, together=together)
        self._labels.extend(np.asarray(y))
        self._chooser.take(indices)
        self._collector.take(indices)


def _require_memory(model: DropoutNetwork) -> None:
    """Raise an error if the Hessian of the last layer exceeds the memory."""
    if model.approximation == "last-layer":
        width = model.machine_.features(model.machine_.tensor(model.X_[:1])).shape[1]
        weights = width * model.machine_.structure.outputs
        require_memory(4 * 8 * weights**2, f"the posterior of {weights} weights of the last layer")


def _with_new_names(result: StepResults) -> StepResults:
    """The results with the calibration error under its name; version 0.10 and older called it ``calibration``."""
    names = {"calibration": "calibration_error"}
    return replace(result, measures={names.get(name, name): values for name, values in result.measures.items()})
