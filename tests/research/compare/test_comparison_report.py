"""The comparison as tables, figures and a page: right numbers, nothing cut off, and safe whatever a name holds."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import escape

pytest.importorskip("matplotlib")

from matplotlib.image import imread

from suffice.errors import MissingExtraError, SufficeError
from suffice.report.figures import Sketch, plain_style
from suffice_research.compare.comparison_report import (
    REFERENCES,
    ComparisonReportContents,
    Leaderboard,
    best_of,
    boards,
    by_data_table,
    by_variation_table,
    draw_comparison,
    guarantees_table,
    leaderboard_table,
    report,
    runs_table,
    settings_table,
    sketches,
    write_report,
)
from suffice_research.compare.judging import BoundCoverage, coverage_summary
from suffice_research.compare.scoring import Row, RuleScore, RunCase, curves, rows, scores
from suffice_research.recommendation.compared_rules import for_trace
from tests.reading import Reader, require_readable
from tests.research.compare.compare_runs import made_up_run
from tests.thoroughness import some

pytestmark = pytest.mark.slow

HOSTILE = """<script>alert("x")</script> & 'q' $^$"""
KINDS = {"gp": "regression", "ridge": "regression", "logistic": "classification"}
RATIOS = (10.0, 100.0, 1000.0, 10000.0)
CASES = [
    *((data, model) for data in ("diabetes", "friedman") for model in ("gp", "ridge")),
    ("wine", "logistic"),
    ("tables/my file.csv", "logistic"),
]


@cache
def judge(case: RunCase, number: int = 0) -> tuple[RuleScore, ...]:
    """The rules that a run of such a model can be judged by, on a made-up run."""
    trace = made_up_run(45, seed=17 * case.seed + 5 * case.batch + number)
    if KINDS[case.model] == "classification":
        trace = replace(trace, wrong_share=0.1 + 0.2 * trace.predictive_error)
    fitting = [entry for entry in for_trace(trace, RATIOS) if KINDS[case.model] in entry.tasks]
    return tuple(scores(case, trace, ratios=RATIOS, entries=fitting))


def everything() -> Iterator[RuleScore]:
    for number, (data, model) in enumerate(CASES):
        for seed in range(2):
            for batch in (1, 10):
                yield from judge(RunCase(data, model, seed, batch), number)


@pytest.fixture(scope="module")
def judged() -> list[RuleScore]:
    return list(everything())


@pytest.fixture(scope="module")
def ranked(judged: list[RuleScore]) -> list[Leaderboard]:
    return boards(rows(judged), resamples=50)


@pytest.fixture(scope="module")
def drawn(judged: list[RuleScore], ranked: list[Leaderboard]) -> dict[str, Sketch]:
    with plain_style():
        return {each.name: each for each in sketches(ranked, curves(judged))}


@pytest.fixture(scope="module")
def contents(
    ranked: list[Leaderboard], judged: list[RuleScore], tmp_path_factory: pytest.TempPathFactory
) -> ComparisonReportContents:
    held = [
        (RunCase("wine", "logistic", seed), [BoundCoverage("PacBayes", 10, 0.5 + seed / 2, 1.0, 4.0)])
        for seed in (0, 1)
    ]
    small = [sketch for sketch in sketches(ranked[:1], curves(judged)) if sketch.name.startswith("regret")]
    folder = tmp_path_factory.mktemp("figures")
    with plain_style():
        figures = [sketch.save(folder) for sketch in small]
    return ComparisonReportContents(
        ranked,
        figures,
        coverage_summary(held),
        skipped=[("logistic on adult, seed 0", "adult.data is missing")],
        notes=["There is something to know."],
        provenance=[("Command", "suffice compare --seeds 2")],
    )


def cells(table: Any, column: str) -> list[str]:
    return [row[table.head.index(column)] for row in table.rows]


def row_of(board: Leaderboard, rule: str) -> Row:
    (found,) = [row for row in board.best if row["rule"] == rule]
    return found


def test_kinds_of_task_have_boards_of_their_own_and_one_for_what_all_runs_have(ranked: list[Leaderboard]) -> None:
    assert [board.key for board in ranked] == ["regression", "classification", "all"]
    regression, classification, every = ({row["rule"] for row in board.ranked} for board in ranked)
    assert "MaxVariance" in regression - classification
    assert "StabilizingPredictions" in classification - regression
    assert every == regression & classification
    assert {row["runs"] for row in ranked[2].ranked} == {24}
    assert [len(boards(rows(judge(RunCase("wine", "logistic", 0))), resamples=5))] == [1]


def test_each_rule_is_shown_in_the_way_that_does_best(ranked: list[Leaderboard]) -> None:
    for board in ranked:
        least = {
            row["rule"]: min(each["mean"] for each in board.ranked if each["rule"] == row["rule"]) for row in board.best
        }
        assert {row["rule"]: row["mean"] for row in board.best} == least
        assert len(board.best) == len({row["rule"] for row in board.ranked})
        assert [row["mean"] for row in board.best] == sorted(row["mean"] for row in board.best)


def test_where_nothing_could_be_chosen_the_default_is_shown() -> None:
    (board,) = boards(rows(judge(RunCase("wine", "logistic", 0))), resamples=5)
    assert {row["setting"] for row in board.best} == {"default", "costs", "reference"}
    assert {row["setting"] for row in board.ranked} > {"one threshold", "per cost"}


def test_ranks_leave_out_what_is_no_rule_and_references_are_marked(ranked: list[Leaderboard]) -> None:
    table = leaderboard_table(ranked[1])
    ranks = dict(zip(cells(table, "rule"), cells(table, "rank"), strict=True))
    assert [rank for rank in ranks.values() if rank] == [str(number) for number in range(1, len(ranks) - 3)]
    assert {rule for rule, rank in ranks.items() if not rank} == {"Oracle *", "AtOnce *", "Never *", "RandomStop *"}
    assert {rule for rule in ranks if rule.endswith("*")} > {"Budget *", "PoolFraction *"}
    first = list(ranks.values()).index("1")
    assert cells(table, "to the first")[first] == "0.00"
    assert table.title == "Classes to predict: 8 runs on 2 data sets"
    assert "0.25 is a quarter more" in table.note


def test_numbers_of_the_leaderboard(ranked: list[Leaderboard]) -> None:
    board = ranked[0]
    never, table = row_of(board, "Never"), leaderboard_table(board)
    (shown,) = [dict(zip(table.head, row, strict=True)) for row in table.rows if row[1] == "Never *"]
    runs = [np.mean(list(row["regret"].values())) for row in board.shown("Never", "reference")]
    assert never["mean"] == pytest.approx(np.mean(runs))
    assert float(shown["mean regret"]) == pytest.approx(never["mean"], abs=0.06)
    # Data sets have as many runs each, so that all weigh the same.
    ratios = [1.0 + value for row in board.shown("Never", "reference") for value in row["regret"].values()]
    typical = np.prod(ratios) ** (1 / len(ratios)) - 1.0
    assert never["typical"] == pytest.approx(typical)
    assert float(shown["typical"]) == pytest.approx(typical, abs=0.06)
    assert "Typical: the geometric mean of the cost" in table.note
    for every in (True, False):
        made = leaderboard_table(board, every=every)
        assert {len(row) for row in made.rows} == {len(made.head)}
    assert (shown["premature %"], shown["stops %"], shown["set by"]) == ("0", "0", "reference")
    assert shown["µs a step"].isdigit()
    assert len(leaderboard_table(board, every=True).rows) == len(board.ranked) > len(table.rows)


def test_regret_by_data_set_and_by_what_was_varied(ranked: list[Leaderboard]) -> None:
    table = by_data_table(ranked[1])
    assert table.head[2:] == ("wine, logistic", "my file.csv, logistic")
    own = [
        np.mean(list(row["regret"].values())) for row in ranked[1].shown("Never", "reference") if row["data"] == "wine"
    ]
    (never,) = [row for row in table.rows if row[0] == "Never *"]
    assert float(never[2]) == pytest.approx(np.mean(own), abs=0.06)
    varied = by_variation_table(ranked[1])
    assert varied is not None
    assert varied.head[2:] == ("1 at a time", "10 at a time")
    assert by_variation_table(boards(rows(judge(RunCase("wine", "logistic", 0))), resamples=5)[0]) is None
    noisy = [*judge(RunCase("wine", "logistic", 0)), *judge(RunCase("wine", "logistic", 0, variant="noise 0.1"))]
    shown = by_variation_table(boards(rows(noisy), resamples=5)[0])
    assert shown is not None
    assert shown.head[2:] == ("1 at a time", "1 at a time, noise 0.1")


def test_settings_that_were_chosen(ranked: list[Leaderboard]) -> None:
    table = settings_table(ranked[0])
    assert table is not None
    (stable,) = [row for row in table.rows if row[:2] == ("ErrorStability", "gp")]
    assert stable[2:4] == ("threshold", "0.05")
    chosen = {
        row["params"]["threshold"] for row in ranked[0].shown("ErrorStability", "one threshold") if row["model"] == "gp"
    }
    assert {float(end) for end in re.findall(r"\d[\d.e-]*", stable[4])} == {float(f"{each:.4g}") for each in chosen}
    assert "LabelWorth" not in cells(table, "rule")
    told = [score for score in judge(RunCase("wine", "logistic", 0)) if score.rule in ("LabelWorth", "Oracle")]
    assert settings_table(boards(rows(told), resamples=5)[0]) is None


def test_settings_at_the_ends_are_said_in_words(ranked: list[Leaderboard]) -> None:
    board = ranked[0]
    given = {("diabetes", 1): "never", ("diabetes", 10): 0.2, ("friedman", 1): "at once", ("friedman", 10): 0.5}

    def changed(row: Row) -> Row:
        if (row["rule"], row["model"], row["setting"]) != ("ErrorStability", "gp", "per cost"):
            return row
        # At the first cost all differ, at 1000 by the data set alone, at the last not at all.
        ends = {"10": given[row["data"], row["batch"]], "1000": given[row["data"], 1], "10000": "at once"}
        return {**row, "params": {**row["params"], **ends}}

    table = settings_table(Leaderboard(board.key, [changed(row) for row in board.rows], board.ranked))
    assert table is not None
    (stable,) = [row for row in table.rows if row[:2] == ("ErrorStability", "gp")]
    assert table.head[5:] == ("per cost, 10", "per cost, 1000", "per cost, 10000")
    # At once comes before all numbers, never after them; of four the second is shown, of two and two the lower.
    assert stable[5:] == ("0.2 (at once to never)", "at once (at once to never)", "at once")
    assert "same model and batch" in table.note


def test_what_was_run(ranked: list[Leaderboard]) -> None:
    table = runs_table([row for board in ranked[:2] for row in board.rows])
    assert cells(table, "data set") == ["diabetes", "diabetes", "friedman", "friedman", "wine", "my file.csv"]
    assert cells(table, "what is asked")[4] == "Which of three growers made the wine?"
    assert set(cells(table, "at a time")) == {"1, 10"}
    assert set(cells(table, "labels")) == {"55"}
    assert set(cells(table, "runs")) == {"4"}
    assert cells(table, "least wrong %")[:4] == ["-"] * 4
    # A tenth and a fifth of the least error, which is about 0.2.
    assert [float(cell) for cell in cells(table, "least wrong %")[4:]] == pytest.approx([14.0] * 2, abs=0.5)
    assert table.head[-2:] == ("least wrong %", "least error")


def test_wrong_predictions_are_the_first_number_of_classes(ranked: list[Leaderboard]) -> None:
    for every in (False, True):
        tables = [leaderboard_table(board, every=every) for board in ranked]
        assert tables[1].head[:4] == ("rank", "rule", "set by", "wrong %")
        assert all("wrong %" not in table.head for table in (tables[0], tables[2]))
    never = row_of(ranked[1], "Never")
    stops = [row["wrong_share"] for row in ranked[1].shown("Never", "reference")]
    assert never["wrong_share"] == pytest.approx(np.mean(stops))
    table = leaderboard_table(ranked[1])
    shown = dict(zip(cells(table, "rule"), cells(table, "wrong %"), strict=True))
    assert shown["Never *"] == f"{100.0 * never['wrong_share']:.1f}"
    assert row_of(ranked[0], "Never")["wrong_share"] is None
    assert re.match(
        r"Classes to predict \(8 runs\): [\w ]+ \(.*\), with \d+\.\d % of the test rows", best_of(ranked[1])
    )


def test_guarantees(contents: ComparisonReportContents) -> None:
    table = guarantees_table(contents.guarantees)
    assert table is not None
    assert table.rows == (("PacBayes", "75.00", "50.00", "100", "4", "1", "2"),)
    assert guarantees_table([]) is None


def test_the_best_rule_in_a_sentence(ranked: list[Leaderboard]) -> None:
    said = best_of(ranked[0])
    best = next(row for row in ranked[0].best if row["rule"] not in REFERENCES)
    assert said.startswith(f"Numbers to predict (16 runs): {best['rule']} (")
    assert "a fixed number of labels" in said
    assert "; a stop at the first step " in said
    only = [score for score in judge(RunCase("wine", "logistic", 0)) if score.rule in ("Oracle", "Never")]
    assert best_of(boards(rows(only), resamples=5)[0]) == "Classes to predict (1 run): references only."


def test_every_figure_is_there(drawn: dict[str, Sketch]) -> None:
    assert list(drawn) == [
        "regret-regression",
        "regret-classification",
        "regret-all",
        "labels-gp",
        "labels-ridge",
        "labels-logistic",
        "stops-diabetes",
        "stops-friedman",
        "stops-wine",
        "stops-my_file.csv",
    ]
    assert all(each.title and each.caption and each.alt for each in drawn.values())


@pytest.mark.parametrize("part", some([0, 1, 2], every=3))
def test_no_words_lie_on_others_or_are_cut_off(drawn: dict[str, Sketch], part: int) -> None:
    for sketch in list(drawn.values())[part::3]:
        require_readable(sketch.figure)


def test_curves_of_regret_are_those_of_the_best_rules_and_the_references(
    drawn: dict[str, Sketch], ranked: list[Leaderboard]
) -> None:
    (axis,) = drawn["regret-classification"].figure.axes
    names = [line.get_label() for line in axis.lines]
    assert len(names) == 11
    assert names[-3:] == [
        f"{row['rule']}, {row['setting']}" if row["setting"] != "reference" else row["rule"]
        for row in ranked[1].best
        if row["rule"] in ("Budget", "Never", "RandomStop")
    ]
    assert "of the best 8 rules, " in drawn["regret-classification"].caption
    never = next(line for line in axis.lines if line.get_label() == "Never")
    assert list(never.get_xdata()) == list(RATIOS)
    regrets = [list(row["regret"].values()) for row in ranked[1].shown("Never", "reference")]
    assert never.get_ydata() == pytest.approx(np.mean(regrets, axis=0))
    # Without colours lines still differ, by their marks or their dashes.
    looks = [(line.get_marker(), line._unscaled_dash_pattern) for line in axis.lines]
    assert len(set(map(str, looks))) == len(looks)


def test_every_rule_with_settings_has_a_panel_with_its_default_marked(
    drawn: dict[str, Sketch], judged: list[RuleScore]
) -> None:
    panels = [axis for axis in drawn["labels-gp"].figure.axes if axis.get_visible()]
    names = [axis.get_title(loc="left") for axis in panels]
    swept = {score.rule for score in judged if score.case.model == "gp" and len(score.settings) > 1}
    assert set(names) == swept - REFERENCES
    marked = {
        name for name, axis in zip(names, panels, strict=True) if any(line.get_marker() == "D" for line in axis.lines)
    }
    assert set(names) - marked == {"ExpectedCost", "LabelWorth", "ErrorStability of costs"}
    points = {
        point["value"]: point for point in curves(judged) if (point["rule"], point["model"]) == ("MaxVariance", "gp")
    }
    (mark,) = [line for line in panels[names.index("MaxVariance")].lines if line.get_marker() == "D"]
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (points[0.1]["labels"], points[0.1]["error"])


def test_stops_are_where_the_rows_say(drawn: dict[str, Sketch], ranked: list[Leaderboard]) -> None:
    (axis,) = drawn["stops-wine"].figure.axes
    names = [label.get_text() for label in axis.get_yticklabels()]
    best = row_of(ranked[1], "StabilizingPredictions")
    y = names.index(f"StabilizingPredictions, {best['setting']}")
    expected = [
        row["labels"] for row in ranked[1].shown("StabilizingPredictions", best["setting"]) if row["data"] == "wine"
    ]
    marks = [line for line in axis.lines if line.get_marker() in ("o", "^") and set(line.get_ydata()) == {y}]
    assert sorted(x for line in marks for x in line.get_xdata()) == sorted(expected)
    assert [name.rpartition(", ")[0] for name in names[-4:]] == sorted(
        ("Budget", "PoolFraction", "CostLimit", "TimeLimit"), key=[row["rule"] for row in ranked[1].best].index
    )
    assert len(axis.texts) == len(names)


def test_a_stop_at_once_has_no_strip_and_takes_no_room() -> None:
    only = [score for score in judge(RunCase("wine", "logistic", 0)) if score.rule in ("Budget", "AtOnce", "Never")]
    (board,) = boards(rows(only), resamples=5)
    least = min(row["labels"] for row in board.rows if row["rule"] != "AtOnce")
    assert least > min(row["labels"] for row in board.rows)
    with plain_style():
        (strips,) = [sketch for sketch in sketches([board], curves(only)) if sketch.name == "stops-wine"]
    (axis,) = strips.figure.axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["Budget, default"]
    assert axis.get_xlim()[0] == pytest.approx(0.93 * least)
    assert "AtOnce" not in strips.alt


def test_a_single_run_and_a_single_rule_are_enough() -> None:
    for wanted in (("ErrorStability", "Oracle", "Never"), ("Never",), ("ErrorStability",)):
        only = [score for score in judge(RunCase(HOSTILE, "logistic", 0)) if score.rule in wanted]
        with plain_style():
            for sketch in sketches(boards(rows(only), resamples=5), curves(only)):
                sketch.figure.draw_without_rendering()
                assert "/" not in sketch.name


def test_the_same_runs_give_the_same_bytes_and_nothing_is_cut_off(tmp_path: Path) -> None:
    given = judge(RunCase("wine", "logistic", 0))
    first, second = (
        draw_comparison(boards(rows(given), resamples=5), curves(given), tmp_path / name) for name in ("one", "two")
    )
    assert [each.name for each in first] == ["regret-classification", "labels-logistic", "stops-wine"]
    for one, other in zip(first, second, strict=True):
        assert one.png.read_bytes() == other.png.read_bytes()
        assert one.pdf.read_bytes() == other.pdf.read_bytes()
        pixels = imread(one.png)[..., :3].min(axis=2)
        edges = [pixels[:2], pixels[-2:], pixels[:, :2], pixels[:, -2:]]
        assert min(edge.min() for edge in edges) > 0.99


def test_without_matplotlib_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"drawing figures needs matplotlib.*-m pip install .*'matplotlib>="):
        draw_comparison([], [], tmp_path)


def test_the_page_holds_everything_once_and_needs_nothing_from_elsewhere(contents: ComparisonReportContents) -> None:
    page = report(contents)
    read = Reader(page)
    for table in contents.tables():
        assert f"<caption><span>{escape(table.title)}</span></caption>" in page
        for row in table.rows:
            assert all(cell in read.text for cell in row)
    assert read.alts == [figure.alt for figure in contents.figures]
    for words in (
        "adult.data is missing",
        "There is something to know.",
        "suffice compare --seeds 2",
        "No rule sees a later step",
        "in runs of the same model with as many labels at a time",
        "AtOnce: a stop at the first step.",
        "The geometric mean of the cost over that of the best stop, less 1.",
    ):
        assert words in read.text
    assert all(address.startswith(("#", "data:image/png;base64,")) for address in read.addresses)
    assert not {"script", "link"} & set(read.tags)
    assert not [word for word in ("http://", "https://", "url(", "@import") if word in page]
    inside = {address[1:] for address in read.addresses if address.startswith("#")}
    assert inside <= set(read.ids)
    assert len(read.ids) == len(set(read.ids))


def test_notes_that_hold_for_several_tables_are_said_once(contents: ComparisonReportContents) -> None:
    assert Reader(report(contents)).text.count("the intervals hold 90 % of the means") == 1


def test_without_figures_classes_or_gaps_their_parts_are_left_out(ranked: list[Leaderboard]) -> None:
    read = Reader(report(ComparisonReportContents(ranked[:1])))
    assert {"summary", "protocol", "boards", "data", "settings", "reading"} <= set(read.ids)
    assert not {"regret", "labels", "stops", "guarantees", "skipped", "provenance"} & set(read.ids)


def test_whatever_a_name_holds_it_stays_text(contents: ComparisonReportContents) -> None:
    given = boards(rows(judge(RunCase(HOSTILE, "logistic", 0, variant=HOSTILE))), resamples=5)
    hostile = ComparisonReportContents(
        given,
        [replace(contents.figures[0], title=HOSTILE, caption=HOSTILE, alt=HOSTILE)],
        [{**contents.guarantees[0], "bound": HOSTILE}],
        [(HOSTILE, HOSTILE)],
        [HOSTILE],
        [(HOSTILE, HOSTILE)],
    )
    read = Reader(report(hostile))
    assert "script" not in read.tags
    assert read.alts == [HOSTILE]
    assert read.text.count(HOSTILE) >= 8


def test_the_page_is_always_the_same_and_says_what_keeps_it_from_being_written(
    contents: ComparisonReportContents, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    write_report(path, contents)
    assert path.read_text() == report(contents) == report(contents)
    with pytest.raises(SufficeError, match="cannot be written"):
        write_report(tmp_path / "missing" / "report.html", contents)
