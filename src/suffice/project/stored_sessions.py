"""Sessions of signed-in people, and networks that they signed in from, in tables beside those of a project.

The tables are not part of the layout of a project: they are created with the first session, versions without them open
the project as before, and a repaired project has none. They contain no secrets. From their rows nobody can compute what
a browser sends, nor the token of the server.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from suffice.project.storage import Connection, Database, sa, undamaged

#: Sessions of one account at a time. One more ends the session that would end first.
MOST_OF_ACCOUNT: Final = 100
# Networks of one account, and seconds after the last sign-in for which they are stored: 90 days.
_MOST_NETWORKS: Final = 20
_NETWORK_SECONDS: Final = 90 * 24 * 3600

_TABLES = sa.MetaData()
_sessions_table = sa.Table(
    "suffice_sessions",
    _TABLES,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("account", sa.Text),
    sa.Column("binding", sa.Text, nullable=False),
    sa.Column("ends", sa.Double, nullable=False),
)
_networks_table = sa.Table(
    "suffice_networks",
    _TABLES,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("account", sa.Text),
    sa.Column("ends", sa.Double, nullable=False),
)


@dataclass(frozen=True)
class StoredSession:
    """A session as it is stored.

    Attributes:
        digest: Digest of the secret that the browser sends, see :func:`session_digest`.
        account: Name of the account; None for the owner of the server.
        binding: Digest, under the secret of the session, of what the session depends on. It is another one after a new
            password or link of the account, and for the owner after a new token of the server.
        ends: When the session ends by itself, in seconds since 1970.
    """

    digest: str
    account: str | None
    binding: str
    ends: float


def session_digest(secret: str) -> str:
    """The SHA-256 of the secret of a session, which is long and random, so that it cannot be guessed from it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class StoredSessions:
    """Sessions and networks in the database of a project, which all processes that serve the project share.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._exist = False

    def find(self, digests: Sequence[str]) -> list[StoredSession]:
        """The sessions with these digests, also those that have ended by themselves.

        Args:
            digests: Their digests.

        Raises:
            StorageError: The database cannot be read.
        """
        with self._database.reading() as connection, undamaged(self._database.place):
            if not self._has_tables(connection):
                return []
            rows = connection.execute(sa.select(_sessions_table).where(_sessions_table.c.digest.in_(digests))).all()
            return [StoredSession(row.digest, row.account, row.binding, float(row.ends)) for row in rows]

    def knows_network(self, digest: str, *, now: float) -> bool:
        """Whether a network is stored.

        Args:
            digest: The digest with which it was added.
            now: The present time, in seconds since 1970.

        Raises:
            StorageError: The database cannot be read.
        """
        table = _networks_table
        with self._database.reading() as connection, undamaged(self._database.place):
            if not self._has_tables(connection):
                return False
            ends = connection.execute(sa.select(table.c.ends).where(table.c.digest == digest)).scalar()
            return ends is not None and float(ends) > now

    def add(
        self, session: StoredSession, *, now: float, network: str | None = None, most: int = MOST_OF_ACCOUNT
    ) -> None:
        """Add a session, and remove those that have ended. It is on the disk when this returns.

        Args:
            session: The session.
            now: The present time, in seconds since 1970.
            network: Digest of the network of the person; None if it is not stored. An account has at most 20. They are
                removed 90 days after the last sign-in.
            most: Sessions of its account that may be stored. Those that would end first are removed.

        Raises:
            StorageError: The database cannot be written.
        """
        with self._database.exclusive() as connection:
            if not self._has_tables(connection):
                _TABLES.create_all(connection)
            _make_room(connection, _sessions_table, session.account, now, most)
            connection.execute(sa.insert(_sessions_table), [asdict(session)])
            if network is not None:
                known = _networks_table
                connection.execute(sa.delete(known).where(known.c.digest == network))
                _make_room(connection, known, session.account, now, _MOST_NETWORKS)
                row = {"digest": network, "account": session.account, "ends": now + _NETWORK_SECONDS}
                connection.execute(sa.insert(known), [row])
        self._exist = True

    def remove(self, digests: Sequence[str]) -> None:
        """Remove sessions. They are gone from the disk when this returns.

        Args:
            digests: Their digests; some may belong to no session.

        Raises:
            StorageError: The database cannot be written.
        """
        with self._database.exclusive() as connection:
            if self._has_tables(connection):
                connection.execute(sa.delete(_sessions_table).where(_sessions_table.c.digest.in_(digests)))

    def _has_tables(self, connection: Connection) -> bool:
        # They are never removed, so they are looked for only until they are found.
        self._exist = self._exist or self._database.tables(connection) >= set(_TABLES.tables)
        return self._exist


def _make_room(connection: Connection, table: sa.Table, account: str | None, now: float, most: int) -> None:
    """Remove rows that have ended, and those of an account that end first, so that it can have one more."""
    connection.execute(sa.delete(table).where(table.c.ends <= now))
    of_account = table.c.account.is_not_distinct_from(account)
    latest = sa.select(table.c.digest).where(of_account).order_by(table.c.ends.desc(), table.c.digest)
    surplus = connection.execute(latest.offset(most - 1)).scalars().all()
    if surplus:
        connection.execute(sa.delete(table).where(table.c.digest.in_(surplus)))


@contextmanager
def stored_sessions(file: Path) -> Iterator[StoredSessions]:
    """The sessions of a project that is not open.

    Args:
        file: The file of the project.
    """
    database = Database(file)
    try:
        yield StoredSessions(database)
    finally:
        database.close()
