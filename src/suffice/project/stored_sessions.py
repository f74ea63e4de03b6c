"""Sessions of signed-in people, in a table of their own in the database of a project.

The table is not part of the layout of a project: it is created with the first session, versions without it open the
project as before, and a repaired project has none. It contains no secrets. From its rows nobody can compute what a
browser sends, nor the token of the server.
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

_sessions_table = sa.Table(
    "suffice_sessions",
    sa.MetaData(),
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("account", sa.Text),
    sa.Column("binding", sa.Text, nullable=False),
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
    """The sessions in the database of a project, which all processes that serve the project share.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._exists = False

    def find(self, digests: Sequence[str]) -> list[StoredSession]:
        """The sessions with these digests, also those that have ended by themselves.

        Args:
            digests: Their digests.

        Raises:
            StorageError: The database cannot be read.
        """
        with self._database.reading() as connection, undamaged(self._database.place):
            if not self._has_table(connection):
                return []
            rows = connection.execute(sa.select(_sessions_table).where(_sessions_table.c.digest.in_(digests))).all()
            return [StoredSession(row.digest, row.account, row.binding, float(row.ends)) for row in rows]

    def add(self, session: StoredSession, *, now: float, most: int = MOST_OF_ACCOUNT) -> None:
        """Add a session, and remove those that have ended. It is on the disk when this returns.

        Args:
            session: The session.
            now: The present time, in seconds since 1970.
            most: Sessions of its account that may be stored. Those that would end first are removed.

        Raises:
            StorageError: The database cannot be written.
        """
        table = _sessions_table
        with self._database.exclusive() as connection:
            if not self._has_table(connection):
                table.create(connection)
            connection.execute(sa.delete(table).where(table.c.ends <= now))
            of_account = table.c.account.is_not_distinct_from(session.account)
            latest = sa.select(table.c.digest).where(of_account).order_by(table.c.ends.desc(), table.c.digest)
            surplus = connection.execute(latest.offset(most - 1)).scalars().all()
            if surplus:
                connection.execute(sa.delete(table).where(table.c.digest.in_(surplus)))
            connection.execute(sa.insert(table), [asdict(session)])
        self._exists = True

    def remove(self, digests: Sequence[str]) -> None:
        """Remove sessions. They are gone from the disk when this returns.

        Args:
            digests: Their digests; some may belong to no session.

        Raises:
            StorageError: The database cannot be written.
        """
        with self._database.exclusive() as connection:
            if self._has_table(connection):
                connection.execute(sa.delete(_sessions_table).where(_sessions_table.c.digest.in_(digests)))

    def _has_table(self, connection: Connection) -> bool:
        # It is never removed, so it is looked for only until it is found.
        self._exists = self._exists or _sessions_table.name in self._database.tables(connection)
        return self._exists


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
