"""``--json``: the option, what commands print as JSON with its schema, and errors as JSON.

Standard output is empty or the result of the command, which its schema describes. An error is one JSON object in the
last line of standard error.
"""

import json
import math
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Annotated, Any, Final

import typer

from suffice.errors import InvalidValueError, SufficeError

#: What the schema of errors is called; the others have the names of commands.
ERROR: Final = "error"
# The exit status that Typer gives to a command that was interrupted.
_INTERRUPTED: Final = 130


def json_option(meaning: str = "Print the result as JSON, and nothing else.", *, metavar: str | None = None) -> Any:
    """The option ``--json`` of a command.

    Args:
        meaning: Its help.
        metavar: What follows it; None if nothing does.
    """
    return typer.Option("--json", metavar=metavar, help=f"{meaning} suffice schema COMMAND describes it.")


AsJson = Annotated[bool, json_option()]


def print_json(command: str, result: Any) -> None:
    """Print the result of a command in one line.

    Args:
        command: The command and its subcommand, as they are typed: the name of the schema.
        result: JSON values. Numbers that are not finite become null.
    """
    typer.echo(json_text(command, result))


def json_text(command: str, result: Any) -> str:  # noqa: ARG001 - tests read the command
    """The result of a command as JSON.

    Args:
        command: The name of its schema. Tests compare the result with it.
        result: See :func:`print_json`.

    Examples:
        >>> json_text("run", {"value": float("inf")})
        '{"value": null}'
    """
    try:
        return json.dumps(result, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(result), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def wants_json(arguments: Sequence[str] | None = None) -> bool:
    """Whether ``--json`` is among the arguments of the command.

    Args:
        arguments: Those of this process if left out.

    Examples:
        >>> wants_json(["status", "mails.suffice", "--json"]), wants_json(["compare", "--json=rows.json"])
        (True, True)
        >>> wants_json(["accounts", "add", "mails.suffice", "--", "--json"])
        False
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = given[: given.index("--")] if "--" in given else given
    return any(option.partition("=")[0] == "--json" for option in options)


def tell_error(error: str, code: str, exit_status: int = 1) -> int:
    """Say on standard error why a command was not done: as JSON if ``--json`` was given, else in a sentence.

    Args:
        error: The sentence.
        code: What kind of error it is, see ``suffice schema error``.
        exit_status: The exit status of the command.

    Returns:
        The exit status.
    """
    if wants_json():
        told = json_text(ERROR, {"error": error, "code": code, "exit_status": exit_status})
    else:
        told = f"suffice: {error}"
    print(told, file=sys.stderr, flush=True)
    return exit_status


def run_with_json(app: Callable[..., Any]) -> int:
    """Run the command that the arguments name, and say what is wrong with them, and unexpected errors, as JSON.

    Args:
        app: All commands.

    Returns:
        The exit status.
    """
    if not wants_json():
        app(prog_name="suffice")
        return 0
    try:
        ended = app(prog_name="suffice", standalone_mode=False)
    except (SufficeError, MemoryError, OSError):
        raise
    except (EOFError, typer.Abort):
        return tell_error("interrupted", "interrupted")
    except Exception as error:
        if hasattr(error, "format_message"):
            # Of Typer: the command was called wrongly.
            sentence = " ".join(error.format_message().split())
            return tell_error(sentence, "usage", getattr(error, "exit_code", 2))
        traceback.print_exc()
        return tell_error(f"unexpected {type(error).__name__}: {error}", "unexpected")
    if ended == _INTERRUPTED:
        return tell_error("interrupted", "interrupted", _INTERRUPTED)
    return ended if isinstance(ended, int) else 0


def code_of(error: type[SufficeError]) -> str:
    """What a kind of error is called in JSON: after its class in :mod:`suffice.errors`.

    Examples:
        >>> code_of(InvalidValueError), code_of(SufficeError)
        ('invalid_value', 'failed')
    """
    kind = next(kind for kind in error.__mro__ if kind.__module__ == SufficeError.__module__)
    if kind is SufficeError:
        return "failed"
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind.__name__)
    return words.removeprefix("_").removesuffix("_error")


def schema_files() -> dict[str, Traversable]:
    """The files of all schemas, by the command as it is typed, in the order of ``suffice --help``; errors last."""
    found: dict[str, Traversable] = {}
    for name, package in _packages().items():
        folder = _schemas(package)
        listed = sorted(folder.iterdir(), key=lambda file: file.name) if folder.is_dir() else []
        for file in listed:
            words = file.name.removesuffix(".json")
            if words == name or words.startswith(f"{name}--"):
                found[words.replace("--", " ")] = file
    return found | {ERROR: _schemas("suffice.cli") / f"{ERROR}.json"}


def schema_of(command: str) -> dict[str, Any]:
    """The JSON Schema of what a command prints with ``--json``.

    Args:
        command: The command and its subcommand, as they are typed, or ``"error"``.

    Raises:
        InvalidValueError: There is none.

    Examples:
        >>> schema_of("report")["required"]
        ['report']
    """
    known = schema_files()
    if command not in known:
        parts = [name for name in known if name.startswith(f"{command} ")]
        raise InvalidValueError(f"no schema of {command!r}; there are: {', '.join(parts or known)}")
    schema: dict[str, Any] = json.loads(known[command].read_text(encoding="utf-8"))
    return schema


def _schemas(package: str) -> Traversable:
    """The folder of schemas of a package, which is not imported."""
    distribution, *path = package.split(".")
    return files(distribution).joinpath(*path, "schemas")


def _packages() -> dict[str, str]:
    """The package of each command that is installed."""
    # The list of commands is loaded without this module.
    app = import_module("suffice.cli.app")
    locations = {name: app.location_if_installed(name) for name in app.COMMANDS}
    return {name: place.rpartition(".")[0] for name, place in locations.items() if place is not None}
