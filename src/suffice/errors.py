"""Exceptions of suffice: one base class, and subclasses that are also built-in exceptions.

A message names the argument, the requirement and the value given, and says what to do. Its pip commands work for an
installation from a checkout, from a wheel or from a package index.
"""

import re
import sys
from pathlib import Path


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
        command = pip_install(extra_requirements(extra) or [package])
        super().__init__(f"{purpose} needs {package}, which is not installed. Run: {command}")


class NotEnoughMemoryError(SufficeError, MemoryError):
    """A run needs more memory than is free; the message states the numbers."""


class TrainingDivergedError(SufficeError, ArithmeticError):
    """A network's loss or weights are no longer finite; its state before the training is kept."""


class MissingDataError(SufficeError):
    """A data set is missing; the message says where it must be and how to get it."""


class CorruptDataError(SufficeError):
    """A file of a data set has a wrong checksum; the message contains both checksums."""


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


def pip_install(arguments: list[str]) -> str:
    """Return the pip command of the running Python: with ``python``, or with its path if that is another Python."""
    import shlex
    from shutil import which

    found = which("python")
    same = found is not None and Path(found).absolute() == Path(sys.executable).absolute()
    return shlex.join(["python" if same else sys.executable, "-m", "pip", "install", *arguments])


def upgrade_advice() -> str:
    """Command that upgrades suffice in the way it was installed."""
    import json
    from importlib import metadata
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        recorded = metadata.distribution("suffice").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return "install a newer version of suffice"
    if recorded is None:
        return f"run: {pip_install(['--upgrade', 'suffice'])}"
    origin = json.loads(recorded)
    if "dir_info" not in origin:
        return f"install a newer version of suffice; this one came from {origin['url']}"
    folder = url2pathname(urlsplit(origin["url"]).path)
    command = pip_install([*(["-e"] if origin["dir_info"].get("editable") else []), folder])
    return f"update {folder} (git pull), then run: {command}"
