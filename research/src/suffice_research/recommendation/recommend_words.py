"""Sentences of ``suffice recommend``."""

from suffice.presentation.text_format import count, rounded_percent


def assumed_costs_sentence(label: float, mistake: float, unlabelled: int, *, task: str) -> str:
    """The costs that a recommendation is for.

    Examples:
        >>> assumed_costs_sentence(1.0, 20.0, 5000, task="classification")
        'Costs: 1 for a label, 20 for each wrong prediction among 5,000 items.'
    """
    wrong = "wrong prediction" if task == "classification" else "prediction no better than the mean"
    return f"Costs: {label:.6g} for a label, {mistake:.6g} for each {wrong} among {count(unlabelled, 'item')}."


def expected_cost_sentence(typical: float, median: float, p90: float, mean: float) -> str:
    """Expected regret of a recommended rule."""
    return (
        f"Expected: typically {rounded_percent(typical)} more expensive than the best stop in hindsight, labels and "
        f"error together; at most {rounded_percent(median)} in half of the runs, at most {rounded_percent(p90)} in "
        f"nine of ten. (On average {rounded_percent(mean)}, mostly because of the few worst runs.)"
    )
