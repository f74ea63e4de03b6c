"""The last parts of the report: how it was done, and a few of the items with their labels."""

import inspect
import re
from typing import Any, Final

import suffice
from suffice.errors import InvalidValueError
from suffice.presentation.number_format import count, number, percent, utc_time
from suffice.presentation.shortening import item_summary, shortened
from suffice.report.labelling.contents import ProjectReportContents
from suffice.report.table import ReportTable
from suffice.session.models import KNOWN

_KIND_OF_ITEMS: Final = {"table": "rows of a table", "text": "texts", "image": "images"}
#: Classes that are named, and characters of a note on the data.
_MOST_CLASSES: Final = 30
_LONGEST_NOTE: Final = 1000


def method_pairs(told: ProjectReportContents) -> list[tuple[str, str]]:
    """Everything that somebody needs to do it again, name by name."""
    settings, size = told.settings, told.status["size"]
    data = f"{shortened(settings.source) or 'not named'}: {count(size, 'item')}, {_KIND_OF_ITEMS[settings.shown]}"
    pairs = [
        ("Data", data),
        ("Label", _label_words(told)),
        *(("What was done to the data", shortened(note, _LONGEST_NOTE)) for note in settings.notes),
        ("Model", KNOWN[settings.model].words if settings.model in KNOWN else settings.model),
        ("Stopping rule", _rule_words(told)),
        ("Start", f"{count(settings.initial, 'label')} of items drawn at random, then the model chose"),
    ]
    if settings.overlap:
        pairs.append(("Second opinions", f"asked for on {percent(settings.overlap)} of the items"))
    return [
        *pairs,
        ("Seed of all randomness", str(settings.seed)),
        *([("Project made", utc_time(told.made))] if told.made else []),
        ("Program", f"suffice {suffice.__version__}"),
    ]


def _label_words(told: ProjectReportContents) -> str:
    settings, target = told.settings, shortened(told.settings.target, 80)
    if not settings.classes:
        return f"{target}, a number"
    names = [shortened(name, 60) for name in settings.classes[:_MOST_CLASSES]]
    rest = len(settings.classes) - len(names)
    more = f" and {rest:,} more" if rest else ""
    return f"{target}, one of {len(settings.classes):,} classes: {', '.join(names)}{more}"


def _rule_words(told: ProjectReportContents) -> str:
    """The rule, what it does, and how it is set."""
    try:
        rule = told.settings.criterion()
    except InvalidValueError:
        # A rule of the user's own, which is not installed where the report is made.
        return told.rule
    meaning = " ".join((inspect.getdoc(type(rule)) or "").split("\n\n")[0].split())
    set_to = ", ".join(f"{name} {_parameter_words(value)}" for name, value in rule.state_dict()["params"].items())
    plain = re.sub(r":\w+:|``?", "", meaning)
    return f"{type(rule).__name__}{f' ({set_to})' if set_to else ''}. {plain}".strip()


def _parameter_words(value: Any) -> str:
    if isinstance(value, dict) and "rule" in value:
        return str(value["rule"])
    if isinstance(value, list):
        return " and ".join(map(_parameter_words, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) else "none" if value is None else str(value)


def example_table(told: ProjectReportContents) -> ReportTable:
    """The first items with their labels."""
    rows = tuple(
        (
            shortened(item.id, 60),
            item_summary(item.cells, told.settings.main),
            shortened(each.label, 80) if isinstance(each.label, str) else number(each.label),
            each.person,
        )
        for item, each in told.examples
    )
    title = "The first item" if len(rows) == 1 else f"The first {len(rows)} items"
    head = ("id", "item", shortened(told.settings.target, 80), "labelled by")
    return ReportTable(
        "examples", title, head, rows, "Long texts are cut; the whole is in the exported file of labels."
    )
