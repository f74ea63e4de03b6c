"""Import of labels, predictions and new rows into a project."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import InvalidValueError
from suffice.files import digest_of
from suffice.project.events import Draft, EventKind, checked_person
from suffice.project.journal import ConflictError, ProjectJournal
from suffice.project.prediction_log import prediction_data, predictions_of
from suffice.project.project_contents import ProjectContents
from suffice.project.state import ProjectState
from suffice.tables.table_columns import is_path

if TYPE_CHECKING:
    from suffice.project.incoming_rows import Conflicts, ImportReport, MatchBy


class RowImporter:
    """Reads rows of files and tables, and writes them to the journal: all rows of a call or none.

    Args:
        journal: Journal of the project.
        contents: Contents of the project.
    """

    def __init__(self, journal: ProjectJournal, contents: ProjectContents) -> None:
        self._journal, self._contents = journal, contents

    def add_items(  # noqa: PLR0913 - the options of ``suffice add``, by keyword
        self,
        data: Any,
        *,
        person: str,
        id: str | None = None,
        features: Any = None,
        check: bool = False,
        tell: Callable[[str], None] | None = None,
    ) -> int:
        """Add rows to the project, and return how many; see :meth:`suffice.project.Project.add_items`."""
        from suffice.project.incoming_rows import added_items

        journal = self._journal
        name, first, classes = checked_person(person), journal.size, journal.settings.classes
        source, items = added_items(self._contents, data, id=id, features=features)
        digest = {}
        if journal.settings.checked is not None and is_path(data) and Path(data).is_file():
            # A statement names the files that were checked.
            digest = {"digest": digest_of(Path(data))}
        if tell is not None:
            for note in items.notes:
                tell(note)

        def decide(state: ProjectState, existing_ids: set[str]) -> list[Draft]:
            if state.labels.size != first:
                raise ConflictError("somebody else has added items in this moment; try again")
            journal.require_classes(classes)
            repeated_ids = existing_ids & set(items.ids)
            if repeated_ids:
                raise InvalidValueError(
                    f"the project has an item {min(repeated_ids)!r} already; each item must have a different name"
                )
            if check:
                return []
            about = {"first": first, "count": len(items), "source": source, **digest}
            labels = [
                Draft(EventKind.labelled, source, first + k, {"label": label}) for k, label in items.labels.items()
            ]
            return [Draft(EventKind.items_added, name, data=about), *labels]

        journal.add_items(items, decide)
        return len(items)

    def import_labels(  # noqa: PLR0913 - the options of ``suffice import``, by keyword
        self,
        data: Any,
        *,
        label: str,
        person: str,
        id: str | None = None,
        by: "MatchBy | None" = None,
        conflicts: "Conflicts" = "keep",
        check: bool = False,
    ) -> "ImportReport":
        """Import labels from a table; see :meth:`suffice.project.Project.import_labels`."""
        from suffice.project.incoming_rows import label_drafts, matched_rows

        name, classes = checked_person(person), self._journal.settings.classes
        rows = matched_rows(self._contents, data, value=label, by=by, key=id)

        def decide(state: ProjectState, _: float) -> "tuple[list[Draft], ImportReport]":
            self._journal.require_classes(classes)
            drafts, report = label_drafts(state, rows, name, conflicts)
            return [] if check else drafts, replace(report, written=bool(drafts) and not check)

        return self._journal.write(decide)[1]

    def import_predictions(  # noqa: PLR0913 - as above
        self,
        data: Any,
        *,
        prediction: str,
        person: str,
        id: str | None = None,
        by: "MatchBy | None" = None,
        probability: str | None = None,
        source: str | None = None,
        check: bool = False,
    ) -> "ImportReport":
        """Import predictions of another model; see :meth:`suffice.project.Project.import_predictions`."""
        from suffice.project.incoming_rows import matched_rows

        name, classes = checked_person(person), self._journal.settings.classes
        rows = matched_rows(self._contents, data, value=prediction, by=by, key=id, probability=probability)
        source_name = source or (Path(data).name if isinstance(data, str | os.PathLike) else "predictions")
        content = prediction_data(rows.values, rows.probabilities, classes, source_name)
        predictions = dict(predictions_of(content))

        def decide(state: ProjectState, _: float) -> "tuple[list[Draft], ImportReport]":
            self._journal.require_classes(classes)
            new = sum(state.predictions.imported(item) != predicted for item, predicted in predictions.items())
            same = len(predictions) - new
            report = replace(rows.report, predicted=new, same=same, written=new > 0 and not check)
            drafts = [Draft(EventKind.predictions_imported, name, data=content)] if report.written else []
            return drafts, report

        return self._journal.write(decide)[1]
