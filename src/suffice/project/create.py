"""Creation and opening of projects, and the upgrade of older table layouts."""

import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from suffice.acquisition import RANDOM_SHARES
from suffice.arguments import real, whole
from suffice.criteria import Criterion, LabelWorth, RecallTest
from suffice.criteria.base import require_rule
from suffice.errors import InvalidTypeError, InvalidValueError, MissingExtraError, SufficeError, upgrade_advice
from suffice.files import PRIVATE_FOLDER, without_collector
from suffice.models.factory import default_model
from suffice.presentation.finish_words import NO_CHOICE_IN_SCREENING
from suffice.project.events import Draft, EventKind, checked_label, checked_person
from suffice.project.items import ItemProgress, Items, no_progress
from suffice.project.labelling_project import ConflictError, Project
from suffice.project.settings import (
    AUTO,
    DEFAULT_INITIAL,
    DEFAULT_RECALL,
    FEWEST_OPINIONS,
    Settings,
    checked_goal_settings,
    checked_may_miss,
    checked_opinions,
    default_rule,
    require_project_model,
)
from suffice.project.sqlite_files import has_log
from suffice.project.storage import (
    FILE,
    LAYOUT,
    TABLES,
    Connection,
    Database,
    Head,
    StorageError,
    StorageFullError,
    about_table,
    block_checksum,
    chained,
    count_items,
    events_table,
    features_table,
    item_checksum,
    items_table,
    read_head,
    remove_head,
    require_intact,
    sa,
    sync_folder,
    undamaged,
    write_contents,
    write_events,
)
from suffice.session.goals import Goal, TargetOf
from suffice.session.standing_stop import classes_that_may_be_missed
from suffice.tables.table_columns import is_path

if TYPE_CHECKING:
    from suffice.project.read_items import ReadingOptions


def require_layout(database: Database) -> None:
    """Upgrade the tables of an older project. A project with the current layout is not changed.

    Raises:
        SufficeError: There is no project, it was made by a later version, or it cannot be kept aside first.
    """
    with database.reading() as connection:
        layout = layout_of(database, connection)
    if layout == LAYOUT:
        return
    if layout > LAYOUT:
        raise SufficeError(
            f"{database.place} was made by a later version of suffice (layout {layout}, this one knows up to "
            f"{LAYOUT}); {upgrade_advice()}"
        )
    if database.read_only:
        raise SufficeError(
            f"{database.place} was made by an older version of suffice and must be brought up to date, but it is "
            "read-only; make it writable, or copy it"
        )
    with database.exclusive() as connection:
        # Another process may have upgraded it meanwhile.
        layout = layout_of(database, connection)
        if layout < LAYOUT:
            _keep_aside(database, connection, layout)
            if database.file is not None:
                remove_head(database.file)  # older versions do not write it
        for step in range(layout, LAYOUT):
            _STEPS[step](connection)
        connection.execute(sa.update(about_table).where(about_table.c.key == "layout").values(value=str(LAYOUT)))


def layout_of(database: Database, connection: Connection) -> int:
    """The layout of a project's tables.

    Raises:
        SufficeError: There is no project.
    """
    if "about" in database.tables(connection):
        layout = connection.execute(sa.select(about_table.c.value).where(about_table.c.key == "layout")).scalar()
        if layout is not None and layout.isdecimal() and int(layout) >= min(_STEPS):
            return int(layout)
    raise SufficeError(f"there is no project in {database.place}; suffice label DATA.csv creates one")


def _keep_aside(database: Database, connection: Connection, layout: int) -> None:
    if database.file is None:
        connection.execute(sa.text(f"CREATE TABLE IF NOT EXISTS events_layout_{layout} AS TABLE events"))
        return
    copy = database.file.with_name(f"{database.file.stem}-layout-{layout}{database.file.suffix}")
    # The transaction is exclusive; a killed process may have left an incomplete project.
    part = copy.with_name(f".{copy.name}.part")
    try:
        part.unlink(missing_ok=True)
        # The exclusive transaction blocks all other writers, so this is the state before the upgrade.
        _copy(database.file, part)
        part.replace(copy)
        sync_folder(copy.parent)
    except (OSError, sqlite3.Error) as error:
        raise SufficeError(
            f"the project cannot be kept aside as {copy} before it is brought up to date: {error}"
        ) from None
    finally:
        part.unlink(missing_ok=True)


def _copy(file: Path, to: Path) -> None:
    source, target = sqlite3.connect(file), sqlite3.connect(to)
    try:
        source.backup(target)
    finally:
        source.close()
        target.close()
    with to.open("rb+") as written:
        os.fsync(written.fileno())


def _name_requests(connection: Connection) -> None:
    """Layout 1 had no names of requests, so a repeated request was written twice."""
    if "request" in _columns(connection, "events"):
        return  # the number of the layout is damaged
    connection.execute(sa.text("ALTER TABLE events ADD COLUMN request TEXT"))
    connection.execute(sa.text("CREATE UNIQUE INDEX events_request ON events (request)"))


def _add_checksums(connection: Connection) -> None:
    """Layout 2 had no checksums, and versions before 0.11 do not know all kinds of events."""
    if "digest" in _columns(connection, "events"):
        return  # the number of the layout is damaged
    connection.execute(sa.text("ALTER TABLE events ADD COLUMN digest TEXT NOT NULL DEFAULT ''"))
    for table in ("items", "features"):
        connection.execute(sa.text(f"ALTER TABLE {table} ADD COLUMN checksum BIGINT NOT NULL DEFAULT 0"))
    digest, digests = "", []
    for row in connection.execute(sa.select(events_table).order_by(events_table.c.seq)).all():
        digest = chained(digest, *row[:-1])
        digests.append({"key": row.seq, "new": digest})
    _fill_in(connection, events_table.c.seq, events_table.c.digest, digests)
    rows = connection.execute(sa.select(items_table)).all()
    _fill_in(
        connection,
        items_table.c.position,
        items_table.c.checksum,
        [{"key": row.position, "new": item_checksum(row.position, row.id, row.cells)} for row in rows],
    )
    for block in connection.execute(sa.select(features_table.c.block)).scalars().all():
        row = connection.execute(sa.select(features_table).where(features_table.c.block == block)).one()
        new = block_checksum(row.block, row.width, row.numbers)
        _fill_in(connection, features_table.c.block, features_table.c.checksum, [{"key": block, "new": new}])


def _fill_in(connection: Connection, key: Any, column: Any, values: list[dict[str, Any]]) -> None:
    if values:
        update = sa.update(column.table).where(key == sa.bindparam("key")).values({column.name: sa.bindparam("new")})
        connection.execute(update, values)


def _columns(connection: Connection, table: str) -> set[str]:
    return {column["name"] for column in sa.inspect(connection).get_columns(table)}


_STEPS: Final[dict[int, Callable[[Connection], None]]] = {1: _name_requests, 2: _add_checksums}


# The smallest page of SQLite.
_PAGE = 512


def is_url(place: str | Path) -> bool:
    """Whether a place is the URL of a database rather than a folder."""
    return isinstance(place, str) and "://" in place


def project_file(folder: str | Path) -> Path:
    """The file of the project in a folder; a path of a file is returned as it is."""
    path = Path(folder)
    return path if path.is_file() or path.suffix == ".sqlite" else path / FILE


@dataclass(frozen=True, kw_only=True, eq=False)
class CreationOptions:
    """Options of a new project: those of ``suffice serve``, with the same defaults.

    Attributes:
        classes: Names of the classes, in the order of their keys. May be left out if ``target`` is a column that has
            labels of all classes.
        regression: Whether labels are numbers.
        text: Column that is the text of an item.
        image: Column with paths of images: relative to the folder of the file, or to the current folder for data in
            memory.
        id: Column that names the items; by default a column called id, if its values are distinct.
        target: Name of the label. A column of this name contains existing labels; items with an empty or NaN value are
            unlabelled.
        ignore: Columns that are neither shown nor used as features.
        features: Features to use instead of those made from the columns: an array with a row for each item, or the path
            of a .npy file.
        embed: Name or folder of a sentence-transformers model for the text, instead of TF-IDF.
        model: gp (the default) or ridge for numbers, logistic (the default) or kernel for classes, forest or boosting
            for both. auto, for classes and ``of="all"``, and the default there: begin with logistic, and change to the
            best of several models on the labels so far, until a check starts.
        rule: The stopping rule. By default :class:`~suffice.LabelWorth` with the costs below.
        label_cost: Cost of a label, 1 by default; only without ``rule``.
        mistake_cost: Cost of one wrong prediction among the unlabelled items, in the same unit, 1 by default; only
            without ``rule``.
        tolerance: For numbers: the largest error that does not count as wrong, in units of the target; only without
            ``rule``, or with ``of="all"``.
        at_most: The target error: for classes the share of wrong predictions, for numbers the root mean squared error.
            Together with the costs it decides when to stop. With ``of="all"``: the share of wrong labels.
        of: What ``at_most`` is about. ``"rest"``: the items without a label. ``"all"``: all final labels, those of
            people included, which count as right. Then the goal alone decides when to stop.
        annotator_error: With ``of="all"``: the share of the labels by people that may be wrong; it is subtracted from
            ``at_most``.
        correction_cost: With ``of="all"``: cost of an answer in a check, relative to a label.
        guidelines: How to label, in Markdown; shown next to the item.
        positive: For screening: the class that is looked for. Its likeliest items are asked for first, and the default
            rule is :class:`~suffice.RecallTest`. With ``of="all"``, ``at_most`` is the share of the items of the class
            that may be missed.
        may_miss: A class, or several, that may be missed: they do not hold a stop back while they are rare and have
            fewer than 5 labels.
        recall: With ``positive``: the share of the class to find, 0.95 by default; not with ``of="all"``.
        initial: Labels at random before the model chooses; 10 by default, or all items if there are fewer.
        random_share: Share of the later items that are drawn at random too, from 0 to 1; by default
            :data:`suffice.acquisition.RANDOM_SHARES`, and 0 for
            screening. Their labels show how good the model is on the unlabelled items. 0 switches this off.
        overlap: Share of the items that several people label, from 0 to 1.
        opinions: Number of people who label such an item, at least 2.
        unit: For numbers: the unit of the label, shown beside it.
        lowest: For numbers: smallest plausible label; a smaller one must be confirmed.
        highest: The same for the largest.
        seed: Seed of all randomness. Without one, checks are drawn anew, and all else as with seed 0.
        person: Who creates the project.
    """

    classes: Iterable[Any] | None = None
    regression: bool = False
    text: str | None = None
    image: str | None = None
    id: str | None = None
    target: str | None = None
    ignore: str | Iterable[str] = ()
    features: Any = None
    embed: str | None = None
    model: str | None = None
    rule: Criterion | None = None
    label_cost: float | None = None
    mistake_cost: float | None = None
    tolerance: float | None = None
    at_most: float | None = None
    of: TargetOf = "rest"
    annotator_error: float = 0.0
    correction_cost: float = 1.0
    guidelines: str = ""
    positive: str | None = None
    recall: float | None = None
    may_miss: str | Iterable[str] = ()
    initial: int | None = None
    random_share: float | None = None
    overlap: float = 0.0
    unit: str = ""
    lowest: float | None = None
    highest: float | None = None
    opinions: int = FEWEST_OPINIONS
    seed: int | None = None
    person: str | None = None

    @property
    def costs(self) -> dict[str, float]:
        """The arguments of the default rule that are given."""
        costs = {"label_cost": self.label_cost, "mistake_cost": self.mistake_cost, "tolerance": self.tolerance}
        if self.rule is not None and self.of == "all":
            # The tolerance of the goal.
            del costs["tolerance"]
        return {name: value for name, value in costs.items() if value is not None}

    def checked(self) -> "CreationOptions":
        """Return the same options with validated numbers, names of classes as texts, and the default rule of the costs.

        Raises:
            InvalidValueError: An option cannot be used.
            InvalidTypeError: An option has the wrong type.
        """
        if self.rule is not None:
            require_rule(self.rule, "rule")
        costs = self.costs
        if self.positive is not None and costs:
            raise InvalidValueError(
                f"{next(iter(costs))} does not go with positive: a screening stops by the share of the class that is "
                "found"
            )
        if self.rule is not None and costs:
            raise InvalidValueError(
                f"{next(iter(costs))} is an argument of the default rule, and rule is given too; leave out one of "
                f"them, or give it to the rule, as in rule=sf.LabelWorth({next(iter(costs))}=...)"
            )
        if self.model == AUTO and self.of != "all":
            raise InvalidValueError(
                f"model {AUTO!r} is for a goal about all labels: give at_most and of='all' too, or name a model"
            )
        if self.model is not None and self.model != AUTO:
            require_project_model(self.model)
        return replace(
            self,
            classes=_class_names(self.classes),
            ignore=(self.ignore,) if isinstance(self.ignore, str) else tuple(self.ignore),
            may_miss=classes_that_may_be_missed(self.may_miss),
            rule=LabelWorth(**costs) if self.rule is None and self.positive is None else self.rule,
            positive=None if self.positive is None else str(self.positive),
            initial=None if self.initial is None else whole(self.initial, "initial", least=1),
            random_share=None if self.random_share is None else _share(self.random_share, "random_share"),
            overlap=_share(self.overlap, "overlap"),
            opinions=checked_opinions(self.opinions),
            seed=None if self.seed is None else whole(self.seed, "seed", least=0),
            person=None if self.person is None else checked_person(self.person),
        )

    def reading(self) -> "ReadingOptions":
        """The options for reading the items; ``features`` must be a path."""
        from suffice.project.read_items import ReadingOptions

        return ReadingOptions(
            target=self.target,
            task="regression" if self.regression else None,
            classes=tuple(self.classes or ()),
            text=self.text,
            image=self.image,
            id=self.id,
            ignore=tuple(self.ignore),
            features=self.features,
            embed=self.embed,
        )


def _share(value: float, name: str) -> float:
    return real(value, name, "from 0 to 1", lambda x: 0.0 <= x <= 1.0)


def create_project(path: str | Path, data: Any, options: CreationOptions | None = None, **keywords: Any) -> Project:
    """Create a labelling project from data.

    Args:
        path: Where the project is stored: a folder, which is created, or the URL of a PostgreSQL database.
        data: The items: a pandas or polars DataFrame, a Hugging Face ``Dataset``, a mapping from names of columns to
            values, a list of texts, or the path of a table (CSV, Excel, JSON lines or Parquet) or of a folder of
            images.
        options: Options of the project.
        **keywords: In place of ``options``: fields of :class:`CreationOptions`, such as ``classes``.

    Returns:
        The project, open; close it, or use it in a ``with`` statement.

    Raises:
        InvalidValueError: The data or an argument cannot be used; nothing is created.
        InvalidTypeError: The data or an argument has the wrong type; nothing is created.
        ConflictError: There is a project or something else at the path already.
        MissingExtraError: A package that is required is not installed.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> texts = ["win a free prize now", "see you at lunch", "free money, click now", "are you home yet"]
        >>> with TemporaryDirectory() as folder:
        ...     with create_project(f"{folder}/mails.suffice", texts, classes=["spam", "ham"]) as project:
        ...         _ = project.label(0, "spam", person="ann")
        ...     with open_project(f"{folder}/mails.suffice") as project:
        ...         project.size, project.state().label_of(0), project.settings.model
        (4, 'spam', 'logistic')
    """
    if options is None:
        options = CreationOptions(**keywords)
    elif keywords:
        raise InvalidTypeError(f"{next(iter(keywords))} is a field of options, which are given too; set it there")
    options = options.checked()
    table = isinstance(data, Mapping) or hasattr(data, "columns") or hasattr(data, "column_names")
    if not (is_path(data) or _is_list(data) or table):
        raise InvalidTypeError(
            "data must be a DataFrame, a list of texts, or the path of a file or folder, not "
            f"{type(data).__name__}; wrap other tables in a DataFrame"
        )
    items, text = (data, options.text) if is_path(data) or not _is_list(data) else _texts(data, options.text)
    with _features_file(options.features) as features, _argument_names():
        return make_project(path, items, replace(options, text=text, features=features))


def make_project(  # noqa: PLR0913 - all but the first three by keyword
    place: str | Path,
    data: Any,
    options: CreationOptions,
    *,
    rule: Callable[[Settings], Criterion] | None = None,
    name: str | None = None,
    progress: ItemProgress = no_progress,
) -> Project:
    """Read the data, check the settings, and create a project.

    Error messages name the options of the command line.

    Args:
        place: Where the project is stored.
        data: A path, or a table in memory.
        options: Options of the project; ``features`` must be a path, and the costs are not used.
        rule: Returns the stopping rule, given the settings without a rule; in place of the rule of the options.
        name: Name of the project; that of the data if left out.
        progress: Receives the current activity and its progress.
    """
    from suffice.project.read_items import read_items

    require_empty(place)
    source = Path(data).resolve().name if is_path(data) else _name_of(place)
    with without_collector():
        items = read_items(data, options.reading(), progress, later=True)
        settings = _made_settings(source, name, items, options, rule)
        if items.deferred is not None and not _suits_later_model(settings, options, rule):
            items = read_items(data, options.reading(), progress)
            settings = _made_settings(source, name, items, options, rule)
        if items.deferred is not None:
            items = replace(items, deferred={**items.deferred, "default_model": not _has_named_model(options)})
        return write_project(place, settings, items, person=options.person or "", progress=progress)


def _made_settings(
    source: str,
    name: str | None,
    items: Items,
    options: CreationOptions,
    rule: Callable[[Settings], Criterion] | None,
) -> Settings:
    """The validated settings of a new project."""
    initial, positive = options.initial, options.positive
    if initial is not None and initial > len(items):
        raise InvalidValueError(f"--initial must be at most the number of items, {len(items)}; not {initial}; lower it")
    default_share = RANDOM_SHARES[items.task] if positive is None else 0.0
    usual = items.default or default_model(items.task)
    named = options.model if _has_named_model(options) else None
    settings = Settings(
        name=source if name is None else name,
        task=items.task,
        classes=items.classes,
        target=options.target or "label",
        shown=items.shown,
        columns=items.columns,
        main=items.main,
        model=usual.name if named is None else named,
        model_reason=usual.reason if named is None else "",
        choose_model=_chooses_model(options, items.task),
        rule={},
        seed=options.seed,
        initial=min(DEFAULT_INITIAL if initial is None else initial, len(items)),
        random_share=default_share if options.random_share is None else options.random_share,
        overlap=options.overlap,
        opinions=options.opinions,
        source=source,
        root="" if items.root is None else str(items.root),
        notes=items.notes,
        components=items.components,
        **_target(options, items.task),
        **_screening(options, items),
        may_miss=checked_may_miss(tuple(options.may_miss), items.classes, name="--may-miss"),
    )
    settings.require_model()
    if rule is not None:
        chosen = rule(settings)
    elif options.rule is not None:
        chosen = options.rule.copy()
    else:
        chosen = default_rule() if settings.recall is None else RecallTest(settings.recall)
    chosen.reset()
    if isinstance(chosen, LabelWorth) and chosen.tolerance is not None and settings.task == "classification":
        raise InvalidValueError("--tolerance is for numbers, and the labels of this project are classes; leave it out")
    settings = replace(settings, rule=chosen.state_dict())
    shown = {name: getattr(options, name) for name in ("guidelines", "unit", "lowest", "highest")}
    settings = settings.with_changes(settings.checked_changes(shown))
    settings.require_usable_rule()
    return settings


def _suits_later_model(
    settings: Settings, options: CreationOptions, rule: Callable[[Settings], Criterion] | None
) -> bool:
    """Whether the rule does not depend on the model, which is known once the features are computed."""
    later = settings.using("components")
    if _has_named_model(options) or settings.task == "regression" or isinstance(settings.criterion(), LabelWorth):
        return True
    try:
        if rule is not None and rule(later).state_dict() != settings.rule:
            return False
        later.require_usable_rule()
    except SufficeError:
        return False
    return True


def _has_named_model(options: CreationOptions) -> bool:
    return options.model not in (None, AUTO)


def _chooses_model(options: CreationOptions, task: str) -> bool:
    """Whether the model is chosen on the labels, which is the default for classes and a goal about all labels.

    The model of a screening is not.
    """
    if options.model is None:
        return options.of == "all" and task == "classification" and options.positive is None
    if options.model != AUTO:
        return False
    if options.positive is not None:
        raise InvalidValueError(NO_CHOICE_IN_SCREENING)
    if task != "classification":
        raise InvalidValueError(
            "--model auto chooses between models for classes, and the labels of this project are numbers; name a model"
        )
    return True


def _target(options: CreationOptions, task: str) -> dict[str, Any]:
    """The validated settings of the target."""
    names = ("at_most", "of", "annotator_error", "correction_cost")
    given = {name: getattr(options, name) for name in names}
    if options.of != "rest":
        # Otherwise it is an argument of the rule only.
        given["tolerance"] = options.tolerance
    return checked_goal_settings(given, task, positive=options.positive, name="--at-most")


def _screening(options: CreationOptions, items: Any) -> dict[str, Any]:
    """The validated settings of a screening; empty without a positive class."""
    positive, recall = options.positive, options.recall
    if positive is None:
        if recall is not None:
            raise InvalidValueError("--recall is for screening: give --positive too, the class that is looked for")
        return {}
    if options.may_miss:
        raise InvalidValueError(
            "--may-miss does not go with --positive: in a screening no class holds a stop back; leave one of them out"
        )
    if items.task != "classification":
        raise InvalidValueError("--positive is a class, and the labels of this project are numbers; leave it out")
    if positive not in items.classes:
        raise InvalidValueError(f"--positive must be one of the classes {', '.join(items.classes)}, not {positive!r}")
    wanted = DEFAULT_RECALL if recall is None else recall
    if options.of == "all" and options.at_most is not None:
        if recall is not None:
            raise InvalidValueError(
                "--recall does not go with --of all, where --at-most is the share of the class that may be missed; "
                "leave --recall out"
            )
        wanted = Goal(options.at_most, "all").recall
    return {
        "positive": positive,
        "recall": real(wanted, "--recall", "above 0 and below 1", lambda x: 0.0 < x < 1.0),
    }


def write_project(
    place: str | Path, settings: Settings, items: Items, *, person: str = "", progress: ItemProgress = no_progress
) -> Project:
    """Write a project with its items, their features and existing labels.

    Args:
        place: A folder, which is created if it does not exist, or the URL of a PostgreSQL database.
        settings: Settings of the project.
        items: The items to label.
        person: Who creates the project.
        progress: Receives the number of items written.

    Raises:
        ConflictError: There is a project already.
        SufficeError: The project cannot be created there. No files are left behind.
    """
    if not len(items):
        raise InvalidValueError("a project needs at least one item to label")
    labels = {item: checked_label(settings, label) for item, label in items.labels.items()}
    made: dict[str, Any] = {"settings": settings.as_dict()}
    if items.reading is not None:
        made["reading"] = dict(items.reading)
    if items.deferred is not None:
        made["features"] = dict(items.deferred)
    drafts = [Draft(EventKind.made, person, data=made)]
    drafts += [Draft(EventKind.labelled, settings.source, item, {"label": label}) for item, label in labels.items()]
    if is_url(place):
        database = Database(str(place))
        try:
            _fill(database, items, drafts, progress)
            return Project(database, len(items))
        except BaseException:
            database.close()
            raise
    file = project_file(place)
    new_folder = _make_folder(file.parent)
    try:
        _make_file(file, items, drafts, progress)
    except BaseException:
        if new_folder:
            with suppress(OSError):
                file.parent.rmdir()
        raise
    return open_project(file)


def open_project(path: str | Path) -> Project:
    """Open a project, and upgrade it if it was made by an older version.

    A project on a full disk is opened for reading only.

    Args:
        path: Its folder, its file, or the URL of its database.

    Raises:
        SufficeError: There is no project, or it cannot be opened.
    """
    if is_url(path):
        return _opened(Database(str(path)))
    file = project_file(path)
    if not file.is_file():
        raise SufficeError(f"there is no project in {path}; suffice label DATA.csv creates one")
    try:
        return _opened(Database(file))
    except StorageFullError:
        if has_log(file):
            raise
        return _opened(Database(file, full=True))


def _opened(database: Database) -> Project:
    try:
        require_layout(database)
        _require_whole(database)
        with database.reading() as connection, undamaged(database.place):
            require_intact(database, connection)
            size = count_items(connection)
        project = Project(database, size)
        _require_head(project, database)
        return project
    except BaseException:
        database.close()
        raise


def _require_head(project: Project, database: Database) -> None:
    """Raise an error if the journal ends before the last acknowledged event."""
    if database.file is None:
        return
    head, last = read_head(database.file), project.state().seq
    if head is not None and not _is_followed(project, head):
        # Another process may have been writing it.
        head, last = read_head(database.file), project.state().seq
    if head is None or _is_followed(project, head):
        return
    lost = f"its last {head.seq - last:,} events are missing" if head.seq > last else "it has other events"
    raise StorageError(
        f"{database.place} is not the journal that was written last: {lost}. Was its write-ahead file removed, or "
        f"an older copy put in its place? Put the right files back, or accept what is there: "
        f"suffice repair {database.file.parent if database.file else ''}"
    )


def _is_followed(project: Project, head: Head) -> bool:
    """Whether the journal has the event of a note."""
    return [event.digest for event in project.events(head.seq - 1)[:1]] == [head.digest]


def has_project(place: str | Path) -> bool:
    """Whether there is a project at a place.

    Raises:
        SufficeError: The place cannot be read.
    """
    if not is_url(place) and not project_file(place).is_file():
        return False
    database = Database(str(place) if is_url(place) else project_file(place))
    try:
        with database.reading() as connection:
            return database.tables(connection) >= TABLES
    finally:
        database.close()


def require_empty(place: str | Path) -> None:
    """Raise an error for a folder that is not writable or not empty, before a large file is read."""
    if is_url(place):
        return
    folder = project_file(place).absolute().parent
    reason = ""
    if has_project(place):
        raise _there_already(str(place))
    if folder.exists() and not folder.is_dir():
        reason = "a file of that name is there already"
    elif folder.is_dir() and any(folder.iterdir()):
        reason = "the folder holds something else"
    elif not folder.parent.is_dir():
        reason = f"the folder {folder.parent} does not exist"
    elif not os.access(folder if folder.is_dir() else folder.parent, os.W_OK):
        reason = f"the folder {folder.parent} is read-only"
    if reason:
        # A folder that does not exist is a wrong argument; the others are about what is there.
        kind = ConflictError if folder.parent.is_dir() else InvalidValueError
        raise kind(f"the project cannot be kept in {place}: {reason}; name another folder with --project FOLDER")


def _name_of(place: str | Path) -> str:
    """A name for a project whose data have no name."""
    return "data" if is_url(place) else Path(place).resolve().stem


def _is_list(data: Any) -> bool:
    return isinstance(data, Sequence | np.ndarray) or (hasattr(data, "tolist") and not hasattr(data, "columns"))


def _texts(data: Any, text: str | None) -> tuple[dict[str, list[str]], str]:
    """A list of texts as a table of one column, and the name of the column."""
    texts, name = list(data), "text" if text is None else text
    for row, value in enumerate(texts):
        if not isinstance(value, str):
            raise InvalidTypeError(
                f"data is a list, so it must hold texts, but item {row} is a {type(value).__name__}; put tables into a "
                "DataFrame"
            )
    return {name: texts}, name


def _class_names(classes: Iterable[Any] | None) -> tuple[str, ...]:
    if classes is None:
        return ()
    if isinstance(classes, str):
        raise InvalidTypeError(f'classes must be a list of names such as ["spam", "ham"], not the text {classes!r}')
    # Numbers are allowed too, for classes called 0 and 1.
    names = tuple(map(str, classes))
    if len(names) < 2:
        came = f"{names[0]!r} is the only one" if names else "the list is empty"
        raise InvalidValueError(
            f"classes must name at least 2 classes, and {came}; leave it out to take those of target"
        )
    return names


@contextmanager
def _features_file(features: Any) -> Iterator[Path | None]:
    """Write features to a .npy file, because the reader of features reads files."""
    if features is None or is_path(features):
        yield None if features is None else Path(features)
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / "features.npy"
        np.save(file, np.asarray(features), allow_pickle=False)
        yield file


# Options of the command line in messages, each with the name of the Python argument.
_OPTIONS: Final = (
    (re.compile(r"write them as --classes\b.*$"), 'give all of them, as in classes=["a", "b"]'),
    (re.compile(r"--classes a,b,c"), 'classes=["a", "b"]'),
    (re.compile(r"--regression\b"), "regression=True"),
    (re.compile(r"with --project FOLDER|with --project"), "as path"),
    (re.compile(r"--at-most\b"), "at_most"),
    (re.compile(r"--features \S*features\.npy"), "features"),
    (re.compile(r"--([a-z]+)\b"), r"\1"),
)


@contextmanager
def _argument_names() -> Iterator[None]:
    """Replace options of the command line in error messages by names of Python arguments."""
    try:
        yield
    except MissingExtraError:
        raise
    except SufficeError as error:
        message = str(error)
        for option, argument in _OPTIONS:
            message = option.sub(argument, message)
        raise type(error)(message) from error.__cause__


def _require_whole(database: Database) -> None:
    # SQLite writes whole pages, and does not detect a truncated last page.
    file = database.file
    if file is not None and file.stat().st_size % _PAGE and not has_log(file):
        raise StorageError(f"{file} is damaged: its end is missing; take it from a backup, or copy it again")


def _make_folder(folder: Path) -> bool:
    try:
        made = not folder.is_dir()
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    except FileNotFoundError:
        raise SufficeError(f"the folder {folder.absolute().parent} for the project does not exist") from None
    except OSError as error:
        raise SufficeError(
            f"the folder {folder} for the project cannot be made: {error.strerror or error}; give another place with "
            "--project"
        ) from None
    if not os.access(folder, os.W_OK):
        raise SufficeError(f"the folder {folder} is read-only; give another place for the project with --project")
    return made


def _make_file(file: Path, items: Items, drafts: list[Draft], progress: ItemProgress) -> None:
    """Write the file of a project under a temporary name, then rename it; never replace an existing file."""
    _require_free(file)
    part = file.with_name(f".{file.name}.{os.getpid()}-{threading.get_ident()}")
    database = Database(part, new=True)
    try:
        _fill(database, items, drafts, progress)
        database.close()
        if has_log(part):
            raise StorageFullError(
                f"the disk of {file.parent} is full: the project was not made; make room and try again"
            )
        _put_in_place(part, file)
    finally:
        database.close()
        _remove(file.parent, part.name)
    # Remove files of killed processes. A process that is still running will then find the new project.
    _remove(file.parent, f".{file.name}.")
    sync_folder(file.parent)
    sync_folder(file.absolute().parent.parent)


def _require_free(file: Path) -> None:
    if not file.exists():
        return
    if has_project(file):
        raise _there_already(str(file))
    raise ConflictError(f"the file {file} exists already, and is not a project; give another place with --project")


def _there_already(place: str) -> ConflictError:
    return ConflictError(f"there is a project in {place} already; open it, or give another place")


def _put_in_place(part: Path, file: Path) -> None:
    try:
        # Unlike a rename, this fails if another process has created the file.
        os.link(part, file)
    except (FileExistsError, FileNotFoundError):
        raise _there_already(str(file)) from None
    except OSError:
        # Some file systems do not support hard links.
        _require_free(file)
        part.rename(file)


def _remove(folder: Path, beginning: str) -> None:
    for file in folder.glob(f"{escape(beginning)}*"):
        file.unlink(missing_ok=True)


def _fill(database: Database, items: Items, drafts: list[Draft], progress: ItemProgress) -> None:
    with database.exclusive() as connection:
        tables = database.tables(connection)
        if tables >= TABLES:
            raise _there_already(database.place)
        if taken := tables & TABLES:
            raise ConflictError(
                f"{database.place} has tables of another program with the names of those of a project "
                f"({', '.join(sorted(taken))}); give another database, or another schema"
            )
        database.make_tables(connection)
        write_contents(connection, items, progress=progress)
        write_events(connection, drafts, last=None, at=time.time())
