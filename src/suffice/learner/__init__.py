"""Ask which label is wanted next, tell it, and hear whether it is enough."""

from suffice.learner.active import ActiveLearner
from suffice.learner.simulate import audit, simulate

__all__ = ["ActiveLearner", "audit", "simulate"]
