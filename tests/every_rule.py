"""Every stopping rule of suffice, with parameters at which it says both "go on" and "stop" on short runs."""

from typing import Final

import suffice as sf
from suffice.criteria import Criterion

RULES: Final[dict[str, Criterion]] = {
    "ErrorStability": sf.ErrorStability(0.6, calibration=3),
    "DeterministicBoundRuns": sf.DeterministicBoundRuns(0.5, window=4),
    "PacBayes": sf.PacBayes(0.95),
    "Budget": sf.Budget(25),
    "TimeLimit": sf.TimeLimit(12.0),
    "CostLimit": sf.CostLimit(50.0),
    "PoolFraction": sf.PoolFraction(0.4),
    "MaxConfidence": sf.MaxConfidence(0.68),
    "EntropyMax": sf.EntropyMax(0.69),
    "MinExpectedError": sf.MinExpectedError(0.3),
    "OverallUncertainty": sf.OverallUncertainty(0.8),
    "SelectedAccuracy": sf.SelectedAccuracy(0.6, window=4),
    "ClassificationChange": sf.ClassificationChange(),
    "ThresholdUpdate": sf.ThresholdUpdate(sf.MinExpectedError(0.4), factor=0.9),
    "DropInConfidence": sf.DropInConfidence(1),
    "PerformanceConvergence": sf.PerformanceConvergence(4, 0.1),
    "UncertaintyConvergence": sf.UncertaintyConvergence(4, 0.2),
    "MarginExhaustion": sf.MarginExhaustion(0.01),
    "VarianceModel": sf.VarianceModel(1),
    "InformationGain": sf.InformationGain(0.15),
    "SelectionAgreement": sf.SelectionAgreement(0.2),
    "ValidationSetAgreement": sf.ValidationSetAgreement(2, 0.02),
    "IntrinsicStopping": sf.IntrinsicStopping(),
    "StabilizingPredictions": sf.StabilizingPredictions(0.9, 2),
    "KappaCertificate": sf.KappaCertificate(0.9, 2, precision=0.5),
    "PredictedFChange": sf.PredictedFChange(0.2, 2),
    "HeldOutPlateau": sf.HeldOutPlateau(0.05, 2),
    "ExpectedCost": sf.ExpectedCost(100.0, 1.0, window=3),
    "LabelWorth": sf.LabelWorth(30.0, 1.0),
    "MaxVariance": sf.MaxVariance(0.7),
    "AllOf": sf.ErrorStability(0.9, calibration=2) & sf.PoolFraction(0.3),
    "AnyOf": sf.ErrorStability(0.3, calibration=2) | sf.CostLimit(60.0),
    "Patience": sf.ErrorStability(0.9, calibration=2).patience(2),
    "After": sf.ErrorStability(0.9, calibration=2).after(24),
}
OF_CLASSES_ONLY: Final = frozenset(RULES) - {
    "ErrorStability", "DeterministicBoundRuns", "Budget", "TimeLimit", "CostLimit", "PoolFraction", "InformationGain",
    "HeldOutPlateau", "ExpectedCost", "LabelWorth", "MaxVariance", "AllOf", "AnyOf", "Patience", "After",
}  # fmt: skip
