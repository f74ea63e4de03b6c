"""Estimates of a session about the unlabelled items, from the current model and the random labels."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
from scipy.special import betaincinv

from suffice.acquisition import Indices
from suffice.arguments import whole
from suffice.errors import InvalidValueError
from suffice.models.inputs import as_labels
from suffice.models.threads import one_thread
from suffice.numerics import Floats
from suffice.session.column_estimates import column_estimate
from suffice.session.decision import Alternative, RareClass, Worsening
from suffice.session.error_estimate import (
    REST_ITEMS,
    CalibratedError,
    checked_tolerance,
    share_beyond,
    shifted_shares,
)
from suffice.session.model_comparison import better_model
from suffice.session.model_view import ModelView
from suffice.session.random_losses import RandomLabelLosses
from suffice.session.session_labels import UNLABELLED, SessionLabels

# Number of items over which the reducible part of the error is averaged.
_REDUCIBLE_ITEMS: Final = 500
# Maximal number of unread items whose probabilities a plan of a screening uses. The likeliest of them matter, so that
# there are more than for other estimates.
_RANKED_ITEMS: Final = 20_000
# The last items that were read in order count: this share of all that were read, and at least so many.
_RECENT_SHARE: Final = 0.1
_FEWEST_RECENT: Final = 20
# The probabilities of the model count as one of these items.
_PRIOR_ITEMS: Final = 1.0
# A class is rare below this share of the items. It is not looked at if its share of the labels is above this multiple.
_RARE_SHARE: Final = 0.1
_MORE_OFTEN: Final = 4.0
# The recall that the model expects counts as that of so many random labels of the class, and is stated from this number
# of labels of the class on.
_PRIOR_DRAWN: Final = 4.0
_FEWEST_FOUND: Final = 3


def share_interval(hits: int, size: int) -> tuple[float, float]:
    """The 90 % interval of a share, from a random sample.

    It has equal tails, with the prior of Jeffreys, so that it has a width also without a hit.

    Args:
        hits: Number of items of the sample that count.
        size: Number of items of the sample.

    Examples:
        >>> [round(end, 4) for end in share_interval(0, 20)], [round(end, 3) for end in share_interval(2, 40)]
        ([0.0001, 0.0905], [0.014, 0.132])
    """
    low, high = betaincinv(hits + 0.5, size - hits + 0.5, [0.05, 0.95]).tolist()
    return low, high


class RelevantShares(NamedTuple):
    """How likely the items that nobody has read are of the class that a screening looks for. It is an estimate.

    Attributes:
        shares: Probability for each of some items, in falling order.
        low: Lower end of the 90 % interval for their mean.
        high: Upper end.
    """

    shares: Floats
    low: float
    high: float


class SessionEstimates:
    """Estimates from the labels of a session. They are not guarantees.

    Args:
        labels: The labels.
        positive: For screening: the class that is looked for.
        estimate_time: Refits of the model per fit of the user, at most.

    Attributes:
        task: ``"classification"`` or ``"regression"``; None while it is not known.
        reducible_error: The part of the error that more labels can remove, for a model that does not provide it.
        right_or_wrong: Whether labels say only that predictions were right (True) or wrong (False).
        label_columns: Number of classes, if labels are sets of classes as texts such as ``"0110"``; 0 otherwise.
    """

    def __init__(self, labels: SessionLabels, positive: Any = None, *, estimate_time: float = 1.0) -> None:
        self._labels, self._positive, self._estimate_time = labels, positive, estimate_time
        self.task: str | None = None
        self.reducible_error = 0.0
        self.right_or_wrong = False
        self.label_columns = 0
        self._losses: RandomLabelLosses | None = None
        self._cached: tuple[Any, CalibratedError] | None = None
        self._refits_allowed = True
        self._rare: tuple[Any, RareClass] | None = None

    @contextmanager
    def without_refits(self) -> Iterator[None]:
        """Estimate from the predictions so far in the context, so that nothing remains of it."""
        before, self._refits_allowed = self._refits_allowed, False
        try:
            yield
        finally:
            self._refits_allowed = before

    @property
    def losses(self) -> RandomLabelLosses:
        """Losses of random labels; the task must be known."""
        if self._losses is None:
            assert self.task is not None
            self._losses = RandomLabelLosses(self.task, self._estimate_time)
        return self._losses

    def set_losses(self, task: str, losses: RandomLabelLosses) -> None:
        """Replace the losses of random labels."""
        self.task, self._losses = task, losses

    def load_losses(self, task: str, state: Any) -> None:
        """Restore the losses of random labels from their saved state."""
        self.task = task
        self._losses = RandomLabelLosses.from_state(task, state)

    @property
    def share(self) -> bool:
        """Whether errors are shares of wrong predictions, because labels are classes."""
        return self.task == "classification"

    @property
    def one_class_each(self) -> bool:
        """Whether each label is a class, and neither a set of classes nor a right or wrong answer."""
        return self.share and not self.right_or_wrong and not self.label_columns

    def by_column(self, view: ModelView) -> list[CalibratedError]:
        """For sets of classes: the share of the unlabelled items for which each class is predicted wrong.

        Args:
            view: The current model.
        """
        # It renews the predictions for random labels.
        self.estimate(view)
        labels = self._labels
        rest, learned = labels.some_unlabelled(REST_ITEMS), self._learned(view)
        return [
            column_estimate(self.losses, view, column, rest, learned, labels.random, labels.unlearned_random)
            for column in range(self.label_columns)
        ]

    def estimate(self, view: ModelView, most: int = REST_ITEMS, *, tolerance: float | None = None) -> CalibratedError:
        """The error of the unlabelled items.

        Args:
            view: The current model.
            most: Maximal number of unlabelled items to use.
            tolerance: For numbers: the largest error that is not wrong.
        """
        labels, limit = self._labels, checked_tolerance(tolerance, share=self.share)
        # The same estimate is read for the decision, for its plan, and by the user.
        unlearned = labels.unlearned_random
        counts = (labels.version, labels.left, len(labels.everything))
        key = (*counts, tuple(labels.random), tuple(unlearned.items()), most, limit)
        if self._cached is None or self._cached[0] != key:
            rest, learned = labels.some_unlabelled(whole(most, "most", least=1)), self._learned(view)
            if self._refits_allowed:
                # Models of other packages are fitted with the threads that their users chose.
                self.losses.refresh(view, learned, labels.random)
            with one_thread():
                estimate = self.losses.estimate(view, rest, learned, labels.random, limit, unlearned)
            self._cached = key, estimate
        return self._cached[1]

    def wrong_shares(self, view: ModelView, tolerance: float | None = None) -> tuple[CalibratedError, Floats]:
        """The estimate of the share of wrong predictions, and the probability of an error for some unlabelled items.

        The probabilities are those that the model expects, with log odds shifted so that their mean is the estimate.

        Args:
            view: The current model.
            tolerance: For numbers: the largest error that is not wrong.

        Raises:
            InvalidValueError: The model predicts numbers and no tolerance is given.
        """
        if tolerance is None and not self.share:
            raise InvalidValueError("the model predicts numbers: give tolerance, the largest error that is not wrong")
        estimate, rest = self.estimate(view, tolerance=tolerance), self._labels.some_unlabelled(REST_ITEMS)
        value = min(max(estimate.value, 0.0), 1.0)
        with one_thread():
            expected = view.expected_losses(rest) if len(rest) else np.zeros(0)
        if expected is None or not 0.0 < value < 1.0 or not len(rest):
            return estimate, np.full(len(rest), value)
        return estimate, shifted_shares(expected if tolerance is None else share_beyond(tolerance, expected), value)

    def _learned(self, view: ModelView) -> dict[int, Any]:
        """The learned labels in the order in which the model has learned them."""
        return {item: self._labels.learned[item] for item in view.learned_order()}

    def random_labels(self, view: ModelView) -> int:
        """Number of random labels that calibrate the estimate."""
        return self.losses.count(view.judged_model(), self._labels.random) + len(self._labels.unlearned_random)

    def worsening(self, view: ModelView) -> Worsening | None:
        """Evidence from the newer random labels that the model has become worse; None if there is none."""
        with one_thread():
            return self.losses.worsening(view.judged_model(), self._learned(view))

    def expected_missed(self, view: ModelView, most: int = REST_ITEMS) -> float:
        """The expected number of items of the positive class among the unlabelled items."""
        rest = self._labels.some_unlabelled(whole(most, "most", least=1))
        classes, p = view.class_probabilities(rest)
        if not len(rest) or self._positive not in classes:
            return 0.0
        left = len(self._labels.unlabelled)
        with one_thread():
            ratio = self.class_ratio(view, self._positive)
        return min(float(left), ratio * left * float(p[:, classes.index(self._positive)].mean()))

    def relevant_shares(self, view: ModelView) -> RelevantShares:
        r"""The probabilities that items that nobody has read are of the positive class.

        They are the probabilities of the model, calibrated by the random labels, with log odds shifted so that the next
        :math:`w` items in order are of the class as often as the last :math:`w` that were read in order, of which
        :math:`h` were: their mean is :math:`(h + \bar p) / (w + 1)`, where :math:`\bar p` is the mean before.

        Args:
            view: The current model.
        """
        rest = self._labels.some_unlabelled(_RANKED_ITEMS)
        rest = rest[self._labels.status[rest] == UNLABELLED]
        if not len(rest):
            return RelevantShares(np.zeros(0), 0.0, 0.0)
        with one_thread():
            classes, p = view.class_probabilities(rest)
            ratio = self.class_ratio(view, self._positive)
        # A model that has seen no item of the class does not know it.
        unknown = 1.0 / (len(self._labels.everything) + 2.0)
        model = p[:, classes.index(self._positive)] if self._positive in classes else np.full(len(rest), unknown)
        model = np.sort(np.clip(ratio * model, 0.0, 1.0))[::-1]
        hits, seen = self._recent_hits()
        if not seen:
            return RelevantShares(model, *[float(model.mean())] * 2)
        first = max(1, round(seen * len(rest) / max(self._labels.left, 1)))
        before = float(np.clip(model[:first].mean(), 1e-6, 1.0 - 1e-6))
        mean = (hits + _PRIOR_ITEMS * before) / (seen + _PRIOR_ITEMS)
        low, high = share_interval(hits, seen)
        shares, *ends = (shifted_shares(model, each, first=first) for each in (mean, min(low, mean), max(high, mean)))
        return RelevantShares(shares, *(float(each.mean()) for each in ends))

    def _recent_hits(self) -> tuple[int, int]:
        """Number of items of the positive class among the last that were read in order, and the number of these."""
        drawn = {*self._labels.random, *self._labels.checked_random}
        ordered = [label for item, label in self._labels.everything.items() if item not in drawn]
        last = max(_FEWEST_RECENT, round(_RECENT_SHARE * len(ordered)))
        recent = ordered[-last:]
        return sum(bool(label == self._positive) for label in recent), len(recent)

    def class_ratio(self, view: ModelView, class_name: Any) -> float:
        """Ratio of random labels of a class to the number that the model expects, shrunk towards 1."""
        return self.losses.class_ratio(view.judged_model(), self._learned(view), self._labels.random, class_name)

    def rare_class(self, view: ModelView) -> RareClass | None:
        r"""The rarest class, if it is below 10 % of the items and below half of an equal share; None if none is.

        With :math:`\rho` the ratio of random labels of the class to their expected number, :math:`p_i` the probability
        of the class for the unlabelled items, with the confidence corrected as for the error, and :math:`F` those of
        them that are predicted as the class, it has :math:`\rho \sum_i p_i` unlabelled items, of which the predictions
        find the share

        .. math:: \frac{h + 4 \, r}{a + 4}, \quad r = \frac{\sum_{i \in F} p_i}{\max(1, \rho) \sum_i p_i},

        where models without them predict :math:`h` of its :math:`a` random labels as the class. Items that the model
        does not expect are thus not found. The share is not known with fewer than 3 labels of the class, unless no
        item is predicted as the class. The interval of the share of the class is that of the random labels alone, see
        :func:`share_interval`, and it contains the estimate.

        Args:
            view: The current model.
        """
        labels = self._labels.without_sample
        if not self.one_class_each or not labels or not self._labels.left:
            return None
        classes, rest = self.known_classes(view), self._labels.some_unlabelled(REST_ITEMS)
        limit = min(_RARE_SHARE, 0.5 / max(len(classes), 1))
        counts = Counter(np.asarray(as_labels(list(labels.values()))).tolist())
        rarest = min(classes, key=lambda name: counts[name], default=None)
        # Rare classes are asked for more often than they occur, but hardly this much.
        if len(classes) < 2 or counts[rarest] > _MORE_OFTEN * limit * len(labels):
            return None
        key = (self._labels.version, self._labels.left, len(labels))
        if self._rare is None or self._rare[0] != key:
            self._rare = key, self._of_class(view, rarest, counts[rarest], rest)
        rare = self._rare[1]
        return rare if rare.share < limit else None

    def _of_class(self, view: ModelView, name: Any, n_found: int, rest: Indices) -> RareClass:
        """Estimated share of a class, and how much of it the predictions find."""
        n, left = len(self._labels.without_sample), self._labels.left
        with one_thread():
            classes, p = view.class_probabilities(rest)
            if name not in classes or not p.any():
                return RareClass(str(name), n_found, n_found / n, None if p.any() else 0.0)
            evidence = self.losses.class_evidence(view, self._learned(view), self._labels.random, name)
        place, ratio = classes.index(name), evidence.ratio
        # The confidence of the model is corrected, because many small probabilities would add up.
        powers = p**evidence.factor
        column = powers[:, place] / powers.sum(axis=1)
        found, expected = column[p.argmax(axis=1) == place].sum(), column.sum()
        mean, drawn = float(column.mean()), self._labels.random
        ends = share_interval(sum(bool(self._labels.learned[item] == name) for item in drawn), len(drawn))
        share, low, high = ((n_found + left * each) / (n + left) for each in (min(1.0, ratio * mean), *ends))
        recall = float(found / (max(1.0, ratio) * expected)) if expected > 0.0 else 0.0
        recall = (evidence.found + _PRIOR_DRAWN * recall) / (evidence.labels + _PRIOR_DRAWN)
        known = n_found >= _FEWEST_FOUND or not found
        recalled = recall if known else None
        if not drawn:
            return RareClass(str(name), n_found, share, recalled)
        return RareClass(str(name), n_found, share, recalled, min(low, share), max(high, share))

    def better_model(
        self, view: ModelView, named: Alternative | None = None, *, trees: bool = True
    ) -> Alternative | None:
        """Another model that is better on the labels so far; see :func:`suffice.session.model_comparison.better_model`.

        Args:
            view: The current model.
            named: The result of the comparison before.
            trees: Whether it may consist of trees.
        """
        order = np.array(view.learned_order(), dtype=np.intp)
        inputs = view.compared_inputs(order)
        if inputs is None:
            return None
        labels = np.asarray(as_labels([self._labels.learned[item] for item in order.tolist()]))
        random = np.isin(order, self._labels.random)
        with one_thread():
            return better_model(
                view.judged_model(), inputs, labels, random, present=view.family, named=named, trees=trees
            )

    def reducible(self, view: ModelView, tolerance: float | None) -> float:
        """The part of the share of wrong predictions that more labels can remove, as estimated by the model."""
        rest = self._labels.some_unlabelled(_REDUCIBLE_ITEMS)
        with one_thread():
            expected = view.expected_errors(rest) if len(rest) else None
        if expected is None:
            return self.reducible_error
        total, reducible = expected
        if tolerance is None:
            return float(reducible.mean())
        return float((share_beyond(tolerance, total) - share_beyond(tolerance, total - reducible)).mean())

    def known_classes(self, view: ModelView) -> list[Any]:
        """Classes of the model, and classes of labels that it has not learned yet."""
        classes, _ = view.class_probabilities(np.zeros(0, dtype=np.intp))
        return list(dict.fromkeys([*classes, *np.asarray(as_labels(list(self._labels.everything.values()))).tolist()]))
