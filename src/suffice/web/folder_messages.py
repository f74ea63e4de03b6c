"""Requests and responses of a server of a folder of projects."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from suffice.project.column_roles import Role
from suffice.project.events import LONGEST_CLASS, MOST_CLASSES, checked_person
from suffice.project.project_folder import LineState
from suffice.project.uploaded_files import ProjectWish
from suffice.web.http_messages import MEANINGS, Text

_UploadId = Annotated[str, Field(min_length=1, max_length=100, description=MEANINGS["upload"])]


class ProjectSent(BaseModel):
    """The project that somebody wants from an uploaded file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    upload: _UploadId
    name: Annotated[str, Field(min_length=1, max_length=200, description=MEANINGS["name"])]
    roles: Annotated[dict[str, Role], Field(description=MEANINGS["roles"])] = {}
    classes: Annotated[
        list[Annotated[str, Field(max_length=LONGEST_CLASS)]],
        Field(max_length=MOST_CLASSES, description=MEANINGS["new_classes"]),
    ] = []
    numbers: Annotated[bool, Field(description=MEANINGS["numbers"])] = False
    target: Annotated[str, Field(max_length=200, description=MEANINGS["target"])] = ""
    person: Annotated[
        str | None,
        Field(min_length=1, max_length=64, description=MEANINGS["person"]),
        AfterValidator(lambda name: None if name is None else checked_person(name)),
    ] = None

    def wish(self) -> ProjectWish:
        """The same without the upload."""
        sent: dict[str, Any] = self.model_dump(exclude={"upload", "classes"})
        return ProjectWish(**sent, classes=tuple(self.classes))


class UploadSent(BaseModel):
    """An upload that is not needed any more."""

    model_config = ConfigDict(extra="forbid", strict=True)

    upload: _UploadId


class _FolderResponse(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ProjectLineAnswer(_FolderResponse):
    """A project of the folder in one line.

    ``path`` is its address, relative to that of the list. What a person may not see is null or empty: of a project with
    accounts, only its folder is listed for people who have not signed in there. ``done`` says that no more labels are
    needed.
    """

    folder: Text
    path: str
    state: LineState
    name: Text
    kind: Text
    n_labelled: int | None
    size: int | None
    last: float | None
    statement: Text
    done: bool


class FolderAnswer(_FolderResponse):
    """The projects of the folder, and the value that a page sends as X-Suffice-CSRF with every POST request.

    ``refusal`` says why no project can be created; it is empty if one can. ``kinds`` says which files can be uploaded,
    of ``largest`` bytes at most.
    """

    folder: Text
    projects: list[ProjectLineAnswer]
    refusal: Text
    kinds: str
    largest: int
    csrf: str
    version: str


class ColumnAnswer(_FolderResponse):
    """A column of an uploaded table: its guessed role and why, and what labels are if it holds them.

    ``classes`` is empty if labels are numbers. ``problem`` says why the column cannot hold the labels.
    """

    name: Text
    role: Role
    reason: Text
    classes: list[Text]
    labels: int
    problem: Text


class UploadAnswer(_FolderResponse):
    """What an uploaded file contains; ``name`` is suggested for the project."""

    upload: str
    name: Text
    file: Text
    kind: Literal["table", "images"]
    size: int
    columns: list[ColumnAnswer]
    rows: list[list[Text]]
    images: list[Text]
    notes: list[Text]


class UploadProgressAnswer(_FolderResponse):
    """What is being done: ``done`` of ``total``, 0 if that is not known. ``folder`` is the project once it is made."""

    what: str
    done: int
    total: int
    folder: Text | None


class CreatedAnswer(_FolderResponse):
    """The project that was created: its folder, and its address relative to that of the list."""

    folder: Text
    path: str


class AnswerPlanAnswer(_FolderResponse):
    """How many answers a check that is planned for ``planned_for`` takes if the share ``expected`` is wrong.

    One check of ten ends within ``low`` answers, half within ``median``, nine of ten within ``high``; null if a proof
    is not that likely. ``fixed`` is the size of a check of fixed size that succeeds with a probability of 80 %.
    """

    at_most: float
    expected: float
    planned_for: float
    pool: int
    confidence: float
    alpha: float
    corrected: bool
    fewest: int
    low: int | None
    median: int | None
    high: int | None
    fixed: int | None


class SampleBoundsAnswer(_FolderResponse):
    """What a random sample shows about all predictions, and about those that were not checked."""

    pool: int
    checked: int
    wrong: int
    confidence: float
    at_most: float
    at_least: float
    remaining_at_most: float | None


class BudgetAnswer(_FolderResponse):
    """What a sample shows, how many answers a check takes, for other shares too, and both in sentences."""

    sample: SampleBoundsAnswer | None
    plan: AnswerPlanAnswer | None
    table: list[AnswerPlanAnswer]
    sentences: list[Text]


class DoneAnswer(_FolderResponse):
    """The request was carried out."""

    ok: bool
