"""The model behind a project: what it says follows from the labels alone, and what fails never stops the labelling."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from suffice import Budget, ErrorStability, LabelWorth, MaxConfidence, PoolFraction, TimeLimit
from suffice.criteria import Criterion
from suffice.errors import InvalidValueError, NotEnoughMemoryError, SufficeError
from suffice.learner import ActiveLearner
from suffice.session import learning
from suffice.session.estimates import expected_error
from suffice.session.insight import Insight
from suffice.session.learning import Follower
from suffice.session.models import KNOWN, default_model, make_model, model_words, require_rule
from suffice.session.state import Call
from suffice.session.witness import SelfErrorTracker, spacing

sys.path.append(str(Path(__file__).parent))
from following import CASES, Case, labels_of, settings_of


@pytest.fixture(params=list(CASES))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def followed(case: Case, calls: Sequence[Call], queue: int = 0) -> Insight:
    follower = Follower(case.settings, case.X)
    follower.follow(calls)
    return follower.insight(queue=queue)


def test_a_verdict_follows_from_the_labels_however_they_came(case: Case) -> None:
    calls = case.calls(37, skips=3)
    at_once = followed(case, calls)
    slowly = Follower(case.settings, case.X)
    for n in range(len(calls)):
        slowly.follow(calls[: n + 1])
        slowly.insight(queue=1 + n % 3)
    in_parts = Follower(case.settings, case.X)
    in_parts.follow(calls[:5])
    in_parts.insight(queue=4)
    in_parts.follow(calls[:23])
    in_parts.predict(case.X[:3])
    in_parts.follow(calls)
    assert at_once == slowly.insight() == in_parts.insight()
    assert at_once.problem == ""
    assert at_once.calls == 37
    assert at_once.n_labelled == 34


def test_the_verdict_is_that_of_a_learner_that_is_told_one_label_a_step(case: Case) -> None:
    calls = case.calls(32)
    learner = ActiveLearner(
        make_model(case.settings), case.X, criterion=case.settings.criterion(), acquisition="order", initial=10
    )
    for call in calls:
        learner.tell(call.item, call.label)
    found = followed(case, calls)
    assert found.verdict == learner.verdict
    assert [point.value for point in found.curve] == [verdict.value for verdict in learner.verdicts]
    assert [point.n_labelled for point in found.curve] == list(range(11, 33))
    assert found.forecast == learner.verdict.forecast


def test_impatience_leaves_the_rest_for_another_time(case: Case) -> None:
    calls = case.calls(30)
    follower, asked = Follower(case.settings, case.X), iter([False] * 12 + [True])
    follower.follow(calls, patience=lambda: next(asked))
    assert follower.calls == 12
    assert follower.insight() == followed(case, calls[:12])
    follower.follow(calls)
    assert follower.insight() == followed(case, calls)


def test_a_changed_past_is_learned_anew(case: Case) -> None:
    calls = case.calls(30)
    other = next(label for label in labels_of(case) if label != calls[4].label)
    corrected = [*calls[:4], calls[4]._replace(label=other), *calls[5:]]
    follower = Follower(case.settings, case.X)
    for past in (calls, corrected, calls[:17], [*calls[:16], Call(calls[16].item, None)]):
        follower.follow(past)
        assert follower.insight(queue=2) == followed(case, past, queue=2)


def test_before_it_begins_the_first_items_are_asked_for(case: Case) -> None:
    insight = followed(case, (), queue=10)
    assert insight.verdict is not None
    assert not insight.verdict.ready
    assert "0 of the 10" in insight.verdict.reason
    assert insight.errors == ()
    assert insight.curve == ()
    assert insight.purchase is None
    learner = ActiveLearner(make_model(case.settings), case.X, seed=case.settings.seed)
    assert insight.queue == tuple(learner.ask(10))
    later = followed(case, [Call(insight.queue[2], case.labels[insight.queue[2]])], queue=3)
    assert later.queue == (insight.queue[0], insight.queue[1], insight.queue[3])


def test_what_is_asked_for_is_open_and_useful(case: Case) -> None:
    calls = case.calls(30, skips=5)
    queue = followed(case, calls, queue=6).queue
    assert len(set(queue)) == 6
    assert not {call.item for call in calls} & set(queue)
    learner = ActiveLearner(make_model(case.settings), case.X)
    learner.skip([call.item for call in calls if call.label is None])
    told = [call for call in calls if call.label is not None]
    learner.tell([call.item for call in told], [call.label for call in told])
    assert queue == tuple(learner.ask(6))


def test_a_pool_that_ends_is_said(case: Case) -> None:
    small = case.first(14)
    everything = [Call(item, small.labels[item]) for item in range(12)]
    assert len(followed(small, everything, queue=9).queue) == 2
    insight = followed(small, [*everything, Call(12, None), Call(13, None)], queue=9)
    assert insight.queue == ()
    assert insight.purchase is None
    assert insight.verdict is not None
    assert insight.verdict.stop
    assert "labelled or skipped" in insight.verdict.reason


def test_it_begins_with_fewer_labels_where_no_more_are_to_be_had(case: Case) -> None:
    small = case.first(8)
    calls = [Call(item, small.labels[item]) for item in range(6)]
    assert followed(small, calls).errors == ()
    follower = Follower(small.settings, small.X)
    follower.follow([*calls, Call(6, None), Call(7, None)])
    assert [each.n_labelled for each in follower.insight().errors] == [6]
    assert len(follower.predict(small.X).labels) == 8
    follower.follow([*calls, Call(6, small.labels[6]), Call(7, small.labels[7])])
    assert follower.insight().errors[-1].n_labelled == 8


def test_everything_skipped_is_no_reason_to_fail(case: Case) -> None:
    small = case.first(3)
    insight = followed(small, [Call(item, None) for item in range(3)], queue=2)
    assert insight.problem == ""
    assert (insight.n_labelled, insight.calls, insight.queue) == (0, 3, ())


def test_predictions_are_those_of_the_learner(case: Case) -> None:
    calls = case.calls(33)
    follower = Follower(case.settings, case.X)
    follower.follow(calls)
    learner = ActiveLearner(make_model(case.settings), case.X, acquisition="order")
    for call in calls:
        learner.tell(call.item, call.label)
    found = follower.predict(case.X)
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
    follower = Follower(case.settings, case.X)
    follower.follow(case.calls(20))
    rows = np.random.default_rng(3).normal(size=(9000, case.X.shape[1]))
    found, last = follower.predict(rows), follower.predict(rows[-10:])
    assert found.labels.shape == (9000,)
    np.testing.assert_allclose(found.uncertainty[-10:], last.uncertainty, rtol=1e-9)
    none = follower.predict(rows[:0])
    assert none.labels.shape == none.uncertainty.shape == (0,)
    assert (none.probabilities is None) == (case.settings.task == "regression")


def test_a_predictor_stays_as_it_is_while_more_is_learned(case: Case) -> None:
    calls = case.calls(40)
    follower = Follower(case.settings, case.X)
    # At 25 an estimate is due, at 27 none.
    for n in (25, 27):
        follower.follow(calls[:n])
        predictor = follower.predictor()
        before = predictor.predict(case.X)
        follower.follow(calls)
        follower.insight()
        after = predictor.predict(case.X)
        np.testing.assert_array_equal(before.uncertainty, after.uncertainty)
        np.testing.assert_array_equal(before.labels, after.labels)


def test_there_is_no_prediction_before_the_model_has_begun(case: Case) -> None:
    follower = Follower(case.settings, case.X)
    with pytest.raises(SufficeError, match="begins with 10 labels, and there are 0"):
        follower.predict(case.X)
    follower.follow(case.calls(9))
    with pytest.raises(SufficeError, match="begins with 10 labels, and there are 9"):
        follower.predict(case.X)


def test_errors_are_estimated_at_every_fifth_label_and_now(case: Case) -> None:
    errors = followed(case, case.calls(33)).errors
    assert [each.n_labelled for each in errors] == [10, 15, 20, 25, 30, 33]
    assert all(0.0 <= each.low <= each.value <= each.high for each in errors)


@pytest.mark.parametrize("initial", [7, 10])
def test_a_tracker_says_what_a_model_fitted_to_all_labels_says(case: Case, initial: int) -> None:
    learner = ActiveLearner(make_model(case.settings), case.X, acquisition="order", initial=initial)
    sample = np.arange(0, 60, 2)
    tracker, n = SelfErrorTracker(learner, case.X[sample], initial), 0
    for call in case.calls(31):
        assert call.label is not None
        learner.tell(call.item, call.label)
        tracker.label_learned()
        n += 1
        if n < initial:
            assert tracker.errors() == ()
            continue
        fitted, rows = learner.model, case.X[sample]
        if hasattr(fitted, "steps"):
            fitted, rows = fitted[-1], fitted[:-1].transform(rows)
        expected, found = expected_error(fitted, rows), tracker.errors()[-1]
        np.testing.assert_allclose([found.value, found.low, found.high], expected, rtol=1e-5)
        assert found.n_labelled == n
    assert [each.n_labelled for each in tracker.errors()] == [n for n in (10, 15, 20, 25, 30, 31) if n >= initial]


def test_estimates_become_rarer_with_many_labels() -> None:
    due = [n for n in range(1, 3201) if n % spacing(n) == 0]
    assert due[:3] == [5, 10, 15]
    assert len(due) == 80 + 40 + 40 + 40
    # Whoever learned more often would see the same ones: each spacing divides the next.
    assert all(due[k + 1] % (due[k + 1] - due[k]) == 0 for k in range(len(due) - 1))


class Failing(NamedTuple):
    """A learner that fails for some items, and how often it was told of them."""

    told: list[int]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Failing:
    seen = Failing([])

    class Picky(ActiveLearner):
        def tell(self, indices: Any, labels: Any) -> Any:
            if indices == 13:
                seen.told.append(13)
                raise np.linalg.LinAlgError("it is singular.")
            return super().tell(indices, labels)

    monkeypatch.setattr(learning, "ActiveLearner", Picky)
    return seen


def test_what_cannot_be_learned_is_said_and_tried_again_when_labels_change(case: Case, failing: Failing) -> None:
    calls = [Call(item, case.labels[item]) for item in range(20)]
    follower = Follower(case.settings, case.X)
    follower.follow(calls[:13])
    assert follower.insight(queue=2).problem == ""
    for _ in range(3):
        follower.follow(calls)
        insight = follower.insight(queue=2)
        assert insight.verdict is None
        assert insight.queue == ()
        assert insight.problem == (
            "The model cannot learn: LinAlgError: it is singular. No label is lost; it is tried again when labels "
            "change."
        )
        with pytest.raises(SufficeError, match="it is singular"):
            follower.predict(case.X)
    assert failing.told == [13]
    follower.follow([*calls, Call(30, case.labels[30])])
    assert failing.told == [13, 13]
    follower.follow(calls[:12])
    insight = follower.insight(queue=2)
    assert insight.problem == ""
    assert insight.n_labelled == 12


def test_a_pool_that_does_not_fit_is_asked_at_random(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    class Large(ActiveLearner):
        def __init__(self, *given: Any, **options: Any) -> None:
            if options["acquisition"] is None:
                tries.append(options)
                raise NotEnoughMemoryError("following the pool needs 9.0 GB of memory, and 1.0 GB are free")
            super().__init__(*given, **options)

    calls = case.calls(20)
    without_queue = followed(case, calls)
    monkeypatch.setattr(learning, "ActiveLearner", Large)
    follower = Follower(case.settings, case.X)
    follower.follow(calls)
    for _ in range(3):
        insight = follower.insight(queue=3)
        assert insight.queue == ()
        assert insight.problem == (
            "The model learns but cannot choose: following the pool needs 9.0 GB of memory, and 1.0 GB are free. Items "
            "are asked for at random."
        )
        assert replace(insight, problem="") == without_queue
    assert len(tries) == 1


def test_labels_that_are_none_of_the_classes_are_a_problem_not_an_end() -> None:
    case = CASES["three classes"]
    insight = followed(case, [Call(0, "dragon")])
    assert "dragon" in insight.problem
    assert insight.verdict is None


def rules() -> Iterator[tuple[str, Criterion, bool, bool]]:
    """Rules with whether there is a curve, and whether that is of the error ratio."""
    yield "paper", ErrorStability(calibration=3), True, True
    yield "absolute", ErrorStability(calibration=3, relative=False), True, False
    yield "budget", Budget(500), True, False
    yield "worth", LabelWorth(30.0, 1.0), True, False
    yield "composed", Budget(500) & ErrorStability(calibration=3), True, True


@pytest.mark.parametrize(("rule", "curve", "ratio"), [each[1:] for each in rules()], ids=[each[0] for each in rules()])
def test_any_rule_has_its_curve(case: Case, rule: Criterion, curve: bool, ratio: bool) -> None:
    other = case._replace(settings=replace(case.settings, rule=rule.state_dict()))
    insight = followed(other, case.calls(40))
    assert insight.problem == ""
    assert bool(insight.curve) == curve
    assert insight.purchase is not None
    assert (insight.purchase.ratio is not None) == ratio
    if ratio:
        # Not the number of labels, which the budget compares.
        assert all(point.value < 20.0 for point in insight.curve)


def test_models_by_name() -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    for name, known in KNOWN.items():
        settings = settings_of(known.task, name)
        y: Any = ["cat", "eel"] * 10 if known.task == "classification" else X[:, 0]
        assert len(make_model(settings).fit(X, y).predict(X)) == 20
        assert model_words(name) == known.words
    assert default_model("regression") == "gp"
    assert default_model("classification") == "logistic"
    assert make_model(settings_of("classification", "logistic")).classes == ["eel", "cat", "dog"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "dropout"}, "takes too long"),
        ({"model": "forest"}, "one of gp, ridge, logistic, not 'forest'"),
        ({"model": "gp"}, "gp is for regression, and this is a project of classification; use logistic"),
        (
            {"task": "regression"},
            "logistic is for classification, and this is a project of regression; use gp or ridge",
        ),
        ({"classes": ("cat",)}, "at least 2 classes, and this one has 1"),
    ],
)
def test_models_that_do_not_fit_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        Follower(replace(settings_of("classification", "logistic"), **changes), np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("task", "model", "rule", "said"),
    [
        ("classification", "logistic", TimeLimit(12.0), "TimeLimit counts seconds"),
        ("classification", "logistic", PoolFraction(0.5) | TimeLimit(12.0), "AnyOf counts seconds"),
        ("regression", "gp", MaxConfidence(0.6), "MaxConfidence requires .*, which a project with a Gaussian process"),
        ("regression", "ridge", MaxConfidence(0.6), "bumps"),
    ],
)
def test_rules_that_do_not_fit_are_refused(task: Any, model: str, rule: Criterion, said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        require_rule(settings_of(task, model, rule))


@pytest.mark.parametrize("rule", [ErrorStability(), Budget(9), LabelWorth(10.0, 1.0)])
def test_rules_that_fit_are_not(case: Case, rule: Criterion) -> None:
    require_rule(replace(case.settings, rule=rule.state_dict()))
    assert followed(case._replace(settings=replace(case.settings, rule=rule.state_dict())), case.calls(13)).verdict


def test_a_large_pool_is_kept_in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "_SMALL_POOL", 10)
    case = CASES["process"]
    found = followed(case, case.calls(30), queue=1)
    monkeypatch.undo()
    assert found == followed(case, case.calls(30), queue=1)


def test_a_stop_stands_though_the_curve_rises_again(case: Case) -> None:
    def judged(threshold: float, n: int) -> Insight:
        rule = ErrorStability(threshold).state_dict()
        return followed(case._replace(settings=replace(case.settings, rule=rule)), case.calls(n))

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
