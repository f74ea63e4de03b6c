"""Access to the server: its token, the names that it answers to, and the address it listens on."""

import ipaddress
import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from suffice.errors import InvalidValueError
from suffice.files import PRIVATE_FILE
from suffice.web.digests import keyed_digest, same_text

_SHORTEST_TOKEN: Final = 16
_LONGEST_TOKEN: Final = 200
_HOST: Final = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9_.-]+))(?::[0-9]{0,5})?")


@dataclass(frozen=True)
class Access:
    """Access rules of the server.

    Attributes:
        host: The address that is listened on.
        token: What everybody has to know, or None where everybody on this machine can come in.
        csrf: What the page sends with everything that changes something.
    """

    host: str = "127.0.0.1"
    token: str | None = field(default=None, repr=False)
    csrf: str = field(default="", repr=False)

    @property
    def cookie_name(self) -> str:
        """Name of the cookie. It depends on the token, because all ports of a machine share their cookies."""
        return f"suffice_{self._derived('name')[:12]}"

    @property
    def cookie_value(self) -> str:
        """The value of the cookie; the token cannot be computed from it."""
        return self._derived("cookie")

    def knows(self, token: str) -> bool:
        """Whether a token is right; the comparison takes constant time."""
        return same_text(token, self.token or "")

    def serves(self, host: str) -> bool:
        """Whether the Host of a request is allowed.

        Without a token, a web site could point its own name at this machine and read everything (DNS rebinding). With a
        token it cannot, because the cookie belongs to the name that a person opened.

        Examples:
            >>> local = Access()
            >>> local.serves("localhost:8000"), local.serves("[::1]:8000"), local.serves("evil.example:8000")
            (True, True, False)
        """
        if self.token is not None:
            return True
        name = host_name(host)
        return name in {"localhost", "127.0.0.1", "::1"} or (name != "" and name == self.host.lower())

    def _derived(self, purpose: str) -> str:
        return keyed_digest(self.token or "", purpose)


def granted_access(host: str, token: str | None = None) -> Access:
    """Return the access rules for an address and a token.

    Args:
        host: The address to listen on.
        token: What everybody has to know, or None to let everybody on this machine come in, and nobody else.

    Raises:
        InvalidValueError: Other machines could connect without a token, or the token is easy to guess.

    Examples:
        >>> granted_access("127.0.0.1").token is None
        True
        >>> granted_access("0.0.0.0")
        Traceback (most recent call last):
        ...
        suffice.errors.InvalidValueError: --host 0.0.0.0 lets other machines in, which ... refuses without a token: ...
    """
    if token is None:
        if not is_loopback(host):
            raise InvalidValueError(
                f"--host {host or repr(host)} lets other machines in, which suffice serve refuses without a token: "
                "leave --no-token out"
            )
        return Access(host=host, csrf=secrets.token_urlsafe(24))
    if not _SHORTEST_TOKEN <= len(token) <= _LONGEST_TOKEN or not all("!" <= letter <= "~" for letter in token):
        raise InvalidValueError(
            f"the token (SUFFICE_TOKEN) must be {_SHORTEST_TOKEN} to {_LONGEST_TOKEN} letters, digits or signs of "
            f"ASCII without spaces, but it has {len(token)} characters; without SUFFICE_TOKEN a random one is used"
        )
    # Derived from the token, so that an open page continues to work after a restart with the same token.
    return Access(host=host, token=token, csrf=keyed_digest(token, "csrf"))


def made_token() -> str:
    """A random token."""
    return secrets.token_urlsafe(24)


#: The file with the token for this machine, in the folder of a project.
TOKEN_FILE: Final = "token"


def kept_token(folder: Path | None) -> str:
    """The token of a project for this machine. It is stored with the project, so that bookmarks work after a restart.

    Only the owner can read the file. The owner can read the project too, so the file reveals nothing new.

    Args:
        folder: The folder of the project; None if it has none. Then, and where the file cannot be used, the token is a
            new one.
    """
    if folder is None:
        return made_token()
    file, token = folder / TOKEN_FILE, made_token()
    try:
        # Never use a file that another user has created or can read.
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    except FileExistsError:
        return _read_token(file) or token
    except OSError:
        return token
    with suppress(OSError), open(handle, "w", encoding="ascii") as written:
        written.write(token)
    return token


def _read_token(file: Path) -> str | None:
    """A stored token, if it is valid and nobody else can have read or written it."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        with open(handle, encoding="ascii") as kept:
            found = os.fstat(handle)
            text = kept.read(_LONGEST_TOKEN + 1).strip()
    except (OSError, ValueError):
        return None
    own = os.name != "posix" or (found.st_uid == os.geteuid() and not found.st_mode & 0o077)
    return text if own and re.fullmatch(r"[A-Za-z0-9_-]{32,200}", text) else None


def is_loopback(host: str) -> bool:
    """Whether an address can be reached only from this machine.

    Examples:
        >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("")
        (True, True, False, False)
    """
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(host: str) -> str:
    """The name in a Host header, without the port; empty if it is invalid.

    Examples:
        >>> host_name("LocalHost:8000"), host_name("[::1]"), host_name("a@b:1"), host_name("::1:x")
        ('localhost', '::1', '', '')
    """
    found = _HOST.fullmatch(host)
    return "" if found is None else (found["six"] or found["name"]).lower()
