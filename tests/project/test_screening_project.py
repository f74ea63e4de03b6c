"""A project that screens for a class: its settings, the order of its items, and what it says of its progress."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import suffice as sf
from suffice.checks import Guarantee
from suffice.cli.app import app
from suffice.cli.project_options import ProjectOptions, opened_project
from suffice.cli.settings_options import settings_of
from suffice.errors import InvalidValueError, SufficeError
from suffice.presentation.decision_words import decision_words
from suffice.project import create_project, open_project
from suffice.project.check_offers import class_offers
from suffice.project.project_learner import ProjectLearner
from suffice.project.settings import Settings
from suffice.project.state import Answer
from suffice.project.status_summary import status
from suffice.report.project_report import report_page
from suffice.session.decision import DecisionNumbers, ScreeningProgress, decide

RNG = np.random.default_rng(0)
N = 240
X = RNG.normal(size=(N, 2))
Y = np.where(X[:, 0] + 0.2 * RNG.normal(size=N) > 1.3, "in", "out")
TABLE = {"a": X[:, 0].tolist(), "b": X[:, 1].tolist()}


def made(folder: Path, **options: Any) -> Any:
    return create_project(folder / "p.suffice", TABLE, **{"classes": ["in", "out"], "positive": "in", **options})


def screened(settings: Settings, features: Any, most: int) -> ProjectLearner:
    """A learner of a project that was told the items that it asked for."""
    learner, answers = ProjectLearner(settings, features), list[Answer]()
    order = np.random.default_rng(settings.seed).permutation(N)
    while len(answers) < most:
        learner.follow(answers)
        asked = learner.learning_status(queue=4).queue if len(answers) >= settings.initial else order[:10].tolist()
        answers += [Answer(int(item), str(Y[item]), random=len(answers) < settings.initial) for item in asked]
    learner.follow(answers)
    return learner


def test_a_screening_has_its_own_defaults(tmp_path: Path) -> None:
    with made(tmp_path) as project:
        settings = project.settings
    assert (settings.positive, settings.recall, settings.random_share) == ("in", 0.95, 0.0)
    assert settings.criterion() == sf.RecallTest(0.95)
    with open_project(tmp_path / "p.suffice") as project:
        assert project.settings == settings
    assert Settings.from_dict(json.loads(json.dumps(settings.as_dict()))) == settings
    plain = replace(settings, positive=None, recall=None)
    assert not {"positive", "recall"} & set(plain.as_dict())


def test_relevant_items_come_first(tmp_path: Path) -> None:
    with made(tmp_path, recall=0.8) as project:
        learner = screened(project.settings, project.X, 90)
    found = learner.learning_status(queue=5)
    p = learner.predict(project.X).probabilities
    assert p is not None
    rest = np.setdiff1d(np.arange(N), [answer.item for answer in learner._answers])
    assert list(found.queue) == rest[np.argsort(-p[rest, 0], kind="stable")[:5]].tolist()
    decision = found.decision
    assert decision is not None
    assert decision.screening is not None
    labels = np.array([answer.label for answer in learner._answers])
    assert decision.screening.found == (labels == "in").sum()
    assert decision.screening.found <= decision.screening.estimated <= N
    assert decision.answer == ("enough" if found.stopped_at else "keep going")


def test_page_report_and_status_say_how_far_it_is(tmp_path: Path) -> None:
    with made(tmp_path, recall=0.7) as project:
        order = np.argsort(-X[:, 0])
        for item in order[:120].tolist():
            project.label(item, str(Y[item]), person="ann")
        learner = ProjectLearner(project.settings, project.X)
        with project.lock:
            learner.follow(project.state().learned())
        told = status(project, learner.learning_status(queue=3))
        page = report_page(project, learner.learning_status())
    decision = told["decision"]
    count = int((Y[order[:120]] == "in").sum())
    assert decision["headline"] == "You can stop now"
    assert decision["screening"]["found"] == count
    assert f"{count} of about" in decision["sentences"][0]
    assert "120 of 240 items are screened" in decision["sentences"][0]
    assert decision["sentences"][1].endswith(" of class 'in' are found, which is no guarantee.")
    # The same sentence is in the verdict card, the banner, the status and the report.
    uncovered = "Only a random check covers relevant items that are ranked last."
    assert decision["sentences"][2] == decision["remedy"] == uncovered
    assert uncovered in told["words"]
    assert uncovered in page
    assert decision["outlook_note"].count("ranked last") == 0
    assert decision["error_figure"].startswith(f"{count} of ")
    assert "items are screened" in page
    json.dumps(told, allow_nan=False)


ABOUT = DecisionNumbers(120, 880, share=True, screening=ScreeningProgress("in", 40, 43.4, 0.9))


def verdict(*, stop: bool) -> sf.Verdict:
    return sf.Verdict(
        stop=stop, value=0.1, threshold=0.05, ready=True, reason="because", rule="RecallTest", n_labelled=120
    )


def test_the_answers_of_a_screening() -> None:
    on = decision_words(decide(verdict(stop=False), ABOUT).as_dict())
    assert on.headline == "Keep screening"
    assert on.sentences == [
        "Keep screening: 40 of about 43 relevant items are found (estimate), and 120 of 1,000 items are screened."
    ]
    enough = decision_words(decide(verdict(stop=True), replace(ABOUT, since=100)).as_dict())
    assert enough.headline == "You can stop now"
    assert enough.sentences[-1] == "The rule first said so at 100 labels."
    uncovered = "Only a random check covers relevant items that are ranked last."
    assert uncovered in enough.sentences
    assert uncovered in str(decide(verdict(stop=True), ABOUT))
    assert uncovered not in on.sentences
    # The error of the predictions does not matter.
    assert decide(verdict(stop=True), replace(ABOUT, at_most=0.01)).answer == "enough"
    running = decision_words({**decide(verdict(stop=False), ABOUT).as_dict(), "check_pending": 1})
    assert running.sentences[0] == "A check is running: 1 item of it is not yet labelled."


def test_a_guaranteed_recall_is_the_end() -> None:
    proven = Guarantee.of_recall("in", 40, 0, 850, 880)
    assert proven.value >= 0.9
    said = decide(verdict(stop=False), replace(ABOUT, guarantee=proven))
    assert (said.answer, said.target_guaranteed) == ("enough", True)
    assert decision_words(said.as_dict()).headline == "Your target is guaranteed"
    weak = Guarantee.of_recall("in", 40, 0, 50, 880)
    assert decide(verdict(stop=False), replace(ABOUT, guarantee=weak)).answer == "keep going"
    other = Guarantee.of_recall("out", 40, 0, 850, 880)
    assert decide(verdict(stop=False), replace(ABOUT, guarantee=other)).answer == "keep going"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"positive": "maybe"}, "positive must be one of the classes in, out, not 'maybe'"),
        ({"recall": 1.0}, "recall must be a number above 0 and below 1"),
        ({"positive": None, "recall": 0.9}, "recall is for screening"),
        ({"mistake_cost": 3.0}, "mistake_cost does not go with positive"),
        ({"classes": None, "regression": True}, "labels of this project are numbers"),
        ({"positive": None, "rule": sf.RecallTest()}, "relevant_found"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(SufficeError, match=said):
        made(tmp_path, **options)
    assert not list(tmp_path.iterdir())


def test_options_of_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{a:.3f},{b:.3f}" for a, b in X.tolist()]
    Path("t.csv").write_text("\n".join(["a,b", *rows]) + "\n")

    def opened(**options: Any) -> Settings:
        with opened_project(
            settings_of(ProjectOptions, data="t.csv", classes="in,out", **options), Console(file=StringIO())
        ) as project:
            return project.settings

    for wrong, said in (
        ({"recall": "0.9"}, "--recall is for screening"),
        ({"positive": "in", "mistake_cost": 2.0}, "--mistake-cost is not used with --positive"),
        ({"positive": "in", "at_most": "5%"}, "--at-most is not used with --positive"),
        ({"positive": "in", "rule": "LabelWorth"}, "--rule with --positive must be one of"),
        ({"positive": "in", "recall": "3"}, "--recall must be a share"),
        ({"positive": "inn"}, "--positive must be one of the classes"),
    ):
        with pytest.raises(InvalidValueError, match=said):
            opened(**wrong)
    settings = opened(positive="in", recall="80%", rule="knee")
    assert (settings.positive, settings.recall, settings.random_share) == ("in", 0.8, 0.0)
    assert settings.criterion() == sf.Knee()
    assert opened(positive="in", recall="0.8", rule="Knee") == settings
    assert opened() == settings
    with pytest.raises(InvalidValueError, match="the positive class in"):
        opened(positive="out")
    with pytest.raises(InvalidValueError, match=r"the target recall 0\.8"):
        opened(positive="in", recall="0.9")
    with pytest.raises(InvalidValueError, match="stops by Knee"):
        opened(rule="Safe")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rule", [sf.RecallTest(0.8), sf.QuantCI(0.8), sf.ConsecutiveIrrelevant(20)], ids=repr)
def test_a_screening_continues_from_a_checkpoint(tmp_path: Path, rule: sf.Criterion) -> None:
    with made(tmp_path, rule=rule) as project:
        whole = screened(project.settings, project.X, 60)
        half, again = (ProjectLearner(project.settings, project.X) for _ in range(2))
    half.follow(whole._answers[:40])
    saved = half._checkpoint()
    assert saved is not None
    assert again._resume(whole._answers, [saved])
    again.follow(whole._answers)
    assert again.learning_status(queue=3) == whole.learning_status(queue=3)


def labelled_screening(folder: Path, most: int = 80) -> Any:
    project = made(folder, recall=0.8)
    for item in np.argsort(-X[:, 0])[:most].tolist():
        project.label(item, str(Y[item]), person="ann")
    return project


def test_a_check_of_a_screening_counts_labelled_items_only(tmp_path: Path) -> None:
    with labelled_screening(tmp_path) as project:
        learner = ProjectLearner(project.settings, project.X)
        learner.follow(project.state().learned())
        predictions = learner.predict(project.X)
        screening, predicted = (
            class_offers(project, predictions, recall_of="in", predicted_as_found=found) for found in (False, True)
        )
    rest = np.setdiff1d(np.arange(N), np.argsort(-X[:, 0])[:80])
    assert predictions.probabilities is not None
    assert screening.expected == round(float(predictions.probabilities[rest, 0].sum()))
    assert screening.expected >= predicted.expected
    assert "which share of the class is found" in screening.as_dict()["sentences"][0]
    for row in screening.as_dict()["rows"]:
        assert "of the items of class 'in' are found" in row["words"]
        assert row["size"] < screening.pool


def test_the_command_checks_the_recall_of_a_screening(tmp_path: Path) -> None:
    labelled_screening(tmp_path).close()
    place = str(tmp_path / "p.suffice")
    offers = " ".join(CliRunner().invoke(app, ["check", place]).stdout.split())
    assert "which share of the class is found" in offers
    assert "--recall-of in --only-labelled --size" in offers
    check = json.loads(CliRunner().invoke(app, ["check", place, "--size", "20", "--json"]).stdout)["check"]
    assert (check["quantity"], check["class_name"], check["size"]) == ("recall", "in", 20)
    with open_project(tmp_path / "p.suffice") as project:
        for item in project.state().checks.pending().tolist():
            project.label(item, str(Y[item]), person="ann")
        proven = project.guarantee()
        assert proven is not None
        truth = (Y[[each.item for each in project.state().labelled()]] == "in").sum() / (Y == "in").sum()
    assert proven.guarantee.quantity == "recall"
    assert proven.guarantee.predicted is None
    assert proven.guarantee.value <= truth
    refused = CliRunner().invoke(app, ["check", place, "--only-labelled"]).exception
    assert "give --recall-of CLASS too" in str(refused)
