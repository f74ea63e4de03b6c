"""``suffice report``: the HTML report of a labelling project."""

import json
from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.rule_options import AsJson
from suffice.cli.stored_project import Place, made_folder, plain_console, reading
from suffice.files import require_writable


def report_command(
    place: Place,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Where to write it; what is there is replaced.",
            show_default="DIR/export/report.html",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a page for the boss: whether it is enough, how large the error is, what was labelled.

    The page holds everything that it shows, and can be sent on.

    Example: suffice report mails.suffice --out report.html
    """
    from suffice.report.html_page import require_jinja2, write_page

    require_jinja2()
    if out is not None:
        require_writable(out, "the report")
    with reading(place) as found:
        from suffice.report.project_report import report_page

        file = out or made_folder(found.folder) / "report.html"
        write_page(file, report_page(found.project, found.learning_status))
    if as_json:
        typer.echo(json.dumps({"report": str(file)}))
        return
    plain_console().print(f"Report: {file}")
