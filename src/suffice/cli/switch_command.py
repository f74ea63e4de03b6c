"""``suffice switch``: another model for a labelling project."""

import json
from typing import Annotated

import typer

from suffice.cli.project_options import ProjectOptions, place_of, require_store
from suffice.cli.rule_options import AsJson
from suffice.cli.stored_project import Place, plain_console, shown_place


def switch_command(
    place: Place,
    model: Annotated[
        str, typer.Option(help="The model that learns from now on: logistic or kernel for classes, gp or ridge.")
    ],
    person: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who switches.", show_default="your login name")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let another model learn the labels of a project, from the first one on.

    All labels stay. The page, the terminal, exports and the report use the new model from then on; a server that is
    running takes it over within a second. Switch back in the same way.

    Example: suffice switch mails.suffice --model kernel
    """
    require_store()
    from suffice.project.create import open_project
    from suffice.project.settings import described_model

    options = ProjectOptions(place, person=person)
    found = place_of(options)[0]
    with open_project(found) as project:
        before = project.current_settings.model
        project.switch_model(model, person=options.who)
    if as_json:
        typer.echo(json.dumps({"model": model, "before": before}))
        return
    console = plain_console()
    console.print(f"The model is now {described_model(model)}; it was {described_model(before)}. All labels stay.")
    console.print(f"See what it makes of them: suffice status {shown_place(found)}")
