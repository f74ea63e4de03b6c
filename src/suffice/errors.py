"""Exceptions of suffice: one base class, and subclasses that are also built-in exceptions.

A message names the argument, the requirement and the value given, and says what to do. Its pip commands work for an
installation from a checkout, from a wheel or from a package index.
"""

import re
import sys
from pathlib import Path
from typing import Any


class SufficeError(Exception):
    """Base class of all errors of suffice."""


class InvalidValueError(SufficeError, ValueError):
    """A value of the right type that is invalid."""


class InvalidTypeError(SufficeError, TypeError):
    """A value of an unsupported type."""


class NotPositiveDefiniteError(InvalidValueError):
    """A matrix given as a covariance or a precision is not (numerically) positive definite."""


class InfiniteDivergenceError(InvalidValueError):
    """A KL divergence is infinite, so it gives no bound."""


class MissingInputError(InvalidValueError):
    """A stopping rule was not given a quantity that it declares in ``requires``."""


class CheckpointError(InvalidValueError):
    """A file is not a checkpoint, or is the checkpoint of another run."""


class MissingExtraError(SufficeError, ImportError):
    """An optional dependency is not installed; the message contains the pip command that installs it.

    Args:
        package: Name of the package that could not be imported.
        extra: The extra of suffice that installs it.
        purpose: The feature that needs it, as the subject of the sentence.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(_missing(purpose, package, extra_requirements(extra) or [package]))


class MissingResearchError(SufficeError, ImportError):
    """The distribution suffice-research is not installed; the message contains the pip command that installs it.

    Args:
        purpose: The feature that needs it, as the subject of the sentence.
    """

    def __init__(self, purpose: str) -> None:
        super().__init__(_missing(purpose, "suffice-research", research_requirement()))


class NotEnoughMemoryError(SufficeError, MemoryError):
    """A run needs more memory than is free; the message states the numbers."""


class TrainingDivergedError(SufficeError, ArithmeticError):
    """A network's loss or weights are no longer finite; its state before the training is kept."""


class MissingDataError(SufficeError):
    """A data set is missing; the message says where it must be and how to get it."""


class CorruptDataError(SufficeError):
    """A file of a data set has a wrong checksum; the message contains both checksums."""


def _missing(purpose: str, package: str, arguments: list[str]) -> str:
    """Say what is missing for a purpose, and the pip command with these arguments."""
    return f"{purpose} needs {package}, which is not installed. Run: {pip_install(arguments)}"


def extra_requirements(extra: str) -> list[str]:
    """Requirements of an extra of suffice, from the metadata of the installed package; empty if unknown.

    The packages themselves are named because pip would look up ``suffice[extra]`` in a package index, even if suffice
    was installed from a checkout.

    Examples:
        >>> extra_requirements("no such extra")
        []
    """
    from importlib import metadata

    try:
        listed = metadata.requires("suffice") or []
    except metadata.PackageNotFoundError:
        return []
    parts = (line.split(";", 1) for line in listed if ";" in line)
    return [name.strip() for name, marker in parts if re.search(rf"""extra == ['"]{re.escape(extra)}['"]""", marker)]


def research_requirement() -> list[str]:
    """Arguments of pip that install suffice-research: its folder if suffice came from a checkout, else its name."""
    from importlib import metadata

    try:
        origin = _origin()
    except metadata.PackageNotFoundError:
        origin = None
    if origin is not None and "dir_info" in origin:
        folder = Path(_origin_folder(origin), "research")
        if folder.is_dir():
            return _folder_arguments(origin, str(folder))
    return ["suffice-research"]


def pip_install(arguments: list[str]) -> str:
    """Return the pip command of the running Python: with ``python``, or with its path if that is another Python."""
    import shlex
    from shutil import which

    first = which("python")
    same = first is not None and Path(first).absolute() == Path(sys.executable).absolute()
    return shlex.join(["python" if same else sys.executable, "-m", "pip", "install", *arguments])


def upgrade_advice() -> str:
    """Command that upgrades suffice in the way it was installed."""
    from importlib import metadata

    try:
        origin = _origin()
    except metadata.PackageNotFoundError:
        return "install a newer version of suffice"
    if origin is None:
        return f"run: {pip_install(['--upgrade', 'suffice'])}"
    if "dir_info" not in origin:
        return f"install a newer version of suffice; this one came from {origin['url']}"
    folder = _origin_folder(origin)
    return f"update {folder} (git pull), then run: {pip_install(_folder_arguments(origin, folder))}"


def _origin() -> dict[str, Any] | None:
    """Return the recorded origin of the installed suffice (``direct_url.json``); None for a package index."""
    import json
    from importlib import metadata

    recorded = metadata.distribution("suffice").read_text("direct_url.json")
    return None if recorded is None else dict(json.loads(recorded))


def _origin_folder(origin: dict[str, Any]) -> str:
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    return url2pathname(urlsplit(origin["url"]).path)


def _folder_arguments(origin: dict[str, Any], folder: str) -> list[str]:
    """Return the arguments of pip that install a folder like suffice itself: editable or not."""
    return [*(["-e"] if origin["dir_info"].get("editable") else []), folder]
