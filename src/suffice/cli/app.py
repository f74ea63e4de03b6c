"""The commands, and how an error becomes a sentence and an exit code."""

import os
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from suffice import __version__
from suffice.cli.audit import audit_command
from suffice.cli.compare import compare_command
from suffice.cli.data import data_app
from suffice.cli.demo import demo_command
from suffice.cli.export import export_command
from suffice.cli.label import label_command
from suffice.cli.project_report import report_command
from suffice.cli.recommend import recommend_command
from suffice.cli.reproduce import reproduce_command
from suffice.cli.run import run_command
from suffice.cli.serve import serve_command
from suffice.cli.status import status_command
from suffice.errors import InvalidTypeError, InvalidValueError, SufficeError

app = typer.Typer(
    help="Know when you have labelled enough.",
    epilog="Exit codes: 0 done, 1 could not be done, 2 called wrongly.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo_command)
app.command("label")(label_command)
app.command("serve")(serve_command)
app.command("status")(status_command)
app.command("export")(export_command)
app.command("report")(report_command)
app.command("run")(run_command)
app.command("audit")(audit_command)
app.command("recommend")(recommend_command)
app.command("reproduce")(reproduce_command)
app.command("compare")(compare_command)
app.add_typer(data_app, name="data")


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


def run() -> int:
    """Run the command that the arguments name; return the exit code of an error that was answered with a sentence."""
    try:
        app()
    except SufficeError as error:
        Console(stderr=True, soft_wrap=True).print(f"[bold red]suffice:[/] {escape(str(error))}", highlight=False)
        return 2 if isinstance(error, InvalidValueError | InvalidTypeError) else 1
    except MemoryError as error:
        print(f"suffice: there is not enough memory: {error or 'a smaller table is needed'}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"suffice: the output cannot be written: {error.strerror or error}", file=sys.stderr)
        # Python would try to write the rest once more on its way out, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0
