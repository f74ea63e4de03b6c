"""``suffice accounts``: who may sign in to the page of a labelling project, and what they may do there."""

import getpass
import json
import sys
from enum import StrEnum
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from suffice.cli.project_options import Place, ProjectOptions, plain_console, shown_place, stored_project
from suffice.cli.rule_options import AsJson
from suffice.errors import InvalidValueError, SufficeError

#: Where suffice serve listens if nothing else is asked for.
_ADDRESS: Final = "http://127.0.0.1:8000/"


class RoleName(StrEnum):
    """The roles."""

    label = "label"
    review = "review"
    manage = "manage"


class _AccountsGroup(TyperGroup):
    """Lists the accounts where a project comes first, and not the name of a subcommand."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["list", *args]
        found: list[str] = super().parse_args(ctx, args)
        return found


accounts_app = typer.Typer(
    cls=_AccountsGroup,
    help="Show the accounts of a project, or add, change and remove them. With accounts, people sign in to the "
    "page.\n\nRoles: label (answer, skip, correct one's own labels, see the progress), review (also the review, and "
    "the labels of others), manage (also settings, classes, checks, imports and exports). People who can write the "
    "files of the project can do everything, also here.\n\nExample: suffice accounts mails.suffice",
    epilog="Exit codes: 0 done, 1 could not be done, 2 called wrongly.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the account.", show_default=False)]
Who = Annotated[
    str | None,
    typer.Option("--person", metavar="NAME", help="Who changes the accounts.", show_default="your login name"),
]
Address = Annotated[
    str,
    typer.Option(metavar="URL", help="Address of the page as the person reaches it; the personal link begins with it."),
]


@accounts_app.command("list")
def list_accounts(place: Place, as_json: AsJson = False) -> None:
    """Show the accounts; suffice accounts DIR does the same.

    Example: suffice accounts list mails.suffice
    """
    with stored_project(place) as (project, found):
        accounts = [each.as_dict() for each in project.accounts()]
    if as_json:
        typer.echo(json.dumps({"accounts": accounts}, ensure_ascii=False))
        return
    for each in accounts:
        _say(f"{each['name']}: {each['role']}, signs in by {each['sign_in']}, since {each['made'][:10]}")
    if not accounts:
        _say(f"There are no accounts. The first one: suffice accounts add {shown_place(found)} NAME --role manage")


@accounts_app.command("add")
def add_account(
    place: Place,
    name: Name,
    role: Annotated[RoleName, typer.Option(help="What the person may do.", show_default=False)],
    password: Annotated[
        bool,
        typer.Option(
            "--password/--link",
            help="Sign in by a password, which is asked for twice or read from standard input; or by a personal link.",
        ),
    ] = False,
    address: Address = _ADDRESS,
    person: Who = None,
    as_json: AsJson = False,
) -> None:
    """Make an account. A personal link is printed once and never again.

    Example: suffice accounts add mails.suffice Bob --role label
    """
    with stored_project(place) as (project, _):
        first = not project.accounts()
        who, given = ProjectOptions(place, person=person).who, _asked_password() if password else None
        token = project.add_account(name, role=role.value, person=who, password=given)
    _tell(f"The account {name.strip()} is made, with the role {role.value}.", (name, token, address), as_json=as_json)
    if first and not as_json:
        _say("From now on people sign in to the page. Servers that are running ask for it at the next request.")


@accounts_app.command("reset")
def reset_account(
    place: Place,
    name: Name,
    password: Annotated[
        bool | None,
        typer.Option("--password/--link", help="A new password, or a new personal link.", show_default="as before"),
    ] = None,
    address: Address = _ADDRESS,
    person: Who = None,
    as_json: AsJson = False,
) -> None:
    """Give an account a new password or personal link. The old one is good for nothing, and all its sessions end.

    Example: suffice accounts reset mails.suffice Bob
    """
    from suffice.project.accounts import found_account

    with stored_project(place) as (project, _):
        account = found_account({each.name: each for each in project.accounts()}, name)
        asked = account.sign_in == "password" if password is None else password
        who, given = ProjectOptions(place, person=person).who, _asked_password() if asked else None
        token = project.reset_account(name, person=who, password=given)
    what = "password" if asked else "personal link"
    _tell(f"The account {account.name} has a new {what}.", (account.name, token, address), as_json=as_json)


@accounts_app.command("role")
def change_role(
    place: Place,
    name: Name,
    role: Annotated[RoleName, typer.Argument(metavar="ROLE", help="label, review or manage.", show_default=False)],
    person: Who = None,
    as_json: AsJson = False,
) -> None:
    """Give an account another role; it counts at the next request.

    Example: suffice accounts role mails.suffice Bob review
    """
    with stored_project(place) as (project, _):
        project.change_role(name, role.value, person=ProjectOptions(place, person=person).who)
    _tell(f"The account {name.strip()} has the role {role.value}.", (name, None, ""), as_json=as_json)


@accounts_app.command("remove")
def remove_account(place: Place, name: Name, person: Who = None, as_json: AsJson = False) -> None:
    """Remove an account: its next request is refused. Its labels stay, with its name.

    Example: suffice accounts remove mails.suffice Bob
    """
    with stored_project(place) as (project, _):
        project.remove_account(name, person=ProjectOptions(place, person=person).who)
        last = not project.accounts()
    _tell(f"The account {name.strip()} is removed. Its labels stay.", (name, None, ""), as_json=as_json)
    if last and not as_json:
        _say("There are no accounts any more: everybody who can open the page may do everything there, under any name.")


def _asked_password() -> str:
    """A password: asked for twice at a terminal, else the first line of standard input.

    Raises:
        InvalidValueError: It cannot be used, or the two differ.
        SufficeError: Nobody answered.
    """
    from suffice.project.accounts import checked_password

    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    try:
        given = getpass.getpass("Password: ")
        # One that cannot be used is not asked for again.
        checked_password(given)
        again = getpass.getpass("The same again: ")
    except (EOFError, KeyboardInterrupt):
        raise SufficeError("no password was given; nothing is changed") from None
    if given != again:
        raise InvalidValueError("the two passwords differ; nothing is changed")
    return given


def _tell(sentence: str, made: tuple[str, str | None, str], *, as_json: bool) -> None:
    """Say what was done, and show a new personal link."""
    name, token, address = made
    link = None if token is None else f"{address.rstrip('/')}/?token={token}"
    if as_json:
        shown = {} if token is None else {"token": token, "link": link}
        typer.echo(json.dumps({"name": name.strip(), **shown}, ensure_ascii=False))
        return
    _say(sentence)
    if link is not None:
        _say(f"Personal link, shown this once: {link}")
        _say("It works like a password: send it to that person alone.")
        _say("If the page has another address, append ?token= and what follows to that one.")


def _say(sentence: str) -> None:
    from suffice.cli.terminal_display import one_line

    console = plain_console()
    console.soft_wrap = True
    console.print(one_line(sentence, console.encoding), markup=False, highlight=False)
