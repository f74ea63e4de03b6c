"""Pages that are written before the build of the documentation, and the programs that make what they show."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def write_changed(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files where they are missing or have changed, so that Sphinx reads only these again.

    Args:
        folder: Where they are; created if it is missing.
        files: Their contents by name.
    """
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


def before_build(app: Any, write: Callable[[Any], None]) -> dict[str, bool]:
    """Let Sphinx write pages before the build; return what the ``setup`` of an extension returns."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def asked_names(description: str | None, names: Sequence[str]) -> tuple[Sequence[str], bool]:
    """Read the command line of a program: the named pages, all if none is named, and whether to store results.

    Args:
        description: What the program does.
        names: The names of all pages.
    """
    reader = argparse.ArgumentParser(description=description)
    reader.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    reader.add_argument("--write", action="store_true")
    given = reader.parse_args()
    return given.names or names, given.write
