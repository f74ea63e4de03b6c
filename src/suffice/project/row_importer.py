"""Import of labels, predictions and new rows into a project."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.files import digest_of
from suffice.project.events import Draft, EventKind, checked_person, checked_request
from suffice.project.journal import ConflictError, ProjectJournal
from suffice.project.prediction_log import prediction_data, predictions_of
from suffice.project.project_contents import ProjectContents
from suffice.project.state import ProjectState
from suffice.tables.table_columns import is_path

if TYPE_CHECKING:
    from suffice.project.incoming_rows import AddReport, Conflicts, ImportReport, MatchBy


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
        request: str | None = None,
    ) -> "AddReport":
        """Add rows to the project, and return a report; see :meth:`suffice.project.Project.add_items`."""
        from suffice.project.incoming_rows import AddReport, added_items, existing_rows_error

        journal = self._journal
        message = self._message(data, person, request, check=check, what="items", id=id)
        if (earlier := self._earlier_reply(message)) is not None:
            return AddReport.repeated_from(earlier)
        name, first, classes = message.person, journal.size, journal.settings.classes
        source, items = added_items(self._contents, data, id=id, features=features)
        digest = {}
        if journal.settings.checked is not None and is_path(data) and Path(data).is_file():
            # A statement names the files that were checked.
            digest = {"digest": digest_of(Path(data))}
        if tell is not None:
            for note in items.notes:
                tell(note)

        def decide(state: ProjectState, positions: Mapping[str, int]) -> tuple[list[Draft], AddReport]:
            if (event := journal.earlier_event(state, message)) is not None:
                return [], AddReport.repeated_from(event.data["reply"])
            if state.labels.size != first:
                raise ConflictError("somebody else has added items in this moment; try again")
            journal.require_classes(classes)
            if (error := existing_rows_error(state, items, positions)) is not None:
                raise error
            n, settings = len(items), journal.settings
            guaranteed = state.guarantee(settings.using(state.model).model) is not None
            report = AddReport(n, n, len(items.labels), first + (0 if check else n), guaranteed, written=not check)
            numbers = [label for label in items.labels.values() if isinstance(label, float)]
            outside = sum(map(settings.outside_range, numbers))
            report = replace(report, notes=tuple(items.notes), outside_range=outside)
            if check:
                return [], report
            about = {"first": first, "count": n, "source": source, **digest}
            labels = [
                Draft(EventKind.labelled, source, first + k, {"label": label}) for k, label in items.labels.items()
            ]
            return [Draft(EventKind.items_added, name, data=about), *labels, *_receipt(message, report)], report

        return journal.add_items(items, decide)

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
        request: str | None = None,
    ) -> "ImportReport":
        """Import labels from a table; see :meth:`suffice.project.Project.import_labels`."""
        from suffice.project.incoming_rows import ImportReport, label_drafts, matched_rows

        columns = {"label": label, "id": id, "by": by}
        message = self._message(data, person, request, check=check, what="labels", conflicts=conflicts, **columns)
        if (earlier := self._earlier_reply(message)) is not None:
            return ImportReport.repeated_from(earlier)
        name, classes = message.person, self._journal.settings.classes
        rows = matched_rows(self._contents, data, value=label, by=by, key=id)

        def decide(state: ProjectState, _: float) -> "tuple[list[Draft], ImportReport]":
            if (event := self._journal.earlier_event(state, message)) is not None:
                return [], ImportReport.repeated_from(event.data["reply"])
            self._journal.require_classes(classes)
            drafts, report = label_drafts(state, rows, name, conflicts)
            report = replace(report, written=bool(drafts) and not check)
            return [] if check else [*drafts, *_receipt(message, report)], report

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
        request: str | None = None,
    ) -> "ImportReport":
        """Import predictions of another model; see :meth:`suffice.project.Project.import_predictions`."""
        from suffice.project.incoming_rows import ImportReport, matched_rows, with_conflicts

        columns = {"prediction": prediction, "id": id, "by": by, "probability": probability, "source": source}
        message = self._message(data, person, request, check=check, what="predictions", **columns)
        if (earlier := self._earlier_reply(message)) is not None:
            return ImportReport.repeated_from(earlier)
        name, classes = message.person, self._journal.settings.classes
        rows = matched_rows(self._contents, data, value=prediction, by=by, key=id, probability=probability)
        source_name = source or (Path(data).name if isinstance(data, str | os.PathLike) else "predictions")
        content = prediction_data(rows.values, rows.probabilities, classes, source_name)
        predictions = dict(predictions_of(content))

        def decide(state: ProjectState, _: float) -> "tuple[list[Draft], ImportReport]":
            if (event := self._journal.earlier_event(state, message)) is not None:
                return [], ImportReport.repeated_from(event.data["reply"])
            self._journal.require_classes(classes)
            before = {item: state.predictions.imported(item) for item in predictions}
            new = sum(before[item] != predicted for item, predicted in predictions.items())
            others = {
                item: (earlier.label, predictions[item].label)
                for item, earlier in before.items()
                if earlier is not None and earlier.label != predictions[item].label
            }
            counts: dict[str, Any] = {
                "predicted": new,
                "same": len(predictions) - new,
                "written": new > 0 and not check,
            }
            report = replace(with_conflicts(rows, others), conflicts="replace", **counts)
            drafts = [Draft(EventKind.predictions_imported, name, data=content)] if report.written else []
            return [] if check else [*drafts, *_receipt(message, report)], report

        return self._journal.write(decide)[1]

    def _message(self, data: Any, person: str, request: str | None, *, check: bool, **options: Any) -> Draft:
        """The message by which rows are received; without a ``request`` it is never found again.

        A trial run writes nothing, and so its request is not remembered.
        """
        from suffice.project.incoming_rows import rows_digest

        name, sent = checked_person(person), None if check else checked_request(request)
        content = {} if sent is None else {"digest": rows_digest(data), "options": options}
        return Draft(EventKind.rows_received, name, data=content, request=sent)

    def _earlier_reply(self, message: Draft) -> Mapping[str, Any] | None:
        """The reply to an earlier message with the same name, or None."""
        if message.request is None:
            return None
        with self._journal.lock:
            event = self._journal.earlier_event(self._journal.state(), message)
        return None if event is None else event.data["reply"]


def _receipt(message: Draft, report: "ImportReport | AddReport") -> list[Draft]:
    """The event by which a message with a name is recognised, with the reply to it; none without a name."""
    if message.request is None:
        return []
    return [replace(message, data={**message.data, "reply": report.as_dict()})]
