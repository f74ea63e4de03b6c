"""The routes of a server of a folder of projects: the list, uploads, and new projects. Each project has its own."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Depends, Query, Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

import suffice
from suffice.checks.annotation_budget import annotation_budget
from suffice.checks.hypergeometric import LARGEST_POOL
from suffice.project.accounts import Account
from suffice.project.project_folder import ProjectFolder, ProjectSummary
from suffice.project.sqlite_files import StorageError
from suffice.project.stored_sessions import StoredSessions, stored_sessions
from suffice.project.uploaded_files import (
    UPLOAD_KINDS,
    NoUploadError,
    UploadStore,
    UploadTooLargeError,
    described,
    suggested_name,
)
from suffice.web.access import Access
from suffice.web.folder_messages import (
    BudgetAnswer,
    CreatedAnswer,
    DoneAnswer,
    FolderAnswer,
    ProjectLineAnswer,
    ProjectSent,
    UploadAnswer,
    UploadProgressAnswer,
    UploadSent,
)
from suffice.web.http_messages import MEANINGS
from suffice.web.open_projects import OpenProjects
from suffice.web.routes import (
    HEALTH_PROBLEMS,
    PROJECTS_PAGE,
    JsonRoute,
    assets,
    documented,
    get_asset,
    get_health,
    head_health,
    image_file,
    takes_long,
)
from suffice.web.sessions import Sessions

#: The path of uploads, whose body is not read at once.
UPLOAD_PATH: Final = "/api/uploads"
#: The path below which the projects are.
PROJECTS_PATH: Final = "/p/"
_BINARY: Final = "application/octet-stream"
# Files that are read, and projects that are created, at the same time.
_AT_ONCE: Final = 2
# Bytes that are written to the disk at a time.
_PART: Final = 2**20


def _long_answers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="suffice uploads")


@dataclass(frozen=True)
class FolderContext:
    """Objects that requests to a folder need.

    Attributes:
        folder: The folder.
        uploads: Uploaded files.
        opened: Projects that are open.
        access: Access rules of the server.
        long_answers: Threads for what takes long.
    """

    folder: ProjectFolder
    uploads: UploadStore
    opened: OpenProjects
    access: Access
    long_answers: ThreadPoolExecutor = field(default_factory=_long_answers)

    def require_writable(self) -> None:
        """Raise an error if no project can be created.

        Raises:
            HTTPException: 409.
        """
        if refusal := self.refusal:
            raise HTTPException(409, refusal)

    @property
    def refusal(self) -> str:
        """Why no project can be created; empty if one can."""
        if not self.folder.read_only:
            return ""
        return f"no project can be created, because the folder {self.folder.path} is read-only; make it writable"


async def folder_context(request: Request) -> FolderContext:
    """The context of the application that received a request."""
    context = request.app.state.context
    assert isinstance(context, FolderContext)
    return context


InFolder = Annotated[FolderContext, Depends(folder_context)]


@dataclass(frozen=True)
class ListedAccounts:
    """The accounts of a project, as they were read for a list.

    Attributes:
        place: Its location.
        found: Its accounts.
        stored_sessions: Its sessions; None if there are none.
    """

    place: str
    found: tuple[Account, ...] = ()
    stored_sessions: StoredSessions | None = None

    def accounts(self) -> tuple[Account, ...]:
        """The accounts."""
        return self.found


folder_page_router = APIRouter()


@folder_page_router.get("/", include_in_schema=False)
async def get_projects_page() -> Response:
    """The page with the list of projects."""
    page = assets()[PROJECTS_PAGE]
    return Response(page.content, media_type=page.media_type)


folder_page_router.add_api_route("/static/{name:path}", get_asset, include_in_schema=False)
folder_page_router.add_api_route("/health", get_health, responses=HEALTH_PROBLEMS)
folder_page_router.add_api_route("/health", head_health, methods=["HEAD"], include_in_schema=False)

folder_router = APIRouter(prefix="/api", tags=["folder"], route_class=JsonRoute)


@folder_router.get("/projects", responses=documented())
def get_projects(request: Request, context: InFolder) -> FolderAnswer:
    """The projects of the folder, those with the latest activity first."""
    summaries = context.folder.summaries(context.opened.learned())
    return FolderAnswer(
        folder=context.folder.path.resolve().name,
        # The place in the list must not tell when somebody was active in a project that the person may not see.
        projects=sorted(
            (_line(summary, request, context) for summary in summaries), key=lambda line: -(line.last or 0)
        ),
        refusal=context.refusal,
        kinds=UPLOAD_KINDS,
        largest=context.uploads.limits.size,
        csrf=context.access.csrf,
        version=suffice.__version__,
    )


def _line(summary: ProjectSummary, request: Request, context: FolderContext) -> ProjectLineAnswer:
    path = path_of(summary.folder)
    if summary.accounts and not _may_see(summary, request, context):
        return ProjectLineAnswer(
            folder=summary.folder,
            path=path,
            state="accounts",
            name=summary.folder.removesuffix(".suffice"),
            kind="",
            n_labelled=None,
            size=None,
            last=None,
            statement="Sign in to see it.",
            done=False,
        )
    return ProjectLineAnswer(
        folder=summary.folder,
        path=path,
        state=summary.state,
        name=summary.name,
        kind=summary.kind,
        n_labelled=summary.n_labelled,
        size=summary.size,
        last=summary.last,
        statement=summary.statement,
        done=summary.done,
    )


def _may_see(summary: ProjectSummary, request: Request, context: FolderContext) -> bool:
    """Whether the sender of a request is signed in to a project with accounts, or sends the token of the server."""
    if "authorization" in request.headers and context.access.token is not None:
        # The gate has verified that it is the token of the server, which belongs to the owner.
        return True
    file = context.folder.file_of(summary.folder)
    listed = Sessions(ListedAccounts(summary.place, summary.accounts), context.access)
    if file is None or listed.cookie_name not in request.cookies:
        return False
    try:
        opened = context.opened.sessions(summary.folder)
        if opened is not None:
            return opened.with_cookie(request.headers, summary.accounts) is not None
        with stored_sessions(file) as stored:
            sessions = Sessions(ListedAccounts(summary.place, summary.accounts, stored), context.access)
            sessions.memory = context.opened.memory(summary.folder)
            return sessions.with_cookie(request.headers, summary.accounts) is not None
    except StorageError:
        return False


def path_of(folder: str) -> str:
    """The address of a project, relative to that of the list.

    Examples:
        >>> path_of("my mails.suffice")
        'p/my%20mails.suffice/'
    """
    return f"{PROJECTS_PATH.lstrip('/')}{quote(folder, safe='')}/"


@folder_router.post("/projects", responses=documented(404, 409, 415, 501, 507))
@takes_long
def add_project(sent: ProjectSent, context: InFolder) -> CreatedAnswer:
    """Create a project from an uploaded file, which is removed. A repeated request returns the same project."""
    context.require_writable()
    upload = _found(partial(context.uploads.get, sent.upload))
    folder = _found(partial(context.uploads.create, upload, sent.wish()))
    return CreatedAnswer(folder=folder, path=path_of(folder))


@folder_router.get("/uploads/progress", responses=documented(404))
def get_progress(
    context: InFolder,
    upload: Annotated[str, Query(min_length=1, max_length=100, description=MEANINGS["upload"])],
) -> UploadProgressAnswer:
    """What is being done for the project of an upload, while it is created."""
    found = _found(partial(context.uploads.get, upload))
    what, done, total = found.progress
    return UploadProgressAnswer(what=what, done=done, total=total, folder=found.made)


@folder_router.get("/plan", responses=documented())
@takes_long
def get_plan(  # noqa: PLR0913, PLR0917 - the parameters of a query
    context: InFolder,  # noqa: ARG001 - it has the threads for long answers
    pool: Annotated[int, Query(ge=1, le=LARGEST_POOL, description=MEANINGS["pool"])],
    prove: Annotated[float | None, Query(ge=0.005, lt=1.0, description=MEANINGS["prove"])] = None,
    expected: Annotated[float | None, Query(ge=0.0, lt=1.0, description=MEANINGS["expected"])] = None,
    corrected: Annotated[bool, Query(description=MEANINGS["corrected"])] = False,
    checked: Annotated[int | None, Query(ge=1, le=LARGEST_POOL, description=MEANINGS["checked"])] = None,
    wrong: Annotated[int | None, Query(ge=0, le=LARGEST_POOL, description=MEANINGS["wrong"])] = None,
    seconds: Annotated[
        float | None, Query(gt=0.0, le=86_400.0, allow_inf_nan=False, description=MEANINGS["seconds"])
    ] = None,
) -> BudgetAnswer:
    """What a random sample has shown, and how many answers a check takes. No project is needed."""
    counts = None if checked is None or wrong is None else (checked, wrong)
    budget = annotation_budget(pool, at_most=prove, expected=expected, counts=counts, corrected=corrected)
    return BudgetAnswer(**budget.as_dict(seconds))


@folder_router.post("/uploads/discard", responses=documented(415, 507))
def discard_upload(sent: UploadSent, context: InFolder) -> DoneAnswer:
    """Remove an uploaded file. Nothing happens if there is none."""
    context.uploads.discard(sent.upload)
    return DoneAnswer(ok=True)


@folder_router.get(
    "/uploads/images/{number}",
    response_class=Response,
    responses={200: {"content": {"image/*": {"schema": {"type": "string", "format": "binary"}}}}, **documented(404)},
)
def get_upload_image(
    number: int,
    context: InFolder,
    upload: Annotated[str, Query(min_length=1, max_length=100, description=MEANINGS["upload"])],
) -> Response:
    """One of the first images of an uploaded archive, by its number from 0."""
    content = _found(partial(context.uploads.get, upload)).content
    if content is None or not 0 <= number < len(content.images):
        raise HTTPException(404, f"there is no image {number} in this upload")
    file, media_type = image_file(Path(content.data), content.images[number])
    try:
        return Response(file.read_bytes(), media_type=media_type)
    except OSError:
        raise HTTPException(404, f"there is no image {number} in this upload") from None


def _found(run: Any) -> Any:
    try:
        return run()
    except NoUploadError as error:
        raise HTTPException(404, str(error)) from None


upload_router = APIRouter(tags=["folder"])


@upload_router.post(
    UPLOAD_PATH,
    responses=documented(409, 415, 501, 507),
    openapi_extra={
        "requestBody": {"content": {_BINARY: {"schema": {"type": "string", "format": "binary"}}}, "required": True}
    },
)
async def add_upload(
    request: Request,
    context: InFolder,
    file: Annotated[str, Query(min_length=1, max_length=500, description=MEANINGS["file"])],
) -> UploadAnswer:
    """Upload a file for a new project: a table, or a ZIP archive of images. The response says what it contains.

    The body is the content of the file. The file is removed when its project is created, when it cannot be used, or
    after an hour.
    """
    # A form of another web site cannot send this type.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _BINARY:
        raise HTTPException(415, f"the Content-Type of an upload must be {_BINARY}")
    context.require_writable()
    loop, said = asyncio.get_running_loop(), request.headers.get("content-length", "")
    try:
        upload = context.uploads.start(file, int(said[:20]) if said.isdecimal() else None)
        with context.uploads.writing(upload) as write:
            pending = bytearray()
            async for part in request.stream():
                pending += part
                if len(pending) >= _PART:
                    await loop.run_in_executor(None, write, bytes(pending))
                    pending.clear()
            await loop.run_in_executor(None, write, bytes(pending))
    except UploadTooLargeError as error:
        # The rest of the body is not read.
        raise HTTPException(413, str(error), {"Connection": "close"}) from None
    except ClientDisconnect:
        # Nobody reads the response.
        raise HTTPException(400, "the upload was aborted") from None
    content = await loop.run_in_executor(context.long_answers, context.uploads.read, upload)
    if await request.is_disconnected():
        context.uploads.discard(upload.id)
    found: Mapping[str, Any] = described(content)
    return UploadAnswer(upload=upload.id, name=suggested_name(file), file=file, **found)
