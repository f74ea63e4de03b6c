"""Decisions about a goal for a whole data set, in words."""

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

import suffice as sf
from suffice.checks import plan_finish
from suffice.presentation.decision_words import DecisionWords, decision_words
from suffice.presentation.finish_words import (
    all_or_rest_sentences,
    finished_run_sentences,
    progress_words,
    reached_words,
)
from suffice.session.decision import Decision


def plain(words: DecisionWords) -> str:
    return " ".join(words.sentences).replace("\u00a0", " ")


def test_the_way_to_the_goal() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X), np.where(y == 1, "benign", "malignant")
    learner = sf.ActiveLearner(sf.models.BayesianLogistic(), X, seed=0)
    early = decision_words(learner.decision(0.05, of="all").as_dict(), initial=10)
    assert plain(early) == "Too early to say: 10 more labels are needed before the model starts."
    seen: dict[str, tuple[Decision, DecisionWords]] = {}
    while not (decision := learner.decision(0.05, of="all")).stop:
        words = decision_words(decision.as_dict())
        if decision.answer != "too early":
            seen[words.headline] = decision, words
            assert words.sentences[0].startswith(f"{words.headline}: ")
            assert str(decision) == " ".join(words.sentences)
            assert "rule" not in plain(words)
        if decision.finish is not None and decision.finish.check_now:
            check = learner.check(at_most=0.05, of="all")
            running = learner.decision(0.05, of="all")
            seen["check"] = running, decision_words(running.as_dict())
            while check.open:
                check.tell(y[check.pending])
            continue
        items = learner.ask(10 if decision.answer == "too early" else 5)
        learner.tell(items, y[items])
    decision, words = seen["Keep labelling"]
    assert decision.finish is not None
    assert f"{decision.n_labelled} labels so far, about " in plain(words)
    assert "Your goal: at most 5 % of all 569 labels are wrong (28)." in plain(words)
    assert f"of {decision.unlabelled} predictions would be wrong (estimate)." in plain(words)
    assert words.error_figure
    decision, words = seen["Time for a check"]
    assert f"{decision.n_labelled} labels so far, and a check of about " in plain(words)
    decision, words = seen["check"]
    assert words.headline == "A check is running"
    assert plain(words).startswith(f"A check is running: {decision.check_pending} random items have no answer yet. ")
    assert "It ends as soon as your goal is proven." in plain(words)
    reached = decision_words(learner.decision(0.05, of="all").as_dict())
    assert (reached.headline, reached.tone, reached.error_figure) == ("Your goal is reached", "good", "")
    people = len(learner.labels)
    assert plain(reached) == (
        "Your goal is reached: at most 28 of all 569 labels are wrong (95 % confidence). "
        f"{people} labels are by people, which count as right, and {569 - people} are predictions."
    )
    assert reached.summary.startswith("At most 28 of all 569 labels")


def test_everything_is_labelled() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.where(X[:, 0] > 0.0, "right", "left")
    learner = sf.ActiveLearner(sf.models.BayesianLogistic(), X, seed=0)
    learner.tell(np.arange(30), y)
    words = decision_words(learner.decision(0.0, of="all").as_dict())
    assert words.headline == "Your goal is reached"
    assert plain(words) == "Your goal is reached: all 30 labels are by people, which count as right."


def plan(**changes: Any) -> dict[str, Any]:
    made = plan_finish(0.05, [0.4] * 300 + [0.02] * 1700, by_people=200, alpha=0.025, low=0.05, high=0.1)
    return made.as_dict() | changes


def test_progress() -> None:
    assert progress_words(plan(check_size=0)).startswith("200 labels so far, about 240 more, and no check; then about ")
    assert progress_words(plan(predicted=1)).endswith("then about 1 label is a prediction (extrapolated)")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "so 110 of the 2,000 predictions may be wrong, 5.5 %"),
        ({"allowed": 0}, "so none of the 2,000 predictions may be wrong"),
        ({"allowed": 2000}, "so any of the 2,000 predictions may be wrong"),
    ],
)
def test_all_or_rest(changes: dict[str, Any], said: str) -> None:
    of_all, of_rest = (sentence.replace("\u00a0", " ") for sentence in all_or_rest_sentences(plan(**changes)))
    assert said in of_all
    assert "The 200 labels by people count as right" in of_all
    assert of_rest.startswith("Of the rest: at most 5 % of the 2,000 predictions are wrong, 100.")


def guarantee(**changes: Any) -> dict[str, Any]:
    proof: Any = None
    made = sf.checks.DataSetGuarantee(rows=1000, by_people=960, proof=proof, allowed=50, at_most=0.05)
    return made.to_dict() | changes


def test_what_is_guaranteed() -> None:
    assert reached_words(guarantee()).startswith("at most 40 of all 1,000 labels are wrong. 960 labels are by people, ")
    assert "are off by more than 2.5." in reached_words(guarantee(tolerance=2.5))
    said = reached_words(guarantee(annotator_error=0.02)).replace("\u00a0", " ")
    assert "960 labels are by people, of which at most 2 % are taken to be wrong" in said


def test_a_finished_run() -> None:
    about = {"rows": 1000, "labelled_by_people": 960, "in_check": 0, "true_wrong": 1, "at_most": 0.05}
    first, second, third = finished_run_sentences({**about, "guarantee": guarantee()})
    assert first.replace("\u00a0", " ") == "Labels of people: 960 of 1,000. 40 labels (4 %) would have been saved."
    assert second.startswith("Guaranteed: at most 40 of all 1,000 labels are wrong.")
    assert third.replace("\u00a0", " ").startswith("In truth 1 of the 1,000 labels is wrong (0.1 %).")
