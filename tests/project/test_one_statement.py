"""The page, the report and the JSON of a project state the same, and each withdrawn advice says what has changed."""

import html
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.checks import plan_finish, plan_total
from suffice.errors import InvalidValueError
from suffice.forecast import Forecast
from suffice.presentation.plan_words import NOT_LEARNED
from suffice.project.status_summary import status
from suffice.session.decision import DecisionNumbers, RareClass, decide
from suffice.session.standing_stop import ScarceClass, StopWithdrawal
from tests.project.decided import decision, learning_status
from tests.project.labelled_projects import busy_project, learned
from tests.project.making_projects import make
from tests.thoroughness import examples

RARE = RareClass("eel", 3, 0.021, 0.34)
SCARCE = ScarceClass("eel", 3, 5, 773)


def plain(text: str) -> str:
    return " ".join(html.unescape(text).replace("\u00a0", " ").split())


@pytest.mark.parametrize(
    ("change", "cause", "words"),
    [
        ("correct", "corrected", "a label was corrected"),
        ("undo", "removed", "labels were removed"),
        ("settings", "settings", "the settings were changed"),
        ("switch", "switched", "another model was chosen"),
        ("label", "model", "the model was fitted again"),
    ],
)
def test_withdrawn_advice_says_what_has_changed(tmp_path: Path, change: str, cause: str, words: str) -> None:
    from suffice.report.project_report import report_page

    with busy_project(tmp_path / "p") as project:
        # Changes before the advice do not matter.
        assert project.advise(decision(stop=True))
        if change == "correct":
            project.correct(4, "eel", person="bob")
        elif change == "undo":
            project.undo(person="ann")
        elif change == "settings":
            project.change_settings({"at_most": 0.1}, person="ann")
        elif change == "switch":
            project.switch_model("kernel", person="ann")
        else:
            project.label(60, "cat", person="ann")
        n = project.state().n_decided
        going_on = decision(n_labelled=n)
        for _ in range(2):
            # The same before and after the journal has the withdrawal.
            told = status(project, learning_status(going_on))
            assert told["decision"]["withdrawn"] == StopWithdrawal(33, n, cause, None, None)._asdict()  # type: ignore[arg-type]
            sentence = f"The advice to stop at 33 labels was withdrawn at {n}, because {words}."
            assert sentence in told["decision"]["sentences"]
            assert sentence in told["words"]
            assert sentence in plain(report_page(project, learning_status(going_on)))
            project.advise(going_on)
        assert project.state().advice is None
        project.advise(decision(stop=True, n_labelled=n, since=n))
        assert (
            status(project, learning_status(decision(stop=True, n_labelled=n, since=n)))["decision"]["withdrawn"]
            is None
        )


@pytest.mark.parametrize(("given_since", "to_give"), [(0, "about 30 more labels (12 to 60)"), (10, "about 20 more")])
def test_labels_that_are_not_learned_yet_are_not_asked_for_again(
    tmp_path: Path, given_since: int, to_give: str
) -> None:
    with busy_project(tmp_path / "p") as project:
        n = project.state().n_decided
        told = status(project, learning_status(decision(n_labelled=n - given_since)))["decision"]
        assert told["not_learned"] == given_since
        assert told["next_step"].startswith(to_give)
        # The later error is that of the items without a label then.
        left = told["unlabelled"] - 30 + given_since
        assert told["corrected"] == round(0.1234 * told["unlabelled"] - 0.05 * left)
        [[now, _], [then, note]] = told["outlook"]
        assert int(now) > int(then)
        assert to_give in note.replace("\u00a0", " ")
        enough = status(project, learning_status(decision(n_labelled=n - given_since, forecast=Forecast(5, 2, 9))))
        shown = enough["decision"]["next_step"]
        assert shown == ("" if given_since else "about 5 more labels (2 to 9)")
        assert ("may be enough" in " ".join(enough["words"])) == bool(given_since)


def test_a_check_waits_until_the_labels_before_it_are_learned(tmp_path: Path) -> None:
    with busy_project(tmp_path / "p", at_most=0.2) as project:
        n = project.state().n_decided
        plan = replace(plan_total(0.2, 0.1, reducible=0.02, n_labelled=n - 10, pool=90), more_labels=15)
        told = status(project, learning_status(decision(n_labelled=n - 10, at_most=0.2, plan=plan)))["decision"]
        assert told["plan"]["more_labels"] == 5
        assert told["next_step"].startswith("about 5 more labels")
        few = replace(plan, more_labels=3)
        told = status(project, learning_status(decision(n_labelled=n - 10, at_most=0.2, plan=few)))["decision"]
        assert told["plan"]["more_labels"] == 1
        assert not told["plan"]["check_now"]


@pytest.mark.parametrize("target", [None, 0.2])
def test_while_many_labels_are_not_learned_no_number_of_labels_is_stated(tmp_path: Path, target: float | None) -> None:
    with busy_project(tmp_path / "p", at_most=target) as project:
        n = project.state().n_decided
        learned = n - 11
        plan = replace(plan_total(0.2, 0.1, reducible=0.02, n_labelled=learned, pool=90), more_labels=3)
        about: dict[str, Any] = (
            {"at_most": target, "plan": plan} if target is not None else {"forecast": Forecast(30, 12, 60)}
        )
        told = status(project, learning_status(decision(n_labelled=learned, **about)))
        decided = told["decision"]
        assert decided["far_behind"]
        assert (decided["answer"], decided["plan"], decided["forecast"]) == ("keep going", None, None)
        assert (decided["next_step"], decided["outlook"]) == ("", [])
        assert decided["sentences"][-1] == NOT_LEARNED
        assert "The model is still learning the last 11 labels." in told["words"]
        assert "more label" not in " ".join(told["words"]).replace(NOT_LEARNED, "")
        # A check that is advised by the learned labels alone is due.
        now = {**about, "plan": replace(plan, more_labels=0)}
        if target is not None:
            due = status(project, learning_status(decision(n_labelled=learned, **now)))["decision"]
            assert due["plan"]["check_now"]
        near = status(project, learning_status(decision(n_labelled=n - 10, **about)))["decision"]
        assert not near["far_behind"]
        assert near["next_step"].startswith("about ")


def test_while_many_labels_are_not_learned_a_goal_has_no_plan(tmp_path: Path) -> None:
    with busy_project(tmp_path / "p", at_most=0.2, of="all") as project:
        n = project.state().n_decided
        for behind, planned in ((10, True), (11, False)):
            rows = project.size - project.state().n_skipped
            plan = plan_finish(0.2, [0.3] * (rows - n + behind), by_people=n - behind, alpha=0.025)
            plan = replace(plan, more_labels=5)
            numbers = DecisionNumbers(n - behind, rows - n + behind, share=True, at_most=0.2, of="all", finish=plan)
            told = status(project, learning_status(decide(None, numbers)))
            assert (told["goal"]["more_labels"] is not None) == (told["goal"]["plan"] is not None) == planned
            assert (told["decision"]["answer"] == "keep going") == planned
            if not planned:
                first = f"Too early to say: the model has learned {n - 11} of the {n} labels."
                assert told["decision"]["sentences"] == [first, NOT_LEARNED]


@given(
    stop=st.booleans(),
    held=st.sampled_from([None, SCARCE]),
    rare=st.sampled_from([None, RARE, RARE._replace(recall=None), RARE._replace(recall=0.95)]),
    withdrawn=st.sampled_from([None, StopWithdrawal(20, 30, "worth", 2.5)]),
)
@examples(50)
def test_page_report_and_json_agree(tmp_path_factory: pytest.TempPathFactory, stop: bool, **changes: Any) -> None:
    from suffice.report.project_report import report_page

    about = {"held_back": changes["held"], "rare_class": changes["rare"], "withdrawn": changes["withdrawn"]}
    decided = decision(stop=stop, **about)
    with busy_project(tmp_path_factory.mktemp("p") / "p") as project:
        found = learning_status(decided)
        told = status(project, found)
        page = plain(report_page(project, found))
        again = status(project, found)
    assert told == again
    assert told["decision"]["answer"] == decided.answer
    assert told["verdict"]["stop"] == decided.stop == stop
    assert set(told["decision"]["sentences"]) <= set(told["words"])
    # The headline has its own place there.
    for sentence in (told["decision"]["headline"], *told["decision"]["sentences"][1:]):
        assert plain(sentence) in page
    said = " ".join(told["decision"]["sentences"])
    assert ("only 3 labels of class 'eel' are known" in said) == (changes["held"] is not None and not stop)
    assert ("The advice to stop at 20 labels" in said) == (changes["withdrawn"] is not None and not stop)
    low = changes["rare"] is not None and changes["rare"].recall != 0.95
    assert ("screen for them" in said) == low


def test_classes_that_may_be_missed_are_a_setting(tmp_path: Path) -> None:
    with make(tmp_path / "p") as project:
        assert "may_miss" not in project.settings.as_dict()
        with pytest.raises(
            InvalidValueError, match="may_miss must be one of the classes 'cat', 'dog', 'eel', not 'ox'"
        ):
            project.change_settings({"may_miss": ["ox"]}, person="ann")
        project.change_settings({"may_miss": ["eel"]}, person="ann")
        assert project.current_settings.may_miss == ("eel",)
        project.rename_class("eel", "eels", person="ann")
        assert project.current_settings.may_miss == ("eels",)
        project.merge_classes(["eels"], into="cat", person="ann")
        assert project.current_settings.may_miss == ("cat",)
        project.change_settings({"may_miss": []}, person="ann")
        assert not project.current_settings.may_miss


def test_a_project_tells_its_learner_which_classes_may_be_missed(tmp_path: Path) -> None:
    with busy_project(tmp_path / "p", may_miss=("eel",)) as project:
        learner, found = learned(project)
        assert learner._judge is not None
        assert learner._judge._session._may_miss == ("eel",)
        assert found.numbers is not None
        assert found.numbers.held_back is None
