"""The application context of every route: the project, its background learner, and access control."""

import asyncio
import inspect
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Annotated, Any, Final, ParamSpec, TypeVar

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response

from suffice.project.background_learner import BackgroundLearner
from suffice.project.items import Item
from suffice.project.labelling_project import ConflictError, Project
from suffice.web.schemas import LONGEST_CELL, Cell, Problem
from suffice.web.security import Access, Sessions, Visitor

# People who did nothing for longer than this are not waited for.
_LATELY_SECONDS = 300.0
# Long answers that are worked on at the same time; others wait for them, and labels do not.
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
        visitor: Who has sent the request; None where the project has no accounts.
        long_answers: The threads of answers that take long, so that they take no thread from labels.
    """

    project: Project
    background: BackgroundLearner
    access: Access
    sessions: Sessions
    visitor: Visitor | None = None
    long_answers: ThreadPoolExecutor = field(default_factory=_long_answers)

    @property
    def own_name(self) -> str | None:
        """The name of somebody with the role ``label``, who sees and corrects their own labels only; else None."""
        visitor = self.visitor
        return visitor.name if visitor is not None and visitor.role == "label" else None

    def require_item(self, item: int) -> int:
        """Return the number of an item that is there.

        Raises:
            HTTPException: 404, there is none.
        """
        if item >= self.project.size:
            raise HTTPException(404, f"there is no item {item}; the project has items 0 to {self.project.size - 1}")
        return item

    def catch_up(self, patience: float) -> None:
        """Wait for the model to learn what there is, but no longer than so many seconds."""
        with self.project.lock:
            state = self.project.state()
            answers = state.n_labelled + state.n_skipped
        self.background.wait(answers, patience)

    def settle(self, patience: float) -> None:
        """Wait until the model has learned everything, for what is to be kept.

        Raises:
            ConflictError: It has not within so many seconds.
        """
        if not self.background.wait_settled(patience) and not self.background.gave_up:
            raise ConflictError("the model is still learning what was labelled or corrected last; try again in a while")

    def is_alone(self, person: str) -> bool:
        """Whether this person is the only recently active one."""
        since = time.time() - _LATELY_SECONDS
        with self.project.lock:
            people = self.project.state().people
            return all(name == person or each.last < since for name, each in people.items())


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
    """Answer a route in the threads for long answers.

    Args:
        answer: The function of the route; it has an argument ``context``.
    """

    @wraps(answer)
    async def answered(*arguments: P.args, **named: P.kwargs) -> T:
        context = inspect.signature(answer).bind(*arguments, **named).arguments["context"]
        assert isinstance(context, AppContext)
        run = partial(answer, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(context.long_answers, run)

    return answered


async def require_permission(request: Request, context: Context) -> None:
    """Refuse what the role of an account does not allow, and what is sent in the name of somebody else.

    Raises:
        HTTPException: 403.
    """
    if context.visitor is None:
        return
    sent = await request.json() if request.method == "POST" else None
    person = sent.get("person") if isinstance(sent, dict) else None
    context.visitor.require(request.method, request.scope["route"].path, person, request.state.accounts)


class JsonRoute(APIRoute):
    """A route that takes JSON only: a form of another web site cannot send that."""

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
    """The cells of an item, none longer than is sent."""
    return [Cell(name=name, value=value[:LONGEST_CELL], cut=len(value) > LONGEST_CELL) for name, value in item.cells]


def image_url(item: Item) -> str | None:
    """Address of the image of an item, if it has one."""
    return f"/api/items/{item.position}/image" if item.image else None


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Documented errors of a route: the given ones, and those that every route can have."""
    return {
        status: {"model": Problem, "description": _MEANINGS[status]} for status in sorted({*_EVERYWHERE, *statuses})
    }


_EVERYWHERE = (400, 401, 403, 413, 422, 503)
_MEANINGS = {
    400: "What was sent cannot be read.",
    401: "A token is needed, or it is wrong; or somebody must sign in.",
    403: "Another host or web site is named, the header X-Suffice-CSRF is missing, or the role does not allow it.",
    404: "There is no such item, or it has no image.",
    409: "The state of the project does not allow it.",
    413: "The body is too large.",
    415: "The body must be JSON.",
    422: "Something that was sent cannot be used.",
    501: "An extra of suffice is not installed.",
    503: "The project cannot be read or written now.",
    507: "The disk is full; nothing was written.",
}
