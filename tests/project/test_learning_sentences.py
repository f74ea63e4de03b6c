"""What whoever labels is told: every state of a project in sentences that can be read aloud."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.criteria import Verdict
from suffice.forecast import Forecast
from suffice.presentation.number_format import numbers, percents
from suffice.project.learning_status import ErrorEstimate, LearningStatus, Purchase
from suffice.project.project_learner import ProjectLearner
from suffice.project.status_summary import learning_sentences
from tests.every_rule import RULES
from tests.project.following import CASES, settings_of
from tests.thoroughness import some

CLASSES = settings_of("classification", "logistic")
NUMBERS = settings_of("regression", "gp")


def verdict(stop: bool = False, **changes: Any) -> Verdict:
    comparison = "at most" if stop else "above"
    values: dict[str, Any] = {
        "stop": stop,
        "value": 0.04 if stop else 0.31,
        "threshold": 0.05,
        "ready": True,
        "reason": f"the error ratio {0.04 if stop else 0.31} is {comparison} the threshold 0.05",
        "rule": "ErrorStability",
        "n_labelled": 60,
    }
    return Verdict(**(values | changes))


def learning_status(**changes: Any) -> LearningStatus:
    values: dict[str, Any] = {
        "n_answers": 62,
        "n_labelled": 60,
        "verdict": verdict(),
        "forecast": Forecast(40, 25, 90),
        "errors": (ErrorEstimate(60, 0.1234, 0.094, 0.161),),
        "purchase": Purchase(50, 0.1234, 0.104, 0.083, 0.118),
    }
    return LearningStatus(**(values | changes))


def test_a_project_under_way() -> None:
    assert learning_sentences(learning_status(), CLASSES, 60) == [
        "Keep going: the last label still changed what the model says (the error ratio 0.31 is above the threshold "
        "0.05).",
        "About 40 more labels (25 to 90) until it is enough.",
        "The model expects to be wrong on 12 % of the items (9 to 16 %), if it is right about itself.",
        "The next 50 labels would lower that to about 10 % (8 to 12 %).",
    ]


def test_an_estimate_with_random_labels() -> None:
    errors = (ErrorEstimate(60, 0.1234, 0.094, 0.161, random_labels=24),)
    said = learning_sentences(learning_status(errors=errors), CLASSES, 60)
    assert said[2:] == [
        "The model is wrong on about 12 % of the unlabelled items (9 to 16 %), estimated with the help of 24 random "
        "labels.",
        "The next 50 labels would lower that to about 10 % (8 to 12 %).",
    ]
    errors = (ErrorEstimate(60, 14.27, 12.9, 16.4, random_labels=7),)
    assert learning_sentences(learning_status(errors=errors), NUMBERS, 60)[2] == (
        "The model is off by about 14 on the unlabelled items (root mean squared; 13 to 16), estimated with the help "
        "of 7 random labels."
    )


def test_a_warning_comes_right_after_the_verdict() -> None:
    said = learning_sentences(learning_status(warning="The error has risen."), CLASSES, 60)
    assert said[1] == "The error has risen."
    assert said[:1] + said[2:] == learning_sentences(learning_status(), CLASSES, 60)


def test_a_project_with_numbers_under_way() -> None:
    found = learning_status(
        errors=(ErrorEstimate(60, 14.27, 12.9, 16.4),), purchase=Purchase(50, 14.27, 12.3, 11.2, 13.6), forecast=None
    )
    assert learning_sentences(found, NUMBERS, 60)[1:] == [
        "How many more labels that takes cannot be told yet.",
        "The model expects to be off by about 14 (root mean squared; 13 to 16), if it is right about itself.",
        "The next 50 labels would lower that to about 12 (11 to 14).",
    ]


def test_a_project_that_is_done() -> None:
    said = learning_sentences(learning_status(verdict=verdict(stop=True), forecast=None), CLASSES, 60)
    assert said[0] == (
        "You can stop now: the last label changed hardly anything (the error ratio 0.04 is at most the threshold 0.05)."
    )
    assert said[1].startswith("The model expects")


def test_a_pool_that_is_used_up() -> None:
    exhausted = verdict(stop=True, rule="ActiveLearner", reason="every item of the pool is labelled or skipped; ...")
    said = learning_sentences(learning_status(verdict=exhausted, forecast=None, purchase=None), CLASSES, 60)
    assert said[0] == "There is nothing left to do: every item is labelled or skipped."
    assert len(said) == 2


@pytest.mark.parametrize(
    ("labels", "size", "said"),
    [
        (0, None, "10 more labels are needed before the model starts."),
        (6, 1000, "4 more labels are needed before the model starts."),
        (9, None, "1 more label is needed before the model starts."),
        (6, 8, "2 more labels are needed before the model starts."),
        (10, None, "the model is learning the first labels."),
    ],
)
def test_before_the_model_starts(labels: int, size: int | None, said: str) -> None:
    undecided = verdict(ready=False, value=None, threshold=None, reason="...", rule="ActiveLearner")
    for each in (None, undecided):
        found = LearningStatus(n_labelled=labels, verdict=each)
        assert learning_sentences(found, CLASSES, labels, size=size) == [f"Too early to say: {said}"]


def test_a_rule_that_is_not_ready() -> None:
    early = verdict(ready=False, reason="step 2 of the 10 that set the scale of the error ratio")
    said = learning_sentences(learning_status(verdict=early, forecast=None), CLASSES, 60)
    assert said[0] == "Too early to say: step 2 of the 10 that set the scale of the error ratio."
    assert said[1].startswith("The model expects")


@pytest.mark.parametrize(
    ("forecast", "said"),
    [
        (Forecast(1, 1, 1, coverage=1.0), ["1 more label until it is enough."]),
        (Forecast(12, 12, 12, coverage=1.0), ["12 more labels until it is enough."]),
        (Forecast(1, 1, 3), ["About 1 more label (1 to 3) until it is enough."]),
        (Forecast(1234, 777, 5678), ["About 1,200 more labels (780 to 5,700) until it is enough."]),
        (Forecast(0, 0, 0, coverage=1.0), []),
    ],
)
def test_forecasts(forecast: Forecast, said: list[str]) -> None:
    assert learning_sentences(learning_status(forecast=forecast, errors=(), purchase=None), CLASSES, 60)[1:] == said


@pytest.mark.parametrize(
    ("purchase", "said"),
    [
        (Purchase(50, 0.1234, 0.1230, 0.1, 0.15), "The next 50 labels would change next to nothing in that."),
        (Purchase(50, 0.1234, 0.1215, 0.1, 0.15), "The next 50 labels would change next to nothing in that."),
        (
            Purchase(1, 0.1234, 0.1134, 0.113, 0.114),
            "The next label would lower that to about 11.34 % (11.30 to 11.40 %).",
        ),
        (Purchase(7, 0.5, 0.4, 0.3, 0.6), "The next 7 labels would lower that to about 40 % (30 to 60 %)."),
        (Purchase(50, 0.0, 0.0, 0.0, 0.0), "The next 50 labels would change next to nothing in that."),
    ],
)
def test_purchases(purchase: Purchase, said: str) -> None:
    assert learning_sentences(learning_status(purchase=purchase), CLASSES, 60)[-1] == said


def test_what_is_not_learned_yet_is_said() -> None:
    assert learning_sentences(learning_status(), CLASSES, 63)[-1] == "The model is still learning the last 3 labels."
    assert learning_sentences(learning_status(), CLASSES, 61)[-1] == "The model is still learning the last label."


def test_problems_are_said() -> None:
    assert learning_sentences(LearningStatus(problem="The model cannot learn: it is singular."), CLASSES, 30) == [
        "The model cannot learn: it is singular."
    ]
    said = learning_sentences(learning_status(problem="Items are asked for at random."), CLASSES, 60)
    assert said[0].startswith("Keep going")
    assert said[-1] == "Items are asked for at random."


@pytest.mark.parametrize("name", some([name for name in RULES if name != "TimeLimit"], every=4))
@pytest.mark.parametrize("model", ["three classes", "process"])
def test_any_rule_speaks_in_sentences(name: str, model: str) -> None:
    case = CASES[model]
    settings = replace(case.settings, rule=RULES[name].state_dict())
    project_learner = ProjectLearner(settings, case.X)
    for n in (0, 9, 11, 40, 80):
        project_learner.follow([] if not n else case.answers(n))
        found = project_learner.learning_status()
        said = learning_sentences(found, settings, n, size=80)
        if found.problem:
            # A rule that this model cannot serve; the commands refuse it.
            assert "requires" in found.problem
            continue
        assert all(re.fullmatch(r"[A-Z0-9].*[^.]\.", each) for each in said)
        assert not any("ActiveLearner" in each or "None" in each or "nan" in each for each in said)
        assert said[0].startswith(("Too early to say: ", "Keep going: ", "You can stop now: ", "There is nothing left"))


@given(
    value=st.floats(0.0, 1.0),
    down=st.floats(0.0, 0.5),
    up=st.floats(0.0, 0.5),
)
def test_shares_are_shown_to_the_digits_that_they_have(value: float, down: float, up: float) -> None:
    low, high = max(0.0, value - down), min(1.0, value + up)
    shown = [float(each) / 100.0 for each in percents(value, low, high)]
    width = high - low
    # Off by a sixth of the interval at most, or by a hundredth of a percent.
    limit = max(width / 6.0, 0.00005) if width > 0.0 else 0.005
    assert all(abs(a - b) <= limit * (1.0 + 1e-9) for a, b in zip(shown, (value, low, high), strict=True))


@given(
    value=st.floats(1e-9, 1e12),
    width=st.floats(1e-3, 2.0),
)
def test_numbers_are_shown_to_the_digits_that_they_have(value: float, width: float) -> None:
    low, high = value * (1.0 - width / 2.0), value * (1.0 + width / 2.0)
    shown = [float(each.replace(",", "")) for each in numbers(value, low, high)]
    assert all(abs(a - b) <= 0.51 * (high - low) + 0.005 * b for a, b in zip(shown, (value, low, high), strict=True))


def test_numbers_without_an_interval() -> None:
    assert numbers(0.5, 0.5, 0.5) == ("0.50", "0.50", "0.50")
    assert numbers(2.5e-9, 2e-9, 3e-9) == ("2.5e-09", "2e-09", "3e-09")
    assert percents(0.0, 0.0, 0.0) == ("0", "0", "0")
