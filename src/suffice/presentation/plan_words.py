"""Sentences about the effect of more labels: forecasts of their number, and plans for a target."""

from collections.abc import Mapping
from typing import Any, Final

from suffice.presentation.error_words import error_figure, error_then
from suffice.presentation.text_format import as_sentence, count, percent, two_digits

#: In place of a number of labels while many are not learned yet.
NOT_LEARNED: Final = "How many more labels are needed is stated when the model has learned the newest ones."


def more_labels(labels: int, low: int, high: int, *, coverage: float | None = None) -> str:
    r"""A forecast of how many more labels it takes, with its interval.

    Args:
        labels: The middle of the forecast.
        low: Lower end of its interval.
        high: Upper end of its interval.
        coverage: Probability that the interval contains the true number, if it is to be stated.

    Examples:
        >>> more_labels(401, 73, 1177), more_labels(1, 1, 1)
        ('about 400 more labels (73 to 1,200)', '1 more label')
        >>> more_labels(401, 73, 1177, coverage=0.8)
        'about 400 more labels (80\xa0% sure: 73 to 1,200)'
    """
    if low == high:
        return count(labels, "more label")
    sure = "" if coverage is None else f"{percent(coverage)} sure: "
    return f"about {count(two_digits(labels), 'more label')} ({sure}{two_digits(low):,} to {two_digits(high):,})"


def labels_to_give(decision: Mapping[str, Any]) -> tuple[int, int, int]:
    """The labels of the forecast of a decision that are still to give, with the ends of the interval.

    Labels that the model has not learned yet have been given. The first number is 0 if they are as many as the
    forecast.

    Args:
        decision: A decision with a forecast, as JSON values.

    Examples:
        >>> labels_to_give({"forecast": {"labels": 40, "low": 5, "high": 90}, "not_learned": 10})
        (30, 1, 80)
    """
    given, forecast = decision.get("not_learned", 0), decision["forecast"]
    labels, low, high = (forecast[name] - given for name in ("labels", "low", "high"))
    return max(labels, 0), max(low, 1), max(high, 1)


def forecast_sentence(decision: Mapping[str, Any]) -> str:
    """Forecast of the number of labels, and their effect."""
    if decision.get("forecast") is None:
        return NOT_LEARNED if decision.get("far_behind") else "How many more labels it takes is not yet predictable."
    labels, low, high = labels_to_give(decision)
    if not labels:
        return "The labels that the model is still learning may be enough."
    if labels >= decision["unlabelled"]:
        return "It may take all of the remaining items."
    more = as_sentence(more_labels(labels, low, high))[:-1]
    corrected, then = decision.get("corrected"), error_then(decision)
    if corrected:
        wrong = f"{two_digits(corrected):,} of about {count(two_digits(decision['wrong']), 'wrong prediction')}"
        still = f"about {percent(decision['error_then'])} would still be wrong, and more would not be worth their cost"
        return f"{more} would avoid about {wrong}; {still} (extrapolated)."
    if then:
        return f"{more} would lower that to about {then}; then more labels are not worth their cost (extrapolated)."
    return f"{more} until more labels are not worth their cost (extrapolated)."


def plan_sentence(plan: Mapping[str, Any], unlabelled: int) -> str:
    """Time of the check for the target error, and the number of labels."""
    target = f"your target of at most {percent(plan['target'])}"
    size, low, high = (two_digits(plan[name], unlabelled) for name in ("check_size", "check_low", "check_high"))
    labels = f"about {count(size, 'random label')} ({low:,} to {high:,})"
    if plan["check_now"]:
        likely = f"with a probability of {percent(plan['success'])}"
        return f"A check of these {unlabelled:,} items takes {labels}, and proves {target} {likely}."
    more, total = two_digits(plan["more_labels"]), two_digits(plan["expected_total"])
    first = f"About {count(more, 'more label')}, then a check of {labels}, would prove {target} (extrapolated):"
    return f"{first} {total:,} labels in all."


def no_check_sentence(plan: Mapping[str, Any]) -> str:
    """Statement that no check is likely to prove the target soon, and why."""
    target, best = percent(plan["target"]), max(0.0, plan["error"] - plan["reducible"])
    if best < plan["target"]:
        why = f"more labels are expected to lower the error to {percent(best)} at best, which is close to the target"
    else:
        why = f"more labels are expected to lower the error to {percent(best)} at best"
    return f"No check is likely to prove your target of at most {target} soon: {why}."


def outlook(decision: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Effect of the labels of the forecast: the number of wrong predictions, or the error, before and after."""
    planned = decision.get("plan")
    if decision["answer"] == "keep going" and planned is not None and planned["expected_total"] is not None:
        after = f"guaranteed after {two_digits(planned['expected_total']):,} labels in all, extrapolated"
        return [
            (error_figure(decision)[0], "predicted wrong now, estimated"),
            (f"at most {percent(planned['target'])}", after),
        ]
    if decision.get("forecast") is None or decision.get("error_then") is None:
        return []
    labels, low, high = labels_to_give(decision)
    if not 0 < labels < decision["unlabelled"]:
        return []
    after = f"after {more_labels(labels, low, high)}, extrapolated"
    if not decision["share"]:
        figure, later = error_figure(decision)[0], error_then(decision)
        return [(figure, "typical error now, estimated"), (later, after)] if later else []
    wrong, corrected = decision["wrong"], decision["corrected"]
    before, then_wrong = two_digits(wrong or 0), two_digits((wrong or 0) - (corrected or 0))
    now = count(before, "wrong prediction").partition(" ")[2]
    return [] if not corrected else [(f"{before:,}", f"{now} now, estimated"), (f"{then_wrong:,}", after)]
