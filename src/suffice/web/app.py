"""The application: the page and the API of one project, behind the gate."""

from typing import Any

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.middleware import Middleware

import suffice
from suffice.session.companion import BackgroundLearner
from suffice.session.project import Project
from suffice.web import routes_files, routes_labelling, routes_page, routes_reading
from suffice.web.access import Access, Gate
from suffice.web.desk import AppContext
from suffice.web.headers import SafeHeaders
from suffice.web.limits import BodyLimit
from suffice.web.problems import add_problem_handlers

_ABOUT = (
    "Labels for a project, and a word when it is enough. Whatever the page does, a script can do here. Where a token "
    "is needed, a script sends it as Authorization: Bearer TOKEN. A browser sends the csrf value of /api/project as "
    "X-Suffice-CSRF with everything that it posts."
)


def create_app(project: Project, background: BackgroundLearner, access: Access) -> FastAPI:
    """Make the application of a project.

    Args:
        project: The project.
        background: Learns its labels; started and closed by the caller.
        access: Who may come in.
    """
    app = FastAPI(
        title="suffice",
        version=suffice.__version__,
        description=_ABOUT,
        openapi_url="/api/openapi.json",
        # Their pages load from elsewhere, and a project has to work without a network.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[Middleware(SafeHeaders), Middleware(Gate, access=access), Middleware(BodyLimit)],
    )
    app.state.context = AppContext(project, background, access)
    # The gate checks the token; this says so in the OpenAPI.
    needed: list[Any] = [] if access.token is None else [Depends(HTTPBearer(auto_error=False))]
    routers = [part.router for part in (routes_labelling, routes_reading, routes_files)]
    for router in routers:
        app.include_router(router, dependencies=needed)
    app.include_router(routes_page.router)
    add_problem_handlers(app, [route for router in (*routers, routes_page.router) for route in router.routes])
    return app
