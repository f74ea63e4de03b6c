"""Requests and responses: pydantic models with strict and bounded input, errors as HTTP status and message.

Every response has the security headers.
"""

import json
import math
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from suffice.errors import InvalidTypeError, InvalidValueError, MissingExtraError, SufficeError
from suffice.project.accounts import NotAllowedError, Role
from suffice.project.events import checked_person, checked_request, shown
from suffice.project.label_writer import LONGEST_CORRECTION
from suffice.project.labelling_project import ConflictError
from suffice.project.settings import FEWEST_OPINIONS, MOST_OPINIONS
from suffice.project.storage import StorageError, StorageFullError
from suffice.project.unmatched_ids import NoMatchError
from suffice.report.html_page import rendered
from suffice.session.goals import TargetOf
from suffice.session.standing_stop import Cause
from suffice.tables.table_formats import FINAL_FORMATS, FORMATS, one_of

#: Maximal number of items per request.
MOST_ITEMS: Final = 20
#: Maximal number of rows of the table of labels per request.
MOST_ROWS: Final = 200
#: Maximal number of characters of a cell in a response.
LONGEST_CELL: Final = 20_000
#: Largest number of an item.
LAST_ITEM: Final = 2**31
#: Requirements of each field of a request; also used in error messages.
MEANINGS: Final = {
    "person": "a name of 1 to 64 characters without control characters",
    "n": f"a whole number from 1 to {MOST_ITEMS}",
    "item": f"the number of an item, a whole number from 0 to {LAST_ITEM}",
    "label": "the name of a class (up to 1000 characters) or a finite number",
    "model": "the name of a model, one of those that GET /api/project lists",
    "classes": "the names of 2 to 200 classes, in the order of their keys",
    "moved": "current names of classes, each with the name that its labels get",
    "before": "the names of the current classes, in order",
    "size": "the number of items to check, a whole number of at least 1",
    "share": "a number above 0 and below 1",
    "tolerance": "a number of at least 0, in units of the target",
    "confidence": "a number above 0 and below 1, such as 0.95",
    "predicted_as_found": "whether items predicted as the class count as found, for a check of its recall",
    "recall_of": "the name of a class (up to 1000 characters)",
    "precision_of": "the name of a class (up to 1000 characters)",
    "unlabelable_as": "wrong or excluded",
    "request": "1 to 100 characters without control characters, new for each thing to do",
    "offset": f"a whole number from 0 to {LAST_ITEM}",
    "limit": f"a whole number from 1 to {MOST_ROWS}",
    "search": "a text of up to 200 characters",
    "id": "the id of an item, 1 to 500 characters",
    "name": "the name of the project, 1 to 200 characters",
    "guidelines": "how to label, in Markdown, up to 20,000 characters",
    "descriptions": "a text of up to 500 characters for each class, by its name",
    "cost": "a number above 0",
    "at_most": "the target error: for classes a share above 0 and below 1, for numbers above 0; null for none",
    "of": "what at_most is about: rest, the items without a label; or all, all final labels",
    "annotator_error": "for all: the share of the labels by people that may be wrong, at least 0 and below at_most",
    "correction_cost": "for all: the cost of an answer in a check, relative to a label, above 0",
    "unit": "for numbers: the unit of the label, up to 40 characters",
    "lowest": "for numbers: the smallest plausible label; null for no limit",
    "highest": "for numbers: the largest plausible label; null for no limit",
    "outside_range": "whether the person has confirmed a number outside of the plausible range",
    "overlap": "the share of the items that several people label, from 0 to 1",
    "opinions": f"how many people label each of these items, {FEWEST_OPINIONS} to {MOST_OPINIONS}",
    "may_miss": "classes that may be missed: they do not hold a stop back while they are rare and have few labels",
    "reason": "a text of up to 500 characters without control characters",
    "only": "all, skipped, unsure, disagreed, unresolved or corrected",
    "saw_prediction": "whether the person saw a prediction for the item before answering",
    "correction": "what is right, if the label says that a prediction made elsewhere is wrong",
    "rows": "at least one object with an id and a label; a prediction may have a probability from 0 to 1",
    "new_rows": "at least one object with a cell for each column of the project",
    "kind": "labels or predictions",
    "conflicts": "keep, replace or opinion: what happens where an item has another label",
    "source": "what predictions are called when they are shown, up to 200 characters",
    "check": "true to write nothing and to report what would happen",
    "most": f"a whole number from 1 to {MOST_ROWS}",
    "format": one_of(FORMATS),
    "final_format": one_of(FINAL_FORMATS),
    "bom": "whether a CSV begins with a byte order mark, by which Excel recognises UTF-8",
    "password": "a text of up to 1000 characters",
    "upload": "the upload of a response of POST /api/uploads",
    "file": "the name of the file, up to 500 characters, with its ending",
    "roles": "a role for columns by their names: text, image, id, label, feature or ignored",
    "new_classes": "the names of the classes; empty for those in the column of labels",
    "numbers": "whether labels are numbers",
    "target": "what a label is called, up to 200 characters",
    "number": "the number of an image, a whole number from 0",
    "pool": "the number of predictions from which a check is drawn",
    "prove": "the share of wrong predictions to prove, from 0.005 to below 1; none if left out",
    "expected": "the share of wrong predictions that is expected, from 0 to below 1",
    "corrected": "whether people correct the wrong predictions that a check finds",
    "checked": "how many predictions of a random sample were checked; with wrong",
    "wrong": "how many of the checked ones were wrong",
    "seconds": "the seconds that an answer takes, above 0",
}
# At least one visible character, and no control characters.
_NAME: Final = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
_REASON: Final = r"^[^\x00-\x1f\x7f-\x9f]*$"
_PRINTABLE: Final = r"^[^\x00-\x1f\x7f-\x9f]+$"


def plain(value: Any) -> Any:
    r"""A text that can be encoded: surrogates are replaced by question marks.

    Examples:
        >>> plain("a\ud800b")
        'a?b'
    """
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def finite(value: Any) -> Any:
    """A finite number, or None for NaN and infinity, which JSON cannot represent.

    Examples:
        >>> finite(float("nan")), finite(0.5)
        (None, 0.5)
    """
    return None if isinstance(value, float) and not math.isfinite(value) else value


def whole(value: Any) -> Any:
    """A number as an integer if it has no fractional part, because JSON does not distinguish 3.0 from 3.

    Examples:
        >>> whole(3.0), whole(3.5)
        (3, 3.5)
    """
    return int(value) if isinstance(value, float) and value.is_integer() else value


Person = Annotated[
    str,
    Field(min_length=1, max_length=64, pattern=_NAME, description=MEANINGS["person"], examples=["Ann"]),
    AfterValidator(checked_person),
]
RequestName = Annotated[
    str,
    Field(min_length=1, max_length=100, pattern=_PRINTABLE, description=MEANINGS["request"]),
    AfterValidator(checked_request),
]
ItemNumber = Annotated[
    int, Field(ge=0, le=LAST_ITEM, description=MEANINGS["item"], examples=[0]), BeforeValidator(whole)
]
HowMany = Annotated[int, Field(ge=1, le=MOST_ITEMS, description=MEANINGS["n"]), BeforeValidator(whole)]
GivenLabel = Annotated[
    Annotated[str, Field(max_length=1000)] | Annotated[float, Field(allow_inf_nan=False)],
    Field(description=MEANINGS["label"]),
]
Only = Literal["all", "skipped", "unsure", "disagreed", "unresolved", "corrected"]

Text = Annotated[str, BeforeValidator(plain)]
Number = Annotated[float | None, BeforeValidator(finite)]
ShownLabel = Annotated[str | float | None, BeforeValidator(plain), BeforeValidator(finite)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    person: Person


class NextSent(_Request):
    """A person who asks what to label next."""

    n: HowMany = 1


class UndoSent(_Request):
    """A person who takes back their last label, skip or correction."""

    request: RequestName | None = None


class SkipSent(_Request):
    """A person who cannot or will not label an item, or is unsure of its label; and why, if they say."""

    item: ItemNumber
    reason: Annotated[str, Field(max_length=500, pattern=_REASON, description=MEANINGS["reason"])] = ""
    request: RequestName | None = None


class LabelSent(_Request):
    """A label for an item, or its correction."""

    item: ItemNumber
    label: GivenLabel
    request: RequestName | None = None
    saw_prediction: Annotated[bool, Field(description=MEANINGS["saw_prediction"])] = False
    correction: Annotated[str, Field(max_length=LONGEST_CORRECTION, description=MEANINGS["correction"])] = ""
    outside_range: Annotated[bool, Field(description=MEANINGS["outside_range"])] = False


class ConfirmationSent(_Request):
    """A person who says that the label that counts is right."""

    item: ItemNumber
    request: RequestName | None = None


class ImportedRow(BaseModel):
    """A label or a prediction for the item of an id; a prediction may have a probability."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: Annotated[str, Field(max_length=500, description="the id of an item")]
    label: GivenLabel
    probability: Annotated[float, Field(ge=0.0, le=1.0)] | None = None


class ImportSent(_Request):
    """Labels or predictions for items by their ids."""

    rows: Annotated[list[ImportedRow], Field(min_length=1, description=MEANINGS["rows"])]
    kind: Annotated[Literal["labels", "predictions"], Field(description=MEANINGS["kind"])] = "labels"
    conflicts: Annotated[Literal["keep", "replace", "opinion"], Field(description=MEANINGS["conflicts"])] = "keep"
    source: Annotated[str, Field(max_length=200, description=MEANINGS["source"])] = "predictions"
    check: Annotated[bool, Field(description=MEANINGS["check"])] = False
    request: RequestName | None = None


_CellText = Annotated[str, Field(max_length=20_000)]


class ItemsSent(_Request):
    """Rows to add to the project, each with the columns of the project, and the target where it has a label already."""

    rows: Annotated[list[dict[str, _CellText | float | None]], Field(min_length=1, description=MEANINGS["new_rows"])]
    check: Annotated[bool, Field(description=MEANINGS["check"])] = False
    request: RequestName | None = None


class PredictionSent(_Request):
    """A request for the prediction of an item."""

    item: ItemNumber


class ModelSent(_Request):
    """A person who lets another model learn the labels."""

    model: Annotated[str, Field(max_length=64, description=MEANINGS["model"], examples=["kernel"])]
    request: RequestName | None = None


_ClassNames = list[Annotated[str, Field(max_length=1000)]]


class ClassesSent(_Request):
    """A person who adds, renames, merges, reorders or removes classes.

    A class that is moved to a new name is renamed, one that is moved to another class is merged into it. ``before`` are
    the classes that the person saw: if they are others meanwhile, nothing is changed.
    """

    classes: Annotated[_ClassNames, Field(description=MEANINGS["classes"])]
    moved: Annotated[dict[str, Annotated[str, Field(max_length=1000)]], Field(description=MEANINGS["moved"])] = {}
    before: Annotated[_ClassNames, Field(description=MEANINGS["before"])]
    request: RequestName | None = None


_NULL_MEANS_NONE: Final = ("at_most", "lowest", "highest")


class SettingsSent(_Request):
    """A person who changes settings; those that are left out stay as they are."""

    name: Annotated[str | None, Field(description=MEANINGS["name"])] = None
    guidelines: Annotated[str | None, Field(description=MEANINGS["guidelines"])] = None
    descriptions: Annotated[dict[str, str] | None, Field(description=MEANINGS["descriptions"])] = None
    label_cost: Annotated[float | None, Field(allow_inf_nan=False, description=MEANINGS["cost"])] = None
    mistake_cost: Annotated[float | None, Field(allow_inf_nan=False, description=MEANINGS["cost"])] = None
    at_most: Annotated[float | None, Field(allow_inf_nan=False, description=MEANINGS["at_most"])] = None
    overlap: Annotated[float | None, Field(allow_inf_nan=False, description=MEANINGS["overlap"])] = None
    opinions: Annotated[int | None, Field(description=MEANINGS["opinions"])] = None
    may_miss: Annotated[_ClassNames | None, Field(description=MEANINGS["may_miss"])] = None
    unit: Annotated[str | None, Field(description=MEANINGS["unit"])] = None
    lowest: Annotated[float | None, Field(allow_inf_nan=False, description=MEANINGS["lowest"])] = None
    highest: Annotated[float | None, Field(allow_inf_nan=False, description=MEANINGS["highest"])] = None
    of: Annotated[TargetOf | None, Field(description=MEANINGS["of"])] = None
    annotator_error: Annotated[float | None, Field(allow_inf_nan=False, description=MEANINGS["annotator_error"])] = None
    correction_cost: Annotated[float | None, Field(allow_inf_nan=False, description=MEANINGS["correction_cost"])] = None
    tolerance: Annotated[float | None, Field(allow_inf_nan=False, description=MEANINGS["tolerance"])] = None
    request: RequestName | None = None

    def changes(self) -> dict[str, Any]:
        """The settings that were sent; a wanted error or a limit of null means none."""
        sent = self.model_dump(exclude={"person", "request"}, exclude_unset=True)
        return {name: value for name, value in sent.items() if value is not None or name in _NULL_MEANS_NONE}


_Share = Annotated[float, Field(gt=0.0, lt=1.0, description=MEANINGS["share"])]
_Tolerance = Annotated[float, Field(ge=0.0, allow_inf_nan=False, description=MEANINGS["tolerance"])]
_ClassName = Annotated[str, Field(max_length=1000, description="the name of a class")]


class CheckSent(_Request):
    """A person who starts a check: so many unlabelled items, drawn at random; or, with ``at_most``, until it is proven.

    For classes it guarantees the share of wrong predictions, or the recall or the precision of a class. For numbers it
    guarantees the share of predictions that are off by more than ``tolerance``, or the tolerance that ``share`` of them
    exceed at most. With ``at_most``, the check is planned for the share ``expected`` of wrong predictions: for the
    estimate of the model if it is left out, or half of ``at_most`` if there is none. With ``of`` all, ``at_most`` is a
    share of all final labels; in a project that screens for a class, the share of its items that may be missed. In a
    project with such a goal, what is left out is taken from its settings.
    """

    size: Annotated[int | None, Field(ge=1, le=LAST_ITEM, description=MEANINGS["size"]), BeforeValidator(whole)] = None
    at_most: _Share | None = None
    expected: Annotated[float | None, Field(ge=0.0, lt=1.0, description=MEANINGS["expected"])] = None
    recall_of: _ClassName | None = None
    precision_of: _ClassName | None = None
    tolerance: _Tolerance | None = None
    share: _Share | None = None
    unlabelable_as: Literal["wrong", "excluded"] = "wrong"
    predicted_as_found: Annotated[bool, Field(description=MEANINGS["predicted_as_found"])] = True
    confidence: _Share | None = None
    of: Annotated[TargetOf | None, Field(description=MEANINGS["of"])] = None
    annotator_error: Annotated[float | None, Field(ge=0.0, lt=1.0, description=MEANINGS["annotator_error"])] = None
    request: RequestName | None = None


class AbortSent(_Request):
    """A person who gives the open check up."""

    request: RequestName | None = None


class SignInSent(_Request):
    """A person who signs in."""

    password: Annotated[str, Field(max_length=1000, repr=False, description=MEANINGS["password"])]


class _Response(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Problem(_Response):
    """An error, in a sentence."""

    detail: Text


class ModelAnswer(_Response):
    """A model: its name, and what to call it in a sentence."""

    name: Text
    description: Text


class ModelChoiceAnswer(_Response):
    """Why the project has its model, if it is chosen on the labels; ``next_at`` is null once a check has started."""

    model: Text
    compared_at: int | None
    errors: dict[Text, float]
    next_at: int | None
    sentences: list[Text]


class PresentModelAnswer(ModelAnswer):
    """The current model; ``choice`` is null if a person has chosen it.

    ``reason`` says why it was chosen for the number of columns and classes; empty if it is the usual one, or was named.
    """

    reason: Text
    choice: ModelChoiceAnswer | None


class VisitorAnswer(_Response):
    """The signed-in user: the name of the account, null for the owner, and the permissions."""

    name: Text | None
    role: Role


class CheckedAnswer(_Response):
    """Predictions made elsewhere that the project checks, and how people answer."""

    columns: list[Text]
    answer: Literal["blind", "verdict"]
    probability: Text | None
    group: Text | None
    spans: list[Text] | None


class ProjectAnswer(_Response):
    """The project; ``revision`` is the event that changed it last, as in the status.

    ``account`` is null where the project has no accounts.
    """

    name: Text
    task: Literal["classification", "regression"]
    classes: list[Text]
    target: Text
    shown: Literal["table", "text", "image"]
    columns: list[Text]
    main: Text | None
    size: int
    model: Text
    models: list[ModelAnswer]
    rule: Text
    threshold: Number
    overlap: float
    unit: Text
    lowest: Number
    highest: Number
    opinions: int
    guidelines_html: Text
    descriptions: dict[Text, Text]
    source: Text
    made: float
    revision: int
    notes: list[Text]
    version: str
    csrf: str
    account: VisitorAnswer | None
    checked: CheckedAnswer | None


class SettingChangeAnswer(_Response):
    """A change of settings, with its person and time."""

    person: Text
    at: str
    words: Text


class SettingsAnswer(_Response):
    """The settings that can be changed, and who changed which.

    The costs are null where the rule weighs none, or where the cost of mistakes is given in another way. ``positive``
    is the class that a screening looks for; it cannot be changed.
    """

    name: Text
    guidelines: Text
    descriptions: dict[Text, Text]
    label_cost: Number
    mistake_cost: Number
    at_most: Number
    of: TargetOf
    annotator_error: float
    correction_cost: float
    tolerance: Number
    positive: Text | None
    may_miss: list[Text]
    overlap: float
    unit: Text
    lowest: Number
    highest: Number
    opinions: int
    rule: Text
    history: list[SettingChangeAnswer]


class Cell(_Response):
    """A cell of an item; ``cut`` where more was there than is sent."""

    name: Text
    value: Text
    cut: bool


class ItemAnswer(_Response):
    """An item for a person to see."""

    item: int
    id: Text
    cells: list[Cell]
    image: str | None


class FoundItemAnswer(ItemAnswer):
    """An item that was looked for by its id, and the label that counts, with who gave it; null without a label."""

    label: ShownLabel
    person: Text
    in_check: bool


class AskedItem(ItemAnswer):
    """An item that a person is asked for, until when it is theirs, and why this one; whether it is one of a check."""

    until: float
    why: Text
    check: bool


class NextAnswer(_Response):
    """The next items; none if nothing is left for this person."""

    items: list[AskedItem]
    left: int


class Receipt(_Response):
    """Receipt of a written event, with its number; ``repeated`` if it had been written before.

    ``behind`` is the number of answers that the model has not counted yet; a script waits until it is 0 in the status.
    """

    seq: int
    item: int | None
    repeated: bool
    behind: int


class CertificateAnswer(_Response):
    """Certificate and its assumption."""

    statement: Text
    assumption: Text


class VerdictAnswer(_Response):
    """Verdict of the stopping rule."""

    stop: bool
    ready: bool
    value: Number
    threshold: Number
    rule: Text
    sentence: Text
    certificate: CertificateAnswer | None


class ForecastAnswer(_Response):
    """Forecast of the number of labels."""

    labels: int
    low: int
    high: int
    coverage: float


class ErrorAnswer(_Response):
    """Estimates of the error: labels, value, ends of the interval; and the random labels that the last rests on."""

    unit: Literal["share", "root mean squared"]
    estimates: list[tuple[int, Number, Number, Number]]
    random_labels: int


class ErrorNowAnswer(_Response):
    """The estimated error of the unlabelled items, its 90 % interval, and the random labels that calibrate it."""

    value: Number
    low: Number
    high: Number
    random_labels: int


class AlternativeAnswer(_Response):
    """Another model that is better on the same labels; ``clear`` where chance does not explain the difference.

    The gain of a switch is estimated: ``error_now`` is the error of the unlabelled items with this model, and
    ``avoided`` the number of wrong predictions that it avoids. ``worth`` is what the lower error saves, and with
    ``saved`` further labels the current model would have it too.
    """

    name: Text
    description: Text
    error: Number
    present: Number
    labels: int
    clear: bool
    ratio: Number
    error_now: Number
    saved: int | None
    avoided: int | None
    worth: Number


class PlanAnswer(_Response):
    """Plan of a guarantee of ``target``: time of the check and total labels, extrapolated; null if never."""

    target: float
    n_labelled: int
    pool: int
    error: Number
    low: Number
    high: Number
    reducible: Number
    alpha: Number
    more_labels: int | None
    check_size: int | None
    check_low: int | None
    check_high: int | None
    success: float
    expected_total: int | None
    check_now: bool
    error_at_check: Number
    sentence: Text


class PredictedAnswer(_Response):
    """Unlabelled items that are predicted as a class, and those of them in a check."""

    pool: int
    checked: int
    right: int
    excluded: int = 0


class GuaranteeAnswer(_Response):
    """Guarantee of a check: items, model, confidence and sample.

    ``about_present_model`` is false if the model has learned more since, or is another one. ``classes`` are those that
    the guarantee is about; ``classes_since`` says whether they are still those of the project, also under other names.
    ``added`` is the number of items that were added since the check was drawn; they are not covered. ``allowed`` is the
    number of wrong items that the target of a sequential check allows. ``corrections`` is the number of answers that
    were corrected, and ``wrong_at_first`` the number of wrong answers before; null if they are the same.
    """

    format: int
    quantity: Literal["error", "within", "tolerance", "recall", "precision"]
    statement: Text
    value: Number
    value_for_all: Number = None
    wrong_at_most: int | None = None
    remaining: int
    pool: int
    checked: int
    wrong: int
    alpha: float
    confidence: float
    model: Text
    unlabelable: int
    unlabelable_as: Literal["wrong", "excluded"]
    class_name: Text | None = None
    tolerance: Number = None
    share: Number = None
    group: Text | None = None
    found: int | None = None
    predicted: PredictedAnswer | None = None
    allowed: int | None = None
    corrected: bool = False
    corrections: int = 0
    wrong_at_first: int | None = None
    number: int = 1
    evidence: Text
    about_present_model: bool
    added: int
    check: int
    n_labelled: int
    model_name: Text
    classes: list[Text]
    classes_since: Literal["same", "merged", "changed"]
    sentences: list[Text]
    figure: Text
    figure_note: Text


class SequentialAnswer(_Response):
    """Progress of a sequential check.

    ``needed`` is the number of next answers that prove the target if none of them is wrong. ``counts`` and ``limits``
    are pairs: a number of answers, and the wrong ones among them or the largest number of wrong ones that proves the
    target. In a check for the goal of a screening, an answer counts as wrong if it is ``class_name``.
    """

    state: Literal["open", "proven", "failed", "given up"]
    answered: int
    wrong: int
    needed: int | None
    allowed: int
    planned: int
    horizon: int
    counts: list[tuple[int, int]]
    limits: list[tuple[int, int]]
    class_name: Text | None = None


class CheckAnswer(_Response):
    """The newest check: what it is to guarantee, how far it is, and the model that it is about.

    ``target_words`` is the target of a check that ends by itself, ``expected`` the share of wrong predictions that it
    is planned for, and ``plan_words`` says so; ``how_to_answer`` says what people do.
    """

    number: int
    state: Literal["open", "complete", "aborted"]
    size: int
    answered: int
    pool: int
    quantity: Literal["error", "within", "tolerance", "recall", "precision"]
    class_name: Text | None
    tolerance: Number
    share: Number
    predicted_as_found: bool
    unlabelable_as: Literal["wrong", "excluded"]
    confidence: float
    model_name: Text
    n_labelled: int
    person: Text
    at: str
    proves: bool
    sentence: Text
    target_words: Text | None
    how_to_answer: Text
    at_most: Number
    corrected: bool
    of: Literal["rest", "all"] = "rest"
    annotator_error: float = 0.0
    expected: float | None = None
    plan_words: Text = ""
    sequential: SequentialAnswer | None


class CheckOfferAnswer(_Response):
    """A size of a check, and the share of wrong predictions that it is likely to guarantee."""

    size: int
    at_most: float


class CheckRowAnswer(_Response):
    """A size of a check, its cost, and what it is likely to guarantee, in words."""

    size: int
    cost: Text
    words: Text


class ExpectedCheckAnswer(_Response):
    """What a sequential check for the target is expected to take: answers with their interval, and success."""

    size: int
    low: int
    high: int
    success: float


class CheckOffersAnswer(_Response):
    """Cost and likely guarantee of a check, if the estimated error is correct. It proves nothing."""

    number: int
    pool: int
    alpha: float
    confidence: float
    expected: float
    probability: float
    tolerance: Number
    offers: list[CheckOfferAnswer]
    rows: list[CheckRowAnswer]
    at_most: Number
    target_check: ExpectedCheckAnswer | None
    target_words: Text
    seconds: Number
    sentences: list[Text]


class SequentialOfferAnswer(_Response):
    """A check until a target is proven: the least number of answers, and the wrong items that the target allows."""

    number: int
    at_most: float
    tolerance: Number
    pool: int
    allowed: int
    least: int
    expected: float
    check: ExpectedCheckAnswer
    alpha: float
    confidence: float
    sentences: list[Text]


class ClassOfferAnswer(_Response):
    """A recall or precision, and the size of a check that is likely to guarantee it; null if only all items do."""

    at_least: float
    size: int | None


class ClassOffersAnswer(_Response):
    """Cost of a check of the recall or precision of a class, if the model's own estimate is correct."""

    quantity: Literal["recall", "precision"]
    class_name: Text
    predicted_as_found: bool
    pool: int
    expected: int
    found: int
    alpha: float
    confidence: float
    probability: float
    offers: list[ClassOfferAnswer]
    rows: list[CheckRowAnswer]
    sentences: list[Text]


class ScreeningAnswer(_Response):
    """Progress of a screening: items found, the estimated total, and the share to find."""

    positive: Text
    found: int
    estimated: float
    recall: float


class FinishPlanAnswer(_Response):
    """Plan for a goal about all labels: labels by people, a check, and predictions for the rest. It is an estimate.

    ``by_people`` are labels now, ``more_labels`` those before the check, ``check_size`` the typical number of answers
    of the check (``check_low`` to ``check_high``), ``by_people_at_end`` their sum, and ``predicted`` the other labels.
    ``wrong`` is the expected number of wrong predictions for the items without a label now (``low`` to ``high``), and
    ``wrong_at_check`` that when the check starts. In a screening for ``class_name``, of which ``found`` items are
    found, labels are items that people read, ``allowed`` is the number of items of the class that may be missed, and
    ``wrong`` their expected number among the items that nobody has read. While the check is open, ``check_size`` are
    the answers that are still expected.
    """

    at_most: float
    rows: int
    by_people: int
    allowed: int
    wrong: float
    low: float
    high: float
    more_labels: int
    check_size: int
    check_low: int
    check_high: int
    wrong_at_check: float
    by_people_at_end: int
    predicted: int
    check_now: bool
    sentence: Text
    class_name: Text | None = None
    found: int | None = None
    annotator_error: float = 0.0
    tolerance: Number = None
    check_open: bool = False


class ProofAnswer(_Response):
    """What a check has proven about the items that were unlabelled when it started."""

    format: int
    quantity: Literal["error", "within", "recall"]
    statement: Text
    value: Number
    value_for_all: Number = None
    wrong_at_most: int | None = None
    remaining: int
    pool: int
    checked: int
    wrong: int
    alpha: float
    confidence: float
    model: Text
    unlabelable: int
    unlabelable_as: Literal["wrong", "excluded"]
    tolerance: Number = None
    class_name: Text | None = None
    found: int | None = None
    allowed: int | None = None
    corrected: bool = False
    corrections: int = 0
    wrong_at_first: int | None = None
    number: int = 1


class DataSetAnswer(_Response):
    """What is guaranteed about all final labels: ``wrong_at_most`` of ``rows``.

    ``by_people`` were given by people, ``predicted`` are predictions. ``proof`` is null if no check was necessary.
    ``left_out`` rows have no label, because nobody could label them. In a screening for ``class_name``, ``found`` items
    of the class are found and ``missed_at_most`` are missed, so that ``recall_at_least`` is found; ``value`` is the
    share that is missed at most, and ``wrong_at_most`` is null.
    """

    rows: int
    by_people: int
    proof: ProofAnswer | None = None
    allowed: int
    at_most: float
    annotator_error: float = 0.0
    left_out: int
    tolerance: Number = None
    statement: Text
    value: float
    wrong_at_most: int | None = None
    confidence: float
    predicted: int
    class_name: Text | None = None
    found: int | None = None
    missed_at_most: int | None = None
    recall_at_least: float | None = None


class ReachedGoalAnswer(DataSetAnswer):
    """What is guaranteed about all final labels, and what it covers.

    ``check`` is the number of the check and ``at`` its start; null if no check was necessary. ``added`` rows are newer
    and not covered. ``errors_of_people`` says what wrong labels of people would mean; it is empty if a share of them is
    stated.
    """

    evidence: Text
    errors_of_people: Text
    check: int | None
    at: str | None
    classes_since: Literal["same", "merged", "changed"]
    added: int
    sentences: list[Text]
    figure: Text
    figure_note: Text


class AnnotatorErrorAnswer(_Response):
    """Share of wrong labels of one person, estimated from the items that two people labelled."""

    share: float
    both: int
    different: int


class GoalAnswer(_Response):
    """Progress towards a goal about all labels.

    Of ``rows`` labels, ``by_people`` are given, and ``allowed`` predictions may be wrong. ``more_labels`` are expected
    until the end, those of the check included, ``expected_total`` in all; ``hours`` at the pace of the people, who
    take ``seconds_per_label``. ``history`` has the number of labels and the expected total at each plan. ``missing``
    says why the final labels are not available; it is empty if the goal is ``reached``. In a screening for
    ``class_name``, ``found`` items of the class are found, ``at_most`` is the share of the class that may be missed,
    and ``allowed`` their number. ``check_sentences`` say what the check for the goal is.
    """

    at_most: float
    of: TargetOf
    tolerance: Number
    annotator_error: float
    correction_cost: float
    rows: int
    by_people: int
    left_out: int
    allowed: int
    plan: FinishPlanAnswer | None
    check_open: bool
    reached: ReachedGoalAnswer | None
    missing: Text
    more_labels: int | None
    expected_total: int | None
    predicted: int | None
    seconds_per_label: Number
    hours: Number
    history: list[tuple[int, int]]
    annotator_error_seen: AnnotatorErrorAnswer | None
    class_name: Text | None
    found: int | None
    sentences: list[Text]
    check_sentences: list[Text]


class ScarceClassAnswer(_Response):
    """A rare class that holds a stop back: until ``wanted`` labels of it, or ``until`` labels in all."""

    name: Text
    labels: int
    wanted: int
    until: int


class StopWithdrawalAnswer(_Response):
    """The last stop that was withdrawn: the numbers of labels, and what has changed.

    ``ratio`` is the worth of a label as a multiple of its cost.
    """

    stopped_at: int
    withdrawn_at: int
    cause: Cause
    ratio: Number
    class_name: Text | None


class RareClassAnswer(_Response):
    """A rare class: its labels, and estimates of its share of the items and of the share that the predictions find.

    ``low`` and ``high`` are the ends of the 90 % interval of ``share``.
    """

    name: Text
    labels: int
    share: float
    recall: Number
    low: Number
    high: Number


class DecisionAnswer(_Response):
    """The decision whether to continue labelling: the answer, its numbers, and the same in words.

    ``error`` and ``rare_class`` are estimated; ``forecast``, ``error_then`` and ``corrected`` are extrapolated.
    ``since`` is the number of labels at which the stop was stated, if it stands; ``held_back`` is why a stop of the
    rule is not stated, and ``withdrawn`` is why the last stop does not stand. ``not_learned`` is the number of labels
    since ``n_labelled``; the labels of the forecast include them. If they are many (``far_behind``), nothing is
    forecast or planned until the model has learned them. ``outlook`` holds figures with their notes.
    """

    answer: Literal["too early", "keep going", "enough", "limit", "complete"]
    n_labelled: int
    unlabelled: int
    share: bool
    since: int | None
    error: ErrorNowAnswer | None
    baseline: Number
    common: Text | None
    at_most: Number
    forecast: ForecastAnswer | None
    error_then: Number
    alternative: AlternativeAnswer | None
    rule: Text
    reason: Text
    wrong: int | None
    corrected: int | None
    far_behind: bool
    hardly_better: bool
    above_target: bool
    target_out_of_reach: bool
    large_error: bool
    target_guaranteed: bool
    target_missed: bool
    plan: PlanAnswer | None
    check_pending: int
    avoided: Number
    price: Number
    screening: ScreeningAnswer | None = None
    of: TargetOf = "rest"
    finish: FinishPlanAnswer | None = None
    data_set: DataSetAnswer | None = None
    held_back: ScarceClassAnswer | None
    withdrawn: StopWithdrawalAnswer | None
    rare_class: RareClassAnswer | None
    not_learned: int
    headline: Text
    tone: Literal["quiet", "on", "good", "limit"]
    sentences: list[Text]
    error_figure: Text
    error_note: Text
    outlook: list[tuple[Text, Text]]
    outlook_note: Text
    summary: Text
    remedy: Text
    next_step: Text


class ClassCount(_Response):
    """Number of items of a class."""

    name: Text
    count: int


class PersonAnswer(_Response):
    """A person: number of labels, and time of the last activity."""

    name: Text
    labels: int
    last: str


class AccuracyAnswer(_Response):
    """How many answers of a person were right, with limits of the share."""

    items: int
    right: int
    share: float
    low: float
    high: float


class PersonRecordAnswer(_Response):
    """What is known about the answers of a person."""

    name: Text
    labels: int
    answers: int
    last: str
    seconds: Number
    settled: AccuracyAnswer | None
    random: AccuracyAnswer | None
    compared: int
    same: int
    expected: float
    probability: Number
    by_chance: bool
    sentences: list[Text]


class PeopleAnswer(_Response):
    """The people of a project, and what has to be known to read the sentences about them."""

    people: list[PersonRecordAnswer]
    notes: list[Text]


class AgreementAnswer(_Response):
    """Agreement of people on the same items. ``alpha`` is Krippendorff's, with an interval from ``low`` to ``high``."""

    both: int
    same: int
    people: int
    alpha: Number
    low: Number
    high: Number
    difference: Number


class AdviceAnswer(_Response):
    """The standing advice to stop."""

    n_labelled: int
    reason: Text
    at: str


class GroupAnswer(_Response):
    """What is guaranteed about the predictions of a group of rows."""

    rows: int
    checked: int
    wrong: int
    wrong_at_most: int
    at_most: float
    reaches_target: bool | None = None


class ResultAnswer(_Response):
    """What the newest check of predictions made elsewhere has shown."""

    guaranteed: bool
    complete: bool
    rows: int
    checked: int
    pending: int
    wrong: int
    wrong_at_most: int | None
    at_most: Number
    confidence_level: float
    answer: Literal["blind", "verdict"]
    columns: dict[Text, int]
    groups: dict[Text, GroupAnswer]
    sentences: list[Text]


class StatusAnswer(_Response):
    """Status of labelling and learning.

    ``usual_numbers``: for numbers, a wide range around the labels so far; the page asks about a number outside of it.
    """

    n_labelled: int
    n_skipped: int
    n_unsure: int
    size: int
    left: int
    revision: int
    learned: int
    held: int
    behind: int
    model: PresentModelAnswer
    decision: DecisionAnswer
    verdict: VerdictAnswer | None
    forecast: ForecastAnswer | None
    curve: list[tuple[int, Number, Number]]
    error: ErrorAnswer
    classes: list[ClassCount]
    usual_numbers: tuple[Number, Number] | None
    people: list[PersonAnswer]
    agreement: AgreementAnswer | None
    advice: AdviceAnswer | None
    check: CheckAnswer | None
    guarantee: GuaranteeAnswer | None
    goal: GoalAnswer | None
    result: ResultAnswer | None
    warning: Text
    problem: Text
    words: list[Text]


class OpinionAnswer(_Response):
    """Label of an item by one person."""

    person: Text
    label: ShownLabel
    at: str


class LabelRow(_Response):
    """A row of the table of labels. ``in_check``: whether the label is evidence of a check.

    ``majority`` is the label that most of the ``opinions`` have; null if there is none.
    """

    item: int
    id: Text
    summary: Text
    label: ShownLabel
    person: Text
    at: str
    corrected: bool
    skipped: bool
    unsure: bool
    reason: Text
    opinions: list[OpinionAnswer]
    majority: ShownLabel
    in_check: bool


class LabelsAnswer(_Response):
    """Rows of the table of labels, newest first, and how many there are in all."""

    total: int
    rows: list[LabelRow]


class ReviewRow(_Response):
    """A label that is likely wrong, and what the model says that has not learned it."""

    item: int
    id: Text
    summary: Text
    label: ShownLabel
    person: Text
    at: str
    prediction: ShownLabel
    probability: Number
    deviation: Number
    wrong: float
    sentence: Text


class ReviewAnswer(_Response):
    """Labels that are worth a second look, the likeliest to be wrong first; how many there are, and the same in words.

    ``wrong`` of a label is the probability that it is wrong. ``expected`` is the expected number of wrong labels among
    those listed, ``expected_all`` among all that are open to review, and ``at_least`` the smallest probability listed.
    """

    labels: list[ReviewRow]
    total: int
    n_labelled: int
    expected: float
    expected_all: float
    at_least: float
    sentence: Text
    note: Text


class ItemsAnswer(_Response):
    """Number of rows that were or would be added, and number of items now.

    ``matched`` and ``conflicting`` are 0: rows of items that the project has already are refused.
    """

    rows: int
    matched: int
    added: int
    labelled: int
    unmatched: int
    conflicting: int
    size: int
    guaranteed: bool
    outside_range: int
    written: bool
    repeated: bool
    notes: list[Text]
    sentences: list[Text]


class ImportAnswer(_Response):
    """Result of an import, in numbers and in words."""

    rows: int
    matched_by: Literal["id", "row", "text"]
    matched: int
    labelled: int
    opinions: int
    replaced: int
    same: int
    kept: int
    predicted: int
    empty: int
    unmatched: int
    unmatched_examples: list[Text]
    unknown: dict[str, int]
    contradictory: int
    in_check: int
    added: int
    conflicting: int
    conflicting_examples: list[Text]
    conflicts: Literal["keep", "replace", "opinion"]
    outside_range: int
    outside_range_examples: list[Text]
    plausible: Text
    written: bool
    repeated: bool
    notes: list[Text]
    sentences: list[Text]


class PredictionAnswer(_Response):
    """A prediction for an item: of the model if ``source`` is empty, else of a file; and the same in words."""

    source: Text
    label: ShownLabel
    probability: Number
    deviation: Number
    sentence: Text


class PredictionsAnswer(_Response):
    """The predictions for an item: none, that of the model, one from a file, or both."""

    item: int
    predictions: list[PredictionAnswer]


class Health(_Response):
    """Response of the health check."""

    ok: bool


#: Content security policy of the page: files of this server, and no inline content.
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: Content security policy of the report: no files, because its style and figures are inline.
REPORT_POLICY: Final = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
#: The headers of every response, unless it has a header of that name already.
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class SafeHeaders:
    """Adds the headers to every response, including errors.

    Args:
        app: The application.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


# The first matching class determines the status. Other errors of suffice have the status 503.
_STATUSES: Final[tuple[tuple[type[SufficeError], int], ...]] = (
    (StorageFullError, 507),
    (StorageError, 503),
    (NotAllowedError, 403),
    (ConflictError, 409),
    (NoMatchError, 409),
    (MissingExtraError, 501),
    (InvalidValueError, 422),
    (InvalidTypeError, 422),
)


def problem(status: int, sentence: str) -> JSONResponse:
    """A response with an error message."""
    # A message may quote the received value, which may contain surrogates.
    return JSONResponse({"detail": sentence.encode("utf-8", "replace").decode()}, status_code=status)


def problem_page(status: int, sentence: str, back: str = "") -> HTMLResponse:
    """A page with an error message, for a person who opened the address in a browser.

    Args:
        status: The HTTP status.
        sentence: The message.
        back: Address of the list of projects, if there is one.
    """
    message = f"{sentence[0].upper()}{sentence[1:]}."
    page = rendered("problem.html.jinja", package="suffice.web", sentence=message, back=back)
    return HTMLResponse(page, status_code=status)


def status_of(error: SufficeError) -> int:
    """The HTTP status of an error of suffice.

    Examples:
        >>> status_of(InvalidValueError("n must be 1 or more")), status_of(SufficeError("the disk is away"))
        (422, 503)
    """
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 503)


def add_problem_handlers(app: FastAPI, routes: Sequence[BaseRoute]) -> None:
    """Register handlers that answer every error of an application with a message.

    Args:
        app: The application.
        routes: Its routes, to say what can be done where.
    """

    async def on_suffice(_: Request, error: Exception) -> Response:
        assert isinstance(error, SufficeError)
        return problem(status_of(error), str(error))

    async def on_invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return problem(422, sentence_of(error.errors()))

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 405:
            allowed = _allowed(request, routes)
            answer = problem(405, f"{request.method} is not possible here; use {allowed}")
            answer.headers["Allow"] = allowed
            return answer
        answer = problem(error.status_code, _said(request, error))
        answer.headers.update(error.headers or {})
        return answer

    async def on_anything(_: Request, __: Exception) -> Response:
        answer = problem(500, "an internal error occurred; the output of suffice serve says more")
        # This response is created outside the middleware that adds the headers.
        answer.headers.update(SECURITY_HEADERS)
        return answer

    app.add_exception_handler(SufficeError, on_suffice)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(Exception, on_anything)


def sentence_of(errors: Sequence[Any]) -> str:
    """First error of a request, in a sentence.

    Args:
        errors: What pydantic found, one thing or more.

    Examples:
        >>> sentence_of([{"type": "missing", "loc": ("body", "person"), "msg": "Field required", "input": {}}])
        'person is missing; it must be a name of 1 to 64 characters without control characters'
    """
    first = errors[0]
    kind, where = first["type"], [str(part) for part in first["loc"]]
    if kind == "json_invalid":
        return f"the body must be JSON, but {first['ctx']['error']} at character {where[-1]}"
    name = where[1] if len(where) > 1 else "the body"
    if kind == "extra_forbidden":
        return f"{shown(where[-1])} is not a field of this request; leave it out"
    meaning = MEANINGS.get(name)
    if name == "format" and kind == "literal_error":
        # The formats of the final file are others.
        meaning = first["ctx"]["expected"].replace("'", "")
    if meaning is None:
        return "the body must be a JSON object with the names that /api/openapi.json gives"
    if kind == "missing":
        return f"{name} is missing; it must be {meaning}"
    if name == "password":
        return f"{name} must be {meaning}"
    return f"{name} must be {meaning}, not {_came(first['input'])}"


def _came(value: Any) -> str:
    """The received value, in JSON terms."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return shown(value) if isinstance(value, str | int | float) else f"a {type(value).__name__}"


def _said(request: Request, error: HTTPException) -> str:
    # Starlette's messages for these two errors are not sentences.
    if error.status_code == 404 and error.detail == "Not Found":
        return f"there is nothing at {request.url.path[:200]}; /api/openapi.json lists what there is"
    if error.status_code == 400:
        return "the body must be JSON in UTF-8, not nested too deeply, without infinite numbers"
    return str(error.detail)


def _allowed(request: Request, routes: Sequence[BaseRoute]) -> str:
    """Allowed methods of an address. Starlette names only the methods of the first route."""
    fitting = (route for route in routes if isinstance(route, Route))
    methods = {
        method
        for route in fitting
        if route.matches(dict(request.scope))[0] is not Match.NONE
        for method in route.methods or ()
    }
    return ", ".join(sorted(methods)) or "GET"
