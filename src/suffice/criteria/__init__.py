"""Stopping rules. They see numbers, not models: a :class:`Step` in, a :class:`Verdict` out."""

from typing import Final

from suffice.criteria import (
    agreement,
    bayesian,
    budget,
    confidence_and_accuracy,
    label_worth,
    optimisation,
    screening,
    trend,
)
from suffice.criteria.base import After, AllOf, AnyOf, Criterion, Patience, criterion_from_dict, rules_in
from suffice.criteria.optimisation import confidence_factor, regret_facts
from suffice.criteria.prediction_statistics import (
    cohen_kappa,
    committee_agreement,
    entropies,
    expected_f,
    f_change,
    margins,
    pool_facts,
    relevance_facts,
    worth_facts,
)
from suffice.criteria.rule_exports import *  # noqa: F403 - the rules that the modules of rules list in __all__
from suffice.criteria.step_and_verdict import Certificate, Step, Verdict

#: Every stopping rule that is not composed of others, by name, in the order of the documentation and the comparison.
RULES: Final[dict[str, type[Criterion]]] = rules_in(
    bayesian,
    label_worth,
    confidence_and_accuracy,
    trend,
    agreement,
    screening,
    optimisation,
    budget,
)

__all__ = [
    "RULES",
    "After",
    "AllOf",
    "AnyOf",
    "Certificate",
    "Criterion",
    "Patience",
    "Step",
    "Verdict",
    "cohen_kappa",
    "committee_agreement",
    "confidence_factor",
    "criterion_from_dict",
    "entropies",
    "expected_f",
    "f_change",
    "margins",
    "pool_facts",
    "regret_facts",
    "relevance_facts",
    "worth_facts",
]
__all__ += list(RULES)
