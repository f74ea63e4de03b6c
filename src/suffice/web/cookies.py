"""The cookies of the server: reading those of a request, and setting one."""

from typing import Final

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response

#: Seconds for which a browser keeps a cookie: 30 days.
COOKIE_SECONDS: Final = 30 * 24 * 3600
# A browser sends few cookies of the same name, one for each path and host that set it.
_MOST_OF_A_NAME: Final = 8


def cookies_of(headers: Headers, name: str) -> list[str]:
    """The values of the cookies of a name in a request, at most eight.

    Args:
        headers: Headers of the request.
        name: Name of the cookie.
    """
    # The header includes cookies of other programs on this machine, and some of them are malformed.
    found = (cookie_parser(line).get(name) for line in headers.getlist("cookie"))
    return [each for each in found if each is not None][:_MOST_OF_A_NAME]


def set_cookie(answer: Response, name: str, value: str, *, secure: bool) -> None:
    """Set a cookie that scripts of the page cannot read and that other web sites cannot make a browser send in a POST.

    Args:
        answer: The response that sets it.
        name: Its name.
        value: Its value.
        secure: Whether the browser sends it with TLS only.
    """
    answer.set_cookie(name, value, max_age=COOKIE_SECONDS, httponly=True, samesite="lax", path="/", secure=secure)
