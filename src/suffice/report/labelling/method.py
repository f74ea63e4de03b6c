"""The last parts of the report: how it was done, and a few of the items with their labels."""

import inspect
import re
from typing import Any, Final

import suffice
from suffice.errors import InvalidValueError
from suffice.models.factory import MODEL_FAMILIES, model_description
from suffice.report.labelling.contents import Contents
from suffice.report.labelling.saying import count, cut, day, number, percent
from suffice.report.page import pairs_html
from suffice.report.table import Table
from suffice.session.items import Item

_SHOWN: Final = {"table": "rows of a table", "text": "texts", "image": "images"}
#: Classes that are named, and characters of what is said of the data.
_MOST_CLASSES: Final = 30
_LONGEST_NOTE: Final = 1000


def method(told: Contents) -> str:
    """Everything that somebody needs to do it again."""
    settings, size = told.settings, told.status["size"]
    pairs = [
        ("Data", f"{cut(settings.source) or 'not named'}: {count(size, 'item')}, {_SHOWN[settings.shown]}"),
        ("Label", _label(told)),
        *(("What was done to the data", cut(note, _LONGEST_NOTE)) for note in settings.notes),
        ("Model", model_description(settings.model) if settings.model in MODEL_FAMILIES else settings.model),
        ("Stopping rule", _rule(told)),
        ("Start", f"{count(settings.initial, 'label')} of items drawn at random, then the model chose"),
    ]
    if settings.overlap:
        pairs.append(("Second opinions", f"asked for on {percent(settings.overlap)} of the items"))
    pairs += [
        ("Seed of all randomness", str(settings.seed)),
        *([("Project made", day(told.made))] if told.made else []),
        ("Program", f"suffice {suffice.__version__}"),
    ]
    return pairs_html(pairs)


def _label(told: Contents) -> str:
    settings, target = told.settings, cut(told.settings.target, 80)
    if not settings.classes:
        return f"{target}, a number"
    names = [cut(name, 60) for name in settings.classes[:_MOST_CLASSES]]
    rest = len(settings.classes) - len(names)
    more = f" and {rest:,} more" if rest else ""
    return f"{target}, one of {len(settings.classes):,} classes: {', '.join(names)}{more}"


def _rule(told: Contents) -> str:
    """The rule, what it does, and how it is set."""
    try:
        rule = told.settings.criterion()
    except InvalidValueError:
        # Somebody's own rule, which is not there where the report is made.
        return told.rule
    meaning = " ".join((inspect.getdoc(type(rule)) or "").split("\n\n")[0].split())
    set_to = ", ".join(f"{name} {_value(value)}" for name, value in rule.state_dict()["params"].items())
    plain = re.sub(r":\w+:|``?", "", meaning)
    return f"{type(rule).__name__}{f' ({set_to})' if set_to else ''}. {plain}".strip()


def _value(value: Any) -> str:
    if isinstance(value, dict) and "rule" in value:
        return str(value["rule"])
    if isinstance(value, list):
        return " and ".join(map(_value, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value) if isinstance(value, float) else "none" if value is None else str(value)


def examples(told: Contents) -> str:
    """The first items with their labels."""
    rows = tuple(
        (cut(item.id, 60), _summary(item, told), _shown(each.label), each.person) for item, each in told.examples
    )
    what = "The first item" if len(rows) == 1 else f"The first {len(rows)} items"
    note = "Long texts are cut; the whole is in the exported file of labels."
    return Table("examples", what, ("id", "item", cut(told.settings.target, 80), "labelled by"), rows, note).html()


def _summary(item: Item, told: Contents) -> str:
    """What a person saw of an item, in a line."""
    cells = dict(item.cells)
    main = told.settings.main
    if main is not None and main in cells:
        return cut(cells[main])
    # Of each cell no more than can be shown is looked at.
    return cut(", ".join(f"{name}: {value[:400]}" for name, value in item.cells[:40] if value))


def _shown(label: str | float) -> str:
    return cut(label, 80) if isinstance(label, str) else number(label)
