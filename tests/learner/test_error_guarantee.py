"""The rule that stops at a guaranteed error."""

import pytest

from suffice.criteria import Step, criterion_from_dict
from suffice.errors import InvalidValueError
from suffice.learner import ErrorGuarantee
from suffice.testing import check_criterion


def test_it_is_a_rule() -> None:
    check_criterion(lambda: ErrorGuarantee(0.1))
    rule = criterion_from_dict(ErrorGuarantee(0.1, confidence=0.9).state_dict())
    assert rule == ErrorGuarantee(0.1, confidence=0.9)
    assert rule.needs() == frozenset()


@pytest.mark.parametrize(
    ("error", "confidence", "stop"),
    [(0.05, 0.95, True), (0.05, 1.0 - 0.05, True), (0.0501, 0.95, False), (0.0, 0.94, False), (0.05, None, False)],
)
def test_error_and_confidence_are_compared(error: float, confidence: float | None, stop: bool) -> None:
    step = Step(n_labelled=100, guaranteed_error=error, guarantee_confidence=confidence)
    verdict = ErrorGuarantee(0.05).observe(step)
    assert verdict.stop is stop
    assert verdict.ready
    if stop:
        assert verdict.certificate is not None
        assert verdict.certificate.statement == (
            "At most 5 % of the predictions for the unlabelled items are wrong (95 % confidence)."
        )


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, "5 %", float("nan")])
def test_bad_parameters(value: float) -> None:
    with pytest.raises(InvalidValueError, match="at_most must be a number above 0 and below 1"):
        ErrorGuarantee(value)
    with pytest.raises(InvalidValueError, match="confidence must be a number above 0 and below 1"):
        ErrorGuarantee(0.05, confidence=value)
