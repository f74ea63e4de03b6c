"""Active learning loops: ask which item to label next, tell its label, learn whether to stop."""

# Importing a backend registers it.
from suffice.learner import class_backend, estimator_backend, gaussian_backend, network_backend  # noqa: F401
from suffice.learner.active import ActiveLearner
from suffice.learner.backend import Backend, RunSettings, StepResults, register_backend
from suffice.learner.guarantee_rules import ErrorGuarantee, RecallGuarantee
from suffice.learner.model_check import ModelCheck, ModelGuarantee
from suffice.learner.running_check import RunningCheck, RunningEvaluation
from suffice.learner.simulation import CheckedRun, audit, simulate
from suffice.learner.step_inputs import bagged_votes
from suffice.learner.stop_monitor import StopMonitor
from suffice.learner.stop_set import StopSet

__all__ = [
    "ActiveLearner",
    "Backend",
    "CheckedRun",
    "ErrorGuarantee",
    "ModelCheck",
    "ModelGuarantee",
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
