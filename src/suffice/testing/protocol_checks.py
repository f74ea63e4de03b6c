"""Checks that every posterior and every model must pass."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from suffice.criteria import Step
from suffice.divergence import Divergence, kl


def require(condition: bool, message: str) -> None:
    """Raise ``AssertionError`` with the message unless the condition holds; also where Python drops assertions."""
    if not condition:
        raise AssertionError(message)


PosteriorCheck = Callable[[Any, Any], None]


def check_posterior(p: object, q: object) -> None:
    """Run every check of :data:`POSTERIOR_CHECKS` on two different posteriors of a type.

    Where they have ``sample(n, rng)`` and ``log_density(theta)``, the divergence is compared with a Monte-Carlo one.

    Raises:
        AssertionError: A check failed.

    Examples:
        >>> from suffice.posteriors import Gaussian
        >>> check_posterior(Gaussian([0.0, 1.0], diagonal=[1.0, 2.0]), Gaussian([0.5, 1.0], diagonal=[1.5, 1.0]))
    """
    for check in POSTERIOR_CHECKS:
        check(p, q)


def divergence_is_finite_and_nonnegative(p: object, q: object) -> None:
    """Both directions are finite numbers of at least 0, and above 0 for two different posteriors."""
    for first, second in ((p, q), (q, p)):
        value = _kl(first, second)
        require(math.isfinite(value) and value >= 0.0, f"kl({first!r}, {second!r}) is {float(value)}")
        require(value > 0.0, "kl is 0 for two posteriors that were said to differ")


def divergence_to_itself_is_zero(p: object, q: object) -> None:
    """A posterior does not diverge from itself, nor from a copy of itself."""
    for posterior in (p, q):
        for twin in (posterior, copy.deepcopy(posterior)):
            value = _kl(posterior, twin)
            require(value <= 1e-12, f"kl of {posterior!r} with itself is {float(value)}, not 0")


def divergence_is_repeatable(p: object, q: object) -> None:
    """Asking twice, or after pickling, gives the same number: a posterior is a value that asking does not change."""
    value = _kl(p, q)
    require(_kl(p, q) == value, "asked twice, kl gives two numbers")
    try:
        p_again, q_again = pickle.loads(pickle.dumps((p, q)))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(f"{type(p).__name__} cannot be pickled: {error}") from error
    require(_kl(p_again, q_again) == value, "kl changes when the posteriors are pickled")


def divergence_feeds_a_step(p: object, q: object) -> None:
    """``Step.between(old, new)`` holds both directions, the right way round."""
    step = Step.between(p, q, n_labelled=2)
    require(step.kl_old_new == _kl(p, q), "kl_old_new is not kl(old, new)")
    require(step.kl_new_old == _kl(q, p), "kl_new_old is not kl(new, old)")


def divergence_is_not_below_monte_carlo(p: Any, q: Any) -> None:
    """With a density, the divergence is not below its Monte-Carlo estimate, and equals it if it is exact."""
    if not all(hasattr(side, name) for side in (p, q) for name in ("sample", "log_density")):
        return
    value = _kl(p, q)
    theta = p.sample(20_000, np.random.default_rng(0))
    ratio = np.asarray(p.log_density(theta)) - np.asarray(q.log_density(theta))
    estimate, error = float(ratio.mean()), float(ratio.std() / np.sqrt(len(ratio)))
    margin = 6.0 * error + 1e-9
    if value.kind != "estimate":
        require(value >= estimate - margin, f"kl is {float(value)}, below the Monte-Carlo {estimate} +- {error}")
    if value.kind == "exact":
        require(value <= estimate + margin, f"kl is {float(value)}, but Monte Carlo gives {estimate} +- {error}")


#: Every check for posteriors: functions of two different posteriors.
POSTERIOR_CHECKS: Final[tuple[PosteriorCheck, ...]] = (
    divergence_is_finite_and_nonnegative,
    divergence_to_itself_is_zero,
    divergence_is_repeatable,
    divergence_feeds_a_step,
    divergence_is_not_below_monte_carlo,
)


def _kl(p: object, q: object) -> Divergence:
    try:
        return kl(p, q)
    except Exception as error:
        raise AssertionError(f"kl raised {error!r}") from error


MakeModel = Callable[[], Any]
ModelCheck = Callable[[MakeModel, Any, Any], None]


def check_model(make: MakeModel, X: Any, y: Any) -> None:
    """Run every check of :data:`MODEL_CHECKS` on a Bayesian model with fixed hyper-parameters.

    Args:
        make: Makes a new model, always the same.
        X: Inputs, at least 12 rows.
        y: Labels.

    Raises:
        AssertionError: A check failed.

    Examples:
        >>> from suffice.models import BayesianRidge
        >>> X = np.random.default_rng(0).normal(size=(20, 3))
        >>> check_model(lambda: BayesianRidge(alpha=1.0, beta=2.0), X, X[:, 0])
    """
    require(len(X) >= 12, "give check_model at least 12 rows")
    for check in MODEL_CHECKS:
        check(make, np.asarray(X), np.asarray(y))


def observing_is_fitting(make: MakeModel, X: Any, y: Any) -> None:
    """Labels observed one after the other, in any order, give the posterior of fitting all of them."""
    whole = make().fit(X, y).posterior
    half = len(X) // 2
    for order in (np.arange(len(X)), np.arange(len(X))[::-1]):
        model = make().fit(X[order[:half]], y[order[:half]])
        for row in order[half:]:
            model.observe(X[[row]], y[[row]])
        require(kl(whole, model.posterior) <= 1e-8, "observing labels does not end where fitting all of them does")


def the_first_label_may_be_observed(make: MakeModel, X: Any, y: Any) -> None:
    """A model that was never fitted can observe."""
    require(kl(make().observe(X, y).posterior, make().fit(X, y).posterior) <= 1e-12, "observe before fit is not fit")


def a_posterior_is_a_value(make: MakeModel, X: Any, y: Any) -> None:
    """A posterior does not change when the model continues, and each label changes the next one."""
    half = len(X) // 2
    model = make().fit(X[:half], y[:half])
    old = model.posterior
    kept = copy.deepcopy(old)
    model.observe(X[half : half + 1], y[half : half + 1])
    require(kl(old, kept) <= 1e-12, "a posterior changed when the model learned another label")
    step = Step.between(old, model.posterior, n_labelled=half + 1)
    require(bool(step.kl_new_old and step.kl_old_new), "a label left the posterior as it was")


def predictions_carry_their_deviation(make: MakeModel, X: Any, y: Any) -> None:
    """``predict(X, return_std=True)`` gives the same predictions, and deviations above 0 that shrink with labels."""
    few, many = make().fit(X[:6], y[:6]), make().fit(X, y)
    plain = many.predict(X)
    again, deviation = many.predict(X, return_std=True)
    require(bool(np.all(plain == again)), "with return_std the predictions are others")
    require(bool(np.all(deviation > 0.0)), "a deviation is not above 0")
    require(float(np.mean(deviation)) < float(np.mean(few.predict(X, return_std=True)[1])), "labels do not narrow it")


def learning_leaves_parameters_and_data_alone(make: MakeModel, X: Any, y: Any) -> None:
    """Neither the constructor's parameters nor the caller's arrays are written to."""
    model, inputs, labels = make(), X.copy(), y.copy()
    before = repr(model.get_params())
    model.fit(X, y).observe(X[:1], y[:1])
    require(repr(model.get_params()) == before, "fitting changed a parameter of the constructor")
    require(bool(np.all(inputs == X) and np.all(labels == y)), "fitting wrote to the caller's data")


def a_copy_goes_on_alone(make: MakeModel, X: Any, y: Any) -> None:
    """A pickled or copied model continues exactly, and shares nothing with the original."""
    model = make().fit(X[:-1], y[:-1])
    before = model.posterior
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        twin.observe(X[-1:], y[-1:])
        require(kl(before, model.posterior) <= 1e-12, "a copy shares state with the model it was copied from")
        require(kl(make().fit(X, y).posterior, twin.posterior) <= 1e-8, "a copy continues differently")


#: Every check for models: functions of (a maker of the model, inputs, labels).
MODEL_CHECKS: Final[tuple[ModelCheck, ...]] = (
    observing_is_fitting,
    the_first_label_may_be_observed,
    a_posterior_is_a_value,
    predictions_carry_their_deviation,
    learning_leaves_parameters_and_data_alone,
    a_copy_goes_on_alone,
)
