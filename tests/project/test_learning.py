"""The model behind a project: what it says follows from the labels alone, and what fails never stops the labelling."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from suffice import Budget, ErrorStability, LabelWorth, MaxConfidence, MaxVariance, PoolFraction, TimeLimit
from suffice.checks.standing_finish import spacing
from suffice.criteria import Criterion
from suffice.errors import InvalidValueError, NotEnoughMemoryError, SufficeError
from suffice.learner import ActiveLearner, StopMonitor
from suffice.models.factory import MODEL_FAMILIES
from suffice.models.gaussian_state import KernelState, WeightState
from suffice.models.laplace import GrowingPosterior
from suffice.project import project_learner
from suffice.project.learning_status import LearningStatus
from suffice.project.project_learner import ErrorTracker, ProjectLearner
from suffice.project.state import Answer
from suffice.session.error_estimate import error_now
from tests.project.following import CASES, Case, labels_of, settings_of
from tests.thoroughness import some


# The fast tests have one model of classes and one of numbers.
@pytest.fixture(params=some(["two classes", "three classes", "process", "ridge"], every=2))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def followed(case: Case, answers: Sequence[Answer], queue: int = 0) -> LearningStatus:
    project_learner = ProjectLearner(case.settings, case.X)
    project_learner.follow(answers)
    return project_learner.learning_status(queue=queue)


@pytest.mark.one_in(2)
def test_a_verdict_follows_from_the_labels_however_they_came(case: Case) -> None:
    answers = case.answers(37, skips=3)
    at_once = followed(case, answers)
    slowly = ProjectLearner(case.settings, case.X)
    for n in range(len(answers)):
        slowly.follow(answers[: n + 1])
        slowly.learning_status(queue=1 + n % 3)
    in_parts = ProjectLearner(case.settings, case.X)
    in_parts.follow(answers[:5])
    in_parts.learning_status(queue=4)
    in_parts.follow(answers[:23])
    in_parts.predict(case.X[:3])
    in_parts.follow(answers)
    assert at_once == slowly.learning_status() == in_parts.learning_status()
    assert at_once.problem == ""
    assert at_once.n_answers == 37
    assert at_once.n_labelled == 34


def test_the_verdict_is_that_of_a_learner_that_is_told_one_label_a_step(case: Case) -> None:
    answers = case.answers(32)
    learner = ActiveLearner(
        case.settings.estimator(), case.X, criterion=case.settings.criterion(), acquisition="order", initial=10
    )
    for answer in answers:
        learner.tell(answer.item, answer.label)
    found = followed(case, answers)
    assert found.verdict == learner.verdict
    assert [point.value for point in found.curve] == [verdict.value for verdict in learner.verdicts]
    assert [point.n_labelled for point in found.curve] == list(range(11, 33))
    assert found.forecast == learner.verdict.forecast


def test_impatience_leaves_the_rest_for_another_time(case: Case) -> None:
    answers = case.answers(30)
    project_learner, asked = ProjectLearner(case.settings, case.X), iter([False] * 12 + [True])
    project_learner.follow(answers, patience=lambda: next(asked))
    assert project_learner.n_answers == 12
    assert project_learner.learning_status() == followed(case, answers[:12])
    project_learner.follow(answers)
    assert project_learner.learning_status() == followed(case, answers)


@pytest.mark.one_in(2)
def test_a_changed_past_is_learned_anew(case: Case) -> None:
    answers = case.answers(30)
    other = next(label for label in labels_of(case) if label != answers[4].label)
    corrected = [*answers[:4], answers[4]._replace(label=other), *answers[5:]]
    project_learner = ProjectLearner(case.settings, case.X)
    for past in (answers, corrected, answers[:17], [*answers[:16], Answer(answers[16].item, None)]):
        project_learner.follow(past)
        assert project_learner.learning_status(queue=2) == followed(case, past, queue=2)


def test_before_it_begins_the_first_items_are_asked_for(case: Case) -> None:
    learning_status = followed(case, (), queue=10)
    assert learning_status.verdict is not None
    assert not learning_status.verdict.ready
    assert "0 of the 10" in learning_status.verdict.reason
    assert learning_status.errors == ()
    assert learning_status.curve == ()
    learner = ActiveLearner(case.settings.estimator(), case.X, seed=case.settings.pick_seed)
    assert learning_status.queue == tuple(learner.ask(10))
    later = followed(case, [Answer(learning_status.queue[2], case.labels[learning_status.queue[2]])], queue=3)
    assert later.queue == (learning_status.queue[0], learning_status.queue[1], learning_status.queue[3])


def test_what_is_asked_for_is_open_and_useful(case: Case) -> None:
    answers = case.answers(30, skips=5)
    queue = followed(case, answers, queue=6).queue
    assert len(set(queue)) == 6
    assert not {answer.item for answer in answers} & set(queue)
    # The project draws its random items itself.
    learner = ActiveLearner(case.settings.estimator(), case.X, random_share=0.0)
    learner.skip([answer.item for answer in answers if answer.label is None])
    told = [answer for answer in answers if answer.label is not None]
    learner.tell([answer.item for answer in told], [answer.label for answer in told])
    assert queue == tuple(learner.ask(6))


def test_a_pool_that_ends_is_said(case: Case) -> None:
    small = case.first(14)
    everything = [Answer(item, small.labels[item]) for item in range(12)]
    assert len(followed(small, everything, queue=9).queue) == 2
    learning_status = followed(small, [*everything, Answer(12, None), Answer(13, None)], queue=9)
    assert learning_status.queue == ()
    assert learning_status.verdict is not None
    assert learning_status.verdict.stop
    assert "labelled or skipped" in learning_status.verdict.reason


def test_it_begins_with_fewer_labels_where_no_more_are_to_be_had(case: Case) -> None:
    small = case.first(8)
    answers = [Answer(item, small.labels[item]) for item in range(6)]
    assert followed(small, answers).errors == ()
    project_learner = ProjectLearner(small.settings, small.X)
    project_learner.follow([*answers, Answer(6, None), Answer(7, None)])
    assert [each.n_labelled for each in project_learner.learning_status().errors] == [6]
    assert len(project_learner.predict(small.X).labels) == 8
    project_learner.follow([*answers, Answer(6, small.labels[6]), Answer(7, small.labels[7])])
    assert project_learner.learning_status().errors[-1].n_labelled == 8


def test_everything_skipped_is_no_reason_to_fail(case: Case) -> None:
    small = case.first(3)
    learning_status = followed(small, [Answer(item, None) for item in range(3)], queue=2)
    assert learning_status.problem == ""
    assert (learning_status.n_labelled, learning_status.n_answers, learning_status.queue) == (0, 3, ())


def test_predictions_are_those_of_the_learner(case: Case) -> None:
    answers = case.answers(33)
    project_learner = ProjectLearner(case.settings, case.X)
    project_learner.follow(answers)
    learner = ActiveLearner(case.settings.estimator(), case.X, acquisition="order")
    for answer in answers:
        learner.tell(answer.item, answer.label)
    found = project_learner.predict(case.X)
    if case.settings.task == "regression":
        mean, deviation = learner.model.predict(case.X, return_std=True)
        np.testing.assert_allclose(found.labels, mean, rtol=1e-6)
        np.testing.assert_allclose(found.uncertainty, deviation, rtol=1e-6)
        assert found.probabilities is None
        return
    p = learner.model.predict_proba(case.X)
    order = [learner.model.classes_.tolist().index(name) for name in case.settings.classes]
    assert found.probabilities is not None
    np.testing.assert_allclose(found.probabilities, p[:, order], atol=1e-7)
    np.testing.assert_allclose(found.uncertainty, 1.0 - p.max(axis=1), atol=1e-7)
    assert found.labels.tolist() == learner.model.predict(case.X).tolist()


def test_many_rows_are_predicted_like_few(case: Case) -> None:
    project_learner = ProjectLearner(case.settings, case.X)
    project_learner.follow(case.answers(20))
    rows = np.random.default_rng(3).normal(size=(9000, case.X.shape[1]))
    found, last = project_learner.predict(rows), project_learner.predict(rows[-10:])
    assert found.labels.shape == (9000,)
    np.testing.assert_allclose(found.uncertainty[-10:], last.uncertainty, rtol=1e-9)
    none = project_learner.predict(rows[:0])
    assert none.labels.shape == none.uncertainty.shape == (0,)
    assert (none.probabilities is None) == (case.settings.task == "regression")


def test_a_predictor_stays_as_it_is_while_more_is_learned(case: Case) -> None:
    answers = case.answers(40)
    project_learner = ProjectLearner(case.settings, case.X)
    # At 25 an estimate is due, at 27 none.
    for n in (25, 27):
        project_learner.follow(answers[:n])
        predictor = project_learner.predictor()
        before = predictor.predict(case.X)
        project_learner.follow(answers)
        project_learner.learning_status()
        after = predictor.predict(case.X)
        np.testing.assert_array_equal(before.uncertainty, after.uncertainty)
        np.testing.assert_array_equal(before.labels, after.labels)


def test_there_is_no_prediction_before_the_model_has_begun(case: Case) -> None:
    project_learner = ProjectLearner(case.settings, case.X)
    with pytest.raises(SufficeError, match="begins with 10 labels, and there are 0"):
        project_learner.predict(case.X)
    project_learner.follow(case.answers(9))
    with pytest.raises(SufficeError, match="begins with 10 labels, and there are 9"):
        project_learner.predict(case.X)


def test_errors_are_estimated_at_every_fifth_label_and_now(case: Case) -> None:
    errors = followed(case, case.answers(33)).errors
    assert [each.n_labelled for each in errors] == [10, 15, 20, 25, 30, 33]
    assert all(0.0 <= each.low <= each.value <= each.high for each in errors)


@pytest.mark.parametrize("initial", some([7, 10], every=2))
def test_a_tracker_estimates_what_a_monitor_of_the_fitted_model_estimates(case: Case, initial: int) -> None:
    learner = ActiveLearner(case.settings.estimator(), case.X, acquisition="order", initial=initial)
    tracker, n = ErrorTracker(learner, initial), 0
    for answer in case.answers(31):
        assert answer.label is not None
        learner.tell(answer.item, answer.label)
        tracker.labels_learned(1)
        n += 1
        if n < initial:
            assert tracker.errors() == ()
            continue
        # A monitor of a model that is fitted to all labels at once says the same.
        rows = learner.labelled
        monitor = StopMonitor(case.X, Budget(100))
        monitor.update(learner.model, rows, [learner.labels[row] for row in rows], learner.random_items)
        expected, found = error_now(monitor.error_estimate(), share=monitor.share), tracker.errors()[-1]
        np.testing.assert_allclose([found.value, found.low, found.high], expected[:3], rtol=1e-5)
        assert found.random_labels == expected.random_labels
        assert found.n_labelled == n
    assert [each.n_labelled for each in tracker.errors()] == [n for n in (10, 15, 20, 25, 30, 31) if n >= initial]


def test_a_label_is_learned_once_to_judge_and_once_to_choose(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[int] = []

    def count(kind: type, name: str) -> None:
        real = getattr(kind, name)

        def spy(self: Any, rows: Any, labels: Any) -> Any:
            learned.append(len(labels))
            return real(self, rows, labels)

        monkeypatch.setattr(kind, name, spy)

    # A process learns blocks of rows, a linear model and a classifier the rows themselves.
    count(KernelState, "extend")
    count(WeightState, "learn")
    count(GrowingPosterior, "extend")
    project_learner, answers = ProjectLearner(case.settings, case.X), case.answers(38)
    for n, answer in enumerate(answers, start=1):
        learned.clear()
        project_learner.follow(answers[:n])
        project_learner.learning_status()
        # Of several items each is chosen as if those before it were labelled, which is no label that is learned.
        project_learner.learning_status(queue=1)
        if n > 10:
            project_learner.predict(case.X[:5])
        assert answer.label is not None
        # At 10 labels the model starts; a prior that is learned is learned again at 20, from all labels.
        if n > 10 and n != 20:
            assert learned == [1, 1], n


def test_estimates_become_rarer_with_many_labels() -> None:
    due = [n for n in range(1, 3201) if n % spacing(n) == 0]
    assert due[:3] == [5, 10, 15]
    assert len(due) == 80 + 40 + 40 + 40
    # A learner that learned more often sees the same ones: each spacing divides the next.
    assert all(due[k + 1] % (due[k + 1] - due[k]) == 0 for k in range(len(due) - 1))


class Failing(NamedTuple):
    """A learner that fails for some items, and how often it was told of them."""

    told: list[int]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Failing:
    seen = Failing([])

    class Picky(ActiveLearner):
        def tell(self, indices: Any, labels: Any, *, random: Any = None) -> Any:
            if 13 in indices:
                seen.told.append(13)
                raise np.linalg.LinAlgError("it is singular.")
            return super().tell(indices, labels, random=random)

    monkeypatch.setattr(project_learner, "ActiveLearner", Picky)
    return seen


def test_what_cannot_be_learned_is_said_and_tried_again_when_labels_change(case: Case, failing: Failing) -> None:
    answers = [Answer(item, case.labels[item]) for item in range(20)]
    project_learner = ProjectLearner(case.settings, case.X)
    project_learner.follow(answers[:13])
    assert project_learner.learning_status(queue=2).problem == ""
    for _ in range(3):
        project_learner.follow(answers)
        learning_status = project_learner.learning_status(queue=2)
        assert learning_status.verdict is None
        assert learning_status.queue == ()
        assert learning_status.problem == (
            "The model cannot learn: LinAlgError: it is singular. No label is lost; it is tried again when labels "
            "change."
        )
        with pytest.raises(SufficeError, match="it is singular"):
            project_learner.predict(case.X)
    assert failing.told == [13]
    project_learner.follow([*answers, Answer(30, case.labels[30])])
    assert failing.told == [13, 13]
    project_learner.follow(answers[:12])
    learning_status = project_learner.learning_status(queue=2)
    assert learning_status.problem == ""
    assert learning_status.n_labelled == 12


def test_a_pool_that_does_not_fit_is_asked_at_random(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    class Large(ActiveLearner):
        def __init__(self, *given: Any, **options: Any) -> None:
            if options["acquisition"] is None:
                tries.append(options)
                raise NotEnoughMemoryError("following the pool needs 9.0 GB of memory, and 1.0 GB are free")
            super().__init__(*given, **options)

    answers = case.answers(20)
    without_queue = followed(case, answers)
    monkeypatch.setattr("suffice.project.project_learner.ActiveLearner", Large)
    project_learner = ProjectLearner(case.settings, case.X)
    project_learner.follow(answers)
    for _ in range(3):
        learning_status = project_learner.learning_status(queue=3)
        assert learning_status.queue == ()
        assert learning_status.problem == (
            "The model learns but cannot choose: following the pool needs 9.0 GB of memory, and 1.0 GB are free. Items "
            "are asked for at random."
        )
        assert replace(learning_status, problem="") == without_queue
    assert len(tries) == 1


def test_labels_that_are_none_of_the_classes_are_a_problem_not_an_end() -> None:
    case = CASES["three classes"]
    learning_status = followed(case, [Answer(0, "dragon")])
    assert "dragon" in learning_status.problem
    assert learning_status.verdict is None


def rules() -> Iterator[tuple[str, Criterion, bool, bool]]:
    """Rules with whether there is a curve, and whether that is of the error ratio."""
    yield "paper", ErrorStability(calibration=3), True, True
    yield "absolute", ErrorStability(calibration=3, relative=False), True, False
    yield "budget", Budget(500), True, False
    yield "worth", LabelWorth(30.0, 1.0), True, False
    yield "composed", Budget(500) & ErrorStability(calibration=3), True, True


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("rule", "curve", "ratio"), [each[1:] for each in rules()], ids=[each[0] for each in rules()])
def test_any_rule_has_its_curve(case: Case, rule: Criterion, curve: bool, ratio: bool) -> None:
    other = case._replace(settings=replace(case.settings, rule=rule.state_dict()))
    learning_status = followed(other, case.answers(40))
    assert learning_status.problem == ""
    assert bool(learning_status.curve) == curve
    if ratio:
        # Not the number of labels, which the budget compares.
        assert all(point.value < 20.0 for point in learning_status.curve)


def test_models_by_name() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    for name, family in MODEL_FAMILIES.items():
        for task in family.tasks if family.interactive else ():
            settings = settings_of(task, name)
            y: Any = ["cat", "eel"] * 10 if task == "classification" else X[:, 0]
            assert len(settings.estimator().fit(X, y).predict(X)) == 20
    assert settings_of("classification", "logistic").estimator().classes == ["eel", "cat", "dog"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"model": "dropout"},
            "a network with dropout learns too slowly .* one of gp, ridge, logistic, kernel, components, forest",
        ),
        ({"model": "tree"}, "one of gp, ridge, logistic, kernel, components, forest, boosting, not 'tree'"),
        ({"model": "gp"}, "gp is for regression, and this is a project of classification; use logistic"),
        (
            {"task": "regression"},
            "logistic is for classification, and this is a project of regression; use gp or ridge or forest",
        ),
        ({"classes": ("cat",)}, "at least 2 classes, and this one has 1"),
    ],
)
def test_models_that_do_not_fit_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        ProjectLearner(replace(settings_of("classification", "logistic"), **changes), np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("task", "model", "rule", "said"),
    [
        ("classification", "logistic", TimeLimit(12.0), "TimeLimit counts seconds"),
        ("classification", "logistic", PoolFraction(0.5) | TimeLimit(12.0), "AnyOf counts seconds"),
        ("regression", "gp", MaxConfidence(0.6), "MaxConfidence requires .*, which a project with a Gaussian process"),
        ("regression", "ridge", MaxConfidence(0.6), "10 radial basis functions"),
        ("classification", "forest", ErrorStability(), "requires kl_new_old.*use LabelWorth, which every model"),
        ("regression", "boosting", MaxVariance(0.6), "MaxVariance requires pool_variance, which a project with grad"),
    ],
)
def test_rules_that_do_not_fit_are_refused(task: Any, model: str, rule: Criterion, said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        settings_of(task, model, rule).require_usable_rule()


@pytest.mark.parametrize("rule", [ErrorStability(), Budget(9), LabelWorth(10.0, 1.0)])
def test_rules_that_fit_are_not(case: Case, rule: Criterion) -> None:
    replace(case.settings, rule=rule.state_dict()).require_usable_rule()
    assert followed(case._replace(settings=replace(case.settings, rule=rule.state_dict())), case.answers(13)).verdict


def test_a_large_pool_is_kept_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_learner, "_SMALL_POOL", 10)
    case = CASES["process"]
    found = followed(case, case.answers(30), queue=1)
    monkeypatch.undo()
    assert found == followed(case, case.answers(30), queue=1)


@pytest.mark.one_in(2)
def test_a_stop_stands_though_the_curve_rises_again(case: Case) -> None:
    def judged(threshold: float, n: int) -> LearningStatus:
        rule = ErrorStability(threshold).state_dict()
        return followed(case._replace(settings=replace(case.settings, rule=rule)), case.answers(n))

    # Between 20 and 40 labels no hyper-parameters are learned again; classifiers here learn none.
    values = [point.value for point in judged(0.0, 39 if case.settings.task == "regression" else 90).curve]
    # A step after which the curve is higher than anything before was low: the first dip to that level.
    at = next(k for k in range(12, len(values) - 1) if values[k] == min(values[: k + 1]) and values[k + 1] > values[k])
    n = 11 + at
    for found in (judged(values[at], n), judged(values[at], n + 1)):
        assert found.verdict is not None
        assert found.verdict.stop
        assert found.verdict.value == values[at]
        assert found.stopped_at == n
        assert found.verdict.n_labelled == found.n_labelled
        assert found.forecast is None
    assert judged(values[at], n + 1).curve[-1].value > values[at]
    before = judged(values[at], n - 1)
    assert before.verdict is not None
    assert not before.verdict.stop
    assert before.stopped_at is None
