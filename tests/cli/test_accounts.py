"""`suffice accounts`: what it says, writes and refuses; and `suffice label` and `suffice serve` with accounts."""

import getpass
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from suffice.cli.app import app
from suffice.errors import InvalidValueError, SufficeError
from suffice.project import accounts as accounts_module
from suffice.project.accounts import account_with_link, account_with_password
from suffice.project.create import open_project
from suffice.project.labelling_project import ConflictError
from tests.processes import run_suffice, start_suffice
from tests.project.making_projects import make

RUN = CliRunner()
PASSWORD = "correct horse"


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(accounts_module.SCRYPT, "n", 16)


@pytest.fixture
def pets(tmp_path: Path) -> str:
    make(tmp_path / "pets.suffice").close()
    return str(tmp_path / "pets.suffice")


def said(*arguments: str, given: str = "") -> str:
    """What a command prints; it must be done."""
    result = RUN.invoke(app, ["accounts", *arguments], input=given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_team_is_set_up(pets: str) -> None:
    assert "There are no accounts. The first one: suffice accounts add" in said(pets)
    text = said("add", pets, "Ann", "--role", "manage", "--password", given=f"{PASSWORD}\n")
    assert text.splitlines() == [
        "The account Ann is created, with the role manage.",
        "From now on people sign in to the page. Servers that are running ask for it at the next request.",
    ]
    text = said("add", pets, "Bob B", "--role", "label", "--address", "https://labels.example.org")
    lines = text.splitlines()
    assert lines[0] == "The account Bob B is created, with the role label."
    assert lines[1].startswith("Personal link, shown this once: https://labels.example.org/?token=")
    assert len(lines) == 4
    token = lines[1].partition("?token=")[2]
    with open_project(pets) as project:
        found = project.accounts()
        assert account_with_password(found, "Ann", PASSWORD) == found[0]
        assert account_with_link(found, token) == found[1]
        assert PASSWORD not in str(project.events())
        assert token not in str(project.events())
    listed = said(pets).splitlines()
    assert [line.rpartition(", since ")[0] for line in listed] == [
        "Ann: manage, signs in by password",
        "Bob B: label, signs in by link",
    ]
    assert token not in said(pets)
    assert said("list", pets) == said(pets)


def test_an_account_is_changed_and_removed(pets: str) -> None:
    said("add", pets, "Ann", "--role", "manage")
    said("add", pets, "Bob", "--role", "label", "--person", "Ann")
    assert said("role", pets, "Bob", "review").startswith("The account Bob has the role review.")
    assert (
        "The account Bob has a new personal link.\nPersonal link, shown this once: http://127.0.0.1:8000/?token="
        in said("reset", pets, "Bob")
    )
    assert said("reset", pets, "Bob", "--password", given=PASSWORD).strip() == "The account Bob has a new password."
    # As before, so a password again.
    assert said("reset", pets, "Bob", given="another one").strip() == "The account Bob has a new password."
    with open_project(pets) as project:
        assert account_with_password(project.accounts(), "Bob", "another one") is not None
    assert said("remove", pets, "Bob").strip() == "The account Bob is removed. Its labels stay."
    assert said("remove", pets, "Ann").splitlines()[1].startswith("There are no accounts any more: everybody who")
    with open_project(pets) as project:
        people = [each.person for each in project.events()[1:]]
    assert people[1] == "Ann"
    assert len(people) == 8


def test_scripts_get_json(pets: str) -> None:
    made = json.loads(said("add", pets, "Ann", "--role", "manage", "--json"))
    assert set(made) == {"name", "token", "link"}
    assert made["link"] == f"http://127.0.0.1:8000/?token={made['token']}"
    listed = json.loads(said(pets, "--json"))
    assert json.loads(said("--json", pets)) == listed
    (ann,) = listed["accounts"]
    assert {**ann, "made": ""} == {"name": "Ann", "role": "manage", "sign_in": "link", "made": ""}
    reset = json.loads(said("reset", pets, "Ann", "--json", "--password", given=PASSWORD))
    assert reset == {"name": "Ann"}
    assert json.loads(said("add", pets, "Bob", "--role", "manage", "--json"))["name"] == "Bob"
    assert json.loads(said("role", pets, "Bob", "label", "--json")) == {"name": "Bob"}
    assert json.loads(said("remove", pets, "Bob", "--json")) == {"name": "Bob"}


@pytest.mark.parametrize(
    ("arguments", "given", "error", "sentence"),
    [
        (["add", "{pets}", "ANN", "--role", "label"], "", ConflictError, "has an account 'Ann' already"),
        (["add", "{pets}", "", "--role", "label"], "", InvalidValueError, "the name of a person must be 1 to 64"),
        (["add", "{pets}", "Eve", "--role", "label", "--password"], "", InvalidValueError, "password must be 8 to 200"),
        (["add", "{pets}", "Eve", "--role", "label", "--password"], "\n", InvalidValueError, "and this one has 0"),
        (["add", "{pets}", "Eve", "--role", "label", "--password"], "seven 7", InvalidValueError, "this one has 7"),
        (["reset", "{pets}", "Eve"], "", InvalidValueError, "no account 'Eve'; the accounts are Ann, Bob"),
        (["reset", "{pets}", "Ann", "--password"], "x", InvalidValueError, "password must be 8 to 200"),
        (["role", "{pets}", "Eve", "label"], "", InvalidValueError, "no account 'Eve'"),
        (["role", "{pets}", "Ann", "manage"], "", ConflictError, "has the role manage already"),
        (["role", "{pets}", "Ann", "label"], "", ConflictError, "'Ann' is the last account with the role manage"),
        (["remove", "{pets}", "Ann"], "", ConflictError, "'Ann' is the last account with the role manage"),
        (["remove", "{pets}", "Eve"], "", InvalidValueError, "no account 'Eve'"),
        (["{pets}x"], "", SufficeError, "there is no project in"),
        (["add", "{pets}x", "Eve", "--role", "label"], "", SufficeError, "there is no project in"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(
    pets: str, arguments: list[str], given: str, error: type[Exception], sentence: str
) -> None:
    said("add", pets, "Ann", "--role", "manage")
    said("add", pets, "Bob", "--role", "label")
    with open_project(pets) as project:
        before = project.events()
        with pytest.raises(error, match=sentence):
            RUN.invoke(
                app, ["accounts", *(each.format(pets=pets) for each in arguments)], input=given, catch_exceptions=False
            )
        assert project.events() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["add", "{pets}", "Eve"],
        ["add", "{pets}", "Eve", "--role", "boss"],
        ["add", "{pets}"],
        ["role", "{pets}", "Ann", "boss"],
        ["role", "{pets}", "Ann"],
        ["{pets}", "Ann"],
        ["{pets}", "--nothing"],
    ],
)
def test_a_wrong_call_is_told_so(pets: str, arguments: list[str]) -> None:
    result = RUN.invoke(app, ["accounts", *(each.format(pets=pets) for each in arguments)])
    assert result.exit_code == 2
    assert "Usage: " in result.output


class Terminal:
    """A standard input that is a terminal, and the passwords that somebody types there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *typed: str | type[BaseException]) -> None:
        self.left = list(typed)
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
        monkeypatch.setattr(getpass, "getpass", self._ask)

    def _ask(self, prompt: str) -> str:
        assert prompt in {"Password: ", "The same again: "}
        typed = self.left.pop(0)
        if isinstance(typed, str):
            return typed
        raise typed


@pytest.mark.parametrize(
    ("typed", "error", "sentence"),
    [
        ((PASSWORD, PASSWORD), None, ""),
        ((PASSWORD, "correct hose"), InvalidValueError, "the two passwords differ; nothing is changed"),
        (("short",), InvalidValueError, "password must be 8 to 200"),
        ((KeyboardInterrupt,), SufficeError, "no password was given; nothing is changed"),
        ((PASSWORD, EOFError), SufficeError, "no password was given; nothing is changed"),
    ],
)
def test_at_a_terminal_a_password_is_asked_for_twice(
    pets: str, monkeypatch: pytest.MonkeyPatch, typed: Any, error: type[Exception] | None, sentence: str
) -> None:
    from suffice.cli.project_commands import RoleName, add_account

    terminal = Terminal(monkeypatch, *typed)
    make_account: Callable[[], None] = lambda: add_account(pets, "Ann", RoleName.manage, password=True)  # noqa: E731
    if error is None:
        make_account()
    else:
        with pytest.raises(error, match=sentence):
            make_account()
    assert terminal.left == []
    with open_project(pets) as project:
        assert len(project.accounts()) == (error is None)


def test_the_terminal_labels_under_an_account(pets: str) -> None:
    said("add", pets, "Ann", "--role", "manage")

    def labelled(*options: str) -> Any:
        return RUN.invoke(app, ["label", pets, *options], input="cat\n", catch_exceptions=False)

    with open_project(pets) as project:
        before = project.events()
        for person in ("Bob", "ann"):
            with pytest.raises(InvalidValueError, match=f"'{person}' is none of them; give --person with one of Ann"):
                labelled("--person", person)
        assert project.events() == before
        assert labelled("--person", "Ann").exit_code == 0
        assert project.state().labelled()[0].person == "Ann"


@pytest.mark.slow
def test_the_command_as_a_process(pets: str) -> None:
    done = run_suffice("accounts", "remove", pets, "Eve")
    assert done.returncode == 2
    assert done.stderr.strip() == "suffice: the project has no account 'Eve'; it has no accounts"
    done = run_suffice("accounts", "add", pets, "Eve", "--role", "manage", "--password", lines="short\n")
    assert done.returncode == 2
    assert "short" not in done.stdout + done.stderr
    done = run_suffice("accounts", "add", pets, "Eve", "--role", "manage", "--password", lines=f"{PASSWORD}\n")
    assert done.returncode == 0
    assert PASSWORD not in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("accounts", [0, 1])
def test_a_server_says_how_people_come_in(pets: str, accounts: int) -> None:
    for _ in range(accounts):
        said("add", pets, "Ann", "--role", "manage")
    process = start_suffice("serve", pets, "--port", "0", "--token", stderr=subprocess.STDOUT)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2 + accounts)]
    finally:
        process.kill()
        process.communicate()
    if accounts:
        assert re.match(r"Open http://127\.0\.0\.1:\d+/ in a browser and sign in, or open a personal link", lines[1])
        assert re.match(r"For you alone, without an account and with all rights: http://127.*/\?token=\S+$", lines[2])
    else:
        assert re.match(r"Open http://127\.0\.0\.1:\d+/\?token=\S+ in a browser\. Every label", lines[1])
