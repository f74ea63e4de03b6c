"""A folder of projects: which there are, and the state of each in one line."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Final, Literal

from suffice.errors import InvalidValueError, SufficeError
from suffice.presentation.check_words import guarantee_figure
from suffice.presentation.decision_words import STOPS
from suffice.presentation.text_format import as_sentence, shortened
from suffice.project.accounts import Account
from suffice.project.create import is_url, layout_of, open_project, project_file
from suffice.project.events import printable
from suffice.project.labelling_project import Project
from suffice.project.learning_status import LearningStatus
from suffice.project.settings import Settings
from suffice.project.sqlite_files import log_of
from suffice.project.status_summary import status
from suffice.project.storage import FILE, LAYOUT, Database

# Seconds that a list waits for the projects in it, and projects that are read at the same time.
_PATIENCE: Final = 3.0
_READ_AT_ONCE: Final = 4

LineState = Literal["ok", "accounts", "older", "unreadable", "busy"]


@dataclass(frozen=True)
class ProjectSummary:
    """A project in one line of a list.

    Attributes:
        folder: Name of its folder.
        state: ok; accounts, people sign in to it; older, it is updated when it is opened; unreadable, it is damaged or
            locked; busy, it is still being read.
        name: Name of the project.
        kind: What its items and labels are.
        n_labelled: Number of labelled items.
        size: Number of items.
        last: Time of the last activity of a person, in seconds since 1970; None if it is not known.
        statement: What is guaranteed, or what to do, or why it cannot be read.
        done: Whether the decision is that no more labels are needed, or all answers of a check are given.
        accounts: The accounts of the project.
        place: Location of the project, for messages.
    """

    folder: str
    state: LineState
    name: str
    kind: str = ""
    n_labelled: int | None = None
    size: int | None = None
    last: float | None = None
    statement: str = ""
    done: bool = False
    accounts: tuple[Account, ...] = ()
    place: str = ""


class ProjectFolder:
    """A folder of projects.

    Args:
        path: The folder.

    Raises:
        InvalidValueError: It is no folder that can be read, or a project itself.
    """

    def __init__(self, path: Path | str) -> None:
        if is_url(path):
            raise InvalidValueError(
                "--projects must be a folder; projects in PostgreSQL are not in a folder: serve each by its URL, as in "
                "suffice serve postgresql://..."
            )
        self.path = Path(path)
        if not self.path.exists():
            raise InvalidValueError(
                f"there is no folder {path} for --projects; create it first: mkdir {quote(str(path))}"
            )
        if not self.path.is_dir():
            raise InvalidValueError(f"--projects must be a folder, and {path} is a file; name the folder that holds it")
        if project_file(self.path).is_file():
            raise InvalidValueError(f"{path} is one project; serve it with suffice serve {path}, or name its folder")
        self._pool = ThreadPoolExecutor(_READ_AT_ONCE, thread_name_prefix="suffice list of projects")
        self._lock = threading.Lock()
        self._known: dict[str, tuple[object, ProjectSummary]] = {}
        self._reading: dict[str, Future[ProjectSummary]] = {}
        self.names()

    @property
    def read_only(self) -> bool:
        """Whether no project can be created in it."""
        return not os.access(self.path, os.W_OK)

    def names(self) -> list[str]:
        """The names of the folders of projects, in order.

        Raises:
            InvalidValueError: The folder cannot be read.
        """
        try:
            found = [entry.name for entry in os.scandir(self.path) if not entry.name.startswith(".")]
        except OSError as error:
            raise InvalidValueError(f"the folder {self.path} cannot be read: {error.strerror or error}") from None
        return sorted((name for name in found if (self.path / name / FILE).is_file()), key=str.casefold)

    def file_of(self, name: str) -> Path | None:
        """The file of a project, by the name of its folder; None if there is none."""
        if name.startswith(".") or not printable(name) or name != Path(name).name or "\\" in name:
            return None
        file = self.path / name / FILE
        return file if file.is_file() else None

    def summaries(self, opened: dict[str, tuple[Project, LearningStatus]]) -> list[ProjectSummary]:
        """The projects, by name.

        Args:
            opened: Projects that are open, with what their models have learned.
        """
        lines: list[ProjectSummary] = []
        pending: dict[str, Future[ProjectSummary]] = {}
        for name in self.names():
            if name in opened:
                lines.append(self._or_problem(name, partial(summary_of, name, *opened[name])))
                continue
            version = _version(self.path / name / FILE)
            with self._lock:
                known = self._known.get(name)
                if known is not None and known[0] == version and version is not None:
                    lines.append(known[1])
                else:
                    pending[name] = self._reading.get(name) or self._start(name, version)
        wait(pending.values(), _PATIENCE)
        for name, future in pending.items():
            busy = ProjectSummary(name, "busy", name, statement="It is being read; reload this page in a moment.")
            lines.append(future.result() if future.done() else busy)
        return sorted(lines, key=lambda line: line.folder.casefold())

    def close(self) -> None:
        """Stop reading."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _start(self, name: str, version: object) -> "Future[ProjectSummary]":
        future = self._pool.submit(self._read, name, version)
        self._reading[name] = future
        return future

    def _read(self, name: str, version: object) -> ProjectSummary:
        summary = self._or_problem(name, partial(_stored_summary, name, self.path / name / FILE))
        with self._lock:
            del self._reading[name]
            if summary.state != "unreadable":
                self._known[name] = version, summary
        return summary

    def _or_problem(self, name: str, read: Callable[[], ProjectSummary]) -> ProjectSummary:
        try:
            return read()
        except SufficeError as error:
            said = str(error).replace(f"{self.path}{os.sep}", "")
            said = f"the file {said}" if said.startswith(name) else said
            said += "; take it from a backup, or move its folder away" if "not a project" in said else ""
        except Exception as error:
            # A damaged file may cause an error of any kind, which must not hide the other projects.
            said = f"it cannot be read ({type(error).__name__}); see what can be recovered: suffice repair {name}"
        return ProjectSummary(name, "unreadable", name, statement=as_sentence(said))


def _version(file: Path) -> object:
    """What changes whenever a project does; None if it cannot be told."""
    try:
        log = log_of(file)
        times = [found.stat() for found in (file, log) if found.exists()]
    except OSError:
        return None
    return [(found.st_ino, found.st_size, found.st_mtime_ns) for found in times]


def _stored_summary(name: str, file: Path) -> ProjectSummary:
    """The line of a project that is not open. Nothing is written."""
    database = Database(file)
    try:
        with database.reading() as connection:
            older = layout_of(database, connection) < LAYOUT
    finally:
        database.close()
    if older:
        words = "It was made by an older version of suffice, and is updated when you open it."
        return ProjectSummary(name, "older", name, statement=words)
    with open_project(file) as project:
        with project.lock:
            state, settings = project.state(), project.current_settings
            answers, checked = state.learned(), state.checked()
        learned = project.learned_files.status(settings, answers, checked)
        return summary_of(name, project, learned)


def summary_of(name: str, project: Project, learned: LearningStatus | None) -> ProjectSummary:
    """The line of an open project.

    Args:
        name: Name of its folder.
        project: The project.
        learned: What its model has learned; None if that is not known.
    """
    with project.lock:
        state, settings, accounts = project.state(), project.settings, project.accounts()
        made = 0.0 if state.made is None else state.made.at
        last = max([made, *(person.last for person in state.people.values())])
    told = status(project, learned or LearningStatus())
    return ProjectSummary(
        name,
        "accounts" if accounts else "ok",
        settings.name,
        kind_in_words(settings),
        told["n_labelled"],
        told["size"],
        last,
        _statement(told, settings, known=learned is not None),
        _is_done(told, settings),
        accounts,
        project.place,
    )


def kind_in_words(settings: Settings) -> str:
    """What the items and labels of a project are, in a few words.

    Examples:
        >>> kind_in_words(Settings("p", "classification", ("a", "b"), "y", "text", ("t",), "t", "logistic", {}))
        'Texts, 2 classes'
        >>> kind_in_words(Settings("p", "regression", (), "price", "table", ("a",), None, "gp", {}))
        'Table, numbers'
    """
    items = {"text": "Texts", "image": "Images", "table": "Table"}[settings.shown]
    if settings.checked is not None:
        return f"{items}, check of predictions"
    if settings.positive is not None:
        return f"{items}, search for {shortened(settings.positive, 40)}"
    return f"{items}, {f'{len(settings.classes)} classes' if settings.classes else 'numbers'}"


def _statement(told: dict[str, Any], settings: Settings, *, known: bool) -> str:
    """What is guaranteed, or what to do, in one short statement."""
    goal, guarantee = told["goal"], told["guarantee"]
    if goal is not None and goal["reached"] is not None:
        return _figure(goal["reached"]["figure"], goal["reached"]["figure_note"])
    if guarantee is not None and guarantee.get("about_present_model", True) and settings.checked is None:
        return _figure(*guarantee_figure(guarantee))
    if not told["n_labelled"]:
        return "No label yet."
    if settings.checked is not None or known:
        return as_sentence(told["decision"]["headline"])
    return "Open it to see what to do next."


def _is_done(told: dict[str, Any], settings: Settings) -> bool:
    if settings.checked is not None:
        return told["check"] is not None and told["check"]["state"] != "open"
    return told["decision"]["answer"] in STOPS


def _figure(figure: str, note: str) -> str:
    return as_sentence(f"{figure} {note}".strip())
