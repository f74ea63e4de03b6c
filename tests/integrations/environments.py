"""Test the adapters against the frameworks themselves, each in a virtual environment of its own.

``python tests/integrations/environments.py`` goes through all of them, ``... NAME NAME`` through some. For each file
``tests/integrations/environments/NAME.txt`` it creates the environment ``.integrations/NAME``, installs suffice and the
requirements of the file, and runs ``tests/integrations/test_NAME.py``. Frameworks that the development environment has
are tested in it. The versions are written to ``docs/measured/integration-versions.md``.

The environment is kept for the next time, and created again if its requirements change.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

ROOT: Final = Path(__file__).parents[2]
REQUIREMENTS: Final = Path(__file__).parent / "environments"
TABLE: Final = ROOT / "docs" / "measured" / "integration-versions.md"
#: Frameworks of the development environment, by the name of their test file.
IN_DEVELOPMENT: Final = {
    "data_frames": ["datasets", "pandas", "polars"],
    "scikit_activeml": ["scikit-activeml"],
    "skorch": ["skorch"],
    "small_text": ["small-text"],
}
# What the tests need besides suffice.
_TEST_TOOLS: Final = ("pytest>=8.2", "hypothesis>=6.100")
_HEADER: Final = ("framework", "version", "tested by", "passed tests")
_PIN: Final = re.compile(r"^([\w.-]+)(?:\[[\w,-]*\])?==([\w.+!]+)", re.MULTILINE)


class Row(NamedTuple):
    """A row of the table: a framework, the version that was tested, by which command, and how many tests passed."""

    framework: str
    version: str
    command: str
    passed: int


def names() -> list[str]:
    """All frameworks, by the name of their test file."""
    return sorted({*IN_DEVELOPMENT, *(path.stem for path in REQUIREMENTS.glob("*.txt"))})


def pins(name: str) -> dict[str, str]:
    """The packages of a requirements file that have one version, the frameworks, and that version."""
    return dict(_PIN.findall((REQUIREMENTS / f"{name}.txt").read_text()))


def packages(name: str) -> list[str]:
    """The packages of a framework whose versions are in the table."""
    return list(pins(name)) if name not in IN_DEVELOPMENT else IN_DEVELOPMENT[name]


def prepared(name: str) -> Path:
    """The Python of the environment of a framework, with all packages installed."""
    folder = ROOT / ".integrations" / name
    python = folder / "bin" / "python"
    files = (REQUIREMENTS / f"{name}.txt", ROOT / "pyproject.toml", ROOT / "constraints.txt")
    state = hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
    ready = folder / ".ready"
    if ready.exists() and ready.read_text() == state:
        return python
    print(f"{name}: creating {folder.relative_to(ROOT)} ...", flush=True)
    venv.create(folder, clear=True, with_pip=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    chosen = ["-c", str(ROOT / "constraints.txt"), "-r", str(files[0])]
    subprocess.run([*pip, *chosen, "-e", str(ROOT), *_TEST_TOOLS], check=True)
    ready.write_text(state)
    return python


def passed_tests(python: Path, name: str) -> int:
    """Run the tests of a framework; how many have passed.

    Raises:
        SystemExit: One has failed or was skipped, or there is none.
    """
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.xml"
        test = f"tests/integrations/test_{name}.py"
        # Deprecation warnings of a framework are no failures here.
        options = ["-o", "filterwarnings=default", "--disable-warnings", "-q", "-m", "", f"--junitxml={record}"]
        done = subprocess.run([str(python), "-m", "pytest", *options, test], cwd=ROOT, check=False)
        if done.returncode or not record.exists():
            sys.exit(f"{name}: the tests failed")
        suites = list(ElementTree.parse(record).getroot().iter("testsuite"))
    ran, skipped = (sum(int(suite.get(key, 0)) for suite in suites) for key in ("tests", "skipped"))
    if skipped or not ran:
        sys.exit(f"{name}: {skipped} of {ran} tests were skipped; the framework must be installed here")
    return ran


def versions(python: Path, frameworks: Iterable[str]) -> dict[str, str]:
    """The installed versions of packages."""
    code = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    listed = list(frameworks)
    done = subprocess.run([str(python), "-c", code, *listed], capture_output=True, text=True, check=True)
    return dict(zip(listed, done.stdout.split(), strict=True))


def tested(name: str) -> list[Row]:
    """Test a framework and return its rows of the table."""
    own = name not in IN_DEVELOPMENT
    python = prepared(name) if own else Path(sys.executable)
    command = "`make test-integrations`" if own else "`make test`, `make test-slow`"
    passed = passed_tests(python, name)
    found = versions(python, packages(name))
    return [Row(framework, version, command, passed) for framework, version in found.items()]


def read_table() -> list[Row]:
    """The rows of the present table."""
    if not TABLE.exists():
        return []
    lines = [line.strip("| \n").split(" | ") for line in TABLE.read_text().splitlines()]
    filled = [cells for cells in lines if len(cells) == len(_HEADER) and cells[3].isdigit()]
    return [Row(cells[0], cells[1], cells[2], int(cells[3])) for cells in filled]


def write_table(new: Sequence[Row]) -> None:
    """Write rows over those of the same framework, and leave out frameworks that are not tested any more."""
    known = {framework for name in names() for framework in packages(name)}
    rows = {row.framework: row for row in [*read_table(), *new] if row.framework in known}
    ordered = [tuple(map(str, rows[key])) for key in sorted(rows, key=str.lower)]
    TABLE.write_text("".join(f"| {' | '.join(line)} |\n" for line in [_HEADER, ("---",) * len(_HEADER), *ordered]))


def main(chosen: Sequence[str]) -> None:
    """Test frameworks, all of them if none is named."""
    unknown = sorted(set(chosen).difference(names()))
    if unknown:
        sys.exit(f"no framework {unknown[0]}; there are {', '.join(names())}")
    failed = []
    for name in chosen or names():
        try:
            write_table(tested(name))
        except (SystemExit, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            failed.append(name)
    print(TABLE.read_text() if TABLE.exists() else "")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main(sys.argv[1:])
