"""Decisions and the learning status around them, made by hand and at random."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from suffice.criteria import Certificate, Verdict
from suffice.forecast import Forecast
from suffice.project.learning_status import ErrorEstimate, LearningStatus, Point
from suffice.session.decision import Alternative, Decision, DecisionNumbers, ErrorNow, decide

KERNEL = Alternative("kernel", "Bayesian logistic regression on kernel features", 0.05, 0.3, 60)
FOREST = Alternative("forest", "a forest of randomised trees", 0.05, 0.3, 60)

BOOSTING = Alternative(
    *("boosting", "gradient-boosted trees", 0.05, 0.1, 60),
    ratio=0.5,
    error_now=0.0617,
    saved=56,
    avoided=5,
    worth=14.4,
)


def verdict(*, stop: bool = False, **changes: Any) -> Verdict:
    """What LabelWorth says."""
    values: dict[str, Any] = {
        "stop": stop,
        "value": 0.4 if stop else 3.0,
        "threshold": 1.0,
        "ready": True,
        "reason": "1 more label is expected to avoid 0.4 wrong predictions",
        "rule": "LabelWorth",
        "n_labelled": 40,
    }
    return Verdict(**(values | changes))


def decision(*, stop: bool = False, said: Verdict | None = None, **changes: Any) -> Decision:
    """What follows from a verdict after 40 labels of 118 items."""
    about = DecisionNumbers(
        n_labelled=40,
        unlabelled=78,
        share=True,
        since=33 if stop else None,
        error=ErrorNow(0.1234, 0.094, 0.161, 24),
        baseline=0.6,
        common="cat",
        forecast=None if stop else Forecast(30, 12, 60),
        error_then=None if stop else 0.05,
    )
    return decide(said or verdict(stop=stop), replace(about, **changes))


def learning_status(decided: Decision | None = None, **changes: Any) -> LearningStatus:
    """The status of a learner with a decision."""
    found = decided or decision()
    error = found.error or ErrorNow(0.5, 0.3, 0.7)
    said = verdict(
        stop=found.stop,
        n_labelled=found.n_labelled,
        certificate=Certificate("The last step changed it by at most 0.12.", "the loss is bounded.", 0.12),
    )
    said = replace(said, rule=found.rule, reason=found.reason, ready=found.answer != "too early")
    errors = [ErrorEstimate(n, error.value * 40.0 / n, error.low, error.high * 40.0 / n) for n in (10, 20, 30)]
    values: dict[str, Any] = {
        "n_answers": found.n_labelled + 2,
        "n_labelled": found.n_labelled,
        "verdict": said,
        "curve": tuple(Point(n, 40.0 / n, 1.0) for n in range(11, 41)),
        "forecast": said.forecast,
        "errors": (*errors, ErrorEstimate(40, *error)),
        "stopped_at": found.since,
        "numbers": found,
    }
    return LearningStatus(**(values | changes))


@st.composite
def decisions(draw: st.DrawFn, *, n_labelled: int = 40, unlabelled: int = 78, share: bool = True) -> Decision:
    """Any decision after so many labels."""
    scale = 1.0 if share else 100.0
    value, down, up = (draw(st.floats(0.0, 1.0)) for _ in range(3))
    error = ErrorNow(
        scale * value, scale * value * (1.0 - down), scale * (value + (1.0 - value) * up), draw(st.integers(0, 40))
    )
    stop = draw(st.booleans())
    low, middle, high = sorted(draw(st.tuples(*[st.integers(1, 200)] * 3)))
    # Before a stop, only a clearly better model is of interest.
    others = st.sampled_from([None, KERNEL, FOREST, BOOSTING, *([replace_clear(KERNEL)] if stop else [])])
    return decision(
        stop=stop,
        said=verdict(
            stop=stop,
            rule=draw(st.sampled_from(["LabelWorth", "ErrorStability", "Budget"])),
            reason="40 labels are the budget",
        ),
        n_labelled=n_labelled,
        unlabelled=unlabelled,
        share=share,
        since=draw(st.integers(1, n_labelled)) if stop else None,
        error=draw(st.sampled_from([error, error, None])),
        baseline=draw(st.sampled_from([None, 0.6 * scale, 0.01 * scale])),
        common="cat" if share else None,
        at_most=draw(st.sampled_from([None, 0.05 * scale])),
        forecast=draw(st.sampled_from([None, Forecast(middle, low, high)])),
        error_then=draw(st.sampled_from([None, scale * value / 2.0])),
        alternative=draw(others),
    )


def replace_clear(alternative: Alternative) -> Alternative:
    """The same, where chance may explain the difference."""
    return alternative._replace(clear=False)


def complete(n_labelled: int = 118) -> Decision:
    """Nothing is left."""
    return replace(decision(stop=True), answer="complete", n_labelled=n_labelled, unlabelled=0)
