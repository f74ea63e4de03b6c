"""Opening of an existing project for ``suffice status``, ``check``, ``export`` and ``report``."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from suffice.cli.project_options import ProjectOptions, hidden, place_of
from suffice.errors import SufficeError

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project
    from suffice.project.learning_status import LearningStatus
    from suffice.project.project_learner import ProjectLearner

Place = Annotated[
    str,
    typer.Argument(
        metavar="DIR",
        help="The project: its folder (NAME.suffice), its file or a postgresql:// URL; or the data that it was made "
        "from, where the project lies beside it.",
        show_default=False,
    ),
]


@dataclass(frozen=True, eq=False)
class Reading:
    """A project, and what the model makes of its labels.

    Attributes:
        project: The project.
        place: What was asked for, as it can be typed again.
        learning_status: What the model says.
        project_learner: The model; None where there can be none, and then ``learning_status`` says why.
    """

    project: "Project"
    place: str
    learning_status: "LearningStatus"
    project_learner: "ProjectLearner | None"

    @property
    def folder(self) -> Path:
        """Where files go if nothing is said of that."""
        from suffice.project.create import is_url, project_file

        if is_url(self.place):
            return Path(f"{re.sub(r'[^A-Za-z0-9._-]+', '_', self.project.settings.name)}-export")
        return project_file(self.place).parent / "export"


@contextmanager
def reading(place: str) -> Iterator[Reading]:
    """Open a project and learn its labels; nothing is written to it.

    Args:
        place: What was typed.

    Raises:
        MissingExtraError: What keeps projects is not installed.
        SufficeError: There is no project, or it cannot be opened.
    """
    with stored_project(place) as (project, found):
        yield learned_project(project, found)


@contextmanager
def stored_project(place: str) -> Iterator[tuple["Project", str]]:
    """Open a project that is there; yield it with its place as it can be typed again.

    Args:
        place: What was typed.

    Raises:
        MissingExtraError: What keeps projects is not installed.
        SufficeError: There is no project, or it cannot be opened.
    """
    from suffice.cli.project_options import require_store

    require_store()
    from suffice.project.create import is_url, open_project, project_file

    found = place_of(ProjectOptions(place))[0]
    if found != place and not is_url(found) and not project_file(found).is_file():
        raise SufficeError(f"there is no project in {place!r}, nor in {found} beside it; suffice label DATA makes one")
    with open_project(found) as project:
        yield project, found


def learned_project(project: "Project", place: str) -> Reading:
    """Learn the labels of a project.

    Args:
        project: The project.
        place: Where it is, as it can be typed again.
    """
    from suffice.project.learning_status import LearningStatus
    from suffice.project.project_learner import ProjectLearner

    with project.lock:
        answers = project.state().learned()
    waiting = Console(stderr=True)
    try:
        with waiting.status(f"learning {len(answers)} labels", spinner="line"):
            project_learner = ProjectLearner(project.current_settings, project.X)
            project_learner.follow(answers)
            return Reading(project, place, project_learner.learning_status(), project_learner)
    except SufficeError as error:
        # Labels can be counted and taken home without a model.
        return Reading(project, place, LearningStatus(problem=f"There is no model: {error}."), None)


def shown_place(place: str) -> str:
    """A place as it can be typed again, without a password."""
    from shlex import quote

    return quote(hidden(place))


def plain_console() -> Console:
    """Where results are told: as they stand, and not broken at a width that is not there."""
    console = Console(highlight=False, markup=False, emoji=False)
    console.soft_wrap = not console.is_terminal
    return console


def made_folder(folder: Path) -> Path:
    """A folder, created if it does not exist.

    Raises:
        SufficeError: It cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise SufficeError(f"{folder} is a file, not a folder; name another one with --out") from None
    except OSError as error:
        raise SufficeError(
            f"the folder {folder} cannot be made: {error.strerror or error}; name another one with --out"
        ) from None
    return folder
