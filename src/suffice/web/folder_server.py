"""The application of a folder of projects: the list, uploads, and each project under its own path."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Final
from urllib.parse import quote
from warnings import filterwarnings

from fastapi import APIRouter, Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

import suffice
from suffice.project.background_learner import BackgroundLearner
from suffice.project.labelling_project import Project
from suffice.project.project_folder import ProjectFolder
from suffice.project.uploaded_files import UploadLimits, UploadStore
from suffice.web.access import Access
from suffice.web.folder_routes import (
    PROJECTS_PATH,
    UPLOAD_PATH,
    FolderContext,
    ListedAccounts,
    folder_page_router,
    folder_router,
    upload_router,
)
from suffice.web.gate import Gate
from suffice.web.http_messages import SafeHeaders, add_problem_handlers, problem, problem_page, status_of
from suffice.web.open_projects import CannotOpenError, OpenProjects
from suffice.web.request_limits import BodyLimit
from suffice.web.server import create_app
from suffice.web.sessions import Sessions

_ABOUT: Final = (
    "The projects of a folder, and new ones from uploaded files. Each project has its own interface, that of suffice "
    "serve, under its path. If a token is needed, a script sends it as Authorization: Bearer TOKEN. A browser sends "
    "the csrf value of /api/projects as X-Suffice-CSRF with everything that it posts."
)
#: Paths whose body is a file.
UPLOAD_PATHS: Final = frozenset({UPLOAD_PATH})
# Entry of a scope with the status and the sentence that a request is answered with.
_PROBLEM: Final = "suffice.problem"


class FolderApp:
    """Passes a request to the project of its path, or to the list of projects.

    Attributes:
        context: What requests to the list need.
    """

    def __init__(self, context: FolderContext, listed: ASGIApp, sessions: Sessions) -> None:
        self.context = context
        self._listed = listed
        # Requests for projects that do not exist or cannot be opened are answered to people who may see the list.
        self._unknown = SafeHeaders(Gate(self._answer_unknown, context.access, sessions))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path: str = scope.get("path", "")
        if scope["type"] != "http" or not path.startswith(PROJECTS_PATH):
            await self._listed(scope, receive, send)
            return
        name, slash, rest = path[len(PROJECTS_PATH) :].partition("/")
        if not slash:
            await SafeHeaders(_to_folder(name, scope["query_string"]))(scope, receive, send)
            return
        inner = {**scope, "path": f"/{rest}", "raw_path": quote(f"/{rest}").encode(), "root_path": ""}
        served = self.context.access.serves(Request(scope).headers.get("host", ""))
        try:
            async with self.context.opened.using(name) if served else nullcontext() as app:
                await (self._unknown if app is None else app)(inner, receive, send)
        except CannotOpenError as error:
            inner[_PROBLEM] = status_of(error.reason), str(error.reason)
            await self._unknown(inner, receive, send)

    async def _answer_unknown(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, sentence = scope.get(_PROBLEM, (404, "there is no such project in this folder"))
        answer = problem_page(status, sentence, "../../") if scope["path"] == "/" else problem(status, sentence)
        await answer(scope, receive, send)


def _to_folder(name: str, query: bytes) -> Response:
    """Redirect to the address with a slash at its end, to which the addresses of the page are relative."""
    rest = f"?{query.decode('latin-1')}" if query else ""
    return RedirectResponse(f"{PROJECTS_PATH}{quote(name, safe='')}/{rest}", status_code=307)


@contextmanager
def folder_app(
    folder: ProjectFolder, access: Access, person: str, limits: UploadLimits | None = None
) -> Iterator[FolderApp]:
    """The application of a folder of projects. At the end, its projects are closed and unused uploads are removed.

    Args:
        folder: The folder.
        access: Access rules of the server.
        person: Who runs the server.
        limits: Limits of an uploaded file.
    """
    # Nobody has an account of the list itself.
    sessions = Sessions(ListedAccounts(str(folder.path)), access)

    def make_app(name: str, project: Project, background: BackgroundLearner) -> tuple[ASGIApp, Sessions]:
        app = create_app(project, background, access, f"{PROJECTS_PATH}{quote(name, safe='')}")
        found: Sessions = app.state.context.sessions
        # Wrong tokens are counted for all projects together.
        found.limits = sessions.limits
        return app, found

    uploads = UploadStore(folder.path, limits)
    try:
        with OpenProjects(folder, person, make_app) as opened:
            context = FolderContext(folder, uploads, opened, access)
            try:
                yield FolderApp(context, _listed_app(context, sessions), sessions)
            finally:
                # A project that is being created is finished first.
                context.long_answers.shutdown(wait=True, cancel_futures=True)
    finally:
        uploads.clear()
        folder.close()


def _listed_app(context: FolderContext, sessions: Sessions) -> FastAPI:
    """The application of the list of projects, and of uploads."""
    access, together = context.access, APIRouter()
    # The gate verifies the token; this declares it in the OpenAPI document.
    needed = [Depends(HTTPBearer(auto_error=False))] if access.token is not None else []
    routers = (folder_router, upload_router, folder_page_router)
    for router in routers:
        together.include_router(router, dependencies=[] if router is folder_page_router else needed)
    app = FastAPI(
        title="suffice: projects of a folder",
        version=suffice.__version__,
        description=_ABOUT,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        routes=together.routes,
        middleware=[
            Middleware(SafeHeaders),
            Middleware(Gate, access=access, sessions=sessions),
            Middleware(BodyLimit, streamed=UPLOAD_PATHS),
        ],
    )
    app.state.context = context
    add_problem_handlers(app, [route for router in routers for route in router.routes])
    # As for a project, see create_app.
    filterwarnings("ignore", r"The '\w+' attribute with value .* was provided to the `Field\(\)` function")
    return app
