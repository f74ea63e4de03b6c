"""What a tracker of experiments is given; those of MLflow and Weights & Biases have tests of their own."""

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import suffice as sf
from suffice.errors import InvalidTypeError
from suffice.integrations.tracking import log_verdict, verdict_metrics

VERDICT = sf.Budget(30).observe(sf.Step(n_labelled=31))


def test_numbers_of_a_composed_rule() -> None:
    rule = sf.Budget(10) & sf.Budget(20) & sf.ErrorStability(0.1)
    verdict = rule.observe(sf.Step(n_labelled=15, kl_new_old=0.1, kl_old_new=0.1))
    found = verdict_metrics(verdict, prefix="")
    assert found["stop"] == found["ready"] == 0.0
    assert {name for name in found if name.endswith("/stop")} <= {f"{part}/stop" for part in _names(verdict)}
    assert all(isinstance(value, float) and np.isfinite(value) for value in found.values())


def _names(verdict: sf.Verdict) -> set[str]:
    rules = [part.rule for part in verdict.parts]
    return {*rules, *(f"{rule}-{k}" for rule in rules for k in range(2, len(rules) + 1))}


def test_two_rules_of_one_kind() -> None:
    verdict = (sf.Budget(10) | sf.Budget(20)).observe(sf.Step(n_labelled=15))
    found = verdict_metrics(verdict)
    assert found["suffice/Budget/threshold"] == 10.0
    assert found["suffice/Budget-2/threshold"] == 20.0


def test_an_undecided_verdict_has_no_value() -> None:
    found = verdict_metrics(sf.StopMonitor(np.zeros((5, 1))).verdict)
    assert found == {"suffice/n_labelled": 0.0, "suffice/stop": 0.0, "suffice/ready": 0.0}


def test_a_decision_and_texts() -> None:
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = X[:, 0] > 0.0
    monitor, logged = sf.StopMonitor(X), {}
    texts: dict[str, str] = {}

    def log(metrics: Any, step: int) -> None:
        logged[step] = metrics

    for n in (20, 40):
        verdict = monitor.update(LogisticRegression().fit(X[:n], y[:n]), range(n), y[:n])
        log_verdict(verdict, log, texts.__setitem__, decision=monitor.decision())
    assert list(logged) == [20, 40]
    error = monitor.decision().error
    assert error is not None
    assert logged[40]["suffice/error"] == error.value
    assert logged[40]["suffice/unlabelled"] == 160.0
    assert texts == {"suffice/reason": verdict.reason, "suffice/answer": monitor.decision().answer}


def test_bad_arguments() -> None:
    with pytest.raises(InvalidTypeError, match="verdict must be a Verdict, not bool"):
        verdict_metrics(True)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="decision must be a Decision or None, not str"):
        verdict_metrics(VERDICT, "enough")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match=r"log must be a function, such as mlflow.log_metrics, not NoneType"):
        log_verdict(VERDICT, None)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="text must be a function"):
        log_verdict(VERDICT, lambda metrics, step: None, 3)  # type: ignore[arg-type]
