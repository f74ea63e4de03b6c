"""Active learning loops: ask which item to label next, tell its label, learn whether to stop."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Importing a rule registers it under its name.
from suffice.session.guarantee_rules import ErrorGuarantee, RecallGuarantee

if TYPE_CHECKING:
    from suffice.learner.active import ActiveLearner
    from suffice.learner.backend import Backend, RunSettings, StepResults, register_backend
    from suffice.learner.goal_run import FinishedRun, finished_run
    from suffice.learner.model_choice import ModelChoice
    from suffice.learner.optimisation_monitor import OptimisationMonitor
    from suffice.learner.own_acquisition import LabelledRows
    from suffice.learner.simulation import CheckedRun, audit, simulate
    from suffice.learner.step_inputs import StopSet, bagged_votes
    from suffice.learner.stop_monitor import StopMonitor
    from suffice.session.model_check import ModelCheck, ModelGuarantee
    from suffice.session.running_check import RunningCheck, RunningEvaluation

__all__ = [
    "ActiveLearner",
    "Backend",
    "CheckedRun",
    "ErrorGuarantee",
    "FinishedRun",
    "LabelledRows",
    "ModelCheck",
    "ModelChoice",
    "ModelGuarantee",
    "OptimisationMonitor",
    "RecallGuarantee",
    "RunSettings",
    "RunningCheck",
    "RunningEvaluation",
    "StepResults",
    "StopMonitor",
    "StopSet",
    "audit",
    "bagged_votes",
    "finished_run",
    "register_backend",
    "simulate",
]

# Imported at first use, because modules that only describe checks and rules do not need scikit-learn.
_LAZY_NAMES = {
    "ActiveLearner": "suffice.learner.active",
    "Backend": "suffice.learner.backend",
    "CheckedRun": "suffice.learner.simulation",
    "FinishedRun": "suffice.learner.goal_run",
    "LabelledRows": "suffice.learner.own_acquisition",
    "ModelCheck": "suffice.session.model_check",
    "ModelChoice": "suffice.learner.model_choice",
    "ModelGuarantee": "suffice.session.model_check",
    "OptimisationMonitor": "suffice.learner.optimisation_monitor",
    "RunSettings": "suffice.learner.backend",
    "RunningCheck": "suffice.session.running_check",
    "RunningEvaluation": "suffice.session.running_check",
    "StepResults": "suffice.learner.backend",
    "StopMonitor": "suffice.learner.stop_monitor",
    "StopSet": "suffice.learner.step_inputs",
    "audit": "suffice.learner.simulation",
    "bagged_votes": "suffice.learner.step_inputs",
    "finished_run": "suffice.learner.goal_run",
    "register_backend": "suffice.learner.backend",
    "simulate": "suffice.learner.simulation",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY_NAMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
