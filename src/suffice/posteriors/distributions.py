"""Posteriors as immutable values, and conversion of other libraries' models and distributions to them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from suffice.arguments import floats, real, whole
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.numerics import Floats, cholesky, solve_lower, symmetric


class Value:
    """Base of value objects that hold arrays: the arrays stay read-only after copying and unpickling."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        for part in state.values():
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        self.__dict__.update(state)


def frozen(value: ArrayLike, name: str, *, ndim: int | None = None, promote: bool = False) -> Floats:
    """Return a read-only float64 copy of ``value``, or raise an error that describes the problem.

    Args:
        value: Anything that can be converted to numbers.
        name: Name of the argument in an error.
        ndim: Required number of dimensions; any number by default.
        promote: Whether axes of length 1 are added if there are fewer dimensions than ``ndim``.

    Raises:
        InvalidTypeError: ``value`` is not numeric.
        InvalidValueError: The number of dimensions is wrong, or an entry is NaN or infinite.

    Examples:
        >>> frozen([1, 2], "mean", ndim=1)
        array([1., 2.])
    """
    array = floats(value, name)
    if promote and ndim is not None:
        array = array.reshape((1,) * (ndim - array.ndim) + array.shape)
    if ndim is not None and array.ndim != ndim:
        raise InvalidValueError(f"{name} must have {ndim} dimension(s), but its shape is {array.shape}")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        index = tuple(int(i) for i in bad[0])
        raise InvalidValueError(f"{name} must be finite, but is {array[index]} at index {index}")
    array.flags.writeable = False
    return array


@dataclass(frozen=True, init=False, eq=False)
class Gaussian(Value):
    """The distribution ``N(mean, S)`` over ``J`` parameters, given by exactly one description of ``S``.

    The lower factor of the given matrix is kept: of the covariance (``S = L L'``) or of the precision
    (``S^-1 = R R'``). Inverses and determinants are not computed.

    Args:
        mean: ``J`` numbers.
        covariance: ``S``, ``J x J``.
        precision: ``S^-1``, ``J x J``.
        cholesky: ``L``, lower triangular, ``J x J``.
        diagonal: The ``J`` variances of independent parameters.
        approximation: What the Gaussian approximates, in a clause, if it is not the posterior itself: its divergences
            are then estimates, see :func:`caveat`. Empty if it is.

    Attributes:
        mean: ``J`` numbers, read-only.
        factor: Lower factor, ``J x J``; or the ``J`` standard deviations of independent parameters. Read-only.
        of: The matrix of which ``factor`` is the factor.
        approximation: As given.

    Raises:
        InvalidValueError: Shapes do not match, an entry is NaN, or there are none or several descriptions of ``S``.
        NotPositiveDefiniteError: The matrix is not positive definite.

    Reference: [IshibashiHino2021] section 5.2, models 1 and 2.

    Examples:
        >>> Gaussian([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]])
        Gaussian(2 parameters, by covariance)
        >>> Gaussian([0.0, 1.0], diagonal=[2.0, 1.0]).dimension
        2
    """

    mean: Floats
    factor: Floats
    of: Literal["covariance", "precision"]
    approximation: str = ""

    def __init__(  # noqa: PLR0913 - keyword arguments with defaults
        self,
        mean: ArrayLike,
        covariance: ArrayLike | None = None,
        *,
        precision: ArrayLike | None = None,
        cholesky: ArrayLike | None = None,
        diagonal: ArrayLike | None = None,
        approximation: str = "",
    ) -> None:
        given = {"covariance": covariance, "precision": precision, "cholesky": cholesky, "diagonal": diagonal}
        named = [(name, value) for name, value in given.items() if value is not None]
        if len(named) != 1:
            came = " and ".join(name for name, _ in named) or "none"
            raise InvalidValueError(f"give exactly one of {', '.join(given)}; {came} came")
        name, value = named[0]
        mean = frozen(mean, "mean", ndim=1, promote=True)
        if not len(mean):
            raise InvalidValueError("mean is empty; a Gaussian has at least one parameter")
        factor = _factor(name, value, len(mean))
        factor.flags.writeable = False
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "factor", factor)
        object.__setattr__(self, "of", "precision" if name == "precision" else "covariance")
        object.__setattr__(self, "approximation", approximation)

    @property
    def dimension(self) -> int:
        """Number of parameters, ``J``."""
        return len(self.mean)

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw ``n`` parameter vectors, ``n x J``."""
        z = rng.standard_normal((n, self.dimension))
        if self.factor.ndim == 1:
            return np.asarray(self.mean + z * self.factor)
        if self.of == "covariance":
            return np.asarray(self.mean + z @ self.factor.T)
        return np.asarray(self.mean + np.linalg.solve(self.factor.T, z.T).T)

    def log_density(self, theta: Floats) -> Floats:
        """Log density of each row of ``theta``, ``n x J`` to ``n``."""
        deviation = np.asarray(theta) - self.mean
        if self.factor.ndim == 1:
            white, log_scale = deviation / self.factor, float(np.log(self.factor).sum())
        elif self.of == "covariance":
            white, log_scale = solve_lower(self.factor, deviation.T).T, float(np.log(np.diag(self.factor)).sum())
        else:
            white, log_scale = deviation @ self.factor, -float(np.log(np.diag(self.factor)).sum())
        return np.asarray(-0.5 * (white**2).sum(axis=1) - log_scale - 0.5 * self.dimension * np.log(2 * np.pi))

    def __repr__(self) -> str:
        shape = "by independent variances" if self.factor.ndim == 1 else f"by {self.of}"
        return f"Gaussian({self.dimension} parameter{'s' * (self.dimension != 1)}, {shape})"


def _factor(name: str, value: ArrayLike, size: int) -> Floats:
    if name == "diagonal":
        variances = frozen(value, name, ndim=1, promote=True)
        _require_shape(variances, (size,), name)
        if not (variances > 0.0).all():
            index = int(np.argmin(variances))
            raise InvalidValueError(f"diagonal holds variances, all above 0; entry {index} is {variances[index]}")
        return np.sqrt(variances)
    matrix = frozen(value, name, ndim=2, promote=True)
    _require_shape(matrix, (size, size), name)
    if name == "cholesky":
        return _checked_cholesky(matrix)
    single = getattr(value, "dtype", None) in (np.dtype(np.float32), np.dtype(np.float16))
    return cholesky(symmetric(matrix, name, tolerance=1e-3 if single else 1e-8), name)


def _checked_cholesky(lower: Floats) -> Floats:
    if np.triu(lower, 1).any():
        raise InvalidValueError("cholesky must be lower triangular; for an upper factor U give U.T")
    if not (np.diag(lower) > 0.0).all():
        raise InvalidValueError("cholesky must have a positive diagonal, else the covariance is not positive definite")
    return lower.copy()


def _require_shape(array: Floats, shape: tuple[int, ...], name: str) -> None:
    if array.shape != shape:
        raise InvalidValueError(f"{name} must have shape {shape} to match mean, but its shape is {array.shape}")


Kernel = Callable[[Floats, Floats], Any]


@dataclass(frozen=True, init=False, eq=False)
class GaussianProcessPosterior(Value):
    """The posterior of ``f ~ GP(0, kernel)`` after observing ``y = f(X) + noise``.

    Two such posteriors can be compared if they have the same prior: the kernel, and the constants by which ``y`` was
    scaled. Otherwise their KL divergence is infinite.

    Args:
        X: Inputs, ``n x D``.
        y: Targets, ``n``.
        noise: Variance of the observation noise: one number, or one per observation.
        kernel: ``kernel(A, B)`` is the latent covariance of rows of ``A`` and ``B``, without noise. Two posteriors
            have the same prior if their kernels compare equal.
        scaling: The constants by which ``y`` was standardised; part of the prior.
        approximation: What the process approximates, as for :class:`Gaussian`.

    Raises:
        InvalidValueError: Shapes do not match, an entry is NaN, or the noise is not above 0.

    Reference: [IshibashiHino2021] section 5.2, model 3, and appendix B.

    Examples:
        >>> import numpy as np
        >>> def kernel(A, B):
        ...     return np.exp(-0.5 * (A[:, None, 0] - B[None, :, 0]) ** 2)
        >>> GaussianProcessPosterior([[0.0], [1.0]], [0.1, 0.7], noise=0.1, kernel=kernel)
        GaussianProcessPosterior(2 observations)
    """

    X: Floats
    y: Floats
    noise: Floats
    kernel: Kernel
    scaling: tuple[float, ...]
    approximation: str = ""

    def __init__(  # noqa: PLR0913 - keyword arguments with defaults
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        noise: ArrayLike,
        kernel: Kernel,
        scaling: tuple[float, ...] = (),
        approximation: str = "",
    ) -> None:
        inputs, targets = frozen(X, "X", ndim=2), frozen(y, "y", ndim=1)
        if len(inputs) != len(targets):
            raise InvalidValueError(f"X has {len(inputs)} rows and y has {len(targets)}; they must match")
        variances = frozen(noise, "noise")
        if variances.shape not in {(), (len(inputs),)}:
            raise InvalidValueError(f"noise must be one number or {len(inputs)}, but its shape is {variances.shape}")
        if not (variances > 0.0).all():
            raise InvalidValueError(f"noise holds variances, all above 0; the smallest is {variances.min()}")
        spread = np.broadcast_to(variances, targets.shape)
        parts = {"X": inputs, "y": targets, "noise": spread, "kernel": kernel, "scaling": scaling}
        for name, value in {**parts, "approximation": approximation}.items():
            object.__setattr__(self, name, value)

    def latent(self, X: ArrayLike) -> tuple[Floats, Floats]:
        """Posterior mean (``m``) and covariance (``m x m``) of ``f`` at the rows of ``X``."""
        points = np.asarray(X, dtype=np.float64)
        prior = np.asarray(self.kernel(points, points), dtype=np.float64)
        if not len(self.y):
            return np.zeros(len(points)), prior
        lower = cholesky(np.asarray(self.kernel(self.X, self.X)) + np.diag(self.noise), "the kernel matrix plus noise")
        white = solve_lower(lower, np.asarray(self.kernel(self.X, points), dtype=np.float64))
        return white.T @ solve_lower(lower, self.y), prior - white.T @ white

    def shares_prior(self, other: "GaussianProcessPosterior") -> bool:
        """Whether both have the same prior, so that their KL divergence is finite."""
        return bool(self.kernel == other.kernel) and self.scaling == other.scaling

    def keep(self, rows: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> "GaussianProcessPosterior":
        """Return the posterior after only the observations that are marked in ``rows``."""
        return GaussianProcessPosterior(
            self.X[rows],
            self.y[rows],
            noise=self.noise[rows],
            kernel=self.kernel,
            scaling=self.scaling,
            approximation=self.approximation,
        )

    def __repr__(self) -> str:
        return f"GaussianProcessPosterior({len(self.y)} observations)"


@dataclass(frozen=True)
class IndependentPosteriors:
    """Several posteriors that are independent of each other, such as those of the binary problems of many classes.

    The divergence of two is the sum of the divergences of their parts.

    Args:
        parts: One or more posteriors of types that :func:`suffice.kl` supports.

    Raises:
        InvalidValueError: There is no part.

    Examples:
        >>> IndependentPosteriors([Gaussian(0.0, 1.0), Gaussian([0.0, 1.0], diagonal=[1.0, 2.0])])
        IndependentPosteriors(2 parts)
    """

    parts: Iterable[Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise InvalidValueError("parts must hold at least one posterior")

    def __repr__(self) -> str:
        return f"IndependentPosteriors({len(tuple(self.parts))} parts)"


@dataclass(frozen=True, init=False, eq=False)
class Draws(Value):
    """Draws from a posterior (MCMC, an ensemble), with the method to estimate the KL divergence of two such sets.

    The estimate is not a bound: a rule that uses it guarantees nothing, and its certificate says so.

    Args:
        samples: ``n x J``, one parameter vector per row.
        method: ``"gaussian"`` fits a Gaussian to each set (for nearly Gaussian posteriors; needs clearly more draws
            than parameters); ``"knn"`` compares distances to the ``k``-th neighbour within and across the sets (without
            an assumption on the distribution; for few parameters and distinct draws).
        k: Number of the neighbour, for ``"knn"``.

    Raises:
        InvalidValueError: There are too few draws, an entry is NaN, or the method is unknown.

    Reference: [WangKulkarniVerdu2009] for ``"knn"``.

    Examples:
        >>> import numpy as np
        >>> Draws(np.random.default_rng(0).normal(size=(100, 3)), method="gaussian")
        Draws(100 draws of 3 parameters, method='gaussian')
    """

    samples: Floats
    method: Literal["gaussian", "knn"]
    k: int

    def __init__(self, samples: ArrayLike, *, method: Literal["gaussian", "knn"], k: int = 5) -> None:
        if method not in ("gaussian", "knn"):
            raise InvalidValueError(f"method must be 'gaussian' or 'knn', not {method!r}")
        k = whole(k, "k", least=1)
        values = frozen(samples, "samples", ndim=2)
        n, size = values.shape
        needed = size + 2 if method == "gaussian" else k + 1
        if size == 0 or n < needed:
            raise InvalidValueError(
                f"samples holds {n} draws of {size} parameters; method={method!r} needs at least "
                f"{needed} draws of 1 or more parameters"
            )
        object.__setattr__(self, "samples", values)
        object.__setattr__(self, "method", method)
        object.__setattr__(self, "k", k)

    def __repr__(self) -> str:
        n, size = self.samples.shape
        neighbour = f", k={self.k}" if self.method == "knn" else ""
        return f"Draws({n} draws of {size} parameters, method={self.method!r}{neighbour})"


@dataclass(frozen=True, init=False, eq=False)
class DropoutLayer(Value):
    """One layer: each input unit's weights are ``keep N(m, sigma^2 I) + (1 - keep) N(0, sigma^2 I)``.

    Args:
        weight: Mean weights ``M``, ``H_out x H_in``; further axes (a convolution's kernel) belong to the input unit.
        bias: Mean biases, ``N(bias, sigma^2 I)``; none if left out.
        keep: Probability that an input unit is kept, in (0, 1]. (PyTorch's ``p`` is the probability of dropping.)
        sigma: Standard deviation of every weight and bias about its mean.

    Raises:
        InvalidValueError: ``keep`` or ``sigma`` out of range, or a shape that does not fit.

    Reference: [IshibashiHino2021] section 5.2, model 4, and appendix C.

    Examples:
        >>> DropoutLayer([[1.0, 2.0, 3.0]], bias=[0.5], keep=0.5).inputs
        3
    """

    weight: Floats
    bias: Floats
    keep: float
    sigma: float

    def __init__(
        self, weight: ArrayLike, bias: ArrayLike | None = None, *, keep: float = 1.0, sigma: float = 1.0
    ) -> None:
        means = frozen(weight, "weight")
        if means.ndim < 2 or means.size == 0:
            raise InvalidValueError(f"weight must be outputs x inputs (x ...), but its shape is {means.shape}")
        biases = frozen([] if bias is None else bias, "bias", ndim=1)
        if len(biases) not in {0, len(means)}:
            raise InvalidValueError(f"bias holds {len(biases)} numbers, but weight has {len(means)} outputs")
        object.__setattr__(self, "weight", means)
        object.__setattr__(self, "bias", biases)
        object.__setattr__(self, "keep", real(keep, "keep", "above 0 and at most 1", lambda p: 0.0 < p <= 1.0))
        object.__setattr__(self, "sigma", real(sigma, "sigma", "above 0", lambda s: s > 0.0))

    @property
    def inputs(self) -> int:
        """Number of input units (channels), each kept or dropped as a whole."""
        return int(self.weight.shape[1])

    @property
    def columns(self) -> Floats:
        """Mean weights as one row per input unit."""
        return np.asarray(np.moveaxis(self.weight, 1, 0).reshape(self.inputs, -1))

    def __repr__(self) -> str:
        return f"DropoutLayer({'x'.join(map(str, self.weight.shape))}, keep={self.keep:g}, sigma={self.sigma:g})"


@dataclass(frozen=True)
class DropoutPosterior:
    """A network's posterior: independent layers, first to last.

    Args:
        layers: One or more :class:`DropoutLayer`.

    Raises:
        InvalidValueError: No layer.
        InvalidTypeError: Something that is not a layer.

    Reference: [IshibashiHino2021] section 5.2, model 4, and appendix C.

    Examples:
        >>> DropoutPosterior([DropoutLayer([[1.0, 2.0]], keep=0.5), DropoutLayer([[1.0]])])
        DropoutPosterior(layers=(DropoutLayer(1x2, keep=0.5, sigma=1), DropoutLayer(1x1, keep=1, sigma=1)))
    """

    layers: Iterable[DropoutLayer]

    def __post_init__(self) -> None:
        layers = tuple(self.layers) if isinstance(self.layers, Iterable) else (self.layers,)
        if not layers:
            raise InvalidValueError("layers must hold at least one DropoutLayer")
        for index, layer in enumerate(layers):
            if not isinstance(layer, DropoutLayer):
                raise InvalidTypeError(f"layers[{index}] must be a DropoutLayer, not {type(layer).__name__}")
        object.__setattr__(self, "layers", layers)

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Draw ``n`` parameter vectors: per layer the weights by input unit, then the biases; ``n x J``."""
        return np.concatenate([part for layer in self.layers for part in _sample_layer(layer, n, rng)], axis=1)

    def log_density(self, theta: Floats) -> Floats:
        """Log density of each row of ``theta``, laid out as :meth:`sample` does; ``n x J`` to ``n``."""
        total, start = np.zeros(len(theta)), 0
        for layer in self.layers:
            middle = start + layer.weight.size
            stop = middle + layer.bias.size
            weights = theta[:, start:middle].reshape(len(theta), layer.inputs, -1)
            total += _log_mixture(weights, layer) + _log_normal(theta[:, middle:stop] - layer.bias, layer.sigma)
            start = stop
        return total


def _sample_layer(layer: DropoutLayer, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    kept = rng.random((n, layer.inputs, 1)) < layer.keep
    columns = layer.columns
    weights = kept * columns + layer.sigma * rng.standard_normal((n, *columns.shape))
    return weights.reshape(n, -1), layer.bias + layer.sigma * rng.standard_normal((n, layer.bias.size))


def _log_mixture(weights: Floats, layer: DropoutLayer) -> Floats:
    kept = np.log(layer.keep) + _log_normal(weights - layer.columns, layer.sigma)
    if layer.keep == 1.0:
        return np.asarray(kept.sum(axis=-1))
    return np.asarray(np.logaddexp(kept, np.log1p(-layer.keep) + _log_normal(weights, layer.sigma)).sum(axis=-1))


def _log_normal(deviation: Floats, sigma: float) -> Floats:
    size = deviation.shape[-1]
    return np.asarray(-0.5 * ((deviation / sigma) ** 2).sum(axis=-1) - size * (np.log(sigma) + 0.5 * np.log(2 * np.pi)))


def as_posterior(thing: object) -> object:
    """Return ``thing`` as a posterior for :func:`suffice.kl`, or ``thing`` itself if it is not a known class.

    Known classes are scikit-learn's fitted ``BayesianRidge`` (the coefficients alone: see :func:`caveat`) and
    ``GaussianProcessRegressor`` (the function; white noise in the kernel counts as noise), from ``torch.distributions``
    ``Normal``, ``MultivariateNormal``, ``LowRankMultivariateNormal`` and ``Independent`` ones, and an ``ExactGP`` of
    GPyTorch with a constant mean and Gaussian noise, among them BoTorch's ``SingleTaskGP`` with one output (see
    :func:`torch_process`).

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
    """Return why the divergence of a posterior guarantees nothing: it omits or approximates something; may be empty.

    Laplace's approximation of scikit-learn's classifiers, from :func:`~suffice.posteriors.fitted_posterior`, is a
    Gaussian in place of a posterior that is not one.

    scikit-learn's ``BayesianRidge`` fits an intercept that is not part of its posterior. It changes with every label,
    and a divergence of the coefficients does not include this change. The result of
    :func:`~suffice.posteriors.fitted_posterior`, which also needs the labels, includes the intercept.

    Examples:
        >>> from sklearn.linear_model import BayesianRidge
        >>> caveat(BayesianRidge(fit_intercept=False))
        ''
    """
    if isinstance(thing, Gaussian | GaussianProcessPosterior):
        return thing.approximation
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
    # With two arguments a kernel excludes white noise; with one argument it includes it.
    white = kernel.diag(X) - np.diag(kernel(X, X))
    scaling: tuple[float, ...] = (float(np.squeeze(model._y_train_mean)), float(np.squeeze(model._y_train_std)))
    # A model that does not rescale y has no scaling.
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


class TorchKernel:
    """The covariance function of a GPyTorch model, with the transformation of its inputs, as a value.

    Both are copied, so that later fits of the model do not change it. Two are equal if their classes and parameters
    are.

    Args:
        covariance: ``covar_module`` of the model.
        transform: ``input_transform`` of a BoTorch model, or None.
        example: A tensor of the inputs, for type and device.
    """

    def __init__(self, covariance: Any, transform: Any, example: Any) -> None:
        from copy import deepcopy

        self._covariance = deepcopy(covariance).eval()
        self._transform = None if transform is None else deepcopy(transform).eval()
        self._example = example.detach()[:0]
        modules = (each for each in (self._covariance, self._transform) if each is not None)
        self._key = tuple(
            (str(type(module)), str(module), *((name, _numbers(each).tobytes()) for name, each in parameters))
            for module, parameters in ((module, module.state_dict().items()) for module in modules)
        )

    def __call__(self, A: Floats, B: Floats) -> Floats:
        """Covariance of the rows of ``A`` and ``B``, ``n x m``."""
        import torch

        with torch.no_grad():
            first, second = (self._inputs(each) for each in (A, B))
            return _numbers(self._covariance(first, second).to_dense())

    def diag(self, X: Floats) -> Floats:
        """Variance of each row, ``n``."""
        import torch

        with torch.no_grad():
            return _numbers(self._covariance(self._inputs(X), diag=True))

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, TorchKernel) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def _inputs(self, X: Floats) -> Any:
        given = self._example.new_tensor(np.asarray(X))
        return given if self._transform is None else self._transform(given)


class TorchPrior(NamedTuple):
    """The prior of a GPyTorch model: kernel, noise variance (one, or one for each label), and scaling of labels."""

    kernel: TorchKernel
    noise: Floats
    scaling: tuple[float, ...]


def torch_prior(model: Any) -> TorchPrior:
    """Return the prior of an ``ExactGP`` of GPyTorch, in the units that its labels were given in.

    Raises:
        InvalidValueError: It has no data, several outputs, a mean that is not constant, a likelihood without a noise
            variance, or a transformation of labels other than a shift and a factor.
    """
    name, targets = type(model).__name__, model.train_targets
    if targets is None or not model.train_inputs or targets.ndim != 1 or model.train_inputs[0].ndim != 2:
        shape = "none" if targets is None else tuple(targets.shape)
        raise InvalidValueError(
            f"this {name} must have one output and n labels, and its labels are {shape}; use one model for each output"
        )
    constant = _constant_mean(model)
    noise = getattr(model.likelihood, "noise", None)
    if noise is None or noise.numel() not in (1, len(targets)):
        likelihood = type(model.likelihood).__name__
        raise InvalidValueError(f"the likelihood of {name} must be Gaussian with a noise variance, not {likelihood}")
    centre, scale = _affine(model)
    scaling = centre + scale * constant, scale
    kernel = TorchKernel(model.covar_module, getattr(model, "input_transform", None), model.train_inputs[0])
    return TorchPrior(kernel, _numbers(noise).reshape(-1), () if scaling == (0.0, 1.0) else scaling)


def torch_process(model: Any) -> GaussianProcessPosterior:
    """Return the posterior of an ``ExactGP`` of GPyTorch, with the inputs as they were given to the model.

    The transformation of the inputs of a BoTorch model becomes a part of the kernel, and that of its labels, with the
    constant mean, the scaling of the posterior.

    Raises:
        InvalidValueError: As for :func:`torch_prior`.
    """
    prior = torch_prior(model)
    # In evaluation mode, BoTorch replaces the inputs by transformed ones and keeps the others.
    original = None if model.training else getattr(model, "_original_train_inputs", None)
    inputs = _numbers(model.train_inputs[0] if original is None else original)
    y = _numbers(model.train_targets) - _constant_mean(model)
    noise = np.broadcast_to(prior.noise, y.shape)
    return GaussianProcessPosterior(inputs, y, noise=noise, kernel=prior.kernel, scaling=prior.scaling)


def _constant_mean(model: Any) -> float:
    """The constant mean of a GPyTorch model, in the units of its own labels."""
    names = {base.__name__ for base in type(model.mean_module).__mro__}
    if "ZeroMean" in names:
        return 0.0
    if "ConstantMean" not in names or model.mean_module.constant.numel() != 1:
        raise InvalidValueError(
            f"the mean of {type(model).__name__} must be a ConstantMean or a ZeroMean, not "
            f"{type(model.mean_module).__name__}"
        )
    return float(model.mean_module.constant)


def _affine(model: Any) -> tuple[float, float]:
    """Return the shift and factor that convert the labels of a BoTorch model to the given ones."""
    transform = getattr(model, "outcome_transform", None)
    if transform is None:
        return 0.0, 1.0
    try:
        # BoTorch's transformations return values and variances.
        found = transform.untransform(model.train_targets.new_tensor([[0.0], [1.0], [2.0]]))[0]
        zero, one, two = _numbers(found).ravel().tolist()
    except (AttributeError, TypeError, ValueError, NotImplementedError, RuntimeError):
        zero, one, two = 0.0, 0.0, 1.0
    if not (one > zero and abs((two - one) - (one - zero)) <= 1e-6 * (one - zero)):
        raise InvalidValueError(
            f"outcome_transform of {type(model).__name__} must be a shift and a factor above 0, such as Standardize, "
            f"not {type(transform).__name__}"
        )
    return zero, one - zero


def _numbers(tensor: Any) -> Floats:
    return np.asarray(tensor.detach().cpu().double().numpy())


def _require_fitted(model: Any, attribute: str) -> None:
    if not hasattr(model, attribute):
        raise InvalidValueError(f"this {type(model).__name__} is not fitted yet; call fit(X, y) first")


_CONVERSIONS: Final[dict[tuple[str, str], Callable[[Any], object]]] = {
    ("sklearn", "BayesianRidge"): _bayesian_ridge,
    ("sklearn", "GaussianProcessRegressor"): _gaussian_process,
    ("gpytorch", "ExactGP"): torch_process,
    ("torch", "Normal"): _torch_normal,
    ("torch", "MultivariateNormal"): _torch_multivariate,
    ("torch", "LowRankMultivariateNormal"): _torch_multivariate,
    ("torch", "Independent"): _torch_independent,
}
