"""``suffice review``: labels of a project that are likely wrong."""

import json
from typing import Annotated

import typer

from suffice.cli.rule_options import AsJson
from suffice.cli.stored_project import Place, plain_console, shown_place, stored_project


def review_command(
    place: Place,
    most: Annotated[int, typer.Option("-n", "--most", min=1, help="How many labels to list at most.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the labels that are likely wrong: the model, which judges each without having learned it, says otherwise.

    Labels that somebody has confirmed are not listed, and neither are items of a check. Nothing is written. To confirm
    or correct them, open the page with suffice serve, under Review.

    Example: suffice review mails.suffice -n 50
    """
    with stored_project(place) as (project, found):
        from suffice.cli.labeller.visible_text import one_line
        from suffice.project.project_learner import learned_project, suspicious_labels
        from suffice.project.review import review

        listed = review(project, suspicious_labels(learned_project(project), project.X), most)
    if as_json:
        typer.echo(json.dumps(listed.as_dict(), allow_nan=False))
        return
    console = plain_console()
    console.print(listed.sentence)
    for each in listed.labels:
        console.print(one_line(f"{each.id}: {each.summary}", console.encoding), style="bold")
        console.print("  " + one_line(f"{each.sentence} By {each.person}.", console.encoding))
    if listed.labels:
        console.print(listed.note)
        console.print(f"Confirm or correct them: suffice serve {shown_place(found)}, under Review")
