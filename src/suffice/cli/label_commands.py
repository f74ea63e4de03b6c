"""``suffice label`` and ``suffice serve``: label data in the terminal or in the browser, and see when to stop."""

import os
import re
import shlex
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer
from rich.console import Console

from suffice.cli.json_output import json_option, print_json
from suffice.cli.project_options import (
    DataArgument,
    ProjectOptions,
    hidden,
    opened_project,
    person_name,
    place_of,
    require_store,
)
from suffice.cli.settings_options import with_settings
from suffice.errors import InvalidValueError, MissingExtraError
from suffice.presentation.project_words import given_sentence
from suffice.presentation.text_format import count

if TYPE_CHECKING:
    from suffice.cli.labeller import Labeller
    from suffice.project.labelling_project import Project
    from suffice.web.access import Access
    from suffice.web.server import ServerOptions


# Seconds that the final message waits for the model: labelling by lines, and on a full screen, where a person waits.
_LAST_WORD = 60.0
_LAST_LOOK = 0.3


@with_settings
def label_command(
    options: ProjectOptions,
    as_json: Annotated[bool, json_option("Read labels as lines, print the state of the project as JSON.")] = False,
) -> None:
    """Label your own data in the terminal: create or continue a project, and see when you can stop.

    Example: suffice label mails.csv --text body --classes ham,spam

    With numbers: suffice label houses.csv --target price --regression

    Go on later, or on top of some labels: suffice label mails.suffice
    """
    console = Console(stderr=as_json, highlight=False)
    # Without a terminal, lines are not wrapped.
    console.soft_wrap = not console.is_terminal
    by_keys = not as_json and _by_keys(console)
    with opened_project(options, console, labels=True) as project:
        from suffice.cli.labeller import opened_labeller
        from suffice.project.prediction_results import start_first_check

        start_first_check(project, person_name(options.person))

        with opened_labeller(project, person_name(options.person), by_keys=by_keys) as labeller:
            _label(labeller, console, by_keys=by_keys)
            _summarise(labeller, options, console, as_json=as_json)


def label_in_terminal(project: "Project", console: Console, person: str, most: int | None = None) -> None:
    """Label by keys on a terminal, and by lines otherwise, until nothing is left or the person leaves.

    Args:
        project: The project.
        console: Where items and answers are printed.
        person: Who labels.
        most: Number of labels at most; no limit if None.

    Raises:
        MissingExtraError: The package for labelling by keys is not installed.
    """
    from suffice.cli.labeller import opened_labeller

    by_keys = _by_keys(console)
    with opened_labeller(project, person, most, by_keys=by_keys) as labeller:
        _label(labeller, console, by_keys=by_keys)


def _by_keys(console: Console) -> bool:
    """Whether to label by keys.

    Raises:
        MissingExtraError: The package for it is not installed.
    """
    terminal = console.is_terminal and not console.is_dumb_terminal and sys.stdin.isatty() and sys.stderr.isatty()
    if terminal and find_spec("textual") is None:
        raise MissingExtraError("textual", "label", "Labelling on the whole screen")
    return terminal


def _label(labeller: "Labeller", console: Console, *, by_keys: bool) -> None:
    """Label by keys or by lines, until the person leaves."""
    from suffice.cli.labeller import label_by_lines, learn_last_answers

    try:
        # A correction of a prediction is typed, for which there is no key.
        if by_keys and not labeller.verdicts:
            from suffice.cli.label_app import label_by_keys

            label_by_keys(labeller)
            labeller.caught_up(_LAST_LOOK)
        else:
            if hasattr(sys.stdin, "reconfigure"):
                sys.stdin.reconfigure(errors="replace")
            label_by_lines(labeller, console, iter(sys.stdin.readline, ""))
            learn_last_answers(labeller, console, _LAST_WORD)
    except KeyboardInterrupt:
        # Ctrl-C is a regular way to leave, because all labels are on the disk.
        pass


def _summarise(labeller: "Labeller", options: ProjectOptions, console: Console, *, as_json: bool) -> None:
    from suffice.cli.terminal_display import visible
    from suffice.project.status_summary import status

    project = labeller.project
    if as_json:
        about: dict[str, Any] = {"project": project.place, "person": labeller.person, "given": labeller.labels}
        print_json("label", about | status(project, labeller.background.learning_status))
        return
    counts = labeller.counts()
    command = "label" if project.settings.checked is None else "check"
    lines = [
        given_sentence(labeller.labels, counts.labelled, counts.size, counts.skipped),
        *labeller.status_sentences(counts),
        f"Go on with: suffice {command} {_place_to_type(options)}",
    ]
    for line in lines:
        console.print(visible(line, console.encoding), markup=False, emoji=False)


#: The user's token, instead of a generated one.
TOKEN_VARIABLE: Final = "SUFFICE_TOKEN"
_EVERY_ADDRESS: Final = {"0.0.0.0", "::", ""}


@dataclass(frozen=True)
class PageOptions:
    """Options about the address of a page and the access to it."""

    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0 for other machines too.")
    ] = "127.0.0.1"
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any that is free.")] = 8000
    token: Annotated[
        bool,
        typer.Option(
            "--token/--no-token",
            help="Admit only people who know a token; the address with it is printed. "
            f"{TOKEN_VARIABLE} in the environment, of at least 16 characters, is used instead of a random one. "
            "Without a token, everybody on this machine is admitted.",
        ),
    ] = True
    tls_cert: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Encrypt connections: a certificate with its chain, as PEM."),
    ] = None
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Private key of the certificate, as PEM without a password.")
    ] = None
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address of a proxy whose X-Forwarded-For and X-Forwarded-Proto are trusted. May be repeated.",
        ),
    ] = None
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = False


@dataclass(frozen=True, kw_only=True)
class ServedOptions(ProjectOptions):
    """Options about what is served: one project, or with ``--projects`` a folder of them."""

    data: DataArgument = ""
    projects: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Serve all projects in a folder instead of one, and create projects there from files that are "
            "uploaded on the page.",
            show_default=False,
        ),
    ] = None

    def require_one(self) -> None:
        """Raise an error unless either a project or a folder of projects is named, without options of the other.

        Raises:
            InvalidValueError: With the remedy.
        """
        if self.projects is None:
            if not self.data:
                raise InvalidValueError(
                    "name what to label, as in suffice serve mails.csv, or a folder of projects: suffice serve "
                    "--projects FOLDER"
                )
            return
        if self.data:
            raise InvalidValueError(
                f"--projects {self.projects} serves all projects of a folder, and {self.data} is one project; leave "
                "one of them out"
            )
        left = replace(self, projects=None, person=None)
        given = [each.name for each in fields(left) if getattr(left, each.name) != getattr(_NOTHING_GIVEN, each.name)]
        if given:
            raise InvalidValueError(
                f"options about one project, such as {given[0].replace('_', '-')}, do not go with --projects; choose "
                "them on the page when you create a project, or leave them out"
            )


_NOTHING_GIVEN: Final = ServedOptions()


@with_settings
def serve_command(
    options: ServedOptions,
    page: PageOptions,
    as_json: Annotated[
        bool,
        json_option('Print only one line of JSON when the page is ready: {"url": ..., "token": ...}.'),
    ] = False,
) -> None:
    """Label in the browser, alone or with others: create a project, or continue it.

    Example: suffice serve mails.csv --text body --classes spam,ham

    With others: suffice serve mails.csv --host 0.0.0.0

    Several projects, and new ones from files that you upload on the page: suffice serve --projects FOLDER
    """
    options.require_one()
    from suffice.web import server_options

    reached = server_options(page.tls_cert, page.tls_key, tuple(page.trusted_proxy or ()))
    if options.projects is not None:
        serve_folder(options.projects, page, person_name(options.person), reached=reached, as_json=as_json)
    else:
        serve_project(options, page, reached=reached, as_json=as_json)


def serve_folder(
    place: str, page: PageOptions, person: str, *, reached: "ServerOptions | None" = None, as_json: bool
) -> None:
    """Serve the page of a folder of projects until somebody stops it.

    Args:
        place: The folder.
        page: Address and access.
        person: Who runs the server.
        reached: How the server is reached.
        as_json: Whether to print nothing but the address and the token, as JSON.

    Raises:
        SufficeError: It cannot be served.
    """
    require_store()
    from suffice.project.project_folder import ProjectFolder
    from suffice.web import listening
    from suffice.web.access import granted_access, is_loopback, kept_token, made_token
    from suffice.web.connections import connection_limits
    from suffice.web.folder_server import UPLOAD_PATHS, folder_app
    from suffice.web.server import ServerOptions, serve_on

    host = page.host
    own = (os.environ.get(TOKEN_VARIABLE) or None) if page.token else None
    made = made_token() if page.token and own is None else None
    access = granted_access(host, own or made)
    console = Console(quiet=as_json, highlight=False, soft_wrap=True)
    folder = ProjectFolder(place)
    reached = replace(reached or ServerOptions(), limits=replace(connection_limits(), upload_paths=UPLOAD_PATHS))
    with listening(host, page.port) as listener:
        if made is not None and is_loopback(host):
            made = kept_token(folder.path)
            access = granted_access(host, made)
        token = made

        def ready(url: str) -> None:
            address = url if token is None else f"{url}?token={token}"
            if as_json:
                print_json("serve", {"url": address} | ({} if token is None else {"token": token}))
            names = count(len(folder.names()), "project")
            console.print(
                f"{names} in {folder.path}. {_welcome(address, own=own is not None, accounts=0)}", markup=False
            )
            if host in _EVERY_ADDRESS:
                _say_elsewhere(console, address)
            if page.open_page:
                _open_browser(address)

        with folder_app(folder, access, person) as app:
            serve_on(app, listener, host, ready, reached)
    console.print(
        f"Stopped. Everything is saved; to continue: suffice serve --projects {shlex.quote(place)}", markup=False
    )


def _say_elsewhere(console: Console, address: str) -> None:
    there = elsewhere(address, socket.gethostname())
    console.print(f"From other machines, if they can resolve this name: {there}", markup=False)


def _open_browser(address: str) -> None:
    # A browser in the terminal would block the server.
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def serve_project(
    options: ProjectOptions, page: PageOptions, *, reached: "ServerOptions | None" = None, as_json: bool
) -> None:
    """Serve the page of the project that the options name until somebody stops it.

    Args:
        options: The project.
        page: Address and access.
        reached: How the server is reached.
        as_json: Whether to print nothing but the address and the token, as JSON.

    Raises:
        SufficeError: It cannot be served.
    """
    from suffice.project.prediction_results import start_first_check
    from suffice.web import listening
    from suffice.web.access import granted_access, is_loopback, kept_token, made_token

    # Access rules are validated before anything is opened.
    host = page.host
    own = (os.environ.get(TOKEN_VARIABLE) or None) if page.token else None
    made = made_token() if page.token and own is None else None
    access = granted_access(host, own or made)
    console = Console(quiet=as_json, highlight=False, soft_wrap=True)

    def ready(url: str, accounts: int, made: str | None) -> None:
        address = url if made is None else f"{url}?token={made}"
        if as_json:
            print_json("serve", {"url": address} | ({} if made is None else {"token": made}))
        shown = url if accounts else address
        console.print(_welcome(shown, own=own is not None, accounts=accounts), markup=False)
        if host in _EVERY_ADDRESS:
            _say_elsewhere(console, shown)
        if accounts and made is not None:
            console.print(f"For you alone, without an account and with all rights: {address}", markup=False)
        if page.open_page:
            _open_browser(address)

    # The port is reserved before the project is created, which may take some time.
    with listening(host, page.port) as listener, opened_project(options, console) as project:
        start_first_check(project, person_name(options.person))
        accounts = len(project.accounts())
        if made is not None and is_loopback(host):
            # The token for this machine stays the same, so that open pages work after a restart.
            made = kept_token(project.folder)
            access = granted_access(host, made)
        served = _Served(project, access, host, listener)
        _serve(served, lambda url: ready(url, accounts, made), reached)
    console.print(f"Stopped. Everything is saved; to continue: suffice serve {_place_to_type(options)}", markup=False)


def _place_to_type(options: ProjectOptions) -> str:
    """The project as it can be typed again."""
    return shlex.quote(hidden(place_of(options.data, options.project, checks=options.checked.given)[0]))


class _Served(NamedTuple):
    """A project, its access rules, and the address and socket of its server."""

    project: "Project"
    access: "Access"
    host: str
    listener: socket.socket


def _serve(served: _Served, ready: Callable[[str], None], reached: "ServerOptions | None") -> None:
    from suffice.project.background_learner import BackgroundLearner
    from suffice.web import create_app, serve_on

    project = served.project
    background = BackgroundLearner(project, project.learned_files)
    # FastAPI suppresses some warnings while it creates the application, which another thread could undo.
    app = create_app(project, background, served.access)
    with background:
        serve_on(app, served.listener, served.host, ready, reached)


def _welcome(address: str, *, own: bool, accounts: int) -> str:
    if accounts:
        return (
            f"Open {address} in a browser and sign in, or open a personal link ({count(accounts, 'account')}). Every "
            "label is saved at once; stop with Ctrl+C."
        )
    how = f"; the first time append ?token= and your {TOKEN_VARIABLE}" if own else ""
    return f"Open {address} in a browser{how}. Every label is saved at once; stop with Ctrl+C."


def elsewhere(address: str, name: str) -> str:
    """The address of this machine as others write it.

    Args:
        address: As it is written here.
        name: Of this machine.

    Examples:
        >>> elsewhere("http://127.0.0.1:8000/?token=x", "lab7"), elsewhere("http://[::1]:8000/", "lab7")
        ('http://lab7:8000/?token=x', 'http://lab7:8000/')
    """
    return re.sub(r"//(127\.0\.0\.1|\[::1\])", f"//{name}", address, count=1)
