"""Random labels among the chosen ones: how many, where, from which items, and where they are recorded."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import suffice as sf
from suffice.acquisition import InOrder
from suffice.errors import InvalidValueError
from suffice.learner.backend import ItemSelection, acquisition_and_share, backend_type
from suffice.models import BayesianLogistic, BayesianRidge, GaussianProcess

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.1 * RNG.normal(size=120)
CLASSES = np.where(Y > 0.0, "yes", "no")
CASES = [
    pytest.param(GaussianProcess(1.5, 0.1), Y, "variance", id="process"),
    pytest.param(BayesianRidge(1.0, 10.0), Y, "variance", id="ridge"),
    pytest.param(BayesianLogistic(1.0), CLASSES, "entropy", id="classes"),
    pytest.param(GaussianProcess(1.5, 0.1), Y, "k-centre", id="k-centre"),
    pytest.param(GaussianProcess(1.5, 0.1), Y, "order", id="order"),
]


class FirstItems:
    """Picks the first items that are left, as a backend would."""

    def __init__(self, size: int) -> None:
        self._order = InOrder(size)

    def propose(self, most: int) -> Any:
        return self._order.propose(most)

    def batch(self, size: int) -> Any:
        return self._order.batch(size)

    def learn(self, indices: Any) -> None:
        self._order.take(indices)


def selection(share: float, size: int = 50, seed: int = 2) -> tuple[ItemSelection, FirstItems]:
    """A selection with item 0 labelled, whose other picks are the first unlabelled items."""
    backend: Any = FirstItems(size)
    backend.learn(np.array([0]))
    found = ItemSelection(backend, size, share, np.random.default_rng(seed))
    found.begin(np.array([0]))
    return found, backend


@given(share=st.floats(0.0, 1.0), labels=st.integers(1, 40), batch=st.integers(1, 7))
def test_the_share_is_kept_to_within_one_label(share: float, labels: int, batch: int) -> None:
    (mixed, backend), random, taken = selection(share), 0, 0
    while taken < labels:
        picks = mixed.batch(batch) if batch > 1 else mixed.propose(labels - taken)
        assert len(set(picks.indices.tolist())) == len(picks.indices) == len(picks.random)
        backend.learn(picks.indices)
        mixed.take(picks.indices)
        random, taken = random + int(picks.random.sum()), taken + len(picks.indices)
        assert abs(random - share * taken) < 1.0 + 1e-6
    assert taken >= labels


@given(share=st.floats(0.0, 1.0), batch=st.integers(1, 9))
def test_every_item_is_picked_once_to_the_end_of_the_pool(share: float, batch: int) -> None:
    (mixed, backend), taken = selection(share, 23), [0]
    while len(taken) < 23:
        picks = mixed.batch(batch)
        assert len(picks.indices) == min(batch, 23 - len(taken))
        backend.learn(picks.indices)
        mixed.take(picks.indices)
        taken += picks.indices.tolist()
    assert sorted(taken) == list(range(23))


def test_the_next_random_item_is_any_unlabelled_one_with_equal_probability() -> None:
    """Chi-squared test: the fifth label among 12 items of which the acquisition has taken 4."""
    counts: Counter[int] = Counter()
    for seed in range(700):
        mixed, backend = selection(0.2, 12, seed)
        for _ in range(4):
            picks = mixed.propose(1)
            backend.learn(picks.indices)
            mixed.take(picks.indices)
        found = mixed.propose(1)
        assert found.random.all()
        counts[int(found.indices[0])] += 1
    rest = range(5, 12)
    assert sorted(counts) == list(rest)
    expected = 700 / len(rest)
    # The 99.9 % point of the chi-squared distribution with 6 degrees of freedom.
    assert sum((counts[item] - expected) ** 2 / expected for item in rest) < 22.46


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("model", "y", "acquisition"), CASES)
@pytest.mark.parametrize("batch", [1, 7])
def test_a_learner_and_a_simulation_record_the_same_random_items(
    model: Any, y: Any, acquisition: str, batch: int
) -> None:
    trace = sf.simulate(model, X, y, steps=30 // batch, batch=batch, acquisition=acquisition, random_share=0.25, seed=3)
    learner = sf.ActiveLearner(model, X, acquisition=acquisition, random_share=0.25, seed=3)
    learner.tell(first := learner.ask(10), y[first])
    for _ in range(30 // batch):
        items = learner.ask(batch)
        assert np.array_equal(items, learner.ask(batch))
        learner.tell(items, y[items])
    found = learner.trace()
    assert np.array_equal(found.indices, trace.indices)
    assert np.array_equal(found.random_items, trace.random_items)
    assert learner.random_items == trace.random_items.tolist()
    assert trace.random_items[:10].tolist() == trace.initial.tolist()
    assert len(trace.random_items) == 10 + (30 // batch) * batch // 4
    assert np.array_equal(trace.is_random.ravel(), (np.arange(trace.indices.size) + 1) % 4 == 0)
    assert trace.about["random_share"] == found.about["random_share"] == 0.25


def test_without_a_share_nothing_is_random_but_the_initial_items_and_picks_are_as_before() -> None:
    plain = sf.simulate(GaussianProcess(1.5, 0.1), X, Y, steps=20, acquisition="variance")
    none = sf.simulate(GaussianProcess(1.5, 0.1), X, Y, steps=20, acquisition="variance", random_share=0.0)
    assert np.array_equal(plain.indices, none.indices)
    assert plain.random_items.tolist() == plain.initial.tolist()
    assert not plain.is_random.any()
    assert "random_share" not in plain.about
    given_first = sf.simulate(GaussianProcess(1.5, 0.1), X, Y, steps=2, initial=[5, 6], acquisition="variance")
    assert len(given_first.random_items) == 0


def test_the_caller_may_say_which_labels_were_random() -> None:
    learner = sf.ActiveLearner(BayesianRidge(1.0, 1.0), X, acquisition="order", initial=[0, 1])
    learner.tell([0, 1], Y[[0, 1]], random=[True, False])
    learner.tell(7, Y[7], random=True)
    learner.tell(8, Y[8])
    assert learner.random_items == [0, 7]
    with pytest.raises(InvalidValueError, match="random must be True, False, or one of them for each of the 1 items"):
        learner.tell(9, Y[9], random=[True, False])
    assert learner.labelled == [0, 1, 7, 8]


def test_a_random_item_that_is_skipped_is_not_asked_for_again() -> None:
    learner = sf.ActiveLearner(BayesianRidge(1.0, 1.0), X, acquisition="order", random_share=1.0, initial=[0])
    learner.tell(0, Y[0])
    item = learner.ask()
    learner.skip(item)
    other = learner.ask()
    assert item != other
    learner.tell(other, Y[other])
    assert learner.random_items == [int(other[0])]


def test_the_items_survive_saving(tmp_path: Any) -> None:
    trace = sf.simulate(BayesianRidge(1.0, 1.0), X, Y, steps=20, acquisition="variance", random_share=0.5)
    trace.save(tmp_path / "run.npz")
    loaded = sf.Trace.load(tmp_path / "run.npz")
    assert np.array_equal(loaded.random_items, trace.random_items)
    assert loaded.random_items.dtype == np.intp


@pytest.mark.parametrize("share", [-0.1, 1.5, np.nan, "a fifth", True])
def test_a_wrong_share_is_named(share: Any) -> None:
    with pytest.raises(InvalidValueError, match="random_share must be a number from 0 to 1, not"):
        sf.simulate(BayesianRidge(1.0, 1.0), X, Y, steps=1, random_share=share)
    with pytest.raises(InvalidValueError, match="random_share"):
        sf.ActiveLearner(BayesianRidge(1.0, 1.0), X, random_share=share)


def test_a_named_acquisition_is_used_alone_unless_a_share_is_given() -> None:
    class Other(backend_type(BayesianRidge(1.0, 1.0))):  # type: ignore[misc]
        default_acquisition, default_random_share = "order", 0.3

    assert acquisition_and_share(Other, None, None) == ("order", 0.3)
    assert acquisition_and_share(Other, "variance", None) == ("variance", 0.0)
    assert acquisition_and_share(Other, None, 0.1) == ("order", 0.1)
    assert acquisition_and_share(Other, "variance", 0.1) == ("variance", 0.1)


def test_labels_of_the_random_acquisition_are_random() -> None:
    trace = sf.simulate(BayesianRidge(1.0, 1.0), X, Y, steps=20, acquisition="random")
    assert trace.is_random.all()
    assert len(trace.random_items) == 30
    learner = sf.ActiveLearner(BayesianRidge(1.0, 1.0), X, acquisition="random")
    learner.tell(first := learner.ask(10), Y[first])
    learner.tell(item := learner.ask(), Y[item])
    assert learner.random_items == [*first.tolist(), int(item[0])]
