"""A labelling project: assignment of items to people, and durable recording of their answers."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from suffice.arguments import real, whole
from suffice.checks import Guarantee, spent_alpha
from suffice.decision import Decision
from suffice.errors import InvalidValueError, SufficeError
from suffice.files import make_private
from suffice.learner.model_check import CheckedQuantity, checked_quantity
from suffice.numerics import Floats
from suffice.presentation.messages import decision_words
from suffice.project.accounts import (
    Account,
    NotAllowedError,
    Role,
    checked_role,
    folded,
    found_account,
    is_last_manager,
    kept_link,
    kept_password,
    made_link_token,
)
from suffice.project.events import (
    ClassChange,
    Draft,
    Event,
    EventKind,
    Label,
    checked_label,
    checked_person,
    checked_reason,
    checked_request,
)
from suffice.project.items import Item
from suffice.project.learned_files import FOLDER, LearnedFiles
from suffice.project.prediction_log import prediction_data, predictions_of
from suffice.project.project_check import (
    CheckDraw,
    ProjectCheck,
    ProjectGuarantee,
    drawn_items,
    rounded_numbers,
)
from suffice.project.settings import Settings
from suffice.project.state import Answer, PredictedLabel, ProjectState
from suffice.project.storage import (
    FILE,
    Connection,
    Database,
    StorageError,
    features_checksum,
    mapped_features,
    read_events,
    read_features,
    read_ids,
    read_items_at,
    read_rows_at,
    undamaged,
    write_contents,
    write_events,
)

if TYPE_CHECKING:
    from suffice.learner.suspicious_labels import SuspiciousLabel
    from suffice.project.incoming_rows import Conflicts, ImportReport, MatchBy

BY_MODEL = "the model is least sure of it"
#: The reason for an item in a screening.
BY_RELEVANCE = "by the model it is the likeliest to be relevant"
AT_FIRST = "drawn at random: the model starts from such items"
TO_ESTIMATE = "drawn at random, to estimate the error"
#: The reason for an item if the model has chosen no free item.
AT_RANDOM = "drawn at random"
SECOND_OPINION = "a second opinion: somebody else has labelled it too"
AGAIN = "asked before and not answered yet"
#: The reason for an item of a random check.
IN_CHECK = "drawn at random for the check"
# Products of a share and a count may be above a whole number by rounding.
_ROUNDING: Final = 1e-9
# Maximal number of attempts to predict for a check while other people add labels.
_TRIES: Final = 5
#: Returns the predictions of a model for all items. Arguments: the name of the model, and the answers to learn.
Predict = Callable[[str, list[Answer]], NDArray[Any]]


class Assignment(NamedTuple):
    """An item that a person is asked for.

    Attributes:
        position: The item.
        until: End of the reservation, in seconds since 1970.
        why: Reason for this item.
        new: Whether this is the first request; False if the person was asked before and has not answered.
        random: Whether a new item was drawn at random; None for second opinions, items that were asked for before, and
            items of a check.
        check: Whether it is an item of the open check. The model's prediction must not be shown for it.
    """

    position: int
    until: float
    why: str
    new: bool = True
    random: bool | None = None
    check: bool = False


class AssignmentRequest(NamedTuple):
    """A request for items.

    Attributes:
        person: The person who will label.
        number: Maximal number of items.
        queue: Items chosen by the model, the most useful first.
        order: All items, in the order in which random items are drawn. It does not depend on labels.
        now: The present time, by the clock of the leases.
    """

    person: str
    number: int
    queue: Sequence[int]
    order: NDArray[np.intp]
    now: float


def choose(state: ProjectState, settings: Settings, request: AssignmentRequest) -> list[Assignment]:
    """The next items for a person: items of an open check, unanswered items, second opinions, then new items.

    Before the model has started, new items are drawn at random. Afterwards a share of the new items is drawn at random,
    see :func:`is_random`. The other items are chosen by the model, or at random if the model has chosen none.

    Args:
        state: The state of the project.
        settings: Settings of the project.
        request: The person and the number of items.

    Returns:
        At most the requested number of items. Items that are reserved for other people are not included.
    """
    now, until = request.now, request.now + settings.lease
    pending = state.checks.pending().tolist()
    in_check = frozenset(pending)
    open_ones = [(item, lease) for item, lease in state.assigned.of_person(request.person) if lease.until > now]
    kept = [_kept(state, item, lease.until, now=now, until=until) for item, lease in open_ones]
    of_check = [each._replace(why=IN_CHECK, check=True) for each in kept if each.position in in_check]
    asked = of_check[: request.number]
    taken = {item for item, _ in open_ones}

    def free(items: Iterable[int]) -> Iterator[int]:
        """The items that are neither reserved nor assigned in this call."""
        for item in items:
            lease = state.assigned.lease_of(item)
            held = lease is not None and now < lease.until and lease.person != request.person
            if item not in taken and not held:
                taken.add(item)
                yield item

    for item in islice(free(pending), request.number - len(asked)):
        asked.append(Assignment(item, until, IN_CHECK, check=True))
    asked += [each for each in kept if each.position not in in_check][: request.number - len(asked)]
    seconds = free(_second_opinions(state, settings, request.person))
    for item in islice(seconds, request.number - len(asked)):
        asked.append(Assignment(item, until, SECOND_OPINION))
    if len(asked) < request.number:
        new = _new_items(state, settings, request, free)
        drawn = islice(new, request.number - len(asked))
        asked += [Assignment(item, until, why, random=random) for item, why, random in drawn]
    return asked


def has_started(state: ProjectState, settings: Settings) -> bool:
    """Whether there are enough labels for the model to start."""
    return state.n_labelled >= settings.initial


def is_random(share: float, asked: int, random: int) -> bool:
    """Whether the next new item must be drawn at random.

    Args:
        share: Share of random items.
        asked: New items that were asked for since the model started.
        random: Number of these items that were drawn at random.

    Examples:
        >>> [is_random(0.2, asked, random) for asked, random in ((0, 0), (1, 1), (4, 1), (5, 1))]
        [True, False, False, True]
    """
    return random < share * (asked + 1) - _ROUNDING


def wants_second(settings: Settings, item: int) -> bool:
    """Whether two people are asked for an item. This holds for a share of the items, drawn with the seed."""
    return crc32(f"{settings.seed}:{item}".encode()) < settings.overlap * 2**32


def _kept(state: ProjectState, item: int, ends: float, *, now: float, until: float) -> Assignment:
    # The reservation is renewed after half of its time, so that it does not end while the person is labelling.
    fresh = ends - now > (until - now) / 2.0
    return Assignment(item, ends if fresh else until, state.assigned.why(item) or AGAIN, new=not fresh)


def _asked_data(asked: Assignment, *, started: bool) -> dict[str, Any]:
    data: dict[str, Any] = {"until": asked.until, "why": asked.why}
    return data if asked.random is None else data | {"random": asked.random, "started": started}


def _note_prediction(state: ProjectState, item: int, person: str, data: dict[str, Any]) -> None:
    """Record in the data of a label that the person has seen a prediction; raise an error for an item of a check."""
    if not (data.get("saw_prediction") or state.predictions.was_shown(item, person)):
        return
    if state.checks.includes(item):
        raise ConflictError(
            f"item {item} belongs to a check, and {person} has seen a prediction for it; somebody who has not seen it "
            "must label it, or skip it: then it counts as wrong"
        )
    data["saw_prediction"] = True


def _second_opinions(state: ProjectState, settings: Settings, person: str) -> Iterator[int]:
    if settings.overlap > 0.0:
        yield from (item for item in state.acts.single_opinions(person) if wants_second(settings, item))


# Number of items of the permutation that are examined together.
_LOOKED_AT: Final = 4096


def _permuted(state: ProjectState, order: NDArray[np.intp]) -> Iterator[int]:
    """Iterate over the open items in the order of the permutation, without reading more of the pool than needed."""
    for start in range(0, len(order), _LOOKED_AT):
        yield from map(int, state.labels.open_among(order[start : start + _LOOKED_AT]))


def _new_items(
    state: ProjectState,
    settings: Settings,
    request: AssignmentRequest,
    free: Callable[[Iterable[int]], Iterator[int]],
) -> Iterator[tuple[int, str, bool]]:
    """Items that nobody has answered, each with the reason and whether it is drawn at random."""
    drawn = free(_permuted(state, request.order))
    if not has_started(state, settings):
        yield from ((item, AT_FIRST, True) for item in drawn)
        return
    chosen = free(int(item) for item in request.queue if state.labels.is_open(int(item)))
    asked, random = state.assigned.n_asked, state.assigned.n_random
    by_choice = BY_MODEL if settings.positive is None else BY_RELEVANCE
    while True:
        to_check = is_random(settings.random_share, asked, random)
        item = None if to_check else next(chosen, None)
        by_model = item is not None
        if item is None:
            item = next(drawn, None)
        if item is None:
            return
        yield item, by_choice if by_model else TO_ESTIMATE if to_check else AT_RANDOM, not by_model
        asked, random = asked + 1, random + (not by_model)


def _new_secret(password: str | None) -> tuple[str | None, dict[str, Any]]:
    """The token of a new personal link, or None with a password; and the data for the journal."""
    if password is not None:
        return None, {"password": kept_password(password)}
    token = made_link_token()
    return token, {"link": kept_link(token)}


def _require_manager(state: ProjectState, account: Account) -> None:
    """Raise an error if the last account with the role manage would lose it while there are other accounts."""
    if is_last_manager(state.accounts, account.name):
        raise ConflictError(
            f"{account.name!r} is the last account with the role manage, and there are others; give one of them that "
            "role first"
        )


# If the system clock differs from the monotonic clock by more seconds than this, it was set to another time.
_JUMP: Final = 2.0


class _Moment(NamedTuple):
    """One point in time by three clocks: the system clock, the clock of the leases, and a monotonic clock."""

    wall: float
    steady: float
    monotonic: float


class _LeaseClock:
    """The clock of the leases: the system clock, without the jumps that occur when the system clock is set.

    Attributes:
        correction: Seconds that were added to the time of the system.
    """

    def __init__(self) -> None:
        self.correction = 0.0
        self._last: _Moment | None = None

    def moment(self) -> _Moment:
        """The present time by all three clocks."""
        wall, monotonic = time.time(), time.monotonic()
        if self._last is not None:
            jumped = (wall - self._last.wall) - (monotonic - self._last.monotonic)
            if abs(jumped) > _JUMP:
                self.correction -= jumped
        self._last = _Moment(wall, wall + self.correction, monotonic)
        return self._last

    def ends(self, given: float, until: float, now: _Moment, looked: float) -> float:
        """End of a lease that was read now.

        Args:
            given: Start of the lease, by the clock of the process that wrote it.
            until: End of the lease, by the same clock.
            now: The present time.
            looked: Time at which the journal was last read, by the monotonic clock. The lease is not older.
        """
        elapsed = min(max(0.0, now.wall - given), now.monotonic - looked)
        found, plain = now.steady + max(0.0, until - given) - elapsed, until + self.correction
        # Small differences come from rounding, or from clocks of several machines.
        return plain if abs(found - plain) < _JUMP else found


T = TypeVar("T")


class ConflictError(SufficeError):
    """An action that the state of the project does not allow."""


class WriteReceipt(NamedTuple):
    """Receipt of a written event.

    Attributes:
        seq: Number of its event.
        position: The item that it is about, or None.
        repeated: Whether the event existed already, and was not written again.
    """

    seq: int
    position: int | None
    repeated: bool


class Project:
    """An existing project, for one or many people, threads and processes.

    When a method returns, its changes are on the disk. If it raises an error, nothing was written, with one exception:
    if the connection to a database server was lost, the changes may have been written. Then send the request again with
    the same ``request``.

    Args:
        database: Database of the project.
        size: Number of items.

    Attributes:
        place: Location of the project, for messages.
        size: Number of items.
        lock: Hold this lock while reading the state.
    """

    def __init__(self, database: Database, size: int) -> None:
        self._database, self.size, self.place = database, size, database.place
        self.lock = threading.RLock()
        self._state = ProjectState(size)
        self._clock, self._looked = _LeaseClock(), float("-inf")
        self._X: Floats | None = None
        self._transformer: Any = None
        # Items are drawn at random in this order.
        self._order: NDArray[np.intp] | None = None
        made = self.state().made
        self._keep_private()
        if made is None:
            raise SufficeError(f"the journal of {self.place} has no beginning; take the project from a backup")
        with undamaged(self.place):
            self._made_with = Settings.from_dict(made.data["settings"])
            self._changed: tuple[Mapping[str, Any], Settings] = {}, self._made_with
            self._order = self._random_order()

    def _keep_private(self) -> None:
        """Restrict the files of the project to their owner, including files that earlier versions wrote."""
        file = self._database.file
        # A file that was opened by its own name may be in a folder with other files.
        if file is not None and file.name == FILE:
            kept = [each.name for each in file.parent.iterdir() if each.name.startswith(file.stem)]
            make_private(file.parent, [*kept, FOLDER])

    def _random_order(self) -> NDArray[np.intp]:
        """The order in which items are drawn at random. It changes when items are added."""
        made = self._state.n_items_made
        seed = [self.settings.seed, 7] if made is None else [self.settings.seed, 7, self.size]
        return np.random.default_rng(seed).permutation(self.size)

    @property
    def settings(self) -> Settings:
        """Settings of the project, with the present classes and the original model.

        They belong to the state that was read last. Hold :attr:`lock` to read settings and state that are consistent.
        """
        changes, settings = self._changed
        if changes is not self._state.changes:
            changes = self._state.changes
            settings = self._made_with.with_changes(changes)
            self._changed = changes, settings
        return settings

    def __enter__(self) -> "Project":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database of the project."""
        self._database.close()

    @property
    def X(self) -> Floats:  # noqa: N802 - the field's own name
        """Features of the items, ``n x D``. Large arrays are a memory map of a file in the folder of the project."""
        with self.lock:
            if self._X is None:
                file = self._database.file
                with self._database.reading() as connection, undamaged(self.place):
                    self._X = None if file is None else mapped_features(connection, self.size, file)
                    if self._X is None:
                        self._X = read_features(connection, self.size)
            return self._X

    @property
    def folder(self) -> Path | None:
        """The folder of the project; None if it is in PostgreSQL."""
        file = self._database.file
        return None if file is None else file.parent

    @cached_property
    def learned_files(self) -> LearnedFiles:
        """Files with the state of the learner; a project in PostgreSQL has none."""
        return LearnedFiles(None if self.folder is None else self.folder / FOLDER, self._features_checksum)

    @property
    def made_with(self) -> Mapping[str, Any]:
        """Options with which the data was read; empty in projects of version 0.11 or older."""
        with self.lock:
            made = self.state().made
        found: Mapping[str, Any] = {} if made is None else made.data.get("reading", {})
        return found

    @property
    def n_items_made(self) -> int:
        """Number of items that the project was made with; others were added later."""
        with self.lock:
            return self.state().n_items_made or self.size

    def transformer(self) -> Any:
        """The fitted transformer from a table with the project's columns to features, ``n x D``.

        A project does not store the transformer, because loading it would need pickle. It is fitted again to the items
        with which the project was made. Its output is then compared with the stored features.

        Raises:
            SufficeError: The features were given as a file, or cannot be computed again.
        """
        from suffice.project.item_features import fitted_transformer

        with self.lock:
            if self._transformer is None:
                self._transformer = fitted_transformer(self)
            return self._transformer

    def pipeline(self) -> Any:
        """The present model as a scikit-learn pipeline: transformers of the columns, and the fitted model.

        It predicts from a DataFrame, or a mapping from names to values, with the project's columns. If the features of
        the project were given as a file, it predicts from features. The pipeline is a copy: it does not change when the
        project learns more labels. It can be saved with joblib. Load such a file only if you trust its author, because
        loading it runs the code that it contains. ``suffice predict`` needs no such file.

        Raises:
            SufficeError: There are too few labels for a model, the model cannot learn them, or the features cannot be
                computed again.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> x = [k / 100 for k in range(100)]
            >>> project = create_project(f"{folder.name}/sides", {"x": x}, classes=["left", "right"])
            >>> for item in range(0, 100, 5):
            ...     written = project.label(item, "left" if x[item] < 0.5 else "right", person="ann")
            >>> pipeline = project.pipeline()
            >>> pipeline.predict({"x": [-3.0, 7.0]}).tolist()
            ['left', 'right']
            >>> project.close(); folder.cleanup()
        """
        from sklearn.pipeline import Pipeline

        from suffice.project.project_learner import learned_project

        predictor = learned_project(self).predictor()
        given = bool(self.made_with.get("features"))
        steps = [] if given else [("features", self.transformer())]
        steps += [] if predictor.transform is None else [("inputs", predictor.transform)]
        return Pipeline([*steps, ("model", predictor.model)])

    def _features_checksum(self) -> str:
        with self._database.reading() as connection:
            return features_checksum(connection)

    def state(self) -> ProjectState:
        """Present state of the project, with the events of other processes. Hold :attr:`lock` while reading it."""
        with self.lock, self._database.reading() as connection:
            return self._catch_up(connection)

    def events(self, after: int = 0) -> list[Event]:
        """The events of the journal after a number."""
        with self._database.reading() as connection, undamaged(self.place):
            return read_events(connection, after)

    def item(self, position: int) -> Item:
        """One item.

        Raises:
            InvalidValueError: There is none at that position.
        """
        return self.items([position])[0]

    def items(self, positions: Sequence[int]) -> list[Item]:
        """Several items, in the order asked for.

        Raises:
            InvalidValueError: There is none at a position.
        """
        checked = [self._position(position) for position in positions]
        with self._database.reading() as connection, undamaged(self.place):
            return read_items_at(connection, checked, self.settings)

    def rows(self, positions: Sequence[int]) -> list[tuple[str, ...]]:
        """Names of several items, each with its cells, in the order asked for.

        Raises:
            InvalidValueError: There is none at a position.
        """
        if len(positions) and not (0 <= min(positions) <= max(positions) < self.size):
            raise InvalidValueError(f"there is no such item; the project has items 0 to {self.size - 1}")
        with self._database.reading() as connection, undamaged(self.place):
            return read_rows_at(connection, positions, len(self.settings.columns))

    def next(self, person: str, n: int = 1, *, queue: Sequence[int] = ()) -> list[Assignment]:
        """The next items for a person, reserved for a while.

        Items that the person was asked for and has not answered are returned first. A repeated call returns the same
        items.

        Args:
            person: The person who will label.
            n: Number of items.
            queue: Items chosen by the model, the most useful first.

        Returns:
            At most ``n`` items; an empty list if all items are labelled, skipped or reserved for other people.
        """
        name, size = checked_person(person), whole(n, "n", least=1)

        def decide(state: ProjectState, now: float) -> tuple[list[Draft], list[Assignment]]:
            assert self._order is not None
            asked = choose(state, self.settings, AssignmentRequest(name, size, queue, self._order, now))
            started = has_started(state, self.settings)
            drafts = [
                Draft(EventKind.asked, name, each.position, _asked_data(each, started=started))
                for each in asked
                if each.new
            ]
            return drafts, [each._replace(until=each.until - self._clock.correction) for each in asked]

        return self._write(decide)[1]

    def label(
        self, position: int, label: Label, *, person: str, request: str | None = None, saw_prediction: bool = False
    ) -> WriteReceipt:
        """Write the label that a person gives an item.

        If somebody else has labelled it, this is a second opinion: the first label counts until it is corrected.

        Args:
            position: The item.
            label: The class, or the number.
            person: The person who acts.
            request: A name for this message: sent again under the same name, it is not written again.
            saw_prediction: Whether the person saw a prediction for the item before answering. Such a label is learned
                like any other, but it does not count as a random label.

        Raises:
            InvalidValueError: There is no such item, or the label cannot be used.
            ConflictError: The person has given it another label, or saw a prediction for an item of a check.
        """
        data: dict[str, Any] = {"label": label} | ({"saw_prediction": True} if saw_prediction else {})

        def check(state: ProjectState, item: int, name: str) -> Event | None:
            _note_prediction(state, item, name, data)
            given = state.acts.label_by(item, name)
            if given is not None and given.data["label"] != checked_label(self.settings, label):
                raise ConflictError(
                    f"{name} has labelled item {item} as {given.data['label']} already; correct it to change that"
                )
            return given

        return self._act(Draft(EventKind.labelled, person, position, data, request), check)

    def skip(self, position: int, *, person: str, reason: str = "", request: str | None = None) -> WriteReceipt:
        """Never ask for an item again; the other arguments are those of :meth:`label`.

        An item that somebody else has labelled keeps that label. Then only this person is not asked for it again.

        Args:
            position: The item.
            person: Who skips it.
            reason: Why, in at most 500 characters.
            request: A name for this message.

        Raises:
            InvalidValueError: There is no such item, or the reason is too long.
            ConflictError: The person has labelled it.
        """
        return self._skip(position, person, reason, request, unsure=False)

    def unsure(self, position: int, *, person: str, reason: str = "", request: str | None = None) -> WriteReceipt:
        """Record that a person does not know the label. The item is listed for review, and not requested again.

        The item counts as skipped until somebody labels it. The arguments are those of :meth:`skip`.

        Raises:
            InvalidValueError: There is no such item, or the reason is too long.
            ConflictError: The person has labelled it.
        """
        return self._skip(position, person, reason, request, unsure=True)

    def _skip(self, position: int, person: str, reason: str, request: str | None, *, unsure: bool) -> WriteReceipt:
        why = checked_reason(reason)
        data: dict[str, Any] = ({"unsure": True} if unsure else {}) | ({"reason": why} if why else {})

        def check(state: ProjectState, item: int, name: str) -> Event | None:
            if state.acts.label_by(item, name) is not None:
                raise ConflictError(f"{name} has labelled item {item}; undo or correct that, it cannot be skipped")
            return state.acts.skip_by(item, name)

        return self._act(Draft(EventKind.skipped, person, position, data, request), check)

    def correct(  # noqa: PLR0913 - all but the first two by keyword
        self,
        position: int,
        label: Label,
        *,
        person: str,
        request: str | None = None,
        saw_prediction: bool = False,
        only_own: bool = False,
    ) -> WriteReceipt:
        """Change the label that counts; the arguments are those of :meth:`label`.

        Args:
            position: The item.
            label: The class, or the number.
            person: The person who acts.
            request: A name for this message.
            saw_prediction: Whether the person saw a prediction for the item.
            only_own: Refuse to correct an item that somebody else has labelled or corrected.

        Raises:
            ConflictError: The item has no label, or the person saw a prediction for an item of a check.
            NotAllowedError: Somebody else has labelled it, with ``only_own``.
        """
        data: dict[str, Any] = {"label": label}
        if saw_prediction:
            data["saw_prediction"] = True

        def check(state: ProjectState, item: int, name: str) -> Event | None:
            _note_prediction(state, item, name, data)
            if state.label_of(item) is None:
                raise ConflictError(f"item {item} has no label to correct; label it")
            if only_own and not state.acts.is_only_of(item, name):
                raise NotAllowedError(
                    f"somebody else has labelled item {item} too; to correct that, the role review is needed"
                )
            return None

        return self._act(Draft(EventKind.corrected, person, position, data, request), check)

    def confirm(self, position: int, *, person: str, request: str | None = None) -> WriteReceipt:
        """Record that the present label is correct, so that :meth:`suspicious_labels` does not list it again.

        If the label is changed later, the confirmation does not hold for the new label.

        Args:
            position: The item.
            person: The person who acts.
            request: A name for this message: sent again under the same name, it is not written again.

        Raises:
            InvalidValueError: There is no such item.
            ConflictError: The item has no label.
        """
        item, name, sent = self._position(position), checked_person(person), checked_request(request)

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], WriteReceipt | None]:
            known = self._known(state, Draft(EventKind.confirmed, name, item, request=sent))
            if known is not None:
                return [], known
            label = state.label_of(item)
            if label is None:
                raise ConflictError(f"item {item} has no label to confirm; label it")
            return [Draft(EventKind.confirmed, name, item, {"label": label}, sent)], None

        return self._receipt(*self._write(decide))

    def suspicious_labels(self, n: int | None = None) -> "list[SuspiciousLabel]":
        """The labels, ranked by how unlikely they are to models that have not learned them, the least likely first.

        See :func:`suffice.learner.suspicious_labels.suspicious_labels`. The first labels should be reviewed; not all of
        them are wrong. Confirmed labels are left out. Items of checks are left out too: their labels are the evidence
        for a guarantee, and a review of only the labels that the model disagrees with would bias it.

        Args:
            n: How many labels to return; all if left out.

        Raises:
            InvalidValueError: ``n`` is not a whole number of at least 1.
            SufficeError: There are too few labels for a model, or the model cannot learn them.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> x = [k / 200 for k in range(200)]
            >>> project = create_project(f"{folder.name}/sides", {"x": x}, classes=["left", "right"])
            >>> for item in range(0, 200, 5):
            ...     label = "left" if x[item] < 0.5 or item == 150 else "right"
            ...     written = project.label(item, label, person="ann")
            >>> found = project.suspicious_labels(1)[0]
            >>> found.item, found.label, found.prediction
            (150, 'left', 'right')
            >>> written = project.confirm(150, person="ann")
            >>> project.suspicious_labels(1)[0].item == 150
            False
            >>> project.close(); folder.cleanup()
        """
        from suffice.project.project_learner import learned_project, suspicious_labels

        wanted = None if n is None else whole(n, "n", least=1)
        return self.open_to_review(suspicious_labels(learned_project(self), self.X))[:wanted]

    def show_prediction(self, position: int, *, person: str) -> PredictedLabel | None:
        """Record that a person is shown a prediction for an item, and return the imported prediction if there is one.

        Labels and corrections of this item by this person have ``saw_prediction`` from now on.

        Args:
            position: The item.
            person: Who sees it.

        Raises:
            InvalidValueError: There is no such item.
            ConflictError: The item belongs to a check.
        """
        item, name = self._position(position), checked_person(person)

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], PredictedLabel | None]:
            if state.checks.includes(item):
                raise ConflictError(
                    f"item {item} belongs to a check, so no prediction is shown for it: the label must not depend on it"
                )
            drafts = [] if state.predictions.was_shown(item, name) else [Draft(EventKind.prediction_shown, name, item)]
            return drafts, state.predictions.imported(item)

        return self._write(decide)[1]

    def add_items(
        self, data: Any, *, person: str, id: str | None = None, features: Any = None, check: bool = False
    ) -> int:
        """Add rows to the project, and return how many.

        The rows must have the columns of the project. Their features are computed by the transformers that were fitted
        when the project was made, see :meth:`transformer`. A column with the name of the target contains existing
        labels. Either all rows are added or none, also if the program is killed during the call. Other processes that
        have the project open read the new rows. The model learns all labels again, with the larger pool.

        A guarantee covers the items that existed when its check was drawn, and not items that are added later. An open
        check continues with its own items.

        Args:
            data: Path of a CSV or Parquet file, a DataFrame, a mapping from names of columns to values, or a list of
                texts.
            person: Who adds them.
            id: Column that names the items. By default the column that named the items of the project, if there is one,
                or a column called id; otherwise they are numbered.
            features: Features of the rows, or the path of a .npy file, if those of the project were given as a file.
            check: Change nothing, and return the number of rows that would be added.

        Raises:
            InvalidValueError: The rows cannot be used, or an id exists already.
            SufficeError: Features of new rows cannot be computed.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> project = create_project(f"{folder.name}/sizes", {"x": [1.0, 2.0, 3.0]}, classes=["small", "large"])
            >>> project.add_items({"x": [2.5, 7.0], "label": ["", "large"]}, person="ann")
            2
            >>> project.size, project.state().label_of(4), project.item(4).id
            (5, 'large', '5')
            >>> project.close(); folder.cleanup()
        """
        from suffice.project.incoming_rows import added_items

        name, first, classes = checked_person(person), self.size, self.settings.classes
        source, items = added_items(self, data, id=id, features=features)
        with self.lock:
            with self._database.exclusive() as connection:
                state = self._catch_up(connection)
                if state.labels.size != first:
                    raise ConflictError("somebody else has added items in this moment; try again")
                self._require_classes(classes)
                taken = read_ids(connection) & set(items.ids)
                if taken:
                    raise InvalidValueError(
                        f"the project has an item {min(taken)!r} already; each item must have a different name"
                    )
                if check:
                    return len(items)
                write_contents(connection, items, after=first)
                about = {"first": first, "count": len(items), "source": source}
                drafts = [Draft(EventKind.items_added, name, data=about)]
                drafts += [
                    Draft(EventKind.labelled, source, first + k, {"label": label}) for k, label in items.labels.items()
                ]
                events = write_events(connection, drafts, last=state.last, at=time.time())
            # Apply the events only after the transaction is committed.
            for event in events:
                self._take_in(event)
        return len(items)

    def _require_classes(self, classes: tuple[str, ...]) -> None:
        """Raise an error if labels were read before the classes were changed."""
        if self.settings.classes != classes:
            raise ConflictError("the classes were changed meanwhile; try again")

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
        """Import labels from a table.

        All labels are written together, or none. Importing the same file again changes nothing. Imported labels do not
        count as random labels unless their items were drawn at random.

        Args:
            data: Path of a CSV or Parquet file, a DataFrame, or a mapping from names of columns to values.
            label: Column of labels. Empty cells are left out.
            person: Who gave the labels.
            id: Column with the ids of the items; with ``by="text"`` the column with their texts.
            by: How rows are matched with items: by ``"id"``, by their order (``"row"``), or by the exact ``"text"``,
                which gives the label to all items with this text. By default a column of ids is used if there is
                one, else the text, else the order.
            conflicts: What to do if an item has another label: ``"keep"`` it, ``"replace"`` it by a correction, or
                add the new one as an ``"opinion"`` of the person.
            check: Write nothing, and return what would happen.

        Raises:
            InvalidValueError: The table cannot be read, a column is missing, or an argument is wrong.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> texts = ["win a free prize", "see you at lunch", "free money now", "are you home yet"]
            >>> project = create_project(f"{folder.name}/mails", texts, classes=["spam", "ham"])
            >>> found = {"text": ["free money now", "see you at lunch"], "kind": ["spam", "egg"]}
            >>> for sentence in project.import_labels(found, label="kind", person="ann").sentences():
            ...     print(sentence)
            2 of 2 rows belong to items, matched by their text.
            Items: 1 newly labelled.
            Rows with a label that cannot be used: 1 (egg 1).
            >>> project.close(); folder.cleanup()
        """
        from suffice.project.incoming_rows import label_drafts, matched_rows

        name, classes = checked_person(person), self.settings.classes
        rows = matched_rows(self, data, value=label, by=by, key=id)

        def decide(state: ProjectState, _: float) -> "tuple[list[Draft], ImportReport]":
            self._require_classes(classes)
            drafts, report = label_drafts(state, rows, name, conflicts)
            return [] if check else drafts, replace(report, written=bool(drafts) and not check)

        return self._write(decide)[1]

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
        """Import predictions of another model from a table. They are shown on request, and used for nothing else.

        Args:
            data: As for :meth:`import_labels`.
            prediction: Column of predictions.
            person: Who imports them.
            id: As for :meth:`import_labels`.
            by: As for :meth:`import_labels`.
            probability: Column with the probability of the predicted class. By default it is taken from columns
                ``p(class)``, as exported predictions have them, if there are such columns.
            source: What the predictions are called when they are shown; the name of the file by default.
            check: Write nothing, and return what would happen.

        Raises:
            InvalidValueError: The table cannot be read, a column is missing, or an argument is wrong.
        """
        from suffice.project.incoming_rows import matched_rows

        name, classes = checked_person(person), self.settings.classes
        rows = matched_rows(self, data, value=prediction, by=by, key=id, probability=probability)
        called = source or (Path(data).name if isinstance(data, str | os.PathLike) else "predictions")
        content = prediction_data(rows.values, rows.probabilities, classes, called)
        known = dict(predictions_of(content))

        def decide(state: ProjectState, _: float) -> "tuple[list[Draft], ImportReport]":
            self._require_classes(classes)
            new = {item: each for item, each in known.items() if state.predictions.imported(item) != each}
            report = replace(
                rows.report, predicted=len(new), same=len(known) - len(new), written=bool(new) and not check
            )
            drafts = [Draft(EventKind.predictions_imported, name, data=content)] if report.written else []
            return drafts, report

        return self._write(decide)[1]

    def open_to_review(self, found: "Sequence[SuspiciousLabel]") -> "list[SuspiciousLabel]":
        """The given labels, without those that were changed or confirmed and without items of a check."""
        with self.lock:
            state = self.state()
            return [
                each
                for each in found
                if state.label_of(each.item) == each.label
                and not state.labels.is_confirmed(each.item)
                and not state.checks.includes(each.item)
            ]

    def undo(self, *, person: str, request: str | None = None) -> WriteReceipt:
        """Take back the newest label, skip or correction of a person.

        The person is asked for that item again, before all other items.

        Raises:
            ConflictError: There is nothing to take back.
        """
        name, sent = checked_person(person), checked_request(request)

        def decide(state: ProjectState, now: float) -> tuple[list[Draft], WriteReceipt | None]:
            known = self._known(state, Draft(EventKind.undone, name, request=sent))
            if known is not None:
                return [], known
            act = state.acts.newest_of(name)
            if act is None:
                raise ConflictError(f"there is nothing of {name} to undo")
            data: dict[str, float] = {"of": act.seq}
            if state.acts.can_answer_after_undo(act):
                data["until"] = now + self.settings.lease
            return [Draft(EventKind.undone, name, act.item, data, sent)], None

        return self._receipt(*self._write(decide))

    def take_back(self, position: int, *, person: str) -> int:
        """Take back all answers of a person for an item: label, skip and corrections.

        Unlike :meth:`undo` it concerns one item, and nobody is asked for the item immediately.

        Args:
            position: The item.
            person: Who takes it back.

        Returns:
            Number of labels, skips and corrections that were taken back; 0 if there was nothing.

        Raises:
            InvalidValueError: There is no such item.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> project = create_project(f"{folder.name}/pets", {"x": [1, 2, 3, 4]}, classes=["cat", "dog"])
            >>> written = project.label(0, "cat", person="ann"), project.label(1, "dog", person="ann")
            >>> project.take_back(0, person="ann"), project.state().label_of(0), project.state().label_of(1)
            (1, None, 'dog')
            >>> project.close(); folder.cleanup()
        """
        item, name = self._position(position), checked_person(person)

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], None]:
            acts = [act for act in state.acts.of_item(item) if act.person == name]
            return [Draft(EventKind.undone, name, item, {"of": act.seq}) for act in reversed(acts)], None

        return len(self._write(decide)[0])

    def advise(self, decision: Decision) -> bool:
        """Record a change of the decision to stop. A decision from before the newest labels is ignored.

        Args:
            decision: The decision; its first sentence is the reason that is written.

        Returns:
            Whether an event was written.
        """
        reason = decision_words(decision.as_dict(), initial=self.settings.initial).sentences[0]
        n_labelled = decision.n_labelled if decision.since is None else decision.since

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], None]:
            stands = state.advice is not None
            if decision.n_labelled != state.n_learned or decision.stop == stands:
                return [], None
            kind = EventKind.advised if decision.stop else EventKind.withdrawn
            return [Draft(kind, data={"n_labelled": n_labelled, "reason": reason})], None

        return bool(self._write(decide)[0])

    @property
    def current_settings(self) -> Settings:
        """The settings with the present model; :attr:`settings` contain the original model."""
        with self.lock:
            return self.settings.using(self.state().model)

    def switch_model(self, model: str, *, person: str, request: str | None = None) -> WriteReceipt:
        """Replace the model. The new model learns all labels of the project; no label is lost.

        Args:
            model: One of :meth:`suffice.project.settings.Settings.models`.
            person: The person who acts.
            request: A name for this message: sent again under the same name, it is not written again.

        Raises:
            InvalidValueError: The project cannot have this model, or its rule cannot judge by it.
            ConflictError: The project has this model already.
        """
        name, sent = checked_person(person), checked_request(request)
        changed = self.settings.using(model)
        changed.estimator()
        changed.require_usable_rule()
        draft = Draft(EventKind.model_changed, name, data={"model": model}, request=sent)

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], WriteReceipt | None]:
            known = self._known(state, draft)
            if known is not None:
                return [], known
            if self.settings.using(state.model).model == model:
                raise ConflictError(f"the project uses the model {model} already")
            return [draft], None

        return self._receipt(*self._write(decide))

    @property
    def first_settings(self) -> Settings:
        """The settings that the project was made with."""
        return self._made_with

    def change_settings(self, changes: Mapping[str, Any], *, person: str, request: str | None = None) -> WriteReceipt:
        """Change settings: the name, the guidelines, descriptions of classes, costs, the target error, the overlap.

        After a change of the costs or of the target error, the model learns all labels again, and the rule is applied
        with the new values from the first label on. The journal records who changed what.

        Args:
            changes: As for :meth:`suffice.project.settings.Settings.checked_changes`.
            person: The person who acts.
            request: A name for this message: sent again under the same name, it is not written again.

        Raises:
            InvalidValueError: A value cannot be used, or the setting cannot be changed.
            ConflictError: Nothing changes.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> project = create_project(f"{folder.name}/pets", {"x": [1, 2, 3, 4]}, classes=["cat", "dog"])
            >>> receipt = project.change_settings({"mistake_cost": 5.0, "at_most": 0.1}, person="ann")
            >>> project.settings.costs(), project.settings.at_most
            ((1.0, 5.0), 0.1)
            >>> project.close(); folder.cleanup()
        """
        name, sent = checked_person(person), checked_request(request)

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], WriteReceipt | None]:
            known = self._known(state, Draft(EventKind.settings_changed, name, request=sent))
            if known is not None:
                return [], known
            now = self.settings
            new = now.checked_changes(changes)
            if not new:
                raise ConflictError("nothing changes: the settings have these values already")
            before = {key: getattr(now, key) for key in new}
            data = {"settings": new, "before": before}
            return [Draft(EventKind.settings_changed, name, data=data, request=sent)], None

        return self._receipt(*self._write(decide))

    def setting_changes(self) -> list[Event]:
        """The events that changed settings, classes or the model, the newest first."""
        kinds = {EventKind.settings_changed, EventKind.classes_changed, EventKind.model_changed}
        return [event for event in reversed(self.events()) if event.kind in kinds]

    # Accounts.

    def accounts(self) -> tuple[Account, ...]:
        """The accounts, in the order in which they were made; none if everybody may choose a name.

        Accounts decide who may do what on the page. People who can write the files of the project can do everything.
        """
        with self.lock:
            return tuple(self.state().accounts.values())

    def add_account(self, name: str, *, role: Role, person: str, password: str | None = None) -> str | None:
        """Make an account. With the first one, the page asks people to sign in.

        The journal contains a salted scrypt hash of a password, and a SHA-256 hash of the token of a personal link.
        Neither the password nor the token can be computed from them.

        Args:
            name: The name. It is also the name of the person in labels.
            role: ``"label"``, ``"review"`` or ``"manage"``.
            person: Who makes the account.
            password: The password, 8 to 200 characters. If it is left out, the person signs in with a personal link.

        Returns:
            The token of the personal link, which cannot be read again later; None with a password.

        Raises:
            InvalidValueError: The name, the role or the password cannot be used.
            ConflictError: There is an account of this name.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> project = create_project(f"{folder.name}/pets", {"x": [1, 2, 3, 4]}, classes=["cat", "dog"])
            >>> project.add_account("ann", role="manage", person="ann", password="correct horse")
            >>> token = project.add_account("bob", role="label", person="ann")
            >>> [(each.name, each.role, each.sign_in) for each in project.accounts()]
            [('ann', 'manage', 'password'), ('bob', 'label', 'link')]
            >>> project.close(); folder.cleanup()
        """
        called, wanted, who = checked_person(name), checked_role(role), checked_person(person)
        token, secret = _new_secret(password)

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], None]:
            taken = next((each for each in state.accounts if folded(each) == folded(called)), None)
            if taken is not None:
                raise ConflictError(f"the project has an account {taken!r} already; take another name, or reset it")
            data = {"name": called, "role": wanted, **secret}
            return [Draft(EventKind.account_made, who, data=data)], None

        self._write(decide)
        return token

    def reset_account(self, name: str, *, person: str, password: str | None = None) -> str | None:
        """Give an account a new password, or a new personal link if ``password`` is left out, and end its sessions.

        The arguments and the returned value are those of :meth:`add_account`.

        Raises:
            InvalidValueError: There is no such account, or the password cannot be used.
        """
        who, (token, secret) = checked_person(person), _new_secret(password)

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], None]:
            data = {"name": found_account(state.accounts, name).name, **secret}
            return [Draft(EventKind.account_secret_changed, who, data=data)], None

        self._write(decide)
        return token

    def change_role(self, name: str, role: Role, *, person: str) -> None:
        """Give an account another role, from its next request on.

        Raises:
            InvalidValueError: There is no such account or role.
            ConflictError: It has this role, or nobody else could manage.
        """
        who, wanted = checked_person(person), checked_role(role)

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], None]:
            account = found_account(state.accounts, name)
            if account.role == wanted:
                raise ConflictError(f"the account {account.name!r} has the role {wanted} already")
            _require_manager(state, account)
            return [Draft(EventKind.account_role_changed, who, data={"name": account.name, "role": wanted})], None

        self._write(decide)

    def remove_account(self, name: str, *, person: str) -> None:
        """Remove an account: its next request is refused. Its labels stay, with its name.

        Raises:
            InvalidValueError: There is no such account.
            ConflictError: Nobody else could manage, and there are other accounts.
        """
        who = checked_person(person)

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], None]:
            account = found_account(state.accounts, name)
            _require_manager(state, account)
            return [Draft(EventKind.account_removed, who, data={"name": account.name})], None

        self._write(decide)

    # Classes.

    def change_classes(
        self,
        classes: Sequence[str],
        moved: Mapping[str, str] | None = None,
        *,
        person: str,
        before: Sequence[str] | None = None,
        request: str | None = None,
    ) -> WriteReceipt:
        """Add, rename, merge, reorder or remove classes, all at once. No label is lost.

        Labels of a moved class have the new name from now on, and the model learns all labels again. The documentation
        of the labelling page describes the effect on checks and guarantees.

        Args:
            classes: Names of the classes from now on, in the order of their keys.
            moved: Mapping from present names to the new names of their labels. A new name renames the class; the name
                of another class merges the two classes.
            person: Who makes the change.
            before: The classes that the caller has read; the present classes if left out. If the classes were changed
                meanwhile, nothing is changed.
            request: A name for this message: sent again under the same name, it is not written again.

        Raises:
            InvalidValueError: The labels are numbers, or a name cannot be used.
            ConflictError: The classes were changed meanwhile, a class that is left out has labels, a check is open and
                its answers could change, or nothing changes.

        Examples:
            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> project = create_project(f"{folder.name}/pets", {"x": [1, 2, 3, 4]}, classes=["cat", "dog", "puppy"])
            >>> receipt = project.label(0, "puppy", person="ann")
            >>> receipt = project.change_classes(["cat", "dog", "eel"], {"puppy": "dog"}, person="ann")
            >>> project.settings.classes, project.state().label_of(0)
            (('cat', 'dog', 'eel'), 'dog')
            >>> project.close(); folder.cleanup()
        """
        name, sent = checked_person(person), checked_request(request)
        wanted, moves = list(classes), dict(moved or {})

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], WriteReceipt | None]:
            present = self.settings.classes
            if not present:
                raise InvalidValueError("the labels of this project are numbers, so it has no classes to change")
            known = self._known(state, Draft(EventKind.classes_changed, name, request=sent))
            if known is not None:
                return [], known
            if before is not None and tuple(before) != present:
                raise ConflictError(
                    f"the classes were changed meanwhile and are now {', '.join(present[:20])}; look at them, then try "
                    "again"
                )
            change = ClassChange.checked(present, wanted, moves)
            if change.after == present and not change.moved:
                raise ConflictError("the project has exactly these classes already")
            self._require_changeable(state, change)
            data = change.event_data()
            if self.settings.descriptions:
                data["descriptions"] = change.descriptions(self.settings.descriptions)
            if (positive := self.settings.positive) is not None:
                if positive in change.removed:
                    raise ConflictError(f"{positive!r} is the class that is looked for, so it cannot be removed")
                data["positive"] = change.label(positive)
            return [Draft(EventKind.classes_changed, name, data=data, request=sent)], None

        return self._receipt(*self._write(decide))

    @staticmethod
    def _require_changeable(state: ProjectState, change: ClassChange) -> None:
        used = next((name for name in change.removed if state.acts.uses_class(name)), None)
        if used is not None:
            raise ConflictError(f"the class {used!r} has labels, so it cannot be removed; merge it into another one")
        if state.checks.open_check is not None and not change.keeps_answers:
            raise ConflictError(
                "a check is open, and its answers must keep their meaning: classes can be renamed and reordered now; "
                "to add, merge or remove some, complete the check or stop it first"
            )

    def add_class(self, name: str, *, person: str) -> WriteReceipt:
        """Add a class, after the others. See :meth:`change_classes`."""
        before = self._present_classes()
        if name.strip() in before:
            raise ConflictError(f"the project has the class {name.strip()!r} already")
        return self.change_classes([*before, name], person=person, before=before)

    def rename_class(self, old: str, new: str, *, person: str) -> WriteReceipt:
        """Give a class another name that no other class has. See :meth:`change_classes`."""
        before = self._present_classes()
        if new.strip() in before:
            raise ConflictError(f"the project has the class {new.strip()!r} already; merge the two instead")
        classes = [new if name == old else name for name in before]
        return self.change_classes(classes, {old: new}, person=person, before=before)

    def merge_classes(self, names: Sequence[str], into: str, *, person: str) -> WriteReceipt:
        """Merge several classes: all their labels become labels of ``into``. See :meth:`change_classes`.

        Args:
            names: The classes to merge.
            into: The merged class: one of them, another class, or a new name.
            person: The person who acts.
        """
        before, target = self._present_classes(), into.strip()
        gone = [name for name in names if name != target]
        kept = [name for name in before if name not in gone]
        if target not in before:
            kept.insert(min((before.index(name) for name in gone if name in before), default=len(kept)), target)
        return self.change_classes(kept, dict.fromkeys(gone, target), person=person, before=before)

    def reorder_classes(self, order: Sequence[str], *, person: str) -> WriteReceipt:
        """Change the order of the classes, and with it their keys. See :meth:`change_classes`."""
        before = self._present_classes()
        if sorted(order) != sorted(before):
            raise InvalidValueError(f"order must name each class once; the classes are {', '.join(before)}")
        return self.change_classes(order, person=person, before=before)

    def remove_class(self, name: str, *, person: str) -> WriteReceipt:
        """Remove a class that nobody has used. See :meth:`change_classes`."""
        before = self._present_classes()
        if name not in before:
            raise InvalidValueError(f"the project has no class {name!r}; it has {', '.join(before)}")
        return self.change_classes([each for each in before if each != name], person=person, before=before)

    def _present_classes(self) -> tuple[str, ...]:
        with self.lock:
            self.state()
            return self.settings.classes

    # Checks.

    def start_check(  # noqa: PLR0913 - one quantity of several, by keyword
        self,
        size: int,
        *,
        person: str,
        request: str | None = None,
        recall_of: str | None = None,
        precision_of: str | None = None,
        tolerance: float | None = None,
        share: float | None = None,
        unlabelable_as: str = "wrong",
        predicted_as_found: bool = True,
        confidence: float | None = None,
        predict: Predict | None = None,
    ) -> WriteReceipt:
        """Draw a random check of the unlabelled items, to guarantee predictions of the present model for them.

        The model learns all answers first. The check and the predictions are written to the journal. People are asked
        for the items of the check before all other items. When all of them are labelled or skipped, :meth:`guarantee`
        returns the guarantee.

        Args:
            size: Number of items to draw. It cannot be changed later.
            person: Who starts the check.
            request: A name for this message: sent again under the same name, it is not done again.
            recall_of: Guarantee the share of the items of this class that are labelled or predicted as such.
            precision_of: Guarantee the share of the items predicted as this class that belong to it.
            tolerance: Largest acceptable distance between number and prediction.
            share: Share of the predictions that may exceed the tolerance that the check finds.
            unlabelable_as: Whether skipped items count as ``"wrong"`` or are ``"excluded"``.
            predicted_as_found: Whether items predicted as the class count as found, for ``recall_of``.
            confidence: Confidence of all checks of the project together; 0.95 if left out at the first check, and that
                of the first check afterwards.
            predict: Returns the predictions of a model that has learned some answers, for all items of the project. By
                default a new model learns them, from the first on; pass
                :meth:`suffice.project.background_learner.BackgroundLearner.predicted_labels` if there is one.

        Raises:
            InvalidValueError: An argument cannot be used; nothing is spent.
            ConflictError: Another check is open, or answers come faster than the model predicts.
            SufficeError: The model has no prediction yet.

        Examples:
            A project with its first labels asks for 50 random items, and states what they prove:

            >>> from tempfile import TemporaryDirectory
            >>> from suffice.project import create_project
            >>> folder = TemporaryDirectory()
            >>> x = [k / 200 for k in range(200)]
            >>> project = create_project(f"{folder.name}/sides", {"x": x}, classes=["left", "right"])
            >>> def label() -> None:
            ...     item = project.next("ann")[0].position
            ...     written = project.label(item, "left" if x[item] < 0.5 else "right", person="ann")
            >>> for _ in range(20):
            ...     label()
            >>> started = project.start_check(50, person="ann")
            >>> for _ in range(50):
            ...     label()
            >>> print(project.guarantee())
            Guaranteed: at most 7.7 % of the predictions for the 130 unlabelled items are wrong (95 % confidence).
            >>> project.close(); folder.cleanup()
        """
        name, sent = checked_person(person), checked_request(request)
        wanted = whole(size, "size", least=1)
        given = {"recall_of": recall_of, "precision_of": precision_of, "tolerance": tolerance, "share": share}
        classes = self._present_classes()
        asked = checked_quantity(
            self.settings.task,
            list(classes),
            given,
            unlabelable_as=unlabelable_as,
            predicted_as_found=predicted_as_found,
        )
        sketch = Draft(EventKind.check_started, name, data={"size": wanted, **asdict(asked)}, request=sent)

        def before(state: ProjectState) -> tuple[WriteReceipt | None, float]:
            """The receipt of an earlier request, and the error probability; raise an error if no check is possible."""
            known = self._known(state, sketch)
            if known is None:
                self.require_no_open_check()
            return known, 0.0 if known is not None else self.checks_alpha(confidence)

        def attempt(model: str, answers: list[Answer], predictions: NDArray[Any]) -> WriteReceipt | None:
            """Start the check, unless the answers or the model have changed."""

            def decide(state: ProjectState, _: float) -> tuple[list[Draft], WriteReceipt | None]:
                known, alpha = before(state)
                present = self.settings.using(state.model).model == model and state.answers() == answers
                if known is None and self.settings.classes != classes:
                    raise ConflictError("the classes were changed meanwhile; try again")
                present &= len(predictions) == state.labels.size
                if known is not None or not present:
                    return [], known
                draw = self._draw(state, asked, predictions, wanted, alpha)
                return [Draft(EventKind.check_started, name, data=draw.event_data(), request=sent)], None

            events, known = self._write(decide)
            return self._receipt(events, known) if events or known is not None else None

        for _ in range(_TRIES):
            with self.lock:
                state = self.state()
                answers, model = state.answers(), self.settings.using(state.model).model
                done = before(state)[0]
            # Without the lock, because learning and predicting take time.
            done = done or attempt(model, answers, self._predictions(model, answers, predict))
            if done is not None:
                return done
        raise ConflictError(
            "a check cannot start now: labels come faster than the model learns and predicts; try again when fewer "
            "people label"
        )

    def _predictions(self, model: str, answers: list[Answer], predict: Predict | None) -> NDArray[Any]:
        """Predictions for all items, in the form in which a check stores them."""
        from suffice.project.project_learner import predicted_labels

        predictions = np.asarray(
            predicted_labels(self.settings.using(model), self.X, answers, self.learned_files)
            if predict is None
            else predict(model, answers)
        )
        if predictions.shape != (self.size,):
            raise InvalidValueError(
                f"predict must return one prediction for each of the {self.size:,} items of the project; their shape "
                f"is {predictions.shape}"
            )
        numbers = self.settings.task == "regression"
        return rounded_numbers(predictions.astype(np.float64)) if numbers else predictions

    def _draw(
        self, state: ProjectState, asked: CheckedQuantity, predictions: NDArray[Any], size: int, alpha: float
    ) -> CheckDraw:
        """The next check of the present model."""
        before, number = state.labels.items_before(), state.n_checks + 1
        rng = np.random.default_rng([self.settings.seed, 13, number])
        predicted = predictions[before.unlabelled]
        items, pool = drawn_items(size, asked, before, predicted, rng)
        if asked.share is not None:
            # This raises an error with the required number of items if there are too few.
            Guarantee.of_tolerance(np.zeros(size), asked.share, pool, alpha=spent_alpha(number, alpha))
        model = self.settings.using(state.model).model
        return CheckDraw(items, pool, number, alpha, asked, model, self.settings.classes, before, predicted)

    def abort_check(self, *, person: str, request: str | None = None) -> WriteReceipt:
        """Abort the open check: it yields no guarantee, and its error probability stays spent.

        The model learns the answers that were given so far.

        Args:
            person: The person who acts.
            request: A name for this message: sent again under the same name, it is not done again.

        Raises:
            ConflictError: No check is open.
        """
        name, sent = checked_person(person), checked_request(request)

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], WriteReceipt | None]:
            known = self._known(state, Draft(EventKind.check_aborted, name, request=sent))
            if known is not None:
                return [], known
            if state.checks.open_check is None:
                raise ConflictError("no check is open, so there is none to abort")
            data = {"number": state.checks.open_check.number}
            return [Draft(EventKind.check_aborted, name, data=data, request=sent)], None

        return self._receipt(*self._write(decide))

    def checks(self) -> list[ProjectCheck]:
        """All checks in the order in which they started, aborted ones included, with the answers that count now."""
        with self.lock:
            return self.state().checks.all()

    def require_no_open_check(self) -> None:
        """Raise an error if a check is open.

        Raises:
            ConflictError: One is open.
        """
        with self.lock:
            draw, pending = self._state.checks.open_check, len(self._state.checks.pending())
        if draw is not None:
            raise ConflictError(
                f"a check is open: {pending:,} of its {len(draw.items):,} items have no answer; answer them, or abort "
                "the check"
            )

    def checks_alpha(self, confidence: float | None = None) -> float:
        """The error probability of all checks of the project together.

        Args:
            confidence: The confidence. If left out, that of the first check, or 0.95 if there is no check yet.

        Raises:
            InvalidValueError: It is not between 0 and 1, or not that of the first check.
        """
        with self.lock:
            before = self._state.checks.alpha
        if confidence is None:
            return 0.05 if before is None else before
        # Rounded, because 1 - 0.95 is not exactly 0.05 in floating point.
        level = round(1.0 - real(confidence, "confidence", "above 0 and below 1", lambda x: 0.0 < x < 1.0), 15)
        if before is not None and abs(level - before) > 1e-12:
            raise InvalidValueError(
                f"confidence must be {1.0 - before:.10g}, as for the first check, because all checks share it; not "
                f"{confidence!r}"
            )
        return level if before is None else before

    def guarantee(self) -> ProjectGuarantee | None:
        """The newest guarantee, and whether it covers the present model; None if there is none."""
        with self.lock:
            state = self.state()
            return state.guarantee(self.settings.using(state.model).model)

    def resume(self, person: str) -> None:
        """Record that somebody continues the project."""
        name = checked_person(person)
        self._write(lambda _, __: ([Draft(EventKind.resumed, name)], None))

    def _act(self, draft: Draft, check: Callable[[ProjectState, int, str], Event | None]) -> WriteReceipt:
        """Write the answer of a person for an item, unless it was written before."""
        item, name = self._position(draft.item), checked_person(draft.person)
        sent = checked_request(draft.request)

        def decide(state: ProjectState, _: float) -> tuple[list[Draft], WriteReceipt | None]:
            event = state.messages.get(sent or "")
            # The earlier event may contain a class that was renamed since.
            data = draft.data if event is not None and event.data.items() >= draft.data.items() else self._data(draft)
            checked = Draft(draft.kind, name, item, data, sent)
            known = self._known(state, checked)
            if known is not None:
                return [], known
            before = check(state, item, name)
            if before is not None:
                return [], WriteReceipt(before.seq, item, True)
            # ``check`` may have added something to the data.
            return [Draft(draft.kind, name, item, self._data(draft), sent)], None

        return self._receipt(*self._write(decide))

    def _data(self, draft: Draft) -> Mapping[str, Any]:
        """Event data of an action, with its label in stored form."""
        if "label" not in draft.data:
            return draft.data
        return {**draft.data, "label": checked_label(self.settings, draft.data["label"])}

    @staticmethod
    def _known(state: ProjectState, draft: Draft) -> WriteReceipt | None:
        """The receipt of an earlier message with the same name."""
        event = state.messages.get(draft.request or "")
        if event is None:
            return None
        same_item = draft.item is None or event.item == draft.item
        same_data = all(event.data.get(key) == value for key, value in draft.data.items())
        if event.kind is not draft.kind or event.person != draft.person or not same_item or not same_data:
            raise ConflictError(
                f"the request {draft.request!r} was used before, for something else; each needs a different name"
            )
        return WriteReceipt(event.seq, event.item, True)

    @staticmethod
    def _receipt(events: list[Event], known: WriteReceipt | None) -> WriteReceipt:
        return known or WriteReceipt(events[0].seq, events[0].item, False)

    def _write(self, decide: Callable[[ProjectState, float], tuple[list[Draft], T]]) -> tuple[list[Event], T]:
        """Decide and write in one exclusive transaction."""
        with self.lock:
            with self._database.exclusive() as connection:
                state = self._catch_up(connection)
                now = self._clock.moment()
                drafts, answer = decide(state, now.steady)
                drafts = [self._in_wall_time(draft) for draft in drafts]
                events = write_events(connection, drafts, last=state.last, at=now.wall)
            # Apply the events only after the transaction is committed.
            for event in events:
                state.apply(event)
                self._hold(event, now, now.monotonic)
            return events, answer

    def _in_wall_time(self, draft: Draft) -> Draft:
        """Event data with the end of a lease by the system clock."""
        correction = self._clock.correction
        if not correction or "until" not in draft.data:
            return draft
        return replace(draft, data={**draft.data, "until": draft.data["until"] - correction})

    def _hold(self, event: Event, now: _Moment, looked: float) -> None:
        """Set the end of a lease by the clock of the leases, which is independent of changes of the system time."""
        if event.item is not None and "until" in event.data:
            ends = self._clock.ends(event.at, float(event.data["until"]), now, looked)
            self._state.assigned.end_lease_at(event.item, ends)

    def _catch_up(self, connection: Connection) -> ProjectState:
        """Apply events of other processes, after checking that the last known event is still in the journal."""
        last, now = self._state.last, self._clock.moment()
        with undamaged(self.place):
            events = read_events(connection, max(0, self._state.seq - 1))
        if last is not None and (not events or events.pop(0) != last):
            raise StorageError(
                f"the journal of {self.place} is not the one that was read before, as if it were taken from a backup; "
                "nothing was written; start again"
            )
        with undamaged(self.place):
            for event in events:
                self._take_in(event)
                self._hold(event, now, self._looked)
        self._looked = now.monotonic
        return self._state

    def _take_in(self, event: Event) -> None:
        if event.seq != self._state.seq + 1:
            raise ValueError(f"event {self._state.seq + 1} is missing")
        if event.item is not None and not 0 <= event.item < self.size:
            raise ValueError(f"event {event.seq} is about item {event.item}, and there are {self.size}")
        self._state.apply(event)
        if self._state.labels.size > self.size:
            self._grow()

    def _grow(self) -> None:
        """Read items that were added by other processes."""
        self.size, self._X = self._state.labels.size, None
        self.learned_files.features_changed()
        if self._order is not None:
            self._order = self._random_order()

    def _position(self, position: int | None) -> int:
        if isinstance(position, bool) or not isinstance(position, int | np.integer) or not 0 <= position < self.size:
            raise InvalidValueError(f"there is no item {position!r}; the project has items 0 to {self.size - 1}")
        return int(position)
