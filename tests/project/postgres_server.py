"""A PostgreSQL server of the tests' own, in a temporary folder, and Debian's programs for it."""

import atexit
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import psycopg

#: In the URL of every database; no message may hold it.
PASSWORD = "sesame-open-7"

_SETTINGS = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '{folder}'
recovery_init_sync_method = syncfs
shared_buffers = 16MB
max_connections = 60
fsync = on
synchronous_commit = on
"""


def programs() -> Path | None:
    """The folder of initdb and pg_ctl, or None where PostgreSQL is not installed."""
    newest = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda each: float(each.parts[-3]))
    found = str(newest[-1]) if newest else shutil.which("initdb")
    return Path(found).parent if found else None


class Server:
    """A server that runs until the tests end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made = 0
        # PostgreSQL does not run as root.
        self.user = "postgres" if os.geteuid() == 0 else None
        owner = pwd.getpwnam(self.user) if self.user else None
        (folder / "password").write_text(PASSWORD)
        if owner is not None:
            for each in (folder, folder / "password"):
                os.chown(each, owner.pw_uid, owner.pw_gid)
        self._do("initdb", "-N", "-E", "UTF8", "--locale=C", "-U", "tester", "-A", "scram-sha-256", "--pwfile=password")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        with (folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(_SETTINGS.format(port=self.port, folder=folder))
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._do("pg_ctl", "-w", "-t", "60", "-l", str(self.folder / "log"), "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it; the mode "immediate" is a power cut."""
        self._do("pg_ctl", "-w", "-t", "60", "-m", mode, "stop")

    def url(self, database: str = "postgres", schema: str = "public") -> str:
        """The URL of a schema in a database, with its password."""
        address = f"postgresql://tester:{PASSWORD}@127.0.0.1:{self.port}/{database}"
        return address if schema == "public" else f"{address}?options=-csearch_path%3D{schema}"

    def new_place(self) -> str:
        """Make an empty schema and return its URL."""
        self._made += 1
        name = f"pets{self._made}"
        self.execute(f"CREATE SCHEMA {name}")
        return self.url(schema=name)

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Run a statement outside a transaction."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _do(self, program: str, *arguments: str) -> None:
        folder = programs()
        assert folder is not None
        command = [str(folder / program), "-D", str(self.folder / "data"), *arguments]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        if program == "pg_ctl":
            # The server would keep the pipe.
            quiet["stderr"] = subprocess.DEVNULL
        done = subprocess.run(command, cwd=self.folder, user=self.user, check=False, **quiet)  # type: ignore[call-overload]
        if done.returncode:
            log = self.folder / "log"
            said = log.read_text() if log.exists() else done.stderr
            raise RuntimeError(f"{program} failed: {said}")


def start_server() -> Server:
    """Start a server that is stopped, and its folder removed, when this process ends, even if it is killed."""
    folder = Path(tempfile.mkdtemp(prefix="suffice-pg-"))
    server = Server(folder)
    # Whatever ends this process, the pipe is closed then; who waits for that belongs to another session of processes.
    command = [str(programs()), str(folder)]
    script = 'cat > /dev/null; "$0/pg_ctl" -D "$1/data" -m immediate stop; rm -rf "$1"'
    guard = subprocess.Popen(
        ["sh", "-c", script, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        user=server.user,
        start_new_session=True,
    )
    atexit.register(guard.communicate)
    return server
