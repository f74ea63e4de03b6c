"""Limits of connections: how many there are, and how long each may wait for its client.

uvicorn has settings for the time that a connection stays open between two requests and for the size of a header. It has
no time limit for a header or a body, and its limit of connections refuses new connections while idle ones stay open. So
a subclass of its protocol closes connections that wait too long. If there are too many connections, it closes the one
that has waited longest. So people who label can always connect. uvicorn takes the class of a protocol as its setting
``http``; see :func:`guarded_protocol`.
"""

import asyncio
import ipaddress
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

try:
    import resource
except ImportError:  # Windows has no such limit.
    resource = None  # type: ignore[assignment]

_LOG: Final = logging.getLogger("uvicorn.error")
#: Connections that are accepted at a time. The limit can be exceeded briefly by this number.
ACCEPTED_AT_ONCE: Final = 32
# File descriptors for the database, the files of the model and the program, and for connections accepted at once.
_SPARE_DESCRIPTORS: Final = 96 + ACCEPTED_AT_ONCE
_MOST_CONNECTIONS: Final = 512
_FEWEST_CONNECTIONS: Final = 16
_LOG_SECONDS: Final = 60.0
# Minimal number of bytes of a response that a client must read within the time limit.
_LEAST_PROGRESS: Final = 1024
# Minimal number of bytes of an upload that a client must send within the time limit of a body.
_LEAST_UPLOADED: Final = 64 * 1024


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of the number and the waiting times of connections.

    Attributes:
        connections: Connections in all.
        per_address: Connections of one address.
        header_seconds: Time for the header of a request, from the first moment of a connection or the first byte.
        body_seconds: Time for the body of a request.
        idle_seconds: Time that a connection stays open between two requests.
        stalled_seconds: Time after which a client that reads nothing of its answer is given up.
        upload_paths: Paths of uploads. Their body may take longer, as long as bytes arrive.
    """

    connections: int = _MOST_CONNECTIONS
    per_address: int = _MOST_CONNECTIONS // 2
    header_seconds: float = 10.0
    body_seconds: float = 20.0
    idle_seconds: int = 15
    stalled_seconds: float = 30.0
    upload_paths: frozenset[str] = frozenset()


def connection_limits(descriptors: int | None = None) -> ConnectionLimits:
    """Limits that leave enough file descriptors for the database.

    Args:
        descriptors: Files that this process may open; asked of the system if left out.

    Examples:
        >>> connection_limits(256).connections, connection_limits(1024).connections, connection_limits(100).connections
        (128, 512, 16)
    """
    if descriptors is None:
        found = _MOST_CONNECTIONS * 2 if resource is None else resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        # The system returns -1 if there is no limit.
        descriptors = found if found > 0 else _MOST_CONNECTIONS * 2
    most = min(_MOST_CONNECTIONS, max(_FEWEST_CONNECTIONS, descriptors - _SPARE_DESCRIPTORS))
    return ConnectionLimits(connections=most, per_address=most // 2)


def network_of(address: str) -> str:
    """Unit that counts as one address: an IPv4 address, or a 64-bit network of IPv6.

    Examples:
        >>> network_of("192.0.2.7"), network_of("::ffff:192.0.2.7"), network_of("2001:db8::1:2"), network_of("?")
        ('192.0.2.7', '192.0.2.7', '2001:db8::/64', '?')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    mapped = found.ipv4_mapped
    return str(ipaddress.ip_network((found, 64), strict=False)) if mapped is None else str(mapped)


class Remarks(logging.Filter):
    """Limits log messages of frequent events to one per minute, with the number of events.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._counts: Counter[str] = Counter()
        self._said: dict[str, float] = {}

    def note(self, sentence: str) -> None:
        """Count an event.

        Args:
            sentence: What; ``{}`` stands for how often since it was last written.
        """
        self._counts[sentence] += 1
        if self._is_due(sentence):
            _LOG.warning("%s", sentence.format(self._counts.pop(sentence)), extra={"noted": True})

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written: a warning of one kind, and an error without a traceback, once a minute."""
        if getattr(record, "noted", False) or (record.exc_info and record.name != "asyncio"):
            return True
        return self._is_due(str(record.msg).partition("\n")[0])

    def _is_due(self, key: str) -> bool:
        now = self._clock()
        if now - self._said.get(key, float("-inf")) < _LOG_SECONDS:
            return False
        self._said[key] = now
        return True


_TIMED_OUT = "Closed {} connection(s) that did not send a whole request in time."
_STALLED = "Closed {} connection(s) that did not read their answer."
_MADE_ROOM = "Too many connections: closed {} that waited for a request to be sent, those that waited longest first."
_REFUSED = "Too many connections: refused {} because all others are being answered."

Phase = Literal["header", "body", "answer", "idle", "closing"]


class ConnectionGuard:
    """The connections of a server. Connections that wait for their client are in the order of their waiting time.

    Args:
        limits: The limits.
        remarks: Writes what happens.
        trusted: Addresses of proxies: many people come from them, so they have no separate limit.
    """

    def __init__(self, limits: ConnectionLimits, remarks: Remarks, trusted: Iterable[str] = ()) -> None:
        self.limits, self.remarks = limits, remarks
        self._trusted = {network_of(each) for each in trusted}
        self._waiting: dict[GuardedProtocol, None] = {}
        self._counts: Counter[str] = Counter()
        #: Descriptors of the connections.
        self.descriptors: set[int] = set()

    def admit(self, connection: "GuardedProtocol") -> bool:
        """Count a new connection, close another one if there are too many, and return whether the new one may stay."""
        address = connection.address
        self._counts[address] += 1
        crowded = address not in self._trusted and self._counts[address] > self.limits.per_address
        if not crowded and self._counts.total() <= self.limits.connections:
            return True
        # The address with the most connections loses one.
        most = address if crowded else self._counts.most_common(1)[0][0]
        victim = next((each for each in self._waiting if each.address == most), None)
        if victim is None and not crowded:
            victim = next(iter(self._waiting), None)
        if victim is None:
            self.remarks.note(_REFUSED)
            return False
        self.remarks.note(_MADE_ROOM)
        victim.give_up()
        # It is closed soon; until then no other connection must be closed for the same reason.
        self.forget(victim)
        return True

    def forget(self, connection: "GuardedProtocol") -> None:
        """Remove a connection from the count."""
        self._waiting.pop(connection, None)
        if connection.counted:
            connection.counted = False
            self._counts[connection.address] -= 1
            if not self._counts[connection.address]:
                del self._counts[connection.address]

    def waits(self, connection: "GuardedProtocol", *, waits: bool) -> None:
        """Record that a connection starts or stops waiting for its client."""
        self._waiting.pop(connection, None)
        if waits:
            self._waiting[connection] = None


class GuardedProtocol(H11Protocol):
    """A connection that is closed when its client keeps it waiting.

    Args:
        arguments: Those of uvicorn's protocol.

    Attributes:
        guard: All connections.
    """

    guard: ClassVar[ConnectionGuard]

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._phase: Phase | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unread = self._received = self._received_before = 0
        self._descriptor = -1
        self.address = ""
        self.counted = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or refuse it."""
        super().connection_made(transport)
        self.address, self.counted = network_of(self.client[0] if self.client else ""), True
        found = transport.get_extra_info("socket")
        self._descriptor = -1 if found is None else found.fileno()
        self.guard.descriptors.add(self._descriptor)
        if self.guard.admit(self):
            self._enter("header")
        else:
            self._answer(503, "Service Unavailable", "too many connections; try again in a moment")
            self._enter("closing")

    def connection_lost(self, exc: Exception | None) -> None:
        """Handle the end of the connection."""
        self._cancel()
        self.guard.descriptors.discard(self._descriptor)
        self.guard.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        self._received += len(data)
        super().data_received(data)
        self._follow(received=True)

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of a request that was answered early."""
        super().on_response_complete()
        self._follow()

    def pause_writing(self) -> None:
        """Wait for a client that does not read."""
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()
        self._arm(self.guard.limits.stalled_seconds)

    def resume_writing(self) -> None:
        """Continue when the client reads again."""
        super().resume_writing()
        phase, self._phase = self._phase, None
        if phase is not None:
            self._enter(phase)

    def shutdown(self) -> None:
        """Close when the server stops, without waiting for the rest of a request."""
        if self._phase in {"header", "body"}:
            self.give_up()
        else:
            super().shutdown()

    def give_up(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    def _follow(self, *, received: bool = False) -> None:
        """Determine what the connection waits for, and set its time limit."""
        theirs = self.conn.their_state
        if self.transport.is_closing():
            self._enter("closing")
        elif theirs is h11.SEND_BODY:
            self._enter("body")
        elif self.cycle is not None and not self.cycle.response_complete:
            self._enter("answer")
        elif received or self._phase is None or self.conn.trailing_data[0]:
            self._enter("header")
        else:
            self._enter("idle")

    def _enter(self, phase: Phase) -> None:
        if phase == self._phase:
            # The time limit counts from the start.
            return
        self._phase = phase
        self.guard.waits(self, waits=phase in {"header", "body", "idle"})
        limits = self.guard.limits
        self._unread = self.transport.get_write_buffer_size()
        if phase == "header":
            self._arm(limits.header_seconds)
        elif phase == "body":
            self._received_before = self._received
            self._arm(limits.body_seconds)
        elif phase == "closing" or self._unread:
            self._arm(limits.stalled_seconds)
        else:
            # uvicorn closes idle connections itself.
            self._cancel()

    def _arm(self, seconds: float) -> None:
        self._cancel()
        self._timer = self.loop.call_later(seconds, self._expired)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expired(self) -> None:
        """Close the connection, unless its client reads a long answer slowly."""
        unread, before = self.transport.get_write_buffer_size(), self._unread
        if self._phase == "body" and self._uploads():
            self._received_before = self._received
            self._arm(self.guard.limits.body_seconds)
        elif self._phase in {"header", "body"} and not unread:
            silent = self._phase == "header" and not self.conn.trailing_data[0]
            if not silent:
                # Browsers open connections for later use; these are not reported.
                self.guard.remarks.note(_TIMED_OUT)
                self._answer(408, "Request Timeout", "the request was not sent in time")
            self.transport.close()
            self._enter("closing")
        elif unread and before - unread < _LEAST_PROGRESS:
            self.guard.remarks.note(_STALLED)
            self.give_up()
        elif unread:
            self._unread = unread
            self._arm(self.guard.limits.stalled_seconds)

    def _uploads(self) -> bool:
        """Whether a file arrives that somebody may send: the request is not answered yet, so it is not refused."""
        answered = self.cycle is None or self.cycle.response_started
        if answered or self.scope is None or self.scope["path"] not in self.guard.limits.upload_paths:
            return False
        return self._received - self._received_before >= _LEAST_UPLOADED

    def _answer(self, status: int, reason: str, sentence: str) -> None:
        """Send the reason, unless a response has started, and close."""
        body = f'{{"detail": "{sentence}"}}'
        head = [
            f"HTTP/1.1 {status} {reason}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Connection: close",
            "Retry-After: 1",
        ]
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            self.transport.write("\r\n".join([*head, "", body]).encode())
        self.transport.close()


def guarded_protocol(guard: ConnectionGuard) -> type[GuardedProtocol]:
    """The class of the connections of a server, for uvicorn's setting ``http``.

    Args:
        guard: All connections of the server.
    """

    class Connection(GuardedProtocol):
        """A connection of this server."""

    Connection.guard = guard
    return Connection


class LimitedListener(socket.socket):
    """A listening socket with a limit of open connections, including those with an unfinished TLS handshake.

    The guard counts a connection with TLS only after its handshake. So this class closes the oldest connection that the
    guard has not counted if there are too many.

    Attributes:
        most: Connections that may be open.
        is_known: Whether a descriptor is that of a connection after its handshake.
    """

    most: int | None = None
    is_known: Callable[[int], bool] = staticmethod(lambda _: False)

    def __init__(self, *arguments: Any, **others: Any) -> None:
        super().__init__(*arguments, **others)
        self._accepted: list[socket.socket] = []

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection."""
        connection, address = super().accept()
        if self.most is None:
            return connection, address
        self._accepted = [each for each in self._accepted if each.fileno() >= 0]
        if len(self._accepted) >= self.most:
            oldest = next((each for each in self._accepted if not self.is_known(each.fileno())), None)
            if oldest is None:
                connection.close()
                raise ConnectionAbortedError("too many connections")
            # The event loop detects the end, and closes it.
            _shut_down(oldest)
        self._accepted.append(connection)
        return connection, address


def _shut_down(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        # The client has closed it already.
        return
