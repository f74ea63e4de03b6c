"""What a project says of its checks: numbers and sentences, the same everywhere."""

import json
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from suffice.checks import plan_total
from suffice.criteria import LabelWorth
from suffice.presentation.check_words import check_sentence, checks_sentences, guarantee_sentences
from suffice.presentation.decision_words import decision_words
from suffice.presentation.project_words import progress_sentence
from suffice.project.labelling_project import Project
from suffice.project.project_learner import ProjectLearner
from suffice.project.settings import Settings
from suffice.project.state import Answer
from suffice.project.status_summary import (
    CheckStatus,
    check_status,
    decision_of,
    learning_sentences,
    next_check_plan,
    status,
)
from tests.project.labelled_projects import label_some
from tests.project.making_projects import make


def told(project: Project) -> dict[str, Any]:
    """The status, with a model that has learned what it learns now."""
    learner = ProjectLearner(project.current_settings, project.X)
    with project.lock:
        state = project.state()
        learner.follow(state.learned(), checked=state.checked())
        checks = check_status(state, project.settings)
        n_labelled, size = state.n_labelled, project.size - state.n_skipped
    found = learner.learning_status()
    answer: dict[str, Any] = json.loads(json.dumps(status(project, found), allow_nan=False))
    assert answer["words"] == learning_sentences(found, project.settings, n_labelled, size=size, checks=checks)
    assert answer["behind"] == 0
    return answer


@pytest.fixture
def project(tmp_path: Path) -> Any:
    with make(tmp_path / "pets.suffice", 120, initial=4, at_most=0.5) as project:
        label_some(project, range(30))
        yield project


@pytest.mark.slow
def test_the_advice_for_a_target_does_not_reverse() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    rule = LabelWorth().state_dict()
    for seed in (0, 2):
        settings = Settings(
            "cells", "classification", ("0", "1"), "y", "table", (), None, "logistic", rule, seed=seed, at_most=0.1
        )
        order = np.random.default_rng(seed).permutation(len(X))[:150].tolist()
        learner = ProjectLearner(settings, X, compare=False)
        headlines: list[str] = []
        for n in range(1, 151):
            learner.follow([Answer(item, str(y[item]), random=True) for item in order[:n]])
            found = learner.learning_status()
            decision = decision_of(found, settings, n, size=len(X))
            headlines.append(decision_words(decision.as_dict()).headline)
            if decision.plan is not None:
                assert (decision.plan.n_labelled, decision.plan.pool) == (n, len(X) - n)
        blocks = [name for name, _ in groupby(headlines)]
        assert blocks[-1] == "Time for a check"
        # Each headline is there once: no advice is taken back.
        assert len(set(blocks)) == len(blocks)
        # A learner that begins later says the same.
        fresh = ProjectLearner(settings, X, compare=False)
        fresh.follow(learner.answers)
        assert fresh.learning_status().decision == found.decision


def test_the_plan_of_a_later_check_advises_no_check_earlier() -> None:
    checks = CheckStatus(alpha=0.01)
    advised = plan_total(0.1, 0.01, reducible=0.0, n_labelled=300, pool=4000, alpha=0.025)
    assert advised.check_now
    again = next_check_plan(advised, checks)
    assert again is not None
    assert again.check_now
    # Two successive plans are needed, and this is the first.
    waiting = next_check_plan(replace(advised, more_labels=5), checks)
    assert waiting is not None
    assert (waiting.more_labels, waiting.check_size) == (5, again.check_size)


def test_without_a_check_there_is_nothing_to_say(project: Project) -> None:
    found = told(project)
    assert found["check"] is None
    assert found["guarantee"] is None
    assert found["words"] == found["decision"]["sentences"]


def test_an_open_check_says_how_far_it_is(project: Project) -> None:
    label_some(project, range(30, 60))
    before = told(project)
    project.start_check(20, person="ann")
    label_some(project, project.checks()[0].record.items[:7])
    found = told(project)
    check = found["check"]
    assert (check["state"], check["size"], check["answered"], check["number"]) == ("open", 20, 7, 1)
    assert (check["pool"], check["n_labelled"], check["person"]) == (60, 60, "ann")
    assert (check["quantity"], check["unlabelable_as"], check["confidence"]) == ("error", "wrong", 0.95)
    assert check["model_name"] == "logistic"
    assert found["guarantee"] is None
    sentence = "Check: 7 of 20 random items answered. The guarantee is stated when all are answered."
    assert check["sentence"] == sentence
    assert found["words"][0].startswith("A check is running: about")
    assert found["words"][1].startswith("13 random items still to answer.")
    assert (found["decision"]["headline"], found["decision"]["tone"]) == ("A check is running", "on")
    # The model has learned nothing since, but the items that are labelled are not unlabelled.
    assert (found["learned"], found["n_labelled"]) == (60, 67)
    assert (found["decision"]["n_labelled"], found["decision"]["unlabelled"]) == (60, 53)
    assert before["decision"]["error"] == found["decision"]["error"]
    # No other check is proposed meanwhile.
    assert before["words"][0].startswith("Time for a check: ")


def test_a_guarantee_comes_first_until_the_model_is_another(project: Project) -> None:
    project.start_check(20, person="ann")
    label_some(project, project.checks()[0].record.items)
    found = told(project)
    guarantee = found["guarantee"]
    assert found["words"][0] == f"Guaranteed: a{guarantee['statement'][1:]}"
    assert (
        found["words"][1]
        .replace("\u00a0", " ")
        .startswith("Your target is guaranteed: you asked for at most 50 % of wrong predictions; about")
    )
    assert found["words"][2].startswith("Export the predictions now: more labels change the model")
    # Labels of the check are counted, but not learned yet.
    assert (found["n_labelled"], found["held"]) == (50, 20)
    assert progress_sentence("pets", found).endswith(
        "The model has learned 30 of these labels; the 20 of the check follow when labelling continues."
    )
    assert (found["decision"]["answer"], found["decision"]["tone"]) == ("enough", "good")
    assert guarantee["sentences"] == found["words"][:1]
    assert (guarantee["about_present_model"], guarantee["check"], guarantee["n_labelled"]) == (True, 1, 30)
    assert (guarantee["checked"], guarantee["pool"], guarantee["remaining"]) == (20, 90, 70)
    assert (guarantee["model_name"], guarantee["classes"]) == ("logistic", ["cat", "dog", "eel"])
    assert guarantee["model"] == "Bayesian logistic regression at 30 labels"
    assert (found["check"]["state"], found["check"]["proves"], found["check"]["sentence"]) == ("complete", True, "")
    assert found["decision"]["unlabelled"] == guarantee["remaining"]
    assert (found["decision"]["n_labelled"], found["error"]["estimates"][-1][0]) == (50, 50)
    free = [item for item in range(30, 120) if project.state().labels.is_open(item)]
    label_some(project, free[:1])
    later = told(project)
    assert later["words"][0] == later["decision"]["sentences"][0]
    assert later["words"][-2:] == later["guarantee"]["sentences"]
    assert later["words"][-1].startswith("This is about the model at 30 labels; its predictions are exported as")
    assert (later["guarantee"]["statement"], later["learned"]) == (guarantee["statement"], 51)


def test_an_aborted_check_is_named_last(project: Project) -> None:
    project.start_check(20, person="ann")
    project.abort_check(person="ann")
    found = told(project)
    assert found["words"][-1] == "The last check was aborted: it proves nothing."
    assert found["check"]["state"] == "aborted"


def test_a_check_of_everything_leaves_nothing_to_label(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", 30, initial=4) as project:
        label_some(project, range(20))
        project.start_check(10, person="ann")
        label_some(project, range(20, 30))
        found = told(project)
        assert (found["decision"]["answer"], found["decision"]["unlabelled"]) == ("complete", 0)
        assert found["words"][0].startswith("Guaranteed: at most")
        assert found["words"][1].startswith("Nothing is left to label")


def test_a_share_for_which_too_many_items_could_not_be_labelled(tmp_path: Path) -> None:
    with make(tmp_path / "pets.suffice", 100, initial=4, task="regression") as project:
        label_some(project, range(10))
        project.start_check(30, person="ann", share=0.2)
        for item in project.checks()[0].record.items:
            project.skip(item, person="ann")
        found = told(project)
        assert found["guarantee"] is None
        proves = "The check is complete and proves nothing: too many of its items could not be labelled."
        assert found["words"][0] == found["check"]["sentence"] == proves


def test_sentences_of_plain_values() -> None:
    guarantee = {"statement": "At most 5 % are wrong.", "quantity": "error", "value": 0.05, "n_labelled": 1}
    older = {**guarantee, "about_present_model": False}
    assert guarantee_sentences(older) == [
        "Guaranteed for an earlier model: at most 5 % are wrong.",
        "This is about the model at 1 label; its predictions are exported as checked_predictions. The current model is "
        "different and has no guarantee until it is checked.",
    ]
    waiting = {"state": "open", "size": 1, "answered": 0, "proves": False}
    assert check_sentence(waiting).startswith("Check: 0 of 1 random item answered.")
    assert check_sentence({**waiting, "state": "incomplete"}) == ""
    # A new check of a later model: the open check first, the older guarantee last.
    first, last = checks_sentences(older, waiting)
    assert (len(first), len(last)) == (1, 2)
    assert checks_sentences(None, None) == ([], [])
    # Where the decision says that it is open, it is not said twice.
    assert checks_sentences(older, waiting, open_told=True) == ([], guarantee_sentences(older))


@pytest.mark.parametrize(
    ("changed", "doubted"),
    [
        ({}, True),
        ({"wrong": 5}, False),
        ({"wrong": 6}, True),
        ({"answered": 49, "wrong": 20}, False),
        ({"state": "failed"}, False),
        ({"of": "all"}, False),
    ],
)
def test_a_check_says_when_its_answers_speak_against_the_target(changed: dict[str, Any], *, doubted: bool) -> None:
    progress = {"state": "open", "answered": 100, "wrong": 7, "needed": 150, "allowed": 150}
    told = check_sentence({"sequential": {**progress, **changed}, "pool": 3000, "of": changed.get("of", "rest")})
    assert ("more predictions are wrong than the target allows" in told) == doubted
