"""Plans of a session for checks: how many labels a guarantee is expected to take."""

from typing import Any, NamedTuple

import numpy as np

from suffice.arguments import real
from suffice.checks import CheckPlan, GuaranteePlan, plan_recall
from suffice.checks import plan as planned_check
from suffice.checks.planner import MOST_MISSED
from suffice.errors import InvalidValueError
from suffice.models.threads import one_thread
from suffice.session.error_estimate import REST_ITEMS, CalibratedError, plan_from_estimate
from suffice.session.model_check import CheckedQuantity, SessionChecks
from suffice.session.model_view import ModelView
from suffice.session.session_estimates import SessionEstimates
from suffice.session.session_labels import SessionLabels


class RecallCost(NamedTuple):
    """Expected numbers for a check of the recall of a class.

    Attributes:
        predicted: Number of unlabelled items that are predicted as the class and count as found.
        right: Expected number of them that belong to it.
        missed: Expected number of other unlabelled items of the class.
    """

    predicted: int
    right: int
    missed: int

    @staticmethod
    def of(probable: Any, as_class: Any, scale: float, ratio: float, pool: int) -> "RecallCost":
        """The numbers from the probabilities of the class.

        Args:
            probable: Probability of the class for some unlabelled items.
            as_class: Whether each of them is predicted as the class and counts as found.
            scale: Number of unlabelled items for each of them.
            ratio: Ratio of random labels of the class to the number that the model expects, see
                :meth:`suffice.session.random_losses.RandomLabelLosses.class_ratio`.
            pool: Number of unlabelled items.
        """
        predicted = min(pool, round(scale * int(as_class.sum())))
        right = min(predicted, round(scale * ratio * float(probable[as_class].sum())))
        missed = min(pool - predicted, MOST_MISSED, round(scale * ratio * float(probable[~as_class].sum())))
        return RecallCost(predicted, right, missed)

    def plan(self, at_least: float, found: int, pool: int, *, alpha: float, probability: float) -> CheckPlan:
        """The plan of a check that guarantees a recall; see :func:`suffice.checks.plan_recall`."""
        return plan_recall(
            at_least,
            found,
            self.missed,
            pool,
            predicted=self.predicted,
            right=self.right,
            alpha=alpha,
            probability=probability,
        )


class CheckPlans:
    """Plans of the next check of a session. They assume that the estimates are correct.

    Args:
        labels: The labels.
        estimates: The estimates.
        checks: The checks so far, which determine the error probability of the next one.
    """

    def __init__(self, labels: SessionLabels, estimates: SessionEstimates, checks: SessionChecks) -> None:
        self._labels, self._estimates, self._checks = labels, estimates, checks

    def for_target(
        self, view: ModelView, target: float | None, estimate: CalibratedError | None, *, check_advised: bool
    ) -> GuaranteePlan | None:
        """The plan for a target error; None for numbers, and if there is nothing to plan."""
        if estimate is None or target is None or target >= 1.0 or not (self._estimates.share and self._labels.left):
            return None
        return self.total(view, target, estimate=estimate, check_advised=check_advised)

    def total(
        self,
        view: ModelView,
        target: float,
        *,
        tolerance: float | None = None,
        estimate: CalibratedError | None = None,
        check_advised: bool = False,
    ) -> GuaranteePlan:
        """Plan of labels and check that guarantee at most a given share of wrong predictions at the least cost.

        Skipped items can be drawn for a check, and count as wrong.

        Args:
            view: The current model.
            target: The share of wrong predictions to guarantee.
            tolerance: For numbers: a prediction is wrong if it is off by more than this.
            estimate: The estimate to plan with; that of the session if left out.
            check_advised: As for :func:`suffice.checks.plan_total`.
        """
        pool = len(self._labels.unlabelled)
        return plan_from_estimate(
            target,
            self._wrong_share(view, tolerance) if estimate is None else estimate,
            reducible=self._estimates.reducible(view, tolerance),
            n_labelled=len(self._labels.everything),
            pool=pool,
            skipped=len(self._labels.skipped) / max(pool, 1),
            alpha=self._checks.next_alpha(),
            one_class=self._estimates.share and len(self._estimates.known_classes(view)) < 2,
            check_advised=check_advised,
        )

    def size(
        self, view: ModelView, target: float, *, tolerance: float | None = None, probability: float = 0.8
    ) -> int | None:
        """Number of labels of a check that is likely to guarantee a target now; None if every item must be labelled."""
        pool, expected = len(self._labels.unlabelled), self._wrong_share(view, tolerance).value
        alpha = self._checks.next_alpha()
        return planned_check(target, expected, pool, alpha=alpha, probability=probability).labels

    def expected_share(self, view: ModelView, asked: CheckedQuantity) -> float:
        """The share of wrong predictions that a check now is expected to find; skipped items count as wrong.

        In a screening it is the share of items of the class; skipped items are not drawn.

        Args:
            view: The current model.
            asked: What the check is to guarantee.
        """
        if asked.relevant is not None:
            shares = self._estimates.relevant_shares(view).shares
            return float(shares.mean()) if len(shares) else 0.0
        tolerance = asked.tolerance
        unlabelled, skipped = len(self._labels.unlabelled), len(self._labels.skipped)
        error = min(1.0, self._wrong_share(view, tolerance).value)
        return (error * (unlabelled - skipped) + skipped) / max(unlabelled, 1)

    def _wrong_share(self, view: ModelView, tolerance: float | None) -> CalibratedError:
        """The estimated share of wrong predictions, for classes and for numbers."""
        if tolerance is None and not self._estimates.share:
            raise InvalidValueError("the model predicts numbers: give tolerance, the largest error that is not wrong")
        return self._estimates.estimate(view, tolerance=tolerance)

    def recall(
        self, view: ModelView, class_name: Any, at_least: float, *, predicted_as_found: bool, probability: float = 0.8
    ) -> CheckPlan:
        """Cost of a check of the recall of a class, before it is drawn; arguments as for the learner's method."""
        classes = self._estimates.known_classes(view)
        if class_name not in classes:
            names = ", ".join(map(repr, classes[:10]))
            raise InvalidValueError(
                f"class_name must be one of the classes that the model knows, {names}, not {class_name!r}"
            )
        real(at_least, "at_least", "above 0 and at most 1", lambda x: 0.0 < x <= 1.0)
        rest, pool = self._labels.some_unlabelled(REST_ITEMS), len(self._labels.unlabelled)
        with one_thread():
            learned, p = view.class_probabilities(rest)
            ratio = self._estimates.class_ratio(view, class_name)
        column = p[:, learned.index(class_name)] if class_name in learned else np.zeros(len(rest))
        as_class = np.zeros(len(rest), dtype=bool)
        if predicted_as_found and class_name in learned:
            as_class = p.argmax(axis=1) == learned.index(class_name)
        cost = RecallCost.of(column, as_class, pool / max(1, len(rest)), ratio, pool)
        found = sum(bool(label == class_name) for label in self._labels.everything.values())
        return cost.plan(at_least, found, pool, alpha=self._checks.next_alpha(), probability=probability)
