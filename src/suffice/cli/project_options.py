"""What ``suffice label`` and ``suffice serve`` share: the options of a labelling project, and the way into it."""

import dataclasses
import getpass
import inspect
import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from suffice.arguments import real, whole
from suffice.cli.choices import BoundName
from suffice.cli.rule_options import Bound, ErrorCost, LabelCost, Rule, RuleOptions
from suffice.errors import InvalidValueError
from suffice.session.settings import DEFAULT_INITIAL

if TYPE_CHECKING:
    from suffice.session.project import Project


class ProjectModel(StrEnum):
    """Which model learns from the labels of a project."""

    gp = "gp"
    ridge = "ridge"
    logistic = "logistic"


@dataclasses.dataclass(frozen=True)
class ProjectOptions:
    """What a command was told about its project; the fields are its options."""

    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="What to label: a CSV or Parquet file, a folder of images; or a project to go on with: its folder "
            "(NAME.suffice) or a postgresql:// URL.",
            show_default=False,
        ),
    ]
    target: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="What the label is called; a column of that name may hold some already."),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="The classes, in the order of their keys; quotes around one with a comma."),
    ] = None
    regression: Annotated[bool, typer.Option("--regression", help="The label is a number.")] = False
    text: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that holds the text to read.", show_default=False)
    ] = None
    image: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column that holds paths of images.", show_default=False)
    ] = None
    id_column: Annotated[
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
        typer.Option(metavar="FILE.npy", help="Features of your own, one row for each item.", show_default=False),
    ] = None
    embed: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Sentence embeddings for texts, by a model of sentence-transformers; needs the extra embed.",
            show_default=False,
        ),
    ] = None
    model: Annotated[
        ProjectModel | None, typer.Option(help="The model.", show_default="gp for numbers, logistic for classes")
    ] = None
    rule: Rule = None
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Error ratio at which to stop, from 0 to 1; or the threshold of --rule, where it has one.",
            show_default="0.05 for gp, 0.02 for ridge, 0.1 for logistic; a rule's own",
        ),
    ] = None
    bound: Bound = BoundName.paper
    error_cost: ErrorCost = None
    label_cost: LabelCost = None
    project: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER|URL",
            help="Where the project is kept: a folder, or a postgresql:// URL.",
            show_default="NAME.suffice beside the data",
        ),
    ] = None
    person: Annotated[str | None, typer.Option(metavar="NAME", help="Who labels.", show_default="your login name")] = (
        None
    )
    overlap: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share of the items that two people label, from 0 to 1.", show_default="0"),
    ] = None
    initial: Annotated[
        int | None, typer.Option(help="Labels at random before the model chooses.", show_default=str(DEFAULT_INITIAL))
    ] = None
    seed: Annotated[int | None, typer.Option(help="Seed of all randomness.", show_default="0")] = None

    @property
    def rule_options(self) -> RuleOptions:
        """What was said of the stopping rule."""
        return RuleOptions(self.rule, self.threshold, self.bound, self.error_cost, self.label_cost)

    @property
    def who(self) -> str:
        """The person who labels.

        Raises:
            InvalidValueError: The name cannot be used.
        """
        from suffice.session.labels import checked_person

        return checked_person(login_name() if self.person is None else self.person)


def takes_project_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command, whose first parameter is its :class:`ProjectOptions`, the options that are its fields.

    Args:
        command: The command; its other parameters must be options of its own that are not fields too.
    """
    of_project = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if each.default is dataclasses.MISSING else each.default,
            annotation=each.type,
        )
        for each in dataclasses.fields(ProjectOptions)
    ]
    own = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in list(inspect.signature(command).parameters.values())[1:]
    ]
    names = {each.name for each in of_project}

    def with_options(**given: Any) -> None:
        options = ProjectOptions(**{name: given[name] for name in names})
        command(options, **{name: value for name, value in given.items() if name not in names})

    parameters = [*of_project, *own]
    with_options.__doc__, with_options.__name__ = command.__doc__, command.__name__
    with_options.__annotations__ = {each.name: each.annotation for each in parameters}
    with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what inspect looks for
    return with_options


def login_name() -> str:
    """The name that the operating system knows the person by, or "me" where it knows none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "me"


def opened_project(options: ProjectOptions, console: Console) -> "Project":
    """Open the project that the options name, or make it where there is none; say in a few lines what was done.

    Args:
        options: What was asked for.
        console: Where to say it.

    Raises:
        InvalidValueError: An option or the data cannot be used.
        SufficeError: The project cannot be opened or made.
        MissingExtraError: What keeps projects is not installed.
    """
    from suffice.cli.project_opening import made, require_store, resumed

    require_store()
    from suffice.session.making import has_project

    person = options.who
    if options.overlap is not None:
        real(options.overlap, "--overlap", "from 0 to 1", lambda x: 0.0 <= x <= 1.0)
    if options.initial is not None:
        whole(options.initial, "--initial", least=1)
    if options.seed is not None:
        whole(options.seed, "--seed", least=0)
    place, is_project = place_of(options)
    if is_project or has_project(place):
        return resumed(place, options, person, console)
    return made(place, options, person, console)


def place_of(options: ProjectOptions) -> tuple[str, bool]:
    """Where the project of the options is or would be, and whether the data itself names a project.

    Examples:
        >>> place_of(ProjectOptions("mails.csv"))
        ('mails.suffice', False)
        >>> place_of(ProjectOptions("mails.csv.gz", project="here"))
        ('here', False)
        >>> place_of(ProjectOptions("mails.suffice"))
        ('mails.suffice', True)
    """
    from suffice.session.making import is_url, project_file

    data = options.data
    path = Path(data)
    if is_url(data) or path.suffix in {".suffice", ".sqlite"} or (path.is_dir() and project_file(path).is_file()):
        if options.project is not None:
            raise InvalidValueError(
                f"{hidden(data)} is a project, and --project names another; leave out --project, or name the data"
            )
        return data, True
    if options.project is not None:
        return options.project, False
    if not path.name or path.name == "..":
        path = path.resolve()
    name = re.sub(r"\.(csv|tsv|txt|parquet|pq)(\.gz)?$", "", path.name, flags=re.IGNORECASE)
    return str(path.with_name(f"{name}.suffice")), False


def hidden(place: str) -> str:
    """A place without the password in it.

    Examples:
        >>> hidden("postgresql://me:secret@host/labels"), hidden("mails.suffice")
        ('postgresql://me@host/labels', 'mails.suffice')
    """
    from suffice.session.making import is_url
    from suffice.session.places import postgres_url, without_password

    return without_password(postgres_url(place)) if is_url(place) else place
