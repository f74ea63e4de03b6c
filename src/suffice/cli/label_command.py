"""``suffice label``: label data in the terminal, with advice on when to stop."""

import json
import shlex
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from suffice.cli.project_options import ProjectOptions, hidden, opened_project, place_of, takes_project_options
from suffice.errors import MissingExtraError
from suffice.presentation.messages import given_sentence

if TYPE_CHECKING:
    from suffice.cli.labeller import Labeller

# Seconds that the last word waits for the model: by lines nobody waits for it, at a screen somebody does.
_LAST_WORD = 60.0
_LAST_LOOK = 0.3


@takes_project_options
def label_command(
    options: ProjectOptions,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Read labels as lines, print the state of the project as JSON."),
    ] = False,
) -> None:
    """Label your own data in the terminal: create or continue a project, and see when you can stop.

    Example: suffice label mails.csv --text body --classes ham,spam

    With numbers: suffice label houses.csv --target price --regression

    Go on later, or on top of some labels: suffice label mails.suffice
    """
    console = Console(stderr=as_json, highlight=False)
    # Without a terminal, lines are not wrapped.
    console.soft_wrap = not console.is_terminal
    terminal = console.is_terminal and not console.is_dumb_terminal and sys.stdin.isatty() and sys.stderr.isatty()
    by_keys = terminal and not as_json
    if by_keys and find_spec("textual") is None:
        raise MissingExtraError("textual", "label", "Labelling on the whole screen")
    with opened_project(options, console, labels=True) as project:
        from suffice.cli.labeller import opened_labeller

        with opened_labeller(project, options.who) as labeller:
            _label(labeller, console, by_keys=by_keys)
            _summarise(labeller, options, console, as_json=as_json)


def _label(labeller: "Labeller", console: Console, *, by_keys: bool) -> None:
    """Label by keys or by lines, until the person leaves in whatever way."""
    from suffice.cli.labeller import label_by_lines

    try:
        if by_keys:
            from suffice.cli.label_app import label_by_keys

            label_by_keys(labeller)
            labeller.caught_up(_LAST_LOOK)
        else:
            if hasattr(sys.stdin, "reconfigure"):
                sys.stdin.reconfigure(errors="replace")
            label_by_lines(labeller, console, iter(sys.stdin.readline, ""))
            labeller.caught_up(_LAST_WORD)
    except KeyboardInterrupt:
        # Ctrl-C is one of the ways to leave: what was labelled is on the disk.
        pass


def _summarise(labeller: "Labeller", options: ProjectOptions, console: Console, *, as_json: bool) -> None:
    from suffice.cli.terminal_display import visible
    from suffice.project.status_summary import learning_sentences, status

    learning_status, project = labeller.background.learning_status, labeller.project
    if as_json:
        told: dict[str, Any] = {"project": project.place, "person": labeller.person, "given": labeller.labels}
        typer.echo(json.dumps(told | status(project, learning_status)))
        return
    counts = labeller.counts()
    lines = [
        given_sentence(labeller.labels, counts.labelled, counts.size, counts.skipped),
        *learning_sentences(
            learning_status,
            project.settings,
            counts.labelled,
            size=counts.size - counts.skipped,
            checks=counts.checks,
        ),
        f"Go on with: suffice label {shlex.quote(hidden(place_of(options)[0]))}",
    ]
    for line in lines:
        console.print(visible(line, console.encoding), markup=False, emoji=False)
