"""Bayesian logistic regression by Laplace's approximation, for two classes or many, one label at a time."""

from typing import Any, Self
from warnings import catch_warnings, filterwarnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from suffice.arguments import real
from suffice.errors import InvalidValueError
from suffice.models.capacity import Capacity
from suffice.models.inputs import as_labels, is_missing, prediction_inputs, training_inputs, unfitted
from suffice.models.laplace import laplace, learn_alpha
from suffice.models.predictive import moderated_logits, probabilities
from suffice.numerics import Floats
from suffice.posteriors import Gaussian


class BayesianLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Logistic regression with ``w ~ N(0, I/alpha)`` and Laplace's approximation of the posterior.

    .. math:: p(w | S) \approx N(w_{MAP}, H^{-1}), \quad H = \Phi' R \Phi + \alpha I, \quad R_{ii} = p_i (1 - p_i),

    and the same with a softmax for more than two classes. Probabilities are averaged over the posterior by MacKay's
    formula, :math:`\sigma(\mu / \sqrt{1 + \pi s / 8})` for a logit of mean :math:`\mu` and variance ``s`` (of many
    classes, see :func:`~suffice.models.predictive.moderated_logits`).

    Args:
        alpha: Prior precision of the weights. By default it is learned from the labels by Laplace's evidence, in
            ``fit`` and again whenever the number of labels has doubled.
        fit_intercept: Whether a constant feature is added, in front. Its weight has the same prior and is part of the
            posterior, as the guarantee of the stopping rule needs.
        classes: All classes, if known beforehand; by default, those among the labels so far.
        components: Groups of columns that are components in the order of their importance, each as a pair: the first
            column and the one after the last. The first ``d`` of each group are used. ``d`` is the number, out of 25,
            50, 100 and so on, with the best leave-one-out predictions of the labels. It is chosen in ``fit``, and
            again whenever the number of labels has doubled. It is at most the number of labels (or 25), and limited to
            1000 weights. By default all columns are used.

    Attributes:
        classes_: The classes, sorted.
        coef_, intercept_: Most probable weights: ``1 x D`` and 1 for two classes, ``K x D`` and ``K`` for many. Those
            of components that are not used are 0.
        alpha_: Prior precision in use.
        n_components_: Components of each group in use; None if no groups were given.
        learned_at_: Number of labels that prior precision and components were learned from.
        n_labels_: Labels learned from.

    Reference: [IshibashiHino2021] section 5.2, model 2 (where the covariance is the inverse of the paper's ``H``).

    Examples:
        >>> model = BayesianLogistic(alpha=1.0).fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
        >>> model.predict_proba([[0.5], [2.5]]).round(2)
        array([[0.53, 0.47],
               [0.3 , 0.7 ]])
        >>> model.observe([[1.4]], ["yes"]).posterior
        Gaussian(2 parameters, by precision)
    """

    X_: Floats
    y_: Any
    classes_: Any
    alpha_: float
    n_components_: int | None
    state_: Any
    learned_at_: int

    def __init__(
        self,
        alpha: float | None = None,
        *,
        fit_intercept: bool = True,
        classes: Any = None,
        components: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.components = components

    @property
    def learns(self) -> bool:
        """Whether the prior precision or the number of components is learned."""
        return self.alpha is None or self.components is not None

    def check(self, n_features: int) -> None:
        """Raise an error for an invalid ``alpha`` or ``components``; ``n_features`` is the number of input features."""
        if self.alpha is not None:
            real(self.alpha, "alpha", "above 0, or None", lambda x: x > 0.0)
        self.capacity(n_features)

    def capacity(self, n_features: int) -> Capacity | None:
        """Return the choice of components for inputs with ``n_features`` features; None if all of them are used."""
        if self.components is None:
            return None
        return Capacity(self.components, n_features, intercept=self.fit_intercept)

    def features(self, X: Floats) -> Floats:
        """Return the inputs, after a column of ones if there is an intercept; of a fitted model, the columns in use."""
        everything = np.column_stack([np.ones(len(X)), X]) if self.fit_intercept else X
        d = getattr(self, "n_components_", None)
        capacity = None if d is None else self.capacity(X.shape[1])
        return everything if capacity is None or d is None else everything[:, capacity.columns(d)]

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from labels, forgetting earlier ones.

        Args:
            X: Inputs, ``n x D``.
            y: Classes, ``n``.

        Returns:
            The model.
        """
        inputs, given = training_inputs(self, X, as_labels(y))
        labels = class_labels(given, self.classes)
        # The search for a prior precision starts again, so that a second fit gives the same result as the first.
        self.__dict__.pop("alpha_", None)
        return self._set(inputs, labels, self.known_classes(labels), None, len(labels), None)

    def observe(self, X: Any, y: Any) -> Self:
        """Learn from more labels. The posterior is that of :meth:`fit` on all labels, and is computed by an update.

        A new class causes a new fit with the larger set of classes. If the prior precision or the number of components
        is learned, it is learned again when the number of labels has doubled since the last time.

        Args:
            X: Inputs of the new labels, ``k x D``.
            y: The new labels, ``k``.

        Returns:
            The model.
        """
        if not hasattr(self, "state_"):
            return self.fit(X, y)
        inputs, given = training_inputs(self, X, as_labels(y), reset=False)
        labels = class_labels(given, self.classes)
        everything = np.concatenate([self.y_, labels])
        known = np.isin(labels, self.classes_).all()
        due = self.learns and len(everything) >= 2 * self.learned_at_
        if due or not known:
            alpha, d = (None, None) if due else (self.alpha_, self.n_components_)
            learned_at = len(everything) if due else self.learned_at_
            known_now = self.known_classes(everything)
            return self._set(np.vstack([self.X_, inputs]), everything, known_now, alpha, learned_at, d)
        self.state_.extend(self.features(inputs), np.searchsorted(self.classes_, labels))
        self.X_, self.y_ = np.vstack([self.X_, inputs]), everything
        return self

    def at(  # noqa: PLR0913, PLR0917 - the fitted attributes of a model
        self, X: Floats, y: Any, alpha: float, learned_at: int, state: Any = None, n_components: int | None = None
    ) -> Self:
        """Return a model with the same parameters, fitted to these labels with a given prior.

        With ``state``, the posterior after these labels, nothing is computed: the model refers to that object.
        ``n_components`` is required if the model has ``components``.
        """
        model = unfitted(self)
        model.n_features_in_ = X.shape[1]
        if state is None:
            return model._set(X, y, model.known_classes(y), alpha, learned_at, n_components)
        model.X_, model.y_, model.classes_ = X, y, model.known_classes(y)
        model.alpha_, model.learned_at_, model.state_ = alpha, learned_at, state
        model.n_components_ = n_components
        return model

    def known_classes(self, y: Any) -> Any:
        """Return the classes, sorted: those given, or by default those among the labels."""
        return np.unique(np.asarray(y) if self.classes is None else np.asarray(self.classes))

    @property
    def hyperparameters(self) -> Any:
        """Hyper-parameters in use: two models with equal ones have the same prior."""
        return self.alpha_, self.n_components_, tuple(self.classes_.tolist())

    def posterior_after(self, X: Any, y: Any) -> Gaussian:
        """Return the posterior after other labels, with the present hyper-parameters and classes."""
        model = unfitted(self).set_params(classes=self.classes_)
        inputs, labels = np.asarray(X, dtype=np.float64), class_labels(y, self.classes_)
        found: Self = model.at(inputs, labels, self.alpha_, self.learned_at_, n_components=self.n_components_)
        return found.posterior

    @property
    def n_labels_(self) -> int:
        """Labels learned from."""
        return len(self.y_)

    @property
    def posterior(self) -> Gaussian:
        """The posterior over the weights; for many classes, in the order of the classes."""
        check_is_fitted(self, "state_")
        posterior: Gaussian = self.state_.posterior()
        return posterior

    @property
    def coef_(self) -> Floats:
        """Most probable weights of the inputs: ``1 x D``, or ``K x D`` for many classes."""
        check_is_fitted(self, "state_")
        used: Floats = np.atleast_2d(self.state_.weights)
        capacity = self.capacity(self.n_features_in_)
        if capacity is None or self.n_components_ is None:
            return used[:, int(self.fit_intercept) :]
        weights = np.zeros((len(used), int(self.fit_intercept) + self.n_features_in_))
        weights[:, capacity.columns(self.n_components_)] = used
        return weights[:, int(self.fit_intercept) :]

    @property
    def intercept_(self) -> Floats:
        """Most probable weight of the constant: 1 number, or ``K`` for many classes."""
        check_is_fitted(self, "state_")
        weights = np.atleast_2d(self.state_.weights)
        return np.asarray(weights[:, 0] if self.fit_intercept else np.zeros(len(weights)))

    def decision_function(self, X: Any) -> Floats:
        """Logits of :meth:`predict_proba`: ``m``, or ``m x K`` for many classes.

        The logits at the most probable weights are ``X @ coef_.T + intercept_``. Those here are closer to 0 for
        uncertain rows.
        """
        check_is_fitted(self, "state_")
        return moderated_logits(self.state_, self.features(prediction_inputs(self, X)))

    def latent(self, X: Any) -> tuple[Floats, Floats]:
        """Mean and variance of the logits: ``m`` each, or ``m x K`` for many classes."""
        check_is_fitted(self, "state_")
        mean, variance = self.state_.latent(self.features(prediction_inputs(self, X)))
        return mean, variance

    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, averaged over the posterior, ``m x K``."""
        logits = self.decision_function(X)
        return np.ones((len(logits), 1)) if len(self.classes_) == 1 else probabilities(logits)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict classes.

        Args:
            X: Inputs, ``m x D``.
            return_std: Whether to return the standard deviation of the logits too.

        Returns:
            Classes, ``m``; with ``return_std`` a pair of classes and standard deviations.
        """
        check_is_fitted(self, "state_")
        predicted = self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        return (predicted, np.sqrt(self.latent(X)[1])) if return_std else predicted

    def _set(  # noqa: PLR0913, PLR0917 - the data and the fitted attributes of a model
        self, X: Floats, y: Any, classes: Any, alpha: float | None, learned_at: int, n_components: int | None
    ) -> Self:
        self.check(X.shape[1])
        codes, size = np.searchsorted(classes, y), max(2, len(classes))
        capacity, self.n_components_ = self.capacity(X.shape[1]), None
        features = self.features(X)
        start = getattr(self, "alpha_", 1.0)
        if self.alpha is not None:
            alpha = start = float(self.alpha)
        if capacity is not None:
            if n_components is None:
                n_components, alpha = capacity.choose(features, codes, size, start, learn=self.alpha is None)
            features = features[:, capacity.columns(n_components)]
        elif alpha is None:
            alpha = learn_alpha(features, codes, size, start)
        assert alpha is not None
        self.X_, self.y_, self.classes_, self.alpha_, self.learned_at_ = X, y, classes, alpha, learned_at
        self.n_components_ = n_components
        self.state_ = laplace(features, codes, size, alpha)
        return self


def class_labels(y: Any, classes: Any = None) -> Any:
    """Return labels as an array of classes, or raise an error that names an invalid one.

    Args:
        y: Labels.
        classes: All classes, if known.

    Raises:
        InvalidValueError: A label is missing, or is not one of the classes.

    Examples:
        >>> class_labels(["ham", "spam"]).tolist()
        ['ham', 'spam']
    """
    labels = np.asarray(as_labels(y))
    if labels.dtype.kind == "O":
        missing = [row for row, label in enumerate(labels) if is_missing(label)]
        if missing:
            raise InvalidValueError(f"y contains {labels[missing[0]]} at row {missing[0]}; every item needs a class")
        words = [isinstance(label, str) for label in labels]
        if any(words) and not all(words):
            stranger = labels[words.index(not words[0])]
            raise InvalidValueError(
                f"classes must be all words or all numbers, but {labels[0]!r} and {stranger!r} came; write all as words"
            )
        labels = np.asarray(labels.tolist())
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise InvalidValueError(
            f"y contains {'NaN' if np.isnan(labels[row]) else 'inf'} at row {row}; every item needs a class"
        )
    if labels.ndim != 1 or labels.dtype.kind not in "biuU":
        with catch_warnings():
            # Many classes among few labels need no warning here.
            filterwarnings("ignore", "The number of unique classes", UserWarning)
            check_classification_targets(labels)
    if classes is not None and not np.isin(labels, np.asarray(classes)).all():
        stranger = labels[~np.isin(labels, np.asarray(classes))].tolist()[0]
        raise InvalidValueError(
            f"y holds {stranger!r}, which is not in classes={list(classes)!r}; name every class there is"
        )
    return labels
