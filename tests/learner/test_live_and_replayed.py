"""A rule says the same while labels come and on the record of the run; what it does not ask for is not computed."""

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import expit

import suffice as sf
from suffice.criteria import Criterion, Verdict
from suffice.engines.tracked_rows import FollowedVariance
from suffice.errors import InvalidTypeError, InvalidValueError, MissingInputError
from suffice.learner.prepare import provided_fields
from suffice.learner.step_inputs import (
    ClassInputCollector,
    ExpectedErrors,
    LaplacePredictor,
    SampledPredictor,
)
from suffice.models import BayesianLogistic, BayesianRidge, DropoutNetwork, GaussianProcess
from suffice.numerics import Floats
from suffice.session.recorded_steps import joined_rows
from suffice.trace import Trace
from suffice_research.compare.judging import guarantees
from tests.every_rule import OF_CLASSES_ONLY, OF_OPTIMISATION, OF_SCREENING, RULES, LossRule
from tests.thoroughness import some

WORDS = np.array(["ham", "spam", "eggs", "toast"])


def numbers(m: int = 70) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(m, 2))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=m)


def words(m: int = 70, k: int = 2, *, seed: int = 0) -> tuple[Floats, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 2))
    score = 2.0 * X @ np.random.default_rng(1).normal(size=(2, k)) + rng.gumbel(size=(m, k))
    return X, WORDS[score.argmax(axis=1)]


def network() -> Any:
    pytest.importorskip("torch", reason="torch is not installed")
    return DropoutNetwork(hidden=(5,), epochs=5, warm_epochs=2, samples=10, learning_rate=0.03, device="cpu")


class Case(NamedTuple):
    """A model with its pool; ``exact`` where a run in blocks has the same last digits as one step by step."""

    model: Callable[[], Any]
    data: tuple[Floats, Any]
    held: tuple[Floats, Any]
    rules: frozenset[str]
    steps: int = 21
    exact: bool = True


NUMBERS = frozenset(RULES) - OF_CLASSES_ONLY - OF_OPTIMISATION
CLASSES = frozenset(RULES) - OF_SCREENING - OF_OPTIMISATION - {"MaxVariance"}
CASES: dict[str, Case] = {
    "process": Case(GaussianProcess, numbers(), numbers(12), NUMBERS, exact=False),
    "ridge": Case(lambda: BayesianRidge(1.0, 10.0), numbers(), numbers(12), NUMBERS, exact=False),
    "logistic": Case(BayesianLogistic, words(), words(12, seed=5), CLASSES),
    "three classes": Case(lambda: BayesianLogistic(alpha=1.0), words(k=3), words(12, 3, seed=5), CLASSES),
    "network": Case(network, words(k=3), words(12, 3, seed=5), CLASSES - {"PacBayes"}, 6),
}
COSTS = 1.0 + np.arange(70) % 3
# The fast tests try each rule with one of its cases and sizes, which take turns; the slow ones try the rest.
RUNS = {
    name: [
        (case, batch)
        for case, made in CASES.items()
        if name in made.rules
        for batch in ((1, 3) if case != "network" else (2,))
    ]
    for name in sorted(RULES)
}
each_run = pytest.mark.parametrize(
    ("case", "name", "batch"),
    [
        pytest.param(case, name, batch, marks=() if k == j % len(runs) else pytest.mark.slow)
        for j, (name, runs) in enumerate(RUNS.items())
        for k, (case, batch) in enumerate(runs)
    ],
)
each_part = pytest.mark.parametrize(
    ("case", "names"),
    [
        pytest.param(
            case,
            sorted(made.rules)[part::4],
            marks=() if i % 4 == part else pytest.mark.slow,
            id=f"{case}-part {part + 1}",
        )
        for i, (case, made) in enumerate(CASES.items())
        for part in range(4)
        if case != "network"
    ],
)


class Clock:
    """Seconds that pass at every look."""

    def __init__(self) -> None:
        self.now = -1.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def begun(case: str, rule: Criterion, *, initial: int = 10) -> sf.ActiveLearner:
    made = CASES[case]
    X, y = made.data
    learner = sf.ActiveLearner(
        made.model(),
        X,
        criterion=rule,
        initial=initial,
        seed=3,
        stop_set=12,
        validation=made.held,
        costs=COSTS,
        clock=Clock(),
    )
    first = learner.ask(initial)
    learner.tell(first, y[first])
    return learner


def told(learner: sf.ActiveLearner, y: Any, sizes: Sequence[int]) -> list[Verdict]:
    found = []
    for size in sizes:
        items = learner.ask(size)
        learner.tell(items, y[items])
        found.append(learner.rule_verdict)
    return found


def alike(one: list[Verdict], other: list[Verdict], *, exact: bool) -> None:
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        if exact:
            assert a == b
        else:
            assert (a.stop, a.ready, a.rule, a.n_labelled) == (b.stop, b.ready, b.rule, b.n_labelled)
            assert (a.value is None) == (b.value is None)
            if a.value is not None:
                assert a.value == pytest.approx(b.value, rel=1e-6, abs=1e-9)


@lru_cache
def record_of(case: str, batch: int) -> Trace:
    """One record for all rules: that no rule minds what else was recorded is tested apart."""
    made = CASES[case]
    rules = [rule for name, rule in RULES.items() if name in made.rules]
    return sf.simulate(
        made.model(),
        *made.data,
        initial=10,
        seed=3,
        stop_set=12,
        steps=made.steps // batch,
        batch=batch,
        record=rules,
        validation=made.held,
        costs=COSTS,
    )


@pytest.mark.one_in(3)
@each_run
def test_live_is_replayed(case: str, name: str, batch: int) -> None:
    made, rule = CASES[case], RULES[name]
    learner = begun(case, rule)
    live = told(learner, made.data[1], [batch] * (made.steps // batch))
    assert live == learner.trace().replay(rule)
    if name == "TimeLimit":
        # The clock of a simulation is another one.
        return
    trace = record_of(case, batch)
    assert trace.indices.tolist() == learner.trace().indices.tolist()
    alike(live, trace.replay(rule), exact=made.exact)


def test_the_rules_are_all_there_are_and_say_both() -> None:
    found = {
        rule.__name__
        for name in sf.criteria.__all__
        if isinstance(rule := getattr(sf.criteria, name), type) and issubclass(rule, Criterion)
    }
    assert {type(rule).__name__ for rule in RULES.values()} == found - {"Criterion"}
    for name, rule in RULES.items():
        runs = [record_of(case, 1) for case, made in CASES.items() if name in made.rules and case != "network"]
        said = {verdict.stop for trace in runs for verdict in trace.replay(rule) if name != "TimeLimit"}
        # A loop without a positive class does not feed the rules of screening, and none those of optimisation.
        assert said == {True, False} or name in OF_SCREENING | OF_OPTIMISATION | {"TimeLimit"}, name


@pytest.mark.parametrize("case", CASES)
def test_which_rules_a_loop_can_feed(case: str) -> None:
    """Those, and no others; a rule that it cannot feed is refused by the name of what is missing."""
    made = CASES[case]
    for name, rule in RULES.items():
        if name in made.rules:
            sf.ActiveLearner(made.model(), made.data[0], criterion=rule, validation=made.held)
            continue
        with pytest.raises(MissingInputError) as raised:
            sf.ActiveLearner(made.model(), made.data[0], criterion=rule, validation=made.held)
        assert any(need in str(raised.value) for need in rule.needs())


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", CASES)
def test_a_record_for_one_rule_is_that_for_all(case: str) -> None:
    made = CASES[case]
    whole = record_of(case, 1)
    for name in ("LabelWorth", "HeldOutPlateau"):
        settings: dict[str, Any] = {"initial": 10, "seed": 3, "stop_set": 12, "steps": made.steps, "costs": COSTS}
        alone = sf.simulate(made.model(), *made.data, record=RULES[name], validation=made.held, **settings)
        provided = provided_fields(made.model(), validated=True)
        assert alone.recorded == (RULES[name].reads() & provided) | {"kl_new_old", "kl_old_new"}
        one, all_of_them = (trace.replay(RULES[name]) for trace in (alone, whole))
        if name == "LabelWorth":
            assert one == all_of_them
        # Labels in blocks and one after the other differ in their last digits.
        assert [(each.stop, each.ready) for each in one] == [(each.stop, each.ready) for each in all_of_them]
        assert [each.value or 0.0 for each in one] == pytest.approx(
            [each.value or 0.0 for each in all_of_them], rel=1e-9, abs=1e-12
        )


SIZES = (1, 3, 2, 1, 4, 1, 2)


def require_replayed_at_any_size(case: str, names: Iterable[str]) -> None:
    """What is recorded of the items of a step is filled up to the largest, and taken off again for a rule."""
    made = CASES[case]
    for name in names:
        rule = RULES[name]
        learner = begun(case, rule)
        live = told(learner, made.data[1], SIZES)
        trace = learner.trace()
        assert trace.n_labelled.tolist() == (10 + np.cumsum(SIZES)).tolist()
        assert live == trace.replay(rule), name


@pytest.mark.one_in(3)
@each_part
def test_steps_of_different_sizes(case: str, names: list[str]) -> None:
    require_replayed_at_any_size(case, names)


def test_steps_of_different_sizes_of_a_network() -> None:
    require_replayed_at_any_size("network", ("SelectedAccuracy", "UncertaintyConvergence"))


def test_what_is_filled_up_is_taken_off(tmp_path: Path) -> None:
    learner = begun("three classes", RULES["SelectedAccuracy"])
    told(learner, CASES["three classes"].data[1], SIZES)
    trace = learner.trace()
    assert trace.measures["selected_probabilities"].shape[:2] == trace.measures["selected_labels"].shape == (7, 4)
    assert (trace.measures["selected_labels"] == -2).sum() == 4 * 7 - sum(SIZES)
    trace.save(tmp_path / "run.npz")
    for known in (trace, Trace.load(tmp_path / "run.npz")):
        for step, size in zip(known.steps(), SIZES, strict=True):
            assert step.selected_labels is not None
            assert step.selected_probabilities is not None
            assert step.selected_labels.shape == (size,)
            assert step.selected_probabilities.shape == (size, 3)
            assert step.selected_probabilities.sum(axis=1) == pytest.approx(np.ones(size))
            # All that a rule is told is what a step may hold.
            sf.Step(n_labelled=step.n_labelled, selected_probabilities=step.selected_probabilities)


@pytest.mark.one_in(3)
@each_part
def test_skips_and_corrections_in_between(case: str, names: list[str]) -> None:
    y = CASES[case].data[1].copy()
    for name in names:
        rule = RULES[name]
        learner = begun(case, rule)
        given = told(learner, y, [1, 2, 1, 1])
        learner.skip(learner.ask(3))
        given += told(learner, y, [3, 1])
        item = learner.labelled[11]
        wrong = 4.0 if y.dtype.kind == "f" else next(label for label in np.unique(y) if label != y[item])
        # A correction is no step: the verdict on the last one is another now.
        learner.correct(item, wrong)
        given[-1] = learner.rule_verdict
        given += told(learner, y, [1, 1, 2])
        learner.skip(learner.ask())
        given += told(learner, y, [1])
        learner.correct(item, y[item])
        given[-1] = learner.rule_verdict
        given += told(learner, y, [1] * 6)
        assert learner.trace().replay(rule) == given, name
        assert learner.rule_verdict == given[-1], name
        assert learner.verdicts[-1] == given[-1], name


def test_skips_and_corrections_of_a_network() -> None:
    y = CASES["network"].data[1]
    for name in ("ErrorStability", "PredictedFChange", "MinExpectedError"):
        learner = begun("network", RULES[name])
        given = told(learner, y, [2, 1])
        learner.skip(learner.ask(3))
        given[-1] = learner.correct(learner.labelled[2], "eggs")
        given += told(learner, y, [1, 3])
        assert learner.trace().replay(RULES[name]) == given, name


def test_what_is_told_after_a_correction_is_that_of_the_corrected_labels() -> None:
    X, y = numbers()
    right = begun("ridge", RULES["ErrorStability"])
    slip = begun("ridge", RULES["ErrorStability"])
    told(right, y, [1] * 8)
    wrong = y.copy()
    wrong[right.labelled[14]] += 9.0
    told(slip, wrong, [1] * 8)
    assert slip.labelled == right.labelled
    assert slip.verdict.value != pytest.approx(right.verdict.value, rel=1e-3)
    slip.correct(slip.labelled[14], y[slip.labelled[14]])
    assert slip.verdict.value == pytest.approx(right.verdict.value, rel=1e-9)
    assert [v.value for v in slip.verdicts] == pytest.approx([v.value for v in right.verdicts], rel=1e-9)
    assert X.shape == (70, 2)


# A class that is met late


def order_with_late_classes() -> tuple[Floats, Any]:
    """Two classes at first; "eggs", in the alphabet before both, is met at item 14, "toast" at item 25."""
    X, y = words(60, 4, seed=2)
    early, eggs, toast = (np.flatnonzero(np.isin(y, names)) for names in (["ham", "spam"], ["eggs"], ["toast"]))
    mixed = [*early[:14], eggs[0], *early[14:20], *eggs[1:5], toast[0]]
    rest = [i for i in range(60) if i not in mixed]
    return X[[*mixed, *rest]], y[[*mixed, *rest]]


def live_on_late_classes(rule: Criterion, *, steps: int = 30) -> tuple[list[Verdict], Trace]:
    X, y = order_with_late_classes()
    learner = sf.ActiveLearner(
        BayesianLogistic(alpha=1.0), X, criterion=rule, initial=np.arange(8), acquisition="order", stop_set=30
    )
    learner.tell(np.arange(8), y[:8])
    return told(learner, y, [1] * steps), learner.trace()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", some(sorted(CLASSES - {"HeldOutPlateau", "TimeLimit"}), every=4))
def test_live_is_replayed_where_classes_are_met_late(name: str) -> None:
    live, trace = live_on_late_classes(RULES[name])
    assert [known.step for known in trace.relearned] == [6, 17]
    assert trace.replay(RULES[name]) == live


@pytest.mark.parametrize(
    "name", ["PredictedFChange", "KappaCertificate", "StabilizingPredictions", "SelectedAccuracy", "MaxConfidence"]
)
def test_a_run_that_ended_before_a_class_was_met_gives_the_same_verdicts(name: str) -> None:
    X, y = order_with_late_classes()
    settings: dict[str, Any] = {"initial": np.arange(8), "acquisition": "order", "stop_set": 30, "record": RULES[name]}
    short, long = (
        sf.simulate(BayesianLogistic(alpha=1.0), X, y, steps=steps, **settings).replay(RULES[name]) for steps in (6, 30)
    )
    assert long[:6] == short


TABLES = ("selected_probabilities", "selected_labels", "stop_probabilities")


def test_a_step_of_the_record_is_the_step_that_was_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither items of larger steps nor classes met later are in it, whatever the record is filled up with."""
    rule, seen = sf.SelectedAccuracy() | sf.StabilizingPredictions(), []
    plain = type(rule).judge

    def noting(self: Any, step: sf.Step) -> Verdict:
        seen.append(step)
        return plain(self, step)

    monkeypatch.setattr(type(rule), "judge", noting)
    X, y = order_with_late_classes()
    learner = sf.ActiveLearner(
        BayesianLogistic(alpha=1.0), X, criterion=rule, initial=np.arange(8), acquisition="order", stop_set=30
    )
    learner.tell(np.arange(8), y[:8])
    live, sizes = [], (1, 3, 2, 1, 4, 1, 5, 1, 2)
    for size in sizes:
        told(learner, y, [size])
        live.append(seen[-1])
    trace = learner.trace()
    # Item 14 comes with the fourth step, item 25 with the eighth; what is selected is judged before its labels come.
    classes_before, classes = [2] * 4 + [3] * 4 + [4], [2] * 3 + [3] * 4 + [4] * 2
    there = {name: ~np.isnan(trace.measures[name]) for name in ("selected_probabilities", "stop_probabilities")}
    for table, rows, columns in (
        (there["selected_probabilities"], sizes, classes_before),
        (there["stop_probabilities"], [30] * 9, classes),
    ):
        assert table.shape == (9, max(rows), 4)
        for held, n, k in zip(table, rows, columns, strict=True):
            assert held[:n, :k].all()
            assert held.sum() == n * k
    trace.save(tmp_path / "run.npz")
    for known in (trace, Trace.load(tmp_path / "run.npz")):
        for was, now in zip(live, known.steps(), strict=True):
            for name in TABLES:
                np.testing.assert_array_equal(getattr(now, name), getattr(was, name), err_msg=name)
            # It is what a step may hold.
            sf.Step(n_labelled=now.n_labelled, **{name: getattr(now, name) for name in TABLES})


def test_guarantees_along_a_run_with_classes_met_late() -> None:
    """A class that is not there yet has no probability, so its items are wrong throughout; the bounds hold."""
    X, y = order_with_late_classes()
    stop = sf.StopSet.draw(60, 30)
    settings: dict[str, Any] = {"initial": np.arange(8), "steps": 30, "acquisition": "order", "stop_set": stop}
    trace = sf.simulate(BayesianLogistic(alpha=1.0), X, y, record="all", **settings)
    found = {each.bound: each for each in guarantees(trace, y, stop)}
    assert list(found) == ["ErrorStability paper", "ErrorStability tight", "PacBayes"]
    assert all(each.held == 1.0 for each in found.values())


def with_a_class_corrected_away(rule: Criterion) -> sf.ActiveLearner:
    """The one label of "eggs", which is among the first labels, was wrong: it is "ham"."""
    X, y = order_with_late_classes()
    learner = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, criterion=rule, initial=np.arange(8), stop_set=30)
    learner.tell(np.arange(15), y[:15])
    assert sorted(set(y[:15])) == ["eggs", "ham", "spam"]
    learner.tell(15, y[15])
    learner.correct(14, "ham")
    return learner


@pytest.mark.parametrize("name", some(sorted(CLASSES - {"HeldOutPlateau", "TimeLimit"}), every=3))
def test_a_class_that_is_corrected_away(name: str) -> None:
    y = order_with_late_classes()[1]
    learner = with_a_class_corrected_away(RULES[name])
    live = [learner.rule_verdict]
    # And it comes after all.
    for item, label in [
        *((item, y[item]) for item in (16, 17, 18)),
        (21, "eggs"),
        (22, "eggs"),
        (19, y[19]),
        (20, y[20]),
    ]:
        learner.tell(item, label)
        live.append(learner.rule_verdict)
    assert [verdict.n_labelled for verdict in live] == list(range(16, 24))
    assert learner.trace().replay(RULES[name]) == live


def test_a_class_that_is_corrected_away_keeps_its_column_without_probability() -> None:
    X, y = order_with_late_classes()
    learner = with_a_class_corrected_away(
        sf.SelectedAccuracy() | sf.PredictedFChange() | LossRule() | sf.IntrinsicStopping()
    )
    learner.tell([16, 17], y[16:18])
    model, items = learner.model, sf.StopSet.draw(60, 30).indices
    assert model.classes_.tolist() == ["ham", "spam"]
    trace = learner.trace()
    step = trace.steps()[-1]
    assert step.stop_probabilities is not None
    # "eggs" is the first in the alphabet and was met with the others.
    assert (step.stop_probabilities[:, 0] == 0.0).all()
    assert step.stop_probabilities[:, 1:] == pytest.approx(model.predict_proba(X[items]), abs=1e-3)
    assert step.selected_probabilities is not None
    assert (step.selected_probabilities[:, 0] == 0.0).all()
    assert step.selected_labels is not None
    assert step.selected_labels.tolist() == [["eggs", "ham", "spam"].index(label) for label in y[16:18]]
    # It comes after all: nearly ruled out, and in its own column again.
    learner.tell(21, "eggs")
    step = learner.trace().steps()[-1]
    assert step.selected_labels is not None
    assert step.selected_labels.tolist() == [0]
    assert step.selected_loss == pytest.approx(-np.log(1e-6))
    assert step.stop_probabilities is not None
    assert step.stop_probabilities == pytest.approx(learner.model.predict_proba(X[items]), abs=1e-3)
    assert (step.stop_probabilities[:, 0] > 0.0).all()


@pytest.mark.parametrize("met", [["spam", "ham"], ["spam", "ham", "eggs"]])
def test_the_one_class_that_is_left_keeps_its_column(met: list[str]) -> None:
    X, _ = words(k=3)
    learner = sf.ActiveLearner(
        BayesianLogistic(alpha=1.0), X, criterion=sf.SelectedAccuracy() | sf.PredictedFChange(), initial=6, stop_set=30
    )
    first = np.array(["spam"] * (7 - len(met)) + met[1:])
    learner.tell(np.arange(6), first)
    learner.tell(6, "spam")
    for item in np.flatnonzero(first != "spam"):
        learner.correct(item, "spam")
    learner.tell(7, "spam")
    assert learner.model.classes_.tolist() == ["spam"]
    step, items = learner.trace().steps()[-1], sf.StopSet.draw(70, 30).indices
    column = sorted(met).index("spam")
    assert step.selected_labels is not None
    assert step.selected_labels.tolist() == [column]
    assert step.stop_probabilities is not None
    # The logit is that of anything else.
    p = expit(-learner.model.decision_function(X[items]))
    assert step.stop_probabilities[:, column] == pytest.approx(p, abs=1e-3)


def test_what_a_classifier_said_of_pool_and_stop_set_stays_as_it_was_said() -> None:
    """The divergences are those of the corrected labels, from the start."""
    X, y = words()
    rule = sf.MinExpectedError(0.01) & sf.PredictedFChange() & sf.DropInConfidence() & sf.ErrorStability()
    slip, right = (
        sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, criterion=rule, initial=10, seed=3, stop_set=12)
        for _ in range(2)
    )
    wrong = y.copy()
    wrong[[2, 5, 12, 13]] = np.where(y[[2, 5, 12, 13]] == "ham", "spam", "ham")
    for learner, labels in ((slip, wrong), (right, y)):
        learner.tell(np.arange(10), labels[:10])
        for item in range(10, 18):
            learner.tell(item, labels[item])
    before = slip.trace()
    for item in (2, 5, 12, 13):
        slip.correct(item, y[item])
    after, same = slip.trace(), right.trace()
    said = {name for name in before.measures if name.startswith(("pool_", "stop_")) and name != "pool_size"}
    assert said == {"pool_risk", "stop_probabilities", "stop_confidence"}
    for name in said:
        np.testing.assert_array_equal(after.measures[name], before.measures[name], err_msg=name)
        assert (after.measures[name] != same.measures[name]).any(), name
    assert after.relearned[-1].kl_new_old == pytest.approx(same.kl_new_old, rel=1e-9)
    assert after.relearned[-1].kl_old_new == pytest.approx(same.kl_old_new, rel=1e-9)
    assert before.kl_new_old != pytest.approx(same.kl_new_old, rel=1e-3)
    # The rule judges anew what was said then and what is known now; the next step is that of the corrected labels.
    assert slip.verdicts == rule.copy().observe_all(after.steps())
    slip.tell(18, y[18])
    right.tell(18, y[18])
    for name in said:
        assert slip.trace().measures[name][-1] == pytest.approx(right.trace().measures[name][-1], rel=1e-6), name


def test_the_label_of_a_step_that_was_corrected_stays_as_it_was_told() -> None:
    X, y = words()
    learner = sf.ActiveLearner(BayesianLogistic(alpha=1.0), X, criterion=sf.SelectedAccuracy(), initial=10)
    learner.tell(np.arange(10), y[:10])
    learner.tell(10, "ham")
    learner.tell(11, y[11])
    learner.correct(10, "spam")
    told_then = learner.trace().steps()[0].selected_labels
    assert told_then is not None
    assert told_then.tolist() == [["ham", "spam"].index("ham")]


# What nobody asks for


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often each thing that costs something is done."""
    calls: dict[str, int] = {}

    def watch(owner: Any, name: str) -> None:
        plain = getattr(owner, name)
        key = f"{owner.__name__}.{name}"
        calls[key] = 0

        def counting(*args: Any, **options: Any) -> Any:
            calls[key] += 1
            return plain(*args, **options)

        monkeypatch.setattr(owner, name, counting)

    for owner, names in (
        (LaplacePredictor, ("probabilities", "votes", "gains")),
        (SampledPredictor, ("probabilities", "votes", "gains")),
        (FollowedVariance, ("__init__", "follow")),
        (sf.StopSet, ("draw",)),
    ):
        for name in names:
            watch(owner, name)
    return calls


@pytest.mark.one_in(4)
@pytest.mark.parametrize("rule", [sf.ErrorStability(0.1), sf.Budget(50), sf.TimeLimit(1e9) | sf.PoolFraction(1.0)])
@pytest.mark.parametrize("case", CASES)
def test_a_rule_that_needs_nothing_costs_nothing(case: str, rule: Criterion, counted: dict[str, int]) -> None:
    made = CASES[case]
    learner = begun(case, rule)
    told(learner, made.data[1], [1, 2, 1])
    trace = sf.simulate(made.model(), *made.data, steps=4, record=rule)
    assert set(counted.values()) == {0}
    for known in (trace, learner.trace()):
        assert set(known.recorded) - {"kl_new_old", "kl_old_new"} == rule.reads() - {"kl_new_old", "kl_old_new"}
        assert set(known.measures) - {"loss", "contributions"} == rule.reads() - {"kl_new_old", "kl_old_new"}


def test_nothing_is_recorded_unless_it_is_asked_for(counted: dict[str, int]) -> None:
    assert sf.simulate(BayesianLogistic(), *words(), steps=4, record=()).measures == {}
    assert sf.simulate(GaussianProcess(), *numbers(), steps=4, record=()).measures == {}
    assert set(counted.values()) == {0}


def test_only_what_is_asked_for_is_computed(counted: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    plain = LaplacePredictor.probabilities

    def noting(self: LaplacePredictor, items: Any) -> Floats:
        rows.append(len(items))
        return plain(self, items)

    monkeypatch.setattr(LaplacePredictor, "probabilities", noting)

    def done(rule: Criterion) -> set[str]:
        for key in counted:
            counted[key] = 0
        rows.clear()
        sf.simulate(BayesianLogistic(alpha=1.0), *words(), steps=3, record=rule, stop_set=12)
        return {key.partition(".")[2] for key, calls in counted.items() if calls}

    assert done(sf.MinExpectedError()) == {"probabilities"}
    assert rows == [59, 58, 57]
    assert done(sf.StabilizingPredictions()) == {"probabilities", "draw"}
    assert rows == [12] * 3
    assert done(sf.ClassificationChange()) == {"probabilities"}
    assert rows == [60, 59, 58, 57]
    assert done(sf.InformationGain()) == {"gains"}
    assert done(sf.MaxConfidence()) == {"probabilities"}
    assert rows == [1] * 3
    assert done(sf.PacBayes(0.1)) == {"probabilities"}
    assert rows == [11, 12, 13]
    assert done(sf.ExpectedCost(1.0, 1.0)) == {"probabilities", "draw"}
    assert rows == [12] * 3
    assert done(sf.ValidationSetAgreement()) == {"votes", "draw", "probabilities"}
    assert rows == [1] * 3


def test_a_number_is_not_followed_unless_it_is_asked_for(counted: dict[str, int]) -> None:
    sf.simulate(GaussianProcess(1.0, 0.1), *numbers(), steps=3, record="pool_gain")
    assert counted["FollowedVariance.__init__"] == 1
    assert counted["StopSet.draw"] == 0
    sf.simulate(GaussianProcess(1.0, 0.1), *numbers(), steps=3, record="expected_error")
    assert counted["FollowedVariance.__init__"] == 2
    assert counted["StopSet.draw"] == 1
    sf.simulate(GaussianProcess(1.0, 0.1), *numbers(), steps=3, record="selected_loss")
    assert counted["FollowedVariance.__init__"] == 2


def test_labels_of_the_validation_set_alone_are_counted_and_not_looked_at() -> None:
    trace = sf.simulate(BayesianLogistic(), *words(), steps=3, record="validation_labels", validation=words(9))
    assert trace.measures["validation_labels"].tolist() == [9, 9, 9]
    assert set(trace.measures) == {"validation_labels"}


def test_a_large_pool_is_looked_at_in_parts_that_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    for made in (CASES["logistic"], CASES["three classes"], CASES["network"]):
        settings: dict[str, Any] = {"initial": 12, "steps": 2, "stop_set": 25, "record": "all"}
        whole = sf.simulate(made.model(), *made.data, **settings)
        with monkeypatch.context() as patched:
            patched.setattr("suffice.learner.step_inputs._ROWS", 7)
            parts = sf.simulate(made.model(), *made.data, **settings)
        for name in set(whole.measures) - {"seconds"}:
            assert parts.measures[name] == pytest.approx(whole.measures[name], rel=1e-5, abs=1e-6), name


# What cannot be told


@pytest.mark.parametrize("model", [GaussianProcess(), BayesianRidge()])
def test_a_rule_for_classes_is_refused_by_a_loop_of_regression(model: Any) -> None:
    words_of_it = (
        "criterion requires stop_probabilities, which a loop of regression does not provide; it provides n_labelled"
    )
    X, y = numbers()
    with pytest.raises(MissingInputError, match=words_of_it):
        sf.ActiveLearner(model, X, criterion=sf.StabilizingPredictions())
    with pytest.raises(MissingInputError, match=words_of_it):
        sf.simulate(model, X, y, record=sf.StabilizingPredictions())
    with pytest.raises(MissingInputError, match="pool_max_entropy, selected_labels, selected_probabilities"):
        sf.ActiveLearner(model, X, criterion=(sf.EntropyMax() & sf.SelectedAccuracy()) | sf.Budget(5))


def test_a_rule_for_numbers_is_refused_by_a_loop_of_classification() -> None:
    with pytest.raises(
        MissingInputError, match="requires pool_variance, which a loop of classification does not provide"
    ):
        sf.ActiveLearner(BayesianLogistic(), words()[0], criterion=sf.MaxVariance())
    with pytest.raises(MissingInputError, match="requires kl_prior, train_error, which a loop of classification"):
        sf.ActiveLearner(network(), words()[0], criterion=sf.PacBayes(0.1))


@pytest.mark.parametrize("case", CASES)
def test_a_rule_on_a_validation_set_says_how_to_give_one(case: str) -> None:
    made = CASES[case]
    wanted = r"requires validation_error, validation_labels, .*Give a validation set: validation=\(X, y\)"
    with pytest.raises(MissingInputError, match=wanted):
        sf.ActiveLearner(made.model(), made.data[0], criterion=sf.HeldOutPlateau())
    with pytest.raises(MissingInputError, match=wanted):
        sf.simulate(made.model(), *made.data, record=sf.HeldOutPlateau())


def test_time_is_that_of_the_clock_given() -> None:
    X, y = numbers()
    times = itertools.chain([100.0], itertools.count(101.5, 0.5))
    learner = sf.ActiveLearner(
        GaussianProcess(1.0, 0.1), X, criterion=sf.TimeLimit(3.0), initial=5, clock=lambda: next(times)
    )
    learner.tell(np.arange(5), y[:5])
    live = told(learner, y, [1] * 5)
    assert [verdict.value for verdict in live] == [1.5, 2.0, 2.5, 3.0, 3.5]
    assert [verdict.stop for verdict in live] == [False, False, False, True, True]
    assert learner.trace().replay(sf.TimeLimit(3.0)) == live
    trace = sf.simulate(GaussianProcess(1.0, 0.1), X, y, steps=9, record=sf.TimeLimit(3.0))
    seconds = trace.measures["seconds"]
    assert (np.diff(seconds) >= 0.0).all()
    assert seconds[0] >= 0.0


def test_costs_are_those_of_the_items() -> None:
    X, y = numbers()
    trace = sf.simulate(GaussianProcess(1.0, 0.1), X, y, steps=6, batch=3, record=sf.CostLimit(9.0), costs=COSTS)
    bought = [[*trace.initial, *trace.indices[: step + 1].ravel()] for step in range(6)]
    assert trace.measures["cost"].tolist() == [COSTS[items].sum() for items in bought]
    same = sf.simulate(GaussianProcess(1.0, 0.1), X, y, steps=6, batch=3, record=sf.CostLimit(9.0))
    assert same.measures["cost"].tolist() == same.n_labelled.tolist()
    same = sf.simulate(GaussianProcess(1.0, 0.1), X, y, steps=6, batch=3, record="cost", costs=2.5)
    assert same.measures["cost"].tolist() == (2.5 * same.n_labelled).tolist()
    for bad in (-1.0, np.nan, np.ones(3), "much", np.full(70, np.inf)):
        with pytest.raises(InvalidValueError, match="costs must be one number, or one for each of the 70 items"):
            sf.ActiveLearner(GaussianProcess(), X, costs=bad)


@pytest.mark.parametrize("bad", [5, words()[0], (words()[0],), (words()[0], words()[1], 3), "half"])
def test_a_validation_set_is_a_pair(bad: Any) -> None:
    with pytest.raises(InvalidValueError, match="validation must be a pair"):
        sf.ActiveLearner(BayesianLogistic(), words()[0], criterion=sf.HeldOutPlateau(), validation=bad)


def test_a_validation_set_must_fit() -> None:
    X, y = words()
    for held, wrong in (
        ((X[:, :1], y), "the X of validation has 1 features and X_pool has 2"),
        ((X, y[:5]), "the y of validation must hold one label for each of the 70 rows"),
        ((X, None), "the X of validation and the y of validation belong together"),
        ((X[:0], y[:0]), "the X of validation must be a table of at least one row"),
    ):
        with pytest.raises(InvalidValueError, match=wrong):
            sf.ActiveLearner(BayesianLogistic(), X, criterion=sf.HeldOutPlateau(), validation=held)
    strangers = (X, np.full(70, "tea"))
    with pytest.raises(InvalidValueError, match="no class of validation has been labelled yet"):
        sf.simulate(BayesianLogistic(), X, y, steps=2, record=sf.HeldOutPlateau(), validation=strangers)


@pytest.mark.parametrize("record", ["pool_risks", "everything", ["pool_risk", "n_labelled"], "kl"])
def test_what_cannot_be_recorded_is_named(record: Any) -> None:
    with pytest.raises(InvalidValueError, match="record must be 'all', stopping rules, or fields of a Step"):
        sf.simulate(BayesianLogistic(), *words(), steps=2, record=record)


@pytest.mark.parametrize("record", [5, [5], [None]])
def test_what_is_no_record_at_all_is_named_too(record: Any) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match="record"):
        sf.simulate(BayesianLogistic(), *words(), steps=2, record=record)


@pytest.mark.parametrize("name", ["pool_risk", "cost", "selected_labels"])
def test_what_is_watched_has_names_of_its_own(name: str) -> None:
    settings: dict[str, Any] = {"steps": 2, "watch": lambda model: {name: 9.0}}
    with pytest.raises(InvalidValueError, match=f"watch gives {name}, which is recorded already; give it another name"):
        sf.simulate(BayesianLogistic(alpha=1.0), *words(), record=name, **settings)
    # What is not recorded is a name like any other.
    trace = sf.simulate(BayesianLogistic(alpha=1.0), *words(), record="stop_confidence", **settings)
    assert trace.measures[name].tolist() == [9.0, 9.0]


def test_what_is_watched_of_a_network_has_names_of_its_own() -> None:
    with pytest.raises(InvalidValueError, match="loss"):
        sf.simulate(network(), *words(), steps=1, watch=lambda model: {"loss": 9.0})


@pytest.mark.parametrize("case", ["process", "ridge", "logistic"])
def test_an_audit_takes_the_remedy_that_it_names(case: str) -> None:
    made = CASES[case]
    with pytest.raises(MissingInputError, match=r"Give a validation set: validation=\(X, y\)"):
        sf.audit(made.model(), *made.data, record=sf.HeldOutPlateau())
    trace = sf.audit(made.model(), *made.data, record=sf.HeldOutPlateau(), validation=made.held)
    assert trace.recorded >= {"validation_error", "validation_labels"}
    assert len(trace.replay(sf.HeldOutPlateau())) == 60


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", ["process", "ridge", "logistic"])
@pytest.mark.parametrize("stop_set", [12, sf.StopSet(np.arange(40, 52), 70)])
def test_an_audit_tells_what_a_run_in_that_order_tells(case: str, stop_set: Any) -> None:
    made = CASES[case]
    settings: dict[str, Any] = {"record": "all", "stop_set": stop_set, "validation": made.held, "batch": 4}
    audited = sf.audit(made.model(), *made.data, **settings)
    run = sf.simulate(made.model(), *made.data, initial=np.arange(10), acquisition="order", **settings)
    assert audited.indices.tolist() == run.indices.tolist()
    assert set(audited.measures) == set(run.measures) >= {"expected_error", "validation_error"}
    for name in set(run.measures) - {"seconds"}:
        np.testing.assert_array_equal(audited.measures[name], run.measures[name], err_msg=name)


def test_the_stop_set_of_an_audit_is_the_one_given() -> None:
    X, y = words()
    stop = sf.StopSet(np.arange(40, 52), 70)
    trace = sf.audit(BayesianLogistic(alpha=1.0), X, y, record="stop_probabilities", stop_set=stop)
    p = BayesianLogistic(alpha=1.0).fit(X, y).predict_proba(X[40:52])
    assert trace.measures["stop_probabilities"][-1] == pytest.approx(p, abs=1e-3)
    with pytest.raises(InvalidValueError, match="stop_set must be a whole number, 1 or more, not 0"):
        sf.audit(BayesianLogistic(alpha=1.0), X, y, record="stop_probabilities", stop_set=0)


@pytest.mark.parametrize("case", ["process", "logistic"])
def test_a_run_without_a_step_has_no_verdict(case: str) -> None:
    made, rule = CASES[case], sf.InformationGain()
    assert begun(case, rule).trace().replay(rule) == []
    assert sf.simulate(made.model(), *made.data, steps=0, record=rule).replay(rule) == []


def test_fields_rules_and_several_of_them_can_be_recorded() -> None:
    X, y = words()

    def measured(record: Any) -> set[str]:
        return set(sf.simulate(BayesianLogistic(alpha=1.0), X, y, steps=2, record=record).measures)

    assert measured("pool_risk") == {"pool_risk"}
    assert measured(["pool_risk", sf.SelectedAccuracy(), "kl_new_old"]) == {
        "pool_risk",
        "selected_probabilities",
        "selected_labels",
        "classes_seen",
    }
    composed = sf.EntropyMax() | (sf.ErrorStability() & sf.CostLimit(3.0))
    assert measured(composed) == {"pool_max_entropy", "cost", "classes_seen", "pool_size"}
    assert measured([]) == set()


class TestTheStopSetOfALoop:
    def test_it_is_drawn_with_the_seed(self) -> None:
        X, y = words()
        settings: dict[str, Any] = {"steps": 3, "record": "stop_probabilities", "initial": np.arange(10)}
        one, same, other = (
            sf.simulate(BayesianLogistic(alpha=1.0), X, y, seed=seed, stop_set=20, **settings) for seed in (1, 1, 2)
        )
        told_of = [trace.measures["stop_probabilities"] for trace in (one, same, other)]
        np.testing.assert_array_equal(told_of[0], told_of[1])
        assert (told_of[0] != told_of[2]).any()
        drawn = sf.StopSet.draw(70, 20, seed=1)
        given = sf.simulate(BayesianLogistic(alpha=1.0), X, y, seed=1, stop_set=drawn, **settings)
        np.testing.assert_array_equal(told_of[0], given.measures["stop_probabilities"])

    def test_it_is_all_of_a_small_pool(self) -> None:
        trace = sf.simulate(BayesianLogistic(alpha=1.0), *words(), steps=2, record="stop_probabilities")
        assert trace.measures["stop_probabilities"].shape == (2, 70, 2)
        assert trace.measures["stop_probabilities"].dtype == np.float16

    def test_drawing_it_does_not_change_the_picks(self) -> None:
        X, y = words()
        for acquisition in ("random", "entropy"):
            plain, told_of = (
                sf.simulate(BayesianLogistic(alpha=1.0), X, y, steps=9, acquisition=acquisition, record=record)
                for record in ((), "all")
            )
            assert plain.indices.tolist() == told_of.indices.tolist()
            assert plain.kl_new_old.tolist() == told_of.kl_new_old.tolist()

    def test_that_of_another_pool_is_refused(self) -> None:
        with pytest.raises(InvalidValueError, match="drawn from a pool of 71 items, and this one has 70"):
            sf.ActiveLearner(
                BayesianLogistic(), words()[0], criterion=sf.PredictedFChange(), stop_set=sf.StopSet.draw(71, 5)
            )
        for bad in (-3, 1.5, "many"):
            with pytest.raises(InvalidValueError, match="stop_set must be a whole number, 1 or more"):
                sf.ActiveLearner(BayesianLogistic(), words()[0], criterion=sf.PredictedFChange(), stop_set=bad)  # type: ignore[arg-type]

    def test_one_without_items_is_refused(self) -> None:
        with pytest.raises(InvalidValueError, match="stop_set must be a whole number, 1 or more, not 0"):
            sf.ActiveLearner(BayesianLogistic(), words()[0], criterion=sf.PredictedFChange(), stop_set=0)
        with pytest.raises(InvalidValueError, match="stop_set must be a whole number, 1 or more, not 0"):
            sf.simulate(BayesianLogistic(), *words(), steps=2, record="stop_confidence", stop_set=0)


# Rows of several steps


def test_rows_are_joined_as_they_are_where_they_fit() -> None:
    assert joined_rows([np.array([1.0]), np.array([2.0, 3.0])]).tolist() == [1.0, 2.0, 3.0]
    table = joined_rows([np.ones((2, 3, 2), dtype=np.float16), np.zeros((1, 3, 2), dtype=np.float16)])
    assert (table.shape, table.dtype) == ((3, 3, 2), np.dtype(np.float16))


def test_what_is_not_there_is_marked_items_and_classes_alike() -> None:
    one, two = np.full((1, 1, 2), 0.5), np.full((2, 3, 3), 1.0 / 3.0)
    joined = joined_rows([one, two])
    assert joined.shape == (3, 3, 3)
    assert joined[0, 0, :2].tolist() == [0.5, 0.5]
    assert np.isnan(joined[0, 0, 2])
    assert np.isnan(joined[0, 1:]).all()
    assert not np.isnan(joined[1:]).any()
    labels = joined_rows([np.array([[1]]), np.array([[0, 1, -1]])])
    assert labels.tolist() == [[1, -2, -2], [0, 1, -1]]


def test_what_was_joined_can_be_joined_again() -> None:
    parts = [np.full((1, 1, 2), 0.5), np.full((1, 2, 2), 0.5), np.full((1, 4, 3), 1.0 / 3.0)]
    at_once, in_turn = joined_rows(parts), joined_rows([joined_rows(parts[:2]), parts[2]])
    for whole in (at_once, in_turn):
        assert np.isnan(whole[:, :, 0]).sum(axis=1).tolist() == [3, 2, 0]
        assert np.isnan(whole[:, 0]).tolist() == [[False, False, True], [False, False, True], [False] * 3]
        assert np.nansum(whole, axis=2)[0, 0] == 1.0
    np.testing.assert_array_equal(at_once, in_turn)


def test_nothing_is_said_of_items_that_were_taken() -> None:
    """What is counted is the pool that is left; labelled items change their class for nobody."""

    class Flipping:
        def __init__(self) -> None:
            self.turn = 0

        def probabilities(self, rows: Any) -> Floats:
            p = np.where(np.arange(6) < 3, 0.9, 0.2) if self.turn % 2 else np.full(6, 0.9)
            return np.asarray(np.column_stack([p, 1.0 - p])[rows])

        def votes(self, rows: Any, members: int) -> Any:
            return np.zeros((members, len(rows)), dtype=int)

        def gains(self, rows: Any) -> Floats:
            return np.asarray(rows, dtype=np.float64)

        def errors(self, rows: Any) -> ExpectedErrors:
            raise AssertionError(f"nobody asked for the errors of {rows}")

    from suffice.learner.step_inputs import StepInputs

    wanted = StepInputs(frozenset({"pool_changes", "pool_gain", "expected_error"}), stop=np.array([0, 5]))
    model, collector = Flipping(), ClassInputCollector(wanted, 6)
    collector.begin(model, 3)
    model.turn = 1
    collector.take(np.array([5]))
    sure, doubting = (-p * np.log(p) - (1.0 - p) * np.log(1.0 - p) for p in (0.9, 0.2))
    mixed, alike = pytest.approx(0.5 * (sure + doubting)), pytest.approx(sure)
    assert collector.after(model, []) == {"pool_changes": 2, "pool_gain": 4.0, "expected_error": mixed}
    collector.take(np.array([3, 4]))
    model.turn = 2
    assert collector.after(model, []) == {"pool_changes": 0, "pool_gain": 2.0, "expected_error": alike}
    collector.take(np.array([0, 1, 2]))
    assert collector.after(model, []) == {"pool_changes": 0, "pool_gain": 0.0, "expected_error": alike}
