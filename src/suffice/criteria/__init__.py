"""Stopping rules. They see numbers, not models: a :class:`Step` in, a :class:`Verdict` out."""

from suffice.criteria.accuracy import HeldOutPlateau, SelectedAccuracy
from suffice.criteria.agreement import cohen_kappa, f_change
from suffice.criteria.base import Criterion, criterion_from_dict
from suffice.criteria.bayesian import DeterministicBoundRuns, InformationGain, PacBayes
from suffice.criteria.budget import Budget, CostLimit, PoolFraction, TimeLimit
from suffice.criteria.committee import IntrinsicStopping, SelectionAgreement, ValidationSetAgreement
from suffice.criteria.compose import After, AllOf, AnyOf, Patience
from suffice.criteria.confidence import (
    EntropyMax,
    MarginExhaustion,
    MaxConfidence,
    MaxVariance,
    MinExpectedError,
    OverallUncertainty,
)
from suffice.criteria.error_stability import ErrorStability
from suffice.criteria.facts import committee_agreement, entropies, expected_f, margins, pool_facts, worth_facts
from suffice.criteria.stability import (
    ClassificationChange,
    KappaCertificate,
    PredictedFChange,
    StabilizingPredictions,
    ThresholdUpdate,
)
from suffice.criteria.step import Step
from suffice.criteria.trend import DropInConfidence, PerformanceConvergence, UncertaintyConvergence, VarianceModel
from suffice.criteria.verdict import Certificate, Verdict
from suffice.criteria.worth import ExpectedCost, LabelWorth

__all__ = [
    "After",
    "AllOf",
    "AnyOf",
    "Budget",
    "Certificate",
    "ClassificationChange",
    "CostLimit",
    "Criterion",
    "DeterministicBoundRuns",
    "DropInConfidence",
    "EntropyMax",
    "ErrorStability",
    "ExpectedCost",
    "HeldOutPlateau",
    "InformationGain",
    "IntrinsicStopping",
    "KappaCertificate",
    "LabelWorth",
    "MarginExhaustion",
    "MaxConfidence",
    "MaxVariance",
    "MinExpectedError",
    "OverallUncertainty",
    "PacBayes",
    "Patience",
    "PerformanceConvergence",
    "PoolFraction",
    "PredictedFChange",
    "SelectedAccuracy",
    "SelectionAgreement",
    "StabilizingPredictions",
    "Step",
    "ThresholdUpdate",
    "TimeLimit",
    "UncertaintyConvergence",
    "ValidationSetAgreement",
    "VarianceModel",
    "Verdict",
    "cohen_kappa",
    "committee_agreement",
    "criterion_from_dict",
    "entropies",
    "expected_f",
    "f_change",
    "margins",
    "pool_facts",
    "worth_facts",
]
