"""The OpenAPI is true, and nothing that is sent breaks the server: schemathesis tries."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
import requests
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from suffice.project.accounts import ROLES
from suffice.project.background_learner import BackgroundLearner
from suffice.project.labelling_project import Project
from suffice.web.access import Access
from suffice.web.server import create_app
from tests.thoroughness import examples, some, thorough
from tests.web.requests_in_process import InProcess, Message
from tests.web.web_projects import TOKEN, make_project, running_app, script_of

# The host that schemathesis names.
ACCESS = Access(host="testserver", csrf="csrf-of-the-page")
# The OpenAPI is the same for all projects, and none is needed to write it.
NO_PROJECT = create_app(cast(Project, None), cast(BackgroundLearner, None), ACCESS)
SCHEMA = schemathesis.openapi.from_asgi("/api/openapi.json", NO_PROJECT)
# Values at every limit of the OpenAPI are made when tests are collected, by each process; the slow tests have them.
SCHEMA.config.phases.coverage.enabled = thorough()
# A label may be well formed and still be none of the classes of the project; so may a model and what is to be checked.
PROJECT_DECIDES = {
    "/api/items",
    *("/api/labels", "/api/corrections", "/api/model", "/api/classes", "/api/settings"),
    *("/api/checks", "/api/checks/offers", "/api/checks/sequential-offer"),
    "/api/export/rows",
}


@pytest.fixture(scope="module", params=some(["classification", "regression"], every=2))
def app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    changes: dict[str, Any] = {}
    if request.param == "regression":
        changes = {"task": "regression", "classes": (), "model": "gp"}
    with ExitStack() as stack:
        yield stack.enter_context(running_app(make_project(tmp_path_factory.mktemp("s") / "p", **changes), ACCESS))


@SCHEMA.parametrize()
@settings(max_examples=12 if thorough() else 2)
def test_every_request_has_the_answer_that_the_openapi_names(case: schemathesis.Case[Any], app: FastAPI) -> None:
    excluded = [positive_data_acceptance] if case.path in PROJECT_DECIDES else []
    response = case.call(app=app)
    if response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        # A refusal too, which this check does not know.
        excluded.append(negative_data_rejection)
    case.validate_response(response, excluded_checks=excluded)


def test_requests_in_any_order_have_it_too(app: FastAPI) -> None:
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", app)
    schema.as_state_machine().run(settings=settings(examples(20), stateful_step_count=8))
    assert script_of(app, Host="testserver").get("/api/status").status_code == 200


#: How many requests the slow test sends in all.
REQUESTS = int(os.environ.get("SUFFICE_API_REQUESTS", "20000"))


class Served(NamedTuple):
    """An application, and what is sent to it with each request."""

    name: str
    app: FastAPI
    headers: dict[str, str]


@contextmanager
def served(folder: Path) -> Iterator[list[Served]]:
    """Projects of classes and of numbers, without accounts and for each role; they learn only at first."""
    with ExitStack() as stack:
        found = []
        for task in ("classification", "regression"):
            changes: dict[str, Any] = {}
            if task == "regression":
                changes = {"task": "regression", "classes": (), "model": "gp"}
            for access in (ACCESS, Access(host="testserver", token=TOKEN, csrf="csrf-of-the-page")):
                with_accounts = access.token is not None
                project = stack.enter_context(make_project(folder / f"{task}-{with_accounts}", n=200, **changes))
                for item in range(40):
                    label = float(item % 7) if changes else ("spam", "ham")[item % 2]
                    project.label(item, label, person="Ann")
                # It learns once. After it is closed, no request waits for it.
                background = BackgroundLearner(project)
                with background:
                    assert background.wait_settled(60.0)
                app = create_app(project, background, access)
                if not with_accounts:
                    found.append(Served(f"{task} without accounts", app, {}))
                for role in ROLES if with_accounts else ():
                    token = project.add_account(role, role=role, person="Ann")
                    found.append(Served(f"{task}, {role}", app, {"authorization": f"Bearer {token}"}))
        yield found


def messages(operation: Any, number: int) -> list[Message]:
    """Different requests for a route: as the OpenAPI says, and not as it says."""
    found = []
    for mode in GenerationMode:

        @settings(max_examples=number, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        @given(operation.as_strategy(generation_mode=mode))
        def collect(case: schemathesis.Case[Any]) -> None:
            parts = case.as_transport_kwargs()
            request = requests.Request(**parts | {"url": f"http://testserver{parts['url']}"}).prepare()
            body = request.body or b""
            headers = {name.lower(): str(value) for name, value in request.headers.items()}
            sent = body.encode() if isinstance(body, str) else body
            assert request.method is not None
            found.append(Message(request.method, request.path_url, sent, headers))

        # There is nothing wrong to send to a route without a parameter.
        with suppress(Unsatisfiable):
            collect()
    return found


@pytest.mark.slow
def test_no_reply_of_many_requests_says_that_the_server_failed(tmp_path: Path) -> None:
    operations = [result.ok() for result in SCHEMA.get_all_operations()]
    statuses, failed = Counter[tuple[str, int]](), []
    with served(tmp_path) as targets, InProcess() as client:
        each = -(-REQUESTS // (len(operations) * len(targets)))
        for operation in operations:
            made = messages(operation, -(-each // 2))
            for number in range(each):
                message = made[number % len(made)]
                for target in targets:
                    reply = client.ask(target.app, message, **target.headers)
                    statuses[target.name, reply.status] += 1
                    if reply.status >= 500:
                        failed.append((target.name, message.method, message.target, message.body[:500], reply))
    assert not failed, (len(failed), failed[:5])
    assert statuses.total() >= REQUESTS
    for target in targets:
        # Each of them does something, and refuses something.
        assert statuses[target.name, 200] > REQUESTS / 200
        assert statuses[target.name, 422] > REQUESTS / 200


def test_everything_is_in_the_openapi() -> None:
    described = NO_PROJECT.openapi()
    operations = {
        (method, path): operation
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    }
    assert set(operations) == {
        ("get", "/api/project"),
        ("post", "/api/next"),
        ("post", "/api/labels"),
        ("get", "/api/labels"),
        ("post", "/api/skips"),
        ("post", "/api/unsure"),
        ("post", "/api/corrections"),
        ("post", "/api/confirmations"),
        ("post", "/api/predictions"),
        ("post", "/api/imports"),
        ("post", "/api/items"),
        ("get", "/api/people"),
        ("get", "/api/review"),
        ("get", "/api/people"),
        ("post", "/api/undo"),
        ("post", "/api/model"),
        ("post", "/api/classes"),
        ("get", "/api/settings"),
        ("post", "/api/settings"),
        ("get", "/api/checks/offers"),
        ("get", "/api/checks/statement"),
        ("get", "/api/checks/recall-offers"),
        ("get", "/api/checks/sequential-offer"),
        ("post", "/api/checks"),
        ("post", "/api/checks/abort"),
        ("get", "/api/status"),
        ("get", "/api/items"),
        ("get", "/api/items/{item}"),
        ("get", "/api/items/{item}/image"),
        ("get", "/api/export/labels"),
        ("get", "/api/export/skipped"),
        ("get", "/api/export/predictions"),
        ("get", "/api/export/checked-predictions"),
        ("get", "/api/export/guarantee"),
        ("get", "/api/export/rows"),
        ("get", "/api/final"),
        ("get", "/api/final/statement"),
        ("get", "/api/report"),
        ("get", "/health"),
    }
    for (method, path), operation in operations.items():
        assert operation["description"], path
        if path != "/health":
            assert {"200", "401", "403", "413", "422", "503"} <= set(operation["responses"]), path
        if method == "post":
            assert {"415", "507"} <= set(operation["responses"]), path
