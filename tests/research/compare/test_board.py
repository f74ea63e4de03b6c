"""Rows, the leaderboard and the curves: by hand on made-up scores, and whole on real runs."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError, SufficeError
from suffice_research.compare.compare_command import csv_of, write_csv, write_json
from suffice_research.compare.scoring import Row, RuleScore, RunCase, curves, leaderboard, ratio_name, rows, scores
from suffice_research.recommendation.compared_rules import Entry, catalogue
from tests.research.compare.compare_runs import real_run

RATIOS = (10.0, 1000.0)
#: A rule with three settings, one that is told costs, one with nothing to choose, and the references.
ENTRIES = [
    Entry(name="swept", kind="threshold", make=None, settings=(0.3, 0.2, 0.1), parameter="threshold", default=0.2),
    Entry(name="told", kind="cost", make=None, settings=RATIOS, parameter="error_cost"),
    Entry(name="plain", kind="plain", make=None),
    Entry(name="Budget", kind="reference", make=None, settings=(10, 20), parameter="labels", default=20),
    Entry(name="AtOnce", kind="reference", make=None),
    Entry(name="Never", kind="reference", make=None),
    Entry(name="Oracle", kind="reference", make=None),
]
KEYS = [
    "rule", "params", "data", "model", "seed", "batch", "variant", "setting", "stop", "labels",
    "wrong_share", "least_wrong_share", "error", "regret", "premature", "fired", "over", "forgone", "seconds_per_step",
]  # fmt: skip


def made(
    data: str, rule: str, regrets: Any, *, seed: int = 0, model: str = "gp", batch: int = 1, **others: Any
) -> RuleScore:
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
    return RuleScore(
        case=RunCase(data, model, seed, batch), rule=rule, ratios=RATIOS, regrets=table, **(given | others)
    )


#: On a and b the third setting is best at the dear ratio and the first at the other; on c the second is, at both.
SWEPT = [
    made("a", "swept", [[0.1, 5.0], [0.4, 1.0], [0.7, 0.2]]),
    made("b", "swept", [[0.2, 4.0], [0.4, 1.0], [0.9, 0.4]]),
    made("c", "swept", [[9.0, 9.0], [0.0, 0.0], [9.0, 9.0]]),
]


def found(scores: list[RuleScore], rule: str, data: str) -> dict[str, Row]:
    return {row["setting"]: row for row in rows(scores, entries=ENTRIES) if (row["rule"], row["data"]) == (rule, data)}


def test_a_rule_with_settings_has_three_rows() -> None:
    mine = found(SWEPT, "swept", "c")
    assert list(mine) == ["default", "one threshold", "per cost"]
    assert list(mine["default"]) == KEYS
    default, one, each = mine.values()
    assert (default["params"], default["stop"], default["regret"]) == ({"threshold": 0.2}, 1, {"10": 0.0, "1000": 0.0})
    # Costs over the best ones, multiplied over a, b and both ratios: 39.6, 7.84, 5.43. What is best on c is not asked.
    assert (one["params"], one["stop"], one["regret"]) == ({"threshold": 0.1}, 2, {"10": 9.0, "1000": 9.0})
    assert each["params"] == {"10": 0.3, "1000": 0.1}
    assert each["regret"] == {"10": 9.0, "1000": 9.0}
    # What is shown beside is at a ratio of 1000.
    assert (each["stop"], each["labels"], each["error"], each["premature"]) == (2, 13, pytest.approx(0.3), False)
    assert (default["over"], default["forgone"], default["premature"]) == (0, pytest.approx(0.2), False)


def test_the_regret_per_cost_is_that_of_each_choice() -> None:
    # For a, costs over the best ones, multiplied over b and c: [12, 50], [1.4, 2], [19, 14].
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


def test_settings_are_chosen_among_runs_of_the_same_batch() -> None:
    loose, strict = [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], [[2.0, 2.0], [1.0, 1.0], [0.0, 0.0]]
    one = [made(data, "swept", loose) for data in "ab"]
    ten = [made(data, "swept", [[9.0, 9.0], [9.0, 9.0], [0.0, 0.0]], batch=10) for data in "ab"]
    judged = [made("c", "swept", strict), made("c", "swept", loose, batch=10)]
    chosen = {
        (row["batch"], row["setting"]): (row["params"], row["regret"])
        for row in rows([*one, *ten, *judged], entries=ENTRIES)
        if row["data"] == "c" and row["setting"] != "default"
    }
    # By the runs of both batches together 0.1 would have been taken for either: costs over the best ones multiply to
    # 10 x 10 for 0.3, to 20 x 20 for 0.2 and to 3 x 3 for 0.1.
    assert chosen == {
        (1, "one threshold"): ({"threshold": 0.3}, {"10": 2.0, "1000": 2.0}),
        (1, "per cost"): ({"10": 0.3, "1000": 0.3}, {"10": 2.0, "1000": 2.0}),
        (10, "one threshold"): ({"threshold": 0.1}, {"10": 2.0, "1000": 2.0}),
        (10, "per cost"): ({"10": 0.1, "1000": 0.1}, {"10": 2.0, "1000": 2.0}),
    }
    # Without another data set of its batch: the default.
    (alone,) = (
        row
        for row in rows([*ten, judged[0]], entries=ENTRIES)
        if (row["data"], row["setting"]) == ("c", "one threshold")
    )
    assert alone["params"] == {"threshold": 0.2}


def test_a_single_bad_run_does_not_decide_which_setting_is_chosen() -> None:
    several = [
        made("a", "swept", [[0.0, 0.0], [3.0, 3.0], [20.0, 20.0]]),
        made("b", "swept", [[8.0, 8.0], [3.0, 3.0], [20.0, 20.0]]),
        made("c", "swept", [[0.5, 0.6], [0.7, 0.8], [0.9, 1.0]]),
    ]
    # Means of the regret: 4, 3, 20. Costs over the best ones: the roots of 1 x 9, 4 x 4 and 21 x 21.
    chosen = found(several, "swept", "c")
    assert chosen["one threshold"]["params"] == {"threshold": 0.3}
    assert chosen["per cost"]["params"] == {"10": 0.3, "1000": 0.3}
    assert chosen["per cost"]["regret"] == {"10": 0.5, "1000": 0.6}


def with_ends(data: str, swept: Any, first: tuple[float, float], last: tuple[float, float]) -> list[RuleScore]:
    """A rule with settings, charged 40 labels more than others, and the two ends of the same run."""
    return [
        made(data, "swept", swept, labels=np.array([52.0, 53.0, 54.0])),
        made(data, "AtOnce", [first]),
        made(
            data,
            "Never",
            [last],
            stops=(None,),
            labels=np.array([90.0]),
            error=np.array([0.2]),
            premature=np.zeros(1),
            fired=np.zeros(1),
        ),
    ]


#: Where labels are dear no setting of the rule stops early enough.
LATE = [
    *with_ends("a", [[4.0, 2.0], [5.0, 0.5], [6.0, 0.2]], (0.0, 60.0), (8.0, 0.6)),
    *with_ends("b", [[4.0, 3.0], [5.0, 0.7], [6.0, 0.3]], (0.1, 70.0), (8.0, 0.9)),
    *with_ends("c", [[4.5, 2.5], [5.5, 0.6], [6.5, 0.25]], (0.3, 80.0), (9.0, 0.75)),
]


def test_a_rule_that_cannot_stop_early_may_be_set_to_stop_at_once() -> None:
    default, one, each = found(LATE, "swept", "c").values()
    assert (default["params"], default["stop"], default["labels"]) == ({"threshold": 0.2}, 1, 53)
    # Multiplied over a, b and both ratios: 1 x 61 x 1.1 x 71 for a stop at once, 300 for 0.3, 91.8 for 0.2, 76.44 for
    # 0.1 and 246.24 for none.
    assert (one["params"], one["stop"], one["labels"]) == ({"threshold": 0.1}, 2, 54)
    assert each["params"] == {"10": "at once", "1000": 0.1}
    # The rule's own stops are paid for where it is used, those of the end elsewhere.
    assert each["regret"] == {"10": 0.3, "1000": 0.25}
    assert (each["stop"], each["labels"]) == (2, 54)
    without = {row["setting"]: row for row in rows(LATE, entries=ENTRIES, ends=False) if row["data"] == "c"}
    assert without["per cost"]["params"] == {"10": 0.3, "1000": 0.1}
    assert without["per cost"]["regret"] == {"10": 4.5, "1000": 0.25}


def test_a_rule_that_is_set_to_an_end_stops_where_the_end_does() -> None:
    hasty = [[2.0, 50.0], [2.0, 40.0], [2.0, 30.0]]
    late = [score for data in "abc" for score in with_ends(data, hasty, (3.0, 90.0), (1.0, 0.0))]
    for row in (found(late, "swept", "c")[setting] for setting in ("one threshold", "per cost")):
        assert set(row["params"].values()) == {"never"}
        assert row["regret"] == {"10": 1.0, "1000": 0.0}
        # Labels to validate on are not needed for that.
        assert (row["stop"], row["labels"], row["fired"], row["premature"]) == (None, 90, False, False)
        assert (row["over"], row["forgone"]) == (78, 0.0)
    early = [score for data in "abc" for score in with_ends(data, hasty, (0.0, 0.5), (9.0, 9.0))]
    for row in (found(early, "swept", "c")[setting] for setting in ("one threshold", "per cost")):
        assert set(row["params"].values()) == {"at once"}
        assert row["regret"] == {"10": 0.0, "1000": 0.5}
        assert (row["stop"], row["labels"], row["fired"], row["premature"]) == (0, 11, True, True)
        assert (row["over"], row["forgone"]) == (-1, pytest.approx(0.3))
    # A budget has its setting chosen as rules have; the ends, and what is told costs, have nothing to choose.
    others = [
        score
        for data in "abc"
        for score in (
            made(data, "Budget", [[2.0, 50.0], [2.0, 40.0]]),
            made(data, "told", [[2.0, 50.0], [2.0, 40.0]]),
            made(data, "plain", [[2.0, 50.0]]),
        )
    ]
    made_of = {(row["rule"], row["setting"]): row for row in rows([*early, *others], entries=ENTRIES)}
    assert made_of["Budget", "one threshold"]["params"] == {"labels": "at once"}
    assert made_of["Budget", "default"]["params"] == {"labels": 20}
    assert made_of["told", "costs"]["regret"] == {"10": 2.0, "1000": 40.0}
    assert made_of["plain", "default"]["regret"] == {"10": 2.0, "1000": 50.0}
    assert made_of["AtOnce", "reference"]["params"] == made_of["Never", "reference"]["params"] == {}


@pytest.mark.parametrize("end", ["AtOnce", "Never"])
def test_without_both_ends_none_is_chosen(end: str) -> None:
    one = [score for score in LATE if score.rule in ("swept", end)]
    assert found(one, "swept", "c") == found([score for score in LATE if score.rule == "swept"], "swept", "c")


@given(st.integers(0, 10**6))
def test_ends_that_may_not_be_chosen_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    several = [
        score
        for data in "abcd"
        for score in with_ends(data, rng.exponential(size=(3, 2)), *rng.exponential(size=(2, 2)).tolist())
    ]
    own = [score for score in several if score.rule == "swept"]
    without = [row for row in rows(several, entries=ENTRIES, ends=False) if row["rule"] == "swept"]
    assert without == rows(own, entries=ENTRIES)
    assert {setting for row in without for setting in row["params"].values()} <= {0.3, 0.2, 0.1}
    both = [row for row in rows(several, entries=ENTRIES) if row["rule"] == "swept"]
    assert [row for row in both if row["setting"] == "default"] == [
        row for row in without if row["setting"] == "default"
    ]


@given(st.integers(0, 10**6))
def test_the_set_that_is_judged_has_no_say_in_its_ends(seed: int) -> None:
    rng = np.random.default_rng(seed)
    other = with_ends("c", rng.exponential(size=(3, 2)), *rng.exponential(size=(2, 2)).tolist())
    before, after = found(LATE, "swept", "c"), found([*LATE[:6], *other], "swept", "c")
    assert [row["params"] for row in after.values()] == [row["params"] for row in before.values()]


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
    # Costs over the best ones are 2, 4, 4, 6 with weight 1/8 each, and 7, 9 with 1/4; and 1, 2.
    assert plain["typical"] == pytest.approx((2 * 4 * 4 * 6) ** 0.125 * (7 * 9) ** 0.25 - 1.0)
    assert never["typical"] == pytest.approx(2**0.5 - 1.0)
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
    for name in ("mean", "median", "p90", "typical", "premature", "over", "forgone"):
        assert second[name] == pytest.approx(first[name])


def test_a_bad_run_does_not_rule_what_is_typical() -> None:
    fair, bad = ([made(data, "plain", [[0.0, worst]]) for data in "ab"] for worst in (3.0, 99.0))
    (first,), (second,) = (leaderboard(rows(each, entries=ENTRIES), resamples=2) for each in (fair, bad))
    # The roots of 1 x 4 and of 1 x 100, less 1.
    assert (first["mean"], first["typical"]) == (1.5, pytest.approx(1.0))
    assert (second["mean"], second["typical"]) == (49.5, pytest.approx(9.0))


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
            several += scores(RunCase(data, model, seed), real_run(run, seed))
    return rows(several)


@pytest.mark.slow
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
        # A geometric mean is never above the other one.
        assert 0.0 <= row["typical"] <= row["mean"] + 1e-9
        assert 0.0 <= row["premature"] <= 1.0
        assert 0.0 <= row["stop_rate"] <= 1.0
    assert leaderboard(real_rows, resamples=50) == ranked
    assert leaderboard(real_rows, resamples=50, seed=1) != ranked


@pytest.mark.slow
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
