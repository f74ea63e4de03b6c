"""Correlation, stops and rows of the paper's runs: by hand, and against loops that say it plainly."""

import csv
import inspect
import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from suffice.trace import Trace
from suffice_research.data.protocols import CORRECTED, PROTOCOLS, PUBLISHED, Experiment
from suffice_research.paper.outcome import RunOutcome, correlation, first_at_most, measure, rows_csv, running_minima

#: What a row of results.json holds, and nothing else.
KEYS = [
    "protocol", "model", "data", "seed", "arm", "features", "pool", "initial", "steps", "correlation",
    "published_correlation", "stops", "error_first", "error_best", "error_at_stop", "seconds",
]  # fmt: skip


def plain_minima(ratio: list[float], counted_from: int) -> list[int]:
    """A step counts where its ratio is at most that of each one before it that counts."""
    return [
        t
        for t in range(counted_from, len(ratio))
        if all(ratio[t] <= ratio[before] for before in range(counted_from, t))
    ]


def plain_correlation(x: list[float], y: list[float]) -> float:
    centre_x, centre_y = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - centre_x) * (b - centre_y) for a, b in zip(x, y, strict=True))
    spread = sum((a - centre_x) ** 2 for a in x) * sum((b - centre_y) ** 2 for b in y)
    return float(covariance / spread**0.5)


def plain_stop(ratio: list[float], threshold: float, counted_from: int) -> int | None:
    for t, value in enumerate(ratio):
        if t >= counted_from and value <= threshold:
            return t
    return None


# Few values, so that there are ties; and many, so that there are none.
VALUES = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 2.0]), st.floats(0.001, 100.0))
CURVES = st.lists(VALUES, min_size=1, max_size=30)


@given(CURVES, st.integers(0, 12))
def test_running_minima_are_those_of_a_plain_loop(ratio: list[float], counted_from: int) -> None:
    assert running_minima(np.array(ratio), counted_from).tolist() == plain_minima(ratio, counted_from)


@given(CURVES, st.integers(1, 11))
def test_running_minima_are_those_of_the_papers_definition(ratio: list[float], calibration: int) -> None:
    """The ratio is 1 until it is calibrated; a step counts where no ratio of the whole run so far is lower."""
    whole = [1.0] * calibration + ratio
    counting = [t for t in range(calibration - 1, len(whole)) if whole[t] == min(whole[: t + 1])]
    found = running_minima(np.array(whole), calibration - 1)
    assert found.tolist() == counting
    assert (np.array(whole)[found] <= 1.0).all()
    # As in the authors' script, where the ratio is recorded from its last 1 on.
    recorded = [1.0, *ratio]
    script = [t for t in range(len(recorded)) if recorded[t] <= min(recorded[: t + 1])]
    assert (found - (calibration - 1)).tolist() == script


@given(st.lists(st.tuples(VALUES, st.integers(-9, 9)), max_size=30), st.integers(0, 12))
def test_correlation_is_that_of_a_plain_loop(curve: list[tuple[float, int]], counted_from: int) -> None:
    ratio, error = [a for a, _ in curve], [float(b) for _, b in curve]
    at = plain_minima(ratio, counted_from)
    assume(len(at) < 3 or len({ratio[t] for t in at}) > 1)  # a ratio that never falls: see below
    found = correlation(np.array(ratio), np.array(error), counted_from)
    seen, lows = [error[t] for t in at], [ratio[t] for t in at]
    if len(at) < 3 or max(seen) == min(seen):
        assert found is None
    else:
        assert found == pytest.approx(plain_correlation(lows, seen), abs=1e-7)


@given(CURVES, VALUES, st.integers(0, 12))
def test_the_first_step_at_most_is_that_of_a_plain_loop(ratio: list[float], threshold: float, first: int) -> None:
    assert first_at_most(np.array(ratio), threshold, first) == plain_stop(ratio, threshold, first)


def test_minima_by_hand() -> None:
    ratio = np.array([0.1, 1.0, 0.8, 0.8, 0.9, 0.5, 0.5, 0.1, 0.1, 0.2])
    assert running_minima(ratio, 1).tolist() == [1, 2, 3, 5, 6, 7, 8]  # a tie is as low as before
    assert running_minima(ratio, 0).tolist() == [0, 7, 8]  # never below what came first
    assert running_minima(ratio, 9).tolist() == [9]
    assert running_minima(np.full(5, 0.3), 2).tolist() == [2, 3, 4]
    assert running_minima(np.arange(5.0, 0.0, -1.0), 0).tolist() == [0, 1, 2, 3, 4]


def test_a_ratio_above_one_never_counts() -> None:
    # Calibrated by three steps; what comes right after is larger than all of them.
    ratio = np.array([1.0, 1.0, 1.0, 3.0, 2.0, 1.5, 0.9, 1.2, 0.8])
    assert running_minima(ratio, 2).tolist() == [2, 6, 8]
    # From one step later it would.
    assert running_minima(ratio, 3).tolist() == [3, 4, 5, 6, 8]
    assert running_minima(np.array([1.0, 1.0, 7.0, 5.0, 3.0]), 1).tolist() == [1]


@pytest.mark.parametrize("records", list(PROTOCOLS.values()))
def test_every_experiment_counts_from_the_last_step_that_it_is_calibrated_by(records: Any) -> None:
    for each in records.values():
        change = [4.0] * each.calibration + [40.0, 20.0, 2.0, 1.0, 0.5]
        error = np.arange(len(change), 0.0, -1.0)
        trace = run(change, error, measures={"published_error": error})
        found = measure(each, trace, seed=1, arm=None, seconds=0.0)
        assert (found.ratio[: each.calibration] == 1.0).all()
        at = running_minima(found.ratio, each.counted_from).tolist()
        later = [len(change) - 3, len(change) - 2, len(change) - 1]
        # Of the steps before, all or the last alone; of the authors' network both.
        assert at == [*range(each.counted_from, each.calibration), *later]
        assert len(at) == (5 if each.model == "bdnn" and each.protocol == "published" else 4)


def test_a_run_too_short_to_count_has_no_minima() -> None:
    assert running_minima(np.array([1.0, 1.0]), 2).tolist() == []
    assert running_minima(np.array([1.0]), 10).tolist() == []


def test_correlation_is_undefined_where_there_is_none() -> None:
    falling = np.array([1.0, 0.5, 0.25, 0.125])
    # Deviations of the ratio: 17, 1, -7, -11 parts of 32; of the error: 3, 1, -1, -3 halves.
    by_hand = (17 * 3 + 1 + 7 + 11 * 3) / ((17**2 + 1 + 7**2 + 11**2) * (9 + 1 + 1 + 9)) ** 0.5
    assert correlation(falling, np.array([4.0, 3.0, 2.0, 1.0]), 0) == pytest.approx(by_hand, rel=1e-12)
    assert correlation(falling, -falling, 0) == pytest.approx(-1.0)
    assert correlation(falling, falling, 1) == pytest.approx(1.0)
    # Two points lie on a line whatever they are; one, or none, even more so.
    assert [correlation(falling, falling, first) for first in (2, 3, 4, 9)] == [None] * 4
    # An error that never moves correlates with nothing, nor does a ratio that is never lower than at first.
    assert correlation(falling, np.full(4, 0.3), 0) is None
    assert correlation(np.array([1.0, 3.0, 2.0, 1.5]), np.arange(4.0), 0) is None
    # What happens between the minima does not matter.
    assert correlation(np.array([1.0, 0.5, 9.0, 0.25]), np.array([1.0, 0.5, -77.0, 0.25]), 0) == pytest.approx(1.0)


def test_correlation_is_undefined_where_the_ratio_never_falls() -> None:
    assert correlation(np.ones(9), np.arange(9.0), 0) is None
    # As in a run whose divergences are all alike.
    experiment = replace(SMALL, calibration=2, counted_from=1)
    found = measure(experiment, run(np.full(5, 4.0), np.arange(5.0)), seed=1, arm=None, seconds=0.0)
    assert found.correlation is None


def test_a_threshold_that_is_met_exactly_stops() -> None:
    ratio = np.array([0.0, 1.0, 0.05, 0.04, 0.05])
    assert first_at_most(ratio, 0.05, 1) == 2
    assert first_at_most(ratio, np.nextafter(0.05, 0.0), 1) == 3
    assert first_at_most(ratio, 0.05, 3) == 3
    assert first_at_most(ratio, 0.03, 1) is None
    assert first_at_most(ratio, 1.0, 1) == 1
    assert first_at_most(ratio, 0.03, 5) is None


# ------------------------------------------------------------------------------------------------------ a run


def divergence(change: Any) -> Any:
    """The divergence whose bound, in both directions together, is ``change``: Bennett's function of its half."""
    half = np.asarray(change) / 2.0
    return (1.0 + half) * np.log1p(half) - half


def run(change: Any, error: Any, **options: Any) -> Trace:
    kl = divergence(change)
    return replace(Trace.of_divergences(kl, kl, first=10), error=np.asarray(error, dtype=float), **options)


#: Two steps set the scale, which is 2; from the second on it counts.
SMALL = replace(PUBLISHED["gpr/protein"], calibration=2, counted_from=1, thresholds=(0.5, 0.25, 0.125, 0.01))
CHANGE = [4.0, 2.0, 3.0, 0.9, 1.0, 0.45, 0.2, 0.3]
ERROR = [8.0, 6.0, 7.0, 4.0, 3.0, 2.0, 1.0, 1.5]


def measured(experiment: Experiment = SMALL, **options: Any) -> RunOutcome:
    return measure(experiment, run(CHANGE, ERROR, **options), seed=1, arm=None, seconds=2.5)


def test_a_run_measured_by_hand() -> None:
    found = measured()
    np.testing.assert_allclose(found.ratio, [1.0, 1.0, 1.5, 0.45, 0.5, 0.225, 0.1, 0.15], rtol=1e-9)
    assert found.stops == {"0.5": 3, "0.25": 5, "0.125": 6, "0.01": None}
    assert found.error_at_stop == {"0.5": 4.0, "0.25": 2.0, "0.125": 1.0, "0.01": None}
    assert (found.error_first, found.error_best, found.steps) == (8.0, 1.0, 8)
    assert [found.excess(name) for name in found.stops] == [pytest.approx(3 / 7), pytest.approx(1 / 7), 0.0, None]
    expected = plain_correlation([1.0, 0.45, 0.225, 0.1], [6.0, 4.0, 2.0, 1.0])
    assert found.correlation == pytest.approx(expected, rel=1e-9)
    assert found.published_correlation == 0.9695
    assert (found.features, found.pool, found.initial) == (9, 5000, 10)
    assert (found.name, found.counted_from) == ("gpr/protein", 1)


def test_a_run_that_gets_no_better_has_no_excess() -> None:
    found = measure(SMALL, run(CHANGE, np.arange(1.0, 9.0)), seed=1, arm=None, seconds=0.0)
    assert found.error_first == found.error_best == 1.0
    assert found.stops["0.5"] == 3
    assert found.excess("0.5") is None


def test_a_stop_worse_than_the_start() -> None:
    found = measure(SMALL, run(CHANGE, [2.0, 2.0, 2.0, 5.0, 2.0, 2.0, 1.0, 1.0]), seed=1, arm=None, seconds=0.0)
    assert found.excess("0.5") == 4.0


def test_the_row_that_is_written() -> None:
    row = measured().row()
    assert list(row) == KEYS
    # Bare numbers, words and dictionaries, which come back as they were.
    assert json.loads(json.dumps(row)) == row
    assert type(row["stops"]) is type(row["error_at_stop"]) is dict
    assert type(row["stops"]["0.5"]) is int
    assert (row["seconds"], row["seed"], row["arm"]) == (2.5, 1, None)


def test_rows_as_csv() -> None:
    few, many = replace(SMALL, thresholds=(0.5, 0.01)), replace(SMALL, thresholds=(0.25, 0.01))
    given = [measured(few), replace(measured(many), data='a,\n"b"')]
    head, *read = csv.reader(io.StringIO(rows_csv(given), newline=""))
    thresholds = ["0.5", "0.01", "0.25"]
    plain = [name for name in KEYS if name not in ("stops", "error_at_stop")]
    assert set(head) == {*plain, *(f"{what}_{name}" for what in ("stop", "error_at_stop") for name in thresholds)}
    assert len(head) == len(plain) + 6
    for row, each in zip(read, given, strict=True):
        cells = dict(zip(head, row, strict=True))
        expected = {name: each.row()[name] for name in plain}
        expected |= {f"stop_{name}": each.stops.get(name) for name in thresholds}
        expected |= {f"error_at_stop_{name}": each.error_at_stop.get(name) for name in thresholds}
        assert cells == {name: "" if value is None else str(value) for name, value in expected.items()}
    assert rows_csv([]).strip() == ""


def test_the_keys_are_those_that_are_documented() -> None:
    # Without the indentation of the class, which Python 3.13 leaves out, the names are indented by four.
    lines = (inspect.getdoc(RunOutcome) or "").splitlines()
    documented = [line.split(":")[0].strip() for line in lines if line.startswith(" " * 4)]
    named = [name for name in documented if name.isidentifier()]
    assert named == [*KEYS, "ratio", "error", "counted_from"]


def test_the_authors_error_counts_where_the_loss_is_theirs() -> None:
    own = [9.0, 8.0, 7.0, 5.0, 4.0, 3.0, 2.0, 2.0]
    measures = {"published_error": np.array(own), "accuracy": np.linspace(0.1, 0.9, 8)}
    twice = measured(replace(SMALL, loss="softmax twice"), measures=measures)
    assert twice.error.tolist() == own
    assert (twice.error_first, twice.error_best, twice.error_at_stop["0.25"]) == (9.0, 2.0, 3.0)
    # It is the loss that decides, under either protocol.
    for protocol in ("published", "corrected"):
        once = measured(replace(SMALL, protocol=protocol), measures=measures)
        assert once.error.tolist() == ERROR
        assert once.error_at_stop["0.25"] == 2.0
        assert once.ratio.tolist() == twice.ratio.tolist()


def test_the_network_is_measured_by_the_authors_error_as_published_only() -> None:
    own = np.array(ERROR) + 1.5
    trace = run(CHANGE, ERROR, measures={"published_error": own})
    for record, expected in ((PUBLISHED["bdnn/mnist"], own.tolist()), (CORRECTED["bdnn/mnist"], ERROR)):
        assert measure(record, trace, seed=0, arm=None, seconds=0.0).error.tolist() == expected


def test_thresholds_are_named_as_they_are_printed() -> None:
    found = measured(replace(SMALL, thresholds=(0.3, 0.2, 0.1, 0.015)))
    assert list(found.stops) == ["0.3", "0.2", "0.1", "0.015"]


def test_a_picture_has_784_features() -> None:
    found = measure(CORRECTED["bdnn/mnist"], run(CHANGE, ERROR), seed=0, arm=None, seconds=0.0)
    assert (found.features, found.pool, found.initial) == (784, 60_000, 1000)


@given(
    st.lists(st.tuples(st.floats(1e-3, 10.0), st.floats(0.1, 9.0)), min_size=1, max_size=25),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6),
    st.sampled_from([(1, 1), (3, 2), (3, 3), (11, 10)]),
)
def test_stops_come_later_as_thresholds_fall(
    curve: list[tuple[float, float]], thresholds: list[float], scale: tuple[int, int]
) -> None:
    falling = tuple(sorted(set(thresholds), reverse=True))
    experiment = replace(SMALL, thresholds=falling, calibration=scale[0], counted_from=scale[1])
    trace = run([change for change, _ in curve], [error for _, error in curve])
    found = measure(experiment, trace, seed=0, arm=None, seconds=0.0)
    # Two thresholds that print alike are one.
    stops = [found.stops[name] for name in dict.fromkeys(f"{each:g}" for each in falling)]
    reached = [stop for stop in stops if stop is not None]
    assert stops == sorted(reached) + [None] * (len(stops) - len(reached))
    for name, stop in found.stops.items():
        at, excess = found.error_at_stop[name], found.excess(name)
        assert (stop is None) == (at is None)
        assert excess is None or excess >= 0.0
        if stop is not None:
            assert stop >= experiment.counted_from
            assert at == found.error[stop]


@given(st.lists(st.floats(1e-3, 10.0), min_size=12, max_size=25), st.integers(1, 11))
def test_the_ratio_is_one_until_it_has_a_scale(change: list[float], calibration: int) -> None:
    experiment = replace(SMALL, calibration=calibration, counted_from=calibration)
    found = measure(experiment, run(change, np.ones(len(change))), seed=0, arm=None, seconds=0.0)
    scale = min(change[:calibration])
    expected = [1.0] * calibration + [value / scale for value in change[calibration:]]
    np.testing.assert_allclose(found.ratio, expected, rtol=1e-7)
