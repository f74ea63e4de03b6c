"""The table of labels: newest first, a page at a time, searched where that is wanted."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from suffice.presentation.shortening import item_summary
from suffice.session.events import Label, moment
from suffice.session.items import Item
from suffice.session.project import Project
from suffice.session.state import Opinion, ProjectState
from suffice.web.schemas import LabelRow, LabelsAnswer, Only, OpinionAnswer

# Items that are read at a time where a text is searched for; each may be large.
_CHUNK: Final = 200


class TableQuery(NamedTuple):
    """Which rows are wanted.

    Attributes:
        offset: Rows to leave out.
        limit: Rows at most.
        search: A text that has to occur in the id, the summary, the label or the name; empty for all.
        only: Which kind of rows.
    """

    offset: int = 0
    limit: int = 50
    search: str = ""
    only: Only = "all"


class _TableEntry(NamedTuple):
    item: int
    label: Label | None
    person: str
    at: float
    corrected: bool
    opinions: tuple[Opinion, ...]


def label_table(project: Project, query: TableQuery) -> LabelsAnswer:
    """Rows of the table, and how many there are in all.

    Args:
        project: The project.
        query: Which rows.
    """
    with project.lock:
        entries = _entries(project.state(), query.only)
    if query.search.strip():
        entries = list(_found(project, entries, query.search.strip().casefold()))
    page = entries[query.offset : query.offset + query.limit]
    items = project.items([entry.item for entry in page])
    rows = [_row(entry, item, project.settings.main) for entry, item in zip(page, items, strict=True)]
    return LabelsAnswer(total=len(entries), rows=rows)


def _entries(state: ProjectState, only: Only) -> list[_TableEntry]:
    """Rows of a kind, the newest first."""
    entries: list[_TableEntry] = []
    if only != "skipped":
        entries += [_TableEntry(*each) for each in state.labelled()]
    if only in {"all", "skipped"}:
        entries += [_TableEntry(each.item, None, each.person, each.at, False, ()) for each in state.skipped()]
    if only == "corrected":
        entries = [each for each in entries if each.corrected]
    if only == "disagreed":
        entries = [each for each in entries if len({opinion.label for opinion in each.opinions}) > 1]
    # Of two at the same moment the later one is the newer.
    entries.reverse()
    return sorted(entries, key=lambda entry: -entry.at)


def _found(project: Project, entries: Sequence[_TableEntry], text: str) -> Iterator[_TableEntry]:
    for start in range(0, len(entries), _CHUNK):
        chunk = entries[start : start + _CHUNK]
        items = project.items([entry.item for entry in chunk])
        for entry, item in zip(chunk, items, strict=True):
            words = (
                item.id,
                item_summary(item.cells, project.settings.main),
                "" if entry.label is None else str(entry.label),
                entry.person,
            )
            if any(text in word.casefold() for word in words):
                yield entry


def _row(entry: _TableEntry, item: Item, main: str | None) -> LabelRow:
    return LabelRow(
        item=entry.item,
        id=item.id,
        summary=item_summary(item.cells, main),
        label=entry.label,
        person=entry.person,
        at=moment(entry.at),
        corrected=entry.corrected,
        skipped=entry.label is None,
        opinions=[OpinionAnswer(person=each.person, label=each.label, at=moment(each.at)) for each in entry.opinions],
    )
