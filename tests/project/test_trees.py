"""Trees as models of projects: fitted on a schedule, the same after a restart, and chosen on the labels."""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice import LabelWorth
from suffice.checks.standing_finish import spacing
from suffice.learner.refitted import fit_due
from suffice.models.factory import make_model
from suffice.project import create_project, model_selection
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import open_project
from suffice.project.events import EventKind
from suffice.project.exported_files import predictions_file
from suffice.project.labelling_project import Project
from suffice.project.learned_files import LearnedFiles
from suffice.project.learning_status import LearningStatus
from suffice.project.model_selection import compared_models
from suffice.project.project_learner import ProjectLearner
from suffice.project.settings import Settings
from suffice.project.state import Answer
from suffice.project.status_summary import status
from tests.counted_fits import count_fits
from tests.thoroughness import crossed

N = 300
X = np.random.default_rng(0).normal(size=(N, 3))
# Neither classes nor numbers are linear in the features.
NUMBERS = [float(value) for value in X[:, 0] * X[:, 1] + 0.2 * X[:, 2]]
CLASSES = ["in" if value > 0.0 else "out" for value in NUMBERS]
GOALS: dict[str, dict[str, Any]] = {
    "none": {},
    "classification": {"at_most": 0.1, "of": "all"},
    "regression": {"at_most": 0.1, "of": "all", "tolerance": 0.5},
}
PREDICTED: Any = np.testing.assert_array_equal


def settings(model: str, task: Any, **changes: Any) -> Settings:
    # A class that no item has.
    classes = ("out", "never", "in") if task == "classification" else ()
    rule = LabelWorth().state_dict()
    return replace(Settings("trees", task, classes, "y", "table", ("x",), None, model, rule), **changes)


def answers(task: str, n: int) -> list[Answer]:
    """The first items, of which some are skipped, and a third drawn at random."""
    labels: list[Any] = CLASSES if task == "classification" else NUMBERS
    return [Answer(k, None, False) if k % 17 == 16 else Answer(k, labels[k], k < 10 or k % 3 == 0) for k in range(n)]


def followed(about: Settings, given_answers: list[Answer]) -> ProjectLearner:
    learner = ProjectLearner(about, X)
    learner.follow(given_answers)
    return learner


def results(learner: ProjectLearner) -> LearningStatus:
    found = learner.learning_status()
    assert not found.problem
    return found


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.models.factory._TREES", 5)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of labels of the fits so far."""
    return count_fits(monkeypatch, "suffice.project.project_learner")


# --- when trees are fitted ---


@given(st.integers(1, 10**5))
def test_fits_are_a_tenth_of_the_labels_apart_at_most_and_where_estimates_are_made(n: int) -> None:
    before = next((k for k in range(n - 1, 0, -1) if fit_due(k)), 0)
    assert n - before <= max(5, 0.1 * n)
    assert not fit_due(n) or n % spacing(n) == 0


def test_ten_more_fits_for_each_doubling() -> None:
    due = [sum(fit_due(n) for n in range(1, last + 1)) for last in (100, 200, 400, 800)]
    assert due == [20, 30, 40, 50]


def test_labels_that_arrive_together_are_fitted_on_the_schedule(fits: list[int]) -> None:
    followed(settings("forest", "classification"), answers("classification", 56))
    n_labels = sum(answer.label is not None for answer in answers("classification", 56))
    scheduled = [n for n in range(10, n_labels + 1) if fit_due(n)]
    # Each of them once by the model, and at most about as often to estimate the error.
    assert [n for n in scheduled if n not in fits] == []
    assert len(scheduled) == 9
    assert len(fits) <= 2 * len(scheduled) + 15


@pytest.mark.parametrize(
    ("model", "task", "goal"),
    crossed(["forest", "boosting"], ["classification", "regression"], ["none", "goal"], every=3),
)
def test_results_are_a_function_of_the_labels(model: str, task: str, goal: str) -> None:
    about = settings(model, task, **GOALS["none" if goal == "none" else task])
    wanted = answers(task, 29)
    at_once = followed(about, wanted)
    in_parts = ProjectLearner(about, X)
    for k in range(0, 29, 6):
        in_parts.follow(wanted[:k])
        in_parts.learning_status(queue=2)
        if k > 12:
            # Take some answers back, and read the results.
            in_parts.follow(wanted[: k - 4])
            in_parts.learning_status()
    in_parts.follow(wanted)
    expected, found = results(at_once), results(in_parts)
    assert replace(found, queue=()) == expected
    assert expected.n_labelled == 28
    assert expected.decision is not None
    assert expected.decision.n_labelled == 28
    for one, other in zip(at_once.predict(X), in_parts.predict(X), strict=True):
        PREDICTED(one, other)


def test_labels_that_wait_for_a_fit_count(fits: list[int]) -> None:
    about = settings("forest", "classification")
    learner = followed(about, answers("classification", 15))
    before, n_fits = results(learner), len(fits)
    more = [Answer(100, "in", True), Answer(101, None, False), Answer(102, "out", False)]
    learner.follow([*answers("classification", 15), *more])
    after = results(learner)
    assert len(fits) == n_fits
    assert (after.n_labelled, after.n_answers) == (before.n_labelled + 2, before.n_answers + 3)
    assert before.numbers is not None
    assert after.numbers is not None
    assert after.numbers.unlabelled == before.numbers.unlabelled - 3
    # The model has predicted the random one of them without knowing it.
    assert after.errors[-1].random_labels == before.errors[-1].random_labels + 1
    assert after.errors[-1].n_labelled == 17
    # Answers that wait are taken back without a fit.
    learner.follow(answers("classification", 15))
    assert results(learner) == before
    assert len(fits) == n_fits


@pytest.mark.parametrize("model", ["forest", "boosting"])
def test_predictions_are_those_of_the_model_fitted_to_all_labels(model: str) -> None:
    for task in ("classification", "regression"):
        learner = followed(settings(model, task), wanted := answers(task, 33))
        labelled = [answer for answer in wanted if answer.label is not None]
        rows, labels = X[[answer.item for answer in labelled]], [answer.label for answer in labelled]
        expected = make_model(model, task=task).fit(rows, labels)
        found = learner.predict(X)
        if task == "regression":
            PREDICTED(found.labels, expected.predict(X))
            # That of the last fit, at 30 labels.
            assert set(found.uncertainty) == {results(followed(settings(model, task), wanted[:31])).errors[-1].value}
            continue
        assert found.probabilities is not None
        PREDICTED(found.probabilities[:, [2, 0]], expected.predict_proba(X))
        assert not found.probabilities[:, 1].any()
        PREDICTED(found.labels, expected.predict(X))


def test_trees_for_numbers_let_the_project_draw_items_at_random() -> None:
    assert results(followed(settings("forest", "regression"), answers("regression", 20))).queue == ()
    chosen = followed(settings("forest", "classification"), answers("classification", 20)).learning_status(queue=3)
    assert len(chosen.queue) == 3


def test_a_restart_costs_one_fit(tmp_path: Path, fits: list[int]) -> None:
    (tmp_path / "p").mkdir()
    for task in ("classification", "regression"):
        about, wanted = settings("forest", task), answers(task, 25)
        files = LearnedFiles(tmp_path / "p" / "learned", partial(str, task))
        learner = followed(about, wanted)
        assert learner.keep_in(files, results(learner))
        fits.clear()
        again = ProjectLearner(about, X)
        # The last answers wait for the next fit.
        assert 20 <= again.resume_from(files, wanted) < 25
        again.follow(wanted)
        assert len(fits) == 1
        assert results(again) == results(learner)
        for one in (learner, again):
            one.follow(answers(task, 37))
        assert results(again) == results(learner)
        PREDICTED(again.predict(X).labels, learner.predict(X).labels)


def test_a_pool_that_is_labelled_completely() -> None:
    about = settings("forest", "classification")
    wanted = answers("classification", 23)
    learner = ProjectLearner(about, X[:23])
    learner.follow(wanted)
    found = results(learner)
    assert found.decision is not None
    assert found.decision.answer == "complete"
    assert found.n_labelled == 22


def test_one_class_so_far() -> None:
    for model in ("forest", "boosting"):
        learner = followed(settings(model, "classification"), [Answer(k, "in", True) for k in range(23)])
        assert results(learner).n_labelled == 23
        assert set(learner.predict(X).labels) == {"in"}


# --- a project ---


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    columns = {name: X[:, k] for k, name in enumerate("abc")}
    with create_project(tmp_path / "p", columns, classes=["in", "out"], model="forest", seed=0) as made:
        yield made


def label(project: Project, n: int, queue: tuple[int, ...] = ()) -> None:
    for asked in project.next("ann", n, queue=queue):
        project.label(asked.position, CLASSES[asked.position], person="ann")


def test_everything_that_a_project_does_with_its_model(project: Project, tmp_path: Path) -> None:
    with BackgroundLearner(project, project.learned_files) as background:
        for n in (10, 4, 4, 4):
            label(project, n, background.learning_status.queue)
            assert background.wait_settled(60.0)
        told = status(project, background.learning_status)
        assert told["model"] == {
            "name": "forest",
            "description": "a forest of randomised trees",
            "reason": "",
            "choice": None,
        }
        assert (told["n_labelled"], told["learned"], told["behind"]) == (22, 22, 0)
        assert told["problem"] == ""
        assert told["error"]["random_labels"] > 10
        assert predictions_file(project, background.predictions(), "csv").rows == N - 22
        assert len(background.suspicious_labels()) == 22
        project.start_check(20, person="ann", predict=background.predictions_after)
        label(project, 20)
        guarantee = project.guarantee()
        assert guarantee is not None
        assert guarantee.about_present_model
        frame = {name: X[:9, k] for k, name in enumerate("abc")}
        PREDICTED(project.pipeline().predict(frame), background.predictions().labels[:9])
        project.switch_model("boosting", person="ann")
        assert background.wait_settled(60.0)
        assert status(project, background.learning_status)["model"]["name"] == "boosting"
        project.switch_model("logistic", person="ann")
        assert background.wait_settled(60.0)
    with open_project(tmp_path / "p") as again:
        assert again.current_settings.model == "logistic"


def test_numbers_are_learned_from_items_that_are_drawn_at_random(tmp_path: Path) -> None:
    columns = {name: X[:, k] for k, name in enumerate("abc")}
    with (
        create_project(tmp_path / "p", columns, regression=True, model="boosting", seed=0) as project,
        BackgroundLearner(project) as background,
    ):
        for _ in range(3):
            for asked in project.next("ann", 6, queue=background.learning_status.queue):
                assert asked.random
                project.label(asked.position, NUMBERS[asked.position], person="ann")
            assert background.wait_settled(60.0)
        told = status(project, background.learning_status)
        assert told["error"]["random_labels"] == 18
        assert told["decision"]["error"]["value"] > 0.0
        found = background.predictions()
        assert np.isfinite(found.labels).all()
        assert len(set(found.uncertainty)) == 1


# --- the model that is chosen on the labels ---


def chosen(place: Path, **changes: Any) -> Project:
    columns = {name: X[:, k] for k, name in enumerate("abc")}
    options: dict[str, Any] = {"classes": ["in", "out"], "model": "auto", "at_most": 0.1, "of": "all", "seed": 0}
    made: Project = create_project(place, columns, **options | changes)
    return made


def choice_of(project: Project, learning_status: LearningStatus) -> Any:
    return status(project, learning_status)["model"]["choice"]


def test_a_better_model_is_used_before_the_check(tmp_path: Path) -> None:
    with chosen(tmp_path / "p") as project:
        assert (project.settings.model, project.settings.choose_model) == ("logistic", True)
        label(project, 40)
        with BackgroundLearner(project) as background:
            assert background.wait_settled(60.0)
        assert choice_of(project, background.learning_status)["sentences"] == [
            "The model is chosen on the labels: models are compared at 100 labels and before the check."
        ]
        label(project, 65)
        with BackgroundLearner(project) as background:
            assert background.wait_settled(60.0)
        events = project.events()
        [compared] = [event for event in events if event.kind is EventKind.models_compared]
        [changed] = [event for event in events if event.kind is EventKind.model_changed]
        # On the first 100 labels, although there are more.
        assert compared.data["n_labelled"] == 100
        assert compared.person == changed.person == ""
        assert project.current_settings.model == changed.data["model"] == compared.data["model"] != "logistic"
        errors = compared.data["errors"]
        assert set(errors) == {"logistic", "kernel", "forest"}
        assert errors[changed.data["model"]] == min(errors.values()) < 0.9 * errors["logistic"]
        told = choice_of(project, background.learning_status)
        assert (told["compared_at"], told["next_at"]) == (100, 200)
        assert told["sentences"][0].startswith("Compared on 100 labels: ")
        assert told["sentences"][-1] == "They will be compared again at 200 labels and before the check."
        assert [each.person for each in project.setting_changes()] == [""]
    with open_project(tmp_path / "p") as again, BackgroundLearner(again) as restarted:
        assert restarted.wait_settled(60.0)
        assert len(again.events()) == len(events)
        # What a person has chosen is not changed any more.
        assert model_selection.chooses_model(again.state(), again.settings)
        again.switch_model("logistic", person="ann")
        assert not model_selection.chooses_model(again.state(), again.settings)
        assert choice_of(again, restarted.learning_status) is None


@pytest.mark.parametrize(
    ("changes", "chooses"),
    [
        ({}, True),
        ({"model": None}, True),
        ({"model": "logistic"}, False),
        ({"model": None, "of": "rest"}, False),
        ({"model": None, "classes": None, "regression": True, "tolerance": 1.0}, False),
    ],
)
def test_the_default_for_a_goal_about_all_labels(tmp_path: Path, changes: dict[str, Any], chooses: bool) -> None:
    with chosen(tmp_path / "p", **changes) as project:
        assert project.settings.choose_model == chooses
        assert ("choose_model" in project.settings.as_dict()) == chooses
        assert project.settings.model == ("gp" if "regression" in changes else "logistic")


def test_models_are_not_compared_once_a_check_has_started(tmp_path: Path) -> None:
    with chosen(tmp_path / "p") as project, BackgroundLearner(project) as background:
        label(project, 20)
        assert background.wait_settled(60.0)
        project.start_check(30, person="ann", predict=background.predictions_after)
        label(project, 90)
        assert background.wait_settled(60.0)
        assert project.state().n_labelled > 100
        assert not [event for event in project.events() if event.kind is EventKind.models_compared]
        assert choice_of(project, background.learning_status) is None


def test_a_comparison_that_comes_too_late_is_not_written(tmp_path: Path) -> None:
    with chosen(tmp_path / "p") as project:
        label(project, 120)
        found = compared_models(
            project.current_settings, project.state().answers(), project.X, compared=0, before_check=False
        )
        assert found is not None
        assert found.model != "logistic"
        editor = project.settings_editor
        assert not editor.record_comparison(found, "kernel")
        assert editor.record_comparison(found, "logistic")
        assert not editor.record_comparison(found._replace(model="logistic"), found.model)
        project.start_check(10, person="ann")
        assert not editor.record_comparison(found._replace(n_labelled=200, model="logistic"), found.model)
        assert project.current_settings.model == found.model


def test_a_comparison_that_fails_leaves_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def fail(*given_arguments: Any, **options: Any) -> None:
        tried.append((given_arguments, options))
        raise np.linalg.LinAlgError("it is singular")

    monkeypatch.setattr("suffice.project.background_learner.compared_models", fail)
    with chosen(tmp_path / "p") as project:
        label(project, 110)
        with BackgroundLearner(project) as background:
            for _ in range(3):
                assert background.wait_settled(60.0)
        assert len(tried) == 1
        assert background.learning_status.problem == ""
        assert project.current_settings.model == "logistic"


def test_models_are_compared_while_the_model_is_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learned = BackgroundLearner._learned

    def behind(background: BackgroundLearner, work: Any) -> LearningStatus:
        """As if another answer had come meanwhile, each time."""
        return replace(learned(background, work), n_answers=len(work.answers) - 1)

    monkeypatch.setattr(BackgroundLearner, "_learned", behind)
    with chosen(tmp_path / "p") as project:
        label(project, 105)
        end = time.monotonic() + 60.0
        with BackgroundLearner(project) as background:
            while project.current_settings.model == "logistic" and time.monotonic() < end:
                assert not background.wait_settled(0.1)
        [compared] = [event for event in project.events() if event.kind is EventKind.models_compared]
        assert compared.data["n_labelled"] == 100
        assert project.current_settings.model == compared.data["model"] != "logistic"


def test_results_are_seen_after_the_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise somebody could start a check with a model that is about to be replaced."""
    counted = []

    def compare(*given_arguments: Any, **options: Any) -> Any:
        counted.append(background.learning_status.n_answers)
        return compared_models(*given_arguments, **options)

    monkeypatch.setattr("suffice.project.background_learner.compared_models", compare)
    with chosen(tmp_path / "p") as project:
        label(project, 105)
        with BackgroundLearner(project) as background:
            assert background.wait_settled(60.0)
        assert counted[0] < 105 == background.learning_status.n_answers
        assert project.current_settings.model != "logistic"


def test_before_a_check_the_models_are_compared_on_all_labels() -> None:
    about = settings("logistic", "classification", choose_model=True, **GOALS["classification"])
    given_answers = answers("classification", 90)
    assert compared_models(about, given_answers, X, compared=0, before_check=False) is None
    found = compared_models(about, given_answers, X, compared=0, before_check=True)
    assert found is not None
    assert found.n_labelled == 85
    assert compared_models(about, given_answers, X, compared=80, before_check=True) is None
    one_class = [Answer(k, "in", True) for k in range(120)]
    assert compared_models(about, one_class, X, compared=0, before_check=False) is None


def test_only_models_that_the_rule_supports_are_compared() -> None:
    from suffice import ErrorStability

    about = settings("logistic", "classification", rule=ErrorStability().state_dict())
    assert model_selection.chosen_models(about) == ["logistic", "kernel"]
    assert (
        compared_models(about.using("boosting"), answers("classification", 120), X, compared=0, before_check=False)
        is None
    )
