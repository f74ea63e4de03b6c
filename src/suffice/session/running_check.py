"""A running check: a share of the labels is requested in a random order and never learned, to bound the error."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from suffice.arguments import real
from suffice.checks import EvaluationGrid, Guarantee
from suffice.errors import InvalidValueError
from suffice.presentation.text_format import count
from suffice.saved_state import decoded_array, encoded_array, plain_value
from suffice.session.model_check import FrozenModel

if TYPE_CHECKING:
    from suffice.acquisition import Indices

# The smallest and the largest size of the sample for evaluations.
_FIRST_SIZE: Final = 30
_LAST_SIZE: Final = 480
# Products of a share and a count may be below a whole number by rounding.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, eq=False)
class RunningEvaluation:
    """One evaluation of a running check.

    Attributes:
        frozen: The model at that moment, and its predictions for all items that it had not learned.
        items: The sample: the first of these items in the random order.
        labels: Their labels; an item without one cannot be labelled, and counts as wrong.
        alpha: Error probability of this evaluation.
        confidence: Confidence of all evaluations together.
        tolerance: Largest acceptable distance between number and prediction; None for classes.

    Examples:
        >>> import suffice as sf
        >>> X = np.random.default_rng(0).normal(size=(400, 2)); y = np.where(X[:, 0] > 0.0, "right", "left")
        >>> learner = sf.ActiveLearner(sf.models.BayesianLogistic(), X, check_share=0.5, seed=0)
        >>> while len(learner.labelled) < 80:
        ...     items = learner.ask(10)
        ...     verdict = learner.tell(items, y[items])
        >>> evaluation = learner.running_check.newest
        >>> isinstance(evaluation, RunningEvaluation), len(evaluation.items)
        (True, 30)
        >>> evaluation.n_labelled < len(learner.labelled), evaluation.guarantee.value < 0.2
        (True, True)
    """

    frozen: FrozenModel
    items: tuple[int, ...]
    labels: Mapping[int, Any]
    alpha: float
    confidence: float
    tolerance: float | None = None

    @property
    def n_labelled(self) -> int:
        """Number of labels that the model had learned."""
        return self.frozen.n_labelled

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of the evaluation, for the predictions of the model at that time."""
        place = np.searchsorted(self.frozen.unlabelled, self.items)
        predicted = dict(zip(self.items, self.frozen.predictions[place].tolist(), strict=True))
        pool = len(self.frozen.unlabelled)
        stated: dict[str, Any] = {
            "alpha": self.alpha,
            "confidence": self.confidence,
            "model": self.frozen.name,
            "unlabelable": len(self.items) - len(self.labels),
        }
        if self.tolerance is not None:
            residuals = [float(label) - predicted[item] for item, label in self.labels.items()]
            return Guarantee.within(residuals, self.tolerance, pool, **stated)
        wrong = sum(bool(label != predicted[item]) for item, label in self.labels.items())
        return Guarantee.of_error(wrong, len(self.items), pool, **stated)

    def answered(self, item: int, label: Any) -> "RunningEvaluation":
        """The evaluation with a new or corrected label of an item, at the same error probability."""
        if item not in self.items:
            return self
        return replace(self, labels={**self.labels, item: label})


@dataclass(frozen=True, eq=False)
class RunningCheck:
    """The state of a running check, see :attr:`suffice.ActiveLearner.running_check`.

    Attributes:
        share: Share of the labels that are asked for in the random order.
        grid: Sizes of the sample at which the bound is computed, fixed at the start.
        sample: Labels of the sample by item, in the random order. The model has not learned them.
        size: Size of the sample that can be evaluated: items with an answer, before the first one without.
        asked: Number of labels that were asked for so far; some of them may have left the sample.
        pending: Items of the sample that were asked for and have no label yet.
        evaluations: The evaluations so far.
        about_present_model: Whether the newest evaluation is about the current model.

    Examples:
        >>> import suffice as sf
        >>> X = np.random.default_rng(0).normal(size=(400, 2)); y = np.where(X[:, 0] > 0.0, "right", "left")
        >>> learner = sf.ActiveLearner(sf.models.BayesianLogistic(), X, check_share=0.5, seed=0)
        >>> while len(learner.labelled) < 80:
        ...     items = learner.ask(10)
        ...     verdict = learner.tell(items, y[items])
        >>> check = learner.running_check
        >>> isinstance(check, RunningCheck), check.size, check.next_size
        (True, 34, 60)
        >>> check.guarantee == check.newest.guarantee
        True
    """

    share: float
    grid: EvaluationGrid
    sample: Mapping[int, Any]
    size: int
    asked: int
    pending: tuple[int, ...]
    evaluations: tuple[RunningEvaluation, ...]
    about_present_model: bool

    @property
    def newest(self) -> RunningEvaluation | None:
        """The newest evaluation, with its model; None before the first."""
        return self.evaluations[-1] if self.evaluations else None

    @property
    def guarantee(self) -> Guarantee | None:
        """The newest guarantee; None before the first evaluation."""
        return None if self.newest is None else self.newest.guarantee

    @property
    def next_size(self) -> int | None:
        """Size of the sample at the next evaluation; None after the last."""
        done = len(self.evaluations)
        return self.grid.sizes[done] if done < len(self.grid.sizes) else None

    def __str__(self) -> str:
        if self.newest is None:
            words = "Nothing is guaranteed yet."
        else:
            words = str(self.newest.guarantee)
            if not self.about_present_model:
                words += f" This is about the model at {count(self.newest.n_labelled, 'label')}, not the current one."
        if self.next_size is not None:
            words += f" The next evaluation is at a sample of {self.next_size:,}; it has {self.size:,} now."
        return words.replace("\u00a0", " ")


@dataclass
class RunningSample:
    r"""The random order, the labels of the sample, and the evaluations of a running check.

    The order is one permutation of the pool, drawn before the first label. The sample consists of the first items of
    that order, without the items that the model has learned. The learner chooses among all items that it has not
    learned, including the sample; a chosen item is removed from the sample. The learned items, and the times at which
    they were learned, depend on the labels and on the positions of the learned items in the order, and not on the order
    of the other items. So, given the learned items, every order of the other items is equally likely, and the first
    :math:`m` of them are a simple random sample.

    Attributes:
        order: The permutation.
        share: Share of the labels.
        grid: When the sample is evaluated.
        confidence: Confidence of all evaluations together.
        tolerance: For numbers, the largest error that is not wrong.
        labels: Labels of items of the sample.
        offered: Items that were asked for as items of the sample and have no answer yet.
        asked: Number of labels that came for the sample, those included that left it.
        evaluations: The evaluations so far.
    """

    order: "Indices"
    share: float
    grid: EvaluationGrid
    confidence: float
    tolerance: float | None = None
    labels: dict[int, Any] = field(default_factory=dict)
    offered: set[int] = field(default_factory=set)
    asked: int = 0
    evaluations: list[RunningEvaluation] = field(default_factory=list)

    def __post_init__(self) -> None:
        # The position of each item in the order.
        self._place = np.argsort(self.order)

    @staticmethod
    def start(
        size: int, share: Any, confidence: float, tolerance: float | None, rng: np.random.Generator
    ) -> "RunningSample":
        """The sample before the first label.

        Args:
            size: Number of items in the pool.
            share: Share of the labels, above 0 and below 1.
            confidence: Confidence of all evaluations together.
            tolerance: For numbers, the largest error that is not wrong.
            rng: Source of the permutation.

        Raises:
            InvalidValueError: The share is out of range, or the pool is too small for it.
        """
        part = real(share, "check_share", "above 0 and below 1", lambda x: 0.0 < x < 1.0)
        last = int(min(_LAST_SIZE, part * size + _ROUNDING))
        if last < 1:
            raise InvalidValueError(
                f"check_share is {part:g}, which is less than one of the {count(size, 'item')} of the pool; give a "
                "larger share"
            )
        # Rounded, because 1 - 0.95 is not exactly 0.05 in floating point.
        alpha = round(1.0 - confidence, 15)
        grid = EvaluationGrid.doubling(min(_FIRST_SIZE, last), last, alpha=alpha)
        return RunningSample(rng.permutation(size), part, grid, confidence, tolerance)

    def turns(self, size: int, paid: int) -> int:
        """Number of the next labels that belong to the sample.

        Args:
            size: Number of the next labels.
            paid: Number of labels so far, without the initial ones.
        """
        if len(self.evaluations) == len(self.grid.sizes):
            return 0
        return max(0, min(size, int(self.share * (paid + size) + _ROUNDING) - self.asked))

    def next_items(self, number: int, status: Any, others: Collection[int]) -> list[int]:
        """The next items of the sample without a label; fewer only if fewer items are left.

        Args:
            number: How many.
            status: Status of each item: 0 without a label, 1 learned, 2 skipped, 3 in the sample.
            others: Items that are not to be taken, because the learner has just chosen them.
        """
        waiting = self.order[status[self.order] == 0]
        free = [int(item) for item in waiting[: number + len(others)] if int(item) not in others]
        return free[:number]

    def prefix(self, status: Any) -> list[int]:
        """The sample so far: items in the random order before the first item without an answer."""
        rest = self.order[status[self.order] != 1]
        waiting = np.flatnonzero(status[rest] == 0)
        return [int(item) for item in (rest[: waiting[0]] if len(waiting) else rest)]

    def due(self, status: Any) -> tuple[int, ...] | None:
        """The items of the evaluation that is due now, or None."""
        done = len(self.evaluations)
        if done == len(self.grid.sizes):
            return None
        size = self.grid.sizes[done]
        if len(self.labels) + np.count_nonzero(status == 2) < size:
            return None
        found = self.prefix(status)
        return tuple(found[:size]) if len(found) >= size else None

    def evaluate(self, items: tuple[int, ...], frozen: FrozenModel) -> RunningEvaluation:
        """Compute the bound from these items, and store it."""
        known = {item: self.labels[item] for item in items if item in self.labels}
        each = self.grid.alpha_each
        found = RunningEvaluation(frozen, items, known, each, self.confidence, self.tolerance)
        self.evaluations.append(found)
        return found

    def state_dict(self) -> dict[str, Any]:
        """The sample and its evaluations as JSON values; the models of the evaluations are not saved."""
        return {
            "order": encoded_array(self.order),
            "share": self.share,
            "grid": [list(self.grid.sizes), self.grid.alpha],
            "confidence": self.confidence,
            "tolerance": self.tolerance,
            "labels": [[item, plain_value(label)] for item, label in self.labels.items()],
            "offered": sorted(self.offered),
            "asked": self.asked,
            "evaluations": [
                {
                    "frozen": evaluation.frozen.state_dict(),
                    "items": list(evaluation.items),
                    "labels": [[item, plain_value(label)] for item, label in evaluation.labels.items()],
                    "alpha": evaluation.alpha,
                }
                for evaluation in self.evaluations
            ],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "RunningSample":
        """Restore :meth:`state_dict`."""
        sizes, alpha = state["grid"]
        confidence, tolerance = state["confidence"], state["tolerance"]
        evaluations = [
            RunningEvaluation(
                FrozenModel.from_state(saved["frozen"]),
                tuple(saved["items"]),
                dict(map(tuple, saved["labels"])),
                saved["alpha"],
                confidence,
                tolerance,
            )
            for saved in state["evaluations"]
        ]
        return cls(
            order=decoded_array(state["order"]),
            share=state["share"],
            grid=EvaluationGrid(tuple(sizes), alpha),
            confidence=confidence,
            tolerance=tolerance,
            labels=dict(map(tuple, state["labels"])),
            offered=set(state["offered"]),
            asked=state["asked"],
            evaluations=evaluations,
        )

    def answered(self, item: int, label: Any) -> None:
        """Update the evaluations that contain an item with its new or corrected label."""
        self.evaluations = [each.answered(item, label) for each in self.evaluations]

    def state(self, status: Any, version: int) -> RunningCheck:
        """A copy of the state.

        Args:
            status: Status of each item.
            version: Number of times that the learner's model has changed.
        """
        last = self.evaluations[-1] if self.evaluations else None
        place = self._place
        return RunningCheck(
            share=self.share,
            grid=self.grid,
            sample={item: self.labels[item] for item in sorted(self.labels, key=place.__getitem__)},
            size=len(self.prefix(status)),
            asked=self.asked,
            pending=tuple(sorted(self.offered, key=place.__getitem__)),
            evaluations=tuple(self.evaluations),
            about_present_model=last is not None and last.frozen.version == version,
        )
