"""Rows, the leaderboard and the curves: by hand on made-up scores, and whole on real runs."""

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError, SufficeError
from suffice.experiments.compare.board import Row, curves, leaderboard, ratio_name, rows
from suffice.experiments.compare.entry import Entry
from suffice.experiments.compare.rules import catalogue
from suffice.experiments.compare.scoring import Case, Score, scores
from suffice.experiments.compare.writing import csv_of, write_csv, write_json

sys.path.append(str(Path(__file__).parent))
from compare_runs import real_run

RATIOS = (10.0, 1000.0)
#: A rule with three settings, one that is told costs, one with nothing to choose, and the references.
ENTRIES = [
    Entry(name="swept", kind="threshold", make=None, settings=(0.3, 0.2, 0.1), parameter="threshold", default=0.2),
    Entry(name="told", kind="cost", make=None, settings=RATIOS, parameter="error_cost"),
    Entry(name="plain", kind="plain", make=None),
    Entry(name="Budget", kind="reference", make=None, settings=(10, 20), parameter="labels", default=20),
    Entry(name="Never", kind="reference", make=None),
    Entry(name="Oracle", kind="reference", make=None),
]
KEYS = [
    "rule", "params", "data", "model", "seed", "batch", "variant", "setting", "stop", "labels", "error", "regret",
    "premature", "fired", "over", "forgone", "seconds_per_step",
]  # fmt: skip


def made(data: str, rule: str, regrets: Any, *, seed: int = 0, model: str = "gp", **others: Any) -> Score:
    """A score whose stops are 0, 1, 2, ... at its settings, with labels 11, 12, 13, ..."""
    table = np.asarray(regrets, dtype=np.float64)
    entry = next(each for each in ENTRIES if each.name == rule)
    n = len(table)
    given: dict[str, Any] = {
        "settings": RATIOS if rule == "Oracle" else entry.settings,
        "stops": tuple(range(n)),
        "labels": 11.0 + np.arange(n),
        "error": 0.5 - 0.1 * np.arange(n),
        "premature": (np.arange(n) < 1).astype(float),
        "fired": np.ones(n),
        "good_labels": 12.0,
        "best_error": 0.2,
        "seconds_per_step": 1e-5,
    }
    return Score(case=Case(data, model, seed), rule=rule, ratios=RATIOS, regrets=table, **(given | others))


#: On a and b the third setting is best at the dear ratio and the first at the other; on c the second is, at both.
SWEPT = [
    made("a", "swept", [[0.1, 5.0], [0.4, 1.0], [0.7, 0.2]]),
    made("b", "swept", [[0.2, 4.0], [0.4, 1.0], [0.9, 0.4]]),
    made("c", "swept", [[9.0, 9.0], [0.0, 0.0], [9.0, 9.0]]),
]


def found(scores: list[Score], rule: str, data: str) -> dict[str, Row]:
    return {row["setting"]: row for row in rows(scores, entries=ENTRIES) if (row["rule"], row["data"]) == (rule, data)}


def test_a_rule_with_settings_has_three_rows() -> None:
    mine = found(SWEPT, "swept", "c")
    assert list(mine) == ["default", "one threshold", "per cost"]
    assert list(mine["default"]) == KEYS
    default, one, each = mine.values()
    assert (default["params"], default["stop"], default["regret"]) == ({"threshold": 0.2}, 1, {"10": 0.0, "1000": 0.0})
    # Over a and b: 2.325, 0.7 and 0.55 over both ratios. What is best on c itself is not asked.
    assert (one["params"], one["stop"], one["regret"]) == ({"threshold": 0.1}, 2, {"10": 9.0, "1000": 9.0})
    assert each["params"] == {"10": 0.3, "1000": 0.1}
    assert each["regret"] == {"10": 9.0, "1000": 9.0}
    # What is shown beside is at a ratio of 1000.
    assert (each["stop"], each["labels"], each["error"], each["premature"]) == (2, 13, pytest.approx(0.3), False)
    assert (default["over"], default["forgone"], default["premature"]) == (0, pytest.approx(0.2), False)


def test_the_regret_per_cost_is_that_of_each_choice() -> None:
    # For a, over b and c: the means are [4.6, 6.5], [0.2, 0.5], [4.95, 4.7].
    assert found(SWEPT, "swept", "a")["per cost"]["params"] == {"10": 0.2, "1000": 0.2}
    two = [*SWEPT[:2], made("d", "swept", [[0.11, 0.12], [0.21, 0.22], [0.31, 0.32]])]
    chosen = found(two, "swept", "d")["per cost"]
    assert chosen["params"] == {"10": 0.3, "1000": 0.1}
    assert chosen["regret"] == {"10": 0.11, "1000": 0.32}


def test_settings_are_chosen_among_runs_of_the_same_model() -> None:
    others = [made("a", "swept", [[0.0, 0.0], [90.0, 90.0], [90.0, 90.0]], model="ridge")]
    mixed = found([*SWEPT, *others], "swept", "c")
    assert mixed["one threshold"] == found(SWEPT, "swept", "c")["one threshold"]
    # The only data set of its model: the default.
    (alone,) = (row for row in rows(others, entries=ENTRIES) if row["setting"] == "one threshold")
    assert alone["params"] == {"threshold": 0.2}


@given(st.integers(0, 10**6))
def test_the_set_that_is_judged_has_no_say_in_its_rows(seed: int) -> None:
    other = np.random.default_rng(seed).exponential(size=(3, 2))
    before, after = found(SWEPT, "swept", "c"), found([*SWEPT[:2], made("c", "swept", other)], "swept", "c")
    assert [row["params"] for row in after.values()] == [row["params"] for row in before.values()]


def test_a_rule_that_is_told_costs_has_one_row() -> None:
    (row,) = rows([made("a", "told", [[0.1, 0.2], [0.3, 0.4]])], entries=ENTRIES)
    assert (row["setting"], row["params"]) == ("costs", {})
    # Its own stop at each ratio; the one that is shown is at 1000.
    assert row["regret"] == {"10": 0.1, "1000": 0.4}
    assert row["stop"] == 1


def test_other_rows() -> None:
    (plain,) = rows([made("a", "plain", [[0.1, 0.2]], stops=(None,), fired=np.zeros(1))], entries=ENTRIES)
    assert (plain["setting"], plain["params"], plain["stop"], plain["fired"]) == ("default", {}, None, False)
    (never,) = rows([made("a", "Never", [[0.1, 0.2]])], entries=ENTRIES)
    assert never["setting"] == "reference"
    (oracle,) = rows([made("a", "Oracle", [[0.0, 0.2], [0.3, 0.0]], seconds_per_step=None)], entries=ENTRIES)
    assert (oracle["setting"], oracle["regret"], oracle["stop"]) == ("reference", {"10": 0.0, "1000": 0.0}, 1)
    budget = rows([made("a", "Budget", [[0.1, 0.2], [0.3, 0.4]])], entries=ENTRIES)
    assert [row["setting"] for row in budget] == ["default", "one threshold", "per cost"]
    (share,) = rows([made("a", "plain", [[0.1, 0.2]], premature=np.array([0.25]))], entries=ENTRIES)
    assert share["premature"] == 0.25
    assert rows([]) == []
    with pytest.raises(InvalidValueError, match="plain is none of the entries"):
        rows([made("a", "plain", [[0.1, 0.2]])])


def test_the_leaderboard_by_hand() -> None:
    board = rows(
        [
            made("a", "plain", [[1.0, 3.0]], seed=0),
            made("a", "plain", [[3.0, 5.0]], seed=1, premature=np.zeros(1)),
            made("b", "plain", [[6.0, 8.0]], seed=0, fired=np.zeros(1), labels=np.array([20.0])),
            made("a", "Never", [[0.0, 1.0]], seed=0),
        ],
        entries=ENTRIES,
    )
    never, plain = leaderboard(board, resamples=2000)
    assert (never["rule"], never["mean"], never["runs"]) == ("Never", 0.5, 1)
    # a: (2 + 4) / 2, b: 7.
    assert plain["mean"] == 5.0
    # Weights 1/8 for 1, 3, 3, 5 and 1/4 for 6, 8: half lies at or below 5.
    assert (plain["median"], plain["p90"]) == (5.5, 8.0)
    # a has half of the weight, and half of its runs were premature.
    assert plain["premature"] == 0.25 + 0.5
    assert (plain["stop_rate"], plain["data_sets"], plain["runs"]) == (0.5, 2, 3)
    # Labels over: -1 and -1 with a quarter each, 8 with a half.
    assert plain["over"] == 3.5
    assert plain["forgone"] == pytest.approx(0.3)
    assert (plain["difference"], plain["difference_interval"]) == (0.0, [0.0, 0.0])
    # On the run that both have: 0.5 less 2.
    assert (never["difference"], never["difference_interval"]) == (-1.5, [-1.5, -1.5])
    # Two sets are drawn: a twice in a quarter of the drawings, whose mean is then 2.5 or less in 5 of 16; b twice, 7.
    assert plain["interval"] == [2.5, 7.0]


def test_the_best_rule_has_all_runs() -> None:
    board = rows(
        [
            *(made(data, "plain", [[2.0, 2.0]]) for data in "abc"),
            *(made(data, "told", [[3.0, 3.0], [3.0, 3.0]]) for data in "abc"),
            made("a", "swept", [[0.0, 0.0]] * 3),
            *(made(data, "Never", [[0.0, 0.0]]) for data in "abc"),
        ],
        entries=ENTRIES,
    )
    ranked = {(row["rule"], row["setting"]): row["difference"] for row in leaderboard(board, resamples=20)}
    assert ranked["plain", "default"] == 0.0
    assert ranked["told", "costs"] == 1.0
    assert ranked["swept", "default"] == -2.0
    assert ranked["Never", "reference"] == -2.0


def test_rules_without_a_run_in_common_have_no_difference() -> None:
    board = rows([made("a", "plain", [[2.0, 2.0]]), made("b", "told", [[3.0, 3.0]] * 2)], entries=ENTRIES)
    first, second = leaderboard(board, resamples=20)
    assert (first["difference"], second["difference"], second["difference_interval"]) == (0.0, None, None)
    assert json.dumps([first, second], allow_nan=False)


@given(st.integers(1, 6), st.integers(0, 1000))
def test_more_runs_of_a_data_set_do_not_make_it_weigh_more(times: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = rng.exponential(size=(2, 1, 2))
    few = [made("a", "plain", one), made("b", "plain", other)]
    many = [*(made("a", "plain", one, seed=k) for k in range(times)), made("b", "plain", other)]
    (first,), (second,) = (leaderboard(rows(each, entries=ENTRIES), resamples=2) for each in (few, many))
    for name in ("mean", "median", "p90", "premature", "over", "forgone"):
        assert second[name] == pytest.approx(first[name])


def test_nothing_to_rank() -> None:
    assert leaderboard([]) == []


def test_curves_by_hand() -> None:
    points = curves(
        [SWEPT[0], made("b", "swept", np.zeros((3, 2)), good_labels=24.0), made("a", "plain", [[0.0, 0.0]])]
    )
    assert [point["value"] for point in points] == [0.3, 0.2, 0.1]
    # 11 / 12 and 11 / 24; the error 0.5 / 0.2.
    assert points[0]["labels"] == pytest.approx(0.5 * (11 / 12 + 11 / 24))
    assert [point["error"] for point in points] == pytest.approx([2.5, 2.0, 1.5])
    assert (points[0]["data_sets"], points[0]["runs"], points[0]["model"]) == (2, 2, "gp")
    assert curves([made("a", "swept", np.zeros((3, 2)), best_error=0.0)]) == []


@pytest.fixture(scope="module")
def real_rows() -> list[Row]:
    several = []
    for data, model, run in (("one", "gp", "gp"), ("two", "gp", "ridge"), ("one", "logistic", "logistic")):
        for seed in (0, 1):
            several += scores(Case(data, model, seed), real_run(run, seed))
    return rows(several)


def test_a_board_of_real_runs(real_rows: list[Row]) -> None:
    assert {row["rule"] for row in real_rows} == {entry.name for entry in catalogue()}
    assert all(value >= 0.0 for row in real_rows for value in row["regret"].values())
    ranked = leaderboard(real_rows, resamples=50)
    assert (ranked[0]["rule"], ranked[0]["mean"]) == ("Oracle", 0.0)
    assert ranked == sorted(ranked, key=lambda row: row["mean"])
    for row in ranked:
        low, high = row["interval"]
        assert low <= row["mean"] + 1e-9
        assert high >= row["mean"] - 1e-9 or row["data_sets"] > 1
        assert 0.0 <= row["premature"] <= 1.0
        assert 0.0 <= row["stop_rate"] <= 1.0
    assert leaderboard(real_rows, resamples=50) == ranked
    assert leaderboard(real_rows, resamples=50, seed=1) != ranked


def test_boards_are_written_and_read_again(real_rows: list[Row], tmp_path: Path) -> None:
    write_json(tmp_path / "board.json", real_rows)
    assert json.loads((tmp_path / "board.json").read_text()) == real_rows
    ranked = leaderboard(real_rows, resamples=20)
    for table in (real_rows, ranked):
        write_csv(tmp_path / "board.csv", table)
        read = list(csv.DictReader(io.StringIO((tmp_path / "board.csv").read_text())))
        assert [row["rule"] for row in read] == [row["rule"] for row in table]
    assert float(read[0]["interval_low"]) == ranked[0]["interval"][0]
    first = next(csv.DictReader(io.StringIO(csv_of(real_rows))))
    assert json.loads(first["params"]) == real_rows[0]["params"]
    assert float(first["regret_21.5"]) == real_rows[0]["regret"]["21.5"]
    with pytest.raises(SufficeError, match="cannot be written"):
        write_json(tmp_path / "no" / "board.json", real_rows)


def test_ratios_are_written_plainly() -> None:
    assert [ratio_name(ratio) for ratio in (10.0, 21.5, 1000.0, 100_000.0)] == ["10", "21.5", "1000", "100000"]
