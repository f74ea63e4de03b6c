"""``suffice import``: labels, or predictions of another model, from a file into a project."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from suffice.cli.project_options import ProjectOptions
from suffice.cli.rule_options import AsJson
from suffice.cli.stored_project import Place, plain_console, stored_project
from suffice.errors import InvalidValueError


class ConflictsName(StrEnum):
    """What happens to a label where the item has another one."""

    keep = "keep"
    # A text has a method of the plain name.
    replace_label = "replace"
    opinion = "opinion"


class MatchName(StrEnum):
    """By what rows are matched with items."""

    id = "id"
    row = "row"
    text = "text"


def import_command(
    place: Place,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A CSV or Parquet file.", show_default=False)],
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of labels.")] = None,
    prediction: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of predictions of another model, instead of labels. They are shown on request and used for "
            "nothing else.",
        ),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column with the ids of the items, or with their texts for --by text."),
    ] = None,
    by: Annotated[
        MatchName | None,
        typer.Option(help="How rows are matched with items.", show_default="id, else text, else row"),
    ] = None,
    probability: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column with the probability of the prediction.", show_default="columns p(CLASS)"
        ),
    ] = None,
    conflicts: Annotated[
        ConflictsName,
        typer.Option(
            help="Where an item has another label: keep it, replace it by a correction, or add the new one as an "
            "opinion of the person."
        ),
    ] = ConflictsName.keep,
    person: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who gave the labels.", show_default="your login name")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing, and say what would happen.")] = False,
    as_json: AsJson = False,
) -> None:
    """Import labels from a file into a project, or predictions of another model.

    Rows are matched with items by id, by their exact text, or by their order. All labels are written together, or none;
    importing the same file again changes nothing. A running server takes them over within a second.

    Example: suffice import mails.suffice labels.csv --id id --label kind --person Ann --check
    """
    if (label is None) == (prediction is None):
        raise InvalidValueError("give either --label, the column of labels, or --prediction, the column of predictions")
    with stored_project(place) as (project, _):
        who = ProjectOptions(place, person=person).who
        fate: Any = conflicts.value
        match: Any = None if by is None else by.value
        if label is not None:
            report = project.import_labels(file, label=label, person=who, id=id, by=match, conflicts=fate, check=check)
        else:
            assert prediction is not None
            report = project.import_predictions(
                file, prediction=prediction, person=who, id=id, by=match, probability=probability, check=check
            )
    if as_json:
        typer.echo(json.dumps(report.as_dict()))
        return
    console = plain_console()
    for sentence in report.sentences(trial=check):
        console.print(sentence)
