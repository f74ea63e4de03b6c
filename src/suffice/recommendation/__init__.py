"""The stopping rule that fits a task and its costs: compared rules, costs of stopping, and the recorded evidence."""

from suffice.recommendation.compared_rules import Expectation, Recommendation, recommend

__all__ = ["Expectation", "Recommendation", "recommend"]
