"""``kl(p, q)``: dispatch on the types of both arguments, open to outside types."""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar

from suffice.bounds import nonnegative
from suffice.errors import InvalidTypeError, InvalidValueError
from suffice.posteriors import as_posterior, caveat

Kind = Literal["exact", "bound", "estimate"]
Function = TypeVar("Function", bound=Callable[[Any, Any], float])


class Divergence(float):
    """A KL divergence that remembers how it was computed; in every other respect a float.

    Attributes:
        kind: ``"exact"``, ``"bound"`` (never below the truth) or ``"estimate"`` (either side of it).
        how: The method, in words.
        terms: Size of the terms it was summed from: down to ``-1e-9 * terms`` a negative value is rounding.

    Examples:
        >>> d = Divergence(0.25, kind="estimate", how="a Gaussian fit to 400 and 400 draws")
        >>> d + 1, d.kind
        (1.25, 'estimate')
    """

    kind: Kind
    how: str
    terms: float

    def __new__(cls, value: float, *, kind: Kind, how: str, terms: float = 1.0) -> "Divergence":
        """Make the float and attach the attributes."""
        self = super().__new__(cls, value)
        self.kind, self.how, self.terms = _checked_kind(kind), how, terms
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, Any]]:
        return (float(self),), {"kind": self.kind, "how": self.how, "terms": self.terms}

    def __add__(self, other: float) -> float:
        """A sum with another divergence is no surer than the less sure of the two; any other sum is a float."""
        if not isinstance(other, Divergence):
            return float(self) + other
        kind = max(self.kind, other.kind, key=_KINDS.index)
        how = "; ".join(dict.fromkeys((self.how, other.how)))
        return Divergence(float(self) + float(other), kind=kind, how=how, terms=self.terms + other.terms)

    def __radd__(self, other: float) -> float:
        # sum() starts from 0, which must not lose what is remembered.
        return self if other == 0 else other + float(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Divergence":
        return self


_KINDS: Final = ("exact", "bound", "estimate")
_REGISTRY: Final[dict[tuple[type, type], tuple[Callable[[Any, Any], float], Kind]]] = {}


def register_kl(p_type: type, q_type: type, *, kind: Kind = "exact") -> Callable[[Function], Function]:
    """Register a function as the KL divergence of a pair of types, subclasses included.

    Args:
        p_type: Type of the first argument.
        q_type: Type of the second.
        kind: What the function returns: the exact value, an upper bound, or an estimate.

    Returns:
        A decorator for ``function(p, q) -> float``. It may return a :class:`Divergence` to say more itself.

    Examples:
        >>> import math
        >>> class Coin:
        ...     def __init__(self, p):
        ...         self.p = p
        >>> @register_kl(Coin, Coin)
        ... def coin_kl(p, q):
        ...     return p.p * math.log(p.p / q.p) + (1 - p.p) * math.log((1 - p.p) / (1 - q.p))
        >>> round(kl(Coin(0.5), Coin(0.25)), 6)
        0.143841
    """
    for name, given in (("p_type", p_type), ("q_type", q_type)):
        if not isinstance(given, type):
            raise InvalidTypeError(f"{name} must be a class, not {given!r}")
    _checked_kind(kind)

    def register(function: Function) -> Function:
        _REGISTRY[p_type, q_type] = (function, kind)
        return function

    return register


def _checked_kind(kind: Kind) -> Kind:
    if kind not in _KINDS:
        raise InvalidValueError(f"kind must be one of {', '.join(map(repr, _KINDS))}, not {kind!r}")
    return kind


def known_pairs() -> list[str]:
    """Return the pairs of types that :func:`kl` knows, as ``"P || Q"``."""
    return sorted(f"{p.__name__} || {q.__name__}" for p, q in _REGISTRY)


def kl(p: object, q: object) -> Divergence:
    r"""KL divergence ``KL[p||q]`` of two posteriors.

    .. math:: \mathrm{KL}[p \| q] = E_{\theta \sim p} \log \frac{p(\theta)}{q(\theta)}

    Args:
        p: A posterior of :mod:`suffice.posteriors`, of a registered type, or what
            :func:`suffice.posteriors.as_posterior` converts.
        q: Likewise.

    Returns:
        A non-negative float that says how it was computed.

    Raises:
        InvalidTypeError: No function is registered for the pair; the message lists those that are.
        InvalidValueError: The two cannot be compared, or the result is not a number.
        InfiniteDivergenceError: The result is infinite.

    Examples:
        >>> from suffice.posteriors import Gaussian
        >>> kl(Gaussian(0.0, 1.0), Gaussian(1.0, 1.0))
        0.5
    """
    found, doubts = _find(type(p), type(q)), [doubt for doubt in (caveat(p), caveat(q)) if doubt]
    if found is None:
        p, q = as_posterior(p), as_posterior(q)
        found = _find(type(p), type(q)) or _torch_pair(p, q)
    if found is None:
        raise InvalidTypeError(
            f"no KL divergence is known for {type(p).__name__} || {type(q).__name__}. Known: "
            f"{'; '.join(known_pairs())}; two torch.distributions; fitted scikit-learn BayesianRidge and "
            "GaussianProcessRegressor; an ExactGP of GPyTorch. For other fitted models give "
            "suffice.posteriors.fitted_posterior(model, X, y). "
            "Add yours with suffice.register_kl"
        )
    function, kind = found
    value, name = function(p, q), f"{type(p).__name__} || {type(q).__name__}"
    if not isinstance(value, Divergence):
        value = Divergence(_number(value, name), kind=kind, how=f"{kind}, {name}")
    kind, how = ("estimate", doubts[0]) if doubts else (value.kind, value.how)
    return Divergence(float(nonnegative(value, f"KL[{name}]", terms=value.terms)), kind=kind, how=how)


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidTypeError(f"the function registered for {name} must return one number, not {value!r}") from None


def _find(p_type: type, q_type: type) -> tuple[Callable[[Any, Any], float], Kind] | None:
    """Return the entry for the nearest pair of base classes, the first argument's distance counting first on ties."""
    pairs = [
        (i + j, i, (p_base, q_base))
        for i, p_base in enumerate(p_type.__mro__)
        for j, q_base in enumerate(q_type.__mro__)
        if (p_base, q_base) in _REGISTRY
    ]
    return _REGISTRY[min(pairs, key=lambda entry: entry[:2])[2]] if pairs else None


def _torch_pair(p: object, q: object) -> tuple[Callable[[Any, Any], float], Kind] | None:
    """Torch's own divergence, for its distributions that are not Gaussian; independent ones in a batch add up."""
    if not all(type(d).__module__.startswith("torch.distributions") for d in (p, q)):
        return None

    def torch_kl(first: Any, second: Any) -> float:
        from torch.distributions import kl_divergence

        try:
            value = float(kl_divergence(first, second).sum())
        except NotImplementedError:
            names = f"{type(first).__name__} || {type(second).__name__}"
            raise InvalidTypeError(f"torch.distributions knows no KL divergence for {names}") from None
        return Divergence(value, kind="exact", how="exact, by torch.distributions.kl_divergence")

    return torch_kl, "exact"
