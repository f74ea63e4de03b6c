"""The examples of the page "Ten lines in your framework"."""

import runpy
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

SNIPPETS = Path(__file__).parents[2] / "docs" / "snippets"


def run_snippet(name: str) -> dict[str, Any]:
    """Run ``docs/snippets/<name>.py`` as from its own folder, and return its variables."""
    with patch.object(sys, "path", [str(SNIPPETS), *sys.path]):
        return runpy.run_path(str(SNIPPETS / f"{name}.py"))
