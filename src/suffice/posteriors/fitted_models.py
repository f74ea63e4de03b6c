"""Posteriors of fitted scikit-learn models, under the hyper-parameters and transformers of one model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from suffice.errors import InvalidTypeError, InvalidValueError, NotPositiveDefiniteError
from suffice.numerics import Floats
from suffice.posteriors.distributions import Gaussian, GaussianProcessPosterior, IndependentPosteriors, torch_prior

#: Largest number of weights of a posterior with a dense precision.
MOST_WEIGHTS: Final = 2000
# Largest distance of a model's weights from the minimum of its loss, in posterior deviations (root mean square).
_MOST_OFF: Final = 0.5
# Distance to the mode, in posterior standard deviations, at which the next Newton step is the last.
_NEAR: Final = 1e-10
_ROUNDED: Final = 1e-6
# Largest change of a logit by the last step.
_SLIGHT: Final = 1e-3
# Distance up to which the objective is nearly a parabola.
_CLOSE: Final = 0.1
_MOST_STEPS: Final = 200
_EPS: Final = float(np.finfo(np.float64).eps)

Rows = Any


class PosteriorPair(NamedTuple):
    """The posteriors before (old) and after (new) some labels, under one prior.

    Examples:
        >>> import suffice as sf
        >>> from suffice.posteriors import Gaussian
        >>> pair = PosteriorPair(old=Gaussian(0.0, 1.0), new=Gaussian(1.0, 1.0))
        >>> sf.kl(pair.new, pair.old) == sf.Step.between(*pair, n_labelled=3).kl_new_old == 0.5
        True
    """

    old: Any
    new: Any


def fitted_posterior(model: Any, X: Any, y: Any, *, refit: bool = False) -> Any:
    r"""Return the posterior of a fitted model, given the labels that it was fitted on.

    - ``LogisticRegression`` and ``LogisticRegressionCV``: Laplace's approximation, :math:`N(w, H^{-1})` with the
      Hessian ``H`` of the penalised loss at its minimum ``w``. The prior precision of a weight is ``1/C``. Intercepts
      have a flat prior; with ``solver="liblinear"``, the precision :math:`1 / (C s^2)` for ``intercept_scaling`` ``s``.
      For ``K > 2`` classes the posterior is that of ``K - 1`` orthonormal contrasts of the weights. Their sum has the
      prior under any labels, and does not change a divergence.
    - ``GaussianProcessClassifier``: Laplace's approximation, as the process after pseudo-observations with the noise
      :math:`1 / p(1 - p)`. For many classes, one process for each binary problem.
    - ``BayesianRidge`` and ``ARDRegression``: the Gaussian of coefficients and intercept, which has a flat prior.
      Coefficients that ``ARDRegression`` has pruned are left out.
    - ``GaussianProcessRegressor``: the function, with the kernel of the model.
    - An ``ExactGP`` of GPyTorch, such as ``SingleTaskGP`` of BoTorch: likewise; one noise variance, a constant mean.
    - The models of suffice: their own posterior.

    A pipeline, a search with ``best_estimator_`` and a wrapper of scikit-activeml have the posterior of the model in
    it. Inputs are transformed by the fitted transformers.

    The divergences of Laplace's approximations are estimates, above or below those of the exact posteriors;
    :func:`suffice.kl` and certificates say so.

    ``class_weight`` multiplies the loss of each label. ``"balanced"`` takes the weights from the labels in ``y``.

    Args:
        model: The fitted model.
        X: The inputs of the labels, as they were given to ``model.fit``.
        y: The labels.
        refit: Whether ``X`` and ``y`` are other labels than those that the model was fitted on. If so, the result is
            the posterior after these labels under the hyper-parameters and transformers of the model. Otherwise the
            model must agree with them.

    Returns:
        A posterior that :func:`suffice.kl` compares with another one of the same model.

    Raises:
        InvalidTypeError: The posterior of such a model is not known.
        InvalidValueError: The settings of the model have no posterior, the labels do not fit, or there are more than
            2,000 weights.

    Examples:
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = [[0.0], [1.0], [2.0], [3.0], [1.4]], ["no", "no", "yes", "yes", "yes"]
        >>> model = LogisticRegression().fit(X, y)
        >>> new = fitted_posterior(model, X, y)
        >>> new
        Gaussian(2 parameters, by precision)
        >>> import suffice as sf
        >>> old = fitted_posterior(model, X[:4], y[:4], refit=True)
        >>> round(sf.kl(new, old), 3)
        0.125
    """
    prior = model_prior(model)
    if prior is None:
        raise _unknown(model)
    features, labels = prior.features(X), _plain(y)
    _require_rows(features, labels)
    if prior.reduced(features.shape[1]):
        raise InvalidValueError(
            f"{prior.name} has more than {MOST_WEIGHTS:,} weights; use suffice.posteriors.posterior_pair, because the "
            "posteriors of two sets of labels cannot be compared otherwise"
        )
    return prior.posteriors(features, [(np.arange(len(labels)), labels)], own=None if refit else 0)[0]


def posterior_pair(model: Any, old: tuple[Any, Any], new: tuple[Any, Any]) -> PosteriorPair:
    """Return the posteriors before and after some labels, under the prior of one model.

    Both have the hyper-parameters and transformers of ``model``, so that they differ only in labels. Otherwise their
    divergence would be infinite, for example after a kernel was learned again.

    A linear model may have more than 2,000 weights if its prior is not flat and there are few labels. Labels contain no
    information about weights orthogonal to all labelled inputs, so there both posteriors are equal to the prior. The
    posteriors are then those of the coordinates of the weights in the span of the labelled inputs.

    Args:
        model: The model that was fitted on the new labels.
        old: Inputs and labels before.
        new: Inputs and labels that the model was fitted on.

    Returns:
        The two posteriors, for :meth:`suffice.Step.between`.

    Raises:
        InvalidTypeError: The posterior of such a model is not known.
        InvalidValueError: As for :func:`fitted_posterior`.

    Examples:
        >>> import suffice as sf
        >>> from sklearn.linear_model import BayesianRidge
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.1, 2.8]
        >>> pair = posterior_pair(BayesianRidge().fit(X, y), (X[:3], y[:3]), (X, y))
        >>> sf.Step.between(*pair, n_labelled=4).kl_new_old < 1.0
        True
    """
    prior = model_prior(model)
    if prior is None:
        raise _unknown(model)
    parts, sets, start = [], [], 0
    for X, y in (old, new):
        features, labels = prior.features(X), _plain(y)
        _require_rows(features, labels)
        parts.append(features)
        sets.append((np.arange(start, start + len(labels)), labels))
        start += len(labels)
    return PosteriorPair(*prior.posteriors(_stacked(parts), sets, own=1))


class ModelPrior(ABC):
    """Prior of a fitted model: hyper-parameters and transformers.

    Two priors are equal if the hyper-parameters are; transformers are compared by their results.

    Attributes:
        name: Name of the model, for messages.
        transform: The fitted transformers before the model, as one function.
    """

    name: str
    transform: Callable[[Any], Any]

    def features(self, X: Any) -> Rows:
        """Inputs of the model itself, ``n x D``: an array or a sparse matrix."""
        found = self.transform(X)
        if hasattr(found, "tocsr"):
            return found.tocsr()
        try:
            table = np.asarray(found, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.zeros(0)
        if table.ndim != 2:
            raise InvalidValueError(
                f"X must be a table of numbers for the posterior of {self.name}, or the model a pipeline that makes one"
            )
        return table

    def absent(self, labels: Sequence[Any]) -> str:  # noqa: ARG002 - for numbers nothing is
        """Reason why there is no posterior for labels of these classes; empty if there is one."""
        return ""

    def reduced(self, width: int) -> bool:  # noqa: ARG002 - most have no weights
        """Whether posteriors are in coordinates that depend on the inputs, and cannot be kept."""
        return False

    @abstractmethod
    def posteriors(
        self, features: Rows, sets: Sequence[tuple[Any, Sequence[Any]]], *, own: int | None = None
    ) -> list[Any]:
        """The posterior after each of several sets of labels, each given by rows of ``features`` and labels.

        Args:
            features: ``n x D``.
            sets: Rows and labels of each set.
            own: The set that the model was fitted on, which is checked; None if it is not known.
        """


def model_prior(model: Any) -> ModelPrior | None:
    """Return the prior of a fitted model, or None if its class has no known posterior.

    Raises:
        InvalidValueError: The class has one, but not with these settings; or the model is not fitted.

    Examples:
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> model_prior(RandomForestClassifier()) is None
        True
    """
    transformers, classes = [], None
    while True:
        if _is_a(model, ("sklearn", "Pipeline")):
            transformers += [step for _, step in model.steps[:-1] if step not in (None, "passthrough")]
            model = model.steps[-1][1]
        elif _is_a(model, ("sklearn", "BaseSearchCV")) and hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif type(model).__module__.startswith("skactiveml") and hasattr(model, "estimator_"):
            classes = np.asarray(model.classes_).tolist() if hasattr(model, "classes_") else None
            model = model.estimator_
        else:
            break

    def transform(X: Any) -> Any:
        for each in transformers:
            X = each.transform(X)
        return X

    if type(model).__module__.startswith("suffice.") and hasattr(model, "posterior_after"):
        _require_fitted(model, "state_")
        return _OwnPrior(type(model).__name__, transform, model.hyperparameters, model)
    if _is_a(model, ("gpytorch", "ExactGP")):
        return _torch_function_prior(model, transform)
    build = next((build for name, build in _PRIORS.items() if _is_a(model, ("sklearn", name))), None)
    return None if build is None else build(model, transform, classes)


def _is_a(model: Any, name: tuple[str, str]) -> bool:
    return any((base.__module__.partition(".")[0], base.__name__) == name for base in type(model).__mro__)


def _unknown(model: Any) -> InvalidTypeError:
    return InvalidTypeError(
        f"the posterior of {type(model).__name__} is not known. Known are those of scikit-learn's "
        f"{', '.join(_PRIORS)}, of GPyTorch's ExactGP, of the models of suffice, and of pipelines "
        "that end in one of them"
    )


def _laplace_of(name: str) -> str:
    """What such a posterior approximates, see :func:`~suffice.posteriors.caveat`."""
    return f"the posterior of {name} is Laplace's approximation, so the divergence is an estimate"


def _plain(y: Any) -> list[Any]:
    return list(np.asarray(y).tolist()) if not isinstance(y, list | tuple) else list(y)


def _require_rows(features: Rows, labels: Sequence[Any]) -> None:
    if features.shape[0] != len(labels) or not len(labels):
        raise InvalidValueError(
            f"X has {features.shape[0]} rows and y {len(labels)} labels; give one label for each row, and at least one"
        )


def _stacked(parts: list[Rows]) -> Rows:
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    from scipy.sparse import vstack

    return vstack(parts, format="csr")


def same_rows(one: Rows, other: Rows) -> bool:
    """Whether two tables of features are equal, dense or sparse.

    Examples:
        >>> same_rows(np.zeros((2, 1)), np.zeros((2, 1)))
        True
    """
    if one.shape != other.shape or isinstance(one, np.ndarray) != isinstance(other, np.ndarray):
        return False
    return bool(np.array_equal(one, other) if isinstance(one, np.ndarray) else (one != other).nnz == 0)


def _dense(features: Rows) -> Floats:
    return np.asarray(features.toarray() if hasattr(features, "toarray") else features, dtype=np.float64)


def _plain_classes(model: Any, classes: list[Any] | None) -> tuple[Any, ...]:
    """The classes of a model by the names that the labels have; a wrapper may fit it on the numbers of its classes."""
    own = np.asarray(model.classes_).tolist()
    return tuple(own if classes is None or set(own) <= set(classes) else (classes[int(code)] for code in own))


def _named(classes: Sequence[Any]) -> str:
    return f"class {classes[0]!r}" if len(classes) == 1 else f"classes {', '.join(map(repr, classes))}"


# Models of suffice.


@dataclass(frozen=True)
class _OwnPrior(ModelPrior):
    """The prior of a model of suffice."""

    name: str
    transform: Callable[[Any], Any] = field(compare=False)
    hyperparameters: Any
    model: Any = field(compare=False)

    def absent(self, labels: Sequence[Any]) -> str:
        known = getattr(self.model, "classes_", None)
        strangers = [] if known is None else sorted(set(labels).difference(np.asarray(known).tolist()), key=str)
        return f"{_named(strangers)} had labels before, and {self.name} does not know it" if strangers else ""

    def posteriors(
        self, features: Rows, sets: Sequence[tuple[Any, Sequence[Any]]], *, own: int | None = None
    ) -> list[Any]:
        table = _dense(features)
        return [
            self.model.posterior if number == own else self.model.posterior_after(table[rows], labels)
            for number, (rows, labels) in enumerate(sets)
        ]


# Linear models.


class _Design(NamedTuple):
    """Features of a linear model, and the prior precisions of their weights.

    Attributes:
        rows: ``n x J``; the last column is the constant, if there is an intercept.
        precisions: ``J`` prior precisions, 0 for a flat prior.
        coordinates: A function that returns weights, ``M x D``, as coordinates, ``M x J`` without the constant.
    """

    rows: Floats
    precisions: Floats
    coordinates: Callable[[Floats], Floats]


def _design(name: str, features: Rows, precisions: Floats, intercept: float | None, outputs: int = 1) -> _Design:
    """Features of a linear model as a dense array: all of them, or their coordinates in the span of the rows.

    Args:
        name: Name of the model, for messages.
        features: ``n x D``.
        precisions: Prior precisions of the weights, ``D``.
        intercept: Prior precision of the intercept, None if there is none.
        outputs: Number of weights for each feature.
    """
    width = features.shape[1] + (intercept is not None)
    constant = [] if intercept is None else [intercept]
    weights = outputs * width
    if weights <= MOST_WEIGHTS:
        rows = _dense(features)
        coordinates: Callable[[Floats], Floats] = np.asarray
    else:
        if not (precisions > 0.0).all():
            raise _too_many(name, weights, "The prior is flat, so that all of them count")
        features, where = _distinct_rows(features)
        if features.shape[0] >= MOST_WEIGHTS:
            raise _too_many(name, weights, f"The {features.shape[0]:,} labels do not reduce them")
        scale = 1.0 / np.sqrt(precisions)
        scaled = features.multiply(scale).tocsr() if hasattr(features, "multiply") else features * scale
        gram = _dense(scaled @ scaled.T)
        values, vectors = np.linalg.eigh(gram)
        kept = values > len(values) * _EPS * max(float(values[-1]), np.finfo(np.float64).tiny)
        roots, basis = np.sqrt(values[kept]), vectors[:, kept]
        reduced = outputs * (len(roots) + len(constant))
        if reduced > MOST_WEIGHTS:
            raise _too_many(name, weights, f"Those in the span of {features.shape[0]:,} labels are {reduced:,}")
        rows, precisions = (basis * roots)[where], np.ones(len(roots))

        def coordinates(weights: Floats) -> Floats:
            return np.asarray((scaled @ (weights / scale).T).T @ basis / roots)

    if constant:
        rows = np.column_stack([rows, np.ones(len(rows))])
    return _Design(rows, np.concatenate([precisions, constant]), coordinates)


def _distinct_rows(features: Rows) -> tuple[Rows, Any]:
    """The rows without repetitions, and the place of each row among them."""
    if isinstance(features, np.ndarray):
        keys = [row.tobytes() for row in features]
    else:
        table = features.sorted_indices()
        parts = [np.split(each, table.indptr[1:-1]) for each in (table.indices, table.data)]
        keys = [one.tobytes() + other.tobytes() for one, other in zip(*parts, strict=True)]
    places: dict[bytes, int] = {}
    where = np.array([places.setdefault(key, len(places)) for key in keys], dtype=np.intp)
    return features[np.unique(where, return_index=True)[1]], where


def _too_many(name: str, weights: int, why: str) -> InvalidValueError:
    size = 8.0 * weights**2 / 1e9
    return InvalidValueError(
        f"the posterior of {name} has {weights:,} weights, whose precision would take {size:,.1f} GB, and at most "
        f"{MOST_WEIGHTS:,} are possible. {why}. Reduce the features, for instance with TruncatedSVD(100) before the "
        "model, or use a rule that reads predictions"
    )


def _require_agreement(name: str, weights: Floats, posterior: Gaussian) -> None:
    """Raise an error if a model was not fitted on the labels.

    Raises:
        InvalidValueError: The weights differ too much from those for the labels.
    """
    shift = (weights.ravel() - posterior.mean) @ posterior.factor
    off = float(np.sqrt(shift @ shift / len(shift)))
    if not off <= _MOST_OFF:
        raise InvalidValueError(
            f"the weights of {name} are not those that X and y give: they are {off:.2g} posterior standard deviations "
            f"apart, and at most {_MOST_OFF} is possible. Fit the model on these labels without sample_weight, and let "
            "its solver converge (scale the features, or raise max_iter)"
        )


@dataclass(frozen=True)
class _NumberPrior(ModelPrior):
    """The prior of ``BayesianRidge`` and ``ARDRegression``."""

    name: str
    transform: Callable[[Any], Any] = field(compare=False)
    noise: float
    precisions: tuple[float, ...]
    kept: tuple[bool, ...]
    fit_intercept: bool
    weights: Floats = field(compare=False)

    def reduced(self, width: int) -> bool:
        return width + self.fit_intercept > MOST_WEIGHTS

    def posteriors(
        self, features: Rows, sets: Sequence[tuple[Any, Sequence[Any]]], *, own: int | None = None
    ) -> list[Any]:
        _require_width(self.name, features, len(self.kept))
        used = features if all(self.kept) else features[:, np.flatnonzero(self.kept)]
        design = _design(self.name, used, np.array(self.precisions), 0.0 if self.fit_intercept else None)
        found = []
        for number, (rows, labels) in enumerate(sets):
            inputs = design.rows[rows] / np.sqrt(self.noise)
            precision = np.diag(design.precisions) + inputs.T @ inputs
            pull = inputs.T @ (np.array(labels, dtype=np.float64) / np.sqrt(self.noise))
            posterior = Gaussian(np.linalg.solve(precision, pull), precision=precision)
            if number == own:
                weights = design.coordinates(self.weights[None, : used.shape[1]])
                _require_agreement(self.name, np.append(weights, self.weights[used.shape[1] :]), posterior)
            found.append(posterior)
        return found


def _require_width(name: str, features: Rows, width: int) -> None:
    if features.shape[1] != width:
        raise InvalidValueError(f"X has {features.shape[1]} features, and {name} was fitted on {width}")


def _number_prior(model: Any, transform: Callable[[Any], Any], classes: list[Any] | None) -> ModelPrior:
    del classes
    name = type(model).__name__
    _require_fitted(model, "coef_")
    weights, precisions = np.asarray(model.coef_, dtype=np.float64), np.asarray(model.lambda_, dtype=np.float64)
    kept = precisions < model.threshold_lambda if hasattr(model, "threshold_lambda") else np.ones(len(weights), bool)
    if not kept.any() and not model.fit_intercept:
        raise InvalidValueError(f"{name} has no weights left: each precision is above threshold_lambda; raise it")
    return _NumberPrior(
        name,
        transform,
        noise=1.0 / float(model.alpha_),
        precisions=tuple(np.broadcast_to(precisions, weights.shape)[kept].tolist()),
        kept=tuple(kept.tolist()),
        fit_intercept=bool(model.fit_intercept),
        weights=np.append(weights[kept], [float(model.intercept_)] * bool(model.fit_intercept)),
    )


@dataclass(frozen=True)
class _LogisticPrior(ModelPrior):
    """The prior of ``LogisticRegression``: precisions of weights and intercepts, and the weights of labels."""

    name: str
    transform: Callable[[Any], Any] = field(compare=False)
    classes: tuple[Any, ...]
    precision: float
    intercept: float | None
    class_weight: Any
    weights: Floats = field(compare=False)

    @property
    def basis(self) -> Floats:
        """Logits of the ``K`` classes by ``M`` outputs, ``K x M``: one class against the other, or contrasts."""
        size = len(self.classes)
        if size == 2:
            return np.array([[0.0], [1.0]])
        # Helmert's contrasts: column m is 1 in its first m + 1 rows and -(m + 1) in the next one, normalised.
        basis = np.zeros((size, size - 1))
        for m in range(size - 1):
            basis[: m + 1, m], basis[m + 1, m] = 1.0, -(m + 1.0)
        return np.asarray(basis / np.linalg.norm(basis, axis=0))

    def reduced(self, width: int) -> bool:
        return bool(self.basis.shape[1] * (width + (self.intercept is not None)) > MOST_WEIGHTS)

    def absent(self, labels: Sequence[Any]) -> str:
        given = set(labels)
        strangers = sorted(given.difference(self.classes), key=str)
        if strangers:
            return f"{_named(strangers)} had labels before, and {self.name} does not know it"
        missing = [name for name in self.classes if name not in given]
        if missing and (self.intercept == 0.0 or self.precision == 0.0):
            return (
                f"{_named(missing)} had no label before, and without one there is no posterior, because the intercepts "
                f"of {self.name} have a flat prior"
            )
        return ""

    def posteriors(
        self, features: Rows, sets: Sequence[tuple[Any, Sequence[Any]]], *, own: int | None = None
    ) -> list[Any]:
        _require_width(self.name, features, self.weights.shape[1] - (self.intercept is not None))
        basis, place = self.basis, {name: code for code, name in enumerate(self.classes)}
        precisions = np.full(features.shape[1], self.precision)
        design = _design(self.name, features, precisions, self.intercept, basis.shape[1])
        # The weights of the model as outputs; those of contrasts are inner products, because the basis is orthonormal.
        outputs = self.weights if len(self.classes) == 2 else basis.T @ self.weights
        width = features.shape[1]
        start = np.column_stack([design.coordinates(outputs[:, :width]), outputs[:, width:]])
        found = []
        for number, (rows, labels) in enumerate(sets):
            if reason := self.absent(labels):
                raise InvalidValueError(f"y cannot be used: {reason}")
            codes = np.array([place[label] for label in labels], dtype=np.intp)
            weights = self._label_weights(codes)
            try:
                mode, information = _logistic_mode(design.rows[rows], codes, weights, basis, design.precisions, start)
                posterior = Gaussian(mode.ravel(), precision=information, approximation=_laplace_of(self.name))
            except (NotPositiveDefiniteError, np.linalg.LinAlgError):
                raise InvalidValueError(
                    f"{self.name} has no posterior after these {len(labels)} labels: without a penalty its weights are "
                    "not determined by them, or infinite. Give it a penalty (a finite C) or fewer features"
                    if self.precision == 0.0
                    else f"the precision of {self.name} is too close to singular after these {len(labels)} labels; "
                    "scale the features, or use a smaller C"
                ) from None
            if number == own:
                _require_agreement(self.name, start, posterior)
            found.append(posterior)
        return found

    def _label_weights(self, codes: Any) -> Floats:
        """The weight of each label's loss."""
        if self.class_weight is None:
            return np.ones(len(codes))
        if self.class_weight == "balanced":
            counts = np.bincount(codes, minlength=len(self.classes))
            return np.asarray(len(codes) / (np.count_nonzero(counts) * counts[codes]))
        given = dict(self.class_weight)
        return np.asarray(np.array([float(given.get(name, 1.0)) for name in self.classes])[codes])


def _logistic_prior(model: Any, transform: Callable[[Any], Any], classes: list[Any] | None) -> ModelPrior:
    name = type(model).__name__
    _require_fitted(model, "coef_")
    searched = hasattr(model, "Cs")
    if searched and not model.refit:
        raise InvalidValueError(
            f"the weights of this {name} are averages over folds, which have no posterior; set refit=True"
        )
    chosen = np.unique(np.asarray(model.C_ if searched else model.C, dtype=np.float64))
    if len(chosen) > 1:
        raise InvalidValueError(f"this {name} has another C for each class, {chosen.tolist()}; give it one")
    strength, penalty = float(chosen[0]), getattr(model, "penalty", "deprecated")
    share = {"l1": 1.0, "l2": 0.0, None: 0.0}.get(penalty)
    if share is None:
        ratio: Any = getattr(model, "l1_ratio_" if searched else "l1_ratio", None)
        share = max((float(each) for each in np.ravel(ratio) if each is not None), default=0.0)
    if share > 0.0:
        raise InvalidValueError(
            f"this {name} has an l1 penalty, whose posterior is not Gaussian; use an l2 penalty (l1_ratio=0)"
        )
    many, scheme = len(model.classes_) > 2, getattr(model, "multi_class", "auto")
    if scheme == ("ovr" if many else "multinomial") or (many and model.solver == "liblinear"):
        raise InvalidValueError(
            f"this {name} fits {'one class against the rest' if many else 'two classes as many'}, whose posterior is "
            "not known; use another solver than liblinear, and leave out multi_class"
        )
    precision = 0.0 if penalty is None else 1.0 / strength
    # The solver liblinear puts the prior of all weights on the weight of a constant feature.
    flat = model.solver != "liblinear"
    intercept = 0.0 if flat else precision / float(model.intercept_scaling) ** 2
    weights = np.asarray(model.coef_, dtype=np.float64)
    if model.fit_intercept:
        weights = np.column_stack([weights, np.asarray(model.intercept_, dtype=np.float64)])
    known = _plain_classes(model, classes)
    given = model.class_weight
    if isinstance(given, dict):
        renamed = dict(zip(np.asarray(model.classes_).tolist(), known, strict=True))
        given = tuple((renamed[each], float(given[each])) for each in renamed if each in given)
    return _LogisticPrior(
        name,
        transform,
        classes=known,
        precision=precision,
        intercept=intercept if model.fit_intercept else None,
        class_weight=given,
        weights=weights,
    )


def _logistic_mode(  # noqa: PLR0913, PLR0917 - the data of one problem
    rows: Floats, codes: Any, weights: Floats, basis: Floats, precisions: Floats, start: Floats
) -> tuple[Floats, Floats]:
    r"""Return the minimum of the penalised loss of a softmax, and its Hessian.

    With the logits :math:`B \beta x` of a row and the probabilities ``p``, the loss of a label is
    :math:`-\log p_{label}`. By the outputs :math:`\beta x` its gradient is :math:`B'(p - e_{label})`, and its Hessian
    :math:`V = \sum_k p_k (B_k - \mu)(B_k - \mu)'` with :math:`\mu = B'p`.

    Args:
        rows: ``n x J``.
        codes: The class of each row.
        weights: The weight of each loss, ``n``.
        basis: ``B``, ``K x M``.
        precisions: Prior precisions, ``J``.
        start: ``M x J``.

    Returns:
        The minimum, ``M x J``, and the Hessian, ``M J x M J``.

    Raises:
        numpy.linalg.LinAlgError: There is no minimum, or the Hessian is not positive definite.
    """
    from scipy.linalg import cho_factor, cho_solve
    from scipy.special import logsumexp, softmax

    own = np.arange(len(rows)), codes

    def objective(beta: Floats) -> float:
        logits = rows @ beta.T @ basis.T
        loss = weights @ (logsumexp(logits, axis=1) - logits[own])
        return float(loss + 0.5 * (precisions * beta**2).sum())

    def probabilities_and_gradient(beta: Floats) -> tuple[Floats, Floats]:
        p = np.asarray(softmax(rows @ beta.T @ basis.T, axis=1))
        residual = p.copy()
        residual[own] -= 1.0
        return p, (basis.T @ (residual * weights[:, None]).T) @ rows + precisions * beta

    def newton(factor: Any, gradient: Floats) -> tuple[Floats, float]:
        step = cho_solve(factor, gradient.ravel()).reshape(gradient.shape)
        return step, float(np.sqrt(max(0.0, float((gradient * step).sum()))))

    beta, nearest = start if np.isfinite(start).all() else np.zeros_like(start), np.inf
    for _ in range(_MOST_STEPS):
        p, gradient = probabilities_and_gradient(beta)
        information = _curvature(rows, p, weights, basis)
        information[np.diag_indices_from(information)] += np.tile(precisions, len(beta))
        factor = cho_factor(information, lower=True)
        step, distance = newton(factor, gradient)
        if not np.isfinite(distance):
            break
        # If a new Hessian does not halve a small distance, the rest is rounding. If there is no minimum, because the
        # classes are separable and the prior is flat, each step still changes logits by about 1.
        near = distance <= _NEAR or 0.5 * nearest < distance < _ROUNDED
        if near and np.abs(rows @ step.T).max() <= _SLIGHT:
            return beta - step, information
        nearest = min(nearest, distance)
        if distance > _CLOSE:
            value, share = objective(beta), 1.0
            while not objective(beta - share * step) <= value - 1e-4 * share * distance**2:
                share *= 0.5
                if share < 1e-12:
                    raise np.linalg.LinAlgError("no step lowers the objective")
            beta = beta - share * step
            continue
        # Close to the minimum, steps with one Hessian converge fast and are cheap.
        last = np.inf
        while distance > _NEAR and distance <= 0.1 * last:
            beta, last = beta - step, distance
            step, distance = newton(factor, probabilities_and_gradient(beta)[1])
    raise np.linalg.LinAlgError("Newton's method does not converge")


def _curvature(rows: Floats, p: Floats, weights: Floats, basis: Floats) -> Floats:
    """Hessian of the weighted loss, ``M J x M J``; no product of probabilities is a difference of nearly equal ones."""
    outputs, width = basis.shape[1], rows.shape[1]
    mean = p @ basis
    blocks = np.empty((outputs, width, outputs, width))
    for m in range(outputs):
        centred = p * (basis[:, m] - mean[:, m : m + 1])
        spread = (centred @ basis - centred.sum(axis=1)[:, None] * mean) * weights[:, None]
        # A matrix times its own transpose takes half of the time.
        halves = rows * np.sqrt(np.maximum(spread[:, m : m + 1], 0.0))
        blocks[m, :, m] = halves.T @ halves
        for other in range(m + 1, outputs):
            product = rows.T @ (rows * spread[:, other : other + 1])
            product = 0.5 * (product + product.T)
            blocks[m, :, other] = blocks[other, :, m] = product
    return blocks.reshape(outputs * width, outputs * width)


# Gaussian processes.


@dataclass(frozen=True)
class _FunctionPrior(ModelPrior):
    """The prior of ``GaussianProcessRegressor``: its kernel, and the standardisation of labels."""

    name: str
    transform: Callable[[Any], Any] = field(compare=False)
    kernel: Any
    noise: float
    scaling: tuple[float, ...]
    labels: int = field(compare=False)

    def posteriors(
        self, features: Rows, sets: Sequence[tuple[Any, Sequence[Any]]], *, own: int | None = None
    ) -> list[Any]:
        inputs = _dense(features)
        noise = _white(self.kernel, inputs) + self.noise
        centre, scale = self.scaling or (0.0, 1.0)
        found = []
        for number, (rows, labels) in enumerate(sets):
            if number == own:
                _require_count(self.name, len(labels), self.labels)
            y = (np.array(labels, dtype=np.float64) - centre) / scale
            found.append(
                GaussianProcessPosterior(inputs[rows], y, noise=noise[rows], kernel=self.kernel, scaling=self.scaling)
            )
        return found


def _white(kernel: Any, inputs: Floats) -> Floats:
    """Return the white noise of a kernel, which is excluded with two arguments and included with one."""
    parts = [inputs[k : k + 512] for k in range(0, len(inputs), 512)]
    return np.concatenate([kernel.diag(part) - np.diag(kernel(part, part)) for part in parts])


def _require_count(name: str, came: int, fitted: int) -> None:
    if came != fitted:
        raise InvalidValueError(f"{name} was fitted on {fitted} labels, and {came} came; fit it on all of them")


def _require_vectors(name: str, kernel: Any) -> None:
    if not getattr(kernel, "requires_vector_input", True):
        raise InvalidValueError(f"the kernel of {name} is not one of vectors, and posteriors of others are not known")


def _function_prior(model: Any, transform: Callable[[Any], Any], classes: list[Any] | None) -> ModelPrior:
    del classes
    name = type(model).__name__
    _require_fitted(model, "X_train_")
    _require_vectors(name, model.kernel_)
    if np.ndim(model.y_train_) > 1 and np.shape(model.y_train_)[1] > 1:
        raise InvalidValueError(f"this {name} has {np.shape(model.y_train_)[1]} outputs; fit one model for each")
    if np.ndim(model.alpha):
        raise InvalidValueError(f"alpha of this {name} is one number for each label; give one number for all of them")
    scaling: tuple[float, ...] = (float(np.squeeze(model._y_train_mean)), float(np.squeeze(model._y_train_std)))
    scaling = () if scaling == (0.0, 1.0) else scaling
    return _FunctionPrior(name, transform, model.kernel_, float(model.alpha), scaling, len(model.X_train_))


def _torch_function_prior(model: Any, transform: Callable[[Any], Any]) -> ModelPrior:
    name, prior = type(model).__name__, torch_prior(model)
    if len(prior.noise) != 1:
        raise InvalidValueError(f"the noise of this {name} is one number for each label; give one for all of them")

    def inputs(X: Any) -> Any:
        given = transform(X)
        return given.detach().cpu().numpy() if hasattr(given, "detach") else given

    return _FunctionPrior(name, inputs, prior.kernel, float(prior.noise[0]), prior.scaling, len(model.train_targets))


@dataclass(frozen=True)
class _ClassProcessPrior(ModelPrior):
    """The prior of ``GaussianProcessClassifier``.

    Attributes:
        kernels: The kernel of each binary problem.
        problems: The codes of its first class and of its second class.
    """

    name: str
    transform: Callable[[Any], Any] = field(compare=False)
    classes: tuple[Any, ...]
    kernels: tuple[Any, ...]
    problems: tuple[tuple[frozenset[int], frozenset[int]], ...]
    labels: int | None = field(compare=False)

    def absent(self, labels: Sequence[Any]) -> str:
        strangers = sorted(set(labels).difference(self.classes), key=str)
        return f"{_named(strangers)} had labels before, and {self.name} does not know it" if strangers else ""

    def posteriors(
        self, features: Rows, sets: Sequence[tuple[Any, Sequence[Any]]], *, own: int | None = None
    ) -> list[Any]:
        inputs, found = _dense(features), []
        place = {name: code for code, name in enumerate(self.classes)}
        for number, (rows, labels) in enumerate(sets):
            if reason := self.absent(labels):
                raise InvalidValueError(f"y cannot be used: {reason}")
            if number == own and self.labels is not None:
                _require_count(self.name, len(labels), self.labels)
            codes = np.array([place[label] for label in labels], dtype=np.intp)
            parts = []
            for kernel, (first, second) in zip(self.kernels, self.problems, strict=True):
                used = np.isin(codes, list(first | second))
                signs = np.where(np.isin(codes[used], list(second)), 1.0, -1.0)
                parts.append(_class_process(inputs[rows][used], signs, kernel, _laplace_of(self.name)))
            found.append(parts[0] if len(parts) == 1 else IndependentPosteriors(parts))
        return found


def _class_process(inputs: Floats, signs: Floats, kernel: Any, approximation: str) -> GaussianProcessPosterior:
    r"""Laplace's approximation of a binary Gaussian process classifier as a process after pseudo-observations.

    At the mode ``f`` of the posterior, with :math:`W = p (1 - p)`, the approximation is the process that has observed
    :math:`f + s / \sigma(s f)` with the noise :math:`1/W`, for labels ``s`` of -1 and 1.

    Reference: [RasmussenWilliams2006] section 3.4.
    """
    from scipy.special import expit

    if not len(inputs):
        nothing = np.zeros(0)
        return GaussianProcessPosterior(inputs, nothing, noise=nothing, kernel=kernel, approximation=approximation)
    white = _white(kernel, inputs)
    f = _process_mode(np.asarray(kernel(inputs, inputs), dtype=np.float64) + np.diag(white), signs)
    noise = white + 1.0 / np.maximum(expit(f) * expit(-f), np.finfo(np.float64).tiny)
    return GaussianProcessPosterior(
        inputs, f + signs / expit(signs * f), noise=noise, kernel=kernel, approximation=approximation
    )


def _process_mode(covariance: Floats, signs: Floats) -> Floats:
    """The most probable latent values of a binary Gaussian process classifier, ``n``.

    Reference: [RasmussenWilliams2006] algorithm 3.1, with a search along each step.
    """
    from scipy.linalg import cho_factor, cho_solve
    from scipy.special import expit, log_expit

    def objective(a: Floats, f: Floats) -> float:
        return float(0.5 * a @ f - log_expit(signs * f).sum())

    a = np.zeros(len(signs))
    f = np.zeros(len(signs))
    value = objective(a, f)
    for _ in range(_MOST_STEPS):
        W = expit(f) * expit(-f)
        root = np.sqrt(W)
        B = root[:, None] * covariance * root
        B[np.diag_indices_from(B)] += 1.0
        b = W * f + signs * expit(-signs * f)
        step = b - root * cho_solve(cho_factor(B, lower=True), root * (covariance @ b)) - a
        moved = covariance @ step
        distance = float(np.sqrt(max(0.0, float(step @ moved + W @ moved**2))))
        if distance <= _NEAR:
            return np.asarray(f + moved)
        share = 1.0
        while (following := objective(a + share * step, f + share * moved)) > value and distance > 1e-3:
            share *= 0.5
            if share < 1e-12:
                return f
        a, f, value = a + share * step, f + share * moved, following
    return f


def _class_process_prior(model: Any, transform: Callable[[Any], Any], classes: list[Any] | None) -> ModelPrior:
    name = type(model).__name__
    _require_fitted(model, "base_estimator_")
    size, base = len(model.classes_), model.base_estimator_
    every = frozenset(range(size))
    count = None
    if size == 2:
        binary, problems = [base], [(frozenset({0}), frozenset({1}))]
    elif model.multi_class == "one_vs_rest":
        binary, problems = base.estimators_, [(every - {k}, frozenset({k})) for k in range(size)]
    else:
        pairs = [(i, j) for i in range(size) for j in range(i + 1, size)]
        binary, problems = base.estimators_, [(frozenset({i}), frozenset({j})) for i, j in pairs]
    if size == 2 or model.multi_class == "one_vs_rest":
        count = len(binary[0].X_train_)
    kernels = tuple(each.kernel_ for each in binary)
    _require_vectors(name, kernels[0])
    return _ClassProcessPrior(name, transform, _plain_classes(model, classes), kernels, tuple(problems), count)


def _require_fitted(model: Any, attribute: str) -> None:
    if not hasattr(model, attribute):
        raise InvalidValueError(f"this {type(model).__name__} is not fitted yet; call fit(X, y) first")


_PRIORS: Final[dict[str, Callable[[Any, Callable[[Any], Any], list[Any] | None], ModelPrior]]] = {
    "LogisticRegression": _logistic_prior,
    "GaussianProcessClassifier": _class_process_prior,
    "BayesianRidge": _number_prior,
    "ARDRegression": _number_prior,
    "GaussianProcessRegressor": _function_prior,
}
