"""The command: thin shells over the library, no traceback for anything that a user can do."""

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from suffice import __version__
from suffice.cli.demo import demo_command
from suffice.errors import InvalidTypeError, InvalidValueError, SufficeError

app = typer.Typer(
    help="Know when you have labelled enough.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command("demo")(demo_command)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"suffice {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; exit 0 when done, 1 when it could not be done, 2 when it was called wrongly."""
    try:
        app()
    except SufficeError as error:
        Console(stderr=True, soft_wrap=True).print(f"[bold red]suffice:[/] {escape(str(error))}", highlight=False)
        sys.exit(2 if isinstance(error, InvalidValueError | InvalidTypeError) else 1)
