"""Stopping rules. They see numbers, not models: a :class:`Step` in, a :class:`Verdict` out."""

from suffice.criteria.base import Criterion, criterion_from_dict
from suffice.criteria.budget import Budget
from suffice.criteria.compose import After, AllOf, AnyOf, Patience
from suffice.criteria.error_stability import ErrorStability
from suffice.criteria.facts import committee_agreement, entropies, expected_f, margins, pool_facts
from suffice.criteria.step import Step
from suffice.criteria.verdict import Certificate, Verdict

__all__ = [
    "After",
    "AllOf",
    "AnyOf",
    "Budget",
    "Certificate",
    "Criterion",
    "ErrorStability",
    "Patience",
    "Step",
    "Verdict",
    "committee_agreement",
    "criterion_from_dict",
    "entropies",
    "expected_f",
    "margins",
    "pool_facts",
]
