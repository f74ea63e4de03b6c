"""The page and the HTTP API of a labelling project; needs the extra ``web``."""

from suffice.errors import MissingExtraError

try:
    import fastapi
    import uvicorn
except ImportError as error:
    raise MissingExtraError(error.name or "fastapi", "web", "The page") from None

from suffice.web.server import create_app, listening, serve_on, server_options

del fastapi, uvicorn

__all__ = ["create_app", "listening", "serve_on", "server_options"]
