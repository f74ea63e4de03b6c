"""The OpenAPI is true, and nothing that is sent breaks the server: schemathesis tries."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from suffice.project.background_learner import BackgroundLearner
from suffice.project.labelling_project import Project
from suffice.web.access import Access
from suffice.web.server import create_app
from tests.thoroughness import examples, some, thorough
from tests.web.web_projects import make_project, running_app, script_of

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
    case.call_and_validate(app=app, excluded_checks=[positive_data_acceptance] if case.path in PROJECT_DECIDES else [])


def test_requests_in_any_order_have_it_too(app: FastAPI) -> None:
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", app)
    schema.as_state_machine().run(settings=settings(examples(20), stateful_step_count=8))
    assert script_of(app, Host="testserver").get("/api/status").status_code == 200


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
