"""The same labels give the same decision, whatever object holds them.

The same labels, costs, random draws, model and features are fed to an ActiveLearner, a StopMonitor, a project, and a
simulated run. Because these objects share code, some histories are written out by hand below.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import suffice as sf
from suffice.criteria import Criterion, Step, Verdict
from suffice.learner import ActiveLearner, StopMonitor
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from suffice.project.project_learner import ProjectLearner
from suffice.project.settings import Settings
from suffice.project.state import Answer
from suffice.project.status_summary import decision_of
from suffice.session.decision import Decision
from tests.thoroughness import crossed, some, thorough

INITIAL = 10
RNG = np.random.default_rng(5)
X = RNG.normal(size=(240, 3))
CLASSES = np.where(X[:, 0] + 0.8 * X[:, 1] + 0.4 * RNG.normal(size=240) > 0.0, "right", "left")
NUMBERS = np.sin(X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=240)


@dataclass(frozen=True)
class Case:
    """A model by its name in a project, the rule, the target error, and a model with fixed hyper-parameters."""

    model: str
    rule: Criterion
    at_most: float | None = None
    fixed: Any = None

    @property
    def labels(self) -> Any:
        return CLASSES if self.model == "logistic" else NUMBERS

    def estimator(self) -> Any:
        return self.settings().estimator() if self.fixed is None else clone(self.fixed)

    def settings(self) -> Settings:
        classes = ("left", "right") if self.model == "logistic" else ()
        task: Any = "classification" if classes else "regression"
        names, rule = ("a", "b", "c"), self.rule.state_dict()
        return Settings("same", task, classes, "y", "table", names, None, self.model, rule, at_most=self.at_most)


PROCESS = GaussianProcess(length_scale=1.5, noise=0.05)
RIDGE = BayesianRidge(alpha=1.0, beta=5.0)
CASES = {
    "classes, default rule": Case("logistic", sf.LabelWorth()),
    "classes, dear labels, target": Case("logistic", sf.LabelWorth(mistake_cost=0.3), 0.1),
    "classes, cheap labels, target": Case("logistic", sf.LabelWorth(mistake_cost=8.0), 0.05),
    "classes, the paper's rule": Case("logistic", sf.ErrorStability(0.3)),
    "classes, predictions": Case("logistic", sf.StabilizingPredictions(0.9) | sf.Budget(60), 0.2),
    "process, default rule": Case("gp", sf.LabelWorth(), fixed=PROCESS),
    "process, cheap labels, target": Case("gp", sf.LabelWorth(mistake_cost=5.0), 0.4, fixed=PROCESS),
    "process that learns its kernel": Case("gp", sf.LabelWorth(mistake_cost=5.0), 0.4),
    "process, the paper's rule": Case("gp", sf.ErrorStability(0.2), 0.4),
    "ridge, dear labels": Case("ridge", sf.LabelWorth(mistake_cost=0.2), fixed=RIDGE),
    "ridge that learns its noise": Case("ridge", sf.LabelWorth(mistake_cost=0.5)),
    "ridge, the paper's rule": Case("ridge", sf.ErrorStability(0.1)),
}


def shown(decision: Decision) -> tuple[dict[str, Any], str]:
    """The numbers of a decision to six digits, and its sentences."""
    numbers = decision.as_dict()
    # Rounding differs between incremental and complete fits, so a forecast may differ by a label.
    for name in ("forecast", "error_then", "corrected", "reason", "plan"):
        numbers.pop(name, None)
    plan = decision.plan
    numbers["plan"] = None if plan is None else [plan.target, plan.pool, plan.n_labelled, plan.check_now]
    return rounded(numbers), str(replace(decision, forecast=None, error_then=None, reason=""))


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value


def by_learner(case: Case, order: Sequence[int], random: Sequence[bool]) -> Iterator[tuple[Decision, ActiveLearner]]:
    learner = ActiveLearner(
        case.estimator(), X, criterion=case.rule, acquisition="order", initial=INITIAL, random_share=0.0, seed=0
    )
    for item, drawn in zip(order, random, strict=True):
        learner.tell(item, case.labels[item], random=drawn)
        yield learner.decision(case.at_most), learner


def by_project(case: Case, order: Sequence[int], random: Sequence[bool]) -> Iterator[Decision]:
    learner = ProjectLearner(case.settings(), X)
    answers = [
        Answer(item, label if isinstance(label, str) else float(label), random=drawn)
        for item, label, drawn in zip(order, case.labels[list(order)].tolist(), random, strict=True)
    ]
    for n in range(1, len(answers) + 1):
        learner.follow(answers[:n])
        yield decision_of(learner.learning_status(), case.settings(), n, size=len(X))


@pytest.mark.no_cover
@pytest.mark.parametrize("name", some(list(CASES), every=3))
def test_the_same_labels_give_the_same_decision(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case, labels = CASES[name], 70 if thorough() else 50
    if case.fixed is not None:
        monkeypatch.setattr(Settings, "estimator", lambda _: clone(case.fixed))
    # A run chooses the labels; the others get the same ones.
    trace = sf.simulate(case.estimator(), X, case.labels, steps=labels - INITIAL, seed=3, decide=case.rule,
                        at_most=case.at_most, random_share=0.2)  # fmt: skip
    order = [*trace.initial.tolist(), *trace.indices.tolist()]
    random = np.isin(order, trace.random_items).tolist()
    recorded = {made.decision.n_labelled: made.decision for made in trace.decisions}
    monitor = StopMonitor(X, case.rule, seed=0)
    of_project = by_project(case, order, random)
    compared, stops = 0, []
    for n, (decision, learner) in enumerate(by_learner(case, order, random), start=1):
        in_project = next(of_project)
        if n < INITIAL:
            assert decision.answer == in_project.answer == "too early"
            continue
        rows = order[:n]
        drawn = [item for item, flag in zip(rows, random, strict=False) if flag]
        monitor.update(learner.model, rows, case.labels[rows], drawn)
        by_monitor = monitor.decision(case.at_most)
        if learner.verdict.stop:
            stops.append(n)
        if n == INITIAL:
            # A learner applies its rule from the first label after the initial ones on.
            continue
        expected = shown(decision)
        assert shown(in_project) == expected, n
        if case.fixed is not None or case.model == "logistic" or case.rule.needs() <= {"kl_new_old", "kl_old_new"}:
            assert shown(by_monitor) == expected, n
        else:
            # A monitor sees each model once. Other loops apply the rule again to all steps under new hyper-parameters,
            # so that its averages differ for some labels after these were learned, here at 40 labels.
            assert rounded(by_monitor.error) == rounded(decision.error), n
            assert n < 60 or by_monitor.answer == decision.answer, n
        if n in recorded:
            compared += 1
            assert shown(recorded[n])[0]["answer"] == expected[0]["answer"], n
            assert recorded[n].since == decision.since
            assert recorded[n].error == pytest.approx(decision.error, rel=1e-5)
    assert compared
    last = trace.decisions[-1]
    assert last.ends or last.decision.n_labelled == labels
    if case.at_most is None:
        # A run ends where a learner of the same labels first says stop.
        assert [last.decision.n_labelled] == (stops[:1] if last.ends else [labels])


# Histories by hand. The rule LabelWorth compares the value of a label with its cost, 1. The values are given; the model
# is nearly always right, so that a stop is enough.

STARTED = 40
EASY = np.where(X[:, 0] > 0.0, "right", "left")
EASY_NUMBERS = 3.0 * X[:, 0] + X[:, 1] + 0.01 * np.random.default_rng(6).normal(size=240)

HISTORIES: dict[str, tuple[list[float], list[str], list[int | None]]] = {
    # A stop stands at 1.2 times the cost.
    "a stop that stands": ([1.4, 0.9, 1.2, 1.1], ["keep going", "enough", "enough", "enough"], [None, 42, 42, 42]),
    # Twice the cost at two steps withdraws it, and the next stop is dated anew.
    "a withdrawn stop": ([0.9, 2.0, 2.0, 0.9], ["enough", "enough", "keep going", "enough"], [41, 41, None, 44]),
    "one high value": ([0.9, 2.9, 1.0, 2.9, 1.4], ["enough"] * 5, [41] * 5),
    "a very high value": ([0.9, 3.1, 0.9], ["enough", "keep going", "enough"], [41, None, 43]),
    # Exactly one and a half times the cost does not withdraw it.
    "at the limit": ([0.9, 1.5, 1.5, 1.6, 1.6], [*["enough"] * 4, "keep going"], [41, 41, 41, 41, None]),
    "two stops of one": ([2.0, 1.0, 0.5, 1.4, 0.9], ["keep going", *["enough"] * 4], [None, 42, 42, 42, 42]),
}


@pytest.mark.no_cover
@pytest.mark.parametrize(("name", "model"), crossed(HISTORIES, ["logistic", "ridge"], every=2))
def test_histories_by_hand(name: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    values, answers, since = HISTORIES[name]
    given = {STARTED + 1 + k: value for k, value in enumerate(values)}

    def judge(self: sf.LabelWorth, step: Step) -> Verdict:
        value = given[step.n_labelled]
        return self.verdict(step, stop=value <= 1.0, value=value, threshold=1.0, reason=f"a label is worth {value}")

    monkeypatch.setattr(sf.LabelWorth, "judge", judge)
    case = Case(model, sf.LabelWorth())
    labels = EASY if model == "logistic" else EASY_NUMBERS
    order = np.random.default_rng(9).permutation(240)[: STARTED + len(values)].tolist()
    learner = ActiveLearner(case.estimator(), X, acquisition="order", initial=STARTED, seed=0)
    monitor, settings = StopMonitor(X, seed=0), replace(case.settings(), initial=STARTED)
    project = ProjectLearner(settings, X, compare=False)
    learned = [Answer(item, labels.tolist()[item], random=True) for item in order]
    learner.tell(order[:STARTED], labels[order[:STARTED]], random=True)
    monitor.update(learner.model, order[:STARTED], labels[order[:STARTED]], order[:STARTED])
    for k, (answer, stopped) in enumerate(zip(answers, since, strict=True)):
        n = STARTED + 1 + k
        learner.tell(order[n - 1], labels[order[n - 1]], random=True)
        monitor.update(learner.model, order[:n], labels[order[:n]], order[:n])
        project.follow(learned[:n])
        decisions = [
            learner.decision(compare=False),
            monitor.decision(compare=False),
            decision_of(project.learning_status(), settings, n, size=240),
        ]
        for decision in decisions:
            assert (decision.answer, decision.since, decision.n_labelled) == (answer, stopped, n)
            # A stop that stands is reported with its own comparison.
            reported = values[k] if values[k] <= 1.0 or stopped is None else values[stopped - STARTED - 1]
            assert decision.reason == f"a label is worth {reported}"
            # A withdrawn stop says why, until there is another one.
            changed = (answer == "keep going") and any(each is not None for each in since[:k])
            assert (decision.withdrawn is not None) == changed == ("The advice to stop at" in str(decision))
        assert learner.verdict == monitor.verdict
        assert learner.verdict.stop == (answer == "enough")
        assert learner.rule_verdict.stop == monitor.rule_verdict.stop == (values[k] <= 1.0)
        assert len({str(decision) for decision in decisions}) == 1


def test_a_run_decides_at_the_first_stop_that_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [1.4, 1.1, 0.9, 1.2, 0.8]
    given = {STARTED + 1 + k: value for k, value in enumerate(values)}

    def judge(self: sf.LabelWorth, step: Step) -> Verdict:
        value = given[step.n_labelled]
        return self.verdict(step, stop=value <= 1.0, value=value, threshold=1.0, reason=f"a label is worth {value}")

    monkeypatch.setattr(sf.LabelWorth, "judge", judge)
    trace = sf.simulate(BayesianLogistic(), X, EASY, initial=STARTED, steps=len(values), decide=sf.LabelWorth())
    (made,) = trace.decisions
    assert (made.step, made.ends, made.decision.answer) == (2, True, "enough")
    assert (made.decision.since, made.decision.n_labelled) == (STARTED + 3, STARTED + 3)
    assert made.decision.reason == "a label is worth 0.9"
