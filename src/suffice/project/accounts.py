"""Accounts of a labelling project: names, roles, and hashes of passwords and personal links for the journal."""

import hashlib
import hmac
import json
import secrets
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args

from suffice.errors import InvalidValueError, SufficeError
from suffice.project.events import Event, EventKind, moment, printable, shown

Role = Literal["label", "review", "manage"]
SignInKind = Literal["password", "link"]
#: The roles. Each role has all permissions of the roles before it.
ROLES: Final[tuple[Role, ...]] = get_args(Role)
#: Events that change accounts.
ACCOUNT_KINDS: Final = frozenset(
    {
        EventKind.account_made,
        EventKind.account_role_changed,
        EventKind.account_secret_changed,
        EventKind.account_removed,
    }
)
#: Limits of the length of a password, in characters.
SHORTEST_PASSWORD: Final = 8
LONGEST_PASSWORD: Final = 200
#: Cost of the hash of a new password: 16 MiB of memory, and about a quarter of a second.
SCRYPT: Final = {"n": 2**14, "r": 8, "p": 5}
_MOST_MEMORY: Final = 2**26


class NotAllowedError(SufficeError):
    """An action that the role of the account does not allow."""


@dataclass(frozen=True)
class Account:
    """A person who signs in under a name.

    Attributes:
        name: The name. It is also the name of the person in labels.
        role: What the person may do.
        sign_in: Whether the person signs in with a password or with a personal link.
        made: When the account was made, in seconds since 1970.
        kept: Data in the journal: a salted hash of the password, or a hash of the token in the link.
    """

    name: str
    role: Role
    sign_in: SignInKind
    made: float
    kept: Mapping[str, Any] = field(repr=False)

    @property
    def stamp(self) -> str:
        """A text that changes with each new password or link, even if the password is the same. It must stay secret."""
        return hashlib.sha256(json.dumps(dict(self.kept), sort_keys=True).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Public fields of an account, without its password or link."""
        return {"name": self.name, "role": self.role, "sign_in": self.sign_in, "made": moment(self.made)}


def permits(role: Role, needed: Role) -> bool:
    """Whether a role has the permissions of another role.

    Examples:
        >>> permits("review", "label"), permits("review", "manage")
        (True, False)
    """
    return ROLES.index(role) >= ROLES.index(needed)


def checked_role(role: Any) -> Role:
    """Return a valid role, or raise an error that names the problem.

    Raises:
        InvalidValueError: The value is not a role.
    """
    for each in ROLES:
        if role == each:
            return each
    raise InvalidValueError(f"role must be label, review or manage, not {shown(role)}")


def checked_password(password: Any) -> str:
    """Return a valid password, or raise an error that names the problem.

    Raises:
        InvalidValueError: It is too short or too long, or contains control characters or surrogates.
    """
    text = password if isinstance(password, str) else ""
    if not SHORTEST_PASSWORD <= len(text) <= LONGEST_PASSWORD or not printable(text):
        # The message does not contain the password, because it may remain visible on a screen.
        raise InvalidValueError(
            f"a password must be {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters without control characters, and "
            f"this one has {len(text)}"
        )
    return text


def kept_password(password: Any) -> dict[str, Any]:
    """Stored form of a password: a salted scrypt hash with its parameters.

    Raises:
        InvalidValueError: It cannot be used.
    """
    text = checked_password(password)
    salt = secrets.token_bytes(16)
    return {"salt": salt.hex(), "hash": _scrypt(text, salt, **SCRYPT).hex(), **SCRYPT}


def kept_link(token: str) -> dict[str, Any]:
    """Stored form of a personal link: the SHA-256 of its token, which is long and random."""
    return {"sha256": hashlib.sha256(_bytes(token)).hexdigest()}


def made_link_token() -> str:
    """A token for a personal link, of 256 random bits."""
    return secrets.token_urlsafe(32)


def account_with_password(accounts: Iterable[Account], name: str, password: str) -> Account | None:
    """The account with a name and password, or None. It takes the same time if there is no such account.

    The name is compared without regard to upper and lower case.
    """
    found = next((each for each in accounts if folded(each.name) == folded(name)), None)
    usable = found is not None and found.sign_in == "password"
    # If there is no account, the password is compared with a hash that no password has, so that the time is the same.
    nobody: Mapping[str, Any] = {"salt": "00" * 16, "hash": "00" * 32, **SCRYPT}
    kept = found.kept if found is not None and usable else nobody
    same = hmac.compare_digest(
        _scrypt(password, bytes.fromhex(kept["salt"]), kept["n"], kept["r"], kept["p"]), bytes.fromhex(kept["hash"])
    )
    return found if usable and same else None


def account_with_link(accounts: Iterable[Account], token: str) -> Account | None:
    """The account whose personal link has a token, or None. The token is compared with all accounts."""
    given = kept_link(token)["sha256"]
    fitting = [
        each for each in accounts if each.sign_in == "link" and hmac.compare_digest(str(each.kept["sha256"]), given)
    ]
    return fitting[0] if fitting else None


def folded(name: str) -> str:
    """A name for comparison: the same for names that differ only in upper and lower case or in their encoding.

    Examples:
        >>> folded("Zoë ") == folded("ZOE\u0308")
        True
    """
    # The caseless compatibility match of Unicode, D146.
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFD", name).casefold())
    return unicodedata.normalize("NFKD", text.casefold()).strip()


def accounts_after(accounts: Mapping[str, Account], event: Event) -> dict[str, Account]:
    """The accounts after one of :data:`ACCOUNT_KINDS`, by name.

    Raises:
        LookupError: The account of the event does not exist.
        ValueError: The account of the event exists already.
    """
    name, data = str(event.data["name"]), event.data
    if event.kind is EventKind.account_made:
        if name in accounts:
            raise ValueError(f"event {event.seq} makes the account {name!r} again")
        made = Account(name, checked_role(data["role"]), _kind(data), event.at, data[_kind(data)])
        return {**accounts, name: made}
    before = accounts[name]
    if event.kind is EventKind.account_removed:
        return {key: each for key, each in accounts.items() if key != name}
    if event.kind is EventKind.account_role_changed:
        return {**accounts, name: replace(before, role=checked_role(data["role"]))}
    changed = replace(before, sign_in=_kind(data), kept=data[_kind(data)])
    return {**accounts, name: changed}


def found_account(accounts: Mapping[str, Account], name: Any) -> Account:
    """The account of a name.

    Raises:
        InvalidValueError: There is no such account.
    """
    found = accounts.get(name.strip()) if isinstance(name, str) else None
    if found is None:
        known = f"the accounts are {', '.join(accounts)}" if accounts else "it has no accounts"
        raise InvalidValueError(f"the project has no account {shown(name)}; {known}")
    return found


def is_last_manager(accounts: Mapping[str, Account], name: str) -> bool:
    """Whether only this account can manage, while there are others."""
    managers = [each.name for each in accounts.values() if each.role == "manage"]
    return managers == [name] and len(accounts) > 1


def _kind(data: Mapping[str, Any]) -> SignInKind:
    return "password" if "password" in data else "link"


def _scrypt(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    # Keyboards may encode the same letters as different characters.
    text = unicodedata.normalize("NFKC", password)
    return hashlib.scrypt(_bytes(text), salt=salt, n=n, r=r, p=p, maxmem=_MOST_MEMORY, dklen=32)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
