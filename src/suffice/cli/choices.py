"""Words that several commands take."""

from enum import StrEnum


class TaskName(StrEnum):
    """What is predicted."""

    regression = "regression"
    classification = "classification"


class ModelName(StrEnum):
    """Which model learns."""

    gp = "gp"
    ridge = "ridge"
    logistic = "logistic"
    dropout = "dropout"


class DemoModel(StrEnum):
    """Which model the demonstration shows."""

    linear = "linear"
    dropout = "dropout"


class BoundName(StrEnum):
    """Which bound on the change of error the rule takes."""

    paper = "paper"
    tight = "tight"
