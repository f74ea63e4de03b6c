"""Ask which label is wanted next, tell it, and hear whether it is enough."""

from suffice.learner.simulate import audit, simulate

__all__ = ["audit", "simulate"]
