"""``suffice label-studio``: connect a project of Label Studio with a labelling project of suffice."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from suffice.acquisition import RANDOM_SHARES
from suffice.cli.json_output import AsJson, print_json
from suffice.cli.project_options import Embed, Initial, ProjectModel, Seed, require_store, say, shown_place
from suffice.cli.rule_options import LabelCost, MistakeCost, TargetError, target_error
from suffice.cli.settings_options import with_settings
from suffice.errors import InvalidValueError, MissingExtraError, SufficeError
from suffice.presentation.text_format import count

if TYPE_CHECKING:
    from suffice.integrations.label_studio import LabelStudio, LabelStudioSync
    from suffice.project.background_learner import BackgroundLearner
    from suffice.project.labelling_project import Project

#: Environment variable of the API token of Label Studio; its own packages use the same name.
TOKEN_VARIABLE: Final = "LABEL_STUDIO_API_KEY"


@dataclass(frozen=True)
class ConnectionOptions:
    """Options about the connection with Label Studio."""

    url: Annotated[str, typer.Option(metavar="URL", help="Address of Label Studio, such as http://localhost:8080.")]
    project: Annotated[int, typer.Option(metavar="N", help="Number of its project, as in /projects/N.")]
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of the labelling project, which is created the first time.",
            show_default="label-studio-N.suffice",
        ),
    ] = None
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"File with the API token of Label Studio. Without it, {TOKEN_VARIABLE} in the environment is used.",
            show_default=False,
        ),
    ] = None
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Address to listen on for Label Studio's webhook.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.")] = 8001
    webhook_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Address under which Label Studio reaches this program, if that is another one, such as that of a "
            "proxy.",
            show_default="http://ADDRESS:PORT/webhook",
        ),
    ] = None
    show_predictions: Annotated[
        bool,
        typer.Option(
            "--show-predictions",
            help="Show predicted labels to annotators, except for tasks of a check and tasks drawn at random. Such "
            "labels are recorded as given by somebody who saw a prediction.",
        ),
    ] = False

    @property
    def reached(self) -> str | None:
        """Address under which Label Studio reaches this program, if it was given.

        Raises:
            InvalidValueError: It is no address.
        """
        from suffice.integrations.label_studio import checked_url

        if self.webhook_url is None:
            return None
        url = checked_url(self.webhook_url, "--webhook-url")
        return f"{url}/webhook" if url.count("/") == 2 else url


@dataclass(frozen=True)
class NewTasksOptions:
    """Options about a new labelling project."""

    features: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.npy", help="Your own features, one row for each task by its number.", show_default=False
        ),
    ] = None
    embed: Embed = None
    model: Annotated[ProjectModel | None, typer.Option(help="The model.", show_default="logistic")] = None
    label_cost: LabelCost = None
    mistake_cost: MistakeCost = None
    at_most: TargetError = None
    initial: Initial = None
    random_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the later tasks that are drawn at random too, from 0 to 1.",
            show_default=str(RANDOM_SHARES["classification"]),
        ),
    ] = None
    seed: Seed = None

    def arguments(self) -> dict[str, Any]:
        """The arguments of :func:`suffice.project.create_project` that were given.

        Raises:
            InvalidValueError: The target error cannot be used.
        """
        model = None if self.model is None else self.model.value
        values = vars(self) | {"model": model, "at_most": target_error(self.at_most, "classification")}
        return {name: value for name, value in values.items() if value is not None}


@with_settings
def label_studio_command(
    connection: ConnectionOptions,
    new: NewTasksOptions,
    once: Annotated[
        bool, typer.Option("--once", help="Read the annotations, publish order and decision, and stop.")
    ] = False,
    remove: Annotated[
        bool,
        typer.Option(
            "--remove", help="Remove the texts, predictions and webhook of suffice from Label Studio, and stop."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Connect a project of Label Studio: follow its annotations, order its tasks, and show when people can stop.

    People label in Label Studio. The tasks come in the order in which suffice asks for them. The decision and the
    guarantee are written into the project's description and instructions. The labelling project is in a folder of its
    own, for suffice status, check, report and export. Only the server of --url is contacted.

    Example: suffice label-studio --url http://localhost:8080 --project 1

    Check at random how many predictions are wrong: suffice check label-studio-1.suffice --size 100
    """
    from suffice.integrations.label_studio import LabelStudio, LabelStudioSync

    require_store()
    number, made_with = connection.project, new.arguments()
    if number < 1:
        raise InvalidValueError(f"--project must be the number of a project of Label Studio, 1 or more, not {number}")
    if once and remove:
        raise InvalidValueError("--once and --remove exclude each other: give one of them")
    reached = connection.reached
    server = LabelStudio(connection.url, _token(connection.token_file))
    place = connection.folder or Path(f"label-studio-{number}.suffice")
    console = Console(quiet=as_json, highlight=False, soft_wrap=True, stderr=False)
    with _opened(place, server, number, made_with, console) as (project, background):
        sync = LabelStudioSync(
            server,
            number,
            project,
            background,
            show_predictions=connection.show_predictions,
            say=lambda text: say(console, text),
        )
        if once or remove:
            result = _once(sync, server, number, project, remove=remove)
            if as_json:
                print_json("label-studio", result)
            else:
                say(console, result["sentence"])
            return
        where = (connection.host, connection.port, reached)
        _serve(sync, server, number, project, where, console, as_json=as_json)
    say(console, "Stopped. Everything is saved; to continue, start the same command again.")


def _token(file: Path | None) -> str:
    from suffice.integrations.label_studio import checked_token

    if file is None:
        return checked_token(os.environ.get(TOKEN_VARIABLE))
    try:
        return checked_token(file.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InvalidValueError(f"--token-file {file} cannot be read: {reason}") from None


@contextmanager
def _opened(
    place: Path, server: "LabelStudio", number: int, made_with: dict[str, Any], console: Console
) -> "Iterator[tuple[Project, BackgroundLearner]]":
    """Open the labelling project, or create it; yield it with its running learner."""
    from suffice.integrations.label_studio import created_project, project_link
    from suffice.project.background_learner import BackgroundLearner
    from suffice.project.create import has_project, open_project

    new = not has_project(place)
    if new:
        opened = created_project(place, server, number, **made_with)
    elif made_with:
        option = f"--{next(iter(made_with)).replace('_', '-')}"
        raise InvalidValueError(
            f"the labelling project {place} exists already, and {option} is for a new one; leave it out, or give "
            "another folder with --folder"
        )
    else:
        opened = open_project(place)
    with opened as project:
        folder = project.folder
        assert folder is not None
        project_link(folder, server.url, number)
        for note in project.settings.creation_notes if new else ():
            say(console, f"- {note}")
        say(console, f"Project {place}: {'made' if new else 'resumed'}, {count(project.size, 'task')}.")
        with _only_one(folder), BackgroundLearner(project, project.learned_files) as background:
            yield project, background


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Raise an error for a second connection of the same project on this machine."""
    try:
        import fcntl
    except ImportError:
        yield  # not on Windows: two of them do the same work twice, and write nothing twice
        return
    with (folder / "label-studio.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SufficeError(f"another suffice label-studio is running for {folder}; stop it first") from None
        yield


def _once(
    sync: "LabelStudioSync", server: "LabelStudio", number: int, project: "Project", *, remove: bool
) -> dict[str, Any]:
    from suffice.integrations.label_studio import project_link, remove_webhooks

    assert project.folder is not None
    if remove:
        sync.remove()
        remove_webhooks(server, number, project_link(project.folder, server.url, number).secret)
        return {"removed": True, "sentence": "Removed from Label Studio. The annotations and the journal stay."}
    sync.update()
    with project.lock:
        labelled = project.state().n_labelled
    sentence = f"Read and published: {labelled:,} of {project.size:,} tasks have a label."
    return {"n_labelled": labelled, "size": project.size, "folder": str(project.folder), "sentence": sentence}


def _serve(
    sync: "LabelStudioSync",
    server: "LabelStudio",
    number: int,
    project: "Project",
    where: tuple[str, int, str | None],
    console: Console,
    *,
    as_json: bool,
) -> None:
    """Receive webhooks until somebody stops it."""
    from suffice.integrations.label_studio import (
        LabelStudioError,
        WebhookReceiver,
        project_link,
        registered_webhook,
        remove_webhooks,
    )

    try:
        from suffice.web.server import listening, serve_on
    except ImportError as error:
        raise MissingExtraError(str(error.name), "web", "suffice label-studio") from None
    assert project.folder is not None
    host, port, webhook_url = where
    secret = project_link(project.folder, server.url, number).secret
    # Problems with the address, the token or the project are reported before anything is started.
    sync.update()

    def ready(address: str) -> None:
        reached = webhook_url or f"{address}webhook"
        registered_webhook(server, number, reached, secret)
        # Changes between the reading of all tasks and the registration of the webhook.
        sync.notify(None)
        thread.start()
        shown = shown_place(str(project.folder))
        if as_json:
            print_json("label-studio", {"webhook": reached, "folder": str(project.folder), "tasks": project.size})
        say(
            console,
            f"Connected to project {number} of {server.url}; its webhook calls {reached}. Label there; stop with "
            f"Ctrl+C. Status: suffice status {shown}. A random check: suffice check {shown} --size 100",
        )

    thread = threading.Thread(target=sync.run, name="suffice label-studio", daemon=True)
    with listening(host, port) as listener:
        serve_on(WebhookReceiver(secret, sync.notify), listener, host, ready)
    sync.close()
    if thread.ident is not None:
        thread.join(30.0)
    with suppress(LabelStudioError):
        # Label Studio would wait for an answer with every annotation.
        remove_webhooks(server, number, secret)
