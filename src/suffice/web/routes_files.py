"""Files to take home: labels, predictions, the report."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import HTMLResponse, Response

from suffice.errors import SufficeError
from suffice.session.database import StorageError
from suffice.session.export import Exported, labels_file, predictions_file
from suffice.session.formats import MEDIA_TYPES
from suffice.session.project import ConflictError
from suffice.web.desk import Context, documented
from suffice.web.headers import REPORT_POLICY
from suffice.web.schemas import MEANINGS, Format

router = APIRouter(prefix="/api", tags=["files"])

FormatInQuery = Annotated[Format, Query(description=MEANINGS["format"])]
# A file is for keeps: so long it waits for the model to learn the last labels.
_PATIENCE = 15.0
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file.",
        "content": {
            kind.partition(";")[0]: {"schema": {"type": "string", "format": "binary"}} for kind in MEDIA_TYPES.values()
        },
    }
}


@router.get("/export/labels", response_class=Response, responses=_FILE | documented(501))
def export_labels(context: Context, format: FormatInQuery = "csv") -> Response:
    """Every item with a label, in the order of labelling."""
    return _attached(labels_file(context.project, format))


@router.get("/export/predictions", response_class=Response, responses=_FILE | documented(409, 501))
def export_predictions(context: Context, format: FormatInQuery = "csv") -> Response:
    """What the model says of every item without a label, and how sure it is."""
    context.settle(_PATIENCE)
    try:
        predictions = context.background.predictions()
    except StorageError:
        raise
    except SufficeError as error:
        # The model has not begun, or cannot learn: more labels help, the same request does not.
        raise ConflictError(str(error)) from None
    return _attached(predictions_file(context.project, predictions, format))


@router.get("/report", response_class=HTMLResponse, responses=documented(409, 501))
def get_report(context: Context) -> HTMLResponse:
    """The report: what was labelled, why it stopped or goes on, what is guaranteed; a page that holds everything."""
    from suffice.report.labelling import report_page

    context.settle(_PATIENCE)
    page = report_page(context.project, context.background.learning_status)
    # A cell may hold half of a letter.
    content = page.encode("utf-8", "replace")
    return HTMLResponse(content, headers={"Content-Security-Policy": REPORT_POLICY})


def _attached(file: Exported) -> Response:
    name = re.sub(r"[^A-Za-z0-9._-]", "_", file.name)
    return Response(
        file.content, media_type=file.media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
