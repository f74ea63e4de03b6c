"""A labelling project of the command line: gone on with where it is, made from the data where it is not."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from suffice.cli.choices import BoundName, ModelName
from suffice.cli.labeller.visible import visible
from suffice.cli.project_options import ProjectOptions, hidden
from suffice.cli.rule_options import chosen_rule, require_provided_fields
from suffice.criteria import Criterion
from suffice.errors import InvalidValueError, MissingExtraError

if TYPE_CHECKING:
    from suffice.session.project import Project
    from suffice.session.reading import ReadingOptions
    from suffice.session.settings import Settings

_ELSEWHERE = "leave it out, or make another project with --project"


def require_store() -> None:
    """Refuse to begin where projects cannot be kept.

    Raises:
        MissingExtraError: SQLAlchemy is not installed.
    """
    if find_spec("sqlalchemy") is None:
        raise MissingExtraError("SQLAlchemy", "label", "A labelling project")


def resumed(place: str, options: ProjectOptions, person: str, console: Console) -> "Project":
    """Open a project and go on with it.

    Raises:
        InvalidValueError: An option asks for another project than the one that is there.
        SufficeError: There is none, or it cannot be opened.
    """
    from suffice.session.making import open_project

    project = open_project(place)
    try:
        _require_same(project.settings, hidden(place), options)
        project.resume(person)
        with project.lock:
            state = project.state()
            done = state.n_labelled
            made_at = 0.0 if state.made is None else state.made.at
    except BaseException:
        project.close()
        raise
    say(console, f"Project {hidden(place)}: resumed, {done} of {project.size} labelled.")
    if _newer(options.data, made_at):
        say(console, f"The project keeps its own copy of the items; changes in {options.data} since then are not seen.")
    return project


def made(place: str, options: ProjectOptions, person: str, console: Console) -> "Project":
    """Read the data and make a project of it.

    Raises:
        InvalidValueError: An option or the data cannot be used; nothing is left behind.
        SufficeError: The project cannot be made; nothing is left behind.
    """
    from suffice.session.making import make_project

    asked = None if options.model is None else ModelName(options.model.value)
    chosen_rule(options.rule_options, asked)  # refuses a bad one before anything is read

    def rule(settings: "Settings") -> Criterion:
        name = ModelName(settings.model)
        chosen = chosen_rule(options.rule_options, name)
        require_provided_fields(chosen, settings.estimator(), name)
        return chosen

    with _working(console, f"making {hidden(place)} from {options.data}"):
        project = make_project(
            place,
            Path(options.data),
            _reading_options(options),
            model=None if asked is None else asked.value,
            rule=rule,
            initial=options.initial,
            overlap=options.overlap or 0.0,
            seed=options.seed or 0,
            person=person,
        )
    for note in project.settings.notes:
        say(console, f"- {note}")
    with project.lock:
        labelled = project.state().n_labelled
    what = f"{len(project.settings.classes)} classes" if project.settings.classes else "numbers"
    there = f", {labelled} of them labelled already" if labelled else ""
    say(console, f"Project {hidden(place)}: made, {project.size} items{there}; labels are {what}.")
    return project


def say(console: Console, sentence: str) -> None:
    """Print a sentence as it stands, as far as the terminal has its letters."""
    console.print(visible(sentence, console.encoding), markup=False, highlight=False, emoji=False)


def _reading_options(options: ProjectOptions) -> "ReadingOptions":
    from suffice.session.reading import ReadingOptions, parse_classes

    if options.classes is not None and options.regression:
        raise InvalidValueError("--classes and --regression exclude each other: give one of them")
    return ReadingOptions(
        target=options.target,
        task="regression" if options.regression else None,
        classes=() if options.classes is None else parse_classes(options.classes),
        text=options.text,
        image=options.image,
        id=options.id_column,
        ignore=tuple(options.ignore or ()),
        features=options.features,
        embed=options.embed,
    )


@contextmanager
def _working(console: Console, what: str) -> Iterator[None]:
    """Say what is going on, where there is a terminal with somebody before it."""
    if not console.is_terminal or console.is_dumb_terminal or console.quiet:
        yield
        return
    # The usual dots are not among the plainest letters.
    spinner = "dots" if console.encoding.lower().startswith("utf") else "line"
    with console.status(Text(visible(what, console.encoding)), spinner=spinner):
        yield


def _newer(data: str, made_at: float) -> bool:
    """Whether a file of data was changed after the project was made."""
    try:
        path = Path(data)
        return path.is_file() and path.suffix != ".sqlite" and path.stat().st_mtime > made_at
    except (OSError, ValueError):
        return False


def _require_same(settings: "Settings", place: str, options: ProjectOptions) -> None:
    """Refuse options that contradict the project; what cannot be told apart any more is let through."""
    for option, given, there in _contradictions(settings, options):
        if given != there:
            raise InvalidValueError(
                f"the project {place} has {there}; {option} cannot be changed afterwards: {_ELSEWHERE}"
            )
    told = options.rule_options
    if told.named or told.threshold is not None or told.bound is not BoundName.paper:
        asked, kept = chosen_rule(told, ModelName(settings.model)), settings.criterion()
        if repr(asked) != repr(kept):
            raise InvalidValueError(
                f"the project {place} stops by {kept}, and the options ask for {asked}; a rule cannot be "
                "changed afterwards: leave out what is said of it, or make another project with --project"
            )


def _contradictions(settings: "Settings", options: ProjectOptions) -> list[tuple[str, str, str]]:
    """Options that were given, each with what it asks for and what there is, the same if they agree."""
    from suffice.session.reading import parse_classes

    found: list[tuple[str, str, str]] = []

    def compare(option: str, given: Any, there: Any, words: str) -> None:
        if given is not None:
            found.append((option, f"{words} {given}", f"{words} {there}"))

    compare("--target", options.target, settings.target, "the target")
    if options.classes is not None:
        kept = settings.classes
        asked = parse_classes(options.classes)
        # The keys stay in the order of the project, whichever order they are given in now.
        asked = kept if sorted(asked) == sorted(kept) else asked
        there = f"the classes {', '.join(kept)}" if kept else "numbers for labels"
        found.append(("--classes", f"the classes {', '.join(asked)}", there))
    if options.regression:
        compare("--regression", "regression", settings.task, "the task")
    compare("--text", options.text, settings.main if settings.shown == "text" else None, "the text column")
    compare("--image", options.image, settings.main if settings.shown == "image" else None, "the image column")
    compare("--model", options.model, settings.model, "the model")
    compare("--overlap", options.overlap, settings.overlap, "the overlap")
    compare("--initial", options.initial, settings.initial, "initial labels:")
    compare("--seed", options.seed, settings.seed, "the seed")
    return found
