"""The page itself with its own files, and the sign of life."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from suffice.web.schemas import Health, Problem

router = APIRouter()

_PAGE: Final = "index.html"
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
        content: What it holds.
        media_type: What HTTP calls its format.
        tag: A name for exactly this content.
    """

    content: bytes
    media_type: str
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """The files of the page by name: those that are installed, and no others ever."""
    found = {}
    for file in files("suffice.web").joinpath("static").iterdir():
        media_type = _TYPES.get(f".{file.name.rpartition('.')[2]}")
        if media_type is not None and file.is_file():
            content = file.read_bytes()
            found[file.name] = Asset(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found


@router.get("/", include_in_schema=False)
async def get_page() -> Response:
    """The page."""
    page = assets()[_PAGE]
    return Response(page.content, media_type=page.media_type)


@router.get("/static/{name:path}", include_in_schema=False)
async def get_asset(name: str, request: Request) -> Response:
    """A file of the page, kept by the browser until it is another one."""
    asset = assets().get(name)
    if asset is None or name == _PAGE:
        raise HTTPException(404, f"the page has no file {name[:200]!r}")
    headers = {"ETag": asset.tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == asset.tag:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)


@router.get("/health", responses={403: {"model": Problem, "description": "Another host is named."}})
async def get_health() -> Health:
    """That the server is there; needs no token."""
    return Health(ok=True)


@router.head("/health", include_in_schema=False)
async def head_health() -> Response:
    """That the server is there, for those who want no more than a status."""
    return Response()
