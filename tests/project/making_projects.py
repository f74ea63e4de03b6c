"""Small projects to try things on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from suffice import ErrorStability
from suffice.project.create import write_project
from suffice.project.events import Event, Label
from suffice.project.items import Items
from suffice.project.labelling_project import Project
from suffice.project.project_check import ProjectCheck
from suffice.project.settings import Settings
from suffice.project.state import ProjectState
from suffice.tables.table_cells import CellColumns

CLASSES = ("cat", "dog", "eel")
COLUMNS = ("text", "number")


def about(task: str = "classification", **changes: Any) -> Settings:
    """Settings of a small project."""
    classes = CLASSES if task == "classification" else ()
    model = "logistic" if task == "classification" else "ridge"
    values: dict[str, Any] = {
        "name": "pets",
        "task": task,
        "classes": classes,
        "target": "animal",
        "shown": "text",
        "columns": COLUMNS,
        "main": "text",
        "model": model,
        "rule": ErrorStability().state_dict(),
        "source": "pets.csv",
        "seed": 0,
    }
    return Settings(**(values | changes))


def some_items(n: int, labels: Mapping[int, Label] | None = None, task: str = "classification") -> Items:
    """Items that differ in every cell and feature."""
    rng = np.random.default_rng(n)
    cells = CellColumns([[f"pet {k} 🐌" for k in range(n)], [str(k / 8) for k in range(n)]])
    X = rng.normal(size=(n, 3))
    classes = CLASSES if task == "classification" else ()
    ids = tuple(f"id-{k}" for k in range(n))
    return Items("text", ids, COLUMNS, cells, "text", X, task, classes, labels or {}, ())  # type: ignore[arg-type]


def make(place: str | Path, n: int = 20, *, labels: Mapping[int, Label] | None = None, **changes: Any) -> Project:
    """Make a small project."""
    settings = about(**changes)
    return write_project(place, settings, some_items(n, labels, settings.task))


def replayed(events: list[Event], size: int) -> ProjectState:
    """The state that a journal comes to."""
    state = ProjectState(size)
    for event in events:
        state.apply(event)
    return state


def picture(state: ProjectState, size: int, now: float) -> dict[str, Any]:
    """Everything that can be asked of a state."""
    items = range(size)
    people = state.people
    return {
        "seq": state.seq,
        "made": state.made,
        "advice": state.advice,
        "answers": state.answers(),
        "learned": state.learned(),
        "checked": state.checked(),
        "n_learned": state.n_learned,
        "pending": state.checks.pending().tolist(),
        "checks": [(list(each.record.items), each.record.aborted, _answered(each)) for each in state.checks.all()],
        "random": [item in state.random_items() for item in items],
        "drawn": (state.assigned.n_asked, state.assigned.n_random),
        "labels": [state.label_of(item) for item in items],
        "open": [state.labels.is_open(item) for item in items],
        "is_skipped": [state.labels.is_skipped(item) for item in items],
        "opinions": [state.acts.opinions(item) for item in items],
        "corrected": [state.acts.has_correction(item) for item in items],
        "labelled": state.labelled(),
        "skipped": state.skipped(),
        "counts": state.counts(),
        "numbers": (state.n_labelled, state.n_skipped, state.left),
        "people": people,
        "leases": state.assigned.valid_leases(now),
        "mine": {name: state.assigned.of_person(name) for name in people},
        "newest": {name: state.acts.newest_of(name) for name in people},
        "missing": {name: sorted(state.acts.missing_opinions(name, 3)) for name in people},
    }


def _answered(check: ProjectCheck) -> dict[int, Label | None]:
    """The answers of a check: labels, and None for items that cannot be labelled."""
    labels = {item: label for item, label in check.record.labels.items() if not isinstance(label, bool)}
    return {**labels, **dict.fromkeys(check.record.unlabelable)}
