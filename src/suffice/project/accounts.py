"""Accounts of a labelling project: names, roles, and what the journal keeps of passwords and personal links."""

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
#: The roles; each may do what those before it may.
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
#: Characters of a password.
SHORTEST_PASSWORD: Final = 8
LONGEST_PASSWORD: Final = 200
#: Cost of the hash of a new password: 16 MiB of memory, and about a quarter of a second.
SCRYPT: Final = {"n": 2**14, "r": 8, "p": 5}
_MOST_MEMORY: Final = 2**26


class NotAllowedError(SufficeError):
    """Something that a role does not allow."""


@dataclass(frozen=True)
class Account:
    """A person who signs in under a name.

    Attributes:
        name: The name, which is also that of the person in labels.
        role: What the person may do.
        sign_in: Whether by a password or by a personal link.
        made: When the account was made, in seconds since 1970.
        kept: What the journal keeps of it: a salted hash of the password, or a hash of the token in the link.
    """

    name: str
    role: Role
    sign_in: SignInKind
    made: float
    kept: Mapping[str, Any] = field(repr=False)

    @property
    def stamp(self) -> str:
        """Another text for each password or link that the account gets, also for the same password; not to be shown."""
        return hashlib.sha256(json.dumps(dict(self.kept), sort_keys=True).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Public fields of an account, without its password or link."""
        return {"name": self.name, "role": self.role, "sign_in": self.sign_in, "made": moment(self.made)}


def permits(role: Role, needed: Role) -> bool:
    """Whether somebody with a role may do what needs another.

    Examples:
        >>> permits("review", "label"), permits("review", "manage")
        (True, False)
    """
    return ROLES.index(role) >= ROLES.index(needed)


def checked_role(role: Any) -> Role:
    """Return a role, or say what is wrong with it.

    Raises:
        InvalidValueError: It is none of the roles.
    """
    for each in ROLES:
        if role == each:
            return each
    raise InvalidValueError(f"role must be label, review or manage, not {shown(role)}")


def checked_password(password: Any) -> str:
    """Return a password, or say what is wrong with it.

    Raises:
        InvalidValueError: It is too short or too long, or holds what is no letter.
    """
    text = password if isinstance(password, str) else ""
    if not SHORTEST_PASSWORD <= len(text) <= LONGEST_PASSWORD or not printable(text):
        # What came is not repeated: it may stay on a screen.
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
    """The account of a name and its password, or None; takes as long where there is no such account.

    Letters of the name may be written large or small.
    """
    found = next((each for each in accounts if folded(each.name) == folded(name)), None)
    usable = found is not None and found.sign_in == "password"
    # Where there is no account, the password is compared with a hash that no password has.
    nobody: Mapping[str, Any] = {"salt": "00" * 16, "hash": "00" * 32, **SCRYPT}
    kept = found.kept if found is not None and usable else nobody
    same = hmac.compare_digest(
        _scrypt(password, bytes.fromhex(kept["salt"]), kept["n"], kept["r"], kept["p"]), bytes.fromhex(kept["hash"])
    )
    return found if usable and same else None


def account_with_link(accounts: Iterable[Account], token: str) -> Account | None:
    """The account whose personal link has a token, or None; compares with all of them."""
    given = kept_link(token)["sha256"]
    fitting = [
        each for each in accounts if each.sign_in == "link" and hmac.compare_digest(str(each.kept["sha256"]), given)
    ]
    return fitting[0] if fitting else None


def folded(name: str) -> str:
    """A name for comparison: two that differ only in large and small letters, or in how these are encoded, are one.

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
        LookupError: The event is about an account that is not there.
        ValueError: The account is there already.
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
        InvalidValueError: There is none.
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
    # The same letters can be made of other characters on another keyboard.
    text = unicodedata.normalize("NFKC", password)
    return hashlib.scrypt(_bytes(text), salt=salt, n=n, r=r, p=p, maxmem=_MOST_MEMORY, dklen=32)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
