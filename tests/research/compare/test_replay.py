"""Replays: the same stops as the plain replay of every setting, and no rule sees a later step."""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.criteria import Budget, Criterion, Step, Verdict
from suffice.errors import InvalidValueError, MissingInputError
from suffice.trace import Relearned, Trace
from suffice_research.compare.scoring import Replayer, Stops, first_stops
from suffice_research.recommendation.compared_rules import Entry, catalogue, for_trace
from tests.research.compare.compare_runs import REAL, first_steps, made_up_run, real_run
from tests.thoroughness import examples, some

ENTRIES = {entry.name: entry for entry in catalogue() if entry.make is not None}


def plain(trace: Trace, entry: Entry) -> Stops:
    """The first stop of every setting, by the replay that suffice offers to everybody."""
    found: Stops = {}
    for setting in entry.settings:
        said = [verdict.stop for verdict in trace.replay(entry.rule(setting))]
        found[setting] = said.index(True) if True in said else None
    return found


@lru_cache
def a_run(name: str) -> Trace:
    if name in REAL:
        return real_run(name)
    return made_up_run(seed=5, relearned=(8, 30) if name == "relearned" else ())


def entries_of(trace: Trace) -> list[Entry]:
    return [entry for entry in for_trace(trace) if entry.make is not None]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", some([*REAL, "made up", "relearned"], every=3))
def test_stops_are_those_of_a_plain_replay_at_every_setting(name: str) -> None:
    trace = a_run(name)
    replayer, fired = Replayer(trace), 0
    for entry in entries_of(trace):
        found = replayer.replay(entry).stops
        assert found == plain(trace, entry), entry.name
        fired += sum(stop is not None for stop in found.values())
    assert fired > 50


@pytest.mark.parametrize("name", some(sorted(name for name, entry in ENTRIES.items() if entry.sense), every=4))
@examples(6)
@given(seed=st.integers(0, 30), relearned=st.sets(st.integers(0, 39), max_size=3))
def test_one_replay_tells_what_all_would(name: str, seed: int, relearned: set[int]) -> None:
    trace = made_up_run(40, seed=seed, relearned=tuple(sorted(relearned)))
    assert first_stops(trace, ENTRIES[name]) == plain(trace, ENTRIES[name])


@lru_cache
def stops_of_all(name: str) -> dict[str, Stops]:
    replayer = Replayer(a_run(name))
    return {entry.name: replayer.replay(entry).stops for entry in entries_of(a_run(name))}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", some(["relearned", "made up", *reversed(REAL)], every=3))
@examples(10)
@given(data=st.data())
def test_no_rule_sees_a_later_step(name: str, data: Any) -> None:
    trace = a_run(name)
    cut = data.draw(st.integers(1, len(trace)))
    replayer = Replayer(first_steps(trace, cut))
    for entry in entries_of(trace):
        whole = stops_of_all(name)[entry.name]
        known_by_then = {key: stop if stop is not None and stop < cut else None for key, stop in whole.items()}
        assert replayer.replay(entry).stops == known_by_then, entry.name


@pytest.mark.parametrize("name", ["logistic", "relearned"])
def test_other_steps_after_a_stop_change_nothing(name: str) -> None:
    trace = a_run(name)
    half = len(trace) // 2
    # The second half is the first one backwards.
    order = np.minimum(np.arange(len(trace)), len(trace) - 1 - np.arange(len(trace)))
    changed = replace(
        trace,
        kl_new_old=trace.kl_new_old[order],
        kl_old_new=trace.kl_old_new[order],
        relearned=tuple(known for known in trace.relearned if known.step < half),
        measures={key: values[order] for key, values in trace.measures.items()},
    )
    for entry in entries_of(trace):
        before, after = stops_of_all(name)[entry.name], first_stops(changed, entry)
        early = [key for key, stop in before.items() if stop is not None and stop < half]
        assert [after[key] for key in early] == [before[key] for key in early], entry.name


def test_a_strict_setting_never_stops_before_a_loose_one() -> None:
    for found in (stops_of_all(name) for name in ("logistic", "made up")):
        for name, entry in ENTRIES.items():
            if entry.sense and name in found:
                steps = [1000 if stop is None else stop for stop in found[name].values()]
                assert steps == sorted(steps), name


def test_rules_are_left_as_they_were_and_time_is_told() -> None:
    rule = Budget(15)
    entry = Entry(name="one", kind="plain", make=lambda _: rule)
    found = Replayer(made_up_run()).replay(entry)
    assert found.stops == {None: 4}
    assert rule == Budget(15)
    assert 0.0 < found.seconds_per_step < 1.0


def test_steps_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    plain_steps = Trace.steps_seen

    def counted(self: Trace, *given: Any) -> Any:
        made.append(1)
        return plain_steps(self, *given)

    monkeypatch.setattr(Trace, "steps_seen", counted)
    replayer = Replayer(made_up_run(relearned=(8, 30)))
    for entry in ENTRIES.values():
        replayer.replay(entry)
    # All steps and the two pasts: once with divergences, once without.
    assert len(made) == 6


def test_a_divergence_that_is_infinite_stops_no_other_rule() -> None:
    trace = made_up_run()
    broken = replace(trace, kl_new_old=np.where(np.arange(50) == 7, np.inf, trace.kl_new_old))
    assert first_stops(broken, ENTRIES["EntropyMax"]) == first_stops(trace, ENTRIES["EntropyMax"])


def test_what_was_not_recorded_is_named() -> None:
    trace = Trace.of_divergences([0.1], [0.1], first=5)
    with pytest.raises(MissingInputError, match="EntropyMax requires pool_max_entropy"):
        first_stops(trace, ENTRIES["EntropyMax"])
    with pytest.raises(MissingInputError, match="ThresholdUpdate requires pool_changes, pool_risk"):
        first_stops(trace, ENTRIES["ThresholdUpdate of MinExpectedError"])


def test_references_that_are_no_rules_are_not_replayed() -> None:
    with pytest.raises(InvalidValueError, match="no rule that can be replayed"):
        first_stops(made_up_run(), next(entry for entry in catalogue() if entry.name == "Oracle"))


def test_a_row_goes_on_where_nothing_is_seen_anew() -> None:
    """Three changes below the threshold in a row, the first two before a part of the past is seen anew by others."""
    trace = made_up_run(12, seed=1)
    still = np.tile(trace.measures["stop_probabilities"][:1], (12, 1, 1))
    measures = {**trace.measures, "stop_probabilities": still}
    known = made_up_run(12, seed=1, relearned=(2,)).relearned[0]
    only_divergences = replace(known, measures={})
    stopping = replace(trace, measures=measures, relearned=(only_divergences,))
    # The first step has nothing to compare with, so the third change in a row is at step 3.
    assert set(first_stops(stopping, ENTRIES["PredictedFChange"]).values()) <= {3}
    anew = replace(known, measures={"stop_probabilities": still[:3]})
    assert set(first_stops(replace(stopping, relearned=(anew,)), ENTRIES["PredictedFChange"]).values()) <= {3}


@dataclass
class Below(Criterion):
    """The expected error is below a threshold, three times running."""

    threshold: float
    times: int = 3
    running: int = field(default=0, init=False)

    requires: ClassVar[frozenset[str]] = frozenset({"expected_error"})

    def judge(self, step: Step) -> Verdict:
        assert step.expected_error is not None
        self.running = self.running + 1 if step.expected_error < self.threshold else 0
        stop = self.running >= self.times
        return self.verdict(step, stop=stop, value=step.expected_error, threshold=self.threshold, reason="so it is")


BELOW = Entry(
    name="Below",
    kind="threshold",
    make=Below,
    settings=(0.9, 0.5, 0.1),
    parameter="threshold",
    default=0.5,
    sense="below",
    in_a_row=3,
    once=lambda: Below(0.9, times=1),
)


@given(st.integers(0, 10**6), st.sets(st.integers(0, 14), max_size=3))
def test_a_row_begins_again_where_the_past_is_seen_anew(seed: int, relearned: set[int]) -> None:
    rng = np.random.default_rng(seed)
    made = Trace.of_divergences(np.ones(15), np.ones(15), first=3)
    known = [
        Relearned(step, np.ones(step + 1), np.ones(step + 1), {"expected_error": rng.random(step + 1)})
        for step in sorted(relearned)
    ]
    trace = replace(made, measures={"expected_error": rng.random(15)}, relearned=tuple(known))
    assert first_stops(trace, BELOW) == plain(trace, BELOW)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("EntropyMax", "pool_max_entropy"),
        ("OverallUncertainty", "pool_uncertainty"),
        ("MarginExhaustion", "pool_margin"),
        ("SelectionAgreement", "selected_agreement"),
    ],
)
@pytest.mark.parametrize("off", [0.0, -1e-13, 1e-13, -1e-11, 1e-11])
def test_numbers_at_a_limit_count_as_the_rule_counts_them(name: str, field: str, off: float) -> None:
    limits = ENTRIES[name].limits + off
    trace = replace(made_up_run(len(limits)), measures={field: limits})
    found = first_stops(trace, ENTRIES[name])
    assert found == plain(trace, ENTRIES[name])
    assert len(set(found.values())) > 5


def test_a_rule_of_ones_own_is_replayed_setting_by_setting() -> None:
    def make(labels: int) -> Criterion:
        return Budget(labels).patience(2)

    entry = Entry(name="mine", kind="threshold", make=make, settings=(12, 14, 900), parameter="labels", default=12)
    assert first_stops(made_up_run(), entry) == {12: 2, 14: 4, 900: None}
