"""Guarantees for the predictions of unlabelled items, from a random check.

>>> import numpy as np
>>> from suffice import checks
>>> checks.plan(target=0.1, expected=0.03, pool=4600).labels
76
>>> check = checks.Check.draw(np.arange(4600), size=90, rng=np.random.default_rng(0))
>>> check = check.tell({item: "ham" for item in check.items})
>>> print(check.guarantee(["ham"] * 88 + ["spam"] * 2))
At most 7.9 % of the predictions for the 4,510 unlabelled items are wrong (95 % confidence).
"""

from suffice.checks.accepted_part import AcceptedPart, accept_corrected, accept_share, accepted_shares
from suffice.checks.answer_plan import AnswerPlan, SampleBounds, answer_table, plan_answers, sample_bounds
from suffice.checks.class_share import ClassShare, SharePart, SharePlan, plan_share
from suffice.checks.comparison import compare
from suffice.checks.confidence_judgement import JudgedConfidence, judged_confidence
from suffice.checks.data_set import DataSetGuarantee, ScreeningGuarantee
from suffice.checks.error_difference import ErrorChange, error_change, fixed_answers
from suffice.checks.finish_plan import FinishPlan, allowed_missed, allowed_wrong, plan_finish, plan_screening
from suffice.checks.group_guarantees import GroupGuarantees, by_group
from suffice.checks.guarantee import Guarantee, PredictedItems
from suffice.checks.hypergeometric import lower_bound, upper_bound
from suffice.checks.made_elsewhere import GivenPredictions, of_predictions
from suffice.checks.planner import CheckPlan, attainable_bound, plan, plan_recall
from suffice.checks.prediction_check import PredictionCheck, PredictionResult
from suffice.checks.prediction_finish import PredictionFinish
from suffice.checks.random_check import Check, EvaluationGrid, spent_alpha
from suffice.checks.registry import CheckRegistry, rows_digest
from suffice.checks.sequential_check import SequentialCheck, sequential
from suffice.checks.sequential_plan import GuaranteePlan, plan_total
from suffice.checks.sequential_terms import SequentialTerms, sequential_limits

__all__ = [
    "AcceptedPart",
    "AnswerPlan",
    "Check",
    "CheckPlan",
    "CheckRegistry",
    "ClassShare",
    "DataSetGuarantee",
    "ErrorChange",
    "EvaluationGrid",
    "FinishPlan",
    "GivenPredictions",
    "GroupGuarantees",
    "Guarantee",
    "GuaranteePlan",
    "JudgedConfidence",
    "PredictedItems",
    "PredictionCheck",
    "PredictionFinish",
    "PredictionResult",
    "SampleBounds",
    "ScreeningGuarantee",
    "SequentialCheck",
    "SequentialTerms",
    "SharePart",
    "SharePlan",
    "accept_corrected",
    "accept_share",
    "accepted_shares",
    "allowed_missed",
    "allowed_wrong",
    "answer_table",
    "attainable_bound",
    "by_group",
    "compare",
    "error_change",
    "fixed_answers",
    "judged_confidence",
    "lower_bound",
    "of_predictions",
    "plan",
    "plan_answers",
    "plan_finish",
    "plan_recall",
    "plan_screening",
    "plan_share",
    "plan_total",
    "rows_digest",
    "sample_bounds",
    "sequential",
    "sequential_limits",
    "spent_alpha",
    "upper_bound",
]
