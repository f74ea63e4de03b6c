"""The fields of a step that a rule uses and a model provides, and why a model does not provide others."""

from collections.abc import Sequence, Set
from typing import Final

import numpy as np

from suffice.criteria import RULES, Criterion
from suffice.criteria.base import example_rule, fields_with_probabilities, requiring_rule
from suffice.criteria.optimisation import REGRET_FIELDS
from suffice.criteria.prediction_statistics import POOL_FIELDS
from suffice.errors import MissingInputError
from suffice.learner.label_sets import GivenSets, SetClassifier
from suffice.learner.model_predictions import FittedModel
from suffice.learner.pool_predictions import GivenAnswers, GivenClasses, PoolPredictions
from suffice.learner.step_inputs import (
    COUNTED_FIELDS,
    LOSS_FIELDS,
    RELEVANCE_FIELDS,
    REST_FIELDS,
    SCREENING_FIELDS,
    SELECTED_FIELDS,
    STOP_SET_FIELDS,
    VALIDATION_FIELDS,
)
from suffice.session.guarantee_rules import ErrorGuarantee
from suffice.session.recorded_steps import DIVERGENCES

#: Fields that require a committee of classifiers.
COMMITTEE_FIELDS: Final = frozenset({"selected_agreement", "stop_agreement", "pool_gain"})
#: Fields that require the variance of noise-free values.
LATENT_FIELDS: Final = frozenset({"pool_variance", "pool_gain"})
#: Fields that require class probabilities.
PROBABILITY_FIELDS: Final = (
    SELECTED_FIELDS | POOL_FIELDS | STOP_SET_FIELDS | REST_FIELDS | {"train_error", "pool_sample"}
) - (COMMITTEE_FIELDS)
#: Fields that the predicted classes provide, for rules that use no probabilities of them.
CLASS_FIELDS: Final = frozenset(
    {"pool_changes", "pool_sample", "stop_probabilities", "selected_probabilities", "selected_labels"}
)
#: Fields that require a mean and a standard deviation.
NUMBER_FIELDS: Final = LOSS_FIELDS | REST_FIELDS | {"expected_error"}
#: What a function of the caller must do.
FUNCTION: Final = "a function predict(model, X) that returns"
# Number of items for testing whether an ensemble predicts the average of its members.
_TRIED_ITEMS: Final = 50


def wanted_fields(rule: Criterion, fitted: FittedModel, *, size: int, screening: bool, control: bool) -> frozenset[str]:
    """The fields that a rule uses and a model provides.

    Args:
        rule: The rule.
        fitted: The model.
        size: Number of items of the pool.
        screening: Whether there is a positive class.
        control: Whether there is a control sample.

    Raises:
        MissingInputError: The rule requires another one; the message names it, the remedy and rules that work.
    """
    provided = _provided(rule.reads(), fitted, size=size, screening=screening, control=control)
    missing = sorted(rule.needs() - _usable(rule, provided, fitted))
    if missing:
        working = [name for name, each in RULES.items() if _works(example_rule(each), provided, fitted)]
        raise MissingInputError(
            f"{requiring_rule(rule, missing)} requires {', '.join(missing)}: {why_missing(missing, fitted)}"
            f". Rules that work: {', '.join([*working, ErrorGuarantee.__name__])}"
        )
    return rule.reads() & _usable(rule, provided, fitted)


def predicts_classes_only(fitted: FittedModel) -> bool:
    """Whether a model, or what is given in place of one, predicts one class for each item without probabilities."""
    other = isinstance(fitted.model, GivenAnswers | GivenSets | SetClassifier)
    return fitted.task == "classification" and not fitted.gives_probabilities and not other


def _provided(reads: Set[str], fitted: FittedModel, *, size: int, screening: bool, control: bool) -> frozenset[str]:
    """The fields that a model provides; those that are expensive to test only if they are read."""
    provided = set(COUNTED_FIELDS)
    if fitted.task == "classification" and not isinstance(fitted.model, GivenAnswers):
        provided.add("classes_seen")
        if screening:
            provided |= SCREENING_FIELDS | ({"control_found"} if control else set())
        if predicts_classes_only(fitted):
            provided |= CLASS_FIELDS
        if fitted.gives_probabilities:
            provided |= PROBABILITY_FIELDS | (RELEVANCE_FIELDS if screening else set())
            tried = np.arange(min(size, _TRIED_ITEMS))
            if reads & COMMITTEE_FIELDS and fitted.class_predictions.has_committee(tried):
                provided |= COMMITTEE_FIELDS
    elif fitted.gives_numbers:
        provided |= NUMBER_FIELDS
        if reads & LATENT_FIELDS and fitted.numbers(np.zeros(1, dtype=np.intp)).latent is not None:
            provided |= LATENT_FIELDS
    if reads & DIVERGENCES and fitted.posterior.exists:
        provided |= DIVERGENCES
    return frozenset(provided)


def _usable(rule: Criterion, provided: frozenset[str], fitted: FittedModel) -> frozenset[str]:
    """The provided fields without those of which the rule uses probabilities that the model does not predict."""
    return provided - fields_with_probabilities(rule) if predicts_classes_only(fitted) else provided


def _works(rule: Criterion, provided: frozenset[str], fitted: FittedModel) -> bool:
    """Whether a rule needs none but the provided fields."""
    return rule.needs() <= _usable(rule, provided, fitted)


def _why_not_given(lacks: frozenset[str], fitted: FittedModel) -> str:
    """Reason why given predictions do not provide some fields; empty if it is the same as for a model."""
    if isinstance(fitted.model, GivenAnswers):
        return "correct= says only whether predictions were right; give probabilities= and labels for more"
    if lacks & DIVERGENCES:
        return "posteriors are compared, and predictions have none; give the model"
    if fitted.gives_probabilities and lacks & COMMITTEE_FIELDS:
        return (
            "a committee is needed, and the given table has the probabilities of one model; give those of K members, "
            "N x K x C, or the model"
        )
    if isinstance(fitted.model, GivenClasses) and not lacks & (SCREENING_FIELDS | VALIDATION_FIELDS | {"kl_prior"}):
        return "predicted classes do not provide it; give probabilities=, class probabilities, N x C"
    if fitted.task == "regression" and lacks <= LATENT_FIELDS:
        return (
            "the given numbers do not tell the variance of the noise-free value from that of the label; give the model"
        )
    return ""


def why_missing(missing: Sequence[str], fitted: FittedModel) -> str:  # noqa: PLR0911, PLR0912 - one sentence for each case
    """Reason why a model does not provide some fields, and the remedy."""
    name = fitted.name
    lacks = frozenset(missing)
    if isinstance(fitted.model, GivenSets | SetClassifier):
        return "it is for one class for each item, and labels are sets of classes; use one StopMonitor for each class"
    if isinstance(fitted.model, PoolPredictions) and (reason := _why_not_given(lacks, fitted)):
        return reason
    if "control_found" in lacks and not lacks & SCREENING_FIELDS:
        return "give control= to StopMonitor, items of the positive class that were drawn at random, and positive="
    if lacks & (SCREENING_FIELDS | RELEVANCE_FIELDS) and fitted.task == "classification":
        if fitted.gives_probabilities or lacks & SCREENING_FIELDS:
            return "give positive= to StopMonitor, the class that the screening looks for"
        return f"{name} has no predict_proba; give predict=, {FUNCTION} class probabilities, N x C"
    if lacks <= REGRET_FIELDS:
        return "the rule is for Bayesian optimisation; use suffice.learner.OptimisationMonitor"
    if lacks & DIVERGENCES:
        return f"posteriors are compared, and {fitted.posterior.why_missing}"
    if "kl_prior" in lacks:
        return "the monitor knows no prior of the model; use suffice.simulate with a model of suffice"
    if lacks & VALIDATION_FIELDS:
        return "the monitor has no validation set; compute the error on yours and give it to the rule in a suffice.Step"
    if fitted.task == "regression" and not lacks <= NUMBER_FIELDS | LATENT_FIELDS:
        return f"it is computed from class probabilities, and {name} predicts numbers"
    if fitted.task == "regression" and fitted.gives_numbers:
        return f"{name} does not tell the variance of the noise-free value from that of the label"
    if fitted.task == "regression":
        return f"{name}.predict does not take return_std=True; give predict=, {FUNCTION} (mean, std)"
    if "pool_variance" in lacks:
        return f"it is for numbers, and {name} predicts classes"
    if fitted.gives_probabilities and lacks & COMMITTEE_FIELDS:
        return (
            f"a committee is needed, and {name} has no estimators_ whose average it predicts; give predict=, "
            f"{FUNCTION} the probabilities of K members, N x K x C"
        )
    if not fitted.gives_probabilities:
        return f"{name} has no predict_proba; give predict=, {FUNCTION} class probabilities, N x C"
    return "the monitor does not compute it; give it to the rule in a suffice.Step"
