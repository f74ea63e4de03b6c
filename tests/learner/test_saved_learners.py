"""Saved states: a restored object continues with the same picks, decisions and guarantees; damage is refused."""

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import suffice as sf
from suffice.errors import InvalidValueError
from suffice.learner import ErrorGuarantee
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess
from tests.thoroughness import some

RNG = np.random.default_rng(2)
X = RNG.normal(size=(150, 3))
CLASSES = np.where(X[:, 0] + 0.3 * RNG.normal(size=150) > 0.0, "right", "left")
NUMBERS = X[:, 0] - np.sin(X[:, 1]) + 0.1 * RNG.normal(size=150)
OLDER: Final = Path(__file__).parent / "states_of_1_0_0rc1" / "monitors.json"

LEARNERS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "classes": (BayesianLogistic(), CLASSES, {}),
    "classes in order": (BayesianLogistic(), CLASSES, {"acquisition": "order", "random_share": 0.3}),
    "process": (GaussianProcess(), NUMBERS, {}),
    "process, variance": (GaussianProcess(1.0, 0.05), NUMBERS, {"acquisition": "variance"}),
    "ridge": (BayesianRidge(), NUMBERS, {"criterion": sf.ErrorStability(0.2)}),
    "pipeline": (
        make_pipeline(StandardScaler(), BayesianLogistic()),
        CLASSES,
        {"criterion": sf.StabilizingPredictions()},
    ),
    "naive Bayes": (GaussianNB(), CLASSES, {}),
    "screening": (BayesianLogistic(), CLASSES, {"positive": "right", "criterion": sf.RecallTest()}),
    "costs": (BayesianLogistic(), CLASSES, {"criterion": sf.CostLimit(500.0), "costs": np.arange(1.0, 151.0)}),
}


def steps(learner: sf.ActiveLearner, y: Any) -> Iterator[None]:
    """Labels, skips, corrections and checks; the learner can be saved after each of them."""
    first = learner.ask(10)
    learner.tell(first, y[first])
    yield
    for k in range(12):
        items = learner.ask(1 + k % 2)
        learner.tell(items, y[items])
        yield
    learner.skip(learner.ask(1))
    yield
    wrong = learner.labelled[5]
    learner.correct(wrong, "left" if y is CLASSES else 0.5)
    yield
    check = learner.check(8) if y is CLASSES else learner.check(8, tolerance=0.5)
    yield
    check.tell({int(item): y[item] for item in check.pending[:4]})
    yield
    check.cannot_label(check.pending[:1])
    yield
    check.tell({int(item): y[item] for item in check.pending})
    yield
    for _ in range(4):
        items = learner.ask(2)
        learner.tell(items, y[items])
        yield


def restored(learner: sf.ActiveLearner, name: str) -> sf.ActiveLearner:
    model = LEARNERS[name][0]
    return sf.ActiveLearner.from_state(json.loads(json.dumps(learner.state_dict())), model, X)


def assert_same(one: sf.ActiveLearner, other: sf.ActiveLearner, *, exact: bool) -> None:
    """The same labels, picks, verdicts and decisions; to the last bit if the model itself was saved."""
    assert other.labels == one.labels
    assert (other.random_items, other.skipped, other.left) == (one.random_items, one.skipped, one.left)
    assert len(other.verdicts) == len(one.verdicts)
    assert (other.verdict.stop, other.verdict.n_labelled) == (one.verdict.stop, one.verdict.n_labelled)
    close = exact or one.verdict.value is None
    assert other.verdict.value == (one.verdict.value if close else pytest.approx(one.verdict.value, rel=1e-6))
    ours, theirs = (learner.decision(0.2, compare=False) for learner in (one, other))
    assert (theirs.answer, theirs.since, theirs.n_labelled) == (ours.answer, ours.since, ours.n_labelled)
    assert theirs.error == (ours.error if exact else pytest.approx(ours.error, rel=1e-6))
    assert not exact or theirs == ours
    assert [check.record for check in other.checks] == [check.record for check in one.checks]
    assert [check.guarantee for check in other.checks] == [check.guarantee for check in one.checks]


@pytest.mark.no_cover
@pytest.mark.parametrize("name", some(list(LEARNERS), every=3))
def test_a_learner_can_be_saved_at_any_step(name: str) -> None:
    model, y, options = LEARNERS[name]
    whole = sf.ActiveLearner(copy.deepcopy(model), X, seed=4, **options)
    again = sf.ActiveLearner(copy.deepcopy(model), X, seed=4, **options)
    exact = name == "classes in order"
    holder: Any = Proxy(again)
    # The second learner makes the same calls, but is saved and restored after each of them.
    for _ in zip(steps(whole, y), steps(holder, y), strict=True):
        holder.learner = restored(holder.learner, name)
        assert_same(whole, holder.learner, exact=exact)


class Proxy:
    """A learner that can be replaced by a restored one while a program uses it; so can its open check."""

    def __init__(self, learner: sf.ActiveLearner) -> None:
        self.learner = learner

    def check(self, *args: Any, **options: Any) -> "ProxyCheck":
        self.learner.check(*args, **options)
        return ProxyCheck(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)


class ProxyCheck:
    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proxy.learner.checks[-1], name)


CONTINUE = """
import json, sys
import numpy as np
import suffice as sf
saved = json.load(sys.stdin)
X = np.array(saved["X"])
learner = sf.ActiveLearner.from_state(saved["state"], sf.models.BayesianLogistic(), X)
check = learner.checks[-1]
guarantee = check.tell({int(item): saved["y"][item] for item in check.pending})
picks = []
for _ in range(5):
    items = learner.ask(2)
    picks += items.tolist()
    learner.tell(items, [saved["y"][item] for item in items])
decision = learner.decision(0.1)
print(json.dumps([guarantee.to_dict(), picks, decision.answer, decision.n_labelled, decision.error.value]))
"""


def test_another_process_continues() -> None:
    learner = sf.ActiveLearner(BayesianLogistic(), X, random_share=0.3, seed=1)
    for size in (10, *[1] * 20):
        items = learner.ask(size)
        learner.tell(items, CLASSES[items])
    learner.correct(learner.labelled[3], "left")
    check = learner.check(12)
    check.tell({int(item): CLASSES[item] for item in check.pending[:5]})
    saved = json.dumps({"state": learner.state_dict(), "X": X.tolist(), "y": CLASSES.tolist()})
    run = subprocess.run([sys.executable, "-c", CONTINUE], input=saved, capture_output=True, text=True, check=True)
    guarantee, picks, answer, n_labelled, error = json.loads(run.stdout)
    proven = check.tell({int(item): CLASSES[item] for item in check.pending})
    assert proven is not None
    assert guarantee == proven.to_dict()
    ours: list[int] = []
    for _ in range(5):
        items = learner.ask(2)
        ours += items.tolist()
        learner.tell(items, CLASSES[items])
    decision = learner.decision(0.1)
    assert decision.error is not None
    assert (picks, answer, n_labelled) == (ours, decision.answer, decision.n_labelled)
    assert error == pytest.approx(decision.error.value, rel=1e-6)


def test_a_running_check_is_saved() -> None:
    rule = ErrorGuarantee(at_most=0.4)
    one = sf.ActiveLearner(BayesianLogistic(), X, criterion=rule, check_share=0.4, seed=2)
    for k in range(40):
        items = one.ask(10 if not k else 1)
        one.tell(items, CLASSES[items])
        if k == 20:
            other = sf.ActiveLearner.from_state(json.loads(json.dumps(one.state_dict())), BayesianLogistic(), X)
        if k > 20:
            assert other.ask(1).tolist() == items.tolist()
            other.tell(items, CLASSES[items])
    assert one.running_check is not None
    assert other.running_check is not None
    assert other.running_check.guarantee == one.running_check.guarantee
    assert other.running_check.sample == one.running_check.sample


def example_states() -> dict[str, tuple[dict[str, Any], Any]]:
    learner = sf.ActiveLearner(BayesianLogistic(), X, seed=4)
    program = steps(learner, CLASSES)
    for _ in range(17):
        next(program)
    monitor = sf.StopMonitor(X, seed=0)
    for n in (20, 30):
        monitor.update(LogisticRegression().fit(X[:n], CLASSES[:n]), range(n), CLASSES[:n], range(0, n, 2))
    monitor.check(5)
    return {
        "learner": (learner.state_dict(), lambda state: sf.ActiveLearner.from_state(state, BayesianLogistic(), X)),
        "monitor": (monitor.state_dict(), lambda state: sf.StopMonitor.from_state(state, X)),
    }


OTHERS: list[Any] = [None, [], {}, "x", -7, 0.5, [None]]
FOREIGN: list[Any] = [None, [], "state", 3, {}, {"format": "suffice-project-1"}]


def damaged(state: Any) -> Iterator[Any]:
    """The state with each of its parts removed, or replaced by something else."""
    if isinstance(state, dict):
        for key, value in state.items():
            yield {name: other for name, other in state.items() if name != key}
            for wrong in OTHERS:
                if value != wrong or type(value) is not type(wrong):
                    yield {**state, key: wrong}
            for part in damaged(value):
                yield {**state, key: part}
    elif isinstance(state, list) and state:
        yield state[:-1]
        yield [*state, state[-1]]
        for part in damaged(state[0]):
            yield [part, *state[1:]]


@pytest.mark.parametrize("name", ["learner", "monitor"])
def test_every_damaged_state_is_refused_in_a_sentence(name: str) -> None:
    state, restore = example_states()[name]
    count = 0
    for changed in damaged(json.loads(json.dumps(state))):
        with pytest.raises(InvalidValueError, match=r"^state (must be|was changed or damaged)"):
            restore(changed)
        count += 1
    assert count > 100
    for foreign in FOREIGN:
        with pytest.raises(InvalidValueError, match="state must be the result of"):
            restore(foreign)


def test_a_state_of_another_model_or_pool_is_refused() -> None:
    state, _ = example_states()["learner"]
    with pytest.raises(InvalidValueError, match="X_pool has 40 rows, and the learner was saved with 150"):
        sf.ActiveLearner.from_state(state, BayesianLogistic(), X[:40])
    with pytest.raises(InvalidValueError, match="was saved with BayesianLogistic"):
        sf.ActiveLearner.from_state(state, BayesianLogistic(alpha=3.0), X)
    with pytest.raises(InvalidValueError, match="seed is saved with the learner"):
        sf.ActiveLearner.from_state(state, BayesianLogistic(), X, seed=3)
    with pytest.raises(InvalidValueError, match="seed is a random generator"):
        sf.ActiveLearner(BayesianLogistic(), X, seed=np.random.default_rng(0)).state_dict()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["classes", "numbers"])
def test_monitors_of_1_0_0rc1_are_restored(name: str) -> None:
    saved = json.loads(OLDER.read_text(encoding="utf-8"))
    pool, expected = np.array(saved["X"]), saved["expected"][name]
    monitor = sf.StopMonitor.from_state(saved[name], pool)
    if name == "classes":
        # The formula of the default rule has changed since then. It is applied to the same steps.
        assert monitor.rule_verdict == monitor.trace().replay(sf.LabelWorth())[-1]
    else:
        assert monitor.rule_verdict.value == pytest.approx(expected["value"], rel=1e-9)
        assert monitor.rule_verdict.stop == expected["stop"]
    assert monitor.rule_verdict.n_labelled == expected["n"]
    assert monitor.verdict.stop == monitor.decision(compare=False).stop
    assert len(monitor.labels) == expected["labels"]
    # While a check is open, the decision is to complete it; 1.0.0rc1 said "too early" then.
    assert monitor.decision().answer == ("keep going" if name == "classes" else expected["answer"])
    # The estimate is computed by another formula since then, from the same predictions.
    estimate = monitor.error_estimate()
    assert estimate.low < estimate.value < estimate.high
    assert estimate.random_labels == monitor.random_labels > 0
    if name == "classes":
        assert monitor.guarantee is not None
        assert monitor.guarantee.guarantee.to_dict() == expected["guarantee"]
        assert monitor.checks[-1].record.to_dict() == expected["open"]
    labels = np.array(saved["y" if name == "classes" else "z"])
    n = 44 if name == "classes" else 36
    model = GaussianNB() if name == "classes" else BayesianRidge(alpha=1.0, beta=4.0)
    items = list(range(n))
    if name == "classes":
        pending = set(monitor.checks[-1].pending.tolist())
        items = [item for item in items if item not in pending]
    verdict = monitor.update(model.fit(pool[items], labels[items]), items, labels[items])
    assert monitor.rule_verdict.n_labelled == len(items)
    assert not verdict.stop or name != "classes"
    damaged_state = {key: value for key, value in saved[name].items() if key != "labels"}
    with pytest.raises(InvalidValueError, match=r"not a complete result of StopMonitor\.state_dict"):
        sf.StopMonitor.from_state(damaged_state, pool)
