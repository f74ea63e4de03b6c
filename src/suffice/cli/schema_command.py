"""``suffice schema``: what commands print with ``--json``."""

import json
from typing import Annotated

import typer

from suffice.cli.json_output import schema_files, schema_of


def _names() -> list[str]:
    """Names for shell completion."""
    return list(dict.fromkeys(name.partition(" ")[0] for name in schema_files()))


def schema_command(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND]...",
            help="A command with its subcommand, or error for errors; the list of all if left out.",
            show_default=False,
            autocompletion=_names,
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of what a command prints with --json.

    Example: suffice schema status

    With a subcommand: suffice schema accounts list
    """
    if command is None:
        for name in schema_files():
            typer.echo(name)
        return
    typer.echo(json.dumps(schema_of(" ".join(command)), indent=2))
