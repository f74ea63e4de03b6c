"""Looking: the project, where it stands, its labels, its items and their images."""

from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from fastapi import Path as InPath
from starlette.exceptions import HTTPException
from starlette.responses import Response

import suffice
from suffice.session.summary import status
from suffice.web.desk import Context, cells_of, documented, image_url
from suffice.web.label_table import TableQuery, label_table
from suffice.web.schemas import (
    LAST_ITEM,
    MEANINGS,
    MOST_ROWS,
    ItemAnswer,
    LabelsAnswer,
    Only,
    ProjectAnswer,
    StatusAnswer,
)

router = APIRouter(prefix="/api", tags=["reading"])

#: What an image may be, by the end of its name. No SVG: that can hold scripts.
IMAGE_TYPES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
}
_LARGEST_IMAGE: Final = 64 << 20
ItemInPath = Annotated[int, InPath(ge=0, le=LAST_ITEM, description=MEANINGS["item"])]


@router.get("/project", responses=documented())
def get_project(context: Context) -> ProjectAnswer:
    """What the project is about; and the value that a page sends as X-Suffice-CSRF with everything that it posts."""
    settings = context.project.settings
    rule = settings.criterion()
    with context.project.lock:
        made = context.project.state().made
    threshold = getattr(rule, "threshold", None)
    return ProjectAnswer(
        name=settings.name,
        task=settings.task,
        classes=list(settings.classes),
        target=settings.target,
        shown=settings.shown,
        columns=list(settings.columns),
        main=settings.main,
        size=context.project.size,
        model=settings.model,
        rule=type(rule).__name__,
        threshold=threshold if isinstance(threshold, int | float) else None,
        overlap=settings.overlap,
        source=settings.source,
        made=0.0 if made is None else made.at,
        notes=list(settings.notes),
        version=suffice.__version__,
        csrf=context.access.csrf,
    )


@router.get("/status", responses=documented())
def get_status(context: Context) -> StatusAnswer:
    """Where the labelling and the learning stand, in numbers and in words."""
    told: dict[str, Any] = status(context.project, context.background.learning_status)
    return StatusAnswer(**told)


@router.get("/labels", responses=documented())
def get_labels(
    context: Context,
    offset: Annotated[int, Query(ge=0, le=LAST_ITEM, description=MEANINGS["offset"])] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS, description=MEANINGS["limit"])] = 50,
    search: Annotated[str, Query(max_length=200, description=MEANINGS["search"])] = "",
    only: Annotated[Only, Query(description=MEANINGS["only"])] = "all",
) -> LabelsAnswer:
    """The labels and skips, newest first; those alone in which a text occurs, where one is searched for."""
    return label_table(context.project, TableQuery(offset, limit, search, only))


@router.get("/items/{item}", responses=documented(404))
def get_item(item: ItemInPath, context: Context) -> ItemAnswer:
    """One item."""
    found = context.project.item(context.require_item(item))
    return ItemAnswer(item=found.position, id=found.id, cells=cells_of(found), image=image_url(found))


@router.get(
    "/items/{item}/image",
    response_class=Response,
    responses={200: {"content": {"image/*": {"schema": {"type": "string", "format": "binary"}}}}, **documented(404)},
)
def get_image(item: ItemInPath, context: Context) -> Response:
    """The image of an item, from the folder of the project's images and nowhere else."""
    found = context.project.item(context.require_item(item))
    if not found.image or not context.project.settings.root:
        raise HTTPException(404, f"item {item} has no image")
    file, media_type = image_file(Path(context.project.settings.root), found.image)
    try:
        if file.stat().st_size > _LARGEST_IMAGE:
            raise _no_image(found.image, f"it is larger than {_LARGEST_IMAGE >> 20} MiB")
        return Response(file.read_bytes(), media_type=media_type)
    except OSError as error:
        raise _no_image(found.image, error.strerror or "it cannot be read") from None


def image_file(root: Path, image: str) -> tuple[Path, str]:
    """The file of an image and its type.

    Args:
        root: The folder of the images.
        image: Where the image is in it.

    Raises:
        HTTPException: 404, it is not there, lies outside the folder, or is not an image.
    """
    try:
        folder = root.resolve(strict=True)
        file = (folder / image).resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        raise _no_image(image, "the file is not there any more") from None
    media_type = IMAGE_TYPES.get(file.suffix.lower())
    if not file.is_relative_to(folder):
        raise _no_image(image, "it lies outside the folder of the project's images")
    if media_type is None or not file.is_file():
        raise _no_image(image, f"it is none of {', '.join(IMAGE_TYPES)}")
    return file, media_type


def _no_image(image: str, reason: str) -> HTTPException:
    return HTTPException(404, f"the image {image[:200]!r} cannot be shown: {reason}")
