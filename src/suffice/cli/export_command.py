"""``suffice export``: labels, predictions for the unlabelled items, and the report as files."""

import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from suffice.cli.rule_options import AsJson
from suffice.cli.stored_project import Place, Reading, made_folder, plain_console, reading
from suffice.errors import SufficeError
from suffice.files import require_writable, write_bytes_whole, write_whole

if TYPE_CHECKING:
    from suffice.project.exported_files import Exported


class FormatName(StrEnum):
    """How tables are written."""

    csv = "csv"
    jsonl = "jsonl"
    parquet = "parquet"
    hf = "hf"
    label_studio = "label-studio"

    @property
    def table(self) -> str:
        """The format of tables that are not for another program."""
        return "csv" if self in (FormatName.hf, FormatName.label_studio) else self.value


def export_command(
    place: Place,
    format: Annotated[
        FormatName,
        typer.Option(
            help="How labels and predictions are written. hf also writes the labels as a data set of Hugging Face, and "
            "label-studio all items as tasks of Label Studio."
        ),
    ] = FormatName.csv,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.joblib",
            help="Also save the fitted pipeline with joblib. Whoever loads such a file runs the code in it; suffice "
            "predict needs none.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the files go; made if it is not there.", show_default="DIR/export"),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files of these names in the folder of --out.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the labels, the model's predictions with their uncertainty for all other items, and the report.

    The files are labels, predictions and report.html. If a check has guaranteed something, there is guarantee.json too;
    where it is about an earlier model, checked_predictions has the predictions of that model. Files of an earlier
    export in DIR/export are replaced; in a folder of your own they are kept unless there is --force. In a CSV a text
    that a spreadsheet could run as a formula has an apostrophe in front; JSON lines and Parquet hold texts as they are.

    Example: suffice export mails.suffice --format parquet --out results
    """
    from suffice.report.html_page import require_jinja2

    require_jinja2()
    tables = [f"{name}.{format.table}" for name in ("labels", "skipped", "predictions", "checked_predictions")]
    names = [*tables, *_OTHERS.get(format, ()), "guarantee.json", "report.html"]
    if model is not None:
        require_writable(model, "the model")
    if out is not None and not force:
        _require_free(out, names)
    with reading(place) as found:
        folder = made_folder(out or found.folder)
        for name in names:
            require_writable(folder / name, name)
        with _without_collector():
            told = _write(found, folder, format)
            told |= _write_for_others(found, folder, format) | _write_model(found, model)
    if as_json:
        typer.echo(json.dumps(told))
        return
    console = plain_console()
    for name in ("labels", "skipped", "predictions", "checked_predictions"):
        if told[name] is not None:
            what = name.replace("_", " ").capitalize()
            console.print(f"{what}: {told[name]['path']} ({told[name]['rows']:,} rows)")
    for name, what in (("dataset", "Data set of Hugging Face"), ("label_studio", "Tasks of Label Studio")):
        if told[name] is not None:
            console.print(f"{what}: {told[name]['path']} ({told[name]['rows']:,} rows)")
    if told["guarantee"] is not None:
        console.print(f"Guarantee: {told['guarantee']['path']}")
    if told["model"] is not None:
        console.print(f"Model: {told['model']['path']}. Load it with joblib, and only if you trust who made it.")
    if told["left_out"]:
        console.print(told["left_out"])
    console.print(f"Report: {told['report']['path']}")


@contextmanager
def _without_collector() -> Iterator[None]:
    """Do without the garbage collector: a quarter of the time of many rows, which are in no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# Files and folders for other programs.
_OTHERS: Final = {
    FormatName.hf: ("labels_dataset",),
    FormatName.label_studio: ("label-studio.json", "label-studio.xml"),
}


def _write_for_others(found: Reading, folder: Path, format: FormatName) -> dict[str, Any]:
    """Write the labels for another program."""
    told: dict[str, Any] = {"dataset": None, "label_studio": None}
    if format not in _OTHERS:
        return told
    from suffice.project.exported_files import label_studio_configuration, label_studio_file, write_dataset

    if format is FormatName.hf:
        path = folder / _OTHERS[format][0]
        return told | {"dataset": {"path": str(path), "rows": write_dataset(found.project, path)}}
    try:
        predictions = found.predictions()
    except SufficeError:
        predictions = None
    tasks = label_studio_file(found.project, predictions)
    for file in (tasks, label_studio_configuration(found.project.settings)):
        write_bytes_whole(folder / file.name, file.content)
    return told | {"label_studio": {"path": str(folder / tasks.name), "rows": tasks.rows}}


def _write_model(found: Reading, path: Path | None) -> dict[str, Any]:
    """Save the fitted pipeline."""
    if path is None:
        return {"model": None}
    import joblib  # type: ignore[import-untyped]

    pipeline = found.project.pipeline()

    def write(part: Path) -> None:
        joblib.dump(pipeline, part, compress=3)

    write_whole(path, write)
    return {"model": {"path": str(path)}}


def _require_free(folder: Path, names: Sequence[str]) -> None:
    there = [name for name in names if (folder / name).exists()]
    if there:
        raise SufficeError(
            f"in {folder} there is {', '.join(there)} already; replace with --force, or name another folder with --out"
        )


def _write(found: Reading, folder: Path, format: FormatName) -> dict[str, Any]:
    """Make everything, then write it: what cannot be made leaves no file."""
    from suffice.project.exported_files import (
        checked_predictions_file,
        guarantee_file,
        labels_file,
        predictions_file,
        skipped_file,
    )
    from suffice.report.html_page import write_page
    from suffice.report.project_report import report_page
    from suffice.tables.file_writer import checked_format

    table = checked_format(format.table)
    files: dict[str, Exported | None] = {
        "labels": labels_file(found.project, table),
        "skipped": skipped_file(found.project, table),
        "predictions": None,
        "checked_predictions": checked_predictions_file(found.project, table),
        "guarantee": guarantee_file(found.project),
    }
    left_out = ""
    try:
        predictions = found.predictions()
    except SufficeError as error:
        left_out = f"No predictions: {str(error).rstrip('.')}."
        if (folder / f"predictions.{format.table}").exists():
            left_out += f" The file predictions.{format.table} there is of an earlier export."
    else:
        files["predictions"] = predictions_file(found.project, predictions, table)
    perhaps = {
        **{name: f"{name}.{format.table}" for name in ("skipped", "checked_predictions")},
        "guarantee": "guarantee.json",
    }
    for name, path in perhaps.items():
        if files[name] is None and (folder / path).exists():
            left_out = f"{left_out} The file {path} there is of an earlier export.".strip()
    page = report_page(found.project, found.learning_status)
    told: dict[str, Any] = {"folder": str(folder), "format": format.value, "left_out": left_out} | dict.fromkeys(files)
    for name, file in files.items():
        if file is not None:
            write_bytes_whole(folder / file.name, file.content)
            told[name] = {"path": str(folder / file.name), "rows": file.rows}
    write_page(folder / "report.html", page)
    return told | {"report": {"path": str(folder / "report.html")}}
