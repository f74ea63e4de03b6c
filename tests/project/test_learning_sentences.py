"""The messages for people who label: complete sentences for every state of a project."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.forecast import Forecast
from suffice.presentation.text_format import numbers, percents
from suffice.project.learning_status import LearningStatus
from suffice.project.project_learner import ProjectLearner
from suffice.project.settings import Settings
from suffice.project.status_summary import decision_in_words, learning_sentences
from suffice.session.decision import Decision, ErrorNow
from tests.every_rule import RULES
from tests.project.decided import BOOSTING, FOREST, KERNEL, complete, decision, learning_status, replace_clear, verdict
from tests.project.following import CASES, settings_of
from tests.thoroughness import crossed

CLASSES = settings_of("classification", "logistic")
NUMBERS = settings_of("regression", "gp")


def sentences(found: Decision, settings: Settings = CLASSES, **changes: Any) -> list[str]:
    return learning_sentences(learning_status(found, **changes), settings, found.n_labelled)


def test_a_project_under_way() -> None:
    assert sentences(decision()) == [
        "Keep labelling: about 12 % of the 78 unlabelled items are predicted wrong (estimate; probably 9 to 16 %).",
        "About 30 more labels (12 to 60) would avoid about 7 of about 10 wrong predictions; about 5\u00a0% would "
        "still be wrong, and more would not be worth their cost (extrapolated).",
    ]
    own = decision(error=ErrorNow(0.1234, 0.094, 0.161), forecast=None)
    assert sentences(own) == [
        "Keep labelling: about 12 % of the 78 unlabelled items are predicted wrong (the model's own estimate, "
        "not verified by random labels; probably 9 to 16 %).",
        "How many more labels it takes is not yet predictable.",
    ]
    assert sentences(decision(forecast=Forecast(78, 20, 78)))[1] == "It may take all of the remaining items."
    assert (
        sentences(decision(error_then=None))[1]
        == "About 30 more labels (12 to 60) until more labels are not worth their cost (extrapolated)."
    )


def test_a_project_with_numbers_under_way() -> None:
    found = decision(share=False, error=ErrorNow(14.27, 12.9, 16.4, 7), error_then=12.2, common=None)
    assert sentences(found, NUMBERS) == [
        "Keep labelling: predictions for the 78 unlabelled items are typically off by about 14 (estimate; probably 13 "
        "to 16).",
        "About 30 more labels (12 to 60) would lower that to about 12; then more labels are not worth their cost "
        "(extrapolated).",
    ]
    # What is the same to the digits that the error has is not said to be lower.
    assert "lower" not in sentences(replace(found, error_then=14.26), NUMBERS)[1]


def test_a_project_that_is_done() -> None:
    assert sentences(decision(stop=True)) == [
        "You can stop now: about 12 % of the 78 unlabelled items are predicted wrong (estimate; probably 9 to 16 %).",
        "More labels are not worth their cost: each further label is expected to avoid too few wrong predictions.",
        "The rule first said so at 33 labels.",
    ]
    priced = decision(stop=True)
    for avoided, price, few, cost in [
        (0.337, 1.0, "about 0.34", "1"),
        (0.0007, 1.0, "fewer than 0.01", "1"),
        (8.99, 10.0, "about 9", "10"),
        # Rounded, both are 3.3.
        (3.32, 3.33, "fewer than 3.3", "3.3"),
        # Never more than are estimated to be wrong, 10 of 78.
        (17.0, 20.0, "about 10", "20"),
    ]:
        assert sentences(replace(priced, avoided=avoided, price=price))[1] == (
            f"More labels are not worth their cost: 1 more label would avoid {few} wrong predictions, and it costs as "
            f"much as {cost}."
        )
    ratio = verdict(stop=True, rule="ErrorStability", reason="the error ratio 0.04 is at most the threshold 0.05")
    assert sentences(decision(stop=True, said=ratio, since=40))[1:] == [
        "The last labels changed the model so little that the stopping rule says stop."
    ]


def test_a_model_at_its_limit_is_told_with_what_to_try() -> None:
    found = decision(stop=True, alternative=KERNEL, at_most=0.05)
    assert sentences(found)[:3] == [
        "More labels will not help this model much: about 12 % of the 78 unlabelled items are predicted wrong "
        "(estimate; "
        "probably 9 to 16 %).",
        "You asked for at most 5\u00a0%.",
        "Another model is better: Bayesian logistic regression on kernel features. Tested on 60 labelled items without "
        "knowing their labels, it predicts 3 wrong, the current model 18. Switch to that model: all labels stay.",
    ]
    assert "Switch to that model: all labels stay." in sentences(decision(stop=True, alternative=FOREST))[1]
    poor = sentences(decision(stop=True, baseline=0.13))
    assert poor[1:3] == ["Always predicting cat would be wrong on 13\u00a0%.", "Try other features or another model."]


def test_a_better_model_is_told_while_labelling_goes_on() -> None:
    found = decision(alternative=BOOSTING)
    assert found.answer == "keep going"
    told = sentences(found)
    assert told[:-1] == sentences(decision())
    tested = (
        "Another model is better: gradient-boosted trees. Tested on 60 labelled items without knowing their labels, it "
        "predicts 3 wrong, the current model 6. "
    )
    gain = (
        "With it the error of the unlabelled items would be about 6.2\u00a0% instead of 12\u00a0%, which is about 5 "
        "wrong predictions fewer, worth 14 by your prices; with the current model that would take about 56 labels "
        "(estimate). "
    )
    switch = "Switch to that model: all labels stay."
    assert told[-1] == tested + gain + switch
    # What is not known is left out, and a gain that is too small to see.
    unknown = BOOSTING._replace(saved=None, avoided=0, worth=None)
    assert "instead of 12\u00a0% (estimate). Switch" in sentences(decision(alternative=unknown))[-1]
    assert sentences(decision(alternative=BOOSTING._replace(error_now=0.1233)))[-1] == tested + switch
    assert sentences(decision(alternative=KERNEL))[-1].endswith("the current model 18. " + switch)
    # The limit says the same.
    assert gain in sentences(decision(stop=True, alternative=BOOSTING))[1]


def test_a_model_that_may_be_better_is_no_reason_to_go_on() -> None:
    doubtful = decision(stop=True, alternative=replace_clear(KERNEL))
    assert (doubtful.answer, doubtful.alternative) == ("enough", None)


def test_a_warning_comes_right_after_the_decision() -> None:
    said = sentences(decision(), warning="The error has risen.")
    assert said == [*sentences(decision()), "The error has risen."]


def test_a_pool_that_is_used_up() -> None:
    assert sentences(complete()) == ["Nothing is left to label: every item is labelled or skipped."]


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
    assert sentences(decision(said=early)) == [
        "Too early to say: step 2 of the 10 that set the scale of the error ratio."
    ]


@pytest.mark.parametrize(
    ("forecast", "said"),
    [
        (Forecast(1, 1, 1, coverage=1.0), "1 more label until more labels are not worth their cost (extrapolated)."),
        (
            Forecast(12, 12, 12, coverage=1.0),
            "12 more labels until more labels are not worth their cost (extrapolated).",
        ),
        (
            Forecast(1, 1, 3),
            "About 1 more label (1 to 3) until more labels are not worth their cost (extrapolated).",
        ),
        (
            Forecast(1234, 777, 5678),
            "About 1,200 more labels (780 to 5,700) until more labels are not worth their cost (extrapolated).",
        ),
    ],
)
def test_forecasts(forecast: Forecast, said: str) -> None:
    assert sentences(decision(forecast=forecast, error_then=None, unlabelled=9000))[1] == said


def test_what_is_not_learned_yet_is_said() -> None:
    assert learning_sentences(learning_status(), CLASSES, 43)[-1] == "The model is still learning the last 3 labels."
    assert learning_sentences(learning_status(), CLASSES, 41)[-1] == "The model is still learning the last label."


def test_problems_are_said() -> None:
    assert learning_sentences(LearningStatus(problem="The model cannot learn: it is singular."), CLASSES, 30) == [
        "The model cannot learn: it is singular."
    ]
    said = sentences(decision(), problem="Items are asked for at random.")
    assert said[0].startswith("Keep labelling")
    assert said[-1] == "Items are asked for at random."


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("name", "model"), crossed([name for name in RULES if name != "TimeLimit"], ["two classes", "process"], every=8)
)
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
        assert said[0].startswith(f"{decision_in_words(found, settings, n, size=80).headline}: ")


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
