"""The part of the report on the labels: how many of which kind, by whom, when, and how far people agree."""

from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

import numpy as np

from suffice.presentation.messages import agreement_sentence, corrections_and_skips, given_and_imported
from suffice.presentation.number_format import number, percent, utc_time
from suffice.presentation.shortening import shortened
from suffice.presentation.svg_chart import ticks
from suffice.report.labelling.contents import ProjectReportContents
from suffice.report.table import ReportTable
from suffice.session.events import moment

#: Rows of a table of counts, and of one of people.
_MOST_ROWS: Final = 40
#: About so many bins show how numbers are distributed.
_BINS: Final = 9
_CHOSEN: Final = "After the first ones the model chose the items, so their shares are not those of all items."


class BarRow(NamedTuple):
    """A row of a table of counts.

    Attributes:
        name: What was counted.
        labels: How often, as text.
        share: Share of all, as text.
        width: Length of the bar, in percent of the longest.
    """

    name: str
    labels: str
    share: str
    width: float


class CountBars(NamedTuple):
    """A table of counts with a bar for each.

    Attributes:
        title: What is counted.
        name: Heading of the column of names.
        rows: The rows.
        note: What one has to know to read it.
    """

    title: str
    name: str
    rows: list[BarRow]
    note: str


def labelling_sentences(told: ProjectReportContents) -> list[str]:
    """What was labelled and when, how far people agree, and how numbers are distributed."""
    if not told.labelled:
        return ["Nothing is labelled yet."]
    times = [each.at for each in told.given] or [0.0]
    alike = told.status["agreement"]
    said = [
        given_and_imported(
            len(told.given),
            moment(min(times)),
            moment(max(times)),
            imported=len(told.labelled) - len(told.given),
            source=told.settings.source,
        ),
        corrections_and_skips(sum(each.corrected for each in told.labelled), told.status["n_skipped"]),
        agreement_sentence(alike)
        if alike is not None
        else "No item was labelled by two people, so nothing can be said about how far people agree.",
    ]
    if not told.settings.classes:
        values = [float(each.label) for each in told.labelled]
        least, most = number(min(values)), number(max(values))
        said.append(
            f"Half of the labels are {number(median(values))} or less; the least is {least}, the largest {most}."
        )
    return said


def count_bars(told: ProjectReportContents) -> CountBars | None:
    """How many labels of each class there are, or how the numbers are distributed; None where that cannot be told."""
    if not told.labelled:
        return None
    return _class_bars(told) if told.settings.classes else _number_bars(told)


def _class_bars(told: ProjectReportContents) -> CountBars:
    counts = sorted(told.status["classes"], key=lambda each: -each["count"])
    note = _chosen_note(told)
    if missing := [each["name"] for each in counts if not each["count"]]:
        some = ", ".join(shortened(name, 40) for name in missing[:10]) + (", …" if len(missing) > 10 else "")
        note += f"{' ' * bool(note)}No item is labelled {some} so far: of such a class the model knows nothing."
    if len(counts) > _MOST_ROWS:
        note = f"The {_MOST_ROWS} most frequent of {len(counts)} classes. {note}"
    rows = [(shortened(each["name"], 80), each["count"]) for each in counts[:_MOST_ROWS]]
    return _bars("Labels of each class", told, rows, note)


def _number_bars(told: ProjectReportContents) -> CountBars | None:
    values = [float(each.label) for each in told.labelled]
    low, high = min(values), max(values)
    # So far apart, or so close, they cannot be put into bins.
    if not np.isfinite(high - low) or high - low <= 1e-9 * max(abs(low), abs(high)):
        return None
    edges = ticks(low, high, _BINS)
    counted, _ = np.histogram(values, edges)
    names = [f"{number(start)} to {number(end)}" for start, end in pairwise(edges)]
    rows = [(name, int(each)) for name, each in zip(names, counted, strict=True)]
    return _bars("How the labels are spread", told, rows, _chosen_note(told))


def _chosen_note(told: ProjectReportContents) -> str:
    """What has to be known of shares among labels, once the model chooses."""
    return _CHOSEN if len(told.given) > told.settings.initial else ""


def _bars(title: str, told: ProjectReportContents, counts: list[tuple[str, int]], note: str) -> CountBars:
    most, total = max((each for _, each in counts), default=0) or 1, sum(each for _, each in counts) or 1
    rows = [BarRow(name, f"{each:,}", percent(each / total), 100.0 * each / most) for name, each in counts]
    return CountBars(title, shortened(told.settings.target, 80), rows, note)


def people_table(told: ProjectReportContents) -> ReportTable:
    """Who labelled how much."""
    people = [each for each in told.status["people"] if each["labels"]]
    rows = tuple(
        (
            f"came with the data ({shortened(each['name'])})" if each["name"] == told.settings.source else each["name"],
            str(each["labels"]),
            utc_time(each["last"]),
        )
        for each in people[:_MOST_ROWS]
    )
    note = "A second opinion on an item counts as a label here."
    if len(people) > _MOST_ROWS:
        note = f"The {_MOST_ROWS} of {len(people)} people who labelled most. {note}"
    return ReportTable("people", "Who labelled", ("person", "labels", "last seen"), rows, note)
