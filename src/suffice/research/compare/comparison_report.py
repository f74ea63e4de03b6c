"""The report of a comparison: one self-contained HTML page."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from suffice.recommendation.stopping_costs import RATIOS
from suffice.report.figure_style import Drawn
from suffice.report.html_page import ReportTable, page_figure, rendered, write_page
from suffice.research.compare.comparison_tables import (
    REFERENCES,
    REGRET,
    Leaderboard,
    amount,
    by_data_table,
    by_variation_table,
    guarantees_table,
    leaderboard_table,
    runs_of,
    runs_table,
    settings_table,
)
from suffice.research.compare.leaderboard import Row

_TITLE: Final = "When to stop labelling: rules compared on the same runs"
_PROTOCOL: Final = (
    "Each run simulates active learning: a model starts from a few labels drawn at random, asks for the label that it "
    "expects to learn most from, learns, and so on, on a pool whose labels are known. Everything that a stopping rule "
    "may look at is recorded on the way, together with the error on test rows that neither model nor rule ever sees.",
    "Then every rule sees the same recorded runs, step by step, and says where it would have stopped. No rule sees "
    "a later step. Where the model has learned its hyper-parameters again, a rule starts over, on the past as it looks "
    "with these.",
    "Stopping at a step costs the labels bought until then, the first ones too, and so much for the error above the "
    f"least of the run. What an error of 1 costs is varied from {RATIOS[0]:,g} labels to {RATIOS[-1]:,g}, so that the "
    "best place to stop goes from the first labels to the end. A rule that never stops pays for the whole run. One "
    "that needs labels to validate on pays for these too.",
    "A threshold is never chosen on the data set that it is judged on: it is the one of least typical regret on the "
    "other data sets, in runs of the same model with as many labels at a time, either one for all costs (one "
    "threshold) or one for each (per cost). Beside its own settings a rule may be set to stop at once or never: a "
    "person who knows that labels or errors are expensive needs no rule for that. Default is the value of the "
    "literature. Rules of costs take the costs of labels and errors, and have nothing to choose. A leaderboard shows "
    "each rule in the way that did best; this choice was made after the results were seen, and all settings are listed "
    "below.",
)
_TERMS: Final = (
    ("Relative regret", REGRET.partition(": ")[2]),
    (
        "Typical",
        "The geometric mean of the cost over that of the best stop, less 1. A few runs with a very bad stop rule the "
        "mean; they do not rule this.",
    ),
    (
        "Error",
        "That of the averaged prediction on the test rows: the mean squared error for numbers, the share of wrong "
        "predictions for classes. Regret counts it.",
    ),
    (
        "First good step",
        "The first step at which the error, smoothed over 5 % of the steps, is within 5 % of its least. Where errors "
        "are cheap it is right to stop before it; so an early stop is not always a bad one.",
    ),
    (
        "References",
        "Oracle: the best stop, known only afterwards. RandomStop: a step drawn at random. AtOnce: a stop at the first "
        "step. Never: all labels. Budget, PoolFraction, CostLimit and TimeLimit look at no model; their settings are "
        "chosen as those of the rules are.",
    ),
    (
        "Interval",
        "The middle 90 % of the means that come out if data sets, and seeds within each, are drawn again with "
        "replacement. With few data sets it is wide, and should be.",
    ),
    (
        "To the first",
        "The difference to the rule of rank 1 over the same runs, and its interval; one that lies above 0 as a whole "
        "says that the first rule is better beyond the luck of the draw.",
    ),
)
#: What the names of figures begin with, the heading over them, and how to read them.
_FIGURES: Final = {
    "regret": (
        "Dear labels, dear errors",
        "On the left of each figure labels are dear, and it is best to stop early; on the right errors are dear. At a "
        "regret of 1 the stop costs twice what the best stop of the run would have cost.",
    ),
    "labels": (
        "Labels against error",
        "A rule is the better the nearer its curve, from its loosest setting to its strictest, comes to the lower "
        "left. One whose curve lies on that of a fixed budget does no better than a number of labels set beforehand. "
        "Labels are counted in units of those at the first good step, errors in units of the least of the run.",
    ),
    "stops": (
        "Where rules stop",
        "Each mark is a run; a hollow one did not stop, and has paid for all its labels. Each rule is set as in the "
        "leaderboard (after the comma); where that differs from cost to cost, for errors that cost 1000 labels. So is "
        "the best stop, the one of least cost. The first good step is where it is whatever labels cost. A rule that "
        "needs labels to validate on is charged for them.",
    ),
}


@dataclass(frozen=True, eq=False)
class ComparisonReportContents:
    """Contents of the page.

    Attributes:
        boards: The rules ranked, kind by kind; at least one.
        figures: Figures in their files.
        guarantees: What :func:`suffice.research.compare.judging.coverage_summary` made; nothing without classes.
        skipped: Runs that are missing, each with the reason.
        notes: What else one has to know, in sentences.
        provenance: How it was made, name by name: the command, versions. No date, so that the same runs give the same
            page.
    """

    boards: Sequence[Leaderboard]
    figures: Sequence[Drawn] = ()
    guarantees: Sequence[Row] = ()
    skipped: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()
    provenance: Sequence[tuple[str, str]] = ()

    @property
    def rows(self) -> list[Row]:
        """All rows, kind by kind."""
        return [row for board in self.boards if board.key != "all" for row in board.rows]

    def tables(self) -> list[ReportTable]:
        """Every table of the page, in its order."""
        found: list[ReportTable | None] = [runs_table(self.rows)]
        found += [leaderboard_table(board) for board in self.boards]
        kinds = [board for board in self.boards if board.key != "all"]
        found += [make(board) for board in kinds for make in (by_data_table, by_variation_table)]
        found += [guarantees_table(self.guarantees), *map(settings_table, kinds)]
        found += [leaderboard_table(board, every=True) for board in self.boards]
        return [table for table in found if table is not None]


def write_report(path: Path, contents: ComparisonReportContents) -> None:
    """Write the page, whole or not at all.

    Raises:
        SufficeError: It cannot be written, or a figure's file cannot be read.
    """
    write_page(path, report(contents))


def report(contents: ComparisonReportContents) -> str:
    """The page as text."""
    tables = contents.tables()
    figures = {
        kind: [page_figure(each) for each in contents.figures if each.name.startswith(kind)] for kind in _FIGURES
    }
    drawn = {kind: own for kind, own in figures.items() if own}
    guarantees = _tables_named(tables, "guarantees")
    return rendered(
        "comparison_report.html.jinja",
        package="suffice.research",
        title=_TITLE,
        headings={
            "summary": "In short",
            "protocol": "What was compared, and how",
            "boards": "Leaderboards",
            **{kind: _FIGURES[kind][0] for kind in drawn},
            "data": "Data set by data set",
            **({"guarantees": "Guarantees"} if guarantees else {}),
            "settings": "Settings",
            "reading": "How to read it",
            **({"skipped": "Left out"} if contents.skipped else {}),
            **({"provenance": "How this page was made"} if contents.provenance else {}),
        },
        best=[best_of(board) for board in contents.boards],
        regret=REGRET,
        notes=contents.notes,
        protocol=_PROTOCOL,
        runs=_tables_named(tables, "runs"),
        leaderboards=_tables_named(tables, "leaderboard-"),
        figures={kind: (_FIGURES[kind][1], own) for kind, own in drawn.items()},
        by_data=_tables_named(tables, "by-"),
        guarantees=guarantees,
        settings=[*_tables_named(tables, "chosen-"), *_tables_named(tables, "settings-")],
        terms_of_page=_TERMS,
        skipped=contents.skipped,
        provenance=contents.provenance,
    )


def best_of(board: Leaderboard) -> str:
    """Which rule does best on a board, in a sentence, and what that is worth."""
    ranked = {row["rule"]: row for row in board.best}
    rules = [row for row in board.best if row["rule"] not in REFERENCES]
    runs = len(runs_of(board.rows))
    over = f"{board.title} ({'1 run' if runs == 1 else f'{runs} runs'})"
    if not rules:
        return f"{over}: references only."
    first = rules[0]
    wrong = ""
    if board.key == "classification" and first["wrong_share"] is not None:
        wrong = f", with {100.0 * first['wrong_share']:.1f} % of the test rows predicted wrong at its stops,"
    others = [f"{_set(first)}{wrong} has the least mean regret of all rules, {amount(first['mean'])}"]
    others += [f"{_set(row)} has {amount(row['mean'])}" for row in rules[1:2]]
    words = {
        "Budget": "a fixed number of labels",
        "RandomStop": "a stop at random",
        "AtOnce": "a stop at the first step",
        "Never": "no stop",
    }
    others += [f"{said} {amount(ranked[name]['mean'])}" for name, said in words.items() if name in ranked]
    middle = min(rules, key=lambda row: row["median"])
    return f"{over}: {'; '.join(others)}. The least median is that of {_set(middle)}, {amount(middle['median'])}."


def _set(row: Row) -> str:
    """A rule and how it is set, in a sentence."""
    said = {"default": "at its default", "one threshold": "one threshold", "per cost": "a threshold per cost"}
    return f"{row['rule']} ({said.get(row['setting'], 'told the costs')})"


def _tables_named(tables: Sequence[ReportTable], beginning: str) -> list[ReportTable]:
    """Tables whose names begin alike; a note that several of them share is kept for the first only."""
    found: list[ReportTable] = []
    notes = set()
    for table in tables:
        if table.name.startswith(beginning):
            found.append(replace(table, note="") if table.note in notes else table)
            notes.add(table.note)
    return found
