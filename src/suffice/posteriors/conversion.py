"""Conversion of other libraries' fitted models and distributions to posteriors, without importing those libraries."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from suffice.errors import InvalidValueError
from suffice.numerics.special_functions import Floats
from suffice.posteriors.distributions import Gaussian, GaussianProcessPosterior


def as_posterior(thing: object) -> object:
    """Return ``thing`` as a posterior that :func:`suffice.kl` knows, or ``thing`` itself if it is not a known class.

    Known are scikit-learn's fitted ``BayesianRidge`` (the coefficients alone: see :func:`caveat`) and
    ``GaussianProcessRegressor`` (the function; white noise in the kernel counts as noise), and from
    ``torch.distributions``: ``Normal``, ``MultivariateNormal``, ``LowRankMultivariateNormal`` and ``Independent`` ones.

    Args:
        thing: A posterior, a fitted model or a distribution.

    Returns:
        A posterior, or ``thing``.

    Raises:
        InvalidValueError: A known class that cannot be converted: not fitted, batched, several outputs.

    Examples:
        >>> from sklearn.linear_model import BayesianRidge
        >>> as_posterior(BayesianRidge().fit([[0.0], [1.0], [2.0]], [0.1, 0.9, 2.1]))
        Gaussian(1 parameter, by covariance)
    """
    convert = _conversion(thing)
    return thing if convert is None else convert(thing)


def caveat(thing: object) -> str:
    """What the posterior of a converted model leaves out, so that a divergence of it guarantees nothing; or nothing.

    scikit-learn's ``BayesianRidge`` fits an intercept outside its posterior. It moves with every label and no
    divergence of the coefficients sees it. :func:`~suffice.posteriors.fitted_posterior`, which is given the labels,
    includes it.

    Examples:
        >>> from sklearn.linear_model import BayesianRidge
        >>> caveat(BayesianRidge(fit_intercept=False))
        ''
    """
    if _conversion(thing) is not _bayesian_ridge or not getattr(thing, "fit_intercept", False):
        return ""
    return (
        "BayesianRidge keeps its intercept outside the posterior; use suffice.posteriors.fitted_posterior, or add a "
        "column of ones, or centre y by a constant, and use fit_intercept=False"
    )


def _conversion(thing: object) -> Callable[[Any], object] | None:
    keys = ((base.__module__.partition(".")[0], base.__name__) for base in type(thing).__mro__)
    return next((_CONVERSIONS[key] for key in keys if key in _CONVERSIONS), None)


def _bayesian_ridge(model: Any) -> Gaussian:
    _require_fitted(model, "coef_")
    return Gaussian(model.coef_, model.sigma_)


def _gaussian_process(model: Any) -> GaussianProcessPosterior:
    _require_fitted(model, "X_train_")
    X, y = np.asarray(model.X_train_, dtype=np.float64), np.asarray(model.y_train_, dtype=np.float64)
    if y.ndim > 1 and y.shape[1] > 1:
        raise InvalidValueError(
            f"this GaussianProcessRegressor has {y.shape[1]} outputs; fit one per output, and give the sum of their KLs"
        )
    kernel = model.kernel_
    # Called with two arguments a kernel leaves white noise out; called with one it puts it in.
    white = kernel.diag(X) - np.diag(kernel(X, X))
    scaling: tuple[float, ...] = (float(np.squeeze(model._y_train_mean)), float(np.squeeze(model._y_train_std)))
    # A model that does not rescale y is a plain process.
    scaling = () if scaling == (0.0, 1.0) else scaling
    return GaussianProcessPosterior(X, y.reshape(len(X)), noise=white + model.alpha, kernel=kernel, scaling=scaling)


def _torch_normal(distribution: Any) -> Gaussian:
    return Gaussian(_numbers(distribution.loc).ravel(), diagonal=_numbers(distribution.scale).ravel() ** 2)


def _torch_multivariate(distribution: Any) -> Gaussian:
    if len(distribution.batch_shape):
        raise InvalidValueError(
            f"this {type(distribution).__name__} is a batch of shape {tuple(distribution.batch_shape)}; "
            "give the distributions one at a time"
        )
    return Gaussian(_numbers(distribution.loc), cholesky=np.tril(_numbers(distribution.scale_tril)))


def _torch_independent(distribution: Any) -> object:
    return as_posterior(distribution.base_dist)


def _numbers(tensor: Any) -> Floats:
    return np.asarray(tensor.detach().cpu().double().numpy())


def _require_fitted(model: Any, attribute: str) -> None:
    if not hasattr(model, attribute):
        raise InvalidValueError(f"this {type(model).__name__} is not fitted yet; call fit(X, y) first")


_CONVERSIONS: Final[dict[tuple[str, str], Callable[[Any], object]]] = {
    ("sklearn", "BayesianRidge"): _bayesian_ridge,
    ("sklearn", "GaussianProcessRegressor"): _gaussian_process,
    ("torch", "Normal"): _torch_normal,
    ("torch", "MultivariateNormal"): _torch_multivariate,
    ("torch", "LowRankMultivariateNormal"): _torch_multivariate,
    ("torch", "Independent"): _torch_independent,
}
