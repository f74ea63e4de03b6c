"""The part of the report on the labels: how many of which kind, by whom, when, and how far people agree."""

from html import escape
from itertools import pairwise
from statistics import median
from typing import Final

import numpy as np

from suffice.report.labelling.chart import ticks
from suffice.report.labelling.contents import Contents
from suffice.report.labelling.saying import count, cut, day, number, percent
from suffice.report.table import Table
from suffice.session.events import moment

#: Rows of a table of counts, and of one of people.
_MOST_ROWS: Final = 40
#: About so many bins show how numbers are spread.
_BINS: Final = 9
_CHOSEN: Final = "After the first ones the model chose the items, so their shares are not those of all items."


def labelled(told: Contents) -> str:
    """What was labelled, by whom and when."""
    if not told.labelled:
        return "<p>Nothing is labelled yet.</p>"
    lines = [_when(told), *_corrections(told), *_agreement(told)]
    parts = [f"<p>{escape(line)}</p>" for line in lines if line]
    parts.append(_counts(told) if told.settings.classes else _numbers(told))
    parts.append(_people(told).html())
    return "\n".join(parts)


def _when(told: Contents) -> str:
    with_data = len(told.labelled) - len(told.given)
    lines = []
    if told.given:
        first, last = (day(moment(end(each.at for each in told.given))) for end in (min, max))
        span = f"on {first}" if first == last else f"from {first} to {last}"
        lines.append(f"{count(len(told.given), 'label')} {'was' if len(told.given) == 1 else 'were'} given {span}.")
    if with_data:
        lines.append(f"{count(with_data, 'label')} came with the data ({cut(told.settings.source)}).")
    return " ".join(lines)


def _corrections(told: Contents) -> list[str]:
    corrected, skipped = sum(each.corrected for each in told.labelled), told.status["n_skipped"]
    lines = [f"{count(corrected, 'label')} {'was' if corrected == 1 else 'were'} corrected."] if corrected else []
    if skipped:
        lines.append(f"{count(skipped, 'item')} {'was' if skipped == 1 else 'were'} skipped.")
    return [" ".join(lines)]


def _agreement(told: Contents) -> list[str]:
    alike = told.status["agreement"]
    if alike is None:
        return ["No item was labelled by two people, so nothing can be said about how far people agree."]
    line = f"Two people labelled {count(alike['both'], 'item')}"
    if alike["kappa"] is not None:
        kappa = f"Cohen's kappa, the agreement beyond chance, is {alike['kappa']:.2f}; 1 would be perfect."
        return [f"{line}, and said the same of {alike['same']:,}. {kappa}"]
    apart = "" if alike["difference"] is None else f"; on average their numbers are {number(alike['difference'])} apart"
    return [f"{line}{apart}."]


def _counts(told: Contents) -> str:
    counts = sorted(told.status["classes"], key=lambda each: -each["count"])
    note = _chosen(told)
    if missing := [each["name"] for each in counts if not each["count"]]:
        some = ", ".join(cut(name, 40) for name in missing[:10]) + (", …" if len(missing) > 10 else "")
        note += f"{' ' * bool(note)}No item is labelled {some} so far: of such a class the model knows nothing."
    if len(counts) > _MOST_ROWS:
        note = f"The {_MOST_ROWS} most frequent of {len(counts)} classes. {note}"
    rows = [(cut(each["name"], 80), each["count"]) for each in counts[:_MOST_ROWS]]
    return bars("Labels of each class", told.settings.target, rows, note=note)


def _numbers(told: Contents) -> str:
    values = [float(each.label) for each in told.labelled]
    low, high = min(values), max(values)
    middle = f"Half of the labels are {number(median(values))} or less"
    words = f"<p>{escape(f'{middle}; the least is {number(low)}, the largest {number(high)}.')}</p>"
    # So far apart, or so close, they cannot be put into bins.
    if not np.isfinite(high - low) or high - low <= 1e-9 * max(abs(low), abs(high)):
        return words
    edges = ticks(low, high, _BINS)
    counted, _ = np.histogram(values, edges)
    names = [f"{number(start)} to {number(end)}" for start, end in pairwise(edges)]
    rows = [(name, int(each)) for name, each in zip(names, counted, strict=True)]
    return f"{words}\n{bars('How the labels are spread', told.settings.target, rows, note=_chosen(told))}"


def _chosen(told: Contents) -> str:
    """What has to be known of shares among labels, once the model chooses."""
    return _CHOSEN if len(told.given) > told.settings.initial else ""


def bars(title: str, name: str, rows: list[tuple[str, int]], *, note: str = "") -> str:
    """A table of counts with a bar for each.

    Args:
        title: What is counted.
        name: What the rows are called.
        rows: Name and count of each.
        note: What else is to be said.
    """
    most, total = max((each for _, each in rows), default=0) or 1, sum(each for _, each in rows) or 1
    body = "\n".join(
        f'<tr><td>{escape(row)}</td><td class="number">{each:,}</td><td class="number">{percent(each / total)}</td>'
        f'<td class="share"><span style="width: {100.0 * each / most:.2f}%"></span></td></tr>'
        for row, each in rows
    )
    said = f'\n<p class="note">{escape(note)}</p>' if note else ""
    return (
        f'<div class="box bars" role="region" tabindex="0" aria-label="{escape(title)}">\n<table>\n'
        f"<caption><span>{escape(title)}</span></caption>\n"
        f'<thead><tr><th scope="col">{escape(cut(name, 80))}</th><th scope="col" class="number">labels</th>'
        f'<th scope="col" class="number">share</th><th scope="col"></th></tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table>\n</div>{said}"
    )


def _people(told: Contents) -> Table:
    people = [each for each in told.status["people"] if each["labels"]]
    rows = tuple(
        (
            f"came with the data ({cut(each['name'])})" if each["name"] == told.settings.source else each["name"],
            str(each["labels"]),
            day(each["last"]),
        )
        for each in people[:_MOST_ROWS]
    )
    note = "A second opinion on an item counts as a label here."
    if len(people) > _MOST_ROWS:
        note = f"The {_MOST_ROWS} of {len(people)} people who labelled most. {note}"
    return Table("people", "Who labelled", ("person", "labels", "last seen"), rows, note)
