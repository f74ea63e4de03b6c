"""Tables of the paper's runs, against numbers worked out by hand; and that no cell can break out of its form."""

import csv
import io
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from suffice.report.html_page import ReportTable
from suffice_research.data.protocols import PROTOCOLS, PUBLISHED
from suffice_research.paper.outcome import RunOutcome
from suffice_research.paper.paper_report import PaperReportContents, paper_tables, report
from tests.json_schemas import problems
from tests.structure import ROOT

SHOWN = ROOT / "docs" / "measured" / "paper"

HOSTILE = """=cmd|' /C calc'!A0, "<b>a|b</b>" & `x`\nend"""


def run(name: str = "gpr/protein", **changed: object) -> RunOutcome:
    """A run whose error falls from 1.2 to 0.2, and stops at the paper's thresholds after 5, 9 and 19 acquisitions."""
    experiment = PUBLISHED[name]
    thresholds = [f"{each:g}" for each in experiment.thresholds]
    plain = RunOutcome(
        protocol="published",
        model=experiment.model,
        data=experiment.data,
        seed=1,
        arm=None,
        features=9,
        pool=5000,
        initial=experiment.initial,
        steps=30,
        correlation=0.9,
        published_correlation=experiment.correlation,
        stops=dict(zip(thresholds, (5, 9, 19, 2, 3, 4), strict=False)),
        error_first=1.2,
        error_best=0.2,
        error_at_stop=dict(zip(thresholds, (0.7, 0.45, 0.3, 1.0, 1.0, 1.0), strict=False)),
        seconds=1.0,
        ratio=np.ones(30),
        error=np.linspace(1.2, 0.2, 30),
        counted_from=11,
    )
    return replace(plain, **changed)  # type: ignore[arg-type]


def stopping(outcome: RunOutcome, stop: int | None, excess: float = 0.0) -> RunOutcome:
    """The same run with one stop for all thresholds, and the excess error there."""
    at = None if stop is None else 0.2 + excess
    return replace(outcome, stops=dict.fromkeys(outcome.stops, stop), error_at_stop=dict.fromkeys(outcome.stops, at))


def rows(name: str, outcomes: list[RunOutcome]) -> list[dict[str, str]]:
    table = next(each for each in paper_tables(outcomes) if each.name == name)
    return [dict(zip(table.head, row, strict=True)) for row in table.rows]


def test_a_published_run() -> None:
    assert rows("published-correlations", [run()]) == [
        {
            "model": "Gaussian process regression (GPR)",
            "data": "Protein",
            "rows of the pool": "5000",
            "features": "9",
            "steps": "30",
            "correlation": "0.9000",
            "published": "0.9695",
            "difference": "-0.0695",
        }
    ]
    assert rows("published-stops-gpr", [run()]) == [
        {
            "data": "Protein",
            "first error": "1.200",
            "least error": "0.2000",
            "stop at 0.05": "5",
            "error at 0.05": "0.7000",
            "stop at 0.04": "9",
            "error at 0.04": "0.4500",
            "stop at 0.03": "19",
            "error at 0.03": "0.3000",
        }
    ]


def test_the_thresholds_are_the_papers_and_not_those_of_the_scripts() -> None:
    (row,) = rows("published-stops-brr", [run("brr/protein")])
    assert [name for name in row if name.startswith("stop")] == ["stop at 0.02", "stop at 0.015", "stop at 0.01"]


def test_several_seeds_give_median_and_range() -> None:
    given = [run(seed=seed, correlation=value) for seed, value in enumerate((0.5, 0.9, 0.8))]
    given[1] = stopping(given[1], 30, 0.25)
    (row,) = rows("published-correlations", given)
    assert (row["seeds"], row["correlation"], row["difference"]) == ("3", "0.8000 (0.5000 to 0.9000)", "-0.1695")
    (row,) = rows("published-stops-gpr", given)
    assert row["stop at 0.05"] == "5 (5 to 30)"
    assert row["error at 0.05"] == "0.7000 (0.4500 to 0.7000)"


def test_never_is_later_than_all_others() -> None:
    given = [
        stopping(run(protocol="corrected", arm="bought", seed=seed), stop, 0.1 * seed)
        for seed, stop in enumerate((4, 9, None))
    ]
    (row,) = rows("corrected-stops-gpr", given)
    # Ten labels at the start, and one for each of the acquisitions 0 to 9.
    assert row["labels at 0.05"] == "20 (15 to never)"
    assert row["stopped at 0.05"] == "2 of 3"
    assert row["excess at 0.05"] == "0.100 (0.000 to never)"
    (row,) = rows("corrected-stops-gpr", [stopping(each, None) for each in given])
    assert (row["labels at 0.05"], row["stopped at 0.05"], row["excess at 0.05"]) == ("never", "0 of 3", "never")


def test_a_network_buys_five_labels_at_a_time() -> None:
    given = stopping(run("bdnn/mnist", protocol="corrected"), 66)
    (row,) = rows("corrected-stops-bdnn", [given])
    assert row["labels at 0.2"] == "1335"
    assert "hyper-parameters from" not in row


def test_an_error_that_never_fell_has_no_excess() -> None:
    (row,) = rows("corrected-stops-gpr", [run(protocol="corrected", arm="bought", error_first=0.2)])
    assert row["excess at 0.05"] == "no fall"


def test_undefined_correlations_are_said() -> None:
    (row,) = rows("published-correlations", [run(correlation=None)])
    assert (row["correlation"], row["difference"]) == ("undefined", "-")
    given = [run(seed=1, correlation=None), run(seed=2, correlation=float("nan")), run(seed=3)]
    (row,) = rows("published-correlations", given)
    assert row["correlation"] == "0.9000; 2 undefined"


def test_the_same_place_is_compared_across_data_sets() -> None:
    names = ("gpr/power_plant", "gpr/protein", "gpr/gas_emission")
    given = [
        stopping(run(name, protocol="corrected", arm=arm), 7, excess)
        for arm, values in (("bought", (0.1, 0.35, 0.15)), ("outside", (0.1, 0.1, 0.1)))
        for name, excess in zip(names, values, strict=True)
    ]
    bought, *_, outside = rows("corrected-same-place", given)
    assert [bought[name] for name in ("Power plant", "Protein", "Gas emission")] == ["0.100", "0.350", "0.150"]
    assert (bought["hyper-parameters from"], bought["spread"], bought["never stopped"]) == ("bought", "0.250", "none")
    assert (outside["hyper-parameters from"], outside["spread"]) == ("outside", "0.000")

    given[1] = stopping(given[1], None)
    bought = rows("corrected-same-place", given)[0]
    assert (bought["Protein"], bought["never stopped"]) == ("never", "Protein")
    assert bought["spread"] == "0.050 (2 of 3 sets)"


def test_a_single_data_set_is_not_compared() -> None:
    assert not [each for each in paper_tables([run(), run("bdnn/mnist")]) if each.name.endswith("same-place")]


def test_the_cost_of_learning_hyperparameters() -> None:
    bought = [stopping(run(protocol="corrected", arm="bought", seed=seed, error_best=0.3 * seed), 9) for seed in (1, 2)]
    outside = [
        stopping(run(protocol="corrected", arm="outside", seed=seed, error_best=0.2 * seed), 4) for seed in (1, 2)
    ]
    (row,) = rows("corrected-cost", [*bought, *outside])
    assert row["least error, bought"] == "0.4500 (0.3000 to 0.6000)"
    assert row["bought / outside"] == "1.500 (1.500 to 1.500)"
    assert (row["threshold"], row["labels, bought"], row["labels, outside"]) == (
        "0.04",
        "20 (20 to 20)",
        "15 (15 to 15)",
    )
    assert "corrected-cost" not in {each.name for each in paper_tables(bought)}


def test_runs_come_in_the_papers_order_whatever_order_they_are_given_in() -> None:
    given = [run(name, seed=seed) for seed in (2, 1) for name in reversed(list(PUBLISHED))]
    tables = paper_tables(given)
    assert tables == paper_tables(given[::-1])
    names = [row[:2] for row in tables[0].rows]
    assert names[0] == ("Gaussian process regression (GPR)", "Power plant")
    assert names[-1] == ("Bayesian deep neural network (BDNN)", "MNIST")
    assert [model for model, _ in names] == [
        *["Gaussian process regression (GPR)"] * 4,
        *["Bayesian ridge regression (BRR)"] * 4,
        *["Bayesian logistic regression (BLR)"] * 3,
        "Bayesian deep neural network (BDNN)",
    ]


def test_committed_tables_have_the_words_and_numbers_of_the_committed_runs() -> None:
    curves: dict[str, Any] = {"ratio": np.zeros(1), "error": np.zeros(1), "counted_from": 0}
    for protocol, number in (("published", 3), ("corrected", 7)):
        rows = json.loads((SHOWN / f"{protocol}.json").read_text())
        assert problems("reproduce", rows) == []
        given = [RunOutcome(**row, **curves) for row in rows]
        # The published network is in other files than the eleven other runs.
        partial = {"published-correlations", "published-same-place"}
        tables = [each for each in paper_tables(given) if each.name not in partial]
        assert len(tables) == number
        for each in tables:
            assert (SHOWN / f"{each.name}.md").read_text(encoding="utf-8") == each.markdown(), each.name


def test_short_names_of_models_are_spelled_out() -> None:
    for path in SHOWN.glob("*.md"):
        text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        if "In names of runs, gpr is Gaussian process regression" not in text:
            alone = re.sub(r"regression \((GPR|BRR|BLR)\)|neural network \(BDNN\)", "", text)
            assert re.findall(r"(?i)\b(?:gpr|brr|blr|bdnn)\b", alone) == [], path.name


def test_the_time_that_a_run_took_changes_nothing() -> None:
    assert paper_tables([run(seconds=1.0)]) == paper_tables([run(seconds=99.0)])


def test_no_runs_give_no_tables() -> None:
    assert paper_tables([]) == []


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_any_single_run_is_enough(name: str, protocol: str) -> None:
    tables = paper_tables([stopping(run(name, protocol=protocol, correlation=None), None)])
    assert [each.name for each in tables] == [f"{protocol}-correlations", f"{protocol}-stops-{PUBLISHED[name].model}"]
    for table in tables:
        assert {len(row) for row in table.rows} == {len(table.head)}


def test_a_data_set_that_the_paper_does_not_have_comes_last_under_its_own_name() -> None:
    names = [row["data"] for row in rows("published-correlations", [run(data="<new>"), run()])]
    assert names == ["Protein", "<new>"]


def test_csv_is_read_back_as_it_was() -> None:
    table = ReportTable("t", "", ("a,b", 'say "x"'), (("one\ntwo", " padded "), ("-0.5 (-0.6 to 0.1)", "-")))
    text = table.csv()
    assert text.endswith("\r\n")
    assert list(csv.reader(io.StringIO(text, newline=""))) == [list(table.head), *map(list, table.rows)]


@pytest.mark.parametrize("cell", ["=1+1", "+cmd", "-2+3", "@SUM(A1)", "\t=1", "\r=1", HOSTILE])
def test_csv_holds_nothing_that_a_spreadsheet_runs(cell: str) -> None:
    read = list(csv.reader(io.StringIO(ReportTable("t", "", ("x",), ((cell,),)).csv(), newline="")))
    assert read[1] == [f"'{cell}"]


@pytest.mark.parametrize("cell", ["-0.5", "+0.0127", "-1e-05", "-0.5 (-0.6 to never)", "-"])
def test_csv_leaves_numbers_alone(cell: str) -> None:
    assert ReportTable("t", "", ("x",), ((cell,),)).csv() == f"x\r\n{cell}\r\n"


def page_with(table: ReportTable) -> str:
    return report(PaperReportContents("t", tables=[table]))


def test_html_is_escaped_and_numbers_stand_on_the_right() -> None:
    cells = ((HOSTILE, "0.5 (0.4 to never)", "12"), ("b", "-", "x"))
    page = page_with(ReportTable("t", HOSTILE, (HOSTILE, "n", "m"), cells, HOSTILE))
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
    assert '<td class="number">0.5 (0.4 to never)</td><td>12</td>' in page
    assert '<th scope="col" class="number">n</th><th scope="col">m</th>' in page


def test_long_words_are_broken_into_lines() -> None:
    page = page_with(ReportTable("t", "", ("a", "b"), (("short", "long " * 10), ("x", ""))))
    assert '<td>short</td><td class="words">long long' in page


def test_markdown_keeps_its_columns() -> None:
    text = ReportTable("t", "title", ("name", "n"), ((HOSTILE, "12"),), "note").markdown()
    lines = text.splitlines()
    assert lines[3] == "| --- | ---: |"
    assert "<b>" not in text.replace(r"\<b\>", "")
    assert lines[4].replace(r"\|", "").count("|") == 3
    assert lines[-1] == "note"
