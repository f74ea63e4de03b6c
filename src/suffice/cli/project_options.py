"""Options of commands on projects, and the projects that they open: new ones, continued ones, and stored ones."""

import dataclasses
import getpass
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from suffice.acquisition import RANDOM_SHARES
from suffice.arguments import real, whole
from suffice.cli.goal_options import Expected, GoalOptions, expected_of, require_no_rule, target_of
from suffice.cli.prediction_options import PredictionChoice
from suffice.cli.rule_options import (
    MayMiss,
    ModelName,
    Recall,
    RuleOptions,
    chosen_rule,
    require_provided_fields,
    screening_rule,
    share_of,
    target_error,
)
from suffice.cli.settings_options import Before
from suffice.cli.terminal_display import visible
from suffice.criteria import Criterion, LabelWorth
from suffice.errors import InvalidValueError, MissingExtraError, SufficeError
from suffice.models.factory import MODEL_FAMILIES
from suffice.presentation.text_format import count
from suffice.project.settings import DEFAULT_INITIAL, DEFAULT_RECALL, FEWEST_OPINIONS, checked_opinions
from suffice.session.goals import Goal

if TYPE_CHECKING:
    from suffice.project.create import CreationOptions
    from suffice.project.item_learner import ItemLearner
    from suffice.project.labelling_project import Project
    from suffice.project.learning_status import LearningStatus, Predictions
    from suffice.project.settings import Settings, Task
    from suffice.project.state import Answer


class ProjectModel(StrEnum):
    """Which model learns from the labels of a project: one that learns fast enough, or the best of several."""

    vars().update({name: name for name, family in MODEL_FAMILIES.items() if family.interactive})
    auto = "auto"


Embed = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Sentence embeddings for texts, by a model of sentence-transformers; needs the extra embed.",
        show_default=False,
    ),
]
Initial = Annotated[
    int | None, typer.Option(help="Labels at random before the model chooses.", show_default=str(DEFAULT_INITIAL))
]
Seed = Annotated[int | None, typer.Option(help="Seed of all randomness.", show_default="0")]


def person_option(help: str) -> Any:
    """The option of a command for the person who does something."""
    return typer.Option(metavar="NAME", help=help, show_default="your login name")


@dataclass(frozen=True, kw_only=True)
class ProjectRuleOptions(RuleOptions):
    """Options about the stopping rule of a project."""

    threshold: Annotated[
        float | None,
        typer.Option(
            help="Error ratio at which to stop, from 0 to 1; or the threshold of --rule, if it has one.",
            show_default="0.05 for gp, 0.02 for ridge, 0.1 for logistic; a rule's own",
        ),
    ] = None


DataArgument = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="What to label: a table (CSV, Excel, JSON lines or Parquet), a folder of images; or a project to "
        "continue: its folder (NAME.suffice) or a postgresql:// URL.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class ProjectOptions:
    """Options of a command about its project."""

    data: DataArgument
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Name of the label; a column of this name may hold existing labels."),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="The classes, in the order of their keys; quote one with a comma."),
    ] = None
    regression: Annotated[bool, typer.Option("--regression", help="The label is a number.")] = False
    text: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that holds the text to read.", show_default=False)
    ] = None
    image: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that holds paths of images.", show_default=False)
    ] = None
    id: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The column that names an item.", show_default=False)
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A column that is not for the model; may be given several times.",
            show_default=False,
        ),
    ] = None
    features: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npy", help="Your own features, one row for each item.", show_default=False),
    ] = None
    embed: Embed = None
    model: Annotated[
        ProjectModel | None,
        typer.Option(
            help="The model; forest and boosting are trees. auto, for classes and with --of all: the best of several "
            "on the labels so far.",
            show_default="gp for numbers, logistic for classes (components with more than 1000 weights, columns x "
            "classes), auto for classes with --of all, except with --positive",
        ),
    ] = None
    stopping: ProjectRuleOptions = field(default_factory=ProjectRuleOptions)
    goal: GoalOptions = field(default_factory=GoalOptions)
    checked: PredictionChoice = field(default_factory=PredictionChoice)
    expected: Annotated[Expected, Before("error_cost")] = None
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="Screen the items for this class: its likeliest items are asked for first, until enough are found.",
            show_default=False,
        ),
        Before("error_cost"),
    ] = None
    recall: Annotated[Recall, Before("error_cost")] = None
    may_miss: Annotated[MayMiss, Before("error_cost")] = None
    project: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|URL",
            help="Where the project is kept: a folder, or a postgresql:// URL.",
            show_default="NAME.suffice beside the data",
        ),
    ] = None
    person: Annotated[str | None, person_option("Who labels.")] = None
    overlap: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="Share of the items that several people label, from 0 to 1.", show_default="0"
        ),
    ] = None
    opinions: Annotated[
        int | None, typer.Option(help="How many people label each item of the overlap.", show_default="2")
    ] = None
    unit: Annotated[
        str | None,
        typer.Option(help="For numbers: the unit of the label, shown beside it.", show_default=False),
    ] = None
    lowest: Annotated[
        float | None,
        typer.Option(
            help="For numbers: smallest plausible label; a smaller one must be confirmed.", show_default=False
        ),
    ] = None
    highest: Annotated[
        float | None,
        typer.Option(help="For numbers: largest plausible label; a larger one must be confirmed.", show_default=False),
    ] = None
    initial: Initial = None
    random_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the later items that are drawn at random too, from 0 to 1: their labels show how good the "
            "model is.",
            show_default="{classification} for classes, {regression} for numbers; 0 with --positive".format(
                **RANDOM_SHARES
            ),
        ),
    ] = None
    seed: Seed = None
    guidelines: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md",
            help="How to label, in Markdown, shown next to the item; replaces what the project has.",
            show_default=False,
        ),
    ] = None

    @property
    def wanted_recall(self) -> float | None:
        """The share of the positive class to find; None without a positive class.

        Raises:
            InvalidValueError: It is not a share, or there is no positive class, or options do not go with one.
        """
        share = share_of(self.recall, "--recall")
        if self.positive is None:
            if share is not None:
                raise InvalidValueError("--recall is for screening: give --positive CLASS too, the class to look for")
            return None
        stopping, at_most = self.stopping, self.wanted_error("classification")
        given = [*stopping.costs, *stopping.stability_options]
        given += [name for name in ("threshold", "bound") if getattr(stopping, name) is not None]
        given += ["at_most"] if at_most is not None and not self.goal.whole else []
        if given:
            raise InvalidValueError(
                f"--{given[0].replace('_', '-')} is not used with --positive, which stops by the share of the class "
                "that is found; leave one of them out"
            )
        if not self.goal.whole or at_most is None:
            return DEFAULT_RECALL if share is None else share
        if share is not None:
            raise InvalidValueError(
                "--recall does not go with --of all, where --at-most is the share of the class that may be missed; "
                "leave --recall out"
            )
        return Goal(at_most, "all").recall

    def wanted_error(self, task: str | None) -> float | None:
        """What ``--at-most`` says.

        Args:
            task: Whether labels are classes or numbers; None before it is known.

        Raises:
            InvalidValueError: It is no error of this task, or with ``--of all`` no share.
        """
        return target_error(self.stopping.at_most, "classification" if self.goal.whole else task)

    def chosen_rule(self, model: ModelName | None, task: "Task | None" = None) -> Criterion:
        """The stopping rule that the options ask for.

        Args:
            model: The model, if it is known.
            task: The task, if it is known.

        Raises:
            InvalidValueError: An option cannot be used.
        """
        recall = self.wanted_recall
        if recall is None:
            return chosen_rule(self.stopping, model, task)
        return screening_rule(self.stopping.rule, recall)

    def creation_options(self, person: str) -> "CreationOptions":
        """The options of a new project without its rule, which depends on the model.

        Args:
            person: Who creates the project.

        Raises:
            InvalidValueError: An option cannot be used.
        """
        from suffice.project.create import CreationOptions
        from suffice.project.read_items import parse_classes

        if self.expected is not None:
            raise InvalidValueError(
                "--expected is for --prediction; a check of a model is planned by its estimate, or by --expected of "
                "suffice check"
            )
        if self.classes is not None and self.regression:
            raise InvalidValueError("--classes and --regression exclude each other: give one of them")
        if self.goal.whole:
            require_no_rule(self.stopping)
        if self.model == "auto" and not self.goal.whole:
            raise InvalidValueError("--model auto is for a goal about all labels: give --at-most and --of all too")
        same = ("regression", "text", "image", "id", "target", "features", "embed", "positive", "initial")
        return CreationOptions(
            **{name: getattr(self, name) for name in (*same, "lowest", "highest")},
            classes=None if self.classes is None else parse_classes(self.classes),
            ignore=tuple(self.ignore or ()),
            model=None if self.model is None else self.model.value,
            at_most=self.wanted_error(None),
            tolerance=self.stopping.tolerance,
            **self.goal.arguments(self.wanted_error(None), screens=self.positive is not None),
            guidelines=_guidelines(self) or "",
            recall=None if self.goal.whole else self.wanted_recall,
            may_miss=tuple(self.may_miss or ()),
            random_share=self.random_share,
            overlap=self.overlap or 0.0,
            unit=self.unit or "",
            opinions=FEWEST_OPINIONS if self.opinions is None else self.opinions,
            seed=self.seed,
            person=person,
        )


def person_name(given: str | None) -> str:
    """The person who gives a command.

    Args:
        given: The name that was given; None for the login name.

    Raises:
        InvalidValueError: The name cannot be used.
    """
    from suffice.project.events import checked_person

    return checked_person(login_name() if given is None else given)


def login_name() -> str:
    """The user name from the operating system, or "me" if there is none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "me"


def opened_project(
    options: ProjectOptions,
    console: Console,
    *,
    labels: bool = False,
    first_check: Mapping[str, Any] | None = None,
) -> "Project":
    """Open the project of the options, or create it if there is none; print what was done.

    Args:
        options: What was asked for.
        console: Where to say it.
        labels: Whether the person labels, so that they need an account where there are some.
        first_check: As for :func:`made_check`.

    Raises:
        InvalidValueError: An option or the data cannot be used.
        SufficeError: The project cannot be opened or made.
        MissingExtraError: What keeps projects is not installed.
    """
    require_store()
    from suffice.project.create import has_project

    person = person_name(options.person)
    if options.overlap is not None:
        real(options.overlap, "--overlap", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    if options.opinions is not None:
        checked_opinions(options.opinions, name="--opinions")
    if options.random_share is not None:
        real(options.random_share, "--random-share", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    if options.initial is not None:
        whole(options.initial, "--initial", least=1)
    if options.seed is not None:
        whole(options.seed, "--seed", least=0)
    place, is_project = place_of(options.data, options.project, checks=options.checked.given)
    if is_project or has_project(place):
        return resumed(place, options, person, console, labels=labels)
    if options.checked.given:
        return made_check(place, options, person, console, first_check)
    return made(place, options, person, console)


def place_of(data: str, project: str | None = None, *, checks: bool = False) -> tuple[str, bool]:
    """Place of a project, and whether the data itself names a project.

    Args:
        data: The data, or a project.
        project: Where the project of the data is kept; None for the folder beside the data.
        checks: Whether the project checks predictions made elsewhere.

    Raises:
        InvalidValueError: Both name a project.

    Examples:
        >>> place_of("mails.csv")
        ('mails.suffice', False)
        >>> place_of("mails.csv", checks=True)
        ('mails.check.suffice', False)
        >>> place_of("mails.csv.gz", "here")
        ('here', False)
        >>> place_of("mails.suffice")
        ('mails.suffice', True)
    """
    from suffice.project.create import is_url, project_file
    from suffice.tables.file_reader import without_ending

    path = Path(data)
    if is_url(data) or path.suffix in {".suffice", ".sqlite"} or (path.is_dir() and project_file(path).is_file()):
        if project is not None:
            raise InvalidValueError(
                f"{hidden(data)} is a project, and --project names another; leave out --project, or name the data"
            )
        return data, True
    if project is not None:
        return project, False
    if not path.name or path.name == "..":
        path = path.resolve()
    return str(path.with_name(f"{without_ending(path)}{'.check' * checks}.suffice")), False


def hidden(place: str) -> str:
    """A place without the password in it.

    Examples:
        >>> hidden("postgresql://me:secret@host/labels"), hidden("mails.suffice")
        ('postgresql://me@host/labels', 'mails.suffice')
    """
    from suffice.project.create import is_url
    from suffice.project.storage import postgres_url, without_password

    return without_password(postgres_url(place)) if is_url(place) else place


_ELSEWHERE = "leave it out, or make another project with --project"
# Options for settings that can be changed, but not by this command.
_ON_THE_PAGE = f"on the page, under Settings; {_ELSEWHERE}"
_CHANGED_ELSEWHERE = {
    "--classes": f"with suffice classes; {_ELSEWHERE}",
    "--overlap": _ON_THE_PAGE,
    "--opinions": _ON_THE_PAGE,
    "--may-miss": _ON_THE_PAGE,
    "--unit": _ON_THE_PAGE,
    "--lowest": _ON_THE_PAGE,
    "--highest": _ON_THE_PAGE,
    "--at-most": _ON_THE_PAGE,
    "--of": _ON_THE_PAGE,
    "--annotator-error": _ON_THE_PAGE,
    "--correction-cost": _ON_THE_PAGE,
}


def require_store() -> None:
    """Raise an error if projects cannot be stored.

    Raises:
        MissingExtraError: SQLAlchemy is not installed.
    """
    if find_spec("sqlalchemy") is None:
        raise MissingExtraError("SQLAlchemy", "label", "A labelling project")


def resumed(place: str, options: ProjectOptions, person: str, console: Console, *, labels: bool = False) -> "Project":
    """Open a project and continue it; the arguments are those of :func:`opened_project`.

    Raises:
        InvalidValueError: An option asks for another project than the one that is there, or the person has no account.
        SufficeError: There is none, or it cannot be opened.
    """
    from suffice.project.create import open_project

    project = open_project(place)
    try:
        _require_same(project, hidden(place), options)
        if labels:
            _require_account(project, person)
        guidelines = _guidelines(options)
        if guidelines is not None and project.settings.checked_changes({"guidelines": guidelines}):
            project.change_settings({"guidelines": guidelines}, person=person)
        project.resume(person)
        with project.lock:
            state = project.state()
            done = state.n_labelled
            made_at = 0.0 if state.made is None else state.made.at
    except BaseException:
        project.close()
        raise
    say(console, f"Project {hidden(place)}: resumed, {done:,} of {project.size:,} labelled.")
    if _newer(options.data, made_at):
        say(console, f"The project keeps its own copy of the items; changes in {options.data} since then are not seen.")
    return project


def made(place: str, options: ProjectOptions, person: str, console: Console) -> "Project":
    """Read the data and create a project.

    Raises:
        InvalidValueError: An option or the data cannot be used; nothing is left behind.
        SufficeError: The project cannot be made; nothing is left behind.
    """
    from rich.progress import BarColumn, TaskProgressColumn, TimeElapsedColumn

    from suffice.cli.table_run import progress_bar
    from suffice.project.create import make_project
    from suffice.project.items import no_progress

    asked = None if options.model in (None, "auto") else ModelName(options.model.value)
    # Invalid options are reported before anything is read.
    options.chosen_rule(asked)
    classes = "classification" if options.classes is not None else None
    share = options.wanted_error("regression" if options.regression else classes)
    options.goal.arguments(share, screens=options.positive is not None)

    def rule(settings: "Settings") -> Criterion:
        name = ModelName(settings.model)
        options.wanted_error(settings.task)
        chosen = options.chosen_rule(name, settings.task)
        # Every model of a project supports the default rule.
        if settings.positive is None and not isinstance(chosen, LabelWorth):
            require_provided_fields(chosen, settings.estimator(), name)
        return chosen

    creation = options.creation_options(person)
    with progress_bar(console, "reading the items", BarColumn(), TaskProgressColumn(), TimeElapsedColumn()) as bar:
        report = no_progress if bar is None else lambda what, done, total: bar(done, total, what)
        project = make_project(place, Path(options.data), creation, rule=rule, progress=report)
    for note in project.settings.creation_notes:
        say(console, f"- {note}")
    with project.lock:
        labelled = project.state().n_labelled
    what = f"{len(project.settings.classes)} classes" if project.settings.classes else "numbers"
    if project.features_missing:
        say(console, "- the features for the model are computed while the first items are labelled")
    there = f", {labelled} of them labelled already" if labelled else ""
    say(console, f"Project {hidden(place)}: made, {project.size:,} items{there}; labels are {what}.")
    return project


def made_check(
    place: str,
    options: ProjectOptions,
    person: str,
    console: Console,
    first_check: Mapping[str, Any] | None = None,
) -> "Project":
    """Read predictions made elsewhere, and create a project that checks them.

    Args:
        place: Where it is stored.
        options: What was asked for.
        person: Who creates it.
        console: Where to say it.
        first_check: Fields of the design of the check that starts afterwards; the target of the project if None.

    Raises:
        InvalidValueError: An option or the data cannot be used; nothing is left behind.
        SufficeError: The project cannot be made; nothing is left behind.
    """
    from suffice.cli.table_run import progress_bar
    from suffice.project.checked_predictions import make_prediction_project
    from suffice.project.items import no_progress
    from suffice.project.read_items import ReadingOptions, parse_classes

    _require_for_predictions(options)
    at_most = share_of(options.stopping.at_most, "--at-most")
    classes = () if options.classes is None else parse_classes(options.classes)
    reading = ReadingOptions(text=options.text, image=options.image, id=options.id, ignore=tuple(options.ignore or ()))
    target = {"at_most": at_most, "tolerance": options.stopping.tolerance, **options.goal.arguments(at_most)}
    target["expected"] = _expected_for_check(options)
    numbers = options.stopping.tolerance is not None
    if first_check is None and at_most is not None:
        first_check = {"at_most": at_most, "expected": target["expected"]}
    with progress_bar(console, "reading the predictions") as bar:
        report = no_progress if bar is None else lambda what, done, total: bar(done, total, what)
        project = make_prediction_project(
            place,
            Path(options.data),
            reading,
            options.checked.options(numbers=numbers, classes=classes),
            target=target,
            guidelines=_guidelines(options) or "",
            overlap=options.overlap or 0.0,
            opinions=FEWEST_OPINIONS if options.opinions is None else options.opinions,
            seed=options.seed,
            person=person,
            first_check=first_check,
            progress=report,
        )
    checked = project.settings.checked
    assert checked is not None
    for note in project.settings.notes:
        say(console, f"- {note}")
    how = "people label without seeing the predictions"
    if checked.answer == "verdict":
        how = "people see each prediction and say whether it is right"
    say(console, f"Project {hidden(place)}: made, {count(project.size, 'row')} with predictions; {how}.")
    return project


def _expected_for_check(options: ProjectOptions) -> float | None:
    """The share of wrong predictions that the check is planned for, or None.

    Raises:
        InvalidValueError: No check is planned by it.
    """
    share = expected_of(options.expected)
    if share is not None and (options.goal.whole or options.stopping.at_most is None):
        raise InvalidValueError("--expected plans a check for --at-most; give --at-most too, and not --of all")
    return share


def _require_for_predictions(options: ProjectOptions) -> None:
    """Raise an error for options about a model."""
    given = {
        "target": options.target,
        "regression": options.regression or None,
        "features": options.features,
        "embed": options.embed,
        "model": options.model,
        "positive": options.positive,
        "recall": options.recall,
        "may-miss": options.may_miss,
        "initial": options.initial,
        "random-share": options.random_share,
        "rule": options.stopping.rule,
    }
    if wrong := [name for name, value in given.items() if value is not None]:
        raise InvalidValueError(
            f"--{wrong[0]} is for a project with a model, and --prediction checks predictions made elsewhere; leave "
            "one of them out"
        )


def _guidelines(options: ProjectOptions) -> str | None:
    """The text of the file of guidelines, or None if no file was named."""
    if options.guidelines is None:
        return None
    try:
        return options.guidelines.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InvalidValueError(f"--guidelines {options.guidelines} cannot be read: {reason}") from None


def say(console: Console, sentence: str) -> None:
    """Print a sentence unchanged, except for characters that the terminal does not support."""
    console.print(visible(sentence, console.encoding), markup=False, highlight=False, emoji=False)


def _newer(data: str, made_at: float) -> bool:
    """Whether a file of data was changed after the project was made."""
    try:
        path = Path(data)
        return path.is_file() and path.suffix != ".sqlite" and path.stat().st_mtime > made_at
    except (OSError, ValueError):
        return False


def _require_account(project: "Project", person: str) -> None:
    """Raise an error for a name without an account, if there are accounts; no password is required."""
    names = [account.name for account in project.accounts()]
    if names and person not in names:
        raise InvalidValueError(
            f"the project has accounts, and {person!r} is none of them; give --person with one of {', '.join(names)}"
        )


def _require_same(project: "Project", place: str, options: ProjectOptions) -> None:
    """Raise an error for options that contradict the project; its original options are allowed."""
    settings, model = project.settings, project.current_settings.model
    if settings.checked is not None or options.checked.given:
        _require_same_predictions(project, place, options)
        return
    if options.model == "auto":
        if not settings.choose_model:
            raise InvalidValueError(
                f"the project {place} was made without --model auto, and has the model {model}; leave it out, or make "
                "another project with --project"
            )
    elif options.model is not None and options.model.value != model:
        raise InvalidValueError(
            f"the project {place} has the model {model}; change it with suffice switch {place} --model "
            f"{options.model.value}"
        )
    # The command that created a project can continue it, also after its settings were changed.
    agreed = {option for option, given, there in _contradictions(project.first_settings, options) if given == there}
    for option, given, there in _contradictions(settings, options):
        if given != there and option not in agreed:
            how = None if option == "--classes" and not settings.classes else _CHANGED_ELSEWHERE.get(option)
            raise InvalidValueError(
                f"the project {place} has {there}; "
                + (f"change it {how}" if how else f"{option} cannot be changed afterwards: {_ELSEWHERE}")
            )
    if options.stopping.changed:
        screened = dataclasses.replace(options, positive=settings.positive) if settings.positive else options
        asked, current = screened.chosen_rule(ModelName(settings.model), settings.task), settings.criterion()
        if repr(asked) not in (repr(current), repr(project.first_settings.criterion())):
            raise InvalidValueError(
                f"the project {place} stops by {current}, and the options ask for {asked}; a rule cannot be "
                "changed afterwards: leave out these options, or make another project with --project (costs can "
                "be changed on the page, under Settings)"
            )


def _require_same_predictions(project: "Project", place: str, options: ProjectOptions) -> None:
    """Raise an error for options or a file that contradict a project that checks predictions made elsewhere."""
    from suffice.project.checked_predictions import require_same_rows
    from suffice.project.read_items import parse_classes

    settings, checked = project.settings, project.settings.checked
    if checked is None:
        raise InvalidValueError(
            f"the project {place} has a model of its own; name another place for the check with --project FOLDER"
        )
    asked, made = options.checked.options(numbers=False, classes=()), project.made_with
    classes = None if options.classes is None else sorted(parse_classes(options.classes))
    at_most = share_of(options.stopping.at_most, "--at-most") if settings.goal is not None else None
    first = project.first_settings
    given = {
        "--prediction": (list(asked.columns) or None, list(checked.columns)),
        "--probability": (asked.probability, checked.probability),
        "--group": (asked.group, checked.group),
        "--answer": (asked.answer, checked.answer),
        "--spans": (asked.spans, checked.spans),
        "--text": (options.text, made.get("text")),
        "--image": (options.image, made.get("image")),
        "--show": (list(asked.show) or None, made.get("show", [])),
        "--id": (options.id, made.get("id")),
        "--ignore": (options.ignore or None, list(made.get("ignore", []))),
        "--classes": (classes, sorted((first if classes == sorted(first.classes) else settings).classes)),
        "--of": (target_of(options.goal.of), settings.of),
        "--annotator-error": (share_of(options.goal.annotator_error, "--annotator-error"), settings.annotator_error),
        "--at-most": (at_most, first.at_most if at_most == first.at_most else settings.at_most),
        "--tolerance": (options.stopping.tolerance, settings.tolerance),
        "--seed": (options.seed, settings.seed),
    }
    for option, (wanted, there) in given.items():
        if wanted is not None and wanted != there:
            had = f"{option} {_as_typed(there)}" if there not in (None, []) else f"no {option}"
            raise InvalidValueError(
                f"the project {place} has {had}, and {_as_typed(wanted)} is asked for; this is fixed before the first "
                "answer: leave it out, or make another project with --project FOLDER"
            )
    if Path(options.data).is_file() and Path(options.data).suffix != ".sqlite":
        require_same_rows(project, Path(options.data), place)


def _as_typed(value: Any) -> str:
    """The value of an option in a message."""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _contradictions(settings: "Settings", options: ProjectOptions) -> list[tuple[str, str, str]]:
    """Given options, each with its value and the value of the project."""
    from suffice.project.read_items import parse_classes

    compared: list[tuple[str, str, str]] = []

    def compare(option: str, given: Any, there: Any, words: str) -> None:
        if given is not None:
            compared.append((option, f"{words} {given}", f"{words} {there}"))

    compare("--target", options.target, settings.target, "the target")
    if options.classes is not None:
        current = settings.classes
        asked = parse_classes(options.classes)
        # The keys keep the order of the project, independent of the order in the option.
        asked = current if sorted(asked) == sorted(current) else asked
        there = f"the classes {', '.join(current)}" if current else "numbers for labels"
        compared.append(("--classes", f"the classes {', '.join(asked)}", there))
    if options.regression:
        compare("--regression", "regression", settings.task, "the task")
    compare("--text", options.text, settings.main if settings.shown == "text" else None, "the text column")
    compare("--image", options.image, settings.main if settings.shown == "image" else None, "the image column")
    compare("--overlap", options.overlap, settings.overlap, "the overlap")
    compare("--unit", options.unit, settings.unit or "none", "the unit")
    for name in ("lowest", "highest"):
        given, limit = getattr(options, name), getattr(settings, name)
        compare(f"--{name}", given, "none" if limit is None else limit, f"the {name} plausible label:")
    compare("--opinions", options.opinions, settings.opinions, "opinions per item of the overlap:")
    compare("--initial", options.initial, settings.initial, "initial labels:")
    compare("--random-share", options.random_share, settings.random_share, "the share of random items")
    compare("--seed", options.seed, "none" if settings.seed is None else settings.seed, "the seed")
    compare("--positive", options.positive, settings.positive, "the positive class")
    if options.may_miss:
        missed, missed_there = (
            ", ".join(sorted(names)) or "none" for names in (options.may_miss, list(settings.may_miss))
        )
        compare("--may-miss", missed, missed_there, "classes that may be missed:")
    compare("--recall", share_of(options.recall, "--recall"), settings.recall, "the target recall")
    goal = options.goal if options.goal.of is not None else dataclasses.replace(options.goal, of=settings.of)
    share = dataclasses.replace(options, goal=goal).wanted_error(settings.task)
    compare("--at-most", share, settings.at_most, "the target error")
    compare("--of", target_of(options.goal.of), settings.of, "a target about")
    people = share_of(goal.annotator_error, "--annotator-error")
    compare("--annotator-error", people, settings.annotator_error, "the annotator error")
    compare("--correction-cost", goal.correction_cost, settings.correction_cost, "the cost of a correction")
    return compared


Place = Annotated[
    str,
    typer.Argument(
        metavar="DIR",
        help="The project: its folder (NAME.suffice), its file or a postgresql:// URL; or the data that it was made "
        "from, if the project is beside it.",
        show_default=False,
    ),
]


@dataclass(frozen=True, eq=False)
class Reading:
    """A project, and the results of its model.

    Attributes:
        project: The project.
        place: What was asked for, as it can be typed again.
        settings: Settings of the project, with the model that learns now.
        answers: Labels and skips that the model learns now, in order.
        learning_status: What the model says.
    """

    project: "Project"
    place: str
    settings: "Settings"
    answers: "list[Answer]"
    learning_status: "LearningStatus"

    @cached_property
    def project_learner(self) -> "ItemLearner":
        """The model, which learns only labels that are not in the saved state.

        Raises:
            SufficeError: The project can have no model.
        """
        return _project_learner(self.project, self.settings, self.answers)

    def predictions(self) -> "Predictions":
        """Predictions for all items; they are saved for the next call.

        Raises:
            SufficeError: There is no model, or it has not begun.
        """
        files = self.project.learned_files
        saved = files.predictions(self.settings, self.answers)
        return self.project_learner.predictions_kept_in(files, self.project.X) if saved is None else saved

    @property
    def folder(self) -> Path:
        """Default folder for files."""
        from suffice.project.create import is_url, project_file

        if is_url(self.place):
            return Path(f"{re.sub(r'[^A-Za-z0-9._-]+', '_', self.project.settings.name)}-export")
        return project_file(self.place).parent / "export"


@contextmanager
def reading(place: str, *, wait: bool = True) -> Iterator[Reading]:
    """Open a project and learn its labels; nothing but missing features is written to its journal.

    Args:
        place: What was typed.
        wait: Whether to compute features that are missing.

    Raises:
        MissingExtraError: What keeps projects is not installed.
        SufficeError: There is no project, or it cannot be opened.
    """
    with stored_project(place) as (project, location):
        yield learned_project(project, location, wait=wait)


@contextmanager
def stored_project(place: str) -> Iterator[tuple["Project", str]]:
    """Open an existing project; yield it with its location for a command line.

    Args:
        place: What was typed.

    Raises:
        MissingExtraError: What keeps projects is not installed.
        SufficeError: There is no project, or it cannot be opened.
    """
    require_store()
    from suffice.project.create import open_project

    location = project_place(place)
    with open_project(location) as project:
        yield project, location


def project_place(place: str) -> str:
    """Location of an existing project: what was typed, or the project beside it, which may check predictions.

    Args:
        place: What was typed.

    Raises:
        SufficeError: There is none in either.
    """
    from suffice.project.create import is_url, project_file

    location = place_of(place)[0]
    if location == place or is_url(location) or project_file(location).is_file():
        return location
    check = place_of(place, checks=True)[0]
    if project_file(check).is_file():
        return check
    raise SufficeError(
        f"there is no project in {place!r}, nor in {location} or {check} beside it; suffice label DATA creates one"
    )


def learned_project(project: "Project", place: str, *, wait: bool = True) -> Reading:
    """Results of the model of a project: from saved files, or learned now.

    Args:
        project: The project.
        place: Where it is, as it can be typed again.
        wait: Whether to compute features that are missing; otherwise there are no results then.
    """
    from suffice.project.learning_status import LearningStatus

    no_features = _problem_with_features(project, wait=wait)
    with project.lock:
        state, settings = project.state(), project.current_settings
        answers, checked = state.learned(), state.checked()
    if no_features:
        return Reading(project, place, settings, answers, LearningStatus(problem=no_features))
    saved = project.learned_files.status(settings, answers, checked)
    if saved is not None:
        return Reading(project, place, settings, answers, saved)
    try:
        project_learner = _project_learner(project, settings, answers, checked)
        learning_status = project_learner.learning_status()
    except SufficeError as error:
        # Labels can be counted and exported without a model.
        problem = LearningStatus(problem=f"There is no model: {error}.")
        return Reading(project, place, settings, answers, problem)
    project_learner.keep_in(project.learned_files, learning_status)
    result = Reading(project, place, settings, answers, learning_status)
    # It need not be made again.
    result.__dict__["project_learner"] = project_learner
    return result


def compute_features(project: "Project") -> None:
    """Compute the features of the items if they are missing, and say so meanwhile.

    Raises:
        SufficeError: They cannot be computed.
    """
    if project.features_missing:
        with Console(stderr=True).status("computing the features of the items", spinner="line"):
            _ = project.X


def _problem_with_features(project: "Project", *, wait: bool) -> str:
    """Compute the features of the items if they are missing; return why there are none, in a sentence."""
    if not project.features_missing:
        return ""
    if not wait:
        return "There is no model yet: the features of the items are computed while people label."
    try:
        compute_features(project)
    except SufficeError as error:
        return f"There is no model: {error}."
    return ""


def _project_learner(
    project: "Project", settings: "Settings", answers: "list[Answer]", checked: Sequence["Answer"] = ()
) -> "ItemLearner":
    """A model that has learned some answers, starting from the saved state.

    Args:
        project: The project.
        settings: Its settings, with the model.
        answers: The answers to learn.
        checked: Answers of a complete check that the results count, and the model does not learn.
    """
    with Console(stderr=True).status(f"learning {count(len(answers), 'label')}", spinner="line"):
        from suffice.project.learned_project import project_learner

        learner = project_learner(settings, project.X)
        learner.resume_from(project.learned_files, answers)
        learner.follow(answers, checked=checked)
        return learner


def shown_place(place: str) -> str:
    """A location for a command line, without a password."""
    from shlex import quote

    return quote(hidden(place))


def plain_console() -> Console:
    """Console for results; without a terminal, lines are not wrapped."""
    console = Console(highlight=False, markup=False, emoji=False)
    console.soft_wrap = not console.is_terminal
    return console


def made_folder(folder: Path) -> Path:
    """A folder, created if it does not exist.

    Raises:
        SufficeError: It cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise SufficeError(f"{folder} is a file, not a folder; name another one with --out") from None
    except OSError as error:
        raise SufficeError(
            f"the folder {folder} cannot be made: {error.strerror or error}; name another one with --out"
        ) from None
    return folder
