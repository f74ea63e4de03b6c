"""Stopping rules for the active learners of small-text."""

from collections.abc import Callable
from typing import Any

import numpy as np

from suffice.criteria import Criterion, Verdict
from suffice.criteria.base import require_rule
from suffice.errors import InvalidValueError, MissingExtraError, MissingInputError
from suffice.learner import StopMonitor

__all__ = ["SmallTextCriterion"]


class SmallTextCriterion:
    """A stopping rule as a ``StoppingCriterion`` of small-text.

    Call :meth:`stop` after each update of the active learner. It returns the bool that small-text expects; the verdict
    with its reason is in :attr:`verdict`. All state is in a :class:`suffice.StopMonitor`, which is created at the first
    call from the data set of the active learner.

    If the classifier is a ``SklearnClassifier``, the rule can use the estimator in it: probabilities, committees (a
    random forest) and posteriors (a ``LogisticRegression``). For other classifiers, such as those for PyTorch and
    Transformers, it uses the class probabilities.

    Args:
        rule: The stopping rule; :class:`suffice.LabelWorth` with the two costs if left out.
        random: Items that were or will be drawn at random, as indices into the data set. They calibrate the estimate of
            the error once they are labelled.
        **options: Other arguments of :class:`suffice.StopMonitor`: ``label_cost``, ``mistake_cost``, ``seed``,
            ``stop_set``, ``positive``, ``control``.

    Attributes:
        monitor: The monitor; None before the first call.

    Raises:
        MissingExtraError: small-text is not installed.
        InvalidTypeError: ``rule`` is not a stopping rule.

    Examples:
        >>> import numpy as np, small_text
        >>> from sklearn.linear_model import LogisticRegression
        >>> X = np.random.default_rng(0).normal(size=(300, 4)); y = (X[:, 0] > 0.0).astype(int)
        >>> factory = small_text.SklearnClassifierFactory(LogisticRegression(), 2)
        >>> data = small_text.SklearnDataset(X, y, target_labels=[0, 1])
        >>> learner = small_text.PoolBasedActiveLearner(factory, small_text.LeastConfidence(), data)
        >>> learner.initialize_data(np.arange(10), y[:10])
        >>> criterion = SmallTextCriterion(mistake_cost=0.5)
        >>> while not criterion.stop(active_learner=learner):
        ...     learner.update(y[learner.query(num_samples=10)])
        >>> criterion.verdict.stop, criterion.verdict.n_labelled < 150
        (True, True)
    """

    def __init__(self, rule: Criterion | None = None, *, random: Any = (), **options: Any) -> None:
        try:
            from small_text import StoppingCriterion
        except ImportError:
            raise MissingExtraError("small-text", "", "SmallTextCriterion") from None
        # A class that subclasses it could not be imported without small-text.
        StoppingCriterion.register(SmallTextCriterion)
        if rule is not None:
            require_rule(rule, "rule")
        self._rule, self._options = rule, options
        self._random = frozenset(np.atleast_1d(np.asarray(random, dtype=np.intp)).tolist())
        self.monitor: StopMonitor | None = None
        # Whether the monitor uses the estimators of scikit-learn, or items by number.
        self._unwraps = False
        self._size = 0

    @property
    def verdict(self) -> Verdict | None:
        """Verdict of the last call, with its reason; None before the first call."""
        return None if self.monitor is None else self.monitor.verdict

    @property
    def verdicts(self) -> list[Verdict]:
        """Verdicts of all steps."""
        return [] if self.monitor is None else self.monitor.verdicts

    def stop(
        self,
        active_learner: Any = None,
        predictions: Any = None,  # noqa: ARG002 - an argument of small-text
        proba: Any = None,  # noqa: ARG002 - likewise
        indices_stopping: Any = None,  # noqa: ARG002 - likewise
    ) -> bool:
        """Return whether the rule says stop.

        Args:
            active_learner: The active learner, after ``initialize_data`` or ``update``. It is required, because the
                rule is told the labels and the classifier.
            predictions: Not used, because the monitor predicts what the rule requires.
            proba: Not used.
            indices_stopping: Not used; ``stop_set`` of the constructor chooses the items that a rule watches.

        Raises:
            MissingInputError: There is no active learner, or the rule requires an input that the classifier does not
                provide.
            InvalidValueError: The labels are multi-label, the learner is not initialised or has another data set.
        """
        if active_learner is None:
            raise MissingInputError("stop requires active_learner; call stop(active_learner=...) after each update")
        classifier, labels = active_learner.classifier, active_learner.y
        if classifier is None or labels is None:
            raise InvalidValueError("active_learner has no classifier yet; call initialize_data first, with retrain")
        if active_learner.dataset.is_multi_label or hasattr(labels, "tocsr"):
            raise InvalidValueError("active_learner has several labels for each item; the rules are for one label each")
        if self.monitor is None:
            self.monitor = self._new_monitor(classifier, active_learner.dataset)
        elif len(active_learner.dataset) != self._size:
            raise InvalidValueError(
                f"active_learner has {len(active_learner.dataset)} items, and the first call had {self._size}; use a "
                "new SmallTextCriterion for each data set"
            )
        items = np.asarray(active_learner.indices_labeled)
        drawn = [item for item in items.tolist() if item in self._random]
        model = classifier.model if self._unwraps else classifier
        return self.monitor.update(model, items, np.asarray(labels), random=drawn).stop

    def _new_monitor(self, classifier: Any, dataset: Any) -> StopMonitor:
        from small_text import SklearnClassifier, SklearnDataset

        self._unwraps = isinstance(classifier, SklearnClassifier) and isinstance(dataset, SklearnDataset)
        self._size = len(dataset)
        if self._unwraps:
            return StopMonitor(dataset.x, self._rule, **self._options)
        return StopMonitor(np.arange(self._size), self._rule, predict=_predicted(dataset), **self._options)


def _predicted(dataset: Any) -> Callable[[Any, Any], Any]:
    """A function of a classifier of small-text and items of its data set that returns class probabilities."""

    def predict(classifier: Any, items: Any) -> Any:
        return classifier.predict_proba(dataset[np.asarray(items)])

    return predict
