"""Bayesian logistic regression as a scikit-learn classifier that learns one label at a time."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from suffice.arguments import real
from suffice.errors import InvalidValueError
from suffice.models.inputs import prediction_inputs, training_inputs
from suffice.models.laplace import GrowingPosterior, Snapshot, laplace, settle_alpha
from suffice.posteriors import Gaussian
from suffice.special import Floats


class BayesianLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    r"""Logistic regression with ``w ~ N(0, I/alpha)`` and Laplace's approximation of the posterior.

    For two classes ``p(second class) = sigmoid(w'x)``; for ``K`` more, each has its own weights and
    :math:`p_k = e^{w_k'x} / \sum_l e^{w_l'x}`. Predictions take the posterior's spread into account by MacKay's
    approximation: a logit of mean ``m`` and variance ``s`` counts as ``m / sqrt(1 + pi s / 8)``. For many classes ``s``
    is the variance of the logit less the mean of all, for what they share cancels in the probabilities.

    Args:
        alpha: Prior precision. None: that of the largest evidence, learned when fitted and again whenever the labels
            have doubled.
        fit_intercept: Whether a constant feature stands in front, under the same prior and inside the posterior.
        classes: All classes there are, if known beforehand; else those seen so far.

    Attributes:
        classes_: Sorted classes.
        alpha_: Prior precision in use.
        n_labels_: Number of labels learned from.
        learned_at_: Number of labels that ``alpha_`` was learned from; 0 if it was given.
        coef_: Weights of the features, ``1 x D``, or ``K x D`` for many classes.
        intercept_: Weights of the constant, 1 or ``K`` numbers; 0 without one.

    Reference: [IshibashiHino2021] section 5.2, model 2 (where the covariance is the inverse of the paper's ``H``).

    Examples:
        >>> model = BayesianLogistic(alpha=1.0).fit([[0.0], [1.0], [3.0], [4.0]], ["no", "no", "yes", "yes"])
        >>> model.observe([[2.5]], ["yes"]).n_labels_
        5
        >>> model.predict([[0.5], [4.0]]).tolist()
        ['no', 'yes']
        >>> model.posterior
        Gaussian(2 parameters, by precision)
    """

    def __init__(self, alpha: float | None = None, *, fit_intercept: bool = True, classes: ArrayLike | None = None):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.classes = classes

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from labels alone; what was learned before is forgotten.

        Args:
            X: Inputs, ``n x D``.
            y: Classes, ``n``; a single class will do.

        Raises:
            InvalidValueError: A NaN in ``X`` (row and column are named), or a class that is not in ``classes``.
        """
        features, labels = self._checked(X, y, reset=True)
        return self._start(features, labels, np.unique(labels if self.classes is None else np.asarray(self.classes)))

    def observe(self, X: Any, y: Any) -> Self:
        """Learn from more labels: the result is that of :meth:`fit` with all of them and the same ``alpha``.

        A class not seen before starts over with the larger set of classes.

        Args:
            X: Inputs, ``k x D``.
            y: Classes, ``k``.
        """
        if not hasattr(self, "classes_"):
            return self.fit(X, y)
        features, labels = self._checked(X, y, reset=False)
        known = np.union1d(self.classes_, labels)
        if self.classes is None and len(known) > len(self.classes_):
            before, codes = self._model.labelled()
            return self._start(
                np.concatenate([before, features]), np.concatenate([self.classes_[codes], labels]), known
            )
        self._model.extend(features, self._codes(labels))
        if self.alpha is None and self.n_labels_ >= 2 * self.learned_at_:
            self._learn_alpha()
        return self

    @property
    def posterior(self) -> Gaussian:
        """Posterior over all weights, the intercept's first; for many classes one class after the other."""
        return self._fitted.posterior()

    def snapshot(self) -> Snapshot:
        """The posterior as :func:`suffice.models.laplace.divergences` takes it, at no cost."""
        return self._fitted.snapshot()

    @property
    def alpha_(self) -> float:
        """Prior precision in use."""
        return self._fitted.alpha

    @property
    def n_labels_(self) -> int:
        """Number of labels learned from."""
        return self._fitted.n

    @property
    def coef_(self) -> Floats:
        """Weights of the features, ``1 x D`` or ``K x D``."""
        return np.atleast_2d(self._fitted.weights)[:, int(self.fit_intercept) :]

    @property
    def intercept_(self) -> Floats:
        """Weights of the constant, 1 or ``K`` numbers."""
        weights = np.atleast_2d(self._fitted.weights)
        return weights[:, 0] if self.fit_intercept else np.zeros(len(weights))

    def decision_function(self, X: Any) -> Floats:
        """Logits of the predicted probabilities: of the second of two classes, ``m``; or of all ``K``, ``m x K``.

        Those at the posterior's mean are ``X @ coef_.T + intercept_``; here, uncertain rows come closer to 0.
        """
        return self._latent(X)[0]

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the likeliest class of each row.

        Args:
            X: Inputs, ``m x D``.
            return_std: Whether to return the standard deviations of the logits too, ``m`` or ``m x K``.
        """
        logits, variance = self._latent(X)
        codes = (logits > 0.0).astype(int) if logits.ndim == 1 else logits.argmax(axis=1)
        # With a single class so far, the other one has no name.
        labels = self.classes_[np.minimum(codes, len(self.classes_) - 1)]
        return (labels, np.sqrt(variance)) if return_std else labels

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes, ``m x K``; of a single class so far, 1."""
        logits = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.ones((len(logits), 1))
        if logits.ndim == 1:
            return np.column_stack([expit(-logits), expit(logits)])
        return np.asarray(softmax(logits, axis=1))

    @property
    def _fitted(self) -> GrowingPosterior:
        check_is_fitted(self)
        return self._model

    def _latent(self, X: Any) -> tuple[Floats, Floats]:
        """Logits shrunk by their uncertainty, and their variances."""
        model = self._fitted
        features = self._design(prediction_inputs(self, X))
        mean, variance = model.latent(features)
        own = variance
        if mean.ndim == 2:
            # The weights' mean over the classes is N(0, I/(K alpha)), whatever the labels, and independent of the rest.
            shared = np.einsum("ij,ij->i", features, features) / (model.n_classes * model.alpha)
            own = np.maximum(variance - shared[:, None], 0.0)
        return mean / np.sqrt(1.0 + np.pi / 8.0 * own), variance

    def _checked(self, X: Any, y: Any, *, reset: bool) -> tuple[Floats, Any]:
        inputs, labels = training_inputs(self, X, y, reset=reset)
        check_classification_targets(labels)
        return self._design(inputs), labels

    def _design(self, inputs: Floats) -> Floats:
        return np.column_stack([np.ones(len(inputs)), inputs]) if self.fit_intercept else inputs

    def _codes(self, labels: Any) -> Any:
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise InvalidValueError(
                f"y holds {unknown[0]!r}, which is not in classes={self.classes_.tolist()}; name every class there is"
            )
        return np.searchsorted(self.classes_, labels)

    def _start(self, features: Floats, labels: Any, known: Any) -> Self:
        alpha = 1.0 if self.alpha is None else real(self.alpha, "alpha", "above 0, or None", lambda a: a > 0.0)
        self.classes_ = known
        self._model = laplace(features, self._codes(labels), max(2, len(known)), alpha)
        self.learned_at_ = 0
        if self.alpha is None:
            self._learn_alpha()
        return self

    def _learn_alpha(self) -> None:
        settle_alpha(self._model)
        self.learned_at_ = self._model.n
