"""Label Studio: annotations in, task order, decision and guarantee out; all state is in a labelling project.

:class:`LabelStudio` calls the HTTP API of one server. :class:`LabelStudioSync` compares the annotations of a project in
Label Studio with the journal of a project of suffice and writes the difference to the journal, so that nothing is lost
or duplicated, also if one side was stopped meanwhile. It publishes the next tasks, and the decision of suffice.

The order of tasks is set by predictions: with the sampling method "Uncertainty sampling", Label Studio serves the tasks
that have a prediction of the project's model version, lowest score first. So only the tasks that suffice requests next
have a prediction, whose score is their position in the order. While a random check is open, these are the tasks of the
check, so that they are answered before other tasks. Their predictions contain no label.
"""

import json
import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    Request,
)
from xml.etree import ElementTree

from suffice.errors import InvalidValueError, SufficeError
from suffice.presentation.html_parts import paragraphs
from suffice.presentation.project_words import progress_sentence
from suffice.presentation.text_format import count

if TYPE_CHECKING:
    from suffice.project.assignment import Assignment
    from suffice.project.background_learner import BackgroundLearner
    from suffice.project.labelling_project import Project
    from suffice.project.learning_status import LearningStatus
    from suffice.project.state import ProjectState

#: Person in the journal for requests of items, and for skips of items whose task was deleted.
ASKER: Final = "Label Studio"
#: Model version of the predictions that order the tasks.
MODEL_VERSION: Final = "suffice"
#: The header in which Label Studio sends the secret of the webhook.
SECRET_HEADER: Final = "X-Suffice-Secret"
#: Actions for which the webhook is called.
ACTIONS: Final = (
    "ANNOTATION_CREATED",
    "ANNOTATIONS_CREATED",
    "ANNOTATION_UPDATED",
    "ANNOTATIONS_DELETED",
    "TASKS_CREATED",
    "TASKS_DELETED",
)
SAMPLING: Final = "Uncertainty sampling"
_REQUEST_PREFIX: Final = "label-studio:"
_TIMEOUT_SECONDS: Final = 30.0
_PAGE_SIZE: Final = 200
# Maximal number of attempts to read all tasks while they change.
_TRIES: Final = 5
_LARGEST_ANSWER: Final = 512 * 2**20
_LARGEST_IMAGE: Final = 50 * 2**20
_LONGEST_NAME: Final = 64


class LabelStudioError(SufficeError):
    """Label Studio has refused a request, or its response is invalid."""


class UnreachableError(LabelStudioError):
    """Label Studio cannot be reached now; the request may be repeated later."""


def checked_url(url: str, name: str = "--url") -> str:
    """Return the address of a server without a slash at its end.

    Args:
        url: The address.
        name: What to call it in an error message.

    Raises:
        InvalidValueError: It is not the address of an HTTP server.

    Examples:
        >>> checked_url("http://localhost:8080/")
        'http://localhost:8080'
    """
    wanted = f"{name} must be an address such as http://localhost:8080"
    try:
        parts = urlsplit(url.strip())
        parts.port  # noqa: B018 - raises where it is no number
    except ValueError:
        raise InvalidValueError(f"{wanted}, not {url[:100]!r}") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidValueError(f"{wanted}, not {url[:100]!r}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InvalidValueError(f"{wanted}, without a user name, a query or a fragment")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def checked_token(token: str | None) -> str:
    """Return an API token of Label Studio.

    Raises:
        InvalidValueError: There is no token, or it is not valid.
    """
    text = (token or "").strip()
    if not text:
        raise InvalidValueError(
            "there is no API token: put it into the environment as LABEL_STUDIO_API_KEY, or into a file and name that "
            "with --token-file. Label Studio shows it under Account & Settings"
        )
    if not re.fullmatch(r"[!-~]{5,4000}", text):
        raise InvalidValueError("the API token must be one line of at least 5 letters and digits; copy it again")
    return text


def _same_server(one: str, other: str) -> bool:
    def server(url: str) -> tuple[str, str | None, int]:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or {"https": 443}.get(parts.scheme, 80)

    return server(one) == server(other)


class LabelStudio:
    """The HTTP API of one Label Studio server.

    It contacts this server only: it follows no redirects and uses no proxy.

    Args:
        url: Address of the server.
        token: An access token: a personal one, which Label Studio 1.20 and later make, or a legacy one.
        timeout: Seconds to wait for an answer.

    Attributes:
        url: Address of the server.
    """

    def __init__(self, url: str, token: str, *, timeout: float = _TIMEOUT_SECONDS) -> None:
        self.url = checked_url(url)
        self._token = checked_token(token)
        self._timeout = timeout
        # Without the handlers that follow redirects or use proxies.
        self._opener = OpenerDirector()
        for handler in (HTTPHandler, HTTPSHandler, HTTPDefaultErrorHandler, HTTPErrorProcessor):
            self._opener.add_handler(handler())
        # A personal token is exchanged for a token that is valid for a few minutes.
        self._personal = self._token.count(".") == 2
        self._access: str | None = None

    def call(self, method: str, path: str, content: Any = None, **query: Any) -> Any:
        """Send a request and return the JSON values of the answer; None for an empty one.

        Args:
            method: GET, POST, PATCH or DELETE.
            path: Path of the resource, without the query.
            content: JSON values to send.
            **query: The query.

        Raises:
            UnreachableError: There is no response, or the server is temporarily unavailable.
            LabelStudioError: The request is refused.
        """
        address = f"{self.url}{path}" + (f"?{urlencode(query)}" if query else "")
        body = None if content is None else json.dumps(content).encode()
        answer = self._send(method, address, body)
        if not answer.strip():
            return None
        try:
            return json.loads(answer)
        except ValueError:
            raise LabelStudioError(
                f"{self.url} answers {path} with something else than JSON; is it the address of Label Studio?"
            ) from None

    def file(self, url: str) -> bytes:
        """Return a file from the server, such as an uploaded image.

        Args:
            url: Its address, also relative to that of the server.

        Raises:
            InvalidValueError: It is on another server.
        """
        # The path of an upload is relative to the server, also if Label Studio runs under a prefix.
        address = f"{self.url}{url}" if url.startswith("/") else urljoin(f"{self.url}/", url)
        if not _same_server(address, self.url):
            raise InvalidValueError(
                f"{url[:200]!r} is not on {self.url}, and only that server is contacted; upload the files to Label "
                "Studio, or give features of the tasks with --features FILE.npy"
            )
        return self._send("GET", address, None, most=_LARGEST_IMAGE)

    def project(self, number: int) -> dict[str, Any]:
        """Settings and counts of a project.

        Raises:
            InvalidValueError: There is no project of this number that the token can access.
        """
        try:
            found: dict[str, Any] = self.call("GET", f"/api/projects/{number}/")
        except LabelStudioError as error:
            if getattr(error, "code", None) != 404:
                raise
            known = self.call("GET", "/api/projects/", page_size=10).get("results", [])
            names = ", ".join(f"{each['id']} ({each['title']})" for each in known) or "none"
            raise InvalidValueError(
                f"--project must be the number of a project that the token may see, and {number} is none; there are: "
                f"{names}"
            ) from None
        return found

    def tasks(self, project: int) -> list[dict[str, Any]]:
        """All tasks of a project with their annotations and predictions, by rising number.

        Raises:
            UnreachableError: Tasks are added or deleted faster than they can be read.
        """
        for _ in range(_TRIES):
            found, totals = self._pages(project)
            # If a task is deleted meanwhile, other tasks move to pages that were read before.
            if totals == {len(found)}:
                return list(found.values())
        raise UnreachableError(f"the tasks of project {project} are changing faster than they can be read")

    def _pages(self, project: int) -> tuple[dict[int, dict[str, Any]], set[int]]:
        """The tasks of all pages by their numbers, and the total that each page states."""
        found: dict[int, dict[str, Any]] = {}
        totals: set[int] = set()
        about = {"project": project, "fields": "all", "ordering": "id", "page_size": _PAGE_SIZE}
        page = 0
        while page == 0 or page * _PAGE_SIZE < min(totals):
            page += 1
            answer = self.call("GET", "/api/tasks/", page=page, **about)
            found |= {task["id"]: task for task in answer["tasks"]}
            totals.add(int(answer["total"]))
        return found, totals

    def people(self) -> dict[int, str]:
        """Names of the users by their numbers: the e-mail address, or otherwise the user name."""
        users = self.call("GET", "/api/users/")
        named = {user["id"]: user.get("email") or user.get("username") or f"user {user['id']}" for user in users}
        return {number: _person(name, number) for number, name in named.items()}

    def _send(self, method: str, address: str, body: bytes | None, *, most: int = _LARGEST_ANSWER) -> bytes:
        for attempt in (1, 2):
            request = Request(address, body, {"Authorization": self._authorization()}, method=method)
            if body is not None:
                request.add_header("Content-Type", "application/json")
            try:
                return self._answer(request, most)
            except LabelStudioError as error:
                if getattr(error, "code", None) != 401 or not self._personal or attempt == 2:
                    raise
                # The token has expired.
                self._access = None
        raise AssertionError

    def _authorization(self) -> str:
        if not self._personal:
            return f"Token {self._token}"
        if self._access is None:
            body = json.dumps({"refresh": self._token}).encode()
            request = Request(f"{self.url}/api/token/refresh/", body, {"Content-Type": "application/json"})
            self._access = str(json.loads(self._answer(request, _LARGEST_ANSWER))["access"])
        return f"Bearer {self._access}"

    def _answer(self, request: Request, most: int) -> bytes:
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                content: bytes = answer.read(most + 1)
        except HTTPError as error:
            with error:
                raise self._refusal(error) from None
        except (URLError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            why = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            raise UnreachableError(f"Label Studio cannot be reached at {self.url}: {why}; is it running?") from None
        if len(content) > most:
            raise LabelStudioError(f"{urlsplit(request.full_url).path} has more than {most >> 20} MiB")
        return content

    def _refusal(self, error: HTTPError) -> LabelStudioError:
        """Error for a response with the status ``code``."""
        place = f"{error.code} for {urlsplit(error.url or '').path}"
        if error.code < 400:
            found: LabelStudioError = LabelStudioError(
                f"{self.url} redirects to {str(error.headers.get('Location'))[:200]!r}, and only the server of --url "
                "is contacted; give the address that it redirects to as --url, if you trust it"
            )
        elif error.code in {401, 403}:
            found = LabelStudioError(
                f"Label Studio at {self.url} refuses the API token ({place}); copy it again from Account & Settings. "
                "Legacy tokens must be enabled for the organization"
            )
        elif error.code >= 500 or error.code == 429:
            found = UnreachableError(f"Label Studio at {self.url} cannot answer now ({place})")
        else:
            detail = " ".join(error.read(1000).decode(errors="replace").split())[:300]
            found = LabelStudioError(f"Label Studio at {self.url} refuses a request ({place}): {detail}")
        found.code = error.code  # type: ignore[attr-defined]
        return found


def _person(name: str, number: int) -> str:
    """A name in the form of the journal."""
    plain = "".join(letter for letter in name if letter.isprintable()).strip() or f"user {number}"
    return plain if len(plain) <= _LONGEST_NAME else f"{plain[: _LONGEST_NAME - 12]} ({number})"


Shown = Literal["Text", "Image", "Table"]


class LabelConfig(NamedTuple):
    """Labelling configuration of a project of Label Studio.

    Attributes:
        shown: The tag of what is labelled.
        item: Its name.
        field: The field of the task's data that it shows.
        label: Name of the ``Choices`` tag.
        classes: Its choices.
    """

    shown: Shown
    item: str
    field: str
    label: str
    classes: tuple[str, ...]

    def result(self, choice: str) -> list[dict[str, Any]]:
        """A choice as the result of an annotation or prediction."""
        value = {"choices": [choice]}
        return [{"from_name": self.label, "to_name": self.item, "type": "choices", "value": value}]

    def choice(self, result: Sequence[Mapping[str, Any]]) -> str | None:
        """The choice of the result of an annotation; None if there is not exactly one.

        Examples:
            >>> config = LabelConfig("Text", "item", "text", "label", ("a", "b"))
            >>> config.choice(config.result("b")), config.choice([])
            ('b', None)
        """
        chosen = [
            choice
            for each in result
            if each.get("from_name") == self.label
            for choice in each.get("value", {}).get("choices", ())
        ]
        return str(chosen[0]).strip() if len(chosen) == 1 else None


#: Tags for the layout, which neither show data nor request labels.
_LAYOUT_TAGS: Final = frozenset({"View", "Header", "Style", "Choice", "Collapse", "Panel", "Typography"})


def label_config(text: str) -> LabelConfig:
    """Read a labelling configuration of Label Studio.

    Args:
        text: The configuration, as XML.

    Raises:
        InvalidValueError: It is not one text, image or table with one ``Choices`` tag for a single choice.

    Examples:
        >>> label_config('<View><Text name="t" value="$body"/><Choices name="c" toName="t"><Choice value="spam"/>'
        ...              '<Choice value="ham"/></Choices></View>')
        LabelConfig(shown='Text', item='t', field='body', label='c', classes=('spam', 'ham'))
    """
    wanted = "suffice needs one Text, Image or Table tag and one Choices tag for a single choice"
    try:
        if "<!" in re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL):
            raise ValueError("it has a document type")
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise InvalidValueError(f"the labelling configuration of the project cannot be read: {error}") from None
    tags = list(root.iter())
    objects = [tag for tag in tags if tag.tag in {"Text", "Image", "Table"}]
    controls = [tag for tag in tags if tag.tag == "Choices"]
    others = sorted({tag.tag for tag in tags} - _LAYOUT_TAGS - {"Text", "Image", "Table", "Choices"})
    if others or len(objects) != 1 or len(controls) != 1:
        found = ", ".join(f"{tag.tag}" for tag in tags if tag.tag not in _LAYOUT_TAGS) or "none of them"
        raise InvalidValueError(f"the labelling configuration is not supported: {wanted}; it has {found}")
    shown, control = objects[0], controls[0]
    problem = ""
    value = shown.get("value", "")
    if not re.fullmatch(r"\$[\w.-]+", value):
        problem = f"the value of {shown.tag} must name a field of the tasks, such as $text, not {value!r}"
    elif control.get("toName") != shown.get("name"):
        problem = f"toName of Choices must be {shown.get('name')!r}"
    elif control.get("choice", "single") not in {"single", "single-radio"}:
        problem = f'choice="{control.get("choice")}" allows several choices'
    elif control.get("value") or control.get("perRegion") == "true" or control.get("perItem") == "true":
        problem = "choices that depend on the task, a region or an item cannot be used"
    classes = tuple((tag.get("alias") or tag.get("value") or "").strip() for tag in control.iter("Choice"))
    if not problem and (len(classes) < 2 or "" in classes or len(set(classes)) < len(classes)):
        problem = f"Choices must have at least 2 different choices, not {list(classes)}"
    if not problem and any(list(tag) for tag in control.iter("Choice")):
        problem = "choices within choices cannot be used"
    if problem:
        raise InvalidValueError(f"the labelling configuration is not supported: {wanted}; {problem}")
    return LabelConfig(shown.tag, shown.get("name", ""), value[1:], control.get("name", ""), classes)  # type: ignore[arg-type]


def _user(annotation: Mapping[str, Any]) -> int:
    """The number of the user who made an annotation; 0 if that user was deleted."""
    user = annotation.get("completed_by")
    return int((user.get("id") if isinstance(user, Mapping) else user) or 0)


class TaskAnnotation(NamedTuple):
    """Annotation of a task by one person.

    Attributes:
        person: Who.
        label: The choice; None if they skipped the task or made no single choice.
        reason: Why there is no label, if it was not skipped.
        at: When it was made, as Label Studio writes it.
        number: Number of the annotation.
        decides: Whether it is marked as ground truth.
    """

    person: str
    label: str | None
    reason: str
    at: str
    number: int
    decides: bool


def task_annotations(
    task: Mapping[str, Any], config: LabelConfig, people: Mapping[int, str]
) -> dict[str, TaskAnnotation]:
    """The annotations of a task that count, one for each person, in the order in which they were made.

    Of several annotations by one person the newest with a label counts, or otherwise the newest.

    Args:
        task: The task as Label Studio gives it.
        config: The labelling configuration.
        people: Names of the users.
    """
    found: dict[str, TaskAnnotation] = {}
    for each in sorted(task.get("annotations", ()), key=lambda each: (str(each["created_at"]), each["id"])):
        person = people.get(_user(each)) or f"user {_user(each)}"
        skipped = bool(each.get("was_cancelled"))
        label = None if skipped else config.choice(each.get("result") or ())
        reason = "" if skipped or label is not None else "an annotation without a single choice in Label Studio"
        annotation = TaskAnnotation(
            person, label, reason, str(each["created_at"]), int(each["id"]), bool(each.get("ground_truth"))
        )
        before = found.get(person)
        if before is None or label is not None or before.label is None:
            found[person] = annotation
    return found


# Marks of the section that suffice writes in a text.
_BEGIN, _END = "[suffice]", "[/suffice]"
_OPENING: Final = "<p>[suffice] <i>This part is written by suffice. Write your own text outside of it.</i></p>"
_SECTION: Final = re.compile(
    r"\s*(?:<p>\s*)?BEGIN(?:(?!BEGIN).)*?END(?:\s*</p>)?".replace("BEGIN", re.escape(_BEGIN)).replace(
        "END", re.escape(_END)
    ),
    re.DOTALL,
)


def with_section(text: str | None, section: str) -> str:
    """A text with the section of suffice replaced, or added at its end; the rest is unchanged.

    Args:
        text: What people wrote, perhaps with an earlier section.
        section: The new section, from mark to mark; empty to remove it.

    Examples:
        >>> print(with_section("Read all of it.", "[suffice] Keep going. [/suffice]"))
        Read all of it.
        <BLANKLINE>
        [suffice] Keep going. [/suffice]
        >>> with_section("One. [suffice] Keep going. [/suffice] Two.", "")
        'One. Two.'
    """
    before = text or ""
    added = f"\n\n{section}" if section else ""
    found = _SECTION.search(before)
    if found is None:
        return f"{before.rstrip()}{added}".lstrip() if section else before
    if not section:
        return f"{before[: found.start()]}{before[found.end() :]}".strip()
    return f"{before[: found.start()]}{added}{before[found.end() :]}".lstrip()


def section_of(text: str | None) -> str:
    """The section of suffice in a text; empty if there is none."""
    found = _SECTION.search(text or "")
    return "" if found is None else found.group().strip()


def task_values(config: LabelConfig, tasks: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Values of a task, as columns: the text, the address of the image, or the cells of the table.

    Args:
        config: The labelling configuration.
        tasks: The tasks.

    Raises:
        InvalidValueError: A task has no such field, or its table is not one row of cells.

    Examples:
        >>> config = LabelConfig("Table", "t", "row", "c", ("a", "b"))
        >>> task_values(config, [{"id": 1, "data": {"row": {"x": 1}}}, {"id": 2, "data": {"row": {"x": 2, "y": "q"}}}])
        {'x': [1, 2], 'y': ['', 'q']}
    """
    values = []
    for task in tasks:
        value = task["data"].get(config.field)
        if value is None:
            raise InvalidValueError(
                f"task {task['id']} has no field {config.field!r}, which the labelling configuration shows; add it, or "
                "delete the task"
            )
        plain = isinstance(value, Mapping) and not any(isinstance(cell, Mapping | list) for cell in value.values())
        if config.shown == "Table" and not plain:
            raise InvalidValueError(
                f"the table of task {task['id']} must be one row, an object of names and values, such as "
                f'{{"age": 31, "city": "Oslo"}}; the field {config.field!r} is a {type(value).__name__}'
            )
        values.append(value)
    if config.shown != "Table":
        return {config.field: [value if isinstance(value, str) else json.dumps(value) for value in values]}
    names = list(dict.fromkeys(str(name) for value in values for name in value))
    return {name: [("" if (cell := value.get(name)) is None else cell) for value in values] for name in names}


class Section(NamedTuple):
    """Texts of suffice, for annotators as HTML and for managers as plain text."""

    instruction: str
    description: str


def status_section(told: Mapping[str, Any], name: str) -> Section:
    """The sections of the instructions and of the description.

    Args:
        told: The status of the project, see :func:`suffice.project.status_summary.status`.
        name: What the project is called.
    """
    words = list(told["words"])
    check = told["check"]
    lines = paragraphs(words, first_bold=True)
    if check is not None and check["state"] == "open":
        skipped = "is left out" if check["unlabelable_as"] == "excluded" else "counts as a wrong prediction"
        lines += paragraphs(
            [
                "The next tasks belong to a random check. Label each of them carefully and without looking up "
                f"predictions. A task that you skip {skipped}."
            ]
        )
    instruction = "\n".join([_OPENING, *lines, *paragraphs([_END])])
    guarantee = [] if told["guarantee"] is None else told["guarantee"]["sentences"]
    sentences = [*guarantee, *(each for each in words if each not in guarantee), progress_sentence(name, told)]
    return Section(instruction, f"{_BEGIN} {' '.join(sentences)} {_END}")


class RemoteProject:
    """One project of Label Studio.

    Args:
        server: The server.
        number: Number of the project.

    Attributes:
        server: The server.
        number: Number of the project.
        about: The project as it was read or written last.
        config: The labelling configuration that is used.
    """

    def __init__(self, server: LabelStudio, number: int) -> None:
        self.server, self.number = server, number
        self.about = server.project(number)
        self.config = self.present_config()

    def read(self) -> dict[str, Any]:
        """Read settings and counts of the project again, and return them."""
        self.about = self.server.project(self.number)
        return self.about

    def present_config(self) -> LabelConfig:
        """The labelling configuration, as it was read last."""
        return label_config(str(self.about["label_config"]))

    def change(self, changes: Mapping[str, Any]) -> None:
        """Change settings of the project, if there are changes."""
        if changes:
            self.about = self.server.call("PATCH", f"/api/projects/{self.number}/", dict(changes))

    def remove_prediction(self, prediction: int) -> None:
        """Remove a prediction, unless it was removed before."""
        try:
            self.server.call("DELETE", f"/api/predictions/{prediction}/")
        except LabelStudioError as error:
            if getattr(error, "code", None) != 404:
                raise


class AnnotationImporter:
    """Compares tasks and annotations of Label Studio with the journal, and writes the differences to the journal.

    Args:
        remote: The project of Label Studio.
        project: The project of suffice; the id of an item is the number of its task.
        show_predictions: Whether predictions hold the predicted choice.
        say: Called with a sentence about what is left out; once for each sentence.

    Raises:
        LabelStudioError: The labelling configuration does not belong to the project.
    """

    def __init__(
        self, remote: RemoteProject, project: "Project", *, show_predictions: bool, say: Callable[[str], None]
    ) -> None:
        self._remote, self._project = remote, project
        self._show, self._say = show_predictions, say
        main = project.settings.main
        if main is not None and main != remote.config.field:
            raise LabelStudioError(
                f"the labelling configuration shows the field {remote.config.field!r}, and {project.place} was made "
                f"from {main!r}; restore the configuration, or start a new project of suffice with --folder"
            )
        self._people: dict[int, str] = {}
        self._positions: dict[int, int] = {}
        self._sentences: set[str] = set()

    def take_all(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        """Add new tasks, write the annotations of all tasks, and skip items whose task was deleted.

        Args:
            tasks: All tasks of the project.
        """
        self._people = self._remote.server.people()
        self._add_new(tasks)
        self.take(tasks)
        self._skip_deleted({task["id"] for task in tasks})

    def take(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        """Write annotations of some tasks to the journal, in the order in which they were made."""
        positions = self.positions_of_tasks()
        users = {_user(annotation) for task in tasks for annotation in task.get("annotations", ())}
        if users - set(self._people):
            self._people = self._remote.server.people()
        annotations = {
            positions[task["id"]]: task_annotations(task, self._remote.config, self._people)
            for task in tasks
            if task["id"] in positions
        }
        with self._project.lock:
            state = self._project.state()
            withdrawn = [
                (item, person)
                for item, by_person in annotations.items()
                for person in sorted(_people_of_label_studio(state, item))
                if person not in by_person
            ]
        for item, person in withdrawn:
            self._project.label_writer.take_back(item, person=person)
        given = [(annotation, item) for item, by_person in annotations.items() for annotation in by_person.values()]
        for annotation, item in sorted(given, key=lambda pair: (pair[0].at, pair[0].number)):
            try:
                self._write(item, annotation)
            except SufficeError as error:
                # An annotation that cannot be used does not block the others.
                self._say_once(f"Annotation {annotation.number} is left out: {error}.")

    def follow_classes(self) -> None:
        """Add choices that were added in Label Studio; removed choices remain classes.

        Raises:
            LabelStudioError: The labelling configuration shows or asks for something else.
        """
        config = self._remote.present_config()
        if config._replace(classes=()) != self._remote.config._replace(classes=()):
            raise LabelStudioError(
                "the labelling configuration of the project now shows or asks for something else; nothing was changed. "
                "Restore it, or start a new project of suffice in another folder with --folder"
            )
        self._remote.config = config
        present = self._project.settings.classes
        added = [name for name in config.classes if name not in present]
        if added:
            try:
                self._project.class_editor.change([*present, *added], person=ASKER, before=present)
            except SufficeError as error:
                self._say_once(f"The choice {added[0]!r} is not added yet: {error}.")

    def positions_of_tasks(self) -> dict[int, int]:
        """The item of each task, by the number of the task."""
        if len(self._positions) != self._project.size:
            rows = self._project.contents.rows(range(self._project.size))
            self._positions = {int(row[0]): position for position, row in enumerate(rows)}
        return self._positions

    def changed_tasks(self, event: Mapping[str, Any]) -> list[int] | None:
        """Numbers of the tasks whose annotations changed, by the content of a webhook; None if it is not known."""
        action, annotation = event.get("action"), event.get("annotation")
        if action in {"ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED"}:
            annotations = annotation if isinstance(annotation, list) else [annotation]
            numbers = [one.get("task") if isinstance(one, Mapping) else None for one in annotations]
            positions = self.positions_of_tasks()
            existing = [int(number) for number in numbers if number in positions]
            return existing if len(existing) == len(numbers) else None
        if action == "ANNOTATIONS_DELETED":
            return self._annotated_tasks({str(deleted.get("id")) for deleted in event.get("annotations", ())})
        return None

    def _annotated_tasks(self, annotations: set[str]) -> list[int]:
        """Numbers of the tasks of some annotations, from the journal; other annotations need not be removed."""
        positions = self.positions_of_tasks()
        with self._project.lock:
            state = self._project.state()
            return [
                task
                for task, position in positions.items()
                for act in state.acts.of_item(position)
                if (act.request or "").startswith(_REQUEST_PREFIX) and (act.request or "").split(":")[1] in annotations
            ]

    def _add_new(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        positions = self.positions_of_tasks()
        new = [task for task in tasks if task["id"] not in positions]
        if not new:
            return
        settings, config = self._project.settings, self._remote.config
        try:
            values = task_values(config, new)
            if settings.shown == "image":
                values[config.field] = saved_images(self._remote.server, Path(settings.root), config, new)
            columns = {name: values.get(name, [""] * len(new)) for name in settings.columns}
            name = free_name(("task_id", "label_studio_task"), columns)
            data = {name: [str(task["id"]) for task in new], **columns}
            self._project.importer.add_items(data, person=ASKER, id=name)
        except UnreachableError:
            raise
        except SufficeError as error:
            self._say_once(f"{count(len(new), 'new task')} cannot be added: {error}.")

    def _write(self, item: int, annotation: TaskAnnotation) -> None:
        project, (person, label) = self._project, (annotation.person, annotation.label)
        writer = project.label_writer
        with project.lock:
            state = project.state()
            acts = [act for act in state.acts.of_item(item) if act.person == person]
            newest = acts[-1] if acts else None
            decides = (deciding := state.acts.deciding(item)) is not None and deciding.person == person
            present, in_check = state.label_of(item), state.checks.includes(item)
            saw = self._show and state.predictions.was_shown(item, ASKER) and not in_check
            request = f"{_REQUEST_PREFIX}{annotation.number}:{state.seq}"
        if label is None:
            if newest is not None and "label" in newest.data:
                writer.take_back(item, person=person)
                newest = None
            if newest is None:
                writer.skip(item, person=person, reason=annotation.reason, request=request)
            return
        if newest is None or newest.data.get("label") != label:
            if newest is not None and not decides:
                writer.take_back(item, person=person)
                newest = None
            if newest is None:
                writer.label(item, label, person=person, request=request, saw_prediction=saw, outside_range=True)
            else:
                writer.correct(item, label, person=person, request=request, saw_prediction=saw, outside_range=True)
            present = label if newest is not None or present is None else present
        if annotation.decides and present != label:
            truth = f"{request}:truth"
            writer.correct(item, label, person=person, request=truth, saw_prediction=saw, outside_range=True)

    def _skip_deleted(self, present: set[int]) -> None:
        """Skip items whose task was deleted; labels of deleted tasks are kept."""
        with self._project.lock:
            state = self._project.state()
            deleted = [
                position
                for number, position in self.positions_of_tasks().items()
                if number not in present and state.labels.is_open(position)
            ]
        for position in deleted:
            self._project.label_writer.skip(position, person=ASKER, reason="its task was deleted in Label Studio")

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._sentences:
            self._sentences.add(sentence)
            self._say(sentence)


class OrderPrediction(NamedTuple):
    """A prediction of suffice for a task: its number, its model version, and whether it holds a label."""

    number: int
    version: str
    has_label: bool


class StatusPublisher:
    """Publishes the next tasks and the decision of suffice in Label Studio.

    Args:
        remote: The project of Label Studio.
        project: The project of suffice.
        background: Learns its labels.
        show_predictions: Whether predictions hold the predicted choice, except those for random items.
    """

    def __init__(
        self, remote: RemoteProject, project: "Project", background: "BackgroundLearner", *, show_predictions: bool
    ) -> None:
        self._remote, self._project, self._background = remote, project, background
        self._show = show_predictions
        # Predictions of suffice in Label Studio, by task; and the section that was written last.
        self._predictions: dict[int, OrderPrediction] = {}
        self._section: Section | None = None

    def read_predictions(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        """Read the predictions of suffice from tasks, and remove superfluous ones."""
        self._predictions = {}
        for task in tasks:
            ours = [prediction for prediction in task.get("predictions", ()) if _is_ours(prediction)]
            # There is more than one if the program was killed between creating the new one and removing the old one.
            for superfluous in ours[:-1]:
                self._remote.remove_prediction(superfluous["id"])
            for newest in ours[-1:]:
                prediction = OrderPrediction(newest["id"], newest["model_version"], bool(newest.get("result")))
                self._predictions[task["id"]] = prediction

    def publish(self) -> None:
        """Publish the next tasks, and the decision of suffice."""
        self._publish_order()
        self._publish_section()

    def forget_section(self) -> None:
        """Compare the section with that in Label Studio at the next publication."""
        self._section = None

    def remove(self) -> None:
        """Remove the sections and the predictions of suffice from Label Studio; annotations and the journal stay."""
        now = self._remote.server.project(self._remote.number)
        texts = {key: str(now.get(key) or "") for key in ("expert_instruction", "description")}
        self._remote.change({key: with_section(text, "") for key, text in texts.items() if section_of(text)})
        for task in self._remote.server.tasks(self._remote.number):
            for prediction in task.get("predictions", ()):
                if _is_ours(prediction):
                    self._remote.remove_prediction(prediction["id"])
        self._predictions, self._section = {}, None

    def _publish_order(self) -> None:
        from suffice.project.background_learner import queue_size

        project, status = self._project, self._background.learning_status
        with project.lock:
            state = project.state()
            active = sum(time.time() - person.last < 600.0 for name, person in state.people.items() if name != ASKER)
            pending, check = len(state.checks.pending()), state.checks.open_check
            wanted = pending or queue_size(max(1, active), state.left)
        asked = project.assigner.next(ASKER, wanted, queue=status.queue) if wanted else []
        if check is not None:
            asked = [assignment for assignment in asked if assignment.check]
        version = MODEL_VERSION if check is None else f"{MODEL_VERSION} check {check.number}"
        rows = project.contents.rows([assignment.position for assignment in asked]) if asked else []
        order = {int(row[0]): assignment for row, assignment in zip(rows, asked, strict=True)}
        # Add new predictions before removing old ones, because Label Studio serves tasks at random if there are none.
        self._add_predictions(order, version, self._predicted(order) if self._show and check is None else {})
        changes: dict[str, Any] = {} if self._remote.about.get("sampling") == SAMPLING else {"sampling": SAMPLING}
        if order and self._remote.about.get("model_version") != version:
            # Let Label Studio serve the tasks that have a prediction of this version.
            changes["model_version"] = version
        self._remote.change(changes)
        for task, prediction in list(self._predictions.items()):
            # Predictions of earlier checks contain no label, and mark the tasks of a check.
            answered_check = prediction.version not in (MODEL_VERSION, version)
            in_check = check is not None and prediction.version == version
            if task not in order and not answered_check and not in_check:
                self._remote.remove_prediction(prediction.number)
                del self._predictions[task]

    def _add_predictions(self, order: "Mapping[int, Assignment]", version: str, labels: Mapping[int, str]) -> None:
        """Write predictions whose scores order the tasks.

        Args:
            order: Assignments by the numbers of their tasks, in order.
            version: Model version of the predictions.
            labels: Labels to show, by item.
        """
        with self._project.lock:
            # A number that increases with every requested item, so that earlier items keep their position.
            first = self._project.state().seq
        for place, (task, assignment) in enumerate(order.items()):
            before, label = self._predictions.get(task), labels.get(assignment.position)
            if before is not None and before[1:] == (version, label is not None):
                continue
            if label is not None:
                self._project.label_writer.show_prediction(assignment.position, person=ASKER)
            result = [] if label is None else self._remote.config.result(label)
            content = {"task": task, "result": result, "score": _score(first + place), "model_version": version}
            made = self._remote.server.call("POST", "/api/predictions/", content)
            if before is not None:
                self._remote.remove_prediction(before.number)
            self._predictions[task] = OrderPrediction(int(made["id"]), version, label is not None)

    def _predicted(self, order: "Mapping[int, Assignment]") -> dict[int, str]:
        """Predicted choices of items that were not drawn at random."""
        with self._project.lock:
            state = self._project.state()
            random = state.random_items()
            positions = [assignment.position for assignment in order.values()]
            chosen = [item for item in positions if item not in random and not state.checks.includes(item)]
        if not chosen:
            return {}
        try:
            labels = self._background.predictor().predict(self._project.X[chosen]).labels
        except SufficeError:
            return {}  # the model has not begun
        return dict(zip(chosen, map(str, labels.tolist()), strict=True))

    def _publish_section(self) -> None:
        from suffice.project.status_summary import status

        section = status_section(status(self._project, self._background.learning_status), self._project.settings.name)
        if section == self._section:
            return
        # People may have changed the texts meanwhile.
        now = self._remote.read()
        changes: dict[str, Any] = {}
        instruction, description = (str(now.get(key) or "") for key in ("expert_instruction", "description"))
        if section_of(instruction) != section.instruction:
            changes["expert_instruction"] = with_section(instruction, section.instruction)
        if section_of(description) != section.description:
            changes["description"] = with_section(description, section.description)
        if not section_of(instruction):
            # Only at the first publication, so that people can switch it off later.
            changes["show_instruction"] = True
        self._remote.change(changes)
        self._section = section


class LabelStudioSync:
    """Synchronises a project of suffice and a project of Label Studio.

    The methods are called by one thread; :meth:`notify` may be called by others.

    Args:
        server: The server.
        number: Number of the project in Label Studio.
        project: The project of suffice; the id of an item is the number of its task.
        background: Learns its labels; started and closed by the caller.
        show_predictions: Whether predictions hold the predicted choice, except those for random items. Labels of such
            tasks are recorded as given by somebody who saw a prediction.
        say: Called with a sentence when the connection is lost or found again, and for what is left out.
        every: Seconds between two readings of all tasks, at least; a reading that takes long is repeated less often.

    Attributes:
        n_read: How often all tasks were read.
    """

    def __init__(  # noqa: PLR0913 - options by keyword
        self,
        server: LabelStudio,
        number: int,
        project: "Project",
        background: "BackgroundLearner",
        *,
        show_predictions: bool = False,
        say: Callable[[str], None] = lambda _: None,
        every: float = 600.0,
    ) -> None:
        self._project, self._background = project, background
        self._remote = RemoteProject(server, number)
        self._annotations = AnnotationImporter(self._remote, project, show_predictions=show_predictions, say=say)
        self._publisher = StatusPublisher(self._remote, project, background, show_predictions=show_predictions)
        self._say, self._every = say, every
        self._news: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        # Counts of tasks and annotations when they were read last.
        self._counts: tuple[int, ...] = ()
        # The last event and the results of the model at the last publication.
        self._done: tuple[int, LearningStatus | None] = (-1, None)
        self._read_at = self._probed_at = float("-inf")
        self._interval = every
        self.n_read = 0

    def notify(self, event: Mapping[str, Any] | None) -> None:
        """Signal a change in Label Studio.

        Args:
            event: The content of a webhook request; None if it is not known what changed.
        """
        self._news.put(event)

    def read_all(self) -> None:
        """Compare all tasks and annotations with the journal, and write the differences to the journal.

        Raises:
            LabelStudioError: Label Studio does not answer, or has no tasks any more. Events written so far are correct.
        """
        start = time.monotonic()
        remote = self._remote
        remote.read()
        self._annotations.follow_classes()
        tasks = remote.server.tasks(remote.number)
        if not tasks:
            raise LabelStudioError(
                f"project {remote.number} of Label Studio has no tasks any more; nothing was changed. Restore them, or "
                "start a new project of suffice in another folder with --folder"
            )
        self._publisher.read_predictions(tasks)
        self._annotations.take_all(tasks)
        self._counts = _counts(remote.server.project(remote.number))
        self._read_at = self._probed_at = time.monotonic()
        self._interval = max(self._every, 50.0 * (self._read_at - start))
        self.n_read += 1
        self._background.wake()

    def read_tasks(self, numbers: Iterable[int]) -> None:
        """Compare the annotations of some tasks with the journal, and write the differences to the journal."""
        tasks = []
        for number in dict.fromkeys(numbers):
            try:
                tasks.append(self._remote.server.call("GET", f"/api/tasks/{number}/"))
            except LabelStudioError as error:
                if getattr(error, "code", None) != 404:
                    raise
                self._read_at = float("-inf")  # the task was deleted: read all tasks
        self._annotations.take(tasks)
        self._background.wake()

    def publish(self) -> None:
        """Publish the next tasks, and the decision of suffice."""
        self._publisher.publish()

    def remove(self) -> None:
        """Remove the sections and the predictions of suffice from Label Studio; annotations and the journal stay."""
        self._publisher.remove()

    def update(self, timeout: float = 600.0) -> None:
        """Read all annotations, learn them, and publish.

        Args:
            timeout: Seconds to wait until the model has learned the labels.
        """
        self.read_all()
        self._background.wait_settled(timeout)
        self.publish()

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Synchronise until :meth:`close`. If Label Studio cannot be reached, try again repeatedly.

        Args:
            ready: Called when both sides are in step for the first time.
        """
        wait, lost = 0.5, False
        while not self._closing.is_set():
            try:
                self._step()
            except (SufficeError, AttributeError, KeyError, TypeError, ValueError) as error:
                # Other errors, for example from a response without an expected field.
                reason = str(error) if isinstance(error, SufficeError) else f"Label Studio's answer has no {error}"
                if not lost:
                    self._say(f"{reason}. Trying again until it works; labels stay in Label Studio meanwhile.")
                lost, self._read_at, self._done = True, float("-inf"), (-1, None)
                self._publisher.forget_section()
                self._closing.wait(wait)
                wait = min(30.0, 2.0 * wait)
                continue
            if lost:
                self._say("The connection to Label Studio works again. All annotations were read.")
                lost, wait = False, 0.5
            ready()
            ready = _nothing
            self._closing.wait(0.2)

    def close(self) -> None:
        """Let :meth:`run` end."""
        self._closing.set()

    def _step(self) -> None:
        now = time.monotonic()
        if now - self._read_at > self._interval:
            _drained(self._news)
            self.read_all()
        else:
            self._take_in(_drained(self._news))
            if now - self._probed_at > min(10.0, self._every):
                self._probe()
        if not self._is_published():
            # The order includes the newest label if it is learned soon; nobody waits for it.
            self._background.wake()
            self._background.wait_settled(2.0)
            status = self._background.learning_status
            self.publish()
            with self._project.lock:
                self._done = self._project.state().seq, status

    def _is_published(self) -> bool:
        with self._project.lock:
            return self._done[0] == self._project.state().seq and self._done[1] is self._background.learning_status

    def _take_in(self, events: Sequence[Mapping[str, Any] | None]) -> None:
        numbers: list[int] = []
        for event in events:
            changed = None if event is None else self._annotations.changed_tasks(event)
            if changed is None:
                self.read_all()
                return
            numbers += changed
        if numbers:
            self.read_tasks(numbers)
            self._counts = _counts(self._remote.server.project(self._remote.number))

    def _probe(self) -> None:
        """Check that Label Studio is reachable, and whether something changed without a call of the webhook."""
        self._probed_at = time.monotonic()
        before = self._remote.about["label_config"]
        now = self._remote.read()
        if _counts(now) != self._counts or now["label_config"] != before:
            self.read_all()


def _nothing() -> None:
    pass


def _drained(news: "queue.SimpleQueue[Any]") -> list[Any]:
    events = []
    while True:
        try:
            events.append(news.get_nowait())
        except queue.Empty:
            return events


def _counts(project: Mapping[str, Any]) -> tuple[int, ...]:
    keys = ("task_number", "total_annotations_number", "skipped_annotations_number")
    return tuple(int(project.get(key) or 0) for key in keys)


def _is_ours(prediction: Mapping[str, Any]) -> bool:
    """Whether suffice has made a prediction."""
    version = prediction.get("model_version")
    return isinstance(version, str) and re.fullmatch(rf"{MODEL_VERSION}( check \d+)?", version) is not None


def _people_of_label_studio(state: "ProjectState", item: int) -> set[str]:
    """People who labelled an item in Label Studio, from the journal."""
    return {act.person for act in state.acts.of_item(item) if (act.request or "").startswith(_REQUEST_PREFIX)}


def _score(place: int) -> float:
    """A number from 0 to 1 that increases with the position."""
    return place / (place + 1000.0)


def free_name(names: Sequence[str], columns: Iterable[str]) -> str:
    """The first of some names that no column has; if all are used, the last one with underscores appended.

    Examples:
        >>> free_name(["label", "choice"], ["label", "text"])
        'choice'
    """
    taken = set(columns)
    name = next((each for each in names if each not in taken), names[-1])
    while name in taken:
        name += "_"
    return name


_ENDINGS: Final = {b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"RIFF": ".webp", b"BM": ".bmp"}


def saved_images(
    server: LabelStudio, folder: Path, config: LabelConfig, tasks: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Save the images of tasks in a folder, and return the names of the files; existing files are kept.

    Args:
        server: The server that holds them.
        folder: The folder, which is created.
        config: The labelling configuration.
        tasks: The tasks.

    Raises:
        InvalidValueError: An image is on another server, or has no known image format.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    names = []
    for task, address in zip(tasks, task_values(config, tasks)[config.field], strict=True):
        found = next(folder.glob(f"{int(task['id'])}.*"), None)
        if found is None:
            content = server.file(address)
            ending = next((ending for start, ending in _ENDINGS.items() if content.startswith(start)), None)
            if ending is None:
                raise InvalidValueError(
                    f"the image of task {task['id']}, {address[:200]!r}, must be PNG, JPEG, GIF, WebP or BMP"
                )
            found = folder / f"{int(task['id'])}{ending}"
            part = found.with_suffix(".part")
            part.write_bytes(content)
            part.replace(found)
        names.append(found.name)
    return names


class WebhookReceiver:
    """The ASGI application that Label Studio calls; it answers immediately and passes the changes on.

    Args:
        secret: What the header ``X-Suffice-Secret`` must hold.
        notify: Called with the content of each request, or None if that is not understood or too large.
        most: Largest content in bytes.
    """

    def __init__(
        self, secret: str, notify: Callable[[Mapping[str, Any] | None], None], *, most: int = 4 * 2**20
    ) -> None:
        self._secret, self._notify, self._most = secret.encode(), notify, most

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        status, body = await self._answer(scope, receive)
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Any, receive: Any) -> tuple[int, bytes]:
        from hmac import compare_digest

        if scope["path"] != "/webhook":
            return 404, b"there is only /webhook here\n"
        if scope["method"] != "POST":
            return 405, b"POST is expected\n"
        sent = dict(scope["headers"]).get(SECRET_HEADER.lower().encode(), b"")
        if not compare_digest(sent, self._secret):
            return 401, f"the header {SECRET_HEADER} is missing or wrong\n".encode()
        content, more = b"", True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return 400, b"the request ended early\n"
            content += message.get("body", b"") if len(content) <= self._most else b""
            more = message.get("more_body", False)
        try:
            event = json.loads(content) if len(content) <= self._most else None
        except ValueError:
            event = None
        self._notify(event if isinstance(event, Mapping) else None)
        return 200, b"ok\n"


def registered_webhook(server: LabelStudio, project: int, url: str, secret: str) -> int:
    """Let Label Studio call an address when annotations or tasks change; return the number of the webhook.

    Webhooks of earlier runs with the same secret are replaced.

    Args:
        server: The server.
        project: Number of the project.
        url: Where Label Studio reaches :class:`WebhookReceiver`.
        secret: The secret that it sends.
    """
    remove_webhooks(server, project, secret)
    content = {
        "project": project,
        "url": url,
        "headers": {SECRET_HEADER: secret},
        "send_payload": True,
        "send_for_all_actions": False,
        "actions": list(ACTIONS),
    }
    return int(server.call("POST", "/api/webhooks/", content)["id"])


def remove_webhooks(server: LabelStudio, project: int, secret: str) -> None:
    """Remove the webhooks that were registered with a secret."""
    for each in server.call("GET", "/api/webhooks/", project=project):
        if (each.get("headers") or {}).get(SECRET_HEADER) == secret:
            server.call("DELETE", f"/api/webhooks/{each['id']}/")


#: The file in the folder of a project with the number of its project of Label Studio.
LINK_FILE: Final = "label-studio.json"


class Link(NamedTuple):
    """The project of Label Studio that belongs to a project of suffice, and the secret of its webhook."""

    url: str
    project: int
    secret: str


def project_link(folder: Path, url: str, project: int) -> Link:
    """The link of a project of suffice, which is written if there is none.

    Args:
        folder: Folder of the project.
        url: Address of Label Studio.
        project: Number of the project there.

    Raises:
        InvalidValueError: The project belongs to another one.
    """
    from secrets import token_urlsafe

    from suffice.files import write_bytes_whole

    file = folder / LINK_FILE
    if file.exists():
        try:
            kept = Link(**json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            raise SufficeError(f"{file} is damaged; remove it if the project belongs to {url}") from None
        if (kept.url, kept.project) != (url, project):
            raise InvalidValueError(
                f"{folder} belongs to project {kept.project} of {kept.url}; give another folder with --folder, or "
                f"change the address in {file} if the server has moved"
            )
        return kept
    link = Link(url, project, token_urlsafe(32))
    write_bytes_whole(file, f"{json.dumps(link._asdict())}\n".encode())
    file.chmod(0o600)
    return link


def created_project(
    folder: Path, server: LabelStudio, number: int, *, features: Path | None = None, **options: Any
) -> "Project":
    """Create a project of suffice from the tasks of a project of Label Studio.

    Images are saved in a folder next to the project, unless features are given.

    Args:
        folder: Folder of the new project.
        server: The server.
        number: Number of the project in Label Studio.
        features: Features of the tasks in the order of their numbers, as a .npy file.
        **options: Options of :func:`suffice.project.create_project`.

    Raises:
        InvalidValueError: The configuration or the tasks cannot be used; nothing is created.
    """
    from suffice.project.create import create_project

    found = server.project(number)
    config = label_config(str(found["label_config"]))
    tasks = server.tasks(number)
    if len(tasks) < 2:
        raise InvalidValueError(
            f"project {number} of Label Studio has {count(len(tasks), 'task')}; import the tasks there first"
        )
    values = task_values(config, tasks)
    name = free_name(("task_id", "label_studio_task"), values)
    data: dict[str, list[Any]] = {name: [str(task["id"]) for task in tasks], **values}
    about: dict[str, Any] = {
        **options,
        "classes": config.classes,
        "id": name,
        "target": free_name(("label", "choice", "answer"), data),
    }
    if features is not None:
        project = create_project(folder, data, features=features, **about)
    elif config.shown == "Image":
        import csv

        images = folder.with_name(f"{folder.stem}-images")
        data[config.field] = saved_images(server, images, config, tasks)
        table = images / "tasks.csv"
        with table.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([list(data), *zip(*data.values(), strict=True)])
        project = create_project(folder, table, image=config.field, **about)
    else:
        project = create_project(folder, data, text=config.field if config.shown == "Text" else None, **about)
    # A title may be invalid as the name of a project.
    with suppress(SufficeError):
        project.change_settings({"name": str(found["title"])}, person=ASKER)
    return project
