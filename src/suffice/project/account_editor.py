"""Changes of the accounts of a project."""

from collections.abc import Callable
from typing import Any

from suffice.project.accounts import (
    Account,
    Role,
    checked_role,
    folded,
    found_account,
    is_last_manager,
    kept_link,
    kept_password,
    made_link_token,
)
from suffice.project.events import Draft, EventKind, checked_person
from suffice.project.journal import ConflictError, ProjectJournal
from suffice.project.state import ProjectState


class AccountEditor:
    """Makes, changes and removes accounts of a project.

    Args:
        journal: Journal of the project.
    """

    def __init__(self, journal: ProjectJournal) -> None:
        self._journal = journal

    def all(self) -> tuple[Account, ...]:
        """The accounts, in the order in which they were made; none if everybody may choose a name."""
        with self._journal.lock:
            return tuple(self._journal.state().accounts.values())

    def add(self, name: str, *, role: Role, person: str, password: str | None = None) -> str | None:
        """Make an account; see :meth:`suffice.project.Project.add_account`."""
        account_name, account_role = checked_person(name), checked_role(role)
        token, secret = _new_secret(password)

        def event_data(state: ProjectState) -> dict[str, Any]:
            existing = next((other for other in state.accounts if folded(other) == folded(account_name)), None)
            if existing is not None:
                raise ConflictError(f"the project has an account {existing!r} already; take another name, or reset it")
            return {"name": account_name, "role": account_role, **secret}

        self._write(EventKind.account_made, person, event_data)
        return token

    def reset(self, name: str, *, person: str, password: str | None = None) -> str | None:
        """Give an account a new password or link; see :meth:`suffice.project.Project.reset_account`."""
        token, secret = _new_secret(password)
        self._write(
            EventKind.account_secret_changed,
            person,
            lambda state: {"name": found_account(state.accounts, name).name, **secret},
        )
        return token

    def change_role(self, name: str, role: Role, *, person: str) -> None:
        """Give an account another role; see :meth:`suffice.project.Project.change_role`."""
        new_role = checked_role(role)

        def event_data(state: ProjectState) -> dict[str, Any]:
            account = found_account(state.accounts, name)
            if account.role == new_role:
                raise ConflictError(f"the account {account.name!r} has the role {new_role} already")
            _require_other_manager(state, account)
            return {"name": account.name, "role": new_role}

        self._write(EventKind.account_role_changed, person, event_data)

    def remove(self, name: str, *, person: str) -> None:
        """Remove an account; see :meth:`suffice.project.Project.remove_account`."""

        def event_data(state: ProjectState) -> dict[str, Any]:
            account = found_account(state.accounts, name)
            _require_other_manager(state, account)
            return {"name": account.name}

        self._write(EventKind.account_removed, person, event_data)

    def _write(self, kind: EventKind, person: str, event_data: Callable[[ProjectState], dict[str, Any]]) -> None:
        who = checked_person(person)
        self._journal.write(lambda state, _: ([Draft(kind, who, data=event_data(state))], None))


def _new_secret(password: str | None) -> tuple[str | None, dict[str, Any]]:
    """The token of a new personal link, or None with a password; and the data for the journal."""
    if password is not None:
        return None, {"password": kept_password(password)}
    token = made_link_token()
    return token, {"link": kept_link(token)}


def _require_other_manager(state: ProjectState, account: Account) -> None:
    """Raise an error if the last account with the role manage would lose it while there are other accounts."""
    if is_last_manager(state.accounts, account.name):
        raise ConflictError(
            f"{account.name!r} is the last account with the role manage, and there are others; give one of them that "
            "role first"
        )
