"""Limits of wrong tokens and passwords, by the network that they come from and by the account that they are for."""

import asyncio
import ipaddress
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Final

from starlette.requests import Request

#: Minimal length of a token that cannot be guessed; generated tokens have at least this length.
LONG_TOKEN: Final = 32
# Seconds of delay after a wrong token; other clients are served meanwhile.
_GUESS_SECONDS: Final = 0.3
# Entries of each table.
_MOST_ENTRIES: Final = 10_000
# Networks that are remembered of one account.
_MOST_NETWORKS: Final = 20
_THIS_MACHINE: Final = "this machine"


def address_of(request: Request) -> str:
    """The address of the sender of a request; the client's address if a trusted proxy states it."""
    return "" if request.client is None else request.client.host


def network_prefix(address: str) -> str:
    """The network that counts as one sender of wrong tokens and passwords.

    It is 24 bits of an IPv4 address and 64 bits of an IPv6 address, which one person often has as a whole. All
    addresses of this machine for itself, 127.0.0.0/8 and ::1, are one.

    Examples:
        >>> network_prefix("192.0.2.7"), network_prefix("::ffff:192.0.2.9"), network_prefix("2001:db8::1:2")
        ('192.0.2.0/24', '192.0.2.0/24', '2001:db8::/64')
        >>> network_prefix("127.9.8.7"), network_prefix("::1"), network_prefix("?")
        ('this machine', 'this machine', '?')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:100]
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    found = mapped or found
    if found.is_loopback:
        return _THIS_MACHINE
    return str(ipaddress.ip_network((found, 24 if found.version == 4 else 64), strict=False))


async def delay_guess() -> None:
    """Wait for a moment after a wrong token or password; other clients are served meanwhile."""
    await asyncio.sleep(_GUESS_SECONDS)


class _Attempts:
    """Wrong attempts by key. One is forgotten in each period of some seconds.

    The number of keys is limited. If there are more, those without attempts are removed. If that is not enough, the
    tenth of the keys whose attempts are forgotten soonest is removed. So a person who wants the attempts for a key
    to be forgotten has to make more attempts for each of many other keys.

    Args:
        seconds: Time after which one is forgotten.
        most: Number of keys.
        clock: Returns seconds.
    """

    def __init__(self, seconds: float, most: int, clock: Callable[[], float]) -> None:
        self._seconds, self._most, self._clock = seconds, most, clock
        # For each key the time until which its attempts count.
        self._until: dict[Hashable, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    def wait_for(self, key: Hashable, each: int) -> int:
        """Whole seconds until fewer than some attempts count; 0 if that is so now."""
        now = self._clock()
        owed = self._until.get(key, now) - now
        return max(0, math.ceil(owed - (each - 1) * self._seconds))

    def note(self, key: Hashable) -> None:
        """Count an attempt."""
        now = self._clock()
        self._until[key] = max(now, self._until.get(key, now)) + self._seconds
        if len(self._until) <= self._most:
            return
        self._until = {each: until for each, until in self._until.items() if until > now}
        if len(self._until) > self._most:
            soonest = sorted(self._until, key=lambda each: self._until[each])
            for each in soonest[: max(1, self._most // 10)]:
                del self._until[each]


class NetworkLimit:
    """Counts wrong tokens and passwords by network, over all connections.

    A network that has sent too many is refused for some time, also with a right password. Requests from a network
    without wrong ones are always processed, so that nobody is locked out by guesses from other networks. While there
    are many guesses in total, the limit of each network is lower. If there are more networks than the table has
    entries, those whose guesses are forgotten soonest are forgotten at once.

    Args:
        each: Wrong ones that a network may send in a row; it gets one more in each ``seconds``.
        crowded: The same while there are many in all.
        total: Wrong ones of all networks within a minute that are many.
        seconds: Time after which one is forgotten.
        most: Networks in the table.
        clock: Returns seconds.

    Examples:
        >>> limit = NetworkLimit(each=2, clock=lambda: 0.0)
        >>> limit.note_wrong("192.0.2.1"); limit.note_wrong("192.0.2.2")
        >>> limit.wait_for("192.0.2.3"), limit.wait_for("198.51.100.1")
        (6, 0)
    """

    def __init__(  # noqa: PLR0913, PLR0917 - settings, each with a default
        self,
        each: int = 20,
        crowded: int = 3,
        total: int = 200,
        seconds: float = 6.0,
        most: int = _MOST_ENTRIES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._each, self._crowded, self._total, self._clock = each, crowded, total, clock
        self._attempts = _Attempts(seconds, most, clock)
        self._recent: deque[float] = deque(maxlen=total)

    def __len__(self) -> int:
        """Number of networks in the table."""
        return len(self._attempts)

    def wait_for(self, address: str) -> int:
        """Whole seconds for which the network of an address is refused; 0 if it is not."""
        many = len(self._recent) == self._total and self._clock() - self._recent[0] < 60.0
        return self._attempts.wait_for(network_prefix(address), self._crowded if many else self._each)

    def note_wrong(self, address: str) -> None:
        """Count a wrong token or password from an address."""
        self._recent.append(self._clock())
        self._attempts.note(network_prefix(address))


class AccountLimit:
    """Counts wrong passwords by account, from all networks together.

    If there are too many, sign-ins to the account from unknown networks are refused for some time, also with the right
    password. A network in which somebody has used the account is known, and this limit is not for it. So guesses from
    elsewhere lock nobody out who works where they worked before. Networks of earlier runs of the server are in the
    database, see :class:`suffice.web.sessions.Sessions`. Names without an account are counted in the same
    way, so that the answers do not tell which accounts there are.

    Both tables have a fixed number of entries. If there are more, the names whose guesses are forgotten soonest and the
    networks that were used least recently are forgotten.

    Args:
        each: Wrong ones for an account in a row; it gets one more in each ``seconds``.
        seconds: Time after which one is forgotten.
        most: Accounts in each of the tables.
        clock: Returns seconds.

    Examples:
        >>> limit = AccountLimit(each=2, clock=lambda: 0.0)
        >>> limit.note_right("ann", "192.0.2.1")
        >>> limit.note_wrong("ann"); limit.note_wrong("ann")
        >>> limit.wait_for("ann", "198.51.100.1"), limit.wait_for("ann", "192.0.2.1")
        (60, 0)
    """

    def __init__(
        self,
        each: int = 100,
        seconds: float = 60.0,
        most: int = _MOST_ENTRIES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._each, self._most = each, most
        self._attempts = _Attempts(seconds, most, clock)
        # The networks of each account, those that were used least recently first.
        self._known: OrderedDict[Hashable, OrderedDict[str, None]] = OrderedDict()

    def __len__(self) -> int:
        """Number of entries of the larger table."""
        return max(len(self._attempts), len(self._known))

    def wait_for(self, account: Hashable, address: str) -> int:
        """Whole seconds for which sign-ins to an account from an address are refused; 0 if they are not."""
        if network_prefix(address) in self._known.get(account, {}):
            return 0
        return self._attempts.wait_for(account, self._each)

    def note_wrong(self, account: Hashable) -> None:
        """Count a wrong password for an account."""
        self._attempts.note(account)

    def note_right(self, account: Hashable, address: str) -> None:
        """Remember the network of a person who has signed in to an account."""
        networks = self._known.setdefault(account, OrderedDict())
        self._known.move_to_end(account)
        networks[network_prefix(address)] = None
        networks.move_to_end(network_prefix(address))
        if len(networks) > _MOST_NETWORKS:
            networks.popitem(last=False)
        if len(self._known) > self._most:
            self._known.popitem(last=False)


class GuessLimits:
    """The limits of a server. A server of several projects has them once.

    Attributes:
        networks: Counts wrong tokens and passwords by network.
        accounts: Counts wrong passwords by account.
    """

    def __init__(self) -> None:
        self.networks = NetworkLimit()
        self.accounts = AccountLimit()
