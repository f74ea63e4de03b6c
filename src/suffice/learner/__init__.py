"""Active learning loops: ask which item to label next, tell its label, learn whether to stop."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Importing a rule registers it under its name.
from suffice.learner.guarantee_rules import ErrorGuarantee, RecallGuarantee

if TYPE_CHECKING:
    from suffice.learner.active import ActiveLearner
    from suffice.learner.backend import Backend, RunSettings, StepResults, register_backend
    from suffice.learner.model_check import ModelCheck, ModelGuarantee, RunningCheck, RunningEvaluation
    from suffice.learner.optimisation_monitor import OptimisationMonitor
    from suffice.learner.simulation import CheckedRun, audit, simulate
    from suffice.learner.step_inputs import StopSet, bagged_votes
    from suffice.learner.stop_monitor import StopMonitor

__all__ = [
    "ActiveLearner",
    "Backend",
    "CheckedRun",
    "ErrorGuarantee",
    "ModelCheck",
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
    "register_backend",
    "simulate",
]

# Imported at first use, because modules that only describe checks and rules do not need scikit-learn.
_LAZY_NAMES = {
    "ActiveLearner": "active",
    "Backend": "backend",
    "CheckedRun": "simulation",
    "ModelCheck": "model_check",
    "ModelGuarantee": "model_check",
    "OptimisationMonitor": "optimisation_monitor",
    "RunSettings": "backend",
    "RunningCheck": "model_check",
    "RunningEvaluation": "model_check",
    "StepResults": "backend",
    "StopMonitor": "stop_monitor",
    "StopSet": "step_inputs",
    "audit": "simulation",
    "bagged_votes": "step_inputs",
    "register_backend": "backend",
    "simulate": "simulation",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"suffice.learner.{_LAZY_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
