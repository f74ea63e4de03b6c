"""``suffice repair``: verify a labelling project, and recover what can be verified."""

import json
from typing import Annotated

import typer

from suffice.cli.project_options import ProjectOptions, place_of, require_store
from suffice.cli.rule_options import AsJson
from suffice.cli.stored_project import Place, plain_console


def repair_command(
    place: Place,
    check: Annotated[bool, typer.Option("--check", help="Verify only, and change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Verify everything in a labelling project by its checksums, and recover what can be verified.

    The damaged files are kept under another name. Stop a server that uses the project first.

    Example: suffice repair mails.suffice --check
    """
    require_store()
    from suffice.presentation.messages import damage_sentences
    from suffice.project.repair import repair_project

    found = place_of(ProjectOptions(place))[0]
    report = repair_project(found, check=check)
    if as_json:
        typer.echo(json.dumps(report.as_dict()))
    else:
        console = plain_console()
        for sentence in damage_sentences(report.as_dict(), place):
            console.print(sentence, soft_wrap=True)
    if not report.intact and not report.repaired:
        raise typer.Exit(1)
