"""A stopping rule for a Bayesian optimisation: one call per evaluation with the fitted Gaussian process."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np

from suffice.arguments import floats, real, whole
from suffice.criteria import (
    Criterion,
    RegretChange,
    Step,
    Verdict,
    confidence_factor,
    criterion_from_dict,
    regret_facts,
)
from suffice.criteria.base import require_rule
from suffice.criteria.optimisation import REGRET_FIELDS
from suffice.deprecation import warn_deprecated
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError
from suffice.models.regression import GaussianRegressor
from suffice.numerics import Floats, cholesky, solve_lower
from suffice.posteriors import GaussianProcessPosterior, as_posterior

_FORMAT: Final = "suffice-optimisation-1"
_PROVIDED: Final = REGRET_FIELDS | {"kl_new_old", "kl_old_new"}
# The search for the least lower bound: number of starting points, number of points near each, and their distances as
# shares of the ranges.
_STARTS: Final = 4
_NEAR: Final = 24
_RADII: Final = (0.1, 0.03, 0.01, 0.003)
# Probability that a nearby point has another category.
_OTHER_CATEGORY: Final = 0.2
# Rows whose prior variances are computed at a time.
_ROWS: Final = 64


class OptimisationMonitor:
    r"""Applies a stopping rule to a Bayesian optimisation with a Gaussian process.

    Call :meth:`update` after each evaluation with the model that was fitted on all evaluations. The monitor computes
    the inputs of the rules of Bayesian optimisation for each evaluation since the last call, in their order. It never
    fits or changes a model. Both posteriors of a step have the hyper-parameters of the current model, because
    posteriors with different priors cannot be compared.

    The bound on the regret needs the least lower confidence bound over the whole space. It is searched among fixed
    random points, the evaluated points, and points near the best of these. A search can miss the least value, so the
    bound holds for the points that were tried.

    Args:
        bounds: The space, ``D x 2``: the lowest and the highest value of each input.
        rule: The stopping rule, which is copied; ``RegretChange(share=0.1)`` if left out, see
            :class:`suffice.RegretChange`. Besides the rules of Bayesian optimisation, those that require divergences or
            counts are possible.
        direction: ``"minimize"`` or ``"maximize"``.
        one_hot: For categories: groups of inputs of which exactly one is 1 and the others are 0.
        delta: Probability with which confidence bounds may fail, above 0 and below 1.
        beta_factor: Factor of :func:`suffice.criteria.confidence_factor`, above 0; 0.2 is usual, see
            :doc:`/bayesian-optimisation`.
        points: Number of random points, at least 1.
        seed: Seed of the search.

    Attributes:
        verdict: What the rule says now.
        verdicts: What it said at each evaluation.
        steps: The steps that it judged, which other rules can judge too.

    Raises:
        InvalidValueError: An argument is out of range.
        InvalidTypeError: ``rule`` is not a stopping rule.
        MissingInputError: The rule requires an input that is not available in an optimisation.

    Examples:
        >>> import numpy as np
        >>> from suffice import RegretBound
        >>> from suffice.models import GaussianProcess
        >>> X = np.linspace(0.0, 1.0, 12)[:, None]; y = (X[:, 0] - 0.3) ** 2
        >>> monitor = OptimisationMonitor([(0.0, 1.0)], RegretBound(threshold=0.05))
        >>> for n in (3, 6, 12):
        ...     verdict = monitor.update(GaussianProcess().fit(X[:n], y[:n]))
        >>> verdict.stop, verdict.n_labelled, [step.n_labelled for step in monitor.steps][:3]
        (True, 12, [3, 4, 5])
    """

    def __init__(  # noqa: PLR0913 - all but one have defaults
        self,
        bounds: Any,
        rule: Criterion | None = None,
        *,
        direction: Literal["minimize", "maximize"] = "minimize",
        one_hot: Iterable[Sequence[int]] = (),
        delta: float = 0.1,
        beta_factor: float = 0.2,
        points: int = 1000,
        seed: int = 0,
    ) -> None:
        rule = RegretChange(share=0.1) if rule is None else rule
        require_rule(rule, "rule")
        missing = sorted(rule.needs() - _PROVIDED)
        if missing:
            raise MissingInputError(
                f"{type(rule).__name__} requires {', '.join(missing)}, which an optimisation does not provide; it "
                f"provides n_labelled, {', '.join(sorted(_PROVIDED))}"
            )
        if direction not in ("minimize", "maximize"):
            raise InvalidValueError(f"direction must be 'minimize' or 'maximize', not {direction!r}")
        self._sign = 1.0 if direction == "minimize" else -1.0
        self._space = _Space(bounds, one_hot)
        self._delta = real(delta, "delta", "between 0 and 1", lambda x: 0.0 < x < 1.0)
        self._beta_factor = real(beta_factor, "beta_factor", "above 0", lambda x: x > 0.0)
        self._seed = whole(seed, "seed", least=0)
        self._points = self._space.spread(whole(points, "points", least=1), np.random.default_rng(self._seed))
        self._rule = rule.copy()
        self._rule.reset()
        self._evaluations = 0
        self.steps: list[Step] = []
        self.verdicts: list[Verdict] = []
        self.verdict = self._undecided("no model was given yet; call update")

    def __repr__(self) -> str:
        said = "stop" if self.verdict.stop else "go on"
        return f"OptimisationMonitor({type(self._rule).__name__}: {self._evaluations} evaluations, {said})"

    def update(self, model: Any) -> Verdict:
        """Update with the model after one or more new evaluations, and return the verdict of the rule.

        Args:
            model: A Gaussian process that was fitted on all evaluations, in the order in which they came: that of
                suffice, scikit-learn's, a ``SingleTaskGP`` of BoTorch, an ``ExactGP`` of GPyTorch with a constant mean,
                or a :class:`suffice.posteriors.GaussianProcessPosterior`. Its inputs are those of the space.

        Returns:
            The verdict after the last evaluation; the previous verdict if there are no new evaluations.

        Raises:
            InvalidTypeError: It is no such model.
            InvalidValueError: It has other inputs than the space, or fewer evaluations than at the last call.
        """
        posterior = _process(model)
        n, width = posterior.X.shape
        if width != self._space.width:
            raise InvalidValueError(f"the model has {width} inputs, and bounds has {self._space.width} rows")
        if n < self._evaluations:
            raise InvalidValueError(
                f"the model was fitted on {n} evaluations, and {self._evaluations} are known; fit it on all of them"
            )
        if n < 2:
            self._evaluations = n
            self.verdict = self._undecided("at least 2 evaluations are needed")
            return self.verdict
        first = self._evaluations + 1 if self._evaluations >= 1 else n
        if first > n:
            return self.verdict
        process = _Process(posterior, self._sign)
        whitened, prior = process.whiten(self._points), process.prior_variance(self._points)
        steps = [Step(n_labelled=k, **self._facts(process, k, whitened, prior)) for k in range(max(first, 2), n + 1)]
        self.verdicts += [self._rule.observe(step) for step in steps]
        self.steps += steps
        self._evaluations, self.verdict = n, self.verdicts[-1]
        return self.verdict

    def state_dict(self) -> dict[str, Any]:
        """Return the state as JSON values; :meth:`from_state` continues with the same verdicts."""
        return {"format": _FORMAT, "rule": self._rule.state_dict(), "evaluations": self._evaluations}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], bounds: Any, **options: Any) -> "OptimisationMonitor":
        """Restore a monitor; deprecated, use :meth:`from_state`."""
        warn_deprecated("OptimisationMonitor.from_state_dict", "use OptimisationMonitor.from_state")
        return cls.from_state(state, bounds, **options)

    @classmethod
    def from_state(cls, state: Mapping[str, Any], bounds: Any, **options: Any) -> "OptimisationMonitor":
        """Restore a monitor from :meth:`state_dict`.

        Args:
            state: The result of ``state_dict``, also after a round trip through JSON.
            bounds: The space.
            options: The other arguments of the constructor, except ``rule``.

        Raises:
            InvalidValueError: It is not such a result.
        """
        if not isinstance(state, Mapping) or state.get("format") != _FORMAT:
            raise InvalidValueError(
                f"state must be the result of OptimisationMonitor.state_dict with format {_FORMAT!r}"
            )
        if "rule" in options:
            raise InvalidValueError("rule is in the state; leave it out")
        rule = criterion_from_dict(state.get("rule", {}))
        monitor = cls(bounds, rule, **options)
        monitor._rule = rule
        monitor._evaluations = whole(state.get("evaluations"), "evaluations in state", least=0)
        return monitor

    def _facts(self, process: "_Process", k: int, whitened: Floats, prior: Floats) -> dict[str, Any]:
        """The fields of the step of evaluation ``k``."""
        beta = [self._beta(k - 1), self._beta(k)]
        lowest = self._lowest(process, k, [math.sqrt(each) for each in beta], (whitened, prior))
        mean, covariance = process.before(k)
        return regret_facts(
            mean,
            covariance,
            value=process.value(k),
            noise=process.noise(k),
            lowest=(lowest[0], lowest[1]),
            beta=(beta[0], beta[1]),
        )

    def _beta(self, evaluations: int) -> float:
        return self._beta_factor * confidence_factor(self._space.dimension, evaluations, self._delta)

    def _lowest(self, process: "_Process", k: int, roots: list[float], known: tuple[Floats, Floats]) -> list[float]:
        """Least lower bound over the space before and after evaluation ``k``."""
        rng = np.random.default_rng([self._seed, k])
        places = np.concatenate([self._points, process.X[:k]])
        own = process.evaluated(k)
        rows, prior = np.concatenate([known[0], own[0]], axis=1), np.concatenate([known[1], own[1]])
        found = process.lower_bounds(rows, prior, k, roots)
        for radius in _RADII:
            best = np.unique(np.concatenate([np.argsort(each, kind="stable")[:_STARTS] for each in found]))
            near = self._space.near(np.repeat(places[best], _NEAR, axis=0), radius, rng)
            new = process.lower_bounds(process.whiten(near), process.prior_variance(near), k, roots)
            places = np.concatenate([places[best], near])
            found = [np.concatenate([old[best], more]) for old, more in zip(found, new, strict=True)]
        return [float(each.min()) for each in found]

    def _undecided(self, reason: str) -> Verdict:
        return Verdict(
            stop=False,
            value=None,
            threshold=None,
            ready=False,
            reason=reason,
            rule="OptimisationMonitor",
            n_labelled=self._evaluations,
        )


class _Space:
    """A box, some of whose inputs are groups of indicators of categories.

    Args:
        bounds: ``D x 2``.
        one_hot: Groups of columns.
    """

    def __init__(self, bounds: Any, one_hot: Iterable[Sequence[int]]) -> None:
        table = floats(bounds, "bounds")
        if table.ndim != 2 or table.shape[1] != 2 or not len(table):
            raise InvalidValueError(
                f"bounds must be D x 2, the lowest and the highest value of each input, but its shape is {table.shape}"
            )
        if not (np.isfinite(table).all() and (table[:, 0] < table[:, 1]).all()):
            raise InvalidValueError("bounds must be finite, and the lowest value of each input below the highest")
        self.low, self.high = table.T
        self.width = len(table)
        self._groups = [np.array([whole(each, "one_hot", least=0) for each in group]) for group in one_hot]
        columns = [int(each) for group in self._groups for each in group]
        if any(not len(group) for group in self._groups) or len(set(columns)) < len(columns):
            raise InvalidValueError("one_hot must hold groups of at least one column, each column in one group only")
        if max(columns, default=0) >= self.width:
            raise InvalidValueError(f"one_hot holds column {max(columns)}, and bounds has {self.width} rows")
        #: Number of inputs of the objective: a category counts once.
        self.dimension = self.width - len(columns) + len(self._groups)

    def spread(self, n: int, rng: np.random.Generator) -> Floats:
        """Random points such that each of ``n`` equal parts of the range of each input contains one point."""
        strata = rng.permuted(np.tile(np.arange(n), (self.width, 1)), axis=1).T
        shares = (strata + rng.random((n, self.width))) / n
        for group in self._groups:
            shares[:, group] = np.eye(len(group))[shares[:, group].argmax(axis=1)]
        return np.asarray(self.low + (self.high - self.low) * shares)

    def near(self, points: Floats, radius: float, rng: np.random.Generator) -> Floats:
        """Points near other points; categories are changed with a small probability."""
        shifts = radius * (self.high - self.low) * rng.standard_normal(points.shape)
        found = np.asarray(np.clip(points + shifts, self.low, self.high))
        for group in self._groups:
            found[:, group] = points[:, group]
            changed = np.flatnonzero(rng.random(len(points)) < _OTHER_CATEGORY)
            chosen = np.eye(len(group))[rng.integers(len(group), size=len(changed))]
            found[np.ix_(changed, group)] = self.low[group] + (self.high - self.low)[group] * chosen
        return found


class _Process:
    """A posterior of a Gaussian process in the units of the objective, after each number of its evaluations.

    Args:
        posterior: After all of them.
        sign: -1 if the objective is maximised.
    """

    def __init__(self, posterior: GaussianProcessPosterior, sign: float) -> None:
        centre, self._scale = (float(each) for each in posterior.scaling or (0.0, 1.0))
        self._centre, self._sign = sign * centre, sign
        self._posterior, self.X = posterior, posterior.X
        own = np.asarray(posterior.kernel(self.X, self.X), dtype=np.float64)
        self._own = 0.5 * (own + own.T)
        self._lower = cholesky(self._own + np.diag(posterior.noise), "the kernel matrix plus noise")
        self._white = solve_lower(self._lower, posterior.y)
        self._rows = solve_lower(self._lower, self._own)

    def whiten(self, points: Floats) -> Floats:
        """``L^-1 k(X, points)``, ``n x m``; the first rows belong to the first evaluations alone."""
        return solve_lower(self._lower, np.asarray(self._posterior.kernel(self.X, points), dtype=np.float64))

    def evaluated(self, k: int) -> tuple[Floats, Floats]:
        """``L^-1 k(X, X)`` and prior variances of the first ``k`` points, ``n x k`` and ``k``."""
        return self._rows[:, :k], np.diag(self._own)[:k]

    def prior_variance(self, points: Floats) -> Floats:
        """Variances before any evaluation, ``m``."""
        parts = (points[first : first + _ROWS] for first in range(0, len(points), _ROWS))
        return np.concatenate([np.diag(np.asarray(self._posterior.kernel(part, part))) for part in parts])

    def lower_bounds(self, rows: Floats, prior: Floats, k: int, roots: list[float]) -> list[Floats]:
        """Lower confidence bounds before and after evaluation ``k``, ``m`` each."""
        found = []
        for count, root in zip((k - 1, k), roots, strict=True):
            part = rows[:count]
            mean = self._sign * self._scale * (part.T @ self._white[:count])
            latent = np.maximum(prior - np.einsum("ij,ij->j", part, part), 0.0)
            found.append(self._centre + mean - root * self._scale * np.sqrt(latent))
        return found

    def before(self, k: int) -> tuple[Floats, Floats]:
        """Mean and covariance at the first ``k`` points before the value of the last of them, ``k`` and ``k x k``."""
        rows = self._rows[: k - 1, :k]
        mean = self._sign * self._scale * (rows.T @ self._white[: k - 1])
        return self._centre + mean, self._scale**2 * (self._own[:k, :k] - rows.T @ rows)

    def value(self, k: int) -> float:
        """The value of evaluation ``k``."""
        return self._centre + self._sign * self._scale * float(self._posterior.y[k - 1])

    def noise(self, k: int) -> float:
        """The variance of its noise."""
        return self._scale**2 * float(self._posterior.noise[k - 1])


def _process(model: Any) -> GaussianProcessPosterior:
    """The posterior of a Gaussian process.

    Raises:
        InvalidTypeError: It is none.
    """
    found = model.posterior if isinstance(model, GaussianRegressor) else as_posterior(model)
    if not isinstance(found, GaussianProcessPosterior):
        raise InvalidTypeError(
            f"model must be a fitted Gaussian process of suffice, scikit-learn, BoTorch (SingleTaskGP) or GPyTorch "
            f"(ExactGP), or a GaussianProcessPosterior, not {type(model).__name__}"
        )
    return found
