"""Projects with labels, for whatever comes out of them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from suffice.project.create import write_project
from suffice.project.labelling_project import Project
from suffice.project.learning_status import LearningStatus
from suffice.project.project_learner import ProjectLearner
from suffice.tables.table_cells import CellColumns
from tests.project.making_projects import CLASSES, about, make, some_items

#: Texts that somebody may have meant to run, or that are hard to write.
HOSTILE = (
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "  =1",
    "\u00a0=1",
    "\ufeff=1",
    "\uff1d1",
    "\ufe631",
    "'=1",
    "''=1",
    "'tis",
    "<script>alert(1)</script>",
    '"></td></table></section><img src=x onerror=alert(1)>',
    'a "quoted", cell\r\nof two lines',
    "🐌 Zoë \u202e mirrored",
    "",
    " ",
    "-5",
    "+1.5e-3",
    "-",
)


def hostile_project(place: Path, **changes: Any) -> Project:
    """A project whose items hold such texts, in every cell and in their names."""
    n = len(HOSTILE)
    items = replace(
        some_items(n), ids=tuple(f"{text} {k}" for k, text in enumerate(HOSTILE)), cells=CellColumns([[*HOSTILE]] * 2)
    )
    settings = about(**changes)
    return write_project(place, settings, replace(items, task=settings.task, classes=settings.classes))


def of_feature(project: Project, item: int) -> str | float:
    """The label that an item should have."""
    value = float(project.X[item, 0])
    return CLASSES[int(value > 0.0)] if project.settings.classes else 3.0 * value + 10.0


def label_some(project: Project, items: Sequence[int], person: str = "ann") -> None:
    """Label items as they should be."""
    for item in items:
        project.label(item, of_feature(project, item), person=person)


def learned(project: Project) -> tuple[ProjectLearner, LearningStatus]:
    """The model that knows all labels of a project, and what it says."""
    project_learner = ProjectLearner(project.settings, project.X)
    with project.lock:
        state = project.state()
        project_learner.follow(state.learned(), checked=state.checked())
    return project_learner, project_learner.learning_status()


def busy_project(place: Path, n: int = 120, task: str = "classification", **settings: Any) -> Project:
    """A project in which everything happened: second opinions, a correction, skips, labels that were there before."""
    first = {0: "dog", 1: "cat"} if task == "classification" else {0: 9.0, 1: 12.0}
    project = make(place, n, labels=first, task=task, **settings)
    label_some(project, range(2, 40))
    label_some(project, range(10, 14), person="bob")
    other: str | float = "eel" if task == "classification" else 99.5
    project.label(14, other, person="bob")
    project.correct(20, other, person="Zoë <b>")
    project.skip(50, person="bob")
    project.skip(51, person="ann")
    return project
