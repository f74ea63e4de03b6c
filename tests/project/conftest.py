"""Fixtures: the places that a project can be in, so that the same tests run on SQLite and on PostgreSQL."""

from functools import lru_cache
from pathlib import Path

import pytest

from tests.project.postgres_server import Server, programs, start_server

# One server for each process that runs tests.
_server = lru_cache(maxsize=1)(start_server)


@pytest.fixture
def postgres() -> Server:
    """A PostgreSQL server."""
    if programs() is None:
        pytest.skip("PostgreSQL is not installed: there is no initdb in /usr/lib/postgresql/*/bin or on the PATH")
    return _server()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place for a project."""
    if request.param == "sqlite":
        return str(tmp_path / "pets.suffice")
    server: Server = request.getfixturevalue("postgres")
    return server.new_place()
