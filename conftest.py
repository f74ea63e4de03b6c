"""Where torch is not installed, tests and examples that need it are left out; the header of the report names them."""

import re
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parent
#: Examples, which tests of their own run.
collect_ignore = ["docs/snippets", "docs/examples", "docs/gallery"]
_IMPORT = re.compile(r"^(import|from) torch\b", re.MULTILINE)


def _paths_that_need_torch() -> list[Path]:
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    return [
        ROOT / "src" / "suffice" / "models" / "deep",
        *(path for path in tests if _IMPORT.search(path.read_text(encoding="utf-8"))),
    ]


_LEFT_OUT = [] if find_spec("torch") else _paths_that_need_torch()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what cannot be imported."""
    return True if collection_path in _LEFT_OUT else None


def pytest_report_header() -> list[str]:
    """Name what is left out."""
    names = [str(path.relative_to(ROOT)) for path in _LEFT_OUT]
    return [f"torch is not installed; left out: {', '.join(names)}"] if names else []
