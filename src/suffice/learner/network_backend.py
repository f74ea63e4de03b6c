"""The backend of dropout networks: rounds of labels, each learned by continued training."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from suffice.acquisition import Indices, bald, batchbald, entropy, label_free_chooser, margin, require_known
from suffice.acquisition.batchbald import TIE
from suffice.divergence import KLPair, dropout_contributions, kl
from suffice.engines.disk_rows import require_memory
from suffice.errors import InvalidValueError, TrainingDivergedError
from suffice.learner.backend import Backend, LabelHistory, RunSettings, StepResults, register_backend
from suffice.learner.step_inputs import CLASSIFIER_FIELDS, ClassInputCollector, SampledPredictor
from suffice.models import DropoutNetwork
from suffice.models.logistic import class_labels
from suffice.models.predictive import as_numbers, exponentials, quality
from suffice.numerics import Floats
from suffice.session.recorded_steps import stacked

_ESTIMATED: Final = {
    "dropout": "the divergence tells how far training has moved the weights, not what the labels tell",
    "last-layer": "the divergence is that of the last layer alone, and training moves the features before it too",
}
# The test error and the choice of items must use different masks.
_CHOOSING, _TESTING = 1, 2


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
        self._name = require_known(settings.acquisition, "network")
        if self._name in ("bald", "batchbald") and model.samples < 2:
            raise InvalidValueError(f"{self._name} compares draws; samples must be 2 or more, not {model.samples}")
        flat = settings.X.reshape(len(settings.X), -1)
        self._fixed = label_free_chooser(self._name, flat, settings.rng)
        self._free = np.ones(len(settings.X), dtype=bool)
        self._history = LabelHistory([], [])
        self._labels: list[Any] = []
        self._past: list[StepResults] = []
        self._pool: Any = None
        self._test: tuple[Any, Any] | None = None
        self._draws: Any = None
        self._collector = ClassInputCollector(settings.step_inputs, len(settings.X))
        # Classes in the order of their first labels, so that the column of a class never changes.
        self._order: list[Any] = []

    def batch(self, size: int) -> Indices:
        """Picks to be labelled together: by BatchBALD, or those of largest score."""
        if self._fixed is not None:
            return self._fixed.batch(size)
        rows = np.flatnonzero(self._free)
        if self._draws is None:
            self._draws = self._probabilities(rows)
        if self._name == "batchbald":
            return rows[self._joint(min(size, len(rows)))]
        score = _scores(self._draws, self._name)
        best = float(score.max(initial=0.0)) or 1.0
        # Scores that are equal up to rounding are ties; the lowest index is chosen.
        return rows[np.argsort(-np.round(score / best, 6), kind="stable")[:size]]

    def _joint(self, size: int) -> Indices:
        """A batch by BatchBALD; if no label has an information gain, by the uncertainty of the rows, then at random."""
        chosen = batchbald(self._draws, size)
        telling = chosen.indices[chosen.gains > TIE]
        if len(telling) == size:
            return telling
        others = np.setdiff1d(np.arange(len(self._draws)), telling)
        score = entropy(as_numbers(self._draws.mean(1)))[others]
        shuffled = np.random.default_rng(self._seed(_CHOOSING)).permutation(len(others))
        order = shuffled[np.argsort(-np.round(score[shuffled], 6), kind="stable")]
        return np.concatenate([telling, others[order[: size - len(telling)]]])

    def skip(self, indices: Indices) -> None:
        """Exclude items."""
        self._leave_out(indices)
        if self._fixed is not None:
            self._fixed.skip(indices)

    def check(self, y: Any) -> None:
        """Raise an error for a label that is missing, or that is not one of the given classes."""
        class_labels(y, self._model.classes)

    def begin(self, indices: Indices, y: Any) -> None:
        """Train on the initial labels."""
        self.check(y)
        with self._model.unless_it_fails():
            self._trained(lambda: self._model.fit(self._settings.X[indices], y))
            self._require_memory()
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
        self._labels, self._draws = labels, None
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
        found = self._predictor().errors(rows)
        return found.total, found.reducible

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
            result = self._judged(pair, measures)
            self._collector.take(indices)
            return replace(result, measures={**result.measures, **self._round_inputs(y)})

    def _round_inputs(self, y: Any) -> dict[str, Any]:
        """The step inputs of the round, besides its divergences."""
        inputs = self._settings.step_inputs
        if not inputs.names:
            return {}
        predictor = self._predictor()
        found = self._collector.after(predictor, [self._order.index(label) for label in np.asarray(y).tolist()])
        if inputs.validation is not None and "validation_error" in inputs.names:
            found["validation_error"] = self._error_on_validation()
        return stacked([found])

    def _error_on_validation(self) -> float:
        X, y = self._settings.step_inputs.validation or (None, None)
        known = np.isin(np.asarray(y), self._model.classes_)
        if not known.any():
            raise InvalidValueError("no class of validation has been labelled yet; give the model its classes")
        inputs = self._model.machine_.tensor(np.asarray(X)[known])
        draws = self._model.log_draws(inputs, self._model.samples, self._seed(_TESTING))
        return quality(draws, np.searchsorted(self._model.classes_, np.asarray(y)[known])).log_loss

    def _predictor(self) -> SampledPredictor:
        """The present network, always with the same masks."""
        model = self._model
        self._order += [label for label in model.classes_.tolist() if label not in self._order]
        columns = np.searchsorted(model.classes_, np.asarray(self._order))

        def draws(rows: Indices) -> Any:
            inputs = model.machine_.tensor(self._settings.X[rows])
            return model.log_draws(inputs, model.samples, self._seed(_TESTING))[:, :, columns]

        return SampledPredictor(draws)

    def _judged(self, pair: KLPair, measures: dict[str, Floats]) -> StepResults:
        estimated = _ESTIMATED[self._model.approximation]
        if self._settings.test is None:
            return StepResults(pair, np.zeros(0), estimated, measures)
        X, y = self._settings.test
        if self._test is None:
            self._test = self._model.machine_.tensor(X), np.asarray(y)
        known = np.isin(self._test[1], self._model.classes_)
        if not known.any():
            raise InvalidValueError(
                "no class of y_test has been labelled yet; give the model its classes, classes=[...]"
            )
        inputs = self._test[0] if known.all() else self._test[0][np.flatnonzero(known)]
        draws = self._model.log_draws(inputs, self._model.samples, self._seed(_TESTING))
        # The loss of an unknown class is not finite, so losses and calibration are measured on the other rows; rows of
        # unknown classes count as wrong predictions.
        found = quality(draws, np.searchsorted(self._model.classes_, self._test[1][known]))
        accuracy = found.accuracy * float(known.mean())
        measures |= {"accuracy": np.array([accuracy]), "calibration_error": np.array([found.calibration_error])}
        return StepResults(
            pair,
            np.array([found.error]),
            estimated,
            measures,
            predictive_error=np.array([found.log_loss]),
            wrong_share=np.array([1.0 - accuracy]),
        )

    def _probabilities(self, rows: Indices) -> Any:
        if self._pool is None:
            self._pool = self._model.machine_.tensor(self._settings.X)
        # New masks every round, because the same few masks would prefer the same items again.
        model = self._model
        if model.machine_.plan.device.type == "cpu":
            require_memory(8 * len(rows) * model.samples * len(model.classes_), f"{model.samples} draws of the pool")
        return exponentials(model.log_draws(self._pool[rows], model.samples, self._seed(_CHOOSING)))

    def _require_memory(self) -> None:
        """Raise an error if the Hessian of the last layer exceeds the memory."""
        model = self._model
        if model.approximation == "last-layer":
            width = model.machine_.features(model.machine_.tensor(model.X_[:1])).shape[1]
            weights = width * model.machine_.structure.outputs
            require_memory(4 * 8 * weights**2, f"the posterior of {weights} weights of the last layer")

    def _seed(self, purpose: int) -> int:
        """Seed of masks. For the choice of items it changes with the round, for the test error it does not."""
        number = self._model.rounds_ if purpose == _CHOOSING else 0
        return int(np.random.SeedSequence((self._model.seed, purpose, number)).generate_state(1)[0])

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
        self._leave_out(indices)
        if self._fixed is not None:
            self._fixed.take(indices)

    def _leave_out(self, indices: Indices) -> None:
        self._free[indices] = False
        self._collector.take(indices)
        self._draws = None


def _with_new_names(result: StepResults) -> StepResults:
    """The results with the calibration error under its name; version 0.10 and older called it ``calibration``."""
    names = {"calibration": "calibration_error"}
    return replace(result, measures={names.get(name, name): values for name, values in result.measures.items()})


def _scores(draws: Any, name: str) -> Floats:
    """Usefulness of the label of each row, from its draws."""
    if name == "bald":
        return bald(draws)
    averaged = as_numbers(draws.mean(1))
    return margin(averaged) if name == "margin" else entropy(averaged)
