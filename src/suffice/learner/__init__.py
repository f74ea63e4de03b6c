"""Ask which label is wanted next, tell it, and hear whether it is enough."""

from suffice.learner.active import ActiveLearner
from suffice.learner.committee import bagged_votes
from suffice.learner.simulate import audit, simulate
from suffice.learner.stop_set import StopSet

__all__ = ["ActiveLearner", "StopSet", "audit", "bagged_votes", "simulate"]
