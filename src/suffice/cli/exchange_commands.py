"""Commands for data and results of a labelling project: import, add, predict, export."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from suffice.cli.json_output import AsJson, print_json
from suffice.cli.project_options import (
    Place,
    Reading,
    compute_features,
    made_folder,
    person_name,
    person_option,
    plain_console,
    reading,
    stored_project,
)
from suffice.cli.settings_options import with_settings
from suffice.errors import InvalidValueError, SufficeError
from suffice.files import require_writable, without_collector, write_bytes_whole, write_whole
from suffice.presentation.text_format import count
from suffice.tables.table_formats import FINAL_FORMATS, FORMATS, format_of, usual_endings

if TYPE_CHECKING:
    from suffice.project.exported_files import Exported
    from suffice.project.labelling_project import Project


class ConflictsName(StrEnum):
    """What to do with a label if the item has another one."""

    keep = "keep"
    # A text has a method of the plain name.
    replace_label = "replace"
    opinion = "opinion"


class MatchName(StrEnum):
    """How rows are matched with items."""

    id = "id"
    row = "row"
    text = "text"


NewRows = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="New rows: a table (CSV, Excel, JSON lines or Parquet), or a folder of images.",
        show_default=False,
    ),
]
NewFeatures = Annotated[
    Path | None,
    typer.Option(metavar="FILE.npy", help="Features of the new rows, if those of the project were given as a file."),
]


@dataclass(frozen=True)
class ImportOptions:
    """Options about the columns of an imported file."""

    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of labels.")] = None
    prediction: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of predictions of another model, instead of labels. They are shown on request and used for "
            "nothing else.",
        ),
    ] = None
    id: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column with the ids of the items, or with their texts for --by text."),
    ] = None
    by: Annotated[
        MatchName | None,
        typer.Option(help="How rows are matched with items.", show_default="id, else text, else row"),
    ] = None
    probability: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column with the probability of the prediction.", show_default="columns p(CLASS)"
        ),
    ] = None
    conflicts: Annotated[
        ConflictsName,
        typer.Option(
            help="If an item has another label: keep it, replace it by a correction, or add the new one as an "
            "opinion of the person."
        ),
    ] = ConflictsName.keep


@with_settings
def import_command(
    place: Place,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A table: CSV, Excel, JSON lines or Parquet.", show_default=False)
    ],
    columns: ImportOptions,
    person: Annotated[str | None, person_option("Who gave the labels.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing, and say what would happen.")] = False,
    as_json: AsJson = False,
) -> None:
    """Import labels from a file into a project, or predictions of another model.

    Rows are matched with items by id, by their exact text, or by their order. All labels are written together, or none;
    importing the same file again changes nothing. A running server takes them over within a second.

    Example: suffice import mails.suffice labels.csv --id id --label kind --person Ann --check
    """
    label, prediction = columns.label, columns.prediction
    if (label is None) == (prediction is None):
        raise InvalidValueError("give either --label, the column of labels, or --prediction, the column of predictions")
    with stored_project(place) as (project, _):
        conflicts: Any = columns.conflicts.value
        common: dict[str, Any] = {
            "person": person_name(person),
            "id": columns.id,
            "by": None if columns.by is None else columns.by.value,
            "check": check,
        }
        if label is not None:
            report = project.import_labels(file, label=label, conflicts=conflicts, **common)
        else:
            assert prediction is not None
            report = project.import_predictions(file, prediction=prediction, probability=columns.probability, **common)
    if as_json:
        print_json("import", report.as_dict())
        return
    console = plain_console()
    for sentence in report.sentences(trial=check):
        console.print(sentence)


def add_command(
    place: Place,
    data: NewRows,
    id: Annotated[str | None, typer.Option(metavar="COLUMN", help="Column that names the items.")] = None,
    features: NewFeatures = None,
    person: Annotated[str | None, person_option("Who adds them.")] = None,
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
        report = project.importer.add_items(data, person=person_name(person), id=id, features=features, check=check)
    if as_json:
        print_json("add", report.as_dict())
        return
    for note in report.notes:
        plain_console().print(f"- {note}")
    for sentence in report.sentences(trial=check):
        plain_console().print(sentence)


def predict_command(
    place: Place,
    data: NewRows,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FILE",
            help=f"File for the predictions: a name that ends in {usual_endings()}.",
            show_default="DATA-predictions.csv in the current folder",
        ),
    ] = None,
    features: NewFeatures = None,
    as_json: AsJson = False,
) -> None:
    """Predict the labels of new rows with the model of a project.

    The rows must have the columns of the project. The file has their cells, the prediction, its uncertainty, and for
    classes the probability of each. Large files are read and written a few thousand rows at a time. No guarantee of the
    project covers new rows: a guarantee is about the items that were in the project when its check was drawn.

    Example: suffice predict mails.suffice new.csv -o answers.csv
    """
    from suffice.tables.file_reader import without_ending

    to = out or Path(f"{without_ending(data)}-predictions.csv")
    format = format_of(to)
    if format is None:
        raise InvalidValueError(f"--out must end in {usual_endings()}, not {to.name!r}")
    require_writable(to, "the predictions")
    rows, notes = 0, list[str]()
    with stored_project(place) as (project, _):
        from suffice.project.incoming_rows import write_predictions

        def write(part: Path) -> None:
            nonlocal rows
            compute_features(project)
            rows = write_predictions(project, data, part, format, features=features, tell=notes.append)

        write_whole(to, write)
    if as_json:
        print_json("predict", {"path": str(to), "rows": rows, "notes": notes})
        return
    for note in notes:
        plain_console().print(f"- {note}")
    plain_console().print(f"Predictions: {to} ({count(rows, 'row')})")


class FormatName(StrEnum):
    """Format of written tables."""

    vars().update({name: name for name in FORMATS})
    hf = "hf"
    label_studio = "label-studio"

    @property
    def table(self) -> str:
        """The format of tables that are not for another program."""
        return "csv" if self in (FormatName.hf, FormatName.label_studio) else self.value


_USUAL_FORMAT: Final = FormatName("csv")


@dataclass(frozen=True)
class FinalOptions:
    """Options of the final file and its statement."""

    final: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write all rows with their final labels to this file only, once the goal for all labels is reached: "
            f"a name that ends in {usual_endings(FINAL_FORMATS)}.",
        ),
    ] = None
    bom: Annotated[
        bool,
        typer.Option("--bom", help="Begin the CSV of --final with a byte order mark, by which Excel recognises UTF-8."),
    ] = False
    statement: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Write a page to print about the final labels: what is guaranteed, how it was checked, and what is "
            "not covered.",
        ),
    ] = None
    all_rows: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write all rows to this file only: the labels of people, and for the others the current predictions. "
            f"No goal is needed, and nothing is guaranteed. A name that ends in {usual_endings(FINAL_FORMATS)}.",
        ),
    ] = None

    @property
    def wanted(self) -> bool:
        """Whether one of the files is to be written."""
        return any(path is not None for path in (self.final, self.statement, self.all_rows))

    def require_alone(self, others: dict[str, Path | None]) -> None:
        """Raise an error for options that have no effect together with these.

        Args:
            others: Other options, with their values.

        Raises:
            InvalidValueError: An option has no effect.
        """
        written = [path for path in (self.final, self.all_rows) if path is not None]
        if self.bom and not any(path.suffix.lower() == ".csv" for path in written):
            raise InvalidValueError("--bom is for the CSV file of --final or --all-rows; name a file that ends in .csv")
        if self.all_rows is not None and (self.final is not None or self.statement is not None):
            raise InvalidValueError("--all-rows writes current labels, and --final those of a reached goal; give one")
        useless = [name for name, value in others.items() if self.wanted and value is not None]
        if useless:
            raise InvalidValueError(
                f"with --final, --statement or --all-rows only these files are written; leave {useless[0]} out"
            )


@with_settings
def export_command(
    place: Place,
    last: FinalOptions,
    format: Annotated[
        FormatName,
        typer.Option(
            help="How labels and predictions are written. hf also writes the labels as a data set of Hugging Face, and "
            "label-studio all items as tasks of Label Studio."
        ),
    ] = _USUAL_FORMAT,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.joblib",
            help="Also save the fitted pipeline with joblib. Loading such a file runs the code in it; suffice "
            "predict needs none.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder for the files, created if missing.", show_default="DIR/export"),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace files of these names in the folder of --out.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the labels, the model's predictions with their uncertainty for all other items, and the report.

    The files are labels, predictions and report.html. If a check has guaranteed something, there is guarantee.json too;
    where it is about an earlier model, checked_predictions has the predictions of that model. Files of an earlier
    export in DIR/export are replaced; in another folder they are kept unless --force is given. In a CSV a text
    that a spreadsheet could run as a formula has an apostrophe in front; JSON lines and Parquet hold texts as they are.

    With --final or --statement only these files are written. They need a goal for all labels that is reached. With
    --all-rows only one file with all rows is written: labels of people, and predictions for the others.

    Example: suffice export mails.suffice --format parquet --out results

    Example: suffice export mails.suffice --all-rows mails-so-far.xlsx

    Example: suffice export mails.suffice --final mails-labelled.xlsx --statement statement.html
    """
    last.require_alone({"--out": out, "--model": model})
    if last.wanted:
        _export_one_file(place, last, as_json=as_json)
        return
    from suffice.report.html_page import require_jinja2

    require_jinja2()
    tables = [f"{name}.{format.table}" for name in ("labels", "skipped", "predictions", "checked_predictions")]
    names = [*tables, *_OTHERS.get(format, ()), "guarantee.json", "report.html"]
    if model is not None:
        require_writable(model, "the model")
    if out is not None and not force:
        _require_free(out, names)
    with reading(place) as learned:
        folder = made_folder(out or learned.folder)
        for name in names:
            require_writable(folder / name, name)
        with without_collector():
            written = _write_files(learned, folder, format)
            written |= _write_for_others(learned, folder, format) | _write_model(learned, model)
    if as_json:
        print_json("export", written)
        return
    console = plain_console()
    for name in ("labels", "skipped", "predictions", "checked_predictions"):
        if written[name] is not None:
            what = name.replace("_", " ").capitalize()
            console.print(f"{what}: {written[name]['path']} ({count(written[name]['rows'], 'row')})")
    for name, what in (("dataset", "Data set of Hugging Face"), ("label_studio", "Tasks of Label Studio")):
        if written[name] is not None:
            console.print(f"{what}: {written[name]['path']} ({count(written[name]['rows'], 'row')})")
    if written["guarantee"] is not None:
        console.print(f"Guarantee: {written['guarantee']['path']}")
    if written["model"] is not None:
        console.print(f"Model: {written['model']['path']}. Load it with joblib, and only if you trust its author.")
    if written["left_out"]:
        console.print(written["left_out"])
    console.print(f"Report: {written['report']['path']}")


def _require_goal(project: "Project") -> None:
    """Raise an error for a check of predictions without a goal about all labels, which has no final labels."""
    if project.settings.checked is None or project.settings.goal is not None:
        return
    raise InvalidValueError(
        "final labels need a goal about all labels, and this project checks the predictions as they are; make another "
        "one: suffice check FILE --prediction COLUMN --at-most 2% --of all --project FOLDER. The statement of a check "
        "is written by suffice check, where --statement names its file"
    )


def _export_one_file(place: str, last: FinalOptions, *, as_json: bool) -> None:
    """Write the files that are written alone."""
    if last.all_rows is None:
        _export_final(place, last, as_json=as_json)
    else:
        _export_all_rows(place, last.all_rows, bom=last.bom, as_json=as_json)


def _export_final(place: str, last: FinalOptions, *, as_json: bool) -> None:
    """Write the final file and its statement."""
    from suffice.project.final_files import final_file, renamed_columns
    from suffice.report.html_page import require_jinja2, write_page
    from suffice.tables.final_writer import final_format

    format = None if last.final is None else final_format(last.final)
    for path, what in ((last.final, "the final file"), (last.statement, "the statement")):
        if path is not None:
            require_writable(path, what)
    if last.statement is not None:
        require_jinja2()
    written: dict[str, Any] = {"final": None, "statement": None}
    with stored_project(place) as (project, _):
        _require_goal(project)
        final = project.final_labels()
        # Both contents are made before a file is written.
        file = None if format is None else final_file(project, final, format, byte_order_mark=last.bom)
        page = None
        if last.statement is not None:
            from suffice.report.statement_page import statement_page

            page = statement_page(project, final)
        renamed = renamed_columns(project)
    if file is not None:
        assert last.final is not None
        write_bytes_whole(last.final, file.content)
        written["final"] = {"path": str(last.final), "rows": file.rows, "renamed": renamed}
    if page is not None:
        assert last.statement is not None
        write_page(last.statement, page)
        written["statement"] = {"path": str(last.statement)}
    if as_json:
        print_json("export", written | {"guarantee": final.guarantee.to_dict(), "added": final.reached.added})
        return
    console = plain_console()
    for sentence in [str(final.guarantee), *final.reached.sentences()[1:]]:
        console.print(sentence)
    if file is not None:
        unlabelled = final.source.count("")
        verb = "has" if unlabelled == 1 else "have"
        without = f"; {unlabelled:,} {verb} no label" if unlabelled else ""
        console.print(f"Final file: {last.final} ({count(file.rows, 'row')}{without})")
        for usual, name in renamed.items():
            console.print(f"The column {usual} is named {name}, because the data have a column {usual}.")
    if page is not None:
        console.print(f"Statement: {last.statement}")


def _export_all_rows(place: str, path: Path, *, bom: bool, as_json: bool) -> None:
    """Write all rows with the current labels."""
    from suffice.project.final_files import all_rows_file
    from suffice.tables.final_writer import final_format

    format = final_format(path)
    require_writable(path, "the rows")
    without = ""
    with reading(place) as learned:
        try:
            predictions = learned.predictions()
        except SufficeError as error:
            predictions, without = None, f"No predictions: {str(error).rstrip('.')}."
        file = all_rows_file(learned.project, predictions, format, byte_order_mark=bom)
    write_bytes_whole(path, file.content)
    if as_json:
        print_json("export", {"all_rows": {"path": str(path), "rows": file.rows}, "left_out": without})
        return
    console = plain_console()
    if without:
        console.print(without)
    written = f"All rows: {path} ({count(file.rows, 'row')})"
    console.print(f"{written}. The column source tells labels of people from predictions.")


# Files and folders for other programs.
_OTHERS: Final = {
    FormatName.hf: ("labels_dataset",),
    FormatName.label_studio: ("label-studio.json", "label-studio.xml"),
}


def _write_for_others(learned: Reading, folder: Path, format: FormatName) -> dict[str, Any]:
    """Write the labels for another program."""
    written: dict[str, Any] = {"dataset": None, "label_studio": None}
    if format not in _OTHERS:
        return written
    from suffice.project.exported_files import label_studio_configuration, label_studio_file, write_dataset

    if format is FormatName.hf:
        path = folder / _OTHERS[format][0]
        return written | {"dataset": {"path": str(path), "rows": write_dataset(learned.project, path)}}
    try:
        predictions = learned.predictions()
    except SufficeError:
        predictions = None
    tasks = label_studio_file(learned.project, predictions)
    for file in (tasks, label_studio_configuration(learned.project.settings)):
        write_bytes_whole(folder / file.name, file.content)
    return written | {"label_studio": {"path": str(folder / tasks.name), "rows": tasks.rows}}


def _write_model(learned: Reading, path: Path | None) -> dict[str, Any]:
    """Save the fitted pipeline."""
    if path is None:
        return {"model": None}
    import joblib

    pipeline = learned.project.pipeline()

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


def _write_files(learned: Reading, folder: Path, format: FormatName) -> dict[str, Any]:
    """Create all contents before writing, so that no file is written if one of them fails."""
    from suffice.project.exported_files import (
        checked_predictions_file,
        guarantee_file,
        labels_file,
        predictions_file,
        skipped_file,
    )
    from suffice.report.html_page import write_page
    from suffice.report.project_report import report_page

    table = format.table
    files: dict[str, Exported | None] = {
        "labels": labels_file(learned.project, table),
        "skipped": skipped_file(learned.project, table),
        "predictions": None,
        "checked_predictions": checked_predictions_file(learned.project, table),
        "guarantee": guarantee_file(learned.project),
    }
    left_out = ""
    try:
        predictions = learned.predictions()
    except SufficeError as error:
        left_out = f"No predictions: {str(error).rstrip('.')}."
        if (folder / f"predictions.{format.table}").exists():
            left_out += f" The file predictions.{format.table} there is of an earlier export."
    else:
        files["predictions"] = predictions_file(learned.project, predictions, table)
    perhaps = {
        **{name: f"{name}.{format.table}" for name in ("skipped", "checked_predictions")},
        "guarantee": "guarantee.json",
    }
    for name, path in perhaps.items():
        if files[name] is None and (folder / path).exists():
            left_out = f"{left_out} The file {path} there is of an earlier export.".strip()
    page = report_page(learned.project, learned.learning_status)
    written: dict[str, Any] = {"folder": str(folder), "format": format.value, "left_out": left_out} | dict.fromkeys(
        files
    )
    for name, file in files.items():
        if file is not None:
            write_bytes_whole(folder / file.name, file.content)
            written[name] = {"path": str(folder / file.name), "rows": file.rows}
    write_page(folder / "report.html", page)
    return written | {"report": {"path": str(folder / "report.html")}}
