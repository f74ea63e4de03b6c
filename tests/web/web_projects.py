"""Small projects, and a browser or a script that talks to their servers."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice import ErrorStability
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import write_project
from suffice.project.items import Items
from suffice.project.labelling_project import Project
from suffice.project.settings import Settings
from suffice.tables.table_cells import CellColumns
from suffice.web.access import Access, granted_access
from suffice.web.server import create_app

with warnings.catch_warnings():
    # Newer versions of Starlette would rather have the successor of httpx.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient as Script

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["ODD", "TOKEN", "Script", "csrf_of", "make_image_project", "make_project", "running_app", "script_of"]

TOKEN = "correct-horse-battery"
#: Cells that could break something: a formula, a tag, an emoji, a very long text.
ODD = ("=1+1", "<script>alert(1)</script>", "🐌", "x" * 30_000)


def make_project(folder: Path, n: int = 30, **changes: Any) -> Project:
    """A project of rows to be told apart as spam and ham, or whatever the changed settings say."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    words = [ODD[k] if k < len(ODD) else f"word {k}" for k in range(n)]
    settings = Settings(
        **(
            {
                "name": "mails.csv",
                "task": "classification",
                "classes": ("spam", "ham"),
                "target": "kind",
                "shown": "table",
                "columns": ("size", "word"),
                "main": None,
                "model": "logistic",
                "rule": ErrorStability(threshold=0.1).state_dict(),
                "initial": 4,
                "source": "mails.csv",
            }
            | changes
        )
    )
    items = Items(
        shown=settings.shown,
        ids=tuple(f"mail-{k}" for k in range(n)),
        columns=settings.columns,
        cells=CellColumns([[f"{x:.3f}" for x in X[:, 0]], [*words]]),
        main=settings.main,
        X=X,
        task=settings.task,
        classes=settings.classes,
        labels={},
        notes=(),
    )
    return write_project(folder, settings, items, person="Ann")


def make_image_project(folder: Path, root: Path, paths: Mapping[int, str]) -> Project:
    """A project of images at these paths under a root, by position."""
    n = len(paths)
    settings = Settings(
        name="pictures",
        task="classification",
        classes=("cat", "dog"),
        target="kind",
        shown="image",
        columns=("file",),
        main="file",
        model="logistic",
        rule=ErrorStability(threshold=0.1).state_dict(),
        root=str(root),
    )
    items = Items(
        shown="image",
        ids=tuple(f"picture-{k}" for k in range(n)),
        columns=("file",),
        cells=CellColumns([[paths[k] for k in range(n)]]),
        main="file",
        X=np.random.default_rng(0).normal(size=(n, 2)),
        task="classification",
        classes=settings.classes,
        labels={},
        notes=(),
        root=root,
    )
    return write_project(folder, settings, items)


@contextmanager
def running_app(project: Project, access: Access | None = None) -> "Iterator[FastAPI]":
    """The application of a project, with its background learner."""
    background = BackgroundLearner(project)
    # As in suffice serve: FastAPI silences warnings of its own meanwhile, which another thread could undo.
    app = create_app(project, background, access or granted_access("127.0.0.1"))
    with project, background:
        yield app


def script_of(app: "FastAPI", **headers: str) -> Script:
    """A script that talks to an application; what fails in there is an answer, not an exception here."""
    return Script(app, base_url="http://127.0.0.1:8000", headers=headers, raise_server_exceptions=False)


def csrf_of(client: Script) -> str:
    """The value that a page sends with everything that it posts."""
    return str(client.get("/api/project").json()["csrf"])
