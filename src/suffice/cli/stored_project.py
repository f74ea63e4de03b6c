"""Opening of an existing project for ``suffice status``, ``check``, ``export`` and ``report``."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from suffice.cli.project_options import ProjectOptions, hidden, place_of
from suffice.errors import SufficeError

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project
    from suffice.project.learning_status import LearningStatus, Predictions
    from suffice.project.project_learner import ProjectLearner
    from suffice.project.settings import Settings
    from suffice.project.state import Answer

Place = Annotated[
    str,
    typer.Argument(
        metavar="DIR",
        help="The project: its folder (NAME.suffice), its file or a postgresql:// URL; or the data that it was made "
        "from, if the project is beside it.",
        show_default=False,
    ),
]


@dataclass(frozen=True, eq=False)
class Reading:
    """A project, and what the model makes of its labels.

    Attributes:
        project: The project.
        place: What was asked for, as it can be typed again.
        settings: Settings of the project, with the model that learns now.
        answers: Labels and skips that the model learns now, in order.
        learning_status: What the model says.
    """

    project: "Project"
    place: str
    settings: "Settings"
    answers: "list[Answer]"
    learning_status: "LearningStatus"

    @cached_property
    def project_learner(self) -> "ProjectLearner":
        """The model, which learns only what is not kept.

        Raises:
            SufficeError: The project can have no model.
        """
        return _project_learner(self.project, self.settings, self.answers)

    def predictions(self) -> "Predictions":
        """Predictions for all items; they are kept for the next time.

        Raises:
            SufficeError: There is no model, or it has not begun.
        """
        files = self.project.learned_files
        kept = files.predictions(self.settings, self.answers)
        return self.project_learner.predictions_kept_in(files, self.project.X) if kept is None else kept

    @property
    def folder(self) -> Path:
        """Default folder for files."""
        from suffice.project.create import is_url, project_file

        if is_url(self.place):
            return Path(f"{re.sub(r'[^A-Za-z0-9._-]+', '_', self.project.settings.name)}-export")
        return project_file(self.place).parent / "export"


@contextmanager
def reading(place: str) -> Iterator[Reading]:
    """Open a project and learn its labels; nothing is written to its journal.

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
    """What the model has learned of a project: from stored files, or learned now.

    Args:
        project: The project.
        place: Where it is, as it can be typed again.
    """
    from suffice.project.learning_status import LearningStatus

    with project.lock:
        answers, settings = project.state().learned(), project.current_settings
    kept = project.learned_files.status(settings, answers)
    if kept is not None:
        return Reading(project, place, settings, answers, kept)
    try:
        project_learner = _project_learner(project, settings, answers)
        learning_status = project_learner.learning_status()
    except SufficeError as error:
        # Labels can be counted and taken home without a model.
        problem = LearningStatus(problem=f"There is no model: {error}.")
        return Reading(project, place, settings, answers, problem)
    project_learner.keep_in(project.learned_files, learning_status)
    found = Reading(project, place, settings, answers, learning_status)
    # It need not be made again.
    found.__dict__["project_learner"] = project_learner
    return found


def _project_learner(project: "Project", settings: "Settings", answers: "list[Answer]") -> "ProjectLearner":
    """A model that has learned some answers; those that are kept are not learned again."""
    with Console(stderr=True).status(f"learning {len(answers)} labels", spinner="line"):
        from suffice.project.project_learner import ProjectLearner

        project_learner = ProjectLearner(settings, project.X)
        project_learner.resume_from(project.learned_files, answers)
        project_learner.follow(answers)
        return project_learner


def shown_place(place: str) -> str:
    """A place as it can be typed again, without a password."""
    from shlex import quote

    return quote(hidden(place))


def plain_console() -> Console:
    """Console for results; without a terminal, lines are not wrapped."""
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
