"""``suffice predict``: what the model of a project says of new rows."""

import json
from pathlib import Path
from typing import Annotated

import typer

from suffice.cli.rule_options import AsJson
from suffice.cli.stored_project import Place, plain_console, stored_project
from suffice.errors import InvalidValueError
from suffice.files import require_writable, write_whole

_FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".pq": "parquet"}


def predict_command(
    place: Place,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", help="New rows: a CSV or Parquet file, or a folder of images.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help="Where the predictions go: a name that ends in .csv, .jsonl or .parquet.",
            show_default="DATA-predictions.csv in the current folder",
        ),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npy", help="Features of the new rows, if those of the project were given as a file."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Predict the labels of new rows with the model of a project.

    The rows must have the columns of the project. The file has their cells, the prediction, its uncertainty, and for
    classes the probability of each. Large files are read and written a few thousand rows at a time. No guarantee of the
    project covers new rows: a guarantee is about the items that were in the project when its check was drawn.

    Example: suffice predict mails.suffice new.csv -o answers.csv
    """
    to = out or Path(f"{data.stem}-predictions.csv")
    format = _FORMATS.get(to.suffix.lower())
    if format is None:
        raise InvalidValueError(f"--out must end in .csv, .jsonl or .parquet, not {to.name!r}")
    require_writable(to, "the predictions")
    rows = 0
    with stored_project(place) as (project, _):
        from suffice.project.new_rows import write_predictions
        from suffice.tables.file_writer import checked_format

        def write(part: Path) -> None:
            nonlocal rows
            rows = write_predictions(project, data, part, checked_format(format), features=features)

        write_whole(to, write)
    if as_json:
        typer.echo(json.dumps({"path": str(to), "rows": rows}))
        return
    plain_console().print(f"Predictions: {to} ({rows:,} rows)")
