"""A labelling project on disk: its items, its journal, and the model that follows it."""

from typing import Any

from suffice.session.insight import ErrorEstimate, LearningStatus, Point, Purchase
from suffice.session.items import Item, Items
from suffice.session.settings import Settings

_LATER = {
    "ConflictError": "project",
    "Project": "project",
    "WriteReceipt": "project",
    "create_project": "making",
    "open_project": "making",
}

__all__ = [
    "ConflictError",
    "ErrorEstimate",
    "Item",
    "Items",
    "LearningStatus",
    "Point",
    "Project",
    "Purchase",
    "Settings",
    "WriteReceipt",
    "create_project",
    "open_project",
]


def __getattr__(name: str) -> Any:
    # These need the extra "label", which not everybody has.
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"suffice.session.{_LATER[name]}"), name)
