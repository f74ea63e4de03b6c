"""The inputs of a stopping rule other than divergences: which of them a loop provides, and how they are computed.

The stop set is drawn once. It contains the items on which rules observe the model's predictions.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit

from suffice.acquisition import Indices, bald, class_scores
from suffice.arguments import distinct, real, whole
from suffice.criteria import Criterion, committee_agreement
from suffice.criteria.prediction_statistics import POOL_FIELDS, entropies, likeliest, pool_statistics, selected_losses
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.models.predictive import as_numbers, exponentials, hermite, moderated_logits, probabilities, weight_draws
from suffice.numerics import Floats
from suffice.session.recorded_steps import STEP_FIELDS
from suffice.session.session_labels import RULE_ITEMS, sampled_items


@dataclass(frozen=True, eq=False)
class StopSet:
    r"""A fixed random sample of the pool, drawn once before labelling starts. It never becomes smaller.

    Rules compare predictions for the same items before and after a label. An item that gets a label stays in the set.

    Attributes:
        indices: Which items of the pool, ascending.
        pool_size: How many items the pool had when it was drawn.

    Reference: [BloodgoodVijayShanker2009], the stop set.

    Examples:
        >>> stop_set = StopSet.draw(10_000, seed=0)
        >>> len(stop_set), round(stop_set.kappa_error(0.99), 4)
        (2000, 0.0028)
    """

    indices: Indices
    pool_size: int

    @classmethod
    def draw(cls, pool: Any, size: int = 2000, *, seed: int = 0, clusters: int | None = None) -> "StopSet":
        """Draw a stop set.

        Args:
            pool: Number of items, or their inputs, ``m x D``.
            size: How many; all of a smaller pool.
            seed: Seed of the drawing.
            clusters: Draw from this many clusters of the inputs (k-means), from each in proportion to its size: a rare
                kind of item is then not missed by chance. This requires the inputs.

        Raises:
            InvalidValueError: An argument that cannot be used.
        """
        rng = np.random.default_rng(whole(seed, "seed", least=0))
        counted = isinstance(pool, int | np.integer) and not isinstance(pool, bool)
        total = whole(pool, "pool", least=1) if counted else _rows(pool)
        wanted = min(whole(size, "size", least=1), total)
        if clusters is None:
            return cls(np.sort(rng.permutation(total)[:wanted]), total)
        if counted:
            raise InvalidValueError("clusters are those of the inputs: give the inputs as pool, not their number")
        groups = _clustered(pool, min(whole(clusters, "clusters", least=1), total), rng)
        chosen = [
            rng.permutation(np.flatnonzero(groups == group))[:count] for group, count in _shares(groups, wanted).items()
        ]
        return cls(np.sort(np.concatenate(chosen)), total)

    def __post_init__(self) -> None:
        items, total = np.asarray(self.indices), whole(self.pool_size, "pool_size", least=1)
        good = items.ndim == 1 and len(items) and items.dtype.kind in "iu" and distinct(items)
        if not good or items.min() < 0 or items.max() >= total:
            raise InvalidValueError(f"indices must be different items of the pool, from 0 to {total - 1}")
        frozen = np.sort(items.astype(np.intp))
        frozen.setflags(write=False)
        object.__setattr__(self, "indices", frozen)

    def __len__(self) -> int:
        return len(self.indices)

    def __repr__(self) -> str:
        return f"StopSet({len(self)} of {self.pool_size} items)"

    def kappa_error(self, kappa: float = 0.99, *, chance: float = 0.5) -> float:
        r"""Standard error of a Cohen's kappa measured on this set, as an estimate of that of the whole pool.

        With agreement by chance :math:`p_e` and observed :math:`p_o = \kappa + (1 - \kappa) p_e`, for ``S`` of ``m``
        items drawn without replacement,

        .. math:: \frac{1}{1 - p_e} \sqrt{\frac{p_o (1 - p_o)}{S}} \sqrt{\frac{m - S}{m - 1}}.

        Args:
            kappa: The kappa measured.
            chance: Agreement that two models would have by chance: one half for two classes of equal share, near 1
                for a rare class, for which kappa is less accurate.

        Reference: [Cohen1960], the standard error of kappa, and the correction for a finite population.

        Examples:
            >>> StopSet.draw(2000).kappa_error(0.99)  # the whole pool: nothing is left to chance
            0.0
        """
        measured = real(kappa, "kappa", "from -1 to 1", lambda x: -1.0 <= x <= 1.0)
        by_chance = real(chance, "chance", "from 0 and below 1", lambda x: 0.0 <= x < 1.0)
        agreed = min(max(measured + (1.0 - measured) * by_chance, 0.0), 1.0)
        left = (self.pool_size - len(self)) / max(self.pool_size - 1, 1)
        return float(np.sqrt(agreed * (1.0 - agreed) / len(self) * left) / (1.0 - by_chance))


def _rows(pool: Any) -> int:
    rows = pool.shape[0] if hasattr(pool, "shape") and len(pool.shape) else 0
    if not rows:
        raise InvalidValueError("pool must be the number of items, or a table of their inputs with at least one row")
    return int(rows)


def _clustered(inputs: Any, clusters: int, rng: np.random.Generator) -> Any:
    from sklearn.cluster import MiniBatchKMeans

    X: Any = inputs.tocsr() if issparse(inputs) else np.asarray(inputs).reshape(_rows(inputs), -1)
    values = X.data if issparse(X) else X
    if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
        raise InvalidValueError("clusters are those of the inputs, which must be finite numbers; leave clusters out")
    found = MiniBatchKMeans(clusters, random_state=int(rng.integers(2**31)), n_init=3).fit(X)
    return np.asarray(found.labels_)


def _shares(groups: Any, wanted: int) -> dict[int, int]:
    """Number of items of each group, in proportion to its size, by the largest remainders."""
    numbers, sizes = np.unique(groups, return_counts=True)
    exact = wanted * sizes / sizes.sum()
    counts = np.floor(exact).astype(int)
    rest = np.argsort(counts - exact, kind="stable")[: wanted - counts.sum()]
    counts[rest] += 1
    return dict(zip(numbers.tolist(), counts.tolist(), strict=True))


#: Fields of a step that any loop can count.
COUNTED_FIELDS: Final = frozenset({"seconds", "cost", "pool_size", "calibration", "random_labels"})
#: Fields of a step that any loop for classification can count.
CLASS_COUNT_FIELDS: Final = frozenset({"classes_seen"})
VALIDATION_FIELDS: Final = frozenset({"validation_error", "validation_labels"})
#: Losses of the selected items before their labels were learned, and the losses that the model expected.
LOSS_FIELDS: Final = frozenset({"selected_loss", "selected_expected_loss"})
SELECTED_FIELDS: Final = LOSS_FIELDS | {
    "selected_probabilities",
    "selected_labels",
    "selected_agreement",
    "selected_wrong",
}
#: Values of the fields about the pool for an empty pool.
NOTHING_LEFT: Final = {
    "pool_max_entropy": 0.0,
    "pool_uncertainty": 0.0,
    "pool_risk": 0.0,
    "pool_margin": 1.0,
    "pool_confidence_variance": 0.0,
    "pool_changes": 0,
    "pool_f": 1.0,
}
#: Fields that are a maximum or minimum over the unlabelled items.
EXTREME_FIELDS: Final = frozenset({"pool_max_entropy", "pool_margin", "pool_gain"})
_EXTREMES: Final[dict[str, Callable[[Iterable[float]], float]]] = {"pool_max_entropy": max, "pool_margin": min}
STOP_SET_FIELDS: Final = frozenset({"stop_probabilities", "stop_confidence", "stop_agreement", "expected_error"})
#: Fields about the error of unlabelled items, and the part of it that more labels could remove.
REST_FIELDS: Final = frozenset({"unlabelled_error", "reducible_error", "recent_gain", "error_scale"})
#: Fields of a step that a loop for classification can count if the positive class is given.
SCREENING_FIELDS: Final = frozenset({"relevant_found", "estimated_relevant"})
#: Fields that are computed from the probability of the positive class.
RELEVANCE_FIELDS: Final = frozenset({"expected_found", "found_variance", "expected_missed", "missed_variance"})
# The gain is measured since this share of the labels; and the minimal distance of two stored predictions, as a share.
_HALF: Final = 0.5
_KEPT_EVERY: Final = 0.02
#: Fields that :class:`ClassInputCollector` computes.
CLASSIFIER_FIELDS: Final = SELECTED_FIELDS | POOL_FIELDS | STOP_SET_FIELDS | REST_FIELDS | {"pool_gain"}
# Members of a committee: posterior draws, or passes of a network.
_MEMBERS: Final = 10
_ROWS: Final = 4096
# For expected errors: nodes of the quadrature over a logit, draws of the weights, and values in memory at a time.
_NODES: Final = 32
_ERROR_DRAWS: Final = 48
_HELD: Final = 100_000


@dataclass(frozen=True)
class StepInputs:
    """The fields that a run must provide for each step in addition to divergences.

    Attributes:
        names: Fields of a :class:`suffice.Step`.
        stop: The stop set, if a field needs it.
        validation: Inputs and labels of a validation set, if a field needs it.
    """

    names: frozenset[str] = frozenset()
    stop: Indices | None = None
    validation: tuple[Floats, Any] | None = None

    def about(self, names: Iterable[str]) -> bool:
        """Whether any of these fields is wanted."""
        return not self.names.isdisjoint(names)


NO_STEP_INPUTS: Final = StepInputs()


def requested_fields(record: "Criterion | str | Iterable[Any]", available: frozenset[str]) -> frozenset[str]:
    """Fields to record: those that one rule or several require, fields by name, or ``"all"`` available ones."""
    if isinstance(record, Criterion):
        return record.needs()
    if isinstance(record, str):
        if record == "all":
            return available
        if record not in STEP_FIELDS:
            raise InvalidValueError(
                f"record must be 'all', stopping rules, or fields of a Step; {record!r} is none of them"
            )
        return frozenset({record})
    if not isinstance(record, Iterable):
        raise InvalidValueError(f"record must be 'all', stopping rules, or fields of a Step, not {record!r}")
    return frozenset().union(*(requested_fields(part, available) for part in record))


def optional_fields(record: Any) -> frozenset[str]:
    """Optional fields of recorded rules: used if a step has them, but not required.

    Args:
        record: As for :func:`requested_fields`.
    """
    if isinstance(record, Criterion):
        return record.reads() - record.needs()
    if isinstance(record, str) or not isinstance(record, Iterable):
        return frozenset()
    return frozenset().union(*(optional_fields(part) for part in record))


def new_step_inputs(names: frozenset[str], pool_size: int, stop_set: Any, *, seed: int, validation: Any) -> StepInputs:
    """The fields that a run must provide; the stop set is drawn if a field needs it and none is given."""
    stop = None
    if names & STOP_SET_FIELDS:
        stop = stop_items(stop_set, pool_size, seed)
    return StepInputs(names, stop, validation if names & VALIDATION_FIELDS else None)


def stop_items(stop_set: Any, pool_size: int, seed: int) -> Indices:
    """Items of a stop set: the given set, or a set drawn with the given size or with 2000 items.

    Raises:
        InvalidValueError: It was drawn from a pool of another size, or the size is not a whole number from 1.
    """
    if not isinstance(stop_set, StopSet):
        size = 2000 if stop_set is None else whole(stop_set, "stop_set", least=1)
        return StopSet.draw(pool_size, size, seed=seed).indices
    if stop_set.pool_size != pool_size:
        raise InvalidValueError(
            f"stop_set was drawn from a pool of {stop_set.pool_size} items, and this one has {pool_size}"
        )
    return stop_set.indices


class ClassPredictor(Protocol):
    """The current predictions of a classifier for items of the pool. The column of a class never changes."""

    def probabilities(self, rows: Indices) -> Floats:
        """Averaged class probabilities, ``n x K``."""

    def votes(self, rows: Indices, members: int) -> Any:
        """The class that each of several draws votes for, ``members x n``."""

    def gains(self, rows: Indices) -> Floats:
        """Information gain of each item's label, in nats."""

    def errors(self, rows: Indices) -> "ExpectedErrors":
        """Probability that the prediction of each item is wrong, and the part of it that more labels could remove."""


class ExpectedErrors(NamedTuple):
    r"""Errors that a posterior expects of its predictions.

    With weights ``w`` drawn from the posterior and :math:`\bar p` the average of :math:`p_w`,

    .. math:: e = 1 - \max_k \bar p_k, \qquad r = E_w[\max_k p_{w,k}] - \max_k \bar p_k \ge 0.

    With known weights the probability of an error would be :math:`e - r`, so ``r`` is the expected value of perfect
    information about the weights. It is 0 if no label can change the prediction.

    Attributes:
        total: ``e`` of each item.
        reducible: ``r`` of each item.
        probabilities: The average of :math:`p_w`, ``n x K``.
    """

    total: Floats
    reducible: Floats
    probabilities: Floats


class RecentGain:
    r"""Compares the present predictions with those at half of the labels.

    The predictions of the model at half of the labels are evaluated with the current model: with :math:`\hat y` the
    present and :math:`\hat y'` the earlier prediction, the gain is the mean of :math:`p(\hat y) - p(\hat y')` over some
    items for classes, and of :math:`(\hat y - \hat y')^2` for numbers. It estimates the decrease of the error.
    If there were no predictions at half of the labels, the gain since the first prediction is scaled up in proportion.
    """

    def __init__(self) -> None:
        self._counts: list[int] = []
        self._predictions: list[Any] = []

    def keep(self, n_labelled: int, predictions: Any) -> None:
        """Store predictions, if they can be needed later as those at half of the labels."""
        if self._counts and n_labelled - self._counts[-1] < _KEPT_EVERY * n_labelled:
            return
        # Predictions before the last one at or below half of the labels are not needed any more.
        old = max(0, bisect_right(self._counts, _HALF * n_labelled) - 1)
        del self._counts[:old], self._predictions[:old]
        self._counts.append(n_labelled)
        self._predictions.append(predictions)

    def state(self) -> list[tuple[int, list[int]]]:
        """Return the stored numbers of labels and predicted classes, for a checkpoint."""
        return [(n, np.asarray(kept).tolist()) for n, kept in zip(self._counts, self._predictions, strict=True)]

    def restore(self, state: "Sequence[tuple[int, list[Any]]]", dtype: Any = np.intp) -> None:
        """Continue from the output of :meth:`state`; ``dtype`` is float for numbers."""
        self._counts = [int(n) for n, _ in state]
        self._predictions = [np.array(kept, dtype=dtype) for _, kept in state]

    def before(self, n_labelled: int) -> "RecentGain":
        """Return a copy without predictions at this number of labels or more."""
        earlier = RecentGain()
        end = bisect_left(self._counts, n_labelled)
        earlier._counts, earlier._predictions = self._counts[:end], self._predictions[:end]
        return earlier

    def since_half(self, n_labelled: int, gain: "Callable[[Any], float]") -> float:
        """Return the gain since half of the labels.

        Args:
            n_labelled: Labels so far.
            gain: Returns the gain over earlier predictions, by the current model.
        """
        if not self._counts or self._counts[0] >= n_labelled:
            return 0.0
        at = max(0, bisect_right(self._counts, _HALF * n_labelled) - 1)
        scale = max(1.0, _HALF * n_labelled / (n_labelled - self._counts[at]))
        return max(0.0, scale * gain(self._predictions[at]))


class _Selected(NamedTuple):
    probabilities: Floats
    agreement: float | None


class ClassInputCollector:
    """Computes the wanted step inputs from a classifier's predictions for selected items, pool and stop set.

    Args:
        wanted: The wanted fields.
        size: Number of items of the pool.
    """

    def __init__(self, wanted: StepInputs, size: int) -> None:
        self._wanted, self._free = wanted, np.ones(size, dtype=bool)
        # A fixed set of items. Errors are averaged over the unlabelled items among them.
        self._looked_at: Indices | None = None
        if wanted.about(REST_FIELDS):
            self._looked_at = sampled_items(size, RULE_ITEMS["classification"])
        self._recent = RecentGain()
        self._n_labelled = 0
        # The last predictions, if their changes are wanted.
        self._predicted = np.full(size if wanted.about(POOL_FIELDS) else 0, -1)
        self._selected: _Selected | None = None

    def take(self, indices: Indices) -> None:
        """Remove items from the pool."""
        self._free[indices] = False

    def begin(self, model: ClassPredictor, n_labelled: int) -> None:
        """Store the predictions before the first step."""
        self._n_labelled = n_labelled
        if self._looked_at is not None:
            self._recent.keep(n_labelled, model.errors(self._looked_at).probabilities.argmax(axis=1))
        if self._wanted.about({"pool_changes"}):
            rows = np.flatnonzero(self._free)
            self._predicted[rows] = likeliest(_in_parts(model.probabilities, rows))

    def state(self) -> list[tuple[int, list[int]]]:
        """Return the stored earlier predictions, for a checkpoint."""
        return self._recent.state()

    def restore(self, state: "Sequence[tuple[int, list[int]]]") -> None:
        """Continue from the output of :meth:`state`."""
        if state:
            self._recent.restore(state)

    def before(self, model: ClassPredictor, indices: Indices) -> None:
        """Store the predictions for items before their labels are learned."""
        if self._wanted.about(SELECTED_FIELDS):
            p = model.probabilities(indices)
            agreed = None
            if self._wanted.about({"selected_agreement"}):
                agreed = committee_agreement(model.votes(indices, _MEMBERS), p.shape[1])
            self._selected = _Selected(p, agreed)

    def after(self, model: ClassPredictor, codes: Any) -> dict[str, Any]:
        """The wanted fields after a step whose labels are ``codes``."""
        found: dict[str, Any] = {
            **self._of_selected(codes),
            **self._of_pool(model),
            **self._of_stop_set(model),
            **self._of_rest(model, len(codes)),
        }
        return {name: value for name, value in found.items() if name in self._wanted.names}

    def _of_selected(self, codes: Any) -> dict[str, Any]:
        if self._selected is None:
            return {}
        p, agreed = self._selected
        return selected_fields(p, codes) | {"selected_agreement": agreed}

    def _of_pool(self, model: ClassPredictor) -> dict[str, Any]:
        rows = np.flatnonzero(self._free)
        fields, predicted = pool_fields(
            model, rows, self._wanted.names, self._predicted[rows] if self._predicted.size else None
        )
        if predicted is not None:
            self._predicted[rows] = predicted
        return fields

    def _of_rest(self, model: ClassPredictor, n_new: int) -> dict[str, Any]:
        self._n_labelled += n_new
        if self._looked_at is None:
            return {}
        return rest_fields(model.errors(self._looked_at), self._free[self._looked_at], self._recent, self._n_labelled)

    def _of_stop_set(self, model: ClassPredictor) -> dict[str, Any]:
        return {} if self._wanted.stop is None else stop_set_fields(model, self._wanted.stop, self._wanted.names)


def selected_fields(p: Floats, codes: Any) -> dict[str, Any]:
    """Fields about the items of a step, from their class probabilities before their labels were learned.

    Args:
        p: The probabilities, ``n x K``.
        codes: Columns of their labels; a label of a class that was unknown then has a larger number.
    """
    columns = np.asarray(codes)
    labels = np.where(columns < p.shape[1], columns, -1)
    return {"selected_probabilities": p, "selected_labels": labels, **selected_losses(p, labels)}


def pool_fields(model: ClassPredictor, rows: Indices, names: frozenset[str], before: Any) -> tuple[dict[str, Any], Any]:
    """Fields about all unlabelled items, and the columns of their predicted classes if these were computed.

    Args:
        model: Predictions of the model.
        rows: The unlabelled items.
        names: The wanted fields.
        before: Columns of the classes predicted for the same items before; None if there are none.
    """
    fields = {"pool_gain": _largest_gain(model, rows)} if "pool_gain" in names else {}
    if not names & POOL_FIELDS:
        return fields, None
    if not len(rows):
        return fields | NOTHING_LEFT, np.zeros(0, dtype=np.intp)
    p = _in_parts(model.probabilities, rows)
    if "pool_changes" not in names:
        return fields | pool_statistics(p, names), None
    predicted = likeliest(p)
    # An item without an earlier prediction has not changed.
    compared = None if before is None else np.where(before < 0, predicted, before)
    return fields | pool_statistics(p, names, compared), predicted


def pool_extremes(model: ClassPredictor, rows: Indices, names: frozenset[str]) -> dict[str, Any]:
    """Fields that are a maximum or minimum over all unlabelled items, without the predictions of all in memory.

    Args:
        model: Predictions of the model.
        rows: The unlabelled items, at least one.
        names: The wanted fields.
    """
    fields = {"pool_gain": _largest_gain(model, rows)} if "pool_gain" in names else {}
    wanted = names & _EXTREMES.keys()
    if wanted:
        parts = [pool_statistics(model.probabilities(part), wanted) for part in _parts(rows)]
        fields |= {name: _EXTREMES[name](part[name] for part in parts) for name in wanted}
    return fields


def _largest_gain(model: ClassPredictor, rows: Indices) -> float:
    return max(0.0, float(_in_parts(model.gains, rows).max(initial=0.0))) if len(rows) else 0.0


def rest_fields(errors: "ExpectedErrors", rest: Any, recent: "RecentGain", n_labelled: int) -> dict[str, Any]:
    """Fields about the error of unlabelled items and its reducible part. Stores the predictions for later steps.

    Args:
        errors: Expected errors of a fixed sample of items.
        rest: Which of them are unlabelled.
        recent: Earlier predictions for the same items.
        n_labelled: Number of labels.
    """
    p, rows = errors.probabilities, np.arange(len(errors.total))
    predicted = p.argmax(axis=1)
    gain = recent.since_half(n_labelled, lambda past: float((p[rows, predicted] - p[rows, past]).mean()))
    recent.keep(n_labelled, predicted)
    return {
        "unlabelled_error": float(errors.total[rest].mean()) if rest.any() else 0.0,
        "reducible_error": float(errors.reducible[rest].mean()) if rest.any() else 0.0,
        "recent_gain": gain,
        "error_scale": 1.0,
    }


def stop_set_fields(model: ClassPredictor, stop: Indices, names: frozenset[str]) -> dict[str, Any]:
    """Fields about the stop set.

    Args:
        model: Predictions of the model.
        stop: The items of the stop set.
        names: The wanted fields.
    """
    fields: dict[str, Any] = {}
    if names & {"stop_probabilities", "stop_confidence", "expected_error"}:
        p = _in_parts(model.probabilities, stop)
        # Half precision, as in a record, so that a rule has the same inputs in a live run and in a replay.
        fields = {"stop_probabilities": p.astype(np.float16), "stop_confidence": float(p.max(axis=1).mean())}
        # If the model is correct, the expected log loss of the averaged prediction is its entropy.
        fields["expected_error"] = float(entropies(p).mean())
    if "stop_agreement" in names:
        votes = np.concatenate([model.votes(part, _MEMBERS) for part in _parts(stop)], axis=1)
        fields["stop_agreement"] = committee_agreement(votes, model.probabilities(stop[:1]).shape[1])
    return fields


def classes_seen(first: Any, others: Any) -> NDArray[np.intp]:
    """The number of different classes among the labels at each step.

    Args:
        first: Labels before the first step.
        others: Labels of each step, ``steps x size``.

    Examples:
        >>> classes_seen(np.array(["a", "a"]), np.array([["a"], ["b"], ["a"]])).tolist()
        [1, 2, 2]
    """
    labels = np.concatenate([first, others.ravel()])
    _, met = np.unique(labels, return_index=True)
    by_label = np.cumsum(np.isin(np.arange(len(labels)), met))
    return np.asarray(by_label[len(first) - 1 + others.shape[1] * np.arange(1, len(others) + 1)], dtype=np.intp)


def relevant_estimates(relevance: Sequence[bool], random: Sequence[bool], size: int) -> Floats:
    r"""Estimates of the number of relevant items among all items, after each label, from labels drawn at random.

    A random label that is relevant (:math:`y = 1`) or not (:math:`y = 0`), drawn from :math:`M` unlabelled items when
    :math:`F` relevant ones are labelled, estimates the number as :math:`F + M y`. The result is the mean over the
    random labels so far, and at least the number of relevant labels.

    Args:
        relevance: Whether each label is relevant, in the order in which they came.
        random: Whether each was drawn at random from the unlabelled items.
        size: Number of items, labelled and unlabelled.

    Returns:
        The estimates. Before the first random label they are the numbers of relevant labels.

    Examples:
        >>> relevant_estimates([True, False, False, True], [False, True, True, False], 100).tolist()
        [1.0, 1.0, 1.0, 2.0]
        >>> relevant_estimates([True, False], [True, True], 100).tolist()
        [100.0, 50.5]
    """
    y, drawn = np.asarray(relevance, dtype=np.float64), np.asarray(random, dtype=np.float64)
    found = np.cumsum(y)
    estimates = np.cumsum(drawn * (found - y + (size - np.arange(len(y))) * y))
    return np.asarray(np.maximum(estimates / np.maximum(np.cumsum(drawn), 1.0), found))


def positive_class(positive: Any) -> Any:
    """Return the positive class as a plain value, or None.

    Raises:
        InvalidTypeError: It is neither a text nor a number.

    Examples:
        >>> positive_class(np.str_("relevant"))
        'relevant'
    """
    plain = positive.item() if hasattr(positive, "item") else positive
    if plain is not None and not isinstance(plain, str | int | float):
        raise InvalidTypeError(f"positive must be a class: a text or a number, not {plain!r}")
    return plain


def _parts(rows: Indices) -> list[Indices]:
    return [rows[k : k + _ROWS] for k in range(0, len(rows), _ROWS)]


def _in_parts(of: Callable[[Indices], Floats], rows: Indices) -> Floats:
    return np.concatenate([of(part) for part in _parts(rows)])


class LaplacePredictor(NamedTuple):
    """Predictions of a Laplace posterior on rows of features.

    Attributes:
        posterior: Of two classes or many.
        features: Of all items, ``m x J``.
        columns: Which code each column is of; -1 for a class that no label has any more, which has no probability.
            While only one class is known, a second column stands for all unknown classes.
    """

    posterior: Any
    features: Floats
    columns: list[int]

    def probabilities(self, rows: Indices) -> Floats:
        """Averaged probabilities by MacKay's formula, ``n x K``."""
        return self._columns_of(probabilities(moderated_logits(self.posterior, self.features[rows])))

    def votes(self, rows: Indices, members: int) -> Any:
        """The likeliest class for each of several draws of the weights, always with the same random numbers."""
        features = self.features[rows]
        place = np.array([self.columns.index(code) for code in range(1 + max(self.columns))])
        drawn = weight_draws(self.posterior, members)
        if drawn.ndim == 2:
            return place[(drawn @ features.T > 0.0).astype(np.intp)]
        return place[np.stack([(features @ weights.T).argmax(axis=1) for weights in drawn])]

    def gains(self, rows: Indices) -> Floats:
        """Information gain of each label (BALD)."""
        return class_scores(self.posterior, self.features[rows], "bald")

    def errors(self, rows: Indices) -> ExpectedErrors:
        """Errors of each item: for two classes by quadrature over the logit, for many by draws of the weights."""
        features = self.features[rows]
        if self.posterior.weights.ndim == 1:
            mean, variance = self.posterior.latent(features)
            nodes, weights = hermite(_NODES)
            p = expit(mean[:, None] + np.sqrt(variance)[:, None] * nodes)
            # Distances from 1/2, to avoid cancellation if both classes are equally probable.
            second = p @ weights
            known, averaged = np.abs(p - 0.5) @ weights, np.abs(second - 0.5)
            both = np.column_stack([1.0 - second, second])
            return self._by_column(ExpectedErrors(0.5 - averaged, np.maximum(known - averaged, 0.0), both))
        drawn = weight_draws(self.posterior, _ERROR_DRAWS)
        size = max(1, _HELD // (drawn.shape[0] * drawn.shape[1]))
        parts = [_weighed_errors(features[k : k + size], drawn) for k in range(0, len(features), size)]
        return self._by_column(ExpectedErrors(*map(np.concatenate, zip(*parts, strict=True))))

    def _by_column(self, errors: ExpectedErrors) -> ExpectedErrors:
        return errors._replace(probabilities=self._columns_of(errors.probabilities))

    def _columns_of(self, found: Floats) -> Floats:
        return np.column_stack([found[:, code] if code >= 0 else np.zeros(len(found)) for code in self.columns])


class SampledPredictor(NamedTuple):
    """Predictions of a network from posterior samples.

    Attributes:
        log_draws: Log probabilities of some items, ``n x draws x K``, with the same masks every time.
    """

    log_draws: Callable[[Indices], Any]

    def probabilities(self, rows: Indices) -> Floats:
        """Probabilities averaged over the draws, ``n x K``."""
        return as_numbers(exponentials(self.log_draws(rows)).mean(1))

    def votes(self, rows: Indices, members: int) -> Any:
        """The likeliest class in each of the first draws."""
        return as_numbers(self.log_draws(rows))[:, :members].argmax(axis=2).T

    def gains(self, rows: Indices) -> Floats:
        """Information gain of each label (BALD)."""
        return np.asarray(bald(exponentials(self.log_draws(rows))))

    def errors(self, rows: Indices) -> ExpectedErrors:
        """Errors of each item, by the draws."""
        return _drawn_errors(as_numbers(exponentials(self.log_draws(rows))))


def _drawn_errors(p: Floats) -> ExpectedErrors:
    """Expected errors from class probabilities under each of several draws, ``n x draws x K``."""
    mean = p.mean(axis=1)
    known, averaged = p.max(axis=2).mean(axis=1), mean.max(axis=1)
    return ExpectedErrors(1.0 - averaged, np.maximum(known - averaged, 0.0), mean)


def _weighed_errors(features: Floats, drawn: Floats) -> ExpectedErrors:
    """The same for draws of the weights of many classes, ``draws x K x J``, and features, ``n x J``."""
    odds = features @ drawn.transpose(0, 2, 1)
    odds -= odds.max(axis=2, keepdims=True)
    np.exp(odds, out=odds)
    # The largest is 1, so this is the largest probability.
    largest = 1.0 / odds.sum(axis=2)
    odds *= largest[:, :, None]
    mean = odds.mean(axis=0)
    known, averaged = largest.mean(axis=0), mean.max(axis=1)
    return ExpectedErrors(1.0 - averaged, np.maximum(known - averaged, 0.0), mean)


def bagged_votes(  # noqa: PLR0913 - all but four by keyword
    estimator: Any, X: Any, y: Any, X_new: Any, *, members: int = 10, seed: int = 0
) -> tuple[Any, int]:
    """Votes of a committee made by bagging, for :func:`suffice.criteria.committee_agreement`.

    Each member is a clone of the estimator, fitted on a bootstrap sample of the labels. The sample is drawn within each
    class, so that every member has all classes.

    Args:
        estimator: A classifier of scikit-learn's kind; it is not changed.
        X: Inputs that are labelled, ``n x D``.
        y: Their labels, of at least two classes.
        X_new: Inputs to vote on, ``m x D``.
        members: Size of the committee, at least 2.
        seed: Seed of the drawing; the same one gives committees that can be compared from step to step.

    Returns:
        The class that each member votes for, as a number from 0, ``members x m``; and the number of classes.

    Raises:
        InvalidValueError: There are fewer than two classes, or X and y do not fit.

    Reference: [TomanekWermterHahn2007], a committee of classifiers trained on parts of the labels.

    Examples:
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X, y = np.arange(20.0)[:, None], np.repeat(["a", "b"], 10)
        >>> votes, classes = bagged_votes(DecisionTreeClassifier(random_state=0), X, y, [[0.0], [19.0]], members=3)
        >>> votes.tolist(), classes
        ([[0, 1], [0, 1], [0, 1]], 2)
    """
    from sklearn.base import clone

    inputs, labels = np.asarray(X), np.asarray(y)
    classes = np.unique(labels)
    if labels.ndim != 1 or len(inputs) != len(labels) or len(classes) < 2:
        raise InvalidValueError(
            f"a committee needs one label for each of the {len(inputs)} rows of X, and two classes; y has shape "
            f"{labels.shape} and {len(classes)} class{'es' * (len(classes) != 1)}"
        )
    rng = np.random.default_rng(whole(seed, "seed", least=0))
    places = [np.flatnonzero(labels == label) for label in classes]
    votes = []
    for _ in range(whole(members, "members", least=2)):
        rows = np.concatenate([rng.choice(each, size=len(each)) for each in places])
        fitted = clone(estimator).fit(inputs[rows], labels[rows])
        votes.append(np.searchsorted(classes, fitted.predict(np.asarray(X_new))))
    return np.array(votes), len(classes)
