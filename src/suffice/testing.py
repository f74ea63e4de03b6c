"""Conformance tests for stopping rules, posteriors and models of other authors.

With pytest::

    @pytest.mark.parametrize("check", suffice.testing.CRITERION_CHECKS, ids=lambda check: check.__name__)
    def test_my_rule(check):
        check(lambda: MyRule(threshold=0.1), suffice.testing.example_steps())

or all at once with :func:`check_criterion`, :func:`check_posterior` and :func:`check_model`. A check that fails raises
``AssertionError`` with a sentence.
"""

import copy
import dataclasses
import json
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from suffice.criteria import Criterion, Step, Verdict, criterion_from_dict
from suffice.criteria.prediction_statistics import pool_facts
from suffice.criteria.step_and_verdict import FIELD_KINDS, PREDICTION_FIELDS
from suffice.divergence import Divergence, kl
from suffice.errors import MissingInputError, SufficeError
from suffice.forecast import Forecast
from suffice.numerics import Floats

__all__ = [
    "CRITERION_CHECKS",
    "MODEL_CHECKS",
    "POSTERIOR_CHECKS",
    "CriterionCheck",
    "MakeModel",
    "MakeRule",
    "ModelCheck",
    "PosteriorCheck",
    "a_copy_goes_on_alone",
    "a_posterior_is_a_value",
    "check_criterion",
    "check_model",
    "check_posterior",
    "composition_keeps_the_rule",
    "degenerate_inputs_do_not_break",
    "divergence_feeds_a_step",
    "divergence_is_finite_and_nonnegative",
    "divergence_is_not_below_monte_carlo",
    "divergence_is_repeatable",
    "divergence_to_itself_is_zero",
    "example_steps",
    "learning_leaves_parameters_and_data_alone",
    "missing_input_is_named",
    "no_look_ahead",
    "observing_is_fitting",
    "one_class_is_not_judged",
    "only_what_is_required_is_read",
    "predictions_carry_their_deviation",
    "reset_forgets_everything",
    "same_steps_give_same_verdicts",
    "saving_changes_nothing",
    "state_is_json_and_resumes",
    "the_first_label_may_be_observed",
    "verdicts_are_well_formed",
    "verdicts_stay_as_given",
]


def require(condition: bool, message: str) -> None:
    """Raise ``AssertionError`` with the message unless the condition holds; also if Python ignores assertions."""
    if not condition:
        raise AssertionError(message)


PosteriorCheck = Callable[[Any, Any], None]


def check_posterior(p: object, q: object) -> None:
    """Run every check of :data:`POSTERIOR_CHECKS` on two different posteriors of a type.

    If they have ``sample(n, rng)`` and ``log_density(theta)``, the divergence is compared with a Monte Carlo estimate.

    Raises:
        AssertionError: A check failed.

    Examples:
        >>> from suffice.posteriors import Gaussian
        >>> check_posterior(Gaussian([0.0, 1.0], diagonal=[1.0, 2.0]), Gaussian([0.5, 1.0], diagonal=[1.5, 1.0]))
    """
    for check in POSTERIOR_CHECKS:
        check(p, q)


def divergence_is_finite_and_nonnegative(p: object, q: object) -> None:
    """Both directions are finite numbers of at least 0, and above 0 for two different posteriors.

    Examples:
        >>> from suffice.posteriors import Gaussian
        >>> p, q = Gaussian(0.0, 1.0), Gaussian(1.0, 1.0)
        >>> divergence_is_finite_and_nonnegative(p, q)
        >>> divergence_is_finite_and_nonnegative(p, p)
        Traceback (most recent call last):
        AssertionError: kl is 0 for two posteriors that were said to differ
    """
    for first, second in ((p, q), (q, p)):
        value = _kl(first, second)
        require(math.isfinite(value) and value >= 0.0, f"kl({first!r}, {second!r}) is {float(value)}")
        require(value > 0.0, "kl is 0 for two posteriors that were said to differ")


def divergence_to_itself_is_zero(p: object, q: object) -> None:
    """The divergence of a posterior from itself, and from a copy of itself, is 0.

    Examples:
        >>> from suffice.posteriors import Gaussian
        >>> class Drifting(Gaussian):
        ...     def __deepcopy__(self, memo):
        ...         return Gaussian(self.mean + 1.0, 1.0)
        >>> divergence_to_itself_is_zero(Drifting(0.0, 1.0), Gaussian(1.0, 1.0))
        Traceback (most recent call last):
        AssertionError: kl of Gaussian(1 parameter, by covariance) with itself is 0.5, not 0
    """
    for posterior in (p, q):
        for twin in (posterior, copy.deepcopy(posterior)):
            value = _kl(posterior, twin)
            require(value <= 1e-12, f"kl of {posterior!r} with itself is {float(value)}, not 0")


def divergence_is_repeatable(p: object, q: object) -> None:
    """A second call, also after pickling, gives the same number: computing a divergence does not change a posterior.

    Examples:
        >>> from suffice.posteriors import Gaussian
        >>> class OpenFile(Gaussian):
        ...     def __reduce_ex__(self, protocol):
        ...         raise TypeError("it holds a file")
        >>> divergence_is_repeatable(OpenFile(0.0, 1.0), Gaussian(1.0, 1.0))
        Traceback (most recent call last):
        AssertionError: OpenFile cannot be pickled: it holds a file
    """
    value = _kl(p, q)
    require(_kl(p, q) == value, "asked twice, kl gives two numbers")
    p_again, q_again = _pickled(p), _pickled(q)
    require(_kl(p_again, q_again) == value, "kl changes when the posteriors are pickled")


def divergence_feeds_a_step(p: object, q: object) -> None:
    """``Step.between(old, new)`` contains both directions, in the right order.

    Examples:
        >>> from suffice.posteriors import Gaussian
        >>> divergence_feeds_a_step(Gaussian(0.0, 1.0), Gaussian(1.0, 0.5))
    """
    step = Step.between(p, q, n_labelled=2)
    require(step.kl_old_new == _kl(p, q), "kl_old_new is not kl(old, new)")
    require(step.kl_new_old == _kl(q, p), "kl_new_old is not kl(new, old)")


def divergence_is_not_below_monte_carlo(p: Any, q: Any) -> None:
    """With a density, the divergence is not below its Monte-Carlo estimate, and equals it if it is exact.

    Examples:
        >>> from suffice.posteriors import Gaussian
        >>> class Wide(Gaussian):
        ...     def sample(self, n, rng):
        ...         return rng.normal(size=(n, 1))
        ...     def log_density(self, theta):  # not that of its own samples
        ...         return -0.5 * (np.ravel(theta) - float(self.mean[0])) ** 2 / 0.25
        >>> divergence_is_not_below_monte_carlo(Wide(0.0, 1.0), Wide(1.0, 1.0))
        Traceback (most recent call last):
        AssertionError: kl is 0.5, below the Monte-Carlo ...
    """
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


def _pickled(value: Any) -> Any:
    try:
        return pickle.loads(pickle.dumps(value))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise AssertionError(f"{type(value).__name__} cannot be pickled: {error}") from error


MakeModel = Callable[[], Any]
ModelCheck = Callable[[MakeModel, Any, Any], None]


def check_model(make: MakeModel, X: Any, y: Any) -> None:
    """Run every check of :data:`MODEL_CHECKS` on a Bayesian model with fixed hyper-parameters.

    Args:
        make: Returns a new model, always with the same parameters.
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
    """Observing labels one after the other, in any order, gives the posterior of a fit to all of them.

    Examples:
        >>> from suffice.models import BayesianRidge
        >>> X = np.random.default_rng(0).normal(size=(20, 3))
        >>> class Replacing(BayesianRidge):
        ...     def observe(self, X, y):  # forgets the labels before
        ...         return self.fit(X, y)
        >>> observing_is_fitting(Replacing, X, X[:, 0])
        Traceback (most recent call last):
        AssertionError: observing labels does not end where fitting all of them does
    """
    whole = make().fit(X, y).posterior
    half = len(X) // 2
    for order in (np.arange(len(X)), np.arange(len(X))[::-1]):
        model = make().fit(X[order[:half]], y[order[:half]])
        for row in order[half:]:
            model.observe(X[[row]], y[[row]])
        require(kl(whole, model.posterior) <= 1e-8, "observing labels does not end where fitting all of them does")


def the_first_label_may_be_observed(make: MakeModel, X: Any, y: Any) -> None:
    """A model that was never fitted can observe.

    Examples:
        >>> from suffice.models import BayesianRidge
        >>> X = np.random.default_rng(0).normal(size=(20, 3))
        >>> class Late(BayesianRidge):
        ...     def observe(self, X, y):
        ...         return super().observe(X, y) if hasattr(self, "state_") else self.fit(X[:1], y[:1])
        >>> the_first_label_may_be_observed(Late, X, X[:, 0])
        Traceback (most recent call last):
        AssertionError: observe before fit is not fit
    """
    require(kl(make().observe(X, y).posterior, make().fit(X, y).posterior) <= 1e-12, "observe before fit is not fit")


def a_posterior_is_a_value(make: MakeModel, X: Any, y: Any) -> None:
    """A posterior does not change when the model continues, and each label changes the next one.

    Examples:
        >>> from suffice.models import BayesianRidge
        >>> X = np.random.default_rng(0).normal(size=(20, 3))
        >>> class Deaf(BayesianRidge):
        ...     def observe(self, X, y):
        ...         return self
        >>> a_posterior_is_a_value(Deaf, X, X[:, 0])
        Traceback (most recent call last):
        AssertionError: a label left the posterior as it was
    """
    half = len(X) // 2
    model = make().fit(X[:half], y[:half])
    old = model.posterior
    kept = copy.deepcopy(old)
    model.observe(X[half : half + 1], y[half : half + 1])
    require(kl(old, kept) <= 1e-12, "a posterior changed when the model learned another label")
    step = Step.between(old, model.posterior, n_labelled=half + 1)
    require(bool(step.kl_new_old and step.kl_old_new), "a label left the posterior as it was")


def predictions_carry_their_deviation(make: MakeModel, X: Any, y: Any) -> None:
    """``predict(X, return_std=True)`` gives the same predictions, and deviations above 0 that shrink with labels.

    Examples:
        >>> from suffice.models import BayesianRidge
        >>> X = np.random.default_rng(0).normal(size=(20, 3))
        >>> class Certain(BayesianRidge):
        ...     def predict(self, X, return_std=False):
        ...         mean = super().predict(X)
        ...         return (mean, np.zeros(len(mean))) if return_std else mean
        >>> predictions_carry_their_deviation(Certain, X, X[:, 0])
        Traceback (most recent call last):
        AssertionError: a deviation is not above 0
    """
    few, many = make().fit(X[:6], y[:6]), make().fit(X, y)
    plain = many.predict(X)
    again, deviation = many.predict(X, return_std=True)
    require(bool(np.all(plain == again)), "with return_std the predictions are others")
    require(bool(np.all(deviation > 0.0)), "a deviation is not above 0")
    require(float(np.mean(deviation)) < float(np.mean(few.predict(X, return_std=True)[1])), "labels do not narrow it")


def learning_leaves_parameters_and_data_alone(make: MakeModel, X: Any, y: Any) -> None:
    """The constructor's parameters and the caller's arrays are not modified.

    Examples:
        >>> from suffice.models import BayesianRidge
        >>> X = np.random.default_rng(0).normal(size=(20, 3))
        >>> class Tuning(BayesianRidge):
        ...     def fit(self, X, y):
        ...         self.alpha = 2.0
        ...         return super().fit(X, y)
        >>> learning_leaves_parameters_and_data_alone(Tuning, X, X[:, 0])
        Traceback (most recent call last):
        AssertionError: fitting changed a parameter of the constructor
    """
    model, inputs, labels = make(), X.copy(), y.copy()
    before = repr(model.get_params())
    model.fit(X, y).observe(X[:1], y[:1])
    require(repr(model.get_params()) == before, "fitting changed a parameter of the constructor")
    require(bool(np.all(inputs == X) and np.all(labels == y)), "fitting wrote to the caller's data")


def a_copy_goes_on_alone(make: MakeModel, X: Any, y: Any) -> None:
    """A pickled or copied model continues exactly, and shares nothing with the original.

    Examples:
        >>> from suffice.models import BayesianRidge
        >>> X = np.random.default_rng(0).normal(size=(20, 3))
        >>> class Local(BayesianRidge):
        ...     pass  # no module has it, so pickle does not find it
        >>> a_copy_goes_on_alone(Local, X, X[:, 0])
        Traceback (most recent call last):
        AssertionError: Local cannot be pickled: ...
    """
    model = make().fit(X[:-1], y[:-1])
    before = model.posterior
    for twin in (copy.deepcopy(model), _pickled(model)):
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


MakeRule = Callable[[], Criterion]
CriterionCheck = Callable[[MakeRule, Sequence[Step]], None]


def example_steps(n: int = 60, *, seed: int = 0) -> list[Step]:
    """Return the steps of a labelling run, with noisy divergences that fall like a power of the labels.

    Every field of a step is given: two classes, a stop set of 40 items, one item labelled per step. A field without
    its own formula gets an example value of its kind.

    Examples:
        >>> example_steps(3)[0].n_labelled
        11
    """
    rng = np.random.default_rng(seed)
    scale = 0.5 * (np.arange(1, n + 1) / 5.0) ** -2.0
    noise = rng.lognormal(sigma=0.5, size=(2, n))
    logits = rng.normal(size=101)
    steps, before = [], (logits[1:61] > 0).astype(np.intp)
    for t in range(n):
        # The confidence of the classifier rises, and its changes become smaller.
        logits = 1.03 * logits + rng.normal(size=101) / (1.0 + t)
        p = np.column_stack([1.0 / (1.0 + np.exp(logits)), 1.0 / (1.0 + np.exp(-logits))])
        selected, pool, stop = p[:1], p[1:61], p[61:]
        steps.append(
            Step(
                n_labelled=11 + t,
                kl_new_old=float(scale[t] * noise[0, t]),
                kl_old_new=float(scale[t] * noise[1, t]),
                **(_examples_by_kind(t) | pool_facts(pool, before=before) | _other_facts(t, selected, stop, rng)),
            )
        )
        before = pool.argmax(axis=1)
    return steps


def _examples_by_kind(t: int) -> dict[str, Any]:
    """Return an example value for every field that is one number, except the divergences of the step."""
    falling = 1.0 / (1.0 + t)
    values = {"divergence": falling, "amount": falling, "count": 100, "share": 0.5 * falling, "number": falling}
    kinds = {name: kind for name, kind in FIELD_KINDS.items() if name not in ("kl_new_old", "kl_old_new")}
    return {name: values[kind] for name, kind in kinds.items() if kind in values}


def _other_facts(t: int, selected: Floats, stop: Floats, rng: np.random.Generator) -> dict[str, Any]:
    falling = 1.0 / (1.0 + t)
    return {
        "kl_prior": 1.0 + 0.3 * np.log1p(t),
        "train_error": 0.1 + 0.2 * falling,
        "seconds": 3.5 * (t + 1),
        "cost": 2.0 * (11 + t),
        "pool_size": 500,
        "classes_seen": 2,
        "selected_probabilities": selected,
        "selected_labels": (rng.random(len(selected)) < selected[:, 1]).astype(int),
        "selected_agreement": 1.0 - 0.5 * falling,
        "selected_wrong": 0.4 * falling,
        "selected_loss": float(rng.exponential(0.7)),
        "selected_expected_loss": 0.6 + 0.1 * falling,
        "pool_gain": 0.3 * falling,
        "pool_variance": 0.8 * falling,
        "stop_probabilities": stop.astype(np.float16),
        "stop_confidence": float(stop.max(axis=1).mean()),
        "stop_agreement": 1.0 - 0.4 * falling,
        "expected_error": 0.05 + 0.9 * falling,
        "validation_error": 0.1 + 0.5 * falling + 0.01 * float(rng.normal()),
        "validation_labels": 100,
        "guarantee_confidence": 0.95,
        "relevant_found": min(4 + t // 2, 9),
        "estimated_relevant": 10.0,
        "expected_found": 8.0 - 4.0 * falling,
        "found_variance": 0.5,
        "expected_missed": 6.0 * falling,
        "missed_variance": 3.0 * falling,
        "control_found": min(2 + t // 2, 9),
        "regret_change_noise": 0.05,
        "noise_deviation": 0.1,
    }


def check_criterion(make: MakeRule, steps: Sequence[Step] | None = None) -> None:
    """Run every check of :data:`CRITERION_CHECKS` on a stopping rule.

    Args:
        make: Returns a new rule, always with the same parameters.
        steps: A run with the fields that the rule requires; :func:`example_steps` by default.

    Raises:
        AssertionError: A check failed.

    Examples:
        >>> from suffice import ErrorStability
        >>> check_criterion(lambda: ErrorStability(0.1, calibration=3))
    """
    run = example_steps() if steps is None else steps
    require(
        not isinstance(make, Criterion),
        "give check_criterion the class of the rule or a function that makes it, not the rule itself: it makes several",
    )
    require(len(run) > 1, "give check_criterion a run of at least 2 steps")
    for check in CRITERION_CHECKS:
        check(make, run)


def verdicts_are_well_formed(make: MakeRule, steps: Sequence[Step]) -> None:
    """Every verdict is a Verdict with a reason; its numbers are finite; a rule that is not ready never stops.

    Examples:
        >>> from suffice.criteria import Budget
        >>> class Silent(Budget):
        ...     def judge(self, step):
        ...         return self.verdict(step, stop=False, reason="")
        >>> verdicts_are_well_formed(lambda: Silent(20), example_steps())
        Traceback (most recent call last):
        AssertionError: step 0: the verdict gives no reason
    """
    rule = make()
    for number, step in enumerate(steps):
        verdict = _observed(rule, step)
        require(isinstance(verdict, Verdict), f"step {number}: observe returned {type(verdict).__name__}, no Verdict")
        require(isinstance(verdict.stop, bool), f"step {number}: stop is {verdict.stop!r}, neither True nor False")
        require(bool(verdict.reason.strip()), f"step {number}: the verdict gives no reason")
        require(verdict.ready or not verdict.stop, f"step {number}: the rule says stop while it is not ready")
        for name in ("value", "threshold"):
            number_or_none = getattr(verdict, name)
            good = number_or_none is None or math.isfinite(number_or_none)
            require(good, f"step {number}: {name} is {number_or_none}; where there is no number it must be None")
        require(verdict.n_labelled == step.n_labelled, f"step {number}: n_labelled of the verdict is not the step's")
        require(bool(str(verdict)), f"step {number}: the verdict prints as nothing")


def same_steps_give_same_verdicts(make: MakeRule, steps: Sequence[Step]) -> None:
    """Two new rules give the same verdicts on the same steps: no clock, no hidden randomness, no shared state.

    Examples:
        >>> from suffice.criteria import Budget
        >>> class Counting(Budget):
        ...     seen = []  # the same list for all rules of the class
        ...     def judge(self, step):
        ...         self.seen.append(step)
        ...         return self.verdict(step, stop=len(self.seen) % 2 == 0, reason="every second step")
        >>> same_steps_give_same_verdicts(lambda: Counting(20), example_steps())
        Traceback (most recent call last):
        AssertionError: two rules made alike answered the same steps differently
    """
    first, second = make(), make()
    # One step at a time in turn, so that state shared between the two would show.
    pairs = [(first.observe(step), second.observe(step)) for step in steps]
    require(all(a == b for a, b in pairs), "two rules made alike answered the same steps differently")


def no_look_ahead(make: MakeRule, steps: Sequence[Step]) -> None:
    """The verdict at a step does not depend on later steps.

    Examples:
        >>> from suffice.criteria import Budget
        >>> class Newest:
        ...     steps = []
        ...     def forecast(self):  # is computed when somebody reads it
        ...         n = self.steps[-1].n_labelled
        ...         return Forecast(labels=n, low=n, high=n, coverage=1.0)
        >>> class Late(Budget):
        ...     def judge(self, step):
        ...         Newest.steps.append(step)
        ...         return self.verdict(step, stop=False, reason="not yet", outlook=Newest())
        >>> no_look_ahead(lambda: Late(20), example_steps())
        Traceback (most recent call last):
        AssertionError: step 1 changed earlier verdicts
    """
    whole = _answers(make(), steps)
    others = [dataclasses.replace(step, n_labelled=step.n_labelled + 7) for step in steps]
    for cut in _cuts(len(steps)):
        again = _answers(make(), [*steps[:cut], *others[cut:]])
        require(again[:cut] == whole[:cut], f"step {cut} changed earlier verdicts")


def verdicts_stay_as_given(make: MakeRule, steps: Sequence[Step]) -> None:
    """A verdict does not change when the rule continues.

    Examples:
        >>> from suffice.criteria import Budget
        >>> class Newest:
        ...     steps = []
        ...     def forecast(self):  # is computed when somebody reads it
        ...         n = self.steps[-1].n_labelled
        ...         return Forecast(labels=n, low=n, high=n, coverage=1.0)
        >>> class Late(Budget):
        ...     def judge(self, step):
        ...         Newest.steps.append(step)
        ...         return self.verdict(step, stop=False, reason="not yet", outlook=Newest())
        >>> verdicts_stay_as_given(lambda: Late(20), example_steps())
        Traceback (most recent call last):
        AssertionError: the verdict at step 0 changed afterwards
    """
    rule, given = make(), []
    for step in steps:
        verdict = rule.observe(step)
        given.append((verdict, str(verdict), verdict.forecast))
    for number, (verdict, text, forecast) in enumerate(given):
        again = dataclasses.replace(verdict)
        require((str(again), again.forecast) == (text, forecast), f"the verdict at step {number} changed afterwards")


def state_is_json_and_resumes(make: MakeRule, steps: Sequence[Step]) -> None:
    """A rule that is saved to JSON and restored at any step continues exactly.

    Examples:
        >>> from suffice.criteria import Budget
        >>> class Unsaved(Budget):
        ...     seen = 0  # no field of the dataclass, so it is not saved
        ...     def judge(self, step):
        ...         self.seen += 1
        ...         return self.verdict(step, stop=self.seen >= self.labels, reason="steps are counted")
        >>> state_is_json_and_resumes(lambda: Unsaved(20), example_steps())
        Traceback (most recent call last):
        AssertionError: resumed after 1 steps, the rule continues differently
    """
    whole = _answers(make(), steps)
    for cut in _cuts(len(steps)):
        rule = make()
        _replay(rule, steps[:cut])
        try:
            saved = json.dumps(rule.state_dict(), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise AssertionError(f"state_dict after {cut} steps is not JSON: {error}") from error
        revived = criterion_from_dict(json.loads(saved))
        require(json.dumps(revived.state_dict()) == saved, f"the state after {cut} steps does not survive JSON")
        require(
            _answers(revived, steps[cut:]) == whole[cut:], f"resumed after {cut} steps, the rule continues differently"
        )


def saving_changes_nothing(make: MakeRule, steps: Sequence[Step]) -> None:
    """``state_dict`` and ``copy`` return snapshots. They do not change the rule, and later steps do not change them.

    Examples:
        >>> from suffice.criteria import Budget
        >>> class Counting(Budget):
        ...     seen = []  # the same list for all rules of the class
        ...     def judge(self, step):
        ...         self.seen.append(step)
        ...         return self.verdict(step, stop=len(self.seen) > 70, reason="steps are counted")
        >>> saving_changes_nothing(lambda: Counting(20), example_steps())
        Traceback (most recent call last):
        AssertionError: a copy shares state with the rule it was copied from
    """
    rule = make()
    _replay(rule, steps[: len(steps) // 2])
    saved, twin = rule.state_dict(), rule.copy()
    before = json.dumps(saved)
    rest = _replay(rule, steps[len(steps) // 2 :])
    require(json.dumps(saved) == before, "a saved state changed when the rule continued")
    require(_replay(twin, steps[len(steps) // 2 :]) == rest, "a copy shares state with the rule it was copied from")


def reset_forgets_everything(make: MakeRule, steps: Sequence[Step]) -> None:
    """After ``reset`` the rule is in its initial state.

    Examples:
        >>> from suffice.criteria import Budget
        >>> class Unforgetting(Budget):
        ...     seen = 0  # no field of the dataclass, so it is not reset
        ...     def judge(self, step):
        ...         self.seen += 1
        ...         return self.verdict(step, stop=self.seen >= self.labels, reason="steps are counted")
        >>> reset_forgets_everything(lambda: Unforgetting(20), example_steps())
        Traceback (most recent call last):
        AssertionError: after reset the rule answers differently
    """
    rule = make()
    first = _replay(rule, steps)
    rule.reset()
    require(rule.state_dict() == make().state_dict(), "reset leaves something in the state")
    require(_replay(rule, steps) == first, "after reset the rule answers differently")


def only_what_is_required_is_read(make: MakeRule, steps: Sequence[Step]) -> None:
    """The verdicts are the same if a step has only the fields that the rule requires or declares as optional.

    Examples:
        >>> from suffice.criteria import Budget
        >>> class Curious(Budget):
        ...     def judge(self, step):
        ...         share = step.n_labelled / (step.pool_size or 100)
        ...         return self.verdict(step, stop=share > 0.03, reason="the share of the pool")
        >>> only_what_is_required_is_read(lambda: Curious(20), example_steps(10))
        Traceback (most recent call last):
        AssertionError: the rule reads pool_size without requiring it
    """
    needed = make().reads() | {"n_labelled"}
    optional = [spec.name for spec in dataclasses.fields(steps[0]) if spec.name not in needed and spec.default is None]
    whole = _replay(make(), steps)
    without = f"without {', '.join(optional)}, which it does not require"
    try:
        alike = _replay(make(), [_changed(step, dict.fromkeys(optional)) for step in steps]) == whole
    except AssertionError as error:
        raise AssertionError(f"{without}: {error}") from error
    if not alike:
        read = [name for name in optional if _replay(make(), [_changed(s, {name: None}) for s in steps]) != whole]
        raise AssertionError(f"the rule reads {', '.join(read or optional)} without requiring it")


def one_class_is_not_judged(make: MakeRule, steps: Sequence[Step]) -> None:
    """A rule that uses predictions says "go on" while all labels are of one class, and its state does not change.

    Examples:
        >>> from suffice.criteria import Budget
        >>> class Hasty(Budget):
        ...     requires = frozenset({"expected_error"})
        ...     def observe(self, step):  # leaves out what the base class does before judge
        ...         return self.judge(step)
        >>> one_class_is_not_judged(lambda: Hasty(20), example_steps())
        Traceback (most recent call last):
        AssertionError: the rule judges the predictions of a single class
    """
    rule = make()
    if PREDICTION_FIELDS.isdisjoint(rule.requires):
        return
    one_class = _replay(rule, [_changed(step, {"classes_seen": 1}) for step in steps])
    require(not any(v.stop or v.ready for v in one_class), "the rule judges the predictions of a single class")
    require(rule.state_dict() == make().state_dict(), "a step with a single class changed the state of the rule")


def missing_input_is_named(make: MakeRule, steps: Sequence[Step]) -> None:
    """Without a field that the rule requires, the first step fails and names it.

    Examples:
        >>> from suffice.criteria import Budget
        >>> class Misspelt(Budget):
        ...     requires = frozenset({"pool_sizes"})
        >>> missing_input_is_named(lambda: Misspelt(20), example_steps())
        Traceback (most recent call last):
        AssertionError: the rule requires 'pool_sizes', which a Step does not have; ...
    """
    known = {spec.name for spec in dataclasses.fields(steps[0])}
    for name in make().needs():
        require(
            name in known,
            f"the rule requires {name!r}, which a {type(steps[0]).__name__} does not have; it has {sorted(known)}",
        )
        bare = _changed(steps[0], {name: None})
        try:
            make().observe(bare)
        except MissingInputError as error:
            require(name in str(error), f"the error on a missing {name} does not name it: {error}")
        else:
            raise AssertionError(f"the rule requires {name} and did not fail without it")


def degenerate_inputs_do_not_break(make: MakeRule, steps: Sequence[Step]) -> None:
    """Runs without changes, or with what the rule reads at the ends of its range, give verdicts or an error of suffice.

    Examples:
        >>> from suffice.criteria import Budget
        >>> class Dividing(Budget):
        ...     requires = frozenset({"kl_new_old"})
        ...     def judge(self, step):
        ...         return self.verdict(step, stop=1.0 / step.kl_new_old > self.labels, reason="a quotient")
        >>> degenerate_inputs_do_not_break(lambda: Dividing(20), example_steps())
        Traceback (most recent call last):
        AssertionError: with every number 0 the rule raised ZeroDivisionError(...) at step 0
    """
    number_of_steps = min(len(steps), 30)
    for name, extreme in _EXTREMES.items():
        rule = make()
        read = rule.reads()
        for t in range(number_of_steps):
            try:
                changes = {key: extreme(steps[t], key) for key in _given(steps[t]) if key in read}
                verdict = rule.observe(_changed(steps[t], changes))
            except SufficeError:
                break
            except Exception as error:
                raise AssertionError(f"with {name} the rule raised {error!r} at step {t}") from error
            good = verdict.value is None or math.isfinite(verdict.value)
            require(good, f"with {name} the value at step {t} is {verdict.value}")


def _given(step: Step) -> list[str]:
    """Return the given fields that a degenerate run changes."""
    return [
        spec.name
        for spec in dataclasses.fields(Step)
        if spec.name not in ("n_labelled", "estimated", "classes_seen") and getattr(step, spec.name) is not None
    ]


def _all(number: float) -> Callable[[Step, str], Any]:
    """Return a function that sets each field as close to a number as allowed; all items in the first or last class."""

    def extreme(step: Step, name: str) -> Any:
        present = getattr(step, name)
        if isinstance(present, np.ndarray) and present.dtype.kind == "f":
            sure = np.zeros_like(present)
            sure[:, 0 if number < 1.0 else -1] = 1.0
            return sure
        if isinstance(present, np.ndarray):
            return np.full_like(present, 0 if number < 1.0 else -1)
        if isinstance(present, int):
            return int(number)
        return min(number, 1.0) if FIELD_KINDS.get(name) == "share" else number

    return extreme


def _even(step: Step, name: str) -> Any:
    """Return equal probabilities of the classes for every item; other fields are unchanged."""
    present = getattr(step, name)
    if isinstance(present, np.ndarray) and present.dtype.kind == "f":
        return np.full_like(present, 1.0 / present.shape[1])
    return present


def _empty(step: Step, name: str) -> Any:
    """Return values for a step without items."""
    present = getattr(step, name)
    return present[:0] if isinstance(present, np.ndarray) else present


_EXTREMES: Final[Mapping[str, Callable[[Step, str], Any]]] = {
    **{f"every number {value:g}": _all(value) for value in (0.0, 1e-300, 1.0, 1e12)},
    "even odds everywhere": _even,
    "no items": _empty,
}


def composition_keeps_the_rule(make: MakeRule, steps: Sequence[Step]) -> None:
    """``patience(1)``, ``after(0)`` and a rule combined with itself stop at the same steps; the rule is not changed.

    Examples:
        >>> from suffice.criteria import Budget
        >>> class Counting(Budget):
        ...     seen = []  # the same list for all rules of the class
        ...     def judge(self, step):
        ...         self.seen.append(step)
        ...         return self.verdict(step, stop=len(self.seen) > 70, reason="steps are counted")
        >>> composition_keeps_the_rule(lambda: Counting(20), example_steps())
        Traceback (most recent call last):
        AssertionError: patience(1) stops elsewhere than the rule alone
    """
    stops = [verdict.stop for verdict in _replay(make(), steps)]
    rule = make()
    for name, composed in (
        ("patience(1)", rule.patience(1)),
        ("after(0)", rule.after(0)),
        ("rule & rule", rule & rule),
        ("rule | rule", rule | rule),
    ):
        require([v.stop for v in _replay(composed, steps)] == stops, f"{name} stops elsewhere than the rule alone")
    require(rule.state_dict() == make().state_dict(), "a rule changed when rules composed of it were used")


#: Every check for stopping rules: functions of (a maker of the rule, a run of steps).
CRITERION_CHECKS: Final[tuple[CriterionCheck, ...]] = (
    verdicts_are_well_formed,
    same_steps_give_same_verdicts,
    no_look_ahead,
    verdicts_stay_as_given,
    state_is_json_and_resumes,
    saving_changes_nothing,
    reset_forgets_everything,
    only_what_is_required_is_read,
    one_class_is_not_judged,
    missing_input_is_named,
    degenerate_inputs_do_not_break,
    composition_keeps_the_rule,
)


def _changed(step: Step, fields: Mapping[str, Any]) -> Step:
    return dataclasses.replace(step, **fields)


def _replay(rule: Criterion, steps: Sequence[Step]) -> list[Verdict]:
    return [_observed(rule, step) for step in steps]


def _observed(rule: Criterion, step: Step) -> Verdict:
    try:
        return rule.observe(step)
    except Exception as error:
        raise AssertionError(f"the rule raised {error!r} at {step.n_labelled} labels") from error


def _answers(rule: Criterion, steps: Sequence[Step]) -> list[tuple[Verdict, Forecast | None]]:
    """Return verdicts with their forecasts, which are computed only after the run."""
    return [(verdict, verdict.forecast) for verdict in _replay(rule, steps)]


def _cuts(n: int) -> list[int]:
    """Return a few positions at which to split a run of ``n`` steps, including both ends."""
    return sorted({0, 1, n // 3, n // 2, n - 1, n} & set(range(n + 1)))
