"""Sessions of people who are signed in to a project with accounts."""

import asyncio
import hashlib
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response

from suffice.project.accounts import Account, account_with_link, account_with_password, folded
from suffice.project.storage import StorageError
from suffice.project.stored_sessions import MOST_OF_ACCOUNT, StoredSession, StoredSessions, session_digest
from suffice.web.access import Access
from suffice.web.cookies import COOKIE_SECONDS, cookies_of, set_cookie
from suffice.web.digests import keyed_digest, same_text
from suffice.web.guesses import GuessLimits, delay_guess, network_prefix
from suffice.web.visitors import Visitor

# Number of passwords that are verified at the same time; each needs memory and a processor.
_PASSWORDS_AT_ONCE: Final = 2
# Maximal waiting time in seconds while other people sign in.
_SIGN_IN_PATIENCE: Final = 5.0
_LOOK_AGAIN: Final = 0.05
# Entries of each table of a project in memory.
_MOST_IN_MEMORY: Final = 10_000
# The secret of a session has 256 random bits.
_SECRET_BYTES: Final = 32
_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{43}")


class HasAccounts(Protocol):
    """What has accounts: a project."""

    @property
    def place(self) -> str:
        """Its location."""

    @property
    def stored_sessions(self) -> StoredSessions | None:
        """The sessions in its database; None if it has none."""

    def accounts(self) -> tuple[Account, ...]:
        """The present accounts."""


class SessionMemory:
    """What cannot be written to the database of a project: its sessions, and the ends of stored ones.

    It is used while the database is read-only or its disk is full. It has a fixed number of entries. If there are more,
    the sessions that would end first are ended, and the ends that were noted first are forgotten. Only ends of sessions
    that are stored are noted, of which there are at most a hundred for each account.

    Args:
        most: Number of sessions, and of ends.
    """

    def __init__(self, most: int = _MOST_IN_MEMORY) -> None:
        self._most = most
        self._sessions: dict[str, StoredSession] = {}
        self._ended: dict[str, float] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Number of entries."""
        return len(self._sessions) + len(self._ended)

    def find(self, digests: Sequence[str]) -> list[StoredSession]:
        """The sessions with these digests, also those that have ended by themselves."""
        with self._lock:
            return [self._sessions[digest] for digest in digests if digest in self._sessions]

    def add(self, session: StoredSession, *, now: float) -> None:
        """Add a session, and remove those that have ended."""
        with self._lock:
            kept = sorted((each for each in self._sessions.values() if each.ends > now), key=lambda each: each.ends)
            of_account = [each for each in kept if each.account == session.account]
            surplus = {each.digest for each in of_account[: max(0, len(of_account) - MOST_OF_ACCOUNT + 1)]}
            kept = [each for each in kept if each.digest not in surplus][-(self._most - 1) :]
            self._sessions = {each.digest: each for each in [*kept, session]}

    def remove(self, digests: Iterable[str]) -> None:
        """Remove sessions."""
        with self._lock:
            for digest in digests:
                self._sessions.pop(digest, None)

    def has_ended(self, digest: str) -> bool:
        """Whether a stored session was ended without being removed from the database."""
        return digest in self._ended

    def note_ended(self, sessions: Iterable[StoredSession], *, now: float) -> None:
        """Note that stored sessions have ended."""
        with self._lock:
            kept = {digest: ends for digest, ends in self._ended.items() if ends > now}
            kept |= {each.digest: each.ends for each in sessions}
            self._ended = dict([*kept.items()][-self._most :])

    def ended(self) -> tuple[str, ...]:
        """Digests of the stored sessions that were ended without being removed."""
        with self._lock:
            return tuple(self._ended)

    def forget_ended(self, digests: Iterable[str]) -> None:
        """Forget ends of sessions that were removed from the database."""
        with self._lock:
            for digest in digests:
                self._ended.pop(digest, None)


class Sessions:
    """Sessions of people with accounts. They are stored with the accounts, in the database of the project.

    The cookie of a session contains a random value and nothing else, and the database its hash. So a session survives a
    restart of the server. It ends when the person signs out, after 30 days, when the account is removed or gets a new
    password or link, and for the owner with another token of the server. All processes that serve the project see this
    at the next request. An account has at most a hundred sessions; one more ends the one that would end first.

    The network of a person who signs in is stored as a keyed hash, so that wrong passwords from elsewhere do not lock
    that person out after a restart either.

    If the database cannot be written, people can still sign in. Their sessions are then kept in memory, until this
    process ends.

    Args:
        project: The project with its accounts.
        access: Who may come in otherwise.

    Attributes:
        limits: Limits of wrong tokens and passwords.
        memory: What cannot be written to the database.
    """

    def __init__(self, project: HasAccounts, access: Access) -> None:
        self._project, self._access = project, access
        self._names: set[tuple[str, str]] = set()
        self._looking = 0
        self.limits = GuessLimits()
        self.memory = SessionMemory()

    @property
    def cookie_name(self) -> str:
        """Name of the cookie. It depends on the project, because all ports of a machine share their cookies."""
        place = self._project.place.encode("utf-8", "surrogatepass")
        return f"suffice_session_{hashlib.sha256(place).hexdigest()[:12]}"

    async def accounts(self) -> tuple[Account, ...]:
        """The present accounts, including changes by other processes."""
        return await run_in_threadpool(self._project.accounts)

    def with_token(self, token: str, accounts: Iterable[Account]) -> Visitor | None:
        """The person of a token: of the server's token, or of a personal link."""
        if self._access.token is not None and self._access.knows(token):
            return _visitor(None, token)
        account = account_with_link(accounts, token)
        return None if account is None else _visitor(account, token)

    def with_cookie(self, headers: Headers, accounts: Iterable[Account]) -> Visitor | None:
        """The person of the session cookie of a request, if the session is valid.

        Args:
            headers: Headers of the request.
            accounts: The present accounts.

        Raises:
            StorageError: The database cannot be read.
        """
        given = self._secrets(headers)
        present = {account.name: account for account in accounts}
        for session in self._found(list(given)):
            account = None if session.account is None else present.get(session.account)
            if account is None and (session.account is not None or self._access.token is None):
                continue
            secret = given[session.digest]
            if session.ends > time.time() and same_text(session.binding, self._binding(secret, account)):
                return _visitor(account, secret)
        return None

    async def visitor(self, headers: Headers, accounts: Iterable[Account], address: str) -> Visitor | None:
        """The person of the session cookie of a request. The network of the request then is one of the account.

        Args:
            headers: Headers of the request.
            accounts: The present accounts.
            address: Address of the sender.

        Raises:
            StorageError: The database cannot be read.
        """
        if not self._secrets(headers):
            return None
        visitor = await run_in_threadpool(self.with_cookie, headers, accounts)
        if visitor is not None and visitor.name is not None:
            self.limits.accounts.note_right(self._key_of(visitor.name), address)
        return visitor

    def start(self, answer: Response, account: Account | None, address: str, *, secure: bool) -> Response:
        """Start a session for an authenticated person. The network of the person then is one of the account.

        Args:
            answer: The response that sets the cookie.
            account: The account; None for the owner.
            address: Address of the person.
            secure: Whether the browser sends the cookie only with TLS.
        """
        secret, now = secrets.token_urlsafe(_SECRET_BYTES), time.time()
        name = None if account is None else account.name
        session = StoredSession(session_digest(secret), name, self._binding(secret, account), now + COOKIE_SECONDS)
        stored = self._project.stored_sessions
        try:
            if stored is None:
                raise StorageError(f"{self._project.place} has no database for sessions")
            stored.add(session, now=now, network=None if account is None else _network_digest(account, address))
        except StorageError:
            # People can see the results of a project that cannot be written.
            self.memory.add(session, now=now)
        else:
            self._remove_ended(stored)
        set_cookie(answer, self.cookie_name, secret, secure=secure)
        return answer

    def end(self, answer: Response, headers: Headers) -> Response:
        """End the session of a request, in all processes that serve the project.

        Args:
            answer: The response that removes the cookie.
            headers: Headers of the request.

        Raises:
            StorageError: The database cannot be read.
        """
        digests = list(self._secrets(headers))
        self.memory.remove(digests)
        stored = self._project.stored_sessions
        sessions = [] if stored is None or not digests else stored.find(digests)
        if stored is not None and sessions:
            self.memory.note_ended(sessions, now=time.time())
            self._remove_ended(stored)
        answer.delete_cookie(self.cookie_name, path="/", httponly=True, samesite="lax")
        return answer

    async def sign_in(self, name: str, password: str, address: str) -> Account:
        """The account with a name and password. Requests for one name and network are processed one after the other.

        Args:
            name: Name of the account.
            password: Its password.
            address: Address of the sender.

        Raises:
            HTTPException: 401, there is no such account or the password is wrong, without saying which; 429, too many
                sign in, or too many wrong ones came from the network or were for the name; 409, there are no accounts.
        """
        accounts = await self.accounts()
        if not accounts:
            raise HTTPException(409, "this project has no accounts, so nobody needs to sign in")
        account_key = self._key_of(name)
        await self._recall_network(account_key, address, accounts)
        self._require_patience(account_key, address)
        # Guesses from other networks do not delay the owner of a name.
        key = folded(name), network_prefix(address)
        await self._wait(lambda: key not in self._names)
        self._names.add(key)
        try:
            await self._wait(lambda: self._looking < _PASSWORDS_AT_ONCE)
            # Others may have sent wrong ones meanwhile.
            self._require_patience(account_key, address)
            self._looking += 1
            try:
                found = await run_in_threadpool(account_with_password, accounts, name, password)
            finally:
                self._looking -= 1
            if found is not None:
                self.limits.accounts.note_right(account_key, address)
                return found
            self.limits.networks.note_wrong(address)
            self.limits.accounts.note_wrong(account_key)
            await delay_guess()
        finally:
            self._names.discard(key)
        raise HTTPException(401, "the name or the password is wrong")

    async def _recall_network(self, account_key: tuple[str, str], address: str, accounts: tuple[Account, ...]) -> None:
        """Find out whether the network of a person is stored, if that matters."""
        account = next((each for each in accounts if folded(each.name) == account_key[1]), None)
        stored = self._project.stored_sessions
        if account is None or stored is None or not self.limits.accounts.wait_for(account_key, address):
            return
        digest = _network_digest(account, address)
        with suppress(StorageError):
            if await run_in_threadpool(stored.knows_network, digest, now=time.time()):
                self.limits.accounts.note_right(account_key, address)

    def _require_patience(self, account_key: tuple[str, str], address: str) -> None:
        if seconds := self.limits.networks.wait_for(address):
            raise HTTPException(429, too_many_from_network(seconds), {"Retry-After": str(seconds)})
        if seconds := self.limits.accounts.wait_for(account_key, address):
            sentence = (
                f"too many wrong passwords were sent for this name; try again in {seconds} seconds, or from a network "
                "in which you have signed in before"
            )
            raise HTTPException(429, sentence, {"Retry-After": str(seconds)})

    async def _wait(self, free: Callable[[], bool]) -> None:
        end = time.monotonic() + _SIGN_IN_PATIENCE
        while not free():
            if time.monotonic() > end:
                raise HTTPException(429, "too many people are signing in; try again in a minute")
            await asyncio.sleep(_LOOK_AGAIN)

    def _key_of(self, name: str) -> tuple[str, str]:
        # A server of several projects has one table, and each project its own accounts.
        return self._project.place, folded(name)

    def _secrets(self, headers: Headers) -> dict[str, str]:
        """The secrets in the cookies of a request, by their digests."""
        values = cookies_of(headers, self.cookie_name)
        return {session_digest(value): value for value in values if _SECRET.fullmatch(value)}

    def _found(self, digests: list[str]) -> list[StoredSession]:
        """The sessions with these digests that nobody has ended."""
        if not digests:
            return []
        stored = self._project.stored_sessions
        sessions = [*self.memory.find(digests), *(stored.find(digests) if stored is not None else [])]
        return [session for session in sessions if not self.memory.has_ended(session.digest)]

    def _remove_ended(self, stored: StoredSessions) -> None:
        """Remove sessions that have ended. If that is not possible, they stay noted, and the next call tries again."""
        ended = self.memory.ended()
        with suppress(StorageError):
            if ended:
                stored.remove(ended)
                self.memory.forget_ended(ended)

    def _binding(self, secret: str, account: Account | None) -> str:
        """Digest, under the secret of a session, of what the session depends on.

        Who reads the database does not know the secret, so a short token of the server cannot be guessed from it.
        """
        if account is None:
            return keyed_digest(secret, f"owner {self._access.token or ''}")
        return keyed_digest(secret, f"account {account.stamp}")


def too_many_from_network(seconds: int) -> str:
    """What is said after too many wrong tokens or passwords from one network.

    Args:
        seconds: Time until the next one is accepted.
    """
    return f"too many wrong tokens or passwords came from this network; try again in {seconds} seconds"


def _network_digest(account: Account, address: str) -> str:
    """Digest of the network of an address, another one for each account and each of its passwords."""
    return keyed_digest(account.stamp, f"network {network_prefix(address)}")


def _visitor(account: Account | None, secret: str) -> Visitor:
    # It follows from the secret, so that an open page continues to work after a restart.
    return Visitor(account, keyed_digest(secret, "csrf"))
