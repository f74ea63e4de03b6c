"""Accounts of a project: what the journal keeps of them, and what a plain telling of the rules comes to."""

import hashlib
import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suffice.errors import InvalidValueError, SufficeError
from suffice.project import accounts as accounts_module
from suffice.project.accounts import (
    ROLES,
    SCRYPT,
    Account,
    NotAllowedError,
    Role,
    account_with_link,
    account_with_password,
    folded,
    permits,
)
from suffice.project.create import open_project
from suffice.project.events import EventKind
from suffice.project.labelling_project import ConflictError, Project
from tests.project.making_projects import make, replayed
from tests.project.test_state import emptied, hurry, rows
from tests.thoroughness import examples

PASSWORD = "correct horse"


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows is about the rules, not about the cost of a guess."""
    monkeypatch.setitem(accounts_module.SCRYPT, "n", 16)


def test_the_hash_is_scrypt_and_costs_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(accounts_module.SCRYPT, "n", 2**14)
    kept = accounts_module.kept_password(PASSWORD)
    assert (kept["n"], kept["r"], kept["p"]) == (2**14, 8, 5)
    expected = hashlib.scrypt(PASSWORD.encode(), salt=bytes.fromhex(kept["salt"]), n=2**14, r=8, p=5, dklen=32)
    assert bytes.fromhex(kept["hash"]) == expected
    assert accounts_module.kept_password(PASSWORD)["salt"] != kept["salt"]


def test_an_account_is_opened_by_its_own_password_or_link_only(place: str) -> None:
    with make(place) as project:
        assert project.accounts() == ()
        assert project.add_account("Ann", role="manage", person="me", password=PASSWORD) is None
        token = project.add_account("Bob", role="label", person="me")
        assert token is not None
        assert len(token) >= 43
        found = project.accounts()
        ann, bob = found
        assert (ann.role, ann.sign_in, bob.role, bob.sign_in) == ("manage", "password", "label", "link")
        assert account_with_password(found, "Ann", PASSWORD) == ann
        # A phone begins names with a large letter; a Mac writes letters in two parts.
        assert account_with_password(found, " aNN", PASSWORD) == ann
        for name, password in (("Ann", "wrong"), ("Ann", ""), ("Bob", PASSWORD), ("Bob", token), ("Eve", PASSWORD)):
            assert account_with_password(found, name, password) is None
        assert account_with_link(found, token) == bob
        for wrong in ("", token[:-1], f"{token}x", PASSWORD, str(bob.kept["sha256"]), "\ud800"):
            assert account_with_link(found, wrong) is None


def test_letters_in_two_parts_are_the_same_password(place: str) -> None:
    with make(place) as project:
        project.add_account("Zoë", role="manage", person="me", password="größer als")
        other = unicodedata.normalize("NFD", "größer als")
        assert other != "größer als"
        assert account_with_password(project.accounts(), unicodedata.normalize("NFD", "ZOË"), other) is not None


def test_no_secret_is_written_or_shown(place: str) -> None:
    with make(place) as project:
        project.add_account("Ann", role="manage", person="me", password=PASSWORD)
        token = project.add_account("Bob", role="label", person="me")
        again = project.reset_account("Ann", person="me")
        project.reset_account("Bob", person="me", password="another password")
        assert token is not None
        assert again is not None
        written = json.dumps(rows(project))
        for secret in (PASSWORD, token, again, "another password"):
            assert secret not in written
        shown = repr(project.accounts()) + json.dumps([each.as_dict() for each in project.accounts()])
        for event in project.events()[1:]:
            for kind in ("password", "link"):
                for kept in event.data.get(kind, {}).values():
                    assert isinstance(kept, int) or kept not in shown
        assert [each.as_dict()["sign_in"] for each in project.accounts()] == ["link", "password"]
    if "://" not in place:
        content = (Path(place) / "project.sqlite").read_bytes()
        assert PASSWORD.encode() not in content
        assert token.encode() not in content


def test_a_new_password_or_link_ends_the_old_one(place: str) -> None:
    with make(place) as project:
        first = project.add_account("Ann", role="manage", person="me")
        stamp = project.accounts()[0].stamp
        second = project.reset_account("Ann", person="me")
        assert first is not None
        assert second is not None
        (ann,) = project.accounts()
        assert account_with_link([ann], first) is None
        assert account_with_link([ann], second) == ann
        assert ann.stamp != stamp
        made = ann.made
        project.reset_account("Ann", person="me", password=PASSWORD)
        (ann,) = project.accounts()
        assert account_with_link([ann], second) is None
        assert account_with_password([ann], "Ann", PASSWORD) == ann
        assert ann.made == made
        stamp = ann.stamp
        project.reset_account("Ann", person="me", password=PASSWORD)
        assert project.accounts()[0].stamp != stamp


@pytest.mark.parametrize("name", ["", "  ", "x" * 65, "a\x00b", "\ud800", None, 7])
def test_a_name_must_be_one(name: Any, tmp_path: Path) -> None:
    with make(tmp_path / "p") as project:
        with pytest.raises(InvalidValueError, match="the name of a person must be"):
            project.add_account(name, role="manage", person="me")
        assert len(project.events()) == 1


@pytest.mark.parametrize("password", ["", "short", "x" * 201, "with\x07bell", "half \ud800 letter", 12345678])
def test_a_password_must_be_one_and_is_not_repeated(password: Any, tmp_path: Path) -> None:
    with make(tmp_path / "p") as project:
        with pytest.raises(InvalidValueError, match="a password must be 8 to 200 characters") as caught:
            project.add_account("Ann", role="manage", person="me", password=password)
        assert not password or str(password) not in str(caught.value)
        assert len(project.events()) == 1


@pytest.mark.parametrize("role", ["boss", "", "Label", None, 3, "label "])
def test_a_role_must_be_one(role: Any, tmp_path: Path) -> None:
    with make(tmp_path / "p") as project:
        project.add_account("Ann", role="manage", person="me")
        with pytest.raises(InvalidValueError, match="role must be label, review or manage, not"):
            project.add_account("Bob", role=role, person="me")
        with pytest.raises(InvalidValueError, match="role must be label, review or manage, not"):
            project.change_role("Ann", role, person="me")


@pytest.mark.parametrize("taken", ["Ann", "ann", " ANN ", "\uff21\uff4e\uff4e"])
def test_two_accounts_never_look_the_same(taken: str, tmp_path: Path) -> None:
    with make(tmp_path / "p") as project:
        project.add_account("Ann", role="manage", person="me")
        with pytest.raises(ConflictError, match="the project has an account 'Ann' already"):
            project.add_account(taken, role="label", person="me")


def test_what_is_not_there_cannot_be_changed(tmp_path: Path) -> None:
    with make(tmp_path / "p") as project:
        with pytest.raises(InvalidValueError, match="no account 'Bob'; it has no accounts"):
            project.remove_account("Bob", person="me")
        project.add_account("Ann", role="manage", person="me")
        changes: list[Callable[[], object]] = [
            lambda: project.remove_account("Bob", person="me"),
            lambda: project.reset_account("Bob", person="me"),
            lambda: project.change_role("Bob", "label", person="me"),
        ]
        for change in changes:
            with pytest.raises(InvalidValueError, match="the project has no account 'Bob'; the accounts are Ann"):
                change()


def test_somebody_can_always_manage_while_there_are_others(tmp_path: Path) -> None:
    with make(tmp_path / "p") as project:
        project.add_account("Ann", role="manage", person="me")
        project.add_account("Bob", role="review", person="me")
        changes: list[Callable[[], object]] = [
            lambda: project.remove_account("Ann", person="me"),
            lambda: project.change_role("Ann", "review", person="me"),
        ]
        for change in changes:
            with pytest.raises(ConflictError, match="'Ann' is the last account with the role manage"):
                change()
        with pytest.raises(ConflictError, match="has the role manage already"):
            project.change_role("Ann", "manage", person="me")
        project.change_role("Bob", "manage", person="me")
        project.remove_account("Ann", person="me")
        project.remove_account("Bob", person="me")
        assert project.accounts() == ()


def test_other_processes_see_it_at_once_and_labels_stay(place: str) -> None:
    with make(place) as project, open_project(place) as other:
        project.add_account("Ann", role="manage", person="me")
        assert [each.name for each in other.accounts()] == ["Ann"]
        other.label(0, "cat", person="Ann")
        other.remove_account("Ann", person="me")
        assert project.accounts() == ()
        assert project.state().acts.opinions(0)[0].person == "Ann"
        project.add_account("Ann", role="label", person="me")
        assert other.accounts() == project.accounts()


def test_the_journal_says_who_did_what(place: str) -> None:
    with make(place) as project:
        project.add_account("Ann", role="manage", person="me")
        project.add_account("Bob", role="label", person="Ann", password=PASSWORD)
        project.change_role("Bob", "review", person="Ann")
        project.reset_account("Bob", person="Ann")
        project.remove_account("Bob", person="Ann")
        found = [
            (each.kind.value, each.person, each.data["name"], each.data.get("role")) for each in project.events()[1:]
        ]
    assert found == [
        ("account made", "me", "Ann", "manage"),
        ("account made", "Ann", "Bob", "label"),
        ("account role changed", "Ann", "Bob", "review"),
        ("account secret changed", "Ann", "Bob", None),
        ("account removed", "Ann", "Bob", None),
    ]


def test_only_ones_own_labels_can_be_corrected(tmp_path: Path) -> None:
    with make(tmp_path / "p") as project:
        project.label(0, "cat", person="bob")
        project.correct(0, "dog", person="bob", only_own=True)
        project.correct(0, "eel", person="bob", only_own=True)
        project.label(1, "cat", person="ann")
        # A second opinion does not make it one's own.
        project.label(1, "dog", person="bob")
        project.label(2, "cat", person="bob")
        project.correct(2, "dog", person="ann")
        for item in (1, 2):
            with pytest.raises(NotAllowedError, match="somebody else has labelled this item too"):
                project.correct(item, "eel", person="bob", only_own=True)
            project.correct(item, "eel", person="bob")
        # A skip by somebody else is no label.
        project.skip(3, person="ann")
        project.label(3, "cat", person="bob")
        project.correct(3, "dog", person="bob", only_own=True)
        with pytest.raises(ConflictError, match="has no label to correct"):
            project.correct(4, "dog", person="bob", only_own=True)


@pytest.mark.parametrize(
    "data",
    [
        {"name": "Bob", "role": "label"},
        {"name": "Ann", "role": "label", "link": {"sha256": "00"}},
        {"name": "Bob", "role": "boss", "link": {"sha256": "00"}},
        {"role": "label", "link": {"sha256": "00"}},
    ],
)
def test_a_journal_that_makes_no_sense_is_damaged(data: dict[str, Any], tmp_path: Path) -> None:
    from suffice.project.events import Draft
    from suffice.project.storage import write_events

    with make(tmp_path / "p") as project:
        project.add_account("Ann", role="manage", person="me")
        with project.journal.database.exclusive() as connection:
            draft = Draft(EventKind.account_made, "me", data=data)
            write_events(connection, [draft], last=project.events()[-1], at=3.0)
        with pytest.raises(SufficeError):
            project.accounts()


def test_roles_are_a_ladder() -> None:
    for at, role in enumerate(ROLES):
        assert [permits(role, needed) for needed in ROLES] == [k <= at for k in range(len(ROLES))]


@given(st.text(max_size=20))
def test_names_are_compared_without_case_and_however_they_are_encoded(name: str) -> None:
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert folded(unicodedata.normalize(form, name)) == folded(name)
    assert folded(name.casefold()) == folded(name)
    assert folded(f" {name} ") == folded(name)


NAMES = ("Ann", "bob", "Zoë")
STEPS = st.tuples(
    st.sampled_from(["add", "add", "add link", "reset", "reset link", "role", "remove"]),
    st.sampled_from(NAMES),
    st.sampled_from(ROLES),
    st.sampled_from(["password one", "password two"]),
)


class NaiveAccounts:
    """The rules in the plainest way: a list of name, role and what opens the account."""

    def __init__(self) -> None:
        self.kept: list[list[Any]] = []

    def of(self, name: str) -> list[Any] | None:
        return next((each for each in self.kept if each[0] == name), None)

    def is_needed(self, name: str) -> bool:
        """Whether the account may not lose its role."""
        managers = [each for each in self.kept if each[1] == "manage"]
        return len(self.kept) > 1 and len(managers) == 1 and managers[0][0] == name

    def take(self, kind: str, name: str, role: Role, secret: str) -> bool:
        """Do it; whether it can be done."""
        found = self.of(name)
        if kind.startswith("add"):
            if found is None:
                self.kept.append([name, role, secret])
            return found is None
        if found is None:
            return False
        if kind.startswith("reset"):
            found[2] = secret
        elif self.is_needed(name) or (kind == "role" and found[1] == role):
            return False
        elif kind == "role":
            found[1] = role
        else:
            self.kept.remove(found)
        return True


def do(project: Project, kind: str, name: str, role: Role, password: str) -> str:
    """Do it in a project; return what opens the account from now on."""
    given = None if kind.endswith("link") else password
    if kind.startswith("add"):
        return project.add_account(name, role=role, person="me", password=given) or password
    if kind.startswith("reset"):
        return project.reset_account(name, person="me", password=given) or password
    if kind == "role":
        project.change_role(name, role, person="me")
    else:
        project.remove_account(name, person="me")
    return ""


def opened(accounts: tuple[Account, ...], name: str, secret: str) -> bool:
    by_password = account_with_password(accounts, name, secret)
    by_link = account_with_link(accounts, secret)
    found = by_password or by_link
    return found is not None and found.name == name


def test_any_course_of_changes_is_what_the_rules_say_and_what_a_replay_gives(place: str) -> None:
    from suffice.project.storage import sa

    with make(place, 4) as used:
        sa.event.listen(used.journal.database._engine, "checkout", hurry)

        @examples(60 if used.journal.database.file else 25)
        @given(st.lists(STEPS, min_size=5, max_size=20))
        def check(steps: list[tuple[str, str, Role, str]]) -> None:
            project, naive = emptied(used), NaiveAccounts()
            for kind, name, role, password in steps:
                before = project.events()
                try:
                    secret = do(project, kind, name, role, password)
                except (ConflictError, InvalidValueError):
                    assert not naive.take(kind, name, role, "")
                    assert project.events() == before
                else:
                    assert naive.take(kind, name, role, secret)
                    assert len(project.events()) == len(before) + 1
                found = project.accounts()
                assert [(each.name, each.role) for each in found] == [(each[0], each[1]) for each in naive.kept]
            found = project.accounts()
            assert all(opened(found, each[0], each[2]) for each in naive.kept)
            assert not any(opened(found, each[0], "password none") for each in naive.kept)
            assert tuple(replayed(project.events(), 4).accounts.values()) == found
            assert Project(used.journal.database, 4).accounts() == found
            # Accounts change no answer, and nothing that is learned.
            assert project.state().answers() == []
            assert project.settings == used.settings

        check()


def test_the_parameters_are_those_of_the_journal(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with make(place) as project:
        project.add_account("Ann", role="manage", person="me", password=PASSWORD)
        monkeypatch.setitem(SCRYPT, "n", 32)
        assert account_with_password(project.accounts(), "Ann", PASSWORD) is not None
