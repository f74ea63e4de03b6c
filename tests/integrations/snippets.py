"""The examples of the page "Ten lines in your framework"."""

import runpy
from pathlib import Path
from typing import Any

SNIPPETS = Path(__file__).parents[2] / "docs" / "snippets"


def run_snippet(name: str) -> dict[str, Any]:
    """Run ``docs/snippets/<name>.py`` and return its variables."""
    return runpy.run_path(str(SNIPPETS / f"{name}.py"))
