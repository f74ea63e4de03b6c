"""Functions shared by the commands that carry out many runs."""

import os
import platform
import shlex
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

import typer

from suffice import __version__
from suffice.errors import SufficeError


def processors() -> int:
    """Return the number of processors that this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable is not None else os.cpu_count() or 1


def require_folder(out: Path) -> None:
    """Create the folder for results, and check before the runs that it can be written to.

    Raises:
        SufficeError: It is a file, cannot be created, or cannot be written to.
    """
    if out.exists() and not out.is_dir():
        raise SufficeError(f"{out} is a file, where --out needs a folder; move it away, or name another folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SufficeError(f"the folder {out} cannot be made: {error.strerror or error}") from None
    if not os.access(out, os.W_OK):
        raise SufficeError(f"the folder {out} is read-only; name another with --out")


def tell_skipped(skipped: Iterable[tuple[str, str]]) -> None:
    """Print which runs were skipped, and why; each reason once.

    Args:
        skipped: Name and reason of each.
    """
    given = list(skipped)
    for reason in dict.fromkeys(why for _, why in given):
        names = dict.fromkeys(name for name, why in given if why == reason)
        typer.echo(f"suffice: skipped {', '.join(names)}: {reason}", err=True)


def completed_list(incomplete: str, names: Iterable[str]) -> list[str]:
    """Completions for the last name of a list with commas; those that do not begin like it are dropped by typer.

    Names with spaces would need quotes, and are left out.

    Args:
        incomplete: What was typed so far.
        names: All names that the list can hold.

    Examples:
        >>> completed_list("gp,r", ["ridge", "logistic"])
        ['gp,ridge', 'gp,logistic']
    """
    before, comma, _ = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if " " not in name]


def provenance() -> list[tuple[str, str]]:
    """Return the command that makes a report, and the versions it uses."""
    parts = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    return [
        ("Command", shlex.join(["suffice", *sys.argv[1:]])),
        ("Versions", f"suffice {__version__}, Python {platform.python_version()}, {parts}"),
    ]
