"""Settings are chosen on other data sets, each of which counts the same."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from suffice_research.compare.scoring import ChosenSettings, choose

SEEDS = st.integers(0, 10**6)


def several(seed: int, sets: int = 4, settings: int = 5, ratios: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {f"set {k}": rng.exponential(size=(int(rng.integers(1, 6)), settings, ratios)) for k in range(sets)}


def test_by_hand() -> None:
    # Means over runs: a [[1, 5], [2, 2]], b [[5, 1], [4, 3]]; over both: [[3, 3], [3, 2.5]].
    regrets = {
        "a": np.array([[[0.0, 4.0], [2.0, 2.0]], [[2.0, 6.0], [2.0, 2.0]]]),
        "b": np.array([[[5.0, 1.0], [4.0, 3.0]]]),
        "judged": np.array([[[0.0, 0.0], [9.0, 9.0]]]),
    }
    assert choose(regrets, "judged", default=0) == ChosenSettings(one=1, per_cost=(0, 1))
    # At the first ratio both are as good: the default is taken, whichever it is.
    assert choose(regrets, "judged", default=1) == ChosenSettings(one=1, per_cost=(1, 1))
    # For a: b and the judged one, [[2.5, 0.5], [6.5, 6]].
    assert choose(regrets, "a", default=1) == ChosenSettings(one=0, per_cost=(0, 0))


def test_a_data_set_counts_the_same_however_many_runs_it_has() -> None:
    few = {"a": np.array([[[0.0], [1.0]]]), "b": np.array([[[3.0], [1.0]]]), "judged": np.zeros((1, 2, 1))}
    many = {**few, "a": np.repeat(few["a"], 50, axis=0)}
    assert choose(few, "judged", default=0) == choose(many, "judged", default=0) == ChosenSettings(1, (1,))


def test_ties_go_to_the_default_and_else_to_the_strictest() -> None:
    regrets = {"a": np.array([[[1.0], [0.5], [0.5], [0.5 * (1 + 1e-15)], [2.0]]]), "judged": np.zeros((1, 5, 1))}
    assert choose(regrets, "judged", default=2).one == 2
    assert choose(regrets, "judged", default=0) == ChosenSettings(3, (3,))
    nothing_to_choose = {"a": np.zeros((2, 5, 1)), "judged": np.zeros((1, 5, 1))}
    assert choose(nothing_to_choose, "judged", default=0) == ChosenSettings(0, (0,))


def test_without_another_data_set_the_default_is_taken() -> None:
    assert choose({"judged": np.arange(6.0).reshape(1, 3, 2)}, "judged", default=2) == ChosenSettings(2, (2, 2))


@given(SEEDS, SEEDS, st.integers(0, 4))
def test_the_set_that_is_judged_has_no_say(seed: int, other: int, default: int) -> None:
    regrets = several(seed)
    judged = "set 2"
    rng = np.random.default_rng(other)
    changed = {**regrets, judged: 100.0 * rng.exponential(size=(7, 5, 3))}
    assert choose(changed, judged, default=default) == choose(regrets, judged, default=default)
    # The others do: were it not so, the test above would show nothing.
    bribed = {**regrets, "set 0": np.where(np.arange(5)[:, None] == 4, -1e6, regrets["set 0"])}
    assert choose(bribed, judged, default=default) == ChosenSettings(4, (4, 4, 4))


@given(SEEDS, st.integers(0, 4))
def test_the_choice_is_that_of_a_plain_loop(seed: int, default: int) -> None:
    regrets = several(seed)
    found = choose(regrets, "set 1", default=default)
    others = [values for name, values in regrets.items() if name != "set 1"]

    def cost(setting: int, ratio: int) -> float:
        return float(np.mean([np.mean([run[setting][ratio] for run in values]) for values in others]))

    assert found.one == min(range(5), key=lambda s: sum(cost(s, r) for r in range(3)))
    assert found.per_cost == tuple(min(range(5), key=lambda s: cost(s, r)) for r in range(3))


@given(SEEDS)
def test_the_order_of_data_sets_and_runs_does_not_matter(seed: int) -> None:
    regrets = several(seed)
    backwards = {name: values[::-1] for name, values in reversed(regrets.items())}
    assert choose(backwards, "set 0", default=1) == choose(regrets, "set 0", default=1)
