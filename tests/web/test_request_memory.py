"""The memory of the server stays the same over many requests to each route, apart from the events that they write.

The variable ``SUFFICE_MEMORY_REQUESTS`` sets the number of requests to each route, such as 10,000; these are sent
without accounts, too.
"""

import gc
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import pytest

from suffice.project.background_learner import BackgroundLearner
from suffice.project.labelling_project import Project
from suffice.web.access import Access
from suffice.web.server import create_app
from tests.web.requests_in_process import InProcess, Message
from tests.web.test_schema import NO_PROJECT
from tests.web.web_projects import TOKEN, make_project

#: Requests to each route.
LONG = "SUFFICE_MEMORY_REQUESTS" in os.environ
REQUESTS = int(os.environ.get("SUFFICE_MEMORY_REQUESTS", "300"))
# After so large a share of the requests, everything is imported and caches of a fixed size are full.
WARM_UP = 0.4
#: Blocks of memory, of which a Python object has at least one, that may be kept for each request, and for each event
#: that is written: the state of the project has what each person did, and the name of each request.
PER_REQUEST, PER_EVENT = 2.0, 40.0
#: Of a route that computes for long, only a tenth of the requests is sent.
SLOW = ("/api/checks/recall-offers",)
ITEMS = 200
# Growth is a fault if it is there so many times in a row.
REPETITIONS = 3


class Served(NamedTuple):
    """An application, its project, and what is sent with each request."""

    app: Any
    project: Project
    headers: dict[str, str]
    client: InProcess


# Each request passes through the same parts with accounts, and through more.
@pytest.fixture(scope="module", params=["with accounts", "without accounts"] if LONG else ["with accounts"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    token = TOKEN if request.param == "with accounts" else None
    with ExitStack() as stack:
        project = stack.enter_context(make_project(tmp_path_factory.mktemp("memory") / "p", n=ITEMS))
        for item in range(40):
            project.label(item, ("spam", "ham")[item % 2], person="Ann")
        headers = {}
        if token is not None:
            secret = project.add_account("Ann", role="manage", person="Ann")
            headers = {"authorization": f"Bearer {secret}"}
        background = BackgroundLearner(project)
        with background:
            assert background.wait_settled(60.0)
        # After the learner is closed, no request waits for it.
        app = create_app(project, background, Access(host="testserver", token=token, csrf="c"))
        yield Served(app, project, headers, stack.enter_context(InProcess()))


def bodies(k: int) -> dict[str, dict[str, Any]]:
    """What request number ``k`` sends to each route that is posted to."""
    item, label = k % ITEMS, ("spam", "ham")[k // ITEMS % 2]
    sent: dict[str, dict[str, Any]] = {
        "/api/next": {},
        "/api/labels": {"item": item, "label": label, "request": f"label-{k}"},
        "/api/skips": {"item": item, "request": f"skip-{k}"},
        "/api/unsure": {"item": item, "request": f"unsure-{k}"},
        "/api/corrections": {"item": 7, "label": ("spam", "ham")[k % 2], "request": f"correction-{k}"},
        "/api/confirmations": {"item": 7, "request": f"confirmation-{k}"},
        "/api/predictions": {"item": item},
        "/api/imports": {"rows": [{"id": f"mail-{item}", "kind": label}], "label": "kind", "id": "id"},
        # It is refused, because each accepted row adds to the pool.
        "/api/items": {"rows": [{"word": "no size"}]},
        "/api/undo": {},
        "/api/model": {"model": ("kernel", "logistic")[k % 2]},
        "/api/settings": {"guidelines": f"Look {k % 2} times."},
        "/api/classes": {"classes": ["spam", "ham"], "before": ["spam", "ham"]},
        "/api/checks": {"size": 2},
        "/api/checks/abort": {},
        # Nobody is signed in. POST /sign-in is not sent: each wrong password is answered late on purpose.
        "/sign-out": {},
    }
    return {path: {"person": "Ann", **body} for path, body in sent.items()}


# What a route that is read needs to be told.
QUERIES = {
    "/api/items": "?id=mail-3",
    "/api/checks/sequential-offer": "?at_most=0.2",
    "/api/checks/recall-offers": "?recall_of=spam",
    "/api/labels": f"?search={quote('mail')}",
}


def routes() -> list[tuple[str, str]]:
    """All routes: those of the OpenAPI, the page, a file of it, and the end of a session."""
    described = [(method.upper(), path) for path, all_of in NO_PROJECT.openapi()["paths"].items() for method in all_of]
    return [*described, ("GET", "/"), ("GET", "/static/api.js"), ("POST", "/sign-out")]


def message_of(method: str, path: str) -> Callable[[int], Message]:
    """What is sent to a route, by the number of the request."""
    if method == "GET":
        target = path.replace("{item}", "3") + QUERIES.get(path, "")
        return lambda _: Message("GET", target)
    return lambda k: Message("POST", path, json.dumps(bodies(k)[path]).encode(), {"content-type": "application/json"})


def growth(ask: Callable[[int], object], number: int) -> float:
    """Blocks of memory that are kept for each request after the first ones.

    It is the median over all pairs of twelve moments, so that a table that doubles its size does not count.
    """
    moments = np.unique(np.linspace(WARM_UP * number, number, 12).astype(int))
    used = []
    for k in range(number + 1):
        if k in moments:
            gc.collect()
            used.append(sys.getallocatedblocks())
        ask(k)
    steps = [(used[j] - used[i]) / (moments[j] - moments[i]) for i in range(len(used)) for j in range(i + 1, len(used))]
    return float(np.median(steps))


@pytest.fixture(scope="module", autouse=True)
def _fast_collection() -> Iterator[None]:
    # What is there already is not looked at again.
    gc.freeze()
    yield
    gc.unfreeze()


def test_the_growth_of_a_list_is_found() -> None:
    kept: list[bytes] = []
    assert growth(lambda k: kept.extend(bytes(100 + j % 300 + k % 7) for j in range(3)), 300) > PER_REQUEST
    assert abs(growth(lambda k: bytes(100 + k), 300)) < PER_REQUEST


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), routes())
def test_the_memory_stays_the_same(served: Served, method: str, path: str) -> None:
    message, number = message_of(method, path), REQUESTS // 10 if path in SLOW else REQUESTS
    # A thread that starts or ends in between adds blocks once; a leak is there each time.
    for repetition in range(REPETITIONS):
        first, before = repetition * (number + 1), served.project.state().seq

        def ask(k: int, first: int = first) -> object:
            return served.client.ask(served.app, message(first + k), **served.headers)

        found = growth(ask, number)
        events = (served.project.state().seq - before) / number
        # The same number of blocks in all, for fewer requests.
        if found < PER_REQUEST * REQUESTS / number + PER_EVENT * events:
            return
    pytest.fail(f"{found:.2f} blocks for each request, {events:.2f} events, {REPETITIONS} times")
