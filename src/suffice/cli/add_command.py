"""``suffice add``: more rows for a labelling project."""

import json
from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.project_options import ProjectOptions
from suffice.cli.rule_options import AsJson
from suffice.cli.stored_project import Place, plain_console, stored_project
from suffice.presentation.messages import items_added_sentences


def add_command(
    place: Place,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", help="New rows: a CSV or Parquet file, or a folder of images.", show_default=False
        ),
    ],
    id: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column that names the items.")] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npy", help="Features of the new rows, if those of the project were given as a file."
        ),
    ] = None,
    person: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who adds them.", show_default="your login name")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Change nothing, and say how many would be added.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add rows to a labelling project.

    The rows must have the columns of the project. All are added or none. A column with the name of the label holds
    labels that exist already. The model learns all labels again, with the larger pool; a running server notices within
    a second. A guarantee covers the items that were there when its check was drawn, and no items that are added later.

    Example: suffice add mails.suffice more.csv
    """
    with stored_project(place) as (project, _):
        who = ProjectOptions(place, person=person).who
        added = project.add_items(data, person=who, id=id, features=features, check=check)
        size, guaranteed = project.size, project.guarantee() is not None
    if as_json:
        typer.echo(json.dumps({"added": added, "size": size, "written": not check}))
        return
    for sentence in items_added_sentences(added, size, trial=check, guaranteed=guaranteed):
        plain_console().print(sentence)
