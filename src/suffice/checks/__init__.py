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

from suffice.checks.comparison import compare
from suffice.checks.data_set import DataSetGuarantee, ScreeningGuarantee
from suffice.checks.finish_plan import FinishPlan, allowed_missed, allowed_wrong, plan_finish, plan_screening
from suffice.checks.guarantee import Guarantee, PredictedItems
from suffice.checks.hypergeometric import lower_bound, upper_bound
from suffice.checks.planner import CheckPlan, attainable_bound, plan, plan_recall
from suffice.checks.random_check import Check, EvaluationGrid, spent_alpha
from suffice.checks.registry import CheckRegistry, rows_digest
from suffice.checks.sequential_check import SequentialCheck, sequential
from suffice.checks.sequential_plan import GuaranteePlan, plan_total
from suffice.checks.sequential_terms import SequentialTerms, sequential_limits

__all__ = [
    "Check",
    "CheckPlan",
    "CheckRegistry",
    "DataSetGuarantee",
    "EvaluationGrid",
    "FinishPlan",
    "Guarantee",
    "GuaranteePlan",
    "PredictedItems",
    "ScreeningGuarantee",
    "SequentialCheck",
    "SequentialTerms",
    "allowed_missed",
    "allowed_wrong",
    "attainable_bound",
    "compare",
    "lower_bound",
    "plan",
    "plan_finish",
    "plan_recall",
    "plan_screening",
    "plan_total",
    "rows_digest",
    "sequential",
    "sequential_limits",
    "spent_alpha",
    "upper_bound",
]
