"""The minimum of a logistic loss under a Gaussian prior, and the Hessian there.

Steps with the Hessian of a nearby point are repeated while each leaves at most a quarter of the distance (with 400
weights or more, Newton steps by conjugate gradients). Then the Hessian at the point reached is formed, and the last
step is made with it. If that does not converge, a line search along the Newton step ensures that the objective falls
with every Hessian, from any starting point.
"""

from collections.abc import Callable
from functools import partial
from math import sqrt
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from suffice.models.labelled_loss import LabelledLoss
from suffice.numerics import Floats

#: If a pivot is below this share of its diagonal entry, the prior is lost in the rounding of the sum over labels.
LEAST_PIVOT: Final = 1e-7
_EPS: Final = float(np.finfo(np.float64).eps)
_TINY: Final = float(np.finfo(np.float64).tiny)
# Distance to the minimum, in posterior standard deviations, from which one Newton step is exact up to rounding.
_NEAR: Final = 1e-9
# A step with an old Hessian must leave at most this share of the distance; otherwise a new Hessian is cheaper.
_CONTRACTION: Final = 0.25
# Largest change of a logit for which the Hessian is nearly constant.
_SLIGHT: Final = 0.01
# After this many Hessians without a lower objective or half the distance, the remaining distance is rounding error.
_STALLS: Final = 3
_MOST_HESSIANS: Final = 300
# Norm of the gradient after the last step, a tenth of the documented bound.
_GRADIENT: Final = 1e-9
# From this number of weights on, products and factors of P x P matrices dominate the cost of a label. A divergence from
# traces needs no product, and conjugate gradients need fewer factors.
_MANY_WEIGHTS: Final = 400
# Largest share of the squared distance that may remain after conjugate gradients, and most products for one step.
_INEXACT: Final = 0.01
_MOST_PRODUCTS: Final = 60
# Most steps with one factor.
_MOST_STEPS: Final = 30


#: Multiplies a vector by the inverse of a Hessian.
Solver: TypeAlias = Callable[[Floats], Floats]


class WeightPoint(NamedTuple):
    """Weights (``P``), the logits of all labelled rows there, and the gradient of the objective (``P``)."""

    weights: Floats
    logits: Floats
    gradient: Floats


class FactoredHessian(NamedTuple):
    """The Hessian of the objective at a point.

    Attributes:
        information: ``H``, ``P x P``.
        factor: Lower ``L`` with ``H = L L'``.
        pivot: Smallest share of a diagonal entry of ``H`` that is left in ``L``; see :data:`LEAST_PIVOT`.
    """

    information: Floats
    factor: Floats
    pivot: float


class Minimum(NamedTuple):
    """The result of a search.

    Attributes:
        weights: The minimum, ``P``.
        hessian: The Hessian at ``point``.
        point: The last point before a Newton step that changes no logit by more than 0.01, or the minimum itself.
    """

    weights: Floats
    hessian: FactoredHessian
    point: WeightPoint


class Objective(NamedTuple):
    """The negative log posterior up to a constant: loss plus ``alpha w'w / 2``.

    Attributes:
        loss: The labelled rows and their loss.
        alpha: Prior precision.
    """

    loss: LabelledLoss
    alpha: float

    def value(self, here: WeightPoint) -> float:
        """Value at a point."""
        return self.loss.value(here.logits) + 0.5 * self.alpha * float(here.weights @ here.weights)

    def at(self, weights: Floats) -> WeightPoint:
        """The point with the given weights."""
        logits = self.loss.logits(weights, 0)
        return WeightPoint(weights, logits, self.loss.gradient(logits, 0) + self.alpha * weights)

    def extended(self, here: WeightPoint, start: int) -> tuple[WeightPoint, Floats]:
        """The point with the gradient after the rows from ``start`` on, and the logits of these rows."""
        logits = self.loss.logits(here.weights, start)
        gradient = here.gradient + self.loss.gradient(logits, start)
        return WeightPoint(here.weights, np.concatenate([here.logits, logits], axis=1), gradient), logits

    def newton_step(self, here: WeightPoint) -> tuple[FactoredHessian, Floats, float]:
        """Return the Hessian at a point, the Newton step from there, and its length."""
        information = self.loss.curvature(here.logits, 0)
        diagonal = information.diagonal() + self.alpha
        np.fill_diagonal(information, diagonal)
        # LAPACK expects column order; for a symmetric matrix it is the same as row order.
        lower, failed = dpotrf(information.T, lower=1)
        pivot = 0.0 if failed else float((lower.diagonal() ** 2 / diagonal).min())
        if pivot >= LEAST_PIVOT:
            step = _solve(lower, here.gradient)
            return FactoredHessian(information, lower, pivot), step, sqrt(abs(here.gradient @ step))
        lower = self._factor_from_rows(here.logits)
        return FactoredHessian(information, lower, pivot), *self._step_within_span(here, lower)

    def _step_within_span(self, here: WeightPoint, factor: Floats) -> tuple[Floats, float]:
        """Return the Newton step and its length, without rounding errors outside the span of the rows."""
        within_span = self.loss.within_span
        stray = here.weights - within_span(here.weights)
        gradient = within_span(here.gradient)
        step = within_span(_solve(factor, gradient))
        return step + stray, sqrt(abs(gradient @ step) + self.alpha * (stray @ stray))

    def _factor_from_rows(self, logits: Floats) -> Floats:
        """Return the factor from the rows instead of ``H``: the condition number is then only its square root."""
        rows = self.loss.curvature_roots(logits)
        # Large rows first, so that each row is rounded relative to its own size.
        rows = rows[np.argsort(-np.abs(rows).max(axis=1), kind="stable")]
        stacked = np.concatenate([rows, np.sqrt(self.alpha) * np.eye(rows.shape[1])])
        triangle = np.asarray(np.linalg.qr(stacked, mode="r"))
        if not np.isfinite(triangle).all():
            # The OpenBLAS of numpy 1.26 divides by the norm of a column that is subnormal.
            triangle = np.asarray(np.linalg.qr(np.where(np.abs(stacked) < _TINY, 0.0, stacked), mode="r"))
        return np.asfortranarray((triangle * np.sign(triangle.diagonal())[:, None]).T)

    def line_minimum(self, here: WeightPoint, step: Floats) -> WeightPoint:
        """Return the minimum along a Newton step, or its end if the objective still falls there."""
        there, along = self.at(here.weights - step), -self.loss.logits(step, 0)
        if there.gradient @ step >= 0.0 or np.abs(along).max() <= _SLIGHT:
            return there
        slope, bend = self.alpha * float(here.weights @ step), self.alpha * float(step @ step)

        def falls(share: float) -> bool:
            pull = float(np.vdot(self.loss.residual(here.logits + share * along, 0), along))
            return pull + share * bend < slope

        high = 1.0
        # If the losses are nearly linear, the step can be too long by many orders of magnitude.
        while not falls(low := high / 16.0) and high > _TINY:
            high = low
        for _ in range(40):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if falls(middle) else (low, middle)
        return self.at(here.weights - low * step)


def minimum(objective: Objective, here: WeightPoint, solve: Solver | None) -> Minimum:
    """Move from a point to the minimum, and compute the Hessian there.

    Args:
        objective: The objective.
        here: The start.
        solve: Multiplies by the inverse of a nearby Hessian; None if there is none.
    """
    if solve is not None:
        here = _approach(objective, here, solve, _NEAR)
    lowest, nearest, stalled = np.inf, np.inf, 0
    for _ in range(_MOST_HESSIANS):
        hessian, step, distance = objective.newton_step(here)
        change, size = objective.loss.longest * sqrt(step @ step), sqrt(here.gradient @ here.gradient)
        # After a Newton step that changes the logits by a small share, at most that share of the gradient remains.
        last = change <= _SLIGHT
        if distance <= _NEAR and size * (change if last else 1.0) <= _GRADIENT:
            return Minimum(here.weights - step if last else here.weights, hessian, here)
        value = objective.value(here)
        lower, nearer = value < lowest * (1.0 - 4.0 * _EPS), distance < 0.5 * nearest
        stalled = 0 if lower or nearer else stalled + 1
        lowest, nearest = value if lower else lowest, distance if nearer else nearest
        reached = here
        if stalled == _STALLS:
            break
        there = (
            here if hessian.pivot < LEAST_PIVOT else _approach(objective, here, partial(_solve, hessian.factor), 0.0)
        )
        here = objective.line_minimum(here, step) if there is here else there
    return Minimum(reached.weights, hessian, here)


def _approach(objective: Objective, here: WeightPoint, solve: Solver, near: float) -> WeightPoint:
    """Take steps with one Hessian while they converge fast, or until the distance is ``near``."""
    if has_many(here.weights):
        return _conjugate_steps(objective, here, solve)
    before, last = here, np.inf
    while True:
        step = solve(here.gradient)
        left = float(here.gradient @ step)
        if not left <= 0.25 * last:
            return before
        if left <= near**2 or left > _CONTRACTION**2 * last:
            return here
        before, last = here, left
        here = objective.at(here.weights - step)


def _conjugate_steps(objective: Objective, here: WeightPoint, solve: Solver) -> WeightPoint:
    """Make Newton steps without new factors, until the distance is very small or only rounding error remains.

    Each step solves the equations of the Hessian at its point by conjugate gradients, preconditioned with the inverse
    of a nearby Hessian. A product with the Hessian takes ``4 n P`` operations and one with the inverse ``2 P^2``, a new
    factor ``P^3 / 3``. If a step does not halve the distance, a line search along it is made.
    """
    first = solve(here.gradient)
    left = float(here.gradient @ first)
    for _ in range(_MOST_STEPS):
        step = _conjugate_step(objective, here, solve, first) if left > _NEAR**2 else None
        if step is None:
            break
        there = objective.at(here.weights - step)
        first = solve(there.gradient)
        if not (following := float(there.gradient @ first)) <= 0.25 * left:
            there = objective.line_minimum(here, step)
            if not objective.value(there) < objective.value(here) * (1.0 - 4.0 * _EPS):
                break
            first = solve(there.gradient)
            following = float(there.gradient @ first)
        here, left = there, following
    return here


def _conjugate_step(objective: Objective, here: WeightPoint, solve: Solver, first: Floats) -> Floats | None:
    """Return the Newton step, more exact for a smaller distance; None if too many products or digits are needed.

    Args:
        objective: The objective.
        here: The point.
        solve: The preconditioner.
        first: The gradient multiplied by the preconditioner.
    """
    times, alpha = objective.loss.hessian_product(here.logits), objective.alpha
    # The squared distance, and the part of it that may remain.
    size = float(here.gradient @ first)
    wanted = size * min(_INEXACT, size)
    rest, along, step = here.gradient.copy(), first, np.zeros_like(here.gradient)
    for _ in range(_MOST_PRODUCTS):
        image = times(along) + alpha * along
        curvature = float(along @ image)
        if not curvature > 0.0:
            # It is positive but for rounding.
            return None
        length = size / curvature
        step += length * along
        rest -= length * image
        scaled = solve(rest)
        size, before = float(rest @ scaled), size
        if not size > wanted:
            return step
        along = scaled + (size / before) * along
    return None


def has_many(weights: Floats) -> bool:
    """Whether there are so many weights that products and factors of ``P x P`` matrices are avoided."""
    return len(weights) >= _MANY_WEIGHTS


def solver(information: Floats) -> Solver | None:
    """The function that multiplies by the inverse of a matrix; None if that is not positive definite."""
    factor, failed = dpotrf(information, lower=1)
    return None if failed else partial(_solve, np.asarray(factor))


def _solve(factor: Floats, right: Floats) -> Floats:
    return np.asarray(dpotrs(factor, right, lower=1)[0])
