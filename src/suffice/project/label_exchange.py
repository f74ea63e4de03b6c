"""Labels for other programs: tasks of Label Studio, and data sets of Hugging Face."""

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import quoteattr

from suffice.errors import SufficeError
from suffice.project.events import moment
from suffice.project.exported_files import Exported, label_columns, label_rows
from suffice.tables.file_writer import distinct

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project
    from suffice.project.learning_status import Predictions
    from suffice.project.settings import Settings

# Names of the tags in the labelling configuration of Label Studio: what is labelled, and the label.
_ITEM, _LABEL = "item", "label"
_CHUNK: Final = 5000


def label_studio_file(project: "Project", predictions: "Predictions | None" = None) -> Exported:
    """All items as tasks of Label Studio: labels are annotations, and predictions are pre-annotations.

    A task has the cells of the item under ``data``, and its id as ``item_id``; the cells of a table are together under
    ``cells``. Each opinion is an annotation. A correction is an annotation too, with ``ground_truth``. The names of the
    tags are those of :func:`label_studio_configuration`, with which the file can be imported.

    Args:
        project: The project.
        predictions: What the model says of all items; left out if there is no model. Items without a label get them.
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
    """The labelling configuration of Label Studio that goes with :func:`label_studio_file`.

    Args:
        settings: What the project is about.

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
        folder: Where the data set goes.

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
