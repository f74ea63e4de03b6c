"""Labelling projects on disk: items, journal of events, assignment, background learner, and export."""

from typing import Any

from suffice.project.items import Item, Items
from suffice.project.learning_status import ErrorEstimate, LearningStatus, Point
from suffice.project.settings import Settings

_LATER = {
    "ConflictError": "labelling_project",
    "CreationOptions": "create",
    "Project": "labelling_project",
    "ProjectCheck": "project_check",
    "ProjectGuarantee": "project_check",
    "WriteReceipt": "labelling_project",
    "create_project": "create",
    "open_project": "create",
}

__all__ = [
    "ConflictError",
    "CreationOptions",
    "ErrorEstimate",
    "Item",
    "Items",
    "LearningStatus",
    "Point",
    "Project",
    "ProjectCheck",
    "ProjectGuarantee",
    "Settings",
    "WriteReceipt",
    "create_project",
    "open_project",
]


def __getattr__(name: str) -> Any:
    # These need the extra "label", which may not be installed.
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"suffice.project.{_LATER[name]}"), name)
