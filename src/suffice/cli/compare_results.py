"""What ``suffice compare`` leaves behind, and what it says of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape

from suffice.cli.compare_board import show_board
from suffice.cli.many_runs import provenance
from suffice.errors import MissingExtraError
from suffice.files import write_bytes_whole

if TYPE_CHECKING:
    from suffice.cli.compare import CompareRequest
    from suffice.experiments.compare.board import Row
    from suffice.experiments.compare.judging import JudgedRun
    from suffice.experiments.compare.recording import RecordingJob
    from suffice.experiments.runner import SkippedRun
    from suffice.report.compare.boards import Leaderboard
    from suffice.report.style import Drawn


def write_rows(request: "CompareRequest", rows: "Sequence[Row]") -> None:
    """Write the rows, to the folder and where they were asked for."""
    from suffice.experiments.compare.writing import write_csv, write_json

    write_json(request.out / "rows.json", rows)
    write_csv(request.out / "rows.csv", rows)
    if str(request.json_file) == "-":
        typer.echo((request.out / "rows.json").read_text(), nl=False)
    elif request.json_file is not None:
        write_json(request.json_file, rows)


def write_results(
    request: "CompareRequest",
    boards: "Sequence[Leaderboard]",
    found: "Sequence[JudgedRun]",
    skipped: "Sequence[SkippedRun[RecordingJob]]",
) -> str:
    """Write tables, figures and the report, in place of those of an earlier command.

    Returns:
        Why there are no figures; nothing if there are.
    """
    from suffice.experiments.compare.guarantees import coverage_summary, guarantee_rows
    from suffice.experiments.compare.writing import write_csv
    from suffice.report.compare.page import ComparisonReportContents, write_report

    _clear(request.out)
    held = [(each.case, each.guarantees) for each in found if each.guarantees]
    write_csv(
        request.out / "leaderboard.csv", [{"tasks": board.key, **row} for board in boards for row in board.ranked]
    )
    if held:
        write_csv(
            request.out / "guarantees.csv", [row for case, several in held for row in guarantee_rows(case, several)]
        )
    figures, problem = _figures(request, boards, found)
    contents = ComparisonReportContents(
        boards=boards,
        figures=figures,
        guarantees=coverage_summary(held),
        skipped=[(each.job.name, each.reason) for each in skipped],
        notes=[*_cautions(boards), *([problem] if problem else [])],
        provenance=[*provenance(), ("Runs", f"{len(found)} of {len(request.jobs)}"), ("Settings", _settings(request))],
    )
    for table in contents.tables():
        write_bytes_whole(request.out / "tables" / f"{table.name}.md", table.markdown().encode())
        write_bytes_whole(request.out / "tables" / f"{table.name}.csv", table.csv().encode())
    write_report(request.out / "report.html", contents)
    return problem


def _figures(
    request: "CompareRequest", boards: "Sequence[Leaderboard]", found: "Sequence[JudgedRun]"
) -> "tuple[list[Drawn], str]":
    from suffice.experiments.compare.board import curves
    from suffice.report.compare.figures import draw_comparison

    points = curves([score for each in found for score in each.scores])
    try:
        return draw_comparison(boards, points, request.out / "figures"), ""
    except MissingExtraError as error:
        return [], f"There are no figures: {error}"


#: What the names of files of this command begin with.
_TABLES = ("runs", "leaderboard-", "by-data-", "by-variation-", "guarantees", "chosen-", "settings-")
_FIGURES = ("regret-", "labels-", "stops-")


def _clear(out: Path) -> None:
    """Take away the tables and figures of an earlier command with other runs: they would look like these."""
    for folder, names, endings in (("tables", _TABLES, (".md", ".csv")), ("figures", _FIGURES, (".png", ".pdf"))):
        for path in (out / folder).iterdir():
            if path.name.startswith(names) and path.suffix in endings:
                path.unlink(missing_ok=True)
    for name in ("guarantees.csv", "leaderboard.csv", "report.html"):
        (out / name).unlink(missing_ok=True)


def _settings(request: "CompareRequest") -> str:
    """How the runs were made; what was varied, with all its values."""
    used = list(dict.fromkeys(job.setting for job in request.jobs))
    words = {
        "labels": "labels at most",
        "initial": "drawn at random at the start",
        "pool": "rows to label from at most",
        "test": "rows to test on at most",
        "stop_set": "items of the stop set at most",
        "validation": "labels for rules that validate at most",
    }
    said = [f"{_values(getattr(each, name) for each in used)} {what}" for name, what in words.items()]
    said += [f"label noise {_values(each.noise for each in used)}"]
    shares = [each.imbalance for each in used if each.imbalance is not None]
    said += [f"share of the rarest class {_values(shares)}"] if shares else []
    return "; ".join(said)


def _values(values: Any) -> str:
    return ", ".join(f"{value:g}" for value in dict.fromkeys(values))


def tell(request: "CompareRequest", boards: "Sequence[Leaderboard]", runs: int, problem: str, console: Console) -> None:
    """Show the leaderboards, say what regret means, and where to read more."""
    from suffice.report.compare.boards import REFERENCES
    from suffice.report.compare.tables import MARK, REGRET, leaderboard_table, marked

    references = [marked(rule) for rule in REFERENCES]
    for board in boards:
        show_board(console, leaderboard_table(board, every=request.all_settings), references)
    console.print(f"{REGRET} {MARK} marks references, which look at no model.")
    if not request.all_settings:
        console.print("Each rule is shown in the way to set it that did best; --all-settings shows them all.")
    for note in (*_unmatched(request, boards), *_cautions(boards)):
        console.print(note)
    if problem:
        typer.echo(f"suffice: {problem[0].lower()}{problem[1:]}", err=True)
    counted = "1 run" if runs == 1 else f"{runs} runs"
    console.print(f"{counted}; read {escape(str(request.out / 'report.html'))}")


def _unmatched(request: "CompareRequest", boards: "Sequence[Leaderboard]") -> list[str]:
    """Rules that were asked for by name, and that no run could be judged by."""
    there = {row["rule"] for board in boards for row in board.ranked}
    missing = [rule for rule in request.rules if rule not in there] if request.rules_named else []
    needs = "need what these runs do not have (classes, or numbers)"
    return [f"Left out: {', '.join(missing)}, which {needs}."] if missing else []


def _cautions(boards: "Sequence[Leaderboard]") -> list[str]:
    """What has to be known lest the boards mislead."""
    from suffice.experiments.compare.rules import MADE_ON

    runs = [row for board in boards for row in board.rows]
    own = sorted({row["data"] for row in runs if row["rule"] == "LabelWorth"} & MADE_ON)
    said = []
    if own:
        said.append(f"The constants of LabelWorth were fixed on {', '.join(own)}: how it does there is no test of it.")
    models = {model: {row["data"] for row in runs if row["model"] == model} for model in {r["model"] for r in runs}}
    alone = sorted(model for model, data in models.items() if len(data) == 1)
    if alone:
        said.append(
            f"With one data set for {', '.join(alone)} no threshold could be chosen on another: rules with a threshold "
            "are at their default there, and only rules that are told the costs are set for them."
        )
    return said
