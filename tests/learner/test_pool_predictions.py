"""StopMonitor with predictions in place of a model: probabilities, classes, numbers, a function, right or wrong."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

import suffice as sf
from suffice.criteria import Criterion
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError, SufficeError

N = 400
_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] + 0.5 * _RNG.normal(size=N) > 0.0, "right", "left")
Z = X[:, 0] - X[:, 1] + 0.3 * _RNG.normal(size=N)
ITEMS = _RNG.permutation(N)
ROUNDS = (20, 30, 45, 60, 80)
LAST = ROUNDS[-1]


@cache
def classifier(n: int) -> Any:
    return GaussianNB().fit(X[ITEMS[:n]], Y[ITEMS[:n]])


@cache
def regressor(n: int) -> Any:
    return Ridge().fit(X[ITEMS[:n]], Z[ITEMS[:n]])


def right(before: int, n: int) -> dict[int, bool]:
    """Whether a model of some labels predicts the labels after them."""
    items = ITEMS[before:n]
    return dict(zip(items.tolist(), (classifier(before).predict(X[items]) == Y[items]).tolist(), strict=True))


def arguments(kind: str, n: int, before: int) -> dict[str, Any]:
    """The arguments of the update at a number of labels, besides indices and random."""
    if kind == "correct":
        return {"correct": right(before, n) if before else {}}
    numbers = regressor(n).predict(X)
    sources: dict[str, dict[str, Any]] = {
        "numbers": {"predictions": numbers},
        "distributions": {"predictions": (numbers, np.full(N, 0.3))},
        "model": {"model": classifier(n)},
        "function": {"model": lambda rows: classifier(n).predict_proba(X[list(rows)])},
        "probabilities": {"probabilities": classifier(n).predict_proba(X)},
        "classes": {"predictions": classifier(n).predict(X)},
    }
    return {**sources[kind], "labels": (Z if kind in {"numbers", "distributions"} else Y)[ITEMS[:n]]}


def run(kind: str, rule: Criterion | None = None, rounds: tuple[int, ...] = ROUNDS) -> sf.StopMonitor:
    pool: Any = X if kind == "model" else range(N)
    monitor = sf.StopMonitor(pool, rule or sf.Budget(100), seed=0, estimate_time=0.0)
    for n, before in zip(rounds, (0, *rounds), strict=False):
        monitor.update(indices=ITEMS[:n], random=ITEMS[:n:2], **arguments(kind, n, before))
    return monitor


def answers(kind: str, items: Any) -> Any:
    """What people say about items of a check."""
    if kind in {"numbers", "distributions"}:
        return Z[items]
    return classifier(LAST).predict(X[items]) == Y[items] if kind == "correct" else Y[items]


@pytest.mark.parametrize("kind", ["function", "probabilities"])
@pytest.mark.parametrize("rule", [sf.LabelWorth(), sf.StabilizingPredictions(), sf.SelectedAccuracy(0.6, window=4)])
def test_probabilities_give_the_same_as_their_model_without_refits(kind: str, rule: Criterion) -> None:
    ours, theirs = run(kind, rule), run("model", rule)
    assert ours.verdicts == theirs.verdicts
    assert ours.error_estimate() == theirs.error_estimate()
    assert ours.decision(0.1) == theirs.decision(0.1)
    assert ours.steps == theirs.steps


@pytest.mark.parametrize("kind", ["function", "probabilities", "classes", "numbers", "distributions", "correct"])
def test_estimates_decisions_and_checks_are_the_same_after_saving(kind: str) -> None:
    monitor = run(kind)
    again = sf.StopMonitor.from_state(json.loads(json.dumps(monitor.state_dict())), range(N))
    assert monitor.trace().n_labelled.tolist() == list(ROUNDS)
    assert monitor.error_estimate().random_labels == 30
    tolerance = 0.5 if kind in {"numbers", "distributions"} else None
    assert again.error_estimate() == monitor.error_estimate()
    assert str(again.decision()) == str(monitor.decision())
    for each in (monitor, again):
        check = each.check(40, tolerance=tolerance)
        assert check.model is None
        guarantee = check.tell(answers(kind, check.indices))
        assert guarantee is not None
        assert guarantee.model.endswith("at 80 labels")
        assert each.guarantee is not None
        assert each.error_estimate().random_labels == 70
        # The labels of the check are given to the next update, and count as random.
        known = [*ITEMS[:LAST], *check.indices]
        told: Mapping[str, Any] = {"correct": {}} if kind == "correct" else arguments(kind, LAST, 60)
        if kind != "correct":
            told = {**told, "labels": (Z if tolerance else Y)[known]}
        each.update(indices=known, **told)
        assert each.error_estimate().random_labels == 70
        assert each.guarantee.guarantee == guarantee
        assert not each.guarantee.about_present_model
    assert again.verdicts == monitor.verdicts
    assert str(again.decision(0.3)) == str(monitor.decision(0.3))


def test_right_and_wrong_answers_give_the_estimate_of_the_predicted_classes() -> None:
    ours, theirs = run("correct"), run("classes")
    assert ours.error_estimate() == theirs.error_estimate()
    checks = [monitor.check(50) for monitor in (ours, theirs)]
    found = [
        check.tell(answers(kind, check.indices)) for check, kind in zip(checks, ("correct", "classes"), strict=True)
    ]
    assert found[0] is not None
    assert found[1] is not None
    assert (found[0].value, found[0].wrong) == (found[1].value, found[1].wrong)


def test_answers_in_the_order_of_the_items_and_by_item_are_the_same() -> None:
    by_item = run("correct")
    listed, told = sf.StopMonitor(range(N), sf.Budget(100), seed=0, estimate_time=0.0), dict[int, bool]()
    for n, before in zip(ROUNDS, (0, *ROUNDS), strict=False):
        told |= arguments("correct", n, before)["correct"]
        series = [told.get(item) for item in ITEMS[:n].tolist()]
        listed.update(correct=series, indices=ITEMS[:n], random=ITEMS[:n:2])
    assert listed.error_estimate() == by_item.error_estimate()


def test_answers_of_the_first_update_count() -> None:
    monitor = sf.StopMonitor(range(N), sf.Budget(100), seed=0)
    monitor.update(correct=dict.fromkeys(range(10, 30), True), indices=range(30), random=range(30))
    estimate = monitor.error_estimate()
    assert estimate.random_labels == 20
    assert estimate.predicted_at == 10
    # Every label has an answer: the model is the one of now.
    frozen = sf.StopMonitor(range(N), sf.Budget(100), seed=0)
    frozen.update(correct=np.arange(30) % 10 > 0, indices=range(30), random=range(30))
    assert frozen.error_estimate().predicted_at is None
    assert frozen.error_estimate().low < 0.1 < frozen.error_estimate().high


def test_a_stop_is_not_held_back_by_few_wrong_answers() -> None:
    monitor = sf.StopMonitor(range(N), sf.Budget(30), seed=0)
    correct = {item: item != 29 for item in range(10, 30)}
    assert monitor.update(correct=correct, indices=range(30), random=range(30)).stop
    assert monitor.decision().answer == "enough"
    assert monitor.decision_numbers().baseline is None
    assert monitor.decision_numbers().rare_class is None


def test_an_answer_of_a_check_is_not_overwritten_by_an_update_without_it() -> None:
    monitor = run("correct")
    check = monitor.check(10)
    before = check.tell(dict.fromkeys(check.indices.tolist(), False))
    assert before is not None
    monitor.update(correct={}, indices=[*ITEMS[:LAST], *check.indices])
    assert check.guarantee == before


def test_a_monitor_may_go_from_a_model_to_its_predictions_and_back() -> None:
    monitor, other = (sf.StopMonitor(X, sf.LabelWorth(), seed=0, estimate_time=0.0) for _ in range(2))
    for k, n in enumerate(ROUNDS):
        kind = "probabilities" if k % 2 else "model"
        monitor.update(indices=ITEMS[:n], random=ITEMS[:n:2], **arguments(kind, n, 0))
        other.update(indices=ITEMS[:n], random=ITEMS[:n:2], **arguments("model", n, 0))
    assert monitor.error_estimate() == other.error_estimate()
    assert monitor.verdicts == other.verdicts


def test_columns_keep_the_classes_of_the_update_before() -> None:
    labels = np.array(["b", "a"] * (N // 2))
    table = np.tile([0.9, 0.1], (N, 1))
    monitor = sf.StopMonitor(range(N), sf.Budget(100))
    monitor.update(probabilities=table, classes=["b", "a"], indices=range(10), labels=labels[:10])
    monitor.update(probabilities=table, indices=range(12), labels=labels[:12])
    assert set(monitor.check(3).predictions.tolist()) == {"b"}
    # In sorted order otherwise, and whole numbers are the columns.
    monitor = sf.StopMonitor(range(N), sf.Budget(100))
    monitor.update(probabilities=table, indices=range(10), labels=labels[:10])
    assert set(monitor.check(3).predictions.tolist()) == {"a"}
    monitor = sf.StopMonitor(range(N), sf.Budget(100))
    monitor.update(probabilities=np.tile([0.1, 0.1, 0.8], (N, 1)), indices=[0, 1], labels=[0, 1])
    assert set(monitor.check(3).predictions.tolist()) == {2}


@pytest.mark.parametrize("order", [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]])
@pytest.mark.parametrize("kind", [str, int])
def test_named_columns_are_the_classes_in_any_order(order: list[str], kind: type) -> None:
    names = {"a": "a", "b": "b", "c": "c"} if kind is str else {"a": 10, "b": 20, "c": 30}
    labels = [names[each] for each in ["a", "b", "c", "a"]]
    table = pd.DataFrame({"a": 0.1, "b": 0.7, "c": 0.2}, index=range(N))[order]
    # A CSV file has names as texts, also of classes that are numbers.
    table.columns = [str(names[each]) for each in order]
    for classes in (None, [names[each] for each in order]):
        monitor = sf.StopMonitor(range(N), sf.Budget(100))
        monitor.update(probabilities=table, classes=classes, indices=range(4), labels=labels)
        monitor.update(probabilities=table[table.columns[::-1]], indices=range(4), labels=labels)
        assert set(monitor.check(3).predictions.tolist()) == {names["b"]}
    with pytest.raises(InvalidValueError, match="leave classes out, or give the order of the columns"):
        monitor.update(
            probabilities=table, classes=[names[each] for each in order[::-1]], indices=range(4), labels=labels
        )


def test_a_named_column_without_a_label_is_a_class() -> None:
    table = pd.DataFrame({"c": 0.6, "a": 0.1, "b": 0.3}, index=range(N))
    monitor = sf.StopMonitor(range(N), sf.Budget(100))
    monitor.update(probabilities=table, indices=[0, 1], labels=["a", "b"])
    assert set(monitor.check(3).predictions.tolist()) == {"c"}


@pytest.mark.parametrize("names", [[0, 1], ["0", "1"], ["p_no", "p_yes"]])
def test_columns_with_other_names_have_the_order_of_classes(names: list[Any]) -> None:
    table = pd.DataFrame(np.tile([0.9, 0.1], (N, 1)), columns=names)
    for labels, first in (([0, 1], 1), (["no", "yes"], "yes")):
        monitor = sf.StopMonitor(range(N), sf.Budget(100))
        monitor.update(probabilities=table, classes=labels[::-1], indices=[0, 1], labels=labels)
        monitor.update(probabilities=table, indices=[0, 1], labels=labels)
        assert set(monitor.check(3).predictions.tolist()) == {first}


@pytest.mark.parametrize(
    ("predictions", "labels", "options", "share"),
    [
        (np.arange(N) % 2, np.arange(N) % 2, {}, True),
        (np.arange(N) % 2, np.arange(N) * 0.5, {}, False),
        (np.arange(N) * 0.5, np.arange(N) % 2, {}, False),
        ((np.arange(N) % 2).astype(float), np.arange(N) % 2, {"classes": [0, 1]}, True),
        (np.arange(N) % 2 == 0, np.arange(N) % 2 == 0, {}, True),
        (["a", "b"] * (N // 2), ["a", "b"] * (N // 2), {}, True),
    ],
)
def test_predictions_are_classes_or_numbers(
    predictions: Any, labels: Any, options: dict[str, Any], share: bool
) -> None:
    monitor = sf.StopMonitor(range(N), sf.Budget(100))
    monitor.update(predictions=predictions, indices=range(10), labels=labels[:10], **options)
    assert monitor.share == share


TABLE = np.tile([0.7, 0.3], (N, 1))


def with_cell(value: float) -> Any:
    table = TABLE.copy()
    table[7, 1] = value
    return table


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"update takes one of model, probabilities=, predictions= or correct=, and none came"),
        ({"probabilities": TABLE, "predictions": Y, "labels": Y[:9]}, "and 2 came"),
        ({"probabilities": TABLE[:-1], "labels": Y[:9]}, r"a row for each of the N = 400 items.*\(399, 2\)"),
        ({"probabilities": TABLE[:, 0], "labels": Y[:9]}, r"shape N x C.*\(400,\)"),
        ({"probabilities": with_cell(np.nan), "labels": Y[:9]}, r"probabilities must be finite.*nan at \(7, 1\)"),
        ({"probabilities": with_cell(0.5), "labels": Y[:9]}, r"each row must add up to 1; row 7 is \[0.7, 0.5\]"),
        ({"probabilities": with_cell(-0.7), "labels": Y[:9]}, "no number below 0"),
        ({"probabilities": [["a"]] * N, "labels": Y[:9]}, "something that is not a number"),
        ({"probabilities": TABLE, "labels": ["a"] * 9}, r"2 columns, and the labels are of 1 classes; give classes="),
        ({"probabilities": TABLE, "labels": Y[:9], "classes": ["left"]}, "classes names 1 columns"),
        ({"probabilities": TABLE, "labels": Y[:9], "classes": ["left"] * 2}, "classes names a class twice"),
        ({"probabilities": TABLE, "labels": ["x"] * 9, "classes": ["a", "b"]}, "no label is of a class"),
        ({"predictions": Y[:-1], "labels": Y[:9]}, r"one for each of the 400 items.*\(399,\)"),
        ({"predictions": TABLE, "labels": Y[:9]}, r"give class probabilities as probabilities=.*correct="),
        ({"predictions": with_cell(np.inf)[:, 1], "labels": Z[:9]}, r"finite numbers, and holds inf at 7"),
        ({"predictions": (Z, -np.ones(N)), "labels": Z[:9]}, "a standard deviation below 0"),
        ({"predictions": (Z, np.ones(3)), "labels": Z[:9]}, r"\(mean, std\).*\(400,\) and \(3,\)"),
        ({"predictions": np.full(N, "0"), "labels": [0] * 9}, "no label is of a class that the given table predicts"),
        ({"predictions": Y, "labels": Y[:9], "classes": ["left"]}, "'right', which is not one of classes="),
        ({"predictions": Y}, "update requires labels"),
        ({"correct": {0: True}, "labels": Y[:9]}, "correct takes the place of labels"),
        ({"correct": {99: True}}, "correct holds item 99, which is not in indices"),
        ({"correct": {0: "yes"}}, r"correct of item 0 must be True .* or False, not 'yes'"),
        ({"correct": [True]}, "one for each of the 9 items"),
        ({"model": GaussianNB().fit(X, Y), "labels": Y[:9], "classes": ["left", "right"]}, "leave it out with a model"),
        ({"model": lambda rows: 1.0, "labels": Y[:9]}, "the function must return a prediction for each of the 400"),
        ({"model": lambda rows: TABLE * 2.0, "labels": Y[:9]}, "the result of the function must hold no number"),
    ],
)
def test_what_cannot_be_used_is_named_and_changes_nothing(options: dict[str, Any], message: str) -> None:
    monitor = sf.StopMonitor(range(N), sf.Budget(100))
    with pytest.raises(InvalidValueError, match=message):
        monitor.update(indices=range(9), **options)
    assert monitor.left == N
    assert not monitor.steps


def test_labels_may_come_from_a_generator() -> None:
    monitor = sf.StopMonitor(range(N), sf.Budget(100))
    monitor.update(predictions=Y, indices=range(9), labels=(label for label in Y[:9].tolist()))
    assert monitor.left == N - 9


def test_arguments_of_the_wrong_kind() -> None:
    monitor = sf.StopMonitor(range(N), sf.Budget(100))
    with pytest.raises(InvalidTypeError, match="give class probabilities as probabilities="):
        monitor.update(TABLE, range(9), Y[:9])
    with pytest.raises(InvalidTypeError, match="classes must be a list of classes, not 'left'"):
        monitor.update(probabilities=TABLE, classes="left", indices=range(9), labels=Y[:9])
    with pytest.raises(InvalidValueError, match="update requires indices"):
        monitor.update(probabilities=TABLE, labels=Y[:9])
    with pytest.raises(InvalidValueError, match=r"positive is about classes.*leave positive out"):
        sf.StopMonitor(range(N), sf.Budget(9), positive="left").update(correct={}, indices=range(9))
    monitor = run("correct")
    with pytest.raises(InvalidValueError, match=r"before were with correct=, and this one with labels"):
        monitor.update(predictions=Y, indices=ITEMS[:LAST], labels=Y[ITEMS[:LAST]])
    with pytest.raises(InvalidValueError, match=r"recall_of is about a class, and correct= says only"):
        monitor.check(10, recall_of=True)
    with pytest.raises(InvalidValueError, match=r'of="all" is about final labels'):
        monitor.check(at_most=0.2, of="all")
    with pytest.raises(InvalidValueError, match=r'of="all" is about final labels'):
        monitor.decision(at_most=0.2, of="all")
    check = monitor.check(10)
    with pytest.raises(InvalidValueError, match="an answer of the check must be True"):
        check.tell(["left"] * 10)
    with pytest.raises(SufficeError, match="update was given predictions"):
        run("probabilities").suspicious_labels()


@pytest.mark.parametrize(
    ("kind", "rule", "message"),
    [
        ("probabilities", sf.ErrorStability(0.5), "predictions have none; give the model"),
        ("probabilities", sf.IntrinsicStopping(), r"probabilities of one model.*Rules that work: .*StabilizingPred"),
        (
            "classes",
            sf.LabelWorth(),
            r"give probabilities=.*Rules that work: .*StabilizingPred.*Budget.*ErrorGuarantee",
        ),
        ("classes", sf.EntropyMax(), r"pool_max_entropy: .*give probabilities="),
        ("numbers", sf.EntropyMax(), r"the given table predicts numbers.*Rules that work: .*LabelWorth"),
        ("numbers", sf.MaxVariance(0.1), r"pool_variance: the given numbers do not tell.*LabelWorth"),
        ("correct", sf.LabelWorth(), r"says only whether predictions were right.*Rules that work: Budget, Pool"),
    ],
)
def test_a_rule_that_needs_more_names_it_and_rules_that_work(kind: str, rule: Criterion, message: str) -> None:
    with pytest.raises(MissingInputError, match=message):
        run(kind, rule)


def test_numbers_are_judged_by_the_rule_of_their_model() -> None:
    ours = run("numbers", sf.LabelWorth())
    theirs = sf.StopMonitor(X, sf.LabelWorth(), seed=0, estimate_time=0.0)
    for n in ROUNDS:
        theirs.update(regressor(n), ITEMS[:n], Z[ITEMS[:n]], random=ITEMS[:n:2])
    assert ours.verdicts == theirs.verdicts
    assert ours.error_estimate(tolerance=0.5) == theirs.error_estimate(tolerance=0.5)


@pytest.mark.parametrize("kind", ["classes", pytest.param("correct", marks=pytest.mark.slow)])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(kind: str) -> None:
    inside = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        inputs = rng.normal(size=(800, 3))
        labels = np.where(inputs[:, 0] + rng.choice([0.3, 1.0]) * rng.normal(size=800) > 0.0, "b", "a")
        order, told = rng.permutation(800), dict[int, bool]()
        monitor = sf.StopMonitor(range(800), sf.Budget(999))
        for n in (20, 40, 60, 80, 100):
            predicted = GaussianNB().fit(inputs[order[:n]], labels[order[:n]]).predict(inputs)
            by_kind: dict[str, Any] = {"predictions": predicted, "labels": labels[order[:n]]}
            if kind == "correct":
                by_kind = {"correct": told}
            monitor.update(indices=order[:n], random=order[:n], **by_kind)
            new = order[n : n + 20].tolist()
            told = {item: bool(predicted[item] == labels[item]) for item in new}
        rest = order[100:]
        estimate = monitor.error_estimate()
        inside.append(estimate.low <= (predicted[rest] != labels[rest]).mean() <= estimate.high)
    assert 0.8 <= np.mean(inside) <= 1.0
