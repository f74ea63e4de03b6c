"""The routes of the server: page, project, labels, items, labelling, and exported files.

Every route gets the application context: the project, its background learner, and access control.
"""

import asyncio
import hashlib
import inspect
import re
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial, wraps
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, ParamSpec, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from fastapi import Path as InPath
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response

import suffice
from suffice.errors import InvalidValueError, SufficeError
from suffice.presentation.html_parts import markdown_html
from suffice.presentation.item_words import prediction_sentence
from suffice.presentation.project_words import setting_change_sentence
from suffice.presentation.text_format import item_excerpt, item_summary, shortened
from suffice.project.background_learner import BackgroundLearner
from suffice.project.check_offers import SIZES, ClassOffers, check_offers, class_offers, expected_share
from suffice.project.data_set_goal import ProjectLabels
from suffice.project.events import Label, moment
from suffice.project.exported_files import (
    Exported,
    checked_predictions_file,
    guarantee_file,
    labels_file,
    predictions_file,
    skipped_file,
)
from suffice.project.final_files import all_rows_file, final_file
from suffice.project.item_predictor import ItemPredictor
from suffice.project.items import Item
from suffice.project.labelling_project import ConflictError, Project, WriteReceipt
from suffice.project.opinions import majority_of
from suffice.project.people import people_summary
from suffice.project.review import review
from suffice.project.sequential_offer import sequential_offer
from suffice.project.settings import Settings, described_model
from suffice.project.state import Opinion, PredictedLabel, ProjectState
from suffice.project.status_summary import answers_behind, status
from suffice.project.storage import StorageError
from suffice.project.unmatched_ids import NoMatchError
from suffice.tables.table_columns import number_name
from suffice.tables.table_formats import FINAL_MEDIA_TYPES, MEDIA_TYPES, FinalFormat, Format
from suffice.web.access import Access
from suffice.web.gate import SIGN_IN_PATH, SIGN_OUT_PATH, is_encrypted
from suffice.web.guesses import address_of
from suffice.web.http_messages import (
    LAST_ITEM,
    LONGEST_CELL,
    MEANINGS,
    MOST_ROWS,
    REPORT_POLICY,
    AbortSent,
    AskedItem,
    Cell,
    CheckedAnswer,
    CheckOffersAnswer,
    CheckSent,
    ClassesSent,
    ClassOffersAnswer,
    ConfirmationSent,
    FoundItemAnswer,
    Health,
    ImportAnswer,
    ImportSent,
    ItemAnswer,
    ItemsAnswer,
    ItemsSent,
    LabelRow,
    LabelsAnswer,
    LabelSent,
    ModelAnswer,
    ModelSent,
    NextAnswer,
    NextSent,
    Only,
    OpinionAnswer,
    PeopleAnswer,
    PredictionAnswer,
    PredictionsAnswer,
    PredictionSent,
    Problem,
    ProjectAnswer,
    Receipt,
    ReviewAnswer,
    SequentialOfferAnswer,
    SettingChangeAnswer,
    SettingsAnswer,
    SettingsSent,
    SignInSent,
    SkipSent,
    StatusAnswer,
    UndoSent,
    VisitorAnswer,
)
from suffice.web.sessions import Sessions
from suffice.web.visitors import Visitor

# Seconds after the last activity for which a person counts as active.
_LATELY_SECONDS = 300.0
# Number of long responses that are computed at the same time. Others wait; labelling does not.
_LONG_ANSWERS: Final = 2


def _long_answers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_LONG_ANSWERS, thread_name_prefix="suffice long answers")


@dataclass(frozen=True)
class AppContext:
    """Objects that requests need.

    Attributes:
        project: The project.
        background: Learns its labels.
        access: Access rules of the server.
        sessions: People with accounts who are signed in.
        visitor: Sender of the request; None if the project has no accounts.
        long_answers: Threads for responses that take long, so that they do not delay labels.
        prefix: Path of the application on the server; empty for the root.
    """

    project: Project
    background: BackgroundLearner
    access: Access
    sessions: Sessions
    visitor: Visitor | None = None
    long_answers: ThreadPoolExecutor = field(default_factory=_long_answers)
    prefix: str = ""

    @property
    def own_name(self) -> str | None:
        """The name of a person with the role ``label``, who sees and corrects only their own labels; otherwise None."""
        visitor = self.visitor
        return visitor.name if visitor is not None and visitor.role == "label" else None

    def require_item(self, item: int) -> int:
        """Return the number of an existing item.

        Raises:
            HTTPException: 404, there is none.
        """
        if item >= self.project.size:
            raise HTTPException(404, f"there is no item {item}; the project has items 0 to {self.project.size - 1}")
        return item

    def catch_up(self, patience: float) -> None:
        """Wait until the model has learned all labels, with a limit in seconds."""
        with self.project.lock:
            state = self.project.state()
            answers = state.n_labelled + state.n_skipped
        self.background.wait(answers, patience)

    def settle(self, patience: float) -> None:
        """Wait until the model has learned everything, for an exported file.

        Raises:
            ConflictError: It has not learned everything within the time limit.
        """
        if not self.background.wait_settled(patience) and not self.background.gave_up:
            raise ConflictError("the model is still learning the last labels and corrections; try again in a minute")

    def is_alone(self, person: str) -> bool:
        """Whether this person is the only recently active one."""
        since = time.time() - _LATELY_SECONDS
        with self.project.lock:
            people = self.project.state().people
            return all(name == person or other.last < since for name, other in people.items())


async def context_of(request: Request) -> AppContext:
    """The context of the application that received a request, with the sender of the request."""
    context = request.app.state.context
    assert isinstance(context, AppContext)
    visitor = getattr(request.state, "visitor", None)
    return context if visitor is None else replace(context, visitor=visitor)


Context = Annotated[AppContext, Depends(context_of)]


P = ParamSpec("P")
T = TypeVar("T")


def takes_long(answer: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Run the handler of a route in the threads for long responses.

    Args:
        answer: The function of the route; it has an argument ``context``.
    """

    @wraps(answer)
    async def answered(*arguments: P.args, **named: P.kwargs) -> T:
        context = inspect.signature(answer).bind(*arguments, **named).arguments["context"]
        assert isinstance(context.long_answers, ThreadPoolExecutor)
        run = partial(answer, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(context.long_answers, run)

    return answered


async def require_permission(request: Request, context: Context) -> None:
    """Raise an error for actions that the role does not allow, and for requests in the name of another person.

    Raises:
        HTTPException: 403.
    """
    if context.visitor is None:
        return
    sent = None
    if request.method == "POST":
        # A body that is not JSON is refused afterwards, with what is wrong with it.
        with suppress(ValueError, RecursionError):
            sent = await request.json()
    person = sent.get("person") if isinstance(sent, dict) else None
    context.visitor.require(request.method, request.scope["route"].path, person, request.state.accounts)


class JsonRoute(APIRoute):
    """A route that accepts only JSON, which a form of another web site cannot send."""

    def get_route_handler(self) -> Any:
        """Handler of a request."""
        handle = super().get_route_handler()

        async def with_json(request: Request) -> Response:
            media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if request.method == "POST" and media_type != "application/json":
                raise HTTPException(415, "the Content-Type of a POST must be application/json")
            answer: Response = await handle(request)
            return answer

        return with_json


def cells_of(item: Item) -> list[Cell]:
    """The cells of an item, cut to the maximal length."""
    return [Cell(name=name, value=value[:LONGEST_CELL], cut=len(value) > LONGEST_CELL) for name, value in item.cells]


def image_url(item: Item, prefix: str = "") -> str | None:
    """Address of the image of an item, if it has one.

    Args:
        item: The item.
        prefix: Path of the application on the server.
    """
    return f"{prefix}/api/items/{item.position}/image" if item.image else None


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Documented errors of a route: the given ones, and those that every route can have."""
    return {
        status: {"description": _MEANINGS[status], "content": _PROBLEM} for status in sorted({*_EVERYWHERE, *statuses})
    }


# A reference in place of the model: the framework would make the same schema again for each status of each route, at
# each start. The route of the health names the model itself, so that the schema is part of the description.
_PROBLEM = {"application/json": {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}}


_EVERYWHERE = (400, 401, 403, 413, 422, 503)
_MEANINGS = {
    400: "The request cannot be read.",
    401: "A token is needed, or it is wrong; or somebody must sign in.",
    403: "Another host or web site is named, the header X-Suffice-CSRF is missing, or the role does not allow it.",
    404: "There is no such item, or it has no image.",
    409: "The state of the project does not allow it.",
    413: "The body is too large.",
    415: "The body must be JSON.",
    422: "A value in the request is invalid.",
    501: "An extra of suffice is not installed.",
    503: "The project cannot be read or written now.",
    507: "The disk is full; nothing was written.",
}


# Number of items that are read at a time during a text search; each may be large.
_CHUNK: Final = 200


class TableQuery(NamedTuple):
    """Selection of rows.

    Attributes:
        offset: Rows to leave out.
        limit: Rows at most.
        search: A text that must occur in the id, a cell, the label or the name; empty for all rows.
        only: Kind of rows.
        person: Person whose rows are returned, without opinions of others; None for the rows of everybody.
    """

    offset: int = 0
    limit: int = 50
    search: str = ""
    only: Only = "all"
    person: str | None = None


class _TableEntry(NamedTuple):
    item: int
    label: Label | None
    person: str
    at: float
    corrected: bool
    opinions: tuple[Opinion, ...]
    unsure: bool = False
    reason: str = ""
    in_check: bool = False


def label_table(project: Project, query: TableQuery) -> LabelsAnswer:
    """Rows of the table, and the total number of rows.

    Args:
        project: The project.
        query: Which rows.
    """
    with project.lock:
        entries = _entries(project.state(), query.only, query.person)
    if query.search.strip():
        entries = list(_containing(project, entries, query.search.strip().casefold()))
    page = entries[query.offset : query.offset + query.limit]
    with project.lock:
        checks = project.state().checks
        page = [entry._replace(in_check=checks.includes(entry.item)) for entry in page]
    items = project.items([entry.item for entry in page])
    main, sought = project.settings.main, query.search.strip()
    rows = [_row(entry, item, item_excerpt(item.cells, main, sought)) for entry, item in zip(page, items, strict=True)]
    return LabelsAnswer(total=len(entries), rows=rows)


def _entries(state: ProjectState, only: Only, person: str | None) -> list[_TableEntry]:
    """Rows of a kind, the newest first; those of one person if there is one."""
    entries: list[_TableEntry] = []
    if only not in {"skipped", "unsure"}:
        entries += [
            _TableEntry(row.item, row.label, row.person, row.at, row.corrected, row.opinions)
            for row in state.labelled()
        ]
    if only in {"all", "skipped", "unsure"}:
        entries += [
            _TableEntry(row.item, None, row.person, row.at, False, (), row.unsure, row.reason)
            for row in state.skipped()
            if row.unsure or only != "unsure"
        ]
    if person is not None:
        entries = [
            entry._replace(opinions=tuple(opinion for opinion in entry.opinions if opinion.person == person))
            for entry in entries
            if entry.person == person
        ]
    if only == "corrected":
        entries = [entry for entry in entries if entry.corrected]
    if only in {"disagreed", "unresolved"}:
        entries = [entry for entry in entries if len({opinion.label for opinion in entry.opinions}) > 1]
    if only == "unresolved":
        entries = [entry for entry in entries if not entry.corrected]
    # Of two entries with the same time, the later one is newer.
    entries.reverse()
    return sorted(entries, key=lambda entry: -entry.at)


def _containing(project: Project, entries: Sequence[_TableEntry], text: str) -> Iterator[_TableEntry]:
    for start in range(0, len(entries), _CHUNK):
        chunk = entries[start : start + _CHUNK]
        items = project.items([entry.item for entry in chunk])
        for entry, item in zip(chunk, items, strict=True):
            words = (
                item.id,
                item_summary(item.cells, project.settings.main),
                # Long texts are searched to their end.
                *(" ".join(value.split()) for _, value in item.cells),
                "" if entry.label is None else str(entry.label),
                entry.person,
                entry.reason,
            )
            if any(text in word.casefold() for word in words):
                yield entry


def _row(entry: _TableEntry, item: Item, summary: str) -> LabelRow:
    return LabelRow(
        item=entry.item,
        id=item.id,
        summary=summary,
        label=entry.label,
        person=entry.person,
        at=moment(entry.at),
        corrected=entry.corrected,
        skipped=entry.label is None,
        unsure=entry.unsure,
        reason=entry.reason,
        opinions=[
            OpinionAnswer(person=opinion.person, label=opinion.label, at=moment(opinion.at))
            for opinion in entry.opinions
        ],
        majority=majority_of([opinion.label for opinion in entry.opinions]),
        in_check=entry.in_check,
    )


page_router = APIRouter()

_PAGE: Final = "index.html"
#: The page with the list of projects of a folder.
PROJECTS_PAGE: Final = "projects.html"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True)
class Asset:
    """A file of the page.

    Attributes:
        content: Content of the file.
        media_type: Media type of the file.
        tag: Entity tag, which changes with the content.
    """

    content: bytes
    media_type: str
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """The installed files of the page, by name. No other files are served."""
    by_name = {}
    # Page and reports have the same colours.
    shared = files("suffice.report").joinpath("templates", "palette.css")
    for file in [*files("suffice.web").joinpath("static").iterdir(), shared]:
        media_type = _TYPES.get(f".{file.name.rpartition('.')[2]}")
        if media_type is not None and file.is_file():
            content = file.read_bytes()
            by_name[file.name] = Asset(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return by_name


@page_router.get("/", include_in_schema=False)
async def get_page() -> Response:
    """The page."""
    page = assets()[_PAGE]
    return Response(page.content, media_type=page.media_type)


@page_router.get("/static/{name:path}", include_in_schema=False)
async def get_asset(name: str, request: Request) -> Response:
    """A file of the page. The browser caches it until its content changes."""
    asset = assets().get(name)
    if asset is None or name in {_PAGE, PROJECTS_PAGE}:
        raise HTTPException(404, f"the page has no file {name[:200]!r}")
    headers = {"ETag": asset.tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == asset.tag:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)


#: Documented errors of the route for the health of a server.
HEALTH_PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    403: {"model": Problem, "description": "Another host is named."}
}


@page_router.get("/health", responses=HEALTH_PROBLEMS)
async def get_health() -> Health:
    """Whether the server runs; needs no token."""
    return Health(ok=True)


@page_router.head("/health", include_in_schema=False)
async def head_health() -> Response:
    """Whether the server runs, without a body."""
    return Response()


session_router = APIRouter(route_class=JsonRoute, include_in_schema=False)


@session_router.post(SIGN_IN_PATH)
async def sign_in(sent: SignInSent, request: Request, context: Context) -> Response:
    """Sign in to an account with its password. The session is stored in a cookie."""
    address = address_of(request)
    account = await context.sessions.sign_in(sent.person, sent.password, address)
    answer = JSONResponse(VisitorAnswer(name=account.name, role=account.role).model_dump())
    return await run_in_threadpool(context.sessions.start, answer, account, address, secure=is_encrypted(request))


@session_router.post(SIGN_OUT_PATH)
async def sign_out(request: Request, context: Context) -> Response:
    """End the session."""
    return await run_in_threadpool(context.sessions.end, JSONResponse({"ok": True}), request.headers)


reading_router = APIRouter(prefix="/api", tags=["reading"])

#: Media types of images, by file name extension. Without SVG, because it can contain scripts.
IMAGE_TYPES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}
_LARGEST_IMAGE: Final = 64 << 20
# Maximal number of listed changes of settings.
_MOST_CHANGES: Final = 50
ItemInPath = Annotated[int, InPath(ge=0, le=LAST_ITEM, description=MEANINGS["item"])]


@reading_router.get("/project", responses=documented())
def get_project(context: Context) -> ProjectAnswer:
    """The project, and the value that a page sends as X-Suffice-CSRF with every POST request."""
    with context.project.lock:
        settings, state = context.project.current_settings, context.project.state()
        made, revision = state.made, state.revision
    rule, visitor = settings.criterion(), context.visitor
    threshold = getattr(rule, "threshold", None)
    return ProjectAnswer(
        name=settings.name,
        task=settings.task,
        classes=list(settings.classes),
        target=settings.target,
        shown=settings.shown,
        columns=list(settings.columns),
        main=settings.main,
        size=context.project.size,
        model=settings.model,
        models=[ModelAnswer(name=name, description=described_model(name)) for name in settings.models()],
        rule=type(rule).__name__,
        threshold=threshold if isinstance(threshold, int | float) else None,
        overlap=settings.overlap,
        unit=settings.unit,
        lowest=settings.lowest,
        highest=settings.highest,
        opinions=settings.opinions,
        guidelines_html=markdown_html(settings.guidelines) if settings.guidelines else "",
        descriptions=dict(settings.descriptions),
        source=settings.source,
        made=0.0 if made is None else made.at,
        revision=revision,
        notes=list(settings.notes),
        version=suffice.__version__,
        csrf=context.access.csrf if visitor is None else visitor.csrf,
        account=None if visitor is None else VisitorAnswer(name=visitor.name, role=visitor.role),
        checked=_checked_answer(settings),
    )


def _checked_answer(settings: Settings) -> CheckedAnswer | None:
    checked = settings.checked
    if checked is None:
        return None
    return CheckedAnswer(
        columns=list(checked.columns),
        answer=checked.answer,
        probability=checked.probability,
        group=checked.group,
        spans=None if checked.spans is None else list(checked.spans),
    )


@reading_router.get("/settings", responses=documented())
def get_settings(context: Context) -> SettingsAnswer:
    """The settings that can be changed, and the history of their changes, the newest first."""
    settings = context.project.current_settings
    label_cost, mistake_cost = settings.costs() or (None, None)
    events = context.project.settings_editor.history()[:_MOST_CHANGES]
    return SettingsAnswer(
        name=settings.name,
        guidelines=settings.guidelines,
        descriptions=dict(settings.descriptions),
        label_cost=label_cost,
        mistake_cost=mistake_cost,
        at_most=settings.at_most,
        of=settings.of,
        annotator_error=settings.annotator_error,
        correction_cost=settings.correction_cost,
        tolerance=settings.tolerance,
        positive=settings.positive,
        may_miss=list(settings.may_miss),
        overlap=settings.overlap,
        unit=settings.unit,
        lowest=settings.lowest,
        highest=settings.highest,
        opinions=settings.opinions,
        rule=type(settings.criterion()).__name__,
        history=[
            SettingChangeAnswer(
                # The program itself has no name in the journal.
                person=event.person or "suffice",
                at=event.when,
                words=setting_change_sentence(event.kind.value, event.data),
            )
            for event in events
        ],
    )


@reading_router.get("/status", responses=documented())
def get_status(context: Context) -> StatusAnswer:
    """Status of labelling and learning, in numbers and in words."""
    fields: dict[str, Any] = status(context.project, context.background.learning_status)
    return StatusAnswer(**fields)


@reading_router.get("/checks/offers", responses=documented(409))
@takes_long
def get_check_offers(
    context: Context,
    size: Annotated[int | None, Query(ge=1, le=LAST_ITEM, description=MEANINGS["size"])] = None,
    tolerance: Annotated[float | None, Query(ge=0.0, allow_inf_nan=False, description=MEANINGS["tolerance"])] = None,
) -> CheckOffersAnswer:
    """Likely guarantees of checks, if the estimated error is correct. Nothing is started."""
    sizes, learned = SIZES if size is None else (size,), context.background.learning_status
    offers = _or_conflict(lambda: check_offers(context.project, learned, tolerance=tolerance, sizes=sizes))
    return CheckOffersAnswer(**offers.as_dict())


@reading_router.get("/checks/sequential-offer", responses=documented(409))
@takes_long
def get_sequential_offer(
    context: Context,
    at_most: Annotated[float, Query(gt=0.0, lt=1.0, description=MEANINGS["share"])],
    tolerance: Annotated[float | None, Query(ge=0.0, allow_inf_nan=False, description=MEANINGS["tolerance"])] = None,
) -> SequentialOfferAnswer:
    """Least number of answers of a check that ends when its target is proven. Nothing is started."""
    learned = context.background.learning_status
    offer = _or_conflict(lambda: sequential_offer(context.project, learned, at_most, tolerance=tolerance))
    return SequentialOfferAnswer(**offer.as_dict())


@reading_router.get("/checks/recall-offers", responses=documented(409))
@takes_long
def get_recall_offers(
    context: Context,
    recall_of: Annotated[str, Query(max_length=1000, description=MEANINGS["recall_of"])],
    predicted_as_found: Annotated[bool, Query(description=MEANINGS["predicted_as_found"])] = True,
) -> ClassOffersAnswer:
    """Cost of checks of the recall of a class, if the model's own estimate is correct. Nothing is started."""

    def offers() -> ClassOffers:
        predictions = context.background.predictions()
        return class_offers(context.project, predictions, recall_of=recall_of, predicted_as_found=predicted_as_found)

    return ClassOffersAnswer(**_or_conflict(offers).as_dict())


# Seconds that the list of labels to review waits for the model to learn the last labels.
_REVIEW_WAIT = 2.0


def _or_conflict(run: Callable[[], T]) -> T:
    """Result of a function; a conflict if the model has not started or cannot learn."""
    try:
        return run()
    except (ConflictError, InvalidValueError, StorageError):
        raise
    except SufficeError as error:
        raise ConflictError(str(error)) from None


@reading_router.get("/labels", responses=documented())
@takes_long
def get_labels(
    context: Context,
    offset: Annotated[int, Query(ge=0, le=LAST_ITEM, description=MEANINGS["offset"])] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS, description=MEANINGS["limit"])] = 50,
    search: Annotated[str, Query(max_length=200, description=MEANINGS["search"])] = "",
    only: Annotated[Only, Query(description=MEANINGS["only"])] = "all",
) -> LabelsAnswer:
    """Labels and skips, newest first, filtered by search.

    A user with the role ``label`` sees only their own, so that other answers do not influence theirs.
    """
    return label_table(context.project, TableQuery(offset, limit, search, only, context.own_name))


@reading_router.get("/people", responses=documented())
@takes_long
def get_people(context: Context) -> PeopleAnswer:
    """People: seconds per answer, how many answers were right, and whether answers are by chance."""
    with context.project.lock:
        found = people_summary(context.project.state(), context.project.settings)
    return PeopleAnswer(**found)


@reading_router.get("/review", responses=documented())
@takes_long
def get_review(
    context: Context, most: Annotated[int, Query(ge=1, le=MOST_ROWS, description=MEANINGS["most"])] = 50
) -> ReviewAnswer:
    """Labels that are probably wrong: a model trained without them predicts something else."""
    context.catch_up(_REVIEW_WAIT)
    try:
        ranked = context.background.suspicious_labels()
    except StorageError:
        raise
    except SufficeError:
        ranked = []
    return ReviewAnswer(**review(context.project, ranked, most).as_dict())


@reading_router.get("/items", responses=documented(404))
@takes_long
def find_item(
    context: Context, id: Annotated[str, Query(min_length=1, max_length=500, description=MEANINGS["id"])]
) -> FoundItemAnswer:
    """The item of an id, and its label if there is one.

    A user with the role ``label`` sees only their own label.
    """
    try:
        position = context.project.contents.position_of(id)
    except NoMatchError as error:
        raise HTTPException(404, str(error)) from None
    shown = context.project.item(position)
    with context.project.lock:
        state = context.project.state()
        act, own = state.acts.deciding(position), context.own_name
        visible = act is not None and own in (None, act.person)
        in_check = state.checks.includes(position)
    return FoundItemAnswer(
        item=position,
        id=shown.id,
        cells=cells_of(shown),
        image=image_url(shown),
        label=act.data["label"] if act is not None and visible else None,
        person=act.person if act is not None and visible else "",
        in_check=in_check,
    )


@reading_router.get("/items/{item}", responses=documented(404))
def get_item(item: ItemInPath, context: Context) -> ItemAnswer:
    """One item."""
    shown = context.project.item(context.require_item(item))
    return ItemAnswer(item=shown.position, id=shown.id, cells=cells_of(shown), image=image_url(shown, context.prefix))


@reading_router.get(
    "/items/{item}/image",
    response_class=Response,
    responses={200: {"content": {"image/*": {"schema": {"type": "string", "format": "binary"}}}}, **documented(404)},
)
def get_image(item: ItemInPath, context: Context) -> Response:
    """The image of an item. Only files in the folder of the project's images are served."""
    image, root = context.project.item(context.require_item(item)).image, context.project.settings.root
    if not image or not root:
        raise HTTPException(404, f"item {item} has no image")
    file, media_type = image_file(Path(root), image)
    try:
        if file.stat().st_size > _LARGEST_IMAGE:
            raise _no_image(image, f"it is larger than {_LARGEST_IMAGE >> 20} MiB")
        return Response(file.read_bytes(), media_type=media_type)
    except OSError as error:
        raise _no_image(image, error.strerror or "it cannot be read") from None


def image_file(root: Path, image: str) -> tuple[Path, str]:
    """The file of an image and its type.

    Args:
        root: The folder of the images.
        image: Where the image is in it.

    Raises:
        HTTPException: 404, the file is missing, outside the folder, or not an image.
    """
    try:
        folder = root.resolve(strict=True)
        file = (folder / image).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        raise _no_image(image, "the file is not there any more") from None
    media_type = IMAGE_TYPES.get(file.suffix.lower())
    if not file.is_relative_to(folder):
        raise _no_image(image, "it lies outside the folder of the project's images")
    if media_type is None or not file.is_file():
        raise _no_image(image, f"it is none of {', '.join(IMAGE_TYPES)}")
    return file, media_type


def _no_image(image: str, reason: str) -> HTTPException:
    return HTTPException(404, f"the image {image[:200]!r} cannot be shown: {reason}")


labelling_router = APIRouter(prefix="/api", tags=["labelling"], route_class=JsonRoute)

# Seconds that a single active person waits for the model to learn the last label, so that the next item is the best.
_LABEL_WAIT = 0.1


@labelling_router.post("/next", responses=documented(415, 507))
def ask_next(sent: NextSent, context: Context) -> NextAnswer:
    """The next items for a person, reserved for a while.

    Items that the person was asked for and has not answered come first, so a repeated request returns the same items.
    """
    project = context.project
    if context.is_alone(sent.person):
        context.catch_up(_LABEL_WAIT)
    asked = project.assigner.next(sent.person, sent.n, queue=context.background.learning_status.queue)
    items = project.items([assignment.position for assignment in asked])
    with project.lock:
        state = project.state()
        # Predictions made elsewhere are checked only, unless the goal is about all labels.
        only_checked = project.settings.checked is not None and project.settings.goal is None
        left = len(state.checks.pending()) if only_checked else state.left
    shown = [
        AskedItem(
            item=item.position,
            id=item.id,
            cells=cells_of(item),
            image=image_url(item, context.prefix),
            until=assignment.until,
            why=assignment.why,
            check=assignment.check,
        )
        for assignment, item in zip(asked, items, strict=True)
    ]
    return NextAnswer(items=shown, left=left)


@labelling_router.post("/labels", responses=documented(404, 409, 415, 507))
def add_label(sent: LabelSent, context: Context) -> Receipt:
    """Label an item.

    The label is on disk before the response is sent. A repeated request ID has no effect.
    """
    item = context.require_item(sent.item)
    about: dict[str, Any] = sent.model_dump(exclude={"item", "label"})
    return _done(context, lambda: context.project.label_writer.label(item, sent.label, **about))


@labelling_router.post("/skips", responses=documented(404, 409, 415, 507))
def add_skip(sent: SkipSent, context: Context) -> Receipt:
    """Skip an item that cannot be labelled. It is not requested again."""
    item = context.require_item(sent.item)
    about = sent.model_dump(exclude={"item"})
    return _done(context, lambda: context.project.label_writer.skip(item, **about))


@labelling_router.post("/unsure", responses=documented(404, 409, 415, 507))
def add_unsure(sent: SkipSent, context: Context) -> Receipt:
    """Record that a person does not know the label. The item is skipped and listed for review."""
    item = context.require_item(sent.item)
    about = sent.model_dump(exclude={"item"})
    return _done(context, lambda: context.project.label_writer.skip(item, unsure=True, **about))


@labelling_router.post("/corrections", responses=documented(404, 409, 415, 507))
def add_correction(sent: LabelSent, context: Context) -> Receipt:
    """Correct the label of an item.

    A user with the role ``label`` can correct only items that nobody else has labelled.
    """
    item = context.require_item(sent.item)
    about: dict[str, Any] = sent.model_dump(exclude={"item", "label"})
    only_own = context.own_name is not None
    return _done(context, lambda: context.project.label_writer.correct(item, sent.label, only_own=only_own, **about))


@labelling_router.post("/confirmations", responses=documented(404, 409, 415, 507))
def add_confirmation(sent: ConfirmationSent, context: Context) -> Receipt:
    """Confirm that the current label is correct. The review does not list it again."""
    item = context.require_item(sent.item)
    return _done(context, lambda: context.project.label_writer.confirm(item, person=sent.person, request=sent.request))


@labelling_router.post("/predictions", responses=documented(404, 409, 415, 507))
def show_prediction(sent: PredictionSent, context: Context) -> PredictionsAnswer:
    """The prediction of the model for an item, and imported predictions. The journal records who saw them.

    A label that the person gives this item afterwards has ``saw_prediction`` and does not count as a random label. For
    an item of a check, the response is 409.
    """
    item = context.require_item(sent.item)
    predictor = predictor_or_none(context.background)
    imported = context.project.label_writer.show_prediction(item, person=sent.person)
    predictions = [] if imported is None else [_prediction(imported, None)]
    if predictor is not None:
        row = predictor.predict(context.project.X[[item]])
        doubt = float(row.uncertainty[0])
        share, deviation = (None, doubt) if row.probabilities is None else (1.0 - doubt, None)
        predictions.insert(0, _prediction(PredictedLabel(row.labels[0].item(), share, ""), deviation))
    return PredictionsAnswer(item=item, predictions=predictions)


def predictor_or_none(background: BackgroundLearner) -> ItemPredictor | None:
    """A copy of the current model, or None before it has started."""
    try:
        return background.predictor()
    except SufficeError:
        return None


def _prediction(predicted: PredictedLabel, deviation: float | None) -> PredictionAnswer:
    label, probability, source = predicted
    sentence = prediction_sentence(label, probability=probability, deviation=deviation, source=shortened(source, 60))
    return PredictionAnswer(source=source, label=label, probability=probability, deviation=deviation, sentence=sentence)


@labelling_router.post("/imports", responses=documented(409, 415, 507))
@takes_long
def import_rows(sent: ImportSent, context: Context) -> ImportAnswer:
    """Import labels, or predictions of another model, by item id. Either all rows are written or none.

    If no row has the id of an item, the response is 409 and shows ids of the request and of the project. Labels that
    differ from those of the project are counted as ``conflicting``; ``conflicts`` says what happens to them.
    """
    table: dict[str, Any] = {
        "id": [row.id for row in sent.rows],
        "label": [row.label for row in sent.rows],
        "probability": [row.probability for row in sent.rows],
    }
    if sent.kind == "labels":
        report = context.project.importer.import_labels(
            table,
            label="label",
            person=sent.person,
            id="id",
            by="id",
            conflicts=sent.conflicts,
            check=sent.check,
            request=sent.request,
        )
    else:
        report = context.project.importer.import_predictions(
            table,
            prediction="label",
            person=sent.person,
            id="id",
            by="id",
            probability="probability",
            source=sent.source,
            check=sent.check,
            request=sent.request,
        )
    context.background.wake()
    return ImportAnswer(**report.as_dict(), sentences=report.sentences(trial=sent.check))


@labelling_router.post("/items", responses=documented(409, 415, 507))
@takes_long
def add_items(sent: ItemsSent, context: Context) -> ItemsAnswer:
    """Add rows to the project, either all or none. Existing guarantees do not cover them.

    Rows with the ids of items that the project has already are refused with 422: the response says how many there are,
    and how many of them have another label.
    """
    names = list(dict.fromkeys(name for row in sent.rows for name in row))
    table = {name: [_cell(row.get(name)) for row in sent.rows] for name in names}
    report = context.project.importer.add_items(table, person=sent.person, check=sent.check, request=sent.request)
    context.background.wake()
    return ItemsAnswer(**report.as_dict(), sentences=report.sentences(trial=sent.check))


def _cell(value: str | float | None) -> str:
    return "" if value is None else value if isinstance(value, str) else number_name(value)


@labelling_router.post("/undo", responses=documented(409, 415, 507))
def undo(sent: UndoSent, context: Context) -> Receipt:
    """Undo the newest label, skip or correction of a person. The response names its item."""
    return _done(context, lambda: context.project.label_writer.undo(person=sent.person, request=sent.request))


@labelling_router.post("/model", responses=documented(409, 415, 507))
def switch_model(sent: ModelSent, context: Context) -> Receipt:
    """Replace the model. The new model learns all labels; no label is lost."""
    return _done(
        context,
        lambda: context.project.settings_editor.switch_model(sent.model, person=sent.person, request=sent.request),
    )


@labelling_router.post("/settings", responses=documented(409, 415, 507))
def change_settings(sent: SettingsSent, context: Context) -> Receipt:
    """Change settings for everybody. Omitted settings keep their values. The journal records who changed what."""
    changes = sent.changes()
    return _done(
        context, lambda: context.project.settings_editor.change(changes, person=sent.person, request=sent.request)
    )


@labelling_router.post("/classes", responses=documented(409, 415, 507))
def change_classes(sent: ClassesSent, context: Context) -> Receipt:
    """Add, rename, merge, reorder or remove classes. The model learns all labels again; no label is lost."""
    asked = sent.model_dump(exclude={"classes"})
    return _done(context, lambda: context.project.class_editor.change(sent.classes, **asked))


@labelling_router.post("/checks", responses=documented(409, 415, 507))
@takes_long
def start_check(sent: CheckSent, context: Context) -> Receipt:
    """Start a check: draw unlabelled items at random. People are asked for them before all other items.

    The current model learns all labels first, and its predictions are stored with the check. When all items are
    labelled or skipped, or with ``at_most`` when it is proven, GET /api/status contains the guarantee.
    """
    asked = sent.model_dump(exclude={"size"})
    if context.project.settings.checked is not None:
        return _done(context, lambda: _or_conflict(lambda: _start_prediction_check(sent, context.project)))

    if sent.size is None and sent.expected is None:
        tolerance = context.project.settings.tolerance if sent.tolerance is None else sent.tolerance
        screening = context.project.settings.screens_to_goal(sent.of)
        asked["expected"] = expected_share(context.background.learning_status, tolerance, screening=screening)

    def start() -> WriteReceipt:
        predict = context.background.predictions_after
        return context.project.check_runner.start(sent.size, predict=predict, **asked)

    return _done(context, lambda: _or_conflict(start))


def _start_prediction_check(sent: CheckSent, project: Project) -> WriteReceipt:
    from suffice.project.prediction_results import start_prediction_check

    # What is fixed by the project may be sent with the same value.
    settings = project.settings
    fixed = {"tolerance": settings.tolerance, "annotator_error": settings.annotator_error}
    for name in ("tolerance", "share", "annotator_error", "unlabelable_as", "predicted_as_found"):
        value = getattr(sent, name)
        if value not in (CheckSent.model_fields[name].default, fixed.get(name)):
            raise InvalidValueError(f"{name} is not used in a check of predictions made elsewhere; leave it out")
    names = ("person", "at_most", "expected", "of", "size", "recall_of", "precision_of", "confidence", "request")
    return start_prediction_check(project, **sent.model_dump(include=set(names)))


@labelling_router.post("/checks/abort", responses=documented(409, 415, 507))
def abort_check(sent: AbortSent, context: Context) -> Receipt:
    """Abort the open check.

    It gives no guarantee, its share of the error probability stays spent, and its labels are kept.
    """
    return _done(context, lambda: context.project.check_runner.abort(person=sent.person, request=sent.request))


def _done(context: AppContext, write: Callable[[], WriteReceipt]) -> Receipt:
    written = write()
    context.background.wake()
    with context.project.lock:
        behind = answers_behind(context.project.state(), context.background.learning_status)
    return Receipt(seq=written.seq, item=written.position, repeated=written.repeated, behind=behind)


file_router = APIRouter(prefix="/api", tags=["files"])

FormatInQuery = Annotated[Format, Query(description=MEANINGS["format"])]
# Seconds that an exported file waits for the model to learn the last labels.
_EXPORT_WAIT = 15.0


def _file_of(types: Iterable[str]) -> dict[int | str, dict[str, Any]]:
    """Documented response of a route that returns a file of one of some media types."""
    binary = {"schema": {"type": "string", "format": "binary"}}
    content = {kind.partition(";")[0]: binary for kind in types}
    return {200: {"description": "The file.", "content": content}}


_FILE = _file_of(MEDIA_TYPES.values())


@file_router.get("/export/labels", response_class=Response, responses=_FILE | documented(501))
@takes_long
def export_labels(context: Context, format: FormatInQuery = "csv") -> Response:
    """All items with a label, in the order of labelling."""
    return _attached(labels_file(context.project, format))


@file_router.get("/export/skipped", response_class=Response, responses=_FILE | documented(409, 501))
@takes_long
def export_skipped(context: Context, format: FormatInQuery = "csv") -> Response:
    """All skipped items without a label: who skipped them, when, whether they were unsure, and the reason."""
    file = skipped_file(context.project, format)
    if file is None:
        raise ConflictError("no item is skipped, so there is nothing to export")
    return _attached(file)


@file_router.get("/export/predictions", response_class=Response, responses=_FILE | documented(409, 501))
@takes_long
def export_predictions(context: Context, format: FormatInQuery = "csv") -> Response:
    """Predictions for all items without a label, with their uncertainty."""
    context.settle(_EXPORT_WAIT)
    predictions = _or_conflict(context.background.predictions)
    return _attached(predictions_file(context.project, predictions, format))


@file_router.get(
    "/export/rows", response_class=Response, responses=_file_of(FINAL_MEDIA_TYPES.values()) | documented(409, 501)
)
@takes_long
def export_rows(
    context: Context,
    format: Annotated[FinalFormat, Query(description=MEANINGS["final_format"])] = "csv",
    bom: Annotated[bool, Query(description=MEANINGS["bom"])] = False,
) -> Response:
    """All rows in the order of the data: labels of people, and predictions for the others. No goal is needed."""
    context.settle(_EXPORT_WAIT)
    try:
        predictions = context.background.predictions()
    except StorageError:
        raise
    except SufficeError:
        # The model has not started. The labels are there.
        predictions = None
    return _attached(all_rows_file(context.project, predictions, format, byte_order_mark=bom))


@file_router.get("/export/checked-predictions", response_class=Response, responses=_FILE | documented(409, 501))
@takes_long
def export_checked_predictions(context: Context, format: FormatInQuery = "csv") -> Response:
    """The predictions that the newest guarantee covers, if it covers an earlier model."""
    file = checked_predictions_file(context.project, format)
    if file is None:
        raise ConflictError("no guarantee is about an earlier model; export the predictions instead")
    return _attached(file)


@file_router.get(
    "/export/guarantee",
    response_class=Response,
    responses={200: {"description": "The file.", "content": {"application/json": {}}}, **documented(409)},
)
@takes_long
def export_guarantee(context: Context) -> Response:
    """The newest guarantee with its evidence, as JSON: the statement, the items of the check and their labels."""
    file = guarantee_file(context.project)
    if file is None:
        raise ConflictError("nothing is guaranteed yet: no check is complete")
    return _attached(file)


@file_router.get(
    "/final", response_class=Response, responses=_file_of(FINAL_MEDIA_TYPES.values()) | documented(409, 501)
)
@takes_long
def get_final(
    context: Context,
    format: Annotated[FinalFormat, Query(description=MEANINGS["final_format"])] = "csv",
    bom: Annotated[bool, Query(description=MEANINGS["bom"])] = False,
) -> Response:
    """The final file: all rows in the order of the data, with their labels; 409 if the goal is not reached."""
    return _attached(final_file(context.project, _final_labels(context), format, byte_order_mark=bom))


@file_router.get(
    "/final/statement",
    response_class=Response,
    responses={200: {"description": "The page.", "content": {"text/html": {}}}, **documented(409, 501)},
)
@takes_long
def get_statement(context: Context) -> HTMLResponse:
    """The statement about the final file, as a page to print; 409 if the goal is not reached."""
    from suffice.report.statement_page import statement_page

    page = statement_page(context.project, _final_labels(context))
    return HTMLResponse(page.encode("utf-8", "replace"), headers={"Content-Security-Policy": REPORT_POLICY})


@file_router.get(
    "/checks/statement",
    response_class=Response,
    responses={200: {"description": "The page.", "content": {"text/html": {}}}, **documented(409, 501)},
)
@takes_long
def get_check_statement(context: Context) -> HTMLResponse:
    """The statement about predictions made elsewhere, as a page to print; 409 before a check has ended."""
    from suffice.report.prediction_statement import prediction_statement

    page = _or_conflict(lambda: prediction_statement(context.project))
    return HTMLResponse(page.encode("utf-8", "replace"), headers={"Content-Security-Policy": REPORT_POLICY})


def _final_labels(context: AppContext) -> ProjectLabels:
    """The final labels of the project; a conflict if the goal is not reached."""
    predict = context.background.predictions_after
    return _or_conflict(lambda: context.project.final_labels(predict=predict))


@file_router.get("/report", response_class=HTMLResponse, responses=documented(409, 501))
@takes_long
def get_report(context: Context) -> HTMLResponse:
    """The report as a self-contained page: labels, decision and guarantee."""
    from suffice.report.project_report import report_page

    context.settle(_EXPORT_WAIT)
    page = report_page(context.project, context.background.learning_status)
    # A cell may contain surrogates.
    content = page.encode("utf-8", "replace")
    return HTMLResponse(content, headers={"Content-Security-Policy": REPORT_POLICY})


def _attached(file: Exported) -> Response:
    name = re.sub(r"[^A-Za-z0-9._-]", "_", file.name)
    return Response(
        file.content, media_type=file.media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
