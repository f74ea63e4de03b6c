"""Checks that every model must pass, in addition to scikit-learn's ``check_estimator``."""

import copy
import pickle
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from suffice.criteria import Step
from suffice.divergence import kl
from suffice.testing.failures import require

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
    """A posterior that was taken does not change when the model goes on, and each label changes the next one."""
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
    """Pickled or copied, a model goes on exactly as it would have, and shares nothing."""
    model = make().fit(X[:-1], y[:-1])
    before = model.posterior
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        twin.observe(X[-1:], y[-1:])
        require(kl(before, model.posterior) <= 1e-12, "a copy shares state with the model it was copied from")
        require(kl(make().fit(X, y).posterior, twin.posterior) <= 1e-8, "a copy goes on differently")


#: Every check for models: functions of (a maker of the model, inputs, labels).
MODEL_CHECKS: Final[tuple[ModelCheck, ...]] = (
    observing_is_fitting,
    the_first_label_may_be_observed,
    a_posterior_is_a_value,
    predictions_carry_their_deviation,
    learning_leaves_parameters_and_data_alone,
    a_copy_goes_on_alone,
)
