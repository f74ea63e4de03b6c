"""The course of a run with classes: Laplace posteriors, of two classes or many."""

from functools import partial
from typing import Any

import numpy as np

from suffice.acquisition import Indices, class_scores, label_free_chooser, require_known
from suffice.divergence import KLPair
from suffice.engines.cross_entropy import BinaryCrossEntropy, SoftmaxCrossEntropy
from suffice.engines.memory import require_memory
from suffice.engines.scored import ScoredPool
from suffice.engines.uncertain import UncertainPool
from suffice.errors import InvalidValueError
from suffice.learner.beliefs import LaplaceBeliefs
from suffice.learner.course import History, Outcome, Setting
from suffice.learner.facts import ClassFacts, stacked
from suffice.models.inputs import as_labels
from suffice.models.laplace import divergence_from_prior, divergences, laplace, learn_alpha
from suffice.models.logistic import BayesianLogistic, class_labels
from suffice.special import Floats

# Acquisitions that rank two classes alike: by how far the predictive is from even.
_BY_EVENNESS = {"entropy": True, "margin": True, "map-entropy": False}


class ClassCourse:
    """Labels that are classes, under one prior and one set of classes until either is learned again.

    A class that was not known before makes the posterior one of more weights, which cannot be compared with the one
    before it: the past is then replayed with the larger set, as after learned hyper-parameters.

    Args:
        model: A classifier; it is not changed.
        setting: Pool, acquisition and test set.
    """

    def __init__(self, model: BayesianLogistic, setting: Setting) -> None:
        self._model, self._setting = model, setting
        self._name = require_known(setting.acquisition, "classification")
        self._features = np.asarray(model.features(setting.X), dtype=np.float64)
        model.check(self._features.shape[1])
        require_memory(2 * self._features.nbytes, f"following {len(self._features)} pool items")
        self._history = History([], [])
        self._labels: list[Any] = []
        self._fixed = label_free_chooser(self._name, self._features, setting.rng)
        self._taken: list[int] = []
        self._classes = np.zeros(0)
        self._alpha = 1.0
        self._codes: dict[Any, int] = {}
        self._learned_at = 0
        self._stale = False
        self._facts = ClassFacts(setting.facts, len(self._features))
        # Classes in the order in which they were met: their columns never move.
        self._order: list[Any] = []
        self._told: list[dict[str, Any]] = []

    @property
    def revises(self) -> frozenset[str]:
        """What was said of the past stays: to ask anew would be to look at the pool once for each step."""
        return frozenset()

    def propose(self, most: int) -> Indices:
        """The next pick: another label may make another item the most useful one."""
        del most
        return self.batch(1)

    def batch(self, size: int) -> Indices:
        """The items of largest score."""
        return self._fixed.batch(size) if self._fixed is not None else self._pool.nearest(self._state, size)

    def skip(self, indices: Indices) -> None:
        """Leave items out."""
        self._taken.extend(int(i) for i in indices)
        self._facts.take(indices)
        if self._fixed is not None:
            self._fixed.skip(indices)
        self._pool.take(indices)

    def check(self, y: Any) -> None:
        """Refuse a label that is missing, that is none of the classes given, or a number among words."""
        class_labels(y, self._model.classes)
        if self._labels:
            class_labels(as_labels([self._labels[0], *np.asarray(as_labels(y)).tolist()]))

    def begin(self, indices: Indices, y: Any) -> None:
        """Learn prior and posterior from the initial labels."""
        self.check(y)
        self._add(indices, y, together=True)
        try:
            self._start()
            self._facts.begin(self._beliefs())
        except Exception:
            self._history, self._labels = History([], []), []
            raise

    def learn(self, indices: Indices, y: Any, *, together: bool) -> Outcome:
        """Learn labels under the prior at hand."""
        labels = np.asarray(y)
        codes = [self._codes.get(label) for label in labels.tolist()]
        groups = [slice(0, len(indices))] if together else [slice(k, k + 1) for k in range(len(indices))]
        if None in codes:
            self.check(y)
            self._facts.before(self._beliefs(), indices)
            self._add(indices, y, together=together)
            # Nothing can be said of these steps before the past is replayed, which is due now.
            self._stale = True
            missing = np.full(len(groups), np.nan)
            return Outcome(KLPair(missing, missing), missing if self._test is not None else np.zeros(0))
        outcomes = []
        try:
            for group in groups:
                self._facts.before(self._beliefs(), indices[group])
                outcomes.append(self._extend(indices[group], np.array(codes[group])))
        except Exception:
            self._replay()
            raise
        self._add(indices, y, together=together)
        found = Outcome.joined(outcomes)
        return found if self.until_relearning() == 0 else self._telling(found, len(groups))

    def until_relearning(self) -> int | None:
        """Labels until they have doubled since the prior was learned; 0 when a new class was met."""
        if self._stale:
            return 0
        return None if self._model.alpha is not None else max(0, 2 * self._learned_at - len(self._labels))

    def relearn(self) -> Outcome:
        """Learn the prior again, with the classes met so far, and replay the past."""
        due = self._model.alpha is None and len(self._labels) >= 2 * self._learned_at
        # A class met for the first time changes the posterior's shape, but not when the prior is learned.
        history = self._start() if due else self._start(self._learned_at, keep=True)
        return self._telling(history, 1) if len(history.kl_new_old) > len(self._told) else self._with_past(history)

    def correct(self, index: int, y: Any) -> Outcome:
        """Change a label and replay; a prior that was learned from it is learned again from the same labels."""
        self.check([y])
        place = self._history.indices.index(index)
        kept, self._labels[place] = self._labels[place], y
        # The classes may be others now, so pool and test set are made anew too.
        keep = place >= self._learned_at
        try:
            return self._with_past(self._start(self._learned_at, keep=keep))
        except Exception:
            self._labels[place] = kept
            self._start(self._learned_at, keep=keep)
            raise

    def fitted(self) -> Any:
        """The model as it stands, as an estimator of its own."""
        rows = self._history.indices
        return self._model.at(self._setting.X[rows], np.asarray(self._labels), self._alpha, self._learned_at)

    def current_model(self) -> Any:
        """The model with the posterior of this course; valid until the next label."""
        rows, labels = self._history.indices, np.asarray(self._labels)
        return self._model.at(self._setting.X[rows], labels, self._alpha, self._learned_at, self._state)

    def _beliefs(self) -> LaplaceBeliefs:
        columns = [self._codes.get(label, -1) for label in self._order]
        if len(self._codes) == 1:
            # Whatever else there may be has the first column that is free.
            columns = [0, 1] if len(columns) == 1 else _with_one_more(columns)
        return LaplaceBeliefs(self._state, self._features, columns)

    def _telling(self, outcome: Outcome, steps: int) -> Outcome:
        """The outcome with what is to be told of its last steps, which have just been learned."""
        if not self._setting.facts.names:
            return outcome
        size = self._history.sizes[-1]
        codes = [self._order.index(label) for label in np.asarray(self._labels[-size:]).tolist()]
        told = self._facts.after(self._beliefs(), codes)
        if self._validation is not None:
            told["validation_error"] = self._validation.error(self._state)
        if self._setting.facts.about({"kl_prior", "train_error"}):
            told |= self._of_training()
        self._told.extend([{name: told[name] for name in told if name in self._setting.facts.names}] * steps)
        return self._with_past(outcome)

    def _with_past(self, outcome: Outcome) -> Outcome:
        told = stacked(self._told[-len(outcome.kl_new_old) :])
        return Outcome(outcome.pair, outcome.error, outcome.estimated, told)

    def _of_training(self) -> dict[str, float]:
        """Divergence from the prior, and the error of a label drawn from the prediction, on the labels bought."""
        features, codes = self._state.labelled()
        p = LaplaceBeliefs(self._state, features, list(range(max(2, len(self._classes))))).probabilities(
            np.arange(len(codes))
        )
        error = float(1.0 - p[np.arange(len(codes)), codes].mean())
        return {"kl_prior": divergence_from_prior(self._state), "train_error": error}

    def _add(self, indices: Indices, y: Any, *, together: bool) -> None:
        self._history.add(indices, together=together)
        self._labels.extend(np.asarray(y))
        self._take(indices)

    def _take(self, indices: Indices) -> None:
        self._taken.extend(int(i) for i in indices)
        self._facts.take(indices)
        for chooser in (self._fixed, getattr(self, "_pool", None)):
            if chooser is not None:
                chooser.take(indices)

    def _start(self, n: int | None = None, *, keep: bool = False) -> Outcome:
        """Learn the prior from the first ``n`` labels, all if left out, or keep it; and replay the past."""
        self._classes = self._model.known_classes(self._labels)
        self._codes = {label: code for code, label in enumerate(self._classes.tolist())}
        self._order += [label for label in self._classes.tolist() if label not in self._order]
        self._stale = False
        self._learned_at = len(self._labels) if n is None else n
        if self._model.alpha is None and not keep:
            codes = np.searchsorted(self._classes, np.asarray(self._labels[: self._learned_at]))
            features = self._features[self._history.indices[: self._learned_at]]
            self._alpha = learn_alpha(features, codes, max(2, len(self._classes)), self._alpha)
        elif self._model.alpha is not None:
            self._alpha = float(self._model.alpha)
        self._pool = self._new_pool()
        self._test = self._new_test(self._setting.test, "y_test")
        self._validation = self._new_test(self._setting.facts.validation, "validation")
        return self._replay()

    def _replay(self) -> Outcome:
        indices = np.array(self._history.indices, dtype=np.intp)
        codes = np.searchsorted(self._classes, np.asarray(self._labels))
        n = self._history.sizes[0]
        self._state = laplace(self._features[indices[:n]], codes[:n], max(2, len(self._classes)), self._alpha)
        self._before = self._state.snapshot()
        test, self._test = self._test, None
        outcomes, at = [], n
        for number, size in enumerate(self._history.sizes[1:], start=2):
            if number == len(self._history.sizes):
                self._test = test
            outcomes.append(self._extend(indices[at : at + size], codes[at : at + size]))
            at += size
        self._test = test
        return Outcome.joined(outcomes)

    def _extend(self, indices: Indices, codes: Any) -> Outcome:
        old = self._before
        self._state.extend(self._features[indices], codes)
        self._before = self._state.snapshot()
        pair = divergences(old, self._before)
        error = np.zeros(0) if self._test is None else np.array([self._test.error(self._state)])
        return Outcome(KLPair(np.atleast_1d(pair.new_old), np.atleast_1d(pair.old_new)), error)

    def _new_pool(self) -> UncertainPool | ScoredPool:
        pool: UncertainPool | ScoredPool
        if len(self._classes) <= 2 and self._name in _BY_EVENNESS:
            pool = UncertainPool(self._features, averaged=_BY_EVENNESS[self._name])
        else:
            pool = ScoredPool(self._features, partial(class_scores, name=self._name))
        pool.take(np.array(self._taken, dtype=np.intp))
        return pool

    def _new_test(self, given: Any, name: str) -> BinaryCrossEntropy | SoftmaxCrossEntropy | None:
        if given is None:
            return None
        X, y = given
        features: Floats = self._model.features(X)
        known = np.isin(np.asarray(y), self._classes)
        if not known.any():
            raise InvalidValueError(
                f"no class of {name} has been labelled yet; give the model its classes, classes=[...]"
            )
        # The loss of a class that the model has never met is infinite, so it is measured on the others.
        codes = np.searchsorted(self._classes, np.asarray(y)[known])
        kind = BinaryCrossEntropy if len(self._classes) <= 2 else SoftmaxCrossEntropy
        return kind(features[known], codes)


def _with_one_more(columns: list[int]) -> list[int]:
    free = columns.index(-1)
    return [*columns[:free], 1, *columns[free + 1 :]]
