"""Recommendation of a stopping rule for a task and its costs: compared rules, costs of stopping, and the evidence."""

from suffice.recommendation.compared_rules import Expectation, Recommendation, recommend

__all__ = ["Expectation", "Recommendation", "recommend"]
