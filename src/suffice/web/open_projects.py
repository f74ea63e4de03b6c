"""Projects of a folder that are open in a server: each is opened at its first request, and the idle ones are closed."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final

from starlette.types import ASGIApp

from suffice.errors import SufficeError
from suffice.project.background_learner import BackgroundLearner
from suffice.project.create import open_project
from suffice.project.labelling_project import Project
from suffice.project.learning_status import LearningStatus
from suffice.project.prediction_results import start_first_check
from suffice.project.project_folder import ProjectFolder
from suffice.project.sqlite_files import identity
from suffice.web.sessions import SessionMemory, Sessions

# Open projects at a time: each has a thread that learns, and a model in memory.
_MOST_OPEN: Final = 16


class CannotOpenError(SufficeError):
    """A project cannot be opened.

    Args:
        reason: Why.
    """

    def __init__(self, reason: SufficeError) -> None:
        super().__init__(str(reason))
        self.reason = reason


#: Creates the application of a project, with its sessions.
MakeApp = Callable[[str, Project, BackgroundLearner], tuple[ASGIApp, Sessions]]


@dataclass(eq=False)
class OpenProject:
    """A project that is open.

    Attributes:
        project: The project.
        background: Learns its labels.
        app: Answers its requests.
        sessions: People who are signed in to it.
        version: Identity of its file.
        users: Number of requests that are being answered.
        used: Time of the last request.
    """

    project: Project
    background: BackgroundLearner
    app: ASGIApp
    sessions: Sessions
    version: object
    users: int = 0
    used: float = field(default_factory=time.monotonic)

    def close(self) -> None:
        """Stop learning, and close the project."""
        self.background.close()
        self.project.close()


class OpenProjects:
    """The open projects of a folder.

    Args:
        folder: The folder.
        person: Who runs the server.
        make_app: Creates the application of a project.
        most: Open projects at a time; those that are not used are closed, the longest unused first.
    """

    def __init__(self, folder: ProjectFolder, person: str, make_app: MakeApp, most: int = _MOST_OPEN) -> None:
        self._folder, self._person, self._make_app, self._most = folder, person, make_app, most
        self._open: dict[str, OpenProject] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        # Sessions that cannot be written to their project outlive its closing.
        self._memories: dict[str, SessionMemory] = {}

    def __enter__(self) -> "OpenProjects":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A learner may need some seconds to stop.
        with ThreadPoolExecutor(max(1, len(self._open))) as pool:
            list(pool.map(OpenProject.close, self._open.values()))
        self._open.clear()

    def learned(self) -> dict[str, tuple[Project, LearningStatus]]:
        """The open projects, with what their models have learned."""
        return {name: (each.project, each.background.learning_status) for name, each in [*self._open.items()]}

    def sessions(self, name: str) -> Sessions | None:
        """Signed-in people of a project; None if it is not open."""
        found = self._open.get(name)
        return None if found is None else found.sessions

    def memory(self, name: str) -> SessionMemory:
        """The sessions of a project that could not be written to it."""
        return self._memories.get(name) or SessionMemory()

    @asynccontextmanager
    async def using(self, name: str) -> AsyncIterator[ASGIApp | None]:
        """The application of a project, which stays open meanwhile; None if there is no such project.

        Raises:
            CannotOpenError: It cannot be opened.
        """
        file = self._folder.file_of(name)
        if file is None and name not in self._open:
            yield None
            return
        found = await self._found(name, file)
        if found is None:
            yield None
            return
        found.users += 1
        try:
            yield found.app
        finally:
            found.users -= 1
            found.used = time.monotonic()

    async def _found(self, name: str, file: Path | None) -> OpenProject | None:
        loop = asyncio.get_running_loop()
        async with self._opening.setdefault(name, asyncio.Lock()):
            found, version = self._open.get(name), None if file is None else identity(file)
            if found is not None and found.version == version:
                return found
            if found is not None and not found.users:
                # It was removed, or replaced by another one.
                del self._open[name]
                await loop.run_in_executor(None, found.close)
            if file is None:
                return None
            await self._close_unused()
            project = await loop.run_in_executor(None, self._opened, file)
            try:
                background = BackgroundLearner(project, project.learned_files)
                app, sessions = self._make_app(name, project, background)
            except BaseException:
                project.close()
                raise
            sessions.memory = self._memories.setdefault(name, sessions.memory)
            background.start()
            opened = self._open[name] = OpenProject(project, background, app, sessions, version)
            return opened

    def _opened(self, file: Path) -> Project:
        """Open a project as ``suffice serve`` does."""
        try:
            project = open_project(file)
            try:
                project.resume(self._person)
                start_first_check(project, self._person)
            except BaseException:
                project.close()
                raise
        except SufficeError as error:
            raise CannotOpenError(error) from None
        return project

    async def _close_unused(self) -> None:
        unused = sorted((each.used, name) for name, each in self._open.items() if not each.users)
        for _, name in unused[: max(0, len(self._open) - self._most + 1)]:
            found = self._open.pop(name)
            await asyncio.get_running_loop().run_in_executor(None, found.close)
