"""The files exported from a project: labels, predictions for the unlabelled items, and the guarantee."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import quoteattr

import numpy as np

from suffice.errors import InvalidValueError, SufficeError
from suffice.project.events import moment
from suffice.project.opinions import majority_of
from suffice.project.state import LabelledItem
from suffice.tables.file_writer import Cell, Column, Rows, distinct, encoded, finite_cells
from suffice.tables.table_formats import MEDIA_TYPES, Format, checked_format

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project
    from suffice.project.learning_status import Predictions
    from suffice.project.settings import Settings

#: Items that are read at a time.
_CHUNK: Final = 5000


@dataclass(frozen=True)
class Exported:
    """An exported file before it is written.

    Attributes:
        name: Name of the file.
        media_type: Media type of its format, for HTTP.
        content: Contents of the file.
        rows: Number of rows.
    """

    name: str
    media_type: str
    content: bytes
    rows: int


def labels_file(project: "Project", format: Format) -> Exported:
    """Every item with a label, in the order of labelling.

    A row has the item's id, its cells under their names, the label that counts under the name of the target, who gave
    it and when (``labelled_by``, ``labelled_at``, in UTC), whether it is a correction (``corrected``), how many people
    labelled the item (``opinions``), whether their labels agree (``agreed``, empty for a single label), whether the
    item was drawn at random (``random``), whether the person saw a prediction before answering (``saw_prediction``),
    whether somebody has confirmed the label (``confirmed``), the label that most people gave (``majority``, empty if
    there is none), and the labels of all people as a JSON object (``opinion_of_each``). If a cell has the name of an
    added column, a number is appended to the name of the added column.

    Args:
        project: The project.
        format: One of :data:`~suffice.tables.table_formats.FORMATS`; :mod:`suffice.tables.file_writer` describes how
            text is written to a CSV.

    Raises:
        InvalidValueError: The format is not known.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    known, settings = checked_format(format), project.settings
    count = 0

    def counted() -> Iterator[Rows]:
        nonlocal count
        for rows in label_rows(project):
            count += len(rows)
            yield rows

    content = encoded(label_columns(settings), counted(), known)
    return Exported(f"labels.{known}", MEDIA_TYPES[known], content, count)


def label_columns(settings: "Settings") -> list[Column]:
    """The columns of :func:`labels_file`."""
    own = [
        Column("labelled_by"),
        Column("labelled_at"),
        Column("corrected", "flag"),
        Column("opinions", "count"),
        Column("agreed", "flag"),
        Column("random", "flag"),
        Column("saw_prediction", "flag"),
        Column("confirmed", "flag"),
        Column("majority", _target(settings).kind),
        Column("opinion_of_each"),
    ]
    return _columns(settings, [_target(settings), *own])


def label_rows(project: "Project") -> Iterator[Rows]:
    """The rows of :func:`labels_file`, some at a time."""
    with project.lock:
        by_item = {each.item: each for each in project.state().labelled()}
    yield from _chunks(project, list(by_item), lambda part: [_labelled_cells(by_item[item]) for item in part])


def skipped_file(project: "Project", format: Format) -> Exported | None:
    """Every item that was skipped and has no label, in the order of skipping; None if there is none.

    A row has the item's id, its cells under their names, who skipped it and when (``skipped_by``, ``skipped_at``, in
    UTC), whether they were unsure of the label (``unsure``), and what they wrote (``reason``).

    Args:
        project: The project.
        format: One of :data:`~suffice.tables.table_formats.FORMATS`.

    Raises:
        InvalidValueError: The format is not known.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    known, settings = checked_format(format), project.settings
    with project.lock:
        skipped = {each.item: each for each in project.state().skipped()}
    if not skipped:
        return None
    own = [Column("skipped_by"), Column("skipped_at"), Column("unsure", "flag"), Column("reason")]

    def cells(part: Sequence[int]) -> list[tuple[Any, ...]]:
        return [(each.person, moment(each.at), each.unsure, each.reason) for each in map(skipped.__getitem__, part)]

    chunks = _chunks(project, list(skipped), cells)
    columns = _columns(settings, own)
    return Exported(f"skipped.{known}", MEDIA_TYPES[known], encoded(columns, chunks, known), len(skipped))


def predictions_file(project: "Project", predictions: "Predictions", format: Format) -> Exported:
    """Predictions for all items without a label, in the order of the data.

    A row has the item's id, its cells under their names, the prediction under the name of the target, its
    ``uncertainty``, whether somebody skipped the item (``skipped``), and for classes the probability of each,
    ``p(name)``. For classes, the uncertainty is the probability of all other classes, from 0 to 1. For numbers, it is
    the standard deviation of a label, in the units of the label.

    If a guarantee covers the current model, the predictions are exactly those that were recorded when its check
    started, because the guarantee covers these.

    Args:
        project: The project.
        predictions: Predictions of the model for all items of the project, in their order.
        format: One of :data:`~suffice.tables.table_formats.FORMATS`; :mod:`suffice.tables.file_writer` describes how
            text is written to a CSV.

    Raises:
        InvalidValueError: The format is not known, or the predictions are not those of the project's items.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    known, settings = checked_format(format), project.settings
    predictions = guaranteed_predictions(project, predictions)
    with project.lock:
        told = {answer.item for answer in project.state().answers() if answer.label is not None}
        skipped = {each.item for each in project.state().skipped()}
    own = [Column("uncertainty", "number"), Column("skipped", "flag")]
    own += [Column(f"p({name})", "number") for name in settings.classes]
    columns = _columns(settings, [_target(settings), *own])
    positions = [item for item in range(project.size) if item not in told]
    chunks = _chunks(project, positions, lambda part: _predicted_cells(predictions, skipped, part))
    return Exported(f"predictions.{known}", MEDIA_TYPES[known], encoded(columns, chunks, known), len(positions))


def guaranteed_predictions(project: "Project", predictions: "Predictions") -> "Predictions":
    """The predictions, with those that a guarantee covers in their place if it is about the current model.

    Args:
        project: The project.
        predictions: Predictions of the model for all items of the project, in their order.

    Raises:
        InvalidValueError: They are not those of the project's items.
    """
    if len(predictions.labels) != project.size:
        raise InvalidValueError(
            f"predictions must be those of all {project.size} items of the project; there are {len(predictions.labels)}"
        )
    guarantee = project.guarantee()
    if guarantee is None or not guarantee.about_present_model:
        return predictions
    # As objects, because arrays of texts would have a fixed length.
    draw, labels = guarantee.check.draw, predictions.labels.astype(object)
    labels[draw.before.unlabelled] = draw.predictions
    return predictions._replace(labels=labels)


def checked_predictions_file(project: "Project", format: Format) -> Exported | None:
    """The predictions that the newest guarantee covers if it covers an earlier model; otherwise None.

    A row has the item's id, its cells under their names, the prediction under the name of the target, and whether the
    item was drawn for the check (``in_check``). The items are those without a label when the check started, in the
    order of the data.

    Args:
        project: The project.
        format: One of :data:`~suffice.tables.table_formats.FORMATS`.

    Raises:
        InvalidValueError: The format is not known.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    known, settings = checked_format(format), project.settings
    guarantee = project.guarantee()
    if guarantee is None or guarantee.about_present_model:
        return None
    draw = guarantee.check.draw
    positions = draw.before.unlabelled.tolist()
    predicted, drawn = draw.prediction_of(positions), set(draw.items)
    columns = _columns(settings, [_target(settings), Column("in_check", "flag")])
    chunks = _chunks(project, positions, lambda part: [(predicted[item], item in drawn) for item in part])
    name = f"checked_predictions.{known}"
    return Exported(name, MEDIA_TYPES[known], encoded(columns, chunks, known), len(positions))


def guarantee_file(project: "Project") -> Exported | None:
    """The newest guarantee with its evidence as JSON, or None if there is none.

    It has the statement and all its numbers, the checked model, the items of the check with prediction and label (None
    if it could not be labelled), the name of the file that has the predictions, and all checks of the project.

    Args:
        project: The project.
    """
    with project.lock:
        guarantee, checks = project.guarantee(), project.checks()
    if guarantee is None:
        return None
    check = guarantee.check
    draw, record = check.draw, check.record
    predicted, ids = draw.prediction_of(draw.items), project.items(draw.items)
    content = {
        "project": project.settings.name,
        **guarantee.as_dict(),
        "sentences": str(guarantee),
        "predictions_in": "predictions" if guarantee.about_present_model else "checked_predictions",
        "covers": {
            "items_of_project": draw.before.size,
            "items_added_later": project.size - draw.before.size,
            "unlabelled_items": len(draw.before.unlabelled),
            "classes": list(draw.classes),
        },
        "check_items": [
            {"item": item, "id": each.id, "prediction": predicted[item], "label": record.labels.get(item)}
            for item, each in zip(draw.items, ids, strict=True)
        ],
        "checks": [
            {
                "number": each.number,
                "state": each.state,
                "started_by": each.draw.person,
                "started_at": moment(each.draw.at),
                "size": each.record.size,
                "pool": each.record.pool,
                "alpha": each.record.alpha_spent,
                "statement": None if each.guarantee is None else str(each.guarantee),
            }
            for each in checks
        ],
    }
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2)
    return Exported("guarantee.json", "application/json", f"{text}\n".encode(), 1)


def _target(settings: "Settings") -> Column:
    return Column(settings.target, "text" if settings.task == "classification" else "number")


def _columns(settings: "Settings", own: Sequence[Column]) -> list[Column]:
    """The id, the cells, and added columns. An added column is renamed if a cell has the same name."""
    cells = distinct(settings.columns)
    names = distinct(["id", *(column.name for column in own)], taken=cells)
    renamed = [Column(name, column.kind) for name, column in zip(names[1:], own, strict=True)]
    return [Column(names[0]), *map(Column, cells), *renamed]


def _chunks(
    project: "Project", positions: Sequence[int], own: Callable[[Sequence[int]], Sequence[tuple[Cell, ...]]]
) -> Iterator[Rows]:
    """Rows of some items: their names, their cells, and the added columns."""
    for start in range(0, len(positions), _CHUNK):
        part = positions[start : start + _CHUNK]
        yield [(*row, *cells) for row, cells in zip(project.rows(part), own(part), strict=True)]


def _labelled_cells(labelled: LabelledItem) -> tuple[Cell, ...]:
    said = [opinion.label for opinion in labelled.opinions]
    agreed, usual = None if len(said) < 2 else len(set(said)) == 1, majority_of(said)
    return (
        labelled.label,
        labelled.person,
        moment(labelled.at),
        labelled.corrected,
        len(said),
        agreed,
        labelled.random,
        labelled.saw_prediction,
        labelled.confirmed,
        usual,
        json.dumps({opinion.person: opinion.label for opinion in labelled.opinions}, ensure_ascii=False),
    )


def _predicted_cells(
    predictions: "Predictions", skipped: set[int], positions: Sequence[int]
) -> Sequence[tuple[Cell, ...]]:
    """Cells of the predictions for some items."""
    at = np.asarray(positions, dtype=np.intp)
    labels, uncertainty = predictions.labels[at], predictions.uncertainty[at]
    shares = [] if predictions.probabilities is None else list(predictions.probabilities[at].T)
    columns: list[Sequence[Cell]] = [
        finite_cells(labels),
        finite_cells(uncertainty),
        [item in skipped for item in positions],
    ]
    return list(zip(*columns, *map(finite_cells, shares), strict=True))


# Names of the tags in the labelling configuration of Label Studio: the item and the label.
_ITEM, _LABEL = "item", "label"


def label_studio_file(project: "Project", predictions: "Predictions | None" = None) -> Exported:
    """All items as tasks of Label Studio: labels are annotations, and predictions are pre-annotations.

    A task has the cells of the item under ``data``, and its id as ``item_id``; the cells of a table are together under
    ``cells``. Each opinion is an annotation. A correction is an annotation too, with ``ground_truth``. The names of the
    tags are those of :func:`label_studio_configuration`, with which the file can be imported.

    Args:
        project: The project.
        predictions: Predictions for all items; left out if there is no model. They are added to items without a label.
    """
    settings = project.settings
    with project.lock:
        labelled = {each.item: each for each in project.state().labelled()}
    tasks: list[dict[str, Any]] = []
    for start in range(0, project.size, _CHUNK):
        part = range(start, min(project.size, start + _CHUNK))
        for item, row in zip(part, project.rows(part), strict=True):
            task: dict[str, Any] = {"data": _data(settings, row)}
            found = labelled.get(item)
            if found is not None:
                given = [(each.person, each.label, each.at, False) for each in found.opinions]
                given += [(found.person, found.label, found.at, True)] if found.corrected else []
                task["annotations"] = [
                    _result_of(label) | {"created_username": who, "created_at": moment(at), "ground_truth": truth}
                    for who, label, at, truth in given
                ]
            elif predictions is not None:
                doubt = float(predictions.uncertainty[item])
                score = {"score": 1.0 - doubt} if settings.classes else {}
                label = predictions.labels[item].item()
                task["predictions"] = [{"model_version": settings.model, **_result_of(label), **score}]
            tasks.append(task)
    text = json.dumps(tasks, ensure_ascii=False, allow_nan=False, indent=1)
    content = text.encode("utf-8", "backslashreplace")
    return Exported("label-studio.json", "application/json", content, len(tasks))


def _data(settings: "Settings", row: tuple[str, ...]) -> dict[str, Any]:
    cells = dict(zip(settings.columns, row[1:], strict=True))
    if settings.main is None:
        return {"item_id": row[0], "cells": cells}
    names = distinct(settings.columns, taken=["item_id"])
    return {"item_id": row[0], **dict(zip(names, row[1:], strict=True))}


def _result_of(label: Any) -> dict[str, Any]:
    kind, value = ("number", {"number": label}) if isinstance(label, float) else ("choices", {"choices": [label]})
    return {"result": [{"from_name": _LABEL, "to_name": _ITEM, "type": kind, "value": value}]}


def label_studio_configuration(settings: "Settings") -> Exported:
    """The labelling configuration of Label Studio for :func:`label_studio_file`.

    Args:
        settings: Settings of the project.

    Examples:
        >>> from suffice.project.settings import Settings
        >>> about = Settings("p", "classification", ("a", "b"), "kind", "text", ("body",), "body", "logistic", {})
        >>> print(label_studio_configuration(about).content.decode(), end="")
        <View>
          <Text name="item" value="$body"/>
          <Choices name="label" toName="item" choice="single">
            <Choice value="a"/>
            <Choice value="b"/>
          </Choices>
        </View>
    """
    column = (
        "cells"
        if settings.main is None
        else distinct(settings.columns, ["item_id"])[settings.columns.index(settings.main)]
    )
    tag = {"table": "Table", "text": "Text", "image": "Image"}[settings.shown if settings.main is not None else "table"]
    lines = ["<View>", f"  <{tag} name={quoteattr(_ITEM)} value={quoteattr(f'${column}')}/>"]
    if settings.classes:
        lines.append(f'  <Choices name="{_LABEL}" toName="{_ITEM}" choice="single">')
        lines += [f"    <Choice value={quoteattr(name)}/>" for name in settings.classes]
        lines.append("  </Choices>")
    else:
        lines.append(f'  <Number name="{_LABEL}" toName="{_ITEM}"/>')
    content = "\n".join([*lines, "</View>", ""]).encode("utf-8", "backslashreplace")
    return Exported("label-studio.xml", "application/xml", content, 1)


def write_dataset(project: "Project", folder: Path) -> int:
    """Write the labels as a data set of Hugging Face, which ``datasets.load_from_disk`` reads; return their number.

    The columns are those of :func:`suffice.project.exported_files.labels_file`. A class is a ``ClassLabel``.

    Args:
        project: The project.
        folder: Folder for the data set.

    Raises:
        SufficeError: The package datasets is not installed.
    """
    try:
        datasets = import_module("datasets")
    except ImportError:
        raise SufficeError(
            "writing a data set of Hugging Face needs the package datasets; install it with: pip install datasets"
        ) from None
    columns, rows = label_columns(project.settings), [row for part in label_rows(project) for row in part]
    kinds = {"text": "string", "number": "float64", "count": "int64", "flag": "bool"}
    features = {column.name: datasets.Value(kinds[column.kind]) for column in columns}
    if project.settings.classes:
        target = columns[1 + len(project.settings.columns)].name
        features[target] = datasets.ClassLabel(names=list(project.settings.classes))
    values = zip(*rows, strict=True) if rows else ((),) * len(columns)
    table = {column.name: list(cells) for column, cells in zip(columns, values, strict=True)}
    datasets.Dataset.from_dict(table, features=datasets.Features(features)).save_to_disk(str(folder))
    return len(rows)
