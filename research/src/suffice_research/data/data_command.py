"""``suffice data``: list, fetch and check the research data sets."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from suffice.cli.json_output import AsJson, print_json, tell_error

if TYPE_CHECKING:
    from suffice_research.data.catalogue import FileStatus
    from suffice_research.data.download import FetchResult

data_app = typer.Typer(
    help="List, fetch and check the data sets of the paper and four extra ones. They are stored in the folder that "
    "SUFFICE_DATA names, or else in the user's cache folder.",
    epilog="Exit codes: 0 done, 1 could not be done, 2 invalid arguments.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _set_names() -> list[str]:
    """Names for shell completion."""
    from suffice_research.data.catalogue import SETS

    return list(SETS)


Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAMES",
        help="Data sets, by the names of suffice data list; all if left out.",
        autocompletion=_set_names,
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="ADDRESS",
        help="An address (http, https) or a folder that holds a copy of the files, as this command stores them or as "
        "their public homes hand them out.",
        show_default="their public homes",
    ),
]


@data_app.command("list")
def list_command(as_json: AsJson = False) -> None:
    """List the data sets, and say which are there.

    Example: suffice data list
    """
    from suffice_research.data.catalogue import SETS, data_folder, set_status

    folder = data_folder()
    statuses = {name: set_status(name, folder) for name in SETS}
    if as_json:
        sets = [{**_about(name), **_statuses(statuses[name])} for name in SETS]
        print_json("data list", {"folder": str(folder), "sets": sets})
        return
    rows = [("name", "rows x features", "models", "there", "title")]
    for name, data_set in SETS.items():
        size = f"{data_set.rows} x {data_set.features}"
        rows.append((name, size, ", ".join(data_set.models), _presence(statuses[name]), data_set.title))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        typer.echo("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    typer.echo(f"Folder: {folder}")


@data_app.command("fetch")
def fetch_command(names: Names = None, source: From = None, as_json: AsJson = False) -> None:
    """Fetch what is missing or corrupt of the data sets, from their public homes or from a copy.

    A file is stored only if its checksum is right. An interrupted download continues where it was.

    Example: suffice data fetch power_plant skin
    """
    from suffice_research.data.download import FetchStatus

    console = Console(quiet=as_json, highlight=False)
    console.soft_wrap = not console.is_terminal
    try:
        outcomes = _fetched(_chosen(names), source, console)
    except KeyboardInterrupt:
        remedy = "what has come so far is kept, and the same command continues from there"
        raise typer.Exit(tell_error(f"interrupted; {remedy}", "interrupted")) from None
    failed = [outcome for outcome in outcomes if outcome.what is FetchStatus.failed]
    if as_json:
        print_json("data fetch", {"done": not failed, "files": [_as_json(outcome) for outcome in outcomes]})
    else:
        for outcome in failed:
            what = f"{outcome.name}: {outcome.file.path} could not be fetched"
            typer.echo(f"suffice: {what}: {outcome.problem}", err=True)
        console.print(f"{len(outcomes) - len(failed)} of {_files(len(outcomes))} there and right")
    if failed:
        raise typer.Exit(1)


@data_app.command("check")
def check_command(names: Names = None, as_json: AsJson = False) -> None:
    """Check that the files of the data sets are there, and are what they should be, by their checksums.

    Example: suffice data check power_plant
    """
    from suffice_research.data.catalogue import FileState, data_folder, set_status

    folder, chosen = data_folder(), _chosen(names)
    statuses = {name: set_status(name, folder) for name in chosen}
    wrong = [name for name in chosen if any(status.state is not FileState.right for status in statuses[name])]
    if as_json:
        sets = [{"name": name, **_statuses(statuses[name])} for name in chosen]
        print_json("data check", {"folder": str(folder), "sets": sets})
    else:
        for name in chosen:
            for status in statuses[name]:
                typer.echo(f"{name}: {status}")
        if wrong:
            typer.echo(f"Run: suffice data fetch {' '.join(wrong)}")
    if wrong:
        raise typer.Exit(1)


def _chosen(names: Sequence[str] | None) -> list[str]:
    """Return the names, each once and each of a data set; all if there are none."""
    from suffice_research.data.catalogue import SETS, data_set

    return [data_set(name).name for name in dict.fromkeys(names or SETS)]


def _fetched(names: list[str], source: str | None, console: Console) -> "list[FetchResult]":
    from suffice_research.data.download import FetchStatus, fetch

    words = {
        FetchStatus.there: "already there",
        FetchStatus.stored: "stored",
        FetchStatus.replaced: "was corrupt, and is replaced",
    }
    outcomes = []
    with _shown(console) as progress:
        for outcome in fetch(names, mirror=source, progress=progress):
            outcomes.append(outcome)
            if outcome.what in words:
                console.print(f"{outcome.name}: {outcome.path} {words[outcome.what]}", markup=False)
    return outcomes


@contextmanager
def _shown(console: Console) -> Iterator[Callable[[str, int, int | None], None] | None]:
    """A progress bar on an interactive terminal; otherwise a line for each download."""
    if console.quiet:
        yield None
        return
    if not console.is_terminal or console.is_dumb_terminal:
        begun = set()

        def tell(address: str, *_: int | None) -> None:
            if address not in begun:
                begun.add(address)
                console.print(f"downloading {address}", markup=False)

        yield tell
        return
    columns = TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        tasks: dict[str, Any] = {}

        def move(address: str, done: int, total: int | None) -> None:
            if address not in tasks:
                tasks[address] = bar.add_task(address.rpartition("/")[2], total=total)
            bar.update(tasks[address], completed=done, total=total, visible=done != total)

        yield move


def _files(number: int) -> str:
    return f"{number} file" if number == 1 else f"{number} files"


def _presence(statuses: "tuple[FileStatus, ...]") -> str:
    from suffice_research.data.catalogue import FileState

    states = [status.state for status in statuses]
    if FileState.corrupt in states:
        return "corrupt"
    right = states.count(FileState.right)
    if 0 < right < len(states):
        return f"{right} of {len(states)} files"
    return "yes" if right else "no"


def _about(name: str) -> dict[str, Any]:
    from suffice_research.data.catalogue import SETS

    data_set = SETS[name]
    return {
        "name": name,
        "title": data_set.title,
        "task": data_set.task,
        "rows": data_set.rows,
        "features": data_set.features,
        "columns": data_set.columns,
        "models": data_set.models,
        "home": data_set.home,
    }


def _statuses(statuses: "tuple[FileStatus, ...]") -> dict[str, Any]:
    from suffice_research.data.catalogue import FileState

    files = [
        {
            "path": str(status.path),
            "state": status.state.value,
            "sha256": status.file.sha256,
            "size": status.file.size,
            "actual_sha256": status.sha256 or None,
            "actual_size": status.size,
            "problem": None if status.state is FileState.right else str(status),
        }
        for status in statuses
    ]
    return {"right": all(status.state is FileState.right for status in statuses), "files": files}


def _as_json(outcome: "FetchResult") -> dict[str, Any]:
    return {
        "name": outcome.name,
        "path": str(outcome.path),
        "what": outcome.what.value,
        "problem": outcome.problem or None,
    }
