"""Verdicts and decisions in MLflow, Weights & Biases, or any other tracker of experiments.

The functions take callables of the tracker, so this module does not depend on a tracker.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from suffice.criteria import Verdict
from suffice.errors import InvalidTypeError
from suffice.session.decision import Decision

__all__ = ["log_verdict", "verdict_metrics"]


def verdict_metrics(
    verdict: Verdict, decision: Decision | None = None, *, prefix: str = "suffice/"
) -> dict[str, float]:
    """The numbers of a verdict, and of a decision if there is one, by name.

    Args:
        verdict: What a rule said: the result of ``monitor.update``, ``learner.tell`` or ``rule.observe``.
        decision: The result of ``monitor.decision()`` or ``learner.decision()``.
        prefix: What the names begin with.

    Returns:
        ``n_labelled``, ``stop`` and ``ready`` (0 or 1), ``value`` and ``threshold`` if the rule compares numbers, and
        ``labels_left`` if it is forecast; the same of each rule in a composed rule, as ``NAME/value``, and so on. Of a
        decision: ``unlabelled``, and if they are known ``error``, ``error_low``, ``error_high`` and ``baseline``.

    Raises:
        InvalidTypeError: An argument is of another type.

    Examples:
        >>> import suffice as sf
        >>> verdict = sf.Budget(30).observe(sf.Step(n_labelled=31))
        >>> verdict_metrics(verdict, prefix="")
        {'n_labelled': 31.0, 'stop': 1.0, 'ready': 1.0, 'value': 31.0, 'threshold': 30.0}
    """
    if not isinstance(verdict, Verdict):
        raise InvalidTypeError(f"verdict must be a Verdict, not {type(verdict).__name__}")
    if decision is not None and not isinstance(decision, Decision):
        raise InvalidTypeError(f"decision must be a Decision or None, not {type(decision).__name__}")
    found = {"n_labelled": float(verdict.n_labelled), **_compared(verdict)}
    if verdict.forecast is not None:
        found["labels_left"] = float(verdict.forecast.labels)
    met: Counter[str] = Counter()
    for part in verdict.parts:
        met[part.rule] += 1
        # The second rule of a kind has a number.
        name = part.rule if met[part.rule] == 1 else f"{part.rule}-{met[part.rule]}"
        found |= {f"{name}/{key}": value for key, value in _compared(part).items()}
    if decision is not None:
        found["unlabelled"] = float(decision.unlabelled)
        if decision.error is not None:
            found |= dict(zip(("error", "error_low", "error_high"), map(float, decision.error[:3]), strict=True))
        if decision.baseline is not None:
            found["baseline"] = float(decision.baseline)
    return {prefix + name: value for name, value in found.items()}


def _compared(verdict: Verdict) -> dict[str, float]:
    """Whether a rule says stop, and the numbers that it compared."""
    numbers = {"value": verdict.value, "threshold": verdict.threshold}
    return {"stop": float(verdict.stop), "ready": float(verdict.ready)} | {
        name: float(value) for name, value in numbers.items() if value is not None
    }


def log_verdict(
    verdict: Verdict,
    log: Callable[..., Any],
    text: Callable[[str, str], Any] | None = None,
    *,
    decision: Decision | None = None,
    prefix: str = "suffice/",
) -> Mapping[str, float]:
    """Log the numbers of a verdict with the number of labels as the step, and its reason as a text.

    Args:
        verdict: What a rule said.
        log: ``log(metrics, step=n)``: ``mlflow.log_metrics``, ``run.log`` of Weights & Biases, or a function of yours.
        text: ``text(name, value)``, which keeps the last reason: ``mlflow.set_tag``, or ``run.summary.__setitem__`` of
            Weights & Biases; no reason is logged if left out.
        decision: A decision to log too; its answer is logged as a text.
        prefix: What the names begin with.

    Returns:
        The metrics that were logged.

    Raises:
        InvalidTypeError: ``log`` or ``text`` cannot be called, or another argument is of another type.

    Examples:
        >>> import suffice as sf
        >>> log_verdict(sf.Budget(30).observe(sf.Step(n_labelled=31)), lambda metrics, step: print(step, len(metrics)))
        31 5
        {'suffice/n_labelled': 31.0, ...}
    """
    for given, name in ((log, "log"), (text, "text")):
        if not (callable(given) or (given is None and name == "text")):
            raise InvalidTypeError(f"{name} must be a function, such as mlflow.log_metrics, not {type(given).__name__}")
    metrics = verdict_metrics(verdict, decision, prefix=prefix)
    log(metrics, step=verdict.n_labelled)
    if text is not None:
        text(f"{prefix}reason", verdict.reason)
        if decision is not None:
            text(f"{prefix}answer", decision.answer)
    return metrics
