"""Commands on a labelling project: its state, changes of it, and who may sign in to its page."""

import getpass
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from typer.core import TyperGroup

from suffice.cli.json_output import AsJson, print_json
from suffice.cli.project_options import (
    Place,
    Reading,
    compute_features,
    made_folder,
    person_name,
    person_option,
    plain_console,
    project_place,
    reading,
    require_store,
    shown_place,
    stored_project,
)
from suffice.cli.settings_options import with_settings
from suffice.errors import InvalidValueError, SufficeError
from suffice.files import require_writable
from suffice.presentation.decision_words import STOPS
from suffice.presentation.project_words import count_lines, damage_sentences, progress_sentence, team_lines
from suffice.presentation.text_format import count, utc_time
from suffice.project.settings import project_models

if TYPE_CHECKING:
    from suffice.project.labelling_project import Project


def status_command(place: Place, as_json: AsJson = False) -> None:
    """Show the state of a labelling project: the decision, the estimated error, counts, people, agreement.

    Nothing is written to the journal, so it may be asked while people label.

    Example: suffice status mails.suffice
    """
    from suffice.project.people import people_summary
    from suffice.project.status_summary import status

    with reading(place, wait=False) as learned:
        summary = status(learned.project, learned.learning_status)
        with learned.project.lock:
            team = people_summary(learned.project.state(), learned.project.settings)
        if as_json:
            print_json("status", {**summary, "team": team})
            return
        _print_status(plain_console(), learned, summary, team)


def _print_status(console: Console, learned: Reading, summary: dict[str, Any], team: dict[str, Any]) -> None:
    from suffice.cli.labeller import TONE_STYLES
    from suffice.cli.terminal_display import one_line

    decision = summary["decision"]
    name = one_line(learned.project.settings.name, console.encoding)
    console.print(progress_sentence(name, summary))
    guaranteed = {*summary["guarantee"]["sentences"][:1]} if summary["guarantee"] is not None else set()
    for sentence in summary["words"]:
        first = sentence in decision["sentences"][:1] or sentence in guaranteed
        style = TONE_STYLES[decision["tone"]] if first or sentence == summary["words"][0] else None
        console.print(one_line(sentence, console.encoding), style=style)
    console.print(one_line(f"Model: {summary['model']['description']}.", console.encoding))
    for line in [
        *([summary["model"]["reason"]] if summary["model"]["reason"] else []),
        *([] if summary["model"]["choice"] is None else summary["model"]["choice"]["sentences"]),
        *count_lines(summary, learned.project.settings.source),
        *team_lines(team),
        *_last_activity(learned),
        *_next_commands(learned, summary),
    ]:
        console.print(one_line(line, console.encoding))


def _last_activity(learned: Reading) -> list[str]:
    with learned.project.lock:
        last = learned.project.state().seq
    events = learned.project.events(after=last - 1)
    if not events:
        return []
    # The features are journaled as a change of settings, which nobody made.
    what = "features computed" if "features" in events[0].data else events[0].kind.value
    return [f"Last activity: {utc_time(events[0].when)} ({what})."]


def _next_commands(learned: Reading, summary: dict[str, Any]) -> list[str]:
    decision, place = summary["decision"], shown_place(learned.place)
    command = "label" if learned.settings.checked is None else "check"
    go_on, take = f"Go on with: suffice {command} {place}", f"Take the results: suffice export {place}"
    if summary["check"] is not None and summary["check"]["state"] == "open":
        return [go_on, f"Stop the check: suffice check {place} --abort", take]
    ended = summary["check"] is not None and summary["check"]["state"] == "complete"
    if ended and learned.settings.checked is not None and learned.settings.goal is None:
        return [take]
    better = decision["alternative"]
    if better is not None and better["clear"] and better["name"] in learned.project.settings.models():
        ends = decision["answer"] in STOPS
        switch = f"Switch the model: suffice switch {place} --model {better['name']}"
        return [switch, *([take, go_on] if ends else [go_on, take])]
    if decision["target_guaranteed"]:
        # Another label gives another model, which has no guarantee.
        return [take]
    return [take, go_on] if decision["answer"] in STOPS else [go_on, take]


def report_command(
    place: Place,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="File to write; an existing file is replaced.",
            show_default="DIR/export/report.html",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a report as a page: whether you can stop, how large the error is, what was labelled.

    The page holds everything that it shows, and can be sent on.

    Example: suffice report mails.suffice --out report.html
    """
    from suffice.report.html_page import require_jinja2, write_page

    require_jinja2()
    if out is not None:
        require_writable(out, "the report")
    with reading(place) as learned:
        from suffice.report.project_report import report_page

        file = out or made_folder(learned.folder) / "report.html"
        write_page(file, report_page(learned.project, learned.learning_status))
    if as_json:
        print_json("report", {"report": str(file)})
        return
    plain_console().print(f"Report: {file}")


def review_command(
    place: Place,
    most: Annotated[int, typer.Option("-n", "--most", min=1, help="How many labels to list at most.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the labels that are likely wrong: the model judges each label without having learned it.

    Labels that somebody has confirmed are not listed, and neither are items of a check. Nothing is written. To confirm
    or correct them, open the page with suffice serve, under Review.

    Example: suffice review mails.suffice -n 50
    """
    with stored_project(place) as (project, location):
        from suffice.cli.terminal_display import one_line
        from suffice.project.learned_project import learned_project
        from suffice.project.project_learner import suspicious_labels
        from suffice.project.review import review

        compute_features(project)
        listed = review(project, suspicious_labels(learned_project(project), project.X), most)
    if as_json:
        print_json("review", listed.as_dict())
        return
    console = plain_console()
    console.print(listed.sentence)
    for label in listed.labels:
        console.print(one_line(f"{label.id}: {label.summary}", console.encoding), style="bold")
        console.print("  " + one_line(f"{label.sentence} By {label.person}.", console.encoding))
    if listed.labels:
        console.print(listed.note)
        console.print(f"Confirm or correct them: suffice serve {shown_place(location)}, under Review")


def switch_command(
    place: Place,
    model: Annotated[
        str,
        typer.Option(
            help=f"The model that learns from now on: {', '.join(project_models('classification'))} for classes; "
            f"{', '.join(project_models('regression'))} for numbers."
        ),
    ],
    person: Annotated[str | None, person_option("Who switches.")] = None,
    as_json: AsJson = False,
) -> None:
    """Switch a project to another model, which learns all its labels.

    All labels stay. The page, the terminal, exports and the report use the new model from then on; a server that is
    running takes it over within a second. Switch back in the same way.

    Example: suffice switch mails.suffice --model kernel
    """
    require_store()
    from suffice.project.settings import described_model

    with stored_project(place) as (project, location):
        before = project.current_settings.model
        project.switch_model(model, person=person_name(person))
    if as_json:
        print_json("switch", {"model": model, "before": before})
        return
    console = plain_console()
    console.print(f"The model is now {described_model(model)}; it was {described_model(before)}. All labels stay.")
    console.print(f"See the result: suffice status {shown_place(location)}")


@dataclass(frozen=True)
class ClassOptions:
    """Options about a change of the classes."""

    add: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Add a class; can be given again.")] = None
    rename: Annotated[tuple[str, str] | None, typer.Option(metavar="OLD NEW", help="Give a class another name.")] = None
    merge: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A class to merge, with --into; can be given again.")
    ] = None
    into: Annotated[str | None, typer.Option(metavar="NAME", help="The class that those of --merge become.")] = None
    order: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="All classes in another order, which is that of their keys.")
    ] = None
    remove: Annotated[str | None, typer.Option(metavar="NAME", help="Remove a class that has no labels.")] = None

    @property
    def kinds(self) -> list[str]:
        """The options of the kinds of changes that were given."""
        names = ("add", "rename", "merge", "order", "remove")
        return [f"--{name}" for name in names if getattr(self, name)]


@with_settings
def classes_command(
    place: Place,
    change: ClassOptions,
    person: Annotated[str | None, person_option("Who changes them.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the classes of a project, or add, rename, merge, reorder and remove them. No label is lost.

    One kind of change at a time. The model learns all labels again; a server that is running takes the change over
    within a second. While a check is open, classes can be renamed and reordered only.

    Example: suffice classes mails.suffice --merge advert --merge newsletter --into advert
    """
    require_store()
    kinds = change.kinds
    if len(kinds) > 1:
        raise InvalidValueError(f"{' and '.join(kinds)} cannot be done at once; call the command once for each")
    if bool(change.merge) != (change.into is not None):
        raise InvalidValueError("--merge and --into belong together: --merge A --merge B --into B")
    with stored_project(place) as (project, location):
        before = project.settings.classes
        if kinds:
            _change_classes(project, change, person_name(person))
        with project.lock:
            counts, classes = project.state().counts(), project.settings.classes
    if as_json:
        listed = [{"name": name, "labels": counts.get(name, 0)} for name in classes]
        print_json("classes", {"classes": listed, "before": list(before)})
        return
    console = plain_console()
    if not classes:
        console.print("The labels of this project are numbers, so it has no classes.")
    for name in classes:
        console.print(f"{name}: {count(counts.get(name, 0), 'label')}", markup=False, highlight=False)
    if kinds:
        console.print(f"The classes are changed; all labels stay. See: suffice status {shown_place(location)}")


def _change_classes(project: "Project", change: ClassOptions, person: str) -> None:
    if change.add:
        before = project.settings.classes
        project.change_classes([*before, *change.add], person=person, before=before)
    elif change.rename:
        project.rename_class(*change.rename, person=person)
    elif change.merge and change.into is not None:
        project.merge_classes(change.merge, change.into, person=person)
    elif change.order:
        from suffice.project.read_items import parse_classes

        project.reorder_classes(parse_classes(change.order), person=person)
    elif change.remove:
        project.remove_class(change.remove, person=person)


def repair_command(
    place: Place,
    check: Annotated[bool, typer.Option("--check", help="Verify only, and change nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Verify everything in a labelling project by its checksums, and recover what can be verified.

    The damaged files are kept under another name. Stop a server that uses the project first.

    Example: suffice repair mails.suffice --check
    """
    require_store()
    from suffice.project.repair import repair_project

    report = repair_project(project_place(place), check=check)
    if as_json:
        print_json("repair", report.as_dict())
    else:
        console = plain_console()
        for sentence in damage_sentences(report.as_dict(), place):
            console.print(sentence, soft_wrap=True)
    if not report.intact and not report.repaired:
        raise typer.Exit(1)


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
        rest: list[str] = super().parse_args(ctx, args)
        return rest


accounts_app = typer.Typer(
    cls=_AccountsGroup,
    help="Show the accounts of a project, or add, change and remove them. With accounts, people sign in to the "
    "page.\n\nRoles: label (answer, skip, correct one's own labels, see the progress), review (also the review, and "
    "the labels of others), manage (also settings, classes, checks, imports and exports). People who can write the "
    "files of the project can do everything, also here.\n\nExample: suffice accounts mails.suffice",
    epilog="Exit codes: 0 done, 1 could not be done, 2 invalid arguments.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the account.", show_default=False)]
Who = Annotated[
    str | None,
    person_option("Who changes the accounts."),
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
    with stored_project(place) as (project, location):
        accounts = [account.as_dict() for account in project.accounts()]
    if as_json:
        print_json("accounts list", {"accounts": accounts})
        return
    for account in accounts:
        _say(f"{account['name']}: {account['role']}, signs in by {account['sign_in']}, since {account['made'][:10]}")
    if not accounts:
        _say(f"There are no accounts. The first one: suffice accounts add {shown_place(location)} NAME --role manage")


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
        who, given = person_name(person), _asked_password() if password else None
        token = project.add_account(name, role=role.value, person=who, password=given)
    _tell(
        "add",
        f"The account {name.strip()} is created, with the role {role.value}.",
        (name, token, address),
        as_json=as_json,
    )
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
        account = found_account({other.name: other for other in project.accounts()}, name)
        asked = account.sign_in == "password" if password is None else password
        who, given = person_name(person), _asked_password() if asked else None
        token = project.reset_account(name, person=who, password=given)
    what = "password" if asked else "personal link"
    _tell("reset", f"The account {account.name} has a new {what}.", (account.name, token, address), as_json=as_json)


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
        project.change_role(name, role.value, person=person_name(person))
    _tell("role", f"The account {name.strip()} has the role {role.value}.", (name, None, ""), as_json=as_json)


@accounts_app.command("remove")
def remove_account(place: Place, name: Name, person: Who = None, as_json: AsJson = False) -> None:
    """Remove an account: its next request is refused. Its labels stay, with its name.

    Example: suffice accounts remove mails.suffice Bob
    """
    with stored_project(place) as (project, _):
        project.remove_account(name, person=person_name(person))
        last = not project.accounts()
    _tell("remove", f"The account {name.strip()} is removed. Its labels stay.", (name, None, ""), as_json=as_json)
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


def _tell(command: str, sentence: str, made: tuple[str, str | None, str], *, as_json: bool) -> None:
    """Say what was done, and show a new personal link."""
    name, token, address = made
    link = None if token is None else f"{address.rstrip('/')}/?token={token}"
    if as_json:
        shown = {} if token is None else {"token": token, "link": link}
        print_json(f"accounts {command}", {"name": name.strip(), **shown})
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
