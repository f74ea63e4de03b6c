"""What a stopping rule is told about one step of labelling."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from suffice.arguments import floats, real, whole
from suffice.bounds import nonnegative
from suffice.divergence import Divergence, kl
from suffice.errors import InvalidTypeError, InvalidValueError

# Probabilities may come in half precision, and their sum is then off by so much.
_SUM: Final = 1e-2


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    r"""One step of a labelling loop, after its label (or batch of labels) has been learned from.

    Each rule names the fields it ``requires``; a loop provides those and leaves the others out. A rule of your own that
    needs another number takes it from a subclass with one more field, decorated like this class:
    ``@dataclass(frozen=True, kw_only=True, eq=False)``. Below, ``p`` is the
    predictive probability of a class, ``H`` its entropy in nats, ``K`` the number of classes; the *pool* is what is
    left to label, the *stop set* a sample of all items that was drawn once, see :class:`suffice.StopSet`.

    Args:
        n_labelled: Number of labels bought so far, the initial ones included.
        kl_new_old: ``KL[new||old]``, new and old being the posteriors after and before this step's labels.
        kl_old_new: ``KL[old||new]``.
        estimated: How the divergences were estimated, if they are neither exact nor upper bounds; else empty. A
            certificate built on an estimate says that it guarantees nothing.
        kl_prior: ``KL[new||prior]``.
        train_error: Expected error on the labels bought, as a share of the loss range, 0 to 1.
        seconds: Time spent so far.
        cost: What all labels so far have cost together.
        pool_size: Items that there were to label before the first label.
        selected_probabilities: Of the items just labelled, as the model saw them *before* it learned their labels,
            ``k x K``.
        selected_labels: Their labels, as columns of the former; -1 for a class that the model had not met.
        selected_agreement: Agreement of a committee on them before their labels were learned, 0 to 1, see
            :func:`suffice.criteria.committee_agreement`.
        selected_loss: Mean loss of the labels just bought under the model before it learned them.
        selected_expected_loss: The mean loss that the model expected of them; the same scale, whatever it is.
        pool_max_entropy: Largest ``H`` over the pool.
        pool_uncertainty: Mean of ``H / log K`` over the pool, 0 to 1.
        pool_risk: Mean of ``1 - max p`` over the pool.
        pool_margin: Least difference between the two largest ``p`` of an item over the pool; or, for a classifier
            without probabilities, the least distance ``|f|`` from its boundary.
        pool_confidence_variance: Variance of ``max p`` over the pool.
        pool_changes: Items of the pool whose predicted class is not what it was a step ago.
        pool_f: The F score that the model expects of its own predictions on the pool, see
            :func:`suffice.criteria.expected_f`.
        pool_gain: Largest information gain over the pool, in nats: what one label would tell about the model.
        pool_variance: Largest predictive variance of the latent value over the pool.
        stop_probabilities: On the stop set, ``S x K``.
        stop_confidence: Mean of ``max p`` over the stop set.
        stop_agreement: Agreement of a committee on the stop set, 0 to 1.
        expected_error: The error that the model expects of itself on the stop set, in the units of the error that
            matters to the user.
        validation_error: Error on a labelled validation set.
        validation_labels: How many labels that set has; they were paid for too.

    Raises:
        InvalidValueError: ``n_labelled`` is not a whole number of at least 0, or a field is not what it should be.
        InfiniteDivergenceError: A divergence is infinite.

    Examples:
        >>> Step(n_labelled=31, kl_new_old=0.021, kl_old_new=0.024).n_labelled
        31
    """

    n_labelled: int
    kl_new_old: float | None = None
    kl_old_new: float | None = None
    estimated: str = ""
    kl_prior: float | None = None
    train_error: float | None = None
    seconds: float | None = None
    cost: float | None = None
    pool_size: int | None = None
    selected_probabilities: NDArray[Any] | None = None
    selected_labels: NDArray[Any] | None = None
    selected_agreement: float | None = None
    selected_loss: float | None = None
    selected_expected_loss: float | None = None
    pool_max_entropy: float | None = None
    pool_uncertainty: float | None = None
    pool_risk: float | None = None
    pool_margin: float | None = None
    pool_confidence_variance: float | None = None
    pool_changes: int | None = None
    pool_f: float | None = None
    pool_gain: float | None = None
    pool_variance: float | None = None
    stop_probabilities: NDArray[Any] | None = None
    stop_confidence: float | None = None
    stop_agreement: float | None = None
    expected_error: float | None = None
    validation_error: float | None = None
    validation_labels: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_labelled", whole(self.n_labelled, "n_labelled", least=0))
        if not self.estimated:
            object.__setattr__(self, "estimated", _how_estimated((self.kl_new_old, self.kl_old_new)))
        for name, checked in _CHECKS.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, checked(value, name))
        selected, labels = self.selected_probabilities, self.selected_labels
        if selected is not None and labels is not None and len(selected) != len(labels):
            raise InvalidValueError(
                f"selected_probabilities has {len(selected)} rows and selected_labels {len(labels)} labels; one label "
                "for each row is needed"
            )
        if selected is not None and labels is not None and labels.max(initial=-1) >= selected.shape[1]:
            raise InvalidValueError(
                f"selected_labels holds {labels.max()}; selected_probabilities has columns 0 to {selected.shape[1] - 1}"
            )

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_same(getattr(self, spec.name), getattr(other, spec.name)) for spec in fields(self))

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def between(cls, old: object, new: object, *, n_labelled: int, **others: Any) -> "Step":
        """Make the step from the posteriors before and after it.

        Args:
            old: Posterior before this step's labels: anything that :func:`suffice.kl` knows.
            new: Posterior after them.
            n_labelled: Number of labels bought so far.
            others: Any other fields of the step.

        Returns:
            A step with both divergences.

        Examples:
            >>> from suffice.posteriors import Gaussian
            >>> Step.between(Gaussian(0.0, 1.0), Gaussian(0.5, 1.0), n_labelled=31).kl_new_old
            0.125
        """
        return cls(n_labelled=n_labelled, kl_new_old=kl(new, old), kl_old_new=kl(old, new), **others)

    @classmethod
    def sequence(
        cls,
        n_labelled: ArrayLike,
        kl_new_old: ArrayLike | None = None,
        kl_old_new: ArrayLike | None = None,
        *,
        estimated: str = "",
        **others: Any,
    ) -> "list[Step]":
        """Make the steps of a whole run from arrays, of which counts and divergences are checked as a whole.

        Args:
            n_labelled: Labels bought after each step.
            kl_new_old: ``KL[new||old]`` of each step.
            kl_old_new: ``KL[old||new]``.
            estimated: As for one step.
            others: Any other fields by name, one entry (number or array) a step. They are taken as they are: this is
                for runs that were recorded from checked steps.

        Returns:
            One step for each entry.

        Examples:
            >>> [step.n_labelled for step in Step.sequence([11, 12], [0.5, 0.4], [0.6, 0.4])]
            [11, 12]
        """
        counts = np.asarray(n_labelled)
        if counts.dtype.kind not in "iu" or counts.ndim != 1 or counts.min(initial=0) < 0:
            raise InvalidValueError("n_labelled must hold whole numbers, 0 or more")
        columns: dict[str, NDArray[Any]] = {"n_labelled": counts}
        for name, values in (("kl_new_old", kl_new_old), ("kl_old_new", kl_old_new)):
            if values is not None:
                columns[name] = nonnegative(values, name)
        if len({column.shape for column in columns.values()}) > 1:
            raise InvalidValueError(
                f"one entry a step is needed; the shapes are {[column.shape for column in columns.values()]}"
            )
        known = {spec.name for spec in fields(cls)}
        for name, values in others.items():
            if name not in known or len(values) != len(counts):
                raise InvalidValueError(f"{name} must be a field of {cls.__name__} with one entry for each step")
            columns[name] = np.asarray(values)
        return cls._of_columns(columns, estimated)

    @classmethod
    def _of_columns(cls, columns: "dict[str, NDArray[Any]]", estimated: str) -> "list[Step]":
        """Steps of columns that were checked, so that the constructor need not do it again for each."""
        entries = [column.tolist() if column.ndim == 1 else column for column in columns.values()]
        names, steps = tuple(columns), []
        for row in zip(*entries, strict=True):
            step = object.__new__(cls)
            step.__dict__.update(zip(names, row, strict=True), estimated=estimated)
            steps.append(step)
        return steps


def _how_estimated(divergences: tuple[float | None, ...]) -> str:
    return "; ".join(sorted({d.how for d in divergences if isinstance(d, Divergence) and d.kind == "estimate"}))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


def _divergence(value: float, name: str) -> float:
    """Return a divergence as a float, with rounding below 0 taken for 0, or say by its name what is wrong with it."""
    if isinstance(value, float) and 0.0 <= value < math.inf:
        return float(value)
    clean = nonnegative(value, name)
    if clean.ndim:
        raise InvalidTypeError(f"{name} must be one number, not an array of shape {clean.shape}")
    return float(clean)


def _count(value: Any, name: str) -> int:
    return whole(value, name, least=0)


def _amount(value: Any, name: str) -> float:
    return real(value, name, "of at least 0", lambda x: x >= 0.0)


def _number(value: Any, name: str) -> float:
    return real(value, name)


def _share(value: Any, name: str) -> float:
    # Averages of probabilities may be off by a rounding.
    return min(max(real(value, name, "from 0 to 1", lambda x: -1e-9 <= x <= 1.0 + 1e-9), 0.0), 1.0)


def _probabilities(value: Any, name: str) -> NDArray[Any]:
    kept = isinstance(value, np.ndarray) and value.dtype in (np.float16, np.float32, np.float64)
    array: NDArray[Any] = value if kept else floats(value, name)
    wanted = "a table of probabilities, one row an item and one column a class"
    if array.ndim != 2 or array.shape[1] < 1:
        raise InvalidValueError(f"{name} must be {wanted}, but its shape is {array.shape}")
    if not (array >= -1e-6).all() or not (np.abs(array.sum(axis=1, dtype=np.float64) - 1.0) < _SUM).all():
        raise InvalidValueError(f"{name} must be {wanted}: none below 0, and each row adds up to 1")
    return array


def _codes(value: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except (TypeError, ValueError):
        array = np.zeros((0, 0))
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.min(initial=0) < -1:
        raise InvalidValueError(f"{name} must hold the column of each label, whole numbers from 0 (-1: a new class)")
    return array


_CHECKS: Final[dict[str, Callable[[Any, str], Any]]] = {
    **dict.fromkeys(("kl_new_old", "kl_old_new", "kl_prior"), _divergence),
    **dict.fromkeys(("seconds", "cost", "pool_max_entropy", "pool_margin", "pool_confidence_variance"), _amount),
    **dict.fromkeys(("pool_gain", "pool_variance", "selected_loss", "selected_expected_loss"), _amount),
    **dict.fromkeys(("pool_size", "pool_changes", "validation_labels"), _count),
    **dict.fromkeys(("train_error", "selected_agreement", "pool_uncertainty", "pool_risk", "pool_f"), _share),
    **dict.fromkeys(("stop_confidence", "stop_agreement"), _share),
    **dict.fromkeys(("expected_error", "validation_error"), _number),
    **dict.fromkeys(("selected_probabilities", "stop_probabilities"), _probabilities),
    "selected_labels": _codes,
}
