"""Conformance suites: what every stopping rule, posterior and model must do, for authors to run on theirs.

With pytest::

    @pytest.mark.parametrize("check", suffice.testing.CRITERION_CHECKS, ids=lambda check: check.__name__)
    def test_my_rule(check):
        check(lambda: MyRule(threshold=0.1), suffice.testing.example_steps())

or all at once with :func:`check_criterion`, :func:`check_posterior` and :func:`check_model`. A check that fails raises
``AssertionError`` with a sentence.
"""

from suffice.testing.criterion_checks import (
    CRITERION_CHECKS,
    CriterionCheck,
    MakeRule,
    check_criterion,
    composition_keeps_the_rule,
    degenerate_inputs_do_not_break,
    example_steps,
    missing_input_is_named,
    no_look_ahead,
    only_what_is_required_is_read,
    reset_forgets_everything,
    same_steps_give_same_verdicts,
    saving_changes_nothing,
    state_is_json_and_resumes,
    verdicts_are_well_formed,
    verdicts_stay_as_given,
)
from suffice.testing.protocol_checks import (
    MODEL_CHECKS,
    POSTERIOR_CHECKS,
    MakeModel,
    ModelCheck,
    PosteriorCheck,
    a_copy_goes_on_alone,
    a_posterior_is_a_value,
    check_model,
    check_posterior,
    divergence_feeds_a_step,
    divergence_is_finite_and_nonnegative,
    divergence_is_not_below_monte_carlo,
    divergence_is_repeatable,
    divergence_to_itself_is_zero,
    learning_leaves_parameters_and_data_alone,
    observing_is_fitting,
    predictions_carry_their_deviation,
    the_first_label_may_be_observed,
)

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
