"""Recommendation of a stopping rule for a task and its costs: compared rules, costs of stopping, and the evidence."""

from suffice_research.recommendation.compared_rules import Expectation, Recommendation, recommend

__all__ = ["Expectation", "Recommendation", "recommend"]
